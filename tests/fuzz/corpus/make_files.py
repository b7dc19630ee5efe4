# Seeds for the targets of whole files and folders: session, split, folder, bins, synth, history, baseline, peaks,
# logits, packrun, talk, options, chat, http:
#     python3 make_files.py FOLDER [../../golden/jinja.json]
# With the second also templates for jinja.
# Targets that begin with a good file of their own want edits of it here: u8 kind, u16 place, then what the kind says.
import json, os, struct, sys

out = sys.argv[1]


def put(target, name, data):
    os.makedirs(f"{out}/{target}", exist_ok=True)
    open(f"{out}/{target}/{name}", "wb").write(data if isinstance(data, bytes) else data.encode())


def edit(kind, place, rest=b""):
    return struct.pack("<BH", kind, place) + rest


J = lambda o: json.dumps(o, separators=(",", ":")).encode()

# ---- edits of good files ------------------------------------------------------------------------------------
cut, bit, number = edit(3 | 64, 20), edit(7 | 24, 50), lambda at, what, width=2: edit(2 | width << 3, at, bytes([what]))
for kind in range(4):
    for name, e in {"good": b"", "bit": bit, "cut": cut, "magic": edit(7, 0), "model": edit(7, 9), "cache": number(16, 1), "layers": number(20, 10),
                    "seqs": number(32, 10), "adapters": number(36, 1), "len0": number(40, 9), "len1": number(44, 1), "long": number(40, 5),
                    "state": edit(7 | 16, 200)}.items():
        put("session", f"{name}{kind}", bytes([kind | 8]) + e)
    put("session", f"unsealed{kind}", bytes([kind]) + bit)
    put("session", f"one{kind}", bytes([kind | 24]) + number(44, 0))
    put("session", f"raw{kind}", bytes([kind | 12]) + b"HONESES1" + bytes(60))
for i, e in enumerate([b"", bit, cut, number(8, 10), number(16, 10), number(20, 10), number(24, 10), number(28, 10), number(32, 10), number(40, 8, 3),
                       number(48, 8, 3), edit(7, 224), edit(7, 0), number(12, 1), edit(3, 100), number(224, 10)]):
    for how in (4, 5):
        put("logits", f"{i}-{how}", bytes([how]) + e)
    put("logits", f"{i}-sum", bytes([0]) + e)
put("logits", "raw", b"\x02honelgts" + struct.pack("<IIiiiiiiqq", 1, 32, 3, 4, 2, 1, -1, 0, 8, 2))
for i, e in enumerate([b"", bit, cut, number(8, 10), number(12, 10), number(24, 10, 3), number(32, 10, 3), edit(7, 48), edit(7, 112), edit(7, 4096), number(4096, 3),
                       number(4100, 1), number(4104, 2, 3), number(4112, 2, 3), number(4120, 40, 3), number(4128, 9, 3), number(4168, 1), edit(7, 4173),
                       edit(7 | 128, 30), edit(3, 64), edit(5, 4096, b"\x04abcd"), edit(7, 4136)]):
    for how in (1, 3):
        put("packrun", f"{i}-{how}", bytes([how]) + e)
put("packrun", "sum", bytes([0]) + edit(7, 4096))

# ---- split sets: u8 flags; then u8 what (kind << 5 | j << 2 | i), and what it wants ------------------------
put("split", "good", b"\x00")
for i in range(3):
    put("split", f"from{i}", bytes([i]))
    put("split", f"missing{i}", bytes([0, i]))
    put("split", f"alone{i}", bytes([64 | i]))
    put("split", f"swapped{i}", bytes([0, 1 << 5 | (i + 1) % 3 << 2 | i]))
    put("split", f"twice{i}", bytes([0, 2 << 5 | (i + 1) % 3 << 2 | i]))
    for at in (4, 8, 16, 24, 32, 52, 56, 60, 64, 76, 80, 95, 99, 108, 128, 140, 180, 196, 210, 230, 240, 250, 260, 300, 310):
        put("split", f"edit{i}-{at}", bytes([0, 3 << 5 | i]) + number(at, 1 + at % 7, at % 4))
    put("split", f"cut{i}", bytes([0, 3 << 5 | i]) + edit(3 | 64, 400))

# ---- folders --------------------------------------------------------------------------------------------------
E, N, H, F, V, L, R = 4, 2, 2, 6, 3, 1, 1


def rwkv(v):
    t = {"emb.weight": (V, E), "head.weight": (V, E), "ln_out.weight": (E,), "ln_out.bias": (E,)}
    p = "blocks.0."
    for n in ["ln0", "ln1", "ln2", "att.ln_x"]:
        t[p + n + ".weight"] = t[p + n + ".bias"] = (E,)
    for n in ["receptance", "key", "value", "output"]: t[p + f"att.{n}.weight"] = (E, E)
    t[p + "ffn.key.weight"], t[p + "ffn.value.weight"] = (F, E), (E, F)
    if v == 7:
        for c in "rwkvag": t[p + "att.x_" + c] = (E,)
        for c in "wavg":
            if c == "v": continue
            if c != "g": t[p + f"att.{c}0"] = (E,)
            t[p + f"att.{c}1"], t[p + f"att.{c}2"] = (E, R), (R, E)
        t[p + "att.k_k"] = t[p + "att.k_a"] = t[p + "ffn.x_k"] = (E,)
        t[p + "att.r_k"] = (H, N)
    else:
        for c in "xwkvrg": t[p + "att.time_maa_" + c] = (E,)
        t[p + "att.time_maa_w1"], t[p + "att.time_maa_w2"] = (E, 5), (5, 1, E)
        t[p + "att.time_decay"], t[p + "att.time_faaaa"] = (E,), (H, N)
        t[p + "att.time_decay_w1"], t[p + "att.time_decay_w2"] = (E, R), (R, E)
        t[p + "att.gate.weight"] = t[p + "ffn.receptance.weight"] = (E, E)
        t[p + "ffn.time_maa_k"] = t[p + "ffn.time_maa_r"] = (E,)
    return t


def header(t, dtype="BF16", width=2):
    head, at = {}, 0
    for k, s in t.items():
        n = width
        for d in s: n *= d
        head[k] = {"dtype": dtype, "shape": s, "data_offsets": [at, at + n]}
        at += n
    return J(head)


for v in (6, 7):
    t = rwkv(v)
    names = list(t)
    half = [{k: t[k] for k in names[i::2]} for i in (0, 1)]
    arch = f"Rwkv{v}ForCausalLM" if v == 6 else "RWKV7ForCausalLM"
    files = [f"model-0000{i + 1}-of-00002.safetensors" for i in (0, 1)]
    index = J({"metadata": {"total_size": 9}, "weight_map": {k: files[i % 2] for i, k in enumerate(names)}})
    config = J({"architectures": [arch], "model_type": "rwkv", "head_dim": N, "norm_eps": 1e-5, "hidden_size": E, "bos_token_id": None, "group_norm_epsilon": 64e-5})
    for f, how in {"": 0, "-bf": 4, "-q8": 64, "-f16": 128}.items():
        put("folder", f"one{v}{f}", b"\xff".join([bytes([how, 0]), config, b"", header(t), b""]))
    for kind in (1, 2, 3):  # a number that is none in the first tensor
        for f, how, more in (("", 0, 0), ("-f16", 128, 0), ("-bf16", 4, 128), ("-q8", 64 | 4, 0), ("-f32", 4, 0)):
            for d, w in (("BF16", 2), ("F32", 4), ("F64", 8)) if not f else (("F32", 4),):
                put("folder", f"odd{v}-{kind}{f}-{d.lower()}", b"\xff".join([bytes([how, kind << 2 | more]), config, b"", header(t, d, w), b""]))
    put("folder", f"f64-{v}", b"\xff".join([b"\0\0", config, b"", header(t, "F64", 8), b""]))
    put("folder", f"f64-f16-{v}", b"\xff".join([b"\x80\0", config, b"", header(t, "F64", 8), b""]))
    put("folder", f"bf16-{v}", b"\xff".join([b"\4\x80", config, b"", header(t, "F32", 4), b""]))
    put("folder", f"f32-{v}", b"\xff".join([b"\4\0", config, b"", header(t, "F32", 4), b""]))
    put("folder", f"shards{v}", b"\xff".join([b"\x0c\1", config, index, header(half[0]), header(half[1]), b""]))
    put("folder", f"series{v}", b"\xff".join([b"\x0c\1", config, b"", header(half[0]), header(half[1]), b""]))
    put("folder", f"short{v}", b"\xff".join([b"\x0c\2", config, index, header(half[0]), b""]))
    put("folder", f"swap{v}", b"\xff".join([b"\x0c\1", config, index, header(half[1]), header(half[0]), b""]))
    put("folder", f"extra{v}", b"\xff".join([b"\1\0", config, b"", header(t), b""]))
    put("folder", f"noconfig{v}", b"\xff".join([b"\0\0", b"", b"", header(t), b""]))
    put("folder", f"twice{v}", b"\xff".join([b"\x0c\1", config, index, header(half[0]), header(t), b""]))
    put("folder", f"words{v}", b"\xff".join([b"\0\x10", config, b"", b"1 'a' 1\n2 'b' 1\n", header(t), b""]))
    put("folder", f"jinja{v}", b"\xff".join([b"\0\x30", config, b"", b"1 'a' 1\n2 'b' 1\n", b"{{ x }}", header(t), b""]))
    put("folder", f"tokconf{v}", b"\xff".join([b"\0\x50", config, b"", b"1 'a' 1\n2 'b' 1\n", b'{"chat_template":"{{ x }}"}', header(t), b""]))
    for i, more in enumerate([{"head_dim": 3}, {"norm_bias": False}, {"hidden_act": "relu"}, {"attn": {}}, {"norm_eps": 1}, {"group_norm_epsilon": 1}, {"head_size_divisor": 4},
                              {"value_dim": [E, None]}, {"value_dim": [E + 1]}, {"value_dim": E}, {"head_dim": "x"}, {"norm_bias": "no"}, {"hidden_act": True}, {"vocab_size": 9},
                              {"architectures": ["Rwkv6ForCausalLM" if v == 7 else "RWKV7ForCausalLM"]}]):
        put("folder", f"says{v}-{i}", b"\xff".join([b"\0\0", J(json.loads(config) | more), b"", header(t), b""]))
    for i, (k, shape) in enumerate({"emb.weight": (V, E, 1, 2), "blocks.0.att.r_k": (E,), "blocks.0.att.time_faaaa": (E,), "blocks.0.ln1.weight": (1, E), "blocks.0.att.w1": (R, E),
                                    "blocks.0.att.key.weight": (E, E + 1), "blocks.0.att.time_maa_w2": (5, 1, E + 1), "blocks.0.extra": (1,), "blocks.0.ffn.s_emb.weight": (V, E),
                                    "blocks.0.qkv.weight": (V, E), "blocks.0.att.v0": (E,), "blocks.0.att.v1": (E, R), "blocks.7.ln1.weight": (E,)}.items()):
        put("folder", f"shape{v}-{i}", b"\xff".join([b"\0\0", config, b"", header(t | {k: shape}), b""]))
    hf = {("model." + k.replace("blocks.", "layers.").replace("emb.weight", "embeddings.weight").replace("ln_out", "norm").replace("att.", "attention.").replace("ffn.", "feed_forward.")
           if not k.startswith("head") else "lm_head.weight"): x for k, x in t.items()}
    put("folder", f"hf{v}", b"\xff".join([b"\0\0", config, b"", header(hf), b""]))
    hf = {k.replace("attention.", "attn.").replace("x_r", "x_x").replace("ln1", "attn_norm").replace("ln2", "ffn_norm").replace("w0", "w_lora.lora.2.bias").replace("w1", "w_lora.lora.0.weight")
          .replace("w2", "w_lora.lora.2.weight").replace("receptance", "r_proj").replace("key", "k_proj").replace("value", "v_proj").replace("output", "o_proj"): x for k, x in hf.items()}
    put("folder", f"fla{v}", b"\xff".join([b"\0\0", config, b"", header(hf), b""]))
    put("folder", f"both{v}", b"\xff".join([b"\0\0", config, b"", header(t | {"model.blocks.0.ln1.weight": (E,)}), b""]))
