/* Products of float weights over sixteen lanes: element k in lane k mod 16, sums of 256 apart, as kernels.h fixes.
 * Included by lanes.h. The level may multiply by parts of the sixteen lanes (vp), so that a tile's sums stay in
 * registers. */

#ifndef HN_V16_PARTS
typedef v16 vp;
#define vp_zero v16_zero
#define vp_load v16_load
#define vp_load_f16 v16_load_f16
#define vp_load_bf16 v16_load_bf16
#define vp_add v16_add
#define vp_fma v16_fma
#define vp_store v16_store
#endif

/* Outputs whose lanes are kept at a time. Rows are read in long runs, from the second cache by the first columns, from
 * the first by the others, and a line of y is written at once. */
enum { FLOAT_ROWS = 16, FLOAT_COLS = 3 * HN_TILE_C };

#define LOAD_f32(V, p) V##_load((const float *)(p))
#define LOAD_f16(V, p) V##_load_f16((const uint16_t *)(p))
#define LOAD_bf16(V, p) V##_load_bf16((const uint16_t *)(p))

/* A vector of each of R rows and C columns from element `at`, added to p. */
#define MM_STEP(V, T, R, C, at)                                                \
    do {                                                                       \
        V xv[C];                                                               \
        for (int j = 0; j < C; j++) xv[j] = V##_load(x[j] + (at));             \
        for (int i = 0; i < R; i++) {                                          \
            V wv = LOAD_##T(V, w[i] + (at));                                   \
            for (int j = 0; j < C; j++) p[i][j] = V##_fma(wv, xv[j], p[i][j]); \
        }                                                                      \
    } while (0)

/* Adds elements [k0, k1) of R rows times C columns to the lanes of row i, column j at t[16·j + i]; k0 a multiple of
 * 256. FETCH: asks for the R rows behind these meanwhile, a line or two a step. */
#define MM_TILE(NAME, V, ELEM, T, R, C, UNROLL, FETCH)                                                          \
    static void NAME(const hn_mm *m, float(*t)[16], int64_t r, int64_t c, int64_t k0, int64_t k1)               \
    {                                                                                                           \
        const ELEM *w[R];                                                                                       \
        const float *x[C];                                                                                      \
        for (int i = 0; i < R; i++) w[i] = (const ELEM *)((const char *)m->w + (size_t)(r + i) * m->w_stride);  \
        for (int j = 0; j < C; j++) x[j] = (const float *)((const char *)m->x + (size_t)(c + j) * m->x_stride); \
        int64_t b = k0;                                                                                         \
        for (; b < k1 && (b + 256 <= k1 || k1 % 16 == 0); b += 256)                                             \
            for (int h = 0; h < 16; h += (int)(sizeof(V) / sizeof(float))) {                                    \
                V p[R][C];                                                                                      \
                for (int i = 0; i < R; i++)                                                                     \
                    for (int j = 0; j < C; j++) p[i][j] = V##_zero();                                           \
                if (b + 256 <= k1) {                                                                            \
                    _Pragma(UNROLL) for (int s = 0; s < 16; s++)                                                \
                    {                                                                                           \
                        if (FETCH && !h)                                                                        \
                            for (int i = 0; i < R * 16 * (int)sizeof(ELEM); i += 64)                            \
                                __builtin_prefetch((const char *)w[0] + R * m->w_stride +                       \
                                                       (size_t)(b + 16 * s) * R * sizeof(ELEM) + i,             \
                                                   0, 2);                                                       \
                        MM_STEP(V, T, R, C, b + h + 16 * s);                                                    \
                    }                                                                                           \
                } else {                                                                                        \
                    for (int64_t k = b + h; k < k1; k += 16) MM_STEP(V, T, R, C, k);                            \
                }                                                                                               \
                for (int i = 0; i < R; i++)                                                                     \
                    for (int j = 0; j < C; j++) {                                                               \
                        float *s = t[16 * j + i] + h;                                                           \
                        V##_store(s, b ? V##_add(V##_load(s), p[i][j]) : p[i][j]);                              \
                    }                                                                                           \
            }                                                                                                   \
        if (b < k1) NAME##_tail(t, w, x, b, k1);                                                                \
    }

