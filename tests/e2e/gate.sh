#!/bin/sh
# hone lab baseline, gate and history: every exit code is provoked. 12 by corrupted model files, by libraries
# that spoil the answers, by another configuration; 13 by taking a core away; 10 by slower kernels.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME
unset HONE_CPU HONE_PACKED
B="--dir $T/baselines"
gate() { # gate RC WHAT ARG…
    _rc=$1 _w=$2
    shift 2
    expect "$_rc" "$_w" "$HONE" lab gate "$@"
}
# as gate; a machine that is too disturbed to tell (11) is asked up to five times
sure() {
    _rc=$1 _w=$2
    shift 2
    for _try in 1 2 3 4; do
        run "$HONE" lab gate "$@"
        [ "$rc" -eq 11 ] || break
    done
    if [ "$rc" -eq "$_rc" ]; then ok "$_w"; else gate "$_rc" "$_w" "$@"; fi
}
untimed() { says "$1: nothing was timed" '"timed": ?false' "$T/out"; }

# ---- words ----
expect 2 "no command" "$HONE" lab baseline
expect 2 "no such command" "$HONE" lab baseline sace x
says "a near one is named" 'did you mean save'
expect 2 "save needs a name" "$HONE" lab baseline save
for name in ../x a/b .hidden '' 'a b' "$(printf 'x%.0s' $(seq 65))"; do expect 2 "not a name: '$name'" "$HONE" lab baseline save "$name" $B -m x.gguf; done
expect 1 "rm of what is not there" "$HONE" lab baseline rm gone $B
says "names it" 'gone'
expect 0 "no baselines yet" "$HONE" lab baseline list $B
says "says how to make one" 'lab baseline save' "$T/out"
gate 1 "a gate without its baseline" --baseline gone $B
says "says how to make one" 'lab baseline save'
gate 2 "a gate against nothing"
gate 2 "ids belong to --ab" --baseline gone kern.norm.96
for o in "-p 9" "-n 3" "-d 1" "-t 1" "--rounds 9" "--seed 1" "--kv f32" "--bench-arg=--chunk=1"; do
    gate 2 "a baseline is measured as it was saved: $o" --baseline gone $B $o
    says "says so" 'changes nothing here: a baseline is measured as it was saved'
done
gate 2 "samples with --ab" --ab this -r 7
gate 2 "another machine, but no baseline" --ab this --accept-environment
expect 2 "compare with a length" "$HONE" lab baseline compare gone $B -p 9
expect 2 "compare --from with samples" "$HONE" lab baseline compare gone $B --from "$T/h" -r 9
expect 2 "save --from with a length" "$HONE" lab baseline save gone $B -m x.gguf --from "$T/h" -n 9
expect 2 "save with a margin" "$HONE" lab baseline save gone $B -m x.gguf --margin 0.2
expect 2 "list with a model" "$HONE" lab baseline list $B -m x.gguf

if [ ! -f "$TINY" ]; then
    skip "baselines and gates of a model" "$TINY is not here"
    finish
fi
cp "$TINY" "$T/m.gguf"
M=$T/m.gguf
small="-p 8 -n 8 --quality quick" # of the full hash, tests/e2e/mutants.sh is the test

