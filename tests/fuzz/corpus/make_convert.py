# Seeds for fuzz_convert: the smallest RWKV-6 and -7 models in each container, one llama2.c
# checkpoint, a config and a vocabulary:
#     python3 make_convert.py FOLDER
import json, struct, sys
out = sys.argv[1]
E, N, H, F, V, L, R = 8, 4, 2, 12, 3, 2, 2
def model(v):
    t = {"emb.weight": (V, E), "head.weight": (V, E), "ln_out.weight": (E,), "ln_out.bias": (E,)}
    for l in range(L):
        p = f"blocks.{l}."
        for n in (["ln0"] if l == 0 else []) + ["ln1", "ln2", "att.ln_x"]:
            t[p + n + ".weight"] = t[p + n + ".bias"] = (E,)
        for n in ["receptance", "key", "value", "output"]: t[p + f"att.{n}.weight"] = (E, E)
        t[p + "ffn.key.weight"], t[p + "ffn.value.weight"] = (F, E), (E, F)
        if v == 7:
            for c in "rwkvag": t[p + "att.x_" + c] = (E,)
            for c in "wavg":
                if c == "v" and l == 0: continue
                if c != "g": t[p + f"att.{c}0"] = (E,)
                t[p + f"att.{c}1"], t[p + f"att.{c}2"] = (E, R), (R, E)
            t[p + "att.k_k"] = t[p + "att.k_a"] = t[p + "ffn.x_k"] = (E,)
            t[p + "att.r_k"] = (H, N)
        else:
            for c in "xwkvrg": t[p + "att.time_maa_" + c] = (E,)
            t[p + "att.time_maa_w1"], t[p + "att.time_maa_w2"] = (E, 5), (5, 1, E)
            t[p + "att.time_decay"], t[p + "att.time_faaaa"] = (E,), (H, N)
            t[p + "att.time_decay_w1"], t[p + "att.time_decay_w2"] = (E, R), (R, E)
            t[p + "att.gate.weight"] = t[p + "ffn.receptance.weight"] = (E, E)
            t[p + "ffn.time_maa_k"] = t[p + "ffn.time_maa_r"] = (E,)
    return t
def size(s):
    n = 1
    for d in s: n *= d
    return n
def safetensors(name, t, dtype, width):
    head, at = {}, 0
    for k, s in t.items():
        head[k] = {"dtype": dtype, "shape": s, "data_offsets": [at, at + width * size(s)]}
        at += width * size(s)
    h = json.dumps(head, separators=(",", ":")).encode()
    open(f"{out}/{name}", "wb").write(struct.pack("<Q", len(h)) + h + b"\x30" * at)
def rwkv_cpp(name, t):
    b = struct.pack("<6I", 0x67676d66, 101, V, E, L, 0)
    for k, s in t.items():
        if ".att.x_" in k:
            if not k.endswith("x_r"): continue
            k, s = k[:-1] + "rwkvag", (6, 1, E)
        b += struct.pack("<3I", len(s), len(k), 0) + struct.pack(f"<{len(s)}I", *s[::-1]) + k.encode() + b"\x30" * 4 * size(s)
    open(f"{out}/{name}", "wb").write(b)
safetensors("v7.safetensors", model(7), "BF16", 2)
safetensors("v6.safetensors", model(6), "F16", 2)
rwkv_cpp("v7.bin", model(7))
rwkv_cpp("v6.bin", model(6))
open(f"{out}/llama2c", "wb").write(struct.pack("<7i", 4, 4, 1, 2, 1, 3, 2) + bytes(4 * 124))
open(f"{out}/config", "w").write('{"architectures":["RWKV7ForCausalLM"],"a":null,"b":[1,{"c":-2.5e-3}],"d":"\\u00e9\\n","e":true,"f":NaN,"g":0}')
open(f"{out}/world", "w").write("1 b'\\x00' 1\n2 '\\n\\n' 2\n3 \"'\" 1\n4 '\\u4e2d' 3\n5 ' a b ' 5\n")
