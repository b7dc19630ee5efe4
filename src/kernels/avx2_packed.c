/* Products of few columns from the packed layout (quant/pack.h), AVX2. A lane is a row, a register holds eight; both
 * halves of a group are met together, line by line: a word of codes meets a broadcast word of activations, scales are
 * vectors, and nothing is summed across lanes. One to four columns share every opened word; more take the panels of
 * avx2_panel.c, which tells how many vpmaddubsw results fit 16 bits. */
#if defined(__x86_64__)

#include "kernels/avx2.h"

enum { COLS = 4 };
/* columns from which opening a panel pays (measured: docs/LAB.md) */
enum {
    PANEL_Q4_K = 10,
    PANEL_Q5_K = 7,
    PANEL_Q6_K = 5,
    PANEL_IQ4_XS = 16,
    PANEL_Q4_0 = 16,
    PANEL_Q5_0 = 8,
    PANEL_Q8_0 = 32,
    PANEL_IQ4_NL = 20
};

INLINE __m256 scales_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

/* sum = the first of 16-bit sums, or added to them */
INLINE void dot(__m256i *sum, bool first, __m256i codes, const int8_t *x)
{
    __m256i v = _mm256_maddubs_epi16(codes, word_in_order(x));
    *sum = first ? v : add16(*sum, v);
}

/* ---- K-quants: a block of 256 of sixteen rows times nc columns ------------------------------- */

/* Both halves of a group of sixteen rows: a vector of each eight. */
typedef struct pair {
    __m256i v[2];
} pair;

/* The words of one line of codes; line i of the block at p. */
INLINE pair line(const char *p) { return (pair){ { load_in_order(p), load_in_order(p + 32) } }; }
INLINE pair line_of(const char *p, const streams *a, int i)
{
    ask_ahead(a, i);
    return line(p + 64 * i);
}
/* The streams n lines further each. */
INLINE streams lines_on(const streams *a, int n)
{
    return (streams){ { a->at[0] + 64 * n, a->at[1] + 64 * n, a->at[2] + 64 * n, a->at[3] + 64 * n } };
}
INLINE pair low4(pair q) { return (pair){ { low_nibbles(q.v[0]), low_nibbles(q.v[1]) } }; }
INLINE pair high4(pair q) { return (pair){ { high_nibbles(q.v[0]), high_nibbles(q.v[1]) } }; }

/* sum = the first of 16-bit sums, or added to them */
INLINE void dot2(pair *sum, bool first, pair codes, const int8_t *x)
{
    __m256i w = word(x);
    FOR(h, 2) {
        __m256i v = _mm256_maddubs_epi16(codes.v[h], w);
        sum->v[h] = first ? v : add16(sum->v[h], v);
    }
}

/* p: the block; a: what is asked for meanwhile; d: the scales of Q6_K; acc[half][column] */
typedef void k_block_fn(const char *p, const streams *a, const char *d, const hn_a256 *const *x, int nc,
                        __m256 acc[2][COLS]);

