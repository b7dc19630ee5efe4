#!/usr/bin/env python3
"""Writes the seeds of fuzz_vocab: small vocabularies of every kind as GGUF files.
usage: make_vocab.py FOLDER. Nothing but the standard library is needed."""
import os
import struct
import sys


def s(x):
    x = x.encode() if isinstance(x, str) else x
    return struct.pack("<Q", len(x)) + x


def value(v):
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + s(v)
    if isinstance(v, bytes):
        return struct.pack("<IIQ", 9, 0, len(v)) + v
    t = 8 if isinstance(v[0], (str, bytes)) else 6 if isinstance(v[0], float) else 5
    body = b"".join(s(x) if t == 8 else struct.pack("<f" if t == 6 else "<i", x) for x in v)
    return struct.pack("<IIQ", 9, t, len(v)) + body


def write(name, kv):
    kv = {("tokenizer.ggml." + k if "." not in k else k): v for k, v in kv.items()}
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(kv)) + b"".join(s(k) + value(v) for k, v in kv.items())
    with open(os.path.join(sys.argv[1], name + ".gguf"), "wb") as f:
        f.write(out)


SPM = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(32, 40)] + ["\u2581", "a", "b", "l", "o", "\u2581a", "ll", "ab", "\u2581\u2581", "\u2581H", "<tool>"]
BPE = [chr(c) for c in range(0x21, 0x7F)] + ["\u0120", "\u010a", "\u00e2", "he", "ll", "\u0120a", "aa", "aaaa", "<|end|>", "<t>"]
RWKV = ["<s>"] + [chr(b) if 32 <= b < 127 and b != 92 else "\\\\" if b == 92 else "\\x%02x" % b for b in range(256)] + ["ab", "\\n\\n", "\\xe2\\x82\\xac", "aaaa", "[PAD]"]
write("spm", {"model": "llama", "tokens": SPM, "scores": [-float(i) for i in range(len(SPM))], "token_type": [2, 3, 3] + [6] * 8 + [1] * 10 + [4]})
write("spm_bare", {"model": "llama", "tokens": ["a", "b", "a\u2581", "\u2581"], "add_space_prefix": False, "add_eos_token": True, "eos_token_id": 1})
write("phi3", {"general.name": "phi-3", "model": "llama", "tokens": SPM, "token_type": [2, 3, 3] + [6] * 8 + [1] * 10 + [4], "bos_token_id": 0xFFFFFFFF})
for pre in ("default", "gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "deepseek-v3", "tekken", "chameleon", "jais-2"):
    write("bpe_" + pre, {"model": "gpt2", "pre": pre, "tokens": BPE, "token_type": [1] * (len(BPE) - 2) + [3, 4],
                         "merges": ["h e", "l l", "\u0120 a", "a a", "aa aa"], "bos_token_id": len(BPE) - 2})
write("rwkv", {"model": "rwkv", "tokens": RWKV, "token_type": [3] + [1] * (len(RWKV) - 2) + [5], "eos_token_id": 0})
WPM = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["\u2581" + c for c in "habel12,.<>'|/"] + list("elo2345ab") + ["\u2581hell", "ll", "aaaa"]
write("wpm", {"model": "bert", "tokens": WPM, "token_type": [3] * 5 + [1] * (len(WPM) - 5), "cls_token_id": 2, "seperator_token_id": 3,
              "unknown_token_id": 1, "normalizer.lowercase": True})
# a charsmap by hand: H -> h, the euro sign -> EUR; unit = base << 10 | has a value << 8 | label
UNITS = [0] * 1024
UNITS[0] = 256 << 10
for at, label, has, child in ((256 ^ 0x48, 0x48, 1, 1), (256 ^ 0xE2, 0xE2, 0, 512), (512 ^ 0x82, 0x82, 0, 768), (768 ^ 0xAC, 0xAC, 1, 2)):
    UNITS[at] = (at ^ child) << 10 | has << 8 | label
UNITS[1], UNITS[2] = 1 << 31, 1 << 31 | 2
charsmap = struct.pack("<I", 4096) + struct.pack("<1024I", *UNITS) + b"h\0EUR\0"
UGM = ["<pad>", "</s>", "<unk>"] + ["\u2581", "a", "b", "l", "o", "e", "h", "\u2581h", "ll", "aa", "aaaa", "ello", "E", "UR", "\ufffd", "<tool>", "x"]
write("ugm", {"model": "t5", "tokens": UGM, "scores": [-float(i % 7) for i in range(len(UGM))], "token_type": [3, 3, 2] + [1] * (len(UGM) - 5) + [4, 5],
              "precompiled_charsmap": charsmap, "remove_extra_whitespaces": True})
LONG = RWKV + ["a" * 200, "b" * 130 + "a", "b" * 131]
write("rwkv_long", {"model": "rwkv", "tokens": LONG, "token_type": [3] + [1] * (len(LONG) - 1)})
for i, ids in enumerate([[1, 2, 99, -1], [1.5], [b"x"]]): write(f"ends{i}", {"model": "llama", "tokens": SPM, "token_type": [2, 3, 3] + [6] * 8 + [1] * 10 + [4], "eos_token_ids": ids, "eot_token_id": 2})
for i, names in enumerate([["<|return|>", "<|call|>", "<|end|>", "</s>"], ["<|calls|>", "<|flush|>", "<|end|>", "</s>"], ["<|tool_response>", "</s>"], ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|eot_id|>"]]):
    write(f"names{i}", {"model": "llama", "tokens": SPM + names, "token_type": [2, 3, 3] + [6] * 8 + [1] * 10 + [4] + [3] * len(names), "eot_token_id": len(SPM) + 2 if i < 2 else 0})
RAW = ["<pad>", "<eos>", "<bos>"] + ["<0x%02X>" % b for b in range(256)] + ["\u2581", "a", "b", "ab", "\n", "\u2581a"]
write("gemma4", {"model": "gemma4", "tokens": RAW, "token_type": [3] * 3 + [6] * 256 + [1] * 6, "merges": ["a b", "\u2581 a"], "add_bos_token": False, "bos_token_id": 2})
write("types", {"model": "llama", "tokens": SPM, "token_type": [2, 3, 3] + [6] * 8 + [1, 1, 0, 5, 9] + [1] * 5 + [4]})
for name, of in (("ugm_long", dict(scores=[-float(i % 7) for i in range(len(UGM))], precompiled_charsmap=charsmap)), ("ugm_long_spaces", dict(precompiled_charsmap=charsmap, remove_extra_whitespaces=True, add_space_prefix=True))):
    write(name, {"model": "t5", "tokens": UGM, "token_type": [3, 3, 2] + [1] * (len(UGM) - 5) + [4, 5]} | of)
    with open(os.path.join(sys.argv[1], name + ".gguf"), "ab") as f: f.write("\u20ac  ".encode() * 60)
write("ugm_spaces", {"model": "t5", "tokens": UGM, "token_type": [3, 3, 2] + [1] * (len(UGM) - 5) + [4, 5], "add_space_prefix": True, "add_bos_token": True, "bos_token_id": 0})
