#!/usr/bin/env python3
"""A small model of qwen2 as one of phi3 whose sessions of more than so many positions turn otherwise.

usage: long_rope.py QWEN2.gguf POSITIONS OUT.gguf    (python3 alone; F32 and Q8_0; what is added to queries is dropped)
"""
import struct
import sys

U32, STRING, ARRAY = 4, 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
F32, Q8_0, PAGE = 0, 8, 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 4

    def number(self, kind):
        value, = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def string(self):
        n = self.number("Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        """Its bytes, as they are."""
        begin = self.at
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            of, n = self.number("I"), self.number("Q")
            for _ in range(n):
                self.value(of)
        else:
            self.at += SIZES[kind]
        return self.data[begin:self.at]


def padded(data):
    return data + b"\0" * (-len(data) % PAGE)


def read(path):
    """keys [(name, type, bytes)], tensors {name: (ne, type, bytes)}"""
    with open(path, "rb") as f:
        r = Reader(f.read())
    r.number("I")
    n_tensor, n_key = r.number("Q"), r.number("Q")
    keys, found, tensors = [], [], {}
    for _ in range(n_key):
        name, kind = r.string(), r.number("I")
        keys.append((name, kind, r.value(kind)))
    for _ in range(n_tensor):
        name = r.string().decode()
        ne = [r.number("Q") for _ in range(r.number("I"))]
        found.append((name, ne, r.number("I"), r.number("Q")))
    data = padded(r.data[:r.at])
    for name, ne, kind, at in found:
        n = ne[0] * (ne[1] if len(ne) > 1 else 1)
        at += len(data)
        tensors[name] = ne, kind, r.data[at:at + (n * 4 if kind == F32 else n // 32 * 34)]
    return keys, tensors


def joined(*parts):
    return [parts[0][0][0], sum(p[0][1] for p in parts)], parts[0][1], b"".join(p[2] for p in parts)


def main(path, n_pos, out):
    keys, old = read(path)
    parts = "attn_q.", "attn_k.", "attn_v.", "ffn_gate.", "ffn_up."
    new = {n: t for n, t in old.items() if not any(p in n for p in parts)}
    for name in [n for n in old if n.endswith("attn_q.weight")]:
        block = name[:-len("attn_q.weight")]
        qkv, glu = ([old[f"{block}{p}weight"] for p in some] for some in (parts[:3], parts[3:]))
        new[block + "attn_qkv.weight"], new[block + "ffn_up.weight"] = joined(*qkv), joined(*glu)
    number = {name: value for name, kind, value in keys if kind == U32}
    head = struct.unpack("<I", number[b"qwen2.embedding_length"])[0] // \
        struct.unpack("<I", number[b"qwen2.attention.head_count"])[0]
    for name, factor in ("long", 3.0), ("short", 1.0):
        new[f"rope_factors_{name}.weight"] = [head // 2], F32, struct.pack("<f", factor) * (head // 2)
    new.setdefault("output.weight", new["token_embd.weight"])
    keys = [(n.replace(b"qwen2.", b"phi3."), k, v) for n, k, v in keys if n != b"general.architecture"]
    keys += [(b"general.architecture", STRING, struct.pack("<Q", 4) + b"phi3"),
             (b"phi3.rope.scaling.original_context_length", U32, struct.pack("<I", int(n_pos)))]
    if not any(n == b"phi3.rope.dimension_count" for n, _, _ in keys):
        keys.append((b"phi3.rope.dimension_count", U32, struct.pack("<I", head)))
    text, data = b"GGUF" + struct.pack("<IQQ", 3, len(new), len(keys)), b""
    for name, kind, value in keys:
        text += struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value
    for name, (ne, kind, bytes_) in new.items():
        text += struct.pack("<Q", len(name)) + name.encode()
        text += struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, len(data))
        data += padded(bytes_)
    with open(out, "wb") as f:
        f.write(padded(text) + data)


main(*sys.argv[1:])
