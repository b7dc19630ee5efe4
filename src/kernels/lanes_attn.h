/* Attention over sixteen lanes, included by lanes.h on each level. Lanes are keys while
 * scores are summed and dims while values are, so nothing is summed across lanes but
 * the softmax. Up to HN_ATTN_ROWS rows (queries of one KV head) share every load of K
 * and V; with many rows (prefill) a block of 64 keys is widened to f32 once for all.
 *
 * A level may define HN_LANES_DOT8 (with i16v, k8 and their operations) for q8_0, and
 * HN_LANES_STORE_F16 for stores; without them it inherits those from below. */

#include "kernels/lanes_scores.h"

/* ---- scores: p[row][64] = scale · q · k ---------------------------------------------------- */

#define ATTN_SCORES(NAME, ELEM, LOAD)                                                                                  \
    HN_INLINE void NAME(const attn_rows *a, const void *block, int64_t r, const int NQ, const int V, const bool ahead) \
    {                                                                                                                  \
        const int64_t d = a->d;                                                                                        \
        const float *q = a->q + r * d;                                                                                 \
        const ELEM *k = block;                                                                                         \
        for (int kb = 0; kb < 4; kb += V) {                                                                            \
            const ELEM *kk = k + kb * d * HN_KEY_BLOCK;                                                                \
            const char *next = (const char *)kk + a->ahead;                                                            \
            v16 acc[HN_ATTN_ROWS][4];                                                                                  \
            HN_UNROLL_FOR(int i = 0; i < NQ; i++)                                                                      \
                HN_UNROLL_FOR(int j = 0; j < V; j++) acc[i][j] = v16_zero();                                           \
            for (int64_t x = 0; x < d; x++) {                                                                          \
                v16 kv[4];                                                                                             \
                HN_UNROLL_FOR(int j = 0; j < V; j++) kv[j] = LOAD(kk + (j * d + x) * HN_KEY_BLOCK);                    \
                if (ahead) {                                                                                           \
                    HN_UNROLL_FOR(int j = 0; j < 4; j++)                                                               \
                        if (j == 0 || j < V * (int)sizeof(ELEM) / 4) __builtin_prefetch(next + 64 * j, 0, 2);          \
                    next += V * (int)sizeof(ELEM) * HN_KEY_BLOCK;                                                      \
                }                                                                                                      \
                HN_UNROLL_FOR(int i = 0; i < NQ; i++) {                                                                \
                    v16 b = v16_set1(q[i * d + x]);                                                                    \
                    HN_UNROLL_FOR(int j = 0; j < V; j++) acc[i][j] = v16_fma(b, kv[j], acc[i][j]);                     \
                }                                                                                                      \
            }                                                                                                          \
            HN_UNROLL_FOR(int i = 0; i < NQ; i++)                                                                      \
                HN_UNROLL_FOR(int j = 0; j < V; j++)                                                                   \
                    v16_store(a->p + (r + i) * HN_SOFT_BLOCK + 16 * (kb + j), v16_mul(acc[i][j], v16_set1(a->scale))); \
        }                                                                                                              \
    }
ATTN_SCORES(scores_f16, uint16_t, v16_load_f16)
ATTN_SCORES(scores_f32, float, v16_load)

/* ---- values: o[row] = o·c, then the chain of fma(p_t, v_t, o) over t in [t0, t1) -------------- */

#define ATTN_VALUES_STEP(ELEM, LOADV, V)                                                         \
    do {                                                                                         \
        v16 acc[HN_ATTN_ROWS][4];                                                                \
        HN_UNROLL_FOR(int i = 0; i < NQ; i++)                                                    \
            HN_UNROLL_FOR(int j = 0; j < (V); j++) {                                             \
                acc[i][j] = v16_load(o + i * d + x + 16 * j);                                    \
                if (first) acc[i][j] = v16_mul(acc[i][j], v16_set1(a->c[r + i]));                \
            }                                                                                    \
        for (int64_t t = t0; t < t1; t++) {                                                      \
            v16 vv[4];                                                                           \
            HN_UNROLL_FOR(int j = 0; j < (V); j++) {                                             \
                vv[j] = LOADV(t, x + 16 * j);                                                    \
                if (ahead && j * 16 * (int)sizeof(ELEM) % 64 == 0) AHEADV(t, x + 16 * j);        \
            }                                                                                    \
            HN_UNROLL_FOR(int i = 0; i < NQ; i++) {                                              \
                v16 b = v16_set1(p[i * HN_SOFT_BLOCK + t]);                                      \
                HN_UNROLL_FOR(int j = 0; j < (V); j++) acc[i][j] = v16_fma(b, vv[j], acc[i][j]); \
            }                                                                                    \
        }                                                                                        \
        HN_UNROLL_FOR(int i = 0; i < NQ; i++)                                                    \
            HN_UNROLL_FOR(int j = 0; j < (V); j++) v16_store(o + i * d + x + 16 * j, acc[i][j]); \
    } while (0)

