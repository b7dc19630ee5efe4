/* The scalar level: the plain loops a reader can check against the contract in
 * kernels.h, and the oracle for every other level. */
#include "kernels/kernels.h"

#ifndef HN_SCALAR /* scalar_fma.c compiles this file again under another name */
#define HN_SCALAR hn_kernels_scalar
#define HN_SCALAR_NAME "scalar"
#endif

/* 16 lanes added 8, 4, 2, 1 apart. */
static float tree16(const float t[16])
{
    float a[8];
    for (int i = 0; i < 8; i++) a[i] = t[i] + t[i + 8];
    for (int i = 0; i < 4; i++) a[i] = a[i] + a[i + 4];
    return (a[0] + a[2]) + (a[1] + a[3]);
}

/* ---- activations ---------------------------------------------------------------------- */

/* q[n] and the scale of one block. */
static float quantize_block(int8_t *q, const float *x, int n)
{
    uint32_t amax_bits = 0;
    for (int i = 0; i < n; i++) {
        uint32_t b = hn_f32_bits(x[i]) & 0x7FFFFFFF; /* orders like |x|, NaN above infinity */
        amax_bits = b > amax_bits ? b : amax_bits;
    }
    float amax = hn_bits_f32(amax_bits);
    if (amax_bits >= 0x7F800000 || amax < HN_TINY_AMAX) {
        memset(q, 0, (size_t)n);
        return amax_bits >= 0x7F800000 ? hn_bits_f32(0x7FC00000) : 0.0f;
    }
    float inv = 127.0f / amax;
    for (int i = 0; i < n; i++) q[i] = (int8_t)((x[i] * inv + HN_EXP_MAGIC) - HN_EXP_MAGIC);
    return amax / 127.0f;
}

static void quantize256(hn_a256 *dst, const float *x, int64_t n)
{
    for (int64_t b = 0; b < n / 256; b++, dst++, x += 256) {
        dst->d = quantize_block(dst->q, x, 256);
        for (int j = 0; j < 16; j++) {
            int s = 0;
            for (int i = 0; i < 16; i++) s += dst->q[16 * j + i];
            dst->bsum[j] = (int16_t)s;
        }
        hn_a256_bounds(dst);
    }
}

static void quantize32(void *dst, const float *x, int64_t n)
{
    int8_t *q = dst;
    float *d = (float *)(q + n);
    int32_t *bsum = (int32_t *)(d + n / 32);
    for (int64_t b = 0; b < n / 32; b++) {
        d[b] = quantize_block(q + 32 * b, x + 32 * b, 32);
        int32_t s = 0;
        for (int i = 0; i < 32; i++) s += q[32 * b + i];
        bsum[b] = s;
    }
}

/* ---- where a row's blocks come from: the mapping, or a packed group ---------------------------- */

#define FROM_ROWS(T, BLOCK, MAX, n) const BLOCK *wb = (const BLOCK *)((const char *)m->w + (size_t)r * m->w_stride) + b
#define FROM_PACK(T, BLOCK, MAX, n)                                                                     \
    BLOCK opened[MAX];                                                                                  \
    hn_unpack_blocks(T, opened, (const char *)m->w + (size_t)(r / HN_PACK_ROWS) * m->w_stride, m->n_in, \
                     (int)(r % HN_PACK_ROWS), b, b + (n));                                              \
    const BLOCK *wb = opened

/* ---- matmul: K-quants ----------------------------------------------------------------------- */

/* One weight block unpacked: codes unsigned, scales per 16 elements, minima per 32. */
typedef struct kblock {
    uint8_t q[256];
    int32_t scale[16];
    int32_t min[8];
    float d, dmin;
} kblock;

static void unpack_q4_K(kblock *o, const hn_q4_K *w)
{
    uint8_t sc[8], mn[8];
    hn_k_scales(w->s, sc, mn);
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < 32; i++) {
            o->q[64 * g + i] = w->q[32 * g + i] & 15;
            o->q[64 * g + 32 + i] = w->q[32 * g + i] >> 4;
        }
    for (int s = 0; s < 8; s++) o->scale[2 * s] = o->scale[2 * s + 1] = sc[s], o->min[s] = mn[s];
    o->d = hn_f16_to_f32(w->d);
    o->dmin = hn_f16_to_f32(w->dmin);
}

static void unpack_q5_K(kblock *o, const hn_q5_K *w)
{
    uint8_t sc[8], mn[8];
    hn_k_scales(w->s, sc, mn);
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < 32; i++) {
            o->q[64 * g + i] = (uint8_t)((w->q[32 * g + i] & 15) | (w->h[i] >> (2 * g) & 1) << 4);
            o->q[64 * g + 32 + i] = (uint8_t)(w->q[32 * g + i] >> 4 | (w->h[i] >> (2 * g + 1) & 1) << 4);
        }
    for (int s = 0; s < 8; s++) o->scale[2 * s] = o->scale[2 * s + 1] = sc[s], o->min[s] = mn[s];
    o->d = hn_f16_to_f32(w->d);
    o->dmin = hn_f16_to_f32(w->dmin);
}

