/* Products of few columns straight from the rows as they lie in the file, of AVX2 and of AVX_VNNI (HN_VNNI_DOT). Four
 * rows of K-quants, eight of 32-blocks stand side by side, a lane a row when sums meet scales. One to four columns
 * share every opened block; more take the panels, where there is scratch for them. Who includes this defines the
 * functions' names, NAME_ROWS(TYPE) and NAME_PANEL(TYPE), and PANEL_FROM(n), from how many columns a panel pays where
 * AVX2's do from n. Instructions and cycles per 32 weights, predicted and measured: docs/LAB.md. */
#ifndef HN_AVX2_ROWS_H
#define HN_AVX2_ROWS_H

#include "kernels/avx2.h"

/* columns at once, rows at once */
enum { COLS = 4, K_ROWS = 4, Q32_ROWS = 8 };

INLINE const char *row_of(const hn_mm *m, int64_t r) { return (const char *)m->w + (size_t)r * m->w_stride; }
INLINE const char *column(const hn_mm *m, int64_t c) { return (const char *)m->x + (size_t)c * m->x_stride; }

/* ---- K-quants ------------------------------------------------------------------------------------ */

/* What stands beside the codes of a block, opened: scales as bytes or int16, 16 int16 that multiply the sums of 16
 * activations (minima, or the scales for the offset of the codes). */
typedef struct k_head {
    __m256i scales, side;
} k_head;

/* Opens the heads of the blocks of four rows, w[i] + at. */
typedef void k_heads_fn(k_head *o, const char *const *w, int64_t at);

/* isum = Σ sc·Σ codes·q of a block in eight lanes, of each column. Codes stay below 64, so vpmaddubsw
 * (63·127·2 = 16,002) cannot saturate; nor can it with the levels of IQ4_XS, whose signs go over to q (32,258). */
typedef void k_dot_fn(const char *w, const k_head *head, const hn_a256 *const *x, int nc, __m256i *isum);

/* two equal bytes for the shuffle of 16-bit lanes: int16 i of each half, in all its lanes */
INLINE __m256i lane16(int i) { return _mm256_set1_epi16((short)(2 * i | (2 * i + 1) << 8)); }
/* byte i of each half as a 16-bit number, in all its lanes */
INLINE __m256i byte16(int i) { return _mm256_set1_epi16((short)(0x8000 | i)); }

/* d, dmin and the 12 bytes of scales and minima are the first 16 bytes of a block: those of four blocks are opened side
 * by side. Block i's eight scales are bytes 0 … 7 of its register, so are its minima. */
INLINE void k4_heads(k_head *o, const char *const *w, int64_t at)
{
    __m128i b[4], lo[2], hi[2], v[4], sc, mn;
    FOR(i, 4) b[i] = _mm_loadu_si128((const __m128i *)(w[i] + at));
    FOR(i, 2) lo[i] = _mm_unpacklo_epi32(b[2 * i], b[2 * i + 1]), hi[i] = _mm_unpackhi_epi32(b[2 * i], b[2 * i + 1]);
    /* words 1, 2, 3 of the four blocks: bytes 0–3 of s, 4–7, 8–11 */
    __m128i s0 = _mm_unpackhi_epi64(lo[0], lo[1]), s1 = _mm_unpacklo_epi64(hi[0], hi[1]),
            s2 = _mm_unpackhi_epi64(hi[0], hi[1]);
    const __m128i six = _mm_set1_epi8(0x3F), four = _mm_set1_epi8(15), two = _mm_set1_epi8(0x30);
    v[0] = _mm_and_si128(s0, six);
    v[1] = _mm_or_si128(_mm_and_si128(s2, four), _mm_and_si128(_mm_srli_epi16(s0, 2), two));
    v[2] = _mm_and_si128(s1, six);
    v[3] = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(s2, 4), four), _mm_and_si128(_mm_srli_epi16(s1, 2), two));
    FOR(i, 4) {
        if (i % 2 == 0) {
            sc = i ? _mm_unpackhi_epi32(v[0], v[1]) : _mm_unpacklo_epi32(v[0], v[1]);
            mn = i ? _mm_unpackhi_epi32(v[2], v[3]) : _mm_unpacklo_epi32(v[2], v[3]);
        } else {
            sc = _mm_unpackhi_epi64(sc, sc);
            mn = _mm_unpackhi_epi64(mn, mn);
        }
        o[i].scales = _mm256_broadcastsi128_si256(sc);
        o[i].side = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(mn, mn));
    }
}

