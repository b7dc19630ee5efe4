#!/usr/bin/env python3
"""Writes families/CASE.json: vectors of kinds of files that the 51 published ones leave out, in their format.

usage: make_families.py FOLDER [CASE...]        (needs numpy, torch, transformers)

A case is keys and tensors as a converter writes them, values by the rule of the published vectors; logits are those of
transformers in float64 (every weight by way of the inverse of what a converter does), which
tests/dev/families_reference.py must give too, to 1e-6.
"""
import json
import math
import os
import re
import sys

import numpy as np
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "dev"))
import families_reference  # noqa: E402
import transformers_families as rows  # noqa: E402

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
VOCAB = 16


class Case:
    def __init__(self, name, arch, hf_class):
        self.name, self.arch, self.hf_class, self.kv, self.tensors = name, arch, hf_class, [], []
        self.kv.append(["general.architecture", "STRING", arch])

    def key(self, name, kind, value):
        self.kv.append([self.arch + "." + name, kind, float(np.float32(value)) if kind == "FLOAT32" else value])

    def tensor(self, name, *ne):
        scale, middle = (1.0, 0.0) if name.startswith("token_embd") else (0.25, 1.0 if "norm" in name else 0.0)
        self.tensors.append([name + ".weight", list(ne), scale, middle])

    def value(self, name):
        return self.full(name + ".weight")

    def full(self, name):
        """A tensor as torch has it: dimensions backwards, float64."""
        _, ne, *values = next(t for t in self.tensors if t[0] == name)
        flat = np.array(values[0]) if isinstance(values[0], list) else \
            values[1] + values[0] * families_reference.rule(name, math.prod(ne))
        return torch.from_numpy(flat.astype(np.float32).astype(np.float64).reshape(ne[::-1]))


def halves(w, n_head):
    """Rows of heads whose pairs are neighbours, as Hugging Face has them: first the even ones, then the odd."""
    d = w.shape[0] // n_head
    return w.reshape(n_head, d // 2, 2, -1).transpose(1, 2).reshape(w.shape)


def mixtral():
    n_embd, n_head, n_kv, d, n_ff, n_expert, n_layer = 32, 4, 2, 8, 24, 8, 3
    c = Case("mixtral", "llama", "MixtralForCausalLM")
    for name, value in (("block_count", n_layer), ("context_length", 64), ("embedding_length", n_embd),
                        ("feed_forward_length", n_ff), ("attention.head_count", n_head),
                        ("attention.head_count_kv", n_kv), ("expert_count", n_expert), ("expert_used_count", 2),
                        ("vocab_size", VOCAB), ("rope.dimension_count", d)):
        c.key(name, "UINT32", value)
    c.key("rope.freq_base", "FLOAT32", 1e6)
    c.key("attention.layer_norm_rms_epsilon", "FLOAT32", 1e-5)
    c.tensor("token_embd", n_embd, VOCAB)
    c.tensor("output_norm", n_embd)
    c.tensor("output", n_embd, VOCAB)
    for b in ("blk.%d." % il for il in range(n_layer)):
        c.tensor(b + "attn_norm", n_embd)
        c.tensor(b + "ffn_norm", n_embd)
        for part, rows in (("q", n_head * d), ("k", n_kv * d), ("v", n_kv * d)):
            c.tensor(b + "attn_" + part, n_embd, rows)
        c.tensor(b + "attn_output", n_head * d, n_embd)
        c.tensor(b + "ffn_gate_inp", n_embd, n_expert)
        c.tensor(b + "ffn_gate_exps", n_embd, n_ff, n_expert)
        c.tensor(b + "ffn_up_exps", n_embd, n_ff, n_expert)
        c.tensor(b + "ffn_down_exps", n_ff, n_embd, n_expert)
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=VOCAB, hidden_size=n_embd, intermediate_size=n_ff, num_hidden_layers=n_layer,
        num_attention_heads=n_head, num_key_value_heads=n_kv, head_dim=d, num_local_experts=n_expert,
        num_experts_per_tok=2, rms_norm_eps=float(np.float32(1e-5)), rope_parameters={
            "rope_type": "default", "rope_theta": 1e6}, max_position_embeddings=64, tie_word_embeddings=False,
        attn_implementation="eager", experts_implementation="eager", sliding_window=None))
    weights = {"model.embed_tokens.weight": c.value("token_embd"), "model.norm.weight": c.value("output_norm"),
               "lm_head.weight": c.value("output")}
    for il in range(n_layer):
        b, h = "blk.%d." % il, "model.layers.%d." % il
        weights[h + "input_layernorm.weight"] = c.value(b + "attn_norm")
        weights[h + "post_attention_layernorm.weight"] = c.value(b + "ffn_norm")
        weights[h + "self_attn.q_proj.weight"] = halves(c.value(b + "attn_q"), n_head)
        weights[h + "self_attn.k_proj.weight"] = halves(c.value(b + "attn_k"), n_kv)
        weights[h + "self_attn.v_proj.weight"] = c.value(b + "attn_v")
        weights[h + "self_attn.o_proj.weight"] = c.value(b + "attn_output")
        weights[h + "mlp.gate.weight"] = c.value(b + "ffn_gate_inp")
        weights[h + "mlp.experts.gate_up_proj"] = torch.cat(
            [c.value(b + "ffn_gate_exps"), c.value(b + "ffn_up_exps")], 1)
        weights[h + "mlp.experts.down_proj"] = c.value(b + "ffn_down_exps")
    return c, model, weights


