/* The AVX2 level (AVX2, FMA, F16C). The contract's sixteen lanes are two registers. */
#if defined(__x86_64__)

#include "kernels/avx2_lanes.h"

/* ---- activations -------------------------------------------------------------------------- */

/* n = 32 or 256. Returns d; sums of 16 codes to sum16[n/16]. */
V16_OP float quantize_block(int8_t *q, int32_t *sum16, const float *x, int n)
{
    __m256i am = _mm256_setzero_si256(), abs_mask = _mm256_set1_epi32(0x7FFFFFFF);
    for (int i = 0; i < n; i += 8)
        am = _mm256_max_epu32(am, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), abs_mask));
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(am), _mm256_extracti128_si256(am, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    uint32_t amax_bits = (uint32_t)_mm_cvtsi128_si32(m);
    float amax = hn_bits_f32(amax_bits);
    if (amax_bits >= 0x7F800000 || amax < HN_TINY_AMAX) {
        memset(q, 0, (size_t)n);
        memset(sum16, 0, (size_t)n / 16 * sizeof *sum16);
        return amax_bits >= 0x7F800000 ? hn_bits_f32(0x7FC00000) : 0.0f;
    }
    __m256 inv = _mm256_set1_ps(127.0f / amax);
    for (int i = 0; i < n; i += 16) {
        __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), inv));
        __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8), inv));
        __m256i p = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
        _mm_storeu_si128((__m128i *)(q + i),
                         _mm_packs_epi16(_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1)));
        __m256i s = _mm256_add_epi32(a, b);
        __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4E));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xB1));
        sum16[i / 16] = _mm_cvtsi128_si32(t);
    }
    return amax / 127.0f;
}

#define HN_FLOAT_ONE(T) hn_avx2_row_##T
#define HN_TILE_R 4
#define HN_TILE_C 3
#define HN_TILE_K 512 /* four rows and three columns of it stay in the first cache */
#define HN_LEVEL_MATMUL \
    [HN_IQ4_XS] = hn_avx2_rows_iq4_XS, [HN_IQ4_NL] = hn_avx2_rows_iq4_NL, [HN_MXFP4] = hn_avx2_rows_mxfp4
#define HN_LEVEL_PACKED                                                                                \
    [HN_F32] = hn_avx2_packed_f32, [HN_F16] = hn_avx2_packed_f16, [HN_BF16] = hn_avx2_packed_bf16,     \
    [HN_Q4_K] = hn_avx2_packed_q4_K, [HN_Q5_K] = hn_avx2_packed_q5_K, [HN_Q6_K] = hn_avx2_packed_q6_K, \
    [HN_Q4_0] = hn_avx2_packed_q4_0, [HN_Q5_0] = hn_avx2_packed_q5_0, [HN_Q8_0] = hn_avx2_packed_q8_0, \
    [HN_IQ4_XS] = hn_avx2_packed_iq4_XS, [HN_IQ4_NL] = hn_avx2_packed_iq4_NL
#include "kernels/lanes.h"

void hn_avx2_attn_q8(const hn_attn *h, hn_attn_scores_fn *const *scores)
{
    attn_reader how = attn_readers[HN_CACHE_Q8_0];
    memcpy(how.scores, scores, sizeof how.scores);
    memcpy(how.many_scores, scores, sizeof how.many_scores);
    attn_walk(h, HN_CACHE_Q8_0, &how);
}

#define matmul_q8_0 hn_avx2_rows_q8_0
#define matmul_q4_0 hn_avx2_rows_q4_0
#define matmul_q5_0 hn_avx2_rows_q5_0
#define matmul_q4_K hn_avx2_rows_q4_K
#define matmul_q5_K hn_avx2_rows_q5_K
#define matmul_q6_K hn_avx2_rows_q6_K
const hn_kernels hn_kernels_avx2 = HN_LANES_TABLE("avx2");
#else
typedef int hn_no_avx2; /* an empty file is not C */
#endif
