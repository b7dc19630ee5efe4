"""Random small models of every family: keys, tensors and layouts of the same matrices, for check_families.py.

Owns which shapes and switches a family's files may have; knows nothing of how they are computed.
"""
import numpy as np


class Draw:
    """One model: keys (full names), tensors (numpy, shape = ne backwards) in the canonical, split layout."""

    def __init__(self, arch, rng, unit=0):
        self.arch, self.rng, self.unit = arch, rng, unit
        self.keys = {"general.architecture": arch}
        self.tensors = {}
        self.n_ctx = 0  # positions of the session, 0: what the text needs
        self.layout = "split"

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def between(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    def width(self, lo, hi):
        """A row's length; with a unit one or two of that, as blocks of quantized types need."""
        return self.unit * self.between(1, 2) if self.unit else self.between(lo, hi)

    def real(self, lo, hi):
        return float(np.float32(self.rng.uniform(lo, hi)))

    def key(self, name, value):
        self.keys[self.arch + "." + name] = value
        return value

    def values(self, shape, spread, middle=0.0):
        return (middle + spread * self.rng.uniform(-1, 1, shape)).astype(np.float32)

    def mat(self, name, n_in, *n_out, gain=1.0):
        self.tensors[name + ".weight"] = self.values((*n_out[::-1], n_in), gain * np.sqrt(3 / n_in))

    def norm(self, name, n, bias=False):
        self.tensors[name + ".weight"] = self.values(n, 0.3, 1)
        if bias:
            self.bias(name, n)

    def bias(self, name, *n):
        self.tensors[name + ".bias"] = self.values(n[::-1], 0.3)


# ---- parts -------------------------------------------------------------------------------------------------

EPS = (1e-6, 1e-5, 1e-3)
BASES = (10000.0, 500000.0, 1000000.0, 150000.0, 123.0)


def body(d, tied=None, ln=False, n_layer=None, bias=False):
    """Sizes, embedding, output norm and head. Returns (E, L)."""
    n_embd, n_vocab = d.width(6, 100), d.between(17, 200)
    n_layer = n_layer or d.between(1, 4 if d.unit else 9)
    d.key("context_length", d.between(64, 512))
    d.key("embedding_length", n_embd)
    d.key("block_count", n_layer)
    d.key("vocab_size", n_vocab)
    d.key("attention.layer_norm_epsilon" if ln else "attention.layer_norm_rms_epsilon", float(np.float32(d.pick(*EPS))))
    d.tensors["token_embd.weight"] = d.values((n_vocab, n_embd), 1.0)
    d.norm("output_norm", n_embd, bias)
    if not (d.chance(0.5) if tied is None else tied):
        d.mat("output", n_embd, n_vocab)
    return n_embd, n_layer


def heads(d, mha=False, even=True):
    """(H, G, d): G divides H; d even, small or not a multiple of anything."""
    if d.unit:
        n_head = d.unit // 64 * d.between(1, 2)
        return n_head, n_head if mha else d.pick(1, 2, n_head), 64
    n_kv = d.pick(1, 1, 2, 3, 4)
    n_head = n_kv * (1 if mha else d.pick(1, 2, 3, 4))
    width = 2 * d.between(1, 20) if even else d.between(2, 40)
    if n_head * width == 2 and d.arch + ".attention.layer_norm_epsilon" in d.keys:
        width = 4  # of a stream of two values LayerNorm leaves a sign, whatever else the file says
    return n_head, n_kv, width


def refit(d, n_embd):
    """Another embedding length (before anything but body was drawn)."""
    n_vocab = d.tensors["token_embd.weight"].shape[0]
    d.key("embedding_length", n_embd)
    d.tensors["token_embd.weight"] = d.values((n_vocab, n_embd), 1.0)
    d.norm("output_norm", n_embd, "output_norm.bias" in d.tensors)
    if "output.weight" in d.tensors:
        d.mat("output", n_embd, n_vocab)
    return n_embd


def head_keys(d, n_embd, n_head, n_kv, width):
    """Head keys; half of the files have heads of E/H and do not say so. Returns E."""
    d.key("attention.head_count", n_head)
    if n_kv != n_head or d.chance(0.7):
        d.key("attention.head_count_kv", n_kv)
    if d.chance(0.5) and d.arch not in ("gemma4", "gemma3n"):
        return refit(d, n_head * width)
    d.key("attention.key_length", width)
    equal = d.arch.startswith(("qwen3", "qwen4")) or d.unit or d.chance(0.95)
    d.key("attention.value_length", width if equal else d.between(1, 40))
    return n_embd


def attention(d, il, n_embd, n_head, n_kv, width, bias=(), qk=None, gate=False, no_v=False):
    b, wide = "blk.%d." % il, d.keys.get(d.arch + ".attention.value_length", width)
    wide = width if d.arch == "gemma4" else wide
    d.mat(b + "attn_q", n_embd, n_head * width * (2 if gate else 1))
    d.mat(b + "attn_k", n_embd, n_kv * width)
    if not no_v:
        d.mat(b + "attn_v", n_embd, n_kv * wide)
    d.mat(b + "attn_output", n_head * wide, n_embd)
    for part, n in (("q", n_head * width * (2 if gate else 1)), ("k", n_kv * width), ("v", n_kv * wide), ("output", n_embd)):
        if part in bias:
            d.bias(b + "attn_" + part, n)
    if qk:
        d.norm(b + "attn_q_norm", width if qk == "head" else n_head * width)
        d.norm(b + "attn_k_norm", width if qk == "head" else n_kv * width)


def glu(d, il, n_embd, n_ff, tail="", gate=True, bias=False):
    b = "blk.%d.ffn_" % il
    if gate:
        d.mat(b + "gate" + tail, n_embd, n_ff)
    d.mat(b + "up" + tail, n_embd, n_ff)
    d.mat(b + "down" + tail, n_ff, n_embd)
    if bias:
        d.bias(b + "up" + tail, n_ff)
        d.bias(b + "down" + tail, n_embd)


def rope(d, width, partial=False, scaling=True):
    if d.chance(0.7):
        d.key("rope.freq_base", d.pick(*BASES))
    if partial and width >= 4:
        d.key("rope.dimension_count", 2 * d.between(1, width // 2))
    elif d.chance(0.5):
        d.key("rope.dimension_count", width)
    if not scaling or d.chance(0.6):
        return
    kind = d.pick("linear", "yarn", "none")
    d.key("rope.scaling.type", kind)
    if kind == "none":
        return
    d.key("rope.scaling.factor", d.real(1.5, 40))
    if kind == "yarn":
        yarn(d)


def yarn(d):
    d.key("rope.scaling.original_context_length", d.between(8, 4096))
    if d.chance(0.7):
        d.key("rope.scaling.yarn_beta_fast", d.pick(32.0, 16.0, 8.0))
        d.key("rope.scaling.yarn_beta_slow", d.pick(1.0, 2.0))
    if d.chance(0.2):
        d.key("rope.scaling.attn_factor", d.real(0.8, 1.3))


def window(d, n_layer, list_only=False):
    d.key("attention.sliding_window", d.pick(d.between(1, 20), d.between(1, 20), 4096))
    kind = "list" if list_only else d.pick("list", "absent", "absent", "number")
    if kind == "list":
        d.key("attention.sliding_window_pattern", [bool(d.chance(0.6)) for _ in range(n_layer)])
    elif kind == "number":
        d.key("attention.sliding_window_pattern", d.between(1, 5))


def expert_keys(d, groups=False, func=None, norm=False, scale=False, width=True):
    """(experts, width of one)."""
    n = d.pick(2, 3, 4, 8, 12, 16)
    used = d.pick(1, 2, d.between(1, n), n)
    if groups and d.chance(0.5):
        n_group = d.pick(2, 4)
        n = n_group * d.between(2, 4)
        kept = d.between(1, n_group)
        used = d.between(1, kept * (n // n_group))
        d.key("expert_group_count", n_group)
        d.key("expert_group_used_count", kept)
    d.key("expert_count", n)
    d.key("expert_used_count", min(used, n))
    f = d.width(4, 70)
    if width:
        d.key("expert_feed_forward_length", f)
    if func:
        d.key("expert_gating_func", d.pick(*func))
    if norm and d.chance(0.5):
        d.key("expert_weights_norm", True)
    if scale and d.chance(0.7):
        d.key("expert_weights_scale", d.pick(1.0, 2.5, 1.8))
    return n, f


def experts(d, il, n_embd, n, f, bias=False, shared=0, probs=False, gate=True, shared_gate=False, n_in=0):
    b, n_in = "blk.%d." % il, n_in or n_embd
    d.mat(b + "ffn_gate_inp", n_embd, n, gain=2)
    if gate:
        d.mat(b + "ffn_gate_exps", n_in, f, n)
    d.mat(b + "ffn_up_exps", n_in, f, n)
    d.mat(b + "ffn_down_exps", f, n_in, n)
    if bias:
        d.bias(b + "ffn_gate_inp", n)
        for part, size in (("gate", f), ("up", f), ("down", n_in)):
            d.bias(b + "ffn_%s_exps" % part, size, n)
    if probs:
        d.bias(b + "exp_probs_b", n)
    if shared:
        glu(d, il, n_embd, shared, "_shexp", gate)
        if shared_gate:
            d.mat(b + "ffn_gate_inp_shexp", n_embd, 1)


# ---- dense families ----------------------------------------------------------------------------------------

# bias: which may (opt) or do have one; qk: kind of QK norm; pre2: norm before the feed-forward.
DENSE = {
    "llama": dict(bias_opt=("q", "k", "v", "output"), freqs=True, experts=True), "qwen2": dict(bias_opt=("q", "k", "v")),
    "qwen3": dict(qk="head", bias_opt=("q", "k", "v", "output")), "gemma": dict(tied=True), "gemma2": dict(sandwich=True, window=True, tied=True),
    "gemma3": dict(sandwich=True, window=True, qk="head", bias_opt=("q", "k", "v", "output")), "phi3": dict(partial=True),
    "mistral3": dict(experts=True), "smollm3": {},
    "olmo2": dict(sandwich=True, pre=False, qk="full", window="opt"),
    "exaone4": dict(sandwich=True, pre=False, qk="head", freqs=True), "granite": {},
    "glm4": dict(sandwich=True, partial=True, bias_opt=("q", "k", "v")),
    "seed_oss": dict(pre2="post_attention_norm", bias=("q", "k", "v")), "hunyuan-dense": dict(qk="head"),
    "maincoder": dict(qk="head"),
    "ernie4_5": {}, "arcee": dict(gate=False), "command-r": dict(ln=True, parallel=True, tied=True),
    "cohere2": dict(ln=True, parallel=True, window=True, tied=True),
    "starcoder2": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output")),
    "gptneox": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output"), mha=True, partial=True,
                    tied=False),
    "gpt2": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output"), mha=True, rope=False),
    "starcoder": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output"), rope=False),
    "phi2": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output"), partial=True, parallel=True,
                 tied=False),
    "nemotron": dict(ln=True, ln_bias=True, gate=False, partial=True, tied=False),
    "orion": dict(ln=True, ln_bias=True, ff_bias=False, tied=False),
    "stablelm": dict(ln=True, ln_bias=True, ff_bias=False, bias_opt=("q", "k", "v"), partial=True, tied=False),
    "apertus": dict(qk="head", gate=False, freqs=True),
    "bloom": dict(ln=True, ln_bias=True, gate=False, bias=("q", "k", "v", "output"), mha=True, alibi=True),
    "mpt": dict(ln=True, gate=False, bias_opt=("q", "k", "v", "output"), mha=True, alibi=True),
    "refact": dict(alibi=True),
    "muse-glimmer": dict(sandwich=True, window=True, qk="head", bias_opt=("q", "k", "v", "output")), "olmo": dict(ln=True, bare=True),
    "nanbeige": dict(freqs=True, bias_opt=("q", "k", "v", "output")), "hrm_text": dict(bare=True), "talkie": dict(bare=True, tied=False), "plamo3": dict(sandwich=True, window="opt", qk="head"),
    "spark2_5": dict(window="list", partial=True, bias_opt=("q", "k", "v", "output")),
    "exaone": dict(freqs=True), "chatglm": dict(partial=True, bias_opt=("q", "k", "v")),
    "bitnet": dict(bias_opt=("q", "k", "v", "output")), "bitnet-b1.58": dict(bias_opt=("q", "k", "v", "output")),
}


def scalars(d):
    arch = d.arch
    if arch in ("granite", "granitemoe", "granitehybrid", "granite_swa"):
        d.key("attention.scale", d.real(0.05, 0.4))
        d.key("embedding_scale", d.real(0.5, 12))
        d.key("residual_scale", d.real(0.2, 1))
        d.key("logit_scale", d.real(0.5, 8))
    if arch in ("command-r", "cohere2", "cohere2moe", "muse-glimmer", "talkie"):
        d.key("logit_scale", d.real(0.05, 1))
    if arch == "gemma2":
        d.key("attn_logit_softcapping", d.real(1, 50))
        d.key("final_logit_softcapping", d.real(3, 30))
    if arch in ("mpt", "olmo") and d.chance(0.5) or arch == "dbrx":
        d.key("attention.clamp_kqv", d.real(0.3, 1.5))
    if arch == "gemma3" and d.chance(0.3) or arch == "muse-glimmer" and d.chance(0.7):
        d.key("final_logit_softcapping", d.real(3, 30))
    if arch in ("gemma2", "gemma3", "olmo2", "cohere2", "muse-glimmer", "plamo3") and d.chance(0.5) or arch in ("exaone4", "gpt-oss") and \
            d.chance(0.3):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    if arch == "gptneox":
        d.key("use_parallel_residual", bool(d.chance(0.6)))


def alibi(d):
    if d.chance(0.5):
        d.key("attention.max_alibi_bias", d.pick(8.0, 8.0, 16.0, d.real(0.5, 12)))


def turns(d):
    if d.chance(0.6):
        d.key("rope.scaling.finetuned", bool(d.chance(0.5)))


def biases(d):
    """Of attention, in families whose files mostly have none."""
    return ("q", "k", "v", "output") if d.chance(0.3) else ()


def longrope(d, width):
    n_rot = d.keys.get(d.arch + ".rope.dimension_count", width)
    for kind in ("short", "long"):
        d.tensors["rope_factors_%s.weight" % kind] = d.values(n_rot // 2, 0.5, 1.0 if kind == "short" else 3.0)
    orig = d.key("rope.scaling.original_context_length", d.between(8, 128))
    d.key("rope.scaling.attn_factor", d.real(1, 1.4))
    d.n_ctx = d.pick(0, 64, orig, orig + 1, 2 * orig)


def dense(d):
    o, arch = DENSE[d.arch], d.arch
    n_layer = {"gemma2": 46, "gemma3": 62, "exaone4": 64}.get(arch) if d.chance(0.1) else None
    n_embd, n_layer = body(d, o.get("tied"), o.get("ln"), n_layer, o.get("ln_bias"))
    n_head, n_kv, width = heads(d, o.get("mha"))
    n_embd = head_keys(d, n_embd, n_head, n_kv, width)
    if o.get("alibi"):
        alibi(d)
        if arch == "bloom":
            d.norm("token_embd_norm", n_embd, True)
    elif o.get("rope", True):
        rope(d, width, o.get("partial"), arch != "phi3")
    else:
        d.mat("position_embd", n_embd, d.keys[arch + ".context_length"])
    scalars(d)
    if arch == "exaone4" and n_layer == 64:
        d.key("attention.sliding_window", d.between(1, 20))
    if o.get("window") in (True, "list") or o.get("window") and d.chance(0.6):
        window(d, n_layer, o["window"] == "list")
    if arch == "spark2_5":
        if d.chance(0.7):
            d.key("rope.freq_base_swa", d.pick(*BASES))
        if d.chance(0.7):
            d.key("rope.dimension_count_swa", 2 * d.between(1, width // 2))
    if arch == "granite":
        turns(d)
    if arch == "mistral3":
        mistral3(d)
    if arch == "apertus":
        xielu(d, n_layer)
    if o.get("freqs") and d.chance(0.3):
        n_rot = d.keys.get(arch + ".rope.dimension_count", width)
        d.tensors["rope_freqs.weight"] = d.values(n_rot // 2, 3, 5)
    if arch == "phi3" and d.chance(0.7):
        longrope(d, width)
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    bias = o.get("bias", ())
    if o.get("bias_opt") and d.chance(0.5):
        bias = o["bias_opt"]
    normed = arch in ("command-r", "stablelm") and d.chance(0.4)  # of each head, by weights of its own
    parallel = o.get("parallel") or arch == "stablelm" and d.chance(0.4)
    if arch == "phi2":
        d.bias("output", d.tensors["token_embd.weight"].shape[0])
    if arch == "stablelm":
        d.key("use_parallel_residual", bool(parallel or d.chance(0.5)))  # said of the others, too
    if o.get("bare"):  # no norm has weights
        d.tensors.pop("output_norm.weight")
    if arch == "nanbeige" and d.chance(0.9):
        d.key("num_loops", d.pick(1, 2, 2, 3))
    if arch == "nanbeige" and d.chance(0.7):
        d.key("skip_loop_final_norm", bool(d.chance(0.5)))
    if arch == "hrm_text":
        n_layer = stacks(d, n_embd)
    routed = None
    if o.get("experts") and d.chance(0.4):  # Mixtral, and what follows it: an expert is as wide as the key of all says
        routed = expert_keys(d, width=d.chance(0.3))
        d.key("feed_forward_length", routed[1])
    for il in range(n_layer):
        b = "blk.%d." % il
        if o.get("pre", True) and not o.get("bare"):
            d.norm(b + "attn_norm", n_embd, o.get("ln_bias"))
            if not parallel:
                d.norm(b + o.get("pre2", "ffn_norm"), n_embd, o.get("ln_bias"))
        if o.get("sandwich"):
            d.norm(b + "post_attention_norm", n_embd)
            d.norm(b + "post_ffw_norm", n_embd)
        if arch == "plamo3":  # whose files have them without .weight
            for name in ("post_attention_norm", "post_ffw_norm"):
                d.tensors[b + name] = d.tensors.pop(b + name + ".weight")
        attention(d, il, n_embd, n_head, n_kv, width, bias, o.get("qk"))
        if arch.startswith("bitnet"):
            d.norm(b + "attn_sub_norm", d.tensors[b + "attn_output.weight"].shape[1])
            d.norm(b + "ffn_sub_norm", n_ff)
            for part in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
                if d.chance(0.3):
                    d.tensors[b + part + ".scale"] = d.values(1, 0.3, 0.8)
        if arch in ("muse-glimmer", "spark2_5", "hrm_text"):
            d.mat(b + "attn_gate", n_embd, n_head * (1 if arch == "spark2_5" else width))
        if arch == "talkie":
            d.tensors[b + "attn_q_norm.weight"] = d.values((n_head, 1), 0.5, 1)
            d.tensors[b + "layer_output_scale.weight"] = d.values(1, 0.5)
            for part in ("attn_output", "ffn_down"):
                if d.chance(0.7):
                    d.tensors[b + part + ".scale"] = d.values(1, 0.3, 0.8)
        if normed:
            for part, n in (("q", n_head), ("k", n_kv)):
                d.tensors[b + "attn_%s_norm.weight" % part] = d.values((n, width), 0.3, 1)
        if routed:
            experts(d, il, n_embd, *routed)
        else:
            glu(d, il, n_embd, n_ff, "", o.get("gate", True), o.get("ff_bias", o.get("ln_bias")))


def stacks(d, n_embd):
    """Two of so many blocks, which take turns. Returns how many blocks there are."""
    n, high, low = d.between(1, 3), d.between(1, 2), d.between(1, 3)
    d.key("block_count", n * high * (low + 1))
    d.key("hrm.layers_per_stack", n)
    d.key("hrm.h_cycles", high)
    d.key("hrm.l_cycles", low)
    if d.chance(0.8):
        d.key("embedding_scale", d.real(0.5, 12))
    if d.chance(0.5):
        d.key("hrm.prefix_lm", bool(d.chance(0.5)))
    d.tensors["hrm.z_l_init"] = d.values(n_embd, 1.0)
    return 2 * n


def openelm(d):
    """qwen3, whose layers differ in heads of queries, of keys, and in width."""
    n_embd, n_layer = body(d)
    width = 64 if d.unit else 2 * d.between(1, 20)
    kv = d.key("attention.head_count_kv", [d.unit // 64 or d.between(1, 3) for _ in range(n_layer)])
    n_head = d.key("attention.head_count", [g * d.between(1, 3) for g in kv])
    n_ff = d.key("feed_forward_length", [d.width(5, 130) for _ in range(n_layer)])
    d.key("attention.key_length", width)
    d.key("attention.value_length", width)
    rope(d, width)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        attention(d, il, n_embd, n_head[il], kv[il], width, (), "head")
        glu(d, il, n_embd, n_ff[il])


def xielu(d, n_layer):
    """Numbers of each layer, or of all; below no family's name."""
    for name, lo, hi in (("alpha_p", -3, 3), ("alpha_n", -3, 3), ("beta", 0.3, 0.7), ("eps", -1e-6, -1e-6)):
        one = d.chance(0.2)
        d.keys["xielu." + name] = d.real(lo, hi) if one else [d.real(lo, hi) for _ in range(n_layer)]


def mistral3(d):
    if d.chance(0.7):
        d.key("rope.scaling.type", "yarn")
        d.key("rope.scaling.factor", d.real(1.5, 16))
        yarn(d)
        d.keys.pop("mistral3.rope.scaling.attn_factor", 0)
        d.key("rope.scaling.original_context_length", d.between(4, 30))
        if d.chance(0.7):
            d.key("rope.scaling.yarn_log_multiplier", d.pick(1.0, 0.5))
        if d.chance(0.7):
            d.key("attention.temperature_scale", d.real(0.05, 0.3))


def deci(d):
    """llama, some of whose layers do not attend, or multiply by one matrix instead, and some do nothing."""
    n_embd, n_layer = body(d)
    n_head, n_kv, width = heads(d)
    n_embd = refit(d, n_head * width)
    kinds = ["both"] + [d.pick("both", "both", "no heads", "linear", "nothing") for _ in range(n_layer - 1)]
    n_ff = [0 if kind == "nothing" else d.width(5, 130) for kind in kinds]
    attends = [kind == "both" for kind in kinds]
    kv = [d.pick(n_kv, n_kv, 1) if a else 0 for a in attends]
    d.key("attention.head_count", [n_head if kind in ("both", "linear") else 0 for kind in kinds])
    d.key("attention.head_count_kv", kv)
    d.key("feed_forward_length", n_ff)
    d.key("attention.key_length", width)
    d.key("attention.value_length", width)
    rope(d, width)
    if d.chance(0.5):
        d.tensors["rope_freqs.weight"] = d.values(width // 2, 3, 5)
    for il in range(n_layer):
        if attends[il]:
            d.norm("blk.%d.attn_norm" % il, n_embd)
            attention(d, il, n_embd, n_head, kv[il], width)
        if kinds[il] == "linear":
            d.norm("blk.%d.attn_norm" % il, n_embd)
            d.mat("blk.%d.attn_output" % il, n_embd, n_embd)
        if n_ff[il]:
            d.norm("blk.%d.ffn_norm" % il, n_embd)
            glu(d, il, n_embd, n_ff[il])


# ---- mixtures ----------------------------------------------------------------------------------------------

MOE = {
    "qwen3moe": dict(qk="head"), "qwen2moe": dict(bias=("q", "k", "v"), shared="gated"),
    "gpt-oss": dict(bias=("q", "k", "v", "output"), pre2="post_attention_norm", window=True, ebias=True, tied=False),
    "granitemoe": dict(width=False), "olmoe": dict(qk="full", width=False),
    "minimax-m2": dict(qk="full", partial=True, func=(2,), probs=True, ff=True),
    "glm4moe": dict(qk="opt", partial=True, bias_opt=("q", "k", "v"), pre2="post_attention_norm", func=(1, 2),
                    norm=True, scale=True, probs=True, shared="count", lead=True, groups=True),
    "dots1": dict(qk="head", func=(1, 2), norm=True, scale=True, probs=True, shared="count", lead=True, groups=True),
    "ernie4_5-moe": dict(probs=True, shared="length", lead=True, step=True),
    "llama4": dict(shared="width", step=True, tied=False),
    "hunyuan-moe": dict(qk="head", shared="length", ff=True), "deepseek": dict(norm=True, scale=True, shared="count", lead=True),
    "mellum": dict(qk="head", window=True),
    "smallthinker": dict(window="opt", func=(1, 2)),
    "granite_swa": dict(width=False, window=True, shared="granite"),
    "laguna": dict(qk="head", window="opt", func=(1, 2), norm=True, scale=True, probs=True, shared="length", lead=True,
                   partial=True, heads=True),
    "step35": dict(qk="head", tied=False, func=(1, 2), norm=True, scale=True, probs=True, shared="length", lead=True, heads=True),
    "dbrx": dict(ln=True, pre2="attn_output_norm", width=False),
    "cohere2moe": dict(ln=True, window=True, func=(1, 2), norm=True, scale=True, shared="length", lead=True, parallel=True),
    "phimoe": dict(ln=True, bias=("q", "k", "v", "output"), width=False, tied=False),
    "afmoe": dict(qk="head", window=True, func=(1, 2), norm=True, scale=True, probs=True, shared="count", lead=True),
    "exaone-moe": dict(qk="head", window=True, func=(1, 2), norm=True, scale=True, probs=True, shared="length",
                       lead=True, groups=True, tied=False),
    "bailingmoe2": dict(qk="head", partial=True, func=(2,), norm=True, scale=True, probs=True, shared="length",
                        lead=True, groups=True, tied=False),
}


def moe_layers(d, o, n_layer):
    """Which layers have experts."""
    lead = d.key("leading_dense_block_count", d.between(0, n_layer)) if o.get("lead") else 0
    step = d.key("interleave_moe_layer_step", d.between(1, 3)) if o.get("step") else 1
    return [il >= lead and (il + 1) % step == 0 for il in range(n_layer)]


def shared_width(d, o, f):
    kind = o.get("shared")
    if not kind or kind == "granite" and d.chance(0.5):
        return 0
    if kind == "width":
        return f
    if kind == "count":
        return f * d.key("expert_shared_count", d.between(1, 3))
    if kind == "length":
        d.key("expert_shared_count", 1)
    return d.key("expert_shared_feed_forward_length", d.width(5, 60))


def step_keys(d, n_layer, width):
    """Windows, what turns, of which layers that see everything half, limits of gates."""
    d.key("attention.sliding_window", d.between(1, 20))
    d.key("attention.sliding_window_pattern", [bool(d.chance(0.6)) for _ in range(n_layer)])
    if width % 4 or d.chance(0.3):
        d.key("rope.dimension_count", 4 * d.between(1, max(1, width // 4)))
    if d.chance(0.5):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    if d.chance(0.3):
        d.key("rope.dimension_count_swa", 2 * d.between(1, width // 2))
    for name in ("swiglu_clamp_exp", "swiglu_clamp_shexp"):
        if d.chance(0.8):
            d.key(name, [d.pick(0.0, d.real(0.02, 1.0)) for _ in range(n_layer)])


def moe(d):
    o, arch = MOE[d.arch], d.arch
    ln, ln_bias = o.get("ln") and (arch != "cohere2moe" or d.chance(0.6)), arch == "phimoe"
    n_embd, n_layer = body(d, o.get("tied"), ln, None, ln_bias)
    n_head, n_kv, width = heads(d, o.get("mha"))
    width = max(width, 4 if arch == "step35" else 0)  # of which half turns
    n_embd = head_keys(d, n_embd, n_head, n_kv, width)
    rope(d, width, o.get("partial"), arch != "phimoe")
    if arch == "phimoe":
        d.bias("output", d.tensors["token_embd.weight"].shape[0])
        if d.chance(0.7):
            longrope(d, width)
        if d.chance(0.5):  # as its converter calls it
            eps = d.keys.pop("phimoe.attention.layer_norm_epsilon")
            d.key("attention.layer_norm_rms_epsilon", eps)
    scalars(d)
    if o.get("window") is True or o.get("window") and d.chance(0.6):
        window(d, n_layer, arch == "granite_swa" and d.chance(0.7))
        if arch == "laguna" and d.chance(0.7):
            d.key("rope.freq_base_swa", d.pick(*BASES))
        if arch == "laguna" and d.chance(0.7):
            d.key("rope.dimension_count_swa", 2 * d.between(1, width // 2))
    if arch == "granite_swa" and d.chance(0.6):
        d.key("attention.rope_pattern", [bool(d.chance(0.6)) for _ in range(n_layer)])
    if arch == "step35":
        step_keys(d, n_layer, width)
    n_heads = [n_head] * n_layer
    if o.get("heads") and d.chance(0.8) and arch + ".attention.key_length" in d.keys:
        n_heads = d.key("attention.head_count", [n_kv * d.pick(1, 2, 3, 4) for _ in range(n_layer)])
        d.key("attention.head_count_kv", n_kv)
    by_head = d.chance(0.5)  # gates of laguna
    fused = arch == "granite_swa" and d.chance(0.7)
    n, f = expert_keys(d, o.get("groups"), o.get("func"), o.get("norm"), o.get("scale"), o.get("width", True))
    if arch == "llama4" and d.chance(0.8):
        d.key("expert_used_count", 1)
    if arch == "phimoe":
        d.key("expert_used_count", 2)
    if arch == "llama4" and d.chance(0.3):
        d.key("attention.sliding_window", d.pick(0, 8192))
    d.key("feed_forward_length", f if not o.get("width", True) or o.get("ff") else d.width(5, 130))
    layers, shared = moe_layers(d, o, n_layer), shared_width(d, o, f)
    qk = o.get("qk")
    qk = ("head" if d.chance(0.5) else None) if qk == "opt" else qk
    bias = o.get("bias", ())
    if o.get("bias_opt") and d.chance(0.5):
        bias = o["bias_opt"]
    for il in range(n_layer):
        b = "blk.%d." % il
        d.norm(b + "attn_norm", n_embd, ln_bias)
        if not o.get("parallel"):
            d.norm(b + o.get("pre2", "ffn_norm"), n_embd, ln_bias)
        attention(d, il, n_embd, n_heads[il], n_kv, width, bias, qk)
        if arch == "step35":
            d.mat(b + "attn_gate", n_embd, n_heads[il])
        if arch == "laguna":
            d.mat(b + "attn_gate", n_embd, n_heads[il] * (1 if by_head else d.keys.get("laguna.attention.value_length", width)))
        if arch == "afmoe":
            d.mat(b + "attn_gate", n_embd, n_head * width)
            d.norm(b + "post_attention_norm", n_embd)
            d.norm(b + "post_ffw_norm", n_embd)
        if arch in ("gpt-oss", "granite_swa"):
            d.tensors[b + "attn_sinks.weight"] = d.values(n_head, 1.0)
        if layers[il]:
            experts(d, il, n_embd, n, f, o.get("ebias"), shared, o.get("probs"), shared_gate=o.get("shared") == "gated")
            if shared and fused:
                gate = d.tensors.pop(b + "ffn_gate_shexp.weight")
                d.tensors[b + "ffn_up_shexp.weight"] = np.concatenate([gate, d.tensors[b + "ffn_up_shexp.weight"]])
        else:
            glu(d, il, n_embd, d.keys[arch + ".feed_forward_length"])


def long_llama4(seed, n_ctx):
    """A small llama4 of four layers, the last of which does not turn."""
    d = Draw("llama4", np.random.default_rng(seed))
    n_embd, n_layer, n_head, width, n, f = 16, 4, 2, 8, 2, 12
    for name, value in (("context_length", n_ctx), ("embedding_length", n_embd), ("block_count", n_layer),
                        ("vocab_size", 17), ("attention.head_count", n_head), ("attention.head_count_kv", 1),
                        ("attention.key_length", width), ("attention.value_length", width), ("expert_count", n),
                        ("expert_used_count", 1), ("expert_feed_forward_length", f), ("feed_forward_length", 20),
                        ("interleave_moe_layer_step", 4)):
        d.key(name, value)
    d.key("attention.layer_norm_rms_epsilon", 1e-5)
    d.key("rope.freq_base", 500000.0)
    d.tensors["token_embd.weight"] = d.values((17, n_embd), 1.0)
    d.norm("output_norm", n_embd)
    d.mat("output", n_embd, 17)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        attention(d, il, n_embd, n_head, 1, width)
        if (il + 1) % 4 == 0:
            experts(d, il, n_embd, n, f, False, f)
        else:
            glu(d, il, n_embd, 20)
    return d


# ---- latent attention --------------------------------------------------------------------------------------

def mla_layer(d, il, n_embd, n_head, z):
    b, (n, p, v, rq, rk) = "blk.%d." % il, z
    if rq:
        d.mat(b + "attn_q_a", n_embd, rq)
        d.norm(b + "attn_q_a_norm", rq)
        d.mat(b + "attn_q_b", rq, n_head * (n + p))
    else:
        d.mat(b + "attn_q", n_embd, n_head * (n + p))
    d.mat(b + "attn_kv_a_mqa", n_embd, rk + p)
    d.norm(b + "attn_kv_a_norm", rk)
    d.tensors[b + "attn_k_b.weight"] = d.values((n_head, rk, n), np.sqrt(3 / rk))
    d.mat(b + "attn_v_b", rk, v, n_head)
    d.mat(b + "attn_output", n_head * v, n_embd)


def mla_keys(d, lite):
    n, p, v, rk = d.between(2, 24), 2 * d.between(1, 8), d.between(2, 30), d.width(4, 40)
    if d.unit:
        n, p, v = 64, 32, 64
    rq = 0 if lite else d.width(4, 40)
    if rq:
        d.key("attention.q_lora_rank", rq)
    d.key("attention.kv_lora_rank", rk)
    d.key("attention.key_length", rk + p)
    d.key("attention.value_length", rk)
    d.key("attention.key_length_mla", n + p)
    d.key("attention.value_length_mla", v)
    d.key("rope.dimension_count", p)
    return n, p, v, rq, rk


INDEXED = ("deepseek32", "glm-dsa")


def index_keys(d, n_layer):
    """Of queries that see what an index chooses. Returns which layers have one."""
    rot = d.keys[d.arch + ".rope.dimension_count"]
    d.key("attention.indexer.head_count", d.between(5, 12))  # of few, scores of 0 would be many
    d.key("attention.indexer.key_length", 64 if d.unit else rot + d.pick(0, 1, 2, d.between(2, 30)))
    d.key("attention.indexer.top_k", d.pick(1, d.between(2, 20), d.between(2, 20), 4096))
    own = [True] * n_layer
    if d.arch == "glm-dsa" and d.chance(0.7):
        own = d.key("attention.indexer.types", [True] + [bool(d.chance(0.5)) for _ in range(n_layer - 1)])
    elif d.arch == "glm-dsa" and d.chance(0.3):  # GLM 5.2's, where no key says it
        d.key("context_length", 1048576)
        own = [il < 2 or (il - 2) % 4 == 0 for il in range(n_layer)]
    return own


def index_layer(d, il, n_embd):
    b = "blk.%d.indexer." % il
    n, width = (d.keys["%s.attention.indexer.%s" % (d.arch, k)] for k in ("head_count", "key_length"))
    d.mat(b + "attn_q_b", d.keys[d.arch + ".attention.q_lora_rank"], n * width)
    d.mat(b + "attn_k", n_embd, width)
    d.mat(b + "proj", n_embd, n)
    d.norm(b + "k_norm", width, True)


def deepseek2(d):
    n_embd, n_layer = body(d)
    mistral4 = d.arch == "mistral4"
    n_head = d.key("attention.head_count", 4 if d.unit else d.between(1, 5))
    d.key("attention.head_count_kv", 1)
    z = mla_keys(d, not mistral4 and d.arch not in INDEXED and d.chance(0.4))
    if d.chance(0.7):
        d.key("rope.freq_base", d.pick(*BASES))
    if d.chance(0.5):
        d.key("rope.scaling.type", "yarn")
        d.key("rope.scaling.factor", d.real(1.5, 40))
        yarn(d)
        d.keys.pop(d.arch + ".rope.scaling.attn_factor", 0)
        d.key("rope.scaling.yarn_log_multiplier", d.pick(0.1, 0.0707, 0.05))
    if d.chance(0.3) and d.arch not in INDEXED:
        d.key("attention.temperature_scale", d.real(0.05, 0.5))
        d.key("attention.temperature_length", d.between(4, 30))
    probs = not mistral4 and d.chance(0.6)
    n, f = expert_keys(d, not mistral4, None, not mistral4, True)
    if not mistral4 and d.chance(0.5):
        d.key("expert_gating_func", d.pick(1, 2))
    if mistral4:
        d.key("expert_weights_norm", True)
        d.key("expert_weights_scale", 1.0)
    lead = 0 if mistral4 else d.key("leading_dense_block_count", d.between(0, n_layer))
    shared = f * d.key("expert_shared_count", d.between(1, 3))
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    own = index_keys(d, n_layer) if d.arch in INDEXED else None
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        mla_layer(d, il, n_embd, n_head, z)
        if own and own[il]:
            index_layer(d, il, n_embd)
        if il < lead:
            glu(d, il, n_embd, n_ff)
        else:
            experts(d, il, n_embd, n, f, False, shared, probs)


def mimo2(d):
    """Windowed layers have other heads of keys than those that see everything; values are narrower than keys."""
    n_embd, n_layer = body(d)
    if d.unit:
        n_head, of_kind, width, dv = d.unit // 64 * d.between(1, 2), (1, 2), 96, 64
    else:
        few = d.between(1, 3)
        n_head, of_kind, width, dv = few * 2 * d.between(1, 2), d.pick((few, 2 * few), (2 * few, few)), 2 * d.between(2, 20), 0
    dv = dv or d.pick(width, d.between(1, width), d.between(1, width))
    d.key("attention.head_count", n_head)
    d.key("attention.key_length", width)
    d.key("attention.value_length", dv)
    rope(d, width, True)
    if d.chance(0.6):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    window(d, n_layer, True)
    windowed = d.keys["mimo2.attention.sliding_window_pattern"]
    d.key("attention.head_count_kv", [of_kind[w] for w in windowed])
    if d.chance(0.8):
        d.key("attention.value_scale", d.pick(0.707, 1.0, d.real(0.3, 1.2)))
    n, f = expert_keys(d, True, None, False, True)
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    bias = biases(d)[:3]
    for il in range(n_layer):
        b = "blk.%d." % il
        d.norm(b + "attn_norm", n_embd)
        d.norm(b + "ffn_norm", n_embd)
        attention(d, il, n_embd, n_head, of_kind[windowed[il]], width, bias)
        if windowed[il] or d.chance(0.1):
            d.tensors[b + "attn_sinks.weight"] = d.values(n_head, 1.0)
        if d.chance(0.3):
            glu(d, il, n_embd, n_ff)
        else:
            experts(d, il, n_embd, n, f, probs=d.chance(0.7))


def minicpm3(d):
    n_embd, n_layer = body(d)
    n_head = d.key("attention.head_count", 4 if d.unit else d.between(1, 5))
    d.key("attention.head_count_kv", 1)
    z = mla_keys(d, False)
    if d.chance(0.5):
        d.key("rope.freq_base", d.pick(*BASES))
    if d.chance(0.5):
        longrope(d, z[1])
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        mla_layer(d, il, n_embd, n_head, z)
        glu(d, il, n_embd, n_ff)


# ---- recurrent families ------------------------------------------------------------------------------------

def conv_taps(d):
    return d.key("ssm.conv_kernel", d.pick(2, 3, 4, 4, 6))


def gdn(d):
    arch = d.arch
    n_embd, n_layer = body(d)
    n_head, n_kv, width = heads(d)
    n_embd = head_keys(d, n_embd, n_head, n_kv, width)
    rope(d, width, True, False)
    if arch != "qwen3next":
        d.key("rope.dimension_sections", [1, 1, 0, 0])
    wide = hyper_keys(d, n_embd, width) if arch == "qwen4exp" else None
    k = conv_taps(d)
    size, hk, r = (64, 2, 2) if d.unit else (d.between(2, 20), d.between(1, 4), d.between(1, 3))
    d.key("ssm.state_size", size)
    hv = hk * r
    d.key("ssm.group_count", hk)
    d.key("ssm.time_step_rank", hv)
    d.key("ssm.inner_size", hv * size)
    every = d.pick(1, 2, 3, 4)
    kind = d.pick("list", "interval", "default")
    attn = [(il + 1) % (4 if kind == "default" else every) == 0 for il in range(n_layer)]
    if kind == "list":
        attn = [bool(d.chance(0.4)) for _ in range(n_layer)]
        d.key("attention.recurrent_layers", [not a for a in attn])
    elif kind == "interval":
        d.key("full_attention_interval", every)
    n_ff, bias = d.key("feed_forward_length", d.width(5, 100)), biases(d)
    if arch != "qwen35":
        n, f = expert_keys(d)
        shared = d.key("expert_shared_feed_forward_length", d.width(5, 60))
    if wide:
        index_layers(d, attn)
    for il in range(n_layer):
        b = "blk.%d." % il
        if wide:
            hyper_layer(d, b, n_embd, wide, attn[il])
        else:
            d.norm(b + "attn_norm", n_embd)
            d.norm(b + "post_attention_norm", n_embd)
        if attn[il]:
            attention(d, il, n_embd, n_head, n_kv, width, bias, "head", True)
        else:
            gdn_layer(d, b, n_embd, k, size, hk, hv)
        if arch == "qwen35":
            glu(d, il, n_embd, n_ff)
        else:
            experts(d, il, n_embd, n, f, False, shared, shared_gate=True)


def hyper(d, name, n_embd, parts, rank, inject=True):
    d.norm(name + "_norm", parts * n_embd)
    d.mat(name + "_down", parts * n_embd, rank, gain=parts)  # what it gives is divided by their number
    d.mat(name + "_up", rank, parts * n_embd, gain=2)
    if inject:
        d.mat(name + "_inject", parts * n_embd, parts, gain=parts)


def hyper_keys(d, n_embd, width):
    """(parts of the stream, rank of what mixes them); the index's keys."""
    parts, rank = d.key("hyper_connection.count", d.pick(2, 3, 4, 4)), d.width(3, 30)
    d.key("hyper_connection.low_rank", rank)
    d.key("attention.indexer.head_count", d.between(2, 7))
    d.key("attention.indexer.key_length", width + 2 * d.between(0, 3))
    del d.tensors["output_norm.weight"]
    hyper(d, "output_hc", n_embd, parts, rank, False)
    return parts, rank


def index_layers(d, attn):
    """The index, and where some layer recurs maybe n-grams."""
    block = d.pick(1, 2, 3, 4, 5, 8)
    d.key("attention.indexer.top_k", block * (d.between(1, 4) if d.chance(0.8) else 100))
    d.key("attention.compress_ratios", [block if a else 0 for a in attn])
    if not all(attn) and d.chance(0.8):
        size, per, n_vocab = d.between(2, 4), d.between(1, 3), d.tensors["token_embd.weight"].shape[0]
        heads, d.ngram = (size - 1) * per, d.pick(*[il for il, a in enumerate(attn) if not a])
        d.key("ple.layers", [d.ngram])
        d.key("ple.ngram_size", size)
        d.key("ple.heads_per_ngram", per)
        d.key("ple.conv_kernel", d.between(2, 4))
        d.key("ple.eos_token_id", d.between(0, n_vocab - 1))
        n_embd = d.keys["qwen4exp.embedding_length"]
        even = n_embd % heads == 0 and (d.unit or d.chance(0.7))  # rows of all heads are as wide as the stream, as published
        width = d.key("embedding_length_per_layer_input", n_embd // heads if even else d.width(2, 12))
        rows = [d.between(5, 60) for _ in range(heads)]
        d.key("ple.layer_multipliers", [2 * d.between(1, 2 ** d.pick(20, 50)) + 1 for _ in range(size)])
        d.key("ple.head_vocab_sizes", rows)
        d.key("ple.head_offsets", [sum(rows[:h]) for h in range(heads)])
        d.tensors["per_layer_token_embd.weight"] = d.values((sum(rows) + d.between(0, 5), width), 1.0)


def hyper_layer(d, b, n_embd, wide, attends):
    parts, rank = wide
    hyper(d, b + "hc_attn", n_embd, parts, rank)
    hyper(d, b + "hc_ffn", n_embd, parts, rank)
    if attends:
        n, width = (d.keys["qwen4exp.attention.indexer." + k] for k in ("head_count", "key_length"))
        d.mat(b + "indexer.q_proj", n_embd, n * width)
        d.mat(b + "indexer.k_proj", n_embd, width)
        d.norm(b + "indexer.q_norm", width)
        d.norm(b + "indexer.k_norm", width)
    if b == "blk.%d." % getattr(d, "ngram", -1):
        k = {x: d.keys["qwen4exp." + x] for x in ("ple.ngram_size", "ple.heads_per_ngram", "ple.conv_kernel",
                                                  "embedding_length_per_layer_input")}
        n_in = (k["ple.ngram_size"] - 1) * k["ple.heads_per_ngram"] * k["embedding_length_per_layer_input"]
        d.mat(b + "ple_key", n_in, parts * n_embd)
        d.mat(b + "ple_value", n_in, n_embd)
        for name in ("key", "query", "conv"):
            d.norm(b + "ple_norm_" + name, parts * n_embd)
        d.tensors[b + "ple_conv1d.weight"] = d.values((parts * n_embd, k["ple.conv_kernel"]), 0.8)


def gdn_layer(d, b, n_embd, k, size, hk, hv):
    c = (2 * hk + hv) * size
    d.mat(b + "attn_qkv", n_embd, c)
    d.mat(b + "attn_gate", n_embd, hv * size)
    if d.arch == "qwen3next":
        d.mat(b + "ssm_ba", n_embd, 2 * hv)
    else:
        d.mat(b + "ssm_beta", n_embd, hv)
        d.mat(b + "ssm_alpha", n_embd, hv)
    d.tensors[b + "ssm_conv1d.weight"] = d.values((c, k), 0.8)
    d.bias(b + "ssm_dt", hv)
    d.tensors[b + "ssm_a"] = d.values(hv, 0.45, -0.55)
    d.norm(b + "ssm_norm", size)
    d.mat(b + "ssm_out", hv * size, n_embd)


def mamba_keys(d, inner=None):
    """(taps, inner, state size, groups, heads)."""
    group, per = d.between(1, 3), d.between(1, 3)
    n_head = group * per
    if inner:  # granitehybrid: twice the embedding in every reader
        n_head = d.pick(*[h for h in (1, 2, 3, 4, 6, 8) if inner % h == 0])
        group = d.pick(*[g for g in (1, 2, 3, 4) if n_head % g == 0])
    if d.unit and not inner:
        group, n_head, inner = 1, 4, d.unit
    inner = inner or n_head * d.between(2, 12)
    k = conv_taps(d)
    n = d.key("ssm.state_size", d.between(2, 20))
    d.key("ssm.inner_size", inner)
    d.key("ssm.group_count", group)
    d.key("ssm.time_step_rank", n_head)
    return k, inner, n, group, n_head


def mamba_layer(d, il, n_embd, z, norm=True):
    b, (k, inner, n, group, n_head) = "blk.%d." % il, z
    c = inner + 2 * group * n
    d.mat(b + "ssm_in", n_embd, inner + c + n_head)
    d.tensors[b + "ssm_conv1d.weight"] = d.values((c, k), 0.8)
    d.bias(b + "ssm_conv1d", c)
    d.bias(b + "ssm_dt", n_head)
    d.tensors[b + "ssm_a"] = d.values((n_head, 1), 0.45, -0.55)
    d.tensors[b + "ssm_d"] = d.values((n_head, 1), 0.5, 1)
    if norm:
        d.tensors[b + "ssm_norm.weight"] = d.values((group, inner // group), 0.3, 1)
    d.mat(b + "ssm_out", inner, n_embd)


def mamba2(d):
    n_embd, n_layer = body(d)
    d.key("attention.head_count", 0)
    d.key("feed_forward_length", 0)
    z = mamba_keys(d)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        mamba_layer(d, il, n_embd, z)


def old_mamba_keys(d, inner):
    """(taps, channels, state size, rank of steps)."""
    d.key("ssm.inner_size", inner)
    return conv_taps(d), inner, d.key("ssm.state_size", d.between(1, 20)), d.key("ssm.time_step_rank", d.between(1, 12))


def old_mamba_layer(d, il, n_embd, z, norms):
    b, (k, inner, n, rank) = "blk.%d." % il, z
    d.mat(b + "ssm_in", n_embd, 2 * inner)
    d.tensors[b + "ssm_conv1d.weight"] = d.values((inner, k), 0.8)
    d.bias(b + "ssm_conv1d", inner)
    d.mat(b + "ssm_x", inner, rank + 2 * n)
    d.mat(b + "ssm_dt", rank, inner)
    d.bias(b + "ssm_dt", inner)
    d.tensors[b + "ssm_a"] = d.values((inner, n), 0.45, -0.55)
    d.tensors[b + "ssm_d"] = d.values(inner, 0.5, 1)
    d.mat(b + "ssm_out", inner, n_embd)
    if norms:
        d.norm(b + "ssm_dt_norm", rank)
        d.norm(b + "ssm_b_norm", n)
        d.norm(b + "ssm_c_norm", n)


def old_mamba(d):
    n_embd, n_layer = body(d)
    d.key("attention.head_count", 0)
    d.key("feed_forward_length", 0)
    if d.chance(0.6):
        d.key("ssm.dt_b_c_rms", bool(d.chance(0.7)))
    z = old_mamba_keys(d, 2 * n_embd)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        old_mamba_layer(d, il, n_embd, z, False)


def jamba(d):
    n_embd, n_layer = body(d)
    n_head, n_kv, width = heads(d)
    n_embd = refit(d, n_head * width)
    d.key("attention.head_count", n_head)
    recurrent = [d.chance(0.6) for _ in range(n_layer)]
    routed = [d.chance(0.5) for _ in range(n_layer)]
    d.key("attention.head_count_kv", [0 if r else n_kv for r in recurrent])
    z = old_mamba_keys(d, 2 * n_embd)
    bias = biases(d)
    n, f = expert_keys(d, width=False) if any(routed) else (0, d.width(5, 100))
    d.key("feed_forward_length", f)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        if recurrent[il]:
            old_mamba_layer(d, il, n_embd, z, True)
        else:
            attention(d, il, n_embd, n_head, n_kv, width, bias)
        if routed[il]:
            experts(d, il, n_embd, n, f, False)
        else:
            glu(d, il, n_embd, f)


def falconh1(d):
    n_embd, n_layer = body(d)
    n_head, n_kv, width = heads(d)
    n_embd = head_keys(d, n_embd, n_head, n_kv, width)
    rope(d, width, False, False)
    z, norm, bias = mamba_keys(d), d.chance(0.5), biases(d)
    n_ff = d.key("feed_forward_length", d.width(5, 100))
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.tensors["blk.%d.ffn_norm" % il] = d.values(n_embd, 0.3, 1)
        attention(d, il, n_embd, n_head, n_kv, width, bias)
        mamba_layer(d, il, n_embd, z, norm)
        glu(d, il, n_embd, n_ff, bias=bool(bias))


def granitehybrid(d):
    n_embd, n_layer = body(d)
    n_head, n_kv, width = heads(d)
    n_embd = refit(d, n_head * width)
    d.key("attention.head_count", n_head)
    recurrent = [d.chance(0.6) for _ in range(n_layer)]
    d.key("attention.head_count_kv", [0 if r else n_kv for r in recurrent])
    rope(d, width, False, False)
    turns(d)
    scalars(d)
    bias = biases(d)
    z = mamba_keys(d, 2 * n_embd)
    with_experts = d.chance(0.6)
    if with_experts:
        n, f = expert_keys(d, width=False)
        shared = d.key("expert_shared_feed_forward_length", d.width(5, 60))
    else:
        f = d.width(5, 100)
    d.key("feed_forward_length", f)
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        d.norm("blk.%d.ffn_norm" % il, n_embd)
        if recurrent[il]:
            mamba_layer(d, il, n_embd, z)
        else:
            attention(d, il, n_embd, n_head, n_kv, width, bias)
        if with_experts:
            experts(d, il, n_embd, n, f, False, shared)
        else:
            glu(d, il, n_embd, f)


def nemotron(d):
    moe_arch = d.arch == "nemotron_h_moe"
    n_embd, n_layer = body(d)
    if d.chance(0.5):
        d.key("attention.layer_norm_epsilon", d.keys[d.arch + ".attention.layer_norm_rms_epsilon"])
    n_head, n_kv, width = heads(d)
    d.key("attention.head_count", n_head)
    d.key("attention.key_length", width)
    d.key("attention.value_length", width)
    d.key("rope.dimension_count", width)
    z = mamba_keys(d)
    kinds = [d.pick("m", "a", "f") for _ in range(n_layer)]
    d.key("attention.head_count_kv", [n_kv if k == "a" else 0 for k in kinds])
    n_ff, bias = d.width(5, 80), biases(d)
    latent = 0
    if moe_arch:
        n, n_ff = expert_keys(d, True, None, True, True)
        shared = d.key("expert_shared_feed_forward_length", d.width(5, 60))
        d.key("expert_shared_count", 1)
        latent = d.key("moe_latent_size", d.width(4, 60)) if d.chance(0.4) else 0
    d.key("feed_forward_length", [n_ff if k == "f" else 0 for k in kinds])
    for il in range(n_layer):
        d.norm("blk.%d.attn_norm" % il, n_embd)
        if kinds[il] == "m":
            mamba_layer(d, il, n_embd, z)
        elif kinds[il] == "a":
            attention(d, il, n_embd, n_head, n_kv, width, bias)
        elif moe_arch:
            experts(d, il, n_embd, n, n_ff, False, shared, True, False, n_in=latent)
            if latent:
                d.mat("blk.%d.ffn_latent_down" % il, n_embd, latent)
                d.mat("blk.%d.ffn_latent_up" % il, latent, n_embd)
        else:
            glu(d, il, n_embd, n_ff, gate=False, bias=bool(bias))


def lfm2(d):
    n_embd, n_layer = body(d, True)
    n_head, n_kv, width = heads(d)
    n_embd = refit(d, n_head * width)
    d.tensors["token_embd_norm.weight"] = d.tensors.pop("output_norm.weight")
    d.key("attention.head_count", n_head)
    convs = [d.chance(0.6) for _ in range(n_layer)]
    d.key("attention.head_count_kv", [0 if c else n_kv for c in convs])
    rope(d, width, False, False)
    k, bias = d.key("shortconv.l_cache", d.pick(2, 3, 3, 4, 7)), biases(d)
    if d.arch == "lfm2" and d.chance(0.3):
        d.key("attention.sliding_window", d.between(1, 20))
    n_ff = d.key("feed_forward_length", d.width(5, 100))
    lead = n_layer
    if d.arch == "lfm2moe":
        n, f = expert_keys(d, func=(1, 2))
        lead = d.key("leading_dense_block_count", d.between(0, n_layer))
    for il in range(n_layer):
        b = "blk.%d." % il
        d.norm(b + "attn_norm", n_embd)
        d.norm(b + "ffn_norm", n_embd)
        if convs[il]:
            d.mat(b + "shortconv.in_proj", n_embd, 3 * n_embd)
            d.tensors[b + "shortconv.conv.weight"] = d.values((n_embd, k), 0.8)
            d.mat(b + "shortconv.out_proj", n_embd, n_embd)
        else:
            attention(d, il, n_embd, n_head, n_kv, width, bias, "head")
        if il < lead:
            glu(d, il, n_embd, n_ff)
        else:
            experts(d, il, n_embd, n, f, False, 0, True)


def kimi(d):
    n_embd, n_layer = body(d)
    n_head, size = d.key("attention.head_count", d.between(1, 4)), d.key("kda.head_dim", d.between(2, 20))
    z, k = mla_keys(d, True), conv_taps(d)
    linear = [d.chance(0.6) for _ in range(n_layer)]
    d.key("attention.head_count_kv", [0 if x else 1 for x in linear])
    n, f = expert_keys(d, False, (2,), False, True)
    lead = d.key("leading_dense_block_count", d.between(0, n_layer))
    shared = f * d.key("expert_shared_count", d.between(1, 2))
    n_ff = d.key("feed_forward_length", d.width(5, 100))
    for il in range(n_layer):
        b = "blk.%d." % il
        d.norm(b + "attn_norm", n_embd)
        d.norm(b + "ffn_norm", n_embd)
        if linear[il]:
            kda_layer(d, b, n_embd, n_head, size, k)
        else:
            mla_layer(d, il, n_embd, n_head, z)
        if il < lead:
            glu(d, il, n_embd, n_ff)
        else:
            experts(d, il, n_embd, n, f, False, shared, True)


def kda_layer(d, b, n_embd, n_head, size, k):
    for x in "qkv":
        d.mat(b + "attn_" + x, n_embd, n_head * size)
        d.tensors[b + "ssm_conv1d_%s.weight" % x] = d.values((1, n_head * size, 1, k), 0.8)
    for x in "fg":
        d.mat(b + "ssm_%s_a" % x, n_embd, size)
        d.mat(b + "ssm_%s_b" % x, size, n_head * size)
    d.bias(b + "ssm_dt", n_head * size)
    d.tensors[b + "ssm_a"] = d.values((1, 1, n_head, 1), 0.45, -0.55)
    d.mat(b + "ssm_beta", n_embd, n_head)
    d.norm(b + "ssm_norm", size)
    d.mat(b + "attn_output", n_head * size, n_embd)


# ---- gemma 4 and 3n ----------------------------------------------------------------------------------------

def gemma4(d):
    n_embd, n_layer = body(d, True, n_layer=d.between(2, 9))
    if d.chance(0.1):
        n_embd = refit(d, d.between(257, 600))
    n_kv = [d.pick(1, 2), d.pick(1, 2)]  # of global and window layers
    n_head = 2 * d.between(1, 3)
    width = [4 * d.between(1, 10), 2 * d.between(1, 12)]
    shared = d.key("attention.shared_kv_layers", d.pick(0, d.between(0, n_layer - 2)))
    swa = [bool(d.chance(0.6)) for _ in range(n_layer)]
    own = n_layer - shared
    if d.chance(0.5):
        swa[own - 2], swa[own - 1] = True, False  # as published files are
    swa[own:] = [s if s in swa[:own] else swa[own - 1] for s in swa[own:]]  # a layer of its kind is before it
    d.key("attention.sliding_window", d.between(1, 20))
    d.key("attention.sliding_window_pattern", swa)
    d.key("attention.head_count", n_head)
    d.key("attention.head_count_kv", n_kv[0] if n_kv[0] == n_kv[1] else [n_kv[s] for s in swa])
    for name, s in (("", 0), ("_swa", 1)):
        d.key("attention.key_length" + name, width[s])
        d.key("attention.value_length" + name, width[s])
        d.key("rope.dimension_count" + name, width[s])
    d.key("rope.freq_base", d.pick(*BASES))
    if d.chance(0.7):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    if d.chance(0.7):
        d.key("final_logit_softcapping", d.real(5, 30))
    if d.chance(0.7):
        freqs = np.full(width[0] // 2, 1e30, np.float32)
        freqs[:max(1, width[0] // 8)] = 1
        d.tensors["rope_freqs.weight"] = freqs
    n_ple = d.key("embedding_length_per_layer_input", d.pick(0, d.between(2, 20), d.between(2, 300)))
    with_experts = d.chance(0.5)
    n_ff = [d.between(5, 60)] * n_layer
    if shared and d.chance(0.5):
        n_ff[n_layer - shared:] = [2 * n_ff[0]] * shared
    d.key("feed_forward_length", n_ff[0] if len(set(n_ff)) == 1 else n_ff)
    moe_size = expert_keys(d) if with_experts else None
    k_is_v = d.chance(0.4)
    if n_ple:
        d.tensors["per_layer_token_embd.weight"] = d.values((d.tensors["token_embd.weight"].shape[0],
                                                            n_ple * n_layer), 1.0)
        d.mat("per_layer_model_proj", n_embd, n_ple * n_layer)
        d.norm("per_layer_proj_norm", n_ple)
    for il in range(n_layer):
        s = swa[il]
        attention(d, il, n_embd, n_head, n_kv[s], width[s], (), "head", no_v=k_is_v and not s)
        if il >= n_layer - shared:
            for name in ("attn_k", "attn_v", "attn_k_norm"):
                d.tensors.pop("blk.%d.%s.weight" % (il, name), 0)
        gemma4_rest(d, il, n_embd, n_ff[il], n_ple, moe_size)


def gemma4_rest(d, il, n_embd, n_ff, n_ple, moe_size):
    b = "blk.%d." % il
    for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
        d.norm(b + name, n_embd)
    glu(d, il, n_embd, n_ff)
    d.norm(b + "layer_output_scale", 1)
    if n_ple:
        d.mat(b + "inp_gate", n_embd, n_ple)
        d.mat(b + "proj", n_ple, n_embd)
        d.norm(b + "post_norm", n_embd)
    if moe_size:
        experts(d, il, n_embd, *moe_size)
        for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
            d.norm(b + name, n_embd)
        d.tensors[b + "ffn_gate_inp.scale"] = d.values(n_embd, 0.3, 1)
        d.tensors[b + "ffn_down_exps.scale"] = d.values(moe_size[0], 0.3, 1)


def gemma3n(d):
    n_embd, n_layer = body(d, True, n_layer=d.between(2, 6))
    if d.chance(0.1):
        n_embd = refit(d, d.between(257, 600))
    n_head, n_kv, width = heads(d)
    own = n_layer - d.key("attention.shared_kv_layers", d.pick(0, d.between(0, n_layer - 1)))
    swa = [bool(d.chance(0.6)) for _ in range(n_layer)]
    swa[own:] = [s if s in swa[:own] else swa[own - 1] for s in swa[own:]]
    d.key("attention.sliding_window", d.between(1, 20))
    d.key("attention.sliding_window_pattern", swa)
    d.key("attention.head_count", n_head)
    d.key("attention.head_count_kv", n_kv)
    d.key("attention.key_length", width)
    d.key("attention.value_length", width)
    d.key("rope.freq_base", d.pick(*BASES))
    if d.chance(0.5):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    d.key("altup.active_idx", d.pick(0, 0, d.between(0, 3)))
    n = d.key("altup.num_inputs", 4)
    n_ple = d.key("embedding_length_per_layer_input", d.pick(256, d.between(2, 40)))
    rank = d.pick(64, d.between(1, 20))
    n_ff = d.key("feed_forward_length", d.pick([d.between(5, 60)] * n_layer, [d.between(5, 60) for _ in range(n_layer)]))
    kept = d.chance(0.3)  # what nobody reads
    d.key("activation_sparsity_scale", [d.real(-0.5, 1.7) if d.chance(0.5) else -np.inf for _ in range(n_layer)])
    if d.chance(0.7):
        d.key("final_logit_softcapping", d.real(5, 30))
    d.mat("altup_proj", n_embd, n_embd, n - 1)
    d.mat("altup_unembd_proj", n_embd, n_embd, n - 1)
    d.tensors["per_layer_token_embd.weight"] = d.values((d.tensors["token_embd.weight"].shape[0], n_ple * n_layer), 1.0)
    d.mat("per_layer_model_proj", n_embd, n_ple * n_layer)
    d.norm("per_layer_proj_norm", n_ple)
    for il in range(n_layer):
        b = "blk.%d." % il
        attention(d, il, n_embd, n_head, n_kv, width, (), "head")
        if il >= own and not kept:
            for name in ("attn_k", "attn_v", "attn_k_norm"):
                d.tensors.pop("blk.%d.%s.weight" % (il, name), 0)
        glu(d, il, n_embd, n_ff[il])
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm", "laurel_post_norm",
                     "altup_router_norm", "altup_correct_scale"):
            d.norm(b + name, n_embd)
        d.mat(b + "laurel_l", n_embd, rank)
        d.mat(b + "laurel_r", rank, n_embd)
        d.mat(b + "altup_router", n_embd, n)
        d.mat(b + "altup_predict_coef", n, n * n)
        d.mat(b + "altup_correct_coef", n, n)
        d.mat(b + "inp_gate", n_embd, n_ple)
        d.mat(b + "proj", n_ple, n_embd)


def encoder(d):
    """bert, nomic-bert, their mixture, jina-bert-v2 and v3: norms of the stream behind each half."""
    bert, gate, mixed = d.arch == "bert", d.arch in ("nomic-bert", "jina-bert-v2"), d.arch == "nomic-bert-moe"
    n_embd, n_layer = body(d, True, True)
    n_head, _, width = heads(d, True)
    n_embd = refit(d, n_head * width)
    for part in (".weight", ".bias"):
        d.tensors.pop("output_norm" + part, 0)
    d.norm("token_embd_norm", n_embd, True)
    d.key("attention.head_count", n_head)
    d.key("attention.causal", False)
    if d.chance(0.5):
        d.key("pooling_type", d.between(0, 3))
    if bert:
        d.mat("position_embd", n_embd, d.keys["bert.context_length"])
    elif d.arch == "jina-bert-v2":
        alibi(d)
    else:
        rope(d, width)
    if d.chance(0.7):
        d.keys["tokenizer.ggml.token_type_count"] = d.pick(1, 2)
        d.mat("token_types", n_embd, d.keys["tokenizer.ggml.token_type_count"])
    n_ff, bias = d.key("feed_forward_length", d.width(5, 130)), d.chance(0.2 if gate else 0.6)
    if mixed:
        n = d.key("expert_count", d.between(2, 9))
        d.key("expert_used_count", d.between(1, n))
        d.key("moe_every_n_layers", 2)
    for il in range(n_layer):
        b = "blk.%d." % il
        attention(d, il, n_embd, n_head, n_head, width, ("q", "k", "v", "output") if bias else ())
        if mixed and il % 2:
            d.mat(b + "ffn_gate_inp", n_embd, n)
            d.tensors[b + "ffn_up_exps.weight"] = d.values((n, n_ff, n_embd), n_embd ** -0.5)
            d.tensors[b + "ffn_down_exps.weight"] = d.values((n, n_embd, n_ff), n_ff ** -0.5)
        else:
            glu(d, il, n_embd, n_ff, "", gate, bias and d.arch != "jina-bert-v2")
        if d.arch == "jina-bert-v2" and d.chance(0.8):
            d.bias(b + "ffn_down", n_embd)
        d.norm(b + "attn_output_norm", n_embd, True)
        d.norm(b + "layer_output_norm", n_embd, True)


def modern_bert(d):
    """Norms without biases, none before the first layer's attention; one matrix of gate and up; windows."""
    n_embd, n_layer = body(d, True, True)
    n_head, _, width = heads(d, True)
    n_embd = refit(d, n_head * width)
    d.norm("output_norm", n_embd)
    d.norm("token_embd_norm", n_embd)
    d.key("attention.head_count", n_head)
    d.key("attention.causal", False)
    d.key("attention.sliding_window", d.between(1, 40))
    if d.chance(0.6):
        d.key("attention.sliding_window_pattern", d.pick(0, 1, 2, 3, 4, [bool(d.chance(0.6)) for _ in range(n_layer)]))
    d.key("rope.freq_base", d.pick(*BASES))
    if d.chance(0.6):
        d.key("rope.freq_base_swa", d.pick(*BASES))
    if d.chance(0.5):
        d.key("hidden_activation", d.pick("gelu", "silu", "gelu_pytorch_tanh"))
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    for il in range(n_layer):
        b = "blk.%d." % il
        attention(d, il, n_embd, n_head, n_head, width)
        d.mat(b + "ffn_up", n_embd, 2 * n_ff)
        d.mat(b + "ffn_down", n_ff, n_embd)
        for name in ("attn_norm", "ffn_norm")[il == 0:]:
            d.norm(b + name, n_embd)


def llama_both(d):
    """eurobert, llama-embed."""
    n_embd, n_layer = body(d, True)
    n_head, n_kv, width = heads(d)
    n_embd = head_keys(d, n_embd, n_head, n_kv, width)
    rope(d, width)
    if d.chance(0.5):
        d.key("attention.causal", False)
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    for il in range(n_layer):
        b = "blk.%d." % il
        attention(d, il, n_embd, n_head, n_kv, width)
        glu(d, il, n_embd, n_ff)
        for name in ("attn_norm", "ffn_norm"):
            d.norm(b + name, n_embd)


def gemma_embedding(d):
    n_embd, n_layer = body(d, True)
    n_head, n_kv, width = heads(d)
    d.key("attention.head_count", n_head)
    d.key("attention.head_count_kv", n_kv)
    d.key("attention.key_length", width)
    d.key("attention.value_length", width)
    d.key("attention.sliding_window", d.between(1, 40))
    if d.chance(0.4):
        d.key("attention.sliding_window_pattern", [bool(d.chance(0.6)) for _ in range(n_layer)])
    d.key("rope.freq_base", d.pick(*BASES))
    n_ff = d.key("feed_forward_length", d.width(5, 130))
    for il in range(n_layer):
        b = "blk.%d." % il
        attention(d, il, n_embd, n_head, n_kv, width, (), "head")
        glu(d, il, n_embd, n_ff)
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            d.norm(b + name, n_embd)


# ---- the other ways to write the same matrices -------------------------------------------------------------

def layers_of(tensors, stem):
    return sorted(int(n.split(".")[1]) for n in tensors if n.startswith("blk.") and n.endswith("." + stem))


def fuse(t, b, parts, whole, axis):
    for tail in (".weight", ".bias"):
        if all(b + p + tail in t for p in parts):
            t[b + whole + tail] = np.concatenate([t.pop(b + p + tail) for p in parts], axis)


def split_experts(t, b):
    for part in ("gate", "up", "down"):
        whole = t.pop(b + "ffn_%s_exps.weight" % part, None)
        for e in range(0 if whole is None else len(whole)):
            t[b + "ffn_%s.%d.weight" % (part, e)] = whole[e]


# Families whose layers differ: what keys say of it is no matter where tensors tell it.
BY_TENSORS = ("lfm2", "lfm2moe", "granitehybrid", "nemotron_h", "nemotron_h_moe", "kimi-linear", "qwen35", "qwen35moe",
              "qwen3next", "qwen4exp")


def keys_that_do_not_tell(d, keys, zero):
    """One number for all layers, or 0 for all."""
    a = d.arch + "."
    n_layer = keys[a + "block_count"]
    for name in ("attention.head_count_kv", "feed_forward_length"):
        v = keys.get(a + name)
        if isinstance(v, list):
            keys[a + name] = [0] * n_layer if zero else max(v)
    keys.pop(a + "attention.recurrent_layers", 0)
    keys.pop(a + "full_attention_interval", 0)


def layouts(d):
    """Names of the layouts this draw can be written in."""
    names, t = [], d.tensors
    if layers_of(t, "ffn_gate_exps.weight"):
        names += ["gate_up_exps"] + (["each_expert"] if not layers_of(t, "ffn_gate_exps.bias") else [])
    if layers_of(t, "attn_v.weight") and not layers_of(t, "ssm_f_a.weight"):
        names.append("qkv")
    if d.arch == "jina-bert-v2":
        names.append("gate_up")
    if layers_of(t, "attn_k_b.weight"):
        names += ["kv_b", "kv_b_keys", "kv_b_too"]
    if d.arch in BY_TENSORS:
        names += ["kv_number", "kv_zero"]
    if d.arch == "qwen3next" and layers_of(t, "ssm_ba.weight"):
        names.append("ssm_in")
    return names


def first_in(d, t, b):
    """qwen3next's first layout: of each head of keys its queries, keys, values and gates."""
    hk, size = d.keys[d.arch + ".ssm.group_count"], d.keys[d.arch + ".ssm.state_size"]
    q, k, v = np.split(t.pop(b + "attn_qkv.weight"), [hk * size, 2 * hk * size])
    parts = [x.reshape(hk, -1, x.shape[-1]) for x in (q, k, v, t.pop(b + "attn_gate.weight"))]
    t[b + "ssm_in.weight"] = np.concatenate(parts, 1).reshape(-1, q.shape[-1])


def written(d, name):
    """(keys, tensors) of the draw in a layout; "usual": as the family's converter writes it."""
    if name == "usual":
        keys, t = d.keys, d.tensors
        for part in USUAL.get(d.arch, ()):
            keys, t = rewritten(d, part, keys, t)
        return dict(keys), dict(t)
    return rewritten(d, name, d.keys, d.tensors)


def rewritten(d, name, keys, t):
    keys, t = dict(keys), dict(t)
    for il in range(d.keys[d.arch + ".block_count"]):
        b = "blk.%d." % il
        if name == "gate_up_exps" and b + "ffn_gate_exps.weight" in t:
            fuse(t, b, ("ffn_gate_exps", "ffn_up_exps"), "ffn_gate_up_exps", 1)
        if name == "each_expert":
            split_experts(t, b)
        if name == "qkv" and b + "attn_v.weight" in t:
            fuse(t, b, ("attn_q", "attn_k", "attn_v"), "attn_qkv", 0)
        if name == "gate_up" and b + "ffn_gate.weight" in t:
            fuse(t, b, ("ffn_gate", "ffn_up"), "ffn_up", 0)
        if name == "ssm_in" and b + "ssm_ba.weight" in t:
            first_in(d, t, b)
        if name.startswith("kv_b") and b + "attn_k_b.weight" in t:
            k_b, v_b = t.pop(b + "attn_k_b.weight"), t.pop(b + "attn_v_b.weight")
            rows = np.concatenate([np.transpose(k_b, (0, 2, 1)), v_b], 1)
            t[b + "attn_kv_b.weight"] = rows.reshape(-1, rows.shape[-1])
            if name == "kv_b_too":  # both, of which one is not read
                t[b + "attn_k_b.weight"] = k_b.reshape(-1, k_b.shape[-1])
                t[b + "attn_v_b.weight"] = v_b.reshape(-1, v_b.shape[-1])
    if name.startswith("kv_n") or name.startswith("kv_z"):
        keys_that_do_not_tell(d, keys, name == "kv_zero")
    if name == "kv_b":
        a = d.arch + ".attention."
        n_kv = keys[a + "head_count_kv"]
        keys[a + "head_count_kv"] = [n and keys[a + "head_count"] for n in n_kv] if isinstance(n_kv, list) else \
            keys[a + "head_count"]
        for part in ("key_length", "value_length"):
            keys[a + part] = keys.pop(a + part + "_mla")
    return keys, t


# phi3 and gptneox, gpt2 have one way only in the field; the rest is split.
USUAL = {"bloom": ("qkv",), "mpt": ("qkv",), "phi3": ("qkv", "gate_up"), "glm4": ("gate_up",), "gptneox": ("qkv",), "gpt2": ("qkv",), "starcoder": ("qkv",),
         "chatglm": ("qkv", "gate_up"), "spark2_5": ("qkv",), "openelm": ("qkv",), "plamo3": ("qkv", "gate_up"), "dbrx": ("qkv",), "bailingmoe2": ("qkv",),
         "minicpm3": ("kv_b",), "mistral4": ("gate_up_exps",), "gemma4": ("gate_up_exps",)}

FAMILIES = {"deci": deci, "openelm": openelm, **{a: dense for a in DENSE}, **{a: moe for a in MOE}, "deepseek2": deepseek2, "mistral4": deepseek2,
            "deepseek32": deepseek2, "glm-dsa": deepseek2, "mimo2": mimo2,
            "minicpm3": minicpm3,
            "qwen3next": gdn, "qwen35": gdn, "qwen35moe": gdn, "qwen4exp": gdn, "mamba2": mamba2, "mamba": old_mamba, "jamba": jamba, "falcon-h1": falconh1,
            "granitehybrid": granitehybrid, "nemotron_h": nemotron, "nemotron_h_moe": nemotron, "lfm2": lfm2,
            "lfm2moe": lfm2, "kimi-linear": kimi, "gemma4": gemma4, "gemma3n": gemma3n, "bert": encoder,
            "nomic-bert": encoder, "nomic-bert-moe": encoder, "jina-bert-v2": encoder, "jina-bert-v3": encoder, "modern-bert": modern_bert,
            "eurobert": llama_both, "llama-embed": llama_both, "gemma-embedding": gemma_embedding}


DRAFTS = ("mimo2", "deepseek32", "glm-dsa", "glm4", "cohere2moe", "bailingmoe2", "nemotron_h_moe", "glm4moe", "deepseek2", "mistral4", "qwen35", "qwen35moe", "qwen3next", "step35")


def drafts(d):
    """Blocks behind the layers, which draft further tokens: nobody runs them, so anything may be in them."""
    n_layer, n = d.keys[d.arch + ".block_count"], d.pick(1, 1, 2)
    d.key("block_count", n_layer + n)
    d.key("nextn_predict_layers", n)
    for il in range(n_layer, n_layer + n):
        last, b = "blk.%d." % (n_layer - 1), "blk.%d." % il
        for name in [x for x in d.tensors if x.startswith(last)]:
            d.tensors[b + name[len(last):]] = 2 * d.tensors[name]
        e = d.keys[d.arch + ".embedding_length"]
        d.mat(b + "nextn.eh_proj", 2 * e, e)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            d.norm(b + "nextn." + name, e)
    for key, v in d.keys.items():  # lists of layers have these too
        if isinstance(v, list) and len(v) == n_layer and "sections" not in key and d.chance(0.5):
            d.keys[key] = v + v[-1:] * n


def draw(arch, seed, unit=0):
    """unit: what rows are multiples of, as far as the family lets them; 0: any length."""
    d = Draw(arch, np.random.default_rng(seed), unit)
    FAMILIES[arch](d)
    if arch in DRAFTS and d.chance(0.3):
        drafts(d)
    return d
