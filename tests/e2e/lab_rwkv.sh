#!/bin/sh
# The laboratory on recurrent models: synth, bench at a depth, profile, memory, records, refusals.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state # no stored roof: a noisy machine may be above it
export XDG_STATE_HOME
M=$T/rwkv7.gguf
cat >"$T/7.json" <<'EOF'
{"arch": "rwkv7", "n_layer": 2, "n_embd": 64, "head_dim": 32, "n_ff": 128, "n_vocab": 400, "rank_decay": 8, "rank_iclr": 8, "rank_value": 4, "rank_gate": 12}
EOF
cat >"$T/6.json" <<'EOF'
{"arch": "rwkv6", "n_layer": 3, "n_embd": 64, "head_dim": 32, "n_vocab": 400, "rank_mix": 4, "rank_decay": 8, "rescale_every": 2}
EOF

# ---- synth ----
expect 0 "synth --list" "$HONE" synth --list
says "the presets" '^rwkv7-2.9b +rwkv7 +2947.7 M' "$T/out"
says "of both versions" '^rwkv6-1.6b +rwkv6 +1599.9 M' "$T/out"
expect 0 "synth rwkv7" "$HONE" synth --config "$T/7.json" --type Q8_0 -o "$M"
says "low-rank matrices as converted" 'F16 12' "$T/out"
expect 0 "synth rwkv6" "$HONE" synth --config "$T/6.json" --type Q4_K_M -o "$T/rwkv6.gguf"
echo '{"arch": "rwkv7", "n_layer": 2, "n_embd": 64, "n_vocab": 400, "rope_base": 5}' >"$T/bad.json"
expect 2 "a field of other models" "$HONE" synth --config "$T/bad.json" -o "$T/x.gguf"
says "is named" 'rope_base has no meaning for arch "rwkv7"'

# ---- bench ----
expect 0 "bench at a depth" "$HONE" bench -m "$M" -p 16 -n 24 -d 3000 -r 1 --file "$T/h/r" --title t --change c --json
says "the state, not a cache" '"state_mb": ?0.0' "$T/out"
says "valid" '"valid": ?true' "$T/out"
says "in the history" 'd3000 t[0-9]+ state 0\.[0-9]+ MB, ' "$T/h/r.md"
expect 0 "bench of rwkv6" "$HONE" bench -m "$T/rwkv6.gguf" -p 16 -n 24 -r 1
says "for people" 'state 0\.[0-9]+ MB, chunk' "$T/out"
expect 0 "benchmark.sh" env HONE="$HONE" ./benchmark.sh -m "$M" -f "$T/h/s" -t x -c y -- -r 1 -p 8 -n 8
says "one row" '^\| [0-9-]+ [0-9:]+ \| x \| y \|' "$T/h/s.md"
expect 0 "parts of a layer" "$HONE" bench layer.time_mix layer.channel_mix memory.state -m "$M" --quick
says "time mix" '^layer.time_mix ' "$T/out"
says "no growth" 'growth +0\.000 MB' "$T/out"
for id in layer.rope layer.attn layer.ffn kern.attn memory.kv2048; do
    run "$HONE" bench "$id" -m "$M" --quick
    says "$id has no subject" "$id: not for a recurrent model: "
done
expect 0 "the recurrence alone" "$HONE" bench kern.wkv7.2x32.1 kern.wkv6.2x32.5 -t 2 --quick
says "of RWKV-6" '^kern.wkv6.2x32.5 ' "$T/out"

# ---- lab ----
expect 0 "profile at a depth" "$HONE" lab profile -m "$M" -p 24 -n 12 -d 100
says "its recurrence" '^  wkv +2 ' "$T/out"
expect 0 "memory" "$HONE" lab memory -m "$M" -p 16 -n 4
says "a state" '^state +0\.' "$T/out"
if grep -q kv_cache "$T/out"; then not_ok "and no KV cache" "$T/out"; else ok "and no KV cache"; fi
head -c 6000 docs/BENCHMARKING.md >"$T/text"
expect 0 "perplexity" "$HONE" perplexity -m "$M" -f "$T/text" -c 64
says "a number" '^perplexity [0-9.]+ ±' "$T/out"
says "with a state" 'rwkv7 Q8_0, state f32' "$T/out"
expect 0 "quality hash" "$HONE" lab quality hash -m "$M"
hash=$(sed -n 's/^hash *\(q2-[^ ]*\).*/\1/p' "$T/out")
expect 0 "quality hash, other threads and chunks" "$HONE" lab quality hash -m "$M" -t 1 --chunk 7
says "is the same" "$hash" "$T/out"
finish