/* The dims behind the last whole vector, with those before them once more, which keep what they are. */
#define ATTN_VALUES_REST(LOADV)                                                                                     \
    do {                                                                                                            \
        const int64_t y = d - 16;                                                                                   \
        const int done = (int)(x - y);                                                                              \
        v16 acc[HN_ATTN_ROWS];                                                                                      \
        HN_UNROLL_FOR(int i = 0; i < NQ; i++) {                                                                     \
            acc[i] = v16_load(o + i * d + y);                                                                       \
            if (first) acc[i] = v16_mul(acc[i], v16_set1(a->c[r + i]));                                             \
        }                                                                                                           \
        for (int64_t t = t0; t < t1; t++) {                                                                         \
            v16 vv = LOADV(t, y);                                                                                   \
            HN_UNROLL_FOR(int i = 0; i < NQ; i++) acc[i] = v16_fma(v16_set1(p[i * HN_SOFT_BLOCK + t]), vv, acc[i]); \
        }                                                                                                           \
        HN_UNROLL_FOR(int i = 0; i < NQ; i++)                                                                       \
            v16_store(o + i * d + y, v16_keep_first(v16_load(o + i * d + y), acc[i], done));                        \
    } while (0)

#define ATTN_VALUES(NAME, ELEM, LOADV, RESTV, ONEV, LOCALS)                                                   \
    HN_INLINE void NAME(const attn_rows *a, const void *block, int64_t r, int64_t t0, int64_t t1, bool first, \
                        const int NQ, const int V, const bool ahead)                                          \
    {                                                                                                         \
        const int64_t d = a->d_v;                                                                             \
        const float *p = a->p + r * HN_SOFT_BLOCK;                                                            \
        float *o = a->o + r * d;                                                                              \
        const ELEM *v = block;                                                                                \
        LOCALS                                                                                                \
        int64_t x = 0;                                                                                        \
        for (; x + 16 * V <= d; x += 16 * V) ATTN_VALUES_STEP(ELEM, LOADV, V);                                \
        for (; x + 16 <= d; x += 16) ATTN_VALUES_STEP(ELEM, LOADV, 1);                                        \
        if (x == d) return;                                                                                   \
        if (x > 0) {                                                                                          \
            ATTN_VALUES_REST(RESTV);                                                                          \
            return;                                                                                           \
        }                                                                                                     \
        for (; x < d; x++) /* narrower than a vector */                                                       \
            for (int i = 0; i < NQ; i++) {                                                                    \
                float s = first ? o[i * d + x] * a->c[r + i] : o[i * d + x];                                  \
                for (int64_t t = t0; t < t1; t++) s = fmaf(p[i * HN_SOFT_BLOCK + t], ONEV(t, x), s);          \
                o[i * d + x] = s;                                                                             \
            }                                                                                                 \
    }
#define AHEADV(t, x) __builtin_prefetch((const char *)(v + (t)*d + (x)) + a->ahead_v, 0, 2)
#define LOADV_F16(t, x) v16_load_f16(v + (t)*d + (x))
#define ONEV_F16(t, x) hn_f16_to_f32(v[(t)*d + (x)])
#define LOADV_F32(t, x) v16_load(v + (t)*d + (x))
#define ONEV_F32(t, x) v[(t)*d + (x)]
ATTN_VALUES(values_f16, uint16_t, LOADV_F16, LOADV_F16, ONEV_F16, )
ATTN_VALUES(values_f32, float, LOADV_F32, LOADV_F32, ONEV_F32, )
#undef AHEADV

/* ---- the softmax of a block --------------------------------------------------------------------- */

/* Rows [r0, r1) of p become exp(p − new maximum); m, l and c follow. Of the block's keys row r sees
 * those before left + r/n_q and, with a window, from hidden + r/n_q on. */
