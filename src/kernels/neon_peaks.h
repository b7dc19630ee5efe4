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
    HN_PEAK_EACH(i, N_ACC) acc[i] = vdupq_n_s32(0);
    HN_PEAK_HELD("w", a);
    HN_PEAK_HELD("w", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = PRODUCT(acc[i], a, b);
            HN_PEAK_HELD("w", acc[i]);
        }
    int64_t s = 0;
    HN_PEAK_EACH(i, N_ACC) s += vaddlvq_s32(acc[i]);
    return s;
}

#endif
