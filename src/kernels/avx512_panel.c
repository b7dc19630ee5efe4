/* AVX-512 matmul for many columns. 32 weight rows are opened once into a panel in
 * which a lane is a row: codes as [k/4][32 rows][4], scales and minima as vectors over
 * rows. The register tile is 32 rows × 6 columns of int32 sums by vpdpbusd; no sum ever
 * runs across lanes. Same integers, same float chain as every other kernel.
 *
 * vpdpbusd, vpdpwssd, vpmulld and every float multiply share the same units, so what
 * counts is how many of them a block takes beside its vpdpbusd. Offsets of the codes
 * enter as the sums' first value. The scales of two sub-blocks meet their sums in one
 * vpdpwssd, both sums in one lane: the first moves to the upper 16 bits, the second
 * accumulates below it. That needs sums of 16 bits, which activations nearly always
 * allow (fits16); where they do not, vpmulld per sub-block gives the same integers. */
#if defined(__x86_64__)

#include "kernels/avx512_turn.h"
#include "kernels/avx512_unpack.h"

enum { ROWS = HN_PANEL_ROWS, COLS = 6, HALF = HN_TURNED_ROWS };
_Static_assert((int)HALF == (int)HN_PACK_ROWS, "a group is half a panel");

/* One block of 256 of 32 rows. */
typedef struct kpanel {
    uint8_t q[64][ROWS][4];
    int16_t sc[8][ROWS][2]; /* scales of two sub-blocks of 32 (4 pairs) or 16 (8): the second, the first */
    int16_t mn[4][ROWS][2]; /* minima of two sub-blocks of 32, in order */
    float d[ROWS], dmin[ROWS];
} kpanel;
/* One block of 32 of 32 rows. */
typedef struct tpanel {
    uint8_t q[8][ROWS][4];
    float d[ROWS];
} tpanel;
_Static_assert(sizeof(kpanel) % 64 == 0 && sizeof(tpanel) % 64 == 0, "sums follow on a cache line");

V16_OP void load_words(__m512i *v, const void *src, int n)
{
    for (int i = 0; i < n; i++) v[i] = _mm512_loadu_si512((const char *)src + 64 * i);
}
V16_OP __m512 load_f16(const void *src) { return _mm512_cvtph_ps(_mm256_loadu_si256(src)); }

V16_OP __m512i set1_bytes(int a, int b, int c, int d)
{
    return _mm512_set1_epi32(
        (int)((uint32_t)(a & 255) | (uint32_t)(b & 255) << 8 | (uint32_t)(c & 255) << 16 | (uint32_t)(d & 255) << 24));
}
/* indices for a shuffle of the four bytes of every word */
V16_OP __m512i byte_index(int a, int b, int c, int d)
{
    __m512i base = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
    return _mm512_or_si512(base, set1_bytes(a, b, c, d));
}
V16_OP __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
V16_OP __m512i high_nibbles(__m512i v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }
V16_OP __m512i iq4_levels(__m512i codes) /* with 128 added */
{
    __m128i t = _mm_xor_si128(_mm_loadu_si128((const __m128i *)hn_iq4_levels), _mm_set1_epi8((char)0x80));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), codes);
}

/* ---- K-quants: opening half h of a block from its words ------------------------------------------------ */

V16_OP void put(void *dst, __m512i v) { _mm512_store_si512(dst, v); }

/* The 6-bit scales and minima of Q4_K and Q5_K. */
V16_OP void open_k_scales(kpanel *p, int h, const __m512i s[3])
{
    __m512i m6 = _mm512_set1_epi8(0x3F), m4 = _mm512_set1_epi8(0x0F), m2 = _mm512_set1_epi8(0x30), v[4];
    v[0] = _mm512_and_si512(s[0], m6);
    v[1] = _mm512_or_si512(_mm512_and_si512(s[2], m4), _mm512_and_si512(_mm512_srli_epi32(s[0], 2), m2));
    v[2] = _mm512_and_si512(s[1], m6);
    v[3] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(s[2], 4), m4),
                           _mm512_and_si512(_mm512_srli_epi32(s[1], 2), m2));
    for (int i = 0; i < 2; i++) {
        put(p->sc[2 * i][h], _mm512_shuffle_epi8(v[i], byte_index(1, -1, 0, -1)));
        put(p->sc[2 * i + 1][h], _mm512_shuffle_epi8(v[i], byte_index(3, -1, 2, -1)));
        put(p->mn[2 * i][h], _mm512_shuffle_epi8(v[2 + i], byte_index(0, -1, 1, -1)));
        put(p->mn[2 * i + 1][h], _mm512_shuffle_epi8(v[2 + i], byte_index(2, -1, 3, -1)));
    }
}
V16_OP void open_k_d(kpanel *p, int h, __m512 d, __m512 dmin)
{
    _mm512_store_ps(p->d + h, d);
    _mm512_store_ps(p->dmin + h, dmin);
}

