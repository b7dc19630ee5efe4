#!/bin/sh
# What the texts and the map of the checks name must be there. Usage: lint-docs.sh [ROOT]; scripts/lint.sh calls it.
# Prints one line per breach. Three things are held against the tree: paths and links in README.md and docs/, and tests/map.txt.
set -u
cd "${1:-.}" || exit 1
texts=$(ls README.md docs/*.md models/README.md 2>/dev/null)

# 1. paths: what begins with a folder of the house (src/, tests/ …) or with one of its rooms (lab/x.h), to its last
# letter. A * matches, what has a placeholder (<name>, NAME, …) is left out. docs/LAB.md tells of other days and trees.
rooms=$(cd src 2>/dev/null && ls -d */ | sed 's|/$||' | paste -sd '|' -)
for f in $texts; do
    [ "$f" = docs/LAB.md ] && continue
    grep -noE "(^|[^A-Za-z0-9_./~<>\$-])((src|tests|docs|scripts|include|models)/[A-Za-z0-9_./*-]*|(${rooms:-none})/[a-z0-9_/*]+\.[ch])([^A-Za-z0-9_…<]|\$)" "$f" |
        sed 's|^\([0-9]*:\)[^A-Za-z0-9_]*|\1|; s|[^A-Za-z0-9_*/]*$||' |
        while IFS=: read -r line path; do
            case $path in *[A-Z][A-Z]*) case $path in *README* | *.md) ;; *) continue ;; esac ;; esac
            case $path in src/* | tests/* | docs/* | scripts/* | include/* | models/*) ;; *) path=src/$path ;; esac
            for there in $path; do
                [ -e "$there" ] || echo "$f:$line: $path: no such file; expected a path of this tree"
                break
            done
        done
done

# … and what fuzz targets say that they cover
for f in tests/fuzz/fuzz_*.c; do
    [ -f "$f" ] || continue
    for there in $(sed -n 's|^ \* covers: \([^*]*\).*|\1|p' "$f"); do
        [ -e "$there" ] || echo "$f: covers $there: no such file"
    done
done

# 2. links to other texts, and to their sections
for f in $texts CHANGELOG.md; do
    [ -f "$f" ] || continue
    dir=$(dirname "$f")
    grep -noE '\]\([^)]*\)' "$f" | sed 's/\](\(.*\))/\1/' | while IFS=: read -r line to; do
        case $to in http:* | https:* | mailto:*) continue ;; esac
        file=${to%%#*}
        [ -n "$file" ] && file=$dir/$file || file=$f
        if [ ! -e "$file" ]; then
            echo "$f:$line: link to $to: no such file"
        else
            case $to in
            *#*) # as hosts of Markdown name a heading: lower case, blanks are -, other marks are dropped
                sed -n 's/^##* *//p' "$file" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g' | grep -qxF -- "${to#*#}" ||
                    echo "$f:$line: link to $to: no such section"
                ;;
            esac
        fi
    done
done

# … and tables of measured figures say what stands behind them, in their section: a record that is there, or the commit
# they were measured with; and a command that makes them anew
for f in README.md docs/PERFORMANCE.md; do
    [ -f "$f" ] || continue
    awk -v f="$f" '
        function close_section() {
            if (table && !behind) print f ":" table ": a table of figures without \"Record: `benchmarks/NAME.jsonl`\" or \"No record: commit\" in its section"
            if (table && !command) print f ":" table ": a table of figures without a command in its section that makes them (hone bench, hone train …)"
            table = behind = command = body = 0
        }
        /^#/ { close_section(); next }
        /^\|[-:|]*-[-:|]*$/ { body = 1; next }
        /^\|/ { if (body && /[0-9]/ && !table) table = NR; next }
        { body = 0 }
        /Record: `benchmarks\/[^`]*\.jsonl`/ || /No record: commits? `[0-9a-f]+`/ { behind = 1 }
        /hone (bench|train|lab) / { command = 1 }
        END { close_section() }' "$f"
    grep -noE 'Record: `[^`]*`' "$f" | sed 's/Record: `\(.*\)`/\1/' | while IFS=: read -r line to; do
        [ -s "$to" ] || echo "$f:$line: record $to: no such file"
    done
done

# 3. tests/map.txt: each pattern matches a file, each name is there, each source and each script is covered
map=tests/map.txt
[ -f $map ] || exit 0
files=$(find . \( -path ./build -o -path ./.git -o -path ./benchmarks \) -prune -o -type f -print | sed 's|^\./||' | sort)
sources=$(echo "$files" | grep -E '^(src/.*\.[ch]|include/.*\.h)$')
n=0
while read -r pattern names; do
    n=$((n + 1))
    case $pattern in '' | '#'*) continue ;; esac
    seen=
    for f in $files; do
        case $f in $pattern) seen=1; break ;; esac
    done
    [ -n "$seen" ] || echo "$map:$n: $pattern: matches no file"
    [ -n "$names" ] || echo "$map:$n: $pattern: no names"
    for name in $names; do
        case $name in
        lint | lint-selftest | run-selftest | install) continue ;;
        e2e/*) at=tests/$name.sh ;;
        *) at=tests/$name.c ;;
        esac
        [ -f "$at" ] || echo "$map:$n: $name: there is no $at"
    done
    # lint alone is no test of a source
    case $names in lint) continue ;; esac
    left=
    for f in $sources; do
        case $f in $pattern) ;; *) left="$left $f" ;; esac
    done
    sources=$left
done <$map
for f in $sources; do echo "$f: no line of $map covers it"; done
for f in $(echo "$files" | grep '^tests/e2e/.*\.sh$' | grep -v '/lib\.sh$'); do
    name=${f#tests/}
    grep -qE "[[:space:]]${name%.sh}([[:space:]]|\$)" $map || echo "$f: no line of $map names it"
done
exit 0
