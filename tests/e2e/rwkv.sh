#!/bin/sh
# RWKV as its users run it: the same bytes of logits and of saved states on every level,
# whatever the threads, chunks, neighbours and packing; stopped at any token and continued;
# states of others and damaged ones refused; published logits of a trained model.
. tests/e2e/lib.sh

ids() { # ids N VOCAB SEED: N token ids below VOCAB
    awk -v n="$1" -v v="$2" -v s="$3" 'BEGIN { x = s; for (i = 0; i < n; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "%s%d", i ? "," : "", int(x / 65536) % v } }'
}
field() { # field NAME FILE: the value of a flat JSON field
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1
}
tokens() { # tokens FILE: the ids of a run, one per line
    tr -d ' \n' <"$1" | sed -n 's/.*"tokens":\[\([0-9,]*\)\].*/\1/p' | tr ',' '\n' && echo
}
case $(uname -m) in
aarch64 | arm64) levels="scalar neon neon_dotprod neon_i8mm" ;;
*) levels="scalar avx2 avx_vnni avx512" ;;
esac

echo '{"arch": "rwkv7", "n_layer": 3, "n_embd": 128, "head_dim": 32, "n_ff": 300, "n_vocab": 300,
 "rank_decay": 17, "rank_iclr": 8, "rank_value": 5, "rank_gate": 40}' >"$T/a.json"
echo '{"arch": "rwkv7", "n_layer": 2, "n_embd": 256, "head_dim": 64, "n_vocab": 300,
 "rank_decay": 32, "rank_iclr": 32, "rank_value": 32, "rank_gate": 64}' >"$T/b.json"
echo '{"arch": "rwkv6", "n_layer": 3, "n_embd": 256, "head_dim": 64, "n_vocab": 300,
 "rank_mix": 8, "rank_decay": 16, "rescale_every": 2}' >"$T/c.json"
echo '{"arch": "rwkv6", "n_layer": 2, "n_embd": 120, "head_dim": 20, "n_ff": 77, "n_vocab": 300,
 "rank_mix": 3, "rank_decay": 5}' >"$T/d.json"

