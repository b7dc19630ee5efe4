/* The roof of the AVX-512 level: 512-bit loads, vpdpbusd, vfmadd and, where there is
 * one, vdpbf16ps, each with sixteen independent accumulators. */
#if defined(__x86_64__)
#include "kernels/peaks.h"

#include <immintrin.h>

enum { N_ACC = 16 };

/* AddressSanitizer's stand-in for the stack (gcc 12) aligns to 32 bytes, too few for arrays of registers. */
#define ON_STACK __attribute__((no_sanitize_address))

static inline __attribute__((always_inline)) uint64_t total(__m512i v)
{
    __m256i a = _mm256_add_epi64(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i b = _mm_add_epi64(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(b, _mm_unpackhi_epi64(b, b)));
}
HN_PEAK_READ(__m512i, 64, _mm512_setzero_si512(), _mm512_load_si512, _mm512_add_epi64, total, read512)

ON_STACK static int64_t dpbusd(int64_t n)
{
    __m512i acc[N_ACC], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(1);
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm512_setzero_si512();
    HN_PEAK_HELD("v", a);
    HN_PEAK_HELD("v", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = _mm512_dpbusd_epi32(acc[i], a, b);
            HN_PEAK_HELD("v", acc[i]);
        }
    int64_t sum = 0;
    int32_t t[N_ACC][16];
    HN_PEAK_EACH(i, N_ACC) _mm512_storeu_si512(t[i], acc[i]);
    for (int i = 0; i < N_ACC * 16; i++) sum += t[i / 16][i % 16];
    return sum;
}

ON_STACK static int64_t lanes_f32(const __m512 *acc)
{
    int64_t sum = 0;
    float t[N_ACC][16];
    HN_PEAK_EACH(i, N_ACC) _mm512_storeu_ps(t[i], acc[i]);
    for (int i = 0; i < N_ACC * 16; i++) sum += (int64_t)t[i / 16][i % 16];
    return sum;
}

ON_STACK static int64_t fma_f32(int64_t n)
{
    __m512 acc[N_ACC], a = _mm512_set1_ps(1), b = a;
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm512_setzero_ps();
    HN_PEAK_HELD("v", a);
    HN_PEAK_HELD("v", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = _mm512_fmadd_ps(a, b, acc[i]);
            HN_PEAK_HELD("v", acc[i]);
        }
    return lanes_f32(acc);
}

ON_STACK __attribute__((target("avx512bf16"))) static int64_t dp_bf16(int64_t n)
{
    __m512 acc[N_ACC];
    __m512i one = _mm512_set1_epi16(0x3F80);
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm512_setzero_ps();
    HN_PEAK_HELD("v", one);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = _mm512_dpbf16_ps(acc[i], (__m512bh)one, (__m512bh)one);
            HN_PEAK_HELD("v", acc[i]);
        }
    return lanes_f32(acc);
}

const hn_peak_op hn_peak_avx512_bf16 = { "vdpbf16ps, 512 bits", N_ACC * 64, dp_bf16, N_ACC * 16, 2, -1 };
const hn_peak_loops hn_peaks_avx512 = {
    .read_how = "512-bit loads",
    .read = read512,
    .bound = true,
    .int8 = { "vpdpbusd, 512 bits", N_ACC * 128, dpbusd, N_ACC * 16, 12, -1 },
    .f32 = { "vfmadd, 512 bits", N_ACC * 32, fma_f32, N_ACC * 16, 1, -1 },
};
#else
typedef int hn_nothing_of_avx512_peaks; /* a translation unit may not be empty */
#endif
