/* Peaks of the 8-bit instructions of Arm: SDOT (DotProd), SMMLA (I8MM). */
#if defined(__aarch64__)

#include "kernels/peaks.h"

#include <arm_neon.h>

enum { N_ACC = 16 };

#define ARM_DOT(NAME, OP)                                                                     \
    static int64_t NAME(int64_t n)                                                            \
    {                                                                                         \
        int32x4_t acc[N_ACC];                                                                 \
        int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(1);                                       \
        for (int i = 0; i < N_ACC; i++) acc[i] = vdupq_n_s32(0);                              \
        for (int64_t k = 0; k < n; k++)                                                       \
            for (int i = 0; i < N_ACC; i++) {                                                 \
                __asm__("" : "+w"(a), "+w"(b)); /* nothing may be known of them */            \
                acc[i] = OP(acc[i], a, b);                                                    \
            }                                                                                 \
        int64_t s = 0;                                                                        \
        for (int i = 0; i < N_ACC; i++) s += vaddlvq_s32(acc[i]);                             \
        return s;                                                                             \
    }
ARM_DOT(dot, vdotq_s32)
ARM_DOT(mmla, vmmlaq_s32)

const hn_peak_op hn_peak_neon_dot = { "sdot, 128 bits", N_ACC * 32, dot, N_ACC * 4, 12, -1 };
const hn_peak_op hn_peak_neon_mmla = { "smmla, 128 bits", N_ACC * 64, mmla, N_ACC * 4, 24, -1 };
#else
typedef int hn_no_neon_i8mm_peaks; /* an empty file is not C */
#endif
