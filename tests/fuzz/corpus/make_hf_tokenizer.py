# Seeds for fuzz_hf_tokenizer that are others of the corpus with further files, or other ones:
#     python3 make_hf_tokenizer.py FOLDER
# A seed: u8 which file the vocabulary is, u8 flags, the vocabulary, FF, tokenizer_config.json, FF, merges.txt, FF, then
# files by name.
import base64, json, os, struct, sys

out = sys.argv[1]
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hf_tokenizer")
J = lambda o: json.dumps(o, separators=(",", ":"), ensure_ascii=False).encode()


def base(name):
    with open(os.path.join(here, name), "rb") as f: data = f.read()
    return data[0], data[1], (data[2:].split(b"\xff") + [b"", b"", b""])[:3]


def put(name, of, files=(), config=None, merges=None, words=None, which=None, how=None):
    w, h, parts = base(of)
    words = parts[0] if words is None else words
    config = parts[1] if config is None else J(config)
    merges = parts[2] if merges is None else merges
    pieces = [words, config, merges] + [n.encode() + b"\n" + (x if isinstance(x, bytes) else J(x)) for n, x in files]
    with open(os.path.join(out, name), "wb") as f: f.write(bytes([w if which is None else which, h if how is None else how]) + b"\xff".join(pieces))


for i, files in enumerate([[("added_tokens.json", {"<x>": 6, "<|im_end|>": 5})], [("added_tokens.json", {"<x>": -1})], [("added_tokens.json", {"<x>": "y"})], [("added_tokens.json", {"": 3})], [("added_tokens.json", b"[")], [("added_tokens.json", {"<x>": 70000})],
                           [("config.json", {"eos_token_id": [5, 3]})], [("config.json", {"eos_token_id": "x"})], [("config.json", {"eos_token_id": 99, "text_config": {"eos_token_id": [1, 2, 4], "bos_token_id": 3}})], [("config.json", {"bos_token_id": 0, "pad_token_id": 1, "type_vocab_size": 2, "vocab_size": 9})],
                           [("generation_config.json", {"eos_token_id": [0, 1, 2, 5]})], [("generation_config.json", {"eos_token_id": 1.5})], [("generation_config.json", b">")], [("special_tokens_map.json", {"eos_token": {"content": "<|im_end|>"}, "bos_token": "a", "additional_special_tokens": ["b"]})], [("special_tokens_map.json", [])],
                           [("chat_template.jinja", b"{{ x }}"), ("additional_chat_templates/tool_use.jinja", b"{{ y }}"), ("additional_chat_templates/a.txt", b"z"), ("additional_chat_templates/b.jinja", b"{{ b }}")], [("chat_template.json", {"chat_template": "{{ z }}"})], [("chat_template.jinja", b"@")],
                           [("tokenizer.json", b"-")], [("tokenizer.json", b">")], [("tokenizer.json", b"@")], [("additional_chat_templates/%02d.jinja" % k, b"x") for k in range(33)], [("additional_chat_templates/tool_use.jinja", b"@")], [("vocab.json", {"a": 0})], [("tokenizer.model", b"\n\5\n\1a\x15\0\0\0\0")]]):
    for of in ("bpe", "chars") if i < 12 else ("bpe",): put(f"files-{of}-{i}", of, files)
