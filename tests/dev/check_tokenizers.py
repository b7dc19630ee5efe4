#!/usr/bin/env python3
"""Development check: does hone tokenize as the tokenizers that models were trained with?

    python3 tests/dev/check_tokenizers.py build/release/libhone.so VOCAB.gguf... [--lines N] [--seed S] [--text FILE]

Generates N lines (default 100000: many scripts, code, emoji, control characters, odd
white space, combining marks, numbers, contractions, pieces of the vocabulary, names of
special tokens, invalid bytes; with --text also lines of FILE) and compares the ids with
tokenizers built here from the same file's tokens, merges and scores:

    gpt2   Hugging Face tokenizers (Split by expression, then BPE), and tiktoken where the
           ids are the ranks
    llama  sentencepiece, with a model made from the file's pieces and scores, and a plain
           reference of the merge rule for bytes that are no UTF-8
    rwkv   longest match over a Python dict

Invalid bytes: byte-level BPE must see what Python's decoder with errors="replace" gives
(U+FFFD for each maximal ill-formed part); SentencePiece and RWKV vocabularies take the
bytes as they are. decode(encode(x)) must be x for every valid x, and for every x at all
where the tokenizer keeps bytes. Code points that no Unicode version of all parties
assigns are left out: their class differs between the references themselves.

Exit status: 0 all equal, 1 something differs, 77 skipped because a package is missing.
"""
import argparse, collections, ctypes, os, random, re, struct, sys, unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import gguf, tokenizers, tiktoken, sentencepiece
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
except ImportError as e:
    print(f"SKIP: {e.name} is not installed")
    sys.exit(77)

# ---- hone --------------------------------------------------------------------------------

class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024), ("file", ctypes.c_char_p), ("line", ctypes.c_int)]

class Params(ctypes.Structure):
    _fields_ = [("tokenizer_pre", ctypes.c_char_p), ("vocab_only", ctypes.c_bool)]

class Hone:
    def __init__(self, lib, path, pre=None):
        self.lib, self.err, self.model = lib, Error(), ctypes.c_void_p()
        params = Params(pre.encode() if pre else None, True)
        self.check(lib.hone_model_open(ctypes.byref(self.model), path.encode(), ctypes.byref(params), ctypes.byref(self.err)))

    def check(self, status):
        if status: raise RuntimeError(self.err.message.decode("utf-8", "replace"))

    def encode(self, b):
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        self.check(self.lib.hone_tokenize(self.model, b, ctypes.c_size_t(len(b)), 0, ctypes.byref(ids), ctypes.byref(n), ctypes.byref(self.err)))
        out = ids[:n.value]
        self.lib.hone_free(ids)
        return out

    def decode(self, ids):
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        a = (ctypes.c_int32 * len(ids))(*ids)
        self.check(self.lib.hone_detokenize(self.model, a, ctypes.c_size_t(len(ids)), True, ctypes.byref(text), ctypes.byref(n), ctypes.byref(self.err)))
        out = ctypes.string_at(text, n.value)
        self.lib.hone_free(text)
        return out

# ---- references ----------------------------------------------------------------------------

CI = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CAT1 = "(?:" + CI + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
CAT3 = "(?:" + CI + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
EXPRESSIONS = {"gpt-2": [GPT2], "qwen2": [CAT1], "llama-bpe": [CAT3], "smaug-bpe": [CAT3], "glm4": [CAT3], "starcoder": [r"\p{N}", GPT2], "refact": [r"\p{N}", GPT2]}

def byte_alphabet():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in own]
    return {**{chr(b): b for b in own}, **{chr(0x100 + i): b for i, b in enumerate(rest)}}

