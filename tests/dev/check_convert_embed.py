#!/usr/bin/env python3
"""Folders of models that give rows instead of a next token, as transformers saves them: `hone convert`, then `hone embed`
against transformers in float64: rows of all positions, scores of classifiers, modules of sentence-transformers.

    check_convert_embed.py HONE [--case NAME]          (needs torch, transformers, safetensors; 77 without)
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import numpy as np
    import torch
    import transformers as tf
    from safetensors.torch import save_file
except ImportError as e:
    print(f"SKIP: {e}; needs torch, transformers and safetensors", file=sys.stderr)
    sys.exit(77)

SMALL = dict(vocab_size=101, hidden_size=72, num_hidden_layers=2, num_attention_heads=6, intermediate_size=100,
             max_position_embeddings=194, attn_implementation="eager")
GEMMA = dict(SMALL, num_hidden_layers=7, num_key_value_heads=2, head_dim=20, sliding_window=20,
             query_pre_attn_scalar=20, use_bidirectional_attention=True)
IDS = [(7 * i * i + 3 * i + 5) % 97 + 3 for i in range(150)]


def bert(cls, pooling=None, **more):
    return getattr(tf, cls)(tf.BertConfig(**SMALL, **more)), pooling


def xlmr(cls, pooling=None, **more):
    """Two kinds of text: the key of another number is written with the tokenizer."""
    return getattr(tf, cls)(tf.XLMRobertaConfig(type_vocab_size=2, **SMALL, **more)), pooling


CASES = {
    "bert": lambda: bert("BertModel", "cls"),
    "bert-mlm": lambda: bert("BertForMaskedLM"),
    "bert-scores": lambda: bert("BertForSequenceClassification", num_labels=3),
    "xlm-roberta": lambda: xlmr("XLMRobertaModel", "mean"),
    "xlm-roberta-score": lambda: xlmr("XLMRobertaForSequenceClassification", num_labels=1),
    "nomic-bert": lambda: (tf.NomicBertModel(tf.NomicBertConfig(**SMALL)), "mean"),
    "embeddinggemma": lambda: (tf.Gemma3TextModel(tf.Gemma3TextConfig(**GEMMA)), "mean"),
    "qwen3-last": lambda: (tf.Qwen3ForCausalLM(tf.Qwen3Config(**dict(SMALL, num_key_value_heads=2, head_dim=20))),
                           "lasttoken"),
}


def fill(model):
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=g)
            if p.ndim == 1:
                x = 0.2 * x + (1 if "orm" in name and name.endswith("weight") and "gemma" not in model.config.model_type else 0)
            else:
                x = (0.5 if "embeddings" in name else 1 / p.shape[-1] ** 0.5) * x
            p.copy_(x.float())
    return model.eval()


def modules(folder, pooling, dense):
    """What sentence-transformers writes; the matrices behind pooling."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("%d_Dense" % (2 + i), "Dense") for i in range(len(dense))]
    json.dump([dict(idx=i, name=str(i), path=p, type="sentence_transformers.models." + k) for i, (p, k) in
               enumerate([*kinds, ("9_Normalize", "Normalize")])], open(os.path.join(folder, "modules.json"), "w"))
    os.makedirs(os.path.join(folder, "1_Pooling"))
    modes = dict(cls="cls_token", mean="mean_tokens", lasttoken="lasttoken")
    json.dump(dict({"pooling_mode_" + m: m == modes[pooling] for m in (*modes.values(), "max_tokens")},
                   word_embedding_dimension=72), open(os.path.join(folder, "1_Pooling", "config.json"), "w"))
    for i, w in enumerate(dense):
        d = os.path.join(folder, "%d_Dense" % (2 + i))
        os.makedirs(d)
        save_file({"linear.weight": w}, os.path.join(d, "model.safetensors"))
        json.dump(dict(in_features=w.shape[1], out_features=w.shape[0], bias=False,
                       activation_function="torch.nn.modules.linear.Identity"), open(os.path.join(d, "config.json"), "w"))


def run(hone, *args):
    p = subprocess.run([hone, *args], capture_output=True, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise RuntimeError(" ".join(args[:1]) + ": " + p.stderr.decode(errors="replace").strip())
    return p.stdout


def vectors(hone, path, *more):
    out = json.loads(run(hone, "embed", "-m", path, "--ids", ",".join(map(str, IDS)), "--json", "--kv", "f32", *more))
    text = out["texts"][0]
    return np.array(next(text[k] for k in ("rows", "embedding", "scores", "score") if k in text), np.float64)


def far(a, b):
    return float(np.abs(a - b).max() / (b.max() - b.min()))


def check(hone, folder, name):
    model, pooling = CASES[name]()
    fill(model).save_pretrained(folder)
    g = torch.Generator().manual_seed(4)
    dense = [torch.randn(40, 72, generator=g) / 8, torch.randn(24, 40, generator=g) / 6] if name == "embeddinggemma" else []
    if pooling:
        modules(folder, pooling, dense)
    run(hone, "convert", folder, "-o", folder + ".gguf", "--type", "F32")
    model = model.double()
    ids = torch.tensor([IDS])
    body = next((getattr(model, n) for n in ("bert", "roberta", "model") if hasattr(model, n)), model)
    with torch.no_grad():
        more = dict(attention_mask=torch.ones_like(ids))
        rows = body(ids, **more).last_hidden_state[0].numpy()
        scores = model(ids, **more).logits[0].numpy() if "score" in name else None
    worst = far(vectors(hone, folder + ".gguf", "--pooling", "none", "--no-normalize").reshape(rows.shape), rows)
    if pooling:
        own = {"mean": rows.mean(0), "cls": rows[0], "lasttoken": rows[-1]}[pooling]
        for w in dense:
            own = w.double().numpy() @ own
        worst = max(worst, far(vectors(hone, folder + ".gguf"), own / np.sqrt((own * own).sum())))
    if scores is not None:
        own = vectors(hone, folder + ".gguf")
        worst = max(worst, float(np.abs(own - scores).max() / np.abs(scores).max()))
    return "ok %.1e" % worst if worst <= 2e-5 else "differs by %.1e" % worst


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("--case", action="append", choices=list(CASES))
    args = ap.parse_args()
    tf.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-embed-") as tmp:
        for name in args.case or CASES:
            try:
                said = check(args.hone, os.path.join(tmp, name), name)
            except RuntimeError as e:
                said = str(e)
            failed += not said.startswith("ok")
            print("%-20s %s" % (name, said), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
