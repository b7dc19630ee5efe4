#!/usr/bin/env python3
"""Adapters of every family against merged weights in float64.

    python3 tests/dev/check_lora_families.py build/release/hone [--cases N] [--seed S] [--only ARCH,...] [-v]

Draws random small files of each family (families_draw.py). For each kind of matrix an adapter of one alone: hone runs it,
and then its logits are those of families_reference.py with W + s·B·A in place of W, to 1e-5 of their range, or refuses it
by name. Then all that it runs at once, as it is and merged into the file. And a PEFT folder of the family's modules as
Hugging Face names and orders them, run, and turned into a GGUF adapter and back. What is refused is printed: a matrix that takes
part in the product must not be left out in silence. Needs numpy.
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:  # a development check: not every machine has it
    print("check_lora_families: skipped, needs numpy")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import families_draw
from check_families import Check, apart, ask, write_gguf
from families_reference import Model

BAR, LEAST = 1e-5, 1e-3  # of the range: how near, and how far the adapter must move anything
RANK, ALPHA = 3, 6.0


def pair_of(rng, w):
    """A and B of a matrix [n_out, n_in]."""
    n_out, n_in = w.shape
    a = rng.uniform(-1, 1, (RANK, n_in)) / np.sqrt(n_in)
    return a.astype(np.float32), (0.7 * rng.uniform(-1, 1, (n_out, RANK))).astype(np.float32)


def write_adapter(path, arch, pairs):
    keys = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": arch, "adapter.lora.alpha": ALPHA}
    tensors = {}
    for n, (a, b) in pairs.items():
        tensors[n + ".lora_a"], tensors[n + ".lora_b"] = a, b
    write_gguf(path, keys, tensors)


def merged(tensors, pairs):
    out = dict(tensors)
    for n, (a, b) in pairs.items():
        w = np.asarray(out[n], np.float64)
        factor = float(np.reshape(tensors.get(n.replace(".weight", ".scale"), 1.0), -1)[0])  # beside the adapter, as in merged files
        out[n] = w + (ALPHA / RANK * (b.astype(np.float64) @ a.astype(np.float64))) / factor
    return out


# ---- PEFT folders: Hugging Face's modules, written down here a second time -------------------------------------------

PERMUTED = {"llama", "mistral3", "smollm3", "granite", "granitemoe", "granitehybrid", "granite_swa", "arcee", "deepseek", "deci", "muse-glimmer", "olmo", "nanbeige"}
REFUSED = {"falcon-h1", "talkie", "plamo3"}
QKV = ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v")
ATTN = QKV + (("self_attn.o_proj", "attn_output"),)


def glu_of(under, tail=""):
    return ((under + ".gate_proj", "ffn_gate" + tail), (under + ".up_proj", "ffn_up" + tail), (under + ".down_proj", "ffn_down" + tail))


UP_DOWN = (("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"))
GATE_UP = (("mlp.gate_up_proj", "ffn_gate ffn_up"), ("mlp.down_proj", "ffn_down"))
SHARED = {a: glu_of("mlp.shared_expert", "_shexp") + (("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),) for a in ("qwen2moe", "qwen3next", "qwen35moe", "qwen4exp")}
SHARED.update({a: glu_of("mlp.shared_experts", "_shexp") for a in ("dots1", "glm4moe", "ernie4_5-moe", "deepseek2", "mistral4", "deepseek",
                                                                   "bailingmoe2", "exaone-moe", "afmoe", "laguna", "step35", "deepseek32", "glm-dsa")})
DELTA = tuple(("linear_attn." + h, g) for h, g in (("in_proj_qkv", "attn_qkv"), ("in_proj_z", "attn_gate"), ("in_proj_b", "ssm_beta"),
                                                   ("in_proj_a", "ssm_alpha"), ("out_proj", "ssm_out")))
SHARED["qwen35"], SHARED["qwen35moe"] = DELTA, SHARED["qwen35moe"] + DELTA
SHARED["qwen4exp"] += DELTA + tuple(("%s_hyper_connection.%s" % (h, m), "hc_%s_%s" % (g, t)) for h, g in (("attn", "attn"), ("mlp", "ffn")) for m, t in (
    ("input_mix_weight_down", "down"), ("input_mix_weight_up", "up"), ("block_inject_weight", "inject"))) + (
    ("self_attn.indexer.index_qk_proj", "indexer.q_proj indexer.k_proj"), ("ple.key_proj", "ple_key"), ("ple.value_proj", "ple_value"))
SHARED["muse-glimmer"] = SHARED["hrm_text"] = (("self_attn.gate_proj", "attn_gate"),)
SHARED["laguna"] += (("self_attn.g_proj", "attn_gate"),)
SHARED["step35"] += (("self_attn.g_proj", "attn_gate"),)
SHARED["granite_swa"] = (("shared_mlp.input_linear", "ffn_gate_shexp ffn_up_shexp"), ("shared_mlp.output_linear", "ffn_down_shexp"))
SHARED["hunyuan-moe"] = glu_of("mlp.shared_mlp", "_shexp")
SHARED["llama4"] = glu_of("feed_forward.shared_expert", "_shexp")
MIXER = tuple(("mixer." + h, g) for h, g in (("q_proj", "attn_q"), ("k_proj", "attn_k"), ("v_proj", "attn_v"),
                                             ("o_proj", "attn_output"), ("in_proj", "ssm_in"), ("out_proj", "ssm_out"),
                                             ("up_proj", "ffn_up"), ("down_proj", "ffn_down"),
                                             ("shared_experts.up_proj", "ffn_up_shexp"),
                                             ("shared_experts.down_proj", "ffn_down_shexp")))
MODULES = {
    "phi3": (("self_attn.qkv_proj", "attn_q attn_k attn_v"), ATTN[3]) + GATE_UP, "glm4": ATTN + GATE_UP,
    "starcoder2": ATTN + (("mlp.c_fc", "ffn_up"), ("mlp.c_proj", "ffn_down")),
    "gptneox": (("attention.query_key_value", "attn_q attn_k attn_v"), ("attention.dense", "attn_output"),
                ("mlp.dense_h_to_4h", "ffn_up"), ("mlp.dense_4h_to_h", "ffn_down")),
    "gpt2": (("attn.c_attn", "attn_q attn_k attn_v"), ("attn.c_proj", "attn_output"), ("mlp.c_fc", "ffn_up"),
             ("mlp.c_proj", "ffn_down")),
    "phi2": QKV + (("self_attn.dense", "attn_output"), ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down")),
    "exaone": tuple(("attn.attention." + h, g) for h, g in (("q_proj", "attn_q"), ("k_proj", "attn_k"), ("v_proj", "attn_v"),
                                                            ("out_proj", "attn_output"))) +
    (("mlp.c_fc_0", "ffn_gate"), ("mlp.c_fc_1", "ffn_up"), ("mlp.c_proj", "ffn_down")),
    "spark2_5": (("self_attn.q_k_v_proj", "attn_q attn_k attn_v"), ATTN[3], ("self_attn.g_proj", "attn_gate")) + glu_of("mlp"),
    "openelm": (("attn.qkv_proj", "attn_q attn_k attn_v"), ("attn.out_proj", "attn_output"), ("ffn.proj_1", "ffn_gate ffn_up"),
                ("ffn.proj_2", "ffn_down")),
    "dbrx": (("norm_attn_norm.attn.Wqkv", "attn_q attn_k attn_v"), ("norm_attn_norm.attn.out_proj", "attn_output")),
    "chatglm": ATTN + GATE_UP, "nemotron": ATTN + UP_DOWN,
    "bailingmoe2": (("attention.query_key_value", "attn_q attn_k attn_v"), ("attention.dense", "attn_output")) + glu_of("mlp"),
    "arcee": ATTN + UP_DOWN, "llama4": ATTN + glu_of("feed_forward"),
    "granitemoe": ATTN + (("shared_mlp.input_linear", "ffn_gate_shexp ffn_up_shexp"), ("shared_mlp.output_linear", "ffn_down_shexp")),
    "granitehybrid": ATTN + (("shared_mlp.input_linear", "ffn_gate_shexp ffn_up_shexp"), ("shared_mlp.output_linear", "ffn_down_shexp"),
                             ("shared_mlp.input_linear", "ffn_gate ffn_up"), ("shared_mlp.output_linear", "ffn_down"),
                             ("mamba.in_proj", "ssm_in"), ("mamba.out_proj", "ssm_out")),
    "lfm2": QKV + (("self_attn.out_proj", "attn_output"), ("conv.in_proj", "shortconv.in_proj"), ("conv.out_proj", "shortconv.out_proj"),
                   ("feed_forward.w1", "ffn_gate"), ("feed_forward.w3", "ffn_up"), ("feed_forward.w2", "ffn_down")),
    "mamba2": MIXER, "nemotron_h": MIXER, "nemotron_h_moe": MIXER,
    "deepseek2": (("self_attn.q_proj", "attn_q"), ("self_attn.q_a_proj", "attn_q_a"), ("self_attn.q_b_proj", "attn_q_b"),
                  ("self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"), ATTN[3]) + glu_of("mlp"),
}
MODULES["starcoder"] = MODULES["gpt2"]
MODULES["deepseek32"] = MODULES["glm-dsa"] = MODULES["deepseek2"][1:] + (("self_attn.indexer.wq_b", "indexer.attn_q_b"), (
    "self_attn.indexer.wk", "indexer.attn_k"), ("self_attn.indexer.weights_proj", "indexer.proj"))
MODULES["lfm2moe"], MODULES["mistral4"] = MODULES["lfm2"], MODULES["deepseek2"]
LAYERS = {"gptneox": "gpt_neox.layers.", "gpt2": "transformer.h.", "starcoder": "transformer.h.", "exaone": "transformer.h.", "mamba2": "backbone.layers.", "nemotron_h": "backbone.layers.",
          "openelm": "transformer.layers.", "dbrx": "transformer.blocks.",
          "muse-glimmer": "model.language_model.layers.", "step35": "model.language_model.layers.",
          "gemma3": "model.language_model.layers.", "qwen3": "layers."}
OTHERS = {a: "model.layers." for a in ("gemma3", "qwen3", "nemotron_h")}  # as hone writes them


def layer_name(arch, keys, il):
    if arch == "hrm_text":  # the high stack's blocks stand behind the low one's
        return "model.%s_module.layers.%d" % ("LH"[il // keys[arch + ".hrm.layers_per_stack"]], il % keys[arch + ".hrm.layers_per_stack"])
    return "%s%d" % (LAYERS.get(arch, "model.layers."), il)


def modules_of(arch, keys, tensors, n_layer):
    """module -> names of tensors in the split layout, whose rows it has."""
    out = {}
    for il in range(n_layer):
        for module, parts in MODULES.get(arch, ATTN + glu_of("mlp")) + SHARED.get(arch, ()):
            if arch == "deci" and parts == "attn_output" and "blk.%d.attn_q.weight" % il not in tensors:
                module = "self_attn.linear_attn"
            names = ["blk.%d.%s.weight" % (il, p) for p in parts.split()]
            if all(n in tensors and tensors[n].ndim == 2 for n in names):
                out["%s.%s" % (layer_name(arch, keys, il), module)] = names
    return out


def permuted(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)


def tiled(w, keys, arch):
    """Heads of values by their key as the first of each key, then the second; of rows behind those that are none."""
    n_key, n_value = keys[arch + ".ssm.group_count"], keys[arch + ".ssm.time_step_rank"]
    d = keys[arch + ".ssm.state_size"] if w.shape[0] > n_value else 1
    rest = w[w.shape[0] - n_value * d:].reshape(n_key, n_value // n_key, d, -1).swapaxes(0, 1).reshape(n_value * d, -1)
    return np.concatenate([w[:w.shape[0] - n_value * d], rest])


def deltas_of(arch, keys, tensors, names, delta):
    """{split tensor: delta} of a module's."""
    if arch == "gptneox" and len(names) == 3:  # q, k, v of each head in turn
        by_head = delta.reshape(keys[arch + ".attention.head_count"], 3, -1, delta.shape[-1])
        return {n: by_head[:, j].reshape(-1, delta.shape[-1]) for j, n in enumerate(names)}
    at, out = 0, {}
    for n in names:
        rows = tensors[n].shape[0]
        out[n] = delta[at:at + rows]
        at += rows
        if arch in ("qwen35", "qwen35moe", "qwen4exp") and any(".%s." % g in n for _, g in DELTA):
            out[n] = tiled(out[n].T, keys, arch).T if "ssm_out" in n else tiled(out[n], keys, arch)
        if arch in PERMUTED and ("attn_q." in n or "attn_k." in n):
            il = int(n.split(".")[1])
            kv = keys.get(arch + ".attention.head_count_kv", keys[arch + ".attention.head_count"])
            kv = kv[il] if isinstance(kv, (list, tuple)) else kv
            heads = keys[arch + ".attention.head_count"]
            heads = heads[il] if isinstance(heads, (list, tuple)) else heads
            out[n] = permuted(out[n], heads if "attn_q." in n else kv)
    return out


