/* Blocks of quantized weights opened into AVX-512 registers; shared by the tile kernels
 * (avx512.c) and the panels (avx512_panel.c). Types and static inline only. */
#ifndef HN_AVX512_UNPACK_H
#define HN_AVX512_UNPACK_H

#include "kernels/kernels.h"

#include <immintrin.h>

#ifndef V16_OP
#define V16_OP static inline __attribute__((always_inline))
#endif

/* Many columns: rows are opened once into m->panel. See avx512_panel.c. */
hn_matmul_fn hn_avx512_panel_q4_K, hn_avx512_panel_q5_K, hn_avx512_panel_q6_K, hn_avx512_panel_iq4_XS;
hn_matmul_fn hn_avx512_panel_q4_0, hn_avx512_panel_q5_0, hn_avx512_panel_q8_0, hn_avx512_panel_iq4_NL;
hn_matmul_fn hn_avx512_panel_mxfp4;
/* A few columns: sixteen rows at a time are turned into a packed group in m->panel. See avx512_group.c. */
hn_matmul_fn hn_avx512_group_q4_K, hn_avx512_group_q5_K, hn_avx512_group_iq4_XS;
hn_matmul_fn hn_avx512_group_q4_0, hn_avx512_group_q8_0, hn_avx512_group_iq4_NL;
/* Panels from the packed layout. */
hn_matmul_fn hn_avx512_ppanel_q4_K, hn_avx512_ppanel_q5_K, hn_avx512_ppanel_q6_K, hn_avx512_ppanel_iq4_XS;
hn_matmul_fn hn_avx512_ppanel_q4_0, hn_avx512_ppanel_q5_0, hn_avx512_ppanel_q8_0, hn_avx512_ppanel_iq4_NL;

/* A weight block: codes in natural order, scales spread to the lanes of their codes,
 * `side`: 16 int16 that multiply the sums of 16 activations. */
typedef struct kblock {
    __m512i q[4], sc[4];
    __m256i side;
} kblock;

/* hn_a256_bounds; in lanes.h under its general name. */
V16_OP void a256_bounds(hn_a256 *a)
{
    __m512i v = _mm512_setzero_si512();
    for (int g = 0; g < 4; g++) { /* 16-bit element g of lane i: codes 64g + 8i … + 7 */
        __m512i s = _mm512_sad_epu8(_mm512_abs_epi8(_mm512_loadu_si512(a->q + 64 * g)), _mm512_setzero_si512());
        v = _mm512_or_si512(v, _mm512_slli_epi64(s, (unsigned)(16 * g)));
    }
    v = _mm512_add_epi16(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC)); /* of 16 */
    __m256i v2 = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i v1 = _mm_max_epu16(_mm256_castsi256_si128(v2), _mm256_extracti128_si256(v2, 1)), ones = _mm_set1_epi16(-1);
    v = _mm512_add_epi16(v, _mm512_permutex_epi64(v, 0x4E)); /* of 32; the same in lanes 0–3 and in 4–7 */
    __m128i s = _mm_unpacklo_epi16(_mm512_castsi512_si128(v), _mm512_extracti32x4_epi32(v, 2));
    __m256i b = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)a->bsum), _mm256_set1_epi16(1));
    s = _mm_srli_epi16(_mm_add_epi16(s, _mm256_cvtepi32_epi16(_mm256_abs_epi32(b))), 1);
    a->abs16 = (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(v1, ones)), 0);
    a->side32 = (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(s, ones)), 0);
    memset(a->pad, 0, sizeof a->pad);
}
#define HN_A256_BOUNDS a256_bounds

V16_OP __m512i two_halves(int lo, int hi)
{
    return _mm512_inserti64x4(_mm512_set1_epi16((short)lo), _mm256_set1_epi16((short)hi), 1);
}