/* Codes with their −32 left out: the caller subtracts it through the sums. */
static void unpack_q6_K(kblock *o, const hn_q6_K *w)
{
    for (int n = 0; n < 2; n++)
        for (int j = 0; j < 4; j++)
            for (int l = 0; l < 32; l++)
                o->q[128 * n + 32 * j + l] = (uint8_t)((w->l[64 * n + 32 * (j & 1) + l] >> 4 * (j >> 1) & 15) |
                                                       (w->h[32 * n + l] >> 2 * j & 3) << 4);
    for (int t = 0; t < 16; t++) o->scale[t] = w->s[t];
    o->d = hn_f16_to_f32(w->d);
}

/* Levels with 128 added. */
static void unpack_iq4_XS(kblock *o, const hn_iq4_XS *w)
{
    for (int s = 0; s < 8; s++) {
        for (int i = 0; i < 16; i++) {
            o->q[32 * s + i] = (uint8_t)(hn_iq4_levels[w->q[16 * s + i] & 15] + 128);
            o->q[32 * s + 16 + i] = (uint8_t)(hn_iq4_levels[w->q[16 * s + i] >> 4] + 128);
        }
        o->scale[2 * s] = o->scale[2 * s + 1] = ((w->sl[s / 2] >> 4 * (s & 1) & 15) | (w->sh >> 2 * s & 3) << 4) - 32;
    }
    o->d = hn_f16_to_f32(w->d);
}

static int32_t kblock_isum(const kblock *w, const hn_a256 *a)
{
    int32_t isum = 0;
    for (int t = 0; t < 16; t++) {
        int32_t s = 0;
        for (int i = 0; i < 16; i++) s += w->q[16 * t + i] * a->q[16 * t + i];
        isum += w->scale[t] * s;
    }
    return isum;
}

/* y and one block's share: of a type with minima … */
static float add_min(float y, const kblock *w, const hn_a256 *a)
{
    int32_t isum = kblock_isum(w, a), msum = 0;
    for (int s = 0; s < 8; s++) msum += w->min[s] * (a->bsum[2 * s] + a->bsum[2 * s + 1]);
    y = fmaf(w->d * a->d, (float)isum, y);
    return fmaf(-(w->dmin * a->d), (float)msum, y);
}

/* … and of one whose codes are stored unsigned: offset is taken off again through the sums. */
static float add_offset(float y, const kblock *w, const hn_a256 *a, int32_t offset)
{
    int32_t isum = kblock_isum(w, a), off = 0;
    for (int t = 0; t < 16; t++) off += w->scale[t] * a->bsum[t];
    isum -= offset * off;
    return fmaf(w->d * a->d, (float)isum, y);
}
static float add_32(float y, const kblock *w, const hn_a256 *a) { return add_offset(y, w, a, 32); }
static float add_128(float y, const kblock *w, const hn_a256 *a) { return add_offset(y, w, a, 128); }

