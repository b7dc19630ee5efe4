/* The roof of int8 products of the AVX_VNNI level; the others are AVX2's. */
#if defined(__x86_64__)
#include "kernels/avx_vnni.h"

enum { N_ACC = 12 };

static int64_t products(int64_t n)
{
    __m256i acc[N_ACC], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(1);
    HN_PEAK_EACH(i, N_ACC) acc[i] = _mm256_setzero_si256();
    HN_PEAK_HELD("x", a);
    HN_PEAK_HELD("x", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) acc[i] = dpbusd(acc[i], a, b); /* which holds it */
    int64_t sum = 0;
    int32_t t[N_ACC][8];
    HN_PEAK_EACH(i, N_ACC) _mm256_storeu_si256((__m256i *)t[i], acc[i]);
    for (int i = 0; i < N_ACC * 8; i++) sum += t[i / 8][i % 8];
    return sum;
}

const hn_peak_op HN_VNNI(peak) = { "vpdpbusd, 256 bits", N_ACC * 64, products, N_ACC * 8, 12, -1 };
#else
typedef int hn_nothing_of_avx_vnni_peaks; /* a translation unit may not be empty */
#endif