/* q: 32 words of nibbles, eight per 64 codes */
V16_OP void open_q4_K(kpanel *p, int h, const __m512i s[3], const __m512i q[32])
{
    open_k_scales(p, h, s);
    for (int i = 0; i < 32; i++) {
        put(p->q[16 * (i / 8) + i % 8][h], low_nibbles(q[i]));
        put(p->q[16 * (i / 8) + 8 + i % 8][h], high_nibbles(q[i]));
    }
}
V16_OP void open_q5_K(kpanel *p, int h, const __m512i s[3], const __m512i hi[8], const __m512i q[32])
{
    __m512i bit = _mm512_set1_epi8(16);
    open_k_scales(p, h, s);
    for (int i = 0; i < 32; i++) {
        __m512i b = hi[i % 8]; /* bit 2g: the lower codes of group g, 2g + 1: the upper */
        int g = i / 8;
        __m512i b0 = g < 2 ? _mm512_slli_epi16(b, (unsigned)(4 - 2 * g)) : _mm512_srli_epi16(b, (unsigned)(2 * g - 4));
        __m512i b1 = g < 2 ? _mm512_slli_epi16(b, (unsigned)(3 - 2 * g)) : _mm512_srli_epi16(b, (unsigned)(2 * g - 3));
        put(p->q[16 * g + i % 8][h], _mm512_or_si512(low_nibbles(q[i]), _mm512_and_si512(b0, bit)));
        put(p->q[16 * g + 8 + i % 8][h], _mm512_or_si512(high_nibbles(q[i]), _mm512_and_si512(b1, bit)));
    }
}
/* s: 4 words of int8; hi: 16 words; l: 32 words */
V16_OP void open_q6_K(kpanel *p, int h, const __m512i s[4], const __m512i hi[16], const __m512i l[32])
{
    __m512i bits = _mm512_set1_epi8(0x30);
    for (int i = 0; i < 4; i++) {
        put(p->sc[2 * i][h], _mm512_srai_epi16(_mm512_shuffle_epi8(s[i], byte_index(-1, 1, -1, 0)), 8));
        put(p->sc[2 * i + 1][h], _mm512_srai_epi16(_mm512_shuffle_epi8(s[i], byte_index(-1, 3, -1, 2)), 8));
    }
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 8; i++) {
            __m512i a = l[16 * n + i], b = l[16 * n + 8 + i], c = hi[8 * n + i];
            put(p->q[32 * n + i][h], _mm512_or_si512(low_nibbles(a), _mm512_and_si512(_mm512_slli_epi16(c, 4), bits)));
            put(p->q[32 * n + 8 + i][h],
                _mm512_or_si512(low_nibbles(b), _mm512_and_si512(_mm512_slli_epi16(c, 2), bits)));
            put(p->q[32 * n + 16 + i][h], _mm512_or_si512(high_nibbles(a), _mm512_and_si512(c, bits)));
            put(p->q[32 * n + 24 + i][h],
                _mm512_or_si512(high_nibbles(b), _mm512_and_si512(_mm512_srli_epi16(c, 2), bits)));
        }
}
/* sh, sl: one word a row; q: 32 words, four per 32 codes */
V16_OP void open_iq4_XS(kpanel *p, int h, __m512i sh, __m512i sl, const __m512i q[32])
{
    for (int i = 0; i < 4; i++) {
        __m512i sc[2];
        for (int k = 0; k < 2; k++) {
            unsigned s = (unsigned)(2 * i + k);
            __m512i lo = _mm512_and_si512(_mm512_srli_epi32(sl, 4 * s), _mm512_set1_epi32(15));
            __m512i up = _mm512_and_si512(_mm512_srli_epi32(sh, 2 * s), _mm512_set1_epi32(3));
            sc[k] = _mm512_sub_epi32(_mm512_or_si512(lo, _mm512_slli_epi32(up, 4)), _mm512_set1_epi32(32));
        }
        put(p->sc[i][h], _mm512_mask_blend_epi16(0xAAAAAAAA, sc[1], _mm512_slli_epi32(sc[0], 16)));
    }
    for (int i = 0; i < 32; i++) {
        put(p->q[8 * (i / 4) + i % 4][h], iq4_levels(low_nibbles(q[i])));
        put(p->q[8 * (i / 4) + 4 + i % 4][h], iq4_levels(high_nibbles(q[i])));
    }
}

