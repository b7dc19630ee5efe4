#!/usr/bin/env python3
"""Writes embeddings/CASE.json: what transformers makes of two texts in float64, of small files by the rule of the
families' vectors (keys, tensors by a rule; families/*.json).

usage: make_embeddings.py FOLDER [CASE...]        (needs numpy, torch, transformers)

rows: of the short text, after the last norm, at some positions. pooled: of the short and of the long text by each
pooling, as they come; embedding: by the file's own, behind what the file has behind it, of length 1, or the scores.
"""
import json
import os
import sys

import numpy as np
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "dev")]
import families_reference  # noqa: E402
from make_families import VOCAB, Case, halves  # noqa: E402

SHORT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
LONG = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(150)]
E, HEADS, FF, CTX = 32, 4, 48, 192
NONE, MEAN, CLS, LAST, RANK = range(5)


def keys(c, n_layer, pooling, **more):
    for name, value in (("block_count", n_layer), ("context_length", CTX), ("embedding_length", E),
                        ("feed_forward_length", FF), ("attention.head_count", HEADS), ("pooling_type", pooling),
                        *more.items()):
        c.key(name.replace("__", "."), "UINT32", value)


def bias(c, name, n):
    """Case.tensor writes weights; biases are small values around 0."""
    c.tensors.append([name + ".bias", [n], 0.25, 0.0])


def flat(c, name):
    """A bias as torch has it."""
    from families_reference import rule
    _, ne, scale, middle = next(t for t in c.tensors if t[0] == name)
    return torch.from_numpy((middle + scale * rule(name, ne[0])).astype(np.float32).astype(np.float64))


def linear(c, weights, gguf, hf, n_in, n_out, with_bias=True):
    c.tensor(gguf, n_in, n_out)
    weights[hf + ".weight"] = c.value(gguf)
    if with_bias:
        bias(c, gguf, n_out)
        weights[hf + ".bias"] = flat(c, gguf + ".bias")


def norm(c, weights, gguf, hf):
    c.tensor(gguf, E)
    bias(c, gguf, E)
    weights[hf + ".weight"] = c.value(gguf)
    weights[hf + ".bias"] = flat(c, gguf + ".bias")


def bert_layers(c, weights, n_layer, prefix):
    for il in range(n_layer):
        b, h = "blk.%d." % il, prefix + "encoder.layer.%d." % il
        for gguf, hf in (("attn_q", "attention.self.query"), ("attn_k", "attention.self.key"),
                         ("attn_v", "attention.self.value"), ("attn_output", "attention.output.dense")):
            linear(c, weights, b + gguf, h + hf, E, E)
        norm(c, weights, b + "attn_output_norm", h + "attention.output.LayerNorm")
        linear(c, weights, b + "ffn_up", h + "intermediate.dense", E, FF)
        linear(c, weights, b + "ffn_down", h + "output.dense", FF, E)
        norm(c, weights, b + "layer_output_norm", h + "output.LayerNorm")


def bert(pooling, name):
    c, w, n_layer, eps = Case(name, "bert", "BertModel"), {}, 2, float(np.float32(1e-12))
    keys(c, n_layer, pooling)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-12)
    c.key("attention.causal", "BOOL", False)
    c.kv.append(["tokenizer.ggml.token_type_count", "UINT32", 2])
    c.tensor("token_embd", E, VOCAB)
    c.tensor("position_embd", E, CTX)
    c.tensor("token_types", E, 2)
    norm(c, w, "token_embd_norm", "embeddings.LayerNorm")
    w["embeddings.word_embeddings.weight"] = c.value("token_embd")
    w["embeddings.position_embeddings.weight"] = c.value("position_embd")
    w["embeddings.token_type_embeddings.weight"] = c.value("token_types")
    bert_layers(c, w, n_layer, "")
    model = transformers.BertModel(transformers.BertConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, intermediate_size=FF,
        hidden_act="gelu", max_position_embeddings=CTX, type_vocab_size=2, layer_norm_eps=eps,
        attn_implementation="eager"), add_pooling_layer=False)
    return c, model, w, None


