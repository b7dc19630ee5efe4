/* Log-probabilities of raw logits. Owns their one definition: weights are hn_exp_f32 of the distance to the largest
 * logit, summed in double in the order of ids, so that every machine finds the same bits. Refuses to know sampling. */
#include "base/base.h"
#include "base/floats.h"
#include "kernels/kernels.h"

#include <float.h>
#include <math.h>

/* Is a behind b in the final order? Ties are in the order of ids. */
static bool is_behind(hone_logprob a, hone_logprob b)
{
    return a.logprob < b.logprob || (a.logprob == b.logprob && a.id > b.id);
}

/* In a heap [n], whose first is behind all others, x takes the place of the one at `at`, which is no further behind. */
static void sink(hone_logprob *top, int32_t n, int32_t at, hone_logprob x)
{
    for (int64_t k; (k = 2 * (int64_t)at + 1) < n; at = (int32_t)k) {
        if (k + 1 < n && is_behind(top[k + 1], top[k])) k++;
        if (!is_behind(top[k], x)) break;
        top[at] = top[k];
    }
    top[at] = x;
}

/* The n_top best, best first. As long as they are looked for they are a heap: all of a vocabulary may be asked for. */
static void select_top(hone_logprob *top, int32_t n_top, const float *logits, int32_t n_vocab)
{
    for (int32_t i = 0; i < n_top; i++) top[i] = (hone_logprob){ i, logits[i] };
    for (int32_t i = n_top / 2; i-- > 0;) sink(top, n_top, i, top[i]);
    for (int32_t i = n_top; i < n_vocab && n_top; i++)
        if (logits[i] > top[0].logprob) sink(top, n_top, 0, (hone_logprob){ i, logits[i] });
    for (int32_t n = n_top; n > 1;) {
        hone_logprob last = top[--n];
        top[n] = top[0];
        sink(top, n, 0, last);
    }
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
    int32_t best = -1;
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
    }
    if (logits[best] < -FLT_MAX) return HN_FAIL(err, HONE_E_NUMERIC, "none of the %d logits is finite", n_vocab);
    double max = logits[best], rest = log_sum(logits, n_vocab, logits[best]);
    if (id >= 0) *logprob = (float)((double)logits[id] - max - rest);
    if (n_top > 0) select_top(top, n_top, logits, n_vocab);
    for (int32_t i = 0; i < n_top; i++) top[i].logprob = (float)((double)top[i].logprob - max - rest);
    return HONE_OK;
}
