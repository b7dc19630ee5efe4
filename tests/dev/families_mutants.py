"""Wrong files made of a right one, for check_families.py: each with what it is, the names of which a refusal must hold
one, and what an answer to it would have to be:

  "refuse"   there is no right answer
  "same"     the reference's answer to this very file (a key with a default, a bias that may be absent)
  "read"     as "same", and another one than without the change: a key or tensor that is there counts for something
"""
import numpy as np

# Tensors and keys of other families: read, or refused.
OTHERS = ("attn_sinks.weight", "attn_q_norm.weight", "post_ffw_norm.weight", "attn_gate.weight", "ssm_a",
          "attn_output.bias", "attn_q.bias", "exp_probs_b.bias", "ffn_gate_inp.scale", "layer_output_scale.weight",
          "ffn_down.bias", "attn_norm.bias", "attn_norm_2.weight", "ffn_gate_inp_shexp.weight", "inp_gate.weight",
          "attn_rot_embd.weight", "surprise.weight")
GLOBALS = ("rope_freqs.weight", "output.bias", "output_norm.bias", "token_embd_norm.weight", "surprise.weight",
           "rope_factors_long.weight")
SWITCHES = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 2.0, "attention.sliding_window": 3,
            "logit_scale": 0.5, "attention.scale": 0.3, "expert_weights_scale": 3.0, "embedding_scale": 3.0,
            "residual_scale": 0.5, "attention.temperature_scale": 0.5, "attention.max_alibi_bias": 8.0,
            "attention.clamp_kqv": 0.1, "attention.causal": False, "use_parallel_residual": True,
            "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_gating_func": 2,
            "attention.chunk_size": 4, "rope.scaling.attn_factor": 1.5,
            "attention.shared_kv_layers": 1, "rope.freq_base_swa": 77.0, "nextn_predict_layers": 1}
# By the families' description these are read by nothing: the file may have them.
# llama4 and hunyuan norm after rope (a factor of the magnitude goes), gemma3's windows have no scaling; gemma4 norms
# what its experts give.
UNREAD = {("phi3", "attention.sliding_window"), ("exaone4", "attention.sliding_window"),
          ("nemotron_h_moe", "expert_gating_func"), ("llama4", "expert_gating_func"),
          ("gemma4", "expert_weights_scale"),
          ("llama4", "rope.scaling.attn_factor"), ("hunyuan-dense", "rope.scaling.attn_factor"),
          ("maincoder", "rope.scaling.attn_factor"), ("talkie", "rope.scaling.attn_factor"),
          ("gemma-embedding", "final_logit_softcapping"), ("gemma-embedding", "attention.causal"),
          ("bloom", "attention.max_alibi_bias"), ("mpt", "attention.max_alibi_bias"),  # what it is without the key
          ("refact", "attention.max_alibi_bias"), ("jina-bert-v2", "attention.max_alibi_bias"),
          ("jina-bert-v2", "attention.causal"), ("lfm2", "attention.causal"), ("eurobert", "attention.causal"), ("llama-embed", "attention.causal"),
          ("gemma3", "rope.scaling.attn_factor"), ("gemma3", "rope.scaling.factor"), ("gemma3", "rope.scaling.type")}
# Written in another tensor's place: a refusal may name that.
ALSO = {"attn_qkv.weight": "attn_q.weight", "attn_kv_b.weight": "attn_k_b.weight", "attn_q_a.weight": "attn_q.weight",
        "ffn_gate_up_exps.weight": "ffn_gate_exps.weight"}

WINDOWED = ("gemma2", "gemma3", "olmo2", "exaone4", "cohere2", "gpt-oss", "mellum", "exaone-moe", "afmoe", "smallthinker", "cohere2moe",
            "granite_swa", "laguna", "step35", "muse-glimmer", "spark2_5", "plamo3", "mimo2")

FIRST_SEES = ("smallthinker", "cohere2moe", "modern-bert", "granite_swa", "laguna")  # the first of so many layers everything; of 0 none

