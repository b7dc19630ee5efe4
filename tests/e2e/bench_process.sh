#!/bin/sh
# Entries of the catalogue that measure in fresh processes: load, memory, quality, e2e.
. tests/e2e/lib.sh

M=$T/small.gguf
if [ ! -f "$TINY" ]; then
    skip "entries in fresh processes" "$TINY is not here"
    finish
fi
small_model "$M"
check() { # check WHAT SEEN EXPECTED
    if [ "$2" = "$3" ]; then ok "$1"; else
        echo "# seen: $2   expected: $3"
        not_ok "$1" "$T/err"
    fi
}
# records ID VARIANT: the records of $T/r.jsonl with this id, and variant if given
records() { grep "\"id\":\"$1\"" "$T/r.jsonl" | grep "\"variant\":${2:-}"; }
# number ID VARIANT KEY: the first such number behind the samples of a record (medians of stats)
number() { records "$1" "$2" | sed -n 's/.*"stats":{.*"'"$3"'":\([-0-9.e+]*\).*/\1/p' | head -n 1; }
bench() { run "$HONE" bench "$@" -m "$M" --warmup 0 --file "$T/r"; }
bench_tiny() { run "$HONE" bench "$@" -m "$TINY" --warmup 0 --file "$T/r"; }

# ---- loading and memory
rm -f "$T/r.jsonl"
bench load memory.load memory.kv2048 memory.per_token -r 2 --json
check "load and memory: exit code" "$rc" 0
for id in load.parse load.config load.engine load.total; do
    check "$id, warm" "$(records $id '"warm"' | wc -l | tr -d ' ')" 1
    check "$id, cold, or it says that it may not be" "$(records $id '"cold' | wc -l | tr -d ' ')" 1
done
says "milliseconds, the less the better" '"id":"load.parse".*"unit":"ms","better":"lower","method":"P"' "$T/r.jsonl"
says "a target" '"id":"load.parse".*"target":"< 1 ms' "$T/r.jsonl"
says "the processes themselves are kept" '"id":"load.total".*"start_ms".*"tokenizer_ms"' "$T/r.jsonl"
for v in anon metadata tensors; do check "load.memory, $v" "$(records load.memory "\"$v\"" | wc -l | tr -d ' ')" 1; done
# 2048 positions × 2 layers × keys and values × 2 heads × 16 × 2 bytes
case $(uname -s) in
Linux) check "the KV cache of 2048 positions is as large as it must be" "$(number memory.kv2048 null median)" 0.524288 ;;
esac
says "memory of loading: stages" '"id":"memory.load".*"stages":\[\{"stage":"start"' "$T/r.jsonl"

# ---- quality and a known text
rm -f "$T/r.jsonl"
bench_tiny quality e2e.clean -r 2 --json # the known text is that of the bundled one
check "quality and clean: exit code" "$rc" 0
says "the hash is in the record" '"id":"quality".*"quality":"q2-[0-9a-f]{8}-[0-9a-f]{8}","valid":true' "$T/r.jsonl"
says "the known text came out" '"id":"e2e.clean".*"valid":true.*Finn' "$T/r.jsonl"

# a copy with other weights, but the same metadata: held to the same text
bytes=$(wc -c <"$TINY" | tr -d ' ')
from=$((bytes / 2))
{ head -c $from "$TINY"; head -c 200000 /dev/zero | tr '\000' '\064'; tail -c +$((from + 200001)) "$TINY"; } >"$T/hurt.gguf"
run "$HONE" bench e2e.clean -m "$T/hurt.gguf" -r 1 --warmup 0 --json
check "hurt weights: exit code" "$rc" 1
says "hurt weights: what was said, what was expected" 'does not say what it should: after [0-9]+ bytes .*, expected ' "$T/out"
bytes=$(wc -c <"$M" | tr -d ' ')
{ head -c $((bytes / 5)) "$M"; head -c $((bytes - bytes / 5)) /dev/zero; } >"$T/zero.gguf"
run "$HONE" bench quality -m "$T/zero.gguf" -r 1 --warmup 0 --json
check "no weights: exit code" "$rc" 1
says "no weights: invalid" '"id":"quality".*"valid":false,"invalid_reason":"[^"]+' "$T/out"
run "$HONE" bench e2e.gen -m "$T/zero.gguf" -p 8 -n 8 -r 1 --warmup 0 --json
check "no weights: no valid rate" "$(grep -o '"valid":true' "$T/out" | wc -l | tr -d ' ')" 0
check "and exit code 1" "$rc" 1

