/* The float kernels over sixteen lanes, written once and included by each x86 level
 * after it has defined v16 and its operations (avx2: two registers; avx512: one) and
 * quantize_block.
 * Every loop here follows the order that kernels.h fixes; scalar.c is the oracle. */

#ifndef HN_TILE_R /* weight rows × columns held in registers by the float matmul */
#error "the level defines HN_TILE_R and HN_TILE_C"
#endif

#ifndef HN_A256_BOUNDS /* a level may have its own */
#define HN_A256_BOUNDS hn_a256_bounds
#endif

#define HN_INLINE static inline __attribute__((always_inline))

HN_INLINE v16 v16_exp(v16 x)
{
    x = v16_max(v16_set1(HN_EXP_LO), x);
    x = v16_min(v16_set1(HN_EXP_HI), x);
    v16 magic = v16_set1(HN_EXP_MAGIC), t = v16_fma(x, v16_set1(HN_EXP_LOG2E), magic), n = v16_sub(t, magic);
    v16 r = v16_fma(n, v16_set1(-HN_EXP_LN2_HI), x);
    r = v16_fma(n, v16_set1(-HN_EXP_LN2_LO), r);
    v16 p = v16_set1(HN_EXP_C7);
    p = v16_fma(p, r, v16_set1(HN_EXP_C6));
    p = v16_fma(p, r, v16_set1(HN_EXP_C5));
    p = v16_fma(p, r, v16_set1(HN_EXP_C4));
    p = v16_fma(p, r, v16_set1(HN_EXP_C3));
    p = v16_fma(p, r, v16_set1(HN_EXP_C2));
    p = v16_fma(p, r, v16_set1(1.0f));
    p = v16_fma(p, r, v16_set1(1.0f));
    return v16_scale_pow2(p, t);
}

/* ---- matmul with float weights: element k in lane k mod 16, partial sums per 256 ------------ */

#define V16_LOAD_F32(p) v16_load((const float *)(p))
#define V16_LOAD_F16(p) v16_load_f16((const uint16_t *)(p))
#define V16_LOAD_BF16(p) v16_load_bf16((const uint16_t *)(p))

/* R rows from row r times C columns from column c. */
#define MM_TILE(NAME, ELEM, LOAD, R, C)                                                                       \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                    \
    {                                                                                                         \
        const ELEM *w[R];                                                                                     \
        const float *x[C];                                                                                    \
        v16 t[R][C];                                                                                          \
        for (int i = 0; i < R; i++) w[i] = (const ELEM *)((const char *)m->w + (size_t)(r + i) * m->w_stride); \
        for (int j = 0; j < C; j++) x[j] = (const float *)((const char *)m->x + (size_t)(c + j) * m->x_stride); \
        for (int i = 0; i < R; i++)                                                                           \
            for (int j = 0; j < C; j++) t[i][j] = v16_zero();                                                 \
        for (int64_t b = 0; b < m->n_in; b += 256) {                                                          \
            int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in, k = b;                                       \
            v16 p[R][C];                                                                                      \
            for (int i = 0; i < R; i++)                                                                       \
                for (int j = 0; j < C; j++) p[i][j] = v16_zero();                                             \
            for (; k + 16 <= end; k += 16) {                                                                  \
                v16 xv[C];                                                                                    \
                for (int j = 0; j < C; j++) xv[j] = v16_load(x[j] + k);                                       \
                for (int i = 0; i < R; i++) {                                                                 \
                    v16 wv = LOAD(w[i] + k);                                                                  \
                    for (int j = 0; j < C; j++) p[i][j] = v16_fma(wv, xv[j], p[i][j]);                        \
                }                                                                                             \
            }                                                                                                 \
            if (k < end) {                                                                                    \
                int n = (int)(end - k);                                                                       \
                ELEM wt[R][16];                                                                               \
                float xt[C][16];                                                                              \
                memset(wt, 0, sizeof wt);                                                                     \
                memset(xt, 0, sizeof xt);                                                                     \
                for (int i = 0; i < R; i++) memcpy(wt[i], w[i] + k, (size_t)n * sizeof(ELEM));                \
                for (int j = 0; j < C; j++) memcpy(xt[j], x[j] + k, (size_t)n * sizeof(float));               \
                for (int i = 0; i < R; i++)                                                                   \
                    for (int j = 0; j < C; j++)                                                               \
                        p[i][j] = v16_fma_first(LOAD(wt[i]), v16_load(xt[j]), p[i][j], n);                    \
            }                                                                                                 \
            for (int i = 0; i < R; i++)                                                                       \
                for (int j = 0; j < C; j++) t[i][j] = b ? v16_add(t[i][j], p[i][j]) : p[i][j];                \
        }                                                                                                     \
        for (int i = 0; i < R; i++)                                                                           \
            for (int j = 0; j < C; j++) m->y[(c + j) * m->ldy + r + i] = v16_tree(t[i][j]);                   \
    }

