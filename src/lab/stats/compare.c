/* Two sides compared. Owns order, intervals, verdicts and their shares of α; refuses to
 * know what was measured and how. */
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- rounds ------------------------------------------------------------------------------ */

bool hn_ab_order(uint64_t seed, uint64_t i)
{
    bool first = hn_rand64(seed ^ 0x61626261, i / 2) >> 63;
    return i % 2 ? !first : first;
}

size_t hn_ab_rounds_at(size_t first, int look) { return first << look; }

double hn_ab_alpha(size_t first, int look)
{
    static const double share[HN_AB_LOOKS] = { 0.06, 0.14, 0.30, 0.50 };
    return HN_AB_ALPHA * (first < HN_AB_ROUNDS ? 1.0 / HN_AB_LOOKS : share[look]);
}

size_t hn_ab_logs(double *x, const hn_ab_round *r, size_t n, bool higher_better, hone_error *err)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (r[i].voided) continue;
        if (!(r[i].a > 0 && r[i].b > 0 && isfinite(r[i].a) && isfinite(r[i].b))) {
            HN_FAIL(err, HONE_E_ARG, "round %zu measured %g and %g; expected numbers above zero, which have a ratio",
                    i + 1, r[i].a, r[i].b);
            return 0;
        }
        x[k++] = higher_better ? log(r[i].b / r[i].a) : log(r[i].a / r[i].b);
    }
    return k;
}

size_t hn_ab_self_logs(double *x, const hn_ab_round *r, size_t n, bool higher_better)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        double from = 0, to = 0;
        if (r[i].a2 > 0 && !r[i].voided) {
            from = r[i].a;
            to = r[i].a2;
        } else if (i % 2 && !r[i].voided && !r[i - 1].voided && r[i].ba != r[i - 1].ba) {
            from = r[i].ba ? r[i - 1].a : r[i].a;
            to = r[i].ba ? r[i].a : r[i - 1].a;
        } else if (i % 2 && !r[i].voided && !r[i - 1].voided) { /* of several rounds each, whose orders are their own */
            const bool back = i / 2 % 2;
            from = r[i - !back].a;
            to = r[i - back].a;
        }
        if (from > 0 && to > 0) x[k++] = higher_better ? log(to / from) : log(from / to);
    }
    return k;
}

/* ---- order statistics ----------------------------------------------------------------------- */

double hn_binomial_half(size_t n, long k)
{
    double p = 0, m = (double)n;
    if (k >= (long)n) return 1;
    for (long i = 0; i <= k; i++)
        p += exp(lgamma(m + 1) - lgamma((double)i + 1) - lgamma(m - (double)i + 1) - m * 0.69314718055994531);
    return p < 1 ? p : 1;
}

static void interval(double ci[2], double *coverage, const double *sorted, size_t n, double level)
{
    size_t k = hn_median_rank(n, level, coverage);
    ci[0] = k ? exp(sorted[k - 1]) : NAN;
    ci[1] = k ? exp(sorted[n - k]) : NAN;
}

double hn_ab_half_width(double *x, size_t n)
{
    double ci[2], coverage;
    qsort(x, n, sizeof *x, hn_ascending);
    interval(ci, &coverage, x, n, 0.95);
    if (!isfinite(ci[0])) return NAN;
    return fmax(0.5 * (ci[1] - ci[0]), fabs(exp(hn_middle(x, n)) - 1));
}

double hn_ab_bias(double *x, size_t n)
{
    double ci[2], coverage;
    qsort(x, n, sizeof *x, hn_ascending);
    interval(ci, &coverage, x, n, 0.95);
    return ci[0] > 1 || ci[1] < 1 ? fabs(exp(hn_middle(x, n)) - 1) : 0;
}

void hn_share_interval(double out[2], size_t k, size_t n, double level)
{
    out[0] = 0;
    out[1] = 1;
    if (n == 0) return;
    for (int side = 0; side < 2; side++) { /* the share at which so many, or so few, have probability (1 − level) / 2 */
        if (side == 0 ? k == 0 : k == n) continue;
        double lo = 0, hi = 1;
        for (int i = 0; i < 60; i++) {
            double p = 0.5 * (lo + hi), tail = 0, m = (double)n;
            size_t from = side == 0 ? k : 0, to = side == 0 ? n : k;
            for (size_t j = from; j <= to; j++) {
                double d = (double)j;
                tail += exp(lgamma(m + 1) - lgamma(d + 1) - lgamma(m - d + 1) + d * log(p) + (m - d) * log1p(-p));
            }
            bool low = side == 0 ? tail < 0.5 * (1 - level) : tail > 0.5 * (1 - level);
            if (low) lo = p;
            else hi = p;
        }
        out[side] = 0.5 * (lo + hi);
    }
}