one() { # one NAME MODEL IDS [OPTIONS]
    name=$1 model=$2 list=$3
    shift 3
    n=$(echo "$list" | tr ',' '\n' | wc -l)
    HONE_CPU=scalar
    export HONE_CPU
    expect 0 "$name: scalar" "$HONE" logits -m "$model" --ids "$list" --all -t 1 --chunk 1 --packed off --state-out "$T/want.state"
    [ "$rc" -eq 0 ] || { unset HONE_CPU && return; }
    cp "$T/out" "$T/want"
    tail -c $(($(wc -c <"$T/want") / n)) "$T/want" >"$T/last"
    for cpu in $levels; do
        HONE_CPU=$cpu
        run "$HONE" logits -m "$model" --ids 1 -t 1
        if [ "$rc" -ne 0 ] && grep -q 'lacks it' "$T/err"; then
            skip "$name: $cpu" "this machine lacks it"
            continue
        fi
        good=0 all=0
        for how in 1:64 2:7 3:512; do
            rm -f "$T/state"
            run "$HONE" logits -m "$model" --ids "$list" --all -t ${how%:*} --chunk ${how#*:} --state-out "$T/state" "$@"
            all=$((all + 1))
            if [ "$rc" -eq 0 ] && cmp -s "$T/out" "$T/want" && cmp -s "$T/state" "$T/want.state"; then
                good=$((good + 1))
            else
                not_ok "$name: $cpu, threads and chunk $how" "$T/err"
            fi
        done
        if [ $good -eq $all ]; then ok "$name: $cpu: logits and states of $good runs"; fi
        # neighbours in the batch; only the last logits wanted
        expect 0 "$name: $cpu: neighbours" "$HONE" logits -m "$model" --ids "$list" --neighbours 2 --chunk 5 -t 2 "$@"
        same "$name: $cpu: the same beside neighbours" "$T/out" "$T/last"
    done
    unset HONE_CPU
    # stopped after any token and continued elsewhere
    good=0 all=0
    for at in 1 $((n / 3)) $((n - 1)); do
        all=$((all + 1))
        run env HONE_CPU=scalar "$HONE" logits -m "$model" --ids "$(echo "$list" | cut -d, -f1-$at)" --state-out "$T/half" --chunk 3 -t 1
        run "$HONE" logits -m "$model" --ids "$(echo "$list" | cut -d, -f$((at + 1))-)" --all --state-in "$T/half" --state-out "$T/state" -t 3 "$@"
        tail -c $(($(wc -c <"$T/want") / n * (n - at))) "$T/want" >"$T/rest"
        if [ "$rc" -eq 0 ] && cmp -s "$T/out" "$T/rest" && cmp -s "$T/state" "$T/want.state"; then
            good=$((good + 1))
        else
            not_ok "$name: stopped after $at" "$T/err"
        fi
    done
    if [ $good -eq $all ]; then ok "$name: as if never stopped, $good times"; fi
}

for pair in a:F32 a:Q8_0 b:Q4_K_M c:Q6_K d:BF16; do
    m=$T/${pair%:*}-${pair#*:}.gguf
    expect 0 "synth $pair" "$HONE" synth --config "$T/${pair%:*}.json" --type "${pair#*:}" --seed 3 -o "$m"
    one "$pair" "$m" "$(ids 80 300 2)"
done
for pair in b-Q4_K_M a-Q8_0 c-Q6_K; do
    expect 0 "pack $pair" "$HONE" pack -m "$T/$pair.gguf"
    run "$HONE" run -m "$T/$pair.gguf" --ids 1,2 -n 2 --temp 0 --json
    if [ "$(field weights "$T/out")" = packed ]; then ok "$pair: packed weights in use"; else not_ok "$pair: packed weights in use" "$T/out" "$T/err"; fi
    one "$pair, packed" "$T/$pair.gguf" "$(ids 40 300 4)"
done

# the same number of bytes, however long the text
bytes=$((3 * (2 * 128 + 128 * 32) * 4))
run "$HONE" logits -m "$T/a-F32.gguf" --ids 1,2,3 --state-out "$T/short"
run "$HONE" logits -m "$T/a-F32.gguf" --ids "$(ids 200 300 9)" --state-out "$T/long"
short=$(wc -c <"$T/short") long=$(wc -c <"$T/long")
if [ "$short" -eq "$long" ] && [ "$short" -gt "$bytes" ] && [ "$short" -lt $((bytes + 256)) ]; then
    ok "a state of $bytes bytes and a head, after 3 tokens and after 200"
else
    not_ok "files of $short and $long bytes, expected a little more than $bytes"
fi
# no context to run out of: more tokens than others keep by default
expect 0 "5000 tokens" "$HONE" logits -m "$T/d-BF16.gguf" --ids "$(ids 5000 300 5)"

# run: told in two parts, the same text
M=$T/b-Q4_K_M.gguf
for how in "--temp 0" "-s 7"; do
    expect 0 "run $how" "$HONE" run -m "$M" --ids 7,8,9 -n 24 --ignore-eos $how --json
    tokens "$T/out" >"$T/whole"
    expect 0 "run $how, the beginning" "$HONE" run -m "$M" --ids 7,8,9 -n 10 --ignore-eos $how --json --state-out "$T/s"
    tokens "$T/out" >"$T/part"
    next=$(sed -n 11p "$T/whole")
    expect 0 "run $how, the rest" "$HONE" run -m "$M" --ids "$next" -n 13 --ignore-eos $how --json --state-in "$T/s" --state-out "$T/s2" -t 1
    (cat "$T/part" && echo "$next" && tokens "$T/out") >"$T/both"
    [ "$(wc -l <"$T/whole")" -eq 24 ] || not_ok "24 tokens" "$T/whole"
    same "run $how in two parts" "$T/both" "$T/whole"
    expect 0 "run $how, all of it again" "$HONE" run -m "$M" --ids 7,8,9 -n 24 --ignore-eos $how --json --state-out "$T/s3"
    same "and the states at the end are equal" "$T/s2" "$T/s3"
done

# read once, answer nothing: the same state as without sampling
expect 0 "run -n 0 reads and keeps" "$HONE" run -m "$M" --ids 5,6,7,8,9,10 -n 0 --state-out "$T/read"
run "$HONE" logits -m "$M" --ids 5,6,7,8,9,10 --state-out "$T/s2"
same "the state of what was read" "$T/read" "$T/s2"
for k in 1 2; do # asked twice: the file is not used up
    expect 0 "asked" "$HONE" run -m "$M" --ids 11,12 -n 6 --temp 0 --ignore-eos --json --state-in "$T/read"
    tokens "$T/out" >"$T/answer$k"
done
expect 0 "asked at once" "$HONE" run -m "$M" --ids 5,6,7,8,9,10,11,12 -n 6 --temp 0 --ignore-eos --json
tokens "$T/out" >"$T/answer"
same "the first answer" "$T/answer1" "$T/answer"
same "the second answer" "$T/answer2" "$T/answer"

# refused, and said why
refuse() { # refuse WHAT STATE MODEL PATTERN
    run "$HONE" logits -m "$3" --ids 1,2 --state-in "$2"
    if [ "$rc" -ne 0 ] && [ ! -s "$T/out" ] && grep -qE -- "$4" "$T/err"; then ok "$1"; else not_ok "$1 (exit $rc)" "$T/err"; fi
}
refuse "a state of another model" "$T/s" "$T/a-F32.gguf" 'another model'
refuse "a state of another architecture" "$T/s" "$T/c-Q6_K.gguf" 'another model'
expect 0 "synth, other weights" "$HONE" synth --config "$T/b.json" --type Q4_K_M --seed 4 -o "$T/twin.gguf"
refuse "a state of the same shape, other weights" "$T/s" "$T/twin.gguf" 'another model'
expect 0 "synth llama" "$HONE" synth --config tests/cross/llama.json --type F16 --seed 3 -o "$T/llama.gguf"
refuse "a state in a transformer" "$T/s" "$T/llama.gguf" 'another model'
expect 0 "a cache of a transformer" "$HONE" logits -m "$T/llama.gguf" --ids 1,2,3 --state-out "$T/cache"
refuse "a cache in a recurrent model" "$T/cache" "$M" 'another model'
size=$(wc -c <"$T/s")
head -c $((size - 1)) "$T/s" >"$T/bad"
refuse "a state cut off" "$T/bad" "$M" 'bad.*(cut off|damaged)'
head -c 20 "$T/s" >"$T/bad"
refuse "a state of 20 bytes" "$T/bad" "$M" 'bad'
for at in 50 $((size / 2)) $((size - 3)); do
    (head -c "$at" "$T/s" && printf '\125\252' && tail -c +$((at + 3)) "$T/s") >"$T/bad"
    [ "$(wc -c <"$T/bad")" -eq "$size" ] || not_ok "a damaged copy of the same size"
    refuse "a state with two bytes changed at $at" "$T/bad" "$M" 'bad.*(damaged|checksum)'
done
refuse "a model as a state" "$M" "$M" 'gguf'
for arch in arwkv7:06 rwkv6qwen2:12; do # hybrids: a file of one key, its length in octal
    name=${arch%:*}
    {
        printf 'GGUF\003\0\0\0\0\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0'
        printf '\024\0\0\0\0\0\0\0general.architecture\010\0\0\0'
        printf "\\0${arch#*:}\\0\\0\\0\\0\\0\\0\\0%s" "$name"
    } >"$T/$name.gguf"
    run "$HONE" run -m "$T/$name.gguf" --ids 1 -n 1
    if [ "$rc" -ne 0 ] && grep -q "architecture.*$name" "$T/err"; then ok "$name is refused by name"; else not_ok "$name is refused by name" "$T/err"; fi
done

# a trained model, if it is at hand: a byte is a token; '"in' is continued with ' the'
bin=../shared/data/rwkv/tiny-rwkv-7v0-834K-FP32.bin
if [ -f "$bin" ]; then
    expect 0 "convert the tiny model" "$HONE" convert "$bin" -o "$T/tiny.gguf"
    expect 0 "its logits" "$HONE" logits -m "$T/tiny.gguf" --ids 34,105,110
    cp "$T/out" "$T/logits"
    worst=$( (od -An -v -t f4 -w4 "$T/logits" && od -An -v -t f4 -w4 "${bin%/*}/expected-logits-7v0-834K.bin") |
        awk '{ v[NR] = $1 } END { for (i = 1; i <= 256; i++) { d = v[i] - v[i + 256]; if (d < 0) d = -d; if (d > w) w = d } printf "%d %d", NR, w * 1e9 }')
    if [ "${worst% *}" -eq 512 ] && [ "${worst#* }" -le 5000 ]; then
        ok "published logits, largest error ${worst#* }e-9"
    else
        not_ok "published logits: numbers and largest error in 1e-9: $worst"
    fi
    expect 0 "its text" "$HONE" run -m "$T/tiny.gguf" --ids 34,105,110 -n 64 --temp 0 --json
    tokens "$T/out" | tr '\n' ' ' >"$T/greedy"
    awk 'BEGIN { for (i = 0; i < 16; i++) printf "32 116 104 101 " }' >"$T/golden"
    same "64 golden greedy bytes" "$T/greedy" "$T/golden"
    one "tiny" "$T/tiny.gguf" "34,105,110,$(ids 50 256 8)"
else
    skip "the tiny model" "../shared/data is not there"
fi
finish