HN_INLINE void attn_softmax(const attn_rows *a, int64_t r0, int64_t r1, int64_t n_q, int64_t left, int64_t hidden,
                            int64_t there)
{
    for (int64_t r = r0; r < r1; r++) {
        float *p = a->p + r * HN_SOFT_BLOCK;
        int64_t n = at_most(left + r / n_q, there);
        v16 s[4];
        HN_UNROLL_FOR(int j = 0; j < 4; j++) s[j] = v16_load(p + 16 * j);
        if (n < HN_SOFT_BLOCK)
            HN_UNROLL_FOR(int j = 0; j < 4; j++) {
                s[j] = v16_keep_first(s[j], v16_set1(-INFINITY), (int)(n - 16 * j < 0 ? 0 : n - 16 * j));
                v16_store(p + 16 * j, s[j]);
            }
        if (hidden + r / n_q > 0) {
            n = hidden + r / n_q;
            HN_UNROLL_FOR(int j = 0; j < 4; j++) {
                s[j] = v16_keep_first(v16_set1(-INFINITY), s[j], (int)(n - 16 * j < 0 ? 0 : n - 16 * j));
                v16_store(p + 16 * j, s[j]);
            }
        }
        a->c[r] = v16_hmax(v16_max(v16_max(s[0], s[1]), v16_max(s[2], s[3])));
    }
    for (int64_t r = r0 & ~(int64_t)15; r < r1; r += 16) { /* rows outside [r0, r1) keep their m */
        float keep[16], b[16];
        for (int i = 0; i < 16; i++) b[i] = r + i >= r0 && r + i < r1 ? a->c[r + i] : -INFINITY;
        v16 m = v16_load(a->m + r), mn = v16_max(m, v16_load(b));
        v16_store(keep, v16_exp(v16_sub(m, mn)));
        v16_store(a->m + r, mn);
        for (int i = 0; i < 16; i++)
            if (r + i >= r0 && r + i < r1) a->c[r + i] = keep[i];
    }
    for (int64_t r = r0; r < r1; r++) {
        float *p = a->p + r * HN_SOFT_BLOCK;
        v16 e[4], mn = v16_set1(a->m[r]);
        HN_UNROLL_FOR(int j = 0; j < 4; j++) {
            e[j] = v16_exp(v16_sub(v16_load(p + 16 * j), mn));
            v16_store(p + 16 * j, e[j]);
        }
        a->l[r] = a->l[r] * a->c[r] + v16_tree(v16_add(v16_add(v16_add(e[0], e[1]), e[2]), e[3]));
    }
}

/* ---- merging ------------------------------------------------------------------------------------- */

HN_INLINE void merge_one(float *M, float *L, float *O, float m, float l, const float *o, int64_t d)
{
    float mn = *M > m ? *M : m, a = hn_exp_inline(*M - mn), b = hn_exp_inline(m - mn);
    int64_t i = 0;
    *L = fmaf(l, b, *L * a);
    for (; i + 16 <= d; i += 16)
        v16_store(O + i, v16_fma(v16_load(o + i), v16_set1(b), v16_mul(v16_load(O + i), v16_set1(a))));
    for (; i < d; i++) O[i] = fmaf(o[i], b, O[i] * a);
    *M = mn;
}

