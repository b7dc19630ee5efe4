# Seeds for fuzz_model and fuzz_folder that name a vector of a family (tests/golden/families) and what is changed of it,
# as tests/fuzz/vector_file.h says; those of folders say also which files beside it are others:
#     python3 make_vector.py FOLDER/model FOLDER/folder
import glob, json, os, sys

model, folder = sys.argv[1], sys.argv[2]
here = os.path.dirname(os.path.abspath(__file__))
vectors = {}
for path in sorted(glob.glob(os.path.join(here, "..", "..", "golden", "families", "*.json"))):
    with open(path) as f:
        vectors[os.path.basename(path)[:-5]] = json.load(f)
J = lambda o: json.dumps(o, separators=(",", ":")).encode()
U = lambda v: ["UINT32", v]
F = lambda v: ["FLOAT32", v]
B = lambda v: ["BOOL", v]
S = lambda v: ["STRING", v]
L = lambda kind, v: ["ARRAY:" + kind, v]


def words(vector, kv=None, tensors=None):
    changes = {k: v for k, v in (("kv", kv), ("tensors", tensors)) if v}
    return b"vector " + vector.encode() + b"\n" + (J(changes) if changes else b"")


def put(where, name, data):
    with open(os.path.join(where, name), "wb") as f:
        f.write(data)


def to_model(name, vector, kv=None, tensors=None):
    put(model, "v-" + name, words(vector, kv, tensors))


# ---- models ------------------------------------------------------------------------------------------------------

for v in vectors:
    to_model(v, v)
key = lambda i, name, value, vector="mistral": to_model(f"key-{i}", vector, {name: value})
for i, (name, value, *v) in enumerate([
        ("general.architecture", S("lama")), ("general.architecture", None), ("general.type", S("adapter")), (".vocab_size", U(9)),
        (".block_count", None), (".block_count", U(0)), (".attention.head_count_kv", U(3)), (".attention.head_count", L("STRING", ["x"])),
        (".attention.head_count_kv", L("UINT32", [2])), (".attention.head_count_kv", L("UINT32", [2, 99999])), (".attention.head_count_kv", L("UINT32", [2, 1])),
        (".attention.layer_norm_rms_epsilon", None), (".attention.layer_norm_rms_epsilon", F(-1)), (".rope.dimension_count", U(7)), (".rope.dimension_count", U(6)),
        (".rope.freq_base", F(0.5)), (".rope.scaling.type", S("dynamic")), (".rope.scaling.type", U(1)), (".expert_count", U(4)), (".attention.key_length", U(65536)),
        (".rope.scaling.factor", F(-1)), (".expert_count", U(4), "arcee"), (".nextn_predict_layers", U(1), "glm4moe"), (".nextn_predict_layers", U(9), "glm4moe"),
        (".attention.sliding_window_pattern", L("UINT32", [1, 2]), "gemma4"), (".attention.sliding_window_pattern", L("BOOL", [True]), "gemma4"),
        (".attention.head_count_kv", L("UINT32", [0, 3, 0]), "lfm2"), (".rope.scaling.finetuned", None, "granitehybrid"), (".rope.scaling.finetuned", U(1), "granitehybrid"),
        (".rope.dimension_count", U(12), "dsv3"), (".rope.scaling.yarn_log_multiplier", F(-1), "dsv3"), (".attention.layer_norm_epsilon", None, "gpt2"),
        (".rope.dimension_count_swa", U(7), "gemma4"), (".rope.freq_base_swa", F(0.1), "gemma3"), (".attention.temperature_scale", F(-1), "ministral3"),
        (".attention.causal", B(False)), (".pooling_type", U(1)), (".rope.scaling.attn_factor", F(1.5)), (".rope.scaling.yarn_attn_factor", F(1.5), "gptoss"),
        (".attention.sliding_window", U(0), "gemma2"), (".attention.sliding_window", L("UINT32", [4]), "gemma2"), (".attn_logit_softcapping", F(-1), "gemma2"),
        (".context_length", U(0)), (".attention.key_length", U(4)), (".attention.value_length", U(4)), (".attention.value_length", U(4), "exaone4"),
        (".attention.scale", F(-1), "granite"), (".embedding_scale", F(-1), "granite"), (".residual_scale", F(-1), "granite"), (".logit_scale", F(0), "granite"),
        (".use_parallel_residual", B(False), "gptneox"), (".use_parallel_residual", U(3), "gptneox"), (".use_parallel_residual", None, "gptneox"),
        (".expert_used_count", U(9), "olmoe"), (".expert_gating_func", U(9), "dots1"), (".expert_group_count", U(3), "dsv3"), (".expert_group_used_count", U(9), "dsv3"),
        (".leading_dense_block_count", U(9), "dsv3"), (".expert_shared_count", U(9999), "dsv3"), (".expert_feed_forward_length", None, "dsv3"),
        (".interleave_moe_layer_step", U(9), "llama4"), (".expert_count", None, "olmoe"), (".expert_count", U(0), "olmoe"), (".expert_weights_scale", F(-1), "dsv3"),
        (".ssm.time_step_rank", U(7), "mamba2"), (".ssm.inner_size", U(7), "mamba2"), (".ssm.group_count", U(3), "mamba2"), (".ssm.conv_kernel", U(99), "mamba2"),
        (".ssm.state_size", U(99999), "qwen3next"), (".attention.recurrent_layers", L("BOOL", [True]), "qwen3next"), (".full_attention_interval", U(0), "qwen3next"),
        (".rope.dimension_sections", L("INT32", [1, 1, 1, 0]), "qwen35"), (".rope.dimension_sections", L("INT32", [1, 1]), "qwen35"), (".kda.head_dim", U(9), "kimilinear"),
        (".altup.num_inputs", U(9), "gemma3n_shared"), (".altup.active_idx", U(9), "gemma3n_shared"), (".attention.shared_kv_layers", U(6), "gemma3n_shared"),
        (".feed_forward_length", L("UINT32", [1]), "gemma3n_shared"), (".activation_sparsity_scale", L("FLOAT32", [1]), "gemma3n_shared"),
        (".embedding_length_per_layer_input", U(0), "gemma3n_shared"), (".attention.key_length_swa", U(9), "gemma4"), ("tokenizer.ggml.model", S("none")),
        (".dense_2_feat_out", U(16), "gemma3"), (".attention.clamp_kqv", F(1)), (".attention.max_alibi_bias", F(1)), (".unknown", U(1)), ("general.file_type", U(7)),
        (".rope.scaling.original_context_length", U(0), "phi3"), (".rope.scaling.type", S("yarn"), "phi4mini"), (".rope.scaling.type", S("none"), "gptoss"),
        (".attention.q_lora_rank", U(0), "dsv3"), (".attention.kv_lora_rank", None, "dsv3"), (".attention.key_length_mla", U(2), "dsv3")]):
    key(i, name, value, *v)