def command_r():
    """Of 64 layers and more: LayerNorm of each head of queries and keys; here of two, hone looks at the tensors."""
    n_embd, n_head, n_kv, d, n_ff, n_layer = 32, 4, 2, 8, 48, 2
    c = Case("commandr_heads", "command-r", "CohereForCausalLM")
    for name, value in (("block_count", n_layer), ("context_length", 64), ("embedding_length", n_embd),
                        ("feed_forward_length", n_ff), ("attention.head_count", n_head),
                        ("attention.head_count_kv", n_kv), ("vocab_size", VOCAB), ("rope.dimension_count", d)):
        c.key(name, "UINT32", value)
    c.key("rope.freq_base", "FLOAT32", 8e6)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-5)
    c.key("logit_scale", "FLOAT32", 0.0625)
    c.tensor("token_embd", n_embd, VOCAB)
    c.tensor("output_norm", n_embd)
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
             "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj"}
    for b in ("blk.%d." % il for il in range(n_layer)):
        c.tensor(b + "attn_norm", n_embd)
        for part, rows in (("q", n_head * d), ("k", n_kv * d), ("v", n_kv * d)):
            c.tensor(b + "attn_" + part, n_embd, rows)
        c.tensor(b + "attn_output", n_head * d, n_embd)
        c.tensor(b + "attn_q_norm", d, n_head)
        c.tensor(b + "attn_k_norm", d, n_kv)
        c.tensor(b + "ffn_gate", n_embd, n_ff)
        c.tensor(b + "ffn_up", n_embd, n_ff)
        c.tensor(b + "ffn_down", n_ff, n_embd)
    model = transformers.CohereForCausalLM(transformers.CohereConfig(
        vocab_size=VOCAB, hidden_size=n_embd, intermediate_size=n_ff, num_hidden_layers=n_layer,
        num_attention_heads=n_head, num_key_value_heads=n_kv, layer_norm_eps=float(np.float32(1e-5)),
        logit_scale=0.0625, use_qk_norm=True, max_position_embeddings=64, attn_implementation="eager",
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
        rope_parameters={"rope_type": "default", "rope_theta": 8e6}))
    weights = {"model.embed_tokens.weight": c.value("token_embd"), "model.norm.weight": c.value("output_norm"),
               "lm_head.weight": c.value("token_embd")}
    for il in range(n_layer):
        for name, hf in names.items():
            weights["model.layers.%d.%s.weight" % (il, hf)] = c.value("blk.%d.%s" % (il, name))
    return c, model, weights


# ---- by the rows of tests/dev/transformers_families.py -----------------------------------------------------------------

SMALL = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)
STABLELM = rows.FAMILIES["stablelm"]
# Classes that transformers lacks, by another of the same formula: EXAONE 3 is Llama whose rows are not turned, Orion is
# StableLM that turns whole heads, Ling 2.0 GLM-4.5 under other names, DeepSeek's first mixture Qwen 1.5's, whose shared
# expert's gate of 0 is a half; halves that layers of Nemotron-NAS lack give nothing where all of Llama's weights are 0.
OLD_MAMBA = dict(intermediate_size=64, state_size=6, time_step_rank=5)
OLD_JAMBA = dict(mamba_d_state=6, mamba_dt_rank=5, num_hidden_layers=4)
LAGUNA_SMALL = dict(num_hidden_layers=5, sliding_window=4, head_dim=8, num_experts=8, num_experts_per_tok=3,
                    moe_intermediate_size=12, shared_expert_intermediate_size=20,
                    num_attention_heads_per_layer=[4, 6, 2, 8, 4],
                    rope_parameters={"full_attention": dict(rows.YARN, rope_theta=5e5, partial_rotary_factor=0.5,
                                                            original_max_position_embeddings=16),
                                     "sliding_attention": dict(rope_type="default", rope_theta=1e4,
                                                               partial_rotary_factor=1.0)})