#define MATMUL_FLOAT(NAME, ELEM, LOAD)                                                                  \
    MM_TILE(NAME##_rc, ELEM, LOAD, HN_TILE_R, HN_TILE_C)                                                \
    MM_TILE(NAME##_r1, ELEM, LOAD, 4, 1)                                                                \
    MM_TILE(NAME##_1c, ELEM, LOAD, 1, HN_TILE_C)                                                        \
    MM_TILE(NAME##_11, ELEM, LOAD, 1, 1)                                                                \
    static void NAME(const hn_mm *m)                                                                    \
    {                                                                                                   \
        int64_t c = 0, r;                                                                               \
        for (; c + HN_TILE_C <= m->n_col; c += HN_TILE_C) {                                             \
            for (r = m->r0; r + HN_TILE_R <= m->r1; r += HN_TILE_R) NAME##_rc(m, r, c);                 \
            for (; r < m->r1; r++) NAME##_1c(m, r, c);                                                  \
        }                                                                                               \
        for (; c < m->n_col; c++) {                                                                     \
            for (r = m->r0; r + 4 <= m->r1; r += 4) NAME##_r1(m, r, c);                                 \
            for (; r < m->r1; r++) NAME##_11(m, r, c);                                                  \
        }                                                                                               \
    }
MATMUL_FLOAT(matmul_f32, float, V16_LOAD_F32)
MATMUL_FLOAT(matmul_f16, uint16_t, V16_LOAD_F16)
MATMUL_FLOAT(matmul_bf16, uint16_t, V16_LOAD_BF16)

/* ---- norm, silu ---------------------------------------------------------------------------------- */

static void rms_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    v16 t = v16_zero();
    for (int64_t b = 0; b < n; b += 256) {
        int64_t end = b + 256 < n ? b + 256 : n, k = b;
        v16 p = v16_zero();
        for (; k + 16 <= end; k += 16) {
            v16 v = v16_load(x + k);
            p = v16_fma(v, v, p);
        }
        if (k < end) {
            float xt[16] = { 0 };
            memcpy(xt, x + k, (size_t)(end - k) * sizeof(float));
            p = v16_fma_first(v16_load(xt), v16_load(xt), p, (int)(end - k));
        }
        t = b ? v16_add(t, p) : p;
    }
    float scale = 1.0f / sqrtf(v16_tree(t) / (float)n + eps);
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) v16_store(y + k, v16_mul(v16_mul(v16_load(x + k), v16_set1(scale)), v16_load(w + k)));
    for (; k < n; k++) y[k] = (x[k] * scale) * w[k];
}

static void silu_mul(float *y, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_load(g + i), e = v16_exp(v16_sub(v16_set1(-0.0f), v));
        v16_store(y + i, v16_mul(v16_div(v, v16_add(v16_set1(1.0f), e)), v16_load(u + i)));
    }
    for (; i < n; i++) y[i] = g[i] / (1.0f + hn_exp_inline(-g[i])) * u[i];
}

static void exp_many(float *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_exp(v16_load(x + i)));
    for (; i < n; i++) y[i] = hn_exp_inline(x[i]);
}

/* ---- activations ---------------------------------------------------------------------------------------- */

static void quantize256(hn_a256 *dst, const float *x, int64_t n)
{
    for (int64_t b = 0; b < n / 256; b++, dst++, x += 256) {
        int32_t sum[16];
        dst->d = quantize_block(dst->q, sum, x, 256);
        for (int j = 0; j < 16; j++) dst->bsum[j] = (int16_t)sum[j];
        HN_A256_BOUNDS(dst);
    }
}

static void quantize32(void *dst, const float *x, int64_t n)
{
    int8_t *q = dst;
    float *d = (float *)(q + n);
    int32_t *bsum = (int32_t *)(d + n / 32);
    for (int64_t b = 0; b < n / 32; b++) {
        int32_t sum[2];
        d[b] = quantize_block(q + 32 * b, sum, x + 32 * b, 32);
        bsum[b] = sum[0] + sum[1];
    }
}

#include "kernels/lanes_lora.h"
#include "kernels/lanes_attn.h"
#include "kernels/lanes_rwkv.h"
#include "kernels/lanes_train.h"

/* The table of a level: its integer matmuls bear these names too; it may add more. */
#ifndef HN_LEVEL_MATMUL
#define HN_LEVEL_MATMUL
#endif
#ifndef HN_LEVEL_PACKED
#define HN_LEVEL_PACKED
#endif
#define HN_LANES_TABLE(NAME)                                                                        \
    {                                                                                               \
        .name = NAME,                                                                               \
        .matmul = { [HN_F32] = matmul_f32, [HN_F16] = matmul_f16, [HN_BF16] = matmul_bf16,          \
                    [HN_Q8_0] = matmul_q8_0, [HN_Q4_0] = matmul_q4_0, [HN_Q5_0] = matmul_q5_0,      \
                    [HN_Q4_K] = matmul_q4_K, [HN_Q5_K] = matmul_q5_K, [HN_Q6_K] = matmul_q6_K,      \
                    HN_LEVEL_MATMUL },                                                          \
        .packed = { HN_LEVEL_PACKED }, .low_rank = low_rank,                                    \
        .quantize256 = quantize256, .quantize32 = quantize32, .rms_norm = rms_norm,                 \
        .silu_mul = silu_mul, .exp = exp_many, HN_LANES_RWKV, HN_LANES_TRAIN, HN_LANES_ATTN                                    \
    }