/* A sink takes its share and adds nothing. */
static void merge_sink(float *M, float *L, float *O, float sink, int64_t d)
{
    float mn = *M > sink ? *M : sink, a = hn_exp_inline(*M - mn), b = hn_exp_inline(sink - mn);
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

/* ---- q8_0 ------------------------------------------------------------------------------------------ */

#if defined(HN_LANES_DOT8)
/* The scales of V of four blocks as floats, [64][groups]. */
static void scales_q8(float *y, const void *block, int64_t d, ptrdiff_t ahead)
{
    const int64_t n_g = hn_cache_groups(d);
    const size_t bytes = hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    for (int kb = 0; kb < 4; kb++) {
        const uint16_t *x =
            (const uint16_t *)((const char *)block + (size_t)kb * bytes + hn_cache_d4(d) * HN_KEY_BLOCK);
        for (int64_t i = 0; i < n_g; i++, y += 16) {
            __builtin_prefetch((const char *)(x + 16 * i) + ahead, 0, 2);
            v16_store(y, v16_load_f16(x + 16 * i));
        }
    }
}

#define CODE_Q8(t, x) ((const int8_t *)v + (size_t)((t) / HN_KEY_BLOCK) * bytes + (t) % HN_KEY_BLOCK * d4 + (x))
#define SCALE_Q8(t, x) scale[(t)*n_g + (x) / HN_CACHE_GROUP]
#define LOADV_Q8(t, x) v16_mul(v16_load_i8(CODE_Q8(t, x)), v16_set1(SCALE_Q8(t, x)))
/* The last dims may be of two groups. */
#define RESTV_Q8(t, x)                                                                                            \
    v16_mul(v16_load_i8(CODE_Q8(t, x)), v16_keep_first(v16_set1(SCALE_Q8(t, x)), v16_set1(SCALE_Q8(t, (x) + 15)), \
                                                       (int)at_most(HN_CACHE_GROUP - (x) % HN_CACHE_GROUP, 16)))
#define ONEV_Q8(t, x) ((float)*CODE_Q8(t, x) * SCALE_Q8(t, x))
#define AHEADV(t, x) __builtin_prefetch(CODE_Q8(t, x) + a->ahead_v, 0, 2)
#define Q8_LOCALS                                                          \
    const int64_t d4 = hn_cache_d4(a->d_v), n_g = hn_cache_groups(a->d_v); \
    const size_t bytes = hn_cache_block_bytes(HN_CACHE_Q8_0, a->d_v);      \
    const float *scale = a->wide;
ATTN_VALUES(values_q8, int8_t, LOADV_Q8, RESTV_Q8, ONEV_Q8, Q8_LOCALS)
#undef AHEADV

/* The first n of d dims of rows in the layout of V: y[64][n], or turned, four times [n][16] as keys are. */
HN_INLINE void open_rows_q8(float *y, const void *v, int64_t d, int64_t n, const bool turned)
{
    const int64_t d4 = hn_cache_d4(d), n_g = hn_cache_groups(d);
    const size_t bytes = hn_cache_block_bytes(HN_CACHE_Q8_0, d);
    for (int64_t b = 0; b < HN_SOFT_BLOCK; b += HN_KEY_BLOCK, y += n * HN_KEY_BLOCK) {
        const uint16_t *from = (const uint16_t *)(CODE_Q8(b, 0) + d4 * HN_KEY_BLOCK);
        for (int64_t x = 0; x < n;) {
            int64_t g = x / HN_CACHE_GROUP, end = at_most(x + HN_CACHE_GROUP, n);
            uint16_t half[HN_KEY_BLOCK];
            float scale[HN_KEY_BLOCK];
            for (int t = 0; t < HN_KEY_BLOCK; t++) half[t] = from[t * n_g + g];
            v16_store(scale, v16_load_f16(half));
            for (; x + 16 <= end; x += 16) {
                v16 square[16];
                HN_UNROLL_FOR(int t = 0; t < 16; t++)
                    square[t] = v16_mul(v16_load_i8(CODE_Q8(b + t, x)), v16_set1(scale[t]));
                if (turned) v16_turn(square);
                HN_UNROLL_FOR(int t = 0; t < 16; t++)
                    v16_store(turned ? y + (x + t) * HN_KEY_BLOCK : y + t * n + x, square[t]);
            }
            for (; x < end; x++)
                for (int t = 0; t < HN_KEY_BLOCK; t++)
                    y[turned ? x * HN_KEY_BLOCK + t : t * n + x] = (float)*CODE_Q8(b + t, x) * scale[t];
        }
    }
}
static void open_q8(float *y, const void *v, int64_t d, int64_t d_v) { open_rows_q8(y, v, d, d_v, false); }
static void open_k_latent_q8(float *y, const void *v, int64_t d, int64_t d_v) { open_rows_q8(y, v, d, d, true); }
#endif

/* Query rows side by side, quantized for q8_0, into what is left of the scratch. */
static void attn_prepare(attn_rows *a, const hn_attn *h, hn_cache_type type, float *at)
{
    const int64_t d = h->d, rows = h->n_tok * h->n_q;
    if (type != HN_CACHE_Q8_0) {
        a->q = h->n_tok == 1 ? h->q : at;
        for (int64_t t = 0; t < h->n_tok && h->n_tok > 1; t++)
            memcpy(at + t * h->n_q * d, h->q + t * h->q_stride, (size_t)(h->n_q * d) * sizeof(float));
        return;
    }
#if defined(HN_LANES_DOT8)
    const int64_t d4 = hn_cache_d4(d), n_g = hn_cache_groups(d);
    float *dq = at;
    int32_t *qsum = (int32_t *)(dq + rows * n_g);
    int8_t *q = (int8_t *)(qsum + rows * n_g);
    a->dq = dq;
    a->qsum = qsum;
    a->q = (const float *)q;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = h->q + r / h->n_q * h->q_stride + r % h->n_q * d;
        for (int64_t g = 0; g < n_g; g++) {
            float row[HN_CACHE_GROUP] = { 0 };
            int8_t code[HN_CACHE_GROUP];
            int32_t sum[2];
            int64_t n = at_most(d - g * HN_CACHE_GROUP, HN_CACHE_GROUP);
            memcpy(row, x + g * HN_CACHE_GROUP, (size_t)n * sizeof(float));
            dq[r * n_g + g] = quantize_block(code, sum, row, HN_CACHE_GROUP);
            qsum[r * n_g + g] = sum[0] + sum[1];
            memcpy(q + r * d4 + g * HN_CACHE_GROUP, code, (size_t)at_most(d4 - g * HN_CACHE_GROUP, HN_CACHE_GROUP));
        }
    }
#endif
}

/* ---- tiles of 1 to HN_ATTN_ROWS rows ------------------------------------------------------------------ */

typedef void values_fn(const attn_rows *a, const void *block, int64_t r, int64_t t0, int64_t t1, bool first);

