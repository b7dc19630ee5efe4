# Seeds for fuzz_peft: PEFT folders, good and bad, for the model that lora_model.h makes: the config, a zero byte,
# the tensors:
#     python3 make_peft.py FOLDER
import json, os, struct, sys
import numpy as np
out = sys.argv[1]
E, F, V = 8, 12, 4
def tensors(pairs, dtype, order):
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, rows, cols in pairs:
        x = (np.arange(rows * cols) / 16 - 1).astype(np.float32)
        b = (x.view(np.uint32) >> 16).astype(np.uint16).tobytes() if dtype == "BF16" else x.astype({"F32": np.float32, "F16": np.float16}[dtype]).tobytes()
        head[name] = {"dtype": dtype, "shape": [rows, cols], "data_offsets": [len(data), len(data) + len(b)]}
        data += b
    text = json.dumps({k: head[k] for k in sorted(head, reverse=order)}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
def pair(module, n_in, n_out, r, layer=0):
    name = "base_model.model." + (module if layer is None else f"model.layers.{layer}.{module}")
    return [(name + ".lora_A.weight", r, n_in), (name + ".lora_B.weight", n_out, r)]
def seed(name, pairs, config=None, dtype="F32", order=False):
    c = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_dora": False, "target_modules": ["q_proj"]} | (config if isinstance(config, dict) else {})
    b = json.dumps(c).encode() if config != "plain" else b""
    if pairs is not None: b += b"\0" + tensors(pairs, dtype, order)
    open(os.path.join(out, name), "wb").write(b)
q, down = pair("self_attn.q_proj", E, E, 2), pair("mlp.down_proj", F, E, 3)
seed("good", q + down)
seed("f16", q + down, dtype="F16")
seed("bf16", q + pair("self_attn.k_proj", E, E // 2, 2), dtype="BF16", order=True)
seed("head", pair("lm_head", E, V, 1, None))
seed("rslora", q, {"use_rslora": True})
seed("alpha_pattern", q + down, {"alpha_pattern": {"mlp.down_proj": 1.5, "^model.layers.0.self_attn.q_proj": 2}})
seed("regular", q, {"alpha_pattern": {"q_.*": 1}})
seed("dora", q, {"use_dora": True})
seed("pissa", q, {"init_lora_weights": "pissa"})
seed("huge_alpha", q, {"lora_alpha": 1e10})
seed("half", q[:1])
seed("shape", pair("self_attn.v_proj", E, E, 2))
seed("layer", pair("self_attn.q_proj", E, E, 2, 7))
seed("embedding", [("base_model.model.model.embed_tokens.lora_embedding_A", 2, V)])
seed("no_tensors", None)
seed("plain", q + down, "plain")
seed("plain_f16", pair("self_attn.o_proj", E, E, 4) + pair("mlp.gate_proj", E, F, 1), "plain", dtype="F16")
seed("plain_bf16", q + pair("self_attn.k_proj", E, E // 2, 2) + pair("lm_head", E, V, 2, None), "plain", dtype="BF16", order=True)