/* Block b of the rows. */
V16_OP void rows_q4_K(kpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i s[4], q[32];
    int64_t at = b * (int64_t)sizeof(hn_q4_K);
    words4(s, w, at);
    words16(q, w, at + 16);
    words16(q + 16, w, at + 80);
    open_k_d(p, h, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(s[0])),
             _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(s[0], 16))));
    open_q4_K(p, h, s + 1, q);
}
V16_OP void rows_q5_K(kpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i s[4], hi[8], q[32];
    int64_t at = b * (int64_t)sizeof(hn_q5_K);
    words4(s, w, at);
    words4(hi, w, at + 16);
    words4(hi + 4, w, at + 32);
    words16(q, w, at + 48);
    words16(q + 16, w, at + 112);
    open_k_d(p, h, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(s[0])),
             _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(s[0], 16))));
    open_q5_K(p, h, s + 1, hi, q);
}
V16_OP void rows_q6_K(kpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i s[4], hi[16], l[32];
    int64_t at = b * (int64_t)sizeof(hn_q6_K);
    words16(l, w, at);
    words16(l + 16, w, at + 64);
    words16(hi, w, at + 128);
    words4(s, w, at + 192);
    _mm512_store_ps(p->d + h, half1(w, at + 208));
    open_q6_K(p, h, s, hi, l);
}
V16_OP void rows_iq4_XS(kpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i s[4], q[32];
    int64_t at = b * (int64_t)sizeof(hn_iq4_XS);
    words4(s, w, at); /* and the first codes */
    words16(q, w, at + 8);
    words16(q + 16, w, at + 72);
    _mm512_store_ps(p->d + h, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(s[0])));
    open_iq4_XS(p, h, _mm512_srli_epi32(s[0], 16), s[1], q);
}

/* Block b of a packed group (quant/pack.h); nb blocks in all. */
V16_OP void pack_q4_K(kpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i s[3], q[32];
    const char *at = g + b * 2304;
    load_words(s, at + 64, 3);
    load_words(q, at + 256, 32);
    open_k_d(p, h, load_f16(at), load_f16(at + 32));
    open_q4_K(p, h, s, q);
}
V16_OP void pack_q5_K(kpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i s[3], hi[8], q[32];
    const char *at = g + b * 2816;
    load_words(s, at + 64, 3);
    load_words(hi, at + 256, 8);
    load_words(q, at + 768, 32);
    open_k_d(p, h, load_f16(at), load_f16(at + 32));
    open_q5_K(p, h, s, hi, q);
}
V16_OP void pack_q6_K(kpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i s[4], hi[16], l[32];
    const char *at = g + hn_pair_block(3328, b);
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) s[i] = _mm512_loadu_si512(at + hn_pack_q6_s(i));
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) hi[i] = _mm512_loadu_si512(at + hn_pack_q6_h(i));
    _Pragma("GCC unroll 32") for (int i = 0; i < 32; i++) l[i] = _mm512_loadu_si512(at + hn_pack_q6_l(i));
    _mm512_store_ps(p->d + h, load_f16(g + hn_pair_d(3328, b)));
    open_q6_K(p, h, s, hi, l);
}
V16_OP void pack_iq4_XS(kpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i q[32];
    const char *at = g + b * 2176;
    load_words(q, at + 128, 32);
    _mm512_store_ps(p->d + h, load_f16(at));
    open_iq4_XS(p, h, _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(at + 32))),
                _mm512_loadu_si512(at + 64), q);
}

/* ---- K-quants: the tile ---------------------------------------------------------------------------------- */

/* What a type's sums look like: sub-blocks of 32 or 16 codes; what the codes carry
 * above their values; whether minima follow; the largest |value| of a code where sums
 * may fit 16 bits, 0: never tried. */
typedef struct kform {
    int n_sub, offset, mins, largest;
} kform;
#define FORM_Q4_K ((kform){ 8, 0, 1, 15 })
#define FORM_Q5_K ((kform){ 8, 0, 1, 31 })
#define FORM_Q6_K ((kform){ 16, 32, 0, 32 })
#define FORM_IQ4_XS ((kform){ 8, 128, 0, 0 })

