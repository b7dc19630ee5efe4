/* The tile of training's products over sixteen lanes, for a level that has defined v16 and HN_INLINE.
 * HN_GEMM_VECS: how many vectors it is wide. */

#ifndef HN_GEMM_VECS
#define HN_GEMM_VECS 1
#endif
#ifdef __clang__
#define HN_GEMM_UNROLL _Pragma("unroll")
#else
#define HN_GEMM_UNROLL _Pragma("GCC unroll 8")
#endif
/* one word, for clang-format */
#define HN_GEMM_UNROLL_FOR(...) HN_GEMM_UNROLL for (__VA_ARGS__)
#define HN_EACH(i, n) HN_GEMM_UNROLL_FOR(int i = 0; i < (n); i++)

/* What becomes of the sums of M rows × V vectors from vector v0. */
HN_INLINE void gemm_finish(const hn_gemm_tile *t, const int M, const int V, int v0, v16 s[HN_GEMM_ROWS][HN_GEMM_VECS])
{
    float *sum = t->t + 16 * v0, *c = t->c + 16 * v0;
    if (!t->first)
        HN_EACH(i, M)
            HN_EACH(v, V) s[i][v] = v16_add(v16_load(sum + i * HN_GEMM_COLS + 16 * v), s[i][v]);
    if (!t->last) {
        HN_EACH(i, M)
            HN_EACH(v, V) v16_store(sum + i * HN_GEMM_COLS + 16 * v, s[i][v]);
        return;
    }
    if (t->alpha != 1.0f)
        HN_EACH(i, M)
            HN_EACH(v, V) s[i][v] = v16_mul(v16_set1(t->alpha), s[i][v]);
    if (t->cols - 16 * v0 >= 16 * V) {
        if (t->add)
            HN_EACH(i, M)
                HN_EACH(v, V) s[i][v] = v16_add(v16_load(c + i * t->ldc + 16 * v), s[i][v]);
        HN_EACH(i, M)
            HN_EACH(v, V) v16_store(c + i * t->ldc + 16 * v, s[i][v]);
        return;
    }
    float rest[HN_GEMM_ROWS][16 * HN_GEMM_VECS];
    HN_EACH(i, M)
        HN_EACH(v, V) v16_store(rest[i] + 16 * v, s[i][v]);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < t->cols - 16 * v0; j++) {
            float *to = c + i * t->ldc + j;
            *to = t->add ? *to + rest[i][j] : rest[i][j];
        }
}

/* M rows × V vectors from vector v0. */
HN_INLINE void gemm_block(const hn_gemm_tile *t, const int M, const int V, int v0)
{
    v16 s[HN_GEMM_ROWS][HN_GEMM_VECS];
    HN_EACH(i, M)
        HN_EACH(v, V) s[i][v] = v16_zero();
    const float *a = t->a, *b = (const float *)t->b + 16 * v0;
    int64_t row = t->a_row, a_step = t->a_step, b_step = t->b_step;
    if (t->last)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < 16 * V && j < t->cols - 16 * v0; j += 16)
                __builtin_prefetch(t->c + i * t->ldc + 16 * v0 + j, 1);
    for (int64_t k = t->steps; k > 0; k--, a += a_step, b += b_step) {
        v16 bv[HN_GEMM_VECS];
        HN_EACH(v, V) bv[v] = v16_load(b + 16 * v);
        HN_EACH(i, M) {
            v16 av = v16_set1(a[i * row]);
            HN_EACH(v, V) s[i][v] = v16_fma(av, bv[v], s[i][v]);
        }
    }
    gemm_finish(t, M, V, v0, s);
}

#define GEMM_BLOCK(M, V) \
    static void gemm_block_##M##_##V(const hn_gemm_tile *t, int v0) { gemm_block(t, M, V, v0); }
#define GEMM_BLOCKS(V) \
    GEMM_BLOCK(1, V) GEMM_BLOCK(2, V) GEMM_BLOCK(3, V) GEMM_BLOCK(4, V) GEMM_BLOCK(5, V) GEMM_BLOCK(6, V)
#define GEMM_BLOCK_NAMES(V)                                                                                        \
    {                                                                                                              \
        gemm_block_1_##V, gemm_block_2_##V, gemm_block_3_##V, gemm_block_4_##V, gemm_block_5_##V, gemm_block_6_##V \
    }
typedef void gemm_block_fn(const hn_gemm_tile *t, int v0);

#if HN_GEMM_VECS == 4
GEMM_BLOCKS(1)
GEMM_BLOCKS(2)
GEMM_BLOCKS(3)
GEMM_BLOCKS(4)

static gemm_block_fn *const gemm_blocks[4][HN_GEMM_ROWS] = { GEMM_BLOCK_NAMES(1), GEMM_BLOCK_NAMES(2),
                                                             GEMM_BLOCK_NAMES(3), GEMM_BLOCK_NAMES(4) };
#else
GEMM_BLOCKS(1)
static gemm_block_fn *const gemm_blocks[1][HN_GEMM_ROWS] = { GEMM_BLOCK_NAMES(1) };
#endif

static void gemm_tile(const hn_gemm_tile *t)
{
    for (int v = 0, n = (t->cols + 15) / 16; v < n; v += HN_GEMM_VECS)
        gemm_blocks[(n - v < HN_GEMM_VECS ? n - v : HN_GEMM_VECS) - 1][t->rows - 1](t, v);
}
