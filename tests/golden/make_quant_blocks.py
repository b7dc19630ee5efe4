#!/usr/bin/env python3
"""Makes tests/golden/quant_blocks.txt:  make_quant_blocks.py LIB > quant_blocks.txt

LIB is a shared object of ggml-org/ggml:src/ggml-quants.c (2026-08, commit d99724f, compiled with
-ffp-contract=off). Decoded values and legacy encodings come from the gguf package (0.19.0) where it has
them, else from LIB. Lines:

    D TYPE ORIGIN BLOCK VALUES           hex bytes of one block; f32 bits of its values, 8 hex digits each
    E TYPE ORIGIN plain|weighted N BLOCKS  the encoding of one row of N inputs
    H TYPE ORIGIN plain|weighted N HASH    its 64-bit FNV-1a hash, for a long row

Input k of an E row is x[k] = ((r >> 40) - 2^23) * 2^(-22 - (k / 32) % 4) with r = number k of splitmix64
stream 20261 (hn_rand64). Of an H row, with s = the sum of the four 16-bit quarters of r, less 131070 (close to a
normal distribution): s 2^-16 in the first quarter of the row, s 2^-50 in the second, (s >> 13) 2^-3 (many ties)
in the third, |s| 2^-16 + 1 in the last. Weight k is (r >> 40) % 1024 / 1024 of stream 20262.
"""
import ctypes as C, sys
import numpy as np
import gguf
from gguf import quants as GQ

M = 2**64 - 1


def rand64(key, k):
    z = (key + (k + 1) * 0x9E3779B97F4A7C15) & M
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M
    return z ^ z >> 31


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & M
    return h


# name: (id, elements, bytes, offsets of f16 fields)
TYPES = {
    'F16': (1, 1, 2, [0]), 'BF16': (30, 1, 2, []), 'Q4_0': (2, 32, 18, [0]), 'Q4_1': (3, 32, 20, [0, 2]), 'Q5_0': (6, 32, 22, [0]),
    'Q5_1': (7, 32, 24, [0, 2]), 'Q8_0': (8, 32, 34, [0]), 'Q8_K': (15, 256, 292, []), 'Q2_K': (10, 256, 84, [80, 82]),
    'Q3_K': (11, 256, 110, [108]), 'Q4_K': (12, 256, 144, [0, 2]), 'Q5_K': (13, 256, 176, [0, 2]), 'Q6_K': (14, 256, 210, [208]),
    'IQ2_XXS': (16, 256, 66, [0]), 'IQ2_XS': (17, 256, 74, [0]), 'IQ3_XXS': (18, 256, 98, [0]), 'IQ1_S': (19, 256, 50, [0]),
    'IQ4_NL': (20, 32, 18, [0]), 'IQ3_S': (21, 256, 110, [0]), 'IQ2_S': (22, 256, 82, [0]), 'IQ4_XS': (23, 256, 136, [0]),
    'IQ1_M': (29, 256, 56, []), 'TQ1_0': (34, 256, 54, [52]), 'TQ2_0': (35, 256, 66, [64]), 'MXFP4': (39, 32, 17, []),
    'NVFP4': (40, 64, 36, []), 'Q1_0': (41, 128, 18, [0]), 'Q2_0': (42, 64, 18, [0]),
}
lib = C.CDLL(sys.argv[1])
ptr = lambda a: a.ctypes.data_as(C.c_void_p)
print('# made by make_quant_blocks.py, which says how to read it')
for name, (tid, elems, size, f16_at) in TYPES.items():
    for b in range(2 if elems >= 128 else 4):
        raw = np.array([rand64(1000 * tid + b, k) & 255 for k in range(size)], np.uint8)
        for at in f16_at:
            raw[at + 1] &= 0xBF  # finite
        if name == 'IQ1_M':
            raw[55] &= 0xBF
        if name == 'Q8_K':
            raw[3] &= 0xBF
        if name == 'BF16':
            raw[1] &= 0xBF
        origin = 'gguf'
        try:
            y = GQ.dequantize(raw, gguf.GGMLQuantizationType(tid)).astype(np.float32)
        except (ValueError, NotImplementedError):
            origin = 'ggml'
            y = np.empty(elems, np.float32)
            getattr(lib, 'dequantize_row_' + name.lower().replace('_k', '_K'))(ptr(raw), ptr(y), C.c_int64(elems))
        y = np.where(y == 0, np.float32(0), y)
        print('D', name, origin, raw.tobytes().hex(), ''.join('%08x' % v for v in y.view(np.uint32).ravel()))

NAMES = ['F16', 'BF16', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q8_0', 'Q2_K', 'Q3_K', 'Q4_K', 'Q5_K', 'Q6_K', 'IQ4_NL', 'IQ4_XS', 'TQ1_0', 'TQ2_0',
         'MXFP4', 'NVFP4', 'Q1_0', 'Q2_0']


def input_e(k, n):
    return ((rand64(20261, k) >> 40) - 2**23) * 2.0 ** (-22 - (k // 32) % 4)


def input_h(k, n):
    r = rand64(20261, k)
    s = sum(r >> 16 * i & 65535 for i in range(4)) - 131070
    return [s * 2.0**-16, s * 2.0**-50, (s >> 13) * 2.0**-3, abs(s) * 2.0**-16 + 1][4 * k // n]


for letter, N, f in ('E', 512, input_e), ('H', 65536, input_h):
    x = np.array([f(k, N) for k in range(N)], np.float32).reshape(1, N)
    w = np.array([(rand64(20262, k) >> 40) % 1024 / 1024 for k in range(N)], np.float32)
    for name in NAMES:
        tid, elems, size, _ = TYPES[name]
        for kind in ['plain', 'weighted']:
            origin = 'gguf'
            try:
                if kind == 'weighted' and name not in ('F16', 'BF16', 'Q8_0'):
                    raise NotImplementedError
                out = GQ.quantize(x, gguf.GGMLQuantizationType(tid)).view(np.uint8).ravel()
            except (ValueError, NotImplementedError):
                origin = 'ggml'
                out = np.zeros(N // elems * size, np.uint8)
                fn = getattr(lib, 'quantize_' + name.lower().replace('_k', '_K'))
                fn(ptr(x), ptr(out), C.c_int64(1), C.c_int64(N), ptr(w) if kind == 'weighted' else None)
            print(letter, name, origin, kind, N, out.tobytes().hex() if letter == 'E' else '%016x' % fnv1a(out.tobytes()))
