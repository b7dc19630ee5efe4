#!/usr/bin/env python3
"""Tokenizers of folders against transformers: built and trained here, converted by hone, compared id by id.

    check_convert_tokenizers.py HF_WORDS [--data FOLDER] [--lines N] [--only NAME ...]

HF_WORDS is tests/dev/hf_words.c, built as its head says. For each tokenizer below

  1. a folder is saved by transformers (or written as its authors publish it: SentencePiece, vocab.json, tiktoken,
     tekken), and hone makes a GGUF of it,
  2. N lines (scripts, emoji, spaces, control tokens, broken words) must have transformers' ids,
  3. the GGUF becomes a folder again, which AutoTokenizer loads: the same ids, templates byte by byte,
  4. that folder becomes a GGUF again: the same arrays.

Every split that hone knows is gone through in step 3's direction: a GGUF that names it, a folder, transformers' ids.
With --data the vocabularies of real models there are, too. Needs transformers, tokenizers, sentencepiece, gguf.
"""
import argparse
import base64
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import gguf
import numpy as np
import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

transformers.logging.set_verbosity_error()
MARK = "\u2581"
SCRIPTS = ["the quick brown fox jumps over lazy dogs and doesn't look back", "L'été où nous étions à Zürich, naïveté",
           "Съешь ещё этих мягких французских булок", "我想在苹果公司工作 因为他们有好的电脑", "今日はとても良い天気ですね カタカナ",
           "안녕하세요 세계 여러분", "مرحبا بالعالم، كيف حالك؟", "שלום עולם", "नमस्ते दुनिया।", "สวัสดีชาวโลก",
           "\u1780\u17b6\u1793\u17cb\u178f\u17c2\u1796\u17b7\u179f\u17c1\u179f", "Ελληνικά Ώρα ΐ", "ÅÄÖ åäö ſ K Ω",
           "def f(x):\n\treturn x**2 + 3.14159  # note", "<div class=\"a\">b</div>", "{\"k\": [1, 22, 333, 4444, 55555]}"]
BITS = [" ", "  ", "   ", "\n", "\n\n", " \n ", "\t", "\r\n", "\u00a0", "\u3000", "1", "12", "123", "1234", "1234567",
        "3.14", "\u0663\u0664", "½", "'s", "'LL", "'Re", "don't", "WE'VE", "!!", "...", "—", "“q”", "(x)", "[y]", "#tag",
        "@me", "a_b", "CamelCase", "ALLCAPS", "x=1;", "//", "\U0001f680", "\U0001f636\u200d\U0001f32b\ufe0f", "\u2705",
        "e\u0301", "\u0915\u094d\u0937", "\u200b", "\ufeff", "\u2581", "\x00", "\x7f", "$€£", "~^|<>+=`", "…。，"]


def lines(n, specials, seed=7, plain=False):
    r = random.Random(seed)
    out = []
    for _ in range(n):
        s = ""
        for _ in range(r.randint(1, 7)):
            k = r.random()
            if k < .45:
                words = r.choice(SCRIPTS).split(" ")
                s += (" " if r.random() < .7 else "") + " ".join(words[:r.randint(1, len(words))])
            elif k < .85:
                s += r.choice(BITS)
            elif k < .92 and specials and not plain:
                s += r.choice(specials)
            else:
                s += "".join(chr(r.choice([r.randint(33, 126), r.randint(0xA1, 0x5FF), r.randint(0x900, 0xD7FF),
                                           r.randint(0x1F300, 0x1FAFF)])) for _ in range(r.randint(1, 4)))
        out.append(s.replace("\x00", "") if plain else s)
    return out


