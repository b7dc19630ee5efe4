#!/bin/sh
# Measures a model with hone bench and writes the result into the history.
# Usage: ./benchmark.sh [-m MODEL] [-f FILE] [-t TITLE] [-c CHANGE] [-h] [OPTION OF hone bench | ID]… [-- MORE OF THEM]
#   -m MODEL   GGUF file (models/hone-tiny.gguf)
#   -f FILE    history: benchmarks/FILE.md for people, benchmarks/FILE.jsonl with every sample (local)
#   -t TITLE   what is measured (untitled)
#   -c CHANGE  what changed since the last row (the subject of the last commit)
#   -h         this text
# Long options go to hone bench as they are, --NAME VALUE or --NAME=VALUE: --iterations --warmup --timing --profile
# --quick --counts --save-baseline --baseline --measurement-time --warm-up-time --framework --suite …; so do ids
# (e2e.gen, load) and all that follows --. hone bench --help explains them.
# Missing title and change are asked for on a terminal; elsewhere the defaults are taken.
# Six fresh processes are measured, the fewest that give an interval; --iterations 12 for more.
# Exit code: that of hone bench; 1 when the result is invalid (it is recorded as such), 6 when interrupted.
# Builds build/release/hone when it is missing; HONE=PROGRAM measures another one.
set -u
root=$(cd "$(dirname "$0")" && pwd) || exit 1
usage() { sed -n '2,15s/^# \{0,1\}//p' "$root/benchmark.sh"; }
fail() {
    echo "benchmark.sh: $*" >&2
    echo "benchmark.sh: try: ./benchmark.sh -h" >&2
    exit 2
}

hone=${HONE:-$root/build/release/hone}
valued= # the options of hone bench that a value follows, each between blanks
# ask_hone: builds it where it is missing, and fills $valued from its help
ask_hone() {
    [ -z "$valued" ] || return 0
    if [ ! -x "$hone" ]; then
        [ -z "${HONE:-}" ] || fail "HONE=$HONE: no such program"
        echo "benchmark.sh: building $hone" >&2
        make -C "$root" -j"$(nproc 2>/dev/null || echo 2)" all >&2 </dev/null || exit 1
    fi
    valued=" $("$hone" bench --help | awk '/^  -/ { # "  -p, --n-prompt N  tokens of the prompt"
        rest = substr($0, 3)
        names = ""
        while (match(rest, /^-[-a-z0-9]+/)) {
            names = names " " substr(rest, 1, RLENGTH)
            rest = substr(rest, RLENGTH + 1)
            if (substr(rest, 1, 2) == ", ") rest = substr(rest, 3)
        }
        if (rest ~ /^ [^ ]/) print names
    }' | tr '\n' ' ') "
}
# takes_value OPTION: a value comes next
takes_value() {
    ask_hone
    case $valued in *" $1 "*) return 0 ;; esac
    return 1
}

model= file=local title= change= have_title= have_change=
n=$# # arguments not looked at yet; those for hone bench are put behind them, in their order
while [ "$n" -gt 0 ]; do
    option=$1
    shift
    n=$((n - 1))
    case $option in
    -h | --help) usage; exit 0 ;;
    --)
        while [ "$n" -gt 0 ]; do
            set -- "$@" "$1"
            shift
            n=$((n - 1))
        done
        ;;
    -m | -f | -t | -c)
        [ "$n" -gt 0 ] || fail "$option: a value is missing"
        case $option in
        -m) model=$1 ;;
        -f) file=$1 ;;
        -t) title=$1 have_title=1 ;;
        -c) change=$1 have_change=1 ;;
        esac
        shift
        n=$((n - 1))
        ;;
    --model=*) model=${option#*=} ;;
    --file=*) file=${option#*=} ;;
    --title=*) title=${option#*=} have_title=1 ;;
    --change=*) change=${option#*=} have_change=1 ;;
    -m* | -f* | -t* | -c*)
        value=${option#-?}
        case $option in
        -m*) model=$value ;;
        -f*) file=$value ;;
        -t*) title=$value have_title=1 ;;
        -c*) change=$value have_change=1 ;;
        esac
        ;;
    --model | --file | --title | --change)
        [ "$n" -gt 0 ] || fail "$option: a value is missing"
        case $option in
        --model) model=$1 ;;
        --file) file=$1 ;;
        --title) title=$1 have_title=1 ;;
        --change) change=$1 have_change=1 ;;
        esac
        shift
        n=$((n - 1))
        ;;
    -[!-]*) fail "$option: no such option; short ones of hone bench come after --" ;;
    *)
        set -- "$@" "$option"
        if [ "$n" -gt 0 ] && takes_value "$option"; then # whatever it begins with
            option=$1
            shift
            n=$((n - 1))
            set -- "$@" "$option"
        fi
        ;;
    esac
done
# ids of what measures no model: hone bench refuses a model there
bare= after=
for word; do
    if [ -n "$after" ]; then
        after=
        continue
    fi
    case $word in
    -*) ! takes_value "$word" || after=value ;;
    kern* | disp* | tensor* | mem.*) bare=${bare:-yes} ;;
    e2e* | load* | tok* | layer* | sample* | memory* | quality* | train*) bare=no ;;
    esac
done
if [ -z "$model" ] && [ "$bare" != yes ]; then
    model=$root/models/hone-tiny.gguf
    [ -f "$model" ] || fail "no model; expected -m FILE.gguf"
fi
case $file in
'') fail "-f: expected a name, as in -f local" ;;
*/*) ;;
*) file=$root/benchmarks/$file ;;
esac

default_change=$(git -C "$root" log -1 --format=%s 2>/dev/null)
[ -n "$default_change" ] || default_change="not known"
# ask WHAT DEFAULT: the answer in $answer
ask() {
    answer=
    if [ -t 0 ]; then
        printf '%s [%s]: ' "$1" "$2" >&2
        IFS= read -r answer || echo >&2
    fi
    [ -n "$answer" ] || answer=$2
}
[ -n "$have_title" ] || { ask "Title, what is measured" untitled && title=$answer; }
[ -n "$have_change" ] || { ask "Change since the last row" "$default_change" && change=$answer; }

ask_hone
exec "$hone" bench ${model:+"--model=$model"} --samples=6 --file="$file" --title="$title" --change="$change" "$@" </dev/null
