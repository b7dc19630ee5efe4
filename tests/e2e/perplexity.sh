#!/bin/sh
# hone perplexity and hone lab quality: the same figure by other means, the same bits whatever
# runs it; a model that was damaged, or another one, is noticed.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ]; then
    skip "perplexity and quality" "$TINY is not here"
    finish
fi
value() { sed -n "s/.*\"$1\":\\([-0-9.e+]*\\)[,}].*/\\1/p" "${2:-$T/out}" | head -n 1; }
cat docs/SAMPLING.md docs/CHAT.md | head -c 4000 >"$T/text"

# 1. two windows of 64 ids, by hone tokenize, hone logits, od and awk
if command -v od >/dev/null 2>&1; then
    head -c 2000 "$T/text" >"$T/short"
    "$HONE" tokenize -m "$TINY" --no-special -f "$T/short" 2>"$T/err" | tr ' ' '\n' | grep . >"$T/ids"
    expect 0 "perplexity of two windows" "$HONE" perplexity -m "$TINY" -f "$T/short" -c 64 --chunks 2 --json
    seen=$(value value)
    : >"$T/rows"
    for w in 0 1; do # what the model adds stands at the beginning of each window
        list=$( (head -n 1 "$T/ids"; sed -n "$((w * 64 + 2)),$((w * 64 + 64))p" "$T/ids") | tr '\n' ',' | sed 's/,$//')
        "$HONE" logits -m "$TINY" --ids "$list" --all >"$T/logits" 2>"$T/err" || not_ok "logits of window $w" "$T/err"
        tail -c +$((32 * 1536 * 4 + 1)) "$T/logits" | head -c $((31 * 1536 * 4)) | od -An -v -t fF -w6144 >>"$T/rows"
        sed -n "$((w * 64 + 34)),$((w * 64 + 64))p" "$T/ids" >>"$T/targets"
    done
    want=$(paste -d ' ' "$T/targets" "$T/rows" | awk '{ m = -1e30; s = 0; for (i = 2; i <= NF; i++) if ($i > m) m = $i
        for (i = 2; i <= NF; i++) s += exp($i - m); n++; t += m + log(s) - $($1 + 2) } END { if (n == 62) printf "%.9g", exp(t / n) }')
    if awk -v a="$seen" -v b="$want" 'BEGIN { d = a / b - 1; exit !(a > 1 && b > 1 && d < 1e-5 && d > -1e-5) }' 2>/dev/null; then ok "perplexity $seen, by other means $want"; else
        echo "# hone perplexity: $seen   by other means: $want"
        not_ok "perplexity by other means"
    fi
else
    skip "perplexity by other means" "no od"
fi

# 2. the same figure whatever runs it
expect 0 "perplexity of a text" "$HONE" perplexity -m "$TINY" -f "$T/text" -c 128 --json --file "$T/records/ppl" --title first
all=$(value value)
for how in "-t 1" "--chunk 37" "--chunk 1024" "--cpu scalar --chunks 6"; do
    n=$(echo "$how" | sed -n 's/.*--chunks //p')
    [ -z "$n" ] || all=$("$HONE" perplexity -m "$TINY" -f "$T/text" -c 128 --json --chunks "$n" 2>/dev/null | sed -n 's/.*"value":\([-0-9.e+]*\),.*/\1/p')
    run "$HONE" perplexity -m "$TINY" -f "$T/text" -c 128 --json $how
    if [ "$rc" -eq 0 ] && [ -n "$all" ] && [ "$(value value)" = "$all" ]; then ok "the same with $how"; else
        echo "# $(value value), expected $all"
        not_ok "the same with $how" "$T/err"
    fi
done
says "a record" '"schema":"hone.bench/1","id":"quality.ppl","record":"[0-9a-f]*".*"title":"first".*"samples":\[[0-9.]+\].*"valid":true' "$T/records/ppl.jsonl"
run "$HONE" perplexity -m "$TINY" -f "$T/text" -c 128 --chunks 3 -v
says "running values with -v" '^\[3\] [0-9.]+$' "$T/out"
says "the last of them is the result" "^perplexity $(sed -n 's/^\[3\] //p' "$T/out") ± [0-9.]+$" "$T/out"

