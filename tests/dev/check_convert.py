#!/usr/bin/env python3
"""Folders that transformers saves, converted by hone: `hone convert FOLDER -o FILE` against transformers itself.

For each family of transformers_families.py, and for the variants below (scalings of rotations, biases, several inputs),

  1. a small random model is saved by transformers (`save_pretrained`): float32 in one file, bfloat16 in shards,
  2. hone converts both; every tensor of the files must equal what transformers_families.py's exporter makes of the
     same numbers (bfloat16: of the rounded ones), and no tensor may be missing or too many,
  3. the logits of 300 positions of the converted float32 file must agree with transformers (in float64) within 1e-5
     of their range.

    check_convert.py HONE [--case NAME ...] [--keep FOLDER] [--keys]

--keys prints keys that hone writes and the exporter does not, and the other way round. Needs torch, transformers,
safetensors and gguf; 77 without.
"""
import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import check_transformers as ct
import safetensors.torch
import transformers_families as families
from check_transformers import gguf, np, torch, transformers

YARN = dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)


def llama(**cfg):
    return dict(cls="Llama", arch="llama", change=families.PERMUTED, cfg=cfg)


QWEN_EYES = dict(depth=2, hidden_size=32, num_heads=2, intermediate_size=48, in_channels=3, patch_size=14,
                 spatial_merge_size=2, temporal_patch_size=2)

# As FAMILIES; `head`: the class that is saved, where it is not AutoModelForCausalLM's; logits alone are compared
# where there is no exporter for the variant.
VARIANTS = {
    "llama": llama(),
    "llama-biases": llama(attention_bias=True, mlp_bias=True, head_dim=20),
    "llama-tied": llama(tie_word_embeddings=True),
    "llama-llama3": dict(llama(**families.rope(5e5, **LLAMA3)), loose=True),
    "llama-linear": llama(**families.rope(1e4, rope_type="linear", factor=4.0)),
    "llama-yarn": llama(**families.rope(1e4, **YARN)),
    "llama-yarn-factor": llama(**families.rope(1e4, attention_factor=1.3, **YARN)),
    "llama-dynamic": llama(**families.rope(1e4, rope_type="dynamic", factor=4.0)),
    "mistral": dict(cls="Mistral", arch="llama", change=families.PERMUTED, cfg=dict(sliding_window=None, head_dim=20)),
    "qwen2": dict(cls="Qwen2", arch="qwen2"),
    "qwen3": dict(cls="Qwen3", arch="qwen3", cfg=dict(families.HEAD)),
    "qwen3-yarn": dict(cls="Qwen3", arch="qwen3", cfg=dict(families.HEAD, **families.rope(1e6, **YARN))),
    "qwen2-window": dict(cls="Qwen2", arch="qwen2", n_ctx=400, cfg=dict(use_sliding_window=True, sliding_window=400,
                                                                         max_window_layers=0)),
    "mistral-window": dict(cls="Mistral", arch="llama", change=families.PERMUTED, n_ctx=400,
                           cfg=dict(sliding_window=400)),
    "phi3": dict(cls="Phi3", arch="phi3", n_ctx=400, cfg=dict(sliding_window=400)),
    "hunyuan-alpha": dict(cls="HunYuanDenseV1", arch="hunyuan-dense", tol=2e-4, cfg=dict(
        families.HEAD, **families.rope(1e4, rope_type="dynamic", alpha=1000.0, factor=1.0, beta_fast=32, beta_slow=1,
                                       mscale=1.0, mscale_all_dim=1.0))),
    "arcee-biases": dict(cls="Arcee", arch="arcee", change=families.PERMUTED, cfg=dict(attention_bias=True, mlp_bias=True)),
    "ernie4.5-biases": dict(cls="Ernie4_5", arch="ernie4_5", cfg=dict(families.HEAD, use_bias=True)),
    "olmo3-odd": dict(cls="Olmo3", arch="olmo2", names=families.SANDWICH,
                      cfg=dict(sliding_window=37, num_hidden_layers=4, layer_types=[
                          "full_attention", "sliding_attention", "sliding_attention", "full_attention"])),
    "granite-yarn": dict(cls="Granite", arch="granite", change=families.PERMUTED,
                         cfg=dict(attention_multiplier=0.25, embedding_multiplier=3.0, residual_multiplier=0.5,
                                  logits_scaling=2.0, **families.rope(1e4, **YARN))),
    "command-r-qk": dict(cls="Cohere", arch="command-r", cfg=dict(logit_scale=0.4, use_qk_norm=True)),
    "gpt2-bare": dict(families.FAMILIES["gpt2"], rename=lambda n: n.removeprefix("transformer.")),
    "llama-bare": dict(llama(tie_word_embeddings=True), rename=lambda n: n.removeprefix("model.")),
    "gpt-neox-serial": dict(families.FAMILIES["gpt-neox"], cfg=dict(families.FAMILIES["gpt-neox"]["cfg"],
                                                                    use_parallel_residual=False)),
    "gemma3-images": dict(cls="Gemma3Text", arch="gemma3", names=families.SANDWICH, change=families.NORM1,
                          cfg=families.FAMILIES["gemma3"]["cfg"], around="Gemma3"),
    "qwen2.5-images": dict(cls="Qwen2", arch="qwen2", around="Qwen2_5_VL", parts=[2, 2, 2],
                           eyes=dict(QWEN_EYES, fullatt_block_indexes=[1])),
    "qwen3-images": dict(cls="Qwen3", arch="qwen3", cfg=dict(families.HEAD), around="Qwen3VL", parts=[4, 3, 3],
                         eyes=dict(QWEN_EYES, deepstack_visual_indexes=[0, 1], num_position_embeddings=16)),
    "mistral3-images": dict(cls="Mistral", arch="llama", change=families.PERMUTED, around="Mistral3",
                            cfg=dict(sliding_window=None, head_dim=20)),
    "gemma3-plain": dict(cls="Gemma3Text", arch="gemma3", names=families.SANDWICH, change=families.NORM1,
                         cfg=dict(families.HEAD, tie_word_embeddings=True, query_pre_attn_scalar=20, sliding_window=37,
                                  num_hidden_layers=7, rope_parameters={
                                      "full_attention": dict(rope_type="default", rope_theta=1e6),
                                      "sliding_attention": dict(rope_type="default", rope_theta=1e4)})),
}


