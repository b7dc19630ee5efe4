/* AVX-512 matmul for many columns. 32 weight rows are opened once into a panel in
 * which a lane is a row: codes as [k/4][32 rows][4], scales and minima as vectors over
 * rows. The register tile is 32 rows × 6 columns of int32 sums by vpdpbusd; no sum ever
 * runs across lanes. Same integers, same float chain as every other kernel. */
#if defined(__x86_64__)

#include "kernels/avx512_unpack.h"

enum { ROWS = HN_PANEL_ROWS, COLS = 6 };

/* One block of 256 of 32 rows. n_sub: sub-blocks of 32 (Q4_K, Q5_K) or 16 (Q6_K) codes. */
typedef struct kpanel {
    uint8_t q[64][ROWS][4];
    int32_t sc[16][ROWS];
    int16_t side[8][ROWS][2]; /* pairs: minima of two sub-blocks of 32, or scales of two of 16 */
    float d[ROWS], dmin[ROWS];
} kpanel;
/* One block of 32 of 32 rows. */
typedef struct tpanel {
    uint8_t q[8][ROWS][4];
    float d[ROWS];
} tpanel;
_Static_assert(sizeof(kpanel) <= 48 * 256 && sizeof(tpanel) <= 48 * 32, "HN_PANEL_BYTES");

