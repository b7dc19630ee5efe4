/* What was measured, on the page: the newest of each configuration, samples, history, gaps between tokens. Owns what
 * stands where; the numbers are report.c's, the drawings report_plots.c's. */
#include "base/os.h"
#include "lab/record/report_html.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TABLE = 300, MAX_CARDS = 12, MAX_ITL = 3 };

/* ---- measurements ------------------------------------------------------------------------------ */

static void runs_table(FILE *f, const hn_report *r)
{
    static const char *const cols[] = { "decode_tok_s", "prefill_tok_s", "ttft_ms", "load_ms", "peak_anon_mb" };
    size_t n = 0;
    for (size_t i = 0; i < r->n_rows; i++) n += hn_record_is_plain(r->rows[i].record);
    if (n == 0) return;
    put(f, "<table class=\"runs\"><caption>Whole runs of a model: the newest of each configuration. Medians with the "
           "95\xE2\x80\xAF% interval of the median.</caption>\n"
           "<thead><tr><th>Configuration</th><th class=\"r\">Decode<br/>tok/s</th><th "
           "class=\"r\">Prefill<br/>tok/s</th><th class=\"r\">First token<br/>ms</th><th class=\"r\">Load<br/>ms</th>"
           "<th class=\"r\">Peak memory<br/>MB</th><th>Of the roof</th><th>State</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0, shown = 0; i < r->n_rows && shown < MAX_TABLE; i++) {
        json_t *o = r->rows[i].record, *roof = json_object_get(o, "roofline");
        char when[48];
        if (!hn_record_is_plain(o)) continue;
        shown++;
        hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
        bool disturbed = json_array_size(json_object_get(o, "notes")) > 0;
        fprintf(f, "<tr class=\"%s%s\">", json_is_false(json_object_get(o, "valid")) ? "struck" : "",
                disturbed ? " over" : "");
        text2(f, "<th scope=\"row\" class=\"all\">", r->rows[i].label, "<small>");
        text2(f, "", hn_record_text(o, "title"), ", ");
        fprintf(f, "%s; %zu run%s</small>", when, r->rows[i].n_runs, plural(r->rows[i].n_runs));
        put(f, "</th>");
        static const char *const names[] = { "decode, tok/s", "prefill, tok/s", "first token, ms", "load, ms",
                                             "peak memory, MB" };
        for (size_t c = 0; c < 5; c++) {
            json_t *s = hn_record_stats(o, cols[c]), *ci = json_object_get(s, "ci95");
            fprintf(f, "<td class=\"r\" data-h=\"%s\">", names[c]);
            hn_html_number_cell(f, hn_record_number(s, "median"), hn_rep_at_i(ci, 0), hn_rep_at_i(ci, 1));
            put(f, "</td>");
        }
        put(f, "<td data-h=\"of the roof\">");
        double d = hn_record_number(roof, "pct"), p = hn_record_number(roof, "prefill_pct");
        if (isfinite(d)) hn_html_meter(f, d, "decode");
        if (isfinite(d) && isfinite(p)) put(f, "<br/>");
        if (isfinite(p)) hn_html_meter(f, p, "prefill");
        if (!isfinite(d) && !isfinite(p)) put(f, "<small>not known</small>");
        put(f, "</td><td data-h=\"state\">");
        hn_html_state_cell(f, o);
        if (hn_record_text(o, "quality")[0]) text2(f, "<small><code>", hn_record_text(o, "quality"), "</code></small>");
        put(f, "</td></tr>\n");
        if (!disturbed) continue;
        put(f, "<tr class=\"notes\"><td colspan=\"8\">! ");
        hn_html_notes(f, o, " \xC2\xB7 ", "");
        put(f, "</td></tr>\n");
    }
    put(f, "</tbody></table>\n");
}

