#!/usr/bin/env python3
"""Compare hone's logits with Hugging Face transformers on small random models.

For each architecture hone shares with transformers this script

  1. builds a small model with seeded random weights (nothing is downloaded),
  2. writes it as GGUF with the public `gguf` package: all matrices F32, then
     all matrices F16 (the reference uses the same rounded values),
  3. computes the logits of every position of a random token sequence with
     transformers (eager attention) in float32 and float64,
  4. computes them again with a plain numpy float64 forward pass that reads
     the GGUF file, so that a mistake of this exporter is not taken for one of
     hone's,
  5. runs `hone logits -m FILE --ids ... --all --kv f32` and requires

         max |hone - transformers f32| <= tol * (max logit - min logit).

Then, for every other family that transformers has, a model of transformers_families.py: all matrices F32, against
transformers with every float32 that it asks for made float64, so that a thousandth of the tolerance is left to it.
A family whose class this transformers lacks, or that hone refuses by name, is counted.

Usage
    check_transformers.py HONE [--case NAME] [-- EXTRA ARGS FOR hone]
    check_transformers.py --export-only DIR

`--export-only` writes NAME.gguf, NAME.ids.txt (comma separated),
NAME.logits_f32.npy and NAME.logits_f64.npy, both [n_tok, n_vocab], and does
not run hone.

Exit status: 0 all within tolerance, 1 a comparison failed, 2 usage,
77 skipped because torch, transformers or gguf is not installed.

Note on float64: transformers computes RMSNorm, softmax and the RoPE angles in
float32 even when the model is float64, so its "f64" differs from the numpy
pass, which is float64 throughout, by about 2e-6 of the logit range.
"""
import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    import gguf
    import numpy as np
    import torch
    import transformers
except ImportError as e:
    print(f"SKIP: {e}; needs numpy, torch, transformers and gguf", file=sys.stderr)
    sys.exit(77)

import check_families
import transformers_families as families

EXPORT_TOL = 1e-5  # exporter check: numpy float64 on the GGUF against transformers


@dataclass(frozen=True)
class Case:
    """One random model. Names follow hone: E = n_embd, H/G = query/KV heads."""

    name: str
    arch: str  # general.architecture
    n_embd: int
    n_layer: int
    n_head: int
    n_head_kv: int
    head_dim: int
    n_ff: int
    n_vocab: int
    rope_base: float
    rms_eps: float
    tied: bool
    rope_factor: float = 0.0  # > 0: Llama-3 frequency scaling by this factor
    rope_orig_ctx: int = 0  # its original_max_position_embeddings
    rope_low: float = 1.0
    rope_high: float = 4.0
    n_ctx: int = 1024


# Shapes are chosen so that a confusion of two sizes does not go unnoticed: no two
# of n_embd, G*d, n_ff, n_vocab (and H*d, where E/H does not fix it) agree, groups
# differ, and some row lengths are not multiples of 16. Two epsilons are far larger
# than any in use, or a wrong one would be invisible.
CASES = [
    Case("llama", "llama", 128, 4, 8, 2, 16, 344, 384, 1e4, 3e-3, tied=False),
    Case("llama3-tied", "llama", 192, 3, 6, 3, 32, 480, 512, 5e5, 1e-5, tied=True,
         rope_factor=8.0, rope_orig_ctx=128),
    Case("qwen2-tied", "qwen2", 224, 3, 14, 2, 16, 608, 320, 1e6, 1e-6, tied=True),
    Case("qwen3", "qwen3", 96, 4, 4, 2, 64, 300, 448, 1e6, 1e-3, tied=False),
]


# ---------------------------------------------------------------- the model