/* The share of differences in [from, to). */
static double share_of(const double *d, size_t n, double from, double to)
{
    size_t k[2] = { 0, 0 };
    for (int e = 0; e < 2; e++) {
        size_t lo = 0, hi = n;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (d[mid] < (e ? to : from)) lo = mid + 1;
            else hi = mid;
        }
        k[e] = lo;
    }
    return n ? (double)(k[1] - k[0]) / (double)n : 0;
}

/* A sign test of rounds within c of a margin that lies `shift` above them all sees the share below it less the share
 * above; what it must be told from is the square root of how many these are. */
double hn_ab_near(const double *d, size_t n_d, double shift)
{
    static const double widths[] = { 0.04, 0.06, 0.08, 0.12, 0.16, 0.25, 0.4, 0.7 };
    const double far = 1e3, better = 1.1;
    double best = 0, most = better * (share_of(d, n_d, -far, shift) - share_of(d, n_d, shift, far));
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const double c = widths[i], all = share_of(d, n_d, shift - c, shift + c),
                     z = (share_of(d, n_d, shift - c, shift) - share_of(d, n_d, shift, shift + c)) / sqrt(all);
        if (!(all > 0) || !(z > most)) continue;
        most = z;
        best = c;
    }
    return best;
}

/* ---- verdicts ---------------------------------------------------------------------------------- */

const char *hn_ab_verdict_name(hn_ab_verdict v)
{
    static const char *const names[] = { "INCONCLUSIVE", "SAME", "IMPROVED", "REGRESSED", "DIFFERENT" };
    return names[v];
}

/* (x_k, x_{n+1-k}) ends below t exactly when at most k − 1 of x are t or more, and its rank k
 * is the greatest with 2 P(Bin ≤ k − 1) ≤ α: so the count gives the least such α. */
static double p_of(size_t n, size_t beyond)
{
    double p = 2 * hn_binomial_half(n, (long)beyond);
    return p < 1 ? p : 1;
}

/* How slow is slow enough, as a logarithm: 1 − ε of what was asked for. A margin that the machine made is as wide on
 * both sides of the logarithm, 1 / (1 + ε), so that one beyond 100 % can still say that something takes ten times as
 * long. */
static double low_end(double margin, double wanted)
{
    return margin > wanted || margin >= 1 ? -log1p(margin) : log1p(-margin);
}

/* p_of() of the rounds on the wrong side of a margin t: above it where `below` is asked for. With some that are near
 * it, the better of two tests, at half of α each; those near say nothing that most of all rounds contradict: a side
 * that is faster where nothing disturbs it, and disturbed more often by its own doing, is not the better one. */
static double p_beyond(hn_ab_result *r, const double *x, double t, bool below)
{
    size_t wrong = 0, n = 0, wrong_near = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bool is = below ? x[i] >= t : x[i] <= t, near = fabs(x[i] - t) <= r->near;
        wrong += is;
        n += near;
        wrong_near += is && near;
    }
    if (!(r->near > 0)) return p_of(r->n, wrong);
    r->n_near[!below] = n;
    const double all = p_of(r->n, wrong), some = 2 * wrong < r->n ? p_of(n, wrong_near) : 1;
    return fmin(2 * fmin(all, some), 1);
}

static void find_p(hn_ab_result *r, const double *x)
{
    double lo = low_end(r->margin, r->wanted), hi = log1p(r->margin), same_lo = low_end(r->wanted, r->wanted),
           same_hi = log1p(r->wanted);
    size_t too_low = 0, too_high = 0;
    for (size_t i = 0; i < r->n; i++) {
        too_low += x[i] < same_lo;
        too_high += x[i] > same_hi;
    }
    r->p[HN_AB_INCONCLUSIVE] = 1;
    r->p[HN_AB_REGRESSED] = p_beyond(r, x, lo, true);
    r->p[HN_AB_IMPROVED] = p_beyond(r, x, hi, false);
    r->p[HN_AB_SAME] = fmax(p_of(r->n, too_low), p_of(r->n, too_high));
}

/* The interval's ends against the margins, by counting: rounding of an end cannot change it. */
static hn_ab_verdict at_level(const hn_ab_result *r)
{
    const double alpha = (1 - r->level) * (1 + 1e-9);
    if (!isfinite(r->ci[0])) return HN_AB_INCONCLUSIVE;
    if (r->p[HN_AB_REGRESSED] <= alpha) return HN_AB_REGRESSED;
    if (r->p[HN_AB_IMPROVED] <= alpha) return HN_AB_IMPROVED;
    return r->p[HN_AB_SAME] <= alpha ? HN_AB_SAME : HN_AB_INCONCLUSIVE;
}

