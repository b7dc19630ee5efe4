#!/usr/bin/env python3
"""Compare hone's RWKV-7 and RWKV-6 with a plain float64 forward pass.

The pass below is written from the published equations (BlinkDL/RWKV-LM:
RWKV-v7/rwkv_v7_demo_rnn.py, RWKV-v5/rwkv_v6_demo.py; arXiv 2503.14456, 2404.05892)
and reads nothing but a GGUF file, every tensor type through the `gguf` package.
First it has to prove itself:

  - logits and state of the generated check models ("vectors7", "vectors6"),
  - the tiny model of ../shared/data/rwkv (skipped without it): the published
    logits, and the golden values beside it.

Then `hone logits -m MODEL --ids ... --all` is run on models this script makes:
odd sizes, one head and many, odd ranks, every kind of file that is met, and

  - F32, F16, BF16 weights: max |error| <= 1e-4 of the range of the logits,
  - block types: the products' activations are rounded in the reference as hone
    states it does (kernels.h); the bar is wider, for a value at the edge of two
    codes may fall on either side,
  - the tiny model: max |error| <= 1e-5.

Usage
    check_rwkv.py HONE [--quick] [--case NAME]... [--n-tok N] [-- ARGS FOR hone logits]
    check_rwkv.py HONE --model FILE.gguf...      the same for given files
    check_rwkv.py --self                         only the proof of the reference
    check_rwkv.py --export-only DIR              NAME.gguf, NAME.ids.txt, NAME.logits_f64.npy

Exit status: 0 good, 1 something differs, 2 usage, 77 skipped without numpy and gguf.
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import gguf
    import numpy as np
except ImportError as e:
    print(f"SKIP: {e}; needs numpy and gguf", file=sys.stderr)
    sys.exit(77)

T = gguf.GGMLQuantizationType
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "..", "shared", "data", "rwkv")
GROUP_EPS = 64e-5  # of the norm of a head's output; in no file
TOL_FLOAT, TOL_BLOCK, TOL_TINY = 1e-4, 1e-3, 1e-5


# ------------------------------------------------------------------- a model in memory

class Model:
    """arch, hp {key without the architecture}, t {name: float64 array, outermost
    dimension first}, types {name: gguf type}."""

    def __init__(self, arch, hp, t, types=None):
        self.arch, self.hp, self.t = arch, hp, t
        self.types = types or {}


def read_gguf(path):
    r = gguf.GGUFReader(path)
    key = lambda k, d=None: f.contents() if (f := r.get_field(k)) else d
    arch = key("general.architecture")
    hp = {k[len(arch) + 1:]: key(k) for k in r.fields if k.startswith(arch + ".")}
    t, types = {}, {}
    for x in r.tensors:
        shape = [int(n) for n in reversed(x.shape)]
        t[x.name] = np.asarray(gguf.dequantize(x.data, x.tensor_type), dtype=np.float64).reshape(shape)
        types[x.name] = x.tensor_type
    return Model(arch, hp, t, types)


# ------------------------------------------------------------------------ forward pass

def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def layer_norm(x, w, b, eps):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b


BLOCK256 = {T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_XS}
BLOCK32 = {T.Q4_0, T.Q5_0, T.Q8_0, T.IQ4_NL}


def round_activations(x, n):
    """x in blocks of n as 8-bit codes and back (kernels.h, "numeric contract")."""
    b = x.reshape(*x.shape[:-1], -1, n)
    amax = np.abs(b).max(-1, keepdims=True)
    d = np.where(amax < 2.0 ** -100, 0, amax / 127)
    q = np.rint(np.divide(b, d, out=np.zeros_like(b), where=d > 0))
    return (q * d).reshape(x.shape)


class Pass:
    """One forward pass over a whole sequence. dtype float32 shows what arithmetic of
    that width costs; rounding: activations of block types as hone rounds them."""

    def __init__(self, m, dtype=np.float64, rounding=False):
        self.m, self.dtype, self.rounding = m, dtype, rounding
        self.E = m.t["token_embd.weight"].shape[1]
        self.N = int(m.hp["wkv.head_size"])
        self.H = self.E // self.N
        self.L = int(m.hp["block_count"])
        self.eps = m.hp.get("attention.layer_norm_epsilon", 1e-5)
        self.state = []  # per layer (a_prev [E], f_prev [E], S [H, key, value]) at the end

    def w(self, name, il=None):
        full = (f"blk.{il}.{name}" if il is not None else name) + ("" if name.endswith(".bias") else ".weight")
        return self.m.t[full].astype(self.dtype)

    def has(self, name, il):
        return f"blk.{il}.{name}.weight" in self.m.t

    def mm(self, name, x, il=None):
        """W x for every row of x."""
        full = (f"blk.{il}." if il is not None else "") + name + ".weight"
        ty = self.m.types.get(full)
        if self.rounding and ty in BLOCK256:
            x = round_activations(x, 256)
        if self.rounding and ty in BLOCK32:
            x = round_activations(x, 32)
        return x @ self.m.t[full].astype(self.dtype).T

    def ln(self, x, name, il=None):
        return layer_norm(x, self.w(name, il), self.w(name + ".bias", il), self.eps)

    @staticmethod
    def shifted(h):
        """The row before each; zeros before the first."""
        return np.concatenate([np.zeros_like(h[:1]), h[:-1]])

    def heads(self, x):
        return x.reshape(-1, self.H, self.N)

    def run(self, ids):
        m = self.m
        x = self.w("token_embd")[ids]
        if "token_embd_norm.weight" in m.t:
            x = self.ln(x, "token_embd_norm")
        first = None
        for il in range(self.L):
            h = self.ln(x, "attn_norm", il)
            mix = self.time_mix7 if m.arch == "rwkv7" else self.time_mix6
            o, S, first = mix(il, h, self.shifted(h) - h, first)
            x = x + self.mm("time_mix_output", o, il)
            f = self.ln(x, "attn_norm_2", il)
            x = x + self.channel_mix(il, f, self.shifted(f) - f)
            every = m.hp.get("rescale_every_n_layers", 0) if m.arch == "rwkv6" else 0
            if every and (il + 1) % every == 0:
                x = x / 2
            self.state.append((h[-1], f[-1], S))
        return self.mm("output", self.ln(x, "output_norm"))

    def group_norm(self, y, il):
        d = y - y.mean(-1, keepdims=True)
        y = d / np.sqrt((d * d).mean(-1, keepdims=True) + GROUP_EPS)
        return y.reshape(-1, self.E) * self.w("time_mix_ln", il) + self.w("time_mix_ln.bias", il)

    def time_mix7(self, il, h, dx, v_first):
        lerp = self.w("time_mix_lerp_fused", il).reshape(-1, self.E)
        xr, xw, xk, xv, xa, xg = (h + dx * lerp[i] for i in range(6))
        lora = lambda which, z: self.mm(f"time_mix_{which}2", z, il)
        r, k, v = self.mm("time_mix_receptance", xr, il), self.mm("time_mix_key", xk, il), self.mm("time_mix_value", xv, il)
        w = self.w("time_mix_w0", il) + lora("w", np.tanh(self.mm("time_mix_w1", xw, il)))
        w = np.exp(-np.exp(-0.5) * sigmoid(w))
        a = sigmoid(self.w("time_mix_a0", il) + lora("a", self.mm("time_mix_a1", xa, il)))
        g = lora("g", sigmoid(self.mm("time_mix_g1", xg, il)))
        kk = self.heads(k * self.w("time_mix_k_k", il))
        kk = kk / np.maximum(np.sqrt((kk * kk).sum(-1, keepdims=True)), 1e-12)
        k = k * (1 + (a - 1) * self.w("time_mix_k_a", il))
        if il == 0:
            v_first = v
        else:
            v = v + (v_first - v) * sigmoid(self.w("time_mix_v0", il) + lora("v", self.mm("time_mix_v1", xv, il)))
        r, w, k, v, a = (self.heads(z) for z in (r, w, k, v, a))
        # S[h][value i][key j], as in the paper: S <- S diag(w) - (S kk)(kk a)^T + v k^T
        S = np.zeros((self.H, self.N, self.N), self.dtype)
        y = np.empty_like(r)
        for t in range(len(h)):
            z = np.einsum("hij,hj->hi", S, -kk[t])
            S = S * w[t][:, None, :] + v[t][:, :, None] * k[t][:, None, :] + z[:, :, None] * (kk[t] * a[t])[:, None, :]
            y[t] = np.einsum("hij,hj->hi", S, r[t])
        y = self.group_norm(y, il)
        bonus = (r * k * self.w("time_mix_r_k", il).reshape(self.H, self.N)).sum(-1, keepdims=True)
        y = y + (bonus * v).reshape(-1, self.E)
        return y * g, S.swapaxes(1, 2), v_first

    def time_mix6(self, il, h, dx, _):
        X = self.m.t[f"blk.{il}.time_mix_w1.weight"].shape[0] // 5
        z = np.tanh(self.mm("time_mix_w1", h + dx * self.w("time_mix_lerp_x", il).reshape(-1), il))
        w2 = self.w("time_mix_w2", il).reshape(5, self.E, X)
        if self.has("time_mix_lerp_fused", il):
            lerp = self.w("time_mix_lerp_fused", il).reshape(5, self.E)
        else:
            lerp = [self.w(f"time_mix_lerp_{c}", il).reshape(-1) for c in "wkvrg"]
        xw, xk, xv, xr, xg = (h + dx * (lerp[c] + z[:, c * X:(c + 1) * X] @ w2[c].T) for c in range(5))
        r, k, v = self.mm("time_mix_receptance", xr, il), self.mm("time_mix_key", xk, il), self.mm("time_mix_value", xv, il)
        g = self.mm("time_mix_gate", xg, il)
        g = g * sigmoid(g)
        w = self.w("time_mix_decay", il).reshape(-1) + self.mm("time_mix_decay_w2", np.tanh(self.mm("time_mix_decay_w1", xw, il)), il)
        with np.errstate(over="ignore"):
            w = np.exp(-np.exp(w))
        u = self.w("time_mix_first", il).reshape(self.H, self.N)
        r, w, k, v = (self.heads(q) for q in (r, w, k, v))
        S = np.zeros((self.H, self.N, self.N), self.dtype)  # [h][key i][value j]
        y = np.empty_like(r)
        for t in range(len(h)):
            kv = k[t][:, :, None] * v[t][:, None, :]
            y[t] = np.einsum("hi,hij->hj", r[t], S + u[:, :, None] * kv)
            S = S * w[t][:, :, None] + kv
        return self.group_norm(y, il) * g, S, None

    def channel_mix(self, il, h, dx):
        k = np.maximum(self.mm("channel_mix_key", h + dx * self.w("channel_mix_lerp_k", il).reshape(-1), il), 0) ** 2
        o = self.mm("channel_mix_value", k, il)
        if self.m.arch == "rwkv6":
            o = o * sigmoid(self.mm("channel_mix_receptance", h + dx * self.w("channel_mix_lerp_r", il).reshape(-1), il))
        return o


def logits_of(m, ids, **kw):
    p = Pass(m, **kw)
    return p.run(np.asarray(ids)), p.state


# -------------------------------------------------------------- shapes of the two models

def shapes7(s):
    """name -> shape, outermost first. s: E N F V L, ranks (w, a, v, g)."""
    E, F, V, (Rw, Ra, Rv, Rg) = s["E"], s["F"], s["V"], s["ranks"]
    g = {"token_embd.weight": (V, E), "token_embd_norm.weight": (E,), "token_embd_norm.bias": (E,),
         "output_norm.weight": (E,), "output_norm.bias": (E,), "output.weight": (V, E)}
    for il in range(s["L"]):
        b = {"attn_norm.weight": (E,), "attn_norm.bias": (E,), "attn_norm_2.weight": (E,), "attn_norm_2.bias": (E,),
             "time_mix_w0.weight": (E,), "time_mix_w1.weight": (Rw, E), "time_mix_w2.weight": (E, Rw),
             "time_mix_a0.weight": (E,), "time_mix_a1.weight": (Ra, E), "time_mix_a2.weight": (E, Ra),
             "time_mix_v0.weight": (E,), "time_mix_v1.weight": (Rv, E), "time_mix_v2.weight": (E, Rv),
             "time_mix_g1.weight": (Rg, E), "time_mix_g2.weight": (E, Rg),
             "time_mix_lerp_fused.weight": (6, 1, 1, E),
             "time_mix_k_k.weight": (E,), "time_mix_k_a.weight": (E,), "time_mix_r_k.weight": (E,),
             "time_mix_receptance.weight": (E, E), "time_mix_key.weight": (E, E), "time_mix_value.weight": (E, E),
             "time_mix_output.weight": (E, E), "time_mix_ln.weight": (E,), "time_mix_ln.bias": (E,),
             "channel_mix_lerp_k.weight": (E,), "channel_mix_key.weight": (F, E), "channel_mix_value.weight": (E, F)}
        if il == 0 and s.get("no_v0"):
            for n in "012":
                del b[f"time_mix_v{n}.weight"]
        elif il == 0:  # as converters write them: copies of a*, unused
            b["time_mix_v1.weight"], b["time_mix_v2.weight"] = (Ra, E), (E, Ra)
        g.update({f"blk.{il}.{k}": v for k, v in b.items()})
    return g


def shapes6(s):
    E, N, F, V, X, D = s["E"], s["N"], s["F"], s["V"], s["X"], s["D"]
    g = {"token_embd.weight": (V, E), "token_embd_norm.weight": (E,), "token_embd_norm.bias": (E,),
         "output_norm.weight": (E,), "output_norm.bias": (E,), "output.weight": (V, E)}
    for il in range(s["L"]):
        b = {"attn_norm.weight": (E,), "attn_norm.bias": (E,), "attn_norm_2.weight": (E,), "attn_norm_2.bias": (E,),
             "time_mix_w1.weight": (5 * X, E), "time_mix_w2.weight": (5, E, X), "time_mix_lerp_x.weight": (E,)}
        if s.get("separate"):
            b.update({f"time_mix_lerp_{c}.weight": (E,) for c in "wkvrg"})
        else:
            b["time_mix_lerp_fused.weight"] = (5, 1, 1, E)
        b.update({"time_mix_first.weight": (E // N, N), "time_mix_decay.weight": (E,),
                  "time_mix_decay_w1.weight": (D, E), "time_mix_decay_w2.weight": (E, D),
                  "time_mix_receptance.weight": (E, E), "time_mix_key.weight": (E, E), "time_mix_value.weight": (E, E),
                  "time_mix_gate.weight": (E, E), "time_mix_output.weight": (E, E),
                  "time_mix_ln.weight": (E,), "time_mix_ln.bias": (E,),
                  "channel_mix_lerp_k.weight": (E,), "channel_mix_lerp_r.weight": (E,),
                  "channel_mix_key.weight": (F, E), "channel_mix_value.weight": (E, F), "channel_mix_receptance.weight": (E, E)})
        g.update({f"blk.{il}.{k}": v for k, v in b.items()})
    return g


def shapes(s):
    return shapes7(s) if s["arch"] == "rwkv7" else shapes6(s)


def hparams(s):
    hp = {"context_length": 1048576, "embedding_length": s["E"], "block_count": s["L"], "feed_forward_length": s["F"],
          "attention.layer_norm_epsilon": s.get("eps", 1e-5), "wkv.head_size": s["N"]}
    if s["arch"] == "rwkv7":
        for k, r in zip(("decay", "iclr", "value_residual_mix", "gate"), s["ranks"]):
            hp[f"attention.{k}_lora_rank"] = r
    else:
        hp.update({"time_mix_extra_dim": s["X"], "time_decay_extra_dim": s["D"]})
        if "rescale" in s:
            hp["rescale_every_n_layers"] = s["rescale"]
    return hp


# ----------------------------------------------------- the reference proves itself

def fnv(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001B3 % 2 ** 64
    return h


def generated(name, n):
    """The published rule of the check models: n numbers in [-1, 1)."""
    z = np.uint64(fnv(name)) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(48)).astype(np.int64) - 32768) / 32768.0


def generated_scale(arch, name):
    """(s, o): value = o + s u."""
    last = name.split(".")[-2]
    if name == "token_embd.weight":
        return 1, 0
    if "lerp" in name:
        return 0.5, 0.5
    if name.endswith(".weight") and ("norm" in last or last == "time_mix_ln"):
        return 0.25, 1
    p = last.removeprefix("time_mix_")
    if arch == "rwkv7":
        table = {"w1": (0.5, 0), "a1": (0.5, 0), "v1": (0.5, 0), "g1": (0.5, 0), "w2": (1, 0), "a2": (1, 0), "v2": (1, 0),
                 "g2": (1, 0), "w0": (2, 0), "a0": (1, 0), "v0": (1, 0), "k_k": (0.5, 1), "k_a": (0.5, 1), "r_k": (0.5, 0)}
    else:
        table = {"w1": (0.5, 0), "w2": (0.5, 0), "decay_w1": (0.5, 0), "decay_w2": (1, 0), "first": (0.5, 0), "decay": (2, -2)}
    return table.get(p, (0.25, 0)) if p != last else (0.25, 0)


VEC7 = dict(arch="rwkv7", E=16, N=8, F=32, V=16, L=2, ranks=(4, 4, 4, 4))
VEC6 = dict(arch="rwkv6", E=16, N=8, F=32, V=16, L=2, X=4, D=4)
VEC_IDS = [3, 1, 4, 1, 5, 9]
VEC7_LOGITS = [-0.019917, 0.111421, -0.766469, 0.985544, -0.638991, -0.771848, -0.100124, -1.016740,
               0.156366, -0.263759, -0.308969, -0.370056, -1.319124, -0.894486, -0.727085, 0.915739]
VEC6_LOGITS = [-0.037809, 0.339436, -0.563550, 0.982791, -0.516681, -0.677690, -0.411390, -1.134667,
               -0.082341, -0.314956, -0.556661, -0.587828, -0.930063, -1.008993, -0.616423, 0.467966]
VEC7_S = [-0.079412, -0.024474, -0.027655, -0.006999, 0.080362, 0.192916, 0.013314, -0.044303]  # value 0, keys 0...7
VEC6_S = [-0.043213, 0.121958, -0.557374, -0.062650, 0.479928, 0.328048, -0.072617, 0.509439]  # key 0, values 0...7
VEC7_SUM, VEC6_SUM = (-3.449003, 1.164707), (-0.702111, -2.182806)


def generated_model(s):
    t = {}
    for name, shape in shapes(s).items():
        k, o = generated_scale(s["arch"], name)
        t[name] = (o + k * generated(name, int(np.prod(shape)))).reshape(shape)
    return Model(s["arch"], hparams(s), t)


def read_rwkv_bin(path):
    """A version 7 file of rwkv.cpp, F32 only, under GGUF's names."""
    b = open(path, "rb").read()
    magic, version, V, E, L, ty = struct.unpack_from("<6I", b)
    assert magic == 0x67676D66 and version in (100, 101) and ty == 0, "not an F32 file of rwkv.cpp"
    at, t = 24, {}
    while at < len(b):
        n_dim, n_key, ty = struct.unpack_from("<3I", b, at)
        ne = struct.unpack_from(f"<{n_dim}I", b, at + 12)
        at += 12 + 4 * n_dim
        key = b[at:at + n_key].decode()
        at += n_key
        assert ty == 0
        n = int(np.prod(ne))
        t[key] = np.frombuffer(b, "<f4", n, at).astype(np.float64).reshape(ne[::-1])
        at += 4 * n
    names = {"emb.weight": "token_embd.weight", "head.weight": "output.weight", "blocks.0.ln0": "token_embd_norm", "ln_out": "output_norm"}
    att = {"x_rwkvag": "time_mix_lerp_fused.weight", "ln_x": "time_mix_ln"}
    out = {}
    for key, x in t.items():
        p = key.split(".")
        if key in names:
            new = names[key]
        elif ".".join(p[:-1]) in names:
            new = names[".".join(p[:-1])] + "." + p[-1]
        elif p[2] in ("ln1", "ln2"):
            new = f"blk.{p[1]}.{'attn_norm' if p[2] == 'ln1' else 'attn_norm_2'}.{p[3]}"
        elif p[2] == "ffn":
            new = f"blk.{p[1]}." + {"x_k": "channel_mix_lerp_k", "key": "channel_mix_key", "value": "channel_mix_value"}[p[3]] + ".weight"
        elif p[3] == "ln_x":
            new = f"blk.{p[1]}.time_mix_ln.{p[4]}"
        else:
            new = f"blk.{p[1]}." + att.get(p[3], f"time_mix_{p[3]}.weight")
        if new.endswith("lerp_fused.weight"):
            x = x.reshape(6, 1, 1, E)
        elif x.ndim > 1 and (x.shape[0] == 1 or new.endswith("r_k.weight")):
            x = x.reshape(-1)
        out[new] = x
    N = E // t["blocks.0.att.r_k"].shape[0]
    rank = lambda c: out[f"blk.1.time_mix_{c}1.weight"].shape[0]
    s = dict(arch="rwkv7", E=E, N=N, F=out["blk.0.channel_mix_key.weight"].shape[0], V=V, L=L, ranks=tuple(rank(c) for c in "wavg"), no_v0=True)
    want = {k: tuple(v) for k, v in shapes7(s).items()}
    got = {k: v.shape for k, v in out.items()}
    assert got == want, {k: (got.get(k), want.get(k)) for k in set(got) | set(want) if got.get(k) != want.get(k)}
    return Model("rwkv7", hparams(s), out)


