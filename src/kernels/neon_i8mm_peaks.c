/* The roof of int8 products by smmla (neon_peaks.h). */
#if defined(__aarch64__)
#define PRODUCT vmmlaq_s32
#include "kernels/neon_peaks.h"

const hn_peak_op hn_peak_neon_i8mm = { "smmla, 128 bits", N_ACC * 64, products, N_ACC * 4, 24, -1 };
#else
typedef int hn_nothing_of_neon_i8mm_peaks; /* a translation unit may not be empty */
#endif
