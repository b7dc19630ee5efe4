#!/bin/sh
# The program as a whole: versions and help, exit codes, what an error says, and what
# happens when its output has nowhere to go.
. tests/e2e/lib.sh

expect 0 "hone version" "$HONE" version
says "version names version, compiler and commit" "$(sed -n 's/^.define HONE_VERSION "\(.*\)"/\1/p' include/hone.h)" "$T/out"
says "… and the compiler" "gcc|clang" "$T/out"
says "… and the contract's flag" "ffp-contract=off" "$T/out"
for word in --version -v -V; do
    cp "$T/out" "$T/version"
    expect 0 "hone $word" "$HONE" $word
    same "says the same" "$T/version" "$T/out"
done
expect 0 "hone version --json" "$HONE" version --json
says "JSON has a schema" '"schema": ?"hone\.version/1"' "$T/out"
expect 0 "hone env" "$HONE" env
says "env lists HONE_CPU" "HONE_CPU" "$T/out"

expect 0 "hone --help" "$HONE" --help
cp "$T/out" "$T/help"
for c in run inspect tokenize detokenize logits convert synth bench env version; do
    says "--help lists $c" "(^|[[:space:]])$c([[:space:]]|\$)" "$T/help"
    expect 0 "hone $c --help" "$HONE" "$c" --help
    says "$c --help shows options" "--json" "$T/out"
done
expect 0 "hone help --man" "$HONE" help --man
says "the man page is troff" "^\.TH " "$T/out"
if command -v bash >/dev/null 2>&1; then
    expect 0 "hone help --completion bash" "$HONE" help --completion bash
    cp "$T/out" "$T/completion"
    expect 0 "the completion is valid bash" bash -n "$T/completion"
fi

# usage: 2
expect 2 "no command" "$HONE"
expect 2 "unknown command" "$HONE" rnu
says "… is named, with the nearest" "rnu.*run"
expect 2 "unknown option" "$HONE" run --tempp 0
says "… is named" "tempp"
expect 2 "option without its value" "$HONE" run -m
expect 2 "word where a number belongs" "$HONE" run -m x.gguf -n ten
says "… value seen" "ten"
expect 2 "number out of range" "$HONE" run -m x.gguf -t 0
expect 2 "number too large for its type" "$HONE" run -m x.gguf -n 99999999999999999999
expect 2 "unknown CPU level" env HONE_CPU=mmx "$HONE" logits -m "$TINY" --ids 1
says "… with those there are" "mmx.*(scalar|avx2)"
expect 2 "no model named" "$HONE" run -p x
expect 2 "unknown cache type" "$HONE" run -m "$TINY" -p x --kv f8

# not a model: 3
: >"$T/empty.gguf"
mkdir "$T/folder"
head -c 4096 /dev/urandom >"$T/noise.gguf"
printf 'GGUF' >"$T/stub.gguf"
for command in "run -n 1 -p x" "logits --ids 1" "tokenize -p x" "bench -p 1 -n 1 -r 1"; do
    name=${command%% *}
    for f in missing.gguf empty.gguf folder noise.gguf stub.gguf; do
        set -- $command
        expect 3 "$name: $f" "$HONE" "$@" -m "$T/$f"
        says "… is named" "$f"
    done
done
for f in missing.gguf empty.gguf folder noise.gguf stub.gguf; do
    expect 3 "inspect: $f" "$HONE" inspect "$T/$f"
    says "… is named" "$f"
done
if [ "$(id -u)" -ne 0 ]; then
    cp "$T/stub.gguf" "$T/locked.gguf"
    chmod 000 "$T/locked.gguf"
    expect 3 "unreadable file" "$HONE" inspect "$T/locked.gguf"
    says "… says why" "ermission"
else
    skip "unreadable file" "root may read everything"
fi
# what a file name may hold must not reach the terminal raw
esc=$(printf '\033')
expect 3 "file name with an escape sequence" "$HONE" inspect "$T/a${esc}[31mred.gguf"
if grep -q "$esc" "$T/err"; then not_ok "… is escaped" "$T/err"; else ok "… is escaped"; fi

if [ ! -f "$TINY" ]; then
    skip "the rest" "$TINY is not there"
    finish
fi

# output that cannot be written: 1, and a word about it, except for a closed pipe
if [ -w /dev/full ]; then
    "$HONE" logits -m "$TINY" --ids 1 >/dev/full 2>"$T/err" </dev/null
    rc=$?
    if [ $rc -eq 1 ]; then ok "full disk: exit 1"; else echo "# exit $rc"; not_ok "full disk: exit 1"; fi
    says "… and says so" "No space left"
    "$HONE" inspect "$TINY" >/dev/full 2>"$T/err" </dev/null
    if [ $? -eq 1 ]; then ok "inspect on a full disk: exit 1"; else not_ok "inspect on a full disk: exit 1"; fi
else
    skip "full disk" "no /dev/full"
fi
{ timeout 600 "$HONE" run -m "$TINY" -p "Once" -n 100000 --ignore-eos -s 1 2>"$T/err" </dev/null; echo $? >"$T/rc"; } | head -c 20 >/dev/null
rc=$(cat "$T/rc")
if [ "$rc" -eq 1 ] || [ "$rc" -eq 141 ]; then ok "a closed pipe ends the run"; else echo "# exit $rc"; not_ok "a closed pipe ends the run" "$T/err"; fi
if grep -qi 'sanitizer\|assert' "$T/err"; then not_ok "… without a crash" "$T/err"; else ok "… without a crash"; fi

# Ctrl-C: 130, at once, what was written stays
timeout --preserve-status -s INT 2 "$HONE" run -m "$TINY" -p "Once" -n 1000000 -c 1000100 --ignore-eos -s 1 >"$T/out" 2>"$T/err" </dev/null
rc=$?
if [ $rc -eq 130 ]; then ok "Ctrl-C: exit 130"; else echo "# exit $rc"; not_ok "Ctrl-C: exit 130" "$T/err"; fi

# a prompt beyond the context names both counts
run "$HONE" run -m "$TINY" -f include/hone.h -c 64 -n 4
if [ "$rc" -ne 0 ]; then ok "prompt beyond the context fails"; else not_ok "prompt beyond the context fails" "$T/err"; fi
says "… naming both counts" "[0-9]{3,}.*64|64.*[0-9]{3,}"
expect 2 "id outside the vocabulary" "$HONE" logits -m "$TINY" --ids 1,2,99999999
says "… is named" "99999999"

# a disk that fills up while a file is written leaves no half file
(
    ulimit -f 200
    trap '' XFSZ 2>/dev/null
    "$HONE" synth --config tests/cross/llama.json --type F32 -o "$T/big.gguf" >"$T/out" 2>"$T/err" </dev/null
)
rc=$?
if [ $rc -eq 1 ]; then ok "file size limit under synth: exit 1"; else echo "# exit $rc"; not_ok "file size limit under synth: exit 1" "$T/err"; fi
if ls "$T"/big.gguf* >"$T/left" 2>/dev/null; then not_ok "… leaves nothing behind" "$T/left"; else ok "… leaves nothing behind"; fi
finish
