/* AVX_VNNI products of one column from the packed layout (quant/pack.h): a lane is a row, a word of codes meets a
 * broadcast word of activations in one vpdpbusd. Offsets of the codes enter as the sums' first value. A sub-block's sum
 * of 32 bits meets its scale in vpmulld. More columns take AVX2's kernels or the panels (avx_vnni.c). */
#if defined(__x86_64__)

#include "kernels/avx_vnni.h"

enum { ROWS = HN_PACK_ROWS };

/* Both halves of sixteen rows: a vector of each eight. */
typedef struct pair {
    __m256i v[2];
} pair;

/* In the order of addresses, and asked for ahead: both as AVX2's packed products do (measured: docs/LAB.md). */
INLINE pair line(const char *p)
{
    fetch_line(p + 4096);
    return (pair){ { load_in_order(p), load_in_order(p + 32) } };
}
INLINE pair low4(pair q) { return (pair){ { low_nibbles(q.v[0]), low_nibbles(q.v[1]) } }; }
INLINE pair high4(pair q) { return (pair){ { high_nibbles(q.v[0]), high_nibbles(q.v[1]) } }; }
/* codes, and of `up` moved by n the bits m */
INLINE pair with_bits(pair q, pair up, int n, uint32_t m)
{
    FOR(h, 2) q.v[h] = or_and(q.v[h], shift16(up.v[h], n), m);
    return q;
}
INLINE pair all_lanes(__m256i v) { return (pair){ { v, v } }; }
/* t += codes · the four activations at x */
INLINE void dot(pair *t, pair codes, const int8_t *x)
{
    __m256i w = word(x);
    FOR(h, 2) t->v[h] = dpbusd(t->v[h], codes.v[h], w);
}
/* sum += t · scale, a scale of 32 bits in every lane */
INLINE void scaled(pair *sum, pair t, pair scale)
{
    FOR(h, 2) sum->v[h] = _mm256_add_epi32(sum->v[h], _mm256_mullo_epi32(t.v[h], scale.v[h]));
}
INLINE __m256 halves(const char *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
/* acc += d · da · sum, of sixteen d from p on */
INLINE void finish(__m256 acc[2], const char *p, __m256 da, pair sum)
{
    FOR(h, 2) acc[h] = _mm256_fmadd_ps(_mm256_mul_ps(halves(p + 16 * h), da), _mm256_cvtepi32_ps(sum.v[h]), acc[h]);
}
/* minus 2^shift times each of eight sums of 32 activations */
INLINE void offsets32(int32_t first[8], const hn_a256 *x, int shift)
{
    __m256i v = _mm256_madd_epi16(load256(x->bsum), _mm256_set1_epi16(1));
    _mm256_storeu_si256((__m256i *)first, _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(v, shift)));
}

/* ---- K-quants: one block of 256 of sixteen rows ----------------------------------------------------- */

/* p: the block; d: the scales of a pair of blocks */
typedef void k_block_fn(__m256 acc[2], const char *p, const char *d, const hn_a256 *x);

