#!/bin/sh
# hone pack as its users run it: written, found, used, switched off, verified, refused; the
# same bytes of logits with and without; nothing left behind by what fails.
. tests/e2e/lib.sh

field() { # field NAME FILE: the value of a flat JSON field
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1
}
poke() { # poke FILE OFFSET: flips the highest bit of a byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 128)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
M=$T/m.gguf
P=$M.hpack
ids=1,299,17,45,200,3,3,78,5,120,64,9,250,31,2,8,90,111,222,33

for pair in llama:Q4_K_M llama:Q5_K_M qwen2:Q8_0 qwen2:Q4_0 qwen3:F16 qwen3:Q6_K llama:BF16; do
    expect 0 "synth $pair" "$HONE" synth --config "tests/cross/${pair%:*}.json" --type "${pair#*:}" --seed 5 -o "$M"
    HONE_CPU=scalar run "$HONE" logits -m "$M" --ids $ids --all --packed off
    cp "$T/out" "$T/want"
    rm -f "$P"
    expect 0 "$pair: pack" "$HONE" pack -m "$M"
    n=0
    for cpu in scalar avx2 avx_vnni avx512; do
        run env HONE_CPU=$cpu "$HONE" env --json
        [ "$(field cpu "$T/out")" = $cpu ] || continue
        for t in 1 2 3; do
            for chunk in 1 7 64; do
                run env HONE_CPU=$cpu "$HONE" logits -m "$M" --ids $ids --all -t $t --chunk $chunk
                n=$((n + 1))
                if [ "$rc" -eq 0 ] && [ ! -s "$T/err" ] && cmp -s "$T/out" "$T/want"; then continue; fi
                not_ok "$pair: packed, $cpu, $t threads, chunk $chunk" "$T/err"
            done
        done
    done
    if [ $n -ge 9 ]; then ok "$pair: $n runs, packed, equal plain"; else not_ok "$pair: $n runs"; fi
done

# which is used is said
expect 0 "run, packed" "$HONE" run -m "$M" --ids 1,2,3 -n 4 --temp 0 --json
if [ "$(field weights "$T/out")" = packed ]; then ok "run --json says packed"; else not_ok "run --json says packed" "$T/out"; fi
expect 0 "run -v" "$HONE" run -m "$M" --ids 1,2,3 -n 4 --temp 0 -v
says "the load line says packed" 'packed weights'
expect 0 "run --packed off" "$HONE" run -m "$M" --ids 1,2,3 -n 4 --temp 0 -v --packed off
says "the load line says plain, and why" 'plain weights \(switched off\)'
HONE_PACKED=off run "$HONE" run -m "$M" --ids 1,2,3 -n 4 --temp 0 --json
if [ "$(field weights "$T/out")" = plain ]; then ok "HONE_PACKED=off"; else not_ok "HONE_PACKED=off" "$T/out"; fi
expect 0 "bench" "$HONE" bench -m "$M" -p 8 -n 4 -r 1 --json
if [ "$(field weights "$T/out")" = packed ]; then ok "bench says packed"; else not_ok "bench says packed" "$T/out"; fi
hash=$(field quality "$T/out")
expect 0 "bench --packed off" "$HONE" bench -m "$M" -p 8 -n 4 -r 1 --json --packed off
if [ "$(field weights "$T/out")" = plain ] && [ "$(field quality "$T/out")" = "$hash" ]; then ok "bench says plain; the quality is the same"; else not_ok "bench says plain" "$T/out"; fi
run "$HONE" lab ab packed=off this -m "$M" -p 8 -n 4 --rounds 8 --runs 1 --no-store
says "a comparison of two layouts says so" 'weights: a reads them plain, b packed' "$T/out"
expect 0 "inspect the model" "$HONE" inspect "$M"
says "inspect names the packed file" '^packed file .*hpack: ready' "$T/out"
expect 0 "inspect --json the model" "$HONE" inspect "$M" --json
says "how it is read for one answer, and for several" '"note": *"[^"]*", *"note_several": *"' "$T/out"
expect 0 "inspect --json the packed file" "$HONE" inspect "$P" --json
says "its schema" 'hone.inspect.packed/1' "$T/out"
expect 3 "the packed file is no model" "$HONE" run -m "$P" --ids 1
says "and that is said" 'expected the model it was made from'

# again, verify, touched, foreign
expect 0 "pack again" "$HONE" pack -m "$M" --json
if [ "$(field state "$T/out")" = ready ]; then ok "nothing to do"; else not_ok "nothing to do" "$T/out"; fi
expect 0 "verify" "$HONE" pack -m "$M" --verify --json
if [ "$(field state "$T/out")" = verified ]; then ok "verified"; else not_ok "verified" "$T/out"; fi
touch -d '2020-02-02 02:02:02' "$M"
expect 0 "a touched model" "$HONE" logits -m "$M" --ids $ids --all
says "is checked, and that is said" 'checked in .* is right'
same "with the same answer" "$T/out" "$T/want"
expect 0 "the next start" "$HONE" logits -m "$M" --ids $ids --all
if [ ! -s "$T/err" ]; then ok "compares nothing"; else not_ok "compares nothing" "$T/err"; fi
mkdir "$T/copy"
cp "$M" "$P" "$T/copy/"
expect 0 "both files copied" "$HONE" logits -m "$T/copy/m.gguf" --ids $ids --all
says "are checked" 'is right'
same "and give the same answer" "$T/out" "$T/want"
cp "$M" "$T/elsewhere.gguf"
expect 0 "pack -o" "$HONE" pack -m "$M" -o "$T/other.hpack"
expect 0 "--packed FILE" "$HONE" logits -m "$M" --ids $ids --all --packed "$T/other.hpack"
same "and its answer" "$T/out" "$T/want"
expect 0 "other data" "$HONE" synth --config tests/cross/llama.json --type BF16 --seed 6 -o "$M"
run "$HONE" logits -m "$M" --ids $ids --all --packed off
cp "$T/out" "$T/want6"
expect 0 "other data under the same name" "$HONE" logits -m "$M" --ids $ids --all
says "ignores the packed file and says why" 'other tensor data.*hone pack -m'
same "and answers from the model" "$T/out" "$T/want6"
expect 3 "verify of other data" "$HONE" pack -m "$M" --verify
says "names the packed file" 'hpack: made from other tensor data'
expect 3 "--packed FILE of other data" "$HONE" logits -m "$M" --ids $ids --packed "$P"
expect 0 "packed anew" "$HONE" pack -m "$M"
expect 0 "and used" "$HONE" logits -m "$M" --ids $ids --all
same "with the model's answer" "$T/out" "$T/want6"

# damage, and what cannot be written
n=$(wc -c <"$P")
cp "$P" "$T/keep"
for how in in-place "new file" "model touched"; do
    # a sign bit in the middle of the weights, the old time put back
    case $how in
    "new file") cp "$T/keep" "$T/new" && poke "$T/new" $((n / 2 + 1)) && mv "$T/new" "$P" ;;
    *) poke "$P" $((n / 2 + 1)) ;;
    esac
    touch -r "$T/keep" "$P"
    [ "$how" = "model touched" ] && touch "$M"
    expect 0 "a damaged one, $how" "$HONE" logits -m "$M" --ids $ids --all
    says "is ignored, and the tensor named ($how)" 'damaged: the data of [a-z].*it is not used; hone pack -m'
    same "and the answer is the model's ($how)" "$T/out" "$T/want6"
    expect 3 "by name, $how" "$HONE" run -m "$M" --ids 1 -n 1 --packed "$P"
    says "it is refused ($how)" 'hpack: damaged: the data of'
    run "$HONE" inspect "$M"
    says "inspect does not call it ready ($how)" '^packed file .*(touched|damaged)' "$T/out"
    cat "$T/keep" >"$P"
