#!/usr/bin/env python3
"""Archives of torch.save, read by hone: a folder with pytorch_model.bin (or its shards and their index) must become the
same bytes as the same tensors in model.safetensors, whatever the protocol of the pickle, the types, and how the tensors
lie in their storages; what a program could do in a pickle is refused, and done by nobody.

    check_torch.py HONE

Needs torch, safetensors, transformers; 77 without.
"""
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import OrderedDict

try:
    import torch
    import transformers
    from safetensors.torch import save_file
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

CONFIG = dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
              vocab_size=64, max_position_embeddings=128, tie_word_embeddings=False)
bad = 0


def say(ok, what):
    global bad
    bad += not ok
    print(("ok   " if ok else "FAIL ") + what, flush=True)


def hone(src, dst):
    r = subprocess.run([HONE, "convert", src, "-o", dst], capture_output=True, text=True)
    return r.returncode, r.stderr.strip()


def converted(folder):
    dst = os.path.join(folder, "out.gguf")
    code, err = hone(folder, dst)
    if code:
        return f"{code}: {err}"
    data = open(dst, "rb").read()
    os.unlink(dst)
    return data


def folder_of(name):
    f = os.path.join(TOP, name, "model")  # general.name is the folder's
    shutil.rmtree(f, ignore_errors=True)
    os.makedirs(f)
    transformers.LlamaConfig(**CONFIG, architectures=["LlamaForCausalLM"]).save_pretrained(f)
    return f


def turned(t):
    return t.t().contiguous().t() if t.dim() == 2 else t


def shifted(t):
    flat = torch.zeros(t.numel() + 13, dtype=t.dtype)
    flat[7:7 + t.numel()] = t.reshape(-1)
    return flat[7:7 + t.numel()].view(t.shape)


def stepped(t):
    wide = torch.zeros(*t.shape[:-1], t.shape[-1] * 2, dtype=t.dtype)
    wide[..., ::2] = t
    return wide[..., ::2]


def together(d):
    """All in one storage, as views of it."""
    flat = torch.cat([t.reshape(-1) for t in d.values()])
    out, at = {}, 0
    for k, t in d.items():
        out[k] = flat[at:at + t.numel()].view(t.shape)
        at += t.numel()
    return out


def check_good(tensors):
    reference = folder_of("reference")
    save_file(tensors, os.path.join(reference, "model.safetensors"))
    want = converted(reference)
    say(isinstance(want, bytes), f"safetensors: {want if isinstance(want, str) else len(want)}")
    ways = {
        "plain": dict, "ordered": OrderedDict,
        "turned": lambda d: {k: turned(t) for k, t in d.items()},
        "shifted": lambda d: {k: shifted(t) for k, t in d.items()},
        "stepped": lambda d: {k: stepped(t) for k, t in d.items()},
        "together": together,
        "parameters": lambda d: {k: torch.nn.Parameter(t) for k, t in d.items()},
        "no gradients": lambda d: {k: torch.nn.Parameter(t, requires_grad=False) for k, t in d.items()},
    }
    for how, make in ways.items():
        for protocol in (2, 3, 4, 5):
            f = folder_of("torch")
            torch.save(make(tensors), os.path.join(f, "pytorch_model.bin"), pickle_protocol=protocol)
            got = converted(f)
            say(got == want, f"{how}, protocol {protocol}" + (f": {got}" if isinstance(got, str) else ""))
    module = torch.nn.Module()
    for k, t in tensors.items():  # a state dict with its metadata, which is set by BUILD
        at = module
        for p in k.split(".")[:-1]:
            if not hasattr(at, p):
                at.add_module(p, torch.nn.Module())
            at = getattr(at, p)
        at.register_parameter(k.split(".")[-1], torch.nn.Parameter(t))
    f = folder_of("torch")
    torch.save(module.state_dict(), os.path.join(f, "pytorch_model.bin"))
    say(converted(f) == want, "state_dict() of a module")
    check_shards(tensors, want)
    return want


def check_shards(tensors, want):
    f = folder_of("torch")
    keys = sorted(tensors)
    parts = [{k: tensors[k] for k in keys[:5]}, {k: turned(tensors[k]) for k in keys[5:]}]
    names = [f"pytorch_model-{i + 1:05d}-of-00002.bin" for i in range(2)]
    for n, p in zip(names, parts):
        torch.save(p, os.path.join(f, n))
    say(converted(f) == want, "a series without index")
    index = {"metadata": {"total_size": 1}, "weight_map": {k: n for n, p in zip(names, parts) for k in p}}
    json.dump(index, open(os.path.join(f, "pytorch_model.bin.index.json"), "w"))
    say(converted(f) == want, "shards with an index")
    os.unlink(os.path.join(f, names[1]))
    got = converted(f)
    say(isinstance(got, str) and names[1] in got, f"a shard is missing: {got}")


