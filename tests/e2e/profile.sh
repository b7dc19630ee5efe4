#!/bin/sh
# hone lab profile and hone lab memory: sums, files for other programs, exit codes.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME
if [ ! -f "$TINY" ]; then
    skip "profile" "$TINY is not here"
    finish
fi
small="-m $TINY -p 24 -n 6 -t 2"
# summed WHAT COMMAND…: as expect 0, but measured again, up to five times, while too much of the time is in no part:
# who else wants the processors takes them between two parts as well
summed() {
    _what=$1
    shift
    for _try in 1 2 3 4 5; do
        run "$@"
        grep -qE '"rest_ok": ?false' "$T/out" || break
    done
    if [ "$rc" -eq 0 ]; then ok "$_what"; else not_ok "$_what" "$T/out" "$T/err"; fi
    says "sums to the whole" '"rest_ok": ?true' "$T/out"
}
# number KEY [FILE]: the first number of that key
number() { sed -n 's/.*"'"$1"'": *\(-\{0,1\}[0-9.e+-]*\)[],}].*/\1/p' "${2:-$T/out}" | head -n 1; }

expect 0 "profile for people" "$HONE" lab profile $small --layers
says "both phases" '^prefill: 2 calls of 24 tokens on 2 threads' "$T/out"
says "an operation with its share" '^  ffn_gate_up +F16 +[0-9]+ +[0-9.]+ +[0-9.]+ % ' "$T/out"
says "the rest is shown" '^  \(rest\) +[0-9.]+ +[0-9.]+ %' "$T/out"
says "what looking costs" 'looking costs -?[0-9.]+ % \(95 %: .* 12 pairs\)' "$T/out"
says "the answers were compared" '^answers +the same bits' "$T/out"
says "no roof, and how to get one" '^roof +not known: .*hone lab peaks' "$T/out"
says "layers" '^  layer 0 ' "$T/out"
says "the memory ledger" '^  kv_cache +[0-9.]+ MB' "$T/out"

summed "profile as JSON, with files" "$HONE" lab profile $small -r 1 --json --trace "$T/trace.json" --folded "$T/folded" --no-memory
says "schema" '^\{"schema": ?"hone.profile/1"' "$T/out"
says "no share without a roof" '"roof_pct": ?null' "$T/out"
says "counters are numbers or have a reason" '"cycles": ?([0-9]|null, ?"cycles_missing": ?"[a-z])' "$T/out"
says "no ledger when not wanted" '"memory": ?null' "$T/out"
# the folded stacks are the whole time of both phases
whole=$(tr ',' '\n' <"$T/out" | sed -n 's/.*"whole_ms": *\([0-9.]*\).*/\1/p' | awk '{ s += $1 } END { print s }')
if awk -v whole="$whole" '{ s += $2 } END { s /= 1e6; exit !(whole > 0 && s > 0.999 * whole && s < 1.001 * whole) }' "$T/folded"; then
    ok "folded stacks sum to the whole"
else
    not_ok "folded stacks sum to the whole ($whole ms)" "$T/folded"
fi
says "a stack" '^hone;decode;layer_000;attention [0-9]+$' "$T/folded"
says "a trace" '^\{"displayTimeUnit":"ns",.*"traceEvents":\[' "$T/trace.json"
check=$(grep -c '"cat":"call"' "$T/trace.json")
[ "$check" -eq 7 ] && ok "a slice for each call" || not_ok "a slice for each call: $check of 7"
[ "$(tail -n 1 "$T/trace.json")" = "]}" ] && ok "the trace is complete" || not_ok "the trace is complete" "$T/trace.json"
expect 0 "decode alone, one thread, deep" "$HONE" lab profile -m "$TINY" -p 0 -n 3 -d 40 -t 1 --kv q8_0 --json --no-memory
says "no prefill" '"prefill": ?null' "$T/out"
expect 2 "nothing to run" "$HONE" lab profile -m "$TINY" -p 0 -n 0
expect 3 "no model" "$HONE" lab profile -m "$T/none.gguf"
expect 1 "a trace that cannot be written" "$HONE" lab profile $small --no-memory --trace "$T/folded/x"
expect 2 "no rounds" "$HONE" lab profile $small -r 0