#define MATMUL_K(NAME, BLOCK, UNPACK, ADD, FROM, T)                                                         \
    static void NAME(const hn_mm *m)                                                                        \
    {                                                                                                       \
        int64_t nb = m->n_in / 256;                                                                         \
        for (int64_t r = m->r0; r < m->r1; r++) {                                                           \
            for (int64_t c = 0; c < m->n_col; c++) m->y[c * m->ldy + r] = 0.0f;                             \
            for (int64_t b = 0; b < nb; b++) {                                                              \
                FROM(T, BLOCK, 1, 1);                                                                       \
                kblock k;                                                                                   \
                UNPACK(&k, wb);                                                                             \
                for (int64_t c = 0; c < m->n_col; c++) {                                                    \
                    const hn_a256 *a = (const hn_a256 *)((const char *)m->x + (size_t)c * m->x_stride) + b; \
                    float *y = &m->y[c * m->ldy + r];                                                       \
                    *y = ADD(*y, &k, a);                                                                    \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }
MATMUL_K(matmul_q4_K, hn_q4_K, unpack_q4_K, add_min, FROM_ROWS, HN_Q4_K)
MATMUL_K(matmul_q5_K, hn_q5_K, unpack_q5_K, add_min, FROM_ROWS, HN_Q5_K)
MATMUL_K(packed_q4_K, hn_q4_K, unpack_q4_K, add_min, FROM_PACK, HN_Q4_K)
MATMUL_K(packed_q5_K, hn_q5_K, unpack_q5_K, add_min, FROM_PACK, HN_Q5_K)
MATMUL_K(matmul_q6_K, hn_q6_K, unpack_q6_K, add_32, FROM_ROWS, HN_Q6_K)
MATMUL_K(packed_q6_K, hn_q6_K, unpack_q6_K, add_32, FROM_PACK, HN_Q6_K)
MATMUL_K(matmul_iq4_XS, hn_iq4_XS, unpack_iq4_XS, add_128, FROM_ROWS, HN_IQ4_XS)
MATMUL_K(packed_iq4_XS, hn_iq4_XS, unpack_iq4_XS, add_128, FROM_PACK, HN_IQ4_XS)

/* ---- matmul: 32-blocks ------------------------------------------------------------------------ */

static float unpack_q4_0(uint8_t q[32], const hn_q4_0 *w)
{
    for (int i = 0; i < 16; i++) q[i] = w->q[i] & 15, q[i + 16] = w->q[i] >> 4;
    return hn_f16_to_f32(w->d);
}

/* The blocks of Q4_0; levels with 128 added. */
static float unpack_iq4_NL(uint8_t q[32], const hn_q4_0 *w)
{
    for (int i = 0; i < 16; i++) {
        q[i] = (uint8_t)(hn_iq4_levels[w->q[i] & 15] + 128);
        q[i + 16] = (uint8_t)(hn_iq4_levels[w->q[i] >> 4] + 128);
    }
    return hn_f16_to_f32(w->d);
}

static float unpack_q5_0(uint8_t q[32], const hn_q5_0 *w)
{
    uint32_t h;
    memcpy(&h, w->h, 4);
    for (int i = 0; i < 16; i++) {
        q[i] = (uint8_t)((w->q[i] & 15) | (h >> i & 1) << 4);
        q[i + 16] = (uint8_t)(w->q[i] >> 4 | (h >> (i + 16) & 1) << 4);
    }
    return hn_f16_to_f32(w->d);
}

static float unpack_q8_0(uint8_t q[32], const hn_q8_0 *w)
{
    for (int i = 0; i < 32; i++) q[i] = (uint8_t)(w->q[i] + 128);
    return hn_f16_to_f32(w->d);
}

/* Levels with 12 added. */
static float unpack_mxfp4(uint8_t q[32], const hn_mxfp4 *w)
{
    for (int i = 0; i < 16; i++) {
        q[i] = (uint8_t)(hn_e2m1_doubled[w->q[i] & 15] + 12);
        q[i + 16] = (uint8_t)(hn_e2m1_doubled[w->q[i] >> 4] + 12);
    }
    return hn_mxfp4_scale(w->e);
}

#define MATMUL_32(NAME, BLOCK, UNPACK, OFFSET, FROM, T)                               \
    static void NAME(const hn_mm *m)                                                  \
    {                                                                                 \
        int64_t nb = m->n_in / 32;                                                    \
        for (int64_t r = m->r0; r < m->r1; r++) {                                     \
            for (int64_t c = 0; c < m->n_col; c++) m->y[c * m->ldy + r] = 0.0f;       \
            for (int64_t b = 0; b < nb; b++) {                                        \
                FROM(T, BLOCK, 1, 1);                                                 \
                uint8_t q[32];                                                        \
                float dw = UNPACK(q, wb);                                             \
                for (int64_t c = 0; c < m->n_col; c++) {                              \
                    const int8_t *a = (const int8_t *)m->x + (size_t)c * m->x_stride; \
                    const float *d = (const float *)(a + m->n_in);                    \
                    const int32_t *bsum = (const int32_t *)(d + nb);                  \
                    int32_t isum = -(OFFSET)*bsum[b];                                 \
                    for (int i = 0; i < 32; i++) isum += q[i] * a[32 * b + i];        \
                    float *y = &m->y[c * m->ldy + r];                                 \
                    *y = fmaf(dw * d[b], (float)isum, *y);                            \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    }
MATMUL_32(matmul_q4_0, hn_q4_0, unpack_q4_0, 8, FROM_ROWS, HN_Q4_0)
MATMUL_32(matmul_q5_0, hn_q5_0, unpack_q5_0, 16, FROM_ROWS, HN_Q5_0)
MATMUL_32(matmul_q8_0, hn_q8_0, unpack_q8_0, 128, FROM_ROWS, HN_Q8_0)
MATMUL_32(matmul_iq4_NL, hn_q4_0, unpack_iq4_NL, 128, FROM_ROWS, HN_IQ4_NL)
MATMUL_32(matmul_mxfp4, hn_mxfp4, unpack_mxfp4, 12, FROM_ROWS, HN_MXFP4)
MATMUL_32(packed_q4_0, hn_q4_0, unpack_q4_0, 8, FROM_PACK, HN_Q4_0)
MATMUL_32(packed_q5_0, hn_q5_0, unpack_q5_0, 16, FROM_PACK, HN_Q5_0)
MATMUL_32(packed_q8_0, hn_q8_0, unpack_q8_0, 128, FROM_PACK, HN_Q8_0)
MATMUL_32(packed_iq4_NL, hn_q4_0, unpack_iq4_NL, 128, FROM_PACK, HN_IQ4_NL)

/* ---- matmul: floats ----------------------------------------------------------------------------- */

static float same_f32(float v) { return v; }

/* A block of a row is widened once for up to 8 columns. */
#define MATMUL_FLOAT(NAME, ELEM, WIDEN, FROM, T)                                                                   \
    static void NAME(const hn_mm *m)                                                                               \
    {                                                                                                              \
        for (int64_t r = m->r0; r < m->r1; r++) {                                                                  \
            for (int64_t c0 = 0; c0 < m->n_col; c0 += 8) {                                                         \
                int64_t n_c = m->n_col - c0 < 8 ? m->n_col - c0 : 8;                                               \
                float t[8][16] = { { 0 } };                                                                        \
                for (int64_t b = 0; b < m->n_in; b += 256) {                                                       \
                    int64_t n = m->n_in - b < 256 ? m->n_in - b : 256;                                             \
                    FROM(T, ELEM, 256, n);                                                                         \
                    float wide[256];                                                                               \
                    for (int64_t k = 0; k < n; k++) wide[k] = WIDEN(wb[k]);                                        \
                    for (int64_t c = 0; c < n_c; c++) {                                                            \
                        const float *x = (const float *)((const char *)m->x + (size_t)(c0 + c) * m->x_stride) + b; \
                        float p[16] = { 0 };                                                                       \
                        int64_t k = 0;                                                                             \
                        for (; k + 16 <= n; k += 16)                                                               \
                            for (int l = 0; l < 16; l++) p[l] = fmaf(wide[k + l], x[k + l], p[l]);                 \
                        for (; k < n; k++) p[k & 15] = fmaf(wide[k], x[k], p[k & 15]);                             \
                        for (int l = 0; l < 16; l++) t[c][l] = b ? t[c][l] + p[l] : p[l];                          \
                    }                                                                                              \
                }                                                                                                  \
                for (int64_t c = 0; c < n_c; c++) m->y[(c0 + c) * m->ldy + r] = tree16(t[c]);                      \
            }                                                                                                      \
        }                                                                                                          \
    }
MATMUL_FLOAT(matmul_f32, float, same_f32, FROM_ROWS, HN_F32)
MATMUL_FLOAT(matmul_f16, uint16_t, hn_f16_to_f32, FROM_ROWS, HN_F16)
MATMUL_FLOAT(matmul_bf16, uint16_t, hn_bf16_to_f32, FROM_ROWS, HN_BF16)
MATMUL_FLOAT(packed_f32, float, same_f32, FROM_PACK, HN_F32)
MATMUL_FLOAT(packed_f16, uint16_t, hn_f16_to_f32, FROM_PACK, HN_F16)
MATMUL_FLOAT(packed_bf16, uint16_t, hn_bf16_to_f32, FROM_PACK, HN_BF16)

/* ---- norm, silu ----------------------------------------------------------------------------------- */

static void rms_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    float t[16] = { 0 };
    for (int64_t b = 0; b < n; b += 256) {
        float p[16] = { 0 };
        int64_t end = b + 256 < n ? b + 256 : n;
        for (int64_t k = b; k < end; k++) p[k & 15] = fmaf(x[k], x[k], p[k & 15]);
        for (int l = 0; l < 16; l++) t[l] = b ? t[l] + p[l] : p[l];
    }
    float scale = 1.0f / sqrtf(tree16(t) / (float)n + eps);
    for (int64_t k = 0; k < n; k++) y[k] = w ? (x[k] * scale) * w[k] : x[k] * scale;
}

static void silu_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = g[i] / (1.0f + hn_exp_inline(-g[i])) * u[i];
}

static void to_bf16(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_f32_to_bf16(x[i]);
}

static void gelu_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_gelu_inline(g[i]) * u[i];
}

static void gelu_erf_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_gelu_erf_inline(g[i]) * u[i];
}

static void oai_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_oai_inline(g[i], u[i]);
}

static void relu_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (g[i] < 0.0f ? 0.0f : g[i]) * u[i];
}