V16_OP int32_t load32(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Do the sums of every sub-block fit 16 bits, whatever the weights? */
V16_OP bool fits16(const hn_a256 *const x[], int n_col, kform f)
{
    int most = 0;
    for (int j = 0; j < n_col; j++) {
        int v = f.n_sub == 16 ? x[j]->abs16 : x[j]->side32;
        most = v > most ? v : most;
    }
    return most <= 32767 / f.largest;
}

/* t += K4 groups of 4 codes from group k0 on */
V16_OP void k_steps(__m512i t[2][COLS], const kpanel *p, const hn_a256 *const x[COLS], int k0, int k4, int C)
{
    _Pragma("GCC unroll 8") for (int k = k0; k < k0 + k4; k++)
    {
        __m512i w0 = _mm512_load_si512(p->q[k][0]), w1 = _mm512_load_si512(p->q[k][HALF]);
        for (int j = 0; j < C; j++) {
            __m512i a = _mm512_set1_epi32(load32(x[j]->q + 4 * k));
            t[0][j] = _mm512_dpbusd_epi32(t[0][j], w0, a);
            t[1][j] = _mm512_dpbusd_epi32(t[1][j], w1, a);
        }
    }
}

V16_OP void k_scale(__m512i isum[2][COLS], __m512i t[2][COLS], __m512i s0, __m512i s1, int C)
{
    for (int j = 0; j < C; j++) {
        isum[0][j] = _mm512_add_epi32(isum[0][j], _mm512_mullo_epi32(t[0][j], s0));
        isum[1][j] = _mm512_add_epi32(isum[1][j], _mm512_mullo_epi32(t[1][j], s1));
    }
}

/* One block of the panel against one block of C columns; acc [C][32]. */
V16_OP void k_block(float (*acc)[ROWS], const kpanel *p, const hn_a256 *const x[COLS], kform f, int C, bool narrow)
{
    const int k4 = 64 / f.n_sub;
    __m512i isum[2][COLS];
    _Alignas(64) int32_t first[COLS][16]; /* of each sub-block: minus the codes' offset */
    _Alignas(16) int32_t pair[COLS][4];   /* sums of 32 activations, two int16 at a time */
    for (int j = 0; j < C; j++) {
        isum[0][j] = isum[1][j] = _mm512_setzero_si512();
        __m256i b = _mm256_loadu_si256((const __m256i *)x[j]->bsum);
        if (f.mins)
            _mm_storeu_si128((__m128i *)pair[j], _mm256_cvtepi32_epi16(_mm256_madd_epi16(b, _mm256_set1_epi16(1))));
        if (f.offset) {
            __m512i v = f.n_sub == 16 ? _mm512_cvtepi16_epi32(b)
                                      : _mm512_castsi256_si512(_mm256_madd_epi16(b, _mm256_set1_epi16(1)));
            v = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(v, f.offset == 32 ? 5 : 7));
            if (narrow) v = _mm512_mask_add_epi32(v, 0xAAAA, v, _mm512_set1_epi32(0x8000));
            _mm512_storeu_si512(first[j], v);
        }
    }
    const __m512i half = _mm512_set1_epi32(0x8000), zero = _mm512_setzero_si512();
    for (int s = 0; s < f.n_sub; s += 2) {
        __m512i t[2][COLS];
        for (int j = 0; j < C; j++) t[0][j] = t[1][j] = f.offset ? _mm512_set1_epi32(first[j][s]) : zero;
        k_steps(t, p, x, k4 * s, k4, C);
        if (narrow) {
            for (int j = 0; j < C; j++) {
                __m512i v = f.offset ? _mm512_set1_epi32(first[j][s + 1]) : half; /* half is in first, too */
                t[0][j] = _mm512_add_epi32(_mm512_slli_epi32(t[0][j], 16), v);
                t[1][j] = _mm512_add_epi32(_mm512_slli_epi32(t[1][j], 16), v);
            }
            k_steps(t, p, x, k4 * (s + 1), k4, C);
            __m512i s0 = _mm512_load_si512(p->sc[s / 2][0]), s1 = _mm512_load_si512(p->sc[s / 2][HALF]);
            for (int j = 0; j < C; j++) {
                isum[0][j] = _mm512_dpwssd_epi32(isum[0][j], _mm512_xor_si512(t[0][j], half), s0);
                isum[1][j] = _mm512_dpwssd_epi32(isum[1][j], _mm512_xor_si512(t[1][j], half), s1);
            }
        } else {
            __m512i s0 = _mm512_load_si512(p->sc[s / 2][0]), s1 = _mm512_load_si512(p->sc[s / 2][HALF]);
            k_scale(isum, t, _mm512_srai_epi32(s0, 16), _mm512_srai_epi32(s1, 16), C);
            for (int j = 0; j < C; j++) t[0][j] = t[1][j] = f.offset ? _mm512_set1_epi32(first[j][s + 1]) : zero;
            k_steps(t, p, x, k4 * (s + 1), k4, C);
            k_scale(isum, t, _mm512_srai_epi32(_mm512_slli_epi32(s0, 16), 16),
                    _mm512_srai_epi32(_mm512_slli_epi32(s1, 16), 16), C);
        }
    }
    for (int h = 0; h < 2; h++) {
        __m512 d = _mm512_load_ps(p->d + HALF * h);
        for (int j = 0; j < C; j++) {
            __m512 a = _mm512_load_ps(acc[j] + HALF * h);
            a = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x[j]->d)), _mm512_cvtepi32_ps(isum[h][j]), a);
            if (f.mins) isum[h][j] = _mm512_castps_si512(a);
            else _mm512_store_ps(acc[j] + HALF * h, a);
        }
    }
    if (!f.mins) return;
    for (int h = 0; h < 2; h++) {
        __m512 dmin = _mm512_load_ps(p->dmin + HALF * h);
        __m512i side[COLS], m[4];
        for (int i = 0; i < 4; i++) m[i] = _mm512_load_si512(p->mn[i][HALF * h]);
        for (int j = 0; j < C; j++) {
            side[j] = _mm512_setzero_si512();
            for (int i = 0; i < 4; i++) side[j] = _mm512_dpwssd_epi32(side[j], m[i], _mm512_set1_epi32(pair[j][i]));
        }
        for (int j = 0; j < C; j++) {
            __m512 a = _mm512_castsi512_ps(isum[h][j]);
            a = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, _mm512_set1_ps(x[j]->d)), _mm512_cvtepi32_ps(side[j]), a);
            _mm512_store_ps(acc[j] + HALF * h, a);
        }
    }
}

