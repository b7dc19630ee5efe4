#!/usr/bin/env python3
"""Types that mixtures give: hone convert --type beside another program's choice (not part of `make test`).

    check_types.py build/release/hone --peer PROGRAM [--types Q4_K_M,Q2_K,…] [FAMILY …]

Each published model (tests/golden/families: all families, layers that are not alike, experts, no output) becomes a
file here, a folder and again a file by hone, as F32 and in each mixture. PROGRAM --dry-run FILE TYPE says what it would
make of the F32 one, as llama-quantize does: a line "[ i/ n] NAME - [shape], type = f32, size = … (TYPE)" for each tensor.
Needs Python alone. Exit status 1 on any difference, with the first few.
"""
import argparse
import glob
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = {0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k",
         13: "q5_k", 14: "q6_k", 18: "iq3_xxs", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 30: "bf16",
         34: "tq1_0", 35: "tq2_0", 39: "mxfp4"}
KINDS = {"UINT32": (4, "<I"), "INT32": (5, "<i"), "FLOAT32": (6, "<f"), "BOOL": (7, "<B"), "STRING": (8, None)}
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def string(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value(kind, v):
    if kind.startswith("ARRAY:"):
        kind = kind[6:]
        body = b"".join(value(kind, x)[4:] for x in v)
        return struct.pack("<IIQ", 9, KINDS[kind][0], len(v)) + body
    number, form = KINDS[kind]
    if form is None:
        return struct.pack("<I", number) + string(v)
    return struct.pack("<I", number) + struct.pack(form, float(v) if form == "<f" else v)


def write_model(path, model):
    """Keys and tensors of the case; numbers by no rule but that of their middle and spread."""
    keys = b"".join(string(k) + value(kind, v) for k, kind, v in model["kv"])
    head, data = b"", b""
    for name, ne, x, *middle in model["tensors"]:  # x: numbers, or their spread
        n = math.prod(ne)
        if not isinstance(x, list):
            x = [middle[0] + x * ((i * 7919 + len(name)) % 97 / 97 - 0.5) for i in range(n)]
        body = struct.pack("<%df" % n, *x)
        head += string(name) + struct.pack("<I%dQIQ" % len(ne), len(ne), *ne, 0, len(data))
        data += body + bytes(-len(body) % 32)
    top = struct.pack("<IIQQ", 0x46554747, 3, len(model["tensors"]), len(model["kv"])) + keys + head
    with open(path, "wb") as f:
        f.write(top + bytes(-len(top) % 32) + data)


def types_of(path):
    """Names of types by tensor, as the file has them."""
    b = open(path, "rb").read()
    n_tensor, n_key = struct.unpack_from("<QQ", b, 8)

    def skip(kind, at):
        if kind == 8:
            return at + 8 + struct.unpack_from("<Q", b, at)[0]
        if kind != 9:
            return at + SIZES[kind]
        of, n = struct.unpack_from("<IQ", b, at)
        at += 12
        for _ in range(n):
            at = skip(of, at)
        return at

    at, found = 24, {}
    for _ in range(n_key):
        at = skip(8, at)
        at = skip(struct.unpack_from("<I", b, at)[0], at + 4)
    for _ in range(n_tensor):
        end = skip(8, at)
        name, n_dim = b[at + 8:end].decode(), struct.unpack_from("<I", b, end)[0]
        at = end + 4 + 8 * n_dim
        found[name] = NAMES.get(struct.unpack_from("<I", b, at)[0], "?")
        at += 12
    return found


def said_by(peer, path, kind):
    """What the other program would make of each tensor; {}: it says nothing."""
    out = subprocess.run([peer, "--dry-run", path, kind], capture_output=True, text=True, errors="replace")
    text = re.sub(r"\nwarning:[^\n]*\n?|warning: .*?falling back to +\S+\n", "", out.stdout + out.stderr)
    found = {}
    for name, own, rest in re.findall(r"\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], type = +(\S+), (.*)", text):
        new = re.search(r"\((\w+)\)$", rest)
        found[name] = (new.group(1) if new else own).lower()
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("hone")
    ap.add_argument("--peer", required=True)
    ap.add_argument("--types", default="Q4_K_M,Q5_K_M,Q3_K_M,Q2_K,IQ4_XS,MXFP4_MOE,Q8_0")
    ap.add_argument("families", nargs="*")
    a = ap.parse_args()
    n = n_bad = 0
    tmp = tempfile.mkdtemp()
    file, base, typed = (os.path.join(tmp, x) for x in ("a.gguf", "base.gguf", "typed.gguf"))
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/golden/families/*.json"))):
        model, folder = json.load(open(path)), os.path.join(tmp, os.path.basename(path)[:-5])
        if a.families and model["case"] not in a.families:
            continue
        write_model(file, model)
        run = subprocess.run([a.hone, "convert", file, "-o", folder + "/"], capture_output=True, text=True)
        if run.returncode == 0:
            run = subprocess.run([a.hone, "convert", folder, "--type", "F32", "-o", base], capture_output=True, text=True)
        if run.returncode:
            print("skip %s: %s" % (model["case"], run.stderr.strip()[-160:]))
            continue
        for kind in a.types.split(","):
            subprocess.run([a.hone, "convert", folder, "--type", kind, "-o", typed], check=True, capture_output=True)
            ours, theirs = types_of(typed), said_by(a.peer, base, kind)
            odd = [(k, ours[k], theirs.get(k)) for k in ours if ours[k] != theirs.get(k)]
            n, n_bad = n + 1, n_bad + bool(odd)
            if odd:
                print("FAIL %s %s: %d of %d: %s" % (model["case"], kind, len(odd), len(ours), odd[:3]))
    print("%d files, %d differ" % (n, n_bad))
    return 1 if n_bad or not n else 0


if __name__ == "__main__":
    sys.exit(main())
