/* Training's kernels over sixteen lanes, included by lanes.h. A level may say how many vectors a
 * tile of a product is wide (HN_GEMM_VECS) and name its own operations of products (HN_GEMM_OPS). */

#include "kernels/plain_gemm.h"

#ifndef HN_GEMM_VECS
#define HN_GEMM_VECS 1
#endif
#ifdef __clang__
#define HN_TRAIN_UNROLL _Pragma("unroll")
#else
#define HN_TRAIN_UNROLL _Pragma("GCC unroll 8")
#endif
#define HN_EACH(i, n) HN_TRAIN_UNROLL for (int i = 0; i < (n); i++)

/* ---- the tile of a product --------------------------------------------------------------------- */

/* What becomes of the sums of V vectors of row i, columns from j0. */
HN_INLINE void gemm_finish(const hn_gemm_tile *t, int i, int v, v16 s)
{
    float *sum = t->t + i * HN_GEMM_COLS + 16 * v, *c = t->c + i * t->ldc + 16 * v;
    if (!t->first) s = v16_add(v16_load(sum), s);
    if (!t->last) {
        v16_store(sum, s);
        return;
    }
    if (t->alpha != 1.0f) s = v16_mul(v16_set1(t->alpha), s);
    int n = t->cols - 16 * v;
    if (n >= 16) {
        v16_store(c, t->add ? v16_add(v16_load(c), s) : s);
        return;
    }
    float rest[16];
    v16_store(rest, s);
    for (int j = 0; j < n; j++) c[j] = t->add ? c[j] + rest[j] : rest[j];
}

/* M rows × V vectors from vector v0. */
HN_INLINE void gemm_block(const hn_gemm_tile *t, const int M, const int V, int v0)
{
    v16 s[HN_GEMM_ROWS][HN_GEMM_VECS];
    HN_EACH(i, M) HN_EACH(v, V) s[i][v] = v16_zero();
    const float *a = t->a, *b = (const float *)t->b + 16 * v0;
    int64_t row = t->a_row, a_step = t->a_step, b_step = t->b_step;
    for (int64_t k = t->steps; k > 0; k--, a += a_step, b += b_step) {
        v16 bv[HN_GEMM_VECS];
        HN_EACH(v, V) bv[v] = v16_load(b + 16 * v);
        HN_EACH(i, M) {
            v16 av = v16_set1(a[i * row]);
            HN_EACH(v, V) s[i][v] = v16_fma(av, bv[v], s[i][v]);
        }
    }
    HN_EACH(i, M) HN_EACH(v, V) gemm_finish(t, i, v0 + v, s[i][v]);
}

#define GEMM_BLOCK(M, V) \
    static void gemm_block_##M##_##V(const hn_gemm_tile *t, int v0) { gemm_block(t, M, V, v0); }
#define GEMM_BLOCKS(V) GEMM_BLOCK(1, V) GEMM_BLOCK(2, V) GEMM_BLOCK(3, V) GEMM_BLOCK(4, V) GEMM_BLOCK(5, V) GEMM_BLOCK(6, V)
#define GEMM_BLOCK_NAMES(V) { gemm_block_1_##V, gemm_block_2_##V, gemm_block_3_##V, gemm_block_4_##V, gemm_block_5_##V, gemm_block_6_##V }
typedef void gemm_block_fn(const hn_gemm_tile *t, int v0);

#if HN_GEMM_VECS == 4
GEMM_BLOCKS(1) GEMM_BLOCKS(2) GEMM_BLOCKS(3) GEMM_BLOCKS(4)
static gemm_block_fn *const gemm_blocks[4][HN_GEMM_ROWS] = { GEMM_BLOCK_NAMES(1), GEMM_BLOCK_NAMES(2), GEMM_BLOCK_NAMES(3), GEMM_BLOCK_NAMES(4) };
#else
GEMM_BLOCKS(1)
static gemm_block_fn *const gemm_blocks[1][HN_GEMM_ROWS] = { GEMM_BLOCK_NAMES(1) };
#endif

static void gemm_tile(const hn_gemm_tile *t)
{
    for (int v = 0, n = (t->cols + 15) / 16; v < n; v += HN_GEMM_VECS)
        gemm_blocks[(n - v < HN_GEMM_VECS ? n - v : HN_GEMM_VECS) - 1][t->rows - 1](t, v);
}

#ifndef HN_GEMM_TRANSPOSE
#define HN_GEMM_TRANSPOSE gemm_plain_transpose
#endif
static const hn_gemm_ops gemm_ops = {
    .tile = gemm_tile, .tile_bf16 = gemm_plain_tile_bf16,
    .rows = gemm_plain_rows, .transpose = HN_GEMM_TRANSPOSE, .copy = gemm_plain_copy
};

/* ---- gradients of norm and silu --------------------------------------------------------------------- */

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

#define HN_LANES_TRAIN .silu_mul_grad = silu_mul_grad, .rms_norm_grad = rms_norm_grad, .gemm = &gemm_ops
