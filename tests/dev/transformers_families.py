"""Random small checkpoints of model families as transformers has them, and the GGUF keys and tensors that the usual
converters make of them, for check_transformers.py. Written from the families' description; knows nothing of src.

A family is a row: the class of its config, what it changes of the common one, its architecture, names and changes of
tensors, keys. Configs are small and odd: no two sizes agree where a confusion of them would go unnoticed.
"""
import math
import re

import numpy as np

COMMON = dict(vocab_size=101, hidden_size=72, intermediate_size=100, num_hidden_layers=3, num_attention_heads=6,
              num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, pad_token_id=None, bos_token_id=0,
              eos_token_id=0, use_cache=False, tie_word_embeddings=False)
HEAD = dict(head_dim=20)
MOE = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=28)
ROUTED = dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=28, first_k_dense_replace=1)
# In its latent norms, and in the norms of linear attention's q and k, transformers has 1e-6 whatever the config says;
# files have one epsilon.
LATENT = dict(rms_norm_eps=1e-6, kv_lora_rank=26, qk_nope_head_dim=14, qk_rope_head_dim=8, v_head_dim=18, num_key_value_heads=6)
NEMOTRON = dict(HEAD, mamba_num_heads=8, mamba_head_dim=18, ssm_state_size=10, n_groups=2, conv_kernel=4, chunk_size=64,
                num_hidden_layers=4, layer_norm_epsilon=1e-5)
GDN = dict(HEAD, rms_norm_eps=1e-6, num_hidden_layers=5, shared_expert_intermediate_size=44, linear_num_key_heads=2,
           linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4)
WINDOW = 37


def rope(theta=1e4, **more):
    return dict(rope_parameters=dict(dict(rope_type="default", rope_theta=theta), **more))


QWEN4 = dict(GDN, **MOE, **rope(1e6, partial_rotary_factor=0.4, mrope_section=[2, 1, 1]), hc_count=4, hc_lowrank=22,
             indexer_n_heads=7, indexer_kv_heads=1, indexer_head_dim=12, indexer_budget=24, indexer_compress_ratio=4,
             ple_layer_ids=[2], ple_embed_dim=24, ple_conv_kernel_size=3, ngram_size=3, heads_per_ngram=2,
             ngram_vocab_size_base=50, make_ngram_vocab_size_divisible_by=8, split_ngram_parts=2,
             output_gate_type="sigmoid")


# ---- names -------------------------------------------------------------------------------------------------------

LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.out_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv",
    "self_attn.out_gate": "attn_gate", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
    "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
    "self_attn.sinks": "attn_sinks.weight", "self_attn.q_a_proj": "attn_q_a", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias", "mlp.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.gate.moe_statics.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.experts.down_proj": "ffn_down_exps.weight", "mlp.experts.down_proj_bias": "ffn_down_exps.bias",
}
for _p in ("gate", "up", "down"):
    for _s in ("shared_expert", "shared_experts"):
        LAYER["mlp.%s.%s_proj" % (_s, _p)] = "ffn_%s_shexp" % _p
OUTER = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "embeddings": "token_embd",
         "norm_f": "output_norm", "final_layernorm": "output_norm", "embedding_norm": "token_embd_norm",
         "embed_in": "token_embd", "final_layer_norm": "output_norm", "wte": "token_embd",
         "word_embeddings": "token_embd", "word_embeddings_layernorm": "token_embd_norm", "wpe": "position_embd",
         "ln_f": "output_norm", "embed_tokens_per_layer": "per_layer_token_embd",
         "per_layer_model_projection": "per_layer_model_proj", "per_layer_projection_norm": "per_layer_proj_norm",
         "altup_projections": "altup_proj", "altup_unembed_projections": "altup_unembd_proj"}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm"}
GEMMA_PLE = {"per_layer_input_gate": "inp_gate", "per_layer_projection": "proj",
             "post_per_layer_input_norm": "post_norm"}
GEMMA4_NAMES = dict(SANDWICH, **GEMMA_PLE, **{
    "layer_scalar": "layer_output_scale.weight", "router.proj": "ffn_gate_inp", "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale", "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight", "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2", "post_feedforward_layernorm_2": "post_ffw_norm_2"})
GEMMA3N_NAMES = dict(SANDWICH, **GEMMA_PLE, **{
    "laurel.linear_left": "laurel_l", "laurel.linear_right": "laurel_r", "laurel.post_laurel_norm": "laurel_post_norm",
    "altup.modality_router": "altup_router", "altup.router_norm": "altup_router_norm",
    "altup.prediction_coefs": "altup_predict_coef", "altup.correction_coefs": "altup_correct_coef",
    "altup.correct_output_scale": "altup_correct_scale.weight"})
ALSO_NORM = {"post_attention_layernorm": "post_attention_norm"}  # the norm before the feed-forward, by that name
SSM = {"A_log": "ssm_a", "D": "ssm_d", "dt_bias": "ssm_dt.bias", "conv1d.weight": "ssm_conv1d.weight",
       "conv1d.bias": "ssm_conv1d.bias", "in_proj": "ssm_in", "norm": "ssm_norm", "out_proj": "ssm_out"}


MAMBA = dict({k: v for k, v in SSM.items() if k not in ("dt_bias", "norm")}, **{
    "x_proj": "ssm_x", "dt_proj": "ssm_dt", "dt_layernorm": "ssm_dt_norm", "b_layernorm": "ssm_b_norm",
    "c_layernorm": "ssm_c_norm"})


def named(row, name):
    """GGUF's name of a tensor of transformers."""
    m = re.match(r"(?:\w+\.)?(?:layers|h|blocks)\.(\d+)\.(.*)", name)
    stack = re.match(r"model\.([LH])_module\.layers\.(\d+)\.(.*)", name)
    if stack:  # the high stack's stand behind the low one's
        il = int(stack.group(2)) + (row["stack_of"] if stack.group(1) == "H" else 0)
        return named({}, "layers.%d.%s" % (il, stack.group(3).replace("self_attn.gate_proj", "self_attn.out_gate")))
    if name == "model.z_L_init":
        return "hrm.z_l_init"
    if not m:
        stem, tail = name.rsplit(".", 1)
        *_, before, last = ("." + stem).split(".")
        return OUTER[before] + "." + last + "." + tail if last.isdigit() else OUTER[last] + "." + tail
    il, rest = m.groups()
    names = dict(LAYER, **row.get("names", {}))
    if rest in names:
        return "blk.%s.%s" % (il, names[rest])
    stem, tail = rest.rsplit(".", 1)
    return "blk.%s.%s.%s" % (il, names[stem], tail)


# ---- changes of tensors: (c, name of transformers, name of GGUF, array) -> {name: array} --------------------------------

