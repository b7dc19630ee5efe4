/* sampler: what is looked at before there is one. */
#ifndef HN_SAMPLER_H
#define HN_SAMPLER_H

#include "hone.h"

/* HONE_E_ARG: n_vocab or a parameter is out of range. */
hone_status hn_sampler_check(int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
/* Is never picked from here on; nothing where it is out of range. */
hone_status hn_sampler_forbid(hone_sampler *s, int32_t id, hone_error *err);
/* HONE_E_ARG: an id out of range, a bias that is NaN or +infinity. */
hone_status hn_bias_check(int32_t n_vocab, const hone_bias *bias, size_t n, hone_error *err);
/* What the chain makes of logits for p, before anything more is accepted: *prob: that of token id; top [most]: the most
 * likely, most likely first, ties to the lower id; *n_top: fewer where fewer can be picked. Fails as
 * hone_sampler_pick_from does. */
hone_status hn_sampler_probs(hone_sampler *s, const float *logits, const hone_pick *p, int32_t id, float *prob,
                             hone_logprob *top, int32_t most, int32_t *n_top, hone_error *err);

#endif
