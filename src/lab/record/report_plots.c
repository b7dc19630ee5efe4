/* The drawings of the report, each from plain numbers. A drawing says in words what it shows (title and
 * desc), marks carry their numbers as tooltips, and nothing is told by colour alone: verdicts
 * have words, runs have dashes, kinds have places. The numbers stand in tables as well. */
#include "lab/record/report_data.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_POINTS = 120, MAX_TRACE = 600, STRIP_RUNS = 4 };

static void tooltip(FILE *f, const char *text)
{
    fputs("<title>", f);
    hn_rep_html(f, text);
    fputs("</title>", f);
}

static double least(const double *x, size_t n)
{
    double m = INFINITY;
    for (size_t i = 0; i < n; i++) m = fmin(m, x[i]);
    return m;
}
static double most(const double *x, size_t n)
{
    double m = -INFINITY;
    for (size_t i = 0; i < n; i++) m = fmax(m, x[i]);
    return m;
}
/* Opens the stretched drawing for lines: x from 0 to 100, y in pixels. */
static void lines_open(FILE *f, int height)
{
    fprintf(f,
            "<svg x=\"0\" y=\"0\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 100 %d\" preserveAspectRatio=\"none\" "
            "overflow=\"visible\">",
            height, height);
}
static void lines_close(FILE *f) { fputs("</svg>\n", f); }

/* "2162 tok/s (1321 – 2796), 6 samples" */
static void say_number(char *dst, size_t cap, double median, double lo, double hi, size_t n, const char *unit)
{
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    if (isfinite(lo) && isfinite(hi))
        snprintf(dst, cap, "%s %s (%s to %s), %zu samples", hn_rep_med(a, median, lo, hi), unit,
                 hn_rep_bound(b, lo, lo, hi), hn_rep_bound(c, hi, lo, hi), n);
    else
        snprintf(dst, cap, "%s %s, no interval: %zu sample%s", hn_rep_med(a, median, lo, hi), unit, n,
                 n == 1 ? "" : "s");
}

/* ---- small ones ---------------------------------------------------------------------------- */

void hn_rep_plot_spark(FILE *f, const hn_series *s)
{
    size_t first = s->n > 60 ? s->n - 60 : 0, n = s->n - first;
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = first; i < s->n; i++) {
        lo = fmin(lo, s->points[i].median);
        hi = fmax(hi, s->points[i].median);
    }
    hn_rep_axis a = hn_rep_axis_make(lo, hi, 2, false);
    hn_rep_svg_open(f, "spark", 32, "Medians of the last runs, oldest left", NULL);
    lines_open(f, 32);
    fputs("<polyline class=\"ln\" points=\"", f);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%.2f,%.1f", i ? " " : "", n > 1 ? 100.0 * (double)i / (double)(n - 1) : 50,
                hn_rep_y(&a, s->points[first + i].median, 4, 28));
    fputs("\"/>", f);
    lines_close(f);
    fprintf(f, "<circle class=\"dot\" cx=\"100%%\" cy=\"%.1f\" r=\"3\"/>",
            hn_rep_y(&a, s->points[s->n - 1].median, 4, 28));
    hn_rep_svg_close(f);
}

/* Every sample, the interval and the median: the dots of strips and cards. */
static void strip_marks(FILE *f, const double *x, size_t n, double median, double lo, double hi, const hn_rep_axis *a,
                        double y, bool before, const char *unit)
{
    char t[160], num[HN_REP_NUM];
    if (isfinite(lo) && isfinite(hi))
        fprintf(f, "<rect class=\"ci%s\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"%.1f\" height=\"16\" rx=\"3\"/>",
                before ? " before" : "", hn_rep_pos(a, lo), fmax(0.2, hn_rep_pos(a, hi) - hn_rep_pos(a, lo)), y - 8);
    for (size_t i = 0; i < n; i++) {
        double shift = ((int)(i * 7 % 5) - 2) * 1.8; /* apart, and always alike */
        snprintf(t, sizeof t, "sample %zu: %s %s", i + 1, hn_rep_num(num, x[i], 4), unit);
        fprintf(f, "<circle class=\"smp%s\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"2.6\">", before ? " before" : "",
                hn_rep_pos(a, x[i]), y + shift);
        tooltip(f, t);
        fputs("</circle>", f);
    }
    if (isfinite(median)) {
        say_number(t, sizeof t, median, lo, hi, n, unit);
        double p = hn_rep_pos(a, median);
        fprintf(f, "<line class=\"med%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\">",
                before ? " before" : "", p, p, y - 9, y + 9);
        tooltip(f, t);
        fputs("</line>\n", f);
    }
}