void hn_ab_judge(hn_ab_result *out, double *x, size_t n, double wanted, double margin, double near, double level)
{
    *out = (hn_ab_result){ .n = n,
                           .ratio = NAN,
                           .ci = { NAN, NAN },
                           .coverage = NAN,
                           .ci95 = { NAN, NAN },
                           .coverage95 = NAN,
                           .level = level,
                           .wanted = wanted,
                           .margin = margin,
                           .near = near,
                           .p = { 1, 1, 1, 1 } };
    if (n == 0) return;
    qsort(x, n, sizeof *x, hn_ascending);
    out->ratio = exp(hn_middle(x, n));
    interval(out->ci, &out->coverage, x, n, level);
    interval(out->ci95, &out->coverage95, x, n, 0.95);
    find_p(out, x);
    out->verdict = at_level(out);
}

static double best_p(const hn_ab_result *r)
{
    return fmin(r->p[HN_AB_SAME], fmin(r->p[HN_AB_IMPROVED], r->p[HN_AB_REGRESSED]));
}

void hn_ab_holm(hn_ab_result *r, double *const *x, size_t m, double alpha)
{
    double level = 1 - alpha / (double)(m ? m : 1);
    bool open = true;
    for (size_t i = 0; i < m; i++)
        hn_ab_judge(&r[i], x[i], r[i].n, r[i].wanted, r[i].margin, r[i].near, level); /* its p; not taken */
    for (size_t done = 0; done < m; done++) { /* m is small: the next least p by looking at all */
        size_t best = m;
        for (size_t i = 0; i < m; i++)
            if (!r[i].taken && (best == m || best_p(&r[i]) < best_p(&r[best]))) best = i;
        if (open) level = 1 - alpha / (double)(m - done);
        hn_ab_judge(&r[best], x[best], r[best].n, r[best].wanted, r[best].margin, r[best].near, level);
        r[best].taken = true;
        open = open && r[best].verdict != HN_AB_INCONCLUSIVE;
        if (!open) r[best].verdict = HN_AB_INCONCLUSIVE; /* after the first failure nothing may be said of the rest */
    }
}

const char *hn_ab_note(const hn_ab_result *r)
{
    if (!isfinite(r->ci[0])) return r->verdict == HN_AB_INCONCLUSIVE ? "too few rounds for an interval" : "";
    bool slower = r->ci[1]<1, faster = r->ci[0]> 1;
    if (r->verdict == HN_AB_INCONCLUSIVE)
        return slower ? "slower, size unresolved" : faster ? "faster, size unresolved" : "";
    if (r->verdict == HN_AB_SAME)
        return slower ? "slower, by less than the margin" : faster ? "faster, by less than the margin" : "";
    return "";
}

static json_t *pair(const double v[2])
{
    if (!isfinite(v[0])) return json_null();
    json_t *a = json_array();
    json_array_append_new(a, hn_lab_num(v[0]));
    json_array_append_new(a, hn_lab_num(v[1]));
    return a;
}

json_t *hn_ab_result_json(const hn_ab_result *r)
{
    json_t *o = json_object();
    const char *note = hn_ab_note(r);
    json_object_set_new(o, "n", json_integer((json_int_t)r->n));
    json_object_set_new(o, "ratio", hn_lab_num(r->ratio));
    json_object_set_new(o, "ci95", pair(r->ci95));
    json_object_set_new(o, "coverage", hn_lab_num(r->coverage95));
    json_object_set_new(o, "ci", pair(r->ci));
    json_object_set_new(o, "ci_coverage", hn_lab_num(r->coverage));
    json_object_set_new(o, "level", hn_lab_num(r->level));
    json_object_set_new(o, "margin", hn_lab_num(r->margin));
    json_object_set_new(o, "margin_wanted", hn_lab_num(r->wanted));
    json_object_set_new(o, "near", r->near > 0 ? hn_lab_num(r->near) : json_null());
    if (r->near > 0)
        json_object_set_new(o, "n_near", json_pack("[I, I]", (json_int_t)r->n_near[0], (json_int_t)r->n_near[1]));
    json_object_set_new(o, "verdict", json_string(hn_ab_verdict_name(r->verdict)));
    json_object_set_new(o, "note", note[0] ? json_string(note) : json_null());
    return o;
}