def xlmr_rank():
    """A cross-encoder: positions begin behind the padding's, which converters cut away."""
    c, w, n_layer = Case("xlmr_rank", "bert", "XLMRobertaForSequenceClassification"), {}, 2
    keys(c, n_layer, RANK)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-5)
    c.key("attention.causal", "BOOL", False)
    c.kv.append(["tokenizer.ggml.token_type_count", "UINT32", 1])
    c.tensor("token_embd", E, VOCAB)
    c.tensor("position_embd", E, CTX)
    c.tensor("token_types", E, 1)
    norm(c, w, "token_embd_norm", "roberta.embeddings.LayerNorm")
    w["roberta.embeddings.word_embeddings.weight"] = c.value("token_embd")
    w["roberta.embeddings.position_embeddings.weight"] = torch.cat(
        [torch.zeros(2, E, dtype=torch.float64), c.value("position_embd")])
    w["roberta.embeddings.token_type_embeddings.weight"] = c.value("token_types")
    bert_layers(c, w, n_layer, "roberta.")
    linear(c, w, "cls", "classifier.dense", E, E)
    linear(c, w, "cls.output", "classifier.out_proj", E, 1)
    model = transformers.XLMRobertaForSequenceClassification(transformers.XLMRobertaConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, intermediate_size=FF,
        hidden_act="gelu", max_position_embeddings=CTX + 2, type_vocab_size=1, layer_norm_eps=float(np.float32(1e-5)),
        pad_token_id=1, num_labels=1, attn_implementation="eager"))
    return c, model, w, None


def nomic():
    c, w, n_layer = Case("nomic", "nomic-bert", "NomicBertModel"), {}, 2
    keys(c, n_layer, MEAN)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-12)
    c.key("attention.causal", "BOOL", False)
    c.key("rope.freq_base", "FLOAT32", 1000.0)
    c.kv.append(["tokenizer.ggml.token_type_count", "UINT32", 2])
    c.tensor("token_embd", E, VOCAB)
    c.tensor("token_types", E, 2)
    norm(c, w, "token_embd_norm", "embeddings.LayerNorm")
    w["embeddings.word_embeddings.weight"] = c.value("token_embd")
    w["embeddings.token_type_embeddings.weight"] = c.value("token_types")
    model = transformers.NomicBertModel(transformers.NomicBertConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, intermediate_size=FF,
        hidden_act="silu", max_position_embeddings=CTX, type_vocab_size=2, layer_norm_eps=float(np.float32(1e-12)),
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0}, attn_implementation="eager"),
        add_pooling_layer=False)
    names = [n for n in model.state_dict() if ".0." in n]
    norms = sorted(n[:-7] for n in names if "norm" in n.lower() and n.endswith(".weight"))
    for il in range(n_layer):
        b = "blk.%d." % il

        def here(word):
            return next(n for n in names if word in n)[:-7].replace(".0.", ".%d." % il)
        c.tensor(b + "attn_qkv", E, 3 * E)
        for i, part in enumerate("qkv"):
            w[here(part + "_proj") + ".weight"] = c.value(b + "attn_qkv")[i * E:(i + 1) * E]
        linear(c, w, b + "attn_output", here("o_proj"), E, E, False)
        after = [n for n in norms if "post_attention" in n or "attn" in n]
        norm(c, w, b + "attn_output_norm", after[0].replace(".0.", ".%d." % il))
        for part in ("gate", "up"):
            linear(c, w, b + "ffn_" + part, here("mlp.%s_proj" % part), E, FF, False)
        linear(c, w, b + "ffn_down", here("mlp.down_proj"), FF, E, False)
        norm(c, w, b + "layer_output_norm", next(n for n in norms if n != after[0]).replace(".0.", ".%d." % il))
    return c, model, w, None


