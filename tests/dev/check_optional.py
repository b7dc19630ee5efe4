#!/usr/bin/env python3
"""Optional keys and tensors of every family: hone beside another engine, where one of them is there or is not.

    python3 tests/dev/check_optional.py [build/release/hone] --peer PROGRAM [--cases N] [--seed S] [--only ARCH,...]
                                        [--combine N] [--toggle WORD] [--known FILE] [-v]

For each family N random files (families_draw.py, F32) that both engines answer alike. Then each optional key is added,
changed or left out, and each optional tensor, alone and in N random combinations of those that both took. PROGRAM FILE
IDS N_CTX writes the logits of all positions as f32. For each toggle one word says what came of it:

    same       both answered alike, and otherwise than before
    idle       both answered as before
    refused    hone refused; if the message does not name the key or tensor, that is wrong
    peer       the other engine refused
    both       both refused
    DIFFERENT  both answered, not alike: not rounding (1e-3 of the spread of the logits), but another meaning

What differs is counted as wrong unless OTHERWISE below says why hone means something else.
Needs numpy; without it it says so and ends. Exits 1 if anything is wrong.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:  # a development check: not every machine has it
    print("check_optional: skipped, needs numpy")
    sys.exit(0)

import families_draw
from check_families import ask, write_gguf
from families_reference import BOTH_WAYS

BAR = 1e-3  # rms of the difference over the spread of the logits
SPARSE = 1.6448534  # of gemma3n; the peer has it as a constant, and divides the deviation by n - 1
DRAWS = 30  # at most so many for a file that both answer alike
N_TOK = 40

# (families, words that begin a toggle's name, why hone answers otherwise than the peer of November 2026)
OTHERWISE = (
    ((), ("keys yarn and beta", "keys yarn and ext_factor"), "keys that it reads for few families"),
    ((), ("key expert_weights_scale",), "a key that it reads for few families"),
    (tuple(a for a in families_draw.FAMILIES if a != "nemotron_h_moe"), ("key expert_used_count = [2",),
     "it chooses in all layers as many as the first one does, and adds as many as the layer has"),
    (("nemotron_h_moe",), ("key expert_gating_func",), "it does not read the key there: a sigmoid always"),
    (("gemma2", "gpt-oss", "llama4", "exaone4", "cohere2", "afmoe", "spark2_5"), ("keys none with a factor", "key rope.scaling.type = none"),
     "in windowed layers it scales where the file says not to"),
    (("gemma3", "gemma4", "gemma3n", "step35", "plamo3", "mimo2"), ("key rope.scaling.attn_factor", "keys linear and attn_factor", "keys yarn"),
     "it scales rotations of windowed layers too; transformers those of the layers that the scaling is for"),
    (("smallthinker",), ("key attention.sliding_window", "no key attention.sliding_window", "keys window"),
     "a window of 4096 there, whatever the key says; it turns three layers of four, whichever have windows"),
    (("minicpm3",), ("key embedding_scale", "key residual_scale", "key logit_scale"), "constants there"),
    (("cohere2", "cohere2moe"),
     ("key rope.freq_base", "no key rope.freq_base", "keys yarn and a window", "keys linear and a window"),
     "it reads a base of windowed layers and does not use it"),
    (("mellum", "exaone-moe"), ("key rope.freq_base_swa", "keys yarn and a window's base", "keys linear and a window's base"),
     "it reads a base of windowed layers and does not use it"),
    (("afmoe",), ("key attention.sliding_window_pattern", "keys window"),
     "it turns three layers of four, whichever have windows; transformers those that have them"),
    (("muse-glimmer",), ("key rope.scal", "keys linear", "keys both factors", "keys yarn"),
     "windowed layers, which alone turn, are not scaled there; transformers scales them"),
    (("nanbeige", "hrm_text"), ("tensor attn_", "tensor ffn_"), "only in the first passes, or not at all, does it multiply by such factors there"),
    (("muse-glimmer", "olmo", "spark2_5", "openelm", "dbrx", "talkie", "plamo3"), ("tensor attn_gate.scale", "tensor attn_qkv.scale", "tensor ffn_"),
     "it does not multiply by such factors there"),
    (("mimo2",), ("tensor attn_q.", "tensor attn_k.", "tensor attn_v."), "it loads biases and factors and does not use them"),
    (("afmoe", "maincoder", "apertus", "smallthinker", "minicpm3", "laguna", "step35", "mimo2"), ("tensor attn_gate.scale", "tensor ffn_"),
     "it does not multiply by such factors there"),
    (("deepseek",), ("key expert_weights_norm",), "it does not read the key there, but of Ling, which is deepseek here"),
    (("gemma2", "gemma3n"), ("key final_logit_softcapping = 0", "key attn_logit_softcapping = 0"), "it divides by 0"),
    (("gemma3n",), ("key final_logit_softcapping",), "it does not read the key: 30 always"),
    (("gemma3n",),
     ("key activation_sparsity", "no key activation_sparsity", "key altup.active", "no key altup.active",
      "key attention.shared_kv", "no key attention.shared_kv"), "constants there"),
    (("gemma4",), ("no key final_logit_softcapping",), "30 there; a config without one means none in transformers"),
    (("ernie4_5", "ernie4_5-moe", "falcon-h1"), ("tensor attn_output.bias",), "it loads the bias and does not add it"),
    (("qwen4exp",), ("tensor attn_q.bias", "tensor attn_k.bias", "tensor attn_v.bias"), "it loads the biases and does not add them"),
    (("lfm2",), ("key attention.sliding_window_pattern", "keys window"), "it does not read the pattern there"),
    (("laguna",), ("key attention.sliding_window_pattern = [True",),
     "where the first layer has the window, it turns as many numbers of a head in all layers as in that one"),
    (("deepseek2",), ("no key expert_gating_func", "key expert_gating_func = 0", "no tensor exp_probs_b"),
     "softmax there; here, as files of GLM-4.7-Flash mean it, sigmoid where there is a bias of the choice"),
    (("deepseek2", "mistral4", "deepseek32", "glm-dsa"),
     ("key rope.scal", "no key rope.scaling", "keys linear", "keys both factors", "keys yarn"),
     "without rope.scaling.yarn_log_multiplier, which glm-dsa does not read, or with another than 0.1 in mistral4, it scales scores and rotations "
     "both; transformers rotations alone"),
)


def otherwise(arch, name):
    for families, words, why in OTHERWISE:
        if (not families or arch in families) and any(name.startswith(w) for w in words):
            return why
    return None


# ---- keys ------------------------------------------------------------------------------------------------------

def key_values(get):
    """suffix: values to try. get(suffix, default): what the file says."""
    n_layer, n_embd = get("block_count"), get("embedding_length")
    width = get("attention.key_length") or n_embd // max(1, get("attention.head_count") or 1)
    n_ff, kv = get("feed_forward_length", 0), get("attention.head_count_kv", get("attention.head_count"))
    every_other = [il % 2 == 0 for il in range(n_layer)]
    table = {
        "attention.sliding_window": (5, 0), "attention.sliding_window_pattern": (0, 1, 2, 3, every_other),
        "rope.freq_base": (123.0,), "rope.freq_base_swa": (77.0,), "rope.dimension_count": (width, width // 4 * 2),
        "rope.dimension_count_swa": (width // 4 * 2,), "rope.dimension_sections": ([1, 1, 1, 0], [1, 1, 0, 1]),
        "rope.scaling.factor": (4.0, 0.0), "rope.scale_linear": (4.0,), "rope.scaling.attn_factor": (1.3,),
        "rope.scaling.alpha": (1.0, 50.0), "rope.scaling.finetuned": (True, False),
        "rope.scaling.original_context_length": (16,), "rope.scaling.yarn_log_multiplier": (0.5, 0.1),
        "rope.scaling.type": ("none", "linear", "yarn", "longrope"),
        "attention.scale": (0.3,), "logit_scale": (0.4,), "embedding_scale": (3.0,), "residual_scale": (0.5,),
        "attn_logit_softcapping": (2.0, 0.0), "final_logit_softcapping": (2.0, 0.0), "attention.clamp_kqv": (0.5,),
        "attention.max_alibi_bias": (8.0,), "attention.causal": (True, False), "use_parallel_residual": (True, False),
        "attention.temperature_scale": (0.5,), "attention.temperature_length": (8,), "attention.output_scale": (0.5,),
        "attention.value_scale": (0.5,), "attention.key_length": (width, width + 2),
        "attention.value_length": (width, width + 2), "attention.key_length_swa": (width, width + 2),
        "attention.value_length_swa": (width, width + 2), "expert_weights_scale": (2.5, 0.0),
        "expert_weights_norm": (True, False), "expert_gating_func": (0, 1, 2, 3, 4), "expert_shared_count": (0, 1, 2),
        "expert_shared_feed_forward_length": (7, 0), "leading_dense_block_count": (0, 1),
        "interleave_moe_layer_step": (0, 1, 2), "expert_used_count": (1, 2), "expert_count": (0, 1),
        "expert_feed_forward_length": (6, 0), "nextn_predict_layers": (0, 1), "embedding_length_out": (n_embd, 4),
        "attention.layer_norm_epsilon": (0.3,), "attention.layer_norm_rms_epsilon": (0.3,),
        "attention.group_norm_epsilon": (0.3,), "attention.shared_kv_layers": (0, 1),
        "attention.recurrent_layers": (every_other,), "full_attention_interval": (2, 3),
        "router_logit_softcapping": (0.5,), "expert_group_scale": (0.05, 2.0), "moe_every_n_layers": (2,),
        "experts_per_group": (2,), "n_deepstack_layers": (0, 1), "deepstack_mapping": ([-1] * n_layer,),
        "swiglu_clamp_exp": ([0.5] * n_layer,), "swiglu_clamp_shexp": ([0.5] * n_layer,), "moe_latent_size": (4,),
        "ssm.dt_b_c_rms": (True,), "attention.q_lora_rank": (0,), "rescale_every_n_layers": (2,), "swin_norm": (True,),
        "attention.rope_pattern": ([True] * n_layer, every_other), "activation_sparsity_scale": ([0.5] * n_layer,),
        "attention.indexer.top_k": (4,), "attention.relative_buckets_count": (8,), "tensor_data_layout": ("reference",),
        "hidden_activation": ("silu", "gelu", "relu"), "altup.active_idx": (1,), "vocab_size": (),
    }
    if isinstance(n_ff, int):
        table["feed_forward_length"] = ([n_ff] * n_layer, [n_ff] * (n_layer - 1) + [n_ff + 1])
    if isinstance(kv, int):
        table["attention.head_count_kv"] = ([kv] * n_layer,)
    if isinstance(get("expert_used_count", None), int):
        table["expert_used_count"] += ([1] * n_layer, [2] + [1] * (n_layer - 1))
        if get("expert_feed_forward_length", 0):
            table["expert_feed_forward_length"] += ([get("expert_feed_forward_length")] * n_layer,)
    return table


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
TOGETHER = {  # keys that say something together alone
    "linear": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    "linear and attn_factor": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0,
                               "rope.scaling.attn_factor": 1.3},
    "none with a factor": {"rope.scaling.type": "none", "rope.scaling.factor": 4.0},
    "both factors": {"rope.scaling.factor": 4.0, "rope.scale_linear": 2.0},
    "yarn": YARN, "yarn without original": {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0},
    "yarn and beta_fast": {**YARN, "rope.scaling.yarn_beta_fast": 4.0},
    "yarn and beta_slow": {**YARN, "rope.scaling.yarn_beta_slow": 2.0},
    "yarn and ext_factor 0": {**YARN, "rope.scaling.yarn_ext_factor": 0.0},
    "yarn and yarn_attn_factor": {**YARN, "rope.scaling.yarn_attn_factor": 1.4},
    "yarn and attn_factor": {**YARN, "rope.scaling.attn_factor": 1.3},
    "yarn and log_multiplier 1": {**YARN, "rope.scaling.yarn_log_multiplier": 1.0},
    "yarn and log_multiplier 0.1": {**YARN, "rope.scaling.yarn_log_multiplier": 0.1},
    "yarn and log_multiplier 0": {**YARN, "rope.scaling.yarn_log_multiplier": 0.0},
    "yarn of factor 1": {**YARN, "rope.scaling.factor": 1.0},
    "yarn without factor": {"rope.scaling.type": "yarn", "rope.scaling.original_context_length": 16},
    "yarn and a window's base": {**YARN, "rope.freq_base_swa": 77.0},
    "linear and a window's base": {"rope.scaling.factor": 4.0, "rope.freq_base_swa": 77.0},
    "window": {"attention.sliding_window": 5, "attention.sliding_window_pattern": 2},
    "groups": {"expert_group_count": 2, "expert_group_used_count": 1},
    "groups of 1": {"expert_group_count": 1, "expert_group_used_count": 1},
    "temperature": {"attention.temperature_scale": 0.5, "attention.temperature_length": 8,
                    "rope.scaling.original_context_length": 8},
    "temperature without length": {"attention.temperature_scale": 0.5, "rope.scaling.original_context_length": 8},
    "no experts": {"expert_count": 0, "expert_used_count": 0},
}


def key_toggles(arch, keys):
    a = arch + "."

    def get(suffix, default=None):
        return keys.get(a + suffix, default)
    for k in [k for k in keys if k.startswith(a) and k != a + "vocab_size"]:
        yield "no key " + k[len(a):], [k[len(a):]], lambda ks, ts, k=k: ks.pop(k, None)
    for suffix, values in key_values(get).items():
        for v in values:
            if get(suffix) != v or isinstance(get(suffix), bool) != isinstance(v, bool):
                yield "key %s = %s" % (suffix, v), [suffix], lambda ks, ts, s=suffix, v=v: ks.update({a + s: v})
    for name, group in TOGETHER.items():
        yield "keys " + name, list(group), lambda ks, ts, g=group: ks.update({a + s: v for s, v in g.items()})


# ---- tensors -----------------------------------------------------------------------------------------------------

def stems(tensors):
    """Names without their layer."""
    return sorted({n.split(".", 2)[2] if n.startswith("blk.") else n for n in tensors})


def drop(ts, stem):
    for n in [n for n in ts if n == stem or n.startswith("blk.") and n.split(".", 2)[2] == stem]:
        del ts[n]


def tensor_values(arch, keys, tensors):
    """name: shape (numpy), of tensors a file might have too; in layers: of those that have tensor `beside`."""
    a = arch + "."
    n_embd, n_vocab = keys[a + "embedding_length"], tensors["token_embd.weight"].shape[0]
    width = keys.get(a + "attention.key_length") or n_embd // max(1, keys.get(a + "attention.head_count") or 1)
    n_rot = keys.get(a + "rope.dimension_count", width)
    outer = {"output.weight": (n_vocab, n_embd), "output.bias": (n_vocab,), "output_norm.bias": (n_embd,),
             "rope_freqs.weight": (n_rot // 2,), "token_embd_norm.weight": (n_embd,),
             "token_embd_norm.bias": (n_embd,), "output.scale": (1,), "cls.output.weight": (1, n_embd),
             "position_embd.weight": (keys[a + "context_length"], n_embd)}
    inner = []
    for stem in stems(tensors):
        if not stem.endswith(".weight"):
            continue
        one = next((t for n, t in tensors.items() if n.startswith("blk.") and n.split(".", 2)[2] == stem), None)
        if one is None:
            continue
        rows = one.shape[:-1] if one.ndim > 1 else one.shape
        inner.append((stem[:-7] + ".bias", stem, rows))
        inner.append((stem[:-7] + ".scale", stem, one.shape[:1] if one.ndim == 3 else (1,)))
    n_head = keys.get(a + "attention.head_count") or 1
    n_head = max(n_head) if isinstance(n_head, list) else n_head
    for part in ("q", "k"):
        inner.append(("attn_%s_norm.weight" % part, "attn_q.weight", (width,)))
    inner += [("attn_sinks.weight", "attn_q.weight", (n_head,)), ("exp_probs_b.bias", "ffn_gate_inp.weight", None),
              ("ffn_norm.weight", "attn_norm.weight", (n_embd,)), ("attn_norm_2.weight", "attn_norm.weight", (n_embd,)),
              ("post_attention_norm.weight", "attn_norm.weight", (n_embd,)),
              ("post_ffw_norm.weight", "attn_norm.weight", (n_embd,)),
              ("layer_output_scale.weight", "attn_norm.weight", (1,)),
              ("attn_sub_norm.weight", "attn_norm.weight", (n_embd,)), ("attn_gate.weight", "attn_q.weight", "as"),
              ("ffn_gate_inp_shexp.weight", "ffn_up_shexp.weight", (1, n_embd)), ("ssm_conv1d.bias", "ssm_d", None)]
    return outer, inner


def fill(rng, name, shape):
    near_one = "norm.weight" in name or name.endswith("scale") or "scale.weight" in name or "rope_f" in name
    return (rng.uniform(0.6, 1.6, shape) if near_one else rng.uniform(-0.5, 0.5, shape)).astype(np.float32)


def tensor_toggles(arch, keys, tensors, seed):
    for stem in stems(tensors):
        yield "no tensor " + stem, [stem], lambda ks, ts, s=stem: drop(ts, s)
    outer, inner = tensor_values(arch, keys, tensors)
    for name, shape in outer.items():
        if name not in tensors:
            yield "tensor " + name, [name], lambda ks, ts, n=name, s=shape: ts.update({n: fill(seed(n), n, s)})
    if "rope_freqs.weight" not in tensors:
        pair = ["rope_factors_%s.weight" % kind for kind in ("long", "short")]
        half = outer["rope_freqs.weight"]
        yield "tensors rope_factors", pair, lambda ks, ts: ts.update({n: fill(seed(n), n, half) for n in pair})
    for name, beside, shape in inner:
        def add(ks, ts, name=name, beside=beside, shape=shape):
            for n, t in list(ts.items()):
                if n.startswith("blk.") and n.split(".", 2)[2] == beside:
                    new = n[:-len(beside)] + name
                    ts[new] = fill(seed(new), name, t.shape if shape == "as" else shape or t.shape[:1])
        if name not in stems(tensors):
            yield "tensor " + name, [name], add
    first = [n for n in tensors if n.startswith("blk.0.") and n.endswith(".bias")]
    for n in first:  # of one layer alone
        yield "no tensor " + n, [n, n.split(".", 2)[2]], lambda ks, ts, n=n: ts.pop(n, None)
    if "output.weight" in tensors:
        yield "tensor output.bias", ["output.bias"], \
            lambda ks, ts: ts.update({"output.bias": fill(seed("b"), "output.bias", ts["output.weight"].shape[:1])})


# ---- one comparison ----------------------------------------------------------------------------------------------

class Check:
    def __init__(self, args):
        self.a, self.bad = args, 0
        self.folder = tempfile.mkdtemp(prefix="optional-")
        self.path = os.path.join(self.folder, "case.gguf")
        self.env = dict(os.environ, GGML_NO_BACKTRACE="1")

    def both(self, keys, tensors, tokens):
        """(hone's Answer, the peer's logits or its message)"""
        write_gguf(self.path, {**keys, "tokenizer.ggml.model": "none"}, tensors)
        mine = ask(self.a.hone, self.path, tokens, 64)
        try:
            p = subprocess.run(self.a.peer.split() + [self.path, ",".join(map(str, tokens)), "64"], env=self.env,
                               capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return mine, "no answer"
        if p.returncode:
            return mine, p.stderr.decode(errors="replace").strip().replace("\n", " | ") or "rc %d" % p.returncode
        y = np.frombuffer(p.stdout, "<f4").astype(np.float64)
        return mine, y.reshape(len(tokens), -1) if np.isfinite(y).all() else "no numbers"

    def base(self, arch, case):
        """A file that both answer alike: (keys, tensors, tokens, hone's, the peer's); None, and why the last is not."""
        why = ""
        for again in range(DRAWS * (10 if arch == "gemma3n" else 1)):  # of which it takes few shapes
            seed = [self.a.seed, zlib.crc32(arch.encode()), case, again]
            d = families_draw.draw(arch, seed, 256 if arch in ("deepseek32", "glm-dsa") else 0)  # of an index: 64 numbers, or it stops
            if d.keys[arch + ".block_count"] > 12:
                continue
            keys, tensors = families_draw.written(d, "usual")
            for part in ("type", "yarn_beta_fast", "yarn_beta_slow"):  # OTHERWISE: toggles that these meet
                if part != "type" or keys.get(arch + ".rope.scaling.type") == "none":
                    keys.pop(arch + ".rope.scaling." + part, 0)
            if arch == "gemma3n":
                if keys["gemma3n.attention.shared_kv_layers"] or len(set(keys["gemma3n.feed_forward_length"])) > 1:
                    continue
                keys["gemma3n.altup.active_idx"] = 0
                n_ff, n_layer = np.max(keys["gemma3n.feed_forward_length"]), keys["gemma3n.block_count"]
                keys["gemma3n.activation_sparsity_scale"] = [float(SPARSE * np.sqrt(n_ff / (n_ff - 1)))] * n_layer
                keys.pop("gemma3n.final_logit_softcapping", 0)
            for part in ("key", "value"):  # heads alike: what neither would run tells nothing
                if arch + ".kda.head_dim" not in keys and arch + ".attention.kv_lora_rank" not in keys:
                    same = keys.get(arch + ".attention.key_length")
                    if same and arch != "mimo2" and keys[arch + ".attention.value_length"] != same:
                        why = "values of another width"
                        break
            else:
                rng = np.random.default_rng(seed)
                tokens = [int(x) for x in rng.integers(0, tensors["token_embd.weight"].shape[0], N_TOK)]
                mine, its = self.both(keys, tensors, tokens)
                if mine.rc or isinstance(its, str):
                    why = mine.message if mine.rc else "peer: " + its[-200:]
                elif far(mine.y, its) < BAR:
                    return keys, tensors, tokens, mine.y, its
                else:
                    why = "another answer, %.1e of the spread: %s" % (far(mine.y, its), {
                        k: v for k, v in keys.items() if k.startswith(arch)})
        return None, why

    def judge(self, arch, toggle, file, count, done):
        name, names, change = toggle
        keys, tensors, tokens, mine_before, its_before = file
        ks, ts = dict(keys), dict(tensors)
        change(ks, ts)
        if ks == keys and ts.keys() == tensors.keys():
            return
        mine, its = self.both(ks, ts, tokens)
        words = "refused" if mine.rc else "peer"
        if mine.crashed():
            words, note = "DIED", mine.message
        elif mine.rc and isinstance(its, str):
            words, note = "both", mine.message
        elif mine.rc:
            note = mine.message
            if far(its, its_before) < BAR:
                words = "refused idle"
            if not any(n in mine.message for n in [*names, "has shape", ": tensor "]):
                note = "NOT NAMED: " + note
                self.bad += 1
        elif isinstance(its, str):
            note = its[-160:]
        else:
            apart = far(mine.y, its)
            idle = far(mine.y, mine_before) < BAR
            note = "%.1e; hone moves %.1e, the peer %.1e" % (apart, far(mine.y, mine_before), far(its, its_before))
            bar = max(BAR, 20 * far(mine_before, its_before))  # tables of 16 bits in the peer's maps
            words = "DIFFERENT" if apart >= bar else "idle" if idle else "same"
            if words == "same" and not otherwise(arch, name):
                done.append(toggle)
            if words == "DIFFERENT" and otherwise(arch, name):
                words, note = "otherwise", otherwise(arch, name)
        if words in ("DIFFERENT", "DIED"):
            self.bad += 1
        count[words] = count.get(words, 0) + 1
        if self.a.verbose or words in ("DIFFERENT", "DIED") or note.startswith("NOT NAMED"):
            print("  %-9s %s: %s: %s" % (words, arch, name, note.replace(self.path, "FILE")[:400]), flush=True)

    def family(self, arch):
        count, n = {}, 0
        for case in range(self.a.cases):
            file = self.base(arch, case)
            if file[0] is None:
                print("  no file of %s that both answer alike; the last: %s" % (arch, file[1].replace(self.path, "")))
                continue
            n += 1
            done = []

            def seed(name):
                return np.random.default_rng([self.a.seed, case, zlib.crc32(name.encode())])
            for toggle in [*key_toggles(arch, file[0]), *tensor_toggles(arch, file[0], file[1], seed)]:
                if self.a.toggle in toggle[0]:
                    self.judge(arch, toggle, file, count, done)
            rng = seed("combine")
            for _ in range(self.a.combine if len(done) > 1 else 0):
                some = [done[i] for i in rng.choice(len(done), min(len(done), 3), replace=False)]

                def all_of(ks, ts, some=some):
                    for t in some:
                        t[2](ks, ts)
                self.judge(arch, (" + ".join(t[0] for t in some), [x for t in some for x in t[1]], all_of), file,
                           count, [])
        print("%-14s %d files, %d toggles: %s" % (arch, n, sum(count.values()), ", ".join(
            "%s %d" % kv for kv in sorted(count.items()))), flush=True)


def far(y, ref):
    return np.inf if y.shape != ref.shape else float(np.sqrt(np.mean((y - ref) ** 2)) / max(np.std(ref), 1e-300))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone", nargs="?", default="build/release/hone")
    p.add_argument("--peer", required=True, help="a program that prints another engine's logits")
    p.add_argument("--cases", type=int, default=1, help="files a family (1)")
    p.add_argument("--combine", type=int, default=10, help="random combinations a file (10)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="families, by comma")
    p.add_argument("--toggle", default="", help="only toggles whose name has this")
    p.add_argument("-v", "--verbose", action="store_true")
    a = p.parse_args()
    check = Check(a)
    for arch in a.only.split(",") if a.only else sorted(set(families_draw.FAMILIES) - set(BOTH_WAYS)):
        check.family(arch)
    print("check_optional: %d wrong" % check.bad)
    if os.path.exists(check.path):
        os.remove(check.path)
    os.rmdir(check.folder)
    return 1 if check.bad else 0


if __name__ == "__main__":
    sys.exit(main())