/* isum += scale·Σ codes·q over 32 codes from element `at` */
INLINE void dot32(__m256i *isum, __m256i codes, __m256i scale, const hn_a256 *const *x, int nc, int at)
{
    FOR(c, nc) isum[c] = add_madd(isum[c], _mm256_maddubs_epi16(codes, load256(x[c]->q + at)), scale);
}

INLINE void q4_K_dot(const char *w, const k_head *head, const hn_a256 *const *x, int nc, __m256i *isum)
{
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(g, 4) {
        __m256i q = load_in_order(w + offsetof(hn_q4_K, q) + 32 * g);
        dot32(isum, low_nibbles(q), _mm256_shuffle_epi8(head->scales, byte16(2 * g)), x, nc, 64 * g);
        dot32(isum, high_nibbles(q), _mm256_shuffle_epi8(head->scales, byte16(2 * g + 1)), x, nc, 64 * g + 32);
    }
}

INLINE void q5_K_dot(const char *w, const k_head *head, const hn_a256 *const *x, int nc, __m256i *isum)
{
    __m256i h = load_in_order(w + offsetof(hn_q5_K, h));
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(g, 4) {
        __m256i q = load_in_order(w + offsetof(hn_q5_K, q) + 32 * g);
        __m256i lo = or_and(low_nibbles(q), shift16(h, 4 - 2 * g), 0x10101010);
        __m256i hi = or_and(high_nibbles(q), shift16(h, 3 - 2 * g), 0x10101010);
        dot32(isum, lo, _mm256_shuffle_epi8(head->scales, byte16(2 * g)), x, nc, 64 * g);
        dot32(isum, hi, _mm256_shuffle_epi8(head->scales, byte16(2 * g + 1)), x, nc, 64 * g + 32);
    }
}

/* Scale 2s of Q6_K in the lower half, 2s + 1 in the upper, from int16 scales 0–7 or 8–15 in both halves. */
INLINE __m256i scale_q6(__m256i eight, int s)
{
    int a = 4 * s % 16, b = a + 2;
    __m128i hi = _mm_set1_epi16((short)(b | (b + 1) << 8));
    return _mm256_shuffle_epi8(eight, _mm256_inserti128_si256(lane16(2 * s % 8), hi, 1));
}
INLINE void q6_K_heads(k_head *o, const char *const *w, int64_t at)
{
    FOR(i, 4) {
        __m128i s = _mm_loadu_si128((const __m128i *)(w[i] + at + offsetof(hn_q6_K, s)));
        o[i].scales = o[i].side = _mm256_cvtepi8_epi16(s);
    }
}
INLINE void q6_K_dot(const char *w, const k_head *head, const hn_a256 *const *x, int nc, __m256i *isum)
{
    __m256i s16 = head->scales;
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(n, 2) {
        __m256i sc = n ? _mm256_permute4x64_epi64(s16, 0xEE) : _mm256_permute4x64_epi64(s16, 0x44);
        __m256i l0 = load_in_order(w + offsetof(hn_q6_K, l) + 64 * n);
        __m256i l1 = load_in_order(w + offsetof(hn_q6_K, l) + 64 * n + 32);
        __m256i h = load_in_order(w + offsetof(hn_q6_K, h) + 32 * n);
        dot32(isum, or_and(low_nibbles(l0), _mm256_slli_epi16(h, 4), 0x30303030), scale_q6(sc, 4 * n), x, nc, 128 * n);
        dot32(isum, or_and(low_nibbles(l1), _mm256_slli_epi16(h, 2), 0x30303030), scale_q6(sc, 4 * n + 1), x, nc,
              128 * n + 32);
        dot32(isum, or_and(high_nibbles(l0), h, 0x30303030), scale_q6(sc, 4 * n + 2), x, nc, 128 * n + 64);
        dot32(isum, or_and(high_nibbles(l1), _mm256_srli_epi16(h, 2), 0x30303030), scale_q6(sc, 4 * n + 3), x, nc,
              128 * n + 96);
    }
}

