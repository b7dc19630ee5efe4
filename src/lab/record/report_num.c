/* Numbers for people, scales with round ticks, and texts in the languages of the report. Whatever
 * a record says goes through hn_rep_html, hn_rep_md or hn_rep_csv before it reaches a page. */
#include "lab/record/report_data.h"

#include <math.h>
#include <stdlib.h>

#define NARROW_SPACE "\xE2\x80\xAF" /* U+202F, does not break */
#define MINUS "\xE2\x88\x92"
#define DASH "\xE2\x80\x93"

/* ---- numbers ---------------------------------------------------------------------------- */

static int exponent(double x) { return x == 0 || !isfinite(x) ? 0 : (int)floor(log10(fabs(x))); } /* within ±324 */

static char *print(char dst[HN_REP_NUM], double x, int decimals)
{
    char t[HN_REP_NUM];
    size_t n = 0;
    if (!isfinite(x)) {
        snprintf(dst, HN_REP_NUM, DASH);
        return dst;
    }
    if (fabs(x) >= 1e12 || (x != 0 && fabs(x) < 1e-6)) {
        snprintf(dst, HN_REP_NUM, "%.2e", x);
        return dst;
    }
    decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
    snprintf(t, sizeof t, "%.*f", decimals, fabs(x));
    size_t whole = strcspn(t, ".");
    if (x < 0 && strspn(t, "0.") != strlen(t)) n += (size_t)snprintf(dst, HN_REP_NUM, MINUS);
    dst[n] = 0;
    for (size_t i = 0; t[i] && n + 5 < HN_REP_NUM; i++) {
        if (i > 0 && i < whole && whole > 4 && (whole - i) % 3 == 0)
            n += (size_t)snprintf(dst + n, HN_REP_NUM - n, NARROW_SPACE);
        dst[n++] = t[i];
        dst[n] = 0;
    }
    return dst;
}

char *hn_rep_num(char dst[HN_REP_NUM], double x, int digits)
{
    return print(dst, x, isfinite(x) ? digits - 1 - exponent(x) : 0);
}

/* Two digits of the interval's half, but three of the number at least and four at most. */
static int decimals_of(double x, double lo, double hi)
{
    int e = exponent(x), d = 2 - e;
    double w = 0.5 * (hi - lo);
    if (isfinite(w) && w > 0) d = 1 - exponent(w);
    if (d > 3 - e) d = 3 - e;
    if (d < 2 - e) d = 2 - e;
    return d;
}

char *hn_rep_med(char dst[HN_REP_NUM], double x, double lo, double hi)
{
    bool whole = isfinite(x) && x == floor(x) && fabs(x) < 1e9 && !(hi > lo);
    int d = isfinite(x) && !whole ? decimals_of(x, lo, hi) : 0;
    double unit = d < 0 ? pow(10, -d) : 1; /* digits before the point that nothing supports are zeros */
    return print(dst, d < 0 ? unit * round(x / unit) : x, d);
}

char *hn_rep_bound(char dst[HN_REP_NUM], double bound, double lo, double hi)
{
    int d = isfinite(bound) ? decimals_of(0.5 * (lo + hi), lo, hi) : 0,
        least = bound != 0 && isfinite(bound) ? 1 - exponent(bound) : 0;
    return print(dst, bound, d > least ? d : least); /* two digits of a low bound far below the median */
}

char *hn_rep_pct(char dst[HN_REP_NUM], double ratio)
{
    double p = 100 * (ratio - 1);
    char t[HN_REP_NUM];
    if (!isfinite(p)) snprintf(dst, HN_REP_NUM, DASH);
    else if (fabs(p) < 0.05)
        snprintf(dst, HN_REP_NUM,
                 "\xC2\xB1"
                 "0" NARROW_SPACE "%%");
    else
        snprintf(dst, HN_REP_NUM, "%s%s" NARROW_SPACE "%%", p < 0 ? MINUS : "+",
                 print(t, fabs(p), fabs(p) < 9.95 ? 1 : 0));
    return dst;
}

char *hn_rep_interval(char dst[HN_REP_NUM], const hn_rep_ab *a)
{
    char of[HN_REP_NUM];
    double level = a->unpaired ? a->coverage : 0.95; /* that of rounds is asked for as such */
    if (isnan(level)) snprintf(dst, HN_REP_NUM, "interval");
    else snprintf(dst, HN_REP_NUM, "%.20s\xE2\x80\xAF%% interval", hn_rep_num(of, 100 * level, 3));
    return dst;
}

/* ---- scales -------------------------------------------------------------------------------- */

static void linear_ticks(hn_rep_axis *a, int want)
{
    static const double steps[] = { 1, 2, 2.5, 5, 10 };
    double least = (a->hi - a->lo) / (want > 1 ? want : 1), p = pow(10, floor(log10(least))), step = 10 * p;
    for (size_t i = 0; i < 5; i++)
        if (steps[i] * p >= least * (1 - 1e-9)) {
            step = steps[i] * p;
            break;
        }
    int e = exponent(step * 1.0000001);
    a->decimals = e < 0 ? -e : 0;
    if (fabs(step / pow(10, e) - 2.5) < 1e-6) a->decimals = a->decimals || e == 0 ? a->decimals + 1 : 0;
    double first = ceil(a->lo / step - 1e-9);
    for (int i = 0; i < 16; i++) {
        double t = (first + i) * step;
        if (t > a->hi + 1e-9 * step) break;
        a->tick[a->n++] = fabs(t) < 1e-9 * step ? 0 : t;
    }
}

