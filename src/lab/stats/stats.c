/* Statistics of one run. Owns the formulas; refuses to know what is measured. What
 * too few samples cannot support is NaN, never a guess. */
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

int hn_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hn_middle(const double *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

/* Linear interpolation between order statistics (Hyndman and Fan 1996, type 7). */
static double quantile(const double *sorted, size_t n, double q)
{
    double h = (double)(n - 1) * q;
    size_t i = (size_t)h;
    return i + 1 < n ? sorted[i] + (h - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* The count of samples below the median is Bin(n, 1/2), whatever the distribution, so
 * (x_k, x_{n+1-k}) misses it with probability 2 P(Bin <= k - 1). */
size_t hn_median_rank(size_t n, double level, double *coverage)
{
    double below = 0;
    size_t rank = 0;
    *coverage = NAN;
    for (size_t k = 1; 2 * k <= n; k++) {
        double i = (double)(k - 1), m = (double)n;
        below += exp(lgamma(m + 1) - lgamma(i + 1) - lgamma(m - i + 1) - m * 0.69314718055994531);
        if (1 - 2 * below < level) break;
        rank = k;
        *coverage = 1 - 2 * below;
    }
    return rank;
}

static void tukey(int counts[HN_OUT_CLASSES], const double *sorted, size_t n)
{
    for (int c = 0; c < HN_OUT_CLASSES; c++) counts[c] = n < 5 ? -1 : 0;
    if (n < 5) return;
    double q1 = quantile(sorted, n, 0.25), q3 = quantile(sorted, n, 0.75), r = q3 - q1;
    for (size_t i = 0; i < n; i++) {
        double x = sorted[i];
        if (x < q1 - 3 * r) counts[HN_OUT_LOW_SEVERE]++;
        else if (x < q1 - 1.5 * r) counts[HN_OUT_LOW_MILD]++;
        else if (x > q3 + 3 * r) counts[HN_OUT_HIGH_SEVERE]++;
        else if (x > q3 + 1.5 * r) counts[HN_OUT_HIGH_MILD]++;
    }
}

hone_status hn_stats_of(hn_stats *out, const double *x, size_t n, hone_error *err)
{
    *out = (hn_stats){ .n = n,
                       .median = NAN,
                       .mean = NAN,
                       .min = NAN,
                       .max = NAN,
                       .ci95 = { NAN, NAN },
                       .ci_coverage = NAN,
                       .sd = NAN,
                       .cv = NAN,
                       .mad = NAN,
                       .p90 = NAN,
                       .p95 = NAN,
                       .p99 = NAN,
                       .outliers = { -1, -1, -1, -1 } };
    if (n == 0) return HONE_OK;
    double *s = malloc(n * sizeof *s);
    if (!s) hn_json_lose(); /* also where nobody asks for the reason: nothing may be told without them */
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "statistics of %zu samples", n);
    memcpy(s, x, n * sizeof *s);
    qsort(s, n, sizeof *s, hn_ascending);
    out->median = hn_middle(s, n);
    out->min = s[0];
    out->max = s[n - 1];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += s[i];
    out->mean = sum / (double)n;
    if (n >= 2) {
        double ss = 0;
        for (size_t i = 0; i < n; i++) ss += (s[i] - out->mean) * (s[i] - out->mean);
        out->sd = sqrt(ss / (double)(n - 1));
        if (out->mean != 0) out->cv = out->sd / fabs(out->mean);
    }
    size_t k = hn_median_rank(n, 0.95, &out->ci_coverage);
    if (k) {
        out->ci95[0] = s[k - 1];
        out->ci95[1] = s[n - k];
    }
    if (n >= 100) out->p90 = quantile(s, n, 0.90);
    if (n >= 200) out->p95 = quantile(s, n, 0.95);
    if (n >= 1000) out->p99 = quantile(s, n, 0.99);
    tukey(out->outliers, s, n);
    if (n >= 2) { /* last, as it reuses s */
        for (size_t i = 0; i < n; i++) s[i] = fabs(s[i] - out->median);
        qsort(s, n, sizeof *s, hn_ascending);
        out->mad = hn_middle(s, n);
    }
    free(s);
    return HONE_OK;
}

double hn_stats_half_width(const hn_stats *s) { return 0.5 * (s->ci95[1] - s->ci95[0]); }

static int exponent(double x) { return x != 0 && isfinite(x) ? (int)floor(log10(fabs(x))) : 0; }

int hn_decimals(double x, double half)
{
    int most = 3 - exponent(x), d = half > 0 && isfinite(half) ? 1 - exponent(half) : 2 - exponent(x);
    if (half == 0) return most > 0 ? most : 0;
    return d < most ? d : most;
}

const char *hn_digits(char *dst, size_t cap, double x, double half)
{
    int d = hn_decimals(x, half);
    double unit = d < 0 ? pow(10, -d) : 1;
    if (!isfinite(x)) snprintf(dst, cap, "n/a");
    else snprintf(dst, cap, "%.*f", d < 0 ? 0 : d, d < 0 ? unit * round(x / unit) : x);
    return dst;
}

const char *hn_digits_error(char *dst, size_t cap, double x, double error)
{
    char value[40], half[40];
    bool known = isfinite(error) && error > 0;
    hn_digits(value, sizeof value, x, known ? error : 0);
    if (known) snprintf(dst, cap, "%s ± %s", value, hn_digits(half, sizeof half, error, error));
    else snprintf(dst, cap, error == 0 ? "%s ± 0" : "%s", value);
    return dst;
}

json_t *hn_lab_num(double x)
{
    if (!isfinite(x)) return json_null();
    char text[40]; /* through decimal, so that the file shows no digits nobody measured */
    snprintf(text, sizeof text, "%.6g", x);
    return json_real(strtod(text, NULL));
}

json_t *hn_lab_text(const char *s) { return s[0] ? hn_lab_str(s) : json_null(); }

json_t *hn_lab_str(const char *s)
{
    if (!s) return json_null();
    json_t *j = json_string(s);
    if (j) return j;
    size_t cap = strlen(s) * 4 + 8;
    char *t = malloc(cap);
    if (!t) {
        hn_json_lose();
        return json_null();
    }
    j = json_string(hn_escape(t, cap, s, strlen(s)));
    free(t);
    return j ? j : json_null();
}

json_t *hn_stats_json(const hn_stats *s)
{
    json_t *o = json_object(), *ci = json_null(), *out = json_null();
    if (isfinite(s->ci95[0])) {
        ci = json_array();
        json_array_append_new(ci, hn_lab_num(s->ci95[0]));
        json_array_append_new(ci, hn_lab_num(s->ci95[1]));
    }
    if (s->outliers[0] >= 0) {
        out = json_array();
        for (int c = 0; c < HN_OUT_CLASSES; c++) json_array_append_new(out, json_integer(s->outliers[c]));
    }
    json_object_set_new(o, "n", json_integer((json_int_t)s->n));
    json_object_set_new(o, "median", hn_lab_num(s->median));
    json_object_set_new(o, "ci95", ci);
    json_object_set_new(o, "ci_coverage", hn_lab_num(s->ci_coverage));
    json_object_set_new(o, "mean", hn_lab_num(s->mean));
    json_object_set_new(o, "sd", hn_lab_num(s->sd));
    json_object_set_new(o, "cv", hn_lab_num(s->cv));
    json_object_set_new(o, "mad", hn_lab_num(s->mad));
    json_object_set_new(o, "min", hn_lab_num(s->min));
    json_object_set_new(o, "max", hn_lab_num(s->max));
    json_object_set_new(o, "p90", hn_lab_num(s->p90));
    json_object_set_new(o, "p95", hn_lab_num(s->p95));
    json_object_set_new(o, "p99", hn_lab_num(s->p99));
    json_object_set_new(o, "outliers", out);
    return o;
}