QWEN4_SMALL = dict(num_hidden_layers=4, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2,
                   linear_key_head_dim=8, linear_value_head_dim=8, num_experts=8, num_experts_per_tok=3,
                   moe_intermediate_size=12, shared_expert_intermediate_size=20, hc_count=3, hc_lowrank=10,
                   indexer_n_heads=12, indexer_head_dim=6, indexer_budget=4, indexer_compress_ratio=2, ple_embed_dim=12,
                   ple_conv_kernel_size=2, ngram_vocab_size_base=11, make_ngram_vocab_size_divisible_by=4,
                   eos_token_id=5, layer_types=["linear_attention", "indexed_attention"] * 2, ple_layer_ids=[3],
                   **rows.rope(1e6, partial_rotary_factor=0.5, mrope_section=[1, 1, 0]))
QWEN4_HASH = [7, 10007, 65537]  # small, and whatever the version of transformers
MIMO_SMALL = dict(num_hidden_layers=5, sliding_window=4, head_dim=8, v_head_dim=6, num_key_value_heads=2, n_routed_experts=8,
                  num_experts_per_tok=3, moe_intermediate_size=12)
DSA_SMALL = dict(num_hidden_layers=4, num_key_value_heads=4, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=12,
                 kv_lora_rank=16, q_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=10, index_n_heads=12,
                 index_head_dim=6, index_topk=4)
