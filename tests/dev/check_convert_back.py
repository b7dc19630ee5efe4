#!/usr/bin/env python3
"""From a GGUF file back to a folder: `hone convert FILE.gguf -o FOLDER`. For each row of check_convert.py,

  1. transformers saves a small random model; hone converts the folder to GGUF and that file back to a folder,
  2. transformers loads the new folder (from_pretrained, nothing missing, nothing left over): its tensors must be those
     of the first folder bit for bit (1 + w and −exp: within rounding), its logits those of the first model within 1e-5
     of their range,
  3. hone converts the new folder again: the same bytes as the first GGUF file.

    check_convert_back.py HONE [--case NAME ...] [--keep FOLDER]

Needs torch, transformers, safetensors and gguf; 77 without.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import check_convert as cc
import check_transformers as ct
from check_transformers import np, torch, transformers


def hone(*args):
    r = subprocess.run([HONE, "convert", *args], capture_output=True, text=True)
    return None if r.returncode == 0 else f"rc {r.returncode}: {r.stderr.strip().splitlines()[-1:]}"


def logits(model, ids):
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]))
    return (out.logits if hasattr(out, "logits") else out.last_hidden_state)[0].double().numpy()


def loaded(cls, folder, dtype):
    model, info = cls.from_pretrained(folder, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    wrong = {k: v for k, v in info.items() if v and k != "error_msgs"}
    return model.eval(), wrong


def check(name, row, seed, top):
    first, again = os.path.join(top, "m", "model"), os.path.join(top, "n", "model")
    a, b = os.path.join(top, "a.gguf"), os.path.join(top, "b.gguf")
    for d in (first, again):
        shutil.rmtree(d, ignore_errors=True)
    for dtype in (torch.float32, torch.bfloat16):
        shutil.rmtree(first, ignore_errors=True)
        shutil.rmtree(again, ignore_errors=True)
        c, model, _ = cc.saved(name, row, seed)
        model = model.to(dtype)
        model.save_pretrained(first)
        cc.cleaned(first, c)
        if "rename" in row:
            cc.renamed(first, row["rename"])
        e = hone(first, "-o", a)
        if e:
            return f"{dtype}: forward: {e}"
        e = hone(a, "-o", again)
        if e:
            return f"{dtype}: back: {e}"
        e = hone(again, "-o", b)
        if e:
            return f"{dtype}: forward again: {e}"
        if open(a, "rb").read() != open(b, "rb").read():
            return f"{dtype}: the second GGUF file differs from the first"
        cls = type(model)
        m1, w1 = loaded(cls, first, torch.float32)
        m2, w2 = loaded(cls, again, torch.float32)
        if w2 and w2 != w1:
            return f"{dtype}: from_pretrained: {w2}"
        rounded = 0
        two = dict(m2.named_parameters())
        for k, t in m1.named_parameters():
            if row["cls"].startswith("FalconH1"):  # the config's factors are in the matrices now
                continue
            if not torch.equal(t, two[k]):
                if not torch.allclose(t, two[k], rtol=1e-6, atol=1e-7):
                    return f"{dtype}: {k} differs by {(t - two[k]).abs().max().item()}"
                rounded += 1
        ids = np.random.default_rng(3).integers(0, m1.config.get_text_config().vocab_size, 100).tolist()
        x, y = logits(m1, ids), logits(m2, ids)
        off = np.abs(x - y).max() / (x.max() - x.min())
        if not off < 1e-5:
            return f"{dtype}: logits differ by {off:.2e} of their range"
        c1, c2 = m1.config.to_dict(), m2.config.to_dict()
        for k in ("vocab_size", "hidden_size", "num_hidden_layers", "hidden_act", "max_position_embeddings"):
            if c1.get(k) is not None and c1[k] != c2.get(k) and (name, k) != ("mistral4", "max_position_embeddings"):
                return f"{dtype}: {k} = {c2.get(k)}, was {c1.get(k)}"
        note = f", {rounded} tensors rounded" if rounded else ""
    return f"ok: logits {off:.1e}{note}"


def main():
    global HONE
    p = argparse.ArgumentParser()
    p.add_argument("hone")
    p.add_argument("--case", action="append")
    p.add_argument("--keep")
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    HONE = os.path.abspath(a.hone)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory() as t:
        for name, row in cc.rows().items():
            if a.case and name not in a.case:
                continue
            if "around" in row:  # of several inputs: what comes back is the text's model alone, which other rows have
                continue
            try:
                say = check(name, row, a.seed, a.keep or t)
            except Exception as e:
                say = f"{type(e).__name__}: {str(e)[:300]}"
            bad += not say.startswith("ok")
            print(f"{name:24} {say}", flush=True)
    print(f"{bad} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
