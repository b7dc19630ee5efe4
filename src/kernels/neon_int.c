/* The NEON level, integers: products of 8 bits with the instructions of ARMv8.0. */
#if defined(__aarch64__)

#include "kernels/kernels.h"

#include <arm_neon.h>

/* lane i of acc += four products, bytes 4i … 4i+3. Two products of −128…127 by
 * −127…127 are at most 32,512. */
static inline __attribute__((always_inline)) int32x4_t dot4(int32x4_t acc, int8x16_t w, int8x16_t a)
{
    return vpadalq_s16(acc, vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)), vmull_high_s8(w, a)));
}
/* the same, with word LANE of a for every lane */
#define dot4_lane(acc, w, a, LANE) dot4(acc, w, vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(a), LANE)))

#include "kernels/neon_tiles.h"

const hn_kernels hn_kernels_neon_int = NEON_TILES_TABLE(NULL);
#else
typedef int hn_no_neon_int; /* an empty file is not C */
#endif
