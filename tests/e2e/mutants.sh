#!/bin/sh
# Wrong builds: each row of tests/mutants/table is noticed by its check, for its reason, with its exit code; and the
# program that holds them all is hone as long as none is chosen. sh tests/e2e/mutants.sh NAME tries one; K/N tries the
# K-th of N parts of the table, so that N can run side by side.
. tests/e2e/lib.sh

MUTANTS=${MUTANTS:-${B:-build/release}/tests/mutants/hone}
LORA=models/hone-tiny-rhyme.lora.gguf
if [ ! -x "$MUTANTS" ] || [ ! -f "$TINY" ]; then
    skip "wrong builds" "$MUTANTS or $TINY is not here"
    finish
fi
M=$T/small.gguf
small_model "$M"
cp "$M" "$T/packed.gguf"
echo '{"arch": "qwen2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_head_kv": 2, "n_ff": 96, "n_ctx_train": 4096, "n_vocab": 50000}' >"$T/wide.json"
expect 0 "a model of many tokens" "$MUTANTS" synth --config "$T/wide.json" --type Q8_0 -o "$T/wide.gguf"
echo '{"arch": "gemma3", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_head_kv": 2, "head_dim": 16, "n_ff": 96, "n_ctx_train": 2048, "n_vocab": 500, "window": 64}' >"$T/window.json"
expect 0 "a model with a window" "$MUTANTS" synth --config "$T/window.json" --type F32 -o "$T/window.gguf"
expect 0 "a packed copy" "$MUTANTS" pack -m "$T/packed.gguf"
expect 0 "the answers of a right build" "$MUTANTS" lab quality hash -m "$M" --draw 5 --save "$T/good.json"
expect 0 "are its own again" "$MUTANTS" lab quality hash -m "$M" --against "$T/good.json"
expect 0 "those of its packed copy, from plain weights, too, are the same" "$MUTANTS" lab quality hash -m "$T/packed.gguf" --against "$T/good.json"
run env HONE_MUTANT=pieces "$MUTANTS" lab quality hash -m "$M" --against "$T/good.json"
[ "$rc" -eq 0 ] && ok "the pieces of a block, put together, are the block" || not_ok "the pieces of a block, put together, are the block" "$T/out"
expect 0 "a measurement of a right build" "$MUTANTS" bench -m "$M" -p 32 -n 16 -r 2 --quality quick
level=$(sed -n 's/^config .* threads*, \([a-z0-9_]*\),.*/\1/p' "$T/out") # the best of this machine
name="a measurement of a right build where the kernel's counters take 20 ms to read"
run env HONE_MUTANT=slow-counters "$MUTANTS" bench -m "$M" -p 4 -n 4 -r 1 --warmup 0 --no-quality
[ "$rc" -eq 0 ] && ok "$name" || not_ok "$name" "$T/err"
small="-p 32 -n 16 --quality quick"
save() { expect 0 "a baseline of a right build: $1" "$MUTANTS" lab baseline save "$@" --dir "$T" -m "$M" -r 6 --quality quick; }
save plain -p 32 -n 16
save gen e2e.gen --bench-arg=--n-prompt=16 --bench-arg=--n-gen=16

# The model $of with the options $with, of a right build, which is asked once, and of this one.
of_itself() {
    kept=$T/kept-$(echo "$of $with" | cksum | tr ' ' -).json
    [ -f "$kept" ] || env -u HONE_MUTANT "$MUTANTS" lab quality hash -m "$of" $with --draw 5 --save "$kept" >"$T/out"
    run "$MUTANTS" lab quality hash -m "$of" $with --against "$kept" --draw 5
}

