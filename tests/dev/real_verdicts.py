#!/usr/bin/env python3
"""How often does hone lab ab judge rightly, on this machine, now? Real comparisons of a program with itself (A/A), and with
itself made slower by a known share in one part or several (decode, prefill, load), which the program of tests/mutants does when
HONE_MUTANT is slower-PART-PERCENT[+PART-PERCENT…]. Prints, per kind and metric, how many comparisons gave each verdict, and for
each metric that was slowed, or (A/A, and what a kind leaves as it was) must not be called another, the share of right answers with
its exact 95 % interval (Clopper and Pearson); then both over all kinds.

    make && make build/release/tests/mutants/hone
    python3 tests/dev/real_verdicts.py [-n 10] [--kinds aa,decode-5,prefill-5,load-5,decode-2] [--out FILE.jsonl] [-- options of lab ab]
    python3 tests/dev/real_verdicts.py --quick [--minutes 40]

Right is: what was not slowed has no REGRESSED and no IMPROVED; 5 % slower: REGRESSED; 2 %, the margin itself: not IMPROVED. A run
takes minutes; each comparison is appended to --out as soon as it is there. Needs a quiet machine to say anything of the laboratory:
the head of the output says what else ran.

--quick: 24 comparisons of each of aa, decode-5, prefill-5 and load-5, all three metrics judged in each, so that each comparison
answers for what is slowed in it and for what is not (one part a kind: a comparison ends when one metric is REGRESSED, and says
nothing certain of another that is slower, too). Comparisons are independent of each other; metrics of one are not, so
alarms are counted by comparison (one with any alarm), found shares by metric. Its power: a laboratory that raises an alarm in 5 % of
comparisons shows none in all 96 with probability 0.7 %, one in 10 % with 0.004 %; one that finds only 80 % of what is 5 % slower finds
24 of 24 with probability 0.5 %, one that finds 90 % with 8 %. 24 of 24 right says at least 86 %, 96 of 96 at most 4 % alarms (both
ends of 95 %); a bar beyond these needs more (-n). --minutes ends after the turn of all kinds in which the time is over, and
says so; it looks at the time alone."""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import time

METRIC = {"decode": "decode_tok_s", "prefill": "prefill_tok_s", "load": "load_ms"}
ALARMS = ("REGRESSED", "IMPROVED")
QUICK = ("aa,decode-5,prefill-5,load-5", 24)


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


def parts_of(kind):
    """{metric: percent} that a kind slows; None: it is no kind."""
    out = {}
    for word in [] if kind == "aa" else kind.split("+"):
        part, _, share = word.partition("-")
        if part not in METRIC or not share.replace(".", "", 1).isdigit():
            return None
        out[METRIC[part]] = float(share)
    return out


def right(kind, metric, verdict):
    """Is it? None: nothing is known of this metric (CPU time is slowed by whatever is)."""
    slowed = parts_of(kind)
    if metric not in METRIC.values():
        return None if slowed else verdict not in ALARMS
    if metric not in slowed:
        return verdict not in ALARMS
    return verdict == "REGRESSED" if slowed[metric] >= 4 else verdict != "IMPROVED"


def compare(hone, model, kind, options, metrics):
    """The verdicts of one comparison, by metric; what was said where there are none. metrics: to be judged; None: those of hone."""
    side = "this" if kind == "aa" else f"env:HONE_MUTANT=slower-{kind}"
    words = [hone, "lab", "ab", "this", side, "-m", model, "--json", "--no-store"] + options
    if metrics or METRIC["load"] in parts_of(kind):
        words += ["--metric", metrics or "load"]  # load is not judged unless it is named
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        records = json.loads(run.stdout).get("records", [])
    except ValueError:
        records = []
    return {r["metric"]: r for r in records if r.get("verdict")}, run


def share(good, n):
    return f"{good} of {n} ({100 * bound(good, n, True):.0f} to {100 * bound(good, n, False):.0f} %)"


