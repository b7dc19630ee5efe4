#!/usr/bin/env python3
"""Folders of models that give rows instead of a next token, as transformers saves them: `hone convert`, then `hone embed`
against transformers in float64: rows of all positions, scores of classifiers, modules of sentence-transformers.

And back: the file becomes a folder again, as float32 and as bfloat16. transformers loads it, nothing missing, nothing
left over; its tensors are the first folder's bit for bit, its rows and scores within 1e-5 of their range, with words its
vectors by sentence-transformers, too (where that is installed), and its tokenizer gives one text and a pair the same ids;
and it converts to the same bytes.

    check_convert_embed.py HONE [--case NAME]          (needs torch, transformers, safetensors; 77 without)
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import numpy as np
    import tokenizers as tk
    import torch
    import transformers as tf
    from safetensors.torch import load_file, save_file
except ImportError as e:
    print(f"SKIP: {e}; needs torch, transformers and safetensors", file=sys.stderr)
    sys.exit(77)

SMALL = dict(vocab_size=101, hidden_size=72, num_hidden_layers=2, num_attention_heads=6, intermediate_size=100,
             max_position_embeddings=194, attn_implementation="eager")
GEMMA = dict(SMALL, num_hidden_layers=7, num_key_value_heads=2, head_dim=20, sliding_window=20,
             query_pre_attn_scalar=20, use_bidirectional_attention=True)
IDS = [(7 * i * i + 3 * i + 5) % 97 + 3 for i in range(150)]


def bert(cls, pooling=None, **more):
    return getattr(tf, cls)(tf.BertConfig(**SMALL, **more)), pooling


def xlmr(cls, pooling=None, **more):
    """Two kinds of text: the key of another number is written with the tokenizer."""
    return getattr(tf, cls)(tf.XLMRobertaConfig(type_vocab_size=2, **SMALL, **more)), pooling


def modern(cls, pooling=None, **more):
    more = dict(dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2), **more)
    return getattr(tf, cls)(tf.ModernBertConfig(local_attention=20, **dict(SMALL, num_hidden_layers=5), **more)), pooling


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def words(kind):
    """A tokenizer of that kind, of this file's own text."""
    text = open(__file__).read().replace("<", " ").split("\n")
    train = tk.trainers
    ends = tk.processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                            special_tokens=[("<s>", 0), ("</s>", 2)])
    if kind == "pieces":
        t = tk.Tokenizer(tk.models.WordPiece(unk_token="[UNK]"))
        t.normalizer, t.pre_tokenizer = tk.normalizers.BertNormalizer(), tk.pre_tokenizers.BertPreTokenizer()
        t.train_from_iterator(text, train.WordPieceTrainer(
            vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
        t.post_processor = tk.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        return t, dict(unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]")
    if kind == "bytes":
        t = tk.Tokenizer(tk.models.BPE())
        t.pre_tokenizer, t.decoder = tk.pre_tokenizers.ByteLevel(add_prefix_space=False), tk.decoders.ByteLevel()
        t.train_from_iterator(text, train.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False,
                                                     initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet()))
    elif kind == "unigram":
        t = tk.Tokenizer(tk.models.Unigram())
        t.pre_tokenizer, t.decoder = tk.pre_tokenizers.Metaspace(), tk.decoders.Metaspace()
        t.train_from_iterator(text, train.UnigramTrainer(vocab_size=400, special_tokens=SPECIAL, unk_token="<unk>",
                                                         show_progress=False))
    else:  # Gemma's
        special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
        t = tk.Tokenizer(tk.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        t.pre_tokenizer = tk.pre_tokenizers.Metaspace(prepend_scheme="never")
        t.train_from_iterator(text, train.BpeTrainer(
            vocab_size=700, special_tokens=special + ["<0x%02X>" % i for i in range(256)], show_progress=False))
        j = json.loads(t.to_str())
        j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
        j["model"]["byte_fallback"], j["pre_tokenizer"] = True, None
        t = tk.Tokenizer.from_str(json.dumps(j))
        t.normalizer = tk.normalizers.Replace(" ", "\u2581")
        t.pre_tokenizer = tk.pre_tokenizers.Split(" ", "merged_with_previous")
        t.decoder = tk.decoders.Sequence([tk.decoders.Replace("\u2581", " "), tk.decoders.ByteFallback(),
                                          tk.decoders.Fuse()])
        t.post_processor = tk.processors.TemplateProcessing(single="<bos> $A <eos>", pair=None,
                                                            special_tokens=[("<bos>", 2), ("<eos>", 1)])
        return t, dict(bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>")
    t.post_processor = ends
    return t, dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>", cls_token="<s>",
                   sep_token="</s>", mask_token="<mask>")


WORDS = {"bert-words": "pieces", "nomic-bert-words": "pieces", "xlm-roberta-words": "unigram", "roberta-words": "bytes",
         "xlm-roberta-words-scores": "unigram", "embeddinggemma-words": "gemma", "modernbert-words": "bytes",
         "jina-v3-words": "unigram", "eurobert-words": "bytes"}
ONE_IDS = dict(pad_token_id=1, bos_token_id=0, eos_token_id=2)
ONE = dict(SMALL, type_vocab_size=1, **ONE_IDS)

CASES = {
    "bert": lambda: bert("BertModel", "cls"),
    "bert-mlm": lambda: bert("BertForMaskedLM"),
    "bert-scores": lambda: bert("BertForSequenceClassification", num_labels=3),
    "xlm-roberta": lambda: xlmr("XLMRobertaModel", "mean"),
    "xlm-roberta-score": lambda: xlmr("XLMRobertaForSequenceClassification", num_labels=1),
    "nomic-bert": lambda: (tf.NomicBertModel(tf.NomicBertConfig(**SMALL)), "mean"),
    "jina-v3": lambda: (tf.JinaEmbeddingsV3Model(tf.JinaEmbeddingsV3Config(type_vocab_size=2, **SMALL)), "mean"),
    "modernbert": lambda: modern("ModernBertModel", "cls"),
    "modernbert-layers": lambda: modern("ModernBertModel", "mean", hidden_activation="silu", layer_types=[
        "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]),
    "modernbert-scores": lambda: modern("ModernBertForSequenceClassification", num_labels=3),
    "modernbert-scores-mean": lambda: modern("ModernBertForSequenceClassification", num_labels=1,
                                             classifier_pooling="mean"),
    "eurobert": lambda: (tf.EuroBertModel(tf.EuroBertConfig(**dict(SMALL, num_key_value_heads=2, pad_token_id=0))),
                         "mean"),
    "embeddinggemma": lambda: (tf.Gemma3TextModel(tf.Gemma3TextConfig(**GEMMA)), "mean"),
    "qwen3-last": lambda: (tf.Qwen3ForCausalLM(tf.Qwen3Config(**dict(SMALL, num_key_value_heads=2, head_dim=20))),
                           "lasttoken"),
    "bert-words": lambda: bert("BertModel", "mean"),
    "nomic-bert-words": lambda: (tf.NomicBertModel(tf.NomicBertConfig(**SMALL)), "mean"),
    "xlm-roberta-words": lambda: (tf.XLMRobertaModel(tf.XLMRobertaConfig(**ONE)), "cls"),
    "xlm-roberta-words-scores": lambda: (tf.XLMRobertaForSequenceClassification(tf.XLMRobertaConfig(
        num_labels=3, id2label={0: "no", 1: "perhaps", 2: "ja \u00fc"}, **ONE)), None),
    "modernbert-words": lambda: modern("ModernBertModel", "cls", **ONE_IDS),
    "jina-v3-words": lambda: (tf.JinaEmbeddingsV3Model(tf.JinaEmbeddingsV3Config(**ONE)), "mean"),
    "eurobert-words": lambda: (tf.EuroBertModel(tf.EuroBertConfig(**dict(SMALL, **ONE_IDS))), "mean"),
    "roberta-words": lambda: (tf.RobertaModel(tf.RobertaConfig(**ONE)), "mean"),
    "embeddinggemma-words": lambda: (tf.Gemma3TextModel(tf.Gemma3TextConfig(
        **dict(GEMMA, bos_token_id=2, eos_token_id=1))), "mean"),
}


def fill(model):
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=g)
            if p.ndim == 1:
                x = 0.2 * x + (1 if "orm" in name and name.endswith("weight") and "gemma" not in model.config.model_type else 0)
            else:
                x = (0.5 if "embeddings" in name else 1 / p.shape[-1] ** 0.5) * x
            p.copy_(x.float())
    return model.eval()


def modules(folder, pooling, dense):
    """What sentence-transformers writes; the matrices behind pooling."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("%d_Dense" % (2 + i), "Dense") for i in range(len(dense))]
    json.dump([dict(idx=i, name=str(i), path=p, type="sentence_transformers.models." + k) for i, (p, k) in
               enumerate([*kinds, ("9_Normalize", "Normalize")])], open(os.path.join(folder, "modules.json"), "w"))
    os.makedirs(os.path.join(folder, "1_Pooling"))
    modes = dict(cls="cls_token", mean="mean_tokens", lasttoken="lasttoken")
    json.dump(dict({"pooling_mode_" + m: m == modes[pooling] for m in (*modes.values(), "max_tokens")},
                   word_embedding_dimension=72), open(os.path.join(folder, "1_Pooling", "config.json"), "w"))
    for i, w in enumerate(dense):
        d = os.path.join(folder, "%d_Dense" % (2 + i))
        os.makedirs(d)
        save_file({"linear.weight": w}, os.path.join(d, "model.safetensors"))
        json.dump(dict(in_features=w.shape[1], out_features=w.shape[0], bias=False,
                       activation_function="torch.nn.modules.linear.Identity"), open(os.path.join(d, "config.json"), "w"))


def run(hone, *args):
    p = subprocess.run([hone, *args], capture_output=True, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise RuntimeError(" ".join(args[:1]) + ": " + p.stderr.decode(errors="replace").strip())
    return p.stdout


def vectors(hone, path, *more):
    out = json.loads(run(hone, "embed", "-m", path, "--ids", ",".join(map(str, IDS)), "--json", "--kv", "f32", *more))
    text = out["texts"][0]
    return np.array(next(text[k] for k in ("rows", "embedding", "scores", "score") if k in text), np.float64)


def far(a, b):
    return float(np.abs(a - b).max() / (b.max() - b.min() if b.size > 1 else np.abs(b).max()))


def save(folder, name, dtype):
    """One of the models, all that is in its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    t, more = words(WORDS[name]) if name in WORDS else (None, None)
    size, SMALL["vocab_size"] = SMALL["vocab_size"], t.get_vocab_size() if t else SMALL["vocab_size"]
    GEMMA["vocab_size"] = ONE["vocab_size"] = SMALL["vocab_size"]
    model, pooling = CASES[name]()
    SMALL["vocab_size"] = GEMMA["vocab_size"] = ONE["vocab_size"] = size
    fill(model).to(dtype).save_pretrained(folder)
    g = torch.Generator().manual_seed(4)
    dense = [torch.randn(40, 72, generator=g) / 8, torch.randn(24, 40, generator=g) / 6] if "gemma" in name else []
    if pooling:
        modules(folder, pooling, dense)
    if t:
        tf.PreTrainedTokenizerFast(tokenizer_object=t, **more).save_pretrained(folder)
    return model.eval(), pooling, dense


# ---- and back ----------------------------------------------------------------------------------------------------


def load(folder, dtype):
    """As its config says. No file of GGUF has what BERT's pooler makes of the first row: no row is made of it."""
    config = json.load(open(os.path.join(folder, "config.json")))
    cls = getattr(tf, config["architectures"][0])
    bare = cls.__name__ in ("BertModel", "XLMRobertaModel", "RobertaModel", "JinaEmbeddingsV3Model")
    model, info = cls.from_pretrained(folder, dtype=dtype, attn_implementation="eager", output_loading_info=True,
                                      **(dict(add_pooling_layer=False) if bare else {}))
    return model.eval(), {k: v for k, v in info.items() if v}


def named(model):
    """Parameters by what all classes call them. RoBERTa's classifier is BERT's pooler and classifier."""
    calls = {"pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"}
    own = {}
    for n, p in model.named_parameters():
        stem, _, tail = n.split("bert.")[-1].split("roberta.")[-1].rpartition(".")
        if stem != "pooler.dense" or hasattr(model, "classifier"):
            own[calls.get(stem, stem) + "." + tail] = p
    return own


def outputs(model):
    ids = torch.tensor([[i % model.config.vocab_size for i in IDS]])
    with torch.no_grad():
        out = model(ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
    return [x.numpy() for x in (out.get("logits"), out.hidden_states[-1]) if x is not None]


def same_tensors(one, two, name):
    """Rows of positions that RoBERTa's never reach come back as 0, or not at all; 1 + w is rounded."""
    a, b = named(one), named(two)
    if name == "bert-mlm":
        a = {k: v for k, v in a.items() if not k.startswith("cls.")}
    for k in sorted(set(a) | set(b)):
        if k not in a or k not in b:
            return "%s is in one folder alone" % k
        x, y = a[k], b[k]
        if "roberta" in name and "position" in k:
            x, y = x[-SMALL["max_position_embeddings"] + 2:], y[-SMALL["max_position_embeddings"] + 2:]
        near = torch.allclose(x, y, rtol=1e-6, atol=1e-7) if "gemma" in name and "norm" in k else False
        if not near and not torch.equal(x, y):
            return "%s differs" % k
    return None


def sentences(hone, first, again, gguf):
    """By sentence-transformers, and by hone of the first file."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return 0.0
    texts = ["What is a row?", "def load(folder):", "return %s" % ("model " * 30)]
    one, two = (SentenceTransformer(f, device="cpu").encode(texts, convert_to_numpy=True) for f in (first, again))
    own = [json.loads(run(hone, "embed", "-m", gguf, "--json", "--kv", "f32", t))["texts"][0]["embedding"] for t in texts]
    lengths = np.sqrt((one * one).sum(1))
    if np.abs(lengths - 1).max() > 1e-5:
        raise RuntimeError("sentence-transformers gives lengths %s" % lengths)
    return float(np.max([far(two, one), far(np.array(own), one)]))


def same_pairs(first, again, name):
    """A text, and a pair of texts, as a classifier or a reranker is given them."""
    one, two = (tf.AutoTokenizer.from_pretrained(f) for f in (first, again))
    kinds = ["token_type_ids"] if WORDS[name] == "pieces" else []
    for texts in [["What is a row?"]] + [["What is a row?", "def load(folder):"]] * (WORDS[name] != "gemma"):
        a, b = one(*texts), two(*texts)
        if a["input_ids"] != b["input_ids"]:
            return "%s becomes %s, expected %s" % (texts, b["input_ids"], a["input_ids"])
        if sorted(b) != sorted(["input_ids", "attention_mask", *kinds]):
            return "inputs of the model are %s" % sorted(b)
        if kinds and one(*texts, return_token_type_ids=True)["token_type_ids"] != b["token_type_ids"]:
            return "%s has kinds %s" % (texts, b["token_type_ids"])
    return None


def back(hone, top, name):
    first, again = os.path.join(top, "m", name), os.path.join(top, "n", name)
    worst = 0.0
    for dtype in (torch.float32, torch.bfloat16):
        pooling = save(first, name, dtype)[1]
        shutil.rmtree(again, ignore_errors=True)
        run(hone, "convert", first, "-o", first + ".gguf")
        run(hone, "convert", first + ".gguf", "-o", again)
        run(hone, "convert", again, "-o", again + ".gguf")
        if open(first + ".gguf", "rb").read() != open(again + ".gguf", "rb").read():
            return "%s: the second GGUF file differs from the first" % dtype
        one, two = load(first, torch.float32)[0], load(again, torch.float32)
        if two[1]:
            return "%s: from_pretrained: %s" % (dtype, two[1])
        say = same_tensors(one, two[0], name) or (same_pairs(first, again, name) if name in WORDS else None)
        if say:
            return "%s: %s" % (dtype, say)
        if name != "bert-mlm":
            both = zip(outputs(two[0]), outputs(one), strict=True)
            worst = float(np.max([worst] + [far(x, y) for x, y in both]))  # NaN stays
        for d in ("2_Dense", "3_Dense") if "gemma" in name else ():
            a, b = (load_file(os.path.join(f, d, "model.safetensors")) for f in (first, again))
            if a.keys() != b.keys() or not torch.equal(a["linear.weight"], b["linear.weight"]):
                return "%s: %s differs" % (dtype, d)
        if pooling and name in WORDS and dtype == torch.float32:
            worst = float(np.max([worst, sentences(hone, first, again, first + ".gguf")]))
        if getattr(two[0].config, "id2label", None) != getattr(one.config, "id2label", None):
            return "%s: labels %s, expected %s" % (dtype, two[0].config.id2label, one.config.id2label)
    return "ok %.1e" % worst if worst <= 1e-5 else "back: differs by %.1e" % worst


# ---- there -------------------------------------------------------------------------------------------------------


def check(hone, folder, name):
    model, pooling, dense = save(folder, name, torch.float32)
    run(hone, "convert", folder, "-o", folder + ".gguf", "--type", "F32")
    model = model.double()
    ids = torch.tensor([IDS])
    body = next((getattr(model, n) for n in ("bert", "roberta", "model") if hasattr(model, n)), model)
    with torch.no_grad():
        more = dict(attention_mask=torch.ones_like(ids))
        rows = body(ids, **more).last_hidden_state[0].numpy()
        scores = model(ids, **more).logits[0].numpy() if "score" in name else None
    worst = far(vectors(hone, folder + ".gguf", "--pooling", "none", "--no-normalize").reshape(rows.shape), rows)
    if pooling:
        own = {"mean": rows.mean(0), "cls": rows[0], "lasttoken": rows[-1]}[pooling]
        for w in dense:
            own = w.double().numpy() @ own
        worst = max(worst, far(vectors(hone, folder + ".gguf"), own / np.sqrt((own * own).sum())))
    if scores is not None:
        own = vectors(hone, folder + ".gguf")
        worst = max(worst, float(np.abs(own - scores).max() / np.abs(scores).max()))
    return "ok %.1e" % worst if worst <= 2e-5 else "differs by %.1e" % worst


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("--case", action="append", choices=list(CASES))
    args = ap.parse_args()
    tf.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-embed-") as tmp:
        for name in args.case or CASES:
            try:
                said = check(args.hone, os.path.join(tmp, name), name)
                and_back = back(args.hone, tmp, name)
            except (RuntimeError, OSError, ValueError) as e:
                said, and_back = str(e), "not tried"
            failed += not (said.startswith("ok") and and_back.startswith("ok"))
            print("%-24s %s, and back: %s" % (name, said, and_back), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