/* The same of a last block [b, k1) that ends within sixteen lanes. */
#define MM_TAIL(NAME, ELEM, T, R, C)                                                                           \
    static void NAME##_tail(float(*t)[16], const ELEM *const *w, const float *const *x, int64_t b, int64_t k1) \
    {                                                                                                          \
        int64_t k = b;                                                                                         \
        v16 p[R][C];                                                                                           \
        for (int i = 0; i < R; i++)                                                                            \
            for (int j = 0; j < C; j++) p[i][j] = v16_zero();                                                  \
        for (; k + 16 <= k1; k += 16) MM_STEP(v16, T, R, C, k);                                                \
        int n = (int)(k1 - k);                                                                                 \
        ELEM wt[R][16];                                                                                        \
        float xt[C][16];                                                                                       \
        memset(wt, 0, sizeof wt);                                                                              \
        memset(xt, 0, sizeof xt);                                                                              \
        for (int i = 0; i < R; i++) memcpy(wt[i], w[i] + k, (size_t)n * sizeof(ELEM));                         \
        for (int j = 0; j < C; j++) memcpy(xt[j], x[j] + k, (size_t)n * sizeof(float));                        \
        for (int i = 0; i < R; i++)                                                                            \
            for (int j = 0; j < C; j++) {                                                                      \
                float *s = t[16 * j + i];                                                                      \
                p[i][j] = v16_fma_first(LOAD_##T(v16, wt[i]), v16_load(xt[j]), p[i][j], n);                    \
                v16_store(s, b ? v16_add(v16_load(s), p[i][j]) : p[i][j]);                                     \
            }                                                                                                  \
    }

#define MM_TILES(NAME, V, ELEM, T, R, C, UNROLL, FETCH) \
    MM_TAIL(NAME, ELEM, T, R, C) MM_TILE(NAME, V, ELEM, T, R, C, UNROLL, FETCH)

#ifndef HN_V16_TREES
/* y[i] = the tree of t[i], sixteen of them. */
HN_INLINE void v16_trees(float *y, float (*t)[16])
{
    for (int i = 0; i < 16; i++) y[i] = v16_tree(v16_load(t[i]));
}
#endif

/* The lanes of rows [r0, r0 + n) of column c at t, summed. */
HN_INLINE void store_trees(const hn_mm *m, float (*t)[16], int64_t r0, int64_t n, int64_t c)
{
    float *y = m->y + c * m->ldy + r0;
    if (n == FLOAT_ROWS) v16_trees(y, t);
    else
        for (int64_t r = 0; r < n; r++) y[r] = v16_tree(v16_load(t[r]));
}

#define MATMUL_FLOAT(NAME, ELEM, T)                                                                            \
    MM_TILES(NAME##_11, v16, ELEM, T, 1, 1, "GCC unroll 2", false)                                             \
    /* unrolled: the branch behind a block's last step would be guessed wrong */                               \
    MM_TILES(NAME##_rc, vp, ELEM, T, HN_TILE_R, HN_TILE_C, "GCC unroll 16", false)                             \
    MM_TILES(NAME##_1c, v16, ELEM, T, 1, HN_TILE_C, "GCC unroll 2", false)                                     \
    MM_TILES(NAME##_r1, v16, ELEM, T, 4, 1, "GCC unroll 2", false)                                             \
    /* elements [k0, k1) of rows [r0, r1), at most FLOAT_ROWS, and columns [c0, c1), at most FLOAT_COLS */     \
    HN_INLINE void NAME##_lanes(const hn_mm *m, float(*t)[16], int64_t r0, int64_t r1, int64_t c0, int64_t c1, \
                                int64_t k0, int64_t k1)                                                        \
    {                                                                                                          \
        int64_t c, r = r0, whole = c0 + (c1 - c0) / HN_TILE_C * HN_TILE_C;                                     \
        for (; r + HN_TILE_R <= r1; r += HN_TILE_R)                                                            \
            for (c = c0; c < whole; c += HN_TILE_C) NAME##_rc(m, t + 16 * (c - c0) + r - r0, r, c, k0, k1);    \
        for (; r < r1; r++)                                                                                    \
            for (c = c0; c < whole; c += HN_TILE_C) NAME##_1c(m, t + 16 * (c - c0) + r - r0, r, c, k0, k1);    \
        for (c = whole; c < c1; c++) {                                                                         \
            for (r = r0; r + 4 <= r1; r += 4) NAME##_r1(m, t + 16 * (c - c0) + r - r0, r, c, k0, k1);          \
            for (; r < r1; r++) NAME##_11(m, t + 16 * (c - c0) + r - r0, r, c, k0, k1);                        \
        }                                                                                                      \
    }                                                                                                          \
    static void NAME##_many(const hn_mm *m)                                                                    \
    {                                                                                                          \
        _Alignas(64) float t[FLOAT_COLS * FLOAT_ROWS][16];                                                     \
        for (int64_t c0 = 0; c0 < m->n_col; c0 += FLOAT_COLS)                                                  \
            for (int64_t r0 = m->r0; r0 < m->r1; r0 += FLOAT_ROWS) {                                           \
                int64_t c1 = c0 + FLOAT_COLS < m->n_col ? c0 + FLOAT_COLS : m->n_col;                          \
                int64_t r1 = r0 + FLOAT_ROWS < m->r1 ? r0 + FLOAT_ROWS : m->r1;                                \
                for (int64_t k = 0; k < m->n_in; k += HN_TILE_K)                                               \
                    NAME##_lanes(m, t, r0, r1, c0, c1, k, k + HN_TILE_K < m->n_in ? k + HN_TILE_K : m->n_in);  \
                for (int64_t c = c0; c < c1; c++) store_trees(m, t + 16 * (c - c0), r0, r1 - r0, c);           \
            }                                                                                                  \
    }

#ifndef HN_FLOAT_FEW
/* C columns: memory decides, rows go by once, four at a time. */
#define MM_FEW(NAME, V, ELEM, T, C)                                                         \
    MM_TILES(NAME##_few4##C, V, ELEM, T, 4, C, "GCC unroll 2", true)                        \
    MM_TILES(NAME##_few1##C, v16, ELEM, T, 1, C, "GCC unroll 2", false)                     \
    static void NAME##_few##C(const hn_mm *m)                                               \
    {                                                                                       \
        _Alignas(64) float t[C * FLOAT_ROWS][16];                                           \
        for (size_t i = 0; i < 4 * (size_t)m->n_in * sizeof(ELEM); i += 64)                 \
            __builtin_prefetch((const char *)m->w + (size_t)m->r0 * m->w_stride + i, 0, 2); \
        for (int64_t r0 = m->r0; r0 < m->r1; r0 += FLOAT_ROWS) {                            \
            int64_t r = r0, r1 = r0 + FLOAT_ROWS < m->r1 ? r0 + FLOAT_ROWS : m->r1;         \
            for (; r + 4 <= r1; r += 4) NAME##_few4##C(m, t + r - r0, r, 0, 0, m->n_in);    \
            for (; r < r1; r++) NAME##_few1##C(m, t + r - r0, r, 0, 0, m->n_in);            \
            for (int64_t c = 0; c < C; c++) store_trees(m, t + 16 * c, r0, r1 - r0, c);     \
        }                                                                                   \
    }

#ifndef HN_FLOAT_ONE /* a level may have its own */
MM_FEW(matmul_f32, v16, float, f32, 1)
MM_FEW(matmul_f16, v16, uint16_t, f16, 1)
MM_FEW(matmul_bf16, v16, uint16_t, bf16, 1)
#define HN_FLOAT_ONE(T) matmul_##T##_few1
#endif
#define MATMUL_FEW(NAME, ELEM, T)          \
    MM_FEW(NAME, vp, ELEM, T, 2)           \
    MM_FEW(NAME, vp, ELEM, T, 3)           \
    MM_FEW(NAME, vp, ELEM, T, 4)           \
    static void NAME##_few(const hn_mm *m) \
    {                                      \
        switch (m->n_col) {                \
        case 1: HN_FLOAT_ONE(T)(m); break; \
        case 2: NAME##_few2(m); break;     \
        case 3: NAME##_few3(m); break;     \
        default: NAME##_few4(m); break;    \
        }                                  \
    }
MATMUL_FEW(matmul_f32, float, f32)
MATMUL_FEW(matmul_f16, uint16_t, f16)
MATMUL_FEW(matmul_bf16, uint16_t, bf16)
#define HN_FLOAT_FEW(T) matmul_##T##_few
#endif

MATMUL_FLOAT(matmul_f32, float, f32)
MATMUL_FLOAT(matmul_f16, uint16_t, f16)
MATMUL_FLOAT(matmul_bf16, uint16_t, bf16)

/* A few columns keep up with memory by rows; many reuse registers in tiles. */
enum { FLOAT_FEW = 4 };
static void matmul_f32(const hn_mm *m) { (m->n_col <= FLOAT_FEW ? HN_FLOAT_FEW(f32) : matmul_f32_many)(m); }
static void matmul_f16(const hn_mm *m) { (m->n_col <= FLOAT_FEW ? HN_FLOAT_FEW(f16) : matmul_f16_many)(m); }
static void matmul_bf16(const hn_mm *m) { (m->n_col <= FLOAT_FEW ? HN_FLOAT_FEW(bf16) : matmul_bf16_many)(m); }