class Check:
    def __init__(self, args, tmp):
        self.tool, self.tmp, self.n = args.tool, tmp, args.lines
        self.bad = 0

    def run(self, *a):
        r = subprocess.run([self.tool, *map(str, a)], capture_output=True)
        if r.returncode:
            raise RuntimeError(r.stderr.decode().strip())
        return r.stdout, r.stderr.decode()

    def put(self, folder, out, n_vocab=0, arch="-", pre="-"):
        return self.run("put", folder, n_vocab, arch, pre, out)[1]

    def ids(self, path, texts, pre="-"):
        f = os.path.join(self.tmp, "texts")
        with open(f, "wb") as o:
            for t in texts:
                b = t.encode()
                o.write(struct.pack("<I", len(b)) + b)
        return [list(map(int, l.split())) for l in self.run("encode", path, pre, f)[0].decode().splitlines()]

    def same(self, what, texts, have, want):
        bad = [i for i in range(len(texts)) if have[i] != want[i]]
        self.bad += bool(bad)
        print(f"{'BAD ' if bad else 'same'} {what}: {len(texts)} lines, {len(bad)} differ", flush=True)
        for i in bad[:2]:
            print("    ", ascii(texts[i])[:150], "\n       hone ", have[i][:40], "\n       other", want[i][:40])

    def arrays(self, a, b, what, skip=()):
        x, y = [gguf.GGUFReader(p).fields for p in (a, b)]
        for k in sorted(set(x) | set(y)):
            if not k.startswith("tokenizer.") or k in skip:
                continue
            u, v = [f[k].contents() if k in f else None for f in (x, y)]
            if k.endswith("scores") and u and v:
                u, v = list(np.float32(u)), list(np.float32(v))
            if u is None and v is not None:
                continue  # hone writes what is known
            if u != v:
                self.bad += 1
                where = [i for i in range(min(len(u), len(v))) if u[i] != v[i]][:3] if isinstance(u, list) and v else ""
                print(f"BAD  {what}: {k}: {str(u)[:60]} / {str(v)[:60]}",
                      [(i, u[i], v[i]) for i in where] if where else "", flush=True)

    def beside(self, name, folder, path):
        """Special ids, flags, merges and templates as gguf-py's SpecialVocab reads them from the same folder."""
        f = gguf.GGUFReader(path).fields
        n = len(f["tokenizer.ggml.tokens"].contents())
        sv = gguf.SpecialVocab(folder, load_merges="tokenizer.ggml.merges" in f, n_vocab=n)
        want = {f"tokenizer.ggml.{dict(unk='unknown', sep='seperator', pad='padding').get(k, k)}_token_id": v
                for k, v in sv.special_token_ids.items()}
        want |= {f"tokenizer.ggml.add_{k}_token": v for k, v in sv.add_special_token.items() if k != "sep"}
        if sv.merges:
            want["tokenizer.ggml.merges"] = list(sv.merges)
        if isinstance(sv.chat_template, str):
            want["tokenizer.chat_template"] = sv.chat_template
        bert = f["tokenizer.ggml.model"].contents() == "bert"
        for k, v in want.items():
            have = f[k].contents() if k in f else None
            if have != v and not (bert and k.endswith(("add_bos_token", "add_eos_token"))):
                print(f"     {name}: {k} is {str(have)[:60]!r}, gguf-py has {str(v)[:60]!r}")

    def check(self, name, folder, specials, hf=None, arch="-", pre="-", plain=False, template=None, skip=(),
              unmarked=False):
        hf = hf or transformers.AutoTokenizer.from_pretrained(folder)
        texts = lines(self.n, specials, plain=plain)
        if unmarked:  # words are marked with U+2581: texts that have it are ambiguous
            texts = [t.replace(MARK, "") for t in texts]
        one, back, two = [os.path.join(self.tmp, f"{name}.{x}") for x in ("gguf", "back", "again.gguf")]
        try:
            note = self.put(folder, one, arch=arch, pre=pre)
            self.beside(name, folder, one)
            want = hf(texts)["input_ids"]
            self.same(name, texts, self.ids(one, texts), want)
            shutil.rmtree(back, ignore_errors=True)
            os.mkdir(back)
            self.run("back", one, back)
            again = transformers.AutoTokenizer.from_pretrained(back)
            self.same(name + " back", texts, again(texts)["input_ids"], want)
            if template is not None:
                here, there = [open(f"{d}/chat_template.jinja", "rb").read() for d in (folder, back)]
                if here != there or template.encode() != there or not again.chat_template:
                    self.bad += 1
                    print(f"BAD  {name}: chat template {there!r}")
            self.put(back, two, arch=arch, pre=pre)
            self.arrays(one, two, name + " again", skip)
        except RuntimeError as e:
            self.bad += 1
            print(f"BAD  {name}: {e}")


