#!/usr/bin/env python3
"""From a GGUF file back to a folder: `hone convert FILE.gguf -o FOLDER`. For each row of check_convert.py,

  1. transformers saves a small random model; hone converts the folder to GGUF and that file back to a folder,
  2. transformers loads the new folder (from_pretrained, nothing missing, nothing left over): its tensors must be those
     of the first folder bit for bit (1 + w and −exp: within rounding), its logits those of the first model within 1e-5
     of their range,
  3. hone converts the new folder again: the same bytes as the first GGUF file.

RWKV-7 is saved and loaded by flash-linear-attention (which loads without a GPU, and computes only there; skipped where
it is not installed). RWKV-6's class is in no package: its folder has the names that llama.cpp's converter knows it by.

    check_convert_back.py HONE [--case NAME ...] [--keep FOLDER]

Needs torch, transformers, safetensors and gguf; 77 without.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import check_convert as cc
import check_transformers as ct
from check_transformers import np, torch, transformers

sys.modules["fla"] = None  # where it is installed, classes of transformers would compute by it, which needs a GPU


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
            if c1.get(k) is not None and c1[k] != c2.get(k):
                return f"{dtype}: {k} = {c2.get(k)}, was {c1.get(k)}"
        note = f", {rounded} tensors rounded" if rounded else ""
    return f"ok: logits {off:.1e}{note}"


# ---- RWKV ------------------------------------------------------------------------------------------------------------

E, F, V, H, L = 128, 320, 97, 2, 3
RWKV = dict(hidden_size=E, num_hidden_layers=L, vocab_size=V, intermediate_size=F)


def rwkv6():
    """Tensors of Rwkv6ForCausalLM (RWKV/v6-Finch-*-HF), and its config."""
    low, decay = 12, 20
    t = {"rwkv.embeddings.weight": (V, E), "head.weight": (V, E)}
    t.update({f"rwkv.{n}.{s}": (E,) for n in ("ln_out", "blocks.0.pre_ln") for s in ("weight", "bias")})
    for i in range(L):
        b = f"rwkv.blocks.{i}."
        t.update({b + f"{n}.{s}": (E,) for n in ("ln1", "ln2", "attention.ln_x") for s in ("weight", "bias")})
        t.update({b + f"attention.time_maa_{c}": (1, 1, E) for c in "xwkvrg"})
        t.update({b + f"attention.{n}.weight": (E, E) for n in ("receptance", "key", "value", "gate", "output")})
        t.update({b + "attention.time_maa_w1": (E, 5 * low), b + "attention.time_maa_w2": (5, low, E),
                  b + "attention.time_decay": (1, 1, E), b + "attention.time_decay_w1": (E, decay),
                  b + "attention.time_decay_w2": (decay, E), b + "attention.time_faaaa": (H, E // H),
                  b + "feed_forward.time_maa_k": (1, 1, E), b + "feed_forward.time_maa_r": (1, 1, E),
                  b + "feed_forward.key.weight": (F, E), b + "feed_forward.receptance.weight": (E, E),
                  b + "feed_forward.value.weight": (E, F)})
    g = torch.Generator().manual_seed(11)
    return {k: torch.randn(s, generator=g) for k, s in t.items()}, dict(
        RWKV, architectures=["Rwkv6ForCausalLM"], model_type="rwkv6", attention_hidden_size=E, head_size=E // H,
        head_size_divisor=8, layer_norm_epsilon=1e-5, rescale_every=6, tie_word_embeddings=False, use_cache=True)


def known_to_llama_cpp(names):
    import gguf
    of = gguf.get_tensor_name_map(gguf.MODEL_ARCH.RWKV6, L)
    lerps = {f"time_maa_{c}" for c in "wkvrg"}  # it puts them side by side itself
    return [n for n in names if n.rsplit(".", 1)[-1] not in lerps and not of.get_name(n, try_suffixes=(".weight", ".bias"))]


def there_and_back(first, a, again, b):
    e = hone(first, "-o", a) or hone(a, "-o", again) or hone(again, "-o", b)
    same = not e and open(a, "rb").read() == open(b, "rb").read()
    return e or (None if same else "the second GGUF file differs from the first")


def compared(one, two):
    for k in sorted(set(one) | set(two)):
        if k not in one or k not in two:
            return f"{k} is in one folder alone"
        if one[k].shape != two[k].shape or not torch.equal(one[k].float(), two[k].float()):
            return f"{k} differs"
    return None


def check_rwkv(version, top):
    from safetensors.torch import load_file, save_file
    if version == 7:
        sys.modules.pop("fla")
        try:
            from fla.models import RWKV7Config, RWKV7ForCausalLM
        except ImportError as e:
            return f"ok: SKIP, {e}"
    first, again = os.path.join(top, "m", "model"), os.path.join(top, "n", "model")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for d in (first, again):
            shutil.rmtree(d, ignore_errors=True)
        if version == 7:
            model = RWKV7ForCausalLM(RWKV7Config(head_dim=64, decay_low_rank_dim=24, a_low_rank_dim=16,
                                                 v_low_rank_dim=8, gate_low_rank_dim=40, **RWKV))
            g = torch.Generator().manual_seed(12)
            with torch.no_grad():
                for p in model.parameters():
                    p.copy_(torch.randn(p.shape, generator=g))
            model.to(dtype).save_pretrained(first)
        else:
            t, config = rwkv6()
            os.makedirs(first)
            save_file({k: x.to(dtype) for k, x in t.items()}, os.path.join(first, "model.safetensors"))
            json.dump(config, open(os.path.join(first, "config.json"), "w"))
        e = there_and_back(first, os.path.join(top, "a.gguf"), again, os.path.join(top, "b.gguf"))
        one, two = (load_file(os.path.join(f, "model.safetensors")) for f in (first, again)) if not e else ({}, {})
        e = e or compared(one, two)
        if version == 7 and not e:
            m1, w1 = RWKV7ForCausalLM.from_pretrained(first, output_loading_info=True)
            m2, w2 = RWKV7ForCausalLM.from_pretrained(again, output_loading_info=True)
            wrong = {k: v for k, v in w2.items() if v}
            e = f"from_pretrained: {wrong}" if wrong else compared(dict(m1.named_parameters()), dict(m2.named_parameters()))
        if version == 6 and not e and known_to_llama_cpp(two):
            e = f"llama.cpp's converter does not know {known_to_llama_cpp(two)}"
        if e:
            return f"{dtype}: {e}"
    return f"ok: {len(two)} tensors"


def main():
    global HONE
    p = argparse.ArgumentParser()
    p.add_argument("hone")
    p.add_argument("--case", action="append")
    p.add_argument("--keep")
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    HONE = os.path.abspath(a.hone)
    warnings.simplefilter("ignore")
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
        for version in (6, 7):
            if not a.case or f"rwkv{version}" in a.case:
                say = check_rwkv(version, a.keep or t)
                bad += not say.startswith("ok")
                print(f"rwkv{version:<20} {say}", flush=True)
    print(f"{bad} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