# ---- save, list, compare, rm ----
expect 0 "save" "$HONE" lab baseline save one -m "$M" $small -r 10 $B
says "the whole file's hash" "SHA-256 $(sha256sum "$M" | cut -c 1-64)" "$T/out"
expect 1 "a name is not taken twice" "$HONE" lab baseline save one -m "$M" $small $B
says "says what to do" '--force'
expect 0 "list" "$HONE" lab baseline list $B
says "a row" '^one +20.* here +m.gguf +q2q?-[0-9a-f-]* +10 samples +e2e' "$T/out"
expect 0 "list --json" "$HONE" lab baseline list $B --json
says "schema" '^\{"schema": ?"hone.baseline.list/1"' "$T/out"
expect 0 "compare" "$HONE" lab baseline compare one -r 6 $B
says "warns" 'measured at another time' "$T/out"
says "a row" '^decode_tok_s .* (SAME|IMPROVED|REGRESSED|INCONCLUSIVE)' "$T/out"
expect 2 "compare with a metric that is none" "$HONE" lab baseline compare one $B -r 6 --metrics decode_tok_s,beauty
expect 0 "a history" "$HONE" bench -m "$M" $small -r 6 --file "$T/h"
expect 0 "save --from" "$HONE" lab baseline save two -m "$M" --from "$T/h" $B
says "the same quality" "$(sed -n 's/.*"quality": *"\([^"]*\)".*/\1/p' "$T/baselines/one.json" | head -n 1)" "$T/out"
expect 0 "compare --from measures nothing" "$HONE" lab baseline compare one --from "$T/h" $B
sed 's/"left_here": *\[[^]]*\]/"left_here":["snapshots: no memory for one"]/' "$T/h.jsonl" >"$T/less.jsonl"
expect 0 "compare with what was proved on fewer ways" "$HONE" lab baseline compare one --from "$T/less" $B
says "nothing changed, and that is open" '^quality  OPEN: the same quality hash, proved on fewer ways: left out: snapshots' "$T/out"
sed 's/"n_prompt": *[0-9]*/"n_prompt":99/' "$T/h.jsonl" >"$T/h99.jsonl"
run "$HONE" lab baseline compare one --from "$T/h99" $B
says "why a row has nothing beside it" 'not measured now: n_prompt is [0-9]+, there 99' "$T/out"
expect 12 "records of another file" "$HONE" lab baseline save three -m tests/fuzz/corpus/vocab/spm.gguf --from "$T/h" $B
sed 's/"median": *\([0-9]\)/"median":9\1/' "$T/baselines/two.json" >"$T/baselines/edited.json"
gate 1 "a baseline changed by hand" --baseline edited $B
says "says so" 'changed by hand'
head -c 700 "$T/baselines/two.json" >"$T/baselines/cut.json"
gate 1 "a baseline cut short" --baseline cut $B
expect 1 "list goes on behind them" "$HONE" lab baseline list $B
says "the good one is listed" '^two ' "$T/out"
expect 0 "rm" "$HONE" lab baseline rm edited cut two $B
says "names what is gone" 'removed .*edited.json' "$T/out"
[ "$(ls "$T/baselines")" = one.json ] && ok "the files are gone" || not_ok "the files are gone"

# ---- 0, 11, 10 ----
gate 0 "memory is as it was" --baseline one $B --metrics peak_anon_mb --json
says "timed" '"timed": ?true' "$T/out"
says "passed" '"verdict": ?"same"' "$T/out"
# a baseline whose own samples lie a factor of ten thousand apart: no machine can tell
awk '{
    at = index($0, "\"samples\":")
    out = substr($0, 1, at - 1)
    rest = substr($0, at)
    while ((i = match(rest, /"decode_tok_s": *[0-9.e+-]+/)) > 0) {
        n++
        out = out substr(rest, 1, i - 1) "\"decode_tok_s\":" (n % 2 ? 90 : 900000)
        rest = substr(rest, i + RLENGTH)
    }
    print out rest
}' "$T/h.jsonl" >"$T/wide.jsonl"
expect 0 "a history without agreement" "$HONE" lab baseline save wide -m "$M" --from "$T/wide" $B
gate 11 "against it: open" --baseline wide $B --metrics decode_tok_s -r 6 --file "$T/archive"
says "three looks" 'several looks' "$T/out"
[ "$(wc -l <"$T/archive.jsonl")" -ge 3 ] && ok "what was measured is archived" || not_ok "what was measured is archived"
if grep -q '"cpu": *"scalar"' "$T/baselines/one.json"; then
    skip "10" "there are no kernels slower than this machine's"
else
    HONE_CPU=scalar
    export HONE_CPU
    sure 10 "slower kernels" --baseline one $B --metrics prefill_tok_s,decode_tok_s
    unset HONE_CPU
    says "which metric" '^(prefill|decode)_tok_s .* REGRESSED' "$T/out"
    says "and which kernels" 'cpu was [a-z0-9]*, is scalar' "$T/out"
    sure 10 "slower kernels, interleaved" --ab this --head cpu=scalar -m "$M" $small --rounds 8 --runs 1 --json
    says "verdict" '"verdict": ?"regressed"' "$T/out"
    sure 0 "faster kernels, interleaved" --ab cpu=scalar -m "$M" $small --rounds 8 --runs 1
fi

# an interruption is 6, and what was measured before is kept
"$HONE" lab gate --baseline one $B -r 5000 --file "$T/kept" >"$T/out" 2>"$T/err" &
pid=$!
await test -s "$T/kept.jsonl"
kill -TERM $pid
wait $pid
rc=$?
[ $rc -eq 6 ] && ok "an interruption is 6" || { echo "# exit $rc"; not_ok "an interruption is 6" "$T/err"; }
grep -q '"decode_tok_s"' "$T/kept.jsonl" && ok "what was measured is kept" || not_ok "what was measured is kept"
expect 0 "and is a history" "$HONE" lab history "$T/kept" --metric decode_tok_s

# benches without a model have no answers to compare
expect 0 "save without a model" "$HONE" lab baseline save norm kern.norm.96 tensor.elementwise -r 6 $B
run "$HONE" lab gate --baseline norm $B -r 6 --margin 0.9 --json
case $rc in
0 | 10 | 11) ok "a gate of kernels gives a verdict ($rc)" ;;
*) not_ok "a gate of kernels: $rc" "$T/out" "$T/err" ;;
esac
says "rows of each" '"id": ?"tensor.elementwise"' "$T/out"
expect 0 "rm" "$HONE" lab baseline rm norm $B