SPECIALS = ["<|begin_of_text|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}\r\n<|im_start|>{{ m['role'] }}\u2581 {% endfor %}\n"
CI = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
KNOWN = {"gpt-2": (None, False), "llama-bpe": (CI + "|" + WORD + r"|\p{N}{1,3}" + TAIL, True),
         "qwen2": (CI + "|" + WORD + r"|\p{N}" + TAIL, False)}


def corpus():
    return lines(3000, [], seed=1, plain=True)


def bytes_bpe(split, n=3000, whole=False):
    t = tokenizers.Tokenizer(models.BPE(ignore_merges=whole))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    t.pre_tokenizer = level if split is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated", False), level])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=n, special_tokens=SPECIALS, show_progress=False,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([AddedToken("<think>", normalized=False, special=False)])
    return t


def save(t, folder, template=TEMPLATE, **kw):
    shutil.rmtree(folder, ignore_errors=True)
    hf = transformers.PreTrainedTokenizerFast(tokenizer_object=t, **kw)
    hf.chat_template = template
    hf.save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def check_bpe(c):
    for name, (split, whole) in KNOWN.items():
        t = bytes_bpe(split, whole=whole)
        if name == "llama-bpe":
            bos = t.token_to_id(SPECIALS[0])
            t.post_processor = processors.TemplateProcessing(single=SPECIALS[0] + " $A", pair=None,
                                                             special_tokens=[(SPECIALS[0], bos)])
        folder = os.path.join(c.tmp, name)
        hf = save(t, folder, bos_token=SPECIALS[0], eos_token=SPECIALS[2])
        c.check(name, folder, SPECIALS + ["<think>"], hf, template=TEMPLATE)
        if name == "gpt-2":
            plain = os.path.join(c.tmp, "merges")
            os.makedirs(plain, exist_ok=True)
            t.model.save(plain)
            json.dump({"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": json.load(
                open(folder + "/tokenizer_config.json")).get("added_tokens_decoder") or {
                    str(t.token_to_id(s)): {"content": s, "special": s != "<think>"} for s in SPECIALS + ["<think>"]}},
                      open(plain + "/tokenizer_config.json", "w"))
            c.check("merges", plain, SPECIALS + ["<think>"], hf)


def check_splits(c, names):
    """Each pre: a GGUF that names it, from one vocabulary, written back."""
    t = bytes_bpe(r"[^ ]+| +", n=2500)
    folder = os.path.join(c.tmp, "split")
    save(t, folder, bos_token=SPECIALS[0], eos_token=SPECIALS[2])
    texts = lines(c.n, SPECIALS)
    for pre in names:
        try:
            one, back = os.path.join(c.tmp, "split.gguf"), os.path.join(c.tmp, "split.back")
            c.put(folder, one, pre=pre)
            shutil.rmtree(back, ignore_errors=True)
            os.mkdir(back)
            c.run("back", one, back)
            hf = transformers.AutoTokenizer.from_pretrained(back)
            c.same("split " + pre, texts, c.ids(one, texts), hf(texts)["input_ids"])
            two = os.path.join(c.tmp, "split2.gguf")
            c.put(back, two)
            have = gguf.GGUFReader(two).fields["tokenizer.ggml.pre"].contents()
            if have != pre:
                print(f"     split {pre}: read back as {have}")
                c.same(f"split {pre} as {have}", texts, c.ids(two, texts), c.ids(one, texts))
        except RuntimeError as e:
            c.bad += 1
            print(f"BAD  split {pre}: {e}")


def spm(c, name, **kw):
    text = os.path.join(c.tmp, "corpus.txt")
    with open(text, "w") as f:
        f.write("\n".join(s.replace("\n", " ").replace("\r", " ") for s in corpus()))
    folder = os.path.join(c.tmp, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=folder + "/m", vocab_size=4000,
                                             hard_vocab_limit=False, minloglevel=2, character_coverage=.98, **kw)
    os.rename(folder + "/m.model", folder + "/tokenizer.model")
    return folder


class Sp:
    """SentencePiece itself, with bos as its users add it."""
    def __init__(self, folder, bos):
        self.sp, self.bos = sentencepiece.SentencePieceProcessor(folder + "/tokenizer.model"), bos

    def __call__(self, texts):
        return {"input_ids": [([self.sp.bos_id()] if self.bos and t is not None else []) + self.sp.encode(t)
                              + ([] if self.bos else [self.sp.eos_id()]) for t in texts]}


def check_spm(c):
    plain = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True)
    c.check("spm-llama", spm(c, "spm-llama", model_type="bpe", **plain), [], Sp(c.tmp + "/spm-llama", True), plain=True)
    c.check("spm-gemma", spm(c, "spm-gemma", model_type="bpe", add_dummy_prefix=False, **plain), [],
            Sp(c.tmp + "/spm-gemma", True), plain=True)
    c.check("spm-unigram", spm(c, "spm-unigram", model_type="unigram"), [], Sp(c.tmp + "/spm-unigram", False), plain=True)


