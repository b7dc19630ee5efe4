#!/usr/bin/env python3
"""Writes the seeds that have names, all of them: python3 tests/fuzz/corpus/make.py FOLDER [TARGET…]

FOLDER gets a folder for each target; with TARGETs only these. What each seed is, the makers say, one for each kind of
file; two of them, make_gguf.py and make_lora.py, need the Python package gguf, the others at most numpy. In the corpus
are those that reach something which others do not, and what fuzzing found, under names of 40 hexadecimal digits."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "..", "golden", "jinja.json")
# maker, targets, its arguments: {t} is a new folder, {t}/TARGET its folder for a target
MAKERS = [
    ("make_ask", ["ask"], ["{t}/ask"]),
    ("make_checkpoint", ["checkpoint"], ["{t}/checkpoint"]),
    ("make_convert", ["convert"], ["{t}/convert"]),
    ("make_dataset", ["dataset"], ["{t}/dataset"]),
    ("make_files", ["baseline", "bins", "chat", "folder", "history", "http", "jinja", "logits", "options", "packrun", "peaks", "peft", "pieces", "session", "split",
                    "synth", "talk"], ["{t}", GOLDEN]),
    ("make_gguf", ["gguf"], ["{t}/gguf"]),
    ("make_grammar", ["grammar"], ["{t}/grammar"]),
    ("make_hf_tokenizer", ["hf_tokenizer"], ["{t}/hf_tokenizer"]),
    ("make_hub", ["hub"], ["{t}/hub"]),
    ("make_jinja", ["jinja"], ["{t}/jinja"]),
    ("make_lora", ["lora"], ["{t}/lora"]),
    ("make_peft", ["peft"], ["{t}/peft"]),
    ("make_tiny", ["model", "vocab", "gguf"], ["{t}/model", "{t}/vocab", "{t}/gguf"]),
    ("make_reply", ["reply"], ["{t}/reply"]),
    ("make_torch", ["torch"], ["{t}/torch"]),
    ("make_vector", ["model", "folder"], ["{t}/model", "{t}/folder"]),
    ("make_vocab", ["vocab"], ["{t}/vocab"]),
]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out, wanted = sys.argv[1], sys.argv[2:]
    known = {t for _, targets, _ in MAKERS for t in targets}
    if set(wanted) - known:
        sys.exit(f"make.py: no maker for {', '.join(sorted(set(wanted) - known))}; there are {', '.join(sorted(known))}")
    rc = 0
    for name, targets, args in MAKERS:
        if wanted and not set(wanted) & set(targets):
            continue
        needs = {"make_gguf": "gguf", "make_lora": "gguf", "make_peft": "numpy"}.get(name)
        spec = importlib.util.find_spec(needs) if needs else None
        if needs and not (spec and spec.origin):  # without origin it is the folder of seeds beside this file
            print(f"make.py: {name}.py is left out: it needs the Python package {needs}", file=sys.stderr)
            rc = 1
            continue
        with tempfile.TemporaryDirectory() as t:
            for target in targets:
                os.makedirs(os.path.join(t, target), exist_ok=True)
            subprocess.run([sys.executable, os.path.join(HERE, name + ".py")] + [a.format(t=t) for a in args], check=True)
            for target in targets:
                if not wanted or target in wanted:
                    shutil.copytree(os.path.join(t, target), os.path.join(out, target), dirs_exist_ok=True)
    return rc


sys.exit(main())
