/* The packed products of the AVX-512 level. */
#ifndef HN_AVX512_PACKED_H
#define HN_AVX512_PACKED_H

#include "kernels/kernels.h"

hn_matmul_fn hn_avx512_packed_f32, hn_avx512_packed_f16, hn_avx512_packed_bf16;
hn_matmul_fn hn_avx512_packed_q4_K, hn_avx512_packed_q5_K, hn_avx512_packed_q6_K, hn_avx512_packed_iq4_XS;
hn_matmul_fn hn_avx512_packed_q4_0, hn_avx512_packed_q5_0, hn_avx512_packed_q8_0, hn_avx512_packed_iq4_NL;

#endif
