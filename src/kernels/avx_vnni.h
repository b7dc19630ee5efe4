/* The two instructions of AVX-VNNI, and what the files of the level share. With HN_VNNI_EMULATED both are functions of
 * AVX2, of the same results, and all names are others: tests run the level's code on CPUs without the instructions. */
#ifndef HN_AVX_VNNI_H
#define HN_AVX_VNNI_H

#define HN_VNNI_DOT
#include "kernels/avx2.h"
#include "kernels/peaks.h"

#ifdef HN_VNNI_EMULATED
#define HN_VNNI(NAME) hn_emulated_##NAME
#else
#define HN_VNNI(NAME) hn_avx_vnni_##NAME
#endif

/* The level of IQ4 of each code, and 128. */
INLINE __m256i high_levels(__m256i codes)
{
    __m256i levels = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)hn_iq4_levels));
    return _mm256_shuffle_epi8(_mm256_xor_si256(levels, _mm256_set1_epi8(-128)), codes);
}

/* One vector each, for the test of the emulation. */
void HN_VNNI(dpbusd)(int32_t sum[8], const uint8_t u[32], const int8_t s[32]);
void HN_VNNI(dpwssd)(int32_t sum[8], const int16_t a[16], const int16_t b[16]);

/* many columns, from rows and from packed groups; both need scratch */
hn_matmul_fn HN_VNNI(panel_q4_K), HN_VNNI(panel_q5_K), HN_VNNI(panel_q6_K), HN_VNNI(panel_iq4_XS);
hn_matmul_fn HN_VNNI(panel_q4_0), HN_VNNI(panel_q5_0), HN_VNNI(panel_q8_0), HN_VNNI(panel_iq4_NL);
hn_matmul_fn HN_VNNI(panel_mxfp4);
hn_matmul_fn HN_VNNI(ppanel_q4_K), HN_VNNI(ppanel_q5_K), HN_VNNI(ppanel_q6_K), HN_VNNI(ppanel_iq4_XS);
hn_matmul_fn HN_VNNI(ppanel_q4_0), HN_VNNI(ppanel_q5_0), HN_VNNI(ppanel_q8_0), HN_VNNI(ppanel_iq4_NL);

/* few columns, from rows as in the file */
hn_matmul_fn HN_VNNI(rows_q4_K), HN_VNNI(rows_q5_K), HN_VNNI(rows_q6_K), HN_VNNI(rows_iq4_XS);
hn_matmul_fn HN_VNNI(rows_q4_0), HN_VNNI(rows_q5_0), HN_VNNI(rows_q8_0), HN_VNNI(rows_iq4_NL), HN_VNNI(rows_mxfp4);

/* packed groups, one column */
hn_matmul_fn HN_VNNI(packed_q4_K), HN_VNNI(packed_q5_K), HN_VNNI(packed_q6_K), HN_VNNI(packed_iq4_XS);
hn_matmul_fn HN_VNNI(packed_q4_0), HN_VNNI(packed_q5_0), HN_VNNI(packed_q8_0), HN_VNNI(packed_iq4_NL);

hn_attn_fn HN_VNNI(attn_q8);

/* What the level adds to AVX2's table, to its peaks. */
extern const hn_kernels HN_VNNI(kernels);
extern const hn_peak_op HN_VNNI(peak);

#endif