for i, (v, t) in enumerate([
        ("mistral", {"token_embd.weight": None}), ("mistral", {"token_embd.weight": [[8, 16]]}), ("mistral", {"token_embd.weight": [[32]]}), ("mistral", {"blk.*.attn_q.weight": None}),
        ("mistral", {"blk.1.attn_q.weight": [[32, 16]]}), ("mistral", {"blk.0.attn_q.weight": [[32, 32], 26]}), ("mistral", {"blk.0.attn_norm.weight": [[32], 1]}),
        ("mistral", {"blk.0.attn_norm.weight": [[32], 8]}), ("mistral", {"blk.*.attn_norm.weight": [[32], 30]}), ("mistral", {"output.weight": None}), ("mistral", {"odd.weight": [[32]]}),
        ("mistral", {"blk.0.odd.weight": [[32]]}), ("mistral", {"blk.*.attn_q.bias": [[32]]}), ("mistral", {"blk.*.attn_q.bias": [[32]], "blk.*.attn_k.bias": [[16]], "blk.*.attn_v.bias": [[16]]}),
        ("mistral", {"blk.*.attn_q.weight": None, "blk.*.attn_k.weight": None, "blk.*.attn_v.weight": None, "blk.*.attn_qkv.weight": [[32, 64]]}),
        ("lfm2", {"blk.*.attn_k.weight": None}), ("qwen3moe", {"blk.*.attn_k_norm.weight": None}), ("qwen3moe", {"blk.0.ffn_gate_exps.weight": None}), ("qwen3moe", {"blk.0.ffn_gate_inp.weight": None}),
        ("mistral", {"rope_freqs.weight": [[4]]}), ("phi4mini", {"rope_factors_long.weight": None}), ("phi4mini", {"rope_factors_short.weight": [[3]]}), ("gptoss", {"blk.*.attn_sinks.weight": None}),
        ("gptoss", {"blk.0.ffn_gate_exps.bias": None}), ("gptoss", {"blk.0.ffn_down_exps.bias": [[3, 8]]}), ("qwen3moe", {"blk.*.ffn_down_exps.weight": [[16, 32, 8], 1]}),
        ("gemma2", {"blk.0.post_ffw_norm.weight": None}), ("dsv3", {"blk.1.exp_probs_b.bias": None}), ("dsv3", {"blk.*.attn_q_a_norm.weight": None}), ("dsv3", {"blk.*.attn_k_b.weight": None}),
        ("cohere2", {"blk.0.attn_q_norm.weight": [[8]]}), ("commandr_heads", {"blk.*.attn_k_norm.weight": [[8]]}), ("olmo2", {"blk.*.attn_q_norm.weight": [[8]]}), ("exaone4", {"blk.*.attn_q_norm.weight": [[32]]}),
        ("minimaxm2", {"blk.*.attn_q_norm.weight": [[8]]}), ("gpt2", {"position_embd.weight": [[32, 3]]}), ("mamba2", {"blk.0.ssm_conv1d.weight": [[3, 64]]}), ("qwen3next", {"blk.0.ssm_a": None})]):
    to_model(f"tensor-{i}", v, None, t)
freqs = vectors["phi4mini"]["tensors"]
for i, value in enumerate((0.5, "nan")):  # factors of rotations, below what is allowed: [values] come from no change
    to_model(f"kind-{i}", "phi4mini", {".rope.scaling.original_context_length": U(i)}, {"rope_factors_long.weight": [[4], 1]})
to_model("draft", "glm4moe", {".nextn_predict_layers": U(1)}, {"blk.1.nextn.eh_proj.weight": [[64, 32]]})
to_model("draft-none", "glm4moe", {".nextn_predict_layers": U(1)}, {"blk.1.attn_norm.weight": None})
shape = {t[0]: t[1] for t in vectors["mixtral"]["tensors"]}
each = {}
for part in ("gate", "up", "down"):
    ne = shape[f"blk.0.ffn_{part}_exps.weight"]
    each[f"blk.*.ffn_{part}_exps.weight"] = None
    for e in range(ne[2]): each[f"blk.*.ffn_{part}.{e}.weight"] = [ne[:2]]
to_model("each", "mixtral", None, each)
to_model("each-less", "mixtral", None, {k: v for k, v in each.items() if k != "blk.*.ffn_up.7.weight"})
both = {"blk.*.attn_k_b.weight": None, "blk.*.attn_v_b.weight": None}
for kind in (0, 1, 2): to_model(f"kv-b-{kind}", "dsv3", None, dict(both, **{"blk.*.attn_kv_b.weight": [[16, 32], kind]}))
for kind in (0, 8): to_model(f"kv-b-wide-{kind}", "dsv3", {".attention.kv_lora_rank": U(32), ".attention.key_length": U(36), ".attention.value_length": U(32)},
                             dict(both, **{"blk.*.attn_kv_b.weight": [[32, 32], kind], "blk.*.attn_kv_a_norm.weight": [[32]], "blk.*.attn_kv_a_mqa.weight": [[32, 36]]}))
to_model("kv-b-first", "dsv3", {".attention.key_length_mla": None, ".attention.value_length_mla": None, ".attention.key_length": U(12), ".attention.value_length": U(8)},
         dict(both, **{"blk.*.attn_kv_b.weight": [[16, 32]]}))
to_model("kv-b-both", "dsv3", None, {"blk.*.attn_kv_b.weight": [[16, 32]]})
up = {"blk.*.ffn_gate_exps.weight": None, "blk.*.ffn_up_exps.weight": None, "blk.*.ffn_gate_up_exps.weight": [[32, 32, 8]]}
to_model("fused", "qwen3moe", None, up)
to_model("fused-both", "qwen3moe", None, {"blk.*.ffn_gate_up_exps.weight": [[32, 32, 8]]})
BERT = {".block_count": U(1), ".context_length": U(16), ".embedding_length": U(32), ".feed_forward_length": U(64), ".attention.head_count": U(4), ".attention.layer_norm_epsilon": F(1e-5),
        ".attention.causal": B(False), ".pooling_type": U(1), ".vocab_size": U(16), "tokenizer.ggml.token_type_count": U(2)}


def encoder(arch, kv, tensors):
    """All keys and tensors of a vector away, these in their place."""
    v = vectors["gpt2"]
    keys = {k[0]: None for k in v["kv"]} | {(arch + k if k[0] == "." else k): x for k, x in kv.items()} | {"general.architecture": S(arch)}
    return keys, {t[0]: None for t in v["tensors"]} | tensors