done
expect 0 "whole again" "$HONE" logits -m "$M" --ids $ids --all
says "is checked" 'is right'
same "and right" "$T/out" "$T/want6"
# another model of the same size and time, as images that are made alike have them
cp "$M" "$T/keep.gguf"
expect 0 "a model of the same shape" "$HONE" synth --config tests/cross/llama.json --type BF16 --seed 7 -o "$T/twin.gguf"
touch -r "$M" "$T/twin.gguf"
mv "$T/twin.gguf" "$M"
run "$HONE" logits -m "$M" --ids $ids --all --packed off
cp "$T/out" "$T/want7"
expect 0 "another model of that size and time" "$HONE" logits -m "$M" --ids $ids --all
says "is told apart" 'made from other tensor data'
same "and answers for itself" "$T/out" "$T/want7"
mv "$T/keep.gguf" "$M"
head -c $((n - 7)) "$T/keep" >"$P"
expect 0 "cut short" "$HONE" logits -m "$M" --ids $ids --all
says "is ignored, with a reason" 'cut short or damaged.*hone pack -m'
same "and the answer stands" "$T/out" "$T/want6"
: >"$P"
expect 0 "an empty one" "$HONE" logits -m "$M" --ids $ids
says "is ignored too" 'not a packed file'
expect 0 "and replaced" "$HONE" pack -m "$M"
echo precious >"$P"
expect 2 "something else of that name" "$HONE" pack -m "$M" --force
says "is not replaced" 'not a packed file, so it is not replaced'
expect 2 "the model itself" "$HONE" pack -m "$M" -o "$M" --force
expect 1 "a device" "$HONE" pack -m "$M" -o /dev/full
rm -f "$P"
expect 1 "a folder that is not there" "$HONE" pack -m "$M" -o "$T/no/x.hpack"
expect 1 "verify without a file" "$HONE" pack -m "$M" --verify
expect 2 "no model" "$HONE" pack
expect 3 "no such model" "$HONE" run -m "$T/none.gguf" --ids 1
(
    ulimit -f 100
    run "$HONE" pack -m "$M"
    [ "$rc" -eq 1 ] && grep -q 'file size limit' "$T/err"
)
if [ $? -eq 0 ] && [ -z "$(ls "$T" | grep hpack | grep -v other)" ]; then ok "a file size limit leaves nothing"; else not_ok "a file size limit leaves nothing" "$T/err"; fi
if unshare -rm true 2>/dev/null; then
    mkdir "$T/small"
    unshare -rm sh -c "mount -t tmpfs -o size=256k tmpfs '$T/small' && '$HONE' pack -m '$M' -o '$T/small/x.hpack' 2>'$T/err'; echo \$? >'$T/rc'; ls '$T/small' >'$T/left'"
    if [ "$(cat "$T/rc")" = 1 ] && [ ! -s "$T/left" ]; then ok "a full disk leaves nothing"; else not_ok "a full disk leaves nothing" "$T/err" "$T/left"; fi
    says "and is named" 'too full: [0-9]+ bytes needed'
else
    skip "a full disk" "no file system of our own can be mounted here"
fi
sed 's/"n_layer": *[0-9]*/"n_layer": 8/; s/"n_embd": *[0-9]*/"n_embd": 1024/; s/"n_ff": *[0-9]*/"n_ff": 4096/; s/"n_vocab": *[0-9]*/"n_vocab": 16000/' \
    tests/cross/llama.json >"$T/large.json"
expect 0 "a larger model" "$HONE" synth --config "$T/large.json" --type Q8_0 -o "$T/large.gguf"
for delay in 0.02 0.05 0.1; do
    timeout -s INT $delay "$HONE" pack -m "$T/large.gguf" >"$T/out" 2>"$T/err"
    if [ -z "$(ls "$T" | grep 'large.gguf.hpack.hone-tmp')" ]; then ok "Ctrl-C after $delay s leaves nothing half done"; else not_ok "Ctrl-C after $delay s" "$T/err"; fi
done
finish
