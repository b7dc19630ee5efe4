# What every end-to-end script begins with: . tests/e2e/lib.sh
# Runs from the repository root with HONE set to the program. Prints one line "ok N - …"
# or "not ok N - …" per check; `finish` ends the script with the right status.
HONE=${HONE:-$(pwd)/build/release/hone}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
XDG_STATE_HOME=$T/.state # what hone remembers of files and of the machine: nothing of other runs
export XDG_STATE_HOME
n_check=0
n_bad=0
TINY=models/hone-tiny.gguf
CHAT=models/hone-chat.gguf

ok() { # ok WHAT
    n_check=$((n_check + 1))
    echo "ok $n_check - $1"
}
not_ok() { # not_ok WHAT [FILE WITH WHY]…
    n_check=$((n_check + 1))
    n_bad=$((n_bad + 1))
    echo "not ok $n_check - $1"
    shift
    for _f; do
        [ -f "$_f" ] && head -c 2000 "$_f" | head -n 12 | sed "s|^|#   ${_f##*/}: |"
    done
}
skip() { # skip WHAT REASON
    n_check=$((n_check + 1))
    echo "ok $n_check # SKIP $1: $2"
}
# await COMMAND…: until it succeeds; false after five minutes, which only a hang takes
await() {
    _n=0
    until "$@" 2>/dev/null; do
        _n=$((_n + 1))
        [ $_n -lt 15000 ] || return 1
        sleep 0.02
    done
}
gone() { ! kill -0 "$1" 2>/dev/null; }
# listening PID: it catches SIGTERM, so a signal no longer just kills it; or it has ended
listening() {
    gone "$1" && return
    if [ ! -r "/proc/$1/status" ]; then
        sleep 3 # there is no asking here
        return
    fi
    _caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
    [ -z "$_caught" ] || [ $((0x${_caught#????????} & 0x4000)) -ne 0 ]
}
# children_seen PID FILE N: N different children have been seen, which FILE keeps; or it has ended
children_seen() {
    gone "$1" && return
    tr ' ' '\n' <"/proc/$1/task/$1/children" >>"$2" || sleep 1
    [ "$(grep . "$2" | sort -u | wc -l)" -ge "$3" ]
}
# run COMMAND…: leaves status in $rc, output in $T/out, errors in $T/err
run() {
    timeout "${RUN_LIMIT:-600}" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
# expect RC WHAT COMMAND…: the exit code, and an error on stderr exactly when it is not 0
expect() {
    _want=$1 _what=$2
    shift 2
    run "$@"
    if [ "$rc" -ne "$_want" ]; then
        echo "# $*: exit $rc, expected $_want"
        not_ok "$_what" "$T/out" "$T/err"
    elif [ "$_want" -ne 0 ] && [ ! -s "$T/err" ]; then
        echo "# $*: exit $rc without a word on stderr"
        not_ok "$_what"
    elif grep -qiE 'sanitizer|assertion|core dumped' "$T/err"; then
        not_ok "$_what" "$T/err"
    else
        ok "$_what"
    fi
}
# says WHAT PATTERN [FILE]: the last run's errors (or FILE) match
says() {
    if grep -qE -- "$2" "${3:-$T/err}"; then ok "$1"; else
        echo "# expected: $2"
        not_ok "$1" "${3:-$T/err}"
    fi
}
same() { # same WHAT FILE FILE
    if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1" "$2" "$3"; fi
}
finish() {
    echo "1..$n_check"
    [ "$n_bad" -eq 0 ] || exit 1
    [ "$n_check" -gt 0 ] || exit 1
    exit 0
}
