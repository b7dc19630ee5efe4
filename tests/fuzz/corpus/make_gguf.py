# Seeds for the GGUF fuzzers and tests, written by the public gguf package (0.19):
#     python3 make_gguf.py FOLDER
# py_split-* and py_vocab are also what tests/unit/test_gguf_read.c expects; py_kinds is
# what tests/unit/test_gguf_write.c must write byte for byte.
import sys, struct, numpy as np, gguf
out = sys.argv[1]
def w(name, arch="llama", **kw): return gguf.GGUFWriter(f"{out}/{name}", arch, **kw)
def done(x):
    x.write_header_to_file(); x.write_kv_data_to_file(); x.write_tensors_to_file(); x.close()
G = gguf.GGUFValueType
x = w("py_kinds.gguf")
x.add_uint8("k.u8", 200); x.add_int8("k.i8", -100); x.add_uint16("k.u16", 60000); x.add_int16("k.i16", -30000)
x.add_uint32("k.u32", 4000000000); x.add_int32("k.i32", -2000000000); x.add_float32("k.f32", 0.1); x.add_bool("k.bool", True)
x.add_string("k.str", "grüße \u2581x"); x.add_uint64("k.u64", 2**63+5); x.add_int64("k.i64", -2**62); x.add_float64("k.f64", -1e300)
x.add_array("k.a_i32", [1,-1,7]); x.add_array("k.a_f32", [0.5,-2.0]); x.add_array("k.a_str", ["a","","bcd","\u2581"]); x.add_array("k.a_bool", [True,False,True])
x.add_key_value("k.a_u8", bytes([1,2,255]), G.ARRAY)
x.add_array("k.nested", [[1,2],[3]])
x.add_tensor("t.f32", np.arange(6, dtype=np.float32).reshape(3,2))
x.add_tensor("t.f16", np.arange(8, dtype=np.float16).reshape(2,2,2))
x.add_tensor("t.i8", np.array([-1,2,3], dtype=np.int8))
done(x)
x = w("py_align64.gguf"); x.add_custom_alignment(64)
rng = np.random.default_rng(1)
for i, (t, be, bb) in enumerate([("Q4_0",32,18),("Q8_0",32,34),("Q4_K",256,144),("Q6_K",256,210),("IQ2_XXS",256,66),("MXFP4",32,17)]):
    q = gguf.GGMLQuantizationType[t]
    x.add_tensor(f"blk.{i}.w.weight", rng.integers(0,60,(2,bb),dtype=np.uint8), raw_dtype=q)
done(x)
x = w("py_vocab.gguf"); x.add_tokenizer_model("llama"); x.add_token_list([f"tok{i}".encode() for i in range(100)])
x.add_token_scores([-float(i) for i in range(100)]); x.add_token_types([1]*100); done(x)
x = gguf.GGUFWriter(f"{out}/py_split.gguf", "llama", split_max_tensors=2)
for i in range(5): x.add_tensor(f"t{i}", np.full((4,), i, dtype=np.float32))
x.write_header_to_file(); x.write_kv_data_to_file(); x.write_tensors_to_file(); x.close()

x = w("py_types.gguf", "qwen2")
for q, (be, bb) in gguf.GGML_QUANT_SIZES.items():
    if q.name in ("F32", "F16", "I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K"): continue
    x.add_tensor(f"t.{q.name}", rng.integers(0, 60, (1, bb), dtype=np.uint8), raw_dtype=q)
done(x)
