#!/bin/sh
# The speed net, hone lab gate kern: a program passes beside itself, a kernel that takes three times as long at one width
# (tests/mutants, slow-width) is found at that width and nowhere else, other bits are told before any speed.
. tests/e2e/lib.sh

MUTANTS=${MUTANTS:-${B:-build/release}/tests/mutants/hone}
S="--preset qwen2.5-coder-0.5b -t 1 --margin 0.5"

# gate RC WHAT ARG…: a busy machine may leave it open, twice; never more
gate() {
    want=$1 what=$2
    shift 2
    for try in 1 2 3; do
        run "$HONE" lab gate "$@"
        [ "$rc" -eq 11 ] || break
    done
    if [ "$rc" -eq "$want" ]; then ok "$what"; else not_ok "$what: exit $rc, expected $want" "$T/out" "$T/err"; fi
}

gate 0 "a program passes beside itself, and says so in JSON" --ab this kern.gemm $S --json
says "which has what was seen" '"kind":"net".*"points":[0-9]{2,}' "$T/out"
if [ -x "$MUTANTS" ]; then
    gate 10 "three times slower at one width" --ab this --head "$MUTANTS,env:HONE_MUTANT=slow-width" kern.gemv $S
    says "is found there" '^Q8_0\.896\.c1\.t1\.plain .* REGRESSED' "$T/out"
    if grep REGRESSED "$T/out" | grep -qvE '^Q8_0\.896\.c[14]\.t1\.plain |proven'; then
        not_ok "and nowhere else" "$T/out"
    else ok "and nowhere else"; fi
    gate 0 "the other way round it is no regression" --ab "$MUTANTS,env:HONE_MUTANT=slow-width" kern.gemv $S
    says "and the report says of how many products" '^points +[0-9]{2,} products on both sides, the same bits: yes' "$T/out"
    gate 12 "other bits" --ab this --head "$MUTANTS,env:HONE_MUTANT=wrong-width" kern.gemv $S
    says "are named" 'products give other bits.*Q8_0\.896\.' "$T/err"
else skip "a slow kernel" "$MUTANTS is not here"; fi

# what it does not read is refused
expect 2 "nothing to compare with" "$HONE" lab gate kern
says "names what is missing" 'expected --ab REF'
expect 2 "a model" "$HONE" lab gate --ab this kern -m x.gguf
says "is not for it" '(--model changes nothing|cannot open)'
expect 2 "rounds" "$HONE" lab gate --ab this kern --rounds 8
says "are its own" 'rounds changes nothing here'
expect 2 "another id" "$HONE" lab gate --ab this kern kern.gemv.Q8_0.64x256
says "stands apart" 'kern.gemv.Q8_0.64x256 beside the net'
expect 2 "a preset" "$HONE" lab gate --ab this --preset nothing kern
says "that there is not" "unknown preset 'nothing'"
expect 2 "a preset without it" "$HONE" lab gate --ab this --preset llama-3-8b kern.gemv.Q8_0.64x256
says "changes nothing" 'preset changes nothing here'
expect 2 "settings of a model" "$HONE" lab gate --ab this,kv=f32 kern $S
says "say nothing of products" 'kv=.* says nothing of single products'
expect 2 "a point that is none" "$HONE" bench _net 1,Q4_K.100.c1.t1.plain 1
says "is named" "'Q4_K.100.c1.t1.plain' is no point"
finish
