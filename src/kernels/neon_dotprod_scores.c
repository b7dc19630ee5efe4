/* Scores of q8_0 attention by SDOT; all else of attention is in neon.c, in the instructions of ARMv8.0. */
#if defined(__aarch64__)

#define NEON_SDOT 1
#include "kernels/neon_v16.h"

#include "kernels/lanes_scores.h"
#include "kernels/neon_scores.h"

#define SCORES_OF(N)                                                                  \
    void hn_neon_dotprod_scores_##N(const attn_rows *a, const void *block, int64_t r) \
    {                                                                                 \
        scores_q8(a, block, r, N, HN_ATTN_VECS_DOT(N), true);                         \
    }
SCORES_OF(1)
SCORES_OF(2)
SCORES_OF(3)
SCORES_OF(4)
SCORES_OF(5)
SCORES_OF(6)
#else
typedef int hn_no_neon_dotprod_scores; /* an empty file is not C */
#endif
