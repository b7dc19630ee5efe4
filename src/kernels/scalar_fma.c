/* The scalar level again, compiled with the FMA instruction: the same loops and the
 * same bits, without a library call for every fmaf. */
#if defined(__x86_64__)
#define HN_SCALAR hn_kernels_scalar_fma
#define HN_SCALAR_NAME "scalar"
#include "kernels/scalar.c"
#else
typedef int hn_no_scalar_fma; /* an empty file is not C */
#endif
