#!/usr/bin/env python3
"""Writes seeds for fuzz_jinja into tests/fuzz/corpus/jinja: templates of tests/golden/jinja.json, some per file.

usage: make_jinja.py FOLDER
"""
import json
import os
import sys

here = os.path.dirname(__file__)
with open(os.path.join(here, "..", "..", "golden", "jinja.json"), encoding="utf-8") as f:
    golden = json.load(f)
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
good = [c["template"] for c in golden["cases"] if "expected" in c]
bad = [c["template"] for c in golden["cases"] if "error" in c]
step = 24
for i in range(0, len(good), step):
    with open(os.path.join(out, "good%02d" % (i // step)), "w", encoding="utf-8", newline="") as f:
        f.write("\n".join(good[i : i + step]))
for i, t in enumerate(bad[-12:]):
    with open(os.path.join(out, "bad%02d" % i), "w", encoding="utf-8", newline="") as f:
        f.write(t)
context = {k: v for k, v in golden["context"].items() if k not in ("many", "big")}
with open(os.path.join(out, "context"), "w", encoding="utf-8", newline="") as f:
    f.write("{{ o|tojson }}{{ d }}{{ u8|upper }}\0" + json.dumps(context, ensure_ascii=False))
