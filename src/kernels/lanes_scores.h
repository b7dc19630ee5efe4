/* The register tiles of attention, and the integer scores of q8_0: what lanes_attn.h shares with a file that has them
 * for other instructions. The level has defined v16. */
#ifndef HN_LANES_SCORES_H
#define HN_LANES_SCORES_H

#ifndef HN_INLINE
#define HN_INLINE static inline __attribute__((always_inline))
#endif

enum {
    HN_ATTN_ROWS = 6,  /* rows of a register tile */
    HN_ATTN_WIDE = 13, /* rows from which blocks are widened first */
    HN_ATTN_AHEAD = 2
}; /* blocks of 64 keys fetched ahead when read in place */

#ifndef HN_ATTN_VECS /* vectors of a register tile beside n rows: 32 registers of one lane set, or 16 of half */
#define HN_ATTN_VECS(n) ((n) <= 2 ? 4 / (n) : (n) == 3 ? 2 : 1)
#endif
#ifndef HN_ATTN_VECS_DOT
#define HN_ATTN_VECS_DOT(n) 1
#endif

#if defined(__clang__)
#define HN_UNROLL _Pragma("unroll")
#else
#define HN_UNROLL _Pragma("GCC unroll 16")
#endif
/* one word, for clang-format */
#define HN_UNROLL_FOR(...) HN_UNROLL for (__VA_ARGS__)

HN_INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* What one call works on; rows r of [r0, rows). */
typedef struct attn_rows {
    const float *q;      /* [rows][d], or q8: int8 [rows][d4] */
    const float *dq;     /* q8: [rows][groups] */
    const int32_t *qsum; /* q8: [rows][groups] */
    float *p, *o;        /* [rows][64], [rows][d] */
    float *M, *L, *m, *l, *c;
    float *wide;                          /* [64][d] floats, or q8: scales of V [64][groups] */
    int64_t d, d_v, block_bytes, v_bytes; /* bytes of a block of keys, of values */
    ptrdiff_t ahead, ahead_v;             /* bytes from the block to the one that is fetched meanwhile */
    float scale, cap;
    const float *fade; /* of the query heads, or NULL */
    int64_t away;      /* from the block's first key to the first token */
} attn_rows;

typedef void scores_fn(const attn_rows *a, const void *block, int64_t r);
#define SCORES_N(NAME, FROM, N, VECS, AHEAD) \
    static void NAME##_##N(const attn_rows *a, const void *block, int64_t r) { FROM(a, block, r, N, VECS(N), AHEAD); }
#define TILES(KIND, NAME, FROM, VECS, AHEAD)                                                                       \
    KIND##_N(NAME, FROM, 1, VECS, AHEAD) KIND##_N(NAME, FROM, 2, VECS, AHEAD) KIND##_N(NAME, FROM, 3, VECS, AHEAD) \
        KIND##_N(NAME, FROM, 4, VECS, AHEAD) KIND##_N(NAME, FROM, 5, VECS, AHEAD) KIND##_N(NAME, FROM, 6, VECS, AHEAD)

#if defined(HN_LANES_DOT8)
/* p[row][64] = scale · q · k in integers */
HN_INLINE void scores_q8(const attn_rows *a, const void *block, int64_t r, const int NQ, const int V, const bool ahead)
{
    const int64_t d4 = hn_cache_d4(a->d), n_g = hn_cache_groups(a->d);
    const size_t bytes = hn_cache_block_bytes(HN_CACHE_Q8_0, a->d);
    const int8_t *q = (const int8_t *)a->q + r * d4;
    const float *dq = a->dq + r * n_g;
    const int32_t *qsum = a->qsum + r * n_g;
    for (int kb = 0; kb < 4; kb += V) {
        const uint8_t *k = (const uint8_t *)block + (size_t)kb * bytes;
        const char *next = (const char *)k + a->ahead;
        v16 s[HN_ATTN_ROWS][4];
        HN_UNROLL_FOR(int i = 0; i < NQ; i++)
            HN_UNROLL_FOR(int j = 0; j < V; j++) s[i][j] = v16_zero();
        for (int64_t g = 0; g < n_g; g++) {
            int64_t end = (g + 1) * HN_CACHE_GROUP < d4 ? (g + 1) * HN_CACHE_GROUP : d4;
            i16v isum[HN_ATTN_ROWS][4];
            HN_UNROLL_FOR(int i = 0; i < NQ; i++)
                HN_UNROLL_FOR(int j = 0; j < V; j++) isum[i][j] = i16_start(qsum[i * n_g + g]);
            for (int64_t x = g * HN_CACHE_GROUP; x < end; x += 4) {
                k8 c[4];
                HN_UNROLL_FOR(int j = 0; j < V; j++) c[j] = k8_load(k + (size_t)j * bytes + x * HN_KEY_BLOCK);
                if (ahead)
                    HN_UNROLL_FOR(int j = 0; j < V; j++) {
                        __builtin_prefetch(next, 0, 2);
                        next += 64;
                    }
                HN_UNROLL_FOR(int i = 0; i < NQ; i++) {
                    int32_t q4;
                    memcpy(&q4, q + i * d4 + x, 4);
                    HN_UNROLL_FOR(int j = 0; j < V; j++) isum[i][j] = i16_dot(isum[i][j], c[j], q4);
                }
            }
            HN_UNROLL_FOR(int j = 0; j < V; j++) {
                v16 dk = v16_load_f16((const uint16_t *)(k + (size_t)j * bytes + d4 * HN_KEY_BLOCK) + g * HN_KEY_BLOCK);
                HN_UNROLL_FOR(int i = 0; i < NQ; i++)
                    s[i][j] = v16_fma(v16_mul(dk, v16_set1(dq[i * n_g + g])), i16_to_v16(isum[i][j]), s[i][j]);
            }
        }
        for (; ahead && next < (const char *)k + a->ahead + (size_t)V * bytes; next += 64)
            __builtin_prefetch(next, 0, 2); /* scales */
        HN_UNROLL_FOR(int i = 0; i < NQ; i++)
            HN_UNROLL_FOR(int j = 0; j < V; j++)
                v16_store(a->p + (r + i) * HN_SOFT_BLOCK + 16 * (kb + j), v16_mul(s[i][j], v16_set1(a->scale)));
    }
}
#endif

#endif