def write_folder(folder, pairs, transposed):
    """pairs: module -> (A, B)."""
    os.makedirs(folder, exist_ok=True)
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA, "bias": "none",
              "fan_in_fan_out": transposed, "target_modules": sorted({m.split(".")[-1] for m in pairs})}
    with open(os.path.join(folder, "adapter_config.json"), "w") as f:
        json.dump(config, f)
    head, data = {}, b""
    for m, pair in pairs.items():
        for x, letter in zip(pair, "AB"):
            b = np.ascontiguousarray(x, np.float32).tobytes()
            head["base_model.model.%s.lora_%s.weight" % (m, letter)] = {
                "dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(b)]}
            data += b
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def names_in(folder):
    with open(os.path.join(folder, "adapter_model.safetensors"), "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    return {n[len("base_model.model."):-len(".lora_A.weight")] for n in head if n.endswith("lora_A.weight")}


def peft_case(run, arch, d, layout, tokens, plain, n_ctx, rng, count):
    """A folder made here, in hone and back: the same answers, and the modules that were there."""
    folder, back, gguf = (os.path.join(run.folder, n) for n in ("peft", "back", "peft.gguf"))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(back, ignore_errors=True)
    modules, tensors = modules_of(arch, d.keys, d.tensors, d.keys[arch + ".block_count"]), dict(d.tensors)
    pairs = {}
    for m, names in modules.items():
        if rng.random() < 0.2:
            continue
        n_out, n_in = sum(tensors[n].shape[0] for n in names), tensors[names[0]].shape[1]
        pairs[m] = pair_of(rng, np.zeros((n_out, n_in)))
        delta = ALPHA / RANK * (pairs[m][1].astype(np.float64) @ pairs[m][0].astype(np.float64))
        for n, x in deltas_of(arch, d.keys, tensors, names, delta).items():
            factor = float(np.reshape(tensors.get(n.replace(".weight", ".scale"), 1.0), -1)[0])
            tensors[n] = np.asarray(tensors[n], np.float64) + x / factor
    if not pairs:
        return True
    write_folder(folder, pairs, arch == "gpt2")
    want = Model(d.keys, tensors).run(tokens, n_ctx)
    y, why = run.logits(tokens, n_ctx, "--lora", folder)
    if arch in REFUSED:
        return y is None and arch in why
    bar = max(BAR, 20 * Check.sensitivity(d.keys, tensors, tokens, n_ctx, want))
    far = apart(y, want) if y is not None else np.inf
    good = far <= bar
    for cmd in ([folder, "-o", gguf], [gguf, "-o", back]):
        p = subprocess.run([run.hone, "convert", cmd[0], "--base", run.base, *cmd[1:]], capture_output=True, check=False)
        if p.returncode:
            why, good = p.stderr.decode().strip().split("\n")[-1], False
    again = np.inf
    if good:
        z, why = run.logits(tokens, n_ctx, "--lora", back)
        again = apart(z, want) if z is not None else np.inf
        said = {m.replace(LAYERS.get(arch, ""), OTHERS.get(arch, LAYERS.get(arch, ""))) if arch in OTHERS else m for m in pairs}
        got = names_in(back)
        # a fused tensor that was adapted in part is all of its modules' on the way back
        good = again <= bar and said <= got and all(layout != "usual" or arch == "chatglm" or m in said for m in got)
        if not good and not why:
            why = "modules " + " ".join(sorted(said ^ got)[:5])
    count["modules"] |= {re.sub(r"\.\d+\.", ".N.", m) for m in pairs}
    if not good:
        print("NOT OK %s PEFT (%s): %.1e, back %.1e, bar %.1e: %s" % (arch, layout, far, again, bar, why))
    return good


class Run:
    def __init__(self, hone, folder):
        self.hone, self.folder = hone, folder
        self.base, self.adapter = os.path.join(folder, "base.gguf"), os.path.join(folder, "lora.gguf")

    def logits(self, tokens, n_ctx, *extra):
        cmd = [self.hone, "logits", "-m", self.base, "--ids", ",".join(map(str, tokens)), "--all", "--kv", "f32", "-t", "1",
               "-c", str(n_ctx), *extra]
        p = subprocess.run(cmd, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if p.returncode:
            lines = p.stderr.decode(errors="replace").strip().split("\n")
            return None, next((x for x in lines if "note:" not in x), lines[0])
        return np.frombuffer(p.stdout, "<f4").astype(np.float64).reshape(len(tokens), -1), ""


def case(run, arch, seed, i, count, verbose):
    d = families_draw.draw(arch, [seed, zlib.crc32(arch.encode()), i])
    tokens, plain = Check.text(None, d, i)
    if tokens is None or arch + ".nextn_predict_layers" in d.keys:  # adapters of blocks that draft are refused
        return True
    n_ctx = max(d.n_ctx, len(tokens))
    layouts = ["usual"] + [x for x in families_draw.layouts(d) if x in ("qkv", "gate_up_exps")]
    keys, tensors = families_draw.written(d, layouts[i % len(layouts)])
    write_gguf(run.base, keys, tensors)
    y, why = run.logits(tokens, n_ctx)
    if y is None or apart(y, plain) > BAR:  # the family's own checks tell of it
        count["not run"] = why or "other logits"
        return True
    rng, good, runs = np.random.default_rng([seed, i]), True, {}
    kinds = {}
    for n, w in tensors.items():
        if n.endswith(".weight") and w.ndim > 1:
            kinds.setdefault(re.sub(r"blk\.\d+\.", "blk.N.", n), []).append(n)
    for kind, names in kinds.items():
        name = names[rng.integers(len(names))]
        w = tensors[name]
        pairs = {name: pair_of(rng, w.reshape(-1, w.shape[-1]))}
        write_adapter(run.adapter, arch, pairs)
        y, why = run.logits(tokens, n_ctx, "--lora", run.adapter)
        if y is None:
            why = re.sub(r"blk\.\d+\.", "blk.N.", why.replace(run.adapter, "ADAPTER").replace(run.base, "BASE"))
            count["refused"][kind] = why
            good &= kind.replace("blk.N.", "") in why
            continue
        runs[kind] = names
        try:
            want = Model(keys, merged(tensors, pairs)).run(tokens, n_ctx)
        except ValueError:
            want = np.full(y.shape, np.nan)
        far, moves = apart(y, want), apart(want, plain)
        if not (far <= max(BAR, 0.01 * moves * 1e-2)) or apart(y, plain) == 0 and moves > LEAST:
            good = False
            print("NOT OK %s case %d %s: %.1e of the range apart, it moves %.1e" % (arch, i, name, far, moves))
        count["alone"].add(kind)
    good &= peft_case(run, arch, d, layouts[i % len(layouts)], tokens, plain, n_ctx, rng, count)
    pairs = {n: pair_of(rng, tensors[n]) for names in runs.values() for n in names}
    if not pairs:
        return good
    write_adapter(run.adapter, arch, pairs)
    want = Model(keys, merged(tensors, pairs)).run(tokens, n_ctx)
    y, why = run.logits(tokens, n_ctx, "--lora", run.adapter)
    out = os.path.join(run.folder, "merged.gguf")
    p = subprocess.run([run.hone, "merge", "-m", run.base, "--lora", run.adapter, "-o", out], capture_output=True, check=False)
    if p.returncode:
        print("NOT OK %s case %d: merge: %s" % (arch, i, p.stderr.decode()[:200]))
        return False
    keep, run.base = run.base, out
    z, why2 = run.logits(tokens, n_ctx)
    run.base = keep
    far = [apart(x, want) if x is not None else np.inf for x in (y, z)]
    rough = Check.sensitivity(keys, merged(tensors, pairs), tokens, n_ctx, want)
    count["far"] = max(count["far"], min(far[0], BAR), min(far[1], BAR))
    if max(far) > max(3 * BAR, 20 * rough):
        good = False
        print("NOT OK %s case %d all: %s" % (arch, i, ["%.1e" % f for f in far]), why, why2)
    count["run"] += 1
    return good


def main():
    ap = argparse.ArgumentParser(description="Adapters of every family against merged weights.")
    ap.add_argument("hone", nargs="?", default="build/release/hone")
    ap.add_argument("--cases", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", default="")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    folder, bad = tempfile.mkdtemp(prefix="lora-families-"), 0
    run = Run(a.hone, folder)
    for arch in [x for x in a.only.split(",") if x] or list(families_draw.FAMILIES):
        count = {"run": 0, "far": 0.0, "refused": {}, "alone": set(), "modules": set(), "not run": ""}
        for i in range(a.cases):
            bad += not case(run, arch, a.seed, i, count, a.v)
        print("%-14s %d files, %d kinds of matrices, within %.1e%s" % (arch, count["run"], len(count["alone"]), count["far"],
                                                                     "; not run: " + count["not run"][:90] if count["not run"] else ""))
        if a.v:
            print("    modules: " + " ".join(sorted(count["modules"])))
        for kind, why in count["refused"].items():
            if a.v:
                print("    %s: %s" % (kind, why))
    shutil.rmtree(folder)
    print("check_lora_families: %s" % ("%d NOT OK" % bad if bad else "all agree"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
