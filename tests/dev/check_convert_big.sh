#!/bin/sh
# A folder of GIB GiB (16) of zeros in BF16, sparse on disk, through hone convert: most anonymous memory, bytes at one and
# two threads, and the rate beside that of dd writing as much to the same disk.
#     check_convert_big.sh HONE FOLDER [GIB]     FOLDER: where there is room for twice as much
set -eu
hone=$1 top=$2/hone-big gib=${3:-16}
rm -rf "$top"
mkdir -p "$top/m"
trap 'rm -rf "$top"' EXIT

python3 - "$top/m" "$gib" <<'PY'
import json, os, struct, sys
folder, gib = sys.argv[1], int(sys.argv[2])
E, F, H, KV, V = 4096, 14336, 32, 8, 128256
layer = {"self_attn.q_proj": (E, E), "self_attn.k_proj": (E // 4, E), "self_attn.v_proj": (E // 4, E),
         "self_attn.o_proj": (E, E), "mlp.gate_proj": (F, E), "mlp.up_proj": (F, E), "mlp.down_proj": (E, F),
         "input_layernorm": (E,), "post_attention_layernorm": (E,)}
size = lambda s: 2 * s[0] * (s[1] if len(s) > 1 else 1)
n_layer = max(1, (gib * 2**30 - 2 * size((V, E))) // sum(map(size, layer.values())))
config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=E, intermediate_size=F, num_hidden_layers=n_layer,
              num_attention_heads=H, num_key_value_heads=KV, vocab_size=V, max_position_embeddings=8192, rms_norm_eps=1e-5,
              head_dim=128, rope_theta=5e5, tie_word_embeddings=False)
json.dump(config, open(f"{folder}/config.json", "w"))
parts, at = [{}], 0
for name, shape in [("model.embed_tokens", (V, E)), ("model.norm", (E,)), ("lm_head", (V, E))] + [
        (f"model.layers.{i}.{k}", s) for i in range(n_layer) for k, s in layer.items()]:
    if at > 4 * 2**30:
        parts.append({})
        at = 0
    parts[-1][name + ".weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size(shape)]}
    at += size(shape)
where, total = {}, 0
for i, p in enumerate(parts):
    file = f"model-{i + 1:05d}-of-{len(parts):05d}.safetensors"
    head = json.dumps(p, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    end = max(t["data_offsets"][1] for t in p.values())
    with open(f"{folder}/{file}", "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head)
        f.truncate(8 + len(head) + end)
    where.update({k: file for k in p})
    total += end
json.dump({"metadata": {"total_size": total}, "weight_map": where}, open(f"{folder}/model.safetensors.index.json", "w"))
print(f"{n_layer} layers, {total / 2**30:.2f} GiB in {len(parts)} files")
PY

# Most anonymous memory of a command, in MB, and its seconds.
measured() {
    t0=$(date +%s.%N)
    "$@" >/dev/null 2>"$top/err" &
    pid=$! most=0
    while kill -0 $pid 2>/dev/null; do
        now=$(awk '/^RssAnon/ { print $2 }' /proc/$pid/status 2>/dev/null || true)
        [ "${now:-0}" -gt "$most" ] && most=$now
        sleep 0.1
    done
    wait $pid || { cat "$top/err"; exit 1; }
    echo "$(echo "$(date +%s.%N) - $t0" | bc) $((most / 1024))"
}

for n in 1 2; do
    set -- $(HONE_THREADS=$n measured taskset -c 0-$((n - 1)) "$hone" convert "$top/m" -o "$top/$n.gguf")
    echo "$n threads: $1 s, $(echo "$(stat -c %s "$top/$n.gguf") / 1000000 / $1" | bc) MB/s, at most $2 MB of anonymous memory"
    sha256sum <"$top/$n.gguf" >"$top/$n.sum"
    [ "$2" -lt 1000 ] || { echo "FAIL: 1 GB and more"; exit 1; }
    [ "$n" = 2 ] || rm "$top/1.gguf"
done
cmp "$top/1.sum" "$top/2.sum" && echo "the same bytes"
rm "$top/2.gguf"
mib=$((gib * 1024))
t0=$(date +%s.%N)
dd if=/dev/zero of="$top/dd" bs=8M count=$((mib / 8)) conv=fsync 2>/dev/null
echo "dd: $(echo "$mib * 1.048576 / ($(date +%s.%N) - $t0)" | bc) MB/s"
