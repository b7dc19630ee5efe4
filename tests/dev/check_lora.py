#!/usr/bin/env python3
"""Compare hone's adapters with PEFT's on small random models.

For each architecture (the models of check_transformers.py) and several kinds of
adapter (few and all modules, rank-stabilised scaling, ranks and alphas by
pattern, some layers only) this script

  1. makes a PEFT model with random A and B, saves the adapter,
  2. computes the logits of every position with transformers + PEFT,
  3. runs `hone logits --lora FOLDER` on the GGUF of the base,
  4. has hone turn the folder into a GGUF adapter, runs that, and compares
     s*B*A, read by gguf-py with llama.cpp's rules, with PEFT's own delta,
  5. has hone turn the GGUF adapter into a PEFT folder and lets PEFT load it,
  6. merges (hone merge, F32) and runs the merged model,

each within --tol of the range of the logits. The base's own distance from the
adapted model is shown, so that nothing passes by having no effect. Kinds that
hone does not run must be refused by every command, with one line that says why.

Usage
    check_lora.py HONE [--case NAME]

Exit status: 0 all good, 1 a comparison failed, 2 usage, 77 skipped because a
package is not installed.
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_transformers as ct  # exits with 77 where torch or gguf is missing

try:
    import gguf
    import numpy as np
    import peft
    import torch
except ImportError as e:
    print(f"SKIP: {e}; needs peft", file=sys.stderr)
    sys.exit(77)

QV = ["q_proj", "v_proj"]
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
KINDS = {
    "qv r8": dict(r=8, lora_alpha=16, target_modules=QV),
    "all r5 rs": dict(r=5, lora_alpha=7, target_modules=ALL, use_rslora=True),
    "patterns": dict(r=4, lora_alpha=6, target_modules=ALL, rank_pattern={"q_proj": 9, "model.layers.1.mlp.up_proj": 3},
                     alpha_pattern={"k_proj": 20, "model.layers.0.mlp.down_proj": 1}),
    "layer 1": dict(r=3, lora_alpha=9, target_modules=ALL, layers_to_transform=[1]),
    "regex": dict(r=2, lora_alpha=4, target_modules=r".*\.(k_proj|gate_proj)$"),
    "dots": dict(r=4, lora_alpha=8, target_modules="all-linear", alpha_pattern={"q.proj": 30, "^model.layers.1.mlp.up.proj": -5, "proj": 99}),
    "head": dict(r=4, lora_alpha=8, target_modules=["lm_head", "v_proj"]),
}
# What hone does not run: it must say so and not leave a part out.
REFUSED = {
    "dora": dict(use_dora=True),
    "biases": dict(bias="all"),
    "own biases": dict(bias="lora_only"),
    "lora_bias": dict(lora_bias=True),
    "whole head": dict(modules_to_save=["lm_head"]),
    "whole table": dict(modules_to_save=["embed_tokens"]),
    "tokens": dict(trainable_token_indices=[1, 5]),
    "pissa": dict(init_lora_weights="pissa"),
    "olora": dict(init_lora_weights="olora"),
    "parameters": dict(target_parameters=["mlp.gate_proj.weight"]),
    "activated": dict(alora_invocation_tokens=[3, 4]),
    "replicated": dict(layer_replication=[[0, 2], [1, 3]]),
    "regex alpha": dict(alpha_pattern={r".*\.1\..*_proj": 70}),
    "embedding": dict(target_modules=["v_proj", "embed_tokens"]),
    "head's weight": dict(target_modules=["v_proj", "lm_head"]),
}


def make_adapter(model, kind, seed):
    pm = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **KINDS[kind])).eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in sorted(pm.named_parameters()):
            if "lora_" in name:
                p.copy_(torch.from_numpy((rng.standard_normal(tuple(p.shape)) * (0.2 if "lora_A" in name else 0.05)).astype(np.float32)))
    return pm


def hone(*cmd):
    p = subprocess.run(list(cmd), stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if p.returncode != 0:
        raise RuntimeError(f"{' '.join(cmd[1:3])}: exit status {p.returncode}: {p.stderr.decode(errors='replace').strip()[-600:]}")


def deltas(pm, case):
    """base tensor -> scale*B*A of PEFT, in the rows of the GGUF."""
    out = {}
    for name, mod in pm.base_model.model.named_modules():
        if not isinstance(mod, peft.tuners.lora.Linear):
            continue
        d = mod.get_delta_weight("default").detach().numpy()
        tensor = ct.gguf_name(name + ".weight")
        if case.arch == "llama" and tensor.endswith(("attn_q.weight", "attn_k.weight")):
            d = ct.interleave_rope_rows(d, case.n_head if "attn_q" in tensor else case.n_head_kv)
        out[tensor] = d
    return out


def check_gguf(path, want):
    rd = gguf.GGUFReader(path)
    field = lambda k: rd.fields[k].contents()
    assert field("general.type") == "adapter" and field("adapter.type") == "lora"
    alpha = field("adapter.lora.alpha")
    t = {x.name: np.array(x.data).reshape(tuple(reversed([int(n) for n in x.shape]))) for x in rd.tensors}
    names = {n[: -len(".lora_a")] for n in t}
    assert names == set(want) and len(t) == 2 * len(want), "other tensors than PEFT's"
    worst = 0
    for n in names:
        a, b = t[n + ".lora_a"].astype(np.float64), t[n + ".lora_b"].astype(np.float64)
        d = (alpha / b.shape[1] if alpha else 1.0) * (b @ a)
        worst = max(worst, np.abs(d - want[n]).max() / np.abs(want[n]).max())
    assert worst < 1e-5, f"s*B*A differs by {worst:.1e}"


def run(case, kind, args, tmp):
    base_path = os.path.join(tmp, case.name + ".gguf")
    rng = np.random.default_rng([args.seed, case.n_vocab])
    ids = [int(i) for i in rng.integers(0, case.n_vocab, 40)]
    model = ct.build_model(case, args.seed, False)
    if not os.path.exists(base_path):
        ct.write_gguf(base_path, case, model, False)
    base = ct.transformers_logits(model, ids)
    pm = make_adapter(model, kind, args.seed)
    ref = ct.transformers_logits(pm, ids)
    want = deltas(pm, case)
    rel = lambda y: float(np.abs(y - ref).max() / (ref.max() - ref.min()))
    stem = os.path.join(tmp, f"{case.name}-{kind.replace(' ', '-')}")
    pm.save_pretrained(stem + "-peft", save_embedding_layers=False)
    logits = lambda m, *extra: ct.hone_logits(args.hone, m, ids, case.n_vocab, list(extra))
    e = [rel(base), rel(logits(base_path, "--lora", stem + "-peft"))]
    hone(args.hone, "convert", stem + "-peft", "--base", base_path, "-o", stem + ".gguf")
    check_gguf(stem + ".gguf", want)
    e.append(rel(logits(base_path, "--lora", stem + ".gguf")))
    hone(args.hone, "convert", stem + ".gguf", "--base", base_path, "-o", stem + "-back")
    back = peft.PeftModel.from_pretrained(ct.build_model(case, args.seed, False), stem + "-back").eval()
    e.append(rel(ct.transformers_logits(back, ids)))
    hone(args.hone, "merge", "-m", base_path, "--lora", stem + ".gguf", "-o", stem + "-merged.gguf")
    e.append(rel(logits(stem + "-merged.gguf")))
    good = e[0] > 0.02 and max(e[1:]) <= args.tol
    print(f"{case.name:<12} {kind:<10} {len(want):>3} " + " ".join(f"{x:>9.1e}" for x in e) + ("  ok" if good else "  FAIL"))
    return good


def run_refused(case, kind, args, tmp):
    """PEFT saves it, hone must refuse the folder with a reason, whatever asks for it."""
    base_path = os.path.join(tmp, case.name + ".gguf")
    model = ct.build_model(case, args.seed, False)
    pm = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **{"r": 4, "target_modules": QV, **REFUSED[kind]}))
    folder = os.path.join(tmp, f"{case.name}-{kind.replace(' ', '-')}")
    pm.save_pretrained(folder)
    for cmd in (["logits", "-m", base_path, "--ids", "1,2", "--lora", folder], ["convert", folder, "--base", base_path, "-o", folder + ".gguf"],
                ["merge", "-m", base_path, "--lora", folder, "-o", folder + "-merged.gguf"]):
        p = subprocess.run([args.hone, *cmd], stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        said = p.stderr.decode(errors="replace").strip()
        if p.returncode != 3 or folder not in said or "\n" in said:
            print(f"{case.name:<12} {kind:<13} FAIL: {cmd[0]}: exit status {p.returncode}: {said[-300:]}")
            return False
    print(f"{case.name:<12} {kind:<13} refused: {said.split(folder, 1)[1][:110]}")
    return True


def main():
    ap = argparse.ArgumentParser(description="Compare hone's adapters with PEFT's on small random models.")
    ap.add_argument("hone")
    ap.add_argument("--case", action="append", choices=[c.name for c in ct.CASES])
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tol", type=float, default=1e-4)
    args = ap.parse_args()
    print(f"{'model':<12} {'adapter':<10} {'n':>3} {'base':>9} {'folder':>9} {'gguf':>9} {'in PEFT':>9} {'merged':>9}")
    good = True
    with tempfile.TemporaryDirectory() as tmp:
        for case in ct.CASES:
            if args.case and case.name not in args.case:
                continue
            for kind in KINDS:
                if kind == "head" and case.tied:
                    continue
                try:
                    good &= run(case, kind, args, tmp)
                except (RuntimeError, AssertionError) as e:
                    print(f"{case.name:<12} {kind:<10}  FAIL: {e}")
                    good = False
            for kind in REFUSED:
                good &= run_refused(case, kind, args, tmp)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
