#!/usr/bin/env python3
"""Adapters of every family against merged weights in float64.

    python3 tests/dev/check_lora_families.py build/release/hone [--cases N] [--seed S] [--only ARCH,...] [-v]

Draws random small files of each family (families_draw.py). For each kind of matrix an adapter of one alone: hone runs it,
and then its logits are those of families_reference.py with W + s·B·A in place of W, to 1e-5 of their range, or refuses it
by name. Then all that it runs at once, as it is and merged into the file. What is refused is printed: a matrix that takes
part in the product must not be left out in silence. Needs numpy.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:  # a development check: not every machine has it
    print("check_lora_families: skipped, needs numpy")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import families_draw
from check_families import Check, apart, ask, write_gguf
from families_reference import Model

BAR, LEAST = 1e-5, 1e-3  # of the range: how near, and how far the adapter must move anything
RANK, ALPHA = 3, 6.0


def pair_of(rng, w):
    """A and B of a matrix [n_out, n_in]."""
    n_out, n_in = w.shape
    a = rng.uniform(-1, 1, (RANK, n_in)) / np.sqrt(n_in)
    return a.astype(np.float32), (0.7 * rng.uniform(-1, 1, (n_out, RANK))).astype(np.float32)


def write_adapter(path, arch, pairs):
    keys = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": arch, "adapter.lora.alpha": ALPHA}
    tensors = {}
    for n, (a, b) in pairs.items():
        tensors[n + ".lora_a"], tensors[n + ".lora_b"] = a, b
    write_gguf(path, keys, tensors)


def merged(tensors, pairs):
    out = dict(tensors)
    for n, (a, b) in pairs.items():
        w = np.asarray(out[n], np.float64)
        out[n] = w + (ALPHA / RANK * (b.astype(np.float64) @ a.astype(np.float64)))
    return out


class Run:
    def __init__(self, hone, folder):
        self.hone, self.folder = hone, folder
        self.base, self.adapter = os.path.join(folder, "base.gguf"), os.path.join(folder, "lora.gguf")

    def logits(self, tokens, n_ctx, *extra):
        cmd = [self.hone, "logits", "-m", self.base, "--ids", ",".join(map(str, tokens)), "--all", "--kv", "f32", "-t", "1",
               "-c", str(n_ctx), *extra]
        p = subprocess.run(cmd, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if p.returncode:
            return None, p.stderr.decode(errors="replace").strip().split("\n")[0]
        return np.frombuffer(p.stdout, "<f4").astype(np.float64).reshape(len(tokens), -1), ""


def case(run, arch, seed, i, count, verbose):
    d = families_draw.draw(arch, [seed, zlib.crc32(arch.encode()), i])
    tokens, plain = Check.text(None, d, i)
    if tokens is None:
        return True
    n_ctx = max(d.n_ctx, len(tokens))
    layouts = ["usual"] + families_draw.layouts(d)
    keys, tensors = families_draw.written(d, layouts[i % len(layouts)])
    write_gguf(run.base, keys, tensors)
    y, why = run.logits(tokens, n_ctx)
    if y is None or apart(y, plain) > BAR:  # the family's own checks tell of it
        count["not run"] = why or "other logits"
        return True
    rng, good, runs = np.random.default_rng([seed, i]), True, {}
    kinds = {}
    for n, w in tensors.items():
        if n.endswith(".weight") and w.ndim > 1:
            kinds.setdefault(re.sub(r"blk\.\d+\.", "blk.N.", n), []).append(n)
    for kind, names in kinds.items():
        name = names[rng.integers(len(names))]
        w = tensors[name]
        pairs = {name: pair_of(rng, w.reshape(-1, w.shape[-1]))}
        write_adapter(run.adapter, arch, pairs)
        y, why = run.logits(tokens, n_ctx, "--lora", run.adapter)
        if y is None:
            why = re.sub(r"blk\.\d+\.", "blk.N.", why.replace(run.adapter, "ADAPTER").replace(run.base, "BASE"))
            count["refused"][kind] = why
            good &= kind.replace("blk.N.", "") in why
            continue
        runs[kind] = names
        try:
            want = Model(keys, merged(tensors, pairs)).run(tokens, n_ctx)
        except ValueError:
            want = np.full(y.shape, np.nan)
        far, moves = apart(y, want), apart(want, plain)
        if not (far <= max(BAR, 0.01 * moves * 1e-2)) or apart(y, plain) == 0 and moves > LEAST:
            good = False
            print("NOT OK %s case %d %s: %.1e of the range apart, it moves %.1e" % (arch, i, name, far, moves))
        count["alone"].add(kind)
    pairs = {n: pair_of(rng, tensors[n]) for names in runs.values() for n in names}
    if not pairs:
        return good
    write_adapter(run.adapter, arch, pairs)
    want = Model(keys, merged(tensors, pairs)).run(tokens, n_ctx)
    y, why = run.logits(tokens, n_ctx, "--lora", run.adapter)
    out = os.path.join(run.folder, "merged.gguf")
    p = subprocess.run([run.hone, "merge", "-m", run.base, "--lora", run.adapter, "-o", out], capture_output=True, check=False)
    if p.returncode:
        print("NOT OK %s case %d: merge: %s" % (arch, i, p.stderr.decode()[:200]))
        return False
    keep, run.base = run.base, out
    z, why2 = run.logits(tokens, n_ctx)
    run.base = keep
    far = [apart(x, want) if x is not None else np.inf for x in (y, z)]
    rough = Check.sensitivity(keys, merged(tensors, pairs), tokens, n_ctx, want)
    count["far"] = max(count["far"], min(far[0], BAR), min(far[1], BAR))
    if max(far) > max(BAR, 20 * rough):
        good = False
        print("NOT OK %s case %d all: %s" % (arch, i, ["%.1e" % f for f in far]), why, why2)
    count["run"] += 1
    return good


def main():
    ap = argparse.ArgumentParser(description="Adapters of every family against merged weights.")
    ap.add_argument("hone", nargs="?", default="build/release/hone")
    ap.add_argument("--cases", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", default="")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    folder, bad = tempfile.mkdtemp(prefix="lora-families-"), 0
    run = Run(a.hone, folder)
    for arch in [x for x in a.only.split(",") if x] or list(families_draw.FAMILIES):
        count = {"run": 0, "far": 0.0, "refused": {}, "alone": set(), "not run": ""}
        for i in range(a.cases):
            bad += not case(run, arch, a.seed, i, count, a.v)
        print("%-14s %d files, %d kinds of matrices, within %.1e%s" % (arch, count["run"], len(count["alone"]), count["far"],
                                                                     "; not run: " + count["not run"][:90] if count["not run"] else ""))
        for kind, why in count["refused"].items():
            if a.v:
                print("    %s: %s" % (kind, why))
    shutil.rmtree(folder)
    print("check_lora_families: %s" % ("%d NOT OK" % bad if bad else "all agree"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
