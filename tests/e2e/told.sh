#!/bin/sh
# What changes an answer is told: numbers that no cache or logit holds, metadata that asks for another formula, windows
# that are not run. On every command that runs a model.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ] || ! ${CC:-cc} -O1 -o "$T/edit" tests/e2e/edit_gguf.c 2>"$T/err"; then
    skip "what is told" "$TINY is not here, or no compiler for tests/e2e/edit_gguf.c"
    finish
fi
edit() { "$T/edit" "$TINY" "$T/$1" "$2" || not_ok "making $1"; }
head -c 3000 docs/SAMPLING.md >"$T/text"
unset HONE_IGNORE_KEYS

# tells WHAT RC WORDS COMMAND…: exit code, and words on stderr
tells() {
    _what=$1 _rc=$2 _words=$3
    shift 3
    run "$@"
    if [ "$rc" -eq "$_rc" ] && grep -qF -- "$_words" "$T/err"; then ok "$_what"; else
        echo "# exit $rc, expected $_rc and \"$_words\""
        not_ok "$_what" "$T/err"
    fi
}
# notes WHAT WORDS: in "notes" of the JSON just printed
notes() {
    if tr -d '\n' <"$T/out" | grep -q "\"notes\":\\[[^]]*$2"; then ok "$1"; else not_ok "$1" "$T/out"; fi
}
silent() {
    _what=$1
    shift
    run "$@"
    if [ "$rc" -eq 0 ] && ! grep -q note: "$T/err"; then ok "$_what"; else not_ok "$_what" "$T/err"; fi
}

# 1. a key beyond what an f16 cache holds: every consumer of logits fails, names the place and the way out, prints no
# number
edit k.gguf blk.2.attn_norm.weight=fill:300000
M=$T/k.gguf
for c in f16 q8_0; do
    if [ $c = q8_0 ]; then edit k.gguf blk.2.attn_norm.weight=fill:30000000; fi
    tells "logits, $c" 1 "layer 2: K of position 0" "$HONE" logits -m "$M" --ids 5,6,7 --kv $c
    if [ -s "$T/out" ]; then not_ok "logits prints nothing, $c"; else ok "logits prints nothing, $c"; fi
    tells "logits --all, $c" 1 "--kv f32" "$HONE" logits -m "$M" --ids 5,6,7 --all --json --kv $c
    tells "logits after others, $c" 1 "--kv f32" "$HONE" logits -m "$M" --ids 5,6,7 --neighbours 2 --kv $c
    tells "run, $c" 1 "--kv f32" "$HONE" run -m "$M" --ids 5,6,7 -n 2 --json --kv $c
    tells "perplexity, $c" 1 "--kv f32" "$HONE" perplexity -m "$M" -f "$T/text" -c 64 --chunks 1 --json --kv $c
    tells "quality hash, $c" 1 "--kv f32" "$HONE" lab quality hash -m "$M" --kv $c
    tells "bench, $c" 1 "--kv f32" "$HONE" bench -m "$M" -p 8 -n 2 -r 1 --no-quality --json --kv $c
    if grep -q '"valid":true' "$T/out"; then not_ok "bench is not valid, $c" "$T/out"; else ok \
        "bench is not valid, $c"; fi
    tells "profile, $c" 1 "--kv f32" "$HONE" lab profile -m "$M" -p 4 -n 1 --kv $c
done
edit k.gguf blk.2.attn_norm.weight=fill:300000
expect 0 "an f32 cache holds it" "$HONE" logits -m "$M" --ids 5,6,7 --kv f32
expect 0 "as does q8_0" "$HONE" logits -m "$M" --ids 5,6,7 --kv q8_0
edit n.gguf output_norm.weight=fill:inf
for c in f16 f32 q8_0; do
    tells "logits that are no numbers, $c" 1 "tensor 'output_norm.weight' (F32): element 0 is inf" "$HONE" logits -m "$T/n.gguf" --ids 5,6,7 \
        --kv $c
done
tells "perplexity of no numbers" 1 "inspect $T/n.gguf --check" "$HONE" perplexity -m "$T/n.gguf" -f "$T/text" -c 64 \
    --chunks 1
edit n.gguf blk.1.attn_norm.weight=fill:nan
tells "a key that is no number" 1 "layer 1: K of position 0 (sequence 0, head 0) is NaN" "$HONE" logits -m \
    "$T/n.gguf" --ids 5,6,7

# 2. metadata
edit m.gguf llama.attention.mystery=f32:2.5
M=$T/m.gguf
for c in "run --ids 5,6 -n 1" "logits --ids 5,6" "perplexity -c 64 --chunks 1 -f $T/text" \
    "bench -p 4 -n 1 -r 1 --no-quality" "lab quality hash" "lab profile -p 4 -n 1"; do
    tells "hone ${c%% -*} refuses a key it does not know" 3 "llama.attention.mystery = 2.5" "$HONE" $c -m "$M"
done
HONE_IGNORE_KEYS="other, llama.attention.mystery"
export HONE_IGNORE_KEYS
for c in "run --ids 5,6 -n 1" "logits --ids 5,6" "perplexity -c 64 --chunks 1 -f $T/text" \
    "bench -p 4 -n 1 -r 1 --no-quality"; do
    tells "hone ${c%% -*} goes on without it, and says so" 0 "llama.attention.mystery = 2.5" "$HONE" $c -m "$M" --json
    notes "also in its JSON" mystery
done
run "$HONE" env
if grep -q '^HONE_IGNORE_KEYS.*mystery' "$T/out"; then ok "hone env shows the switch"; else not_ok \
    "hone env shows the switch" "$T/out"; fi
unset HONE_IGNORE_KEYS
edit c.gguf llama.attention.clamp_kqv=f32:8
tells "a formula hone has not" 3 "llama.attention.clamp_kqv = 8, expected 0" "$HONE" run -m "$T/c.gguf" --ids 5,6 -n 1
edit c.gguf llama.attention.clamp_kqv=f32:0
silent "the same, asking for nothing" "$HONE" run -m "$T/c.gguf" --ids 5,6 -n 1

# 3. a window: full attention is said to be full, where it makes a difference
edit w.gguf llama.attention.sliding_window=u32:48
M=$T/w.gguf
for c in "run --ids 5,6 -n 1 -c 64" "logits --ids 5,6 -c 64" "perplexity -c 64 --chunks 1 -f $T/text" \
    "lab quality ppl -c 64 --chunks 1 -f $T/text" \
    "bench -p 60 -n 1 -r 1 --no-quality" "lab profile -p 60 -n 1"; do
    tells "hone ${c%% -*} beyond a window" 0 "hone attends to all of them" "$HONE" $c -m "$M" --json
    notes "also in its JSON" sliding_window
done
echo hello | "$HONE" chat -m "$M" -c 64 -n 1 --temp 0 --chat-template chatml >"$T/out" 2>"$T/err"
if grep -q "hone attends to all of them" "$T/err"; then ok "hone chat beyond a window"; else not_ok \
    "hone chat beyond a window" "$T/err"; fi
silent "nothing is said within it" "$HONE" run -m "$M" --ids 5,6 -n 1 -c 48
silent "nor without -c" "$HONE" run -m "$M" --ids 5,6 -n 1
edit w.gguf llama.attention.sliding_window=u32:0
silent "nor where there is none" "$HONE" run -m "$M" --ids 5,6 -n 1 -c 64
finish