NAN, BIG = float("nan"), 2 ** 31 - 1
IMPOSSIBLE = {
    "block_count": ("+1", 0, BIG), "embedding_length": ("+1", 0, BIG), "feed_forward_length": ("+1", 0, BIG),
    "attention.head_count": ("+1", 0, BIG), "attention.head_count_kv": ("+1", BIG),
    "attention.key_length": ("+2", "+1", 0, BIG), "attention.value_length": ("+1", 0, BIG),
    "attention.key_length_mla": ("+1", 0, BIG), "attention.value_length_mla": ("+1", 0, BIG),
    "attention.key_length_swa": ("+2", 0), "attention.value_length_swa": ("+1", 0),
    "attention.q_lora_rank": ("+1", BIG), "attention.kv_lora_rank": ("+1", 0, BIG),
    "attention.layer_norm_rms_epsilon": (NAN, -1.0), "attention.layer_norm_epsilon": (NAN, -1.0),
    "rope.freq_base": (NAN, -1.0, 0.0), "rope.dimension_count": (10001, BIG),
    "rope.scaling.type": ("magic",), "rope.scaling.factor": (NAN, -2.0),
    "expert_count": ("+1", 0, BIG), "expert_used_count": (0, 10000), "expert_feed_forward_length": ("+1", 0, BIG),
    "expert_shared_feed_forward_length": ("+1", BIG), "expert_gating_func": (9,), "expert_weights_scale": (NAN,),
    "expert_group_count": (5, BIG), "expert_group_used_count": (0, 100),
    "interleave_moe_layer_step": (0,), "attention.scale": (NAN,), "logit_scale": (NAN,), "embedding_scale": (NAN,),
    "residual_scale": (NAN,), "final_logit_softcapping": (NAN, -1.0), "attn_logit_softcapping": (NAN, -1.0),
    "ssm.conv_kernel": ("+1", 0, BIG), "ssm.inner_size": ("+1", 0, BIG), "ssm.state_size": ("+1", 0, BIG),
    "ssm.time_step_rank": ("+1", 0, BIG), "ssm.group_count": ("+1", 0, BIG), "kda.head_dim": ("+1", 0, BIG),
    "shortconv.l_cache": ("+1", 0, BIG), "embedding_length_per_layer_input": ("+1", BIG),
    "hyper_connection.count": ("+1", 0, 1, BIG), "hyper_connection.low_rank": ("+1", 0, BIG),
    "attention.indexer.head_count": ("+1", 0, BIG), "attention.indexer.key_length": ("+2", 0, 1, BIG),
    "attention.indexer.top_k": ("+1", 0), "ple.ngram_size": (0, 1, BIG), "ple.heads_per_ngram": (0, BIG),
    "ple.conv_kernel": ("+1", 0, BIG), "ple.eos_token_id": (BIG,),
    "attention.shared_kv_layers": (1000,), "full_attention_interval": (0,),
    "nextn_predict_layers": (100000, BIG), "num_loops": (0, BIG), "hrm.layers_per_stack": ("+1", 0, BIG),
    "hrm.h_cycles": ("+1", 0, BIG), "hrm.l_cycles": ("+1", 0, BIG),
    "attention.temperature_scale": (NAN,), "rope.scaling.original_context_length": (0,),
}
NO_HEADS = {a: {"attention.head_count", "feed_forward_length"} for a in ("mamba", "mamba2")}


def close(v, change):
    return v + int(change) if isinstance(change, str) and change.startswith("+") else change


def of_experts(short):
    return short.startswith("expert_") or short in ("interleave_moe_layer_step", "leading_dense_block_count")


def wrong_keys(arch, keys, tensors):
    head, dense_ffn = arch + ".", any(n.endswith((".ffn_up.weight", ".ffn_gate.weight")) for n in tensors)
    routed = any(".ffn_gate_inp.weight" in n for n in tensors)
    for key, v in keys.items():
        if key == "general.architecture":
            continue
        short, names = key[len(head):], (key, "tensor ", key.rsplit(".", 1)[1], "layers", "rope.dimension_count")
        if (arch, short) != ("gemma3", "attention.layer_norm_rms_epsilon"):  # ollama's files go without
            yield "without key " + key, names, {k: x for k, x in keys.items() if k != key}, "same"
        wrong_type = 7 if isinstance(v, str) else "seven"
        if routed or not of_experts(short):
            yield "key %s = %r" % (key, wrong_type), names, {**keys, key: wrong_type}, "refuse"
        if isinstance(v, list):
            yield "key %s one shorter" % key, names, {**keys, key: v[:-1]}, "refuse"
            continue
        for change in IMPOSSIBLE.get(short, ()):
            if short in NO_HEADS.get(arch, ()):
                continue
            if change == 0 and short == "ssm.group_count":
                names = names + (head + "ssm",)
            unused = short == "feed_forward_length" and not dense_ffn or of_experts(short) and not routed
            told = ", %s" % change if isinstance(change, str) else ""
            yield "key %s = %r%s" % (key, close(v, change), told), names, {**keys, key: close(v, change)}, \
                "same" if unused else "refuse"


