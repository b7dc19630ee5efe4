#!/usr/bin/env python3
"""Gradients of every dense family against PyTorch's autograd in float64.

    python3 tests/dev/check_grad_families.py build/release/hone [--cases N] [--seed S] [--only ARCH,...] [-v]

Draws random small files of each family (families_draw.py: heads, widths, windows, caps, scalings, fused tensors) with a
vocabulary of bytes, lets `hone train` make steps on documents that are packed into one sequence, and takes what AdamW's
first moment is with beta1 = 0, the gradient, from the checkpoint. The other side is families_reference.py, run on
torch's tensors instead of numpy's. Compared are the loss and the gradient of every tensor, whole models at their first
step and adapters of all matrices at their second, to 1e-4 of the length of each gradient, or, where rounding the weights
to f32 moves the reference's own gradient farther, to ten times that. Needs torch, numpy; without them it says so.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import zlib

try:
    import numpy
    import torch
except ImportError:  # a development check: not every machine has it
    print("check_grad_families: skipped, needs numpy and torch")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import families_draw
from check_families import write_gguf

BAR = 1e-4
POSITIONS = 200
TEXTS = ["a small boat went over the sea and back again, the wind was cold but nobody on it minded, they sang",
         "it rained", "the cat sat under the old tree abc", "q", "who sees a ship?"]
RANK, ALPHA = 3, 6


# ---- families_reference.py on torch ----------------------------------------------------------------------------

def reference():
    """The module's Model, where np is torch."""
    t = torch

    def axis(f):
        return lambda x, dim, keepdims=False: f(x, dim=dim, keepdim=keepdims)

    def as_float(f):
        return lambda x: f(t.as_tensor(x, dtype=t.float64))

    np = types.SimpleNamespace(
        float64=t.float64, float32=numpy.float32, exp=as_float(t.exp), log=as_float(t.log), sqrt=as_float(t.sqrt), cos=t.cos,
        sin=t.sin, tanh=t.tanh, abs=t.abs, log1p=t.log1p, floor=t.floor, mean=axis(t.mean), sum=axis(t.sum),
        max=axis(t.amax), where=lambda c, a, b: t.where(c, t.as_tensor(a, dtype=t.float64),
                                                        t.as_tensor(b, dtype=t.float64)),
        maximum=lambda a, b: t.clamp(a, min=b), clip=t.clip, inf=t.inf,
        einsum=lambda *a, optimize=True: t.einsum(*a), concatenate=lambda x, dim=0: t.cat(tuple(x), dim),
        split=lambda x, at, dim: t.tensor_split(x, tuple(at), dim=dim), stack=t.stack,
        repeat=lambda x, n, dim: t.repeat_interleave(x, n, dim=dim), ones=lambda n: t.ones(n, dtype=t.float64),
        arange=lambda n, dtype=None: t.arange(n, dtype=dtype or t.float64),
        asarray=lambda x, dtype=None: x if isinstance(x, t.Tensor) else t.as_tensor(numpy.asarray(x), dtype=dtype))
    t.Tensor.copy = t.Tensor.clone
    with open(os.path.join(HERE, "families_reference.py")) as f:
        code = f.read().replace("    import numpy as np\n", "    np = TORCH\n")
    names = {"__name__": "reference", "__file__": os.path.join(HERE, "families_reference.py"), "TORCH": np}
    exec(compile(code, "families_reference.py", "exec"), names)
    return names["Model"]


Model = reference()


def loss_of(keys, tensors, docs):
    """Mean of −log p over all targets; every document begins at position 0."""
    total, n = 0.0, 0
    for ids in docs:
        logits = Model(keys, tensors).run(torch.tensor(ids), POSITIONS)
        total = total + torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="sum")
        n += len(ids) - 1
    return total / n


def leaves(tensors):
    return {n: torch.tensor(numpy.asarray(x, numpy.float64), requires_grad=True) for n, x in tensors.items()}


def whole_gradients(keys, tensors, docs):
    t = leaves(tensors)
    loss = loss_of(keys, t, docs)
    loss.backward()
    return loss.item(), {n: x.grad.numpy() for n, x in t.items() if not n.startswith("rope_")}