# ---- requests
rm -f "$T/r.jsonl"
bench e2e.gen -p 16 -n 24 -r 2 --json
check "e2e.gen: exit code" "$rc" 0
for v in decode prefill "first token" "between tokens" steady sustained total; do check "e2e.gen, $v" "$(records e2e.gen "\"$v\"" | grep -c '"valid":true')" 1; done
says "sampled, and the record says how" '"n_prompt":16,"n_gen":24,.*"sampler":"temp 0.7, top-p 0.9"' "$T/r.jsonl"
says "gaps pooled, percentiles only where there are enough" '"itl_ms":\{"n":46,"p50":[0-9.e-]+,"p90":null,"p95":null,"p99":null,"max":[0-9.e-]+' "$T/r.jsonl"
rm -f "$T/r.jsonl"
bench_tiny e2e.kvcache.on e2e.kvcache.off e2e.cold e2e.cpu -n 24 -p 8 -r 2 --json # a prompt costs more there than a process
check "kvcache, cold, cpu: exit code" "$rc" 0
slower=$(number e2e.kvcache.off '"times slower"' median)
case $slower in
[1-9]*) ok "without a cache it takes longer ($slower times)" ;;
*) echo "# $slower"; not_ok "without a cache it takes longer" "$T/err" ;;
esac
says "and says that these are not 512 tokens" '"id":"e2e.kvcache.off".*24 tokens, not 512' "$T/r.jsonl"
check "start to first token, warm and cold" "$(records e2e.cold '"start to first token, ' | wc -l | tr -d ' ')" 2
says "CPU use in percent" '"id":"e2e.cpu".*"variant":"CPU use".*"unit":"%"' "$T/r.jsonl"

bench e2e.profile -n 8 -p 8 -r 2 --json
check "e2e.profile: exit code" "$rc" 0
says "shares of a token" '"id":"e2e.profile".*"variant":"token, ffn_down".*"unit":"%".*"valid":true' "$T/r.jsonl"
sum=$(records e2e.profile '"token, ' | sed -n 's/.*"samples":\[\([-0-9.e]*\).*/\1/p' | awk '{ s += $1 } END { printf "%.0f", s }')
check "the parts are the whole" "$sum" 100

# ---- settings in turns
rm -f "$T/r.jsonl"
bench_tiny e2e.backend e2e.scale.threads e2e.scale.batch e2e.scale.size e2e.scale.quant --quick -p 8 -n 6 -r 2 --json # of four layers
check "backend and scale: exit code" "$rc" 0
best=$("$HONE" bench load.parse -m "$M" -r 1 --warmup 0 --json | sed -n 's/.*"isa":"\([a-z0-9_]*\)".*/\1/p' | head -n 1)
if [ "$best" = scalar ]; then skip "kernel levels" "there is only plain C here"; else
    check "the best kernel level is compared with plain C" "$(records e2e.backend "\"$best / scalar, decode\"" | grep -c '"unit":"x"')" 1
fi
for n in "1 sequence" "4 sequences" "8 sequences" "16 sequences"; do check "$n" "$(records e2e.scale.batch "\"$n, decode\"" | grep -c '"valid":true')" 1; done
check "one thread" "$(records e2e.scale.threads '"1 thread, decode"' | grep -c '"threads":1,')" 1
check "a quarter, half and all layers" "$(records e2e.scale.size '"[124] layers*, decode"' | wc -l | tr -d ' ')" 3
says "models made for it are named, and nothing is claimed about their answers" '"id":"e2e.scale.quant".*"valid":null,"invalid_reason":"random weights' "$T/r.jsonl"
left=$(ls -d "${TMPDIR:-/tmp}"/hone-bench-* 2>/dev/null | wc -l | tr -d ' ')
check "made models are removed" "$left" 0

