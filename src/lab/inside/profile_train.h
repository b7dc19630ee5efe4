/* profile_train: where the time of a training's steps goes, operation by operation, as lab/bench/profile.h has it. */
#ifndef HN_PROFILE_TRAIN_H
#define HN_PROFILE_TRAIN_H

#include "lab/bench/profile.h"

typedef struct hn_profile_train_params {
    const hone_train_params *train; /* steps, plan_only and validation do not matter */
    int32_t steps;                  /* >= 1; each is made with the hook and without */
    size_t max_trace;               /* events kept for the trace; 0: no trace */
    const hn_counters *counters;    /* NULL: not wanted */
} hn_profile_train_params;

/* Two trainings of the same settings go side by side, each step of one with the hook and of the other without, in
 * alternating order (ABBA); loss and gradient must be the same bits after each step, what is trained at the end.
 * *info (NULL allowed): of one of them. */
hone_status hn_profile_train(hn_profile *out, hone_train_info *info, hone_context *ctx, const hone_model *m,
                             const hn_profile_train_params *p, hone_error *err);

#endif
