/* Attention over a q8_0 cache on AVX_VNNI: AVX2's, with scores by vpdpbusd. */
#if defined(__x86_64__)

#define HN_VNNI_LANES
#include "kernels/avx2_lanes.h"

#include "kernels/lanes_scores.h"

TILES(SCORES, q8_scores, scores_q8, HN_ATTN_VECS_DOT, true)

void HN_VNNI(attn_q8)(const hn_attn *h)
{
    static scores_fn *const scores[HN_ATTN_ROWS + 1] = { NULL,        q8_scores_1, q8_scores_2, q8_scores_3,
                                                         q8_scores_4, q8_scores_5, q8_scores_6 };
    hn_avx2_attn_q8(h, scores);
}
#else
typedef int hn_no_avx_vnni_attn; /* an empty file is not C */
#endif
