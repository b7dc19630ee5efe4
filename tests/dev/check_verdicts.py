#!/usr/bin/env python3
"""The verdicts of `hone lab ab` again, from the raw rounds of its records, with scipy's binomial distribution.

    python3 tests/dev/check_verdicts.py benchmarks/ab.jsonl…

Reads every record of schema hone.ab/1 that names its comparison, judges the records of one comparison together as
docs/STATISTICS.md says (sign test, shares of the looks, Holm), and compares verdict, level, ratio, both intervals and
the overall verdict. Prints what differs and how many verdicts were compared; exit code 1 when anything differs.
"""
import json
import math
import statistics
import sys

from scipy.stats import binom

SHARES = (0.06, 0.14, 0.30, 0.50)


def alpha(first, look):
    return 0.05 * (SHARES[look] if first >= 20 else 1 / len(SHARES))


def one(record, r, side):
    """What a round makes of its runs."""
    runs = r.get(side + "_runs")
    if not runs:
        return r[side]
    if record["within"] == "mean":
        return sum(runs) / len(runs)
    if record["within"] == "median":
        return statistics.median(runs)
    return max(runs) if record["better"] == "higher" else min(runs)


def logs(record):
    """ln of B's speed over A's, of the rounds that count, ascending."""
    out = []
    for r in record["rounds"]:
        if not r["voided"]:
            a, b = one(record, r, "a"), one(record, r, "b")
            out.append(math.log(b / a) if record["better"] == "higher" else math.log(a / b))
    return sorted(out)


def p_of(n, beyond):
    return min(1.0, 2 * binom.cdf(beyond, n, 0.5))


def beyond(x, margin, near, wrong):
    """Of all rounds, or of those near the margin, the better of two tests at half of α each."""
    n_wrong = sum(wrong(v) for v in x)
    p = p_of(len(x), n_wrong)
    if not near:
        return p
    if 2 * n_wrong >= len(x):  # most of all rounds contradict
        return min(1.0, 2 * p)
    close = [v for v in x if abs(v - margin) <= near]
    return min(1.0, 2 * min(p, p_of(len(close), sum(wrong(v) for v in close))))


def chances(x, wanted, margin, near):
    """The least α at which each verdict would be the one."""
    n = len(x)
    slow = -math.log1p(margin) if margin > wanted or margin >= 1 else math.log1p(-margin)
    low, high = math.log1p(-wanted) if wanted < 1 else -math.log1p(wanted), math.log1p(wanted)
    fast = math.log1p(margin)
    return {"REGRESSED": beyond(x, slow, near, lambda v: v >= slow),
            "IMPROVED": beyond(x, fast, near, lambda v: v <= fast),
            "SAME": max(p_of(n, sum(v < low for v in x)), p_of(n, sum(v > high for v in x)))}


def interval(x, level):
    n, k = len(x), 0
    while 2 * (k + 1) <= n and 1 - 2 * binom.cdf(k, n, 0.5) >= level:
        k += 1
    return [math.exp(x[k - 1]), math.exp(x[n - k])] if k else None


def verdict_at(x, p, level):
    if interval(x, level) is None:
        return "INCONCLUSIVE"
    return next((v for v in ("REGRESSED", "IMPROVED", "SAME") if p[v] <= (1 - level) * (1 + 1e-9)), "INCONCLUSIVE")


def holm(records, a):
    """[(verdict, level)] of the records, judged together: the least p first, and none behind one that is open."""
    x = [logs(r) for r in records]
    p = [chances(v, r["margin_wanted"], r["margin"], r.get("near")) for v, r in zip(x, records)]
    out, level, is_open = [None] * len(records), 1 - a / len(records), False
    for done, i in enumerate(sorted(range(len(records)), key=lambda k: min(p[k].values()))):
        if not is_open:
            level = 1 - a / (len(records) - done)
        v = verdict_at(x[i], p[i], level)
        is_open = is_open or v == "INCONCLUSIVE"
        out[i] = ("INCONCLUSIVE" if is_open else v, level)
    return out


def overall(records, verdicts):
    own = [v for r, v in zip(records, verdicts) if not r["beside"]]
    alarm = any(v == "REGRESSED" for r, v in zip(records, verdicts) if r["beside"])
    if "REGRESSED" in own or (alarm and "IMPROVED" not in own):
        return "REGRESSED"
    if not own or "INCONCLUSIVE" in own:
        return "INCONCLUSIVE"
    return "IMPROVED" if "IMPROVED" in own else "SAME"


def near(a, b):
    return a is None and b is None or a is not None and b is not None and abs(a - b) <= 5.1e-6 * abs(b)  # records keep six digits


def differences(records):
    found = holm(records, alpha(records[0]["first_rounds"], max(r["looks"] for r in records) - 1))
    for r, (verdict, level) in zip(records, found):
        x = logs(r)
        mine = {"n": len(x), "ratio": math.exp(statistics.median(x)), "level": level}
        ci, ci95 = interval(x, level), interval(x, 0.95)
        pairs = [(k, mine[k], r[k]) for k in mine]
        for key, m in (("ci", ci), ("ci95", ci95)):
            pairs += [(f"{key}[{i}]", m[i] if m else None, r[key][i] if r[key] else None) for i in (0, 1)]
        yield from (f"{r['record']} {r['metric']}: {k} {m}, recorded {o}" for k, m, o in pairs if not near(m, o))
        if verdict != r["verdict"]:
            yield f"{r['record']} {r['metric']}: {verdict}, recorded {r['verdict']}"
    whole = overall(records, [v for v, _ in found])
    if whole != records[0]["overall"]:
        yield f"{records[0]['comparison']}: {whole} over all, recorded {records[0]['overall']}"


def main():
    groups = {}
    for path in sys.argv[1:]:
        for line in open(path, encoding="utf-8"):
            r = json.loads(line)
            if r.get("schema") == "hone.ab/1" and r.get("comparison") and not r["interrupted"]:
                groups.setdefault(r["comparison"], []).append(r)
    bad = [d for g in groups.values() for d in differences(g)]
    for d in bad:
        print(d)
    kinds = {}
    for g in groups.values():
        for r in g:
            kinds[r["verdict"]] = kinds.get(r["verdict"], 0) + 1
    print(f"{sum(kinds.values())} verdicts of {len(groups)} comparisons ({kinds}): {len(bad)} differences")
    return 1 if bad or not groups else 0


sys.exit(main())