norm = lambda name: {name + ".weight": [[32]], name + ".bias": [[32]]}
dense = lambda name, n_in, n_out: {name + ".weight": [[n_in, n_out]], name + ".bias": [[n_out]]}
bert = {"token_embd.weight": [[32, 16]], "position_embd.weight": [[32, 16]], "token_types.weight": [[32, 2]], **norm("token_embd_norm"), **norm("blk.0.attn_output_norm"), **norm("blk.0.layer_output_norm")}
for n in "qkv": bert |= dense(f"blk.0.attn_{n}", 32, 32)
bert |= dense("blk.0.attn_output", 32, 32) | dense("blk.0.ffn_up", 32, 64) | dense("blk.0.ffn_down", 64, 32)
ENCODERS = {"bert": (BERT, bert), "bert-classes": (BERT | {".classifier.output_labels": L("STRING", ["a", "b"]), ".pooling_type": U(4)}, bert | dense("cls", 32, 32) | dense("cls.output", 32, 2)),
            "bert-labels": (BERT | {".classifier.output_labels": U(1)}, bert), "bert-none": (BERT | {".classifier.output_labels": L("STRING", [])}, bert),
            "bert-types": (BERT | {"tokenizer.ggml.token_type_count": U(9999)}, bert), "bert-pool": (BERT | {".pooling_type": U(9)}, bert)}
for name, (kv, tensors) in ENCODERS.items(): to_model("encoder-" + name, "gpt2", *encoder("bert", kv, tensors))

# ---- models in other words (src/model/dialect.c) ---------------------------------------------------------------------

def said(name, vector, arch=None, kv=None, tensors=None, called=()):
    """The vector under another architecture, its tensors under other names: (of it, in the file)."""
    v = vectors[vector]
    keys, shapes, own = {}, {t[0]: t[1] for t in v["tensors"]}, v["arch"]
    if arch:
        keys = {k[0]: None for k in v["kv"]} | {arch + k[0][len(own):]: k[1:] for k in v["kv"] if k[0].startswith(own + ".")} | {"general.architecture": S(arch)}
    names = {}
    for was, now in called:
        for t in shapes:
            if t == was or (t.startswith("blk.") and t.split(".", 2)[2] == was): names |= {t: None, t[:len(t) - len(was)] + now: [shapes[t]]}
    to_model("said-" + name, vector, keys | {((arch or own) + k if k[0] == "." else k): x for k, x in (kv or {}).items()}, names | (tensors or {}))


OSS = [("attn_output.weight", "attn_out.weight"), ("attn_output.bias", "attn_out.bias"), ("attn_sinks.weight", "attn_sinks"), ("post_attention_norm.weight", "ffn_norm.weight")]
said("gptoss", "gptoss", "gptoss", {".rope.scaling.type": None, ".expert_feed_forward_length": None, "tokenizer.ggml.model": S("gpt2")}, None, OSS)
said("gptoss-twice", "gptoss", "gptoss", None, {"blk.0.attn_sinks": [[4]]})
said("gptoss-both", "gptoss", "gptoss", {"gpt-oss.block_count": U(2)}, None, OSS)
said("olmo3", "olmo3", "olmo3")
said("glm", "glm47flash", "glm4moelite", {".attention.key_length": U(12), ".attention.value_length": U(12), ".attention.key_length_mla": U(20), "tokenizer.ggml.model": S("none")})
said("glm-less", "glm47flash", "glm4moelite", {".attention.kv_lora_rank": None})
BARE = {".attention.layer_norm_rms_epsilon": None, ".rope.freq_base": None, ".rope.freq_base_swa": None, ".rope.scaling.type": None, ".rope.scaling.factor": None}
said("gemma3", "gemma3", None, BARE | {".context_length": U(131072), ".mm.tokens_per_image": U(256), "tokenizer.ggml.model": S("none"), "tokenizer.ggml.scores": L("FLOAT32", [0] * 17),
                                       "tokenizer.ggml.tokens": L("STRING", ["t%d" % i for i in range(17)])}, {"v.patch_embd.weight": [[4]], "mm.x.weight": [[4]]})
said("gemma3-1b", "gemma3", None, BARE | {".rope.global.freq_base": F(1e6), ".rope.local.freq_base": F(1e4), "tokenizer.ggml.tokens": L("UINT32", [1] * 20)})
said("gemma3-embed", "gemma3", None, BARE | {".pooling_type": None, ".attention.causal": B(False)}, {"dense.0.weight": [[32, 16]], "dense.1.weight": [[16, 8]]}, [("output_norm.weight", "norm.weight")])
said("gemma3-embed-one", "gemma3", None, BARE, {"dense.0.weight": [[32, 16]]}, [("output_norm.weight", "norm.weight")])
N = {"tokenizer.ggml.model": S("gemma"), "tokenizer.ggml.tokens": L("STRING", ["<unk>", "a", "<0x41>", "<unused7>"] + ["t%d" % i for i in range(14)]), "tokenizer.ggml.scores": L("FLOAT32", [0] * 18)}
for i, types in enumerate((L("INT32", [1] * 18), L("INT32", [1] * 3), L("FLOAT32", [1] * 18), None)):
    said(f"gemma3n-{i}", "gemma3n", None, N | ({"tokenizer.ggml.token_type": types} if types else {}), {"token_embd.weight": [[32, 18]]})
said("gemma4", "gemma4moe", None, {"tokenizer.ggml.model": S("llama"), "tokenizer.ggml.merges": L("STRING", [])}, {"a.conv.weight": [[4]]}, [("ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale")])
said("lfm2", "lfm2", None, {".feed_forward_length": U(72), "tokenizer.ggml.model": S("none")}, None, [("token_embd_norm.weight", "output_norm.weight")])
YARN = {".rope.scaling.yarn_log_multiplier": None, ".rope.scaling.yarn_beta_fast": None, ".attention.temperature_scale": None, ".rope.scaling_beta": F(0.1), ".rope.scaling.beta_fast": F(32)}
said("mistral3", "ministral3", None, YARN | {".rope.scaling.mscale": F(1), ".rope.scaling.mscale_all_dim": F(1), "tokenizer.ggml.model": S("gpt2")})
said("mistral3-other", "ministral3", None, YARN | {".rope.scaling.mscale": F(2), ".rope.scaling.mscale_all_dim": F(1)})
for yes in (True, False): said(f"llama4-{yes}", "llama4", None, {".use_qk_norm": B(yes)})
said("omni", "nemotronh", "nemotron_h_omni", {".vision.x": U(1)}, {"v.x.weight": [[4]]})
said("omni-moe", "nemotronhmoe", "nemotron_h_omni", None, {"mtp.x.weight": [[4]]})
said("qwen35", "qwen35", None, None, None, [("ssm_dt.bias", "ssm_dt")])
said("llama", "mistral", None, {"tokenizer.ggml.model": S("gpt2"), "tokenizer.ggml.tokens": L("STRING", ["a", "b"])})
MAP = "tokenizer.ggml.precompiled_charsmap"
for i, letters in enumerate((list("AQID/w=="), ["A", "!"], ["A", "BC"], [])):
    kv, tensors = encoder("bert", BERT | {MAP: L("STRING", letters)}, bert)
    to_model(f"said-map-{i}", "gpt2", kv, tensors)

# ---- folders -------------------------------------------------------------------------------------------------------

