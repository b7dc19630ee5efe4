#!/usr/bin/env python3
"""Makes tests/golden/families/gemma3n_shared.json:  make_gemma3n.py > gemma3n_shared.json

Logits of huggingface/transformers (5.23, models/gemma3n) in float64 on torch (2.13): a model whose last layers read the
keys of earlier ones, and whose gates are sparse in some layers alone; the vector gemma3n has neither. Weights by the
rule of the other vectors (tests/dev/families_reference.py: rule), under the names that the file has.
"""
import json
import math
import os
import sys

import torch
from transformers import Gemma3nForCausalLM, Gemma3nTextConfig

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dev"))
from families_reference import rule  # noqa: E402

N_LAYER, N_EMBD, N_VOCAB, N_PLE, N_FF, RANK, STREAMS = 6, 32, 16, 8, 48, 8, 4
WINDOWED = [True, False, True, True, False, True]
SHARED = 3
SPARSITY = [0.95, 0.0, 0.8, 0.0, 0.9, 0.0]
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]

OUTER = {"token_embd": "embed_tokens", "output_norm": "norm", "per_layer_token_embd": "embed_tokens_per_layer",
         "per_layer_model_proj": "per_layer_model_projection", "per_layer_proj_norm": "per_layer_projection_norm"}
STACKED = {"altup_proj": "altup_projections.%d", "altup_unembd_proj": "altup_unembed_projections.%d"}
LAYER = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
         "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection",
         "post_norm": "post_per_layer_input_norm", "laurel_l": "laurel.linear_left",
         "laurel_r": "laurel.linear_right", "laurel_post_norm": "laurel.post_laurel_norm",
         "altup_router": "altup.modality_router", "altup_router_norm": "altup.router_norm",
         "altup_predict_coef": "altup.prediction_coefs", "altup_correct_coef": "altup.correction_coefs",
         "altup_correct_scale": "altup.correct_output_scale"}


def spread(name):
    """(s, o) of a tensor: its values are o + s·u."""
    if name in ("token_embd.weight", "per_layer_token_embd.weight"):
        return 1.0, 0.0
    return (0.25, 1.0) if "norm" in name or "scale" in name else (0.25, 0.0)


def fill(parameters, name, tensors):
    """Gives the rule's values for the tensor of that name to one parameter, or one after the other to several."""
    s, o = spread(name)
    shape = list(parameters[0].shape[::-1]) + ([len(parameters)] if len(parameters) > 1 else [])
    flat = torch.from_numpy(o + s * rule(name, math.prod(shape)))
    for p, part in zip(parameters, flat.chunk(len(parameters))):
        p.data.copy_(part.reshape(p.shape))
    tensors.append([name, shape, s, o])


def key_values(config):
    quantile = torch.distributions.Normal(0.0, 1.0).icdf
    scales = [quantile(torch.tensor(s, dtype=torch.float32)).item() for s in SPARSITY]
    u32 = {"block_count": N_LAYER, "context_length": 64, "embedding_length": N_EMBD, "vocab_size": N_VOCAB,
           "attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 8,
           "attention.value_length": 8, "attention.sliding_window": 4, "attention.shared_kv_layers": SHARED,
           "altup.active_idx": 0, "altup.num_inputs": STREAMS, "embedding_length_per_layer_input": N_PLE}
    f32 = {"rope.freq_base": 1e6, "rope.freq_base_swa": 1e4, "final_logit_softcapping": 30.0,
           "attention.layer_norm_rms_epsilon": config.rms_norm_eps}
    kv = [["general.architecture", "STRING", "gemma3n"]]
    kv += [["gemma3n." + k, "UINT32", v] for k, v in u32.items()]
    kv += [["gemma3n." + k, "FLOAT32", v] for k, v in f32.items()]
    kv.append(["gemma3n.feed_forward_length", "ARRAY:INT32", [N_FF] * N_LAYER])
    kv.append(["gemma3n.attention.sliding_window_pattern", "ARRAY:BOOL", WINDOWED])
    # JSON has no infinity
    kv.append(["gemma3n.activation_sparsity_scale", "ARRAY:FLOAT32", [x if x > -math.inf else "-inf" for x in scales]])
    return kv


def main():
    torch.set_default_dtype(torch.float64)
    config = Gemma3nTextConfig(
        vocab_size=N_VOCAB, vocab_size_per_layer_input=N_VOCAB, hidden_size=N_EMBD, hidden_size_per_layer_input=N_PLE,
        num_hidden_layers=N_LAYER, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        intermediate_size=[N_FF] * N_LAYER, sliding_window=4, num_kv_shared_layers=SHARED,
        layer_types=["sliding_attention" if w else "full_attention" for w in WINDOWED],
        activation_sparsity_pattern=SPARSITY, laurel_rank=RANK, max_position_embeddings=64, altup_num_inputs=STREAMS,
        altup_active_idx=0, final_logit_softcapping=30.0, tie_word_embeddings=True, rms_norm_eps=1e-6,
        attn_implementation="eager")
    model = Gemma3nForCausalLM(config).double().eval()
    named, tensors = dict(model.named_parameters()), []
    for name, hf in OUTER.items():
        fill([named["model.%s.weight" % hf]], name + ".weight", tensors)
    for name, hf in STACKED.items():
        fill([named["model.%s.weight" % (hf % i)] for i in range(STREAMS - 1)], name + ".weight", tensors)
    for il in range(N_LAYER):
        for name, hf in LAYER.items():
            full = "model.layers.%d.%s" % (il, hf)
            p = named.get(full + ".weight", named.get(full))
            if p is not None:
                fill([p], "blk.%d.%s.weight" % (il, name), tensors)
    filled = sum(math.prod(ne) for _, ne, _, _ in tensors)
    assert filled == sum(p.numel() for p in named.values()), "a parameter has no tensor"
    with torch.no_grad():
        y = model(torch.tensor([TOKENS])).logits[0]
    kv = ",\n ".join(json.dumps(e) for e in key_values(config))
    rows = ",\n ".join(json.dumps(t) for t in tensors)
    print('{"case": "gemma3n_shared", "arch": "gemma3n", "hf_class": "Gemma3nForCausalLM", "name_prefix": "", \n'
          '"kv": [%s], \n"tensors": [%s], \n"tokens": %s, "tolerance_f32": 4e-05, ' % (kv, rows, TOKENS))
    print('"logits": %s, "argmax": %s, "sum": %s}' % (
        json.dumps({str(t): [round(v, 6) for v in y[t].tolist()] for t in (0, 5, 11)}), y.argmax(-1).tolist(),
        [round(v, 5) for v in y.sum(-1).tolist()]))


if __name__ == "__main__":
    main()
