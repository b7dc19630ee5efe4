#!/usr/bin/env python3
"""Development check of src/quant against independent implementations (not part of `make test`).

    check_quants.py [--cc gcc] [--blocks 20000] [--vectors DIR] [--ref LIB] [--seed S]

Compiles src/quant into a scratch shared object and compares
  decoders   with the gguf package, bit for bit (-0 = +0), on random blocks, aligned and not;
             with --vectors also with every DIR/*.bin (layout: the README there);
  encoders   of Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 TQ1_0 TQ2_0 MXFP4 F16 BF16 with the gguf package, byte for byte;
  scalars    f16 for all 65536 halves and millions of floats, bf16 likewise, with numpy;
with --ref (a shared object of ggml-org/ggml:src/ggml-quants.c, compiled with -ffp-contract=off)
             all decoders and all encoders, plain and with importance, byte for byte.
Needs numpy and gguf. Exit status 1 on any difference.
"""
import argparse, ctypes as C, glob, os, struct, subprocess, sys, tempfile
import numpy as np
import gguf
from gguf import quants as GQ

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ap = argparse.ArgumentParser()
ap.add_argument('--cc', default='gcc')
ap.add_argument('--blocks', type=int, default=20000)
ap.add_argument('--vectors')
ap.add_argument('--ref')
ap.add_argument('--seed', type=int, default=1)
A = ap.parse_args()
rng = np.random.default_rng(A.seed)
bad = 0


def say(ok, what):
    global bad
    bad += not ok
    print(('ok   ' if ok else 'FAIL ') + what, flush=True)


tmp = tempfile.mkdtemp()
so = os.path.join(tmp, 'quant.so')
shim = os.path.join(tmp, 'shim.c')
open(shim, 'w').write('''#include "quant/quant.h"
void c_f16_to_f32(float *y, const uint16_t *h, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = hn_f16_to_f32(h[i]); }
void c_f32_to_f16(uint16_t *h, const float *x, int64_t n) { for (int64_t i = 0; i < n; i++) h[i] = hn_f32_to_f16(x[i]); }
void c_f32_to_bf16(uint16_t *h, const float *x, int64_t n) { for (int64_t i = 0; i < n; i++) h[i] = hn_f32_to_bf16(x[i]); }
void c_dequantize(uint32_t id, float *y, const void *s, int64_t n) { hn_type_get(id)->dequantize(y, s, n); }
void c_quantize(uint32_t id, void *d, const float *x, int64_t n, const float *w) { hn_type_get(id)->quantize(d, x, n, w); }
int c_can(uint32_t id) { const hn_type_info *t = hn_type_get(id); return t ? t->quantize ? 2 : 1 : 0; }
uint32_t c_elems(uint32_t id) { return hn_type_get(id)->block_elems; }
uint32_t c_bytes(uint32_t id) { return hn_type_get(id)->block_bytes; }
const char *c_name(uint32_t id) { return hn_type_get(id)->name; }
''')
subprocess.check_call([A.cc, '-std=gnu11', '-O3', '-shared', '-fPIC', '-ffp-contract=off', '-I', ROOT + '/include', '-I', ROOT + '/src',
                       shim, *sorted(glob.glob(ROOT + '/src/quant/*.c')), '-lm', '-o', so])
L = C.CDLL(so)
L.c_name.restype = C.c_char_p
P = lambda a: a.ctypes.data_as(C.c_void_p)


def dequantize(tid, raw, unaligned=False):
    e, b = L.c_elems(tid), L.c_bytes(tid)
    n = raw.size // b * e
    y = np.empty(n, np.float32)
    if unaligned:
        buf = np.empty(raw.size + 1, np.uint8)
        buf[1:] = raw.ravel()
        L.c_dequantize(C.c_uint32(tid), P(y), C.c_void_p(buf.ctypes.data + 1), C.c_int64(n))
    else:
        raw = np.ascontiguousarray(raw)
        L.c_dequantize(C.c_uint32(tid), P(y), P(raw), C.c_int64(n))
    return y