INLINE void iq4_XS_heads(k_head *o, const char *const *w, int64_t at)
{
    FOR(i, 4) {
        uint16_t high;
        const char *p = w[i] + at;
        memcpy(&high, p + offsetof(hn_iq4_XS, sh), 2);
        __m128i sl = _mm_cvtsi32_si128(load32(p + offsetof(hn_iq4_XS, sl))), sh = _mm_set1_epi16((short)high);
        sl = _mm_and_si128(_mm_unpacklo_epi8(sl, _mm_srli_epi16(sl, 4)), _mm_set1_epi8(15));
        /* bits 2i, 2i + 1 of sh to the top of lane i */
        const __m128i up = _mm_setr_epi16(1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1);
        sh = _mm_srli_epi16(_mm_mullo_epi16(sh, up), 14);
        sl = _mm_sub_epi16(_mm_or_si128(_mm_cvtepu8_epi16(sl), _mm_slli_epi16(sh, 4)), _mm_set1_epi16(32));
        o[i].scales = o[i].side = _mm256_broadcastsi128_si256(sl);
    }
}
INLINE void iq4_XS_dot(const char *w, const k_head *head, const hn_a256 *const *x, int nc, __m256i *isum)
{
    __m256i sc = head->scales;
    FOR(c, nc) isum[c] = _mm256_setzero_si256();
    FOR(g, 4) { /* two sub-blocks of 32 in a register: codes of the first 16 of each, then of the others */
        __m256i q = load_in_order(w + offsetof(hn_iq4_XS, q) + 32 * g);
        __m256i lo = iq4_levels(low_nibbles(q)), hi = iq4_levels(high_nibbles(q));
        const __m256i at = _mm256_inserti128_si256(lane16(2 * g), _mm256_castsi256_si128(lane16(2 * g + 1)), 1);
        __m256i s = _mm256_shuffle_epi8(sc, at);
        FOR(c, nc) {
            __m256i a = load256(x[c]->q + 64 * g), b = load256(x[c]->q + 64 * g + 32);
            __m256i first = _mm256_permute2x128_si256(a, b, 0x20), second = _mm256_permute2x128_si256(a, b, 0x31);
            isum[c] = add_madd(isum[c], signed_pairs(lo, first), s);
            isum[c] = add_madd(isum[c], signed_pairs(hi, second), s);
        }
    }
}

/* What the second product of a block is: Σ minima times dmin, Σ scales times 32 taken from the first, or none. */
typedef enum k_kind { MINIMA, OFFSET, LEVELS } k_kind;

/* lane i = sum of v[i] */
INLINE __m128i sum4(const __m256i v[4])
{
    __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}
/* Rows at once are streams too many for the hardware to follow. Those behind are contiguous, and asked for while these
 * compute: by AVX2 in a few streams, by AVX_VNNI in the order of addresses. */
#ifdef HN_VNNI_DOT
INLINE void begin_rows(const hn_mm *m, int rows) { (void)m, (void)rows; }
INLINE streams next_rows(const hn_mm *m, const char *w, int rows, const char *end)
{
    (void)end;
    return (streams){ { w + rows * m->w_stride } };
}
/* Block i of the blocks of `rows` rows at `at`, n bytes each, is computed. */
INLINE void fetch_next(const streams *a, const char *w, int rows, int64_t at, int i, int n)
{
    (void)w;
    for (int k = 0; k < n; k += 64) ask(a->at[0] + rows * at + i * n + k);
}
#else
/* whole tiles of rows */
INLINE size_t segment_of(const hn_mm *m, int rows)
{
    size_t tile = (size_t)rows * m->w_stride;
    return tile < SEGMENT ? SEGMENT / tile * tile : tile;
}
INLINE void begin_rows(const hn_mm *m, int rows)
{
    begin_ahead(m->w, row_of(m, m->r0), row_of(m, m->r1), segment_of(m, rows));
}
INLINE streams next_rows(const hn_mm *m, const char *w, int rows, const char *end)
{
    return ahead_of(m->w, w, end, segment_of(m, rows));
}
INLINE void fetch_next(const streams *a, const char *w, int rows, int64_t at, int i, int n)
{
    const int due = rows / STREAMS * n; /* of each stream with all blocks */
    if (rows == K_ROWS) /* the next tile once more: asked for so early, it has left the first cache by now */
        for (int k = 0; k < n; k += 64) ask(w + rows * at + i * n + k);
    if (i >= STREAMS) return;
    for (int k = 0; k < due; k += 64) ask(a->at[i] + rows / STREAMS * at + k);
}
#endif

