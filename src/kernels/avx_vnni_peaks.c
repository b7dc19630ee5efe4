/* The roof of int8 products of the AVX_VNNI level; the others are AVX2's. */
#if defined(__x86_64__)
#include "kernels/avx_vnni.h"

enum { N_ACC = 12 };

static int64_t products(int64_t n)
{
    __m256i acc[N_ACC], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(1);
    for (int i = 0; i < N_ACC; i++) acc[i] = _mm256_setzero_si256();
    __asm__("" : "+x"(a), "+x"(b)); /* unknown to the compiler from here on */
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < N_ACC; i++) acc[i] = dpbusd(acc[i], a, b);
    int64_t sum = 0;
    for (int i = 0; i < N_ACC; i++) {
        int32_t t[8];
        _mm256_storeu_si256((__m256i *)t, acc[i]);
        for (int l = 0; l < 8; l++) sum += t[l];
    }
    return sum;
}

const hn_peak_op HN_VNNI(peak) = { "vpdpbusd, 256 bits", N_ACC * 64, products, N_ACC * 8, 12, -1 };
#else
typedef int hn_nothing_of_avx_vnni_peaks; /* a translation unit may not be empty */
#endif