void hn_rep_plot_strip(FILE *f, const double *x, size_t n, double mid, double lo, double hi, const hn_rep_axis *a,
                       const char *title)
{
    enum { H = 30 };
    hn_rep_svg_open(f, "strip", H, title, NULL);
    double c = hn_rep_pos(a, mid);
    fprintf(f,
            "<line class=\"g\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/><line class=\"g\" x1=\"%.2f%%\" "
            "x2=\"%.2f%%\" y1=\"2\" y2=\"%d\"/>",
            H / 2, H / 2, c, c, H - 2);
    strip_marks(f, x, n, mid, lo, hi, a, H / 2.0, false, "of the median");
    hn_rep_svg_close(f);
}

/* ---- ratios ------------------------------------------------------------------------------------ */

const char *hn_rep_verdict_class(int v)
{
    static const char *const names[HN_REP_VERDICTS] = { "bad", "unsure", "good", "same", "same" };
    return names[v];
}

static bool inside(const hn_rep_axis *a, double x) { return x >= a->lo && x <= a->hi; }

double hn_rep_margin_low(const hn_rep_ab *ab)
{
    return ab->margin > ab->wanted || ab->margin >= 1 ? 1 / (1 + ab->margin) : 1 - ab->margin;
}

void hn_rep_plot_ratio(FILE *f, const hn_rep_ab *ab, const hn_rep_axis *a)
{
    enum { H = 46, MID = 30 };
    char title[512], lo[HN_REP_NUM], hi[HN_REP_NUM], mid[HN_REP_NUM], of[HN_REP_NUM];
    size_t out = 0;
    for (size_t i = 0; i < ab->n; i++) out += !inside(a, ab->x[i]);
    snprintf(title, sizeof title, "%s: %s, %s %s to %s, %zu %s", ab->word, hn_rep_pct(mid, ab->ratio),
             hn_rep_interval(of, ab), hn_rep_pct(lo, ab->lo), hn_rep_pct(hi, ab->hi), ab->n_counted,
             ab->unpaired ? "samples" : "rounds");
    if (out) snprintf(title + strlen(title), sizeof title - strlen(title), "; %zu of them outside this drawing", out);
    hn_rep_svg_open(f, "ratio", H, title, NULL);
    for (int i = 0; i < a->n; i++) {
        double x = hn_rep_pos(a, a->tick[i]);
        fprintf(f, "<line class=\"g\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%d\"/>", x, x, H);
    }
    if (ab->margin > 0) {
        double l = hn_rep_pos(a, hn_rep_margin_low(ab)), h = hn_rep_pos(a, 1 + ab->margin);
        fprintf(f, "<rect class=\"band\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"0\" height=\"%d\"/>", l, h - l, H);
    }
    if (ab->wanted > 0 && ab->wanted < ab->margin && ab->wanted < 1) {
        double l = hn_rep_pos(a, 1 - ab->wanted), h = hn_rep_pos(a, 1 + ab->wanted);
        fprintf(f, "<rect class=\"band\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"0\" height=\"%d\"/>", l, h - l, H);
    }
    double one = hn_rep_pos(a, 1);
    fprintf(f, "<line class=\"one\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%d\"/>\n", one, one, H);
    for (size_t i = 0; i < ab->n; i++)
        if (inside(a, ab->x[i]))
            fprintf(f, "<circle class=\"round\" cx=\"%.2f%%\" cy=\"%d\" r=\"2\"/>", hn_rep_pos(a, ab->x[i]),
                    9 + (int)(i * 3 % 5));
    if (isfinite(ab->lo) && isfinite(ab->hi)) {
        double l = hn_rep_pos(a, ab->lo), h = hn_rep_pos(a, ab->hi);
        fprintf(f, "\n<line class=\"whisker %s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>",
                hn_rep_verdict_class(ab->verdict), l, h, MID, MID);
        fprintf(f, "<line class=\"cap %s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>",
                hn_rep_verdict_class(ab->verdict), l, l, MID - 5, MID + 5);
        fprintf(f, "<line class=\"cap %s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>",
                hn_rep_verdict_class(ab->verdict), h, h, MID - 5, MID + 5);
    }
    if (isfinite(ab->ratio))
        fprintf(f, "<circle class=\"point %s\" cx=\"%.2f%%\" cy=\"%d\" r=\"5\"/>\n", hn_rep_verdict_class(ab->verdict),
                hn_rep_pos(a, ab->ratio), MID);
    hn_rep_svg_close(f);
}