/* d_at: where a block's word of d and dmin stands; of OFFSET d is its upper half */
INLINE void k_rows(const hn_mm *m, int64_t c0, int nc, k_heads_fn *heads, k_dot_fn *dot, int bytes, int d_at,
                   k_kind kind, const char *end)
{
    enum { R = K_ROWS };
    const __m128i lower = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i upper = _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    for (int64_t r = m->r0; r < m->r1; r += R) {
        const char *w[R];
        const hn_a256 *x[COLS];
        __m128 acc[COLS];
        FOR(i, R) w[i] = row_of(m, r + i < m->r1 ? r + i : m->r1 - 1);
        const streams next = next_rows(m, w[0], R, end);
        FOR(c, nc) x[c] = (const hn_a256 *)column(m, c0 + c), acc[c] = _mm_setzero_ps();
        for (int64_t b = 0; b < m->n_in / 256; b++) {
            __m256i isum[COLS][R], side[COLS][R];
            k_head head[R];
            int64_t at = b * bytes;
            heads(head, w, at);
            FOR(i, R) {
                __m256i v[COLS];
                fetch_next(&next, w[0] + R * m->w_stride, R, at, i, bytes);
                dot(w[i] + at, &head[i], x, nc, v);
                FOR(c, nc) {
                    isum[c][i] = v[c];
                    if (kind != LEVELS) side[c][i] = _mm256_madd_epi16(head[i].side, load256(x[c]->bsum));
                }
            }
            __m128i words = _mm_setr_epi32(load32(w[0] + at + d_at), load32(w[1] + at + d_at), load32(w[2] + at + d_at),
                                           load32(w[3] + at + d_at));
            __m128 d = _mm_cvtph_ps(_mm_shuffle_epi8(words, kind == OFFSET ? upper : lower));
            __m128 dmin = _mm_cvtph_ps(_mm_shuffle_epi8(words, upper));
            FOR(c, nc) {
                __m128 da = _mm_set1_ps(x[c]->d);
                __m128i s = sum4(isum[c]), t = kind == LEVELS ? s : sum4(side[c]);
                if (kind == OFFSET) s = _mm_sub_epi32(s, _mm_slli_epi32(t, 5));
                acc[c] = _mm_fmadd_ps(_mm_mul_ps(d, da), _mm_cvtepi32_ps(s), acc[c]);
                if (kind == MINIMA) acc[c] = _mm_fnmadd_ps(_mm_mul_ps(dmin, da), _mm_cvtepi32_ps(t), acc[c]);
                x[c]++;
            }
        }
        FOR(c, nc) {
            float y[R];
            _mm_storeu_ps(y, acc[c]);
            for (int i = 0; i < R && r + i < m->r1; i++) m->y[(c0 + c) * m->ldy + r + i] = y[i];
        }
    }
}

/* ---- 32-blocks ------------------------------------------------------------------------------------- */

/* Sums of a block's 32 codes times q, in eight lanes, of each column */
typedef void q32_dot_fn(const char *w, const int8_t *const *x, int nc, __m256i *sum);
/* The scales of the blocks of eight rows, w[i] + at. */
typedef __m256 q32_scales_fn(const char *const *w, int64_t at);

#define ONES _mm256_set1_epi16(1)

INLINE __m256i nibbles(const char *q)
{
    __m128i b = load_half_in_order(q);
    return low_nibbles(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1));
}
#ifdef HN_VNNI_DOT
/* Any unsigned codes: signed ones stand 128 higher, which is taken off as an offset. */
enum { SIGNED_OFFSET = 128 };
INLINE void dot_small(__m256i codes, const int8_t *const *x, int nc, __m256i *sum)
{
    FOR(c, nc) sum[c] = dpbusd(_mm256_setzero_si256(), codes, load256(x[c]));
}
INLINE void dot_signed(__m256i codes, const int8_t *const *x, int nc, __m256i *sum)
{
    dot_small(_mm256_xor_si256(codes, _mm256_set1_epi8(-128)), x, nc, sum);
}
#else
enum { SIGNED_OFFSET = 0 };
/* codes unsigned and below 32 */
INLINE void dot_small(__m256i codes, const int8_t *const *x, int nc, __m256i *sum)
{
    FOR(c, nc) sum[c] = _mm256_madd_epi16(_mm256_maddubs_epi16(codes, load256(x[c])), ONES);
}
INLINE void dot_signed(__m256i codes, const int8_t *const *x, int nc, __m256i *sum)
{
    FOR(c, nc) sum[c] = _mm256_madd_epi16(signed_pairs(codes, load256(x[c])), ONES);
}
#endif