def gemma():
    """Windows as far forward as back; the last of six layers sees everything; two layers behind pooling."""
    c, w, n_layer, d, kv, window = Case("gemma", "gemma-embedding", "Gemma3TextModel"), {}, 7, 8, 2, 20
    keys(c, n_layer, MEAN, attention__head_count_kv=kv, attention__key_length=d, attention__value_length=d,
         attention__sliding_window=window, dense_2_feat_in=E, dense_2_feat_out=40, dense_3_feat_in=40,
         dense_3_feat_out=24)
    c.key("rope.freq_base", "FLOAT32", 1e6)
    c.key("attention.layer_norm_rms_epsilon", "FLOAT32", 1e-6)
    c.tensor("token_embd", E, VOCAB)
    c.tensor("output_norm", E)
    c.tensor("dense_2", E, 40)
    c.tensor("dense_3", 40, 24)
    w["embed_tokens.weight"], w["norm.weight"] = c.value("token_embd"), c.value("output_norm") - 1
    for il in range(n_layer):
        b, h = "blk.%d." % il, "layers.%d." % il
        for gguf, hf, n in (("attn_norm", "input_layernorm", E), ("ffn_norm", "pre_feedforward_layernorm", E),
                            ("post_attention_norm", "post_attention_layernorm", E),
                            ("post_ffw_norm", "post_feedforward_layernorm", E),
                            ("attn_q_norm", "self_attn.q_norm", d), ("attn_k_norm", "self_attn.k_norm", d)):
            c.tensor(b + gguf, n)
            w[h + hf + ".weight"] = c.value(b + gguf) - 1
        for gguf, hf, n_in, n_out in (
                ("attn_q", "self_attn.q_proj", E, HEADS * d), ("attn_k", "self_attn.k_proj", E, kv * d),
                ("attn_v", "self_attn.v_proj", E, kv * d), ("attn_output", "self_attn.o_proj", HEADS * d, E),
                ("ffn_gate", "mlp.gate_proj", E, FF), ("ffn_up", "mlp.up_proj", E, FF),
                ("ffn_down", "mlp.down_proj", FF, E)):
            linear(c, w, b + gguf, h + hf, n_in, n_out, False)
    model = transformers.Gemma3TextModel(transformers.Gemma3TextConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, num_key_value_heads=kv,
        head_dim=d, intermediate_size=FF, max_position_embeddings=CTX, sliding_window=window,
        use_bidirectional_attention=True, query_pre_attn_scalar=d, rms_norm_eps=float(np.float32(1e-6)),
        hidden_activation="gelu_pytorch_tanh", attn_implementation="eager"))
    return c, model, w, lambda x: x @ c.value("dense_2").T @ c.value("dense_3").T


