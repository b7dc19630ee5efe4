#!/usr/bin/env python3
"""Every member of config.json, changed and taken away: what hone makes of it, or refuses.

For each row of check_convert.py a small random model is saved by transformers. Then one member of its config after the
other, those of rotations too, is given other values (numbers off by one, doubled, halved; truth turned round; lists
reversed; other activations; where it was null several kinds) and is left out. Each time, with the same tensors:

  - `hone convert` refuses (transformers may run it all the same), or
  - its logits are those of transformers' model of that config within 1e-5 of their range, or
  - transformers itself cannot load that config, or not with those tensors.

A member that asks for another formula and is read over shows at once.

    check_convert_members.py HONE [--case NAME ...] [--n-tok N]      (torch, transformers, gguf; 77 without)
"""
import argparse
import copy
import json
import os
import shutil
import sys
import tempfile
import zlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import check_convert as cc
import check_transformers as ct
from check_transformers import np, torch, transformers

# Of training, of generation, of Python; sizes of the vocabulary are shapes.
IDLE = set("architectures model_type transformers_version dtype torch_dtype use_cache bos_token_id eos_token_id vocab_size "
           "pad_token_id initializer_range attention_dropout resid_pdrop attn_pdrop embd_pdrop _name_or_path".split())
ACTS = ["silu", "gelu_pytorch_tanh", "relu", "gelu", "relu2"]

# Differences that docs/CONVERT.md tells of, by the beginning of what was done.
KNOWN = {
    "": ("hidden_act = 'gelu'", "hidden_act gone", "hidden_activation = 'gelu'", "activation_function = 'gelu'"),
    "mistral": ("sliding_window = ",),  # hone runs no more positions than the window, unless asked to as here
    "mixtral": ("sliding_window = ",),
    "phi3": ("sliding_window = ",),
    "ministral3": ("sliding_window = ",),
    "starcoder2": ("sliding_window = ",),
    "gpt-oss": ("rope_parameters.truncate = False", "rope_parameters gone"),  # the class has it false
    "dbrx": ("rope_parameters.rope_theta gone", "rope_parameters gone"),  # transformers forgets attn_config's base
    "deepseek-v2": ("norm_topk_prob = True",),  # transformers reads over it, DeepSeek's own program does not
}


def others(name, v):
    """Values that a member may have instead."""
    if isinstance(v, bool):
        return [not v]
    if isinstance(v, int):
        return [v + 1, v * 2] + ([v - 1, v // 2] if v > 1 else [])
    if isinstance(v, float):
        return [v * 1.5, v * 0.5]
    if isinstance(v, str):
        return [a for a in ACTS if a != v] if v in ACTS or "act" in name else []
    if isinstance(v, list):
        return [v[::-1], v[1:] + v[:1]] if len(set(map(str, v))) > 1 else []
    return [True, False, 1, 2, 20, 0.5] if v is None else []


def changes(o, path=()):
    """(what was done, how it is done) of every member of an object, however deep."""
    for k, v in o.items():
        if not path and k in IDLE:
            continue
        here = (*path, k)
        if isinstance(v, dict):
            yield from changes(v, here)
        for other in others(k, v):
            yield "%s = %r" % (".".join(here), other), here, other
        yield "%s gone" % ".".join(here), here, None


def changed(config, path, value, gone):
    config = copy.deepcopy(config)
    o = config
    for k in path[:-1]:
        o = o[k]
    if gone:
        del o[path[-1]]
    else:
        o[path[-1]] = value
    return config


def loaded(row, folder, state):
    """transformers' model of the folder's config with these tensors, in float64; None: they do not fit."""
    with ct.exact():
        c = getattr(transformers, row["cls"] + "Config").from_pretrained(folder)
        model = cc.built(row, c, experts_implementation="eager").double().eval()
    own = model.state_dict(keep_vars=True)
    if set(state) - set(own):
        return None
    with torch.no_grad():
        for n, p in own.items():
            if n == "lm_head.weight" and c.tie_word_embeddings and n not in state:
                continue
            if n not in state or tuple(p.shape) != state[n].shape:
                return None
            p.data.copy_(torch.from_numpy(state[n]))
    return model


def reference(row, folder, state, ids):
    """Its logits; None: transformers cannot do it."""
    try:
        model = loaded(row, folder, state)
        with ct.exact():
            y = ct.transformers_logits(model, ids) if model else None
    except Exception:
        return None
    return y if y is not None and np.isfinite(y).all() else None


def known(name, what):
    return any(name.startswith(k) and what.startswith(v) for k, v in KNOWN.items())


def check(name, row, args, folder):
    """Counts, and what is wrong."""
    c, model, state = cc.saved(name, row, args.seed)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    cc.cleaned(folder, c)
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    ids = [int(i) for i in rng.integers(0, config["vocab_size"], args.n_tok)]
    n, wrong = dict(same=0, refused=0, skipped=0, known=0), []
    for what, where, value in [("as it is", (), None), *changes(config)]:
        with open(path, "w") as f:
            json.dump(changed(config, where, value, what.endswith(" gone")) if where else config, f)
        try:
            cc.convert(args.hone, folder, folder + ".gguf", "--type", "F32")
        except RuntimeError as e:
            n["refused"] += 1
            if not where:
                wrong.append(str(e))
            continue
        ref = reference(row, folder, state, ids)
        if ref is None:
            n["skipped"] += 1
            continue
        y = ct.hone_logits(args.hone, folder + ".gguf", ids, ref.shape[1], ["-t", "1", "-c", str(args.n_tok)])
        far = np.abs(y - ref).max() / (ref.max() - ref.min())
        if far <= row.get("tol", 1e-5):
            n["same"] += 1
        elif known(name, what):
            n["known"] += 1
        else:
            wrong.append("%s: logits differ by %.1e of their range" % (what, far))
    return n, wrong


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("--case", action="append", choices=list(cc.rows()))
    ap.add_argument("--n-tok", type=int, default=100)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-members-") as tmp:
        for name, row in cc.rows().items():
            if args.case and name not in args.case or {"around", "sees", "rename"} & set(row):
                continue
            n, wrong = check(name, row, args, os.path.join(tmp, "m"))
            failed += len(wrong)
            print("%-20s %s" % (name, ", ".join("%d %s" % (v, k) for k, v in n.items() if v)), flush=True)
            for w in wrong:
                print("    WRONG", w, flush=True)
    print("%d wrong" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
