#!/bin/sh
# Can the test driver see a failure? Gives run.sh made-up test programs, one way of
# ending at a time, and checks what it counts.
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
rm "$tmp/b/tests/unit/test_x"
n=$((n + 1))
if B=b sh "$tmp/tests/run.sh" programs >"$tmp/out" 2>&1; then
    echo "run-selftest: no test program at all counts as success"
    bad=$((bad + 1))
fi
echo "run-selftest: $n cases, $bad wrong"
[ "$bad" -eq 0 ]