#define VALUES_N(NAME, FROM, N, VECS, AHEAD)                                                                     \
    static void NAME##_##N(const attn_rows *a, const void *block, int64_t r, int64_t t0, int64_t t1, bool first) \
    {                                                                                                            \
        FROM(a, block, r, t0, t1, first, N, VECS(N), AHEAD);                                                     \
    }
#define TABLE(NAME)                                                      \
    {                                                                    \
        NULL, NAME##_1, NAME##_2, NAME##_3, NAME##_4, NAME##_5, NAME##_6 \
    }

TILES(SCORES, f16_scores, scores_f16, HN_ATTN_VECS, true)
TILES(SCORES, f32_scores, scores_f32, HN_ATTN_VECS, true)
TILES(SCORES, wide_scores, scores_f32, HN_ATTN_VECS, false)
TILES(VALUES, f16_values, values_f16, HN_ATTN_VECS, true)
TILES(VALUES, f32_values, values_f32, HN_ATTN_VECS, true)
TILES(VALUES, wide_values, values_f32, HN_ATTN_VECS, false)
#if defined(HN_LANES_DOT8)
TILES(SCORES, q8_scores, scores_q8, HN_ATTN_VECS_DOT, true)
TILES(VALUES, q8_values, values_q8, HN_ATTN_VECS, true)
#endif

/* How a cache type is read: in place by few rows; by many after open_k, open_v filled
 * a->wide, where there is such a function. */
typedef void open_fn(float *y, const void *block, int64_t d, int64_t d_v);
typedef struct attn_reader {
    scores_fn *scores[HN_ATTN_ROWS + 1], *many_scores[HN_ATTN_ROWS + 1];
    values_fn *values[HN_ATTN_ROWS + 1], *many_values[HN_ATTN_ROWS + 1];
    open_fn *open_k, *open_v;
    void (*scales_v)(float *y, const void *block, int64_t d, ptrdiff_t ahead); /* for values in place */
    bool always;                                                               /* opened, also for few rows */
} attn_reader;

static void open_f16(float *y, const void *block, int64_t d, int64_t d_v)
{
    const uint16_t *x = block;
    int64_t i = 0, n = HN_SOFT_BLOCK * d; /* whole vectors */
    for (; i < n; i += 16) v16_store(y + i, v16_load_f16(x + i));
}

/* A block of latent rows, [64][d]. As keys: four times y[x][16], sixteen positions beside each other, turned in
 * registers: one number at a time would write 64 · d lines, each of them sixteen times over, and d of them are more
 * than L1 holds. As values: y[64][d_v], the first d_v numbers of each row. */
#define OPEN_LATENT(NAME, ELEM, LOAD, ONE)                                                              \
    static void open_k_##NAME(float *y, const void *block, int64_t d, int64_t d_v)                      \
    {                                                                                                   \
        const ELEM *row = block;                                                                        \
        for (int64_t b = 0; b < HN_SOFT_BLOCK; b += HN_KEY_BLOCK, y += d * HN_KEY_BLOCK) {              \
            int64_t x = 0;                                                                              \
            for (; x + 16 <= d; x += 16) {                                                              \
                v16 square[16];                                                                         \
                HN_UNROLL_FOR(int t = 0; t < 16; t++) square[t] = LOAD(b + t, x);                       \
                v16_turn(square);                                                                       \
                HN_UNROLL_FOR(int j = 0; j < 16; j++) v16_store(y + (x + j) * HN_KEY_BLOCK, square[j]); \
            }                                                                                           \
            for (; x < d; x++)                                                                          \
                for (int64_t t = 0; t < HN_KEY_BLOCK; t++) y[x * HN_KEY_BLOCK + t] = ONE(b + t, x);     \
        }                                                                                               \
    }                                                                                                   \
    static void open_v_##NAME(float *y, const void *block, int64_t d, int64_t d_v)                      \
    {                                                                                                   \
        const ELEM *row = block;                                                                        \
        for (int64_t t = 0; t < HN_SOFT_BLOCK; t++, y += d_v) {                                         \
            int64_t x = 0;                                                                              \
            for (; x + 16 <= d_v; x += 16) v16_store(y + x, LOAD(t, x));                                \
            for (; x < d_v; x++) y[x] = ONE(t, x);                                                      \
        }                                                                                               \
    }
#define LOAD_ROW_F16(t, x) v16_load_f16(row + (t)*d + (x))
#define ONE_ROW_F16(t, x) hn_f16_to_f32(row[(t)*d + (x)])
#define LOAD_ROW_F32(t, x) v16_load(row + (t)*d + (x))
#define ONE_ROW_F32(t, x) row[(t)*d + (x)]
OPEN_LATENT(latent_f16, uint16_t, LOAD_ROW_F16, ONE_ROW_F16)
OPEN_LATENT(latent_f32, float, LOAD_ROW_F32, ONE_ROW_F32)

