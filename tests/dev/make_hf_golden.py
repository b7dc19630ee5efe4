#!/usr/bin/env python3
"""Logits of the small folders of tests/unit/hf_files.h, of transformers in float64: what tests/unit/test_hf.c expects.

    make_hf_golden.py FOLDER…   a folder that `HF_FOLDERS=DIR build/release/tests/unit/test_hf` leaves

The numbers of the tensors are made here again from their names; that the folder has the same is checked.
"""
import json
import os
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

IDS = [1, 5, 9, 2, 30, 17, 3, 3, 8, 21, 11, 0]


def value(name, n):
    h = 2166136261
    for b in name.encode():
        h = (h ^ b) * 16777619 & 0xffffffff
    i = np.arange(n, dtype=np.uint64)
    x = (np.uint64(h) + i) * np.uint64(2654435761) & np.uint64(0xffffffff)
    x ^= x >> np.uint64(15)
    x = x * np.uint64(2246822519) & np.uint64(0xffffffff)
    return (x >> np.uint64(25)).astype(np.float64) / 128 - 0.5 + (1.0 if "norm" in name and "bias" not in name else 0)


for folder in sys.argv[1:]:
    files = [f for f in sorted(os.listdir(folder)) if f.endswith(".safetensors")]
    stored = {}
    for f in files:
        stored.update(safetensors.torch.load_file(os.path.join(folder, f)))
    for n, t in stored.items():
        assert np.array_equal(t.double().numpy().ravel(), value(n, t.numel())), n
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    torch.set_default_dtype(torch.float64)
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"], info
    with torch.no_grad():
        y = model.eval()(torch.tensor([IDS])).logits[0].numpy()
    print(folder)
    print("    /* of position 5 and the last: logits of the first four ids; the largest's id at each position */")
    for row in (y[5], y[-1]):
        print("    { %s }," % ", ".join("%.7ff" % v for v in row[:4]))
    print("    { %s }," % ", ".join(str(int(i)) for i in y.argmax(1)))