def quantize(tid, x, w=None):
    e, b = L.c_elems(tid), L.c_bytes(tid)
    out = np.zeros((x.shape[0], x.shape[1] // e * b), np.uint8)
    for r in range(x.shape[0]):
        row = np.ascontiguousarray(x[r])
        L.c_quantize(C.c_uint32(tid), P(out[r]), P(row), C.c_int64(row.size), P(w) if w is not None else None)
    return out


def same(a, b):
    """Bits equal, -0 = +0, NaN = NaN."""
    a, b = np.asarray(a, np.float32).ravel(), np.asarray(b, np.float32).ravel()
    return np.array_equal(np.where(a == 0, 0, a).astype(np.float32).view(np.uint32)[~np.isnan(a)],
                          np.where(b == 0, 0, b).astype(np.float32).view(np.uint32)[~np.isnan(b)]) and np.array_equal(np.isnan(a), np.isnan(b))


# offsets of f16 fields: kept finite; a sixteenth of the blocks get subnormal ones
F16_AT = {'F16': [0], 'Q4_0': [0], 'Q4_1': [0, 2], 'Q5_0': [0], 'Q5_1': [0, 2], 'Q8_0': [0], 'Q8_1': [0, 2], 'Q2_K': [80, 82], 'Q3_K': [108],
          'Q4_K': [0, 2], 'Q5_K': [0, 2], 'Q6_K': [208], 'IQ2_XXS': [0], 'IQ2_XS': [0], 'IQ2_S': [0], 'IQ3_XXS': [0], 'IQ3_S': [0],
          'IQ1_S': [0], 'IQ4_NL': [0], 'IQ4_XS': [0], 'TQ1_0': [52], 'TQ2_0': [64], 'Q1_0': [0], 'Q2_0': [0]}


def random_blocks(name, tid, n):
    raw = rng.integers(0, 256, (n, L.c_bytes(tid)), dtype=np.uint8)
    for at in F16_AT.get(name, []):
        inf = (raw[:, at + 1] & 0x7C) == 0x7C
        raw[inf, at + 1] &= 0xBF
        raw[: n // 2, at + 1] &= 0xBF  # ordinary magnitudes
        raw[: n // 16, at + 1] &= 0x83  # subnormals
    if name == 'IQ1_M':
        inf = (raw[:, 55] & 0x70) == 0x70
        raw[inf, 55] &= 0xBF
    if name == 'Q8_K':
        raw[:, 3] &= 0xBF
    return raw


ids = [i for i in range(64) if L.c_can(i)]
ref = None
if A.ref:
    ref = C.CDLL(A.ref)
    ref_deq = {n: getattr(ref, 'dequantize_row_' + n.lower().replace('_k', '_K'), None) if hasattr(ref, 'dequantize_row_' + n.lower().replace('_k', '_K')) else None
               for n in (L.c_name(i).decode() for i in ids)}

for tid in ids:
    name = L.c_name(tid).decode()
    raw = random_blocks(name, tid, A.blocks)
    try:
        gt = gguf.GGMLQuantizationType(tid)
    except ValueError:
        gt = None
    with np.errstate(all='ignore'):
        y = dequantize(tid, raw)
        say(same(y, dequantize(tid, raw, True)), f'{name}: unaligned source')
        if name in ('F32', 'F64', 'I8', 'I16', 'I32', 'I64'):
            dt = {'F32': '<f4', 'F64': '<f8', 'I8': 'i1', 'I16': '<i2', 'I32': '<i4', 'I64': '<i8'}[name]
            say(same(y, raw.reshape(-1).view(dt).astype(np.float32)), f'{name}: decoder = numpy, {A.blocks} blocks')
        elif gt is not None:
            try:
                want = GQ.dequantize(raw, gt)
                say(same(y, want), f'{name}: decoder = gguf package, {A.blocks} blocks')
            except NotImplementedError:
                print(f'     {name}: the gguf package has no decoder')
        if ref and ref_deq.get(name):
            want = np.empty_like(y)
            ref_deq[name](P(np.ascontiguousarray(raw)), P(want), C.c_int64(want.size))
            say(same(y, want), f'{name}: decoder = ggml C, {A.blocks} blocks')

if A.vectors:
    for f in sorted(glob.glob(A.vectors + '/*.bin')):
        d = open(f, 'rb').read()
        magic, ver, tid, e, s, n = struct.unpack('<4s5I', d[:24])
        ok = magic == b'QVEC' and ver == 1 and L.c_can(tid) and L.c_elems(tid) == e and L.c_bytes(tid) == s
        ok = ok and same(dequantize(tid, np.frombuffer(d, np.uint8, n * s, 24)), np.frombuffer(d, '<f4', n * e, 24 + n * s))
        say(ok, f'vectors {os.path.basename(f)}')

# ---- scalars
h = np.arange(65536, dtype=np.uint16)
y = np.empty(65536, np.float32)
L.c_f16_to_f32(P(y), P(h), C.c_int64(h.size))
w = h.view(np.float16).astype(np.float32)
nan = np.isnan(w)
say(np.array_equal(y.view(np.uint32)[~nan], w.view(np.uint32)[~nan]) and np.isnan(y[nan]).all(), 'f16 to f32: all 65536')
say(np.array_equal(dequantize(1, h.view(np.uint8)).view(np.uint32), y.view(np.uint32)), 'F16 decoder = hn_f16_to_f32: all 65536')
for part in range(4):
    u = rng.integers(0, 2**32, 2_000_000, dtype=np.uint32)
    if part == 1:  # near halves: exponents -30..17 with few low bits
        u = (u & 0x80001FFF & ~rng.integers(0, 2**13, u.size, dtype=np.uint32)) | (rng.integers(97, 145, u.size, dtype=np.uint32) << 23) | (rng.integers(0, 1024, u.size, dtype=np.uint32) << 13)
    if part == 2:  # exact ties and their neighbours
        u = (rng.integers(97, 145, u.size, dtype=np.uint32) << 23 | rng.integers(0, 2048, u.size, dtype=np.uint32) << 12) + rng.integers(0, 3, u.size, dtype=np.uint32) - 1
    if part == 3:
        u = (u & 0xFFFF0000) | rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), u.size)
    u = u.astype(np.uint32)
    x = u.view(np.float32)
    g = np.empty(u.size, np.uint16)
    L.c_f32_to_f16(P(g), P(x), C.c_int64(x.size))
    with np.errstate(all='ignore'):
        want = x.astype(np.float16).view(np.uint16)
    nan = np.isnan(x)
    say(np.array_equal(g[~nan], want[~nan]) and np.isnan(g[nan].view(np.float16)).all(), f'f32 to f16, part {part}')
    L.c_f32_to_bf16(P(g), P(x), C.c_int64(x.size))
    want = GQ.quantize(x.reshape(1, -1), gguf.GGMLQuantizationType.BF16).view(np.uint16).ravel()
    sub = (u & 0x7F800000) == 0  # the package may flush these
    say(np.array_equal(g[~sub], want[~sub]) or np.array_equal(g[~nan & ~sub], want[~nan & ~sub]), f'f32 to bf16, part {part}')

# ---- encoders
rows, ne0 = max(1, A.blocks // 160), 4096
samples = {
    'normal': rng.standard_normal((rows, ne0)).astype(np.float32),
    't4': rng.standard_t(4, (rows, ne0)).astype(np.float32),
    'tiny': (rng.standard_normal((4, ne0)) * 1e-6).astype(np.float32),
    'grid': rng.integers(-8, 9, (8, ne0)).astype(np.float32) / 4,  # many ties
    'zeros': (rng.standard_normal((8, ne0)) * (rng.random((8, ne0 // 32)).repeat(32, 1) < 0.5) + 0.).astype(np.float32),  # no -0: the package keeps its sign in d
    'positive': np.abs(rng.standard_normal((4, ne0))).astype(np.float32) + 1,
    'constant': np.full((1, ne0), 0.37, np.float32),
    'large': (rng.standard_normal((2, ne0)) * 3000).astype(np.float32),
}
for name in ['Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q8_0', 'F16', 'BF16', 'TQ1_0', 'TQ2_0', 'MXFP4', 'NVFP4']:
    gt = getattr(gguf.GGMLQuantizationType, name)
    for s, x in samples.items():
        with np.errstate(all='ignore'):
            try:
                want = GQ.quantize(x, gt).view(np.uint8).reshape(x.shape[0], -1)
            except NotImplementedError:
                continue
        got = quantize(int(gt), x)
        d = np.count_nonzero(got != want)
        say(d == 0, f'{name}: encoder = gguf package on {s}' + (f' ({d} of {got.size} bytes differ)' if d else ''))
if ref:
    imp = {'plain': None, 'ones': np.ones(ne0, np.float32), 'random': rng.random(ne0).astype(np.float32) ** 4,
           'holes': (rng.random(ne0) * (rng.random(ne0) < 0.7)).astype(np.float32), 'zero': np.zeros(ne0, np.float32)}
    for tid in ids:
        name = L.c_name(tid).decode()
        fn = 'quantize_' + name.lower().replace('_k', '_K')
        if L.c_can(tid) < 2 or not hasattr(ref, fn):
            continue
        f = getattr(ref, fn)
        for s, x in samples.items():
            for wn, w in imp.items():
                got = quantize(tid, x, w)
                want = np.zeros_like(got)
                xx = np.ascontiguousarray(x)
                f(P(xx), P(want), C.c_int64(x.shape[0]), C.c_int64(ne0), P(w) if w is not None else None)
                d = np.count_nonzero(got != want)
                say(d == 0, f'{name}: encoder = ggml C on {s}, {wn}' + (f' ({d} of {got.size} bytes differ)' if d else ''))

print('differences:' if bad else 'all equal', bad if bad else '')
sys.exit(bad > 0)
