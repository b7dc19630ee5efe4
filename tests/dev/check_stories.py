#!/usr/bin/env python3
"""How well hone-tiny tells its stories: two numbers that need no reader.

    python3 tests/dev/check_stories.py HONE MODEL... [-n STORIES]

- bits per character of new stories: the grammar of models/make_corpus.py with a seed that training did not use.
  Comparable between models with different tokenizers. Computed here from `hone logits`.
- people per story: how many different names a written story uses (greedy from the beginnings of new stories, and
  sampled at temperature 0.8), beside the same count in the grammar's own stories. A model that forgets what its
  hero is called uses more.

Needs numpy. A development script: no test calls it.
"""
import argparse
import os
import re
import subprocess
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "models"))
import make_corpus as mc  # noqa: E402

NAMES = set(mc.GIRLS + mc.BOYS + mc.ANIMAL_F + mc.ANIMAL_M)


def run(*args):
    return subprocess.run(args, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def people(text):
    return len({w for w in re.findall(r"[A-Z][a-z]+", text) if w in NAMES})


def bits(hone, model, stories):
    """Bits per character of stories, each begun with the beginning-of-text token and ended by the one for the end."""
    total = chars = 0
    for s in stories:
        ids = [int(i) for i in run(hone, "tokenize", "-m", model, "-p", s).split()]
        logits = np.frombuffer(run(hone, "logits", "--all", "-m", model, "-p", s), "<f4").reshape(len(ids), -1).astype(np.float64)
        top = logits.max(1, keepdims=True)
        logp = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
        want = ids[1:] + [1]                      # <|endoftext|>
        total -= sum(logp[i, t] for i, t in enumerate(want))
        chars += len(s)
    return total / chars / np.log(2)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("models", nargs="+")
    ap.add_argument("-n", type=int, default=100, help="stories (100)")
    a = ap.parse_args()
    known = {t for _, t in mc.generate(20240607, 16_000_000)}
    new = [t for _, t in mc.generate(7, a.n * 1100) if t not in known][:a.n]
    print("%d new stories of the grammar: %.2f people per story" % (len(new), np.mean([people(s) for s in new])))
    for model in a.models:
        line = "%s: %.4f bits per character" % (model, bits(a.hone, model, new))
        for what, opts in (("greedy", ["--temp", "0"]), ("at temperature 0.8", ["--temp", "0.8", "--top-k", "0", "--top-p", "1", "--min-p", "0"])):
            told = []
            for i, s in enumerate(new):
                first = " ".join(s.split(" ")[:12])
                told.append(run(a.hone, "run", "-m", model, "-p", first, "-n", "400", "-s", str(i), *opts).decode())
            line += "; %.2f people %s" % (np.mean([people(t) for t in told]), what)
        print(line, flush=True)


if __name__ == "__main__":
    main()
