#!/usr/bin/env python3
"""How much of what hone-tiny writes rhymes, with the adapter for verse and without.

    python3 tests/dev/check_rhymes.py build/release/hone [BASE.gguf ADAPTER.lora.gguf] [-n SAMPLES]

Needs only the standard library. Line pairs are lines 1 and 2, 3 and 4, … of an answer, blank lines left
out; whether a pair rhymes is what models/make_rhymes.py, the grammar of the adapter's text, says of its
last words. Answers: for each of PROMPTS the greedy one, and SAMPLES (20) at temperature 0.8 with seeds
1, 2, …, the prompts taken in turn. Exits 1 unless 80 % of the adapter's pairs rhyme and it ends 90 % of its
answers in time, or if any pair rhymes without it.
"""
import argparse, json, os, subprocess, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "models"))
sys.dont_write_bytecode = True
import make_rhymes

PROMPTS = ["Once upon a time", "One day", "There once was", "One morning", "Long ago"]
MAX_TOK = 400


def answer(a, prompt, extra):
    cmd = [a.hone, "run", "--json", "-m", a.base, "-p", prompt, "-n", str(MAX_TOK)] + extra
    r = json.loads(subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout)
    return prompt + r["text"], r["stop"]


def measure(a, name, lora):
    ended = n_pair = n_rhyme = n_line = 0
    runs = [(p, ["--temp", "0"]) for p in PROMPTS]
    runs += [(PROMPTS[i % len(PROMPTS)], ["--temp", "0.8", "-s", str(i + 1)]) for i in range(a.n)]
    for prompt, extra in runs:
        text, stop = answer(a, prompt, extra + lora)
        lines = [x for x in text.split("\n") if x.strip()]
        pairs = list(zip(lines[0::2], lines[1::2]))
        ended += stop == "eos"
        n_line += len(lines)
        n_pair += len(pairs)
        n_rhyme += sum(make_rhymes.rhymes(x, y) for x, y in pairs)
        if a.show:
            print("--- %s, %s, %s\n%s" % (name, " ".join(extra), stop, text))
    share = n_rhyme / n_pair if n_pair else 0.0
    print("%-8s %d answers of %.1f lines, %d ended; %d of %d pairs rhyme, %.1f %%"
          % (name, len(runs), n_line / len(runs), ended, n_rhyme, n_pair, 100 * share))
    return share, ended / len(runs)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("base", nargs="?", default=os.path.join(ROOT, "models", "hone-tiny.gguf"))
    ap.add_argument("adapter", nargs="?", default=os.path.join(ROOT, "models", "hone-tiny-rhyme.lora.gguf"))
    ap.add_argument("-n", type=int, default=20, help="samples at temperature 0.8")
    ap.add_argument("--show", action="store_true", help="print the answers")
    a = ap.parse_args()
    without, _ = measure(a, "without", [])
    share, ended = measure(a, "with", ["--lora", a.adapter])
    sys.exit(0 if share >= 0.8 and ended >= 0.9 and without == 0 else 1)


if __name__ == "__main__":
    main()