put("folder", "llama", b"\xff".join([b"\0\0", J({"architectures": ["LlamaForCausalLM"]}), b"", b"{}", b""]))
put("folder", "type", b"\xff".join([b"\0\0", J({"model_type": "rwkv7"}), b"", b"{}", b""]))
put("folder", "params", b"\x10")
# more tensors than are taken where it is fuzzed
put("folder", "tensors", b"\xff".join([b"\0\0", J({"architectures": ["LlamaForCausalLM"]}), b"", J({"t%d" % i: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i in range(520)}), b""]))
put("folder", "adapter", b"\x20")
put("folder", "index", b"\xff".join([b"\0\0", b"", b'{"weight_map":{"a":"../x","b":"model.safetensors"}}', b"{}", b""]))
put("folder", "index2", b"\xff".join([b"\0\0", b"", b'{"weight_map":{"a":"model.safetensors"},"weight_map":{}}', b"{}", b""]))
put("folder", "meta", b"\xff".join([b"\0\0", b"", b"", b'{"__metadata__":{"format":"pt"},"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}  ', b""]))


def transformer(kv=4, extra=()):
    t = {"model.embed_tokens.weight": (3, 8), "model.norm.weight": (8,)}
    p = "model.layers.0."
    for n in ("input_layernorm", "post_attention_layernorm"): t[p + n + ".weight"] = (8,)
    for n, s in (("q", (8, 8)), ("k", (kv, 8)), ("v", (kv, 8)), ("o", (8, 8))): t[p + f"self_attn.{n}_proj.weight"] = s
    for n, s in (("gate", (6, 8)), ("up", (6, 8)), ("down", (8, 6))): t[p + f"mlp.{n}_proj.weight"] = s
    t.update(extra)
    return t


HF = dict(hidden_size=8, num_hidden_layers=1, intermediate_size=6, num_attention_heads=2, num_key_value_heads=1, vocab_size=3,
          max_position_embeddings=16, rms_norm_eps=1e-5, head_dim=4, tie_word_embeddings=True)
ROPE = {"rope_theta": 1e4, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}
YARN = {"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "attention_factor": 1.5}}
P = "model.layers.0."
QK = {P + f"self_attn.{n}_norm.weight": (4,) for n in "qk"}
AROUND = {P + f"{n}_feedforward_layernorm.weight": (8,) for n in ("pre", "post")}
MOE = {k: s for k, s in transformer(extra=QK).items() if ".mlp." not in k}
MOE[P + "mlp.gate.weight"] = (2, 8)
for e in range(2):
    for n, s in (("gate", (6, 8)), ("up", (6, 8)), ("down", (8, 6))): MOE[P + f"mlp.experts.{e}.{n}_proj.weight"] = s
for name, cls, more, t in (
        ("llama", "LlamaForCausalLM", ROPE, transformer()), ("yarn", "Qwen2ForCausalLM", YARN, transformer()),
        ("qwen3", "Qwen3ForCausalLM", {}, transformer(extra=QK)),
        ("gemma2", "Gemma2ForCausalLM", dict(sliding_window=4, query_pre_attn_scalar=4, attn_logit_softcapping=50.0, final_logit_softcapping=None, layer_types=["sliding_attention"]),
         transformer(extra=AROUND)),
        ("moe", "Qwen3MoeForCausalLM", dict(num_experts=2, num_experts_per_tok=1, moe_intermediate_size=6, norm_topk_prob=True), MOE)):
    config = J(dict(HF, architectures=[cls], **more))
    put("folder", f"hf-{name}", b"\xff".join([b"\4\0", config, b"", header(t), b""]))
    put("folder", f"hf-{name}-f32", b"\xff".join([b"\4\0", config, b"", header(t, "F32", 4), b""]))
plain = J(dict(HF, architectures=["LlamaForCausalLM"]))
for kind in (1, 2, 3):  # a number that is none
    for f, how, more in (("", 0, 0), ("-f16", 128, 0), ("-bf16", 4, 128), ("-q8", 64 | 4, 0)):
        for d, w in (("F32", 4), ("F64", 8)):
            put("folder", f"hf-odd-{kind}{f}-{d.lower()}", b"\xff".join([bytes([how, kind << 2 | more]), plain, b"", header(transformer(), d, w), b""]))
names = list(transformer())
half = [{k: transformer()[k] for k in names[i::2]} for i in (0, 1)]
index = J({"metadata": {"total_size": 9}, "weight_map": {k: f"model-0000{i % 2 + 1}-of-00002.safetensors" for i, k in enumerate(names)}})
put("folder", "hf-shards", b"\xff".join([b"\x0c\1", J(dict(HF, architectures=["LlamaForCausalLM"])), index, header(half[0]), header(half[1]), b""]))


def mixed(t):
    """The same of tensors of several types: {name: (dtype, shape)}."""
    head, at = {}, 0
    for k, (d, s) in t.items():
        n = {"I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2}.get(d, 1)
        for x in s: n *= x
        head[k] = {"dtype": d, "shape": s, "data_offsets": [at, at + n]}
        at += n
    return J(head)


# Matrices that are stored otherwise, 8 by 8: what stands for one of them.
STORED = {
    "fp8": ({"quant_method": "fp8", "weight_block_size": [4, 4]}, {"weight": ("F8_E4M3", (8, 8)), "weight_scale_inv": ("F32", (2, 2)), "input_scale": ("F32", ())}),
    "fp8-one": ({"quant_method": "fp8"}, {"weight": ("F8_E5M2", (8, 8)), "weight_scale": ("BF16", ())}),
    "int8": ({"quant_method": "compressed-tensors", "format": "int-quantized"}, {"weight": ("I8", (8, 8)), "weight_scale": ("BF16", (8, 1))}),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 4}, {"qweight": ("I32", (1, 8)), "qzeros": ("I32", (2, 1)), "scales": ("F16", (2, 8)), "g_idx": ("I32", (8,))}),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 4, "version": "gemm"}, {"qweight": ("I32", (8, 1)), "qzeros": ("I32", (2, 1)), "scales": ("F16", (2, 8))}),
    "w4": ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}},
           {"weight_packed": ("I32", (8, 1)), "weight_scale": ("BF16", (8, 2)), "weight_shape": ("I64", (2,)), "weight_zero_point": ("I32", (1, 2)), "weight_g_idx": ("I32", (8,))}),
}
for name, (says, parts) in STORED.items():
    t = {}
    for k, s in transformer(8).items():
        if k.endswith("_proj.weight"): t.update({k[:-6] + n: x for n, x in parts.items()})
        else: t[k] = ("BF16", s)
    config = J(dict(HF, architectures=["LlamaForCausalLM"], intermediate_size=8, num_key_value_heads=2, quantization_config=says))
    for how in (0, 4): put("folder", f"stored-{name}-{how}", b"\xff".join([bytes([how, 0]), config, b"", mixed(t), b""]))
    bad = [(k, x) for k, (d, shape) in parts.items() for x in ((d, tuple(n + 1 for n in shape) or (3,)), ("F32" if d != "F32" else "I32", shape), None)]
    for i, (k, x) in enumerate(bad):  # one part of one matrix is none
        one = {n: ("BF16", s) for n, s in transformer(8).items() if n != P + "mlp.up_proj.weight"}
        one |= {P + "mlp.up_proj." + n: p for n, p in (parts | {k: x}).items() if p}
        put("folder", f"stored-bad-{name}-{i}", b"\xff".join([b"\0\0", config, b"", mixed(one), b""]))
t = {k: ("BF16", s) for k, s in {"model.embed_tokens.weight": (3, 32), "lm_head.weight": (3, 32), "model.norm.weight": (32,), P + "input_layernorm.weight": (32,),
     P + "post_attention_layernorm.weight": (32,), P + "self_attn.sinks": (2,), P + "mlp.router.weight": (2, 32), P + "mlp.router.bias": (2,),
     P + "mlp.experts.gate_up_proj_bias": (2, 64), P + "mlp.experts.down_proj_bias": (2, 32)}.items()}
for n, o, i in (("q", 8, 32), ("k", 4, 32), ("v", 4, 32), ("o", 32, 8)):
    t[P + f"self_attn.{n}_proj.weight"], t[P + f"self_attn.{n}_proj.bias"] = ("BF16", (o, i)), ("BF16", (o,))
for n, o in (("gate_up", 64), ("down", 32)):
    t[P + f"mlp.experts.{n}_proj_blocks"], t[P + f"mlp.experts.{n}_proj_scales"] = ("U8", (2, o, 1, 16)), ("U8", (2, o, 1))
config = J(dict(HF, architectures=["GptOssForCausalLM"], hidden_size=32, intermediate_size=32, num_local_experts=2, num_experts_per_tok=1, sliding_window=4,
                tie_word_embeddings=False, rope_parameters={"rope_type": "default"}, quantization_config={"quant_method": "mxfp4"}))
put("folder", "stored-mxfp4", b"\xff".join([b"\0\0", config, b"", mixed(t), b""]))
WIDE = ["sliding_attention", "full_attention"]
TURNS = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default"}}
t = {"model.embed_tokens.weight": (3, 8), "model.norm.weight": (8,), "model.embed_tokens_per_layer.weight": (3, 8), "model.per_layer_model_projection.weight": (8, 8),
     "model.per_layer_projection_norm.weight": (4,)}