# What of a vector no config says so: a file that becomes a folder.
EXPERTS = lambda n: {".expert_feed_forward_length": U(n)}
GROUPS = {".expert_group_count": None, ".expert_group_used_count": None}
GOOD = {
    "dots1": GROUPS | {".expert_shared_feed_forward_length": U(32)}, "glm4moe": GROUPS | {".expert_shared_feed_forward_length": U(16)},
    "dsv3": {".expert_shared_feed_forward_length": U(16)}, "glm47flash": GROUPS | {".expert_shared_feed_forward_length": U(16)},
    "mistral4": GROUPS | {".expert_shared_feed_forward_length": U(16), ".expert_gating_func": U(1)}, "gemma3": {".attention.sliding_window_pattern": None},
    "gemma3n_shared": {".feed_forward_length": U(48), ".activation_sparsity_scale": L("FLOAT32", ["-inf"] * 6)}, "granitehybrid": EXPERTS(16), "granitemoe": EXPERTS(16), "mixtral": EXPERTS(24), "olmoe": EXPERTS(16),
    "kimilinear": {".expert_group_used_count": None, ".expert_shared_feed_forward_length": U(16)},
    "llama4": {".rope.dimension_count": None, ".expert_shared_count": U(1), ".expert_shared_feed_forward_length": U(16)},
    "nemotronhmoe": GROUPS | {".attention.layer_norm_epsilon": None, ".rope.dimension_count": None, ".rope.scaling.finetuned": None},
}
GOOD_TENSORS = {
    "kimilinear": {f"blk.*.ssm_conv1d_{c}.weight": [[4, 16]] for c in "qkv"},
    "mistral4": {"blk.*.ffn_gate_up_exps.weight": None, "blk.*.ffn_gate_exps.weight": [[32, 16, 8]], "blk.*.ffn_up_exps.weight": [[32, 16, 8]]},
}


def to_folder(name, vector, kv=None, tensors=None, how=0, files=()):
    pieces = [words(vector, GOOD.get(vector, {}) | (kv or {}), GOOD_TENSORS.get(vector, {}) | (tensors or {})), bytes([how])]
    for file, what in files: pieces.append(file.encode() + b"\n" + (what if isinstance(what, bytes) else J(what)))
    put(folder, "v-" + name, b"\xff".join(pieces))


def config(name, vector, **members):
    to_folder(f"{vector}-{name}", vector, files=[("config.json", members)])


def header(name, vector, **names):
    to_folder(f"{vector}-{name}", vector, files=[("tensors", names)])


for i, v in enumerate(v for v in vectors if v not in ("dsv2lite", "gemma3n")):
    to_folder(v, v)
for how, v in ((1 | 4 << 3, "mistral"), (2 | 5 << 3, "qwen3moe"), (3 | 2 << 3, "gemma2"), (4, "mistral"), (7, "mistral"), (0 | 7 << 3, "mistral"), (0 | 3 << 3, "gptoss"), (0 | 6 << 3, "mistral")):
    to_folder(f"how-{how}", v, how=how)
for kind in range(4): to_folder(f"taken-{kind}", "mistral", how=128 | kind)
for v in ("mistral", "qwen3next", "dsv3", "gemma4"): to_folder(f"again-{v}", v, how=64)
back = lambda i, v, kv=None, tensors=None: to_folder(f"back-{i}", v, kv, tensors)
for i, (v, kv, *t) in enumerate([
        ("mistral", {}, {"output.weight": None}), ("mistral", {}, {"blk.*.attn_q.weight": None}), ("mistral", {}, {"blk.*.attn_q.weight": [[32, 16]]}), ("mistral", {}, {"odd.weight": [[3]]}),
        ("mistral", {}, {"rope_freqs.weight": [[4]]}), ("mistral", {}, {"token_embd.weight": None}), ("mistral", {"general.architecture": S("lama")}), ("mistral", {".block_count": None}),
        ("mistral", {".attention.sliding_window": U(4)}), ("mistral", {".rope.scaling.type": S("linear"), ".rope.scaling.factor": F(2)}),
        ("mistral", {".rope.scaling.type": S("yarn"), ".rope.scaling.factor": F(2), ".rope.scaling.attn_factor": F(1.1), ".rope.scaling.original_context_length": U(32)}),
        ("ministral3", {".rope.scaling.attn_factor": F(1.1)}), ("dsv3", {".rope.scaling.attn_factor": F(1.1)}), ("mistral", {"general.sampling.top_k": ["INT32", 40], "general.sampling.temp": F(0.5)}),
        ("mistral", {"general.sampling.top_k": S("x")}), ("mistral", {".context_length": ["UINT64", 64], ".block_count": ["INT16", 2], ".rope.freq_base": ["FLOAT64", 1e4]}),
        ("granitehybrid", {".expert_count": None, ".expert_used_count": None}), ("mamba2", {}, {"blk.0.ssm_a": [[1, 8]]}), ("dots1", {".expert_group_count": U(2), ".expert_group_used_count": U(1)}),
        ("mistral", {"general.architecture": S("mamba")}), ("mistral", {"general.architecture": S("bert")}), ("mistral", {}, {"blk.*.attn_q.weight": [[32, 32], 1]}),
        ("mistral", {}, {"blk.0.attn_q.weight": [[32, 32], 8], "blk.1.attn_q.weight": [[32, 32], 30]}), ("mistral", {}, {"blk.*.attn_norm.weight": [[32], 0]}),
        ("qwen2moe", {".rope.freq_base": None}), ("smollm3", {".block_count": U(1)}, {"blk.1.attn_q.weight": None}), ("qwen3moe", {".attention.sliding_window": U(3)}),
        ("mistral", {"tokenizer.ggml.model": S("llama"), "tokenizer.ggml.tokens": L("STRING", [f"t{i}" for i in range(16)]), "tokenizer.ggml.scores": L("FLOAT32", [0] * 16),
                     "tokenizer.ggml.token_type": L("INT32", [1] * 16), "tokenizer.ggml.bos_token_id": U(1), "tokenizer.chat_template": S("{{ x }}")}),
        ("mistral", {"tokenizer.ggml.model": S("gpt2"), "tokenizer.ggml.pre": S("llama-bpe"), "tokenizer.ggml.tokens": L("STRING", [f"t{i}" for i in range(16)]), "tokenizer.ggml.merges": L("STRING", ["t 0"]),
                     "tokenizer.ggml.token_type": L("INT32", [1] * 15 + [3]), "tokenizer.ggml.eos_token_id": U(15)}),
        ("gemma3n_shared", {".activation_sparsity_scale": L("FLOAT32", [1] * 6)}), ("gptoss", {".rope.scaling.attn_factor": F(1.3)}), ("phi3", {".rope.scaling.attn_factor": None}),
        ("gemma4", {".attention.head_count_kv": L("UINT32", [2, 2, 1, 2, 2, 1])})]):
    back(i, v, kv, *t)