/* 16 × 16 transpose of 32-bit elements: out[i] lane r = in[r] lane i. */
V16_OP void transpose16(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        v[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        v[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* v[4j + i]: rows 4j…4j+3, element i of each 128-bit lane */
        t[i] = _mm512_shuffle_i32x4(v[i], v[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(v[i], v[4 + i], 0xDD);
        t[8 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        v[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xDD);
        v[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        v[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xDD);
    }
}

V16_OP const void *row_at(const hn_mm *m, int64_t r)
{
    return (const char *)m->w + (size_t)(r < m->r1 ? r : m->r1 - 1) * m->w_stride; /* beyond: the last again */
}

/* ---- K-quants ----------------------------------------------------------------------------------- */

#define K_PANEL(NAME, BLOCK, UNPACK, IS_Q6)                                                                      \
    static void NAME(kpanel *p, const hn_mm *m, int64_t r0)                                                      \
    {                                                                                                            \
        for (int64_t b = 0; b < m->n_in / 256; b++, p++)                                                         \
            for (int h = 0; h < ROWS; h += 16) {                                                                 \
                __m512i q[4][16];                                                                                \
                for (int i = 0; i < 16; i++) {                                                                   \
                    const BLOCK *w = (const BLOCK *)row_at(m, r0 + h + i) + b;                                   \
                    kblock k;                                                                                    \
                    UNPACK(&k, w);                                                                               \
                    for (int g = 0; g < 4; g++) q[g][i] = k.q[g];                                                \
                    p->d[h + i] = hn_f16_to_f32(w->d);                                                           \
                    if (IS_Q6) {                                                                                 \
                        const int8_t *s = (const int8_t *)w + 192;                                               \
                        for (int t = 0; t < 16; t++) p->sc[t][h + i] = p->side[t / 2][h + i][t % 2] = s[t];      \
                    } else {                                                                                     \
                        uint8_t sc[8], mn[8];                                                                    \
                        hn_k_scales((const uint8_t *)w + 4, sc, mn);                                             \
                        p->dmin[h + i] = hn_f16_to_f32(((const uint16_t *)w)[1]);                                \
                        for (int t = 0; t < 8; t++) p->sc[t][h + i] = sc[t], p->side[t / 2][h + i][t % 2] = mn[t]; \
                    }                                                                                            \
                }                                                                                                \
                for (int g = 0; g < 4; g++) {                                                                    \
                    transpose16(q[g]);                                                                           \
                    for (int i = 0; i < 16; i++) _mm512_store_si512(p->q[16 * g + i][h], q[g][i]);               \
                }                                                                                                \
            }                                                                                                    \
    }
K_PANEL(open_q4_K, hn_q4_K, unpack_q4_K, 0)
K_PANEL(open_q5_K, hn_q5_K, unpack_q5_K, 0)
K_PANEL(open_q6_K, hn_q6_K, unpack_q6_K, 1)

V16_OP int32_t load32(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* isum of 32 rows × 6 columns over one block; N_SUB sub-blocks of K4 groups of 4 codes. */
#define K_ISUM(N_SUB, K4)                                                                              \
    for (int s = 0; s < N_SUB; s++) {                                                                  \
        __m512i t[2][COLS];                                                                            \
        for (int j = 0; j < COLS; j++) t[0][j] = t[1][j] = _mm512_setzero_si512();                     \
        _Pragma("GCC unroll 8") for (int k = 0; k < K4; k++) {                                         \
            __m512i w0 = _mm512_load_si512(p->q[K4 * s + k][0]), w1 = _mm512_load_si512(p->q[K4 * s + k][16]); \
            for (int j = 0; j < COLS; j++) {                                                           \
                __m512i a = _mm512_set1_epi32(load32(x[j]->q + 4 * (K4 * s + k)));                     \
                t[0][j] = _mm512_dpbusd_epi32(t[0][j], w0, a);                                         \
                t[1][j] = _mm512_dpbusd_epi32(t[1][j], w1, a);                                         \
            }                                                                                          \
        }                                                                                              \
        __m512i s0 = _mm512_load_si512(p->sc[s]), s1 = _mm512_load_si512(p->sc[s] + 16);               \
        for (int j = 0; j < COLS; j++) {                                                               \
            isum[0][j] = _mm512_add_epi32(isum[0][j], _mm512_mullo_epi32(t[0][j], s0));                \
            isum[1][j] = _mm512_add_epi32(isum[1][j], _mm512_mullo_epi32(t[1][j], s1));                \
        }                                                                                              \
    }

/* One block of the panel against one block of 6 columns; acc [6][32]. */
static void k_block(float acc[COLS][ROWS], const kpanel *p, const hn_a256 *const x[COLS])
{
    __m512i isum[2][COLS], side[2][COLS];
    int32_t pair[COLS][4]; /* sums of 32 activations, two int16 at a time */
    for (int j = 0; j < COLS; j++) {
        isum[0][j] = isum[1][j] = side[0][j] = side[1][j] = _mm512_setzero_si512();
        __m256i b = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x[j]->bsum), _mm256_set1_epi16(1));
        _mm_storeu_si128((__m128i *)pair[j], _mm256_cvtepi32_epi16(b));
    }
    K_ISUM(8, 8)
    for (int s = 0; s < 4; s++) {
        __m512i m0 = _mm512_load_si512(p->side[s][0]), m1 = _mm512_load_si512(p->side[s][16]);
        for (int j = 0; j < COLS; j++) {
            __m512i b = _mm512_set1_epi32(pair[j][s]);
            side[0][j] = _mm512_dpwssd_epi32(side[0][j], m0, b);
            side[1][j] = _mm512_dpwssd_epi32(side[1][j], m1, b);
        }
    }
    for (int h = 0; h < 2; h++) {
        __m512 d = _mm512_load_ps(p->d + 16 * h), dmin = _mm512_load_ps(p->dmin + 16 * h);
        for (int j = 0; j < COLS; j++) {
            __m512 da = _mm512_set1_ps(x[j]->d), a = _mm512_load_ps(acc[j] + 16 * h);
            a = _mm512_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(isum[h][j]), a);
            a = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, da), _mm512_cvtepi32_ps(side[h][j]), a);
            _mm512_store_ps(acc[j] + 16 * h, a);
        }
    }
}

static void k_block_q6(float acc[COLS][ROWS], const kpanel *p, const hn_a256 *const x[COLS])
{
    __m512i isum[2][COLS], side[2][COLS];
    for (int j = 0; j < COLS; j++) isum[0][j] = isum[1][j] = side[0][j] = side[1][j] = _mm512_setzero_si512();
    K_ISUM(16, 4)
    for (int s = 0; s < 8; s++) {
        __m512i m0 = _mm512_load_si512(p->side[s][0]), m1 = _mm512_load_si512(p->side[s][16]);
        for (int j = 0; j < COLS; j++) {
            __m512i b = _mm512_set1_epi32(load32(x[j]->bsum + 2 * s));
            side[0][j] = _mm512_dpwssd_epi32(side[0][j], m0, b);
            side[1][j] = _mm512_dpwssd_epi32(side[1][j], m1, b);
        }
    }
    for (int h = 0; h < 2; h++) {
        __m512 d = _mm512_load_ps(p->d + 16 * h);
        for (int j = 0; j < COLS; j++) {
            __m512i i = _mm512_sub_epi32(isum[h][j], _mm512_slli_epi32(side[h][j], 5));
            __m512 a = _mm512_load_ps(acc[j] + 16 * h);
            _mm512_store_ps(acc[j] + 16 * h, _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x[j]->d)), _mm512_cvtepi32_ps(i), a));
        }
    }
}

/* The tile at (r, c) to y: rows below r1, columns below n_col. */
static void store(const hn_mm *m, int64_t r, int64_t c, float acc[COLS][ROWS])
{
    int64_t n = m->r1 - r < ROWS ? m->r1 - r : ROWS;
    for (int j = 0; j < COLS && c + j < m->n_col; j++) memcpy(m->y + (c + j) * m->ldy + r, acc[j], (size_t)n * sizeof(float));
}