MADE = {
    "deepseek32": (rows.FAMILIES["deepseek-v3.2"], DSA_SMALL),
    "mimo2": (rows.FAMILIES["mimo-v2-flash"], MIMO_SMALL),
    "glmdsa": (rows.FAMILIES["glm-5"], dict(DSA_SMALL, indexer_types=["full", "full", "shared", "shared"])),
    "qwen4exp": (dict(rows.FAMILIES["qwen4-exp"], given={"ple_embedding.layer_multipliers": QWEN4_HASH}, keys=lambda c: dict(
        rows.qwen4_keys(c), full_attention_interval=2, **{"ple.layer_multipliers": QWEN4_HASH})), QWEN4_SMALL),
    "step35": (rows.FAMILIES["step-3.7"], dict(num_hidden_layers=5, sliding_window=4, head_dim=8, n_routed_experts=8,
                                               num_experts_per_tok=3, moe_intermediate_size=12, share_expert_dim=20)),
    "phi2": (rows.FAMILIES["phi-2"], {}), "stablelm": (STABLELM, {}), "chatglm": (rows.FAMILIES["glm-4-9b"], {}),
    "stablelm12b": (dict(rows.FAMILIES["stablelm-2-12b"], names=rows.STABLELM_NAMES), {}),
    "nemotron": (rows.FAMILIES["nemotron-mini"], {}), "hunyuanmoe": (rows.FAMILIES["hunyuan-moe"], {}),
    "starcoder": (rows.FAMILIES["starcoder"], dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=40)),
    "bloom": (rows.FAMILIES["bloom"], dict(hidden_size=24, num_attention_heads=3)),
    "mpt": (rows.FAMILIES["mpt"], dict(hidden_size=24, num_attention_heads=3)),
    "exaone": (dict(cls="Llama", arch="exaone", cfg=rows.HEAD), {}),
    "orion": (dict(STABLELM, arch="orion", cfg=rows.rope(partial_rotary_factor=1.0), keys=lambda c: {}), {}),
    "bailingmoe2": (dict(rows.FAMILIES["glm4moe"], arch="bailingmoe2", names={},
                         keys=lambda c: dict(rows.routed(c), expert_shared_feed_forward_length=28, **{
                             "rope.dimension_count": 10})),
                    dict(first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1,
                         n_group=4, topk_group=2, use_qk_norm=True, attention_bias=False)),
    "mamba": (rows.FAMILIES["mamba"], OLD_MAMBA), "falconmamba": (rows.FAMILIES["falcon-mamba"], OLD_MAMBA),
    "jamba": (rows.FAMILIES["jamba"], dict(OLD_JAMBA, num_experts=8, num_experts_per_tok=2)),
    "jambadense": (rows.FAMILIES["jamba-dense"], OLD_JAMBA),
    "nemotronsuper": (rows.FAMILIES["nemotron-3-super"], dict(num_hidden_layers=4, chunk_size=16, mamba_num_heads=4,
                                                             mamba_head_dim=8, ssm_state_size=6)),
    "phimoe": (dict(rows.FAMILIES["phimoe"], rope_n=8), dict(num_local_experts=8, **rows.rope(
        rope_type="longrope", original_max_position_embeddings=64, short_mscale=1.25, long_mscale=1.25,
        short_factor=[1.0, 1.25, 1.5, 2.0], long_factor=[1.5, 3.0, 6.0, 12.0]))),
    "graniteswa": (rows.FAMILIES["granite-swa"], dict(num_hidden_layers=5, sliding_window=4)),
    "granitemoeswa": (rows.FAMILIES["granitemoe-swa"], dict(num_hidden_layers=5, sliding_window=4, num_local_experts=8,
                                                            num_experts_per_tok=3, shared_intermediate_size=24)),
    "laguna": (rows.FAMILIES["laguna"], dict(LAGUNA_SMALL)),
    "lagunaelement": (rows.FAMILIES["laguna-element"], dict(LAGUNA_SMALL, gating="per-element")),
    "museglimmer": (rows.FAMILIES["muse-glimmer"], dict(num_hidden_layers=5, sliding_window=4, head_dim=8)),
    "bitnet": (rows.FAMILIES["bitnet-silu"], {}), "bitnet158": (rows.FAMILIES["bitnet"], {}),
    "olmo": (rows.FAMILIES["olmo"], {}), "hrm": (rows.FAMILIES["hrm-text"], dict(num_hidden_layers=2, head_dim=8)),
    "dbrx": (rows.FAMILIES["dbrx"], dict(d_model=32, n_heads=4, n_layers=3, max_seq_len=64, ffn_config=dict(
        hidden_size=32, ffn_hidden_size=12, moe_num_experts=8, moe_top_k=3))),
    "nanbeigeskip": (dict(cls="Llama", arch="nanbeige", change=(rows.permuted,), blocks=2, keys=lambda c: {
        "block_count": 2, "num_loops": 3, "skip_loop_final_norm": True}), dict(num_hidden_layers=6)),
    "deci": (dict(cls="Llama", arch="deci", change=(rows.permuted,), idle={1: "self_attn|input_layernorm", 2: ""}, lack={
        "attention.head_count": (1, 2), "attention.head_count_kv": (1, 2), "feed_forward_length": (2,)}),
             dict(num_hidden_layers=4)),
    "deepseek": (dict(cls="Qwen2Moe", arch="deepseek", names={}, keys=lambda c: dict(
        rows.experts(c), leading_dense_block_count=1, expert_shared_count=2, expert_weights_scale=1.0)),
        dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, shared_expert_intermediate_size=24,
             norm_topk_prob=False, mlp_only_layers=[0], qkv_bias=False)),
}


def kind_of(v):
    if isinstance(v, list):
        return "ARRAY:" + ("BOOL" if isinstance(v[0], bool) else "FLOAT32" if isinstance(v[0], float) else "INT32")
    return "BOOL" if isinstance(v, bool) else "STRING" if isinstance(v, str) else \
        "FLOAT32" if isinstance(v, float) else "UINT32"