static void silu_mul_grad(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float h = gh[i], a = g[i], b = u[i], s = 1.0f / (1.0f + hn_exp_inline(-a));
        gg[i] = (h * b) * (s * fmaf(a, 1.0f - s, 1.0f));
        gu[i] = h * (a * s);
    }
}

static void gelu_mul_grad(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) hn_gelu_grad_inline(&gg[i], u ? &gu[i] : NULL, gh[i], g[i], u ? u[i] : 1.0f);
}

static void rms_norm_grad(float *gx, const float *gy, const float *x, const float *w, int64_t n, float eps)
{
    float t[16] = { 0 }, d[16] = { 0 };
    for (int64_t b = 0; b < n; b += 256) {
        float p[16] = { 0 }, q[16] = { 0 };
        int64_t end = b + 256 < n ? b + 256 : n;
        for (int64_t k = b; k < end; k++) {
            p[k & 15] = fmaf(x[k], x[k], p[k & 15]);
            q[k & 15] = fmaf(gy[k] * w[k], x[k], q[k & 15]);
        }
        for (int l = 0; l < 16; l++) {
            t[l] = b ? t[l] + p[l] : p[l];
            d[l] = b ? d[l] + q[l] : q[l];
        }
    }
    float r = 1.0f / sqrtf(tree16(t) / (float)n + eps);
    float mean = tree16(d) * r / (float)n;
    for (int64_t k = 0; k < n; k++) gx[k] += (gy[k] * w[k] - (x[k] * r) * mean) * r;
}