def adapter_gradients(keys, tensors, pairs, docs):
    """pairs: tensor -> (A, B); the weight is W + s·B·A."""
    t = {n: torch.tensor(numpy.asarray(x, numpy.float64)) for n, x in tensors.items()}
    ab = {n: [torch.tensor(m.astype(numpy.float64), requires_grad=True) for m in pair] for n, pair in pairs.items()}
    for n, (a, b) in ab.items():
        t[n] = t[n] + ALPHA / RANK * (b @ a)
    loss = loss_of(keys, t, docs)
    loss.backward()
    return loss.item(), {n + ".lora_" + "ab"[i]: pair[i].grad.numpy() for n, pair in ab.items() for i in range(2)}


# ---- hone's side ---------------------------------------------------------------------------------------------------

def symbol(byte):
    """GPT-2's letter of a byte."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    return chr(byte) if byte in plain else chr(256 + [b for b in range(256) if b not in plain].index(byte))


def vocabulary(keys, tensors, rng):
    """Gives the model a tokenizer of bytes, and tables of that many rows."""
    tokens = ["<s>", "</s>"] + [symbol(b) for b in range(256)] + ["ab", "bc"]
    keys.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
                 "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 1})
    lists = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["a b", "b c"],
             "tokenizer.ggml.token_type": [3, 3] + [1] * (len(tokens) - 2)}
    for n in ("token_embd.weight", "output.weight", "output.bias"):
        if n in tensors:
            spread = float(numpy.std(tensors[n]))
            tensors[n] = (spread * rng.standard_normal((len(tokens), *tensors[n].shape[1:]))).astype(numpy.float32)
    keys[keys["general.architecture"] + ".vocab_size"] = len(tokens)
    return lists


def write_model(path, keys, tensors, lists):
    """write_gguf knows no lists of texts, nor of signed numbers."""
    import check_families
    plain = check_families.value

    def value(v):
        if isinstance(v, list) and v and isinstance(v[0], str):
            return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(check_families.string(s) for s in v)
        if v is lists["tokenizer.ggml.token_type"]:
            return struct.pack("<IIQ%di" % len(v), 9, 5, len(v), *v)
        return plain(v)
    check_families.value = value
    write_gguf(path, {**keys, **lists}, tensors)
    check_families.value = plain


def read_checkpoint(path):
    """[(weights, first moments)] of each array."""
    with open(path, "rb") as f:
        b = f.read()
    _, n_settings, n_array, best = struct.unpack("<4Q", b[8:40])
    at, out = 40 + n_settings + 18 * 8, []
    for _ in range(n_array):
        n, = struct.unpack("<Q", b[at:at + 8])
        rows = numpy.frombuffer(b, "<f4", n * (4 if best else 3), at + 8).reshape(-1, n)
        out.append((rows[0], rows[1]))
        at += 8 + rows.size * 4
    return out


class Refused(Exception):
    pass


def hone(program, *args):
    p = subprocess.run([program, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if p.returncode:
        raise Refused("exit %d: %s" % (p.returncode, p.stderr.strip().split("\n")[0]))
    return p.stdout


def train(program, folder, steps, lr, *options):
    """(losses, checkpoints of all steps)."""
    out = os.path.join(folder, "out.gguf")
    shutil.rmtree(out + ".ckpt", ignore_errors=True)
    hone(program, "train", "-m", os.path.join(folder, "base.gguf"), "--data", os.path.join(folder, "data.jsonl"), "-o", out,
         "--seq", str(POSITIONS), "--batch", "1", "--pack", "on", "--mask", "none", "--steps", str(steps), "--lr", lr,
         "--schedule", "constant", "--warmup", "0", "--beta1", "0", "--clip", "0", "--weight-decay", "0",
         "--save-every", "1", "--keep", "9", "--fresh", *options)
    with open(out + ".jsonl") as f:
        log = [json.loads(line) for line in f]
    saved = [read_checkpoint(os.path.join(out + ".ckpt", "step-%08d.ckpt" % (i + 1))) for i in range(steps)]
    return [r for r in log if r["kind"] == "step"], saved


def read_adapter(path):
    """tensor -> array of an F32 file's pairs, in the file's order."""
    import gguf
    return {t.name: numpy.array(t.data) for t in gguf.GGUFReader(path).tensors}


# ---- comparison ------------------------------------------------------------------------------------------------------

def moved(tensors):
    rng = numpy.random.default_rng(0)
    return {n: x * (1 + 2.0 ** -24 * rng.uniform(-1, 1, x.shape)) for n, x in tensors.items()}


def apart(have, want):
    return float(numpy.linalg.norm(have - want) / max(numpy.linalg.norm(want), 1e-30))


def compare(what, have, want, loss, want_loss, again):
    """have: name -> gradient; again(): the reference's gradients of a model that moved by a rounding."""
    assert set(have) == set(want), "%s: other tensors: %s" % (what, sorted(set(have) ^ set(want)))
    scale = max(float(numpy.linalg.norm(g)) for g in want.values())
    worst, name, near = 0.0, "", None
    bad = [] if abs(loss / want_loss - 1) <= 1e-5 else ["loss %.9g, reference %.9g" % (loss, want_loss)]
    for n, g in want.items():
        if numpy.linalg.norm(g) < 1e-7 * scale:  # of k's bias: exactly none
            continue
        d = apart(have[n].reshape(g.shape), g)
        if d > BAR:
            near = near or again()
            if d <= 10 * apart(near[n], g):
                continue
            bad.append("%s: %.1e" % (n, d))
        elif d > worst:
            worst, name = d, n
    return worst, name, bad


