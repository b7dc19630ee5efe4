/* Log-probabilities of raw logits. Owns their one definition: weights are hn_exp_f32 of the distance to the largest
 * logit, summed in double in the order of ids, so that every machine finds the same bits. Refuses to know sampling. */
#include "base/base.h"
#include "base/floats.h"
#include "kernels/kernels.h"

#include <float.h>
#include <math.h>

/* Puts (id, x) into the n best, which are in final order; ties stay behind those that came before. */
static int32_t insert(hone_logprob *top, int32_t n, int32_t n_max, int32_t id, float x)
{
    int32_t at = n;
    if (n == n_max && !(x > top[n - 1].logprob)) return n;
    if (n == n_max) at = n - 1;
    for (; at > 0 && x > top[at - 1].logprob; at--) top[at] = top[at - 1];
    top[at] = (hone_logprob){ id, x };
    return n < n_max ? n + 1 : n;
}

/* ln Σ exp(logits - max). */
static double log_sum(const float *logits, int32_t n_vocab, float max)
{
    enum { PART = 512 };
    float w[PART];
    double sum = 0;
    for (int32_t at = 0; at < n_vocab; at += PART) {
        int32_t n = n_vocab - at < PART ? n_vocab - at : PART;
        for (int32_t i = 0; i < n; i++) w[i] = logits[at + i] - max;
        hn_exp_many(w, w, n);
        for (int32_t i = 0; i < n; i++) sum += (double)w[i];
    }
    return hn_log2_f64(sum) * 0.693147180559945309417;
}

hone_status hone_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, hone_logprob *top,
                          int32_t n_top, hone_error *err)
{
    HN_FLOATS;
    int32_t best = -1, n = 0;
    if (logprob) *logprob = 0;
    HN_NEED(err, logits, "a pointer to n_vocab logits");
    if (n_vocab < 1) return HN_FAIL(err, HONE_E_ARG, "log-probabilities of %d logits; expected 1 or more", n_vocab);
    if (id < -1 || id >= n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "log-probability of token %d; expected 0 to %d, or -1", id, n_vocab - 1);
    if (id >= 0) HN_NEED(err, logprob, "a place for the log-probability");
    if (n_top < 0 || n_top > n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "the %d most likely tokens; expected 0 to %d", n_top, n_vocab);
    if (n_top > 0) HN_NEED(err, top, "a pointer to n_top places");

    for (int32_t i = 0; i < n_vocab; i++) {
        if (!(logits[i] <= FLT_MAX))
            return HN_FAIL(err, HONE_E_NUMERIC, "logit of token %d is %s; expected a number", i,
                           isnan(logits[i]) ? "NaN" : "+infinity");
        if (best < 0 || logits[i] > logits[best]) best = i;
        if (n_top > 0) n = insert(top, n, n_top, i, logits[i]);
    }
    if (logits[best] < -FLT_MAX) return HN_FAIL(err, HONE_E_NUMERIC, "none of the %d logits is finite", n_vocab);
    double max = logits[best], rest = log_sum(logits, n_vocab, logits[best]);
    if (id >= 0) *logprob = (float)((double)logits[id] - max - rest);
    for (int32_t i = 0; i < n; i++) top[i].logprob = (float)((double)top[i].logprob - max - rest);
    return HONE_OK;
}