void hn_rep_plot_ratio_axis(FILE *f, const hn_rep_axis *a)
{
    char t[HN_REP_NUM];
    hn_rep_svg_open(f, "ratio", 36, "Scale of the ratios: speed of B against speed of A", NULL);
    for (int i = 0; i < a->n; i++) {
        double x = hn_rep_pos(a, a->tick[i]);
        fprintf(f, "<line class=\"g\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"4\"/>", x, x);
        fprintf(f, "<text x=\"%.2f%%\" y=\"16\" text-anchor=\"middle\">%s</text>\n", x,
                fabs(a->tick[i] - 1) < 1e-9 ? "equal" : hn_rep_pct(t, a->tick[i]));
    }
    fputs("<text class=\"u\" x=\"0\" y=\"32\">\xE2\x86\x90 B slower</text><text class=\"u\" x=\"100%\" y=\"32\" "
          "text-anchor=\"end\">B faster \xE2\x86\x92</text>",
          f);
    hn_rep_svg_close(f);
}

/* ---- samples of a series: strips of the last runs, distribution of the newest two ------------------- */

static void ecdf(FILE *f, double *x, size_t n, const hn_rep_axis *a, int top, int bottom, bool before)
{
    qsort(x, n, sizeof *x, hn_ascending);
    fprintf(f, "<polyline class=\"ecdf%s\" points=\"0,%d", before ? " before" : "", bottom);
    for (size_t i = 0; i < n; i++) {
        double p = hn_rep_pos(a, x[i]), y0 = bottom - (double)(bottom - top) * (double)i / (double)n,
               y1 = bottom - (double)(bottom - top) * (double)(i + 1) / (double)n;
        fprintf(f, " %.2f,%.1f %.2f,%.1f", p, y0, p, y1);
    }
    fprintf(f, " 100,%d\"/>", top);
}

/* Runs within a minute are told apart by what they were called. */
static void say_run(FILE *f, json_t *record)
{
    for (const char *const *key = (const char *const[]){ "title", "change", NULL }; *key; key++) {
        const char *s = hn_record_text(record, *key);
        if (!*s || strcmp(s, "untitled") == 0) continue;
        enum { ROOM = 60 };
        char part[ROOM + 1];
        size_t n = strlen(s) <= ROOM ? strlen(s) : ROOM;
        while (n > 0 && n < strlen(s) && ((unsigned char)s[n] & 0xC0) == 0x80) n--; /* no half of a character */
        snprintf(part, sizeof part, "%.*s", (int)n, s);
        fputs(": ", f);
        hn_rep_html(f, part);
        if (n < strlen(s)) fputs("\xE2\x80\xA6", f);
    }
}

void hn_rep_plot_samples(FILE *f, const hn_rep_line *l)
{
    enum { ROW = 40, GAP = 14, CURVE = 92 };
    const hn_series *s = l->s;
    size_t runs = s->n < STRIP_RUNS ? s->n : STRIP_RUNS, n[STRIP_RUNS];
    double *x[STRIP_RUNS], lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < runs; i++) {
        if (hn_record_samples(&x[i], &n[i], s->points[s->n - 1 - i].record, s->metric, NULL) != HONE_OK) {
            x[i] = NULL;
            n[i] = 0;
        }
        lo = fmin(lo, least(x[i], n[i]));
        hi = fmax(hi, most(x[i], n[i]));
    }
    hn_rep_axis a = hn_rep_axis_make(lo, hi, 4, false);
    int top = (int)runs * ROW + GAP, bottom = top + CURVE;
    char title[400], desc[400];
    snprintf(title, sizeof title, "Samples of %s", l->label);
    say_number(desc, sizeof desc, s->points[s->n - 1].median, s->points[s->n - 1].ci95[0], s->points[s->n - 1].ci95[1],
               n[0], hn_rep_unit(s->unit));
    hn_rep_svg_open(f, "plot", bottom + 36, title, desc);
    hn_rep_x_axis(f, &a, 0, bottom, hn_rep_unit(s->unit));
    for (size_t i = 0; i < runs; i++) {
        const hn_point *p = &s->points[s->n - 1 - i];
        char when[48];
        int y = (int)i * ROW;
        hn_rep_when(when, sizeof when, hn_record_text(p->record, "ts"), false);
        fprintf(f, "<text class=\"%s\" x=\"0\" y=\"%d\">%s%s", i ? "row" : "row now", y + 11,
                i == 0   ? "newest, "
                : i == 1 ? "before, "
                         : "",
                when);
        say_run(f, p->record);
        fputs("</text>\n", f);
        strip_marks(f, x[i], n[i], p->median, p->ci95[0], p->ci95[1], &a, y + 26, i > 0, hn_rep_unit(s->unit));
    }
    for (int i = 0; i <= 2; i++) {
        double y = bottom - 0.5 * i * CURVE;
        fprintf(f,
                "<line class=\"g\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"-8\" y=\"%.1f\" "
                "text-anchor=\"end\">%d %%</text>\n",
                y, y, y + 4, 50 * i);
    }
    lines_open(f, bottom);
    if (runs > 1 && n[1]) ecdf(f, x[1], n[1], &a, top, bottom, true);
    if (n[0]) ecdf(f, x[0], n[0], &a, top, bottom, false);
    lines_close(f);
    hn_rep_svg_close(f);
    for (size_t i = 0; i < runs; i++) free(x[i]);
}