def check(program, arch, seed, case, folder, verbose):
    d = families_draw.draw(arch, [seed, zlib.crc32(arch.encode()), case])
    rng = numpy.random.default_rng([seed, case])
    keys, tensors = families_draw.written(d, "qkv" if case % 3 == 2 and "qkv" in families_draw.layouts(d) else "usual")
    keys[arch + ".context_length"] = POSITIONS
    if "position_embd.weight" in tensors:
        tensors["position_embd.weight"] = d.values((POSITIONS, tensors["position_embd.weight"].shape[1]), 0.5)
    lists = vocabulary(keys, tensors, rng)
    tensors = {n: numpy.asarray(x, numpy.float32) for n, x in tensors.items()}
    base = os.path.join(folder, "base.gguf")
    write_model(base, keys, tensors, lists)
    with open(os.path.join(folder, "data.jsonl"), "w") as f:
        for t in TEXTS:
            f.write(json.dumps({"text": t}) + "\n")
    docs = [json.loads(hone(program, "tokenize", "-m", base, "--json", "-p", t))["ids"] for t in TEXTS]
    docs = [i if i[-1] == 1 else i + [1] for i in docs]
    keys = {k: v for k, v in keys.items() if not k.startswith("tokenizer.")}
    n_target, lines = sum(len(i) - 1 for i in docs), []

    log, saved = train(program, folder, 1, "1e-30", "--full")
    assert log[0]["n_target"] == n_target, "%d targets here, %d there" % (n_target, log[0]["n_target"])
    want_loss, want = whole_gradients(keys, tensors, docs)
    have, left = {}, dict(tensors)
    for w, g in saved[0]:  # lr 1e-30 moved nothing: an array is known by its values
        name = next(n for n, x in left.items() if x.size == w.size and numpy.array_equal(x.reshape(-1), w))
        left.pop(name)
        have[name] = g
    lines.append(("whole",) + compare(arch, have, want, log[0]["loss"], want_loss,
                                      lambda: whole_gradients(keys, moved(tensors), docs)[1]))

    log, saved = train(program, folder, 2, "1e-2", "--targets", "all", "-r", str(RANK), "--alpha", str(ALPHA))
    end, first = read_adapter(os.path.join(folder, "out.gguf")), {}
    have = {}
    for (w1, _), (w2, g2) in zip(*saved):
        name = next(n for n, x in end.items() if n not in have and x.size == w2.size and
                    numpy.array_equal(x.reshape(-1), w2))
        first[name], have[name] = w1.reshape(end[name].shape), g2
    pairs = {n[:-7]: (first[n], first[n[:-1] + "b"]) for n in first if n.endswith(".lora_a")}
    want_loss, want = adapter_gradients(keys, tensors, pairs, docs)
    lines.append(("adapter",) + compare(arch, have, want, log[1]["loss"], want_loss,
                                        lambda: adapter_gradients(keys, moved(tensors), pairs, docs)[1]))
    good = True
    for what, worst, name, bad in lines:
        good &= not bad
        if bad or verbose:
            print("%s%s case %d %s: worst %.1e (%s)%s" % ("" if not bad else "NOT OK ", arch, case, what, worst, name,
                                                         "".join("\n    " + b for b in bad[:8])), flush=True)
    return good, max(line[1] for line in lines)


