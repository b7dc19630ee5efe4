/* Exact decoders of rows in 512-bit vectors: quant/'s products and sums, sixteen at a time. */
#if defined(__x86_64__)

#include "kernels/avx512_decode.h"

#include <immintrin.h>
#include <stddef.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m128i bytes(const void *p) { return _mm_loadu_si128(p); }
INLINE __m128i low(__m128i b) { return _mm_and_si128(b, _mm_set1_epi8(15)); }
INLINE __m128i high(__m128i b) { return _mm_and_si128(_mm_srli_epi16(b, 4), _mm_set1_epi8(15)); }
/* sixteen codes times a scale, less a minimum */
INLINE void scaled(float *y, __m128i codes, float d)
{
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_set1_ps(d), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))));
}
INLINE void affine(float *y, __m128i codes, float d, float m)
{
    __m512 p = _mm512_mul_ps(_mm512_set1_ps(d), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)));
    _mm512_storeu_ps(y, _mm512_sub_ps(p, _mm512_set1_ps(m)));
}
INLINE float half(const void *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

void hn_avx512_decode_q8_0(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += sizeof(hn_q8_0))
        for (int i = 0; i < 2; i++) scaled(y + 16 * i, bytes(b + offsetof(hn_q8_0, q) + 16 * i), half(b));
}

void hn_avx512_decode_q4_0(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += sizeof(hn_q4_0)) {
        __m128i q = bytes(b + offsetof(hn_q4_0, q)), zero = _mm_set1_epi8(8);
        scaled(y, _mm_sub_epi8(low(q), zero), half(b));
        scaled(y + 16, _mm_sub_epi8(high(q), zero), half(b));
    }
}

void hn_avx512_decode_q5_0(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += sizeof(hn_q5_0)) {
        __m128i q = bytes(b + offsetof(hn_q5_0, q)), zero = _mm_set1_epi8(16);
        uint32_t h;
        memcpy(&h, b + offsetof(hn_q5_0, h), 4);
        scaled(y, _mm_mask_sub_epi8(low(q), (__mmask16)~h, low(q), zero), half(b));
        scaled(y + 16, _mm_mask_sub_epi8(high(q), (__mmask16)(~h >> 16), high(q), zero), half(b));
    }
}

void hn_avx512_decode_q4_K(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += sizeof(hn_q4_K)) {
        float d = half(b), dmin = half(b + offsetof(hn_q4_K, dmin));
        uint8_t sc[8], mn[8];
        hn_k_scales(b + offsetof(hn_q4_K, s), sc, mn);
        for (int s = 0; s < 8; s += 2, y += 64)
            for (int i = 0; i < 2; i++) {
                __m128i q = bytes(b + offsetof(hn_q4_K, q) + 16 * s + 16 * i);
                affine(y + 16 * i, low(q), d * (float)sc[s], dmin * (float)mn[s]);
                affine(y + 16 * i + 32, high(q), d * (float)sc[s + 1], dmin * (float)mn[s + 1]);
            }
    }
}

void hn_avx512_decode_q5_K(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += sizeof(hn_q5_K)) {
        float d = half(b), dmin = half(b + offsetof(hn_q5_K, dmin));
        uint8_t sc[8], mn[8];
        hn_k_scales(b + offsetof(hn_q5_K, s), sc, mn);
        for (int s = 0; s < 8; s += 2, y += 64)
            for (int i = 0; i < 2; i++) {
                __m128i q = bytes(b + offsetof(hn_q5_K, q) + 16 * s + 16 * i),
                        h = bytes(b + offsetof(hn_q5_K, h) + 16 * i), five = _mm_set1_epi8(16);
                __mmask16 h0 = _mm_test_epi8_mask(h, _mm_set1_epi8((char)(1 << s))),
                          h1 = _mm_test_epi8_mask(h, _mm_set1_epi8((char)(2 << s)));
                affine(y + 16 * i, _mm_mask_add_epi8(low(q), h0, low(q), five), d * (float)sc[s], dmin * (float)mn[s]);
                affine(y + 16 * i + 32, _mm_mask_add_epi8(high(q), h1, high(q), five), d * (float)sc[s + 1],
                       dmin * (float)mn[s + 1]);
            }
    }
}

void hn_avx512_decode_q6_K(float *y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += sizeof(hn_q6_K)) {
        float d = half(b + offsetof(hn_q6_K, d));
        for (int t = 0; t < 4; t++, y += t & 1 ? 16 : 112) { /* 16 of each of four runs of 32; two halves */
            const uint8_t *l = b + (t & 2) * 32 + (t & 1) * 16;
            const int8_t *sc = (const int8_t *)b + offsetof(hn_q6_K, s) + (t & 2) * 4 + (t & 1);
            __m128i q0 = bytes(l), q1 = bytes(l + 32),
                    h = bytes(b + offsetof(hn_q6_K, h) + (t & 2) * 16 + (t & 1) * 16);
            __m128i two = _mm_set1_epi8(0x30), zero = _mm_set1_epi8(32);
            scaled(y, _mm_sub_epi8(_mm_or_si128(low(q0), _mm_and_si128(_mm_slli_epi16(h, 4), two)), zero),
                   d * (float)sc[0]);
            scaled(y + 32, _mm_sub_epi8(_mm_or_si128(low(q1), _mm_and_si128(_mm_slli_epi16(h, 2), two)), zero),
                   d * (float)sc[2]);
            scaled(y + 64, _mm_sub_epi8(_mm_or_si128(high(q0), _mm_and_si128(h, two)), zero), d * (float)sc[4]);
            scaled(y + 96, _mm_sub_epi8(_mm_or_si128(high(q1), _mm_and_si128(_mm_srli_epi16(h, 2), two)), zero),
                   d * (float)sc[6]);
        }
    }
}
#else
typedef int hn_no_avx512_decode; /* an empty file is not C */
#endif