def qwen3(pooling, name):
    """pooling RANK: with a classifier of two scores, which become shares."""
    rank = pooling == RANK
    c, w, n_layer, d, kv = Case(name, "qwen3", "Qwen3ForSequenceClassification" if rank else "Qwen3Model"), {}, 2, 8, 2
    keys(c, n_layer, pooling, attention__head_count_kv=kv, attention__key_length=d, attention__value_length=d)
    c.key("rope.freq_base", "FLOAT32", 1e6)
    c.key("attention.layer_norm_rms_epsilon", "FLOAT32", 1e-6)
    c.tensor("token_embd", E, VOCAB)
    c.tensor("output_norm", E)
    p = "model." if rank else ""
    w[p + "embed_tokens.weight"], w[p + "norm.weight"] = c.value("token_embd"), c.value("output_norm")
    if rank:
        c.kv.append(["qwen3.classifier.output_labels", "ARRAY:STRING", ["yes", "no"]])
        linear(c, w, "cls.output", "score", E, 2, False)
    for il in range(n_layer):
        b, h = "blk.%d." % il, p + "layers.%d." % il
        for gguf, hf, n in (("attn_norm", "input_layernorm", E), ("ffn_norm", "post_attention_layernorm", E),
                            ("attn_q_norm", "self_attn.q_norm", d), ("attn_k_norm", "self_attn.k_norm", d)):
            c.tensor(b + gguf, n)
            w[h + hf + ".weight"] = c.value(b + gguf)
        for gguf, hf, n_in, n_out in (
                ("attn_q", "self_attn.q_proj", E, HEADS * d), ("attn_k", "self_attn.k_proj", E, kv * d),
                ("attn_v", "self_attn.v_proj", E, kv * d), ("attn_output", "self_attn.o_proj", HEADS * d, E),
                ("ffn_gate", "mlp.gate_proj", E, FF), ("ffn_up", "mlp.up_proj", E, FF),
                ("ffn_down", "mlp.down_proj", FF, E)):
            linear(c, w, b + gguf, h + hf, n_in, n_out, False)
    config = transformers.Qwen3Config(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, num_key_value_heads=kv,
        head_dim=d, intermediate_size=FF, max_position_embeddings=CTX, rms_norm_eps=float(np.float32(1e-6)),
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, num_labels=2, pad_token_id=0,
        attn_implementation="eager")
    model = (transformers.Qwen3ForSequenceClassification if rank else transformers.Qwen3Model)(config)
    return c, model, w, None


class Experts(torch.nn.Module):
    """What the code beside nomic-embed-text-v2-moe does: a softmax over all, of which the largest stay as they are."""

    def __init__(self, router, up, down, n_used):
        super().__init__()
        self.router, self.up, self.down, self.n_used = router, up, down, n_used

    def forward(self, x):
        share = torch.softmax(x @ self.router.T, -1)
        out = torch.zeros_like(x)
        for t in range(x.shape[1]):
            for p, e in zip(*torch.topk(share[0, t], self.n_used)):
                out[0, t] += p * (self.down[e] @ torch.nn.functional.gelu(self.up[e] @ x[0, t]))
        return out


def rotated_bert(name, arch, n_layer, n_expert=0):
    """Jina's, and Nomic's mixture, whose dense layers are the same."""
    c, w, n_used = Case(name, arch, "JinaEmbeddingsV3Model"), {}, 2
    keys(c, n_layer, MEAN)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-5)
    c.key("attention.causal", "BOOL", False)
    c.key("rope.freq_base", "FLOAT32", 20000.0)
    if n_expert:
        for key, value in (("expert_count", n_expert), ("expert_used_count", n_used), ("moe_every_n_layers", 2)):
            c.key(key, "UINT32", value)
    c.kv.append(["tokenizer.ggml.token_type_count", "UINT32", 1])
    c.tensor("token_embd", E, VOCAB)
    c.tensor("token_types", E, 1)
    norm(c, w, "token_embd_norm", "embeddings.LayerNorm")
    w["embeddings.word_embeddings.weight"] = c.value("token_embd")
    w["embeddings.token_type_embeddings.weight"] = c.value("token_types")
    model = transformers.JinaEmbeddingsV3Model(transformers.JinaEmbeddingsV3Config(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, intermediate_size=FF,
        hidden_act="gelu", max_position_embeddings=CTX + 2, type_vocab_size=1, layer_norm_eps=float(np.float32(1e-5)),
        rope_parameters={"rope_type": "default", "rope_theta": 20000.0}, attn_implementation="eager"),
        add_pooling_layer=False)
    for il in range(n_layer):
        b, h = "blk.%d." % il, "layers.%d." % il
        c.tensor(b + "attn_qkv", E, 3 * E)
        bias(c, b + "attn_qkv", 3 * E)
        for i, part in enumerate("qkv"):
            w[h + "self_attn.%s_proj.weight" % part] = c.value(b + "attn_qkv")[i * E:(i + 1) * E]
            w[h + "self_attn.%s_proj.bias" % part] = flat(c, b + "attn_qkv.bias")[i * E:(i + 1) * E]
        linear(c, w, b + "attn_output", h + "self_attn.o_proj", E, E)
        norm(c, w, b + "attn_output_norm", h + "post_attention_layernorm")
        norm(c, w, b + "layer_output_norm", h + "post_mlp_layernorm")
        if n_expert and il % 2:
            c.tensor(b + "ffn_gate_inp", E, n_expert)
            c.tensor(b + "ffn_up_exps", E, FF, n_expert)
            c.tensor(b + "ffn_down_exps", FF, E, n_expert)
            model.layers[il].mlp = Experts(*(c.value(b + n) for n in ("ffn_gate_inp", "ffn_up_exps", "ffn_down_exps")),
                                           n_used)
            continue
        linear(c, w, b + "ffn_up", h + "mlp.fc1", E, FF)
        linear(c, w, b + "ffn_down", h + "mlp.fc2", FF, E)
    return c, model, w, None