V16_OP const void *column(const hn_mm *m, int64_t c)
{
    return (const char *)m->x + (size_t)(c < m->n_col ? c : m->n_col - 1) * m->x_stride; /* beyond: the last again */
}

/* The same bytes of the columns that come next. */
V16_OP void prefetch_columns(const hn_mm *m, int64_t c, int n, int64_t at, int64_t bytes)
{
    for (int j = 0; j < n; j++) {
        const char *x = (const char *)column(m, c + j) + at;
        for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(x + i, _MM_HINT_T0);
    }
}

/* C columns from column c on, blocks b … b+n−1, which p holds. */
#define K_TILE(NAME, FORM, C)                                                                             \
    static void NAME(const hn_mm *m, const kpanel *p, float(*acc)[ROWS], int64_t c, int64_t b, int64_t n) \
    {                                                                                                     \
        const hn_a256 *x[COLS];                                                                           \
        for (int j = 0; j < C; j++) x[j] = (const hn_a256 *)column(m, c + j) + b;                         \
        if (b == 0) memset(acc, 0, C * sizeof *acc);                                                      \
        for (int64_t i = 0; i < n; i++, p++) {                                                            \
            prefetch_columns(m, c + C, C, (b + i) * (int64_t)sizeof **x, sizeof **x);                     \
            if (FORM.largest && fits16(x, C, FORM)) k_block(acc, p, x, FORM, C, true);                    \
            else k_block(acc, p, x, FORM, C, false);                                                      \
            for (int j = 0; j < C; j++) x[j]++;                                                           \
        }                                                                                                 \
    }

/* What will be opened next, fetched into L2 a few lines per tile: `lines` lines in all
 * at the same place of n rows or packed groups. */
typedef struct ahead {
    const char *at;
    size_t stride;
    int64_t n, line, lines, per_tile;
} ahead;
V16_OP void fetch(ahead *f)
{
    for (int64_t end = f->line + f->per_tile; f->line < end && f->line < f->lines; f->line++)
        _mm_prefetch(f->at + (size_t)(f->line % f->n) * f->stride + f->line / f->n * 64, _MM_HINT_T1);
}
/* `blocks` blocks from b on, of the rows from r on or, past the end, the first of the next 32. */
V16_OP ahead fetch_from(const hn_mm *m, int64_t r, int64_t unit, int64_t b, int64_t nb, int64_t blocks,
                        int64_t block_bytes, int64_t columns)
{
    if (b >= nb) r += ROWS, b = 0;
    ahead f = { .at = (const char *)m->w + (size_t)(r / unit) * m->w_stride + (size_t)(b * block_bytes),
                .stride = m->w_stride,
                .n = ROWS / unit };
    f.lines = f.n * (blocks * block_bytes / 64 + 1);
    f.per_tile = f.lines * COLS / columns + 1;
    return f;
}

/* The lines of y that a tile will fill. */
V16_OP void fetch_results(const hn_mm *m, int64_t r, int64_t c)
{
    for (int j = 0; j < COLS && c + j < m->n_col; j++) {
        const float *y = m->y + (c + j) * m->ldy + r;
        __builtin_prefetch(y, 1, 2);
        __builtin_prefetch(y + (m->r1 - r > HALF ? HALF : 0), 1, 2);
    }
}

/* All columns [c0, c1) against blocks b … b+n−1; the last few in tiles that waste least. */
#define TILES(NAME)                                                                 \
    for (int64_t c = c0, left; (left = c1 - c) > 0;) {                              \
        float(*a)[ROWS] = acc + (c - c0);                                           \
        fetch(&next);                                                               \
        if (b + n == nb) fetch_results(m, r, c);                                    \
        if (left > 8 || left == 5 || left == 6) NAME##_6(m, p, a, c, b, n), c += 6; \
        else if (left > 2) NAME##_4(m, p, a, c, b, n), c += 4;                      \
        else NAME##_2(m, p, a, c, b, n), c += 2;                                    \
    }

/* The sums of 32 rows from r on and columns [c0, c1) to y. */
static void store(const hn_mm *m, int64_t r, int64_t c0, int64_t c1, float (*acc)[ROWS])
{
    int64_t n = m->r1 - r < ROWS ? m->r1 - r : ROWS;
    __mmask16 m0 = (__mmask16)(n >= HALF ? 0xFFFF : (1u << n) - 1), m1 = (__mmask16)(n >= ROWS  ? 0xFFFF
                                                                                     : n > HALF ? (1u << (n - HALF)) - 1
                                                                                                : 0);
    for (int64_t c = c0; c < c1; c++) {
        float *y = m->y + c * m->ldy + r;
        _mm512_mask_storeu_ps(y, m0, _mm512_load_ps(acc[c - c0]));
        _mm512_mask_storeu_ps(y + HALF, m1, _mm512_load_ps(acc[c - c0] + HALF));
    }
}

