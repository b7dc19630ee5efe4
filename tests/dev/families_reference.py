#!/usr/bin/env python3
"""Model families in float64: one declarative program, an independent reading of the families' formulas.

Reads what a GGUF file holds (keys, tensors), gives logits at every position, the experts picked and the sums of the
recurrent states. Knows nothing of hone's code; written from the description of the families alone.
Run alone it checks itself against tests/golden/families/*.json (made by transformers and llama.cpp).
  python3 tests/dev/families_reference.py [NAME...]        vectors whose name begins so (default: all)
"""
import glob
import json
import math
import os
import sys

try:
    import numpy as np
except ImportError:  # a development check: not every machine has it
    print("families_reference: skipped, needs numpy")
    sys.exit(0)

VECTOR_CTX = 64  # positions of the sessions the vectors were made with: which of phi3's two factor tables is read
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "families")

# ---- what the architecture string decides; everything else is decided by keys and by which tensors there are -----
INDEXED = {"deepseek32", "glm-dsa"}  # whose queries see what an index chooses
NORM_ROPE = {"llama", "deepseek2", "deepseek32", "glm-dsa", "mistral4", "mistral3", "llama4", "smollm3", "granite", "granitemoe",
             "granitehybrid", "granite_swa", "glm4", "ernie4_5", "ernie4_5-moe", "command-r", "cohere2", "arcee", "chatglm",
             "deepseek", "deci", "maincoder", "cohere2moe", "llama-embed", "muse-glimmer", "olmo",
             "nanbeige"}
ALIBI = {"bloom", "mpt", "refact", "jina-bert-v2"}
NO_ROPE = {"gpt2", "starcoder", "mamba", "jamba", "mamba2", "nemotron_h", "nemotron_h_moe", "kimi-linear", "bert"} | ALIBI
BERTS = {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"}  # norms of the stream
BOTH_WAYS = BERTS | {"modern-bert", "eurobert", "llama-embed", "gemma-embedding"}  # attention sees what is behind, too
GELU = {"bloom", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "starcoder2", "gptneox", "gpt2", "starcoder", "phi2",
        "gemma-embedding"}
RELU2 = {"arcee", "nemotron", "nemotron_h", "nemotron_h_moe", "bitnet-b1.58"}
LAYER_NORM = {"bloom", "mpt", "command-r", "cohere2", "starcoder2", "gptneox", "gpt2", "starcoder", "phi2", "stablelm", "nemotron",
              "orion", "phimoe", "modern-bert", "olmo", "dbrx"} | BERTS
FULL_QK_NORM = {"olmo2", "olmoe", "minimax-m2"}
NORM_AFTER_ROPE = {"talkie", "hunyuan-dense", "hunyuan-moe", "llama4", "maincoder"}
EMB_SQRT = {"gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gemma-embedding", "afmoe"}
WINDOW_PERIOD = {"spark2_5": 0, "mimo2": 0, "gemma2": 2, "gpt-oss": 2, "gemma3": 6, "cohere2": 4, "olmo2": 4, "gemma3n": 5, "gemma-embedding": 6,
                 "mellum": 4, "exaone-moe": 4, "afmoe": 4, "smallthinker": 4, "cohere2moe": 4, "modern-bert": 3,
                 "granite_swa": 4, "laguna": 4, "step35": 4, "muse-glimmer": 4, "plamo3": 8}
UNSCALED_WINDOWS = {"gemma3", "gemma3n", "gemma4", "olmo2", "gemma-embedding", "mellum", "modern-bert", "laguna", "step35", "plamo3", "mimo2"}
PLAIN_NORMS = {"olmo", "hrm_text", "talkie"}  # without weights
QWEN_GDN = {"qwen3next", "qwen35", "qwen35moe", "qwen4exp"}
# MoE: (score function, normalise); None: the file's key says it.
ROUTE = {"qwen2moe": (1, False), "jamba": (1, False), "deepseek": (1, None), "bailingmoe2": (None, None), "olmoe": (1, False),
         "nomic-bert-moe": (1, False), "gpt-oss": (3, False), "llama4": ("llama4", False),
         "nemotron_h_moe": (2, None), "lfm2moe": (None, True), "minimax-m2": (None, True), "deepseek2": (None, None),
         "mistral4": (None, None), "deepseek32": (None, None), "glm-dsa": (None, None), "glm4moe": (None, None), "dots1": (None, None),
         "exaone-moe": (None, None), "afmoe": (None, None), "kimi-linear": (None, True), "smallthinker": (None, True),
         "phimoe": ("sparse", False), "cohere2moe": (None, None), "laguna": (None, None), "step35": (None, None),
         "mimo2": (2, True)}


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def rms(x, w, eps):
    y = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)
    return y if w is None else y * w


def softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def g_yarn(f, k=1.0):
    return 1.0 if f <= 1 else 1 + 0.1 * k * math.log(f)


