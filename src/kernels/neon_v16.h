/* The sixteen lanes of the contract as four NEON registers: what lanes.h and its parts take of a level. A file for CPUs
 * with SDOT defines NEON_SDOT. */
#ifndef HN_NEON_V16_H
#define HN_NEON_V16_H

#include "kernels/kernels.h"

#include <arm_neon.h>

typedef struct v16 {
    float32x4_t a, b, c, d;
} v16;
#define V16_OP static inline __attribute__((always_inline))
V16_OP v16 v16_set1(float f) { return (v16){ vdupq_n_f32(f), vdupq_n_f32(f), vdupq_n_f32(f), vdupq_n_f32(f) }; }
V16_OP v16 v16_zero(void) { return v16_set1(0.0f); }
V16_OP v16 v16_load(const float *p)
{
    return (v16){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}
V16_OP void v16_store(float *p, v16 v)
{
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}
V16_OP float32x4_t widen_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
V16_OP v16 v16_load_f16(const uint16_t *p)
{
    return (v16){ widen_f16(p), widen_f16(p + 4), widen_f16(p + 8), widen_f16(p + 12) };
}
V16_OP float32x4_t widen_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
V16_OP v16 v16_load_bf16(const uint16_t *p)
{
    return (v16){ widen_bf16(p), widen_bf16(p + 4), widen_bf16(p + 8), widen_bf16(p + 12) };
}
/* FMAX and FMIN treat NaN and signed zeros otherwise: compare and select */
V16_OP float32x4_t larger4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
V16_OP float32x4_t smaller4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
#define V16_BINARY(NAME, OP) \
    V16_OP v16 NAME(v16 x, v16 y) { return (v16){ OP(x.a, y.a), OP(x.b, y.b), OP(x.c, y.c), OP(x.d, y.d) }; }
V16_BINARY(v16_add, vaddq_f32)
V16_BINARY(v16_sub, vsubq_f32)
V16_BINARY(v16_mul, vmulq_f32)
V16_BINARY(v16_div, vdivq_f32)
V16_BINARY(v16_max, larger4)  /* a > b ? a : b */
V16_BINARY(v16_min, smaller4) /* a < b ? a : b */
V16_OP float32x4_t where_less4(float32x4_t a, float32x4_t b, float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(a, b), x, y);
}
V16_OP v16 v16_where_less(v16 a, v16 b, v16 x, v16 y)
{
    return (v16){ where_less4(a.a, b.a, x.a, y.a), where_less4(a.b, b.b, x.b, y.b), where_less4(a.c, b.c, x.c, y.c),
                  where_less4(a.d, b.d, x.d, y.d) };
}
V16_OP v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){ vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                  vfmaq_f32(z.d, x.d, y.d) };
}
/* x in the lanes below n */
V16_OP float32x4_t keep_first4(float32x4_t x, float32x4_t other, int n)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    return vbslq_f32(vcgtq_s32(vdupq_n_s32(n), vld1q_s32(lane)), x, other);
}
V16_OP v16 v16_keep_first(v16 x, v16 other, int n)
{
    return (v16){ keep_first4(x.a, other.a, n), keep_first4(x.b, other.b, n - 4), keep_first4(x.c, other.c, n - 8),
                  keep_first4(x.d, other.d, n - 12) };
}
/* fma in the first n lanes, z in the others */
V16_OP v16 v16_fma_first(v16 x, v16 y, v16 z, int n) { return v16_keep_first(v16_fma(x, y, z), z, n); }
V16_OP float v16_tree(v16 t)
{
    float32x4_t s = vaddq_f32(vaddq_f32(t.a, t.c), vaddq_f32(t.b, t.d));
    float32x2_t h = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
V16_OP float v16_hmax(v16 v)
{
    float32x4_t s = larger4(larger4(v.a, v.c), larger4(v.b, v.d));
    float32x2_t l = vget_low_f32(s), h = vget_high_f32(s), m = vbsl_f32(vcgt_f32(l, h), l, h);
    float x = vget_lane_f32(m, 0), y = vget_lane_f32(m, 1);
    return x > y ? x : y;
}
V16_OP float32x4_t scale_pow2(float32x4_t p, float32x4_t t)
{
    int32x4_t e = vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(vdupq_n_f32(HN_EXP_MAGIC)));
    int32x4_t h = vshrq_n_s32(e, 1), bias = vdupq_n_s32(127);
    float32x4_t s1 = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(h, bias), 23));
    float32x4_t s2 = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vsubq_s32(e, h), bias), 23));
    return vmulq_f32(vmulq_f32(p, s1), s2);
}
/* p·2^n, where t = n + magic */
V16_OP v16 v16_scale_pow2(v16 p, v16 t)
{
    return (v16){ scale_pow2(p.a, t.a), scale_pow2(p.b, t.b), scale_pow2(p.c, t.c), scale_pow2(p.d, t.d) };
}

/* Lanes at 2^-126 and below as zero of their sign; those at 2^-126 are noted. FPCR's flushing looks before it
 * rounds, which is not what the dot product of bf16 does. */
typedef uint32x4_t v16_flags;
V16_OP v16_flags v16_no_flags(void) { return vdupq_n_u32(0); }
V16_OP bool v16_any(v16_flags f) { return vmaxvq_u32(f) != 0; }
V16_OP float32x4_t flush4(float32x4_t x, uint32x4_t *edge)
{
    float32x4_t least = vdupq_n_f32(0x1p-126f);
    uint32x4_t small = vcaleq_f32(x, least);
    *edge = vorrq_u32(*edge, vandq_u32(small, vcageq_f32(x, least)));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(x), vshrq_n_u32(small, 1)));
}
V16_OP v16 v16_flush(v16 x, v16_flags *edge)
{
    return (v16){ flush4(x.a, edge), flush4(x.b, edge), flush4(x.c, edge), flush4(x.d, edge) };
}

