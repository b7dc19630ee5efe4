# Seeds for fuzz_torch: pickles of dictionaries as torch writes them, edits of an archive, an archive of Python's zipfile:
#     python3 make_torch.py FOLDER
import io, struct, sys, zipfile
out = sys.argv[1]
def text(s): return b"X" + struct.pack("<I", len(s)) + s
def storage(kind, key, n): return b"(" + text(b"storage") + b"ctorch\n" + kind + b"\n" + text(key) + text(b"cpu") + b"K" + bytes([n]) + b"tQ"
HOOKS = b"\x89ccollections\nOrderedDict\n)R"
def ints(v): return b"(" + b"".join(b"K" + bytes([i]) for i in v) + b"t"
def tensor(kind, key, n, first, shape, strides):
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(kind, key, n) + b"K" + bytes([first]) + ints(shape) + ints(strides) + HOOKS + b"tR"
F = b"FloatStorage"
A = tensor(F, b"0", 16, 1, [2, 3], [3, 1])
B = tensor(F, b"1", 16, 0, [2, 3], [1, 2])
C = tensor(b"BFloat16Storage", b"2", 32, 0, [2, 4, 4], [16, 4, 1])
D = tensor(b"LongStorage", b"2", 8, 0, [8], [1])
seeds = {
    "dict": b"\0\x80\2}q\0(" + text(b"w") + A + text(b"v") + B + b"u.",
    "wide": b"\1\x80\2}(" + text(b"w") + C + b"u.",
    "ordered": b"\0\x80\2ccollections\nOrderedDict\n)R(" + text(b"w") + b"ctorch._utils\n_rebuild_parameter\n(" + A + b"\x88" + HOOKS[1:] + b"tRu}" + text(b"_metadata") + b"ccollections\nOrderedDict\n)Rsb.",
    "four": b"\0\x80\4\x95\4\0\0\0\0\0\0\0}\x94\x8c\1w\x94" + A + b"\x94s.",
    "raw": b"\x08\x80\2}" + text(b"w") + D + b"s.",
    "evil": b"\0\x80\2cos\nsystem\n" + text(b"true") + b"\x85R.",
    "list": b"\0\x80\2}" + text(b"w") + b"](NK\1M\1\2J\1\2\3\4\x8a\2\1\2G\0\0\0\0\0\0\0\0\x88\x89es.",
    "edits": b"\2\x3f\0\0\7abc\x12\x40\1\3",
    "edits_wide": b"\6\x12\x50\1\3",
}
seeds["many"] = b"\x10" + seeds["dict"][1:]
seeds["no_room"] = b"\x20" + seeds["dict"][1:]
buf = io.BytesIO()
with zipfile.ZipFile(buf, "w") as z:
    z.writestr("a/data.pkl", b"\x80\2}" + text(b"w") + A + b"s.")
    z.writestr("a/data/0", bytes(64))
    z.writestr("a/version", b"3\n")
seeds["file"] = b"\3" + buf.getvalue()
for k, v in seeds.items(): open(f"{out}/{k}", "wb").write(v)
