#!/usr/bin/env python3
"""Train hone-tiny from scratch and write it as a GGUF file.

    python3 train_tiny.py corpus.txt runs/tiny --out hone-tiny.gguf

Needs torch 2.13.0, numpy, tokenizers and gguf.  The default settings are the
ones the shipped file was made with.  The second argument is a folder for the
tokenizer, checkpoints and a log.

  --export CKPT   write the GGUF from a checkpoint and stop
  --check GGUF    load a GGUF with numpy only, write text with it, and stop
"""
import argparse
import json
import math
import os
import random
import time

import numpy as np

# ------------------------------------------------------------------ settings
SEED = 20240607
VOCAB = 1536
CTX = 512
DIM = 256
HEADS = 8
KV_HEADS = 4
HEAD_DIM = DIM // HEADS
FF = 512
LAYERS = 4
EPS = 1e-5
ROPE_BASE = 10000.0
BATCH = 4             # rows of CTX tokens in a step with packed stories
SINGLE = 8            # stories in a step with one story to a row
PACKED_PART = 0.25    # this part of the stories is packed, anew in every epoch
LR_END = 2e-5
# Three rounds; each goes on from the weights of the one before with a fresh optimizer and a fresh order.
# steps, warm-up steps, rate after it, step from which it falls in a line, and from which rate (to LR_END)
ROUNDS = [(1580, 150, 1.5e-3, 1071, 9.6165e-4),
          (480, 40, 1.2e-3, 200, 1.2e-3),
          (1300, 40, 1.2e-3, 450, 1.2e-3)]
BETAS = (0.9, 0.98)
WEIGHT_DECAY = 0.1
CLIP = 1.0
HOLD_OUT = 0.02
THREADS = 2
BOS, EOS = 0, 1
SPECIAL = ["<|bos|>", "<|endoftext|>"]


# ------------------------------------------------------------------ text
def read_stories(path):
    with open(path, encoding="utf-8") as f:
        return [s.strip("\n") for s in f.read().split("\n<|endoftext|>\n") if s.strip()]


