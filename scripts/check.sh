#!/bin/sh
# Runs what a change of a file can break, and only that. `make check FILE=src/engine/sampler.c` calls it.
# Usage: [B=build/release] [FLAVOUR=release] scripts/check.sh [--list [--built]] FILE…
#   --list   says what, runs nothing; --built: of the objects as they are, nothing is compiled
#
# Test programs are found by the compiler and the symbols: the .d files say which objects a file is in, the undefined and
# defined symbols of the objects which of them the linker puts into which program. So a program is run exactly when the
# file is part of it. Scripts, and what reads a file while it runs, stand in tests/map.txt.
set -u
cd "$(dirname "$0")/.." || exit 1
FLAVOUR=${FLAVOUR:-release}
B=${B:-build/$FLAVOUR}
MAKE=${MAKE:-make}
list=
case ${1:-} in
-h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
--list) list=1; shift ;;
esac
built=
[ "${1:-}" = --built ] && { built=1; shift; }
[ $# -gt 0 ] || { echo "check.sh: which file? make check FILE=src/engine/sampler.c" >&2; exit 2; }
for f; do
    [ -f "$f" ] || { echo "check.sh: $f: no such file; expected the path of one in this tree" >&2; exit 2; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
build() { # build TARGET…
    "$MAKE" --no-print-directory -j"$(nproc 2>/dev/null || echo 2)" B="$B" FLAVOUR="$FLAVOUR" WERROR=1 "$@" >"$tmp/make" 2>&1 && return
    cat "$tmp/make"
    echo "0 passed, 1 failed, 0 skipped: it does not compile"
    exit 1
}
case $built$* in 1*) ;; *.[ch]*) build test-objects ;; esac

# 1. by the table: a pattern, then names; * matches what it matches in a shell's case, / too
while read -r pattern names; do
    case $pattern in '' | '#'*) continue ;; esac
    for f; do
        case $f in $pattern) printf '%s\n' $names ;; esac
    done
done <tests/map.txt >"$tmp/found"

# 2. by objects and symbols
for f; do
    case $f in *.[ch]) find "$B/src" "$B/tests" -name '*.d' -exec grep -lE "(^|[ :])$(echo "$f" | sed 's/\./\\./g')( |\$)" {} + ;; esac
done | sed 's/\.d$/.o/' | sort -u >"$tmp/changed"
# what is left of a source that is gone does not count
find "$B/src" "$B/tests" -name '*.o' | while read -r o; do
    o=${o#"$B"/}
    [ -f "${o%.o}.c" ] && echo "$B/$o"
done >"$tmp/objects"
if [ -s "$tmp/changed" ]; then
    xargs nm -gA <"$tmp/objects" 2>/dev/null | awk -v changed="$tmp/changed" -v b="$B/" '
        function reach(o, p,    i, d) { # object o is part of program p
            if ((p, o) in part) return
            part[p, o] = 1
            if (o in is_changed) hit[p] = 1
            for (i = 1; i <= n_need[o]; i++) {
                d = home[need[o, i]]
                if (d != "") reach(d, p)
            }
        }
        BEGIN { while ((getline line <changed) > 0) is_changed[line] = 1 }
        {
            o = $1
            sub(/:.*/, "", o)
            if ($(NF - 1) == "U") need[o, ++n_need[o]] = $NF
            else if (o !~ /\/tests\// && o !~ /\/src\/cli\/main\.o$/) home[$NF] = o
            if (o ~ /\/tests\/(unit\/test_|property\/|golden\/|fault\/|fuzz\/(fuzz|mutate)_)/) program[o] = 1
        }
        END {
            for (p in program) {
                reach(p, p)
                if (p ~ /\/fuzz\/fuzz_/) reach(b "tests/fuzz/driver.o", p)
                if (!hit[p]) continue
                name = substr(p, length(b "tests/") + 1)
                sub(/\.o$/, "", name)
                print name
            }
        }' >>"$tmp/found"
fi
sort -u "$tmp/found" >"$tmp/checks"
if [ ! -s "$tmp/checks" ]; then
    echo "check.sh: $*: neither a test program nor tests/map.txt knows it; ./test.sh is everything" >&2
    exit 1
fi
if [ -n "$list" ]; then
    cat "$tmp/checks"
    exit
fi

# 3. just these
set --
while read -r name; do
    case $name in
    e2e/*) set -- "$@" all ;;
    */*) set -- "$@" "$B/tests/$name" ;;
    esac
done <"$tmp/checks"
[ $# -eq 0 ] || build "$@"
CHECK=$(paste -sd ' ' "$tmp/checks") B=$B FLAVOUR=$FLAVOUR MAKE=$MAKE sh tests/run.sh check