static const attn_reader attn_readers[HN_CACHE_TYPES] = {
    [HN_CACHE_F16] = { TABLE(f16_scores), TABLE(wide_scores), TABLE(f16_values), TABLE(wide_values), open_f16, open_f16,
                       NULL, false },
    [HN_CACHE_F32] = { TABLE(f32_scores), TABLE(f32_scores), TABLE(f32_values), TABLE(f32_values), NULL, NULL, NULL,
                       false },
#if defined(HN_LANES_DOT8)
    [HN_CACHE_Q8_0] = { TABLE(q8_scores), TABLE(q8_scores), TABLE(q8_values), TABLE(wide_values), NULL, open_q8,
                        scales_q8, false },
#endif
}, latent_readers[HN_CACHE_TYPES] = {
    [HN_CACHE_F16] = { TABLE(wide_scores), TABLE(wide_scores), TABLE(wide_values), TABLE(wide_values),
                       open_k_latent_f16, open_v_latent_f16, NULL, true },
    [HN_CACHE_F32] = { TABLE(wide_scores), TABLE(wide_scores), TABLE(wide_values), TABLE(wide_values),
                       open_k_latent_f32, open_v_latent_f32, NULL, true },
#if defined(HN_LANES_DOT8)
    [HN_CACHE_Q8_0] = { TABLE(wide_scores), TABLE(wide_scores), TABLE(wide_values), TABLE(wide_values),
                        open_k_latent_q8, open_q8, NULL, true },
#endif
};

/* s = tanh(s·(1/cap))·cap of rows [r0, rows) */
static void cap_scores(const attn_rows *a, int64_t r0, int64_t rows)
{
    const v16 cap = v16_set1(a->cap), inverse = v16_set1(1.0f / a->cap);
    for (float *p = a->p + r0 * HN_SOFT_BLOCK, *end = a->p + rows * HN_SOFT_BLOCK; p < end; p += 16)
        v16_store(p, v16_mul(v16_tanh(v16_mul(v16_load(p), inverse)), cap));
}

/* s = fma(−fade, |query − key|, s) of rows [r0, rows) */
static void fade_scores(const attn_rows *a, int64_t r0, int64_t rows, int64_t n_q)
{
    float key[HN_SOFT_BLOCK];
    for (int t = 0; t < HN_SOFT_BLOCK; t++) key[t] = (float)t;
    for (int64_t r = r0; r < rows; r++) {
        const v16 fade = v16_set1(-a->fade[r % n_q]), query = v16_set1((float)(a->away + r / n_q));
        float *p = a->p + r * HN_SOFT_BLOCK;
        for (int j = 0; j < HN_SOFT_BLOCK; j += 16) {
            v16 d = v16_sub(query, v16_load(key + j));
            v16_store(p + j, v16_fma(fade, v16_max(d, v16_sub(v16_zero(), d)), v16_load(p + j)));
        }
    }
}

/* Rows of the next register tile out of n: all tiles about equally tall. */
HN_INLINE int tile_rows(int64_t n)
{
    int64_t tiles = (n + HN_ATTN_ROWS - 1) / HN_ATTN_ROWS;
    return (int)((n + tiles - 1) / tiles);
}

/* A block that is opened is read at once, and nothing hides then how long memory takes: its lines are asked for while
 * the ones before it are computed with, some by each register tile. Rows [r, r + n) of [r0, rows) ask now. */
HN_INLINE void fetch_ahead(const char *block, ptrdiff_t ahead, int64_t bytes, int64_t r0, int64_t r, int64_t n,
                           int64_t rows)
{
    const char *at = block + ahead, *end = at + bytes * (r + n - r0) / (rows - r0);
    for (at += bytes * (r - r0) / (rows - r0) & ~(int64_t)63; at < end; at += 64) __builtin_prefetch(at, 0, 2);
}

/* One block of 64 keys for rows [r0, rows); the first token sees `left` of its keys, of which its window hides
 * `hidden`; one more each for every token after it; but of the `there` keys that there are. */