def bpe_references(f):
    pre = f("tokenizer.ggml.pre")
    if pre not in EXPRESSIONS: return None
    tokens, types, merges = f("tokenizer.ggml.tokens"), f("tokenizer.ggml.token_type"), f("tokenizer.ggml.merges")
    # names of special tokens are no result of merging
    vocab = {t: i for i, t in enumerate(tokens) if types[i] == 1}
    hf = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges], ignore_merges=pre == "llama-bpe"))
    hf.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), "isolated") for e in EXPRESSIONS[pre]] +
                                               [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    refs = {"tokenizers": lambda b: hf.encode(b.decode("utf-8", "replace"), add_special_tokens=False).ids}
    of, back = byte_alphabet(), {}
    for t, i in vocab.items(): back[bytes(of[c] for c in t)] = i
    result = [back[bytes(of[c] for c in m.replace(" ", "", 1))] for m in merges]
    ranks_are_ids = all(a <= b for a, b in zip(result, result[1:])) and all(bytes([b]) in back for b in range(256))
    if ranks_are_ids and len(EXPRESSIONS[pre]) == 1:
        # pieces by gpt2-like vocabularies start from bytes, whatever their ids are: bytes rank first
        tk = tiktoken.Encoding("check", pat_str=EXPRESSIONS[pre][0], mergeable_ranks=back, special_tokens={})
        refs["tiktoken"] = lambda b: tk.encode_ordinary(b.decode("utf-8", "replace"))
    return refs, False

def varint(n):
    out = b""
    while n > 127: out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def field(number, value): # of a protocol buffer
    if isinstance(value, float): return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int): return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value

def spm_char(b, i):
    k, most = 1, 1 if b[i] < 0xC0 else 2 if b[i] < 0xE0 else 3 if b[i] < 0xF0 else 4
    while k < most and i + k < len(b) and b[i + k] & 0xC0 == 0x80: k += 1
    return k

def spm_references(f):
    tokens, scores, types = f("tokenizer.ggml.tokens"), f("tokenizer.ggml.scores"), f("tokenizer.ggml.token_type")
    # sentencepiece's model file, field by field (google/sentencepiece:src/sentencepiece_model.proto)
    pieces = b"".join(field(1, field(1, t.encode()) + field(2, float(s)) + field(3, 3 if k == 2 and i else k)) for i, (t, s, k) in enumerate(zip(tokens, scores, types)))
    trainer = field(3, 2) + field(35, 1) + field(40, 0) + field(41, 1) + field(42, 2)  # BPE, byte fallback, unk, bos, eos
    normalizer = field(1, b"identity") + field(3, 1) + field(4, 0) + field(5, 1)       # dummy prefix, keep spaces, escape them
    sp = sentencepiece.SentencePieceProcessor(model_proto=pieces + field(2, trainer) + field(3, normalizer))
    plain = {t.encode(): i for i, t in enumerate(tokens) if types[i] in (1, 4)}
    byte = {int(t[3:5], 16): i for i, t in enumerate(tokens) if types[i] == 6}

    def rule(b):
        if not b: return []
        b = b"\xE2\x96\x81" + b.replace(b" ", b"\xE2\x96\x81")
        parts, i = [], 0
        while i < len(b):
            k = spm_char(b, i)
            parts.append(b[i:i + k])
            i += k
        while True:
            best = max(((scores[plain[p + q]], -j) for j, (p, q) in enumerate(zip(parts, parts[1:])) if p + q in plain), default=None)
            if best is None: break
            j = -best[1]
            parts[j:j + 2] = [parts[j] + parts[j + 1]]
        return [i for p in parts for i in ([plain[p]] if p in plain else [byte[c] for c in p])]

    def library(b): # defined for text; a NUL ends nothing, but sentencepiece drops it as unknown bytes
        try: s = b.decode()
        except UnicodeDecodeError: return None
        return None if "\0" in s else sp.encode(s)

    return {"sentencepiece": library, "the rule": lambda b: rule(b) if len(b) < 120 else None}, True