def fading(name, fused):
    """Jina 2, of which transformers has no class: its rows are families_reference.py's, which gives what transformers
    does of Bloom and MPT (their scores fade alike) and, to its halves and its GELU, what llama.cpp does of this."""
    c, n_layer = Case(name, "jina-bert-v2", "families_reference.py"), 2
    keys(c, n_layer, MEAN)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-5)
    c.key("attention.causal", "BOOL", False)
    c.kv.append(["tokenizer.ggml.token_type_count", "UINT32", 2])
    c.tensor("token_embd", E, VOCAB)
    c.tensor("token_types", E, 2)
    norm(c, {}, "token_embd_norm", "")
    for il in range(n_layer):
        b = "blk.%d." % il
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            linear(c, {}, b + part, "", E, E)
        norm(c, {}, b + "attn_output_norm", "")
        norm(c, {}, b + "layer_output_norm", "")
        if not fused:
            c.tensor(b + "ffn_gate", E, FF)
        c.tensor(b + "ffn_up", E, 2 * FF if fused else FF)
        linear(c, {}, b + "ffn_down", "", FF, E)
    return c, None, None, None


def by_reference(c, texts):
    model = families_reference.Model({k: v for k, _, v in c.kv}, {t[0]: c.full(t[0]).numpy() for t in c.tensors})
    return [(model.rows(ids), None) for ids in texts]


def modern(name, pooling, act="gelu", judges=None):
    """The first of three layers sees everything; the others 10 positions to each side."""
    rank = pooling == RANK
    c, w, n_layer, window = Case(name, "modern-bert", "ModernBertForSequenceClassification" if rank else
                                 "ModernBertModel"), {}, 5, 20
    keys(c, n_layer, pooling, attention__sliding_window=window, attention__sliding_window_pattern=3)
    c.key("attention.layer_norm_epsilon", "FLOAT32", 1e-5)
    c.key("attention.causal", "BOOL", False)
    c.key("rope.freq_base", "FLOAT32", 160000.0)
    c.key("rope.freq_base_swa", "FLOAT32", 10000.0)
    if act != "gelu":
        c.kv.append(["modern-bert.hidden_activation", "STRING", act])
    if judges == "cls":
        c.key("classifier.pooling_type", "UINT32", CLS)
    p = "model." if rank else ""
    for gguf, hf in (("token_embd_norm", "embeddings.norm"), ("output_norm", "final_norm")):
        c.tensor(gguf, E)
        w[p + hf + ".weight"] = c.value(gguf)
    c.tensor("token_embd", E, VOCAB)
    w[p + "embeddings.tok_embeddings.weight"] = c.value("token_embd")
    if rank:
        linear(c, w, "cls", "head.dense", E, E, False)
        c.tensor("cls.norm", E)
        w["head.norm.weight"] = c.value("cls.norm")
        linear(c, w, "cls.output", "classifier", E, 1)
    for il in range(n_layer):
        b, h = "blk.%d." % il, p + "layers.%d." % il
        for gguf, hf in (("attn_norm", "attn_norm"), ("ffn_norm", "mlp_norm"))[il == 0:]:
            c.tensor(b + gguf, E)
            w[h + hf + ".weight"] = c.value(b + gguf)
        for gguf, hf, n_in, n_out in (("attn_qkv", "attn.Wqkv", E, 3 * E), ("attn_output", "attn.Wo", E, E),
                                      ("ffn_up", "mlp.Wi", E, 2 * FF), ("ffn_down", "mlp.Wo", FF, E)):
            linear(c, w, b + gguf, h + hf, n_in, n_out, False)
    config = transformers.ModernBertConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, intermediate_size=FF,
        hidden_activation=act, max_position_embeddings=CTX, norm_eps=float(np.float32(1e-5)), local_attention=window,
        classifier_pooling=judges or "mean", num_labels=1, pad_token_id=0, attn_implementation="eager")
    model = (transformers.ModernBertForSequenceClassification if rank else transformers.ModernBertModel)(config)
    return c, model, w, None