def rope_freq_factors(c):
    """ff_i [head_dim/2] of Llama 3: the angle of pair i is pos*base^(-2i/d)/ff_i.

    transformers modeling_rope_utils.py `_compute_llama3_parameters`, inverted.
    None when the case has no scaling.
    """
    if not c.rope_factor:
        return None
    ff = []
    for i in range(c.head_dim // 2):
        wavelen = 2 * math.pi * c.rope_base ** (2 * i / c.head_dim)
        if wavelen < c.rope_orig_ctx / c.rope_high:
            ff.append(1.0)
        elif wavelen > c.rope_orig_ctx / c.rope_low:
            ff.append(c.rope_factor)
        else:
            s = (c.rope_orig_ctx / wavelen - c.rope_low) / (c.rope_high - c.rope_low)
            ff.append(1.0 / ((1.0 - s) / c.rope_factor + s))
    return np.array(ff, dtype=np.float32)


def make_config(c):
    rope = {"rope_type": "default"}
    if c.rope_factor:
        rope = {
            "rope_type": "llama3",
            "factor": c.rope_factor,
            "low_freq_factor": c.rope_low,
            "high_freq_factor": c.rope_high,
            "original_max_position_embeddings": c.rope_orig_ctx,
        }
    kw = dict(
        vocab_size=c.n_vocab,
        hidden_size=c.n_embd,
        intermediate_size=c.n_ff,
        num_hidden_layers=c.n_layer,
        num_attention_heads=c.n_head,
        num_key_value_heads=c.n_head_kv,
        rms_norm_eps=c.rms_eps,
        max_position_embeddings=c.n_ctx,
        tie_word_embeddings=c.tied,
        bos_token_id=c.n_vocab - 1,
        eos_token_id=c.n_vocab - 1,
        pad_token_id=None,
        use_cache=False,
    )
    if int(transformers.__version__.split(".")[0]) >= 5:
        kw["rope_parameters"] = dict(rope, rope_theta=c.rope_base)
    else:
        kw["rope_theta"] = c.rope_base
        if c.rope_factor:
            kw["rope_scaling"] = rope
    if c.arch == "llama":
        return transformers.LlamaConfig(head_dim=c.head_dim, **kw)
    if c.arch == "qwen2":
        return transformers.Qwen2Config(**kw)
    if c.arch == "qwen3":
        return transformers.Qwen3Config(head_dim=c.head_dim, **kw)
    raise ValueError(c.arch)


def random_weight(rng, name, shape):
    """Values that keep activations of order 1, attention neither uniform nor
    one-hot, and logits a few units apart."""
    x = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        return 1.0 + 0.2 * x
    if name.endswith(".bias"):
        return 0.5 * x
    if "q_proj" in name or "k_proj" in name:
        return 1.3 / math.sqrt(shape[1]) * x
    if "embed_tokens" in name or "lm_head" in name:
        return 0.1 * x
    return 1.0 / math.sqrt(shape[1]) * x


def build_model(c, seed, f16):
    """A transformers model whose weights depend on (case, seed) only, not on
    the torch version. With f16 every matrix is rounded to float16 values."""
    model = transformers.AutoModelForCausalLM.from_config(
        make_config(c), attn_implementation="eager").float().eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            w = random_weight(rng, name, tuple(p.shape)).astype(np.float32)
            if f16 and w.ndim == 2:
                w = w.astype(np.float16).astype(np.float32)
            p.copy_(torch.from_numpy(w))

    # The config must mean what this script thinks it means.
    rotary = model.model.rotary_emb
    want = c.rope_base ** (-np.arange(0, c.head_dim, 2) / c.head_dim)
    if c.rope_factor:
        want = want / rope_freq_factors(c)
    assert np.allclose(rotary.inv_freq.numpy(), want, rtol=1e-5), "RoPE config misread"
    assert rotary.attention_scaling == 1.0
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    assert tied == c.tied, "tie_word_embeddings misread"
    assert model.config._attn_implementation == "eager"
    return model


def transformers_logits(model, ids):
    """Logits [n_tok, n_vocab] in the model's dtype."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), use_cache=False)
    return out.logits[0].numpy().copy()


# --------------------------------------------------------------- GGUF export

HF_LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
HF_GLOBAL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(hf_name):
    if hf_name in HF_GLOBAL_NAMES:
        return HF_GLOBAL_NAMES[hf_name]
    model, layers, il, rest = hf_name.split(".", 3)  # model.layers.IL.REST
    assert (model, layers) == ("model", "layers"), hf_name
    return f"blk.{il}.{HF_LAYER_NAMES[rest]}"


def interleave_rope_rows(w, n_head):
    """HF rotates halves (i, i+d/2), GGUF `llama` pairs (2i, 2i+1):
    GGUF row h*d + 2i + s = HF row h*d + s*d/2 + i, s in {0, 1}."""
    d = w.shape[0] // n_head
    return np.ascontiguousarray(
        w.reshape(n_head, 2, d // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape))


def byte_symbols():
    """GPT-2's byte -> printable character table (openai/gpt-2:src/encoder.py)."""
    keep = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    sym, extra = {}, 0
    for b in range(256):
        if b in keep:
            sym[b] = chr(b)
        else:
            sym[b] = chr(256 + extra)
            extra += 1
    return [sym[b] for b in range(256)]


def add_tokenizer(w, n_vocab):
    """A minimal valid byte-level BPE: 256 byte symbols, a few merges, unused
    filler up to n_vocab - 1, and one control token that is BOS and EOS."""
    merges = ["t h", "th e", "i n", "Ġ the", "e r"]
    tokens = byte_symbols() + [m.replace(" ", "") for m in merges]
    types = [gguf.TokenType.NORMAL] * len(tokens)
    while len(tokens) < n_vocab - 1:
        tokens.append(f"<|unused{len(tokens)}|>")
        types.append(gguf.TokenType.UNUSED)
    tokens.append("<|end|>")
    types.append(gguf.TokenType.CONTROL)
    assert len(tokens) == n_vocab == len(set(tokens))
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_bos_token_id(n_vocab - 1)
    w.add_eos_token_id(n_vocab - 1)
    w.add_add_bos_token(False)


def write_gguf(path, c, model, f16):
    w = gguf.GGUFWriter(path, c.arch)
    w.add_name(f"random {c.name}")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16 if f16 else gguf.LlamaFileType.ALL_F32)
    w.add_vocab_size(c.n_vocab)
    w.add_context_length(c.n_ctx)
    w.add_embedding_length(c.n_embd)
    w.add_block_count(c.n_layer)
    w.add_feed_forward_length(c.n_ff)
    w.add_head_count(c.n_head)
    w.add_head_count_kv(c.n_head_kv)
    w.add_layer_norm_rms_eps(c.rms_eps)
    w.add_rope_freq_base(c.rope_base)
    # As the usual converters: llama gives its rotary width, qwen3 its head
    # width, qwen2 neither (d = E/H).
    if c.arch == "llama":
        w.add_rope_dimension_count(c.head_dim)
    if c.arch == "qwen3":
        w.add_key_length(c.head_dim)
        w.add_value_length(c.head_dim)
    add_tokenizer(w, c.n_vocab)

    for hf_name, p in model.named_parameters():  # a tied lm_head is listed once
        name = gguf_name(hf_name)
        x = p.detach().numpy()
        if c.arch == "llama" and ".attn_q." in name:
            x = interleave_rope_rows(x, c.n_head)
        if c.arch == "llama" and ".attn_k." in name:
            x = interleave_rope_rows(x, c.n_head_kv)
        # Matrices follow the file type; norms and biases stay F32.
        w.add_tensor(name, x.astype(np.float16 if f16 and x.ndim == 2 else np.float32))
    if c.rope_factor:
        w.add_tensor("rope_freqs.weight", rope_freq_factors(c))

    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# -------------------------------------------- independent check of the export

