/* Products of training on CPUs that multiply pairs of bf16; the f32 side is avx512.c's. */
#if defined(__x86_64__)

#include "kernels/kernels.h"

#include <immintrin.h>

#define HN_INLINE static inline __attribute__((always_inline))
#define V16_OP HN_INLINE
typedef __m512 v16; /* sums; or sixteen pairs */
V16_OP v16 v16_zero(void) { return _mm512_setzero_ps(); }
V16_OP v16 v16_set1(float f) { return _mm512_set1_ps(f); }
V16_OP v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
V16_OP void v16_store(float *p, v16 v) { _mm512_storeu_ps(p, v); }
V16_OP v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
V16_OP v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
V16_OP v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }

#define HN_GEMM_VECS 4
#include "kernels/avx512_gemm.h"
#include "kernels/lanes_gemm.h"

/* n floats as pairs, a last one with 0. */
V16_OP void pairs_of_row(uint32_t *dst, const float *src, int64_t n)
{
    int64_t k = 0;
    for (; k + 32 <= n; k += 32)
        _mm512_storeu_si512(dst + k / 2,
                            (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(src + k + 16), _mm512_loadu_ps(src + k)));
    if (k < n) {
        __m512i p = (__m512i)_mm512_cvtne2ps_pbh(gemm_first(src + k + 16, n - k - 16), gemm_first(src + k, n - k));
        _mm512_mask_storeu_epi32(dst + k / 2, (__mmask16)(0xFFFF >> (16 - (n - k + 1) / 2)), p);
    }
}

static void rows(void *dst, const float *src, int64_t lds, int64_t n_row, int64_t n, bool bf16)
{
    if (!bf16) {
        hn_gemm_avx512.rows(dst, src, lds, n_row, n, false);
        return;
    }
    for (int64_t i = 0; i < n_row; i++) pairs_of_row((uint32_t *)dst + i * HN_GEMM_K, src + i * lds, n);
}

static void transpose(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t n_row, int64_t n, bool bf16)
{
    if (!bf16) {
        hn_gemm_avx512.transpose(dst, ldd, src, lds, n_row, n, false);
        return;
    }
    uint32_t pairs[16][HN_GEMM_K / 2];
    for (int64_t i = 0; i < n_row; i++) pairs_of_row(pairs[i], src + i * lds, n);
    transpose16(dst, ldd, pairs, HN_GEMM_K / 2, n_row, (n + 1) / 2);
}

static void copy(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t n_row, int64_t n, bool bf16)
{
    if (!bf16) {
        hn_gemm_avx512.copy(dst, ldd, src, lds, n_row, n, false);
        return;
    }
    static const uint16_t order[32] = { 0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
    __m512i mix = _mm512_loadu_si512(order);
    for (int64_t k = 0; k < n_row; k += 2, src += 2 * lds) {
        uint32_t *d = (uint32_t *)dst + k / 2 * ldd;
        for (int64_t j = 0; j < n; j += 16) {
            __m512 odd = k + 1 < n_row ? gemm_first(src + lds + j, n - j) : _mm512_setzero_ps();
            __m512i p = _mm512_permutexvar_epi16(mix, (__m512i)_mm512_cvtne2ps_pbh(odd, gemm_first(src + j, n - j)));
            if (n - j >= 16) _mm512_storeu_si512(d + j, p);
            else _mm512_mask_storeu_epi32(d + j, (__mmask16)(0xFFFF >> (16 - (n - j))), p);
        }
    }
}

/* ---- straight from F16 and BF16 ------------------------------------------------------------------- */

/* 32 of a row as pairs, zeros after the n-th; bf16 are pairs already: what rounding would do to them, the
 * dot product does. */
typedef __m512i pairs_fn(const uint16_t *p, int64_t n);
V16_OP __m512i first_halves(const uint16_t *p, int64_t n)
{
    return n >= 32  ? _mm512_loadu_si512(p)
           : n <= 0 ? _mm512_setzero_si512()
                    : _mm512_maskz_loadu_epi16(0xFFFFFFFF >> (32 - n), p);
}
V16_OP __m512i pairs_of_f16(const uint16_t *p, int64_t n)
{
    __m512i h = first_halves(p, n);
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1)),
                                        _mm512_cvtph_ps(_mm512_castsi512_si256(h)));
}
V16_OP __m512i pairs_of_bf16(const uint16_t *p, int64_t n) { return first_halves(p, n); }

