/* Training's kernels over sixteen lanes, included by lanes.h. A level may name its own
 * HN_GEMM_TRANSPOSE. */

/* ---- products ------------------------------------------------------------------------------------------- */

#include "kernels/lanes_gemm.h"
#include "kernels/plain_gemm.h"

#ifndef HN_GEMM_TRANSPOSE
#define HN_GEMM_TRANSPOSE(dst, ldd, src, lds, rows, n) gemm_plain_transpose(dst, ldd, src, lds, rows, n, false)
#endif
#ifndef HN_GEMM_COPY
#define HN_GEMM_COPY(dst, ldd, src, lds, rows, n) gemm_plain_copy(dst, ldd, src, lds, rows, n, false)
#endif
static void gemm_transpose(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16)
{
    if (bf16) gemm_plain_transpose(dst, ldd, src, lds, rows, n, true);
    else HN_GEMM_TRANSPOSE(dst, ldd, src, lds, rows, n);
}
static void gemm_copy(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16)
{
    if (bf16) gemm_plain_copy(dst, ldd, src, lds, rows, n, true);
    else HN_GEMM_COPY(dst, ldd, src, lds, rows, n);
}

static void gemm_finish_rows(const hn_gemm_tile *t, float s[HN_GEMM_ROWS][HN_GEMM_COLS])
{
    hn_gemm_tile row = *t;
    for (int i = 0; i < t->rows; i++, row.t += HN_GEMM_COLS, row.c += t->ldc)
        for (int v = 0; 16 * v < t->cols; v++) {
            v16 sum[HN_GEMM_ROWS][HN_GEMM_VECS];
            sum[0][0] = v16_load(s[i] + 16 * v);
            gemm_finish(&row, 1, 1, v, sum);
        }
}

#ifdef HN_FLUSH_ON
/* The processor's own flushing is that of the bf16 dot product; only the chain may have it. */
static void gemm_tile_bf16(const hn_gemm_tile *t)
{
    _Alignas(64) float s[HN_GEMM_ROWS][HN_GEMM_COLS];
    hn_gemm_tile chain = *t;
    chain.t = s[0];
    chain.first = true;
    chain.last = false;
    unsigned mode = HN_FLUSH_ON();
    gemm_tile(&chain);
    HN_FLUSH_OFF(mode);
    gemm_finish_rows(t, s);
}
#else
/* A result of 2^-126 may have been less before it was rounded, and so may be zero: then, which is rare, all is
 * done again plainly. */
static void gemm_tile_bf16(const hn_gemm_tile *t)
{
    float s[HN_GEMM_ROWS][HN_GEMM_COLS];
    v16_flags edge = v16_no_flags();
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->cols; v += 16) {
            const float *a = (const float *)t->a + i * t->a_row, *b = (const float *)t->b + v;
            v16 sum = v16_zero();
            for (int64_t k = 0; k < t->steps; k++, a += t->a_step, b += t->b_step)
                sum = v16_flush(v16_fma(v16_set1(*a), v16_load(b), sum), &edge);
            v16_store(s[i] + v, sum);
        }
    if (v16_any(edge)) {
        gemm_plain_tile_bf16(t);
        return;
    }
    gemm_finish_rows(t, s);
}
#endif

#ifndef HN_GEMM_NAME /* a level may show its own to other files */
#define HN_GEMM_NAME gemm_ops
static
#endif
    const hn_gemm_ops HN_GEMM_NAME = { .tile = gemm_tile,
                                       .tile_bf16 = gemm_tile_bf16,
                                       .rows = gemm_plain_rows,
                                       .transpose = gemm_transpose,
                                       .copy = gemm_copy };

/* ---- gradients of norm, silu, gelu --------------------------------------------------------------------- */

static void silu_mul_grad(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    v16 one = v16_set1(1.0f);
    for (; i + 16 <= n; i += 16) {
        v16 h = v16_load(gh + i), a = v16_load(g + i), b = v16_load(u + i);
        v16 s = v16_div(one, v16_add(one, v16_exp(v16_sub(v16_set1(-0.0f), a))));
        v16_store(gg + i, v16_mul(v16_mul(h, b), v16_mul(s, v16_fma(a, v16_sub(one, s), one))));
        v16_store(gu + i, v16_mul(h, v16_mul(a, s)));
    }
    for (; i < n; i++) {
        float h = gh[i], a = g[i], b = u[i], s = 1.0f / (1.0f + hn_exp_inline(-a));
        gg[i] = (h * b) * (s * fmaf(a, 1.0f - s, 1.0f));
        gu[i] = h * (a * s);
    }
}

