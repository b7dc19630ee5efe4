/* The optimizer: AdamW (Loshchilov and Hutter 2019, algorithm 2) in the order of operations
 * of torch.optim.AdamW, and the norm that gradients are clipped by. Plain C without
 * functions of the C library but sqrt, which IEEE 754 defines: the same bits on
 * every machine, for any division of the elements among threads. */
#include "train/train.h"

#include <math.h>

/* x^t by squaring: pow() may differ in its last bit from one C library to the next. */
static double power(double x, int64_t t)
{
    double r = 1;
    for (; t > 0; t >>= 1, x *= x)
        if (t & 1) r *= x;
    return r;
}

void hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t, double lr,
                  bool decay)
{
    double c1 = 1 - power(o->beta1, t), c2 = 1 - power(o->beta2, t);
    float keep = decay ? (float)(1 - lr * o->weight_decay) : 1;
    float w1 = (float)(1 - o->beta1), b2 = (float)o->beta2, w2 = (float)(1 - o->beta2);
    float size = (float)(lr / c1), root = (float)sqrt(c2), eps = (float)o->eps;
    for (int64_t i = 0; i < n; i++) {
        float x = p[i] * keep;
        m[i] = m[i] + w1 * (g[i] - m[i]);
        v[i] = v[i] * b2 + w2 * g[i] * g[i];
        p[i] = x - size * (m[i] / (sqrtf(v[i]) / root + eps));
    }
}

double hn_grad_norm(const hn_grad *g)
{
    enum { LANES = 8 }; /* one sum would wait for each addition */
    double sum = 0;
    for (int32_t k = 0; k < hn_grad_n_param(g); k++) {
        const hn_param *a = hn_grad_param((hn_grad *)g, k);
        int64_t n = a->rows * a->cols, i = 0;
        double lane[LANES] = { 0 };
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += (double)a->g[i + l] * (double)a->g[i + l];
        for (; i < n; i++) lane[i % LANES] += (double)a->g[i] * (double)a->g[i];
        for (int l = 0; l < LANES; l++) sum += lane[l];
    }
    return sqrt(sum);
}
