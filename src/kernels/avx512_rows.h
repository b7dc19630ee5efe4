/* The products of few columns of the AVX-512 level, straight from the rows; many columns
 * go to the panels. The float ones are for at most a few columns. */
#ifndef HN_AVX512_ROWS_H
#define HN_AVX512_ROWS_H

#include "kernels/kernels.h"

hn_matmul_fn hn_avx512_rows_f32, hn_avx512_rows_f16, hn_avx512_rows_bf16;
hn_matmul_fn hn_avx512_rows_q4_K, hn_avx512_rows_q5_K, hn_avx512_rows_q6_K, hn_avx512_rows_iq4_XS;
hn_matmul_fn hn_avx512_rows_q4_0, hn_avx512_rows_q5_0, hn_avx512_rows_q8_0, hn_avx512_rows_iq4_NL;
hn_matmul_fn hn_avx512_rows_mxfp4;

#endif
