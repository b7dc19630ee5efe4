#!/usr/bin/env python3
"""Writes seeds for fuzz_dataset into tests/fuzz/corpus/dataset: a byte of settings, then the file.

usage: python3 tests/fuzz/corpus/make_dataset.py        (from the repository root)
"""
import json
import os

out = os.path.join(os.path.dirname(__file__), "dataset")
os.makedirs(out, exist_ok=True)
TEXT, SHORT, PROMPT, LAST, BAD, SPECIAL, PLAIN, PACK = 1, 2, 4, 8, 16, 32, 64, 128
chat = {"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "q <|im_end|>"}, {"role": "assistant", "content": "a1"},
                     {"role": "user", "content": "ab abc"}, {"role": "assistant", "content": "a2"}], "tools": [{"type": "function", "n": -1.5e3}]}
share = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}
alpaca = {"instruction": "do", "input": "this", "output": "done"}
pair = {"prompt": "q ab", "completion": "c a"}
text = {"text": "one\u0000 two \u00e4\U0001F600\n\r\n", "other": [1, 2.5, None, True, {"x": [[]]}]}
seeds = {
    "chat": (PROMPT | PACK, [chat, chat]), "chat_last": (LAST, [chat]), "chat_short": (PROMPT | SHORT | BAD, [chat]), "sharegpt": (PROMPT, [share, share]),
    "alpaca": (PROMPT, [alpaca]), "alpaca_plain": (PROMPT | PLAIN, [alpaca, alpaca]), "pair": (PROMPT | PLAIN, [pair, pair]), "text": (PLAIN | PACK, [text, text]),
    "text_short": (SHORT | SPECIAL, [text, {"text": "<|im_end|><s>"}]), "mixed": (BAD, [text, chat, pair, 5, [], {}, {"text": 3}, {"text": ""}, text]),
}
for name, (how, records) in seeds.items():
    with open(os.path.join(out, name), "wb") as f:
        f.write(bytes([how]) + "\n".join(json.dumps(r, ensure_ascii=i % 2 == 0) for i, r in enumerate(records)).encode())
with open(os.path.join(out, "bad_json"), "wb") as f:
    f.write(bytes([BAD]) + b'{"text": "\\ud83d"}\n{"text": "\\u00"}\n{"text": "\xff"}\n{"a": 01}\n{"text" "a"}\n{"text": "a",}\n[1 2]\n{"text": "a"} x\n\xef\xbb\xbf{}\n'
            b'{"text": "\\ud83d\\ude00 \\"\\\\\\/\\b\\f\\n\\r\\t"}\r\n\r\n  \n{"a": 1, "a": 2}\n"abc"\n-0.5e+10\n1e999\n123456789012345678901234567890\n{"text": "end"}')
with open(os.path.join(out, "txt"), "wb") as f:
    f.write(bytes([TEXT | BAD | SHORT]) + b"\xef\xbb\xbfone two\r\nthree \xff four\n\nab abc <s> \xe2\x82\xac\r")