def report(kinds, seen, failed, quiet):
    """seen: {kind: [{metric: verdict}, one for each comparison]}"""
    print(f"{'kind':<18} {'metric':<16} {'verdicts':<52} right")
    found, n_slowed, alarms, n_quiet = collections.Counter(), collections.Counter(), 0, 0
    for kind in kinds:
        metrics = sorted({m for c in seen[kind] for m in c})
        slowed = parts_of(kind)
        for metric in metrics:
            counts = collections.Counter(c[metric] for c in seen[kind] if metric in c)
            n = sum(counts.values())
            good = sum(c for v, c in counts.items() if right(kind, metric, v))
            judged = right(kind, metric, "SAME") is not None
            said = ", ".join(f"{v} {c}" for v, c in sorted(counts.items()))
            print(f"{kind:<18} {metric:<16} {said:<52} {share(good, n) if judged else ''}")
            if slowed.get(metric, 0) >= 4:
                found[metric] += good
                n_slowed[metric] += n
        for c in seen[kind]:
            judged = [right(kind, m, v) for m, v in c.items() if m not in slowed]
            judged = [r for r in judged if r is not None]  # of the others nothing is known
            n_quiet += bool(judged)
            alarms += not all(judged)
        if failed[kind]:
            print(f"{kind:<18} {failed[kind]} without a verdict")
    if n_quiet:
        print(f"comparisons without an alarm where nothing was slowed: {share(n_quiet - alarms, n_quiet)}")
    for metric in sorted(found):
        print(f"{metric}, 4 % slower and more, found: {share(found[metric], n_slowed[metric])}")
    if not quiet:
        print("the machine was busy: this says how it judges under noise")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", type=int, help="comparisons of each kind (default 10; with --quick 24)")
    p.add_argument("--kinds", default="aa,decode-5,prefill-5,load-5,decode-2")
    p.add_argument("--quick", action="store_true", help="four kinds, each judged by decode, prefill and load")
    p.add_argument("--minutes", type=float, default=math.inf, help="no further turn of all kinds begins then")
    p.add_argument("--hone", default="build/release/tests/mutants/hone")
    p.add_argument("-m", "--model", default="models/hone-tiny.gguf")
    p.add_argument("--out", help="one line of JSON for each comparison")
    p.add_argument("options", nargs="*", help="more options of lab ab, behind --")
    a = p.parse_args()
    kinds = (QUICK[0] if a.quick else a.kinds).split(",")
    n = a.n or (QUICK[1] if a.quick else 10)
    for kind in kinds:
        if parts_of(kind) is None:
            sys.exit(f"--kinds: '{kind}', expected aa or PART-PERCENT[+PART-PERCENT] with PART one of {', '.join(METRIC)}")
    load, begun, done = os.getloadavg()[0], time.monotonic(), 0
    quiet = load <= 0.5 * os.cpu_count()
    print(f"load average {load:.1f} on {os.cpu_count()} processors at the start; {n} comparisons of each kind", flush=True)
    if not quiet:
        print("the machine is busy: what follows says how it judges under noise, not how well it can", flush=True)
    seen, failed = {kind: [] for kind in kinds}, collections.Counter()
    while done < n and time.monotonic() - begun < 60 * a.minutes:
        for kind in kinds:  # in turns, so that what the machine does meanwhile is shared by all kinds
            verdicts, run = compare(a.hone, a.model, kind, a.options, ",".join(METRIC) if a.quick else None)
            if verdicts:
                seen[kind].append({m: r["verdict"] for m, r in verdicts.items()})
            else:
                failed[kind] += 1
                print(f"{kind}, {done + 1} of {n}: no verdict, exit {run.returncode}: {run.stderr.strip()[-200:]}", flush=True)
            if a.out:
                with open(a.out, "a", encoding="utf-8") as f:
                    line = {m: [r["verdict"], r.get("ratio"), r.get("ci95")] for m, r in verdicts.items()}
                    f.write(json.dumps({"kind": kind, "exit": run.returncode, "verdicts": line}) + "\n")
        done += 1
        if done == 1:
            print(f"a turn of all kinds took {time.monotonic() - begun:.0f} s; {n} of them take about {n * (time.monotonic() - begun) / 60:.0f} minutes", flush=True)
    if done < n:
        print(f"stopped by the clock: {done} of {n} turns")
    report(kinds, seen, failed, quiet)


if __name__ == "__main__":
    main()