/* Samples over their median, so that the noise of all rows can be compared. */
static size_t relative(double **x, json_t *record, const hn_rep_metric *m)
{
    size_t n;
    if (hn_record_samples(x, &n, record, m->name, NULL) != HONE_OK) return 0;
    for (size_t i = 0; i < n; i++) (*x)[i] = 100 * ((*x)[i] / m->median - 1);
    return n;
}

static void bench_table(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0;
    double far = 2;
    for (size_t i = 0; i < r->n_rows; i++) {
        hn_rep_metric m[HN_REP_METRICS];
        double *x;
        if (hn_record_is_plain(r->rows[i].record)) continue;
        all++;
        if (all > MAX_TABLE || hn_rep_metrics(m, r->rows[i].record) == 0 || m[0].median == 0) continue;
        size_t n = relative(&x, r->rows[i].record, &m[0]);
        for (size_t k = 0; k < n; k++) far = fmax(far, fabs(x[k]));
        free(x);
    }
    if (all == 0) return;
    far = far > 50 ? 50 : far <= 5 ? 5 : far <= 10 ? 10 : far <= 20 ? 20 : 50;
    hn_rep_axis axis = { .lo = -far, .hi = far };
    fprintf(f,
            "<table class=\"fold\"><caption>Single measurements: the newest of each configuration. Spread: every "
            "sample against the median, from \xE2\x88\x92%.0f\xE2\x80\xAF%% to +%.0f\xE2\x80\xAF%%; "
            "shaded, the 95\xE2\x80\xAF%% interval of the median.</caption>\n<thead><tr><th>Measurement</th><th "
            "class=\"r\">Median</th><th class=\"wide\">Spread (\xC2\xB1%.0f\xE2\x80\xAF%%)</th><th>Of the roof</th>"
            "<th>State</th></tr></thead>\n<tbody>\n",
            far, far, far);
    for (size_t i = 0; i < r->n_rows && shown < MAX_TABLE; i++) {
        json_t *o = r->rows[i].record, *roof = json_object_get(o, "roofline");
        hn_rep_metric m[HN_REP_METRICS];
        if (hn_record_is_plain(o)) continue;
        shown++;
        size_t n_m = hn_rep_metrics(m, o);
        put(f, json_is_false(json_object_get(o, "valid")) ? "<tr class=\"struck\">" : "<tr>");
        text2(f, "<th scope=\"row\" class=\"all\">", hn_record_id(o), "");
        text2(f, "<small>", r->rows[i].label, "</small>");
        hn_html_notes(f, o, "<small>! ", "</small>");
        put(f, "</th><td class=\"r\" data-h=\"median\">");
        if (n_m) {
            char u[64], a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
            snprintf(u, sizeof u, "%s", hn_rep_unit(m[0].unit));
            fprintf(f, "<b class=\"num\">%s</b> ", hn_rep_med(a, m[0].median, m[0].lo, m[0].hi));
            text(f, u);
            if (isfinite(m[0].lo))
                fprintf(f, "<small class=\"num\">%s \xE2\x80\x93 %s</small>",
                        hn_rep_bound(b, m[0].lo, m[0].lo, m[0].hi), hn_rep_bound(c, m[0].hi, m[0].lo, m[0].hi));
            else fprintf(f, "<small>no interval, %zu sample%s</small>", m[0].n, plural(m[0].n));
        } else put(f, "\xE2\x80\x93");
        put(f, "</td><td class=\"wide\">");
        double *x = NULL;
        size_t n = n_m && m[0].median != 0 ? relative(&x, o, &m[0]) : 0, in = 0;
        for (size_t k = 0; k < n; k++)
            if (fabs(x[k]) <= far) x[in++] = x[k];
        if (in) {
            char title[120];
            snprintf(title, sizeof title, "%zu samples, in percent above or below the median%s", n,
                     in < n ? "; some lie outside of the drawing" : "");
            hn_rep_plot_strip(f, x, in, 0, 100 * (m[0].lo / m[0].median - 1), 100 * (m[0].hi / m[0].median - 1), &axis,
                              title);
            if (in < n) fprintf(f, "<small>%zu of %zu lie further out</small>", n - in, n);
        }
        free(x);
        put(f, "</td><td data-h=\"of the roof\">");
        hn_html_meter(f, hn_record_number(roof, "pct"), hn_record_text(roof, "roof"));
        put(f, "</td><td data-h=\"state\">");
        hn_html_state_cell(f, o);
        put(f, "</td></tr>\n");
    }
    put(f, "</tbody></table>\n");
    hn_html_left_out(f, shown, all, "measurements");
}

