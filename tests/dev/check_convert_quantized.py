#!/usr/bin/env python3
"""Folders whose matrices are stored otherwise, converted by hone, against other programs' ways of reading them.

For each scheme a small checkpoint is made, its matrices packed: float8 (blocks, a scale for a row, for a matrix; scales
of several types), bytes, compressed-tensors' words (packed and read by that package, where it is installed), GPTQ and
AWQ (packed here, by the layouts that AutoGPTQ and AutoAWQ publish), MXFP4 (read by transformers). Every number of the F32
file must be what the reference says; MXFP4 blocks must keep all bits.

    check_convert_quantized.py HONE [--case NAME]

Needs torch, transformers, safetensors, gguf; 77 without. compressed-tensors is optional.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import gguf
    import numpy as np
    import torch
    import transformers
    from safetensors.torch import save_file
except ImportError as e:
    print(f"SKIP: {e}; needs torch, transformers, safetensors and gguf", file=sys.stderr)
    sys.exit(77)
try:
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
except ImportError:
    pack_to_int32 = None

E, FF, HEADS, KV, VOCAB = 96, 160, 6, 2, 80
D = E // HEADS
MATRICES = {"q_proj": (E, E), "k_proj": (KV * D, E), "v_proj": (KV * D, E), "o_proj": (E, E), "gate_proj": (FF, E),
            "up_proj": (FF, E), "down_proj": (E, FF)}
NAMES = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate",
         "up_proj": "ffn_up", "down_proj": "ffn_down"}


def place(name):
    return "model.layers.0.%s.%s" % ("mlp" if name in ("gate_proj", "up_proj", "down_proj") else "self_attn", name)


# ---- schemes: (generator, rows, columns) -> tensors by suffix, the matrix in float32 --------------------------------

def blocks_of(scale, shape, block):
    return scale.float().repeat_interleave(block[0], 0)[:shape[0]].repeat_interleave(block[1], 1)[:, :shape[1]]


def fp8(kind, scales, block, suffix="weight_scale_inv"):
    def make(g, o, i):
        q = (torch.randn(o, i, generator=g) * 40).to(kind)
        n = (-(-o // block[0]), -(-i // block[1])) if block else ()
        s = torch.rand(n, generator=g) * 0.01 + 1e-4
        s = s.to(scales) if scales != "e8m0" else torch.pow(2.0, torch.floor(torch.log2(s))).to(torch.float8_e8m0fnu)
        w = q.float() * (blocks_of(s, (o, i), block) if block else s.float())
        return {"weight": q, suffix: s, "input_scale": torch.tensor(0.5)}, w
    return make


def apart(make):
    """ModelOpt's scales of blocks: [rows, 1, columns, 1]."""
    def made(g, o, i):
        t, w = make(g, o, i)
        return dict(t, weight_scale=t["weight_scale"][:, None, :, None]), w
    return made


