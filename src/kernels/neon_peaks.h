/* Products of int8 by the instruction PRODUCT, with sixteen independent accumulators: each file that includes this is
 * compiled for it. */
#ifndef HN_NEON_PEAKS_H
#define HN_NEON_PEAKS_H

#include "kernels/peaks.h"

#include <arm_neon.h>

enum { N_ACC = 16 };

static int64_t products(int64_t n)
{
    int32x4_t acc[N_ACC];
    int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(1);
    for (int i = 0; i < N_ACC; i++) acc[i] = vdupq_n_s32(0);
    __asm__("" : "+w"(a), "+w"(b)); /* unknown to the compiler from here on */
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < N_ACC; i++) acc[i] = PRODUCT(acc[i], a, b);
    int64_t s = 0;
    for (int i = 0; i < N_ACC; i++) s += vaddlvq_s32(acc[i]);
    return s;
}

#endif