static void attn_block(const attn_rows *a, const attn_reader *how, const char *k, const char *v, int64_t r0,
                       int64_t rows, int64_t n_q, int64_t left, int64_t hidden, int64_t there)
{
    const bool many = rows >= HN_ATTN_WIDE || how->always;
    const int64_t d_row = how->always ? a->d : a->d_v; /* of values, which latent rows are a part of */
    const void *kb = k, *vb = v;
    int n;
    if (many && how->open_k) how->open_k(a->wide, k, a->d, a->d_v), kb = a->wide;
    for (int64_t r = r0; r < rows; r += n) {
        n = tile_rows(rows - r);
        if (kb != k && a->ahead) fetch_ahead(k, a->ahead, a->block_bytes, r0, r, n, rows);
        (many ? how->many_scores : how->scores)[n](a, kb, r);
    }
    if (a->cap != 0) cap_scores(a, r0, rows);
    if (a->fade) fade_scores(a, r0, rows, n_q);
    attn_softmax(a, r0, rows, n_q, left, hidden, there);
    if (many && how->open_v) how->open_v(a->wide, v, d_row, a->d_v), vb = a->wide;
    if (!many && how->scales_v) how->scales_v(a->wide, v, d_row, a->ahead_v);
    values_fn *const *values = many ? how->many_values : how->values;
    there = at_most(there, HN_SOFT_BLOCK);
    for (int64_t r = r0; r < rows; r += n) {
        n = tile_rows(rows - r);
        int64_t t1 = at_most(left + r / n_q, there);              /* all rows of the tile see these, */
        int64_t t0 = hidden + r / n_q > 0 ? hidden + r / n_q : 0; /* but for later tokens the first few, whose p is 0 */
        if (vb != v && v != k && a->ahead) fetch_ahead(v, a->ahead_v, a->v_bytes, r0, r, n, rows);
        values[n](a, vb, r, t0, t1, true);
        for (int64_t i = r + 1; i < r + n && t1 < there; i++) { /* a later token's own */
            int64_t t2 = at_most(left + i / n_q, there);
            if (t2 > t1) values[1](a, vb, i, t1, t2, false);
        }
    }
}

HN_INLINE float *take(float **at, int64_t n)
{
    float *p = *at;
    *at += n;
    return p;
}

static void attn_walk(const hn_attn *h, hn_cache_type type, const attn_reader *how)
{
    const int64_t d = h->d, d_v = h->d_v ? h->d_v : d, n_q = h->n_q, rows = h->n_tok * n_q,
                  rows16 = (rows + 15) & ~(int64_t)15;
    const int64_t n_last = h->n_kv + h->n_tok - 1, n_all = h->n_end ? at_most(n_last, h->n_end) : n_last; /* keys */
    const int64_t lo = h->window ? h->n_kv - h->window : INT64_MIN / 2; /* the first token sees keys from here on */
    const size_t pos_bytes = hn_cache_block_bytes(type, d) / HN_KEY_BLOCK,
                 v_bytes = hn_cache_block_bytes(type, how->always ? d : d_v) / HN_KEY_BLOCK;
    float *at = h->scratch;
    attn_rows a = { .d = d,
                    .d_v = d_v,
                    .block_bytes = (int64_t)pos_bytes * HN_SOFT_BLOCK,
                    .v_bytes = (int64_t)v_bytes * HN_SOFT_BLOCK,
                    .scale = h->scale,
                    .cap = h->cap,
                    .fade = h->fade };
    a.wide = take(&at, HN_SOFT_BLOCK * ((d + 15) & ~(int64_t)15));
    a.p = take(&at, rows16 * HN_SOFT_BLOCK);
    a.M = take(&at, rows16);
    a.L = take(&at, rows16);
    a.m = take(&at, rows16);
    a.l = take(&at, rows16);
    a.c = take(&at, rows16);
    a.o = take(&at, rows16 * d_v);
    attn_prepare(&a, h, how->always ? HN_CACHE_F32 : type, at);
    for (int64_t r = 0; r < rows16; r++) a.M[r] = -INFINITY, a.L[r] = 0.0f;
    for (int64_t r = 0; r < rows && !h->part; r++)
        memset(h->out + r / n_q * h->out_stride + r % n_q * d_v, 0, (size_t)d_v * sizeof(float));
    int64_t split = h->part ? h->split0 : 0, end = h->part ? h->split1 : (n_all + HN_SPLIT - 1) / HN_SPLIT;
    if (lo > 0 && split < lo / HN_SPLIT) split = lo / HN_SPLIT;
    if (split < h->split_first) split = h->split_first;
    for (; split < end && split * HN_SPLIT < n_all; split++) {
        int64_t s0 = split * HN_SPLIT, s1 = at_most(s0 + HN_SPLIT, n_all);
        int64_t first = s0 < h->n_kv ? 0 : (s0 - h->n_kv + 1) * n_q; /* the first row that sees a key */
        int64_t last =
            at_most(h->n_tok, s0 + HN_SPLIT - lo) * n_q; /* rows from here on see none behind their windows */
        for (int64_t r = 0; r < rows16; r++) a.m[r] = -INFINITY, a.l[r] = 0.0f;
        memset(a.o + first * d_v, 0, (size_t)((last - first) * d_v) * sizeof(float));
        for (int64_t b = s0; b < s1; b += HN_SOFT_BLOCK) {
            int64_t r0 = b < h->n_kv ? 0 : (b - h->n_kv + 1) * n_q;
            int64_t r1 = at_most(h->n_tok, b + HN_SOFT_BLOCK - lo) * n_q;
            if (r0 >= r1) continue; /* wholly hidden */
            int64_t next = b + HN_ATTN_AHEAD * HN_SOFT_BLOCK;
            size_t at_block = hn_attn_at(h, pos_bytes, b), at_v = hn_attn_at(h, v_bytes, b);
            a.away = h->pos - b;
            a.ahead = next < n_all ? (ptrdiff_t)(hn_attn_at(h, pos_bytes, next) - at_block) : 0;
            a.ahead_v = next < n_all ? (ptrdiff_t)(hn_attn_at(h, v_bytes, next) - at_v) : 0;
            attn_block(&a, how, (const char *)h->k + at_block, (const char *)h->v + at_v, r0, r1, n_q, h->n_kv - b,
                       lo - b, n_all - b);
        }
        for (int64_t r = first; r < last; r++) {
            if (!h->part) {
                merge_one(&a.M[r], &a.L[r], h->out + r / n_q * h->out_stride + r % n_q * d_v, a.m[r], a.l[r],
                          a.o + r * d_v, d_v);
                continue;
            }
            float *part = h->part + ((split - h->split0) * rows + r) * (d_v + 2);
            part[0] = a.m[r];
            part[1] = a.l[r];
            memcpy(part + 2, a.o + r * d_v, (size_t)d_v * sizeof(float));
        }
    }
    for (int64_t r = 0; r < rows && !h->part; r++) {
        float *out = h->out + r / n_q * h->out_stride + r % n_q * d_v;
        if (h->sink) merge_sink(&a.M[r], &a.L[r], out, h->sink[r % n_q], d_v);
        for (int64_t i = 0; i < d_v; i++) out[i] = out[i] / a.L[r];
    }
}