/* Bit `mask` of every byte as 16. */
INLINE __m256i fifth_bit(__m256i v, __m256i mask)
{
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(v, mask), mask), _mm256_set1_epi8(16));
}
/* Q4_K; with five bits Q5_K: codes from `at` on, their upper bits before them */
INLINE void k45_block(__m256 acc[2], const char *p, const hn_a256 *x, int at, bool five)
{
    __m256i sc[2][4];
    _Alignas(32) int32_t sums[8];
    const __m256i zero = _mm256_setzero_si256();
    pair sum = all_lanes(zero), mins = sum, scale[8];
    __m256 da = _mm256_set1_ps(x->d);
    FOR(h, 2) {
        __m256i s[3];
        FOR(i, 3) s[i] = load256(p + 64 + 64 * i + 32 * h);
        k_scale_words(sc[h], s);
        FOR(i, 8) scale[i].v[h] = _mm256_shuffle_epi8(sc[h][i / 4], byte_index(i % 4, -1, -1, -1));
    }
    FOR_ROLLED(g, 4) { /* bit 2g of the upper bits: the lower codes, 2g + 1: the upper */
        pair lo = all_lanes(zero), hi = lo;
        const __m256i bit = _mm256_set1_epi8((char)(1 << 2 * g)), next = _mm256_set1_epi8((char)(2 << 2 * g));
        FOR(i, 8) {
            pair q = line(p + at + 64 * (8 * g + i)), ql = low4(q), qh = high4(q);
            if (five) {
                pair up = line(p + 256 + 64 * i);
                FOR(h, 2) {
                    ql.v[h] = _mm256_or_si256(ql.v[h], fifth_bit(up.v[h], bit));
                    qh.v[h] = _mm256_or_si256(qh.v[h], fifth_bit(up.v[h], next));
                }
            }
            dot(&lo, ql, x->q + 64 * g + 4 * i);
            dot(&hi, qh, x->q + 64 * g + 32 + 4 * i);
        }
        scaled(&sum, lo, scale[2 * g]);
        scaled(&sum, hi, scale[2 * g + 1]);
    }
    finish(acc, p, da, sum);
    __m256i v = _mm256_madd_epi16(load256(x->bsum), _mm256_set1_epi16(1));
    _mm_store_si128((__m128i *)sums, _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
    FOR(h, 2)
        FOR(i, 4) {
            __m256i two = _mm256_shuffle_epi8(sc[h][2 + i / 2], byte_index(2 * i % 4, -1, 2 * i % 4 + 1, -1));
            mins.v[h] = dpwssd(mins.v[h], two, word(&sums[i]));
        }
    FOR(h, 2) {
        __m256 dmin = _mm256_mul_ps(halves(p + 32 + 16 * h), da);
        acc[h] = _mm256_fnmadd_ps(dmin, _mm256_cvtepi32_ps(mins.v[h]), acc[h]);
    }
}
INLINE void q4_K_block(__m256 acc[2], const char *p, const char *d, const hn_a256 *x)
{
    k45_block(acc, p, x, 256, false);
}
INLINE void q5_K_block(__m256 acc[2], const char *p, const char *d, const hn_a256 *x)
{
    k45_block(acc, p, x, 768, true);
}

INLINE void q6_K_block(__m256 acc[2], const char *p, const char *d, const hn_a256 *x)
{
    int32_t first[16];
    pair sum = all_lanes(_mm256_setzero_si256()), scale[16];
    FOR(i, 2) {
        __m256i v = _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(x->bsum + 8 * i)));
        v = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(v, 5));
        _mm256_storeu_si256((__m256i *)(first + 8 * i), v);
    }
    FOR(i, 4) {
        pair four = line(p + hn_pack_q6_s(i));
        FOR(k, 4)
            FOR(h, 2)
                scale[4 * i + k].v[h] =
                    _mm256_srai_epi32(_mm256_shuffle_epi8(four.v[h], byte_index(-1, -1, -1, k)), 24);
    }
    FOR(part, 4) { /* words 4u … 4u + 3 of 8 of half n: sub-blocks 8n + u, + 2, + 4, + 6 */
        const int n = part / 2, u = part % 2;
        pair t[4];
        FOR(k, 4) t[k] = all_lanes(word(&first[8 * n + 2 * k + u]));
        FOR(j, 4) {
            int i = 4 * u + j;
            pair h = line(p + hn_pack_q6_h(8 * n + i));
            pair l0 = line(p + hn_pack_q6_l(16 * n + i)), l1 = line(p + hn_pack_q6_l(16 * n + 8 + i));
            const int8_t *a = x->q + 128 * n + 4 * i;
            dot(&t[0], with_bits(low4(l0), h, 4, 0x30303030), a);
            dot(&t[1], with_bits(low4(l1), h, 2, 0x30303030), a + 32);
            dot(&t[2], with_bits(high4(l0), h, 0, 0x30303030), a + 64);
            dot(&t[3], with_bits(high4(l1), h, -2, 0x30303030), a + 96);
        }
        FOR(k, 4) scaled(&sum, t[k], scale[8 * n + 2 * k + u]);
    }
    finish(acc, d, _mm256_set1_ps(x->d), sum);
}

INLINE pair pair_levels(pair codes) { return (pair){ { high_levels(codes.v[0]), high_levels(codes.v[1]) } }; }
INLINE void iq4_XS_block(__m256 acc[2], const char *p, const char *d, const hn_a256 *x)
{
    int32_t first[8];
    pair sum = all_lanes(_mm256_setzero_si256()), sl = line(p + 64), scale[8];
    __m256i sh[2];
    FOR(h, 2) sh[h] = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 32 + 16 * h)));
    offsets32(first, x, 7);
    FOR(s, 8)
        FOR(h, 2) scale[s].v[h] = _mm256_srai_epi32(iq4_scale(sh[h], sl.v[h], s), 16);
    FOR_ROLLED(s, 8) {
        pair t = all_lanes(word(&first[s]));
        FOR(i, 4) {
            pair q = line(p + 128 + 64 * (4 * s + i));
            dot(&t, pair_levels(low4(q)), x->q + 32 * s + 4 * i);
            dot(&t, pair_levels(high4(q)), x->q + 32 * s + 16 + 4 * i);
        }
        scaled(&sum, t, scale[s]);
    }
    finish(acc, p, _mm256_set1_ps(x->d), sum);
}

