#!/usr/bin/env python3
"""Training against PyTorch and PEFT: the same weights, data and first adapter, 50 steps of AdamW.

    python3 tests/dev/check_train.py build/release/hone [models/hone-tiny.gguf]

Needs torch, transformers, peft, gguf, numpy. For llama, qwen2 and qwen3 of a small shape it
compares the losses of every step and the adapters at the end, then logits with the adapter
(hone's runtime against PEFT). Prints one line a case; exits 1 if a bar is missed:
losses 1e-3 relative, adapter weights 1e-3 of their range, logits 1e-3 of theirs.
"""
import json, os, subprocess, sys, tempfile

import gguf
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

HONE = os.path.abspath(sys.argv[1])
VOCAB_OF = sys.argv[2] if len(sys.argv) > 2 else "models/hone-tiny.gguf"
STEPS, SEQ = 50, 64
TEXTS = ["Once upon a time there was a small red boat.", "The cat sat under the old tree and looked at the birds all day.",
         "Mia found a shiny key near the river. She gave it to her brother.", "It rained."]
MODULES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
           "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def permute(w, n_head):
    """Rows from halves to neighbouring pairs, as files of architecture llama have them."""
    return w.reshape(n_head, 2, w.shape[0] // n_head // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def vocabulary(writer):
    reader = gguf.GGUFReader(VOCAB_OF)
    for name, field in reader.fields.items():
        if not name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        value = field.contents()
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(name, value, kind, field.types[1])
        else:
            writer.add_key_value(name, value, kind)
    return len(reader.fields["tokenizer.ggml.tokens"].contents())


def model_of(arch, n_vocab):
    shape = dict(vocab_size=n_vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=256, rms_norm_eps=1e-6, tie_word_embeddings=arch != "llama")
    shape["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0}
    torch.manual_seed(1)
    if arch == "llama":
        m = LlamaForCausalLM(LlamaConfig(**shape, head_dim=16))
    elif arch == "qwen2":
        m = Qwen2ForCausalLM(Qwen2Config(**shape))
    else:
        m = Qwen3ForCausalLM(Qwen3Config(**shape, head_dim=16))
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.normal_(1.0 if "norm" in name else 0.0, 0.1)
    return m.double()  # so that only hone rounds


def write_base(m, arch, path):
    c = m.config
    w = gguf.GGUFWriter(path, arch)
    n_vocab = vocabulary(w)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_key_length(16)
    w.add_value_length(16)
    w.add_rope_dimension_count(16)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.add_vocab_size(n_vocab)
    for name, p in m.state_dict().items():
        x = p.numpy()
        if name == "lm_head.weight":
            if c.tie_word_embeddings:
                continue
            out = "output.weight"
        elif name == "model.embed_tokens.weight":
            out = "token_embd.weight"
        elif name == "model.norm.weight":
            out = "output_norm.weight"
        else:
            _, _, il, rest = name.split(".", 3)
            rest, end = rest.rsplit(".", 1)
            if arch == "llama" and rest in ("self_attn.q_proj", "self_attn.k_proj"):
                x = permute(x, c.num_attention_heads if "q_proj" in rest else c.num_key_value_heads)
            names = dict(MODULES, **{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
                                     "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"})
            out = f"blk.{il}.{names[rest]}.{end}"
        w.add_tensor(out, np.ascontiguousarray(x, dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def hone(*args):
    r = subprocess.run([HONE, *args], capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"{' '.join(args)}: exit {r.returncode}: {r.stderr}")
    return r.stdout


def adapter(path):
    return {t.name: np.array(t.data, dtype=np.float32) for t in gguf.GGUFReader(path).tensors}


def check(arch, targets, rslora, folder):
    n_vocab = len(gguf.GGUFReader(VOCAB_OF).fields["tokenizer.ggml.tokens"].contents())
    m = model_of(arch, n_vocab)
    base, data, out = (os.path.join(folder, n) for n in (f"{arch}.gguf", "data.jsonl", f"{arch}-{targets}.gguf"))
    write_base(m, arch, base)
    with open(data, "w") as f:
        for t in TEXTS:
            f.write(json.dumps({"text": t}) + "\n")
    common = ["-m", base, "--data", data, "--rank", "4", "--alpha", "8", "--targets", targets, "--seq", str(SEQ), "--batch", str(len(TEXTS)), "--accum", "1",
              "--pack", "off", "--mask", "none", "--weight-decay", "0.1", "--clip", "1", "--seed", "3", "--fresh"]
    if rslora:
        common.append("--rslora")
    first = out + ".first"
    hone("train", *common, "--steps", "1", "--lr", "1e-30", "--schedule", "constant", "--warmup", "0", "-o", first)
    hone("train", *common, "--steps", str(STEPS), "--lr", "5e-3", "--schedule", "linear", "--warmup", "0.1", "--min-lr", "1e-4", "-o", out)
    log = [json.loads(l) for l in open(out + ".jsonl")]
    losses = [r["loss"] for r in log if r["kind"] == "step"]
    norms = [r["grad_norm"] for r in log if r["kind"] == "step"]
    rates = [r["lr"] for r in log if r["kind"] == "step"]
    n_target = [r["n_target"] for r in log if r["kind"] == "step"][0]

    ids = [json.loads(hone("tokenize", "-m", base, "--json", "-p", t)) for t in TEXTS]
    ids = [r["ids"] for r in ids]
    eos = int(gguf.GGUFReader(VOCAB_OF).fields["tokenizer.ggml.eos_token_id"].contents())
    ids = [i if i[-1] == eos else i + [eos] for i in ids]
    total = sum(len(i) - 1 for i in ids)
    assert total == n_target, f"{total} targets here, {n_target} there"

    wanted = {"qv": ["q_proj", "v_proj"], "attn": ["q_proj", "k_proj", "v_proj", "o_proj"], "all": [n.split(".")[1] for n in MODULES]}[targets]
    p = get_peft_model(m, LoraConfig(r=4, lora_alpha=8, target_modules=wanted, lora_dropout=0.0, use_rslora=rslora, task_type="CAUSAL_LM"))
    begin = adapter(first)
    params = {}
    for name, q in p.named_parameters():
        if not q.requires_grad:
            continue
        il = name.split("layers.")[1].split(".")[0]
        module = next(v for k, v in MODULES.items() if k in name)
        key = f"blk.{il}.{module}.weight.lora_{'a' if 'lora_A' in name else 'b'}"
        params[key] = q
        with torch.no_grad():
            q.copy_(torch.from_numpy(begin[key]) if key.endswith("a") else torch.zeros_like(q))
    assert set(params) == set(begin)
    opt = torch.optim.AdamW(list(params.values()), lr=1.0, weight_decay=0.1)
    worst = worst_norm = 0.0
    for step in range(STEPS):
        for g in opt.param_groups:
            g["lr"] = rates[step]
        loss = sum(torch.nn.functional.cross_entropy(p(input_ids=torch.tensor([i])).logits[0, :-1], torch.tensor(i[1:]), reduction="sum") for i in ids) / total
        opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(params.values()), 1.0)
        opt.step()
        worst = max(worst, abs(losses[step] / loss.item() - 1))
        worst_norm = max(worst_norm, abs(norms[step] / norm.item() - 1))
    end, diff = adapter(out), 0.0
    for key, q in params.items():
        want = q.detach().numpy()
        if arch == "llama" and key.endswith("_b") and ("attn_q." in key or "attn_k." in key):
            want = permute(want, m.config.num_attention_heads if "attn_q" in key else m.config.num_key_value_heads)
        diff = max(diff, np.abs(end[key] - want).max() / np.abs(want).max())
    print(f"{arch:6} {targets:4} rslora {int(rslora)}: losses {losses[0]:.4f} to {losses[-1]:.4f}, worst difference {worst:.2e}; "
          f"gradient norms {worst_norm:.2e}; adapters {diff:.2e}", end="", flush=True)
    bad = worst > 1e-3 or diff > 1e-3
    if "--lora" in hone("logits", "--help"):
        raw = subprocess.run([HONE, "logits", "-m", base, "--lora", out, "--all", "--kv", "f32", "--ids", ",".join(map(str, ids[2]))],
                             capture_output=True, check=True).stdout
        with torch.no_grad():
            want = p(input_ids=torch.tensor([ids[2]])).logits[0].numpy()
        have = np.frombuffer(raw, dtype=np.float32).reshape(want.shape)
        d = np.abs(have - want).max() / (want.max() - want.min())
        print(f"; logits {d:.2e} of the range", end="")
        bad |= d > 1e-3
    print("  MISSED" if bad else "")
    return not bad


def main():
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for arch in ("llama", "qwen2", "qwen3"):
            for targets, rslora in (("qv", False), ("attn", True), ("all", False)):
                good &= check(arch, targets, rslora, folder)
    sys.exit(0 if good else 1)


main()
