#!/usr/bin/env python3
"""Writes seeds for fuzz_dataset into tests/fuzz/corpus/dataset: a byte of settings, then the file.

usage: make_dataset.py FOLDER
"""
import json
import os
import sys

out = sys.argv[1]
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
J = json.dumps
OTHER = PROMPT | LAST
two = J([pair, {"text": "x"}])
more = {  # behind the byte 0: what it is, then the rest
    "tabs": (0, 0, "prompt\tcompletion\nq ab\tc a\n\"q\tb\"\tc\n"), "tabs_bad": (BAD, 0, "prompt\tcompletion\nq\n\"a\n"), "unnamed": (0, 1, "x"),
    "folder": (BAD, 2, "\0".join(["\0one two", "\1# a\n\nb c\n# d\n\ne f", "\2" + J(text), "\3text\nx y", "\4four\n\nfive", "\5no", "\6hidden", "\7text\nz z\n"])),
    "folder_none": (0, 2, "\5no text"), "folder_empty": (0, 2, ""), "folder_fault": (0, 2, "\2" + "{" * 50), "deep": (0, 3, "\0one"),
    "long": (BAD | SHORT, 4, J({"text": "ab abc " * 20, "pad": "ab abc " * 900}) + "\n" + J({"text": "c " * 20, "pad": "c " * 1500})), "long_line": (BAD, 4, '{"text": "' + "a" * 3000), "gone": (0, 6, "x"),
    "markdown": (0, 5, "# one\n\nab c\n\n```\n# no heading\n```\n## two\nc b\n####### seven\n#five\n~~~\nopen"), "ndjson": (0, 7, J(text)),
    "heads": (SHORT, 5, "intro\n# a\n## b\ntext\n# c\n"),
}
for name, (how, what, rest) in more.items():
    with open(os.path.join(out, "more_" + name), "wb") as f:
        f.write(bytes([how, 0, what]) + rest.encode())
JSON = {"array": two, "objects": J(pair) + J(pair) + "\n" + J(alpaca), "empty": "", "open": "[", "no_comma": "[" + J(pair) + J(pair) + "]", "behind": two + " x", "half": two[:-5],
        "value": "5", "word": "[nul]", "lines": "[\n" + J(pair) + ",\n\n{\"prompt\": 5}\n]", "bom": "\ufeff" + two, "deep": "[" * 300}
for name, t in JSON.items():
    with open(os.path.join(out, "json_" + name), "wb") as f:
        f.write(bytes([OTHER | BAD]) + t.encode())
with open(os.path.join(out, "empty_text"), "wb") as f:
    f.write(bytes([TEXT, 10, 10]))
for i, how in enumerate((TEXT, TEXT | BAD, TEXT | OTHER, TEXT | SHORT | OTHER)):
    with open(os.path.join(out, f"none{i}"), "wb") as f:
        f.write(bytes([how]))
# texts longer than a piece, which is small where they are fuzzed: cut at a line, at any line end, within characters
for name, rest in (("lines", b"one two ab\n" * 300), ("crlf", b"one two ab\r\n" * 300), ("signs", b"... ...!\n" * 300), ("wide", "\u00e4\u20ac\U0001F600".encode() * 300),
                   ("marks", (b"ab " * 330 + b"<|endoftext|>") * 4), ("blanks", b"\n" * 3000)):
    with open(os.path.join(out, "pieces_" + name), "wb") as f:
        f.write(bytes([TEXT | BAD]) + rest)
    with open(os.path.join(out, "pieces_md_" + name), "wb") as f:
        f.write(bytes([BAD, 0, 5]) + rest)
with open(os.path.join(out, "line_too_long"), "wb") as f:
    f.write(bytes([PROMPT | BAD]) + b'{"text": "' + b"ab " * 8000 + b'"}\n' + J(pair).encode() + b"\n")
