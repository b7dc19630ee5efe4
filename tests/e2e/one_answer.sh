#!/bin/sh
# One answer: the logits are the same bytes on every CPU level, with any number of
# threads and any prefill chunk; also when a session is saved and restored.
. tests/e2e/lib.sh

ids() { # ids N VOCAB SEED: N token ids below VOCAB
    awk -v n="$1" -v v="$2" -v s="$3" 'BEGIN { x = s; for (i = 0; i < n; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "%s%d", i ? "," : "", int(x / 65536) % v } }'
}

case $(uname -m) in
aarch64 | arm64) levels="scalar neon neon_dotprod neon_i8mm" ;;
*) levels="scalar avx2 avx_vnni avx512" ;;
esac
one() { # one NAME MODEL IDS
    name=$1 model=$2 list=$3
    HONE_CPU=scalar
    export HONE_CPU
    expect 0 "$name: scalar" "$HONE" logits -m "$model" --ids "$list" --all -t 1
    [ "$rc" -eq 0 ] || return
    cp "$T/out" "$T/want"
    n=$(echo "$list" | tr ',' '\n' | wc -l)
    size=$(wc -c <"$T/want")
    if [ "$size" -gt 0 ] && [ $((size % (4 * n))) -eq 0 ]; then ok "$name: $n rows of logits"; else not_ok "$name: $n rows of logits"; fi
    for cpu in $levels; do
        HONE_CPU=$cpu
        run "$HONE" logits -m "$model" --ids "$list" --all -t 1
        if [ "$rc" -ne 0 ] && grep -q 'lacks it' "$T/err"; then
            skip "$name: $cpu" "this machine lacks it"
            continue
        fi
        for t in 1 2 3 8; do
            for chunk in 1 7 64 512; do
                case $cpu in # scalar is slow: the corners are enough
                scalar) case $t:$chunk in 1:7 | 3:512 | 8:1) ;; *) continue ;; esac ;;
                esac
                run "$HONE" logits -m "$model" --ids "$list" --all -t $t --chunk $chunk
                if [ "$rc" -eq 0 ] && cmp -s "$T/out" "$T/want"; then
                    ok "$name: $cpu, $t threads, chunks of $chunk"
                else
                    not_ok "$name: $cpu, $t threads, chunks of $chunk" "$T/err"
                fi
            done
        done
    done
    unset HONE_CPU
    # half of it, saved; the other half from the restored session
    head=$(echo "$list" | cut -d, -f1-$((n / 2)))
    tail=$(echo "$list" | cut -d, -f$((n / 2 + 1))-)
    for kv in f16 f32 q8_0; do
        run "$HONE" logits -m "$model" --ids "$list" --all --kv $kv
        cp "$T/out" "$T/whole"
        run env HONE_CPU=scalar "$HONE" logits -m "$model" --ids "$list" --all --kv $kv -t 1 --chunk 5
        same "$name, kv $kv: scalar, chunks of 5" "$T/out" "$T/whole"
        expect 0 "$name, kv $kv: half, saved" "$HONE" logits -m "$model" --ids "$head" --kv $kv --state-out "$T/state"
        expect 0 "$name, kv $kv: restored" "$HONE" logits -m "$model" --ids "$tail" --all --kv $kv --state-in "$T/state" -t 3
        tail -c "$(wc -c <"$T/out")" "$T/whole" >"$T/second"
        if [ -s "$T/out" ]; then same "$name, kv $kv: as if never stopped" "$T/out" "$T/second"; else not_ok "$name, kv $kv: as if never stopped" "$T/err"; fi
    done
}

if [ -f "$TINY" ]; then one "hone-tiny" "$TINY" "$(ids 80 400 1)"; else skip "hone-tiny" "$TINY is not there"; fi
if [ -f "$CHAT" ]; then one "hone-chat" "$CHAT" "$(ids 80 400 1)"; else skip "hone-chat" "$CHAT is not there"; fi
for pair in llama:Q4_K_M llama:Q5_K_M llama:F32 qwen2:Q8_0 qwen2:Q4_0 qwen3:F16 qwen3:BF16 qwen3:Q6_K; do
    m=$T/${pair%:*}-${pair#*:}.gguf
    expect 0 "synth $pair" "$HONE" synth --config "tests/cross/${pair%:*}.json" --type "${pair#*:}" --seed 3 -o "$m"
    one "$pair" "$m" "$(ids 70 300 2)"
done
# trained weights from elsewhere, if they are at hand
ckpt=../shared/data/stories260K/stories260K.bin
if [ -f "$ckpt" ]; then
    expect 0 "convert stories260K" "$HONE" convert "$ckpt" --tokenizer "${ckpt%/*}/tok512.bin" -o "$T/s.gguf"
    run "$HONE" run -m "$T/s.gguf" --ids 1 -n 32 --temp 0 --json
    golden=403,407,261,378,432,383,286,261,376,298,315,421,395,317,426,338,401,396,267,337,410,408,419,292,411,322,265,282,295,433,426,385
    tr -d ' \n' <"$T/out" | grep -o '"tokens":\[[0-9,]*\]' >"$T/tokens"
    echo "\"tokens\":[$golden]" >"$T/golden"
    same "stories260K: 32 golden greedy ids" "$T/tokens" "$T/golden"
    one "stories260K" "$T/s.gguf" "1,$golden"
else
    skip "stories260K" "../shared/data is not there"
fi

# the same seed is the same text; another seed is another
if [ -f "$TINY" ]; then
    for i in 1 2 3; do
        seed=7
        [ $i -eq 3 ] && seed=8
        run "$HONE" run -m "$TINY" -p "Once upon a time" -n 60 -s $seed -t $i
        [ "$rc" -eq 0 ] || not_ok "run -s $seed" "$T/err"
        cp "$T/out" "$T/text$i"
    done
    same "the same seed, one thread or two" "$T/text1" "$T/text2"
    if cmp -s "$T/text1" "$T/text3"; then not_ok "another seed, another text"; else ok "another seed, another text"; fi
fi
finish