def check_tied(tensors):
    d = dict(tensors)
    d["lm_head.weight"] = d["model.embed_tokens.weight"]
    reference = folder_of("reference")
    save_file({k: t.clone() for k, t in d.items()}, os.path.join(reference, "model.safetensors"))
    f = folder_of("torch")
    torch.save(d, os.path.join(f, "pytorch_model.bin"))
    say(converted(f) == converted(reference), "two names of one tensor")


def refused(what, data, *words):
    f = folder_of("bad")
    path = os.path.join(f, "pytorch_model.bin")
    if callable(data):
        data(path)
    else:
        open(path, "wb").write(data)
    got = converted(f)
    say(isinstance(got, str) and all(w in got for w in words), f"{what}: {got if isinstance(got, str) else 'converted'}")


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def rewritten(good, change, **how):
    """The archive with members changed: change(name, bytes) gives bytes or None."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as z, zipfile.ZipFile(out, "w", how.get("how", zipfile.ZIP_STORED)) as w:
        for n in z.namelist():
            data = change(n, z.read(n))
            if data is not None:
                w.writestr(n, data)
    return out.getvalue()


def check_bad(tensors):
    mark = os.path.join(TOP, "ran")
    for name, call in {"os.system": (os.system, (f"touch {mark}",)), "eval": (eval, (f"open({mark!r}, 'w')",)),
                       "subprocess": (subprocess.call, (["touch", mark],)),
                       "getattr": (getattr, ("a", "upper"))}.items():
        refused(name, lambda p, c=call: torch.save({"w": Evil(*c)}, p), "names ")
    say(not os.path.exists(mark), "nothing was run")
    buf = io.BytesIO()
    torch.save(tensors, buf)
    good = buf.getvalue()
    refused("legacy", lambda p: torch.save(tensors, p, _use_new_zipfile_serialization=False), "before 1.6")
    refused("TorchScript", lambda p: torch.jit.script(torch.nn.Linear(3, 4)).save(p), "TorchScript")
    refused("compressed", rewritten(good, lambda n, d: d, how=zipfile.ZIP_DEFLATED), "compressed")
    refused("big-endian", rewritten(good, lambda n, d: b"big" if n.endswith("byteorder") else d), "little-endian")
    refused("no data.pkl", rewritten(good, lambda n, d: None if n.endswith("data.pkl") else d), "data.pkl")
    refused("a storage is missing", rewritten(good, lambda n, d: None if n.endswith("/3") else d), "missing")
    refused("a storage is short", rewritten(good, lambda n, d: d[:-4] if n.endswith("/3") else d), "bytes")
    refused("a tensor", lambda p: torch.save(torch.zeros(3), p), "ends with a tensor")
    refused("training", lambda p: torch.save({"epoch": 3, "model": tensors}, p), "state_dict")
    refused("nested", lambda p: torch.save({"model": tensors}, p), "state_dict")
    refused("expanded", lambda p: torch.save({"w": torch.zeros(1).expand(1 << 30, 1 << 20)}, p), "contiguous")
    refused("sparse", lambda p: torch.save({"w": torch.eye(3).to_sparse()}, p), "names ")
    refused("complex", lambda p: torch.save({"w": torch.zeros(3, dtype=torch.complex64)}, p), "names ")
    refused("integers", lambda p: torch.save({k: t.int() for k, t in tensors.items()}, p), "I32")
    for n in (0, 1, 10, 100, len(good) // 2, len(good) - 30, len(good) - 1):
        refused(f"cut after {n}", good[:n], "")
    with zipfile.ZipFile(io.BytesIO(good)) as z:
        name = [n for n in z.namelist() if n.endswith("data.pkl")][0]
        text = z.read(name)
    for op in set(range(256)) - set(b"\x80\x95.(Nc\x93XKMJG\x8a\x8c\x88\x89t)\x85\x86\x87]aeb}suqrhjQR\x94"):
        data = rewritten(good, lambda n, d: text[:2] + bytes([op]) + text[2:] if n == name else d)
        refused(f"instruction 0x{op:02x}", data, "instruction")


def main():
    global HONE, TOP
    HONE = os.path.abspath(sys.argv[1])
    torch.manual_seed(7)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    with tempfile.TemporaryDirectory() as TOP:
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            print(f"-- {dtype}")
            check_good({k: t.to(dtype).contiguous() for k, t in model.state_dict().items()})
        tensors = {k: t.contiguous() for k, t in model.state_dict().items()}
        check_tied(tensors)
        check_bad(tensors)
    print(f"{bad} failures" if bad else "all is well")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
