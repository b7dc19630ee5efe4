#!/bin/sh
# Prints the header that tells version.c compiler, flags and commit.
# Usage: build-info.sh CC FLAGS
cc=$1
flags=$2
compiler=$($cc --version 2>/dev/null | head -n 1)
commit=
if [ -e .git ]; then
    commit=$(git rev-parse --short=12 HEAD 2>/dev/null)
    [ -n "$commit" ] && [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] && commit=$commit+dirty
elif [ -f COMMIT ]; then # a source archive: make dist
    commit=$(cat COMMIT)
fi
quote() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }
printf '#define HN_BUILD_INFO "%s; %s; commit %s"\n' "$(quote "${compiler:-unknown compiler}")" "$(quote "$flags")" \
    "$(quote "${commit:-unknown}")"