# ---- 13 ----
if command -v taskset >/dev/null 2>&1 && [ "$(nproc)" -gt 1 ]; then
    expect 13 "another number of cores" taskset -c "$(taskset -cp $$ | sed 's/.*[: ]\([0-9]*\)[-,].*/\1/')" "$HONE" lab gate --baseline one $B --json
    untimed "13"
    says "what differs" 'cores: [0-9]+ → 1'
    expect 0 "accepted" taskset -c "$(taskset -cp $$ | sed 's/.*[: ]\([0-9]*\)[-,].*/\1/')" "$HONE" lab gate --baseline one $B --accept-environment --metrics hwm_mb --margin 0.9 -r 6
    says "and said" 'another machine' "$T/out"
else
    skip "13" "no taskset, or one core"
fi

# ---- 12: other bytes ----
size=$(wc -c <"$M")
i=0
# the first and last byte of the tensors, rows of the embedding, and places in between
bytes=$("$HONE" inspect "$TINY" | sed -n 's/^tensor bytes  *\([0-9]*\).*/\1/p')
first=$((size - bytes))
for at in $first $((first + 13500)) $((first + 350000)) $((first + 786431)) 1234567 3000001 4900000 $((size - 1036)) $((size - 1)); do
    i=$((i + 1))
    cp "$TINY" "$T/bad.gguf"
    printf "\\$(printf %03o $(($(od -An -tu1 -j $at -N 1 "$TINY") ^ 1)))" | dd of="$T/bad.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null
    [ "$(wc -c <"$T/bad.gguf")" -eq "$size" ] || not_ok "the corrupted copy"
    gate 12 "one bit at $at" --baseline one $B -m "$T/bad.gguf" --json
    untimed "one bit at $at"
done
says "says what" 'same size, other bytes'
head -c $((size - 32)) "$TINY" >"$T/bad.gguf"
gate 12 "cut short" --baseline one $B -m "$T/bad.gguf" --allow-different
gate 12 "accept-quality is not for other files" --baseline one $B -m tests/fuzz/corpus/vocab/spm.gguf --allow-different
gate 3 "no file" --baseline one $B -m "$T/none.gguf"
cp "$TINY" "$T/copy.gguf"
gate 0 "the same bytes elsewhere pass" --baseline one $B -m "$T/copy.gguf" --metrics peak_anon_mb

# packed weights are other bytes: they must be the model's
expect 0 "pack" "$HONE" pack -m "$T/copy.gguf"
gate 0 "packed" --baseline one $B -m "$T/copy.gguf" --metrics peak_anon_mb
mid=$(($(wc -c <"$T/copy.gguf.hpack") * 2 / 3))
printf "\\$(printf %03o $(($(od -An -tu1 -j $mid -N 1 "$T/copy.gguf.hpack") ^ 1)))" | dd of="$T/copy.gguf.hpack" bs=1 seek=$mid conv=notrunc 2>/dev/null
run "$HONE" lab gate --baseline one $B -m "$T/copy.gguf" --metrics peak_anon_mb
says "one bit of the packed file: it is not used, and that is said" 'hpack: damaged: .*it is not used'

