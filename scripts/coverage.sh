#!/bin/sh
# Line coverage per source file, least covered first, from the .gcda files below a build
# folder. Usage: coverage.sh build/cov     (needs gcov, which comes with gcc)
set -u
b=${1:-build/cov}
files=$(find "$b/src" -name '*.gcda' | sort)
[ -n "$files" ] || { echo "coverage: no counts under $b/src; run the tests of FLAVOUR=cov first" >&2; exit 1; }
# every object counts, also one that no test has touched
for o in $(find "$b/src" -name '*.gcno' | sort); do
    src=${o#"$b"/}
    src=${src%.gcno}.c
    gcov -n -o "${o%.gcno}.o" "$src" 2>/dev/null | awk -v want="$src" '
        /^File / { f = $2; gsub(/\047/, "", f) }
        /^Lines executed:/ && f == want { split($0, a, /[:% ]+/); print a[3], a[5], want; found = 1; f = "" }
        END { if (!found) print 0, 0, want }'
done | sort -n | awk '
    { printf "%6.1f %%  of %5d lines  %s\n", $1, $2, $3; hit += $1 * $2 / 100; all += $2 }
    END { if (all) printf "%6.1f %%  of %5d lines  in all\n", 100 * hit / all, all }'