/* 1 2 5 of each decade, or the decades alone, or every second one. */
static void log_ticks(hn_rep_axis *a, int want)
{
    static const double dense[] = { 1, 2, 5 };
    int lo = (int)floor(log10(a->lo)), hi = (int)ceil(log10(a->hi));
    bool many = log10(a->hi / a->lo) * 3 > want + 1;
    int every = 1 + (hi - lo) / (want + 2);
    for (int e = lo; e <= hi; e += every)
        for (int i = 0; i < (many ? 1 : 3); i++) {
            double t = dense[i] * pow(10, e);
            if (t >= a->lo * (1 - 1e-9) && t <= a->hi * (1 + 1e-9) && a->n < 16) a->tick[a->n++] = t;
        }
    a->decimals = -1; /* each its own */
}

hn_rep_axis hn_rep_axis_make(double lo, double hi, int want, bool log)
{
    hn_rep_axis a = { .log = log && lo > 0 && hi > 0 };
    if (!isfinite(lo) || !isfinite(hi)) lo = 0, hi = 1;
    if (lo > hi) {
        double t = lo;
        lo = hi;
        hi = t;
    }
    if (a.log) {
        double air = pow(hi / lo, 0.05);
        if (hi / lo < 1.0001) air = 1.1;
        a.lo = lo / air;
        a.hi = hi * air;
        if (a.hi / a.lo < 5) linear_ticks(&a, want);
        else log_ticks(&a, want);
        return a;
    }
    double span = hi - lo, size = fmax(fabs(lo), fabs(hi));
    if (!(span > 1e-6 * size)) span = size > 0 ? 0.1 * size : 1;
    double mid = 0.5 * (lo + hi), half = 0.5 * fmax(hi - lo, span);
    a.lo = mid - 1.08 * half;
    a.hi = mid + 1.08 * half;
    if (lo >= 0 && a.lo < 0) a.lo = 0;
    linear_ticks(&a, want);
    return a;
}

double hn_rep_pos(const hn_rep_axis *a, double x)
{
    double p = a->log ? log(x / a->lo) / log(a->hi / a->lo) : (x - a->lo) / (a->hi - a->lo);
    return !(p > 0) ? 0 : p > 1 ? 100 : 100 * p;
}

char *hn_rep_tick(char dst[HN_REP_NUM], const hn_rep_axis *a, int i)
{
    double t = a->tick[i];
    return a->decimals < 0 ? hn_rep_num(dst, t, 1) : print(dst, t, a->decimals);
}

/* ---- texts ------------------------------------------------------------------------------------ */

/* Bytes of the character at s when it has no place in a page: control characters, those that turn
 * the direction of writing, and what XML forbids. 0: it may stay. */
static size_t forbidden(const unsigned char *s)
{
    if ((s[0] < 0x20 && s[0] != '\t' && s[0] != '\n') || s[0] == 0x7F) return 1;
    if (s[0] == 0xC2 && s[1] >= 0x80 && s[1] < 0xA0) return 2;
    if (s[0] == 0xE2 && s[1] == 0x80 && (s[2] == 0x8E || s[2] == 0x8F || (s[2] >= 0xAA && s[2] <= 0xAE))) return 3;
    if (s[0] == 0xE2 && s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9) return 3;
    if (s[0] == 0xEF && s[1] == 0xBF && s[2] >= 0xBE) return 3;
    return 0;
}

typedef const char *quote_fn(char c);

static void put_quoted(FILE *f, const char *s, quote_fn *quote)
{
    while (s && *s) {
        size_t n = forbidden((const unsigned char *)s);
        const char *q = n ? "\xEF\xBF\xBD" : quote(*s);
        if (q) fputs(q, f);
        else fputc(*s, f);
        s += n ? n : 1;
    }
}

static const char *quote_html(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}
void hn_rep_html(FILE *f, const char *s) { put_quoted(f, s, quote_html); }

static const char *quote_md(char c)
{
    switch (c) {
    case '\n':
    case '\t': return " ";
    case '|': return "\\|";
    case '\\': return "\\\\";
    case '`': return "\\`";
    case '*': return "\\*";
    case '_': return "\\_";
    case '[': return "\\[";
    case ']': return "\\]";
    case '~': return "\\~";
    case '#': return "\\#";
    case '!': return "\\!";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    default: return NULL;
    }
}
void hn_rep_md(FILE *f, const char *s) { put_quoted(f, s, quote_md); }

static const char *quote_csv(char c) { return c == '"' ? "\"\"" : c == '\n' || c == '\t' ? " " : NULL; }
void hn_rep_csv(FILE *f, const char *s)
{
    /* what a spreadsheet would take for a formula gets the mark of a text; blanks before it do not help it */
    const char *p = s ? s + strspn(s, " \t\r\n") : "";
    bool formula = *p && (strchr("=+-@", *p) || *s == '\t' || *s == '\r');
    if (s && (strncmp(p, "\xEF\xBC\x9D", 3) == 0 || strncmp(p, "\xEF\xBC\x8B", 3) == 0 ||
              strncmp(p, "\xEF\xBC\x8D", 3) == 0 || strncmp(p, "\xEF\xBC\xA0", 3) == 0))
        formula = true; /* the full-width ones */
    fputs(formula ? "\"'" : "\"", f);
    put_quoted(f, s, quote_csv);
    fputc('"', f);
}