void hn_html_measurements(FILE *f, const hn_report *r)
{
    if (r->n_rows == 0) return;
    hn_html_section(f, "measurements", "Measurements", "");
    runs_table(f, r);
    bench_table(f, r);
    put(f, "</section>\n");
}

/* ---- drawings of series ------------------------------------------------------------------------- */

static void card_head(FILE *f, const hn_rep_line *l)
{
    const hn_point *p = &l->s->points[l->s->n - 1];
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    text2(f, "<figure><figcaption><h3>", l->label, "</h3>newest ");
    fprintf(f, "<b class=\"num\">%s</b> ", hn_rep_med(a, p->median, p->ci95[0], p->ci95[1]));
    text(f, hn_rep_unit(l->s->unit));
    if (isfinite(p->ci95[0]))
        fprintf(f, " <span class=\"num\">(%s \xE2\x80\x93 %s)</span>",
                hn_rep_bound(b, p->ci95[0], p->ci95[0], p->ci95[1]),
                hn_rep_bound(c, p->ci95[1], p->ci95[0], p->ci95[1]));
    fprintf(f, ", %s is better</figcaption>\n", l->s->higher ? "more" : "less");
}

static bool has_samples(const hn_rep_line *l)
{
    return l->s->n > 0 && l->s->points[l->s->n - 1].n > 1 && l->rank % 200 < 60;
}

void hn_html_samples(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0;
    for (size_t i = 0; i < r->n_series; i++) all += has_samples(&r->lines[i]);
    if (all == 0) return;
    hn_html_section(
        f, "samples", "Samples",
        "Every sample of the newest runs, with median and interval; below, the share of samples at or under a "
        "value: the newest run as a solid line, the one before dashed.");
    put(f, "<div class=\"cards\">\n");
    for (size_t i = 0; i < r->n_series && shown < MAX_CARDS; i++) {
        if (!has_samples(&r->lines[i])) continue;
        shown++;
        card_head(f, &r->lines[i]);
        hn_rep_plot_samples(f, &r->lines[i]);
        put(f, "</figure>\n");
    }
    put(f, "</div>\n");
    hn_html_left_out(f, shown, all, "series");
    put(f, "</section>\n");
}

static bool has_history(const hn_rep_line *l)
{
    return l->s->n + l->s->n_invalid > 1 && l->s->n > 0 && l->rank % 200 < 60;
}

