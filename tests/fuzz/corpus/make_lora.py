# Seeds for fuzz_lora: adapters, good and bad, for the model that fuzz_lora.c makes:
#     python3 make_lora.py FOLDER
import os, sys
import gguf, numpy as np
out = sys.argv[1]
E, F = 8, 12
def adapter(name, pairs, arch="llama", kind="lora", alpha=4.0, dtype=np.float32, extra=None, quant=None):
    w = gguf.GGUFWriter(os.path.join(out, name), arch)
    w.add_type("adapter")
    w.add_string("adapter.type", kind)
    if alpha is not None: w.add_float32("adapter.lora.alpha", alpha)
    if extra: w.add_string(*extra)
    for tensor, shape in pairs:
        x = (np.arange(shape[0] * shape[1]).reshape(shape) / 16 - 1).astype(dtype)
        if quant: w.add_tensor(tensor, gguf.quants.quantize(x.astype(np.float32), quant), raw_dtype=quant)
        else: w.add_tensor(tensor, x)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
def pair(t, i, o, r): return [(t + ".lora_a", (r, i)), (t + ".lora_b", (o, r))]
q, down = pair("blk.0.attn_q.weight", E, E, 2), pair("blk.0.ffn_down.weight", F, E, 3)
adapter("good.gguf", q + down)
adapter("f16.gguf", q + down, dtype=np.float16)
adapter("head.gguf", pair("output.weight", E, 4, 1), alpha=None)
adapter("half.gguf", q[:1])
adapter("shape.gguf", pair("blk.0.attn_k.weight", E, E, 2))
adapter("embedding.gguf", pair("token_embd.weight", E, 4, 1))
adapter("arch.gguf", q, arch="qwen2")
adapter("alora.gguf", q, extra=("adapter.alora.x", "y"))
adapter("norm.gguf", q + [("blk.0.attn_norm.weight", (1, E))])