def engine_loss(program, ids, *which):
    """Mean of −log p, by the engine's logits."""
    p = subprocess.run([program, "logits", "--all", "--kv", "f32", "--ids", ",".join(map(str, ids)), *which],
                       capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise Refused(p.stderr.decode().strip())
    y = torch.tensor(numpy.frombuffer(p.stdout, "<f4").reshape(len(ids), -1).astype(numpy.float64))
    return torch.nn.functional.cross_entropy(y[:-1], torch.tensor(ids[1:])).item()


def check_run(program, folder):
    """A run of some steps: the loss falls; cut in the middle and gone on with, it ends with the same bytes; hone runs what
    it gives, and says a loss near that of its last steps. What is wrong, or None."""
    base, data, bad = os.path.join(folder, "base.gguf"), os.path.join(folder, "data.jsonl"), []
    ids = json.loads(hone(program, "tokenize", "-m", base, "--json", "-p", TEXTS[0][:60]))["ids"]
    for options in (["--targets", "all", "-r", "4", "--dropout", "0.05"], ["--full"], ["--full", "--recompute", "-t", "2"]):
        outs = [os.path.join(folder, n + ".gguf") for n in ("run", "cut")]
        common = ["train", "-m", base, "--data", data, "--seq", "64", "--batch", "2", "--mask", "none", "--steps", "20",
                  "--lr", "1e-2" if "--full" not in options else "3e-3", "--save-every", "4", *options]
        hone(program, *common, "-o", outs[0], "--fresh")
        hone(program, *common, "-o", outs[1], "--fresh", "--stop-after", "9")
        hone(program, *common, "-o", outs[1], "--resume")
        with open(outs[0], "rb") as a, open(outs[1], "rb") as b:
            if a.read() != b.read():
                bad.append("resumed: other bytes")
        with open(outs[0] + ".jsonl") as f:
            losses = [r["loss"] for r in map(json.loads, f) if r["kind"] == "step"]
        if not losses[-1] < 0.95 * losses[0]:
            bad.append("%s: loss %.3f to %.3f" % (options[0], losses[0], losses[-1]))
        which = ["-m", base, "--lora", outs[0]] if "--full" not in options else ["-m", outs[0]]
        before, after = engine_loss(program, ids, "-m", base), engine_loss(program, ids, *which)
        if not after < 0.95 * before:
            bad.append("%s: the engine's loss %.3f to %.3f" % (options[0], before, after))
    return "; ".join(bad)


def main():
    ap = argparse.ArgumentParser(description="Gradients of dense families against PyTorch.")
    ap.add_argument("hone", nargs="?", default="build/release/hone")
    ap.add_argument("--cases", type=int, default=3)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", default="")
    ap.add_argument("--runs", action="store_true", help="some steps too, cut and gone on with")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    bad = 0
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="grad-families-")
    for arch in [x for x in a.only.split(",") if x] or list(families_draw.DENSE):
        n, worst, refused = 0, 0.0, {}
        for case in range(a.cases):
            try:
                good, far = check(a.hone, arch, a.seed, case, folder, a.v)
                bad, n, worst = bad + (not good), n + 1, max(worst, far)
                wrong = check_run(a.hone, folder) if a.runs else None
                if wrong:
                    bad += 1
                    print("NOT OK %s case %d: %s" % (arch, case, wrong), flush=True)
            except Refused as e:
                refused[str(e)] = refused.get(str(e), 0) + 1
        print("%-14s %d cases, worst %.1e%s" % (arch, n, worst, "".join("; %d refused: %s" % (k, w) for w, k in refused.items())),
              flush=True)
    shutil.rmtree(folder)
    print("check_grad_families: %s" % ("%d NOT OK" % bad if bad else "all agree"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