static void exp_many(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_exp_inline(x[i]);
}

#include "kernels/plain_gemm.h"
static const hn_gemm_ops gemm_ops = { .tile = gemm_plain_tile,
                                      .tile_bf16 = gemm_plain_tile_bf16,
                                      .rows = gemm_plain_rows,
                                      .transpose = gemm_plain_transpose,
                                      .copy = gemm_plain_copy };
#include "kernels/scalar_rwkv.h"
#include "kernels/scalar_recurrent.h"

/* ---- the KV cache ------------------------------------------------------------------------------------- */

static uint16_t to_f16(float x) { return hn_f32_to_f16(x); }

#define CACHE_FLOAT(NAME, ELEM, NARROW, WIDEN)                                                            \
    static void store_k_##NAME(void *k, const float *x, int64_t d, int64_t pos)                           \
    {                                                                                                     \
        ELEM *y = (ELEM *)k + pos / HN_KEY_BLOCK * d * HN_KEY_BLOCK + pos % HN_KEY_BLOCK;                 \
        for (int64_t i = 0; i < d; i++) y[i * HN_KEY_BLOCK] = NARROW(x[i]);                               \
    }                                                                                                     \
    static void store_v_##NAME(void *v, const float *x, int64_t d, int64_t pos)                           \
    {                                                                                                     \
        for (int64_t i = 0; i < d; i++) ((ELEM *)v)[pos * d + i] = NARROW(x[i]);                          \
    }                                                                                                     \
    static float score_##NAME(const float *q, const void *split, int64_t d, int64_t t)                    \
    {                                                                                                     \
        const ELEM *k = (const ELEM *)split + t / HN_KEY_BLOCK * d * HN_KEY_BLOCK + t % HN_KEY_BLOCK;     \
        float s = 0.0f;                                                                                   \
        for (int64_t i = 0; i < d; i++) s = fmaf(q[i], WIDEN(k[i * HN_KEY_BLOCK]), s);                    \
        return s;                                                                                         \
    }                                                                                                     \
    static void add_value_##NAME(float *o, float p, const void *split, int64_t d, int64_t t, int64_t d_v) \
    {                                                                                                     \
        const ELEM *v = (const ELEM *)split + t * d;                                                      \
        for (int64_t i = 0; i < d_v; i++) o[i] = fmaf(p, WIDEN(v[i]), o[i]);                              \
    }                                                                                                     \
    static float score_latent_##NAME(const float *q, const void *split, int64_t d, int64_t t)             \
    {                                                                                                     \
        const ELEM *k = (const ELEM *)split + t * d;                                                      \
        float s = 0.0f;                                                                                   \
        for (int64_t i = 0; i < d; i++) s = fmaf(q[i], WIDEN(k[i]), s);                                   \
        return s;                                                                                         \
    }
CACHE_FLOAT(f16, uint16_t, to_f16, hn_f16_to_f32)
CACHE_FLOAT(f32, float, same_f32, same_f32)

/* q8_0: codes of one group of n dims; returns the scale's bits. */
static uint16_t cache_codes(int8_t *q, const float *x, int64_t n)
{
    uint32_t amax_bits = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t b = hn_f32_bits(x[i]) & 0x7FFFFFFF;
        amax_bits = b > amax_bits ? b : amax_bits;
    }
    uint16_t scale = amax_bits >= 0x7F800000 ? 0x7E00 : hn_f32_to_f16(hn_bits_f32(amax_bits) / 127.0f);
    memset(q, 0, HN_CACHE_GROUP);
    if (scale == 0 || scale >= 0x7C00) return scale;
    float inv = 1.0f / hn_f16_to_f32(scale);
    for (int64_t i = 0; i < n; i++) {
        float c = (x[i] * inv + HN_EXP_MAGIC) - HN_EXP_MAGIC;
        q[i] = (int8_t)(c > 127.0f ? 127.0f : c < -127.0f ? -127.0f : c);
    }
    return scale;
}

static int64_t group_dims(int64_t d, int64_t g)
{
    return d - g * HN_CACHE_GROUP < HN_CACHE_GROUP ? d - g * HN_CACHE_GROUP : HN_CACHE_GROUP;
}