/* acc = fma(d·da, isum, acc), then acc −= dmin·da·Σ min·Σq */
INLINE void k_finish(const char *p, __m256i sc[2][4], const hn_a256 *const *x, int nc, pair *isum, __m256 acc[2][COLS])
{
    int32_t pairs[COLS][4];
    FOR(c, nc) {
        __m256i s = _mm256_madd_epi16(load256(x[c]->bsum), _mm256_set1_epi16(1));
        _mm_storeu_si128((__m128i *)pairs[c],
                         _mm_packs_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
    }
    IN_MEMORY(pairs);
    FOR(h, 2) {
        __m256 d = scales_f16(p + 16 * h), dmin = scales_f16(p + 32 + 16 * h);
        FOR(c, nc) {
            __m256i msum = _mm256_setzero_si256();
            FOR(i, 4)
                msum =
                    add_madd(msum, _mm256_shuffle_epi8(sc[h][2 + i / 2], byte_index(i % 2 * 2, -1, i % 2 * 2 + 1, -1)),
                             word(&pairs[c][i]));
            __m256 da = _mm256_set1_ps(x[c]->d);
            acc[h][c] = _mm256_fmadd_ps(_mm256_mul_ps(d, da), _mm256_cvtepi32_ps(isum[c].v[h]), acc[h][c]);
            acc[h][c] = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, da), _mm256_cvtepi32_ps(msum), acc[h][c]);
        }
    }
}
/* of the block at p */
INLINE void k_scales(const char *p, const streams *a, __m256i v[2][4])
{
    FOR(i, 4) ask_ahead(a, i);
    FOR(h, 2) {
        __m256i s[3];
        FOR(i, 3) s[i] = load256(p + 64 + 64 * i + 32 * h);
        k_scale_words(v[h], s);
    }
    IN_MEMORY(*(__m256i(*)[8])v);
}
INLINE __m256i u8_scale(const __m256i v[2], int i)
{
    return _mm256_shuffle_epi8(v[i / 4], byte_index(i % 4, -1, i % 4, -1));
}

/* Group g, 0 or 1, of 64 codes of half a block, whose lines begin at p, its scales at sc[.][0] and its activations at
 * q. One column: both halves of a line share the words of activations. */
INLINE void q4_K_one(const char *p, const streams *a, int g, __m256i sc[2][1], const int8_t *const *q, pair *isum)
{
    pair lo, hi;
    FOR(i, 8) {
        pair w = line_of(p, a, 8 * g + i), wl = low4(w), wh = high4(w);
        dot2(&lo, !i, wl, q[0] + 64 * g + 4 * i);
        dot2(&hi, !i, wh, q[0] + 64 * g + 32 + 4 * i);
    }
    FOR(h, 2) {
        __m256i sl = u8_scale(sc[h], 2 * g), sh = u8_scale(sc[h], 2 * g + 1);
        isum->v[h] = add_madd(add_madd(isum->v[h], lo.v[h], sl), hi.v[h], sh);
    }
}
/* More columns; of more than two one half at a time, or the sums of 16 bits are too many for the registers. */
INLINE void q4_K_few(const char *p, const streams *a, int g, __m256i sc[2][1], const int8_t *const *q, int nc,
                     pair *isum)
{
    const int parts = nc > 2 ? 2 : 1;
    FOR(part, parts) {
        pair lo[COLS], hi[COLS];
        FOR(i, 8) {
            const int at = 8 * g + i;
            if (!part) ask_ahead(a, at);
            FOR(h, 2)
                if (parts == 1 || h == part) {
                    __m256i w = load_in_order(p + 64 * at + 32 * h), wl = low_nibbles(w), wh = high_nibbles(w);
                    FOR(c, nc) {
                        dot(&lo[c].v[h], !i, wl, q[c] + 64 * g + 4 * i);
                        dot(&hi[c].v[h], !i, wh, q[c] + 64 * g + 32 + 4 * i);
                    }
                }
        }
        FOR(h, 2)
            if (parts == 1 || h == part) {
                __m256i sl = u8_scale(sc[h], 2 * g), sh = u8_scale(sc[h], 2 * g + 1);
                FOR(c, nc) isum[c].v[h] = add_madd(add_madd(isum[c].v[h], lo[c].v[h], sl), hi[c].v[h], sh);
            }
    }
}
INLINE void q4_K_block(const char *p, const streams *a, const char *d, const hn_a256 *const *x, int nc,
                       __m256 acc[2][COLS])
{
    __m256i sc[2][4];
    pair isum[COLS];
    k_scales(p, a, sc);
    FOR(c, nc) isum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    FOR_ROLLED(n, 2) { /* half a block: whole ones do not fit where a core keeps decoded instructions */
        const int8_t *q[COLS];
        const streams due = lines_on(a, 1 + 4 * n);
        __m256i now[2][1];
        FOR(c, nc) q[c] = x[c]->q + 128 * n;
        FOR(h, 2) now[h][0] = sc[h][n];
        FOR(g, 2)
            if (nc == 1) q4_K_one(p + 64 * (4 + 16 * n), &due, g, now, q, isum);
            else q4_K_few(p + 64 * (4 + 16 * n), &due, g, now, q, nc, isum);
    }
    k_finish(p, sc, x, nc, isum, acc);
}

