/* The NEON level with SMMLA (ARMv8.6 I8MM): two rows by two columns in one instruction
 * where there are four columns; a column alone goes by SDOT. */
#if defined(__aarch64__)

#include "kernels/kernels.h"

#include <arm_neon.h>

#define dot4(acc, w, a) vdotq_s32(acc, w, a)
#define dot4_lane(acc, w, a, LANE) vdotq_laneq_s32(acc, w, a, LANE)
#define NEON_MMLA 1

#include "kernels/neon_tiles.h"

const hn_kernels hn_kernels_neon_i8mm = NEON_TILES_TABLE("neon_i8mm");
#else
typedef int hn_no_neon_i8mm; /* an empty file is not C */
#endif
