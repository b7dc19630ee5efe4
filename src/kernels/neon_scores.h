/* Scores of q8_0 attention with SDOT, for tiles of 1 to 6 rows (lanes_scores.h), and the attention that takes them. */
#ifndef HN_NEON_SCORES_H
#define HN_NEON_SCORES_H

#include "kernels/kernels.h"

struct attn_rows;
typedef void hn_neon_scores_fn(const struct attn_rows *a, const void *block, int64_t r);
hn_neon_scores_fn hn_neon_dotprod_scores_1, hn_neon_dotprod_scores_2, hn_neon_dotprod_scores_3,
    hn_neon_dotprod_scores_4, hn_neon_dotprod_scores_5, hn_neon_dotprod_scores_6;
hn_attn_fn hn_neon_attn_q8_dotprod;

#endif