/* Four words of group g, codes of 5 bits, four results of which fit 16: two columns at most. What is from the fifth
 * word on is given p, q and the streams by so much further. */
INLINE void q5_K_few(const char *p, const streams *a, int g, __m256i sc[2][4], const int8_t *const *x, int nc,
                     pair *isum)
{
    pair lo[COLS], hi[COLS];
    FOR(k, 4) {
        pair b = line(p + 256 + 64 * k), ql, qh, q = line(p + 64 * (12 + 8 * g + k));
        ask_ahead(a, 8 * g + k);
        FOR(h, 2) {
            ql.v[h] = or_and(low_nibbles(q.v[h]), shift16(b.v[h], 4 - 2 * g), 0x10101010);
            qh.v[h] = or_and(high_nibbles(q.v[h]), shift16(b.v[h], 3 - 2 * g), 0x10101010);
        }
        FOR(c, nc) {
            dot2(&lo[c], !k, ql, x[c] + 64 * g + 4 * k);
            dot2(&hi[c], !k, qh, x[c] + 64 * g + 32 + 4 * k);
        }
    }
    FOR(h, 2) {
        __m256i sl = u8_scale(sc[h], 2 * g), sh = u8_scale(sc[h], 2 * g + 1);
        FOR(c, nc) isum[c].v[h] = add_madd(add_madd(isum[c].v[h], lo[c].v[h], sl), hi[c].v[h], sh);
    }
}
/* The same of half h and any columns: so many sums of 16 bits as stay in registers. */
INLINE void q5_K_half(const char *p, const streams *a, int g, int h, __m256i sc[2][4], const int8_t *const *x, int nc,
                      pair *isum)
{
    __m256i lo[COLS], hi[COLS];
    FOR(k, 4) {
        if (h == 0) ask_ahead(a, 8 * g + k);
        __m256i b = load_in_order(p + 256 + 64 * k + 32 * h), q = load_in_order(p + 64 * (12 + 8 * g + k) + 32 * h);
        __m256i ql = or_and(low_nibbles(q), shift16(b, 4 - 2 * g), 0x10101010);
        __m256i qh = or_and(high_nibbles(q), shift16(b, 3 - 2 * g), 0x10101010);
        FOR(c, nc) {
            dot(&lo[c], !k, ql, x[c] + 64 * g + 4 * k);
            dot(&hi[c], !k, qh, x[c] + 64 * g + 32 + 4 * k);
        }
    }
    __m256i sl = u8_scale(sc[h], 2 * g), sh = u8_scale(sc[h], 2 * g + 1);
    FOR(c, nc) isum[c].v[h] = add_madd(add_madd(isum[c].v[h], lo[c], sl), hi[c], sh);
}
INLINE void q5_K_block(const char *p, const streams *a, const char *d, const hn_a256 *const *x, int nc,
                       __m256 acc[2][COLS])
{
    __m256i sc[2][4];
    pair isum[COLS];
    k_scales(p, a, sc);
    FOR(i, 8) ask_ahead(a, 4 + i);
    FOR(c, nc) isum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    FOR_ROLLED(part, 2) { /* not both at once: they do not fit where a core keeps decoded instructions */
        const int8_t *q[COLS];
        const streams due = lines_on(a, 3 + part);
        FOR(c, nc) q[c] = x[c]->q + 16 * part;
        FOR(g, 4) {
            if (nc <= 2) q5_K_few(p + 256 * part, &due, g, sc, q, nc, isum);
            else
                FOR(h, 2) q5_K_half(p + 256 * part, &due, g, h, sc, q, nc, isum);
        }
    }
    k_finish(p, sc, x, nc, isum, acc);
}