for i, config in enumerate([{"chat_template": [{"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}, {"name": "r-a g", "template": "{{ c }}"}]}, {"chat_template": [{"name": "x"}]}, {"chat_template": [{"name": f"n{k}", "template": "x"} for k in range(40)]}, {"chat_template": 5},
                            {"added_tokens_decoder": {"5": {"content": "<|im_end|>", "special": True}, "6": {"content": "<y>"}}}, {"added_tokens_decoder": {"x": {"content": "a"}}}, {"added_tokens_decoder": {"7": {}}}, {"eos_token": "<|im_end|>", "bos_token": {"content": "a"}, "unk_token": None, "pad_token": "zz"},
                            {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": "x"}, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}, {"tokenizer_class": "LlamaTokenizer", "legacy": False}, {"clean_up_tokenization_spaces": True}, []]):
    for of in ("bpe", "chars", "pieces", "unigram", "ranks") if i in (4, 7, 8) else ("bpe",): put(f"config-{of}-{i}", of, config=config)
with open(os.path.join(here, "spiece"), "rb") as f: piece = f.read()[2:]
with open(os.path.join(here, "sentencepiece"), "rb") as f: bpe = f.read()[2:]
text = lambda n, s: bytes([n << 3 | 2, len(s)]) + s
score = lambda x, t: struct.pack("<Bf", 0x15, x) + bytes([0x18, t])
sp = lambda *pieces, trainer=b"", norm=b"": b"".join(text(1, text(1, p.encode()) + score(x, t)) for p, x, t in pieces) + trainer + norm
PIECES = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("<0x0A>", 0, 6), ("\u2581a", -1.5, 1), ("\u2581\u2581", 0, 4), ("b", -2, 1), ("gone", 0, 5)]
for i, t in enumerate([text(2, b"\x18\x01"), text(2, b"\x18\x02"), text(2, b"\x18\x03"), text(2, b"\x18\x02\xc0\x02\x00"), text(2, b"\x18\x02") + text(3, b"\x18\x00\x20\x01\x28\x00"), text(2, b"\x18\x02") + text(3, b"\x18\x00"), text(2, b"\x18\x02") + text(3, b"\x20\x01\x12\x02ab")]):
    for which in (1, 5):
        with open(os.path.join(out, f"sp-{i}-{which}"), "wb") as f: f.write(bytes([which, 0]) + sp(*PIECES, trainer=t))
with open(os.path.join(out, "sp-cut"), "wb") as f: f.write(b"\1\0" + sp(*PIECES)[:-3])
words = J({"added_tokens": [{"id": 0, "content": "<unk>", "special": True}], "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "pre_tokenizer": None,
           "decoder": None, "model": {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": {p: i for i, (p, _, _) in enumerate(PIECES)}, "merges": []}})
BYTES, AS_IS = text(2, b"\x18\x02\x98\x02\x01"), text(3, b"\x18\x01\x20\x00")
put("scores", "chars", [("tokenizer.model", sp(*PIECES, trainer=BYTES, norm=AS_IS))], words=words)
put("scores-differ", "chars", [("tokenizer.model", sp(("<unk>", 0, 2), ("other", 0, 1), trainer=BYTES, norm=AS_IS))], words=words)
put("scores-no-bytes", "chars", [("tokenizer.model", sp(*PIECES, trainer=text(2, b"\x18\x02"), norm=AS_IS))], words=words)
put("scores-charsmap", "chars", [("tokenizer.model", sp(*PIECES, trainer=BYTES, norm=text(3, b"\x12\x04abcd\x20\x00")))], words=words)

# tokenizer.json of other structures
doc = json.loads(base("bpe")[2][0])
pieces, unigram, chars = (json.loads(base(n)[2][0]) for n in ("pieces", "unigram", "chars"))
split = lambda how, behavior="Isolated", **p: {"type": "Split", "pattern": {how: p.pop("of", " ")}, "behavior": behavior, "invert": False} | p
seq = lambda *x: {"type": "Sequence", "pretokenizers": list(x)}
norms = lambda *x: {"type": "Sequence", "normalizers": list(x)}
bytelevel = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
for i, (of, more) in enumerate([("bpe", {"normalizer": {"type": "NFC"}}), ("bpe", {"normalizer": {"type": "NFKC"}}), ("bpe", {"normalizer": norms({"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})}), ("bpe", {"normalizer": {"type": "Lowercase"}}),
                                ("bpe", {"pre_tokenizer": seq({"type": "Digits", "individual_digits": True}, bytelevel)}), ("bpe", {"pre_tokenizer": seq({"type": "Digits", "individual_digits": False}, bytelevel)}), ("bpe", {"pre_tokenizer": seq({"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Digits"}, bytelevel)}),
                                ("bpe", {"pre_tokenizer": seq({"type": "Punctuation"}, bytelevel)}), ("bpe", {"pre_tokenizer": seq(split("String", "MergedWithPrevious"), bytelevel)}), ("bpe", {"pre_tokenizer": seq(split("Regex", "Removed", of="\\s+", invert=True), bytelevel)}), ("bpe", {"pre_tokenizer": dict(bytelevel, use_regex=True)}),
                                ("bpe", {"pre_tokenizer": dict(bytelevel, add_prefix_space=True)}), ("bpe", {"pre_tokenizer": {"type": "Whitespace"}}), ("bpe", {"pre_tokenizer": {"type": "Odd"}}), ("bpe", {"pre_tokenizer": []}), ("bpe", {"pre_tokenizer": seq({"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, bytelevel)}),
                                ("chars", {"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first", "split": False}, "normalizer": None}), ("chars", {"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always", "split": False}, "normalizer": None}), ("chars", {"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never", "split": True}, "normalizer": None}),
                                ("chars", {"pre_tokenizer": {"type": "Metaspace", "add_prefix_space": True, "replacement": "_"}, "normalizer": None}), ("chars", {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}}), ("chars", {"normalizer": norms({"type": "Strip"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})}),
                                ("chars", {"pre_tokenizer": split("String", "MergedWithPrevious")}), ("chars", {"decoder": {"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}), ("pieces", {"normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": True, "clean_text": False}}),
                                ("pieces", {"pre_tokenizer": {"type": "Whitespace"}}), ("pieces", {"normalizer": None}), ("unigram", {"normalizer": None}), ("unigram", {"normalizer": norms({"type": "Precompiled", "precompiled_charsmap": "AAAA"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})}), ("unigram", {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}}),
                                ("unigram", {"pre_tokenizer": seq({"type": "WhitespaceSplit"}, {"type": "Metaspace", "add_prefix_space": True})}), ("unigram", {"normalizer": norms({"type": "Strip"}, {"type": "Precompiled", "precompiled_charsmap": "AAAA"})}), ("unigram", {"normalizer": norms({"type": "Nmt"}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})}),
                                ("bpe", {"added_tokens": [{"id": 9, "content": "<far>", "special": True, "lstrip": True, "rstrip": True, "single_word": True, "normalized": False}]}), ("bpe", {"added_tokens": [{"id": 5}]}), ("bpe", {"added_tokens": [5]}), ("bpe", {"added_tokens": 5}), ("bpe", {"added_tokens": [{"id": -1, "content": "x"}]}), ("bpe", {"model": {"type": "Odd"}}), ("bpe", {"model": 5}),
                                ("bpe", {"model": {"vocab": {"a": 0}}}), ("bpe", {"model": None})]):
    for how in (0, 2) if i < 16 else (0,): put(f"structure-{i}-{how}", of, words=J({"bpe": doc, "pieces": pieces, "unigram": unigram, "chars": chars}[of] | more), which=0, how=how)
for i, model in enumerate([{"merges": [["a", "b"], ["a b", " c"]]}, {"merges": [["a", "z"]]}, {"merges": [5]}, {"merges": ["a"]}, {"vocab": {"a": 0, "b": 0}}, {"vocab": {"a": -1}}, {"vocab": {"a": "x"}}, {"vocab": []}, {"unk_token": "zz"}, {"dropout": 0.5}, {"byte_fallback": True, "fuse_unk": True}, {"ignore_merges": True}, {"continuing_subword_prefix": "##", "end_of_word_suffix": "</w>"},
                           {"vocab": {"a": 0, " ": 1, "a b": 2, " c": 3, "a b c": 4, "b": 5, "c": 6}, "merges": [["a b", " c"]]}]):
    put(f"model-{i}", "bpe", words=J(dict(doc, model=dict(doc["model"], **model))), which=0, how=2)
    put(f"model-chars-{i}", "chars", words=J(dict(chars, model=dict(chars["model"], **model))), which=0, how=0)
for i, model in enumerate([{"vocab": [["a"]]}, {"vocab": [["a", "x"]]}, {"vocab": {}}, {"unk_id": 99}, {"unk_id": None}, {"byte_fallback": True}]): put(f"model-unigram-{i}", "unigram", words=J(dict(unigram, model=dict(unigram["model"], **model))), which=0, how=0)
for i, text_ in enumerate([b"{", b"[]", b'{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"vocab":{}}}', b'{"version":"1.0"}', b'{"model":{"vocab":{"a":0},"type":"BPE","merges":[]},"model":{}}', b'{"added_tokens":[],"model":{"type":"WordPiece","vocab":{"a":0},"max_input_chars_per_word":5,"continuing_subword_prefix":"@@"}}']): put(f"raw-{i}", "bpe", words=text_, which=0)
tek = json.loads(base("tekken")[2][0])
for i, more in enumerate([{"config": {}}, {"config": dict(tek["config"], default_vocab_size=1)}, {"vocab": [{"rank": 0}]}, {"vocab": [{"rank": 5, "token_bytes": "YQ=="}]}, {"vocab": [{"rank": 0, "token_bytes": "!"}]}, {"vocab": []}, {"special_tokens": [{"rank": 0, "token_str": "<s>", "is_control": True}, {"rank": 9, "token_str": "x"}]}, {"special_tokens": [{"rank": "x"}]}, {"config": dict(tek["config"], pattern="odd")}, {"vocab": 5}, {"audio": {}}]):
    put(f"tekken-{i}", "tekken", words=J(dict(tek, **more)))
put("scores-odd", "chars", [("tokenizer.model", b"junk")], words=words)
B = lambda s: base64.b64encode(s)
bytes_ranks = b"".join(B(bytes([i])) + b" %d\n" % i for i in range(256))
put("tiktoken-bytes", "ranks", words=bytes_ranks + B(b"ab") + b" 256\n", which=2, how=2)
put("tiktoken-qwen", "ranks", [("config.json", {"model_type": "qwen"})], config={"tokenizer_class": "QWenTokenizer"}, words=bytes_ranks, which=2, how=0)
put("tiktoken-named", "ranks", [("qwen.tiktoken", bytes_ranks)], config={"tokenizer_class": "QWenTokenizer"}, words=b"x", which=3, how=0)
put("tiktoken-model", "ranks", [("tiktoken.model", bytes_ranks), ("tokenizer.json", b"-")], config={"tokenizer_class": "TikTokenTokenizer"}, words=b"", which=0, how=2)
for i, w in enumerate([b"YQ== 0\nYQ== 1\n", b"YQ== 1\n", b"!! 0\n", b"YQ==\n", b"YQ== x\n", b"YQ== 0\n\n", b"", b"YQ== 99999999\n"]): put(f"tiktoken-bad-{i}", "ranks", words=w)
put("llama-ranks", "ranks", [("params.json", {})], words=bytes_ranks, which=1, how=0)
for i, merges in enumerate([b"#version: 0.2\na b\n# #\n", b"a b\na b\n", b"a z\n", b"a\n", b"a b c\n", b"\n\n", b"", None]): put(f"merges-{i}", "merges", merges=b"" if merges is None else merges)
put("merges-none", "merges", merges=b"", config={"tokenizer_class": "Qwen2Tokenizer"})
put("merges-qwen", "merges", config={"tokenizer_class": "Qwen2Tokenizer"})
put("merges-odd", "merges", config={"tokenizer_class": "OddTokenizer"})
