#!/usr/bin/env python3
"""Seeds of fuzz_model and fuzz_vocab that are wrong, or right, in one thing: a model of one layer with a key or a
tensor more, less or other; a vocabulary likewise.
usage: make_tiny.py FOLDER-OF-MODELS FOLDER-OF-VOCABULARIES FOLDER-OF-GGUF. Nothing but the standard library is needed."""
import os
import struct
import sys


def s(x):
    x = x.encode() if isinstance(x, str) else x
    return struct.pack("<Q", len(x)) + x


class arr:  # an array of a type of its own
    def __init__(self, type_, fmt, *v):
        self.type, self.fmt, self.v = type_, fmt, v


def value(v):
    if isinstance(v, arr):
        body = b"".join(s(x) if v.type == 8 else struct.pack("<" + v.fmt, x) for x in v.v)
        return struct.pack("<IIQ", 9, v.type, len(v.v)) + body
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, (str, bytes)):
        return struct.pack("<I", 8) + s(v)
    t = 8 if isinstance(v[0], (str, bytes)) else 6 if isinstance(v[0], float) else 5
    return value(arr(t, "f" if t == 6 else "i", *v))


def gguf(folder, name, kv, tensors=()):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(kv)) + b"".join(s(k) + value(v) for k, v in kv.items())
    data = b""
    for tensor, ne, type_, raw in tensors:
        data += b"\0" * (-len(data) % 32)
        out += s(tensor) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne) + struct.pack("<IQ", type_, len(data))
        data += raw
    if tensors:
        out += b"\0" * (-len(out) % 32) + data
    with open(os.path.join(folder, name), "wb") as f:
        f.write(out)


# ---- models ---------------------------------------------------------------------------------------------------------
E, H, G, F, V = 8, 2, 1, 8, 4