# ---- a training ----
printf 'Lily had a blue dog.\n\nTom had a red cat.\n\nMia had a big fish.\n' >"$T/my.txt"
train="-m $TINY --train $T/my.txt --seq 32 --batch 1 -t 2"
expect 0 "profile of a training" "$HONE" lab profile $train -r 2 --layers
says "steps" '^training: 2 steps of [0-9]+ tokens on 2 threads, [0-9.]+ ms each' "$T/out"
says "its three parts" '^backward: [0-9.]+ ms a step' "$T/out"
says "a product forward" '^  ffn_down +F16 +4 ' "$T/out"
says "the optimizer" '^  adamw +1 ' "$T/out"
says "trained with the hook and without it, the same" '^answers +the same bits' "$T/out"
says "what it holds" '^memory: 5\.[0-9] MB base' "$T/out"
summed "… as JSON, with files" "$HONE" lab profile $train --targets all --recompute --accum 2 -r 6 --json --trace "$T/trace.json" --folded "$T/folded"
says "schema" '^\{"schema": ?"hone.profile/1"' "$T/out"
says "no phases of answers" '"step": ?\{' "$T/out"
if grep -q '"prefill"' "$T/out"; then not_ok "no prompt in it" "$T/out"; else ok "no prompt in it"; fi
# parts are the step: forward + backward + update, and the folded stacks
parts=$(tr ',{' '\n\n' <"$T/out" | sed -n 's/.*"whole_ms": *\([0-9.]*\).*/\1/p' | awk '{ v[NR] = $1 } END { d = v[2] + v[3] + v[4] - v[1]; print (NR == 4 && d * d < 1e-6 * v[1] * v[1]) ? v[1] : "no" }')
if awk -v whole="$parts" '{ s += $2 } END { s /= 1e6; exit !(whole > 0 && s > 0.999 * whole && s < 1.001 * whole) }' "$T/folded"; then
    ok "folded stacks sum to the steps"
else
    not_ok "folded stacks sum to the steps ($parts ms)" "$T/folded"
fi
says "a stack of the way back" '^hone;backward;layer_003;attention [0-9]+$' "$T/folded"
says "recomputed, it is the way back's" '^hone;backward;layer_000;ffn_gate [0-9]+$' "$T/folded"
says "a trace" '"name":"update"' "$T/trace.json"
cp "$T/out" "$T/train.json"
expect 0 "in the report" "$HONE" lab report "$T/train.json" --html "$T/train.html"
says "a flame graph forward" 'Flame graph of Forward' "$T/train.html"
says "and back" 'Flame graph of Backward' "$T/train.html"
expect 0 "… and as Markdown" "$HONE" lab report "$T/train.json" --md -
says "an operation of the way back" '^\| attention \|  \| [0-9.]+ \| [0-9.]+ % \| [0-9]+ \|' "$T/out"
expect 2 "a setting of answers" "$HONE" lab profile $train -p 8
says "… is said to have no effect" '--n-prompt has no effect on a training' "$T/err"
expect 2 "a setting of trainings" "$HONE" lab profile $small --bf16
expect 1 "no such data" "$HONE" lab profile -m "$TINY" --train "$T/none.txt"
says "… and what to do" 'try: --train with the name of a file' "$T/err"

# ---- memory ----
expect 0 "memory for people" "$HONE" lab memory -m "$TINY" -p 100 -n 4
says "parts" '^weights +5\.[0-9]+ +5\.[0-9]+ ' "$T/out"
expect 0 "memory as JSON" "$HONE" lab memory -m "$TINY" -p 300 -n 4 --json
says "schema" '^\{"schema": ?"hone.memory/1"' "$T/out"
if grep -q '"unknown_parts": *0' "$T/out"; then
    says "the sum is the peak within 3 %" '"rest_ok": ?true' "$T/out"
else
    skip "the sum is the peak within 3 %" "this system does not tell all parts"
fi
kv() { tr '{' '\n' <"$T/out" | sed -n 's/.*"part": *"kv_cache".*"mb": *\([0-9.]*\).*/\1/p'; }
few=$(kv)
run "$HONE" lab memory -m "$TINY" -p 900 -n 4 --json
many=$(kv)
if awk -v a="$few" -v b="$many" 'BEGIN { exit !(b > 1.5 * a) }'; then ok "a longer context has more cache"; else not_ok "a longer context has more cache: $few, $many"; fi
expect 3 "memory of no model" "$HONE" lab memory -m "$T/none.gguf"

finish
