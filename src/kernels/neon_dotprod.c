/* The NEON level with SDOT (ARMv8.2 DotProd): four products a lane in one instruction.
 * All codes are kept signed, so the unsigned and mixed forms are not needed. */
#if defined(__aarch64__)

#include "kernels/neon_scores.h"

#include <arm_neon.h>

#define dot4(acc, w, a) vdotq_s32(acc, w, a)
#define dot4_lane(acc, w, a, LANE) vdotq_laneq_s32(acc, w, a, LANE)

#define NEON_ATTN_Q8 hn_neon_attn_q8_dotprod
#include "kernels/neon_tiles.h"

const hn_kernels hn_kernels_neon_dotprod = NEON_TILES_TABLE("neon_dotprod");
#else
typedef int hn_no_neon_dotprod; /* an empty file is not C */
#endif