static void store_k_q8(void *k, const float *x, int64_t d, int64_t pos)
{
    uint8_t *block = (uint8_t *)k + (size_t)(pos / HN_KEY_BLOCK) * hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    uint16_t *scales = (uint16_t *)(block + hn_cache_d4(d) * HN_KEY_BLOCK);
    int64_t lane = pos % HN_KEY_BLOCK;
    for (int64_t g = 0; g < hn_cache_groups(d); g++) {
        int8_t q[HN_CACHE_GROUP];
        int64_t n = group_dims(d, g);
        scales[g * HN_KEY_BLOCK + lane] = cache_codes(q, x + g * HN_CACHE_GROUP, n);
        for (int64_t i = 0; i < n; i += 4) {
            uint8_t *y = block + (g * (HN_CACHE_GROUP / 4) + i / 4) * 4 * HN_KEY_BLOCK + 4 * lane;
            for (int j = 0; j < 4; j++) y[j] = (uint8_t)(q[i + j] + 128);
        }
    }
}

static void store_v_q8(void *v, const float *x, int64_t d, int64_t pos)
{
    uint8_t *block = (uint8_t *)v + (size_t)(pos / HN_KEY_BLOCK) * hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    int64_t d4 = hn_cache_d4(d), n_g = hn_cache_groups(d), lane = pos % HN_KEY_BLOCK;
    uint16_t *scales = (uint16_t *)(block + d4 * HN_KEY_BLOCK);
    for (int64_t g = 0; g < n_g; g++) {
        int8_t q[HN_CACHE_GROUP];
        int64_t n = group_dims(d, g);
        scales[lane * n_g + g] = cache_codes(q, x + g * HN_CACHE_GROUP, n);
        memcpy(block + lane * d4 + g * HN_CACHE_GROUP, q, (size_t)((n + 3) & ~3));
    }
}

static float score_q8(const float *q, const void *split, int64_t d, int64_t t)
{
    int64_t lane = t % HN_KEY_BLOCK;
    const uint8_t *block = (const uint8_t *)split + (size_t)(t / HN_KEY_BLOCK) * hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    const uint16_t *scales = (const uint16_t *)(block + hn_cache_d4(d) * HN_KEY_BLOCK);
    float s = 0.0f;
    for (int64_t g = 0; g < hn_cache_groups(d); g++) {
        int8_t c[HN_CACHE_GROUP];
        int64_t n = group_dims(d, g);
        float dq = quantize_block(c, q + g * HN_CACHE_GROUP, (int)n);
        int32_t isum = 0;
        for (int64_t i = 0; i < n; i++)
            isum += c[i] * (block[(g * (HN_CACHE_GROUP / 4) + i / 4) * 4 * HN_KEY_BLOCK + 4 * lane + i % 4] - 128);
        s = fmaf(hn_f16_to_f32(scales[g * HN_KEY_BLOCK + lane]) * dq, (float)isum, s);
    }
    return s;
}

/* Element i of position t, [16][d4] codes and [16][groups] scales a block. */
static float value_q8(const void *split, int64_t d, int64_t t, int64_t i)
{
    int64_t d4 = hn_cache_d4(d), n_g = hn_cache_groups(d), lane = t % HN_KEY_BLOCK;
    const uint8_t *block = (const uint8_t *)split + (size_t)(t / HN_KEY_BLOCK) * hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    const uint16_t *scales = (const uint16_t *)(block + d4 * HN_KEY_BLOCK);
    return (float)(int8_t)block[lane * d4 + i] * hn_f16_to_f32(scales[lane * n_g + i / HN_CACHE_GROUP]);
}

static void add_value_q8(float *o, float p, const void *split, int64_t d, int64_t t, int64_t d_v)
{
    for (int64_t i = 0; i < d_v; i++) o[i] = fmaf(p, value_q8(split, d, t, i), o[i]);
}

static float score_latent_q8(const float *q, const void *split, int64_t d, int64_t t)
{
    float s = 0.0f;
    for (int64_t i = 0; i < d; i++) s = fmaf(q[i], value_q8(split, d, t, i), s);
    return s;
}

/* ---- attention --------------------------------------------------------------------------------------- */

static float capped(float s, float cap) { return hn_tanh_inline(s * (1.0f / cap)) * cap; }
static float larger(float a, float b) { return a > b ? a : b; }

/* L and O of M take in one partial result m, l, o. */
static void merge_one(float *M, float *L, float *O, float m, float l, const float *o, int64_t d)
{
    float mn = larger(*M, m), a = hn_exp_inline(*M - mn), b = hn_exp_inline(m - mn);
    *L = fmaf(l, b, *L * a);
    for (int64_t i = 0; i < d; i++) O[i] = fmaf(o[i], b, O[i] * a);
    *M = mn;
}

/* A sink takes its share and adds nothing. */
static void merge_sink(float *M, float *L, float *O, float sink, int64_t d)
{
    float mn = larger(*M, sink), a = hn_exp_inline(*M - mn), b = hn_exp_inline(sink - mn);
    *L = fmaf(1.0f, b, *L * a);
    for (int64_t i = 0; i < d; i++) O[i] = O[i] * a;
    *M = mn;
}