# 3. what cannot be measured
printf 'Once upon a time.\n' >"$T/tiny_text"
expect 2 "a text that is too short" "$HONE" perplexity -m "$TINY" -f "$T/tiny_text"
says "says how much there is and how much is needed" 'has [0-9]+ tokens, and windows of 512 need at least 1024'
expect 2 "no text" "$HONE" perplexity -m "$TINY"
expect 2 "a window too small" "$HONE" perplexity -m "$TINY" -f "$T/text" -c 3
expect 2 "an id that is none" "$HONE" perplexity -m "$TINY" --ids 1,2,3,4,5,6,7,1536 -c 4
says "names it" 'token id 1536 .* expected 0 to 1535'
expect 0 "ids instead of text" "$HONE" perplexity -m "$TINY" --ids 1,2,3,4,5,6,7,8 -c 4

# 4. interrupted: what was scored stays
i=0
while [ $i -lt 20 ]; do
    cat docs/*.md
    i=$((i + 1))
done >"$T/long"
for pause in 0.3 1 4 16 64 256; do # a loaded machine may not have scored a window by then
    rm -f "$T/records/stopped.jsonl"
    "$HONE" perplexity -m "$TINY" -f "$T/long" -c 64 --file "$T/records/stopped" >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    sleep $pause
    kill -INT $pid 2>/dev/null
    wait $pid
    rc=$?
    grep -q 'after 0 of' "$T/err" || break
done
if [ $rc -eq 6 ]; then ok "Ctrl-C: exit 6"; else not_ok "Ctrl-C: exit 6, not $rc" "$T/err"; fi
says "with what was scored" '^perplexity [0-9.]+ ± ' "$T/out"
says "and how far it came" 'interrupted after [1-9][0-9]* of [0-9]+ windows'
says "recorded as such" '"valid":null,"invalid_reason":"interrupted"' "$T/records/stopped.jsonl"

# 5. divergence
K="$HONE lab quality kl"
expect 0 "a model against itself" $K "$TINY" "$TINY" --chunks 4 --json --gate kernel --file "$T/records/kl"
says "is exactly the same" '"value":0\.0,"error":0\.0,.*"max":0\.0}.*"identical":true,.*"share":1\.0' "$T/out"
says "its record" '"schema":"hone.bench/1","id":"quality.kl"' "$T/records/kl.jsonl"
expect 0 "levels against each other" $K "$TINY" --ref-cpu scalar --chunks 2
says "bit by bit" 'every logit has the same bits' "$T/out"
expect 12 "a q8_0 cache is no equal kernel" $K "$TINY" --ref-kv f16 --kv q8_0 --chunks 4 --gate kernel
# one number of a rare token's row (1078), at 46368 + 1024 + 1078 * 512: few positions see it
cp "$TINY" "$T/rare.gguf"
printf '\013\255' | dd of="$T/rare.gguf" bs=1 seek=599328 conv=notrunc 2>/dev/null
expect 12 "a few positions that are wrong, little on average" $K "$TINY" "$T/rare.gguf" --chunks 4 --gate kernel
says "by the greatest" 'mean divergence [1-9]\.?[0-9]*e-06, greatest 0\.00[1-9]'
expect 0 "but another engine's precision" $K "$TINY" --ref-kv f16 --kv q8_0 --chunks 4 --gate engine
expect 0 "logits saved" $K "$TINY" --save "$T/logits.ref" --chunks 4
expect 0 "and compared without the model" $K "$T/logits.ref" "$TINY" --gate kernel
says "exactly" 'KL +mean 0(\.0+)? .* 0, median 0, p99 0' "$T/out"
cp "$T/logits.ref" "$T/logits.bad"
printf 'x' | dd of="$T/logits.bad" bs=1 seek=2000000 conv=notrunc 2>/dev/null
expect 3 "saved logits that are damaged" $K "$T/logits.bad" "$TINY"
says "by checksum" 'checksum of window [0-9]+ is wrong'
expect 2 "nothing to compare with" $K "$TINY"

# 6. hash and likeness
small_model "$T/small.gguf"
expect 0 "the hash" "$HONE" lab quality hash -m "$T/small.gguf" --save "$T/answers.json"
hash=$(sed -n 's/^hash *\(q2-[0-9a-f-]*\).*/\1/p' "$T/out")
run "$HONE" bench -m "$T/small.gguf" -p 8 -n 4 -r 1 --json
[ -n "$hash" ] && grep -q "\"quality\":\"$hash\"" "$T/out" && ok "is that of hone bench, $hash" || not_ok "is that of hone bench: $hash" "$T/err"
expect 0 "the same again" "$HONE" lab quality hash -m "$T/small.gguf" -t 1 --against "$T/answers.json"
sed 's/"edges": *"[0-9a-f]*"/"later": "0"/; s/"left_here": *\[[^]]*\]/"here": 0/' "$T/answers.json" >"$T/older.json"
expect 0 "against an older program's" "$HONE" lab quality hash -m "$T/small.gguf" --against "$T/older.json"
says "what it does not tell is named" 'not compared, as only one side tells it: edges, which ways were left out'
sed 's/"rows_compared": *[0-9]*/"rows_compared": 99999999/' "$T/answers.json" >"$T/more.json"
expect 11 "proved on fewer ways" "$HONE" lab quality hash -m "$T/small.gguf" --against "$T/more.json"
expect 2 "a file draws nothing" "$HONE" lab quality hash "$T/answers.json" --draw 7
run "$HONE" bench -m "$T/small.gguf" -p 8 -n 4 -r 1 --quality quick --draw 7 --json
says "a bench draws what is asked" '"draw": *7[,}]' "$T/out"
expect 2 "and nothing without a hash" "$HONE" bench -m "$T/small.gguf" -p 8 -n 4 -r 1 --no-quality --draw 7
expect 2 "nor for a kernel" "$HONE" bench kern.norm.96 --quick --draw 7
expect 1 "and its record is not stored" sh -c 'trap "" XFSZ; ulimit -f 2; exec "$@"' x \
    "$HONE" lab quality hash -m "$T/small.gguf" --against "$T/more.json" --file "$T/cut"