INLINE void q4_0_dot(const char *w, const int8_t *const *x, int nc, __m256i *sum)
{
    dot_small(nibbles(w + offsetof(hn_q4_0, q)), x, nc, sum);
}
INLINE void iq4_NL_dot(const char *w, const int8_t *const *x, int nc, __m256i *sum)
{
    dot_signed(iq4_levels(nibbles(w + offsetof(hn_q4_0, q))), x, nc, sum);
}
INLINE void q5_0_dot(const char *w, const int8_t *const *x, int nc, __m256i *sum)
{
    /* byte i of each 8 sees bit i of its own byte of h */
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bits = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i h = _mm256_shuffle_epi8(word(w + offsetof(hn_q5_0, h)), which);
    __m256i on = _mm256_cmpeq_epi8(_mm256_and_si256(h, bits), bits);
    dot_small(or_and(nibbles(w + offsetof(hn_q5_0, q)), on, 0x10101010), x, nc, sum);
}
INLINE void q8_0_dot(const char *w, const int8_t *const *x, int nc, __m256i *sum)
{
    dot_signed(load_in_order(w + offsetof(hn_q8_0, q)), x, nc, sum);
}
/* doubled levels + 12, from 0 to 24 */
INLINE void mxfp4_dot(const char *w, const int8_t *const *x, int nc, __m256i *sum)
{
    __m256i levels = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)hn_e2m1_doubled));
    levels = _mm256_add_epi8(levels, _mm256_set1_epi8(12));
    dot_small(_mm256_shuffle_epi8(levels, nibbles(w + offsetof(hn_mxfp4, q))), x, nc, sum);
}

