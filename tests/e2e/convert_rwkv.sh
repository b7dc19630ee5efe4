#!/bin/sh
# RWKV checkpoints through the program: rwkv.cpp files and safetensors become GGUF, tensor-exact.
# The numbers of ../shared/data/rwkv are cut out of the file with tail and head at offsets that
# another program found, and compared as bytes; hone's own reader of it has no part in that.
. tests/e2e/lib.sh
seeds=tests/fuzz/corpus/convert

for f in v6.bin v7.bin v6.safetensors v7.safetensors; do
    expect 0 "$f converts" "$HONE" convert $seeds/$f -o "$T/$f.gguf"
    says "$f without a vocabulary says so" "has no tokenizer"
    expect 0 "$f.gguf is sound" "$HONE" inspect --check "$T/$f.gguf"
done
expect 0 "as JSON" "$HONE" convert $seeds/v7.safetensors --json -o "$T/j.gguf"
says "schema" '"schema":"hone.convert/1"' "$T/out"
says "what was lossless stayed what it was" '"BF16":26' "$T/out"
if command -v taskset >/dev/null 2>&1 && taskset -c 0 true 2>/dev/null; then
    run taskset -c 0 "$HONE" convert $seeds/v7.safetensors --type Q8_0 -o "$T/one.gguf"
    run "$HONE" convert $seeds/v7.safetensors --type Q8_0 -o "$T/all.gguf"
    same "threads do not change the file" "$T/one.gguf" "$T/all.gguf"
else
    skip "threads do not change the file" "no taskset"
fi

# a folder with its vocabulary; that of the command line wins
mkdir "$T/hf"
cp $seeds/v7.safetensors "$T/hf/model.safetensors"
printf "1 'x' 1\n" >"$T/hf/rwkv_vocab_v20230424.txt"
printf "1 'y' 1\n2 'z' 1\n" >"$T/other.txt"
expect 0 "a folder" "$HONE" convert "$T/hf" -o "$T/hf.gguf"
if grep -q 'no tokenizer' "$T/err"; then not_ok "its vocabulary is found" "$T/err"; else ok "its vocabulary is found"; fi
run "$HONE" tokenize -m "$T/hf.gguf" -p x
says "and used" "^1$" "$T/out"
expect 0 "another vocabulary" "$HONE" convert "$T/hf" --tokenizer "$T/other.txt" -o "$T/hf.gguf"
printf '{"architectures":["XForCausalLM"]}' >"$T/hf/config.json"
expect 3 "another architecture" "$HONE" convert "$T/hf" -o "$T/x.gguf"
says "is refused by name" 'XForCausalLM'
head -c 4000 $seeds/v7.bin >"$T/cut.bin"
expect 3 "a cut file" "$HONE" convert "$T/cut.bin" -o "$T/x.gguf"
says "says where it ends" 'cut.bin: .*(4000|truncated)'
expect 1 "no such vocabulary" "$HONE" convert $seeds/v7.bin --tokenizer "$T/absent.txt" -o "$T/x.gguf"
if ls "$T"/x.gguf* >/dev/null 2>&1; then not_ok "nothing is left behind"; else ok "nothing is left behind"; fi

bin=../shared/data/rwkv/tiny-rwkv-7v0-834K-FP32.bin
if [ ! -e $bin ]; then
    skip "tensors of $bin" "it is absent"
    finish
fi
expect 0 "the tiny RWKV-7 converts" "$HONE" convert $bin -o "$T/tiny.gguf"
expect 0 "and as F32" "$HONE" convert $bin --type F32 -o "$T/tiny32.gguf"
# tensor, first byte, bytes
bad=
while read -r name at n; do
    tail -c +$((at + 1)) $bin | head -c "$n" >"$T/want"
    for g in tiny tiny32; do
        "$HONE" inspect --tensor "$name" --f32 "$T/$g.gguf" >"$T/got" 2>"$T/err" || bad="$bad $name:$(cat "$T/err")"
        cmp -s "$T/want" "$T/got" || bad="$bad $g:$name"
    done
done <<'X'
token_embd.weight 54 65536
blk.0.attn_norm.weight 65625 256
blk.0.attn_norm.bias 65914 256
blk.0.attn_norm_2.weight 66205 256
token_embd_norm.weight 66785 256
token_embd_norm.bias 67074 256
blk.0.time_mix_lerp_fused.weight 67375 1536
blk.0.time_mix_w1.weight 68946 8192
blk.0.time_mix_w2.weight 77173 8192
blk.0.time_mix_w0.weight 85404 256
blk.0.time_mix_a1.weight 85695 8192
blk.0.time_mix_a2.weight 93922 8192
blk.0.time_mix_a0.weight 102153 256
blk.0.time_mix_v1.weight 85695 8192
blk.0.time_mix_v2.weight 93922 8192
blk.0.time_mix_v0.weight 102153 256
blk.0.time_mix_g1.weight 102444 8192
blk.0.time_mix_g2.weight 110671 8192
blk.0.time_mix_k_k.weight 118903 256
blk.0.time_mix_k_a.weight 119199 256
blk.0.time_mix_r_k.weight 119491 256
blk.0.time_mix_receptance.weight 119797 16384
blk.0.time_mix_key.weight 136224 16384
blk.0.time_mix_value.weight 152653 16384
blk.0.time_mix_output.weight 169083 16384
blk.0.time_mix_ln.weight 185507 256
blk.0.time_mix_ln.bias 185801 256
blk.7.time_mix_v1.weight 1962339 8192
blk.7.time_mix_v2.weight 1970566 8192
blk.7.time_mix_v0.weight 1978797 256
blk.11.time_mix_lerp_fused.weight 2999671 1536
blk.11.time_mix_w0.weight 3017703 256
blk.11.time_mix_v2.weight 3042975 8192
blk.11.time_mix_output.weight 3118146 16384
blk.11.channel_mix_lerp_k.weight 3135163 256
blk.11.channel_mix_key.weight 3135463 65536
blk.11.channel_mix_value.weight 3201045 65536
output_norm.weight 3266610 256
output_norm.bias 3266893 256
output.weight 3267180 65536
X
if [ -z "$bad" ]; then ok "40 tensors are the file's bytes"; else echo "# differ:$bad"; not_ok "40 tensors are the file's bytes"; fi
run "$HONE" inspect "$T/tiny32.gguf"
says "all tensors are there" 'tensors: 342' "$T/out"
finish