#define PANEL_K(NAME, OPEN, BLOCK_FN)                                                                               \
    void NAME(const hn_mm *m)                                                                                       \
    {                                                                                                               \
        kpanel *p = m->panel;                                                                                       \
        for (int64_t r = m->r0; r < m->r1; r += ROWS) {                                                             \
            OPEN(p, m, r);                                                                                          \
            for (int64_t c = 0; c < m->n_col; c += COLS) {                                                          \
                _Alignas(64) float acc[COLS][ROWS] = { { 0 } };                                                     \
                const hn_a256 *x[COLS];                                                                             \
                for (int j = 0; j < COLS; j++)                                                                      \
                    x[j] = (const hn_a256 *)((const char *)m->x + (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride); \
                for (int64_t b = 0; b < m->n_in / 256; b++) {                                                       \
                    BLOCK_FN(acc, p + b, x);                                                                        \
                    for (int j = 0; j < COLS; j++) x[j]++;                                                          \
                }                                                                                                   \
                store(m, r, c, acc);                                                                                \
            }                                                                                                       \
        }                                                                                                           \
    }
PANEL_K(hn_avx512_panel_q4_K, open_q4_K, k_block)
PANEL_K(hn_avx512_panel_q5_K, open_q5_K, k_block)
PANEL_K(hn_avx512_panel_q6_K, open_q6_K, k_block_q6)

/* ---- 32-blocks -------------------------------------------------------------------------------------- */

#define T_PANEL(NAME, BLOCK, UNPACK)                                                                    \
    static void NAME(tpanel *p, const hn_mm *m, int64_t r0)                                             \
    {                                                                                                   \
        int64_t nb = m->n_in / 32;                                                                      \
        for (int64_t b = 0; b < nb; b += 2)                                                             \
            for (int h = 0; h < ROWS; h += 16) {                                                        \
                __m512i q[16];                                                                          \
                bool two = b + 1 < nb;                                                                  \
                for (int i = 0; i < 16; i++) {                                                          \
                    const BLOCK *w = (const BLOCK *)row_at(m, r0 + h + i) + b;                          \
                    q[i] = _mm512_inserti64x4(_mm512_castsi256_si512(UNPACK(w)), UNPACK(w + two), 1);   \
                    p[b].d[h + i] = hn_f16_to_f32(w[0].d);                                              \
                    if (two) p[b + 1].d[h + i] = hn_f16_to_f32(w[1].d);                                 \
                }                                                                                       \
                transpose16(q);                                                                         \
                for (int i = 0; i < (two ? 16 : 8); i++) _mm512_store_si512(p[b + i / 8].q[i % 8][h], q[i]); \
            }                                                                                           \
    }
T_PANEL(open_q4_0, hn_q4_0, unpack_q4_0)
T_PANEL(open_q5_0, hn_q5_0, unpack_q5_0)
T_PANEL(open_q8_0, hn_q8_0, unpack_q8_0)

/* The whole row of the panel against 6 columns; the sums start at −OFFSET·Σq. */
V16_OP void t_row(float acc[COLS][ROWS], const tpanel *p, const int8_t *const x[COLS], int64_t n_in, int offset)
{
    int64_t nb = n_in / 32;
    __m512 a[2][COLS];
    for (int j = 0; j < COLS; j++) a[0][j] = a[1][j] = _mm512_setzero_ps();
    for (int64_t b = 0; b < nb; b++, p++) {
        __m512i t[2][COLS];
        for (int j = 0; j < COLS; j++)
            t[0][j] = t[1][j] = _mm512_set1_epi32(-offset * ((const int32_t *)(x[j] + n_in) + nb)[b]);
        _Pragma("GCC unroll 8") for (int k = 0; k < 8; k++) {
            __m512i w0 = _mm512_load_si512(p->q[k][0]), w1 = _mm512_load_si512(p->q[k][16]);
            for (int j = 0; j < COLS; j++) {
                __m512i v = _mm512_set1_epi32(load32(x[j] + 32 * b + 4 * k));
                t[0][j] = _mm512_dpbusd_epi32(t[0][j], w0, v);
                t[1][j] = _mm512_dpbusd_epi32(t[1][j], w1, v);
            }
        }
        for (int h = 0; h < 2; h++) {
            __m512 d = _mm512_load_ps(p->d + 16 * h);
            for (int j = 0; j < COLS; j++) {
                __m512 da = _mm512_set1_ps(((const float *)(x[j] + n_in))[b]);
                a[h][j] = _mm512_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(t[h][j]), a[h][j]);
            }
        }
    }
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < COLS; j++) _mm512_store_ps(acc[j] + 16 * h, a[h][j]);
}

#define PANEL_T(NAME, OPEN, OFFSET)                                                                                 \
    void NAME(const hn_mm *m)                                                                                       \
    {                                                                                                               \
        tpanel *p = m->panel;                                                                                       \
        for (int64_t r = m->r0; r < m->r1; r += ROWS) {                                                             \
            OPEN(p, m, r);                                                                                          \
            for (int64_t c = 0; c < m->n_col; c += COLS) {                                                          \
                _Alignas(64) float acc[COLS][ROWS];                                                                 \
                const int8_t *x[COLS];                                                                              \
                for (int j = 0; j < COLS; j++)                                                                      \
                    x[j] = (const int8_t *)m->x + (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride;  \
                t_row(acc, p, x, m->n_in, OFFSET);                                                                  \
                store(m, r, c, acc);                                                                                \
            }                                                                                                       \
        }                                                                                                           \
    }
PANEL_T(hn_avx512_panel_q4_0, open_q4_0, 8)
PANEL_T(hn_avx512_panel_q5_0, open_q5_0, 16)
PANEL_T(hn_avx512_panel_q8_0, open_q8_0, 128)

#else
typedef int hn_no_avx512_panel; /* an empty file is not C */
#endif