def check_json_spm(c):
    """Llama's and Gemma's tokenizer.json: trained by tokenizers."""
    for name, prefix in (("llama", True), ("gemma", False)):
        t = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        replace = normalizers.Replace(" ", MARK)
        t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), replace]) if prefix else replace
        if not prefix:
            t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
        special = ["<unk>", "<s>", "</s>", "<|im_start|>"] + [f"<0x{i:02X}>" for i in range(256)]
        texts = [s.replace(" ", MARK + " ") for s in corpus()]
        t.pre_tokenizer, keep = pre_tokenizers.Metaspace(), t.pre_tokenizer
        norm, t.normalizer = t.normalizer, None
        t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=3000, special_tokens=special, show_progress=False))
        j = json.loads(t.to_str())
        j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
        j["model"]["byte_fallback"], j["pre_tokenizer"] = True, None
        t = tokenizers.Tokenizer.from_str(json.dumps(j))
        t.normalizer = norm
        if keep:
            t.pre_tokenizer = keep
        t.post_processor = processors.TemplateProcessing(single="<s> $A", pair=None, special_tokens=[("<s>", 1)])
        folder = os.path.join(c.tmp, "json-" + name)
        hf = save(t, folder, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
        c.check("json-" + name, folder, ["<s>", "<|im_start|>"], hf, template=TEMPLATE)


def check_bert(c):
    for name, lower, strip in (("bert", True, None), ("bert-cased", False, False)):
        t = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=3000, special_tokens=special,
                                                                  show_progress=False))
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                         special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        folder = os.path.join(c.tmp, name)
        hf = save(t, folder, template=None, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
                  mask_token="[MASK]")
        c.check(name, folder, ["[SEP]", "[MASK]"], hf, plain=True, unmarked=True)