INLINE void d_finish(const char *d, const hn_a256 *const *x, int nc, const pair *isum, __m256 acc[2][COLS])
{
    FOR(h, 2) {
        __m256 dw = scales_f16(d + 16 * h);
        FOR(c, nc)
            acc[h][c] = _mm256_fmadd_ps(_mm256_mul_ps(dw, _mm256_set1_ps(x[c]->d)), _mm256_cvtepi32_ps(isum[c].v[h]),
                                        acc[h][c]);
    }
}

/* Words 2j, 2j + 1 of half a block of Q6_K, at p: codes of scales j/2, + 2, + 4, + 6, activations from q. `parts` has
 * bit 2h + i for each half of the group h and field l of the two, i. */
INLINE void q6_K_words(const char *p, const streams *a, int j, int parts, const int8_t *const *q, int nc, pair *isum)
{
    pair sum[4][COLS];
    FOR(k, 2) {
        int word_at = 2 * j + k;
        const char *at = p + hn_pack_q6_h(word_at);
        if (parts & 1)
            FOR(i, 3) ask_ahead(a, 2 + 3 * word_at + i);
        FOR(part, 4)
            if (parts >> part & 1) {
                int h = part / 2, i = part % 2;
                __m256i u = load_in_order(at + 32 * h), l = load_in_order(at + 64 + 64 * i + 32 * h);
                FOR(up, 2) {
                    int t = i + 2 * up;
                    __m256i v = or_and(up ? high_nibbles(l) : low_nibbles(l), shift16(u, 4 - 2 * t), 0x30303030);
                    FOR(c, nc) dot(&sum[t][c].v[h], !k, v, q[c] + 32 * t + 4 * word_at);
                }
            }
    }
    FOR(i, 8) {
        int h = i / 4, t = i % 4, scale = 2 * t + j / 2;
        if (parts >> (2 * h + t % 2) & 1) {
            __m256i s = load256(p + hn_pack_q6_s(scale / 4) + 32 * h);
            s = _mm256_srai_epi16(_mm256_shuffle_epi8(s, byte_index(-1, scale % 4, -1, scale % 4)), 8);
            FOR(c, nc) isum[c].v[h] = add_madd(isum[c].v[h], sum[t][c].v[h], s);
        }
    }
}
INLINE void q6_K_block(const char *p, const streams *a, const char *d, const hn_a256 *const *x, int nc,
                       __m256 acc[2][COLS])
{
    pair isum[COLS];
    FOR(c, nc) isum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    streams due = *a;
    FOR_ROLLED(n, 2) { /* half a block, of 26 lines */
        pair side[COLS];
        const int8_t *q[COLS];
        FOR(c, nc) side[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } }, q[c] = x[c]->q + 128 * n;
        FOR(i, 4) { /* Σ sc·Σq, two scales at a time */
            pair s = line(p + hn_pack_q6_s(i / 2));
            if (i % 2 == 0) ask_ahead(&due, i / 2);
            FOR(h, 2) {
                __m256i two =
                    _mm256_srai_epi16(_mm256_shuffle_epi8(s.v[h], byte_index(-1, i % 2 * 2, -1, i % 2 * 2 + 1)), 8);
                FOR(c, nc) side[c].v[h] = add_madd(side[c].v[h], two, word(x[c]->bsum + 8 * n + 2 * i));
            }
        }
        FOR(c, nc)
            FOR(h, 2) isum[c].v[h] = _mm256_sub_epi32(isum[c].v[h], _mm256_slli_epi32(side[c].v[h], 5));
        FOR(j, 4) { /* so many sums as stay in registers */
            if (nc == 1)
                FOR(h, 2) q6_K_words(p, &due, j, 3 << 2 * h, q, nc, isum);
            else
                FOR(part, 4) q6_K_words(p, &due, j, 1 << part, q, nc, isum);
        }
        p += hn_pack_q6_s(2);
        /* lines 26 … of streams that take turns: the third has the next one, its seventh */
        due = (streams){ { a->at[2] + 6 * 64, a->at[3] + 6 * 64, a->at[0] + 7 * 64, a->at[1] + 7 * 64 } };
    }
    d_finish(d, x, nc, isum, acc);
}

