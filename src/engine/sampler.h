/* sampler: what is looked at before there is one. */
#ifndef HN_SAMPLER_H
#define HN_SAMPLER_H

#include "hone.h"

/* HONE_E_ARG: n_vocab or a parameter is out of range. */
hone_status hn_sampler_check(int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
/* HONE_E_ARG: an id out of range, a bias that is NaN or +infinity. */
hone_status hn_bias_check(int32_t n_vocab, const hone_bias *bias, size_t n, hone_error *err);

#endif