expect 0 "the hash of the bundled model" "$HONE" lab quality hash -m "$TINY" --save "$T/answers.json"
expect 12 "numerics moved" "$HONE" lab quality hash -m "$TINY" --kv f32 --against "$T/answers.json"
says "and are told from answers" '^verdict +numerics moved' "$T/out"
expect 0 "within a tolerance" "$HONE" lab quality hash -m "$TINY" --kv f32 --against "$T/answers.json" --tolerance 0.1
expect 0 "likeness to itself" "$HONE" lab quality similar "$T/answers.json" "$TINY" --json
says "is 1" '"value":1\.0,' "$T/out"
expect 0 "perplexity of the fixed text" "$HONE" lab quality ppl -m "$TINY" --chunks 2
says "by its name" 'fixed text t1' "$T/out"

# 7. one block of weights damaged; a NaN
size=$(wc -c <"$TINY")
cp "$TINY" "$T/bad.gguf"
printf '\074\074\074\074\074\074\074\074\074\074\074\074\074\074\074\074' | dd of="$T/bad.gguf" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
expect 12 "16 damaged bytes of weights: the hash" "$HONE" lab quality hash -m "$T/bad.gguf" --against "$T/answers.json"
expect 12 "16 damaged bytes of weights: divergence" $K "$TINY" "$T/bad.gguf" --chunks 4 --gate kernel
says "is no pass" 'gate kernel failed: mean divergence [0-9]'
cp "$TINY" "$T/nan.gguf"
printf '\000\176' | dd of="$T/nan.gguf" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
expect 1 "a NaN in the weights: perplexity" "$HONE" perplexity -m "$T/nan.gguf" -f "$T/text" -c 64 --file "$T/records/nan"
says "names the place" 'window 0: .*nan.gguf: layer [0-9]*: K of position 0 .* is NaN'
says "the record is invalid" '"valid":false,"invalid_reason":"window 0' "$T/records/nan.jsonl"
expect 1 "a NaN in the weights: divergence" $K "$TINY" "$T/nan.gguf" --chunks 4
expect 12 "a NaN in the weights: at the gate" $K "$TINY" "$T/nan.gguf" --chunks 4 --gate engine
expect 1 "a NaN in the weights: hash" "$HONE" lab quality hash -m "$T/nan.gguf"
expect 12 "a NaN in the weights: hash against another" "$HONE" lab quality hash -m "$T/nan.gguf" --against "$T/answers.json"

# 8. another vocabulary
data=../shared/data/stories260K
if [ -f "$data/stories260K.bin" ] && "$HONE" convert "$data/stories260K.bin" --tokenizer "$data/tok512.bin" -o "$T/other.gguf" >/dev/null 2>&1; then
    expect 2 "models of different vocabularies" $K "$TINY" "$T/other.gguf"
    says "in numbers" 'has 1536 tokens, .* has 512'
    expect 2 "saved logits of another vocabulary" $K "$T/logits.ref" "$T/other.gguf"
    expect 2 "answers of another vocabulary" "$HONE" lab quality similar "$T/answers.json" "$T/other.gguf"
else
    skip "different vocabularies" "no stories260K data here"
fi
finish
