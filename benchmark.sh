#!/bin/sh
# Measures a model with hone bench and writes the result into the history.
# Usage: ./benchmark.sh [-m MODEL] [-f FILE] [-t TITLE] [-c CHANGE] [-h] [-- MORE OPTIONS OF hone bench]
#   -m MODEL   GGUF file (models/hone-tiny.gguf)
#   -f FILE    history: benchmarks/FILE.md for people, benchmarks/FILE.jsonl with every sample (local)
#   -t TITLE   what is measured (untitled)
#   -c CHANGE  what changed since the last row (the subject of the last commit)
#   -h         this text
# Missing title and change are asked for on a terminal; elsewhere the defaults are taken.
# Six fresh processes are measured, the fewest that give an interval; -- -r 12 for more.
# Exit code: that of hone bench; 1 when the result is invalid (it is recorded as such).
# Builds build/release/hone when it is missing; HONE=PROGRAM measures another one.
set -u
root=$(cd "$(dirname "$0")" && pwd) || exit 1
usage() { sed -n '2,12s/^# \{0,1\}//p' "$root/benchmark.sh"; }
fail() {
    echo "benchmark.sh: $*" >&2
    echo "benchmark.sh: try: ./benchmark.sh -h" >&2
    exit 2
}

model= file=local title= change= have_title= have_change=
case ${1:-} in --help) usage; exit 0 ;; esac
while getopts :m:f:t:c:h option; do
    case $option in
    m) model=$OPTARG ;;
    f) file=$OPTARG ;;
    t) title=$OPTARG have_title=1 ;;
    c) change=$OPTARG have_change=1 ;;
    h) usage; exit 0 ;;
    :) fail "-$OPTARG: a value is missing" ;;
    *) fail "-$OPTARG: no such option; those of hone bench come after --" ;;
    esac
done
shift $((OPTIND - 1))

if [ -z "$model" ]; then
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

hone=${HONE:-$root/build/release/hone}
if [ ! -x "$hone" ]; then
    [ -z "${HONE:-}" ] || fail "HONE=$HONE: no such program"
    echo "benchmark.sh: building $hone" >&2
    make -C "$root" -j"$(nproc 2>/dev/null || echo 2)" all >&2 </dev/null || exit 1
fi
exec "$hone" bench --model="$model" --samples=6 --file="$file" --title="$title" --change="$change" "$@" </dev/null