V16_OP void unpack_scales_k4(kblock *o, const uint8_t *s)
{
    uint32_t u[3];
    memcpy(u, s, 12);
    uint64_t sc = (u[0] & 0x3F3F3F3F) | (uint64_t)((u[2] & 0x0F0F0F0F) | (u[0] >> 2 & 0x30303030)) << 32;
    uint64_t mn = (u[1] & 0x3F3F3F3F) | (uint64_t)((u[2] >> 4 & 0x0F0F0F0F) | (u[1] >> 2 & 0x30303030)) << 32;
    __m512i s32 = _mm512_castsi256_si512(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)sc)));
    __m512i idx = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    for (int g = 0; g < 4; g++)
        o->sc[g] = _mm512_permutexvar_epi32(_mm512_add_epi32(idx, _mm512_set1_epi32(2 * g)), s32);
    __m128i m = _mm_cvtsi64_si128((int64_t)mn);
    o->side = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(m, m));
}

V16_OP void unpack_q4_K(kblock *o, const hn_q4_K *w)
{
    __m512i shift = two_halves(0, 4), mask = _mm512_set1_epi8(15);
    for (int g = 0; g < 4; g++) {
        __m512i b = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(w->q + 32 * g)));
        o->q[g] = _mm512_and_si512(_mm512_srlv_epi16(b, shift), mask);
    }
    unpack_scales_k4(o, w->s);
}

V16_OP void unpack_q5_K(kblock *o, const hn_q5_K *w)
{
    __m512i shift = two_halves(0, 4), mask = _mm512_set1_epi8(15), one = _mm512_set1_epi8(1);
    __m512i h = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)w->h));
    for (int g = 0; g < 4; g++) {
        __m512i b = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(w->q + 32 * g)));
        __m512i hb = _mm512_and_si512(_mm512_srlv_epi16(h, two_halves(2 * g, 2 * g + 1)), one);
        o->q[g] = _mm512_or_si512(_mm512_and_si512(_mm512_srlv_epi16(b, shift), mask), _mm512_slli_epi16(hb, 4));
    }
    unpack_scales_k4(o, w->s);
}

V16_OP void unpack_q6_K(kblock *o, const hn_q6_K *w)
{
    __m512i mask = _mm512_set1_epi8(15), three = _mm512_set1_epi8(3);
    for (int n = 0; n < 2; n++) {
        __m512i l = _mm512_loadu_si512(w->l + 64 * n);
        __m512i h = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(w->h + 32 * n)));
        __m512i h0 = _mm512_slli_epi16(_mm512_and_si512(_mm512_srlv_epi16(h, two_halves(0, 2)), three), 4);
        __m512i h1 = _mm512_slli_epi16(_mm512_and_si512(_mm512_srlv_epi16(h, two_halves(4, 6)), three), 4);
        o->q[2 * n] = _mm512_or_si512(_mm512_and_si512(l, mask), h0);
        o->q[2 * n + 1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(l, 4), mask), h1);
    }
    __m128i s8 = _mm_loadu_si128((const __m128i *)w->s);
    __m512i s32 = _mm512_cvtepi8_epi32(s8), idx = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    for (int g = 0; g < 4; g++)
        o->sc[g] = _mm512_permutexvar_epi32(_mm512_add_epi32(idx, _mm512_set1_epi32(4 * g)), s32);
    o->side = _mm256_cvtepi8_epi16(s8);
}

V16_OP __m256i unpack_q4_0(const hn_q4_0 *w)
{
    __m128i b = _mm_loadu_si128((const __m128i *)w->q);
    return _mm256_and_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1),
                            _mm256_set1_epi8(15));
}
V16_OP __m256i unpack_q5_0(const hn_q5_0 *w)
{
    __m128i b = _mm_loadu_si128((const __m128i *)w->q);
    __m256i n = _mm256_and_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1),
                                 _mm256_set1_epi8(15));
    uint32_t h;
    memcpy(&h, w->h, 4);
    return _mm256_mask_add_epi8(n, (__mmask32)h, n, _mm256_set1_epi8(16));
}
V16_OP __m256i unpack_q8_0(const hn_q8_0 *w)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)w->q), _mm256_set1_epi8((char)0x80));
}

/* hn_mxfp4_scale of sixteen bytes */
static inline __attribute__((always_inline)) __m512 hn_avx512_e8m0(__m128i bytes)
{
    __m512i e = _mm512_cvtepu8_epi32(bytes), one = _mm512_set1_epi32(1);
    __m512i d = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    __mmask16 low = _mm512_cmple_epu32_mask(e, one);
    return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(d, low, _mm512_set1_epi32(0x200000), e));
}

#endif
