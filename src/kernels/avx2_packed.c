/* Products of few columns from the packed layout (quant/pack.h), AVX2. A lane is a
 * row, a register holds eight: a word of codes meets a broadcast word of activations,
 * scales are vectors, and nothing is summed across lanes. One to four columns share
 * every opened word; more take the panels of avx2_panel.c. How many vpmaddubsw results
 * fit 16 bits is told there. */
#if defined(__x86_64__)

#include "kernels/avx2.h"

/* Nothing is fetched ahead: the core's own prefetchers follow one ascending stream (measured: docs/LAB.md). */
enum { COLS = 4 };
/* columns from which opening a panel pays (measured: docs/LAB.md) */
enum { PANEL_4 = 16, PANEL_5 = 8, PANEL_6 = 5, PANEL_WIDE = 16 };

INLINE __m256 scales_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

/* sum = the first of 16-bit sums, or added to them */
INLINE void dot(__m256i *sum, bool first, __m256i codes, const int8_t *x)
{
    __m256i v = _mm256_maddubs_epi16(codes, word(x));
    *sum = first ? v : add16(*sum, v);
}

/* ---- K-quants: a block of 256 of eight rows times nc columns -------------------------------- */

/* p: the block at the first of the rows' words; d: the scales of Q6_K; h: 0 or 8 */
typedef void k_block_fn(const char *p, const char *d, int h, const hn_a256 *const *x, int nc, __m256 *acc);

/* acc = fma(d·da, isum, acc), then acc −= dmin·da·Σ min·Σq */
INLINE void k_finish(const char *p, int h, const __m256i mn[2], const hn_a256 *const *x, int nc, const __m256i *isum,
                     __m256 *acc)
{
    __m256 d = scales_f16(p + 2 * h), dmin = scales_f16(p + 32 + 2 * h);
    int32_t pairs[COLS][4];
    FOR(c, nc) {
        __m256i s = _mm256_madd_epi16(load256(x[c]->bsum), _mm256_set1_epi16(1));
        _mm_storeu_si128((__m128i *)pairs[c],
                         _mm_packs_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
    }
    IN_MEMORY(pairs);
    FOR(c, nc) {
        __m256i msum = _mm256_setzero_si256();
        FOR(i, 4)
            msum = add_madd(msum, _mm256_shuffle_epi8(mn[i / 2], byte_index(i % 2 * 2, -1, i % 2 * 2 + 1, -1)),
                            word(&pairs[c][i]));
        __m256 da = _mm256_set1_ps(x[c]->d);
        acc[c] = _mm256_fmadd_ps(_mm256_mul_ps(d, da), _mm256_cvtepi32_ps(isum[c]), acc[c]);
        acc[c] = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, da), _mm256_cvtepi32_ps(msum), acc[c]);
    }
}
INLINE void k_scales(const char *p, int h, __m256i v[4])
{
    __m256i s[3];
    FOR(i, 3) s[i] = load256(p + 64 * i + 4 * h);
    k_scale_words(v, s);
}
INLINE __m256i u8_scale(const __m256i v[2], int i)
{
    return _mm256_shuffle_epi8(v[i / 4], byte_index(i % 4, -1, i % 4, -1));
}

INLINE void q4_K_block(const char *p, const char *d, int h, const hn_a256 *const *x, int nc, __m256 *acc)
{
    __m256i sc[4], isum[COLS];
    k_scales(p + 64, h, sc);
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(g, 4) {
        __m256i lo[COLS], hi[COLS];
        FOR(i, 8) {
            const char *at = p + 256 + 64 * (8 * g + i);
            __m256i q = load256(at + 4 * h), ql = low_nibbles(q), qh = high_nibbles(q);
            FOR(c, nc) {
                dot(&lo[c], !i, ql, x[c]->q + 64 * g + 4 * i);
                dot(&hi[c], !i, qh, x[c]->q + 64 * g + 32 + 4 * i);
            }
        }
        __m256i sl = u8_scale(sc, 2 * g), sh = u8_scale(sc, 2 * g + 1);
        FOR(c, nc) isum[c] = add_madd(add_madd(isum[c], lo[c], sl), hi[c], sh);
    }
    k_finish(p, h, sc + 2, x, nc, isum, acc);
}

