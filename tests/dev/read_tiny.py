#!/usr/bin/env python3
"""Writes text with hone-tiny without hone: a plain numpy implementation of the file.

    python3 tests/dev/read_tiny.py models/hone-tiny.gguf [--lora ADAPTER.gguf] [--prompt TEXT] [--temp T] [--seed S]

Needs numpy and gguf. What it writes greedily is the known text of e2e.clean (src/lab/bench_e2e.c) and of
tests/unit/test_lab_sample.c; its samples stand in models/README.md. Prints the text and its number of tokens.
"""
import argparse
import re

import numpy as np
from gguf import GGUFReader


class Reader:
    def __init__(self, path, lora=None, dtype=np.float64):
        g = GGUFReader(path)
        kv = {k: f.contents() for k, f in g.fields.items()}
        self.kv, A = kv, "llama."
        self.L, self.H, self.K = (int(kv[A + k]) for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
        self.eps, self.base = float(kv[A + "attention.layer_norm_rms_epsilon"]), float(kv[A + "rope.freq_base"])
        self.hd = int(kv[A + "embedding_length"]) // self.H
        self.w = {t.name: np.asarray(t.data).astype(dtype) for t in g.tensors}
        if lora:
            a = GGUFReader(lora)
            alpha = float(a.fields["adapter.lora.alpha"].contents())
            part = {t.name: np.asarray(t.data).astype(dtype) for t in a.tensors}
            for name in part:
                if name.endswith(".lora_a"):
                    A, B = part[name], part[name[:-1] + "b"]
                    self.w[name[:-7]] = self.w[name[:-7]] + alpha / A.shape[0] * (B @ A)
        self.dt = dtype
        self.tokens = kv["tokenizer.ggml.tokens"]
        self.types = kv["tokenizer.ggml.token_type"]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {tuple(m.split(" ")): i for i, m in enumerate(kv["tokenizer.ggml.merges"])}
        bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
        cs, n = bs[:], 0
        for b in range(256):
            if b not in bs:
                bs.append(b)
                cs.append(256 + n)
                n += 1
        self.b2c = {b: chr(c) for b, c in zip(bs, cs)}
        self.c2b = {c: b for b, c in self.b2c.items()}

    def encode(self, text):             # GPT-2 pattern for plain ASCII text
        out = []
        for word in re.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", text):
            p = [self.b2c[b] for b in word.encode()]
            while len(p) > 1:
                r, i = min((self.rank.get((p[i], p[i + 1]), 1 << 30), i) for i in range(len(p) - 1))
                if r == 1 << 30:
                    break
                p[i:i + 2] = [p[i] + p[i + 1]]
            out += [self.ids[s] for s in p]
        return out

    def decode(self, ids):
        return bytes(self.c2b[c] for i in ids if self.types[i] == 1 for c in self.tokens[i]).decode("utf-8", "replace")

    def norm(self, x, w):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * w

    def rot(self, x, pos):
        f = self.base ** (-np.arange(0, self.hd, 2, dtype=np.float64) / self.hd)
        ang = np.outer(pos, f)
        c, s = np.cos(ang).astype(self.dt)[:, None], np.sin(ang).astype(self.dt)[:, None]
        y = np.empty_like(x)
        y[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        y[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return y

    def forward(self, ids, cache=None):
        W, n0 = self.w, 0 if not cache else cache[0][0].shape[0]
        pos = np.arange(n0, n0 + len(ids))
        x = W["token_embd.weight"][ids]
        for l in range(self.L):
            g = lambda s: W["blk.%d.%s.weight" % (l, s)]
            h = self.norm(x, g("attn_norm"))
            q = self.rot((h @ g("attn_q").T).reshape(len(ids), self.H, self.hd), pos)
            k = self.rot((h @ g("attn_k").T).reshape(len(ids), self.K, self.hd), pos)
            v = (h @ g("attn_v").T).reshape(len(ids), self.K, self.hd)
            if cache is not None:
                if len(cache) > l:
                    k, v = np.concatenate([cache[l][0], k]), np.concatenate([cache[l][1], v])
                    cache[l] = (k, v)
                else:
                    cache.append((k, v))
            o = np.empty_like(q)
            mask = np.arange(k.shape[0])[None, :] > pos[:, None]
            for hh in range(self.H):
                kh = hh // (self.H // self.K)
                s = q[:, hh] @ k[:, kh].T / np.sqrt(self.dt(self.hd))
                s[mask] = -np.inf
                s = np.exp(s - s.max(-1, keepdims=True))
                o[:, hh] = (s / s.sum(-1, keepdims=True)) @ v[:, kh]
            x = x + o.reshape(len(ids), -1) @ g("attn_output").T
            h = self.norm(x, g("ffn_norm"))
            a = h @ g("ffn_gate").T
            x = x + (a / (1 + np.exp(-a)) * (h @ g("ffn_up").T)) @ g("ffn_down").T
        return self.norm(x, W["output_norm.weight"]) @ W["token_embd.weight"].T

    def write(self, prompt, n, temp, seed):
        rng = np.random.default_rng(seed)
        ids = [int(self.kv["tokenizer.ggml.bos_token_id"])] + self.encode(prompt)
        cache = []
        logits = self.forward(ids, cache)[-1]
        while len(ids) < n:
            if temp == 0:
                t = int(logits.argmax())
            else:
                p = np.exp((logits - logits.max()).astype(np.float64) / temp)
                t = int(rng.choice(len(p), p=p / p.sum()))
            if t == int(self.kv["tokenizer.ggml.eos_token_id"]):
                break
            ids.append(t)
            logits = self.forward([t], cache)[-1]
        return self.decode(ids), len(ids)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model")
    ap.add_argument("--lora")
    ap.add_argument("--prompt", default="Once upon a time")
    ap.add_argument("--temp", type=float, default=0)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("-n", type=int, default=512, help="tokens with the prompt (512)")
    a = ap.parse_args()
    text, n = Reader(a.model, a.lora).write(a.prompt, a.n, a.temp, a.seed)
    print("%s\n\n%d tokens" % (text, n))


if __name__ == "__main__":
    main()