V16_OP void columns_of(uint32_t *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n, pairs_fn *pairs)
{
    for (int64_t k = 0; k < n; k += 32, dst += 16 * HN_GEMM_COLS) {
        __m512i a[16];
        const char *s = (const char *)src + 2 * k;
        if (n_row == 16 && n - k >= 32)
            for (int i = 0; i < 16; i++) a[i] = pairs((const uint16_t *)(s + (size_t)i * row_bytes), 32);
        else
            for (int i = 0; i < 16; i++)
                a[i] = i < n_row ? pairs((const uint16_t *)(s + (size_t)i * row_bytes), n - k) : _mm512_setzero_si512();
        transpose_words(a);
        if (n - k >= 32)
            for (int i = 0; i < 16; i++) _mm512_storeu_si512(dst + i * HN_GEMM_COLS, a[i]);
        else
            for (int i = 0; i < (n - k + 1) / 2; i++) _mm512_storeu_si512(dst + i * HN_GEMM_COLS, a[i]);
    }
}
static void columns_of_f16(void *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n)
{
    columns_of(dst, src, row_bytes, n_row, n, pairs_of_f16);
}
static void columns_of_bf16(void *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n)
{
    columns_of(dst, src, row_bytes, n_row, n, pairs_of_bf16);
}

/* Two rows' bf16, 32 of each, as 32 pairs. */
V16_OP void rows_of(uint32_t *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n, pairs_fn *pairs)
{
    static const uint16_t first[32] = { 0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                        8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47 };
    __m512i lo = _mm512_loadu_si512(first), hi = _mm512_add_epi16(lo, _mm512_set1_epi16(16));
    const uint16_t *even = src, *odd = (const uint16_t *)((const char *)src + (n_row > 1 ? row_bytes : 0));
    for (int64_t j = 0; j < n; j += 32) {
        __m512i a = pairs(even + j, n - j), b = n_row > 1 ? pairs(odd + j, n - j) : _mm512_setzero_si512();
        __m512i p = _mm512_permutex2var_epi16(a, lo, b), q = _mm512_permutex2var_epi16(a, hi, b);
        if (n - j >= 32) {
            _mm512_storeu_si512(dst + j, p);
            _mm512_storeu_si512(dst + j + 16, q);
            continue;
        }
        _mm512_mask_storeu_epi32(dst + j, n - j >= 16 ? 0xFFFF : (__mmask16)(0xFFFF >> (16 - (n - j))), p);
        if (n - j > 16) _mm512_mask_storeu_epi32(dst + j + 16, (__mmask16)(0xFFFF >> (32 - (n - j))), q);
    }
}
static void rows_of_f16(void *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n)
{
    rows_of(dst, src, row_bytes, n_row, n, pairs_of_f16);
}
static void rows_of_bf16(void *dst, const void *src, size_t row_bytes, int64_t n_row, int64_t n)
{
    rows_of(dst, src, row_bytes, n_row, n, pairs_of_bf16);
}

static void tile_f32(const hn_gemm_tile *t) { hn_gemm_avx512.tile(t); }

const hn_gemm_ops hn_gemm_avx512_bf16 = { .tile = tile_f32,
                                          .tile_bf16 = gemm_tile,
                                          .pairs = true,
                                          .rows = rows,
                                          .transpose = transpose,
                                          .copy = copy,
                                          .columns_of = { [HN_F16] = columns_of_f16, [HN_BF16] = columns_of_bf16 },
                                          .rows_of = { [HN_F16] = rows_of_f16, [HN_BF16] = rows_of_bf16 } };
#else
typedef int hn_no_avx512_bf16; /* an empty file is not C */
#endif