/* ---- history ------------------------------------------------------------------------------------------ */

typedef struct mark {
    const hn_point *p;
    json_t *record;
} mark; /* p NULL: an invalid run */

/* The runs of a series with the invalid ones among them, in time order. *m malloc'ed. */
static size_t marks_of(mark **m, const hn_series *s)
{
    size_t n = 0, bad = 0;
    *m = malloc((s->n + s->n_invalid + 1) * sizeof **m);
    if (!*m) return 0;
    for (; bad < s->n_invalid; bad++) (*m)[bad] = (mark){ NULL, s->invalid[bad] };
    /* merge behind, then forward: invalid ones are in the order of the files already */
    mark *all = malloc((s->n + bad + 1) * sizeof *all);
    size_t a = 0, b = 0;
    while (all && (a < s->n || b < bad)) {
        bool take = b == bad || (a < s->n && strcmp(hn_record_text(s->points[a].record, "ts"),
                                                    hn_record_text((*m)[b].record, "ts")) <= 0);
        all[n++] = take ? (mark){ &s->points[a], s->points[a].record } : (*m)[b];
        if (take) a++;
        else b++;
    }
    free(*m);
    *m = all;
    return n;
}

static double mark_x(size_t i, size_t n) { return 100 * ((double)i + 0.5) / (double)n; }