INLINE void q5_K_block(const char *p, const char *d, int h, const hn_a256 *const *x, int nc, __m256 *acc)
{
    __m256i sc[4], isum[COLS];
    k_scales(p + 64, h, sc);
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(g, 4) {
        __m256i sl = u8_scale(sc, 2 * g), sh = u8_scale(sc, 2 * g + 1);
        FOR(half, 2) {
            __m256i lo[COLS], hi[COLS];
            FOR(k, 4) {
                int i = 4 * half + k;
                const char *at = p + 768 + 64 * (8 * g + i);
                __m256i q = load256(at + 4 * h), b = load256(p + 256 + 64 * i + 4 * h);
                __m256i ql = or_and(low_nibbles(q), shift16(b, 4 - 2 * g), 0x10101010);
                __m256i qh = or_and(high_nibbles(q), shift16(b, 3 - 2 * g), 0x10101010);
                FOR(c, nc) {
                    dot(&lo[c], !k, ql, x[c]->q + 64 * g + 4 * i);
                    dot(&hi[c], !k, qh, x[c]->q + 64 * g + 32 + 4 * i);
                }
            }
            FOR(c, nc) isum[c] = add_madd(add_madd(isum[c], lo[c], sl), hi[c], sh);
        }
    }
    k_finish(p, h, sc + 2, x, nc, isum, acc);
}

INLINE void d_finish(const char *d, const hn_a256 *const *x, int nc, const __m256i *isum, __m256 *acc)
{
    __m256 dw = scales_f16(d);
    FOR(c, nc)
        acc[c] = _mm256_fmadd_ps(_mm256_mul_ps(dw, _mm256_set1_ps(x[c]->d)), _mm256_cvtepi32_ps(isum[c]), acc[c]);
}

INLINE void q6_K_block(const char *p, const char *d, int h, const hn_a256 *const *x, int nc, __m256 *acc)
{
    __m256i isum[COLS], side[COLS], s[4];
    FOR(c, nc) isum[c] = side[c] = _mm256_setzero_si256();
    FOR(i, 4) s[i] = load256(p + hn_pack_q6_s(i) + 4 * h);
    FOR(i, 8) { /* Σ sc·Σq, two scales at a time */
        __m256i pair =
            _mm256_srai_epi16(_mm256_shuffle_epi8(s[i / 2], byte_index(-1, i % 2 * 2, -1, i % 2 * 2 + 1)), 8);
        FOR(c, nc) side[c] = add_madd(side[c], pair, word(x[c]->bsum + 2 * i));
    }
    FOR(n, 2)
        FOR(j, 2) { /* words 4j … 4j+3 of 8: codes of scales 8n + j, + 2, + 4, + 6 */
            FOR(half, 2) {
                __m256i sum[4][COLS];
                FOR(k, 2) {
                    int i = 4 * j + 2 * half + k;
                    const char *at = p + hn_pack_q6_h(8 * n + i);
                    __m256i u = load256(at + 4 * h), l0 = load256(at + 64 + 4 * h), l1 = load256(at + 128 + 4 * h);
                    __m256i q[4] = { or_and(low_nibbles(l0), _mm256_slli_epi16(u, 4), 0x30303030),
                                     or_and(low_nibbles(l1), _mm256_slli_epi16(u, 2), 0x30303030),
                                     or_and(high_nibbles(l0), u, 0x30303030),
                                     or_and(high_nibbles(l1), _mm256_srli_epi16(u, 2), 0x30303030) };
                    FOR(t, 4)
                        FOR(c, nc) dot(&sum[t][c], !k, q[t], x[c]->q + 128 * n + 32 * t + 4 * i);
                }
                FOR(t, 4) {
                    int at = 8 * n + 2 * t + j;
                    __m256i sc =
                        _mm256_srai_epi16(_mm256_shuffle_epi8(s[at / 4], byte_index(-1, at % 4, -1, at % 4)), 8);
                    FOR(c, nc) isum[c] = add_madd(isum[c], sum[t][c], sc);
                }
            }
        }
    FOR(c, nc) isum[c] = _mm256_sub_epi32(isum[c], _mm256_slli_epi32(side[c], 5));
    d_finish(d + 2 * h, x, nc, isum, acc);
}

