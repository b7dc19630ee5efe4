#!/usr/bin/env python3
"""Model families on random shapes: hone against families_reference.py (float64, written independently of hone).

    python3 tests/dev/check_families.py [build/release/hone] [--cases N] [--seed S] [--only ARCH,...]
                                        [--mutants N] [--keep FOLDER] [--long] [-v]
    python3 tests/dev/check_families.py [build/release/hone] --types q8_0,q4_k_m [--peer PROGRAM] [--cases N] …

For each family N random small files (F32 weights) and texts of 30 to 60 tokens: `hone logits --all` must be within
1e-5 of the range of the logits at every position, unless the model is so delicate that the reference itself moves by a
twentieth of the difference when its weights move by half a rounding, or, up to 1e-4, by a quarter when it computes in f32. Then files with a key or tensor missing, added or
impossible, which hone must refuse naming what is wrong, or answer as the reference does (keys that no layer of a file
uses may say anything: counted as of no effect). Families that hone refuses by name are counted.
With --types, wider models of these types instead (families_types.py), whose exact answer is the reference's on the values
that the file's blocks say: the rms of what hone's rounded activations add, as a part of the spread of the logits, must
stay below a bound. PROGRAM FILE IDS N_CTX, which writes the logits of all positions as f32, is another engine that is
measured with: hone's rms over the cases of a family must be at most 1.05 times as large, but for positions where a
choice of experts fell the other way in one of the two, and such texts must not be more than its.

Needs numpy; without it it says so and ends. Exits 1 if anything disagrees.
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:  # a development check: not every machine has it
    print("check_families: skipped, needs numpy")
    sys.exit(0)

import families_draw
import families_mutants
import families_types
from families_reference import BOTH_WAYS, Model

BAR = 1e-5  # of the range of the logits
NARROW_BAR = 1e-4  # and where the reference itself is off in f32: no case excuses more
SEEN = 1e-6  # of the range: so far the logits do not move without hone's having other bits
CLOSE = 1e-5  # two experts nearer than this: rounding may pick either, another text is drawn


TYPES_BAR = {"q8_0": 0.08, "q4_k_m": 0.08}  # rms over the spread of the logits: of activations in 8 bits alone
PEER_BAR = 1.05
FLIP = 5  # times the median: no sum of roundings, but another expert


# ---- GGUF files, version 3, F32 or encoded ----------------------------------------------------------------------------

def string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def number(v):
    """(type of GGUF, bytes) of a scalar."""
    if isinstance(v, bool):
        return 7, struct.pack("<B", v)
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    return (4, struct.pack("<I", v)) if v >= 0 else (5, struct.pack("<i", v))


WIDE = ("layer_multipliers", "head_offsets", "head_vocab_sizes")  # lists of 64 bits


def value(v, wide=False):
    if isinstance(v, str):
        return struct.pack("<I", 8) + string(v)
    if isinstance(v, (list, tuple)):
        items = [(10, struct.pack("<Q", x)) if wide else number(x) for x in v]
        return struct.pack("<IIQ", 9, items[0][0] if items else 5, len(items)) + b"".join(b for _, b in items)
    kind, b = number(v)
    return struct.pack("<I", kind) + b


def write_gguf(path, keys, tensors):
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(keys))
    for k, v in keys.items():
        head += string(k) + value(v, k.rsplit(".", 1)[-1] in WIDE)
    offset, data = 0, []
    for name, t in tensors.items():
        kind, shape = getattr(t, "kind", 0), t.shape
        b = t.bytes if kind else np.ascontiguousarray(t, np.float32).tobytes()
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape[::-1])
        head += struct.pack("<IQ", kind, offset)
        b += bytes(-len(b) % 32)
        data.append(b)
        offset += len(b)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + b"".join(data))


# ---- one run of each -------------------------------------------------------------------------------------------

class Answer:
    """What hone said: logits, or a refusal (rc, message)."""

    def __init__(self, rc, out, err, n_tok, rows=False):
        self.rc, self.message = rc, " | ".join(err.decode(errors="replace").strip().split("\n"))
        self.y = None
        if rc == 0 and rows:
            self.y = np.array(out.split(), np.float64).reshape(n_tok, -1)
        elif rc == 0:
            self.y = np.frombuffer(out, "<f4").astype(np.float64).reshape(n_tok, -1)

    def crashed(self):
        return self.rc < 0 or self.rc >= 124 or self.rc == 1 and not self.message

    def unknown_family(self, arch):
        return self.rc != 0 and 'architecture "%s" is not supported' % arch in self.message


def is_encoder(path):
    """Does the file say that it has no next token? Its first key is its architecture."""
    with open(path, "rb") as f:
        head = f.read(200)
    return any(b"general.architecture\x08\0\0\0" + string(arch) in head for arch in BOTH_WAYS)


def command(hone, path, tokens, n_ctx):
    if is_encoder(path):
        return [hone, "embed", "-m", path, "--ids", ",".join(map(str, tokens)), "--pooling", "none", "--kv", "f32",
                "-t", "1"]
    return [hone, "logits", "-m", path, "--ids", ",".join(map(str, tokens)), "--all", "--kv", "f32", "-t", "1"] + \
        (["-c", str(n_ctx)] if n_ctx else [])


def ask(hone, path, tokens, n_ctx):
    try:
        p = subprocess.run(command(hone, path, tokens, n_ctx), capture_output=True, timeout=120, check=False,
                           stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Answer(124, b"", b"no answer in 120 s", len(tokens))
    return Answer(p.returncode, p.stdout, p.stderr, len(tokens), is_encoder(path))


def apart(y, ref):
    """Farthest logit as a part of the range; infinite if shapes differ or something is no number."""
    if y.shape != ref.shape or not np.isfinite(y).all():
        return np.inf
    return float(np.max(np.abs(y - ref)) / max(np.max(ref) - np.min(ref), 1e-300))


class Check:
    def __init__(self, args):
        self.a = args
        self.bad = 0
        self.folder = args.keep or tempfile.mkdtemp(prefix="families-")
        self.path = os.path.join(self.folder, "case.gguf")

    def report(self, arch, what, name, tokens=(), n_ctx=0):
        self.bad += 1
        line = "NOT OK %s %s: %s" % (arch, name, what)
        if self.a.keep and tokens:
            kept = os.path.join(self.a.keep, "%s-%s.gguf" % (arch, name.replace(" ", "_").replace("/", "_")))
            os.replace(self.path, kept)
            line += "\n    " + " ".join(command(self.a.hone, kept, tokens, n_ctx))
        print(line, flush=True)

    # ---- shapes ---------------------------------------------------------------------------------------------

    def text(self, d, seed):
        """(tokens, reference's model, logits): no choice of experts that rounding could turn."""
        for again in range(20):
            rng = np.random.default_rng([seed, again, 7])
            tokens = [int(x) for x in rng.integers(0, d.tensors["token_embd.weight"].shape[0], rng.integers(30, 61))]
            model = Model(d.keys, d.tensors)
            y = model.run(tokens, max(d.n_ctx, len(tokens)))
            if model.gap > CLOSE:
                return tokens, y
        return None, None

    @staticmethod
    def sensitivity(keys, tensors, tokens, n_ctx, ref):
        """How far the reference itself moves when every weight moves by half a rounding of f32."""
        rng = np.random.default_rng(0)
        moved = {n: t * (1 + 2.0 ** -25 * rng.uniform(-1, 1, t.shape)) for n, t in tensors.items()}
        return apart(Model(keys, moved).run(tokens, n_ctx), ref)

    @staticmethod
    def narrowly(keys, tensors, tokens, n_ctx, ref):
        """How far the reference is off in f32: where a norm follows on what nearly cancels, weights tell nothing."""
        model = Model(keys, tensors)
        model.t = {n: np.asarray(t, np.float32) for n, t in tensors.items()}
        return apart(model.run(tokens, n_ctx), ref)

    def compare(self, arch, case, count):
        seed = [self.a.seed, zlib.crc32(arch.encode()), case]
        d = families_draw.draw(arch, seed)
        tokens, ref = self.text(d, case)
        if tokens is None:
            count["close"] += 1
            return
        n_ctx = max(d.n_ctx, len(tokens))
        for layout in ["usual"] + (families_draw.layouts(d) if case % 3 == 0 else []):
            name = "seed %d case %d %s" % (self.a.seed, case, layout)
            keys, tensors = families_draw.written(d, layout)
            write_gguf(self.path, keys, tensors)
            answer = ask(self.a.hone, self.path, tokens, n_ctx)
            if answer.crashed():
                self.report(arch, "died: rc %d %s" % (answer.rc, answer.message), name, tokens, n_ctx)
            elif answer.rc:
                if answer.unknown_family(arch):
                    count["unknown"] = answer.message
                    return
                why = re.sub(r"[0-9.]+|\\{.*\\}", "#", answer.message.split(" | ")[0].replace(self.path, "FILE"))
                why = layout + " layout: " + why
                count["refused"][why] = count["refused"].get(why, 0) + 1
                count["n_refused"] += 1
                if self.a.verbose:
                    print("  %s %s refused: %s" % (arch, name, answer.message))
            else:
                far = apart(answer.y, ref)
                count["run"] += 1
                if far <= BAR:
                    count["far"] = max(count["far"], far)
                elif far <= 20 * self.sensitivity(d.keys, d.tensors, tokens, n_ctx, ref) or \
                        far <= min(4 * self.narrowly(d.keys, d.tensors, tokens, n_ctx, ref), NARROW_BAR):
                    count["delicate"] += 1
                    count["delicate_far"] = max(count["delicate_far"], far)
                else:
                    shape = {k.split(".", 1)[1]: v for k, v in keys.items() if k.startswith(arch + ".")}
                    first = np.argmax(np.max(np.abs(answer.y - ref), 1) > BAR * np.ptp(ref)) if np.isfinite(far) else 0
                    self.report(arch, "%.1e of the range, from position %d on; %s" % (far, first, shape), name,
                                tokens, n_ctx)

    # ---- wrong files ----------------------------------------------------------------------------------------

    def mutant(self, arch, what, wrong, tokens, right, count):
        """wrong: (what, names, keys, tensors, answer) of families_mutants; right: logits of the right file, the
        reference's and hone's."""
        _, names, keys, tensors, expected = wrong
        write_gguf(self.path, keys, tensors)
        answer = ask(self.a.hone, self.path, tokens, 0)
        count["mutants"] += 1
        if answer.crashed():
            self.report(arch, "died: rc %d %s" % (answer.rc, answer.message), what, tokens)
        elif answer.rc:
            if not any(n in answer.message for n in names):
                self.report(arch, "refused without naming it: %s" % answer.message, what, tokens)
        else:
            self.answered(arch, what, wrong, tokens, right, answer.y, count)

    def answered(self, arch, what, wrong, tokens, right, y, count):
        _, _, keys, tensors, expected = wrong
        try:
            ref = Model(keys, tensors).run(tokens, len(tokens))
        except Exception as e:  # what the reference cannot compute has no answer
            self.report(arch, "answered, the reference cannot: %r" % e, what, tokens)
            return
        right, own = right
        by = apart(ref, right)
        far, moved = apart(y, ref), not by <= BAR
        if expected == "refuse" and (moved or "tensor" in what) and not (far <= BAR and what.endswith("+1")):
            self.report(arch, "answered in silence (%.1e of the range from the right file)" % apart(y, right), what,
                        tokens)
        elif not far <= 10 * BAR:
            self.report(arch, "answered %.1e of the range from the reference" % far, what, tokens)
        elif expected == "read" and (by == 0 or by > SEEN and np.array_equal(y, own)):
            self.report(arch, "ignored in silence", what, tokens)
        elif expected != "same" and not moved:
            count["idle"] += 1  # a key that this file's layers do not use, or that hardly moves them
            if self.a.verbose:
                print("  %s %s: no effect" % (arch, what))

    def mutants(self, arch, case, count):
        d = families_draw.draw(arch, [self.a.seed, zlib.crc32(arch.encode()), case])
        if d.keys[arch + ".block_count"] > 5:
            return 0
        tokens, right = self.text(d, case)
        keys, tensors = families_draw.written(d, "usual")
        if not tokens:
            return 0
        write_gguf(self.path, keys, tensors)
        own = ask(self.a.hone, self.path, tokens, 0)
        if own.rc:
            return 0
        tag = "seed %d case %d " % (self.a.seed, case)
        for wrong in families_mutants.mutants(arch, keys, tensors):
            self.mutant(arch, tag + wrong[0], wrong, tokens, (right, own.y), count)
        return 1

    # ---- quantized ------------------------------------------------------------------------------------------

    def peer(self, tokens, n_ctx):
        """Another engine's logits; None: it does not run this file."""
        try:
            p = subprocess.run(self.a.peer.split() + [self.path, ",".join(map(str, tokens)), str(n_ctx)],
                               capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None
        if p.returncode and self.a.verbose:
            print("  peer: " + p.stderr.decode(errors="replace").strip().split("\n")[0])
        return None if p.returncode else Answer(0, p.stdout, b"", len(tokens)).y

    def rounded(self, arch, mixture, case):
        """(hone's, the peer's) squared errors at each position over the variance of the logits; None: not run."""
        d = families_draw.draw(arch, [self.a.seed, zlib.crc32(arch.encode()), case], 256)
        keys, tensors = families_draw.written(d, "usual")
        tensors = families_types.encoded(mixture, tensors)
        rng = np.random.default_rng([self.a.seed, case, 11])
        tokens = [int(x) for x in rng.integers(0, tensors["token_embd.weight"].shape[0], 40)]
        n_ctx = max(d.n_ctx, len(tokens))
        ref = Model(keys, {n: getattr(t, "values", t) for n, t in tensors.items()}).run(tokens, n_ctx)
        write_gguf(self.path, dict(keys, **{"tokenizer.ggml.model": "none"}), tensors)
        answer = ask(self.a.hone, self.path, tokens, n_ctx)
        if answer.rc:
            if answer.crashed():
                self.report(arch, "died: rc %d %s" % (answer.rc, answer.message), "%s case %d" % (mixture, case))
            elif self.a.verbose:
                print("  %s refused: %s" % (arch, answer.message))
            return None
        other = self.peer(tokens, n_ctx) if self.a.peer else None

        def error(y):
            return None if y is None or y.shape != ref.shape else np.mean((y - ref) ** 2, 1) / np.var(ref)
        return error(answer.y), error(other)

    def quantized(self, arch, mixture):
        hone, both, other, otherwise = [], [], [], 0
        for case in range(self.a.cases):
            e = self.rounded(arch, mixture, case)
            if e is None:
                continue
            hone.append(e[0])
            if e[1] is None:
                continue
            if np.median(e[1]) > 9 * np.median(e[0]):  # no rounding: the peer reads this file otherwise
                otherwise += 1
                continue
            both.append(e[0])
            other.append(e[1])
        if not hone:
            print("%-14s %-7s not run" % (arch, mixture), flush=True)
            return False
        rms, half = (np.sqrt(f(np.concatenate(hone))) for f in (np.mean, np.median))
        line = "%-14s %-7s %2d cases: rms %.2e of the spread, median %.2e" % (arch, mixture, len(hone), rms, half)
        if other:
            # Where a choice of experts fell the other way, there and at all positions behind it an error tells nothing of
            # the arithmetic, and a few such decide the mean. So: the mean where neither has such an error, and in how
            # many texts each has one, which must not differ by more than chance.
            a, b = np.concatenate(both), np.concatenate(other)
            mean, kept = np.sqrt(np.mean(a) / np.mean(b)), np.maximum(a / np.median(a), b / np.median(b)) < FLIP ** 2
            plain = np.sqrt(np.mean(a[kept]) / np.mean(b[kept]))
            mine, its = (sum(np.max(x) > FLIP ** 2 * np.median(all_of) for x in texts)
                         for texts, all_of in ((both, a), (other, b)))
            line += "; of %d cases %.3f times the peer's, at %.1f %% of positions %.3f; texts with a choice that fell " \
                    "otherwise: %d, the peer's %d" % (len(other), mean, 100 * np.mean(kept), plain, mine, its)
            if not plain <= PEER_BAR or mine > its + 1 + 2 * np.sqrt(mine + its):
                self.report(arch, "rms %.3f times the peer's (all positions: %.3f), %d texts with choices that fell "
                            "otherwise, the peer's %d" % (plain, mean, mine, its), mixture)
        if self.a.peer:
            line += "; the peer refuses %d, reads %d otherwise" % (len(hone) - len(other) - otherwise, otherwise)
        print(line, flush=True)
        if not half <= TYPES_BAR[mixture]:
            self.report(arch, "median %.1e of the spread" % half, mixture)
        return True

    def write(self, arch):
        """Files alone, for programs that take any model: tests/property/test_answers.c."""
        for case in range(self.a.cases):
            seed = [self.a.seed, zlib.crc32(arch.encode()), case]
            for mixture in ["f32"] + [m for m in self.a.types.split(",") if m]:
                keys, tensors = families_draw.written(families_draw.draw(arch, seed, 256 if mixture != "f32" else 0),
                                                      "usual")
                if mixture != "f32":
                    tensors = families_types.encoded(mixture, tensors)
                write_gguf(os.path.join(self.a.write, "%s-%d-%s.gguf" % (arch, case, mixture)), keys, tensors)
        return True

    def long_runs(self, beyond=100):
        """llama4 past its run of 8192 positions, where layers that turn forget and the others' queries grow."""
        d = families_draw.long_llama4(self.a.seed, Model.RUN + beyond)
        for again in range(20):
            tokens = [int(x) for x in np.random.default_rng([self.a.seed, again]).integers(0, 17, Model.RUN + beyond)]
            model = Model(d.keys, d.tensors)
            ref = model.run(tokens)
            if model.gap > 1e-6:
                break
        write_gguf(self.path, d.keys, d.tensors)
        answer = ask(self.a.hone, self.path, tokens, len(tokens))
        if answer.rc:
            self.report("llama4", "refused: " + answer.message, "long")
            return
        seen = apart(answer.y, ref)
        model.RUN = 1 << 30
        alone = apart(model.run(tokens), ref)
        print("llama4 at %d positions: farthest %.1e of the range; without runs and growth it would be %.1e, smallest "
              "gap of a choice %.1e" % (len(tokens), seen, alone, model.gap))
        if not seen <= BAR < alone:
            self.report("llama4", "%.1e of the range" % seen, "long", tokens, len(tokens))

    def family(self, arch):
        if self.a.write:
            return self.write(arch)
        if self.a.types:
            return all([self.quantized(arch, mixture) for mixture in self.a.types.split(",")])
        count = {"run": 0, "far": 0.0, "refused": {}, "n_refused": 0, "close": 0, "mutants": 0, "idle": 0,
                 "delicate": 0, "delicate_far": 0.0, "unknown": None}
        for case in range(self.a.cases):
            self.compare(arch, case, count)
            if count["unknown"]:
                print("%-14s not yet: %s" % (arch, count["unknown"]), flush=True)
                return False
        n, case = 0, 0
        while n < self.a.mutants and case < 10 * self.a.mutants:
            n, case = n + self.mutants(arch, case, count), case + 1
        print("%-14s %3d compared, farthest %.1e of the range (beside %d delicate: %.1e); %d refused, "
              "%d too close to tell; %d wrong files (%d of no effect)" % tuple([arch] + [count[k] for k in (
                  "run", "far", "delicate", "delicate_far", "n_refused", "close", "mutants", "idle")]), flush=True)
        for message, n in sorted(count["refused"].items()):
            print("    refused %d: %s" % (n, message))
        return True


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone", nargs="?", default="build/release/hone")
    p.add_argument("--cases", type=int, default=20, help="random models a family (20)")
    p.add_argument("--mutants", type=int, default=2, help="models a family of which wrong files are made (2)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="families, by comma")
    p.add_argument("--types", default="", help="files of these types instead: q8_0, q4_k_m, by comma")
    p.add_argument("--peer", default="", help="with --types: a program that prints another engine's logits")
    p.add_argument("--write", default="", help="only write the models there, F32 and of --types")
    p.add_argument("--keep", default="", help="folder for files that disagree")
    p.add_argument("--long", action="store_true", help="only llama4 past 8192 positions (a minute, 2 GB)")
    p.add_argument("-v", "--verbose", action="store_true")
    a = p.parse_args()
    if not os.access(a.hone, os.X_OK):
        p.error("%s: no such program; build it with: make all" % a.hone)
    families = a.only.split(",") if a.only else sorted(families_draw.FAMILIES)
    check = Check(a)
    if a.long:
        check.long_runs()
        return 1 if check.bad else 0
    run = sum(check.family(arch) for arch in families)
    print("check_families: %d of %d families run, %d disagreements" % (run, len(families), check.bad))
    if not a.keep and os.path.exists(check.path):
        os.remove(check.path)
        os.rmdir(check.folder)
    return 1 if check.bad else 0


if __name__ == "__main__":
    sys.exit(main())
