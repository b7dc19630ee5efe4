#!/usr/bin/env python3
"""Writes tests/golden/bpe_text.txt, a text, and tests/golden/bpe_merges.txt: what Hugging Face's BpeTrainer
makes of it, and how the tokenizer then encodes some texts.

usage: make_bpe_train.py FOLDER        (needs `tokenizers`)

Lines: "merge LEFT RIGHT" in the characters that stand for bytes, then "case HEX ID…".
"""
import json
import os
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

FOLDER = sys.argv[1]
WORDS = ("the a of and to in is was that it on with as river mill wheel water stone bread flour baker morning evening "
         "turned turning turns returned slowly quietly running runner ran it's don't we'll they're Stra\u00dfe caf\u00e9 na\u00efve "
         "\u5c0f\u9ea6 \u6c34\u8f66 \u041c\u0435\u043b\u044c\u043d\u0438\u0446\u0430 12 1234 2024 0x1f aaaa aaaaaaa abababab \U0001F600").split()


def make_text():
    rng = random.Random(6)
    out = []
    for _ in range(420):
        line = []
        for _ in range(rng.randrange(2, 12)):
            line.append(WORDS[min(int(rng.expovariate(0.04)), len(WORDS) - 1)])
            if rng.random() < 0.1:
                line[-1] += rng.choice([",", ".", "!", "...", ";", " --", "  ", "\t"])
        out.append(" ".join(line) + rng.choice([".", "?", "", " "]))
        if rng.random() < 0.1:
            out.append(rng.choice(["", "", "    indented = call(x, y)", "<|endoftext|>"]))
    return "\n".join(out) + "\n"


text = make_text()
with open(os.path.join(FOLDER, "bpe_text.txt"), "w", encoding="utf-8", newline="\n") as f:
    f.write(text)
tok = Tokenizer(models.BPE())
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(vocab_size=700, min_frequency=2, special_tokens=["<|bos|>", "<|endoftext|>"], show_progress=False,
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
# its trainer would count the separators' pieces as words
tok.train_from_iterator(text.split("<|endoftext|>"), trainer)
vocab = tok.get_vocab()
by_id = sorted(vocab, key=vocab.get)
with open(os.path.join(FOLDER, "bpe_merges.txt"), "w", encoding="utf-8", newline="\n") as f:
    f.write("tokens %d\n" % len(by_id))
    for m in json.loads(tok.to_str())["model"]["merges"]:
        f.write("merge %s\n" % (m if isinstance(m, str) else " ".join(m)))
    rng = random.Random(7)
    for _ in range(60):
        a = rng.randrange(len(text) - 200)
        s = text[a:a + rng.randrange(1, 160)]
        if "<|" not in s:
            f.write("case %s %s\n" % (s.encode().hex(), " ".join(map(str, tok.encode(s).ids))))
