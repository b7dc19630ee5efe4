#!/bin/sh
# README.md: every command that it shows works as it stands there, with the bundled models, in a folder that has only
# these; what the texts say of commands exists. ./demo.sh and ./test.sh are not run from here: they are what runs this.
. tests/e2e/lib.sh
root=$(pwd)
mkdir "$T/here" "$T/bin"
ln -s "$root/models" "$T/here/models"
ln -s "$HONE" "$T/bin/hone"
PATH=$T/bin:$PATH
export PATH

# its examples in their order: a later one reads what an earlier one wrote
sed -n 's/^    \(hone .*\)$/\1/p; s/^    \(for .*>my.txt\)$/\1/p' README.md >"$T/commands"
[ "$(wc -l <"$T/commands")" -ge 5 ]
if [ $? -eq 0 ]; then ok "README.md shows $(wc -l <"$T/commands" | tr -d ' ') commands"; else not_ok "README.md shows five commands" "$T/commands"; fi
while IFS= read -r command; do
    (cd "$T/here" && timeout 600 sh -c "$command" </dev/null >"$T/out" 2>"$T/err")
    rc=$?
    if [ $rc -eq 0 ] && { [ -s "$T/out" ] || case $command in *\>*) true ;; *" -o "*) true ;; *) false ;; esac; }; then
        ok "$command"
        case $command in *"Lily had a"*) says "and what it learnt shows" '^Lily had a [a-z]+ [a-z]+\. Lily loved the [a-z]+\.' "$T/out" ;; esac
    else
        echo "# exit $rc"
        not_ok "$command" "$T/out" "$T/err"
    fi
done <"$T/commands"
for f in my.txt mine.gguf; do
    if [ -s "$T/here/$f" ]; then ok "$f was written"; else not_ok "$f was written"; fi
done
for f in ./demo.sh ./test.sh; do
    grep -q "^    $f " README.md && [ -x "$f" ]
    if [ $? -eq 0 ]; then ok "$f is there"; else not_ok "$f is there"; fi
done

# families: every vector's is in docs/MODELS.md, and all of them run but those that wait; likewise the shape of the
# README's example with hone synth
for family in $(sed -n 's/.*"general.architecture", "STRING", "\([^"]*\)".*/\1/p' tests/golden/families/*.json | sort -u); do
    case $family in gemma3n | gemma4 | kimi-linear) continue ;; esac
    if grep -qE "^\| (.*, )?$family(,| \|)" docs/MODELS.md; then ok "family $family"; else not_ok "docs/MODELS.md lacks family $family"; fi
done
for cfg in tests/cross/*.json; do
    family=$(basename "$cfg" .json)
    expect 0 "shape of $family" "$HONE" synth --config "$cfg" --type F32 -o "$T/$family.gguf"
done
shape=$(sed -n 's/.*`hone synth \([a-z0-9.-]*\) .*/\1/p' README.md | head -n 1)
run "$HONE" synth --list
says "hone synth knows $shape" "^ *$shape( |\$)" "$T/out"

# every command of this program, as the texts call them: `hone WORD` at the beginning of an example
"$HONE" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >"$T/known"
for f in README.md docs/*.md; do
    sed -n 's/^    hone \([a-z][a-z]*\) .*/\1/p' "$f" | sort -u | grep -vxF -f "$T/known" | sed "s|^|$f: hone |"
done >"$T/unknown"
if [ -s "$T/known" ] && [ ! -s "$T/unknown" ]; then ok "the texts name no command that is not there"; else not_ok "the texts name no command that is not there" "$T/unknown"; fi

# the libraries that the sources include, by the names that the texts give them
for lib in jansson.h:jansson utf8proc.h:utf8proc histedit.h:libedit event2/event.h:libevent; do
    grep -rqs "^#include <${lib%%:*}>" src || continue
    for f in README.md:Elsewhere docs/DEVELOPING.md:'gcc ≥'; do
        if grep "^${f#*:}.*jansson" "${f%%:*}" | sed 's/; for the tests.*//' | grep -q "${lib#*:}"; then ok "${f%%:*} names ${lib#*:}"; else not_ok "${f%%:*} names ${lib#*:}"; fi
    done
    for when in "AS build" "debian:12-slim"; do
        if sed -n "/^    FROM .*$when/,/^    COPY/p" docs/SERVE.md | grep -q "lib${lib#*:}\|${lib#*:}"; then ok "the container of docs/SERVE.md has ${lib#*:} ($when)"; else not_ok "the container of docs/SERVE.md has ${lib#*:} ($when)"; fi
    done
done

lines=$(wc -l <README.md)
if [ "$lines" -le 90 ]; then ok "README.md: $lines lines, at most 90"; else not_ok "README.md: $lines lines, more than 90"; fi
finish
