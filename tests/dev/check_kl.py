#!/usr/bin/env python3
"""hone perplexity and hone lab quality kl against plain numpy on `hone logits --all`.

    python3 tests/dev/check_kl.py HONE REF.gguf MODEL.gguf TEXT [N_CTX [WINDOWS]]

Windows of N_CTX ids, the first replaced by BOS where the model adds one, logits of each window from a
fresh `hone logits --all`; log-softmax in float64. Prints both figures and fails above 1e-9.
"""
import json
import subprocess
import sys
import tempfile

import numpy as np

hone, ref, new, text = sys.argv[1:5]
n_ctx = int(sys.argv[5]) if len(sys.argv) > 5 else 128
n_win = int(sys.argv[6]) if len(sys.argv) > 6 else 3


def run(*args):
    return subprocess.run([hone, *map(str, args)], check=True, capture_output=True).stdout


def ids_of(model, s, add):
    args = ["tokenize", "-m", model, "--no-special", "-p", s] + ([] if add else ["--no-bos"])
    return [int(x) for x in run(*args).split()]


body = open(text, encoding="utf-8").read()
body = body[:-1] if body.endswith("\n") else body
body = body[:n_ctx * n_win * 12]
copy = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt")
copy.write(body)
copy.flush()
ids, plain = ids_of(ref, body, True), ids_of(ref, body, False)
bos = ids[0] if len(ids) > len(plain) else None
first, n_vocab = n_ctx // 2, None
rows = {ref: [], new: []}
targets = []
for w in range(n_win):
    part = ids[w * n_ctx:(w + 1) * n_ctx]
    assert len(part) == n_ctx, "text too short"
    targets += part[first + 1:]
    if bos is not None:
        part = [bos] + part[1:]
    for m in rows:
        x = np.frombuffer(run("logits", "-m", m, "--ids", ",".join(map(str, part)), "--all"), dtype="<f4")
        rows[m].append(x.reshape(n_ctx, -1)[first:n_ctx - 1].astype(np.float64))


def log_softmax(x):
    top = x.max(axis=1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=1, keepdims=True))


lp, lq = (log_softmax(np.concatenate(rows[m])) for m in (ref, new))
at = np.arange(len(targets))
kl = (np.exp(lp) * (lp - lq)).sum(axis=1)
nll = {"ref": -lp[at, targets], "new": -lq[at, targets]}
dp = np.exp(-nll["new"]) - np.exp(-nll["ref"])
diff = nll["new"] - nll["ref"]
sem = lambda x: x.std() / np.sqrt(len(x) - 1)
want = {
    "kl mean": kl.mean(), "kl error": sem(kl), "kl p50": np.quantile(kl, .5), "kl p99": np.quantile(kl, .99), "kl p999": np.quantile(kl, .999), "kl max": kl.max(),
    "same top-1": (lp.argmax(1) == lq.argmax(1)).mean(), "rms dp": np.sqrt((dp ** 2).mean()), "ln ratio": diff.mean(), "ln ratio error": sem(diff),
    "ppl ref": np.exp(nll["ref"].mean()), "ppl new": np.exp(nll["new"].mean()),
}
r = json.loads(run("lab", "quality", "kl", ref, new, "-f", copy.name, "-c", n_ctx, "--chunks", n_win, "--json"))["records"][0]
x = r["extra"]
seen = {
    "kl mean": x["value"], "kl error": x["error"], "kl p50": x["kl"]["p50"], "kl p99": x["kl"]["p99"], "kl p999": x["kl"]["p999"], "kl max": x["kl"]["max"],
    "same top-1": x["same_top1"]["share"], "rms dp": x["rms_dp"]["value"], "ln ratio": x["ln_ppl_ratio"]["mean"], "ln ratio error": x["ln_ppl_ratio"]["error"],
    "ppl ref": x["ppl_ref"], "ppl new": x["ppl_new"],
}
p = json.loads(run("perplexity", "-m", new, "-f", copy.name, "-c", n_ctx, "--chunks", n_win, "--json"))["records"][0]
want["ppl"], seen["ppl"] = want["ppl new"], p["extra"]["value"]
want["ppl error"], seen["ppl error"] = want["ppl new"] * sem(nll["new"]), p["extra"]["error"]
want["positions"], seen["positions"] = len(targets), x["positions"]
bad = 0
for k, v in want.items():
    # what is rounded for readers has six significant digits
    limit = 1e-9 if k in ("kl mean", "kl error", "ppl", "ppl error") else 6e-6
    off = abs(v - seen[k]) / max(abs(v), 1e-12)
    bad += off > limit
    print(f"{k:16} {v:.12g}  hone {seen[k]:.12g}  off {off:.1e}{'  BAD' if off > limit else ''}")
sys.exit(1 if bad else 0)