def rwkv_references(f):
    of = {"t": b"\t", "n": b"\n", "r": b"\r"}

    def unescape(s):
        out, i = b"", 0
        while i < len(s):
            if s[i] != "\\": out += s[i].encode(); i += 1
            elif s[i + 1] == "x": out += bytes.fromhex(s[i + 2:i + 4]); i += 4
            else: out += of.get(s[i + 1], s[i + 1].encode()); i += 2
        return out

    types = f("tokenizer.ggml.token_type")
    plain = {unescape(t): i for i, t in enumerate(f("tokenizer.ggml.tokens")) if types[i] == 1}
    longest = collections.defaultdict(int)
    for t in plain: longest[t[:2]] = max(longest[t[:2]], len(t))

    def greedy(b):
        out, i = [], 0
        while i < len(b):
            for k in range(min(longest[b[i:i + 2]] or 1, len(b) - i), 0, -1):
                if b[i:i + k] in plain: break
            out.append(plain[b[i:i + k]])
            i += k
        return out

    return {"longest match": greedy}, True

def references(path):
    """{name: bytes -> ids or None}, keeps any bytes, names of special tokens, names of user-defined ones, model"""
    r = gguf.GGUFReader(path)
    f = lambda key: r.fields[key].contents()
    make = {"gpt2": bpe_references, "llama": spm_references, "rwkv": rwkv_references}.get(f("tokenizer.ggml.model"))
    made = make(f) if make else None
    if not made: return None
    types = f("tokenizer.ggml.token_type")
    tokens = f("tokenizer.ggml.tokens")
    special = [t for t, k in zip(tokens, types) if k in (2, 3)]
    user = [t.encode() for t, k in zip(tokens, types) if k == 4]
    return made[0], made[1], special, user, f("tokenizer.ggml.model")

# ---- lines -----------------------------------------------------------------------------------

SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x180, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58F), (0x591, 0x5F4), (0x600, 0x6FF),
           (0x700, 0x74F), (0x780, 0x7B1), (0x900, 0x97F), (0x980, 0x9FE), (0xA01, 0xA76), (0xA81, 0xAFF), (0xB01, 0xB77), (0xB82, 0xBFA), (0xC00, 0xC7F),
           (0xC80, 0xCF2), (0xD00, 0xD7F), (0xD81, 0xDF4), (0xE01, 0xE5B), (0xE81, 0xEDF), (0xF00, 0xFDA), (0x1000, 0x109F), (0x10A0, 0x10FF),
           (0x1100, 0x11FF), (0x1200, 0x139F), (0x13A0, 0x13FF), (0x1780, 0x17F9), (0x1800, 0x18AA), (0x1E00, 0x1FFE), (0x2C00, 0x2DFF), (0x3041, 0x30FF),
           (0x3105, 0x318E), (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xAC00, 0xD7A3), (0xFB00, 0xFDFF), (0xFF01, 0xFFEE), (0x10330, 0x1034A), (0x1D400, 0x1D7FF),
           (0x20000, 0x2A6DF), (0x1E900, 0x1E943)]