def check_unigram(c):
    t = tokenizers.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=8000, special_tokens=["<pad>", "</s>", "<unk>"],
                                                            unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair=None, special_tokens=[("</s>", 1)])
    folder = os.path.join(c.tmp, "unigram")
    hf = save(t, folder, template=None, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")
    c.check("unigram", folder, ["</s>"], hf, plain=True, unmarked=True)
    j = json.loads(t.to_str())  # characters that are no token become bytes
    j["model"]["byte_fallback"] = True
    j["model"]["vocab"][3:3] = [[f"<0x{i:02X}>", 0.0] for i in range(256)]
    j["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, j["decoder"]]}
    folder = os.path.join(c.tmp, "unigram-bytes")
    hf = save(tokenizers.Tokenizer.from_str(json.dumps(j)), folder, template=None, eos_token="</s>", unk_token="<unk>",
              pad_token="<pad>")
    c.check("unigram-bytes", folder, ["</s>"], hf, plain=True, unmarked=True)


def check_fairseq(c):
    """XLM-RoBERTa with SentencePiece's file alone."""
    folder = spm(c, "fairseq", model_type="unigram", normalization_rule_name="identity")
    os.rename(folder + "/tokenizer.model", folder + "/sentencepiece.bpe.model")
    slow = sentencepiece.SentencePieceProcessor(folder + "/sentencepiece.bpe.model")

    def ids(texts):
        return {"input_ids": [[0] + [i + 1 if i else 3 for i in slow.encode(t)] + [2] for t in texts]}
    c.check("fairseq", folder, [], ids, plain=True, unmarked=True)


def check_ranks(c):
    """tiktoken's own encoder is the reference; tekken's file is the same ranks."""
    import tiktoken
    ranks = {bytes([i]): i for i in range(256)}
    t = bytes_bpe(KNOWN["qwen2"][0])
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    other = [b for b in range(256) if b not in bs]
    table = {chr(b): b for b in bs} | {chr(256 + i): b for i, b in enumerate(other)}
    for tok, _ in sorted(t.get_vocab().items(), key=lambda kv: kv[1]):
        if all(ch in table for ch in tok) and tok not in SPECIALS + ["<think>"]:
            ranks.setdefault(bytes(table[ch] for ch in tok), len(ranks))
    for name, pattern, pre in (("ranks", KNOWN["qwen2"][0], "QWenTokenizer"),):
        folder = os.path.join(c.tmp, name)
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/x.tiktoken", "wb") as f:
            for b, r in ranks.items():
                f.write(base64.b64encode(b) + b" %d\n" % r)
        special = {s: len(ranks) + i for i, s in enumerate(SPECIALS)}
        json.dump({"tokenizer_class": pre, "added_tokens_decoder": {
            str(i): {"content": s, "special": True} for s, i in special.items()}},
            open(folder + "/tokenizer_config.json", "w"))
        enc = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        c.check(name, folder, SPECIALS, lambda ts: {"input_ids": [enc.encode(x, allowed_special="all") for x in ts]})
    pattern = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
               r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    folder = os.path.join(c.tmp, "tekken")
    os.makedirs(folder, exist_ok=True)
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    n_special = 16
    json.dump({"config": {"pattern": pattern, "num_vocab_tokens": len(ranks), "version": "v3",
                          "default_vocab_size": n_special + len(ranks) - 100, "default_num_special_tokens": n_special},
               "vocab": [{"rank": r, "token_bytes": base64.b64encode(b).decode(), "token_str": None}
                         for b, r in ranks.items()],
               "special_tokens": [{"rank": i, "token_str": s, "is_control": True} for i, s in enumerate(names)]},
              open(folder + "/tekken.json", "w"))
    kept = {b: r for b, r in ranks.items() if r < len(ranks) - 100}
    enc = tiktoken.Encoding("tekken", pat_str=pattern, mergeable_ranks=kept, special_tokens={})
    plain = [s for s in names]

    def tekken(ts):
        import re
        cut = re.compile("(" + "|".join(re.escape(s) for s in plain) + ")")
        return {"input_ids": [[1] + [i for p in cut.split(x) if p for i in
                                     ([names.index(p)] if p in names else [r + n_special for r in enc.encode_ordinary(p)])]
                              for x in ts]}
    c.check("tekken", folder, plain, tekken)


def check_real(c, data):
    for name in ("gpt-2", "qwen2", "starcoder", "llama-spm", "phi-3", "deepseek-coder"):
        path = f"{data}/ggml-vocab-{name}.gguf"
        back, two = os.path.join(c.tmp, "real.back"), os.path.join(c.tmp, "real.gguf")
        try:
            shutil.rmtree(back, ignore_errors=True)
            os.mkdir(back)
            c.run("back", path, back)
            import time
            rows = len(gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].contents())
            t0 = time.monotonic()
            c.put(back, two, n_vocab=rows)
            t1 = time.monotonic()
            size = os.path.getsize(back + "/tokenizer.json")
            print(f"     {name}: {size / 1e6:.1f} MB of tokenizer.json in {t1 - t0:.2f} s")
            # scores of llama.cpp's converter are of SentencePiece; its types of added tokens are older (phi-3, deepseek)
            old = name in ("phi-3", "deepseek-coder")
            c.arrays(path, two, "real " + name, ("tokenizer.ggml.token_type", "tokenizer.ggml.scores") if old else ())
            hf = transformers.AutoTokenizer.from_pretrained(back)
            texts = lines(c.n, [], plain=True)
            c.same("real " + name, texts, c.ids(path, texts), hf(texts)["input_ids"])
            vectors = open(path + ".inp", "rb").read().decode().split("\n__ggml_vocab_test__\n")
            want = [list(map(int, l.split())) for l in open(path + ".out").read().split("\n")][:len(vectors)]
            have = [hf.encode(v, add_special_tokens=False) for v in vectors][:len(want)]
            c.same(f"real {name} vectors", vectors[:len(want)], have, want)
        except RuntimeError as e:
            c.bad += 1
            print(f"BAD  real {name}: {e}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool")
    p.add_argument("--data")
    p.add_argument("--lines", type=int, default=10000)
    p.add_argument("--only", nargs="*")
    args = p.parse_args()
    splits = ("gpt-2 llama-bpe smaug-bpe minicpm5 qwen2 qwen35 starcoder default falcon deepseek-coder deepseek-llm "
              "deepseek-v3 tekken gpt-4o tiny_aya superbpe afmoe spark2_5 ufakzeka laguna youtu seed-coder bailingmoe "
              "bloom viking chameleon exaone-moe jais-2 kimi-k2 granite-embed-multi-97m stablelm2 glm4").split()
    with tempfile.TemporaryDirectory() as tmp:
        c = Check(args, tmp)
        steps = {"bpe": check_bpe, "spm": check_spm, "json": check_json_spm, "bert": check_bert,
                 "unigram": check_unigram, "fairseq": check_fairseq, "ranks": check_ranks,
                 "splits": lambda c: check_splits(c, splits)}
        if args.data:
            steps["real"] = lambda c: check_real(c, args.data)
        for name, step in steps.items():
            if not args.only or name in args.only:
                step(c)
    print(f"{c.bad} bad")
    return c.bad > 0


if __name__ == "__main__":
    sys.exit(main())
