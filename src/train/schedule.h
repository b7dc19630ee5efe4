/* schedule: the learning rate of each step. Knows step numbers; refuses to know losses. */
#ifndef HN_SCHEDULE_H
#define HN_SCHEDULE_H

#include "base/base.h"

typedef struct hn_schedule {
    hone_train_schedule kind;
    int64_t total, warmup; /* steps; the warm-up's are of the total */
    double lr, min_lr;
} hn_schedule;

/* Of step k = 0, 1, …; what comes after the last has its end value. */
double hn_schedule_lr(const hn_schedule *s, int64_t k);
/* cos(π·x) for x in [0, 1] within 1e-15, the same bits everywhere (that of libm is not). */
double hn_cos_pi(double x);

#endif