def like(name, **cfg):
    """A family, its config changed."""
    row = families.FAMILIES[name]
    return dict(row, cfg=dict(row["cfg"], **cfg))


# Mixtures, latent attention, hybrids. `bare`: logits alone are compared; `at`: the module and class of a model that
# AutoModelForCausalLM does not know.
LATENT = dict(families.LATENT, moe_intermediate_size=28, q_lora_rank=22)
MIXED = {
    "muse-glimmer-yarn": dict(like("muse-glimmer", **families.rope(1e4, **YARN)), bare=True),
    "kimi-linear": dict(cls="KimiLinear", arch="kimi-linear", bare=True, cfg=dict(
        families.LATENT, num_hidden_layers=4, moe_intermediate_size=28, num_experts=8, num_experts_per_token=3,
        linear_head_dim=16, linear_num_heads=6, mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
        layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"])),
    "mistral4": dict(cls="Mistral4", arch="mistral4", bare=True, at=("mistral4", "Mistral4ForCausalLM"), cfg=dict(
        LATENT, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1, n_group=1,
        topk_group=1, **families.rope(1e4, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1,
                                      **dict(YARN, original_max_position_embeddings=40)))),
    "youtu": dict(cls="Youtu", arch="deepseek2", bare=True, cfg=dict(families.LATENT, q_lora_rank=22)),
    "exaone-moe": dict(cls="ExaoneMoe", arch="exaone-moe", bare=True, cfg=dict(
        families.MOE, num_hidden_layers=5, first_k_dense_replace=1, num_shared_experts=2, norm_topk_prob=True,
        sliding_window=37, **families.HEAD)),
    "hy3": dict(cls="HYV3", arch="bailingmoe2", bare=True, cfg=dict(
        families.MOE, num_hidden_layers=4, num_shared_experts=1, router_scaling_factor=1.8,
        mlp_layer_types=["dense", "dense", "sparse", "sparse"], **families.HEAD)),
    "deepseek-v2-q": dict(like("deepseek-v2", q_lora_rank=22), bare=True),
    "mixtral-window": dict(like("mixtral", sliding_window=400), n_ctx=400),
    "solar-open": dict(cls="SolarOpen", arch="glm4moe", bare=True, cfg=dict(
        {k: v for k, v in families.ROUTED.items() if k != "first_k_dense_replace"}, n_shared_experts=1, n_group=1,
        topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.8, **families.HEAD)),
    "mellum": dict(cls="Mellum", arch="mellum", bare=True, cfg=dict(
        families.MOE, norm_topk_prob=True, sliding_window=37, num_hidden_layers=5, **families.HEAD,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        rope_parameters={"full_attention": dict(YARN, rope_theta=5e5, original_max_position_embeddings=64),
                         "sliding_attention": dict(rope_type="default", rope_theta=5e5)})),
    "mimo-v2-flash-published": dict(families.FAMILIES["mimo-v2-flash"],
                                    rename=lambda n: n.replace("self_attn.sinks", "self_attn.attention_sink_bias")),
    "granitemoe-shared": dict(like("granitemoe", shared_intermediate_size=44), cls="GraniteMoeShared", bare=True),
    "granite-4-dense": dict(like("granite-4", num_local_experts=0, num_experts_per_tok=0), bare=True),
    "granite-4-rope": like("granite-4", position_embedding_type="rope"),
    "falcon-h1-norm": like("falcon-h1", mamba_rms_norm=True),
    "lfm2-wide": dict(like("lfm2", block_auto_adjust_ff_dim=True, intermediate_size=900), bare=True),
    "gemma4-images": dict(like("gemma4", pad_token_id=0), around="Gemma4", bare=True),
    "qwen3.5-images": dict(families.FAMILIES["qwen3.5"], around="Qwen3_5", bare=True),
    "qwen3.5-order": dict(like("qwen3.5", layer_types=["linear_attention", "full_attention", "full_attention",
                                                       "linear_attention", "linear_attention"]), bare=True),
}


def rows():
    return dict(VARIANTS, **MIXED, **families.FAMILIES)


VISION = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, num_channels=3,
              image_size=28, patch_size=14)


def around(row, c):
    """A model of images and text around the text's."""
    cls = row["around"]
    if "text" in row:
        return getattr(transformers, cls + "Config")(text_config=c, vision_config=dict(VISION, max_position_embeddings=4))
    if "eyes" in row:
        text = {k: v for k, v in c.to_dict().items() if k != "model_type"}
        text["rope_parameters"] = dict(text["rope_parameters"], mrope_section=row["parts"])
        return getattr(transformers, cls + "Config")(text_config=text, vision_config=dict(row["eyes"], out_hidden_size=c.hidden_size),
                                                     tie_word_embeddings=c.tie_word_embeddings)
    kind = "siglip_vision_model" if cls == "Gemma3" else "pixtral"
    vision = dict(VISION, model_type=kind, **({} if cls == "Gemma3" else dict(head_dim=8)))
    more = dict(mm_tokens_per_image=4) if cls == "Gemma3" else {}
    return getattr(transformers, cls + "Config")(text_config=dict(c.to_dict(), pad_token_id=0), vision_config=vision, tie_word_embeddings=c.tie_word_embeddings, **more)


def built(row, c, **how):
    """A model and what holds the text's tensors."""
    if "at" in row:
        module = importlib.import_module("transformers.models.%s.modeling_%s" % (row["at"][0], row["at"][0]))
        return getattr(module, row["at"][1])._from_config(c, attn_implementation="eager", **how)
    if "around" not in row:
        return families.model_of(transformers, row, c, attn_implementation="eager", **how)
    return getattr(transformers, row["around"] + "ForConditionalGeneration")._from_config(
        around(row, c), attn_implementation="eager")


def filled(model, row, name, seed):
    """The text's numbers, by the names that a model of text alone has."""
    if "around" not in row:
        return families.fill(model, row, [seed, zlib.crc32(name.encode())])
    c = families.config(transformers, row)
    text = families.model_of(transformers, row, c, attn_implementation="eager")
    state = families.fill(text, row, [seed, zlib.crc32(name.encode())])
    own = model.state_dict()
    for n, x in state.items():
        own[n if n.startswith("lm_head") else n.replace("model.", "model.language_model.", 1)].copy_(torch.from_numpy(x))
    return state


def published_step(c):
    """Step's own config: numbers of each layer, of a block that drafts too, under other names."""
    kinds, p = c["layer_types"], c.pop("rope_parameters")
    c["rope_theta"], c["partial_rotary_factors"] = ([p[k][n] for k in kinds] for n in ("rope_theta", "partial_rotary_factor"))
    c["moe_layers_enum"] = ",".join(str(il) for il, k in enumerate(c.pop("mlp_layer_types")) if k == "sparse")
    for new, old in (("num_key_value_heads", "num_attention_groups"), ("n_routed_experts", "moe_num_experts"),
                     ("num_experts_per_tok", "moe_top_k"), ("share_expert_dim", "share_expert_dims")):
        c[old] = c.pop(new)
    c["attention_other_setting"] = {"attention_type": "sliding_attention", "head_dim": c["head_dim"],
                                    "num_attention_heads": c.pop("num_sliding_attention_heads"),
                                    "num_attention_groups": c["num_attention_groups"]}
    for list_of, more in (("layer_types", "full_attention"), ("swiglu_limits", 0.0), ("swiglu_limits_shared", 0.0),
                          ("rope_theta", 1e4), ("partial_rotary_factors", 0.5)):
        c[list_of] = c[list_of] + [more]
    c["num_nextn_predict_layers"] = 1
    c.pop("per_layer_config", None)


def published_mimo(c):
    """MiMo's own config: layers by numbers, a window less the position itself, other names."""
    p = c.pop("rope_parameters")
    c["hybrid_layer_pattern"] = [int(k == "sliding_attention") for k in c.pop("layer_types")]
    c["moe_layer_freq"] = [int(k == "sparse") for k in c.pop("mlp_layer_types")]
    c["rope_theta"], c["swa_rope_theta"] = (p[k]["rope_theta"] for k in ("full_attention", "sliding_attention"))
    c["partial_rotary_factor"] = p["full_attention"]["partial_rotary_factor"]
    c["sliding_window_size"] = c["sliding_window"] = c["sliding_window"] - 1
    c["swa_num_key_value_heads"], c["layernorm_epsilon"] = 2 * c["num_key_value_heads"], c.pop("rms_norm_eps")
    c.update(swa_head_dim=c["head_dim"], swa_v_head_dim=c["v_head_dim"], swa_num_attention_heads=c["num_attention_heads"],
             add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, n_shared_experts=None, topk_method="noaux_tc",
             scoring_func="sigmoid", hybrid_block_size=None)


def older(folder, to):
    """The same with the config as transformers 4 wrote it."""
    shutil.copytree(folder, to)
    path = os.path.join(to, "config.json")
    with open(path) as f:
        whole = json.load(f)
    c = whole.get("text_config", whole)
    if c["model_type"] == "step3p5":
        published_step(c)
    if c["model_type"] == "mimo_v2_flash":
        published_mimo(c)
    p = c.pop("rope_parameters", None)
    if p:
        full, local = p.get("full_attention", p), p.get("sliding_attention")
        scaling = {k: v for k, v in full.items() if k not in ("rope_theta", "partial_rotary_factor")}
        if c["model_type"] == "gpt_neox":
            c["rotary_emb_base"], c["rotary_pct"] = full["rope_theta"], full.get("partial_rotary_factor", 1.0)
        else:
            c["rope_theta"] = full["rope_theta"]
            if "partial_rotary_factor" in full:
                c["partial_rotary_factor"] = full["partial_rotary_factor"]
        if local and c["model_type"].startswith("gemma3"):
            c["rope_local_base_freq"] = local["rope_theta"]
        if c["model_type"] in ("phi3",) and "original_max_position_embeddings" in scaling:
            c["original_max_position_embeddings"] = scaling.pop("original_max_position_embeddings")
        kind = scaling.pop("rope_type")
        c["rope_scaling"] = None if kind == "default" and not scaling else dict(scaling, type=kind)
    if "dtype" in whole:
        whole["torch_dtype"] = whole.pop("dtype")
    with open(path, "w") as f:
        json.dump(whole, f, indent=1)


def renamed(folder, rename):
    path = os.path.join(folder, "model.safetensors")
    tensors = safetensors.torch.load_file(path)
    safetensors.torch.save_file({rename(n): t for n, t in tensors.items()}, path, {"format": "pt"})


def saved(name, row, seed):
    """(config, model in float32 with random values, its numbers)."""
    c = families.config(transformers, row)
    model = built(row, c).float().eval()
    return c, model, filled(model, row, name, seed)


def reference(name, row, seed, ids):
    with ct.exact():
        c = families.config(transformers, row)
        model = built(row, c, experts_implementation="eager").double().eval()
        filled(model, row, name, seed)
        return ct.transformers_logits(model, ids)


def read(path):
    """Tensors of a file as float32, in the shapes that numpy has."""
    out = {}
    for t in gguf.GGUFReader(path).tensors:
        x = gguf.quants.dequantize(t.data, t.tensor_type) if t.tensor_type != gguf.GGMLQuantizationType.F32 else t.data
        out[t.name] = np.asarray(x, np.float32).reshape([int(n) for n in t.shape[::-1]])
    return out


def keys_of(path):
    r = gguf.GGUFReader(path)
    return {k: f.contents() for k, f in r.fields.items() if not k.startswith("GGUF.")}


def same(have, want, near):
    """What is wrong with the tensors of a file, or None."""
    for n in sorted(set(have) ^ set(want)):
        return "%s is %s" % (n, "missing" if n in want else "too many")
    for n, w in want.items():
        h = have[n]
        if h.shape != w.shape:
            return "%s has shape %s, expected %s" % (n, h.shape, w.shape)
        if not np.allclose(h, w, rtol=near, atol=0):
            bad = np.argwhere(h != w)[0]
            return "%s%s is %r, expected %r" % (n, list(bad), h[tuple(bad)], w[tuple(bad)])
    return None


def convert(hone, folder, out, *more):
    p = subprocess.run([hone, "convert", folder, "-o", out, *more], capture_output=True, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise RuntimeError("convert: %s" % p.stderr.decode(errors="replace").strip())


def rounded(state):
    return {n: torch.from_numpy(x).to(torch.bfloat16).float().numpy() for n, x in state.items()}


def tensors_of(row, c, state):
    return families.exported(row, c, state)[1]


def cleaned(folder, c):
    """Members of COMMON that the class does not have are none of its config."""
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    own = type(c)().to_dict()
    with open(path, "w") as f:
        json.dump({k: v for k, v in config.items() if k in own or k == "architectures" or
                   k not in families.COMMON and k != "rope_n"}, f, indent=1)


def check(name, row, args, folder):
    """"ok …", or what is wrong."""
    c, model, state = saved(name, row, args.seed)
    f32, bf16 = (os.path.join(folder, name + s) for s in ("-f32", "-bf16"))
    model.save_pretrained(f32)
    model.to(torch.bfloat16).save_pretrained(bf16, max_shard_size="60KB")
    if "around" not in row:
        cleaned(f32, c)
        cleaned(bf16, c)
    if "rename" in row:
        renamed(f32, row["rename"])
    assert os.path.exists(os.path.join(bf16, "model.safetensors.index.json")), "not sharded"
    convert(args.hone, f32, f32 + ".gguf", "--type", "F32")
    convert(args.hone, bf16, bf16 + ".gguf")
    if not row["cls"].startswith(("Gemma4", "Laguna")):  # transformers 4 had none
        shutil.rmtree(f32 + "-4", ignore_errors=True)
        older(f32, f32 + "-4")
        convert(args.hone, f32 + "-4", f32 + "-4.gguf", "--type", "F32")
        now, then = keys_of(f32 + ".gguf"), keys_of(f32 + "-4.gguf")
        for k in sorted(set(now) | set(then)):
            if now.get(k) != then.get(k) and k != "general.name":
                return "%s is %r, of a config of transformers 4 %r" % (k, now.get(k), then.get(k))
    if "around" not in row:
        wrong = silent(name, row, args, f32, c)
        if wrong:
            return wrong
    loose = row.get("loose")
    for path, numbers in ((f32, state), (bf16, rounded(state))):
        if row.get("bare"):
            break
        have, want = read(path + ".gguf"), tensors_of(row, c, numbers)
        if loose:
            have = {n: x for n, x in have.items() if n in want}
        wrong = same(have, want, row.get("near", 0))
        if wrong:
            return "%s: %s" % (os.path.basename(path), wrong)
    if args.keys and not row.get("bare"):
        have, want = keys_of(f32 + ".gguf"), families.keys(row, c)
        for k in sorted(set(have) | set(want)):
            h, w = have.get(k), want.get(k)
            if h != w and not (isinstance(h, float) and isinstance(w, float) and abs(h - w) <= 1e-6 * abs(w)) \
                    and not k.startswith(("general.", "tokenizer.")):
                print("    %s: %r, exporter %r" % (k, h, w))
    rng = np.random.default_rng([args.seed, zlib.crc32(name.encode())])
    ids = [int(i) for i in rng.integers(0, families.COMMON["vocab_size"], args.n_tok)]
    ref = reference(name, row, args.seed, ids)
    extra = ["-t", "1", *(["-c", str(row["n_ctx"])] if "n_ctx" in row else [])]
    y = ct.hone_logits(args.hone, f32 + ".gguf", ids, ref.shape[1], extra)
    far = np.abs(y - ref).max() / (ref.max() - ref.min())
    return "ok %.1e" % far if far <= row.get("tol", args.tol) else "logits differ by %.1e of their range" % far


# Members that configs may leave out: then the class's own value counts, or hone refuses.
SILENT = ("rms_norm_eps layer_norm_eps norm_epsilon norm_eps layer_norm_epsilon partial_rotary_factor norm_topk_prob "
          "n_group topk_group routed_scaling_factor query_pre_attn_scalar mamba_norm_before_gate").split()


def silent(name, row, args, f32, c):
    """A config without a member must be one with the class's own value. None, or what is wrong."""
    own, folder = type(c)().to_dict(), f32 + "-silent"
    for member in SILENT:
        where = (lambda o: o.get("rope_parameters") or {}) if member == "partial_rotary_factor" else (lambda o: o)
        if not where(own) or member not in where(own):
            continue
        made = []
        for said in (True, False):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(f32, folder)
            path = os.path.join(folder, "config.json")
            with open(path) as f:
                config = json.load(f)
            for o in (config, where(config)):
                o.pop(member, None)
            if said:
                where(config)[member] = where(own)[member]
            with open(path, "w") as f:
                json.dump(config, f)
            try:
                convert(args.hone, folder, folder + ".gguf", "--type", "F32")
                made.append(keys_of(folder + ".gguf"))
            except RuntimeError as e:
                if said or member not in str(e):
                    made.append(str(e))
        if isinstance(made[0], dict) and len(made) == 2 and made[0] != made[1]:
            odd = made[1] if isinstance(made[1], str) else {k: v for k, v in made[1].items() if made[0].get(k) != v}
            return "without %s: %s, expected as with %r" % (member, odd, where(own)[member])
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("hone")
    ap.add_argument("--case", action="append", choices=list(rows()))
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--n-tok", type=int, default=300)
    ap.add_argument("--tol", type=float, default=1e-5)
    ap.add_argument("--keep", metavar="FOLDER")
    ap.add_argument("--keys", action="store_true")
    args = ap.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hone-convert-") as tmp:
        folder = args.keep or tmp
        os.makedirs(folder, exist_ok=True)
        for name, row in rows().items():
            if args.case and name not in args.case:
                continue
            if not hasattr(transformers, row["cls"] + "Config"):
                print("%-20s skipped: this transformers has no %s" % (name, row["cls"]))
                continue
            try:
                said = check(name, row, args, folder)
            except Exception as e:  # of transformers, too: the others are asked all the same
                said = "%s: %s" % (type(e).__name__, e)
            failed += not said.startswith("ok")
            print("%-20s %s" % (name, said), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
