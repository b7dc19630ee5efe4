#!/bin/sh
# Every check hone has, on a bare Debian 12 or a developer's machine: installs what is
# missing, builds, tests. The last line counts: N passed, N failed, N skipped.
# Usage: ./test.sh [quick | STAGE…]   quick: build, lint, programs; stages: see tests/run.sh; none means all
cd "$(dirname "$0")" || exit 1
case ${1:-} in
-h | --help) sed -n '2,4s/^# //p' "$0"; exec sh tests/run.sh --help ;;
esac
if ! sh scripts/setup.sh test; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
exec sh tests/run.sh "$@"