def numpy_logits(path, ids):
    """Logits [n_tok, n_vocab] in float64 from nothing but the GGUF file."""
    r = gguf.GGUFReader(path)
    t = {x.name: np.asarray(x.data, dtype=np.float64) for x in r.tensors}
    key = lambda k, default=None: f.contents() if (f := r.get_field(k)) else default
    arch = key("general.architecture")
    hp = lambda k, default=None: key(f"{arch}.{k}", default)

    n_head, n_head_kv = hp("attention.head_count"), hp("attention.head_count_kv")
    n_tok, eps = len(ids), hp("attention.layer_norm_rms_epsilon")
    d = hp("attention.key_length", hp("embedding_length") // n_head)
    ff = t.get("rope_freqs.weight", np.ones(d // 2))
    theta = np.arange(n_tok)[:, None, None] * hp("rope.freq_base") ** (-2 * np.arange(d // 2) / d) / ff
    cos, sin = np.cos(theta), np.sin(theta)  # [n_tok, 1, d/2]

    def rms(x, w):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w

    def rope(x):  # [n_tok, head, d]
        y = np.empty_like(x)
        if arch == "llama":  # NORM: pairs (2i, 2i+1)
            a, b, ia, ib = x[..., 0::2], x[..., 1::2], np.s_[..., 0::2], np.s_[..., 1::2]
        else:  # NEOX: pairs (i, i + d/2)
            a, b, ia, ib = x[..., : d // 2], x[..., d // 2:], np.s_[..., : d // 2], np.s_[..., d // 2:]
        y[ia], y[ib] = a * cos - b * sin, a * sin + b * cos
        return y

    future = np.triu(np.ones((n_tok, n_tok), bool), 1)
    x = t["token_embd.weight"][ids]
    for il in range(hp("block_count")):
        b = lambda name: t[f"blk.{il}.{name}.weight"]
        proj = lambda h, name: h @ b(name).T + t.get(f"blk.{il}.{name}.bias", 0.0)
        h = rms(x, b("attn_norm"))
        q = proj(h, "attn_q").reshape(n_tok, n_head, d)
        k = proj(h, "attn_k").reshape(n_tok, n_head_kv, d)
        v = proj(h, "attn_v").reshape(n_tok, n_head_kv, d)
        if f"blk.{il}.attn_q_norm.weight" in t:
            q, k = rms(q, b("attn_q_norm")), rms(k, b("attn_k_norm"))
        q, k = rope(q), rope(k)
        o = np.empty_like(q)
        for ih in range(n_head):
            g = ih // (n_head // n_head_kv)
            s = np.where(future, -np.inf, q[:, ih] @ k[:, g].T / math.sqrt(d))
            p = np.exp(s - s.max(-1, keepdims=True))
            o[:, ih] = p / p.sum(-1, keepdims=True) @ v[:, g]
        x = x + proj(o.reshape(n_tok, n_head * d), "attn_output")
        h = rms(x, b("ffn_norm"))
        gate = proj(h, "ffn_gate")
        x = x + proj(gate / (1 + np.exp(-gate)) * proj(h, "ffn_up"), "ffn_down")
    w_out = t.get("output.weight", t["token_embd.weight"])
    return rms(x, t["output_norm.weight"]) @ w_out.T


# ---------------------------------------------------------------------- hone

def hone_logits(hone, path, ids, n_vocab, extra):
    """Logits [n_tok, n_vocab] of `hone logits`; raises RuntimeError with a reason."""
    cmd = [hone, "logits", "-m", path, "--ids", ",".join(map(str, ids)), "--all", "--kv", "f32", *extra]
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if p.returncode != 0:
        raise RuntimeError(f"exit status {p.returncode}: {p.stderr.decode(errors='replace').strip()[-800:]}")
    want = len(ids) * n_vocab * 4
    if len(p.stdout) != want:
        raise RuntimeError(f"wrote {len(p.stdout)} bytes, expected {want} ([{len(ids)}, {n_vocab}] f32)")
    y = np.frombuffer(p.stdout, dtype="<f4").reshape(len(ids), n_vocab)
    if not np.isfinite(y).all():
        raise RuntimeError(f"{np.count_nonzero(~np.isfinite(y))} logits are not finite")
    return y


# ---------------------------------------------------------------------- main

def run_case(c, f16, args, out_dir):
    """Export, check and compare one file; print its table row; True if good."""
    stem = f"{c.name}-{'f16' if f16 else 'f32'}"
    path = os.path.join(out_dir, stem + ".gguf")
    rng = np.random.default_rng([args.seed, c.n_vocab])
    ids = [int(i) for i in rng.integers(0, c.n_vocab, args.n_tok)]

    model = build_model(c, args.seed, f16)
    write_gguf(path, c, model, f16)
    ref32 = transformers_logits(model, ids)
    ref64 = transformers_logits(model.double(), ids)
    spread = float(ref32.max() - ref32.min())
    rel = lambda a, b: float(np.abs(a.astype(np.float64) - b).max()) / spread

    e_f32 = rel(ref32, ref64)
    e_export = rel(numpy_logits(path, ids), ref64)
    row = f"{stem:<16} {args.n_tok:>5} {c.n_vocab:>5} {spread:>7.2f} {e_f32:>9.1e} {e_export:>9.1e}"
    if e_export > EXPORT_TOL:
        print(f"{row}  FAIL: the exported file does not mean the model (this script's fault)")
        return False
    if args.export_only:
        with open(os.path.join(out_dir, stem + ".ids.txt"), "w") as f:
            f.write(",".join(map(str, ids)) + "\n")
        np.save(os.path.join(out_dir, stem + ".logits_f32.npy"), ref32)
        np.save(os.path.join(out_dir, stem + ".logits_f64.npy"), ref64)
        print(f"{row}  written")
        return True
    try:
        y = hone_logits(args.hone, path, ids, c.n_vocab, args.extra)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
        print(f"{row}  FAIL: hone {e}")
        return False
    e_hone = rel(y, ref32)
    worst = int(np.abs(y - ref32).max(axis=1).argmax())
    same_top = int((y.argmax(1) == ref32.argmax(1)).sum())
    good = e_hone <= args.tol
    print(f"{row} {e_hone:>9.1e} {worst:>6} {same_top:>5}/{args.n_tok}  {'ok' if good else 'FAIL'}")
    return good


@contextlib.contextmanager
def exact():
    """Whatever asks for float32 gets float64."""
    kept = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])


def family_reference(name, args, ids):
    """(keys, tensors, logits in float64) of a family's random model."""
    row = families.FAMILIES[name]
    with exact():
        c = families.config(transformers, row)
        model = families.model_of(transformers, row, c, attn_implementation="eager",
                                  experts_implementation="eager").double().eval()
        state = families.fill(model, row, [args.seed, zlib.crc32(name.encode())])
        ref = transformers_logits(model, ids)
    return (*families.exported(row, c, state), ref)


def run_family(name, args, out_dir):
    """As run_case: True if good."""
    row = families.FAMILIES[name]
    path = os.path.join(out_dir, name + ".gguf")
    rng = np.random.default_rng([args.seed, zlib.crc32(name.encode())])
    ids = [int(i) for i in rng.integers(0, families.COMMON["vocab_size"], args.n_tok)]
    if not hasattr(transformers, row["cls"] + "Config"):
        print(f"{name:<18} skipped: this transformers has no {row['cls']}")
        return True
    keys, tensors, ref = family_reference(name, args, ids)
    check_families.write_gguf(path, keys, tensors)
    if args.export_only:
        np.save(os.path.join(out_dir, name + ".logits_f64.npy"), ref)
        print(f"{name:<18} written")
        return True
    spread = float(ref.max() - ref.min())
    extra = [*args.extra, "-t", "1", *(["-c", str(row["n_ctx"])] if "n_ctx" in row else [])]
    try:
        y = hone_logits(args.hone, path, ids, ref.shape[1], extra)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
        print(f"{name:<18} {'not run' if 'not supported' in str(e) else 'FAIL'}: hone {e}")
        return "not supported" in str(e)
    far = np.abs(y - ref).max(axis=1) / spread
    good = bool(far.max() <= args.family_tol)
    first = int(np.argmax(far > args.family_tol))
    print(f"{name:<18} {args.n_tok:>5} {ref.shape[1]:>5} {spread:>7.2f} {far.max():>9.1e} {int(far.argmax()):>6} "
          f"{int((y.argmax(1) == ref.argmax(1)).sum()):>5}/{args.n_tok}  "
          + ("ok" if good else f"FAIL from position {first} on"))
    return good


def main():
    ap = argparse.ArgumentParser(description="Compare hone's logits with Hugging Face transformers "
                                 "on small random models.")
    ap.add_argument("hone", nargs="?", help="the hone binary")
    ap.add_argument("extra", nargs="*", help="further arguments for `hone logits`, after --")
    ap.add_argument("--export-only", metavar="DIR", help="write models and reference logits there; do not run hone")
    ap.add_argument("--case", action="append", choices=[c.name for c in CASES] + list(families.FAMILIES), help="only this case (repeatable)")
    ap.add_argument("--n-tok", type=int, default=300, help="sequence length (default %(default)s, a multiple of no chunk size)")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--family-tol", type=float, default=1e-5,
                    help="the same of the families in float64 (default %(default)s)")
    ap.add_argument("--tol", type=float, default=1e-3, help="largest error / logit range (default %(default)s)")
    args = ap.parse_args()
    if bool(args.hone) == bool(args.export_only):
        ap.error("give either the hone binary or --export-only DIR")
    if not 1 <= args.n_tok <= min(c.n_ctx for c in CASES):
        ap.error("--n-tok must lie in 1..1024")
    if args.hone and not os.access(args.hone, os.X_OK):
        ap.error(f"{args.hone} is not an executable file")

    transformers.logging.set_verbosity_error()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}; "
          f"errors are max |difference| / (max logit - min logit)")
    head = f"{'model':<16} {'n_tok':>5} {'vocab':>5} {'range':>7} {'f32-f64':>9} {'export':>9}"
    print(head if args.export_only else f"{head} {'hone':>9} {'at pos':>6} {'same top-1':>11}")

    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-transformers-") as tmp:
        out_dir = args.export_only or tmp
        os.makedirs(out_dir, exist_ok=True)
        for c in CASES:
            if args.case and c.name not in args.case:
                continue
            for f16 in (False, True):
                failed += not run_case(c, f16, args, out_dir)
                sys.stdout.flush()
        if not args.case or set(args.case) & set(families.FAMILIES):
            print(f"\n{'family':<18} {'n_tok':>5} {'vocab':>5} {'range':>7} {'hone-f64':>9} {'at pos':>6} same top-1")
        for name in families.FAMILIES:
            if not args.case or name in args.case:
                failed += not run_family(name, args, out_dir)
                sys.stdout.flush()
    if failed:
        print(f"{failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