static void steps_table(FILE *f, const hn_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_series; i++) n += r->lines[i].steps.n;
    if (n == 0) return;
    put(f, "<table class=\"fold\"><caption>Steps found in the histories. Runs at different times were not measured "
           "side by side: a step can be the machine's.</caption>\n"
           "<thead><tr><th>Series</th><th>First run of the new level</th><th class=\"r\">Before</th><th "
           "class=\"r\">After</th><th class=\"r\">Change</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0, shown = 0; i < r->n_series; i++)
        for (size_t k = 0; k < r->lines[i].steps.n && shown < MAX_TABLE; k++, shown++) {
            const hn_step *s = &r->lines[i].steps.step[k];
            const hn_series *in = r->lines[i].s;
            json_t *o = in->points[s->at].record;
            char when[48], num[HN_REP_NUM];
            bool better = (s->after > s->before) == in->higher;
            hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
            text2(f, "<tr><th scope=\"row\" class=\"all\">", r->lines[i].label, "</th><td data-h=\"since\">");
            text2(f, "", when, "<small>");
            text2(f, "", hn_record_text(o, "change"), "</small></td>");
            fprintf(f, "<td class=\"r\" data-h=\"before\"><span class=\"num\">%s ", hn_rep_num(num, s->before, 4));
            text2(f, "", hn_rep_unit(in->unit), "</span></td>");
            fprintf(f, "<td class=\"r\" data-h=\"after\"><span class=\"num\">%s ", hn_rep_num(num, s->after, 4));
            text2(f, "", hn_rep_unit(in->unit), "</span></td>");
            fprintf(f, "<td class=\"r\" data-h=\"change\"><span class=\"v %s\">%s %s</span></td></tr>\n",
                    better ? "good" : "bad", hn_rep_pct(num, s->after / s->before), better ? "better" : "worse");
        }
    put(f, "</tbody></table>\n");
}

void hn_html_history(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0;
    for (size_t i = 0; i < r->n_series; i++) all += has_history(&r->lines[i]);
    if (all == 0) return;
    hn_html_section(
        f, "history", "History",
        "Medians of runs with equal settings, model and machine, in order, with 95\xE2\x80\xAF% intervals. Broad "
        "lines are levels, dashed lines steps between them. \xE2\x9C\x95 is an invalid run.");
    put(f, "<div class=\"cards\">\n");
    for (size_t i = 0; i < r->n_series && shown < MAX_CARDS; i++) {
        if (!has_history(&r->lines[i])) continue;
        shown++;
        card_head(f, &r->lines[i]);
        hn_rep_plot_history(f, r, &r->lines[i]);
        put(f, "</figure>\n");
    }
    put(f, "</div>\n");
    hn_html_left_out(f, shown, all, "histories");
    steps_table(f, r);
    put(f, "</section>\n");
}

/* Percentiles as hn_stats has them: none that too few gaps support. */
static void say_gaps(FILE *f, const double *x, size_t n)
{
    hn_stats s;
    char num[HN_REP_NUM];
    if (hn_stats_of(&s, x, n, NULL) != HONE_OK) return;
    const struct {
        const char *name;
        double v;
    } shown[] = { { "median", s.median }, { "p90", s.p90 }, { "p95", s.p95 }, { "p99", s.p99 }, { "longest", s.max } };
    fprintf(f, ": %zu gaps", n);
    for (size_t i = 0; i < 5; i++)
        if (isfinite(shown[i].v))
            fprintf(f, ", %s <b class=\"num\">%s ms</b>", shown[i].name, hn_rep_num(num, shown[i].v, 3));
}

void hn_html_gaps(FILE *f, const hn_report *r)
{
    size_t shown = 0;
    for (size_t i = r->n_rows; i-- > 0 && shown < MAX_ITL;) {
        json_t *o = r->rows[i].record;
        double *x;
        size_t n;
        if (json_is_false(json_object_get(o, "valid")) || !hn_rep_itl(&x, &n, o)) continue;
        if (shown++ == 0)
            hn_html_section(
                f, "gaps", "Gaps between tokens",
                "Left, every gap in the order it came, of all requests one after the other; right, how often gaps "
                "of which length occurred.");
        text2(f, "<h3>", hn_record_id(o), "");
        text2(f, "</h3><p class=\"note\">", r->rows[i].label, "");
        say_gaps(f, x, n);
        put(f, "</p>\n<div class=\"cards pair\"><figure><figcaption>Gap before each token, ms</figcaption>");
        hn_rep_plot_itl(f, x, n);
        put(f, "</figure><figure><figcaption>Number of gaps, by length in ms</figcaption>");
        hn_rep_plot_hist(f, x, n);
        put(f, "</figure></div>\n");
        free(x);
    }
    if (shown) put(f, "</section>\n");
}
