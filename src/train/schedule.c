/* Learning rates over a run: a linear warm-up whose first step is not zero, then a shape
 * from lr to min_lr: constant, linear, half a cosine (Loshchilov and Hutter 2017, eq. 5),
 * or constant with a decay of 1 − √ over the last fifth (Hägele et al. 2024). */
#include "train/schedule.h"

#include <math.h>

double hn_cos_pi(double x)
{
    /* half a turn is even about its middle; there the series of sin needs 11 terms for 1e-16 */
    double y = (0.5 - x) * 3.14159265358979323846, y2 = y * y, sum = 0;
    for (int n = 23; n > 1; n -= 2) sum = (1 + sum) * (-y2 / (double)(n * (n - 1)));
    return y * (1 + sum);
}

double hn_schedule_lr(const hn_schedule *s, int64_t k)
{
    int64_t w = s->warmup < s->total ? s->warmup : s->total;
    if (k < w) return s->lr * (double)(k + 1) / (double)w;
    double span = s->lr - s->min_lr, x = s->total > w ? (double)(k - w) / (double)(s->total - w) : 1;
    if (x > 1) x = 1;
    switch (s->kind) {
    case HONE_TRAIN_LINEAR: return s->min_lr + span * (1 - x);
    case HONE_TRAIN_COSINE: return s->min_lr + 0.5 * span * (1 + hn_cos_pi(x));
    case HONE_TRAIN_WSD: {
        double from = 0.8 * (double)s->total, y = ((double)k - from) / ((double)s->total - from);
        return y <= 0 ? s->lr : s->min_lr + span * (1 - sqrt(y < 1 ? y : 1));
    }
    default: return s->lr;
    }
}