INLINE void iq4_XS_block(const char *p, const char *d, int h, const hn_a256 *const *x, int nc, __m256 *acc)
{
    __m256i isum[COLS], sl = load256(p + 64 + 4 * h);
    __m256i sh = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 32 + 2 * h)));
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(s, 8) {
        __m256i sc = iq4_scale(sh, sl, s);
        FOR(i, 4) {
            const char *at = p + 128 + 64 * (4 * s + i);
            __m256i q = load256(at + 4 * h), ql = iq4_levels(low_nibbles(q)), qh = iq4_levels(high_nibbles(q));
            FOR(c, nc) {
                isum[c] = add_madd(isum[c], signed_pairs(ql, word(x[c]->q + 32 * s + 4 * i)), sc);
                isum[c] = add_madd(isum[c], signed_pairs(qh, word(x[c]->q + 32 * s + 16 + 4 * i)), sc);
            }
        }
    }
    d_finish(p + 2 * h, x, nc, isum, acc);
}

/* ---- 32-blocks ------------------------------------------------------------------------------ */

/* Σ codes·activations of a block of eight rows; offset·Σq is subtracted afterwards */
typedef void q32_block_fn(const char *p, int h, const int8_t *const *x, int nc, __m256i *sum);

#define ONES _mm256_set1_epi16(1)

INLINE void q4_0_block(const char *p, int h, const int8_t *const *x, int nc, __m256i *sum)
{
    __m256i t[COLS];
    FOR(i, 4) {
        __m256i q = load256(p + 64 * i + 4 * h), ql = low_nibbles(q), qh = high_nibbles(q);
        FOR(c, nc) {
            dot(&t[c], !i, ql, x[c] + 4 * i);
            dot(&t[c], false, qh, x[c] + 16 + 4 * i);
        }
    }
    FOR(c, nc) sum[c] = _mm256_madd_epi16(t[c], ONES);
}

INLINE void q5_0_block(const char *p, int h, const int8_t *const *x, int nc, __m256i *sum)
{
    __m256i b = load256(p + 4 * h), lo[COLS], hi[COLS];
    FOR(i, 4) {
        const char *at = p + 64 + 64 * i;
        __m256i q = load256(at + 4 * h);
        __m256i ql = or_and(low_nibbles(q), shift16(b, 4 - i), 0x10101010),
                qh = or_and(high_nibbles(q), shift16(b, -i), 0x10101010);
        FOR(c, nc) {
            dot(&lo[c], !i, ql, x[c] + 4 * i);
            dot(&hi[c], !i, qh, x[c] + 16 + 4 * i);
        }
    }
    FOR(c, nc) sum[c] = add_madd(_mm256_madd_epi16(lo[c], ONES), hi[c], ONES);
}

INLINE void q8_0_block(const char *p, int h, const int8_t *const *x, int nc, __m256i *sum)
{
    FOR(c, nc) sum[c] = _mm256_setzero_si256();
    FOR(i, 8) {
        __m256i q = _mm256_xor_si256(load256(p + 64 * i + 4 * h), _mm256_set1_epi8(-128));
        FOR(c, nc) sum[c] = add_madd(sum[c], signed_pairs(q, word(x[c] + 4 * i)), ONES);
    }
}

INLINE void iq4_NL_block(const char *p, int h, const int8_t *const *x, int nc, __m256i *sum)
{
    FOR(c, nc) sum[c] = _mm256_setzero_si256();
    FOR(i, 4) {
        __m256i q = load256(p + 64 * i + 4 * h), ql = iq4_levels(low_nibbles(q)), qh = iq4_levels(high_nibbles(q));
        FOR(c, nc) {
            sum[c] = add_madd(sum[c], signed_pairs(ql, word(x[c] + 4 * i)), ONES);
            sum[c] = add_madd(sum[c], signed_pairs(qh, word(x[c] + 16 + 4 * i)), ONES);
        }
    }
}

/* ---- from blocks to a matmul ------------------------------------------------------------------- */

INLINE const char *column(const hn_mm *m, int64_t c) { return (const char *)m->x + (size_t)c * m->x_stride; }
INLINE const char *group(const hn_mm *m, int64_t r)
{
    return (const char *)m->w + (size_t)(r / HN_PACK_ROWS) * m->w_stride;
}

