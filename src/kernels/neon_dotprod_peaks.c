/* The roof of int8 products by sdot (neon_peaks.h). */
#if defined(__aarch64__)
#define PRODUCT vdotq_s32
#include "kernels/neon_peaks.h"

const hn_peak_op hn_peak_neon_dotprod = { "sdot, 128 bits", N_ACC * 32, products, N_ACC * 4, 12, -1 };
#else
typedef int hn_nothing_of_neon_dotprod_peaks; /* a translation unit may not be empty */
#endif