static void time_axis(FILE *f, const mark *m, size_t n, int top, int bottom)
{
    size_t want = n < 4 ? n : 4;
    const char *ts0 = hn_record_text(m[0].record, "ts"), *ts1 = hn_record_text(m[n - 1].record, "ts");
    bool one_day = strncmp(ts0, ts1, 10) == 0, one_minute = n > 1 && strncmp(ts0, ts1, 16) == 0;
    for (size_t k = 0; k < want; k++) {
        size_t i = want > 1 ? k * (n - 1) / (want - 1) : 0;
        char when[48], *t = when;
        hn_rep_when(when, sizeof when, hn_record_text(m[i].record, "ts"), false);
        char *clock = strrchr(when, ' ');
        if (clock && one_day) t = clock + 1;
        else if (clock) *clock = 0;
        if (one_minute) snprintf(t = when, sizeof when, "run %zu", i + 1);
        fprintf(f, "<line class=\"g\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>", mark_x(i, n), mark_x(i, n),
                bottom, bottom + 4);
        fprintf(f, "<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">", mark_x(i, n), bottom + 17);
        hn_rep_html(f, t);
        fputs("</text>\n", f);
    }
}

/* The levels between steps, as broad lines; where they change, by how much. */
static void levels(FILE *f, const hn_rep_line *l, const size_t *place, const hn_rep_axis *a, size_t n, int top,
                   int bottom)
{
    const hn_series *s = l->s;
    for (size_t k = 0; k <= l->steps.n; k++) {
        size_t from = k ? l->steps.step[k - 1].at : 0, to = k < l->steps.n ? l->steps.step[k].at : s->n;
        double level = k ? l->steps.step[k - 1].after : l->steps.n ? l->steps.step[0].before : NAN;
        if (!isfinite(level) || place[to - 1] == SIZE_MAX) continue;
        double x0 = place[from] == SIZE_MAX ? 0 : 100.0 * (double)place[from] / (double)n,
               x1 = 100.0 * (double)(place[to - 1] + 1) / (double)n, y = hn_rep_y(a, level, top, bottom);
        fprintf(f, "<line class=\"level\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\"/>", x0, x1, y, y);
        if (k == 0 || place[from] == SIZE_MAX) continue;
        const hn_step *st = &l->steps.step[k - 1];
        char pct[HN_REP_NUM];
        bool better = (st->after > st->before) == s->higher;
        fprintf(f, "<line class=\"step\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>", x0, x0, top - 6, bottom);
        fprintf(f, "<text class=\"%s\" x=\"%.2f%%\" y=\"%d\" dx=\"%d\" text-anchor=\"%s\">%s %s</text>\n",
                better ? "good" : "bad", x0, k % 2 ? 24 : 11, x0 > 60 ? -5 : 5, x0 > 60 ? "end" : "start",
                hn_rep_pct(pct, st->after / st->before), better ? "better" : "worse");
    }
}

void hn_rep_plot_history(FILE *f, const hn_report *r, const hn_rep_line *l)
{
    const int top = l->steps.n ? 34 : 12, bottom = top + 146;
    const hn_series *s = l->s;
    mark *m;
    size_t all = marks_of(&m, s), first = all > MAX_POINTS ? all - MAX_POINTS : 0, n = all - first, seen = 0;
    size_t *place = malloc((s->n + 1) * sizeof *place);
    double lo = INFINITY, hi = -INFINITY;
    if (!m || !place || n == 0) {
        free(m);
        free(place);
        return;
    }
    for (size_t i = 0; i < all; i++) {
        if (!m[i].p) continue;
        place[seen++] = i < first ? SIZE_MAX : i - first;
        if (i < first) continue;
        lo = fmin(lo, fmin(m[i].p->median, m[i].p->ci95[0])); /* fmin and fmax pass over NaN */
        hi = fmax(hi, fmax(m[i].p->median, m[i].p->ci95[1]));
    }
    hn_rep_axis a = hn_rep_axis_make(lo, hi, 4, false);
    char title[400], desc[300];
    snprintf(title, sizeof title, "History of %s", l->label);
    snprintf(desc, sizeof desc, "Medians with 95 %% intervals of %zu runs, oldest left%s; %zu step%s found", n,
             first ? " (older ones are left out)" : "", l->steps.n, l->steps.n == 1 ? "" : "s");
    hn_rep_svg_open(f, "plot", bottom + 26, title, desc);
    hn_rep_y_axis(f, &a, top, bottom);
    time_axis(f, m + first, n, top, bottom);
    levels(f, l, place, &a, n, top, bottom);
    lines_open(f, bottom);
    fputs("<polyline class=\"ln\" points=\"", f);
    for (size_t i = 0; i < n; i++)
        if (m[first + i].p) fprintf(f, " %.2f,%.1f", mark_x(i, n), hn_rep_y(&a, m[first + i].p->median, top, bottom));
    fputs("\"/>", f);
    lines_close(f);
    for (size_t i = 0; i < n; i++) {
        const hn_point *p = m[first + i].p;
        json_t *rec = m[first + i].record;
        char when[48], num[200], t[900];
        hn_rep_when(when, sizeof when, hn_record_text(rec, "ts"), true);
        double x = mark_x(i, n);
        if (!p) {
            snprintf(t, sizeof t, "%s, %.200s: invalid: %.300s", when, hn_record_text(rec, "title"),
                     hn_record_text(rec, "invalid_reason"));
            fprintf(f, "<text class=\"bad x\" x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">\xE2\x9C\x95", x,
                    bottom - 4);
            tooltip(f, t);
            fputs("</text>\n", f);
            continue;
        }
        say_number(num, sizeof num, p->median, p->ci95[0], p->ci95[1], p->n, hn_rep_unit(s->unit));
        snprintf(t, sizeof t, "%s, %.200s, %.200s: %s", when, hn_record_text(rec, "title"),
                 hn_record_text(rec, "change"), num);
        if (isfinite(p->ci95[0]))
            fprintf(f, "<line class=\"bar\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                    hn_rep_y(&a, p->ci95[0], top, bottom), hn_rep_y(&a, p->ci95[1], top, bottom));
        fprintf(f, "<circle class=\"dot\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"%s\">", x, hn_rep_y(&a, p->median, top, bottom),
                n > 40 ? "2.4" : "3.4");
        tooltip(f, t);
        fputs("</circle>\n", f);
    }
    hn_rep_svg_close(f);
    free(m);
    free(place);
}

/* ---- gaps between tokens ----------------------------------------------------------------------------------- */

static double quantile(const double *sorted, size_t n, double q)
{
    return sorted[(size_t)fmin((double)n - 1, floor(q * (double)n))];
}

static double *sorted_copy(const double *x, size_t n)
{
    double *s = malloc((n + 1) * sizeof *s);
    if (!s) hn_json_lose();
    if (!s) return NULL;
    memcpy(s, x, n * sizeof *s);
    qsort(s, n, sizeof *s, hn_ascending);
    return s;
}

/* Tens of times the median: on a plain scale nothing but the outliers would be seen. */
static bool wide(const double *s, size_t n) { return s[0] > 0 && s[n - 1] > 20 * quantile(s, n, 0.5); }

void hn_rep_plot_itl(FILE *f, const double *x, size_t n)
{
    enum { TOP = 10, BOTTOM = 170 };
    double *s = sorted_copy(x, n);
    if (!s) return;
    hn_rep_axis ya = hn_rep_axis_make(wide(s, n) ? s[0] : 0, s[n - 1], 4, wide(s, n)),
                xa = { .lo = 0, .hi = (double)(n > 1 ? n - 1 : 1) };
    hn_rep_axis ticks = hn_rep_axis_make(0, xa.hi, 4, false);
    char desc[200], t[HN_REP_NUM];
    snprintf(desc, sizeof desc, "%zu gaps, median %.4g ms, longest %.4g ms", n, quantile(s, n, 0.5), s[n - 1]);
    hn_rep_svg_open(f, "plot", BOTTOM + 36, "Gaps between tokens, in the order they came", desc);
    hn_rep_y_axis(f, &ya, TOP, BOTTOM);
    for (int i = 0; i < ticks.n; i++)
        if (ticks.tick[i] <= xa.hi)
            fprintf(f, "<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">%s</text>", hn_rep_pos(&xa, ticks.tick[i]),
                    BOTTOM + 17, hn_rep_tick(t, &ticks, i));
    fprintf(f, "<text class=\"u\" x=\"100%%\" y=\"%d\" text-anchor=\"end\">token</text>", BOTTOM + 32);
    lines_open(f, BOTTOM);
    fputs("<polyline class=\"trace\" points=\"", f);
    size_t group = (n + MAX_TRACE - 1) / MAX_TRACE; /* the longest of each group: what is rare is what is looked for */
    for (size_t i = 0; i < n; i += group) {
        size_t k = i;
        for (size_t j = i; j < n && j < i + group; j++) k = x[j] > x[k] ? j : k;
        fprintf(f, " %.2f,%.1f", hn_rep_pos(&xa, (double)k), hn_rep_y(&ya, x[k], TOP, BOTTOM));
    }
    fputs("\"/>", f);
    lines_close(f);
    double y = hn_rep_y(&ya, quantile(s, n, 0.5), TOP, BOTTOM);
    fprintf(f, "<line class=\"one\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>\n", y, y);
    hn_rep_svg_close(f);
    free(s);
}

void hn_rep_plot_hist(FILE *f, const double *x, size_t n)
{
    enum { TOP = 22, BOTTOM = 170, BINS = 32 };
    size_t count[BINS] = { 0 }, most_of = 1;
    double *s = sorted_copy(x, n);
    if (!s) return;
    hn_rep_axis a = hn_rep_axis_make(s[0], s[n - 1], 5, s[0] > 0 && s[n - 1] > 3 * quantile(s, n, 0.5));
    for (size_t i = 0; i < n; i++) {
        int b = (int)(hn_rep_pos(&a, x[i]) * BINS / 100);
        b = b < BINS ? b : BINS - 1;
        if (++count[b] > most_of) most_of = count[b];
    }
    hn_rep_svg_open(f, "plot", BOTTOM + 36, "How often gaps of which length occurred", NULL);
    hn_rep_x_axis(f, &a, TOP, BOTTOM, "ms");
    for (int b = 0; b < BINS; b++) {
        double h = (double)(BOTTOM - TOP) * (double)count[b] / (double)most_of;
        if (count[b])
            fprintf(f,
                    "<rect class=\"bin\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"%.1f\" height=\"%.1f\"><title>%zu "
                    "gaps</title></rect>",
                    100.0 * b / BINS, 96.0 / BINS, BOTTOM - fmax(h, 1), fmax(h, 1), count[b]);
    }
    static const struct {
        double q;
        const char *name;
    } shown[] = { { 0.5, "p50" }, { 0.95, "p95" }, { 0.99, "p99" } };
    double last = -20;
    for (int i = 0; i < 3; i++) {
        if ((double)n < 10 / (1 - shown[i].q) - 1e-6) continue;
        double p = hn_rep_pos(&a, quantile(s, n, shown[i].q));
        fprintf(f, "<line class=\"one\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>", p, p, TOP - 6, BOTTOM);
        if (p - last > 12)
            fprintf(f, "<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">%s</text>", p, TOP - 10, shown[i].name);
        if (p - last > 12) last = p;
    }
    fprintf(
        f,
        "<text x=\"-8\" y=\"%d\" text-anchor=\"end\">%zu</text><text x=\"-8\" y=\"%d\" text-anchor=\"end\">0</text>\n",
        TOP + 4, most_of, BOTTOM + 4);
    hn_rep_svg_close(f);
    free(s);
}

/* ---- stacked bars ----------------------------------------------------------------------------------------- */

void hn_rep_plot_bar(FILE *f, const hn_rep_part *p, size_t n, double full, double mark_at, const char *unit,
                     const char *title)
{
    double x = 0;
    char t[200], num[HN_REP_NUM];
    hn_rep_svg_open(f, "stack", 26, title, NULL);
    for (size_t i = 0; i < n; i++) {
        double w = full > 0 && p[i].value > 0 ? 100 * p[i].value / full : 0;
        if (!(w > 0)) continue;
        snprintf(t, sizeof t, "%.100s: %s %.20s", p[i].name, hn_rep_num(num, p[i].value, 3), unit);
        fprintf(f, "<rect class=\"k%d\" x=\"%.3f%%\" width=\"%.3f%%\" y=\"4\" height=\"18\">", p[i].kind % 7, x, w);
        tooltip(f, t);
        fputs("</rect>", f);
        x += w;
        if (i + 1 < n) fprintf(f, "<line class=\"cut\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"4\" y2=\"22\"/>", x, x);
    }
    if (isfinite(mark_at) && full > 0)
        fprintf(f, "<line class=\"mark\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"0\" y2=\"26\"/>",
                fmin(100, 100 * mark_at / full), fmin(100, 100 * mark_at / full));
    hn_rep_svg_close(f);
}

/* ---- roofline: Williams, Waterman, Patterson 2009 ----------------------------------------------------------- */

/* Places of the numbers beside their spots, so that none lies on a spot or on another number where the drawing
 * is as narrow as on a telephone; at[k] {dx, dy}. */
static void place_numbers(double (*at)[2], const hn_rep_spot *s, size_t n, const hn_rep_axis *xa, const hn_rep_axis *ya,
                          int top, int bottom)
{
    enum { WIDTH = 290 };
    static const double beside[][2] = { { 0, -9 },   { 0, 18 },  { 13, 4 },   { -13, 4 },   { 13, -8 },
                                        { -13, -8 }, { 13, 15 }, { -13, 15 }, { 0, -20 },   { 0, 29 },
                                        { 24, 4 },   { -24, 4 }, { 22, -16 }, { -22, -16 }, { 22, 24 },
                                        { -22, 24 }, { 0, -31 }, { 0, 40 },   { 35, 4 },    { -35, 4 } };
    for (size_t k = 0; k < n; k++) {
        double x = 0.01 * WIDTH * hn_rep_pos(xa, s[k].intensity), y = hn_rep_y(ya, s[k].gops, top, bottom), best = -1;
        for (size_t c = 0; c < sizeof beside / sizeof *beside; c++) {
            double tx = x + beside[c][0], ty = y + beside[c][1], room = 1e9;
            for (size_t i = 0; i < n; i++) {
                double sx = 0.01 * WIDTH * hn_rep_pos(xa, s[i].intensity), sy = hn_rep_y(ya, s[i].gops, top, bottom);
                if (i != k) room = fmin(room, fmax(fabs(tx - sx) - 6, fabs(ty - 4 - sy) - 5));
                if (i < k) room = fmin(room, fmax(fabs(tx - sx - at[i][0]) - 12, fabs(ty - sy - at[i][1]) - 8));
            }
            room = fmin(room, 6) - 0.02 * hypot(beside[c][0], beside[c][1]); /* near is better, once there is room */
            if (c && room <= best) continue;
            best = room;
            at[k][0] = beside[c][0];
            at[k][1] = beside[c][1];
        }
    }
}

void hn_rep_plot_roofline(FILE *f, const hn_rep_roof *roof, size_t n_roof, const hn_rep_spot *s, size_t n)
{
    enum { TOP = 16, BOTTOM = 330 };
    double read = 0, mul = 0, xlo = INFINITY, xhi = 0, ylo = INFINITY, yhi = 0;
    for (size_t i = 0; i < n_roof; i++) {
        if (roof[i].bytes) read = fmax(read, roof[i].value);
        else mul = fmax(mul, roof[i].value);
    }
    for (size_t i = 0; i < n; i++) {
        xlo = fmin(xlo, s[i].intensity);
        xhi = fmax(xhi, s[i].intensity);
        ylo = fmin(ylo, s[i].gops);
        yhi = fmax(yhi, s[i].gops);
    }
    if (read > 0 && mul > 0) { /* the ridge in sight */
        xlo = fmin(xlo, mul / read / 8);
        xhi = fmax(xhi, mul / read * 8);
    }
    yhi = fmax(yhi, mul) * pow(10, 0.26 * (double)n_roof);
    if (read > 0) ylo = fmin(ylo, read * xlo);
    hn_rep_axis xa = hn_rep_axis_make(xlo / 1.3, xhi * 1.3, 6, true), ya = hn_rep_axis_make(ylo / 1.3, yhi, 6, true);
    char num[HN_REP_NUM], t[300];
    hn_rep_svg_open(f, "plot", BOTTOM + 36, "Roofline",
                    n_roof ? "Rate over operations per byte, both scales logarithmic; slanted lines are the read "
                             "bandwidth measured, level ones the arithmetic measured"
                           : "Rate over operations per byte, both scales logarithmic");
    hn_rep_x_axis(f, &xa, TOP, BOTTOM, "operations per byte read");
    hn_rep_y_axis(f, &ya, TOP, BOTTOM);
    fprintf(f, "<text class=\"u\" x=\"0\" y=\"%d\">10\xE2\x81\xB9 operations/s</text>\n", TOP - 4);
    lines_open(f, BOTTOM);
    for (size_t i = 0; i < n_roof; i++) {
        double v = roof[i].value, top_of = mul > 0 ? mul : ya.hi, x0 = xa.lo, y0 = v * x0, x1, y1 = top_of;
        if (roof[i].bytes) {
            if (y0 < ya.lo) {
                y0 = ya.lo;
                x0 = y0 / v;
            }
            x1 = fmin(top_of / v, xa.hi);
            y1 = v * x1;
        } else {
            x0 = read > 0 ? fmax(v / read, xa.lo) : xa.lo;
            x1 = xa.hi;
            y0 = y1 = v;
        }
        fprintf(f, "<polyline class=\"roof\" points=\"%.2f,%.1f %.2f,%.1f\"/>", hn_rep_pos(&xa, x0),
                hn_rep_y(&ya, y0, TOP, BOTTOM), hn_rep_pos(&xa, x1), hn_rep_y(&ya, y1, TOP, BOTTOM));
    }
    lines_close(f);
    for (size_t i = 0; i < n_roof; i++) { /* above the roof there are no spots: room for words */
        double v = roof[i].value;
        snprintf(t, sizeof t, "%.120s: %s %s", roof[i].name,
                 hn_rep_num(num, roof[i].bytes || v < 1000 ? v : v / 1000, 3),
                 roof[i].bytes ? "GB/s"
                 : v < 1000    ? "GOP/s"
                               : "TOP/s");
        fprintf(f, "<text class=\"roofs\" x=\"8\" y=\"%zu\">", TOP + 16 + 15 * i);
        hn_rep_html(f, t);
        fputs("</text>\n", f);
    }
    double(*place)[2] = calloc(n + 1, sizeof *place);
    if (!place) hn_json_lose();
    if (place) place_numbers(place, s, n, &xa, &ya, TOP, BOTTOM);
    for (size_t i = 0; place && i < n; i++) {
        double x = hn_rep_pos(&xa, s[i].intensity), y = hn_rep_y(&ya, s[i].gops, TOP, BOTTOM);
        fprintf(f, "<circle class=\"dot\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\">", x, y);
        tooltip(f, s[i].name);
        fprintf(
            f,
            "</circle><text class=\"halo num\" x=\"%.2f%%\" y=\"%.1f\" dx=\"%.0f\" text-anchor=\"middle\">%d</text>\n",
            x, y + place[i][1], place[i][0], s[i].number);
    }
    free(place);
    hn_rep_svg_close(f);
}