for il in range(2):
    p, d = f"model.layers.{il}.", 4 + 4 * il
    for n in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm", "post_per_layer_input_norm"): t[p + n + ".weight"] = (8,)
    t.update({p + "per_layer_input_gate.weight": (4, 8), p + "per_layer_projection.weight": (8, 4), p + "layer_scalar": (1,), p + "self_attn.q_proj.weight": (2 * d, 8),
              p + "self_attn.o_proj.weight": (8, 2 * d), p + "self_attn.q_norm.weight": (d,), p + "self_attn.k_norm.weight": (d,), p + "self_attn.k_proj.weight": (d, 8)})
    if not il: t[p + "self_attn.v_proj.weight"] = (d, 8)
    for n, s in (("gate", (6, 8)), ("up", (6, 8)), ("down", (8, 6))): t[p + f"mlp.{n}_proj.weight"] = s
config = J(dict(HF, architectures=["Gemma4ForCausalLM"], num_hidden_layers=2, layer_types=WIDE, global_head_dim=8, attention_k_eq_v=True, num_global_key_value_heads=1,
                hidden_size_per_layer_input=4, sliding_window=4, rope_parameters=TURNS))
put("folder", "hf-gemma4", b"\xff".join([b"\4\0", config, b"", header(t), b""]))


# ---- two files ----------------------------------------------------------------------------------------------------
for i, e in enumerate([b"", bit, cut, number(0, 10), number(4, 9), number(8, 1), number(12, 3), number(16, 1), number(20, 250), number(24, 5), number(8, 10)]):
    for how in (0, 1, 4, 6, 32, 64):
        put("bins", f"{i}-{how}", bytes([how]) + e)
short = struct.pack("<7i", 4, 4, 1, 2, 1, -3, 2) + bytes(4 * 136)
words = struct.pack("<I", 9) + b"".join(struct.pack("<fI", -i, len(w)) + w for i, w in enumerate([b"<unk>", b"<s>", b"</s>"]))
put("bins", "classifier", bytes([8]) + struct.pack("<H", len(short)) + short + words)


def rwkv_cpp(t):
    b = struct.pack("<6I", 0x67676D66, 101, V, E, L, 0)
    for k, s in t.items():
        if ".att.x_" in k:
            if not k.endswith("x_r"): continue
            k, s = k[:-1] + "rwkvag", (6, 1, E)
        n = 4
        for d in s: n *= d
        b += struct.pack("<3I", len(s), len(k), 0) + struct.pack(f"<{len(s)}I", *s[::-1]) + k.encode() + b"\x30" * n
    return b


world = b"1 b'\\x00' 1\n2 'a\\n\\u4e2d' 5\n"
for v in (6, 7):
    m = rwkv_cpp(rwkv(v))
    for how in (0, 32):
        put("bins", f"rwkv{v}-{how}", bytes([8 | how]) + struct.pack("<H", len(m)) + m + world)
for i, w in enumerate([b"1 'a' 1\n1 'b' 1\n", b"9 'a' 1\n", b"1 'a' 2\n", b"1 \"a\n", b"x", b"1 b'\\xzz' 1\n", b"1 'a' 1\r\n2 'b' 1", b"2 'b' 1\n"]):
    m = rwkv_cpp(rwkv(7))
    put("bins", f"world{i}", bytes([8]) + struct.pack("<H", len(m)) + m + w)

# ---- shapes ---------------------------------------------------------------------------------------------------------
small = {"arch": "llama", "n_layer": 1, "n_embd": 32, "n_head": 2, "n_head_kv": 1, "n_ff": 32, "n_vocab": 300, "tied": True, "rope_base": 10000.0, "rms_eps": 1e-5,
         "rope_factor": 8, "n_ctx_train": 64, "head_dim": 16}
v7 = {"arch": "rwkv7", "n_layer": 2, "n_embd": 64, "n_vocab": 3, "tied": False, "rank_decay": 4, "rank_iclr": 4, "rank_value": 4, "rank_gate": 4, "norm_eps": 1e-5}
v6 = {"arch": "rwkv6", "n_layer": 2, "n_embd": 64, "n_vocab": 3, "tied": False, "rank_decay": 4, "rank_mix": 4, "rescale_every": 6}
for how in (0, 2, 3, 128):
    for name, s in {"llama": small, "qwen2": small | {"arch": "qwen2"}, "qwen3": small | {"arch": "qwen3"}, "v7": v7, "v6": v6,
                    "untied": small | {"tied": False}, "words": small | {"n_vocab": 400}}.items():
        if name.startswith("qwen"): s = {k: v for k, v in s.items() if k != "rope_factor"}
        put("synth", f"{name}{how}", bytes([how]) + J(s))
for i, o in enumerate([{}, [], {"arch": 1}, {"arch": "gpt"}, small | {"x": 1}, small | {"n_layer": "1"}, small | {"n_layer": 0}, small | {"tied": 1}, small | {"rope_base": "x"},
                       small | {"rope_base": 0}, small | {"n_head": 3}, small | {"n_head_kv": 3}, small | {"rank_mix": 2}, v7 | {"n_head": 3}, v7 | {"head_dim": 7},
                       v7 | {"tied": True}, v7 | {"rope_base": 1.0}, small | {"arch": "qwen2", "head_dim": 8}, {"arch": "llama", "n_layer": 1}, small | {"head_dim": 15},
                       small | {"n_embd": 33}]):
    put("synth", f"bad{i}", b"\0" + J(o))
put("synth", "json", b"\0{\"arch\":")

# ---- the laboratory ----------------------------------------------------------------------------------------------------
env = {"hash": "0123abcd", "machine": "x86_64", "cpu_model": "CPU", "cores": 2, "kernel": "Linux", "load": [0.1, 0.2, 0.3]}
git, build = {"commit": "abc", "dirty": False}, {"cc": "gcc", "flags": "-O3", "isa": "avx2"}
model = {"path_name": "m.gguf", "sha256": "0" * 64, "fingerprint": "1" * 16, "name": "m", "arch": "llama", "type": "F16", "params": 10, "bytes": 20}
config = {"n_prompt": 8, "n_gen": 4, "depth": 0, "samples": 6, "threads": 2, "cpu": "avx2", "kv": "f16", "chunk": 512, "sampler": "greedy"}
stats = lambda x: {"n": 6, "median": x, "mean": x, "sd": 0.1, "cv": 0.01, "min": x, "max": x + 1, "ci95": [x - 0.5, x + 0.5], "outliers": 0}


def run(ts, k=0, **more):
    sample = lambda i: {"decode_tok_s": 100.0 + i + k, "prefill_tok_s": 900.0 + i, "ttft_ms": 3 + i / 7, "peak_anon_mb": 1.5, "ids": [1, 2, 3], "gaps_ms": [0.5, 0.25],
                        "invalid_reason": None}
    return {"schema": "hone.bench/1", "id": "e2e", "record": f"r{ts}{k}", "ts": f"2026-01-{ts:02d}T00:00:00Z", "title": "t", "change": "c", "decode_tok_s": 100.0 + k,
            "prefill_tok_s": 900.0, "ttft_ms": 3.0, "quality": "q1-00000000-11111111", "valid": True, "invalid_reason": None, "notes": ["one"], "config": config,
            "model": model, "env": env, "git": git, "build": build, "engine": {"name": "hone", "version": "0.1.0"},
            "unit": {"decode_tok_s": "tok/s", "prefill_tok_s": "tok/s", "ttft_ms": "ms", "peak_anon_mb": "MB"},
            "better": {"decode_tok_s": "higher", "prefill_tok_s": "higher", "ttft_ms": "lower", "peak_anon_mb": "lower"},
            "samples": [sample(i) for i in range(6)], "stats": {"decode_tok_s": stats(100.0), "prefill_tok_s": stats(900.0), "ttft_ms": stats(3.0)}} | more


def one(ts, id="tok.decode", **more):
    return {"schema": "hone.bench/1", "id": id, "record": f"o{ts}{id}", "ts": f"2026-01-{ts:02d}T01:00:00Z", "title": "t", "change": None, "value": 40.5 + ts, "unit": "ns",
            "better": "lower", "samples": [40.0, 41.0, 40.5, 40.25, 42, 39], "stats": stats(40.5), "config": {"threads": 1, "cpu": "avx2"}, "model": model, "env": env,
            "git": git, "valid": True} | more


ab = {"schema": "hone.ab/1", "id": "e2e", "ts": "2026-01-09T00:00:00Z", "a": {"label": "this"}, "b": {"label": "kv=f32"}, "seed": 1, "rounds": 8, "verdict": "same",
      "results": [{"id": "e2e", "metric": "decode_tok_s", "unit": "tok/s", "n": 8, "ratio": 1.01, "ci95": [0.99, 1.02], "ci": [0.98, 1.03], "level": 0.95, "margin": 0.03,
                   "verdict": "same", "note": ""}], "env": env}
train = [{"schema": "hone.train/1", "kind": "run", "ts": "2026-01-10T00:00:00Z", "base": {"file": "m.gguf", "arch": "llama", "type": "F16", "parameters": 10, "hash": "1"},
          "output": "a.gguf", "settings": {"lr": 0.001, "seq": 16}, "trainable": 5, "machine": {"cpu": "avx2", "threads": 2, "hone": "0.1.0"}}] + [
         {"schema": "hone.train/1", "kind": "step", "step": i, "epoch": i / 9, "loss": 3 / (i + 1), "val_loss": 2.0 if i % 3 == 0 else None, "lr": 0.001, "grad_norm": 1.0,
          "n_tok": 16, "n_target": 15, "tok_s": 100.0, "ms": {"data": 0.1, "gradient": 2.0, "optimizer": 0.2, "eval": None}, "peak_rss_mb": 20.0} for i in range(1, 7)] + [
         {"schema": "hone.train/1", "kind": "end", "ts": "2026-01-10T00:01:00Z", "why": "done", "step": 6, "best_val": 2.0, "best_step": 3, "skipped": 0}]
point = lambda n, x: {"threads": n, "best": x, "most": x + 1, "median": x - 1, "spread": 0.02, "cpu_use": 0.99}
peaks = {"schema": "hone.peaks/1", "ts": "2026-01-01T00:00:00Z", "machine": {"hash": "0123abcd", "level": "avx2", "cpu_model": "CPU", "kernel": "Linux", "cores": 2},
         "clock_ghz": [2.0, 3.0], "cache_mb": 32, "buffer_mb": 256, "huge_pages": 0.5, "load": 0.1, "steal_pct": 0, "cpus": "0-1", "doubts": None, "bound": True, "quick": False}
