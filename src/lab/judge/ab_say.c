/* A comparison in words: which side takes longer and by how much, and how long it goes on. Owns the words for people;
 * refuses to judge. */
#include "lab/judge/ab.h"
#include "lab/stats/stats.h"

#include <math.h>

/* What "more" of a metric is, when B's share of A is above 1. A rate turns into its inverse: time. */
static bool is_time(const char *unit)
{
    static const char *const units[] = { "s", "ms", "us", "µs", "ns" };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i]) == 0) return true;
    return false;
}

/* Percent that B's cost is above A's, when B's speed is `ratio` of A's. */
static double above(double ratio) { return 100 * (1 / ratio - 1); }

/* The decimals of a percentage that is known to ± half: two digits of half at most, none beyond a hundredth. */
static int places(double half)
{
    int d = half > 0 && isfinite(half) ? 1 - (int)floor(log10(half)) : 1;
    return d < 0 ? 0 : d > 2 ? 2 : d;
}

const char *hn_ab_say(char *dst, size_t cap, const hn_ab_line *l)
{
    const hn_ab_result *r = &l->r;
    bool time = l->higher || is_time(l->unit);
    const char *verb = time ? "takes" : "needs", *unit = time ? " time" : "", *longer = time ? "longer" : "more";
    dst[0] = 0;
    if (!isfinite(r->ci[0]) || !isfinite(r->ratio)) return dst;
    double at = above(r->ratio), lo = above(r->ci[1]), hi = above(r->ci[0]);
    int d = places(0.5 * (hi - lo));
    if (lo > 0) snprintf(dst, cap, "B %s %.*f %% %s (%.*f to %.*f)", verb, d, at, longer, d, lo, d, hi);
    else if (hi < 0) snprintf(dst, cap, "B %s %.*f %% less%s (%.*f to %.*f)", verb, d, -at, unit, d, -hi, d, -lo);
    else snprintf(dst, cap, "B %s from %.*f %% less to %.*f %% more%s", verb, d, fabs(lo), d, hi, unit);
    return dst;
}

hn_ab_digits hn_ab_digits_of(const hn_ab_line *l)
{
    hn_ab_digits t = { .ci = "n/a" };
    const hn_ab_result *r = &l->r;
    double half = 0.5 * (r->ci[1] - r->ci[0]), share = half / r->ratio; /* the ratio may be far from 1 */
    char lo[32], hi[32];
    hn_digits(t.a, sizeof t.a, l->a, share * l->a);
    hn_digits(t.b, sizeof t.b, l->b, share * l->b);
    hn_digits(t.ratio, sizeof t.ratio, r->ratio, half);
    if (isfinite(r->ci[0]))
        snprintf(t.ci, sizeof t.ci, "[%s, %s]", hn_digits(lo, sizeof lo, r->ci[0], half),
                 hn_digits(hi, sizeof hi, r->ci[1], half));
    return t;
}

/* About so long: coarse, since rounds cost now more, now less. */
static const char *about(char dst[32], double s)
{
    if (s < 100) snprintf(dst, 32, "%.0f s", s);
    else if (s < 6000) snprintf(dst, 32, "%.0f min", s / 60);
    else snprintf(dst, 32, "%.0f h", s / 3600);
    return dst;
}

const char *hn_ab_say_progress(char *dst, size_t cap, const hn_ab_progress *at)
{
    char left[32], most[32];
    if (at->look < 0) snprintf(dst, cap, "trying how many runs a round needs");
    else if (!(at->left_s >= 0)) snprintf(dst, cap, "look %d of %d", at->look + 1, HN_AB_LOOKS);
    else if (at->most_s > 1.01 * at->left_s)
        snprintf(dst, cap, "look %d of %d, about %s left (%s if it stays open)", at->look + 1, HN_AB_LOOKS,
                 about(left, at->left_s), about(most, at->most_s));
    else snprintf(dst, cap, "look %d of %d, about %s left", at->look + 1, HN_AB_LOOKS, about(left, at->left_s));
    return dst;
}