HOUSE = (b'Once upon a time there was a little house on a hill. The wind blew all night, '
         b'and the old man in the house could not sleep. "Who')
HOUSE_LOGITS = [-0.139642, -0.179372, -0.274774, -0.181736, -0.037796, -0.413680, -0.747471, -0.765203]


def tiny_paths():
    return os.path.join(DATA, "tiny-rwkv-7v0-834K-FP32.bin"), os.path.join(DATA, "expected-logits-7v0-834K.bin")


def prove():
    """True if the reference gives every published number."""
    good = True

    def check(what, got, want, bar):
        nonlocal good
        e = float(np.abs(np.asarray(got, float) - np.asarray(want, float)).max())
        good &= e <= bar
        print(f"  {what:<44} {e:9.1e} {'ok' if e <= bar else 'FAIL'}")

    assert fnv("token_embd.weight") == 0x2D85B88E70E67727
    check("the rule of generated numbers", generated("token_embd.weight", 4), [0.19979858, 0.58355713, -0.42687988, 0.08306885], 6e-9)
    for s, want, row, total in ((VEC7, VEC7_LOGITS, VEC7_S, VEC7_SUM), (VEC6, VEC6_LOGITS, VEC6_S, VEC6_SUM)):
        y, st = logits_of(generated_model(s), VEC_IDS)
        S = st[1][2]
        check(f"{s['arch']}: published logits", y[-1], want, 6e-7)
        check(f"{s['arch']}: published state of layer 1, head 1", S[1][:, 0] if s["arch"] == "rwkv7" else S[1][0], row, 6e-7)
        check(f"{s['arch']}: sums of the states of both layers", [x[2].sum() for x in st], total, 6e-7)
    model, expected = tiny_paths()
    if not os.path.exists(model):
        print(f"SKIP: the tiny model: {model} is not there")
        return good
    m = read_rwkv_bin(model)
    y, _ = logits_of(m, list(b'"in'))
    check('tiny model: published logits after \'"in\'', y[-1], np.fromfile(expected, "<f4"), 5e-7)
    check("tiny model: largest after each byte", y.argmax(1), [32, 110, 32], 0)
    y, _ = logits_of(m, list(HOUSE))
    top = np.argsort(-y[-1])[:5]
    check("tiny model: top five after 128 bytes", top, [32, 117, 116, 114, 121], 0)
    check("tiny model: their logits", y[-1][top], [3.21605, 1.72322, 1.57783, 1.56506, 1.22025], 6e-6)
    check("tiny model: logits 0...7", y[-1][:8], HOUSE_LOGITS, 6e-7)
    check("tiny model: sum and sum of squares", [y[-1].sum(), (y[-1] ** 2).sum()], [-82.252898, 122.317972], 6e-7)
    return good