def pairs(w, n_head):
    """Rows of a head as halves (i, i + d/2) become neighbours (2i, 2i + 1)."""
    d = w.shape[0] // n_head
    return w.reshape(n_head, 2, d // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def permuted(c, name, to, w):
    if ".attn_q." in to:
        return {to: pairs(w, c.num_attention_heads)}
    if ".attn_k." in to:
        return {to: pairs(w, c.num_key_value_heads)}
    return None


def is_one_more(to):
    return to.endswith("norm.weight") and "ssm_norm" not in to or ".ple_norm_" in to


def one_more(c, name, to, w):
    """Norms whose weight is 1 + w."""
    return {to: w + 1} if is_one_more(to) else None


def muse_norms(c, name, to, w):
    """1 + w in layers, w at the end."""
    return {to: w + 1} if name.endswith("layernorm.weight") else None


def split_experts(c, name, to, w):
    if not name.endswith("experts.gate_up_proj"):
        return None
    gate, up = np.split(w, 2, 1)
    b = to.rsplit(".", 2)[0] + "."
    return {b + "ffn_gate_exps.weight": gate, b + "ffn_up_exps.weight": up}


def turned_experts(c, name, to, w):
    """llama4: matrices of experts lie [n_in, n_out]."""
    if name.endswith("experts.gate_up_proj"):
        return split_experts(c, name, to, w.swapaxes(1, 2))
    return {to: w.swapaxes(1, 2)} if name.endswith("experts.down_proj") else None


def gptoss_experts(c, name, to, w):
    """As turned, gate and up in turns."""
    b = to.rsplit(".", 2)[0] + "."
    for tail, kind in (("gate_up_proj", "weight"), ("gate_up_proj_bias", "bias")):
        if name.endswith("experts." + tail):
            w = w.swapaxes(1, 2) if kind == "weight" else w
            return {b + "ffn_gate_exps." + kind: w[:, 0::2], b + "ffn_up_exps." + kind: w[:, 1::2]}
    return turned_experts(c, name, to, w)


def latent(c, name, to, w):
    if "kv_b_proj" not in name:
        return None
    b = "blk.%s." % re.search(r"layers\.(\d+)\.", name).group(1)
    kv = w.reshape(c.num_attention_heads, c.qk_nope_head_dim + c.v_head_dim, c.kv_lora_rank)
    k, v = np.split(kv, [c.qk_nope_head_dim], 1)
    return {b + "attn_k_b.weight": k.swapaxes(1, 2), b + "attn_v_b.weight": v}


def gptneox_qkv(c, name, to, w):
    """Head by head (q, k, v) becomes all q, all k, all v."""
    if "query_key_value" not in name:
        return None
    h = c.num_attention_heads
    return {to: w.reshape(h, 3, -1, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)}


def gpt2_turned(c, name, to, w):
    return {to: w.T} if w.ndim == 2 and ".h." in name else None


OF_CHANNELS = ("mamba", "falcon_mamba", "jamba")  # decays of each channel and state


def ssm(c, name, to, w):
    if name.endswith("A_log"):
        w = -np.exp(w.astype(np.float64)).astype(np.float32)  # rounded once
    if name.endswith(("A_log", ".D")) and "linear_attn" not in name and c.model_type not in OF_CHANNELS:
        w = w.reshape(-1, 1)
    if "conv1d.weight" in name or ".conv.conv" in name:
        w = w[:, 0]
    if "ssm_norm" in to and "linear_attn" not in name:
        groups = getattr(c, "n_groups", None) or getattr(c, "mamba_n_groups")
        w = w.reshape(groups, -1)
    return {to: w}


def tiled(c, w, per=1, axis=0):
    """Value heads, grouped by their key head, as qwen3.5 files have them: j -> j mod key heads."""
    n_k, n_v = c.linear_num_key_heads, c.linear_num_value_heads
    w = np.moveaxis(w, axis, 0)
    w = w.reshape(n_k, n_v // n_k, per, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)
    return np.moveaxis(w, 0, axis)


def qwen35_heads(c, name, to, w):
    d, n_qk = c.linear_value_head_dim, 2 * c.linear_num_key_heads * c.linear_key_head_dim
    if "linear_attn" not in name or name.endswith("linear_attn.norm.weight"):
        return None
    w = ssm(c, name, to, w)[to]
    if "in_proj_qkv" in name or "conv1d" in name:
        return {to: np.concatenate([w[:n_qk], tiled(c, w[n_qk:], d)])}
    if "in_proj_z" in name:
        return {to: tiled(c, w, d)}
    return {to: tiled(c, w, d, 1) if "out_proj" in name else tiled(c, w)}


def qwen4(c, name, to, w):
    """Queries and keys of an index are one matrix there; the table of n-grams stands in its layer."""
    if name.endswith("index_qk_proj.weight"):
        q, k = np.split(w, [c.indexer_n_heads * c.indexer_head_dim])
        return {to.replace("_proj", "q_proj"): q, to.replace("_proj", "k_proj"): k}
    return {"per_layer_token_embd.weight": w} if "ngram_embedding" in name else None


def qwen3next_qkvz(c, name, to, w):
    """Key head by key head (q, k, v of its value heads, z of these) becomes q, k, v of all, and z."""
    if not name.endswith("in_proj_qkvz.weight"):
        return None
    n_k, d, r = c.linear_num_key_heads, c.linear_key_head_dim, c.linear_num_value_heads // c.linear_num_key_heads
    q, k, v, z = np.split(w.reshape(n_k, -1, w.shape[1]), [d, 2 * d, (2 + r) * d], 1)
    b = to.rsplit(".", 2)[0] + "."
    flat = [x.reshape(-1, w.shape[1]) for x in (q, k, v, z)]
    return {b + "attn_qkv.weight": np.concatenate(flat[:3]), b + "attn_gate.weight": flat[3]}


def falcon_scaled(c, name, to, w):
    """The multipliers of the checkpoint go into the weights."""
    if "lm_head" in name:
        w = w * c.lm_head_multiplier
    if "embed_tokens" in name:
        w = w * c.embedding_multiplier
    if ".k_proj" in name:
        w = w * c.key_multiplier
    if ".self_attn." in name:
        w = w * (c.attention_out_multiplier if ".o_proj" in name else c.attention_in_multiplier)
    if "feed_forward.gate_proj" in name:
        w = w * c.mlp_multipliers[0]
    if "feed_forward.down_proj" in name:
        w = w * c.mlp_multipliers[1]
    if "mamba.out_proj" in name:
        w = w * c.ssm_out_multiplier
    if "mamba.in_proj" in name:
        n_in, n_bc = c.mamba_d_ssm, c.mamba_n_groups * c.mamba_d_state
        sizes = (n_in, n_in, n_bc, n_bc, c.mamba_n_heads)
        w = w * c.ssm_in_multiplier * np.repeat(c.ssm_multipliers, sizes)[:, None]
    return ssm(c, name, to, w) if ".mamba." in name else {to: w}


def shared_fused(c, name, to, w):
    if "shared_mlp.input_linear" not in name:
        return None
    gate, up = np.split(w, 2)
    b = to.rsplit(".", 2)[0] + "."
    return {b + "ffn_gate_shexp.weight": gate, b + "ffn_up_shexp.weight": up}


def flat(c, name, to, w):
    return {to: w.reshape(-1)} if "exp_probs_b" in to or "ffn_gate_inp_shexp" in to else None


# ---- keys ----------------------------------------------------------------------------------------------------------

def get(c, *names):
    for n in names:
        v = getattr(c, n, None)
        if v is not None:
            return v
    return None


def theta(c):
    p = c.rope_parameters
    return float(p.get("full_attention", p)["rope_theta"] if isinstance(p, dict) else p.rope_theta)


def keys(row, c):
    """General keys that nearly every family has, then the row's own (None: without)."""
    k = {
        "context_length": c.max_position_embeddings, "embedding_length": c.hidden_size,
        "block_count": c.num_hidden_layers, "feed_forward_length": get(c, "intermediate_size"),
        "attention.head_count": c.num_attention_heads, "attention.head_count_kv": get(c, "num_key_value_heads"),
    }
    eps = get(c, "rms_norm_eps", "norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon") or 1e-5
    k["attention.layer_norm_epsilon" if row.get("ln") else "attention.layer_norm_rms_epsilon"] = float(np.float32(eps))
    if getattr(c, "rope_parameters", None):
        k["rope.freq_base"] = theta(c)
    if getattr(c, "head_dim", None):
        k["attention.key_length"] = k["attention.value_length"] = c.head_dim
    k.update(row["keys"](c) if "keys" in row else {})
    named_keys = {"general.architecture": row["arch"]}
    named_keys.update({row["arch"] + "." + n: v for n, v in k.items() if v is not None})
    return named_keys


def window(c):
    return {"attention.sliding_window": c.sliding_window}


def granite(c):
    return {"attention.scale": c.attention_multiplier, "embedding_scale": c.embedding_multiplier,
            "residual_scale": c.residual_multiplier, "logit_scale": c.logits_scaling}


def experts(c):
    n = get(c, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    k = {"expert_count": n, "expert_used_count": get(c, "num_experts_per_tok", "moe_k")}
    width = get(c, "moe_intermediate_size")
    return dict(k, expert_feed_forward_length=width) if width else k


def routed(c, gating=2):
    k = dict(experts(c), leading_dense_block_count=getattr(c, "first_k_dense_replace", 1), expert_gating_func=gating,
             expert_shared_count=c.n_shared_experts, expert_weights_norm=bool(c.norm_topk_prob),
             expert_weights_scale=float(c.routed_scaling_factor))
    if getattr(c, "n_group", None) and c.n_group > 1:
        k.update(expert_group_count=c.n_group, expert_group_used_count=c.topk_group)
    return k


def mla(c, gating=2):
    n, p = c.qk_nope_head_dim, c.qk_rope_head_dim
    return dict(routed(c, gating), **{
        "attention.head_count_kv": 1, "attention.q_lora_rank": c.q_lora_rank, "attention.kv_lora_rank": c.kv_lora_rank,
        "attention.key_length": c.kv_lora_rank + p, "attention.value_length": c.kv_lora_rank,
        "attention.key_length_mla": n + p, "attention.value_length_mla": c.v_head_dim, "rope.dimension_count": p})


def dsa(c):
    k = dict(mla(c), **{"attention.indexer.head_count": c.index_n_heads, "attention.indexer.key_length": c.index_head_dim,
                        "attention.indexer.top_k": c.index_topk})
    types = getattr(c, "indexer_types", None)
    return dict(k, **{"attention.indexer.types": [t == "full" for t in types]}) if types else k


DSA = dict(index_n_heads=14, index_head_dim=12, index_topk=24)  # of scores of 0 any may be chosen
DSA_NAMES = {"self_attn.indexer.wq_b": "indexer.attn_q_b", "self_attn.indexer.wk": "indexer.attn_k",
             "self_attn.indexer.weights_proj": "indexer.proj", "self_attn.indexer.k_norm": "indexer.k_norm"}


def yarn(c, **more):
    p = c.rope_parameters
    p = p.get("full_attention", p)
    return dict({"rope.scaling.type": "yarn", "rope.scaling.factor": float(p["factor"]),
                 "rope.scaling.original_context_length": p["original_max_position_embeddings"]}, **more)


def longrope(c):
    p = c.rope_parameters
    orig, n_ctx = p["original_max_position_embeddings"], c.max_position_embeddings
    return {"rope.scaling.original_context_length": orig, "rope.dimension_count": c.rope_n,
            "attention.key_length": None, "attention.value_length": None,
            "rope.scaling.attn_factor": float(np.float32(math.sqrt(1 + math.log(n_ctx / orig) / math.log(orig))))}


def longrope_tensors(c):
    p = c.rope_parameters
    return {"rope_factors_%s.weight" % k: np.array(p[k + "_factor"], np.float32) for k in ("short", "long")}


def gdn(c):
    d = c.linear_value_head_dim
    k = {"ssm.state_size": d, "ssm.group_count": c.linear_num_key_heads, "ssm.conv_kernel": c.linear_conv_kernel_dim,
         "ssm.time_step_rank": c.linear_num_value_heads, "ssm.inner_size": d * c.linear_num_value_heads,
         "full_attention_interval": 4, "rope.dimension_count": int(c.head_dim * c.rope_parameters["partial_rotary_factor"])}
    if get(c, "num_experts"):
        k.update(experts(c), expert_shared_feed_forward_length=c.shared_expert_intermediate_size)
    return k


def qwen4_keys(c):
    attends = ["linear" not in kind for kind in c.layer_types]
    k = dict(gdn(c), **{"hyper_connection.count": c.hc_count, "hyper_connection.low_rank": c.hc_lowrank,
                        "attention.indexer.head_count": c.indexer_n_heads, "attention.indexer.top_k": c.indexer_budget,
                        "attention.indexer.key_length": c.indexer_head_dim,
                        "attention.compress_ratios": [c.indexer_compress_ratio * a for a in attends]})
    if not c.ple_layer_ids:
        return k
    from transformers.models.qwen4_exp.modeling_qwen4_exp import Qwen4ExpTextNGramEmbedding
    e = Qwen4ExpTextNGramEmbedding(c, c.ple_embed_dim, 0, 0)
    return dict(k, **{"ple.layers": [il - 1 for il in c.ple_layer_ids], "ple.ngram_size": c.ngram_size,
                      "ple.heads_per_ngram": c.heads_per_ngram, "ple.conv_kernel": c.ple_conv_kernel_size,
                      "ple.eos_token_id": c.eos_token_id, "ple.head_offsets": e.head_offsets,
                      "ple.layer_multipliers": [int(m) for m in e.layer_multipliers],
                      "ple.head_vocab_sizes": e.head_vocab_sizes,
                      "embedding_length_per_layer_input": e.ngram_embedding.embedding_dim})


def mamba(c, inner, heads, state, groups, kernel):
    return {"ssm.conv_kernel": kernel, "ssm.inner_size": inner, "ssm.state_size": state, "ssm.time_step_rank": heads,
            "ssm.group_count": groups}


OLD_MAMBA = dict(hidden_size=72, intermediate_size=144, state_size=18, expand=2, conv_kernel=4, time_step_rank=7,
                 layer_norm_epsilon=1e-5)
MAMBA_NAMES = dict({"mixer." + k: v for k, v in MAMBA.items()}, norm="attn_norm")


def old_mamba(c):
    return {"ssm.conv_kernel": c.conv_kernel, "ssm.inner_size": c.intermediate_size, "ssm.state_size": c.state_size,
            "ssm.time_step_rank": c.time_step_rank, "attention.head_count": 0, "attention.head_count_kv": None,
            "feed_forward_length": 0, "attention.key_length": None, "attention.value_length": None,
            "rope.freq_base": None, "attention.layer_norm_rms_epsilon": c.layer_norm_epsilon}


JAMBA = dict(mamba_d_state=18, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=7, attn_layer_period=3,
             attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_hidden_layers=4)
JAMBA_NAMES = dict({"mamba." + k: v for k, v in MAMBA.items()}, pre_ff_layernorm="ffn_norm", **{
    k.replace("mlp.", "feed_forward."): v for k, v in dict(LAYER, **{
        "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight"}).items() if k.startswith("mlp.")})


def jamba(c):
    return {"ssm.conv_kernel": c.mamba_d_conv, "ssm.inner_size": c.mamba_expand * c.hidden_size,
            "ssm.state_size": c.mamba_d_state, "ssm.time_step_rank": c.mamba_dt_rank, "expert_count": c.num_experts,
            "expert_used_count": c.num_experts_per_tok, "rope.freq_base": None,
            "attention.head_count_kv": [c.num_key_value_heads if t == "attention" else 0 for t in c.layers_block_type]}


def of_kinds(c, attends):
    return [c.num_key_value_heads if t in attends else 0 for t in c.layer_types]


def granite_hybrid(c):
    k = mamba(c, c.mamba_n_heads * c.mamba_d_head, c.mamba_n_heads, c.mamba_d_state, c.mamba_n_groups, c.mamba_d_conv)
    return dict(granite(c), **experts(c), **k, **{
        "expert_shared_feed_forward_length": c.shared_intermediate_size, "rope.scaling.finetuned": False,
        "attention.head_count_kv": of_kinds(c, ("attention", "full_attention"))})


YARN = dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0)
NORM1 = (one_more,)
PERMUTED = (permuted,)
GDN_NAMES = dict(ALSO_NORM, **{"linear_attn." + k: v for k, v in SSM.items()})
GDN_NAMES.update({"linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
                  "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
                  "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.in_proj_qkvz": "attn_qkv"})
QWEN4_NAMES = dict(GDN_NAMES, **{
    "self_attn.indexer.index_qk_proj": "indexer._proj", "self_attn.indexer.q_layernorm": "indexer.q_norm",
    "self_attn.indexer.k_layernorm": "indexer.k_norm", "ple.key_proj": "ple_key", "ple.value_proj": "ple_value",
    "ple.norm_key": "ple_norm_key", "ple.norm_query": "ple_norm_query", "ple.norm_conv": "ple_norm_conv",
    "ple.conv1d": "ple_conv1d", "ple.ple_embedding.ngram_embedding": "ngrams"})
for _from, _to in (("attn", "hc_attn"), ("mlp", "hc_ffn")):
    for _s, _t in (("hc_norm", "norm"), ("input_mix_weight_down", "down"), ("input_mix_weight_up", "up"),
                   ("block_inject_weight", "inject")):
        QWEN4_NAMES["%s_hyper_connection.%s" % (_from, _s)] = "%s_%s" % (_to, _t)
        OUTER[_s] = "output_hc_" + _t
LFM2_NAMES = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "conv.conv": "shortconv.conv",
              "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj",
              "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
              "feed_forward.gate": "ffn_gate_inp", "feed_forward.expert_bias": "exp_probs_b.bias",
              "feed_forward.experts.gate_up_proj": "ffn_gate_exps.weight",
              "feed_forward.experts.down_proj": "ffn_down_exps.weight"}
SPARSE = {"block_sparse_moe.router": "ffn_gate_inp", "block_sparse_moe.experts.down_proj": "ffn_down_exps.weight",
          "block_sparse_moe.experts.gate_up_proj": "ffn_gate_exps.weight",
          "shared_mlp.output_linear": "ffn_down_shexp", "shared_mlp.input_linear": "ffn_up_shexp"}
LLAMA4_NAMES = {"feed_forward." + k[4:]: v for k, v in LAYER.items() if k.startswith("mlp.")}
LLAMA4_NAMES["feed_forward.experts.gate_up_proj"] = "ffn_gate_exps.weight"
LAYER["mlp.experts.gate_up_proj"] = "ffn_gate_exps.weight"
LAYER["mlp.experts.gate_up_proj_bias"] = "ffn_gate_exps.bias"
LAYER["self_attn.kv_b_proj"] = "attn_kv_b"
FALCON_NAMES = dict({"mamba." + k: v for k, v in SSM.items()}, **{
    "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
    "pre_ff_layernorm.weight": "ffn_norm"})
NEMOTRON_NAMES = {"mixer." + k.split(".", 1)[1]: v for k, v in LAYER.items() if k.startswith(("self_attn.", "mlp."))
                  and "gate_proj" not in k and "norm" not in k}
NEMOTRON_NAMES.update({"mixer." + k: v for k, v in SSM.items()}, norm="attn_norm")
NEMOTRON_NAMES["mixer.experts.up_proj"] = "ffn_up_exps.weight"
NEOX_NAMES = {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
              "mlp.dense_4h_to_h": "ffn_down"}
GPT2_NAMES = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"}
BLOOM_NAMES = {"self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
               "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
MPT_NAMES = {"norm_1": "attn_norm", "norm_2": "ffn_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
             "ffn.up_proj": "ffn_up", "ffn.down_proj": "ffn_down"}

STABLELM_NAMES = {"self_attn.%s_layernorm.norms.%d" % (x, i): "attn_%s_norm.%d" % (x, i) for x in "qk" for i in range(6)}
HUNYUAN_NAMES = {"mlp.gate.wg": "ffn_gate_inp", **{"mlp.shared_mlp.%s_proj" % p: "ffn_%s_shexp" % p
                                                   for p in ("gate", "up", "down")}}


def nemotron(c):
    k = mamba(c, c.mamba_num_heads * c.mamba_head_dim, c.mamba_num_heads, c.ssm_state_size, c.n_groups, c.conv_kernel)
    kinds = c.layers_block_type
    k["attention.head_count_kv"] = [c.num_key_value_heads if t == "full_attention" else 0 for t in kinds]
    k["feed_forward_length"] = [{"mlp": c.intermediate_size, "moe": c.moe_intermediate_size}.get(t, 0) for t in kinds]
    if "moe" in kinds:
        k.update(experts(c), expert_shared_count=c.n_shared_experts, expert_weights_norm=bool(c.norm_topk_prob),
                 expert_shared_feed_forward_length=c.moe_shared_expert_intermediate_size,
                 expert_weights_scale=float(c.routed_scaling_factor))
    return k


def afmoe(c):
    return dict(experts(c), **window(c), expert_shared_count=c.num_shared_experts, expert_weights_norm=True,
                expert_weights_scale=c.route_scale, leading_dense_block_count=c.num_dense_layers)


def granite_swa(c):
    return dict(granite(c), **window(c), **{
        "attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types],
        "attention.rope_pattern": [theta != 0 for theta in c.layer_rope_theta]})


def laguna(c):
    full, swa = (c.rope_parameters[k] for k in ("full_attention", "sliding_attention"))
    return dict(experts(c), **window(c), **yarn(c), expert_shared_feed_forward_length=c.shared_expert_intermediate_size,
                expert_weights_norm=True, expert_weights_scale=c.moe_routed_scaling_factor, expert_gating_func=2,
                leading_dense_block_count=c.mlp_layer_types.index("sparse"), **{
                    "attention.head_count": c.num_attention_heads_per_layer, "rope.freq_base": full["rope_theta"],
                    "rope.dimension_count": int(c.head_dim * full["partial_rotary_factor"]),
                    "rope.freq_base_swa": swa["rope_theta"], "rope.dimension_count_swa": c.head_dim,
                    "attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types]})


def step(c):
    full, swa = (c.rope_parameters[k] for k in ("full_attention", "sliding_attention"))
    windowed = [t == "sliding_attention" for t in c.layer_types]
    return dict(experts(c), **window(c), expert_shared_feed_forward_length=c.share_expert_dim, expert_weights_norm=True,
                expert_weights_scale=c.moe_router_scaling_factor, expert_gating_func=2,
                leading_dense_block_count=c.mlp_layer_types.index("sparse"),
                swiglu_clamp_exp=[float(x or 0) for x in c.swiglu_limits],
                swiglu_clamp_shexp=[float(x or 0) for x in c.swiglu_limits_shared], **{
                    "attention.head_count": [c.num_sliding_attention_heads if w else c.num_attention_heads for w in windowed],
                    "rope.freq_base": full["rope_theta"], "rope.freq_base_swa": swa["rope_theta"],
                    "rope.dimension_count": int(2 * c.head_dim * full["partial_rotary_factor"]),
                    "rope.dimension_count_swa": int(c.head_dim * swa["partial_rotary_factor"]),
                    "attention.sliding_window_pattern": windowed})


def mimo(c):
    full, swa = (c.rope_parameters[k] for k in ("full_attention", "sliding_attention"))
    windowed = [t == "sliding_attention" for t in c.layer_types]
    return dict(experts(c), **window(c), leading_dense_block_count=c.mlp_layer_types.index("sparse"),
                expert_weights_scale=float(c.routed_scaling_factor), **{
        "attention.head_count_kv": [c.num_key_value_heads * (1 + w) for w in windowed], "attention.value_length": c.v_head_dim,
        "attention.value_scale": float(np.float32(c.attention_value_scale)), "attention.sliding_window_pattern": windowed,
        "rope.freq_base": full["rope_theta"], "rope.freq_base_swa": swa["rope_theta"],
        "rope.dimension_count": int(c.head_dim * full["partial_rotary_factor"])})


def muse(c):
    return dict(window(c), final_logit_softcapping=c.final_logit_softcapping, logit_scale=float(np.float32(c.output_multiplier)),
                **{"attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types]})


def muse_tensors(c):
    """Heads are normed without weights; queries are times a number behind that."""
    return {"blk.%d.attn_%s_norm.weight" % (il, x): np.full(c.head_dim, f, np.float32)
            for il in range(c.num_hidden_layers) for x, f in (("q", c.qk_scale_factor), ("k", 1.0))}


def olmo(c):
    return {"attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": None,
            "attention.clamp_kqv": c.clip_qkv}


def hrm(c):
    return {"block_count": c.num_layers_per_stack * c.H_cycles * (c.L_cycles + 1), "attention.head_count_kv": None,
            "hrm.layers_per_stack": c.num_layers_per_stack, "hrm.h_cycles": c.H_cycles, "hrm.l_cycles": c.L_cycles,
            "hrm.prefix_lm": c.prefix_lm, "embedding_scale": float(np.float32(c.embedding_scale))}


def dbrx(c):
    a, f = c.attn_config, c.ffn_config
    return {"attention.head_count_kv": a.kv_n_heads, "feed_forward_length": f.ffn_hidden_size, "expert_count": f.moe_num_experts,
            "expert_used_count": f.moe_top_k, "attention.clamp_kqv": float(np.float32(a.clip_qkv)),
            "attention.layer_norm_epsilon": float(np.float32(1e-5)), "attention.layer_norm_rms_epsilon": None}


def dbrx_experts(c, name, to, w):
    """Matrices of experts below each other; those that give lie [n_in, n_out]."""
    if ".experts.mlp." not in name:
        return None
    w = w.reshape(c.ffn_config.moe_num_experts, -1, w.shape[-1])
    return {to: w.swapaxes(1, 2) if name.endswith("w2") else w}


DBRX_NAMES = {"norm_attn_norm.norm_1": "attn_norm", "norm_attn_norm.norm_2": "attn_output_norm",
              "norm_attn_norm.attn.Wqkv": "attn_qkv", "norm_attn_norm.attn.out_proj": "attn_output",
              "ffn.router.layer": "ffn_gate_inp", "ffn.experts.mlp.w1": "ffn_gate_exps.weight",
              "ffn.experts.mlp.v1": "ffn_up_exps.weight", "ffn.experts.mlp.w2": "ffn_down_exps.weight"}


def xielu_keys(tensors):
    """Numbers of layers, which the checkpoint has as tensors of one value, and files as keys."""
    keys = {}
    for name in ("alpha_p", "alpha_n", "beta", "eps"):
        of = sorted((int(n.split(".")[1]), n) for n in tensors if n.endswith(".xielu." + name))
        keys["xielu." + name] = [float(tensors.pop(n).reshape(-1)[0]) for _, n in of]
    return keys


BITNET_NAMES = {"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"}
KINDS5 = ["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"]
GRANITE_SWA = dict(embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0, num_hidden_layers=5,
                   sliding_window=WINDOW, layer_types=KINDS5, layer_rope_theta=[1e4, 1e4, 0, 1e4, 0], **rope(1e4))
GRANITE_SHARED = {"shared_mlp.input_linear": "ffn_up_shexp", "shared_mlp.output_linear": "ffn_down_shexp",
                  "block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps.weight"}
LAGUNA = dict(HEAD, **MOE, num_hidden_layers=5, shared_expert_intermediate_size=44, sliding_window=WINDOW,
              layer_types=KINDS5, num_attention_heads_per_layer=[6, 8, 4, 8, 6], moe_routed_scaling_factor=2.5,
              rope_parameters={"full_attention": dict(YARN, rope_theta=5e5, partial_rotary_factor=0.5),
                               "sliding_attention": dict(rope_type="default", rope_theta=1e4,
                                                         partial_rotary_factor=1.0)})
STEP = dict(HEAD, num_hidden_layers=5, sliding_window=WINDOW, layer_types=KINDS5, num_sliding_attention_heads=8,
            mlp_layer_types=["dense"] + ["sparse"] * 4, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=28,
            share_expert_dim=44, moe_router_scaling_factor=2.5, pad_token_id=1, swiglu_limits=[0.0, 0.4, 0.0, 0.7, 0.2],
            swiglu_limits_shared=[0.5, 0.0, 0.3, 0.0, 0.6],
            rope_parameters={"full_attention": dict(rope_type="default", rope_theta=5e5, partial_rotary_factor=0.5),
                             "sliding_attention": dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)})
MIMO = dict(HEAD, num_hidden_layers=5, sliding_window=WINDOW, layer_types=KINDS5, v_head_dim=14, num_key_value_heads=3,
            mlp_layer_types=["dense"] + ["sparse"] * 4, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=28,
            attention_value_scale=0.7, routed_scaling_factor=1.5, rope_parameters={
                "full_attention": dict(rope_type="default", rope_theta=5e5, partial_rotary_factor=0.5),
                "sliding_attention": dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)})
EYES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, patch_size=14,
            pos_emb_height=4, pos_emb_width=4)
WIDE = 24  # heads of gemma4's layers without a window
LAYERS7 = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention",
           "sliding_attention", "full_attention"]  # the last three read the keys of earlier ones
SPARSITY = [0.95, 0.0, 0.7, 0.0, 0.9, 0.0, 0.6]


def gemma_windows(c):
    return dict(window(c), **{"attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types],
                              "attention.shared_kv_layers": c.num_kv_shared_layers, "rope.freq_base_swa": 1e4,
                              "embedding_length_per_layer_input": c.hidden_size_per_layer_input,
                              "final_logit_softcapping": c.final_logit_softcapping})


def gemma4(c):
    k, n_ff, own = gemma_windows(c), c.intermediate_size, c.num_hidden_layers - c.num_kv_shared_layers
    for name in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        k.update({name: WIDE, name + "_swa": 20})
    if c.use_double_wide_mlp:
        k["feed_forward_length"] = [n_ff * (1 + (il >= own)) for il in range(c.num_hidden_layers)]
    if c.enable_moe_block:
        k.update(expert_count=c.num_experts, expert_used_count=c.top_k_experts,
                 expert_feed_forward_length=c.moe_intermediate_size)
        k["attention.head_count_kv"] = [2 if t == "sliding_attention" else 1 for t in c.layer_types]
    return k


def gemma4_tensors(c):
    """A quarter of the pairs turns."""
    return {"rope_freqs.weight": np.where(np.arange(WIDE // 2) < WIDE // 8, 1, 1e30).astype(np.float32)}


def gemma3n(c):
    """The quantile of the normal distribution, as the converter has it of torch."""
    import torch
    scales = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(SPARSITY, dtype=torch.float32))
    return dict(gemma_windows(c), **{"altup.num_inputs": c.altup_num_inputs, "altup.active_idx": c.altup_active_idx,
                                     "activation_sparsity_scale": [float(s) for s in scales]})


# name: class of the config, arch; cfg: changes of COMMON; names, change, keys, tensors: as above; stack: tensors that
# are one of several
FAMILIES = {
    "gemma": dict(cls="Gemma", arch="gemma", cfg=dict(HEAD, tie_word_embeddings=True), change=NORM1),
    "gemma2": dict(cls="Gemma2", arch="gemma2", names=SANDWICH, change=NORM1,
                   cfg=dict(HEAD, tie_word_embeddings=True, query_pre_attn_scalar=20, sliding_window=WINDOW,
                            attn_logit_softcapping=5.0, final_logit_softcapping=7.0),
                   keys=lambda c: dict(window(c), attn_logit_softcapping=5.0, final_logit_softcapping=7.0)),
    "gemma3": dict(cls="Gemma3Text", arch="gemma3", names=SANDWICH, change=NORM1,
                   cfg=dict(HEAD, tie_word_embeddings=True, query_pre_attn_scalar=20, sliding_window=WINDOW,
                            num_hidden_layers=7, rope_parameters={
                                "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                "sliding_attention": dict(rope_type="default", rope_theta=1e4)}),
                   keys=lambda c: dict(window(c), **{"rope.scaling.type": "linear", "rope.scaling.factor": 8.0,
                                                     "rope.freq_base_swa": 1e4})),
    "gemma3n": dict(cls="Gemma3nText", arch="gemma3n", names=GEMMA3N_NAMES, keys=gemma3n,
                    stack=("altup_proj", "altup_unembd_proj"),
                    cfg=dict(HEAD, tie_word_embeddings=True, sliding_window=WINDOW, num_hidden_layers=7,
                             layer_types=LAYERS7, num_kv_shared_layers=3, intermediate_size=[100] * 7,
                             activation_sparsity_pattern=SPARSITY, vocab_size_per_layer_input=101,
                             hidden_size_per_layer_input=12, laurel_rank=10, altup_active_idx=1,
                             final_logit_softcapping=7.0)),
    "gemma4": dict(cls="Gemma4Text", arch="gemma4", names=GEMMA4_NAMES, keys=gemma4, tensors=gemma4_tensors,
                   cfg=dict(HEAD, tie_word_embeddings=True, sliding_window=WINDOW, num_hidden_layers=7,
                            layer_types=LAYERS7, global_head_dim=WIDE, num_kv_shared_layers=3, use_double_wide_mlp=True,
                            vocab_size_per_layer_input=101, hidden_size_per_layer_input=12,
                            final_logit_softcapping=7.0)),
    "gemma4-moe": dict(cls="Gemma4Text", arch="gemma4", names=GEMMA4_NAMES, keys=gemma4, tensors=gemma4_tensors,
                       cfg=dict(HEAD, tie_word_embeddings=True, sliding_window=WINDOW, num_hidden_layers=5,
                                layer_types=LAYERS7[:5], global_head_dim=WIDE, num_global_key_value_heads=1,
                                attention_k_eq_v=True, enable_moe_block=True, num_experts=6, top_k_experts=2,
                                moe_intermediate_size=28, hidden_size_per_layer_input=0, final_logit_softcapping=7.0)),
    "phi3-long": dict(cls="Phi3", arch="phi3", n_ctx=512, keys=longrope, tensors=longrope_tensors, rope_n=12,
                      cfg=dict(rope(rope_type="longrope", original_max_position_embeddings=128,
                                    short_factor=[1.0 + 0.05 * i for i in range(6)],
                                    long_factor=[1.5 + 0.9 * i for i in range(6)]),
                               original_max_position_embeddings=128)),
    "phi3-short": dict(cls="Phi3", arch="phi3", n_ctx=300, keys=longrope, tensors=longrope_tensors, rope_n=8,
                       cfg=dict(rope(rope_type="longrope", original_max_position_embeddings=400,
                                     partial_rotary_factor=0.7,
                                     short_factor=[1.0 + 0.05 * i for i in range(4)],
                                     long_factor=[1.5 + 0.9 * i for i in range(4)]),
                                original_max_position_embeddings=400, tie_word_embeddings=True)),
    "smollm3": dict(cls="SmolLM3", arch="smollm3", change=PERMUTED,
                    cfg=dict(num_hidden_layers=5, tie_word_embeddings=True)),
    "olmo2": dict(cls="Olmo2", arch="olmo2", names=SANDWICH),
    "olmo3": dict(cls="Olmo3", arch="olmo2", names=SANDWICH,
                  cfg=dict(sliding_window=WINDOW, num_hidden_layers=5, rope_parameters={
                      "full_attention": dict(YARN, rope_theta=5e5),
                      "sliding_attention": dict(rope_type="default", rope_theta=5e5)}),
                  keys=lambda c: dict(window(c), **yarn(c))),
    "exaone4": dict(cls="Exaone4", arch="exaone4", names=SANDWICH,
                    cfg=dict(sliding_window=None, layer_types=["full_attention"] * 3)),
    "granite": dict(cls="Granite", arch="granite", change=PERMUTED, keys=granite,
                    cfg=dict(attention_multiplier=0.25, embedding_multiplier=3.0, residual_multiplier=0.5,
                             logits_scaling=2.0)),
    "glm4": dict(cls="Glm4", arch="glm4", cfg=dict(HEAD, attention_bias=True, **rope(partial_rotary_factor=0.5)),
                 names={"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"},
                 keys=lambda c: {"rope.dimension_count": 10}),
    "seed-oss": dict(cls="SeedOss", arch="seed_oss", names=ALSO_NORM, cfg=HEAD),
    "hunyuan": dict(cls="HunYuanDenseV1", arch="hunyuan-dense", cfg=HEAD),
    "ernie4.5": dict(cls="Ernie4_5", arch="ernie4_5", cfg=HEAD),
    "arcee": dict(cls="Arcee", arch="arcee", change=PERMUTED),
    "command-r": dict(cls="Cohere", arch="command-r", ln=True, cfg=dict(logit_scale=0.4, tie_word_embeddings=True),
                      keys=lambda c: {"logit_scale": 0.4}),
    "cohere2": dict(cls="Cohere2", arch="cohere2", ln=True,
                    cfg=dict(logit_scale=0.4, sliding_window=WINDOW, num_hidden_layers=5, tie_word_embeddings=True),
                    keys=lambda c: dict(window(c), logit_scale=0.4)),
    "starcoder2": dict(cls="Starcoder2", arch="starcoder2", ln=True, cfg=dict(sliding_window=None, use_bias=True)),
    "gpt-neox": dict(cls="GPTNeoX", arch="gptneox", ln=True, names=NEOX_NAMES, change=(gptneox_qkv,),
                     cfg=dict(hidden_act="gelu_pytorch_tanh", num_key_value_heads=6, hidden_size=96,
                              **rope(partial_rotary_factor=0.25)),
                     keys=lambda c: {"rope.dimension_count": 4, "use_parallel_residual": True}),
    "gpt2": dict(cls="GPT2", arch="gpt2", ln=True, names=GPT2_NAMES, change=(gpt2_turned,),
                 keys=lambda c: {"attention.head_count_kv": None, "feed_forward_length": 100},
                 cfg=dict(n_embd=72, n_layer=3, n_head=6, n_positions=512, n_inner=100, tie_word_embeddings=True)),
    "bloom": dict(cls="Bloom", arch="bloom", ln=True, names=BLOOM_NAMES, change=(gptneox_qkv,),
                  keys=lambda c: {"attention.head_count_kv": None, "feed_forward_length": 4 * c.hidden_size},
                  cfg=dict(hidden_size=72, n_layer=3, n_head=6, tie_word_embeddings=True)),
    "mpt": dict(cls="Mpt", arch="mpt", ln=True, names=MPT_NAMES,
                keys=lambda c: {"attention.head_count_kv": None, "feed_forward_length": 4 * c.hidden_size,
                                "attention.max_alibi_bias": 8.0},
                cfg=dict(d_model=72, n_layers=3, n_heads=6, max_seq_len=512, tie_word_embeddings=True)),
    "phi-2": dict(cls="Phi", arch="phi2", ln=True, cfg=rope(partial_rotary_factor=0.5),
                  names={"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"},
                  keys=lambda c: {"rope.dimension_count": 6}),
    "stablelm": dict(cls="StableLm", arch="stablelm", ln=True,
                     cfg=dict(use_qkv_bias=True, **rope(partial_rotary_factor=0.5)),
                     keys=lambda c: {"rope.dimension_count": 6, "use_parallel_residual": True}),
    "stablelm-2-12b": dict(cls="StableLm", arch="stablelm", ln=True, names=STABLELM_NAMES,
                           cfg=dict(use_parallel_residual=True, qk_layernorm=True, **rope(partial_rotary_factor=0.5)),
                           stack=["blk.%d.attn_%s_norm" % (il, x) for il in range(3) for x in "qk"],
                           keys=lambda c: {"rope.dimension_count": 6, "use_parallel_residual": True}),
    "nemotron-mini": dict(cls="Nemotron", arch="nemotron", ln=True, change=(one_more,),
                          cfg=dict(norm_eps=1e-5, **rope(partial_rotary_factor=0.5)),
                          keys=lambda c: {"rope.dimension_count": 6, "attention.key_length": None,
                                          "attention.value_length": None}),
    "glm-4-9b": dict(cls="Glm", arch="chatglm", cfg=dict(HEAD, attention_bias=True, **rope(partial_rotary_factor=0.5)),
                     keys=lambda c: {"rope.dimension_count": 10}),
    "starcoder": dict(cls="GPTBigCode", arch="starcoder", ln=True, names=GPT2_NAMES,
                      keys=lambda c: {"attention.head_count_kv": 1, "feed_forward_length": 100},
                      cfg=dict(n_embd=72, n_layer=3, n_head=6, n_positions=512, n_inner=100, tie_word_embeddings=True)),
    "hunyuan-moe": dict(cls="HunYuanMoEV1", arch="hunyuan-moe", names=HUNYUAN_NAMES, change=(split_experts,),
                        cfg=dict(HEAD, num_experts=6, moe_topk=2),
                        keys=lambda c: {"expert_count": 6, "expert_used_count": 2, "expert_shared_count": 1,
                                        "expert_feed_forward_length": 100, "expert_shared_feed_forward_length": 100}),
    "ministral3": dict(cls="Ministral3", arch="mistral3", change=PERMUTED,
                       cfg=dict(HEAD, sliding_window=None,
                                **rope(1e6, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1, **YARN)),
                       keys=lambda c: yarn(c, **{"rope.scaling.yarn_log_multiplier": 1.0,
                                                 "attention.temperature_scale": 0.1})),
    "afmoe": dict(cls="Afmoe", arch="afmoe", change=(split_experts,), keys=afmoe,
                  names={"post_attention_layernorm": "post_attention_norm", "pre_mlp_layernorm": "ffn_norm",
                         "post_mlp_layernorm": "post_ffw_norm", "self_attn.gate_proj": "attn_gate",
                         "mlp.router.gate": "ffn_gate_inp", "mlp.expert_bias": "exp_probs_b.bias"},
                  cfg=dict(HEAD, **MOE, num_hidden_layers=5, num_dense_layers=1, num_shared_experts=2, route_scale=2.5,
                           mup_enabled=True, sliding_window=WINDOW)),
    "muse-glimmer": dict(cls="MuseGlimmerText", arch="muse-glimmer", names=dict(SANDWICH, **{"self_attn.gate_proj": "attn_gate"}),
                         change=(permuted, muse_norms), keys=muse, tensors=muse_tensors, sees="MuseGlimmer", eyes=EYES,
                         joint=dict(out_hidden_size=16, projector_hidden_size=12),
                         cfg=dict(HEAD, num_hidden_layers=6, sliding_window=WINDOW, qk_scale_factor=2.5,
                                  output_multiplier=0.75, final_logit_softcapping=3.0)),
    "olmo": dict(cls="Olmo", arch="olmo", ln=True, change=PERMUTED, keys=olmo, cfg=dict(clip_qkv=0.8)),
    "olmo-free": dict(cls="Olmo", arch="olmo", ln=True, change=PERMUTED, keys=olmo, cfg=dict(tie_word_embeddings=True)),
    "hrm-text": dict(cls="HrmText", arch="hrm_text", keys=hrm, stack_of=2,
                     cfg=dict(HEAD, num_hidden_layers=2, H_cycles=2, L_cycles=3, embedding_scale=3.5)),
    "dbrx": dict(cls="Dbrx", arch="dbrx", ln=True, names=DBRX_NAMES, change=(dbrx_experts,), keys=dbrx,
                 cfg=dict(d_model=72, n_heads=6, n_layers=3, max_seq_len=512,
                          attn_config=dict(clip_qkv=0.75, kv_n_heads=2, rope_theta=5e5), **rope(5e5),
                          ffn_config=dict(hidden_size=72, ffn_hidden_size=28, moe_num_experts=6, moe_top_k=2))),
    "apertus": dict(cls="Apertus", arch="apertus", of_tensors=xielu_keys,
                    names={"attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm",
                           **{"mlp.act_fn." + k: "xielu." + k for k in ("alpha_p", "alpha_n", "beta", "eps")}},
                    cfg=dict(hidden_act="xielu", **rope(1e4))),
    # of longer sessions transformers 5.24 forgets how long they are, and has the short factors
    "phimoe": dict(cls="Phimoe", arch="phimoe", n_ctx=300, change=(split_experts,), names=SPARSE, rope_n=12,
                   tensors=longrope_tensors,
                   keys=lambda c: dict(longrope(c), **experts(c), **{"rope.scaling.attn_factor": 1.25}),
                   cfg=dict(num_local_experts=6, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True,
                            sliding_window=None, original_max_position_embeddings=400,
                            **rope(rope_type="longrope", original_max_position_embeddings=400, short_mscale=1.25,
                                   long_mscale=1.25, short_factor=[1.0 + 0.05 * i for i in range(6)],
                                   long_factor=[1.5 + 0.9 * i for i in range(6)]))),
    "cohere2moe": dict(cls="Cohere2Moe", arch="cohere2moe", ln=True, change=(split_experts,),
                       keys=lambda c: dict(experts(c), **window(c), logit_scale=0.4, feed_forward_length=90,
                                           expert_feed_forward_length=c.intermediate_size, expert_weights_norm=True,
                                           expert_shared_count=2, leading_dense_block_count=2,
                                           **{"attention.sliding_window_pattern": [
                                               t == "sliding_attention" for t in c.layer_types]}),
                       cfg=dict(HEAD, rms_norm_eps=None, layer_norm_eps=1e-5, logit_scale=0.4, num_hidden_layers=6,
                                num_experts=6, num_experts_per_tok=2, num_shared_experts=2, norm_topk_prob=True,
                                first_k_dense_replace=2, prefix_dense_intermediate_size=90, sliding_window=WINDOW,
                                expert_selection_fn="sigmoid", tie_word_embeddings=True)),
    "mixtral": dict(cls="Mixtral", arch="llama", change=(permuted, split_experts), keys=experts,
                    cfg=dict(num_local_experts=6, sliding_window=None)),
    "qwen3moe": dict(cls="Qwen3Moe", arch="qwen3moe", change=(split_experts,), keys=experts,
                     cfg=dict(MOE, norm_topk_prob=True, **HEAD)),
    "qwen2moe": dict(cls="Qwen2Moe", arch="qwen2moe", change=(split_experts, flat),
                     cfg=dict(MOE, shared_expert_intermediate_size=44, norm_topk_prob=False),
                     keys=lambda c: dict(experts(c), expert_shared_feed_forward_length=44)),
    "gpt-oss": dict(cls="GptOss", arch="gpt-oss", change=(gptoss_experts,), names=ALSO_NORM,
                    cfg=dict(HEAD, num_local_experts=6, num_experts_per_tok=2, sliding_window=WINDOW,
                             num_hidden_layers=4, **rope(1.5e5, truncate=True, **YARN)),
                    keys=lambda c: dict(experts(c), **window(c), **yarn(c),
                                        expert_feed_forward_length=c.intermediate_size)),
    "granitemoe": dict(cls="GraniteMoe", arch="granitemoe", names=SPARSE, change=(permuted, split_experts),
                       cfg=dict(num_local_experts=6, num_experts_per_tok=2, attention_multiplier=0.25,
                                embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0),
                       keys=lambda c: dict(granite(c), **experts(c))),
    "granite-swa": dict(cls="GraniteSWA", arch="granite_swa", change=PERMUTED, keys=granite_swa,
                        cfg=dict(GRANITE_SWA, attention_multiplier=0.25)),
    "granitemoe-swa": dict(cls="GraniteMoeSWA", arch="granite_swa", names=dict(SPARSE, **GRANITE_SHARED),
                           change=PERMUTED,
                           cfg=dict(GRANITE_SWA, num_local_experts=6, num_experts_per_tok=2, attention_multiplier=0.25,
                                    shared_intermediate_size=44),
                           keys=lambda c: dict(granite_swa(c), **experts(c), expert_shared_feed_forward_length=c.shared_intermediate_size)),
    "laguna": dict(cls="Laguna", arch="laguna", change=(split_experts,), keys=laguna, cfg=LAGUNA,
                   names={"self_attn.g_proj": "attn_gate"}),
    "laguna-element": dict(cls="Laguna", arch="laguna", change=(split_experts,), keys=laguna,
                           names={"self_attn.g_proj": "attn_gate"}, cfg=dict(LAGUNA, gating="per-element")),
    "step-3.7": dict(cls="Step3p7Text", arch="step35", change=(one_more, split_experts, flat), keys=step, cfg=STEP,
                     names={"self_attn.g_proj": "attn_gate"}, text="Step3p7TextModel", around="Step3p7"),
    "olmoe": dict(cls="Olmoe", arch="olmoe", change=(split_experts,), keys=experts,
                  cfg=dict(num_experts=6, num_experts_per_tok=2, num_key_value_heads=6)),
    "minimax-m2": dict(cls="MiniMaxM2", arch="minimax-m2", change=(split_experts, flat),
                       cfg=dict(HEAD, num_local_experts=6, num_experts_per_tok=2, rotary_dim=10,
                                **rope(partial_rotary_factor=0.5)),
                       keys=lambda c: dict(experts(c), expert_gating_func=2,
                                           expert_feed_forward_length=c.intermediate_size,
                                           **{"rope.dimension_count": 10})),
    "glm4moe": dict(cls="Glm4Moe", arch="glm4moe", change=(split_experts, flat), names=ALSO_NORM,
                    cfg=dict(ROUTED, attention_bias=True, use_qk_norm=True, n_shared_experts=1, n_group=1, topk_group=1,
                             norm_topk_prob=True, routed_scaling_factor=1.8, **HEAD, **rope(partial_rotary_factor=0.5)),
                    keys=lambda c: dict(routed(c), **{"rope.dimension_count": 10})),
    "dots1": dict(cls="Dots1", arch="dots1", change=(split_experts, flat), keys=routed,
                  cfg=dict(ROUTED, n_shared_experts=2, n_group=1, topk_group=1, norm_topk_prob=True,
                           routed_scaling_factor=2.5, num_key_value_heads=6, sliding_window=None, **HEAD)),
    "ernie4.5-moe": dict(cls="Ernie4_5_Moe", arch="ernie4_5-moe", change=(split_experts, flat),
                         cfg=dict(moe_num_experts=6, moe_k=2, moe_intermediate_size=28, moe_num_shared_experts=2,
                                  moe_layer_start_index=1, moe_layer_interval=1),
                         keys=lambda c: dict(experts(c), leading_dense_block_count=1, interleave_moe_layer_step=1,
                                             expert_shared_count=2, expert_shared_feed_forward_length=56)),
    "llama4": dict(cls="Llama4Text", arch="llama4", names=LLAMA4_NAMES, change=(turned_experts,),
                   cfg=dict(HEAD, num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=64,
                            num_hidden_layers=5, interleave_moe_layer_step=2, use_qk_norm=True),
                   keys=lambda c: dict(experts(c), feed_forward_length=64, interleave_moe_layer_step=2,
                                       expert_feed_forward_length=c.intermediate_size)),
    "deepseek-v2": dict(cls="DeepseekV2", arch="deepseek2", change=(split_experts, latent),
                        cfg=dict(ROUTED, q_lora_rank=None, n_shared_experts=2, norm_topk_prob=False,
                                 routed_scaling_factor=1.0, topk_method="greedy", n_group=1, topk_group=1, **LATENT),
                        keys=lambda c: mla(c, 1)),
    "deepseek-v3": dict(cls="DeepseekV3", arch="deepseek2", change=(split_experts, latent, flat), keys=mla,
                        cfg=dict(ROUTED, q_lora_rank=22, n_shared_experts=1, norm_topk_prob=True, n_group=4,
                                 topk_group=2, routed_scaling_factor=2.5, **LATENT)),
    "deepseek-v3-yarn": dict(cls="DeepseekV3", arch="deepseek2", change=(split_experts, latent, flat),
                             cfg=dict(ROUTED, q_lora_rank=22, n_shared_experts=1, norm_topk_prob=True, n_group=1,
                                      topk_group=1, routed_scaling_factor=2.5, **LATENT,
                                      **rope(1e4, mscale=1.0, mscale_all_dim=1.0, **YARN)),
                             keys=lambda c: dict(mla(c), **yarn(c, **{"rope.scaling.yarn_log_multiplier": 0.1}))),
    "glm4.7-flash": dict(cls="Glm4MoeLite", arch="deepseek2", change=(split_experts, latent, flat), keys=mla,
                         cfg=dict({k: v for k, v in ROUTED.items() if k != "first_k_dense_replace"}, q_lora_rank=22,
                                  n_shared_experts=1, norm_topk_prob=True, n_group=1, topk_group=1,
                                  routed_scaling_factor=1.8, **LATENT)),
    "deepseek-v3.2": dict(cls="DeepseekV32", arch="deepseek32", change=(split_experts, latent, flat), keys=dsa, names=DSA_NAMES,
                          cfg=dict(ROUTED, q_lora_rank=22, n_shared_experts=1, norm_topk_prob=True, n_group=4,
                                   topk_group=2, routed_scaling_factor=2.5, **LATENT, **DSA)),
    "deepseek-v3.2-yarn": dict(cls="DeepseekV32", arch="deepseek32", change=(split_experts, latent, flat), names=DSA_NAMES,
                               cfg=dict(ROUTED, q_lora_rank=22, n_shared_experts=1, norm_topk_prob=True, n_group=1,
                                        topk_group=1, routed_scaling_factor=2.5, **LATENT, **DSA,
                                        **rope(1e4, mscale=1.0, mscale_all_dim=1.0, **YARN)),
                               keys=lambda c: dict(dsa(c), **yarn(c, **{"rope.scaling.yarn_log_multiplier": 0.1}))),
    "glm-5": dict(cls="GlmMoeDsa", arch="glm-dsa", change=(split_experts, latent, flat), keys=dsa, names=DSA_NAMES,
                  cfg=dict(ROUTED, q_lora_rank=22, n_shared_experts=1, norm_topk_prob=True, n_group=1, topk_group=1,
                           routed_scaling_factor=2.5, num_hidden_layers=5,
                           indexer_types=["full", "shared", "full", "shared", "shared"], **LATENT, **DSA)),
    "qwen3next": dict(cls="Qwen3Next", arch="qwen3next", names=GDN_NAMES, keys=gdn,
                      change=(one_more, split_experts, flat, qwen3next_qkvz),
                      cfg=dict(GDN, **MOE, **rope(1e6, partial_rotary_factor=0.4))),
    "qwen3.5": dict(cls="Qwen3_5Text", arch="qwen35", names=GDN_NAMES, change=(one_more, qwen35_heads), keys=gdn,
                    cfg=dict(GDN, **rope(1e6, partial_rotary_factor=0.4, mrope_section=[2, 1, 1]))),
    "qwen3.5-moe": dict(cls="Qwen3_5MoeText", arch="qwen35moe", names=GDN_NAMES, keys=gdn,
                        change=(one_more, split_experts, flat, qwen35_heads),
                        cfg=dict(GDN, **MOE, **rope(1e6, partial_rotary_factor=0.4, mrope_section=[2, 1, 1]))),
    "qwen4-exp": dict(cls="Qwen4ExpText", arch="qwen4exp", names=QWEN4_NAMES, keys=qwen4_keys,
                      change=(one_more, split_experts, flat, qwen35_heads, qwen4), cfg=QWEN4),
    "qwen4-exp-no-ngrams": dict(cls="Qwen4ExpText", arch="qwen4exp", names=QWEN4_NAMES, keys=qwen4_keys,
                                change=(one_more, split_experts, flat, qwen35_heads, qwen4),
                                cfg=dict(QWEN4, ple_layer_ids=None, hc_count=3, indexer_compress_ratio=5,
                                         indexer_budget=60, indexer_n_heads=14)),  # of scores of 0 any may be chosen
    "mimo-v2-flash": dict(cls="MiMoV2Flash", arch="mimo2", change=(split_experts, flat), keys=mimo, cfg=MIMO),
    "bitnet": dict(cls="BitNet", arch="bitnet-b1.58", names=BITNET_NAMES, cfg=rope(5e5)),
    "bitnet-silu": dict(cls="BitNet", arch="bitnet", names=BITNET_NAMES, cfg=dict(rope(1e4), hidden_act="silu", attention_bias=True)),
    "mamba2": dict(cls="Mamba2", arch="mamba2", names=dict({"mixer." + k: v for k, v in SSM.items()}, norm="attn_norm"),
                   cfg=dict(head_dim=18, num_heads=8, state_size=10, n_groups=2, expand=2, conv_kernel=4, chunk_size=64,
                            layer_norm_epsilon=1e-5, tie_word_embeddings=False),
                   keys=lambda c: dict(mamba(c, 144, 8, 10, 2, 4), **{
                       "attention.head_count": 0, "attention.head_count_kv": None, "feed_forward_length": 0,
                       "attention.key_length": None, "attention.value_length": None, "rope.freq_base": None})),
    "mamba": dict(cls="Mamba", arch="mamba", names=MAMBA_NAMES, cfg=OLD_MAMBA, keys=old_mamba),
    # transformers norms by mixer_rms_eps, files have one epsilon
    "falcon-mamba": dict(cls="FalconMamba", arch="mamba", names=MAMBA_NAMES,
                         cfg=dict(OLD_MAMBA, layer_norm_epsilon=1e-6, mixer_rms_eps=1e-6),
                         keys=lambda c: dict(old_mamba(c), **{"ssm.dt_b_c_rms": True})),
    "jamba": dict(cls="Jamba", arch="jamba", names=JAMBA_NAMES, change=(split_experts,), keys=jamba,
                  cfg=dict(JAMBA, num_experts=6, num_experts_per_tok=2)),
    "jamba-dense": dict(cls="Jamba", arch="jamba", names=JAMBA_NAMES, keys=jamba,
                        cfg=dict(JAMBA, num_experts=1, num_experts_per_tok=1)),
    "falcon-h1": dict(cls="FalconH1", arch="falcon-h1", names=FALCON_NAMES, change=(falcon_scaled,),
                      near=3e-7,  # a converter may multiply the multipliers first
                      cfg=dict(HEAD, mamba_d_ssm=72, mamba_n_heads=4, mamba_d_head=18, mamba_d_state=10,
                               mamba_n_groups=2, mamba_d_conv=4, mamba_chunk_size=64, mamba_rms_norm=False,
                               mamba_norm_before_gate=False, attention_in_multiplier=0.8, attention_out_multiplier=1.2,
                               key_multiplier=0.7, embedding_multiplier=2.0, lm_head_multiplier=0.5,
                               mlp_multipliers=[0.9, 1.3], ssm_in_multiplier=0.8, ssm_out_multiplier=1.1,
                               ssm_multipliers=[0.7, 1.2, 0.8, 1.1, 0.9]),
                      keys=lambda c: mamba(c, 72, 4, 10, 2, 4)),
    "granite-4": dict(cls="GraniteMoeHybrid", arch="granitehybrid", change=(permuted, split_experts, shared_fused),
                      names=dict(SPARSE, **{"mamba." + k: v for k, v in SSM.items()}), keys=granite_hybrid,
                      cfg=dict(num_local_experts=6, num_experts_per_tok=2, shared_intermediate_size=44,
                               mamba_n_heads=8, mamba_d_head=18, mamba_d_state=10, mamba_n_groups=2, mamba_d_conv=4,
                               mamba_chunk_size=64, layer_types=["mamba", "attention", "mamba"],
                               position_embedding_type="nope", attention_multiplier=0.25, embedding_multiplier=3.0,
                               residual_multiplier=0.5, logits_scaling=2.0)),
    "nemotron-h": dict(cls="NemotronH", arch="nemotron_h", names=NEMOTRON_NAMES, keys=nemotron,
                       cfg=dict(NEMOTRON, layers_block_type=["linear_attention", "mlp", "full_attention", "mlp"])),
    "nemotron-3-nano": dict(cls="NemotronH", arch="nemotron_h_moe", names=NEMOTRON_NAMES, keys=nemotron, change=(flat,),
                            cfg=dict(NEMOTRON, layers_block_type=["linear_attention", "moe", "full_attention", "moe"],
                                     n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=28,
                                     moe_shared_expert_intermediate_size=44, n_shared_experts=1, norm_topk_prob=True,
                                     routed_scaling_factor=2.5, n_group=1, topk_group=1)),
    "nemotron-3-super": dict(cls="NemotronH", arch="nemotron_h_moe", change=(flat,),
                             names=dict(NEMOTRON_NAMES, **{"mixer.fc1_latent_proj": "ffn_latent_down",
                                                           "mixer.fc2_latent_proj": "ffn_latent_up"}),
                             keys=lambda c: dict(nemotron(c), moe_latent_size=22),
                             cfg=dict(NEMOTRON, layers_block_type=["linear_attention", "moe", "full_attention", "moe"],
                                      n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=28,
                                      moe_shared_expert_intermediate_size=44, n_shared_experts=1, norm_topk_prob=True,
                                      routed_scaling_factor=2.5, n_group=1, topk_group=1, moe_latent_size=22)),
    "lfm2": dict(cls="Lfm2", arch="lfm2", names=LFM2_NAMES,
                 cfg=dict(layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, block_auto_adjust_ff_dim=False,
                          norm_eps=1e-5, tie_word_embeddings=True),
                 keys=lambda c: {"shortconv.l_cache": 3, "attention.head_count_kv": of_kinds(c, ("full_attention",))}),
    "lfm2-moe": dict(cls="Lfm2Moe", arch="lfm2moe", names=LFM2_NAMES, change=(split_experts,),
                     cfg=dict(MOE, layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, num_dense_layers=1,
                              norm_eps=1e-5, use_expert_bias=True, norm_topk_prob=True, tie_word_embeddings=True),
                     keys=lambda c: dict(experts(c), leading_dense_block_count=1, expert_gating_func=2, **{
                         "shortconv.l_cache": 3, "attention.head_count_kv": of_kinds(c, ("full_attention",))})),
}


def config(transformers, row):
    c = getattr(transformers, row["cls"] + "Config")(**dict(COMMON, **row.get("cfg", {})))
    if "rope_n" in row:
        c.rope_n = row["rope_n"]
    return c


def of_text_alone(transformers, row, c, **how):
    """Of a class that transformers has with images alone: its text's part, and a head."""
    import torch
    from types import SimpleNamespace

    class Text(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config, self.model = c, getattr(transformers, row["text"])._from_config(c, **how)
            self.lm_head = torch.nn.Linear(c.hidden_size, c.vocab_size, bias=False)

        def forward(self, input_ids, **more):
            return SimpleNamespace(logits=self.lm_head(self.model(input_ids, **more).last_hidden_state))
    return Text()


def model_of(transformers, row, c, **how):
    """A model of c; `sees`: that of text and images around it, whose text alone is looked at; `text`: the class of its text's part."""
    if "text" in row:
        return of_text_alone(transformers, row, c, **how)
    if "sees" not in row:
        return transformers.AutoModelForCausalLM.from_config(c, **how)
    around = getattr(transformers, row["sees"] + "Config")(text_config=c.to_dict(), tie_word_embeddings=False,
                                                           vision_config=row["eyes"], **row.get("joint", {}))
    return getattr(transformers, row["sees"] + "ForConditionalGeneration")._from_config(around, **how)


def of_text(state):
    """Tensors of a model that sees, by the names that a model of text would have."""
    return {n.replace("model.language_model.", "model."): x for n, x in state.items() if "vision" not in n}


def random_weight(rng, name, shape):
    """Values that keep activations of order 1, choices apart and decays between 0.1 and 1."""
    x = rng.standard_normal(shape)
    if name.endswith("A_log"):
        return 0.3 * x - 1
    if name.endswith(("dt_bias", ".D", "sinks", "act_fn.alpha_p", "act_fn.alpha_n")):
        return 0.5 * x
    if name.endswith(("act_fn.beta", "act_fn.eps")):
        return 0.5 + 0.1 * x if name.endswith("beta") else 0 * x - 1e-6
    if "correction_bias" in name or name.endswith("expert_bias"):
        return 0.1 * x
    if name.endswith(("bias", "_bias")):
        return 0.3 * x
    if len(shape) == 1:
        return 0.2 * x
    if "embed" in name or "wte" in name or "wpe" in name:
        return 0.5 * x
    gain = 1.3 if re.search(r"[qk]_proj|router|mlp\.gate\.", name) else 1.0
    n_in = shape[-2] if len(shape) == 3 and shape[-1] % 72 and shape[1] % 72 == 0 else shape[-1]
    return gain / math.sqrt(n_in) * x


def fill(model, row, seed):
    """Random values everywhere, also where transformers keeps buffers."""
    import torch
    rng, one = np.random.default_rng(seed), one_more in row.get("change", ())
    state = {n: p for n, p in of_text(model.state_dict(keep_vars=True)).items()
             if not (n == "lm_head.weight" and model.config.tie_word_embeddings) and p.dtype.is_floating_point}
    with torch.no_grad():
        for name, p in sorted(state.items()):
            w = np.asarray(random_weight(rng, name, tuple(p.shape)), np.float32)
            norm = w.ndim == 1 and re.search(r"norm\w*\.weight$|ln_\w+\.weight$|_layernorm", name) and \
                not name.endswith("bias")
            norm = norm or re.search(r"scal(e|ar)$", name)  # of what a layer gives
            centred = one and "linear_attn" not in name or muse_norms in row.get("change", ()) and "layers" in name
            if norm and not centred:
                w += np.float32(1)
            p.data.copy_(torch.from_numpy(w))
    return {n: p.detach().numpy().astype(np.float32) for n, p in state.items()}


def exported(row, c, state):
    """(keys, tensors) of the file."""
    c.allow_global_per_layer_attribute_access = True  # gemma4: what is not of one layer is asked for as such
    tensors = dict(row["tensors"](c)) if "tensors" in row else {}
    for name, w in state.items():
        to = named(row, name)
        out = None
        for change in row.get("change", ()):
            out = out or change(c, name, to, w)
        if out is None and re.search(r"A_log|\.D |conv1d|\.conv\.conv|ssm_norm", name + " " + to):
            out = ssm(c, name, to, w)
        for n, x in (out or {to: w}).items():
            tensors[n] = np.ascontiguousarray(x, np.float32)
    for name in row.get("stack", ()):
        parts = sorted(n for n in tensors if n.startswith(name + "."))
        tensors[name + ".weight"] = np.stack([tensors.pop(n) for n in parts])
    of_tensors = row["of_tensors"](tensors) if "of_tensors" in row else {}
    return dict(keys(row, c), **of_tensors), tensors
