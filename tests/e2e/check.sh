#!/bin/sh
# make check: the programs that scripts/check.sh finds for a file are those that the linker put it into, by the symbols of
# the finished programs; and what the table adds.
. tests/e2e/lib.sh
B=${HONE_B:-$(dirname "$HONE")}
B=${B#"$(pwd)"/}
list() { run env B="$B" sh scripts/check.sh --list --built "$@"; }

# every finished program with its symbols
for p in "$B"/tests/unit/test_* "$B"/tests/property/test_* "$B"/tests/golden/* "$B"/tests/fault/test_* "$B"/tests/fuzz/fuzz_* "$B"/tests/fuzz/mutate_*; do
    [ -f "$p" ] && [ -x "$p" ] && [ -f "${p#"$B"/}.c" ] && nm "$p" 2>/dev/null | awk -v p="${p#"$B"/tests/}" '$2 ~ /[tT]/ { print p, $3 }'
done >"$T/symbols"
if [ "$(cut -d ' ' -f 1 "$T/symbols" | sort -u | wc -l)" -lt 50 ]; then
    skip "make check" "the test programs are not built below $B"
else
    for f in src/base/sha256.c src/text/trie.c src/quant/types.c src/train/schedule.c src/gguf/gguf_write.c src/engine/sampler.c src/template/jinja_lex.c src/cli/out.c; do
        symbol=$(nm -g --defined-only "$B/${f%.c}.o" | awk '$2 == "T" { print $3; exit }')
        awk -v s="$symbol" '$2 == s { print $1 }' "$T/symbols" | sort >"$T/want"
        list "$f"
        grep -E '^(unit|property|golden|fault|fuzz)/' "$T/out" >"$T/got"
        [ -s "$T/want" ] && cmp -s "$T/want" "$T/got"
        if [ $? -eq 0 ]; then
            ok "$f: the $(wc -l <"$T/want" | tr -d ' ') programs with $symbol"
        else
            diff "$T/want" "$T/got" >"$T/differ"
            not_ok "$f: the programs with $symbol" "$T/differ" "$T/err"
        fi
    done
fi

# a header: those whose source includes it
if [ -f "$B/tests/unit/test_base.d" ]; then
    grep -l '"schema_check.h"' tests/unit/*.c | sed 's|^tests/||; s|\.c$||' | sort >"$T/want"
    list tests/unit/schema_check.h
    grep '^unit/' "$T/out" >"$T/got"
    [ -s "$T/want" ] || echo none >"$T/want"
    same "a header of tests: who includes it" "$T/want" "$T/got"
else
    skip "a header of tests" "the test programs are not built below $B"
fi

# the table
expect 0 "README.md: found" env B="$B" sh scripts/check.sh --list README.md
says "… by lint" '^lint$' "$T/out"
says "… and a script that runs its commands" '^e2e/readme$' "$T/out"
expect 1 "a file that nothing checks is said to be one" sh scripts/check.sh --list LICENSE
says "… by name" 'LICENSE: neither a test program nor tests/map.txt knows it'
expect 2 "a file that is not there" sh scripts/check.sh --list src/base/no_such.c
says "… by name" 'src/base/no_such.c: no such file'
expect 2 "no file" sh scripts/check.sh
finish
