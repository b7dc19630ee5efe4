/* The float kernels over sixteen lanes, written once and included by each x86 level
 * after it has defined v16 and its operations (avx2: two registers; avx512: one) and
 * quantize_block.
 * Every loop here follows the order that kernels.h fixes; scalar.c is the oracle. */

#ifndef HN_TILE_R /* weight rows × columns held in registers by the float matmul, and elements of a row at a time */
#error "the level defines HN_TILE_R, HN_TILE_C and HN_TILE_K"
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

#include "kernels/lanes_matmul.h"

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
    if (!w) {
        for (; k + 16 <= n; k += 16) v16_store(y + k, v16_mul(v16_load(x + k), v16_set1(scale)));
        for (; k < n; k++) y[k] = x[k] * scale;
        return;
    }
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

HN_INLINE v16 v16_gelu(v16 x)
{
    v16 c = v16_mul(v16_set1(HN_GELU_CUBE), v16_mul(x, x));
    v16 z = v16_mul(v16_set1(HN_GELU_ROOT), v16_fma(c, x, x)), e = v16_exp(v16_mul(v16_set1(-2.0f), z));
    return v16_div(x, v16_add(v16_set1(1.0f), e));
}

HN_INLINE v16 v16_tanh(v16 x)
{
    v16 z = v16_mul(x, x), p = v16_set1(HN_TANH_C4), one = v16_set1(1.0f);
    p = v16_fma(p, z, v16_set1(HN_TANH_C3));
    p = v16_fma(p, z, v16_set1(HN_TANH_C2));
    p = v16_fma(p, z, v16_set1(HN_TANH_C1));
    p = v16_fma(p, z, v16_set1(HN_TANH_C0));
    p = v16_fma(v16_mul(p, z), x, x);
    v16 far = v16_sub(one, v16_div(v16_set1(2.0f), v16_add(v16_exp(v16_add(x, x)), one)));
    return v16_where_less(z, v16_set1(HN_TANH_EDGE * HN_TANH_EDGE), p, far);
}

static void gelu_mul(float *y, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_mul(v16_gelu(v16_load(g + i)), v16_load(u + i)));
    for (; i < n; i++) y[i] = hn_gelu_inline(g[i]) * u[i];
}

static void oai_mul(float *y, const float *g, const float *u, int64_t n)
{
    v16 top = v16_set1(HN_OAI_LIMIT), low = v16_set1(-HN_OAI_LIMIT), one = v16_set1(1.0f);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 a = v16_min(top, v16_load(g + i)), b = v16_max(low, v16_min(top, v16_load(u + i)));
        v16 e = v16_exp(v16_mul(v16_set1(-HN_OAI_ALPHA), a));
        v16_store(y + i, v16_mul(v16_div(a, v16_add(one, e)), v16_add(b, one)));
    }
    for (; i < n; i++) y[i] = hn_oai_inline(g[i], u[i]);
}

static void relu_mul(float *y, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_load(g + i);
        v16_store(y + i, v16_mul(v16_where_less(v, v16_zero(), v16_zero(), v), v16_load(u + i)));
    }
    for (; i < n; i++) y[i] = (g[i] < 0.0f ? 0.0f : g[i]) * u[i];
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
#include "kernels/lanes_recurrent.h"
#include "kernels/lanes_train.h"

/* The table of a level: its integer matmuls bear these names too; it may add more. */
#ifndef HN_LEVEL_MATMUL
#define HN_LEVEL_MATMUL
#endif
#ifndef HN_LEVEL_PACKED
#define HN_LEVEL_PACKED
#endif
#define HN_LANES_TABLE(NAME)                                                                                        \
    {                                                                                                               \
        .name = NAME, .matmul = { [HN_F32] = matmul_f32,   [HN_F16] = matmul_f16,   [HN_BF16] = matmul_bf16,        \
                                  [HN_Q8_0] = matmul_q8_0, [HN_Q4_0] = matmul_q4_0, [HN_Q5_0] = matmul_q5_0,        \
                                  [HN_Q4_K] = matmul_q4_K, [HN_Q5_K] = matmul_q5_K, [HN_Q6_K] = matmul_q6_K,        \
                                  HN_LEVEL_MATMUL },                                                                \
        .packed = { HN_LEVEL_PACKED }, .low_rank = low_rank, .quantize256 = quantize256, .quantize32 = quantize32,  \
        .rms_norm = rms_norm, .silu_mul = silu_mul, .gelu_mul = gelu_mul, .oai_mul = oai_mul, .relu_mul = relu_mul, \
        .exp = exp_many, HN_LANES_RWKV, HN_LANES_RECURRENT, HN_LANES_TRAIN, HN_LANES_ATTN                           \
    }