for i, k in enumerate(["read", "int8", "f32", "bf16", "dispatch", "barrier"]):
    pts = [point(n, 20.0 * n * (i + 1)) for n in (1, 2)]
    if k == "read": pts = [p | {"streams": 4, "ahead": 1024} for p in pts]
    peaks[k] = {"how": "as ever", "unit": "GB/s", "points": pts}
kl = one(11, "quality.kl") | {"unit": "nats", "extra": {"kl": {"mean": 0.1}}, "partial": True}
mem = {"schema": "hone.memory/1", "ts": "2026-01-12T00:00:00Z", "parts": [{"part": "weights", "how": "pages", "mb": 5.5, "reserved_mb": 6.0, "pct": 51.8}],
       "peak_mb": 10.0, "rest_pct": 1.0, "model": model, "env": env}
prof = {"schema": "hone.profile/1", "ts": "2026-01-13T00:00:00Z", "model": model, "env": env, "valid": None,
        "decode": {"ms": 2.0, "ops": [{"op": "attn_qkv", "type": "F16", "n": 3, "ms": 0.5, "pct": 25.0, "gb_s": 3.0, "bound": "read", "roof_pct": 50.0}]},
        "prefill": {"ms": 2.0, "ops": []}}
lines = lambda *r: b"\n".join(J(x) for x in r) + b"\n"
many = [run(i, i % 3 * 10) for i in range(1, 9)]
put("history", "runs", lines(*many[:3]))
put("history", "one", lines(*[one(i) for i in range(1, 13)], one(3, valid=False, invalid_reason="noise")))
put("history", "mixed", lines(run(1), one(2), ab, mem, prof, kl, peaks))
put("history", "train", lines(*train))
put("history", "old", lines({k: v for k, v in run(1).items() if k not in ("id", "record", "statistics", "unit", "better")}))
put("history", "broken", b"{\"schema\":\n\n[1]\n{\"a\":1}\n" + lines(one(1)) + b"{\"schema\":\"hone.bench/1\"")
put("history", "same", lines(one(1), one(1), one(1) | {"record": "x"}))
put("history", "kern", lines({"schema": "hone.kern/1", "ts": "2026-01-01T00:00:00Z", "results": [
    {"kernel": "gemv.Q8_0", "level": "avx2", "threads": 1, "columns": 1, "packed": False, "us": stats(3.0), "rate": 20.0, "unit": "GB/s", "share": 0.9, "roof": "read",
     "valid": True}], "env": env}))
put("history", "whole", json.dumps(run(1), indent=1))
put("history", "invalid", lines(run(1, valid=False, invalid_reason="busy"), run(2, quality=None, valid=None)))
put("history", "gate", lines({"schema": "hone.gate/1", "ts": "2026-01-01T00:00:00Z", "verdict": "regressed", "rows": [{"id": "e2e", "metric": "decode_tok_s", "verdict": "same"}]}))
oldkern = {"schema": "hone.kern/1", "ts": "2026-01-01T00:00:00Z", "env": "0123abcd", "commit": "abc", "peaks": peaks, "results": [1, {
    "id": "kern.gemv.Q8_0", "unit": "GB/s", "value": 20.0, "samples_us": [3.0, 3.1, 2.9, 0, "x", 3.2, 3.3, 3.4], "stats_us": stats(3.0), "config": {"threads": 2},
    "roofline": {"bound": "read", "pct": 90.0, "bytes": 1e6, "ops": 2e6}}, {"id": "kern.x", "unit": "us", "samples_us": [1, 2, 3, 4, 5, 6], "roofline": {"bound": "int8", "pct": 0}}]}
put("history", "oldkern", lines(oldkern, {k: v for k, v in oldkern["results"][1].items()} | {"schema": "hone.kern/1", "ts": "2026-01-02T00:00:00Z", "env": env}))
put("history", "gates", lines({"schema": "hone.gate/1", "ts": "2026-01-01T00:00:00Z", "baseline": "b1", "verdict": "regressed", "records": [run(1), one(2), {"schema": "x"}, 3], "results": [
    {"id": "e2e", "metric": "decode_tok_s", "unit": "tok/s", "ratio": 0.8, "ci": [0.7, 0.9], "n_after": 1e300, "n_before": 6, "margin": 0.1, "verdict": "regressed"}]}))
rounds = [{"a": 1.0, "b": 1.1, "ba": False}, {"a": {"decode_tok_s": 2.0}, "b": {"decode_tok_s": 2.2}}, {"a": 1, "b": 1, "voided": True}, {"a": -1, "b": 0}]
put("history", "rounds", lines(*[ab | {"ts": f"2026-01-0{i + 1}T00:00:00Z", "rounds": rounds[:n], "results": [ab["results"][0] | {"verdict": v, "ratio": q, "n": 1e300}]}
                                 for i, (n, v, q) in enumerate([(1, "improved", 1.1), (2, "regressed", 0.9), (4, "inconclusive", 1.0), (4, "what", 1.2), (3, "same", None)])],
                               ab | {"a": "this", "b": "that", "result": 1, "verdict": "improved", "ratio": 1.5, "metric": "tok/s", "unit": "tok/s"}))
