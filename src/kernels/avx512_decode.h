/* The decoders that avx512_decode.c gives the table of avx512.c. */
#ifndef HN_AVX512_DECODE_H
#define HN_AVX512_DECODE_H

#include "kernels/kernels.h"

hn_dequantize_fn hn_avx512_decode_q8_0, hn_avx512_decode_q4_0, hn_avx512_decode_q5_0;
hn_dequantize_fn hn_avx512_decode_q4_K, hn_avx512_decode_q5_K, hn_avx512_decode_q6_K;

#endif
