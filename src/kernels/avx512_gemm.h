/* What packs operands of products with 512-bit registers; included by avx512.c and avx512_bf16.c. */
#ifndef HN_AVX512_GEMM_H
#define HN_AVX512_GEMM_H

#include "kernels/kernels.h"

#include <immintrin.h>

V16_OP __m512 gemm_first(const float *p, int64_t n) /* zeros after them */
{
    return n >= 16  ? _mm512_loadu_ps(p)
           : n <= 0 ? _mm512_setzero_ps()
                    : _mm512_maskz_loadu_ps((__mmask16)(0xFFFF >> (16 - n)), p);
}

/* Sixteen vectors of words, transposed in place. */
V16_OP void transpose_words(__m512i a[16])
{
    __m512i b[16];
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            a[i + 2 * h] = _mm512_unpacklo_epi64(b[i + h], b[i + h + 2]); /* words 4l + 2h of four rows in lane l */
            a[i + 2 * h + 1] = _mm512_unpackhi_epi64(b[i + h], b[i + h + 2]);
        }
    for (int j = 0; j < 4; j++) { /* lanes of rows 4g + … : word 4l + j */
        __m512i lo = _mm512_shuffle_i32x4(a[j], a[4 + j], 0x88), hi = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0x88);
        b[j] = _mm512_shuffle_i32x4(lo, hi, 0x88);
        b[8 + j] = _mm512_shuffle_i32x4(lo, hi, 0xDD);
        lo = _mm512_shuffle_i32x4(a[j], a[4 + j], 0xDD);
        hi = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0xDD);
        b[4 + j] = _mm512_shuffle_i32x4(lo, hi, 0x88);
        b[12 + j] = _mm512_shuffle_i32x4(lo, hi, 0xDD);
    }
    for (int i = 0; i < 16; i++) a[i] = b[i];
}

/* dst[k][ldd] = src[i][lds]ᵀ of words: rows ≤ 16, columns i past rows are zero. */
static inline void transpose16(void *dst, int64_t ldd, const void *src, int64_t lds, int64_t rows, int64_t n)
{
    const char *s = src;
    char *d = dst;
    for (int64_t k = 0; k < n; k += 16, d += 64 * ldd, s += 64) {
        __m512i a[16];
        int64_t now = n - k < 16 ? n - k : 16;
        __mmask16 mask = (__mmask16)(0xFFFF >> (16 - now));
        if (rows == 16 && now == 16)
            for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512(s + 4 * lds * i);
        else
            for (int i = 0; i < 16; i++)
                a[i] = _mm512_maskz_loadu_epi32(i < rows ? mask : 0, s + 4 * lds * (i < rows ? i : 0));
        transpose_words(a);
        if (now == 16)
            for (int i = 0; i < 16; i++) _mm512_storeu_si512(d + 4 * ldd * i, a[i]);
        else
            for (int i = 0; i < now; i++) _mm512_storeu_si512(d + 4 * ldd * i, a[i]);
    }
}

static inline void copy16(float *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n)
{
    for (int64_t k = 0; k < rows; k++, dst += ldd, src += lds) {
        int64_t j = 0;
        for (; j + 16 <= n; j += 16) _mm512_storeu_ps(dst + j, _mm512_loadu_ps(src + j));
        __mmask16 rest = (__mmask16)((1u << (n - j)) - 1);
        if (rest) _mm512_mask_storeu_ps(dst + j, rest, _mm512_maskz_loadu_ps(rest, src + j));
    }
}

#endif