def euro(name, arch, pooling, turned):
    """Llama both ways; turned: rows of heads as the converter of llama leaves them."""
    c, w, n_layer, d, kv = Case(name, arch, "EuroBertModel"), {}, 2, 8, 2
    keys(c, n_layer, pooling, attention__head_count_kv=kv)
    c.key("attention.causal", "BOOL", False)
    c.key("rope.freq_base", "FLOAT32", 250000.0)
    c.key("attention.layer_norm_rms_epsilon", "FLOAT32", 1e-5)
    c.tensor("token_embd", E, VOCAB)
    c.tensor("output_norm", E)
    w["embed_tokens.weight"], w["norm.weight"] = c.value("token_embd"), c.value("output_norm")
    for il in range(n_layer):
        b, h = "blk.%d." % il, "layers.%d." % il
        for gguf, hf in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            c.tensor(b + gguf, E)
            w[h + hf + ".weight"] = c.value(b + gguf)
        for gguf, hf, n_in, n_out in (
                ("attn_q", "self_attn.q_proj", E, HEADS * d), ("attn_k", "self_attn.k_proj", E, kv * d),
                ("attn_v", "self_attn.v_proj", E, kv * d), ("attn_output", "self_attn.o_proj", HEADS * d, E),
                ("ffn_gate", "mlp.gate_proj", E, FF), ("ffn_up", "mlp.up_proj", E, FF),
                ("ffn_down", "mlp.down_proj", FF, E)):
            linear(c, w, b + gguf, h + hf, n_in, n_out, False)
            if turned and gguf in ("attn_q", "attn_k"):
                w[h + hf + ".weight"] = halves(w[h + hf + ".weight"], n_out // d)
    model = transformers.EuroBertModel(transformers.EuroBertConfig(
        vocab_size=VOCAB, hidden_size=E, num_hidden_layers=n_layer, num_attention_heads=HEADS, num_key_value_heads=kv,
        intermediate_size=FF, max_position_embeddings=CTX, rms_norm_eps=float(np.float32(1e-5)), pad_token_id=0,
        rope_parameters={"rope_type": "default", "rope_theta": 250000.0}, attn_implementation="eager"))
    return c, model, w, None


CASES = {"jina_v2": lambda: fading("jina_v2", False), "jina_v2_fused": lambda: fading("jina_v2_fused", True),
         "jina_v3": lambda: rotated_bert("jina_v3", "jina-bert-v3", 2),
         "nomic_moe": lambda: rotated_bert("nomic_moe", "nomic-bert-moe", 4, 4),
         "modern": lambda: modern("modern", CLS), "modern_silu": lambda: modern("modern_silu", MEAN, "silu"),
         "modern_rank": lambda: modern("modern_rank", RANK),
         "modern_rank_cls": lambda: modern("modern_rank_cls", RANK, judges="cls"),
         "eurobert": lambda: euro("eurobert", "eurobert", MEAN, False),
         "llama_embed": lambda: euro("llama_embed", "llama-embed", MEAN, True),
         "bert": lambda: bert(CLS, "bert"), "bert_mean": lambda: bert(MEAN, "bert_mean"), "xlmr_rank": xlmr_rank,
         "nomic": nomic, "gemma": gemma, "qwen3": lambda: qwen3(LAST, "qwen3"),
         "qwen3_rank": lambda: qwen3(RANK, "qwen3_rank")}


def in_double(model, weights, texts):
    """Rows of each text after the last norm, and scores where the model has some; every request for float32 being one
    for float64."""
    model = model.double().eval()
    missing, extra = model.load_state_dict(weights, strict=False)
    assert not extra and not [n for n in missing if "position_ids" not in n and "token_type_ids" not in n], (missing,
                                                                                                            extra)
    for module in model.modules():  # tables of angles are no weights
        for name, buffer in list(module.named_buffers(recurse=False)):
            if "inv_freq" in name:
                p = model.config.rope_parameters
                p = p[name.split("_inv_freq")[0].replace("_original", "")] if "rope_theta" not in p else p
                n = 2 * buffer.shape[0]
                setattr(module, name, p["rope_theta"] ** (-torch.arange(0, n, 2, dtype=torch.float64) / n))
    kept, kept_to, soft = torch.Tensor.float, torch.Tensor.to, torch.nn.functional.softmax

    def double(value):
        return torch.float64 if value is torch.float32 else value
    torch.Tensor.float = lambda self: self.double()
    torch.Tensor.to = lambda self, *a, **k: kept_to(self, *map(double, a), **{n: double(v) for n, v in k.items()})
    torch.nn.functional.softmax = lambda x, *a, **k: soft(x, *a, **{n: double(v) for n, v in k.items()})
    body = getattr(model, "roberta", None) or getattr(model, "model", model)
    try:
        out = []
        with torch.no_grad():
            for ids in texts:
                more = {"position_ids": torch.arange(2, 2 + len(ids))[None]} if hasattr(model, "roberta") else {}
                ids = torch.tensor([ids])
                more["attention_mask"] = torch.ones_like(ids)
                rows = body(ids, **more).last_hidden_state[0].double().numpy()
                scores = None
                if body is not model:
                    scores = model(ids, **more).logits[0].double().numpy()
                out.append((rows, scores))
        return out
    finally:
        torch.Tensor.float, torch.Tensor.to, torch.nn.functional.softmax = kept, kept_to, soft


def rounded(x):
    return [round(float(v), 8) for v in x]


def main():
    folder, names = sys.argv[1], sys.argv[2:] or sorted(CASES)
    for name in names:
        c, model, weights, behind = CASES[name]()
        pooling = next(v for k, _, v in c.kv if k.endswith(".pooling_type"))
        out = {"case": c.name, "arch": c.arch, "hf_class": c.hf_class, "name_prefix": "", "kv": c.kv,
               "tensors": c.tensors, "texts": []}
        texts = (SHORT, LONG)
        for ids, (rows, scores) in zip(texts, in_double(model, weights, texts) if model else by_reference(c, texts)):
            pooled = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}
            if pooling == RANK:
                own = scores if c.arch in ("bert", "modern-bert") else np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
            else:
                own = pooled[{MEAN: "mean", CLS: "cls", LAST: "last"}[pooling]]
                own = behind(torch.from_numpy(own)).numpy() if behind else own
                own = own / np.sqrt((own * own).sum())
            text = {"ids": ids, "embedding": rounded(own)}
            if not behind:
                text["pooled"] = {k: rounded(v) for k, v in pooled.items()}
            if ids is SHORT:
                text["rows"] = {str(i): rounded(rows[i]) for i in (0, 5, len(ids) - 1)}
            out["texts"].append(text)
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(out, f)
            f.write("\n")
        print("%-12s %d tensors" % (name, len(c.tensors)))


if __name__ == "__main__":
    main()