def made_of(c, row, config, name, shape):
    """The weight of that name in transformers, of the file's tensors that are noted for it."""
    def tensor(to, ne):
        scale, middle = (1.0, 0.0) if to.startswith("token_embd") else (0.25, 0.0)
        middle = 1.0 if "norm" in to and to.endswith(".weight") else -1.0 if to.endswith("ssm_a") else middle
        if all(t[0] != to for t in c.tensors):
            c.tensors.append([to, list(ne), scale, middle])
        return c.full(to)
    if name.endswith("experts.gate_up_proj"):
        n, f, e = shape
        b = name.split("layers.")[1].split(".")[0]
        return torch.cat([tensor("blk.%s.ffn_%s_exps.weight" % (b, p), (e, f // 2, n)) for p in ("gate", "up")], 1)
    il = int(name.split("layers.")[1].split(".")[0]) if "layers." in name else -1
    if il >= row.get("blocks", il + 1):  # a block again
        name = name.replace("layers.%d." % il, "layers.%d." % (il % row["blocks"]))
    idle = il in row.get("idle", {}) and re.search(row["idle"][il], name)
    if idle or name.endswith("shared_expert_gate.weight") and row["arch"] != "qwen4exp":
        return torch.zeros(shape, dtype=torch.float64)
    if "kv_b_proj" in name:
        heads, n, v = config.num_attention_heads, config.qk_nope_head_dim, config.v_head_dim
        k_b = tensor("blk.%d.attn_k_b.weight" % il, (n, config.kv_lora_rank, heads))
        v_b = tensor("blk.%d.attn_v_b.weight" % il, (config.kv_lora_rank, v, heads))
        return torch.cat([k_b.transpose(1, 2), v_b], 1).reshape(shape)
    to = rows.named(row, name)
    if name.endswith("index_qk_proj.weight"):
        n = config.indexer_n_heads * config.indexer_head_dim
        return torch.cat([tensor(to.replace("_proj", part + "_proj"), (shape[1], rows_of))
                          for part, rows_of in (("q", n), ("k", shape[0] - n))])
    if "ngram_embedding" in name:
        return tensor("per_layer_token_embd.weight", shape[::-1])
    if row["arch"] == "qwen4exp" and to.endswith(("ssm_a", "ssm_norm.weight")):
        w = tensor(to, shape)
        return torch.log(-w) if to.endswith("ssm_a") else w
    if row["arch"] == "qwen4exp" and "shared_expert_gate" in name:
        return tensor(to, (shape[1],)).reshape(shape)
    stem, _, number = to[:-len(".weight")].rpartition(".")
    if stem in row.get("stack", ()):  # one of each head, in one tensor
        n = config.num_attention_heads if "_q_" in stem else config.num_key_value_heads
        if number == "0":
            tensor(stem + ".weight", (shape[0], n))
        return c.value(stem)[int(number)]
    if to.endswith("ssm_a") and len(shape) == 2:
        return torch.log(-tensor(to, shape[::-1]))
    if to.endswith(("ssm_a", "ssm_d")) and row["cls"] in ("Mamba", "FalconMamba", "Jamba"):
        return tensor(to, shape)
    if to.endswith(("ssm_a", "ssm_d")):
        w = tensor(to, (1, *shape)).reshape(shape)
        return torch.log(-w) if to.endswith("ssm_a") else w
    if to.endswith(("ssm_conv1d.weight", "ple_conv1d.weight")):
        return tensor(to, (shape[2], shape[0])).reshape(shape)
    if to.endswith("ssm_norm.weight"):
        return tensor(to, (shape[0] // config.n_groups, config.n_groups)).reshape(shape)
    if ".experts.mlp." in name:  # below each other; those that give lie [n_in, n_out]
        n, f, e = config.ffn_config.moe_num_experts, config.ffn_config.ffn_hidden_size, config.hidden_size
        down = name.endswith("w2")
        w = tensor(to, (f, e, n) if down else (e, f, n))
        return (w.transpose(1, 2) if down else w).reshape(shape)
    w = tensor(to, shape[::-1])
    if "query_key_value" in name:  # head by head again
        w = w.reshape(3, config.num_attention_heads, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape)
    if rows.one_more in row.get("change", ()) and (rows.is_one_more(to) or to.endswith("norm.weight")):
        w = w - 1
    if rows.muse_norms in row.get("change", ()) and re.search(r"layers.*norm\.weight$", name):
        w = w - 1
    if row["arch"] in ("deepseek", "deci", "granite_swa", "muse-glimmer", "olmo", "nanbeige") and to.split(".")[-2] in ("attn_q", "attn_k"):
        w = halves(w, config.num_attention_heads if "attn_q" in to else config.num_key_value_heads)
    return 2 * w if row["arch"] == "deepseek" and "ffn_down_shexp" in to else w


def by_row(name):
    """A case, its model and its weights, of a row whose sizes become small."""
    row, more = MADE[name]
    row = dict(row, cfg={**row.get("cfg", {}), **SMALL, **more})
    config = rows.config(transformers, row)
    config._attn_implementation = config._experts_implementation = "eager"
    model = rows.model_of(transformers, row, config)
    config.allow_global_per_layer_attribute_access = True  # what is not of one layer is asked for as such
    c = Case(name, row["arch"], row["cls"] + "ForCausalLM" if "text" in row else type(model).__name__)
    c.kv = []
    angles = getattr(config, "rope_parameters", None) or {}
    part = angles.get("full_attention", angles).get("partial_rotary_factor", 1)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    for k, v in rows.keys(row, config).items():  # sizes of a row that are written out are those of larger models
        v = int(part * width) if k.endswith("rope.dimension_count") and row["arch"] != "step35" else v
        v = SMALL["intermediate_size"] if k.endswith("feed_forward_length") and v == 100 else v
        c.kv.append([k, kind_of(v), v])
    for e in c.kv:  # layers that lack a half have 0 of it
        lack = row.get("lack", {}).get(e[0][len(row["arch"]) + 1:])
        if lack:
            e[1:] = ["ARRAY:INT32", [0 if il in lack else e[2] for il in range(config.num_hidden_layers)]]
    weights = {}
    for n, p in model.state_dict().items():
        tied = n == "lm_head.weight" and config.tie_word_embeddings
        if not p.dtype.is_floating_point:  # of a hash
            weights[n] = next((torch.tensor(v) for k, v in row["given"].items() if n.endswith(k)), p)
            continue
        weights[n] = c.value("token_embd") if tied else torch.zeros_like(p) if "vision" in n else \
            made_of(c, row, config, n.replace("language_model.", ""), tuple(p.shape))
    for n, values in (row["tensors"](config) if "tensors" in row else {}).items():
        c.tensors.append([n, [len(values)], [float(x) for x in values]])
    return c, model, weights


# ---- families of which transformers has no class, nor one of their formula: the reference alone ------------------------

def alone(name):
    """A case of keys and tensors; its logits are the reference's."""
    keys, tensors = ALONE[name]
    arch = keys.pop("arch", name)
    c = Case(name, arch, "none: the program in double precision alone")
    for k, v in dict(dict(context_length=64, embedding_length=32, vocab_size=VOCAB), **keys).items():
        c.key(k, kind_of(v), v)
    for n, ne in [("token_embd", (32, VOCAB)), ("output_norm", (32,))] + tensors:
        if n == "output_norm" and arch in families_reference.PLAIN_NORMS:
            continue
        c.tensor(n, *ne)
        if arch == "plamo3" and ".post_" in n:
            c.tensors[-1][0] = n  # these have no .weight
    return c, None, None


def layers(n_layer, **parts):
    return [("blk.%d.%s" % (il, n), ne(il) if callable(ne) else ne) for il in range(n_layer) for n, ne in parts.items()]


ALONE = {
    "spark2_5": ({"block_count": 4, "feed_forward_length": 40, "attention.head_count": 4, "attention.head_count_kv": 2,
                  "attention.key_length": 12, "attention.value_length": 12, "attention.layer_norm_rms_epsilon": 1e-6,
                  "attention.sliding_window": 4, "attention.sliding_window_pattern": [True, True, False, True],
                  "rope.freq_base": 5e5, "rope.freq_base_swa": 1e4, "rope.dimension_count": 4,
                  "rope.dimension_count_swa": 8},
                 layers(4, attn_norm=(32,), attn_qkv=(32, 96), attn_gate=(32, 4), attn_output=(48, 32), ffn_norm=(32,),
                        ffn_gate=(32, 40), ffn_up=(32, 40), ffn_down=(40, 32))),
}
ALONE["openelm"] = ({"block_count": 3, "feed_forward_length": [40, 24, 48], "attention.head_count": [4, 6, 3],
                     "attention.head_count_kv": [2, 2, 1], "attention.key_length": 8, "attention.value_length": 8,
                     "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e4, "rope.dimension_count": 8},
                    layers(3, attn_norm=(32,), attn_qkv=lambda il: (32, (64, 80, 40)[il]), attn_q_norm=(8,), attn_k_norm=(8,),
                           attn_output=lambda il: ((32, 48, 24)[il], 32), ffn_norm=(32,),
                           ffn_gate=lambda il: (32, (40, 24, 48)[il]), ffn_up=lambda il: (32, (40, 24, 48)[il]),
                           ffn_down=lambda il: ((40, 24, 48)[il], 32)))
ALONE["talkie"] = ({"block_count": 3, "feed_forward_length": 40, "attention.head_count": 4, "attention.head_count_kv": 2,
                    "attention.key_length": 8, "attention.value_length": 8, "attention.layer_norm_rms_epsilon": 1e-6,
                    "rope.freq_base": 1e6, "rope.dimension_count": 8, "logit_scale": 0.75},
                   [("output", (32, VOCAB))] +
                   layers(3, attn_q=(32, 32), attn_k=(32, 16), attn_v=(32, 16), attn_q_norm=(1, 4), attn_output=(32, 32),
                          ffn_gate=(32, 40), ffn_up=(32, 40), ffn_down=(40, 32), layer_output_scale=(1,)))
ALONE["plamo3"] = ({"block_count": 4, "feed_forward_length": 40, "attention.head_count": 4, "attention.head_count_kv": 2,
                    "attention.key_length": 12, "attention.value_length": 12, "attention.layer_norm_rms_epsilon": 1e-6,
                    "attention.sliding_window": 4, "attention.sliding_window_pattern": 3, "rope.freq_base": 1e6,
                    "rope.dimension_count": 12},
                   layers(4, attn_norm=(32,), attn_qkv=(32, 96), attn_q_norm=(12,), attn_k_norm=(12,), attn_output=(48, 32),
                          post_attention_norm=(32,), ffn_norm=(32,), ffn_up=(32, 80), ffn_down=(40, 32),
                          post_ffw_norm=(32,)))
ALONE["nanbeige"] = ({"block_count": 3, "feed_forward_length": 40, "attention.head_count": 4, "attention.head_count_kv": 2,
                      "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 5e5, "rope.dimension_count": 8,
                      "num_loops": 2, "skip_loop_final_norm": False},
                     layers(3, attn_norm=(32,), attn_q=(32, 32), attn_k=(32, 16), attn_v=(32, 16), attn_output=(32, 32),
                            ffn_norm=(32,), ffn_gate=(32, 40), ffn_up=(32, 40), ffn_down=(40, 32)))
CASES = {**{n: (lambda n=n: alone(n)) for n in ALONE}, "mixtral": mixtral, "commandr_heads": command_r, **{n: (lambda n=n: by_row(n)) for n in MADE}}


def llama4_runs(run=4):
    """How llama4's runs of positions and growing queries go: hone's are of 8192, which no vector reaches; here the
    reference and transformers take runs of four, on the weights of the published vector."""
    v, ref = families_reference.read_vector(os.path.join(HERE, "families", "llama4.json"))
    k = {name.split(".", 1)[1]: value for name, _, value in v["kv"]}
    n_layer, step, d = k["block_count"], k["interleave_moe_layer_step"], k["attention.key_length"]
    model = transformers.Llama4ForCausalLM(transformers.Llama4TextConfig(
        vocab_size=VOCAB, hidden_size=k["embedding_length"], intermediate_size=k["expert_feed_forward_length"],
        intermediate_size_mlp=k["feed_forward_length"], num_hidden_layers=n_layer,
        num_attention_heads=k["attention.head_count"], num_key_value_heads=k["attention.head_count_kv"], head_dim=d,
        num_local_experts=k["expert_count"], num_experts_per_tok=k["expert_used_count"], interleave_moe_layer_step=step,
        rms_norm_eps=k["attention.layer_norm_rms_epsilon"], attention_chunk_size=run, floor_scale=run, attn_scale=0.1,
        attn_temperature_tuning=True, use_qk_norm=True, attn_implementation="eager", tie_word_embeddings=False,
        max_position_embeddings=64, no_rope_layer_interval=4,
        rope_parameters={"rope_type": "default", "rope_theta": k["rope.freq_base"]}))
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "feed_forward.gate_proj", "ffn_up": "feed_forward.up_proj",
             "ffn_down": "feed_forward.down_proj", "ffn_gate_inp": "feed_forward.router",
             "ffn_gate_shexp": "feed_forward.shared_expert.gate_proj",
             "ffn_up_shexp": "feed_forward.shared_expert.up_proj",
             "ffn_down_shexp": "feed_forward.shared_expert.down_proj"}
    weights = {"model.embed_tokens.weight": ref.t["token_embd.weight"], "model.norm.weight":
               ref.t["output_norm.weight"], "lm_head.weight": ref.t["output.weight"]}
    for il in range(n_layer):
        h = "model.layers.%d." % il
        for name, hf in names.items():
            if ref.has(il, name):
                weights[h + hf + ".weight"] = ref.w(il, name)
        if ref.has(il, "ffn_gate_inp"):
            both = np.concatenate([ref.w(il, "ffn_gate_exps"), ref.w(il, "ffn_up_exps")], 1)
            weights[h + "feed_forward.experts.gate_up_proj"] = np.swapaxes(both, 1, 2)
            weights[h + "feed_forward.experts.down_proj"] = np.swapaxes(ref.w(il, "ffn_down_exps"), 1, 2)
    ref.RUN = run
    y = in_double(model, {n: torch.from_numpy(np.ascontiguousarray(w)) for n, w in weights.items()})
    apart, alone = (float(np.max(np.abs(x.run(TOKENS) - y))) for x in (ref, families_reference.read_vector(
        os.path.join(HERE, "families", "llama4.json"))[1]))
    assert apart < 1e-6 < alone, (apart, alone)
    print("llama4 in runs of %d: transformers and reference %.1e apart (without runs %.1e)" % (run, apart, alone))


def yarn_angles(of, n):
    """YaRN's, of its paper, in double."""
    def corner(beta):
        return n * math.log(of["original_max_position_embeddings"] / (2 * math.pi * beta)) / (2 * math.log(of["rope_theta"]))
    i = torch.arange(0, n, 2, dtype=torch.float64)
    lo, hi = max(0, math.floor(corner(of["beta_fast"]))), min(n - 1, math.ceil(corner(of["beta_slow"])))
    mix = 1 - torch.clamp((i / 2 - lo) / max(0.001, hi - lo), 0, 1)
    return of["rope_theta"] ** (-i / n) * ((1 - mix) / of["factor"] + mix)


def in_double(model, weights):
    """Logits, every request for float32 being one for float64."""
    model = model.double().eval()
    model.load_state_dict(weights)
    for module in model.modules():  # tables of angles are no weights
        for name, buffer in list(module.named_buffers(recurse=False)):
            if "inv_freq" in name:
                n = 2 * buffer.shape[0]
                of = getattr(module, "config", model.config).rope_parameters
                if "full_attention" in of:  # a table of each kind of layer
                    of = of["full_attention" if name.startswith("full") else "sliding_attention"]
                if of["rope_type"] == "yarn":
                    setattr(module, name, yarn_angles(of, n))
                    continue
                theta = of["rope_theta"]
                setattr(module, name, theta ** (-torch.arange(0, n, 2, dtype=torch.float64) / n))
    kept, kept_to, kept_type = torch.Tensor.float, torch.Tensor.to, torch.Tensor.type
    soft = torch.nn.functional.softmax

    def double(value):
        return torch.float64 if value is torch.float32 else value
    torch.Tensor.float = lambda self: self.double()
    torch.Tensor.type = lambda self, *a, **k: kept_type(self, *map(double, a), **k)
    torch.Tensor.to = lambda self, *a, **k: kept_to(self, *map(double, a), **{n: double(v) for n, v in k.items()})
    torch.nn.functional.softmax = lambda x, *a, **k: soft(x, *a, **{n: double(v) for n, v in k.items()})
    try:
        with torch.no_grad():
            return model(torch.tensor([TOKENS])).logits[0].double().numpy()
    finally:
        torch.Tensor.float, torch.Tensor.to, torch.nn.functional.softmax = kept, kept_to, soft
        torch.Tensor.type = kept_type


def main():
    llama4_runs() if not sys.argv[2:] else None
    folder, names = sys.argv[1], sys.argv[2:] or sorted(CASES)
    for name in names:
        c, model, weights = CASES[name]()
        y = None if model is None else in_double(model, weights)
        ref = families_reference.Model({k: v for k, _, v in c.kv},
                                       {t[0]: c.full(t[0]).numpy() for t in c.tensors})
        own = ref.run(TOKENS)
        y, apart = (own, math.nan) if y is None else (y, float(np.max(np.abs(own - y))))
        assert not apart >= 1e-6, (name, apart)
        at = sorted({0, 5, len(TOKENS) - 1})
        out = {"case": c.name, "arch": c.arch, "hf_class": c.hf_class, "name_prefix": "", "kv": c.kv,
               "tensors": c.tensors, "tokens": TOKENS, "tolerance_f32": 2e-05,
               "logits": {str(i): [round(float(v), 6) for v in y[i]] for i in at},
               "argmax": [int(i) for i in np.argmax(y, -1)], "sum": [round(float(v), 5) for v in np.sum(y, -1)],
               "checks_max_abs_diff": {} if model is None else {"transformers_vs_reference": float("%.1e" % apart)}}
        if ref.experts:
            out["experts_last_token"] = {str(il): [int(e) for e in p[-1]] for il, p in ref.experts.items()}
            out["smallest_router_gap"] = float("%.2g" % ref.gap)
        if name in ("mamba", "falconmamba", "jamba", "jambadense"):
            out["state_sums"] = {str(il): round(s, 5) for il, s in ref.states.items()}
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(out, f)
            f.write("\n")
        print("%-14s transformers and reference %.1e apart, smallest gap %.1e" % (name, apart, ref.gap))


if __name__ == "__main__":
    main()
