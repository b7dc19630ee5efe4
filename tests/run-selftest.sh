#!/bin/sh
# Can the test driver see a failure? Gives run.sh made-up test programs, one way of
# ending at a time and several side by side, and checks what it counts; and stops it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
: >"$tmp/wrong"
LIMIT=15 # seconds for those that never end, and plenty for the others; so all cases run at once
export LIMIT

# folder_of NUMBER: a driver with no programs yet, in $here_now
folder_of() {
    here_now=$tmp/$1
    mkdir -p "$here_now/tests/unit" "$here_now/b/tests/unit"
    cp "$here/run.sh" "$here_now/tests/run.sh"
}
wrong() { # wrong FOLDER WHAT: and what the driver said
    { echo "run-selftest: $2"; sed 's/^/    /' "$1/out"; } >>"$tmp/wrong"
}
program() { # program NAME BODY…: in $here_now
    : >"$here_now/tests/unit/test_$1.c"
    file=$here_now/b/tests/unit/test_$1
    shift
    { echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$file"
    chmod +x "$file"
}
judged() { # judged FOLDER WHAT EXIT LAST-LINE
    B=b sh "$1/tests/run.sh" programs >"$1/out" 2>&1
    rc=$?
    [ $rc -eq "$3" ] && [ "$(tail -n 1 "$1/out")" = "$4" ] ||
        wrong "$1" "$2: exit $rc, '$(tail -n 1 "$1/out")'; expected exit $3, '$4'"
}
# counts WHAT EXIT LAST-LINE BODY…: a program with this body
counts() {
    n=$((n + 1))
    folder_of $n
    what=$1 status=$2 line=$3
    shift 3
    program x "$@"
    judged "$here_now" "$what" "$status" "$line" &
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

# several at once: every way of ending counts, told in the order of the names, those of ALONE last
several() { # several FOLDER HOW-MANY
    SIDE_BY_SIDE=$2 B=b sh "$1/tests/run.sh" programs >"$1/out" 2>&1
    rc=$?
    order=$(sed -n 's/^\(ok\|FAIL\|skip\)  *unit.test_\([a-z_]*\) .*/\2/p' "$1/out" | paste -sd ' ' -)
    [ "$(wc -l <"$1/ran")" -eq 1 ] || wrong "$1" "$2 at once: a program ran $(wc -l <"$1/ran") times"
    [ "$(wc -l <"$1/build/test-logs/times.tsv")" -eq 7 ] || wrong "$1" "$2 at once: times.tsv does not have all 7"
    [ $rc -eq 1 ] && [ "$(tail -n 1 "$1/out")" = "4 passed, 3 failed, 1 skipped" ] && [ "$order" = "a b c d e x lab_peaks" ] ||
        wrong "$1" "$2 at once: exit $rc, '$(tail -n 1 "$1/out")', in the order '$order'"
}
for at_once in 1 2 20; do
    n=$((n + 1))
    folder_of $n
    program a 'sleep 1' 'echo 1..1' 'echo "ok 1 - a"'
    program b 'kill -SEGV $$'
    program c 'echo 1..2' 'echo "ok 1 - a"' 'echo "not ok 2 - b"' 'exit 1'
    program d 'sleep 60'
    program e 'trap "" TERM' 'echo "SKIP: no GPU"' 'exit 77'
    program lab_peaks 'echo fine' # of those that are alone: after the others
    program x "echo x >>$here_now/ran" 'echo fine'
    : >"$here_now/ran"
    several "$here_now" $at_once &
done

# the stage check runs what it is told, and nothing else
told() { # told FOLDER NAMES EXIT LAST-LINE
    CHECK=$2 B=b sh "$1/tests/run.sh" check >"$1/out" 2>&1
    rc=$?
    [ $rc -eq "$3" ] && [ "$(tail -n 1 "$1/out")" = "$4" ] || wrong "$1" "told to run '$2': exit $rc, '$(tail -n 1 "$1/out")'; expected exit $3, '$4'"
}
for case in "unit/test_good 0 1.passed,.0.failed" "unit/test_bad,unit/test_good 1 1.passed,.1.failed" "unit/test_gone 1 0.passed,.1.failed" "e2e/x 0 2.passed,.0.failed"; do
    n=$((n + 1))
    folder_of $n
    program good 'echo fine'
    program bad 'exit 3'
    mkdir "$here_now/tests/e2e"
    echo 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"' >"$here_now/tests/e2e/x.sh"
    set -- $case
    told "$here_now" "$(echo "$1" | tr , ' ')" "$2" "$(echo "$3" | tr . ' '), 0 skipped" &
done

# stages that share a queue: each of their tests counts once, those that are alone come behind all
stages() {
    B=b sh "$1/tests/run.sh" programs e2e >"$1/out" 2>&1
    rc=$?
    order=$(sed -n 's/^\(ok\|FAIL\)  *\(unit\/test_\|e2e \)\([a-z_]*\) .*/\3/p' "$1/out" | paste -sd ' ' -)
    [ $rc -eq 1 ] && [ "$(tail -n 1 "$1/out")" = "4 passed, 1 failed, 0 skipped" ] && [ "$order" = "a x y lab_peaks ab" ] ||
        wrong "$1" "two stages: exit $rc, '$(tail -n 1 "$1/out")', in the order '$order'"
}
n=$((n + 1))
folder_of $n
program a 'echo fine'
program lab_peaks 'echo fine'
mkdir "$here_now/tests/e2e"
for name in ab x; do echo 'echo fine' >"$here_now/tests/e2e/$name.sh"; done
echo 'exit 3' >"$here_now/tests/e2e/y.sh"
: >"$here_now/b/hone"
chmod +x "$here_now/b/hone"
stages "$here_now" &

# times.tsv: processors and the clock are told apart, beside others and alone
busy() {
    B=b sh "$1/tests/run.sh" programs >"$1/out" 2>&1
    awk -F '\t' '{ wall[$1] = $2; cpu[$1] = $3 }
        END { exit !(cpu["unit/test_busy"] >= 0.9 && cpu["unit/test_lab_peaks"] >= 0.9 && cpu["unit/test_idle"] < 0.9 && wall["unit/test_idle"] >= 1) }' \
        "$1/build/test-logs/times.tsv" || { cat "$1/build/test-logs/times.tsv" >>"$1/out"; wrong "$1" "times.tsv does not tell who was busy"; }
}
n=$((n + 1))
folder_of $n
# two seconds of a processor on every machine, however fast: the kernel ends what has used them, by a count of its own,
# which has been 0.2 s off that of `times`
work='(ulimit -t 2; exec awk "BEGIN { while (1) i++ }" 2>/dev/null); :'
program busy "$work" # a child of it
program lab_peaks "$work"
program idle 'sleep 1'
busy "$here_now" &

# a driver that is stopped leaves nothing at work, in whatever process group
stops() { # stops FOLDER SIGNAL
    # what is started with & ignores SIGINT, unless timeout starts it
    if [ $2 = INT ]; then set -- "$1" "$2" timeout 600; fi
    dir=$1 signal=$2
    shift 2
    LIMIT=600 SIDE_BY_SIDE=2 B=b "$@" sh "$dir/tests/run.sh" programs >"$dir/out" 2>&1 &
    driver=$!
    i=0
    while [ "$(wc -l <"$dir/pids")" -lt 4 ] && [ $i -lt 3000 ]; do i=$((i + 1)); sleep 0.1; done
    kill -$signal $driver
    wait $driver
    [ "$(wc -l <"$dir/pids")" -eq 4 ] || wrong "$dir" "SIG$signal: $(wc -l <"$dir/pids") processes were at work, expected 4"
    for pid in $(cat "$dir/pids"); do
        i=0
        while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null && [ $i -lt 300 ]; do i=$((i + 1)); sleep 0.1; done
        [ $i -lt 300 ] || wrong "$dir" "stopped by SIG$signal, it left process $pid"
    done
    tail -n 1 "$dir/out" | grep -q "stopped by SIG$signal" || wrong "$dir" "stopped by SIG$signal, it did not say so"
}
for signal in TERM INT; do
    n=$((n + 1))
    folder_of $n
    : >"$here_now/pids"
    for name in a b lab_peaks; do
        program $name "timeout 500 sh -c 'echo \$\$ >>$here_now/pids; sleep 400; :' &" "echo \$\$ >>$here_now/pids" 'wait' 'sleep 400'
    done
    stops "$here_now" $signal &
done
n=$((n + 1))
folder_of $n
if B=b sh "$here_now/tests/run.sh" programs >"$here_now/out" 2>&1; then wrong "$here_now" "no test program at all counts as success"; fi
wait
cat "$tmp/wrong"
bad=$(grep -c '^run-selftest:' "$tmp/wrong")
echo "run-selftest: $n cases, $bad wrong"
[ "$bad" -eq 0 ]