/* The scratch of a thread: a few opened blocks, then sums of as many columns as fit,
 * a multiple of a tile and one tile to spare. */
V16_OP int64_t columns_that_fit(const hn_mm *m, size_t opened)
{
    return (int64_t)((HN_PANEL_BYTES(m->n_in) - opened) / (ROWS * sizeof(float)) / COLS - 1) * COLS;
}

/* Loops: 32 rows; columns; a few blocks, which stay in cache; tiles of columns. OPEN(i, h)
 * opens half h of block b + i. */
#define PANEL_LOOPS(PANEL, BLOCKS, ELEMS, TILE, SETUP, OPEN, UNIT, BYTES)             \
    PANEL *p = m->panel;                                                              \
    int64_t nb = m->n_in / ELEMS, step = nb < BLOCKS ? nb : BLOCKS;                   \
    int64_t fit = columns_that_fit(m, (size_t)step * sizeof *p);                      \
    float(*acc)[ROWS] = (float(*)[ROWS])(p + step);                                   \
    for (int64_t r = m->r0; r < m->r1; r += ROWS)                                     \
        for (int64_t c0 = 0; c0 < m->n_col; c0 += fit) {                              \
            int64_t c1 = m->n_col - c0 < fit ? m->n_col : c0 + fit;                   \
            for (int64_t b = 0; b < nb; b += step) {                                  \
                int64_t n = nb - b < step ? nb - b : step;                            \
                for (int h = 0; h < ROWS; h += HALF) {                                \
                    SETUP;                                                            \
                    for (int64_t i = 0; i < n; i++) OPEN;                             \
                }                                                                     \
                ahead next = fetch_from(m, r, UNIT, b + n, nb, step, BYTES, c1 - c0); \
                TILES(TILE)                                                           \
            }                                                                         \
            store(m, r, c0, c1, acc);                                                 \
        }
#define FROM_ROWS rows16 w = rows_at(m, r + h)
/* no second group: the first again */
#define FROM_PACK const char *w = (const char *)m->w + (size_t)((r + (r + h < m->r1 ? h : 0)) / HALF) * m->w_stride

