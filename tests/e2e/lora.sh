#!/bin/sh
# --lora, hone merge and hone convert --base: adapters change the answer, in the order and by
# the scale that was asked for, wherever they come from; bad ones are refused by name.
. tests/e2e/lib.sh

PEFT=tests/golden/lora_peft
cat >"$T/shape.json" <<'E'
{"arch": "llama", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_head_kv": 2, "head_dim": 8, "n_ff": 48, "n_vocab": 16, "n_ctx_train": 256,
 "rope_base": 10000, "rms_eps": 1e-5, "tied": false, "rope_factor": 1}
E
expect 0 "a base" "$HONE" synth --config "$T/shape.json" --type F32 -o "$T/base.gguf"
B=$T/base.gguf
ids=1,5,9,13,2,6
logits() { # logits FILE OPTION…: of the base
    _f=$1
    shift
    "$HONE" logits -m "$B" --ids $ids --all "$@" >"$_f" 2>"$T/err" || not_ok "logits $*" "$T/err"
}
same() { if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1"; fi; }
other() { if cmp -s "$2" "$3"; then not_ok "$1"; else ok "$1"; fi; }
near() { # near WHAT A B: within 1e-5 of the range
    od -An -v -t fF -w4 "$2" >"$T/a.txt"
    od -An -v -t fF -w4 "$3" >"$T/b.txt"
    if paste "$T/a.txt" "$T/b.txt" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d; if ($2 > hi) hi = $2; if ($2 < lo) lo = $2 }
        END { exit !(NR == 96 && hi > lo && m <= 1e-5 * (hi - lo)) }'; then ok "$1"; else not_ok "$1"; fi
}

expect 0 "a PEFT folder becomes a GGUF adapter" "$HONE" convert "$PEFT" --base "$B" -o "$T/a.gguf"
logits "$T/bare"
logits "$T/peft" --lora "$PEFT"
logits "$T/gguf" --lora "$T/a.gguf"
other "an adapter changes the answer" "$T/bare" "$T/peft"
near "whichever file it is in" "$T/gguf" "$T/peft"
logits "$T/zero" --lora "$PEFT:0"
same "scale 0: the base's bytes" "$T/bare" "$T/zero"
logits "$T/half" --lora "$PEFT:0.5"
other "a scale" "$T/half" "$T/peft"
logits "$T/twice" --lora "$PEFT:0.25" --lora "$PEFT:0.25"
near "two of them add up" "$T/twice" "$T/half"
for how in "-t 1" "-t 3" "--chunk 1" "--chunk 4 -t 2" "--neighbours 3" "--cpu scalar"; do
    # shellcheck disable=SC2086
    logits "$T/how" --lora "$PEFT:0.25" --lora "$PEFT:0.25" $how
    same "the same bits with $how" "$T/how" "$T/twice"
done
cp "$T/a.gguf" "$T/a:1"
logits "$T/colon" --lora "$T/a:1:1"
same "a colon in the name" "$T/colon" "$T/gguf"
cp "$T/a.gguf" "$T/b:2"
logits "$T/colon" --lora "$T/b:2"
same "a name that ends as a scale does" "$T/colon" "$T/gguf"
cp "$T/a.gguf" "$T/b"
logits "$T/colon" --lora "$T/b:2"
other "but a scale where both are names" "$T/colon" "$T/gguf"

expect 0 "a JSON record of them" "$HONE" run -m "$B" --ids $ids -n 4 --temp 0 --ignore-eos --json --lora "$T/a.gguf:0.5"
says "file, hash and scale" '"adapters":\[\{"file":"[^"]*a.gguf","hash":"[0-9a-f]{16}","scale":0.5,"rank":3,"pairs":15\}\]' "$T/out"
expect 0 "told on stderr" "$HONE" run -m "$B" --ids $ids -n 4 --temp 0 --ignore-eos -v --lora "$T/a.gguf:0.5"
says "by name" "adapter a.gguf × 0.5 .rank 3"

expect 0 "a measurement with two of them" "$HONE" bench -m "$B" -p 4 -n 2 -r 1 --no-quality --json --lora "$T/a.gguf" --lora "$T/a.gguf:0.5"
[ "$(grep -o '"scale":' "$T/out" | wc -l)" -eq 2 ] && ok "has both" || not_ok "has both" "$T/out"
expect 0 "a session saved" "$HONE" run -m "$B" --ids $ids -n 4 --temp 0 --ignore-eos --state-out "$T/state" --lora "$T/a.gguf"
expect 0 "goes on with the same adapter" "$HONE" run -m "$B" --ids 3 -n 4 --temp 0 --ignore-eos --state-in "$T/state" --lora "$T/a.gguf"
expect 2 "not without it" "$HONE" run -m "$B" --ids 3 -n 4 --temp 0 --state-in "$T/state"
says "why" "saved with adapters"