def rotate(x, cos, sin, n, interleaved):
    """x [T, heads, d]; the first n values of each head turn by the table [T, n/2]."""
    y = x.copy()
    a, b = (x[..., 0:n:2], x[..., 1:n:2]) if interleaved else (x[..., :n // 2], x[..., n // 2:n])
    c, s = cos[:, None, :], sin[:, None, :]
    ra, rb = a * c - b * s, a * s + b * c
    if interleaved:
        y[..., 0:n:2], y[..., 1:n:2] = ra, rb
    else:
        y[..., :n // 2], y[..., n // 2:n] = ra, rb
    return y


class Model:
    """keys: name without the architecture's prefix -> value; tensors: name -> array, shape = ne backwards."""

    RUN = 8192  # llama4's runs of positions: not in files

    def __init__(self, keys, tensors):
        self.arch = keys["general.architecture"]
        head = self.arch + "."
        self.keys = {k[len(head):] if k.startswith(head) else k: v for k, v in keys.items()}
        self.t = {k: np.asarray(v, np.float64) for k, v in tensors.items()}
        self.n_layer = self.key("block_count") - self.key("nextn_predict_layers", 0)
        self.ln = self.arch in LAYER_NORM or \
            self.arch == "cohere2moe" and "attention.layer_norm_rms_epsilon" not in self.keys
        name = "attention.layer_norm_epsilon" if self.ln else "attention.layer_norm_rms_epsilon"
        if self.arch.startswith("nemotron_h") and name not in self.keys:
            name = "attention.layer_norm_epsilon"
        if self.arch == "phimoe" and name not in self.keys:  # as its converter calls it
            name = "attention.layer_norm_rms_epsilon"
        self.eps = self.key(name)
        self.n_embd = self.key("embedding_length")
        self.experts, self.states, self.gap = {}, {}, math.inf

    def key(self, name, *default):
        if name in self.keys:
            return self.keys[name]
        if default:
            return default[0]
        raise KeyError("no key %s.%s" % (self.arch, name))

    def per_layer(self, name, il, *default):
        v = self.key(name, *default)
        return v[il] if isinstance(v, (list, tuple)) else v

    def w(self, il, name):
        """A tensor of layer il, with or without .weight; None where the file has none."""
        for full in ("blk.%d.%s.weight" % (il, name), "blk.%d.%s" % (il, name)):
            if full in self.t:
                return self.t[full]
        return None

    def b(self, il, name):
        v = self.t.get("blk.%d.%s.bias" % (il, name))
        return None if v is None else v.reshape(-1)

    def has(self, il, name):
        return self.w(il, name) is not None

    def mul(self, il, name, x):
        y = x @ self.w(il, name).T
        if self.arch in ("talkie", "bitnet", "bitnet-b1.58"):
            y = y * self.t.get("blk.%d.%s.scale" % (il, name), np.ones(1)).reshape(-1)[0]
        b = self.b(il, name)
        return y if b is None else y + b

    def norm(self, x, name, il=None):
        """The family's norm over the last dimension, by the tensor's name."""
        stem = name if il is None else "blk.%d.%s" % (il, name)
        w = self.t.get(stem + ".weight", self.t.get(stem))
        if w is None and self.arch in PLAIN_NORMS:
            w = 1.0
        if w is None:
            raise KeyError("no tensor " + stem)
        if not self.ln:
            own = self.arch == "muse-glimmer" and name.startswith("post_")
            return rms(x, w, 1e-8 if own else self.eps)
        c = x - np.mean(x, -1, keepdims=True)
        y = c / np.sqrt(np.mean(c * c, -1, keepdims=True) + self.eps) * w
        return y + self.t[stem + ".bias"] if stem + ".bias" in self.t else y

    # ---- windows and rope ---------------------------------------------------------------------------

    def window(self):
        said = self.arch == "gemma2" or self.arch == "exaone4" and self.n_layer == 64
        return self.key("attention.sliding_window", 4096 if said else 0)

    def windowed(self, il):
        if self.arch == "lfm2":
            return self.window() > 0
        if self.arch not in WINDOW_PERIOD and self.arch not in ("gemma4", "exaone4"):
            return False
        if not self.window():
            return False
        period = WINDOW_PERIOD.get(self.arch, 0)
        if self.arch == "exaone4":
            period = 4 if self.n_layer == 64 else 0
        if self.arch == "olmo2" and "attention.sliding_window" not in self.keys:
            period = 0
        pattern = self.key("attention.sliding_window_pattern", period)
        if isinstance(pattern, (list, tuple)):
            return bool(pattern[il])
        if self.arch in ("smallthinker", "cohere2moe", "modern-bert", "granite_swa", "laguna"):  # the first of so many sees everything
            return pattern == 0 or il % pattern != 0
        return pattern > 1 and il % pattern < pattern - 1

    def runs(self):
        """llama4: layers that turn see positions of their own run, unless the key of windows is 0."""
        return self.arch == "llama4" and self.key("attention.sliding_window", self.RUN) != 0

    def head_dims(self, il):
        """(d of keys, d of values, heads, kv heads) of an attention layer."""
        n_head = self.per_layer("attention.head_count", il)
        n_kv = self.per_layer("attention.head_count_kv", il, n_head)
        d = self.key("attention.key_length", self.n_embd // n_head if n_head else 0)
        dv = self.key("attention.value_length", self.n_embd // n_head if n_head else 0)
        if "attention.value_length" not in self.keys and self.has(il, "attn_output"):
            dv = self.w(il, "attn_output").shape[1] // n_head  # a file without the key: the tensors say it
        if self.windowed(il):
            d, dv = self.key("attention.key_length_swa", d), self.key("attention.value_length_swa", dv)
        return d, dv, n_head, n_kv

    def has_rope(self, il):
        if self.arch in NO_ROPE:
            return False
        if self.arch == "smollm3" or self.arch == "llama4" and self.runs():
            return (il + 1) % 4 != 0
        if self.arch == "cohere2moe" and il < self.key("leading_dense_block_count", 0):
            return True
        if self.arch in ("cohere2", "exaone-moe", "afmoe", "cohere2moe", "muse-glimmer") or self.arch == "smallthinker" and self.window():
            return self.windowed(il)
        if self.arch == "exaone4" and self.n_layer == 64:
            return self.windowed(il)
        if self.arch == "granite_swa":
            return bool(self.per_layer("attention.rope_pattern", il, True))
        if self.arch in ("granite", "granitehybrid"):
            return bool(self.key("rope.scaling.finetuned", True))
        return True

    def rope_table(self, il, pos, d):
        """(n_rot, cos, sin) [T, n_rot/2] of a layer."""
        swa = self.windowed(il)
        n = self.key("rope.dimension_count", d)
        base = self.key("rope.freq_base", 10000.0)
        if swa:
            n = self.key("rope.dimension_count_swa", n)
            base = self.key("rope.freq_base_swa", 10000.0 if self.arch in UNSCALED_WINDOWS - {"olmo2", "mellum", "laguna"} else base)
        if self.arch == "step35" and not swa:  # layers that see everything turn half of it
            n = n // 2
        ff = np.ones(n // 2)
        long = self.n_ctx > self.key("rope.scaling.original_context_length", self.key("context_length", 0))
        factors = self.t.get("rope_factors_%s.weight" % ("long" if long else "short"))
        if factors is not None:
            ff = factors
        if "rope_freqs.weight" in self.t and not (self.arch in ("gemma4", "step35") and swa):
            ff = self.t["rope_freqs.weight"][:n // 2]
        i = np.arange(n // 2)
        theta = float(base) ** (-2.0 * i / n) / ff
        kind = self.key("rope.scaling.type", "linear")
        f = float(self.key("rope.scaling.factor", 1.0))
        a = float(self.key("rope.scaling.attn_factor", 1.0))
        if swa and self.arch in UNSCALED_WINDOWS:
            kind, a = "none", 1.0
        if kind == "linear":
            theta = theta / f
        elif kind == "yarn":
            theta = self.yarn(theta, n, float(base), f)
            a = self.yarn_magnitude(f) * a
        angle = pos[:, None] * theta[None, :]
        return n, np.cos(angle) * a, np.sin(angle) * a

    def yarn(self, theta, n, base, f):
        orig = self.key("rope.scaling.original_context_length", self.key("context_length", 0))

        def corner(beta):
            return n * math.log(orig / (2 * math.pi * beta)) / (2 * math.log(base))
        lo = max(0, math.floor(corner(float(self.key("rope.scaling.yarn_beta_fast", 32.0)))))
        hi = min(n - 1, math.ceil(corner(float(self.key("rope.scaling.yarn_beta_slow", 1.0)))))
        ramp = np.clip((np.arange(n // 2) - lo) / max(0.001, hi - lo), 0, 1)
        m = float(self.key("rope.scaling.yarn_ext_factor", 1.0)) * (1 - ramp)
        return theta * ((1 - m) / f + m)

    def yarn_magnitude(self, f):
        mult = float(self.key("rope.scaling.yarn_log_multiplier", 0.0))
        if not mult:
            return g_yarn(f)
        return 1.0 if self.arch in INDEXED | {"deepseek2", "mistral4"} else g_yarn(f) / g_yarn(f, mult)

    def temperature(self, il, pos):
        """tau of each position, or None."""
        if self.arch == "llama4":
            s, c, o = (0.1, self.RUN, 1) if self.runs() and not self.has_rope(il) else (0, 1, 0)
        else:
            s, o = float(self.key("attention.temperature_scale", 0.0)), 0
            c = self.key("rope.scaling.original_context_length", self.key("context_length"))
            c = self.key("attention.temperature_length", c) if self.arch in ("deepseek2", "mistral4") else c
        return None if not s else 1 + s * np.log(1 + np.floor((pos + o) / c))

    # ---- attention ----------------------------------------------------------------------------------

    def scale(self, d):
        if self.arch == "gemma4" or self.arch == "gemma3n":
            return 1.0
        if self.key("attention.scale", 0):
            return float(self.key("attention.scale"))
        if (self.arch, self.n_layer) in (("gemma2", 46), ("gemma3", 62)):
            return 1 / math.sqrt(self.n_embd / self.key("attention.head_count"))
        return 1 / math.sqrt(d)

    def weigh(self, il, q, k, v, scale):
        """q [T,H,d], k [T,G,d], v [T,G,dv] -> [T, H*dv], causal, windowed, capped, with sinks."""
        n_tok, r, some = q.shape[0], q.shape[1] // k.shape[1], 1024  # rows at a time: long texts need the memory
        k, v = np.repeat(k, r, 1), np.repeat(v, r, 1)
        return np.concatenate([self.weigh_rows(il, q[a:a + some], k, v, scale, a) for a in range(0, n_tok, some)])

    def alibi(self, n_head):
        """The paper's slopes: a geometric sequence where the heads are a power of two; else those of the power below,
        and every other one of those of the power above."""
        bias = float(self.key("attention.max_alibi_bias", 8.0))

        def of(n):
            return [2.0 ** (-bias * (h + 1) / n) for h in range(n)]

        below = 2 ** int(math.log2(n_head))
        return np.array(of(below) + of(2 * below)[0::2][:n_head - below])

    def weigh_rows(self, il, q, k, v, scale, first):
        """The same of rows that begin at position first."""
        n_tok = q.shape[0]
        s = np.einsum("ihd,jhd->hij", q, k, optimize=True) * scale
        if self.arch == "gemma2":
            c = float(self.key("attn_logit_softcapping", 50.0))
            s = c * np.tanh(s / c)
        i, j = first + np.arange(n_tok)[:, None], np.arange(k.shape[0])[None, :]
        both = self.arch in BOTH_WAYS
        seen = (j <= i) | both
        if self.arch in ALIBI:
            s = s - self.alibi(q.shape[1])[:, None, None] * abs(i - j)[None]
        if self.windowed(il):
            seen = seen & (abs(i - j) <= self.window() // 2 if both else i - j < self.window())
        if self.chosen is not None:
            seen = seen & self.chosen[first:first + n_tok]
        if self.runs() and self.has_rope(il):
            seen = seen & (i // self.RUN == j // self.RUN)
        s = np.where(seen[None], s, -np.inf)
        m = np.max(s, -1, keepdims=True)
        sink = self.w(il, "attn_sinks")
        if sink is not None:
            sink = sink.reshape(-1, 1, 1)
            m = np.maximum(m, sink)
        p = np.exp(s - m)
        total = np.sum(p, -1, keepdims=True) + (0 if sink is None else np.exp(sink - m))
        o = np.einsum("hij,jhd->ihd", p / total, v, optimize=True)
        return o.reshape(n_tok, -1)

    def qkv(self, il, h, d, dv, n_head, n_kv):
        """(q, k, v, gate) as heads; k, v None where the layer owns none."""
        n_tok, gate = h.shape[0], None
        if self.has(il, "attn_qkv"):
            y = self.mul(il, "attn_qkv", h)
            wide = n_head * d * (2 if self.arch in QWEN_GDN else 1)
            q, k, v = np.split(y, [wide, wide + n_kv * d], -1)
        else:
            q = self.mul(il, "attn_q", h)
            k = self.mul(il, "attn_k", h) if self.has(il, "attn_k") else None
            v = self.mul(il, "attn_v", h) if self.has(il, "attn_v") else k
        if self.arch in QWEN_GDN:
            q = q.reshape(n_tok, n_head, 2 * d)
            q, gate = q[..., :d], q[..., d:].reshape(n_tok, -1)
        elif self.has(il, "attn_gate"):
            gate = self.mul(il, "attn_gate", h)
        heads = [q.reshape(n_tok, n_head, d)]
        heads += [None, None] if k is None else [k.reshape(n_tok, n_kv, d), v.reshape(n_tok, n_kv, dv)]
        return heads + [gate]

    def qk_norm(self, il, x, name):
        if self.arch == "llama4":
            plain = self.has_rope(il) and self.key("expert_count", 0) != 128
            return rms(x, None, self.eps) if plain else x
        if self.arch == "talkie":  # a number for each head of queries
            return rms(x, None, self.eps) * (self.w(il, name).reshape(-1, 1) if name == "attn_q_norm" else 1)
        if not self.has(il, name):
            return x
        if self.arch in ("command-r", "stablelm"):  # each head has weights of its own
            c = x - np.mean(x, -1, keepdims=True)
            w = self.w(il, name).reshape(x.shape[1:])
            return c / np.sqrt(np.mean(c * c, -1, keepdims=True) + self.eps) * w
        if self.arch in FULL_QK_NORM:
            return self.norm(x.reshape(x.shape[0], -1), name, il).reshape(x.shape)
        return self.norm(x, name, il)

    def attention(self, il, h, pos):
        d, dv, n_head, n_kv = self.head_dims(il)
        q, k, v, gate = self.qkv(il, h, d, dv, n_head, n_kv)
        shared = self.arch in ("gemma4", "gemma3n") and il >= self.n_layer - self.key("attention.shared_kv_layers", 0)
        k = None if shared else k
        most = float(self.key("attention.clamp_kqv", 0.0)) if self.arch in ("mpt", "olmo", "dbrx") else 0.0
        if most:
            q, k, v = (np.clip(x, -most, most) for x in (q, k, v))
        after = self.arch in NORM_AFTER_ROPE
        if not after:
            q, k = self.qk_norm(il, q, "attn_q_norm"), None if k is None else self.qk_norm(il, k, "attn_k_norm")
        if self.arch in ("gemma4", "gemma3n") and k is not None:
            v = rms(v, None, self.eps)
        if self.has_rope(il):
            n, cos, sin = self.rope_table(il, pos, d)
            inter = self.arch in NORM_ROPE
            q = rotate(q, cos, sin, n, inter)
            k = None if k is None else rotate(k, cos, sin, n, inter)
        if after:
            q, k = self.qk_norm(il, q, "attn_q_norm"), self.qk_norm(il, k, "attn_k_norm")
        tau = self.temperature(il, pos)
        if tau is not None:
            q = q * tau[:, None, None]
        if k is None:
            k, v = self.kv[self.windowed(il)]
        self.kv[self.windowed(il)] = k, v
        self.chosen = self.choose(il, h, pos) if self.has(il, "indexer.q_proj") else None
        o = self.weigh(il, q, k, v, self.scale(d))
        if gate is not None:
            gate = softplus(gate) if self.arch == "laguna" else sigmoid(gate)
            o = o * (gate if gate.shape == o.shape else np.repeat(gate, o.shape[1] // gate.shape[1], 1))
        if self.arch == "mimo2":
            o = o * float(self.key("attention.value_scale", 0.0) or 1.0)
        if self.has(il, "attn_sub_norm"):
            o = self.norm(o, "attn_sub_norm", il)
        return self.mul(il, "attn_output", o)

    def choose(self, il, h, pos):
        """qwen4exp's index [T, T]: a query sees the blocks of positions that score most, of those that are whole when it
        comes, and what is behind the last of these."""
        n_tok, n, d = len(h), self.key("attention.indexer.head_count"), self.key("attention.indexer.key_length")
        block = self.per_layer("attention.compress_ratios", il)
        best = self.key("attention.indexer.top_k") // block
        n_rot, cos, sin = self.rope_table(il, pos, self.head_dims(il)[0])  # as heads of attention turn
        q = self.norm(self.mul(il, "indexer.q_proj", h).reshape(n_tok, n, d), "indexer.q_norm", il)
        q = rotate(q, cos, sin, n_rot, False)
        whole = n_tok // block
        keys = self.mul(il, "indexer.k_proj", h)[:whole * block].reshape(whole, block, d).mean(1)
        keys = self.norm(keys, "indexer.k_norm", il)[:, None]
        keys = rotate(keys, cos[:whole * block:block], sin[:whole * block:block], n_rot, False)[:, 0]
        score = np.maximum(np.einsum("thd,bd->thb", q, keys), 0).sum(1)
        seen = np.zeros((n_tok, n_tok), bool)
        for t in range(n_tok):
            there = (t + 1) // block
            seen[t, there * block:t + 1] = True
            order = np.argsort(-score[t, :there], kind="stable")
            if there > best:
                self.gap = min(self.gap, score[t, order[best - 1]] - score[t, order[best]])
                self.chose += 1
            for b in order[:best]:
                seen[t, b * block:(b + 1) * block] = True
        return seen

    def lightning(self, il, h, q_a, pos):
        """DeepSeek's index [T, T]: a query sees the positions that score most, of those up to its own."""
        n_tok, n, d = len(h), self.key("attention.indexer.head_count"), self.key("attention.indexer.key_length")
        best = self.key("attention.indexer.top_k")
        n_rot, cos, sin = self.rope_table(il, pos, self.key("rope.dimension_count"))
        pairs = self.arch == "glm-dsa"
        q = rotate(self.mul(il, "indexer.attn_q_b", q_a).reshape(n_tok, n, d), cos, sin, n_rot, pairs)
        k = h @ self.w(il, "indexer.attn_k").T
        k = k - np.mean(k, -1, keepdims=True)
        k = k / np.sqrt(np.mean(k * k, -1, keepdims=True) + 1e-6) * self.w(il, "indexer.k_norm") + self.b(il, "indexer.k_norm")
        k = rotate(k[:, None], cos, sin, n_rot, pairs)[:, 0]
        weigh = self.mul(il, "indexer.proj", h)
        score = np.einsum("thp,th->tp", np.maximum(np.einsum("thd,pd->thp", q, k), 0), weigh)
        seen = np.zeros((n_tok, n_tok), bool)
        for t in range(n_tok):
            order = np.argsort(-score[t, :t + 1], kind="stable")
            if t + 1 > best:
                self.gap = min(self.gap, score[t, order[best - 1]] - score[t, order[best]])
                self.chose += 1
            seen[t, order[:best]] = True
        return seen

    def mla(self, il, h, pos):
        """Latent attention, expanded: keys and values of every head are made from the latent row."""
        n_tok, n_head, rk = h.shape[0], self.per_layer("attention.head_count", il), self.key("attention.kv_lora_rank")
        full = self.key("attention.key_length_mla", self.key("attention.key_length", 0))
        even = self.n_embd // n_head if self.arch == "minicpm3" else 0
        dv = self.key("attention.value_length_mla", self.key("attention.value_length", even))
        p = self.key("rope.dimension_count")
        n = full - p
        if self.has(il, "attn_q_a"):
            q = self.norm(self.mul(il, "attn_q_a", h), "attn_q_a_norm", il)
            if self.has(il, "indexer.proj"):  # a layer without sees what the last one with chose
                self.chosen = self.lightning(il, h, q, pos)
            q = self.mul(il, "attn_q_b", q)
        else:
            q = self.mul(il, "attn_q", h)
        q = q.reshape(n_tok, n_head, full)
        y = self.mul(il, "attn_kv_a_mqa", h)
        c, kp = self.norm(y[:, :rk], "attn_kv_a_norm", il), y[:, None, rk:]
        if self.has(il, "attn_k_b"):
            k_b, v_b = self.w(il, "attn_k_b").reshape(n_head, rk, n), self.w(il, "attn_v_b").reshape(n_head, dv, rk)
        else:
            kv_b = self.w(il, "attn_kv_b").reshape(n_head, n + dv, rk)
            k_b, v_b = np.transpose(kv_b[:, :n], (0, 2, 1)), kv_b[:, n:]
        qp = q[..., n:]
        if self.has_rope(il):
            m, cos, sin = self.rope_table(il, pos, p)
            inter = self.arch in NORM_ROPE
            qp, kp = rotate(qp, cos, sin, m, inter), rotate(kp, cos, sin, m, inter)
        k = np.concatenate([np.einsum("hcn,tc->thn", k_b, c), np.repeat(kp, n_head, 1)], -1)
        v = np.einsum("hvc,tc->thv", v_b, c)
        scale = 1 / math.sqrt(full)
        mult = float(self.key("rope.scaling.yarn_log_multiplier", 0.0))
        if self.has_rope(il) and self.key("rope.scaling.type", "none") == "yarn" and mult:
            scale *= g_yarn(float(self.key("rope.scaling.factor", 1.0)), mult / 0.1) ** 2
        q = np.concatenate([q[..., :n], qp], -1)
        tau = self.temperature(il, pos)
        if tau is not None:
            q = q * tau[:, None, None]
        return self.mul(il, "attn_output", self.weigh(il, q, k, v, scale))

    # ---- recurrent mixers ---------------------------------------------------------------------------

    @staticmethod
    def conv(x, w, bias=None):
        """x [T, C], w [C, k]: causal, each channel by itself, zeros before the beginning."""
        k = w.shape[-1]
        w = w.reshape(-1, k)
        padded = np.concatenate([np.zeros((k - 1, x.shape[1])), x])
        y = sum(padded[j:j + len(x)] * w[:, j] for j in range(k))
        return y if bias is None else y + bias

    def delta_rule(self, il, q, k, v, gamma, beta):
        """q, k [T,H,D] (unit length), v [T,H,Dv], gamma [T,H,D or 1], beta [T,H] -> [T,H,Dv]."""
        n_tok, n_head, dk = q.shape
        s, out = np.zeros((n_head, dk, v.shape[-1])), np.empty(v.shape)
        for t in range(n_tok):
            s = s * gamma[t][:, :, None]
            d = beta[t][:, None] * (v[t] - np.einsum("hic,hi->hc", s, k[t]))
            s = s + k[t][:, :, None] * d[:, None, :]
            out[t] = np.einsum("hic,hi->hc", s, q[t])
        self.states[il] = float(np.sum(s))
        return out

    def l2(self, x):
        return x / np.sqrt(np.sum(x * x, -1, keepdims=True) + self.eps)

    def gdn(self, il, h):
        n_tok = h.shape[0]
        d, hk, hv = self.key("ssm.state_size"), self.key("ssm.group_count"), self.key("ssm.time_step_rank")
        r = hv // hk
        if self.has(il, "ssm_in"):  # legacy: per k-head q, k, r·v, r·z
            y = self.mul(il, "ssm_in", h).reshape(n_tok, hk, 2 * d + 2 * r * d)
            parts = np.split(y, [d, 2 * d, 2 * d + r * d], -1)
            q, k, v, z = (part.reshape(n_tok, -1) for part in parts)
            u = np.concatenate([q, k, v], -1)
        else:
            u, z = self.mul(il, "attn_qkv", h), self.mul(il, "attn_gate", h)
        if self.has(il, "ssm_ba"):
            ba = self.mul(il, "ssm_ba", h).reshape(n_tok, hk, 2 * r)
            b, a = ba[..., :r].reshape(n_tok, hv), ba[..., r:].reshape(n_tok, hv)
        else:
            b, a = self.mul(il, "ssm_beta", h), self.mul(il, "ssm_alpha", h)
        u = silu(self.conv(u, self.w(il, "ssm_conv1d")))
        q, k, v = np.split(u, [hk * d, 2 * hk * d], -1)
        q = self.l2(q.reshape(n_tok, hk, d)) / math.sqrt(d)
        k = self.l2(k.reshape(n_tok, hk, d))
        heads = np.arange(hv) // r if self.arch == "qwen3next" else np.arange(hv) % hk
        gamma = np.exp(self.w(il, "ssm_a").reshape(-1) * softplus(a + self.b(il, "ssm_dt")))
        o = self.delta_rule(il, q[:, heads], k[:, heads], v.reshape(n_tok, hv, d), gamma[..., None], sigmoid(b))
        gate = sigmoid if self.arch == "qwen4exp" else silu
        y = self.norm(o, "ssm_norm", il) * gate(z.reshape(n_tok, hv, d))
        return self.mul(il, "ssm_out", y.reshape(n_tok, -1))

    def kda(self, il, h):
        n_tok, n_head, d = h.shape[0], self.per_layer("attention.head_count", il), self.key("kda.head_dim")
        q, k, v = (silu(self.conv(self.mul(il, "attn_" + x, h), self.w(il, "ssm_conv1d_" + x)))
                   .reshape(n_tok, n_head, d) for x in "qkv")
        f = self.mul(il, "ssm_f_b", self.mul(il, "ssm_f_a", h)) + self.b(il, "ssm_dt")
        gamma = np.exp(self.w(il, "ssm_a").reshape(n_head, 1) * softplus(f.reshape(n_tok, n_head, d)))
        o = self.delta_rule(il, self.l2(q) / math.sqrt(d), self.l2(k), v, gamma,
                            sigmoid(self.mul(il, "ssm_beta", h)))
        g = self.mul(il, "ssm_g_b", self.mul(il, "ssm_g_a", h)).reshape(n_tok, n_head, d)
        return self.mul(il, "attn_output", (self.norm(o, "ssm_norm", il) * sigmoid(g)).reshape(n_tok, -1))

    def mamba2(self, il, h):
        n_tok, inner, n = h.shape[0], self.key("ssm.inner_size"), self.key("ssm.state_size")
        n_group, n_head = self.key("ssm.group_count"), self.key("ssm.time_step_rank")
        p = inner // n_head
        z, xbc, dt = np.split(self.mul(il, "ssm_in", h), [inner, 2 * inner + 2 * n_group * n], -1)
        xbc = silu(self.conv(xbc, self.w(il, "ssm_conv1d"), self.b(il, "ssm_conv1d")))
        x, b, c = np.split(xbc, [inner, inner + n_group * n], -1)
        delta = softplus(dt + self.b(il, "ssm_dt"))
        x = x.reshape(n_tok, n_head, p)
        group = np.arange(n_head) // (n_head // n_group)
        b, c = b.reshape(n_tok, n_group, n)[:, group], c.reshape(n_tok, n_group, n)[:, group]
        a, d = self.w(il, "ssm_a").reshape(-1), self.w(il, "ssm_d").reshape(-1)
        s, y = np.zeros((n_head, p, n)), np.empty(x.shape)
        for t in range(n_tok):
            s = s * np.exp(delta[t] * a)[:, None, None] + (delta[t][:, None] * x[t])[:, :, None] * b[t][:, None, :]
            y[t] = np.einsum("hpn,hn->hp", s, c[t]) + d[:, None] * x[t]
        self.states[il] = float(np.sum(s))
        y = y.reshape(n_tok, inner) * silu(z)
        if self.has(il, "ssm_norm"):
            w = self.w(il, "ssm_norm").reshape(n_group, -1)
            y = rms(y.reshape(n_tok, n_group, -1), w, self.eps).reshape(n_tok, inner)
        return self.mul(il, "ssm_out", y)

    def mamba(self, il, h):
        n_tok, n, rank = h.shape[0], self.key("ssm.state_size"), self.key("ssm.time_step_rank")
        inner = self.key("ssm.inner_size")
        x, z = np.split(self.mul(il, "ssm_in", h), 2, -1)
        x = silu(self.conv(x, self.w(il, "ssm_conv1d"), self.b(il, "ssm_conv1d")))
        parts = np.split(self.mul(il, "ssm_x", x), [rank, rank + n], -1)
        for i, name in enumerate(("ssm_dt_norm", "ssm_b_norm", "ssm_c_norm")):
            if self.has(il, name) or self.key("ssm.dt_b_c_rms", False):
                parts[i] = rms(parts[i], self.w(il, name) if self.has(il, name) else 1.0, self.eps)
        dt, b, c = parts
        delta = softplus(self.mul(il, "ssm_dt", dt))
        a, d = self.w(il, "ssm_a").reshape(inner, n), self.w(il, "ssm_d").reshape(-1)
        s, y = np.zeros((inner, n)), np.empty(x.shape)
        for t in range(n_tok):
            s = s * np.exp(delta[t][:, None] * a) + (delta[t] * x[t])[:, None] * b[t]
            y[t] = s @ c[t] + d * x[t]
        self.states[il] = float(np.sum(s))
        return self.mul(il, "ssm_out", y * silu(z))

    def shortconv(self, il, h):
        b, c, x = np.split(self.mul(il, "shortconv.in_proj", h), 3, -1)
        y = c * self.conv(b * x, self.w(il, "shortconv.conv"))
        return self.mul(il, "shortconv.out_proj", y)

    def mixer(self, il, h, pos):
        """The layer's mixer, by the tensors it has; None: a layer of feed-forward only."""
        if self.has(il, "shortconv.in_proj"):
            return self.shortconv(il, h)
        if self.has(il, "ssm_f_a"):
            return self.kda(il, h)
        if self.arch in QWEN_GDN and self.has(il, "ssm_out"):
            return self.gdn(il, h)
        if self.has(il, "attn_kv_a_mqa"):
            return self.mla(il, h, pos)
        out = None
        if self.has(il, "ssm_in"):
            out = self.mamba(il, h) if self.has(il, "ssm_x") else self.mamba2(il, h)
        if self.has(il, "attn_q") or self.has(il, "attn_qkv"):
            o = self.attention(il, h, pos)
            out = o if out is None else out + o
        elif self.arch == "deci" and self.has(il, "attn_output"):  # in place of attention
            out = self.mul(il, "attn_output", h)
        return out

    # ---- feed-forward -------------------------------------------------------------------------------

    def act(self, x):
        if self.arch in RELU2:
            return np.maximum(x, 0) ** 2
        if self.arch in BERTS - {"nomic-bert"} | {"mpt", "spark2_5"}:
            return gelu_erf(x)
        if self.arch == "smallthinker":
            return np.maximum(x, 0)
        if self.arch == "modern-bert":
            word = self.key("hidden_activation", "gelu")
            return gelu_erf(x) if word == "gelu" else silu(x) if word in ("silu", "swish") else gelu(x)
        return gelu(x) if self.arch in GELU else silu(x)

    def xielu(self, il, x):
        """Apertus: files have what becomes positive by softplus."""
        p, n, beta, eps = (float(self.per_layer("xielu." + k, il)) for k in ("alpha_p", "alpha_n", "beta", "eps"))
        p, n = softplus(p), beta + softplus(n)
        below = (np.expm1(np.minimum(x, eps)) - x) * n + beta * x
        return np.where(x > 0, p * x * x + beta * x, below)

    def glu(self, il, h, tail=""):
        """down(act(gate h)·up h), or down(act(up h)) where there is no gate."""
        up, n_ff = self.mul(il, "ffn_up" + tail, h), self.w(il, "ffn_down" + tail).shape[1]
        if self.arch == "step35":
            limit = self.per_layer("swiglu_clamp_shexp", il, 0.0)
            mid = self.limited(self.mul(il, "ffn_gate" + tail, h), up, limit)
        elif self.has(il, "ffn_gate" + tail):
            gate = self.mul(il, "ffn_gate" + tail, h)
            sparsity = self.per_layer("activation_sparsity_scale", il, -math.inf) if self.arch == "gemma3n" else -math.inf
            if sparsity > -math.inf:  # the quantile of nothing
                cut = np.mean(gate, -1, keepdims=True) + np.std(gate, -1, keepdims=True) * float(sparsity)
                gate = np.maximum(gate - cut, 0)
            mid = self.act(gate) * up
        elif up.shape[-1] == 2 * n_ff:
            mid = self.act(up[..., :n_ff]) * up[..., n_ff:]
        elif self.arch == "apertus":
            mid = self.xielu(il, up)
        else:
            mid = self.act(up)
        if self.has(il, "ffn_sub_norm"):
            mid = self.norm(mid, "ffn_sub_norm", il)
        return self.mul(il, "ffn_down" + tail, mid)

    @staticmethod
    def limited(gate, up, limit):
        """step35: what a gate gives has a limit above, what it opens on both sides; 0: none."""
        limit = limit or math.inf
        return np.minimum(silu(gate), limit) * np.clip(up, -limit, limit)

    def expert(self, il, e, x):
        """One expert on rows x."""
        def part(name):
            w, b = self.w(il, name)[e], self.t.get("blk.%d.%s.bias" % (il, name))
            y = x @ w.T
            return y if b is None else y + b[e]
        if self.has(il, "ffn_gate_up_exps"):
            gate, up = np.split(part("ffn_gate_up_exps"), 2, -1)
        else:
            gate, up = part("ffn_gate_exps") if self.has(il, "ffn_gate_exps") else None, part("ffn_up_exps")
        if self.arch == "gpt-oss":
            gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
            mid = gate * sigmoid(1.702 * gate) * (up + 1)
        elif self.arch == "step35":
            mid = self.limited(gate, up, self.per_layer("swiglu_clamp_exp", il, 0.0))
        else:
            mid = self.act(up) if gate is None else self.act(gate) * up
        down = self.w(il, "ffn_down_exps")[e]
        y = mid @ down.T
        bias, scale = self.t.get("blk.%d.ffn_down_exps.bias" % il), self.t.get("blk.%d.ffn_down_exps.scale" % il)
        y = y if bias is None else y + bias[e]
        return y if scale is None else y * scale.reshape(-1)[e]

    def routing(self, il):
        func, norm = ROUTE.get(self.arch, (1, True))
        if func is None:
            biased = self.b(il, "exp_probs_b") is not None or self.arch in INDEXED | {"smallthinker", "cohere2moe", "laguna", "step35"}
            func = self.key("expert_gating_func", 0) or (2 if biased else 1)
        return func, bool(self.key("expert_weights_norm", False)) if norm is None else norm

    def select(self, il, score, alone):
        """The k best experts of each row, best first; notes how close the closest choice was. alone: groups compete by
        their best expert, not by their two best."""
        k, n_group = self.key("expert_used_count"), self.key("expert_group_count", 0)
        if n_group > 1:
            n_tok, n = score.shape
            by_group = score.reshape(n_tok, n_group, n // n_group)
            best = np.sum(np.sort(by_group, -1)[..., -(1 if alone else 2):], -1)
            used = self.key("expert_group_used_count")
            order = np.argsort(-best, -1, kind="stable")
            if used < n_group:
                top = np.take_along_axis(best, order, -1)
                self.gap = min(self.gap, float(np.min(top[:, used - 1] - top[:, used])))
            keep = np.zeros(best.shape, bool)
            np.put_along_axis(keep, order[:, :used], True, -1)
            score = np.where(np.repeat(keep, n // n_group, -1), score, -np.inf)
        order = np.argsort(-score, -1, kind="stable")
        if k < score.shape[-1]:
            top = np.take_along_axis(score, order, -1)
            self.gap = min(self.gap, float(np.min(top[:, k - 1] - top[:, k])))
        return order[:, :k]

    def sparse(self, logits):
        """SparseMixer's two experts of each row and their weights: each is the best of those left, and weighs its share of
        a softmax of those left that are near it."""
        left, picked, weights = logits.copy(), [], []
        rows = np.arange(len(logits))
        for _ in range(2):
            best = np.max(left, -1, keepdims=True)
            far = (best - logits) / np.maximum(np.abs(logits), best) > 0.02
            near = np.where(far, -np.inf, left)
            at = np.argmax(left, -1)
            picked.append(at)
            weights.append(softmax(near)[rows, at])
            edge = np.abs((best - logits) / np.maximum(np.abs(logits), best) - 0.02)
            self.gap = min(self.gap, float(np.min(edge)))
            two = -np.sort(-left, -1)
            self.gap = min(self.gap, float(np.min(two[:, 0] - two[:, 1])))
            left[rows, at] = -np.inf
        return np.stack(picked, -1), np.stack(weights, -1)

    def moe(self, il, h, router_in=None):
        logits = self.mul(il, "ffn_gate_inp", h if router_in is None else router_in)
        func, norm = self.routing(il)
        p = {1: softmax, 2: sigmoid, "llama4": sigmoid}.get(func, lambda x: x)(logits)
        bias = self.b(il, "exp_probs_b")
        score = logits if func in (3, "llama4") else p if bias is None else p + bias
        if func == "sparse":
            picked, w = self.sparse(logits)
        else:
            picked = self.select(il, score, self.arch == "deepseek2" and func == 1 and bias is None)
            w = np.take_along_axis(p, picked, -1)
        if func == 3:
            w = softmax(w)
        if norm:
            w = w / np.maximum(np.sum(w, -1, keepdims=True), 2.0 ** -14)
        scale = float(self.key("expert_weights_scale", 0.0))
        w = w * scale if scale not in (0.0, 1.0) else w
        self.experts[il] = picked
        x = self.mul(il, "ffn_latent_down", h) if self.has(il, "ffn_latent_down") else h
        out = np.zeros(x.shape)
        for e in np.unique(picked):
            t, r = np.nonzero(picked == e)
            weight = w[t, r][:, None]
            out[t] += self.expert(il, e, x[t] * weight) if func == "llama4" else weight * self.expert(il, e, x[t])
        if self.has(il, "ffn_latent_up"):
            out = self.mul(il, "ffn_latent_up", out)
        if self.has(il, "ffn_up_shexp"):
            y = self.glu(il, h, "_shexp")
            if self.has(il, "ffn_gate_inp_shexp"):
                y = y * sigmoid(h @ self.w(il, "ffn_gate_inp_shexp").reshape(-1, 1))
            out = out + y
            if self.arch == "cohere2moe":
                out = out / 2
        return out

    def ffn(self, il, h, router_in=None):
        return self.moe(il, h, router_in) if self.has(il, "ffn_gate_inp") else self.glu(il, h)

    # ---- layers -------------------------------------------------------------------------------------

    def layer(self, il, x, pos):
        h = self.norm(x, "attn_norm", il) if self.has(il, "attn_norm") or self.arch in PLAIN_NORMS else x
        begin = x if self.arch == "smallthinker" else None  # what its router sees
        res = float(self.key("residual_scale", 1.0)) if self.arch.startswith("granite") else 1.0
        if self.arch == "minicpm3":
            res = float(np.float32(self.key("residual_scale", 1.4 / math.sqrt(self.n_layer))))
        sandwich = self.has(il, "post_ffw_norm")
        if self.has(il, "layer_output_norm"):  # norms of the stream itself
            x = self.norm(x + self.mixer(il, x, pos), "attn_output_norm", il)
            return self.norm(x + self.ffn(il, x), "layer_output_norm", il)
        if self.arch in ("nemotron_h", "nemotron_h_moe", "mamba", "mamba2"):
            o = self.mixer(il, h, pos)
            return x + (self.ffn(il, h) if o is None else o)
        o = self.mixer(il, h, pos)
        if self.arch == "deci":  # layers may lack either half
            x = x if o is None else x + o
            return x + self.glu(il, self.norm(x, "ffn_norm", il)) if self.has(il, "ffn_norm") else x
        if sandwich:
            o = self.norm(o, "post_attention_norm", il)
        if self.arch in ("command-r", "cohere2", "cohere2moe", "phi2") or self.arch == "stablelm" and not self.has(il, "ffn_norm"):
            return x + o + self.ffn(il, h)
        if self.arch == "gptneox" and self.key("use_parallel_residual"):
            return x + o + self.ffn(il, self.norm(x, "ffn_norm", il))
        x = x + res * o
        if self.arch == "gemma4":
            return self.gemma4_rest(il, x)
        pre2 = "ffn_norm" if self.has(il, "ffn_norm") or self.arch in PLAIN_NORMS else None if sandwich else "post_attention_norm"
        pre2 = "attn_output_norm" if self.arch == "dbrx" else pre2
        f = self.ffn(il, self.norm(x, pre2, il) if pre2 else x, begin)
        if sandwich:
            f = self.norm(f, "post_ffw_norm", il)
        return x + res * f

    def gemma4_rest(self, il, y):
        f = self.glu(il, self.norm(y, "ffn_norm", il))
        if self.has(il, "ffn_gate_inp"):
            router = rms(y, None, self.eps) / math.sqrt(self.n_embd) * self.t["blk.%d.ffn_gate_inp.scale" % il]
            routed = self.moe(il, self.norm(y, "pre_ffw_norm_2", il), router)
            f = self.norm(f, "post_ffw_norm_1", il) + self.norm(routed, "post_ffw_norm_2", il)
        x = y + self.norm(f, "post_ffw_norm", il)
        if self.ple is not None:
            mid = gelu(self.mul(il, "inp_gate", x)) * self.ple[:, il]
            x = x + self.norm(self.mul(il, "proj", mid), "post_norm", il)
        scale = self.w(il, "layer_output_scale")
        return x if scale is None else x * scale.reshape(-1)[0]

    def per_layer_rows(self, tokens, x0):
        """Per-layer embeddings [T, L, n], or None."""
        n = self.key("embedding_length_per_layer_input", 0)
        if not n or "per_layer_model_proj.weight" not in self.t:
            return None
        shape = (len(tokens), self.n_layer, n)
        proj = (x0 @ self.t["per_layer_model_proj.weight"].T / math.sqrt(self.n_embd)).reshape(shape)
        rows = self.t["per_layer_token_embd.weight"][tokens].reshape(shape) * math.sqrt(n)
        return (self.norm(proj, "per_layer_proj_norm") + rows) / math.sqrt(2)

    def parts_norm(self, x, name):
        """RMSNorm of each part of a wide stream [T, parts, E] by itself."""
        return rms(x, self.t[name + ".weight"].reshape(x.shape[1:]), self.eps)

    def mix(self, x, name):
        """qwen4exp: what a half takes of the wide stream, and how much of what it gives each part takes."""
        n = x.shape[1]
        y = self.parts_norm(x, name + "_norm")
        flat = y.reshape(len(x), -1)
        gate = sigmoid(silu(flat @ self.t[name + "_down.weight"].T / n) @ self.t[name + "_up.weight"].T)
        inject = self.t.get(name + "_inject.weight")
        share = None if inject is None else 2 * sigmoid(flat @ inject.T / n)
        return (gate.reshape(y.shape) * y).mean(1), share

    def ngrams(self, il, x, tokens):
        """qwen4exp: what the wide stream takes of hashed n-grams of ids."""
        size, per, eos = (self.key("ple." + k) for k in ("ngram_size", "heads_per_ngram", "eos_token_id"))
        mul, rows, at = (self.key("ple." + k) for k in ("layer_multipliers", "head_vocab_sizes", "head_offsets"))
        table, emb = self.t["per_layer_token_embd.weight"], []
        for t in range(len(tokens)):
            ids = [int(tokens[t])]
            for back in range(1, size):
                before = int(tokens[t - back]) if t >= back else eos
                ids.append(eos if ids[-1] == eos and back > 1 or before == eos else before)
            mixed, row = ids[0] * mul[0], []
            for n in range(1, size):
                mixed ^= ids[n] * mul[n]
                row += [table[mixed % rows[h] + at[h]] for h in range((n - 1) * per, n * per)]
            emb.append(np.concatenate(row))
        emb = np.stack(emb)
        key = self.parts_norm(self.mul(il, "ple_key", emb).reshape(x.shape), "blk.%d.ple_norm_key" % il)
        query = self.parts_norm(x, "blk.%d.ple_norm_query" % il)
        s = (key * query).sum(-1, keepdims=True) / math.sqrt(self.n_embd)
        gated = sigmoid(np.sign(s) * np.sqrt(np.maximum(np.abs(s), 1e-6))) * self.mul(il, "ple_value", emb)[:, None]
        normed = self.parts_norm(gated, "blk.%d.ple_norm_conv" % il).reshape(len(x), -1)
        w = self.w(il, "ple_conv1d").reshape(normed.shape[1], -1)
        wide = np.zeros((w.shape[0], (w.shape[1] - 1) * size + 1))
        wide[:, ::size] = w  # its taps lie as far apart as n-grams are long
        return x + gated + silu(self.conv(normed, wide)).reshape(x.shape)

    def wide_stream(self, x, pos, tokens):
        """qwen4exp: a stream of several parts."""
        x = np.repeat(x[:, None], self.key("hyper_connection.count"), 1)
        for il in range(self.n_layer):
            if self.has(il, "ple_key"):
                x = self.ngrams(il, x, tokens)
            for name, half in (("hc_attn", lambda h: self.mixer(il, h, pos)), ("hc_ffn", lambda h: self.ffn(il, h))):
                h, share = self.mix(x, "blk.%d.%s" % (il, name))
                x = x + share[..., None] * half(h)[:, None]
        return self.mix(x, "output_hc")[0]

    def gemma3n(self, x, pos):
        """Four streams of which one is computed (AltUp), beside a low-rank path (LAuReL)."""
        active, n = self.key("altup.active_idx", 0), self.key("altup.num_inputs", 4)

        def as_loud_as(y, x):
            return y * np.sqrt(np.mean(x * x, -1, keepdims=True)) / \
                np.sqrt(np.maximum(np.mean(y * y, -1, keepdims=True), 1e-5))
        s = np.stack([x] + [as_loud_as(x @ w.T, x) for w in self.t["altup_proj.weight"]])
        for il in range(self.n_layer):
            def mode(y):
                return np.tanh(self.mul(il, "altup_router", self.norm(y, "altup_router_norm", il) / self.n_embd))
            coef = self.mul(il, "altup_predict_coef", mode(s[active])).reshape(-1, n, n)
            pred = s + np.einsum("tmk,kte->mte", coef, s)
            a = pred[active]
            h = self.norm(a, "attn_norm", il)
            laurel = h + self.norm(self.mul(il, "laurel_r", self.mul(il, "laurel_l", h)), "laurel_post_norm", il)
            o = a + self.norm(self.attention(il, h, pos), "post_attention_norm", il)
            o = (o + laurel) / math.sqrt(2)
            f = o + self.norm(self.glu(il, self.norm(o, "ffn_norm", il)), "post_ffw_norm", il)
            fix = self.mul(il, "altup_correct_coef", mode(f)) + 1
            s = pred + (f - pred[active])[None] * fix.T[:, :, None]
            first = s[active] * self.w(il, "altup_correct_scale")
            first = self.mul(il, "proj", gelu(self.mul(il, "inp_gate", first)) * self.ple[:, il])
            s[1:] += self.norm(first, "post_norm", il)[None]
        rest = [as_loud_as(s[i + 1] @ w.T, s[0]) for i, w in enumerate(self.t["altup_unembd_proj.weight"])]
        return np.mean(np.stack([s[0]] + rest), 0)

    def two_stacks(self, x, pos):
        """A low stack and a high one (blocks behind it) that see the sum of what both gave last, and norm what they give."""
        n, high, low = self.key("hrm.layers_per_stack"), x, self.t["hrm.z_l_init"].reshape(1, -1)

        def stack(first, x):
            for il in range(first, first + n):
                x = self.layer(il, x, pos)
            return rms(x, None, self.eps)
        for _ in range(self.key("hrm.h_cycles")):
            for _ in range(self.key("hrm.l_cycles")):
                low = stack(0, low + high)
            high = stack(n, high + low)
        return high

    def rows(self, tokens, n_ctx=None):
        """What the stream ends as, behind the last norm, [T, n_embd]."""
        tokens = np.asarray(tokens)
        pos = np.arange(len(tokens), dtype=np.float64)
        self.n_ctx, self.kv, self.chosen, self.chose = n_ctx or len(tokens), {}, None, 0
        x = self.t["token_embd.weight"][tokens]
        if self.arch in EMB_SQRT:
            x = x * float(np.float32(math.sqrt(self.n_embd)))
        if self.arch.startswith("granite"):
            x = x * float(self.key("embedding_scale", 0.0) or 1.0)
        if self.arch == "minicpm3":
            x = x * float(self.key("embedding_scale", 12.0))
        if self.arch == "hrm_text":
            x = x * float(self.key("embedding_scale", 1.0))
        if "position_embd.weight" in self.t:
            x = x + self.t["position_embd.weight"][:len(tokens)]
        if "token_types.weight" in self.t:
            x = x + self.t["token_types.weight"].reshape(-1, self.n_embd)[0]
        if self.arch in BERTS | {"modern-bert", "bloom"}:
            x = self.norm(x, "token_embd_norm")
        if self.arch in ("muse-glimmer", "talkie"):
            x = rms(x, None, self.eps)
        first = x if self.arch == "talkie" else None
        self.ple = self.per_layer_rows(tokens, x)
        if self.arch == "gemma3n":
            x = self.gemma3n(x, pos)
        elif self.arch == "qwen4exp":
            return self.wide_stream(x, pos, tokens)
        elif self.arch == "hrm_text":
            return self.two_stacks(x, pos)
        elif self.arch == "nanbeige":
            loops = self.key("num_loops", 1)
            for i in range(loops):
                for il in range(self.n_layer):
                    x = self.layer(il, x, pos)
                if i < loops - 1 and not self.key("skip_loop_final_norm", False):
                    x = self.norm(x, "output_norm")
        else:
            for il in range(self.n_layer):
                x = self.layer(il, x, pos)
                if first is not None:  # the embedding again
                    x = x + first * self.w(il, "layer_output_scale").reshape(-1)[0]
        if self.arch in BERTS:
            return x
        last = "token_embd_norm" if self.arch in ("lfm2", "lfm2moe") else "output_norm"
        return self.norm(x, last if last + ".weight" in self.t else "output_norm")

    def embed(self, tokens, pooling=None):
        """The vector of a text: pooled as the file says, through what is behind that, of length 1; scores (4) and
        rows (0) as they come."""
        x, pooling = self.rows(tokens), self.key("pooling_type") if pooling is None else pooling
        if pooling == 0:
            return x
        if pooling == 4 and self.arch == "modern-bert":
            pooling = self.key("classifier.pooling_type", 1)
            x, pooling = np.mean(x, 0, keepdims=True) if pooling == 1 else x, 4
        first = pooling == 2 or pooling == 4 and self.arch in BOTH_WAYS
        x = np.mean(x, 0) if pooling == 1 else x[0] if first else x[-1]

        def linear(name, x):
            return x @ self.t[name + ".weight"].T.reshape(x.shape[0], -1) + self.t.get(name + ".bias", 0)
        if pooling == 4:
            if "cls.weight" in self.t:
                x = (gelu_erf if self.arch == "modern-bert" else np.tanh)(linear("cls", x))
            if "cls.norm.weight" in self.t:
                x = self.norm(x, "cls.norm")
            x = linear("cls.output", x)
            return x if self.arch in BOTH_WAYS or len(x) == 1 else softmax(x)
        for name in ("dense_2", "dense_3"):
            x = linear(name, x) if name + ".weight" in self.t else x
        return x / np.sqrt(np.sum(x * x))

    def run(self, tokens, n_ctx=None):
        """Logits [T, vocabulary] of one sequence from position 0; n_ctx: positions of the session. Of what has no next
        token the rows."""
        x = self.rows(tokens, n_ctx)
        if self.arch in BOTH_WAYS:
            return x
        y = x @ self.t.get("output.weight", self.t["token_embd.weight"]).T
        if "output.bias" in self.t:
            y = y + self.t["output.bias"]
        scale = float(self.key("logit_scale", self.n_embd / 256 if self.arch == "minicpm3" else 0.0)) or 1.0
        y = y / scale if self.arch.startswith(("granite", "minicpm3")) else y * scale
        cap = float(self.key("final_logit_softcapping", 30.0 if self.arch in ("gemma2", "gemma3n") else 0.0))
        return cap * np.tanh(y / cap) if cap else y


# ---- the vectors ---------------------------------------------------------------------------------------

def rule(name, n):
    """n values u of the tensor: FNV-1a-64 of the name, splitmix64 of the index."""
    h = 0xcbf29ce484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001b3 & (1 << 64) - 1
    with np.errstate(over="ignore"):
        z = np.uint64(h) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(48)).astype(np.float64) - 32768) / 32768


def read_vector(path):
    with open(path) as f:
        v = json.load(f)
    tensors = {}
    for name, ne, *values in v["tensors"]:
        n = math.prod(ne)
        flat = np.array(values[0], np.float32) if isinstance(values[0], list) else \
            values[1] + values[0] * rule(v["name_prefix"] + name, n)
        tensors[name] = flat.astype(np.float64).reshape(ne[::-1])
    keys = {k: [float(x) for x in value] if kind == "ARRAY:FLOAT32" else value for k, kind, value in v["kv"]}
    return v, Model(keys, tensors)


def check_vector(path):
    """(farthest logit, complaints) of one vector."""
    v, model = read_vector(path)
    y = model.run(v["tokens"], VECTOR_CTX)
    far, wrong = 0.0, []
    for pos, row in v["logits"].items():
        far = max(far, float(np.max(np.abs(y[int(pos)] - row))))
    far = max(far, float(np.max(np.abs(np.sum(y, -1) - v["sum"]) / y.shape[1])))
    if not (np.argmax(y, -1) == v["argmax"]).all():
        wrong.append("argmax")
    for il, picks in v.get("experts_last_token", {}).items():
        if list(model.experts[int(il)][-1]) != picks:
            wrong.append("experts of layer %s: %s, expected %s" % (il, model.experts[int(il)][-1], picks))
    for il, total in v.get("state_sums", {}).items():
        if not abs(model.states[int(il)] - total) <= 2e-5:
            wrong.append("state of layer %s sums to %.5f, expected %.5f" % (il, model.states[int(il)], total))
    if not far <= 1e-5:
        wrong.append("logits")
    return far, wrong


def check_embeddings(path):
    """The same of a vector of embeddings."""
    v, model = read_vector(path)
    far = 0.0
    for text in v["texts"]:
        rows = model.rows(text["ids"])
        own = {"mean": np.mean(rows, 0), "cls": rows[0], "last": rows[-1]}
        wants = [(model.embed(text["ids"]), text["embedding"])]
        wants += [(rows[int(pos)], row) for pos, row in text.get("rows", {}).items()]
        wants += [(own[how], row) for how, row in text.get("pooled", {}).items()]
        far = max([far] + [float(np.max(np.abs(a - b))) for a, b in wants])
    return far, [] if far <= 1e-6 else ["embeddings"]


def main():
    n_bad, n = 0, 0
    for path in sorted(glob.glob(os.path.join(GOLDEN, "..", "embeddings", "*.json"))):
        name = os.path.basename(path)[:-5]
        if len(sys.argv) > 1 and not name.startswith(tuple(sys.argv[1:])):
            continue
        far, wrong = check_embeddings(path)
        n, n_bad = n + 1, n_bad + bool(wrong)
        print("%-14s %.1e %s" % (name, far, "; ".join(wrong) or "ok"))
    for path in sorted(glob.glob(os.path.join(GOLDEN, "*.json"))):
        name = os.path.basename(path)[:-5]
        if len(sys.argv) > 1 and not name.startswith(tuple(sys.argv[1:])):
            continue
        far, wrong = check_vector(path)
        n, n_bad = n + 1, n_bad + bool(wrong)
        print("%-14s %.1e %s" % (name, far, "; ".join(wrong) or "ok"))
    print("families_reference: %d of %d vectors agree to 1e-5" % (n - n_bad, n))
    return 1 if n_bad or not n else 0


if __name__ == "__main__":
    sys.exit(main())