enum { K_BLOCKS = 1 }; /* stays in L1 */
#define PANEL_K(TYPE, FORM, BLOCK_BYTES, GROUP_BYTES)                                                                \
    K_TILE(tile_##TYPE##_6, FORM, 6)                                                                                 \
    K_TILE(tile_##TYPE##_4, FORM, 4)                                                                                 \
    K_TILE(tile_##TYPE##_2, FORM, 2)                                                                                 \
    void hn_avx512_panel_##TYPE(const hn_mm *m)                                                                      \
    {                                                                                                                \
        PANEL_LOOPS(kpanel, K_BLOCKS, 256, tile_##TYPE, FROM_ROWS, rows_##TYPE(p + i, h, &w, b + i), 1, BLOCK_BYTES) \
    }                                                                                                                \
    void hn_avx512_ppanel_##TYPE(const hn_mm *m)                                                                     \
    {                                                                                                                \
        PANEL_LOOPS(kpanel, K_BLOCKS, 256, tile_##TYPE, FROM_PACK, pack_##TYPE(p + i, h, w, b + i, nb), HALF,        \
                    GROUP_BYTES)                                                                                     \
    }
PANEL_K(q4_K, FORM_Q4_K, sizeof(hn_q4_K), 2304)
PANEL_K(q5_K, FORM_Q5_K, sizeof(hn_q5_K), 2816)
PANEL_K(q6_K, FORM_Q6_K, sizeof(hn_q6_K), 3360)
PANEL_K(iq4_XS, FORM_IQ4_XS, sizeof(hn_iq4_XS), 2176)

/* ---- 32-blocks -------------------------------------------------------------------------------------- */

V16_OP void open_nibbles(tpanel *p, int h, const __m512i q[4])
{
    for (int i = 0; i < 4; i++) put(p->q[i][h], low_nibbles(q[i])), put(p->q[4 + i][h], high_nibbles(q[i]));
}
V16_OP void open_levels(tpanel *p, int h, const __m512i q[4])
{
    for (int i = 0; i < 4; i++)
        put(p->q[i][h], iq4_levels(low_nibbles(q[i]))), put(p->q[4 + i][h], iq4_levels(high_nibbles(q[i])));
}

V16_OP void rows_q4_0(tpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i q[4];
    words4(q, w, b * (int64_t)sizeof(hn_q4_0) + 2);
    _mm512_store_ps(p->d + h, half1(w, b * (int64_t)sizeof(hn_q4_0)));
    open_nibbles(p, h, q);
}
V16_OP void rows_iq4_NL(tpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i q[4];
    words4(q, w, b * (int64_t)sizeof(hn_q4_0) + 2);
    _mm512_store_ps(p->d + h, half1(w, b * (int64_t)sizeof(hn_q4_0)));
    open_levels(p, h, q);
}
V16_OP void rows_mxfp4(tpanel *p, int h, const rows16 *w, int64_t b)
{
    __m128i low = _mm_add_epi8(_mm_loadu_si128((const __m128i *)hn_e2m1_doubled), _mm_set1_epi8((char)128));
    __m512i q[4], levels = _mm512_broadcast_i32x4(low);
    int64_t at = b * (int64_t)sizeof(hn_mxfp4);
    uint8_t e[HALF];
    for (int i = 0; i < HALF; i++) e[i] = (uint8_t)w->row[i][at];
    words4(q, w, at + 1);
    _mm512_store_ps(p->d + h, hn_avx512_e8m0(_mm_loadu_si128((const __m128i *)e)));
    for (int i = 0; i < 4; i++) {
        put(p->q[i][h], _mm512_shuffle_epi8(levels, low_nibbles(q[i])));
        put(p->q[4 + i][h], _mm512_shuffle_epi8(levels, high_nibbles(q[i])));
    }
}
V16_OP void rows_q5_0(tpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i q[4], hi = word1(w, b * (int64_t)sizeof(hn_q5_0) + 2), bit = _mm512_set1_epi8(16);
    words4(q, w, b * (int64_t)sizeof(hn_q5_0) + 6);
    _mm512_store_ps(p->d + h, half1(w, b * (int64_t)sizeof(hn_q5_0)));
    for (int i = 0; i < 8; i++) { /* bits 4i … 4i+3 belong to the four codes of word i */
        __m512i v = i < 4 ? low_nibbles(q[i]) : high_nibbles(q[i - 4]), at = byte_index(i / 2, i / 2, i / 2, i / 2);
        __m512i which = i % 2 ? set1_bytes(16, 32, 64, 128) : set1_bytes(1, 2, 4, 8);
        put(p->q[i][h], _mm512_mask_add_epi8(v, _mm512_test_epi8_mask(_mm512_shuffle_epi8(hi, at), which), v, bit));
    }
}
V16_OP void rows_q8_0(tpanel *p, int h, const rows16 *w, int64_t b)
{
    __m512i q[8];
    words4(q, w, b * (int64_t)sizeof(hn_q8_0) + 2);
    words4(q + 4, w, b * (int64_t)sizeof(hn_q8_0) + 18);
    _mm512_store_ps(p->d + h, half1(w, b * (int64_t)sizeof(hn_q8_0)));
    for (int i = 0; i < 8; i++) put(p->q[i][h], _mm512_xor_si512(q[i], _mm512_set1_epi8((char)0x80)));
}

V16_OP void pack_q4_0(tpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i q[4];
    load_words(q, g + hn_pair_block(256, b), 4);
    _mm512_store_ps(p->d + h, load_f16(g + hn_pair_d(256, b)));
    open_nibbles(p, h, q);
}
V16_OP void pack_iq4_NL(tpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i q[4];
    load_words(q, g + hn_pair_block(256, b), 4);
    _mm512_store_ps(p->d + h, load_f16(g + hn_pair_d(256, b)));
    open_levels(p, h, q);
}
V16_OP void pack_q5_0(tpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    __m512i q[4], hi = _mm512_loadu_si512(g + hn_pair_block(320, b)), bit = _mm512_set1_epi8(16);
    load_words(q, g + hn_pair_block(320, b) + 64, 4);
    _mm512_store_ps(p->d + h, load_f16(g + hn_pair_d(320, b)));
    for (int i = 0; i < 8; i++) { /* bit i of each byte */
        __m512i v = i < 4 ? low_nibbles(q[i]) : high_nibbles(q[i - 4]);
        __m512i up = i < 4 ? _mm512_slli_epi16(hi, (unsigned)(4 - i)) : _mm512_srli_epi16(hi, (unsigned)(i - 4));
        put(p->q[i][h], _mm512_or_si512(v, _mm512_and_si512(up, bit)));
    }
}
V16_OP void pack_q8_0(tpanel *p, int h, const char *g, int64_t b, int64_t nb)
{
    for (int i = 0; i < 8; i++) put(p->q[i][h], _mm512_loadu_si512(g + hn_pair_block(512, b) + 64 * i));
    _mm512_store_ps(p->d + h, load_f16(g + hn_pair_d(512, b)));
}

enum { T_BLOCKS = 64 }; /* 72 KiB: shorter ones cost more in loading and storing sums than L2 does */

/* Blocks b0 … b0+n−1, which p holds, against C columns; the sums start at −2^shift·Σq. */
V16_OP void t_blocks(float (*acc)[ROWS], const tpanel *p, const int8_t *const x[COLS], int64_t n_in, int64_t b0, int n,
                     int shift, int C)
{
    __m512 a[2][COLS];
    _Alignas(64) int32_t first[COLS][T_BLOCKS];
    for (int j = 0; j < C; j++) {
        const int32_t *sum = (const int32_t *)(x[j] + n_in) + n_in / 32 + b0;
        for (int i = 0; i < n; i += 16) {
            __m512i v = _mm512_maskz_loadu_epi32((__mmask16)(n - i >= 16 ? 0xFFFF : (1u << (n - i)) - 1), sum + i);
            put(first[j] + i, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(v, (unsigned)shift)));
        }
        for (int h = 0; h < 2; h++) a[h][j] = b0 ? _mm512_load_ps(acc[j] + HALF * h) : _mm512_setzero_ps();
    }
    for (int i = 0; i < n; i++, p++) {
        __m512i t[2][COLS];
        for (int j = 0; j < C; j++) t[0][j] = t[1][j] = _mm512_set1_epi32(first[j][i]);
        _Pragma("GCC unroll 8") for (int k = 0; k < 8; k++)
        {
            __m512i w0 = _mm512_load_si512(p->q[k][0]), w1 = _mm512_load_si512(p->q[k][HALF]);
            for (int j = 0; j < C; j++) {
                __m512i v = _mm512_set1_epi32(load32(x[j] + 32 * (b0 + i) + 4 * k));
                t[0][j] = _mm512_dpbusd_epi32(t[0][j], w0, v);
                t[1][j] = _mm512_dpbusd_epi32(t[1][j], w1, v);
            }
        }
        for (int h = 0; h < 2; h++) {
            __m512 d = _mm512_load_ps(p->d + HALF * h);
            for (int j = 0; j < C; j++) {
                __m512 da = _mm512_set1_ps(((const float *)(x[j] + n_in))[b0 + i]);
                a[h][j] = _mm512_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(t[h][j]), a[h][j]);
            }
        }
    }
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < C; j++) _mm512_store_ps(acc[j] + HALF * h, a[h][j]);
}

#define T_TILE(NAME, SHIFT, C)                                                                            \
    static void NAME(const hn_mm *m, const tpanel *p, float(*acc)[ROWS], int64_t c, int64_t b, int64_t n) \
    {                                                                                                     \
        const int8_t *x[COLS];                                                                            \
        for (int j = 0; j < C; j++) x[j] = column(m, c + j);                                              \
        t_blocks(acc, p, x, m->n_in, b, (int)n, SHIFT, C);                                                \
    }
#define PANEL_T(TYPE, TILE, BLOCK_BYTES, GROUP_BYTES)                                                              \
    void hn_avx512_panel_##TYPE(const hn_mm *m)                                                                    \
    {                                                                                                              \
        PANEL_LOOPS(tpanel, T_BLOCKS, 32, TILE, FROM_ROWS, rows_##TYPE(p + i, h, &w, b + i), 1, BLOCK_BYTES)       \
    }                                                                                                              \
    void hn_avx512_ppanel_##TYPE(const hn_mm *m)                                                                   \
    {                                                                                                              \
        PANEL_LOOPS(tpanel, T_BLOCKS, 32, TILE, FROM_PACK, pack_##TYPE(p + i, h, w, b + i, nb), HALF, GROUP_BYTES) \
    }
/* from rows alone */
#define PANEL_T_ROWS(TYPE, TILE, BLOCK_BYTES)                                                                \
    void hn_avx512_panel_##TYPE(const hn_mm *m)                                                              \
    {                                                                                                        \
        PANEL_LOOPS(tpanel, T_BLOCKS, 32, TILE, FROM_ROWS, rows_##TYPE(p + i, h, &w, b + i), 1, BLOCK_BYTES) \
    }
T_TILE(tile_off8_6, 3, 6)
T_TILE(tile_off8_4, 3, 4)
T_TILE(tile_off8_2, 3, 2)
T_TILE(tile_off16_6, 4, 6)
T_TILE(tile_off16_4, 4, 4)
T_TILE(tile_off16_2, 4, 2)
T_TILE(tile_off128_6, 7, 6)
T_TILE(tile_off128_4, 7, 4)
T_TILE(tile_off128_2, 7, 2)
PANEL_T(q4_0, tile_off8, sizeof(hn_q4_0), 288)
PANEL_T(q5_0, tile_off16, sizeof(hn_q5_0), 352)
PANEL_T(q8_0, tile_off128, sizeof(hn_q8_0), 544)
PANEL_T(iq4_NL, tile_off128, sizeof(hn_q4_0), 288)
PANEL_T_ROWS(mxfp4, tile_off128, sizeof(hn_mxfp4))

#else
typedef int hn_no_avx512_panel; /* an empty file is not C */
#endif