static void gelu_mul_grad(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    v16 one = v16_set1(1.0f), root = v16_set1(HN_GELU_ROOT), twice = v16_set1(2.0f * HN_GELU_ROOT);
    for (; i + 16 <= n; i += 16) {
        v16 h = v16_load(gh + i), a = v16_load(g + i), b = u ? v16_load(u + i) : one;
        v16 c = v16_mul(v16_set1(HN_GELU_CUBE), v16_mul(a, a)), z = v16_mul(root, v16_fma(c, a, a));
        v16 s = v16_div(one, v16_add(one, v16_exp(v16_mul(v16_set1(-2.0f), z))));
        v16 t = v16_mul(twice, v16_fma(v16_set1(3.0f), c, one));
        v16_store(gg + i, v16_mul(v16_mul(h, b), v16_mul(s, v16_fma(v16_mul(a, v16_sub(one, s)), t, one))));
        if (u) v16_store(gu + i, v16_mul(h, v16_mul(a, s)));
    }
    for (; i < n; i++) hn_gelu_grad_inline(&gg[i], u ? &gu[i] : NULL, gh[i], g[i], u ? u[i] : 1.0f);
}

static void rms_norm_grad(float *gx, const float *gy, const float *x, const float *w, int64_t n, float eps)
{
    v16 t = v16_zero(), d = v16_zero();
    for (int64_t b = 0; b < n; b += 256) {
        int64_t end = b + 256 < n ? b + 256 : n, k = b;
        v16 p = v16_zero(), q = v16_zero();
        for (; k + 16 <= end; k += 16) {
            v16 v = v16_load(x + k);
            p = v16_fma(v, v, p);
            q = v16_fma(v16_mul(v16_load(gy + k), v16_load(w + k)), v, q);
        }
        if (k < end) {
            float xt[16] = { 0 }, yt[16] = { 0 }, wt[16] = { 0 };
            int rest = (int)(end - k);
            memcpy(xt, x + k, (size_t)rest * sizeof(float));
            memcpy(yt, gy + k, (size_t)rest * sizeof(float));
            memcpy(wt, w + k, (size_t)rest * sizeof(float));
            p = v16_fma_first(v16_load(xt), v16_load(xt), p, rest);
            q = v16_fma_first(v16_mul(v16_load(yt), v16_load(wt)), v16_load(xt), q, rest);
        }
        t = b ? v16_add(t, p) : p;
        d = b ? v16_add(d, q) : q;
    }
    float r = 1.0f / sqrtf(v16_tree(t) / (float)n + eps), mean = v16_tree(d) * r / (float)n;
    v16 rv = v16_set1(r), mv = v16_set1(mean);
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        v16 y = v16_sub(v16_mul(v16_load(gy + k), v16_load(w + k)), v16_mul(v16_mul(v16_load(x + k), rv), mv));
        v16_store(gx + k, v16_add(v16_load(gx + k), v16_mul(y, rv)));
    }
    for (; k < n; k++) gx[k] += (gy[k] * w[k] - (x[k] * r) * mean) * r;
}

/* the scalar loops, for this level's vectors */
static void to_bf16(uint16_t *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = hn_f32_to_bf16(x[i]);
}
static void decode_bf16(float *restrict y, const void *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, (const char *)src + 2 * i, sizeof v);
        y[i] = hn_bf16_to_f32(v);
    }
}

static void decode_f16(float *y, const void *src, int64_t n)
{
    const uint16_t *h = src;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_load_f16(h + i));
    for (; i < n; i++) {
        uint16_t v;
        memcpy(&v, h + i, sizeof v);
        y[i] = hn_f16_to_f32(v);
    }
}

#ifndef HN_LEVEL_DECODE
#define HN_LEVEL_DECODE [HN_F16] = decode_f16, [HN_BF16] = decode_bf16
#endif
#define HN_LANES_TRAIN                                                                             \
    .decode = { HN_LEVEL_DECODE }, .silu_mul_grad = silu_mul_grad, .gelu_mul_grad = gelu_mul_grad, \
    .rms_norm_grad = rms_norm_grad, .to_bf16 = to_bf16, .gemm = &HN_GEMM_NAME