# ---- 12: other answers ----
gate 12 "another cache type answers otherwise" --ab this --head kv=q8_0 -m "$M" $small --json
untimed "another cache type"
sure 0 "unless accepted" --ab cpu=scalar --head kv=q8_0 -m "$M" $small --rounds 8 --runs 1 --allow-different
if ! ${CC:-cc} -shared -fPIC -O1 -o "$T/evil.so" tests/e2e/gate_preload.c -ldl 2>"$T/err"; then
    skip "preloaded libraries" "no compiler for tests/e2e/gate_preload.c"
else
    EVIL_FROM=832928 EVIL_TO=5559712
    export EVIL_FROM EVIL_TO
    evil() { # evil HOW RC ARG…
        _how=$1 _code=$2
        shift 2
        expect "$_code" "preloaded: $_how $*" env EVIL="$_how" LD_PRELOAD="$T/evil.so" "$HONE" lab gate --baseline one $B "$@"
    }
    evil nothing 0 --metrics peak_anon_mb --margin 0.5
    for how in zero constant nan bit maps; do
        evil $how 12 --json
        untimed "$how"
        cp "$T/err" "$T/$how"
    done
    says "zeros are seen" 'broken output' "$T/zero"
    says "NaN is seen" 'broken output.*(NaN|not a finite|infinite)' "$T/nan"
    says "one token for ever is seen" 'broken output' "$T/constant"
    says "one bit is seen" 'quality hash' "$T/bit"
    says "what is mapped is what is hashed" 'SHA-256' "$T/maps"
    for how in zero constant nan; do evil $how 12 --allow-different; done
    evil timed 12 --json
    says "a library that waits for the clock is seen" 'invalid|other tokens'
fi

# ---- the recipe ----
awk '/^```sh/ { n++; next } /^```/ { n2++; inside = 0 } n == 1 && n2 < 1' docs/CI.md >"$T/ci-gate.sh"
[ "$(wc -l <"$T/ci-gate.sh")" -gt 15 ] && sh -n "$T/ci-gate.sh" 2>"$T/err" && ok "the recipe of docs/CI.md is a shell script" || not_ok "the recipe of docs/CI.md is a shell script" "$T/err" "$T/ci-gate.sh"
sh "$T/ci-gate.sh" >"$T/out" 2>"$T/err" && not_ok "the recipe wants a base" || says "the recipe wants a base" 'usage: ci-gate.sh BASE'

# ---- history ----
expect 1 "no history" "$HONE" lab history "$T/none"
awk 'BEGIN { srand(7); for (i = 0; i < 40; i++) {
    v = (i < 25 ? 100 : 88) * (1 + 0.01 * (rand() - 0.5));
    printf "{\"schema\":\"hone.bench/1\",\"id\":\"tok.encode\",\"record\":\"r%d\",\"ts\":\"2026-01-%02dT00:%02d:00Z\",\"valid\":true,\"title\":\"t\",\"change\":\"c%d\",\"unit\":\"MB/s\",\"better\":\"higher\",\"git\":{\"commit\":\"abc%d\",\"dirty\":false},\"config\":{\"threads\":1},\"env\":{\"hash\":\"e\"},\"model\":null,\"samples\":[%f],\"stats\":{\"n\":1,\"median\":%f,\"ci95\":null}}\n", i, 1 + i / 4, i % 4, i, i, v, v } 
    print "{\"cut" }' >"$T/steps.jsonl"
expect 0 "history" "$HONE" lab history "$T/steps"
says "the broken line is counted" '1 of 41 lines skipped'
says "the step" 'WORSE +2026-01-07T00:01 abc25 .*\(-1[12]\.[0-9] %\)' "$T/out"
says "and nothing else" '^1 series, 1 change$' "$T/out"
expect 0 "history --json" "$HONE" lab history "$T/steps" --json
says "schema" '^\{"schema": ?"hone.history/1"' "$T/out"
says "place" '"at": ?25' "$T/out"
expect 0 "history of a real run" "$HONE" lab history "$T/h" --metric decode_tok_s
says "a line" '^e2e decode_tok_s +m.gguf' "$T/out"

finish
