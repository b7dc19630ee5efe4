/* The roof of the AVX2 level: 256-bit loads, vpmaddubsw summed in 16 bits (the most
 * that any order of summing can reach), vfmadd; twelve independent accumulators. */
#if defined(__x86_64__)
#include "kernels/peaks.h"

#include <immintrin.h>

enum { N_ACC = 12 };

static inline __attribute__((always_inline)) __m256i load256(const char *p)
{
    return _mm256_load_si256((const __m256i *)p);
}
static inline __attribute__((always_inline)) uint64_t total(__m256i v)
{
    uint64_t t[4];
    _mm256_storeu_si256((__m256i *)t, v);
    return t[0] + t[1] + t[2] + t[3];
}
HN_PEAK_READ(__m256i, 32, _mm256_setzero_si256(), load256, _mm256_add_epi64, total, read256)

static int64_t maddubs(int64_t n)
{
    __m256i acc[N_ACC], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(1);
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm256_setzero_si256();
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            HN_PEAK_HELD("x", a); /* no product is one that was there before */
            acc[i] = _mm256_add_epi16(acc[i], _mm256_maddubs_epi16(a, b));
            HN_PEAK_HELD("x", acc[i]);
        }
    int64_t sum = 0;
    uint16_t t[N_ACC][16];
    HN_PEAK_EACH(i, N_ACC) _mm256_storeu_si256((__m256i *)t[i], acc[i]);
    for (int i = 0; i < N_ACC * 16; i++) sum += t[i / 16][i % 16];
    return sum;
}

static int64_t fma_f32(int64_t n)
{
    __m256 acc[N_ACC], a = _mm256_set1_ps(1), b = a;
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm256_setzero_ps();
    HN_PEAK_HELD("x", a);
    HN_PEAK_HELD("x", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = _mm256_fmadd_ps(a, b, acc[i]);
            HN_PEAK_HELD("x", acc[i]);
        }
    int64_t sum = 0;
    float t[N_ACC][8];
    HN_PEAK_EACH(i, N_ACC) _mm256_storeu_ps(t[i], acc[i]);
    for (int i = 0; i < N_ACC * 8; i++) sum += (int64_t)t[i / 8][i % 8];
    return sum;
}

const hn_peak_loops hn_peaks_avx2 = {
    .read_how = "256-bit loads",
    .read = read256,
    .bound = true,
    .int8 = { "vpmaddubsw + vpaddw, 256 bits, twelve sums", N_ACC * 64, maddubs, N_ACC * 16, 6, 0xFFFF },
    .f32 = { "vfmadd, 256 bits", N_ACC * 16, fma_f32, N_ACC * 8, 1, -1 },
};
#else
typedef int hn_nothing_of_avx2_peaks; /* a translation unit may not be empty */
#endif
