# Development check: does hone see in GGUF files what the public gguf package sees?
#     python3 tests/dev/check_gguf.py build/release/hone FILE.gguf...
# Compares every metadata entry, every tensor's place and shape, and the decoded numbers
# of up to 20 tensors per file (bit for bit) with gguf-py's reader and decoder.
import json, subprocess, sys
import numpy as np, gguf

KIND = {"UINT8": "u8", "INT8": "i8", "UINT16": "u16", "INT16": "i16", "UINT32": "u32", "INT32": "i32", "FLOAT32": "f32", "BOOL": "bool",
        "STRING": "string", "ARRAY": "array", "UINT64": "u64", "INT64": "i64", "FLOAT64": "f64"}
hone, bad, n_kv, n_t, n_num = sys.argv[1], 0, 0, 0, 0

def fail(*what):
    global bad
    bad += 1
    print("DIFFERS:", *what)

def scalar(v, part):
    if v == "string": return bytes(part).decode("utf-8", "replace")
    return part[0].item() if hasattr(part[0], "item") else part[0]

def same(a, b):
    if isinstance(b, float): return a == b or (b != b and a == "nan") or abs(a - b) <= 1e-11 * abs(b)
    if isinstance(b, int) and not isinstance(b, bool) and b > 2**63 - 1: return a == str(b)
    return a == b

for path in sys.argv[2:]:
    j = json.loads(subprocess.run([hone, "inspect", path, "--json"], check=True, capture_output=True).stdout)
    r = gguf.GGUFReader(path)
    assert j["schema"] == "hone.inspect/1"
    fields = {k: f for k, f in r.fields.items() if not k.startswith("GGUF.")}
    if list(fields) != list(j["metadata"]): fail(path, "keys", set(fields) ^ set(j["metadata"]))
    for k, f in fields.items():
        m, n_kv = j["metadata"][k], n_kv + 1
        kind = KIND[f.types[0].name]
        if m["type"] != kind: fail(path, k, m["type"], kind)
        elif kind != "array":
            if not same(m["value"], scalar(kind, f.parts[f.data[0]])): fail(path, k, m["value"])
        elif len(f.types) == 2 or not f.data:
            et = KIND[f.types[-1].name] if len(f.types) > 1 else m["elem_type"]
            if m["elem_type"] != et or m["count"] != len(f.data): fail(path, k, m["count"], len(f.data))
            for a, i in zip(m["head"], f.data):
                if not same(a, scalar(et, f.parts[i])): fail(path, k, a)
    if len(j["tensors"]) != len(r.tensors): fail(path, "tensors", len(j["tensors"]), len(r.tensors))
    start = min((t.data_offset for t in r.tensors), default=0)
    for i, (a, t) in enumerate(zip(j["tensors"], r.tensors)):
        n_t += 1
        if (a["name"], a["type"], a["shape"], a["bytes"], a["n_elements"]) != (t.name, t.tensor_type.name, [int(x) for x in t.shape], t.n_bytes, t.n_elements) \
                or a["offset"] != t.data_offset - start: fail(path, t.name, a)
        if i % max(1, len(r.tensors) // 20): continue
        ours = np.frombuffer(subprocess.run([hone, "inspect", path, "--tensor", t.name, "--f32"], check=True, capture_output=True).stdout, dtype="<f4")
        try: want = gguf.dequantize(t.data, t.tensor_type) if t.tensor_type.name[0] != "I" or t.tensor_type.name[:2] == "IQ" else t.data
        except NotImplementedError: continue
        want = np.asarray(want, dtype=np.float32).reshape(-1)
        n_num += want.size
        if ours.tobytes() != want.tobytes() and not np.array_equal(ours, want, equal_nan=True): fail(path, t.name, "numbers")
print(f"{len(sys.argv) - 2} files, {n_kv} entries, {n_t} tensors, {n_num} numbers compared, {bad} differ")
sys.exit(bad != 0)