static void attn_merge(float *out, const float *part, int64_t stride, int64_t n_split, int64_t d, const float *sink)
{
    float M = -INFINITY, L = 0.0f;
    for (int64_t i = 0; i < d; i++) out[i] = 0.0f;
    for (int64_t s = 0; s < n_split; s++, part += stride) merge_one(&M, &L, out, part[0], part[1], part + 2, d);
    if (sink) merge_sink(&M, &L, out, *sink, d);
    for (int64_t i = 0; i < d; i++) out[i] = out[i] / L;
}

/* D_ROW: how wide a row of values is */
#define ATTN(NAME, TYPE, SCORE, VALUE, D_ROW)                                                                         \
    /* query r of the call against keys [s0, s1) of a split, of which it sees those from lo on */                     \
    static void split_##NAME(const hn_attn *a, int64_t r, int64_t s0, int64_t s1, int64_t lo, float *m, float *l,     \
                             float *o)                                                                                \
    {                                                                                                                 \
        *m = -INFINITY;                                                                                               \
        *l = 0.0f;                                                                                                    \
        const int64_t d_v = a->d_v ? a->d_v : a->d, it = r / a->n_q;                                                  \
        const float *q = a->q + it * a->q_stride + r % a->n_q * a->d;                                                 \
        for (int64_t i = 0; i < d_v; i++) o[i] = 0.0f;                                                                \
        for (int64_t t0 = lo > s0 ? lo / HN_SOFT_BLOCK * HN_SOFT_BLOCK : s0; t0 < s1; t0 += HN_SOFT_BLOCK) {          \
            const size_t at = hn_attn_at(a, hn_cache_block_bytes(TYPE, a->d) / HN_KEY_BLOCK, t0);                     \
            const size_t at_v = hn_attn_at(a, hn_cache_block_bytes(TYPE, D_ROW) / HN_KEY_BLOCK, t0);                  \
            const char *k = (const char *)a->k + at, *v = (const char *)a->v + at_v;                                  \
            float p[HN_SOFT_BLOCK], mn = *m, lanes[16];                                                               \
            for (int64_t t = t0; t < t0 + HN_SOFT_BLOCK; t++) {                                                       \
                p[t - t0] = t >= lo && t < s1 ? SCORE(q, k, a->d, t - t0) * a->scale : -INFINITY;                     \
                if (a->cap != 0 && t >= lo && t < s1) p[t - t0] = capped(p[t - t0], a->cap);                          \
                if (a->fade) p[t - t0] = fmaf(-a->fade[r % a->n_q], fabsf((float)(a->pos + it - t)), p[t - t0]);      \
                mn = larger(mn, p[t - t0]);                                                                           \
            }                                                                                                         \
            float c = hn_exp_inline(*m - mn);                                                                         \
            for (int j = 0; j < HN_SOFT_BLOCK; j++) p[j] = hn_exp_inline(p[j] - mn);                                  \
            for (int j = 0; j < 16; j++) lanes[j] = ((p[j] + p[j + 16]) + p[j + 32]) + p[j + 48];                     \
            *l = *l * c + tree16(lanes);                                                                              \
            for (int64_t i = 0; i < d_v; i++) o[i] *= c;                                                              \
            for (int64_t t = lo > t0 ? lo : t0; t < t0 + HN_SOFT_BLOCK && t < s1; t++)                                \
                VALUE(o, p[t - t0], v, D_ROW, t - t0, d_v);                                                           \
            *m = mn;                                                                                                  \
        }                                                                                                             \
    }                                                                                                                 \
    static void attn_##NAME(const hn_attn *a)                                                                         \
    {                                                                                                                 \
        int64_t d_v = a->d_v ? a->d_v : a->d, rows = a->n_tok * a->n_q;                                               \
        for (int64_t r = 0; r < rows; r++) {                                                                          \
            int64_t it = r / a->n_q, n_kv = a->n_kv + it;                                                             \
            float *out = a->out + it * a->out_stride + r % a->n_q * d_v, *o = a->scratch, M = -INFINITY, L = 0.0f, m, \
                  l;                                                                                                  \
            int64_t lo = a->window && n_kv > a->window ? n_kv - a->window : 0;                                        \
            if (a->n_end && n_kv > a->n_end) n_kv = a->n_end;                                                         \
            int64_t split = a->part ? a->split0 : 0, end = a->part ? a->split1 : (n_kv + HN_SPLIT - 1) / HN_SPLIT;    \
            if (split < lo / HN_SPLIT) split = lo / HN_SPLIT;                                                         \
            if (split < a->split_first) split = a->split_first;                                                       \
            for (int64_t i = 0; i < d_v && !a->part; i++) out[i] = 0.0f;                                              \
            for (; split < end && split * HN_SPLIT < n_kv; split++) {                                                 \
                int64_t s0 = split * HN_SPLIT, s1 = s0 + HN_SPLIT < n_kv ? s0 + HN_SPLIT : n_kv;                      \
                if (a->part) {                                                                                        \
                    float *part = a->part + ((split - a->split0) * rows + r) * (d_v + 2);                             \
                    split_##NAME(a, r, s0, s1, lo, &part[0], &part[1], part + 2);                                     \
                } else {                                                                                              \
                    split_##NAME(a, r, s0, s1, lo, &m, &l, o);                                                        \
                    merge_one(&M, &L, out, m, l, o, d_v);                                                             \
                }                                                                                                     \
            }                                                                                                         \
            if (a->sink && !a->part) merge_sink(&M, &L, out, a->sink[r % a->n_q], d_v);                               \
            for (int64_t i = 0; i < d_v && !a->part; i++) out[i] = out[i] / L;                                        \
        }                                                                                                             \
    }
