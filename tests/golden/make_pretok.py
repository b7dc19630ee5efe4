#!/usr/bin/env python3
"""Writes tests/golden/pretok.txt: how pre-tokenizers divide texts, by another regex engine.

usage: make_pretok.py [TEXTS_PER_KIND [SEED [regex | tokenizers [KIND…]]]] > pretok.txt     (needs the Python package of that name)

Each line: kind, text in hex, byte lengths of the pieces. The expressions are those of the
original tokenizers, applied one after the other ("isolated" splits). Code points are taken
from those assigned in the unicodedata of the Python that runs this and from private use, so
that the result does not depend on a younger Unicode version in `regex`.
"""
import random
import sys
import unicodedata

import regex

WS = r"\x09-\x0d\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
C = "'s|'t|'re|'ve|'m|'ll|'d"
# As the originals have it: Unicode's simple folding, so that 's is 'ſ (U+017F) too. tiktoken (Rust's regex), Hugging Face's
# tokenizers (Oniguruma) and this package agree; llama.cpp has [sS] in its place.
Ci = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TAILS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = C + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CAT1 = "(?:" + Ci + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
CAT3 = "(?:" + Ci + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
U, W, P = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"
CASED = f"{P}{U}*{W}+|{P}{U}+{W}*"
CASEDi = f"{P}{U}*{W}+(?:{Ci})?|{P}{U}+{W}*(?:{Ci})?"
NOT_HAN = r"(?:(?!\p{Han})"  # and a set, with )
CJKA = r"[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"
CJKB = r"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
BLOOM = r" ?[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
# cased letters as the deepseek-llm tokenizer lists them
LETTERS = "".join("-".join(r"\U%08X" % int(c, 16) for c in r.split("-")) for r in """
41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 3A3-3F5
3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15
1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3
1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139
213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F A771-A787
A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2
118A0-118DF 1E900-1E943
""".split())
KINDS = {
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "llama-bpe": [CAT3],
    "qwen2": [CAT1],
    "qwen35": ["(?:" + Ci + r")|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "starcoder": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJKA, r"\p{N}"],
    "deepseek-llm": [r"[\r\n]", r"\s?[" + LETTERS + "]+",
                     r"\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+", r"\s+\Z", CJKA, r"\p{N}+"],
    "deepseek-v3": [r"\p{N}{1,3}", CJKB,
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "tekken": [CASED + r"|\p{N}" + TAILS],
    "gpt-4o": [CASEDi + r"|\p{N}{1,3}" + TAILS],
    "youtu": [r"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|" + CJKB,
              CASEDi + r"|\p{N}" + TAILS],
    "seed-coder": ["(?:" + Ci + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "chameleon": ["<sentinel:[0-9]+>", "(?:IMGIMG)(?:(?:A|B|C|D|E|F|G|H|I){1,4})Z", "(?:[\\t\\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "exaone-moe": ["(?:" + Ci + r")|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "minicpm5": [r"\p{N}{1,3}", CAT1.replace(r"|\p{N}|", r"|\p{N}+|")],
    "tiny_aya": [r"\p{Nd}{1,3}(?=(?:\p{Nd}{3})*(?![\p{L}\p{M}\p{N}\p{Pc}]))", CASEDi + r"|\p{N}{1,3}" + TAILS],
    "superbpe": [r"\p{N}+", r"(?=(?:\p{Nd}{3})+(?!\p{Nd}))"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              r"[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff"
              r"\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"],
    "spark2_5": [r"\p{N}{1,3}", CJKB],
    "ufakzeka": [CAT1[CAT1.index("|[^") + 1:]],
    "jais-2": [CAT3.removesuffix(r"|\s+(?!\S)|\s+") + "".join(r"|\s{%d}(?!\S)" % 2**k for k in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}"],
    "kimi-k2": [r"\p{Han}+|" + CASEDi.replace(U, NOT_HAN + U + ")").replace(W, NOT_HAN + W + ")") + r"|\p{N}{1,3}" + TAIL],
}
# tiny_aya's own expression ends in \\b, which after digits is "no word". What a word is differs between engines: here
# as for Hugging Face's tokenizers (Oniguruma), with which the model was trained
KINDS["laguna"] = ["[^\\n]+|[\\n]+", CAT1]
KINDS["afmoe"].append(KINDS["deepseek-v3"][2])
KINDS["spark2_5"] += [KINDS["deepseek-v3"][2].replace(r"[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r"[\p{P}\p{S}]+|[\r\n]"), r"\p{N}"]
ANY = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
BY = {}
for c in ANY:
    BY.setdefault(unicodedata.category(chr(c)), []).append(c)
WORDS = ["'s", "'LL", "'Ve", "'re", "'t", "don't", "WE'RE", "Hello", "HelloWorld", "ǅabc", "ʰʱ", "ÀÉß", "中文字", "日本ご", "カナ", "한국어",
         "ㄅㄆ", "123", "4567890", "²³", "١٢٣", "e\u0301", "\u0301\u0301", "\r\n", "\n\n", "\n", "\t", "  ", "    ", "   \n  ", "\u00a0", "\u3000",
         "...", "/path/", "//\n/", "?!\r\n", "$+<=>^~|`", "<sentinel:12>", "<sentinel:>", "IMGIMGABCZ", "IMGIMGABCDEZ", "،", "…", "。", "，",
         "🇨🇭", "\U0001F600", "_x", "(a)", " a b c", "x y", "\ue000", "−", "\ufffd", "\x00", "\x7f", "\u200d"]

# What folds to a letter of a contraction, and what only looks like it: of the letters s t r e v m l d it is ſ alone.
FOLDED = ["a'\u017f b", "It'\u017fx", "'\u017f", "WE'\u017fT", "x'\u212a y", "'\u212a", "don'\u017f'\u017f'S", "'\u017f\u017f",
          "中'\u017f字", "1'\u017f2", "'\u017fe'R\u0117", "'\ufb06t'\u00df", "'L\u017f'\u1e9e"]


def make(rng):
    mode, out = rng.random(), []
    for _ in range(rng.randint(1, 14)):
        k = rng.random()
        if k < 0.45:
            out.append(rng.choice(WORDS))
        elif k < 0.60:
            out.append(rng.choice(" \n\t\r'") * rng.choice([1, 1, 2, 3, 5]))
        elif k < 0.75:
            out.append("".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, 8))))
        elif k < 0.95 or mode < 0.5:
            cat = rng.choice(sorted(BY))
            out.append("".join(chr(rng.choice(BY[cat])) for _ in range(rng.randint(1, 3))))
        else:
            out.append("".join(chr(rng.choice(ANY)) for _ in range(3)))
    if rng.random() < 0.05:
        out.append(" " * rng.choice([31, 64, 100, 600, 1500]) + rng.choice(["", "x", "\nx"]))
    return "".join(out)


def split(rules, text):
    pieces = [text] if text else []
    for rule in rules:
        new = []
        for p in pieces:
            at = 0
            for m in rule.finditer(p):
                if m.start() > at:
                    new.append(p[at:m.start()])
                if m.group():  # else only a place to divide at
                    new.append(m.group())
                at = m.end()
            if at < len(p):
                new.append(p[at:])
        pieces = new
    return pieces


def hugging_face(rules):
    """The same by the engine of Hugging Face's tokenizers (Oniguruma), as models' own files have it."""
    from tokenizers import Regex, pre_tokenizers
    plain = [regex.sub(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))", lambda m: chr(int(m[1] or m[2], 16)), r) for r in rules]
    splits = [pre_tokenizers.Split(Regex(r.replace(r"\Z", r"\z")), "isolated") for r in plain]
    pre = pre_tokenizers.Sequence(splits)
    return lambda text: [piece for piece, _ in pre.pre_tokenize_str(text) if piece]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print("# Generated by make_pretok.py; do not edit. kind, text (hex), byte lengths of its pieces")
    engine = sys.argv[3] if len(sys.argv) > 3 else "regex"
    for kind, rules in KINDS.items():
        if sys.argv[4:] and kind not in sys.argv[4:]:
            continue
        other = hugging_face(rules) if engine == "tokenizers" else None
        rules = [regex.compile(r.replace(r"[^(\s", "[^(" + WS).replace(r"[^\s", "[^" + WS).replace(r"\S", "[^" + WS + "]")
                               .replace(r"\s", "[" + WS + "]"), regex.V0) for r in rules]
        by = other or (lambda text: split(rules, text))
        for text in [make(rng) for _ in range(n)] + FOLDED:
            print(kind, text.encode().hex() or "-", " ".join(str(len(p.encode())) for p in by(text)), sep="\t")


main()
