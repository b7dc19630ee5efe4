#!/usr/bin/env python3
"""Blocks that draft further tokens (multi-token prediction), which transformers' classes pass over: `hone convert` keeps
them. For each family that has them a small random model is saved by transformers, and a block with other random numbers
is added to the folder as checkpoints have it; then

  1. the converted file has a block more, nextn_predict_layers, and of that block the tensors that the last layer which
     attends has, and those that join (names of llama.cpp), with the numbers of the folder,
  2. all its other tensors, and the logits, are those of the folder without the block,
  3. the file becomes a folder again with the same tensors, and that one the same file,
  4. with --folders DIR the folders are left there, for other converters.

    check_convert_drafts.py HONE [--case NAME ...] [--folders DIR]

Needs torch, transformers, safetensors and gguf; 77 without.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import check_convert as cc
import check_transformers as ct
import safetensors.torch as st
from check_transformers import np, torch

BEHIND = ("glm4moe", "deepseek-v3", "glm4.7-flash")
MTP = ("qwen3next", "qwen3.5", "qwen3.5-moe", "qwen3.5-images")
JOINTS = {"eh_proj": "fc", "enorm": "pre_fc_norm_embedding", "hnorm": "pre_fc_norm_hidden", "shared_head.norm": "norm"}


def drafted(folder, name):
    """Adds a block to a folder; its tensors by their names there."""
    path = os.path.join(folder, "model.safetensors")
    tensors = st.load_file(path)
    with open(os.path.join(folder, "config.json")) as f:
        whole = json.load(f)
    c = whole.get("text_config", whole)
    n, e, v = c["num_hidden_layers"], c["hidden_size"], c["vocab_size"]
    root = next(k for k in tensors if k.endswith("layers.0.input_layernorm.weight")).split("layers.")[0]
    last = max(i for i in range(n) if f"{root}layers.{i}.self_attn.q_norm.weight" in tensors
               or f"{root}layers.{i}.self_attn.o_proj.weight" in tensors)
    g = torch.Generator().manual_seed(len(name))
    own = {}
    for k, t in tensors.items():
        if k.startswith(f"{root}layers.{last}."):
            tail = k[len(f"{root}layers.{last}."):]
            own[(f"mtp.layers.0.{tail}" if name in MTP else f"{root}layers.{n}.{tail}")] = \
                torch.randn(t.shape, generator=g).to(t.dtype)
    for behind, mtp in JOINTS.items():
        shape = (e, 2 * e) if behind == "eh_proj" else (e,)
        own[f"mtp.{mtp}.weight" if name in MTP else f"{root}layers.{n}.{behind}.weight"] = torch.randn(shape, generator=g)
    if name not in MTP:
        own[f"{root}layers.{n}.embed_tokens.weight"] = torch.randn((v, e), generator=g)
        own[f"{root}layers.{n}.shared_head.head.weight"] = torch.randn((v, e), generator=g)
    st.save_file({**tensors, **own}, path, {"format": "pt"})
    c["mtp_num_hidden_layers" if name in MTP else "num_nextn_predict_layers"] = 1
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(whole, f)
    return own, n, last


def norm_of(tensor, name):
    """What the file holds of a norm's weights."""
    return 1 + tensor if name in MTP else tensor


def check(hone, name, row, folder):
    c, model, _ = cc.saved(name, row, 11)
    plain, with_it = os.path.join(folder, name + "-plain"), os.path.join(folder, name)
    model.save_pretrained(plain)
    shutil.copytree(plain, with_it)
    own, n, last = drafted(with_it, name)
    for f in (plain, with_it):
        cc.convert(hone, f, f + ".gguf", "--type", "F32")
    was, now = cc.read(plain + ".gguf"), cc.read(with_it + ".gguf")
    keys, old = cc.keys_of(with_it + ".gguf"), cc.keys_of(plain + ".gguf")
    arch = keys["general.architecture"]
    assert keys[arch + ".block_count"] == n + 1 and keys[arch + ".nextn_predict_layers"] == 1
    differ = {k for k in keys if keys[k] != old.get(k)} - {arch + ".block_count", arch + ".nextn_predict_layers"}
    assert all(k.startswith("general.") for k in differ), differ

    here = {k: x for k, x in now.items() if k.startswith(f"blk.{n}.")}
    assert set(now) - set(here) == set(was) and all(np.array_equal(now[k], was[k]) for k in was), "other tensors differ"
    want = {k.replace(f"blk.{last}.", f"blk.{n}.") for k in was if k.startswith(f"blk.{last}.")}
    want |= {f"blk.{n}.nextn.{j}.weight" for j in ("eh_proj", "enorm", "hnorm", "shared_head_norm")}
    if name not in MTP:
        want |= {f"blk.{n}.nextn.{j}.weight" for j in ("embed_tokens", "shared_head_head")}
    assert set(here) == want, set(here) ^ want
    assert sum(x.size for x in here.values()) == sum(t.numel() for t in own.values()), "numbers are lost"
    at = "mtp.%s.weight" if name in MTP else next(iter(own)).split("layers.")[0] + f"layers.{n}.%s.weight"
    for behind, mtp in JOINTS.items():
        t = own[at % (mtp if name in MTP else behind)].numpy()
        t = t if behind == "eh_proj" else norm_of(t, name)
        assert np.array_equal(here[f"blk.{n}.nextn.{behind.replace('.', '_')}.weight"], t), behind
    first = own[("mtp.layers.0." if name in MTP else at.split("%s")[0]) + "input_layernorm.weight"].numpy()
    assert np.array_equal(here[f"blk.{n}.attn_norm.weight"], norm_of(first, name)), "attn_norm"

    ids = [int(x) for x in np.random.default_rng(5).integers(0, c.get_text_config().vocab_size, 40)]
    a, b = (ct.hone_logits(hone, f + ".gguf", ids, c.get_text_config().vocab_size, ["-t", "1"]) for f in (plain, with_it))
    assert np.array_equal(a, b), "other logits"

    back = with_it + "-back"
    cc.convert(hone, with_it + ".gguf", back)
    tensors = st.load_file(os.path.join(back, "model.safetensors"))
    first = st.load_file(os.path.join(with_it, "model.safetensors"))
    for k, t in own.items():
        k = k if k in tensors else k.replace("model.language_model.", "model.")
        near = 2e-7 if name in MTP and t.dim() == 1 else 0
        assert k in tensors and torch.allclose(tensors[k].float(), t.float(), rtol=near, atol=near), k
    cc.convert(hone, back, back + ".gguf", "--type", "F32")
    again, keys_again = cc.read(back + ".gguf"), cc.keys_of(back + ".gguf")
    assert set(again) == set(now) and all(np.array_equal(again[k], now[k]) for k in now), "not the same file again"
    assert keys_again[arch + ".nextn_predict_layers"] == 1
    return "ok, %d tensors of %d layers and a block" % (len(now), n)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone")
    p.add_argument("--case", nargs="*")
    p.add_argument("--folders")
    args = p.parse_args()
    bad = 0
    rows = cc.rows()
    with tempfile.TemporaryDirectory() as tmp:
        folder = args.folders or tmp
        os.makedirs(folder, exist_ok=True)
        for name in args.case or BEHIND + MTP:
            try:
                said = check(args.hone, name, rows[name], folder)
            except (AssertionError, RuntimeError, KeyError) as e:
                said = "%s: %s" % (type(e).__name__, e)
            print("%-16s %s" % (name, said), flush=True)
            bad += not said.startswith("ok")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