def make_tokenizer(stories, path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(stories, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tok.save(path)
    return tok


def pack(lengths, order, rng):
    """Put whole stories together into rows of at most CTX+1 tokens (best fit, a few hundred at a time)."""
    rows = []
    for c in range(0, len(order), 512):
        part = sorted(order[c:c + 512], key=lambda i: (-lengths[i], i))
        space = []                      # [free, row]
        for i in part:
            n = lengths[i]
            best = None
            for s in space:
                if s[0] >= n and (best is None or s[0] < best[0]):
                    best = s
            if best is None:
                best = [CTX + 1, []]
                space.append(best)
            best[0] -= n
            best[1].append(i)
        for s in space:
            rng.shuffle(s[1])
            rows.append(s[1])
    rng.shuffle(rows)
    return rows


def row_array(rows, docs):
    width = max(sum(len(docs[i]) for i in row) for row in rows)
    out = np.full((len(rows), width), -1, dtype=np.int64)
    for r, row in enumerate(rows):
        p = 0
        for i in row:
            out[r, p:p + len(docs[i])] = docs[i]
            p += len(docs[i])
    return out


def epoch_batches(lengths, order, rng):
    """One epoch: most stories one to a row, beside others of like length; some packed to the full context."""
    order = order[:]
    rng.shuffle(order)
    n = int(len(order) * PACKED_PART)
    rows = pack(lengths, order[:n], rng)
    batches = [rows[i:i + BATCH] for i in range(0, len(rows) - BATCH + 1, BATCH)]
    rest = order[n:]
    for c in range(0, len(rest), 40 * SINGLE):
        part = sorted(rest[c:c + 40 * SINGLE], key=lambda i: (lengths[i], i))
        batches += [[[i] for i in part[j:j + SINGLE]] for j in range(0, len(part) - SINGLE + 1, SINGLE)]
    rng.shuffle(batches)
    return batches


# ------------------------------------------------------------------ model
def build():
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(DIM))

        def forward(self, x):
            return F.rms_norm(x.float(), (DIM,), self.weight, EPS)

    def rope(x, cs):                    # pairs are (x[2i], x[2i+1])
        y = torch.view_as_complex(x.float().reshape(*x.shape[:-1], HEAD_DIM // 2, 2)) * cs
        return torch.view_as_real(y).reshape(x.shape).to(x.dtype)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            lin = lambda i, o: nn.Linear(i, o, bias=False)
            self.attn_norm = Norm()
            self.attn_q = lin(DIM, HEADS * HEAD_DIM)
            self.attn_k = lin(DIM, KV_HEADS * HEAD_DIM)
            self.attn_v = lin(DIM, KV_HEADS * HEAD_DIM)
            self.attn_output = lin(HEADS * HEAD_DIM, DIM)
            self.ffn_norm = Norm()
            self.ffn_gate = lin(DIM, FF)
            self.ffn_up = lin(DIM, FF)
            self.ffn_down = lin(FF, DIM)

        def forward(self, x, cs):
            B, T, _ = x.shape
            h = self.attn_norm(x)
            q = rope(self.attn_q(h).view(B, T, HEADS, HEAD_DIM), cs).transpose(1, 2)
            k = rope(self.attn_k(h).view(B, T, KV_HEADS, HEAD_DIM), cs).transpose(1, 2)
            v = self.attn_v(h).view(B, T, KV_HEADS, HEAD_DIM).transpose(1, 2)
            rep = HEADS // KV_HEADS
            k, v = k.repeat_interleave(rep, 1), v.repeat_interleave(rep, 1)
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn_output(o.transpose(1, 2).reshape(B, T, HEADS * HEAD_DIM))
            h = self.ffn_norm(x)
            return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token_embd = nn.Embedding(VOCAB, DIM)
            self.blk = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.output_norm = Norm()
            ang = torch.outer(torch.arange(CTX).double(),
                              ROPE_BASE ** (-torch.arange(0, HEAD_DIM, 2).double() / HEAD_DIM))
            self.register_buffer("cs", torch.polar(torch.ones_like(ang), ang).to(torch.complex64)[:, None, :], persistent=False)
            for n, p in self.named_parameters():
                if p.dim() == 2:
                    s = 0.02 if "embd" in n else 1.0 / math.sqrt(p.shape[1])
                    if n.endswith(("attn_output.weight", "ffn_down.weight")):
                        s /= math.sqrt(2 * LAYERS)
                    nn.init.normal_(p, 0.0, s)

        def forward(self, ids):
            x = self.token_embd(ids)
            cs = self.cs[:ids.shape[1]]
            for b in self.blk:
                x = b(x, cs)
            return F.linear(self.output_norm(x), self.token_embd.weight)

    return torch, F, Model()


# ------------------------------------------------------------------ training
def train(a):
    torch, F, model = build_seeded()
    os.makedirs(a.run, exist_ok=True)
    stories = read_stories(a.corpus)
    tok = make_tokenizer(stories, os.path.join(a.run, "tokenizer.json"))
    docs = [np.array([BOS] + e.ids + [EOS], dtype=np.int64) for e in tok.encode_batch(stories)]
    docs = [d for d in docs if len(d) <= CTX + 1]
    rng = random.Random(SEED)
    order = list(range(len(docs)))
    rng.shuffle(order)
    nval = int(len(docs) * HOLD_OUT)
    val, trn = order[:nval], order[nval:]
    lengths = [len(d) for d in docs]
    vrows = row_array(pack(lengths, val, random.Random(SEED)), docs)
    log = open(os.path.join(a.run, "log.txt"), "a")

    def say(s):
        print(s, flush=True)
        log.write(s + "\n")
        log.flush()

    nparam = sum(p.numel() for p in model.parameters())
    say("stories %d (%d held out), characters %d, tokens %d, longest %d, parameters %d" % (
        len(docs), nval, sum(map(len, stories)), sum(lengths), max(lengths), nparam))

    def loss_of(rows, reduction="mean"):
        t = torch.from_numpy(rows)
        x, y = t[:, :-1], t[:, 1:]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not a.fp32):
            logits = model(x.clamp(min=0))
        return F.cross_entropy(logits.float().reshape(-1, VOCAB), y.reshape(-1), ignore_index=-1, reduction=reduction)

    def evaluate(rows):
        model.eval()
        tot = 0.0
        with torch.no_grad():
            for i in range(0, len(rows), BATCH):
                tot += loss_of(rows[i:i + BATCH], "sum").item()
        model.train()
        return tot / int((rows[:, 1:] >= 0).sum())

    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    t0, recent, seen = time.time(), [], 0
    for rnd in range(a.first_round - 1, len(ROUNDS)):
        say("round %d" % (rnd + 1))
        steps, warmup, top, hold, fall = ROUNDS[rnd]
        opt = torch.optim.AdamW([{"params": decay, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}],
                                lr=top, betas=BETAS, eps=1e-8, foreach=True)
        if rnd:
            rng = random.Random(SEED + rnd)
        if rnd and rnd == a.first_round - 1:
            model.load_state_dict(torch.load(os.path.join(a.run, "ckpt.pt")))
        batches, epoch = [], 0
        for step in range(steps):
            if not batches:
                batches, epoch = epoch_batches(lengths, trn, rng), epoch + 1
            lr = top * min(1.0, (step + 1) / warmup)
            if step >= hold:
                lr = LR_END + (fall - LR_END) * (steps - step) / (steps - hold)
            for g in opt.param_groups:
                g["lr"] = lr
            batch = row_array(batches.pop(), docs)
            loss = loss_of(batch)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            opt.step()
            seen += int((batch >= 0).sum())
            recent.append(loss.item())
            if step % 50 == 49 or step == 0:
                dt = time.time() - t0
                say("step %d loss %.4f lr %.5f epoch %d tokens %d  %.0f s  %.0f tok/s" % (
                    step + 1, sum(recent[-50:]) / len(recent[-50:]), lr, epoch, seen, dt, seen / dt))
            if (step + 1) % a.save_every == 0 or step + 1 == steps:
                v = evaluate(vrows[:32] if step + 1 < steps else vrows)
                say("step %d val %.4f" % (step + 1, v))
                torch.save(model.state_dict(), os.path.join(a.run, "ckpt.pt.new"))
                os.replace(os.path.join(a.run, "ckpt.pt.new"), os.path.join(a.run, "ckpt.pt"))
    train_loss = sum(recent[-200:]) / len(recent[-200:])
    before = evaluate(vrows)
    with torch.no_grad():
        for p in decay:
            p.copy_(p.half().float())
    a.fp32 = True
    after = evaluate(vrows)
    say("train loss (last 200 steps) %.4f, val %.4f, val with f16 weights in float32 %.4f, %.0f s" % (
        train_loss, before, after, time.time() - t0))
    export(model, os.path.join(a.run, "tokenizer.json"), a.out)


def build_seeded():
    import torch
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    return build()


# ------------------------------------------------------------------ GGUF
def export(model, tokjson, out):
    import gguf
    with open(tokjson, encoding="utf-8") as f:
        tj = json.load(f)["model"]
    vocab = sorted(tj["vocab"], key=tj["vocab"].get)
    assert len(vocab) == VOCAB and vocab[BOS] == SPECIAL[0] and vocab[EOS] == SPECIAL[1]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tj["merges"]]
    w = gguf.GGUFWriter(out, "llama")
    w.add_name("hone-tiny")
    w.add_license("MIT")
    w.add_description("A tiny model that writes small children's stories; trained from scratch on generated text.")
    w.add_file_type(1)                  # mostly F16
    w.add_quantization_version(2)
    w.add_context_length(CTX)
    w.add_embedding_length(DIM)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FF)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(EPS)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(ROPE_BASE)
    w.add_vocab_size(VOCAB)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(vocab)
    w.add_token_types([3 if i in (BOS, EOS) else 1 for i in range(VOCAB)])
    w.add_token_merges(merges)
    w.add_bos_token_id(BOS)
    w.add_eos_token_id(EOS)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    for n, p in model.state_dict().items():
        t = p.detach().float().numpy()
        w.add_tensor(n, t.astype(np.float16) if t.ndim == 2 else t.astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print("%s: %d bytes" % (out, os.path.getsize(out)))


# ------------------------------------------------------------------ check: numpy only, from the file
class Reader:
    """Runs the GGUF file with numpy; shares no code with the training model."""

    def __init__(self, path, dtype=np.float32):
        from gguf import GGUFReader
        g = GGUFReader(path)
        kv = {k: f.contents() for k, f in g.fields.items()}
        self.kv, A = kv, "llama."
        self.L, self.H, self.K = (int(kv[A + k]) for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
        self.eps, self.base = float(kv[A + "attention.layer_norm_rms_epsilon"]), float(kv[A + "rope.freq_base"])
        self.hd = int(kv[A + "embedding_length"]) // self.H
        self.w = {t.name: np.asarray(t.data).astype(dtype) for t in g.tensors}
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
        import re
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


def check(path):
    m = Reader(path)
    for prompt in ("Once upon a time", "One day", "Mia and Ben"):
        for temp in (0, 0.8):
            text, n = m.write(prompt, CTX, temp, 1)
            print("--- %r, temperature %g, %d tokens\n%s\n" % (prompt, temp, n, text))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("corpus", nargs="?")
    ap.add_argument("run", nargs="?")
    ap.add_argument("--out", default="hone-tiny.gguf")
    ap.add_argument("--first-round", type=int, default=1, help="2: go on from the checkpoint of round 1")
    ap.add_argument("--save-every", type=int, default=250)
    ap.add_argument("--fp32", action="store_true", help="no bfloat16")
    ap.add_argument("--export", metavar="CKPT")
    ap.add_argument("--check", metavar="GGUF")
    a = ap.parse_args()
    if a.check:
        return check(a.check)
    if a.export:
        torch, _, model = build()
        model.load_state_dict(torch.load(a.export))
        return export(model, os.path.join(os.path.dirname(a.export), "tokenizer.json"), a.out)
    train(a)


if __name__ == "__main__":
    main()