# What is drawn is the same each time, so that a row's reason is: another draw may see it in another way first.
one() { # NAME CHECK [OPTION…], of the model $of: $rc, $T/out, $T/err
    HONE_MUTANT=$1
    HONE_MUTANT_FILE=$T/kept
    export HONE_MUTANT HONE_MUTANT_FILE
    rm -f "$T/kept"
    way=$2
    shift 2
    case $way in
    hash)
        with=
        case "$*" in *--lora* | *--kv*) with=$* ;; esac
        case "$*" in
        *PACKED*) run "$MUTANTS" lab quality hash -m "$T/packed.gguf" --against "$T/good.json" --draw 5 ;;
        *CHAT*) of=models/hone-chat.gguf ;;
        *WIDE*) of=$T/wide.gguf ;;
        *WINDOW*) of=$T/window.gguf ;;
        esac
        case "$of $*" in
        *PACKED*) ;;
        "$M "*--kv*) of_itself ;;
        *--draw*) run "$MUTANTS" lab quality hash -m "$M" --against "$T/good.json" "$@" ;;
        "$M "*) run "$MUTANTS" lab quality hash -m "$M" --against "$T/good.json" --draw 5 "$@" ;;
        *) of_itself ;;
        esac
        ;;
    bench)
        case "$1" in
        kern.* | tensor.*) run "$MUTANTS" bench "$@" -r 2 --warmup 0 ;;
        layer.* | tok.* | memory.* | load.* | sample.* | train.* | serve.*) run "$MUTANTS" bench "$@" -m "$of" -r 2 --warmup 0 ;;
        e2e.*)
            size=
            case "$*" in *-p*) ;; e2e.gen*) size="-p 16 -n 16" ;; esac
            case "$*" in *quick*) ;; e2e.gen* | e2e.cold*) size="$size --draw 2" ;; esac
            run "$MUTANTS" bench "$@" -m "$of" -r 2 --warmup 0 $size
            ;;
        -p) run "$MUTANTS" bench -m "$of" -r 2 --quality quick "$@" ;;
        *) run "$MUTANTS" bench -m "$of" -r 2 $small "$@" ;;
        esac
        ;;
    ab | no-gain)
        name=$HONE_MUTANT
        unset HONE_MUTANT
        size=$small
        case "$1" in train.* | tok.* | layer.*) size= ;; serve.*) size="-p 16 -n 8" ;; esac
        model="-m $of"
        case "$1" in kern.* | tensor.*) size= && model= ;; esac
        run "$MUTANTS" lab ab this "env:HONE_MUTANT=$name" $model $size --rounds 8 --runs 1 --no-store "$@"
        ;;
    memory) run "$MUTANTS" lab memory -m "$of" "$@" ;;
    gate-ab)
        name=$HONE_MUTANT
        unset HONE_MUTANT
        run "$MUTANTS" lab gate --ab this --head "env:HONE_MUTANT=$name" -m "$of" --quality quick "$@"
        ;;
    gate) run "$MUTANTS" lab gate --baseline "${1:-plain}" --dir "$T" -m "$M" -r 6 --accept-environment ;;
    esac
    unset HONE_MUTANT HONE_MUTANT_FILE
}

# Too much CPU time is seen only where a thread gets a CPU to itself, and hidden ones need another.
busy() { "$MUTANTS" bench -m "$of" -r 1 -p 400 -n 600 -t "$1" --no-quality | grep -q 'the threads had'; }

only=${1:-} part=1 parts=1
case $only in [0-9]*/[0-9]*) part=${only%/*} parts=${only#*/} only= ;; esac

# What is no row of the table: of the first part.
beside_the_table() {
    # what is not wrong, and yet to be seen
    run env HONE_MUTANT=token-allocates "$MUTANTS" bench -m "$M" -r 2 $small
    counted=$("$MUTANTS" bench -m "$M" -r 2 $small | sed -n 's/^allocs *//p')
    case $counted in
    not*) skip "a token that allocates" "$counted" ;;
    *)
        says "a token that allocates is told" '^allocs +1 \([0-9]+ B\) a token, 0 a prompt$' "$T/out"
        [ "$counted" = "0 a token, 0 a prompt" ] && ok "and one that does not" || not_ok "and one that does not: $counted"
        ;;
    esac

    # memory that counts as nobody's, or that is gone before anybody looks, is told
    for name in memory-shared memory-spike; do
        run env HONE_MUTANT=$name "$MUTANTS" bench -m "$M" -r 1 -p 32 -n 16 --no-quality --json
        says "$name: 67 MB, or nearly, are told" '"peak_anon_mb": ?(6[0-9]|[7-9][0-9]|[0-9]{3})' "$T/out"
    done

    # a side that has pages read from disk in each of its runs, and nobody else: its rounds count all the same
    run env HONE_MUTANT_FILE="$T/pages" "$MUTANTS" lab ab this env:HONE_MUTANT=pages-read -m "$M" $small --rounds 8 --runs 1 --no-store
    if grep -q 'thrown away' "$T/out"; then
        says "rounds that only one side disturbs" "only b's processes had pages read from disk in [0-9]+ rounds" "$T/out"
    else
        skip "rounds that only one side disturbs" "no page is read from disk here"
    fi

    # stopped in the second round: what was measured until then has been compared, or is not called valid
    run env HONE_MUTANT=last-of-sixteen HONE_MUTANT_STOP=7 "$MUTANTS" bench e2e.scale.batch -m "$M" -p 16 -n 8 -r 3 --warmup 0 --no-quality --json
    says "stopped: the sequences of the first round were compared" 'among the others than alone' "$T/out"
    run env HONE_MUTANT_STOP=3 "$MUTANTS" bench e2e.gen -m "$M" -p 16 -n 8 -r 3 --warmup 0 --quality quick --json
    says "stopped: an answer that was not computed again is not called valid" '"valid": ?null' "$T/out"
    grep -qE '"valid": ?true' "$T/out" && not_ok "stopped: and no record of it is" "$T/out" || ok "stopped: and no record of it is"
}
[ "$part" -gt 1 ] || beside_the_table