def model(name, kv=None, tensors=None, drop=(), arch="llama"):
    keys = {"general.architecture": arch, f"{arch}.context_length": 64, f"{arch}.embedding_length": E, f"{arch}.block_count": 1,
            f"{arch}.feed_forward_length": F, f"{arch}.attention.head_count": H, f"{arch}.attention.head_count_kv": G,
            f"{arch}.attention.layer_norm_rms_epsilon": 1e-5}
    shapes = {"token_embd.weight": (E, V), "output_norm.weight": (E,), "output.weight": (E, V), "blk.0.attn_norm.weight": (E,), "blk.0.ffn_norm.weight": (E,),
              "blk.0.attn_q.weight": (E, E), "blk.0.attn_k.weight": (E, E // 2), "blk.0.attn_v.weight": (E, E // 2), "blk.0.attn_output.weight": (E, E),
              "blk.0.ffn_gate.weight": (E, F), "blk.0.ffn_up.weight": (E, F), "blk.0.ffn_down.weight": (F, E)}
    types = {}
    for k, v in (kv or {}).items():
        keys[k if "." in k and k.split(".")[0] in ("general", "tokenizer") else f"{arch}.{k}"] = v
    for k, v in (tensors or {}).items():
        shapes[k], types[k] = v if isinstance(v[0], tuple) else (v, 0)
    for k in drop:
        keys.pop(k, None), keys.pop(f"{arch}.{k}", None), shapes.pop(k, None)
    out = []
    for i, (k, ne) in enumerate(shapes.items()):
        n, t = 1, types.get(k, 0)
        for x in ne: n *= x
        raw = b"".join(struct.pack("<f", (i * 7 + j * 3) % 11 / 8 - 0.5) for j in range(n)) if t == 0 else b"\x00\x3c" * n if t in (1, 30) else bytes(n * 8)
        out.append((k, ne, t, raw))
    gguf(sys.argv[1], "t-" + name, keys, out)


model("good")
for a in ("qwen2", "qwen3", "rwkv6", "rwkv7", "gpt2"): model("arch-" + a, arch=a)
model("tied", drop=["output.weight"])
model("qwen3", {}, {"blk.0.attn_q_norm.weight": (4,), "blk.0.attn_k_norm.weight": (4,)}, arch="qwen3")
model("qwen2", {}, {"blk.0.attn_q.bias": (E,), "blk.0.attn_k.bias": (E // 2,), "blk.0.attn_v.bias": (E // 2,)}, arch="qwen2")
model("yarn", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16, "rope.scaling.yarn_attn_factor": 1.5})
model("yarn-more", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.yarn_ext_factor": -1.0, "rope.scaling.yarn_beta_fast": 1.0,
                    "rope.scaling.yarn_beta_slow": 2.0, "rope.scaling.attn_factor": 0.5})
model("yarn-bad", {"rope.scaling.type": "yarn", "rope.scaling.factor": 1e-5, "rope.freq_base": 1.5})
model("linear", {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0, "rope.freq_base": 500.0})
model("scale-none", {"rope.scaling.type": "none", "rope.scaling.factor": 2.0})
model("scale-zero", {"rope.scaling.factor": 0.0})
model("scale-other", {"rope.scaling.type": "longrope"})
model("scale-old", {"rope.scale_linear": 2.0})
model("freqs", {}, {"rope_freqs.weight": (2,)})
model("freqs-f16", {}, {"rope_freqs.weight": ((2,), 1)})
model("rot-odd", {"rope.dimension_count": 3})
model("rot-part", {"rope.dimension_count": 2})
model("rot-part2", {"rope.dimension_count": 2}, {"blk.0.attn_q.bias": (E,), "blk.0.attn_k.bias": (E // 2,), "blk.0.attn_v.bias": (E // 2,)}, arch="qwen2")
model("base-small", {"rope.freq_base": 0.5})
model("fast", {"rope.freq_base": 1.0, "rope.scaling.factor": 0.01})
for k in ("context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon",
          "token_embd.weight", "blk.0.attn_q.weight", "output_norm.weight", "general.architecture"): model("no-" + k.replace(".", "_"), drop=[k])
for k, v in {"embedding_length": 7, "block_count": 0, "attention.head_count": 3, "attention.head_count_kv": 3, "attention.key_length": 2, "attention.value_length": 2,
             "vocab_size": 5, "expert_count": 2, "attention.scale": 3.0, "logit_scale": 2.0, "attention.causal": False, "use_parallel_residual": True, "attn_logit_softcapping": 30.0,
             "attention.layer_norm_rms_epsilon": 0.0, "attention.sliding_window": 4, "context_length": 1 << 31, "attention.clamp_kqv": 1.0, "rope.scaling.alpha": 2.0,
             "attention.temperature_scale": 2.0}.items(): model("key-" + k.replace(".", "_"), {k: v})
NUMBERS = {"u8": arr(0, "B", 0, 0), "i8": arr(1, "b", 0, -1), "u16": arr(2, "H", 0), "i16": arr(3, "h", 0, 0), "i32": arr(5, "i", 0, 0), "f32": arr(6, "f", 0.0, 1.0), "bool": arr(7, "B", 0, 1),
           "text": arr(8, "", "a"), "u64": arr(10, "Q", 0, 0), "i64": arr(11, "q", 0), "f64": arr(12, "d", 0.0, 0.0)}
for name, a in NUMBERS.items(): model("sections-" + name, {"rope.dimension_sections": a, "attention.rope_pattern": a, "attention.recurrent_layers": a})
for name, kv in {"swa": {"attention.key_length_swa": 4, "attention.value_length_swa": 4, "rope.dimension_count_swa": 4, "rope.freq_base_swa": 10000.0, "rope.freq_base": 10000.0},
                 "swa-other": {"attention.key_length_swa": 5}, "swa-turn": {"rope.dimension_count_swa": 2, "rope.dimension_count": 2}, "out": {"embedding_length_out": E}, "out-other": {"embedding_length_out": 9},
                 "layout": {"tensor_data_layout": "reference"}, "layout-meta": {"tensor_data_layout": "Meta AI original pth"}, "layout-other": {"tensor_data_layout": "x"}, "layout-int": {"tensor_data_layout": 1},
                 "act": {"hidden_activation": "swish"}, "act-other": {"hidden_activation": "relu"}, "causal": {"attention.causal": True}, "causal-text": {"attention.causal": "yes"},
                 "scale": {"attention.scale": 0.5}, "unknown": {"nosuch.key": 1}, "unknown-array": {"nosuch": [1, 2]}, "unknown-text": {"nosuch": "x" * 90}, "unknown-true": {"nosuch": True},
                 "unknown-float": {"nosuch": 1.5}, "words": {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a"] * 4, "tokenizer.ggml.remove_extra_whitespaces": True},
                 "suppress": {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.suppress_tokens": [1]}}.items(): model("keys-" + name, kv)
model("one-head", {"attention.head_count": 1, "attention.head_count_kv": 1}, {"blk.0.attn_k.weight": (E, E), "blk.0.attn_v.weight": (E, E)})
for name, a in {"u32": arr(4, "I", 1), "i8": arr(0, "b", 1), "i64": arr(11, "q", 1), "f32": arr(6, "f", 1.0), "two": arr(4, "I", 1, 1), "neg": arr(5, "i", -1), "big": arr(4, "I", 99999999)}.items():
    model("layers-" + name, {"attention.head_count_kv": a})
model("layers-differ", {"block_count": 2, "attention.head_count_kv": arr(4, "I", 1, 2)})
model("layers-same", {"block_count": 2, "attention.head_count_kv": arr(4, "I", 1, 1)})
model("adapter", {"general.type": "adapter"})
model("vector-f16", {}, {"output_norm.weight": ((E,), 1)})
model("vector-i32", {}, {"output_norm.weight": ((E,), 26)})
model("matrix-i32", {}, {"blk.0.attn_q.weight": ((E, E), 26)})
model("matrix-f16", {}, {"blk.0.attn_q.weight": ((E, E), 1)})
model("shape", {}, {"blk.0.attn_q.weight": (E, E - 1)})
model("extra", {}, {"blk.0.attn_sinks.weight": (H,)})
model("bias", {}, {"blk.0.attn_q.bias": (E,)})
model("words", {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "a"], "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0],
                "tokenizer.ggml.token_type": [2, 3, 3, 1]})
model("more-words", {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "a", "b"]})

# ---- numbers that are none ------------------------------------------------------------------------------------------
for name, x in {"f64": 1.5, "f64-inf": float("inf")}.items(): gguf(sys.argv[3], "t-" + name, {}, [("x", (4,), 28, struct.pack("<4d", 1.0, 0.0, -2.0, x))])
for name, e in {"mxfp4": 120, "mxfp4-max": 255}.items(): gguf(sys.argv[3], "t-" + name, {}, [("x", (64,), 39, (bytes([e]) + bytes(range(16))) * 2)])
for name, x in {"f32-nan": float("nan"), "f32": 1.0}.items(): gguf(sys.argv[3], "t-" + name, {}, [("x", (4,), 0, struct.pack("<4f", 1.0, 0.0, -2.0, x))])

# ---- arrays of arrays: of texts, of numbers, of more of them ---------------------------------------------------------
def inner(t, *items): return struct.pack("<IQ", t, len(items)) + b"".join(items)


texts, numbers = inner(8, s("a"), s(""), s("bcd")), inner(4, struct.pack("<I", 7))
for name, (t, items) in {"texts": (9, (texts, texts)), "mixed": (9, (texts, numbers, inner(8))), "deep": (9, (inner(9, texts, numbers), inner(9))), "deeper": (9, (inner(9, inner(9, inner(9, texts))),)),
                         "text-cut": (9, (inner(8, struct.pack("<Q", 99) + b"ab"),)), "count-cut": (9, (struct.pack("<IQ", 8, 5) + s("a"),)), "type": (9, (inner(77, b"abcd"),))}.items():
    with open(os.path.join(sys.argv[3], "t-nested-" + name), "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + s("k.nested") + struct.pack("<I", 9) + inner(t, *items))

# ---- vocabularies -----------------------------------------------------------------------------------------------------
SPM = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(32, 36)] + ["\u2581", "a", "b", "\u2581a", "ab"]
BPE = [chr(c) for c in range(0x61, 0x6B)] + ["\u0120", "ab", "\u0120a", "<|end|>", "<|call|>", "<|return|>"]


def vocab(name, **kv):
    gguf(sys.argv[2], "t-" + name, {"tokenizer.ggml." + k.replace("__", "."): v for k, v in kv.items() if v is not None})


def spm(name, **kv): vocab("spm-" + name, **({"model": "llama", "tokens": SPM, "scores": [-float(i) for i in range(len(SPM))], "token_type": [2, 3, 3] + [6] * 4 + [1] * 5} | kv))
def bpe(name, **kv): vocab("bpe-" + name, **({"model": "gpt2", "pre": "gpt-2", "tokens": BPE, "merges": ["a b", "\u0120 a"], "token_type": [1] * 13 + [3] * 3} | kv))


for k in ("model", "tokens", "scores", "token_type"): spm("no-" + k, **{k: None})
spm("tokens-none", tokens=arr(8, ""))
spm("tokens-int", tokens=[1, 2, 3])
spm("twice", tokens=SPM[:-1] + ["a"])
spm("long", tokens=SPM[:-1] + ["x" * 70000])
spm("scores-int", scores=[1] * len(SPM))
spm("scores-few", scores=[1.0])
spm("scores-nan", scores=[float("nan")] * len(SPM))
spm("types-few", token_type=[1])
spm("types-bad", token_type=[9] * len(SPM))
spm("types-float", token_type=[1.0] * len(SPM))
spm("eos-beyond", eos_token_id=99, unknown_token_id=98)
spm("eos-text", eos_token_id="x")
spm("flag-text", add_bos_token="x")
spm("flags", add_bos_token=False, add_eos_token=True, add_space_prefix=False)
spm("byte-case", tokens=["<0x4a>", "<0xZZ>", "<0x4A>", "<s>"], scores=[0.0] * 4, token_type=[6, 6, 6, 3])
vocab("model-other", model="plamo2", tokens=["a"])
vocab("model-int", model=3, tokens=["a"])
for k in ("merges", "pre", "token_type"): bpe("no-" + k, **{k: None})
bpe("pre-other", pre="nosuch")
bpe("pre-int", pre=4)
for i, m in enumerate(["ab", "a b c", " a", "a ", "a z", "z a", "a j"]): bpe(f"merge{i}", merges=[m])
bpe("merges-int", merges=[1])
bpe("twice", tokens=BPE[:-1] + ["a"])
bpe("not-mapped", tokens=BPE[:-1] + ["\u4e2d"], token_type=[1] * len(BPE))
bpe("ids", eos_token_id=13, eot_token_id=13, eom_token_id=14, bos_token_id=0, unknown_token_id=1, add_bos_token=True)
bpe("tekken", pre="tekken")
for pre in ("gpt-4o", "llama-bpe", "deepseek-coder", "falcon", "starcoder", "command-r", "dbrx", "smaug-bpe", "poro-chat", "viking", "stablelm2", "olmo", "mpt", "refact", "qwen35",
            "gpt-oss", "kimi-k2", "hunyuan", "bloom", "codeshell", "exaone", "chatglm-bpe", "minerva-7b", "superbpe", "seed-coder", "bailingmoe", "a.x-4.0", "afmoe", "jina-v2-de",
            "gemma4", "youtu", "grok-2", "trillion", "granite-docling", "lfm2", "glm4", "megrez", "roberta-bpe", "phi-2", "sarvam-moe", "jais", "minimax-m2", "modern-bert"):
    bpe("pre-" + pre, pre=pre)
vocab("gemma4", model="gemma4", tokens=["<unk>", "a", "b", "ab", "\u2581", "\n", "<0x41>"], token_type=[2, 1, 1, 1, 1, 1, 6], merges=["a b"])
vocab("gemma4-bad", model="gemma4", tokens=["a b", "a"], merges=["a a"])
vocab("rwkv-bad", model="rwkv", tokens=["a", "\\x4", "b"])
vocab("rwkv-bad2", model="rwkv", tokens=["a", "\\q"])
vocab("rwkv-twice", model="rwkv", tokens=["a", "\\x61"])
vocab("rwkv-few", model="rwkv", tokens=["<s>", "a", "\\t\\n\\r\\\\"])
vocab("wpm-bare", model="bert", tokens=["[UNK]", "\u2581a"])
vocab("wpm-none", model="bert", tokens=["a", "b"])
U = ["<pad>", "</s>", "<unk>", "a"]
vocab("ugm-map-int", model="t5", tokens=U, precompiled_charsmap=[1, 2])
for i, m in enumerate([b"", b"\1\0", struct.pack("<I", 5) + b"abcde", struct.pack("<I", 400) + b"a", struct.pack("<II", 4, 0) + b"abc", struct.pack("<II", 4, 0) + b"a\0",
                       struct.pack("<III", 8, 1 << 8 | 99 << 10, 0) + b"a\0", struct.pack("<III", 8, 1 << 8 | 1 << 10, 77) + b"a\0"]):
    vocab(f"ugm-map{i}", model="t5", tokens=U, precompiled_charsmap=arr(0, "B", *m))
vocab("ugm-inf", model="t5", tokens=U, scores=[float("-inf")] * 4)
gguf(sys.argv[2], "t-phi3", {"general.name": "Phi-3 mini", "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": SPM, "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 4 + [1] * 5})
gguf(sys.argv[2], "t-jina", {"general.name": "x", "general.architecture": "jina-bert-v3", "tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": U + ["<mask>"]})
gguf(sys.argv[2], "t-modern", {"general.name": "modern-bert", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": BPE[:-1] + ["[MASK]"],
                               "tokenizer.ggml.merges": ["a b"]})