/* lane j of x[i] becomes lane i of x[j], of four */
V16_OP void turn4(float32x4_t x[4])
{
    float64x2_t even = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1])),
                odd = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1]));
    float64x2_t even2 = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3]));
    float64x2_t odd2 = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
    x[0] = vreinterpretq_f32_f64(vtrn1q_f64(even, even2));
    x[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd, odd2));
    x[2] = vreinterpretq_f32_f64(vtrn2q_f64(even, even2));
    x[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd, odd2));
}
/* The same of sixteen: by squares of four, which change places over the diagonal. */
V16_OP void v16_turn(v16 x[16])
{
    float32x4_t square[4][4][4]; /* [of columns][of rows][row] */
    for (int i = 0; i < 16; i++) {
        square[0][i / 4][i % 4] = x[i].a;
        square[1][i / 4][i % 4] = x[i].b;
        square[2][i / 4][i % 4] = x[i].c;
        square[3][i / 4][i % 4] = x[i].d;
    }
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) turn4(square[c][r]);
    for (int i = 0; i < 16; i++) {
        float32x4_t(*of)[4] = square[i / 4];
        x[i] = (v16){ of[0][i % 4], of[1][i % 4], of[2][i % 4], of[3][i % 4] };
    }
}

/* what lanes_attn.h takes */
#define HN_ATTN_VECS(n) ((n) <= 2 ? 2 : 1) /* a vector is four of 32 registers */
#define HN_LANES_STORE_F16
V16_OP uint16x4_t narrow_f16(float32x4_t v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
V16_OP void v16_store_f16(uint16_t *p, v16 v)
{
    vst1_u16(p, narrow_f16(v.a));
    vst1_u16(p + 4, narrow_f16(v.b));
    vst1_u16(p + 8, narrow_f16(v.c));
    vst1_u16(p + 12, narrow_f16(v.d));
}
#define HN_LANES_DOT8
typedef struct i16v {
    int32x4_t a, b, c, d;
} i16v;
typedef struct k8 {
    int8x16_t a, b, c, d;
} k8; /* signed codes of 4 keys each */
V16_OP v16 v16_load_i8(const int8_t *p)
{
    int8x16_t v = vld1q_s8(p);
    int16x8_t lo = vmovl_s8(vget_low_s8(v)), hi = vmovl_high_s8(v);
    return (v16){ vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_high_s16(lo)),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_high_s16(hi)) };
}
V16_OP v16 i16_to_v16(i16v v)
{
    return (v16){ vcvtq_f32_s32(v.a), vcvtq_f32_s32(v.b), vcvtq_f32_s32(v.c), vcvtq_f32_s32(v.d) };
}
V16_OP i16v i16_start(int32_t qsum) { return (i16v){ vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0) }; }
V16_OP int8x16_t signed_codes(const uint8_t *p) { return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(128))); }
V16_OP k8 k8_load(const uint8_t *p)
{
    return (k8){ signed_codes(p), signed_codes(p + 16), signed_codes(p + 32), signed_codes(p + 48) };
}
/* lane i: four products, each pair at most 128·127·2 */
V16_OP int32x4_t dot4(int32x4_t acc, int8x16_t w, int8x16_t a)
{
#ifdef NEON_SDOT
    return vdotq_s32(acc, w, a);
#else
    return vpadalq_s16(acc, vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)), vmull_high_s8(w, a)));
#endif
}
V16_OP i16v i16_dot(i16v acc, k8 codes, int32_t q4)
{
    int8x16_t q = vreinterpretq_s8_s32(vdupq_n_s32(q4));
    return (i16v){ dot4(acc.a, codes.a, q), dot4(acc.b, codes.b, q), dot4(acc.c, codes.c, q), dot4(acc.d, codes.d, q) };
}

/* n = 32 or 256. Returns d; sums of 16 codes to sum16[n/16]. */
V16_OP float quantize_block(int8_t *q, int32_t *sum16, const float *x, int n)
{
    uint32x4_t am = vdupq_n_u32(0), abs_mask = vdupq_n_u32(0x7FFFFFFF);
    for (int i = 0; i < n; i += 4) am = vmaxq_u32(am, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), abs_mask));
    uint32_t amax_bits = vmaxvq_u32(am);
    float amax = hn_bits_f32(amax_bits);
    if (amax_bits >= 0x7F800000 || amax < HN_TINY_AMAX) {
        memset(q, 0, (size_t)n);
        memset(sum16, 0, (size_t)n / 16 * sizeof *sum16);
        return amax_bits >= 0x7F800000 ? hn_bits_f32(0x7FC00000) : 0.0f;
    }
    float32x4_t inv = vdupq_n_f32(127.0f / amax);
    for (int i = 0; i < n; i += 16) {
        int16x4_t h[4];
        for (int j = 0; j < 4; j++) h[j] = vqmovn_s32(vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + i + 4 * j), inv)));
        int8x16_t v = vcombine_s8(vqmovn_s16(vcombine_s16(h[0], h[1])), vqmovn_s16(vcombine_s16(h[2], h[3])));
        vst1q_s8(q + i, v);
        sum16[i / 16] = vaddlvq_s8(v);
    }
    return amax / 127.0f;
}

#endif
