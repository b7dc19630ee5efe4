# Seeds for fuzz_checkpoint: edits of the checkpoint that fuzz_checkpoint.c makes, and files that are none:
#     python3 make_checkpoint.py FOLDER
import os, struct, sys
out = sys.argv[1]
HEADER, STATE, ARRAYS, END, FIT = 0, 1, 2, 3, 2
def seed(name, how, *edits):
    b = bytes([how])
    for place, off, data in edits: b += struct.pack("<BHB", place, off, data if place == END else len(data)) + (b"" if place == END else data)
    open(os.path.join(out, name), "wb").write(b)
def whole(name, data, how=1): open(os.path.join(out, name), "wb").write(bytes([how]) + data)
q = lambda v: struct.pack("<q", v)
seed("good", FIT)
seed("weight", 0, (ARRAYS, 12, b"\x55"))
seed("weight_fits", FIT, (ARRAYS, 12, b"\0\0\xc0\x7f"))
seed("cut", FIT, (END, 0, 9))
seed("settings", FIT, (HEADER, 45, b"7"))
seed("long_settings", FIT, (HEADER, 16, q(-1)))
seed("arrays", FIT, (HEADER, 24, q(1 << 40)))
seed("best", FIT, (HEADER, 32, q(2)))
seed("array_of_none", FIT, (ARRAYS, 0, q(0)))
for i, name in enumerate("step applied skipped bad_row micro epoch at tok target best_step since_best".split()):
    seed("negative_" + name, FIT, (STATE, 8 * i, q(-1)))
    seed("large_" + name, FIT, (STATE, 8 * i, q((1 << 63) - 1)))
seed("done", FIT, (STATE, 8 * 16, q(1)))
seed("epoch", FIT, (STATE, 8 * 5, q(31)))
seed("nan_loss", FIT, (STATE, 8 * 11, b"\xff" * 40))
whole("empty", b"")
whole("magic", b"HONETRN1" + bytes(60), 3)
