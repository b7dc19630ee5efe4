/* stats: what a few numbers say: medians and their intervals, spread, outliers. NaN stands for
 * "not to be had from so few samples". Knows numbers only; and how they, and texts, are
 * written as JSON. */
#ifndef HN_STATS_H
#define HN_STATS_H

#include "base/json_text.h"
#include "base/base.h"
#include <math.h>

enum { HN_OUT_LOW_SEVERE, HN_OUT_LOW_MILD, HN_OUT_HIGH_MILD, HN_OUT_HIGH_SEVERE, HN_OUT_CLASSES };

typedef struct hn_stats {
    size_t n;
    double median, mean, min, max; /* n >= 1 */
    double ci95[2], ci_coverage;   /* order statistics around the median, n >= 6 */
    double sd, cv;                 /* n >= 2; cv = sd / |mean| */
    double mad;                    /* median |x - median|, not scaled; n >= 2 */
    double p90, p95, p99;          /* percentile q: n >= 10 / (1 - q) */
    int outliers[HN_OUT_CLASSES];  /* Tukey's fences at 1.5 and 3 quartile ranges; -1: n < 5 */
} hn_stats;

int hn_ascending(const void *a, const void *b);   /* of doubles, for qsort */
double hn_middle(const double *sorted, size_t n); /* the median of n ≥ 1 in order */

/* x [n] in any order, all finite; unchanged. HONE_E_NOMEM. */
hone_status hn_stats_of(hn_stats *out, const double *x, size_t n, hone_error *err);
double hn_stats_half_width(const hn_stats *s); /* half of the interval; NaN without one */
/* The 1-based rank k whose interval (x_k, x_{n+1-k}) covers the median with at least
 * `level`; 0: n is too small. *coverage: what it really covers. */
size_t hn_median_rank(size_t n, double level, double *coverage);
json_t *hn_stats_json(const hn_stats *s);

/* How many decimals of x are worth showing when it is known to ± half: two digits of half, four of x at most.
 * Negative: tens, hundreds. Half 0 (all samples are equal): four digits and the whole of a whole number. NaN: three
 * digits. */
int hn_decimals(double x, double half);
/* x with so many. Returns dst. */
const char *hn_digits(char *dst, size_t cap, double x, double half);

/* "6.422 ± 0.038": both with the digits that the error supports; an error of 0 or none: "6.422 ± 0" or four digits. */
const char *hn_digits_error(char *dst, size_t cap, double x, double error);

json_t *hn_lab_num(double x);       /* rounded to six significant decimals; null for NaN */
json_t *hn_lab_text(const char *s); /* the same; "" gives null */
json_t *hn_lab_str(const char *s);  /* ill-formed UTF-8 is escaped; NULL gives null */

#endif
