"""Quantized matrices for check_families.py: Q8_0 and the types of Q4_K_M, encoded plainly (scales by the largest value,
no search), with the values that the bytes say in float64. Layouts from the format's description; nothing of src.
"""
import numpy as np

F32, Q5_0, Q8_0, Q4_K, Q6_K = 0, 6, 8, 12, 14
BLOCK = {F32: 1, Q5_0: 32, Q8_0: 32, Q4_K: 256, Q6_K: 256}


def half(x):
    """(bytes, values) of binary16."""
    h = np.asarray(x, np.float64).astype("<f2")
    return h.view(np.uint8).reshape(*h.shape, 2), h.astype(np.float64)


def over(x, d):
    """x / d, 0 where d is 0."""
    return np.divide(x, d, out=np.zeros_like(x), where=np.broadcast_to(d, x.shape) != 0)


def q8_0(x):
    """x [blocks, 32]: d f16, 32 i8."""
    b, d = half(np.abs(x).max(1, keepdims=True) / 127)
    q = np.clip(np.rint(over(x, d)), -127, 127)
    return np.concatenate([b[:, 0], q.astype(np.int8).view(np.uint8)], 1), d * q


def q5_0(x):
    """d f16, high bits u32, 16 bytes: elements 0 to 15 in the low halves, 16 to 31 in the high; value d (q - 16)."""
    b, d = half(np.abs(x).max(1, keepdims=True) / 15)
    q = np.clip(np.rint(over(x, d)), -16, 15).astype(np.int64) + 16
    high = ((q >> 4) << np.arange(32)).sum(1).astype("<u4").view(np.uint8).reshape(-1, 4)
    low = (q[:, :16] & 15 | (q[:, 16:] & 15) << 4).astype(np.uint8)
    return np.concatenate([b[:, 0], high, low], 1), d * (q - 16)


def q4_k(x):
    """x [blocks, 256]: d, dmin f16; eight 6-bit scales and minima in 12 bytes; 128 bytes, two runs of 32 in each 32."""
    s = x.reshape(-1, 8, 32)
    low = np.minimum(s.min(2), 0)
    step, least = (s.max(2) - low) / 15, -low
    bd, d = half(step.max(1) / 63)
    bm, dm = half(least.max(1) / 63)
    sc = np.clip(np.rint(over(step, d[:, None])), 0, 63).astype(np.int64)
    mn = np.clip(np.rint(over(least, dm[:, None])), 0, 63).astype(np.int64)
    a, m = d[:, None] * sc, dm[:, None] * mn
    q = np.clip(np.rint(over(s + m[..., None], a[..., None])), 0, 15).astype(np.int64)
    packed = np.concatenate([sc[:, :4] | (sc[:, 4:] >> 4) << 6, mn[:, :4] | (mn[:, 4:] >> 4) << 6,
                             sc[:, 4:] & 15 | (mn[:, 4:] & 15) << 4], 1)
    runs = (q[:, 0::2] | q[:, 1::2] << 4).reshape(-1, 128)
    b = np.concatenate([bd, bm, packed.astype(np.uint8), runs.astype(np.uint8)], 1)
    return b, (a[..., None] * q - m[..., None]).reshape(-1, 256)


def q6_k(x):
    """128 bytes of low halves, 64 of high pairs of bits, 16 i8 scales, d f16; value d scale (q - 32)."""
    s = x.reshape(-1, 16, 16)
    step = np.abs(s).max(2) / 31
    bd, d = half(step.max(1) / 127)
    sc = np.clip(np.rint(over(step, d[:, None])), 0, 127)
    a = (d[:, None] * sc)[..., None]
    q = np.clip(np.rint(over(s, a)), -32, 31).astype(np.int64)
    u = (q + 32).reshape(-1, 2, 4, 32)  # halves of 128, in each four runs of 32
    low = np.concatenate([u[:, :, 0] & 15 | (u[:, :, 2] & 15) << 4, u[:, :, 1] & 15 | (u[:, :, 3] & 15) << 4], 2)
    high = (u >> 4 << 2 * np.arange(4)[:, None]).sum(2)
    b = np.concatenate([low.reshape(-1, 128), high.reshape(-1, 64), sc.astype(np.int64)], 1).astype(np.uint8)
    return np.concatenate([b, bd], 1), (a * q).reshape(-1, 256)


ENCODE = {Q5_0: q5_0, Q8_0: q8_0, Q4_K: q4_k, Q6_K: q6_k}


class Encoded:
    """A tensor of a file: its type, bytes and the values that they say, shape = ne backwards."""

    def __init__(self, kind, t):
        rows, self.values = ENCODE[kind](np.asarray(t, np.float64).reshape(-1, BLOCK[kind]))
        self.kind, self.shape, self.bytes = kind, t.shape, rows.tobytes()
        self.values = self.values.reshape(t.shape)


def kind_of(mixture, name, t):
    """What a mixture makes of a tensor: matrices alone, the small ones that steer are kept."""
    kept = ("norm", "conv", "ffn_gate_inp", "position_embd", "ssm_a", "ssm_d", "rope_", "altup", "laurel", "per_layer")
    if t.ndim < 2 or not name.endswith(".weight") or any(k in name for k in kept):
        return F32
    kind = Q8_0
    if mixture == "q4_k_m":
        rich = any(k in name for k in ("attn_v", "ffn_down", "output.weight", "token_embd"))
        kind = Q6_K if rich else Q4_K
    if t.shape[-1] % BLOCK[kind]:
        kind = Q5_0 if kind == Q4_K else Q8_0
    return kind if t.shape[-1] % BLOCK[kind] == 0 else F32


def encoded(mixture, tensors):
    """Tensors as a file of that mixture holds them."""
    out = {}
    for name, t in tensors.items():
        kind = kind_of(mixture, name, t)
        out[name] = Encoded(kind, t) if kind else t
    return out