# --------------------------------------------------------------------- models to compare

def random_tensor(rng, s, name, shape):
    """Values that keep activations of order 1 and leave no term of the equations without effect."""
    x = rng.standard_normal(shape)
    p = name.split(".")[-2].removeprefix("time_mix_").removeprefix("channel_mix_")
    hot = s.get("extreme", False)
    if name.endswith(".bias"):
        return 0.2 * x
    if "norm" in name or p == "ln":
        return 1 + 0.2 * x
    if "lerp" in p:
        return rng.uniform(-0.1, 1.1, shape)
    if p == "token_embd":
        return x
    if p == "output" and not name.startswith("blk"):
        return 2 / np.sqrt(shape[1]) * x
    if s["arch"] == "rwkv7":
        if p == "w0":
            return np.where(rng.random(shape) < 0.3, 40 * np.sign(x), x) if hot else 2 * x - 1
        if p in ("a0", "v0"):
            return np.where(rng.random(shape) < 0.3, 60 * np.sign(x), x) if hot else x
        if p in ("k_k", "k_a"):
            return 0.8 + 0.3 * x
        if p == "r_k":
            return 0.4 * x
    else:
        if p == "decay":
            return np.where(rng.random(shape) < 0.3, np.where(x < 0, -30, 6), x - 2) if hot else 1.5 * x - 2
        if p == "first":
            return 0.5 * x
        if p == "w2":
            return 0.3 / np.sqrt(shape[-1]) * x
    y = x / np.sqrt(shape[-1])
    if hot and p == "key" and "time_mix" in name:
        y[: s["N"]] = 0  # a head whose k is zero throughout: its norm has nothing to divide by
    if s.get("rescale") and (name.endswith("time_mix_output.weight") or name.endswith("channel_mix_value.weight")):
        y /= 2 ** (int(name.split(".")[1]) // s["rescale"])  # as converters store it
    return y


def f16(x):
    return np.asarray(x, np.float16).view(np.uint8).reshape(-1, 2)


def random_blocks(rng, ty, shape, sigma):
    """Blocks of a type gguf-py decodes but does not encode: random codes, and scales that
    give numbers of mean 0 and about the deviation sigma."""
    n = int(np.prod(shape)) // 256
    raw = lambda k: rng.integers(0, 256, (n, k), dtype=np.uint8)
    spread = rng.uniform(0.7, 1.3, n)
    if ty in (T.Q4_K, T.Q5_K):
        top = 15 if ty == T.Q4_K else 31
        d = sigma / (31.5 * top / 3.4) * spread
        parts = [f16(d), f16(d * top / 2), raw(12)] + ([raw(32)] if ty == T.Q5_K else []) + [raw(128)]
    elif ty == T.Q6_K:
        parts = [raw(128), raw(64), rng.integers(0, 256, (n, 16), dtype=np.uint8), f16(sigma / (74 * 18.5) * spread)]
    else:
        raise ValueError(ty)
    b = np.concatenate(parts, axis=1)
    return b.reshape(*shape[:-1], shape[-1] // 256 * b.shape[1])


def type_of(s, name, shape):
    """The type of a tensor: converters and quantizers leave vectors, lerps and the small decay
    matrices in F32; LoRA matrices keep the type of the conversion."""
    last = name.split(".")[-2]
    p = last.removeprefix("time_mix_")
    if len(shape) < 2 or "lerp" in name or last in ("time_mix_first", "time_mix_w1", "time_mix_w2", "time_mix_decay_w1", "time_mix_decay_w2"):
        return T.F32
    types = s.get("types", {})
    if p in ("a1", "a2", "v1", "v2", "g1", "g2"):
        return types.get("lora", T.F32)
    return types.get(last, types.get("*", T.F32))


def add_tokenizer(w, V):
    """As converters write RWKV's: text is a byte string's representation, id 0 ends documents."""
    w.add_tokenizer_model("rwkv")
    tokens = ["<s>"] + [repr(bytes([b]))[2:-1] for b in range(256)]
    types = [gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * 256
    while len(tokens) < V:
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(gguf.TokenType.UNUSED)
    w.add_token_list([t.encode() for t in tokens])
    w.add_token_types(types)
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)


def write_gguf(path, s, data):
    """data: name -> (array, type); arrays of block types are raw bytes."""
    w = gguf.GGUFWriter(path, s["arch"])
    w.add_name("random")
    for k, v in hparams(s).items():
        full = f"{s['arch']}.{k}"
        if isinstance(v, float):
            w.add_float32(full, v)
        elif s.get("wide_keys"):
            w.add_uint64(full, v)
        else:
            w.add_uint32(full, v)
    if not s.get("bare"):
        w.add_uint32(f"{s['arch']}.attention.head_count", 0)
        w.add_file_type(gguf.LlamaFileType.ALL_F32)
    if s.get("shift"):
        w.add_uint32(f"{s['arch']}.token_shift_count", 2)
    if s["V"] >= 257 and not s.get("bare"):
        add_tokenizer(w, s["V"])
    for name, (x, ty) in data.items():
        w.add_tensor(name, x, raw_dtype=None if ty in (T.F32, T.F16) else ty)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def random_model(path, s, seed):
    rng = np.random.default_rng([seed, zlib.crc32(s["name"].encode())])
    data = {}
    for name, shape in shapes(s).items():
        ty = type_of(s, name, shape)
        x = random_tensor(rng, s, name, shape)
        if ty in (T.Q4_K, T.Q5_K, T.Q6_K):
            data[name] = random_blocks(rng, ty, shape, float(x.std())), ty
        elif ty in (T.F32, T.F16):
            data[name] = x.astype(np.float16 if ty == T.F16 else np.float32), ty
        else:
            data[name] = gguf.quantize(x.astype(np.float32), ty), ty
    if s.get("folded"):  # the first norm is part of the embedding table
        e = data["token_embd.weight"][0].astype(np.float64)
        e = layer_norm(e, data.pop("token_embd_norm.weight")[0], data.pop("token_embd_norm.bias")[0], s.get("eps", 1e-5))
        data["token_embd.weight"] = e.astype(np.float32), T.F32
    write_gguf(path, s, data)


def case(name, arch, E, N, F, V, L, **kw):
    return dict(name=name, arch=arch, E=E, N=N, F=F, V=V, L=L, **kw)


K_MIX = {"*": T.Q4_K, "channel_mix_value": T.Q6_K, "time_mix_value": T.Q6_K, "output": T.Q6_K, "time_mix_key": T.Q5_K, "lora": T.F16}
MIX32 = {"*": T.Q4_0, "channel_mix_value": T.Q5_0, "time_mix_value": T.Q8_0, "output": T.Q8_0, "time_mix_key": T.Q4_1, "time_mix_output": T.Q5_1, "lora": T.BF16}
CASES = [
    case("v7-one-head", "rwkv7", 64, 64, 256, 300, 3, ranks=(32, 32, 16, 32)),
    case("v7-many-heads", "rwkv7", 192, 8, 100, 257, 3, ranks=(5, 7, 3, 9)),
    case("v7-odd", "rwkv7", 100, 20, 77, 61, 2, ranks=(1, 2, 3, 4), bare=True),
    case("v7-n32", "rwkv7", 160, 32, 640, 333, 4, ranks=(32, 16, 8, 40), shift=True),
    case("v7-n128", "rwkv7", 384, 128, 500, 300, 2, ranks=(17, 33, 9, 65)),
    case("v7-n7", "rwkv7", 21, 7, 30, 19, 3, ranks=(3, 3, 3, 3), eps=1e-3, bare=True),
    case("v7-n1", "rwkv7", 6, 1, 10, 11, 2, ranks=(2, 2, 2, 2), bare=True),
    case("v7-n256", "rwkv7", 256, 256, 300, 270, 2, ranks=(8, 8, 8, 8)),
    case("v7-one-layer", "rwkv7", 64, 16, 200, 300, 1, ranks=(8, 8, 8, 8)),
    case("v7-no-v0", "rwkv7", 96, 32, 384, 300, 3, ranks=(8, 16, 4, 24), no_v0=True, wide_keys=True),
    case("v7-extreme", "rwkv7", 128, 32, 256, 300, 3, ranks=(8, 8, 8, 8), extreme=True),
    case("v7-deep", "rwkv7", 64, 16, 128, 300, 12, ranks=(16, 16, 8, 16)),
    case("v7-f16", "rwkv7", 192, 64, 700, 300, 2, ranks=(32, 32, 16, 48), types={"*": T.F16, "lora": T.F16}),
    case("v7-bf16", "rwkv7", 192, 64, 700, 300, 2, ranks=(32, 32, 16, 48), types={"*": T.BF16, "lora": T.BF16}),
    case("v7-q8_0", "rwkv7", 256, 64, 1024, 300, 2, ranks=(32, 32, 32, 64), types={"*": T.Q8_0, "lora": T.F32}),
    case("v7-q8_0-lora", "rwkv7", 160, 32, 320, 300, 2, ranks=(32, 32, 32, 64), types={"*": T.Q8_0, "lora": T.Q8_0}),
    case("v7-k-quants", "rwkv7", 512, 64, 1792, 300, 2, ranks=(64, 64, 32, 96), types=K_MIX),
    case("v7-32-blocks", "rwkv7", 96, 16, 352, 300, 3, ranks=(16, 16, 8, 24), types=MIX32),
    case("v6-one-head", "rwkv6", 64, 64, 224, 300, 3, X=32, D=64),
    case("v6-many-heads", "rwkv6", 192, 8, 100, 257, 3, X=3, D=5, separate=True),
    case("v6-odd", "rwkv6", 100, 20, 77, 61, 2, X=1, D=1, bare=True),
    case("v6-rescale", "rwkv6", 160, 32, 560, 333, 5, X=8, D=16, rescale=2, shift=True),
    case("v6-rescale-1", "rwkv6", 48, 16, 160, 300, 4, X=4, D=4, rescale=1, separate=True, wide_keys=True),
    case("v6-n128", "rwkv6", 384, 128, 500, 300, 2, X=32, D=64, rescale=0),
    case("v6-n7", "rwkv6", 21, 7, 30, 19, 3, X=2, D=3, eps=1e-3, bare=True),
    case("v6-extreme", "rwkv6", 128, 32, 256, 300, 3, X=8, D=8, extreme=True),
    case("v6-deep", "rwkv6", 64, 16, 224, 300, 12, X=8, D=8, rescale=6),
    case("v6-f16", "rwkv6", 192, 64, 672, 300, 2, X=32, D=64, types={"*": T.F16}),
    case("v6-bf16", "rwkv6", 192, 64, 672, 300, 2, X=32, D=64, types={"*": T.BF16}),
    case("v6-q8_0", "rwkv6", 256, 64, 896, 300, 2, X=32, D=64, types={"*": T.Q8_0}),
    case("v6-k-quants", "rwkv6", 512, 64, 1792, 300, 2, X=32, D=64, types=dict(K_MIX, time_mix_gate=T.Q4_K)),
    case("v6-32-blocks", "rwkv6", 96, 16, 320, 300, 3, X=8, D=8, types=MIX32, separate=True),
]
QUICK = {"v7-one-head", "v7-many-heads", "v7-odd", "v7-extreme", "v7-k-quants", "v6-many-heads", "v6-rescale", "v6-odd", "v6-32-blocks"}


# ------------------------------------------------------------------------------- hone

def hone_logits(hone, path, ids, n_vocab, extra):
    cmd = [hone, "logits", "-m", path, "--ids", ",".join(map(str, ids)), "--all", *extra]
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if p.returncode != 0:
        raise RuntimeError(f"exit status {p.returncode}: {p.stderr.decode(errors='replace').strip()[-600:]}")
    want = len(ids) * n_vocab * 4
    if len(p.stdout) != want:
        raise RuntimeError(f"wrote {len(p.stdout)} bytes, expected {want} ([{len(ids)}, {n_vocab}] f32)")
    return np.frombuffer(p.stdout, "<f4").reshape(len(ids), n_vocab).astype(np.float64)


def compare(name, path, ids, args, tol=None, want=None, absolute=False):
    """Runs one model; prints its row; True if good."""
    m = read_gguf(path)
    blocks = any(ty in BLOCK256 | BLOCK32 for ty in m.types.values())
    ref, _ = logits_of(m, ids, rounding=True)
    plain = logits_of(m, ids)[0] if blocks else ref
    f32, _ = logits_of(m, ids, dtype=np.float32, rounding=True)  # what a value at the edge of two codes does
    spread = float(ref.max() - ref.min())
    rel = lambda a, b: float(np.abs(a - b).max()) / (1 if absolute else spread)
    row = f"{name:<18} {len(ids):>5} {spread:>8.2f} {rel(f32, ref):>9.1e}"
    if args.export_only:
        base = os.path.join(args.export_only, name)
        open(base + ".ids.txt", "w").write(",".join(map(str, ids)) + "\n")
        np.save(base + ".logits_f64.npy", plain)
        print(f"{row}  written")
        return True
    tol = tol or (max(TOL_BLOCK, 3 * rel(f32, ref)) if blocks else TOL_FLOAT)
    try:
        y = hone_logits(args.hone, path, ids, ref.shape[1], args.extra)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
        print(f"{row}  FAIL: hone {e}")
        return False
    e = rel(y, ref)
    per_row = np.abs(y - ref).max(1)
    good = bool(np.isfinite(y).all()) and e <= tol
    if want is not None:
        e_want = float(np.abs(y[-1] - want).max())
        good &= e_want <= tol
        row += f" (published: {e_want:.1e})"
    same = int((y.argmax(1) == plain.argmax(1)).sum())
    over = f"{rel(y, plain):>9.1e}" if blocks else " " * 9
    print(f"{row} {e:>9.1e} {over} {int(per_row.argmax()):>5} {same:>4}/{len(ids)}  {'ok' if good else 'FAIL, bar ' + str(tol)}")
    return good


def compare_tiny(tmp, args):
    model, expected = tiny_paths()
    if not os.path.exists(model):
        print("SKIP: tiny model: its file is not there")
        return True
    m = read_rwkv_bin(model)
    s = dict(name="tiny", arch="rwkv7", E=m.hp["embedding_length"], N=m.hp["wkv.head_size"], F=m.hp["feed_forward_length"], V=256, L=m.hp["block_count"],
             ranks=tuple(m.hp[f"attention.{k}_lora_rank"] for k in ("decay", "iclr", "value_residual_mix", "gate")))
    path = os.path.join(tmp, "tiny.gguf")
    write_gguf(path, s, {k: (v.astype(np.float32), T.F32) for k, v in m.t.items()})
    good = compare("tiny, absolute", path, list(b'"in'), args, TOL_TINY, np.fromfile(expected, "<f4"), True)
    good &= compare("tiny, 128 bytes", path, list(HOUSE), args, TOL_TINY, None, True)
    rng = np.random.default_rng(5)
    return compare("tiny, random", path, [int(i) for i in rng.integers(32, 127, args.n_tok)], args) & good


def main():
    ap = argparse.ArgumentParser(description="Compare hone's RWKV-7 and RWKV-6 with a float64 forward pass.")
    ap.add_argument("hone", nargs="?", help="the hone binary")
    ap.add_argument("extra", nargs="*", help="further arguments for `hone logits`, after --")
    ap.add_argument("--self", dest="only_self", action="store_true", help="only prove the reference")
    ap.add_argument("--export-only", metavar="DIR")
    ap.add_argument("--quick", action="store_true", help="nine models, 96 tokens")
    ap.add_argument("--case", action="append", choices=[c["name"] for c in CASES] + ["vectors7", "vectors6", "tiny"])
    ap.add_argument("--model", action="append", metavar="FILE", help="a GGUF file instead of the models made here (repeatable)")
    ap.add_argument("--ids", help="token ids for --model, comma separated; default: random")
    ap.add_argument("--n-tok", type=int, help="length of the sequences, 512")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    if bool(args.hone) + bool(args.export_only) + args.only_self != 1:
        ap.error("give the hone binary, --self or --export-only DIR")
    args.n_tok = args.n_tok or (96 if args.quick else 512)

    print("the reference against published numbers: max |error|")
    failed = 0 if prove() else 1
    if args.only_self or failed:
        return failed
    print("\nhone against the reference: max |error| / range of the logits"
          f"\n{'model':<18} {'n_tok':>5} {'range':>8} {'f32-f64':>9} {'hone':>9} {'unrounded':>9} {'at':>5} same top-1")
    with tempfile.TemporaryDirectory(prefix="hone-rwkv-") as tmp:
        out = args.export_only or tmp
        os.makedirs(out, exist_ok=True)
        rng = np.random.default_rng(args.seed)
        for path in args.model or []:
            V = read_gguf(path).t["token_embd.weight"].shape[0]
            ids = [int(i) for i in args.ids.split(",")] if args.ids else [int(i) for i in rng.integers(0, V, args.n_tok)]
            failed += not compare(os.path.basename(path)[:18], path, ids, args)
        if args.model:
            return 1 if failed else 0
        wanted = lambda n: n in args.case if args.case else (not args.quick or n in QUICK or n[0] in "vt" and "-" not in n)
        for s, want in ((VEC7, VEC7_LOGITS), (VEC6, VEC6_LOGITS)):
            name = "vectors" + s["arch"][-1]
            if wanted(name):
                path = os.path.join(out, name + ".gguf")
                write_gguf(path, s, {k: (v.astype(np.float32), T.F32) for k, v in generated_model(s).t.items()})
                failed += not compare(name, path, VEC_IDS, args, TOL_TINY, np.array(want), True)
        if wanted("tiny") and not args.export_only:
            failed += not compare_tiny(tmp, args)
        for c in CASES:
            if wanted(c["name"]):
                path = os.path.join(out, c["name"] + ".gguf")
                random_model(path, c, args.seed)
                ids = [int(i) for i in rng.integers(0, c["V"], args.n_tok)]
                ids[args.n_tok // 2: args.n_tok // 2 + 9] = [ids[0]] * len(ids[args.n_tok // 2: args.n_tok // 2 + 9])
                failed += not compare(c["name"], path, ids, args)
                sys.stdout.flush()
    if failed:
        print(f"{failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