INLINE void iq4_XS_block(const char *p, const streams *a, const char *d, const hn_a256 *const *x, int nc,
                         __m256 acc[2][COLS])
{
    ask_ahead(a, 0);
    pair isum[COLS], sl = line_of(p, a, 1);
    __m256i sh[2];
    FOR(h, 2) sh[h] = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 32 + 16 * h)));
    FOR(c, nc) isum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    FOR_ROLLED(s, 8) {
        __m256i sc[2];
        const streams due = lines_on(a, s);
        FOR(h, 2) sc[h] = iq4_scale(sh[h], sl.v[h], s);
        FOR(i, 4) {
            pair q = line_of(p + 256 * s, &due, 2 + i);
            FOR(h, 2) {
                __m256i ql = iq4_levels(low_nibbles(q.v[h])), qh = iq4_levels(high_nibbles(q.v[h]));
                FOR(c, nc) {
                    isum[c].v[h] = add_madd(isum[c].v[h], signed_pairs(ql, word(x[c]->q + 32 * s + 4 * i)), sc[h]);
                    isum[c].v[h] = add_madd(isum[c].v[h], signed_pairs(qh, word(x[c]->q + 32 * s + 16 + 4 * i)), sc[h]);
                }
            }
        }
    }
    d_finish(p, x, nc, isum, acc);
}

/* ---- 32-blocks ------------------------------------------------------------------------------ */

/* Σ codes·activations of a block of sixteen rows; offset·Σq is subtracted afterwards */
typedef void q32_block_fn(const char *p, const int8_t *const *x, int nc, pair *sum);

#define ONES _mm256_set1_epi16(1)

INLINE void q4_0_block(const char *p, const int8_t *const *x, int nc, pair *sum)
{
    pair t[COLS];
    FOR(i, 4) {
        pair q = line(p + 64 * i), ql = low4(q), qh = high4(q);
        FOR(c, nc) {
            dot2(&t[c], !i, ql, x[c] + 4 * i);
            dot2(&t[c], false, qh, x[c] + 16 + 4 * i);
        }
    }
    FOR(c, nc)
        FOR(h, 2) sum[c].v[h] = _mm256_madd_epi16(t[c].v[h], ONES);
}

INLINE void q5_0_block(const char *p, const int8_t *const *x, int nc, pair *sum)
{
    pair b = line(p), lo[COLS], hi[COLS];
    FOR(i, 4) {
        pair q = line(p + 64 + 64 * i), ql, qh;
        FOR(h, 2) {
            ql.v[h] = or_and(low_nibbles(q.v[h]), shift16(b.v[h], 4 - i), 0x10101010);
            qh.v[h] = or_and(high_nibbles(q.v[h]), shift16(b.v[h], -i), 0x10101010);
        }
        FOR(c, nc) {
            dot2(&lo[c], !i, ql, x[c] + 4 * i);
            dot2(&hi[c], !i, qh, x[c] + 16 + 4 * i);
        }
    }
    FOR(c, nc)
        FOR(h, 2) sum[c].v[h] = add_madd(_mm256_madd_epi16(lo[c].v[h], ONES), hi[c].v[h], ONES);
}

INLINE void q8_0_block(const char *p, const int8_t *const *x, int nc, pair *sum)
{
    FOR(c, nc) sum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    FOR(i, 8) {
        pair q = line(p + 64 * i);
        FOR(h, 2) {
            __m256i v = _mm256_xor_si256(q.v[h], _mm256_set1_epi8(-128));
            FOR(c, nc) sum[c].v[h] = add_madd(sum[c].v[h], signed_pairs(v, word(x[c] + 4 * i)), ONES);
        }
    }
}

