#!/bin/sh
# hone lab and the kernels of hone bench: peaks measured, stored, read back by reports;
# rates above the roof are invalid; ids and patterns.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME

# ---- peaks ----
expect 0 "peaks --quick --json" "$HONE" lab peaks --quick --json -t 2
says "schema" '^\{"schema": ?"hone.peaks/1"' "$T/out"
for key in read int8 f32 dispatch barrier; do says "$key has points" '"'$key'": ?\{[^]]*"points": ?\[\{"threads": ?1' "$T/out"; done
says "quick ones are not stored" '"stored": ?false' "$T/out"
[ -e "$T/state" ] && not_ok "no state folder was made" || ok "no state folder was made"
file=$(sed -n 's/.*"file": *"\([^"]*\)".*/\1/p' "$T/out")
case $file in
"$T"/state/hone/peaks-*.json) ok "the place is below XDG_STATE_HOME" ;;
*) echo "# $file"; not_ok "the place is below XDG_STATE_HOME" ;;
esac
expect 0 "peaks --quick, for people" "$HONE" lab peaks --quick
says "reading is shown" '^read +1 thread .* GB/s' "$T/out"
expect 0 "one thread, plain C" "$HONE" lab peaks --quick -t 1 --cpu scalar
expect 2 "unknown level" "$HONE" lab peaks --cpu vax
expect 2 "unknown laboratory command" "$HONE" lab peeks
says "a near one is named" 'did you mean peaks'
expect 2 "no laboratory command" "$HONE" lab
expect 2 "no threads" "$HONE" lab peaks -t 0

# ---- the roof in reports: a measured file, made to say what this test needs ----
cores=$("$HONE" lab peaks --quick --json | sed -n 's/.*"cores": *\([0-9]*\).*/\1/p')
roof() { # roof FACTOR: stores peaks whose rates are multiplied
    mkdir -p "$T/state/hone"
    "$HONE" lab peaks --quick --json | sed -e 's/"quick": *true/"quick": false/' -e 's/"doubts": *"[^"]*"/"doubts": null/' \
        -e 's/"cpu_use": *[0-9][0-9.e+-]*/"cpu_use": 1/g' -e 's/"spread": *[0-9][0-9.e+-]*/"spread": 0.01/g' \
        -e 's/"cache_mb": *[0-9.]*/"cache_mb": 0/' \
        -e 's/"best": *[0-9.e+-]*/"best": '"$1"'/g' -e 's/"most": *[0-9.e+-]*/"most": '"$1"'/g' -e 's/"median": *[0-9.e+-]*/"median": '"$1"'/g' >"$file"
}
if [ -f "$TINY" ]; then
    small="-m $TINY -p 16 -n 8 -r 1 --no-quality"
    expect 0 "bench without peaks" "$HONE" bench $small
    says "no roof, and how to get one" '^roof +not known: .*hone lab peaks' "$T/out"
    expect 0 "bench --json without peaks" "$HONE" bench $small --json
    says "pct is null" '"pct": ?null' "$T/out"
    says "missing says why" '"missing": ?"[^"]*hone lab peaks"' "$T/out"
    roof 300
    expect 0 "lab peaks shows what is stored" "$HONE" lab peaks --json
    says "and that it is" '"stored": ?true' "$T/out"
    expect 0 "bench with a high roof" "$HONE" bench $small --json --file "$T/h"
    says "decode share" '"pct": ?[0-9.e-]+' "$T/out"
    says "prefill share" '"prefill_pct": ?[0-9.e-]+' "$T/out"
    says "the history says so" 'prefill [0-9]+ % of roof, gen [0-9]+ % of roof' "$T/h.md"
    expect 0 "what was written is read again" "$HONE" lab report "$T/h.jsonl" --md -
    says "all of it" '^\| h.jsonl \| 1 \| 1 \| 0 \| 0 \|$' "$T/out"
    expect 0 "bench for people" "$HONE" bench $small
    says "a column" '^decode tok/s .* [0-9]+ % ' "$T/out"
    roof 0.0001
    expect 1 "a rate above the roof is invalid" "$HONE" bench $small --json
    says "and why" '"invalid_reason": ?"[^"]*(reads|took)[^"]*on|but the machine reads' "$T/out"
    says "on stderr too" 'invalid result'
    echo '{"schema":"hone.peaks/1"' >"$file"
    expect 0 "bench with damaged peaks" "$HONE" bench $small
    says "names the damage" '^roof +not known: .*hone lab peaks --force' "$T/out"
    expect 0 "quick ones do not care" "$HONE" lab peaks --quick
    rm -rf "$T/state"
else
    skip "the roof in hone bench" "$TINY is not here"
fi

# ---- kernels ----
expect 0 "lab list" "$HONE" lab list
says "a shape of the default preset" '^  kern.gemv.Q4_K.8192x2048$' "$T/out"
expect 0 "lab list of another preset" "$HONE" lab list --preset qwen2.5-0.5b --json
says "its shape" '"id": ?"kern.gemm.Q5_0.4864x896"' "$T/out"
expect 2 "lab list of no preset" "$HONE" lab list --preset nothing
expect 0 "one kernel by name" "$HONE" bench kern.gemv.Q4_K.64x256 -r 2 --columns 1,3 --json
says "schema" '^\{"schema": ?"hone.suite/1".*"schema": ?"hone.bench/1"' "$T/out"
says "valid" '"valid": ?true' "$T/out"
says "no roof, and how to get one" '"missing": ?"[^"]*hone lab peaks' "$T/out"
expect 0 "for people, threads chosen, recorded" "$HONE" bench kern.gemm.F16.40x64 kern.norm.96 kern.attn.decode.4x2x16.70 -t 2 -r 2 --columns 9 --file "$T/k"
says "a row" '^kern.gemm.F16.40x64 +plain +9 +2 +[0-9.]+' "$T/out"
check=$(wc -l <"$T/k.jsonl" | tr -d ' ')
[ "$check" -ge 3 ] && ok "a record each" || not_ok "a record each: $check"
expect 0 "a pattern" "$HONE" bench 'kern.norm.*' -r 2 --quick
says "the preset's width" '^kern.norm.2048 ' "$T/out"
expect 2 "no such kernel" "$HONE" bench kern.sort.5
says "how to list them" 'hone lab list'
expect 2 "rows that the type cannot have" "$HONE" bench kern.gemv.Q4_K.64x100
says "says why" 'multiple of 256'
expect 2 "a pattern of nothing" "$HONE" bench 'kern.nothing.*'
expect 2 "columns of nothing" "$HONE" bench kern.norm.96 --columns 0
expect 2 "not an id" "$HONE" bench nonsense
roof 0.0001
expect 1 "a kernel above the roof is invalid" "$HONE" bench kern.gemv.Q8_0.64x256 -r 2 -t 1 --columns 1
says "in its row" 'INVALID' "$T/out"

finish