def without_rope(arch, keys):
    """Nothing turns here: what rope keys say is no matter."""
    return arch in ("gpt2", "starcoder", "mamba", "jamba", "mamba2", "nemotron_h", "nemotron_h_moe", "kimi-linear", "bert", "bloom", "mpt", "refact", "jina-bert-v2") or \
        arch in ("granite", "granitehybrid") and not keys.get(arch + ".rope.scaling.finetuned", True)


def attention_only(short):
    return short.startswith(("rope.", "attention."))


def only_windows(arch, keys):
    """Every layer has the window: what rope.scaling says is for the others, in families that do not scale there."""
    if arch + ".attention.sliding_window" not in keys:
        return False
    pattern = keys.get(arch + ".attention.sliding_window_pattern", {"gemma-embedding": 6, "plamo3": 8}.get(arch, 4))
    n = keys[arch + ".block_count"]
    if arch == "modern-bert":  # the first of so many sees everything; of none, none does
        return pattern in (0, [True] * n)
    return arch in ("olmo2", "mellum", "gemma3n", "gemma4", "gemma-embedding", "laguna", "step35", "plamo3", "mimo2") and (pattern > n if isinstance(pattern, int) else all(pattern))


def without_effect(arch, keys, short):
    """Rope keys that no layer of the file looks at; a single pair turns by 1 a position, whatever the base."""
    share = keys[arch + ".embedding_length"] // max(1, int(np.max(keys[arch + ".attention.head_count"])))
    width = keys.get(arch + ".rope.dimension_count", keys.get(arch + ".attention.key_length", share))
    pairs = keys.get(arch + ".rope.dimension_count_swa", width) // 2
    pattern = keys.get(arch + ".attention.sliding_window_pattern", 4)
    no_window = pattern < 2 if isinstance(pattern, int) else not any(pattern)
    if arch in FIRST_SEES and isinstance(pattern, int):
        no_window = pattern == 1 or pattern > 1 and keys[arch + ".block_count"] == 1
    if short == "rope.freq_base_swa":
        return pairs == 1 or no_window
    return short.startswith("rope.scaling.") and only_windows(arch, keys)


def attends_by(name, tensors):
    """Does the tensor say that its layer attends? Layers of Kimi's delta rule have keys too."""
    layer = ".".join(name.split(".")[:2])
    return (name.endswith(".attn_k.weight") and layer + ".ssm_f_a.weight" not in tensors) or \
        name.endswith((".attn_k_b.weight", ".attn_kv_b.weight")) or \
        ".attn_qkv." in name and name.replace("attn_qkv", "attn_gate") not in tensors


def other_switches(arch, keys, tensors):
    routed = any(".ffn_gate_inp.weight" in n for n in tensors)
    attends = any(attends_by(n, tensors) for n in tensors)
    by_bias = arch in ("glm-dsa", "deepseek32", "mimo2") or arch in ("deepseek2", "kimi-linear") and any(n.endswith(".exp_probs_b.bias") for n in tensors)
    for short, v in SWITCHES.items():
        if without_effect(arch, keys, short):
            continue
        if short == "expert_gating_func" and by_bias:  # it is so already
            continue
        if short.startswith("rope.") and without_rope(arch, keys) or attention_only(short) and not attends:
            continue
        if arch + "." + short not in keys and (arch, short) not in UNREAD:
            more = {arch + "." + short: v}
            if short == "rope.scaling.type":
                more[arch + ".rope.scaling.factor"] = 4.0
                more[arch + ".rope.scaling.original_context_length"] = 16
            if short.startswith("expert_") and not routed or \
                    short == "rope.scaling.factor" and keys.get(arch + ".rope.scaling.type", "linear") != "linear":
                continue
            if short == "expert_gating_func" and any("exp_probs_b" in n for n in tensors) or \
                    short == "attention.temperature_scale" and \
                    keys.get(arch + ".rope.scaling.original_context_length", keys[arch + ".context_length"]) > 29:
                continue  # what such a file means without the key; or nothing before that position
            names = (arch + "." + short, short.rsplit(".", 1)[-1], "context holds", "position_embd") + \
                (("original_context_length",) if short == "attention.temperature_scale" else ())
            # which layers turn, and by which table, is a matter of their windows: maybe none
            by_window = short.startswith("rope.") and arch in WINDOWED
            yield "with key %s.%s = %r" % (arch, short, v), names, {**keys, **more}, "same" if by_window else "read"