SPACES = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0x180E, 0x200B, 0xFEFF, 0x2060]
EMOJI = ["\U0001F600", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F44D\U0001F3FD", "\u2764\uFE0F", "\U0001F1E9\U0001F1EA", "\U0001F3F4\u200D\u2620\uFE0F", "1\uFE0F\u20E3", "\u263A", "\U0001F9D1\U0001F3FF\u200D\U0001F680"]
NUMBERS = "0123456789\u00B2\u00B3\u00BC\u0660\u0661\u0669\u0967\u096F\u0E52\u2167\u2160\u2460\u3007\u4E00\u4E5D\uFF10\uFF19\U0001D7D8\U00010107\u0BF0\u1369\u215B"
WORDS = "the of and to in is that for it with as was on be at by this have from or one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after called just where most know".split()
CONTRACTIONS = ["'s", "'S", "'t", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'d", "'D", "'x", "'", "''s", "\u2019s", "'\u017F", "'l", "'r", "don't", "I'M", "'sa"]
CODE = ["def ", "return ", "    ", "\t", "\t\t", "(", ")", "{", "}", "[", "]", ";", ":", "->", "=>", "==", "!=", "<=", "&&", "||", "//", "/*", "*/", "#include <", "self.", "::", "0x1F", "1e-9", "\n", "\r\n", "\n\n", "  ", "camelCase", "snake_case", "CONST_NAME", "i++", "$x", "@decorator", "\\n", "\"str\"", "'c'", "<div>", "</div>", "&amp;", "...", "%d", "`x`", "~", "^", "?"]
MARKS = [*range(0x300, 0x370), 0x93C, 0x94D, 0xE31, 0x3099, 0x20D0, 0x64B, 0x5B0, 0xFE0F, 0x1AB0, 0x302A, 0x903, 0x488]

def assigned(c):
    return unicodedata.category(chr(c)) not in ("Cn", "Cs")

def generator(rng, own_tokens, special, corpus):
    scripts = [[chr(c) for c in range(a, b + 1) if assigned(c)] for a, b in SCRIPTS]
    everything = [chr(c) for c in range(0x110000) if assigned(c)]
    word = lambda: "".join(rng.choices(rng.choice(scripts), k=rng.randint(1, 9)))
    some = lambda k, *makers: "".join(rng.choice(makers)() for _ in range(rng.randint(1, k)))
    space = lambda: chr(rng.choice(SPACES)) * rng.choice((1, 1, 1, 2, 3, 8))
    blank = lambda: rng.choice((" ", " ", " ", "  ", "\n", "\n\n", " \n", "\t", ", ", ". ", "-", "/"))
    english = lambda: rng.choice(WORDS) if rng.random() < 0.8 else rng.choice(WORDS).capitalize()
    number = lambda: "".join(rng.choices(NUMBERS if rng.random() < 0.4 else NUMBERS[:10], k=rng.randint(1, 9)))
    marked = lambda: rng.choice(rng.choice(scripts)) + "".join(chr(rng.choice(MARKS)) for _ in range(rng.choice((1, 1, 2, 5))))
    control = lambda: chr(rng.choice((*range(0x20), 0x7F, *range(0x80, 0xA0), 0xAD, 0x200D, 0x200E, 0x202E, 0x2066, 0xFFF9, 0xFFFD, 0xE0001, 0xF8FF, 0x10FFFD)))
    punct = lambda: "".join(rng.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00A7\u00BF\u20AC\u2026\u3002\uFF0C\u2014\u00AB\u2022\u2192\u2581", k=rng.randint(1, 4)))
    run = lambda: rng.choice((" ", "a", "\n", "=", "-", "!", "0", "\u4E2D", "\u0301", "\t", "\r\n", " \n", ".", "\U0001F600", "ab", "A")) * rng.choice((2, 3, 7, 16, 40, 50, 100, 300))
    token = lambda: rng.choice(own_tokens)
    kinds = {
        "english": lambda: some(14, english, blank, english, blank, lambda: rng.choice(CONTRACTIONS)),
        "scripts": lambda: some(10, word, blank, word, blank, marked),
        "code": lambda: some(16, lambda: rng.choice(CODE), english, number, punct),
        "emoji": lambda: some(10, lambda: rng.choice(EMOJI), blank, english),
        "controls": lambda: some(12, control, english, blank, word),
        "spaces": lambda: some(12, space, english, space, number, punct, word),
        "marks": lambda: some(12, marked, marked, blank, punct, number),
        "numbers": lambda: some(12, number, blank, punct, number),
        "any": lambda: "".join(rng.choices(everything, k=rng.randint(1, 24))),
        "runs": lambda: some(5, run, english, blank),
        "mixed": lambda: some(14, english, word, number, punct, space, marked, control, run, lambda: rng.choice(EMOJI), lambda: rng.choice(CODE), lambda: rng.choice(CONTRACTIONS)),
    }
    if special: kinds["special"] = lambda: some(8, lambda: rng.choice(special), english, blank, lambda: rng.choice(special)[:-1])
    if corpus: kinds["text"] = lambda: rng.choice(corpus)
    pieces = lambda: b"".join(token() for _ in range(rng.randint(1, 10)))

    def invalid():
        good = kinds["mixed"]().encode()
        what = rng.randrange(5)
        if what == 0: return good[rng.randrange(len(good)):][:rng.randint(1, 60)]
        if what == 1: return bytes(rng.randrange(256) for _ in range(rng.randint(1, 30)))
        if what == 2: return b"".join(rng.choice((b"a", b" ", b"\xC0\x80", b"\xED\xA0\x80", b"\xF4\x90\x80\x80", b"\xE2\x96", b"\x81", b"\xF0\x9F\x98", b"\xC3", b"\xFF", b"\xFE", b"\xF8\x88\x80\x80\x80", b"\xE0\x80\xAF", b"\xE4\xB8\xAD")) for _ in range(rng.randint(1, 12)))
        b = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            if what == 3: b[rng.randrange(len(b))] = rng.randrange(256)
            elif len(b) > 1: del b[rng.randrange(len(b))]
        return bytes(b)

    names = [*kinds, *kinds, "pieces", "pieces", "invalid"]

    def line():
        k = rng.choice(names)
        return k, pieces() if k == "pieces" else invalid() if k == "invalid" else kinds[k]().encode()
    return line

# ---- the check ----------------------------------------------------------------------------------

def valid(b):
    try: b.decode()
    except UnicodeDecodeError: return False
    return True

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("library")
    ap.add_argument("vocabulary", nargs="+")
    ap.add_argument("--lines", type=int, default=100000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--text")
    a = ap.parse_args()
    lib = ctypes.CDLL(os.path.abspath(a.library))
    lib.hone_token_piece.restype = ctypes.c_void_p
    corpus = [l for l in open(a.text, encoding="utf-8", errors="ignore", newline="").read().split("\n") if 0 < len(l) < 2000] if a.text else []
    bad = 0
    for path in a.vocabulary:
        made = references(path)
        name = os.path.basename(path)
        if not made:
            print(f"SKIP: {name}: no reference for its pre-tokenizer here")
            continue
        refs, keeps_bytes, special, user, model = made
        added = re.compile(b"|".join(map(re.escape, user)) if user else b"(?!)") # recognised everywhere, which the references cannot
        hone = Hone(lib, path)
        n_vocab, n = 0, ctypes.c_size_t()
        own = []
        while (p := lib.hone_token_piece(hone.model, n_vocab, False, ctypes.byref(n))) is not None:
            if n.value: own.append(ctypes.string_at(p, n.value))
            n_vocab += 1
        line = generator(random.Random(f"{a.seed} {name}"), own, special, corpus)
        lines, total, ids_total = 0, collections.Counter(), 0
        compared, differ, trips = collections.Counter(), collections.Counter(), 0
        shown = collections.Counter()
        for _ in range(a.lines):
            kind, b = line()
            ok, got = valid(b), hone.encode(b)
            total[kind] += 1
            has_added = added.search(b)
            ids_total += len(got)
            for ref, fn in refs.items():
                want = None if has_added else fn(b)
                if want is None: continue
                compared[ref] += 1
                if want != got:
                    differ[ref] += 1
                    shown[ref] += 1
                    if shown[ref] <= 8: print(f"DIFFERS: {name}: {kind} {b!r}\n  hone {got}\n  {ref} {want}")
            lossless = (ok or keeps_bytes) and not has_added and not (model == "llama" and b"\xE2\x96\x81" in b)
            if lossless:
                trips += 1
                if hone.decode(got) != b:
                    differ["round trip"] += 1
                    shown["trip"] += 1
                    if shown["trip"] <= 8: print(f"ROUND TRIP: {name}: {kind} {b!r}\n  {got}\n  {hone.decode(got)!r}")
        bad += sum(differ.values())
        print(f"{name}: {a.lines} lines ({', '.join(f'{k} {v}' for k, v in sorted(total.items()))}), {ids_total} ids; " +
              ", ".join(f"{r} {compared[r]} compared {differ[r]} differ" for r in refs) + f"; round trips {trips}, {differ['round trip']} differ")
        sys.stdout.flush()
    sys.exit(bad != 0)

main()