expect 0 "merge" "$HONE" merge -m "$B" --lora "$PEFT:0.25" --lora "$T/a.gguf:0.25" -o "$T/merged.gguf"
"$HONE" logits -m "$T/merged.gguf" --ids $ids --all >"$T/merged" 2>"$T/err" || not_ok "logits of the merged model" "$T/err"
near "merged, it answers as with its adapters" "$T/merged" "$T/twice"
expect 0 "merge into F16" "$HONE" merge -m "$B" --lora "$PEFT" --type F16 -o "$T/f16.gguf" --json
says "a report in JSON" '"schema":"hone.merge/1".*"merged":\[\{"name":"output.weight","from":"F32","to":"F16"' "$T/out"

# an output that cannot be written is no bad model
limit='trap "" XFSZ; ulimit -f 4; exec "$@"'
expect 1 "merge: no room" sh -c "$limit" x "$HONE" merge -m "$B" --lora "$PEFT" -o "$T/limit.gguf"
says "… says how much" "limit.gguf: [0-9]* bytes needed, the file size limit"
expect 1 "convert: no room" sh -c "$limit" x "$HONE" convert "$PEFT" --base "$B" -o "$T/limit.gguf"
says "… says how much" "limit.gguf: .*file size limit"
expect 1 "convert: no room for a folder" sh -c "$limit" x "$HONE" convert "$T/a.gguf" --base "$B" -o "$T/limit"
says "… says how much" "limit/adapter_model.safetensors: .*file size limit"
expect 3 "merge: no such adapter" "$HONE" merge -m "$B" --lora "$T/none.gguf" -o "$T/limit.gguf"
expect 3 "merge: no such base" "$HONE" merge -m "$T/none.gguf" --lora "$PEFT" -o "$T/limit.gguf"
expect 3 "convert: no such base" "$HONE" convert "$PEFT" --base "$T/none.gguf" -o "$T/limit.gguf"

expect 3 "no such adapter" "$HONE" run -m "$B" --ids $ids --lora "$T/none.gguf"
expect 3 "an adapter is no model" "$HONE" run -m "$T/a.gguf" --ids $ids
says "what it is for" "with --lora"
expect 3 "a model is no adapter" "$HONE" run -m "$B" --ids $ids --lora "$B"
says "said so" "not an adapter"
sed 's/"n_embd": 32/"n_embd": 64/' "$T/shape.json" >"$T/wide.json"
"$HONE" synth --config "$T/wide.json" --type F32 -o "$T/wide.gguf" >"$T/out" 2>"$T/err" || not_ok "a wider base" "$T/err"
expect 3 "another base" "$HONE" run -m "$T/wide.gguf" --ids $ids --lora "$T/a.gguf"
says "by name" "wrong base model"
expect 2 "a scale beyond reason" "$HONE" run -m "$B" --ids $ids --lora "$T/a.gguf:1e30"
expect 2 "merge needs an adapter" "$HONE" merge -m "$B" -o "$T/x.gguf"
expect 2 "merge does not replace its base" "$HONE" merge -m "$B" --lora "$PEFT" -o "$B"
ln "$T/a.gguf" "$T/hard.gguf"
expect 2 "merge does not replace an adapter" "$HONE" merge -m "$B" --lora "$T/a.gguf" -o "$T/hard.gguf"
expect 2 "convert does not replace the base" "$HONE" convert "$T/a.gguf" --base "$B" -o "$B"
expect 2 "convert does not replace its source" "$HONE" convert "$T/a.gguf" --base "$B" -o "$T/hard.gguf"
says "said so" "would be the output and is to be read"
expect 0 "an adapter still" "$HONE" logits -m "$B" --ids $ids --all --lora "$T/a.gguf"
expect 0 "merge times 0" "$HONE" merge -m "$B" --lora "$T/a.gguf:0" -o "$T/copy.gguf" --json
says "nothing was merged" '"merged":\[\]' "$T/out"
expect 0 "a table of nothing" "$HONE" merge -m "$B" --lora "$T/a.gguf:0" -o "$T/copy.gguf"
if cmp -s "$B" "$T/copy.gguf"; then ok "a copy"; else not_ok "a copy"; fi
expect 3 "a folder that is an adapter" "$HONE" convert "$PEFT" -o "$T/x.gguf"
says "needs its model" "[-]-base"
expect 2 "bench by id has no adapters" "$HONE" bench sample.greedy --lora "$T/a.gguf"
expect 0 "bench" "$HONE" bench -m "$B" -p 8 -n 4 -r 1 --json --lora "$T/a.gguf:0.5"
says "records them" '"config":\{[^}]*"adapters":\[\{"file":"[^"]*a.gguf","hash":"[0-9a-f]{16}","scale":0.5' "$T/out"
expect 0 "a packed base" "$HONE" pack -m "$B" -o "$T/base.hpack"
expect 0 "its quality hash" "$HONE" bench -m "$B" -p 8 -n 4 -r 1 --json --lora "$T/a.gguf" --packed "$T/base.hpack"
says "adapters go with the packed weights alone, which is told" '"left_out":\[[^]]*"plain weights: adapters go with' "$T/out"
says "and no shortage of this moment" '"left_here":\[\]' "$T/out"
if [ -f "$TINY" ]; then
    expect 3 "an adapter of another shape" "$HONE" bench -m "$TINY" -p 8 -n 4 -r 1 --lora "$T/a.gguf"
fi
finish