INLINE void store_rows(const hn_mm *m, int64_t r, int64_t c, const __m256 y[2])
{
    int64_t n = m->r1 - r;
    float *dst = m->y + c * m->ldy + r, v[16];
    if (n >= 16) {
        _mm256_storeu_ps(dst, y[0]);
        _mm256_storeu_ps(dst + 8, y[1]);
        return;
    }
    _mm256_storeu_ps(v, y[0]);
    _mm256_storeu_ps(v + 8, y[1]);
    memcpy(dst, v, (size_t)n * sizeof *v);
}

/* pairs: blocks come in twos behind their d. */
INLINE void rows_k(const hn_mm *m, int64_t c0, int nc, k_block_fn *block, size_t bytes, bool pairs)
{
    int64_t nb = m->n_in / 256;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *g = group(m, r);
        const hn_a256 *x[COLS];
        __m256 acc[2][COLS];
        FOR(c, nc) acc[0][c] = acc[1][c] = _mm256_setzero_ps(), x[c] = (const hn_a256 *)column(m, c0 + c);
        for (int64_t b = 0; b < nb; b++) {
            const char *p = g + (pairs ? hn_pair_block(bytes, b) : (size_t)b * bytes), *d = g + hn_pair_d(bytes, b);
            if (m->w_stride > HN_FAR_GROUP)
                FOR(c, nc) hn_fetch_a256(x[c] + 1);
            block(p, d, 0, x, nc, acc[0]);
            block(p, d, 8, x, nc, acc[1]);
            FOR(c, nc) x[c]++;
        }
        FOR(c, nc) {
            __m256 y[2] = { acc[0][c], acc[1][c] };
            store_rows(m, r, c0 + c, y);
        }
    }
}

INLINE void rows_32(const hn_mm *m, int64_t c0, int nc, q32_block_fn *block, size_t bytes, int shift)
{
    int64_t nb = m->n_in / 32;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *g = group(m, r);
        const int8_t *x[COLS];
        const float *dx[COLS];
        __m256 acc[2][COLS];
        FOR(c, nc) {
            acc[0][c] = acc[1][c] = _mm256_setzero_ps();
            x[c] = (const int8_t *)column(m, c0 + c);
            dx[c] = (const float *)(x[c] + m->n_in);
        }
        for (int64_t b = 0; b < nb; b++) {
            const char *p = g + hn_pair_block(bytes, b), *d = g + hn_pair_d(bytes, b);
            FOR(i, 2) {
                __m256i sum[COLS];
                block(p, 8 * i, x, nc, sum);
                __m256 dw = scales_f16(d + 16 * i);
                FOR(c, nc) {
                    if (shift) sum[c] = _mm256_sub_epi32(sum[c], _mm256_slli_epi32(word(dx[c] + nb + b), shift));
                    acc[i][c] = _mm256_fmadd_ps(_mm256_mul_ps(dw, _mm256_set1_ps(dx[c][b])), _mm256_cvtepi32_ps(sum[c]),
                                                acc[i][c]);
                }
            }
            FOR(c, nc) x[c] += 32;
        }
        FOR(c, nc) {
            __m256 y[2] = { acc[0][c], acc[1][c] };
            store_rows(m, r, c0 + c, y);
        }
    }
}

/* Each number of columns has its own code. */
#define BY_COLUMNS(ROWS)                           \
    for (int64_t c = 0; c < m->n_col; c += COLS) { \
        switch (m->n_col - c) {                    \
        case 1: ROWS(1); break;                    \
        case 2: ROWS(2); break;                    \
        case 3: ROWS(3); break;                    \
        default: ROWS(4); break;                   \
        }                                          \
    }
#define PACKED(TYPE, ROWS, FROM)               \
    void hn_avx2_packed_##TYPE(const hn_mm *m) \
    {                                          \
        if (m->panel && m->n_col >= FROM) {    \
            hn_avx2_ppanel_##TYPE(m);          \
            return;                            \
        }                                      \
        BY_COLUMNS(ROWS)                       \
    }