INLINE int load16(const char *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}
INLINE __m256 half_scales(const char *const *w, int64_t at)
{
    return _mm256_cvtph_ps(_mm_setr_epi16((short)load16(w[0] + at), (short)load16(w[1] + at), (short)load16(w[2] + at),
                                          (short)load16(w[3] + at), (short)load16(w[4] + at), (short)load16(w[5] + at),
                                          (short)load16(w[6] + at), (short)load16(w[7] + at)));
}
/* hn_mxfp4_scale of the first bytes */
INLINE __m256 e8m0_scales(const char *const *w, int64_t at)
{
    __m256i e = _mm256_setr_epi32((uint8_t)w[0][at], (uint8_t)w[1][at], (uint8_t)w[2][at], (uint8_t)w[3][at],
                                  (uint8_t)w[4][at], (uint8_t)w[5][at], (uint8_t)w[6][at], (uint8_t)w[7][at]);
    __m256i low = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __m256i d = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(d, low, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* lane i = sum of v[i] */
INLINE __m256i sum8(const __m256i v[8])
{
    __m256i lo = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i hi = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(lo, hi, 0x20), _mm256_permute2x128_si256(lo, hi, 0x31));
}

/* offset·Σq is taken from the products */
INLINE void q32_rows(const hn_mm *m, int64_t c0, int nc, q32_dot_fn *dot, q32_scales_fn *scales, int bytes, int offset,
                     const char *end)
{
    enum { R = Q32_ROWS };
    const int64_t nb = m->n_in / 32;
    for (int64_t r = m->r0; r < m->r1; r += R) {
        const char *w[R];
        const int8_t *x[COLS];
        const float *dx[COLS];
        __m256 acc[COLS];
        FOR(i, R) w[i] = row_of(m, r + i < m->r1 ? r + i : m->r1 - 1);
        const streams next = next_rows(m, w[0], R, end);
        FOR(c, nc) {
            x[c] = (const int8_t *)column(m, c0 + c);
            dx[c] = (const float *)(x[c] + m->n_in);
            acc[c] = _mm256_setzero_ps();
        }
        for (int64_t b = 0; b < nb; b++) {
            __m256i sum[COLS][R];
            int64_t at = b * bytes;
            FOR(i, R) {
                __m256i v[COLS];
                fetch_next(&next, w[0] + R * m->w_stride, R, at, i, bytes);
                dot(w[i] + at, x, nc, v);
                FOR(c, nc) sum[c][i] = v[c];
            }
            __m256 dw = scales(w, at);
            FOR(c, nc) {
                __m256i s = sum8(sum[c]);
                if (offset) s = _mm256_sub_epi32(s, _mm256_mullo_epi32(word(dx[c] + nb), _mm256_set1_epi32(offset)));
                acc[c] = _mm256_fmadd_ps(_mm256_mul_ps(dw, _mm256_set1_ps(*dx[c])), _mm256_cvtepi32_ps(s), acc[c]);
                x[c] += 32, dx[c]++;
            }
        }
        FOR(c, nc) {
            float y[R];
            _mm256_storeu_ps(y, acc[c]);
            for (int i = 0; i < R && r + i < m->r1; i++) m->y[(c0 + c) * m->ldy + r + i] = y[i];
        }
    }
}

/* ---- the table's functions ----------------------------------------------------------------------------- */

/* A tile of rows meets all columns before the next one. Each number of columns has its own code. */
#define BY_COLUMNS(TILE, ROWS, ...)                                        \
    begin_rows(m, TILE);                                                   \
    for (hn_mm t = *m; t.r0 < m->r1; t.r0 += TILE) {                       \
        t.r1 = t.r0 + TILE < m->r1 ? t.r0 + TILE : m->r1;                  \
        for (int64_t c = 0; c < m->n_col; c += COLS) {                     \
            switch (m->n_col - c) {                                        \
            case 1: ROWS(&t, c, 1, __VA_ARGS__, row_of(m, m->r1)); break;  \
            case 2: ROWS(&t, c, 2, __VA_ARGS__, row_of(m, m->r1)); break;  \
            case 3: ROWS(&t, c, 3, __VA_ARGS__, row_of(m, m->r1)); break;  \
            default: ROWS(&t, c, 4, __VA_ARGS__, row_of(m, m->r1)); break; \
            }                                                              \
        }                                                                  \
    }
/* FROM: columns from which opening a panel of AVX2 pays (measured: docs/LAB.md). */
#define ROWS(TYPE, FROM, ...)                           \
    void NAME_ROWS(TYPE)(const hn_mm *m)                \
    {                                                   \
        if (m->panel && m->n_col >= PANEL_FROM(FROM)) { \
            NAME_PANEL(TYPE)(m);                        \
            return;                                     \
        }                                               \
        BY_COLUMNS(__VA_ARGS__)                         \
    }
ROWS(q4_K, 7, K_ROWS, k_rows, k4_heads, q4_K_dot, 144, 0, MINIMA)
ROWS(q5_K, 8, K_ROWS, k_rows, k4_heads, q5_K_dot, 176, 0, MINIMA)
ROWS(q6_K, 10, K_ROWS, k_rows, q6_K_heads, q6_K_dot, 210, 206, OFFSET)
ROWS(iq4_XS, 8, K_ROWS, k_rows, iq4_XS_heads, iq4_XS_dot, 136, 0, LEVELS)
ROWS(q4_0, 4, Q32_ROWS, q32_rows, q4_0_dot, half_scales, 18, 8)
ROWS(q5_0, 4, Q32_ROWS, q32_rows, q5_0_dot, half_scales, 22, 16)
ROWS(q8_0, 8, Q32_ROWS, q32_rows, q8_0_dot, half_scales, 34, SIGNED_OFFSET)
ROWS(iq4_NL, 6, Q32_ROWS, q32_rows, iq4_NL_dot, half_scales, 18, SIGNED_OFFSET)
ROWS(mxfp4, 4, Q32_ROWS, q32_rows, mxfp4_dot, e8m0_scales, 17, 12)

_Static_assert(sizeof(hn_q4_K) == 144 && sizeof(hn_q5_K) == 176 && sizeof(hn_q6_K) == 210, "as above");
_Static_assert(sizeof(hn_iq4_XS) == 136 && sizeof(hn_q4_0) == 18 && sizeof(hn_q5_0) == 22, "as above");
_Static_assert(sizeof(hn_q8_0) == 34 && sizeof(hn_mxfp4) == 17 && offsetof(hn_q6_K, d) == 208, "as above");

#endif
