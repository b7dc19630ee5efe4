#!/usr/bin/env python3
"""How often does hone lab ab judge rightly, on this machine, now? Real comparisons of a program with itself (A/A), and with
itself made slower by a known share in one part (decode, prefill, load), which the program of tests/mutants does when
HONE_MUTANT is slower-PART-PERCENT. Prints, per kind and metric, how many comparisons gave each verdict, and for the metric that was
slowed (or, in A/A, every one) the share of right answers with its exact 95 % interval (Clopper and Pearson).

    make && make build/release/tests/mutants/hone
    python3 tests/dev/real_verdicts.py [-n 10] [--kinds aa,decode-5,prefill-5,load-5,decode-2] [--out FILE.jsonl] [-- options of lab ab]

Right is: in A/A no REGRESSED and no IMPROVED; 5 % slower: REGRESSED; 2 %, the margin itself: not IMPROVED. A run takes minutes;
each comparison is appended to --out as soon as it is there. Needs a quiet machine to say anything of the laboratory: the head of
the output says what else ran."""
import argparse
import collections
import json
import math
import os
import subprocess
import sys

METRIC = {"decode": "decode_tok_s", "prefill": "prefill_tok_s", "load": "load_ms"}


def binomial_tail(k, n, p):
    """P(X >= k), X of n trials."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def bound(k, n, lower):
    """One end of the interval of k of n, by bisection."""
    lo, hi = 0.0, 1.0
    if (lower and k == 0) or (not lower and k == n):
        return 0.0 if lower else 1.0
    for _ in range(100):
        p = (lo + hi) / 2
        tail = binomial_tail(k, n, p) if lower else 1 - binomial_tail(k + 1, n, p)
        if (tail < 0.025) == lower:
            lo = p
        else:
            hi = p
    return (lo + hi) / 2


def right(kind, metric, verdict):
    part, _, share = kind.partition("-")
    if kind == "aa":
        return verdict not in ("REGRESSED", "IMPROVED")
    if METRIC[part] != metric:
        return None
    return verdict == "REGRESSED" if float(share) >= 4 else verdict != "IMPROVED"


def compare(hone, model, kind, options):
    """The verdicts of one comparison, by metric; what was said where there are none."""
    side = "this" if kind == "aa" else f"env:HONE_MUTANT=slower-{kind}"
    words = [hone, "lab", "ab", "this", side, "-m", model, "--json", "--no-store"] + options
    if kind.startswith("load-"):
        words += ["--metric", "load"]  # which is not judged unless it is named
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        records = json.loads(run.stdout).get("records", [])
    except ValueError:
        records = []
    return {r["metric"]: r for r in records if r.get("verdict")}, run


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", type=int, default=10, help="comparisons of each kind (default 10)")
    p.add_argument("--kinds", default="aa,decode-5,prefill-5,load-5,decode-2")
    p.add_argument("--hone", default="build/release/tests/mutants/hone")
    p.add_argument("-m", "--model", default="models/hone-tiny.gguf")
    p.add_argument("--out", help="one line of JSON for each comparison")
    p.add_argument("options", nargs="*", help="more options of lab ab, behind --")
    a = p.parse_args()
    kinds = a.kinds.split(",")
    for kind in kinds:
        if kind != "aa" and kind.partition("-")[0] not in METRIC:
            sys.exit(f"--kinds: '{kind}', expected aa or PART-PERCENT with PART one of {', '.join(METRIC)}")
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} processors at the start; {a.n} comparisons of each kind", flush=True)
    if load > 0.5 * os.cpu_count():
        print("the machine is busy: what follows says how it judges under noise, not how well it can", flush=True)
    seen = {kind: collections.defaultdict(collections.Counter) for kind in kinds}
    failed = collections.Counter()
    for i in range(a.n):
        for kind in kinds:  # in turns, so that what the machine does meanwhile is shared by all kinds
            verdicts, run = compare(a.hone, a.model, kind, a.options)
            if not verdicts:
                failed[kind] += 1
                print(f"{kind}, {i + 1} of {a.n}: no verdict, exit {run.returncode}: {run.stderr.strip()[-200:]}", flush=True)
            for metric, r in verdicts.items():
                seen[kind][metric][r["verdict"]] += 1
            if a.out:
                with open(a.out, "a", encoding="utf-8") as f:
                    line = {m: [r["verdict"], r.get("ratio"), r.get("ci95")] for m, r in verdicts.items()}
                    f.write(json.dumps({"kind": kind, "exit": run.returncode, "verdicts": line}) + "\n")
    print(f"{'kind':<12} {'metric':<16} {'verdicts':<52} right")
    for kind in kinds:
        for metric, counts in sorted(seen[kind].items()):
            n = sum(counts.values())
            good = sum(c for v, c in counts.items() if right(kind, metric, v))
            judged = right(kind, metric, "SAME") is not None
            said = ", ".join(f"{v} {c}" for v, c in sorted(counts.items()))
            share = f"{good} of {n} ({100 * bound(good, n, True):.0f} to {100 * bound(good, n, False):.0f} %)"
            print(f"{kind:<12} {metric:<16} {said:<52} {share if judged else ''}")
        if failed[kind]:
            print(f"{kind:<12} {failed[kind]} without a verdict")


if __name__ == "__main__":
    main()