#define ROWS_Q4_K(NC) rows_k(m, c, NC, q4_K_block, 2304, false)
#define ROWS_Q5_K(NC) rows_k(m, c, NC, q5_K_block, 2816, false)
#define ROWS_Q6_K(NC) rows_k(m, c, NC, q6_K_block, 3328, true)
#define ROWS_IQ4_XS(NC) rows_k(m, c, NC, iq4_XS_block, 2176, false)
#define ROWS_Q4_0(NC) rows_32(m, c, NC, q4_0_block, 256, 3)
#define ROWS_IQ4_NL(NC) rows_32(m, c, NC, iq4_NL_block, 256, 0)
#define ROWS_Q5_0(NC) rows_32(m, c, NC, q5_0_block, 320, 4)
#define ROWS_Q8_0(NC) rows_32(m, c, NC, q8_0_block, 512, 0)
PACKED(q4_K, ROWS_Q4_K, PANEL_4)
PACKED(q5_K, ROWS_Q5_K, PANEL_5)
PACKED(q6_K, ROWS_Q6_K, PANEL_6)
PACKED(iq4_XS, ROWS_IQ4_XS, PANEL_WIDE)
PACKED(q4_0, ROWS_Q4_0, PANEL_4)
PACKED(iq4_NL, ROWS_IQ4_NL, PANEL_WIDE)
PACKED(q5_0, ROWS_Q5_0, PANEL_5)
PACKED(q8_0, ROWS_Q8_0, PANEL_WIDE)

/* ---- floats: the contract's sixteen lanes are sixteen sums, each two vectors of rows ---------------- */

INLINE __m256 widen_f32(const char *p) { return _mm256_loadu_ps((const float *)p); }
INLINE __m256 widen_f16(const char *p) { return scales_f16(p); }
INLINE __m256 widen_bf16(const char *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

typedef __m256 widen_fn(const char *p);

/* NL lanes at a time, so that 2·NL·nc sums stay in registers; a block is read 16/NL
 * times, all but the first from L1. */
INLINE void rows_float(const hn_mm *m, int64_t c0, int nc, widen_fn *widen, size_t bytes)
{
    enum { MAX_SUMS = 4 };
    const int nl = nc == 1 ? 4 : nc == 2 ? 2 : 1;
    const size_t unit = HN_PACK_ROWS * bytes;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *p = group(m, r);
        const float *x[COLS];
        __m256 t[COLS][16][2];
        FOR(c, nc) x[c] = (const float *)column(m, c0 + c);
        for (int64_t b = 0; b < m->n_in; b += 256) {
            int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in;
            for (int l0 = 0; l0 < 16; l0 += nl) {
                __m256 s[MAX_SUMS][2];
                FOR(i, nl * nc) s[i][0] = s[i][1] = _mm256_setzero_ps();
                for (int64_t k = b + l0; k < end; k += 16) {
                    FOR(l, nl)
                        if (k + l < end) {
                            const char *at = p + (size_t)(k + l) * unit;
                            __m256 w0 = widen(at), w1 = widen(at + unit / 2);
                            FOR(c, nc) {
                                __m256 v = _mm256_set1_ps(x[c][k + l]);
                                s[l * nc + c][0] = _mm256_fmadd_ps(w0, v, s[l * nc + c][0]);
                                s[l * nc + c][1] = _mm256_fmadd_ps(w1, v, s[l * nc + c][1]);
                            }
                        }
                }
                FOR(l, nl)
                    FOR(c, nc)
                        FOR(h, 2)
                            t[c][l0 + l][h] = b ? _mm256_add_ps(t[c][l0 + l][h], s[l * nc + c][h]) : s[l * nc + c][h];
            }
        }
        FOR(c, nc) {
            for (int half = 8; half >= 1; half /= 2)
                for (int l = 0; l < half; l++)
                    FOR(h, 2) t[c][l][h] = _mm256_add_ps(t[c][l][h], t[c][l + half][h]);
            store_rows(m, r, c0 + c, t[c][0]);
        }
    }
}

#define ROWS_F32(NC) rows_float(m, c, NC, widen_f32, 4)
#define ROWS_F16(NC) rows_float(m, c, NC, widen_f16, 2)
#define ROWS_BF16(NC) rows_float(m, c, NC, widen_bf16, 2)
void hn_avx2_packed_f32(const hn_mm *m) { BY_COLUMNS(ROWS_F32) }
void hn_avx2_packed_f16(const hn_mm *m) { BY_COLUMNS(ROWS_F16) }
void hn_avx2_packed_bf16(const hn_mm *m) { BY_COLUMNS(ROWS_BF16) }

#else
typedef int hn_no_avx2_packed; /* an empty file is not C */
#endif