ATTN(f16, HN_CACHE_F16, score_f16, add_value_f16, d_v)
ATTN(f32, HN_CACHE_F32, score_f32, add_value_f32, d_v)
ATTN(q8, HN_CACHE_Q8_0, score_q8, add_value_q8, d_v)
ATTN(latent_f16, HN_CACHE_F16, score_latent_f16, add_value_f16, a->d)
ATTN(latent_f32, HN_CACHE_F32, score_latent_f32, add_value_f32, a->d)
ATTN(latent_q8, HN_CACHE_Q8_0, score_latent_q8, add_value_q8, a->d)

/* ---- adapters ------------------------------------------------------------------------------------------ */

static void low_rank(float *y, const float *b, int64_t ldb, const float *h, int64_t rank, int64_t n)
{
    for (int64_t j = 0; j < rank; j++)
        for (int64_t i = 0; i < n; i++) y[i] = fmaf(b[j * ldb + i], h[j], y[i]);
}

const hn_kernels HN_SCALAR = {
    .name = HN_SCALAR_NAME,
    .matmul = { [HN_F32] = matmul_f32,
                [HN_F16] = matmul_f16,
                [HN_BF16] = matmul_bf16,
                [HN_Q8_0] = matmul_q8_0,
                [HN_Q4_0] = matmul_q4_0,
                [HN_Q5_0] = matmul_q5_0,
                [HN_Q4_K] = matmul_q4_K,
                [HN_Q5_K] = matmul_q5_K,
                [HN_Q6_K] = matmul_q6_K,
                [HN_IQ4_XS] = matmul_iq4_XS,
                [HN_IQ4_NL] = matmul_iq4_NL,
                [HN_MXFP4] = matmul_mxfp4 },
    .packed = { [HN_F32] = packed_f32,
                [HN_F16] = packed_f16,
                [HN_BF16] = packed_bf16,
                [HN_Q8_0] = packed_q8_0,
                [HN_Q4_0] = packed_q4_0,
                [HN_Q5_0] = packed_q5_0,
                [HN_Q4_K] = packed_q4_K,
                [HN_Q5_K] = packed_q5_K,
                [HN_Q6_K] = packed_q6_K,
                [HN_IQ4_XS] = packed_iq4_XS,
                [HN_IQ4_NL] = packed_iq4_NL },
    .quantize256 = quantize256,
    .quantize32 = quantize32,
    .rms_norm = rms_norm,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .oai_mul = oai_mul,
    .gelu_erf_mul = gelu_erf_mul,
    .relu_mul = relu_mul,
    .silu_mul_grad = silu_mul_grad,
    .gelu_mul_grad = gelu_mul_grad,
    .to_bf16 = to_bf16,
    .rms_norm_grad = rms_norm_grad,
    .gemm = &gemm_ops,
    .exp = exp_many,
    .layer_norm = layer_norm,
    .lerp = lerp,
    .map = { [HN_MAP_TANH] = map_tanh,
             [HN_MAP_SIGMOID] = map_sigmoid,
             [HN_MAP_SILU] = map_silu,
             [HN_MAP_SQRELU] = map_sqrelu,
             [HN_MAP_GELU] = map_gelu,
             [HN_MAP_GELU_ERF] = map_gelu_erf,
             [HN_MAP_SOFTPLUS] = map_softplus },
    .xielu = xielu,
    .wkv6 = wkv6,
    .wkv7 = wkv7,
    .conv = conv,
    .ssm = ssm,
    .scan = scan,
    .delta = delta,
    .attn = { [HN_CACHE_F16] = attn_f16, [HN_CACHE_F32] = attn_f32, [HN_CACHE_Q8_0] = attn_q8 },
    .attn_latent = { [HN_CACHE_F16] = attn_latent_f16,
                     [HN_CACHE_F32] = attn_latent_f32,
                     [HN_CACHE_Q8_0] = attn_latent_q8 },
    .attn_merge = attn_merge,
    .store_k = { [HN_CACHE_F16] = store_k_f16, [HN_CACHE_F32] = store_k_f32, [HN_CACHE_Q8_0] = store_k_q8 },
    .store_v = { [HN_CACHE_F16] = store_v_f16, [HN_CACHE_F32] = store_v_f32, [HN_CACHE_Q8_0] = store_v_q8 },
    .low_rank = low_rank,
};