def stems(tensors):
    """One tensor of each kind."""
    seen = set()
    for name in tensors:
        parts = name.split(".")
        stem = ".".join(parts[2:]) if parts[0] == "blk" else name
        if stem not in seen:
            seen.add(stem)
            yield name


def other_tensors(arch, keys, tensors):
    n_embd, rng = keys[arch + ".embedding_length"], np.random.default_rng(5)
    kinds = {n.split(".", 2)[2] for n in tensors if n.startswith("blk.")}
    sizes = {"attn_q.bias": ("attn_q.weight",), "ffn_down.bias": ("ffn_down.weight",)}
    names = ["blk.0." + n for n in OTHERS if n not in kinds] + [n for n in GLOBALS if n not in tensors]
    if only_windows(arch, keys):
        names = [n for n in names if n != "rope_freqs.weight"]
    for name in names + ["blk.%d.attn_norm.weight" % keys[arch + ".block_count"]]:
        like = [tensors["blk.0." + s] for s in sizes.get(name[6:], ()) if "blk.0." + s in tensors]
        shape = (like[0].shape[0],) if like else (n_embd,)
        if name == "blk.0.attn_sinks.weight":
            shape = (max(1, int(np.max(keys[arch + ".attention.head_count"]))),)
        if name.startswith("rope_f"):
            n_rot = keys.get(arch + ".rope.dimension_count", keys.get(arch + ".attention.key_length", 4))
            shape = (max(1, n_rot // 2),)
        if name == "output.bias":
            shape = (tensors["token_embd.weight"].shape[0],)
        asks = "attn_q" in name or name.startswith("rope_f")
        alone = asks and keys.get(arch + ".attention.sliding_window") == 1  # sees itself: asks nobody
        told = (name, name[6:], name.split(".", 2)[-1] + " is there")
        yield "with tensor " + name, told, \
            {**tensors, name: rng.uniform(1, 2, shape).astype(np.float32)}, "same" if alone else "read"


def wrong_tensors(arch, tensors):
    for name in stems(tensors):
        also = name.replace(*next(((a, b) for a, b in ALSO.items() if name.endswith(a)), ("", "")))
        if arch == "jina-bert-v2":  # one matrix of both, where there is no gate
            also = also.replace("ffn_gate", "ffn_up")
        yield "without tensor " + name, (name, also), {k: x for k, x in tensors.items() if k != name}, "same"
        t = tensors[name]
        if name in ("token_embd.weight", "position_embd.weight"):
            longer = np.concatenate([t, t[:, :1]], 1)
        else:
            longer = np.concatenate([t, t[:1]], 0)
        unread = ".nextn." in name or (arch, name) == ("qwen4exp", "per_layer_token_embd.weight")  # nobody runs, or asks for
        yield "tensor %s one longer" % name, (name, "shape"), {**tensors, name: longer}, "same" if unread else "refuse"


def mutants(arch, keys, tensors):
    """(what, names, keys, tensors, answer) of every wrong file."""
    for what, names, k, answer in wrong_keys(arch, keys, tensors):
        yield what, names, k, tensors, answer
    for what, names, k, answer in other_switches(arch, keys, tensors):
        yield what, names, k, tensors, answer
    for what, names, t, answer in wrong_tensors(arch, tensors):
        yield what, names, keys, t, answer
    for what, names, t, answer in other_tensors(arch, keys, tensors):
        yield what, names, keys, t, answer