/* ---- 32-blocks: one block of sixteen rows, whose codes carry 2^shift more than their value ----------- */

typedef void q32_block_fn(pair *t, const char *p, const int8_t *x);

INLINE void q4_0_block(pair *t, const char *p, const int8_t *x)
{
    FOR(i, 4) {
        pair q = line(p + 64 * i);
        dot(t, low4(q), x + 4 * i);
        dot(t, high4(q), x + 16 + 4 * i);
    }
}
INLINE void q5_0_block(pair *t, const char *p, const int8_t *x) /* bit i of each byte of the first line: word i's */
{
    pair up = line(p);
    FOR(i, 4) {
        pair q = line(p + 64 + 64 * i);
        dot(t, with_bits(low4(q), up, 4 - i, 0x10101010), x + 4 * i);
        dot(t, with_bits(high4(q), up, -i, 0x10101010), x + 16 + 4 * i);
    }
}
INLINE void q8_0_block(pair *t, const char *p, const int8_t *x)
{
    FOR(i, 8) dot(t, line(p + 64 * i), x + 4 * i);
}
INLINE void iq4_NL_block(pair *t, const char *p, const int8_t *x)
{
    FOR(i, 4) {
        pair q = line(p + 64 * i);
        dot(t, pair_levels(low4(q)), x + 4 * i);
        dot(t, pair_levels(high4(q)), x + 16 + 4 * i);
    }
}

/* ---- from blocks to a matmul --------------------------------------------------------------------------- */

INLINE const char *group(const hn_mm *m, int64_t r) { return (const char *)m->w + (size_t)(r / ROWS) * m->w_stride; }
INLINE void store(const hn_mm *m, int64_t r, const __m256 y[2])
{
    float v[ROWS];
    int64_t n = m->r1 - r < ROWS ? m->r1 - r : ROWS;
    FOR(h, 2) _mm256_storeu_ps(v + 8 * h, y[h]);
    memcpy(m->y + r, v, (size_t)n * sizeof *v);
}

/* pairs: blocks come in twos behind their d. */
INLINE void rows_k(const hn_mm *m, k_block_fn *block, size_t bytes, bool pairs)
{
    int64_t nb = m->n_in / 256;
    for (int64_t r = m->r0; r < m->r1; r += ROWS) {
        const char *g = group(m, r);
        const hn_a256 *x = m->x;
        __m256 acc[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
        for (int64_t b = 0; b < nb; b++, x++) {
            if (m->w_stride > HN_FAR_GROUP) hn_fetch_a256(x + 1);
            block(acc, g + (pairs ? hn_pair_block(bytes, b) : (size_t)b * bytes), g + hn_pair_d(bytes, b), x);
        }
        store(m, r, acc);
    }
}
INLINE void rows_32(const hn_mm *m, q32_block_fn *block, size_t bytes, int shift)
{
    int64_t nb = m->n_in / 32;
    for (int64_t r = m->r0; r < m->r1; r += ROWS) {
        const char *g = group(m, r);
        const int8_t *x = m->x;
        const float *d = (const float *)(x + m->n_in);
        __m256 acc[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
        for (int64_t b = 0; b < nb; b++, x += 32) {
            pair t = all_lanes(_mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(word(d + nb + b), shift)));
            block(&t, g + hn_pair_block(bytes, b), x);
            finish(acc, g + hn_pair_d(bytes, b), _mm256_set1_ps(d[b]), t);
        }
        store(m, r, acc);
    }
}

void HN_VNNI(packed_q4_K)(const hn_mm *m) { rows_k(m, q4_K_block, 2304, false); }
void HN_VNNI(packed_q5_K)(const hn_mm *m) { rows_k(m, q5_K_block, 2816, false); }
void HN_VNNI(packed_q6_K)(const hn_mm *m) { rows_k(m, q6_K_block, 3328, true); }
void HN_VNNI(packed_iq4_XS)(const hn_mm *m) { rows_k(m, iq4_XS_block, 2176, false); }
void HN_VNNI(packed_q4_0)(const hn_mm *m) { rows_32(m, q4_0_block, 256, 3); }
void HN_VNNI(packed_q5_0)(const hn_mm *m) { rows_32(m, q5_0_block, 320, 4); }
void HN_VNNI(packed_q8_0)(const hn_mm *m) { rows_32(m, q8_0_block, 512, 7); }
void HN_VNNI(packed_iq4_NL)(const hn_mm *m) { rows_32(m, iq4_NL_block, 256, 7); }

#else
typedef int hn_no_avx_vnni_packed; /* an empty file is not C */
#endif