n=0 tried=0
while IFS='|' read -r name check words; do
    name=$(echo "$name" | tr -d ' ')
    case $name in '' | '#'*) continue ;; esac
    n=$((n + 1))
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    [ $((n % parts)) -eq $((part % parts)) ] || continue
    words=$(echo "$words" | sed 's/^ *//; s/ *$//')
    # -m TINY: where a clock is looked at, or an adapter is wanted, the bundled model, whose calls take a clock's time
    of=$M
    case $check in *'-m TINY'*) of=$TINY ;; esac
    case $check in *ab*'-m CHAT'*) of=models/hone-chat.gguf && check=$(echo "$check" | sed 's| -m CHAT||') ;; esac
    case $check in ab*'-m PACKED'* | ' ab'*'-m PACKED'*) of=$T/packed.gguf && check=$(echo "$check" | sed 's| -m PACKED||') ;; esac
    check=$(echo "$check" | sed "s|LORA|$LORA|g; s| -m TINY||")
    tried=$((tried + 1))
    case $name in raises-priority*)
        [ "$(nice -n -5 nice 2>/dev/null)" != "$(nice)" ] || { skip "$name" "nobody here may raise a priority" && continue; }
        ;;
    esac
    one "$name" $check
    # what is seen of CPU time alone is seen while two CPUs are free: four times more, before it is said that nobody did
    for again in 1 2 3 4; do
        case "$name $rc" in
        hidden-thread\ 0 | hidden-thread\ 1[01] | both-clocks\ 0) one "$name" $check ;; # which leaves the row's own words in $check
        *) break ;;
        esac
    done
    case "$name $rc" in
    hidden-thread\ 0 | hidden-thread\ 1[01]) if [ "$(nproc)" -lt 2 ] || busy 2; then skip "$name" "no two CPUs are free" && continue; fi ;;
    both-clocks\ 0) if busy 1; then skip "$name" "no CPU is free" && continue; fi ;;
    esac
    want=12
    case $check in *bench* | *memory*) want=1 ;; esac
    case $name in no-room*) want=11 ;; restore-wide) want=3 ;; run-slow) want=10 ;; esac
    case "$name $level" in avx2-deep-one\ avx512) words=' avx2 than' ;; esac
    cat "$T/err" >>"$T/out"
    case $check in *no-gain*)
        if grep -qE "^verdict +[A-Z]|env:HONE_MUTANT=$name: the result is not valid|side b gives broken output" "$T/out" && ! grep -q IMPROVED "$T/out"; then ok "$name: gains nothing"; else not_ok "$name: gains nothing" "$T/out"; fi
        continue
        ;;
    esac
    bad=$n_bad
    if [ "$rc" -ne $want ]; then
        echo "# exit $rc, expected $want"
        not_ok "$name: noticed by$check" "$T/out"
    elif ! grep -qE -- "${words:-.}" "$T/out"; then
        echo "# expected: $words"
        not_ok "$name: for its reason" "$T/out"
    elif grep -qE '^verdict +(IMPROVED|SAME|valid|improved|same)' "$T/out"; then
        not_ok "$name: is not called good" "$T/out"
    else
        ok "$name: noticed by$check"
    fi
    [ "$bad" -eq "$n_bad" ] || grep -E 'INVALID|not valid|^verdict' "$T/out" | head -n 4 | sed 's/^/# said: /'
done <tests/mutants/table
if [ -n "$only" ]; then
    [ "$tried" -gt 0 ] || not_ok "$only: no row of tests/mutants/table"
else
    [ "$n" -ge 40 ] && [ "$tried" -ge $((n / parts)) ] && ok "$tried wrong builds of $n" || not_ok "$tried wrong builds of $n"
fi
finish
