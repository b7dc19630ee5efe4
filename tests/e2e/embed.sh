#!/bin/sh
# hone embed: vectors of lines, in company and alone, as JSON, pooled; documents scored for a query; what is refused.
. tests/e2e/lib.sh

B=$T/bert.gguf Q=$T/qwen.gguf R=$T/rank.gguf
cat >"$T/bert.json" <<'J'
{"arch": "bert", "n_layer": 2, "n_vocab": 700, "tensors": ["token_types.weight"],
 "keys": {"context_length": 64, "embedding_length": 32, "feed_forward_length": 48, "attention.head_count": 4,
          "attention.layer_norm_epsilon": 1e-12, "attention.causal": false, "pooling_type": 2}}
J
sed 's/pooling_type": 2/pooling_type": 4/; s/"token_types.weight"/&, "cls.weight", "cls.output.weight"/' "$T/bert.json" >"$T/rank.json"
cat >"$T/qwen.json" <<'J'
{"arch": "qwen3", "n_layer": 2, "n_vocab": 700, "tied": true,
 "keys": {"context_length": 64, "embedding_length": 32, "feed_forward_length": 48, "attention.head_count": 4,
          "attention.head_count_kv": 2, "attention.key_length": 8, "attention.value_length": 8, "rope.freq_base": 1e6,
          "attention.layer_norm_rms_epsilon": 1e-6, "pooling_type": 3}}
J
for m in bert rank qwen; do expect 0 "a model: $m" "$HONE" synth --config "$T/$m.json" --type F32 -o "$T/$m.gguf"; done

printf 'bafo gene\nfa\nhe to bafo fa fa\n' >"$T/lines"
expect 0 "vectors of lines" "$HONE" embed -m "$B" -f "$T/lines"
cp "$T/out" "$T/all"
[ "$(wc -l <"$T/all")" = 3 ] && [ "$(wc -w <"$T/all")" = 96 ] && ok "one a line" || not_ok "one a line" "$T/all"
while IFS= read -r line; do "$HONE" embed -m "$B" -p "$line"; done <"$T/lines" >"$T/alone" 2>"$T/err"
same "a text alone" "$T/all" "$T/alone"
"$HONE" embed -m "$B" --cpu scalar -t 1 <"$T/lines" >"$T/scalar" 2>"$T/err"
same "through a pipe, on another level" "$T/all" "$T/scalar"
expect 0 "of length 1" awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s < 0.999999 || s > 1.000001) exit 1 }' "$T/all"

expect 0 "as JSON" "$HONE" embed -m "$Q" -p "bafo" --json
says "… with pooling and width" '^\{"schema":"hone.embed/1","pooling":"last","width":32,"texts":\[\{"tokens":[0-9]+,"embedding":\[-?[0-9]' "$T/out"
expect 0 "a chunk of one" "$HONE" embed -m "$Q" -f "$T/lines" -ub 1
cp "$T/out" "$T/one"
expect 0 "and all at once" "$HONE" embed -m "$Q" -f "$T/lines"
same "… the same" "$T/one" "$T/out"
expect 0 "each token" "$HONE" embed -m "$Q" -p "bafo" --pooling none --json
says "… has a row" '"rows":\[\[' "$T/out"
expect 0 "documents for a query" "$HONE" embed -m "$R" --query "bafo" -f "$T/lines"
[ "$(wc -l <"$T/out")" = 3 ] && [ "$(wc -w <"$T/out")" = 3 ] && ok "… a score each" || not_ok "… a score each" "$T/out"

expect 3 "nothing to rank with" "$HONE" embed -m "$B" --query x -p y
says "… saying so" 'cls.output.weight'
expect 2 "no text" "$HONE" embed -m "$B" </dev/null
expect 2 "an id that is none" "$HONE" embed -m "$B" --ids 700
says "… saying so" 'expected 0 to 699'
expect 2 "two poolings" "$HONE" embed -m "$R" --query x -p y --pooling mean
expect 3 "no next token" "$HONE" run -m "$B" -p bafo -n 1
says "… and what there is" 'hone embed'
finish