# ---- an option that changes nothing is refused, not swallowed
none() { # ID-and-options OPTION ID: an option without effect, named with the benchmark
    expect 2 "$2 with $3" "$HONE" bench $1 -m "$M"
    says "… names both" "$2 has no effect on $3; leave it out, or measure what it changes: "
}
none "e2e.clean -p 7" -p e2e.clean
none "e2e.clean -d 3" -d e2e.clean
none "e2e.gen -d 100" -d e2e.gen
none "tok.encode --kv q8_0" --kv tok.encode
none "e2e.backend --cpu scalar" --cpu e2e.backend
none "e2e.gen --timing" --timing e2e.gen
none "e2e.gen --columns 3" --columns e2e.gen
none "load.total --no-quality" --no-quality load.total
none "--counts 5" --counts e2e
expect 2 "a model for a kernel" "$HONE" bench kern.norm.96 -m "$M"
says "… names both" '-m has no effect on kern.norm.96'
expect 0 "benchmark.sh adds no model there" env HONE="$HONE" ./benchmark.sh kern.norm.96 -f "$T/s" -t x -c y -- -r 2 --quick
expect 2 "of a length that the row replaces" "$HONE" bench e2e.gen -p 0 -m "$M"
says "… what it needs" '-p 0: e2e.gen needs at least 1 token$'
expect 2 "of fewer tokens than the row has" "$HONE" bench e2e.kvcache.on -n 16 -m "$M"
says "… how many" '-n 16: e2e.kvcache.on needs at least 17 tokens'
expect 2 "two models" "$HONE" bench -m "$M" -m "$T/zero.gguf"
says "… names both" "-m is given twice, with '.*' and with '.*zero.gguf'; give one of them"
expect 0 "what one of several uses" "$HONE" bench e2e.clean memory.forward -p 9 -n 2 -m "$M" -r 1 --warmup 0

# ---- the plain run is a row like the others
expect 0 "e2e among others" "$HONE" bench e2e e2e.clean -p 8 -n 8 -d 4 -r 1 -m "$M" --warmup 0 --json
says "its record in the suite" '"records":\[\{"schema":"hone.bench/1","id":"e2e","record".*"depth":4.*"id":"e2e.clean"' "$T/out"
expect 0 "without an id its record is the result" "$HONE" bench -p 8 -n 8 -r 1 -m "$M" --json
says "of the same schema" '^\{"schema":"hone.bench/1","id":"e2e","record"' "$T/out"
expect 0 "unchecked answers are said to be so, of any row" "$HONE" bench e2e.gen -p 8 -n 8 -r 1 -m "$M" --warmup 0 --no-quality --json
says "… in its record" '"valid":null,"invalid_reason":"quality not checked \(--no-quality\)"' "$T/out"

# ---- what is not there, and stops
expect 2 "no unfused path" "$HONE" bench e2e.fused.on -m "$M"
says "says why" 'not in this build: needs an unfused path'
expect 2 "no model" "$HONE" bench load.parse
expect 3 "a model that is not there" "$HONE" bench load.parse -m "$T/none.gguf"
"$HONE" bench e2e.gen -m "$M" -p 8 -n 8 -r 5000 --warmup 0 --json --file "$T/part" >"$T/out" 2>"$T/err" </dev/null &
parent=$!
await children_seen $parent "$T/child" 4 # each is a sample
kill -TERM $parent
wait $parent
rc=$?
check "stopped: exit code" "$rc" 6
says "stopped: what there was is recorded, with a note" '"id":"e2e.gen".*interrupted after [0-9]+ of 5000' "$T/part.jsonl"
finish