def groups_of_bytes(group):
    def make(g, o, i):
        q = torch.randint(-8, 8, (o, i), generator=g).to(torch.int8)
        s = (torch.rand(o, i // group, generator=g) * 0.01 + 1e-4).to(torch.bfloat16)
        return {"weight": q, "weight_scale": s}, q.float() * s.float().repeat_interleave(group, 1)
    return make


def rows_of(kind, scales, one_dim):
    def make(g, o, i):
        q = (torch.randn(o, i, generator=g) * 40).round().clamp(-127, 127).to(kind)
        s = (torch.rand(o, 1, generator=g) * 0.01 + 1e-4).to(scales)
        return {"weight": q, "weight_scale": s[:, 0].contiguous() if one_dim else s}, q.float() * s.float()
    return make


def words(bits, group, zeros, order=False, shape=torch.int64):
    def make(g, o, i):
        n = i // group if group else 1
        low = -(1 << bits - 1)
        q = torch.randint(low, -low, (o, i), generator=g, dtype=torch.int8)
        s = (torch.rand(o, n, generator=g) * 0.01 + 1e-4).to(torch.bfloat16)
        index = torch.arange(i) // (i // n)
        if order:
            index = index[torch.randperm(i, generator=g)]
        z = torch.randint(low, -low, (o, n), generator=g, dtype=torch.int8) if zeros else torch.zeros(o, n, dtype=torch.int8)
        t = {"weight_packed": pack_to_int32(q, bits), "weight_scale": s,
             "weight_shape": torch.tensor([o, i], dtype=shape)}
        assert torch.equal(unpack_from_int32(t["weight_packed"], bits, torch.Size([o, i])), q)
        if zeros:
            t["weight_zero_point"] = pack_to_int32(z, bits, packed_dim=0)
        if order:
            t["weight_g_idx"] = index.to(torch.int32)
        return t, (q.float() - z.float()[:, index]) * s.float()[:, index]
    return make


def bytes_with_zeros(scales):
    def make(g, o, i):
        q = torch.randint(-128, 128, (o, i), generator=g).to(torch.int8)
        z = torch.randint(-128, 128, (o, 1), generator=g).to(torch.int8)
        s = (torch.rand(o, 1, generator=g) * 0.01 + 1e-4).to(scales)
        w = (q.numpy().astype(np.float64) - z.numpy().astype(np.float64)) * s.double().numpy()
        return {"weight": q, "weight_scale": s, "weight_zero_point": z}, torch.from_numpy(w.astype(np.float32))
    return make


def stream(codes, bits, axis):
    """Codes along an axis as a stream of bits in words, the first in the lowest."""
    codes = np.moveaxis(codes.astype(np.uint64), axis, 0)
    n = codes.shape[0] * bits // 32
    out = np.zeros((n, *codes.shape[1:]), np.uint64)
    for k in range(codes.shape[0]):
        bit = k * bits
        out[bit // 32] |= codes[k] << np.uint64(bit % 32)
        if bit % 32 + bits > 32:
            out[bit // 32 + 1] |= codes[k] >> np.uint64(32 - bit % 32)
    return torch.from_numpy(np.moveaxis((out & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32), 0, axis).copy())


def gptq(bits, group, order=False, v2=False):
    def make(g, o, i):
        n = i // group if group else 1
        top = (1 << bits) - 1
        q = torch.randint(0, top + 1, (i, o), generator=g).numpy()
        z = torch.randint(0 if v2 else 1, top + 1, (n, o), generator=g).numpy()
        s = (torch.rand(n, o, generator=g) * 0.01 + 1e-4).to(torch.float16)
        index = torch.arange(i) // (i // n)
        if order:
            index = index[torch.randperm(i, generator=g)]
        t = {"qweight": stream(q, bits, 0), "qzeros": stream(z - (not v2), bits, 1), "scales": s,
             "g_idx": index.to(torch.int32)}
        w = (torch.from_numpy(q).float() - torch.from_numpy(z).float()[index]) * s.float()[index]
        return t, w.T
    return make


def mixed(makers):
    """Another way for each matrix, as GPTQModel's `dynamic` and AutoRound's `extra_config` have it; None: plain."""
    turn = iter(range(1 << 30))

    def make(g, o, i):
        m = makers[next(turn) % len(makers)]
        if m:
            t, w = m(g, o, i)
            t.pop("g_idx", None)
            return t, w
        w = torch.randn(o, i, generator=g).to(torch.float16)
        return {"weight": w}, w.float()
    return make


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def awq(group):
    def words_of(codes):
        out = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
        for k, column in enumerate(AWQ_ORDER):
            out |= codes[:, column::8].astype(np.uint32) << np.uint32(4 * k)
        return torch.from_numpy(out.view(np.int32).copy())

    def make(g, o, i):
        n = i // group
        q = torch.randint(0, 16, (i, o), generator=g).numpy()
        z = torch.randint(0, 16, (n, o), generator=g).numpy()
        s = (torch.rand(n, o, generator=g) * 0.01 + 1e-4).to(torch.float16)
        index = np.arange(i) // group
        w = (torch.from_numpy(q).float() - torch.from_numpy(z).float()[index]) * s.float()[index]
        return {"qweight": words_of(q), "qzeros": words_of(z), "scales": s}, w.T
    return make


E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
F8 = dict(quant_method="fp8")
CT = dict(quant_method="compressed-tensors")
SCHEMES = {
    "fp8-blocks": (fp8(E4M3, torch.float32, (32, 40)), dict(F8, weight_block_size=[32, 40]), "BF16"),
    "fp8-ragged": (fp8(E4M3, torch.bfloat16, (48, 64)), dict(F8, weight_block_size=[48, 64]), "BF16"),
    "fp8-e8m0": (fp8(E4M3, "e8m0", (32, 32)), dict(F8, weight_block_size=[32, 32], scale_fmt="ue8m0"), "BF16"),
    "fp8-one": (fp8(E4M3, torch.float32, None), F8, "BF16"),
    "fp8-e5m2": (fp8(E5M2, torch.float16, None, "weight_scale"), dict(CT, format="float-quantized"), "F16"),
    "fp8-rows": (rows_of(E4M3, torch.bfloat16, False), dict(CT, format="float-quantized"), "BF16"),
    "int8-rows": (rows_of(torch.int8, torch.float16, False), dict(CT, format="int-quantized"), "F16"),
    "int8-zeros": (bytes_with_zeros(torch.bfloat16), dict(CT, format="int-quantized"), "BF16"),
    "fp8-fbgemm": (rows_of(E4M3, torch.float32, True), dict(quant_method="fbgemm_fp8"), "BF16"),
    "fp8-default": (fp8(E4M3, torch.float32, (128, 128)), F8, "BF16"),
    "fp8-pb-wo": (apart(fp8(E4M3, torch.float32, (128, 128), "weight_scale")),
                  dict(quant_method="modelopt", quant_algo="FP8_PB_WO"), "BF16"),
    "int8-groups": (groups_of_bytes(16), dict(CT, format="int-quantized"), "BF16"),
    "fp8-modelopt": (fp8(E4M3, torch.float32, None, "weight_scale"), "hf_quant_config.json", "BF16"),
    "gptq-4": (gptq(4, 32), dict(quant_method="gptq", bits=4, group_size=32), "F16"),
    "gptq-4-order": (gptq(4, 32, order=True), dict(quant_method="gptq", bits=4, group_size=32, desc_act=True), "F16"),
    "gptq-3": (gptq(3, 32), dict(quant_method="gptq", bits=3, group_size=32), "F16"),
    "gptq-8-one": (gptq(8, 0), dict(quant_method="gptq", bits=8, group_size=-1), "F16"),
    "gptq-2-v2": (gptq(2, 16, v2=True), dict(quant_method="gptq", bits=2, group_size=16, checkpoint_format="gptq_v2"), "F16"),
    "gptq-format": (gptq(4, 32, v2=True), dict(quant_method="gptq", bits=4, group_size=32, format="gptq_v2"), "F16"),
    "auto-round": (gptq(4, 32), dict(quant_method="auto-round", bits=4, group_size=32), "F16"),
    "gptq-mixed": (mixed([gptq(8, 32), gptq(3, 16), None, gptq(2, 48), gptq(4, 32), gptq(8, 0), gptq(3, 20)]),
                   dict(quant_method="gptq", bits=4, group_size=32, dynamic={"+:.*q_proj": {"bits": 8}, "-:.*v_proj": {}}),
                   "F16"),
    "awq": (awq(32), dict(quant_method="awq", bits=4, group_size=32, version="gemm", zero_point=True), "F16"),
}
if pack_to_int32:
    SCHEMES.update({
        "w4a16": (words(4, 32, False), dict(CT, format="pack-quantized"), "BF16"),
        "w4a16-zeros": (words(4, 32, True), dict(CT, format="pack-quantized"), "BF16"),
        "w4a16-order": (words(4, 32, False, order=True), dict(CT, format="pack-quantized"), "BF16"),
        "w4a16-shape": (words(4, 32, False, shape=torch.int32), dict(CT, format="pack-quantized"), "BF16"),
        "w8a16-rows": (words(8, 0, False), dict(CT, format="pack-quantized"), "BF16"),
    })


# ---- checkpoints ---------------------------------------------------------------------------------------------------

def config(**more):
    return dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=E, intermediate_size=FF,
                num_hidden_layers=1, num_attention_heads=HEADS, num_key_value_heads=KV, vocab_size=VOCAB,
                max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=True, **more)


def rest(g):
    """What is never packed."""
    t = {"model.embed_tokens.weight": torch.randn(VOCAB, E, generator=g), "model.norm.weight": torch.ones(E)}
    for n in ("input_layernorm", "post_attention_layernorm"):
        t["model.layers.0.%s.weight" % n] = torch.ones(E)
    for n in ("q_proj", "k_proj", "v_proj"):
        t[place(n) + ".bias"] = torch.randn(MATRICES[n][0], generator=g)
    return t


def convert(hone, folder, out, *more):
    p = subprocess.run([hone, "convert", folder, "-o", out, *more], capture_output=True, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise RuntimeError(p.stderr.decode(errors="replace").strip())


def read(path):
    out = {}
    for t in gguf.GGUFReader(path).tensors:
        x = gguf.quants.dequantize(t.data, t.tensor_type) if t.tensor_type != 0 else t.data
        out[t.name] = np.asarray(x, np.float32).reshape([int(n) for n in t.shape[::-1]]), t.tensor_type.name
    return out


def check(hone, folder, name):
    make, quant, auto = SCHEMES[name]
    g = torch.Generator().manual_seed(len(name))
    tensors, want = rest(g), {}
    for n, (o, i) in MATRICES.items():
        t, w = make(g, o, i)
        tensors.update({"%s.%s" % (place(n), k): x.contiguous() for k, x in t.items()})
        want["blk.0.%s.weight" % NAMES[n]] = w.numpy()
    os.makedirs(folder)
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    c = config(**(dict(quantization_config=quant) if isinstance(quant, dict) else {}))
    json.dump(c, open(os.path.join(folder, "config.json"), "w"))
    if not isinstance(quant, dict):
        json.dump(dict(producer=dict(name="modelopt"), quantization=dict(quant_algo="FP8", kv_cache_quant_algo=None)),
                  open(os.path.join(folder, quant), "w"))
    convert(hone, folder, folder + ".gguf", "--type", "F32")
    convert(hone, folder, folder + "-auto.gguf")
    convert(hone, folder, folder + "-q8.gguf", "--type", "Q8_0")
    whole, own = read(folder + ".gguf"), read(folder + "-auto.gguf")
    for n, w in want.items():
        x, auto_type = whole[n][0], own[n][1]
        if not np.array_equal(x, w):
            at = tuple(np.argwhere(x != w)[0])
            return "%s%s is %r, expected %r" % (n, list(map(int, at)), x[at], w[at])
        if auto_type != auto:
            return "%s is %s, expected %s" % (n, auto_type, auto)
        t = torch.from_numpy(w).to(torch.float16 if auto == "F16" else torch.bfloat16).float().numpy()
        if not np.array_equal(own[n][0], t):
            return "%s is not rounded once" % n
    return "ok"


# ---- MXFP4 -----------------------------------------------------------------------------------------------------------

def check_mxfp4(hone, folder):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    g = torch.Generator().manual_seed(5)
    n, e, ff = 3, 64, 96
    t = {"model.embed_tokens.weight": torch.randn(VOCAB, e, generator=g), "model.norm.weight": torch.ones(e),
         "lm_head.weight": torch.randn(VOCAB, e, generator=g)}
    b = "model.layers.0."
    for k in ("input_layernorm", "post_attention_layernorm"):
        t[b + k + ".weight"] = torch.ones(e)
    for k, o, i in (("q_proj", 64, e), ("k_proj", 32, e), ("v_proj", 32, e), ("o_proj", e, 64)):
        t[b + "self_attn.%s.weight" % k] = torch.randn(o, i, generator=g)
        t[b + "self_attn.%s.bias" % k] = torch.randn(o, generator=g)
    t[b + "self_attn.sinks"] = torch.randn(4, generator=g)
    t[b + "mlp.router.weight"], t[b + "mlp.router.bias"] = torch.randn(n, e, generator=g), torch.randn(n, generator=g)
    want, packed = {}, {}
    for k, o, i in (("gate_up_proj", 2 * ff, e), ("down_proj", e, ff)):
        blocks = torch.randint(0, 256, (n, o, i // 32, 16), generator=g, dtype=torch.uint8)
        scales = torch.randint(100, 140, (n, o, i // 32), generator=g, dtype=torch.uint8)
        t[b + "mlp.experts.%s_blocks" % k], t[b + "mlp.experts.%s_scales" % k] = blocks, scales
        t[b + "mlp.experts.%s_bias" % k] = torch.randn(n, o, generator=g)
        w = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32).transpose(1, 2).numpy()
        want[k], packed[k] = w, (blocks.numpy(), scales.numpy())
    os.makedirs(folder)
    save_file({k: x.contiguous() for k, x in t.items()}, os.path.join(folder, "model.safetensors"))
    json.dump(dict(architectures=["GptOssForCausalLM"], model_type="gpt_oss", hidden_size=e, intermediate_size=ff,
                   num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=VOCAB,
                   num_local_experts=n, num_experts_per_tok=2, sliding_window=16, max_position_embeddings=64,
                   rms_norm_eps=1e-5, tie_word_embeddings=False, rope_theta=150000.0, hidden_act="silu",
                   layer_types=["sliding_attention"], swiglu_limit=7.0, attention_bias=True,
                   quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["lm_head"])),
              open(os.path.join(folder, "config.json"), "w"))
    views = {"ffn_gate_exps": ("gate_up_proj", slice(0, None, 2)), "ffn_up_exps": ("gate_up_proj", slice(1, None, 2)),
             "ffn_down_exps": ("down_proj", slice(None))}
    for kind in ("F32", None, "Q4_K_M"):
        out = folder + "-%s.gguf" % kind
        convert(hone, folder, out, *(["--type", kind] if kind else []))
        have = read(out)
        raw = {x.name: x for x in gguf.GGUFReader(out).tensors}
        for to, (k, rows) in views.items():
            x, stored = have["blk.0.%s.weight" % to]
            if stored != ("F32" if kind == "F32" else "MXFP4"):
                return "%s of --type %s is %s" % (to, kind, stored)
            if not np.array_equal(x, want[k][:, rows]):
                return "%s of --type %s differs" % (to, kind)
            if kind == "F32":
                continue
            blocks, scales = packed[k][0][:, rows], packed[k][1][:, rows]
            codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
            bits = np.concatenate([scales[..., None], codes[..., :16] | codes[..., 16:] << 4], -1)
            if not np.array_equal(np.asarray(raw["blk.0.%s.weight" % to].data).reshape(-1), bits.reshape(-1)):
                return "%s of --type %s: other bytes" % (to, kind)
    return "ok"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("--case", action="append")
    args = ap.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-quantized-") as tmp:
        for name in [*SCHEMES, "mxfp4"]:
            if args.case and name not in args.case:
                continue
            folder = os.path.join(tmp, name)
            try:
                said = check_mxfp4(args.hone, folder) if name == "mxfp4" else check(args.hone, folder, name)
            except RuntimeError as e:
                said = str(e)
            failed += said != "ok"
            print("%-16s %s" % (name, said), flush=True)
    if not pack_to_int32:
        print("compressed-tensors is not installed: its words were not checked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