# members of configs: a vector, and what is otherwise
NEW = {"rope_parameters": None, "rope_scaling": None}
rope = lambda **p: dict(NEW, rope_scaling=dict(p))
for i, (v, members) in enumerate([
        ("dots1", {"n_shared_experts": 2000}), ("dots1", {"mlp_layer_types": ["sparse", "dense"], "first_k_dense_replace": None}), ("dots1", {"mlp_layer_types": ["dense", "sparse"], "first_k_dense_replace": 2}),
        ("dots1", {"mlp_layer_types": ["dense", "sparse"]}), ("dots1", {"scoring_func": "tanh"}), ("dots1", {"topk_method": "greedy"}), ("dots1", {"scoring_func": "softmax", "topk_method": "group_limited_greedy"}),
        ("dots1", {"scoring_func": "softmax", "topk_method": "group_limited_greedy", "n_group": 2}), ("mixtral", {"architectures": ["MixtralForCausalLM"]}), ("mixtral", {"sliding_window": 4}),
        ("minimaxm2", {"rope_parameters": {"partial_rotary_factor": 0.1}}), ("llama4", {"attn_temperature_tuning": False}), ("llama4", {"attn_temperature_tuning": 4}), ("llama4", {"use_qk_norm": False}),
        ("llama4", {"moe_layers": [1, 2]}), ("llama4", {"moe_layers": [1, 3]}), ("llama4", {"num_local_experts": 128}), ("qwen2moe", {"mlp_only_layers": [1]}), ("qwen3moe", {"decoder_sparse_step": 2}),
        ("mamba2", {"time_step_limit": [0, "x"]}), ("mamba2", {"time_step_limit": [0, 1e39]}), ("mamba2", {"time_step_limit": [0, {"__float__": "Infinity"}]}), ("mamba2", {"num_heads": 0}),
        ("falconh1", {"mamba_rms_norm": True, "mamba_norm_before_gate": None}), ("falconh1", {"tie_word_embeddings": True, "lm_head_multiplier": 2}), ("granitehybrid", {"position_embedding_type": "alibi"}),
        ("granitehybrid", {"position_embedding_type": "rope", "mamba_d_head": "auto"}), ("nemotronhmoe", {"hybrid_override_pattern": "M*-"}), ("nemotronhmoe", {"n_group": 2, "topk_group": 1}),
        ("nemotronhmoe", {"hybrid_override_pattern": "M*"}), ("nemotronhmoe", {"hybrid_override_pattern": "M*Z"}), ("nemotronhmoe", {"hybrid_override_pattern": None, "layers_block_type": ["mamba", "attention", "moe"]}),
        ("lfm2", {"layer_types": None, "full_attn_idxs": [1]}), ("lfm2", {"layer_types": None, "full_attn_idxs": [2]}), ("lfm2", {"layer_types": None, "full_attn_idxs": None}),
        ("lfm2", {"block_auto_adjust_ff_dim": True, "block_multiple_of": 16, "block_ffn_dim_multiplier": 1.5}), ("lfm2", {"block_auto_adjust_ff_dim": 7}), ("lfm2", {"num_hidden_layers": 2000}),
        ("lfm2", {"block_ffn_dim_multiplier": "x"}), ("mistral", {"num_hidden_layers": "x"}), ("mistral", {"num_hidden_layers": -1}), ("mistral", {"hidden_act": "relu"}), ("mistral", {"odd_member": 1}),
        ("mistral", {"attention_bias": 2}), ("mistral", {"attention_bias": True}), ("mistral", {"architectures": ["LlamaForCausalLM", "B"]}), ("mistral", {"architectures": ["Nobody"]}),
        ("mistral", {"architectures": None}), ("mistral", {"architectures": None, "model_type": "no"}), ("mistral", {"text_config": {"hidden_size": 32}}), ("mistral", {"quantization_config": {"quant_method": "no"}}),
        ("mistral", {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}), ("mistral", {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 8}),
        ("mistral", {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": None}), ("mistral", {"tie_word_embeddings": True}), ("mistral", {"vocab_size": 9}), ("mistral", {"vocab_size": 99}),
        ("phi3", {"sliding_window": 4}), ("phi3", {"original_max_position_embeddings": None}), ("phi3", rope(rope_type="longrope", short_factor=[1], long_factor=[1, 1, 1, 1])),
        ("phi3", rope(rope_type="longrope", short_factor=[1, 1, 1, 0], long_factor=[1, 1, 1, 1])), ("phi3", rope(type="su", short_factor=[1, 1, 1, 1], long_factor=[1, 1, 1, 1])),
        ("mistral", rope(rope_type="longrope", short_factor=[1, 1, 1, 1], long_factor=[1, 1, 1, 1], original_max_position_embeddings=8)), ("mistral", rope(rope_type="linear", factor=2.0)),
        ("mistral", rope(rope_type="linear", factor="x")), ("mistral", rope(rope_type="linear", factor=2, odd=1)), ("mistral", rope(rope_type="yarn")), ("mistral", rope(rope_type="yarn", factor=4.0, truncate=False)),
        ("mistral", rope(rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=0.5)), ("gptoss", rope(rope_type="yarn", factor=4.0, truncate=False, original_max_position_embeddings=16)),
        ("mistral", rope(rope_type="llama3", factor=8.0)), ("mistral", rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)),
        ("mistral", rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
        ("mistral", rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)), ("mistral", rope(rope_type="dynamic", factor=2.0)),
        ("mistral", rope(rope_type="dynamic", factor=2.0, original_max_position_embeddings=9)), ("mistral", rope(rope_type="odd")), ("hunyuan", rope(type="dynamic", alpha=1000.0, factor=1.0)),
        ("hunyuan", rope(type="dynamic", alpha="x")), ("mistral", {"partial_rotary_factor": 2.0}), ("mistral", {"partial_rotary_factor": 0.5}), ("mistral", {"rope_parameters": {"rope_theta": "x"}}),
        ("gemma3", rope(full_attention={"rope_type": "default", "rope_theta": 1e6}, sliding_attention={"rope_type": "linear", "factor": 2.0})),
        ("gemma3", dict(NEW, rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default"}}, rope_local_base_freq=None)),
        ("olmo3", dict(NEW, rope_parameters={"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}})), ("gemma4", {"partial_rotary_factor": 0.5}),
        ("gemma4", dict(NEW, rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0}})), ("gemma4", {"vocab_size_per_layer_input": 99}), ("gemma4", {"vocab_size_per_layer_input": 8}),
        ("gemma4", {"layer_types": None}), ("gemma4", {"layer_types": ["x"] * 6}), ("gemma4", {"layer_types": ["full_attention"]}), ("gemma4", {"intermediate_size": [1]}), ("gemma4", {"intermediate_size": "x"}),
        ("gemma4", {"intermediate_size": [48, 48, 48, 96, 96, 96], "use_double_wide_mlp": False}), ("gemma4", {"per_layer_config": {"0": {"head_dim": 9}}}), ("gemma4", {"per_layer_config": {"0": {"x": 9}}}),
        ("gemma4", {"per_layer_config": {"0": {"num_key_value_heads": 1}}}), ("gemma4", {"enable_moe_block": True}), ("gemma4moe", {"enable_moe_block": False}), ("gemma4moe", {"num_experts": 0}),
        ("gemma3n_shared", {"activation_sparsity_pattern": [0.5]}), ("gemma3n_shared", {"activation_sparsity_pattern": 2}), ("gemma3n_shared", {"activation_sparsity_pattern": 0.5}),
        ("gemma3n_shared", {"activation_sparsity_pattern": [0.95, 0, 0.8, 0, 0.9, 0]}), ("gemma2", {"attn_logit_softcapping": None, "sliding_window": None}), ("gemma1", {"hidden_activation": "relu"}),
        ("exaone4", {"sliding_window_pattern": "LLLG", "sliding_window": 4}), ("exaone4", {"sliding_window": 4}), ("exaone4", {"sliding_window_pattern": 4, "layer_types": ["full_attention"] * 2}),
        ("qwen3next", {"layer_types": ["x"] * 4}), ("qwen3next", {"layer_types": None}), ("qwen3next", {"linear_num_value_heads": 3}), ("qwen3next", {"linear_value_head_dim": 9}),
        ("kimilinear", {"layer_types": None, "linear_attn_config": {"full_attn_layers": [2], "kda_layers": [1, 3], "num_heads": 2, "head_dim": 8, "short_conv_kernel_size": 4}}),
        ("kimilinear", {"layer_types": None, "linear_attn_config": {"full_attn_layers": [9]}}), ("kimilinear", {"layer_types": None, "linear_attn_config": {}}), ("kimilinear", {"linear_num_heads": 9}),
        ("dsv3", {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "n_group": None}), ("dsv3", {"rope_interleave": False}),
        ("dsv3", {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"}), ("glm47flash", {"architectures": ["Glm4MoeLiteForCausalLM"], "rope_interleave": False}),
        ("mistral4", {"rope_interleave": False}), ("mistral4", rope(rope_type="yarn", factor=4.0, llama_4_scaling_beta=0.1)), ("ministral3", rope(rope_type="yarn", factor=4.0, llama_4_scaling_beta=0.1)),
        ("mistral4", rope(rope_type="yarn", factor=4.0, llama_4_scaling_beta=0.1, original_max_position_embeddings=8)), ("smollm3", {"no_rope_layers": [1, 0]}), ("smollm3", {"no_rope_layers": [0]}),
        ("cohere2", {"layer_types": ["full_attention"]}), ("seedoss", {"attention_out_bias": True}), ("gpt2", {"scale_attn_by_inverse_layer_idx": True}), ("gptneox", {"rotary_pct": 0.25}),
        ("qwen35", {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": {"hidden_size": 32}}), ("commandr", {"use_qk_norm": True}), ("starcoder2", {"use_bias": False}),
        ("mistral", {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}), ("mistral", {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True, "max_window_layers": 1}),
        ("mistral", {"architectures": ["Qwen3ForCausalLM"], "use_sliding_window": True, "max_window_layers": 0, "sliding_window": 4}), ("ernie45moe", {"moe_layer_end_index": 0}), ("ernie45moe", {"moe_layer_end_index": -1})]):
    config(f"member-{i}", v, **members)

block = lambda *what, **more: {"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {
    str(i): {"weights": dict({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": w}, **more)} for i, w in enumerate(what)}}}
for i, members in enumerate([block("4x4"), block([4, 4], [4, 4]), block("4x"), block([0, 4]), block([4, 4], [8, 8]), block("4x4", num_bits=9), block("4x4", type="odd"), block("4x4", type="int", num_bits=4),
                             {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, {"quantization_config": {"quant_method": "gptq", "bits": 3}}, {"quantization_config": {"quant_method": "awq", "version": "odd"}},
                             {"quantization_config": {"quant_method": "compressed-tensors", "format": "odd"}}, {"quantization_config": []}, {"quantization_config": {"quant_method": "mxfp4"}}]):
    config(f"stored-{i}", "mistral", **members)

# other names and shapes in the header
M, G4 = "model.layers.", "model.layers.0.self_attn."
for i, (v, names) in enumerate([
        ("mistral", {"lm_head.weight": None}), ("mistral", {M + "0.input_layernorm.weight": [33]}), ("mistral", {M + "0.input_layernorm.weight": None}), ("mistral", {"odd": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}),
        ("mistral", {M + "9.input_layernorm.weight": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}), ("mistral", {"vision_tower.x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}),
        ("mistral", {M + "0.self_attn.q_proj.weight": M + "0.self_attn.Q.weight"}), ("mistral", {M + "0.self_attn.q_proj.weight": [1, 32, 32]}), ("mistral", {M + "0.self_attn.rotary_emb.inv_freq": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}),
        ("ernie45moe", {M + "1.mlp.moe_statics.e_score_correction_bias": M + "1.mlp.gate.moe_statics.e_score_correction_bias"}), ("ernie45moe", {M + "1.mlp.moe_statics.e_score_correction_bias": M + "1.mlp.gate.e_score_correction_bias"}),
        ("gemma4", {"model.embed_tokens.weight": [8, 64]}), ("gemma4", {G4 + "k_proj.weight": None}), ("gemma3n_shared", {M + "0.laurel.linear_left.weight": None}), ("mamba2", {"backbone.layers.0.mixer.conv1d.weight": [96, 4]}),
        ("llama4", {M + "1.feed_forward.experts.gate_up_proj": None}), ("mixtral", {M + "0.block_sparse_moe.experts.7.w1.weight": None}), ("gptoss", {M + "0.mlp.experts.gate_up_proj_bias": [8, 16]})]):
    header(f"header-{i}", v, **names)

to_folder("gemma4-fewer", "gemma4", files=[("config.json", {"vocab_size_per_layer_input": 8}), ("tensors", {"model.embed_tokens_per_layer.weight": [8, 48]})])
experts = {M + f"1.feed_forward.experts.{e}.{n}_proj.weight": {"dtype": "F32", "shape": s} for e in range(8) for n, s in (("gate", (16, 32)), ("up", (16, 32)), ("down", (32, 16)))}
header("each", "llama4", **experts, **{M + f"1.feed_forward.experts.{n}": None for n in ("gate_up_proj", "down_proj")})
packed = {f"backbone.layers.2.mixer.experts.{e}.{n}_proj.weight": None for e in range(8) for n in ("up", "down")}
header("packed", "nemotronhmoe", **packed, **{"backbone.layers.2.mixer.experts.up_proj": {"dtype": "F32", "shape": (8, 16, 32)}, "backbone.layers.2.mixer.experts.down_proj": {"dtype": "F32", "shape": (8, 32, 16)}})
packed = {M + f"{il}.mlp.experts.{e}.{n}_proj.weight": None for il in (0, 1) for e in range(8) for n in ("gate", "up", "down")}
header("packed", "qwen3moe", **packed, **{M + f"{il}.mlp.experts.{n}": {"dtype": "F32", "shape": s} for il in (0, 1) for n, s in (("gate_up_proj", (8, 32, 32)), ("down_proj", (8, 32, 16)))})

# what stands beside config.json
for i, (v, files) in enumerate([
        ("mistral", [("generation_config.json", {"top_k": 40, "top_p": 0.9, "min_p": None, "temperature": 0.7, "repetition_penalty": 1.1})]), ("mistral", [("generation_config.json", {"top_k": "x"})]),
        ("mistral", [("generation_config.json", {"top_p": 1e300})]), ("mistral", [("generation_config.json", [])]), ("mistral", [("generation_config.json", b">")]), ("mistral", [("generation_config.json", b"@")]),
        ("mistral", [("generation_config.json", b"{")]), ("mistral", [("config.json", b">")]), ("mistral", [("config.json", b"@")]), ("mistral", [("config.json", b"-")]), ("mistral", [("config.json", b"[]")]),
        ("mistral", [("model.safetensors", b">")]), ("mistral", [("model.safetensors", b"-")]), ("mistral", [("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")]),
        ("mistral", [("tokenizer.json", b">")]), ("mistral", [("tokenizer.json", {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})]), ("mistral", [("tokenizer.model", b"\n\x05\n\x01a\x15\0\0\0\0")]),
        ("mistral", [("tokenizer_config.json", {"chat_template": "{{ x }}", "bos_token": "a"})]), ("mistral", [("vocab.json", {"a": 0}), ("merges.txt", b"#version\n")]), ("mistral", [("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})]),
        ("mistral", [("hf_quant_config.json", {"quantization": {"quant_algo": "W4"}})]), ("mistral", [("quantize_config.json", {"bits": 4, "group_size": 4})]), ("mistral", [("modules.json", [{"type": "a.Transformer", "path": ""}])]),
        ("mistral", [("modules.json", [{"type": "a.Odd", "path": "1_Odd"}])]), ("mistral", [("modules.json", [{"type": "a.Pooling", "path": "../x"}])]), ("mistral", [("modules.json", [{"type": "a.Dense", "path": "2_D"}])]),
        ("mistral", [("modules.json", [{"type": "a.Dense", "path": "2_D"}]), ("2_D/config.json", {"bias": True})]), ("mistral", [("model.safetensors.index.json", {"weight_map": {"a": "model.safetensors"}})]),
        ("mistral", [("model.safetensors.index.json", {"weight_map": {"a": "none.safetensors"}})]), ("mistral", [("params.json", {})]), ("mistral", [("adapter_config.json", {})]), ("mistral", [("consolidated.safetensors", b"x")]),
        ("mistral", [("pytorch_model.bin", b"x"), ("model.safetensors", b"-")]), ("mistral", [("additional_chat_templates/tool.jinja", b"{{ x }}"), ("chat_template.jinja", b"{{ y }}")])]):
    to_folder(f"beside-{i}", v, files=files)


def weights(t):
    head, at = {}, 0
    for k, s in t.items():
        n = 4
        for d in s: n *= d
        head[k] = {"dtype": "F32", "shape": s, "data_offsets": [at, at + n]}
        at += n
    return J(head)


def encoders(name, arch, of, tensors, files=(), **more):
    says = dict({"architectures": [arch], "model_type": of, "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 12, "num_attention_heads": 2, "vocab_size": 5,
                 "max_position_embeddings": 6, "type_vocab_size": 2, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}, **more)
    to_folder("encoder-" + name, "mistral", files=[("config.json", b"-"), ("config.json", says), ("weights", weights(tensors))] + list(files))


def linear(*names, n_in=8, n_out=8):
    return {n + x: s for n in names for x, s in ((".weight", (n_out, n_in)), (".bias", (n_out,)))}


def layer_norm(*names):
    return {n + x: (8,) for n in names for x in (".weight", ".bias")}


E = "embeddings."
BERT = {E + "word_embeddings.weight": (5, 8), E + "position_embeddings.weight": (6, 8), E + "token_type_embeddings.weight": (2, 8)}
p = "encoder.layer.0."
BERT |= layer_norm(E + "LayerNorm", p + "attention.output.LayerNorm", p + "output.LayerNorm") | linear(*(p + n for n in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")))
BERT |= linear(p + "intermediate.dense", n_out=12) | linear(p + "output.dense", n_in=12)
pool = lambda **how: [("modules.json", [{"type": "m.Transformer", "path": "0"}, {"type": "m.Pooling", "path": "1_P"}, {"type": "m.Normalize", "path": "2"}]), ("1_P/config.json", how)]
encoders("bert", "BertModel", "bert", BERT)
encoders("bert-pruned", "BertModel", "bert", BERT, pruned_heads={"0": [1]})
encoders("bert-mean", "BertModel", "bert", BERT, pool(pooling_mode_mean_tokens=True))
encoders("bert-two", "BertModel", "bert", BERT, pool(pooling_mode_mean_tokens=True, pooling_mode_cls_token=True))
encoders("bert-max", "BertModel", "bert", BERT, pool(pooling_mode="max"))
encoders("bert-dense", "BertModel", "bert", BERT, [("modules.json", [{"type": "m.Dense", "path": "2_D"}]), ("2_D/config.json", {"activation_function": "torch.Identity"})])
rank = {"bert." + k: s for k, s in BERT.items()} | linear("bert.pooler.dense")
encoders("rank", "BertForSequenceClassification", "bert", rank | linear("classifier", n_out=3), id2label={"0": "a", "1": "b", "2": ""})
encoders("rank-one", "BertForSequenceClassification", "bert", rank | linear("classifier", n_out=1), id2label={"0": "a"})
encoders("roberta", "XLMRobertaModel", "xlm-roberta", BERT | {E + "position_embeddings.weight": (6, 8)}, pad_token_id=1)
encoders("roberta-short", "XLMRobertaModel", "xlm-roberta", BERT, pad_token_id=6)
nomic = {E + "word_embeddings.weight": (5, 8), E + "token_type_embeddings.weight": (2, 8)} | layer_norm("emb_ln", "encoder.layers.0.norm1", "encoder.layers.0.norm2")
for n, s in (("attn.Wqkv", (24, 8)), ("attn.out_proj", (8, 8)), ("mlp.fc11", (12, 8)), ("mlp.fc12", (12, 8)), ("mlp.fc2", (8, 12))): nomic[f"encoder.layers.0.{n}.weight"] = s
encoders("nomic", "NomicBertModel", "nomic_bert", nomic, hidden_act=None, activation_function="swiglu", rotary_scaling_factor=2, max_trained_positions=4, rotary_emb_base=1000, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False)
gemma = dict(hidden_activation="gelu_pytorch_tanh", hidden_act="gelu_pytorch_tanh", use_bidirectional_attention=True, head_dim=4, num_key_value_heads=1, sliding_window=4, layer_norm_eps=None, type_vocab_size=None, rms_norm_eps=1e-6, query_pre_attn_scalar=4)
g = {"embed_tokens.weight": (5, 8), "norm.weight": (8,)}
for n in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"): g[f"layers.0.{n}.weight"] = (8,)
for n, s in (("q_proj", (8, 8)), ("k_proj", (4, 8)), ("v_proj", (4, 8)), ("o_proj", (8, 8)), ("q_norm", (4,)), ("k_norm", (4,))): g[f"layers.0.self_attn.{n}.weight"] = s
for n, s in (("gate", (12, 8)), ("up", (12, 8)), ("down", (8, 12))): g[f"layers.0.mlp.{n}_proj.weight"] = s
encoders("gemma", "Gemma3TextModel", "gemma3_text", g, **gemma)
encoders("gemma-causal", "Gemma3TextModel", "gemma3_text", g, **dict(gemma, use_bidirectional_attention=False))


def tensors_file(t):
    h = weights(t)
    h += b" " * (-len(h) % 8)
    return len(h).to_bytes(8, "little") + h + bytes(sum(4 * s[0] * s[1] for s in t.values()))


two = [("modules.json", [{"type": "m.Dense", "path": "2_D"}, {"type": "m.Dense", "path": "3_D"}])] + [(f"{i}_D/config.json", {"activation_function": "torch.Identity", "bias": False}) for i in (2, 3)]
encoders("dense", "Gemma3TextModel", "gemma3_text", g, two + [("2_D/model.safetensors", tensors_file({"linear.weight": (12, 8)})), ("3_D/model.safetensors", tensors_file({"linear.weight": (8, 12)}))], **gemma)
encoders("dense-none", "Gemma3TextModel", "gemma3_text", g, two, **gemma)
encoders("dense-odd", "Gemma3TextModel", "gemma3_text", g, two + [("2_D/model.safetensors", tensors_file({"linear.bias": (2, 2)}))], **gemma)

# ---- drafts: blocks behind the layers --------------------------------------------------------------------------------

JOINTS = {"eh_proj": [64, 32], "enorm": [32], "hnorm": [32], "shared_head_norm": [32]}
WORDS = {"embed_tokens": [32, 16], "shared_head_head": [32, 16]}
DRAFTS = {"glm4moe": WORDS, "glm47flash": WORDS, "dsv3": WORDS, "mistral4": WORDS, "qwen3next": {}, "qwen35": {}, "qwen35moe": {}}


def drafted(v, n=1, without=(), also=None):
    """Keys and tensors of n blocks more, each as the last layer that attends."""
    layers = next(k[2] for k in vectors[v]["kv"] if k[0].endswith(".block_count"))
    good = GOOD_TENSORS.get(v, {})
    shapes = {t[0]: t[1] for t in vectors[v]["tensors"] if good.get(t[0].replace(".1.", ".*."), "") is not None}
    shapes |= {k.replace("*", "1"): t[0] for k, t in good.items() if t}
    last = max(int(k.split(".")[1]) for k in shapes if k.endswith(".attn_output.weight"))
    tensors = {}
    for il in range(layers, layers + n):
        head = f"blk.{last}."
        tensors |= {f"blk.{il}.{k[len(head):]}": [s] for k, s in shapes.items() if k.startswith(head)}
        tensors |= {f"blk.{il}.nextn.{k}.weight": [s] for k, s in (JOINTS | DRAFTS[v] | (also or {})).items()}
        for k in without: tensors.pop(f"blk.{il}.{k}")
    return {".block_count": U(layers + n), ".nextn_predict_layers": U(n)}, tensors


NEW_TENSOR = lambda *shape: {"dtype": "F32", "shape": list(shape)}
for v in DRAFTS:
    if v not in vectors: continue
    to_folder(f"draft-{v}", v, *drafted(v), how=64)
    to_folder(f"draft-{v}-less", v, *drafted(v, without=("attn_norm.weight",)))
    to_folder(f"draft-{v}-joint", v, *drafted(v, without=("nextn.hnorm.weight",)))
    to_folder(f"draft-{v}-two", v, *drafted(v, 2), how=64)
    to_folder(f"draft-{v}-nine", v, *drafted(v, 9))
    to_folder(f"draft-{v}-bf16", v, *drafted(v, also={"embed_tokens": [32, 16], "shared_head_head": [32, 16]}), how=3 | 4 << 3)
for v, names in {
        "glm4moe": {"model.layers.2.eh_proj.weight": [32, 63]}, "dsv3": {"model.layers.2.enorm.weight": None}, "glm47flash": {"model.layers.2.input_layernorm.weight": None},
        "mistral4": {"model.layers.2.shared_head.head.weight": [15, 32]}, "qwen3next": {"mtp.layers.1.input_layernorm.weight": NEW_TENSOR(32)},
        "qwen35": {"mtp.layers.0.input_layernorm.weight": None}}.items():
    kv, tensors = drafted(v)
    to_folder(f"draft-{v}-header", v, kv, tensors, files=[("tensors", names)])
kv, tensors = drafted("glm4moe")
to_folder("draft-unattended", "glm4moe", kv, tensors, files=[("tensors", {f"model.layers.{i}.self_attn.o_proj.weight": None for i in range(2)})])
to_folder("draft-layers", "glm4moe", kv, tensors, files=[("config.json", {"num_hidden_layers": 0})])

# ---- encoders that become folders ------------------------------------------------------------------------------------

for name, (kv, tensors) in ENCODERS.items(): to_folder("back-" + name, "gpt2", *encoder("bert", kv, tensors), how=64)
for kind in (0, 1, 2, 3, 4, 9): to_folder(f"back-pool-{kind}", "gpt2", *encoder("bert", ENCODERS["bert"][0] | {".pooling_type": U(kind)}, ENCODERS["bert"][1]), how=64)
GEMMA = {"general.architecture": S("gemma-embedding"), ".rope.scaling.type": None, ".rope.scaling.factor": None, ".pooling_type": U(1), ".sliding_window_pattern": None}
renamed = {k[0]: None for k in vectors["gemma3"]["kv"]} | {
    "gemma-embedding" + k[0][len("gemma3"):]: [k[1], k[2]] for k in vectors["gemma3"]["kv"] if k[0].startswith("gemma3.") and "scaling" not in k[0] and "pattern" not in k[0]}
renamed |= {"general.architecture": S("gemma-embedding"), "gemma-embedding.pooling_type": U(1)}
dense = lambda a, b: {"dense_2.weight": [[32, a]], "dense_3.weight": [[a, b]]}
out = lambda a, b: {"gemma-embedding.dense_2_feat_out": U(a), "gemma-embedding.dense_3_feat_out": U(b), "gemma-embedding.dense_2_feat_in": U(32), "gemma-embedding.dense_3_feat_in": U(a)}
for i, (kv, tensors) in enumerate([({}, {}), (out(16, 32), dense(16, 32)), (out(16, 8), dense(16, 8)), ({}, {"dense_2.weight": [[32, 32]]}), (out(9, 9), dense(16, 32)),
                                   ({"gemma-embedding.pooling_type": U(0)}, dense(16, 32)), ({"gemma-embedding.pooling_type": U(3)}, {}), ({"gemma-embedding.pooling_type": None}, dense(16, 32))]):
    to_folder(f"back-gemma-{i}", "gemma3", renamed | kv, tensors, how=64)
    if i == 1: to_folder("back-gemma-bf16", "gemma3", renamed | kv, tensors, how=3 | 4 << 3)
