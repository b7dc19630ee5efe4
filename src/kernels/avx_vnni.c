/* The AVX_VNNI level: AVX2 with the integer dot products of VNNI in 256 bits, VEX-encoded (Intel's client cores from
 * the 12th generation on, which have no AVX-512). What is not here is AVX2's. */
#if defined(__x86_64__)

#include "kernels/avx_vnni.h"

void HN_VNNI(dpbusd)(int32_t sum[8], const uint8_t u[32], const int8_t s[32])
{
    _mm256_storeu_si256((__m256i *)sum, dpbusd(load256(sum), load256(u), load256(s)));
}
void HN_VNNI(dpwssd)(int32_t sum[8], const int16_t a[16], const int16_t b[16])
{
    _mm256_storeu_si256((__m256i *)sum, dpwssd(load256(sum), load256(a), load256(b)));
}

enum { PANEL_FROM = 5 }; /* columns from which a panel is opened; not measured */
#define PACKED(TYPE, ID)                                                        \
    static void packed_##TYPE(const hn_mm *m)                                   \
    {                                                                           \
        if (m->n_col == 1) HN_VNNI(packed_##TYPE)(m);                           \
        else if (m->panel && m->n_col >= PANEL_FROM) HN_VNNI(ppanel_##TYPE)(m); \
        else hn_kernels_avx2.packed[ID](m);                                     \
    }
PACKED(q4_K, HN_Q4_K)
PACKED(q5_K, HN_Q5_K)
PACKED(q6_K, HN_Q6_K)
PACKED(iq4_XS, HN_IQ4_XS)
PACKED(q4_0, HN_Q4_0)
PACKED(q5_0, HN_Q5_0)
PACKED(q8_0, HN_Q8_0)
PACKED(iq4_NL, HN_IQ4_NL)

const hn_kernels HN_VNNI(kernels) = {
    .name = "avx_vnni",
    .matmul = { [HN_Q4_K] = HN_VNNI(rows_q4_K),
                [HN_Q5_K] = HN_VNNI(rows_q5_K),
                [HN_Q6_K] = HN_VNNI(rows_q6_K),
                [HN_IQ4_XS] = HN_VNNI(rows_iq4_XS),
                [HN_Q4_0] = HN_VNNI(rows_q4_0),
                [HN_Q5_0] = HN_VNNI(rows_q5_0),
                [HN_Q8_0] = HN_VNNI(rows_q8_0),
                [HN_IQ4_NL] = HN_VNNI(rows_iq4_NL),
                [HN_MXFP4] = HN_VNNI(rows_mxfp4) },
    .attn = { [HN_CACHE_Q8_0] = HN_VNNI(attn_q8) },
    .packed = { [HN_Q4_K] = packed_q4_K,
                [HN_Q5_K] = packed_q5_K,
                [HN_Q6_K] = packed_q6_K,
                [HN_IQ4_XS] = packed_iq4_XS,
                [HN_Q4_0] = packed_q4_0,
                [HN_Q5_0] = packed_q5_0,
                [HN_Q8_0] = packed_q8_0,
                [HN_IQ4_NL] = packed_iq4_NL },
};
#else
typedef int hn_no_avx_vnni; /* an empty file is not C */
#endif