static void attn_f16(const hn_attn *h) { attn_walk(h, HN_CACHE_F16, &attn_readers[HN_CACHE_F16]); }
static void attn_f32(const hn_attn *h) { attn_walk(h, HN_CACHE_F32, &attn_readers[HN_CACHE_F32]); }
static void latent_f16(const hn_attn *h) { attn_walk(h, HN_CACHE_F16, &latent_readers[HN_CACHE_F16]); }
static void latent_f32(const hn_attn *h) { attn_walk(h, HN_CACHE_F32, &latent_readers[HN_CACHE_F32]); }
#if defined(HN_LANES_DOT8)
static void attn_q8(const hn_attn *h) { attn_walk(h, HN_CACHE_Q8_0, &attn_readers[HN_CACHE_Q8_0]); }
static void latent_q8(const hn_attn *h) { attn_walk(h, HN_CACHE_Q8_0, &latent_readers[HN_CACHE_Q8_0]); }
#define HN_LANES_ATTN_Q8 [HN_CACHE_Q8_0] = attn_q8
#define HN_LANES_LATENT_Q8 [HN_CACHE_Q8_0] = latent_q8
#else
#define HN_LANES_ATTN_Q8 [HN_CACHE_Q8_0] = NULL
#define HN_LANES_LATENT_Q8 [HN_CACHE_Q8_0] = NULL
#endif

/* ---- stores -------------------------------------------------------------------------------- */

#if defined(HN_LANES_STORE_F16)
static void store_k_f16(void *k, const float *x, int64_t d, int64_t pos)
{
    uint16_t *y = (uint16_t *)k + pos / HN_KEY_BLOCK * d * HN_KEY_BLOCK + pos % HN_KEY_BLOCK, c[16];
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        v16_store_f16(c, v16_load(x + i));
        HN_UNROLL_FOR(int j = 0; j < 16; j++) y[(i + j) * HN_KEY_BLOCK] = c[j];
    }
    for (; i < d; i++) y[i * HN_KEY_BLOCK] = hn_f32_to_f16(x[i]);
}
static void store_v_f16(void *v, const float *x, int64_t d, int64_t pos)
{
    uint16_t *y = (uint16_t *)v + pos * d;
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) v16_store_f16(y + i, v16_load(x + i));
    for (; i < d; i++) y[i] = hn_f32_to_f16(x[i]);
}
#define HN_LANES_STORES .store_k = { [HN_CACHE_F16] = store_k_f16 }, .store_v = { [HN_CACHE_F16] = store_v_f16 },
#else
#define HN_LANES_STORES
#endif

#define HN_LANES_ATTN                                                                                \
    .attn = { [HN_CACHE_F16] = attn_f16, [HN_CACHE_F32] = attn_f32, HN_LANES_ATTN_Q8 },              \
    .attn_latent = { [HN_CACHE_F16] = latent_f16, [HN_CACHE_F32] = latent_f32, HN_LANES_LATENT_Q8 }, \
    HN_LANES_STORES.attn_merge = attn_merge,