put("history", "many", lines(*[one(i) for i in range(1, 11)], *[one(i, model=model | {"path_name": "other.gguf"}, env=env | {"hash": "eeee0000"}) for i in range(11, 20)],
                             *[one(20 + i // 2, config={"threads": 1 + i % 2, "kv": "f32", "list": [1]}) for i in range(4)]))
odd = "a&b<c>d\"e'f|g\\h`i*j_k~l#m!n\to\np \u200b = x \uff1d @y"
put("history", "marks", lines(*[one(i, title=odd, change=odd, model=model | {"name": odd, "path_name": odd}, env=env | {"cpu_model": odd, "kernel": odd}) for i in range(1, 9)],
                              run(9, title=odd, change="=1+2"), run(10, title="+x", change="@y"), run(11, 1e15, title="-z", change="1e3")))
for k, x in enumerate((1e-9, 1e-300, 1e16, 1e300, -1e20)):
    put("history", f"size{k}", lines(*[one(i, stats={"n": 6, "median": x, "min": x, "max": x, "mean": x, "sd": x, "ci95": [x, x]}, samples=[x] * 6) for i in range(1, 9)], run(9, x), run(10, x)))
quality = {"hash": "q1-00000000-11111111", "valid": True, "invalid_reason": None, "prompts": "text", "distinct": 8, "ids": [[1, 2], [3, 4]]}
files = {"path": "m.gguf", "bytes": 20, "sha256": "0" * 64, "files": [{"name": "m.gguf", "bytes": 20, "sha256": "0" * 64}]}
base = {"schema": "hone.baseline/1", "name": "b1", "ts": "2026-01-01T00:00:00Z", "ids": ["e2e"], "model": files, "env": env, "git": git, "engine": {"name": "hone", "version": "0.1.0"},
        "quality": quality["hash"], "quality_detail": quality, "args": ["--n-prompt=8", "--kv=f16"], "records": [run(1)]}
put("baseline", "good", J(base))
put("baseline", "other", J(base) + b"\0" + J([run(2, 50, env=env | {"cores": 4, "hash": "ffffffff"}, quality="q1-00000000-22222222")]))
put("baseline", "two", J(base | {"ids": ["e2e", "tok.decode"], "records": [run(1), one(1)]}) + b"\0" + J([run(2, 1), one(2)]))
put("baseline", "none", J(base) + b"\0[]")
other = files | {"sha256": "1" * 64, "files": [{"name": "m.gguf", "bytes": 20, "sha256": "1" * 64}]}
put("baseline", "bytes", J(base) + b"\0" + J([run(2, model=other, quality="q1-00000000-33333333")]))
put("baseline", "answers", J(base) + b"\0" + J([run(2, 9, quality=quality | {"hash": "q1-22222222-33333333", "ids": [[1, 2], [3, 5]]}, env=env | {"cpu_model": "other"})]))
put("baseline", "threads", J(base | {"records": [run(1, config=config | {"threads": 1})]}) + b"\0" + J([run(2)]))
for i, o in enumerate([{}, {"schema": "x"}, base | {"records": []}, base | {"records": [1]}, base | {"ids": 1}, base | {"args": [1, None]}, base | {"records": [run(1, valid=False)]},
                       base | {"model": None, "quality": None, "quality_detail": None}, base | {"model": files | {"files": []}}, base | {"records": [one(1, samples=[])]}, base | {"ts": 1, "git": [], "engine": "x"}]):
    put("baseline", f"bad{i}", J(o))
put("baseline", "json", b"{\"schema\"")
for i, (q, r) in enumerate([(quality, "q2-00000000-11111111"), (quality, quality | {"hash": "q1-00000000-44444444"}), (quality, quality | {"hash": "q1-99999999-44444444"}),
                            (quality | {"hash": "q2-00000000-11111111"}, quality | {"hash": "q1-00000000-11111111"}), (quality, quality | {"hash": "q2-00000000-1", "q1": quality["hash"]}),
                            (quality | {"hash": ""}, quality), (quality, quality | {"hash": "q1-99999999-44444444", "ids": [[1, 2], [3, 4]]})]):
    put("baseline", f"kinds{i}", J(base | {"quality": q["hash"], "quality_detail": q}) + b"\0" + J([run(2, 3, quality=r)]))
    put("baseline", f"detail{i}", J(base | {"quality": q, "quality_detail": q}) + b"\0" + J([run(2, 3, quality=r if isinstance(r, dict) else quality | {"hash": r})]))
more = files | {"bytes": 30, "sha256": "2" * 64, "files": [{"name": "m.gguf", "bytes": 30, "sha256": "2" * 64}]}
for i, m in enumerate([more, files | {"files": files["files"] * 2, "sha256": "3" * 64}, files | {"files": files["files"], "sha256": ""}]):
    put("baseline", f"sizes{i}", J(base) + b"\0" + J([run(2, model=m)]))
two = [run(1), run(2, env=env | {"hash": "ffffffff"})]
for i, o in enumerate([base | {"name": "-x"}, base | {"name": "b" * 300}, base | {"name": "b2"}, base | {"records": two}, base | {"records": [run(1, env={})]}, base | {"records": [run(1, samples=[])]},
                       base | {"records": [run(1, schema="x")]}, base | {"records": [run(1, id="nosuch")]}, base | {"quality_detail": quality | {"valid": False, "reason": "NaN"}},
                       base | {"args": ["--nosuch=1"]}, base | {"args": ["--threads=2", "x"]}]):
    put("baseline", f"make{i}", J(o))
put("peaks", "peaks", b"\0" + J(peaks))
for i, o in enumerate([peaks | {"quick": True}, peaks | {"schema": "x"}, peaks | {"clock_ghz": [1]}, peaks | {"read": 1}, peaks | {"int8": {"how": "x", "points": []}}, peaks | {"load": -1},
                       peaks | {"ts": 3}, peaks | {"machine": {}}, peaks | {"bound": 1}, peaks | {"f32": {"how": "x", "points": [point(2, 5), point(1, 5)]}},
                       peaks | {"cpus": "x" * 300}, {}]):
    put("peaks", f"bad{i}", b"\0" + J(o))
steps = [{"lse": 1.5, "ids": [i % 2, 1 - i % 2], "logits": [1.0, 0.5]} for i in range(512)]
ids = [[i % 2 for i in range(64)] for p in range(8)]
answers = {"schema": "hone.answers/1", "hash": "q1-00000000-11111111", "prompts": "text", "valid": True, "invalid_reason": None, "distinct": 8, "ids": ids, "label": "m",
           "n_vocab": 2, "vocab_sha256": "0" * 64, "model": model, "config": config, "sketch": steps}
put("peaks", "answers", b"\1" + J(answers))
put("peaks", "answers-cut-full", b'\4{"full":"' + b"a" * 22 + "é".encode() + b'xyz"}\0{}')  # a letter of two bytes is cut
short = {k: v for k, v in answers.items() if k != "sketch"}
for i, o in enumerate([{}, short, short | {"n_vocab": 0}, short | {"hash": ""}, short | {"ids": []}, short | {"vocab_sha256": "z" * 64}]):
    put("peaks", f"answers{i}", b"\1" + J(o))

for i, (kind, at, rest) in enumerate([(7, 20, b""), (3 | 64, 900, b""), (1 | 4 << 3, 60, b"abcd"), (4, 300, b"\x08"), (6, 500, b"\x10"), (5, 2, b"\x09\"hash\": 1,")]):
    put("peaks", f"kept{i}", b"\2" + edit(kind, at, rest))
put("peaks", "kept", b"\2")
FULL = {"full": "q2-00000000-11111111"}
for i, o in enumerate([{"full": "q2-00000000-22222222"}, {"ids": {"7": None}}, {"sketch": {"9": None}}, {"n_vocab": 5}, {"prompts": "text"}, {"hash": "q9-0", "reason": "why"},
                       {"vocab_sha256": "00zz" * 16}, {"sketch": {"0": {"lse": "x"}}}, {"hash": "q1-00000000-33333333"}, {"sketch": {"0": {"ids": [9, 9]}}},
                       {"vocab_sha256": "1" * 64, "ids": {"0": [2] * 64}}, {"hash": "", "sketch": None, "valid": False}, {"ids": {"0": {"63": 2}}}, {"model": model, "config": config}]):
    put("peaks", f"answers-to{i}", b"\4" + J(FULL) + b"\0" + J(FULL | o))

# ---- templates: those of tests/golden, some in one file, the faulty ones alone ---------------------------------------
if len(sys.argv) > 2:
    cases = json.load(open(sys.argv[2]))["cases"]
    good, bad = [c["template"] for c in cases if "error" not in c], [c["template"] for c in cases if "error" in c]
    for i in range(0, len(good), 6): put("jinja", f"golden{i}", "\n".join(good[i:i + 6]))
    for i, t in enumerate(bad): put("jinja", f"fault{i}", t)

# ---- pieces of text ------------------------------------------------------------------------------------------------------
texts = ["don't we'LL I'M 12345678 a1b2 x_y  \t\n\n  end ", "\u4e2d\u6587\uff0c\u3002 \u30ab\u30bf \ud55c\uae00 \u0e01\u0e02 \u0430\u0301b \u00c9t\u00e9 \u0661\u0662\u0663\u0664 \u00b2 \u216b _a \u200d",
         "<SPECIAL_12><fim12> AAZ ABCDEFGHIZ Hello/World!!\r\n ... '' \"x\" 1,000,000.50 \U0001f600\u2026\u201c\u2018\u2014\uff01 camelCaseWord ABCdef",
         "   leading\n\n\n 1234567890123456789\u0967\u0968 a'b 'tis \u00a0\u3000x $+<=>^~|` .a !b #include", "<|start_1234|> sol123 x=1;y=-2 0x1F 3rd\u0969 \u0669a"]
for pre in range(32):
    put("pieces", f"{pre}", bytes([pre]) + texts[pre % len(texts)].encode() + b" " + texts[(pre + 2) % len(texts)].encode())
    put("pieces", f"{pre}b", bytes([pre]) + texts[(pre + 1) % len(texts)].encode() + texts[(pre + 3) % len(texts)].encode())

# ---- adapters as folders ---------------------------------------------------------------------------------------------------
def peft(name, config, module="self_attn.q_proj", n_in=8, n_out=8, r=2, extra=None):
    head, at = {}, 0
    for half, shape in (("A", [r, n_in]), ("B", [n_out, r])):
        head[f"base_model.model.model.layers.0.{module}.lora_{half}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * shape[0] * shape[1]]}
        at += 4 * shape[0] * shape[1]
    if extra: head[extra] = {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]}; at += 8
    h = J(head)
    put("peft", "t-" + name, J({"peft_type": "LORA", "r": r, "lora_alpha": 4} | config) + b"\0" + struct.pack("<Q", len(h)) + h + struct.pack("<f", 0.5) * (at // 4))


for i, pattern in enumerate([{"q_proj": 1.5}, {"^model.layers.0.self_attn.q_proj": 2}, {"x" * 80: 1}, {"k_proj": 1, "q.proj": 3}, {"q_proj": "x"}, {"q_proj": 1e10}, [], {"q_proj": [1]}]):
    peft(f"alpha{i}", {"alpha_pattern": pattern})
for i, c in enumerate([{"rank_pattern": {"q_proj": 2}}, {"modules_to_save": [ ]}, {"modules_to_save": ["x"]}, {"bias": "all"}, {"use_rslora": True}, {"layers_to_transform": [0]}, {"r": 3},
                       {"peft_type": "IA3"}, {"lora_alpha": "x"}, {"r": 0}, {"fan_in_fan_out": True}, {"init_lora_weights": True}, {"target_parameters": [" "]}, {"megatron_config": {}}]):
    peft(f"config{i}", c)
peft("saved", {}, extra="base_model.model.model.norm.weight")
peft("saved2", {}, extra="base_model.model.lm_head.modules_to_save.weight")
peft("bias", {}, extra="base_model.model.model.layers.0.self_attn.q_proj.bias")
peft("down", {}, "mlp.down_proj", 12, 8)
peft("other", {}, "mlp.router", 12, 8)

def peft_two(name, config, r=(2, 3), value=0.5):
    head, at = {}, 0
    for module, rank, n_in, n_out in (("self_attn.q_proj", r[0], 8, 8), ("mlp.down_proj", r[1], 12, 8)):
        for half, shape in (("A", [rank, n_in]), ("B", [n_out, rank])):
            head[f"base_model.model.model.layers.0.{module}.lora_{half}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * shape[0] * shape[1]]}
            at += 4 * shape[0] * shape[1]
    h = J(head)
    put("peft", "two-" + name, J({"peft_type": "LORA", "r": 2, "lora_alpha": 4} | config) + b"\0" + struct.pack("<Q", len(h)) + h + struct.pack("<f", value) * (at // 4))


peft_two("ranks", {"rank_pattern": {"down_proj": 3}})
peft_two("alphas", {"rank_pattern": {"down_proj": 3}, "alpha_pattern": {"down_proj": 32}})
peft_two("same", {}, (2, 2))
peft_two("beyond", {}, (2, 2), 70000.0)

# ---- templates: what the golden ones leave out ----------------------------------------------------------------------------
for i, t in enumerate([
        "{{ '%x %o %X' % (-255, -8, -1) }}{{ '%*d|%-*d' % (5, 1, -6, 2) }}{{ '%c%c' % (65, 'x') }}", "{{ '%a' % 1 }}", "{{ '%c' % 55296 }}", "{{ '%*d' % (99999, 1) }}",
        "{{ '{:q}'.format(1) }}", "{{ strftime_now('%k %l %f %g %P %r %c %n %t %z %Z %Q %-d %_H %0e %') }}", "{{ ' ab '.lstrip() }}{{ ' ab '.rstrip() }}{{ 'ab'.capitalize() }}{{ 'aba'.rindex('a') }}",
        "{% set x = [1] %}{% do x.extend([2, 3]) %}{% do x.insert(0, 9) %}{% do x.insert(-99, 8) %}{% do x.remove(9) %}{% do x.reverse() %}{{ x.copy() }}{% do x.clear() %}{{ x }}",
        "{% set x = {'a': 1} %}{{ x.pop('a') }}{{ x.pop('b', 2) }}{{ x.setdefault('c', 3) }}{{ x.setdefault('c') }}{{ x.setdefault('d') }}{% do x.clear() %}{{ x }}{{ dict(a=1, **{'b': 2}) }}",
        "{% set x = {'a': 1} %}{{ x.pop('z') }}", "{% set x = [1] %}{% do x.remove(5) %}", "{{ {(1, 2): 3}[(1, 2)] }}{{ {1.5: 1, true: 2, none: 3} }}",
        "{% set ns = namespace(d={}) %}{% for i in range(40) %}{% do ns.d.update({i: i}) %}{% endfor %}{{ ns.d.pop(5) }}{{ ns.d[39] }}{{ ns.d.get(77) }}",
        "{{ [1.5, 0.0]|select|list }}{{ [{}, {'a': 1}]|select|list }}{{ [range, loop]|first }}", "{{ range == range }}{{ 'a'.upper == 'a'.upper }}{{ cycler(1) == cycler(1) }}", "{{ 'x' * 5000000 }}",
        "{{ a < 1.5 }}{{ 1.5 < a }}{{ true < 2 }}{{ [1] < [2] }}{{ 'a' < 'b' }}", "{{ messages|tojson(indent=2) }}{{ u8|tojson(ensure_ascii=true) }}{{ {'b': 1, 'a': [1.5, none, true]}|tojson(sort_keys=true) }}",
        "{{ '[1, {\"a\": null}]'|from_json }}{{ 'x'|from_json }}", "{{ {1: 2}|tojson }}{{ {(1, 2): 3}|tojson }}", "{{ [range]|tojson }}", "{{ s|tojson(separators=(',', ':')) }}{{ d.keys()|tojson }}",
        "{{ 'A b'|title }}{{ 'aB'.swapcase() }}{{ 'a-b c'.title() }}{{ '\u00df\u0130'|upper }}{{ 'x'.ljust(5, '-') }}{{ 'x'.zfill(5) }}{{ '+1'.zfill(5) }}",
        "{{ 'a,b,c'.split(',', 1) }}{{ 'a b'.rsplit() }}{{ 'a\nb'.splitlines(true) }}{{ 'abc'.partition('b') }}{{ 'abc'.rpartition('z') }}{{ 'x'.join(['a', 'b']) }}",
        "{{ 'abc'.startswith(('a', 'b')) }}{{ 'abc'.endswith('c', 1) }}{{ 'abc'.isalpha() }}{{ '1'.isdigit() }}{{ 'a1'.isalnum() }}{{ ' '.isspace() }}{{ 'A'.isupper() }}{{ 'a'.islower() }}",
        "{{ 'abab'.replace('a', 'x', 1) }}{{ 'abab'.replace('', '-') }}{{ 'a'.center(5, '*') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ 'a'.expandtabs() }}"]):
    put("jinja", f"more{i}", t)

# ---- files of rwkv.cpp: edits of the one that fuzz_bins.c makes; a header of 24 bytes, then tensors ---------------------
for i, (at, what, width) in enumerate([(0, 0, 2), (4, 0, 2), (4, 4, 2), (8, 10, 2), (12, 10, 2), (16, 0, 2), (20, 0, 2), (20, 11, 2), (24, 0, 2), (24, 4, 2), (28, 0, 2), (28, 10, 2),
                                       (32, 10, 2), (32, 17, 2), (32, 18, 2), (32, 20, 2), (32, 24, 2), (36, 0, 2), (36, 17, 2), (40, 0, 2), (40, 10, 2), (36, 10, 2)]):
    put("bins", f"rwkv{i}", bytes([1 | 2]) + number(at, what, width))
for i, n in enumerate((10, 24, 30, 40, 50, 60)):
    put("bins", f"rwkv-cut{i}", bytes([1 | 2]) + edit(3 | 64, n))
put("bins", "rwkv-old", bytes([1 | 2]) + edit(1 | 1 << 3, 4, b"\x64") + edit(1 | 1 << 3, 32, b"\x02"))
put("bins", "rwkv-removed", bytes([1 | 2]) + edit(1 | 1 << 3, 32, b"\x04"))
put("bins", "rwkv-rows", bytes([1 | 2]) + edit(1 | 1 << 3, 32, b"\x02") + edit(1 | 1 << 3, 36, b"\x21"))

# ---- conversations, command lines ------------------------------------------------------------------------------------------
talk = {"schema": "hone.chat/1", "model": "m", "params": {"temp": 0.8, "top-k": 40, "top-p": 0.95, "min-p": 0.05, "repeat-penalty": 1.0, "presence-penalty": 0.0,
        "frequency-penalty": 0.0, "repeat-last-n": 64, "seed": 5, "n-predict": 10},
        "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "a\0b"}, {"role": "assistant", "content": "\u4e2d"}]}
put("talk", "good", J(talk))
for i, o in enumerate([{}, [], talk | {"schema": "x"}, talk | {"messages": 1}, talk | {"messages": [{"role": "cat", "content": "x"}]}, talk | {"messages": [{"role": "user"}]},
                       talk | {"messages": talk["messages"][::-1]}, talk | {"params": 1}, talk | {"params": {"temp": "x"}}, talk | {"params": {"top-k": -1}}, talk | {"params": {"x": 1}},
                       talk | {"params": {"seed": 1.5}}, talk | {"params": {"temp": 1e99}}, talk | {"model": 3}, talk | {"messages": []}]):
    put("talk", f"bad{i}", J(o))
put("talk", "twice", b'{"schema":"hone.chat/1","schema":"hone.chat/1"}')
put("talk", "json", b"{")
for i, (c, w) in enumerate([(0, "-m x.gguf -p hi -n 5 --temp 0.5"), (0, "--model=x --top-k 5 --seed 99 --ids 1,2,3"), (0, "-m"), (0, "--tmep 1"), (0, "--temp nan"),
                            (0, "-- -x --y"), (0, "--temp 1 --temp 2"), (1, "-m x --kv f16 --kv=zzz"), (2, "e2e -r 5 --lora a --lora b:0.5"), (4, "--data x --lr 1e-3 --steps 5"),
                            (3, "in.safetensors -o out.gguf --type Q8_0"), (5, "a b c"), (8, "this git:HEAD --rounds 5"), (9, "save x --margin 0.05"), (10, "a.jsonl --html b"),
                            (11, "--base x --lora y:-1 -o z"), (7, "--text x --no-bos"), (6, "-h"), (0, "--json --verbose -v"), (0, "--json=1"), (0, "-c 5x"),
                            (0, "-c 99999999999999999999"), (0, "--seed -1"), (0, "-"), (0, "--"), (0, "--top-p 1e400"), (0, "--mod x"), (0, "1,2, 3\n4 5"), (0, "1,,2"),
                            (0, "1.5e0 0x10 -0 +5"), (0, "99999999999"), (0, "x.gguf hi"), (0, "-m a -m b"), (0, "-m a -m a --temp 1 --temp 1"),
                            (0, "--ids 1 -p x"), (0, "-p x -f y"), (4, "--steps 5 --epochs 2"), (0, "-n 5 -n 6 -m a"), (2, "-p 1,2 -t 1,2 --lora a --json"), (0, "--ids " + ",".join(map(str, range(400)))),
                            (0, ",".join(map(str, range(400)))), (3, "a b c d"), (10, "a b"), (0, "--cpu=scalar -t 2 -c 64 --kv q8_0 --chunk 5")]):
    put("options", f"{i}", bytes([c]) + b"\0".join(x.encode() for x in w.split(" ")))
M = b'[{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"assistant","content":"A"},{"role":"user","content":"V"}]'
P = b'[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]'
C = b'[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\\"x\\":1}"}}]}]'
T = b'[{"type":"function","function":{"name":"f","description":"d","parameters":{}}}]'
for i in range(10): put("chat", f"format{i}", b"\0".join([bytes([0x70 + i if i % 2 else 0x50 + i]), M]))
for name, parts in {"parts": [b"\x50", P, b"", b"", b"{{ messages[0].content }}"], "lists": [b"\x50", P, b"", b"", b"{% for p in messages[0].content %}{{ p.text }}{% endfor %}"],
                    "calls": [b"\x50", C, T, b"", b"{{ tools|tojson }}{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.x }}{% endfor %}{% endfor %}"],
                    "calltext": [b"\x50", C, T, b"", b"{{ tools[0].function.name }}{% for m in messages %}{% for c in m.tool_calls %}{{ '<' + c.function.arguments }}{% endfor %}{% endfor %}"],
                    "object": [b"\x50", C.replace(b'"{\\"x\\":1}"', b'{"x":[1]}'), b"", b"", b"{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments }}{% endfor %}{% endfor %}"],
                    "vars": [b"\x70", M, b"", b'{"enable_thinking":true,"d":"x"}', b"{{ enable_thinking }}{{ d }}{{ datetime }}{{ functions }}", b"2026-02-03T04:05:06"],
                    "time": [b"\x50", M, b"", b"", b"{{ strftime_now('%Y') }}{{ bos_token }}", b"2026-02-30T04:05:06"],
                    "gemma": [b"\x50", M, b"", b"", b"{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].role }}"],
                    "type": [b"\x50", b'[{"role":"user","content":[{"type":"image_url"}]}]'], "role": [b"\x50", b'[{"content":"x"}]'], "array": [b"\x50", b"{}"], "json": [b"\x50", b"["],
                    "tools": [b"\x50", M, b"{}"], "variables": [b"\x50", M, b"", b"[]"], "content": [b"\x50", b'[{"role":"user","content":5}]'],
                    "named": [b"\x50", M, b"", b"", b"chatml"], "unknown": [b"\x50", M, b"", b"", b"nosuch"],
                    "argtext": [b"\x50", C.replace(b'"{\\"x\\":1}"', b'"[1"'), b"", b"", b"{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}"],
                    "argdict": [b"\x50", C, b"", b"", b"{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}"],
                    "badcalls": [b"\x50", b'[{"role":"user","content":"","tool_calls":5}]']}.items():
    put("chat", name, b"\0".join(parts))
ORDERS = [b'[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"u"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]',
          b'[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"system","content":"t"},{"role":"assistant","content":"b"},{"role":"user","content":"v"}]',
          b'[{"role":"system","content":"s"},{"role":"assistant","content":"a"},{"role":"user","content":"u"},{"role":"assistant","content":"so","thinking":"r","tool_calls":[{"function":{"name":"f","arguments":""}}]},{"role":"tool","content":"r","name":null},{"role":"system","content":""},{"role":"user","content":"w"}]']
for i, m in enumerate(ORDERS):
    for k, t in enumerate([b"{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}{{ m.role }}{{ m.content }}{% endfor %}",
                           b"{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turn') }}{% endif %}{{ m.content }}{% endfor %}",
                           b"{% for t in tools %}{{ t }}{% endfor %}{% for m in messages %}{% if m.role != 'system' %}{{ m.role ~ m.content }}{% endif %}{% endfor %}",
                           b"{{ messages[0].content[0].text }}{% for m in messages[1:] %}{{ m.content if m.content is string else m.content[0].text }}{% endfor %}{{ tools | tojson }}",
                           b"{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}"]):
        put("chat", f"order-{i}-{k}", b"\0".join([b"\x50", m, T if i == 2 and k else b"", b"", t]))

# answers: settings of two bytes and more, a template of each shape, what a model answers
EACH = "{% for m in messages %}"
def calls(before, call, after): return (EACH + "{{ m.content }}{% if m.tool_calls %}" + before + "{% for c in m.tool_calls %}{% set f = c.function %}" + call + "{% endfor %}" + after +
                                        "{% endif %}</s>{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}")
ITEMS = "{% for k, v in f.arguments.items() %}"
SHAPES = {
    "think": EACH + "{{ m.role }}: {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}</s>{% endfor %}{% if enable_thinking %}<think>{% endif %}",
    "thinking": EACH + "{% if m.thinking %}<|START_THINKING|>{{ m.thinking }}<|END_THINKING|>{% endif %}<|START_TEXT|>{{ m.content }}<|END_TEXT|>\n{% endfor %}",
    "parts": EACH + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'thinking' %}[THINK]{{ p.thinking }}[/THINK]{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}</s>{% endfor %}",
    "harmony": EACH + "<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|end|>{% endfor %}{{ reasoning_effort }}", "channel": EACH + "{{ m.content }}<|channel>thought\n<channel|>{% endfor %}",
    "begin": EACH + "<|begin|>{{ m.role }}<|content|>{{ m.content }}<|end|>{% endfor %}{# <|think|> #}", "granite": "<|start_of_role|> <think></think><response></response>" + EACH + "{{ m.content }}{% endfor %}",
    "end": EACH + "{{ m.role }}: {{ m.content }}\n\n{% endfor %}", "blank": EACH + "{{ m.content }} {% endfor %}", "none": "x", "refuses": "{{ raise_exception('no') }}", "budget": EACH + "{{ m.content }}{% endfor %}{% if thinking_budget == 0 %}<nothink>{% endif %}",
    "c-json": calls("", '<tool_call>{"name": {{ f.name | tojson }}, "arguments": {{ f.arguments | tojson }}}</tool_call>', ""), "c-args": calls("", "[ARGS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}", ""),
    "c-xml": calls("", "<tool_call>\n<function={{ f.name }}>\n" + ITEMS + "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>", ""),
    "c-gemma": calls("", "<|tool_call>call:{{ f.name }}{{ '{' }}" + ITEMS + "{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v | tojson }}{% endif %}{{ '' if loop.last else ',' }}{% endfor %}{{ '}' }}<tool_call|>", ""),
    "c-python": calls("<tcs>[", "{{ '' if loop.first else ', ' }}{{ f.name }}(" + ITEMS + "{{ k }}={{ v | tojson }}{{ '' if loop.last else ', ' }}{% endfor %})", "]<tce>"),
    "c-bare": calls("", '{"name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}', ""), "c-list": calls("[TOOL_CALLS][", '{{ "" if loop.first else ", " }}{"name": {{ f.name | tojson }}, "arguments": {{ f.arguments | tojson }}, "id": {{ c.id | tojson }}}', "]"),
    "c-ids": calls("", "<|call|>functions.{{ f.name }}:{{ loop.index0 }}<|args|>{{ f.arguments | tojson }}<|end_call|>", ""),
}
TOOLS = b'[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"k":{"type":"string"},"n":{"type":"integer"}},"required":["k"]}}},{"type":"function","function":{"name":"g","strict":true,"parameters":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}]'
SAID = b'<think>a</think>b {"name": "f", "arguments": {"k": "v"}}</tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function> f(k="v")]'
SHAPES["c-harmony"] = (EACH + "{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}<|start|>assistant<|channel|>commentary to=functions.{{ f.name }} <|constrain|>json<|message|>{{ f.arguments | tojson }}<|call|>"
                       "{% else %}<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}")
SHAPES["c-number"] = calls("", "<|call|>functions.{{ f.name }}:{{ loop.index0 }}<|args|>{{ f.arguments | tojson }}<|end_call|>", "").replace("functions.{{ f.name }}:{{ loop.index0 }}", "{{ c.id }}")
of = lambda **o: b'[{"type":"function","function":{"name":"f","parameters":' + J(o) + b'}}]'
FORMS = [of(type="object", properties={"k": {"const": "v"}}), of(type="object", properties={"k": {"enum": ["a", "bb", 3]}}), of(type="object", properties={"k": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}), of(type="object"), of(),
         of(type="object", properties={"k": {"type": "string"}}, required=["z"]), of(type="object", properties={"k": {}}, patternProperties={"a": {}}), of(type="object", properties={"k": {"type": ["string", "null"]}}, additionalProperties={"type": "integer"}),
         of(type="array"), of(type="object", properties={"k": {"type": "string", "minLength": 2, "pattern": "^a+$"}}), of(type="object", properties={"k": {"type": "object", "properties": {"x": {"type": "string"}}}}),
         of(type="object", properties={"k": {"$ref": "#/none"}}), of(type="object", properties={"k": {"not": {}}}), of(type="object", propertyNames={"maxLength": 3})]
# shapes of published templates, what an answer in them looks like
ANSWER = "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% elif m.role == 'tool' %}<|tool|>{{ m.content }}{% else %}<|assistant|>{{ m.content or '' }}{% if m.tool_calls %}"
CALL, OVER = "{% for c in m.tool_calls %}{% set f = c.function %}", "{% endif %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}"
RAW = "{{ v if v is string else v | tojson }}"
sep = lambda x: "{{ '' if loop.first else '" + x + "' }}"
WRITTEN = {
    "w-tags": (CALL + sep("\\n") + '<tool_call>\n{"name": {{ f.name | tojson }}, "arguments": {{ f.arguments | tojson }}}\n</tool_call>{% endfor %}', '<tool_call>\n{"name": "f", "arguments": {"k": "v\\u00e9\\"", "n": [1, {"a": null}]}}\n</tool_call>\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call><|end|>'),
    "w-ids": ("[TOOL_CALLS][" + CALL + sep(", ") + '{"name": {{ f.name | tojson }}, "arguments": {{ f.arguments | tojson }}, "id": {{ c.id | tojson }}}{% endfor %}]', '[TOOL_CALLS][{"name": "f", "arguments": {"k": "v"}, "id": "abc123456"}, {"id": "x", "name": "g", "arguments": "no"}]<|end|>'),
    "w-id-first": ("<|START_ACTION|>[\n" + CALL + sep(",\\n") + '    {"tool_call_id": {{ c.id | tojson }}, "tool_name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}{% endfor %}\n]<|END_ACTION|>', '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "f", "parameters": {"k": "v"}}\n]<|END_ACTION|><|end|>'),
    "w-name-key": ("<|tools_prefix|>[" + CALL + sep(", ") + "{{ '{' }}{{ f.name | tojson }}: {{ f.arguments | tojson }}{{ '}' }}{% endfor %}]<|tools_suffix|>", '<|tools_prefix|>[{"f": {"k": "v"}}, {"odd": 1}]<|tools_suffix|><|end|>'),
    "w-bare": ("{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" + CALL + '{"name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}{% endfor %}', '{"name": "f", "parameters": {"k": "v"}}<|end|>'),
    "w-bare-other": ("{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" + CALL + '{"name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}{% endfor %}', '{"answer": [1, 2, {"name": "f"}]} is JSON<|end|>'),
    "w-mark": (CALL + "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}{% endfor %}", 'text[TOOL_CALLS]f[ARGS]{"k": "v"}[TOOL_CALLS]nosuch[ARGS]{}<|end|>'),
    "w-name-id": (CALL + "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}{% endfor %}", '[TOOL_CALLS]f[CALL_ID]abc123456[ARGS]{"k": "v"}[TOOL_CALLS]f[CALL_ID]a b[ARGS]{}<|end|>'),
    "w-id-name": (CALL + "<|tc:begin|>{{ c.id }}<|tc:name|>{{ f.name }}<|tc:args|>{{ f.arguments | tojson }}<|tc:end|>{% endfor %}", '<|tc:begin|>call_1<|tc:name|>f<|tc:args|>{"k": "v"}<|tc:end|><|tc:begin|>call_2<|tc:name|>z<|tc:args|><|end|>'),
    "w-sections": ("<|open calls|>" + CALL + "<|one call|>{{ f.name }}<|sep|>{{ f.arguments | tojson }}<|call end|>{% endfor %}<|calls end|>", '<|open calls|><|one call|>f<|sep|>{"k": "v"}<|call end|><|one call|>zz<|sep|>{}<|call end|><|calls end|><|end|>'),
    "w-fenced": ("<|open calls|>" + CALL + sep("\\n") + "<|one call|>function<|sep|>{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```<|call end|>{% endfor %}<|calls end|>", '<|open calls|><|one call|>function<|sep|>f\n```json\n{"k": "v"}\n```<|call end|><|calls end|><|end|>'),
    "w-function": (CALL + "<function={{ f.name }}>{{ f.arguments | tojson }}</function>{% endfor %}", '<function=f>{"k": "v"}</function><function=f>{"k": broken</function><|end|>'),
    "w-id-holds": ("<|section|>" + CALL + "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|>{% endfor %}<|section_end|>", '<|section|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"k": "v"}<|tool_call_end|><|tool_call_begin|>:f.<|tool_call_argument_begin|>{}<|tool_call_end|><|section_end|><|end|>'),
    "w-lines": (CALL + sep("\\n") + "<tool_call>\n<function={{ f.name }}>\n" + ITEMS + "<parameter={{ k }}>\n" + RAW + "\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}", '<tool_call>\n<function=f>\n<parameter=k>\na\nb\n</parameter>\n<parameter=n>\n12\n</parameter>\n<parameter=odd>\n[1, \'x\', True, None, {"a": 0x1}]\n</parameter>\n</function>\n</tool_call><|end|>'),
    "w-keys": (CALL + "<tool_call>{{ f.name }}" + ITEMS + "<arg_key>{{ k }}</arg_key><arg_value>" + RAW + "</arg_value>{% endfor %}</tool_call>{% endfor %}", "<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value><arg_key>" + "y" * 80 + "</arg_key><arg_value>{'a': ('b',), \"c\": 1_0}</arg_value></tool_call><|end|>"),
    "w-attributes": (CALL + '<function name="{{ f.name }}">' + ITEMS + '<param name="{{ k }}">' + RAW + "</param>{% endfor %}</function>{% endfor %}", '<function name="f"><param name="k">v</param><param name="n">-1.5e3</param></function><|end|>'),
    "w-section": ("<x:tool_call>\n" + CALL + '<invoke name="{{ f.name }}">\n' + ITEMS + '<parameter name="{{ k }}">' + RAW + "</parameter>\n{% endfor %}</invoke>\n{% endfor %}</x:tool_call>", '<x:tool_call>\n<invoke name="f">\n<parameter name="k">v</parameter>\n</invoke>\n</x:tool_call><|end|>'),
    "w-marked": ("<|DSML|calls>\n" + CALL + '<|DSML|invoke name="{{ f.name }}">\n' + ITEMS + '<|DSML|parameter name="{{ k }}" string="{{ \'true\' if v is string else \'false\' }}">' + RAW + "</|DSML|parameter>\n{% endfor %}</|DSML|invoke>\n{% endfor %}</|DSML|calls>",
                 '<|DSML|calls>\n<|DSML|invoke name="f">\n<|DSML|parameter name="k" string="true">v</|DSML|parameter>\n<|DSML|parameter name="n" string="false">[1,2]</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|calls><|end|>'),
    "w-gemma": (CALL + "<|tool_call>call:{{ f.name }}{{ '{' }}" + ITEMS + "{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v | tojson }}{% endif %}{{ '' if loop.last else ',' }}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}",
                '<|tool_call>call:f{k:<|"|>v<|"|>,n:[1,{a:<|"|>b<|"|>}],t:true}<tool_call|><|end|>'),
    "w-python": ("<tcs>[" + CALL + sep(", ") + "{{ f.name }}(" + ITEMS + "{{ k }}={{ v | tojson }}{{ '' if loop.last else ', ' }}{% endfor %}){% endfor %}]<tce>", '<tcs>[f(k="a\\n\\x41\\u00e9\\U0001F600\\q", n=None), f(k=\'\'\'t\'\'\', n=-1_000.5, o={"a": True, \'b\': (1, 2,)}), g()]<tce><|end|>'),
}
for name, (text, said) in WRITTEN.items():
    for i, (how, think) in enumerate([(1, 1), (1 + 4, 64), (1 + 16 + 1, 64)]):
        put("chat", f"{name}-{i}", b"\0".join([bytes([0x50, how, think]), M, TOOLS, b"", (ANSWER + text + OVER).encode(), b"", said.encode()]))
    for k in range(1, 6): put("chat", f"{name}-cut{k}", b"\0".join([bytes([0x50, 1, 1]), M, TOOLS, b"", (ANSWER + text + OVER).encode(), b"", said.encode()[:len(said) * k // 6]]))
for i, (how, name, said) in enumerate([(129, "think", b"<think>aaaaaaaaaaaaaaaaaaaaaa"), (193, "think", b"<think>aaaaaaaaaaaaaaaaaaaaaa"), (193, "think", b"<think>a</think>\n\n{\"k\": 1}"), (65, "think", b"<think>a</think>{\"k\":1}"), (65, "think", b"\n{\"k\":1}"), (65, "harmony", b"<|channel|>analysis<|message|>a<|end|>"),
                                       (193, "harmony", b"<|channel|>analysis<|message|>aaaaaaaaaaaaaaaaa"), (193, "end", b"{\"k\":1}"), (65, "granite", b"<think>a</think>\n<response>{\"k\":1}</response>"), (69, "c-json", b"{\"k\":1}"), (133, "c-json", b"<think>aaaaaaaaaaaaaaaaaaa"), (5, "think", b"<think>a</think>\n<tool_call>")]):
    put("chat", f"held-{i}", b"\0".join([b"\x50" + bytes([how, 1]), M, TOOLS if name[:2] == "c-" or how == 5 else b"", b'{"enable_thinking":true}' if i % 2 else b"", SHAPES[name].encode(), b"", said]))
TOLD = J([{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"k":1}'}}]}, {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
          {"role": "tool", "name": "g", "content": "r2"}, {"role": "user", "content": "more"}, {"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "g", "arguments": {}}}]}, {"role": "tool", "content": "r3"}])
for i, name in enumerate(("end", "think", "c-json", "c-xml", "none")): put("chat", f"told-{i}", b"\0".join([b"\x50\x01\x01", TOLD, TOOLS, b"", SHAPES[name].encode(), b"", SAID]))
EVERY = ("{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% else %}<|assistant|>{% if m.content %}>>>all\n{{ m.content }}{% endif %}" + CALL +
         ">>>{{ f.name }}\n{{ f.arguments | tojson }}{% endfor %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>>>>{% endif %}{% if tools %}{% endif %}")
for i, said in enumerate([b'f\n{"k": "v"}<|end|>', b'all\ntext>>>f\n{"k": "v"}<|end|>']): put("chat", f"every-{i}", b"\0".join([b"\x50\x01\x01", M, TOOLS, b"", EVERY.encode(), b"", said]))
for name in ("c-json", "c-xml", "c-gemma", "c-python", "c-harmony"):
    for i, tools in enumerate(FORMS):
        for how in (1, 5) if i < 3 else (5,): put("chat", f"form-{name}-{i}-{how}", b"\0".join([b"\x50" + bytes([how, 1]), M, tools, b"", SHAPES[name].encode(), b"", SAID]))
for name, t in SHAPES.items():
    for i, (how, think) in enumerate([(1, 3), (2, 1 | 128), (3, 2 | 64), (1 + 4, 4 | 64), (1 + 16 + 8, 5), (1 + 32, 1), (1 + 64, 1), (1 + 128, 1), (1 + 4 + 16, 64)]):
        if i > 2 and not name.startswith("c-") and (i, name) not in ((5, "think"), (6, "think"), (7, "think")): continue
        said = SAID if i % 3 else bytes(range(1, 200, 3))
        put("chat", f"says-{name}-{i}", b"\0".join([bytes([0x50 if i % 2 else 0x40, how, think]), M if i else M[:-1] + b',{"role":"assistant","content":"x","reasoning_content":"r"}]', TOOLS if name[:2] == "c-" and i else b"", b"", t.encode(), b"", said]))
L = b'[{"role":"user","content":"q"},{"role":"assistant","content":" a "}]'
for i, (how, messages, t) in enumerate([(b"\x80", L, SHAPES["end"]), (b"\x90", L, SHAPES["end"]), (b"\x80", M, SHAPES["end"]), (b"\x80", L, "x"), (b"\x80", L, "{{ messages[1].content }}"), (b"\x80", L, "{{ messages[1].content | trim }} end"),
                                        (b"\x80", L.replace(b" a ", b""), SHAPES["end"]), (b"\x80\1\1", L, SHAPES["think"])]):
    put("chat", f"goes-on-{i}", b"\0".join([how, messages, b"", b"", t.encode(), b"", b"abc"]))
for i, tools in enumerate([b"[" + b",".join([TOOLS[1:-1]] * 70) + b"]", b"[{}]", b"[5]", TOOLS.replace(b'"f"', b'"h"'), TOOLS.replace(b'"g"', b'"f"'), TOOLS.replace(b'"additionalProperties":false', b'"additionalProperties":true'), b"[]", b'[{"name":"f"}]']):
    if i: put("chat", f"tools-{i}", b"\0".join([b"\x50\x09\x01", M, tools, b"", SHAPES["c-json"].encode(), b"", SAID]))
for i, v in enumerate([b"[]", b'{"enable_thinking":false}']): put("chat", f"think-{i}", b"\0".join([b"\x50\x02\x02", M, b"", v, SHAPES["think"].encode(), b"", b"a"]))

# ---- http: u8 parser or server, without keys or with; u8[3] cuts; what a client sends -------------------------
JSON = b"Host: localhost\r\nContent-Type: application/json\r\n"
for which in (0, 1, 3):
    for name, text in {
        "get": b"GET /a?b=c%20d HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: q\r\n\r\n",
        "old": b"GET /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\nHEAD /a HTTP/1.0\r\n\r\n",
        "two": b"POST /a HTTP/1.1\r\n" + JSON + b"Content-Length: 3\r\n\r\nabc\r\nGET /s HTTP/1.1\r\nHost: [::1]:8\r\n\r\n",
        "chunks": b"POST /s HTTP/1.1\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
        "expect": b"POST /a HTTP/1.1\r\n" + JSON + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\na",
        "absolute": b"GET http://localhost/a?b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "options": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: GET\r\n\r\n",
        "smuggle": b"POST /a HTTP/1.1\r\n" + JSON + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "path": b"GET /%2e%2e%2f%5c%00%c3%a4 HTTP/1.1\r\nHost: a.b\r\n\r\n",
        "fold": b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\nAuthorization : Bearer\n\r\n",
        "length": b"POST /a HTTP/1.1\r\n" + JSON + b"Content-Length: 18446744073709551616\r\n\r\n",
        "key": b"POST /a HTTP/1.1\r\n" + JSON + b"Authorization: Bearer key\r\nContent-Length: 1\r\n\r\na",
        "page": b"OPTIONS /a HTTP/1.1\r\nHost: a.b\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n"
                b"Access-Control-Request-Headers: x-api-key\r\n\r\nGET /s HTTP/1.1\r\nHost: a.b\r\nX-Api-Key: key\r\nOrigin: https://app.example\r\n\r\n",
        "form": b"POST /a HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\na",
    }.items():
        put("http", f"{name}{which}", bytes([which, 30, 128, 200]) + text)
get = lambda path, more=b"": b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + more + b"\r\n"
for name, how, text, cuts in [
        ("asked", 1, get(b"/q?b=c&a", b"A: v\r\n") + get(b"/q") + b"HEAD /q HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x80\x90\xa0"), ("empty", 1, get(b"/n"), b"\1\2\3"), ("waits", 1, get(b"/w") + get(b"/a"), b"\x40\x80\xff"), ("waits-told", 129, get(b"/w") + get(b"/a"), b"\x40\x80\xff"),
        ("waits-old", 1, b"GET /w HTTP/1.0\r\n\r\n", b"\x40\x80\xff"), ("waits-later", 5, get(b"/w"), b"\x40\xff\xff"), ("much", 1, get(b"/b"), b"\x40\x80\xff"), ("much-old", 1, b"GET /b HTTP/1.0\r\n\r\n", b"\x40\x80\xff"), ("much-later", 5, get(b"/b") + b"X", b"\xc0\xc0\xf0"), ("much-told", 1, get(b"/b") + b"X", b"\xc0\xc0\xf0"), ("much-whole", 1, get(b"/b") + b"X" * 20, b"\x90\xa0\xb0"),
        ("head-late", 5, get(b"/a"), b"\x20\x40\x60"), ("body-late", 5, b"POST /a HTTP/1.1\r\n" + JSON + b"Content-Length: 100\r\n\r\nabc" + bytes(97), b"\x50\xa0\xc0"), ("quiet-late", 5, get(b"/a"), b"\xff\xff\xff"), ("drained", 9, get(b"/a") + get(b"/a"), b"\x80\xff\xff"),
        ("worded", 17, get(b"/e?n=6") + b"BAD\r\n\r\n", b"\x40\x80\xff"), ("over", 33, get(b"/a"), b"\x40\x80\xff"), ("afar", 65, get(b"/a"), b"\x40\x80\xff"), ("afar-key", 67, get(b"/a", b"Authorization: Bearer key\r\n"), b"\x40\x80\xff"), ("forbidden", 1, b"GET /a HTTP/1.1\r\nHost: evil\r\n\r\n", b"\1\2\3"),
        ("many", 1, get(b"/a") * 40, b"\x80\x90\xa0"), ("ahead", 1, get(b"/w") + get(b"/a", b"X: " + b"y" * 8000 + b"\r\n"), b"\x80\x90\xa0"), ("large", 1, b"POST /a HTTP/1.1\r\n" + JSON + b"Content-Length: 400\r\n\r\n" + bytes(400), b"\x80\x90\xa0"), ("linger", 5, b"BAD\r\n\r\n" + bytes(200), b"\x08\x10\xff"),
        ("trailer", 3, b"POST /a HTTP/1.1\r\n" + JSON + b"X-Api-Key: key\r\nOrigin: https://app.example\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: " + b"x" * 3000 + b"\r\n\r\n", b"\x80\x90\xa0")]:
    put("http", name, bytes([how]) + cuts + text)
for i in range(18): put("http", f"refused{i}", b"\1\1\2\3" + get(b"/e?n=%d" % i))
