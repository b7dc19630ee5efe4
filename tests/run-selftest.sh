#!/bin/sh
# Can the test driver see a failure? Gives run.sh made-up test programs, one way of
# ending at a time and several side by side, and checks what it counts; and stops it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0
mkdir -p "$tmp/tests/unit" "$tmp/b/tests/unit"
cp "$here/run.sh" "$tmp/tests/run.sh"

# counts WHAT EXIT LAST-LINE BODY…: a program with this body
counts() {
    n=$((n + 1))
    what=$1 status=$2 line=$3
    shift 3
    : >"$tmp/tests/unit/test_x.c"
    { echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$tmp/b/tests/unit/test_x"
    chmod +x "$tmp/b/tests/unit/test_x"
    LIMIT=2 B=b sh "$tmp/tests/run.sh" programs >"$tmp/out" 2>&1
    rc=$?
    if [ $rc -ne "$status" ] || [ "$(tail -n 1 "$tmp/out")" != "$line" ]; then
        echo "run-selftest: $what: exit $rc, '$(tail -n 1 "$tmp/out")'; expected exit $status, '$line'"
        sed 's/^/    /' "$tmp/out"
        bad=$((bad + 1))
    fi
}
counts "all pass"            0 "2 passed, 0 failed, 0 skipped" 'echo 1..2' 'echo "ok 1 - a"' 'echo "ok 2 - b"'
counts "one fails"           1 "1 passed, 1 failed, 0 skipped" 'echo 1..2' 'echo "ok 1 - a"' 'echo "not ok 2 - b"' 'exit 1'
counts "fails, exit 0"       1 "1 passed, 1 failed, 0 skipped" 'echo 1..2' 'echo "ok 1 - a"' 'echo "not ok 2 - b"'
counts "dies on the way"     1 "1 passed, 2 failed, 0 skipped" 'echo 1..3' 'echo "ok 1 - a"' 'kill -SEGV $$'
counts "leaks at the end"    1 "2 passed, 1 failed, 0 skipped" 'echo 1..2' 'echo "ok 1 - a"' 'echo "ok 2 - b"' 'exit 23'
counts "cmocka skip"         0 "1 passed, 0 failed, 1 skipped" 'echo 1..2' 'echo "SKIP: no data"' 'echo "not ok 1 # SKIP a"' 'echo "ok 2 - b"'
counts "silent skip"         0 "1 passed, 0 failed, 1 skipped" 'echo 1..2' 'echo "SKIP: no data"' 'echo "ok 1 - a"' 'echo "ok 2 - b"'
counts "exit 77"             0 "0 passed, 0 failed, 1 skipped" 'echo "SKIP: no GPU"' 'exit 77'
counts "plain program"       0 "1 passed, 0 failed, 0 skipped" 'echo fine'
counts "plain, exit 3"       1 "0 passed, 1 failed, 0 skipped" 'exit 3'
counts "plain, killed"       1 "0 passed, 1 failed, 0 skipped" 'kill -ABRT $$'
counts "never ends"          1 "0 passed, 1 failed, 0 skipped" 'sleep 60'
counts "never ends its plan" 1 "1 passed, 2 failed, 0 skipped" 'echo 1..3' 'echo "ok 1 - a"' 'sleep 60'
counts "SIGINT is not ignored" 1 "0 passed, 1 failed, 0 skipped" 'kill -INT $$' 'exit 0'

# several at once: every way of ending counts, told in the order of the names
wrong() { # wrong WHAT: and what the driver said
    echo "run-selftest: $1"
    sed 's/^/    /' "$tmp/out"
    bad=$((bad + 1))
}
program() { # program NAME BODY…
    : >"$tmp/tests/unit/test_$1.c"
    file=$tmp/b/tests/unit/test_$1
    shift
    { echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$file"
    chmod +x "$file"
}
program a 'sleep 1' 'echo 1..1' 'echo "ok 1 - a"'
program b 'kill -SEGV $$'
program c 'echo 1..2' 'echo "ok 1 - a"' 'echo "not ok 2 - b"' 'exit 1'
program d 'sleep 60'
program e 'trap "" TERM' 'echo "SKIP: no GPU"' 'exit 77'
program sampler 'echo fine' # of those that are alone: after the others
program x "echo x >>$tmp/ran" 'echo fine'
for at_once in 1 2 20; do
    n=$((n + 1))
    : >"$tmp/ran"
    LIMIT=2 SIDE_BY_SIDE=$at_once B=b sh "$tmp/tests/run.sh" programs >"$tmp/out" 2>&1
    rc=$?
    order=$(sed -n 's/^\(ok\|FAIL\|skip\)  *unit.test_\([a-z]*\) .*/\2/p' "$tmp/out" | paste -sd ' ' -)
    [ "$(wc -l <"$tmp/ran")" -eq 1 ] || wrong "$at_once at once: a program ran $(wc -l <"$tmp/ran") times"
    if [ $rc -ne 1 ] || [ "$(tail -n 1 "$tmp/out")" != "4 passed, 3 failed, 1 skipped" ] || [ "$order" != "a b c d e x sampler" ]; then
        wrong "$at_once at once: exit $rc, '$(tail -n 1 "$tmp/out")', in the order '$order'"
    fi
done

# a driver that is stopped leaves nothing at work, in whatever process group
for signal in TERM INT; do
    n=$((n + 1))
    rm -f "$tmp/tests/unit/"*.c
    : >"$tmp/pids"
    for name in a b sampler; do
        program $name "timeout 50 sh -c 'echo \$\$ >>$tmp/pids; sleep 40; :' &" "echo \$\$ >>$tmp/pids" 'wait' 'sleep 40'
    done
    # what is started with & ignores SIGINT, unless timeout starts it
    if [ $signal = INT ]; then set -- timeout 60; else set --; fi
    SIDE_BY_SIDE=2 B=b "$@" sh "$tmp/tests/run.sh" programs >"$tmp/out" 2>&1 &
    driver=$!
    i=0
    while [ "$(wc -l <"$tmp/pids")" -lt 4 ] && [ $i -lt 200 ]; do i=$((i + 1)); sleep 0.1; done
    kill -$signal $driver
    wait $driver
    [ "$(wc -l <"$tmp/pids")" -eq 4 ] || wrong "SIG$signal: $(wc -l <"$tmp/pids") processes were at work, expected 4"
    for pid in $(cat "$tmp/pids"); do
        kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null && wrong "stopped by SIG$signal, it left process $pid"
    done
    tail -n 1 "$tmp/out" | grep -q "stopped by SIG$signal" || wrong "stopped by SIG$signal, it did not say so"
done
rm "$tmp/b/tests/unit/"*
n=$((n + 1))
if B=b sh "$tmp/tests/run.sh" programs >"$tmp/out" 2>&1; then
    echo "run-selftest: no test program at all counts as success"
    bad=$((bad + 1))
fi
echo "run-selftest: $n cases, $bad wrong"
[ "$bad" -eq 0 ]
