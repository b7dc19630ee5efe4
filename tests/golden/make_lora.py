"""Makes lora_peft/: an adapter saved by PEFT for a llama of tests/unit/tiny_model.h's shape, and
lora_peft/delta.txt, samples of PEFT's own s*B*A with the rows as GGUF has them:
    python3 make_lora.py FOLDER
One line each: base tensor, row, column, value."""
import os, sys
import numpy as np, torch, peft, transformers

out = sys.argv[1]
H, G = 4, 2
cfg = transformers.LlamaConfig(vocab_size=16, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=H, num_key_value_heads=G,
                               head_dim=8, tie_word_embeddings=False)
model = transformers.AutoModelForCausalLM.from_config(cfg)
names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
targets = [n.split(".")[1] for n in names] + ["lm_head"]
pm = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=3, use_rslora=True, target_modules=targets, rank_pattern={"k_proj": 3},
                                                alpha_pattern={"model.layers.1.mlp.up_proj": 7, "o_proj": 1.5}))
rng = np.random.default_rng(6)
with torch.no_grad():
    for n, p in sorted(pm.named_parameters()):
        if "lora_" in n:
            p.copy_(torch.from_numpy(rng.integers(-64, 64, tuple(p.shape)).astype(np.float32) / 64))
pm.save_pretrained(out, save_embedding_layers=False)
os.path.exists(os.path.join(out, "README.md")) and os.remove(os.path.join(out, "README.md"))
with open(os.path.join(out, "delta.txt"), "w") as f:
    for n, mod in sorted(pm.base_model.model.named_modules()):
        if not isinstance(mod, peft.tuners.lora.Linear):
            continue
        d = mod.get_delta_weight("default").detach().numpy().astype(np.float64)
        if n == "lm_head":
            t = "output.weight"
        else:
            _, _, il, rest = n.split(".", 3)
            t = f"blk.{il}.{names[rest]}.weight"
        heads = H if "attn_q" in t else G if "attn_k" in t else 0
        if heads:  # Hugging Face's row h*8 + j*4 + i is GGUF's h*8 + 2i + j
            d = d.reshape(heads, 2, 4, -1).swapaxes(1, 2).reshape(d.shape)
        for k in range(12):
            r, c = (7 * k + 3) % d.shape[0], (5 * k + 2) % d.shape[1]
            f.write(f"{t} {r} {c} {d[r, c]:.9g}\n")