INLINE void iq4_NL_block(const char *p, const int8_t *const *x, int nc, pair *sum)
{
    FOR(c, nc) sum[c] = (pair){ { _mm256_setzero_si256(), _mm256_setzero_si256() } };
    FOR(i, 4) {
        pair q = line(p + 64 * i);
        FOR(h, 2) {
            __m256i ql = iq4_levels(low_nibbles(q.v[h])), qh = iq4_levels(high_nibbles(q.v[h]));
            FOR(c, nc) {
                sum[c].v[h] = add_madd(sum[c].v[h], signed_pairs(ql, word(x[c] + 4 * i)), ONES);
                sum[c].v[h] = add_madd(sum[c].v[h], signed_pairs(qh, word(x[c] + 16 + 4 * i)), ONES);
            }
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

/* a column that is not there: the last one again */
INLINE int64_t col(const hn_mm *m, int64_t c) { return c < m->n_col ? c : m->n_col - 1; }

/* pairs: blocks come in twos behind their d. */
INLINE void rows_k(const hn_mm *m, int64_t c0, int nc, k_block_fn *block, size_t bytes, bool pairs, const char *end)
{
    int64_t nb = m->n_in / 256;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *g = group(m, r);
        const hn_a256 *x[COLS];
        __m256 acc[2][COLS];
        FOR(c, nc) acc[0][c] = acc[1][c] = _mm256_setzero_ps(), x[c] = (const hn_a256 *)column(m, col(m, c0 + c));
        for (int64_t b = 0; b < nb; b++) {
            const char *p = g + (pairs ? hn_pair_block(bytes, b) : (size_t)b * bytes), *d = g + hn_pair_d(bytes, b);
            if (m->w_stride > HN_FAR_GROUP)
                FOR(c, nc) hn_fetch_a256(x[c] + 1);
            const streams a = ahead_of(m->w, p, end, SEGMENT);
            block(p, &a, d, x, nc, acc);
            FOR(c, nc) x[c]++;
        }
        FOR(c, nc) {
            __m256 y[2] = { acc[0][c], acc[1][c] };
            store_rows(m, r, col(m, c0 + c), y);
        }
    }
}

INLINE void rows_32(const hn_mm *m, int64_t c0, int nc, q32_block_fn *block, size_t bytes, int shift, const char *end)
{
    /* what a stream has to ask for with two blocks and their d, and in how many lines */
    const int quarter = (int)(64 + 2 * bytes) / STREAMS, asks = (quarter + 63) / 64;
    int64_t nb = m->n_in / 32;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *g = group(m, r);
        const int8_t *x[COLS];
        const float *dx[COLS];
        streams a = { 0 };
        __m256 acc[2][COLS];
        FOR(c, nc) {
            acc[0][c] = acc[1][c] = _mm256_setzero_ps();
            x[c] = (const int8_t *)column(m, c0 + c);
            dx[c] = (const float *)(x[c] + m->n_in);
        }
        for (int64_t b = 0; b < nb; b++) {
            const char *p = g + hn_pair_block(bytes, b), *d = g + hn_pair_d(bytes, b);
            pair sum[COLS];
            if (b % 2 == 0) a = ahead_of(m->w, d, end, SEGMENT);
            for (int i = b % 2 ? (asks + 1) / 2 : 0; i < (b % 2 ? asks : (asks + 1) / 2); i++)
                FOR(j, STREAMS) ask(a.at[j] + i * quarter / asks);
            block(p, x, nc, sum);
            FOR(h, 2) {
                __m256 dw = scales_f16(d + 16 * h);
                FOR(c, nc) {
                    __m256i v = sum[c].v[h];
                    if (shift) v = _mm256_sub_epi32(v, _mm256_slli_epi32(word(dx[c] + nb + b), shift));
                    acc[h][c] =
                        _mm256_fmadd_ps(_mm256_mul_ps(dw, _mm256_set1_ps(dx[c][b])), _mm256_cvtepi32_ps(v), acc[h][c]);
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

/* Where the last of m's rows end. */
INLINE const char *behind(const hn_mm *m) { return group(m, m->r1 + HN_PACK_ROWS - 1); }

/* A group of rows meets all columns before the next one, four at a time; from FOUR_FROM columns on (3 or 4) four, the
 * last of three twice. Each number of columns has its own code; where that of three is not worth its size (WITH_3), two
 * and one. */
#define BY_COLUMNS(ROWS, FOUR_FROM, WITH_3)                                \
    for (hn_mm g = *m; g.r0 < m->r1; g.r0 += HN_PACK_ROWS) {               \
        g.r1 = g.r0 + HN_PACK_ROWS < m->r1 ? g.r0 + HN_PACK_ROWS : m->r1;  \
        for (int64_t c = 0, n; c < m->n_col; c += n) {                     \
            const int64_t left = m->n_col - c;                             \
            n = left >= FOUR_FROM ? 4 : left == 3 && !(WITH_3) ? 2 : left; \
            if (n == 4) ROWS(4);                                           \
            else if (n == 1) ROWS(1);                                      \
            else if (n == 2) ROWS(2);                                      \
            else if (WITH_3) ROWS(3);                                      \
        }                                                                  \
    }
#define PACKED(TYPE, ROWS, FROM) PACKED_BY(TYPE, ROWS, 4, true, FROM)
#define PACKED_BY(TYPE, ROWS, FOUR_FROM, WITH_3, FROM)          \
    void hn_avx2_packed_##TYPE(const hn_mm *m)                  \
    {                                                           \
        if (m->panel && m->n_col >= FROM) {                     \
            hn_avx2_ppanel_##TYPE(m);                           \
            return;                                             \
        }                                                       \
        begin_ahead(m->w, group(m, m->r0), behind(m), SEGMENT); \
        BY_COLUMNS(ROWS, FOUR_FROM, WITH_3)                     \
    }

#define ROWS_Q4_K(NC) rows_k(&g, c, NC, q4_K_block, 2304, false, behind(m))
#define ROWS_Q5_K(NC) rows_k(&g, c, NC, q5_K_block, 2816, false, behind(m))
#define ROWS_Q6_K(NC) rows_k(&g, c, NC, q6_K_block, 3328, true, behind(m))
#define ROWS_IQ4_XS(NC) rows_k(&g, c, NC, iq4_XS_block, 2176, false, behind(m))
#define ROWS_Q4_0(NC) rows_32(&g, c, NC, q4_0_block, 256, 3, behind(m))
#define ROWS_IQ4_NL(NC) rows_32(&g, c, NC, iq4_NL_block, 256, 0, behind(m))
#define ROWS_Q5_0(NC) rows_32(&g, c, NC, q5_0_block, 320, 4, behind(m))
#define ROWS_Q8_0(NC) rows_32(&g, c, NC, q8_0_block, 512, 0, behind(m))
PACKED(q4_K, ROWS_Q4_K, PANEL_Q4_K)
PACKED_BY(q5_K, ROWS_Q5_K, 4, false, PANEL_Q5_K)
PACKED_BY(q6_K, ROWS_Q6_K, 3, false, PANEL_Q6_K)
PACKED_BY(iq4_XS, ROWS_IQ4_XS, 3, false, PANEL_IQ4_XS)
PACKED(q4_0, ROWS_Q4_0, PANEL_Q4_0)
PACKED(iq4_NL, ROWS_IQ4_NL, PANEL_IQ4_NL)
PACKED(q5_0, ROWS_Q5_0, PANEL_Q5_0)
PACKED(q8_0, ROWS_Q8_0, PANEL_Q8_0)

/* ---- floats: the contract's sixteen lanes are sixteen sums, each two vectors of rows ---------------- */

INLINE __m256 widen_f32(const char *p) { return _mm256_loadu_ps((const float *)p); }
INLINE __m256 widen_f16(const char *p) { return scales_f16(p); }
INLINE __m256 widen_bf16(const char *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

typedef __m256 widen_fn(const char *p);

/* Element k of sixteen rows times each column, to the sums of lane k mod 16. */
INLINE void float_step(__m256 (*s)[16][2], int l, const char *at, const float *const *x, int64_t k, int nc,
                       widen_fn *widen, size_t unit, bool first)
{
    __m256 w[2];
    FOR(h, 2) w[h] = widen(at + h * unit / 2);
    FOR(c, nc) {
        __m256 v = _mm256_set1_ps(x[c][k]);
        FOR(h, 2) s[c][l][h] = _mm256_fmadd_ps(w[h], v, first ? _mm256_setzero_ps() : s[c][l][h]);
    }
}

/* One column: elements are met as they lie, the sums of all lanes wait in the first cache. More: NL lanes at a time,
 * so that 2·NL·nc sums stay in registers; a block is read 16/NL times, all but the first from the first cache, while
 * the next one is asked for in order. */
INLINE void rows_float(const hn_mm *m, int64_t c0, int nc, widen_fn *widen, size_t bytes, const char *behind)
{
    enum { MAX_SUMS = 4 };
    const int nl = nc == 1 ? 16 : nc == 2 ? 2 : 1;
    const size_t unit = HN_PACK_ROWS * bytes;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *p = group(m, r);
        const float *x[COLS];
        __m256 t[COLS][16][2];
        FOR(c, nc) x[c] = (const float *)column(m, c0 + c);
        for (int64_t b = 0; b < m->n_in; b += 256) {
            int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in;
            if (nc == 1) {
                __m256 s[1][16][2];
                memset(s, 0, sizeof s);
                IN_MEMORY(s);
                int64_t k = b;
                streams a = ahead_of(m->w, p + (size_t)b * unit, behind, SEGMENT);
                for (; k + 16 <= end; k += 16) {
                    FOR(i, (int)(16 * unit / 64)) ask_ahead(&a, i);
                    FOR(i, STREAMS) a.at[i] += 16 * unit / STREAMS;
                    FOR(l, 16) {
                        const char *at = p + (size_t)(k + l) * unit;
                        float_step(s, l, at, x, k + l, 1, widen, unit, false);
                    }
                    IN_MEMORY(s);
                }
                for (int l = 0; k + l < end; l++)
                    float_step(s, l, p + (size_t)(k + l) * unit, x, k + l, 1, widen, unit, false);
                for (int l = 0; l < 16; l++)
                    FOR(h, 2) t[0][l][h] = b ? _mm256_add_ps(t[0][l][h], s[0][l][h]) : s[0][l][h];
                continue;
            }
            for (int l0 = 0; l0 < 16; l0 += nl) {
                __m256 s[MAX_SUMS][2];
                const char *next = p + (size_t)(b + 256 + 16 * l0) * unit;
                FOR(i, nl * nc) s[i][0] = s[i][1] = _mm256_setzero_ps();
                for (int64_t k = b + l0; k < end; k += 16, next += nl * unit) {
                    for (size_t i = 0; i < nl * unit; i += 64) __asm__ volatile("prefetcht0 %0" : : "m"(next[i]));
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

#define ROWS_F32(NC) rows_float(&g, c, NC, widen_f32, 4, behind(m))
#define ROWS_F16(NC) rows_float(&g, c, NC, widen_f16, 2, behind(m))
#define ROWS_BF16(NC) rows_float(&g, c, NC, widen_bf16, 2, behind(m))
#define PACKED_FLOAT(TYPE, ROWS)                                                   \
    void hn_avx2_packed_##TYPE(const hn_mm *m)                                     \
    {                                                                              \
        if (m->n_col == 1) begin_ahead(m->w, group(m, m->r0), behind(m), SEGMENT); \
        BY_COLUMNS(ROWS, 4, true)                                                  \
    }
PACKED_FLOAT(f32, ROWS_F32)
PACKED_FLOAT(f16, ROWS_F16)
PACKED_FLOAT(bf16, ROWS_BF16)

#else
typedef int hn_no_avx2_packed; /* an empty file is not C */
#endif
