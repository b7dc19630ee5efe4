/* The page: one HTML file that is also well-formed XML, with its style and drawings inside. It loads
 * nothing (its own policy forbids it), runs no script, and says everything in text and tables
 * as well. Owns what stands where; the numbers are report.c's, the drawings report_plots.c's. */
#include "base/os.h"
#include "lab/record/report_data.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum {
    MAX_ALERTS = 30,
    MAX_VERDICTS = 200,
    MAX_TABLE = 300,
    MAX_CARDS = 12,
    MAX_ENVIRONS = 4,
    MAX_SPOTS = 40,
    MAX_STACKS = 10,
    MAX_ITL = 3,
    MAX_NOTES = 3,
    MAX_OPS = 16,
    KINDS = 7
};

static void put(FILE *f, const char *s) { fputs(s, f); }
static void text(FILE *f, const char *s) { hn_rep_html(f, s); }
static void text2(FILE *f, const char *before, const char *s, const char *after)
{
    fputs(before, f);
    hn_rep_html(f, s);
    fputs(after, f);
}
static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void section(FILE *f, const char *id, const char *title, const char *lead)
{
    fprintf(f, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
    if (lead && *lead) fprintf(f, "<p class=\"lead\">%s</p>\n", lead);
}

static void left_out(FILE *f, size_t shown, size_t all, const char *what)
{
    if (shown < all)
        fprintf(f, "<p class=\"note\">%zu of %zu %s are shown; CSV and JSON have them all.</p>\n", shown, all, what);
}

/* Median and interval as the content of a cell. */
static void number_cell(FILE *f, double median, double lo, double hi)
{
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    fprintf(f, "<b class=\"num\">%s</b>", hn_rep_med(a, median, lo, hi));
    if (isfinite(lo) && isfinite(hi))
        fprintf(f, "<small class=\"num\">%s \xE2\x80\x93 %s</small>", hn_rep_bound(b, lo, lo, hi),
                hn_rep_bound(c, hi, lo, hi));
    else if (isfinite(median)) put(f, "<small>no interval</small>");
}

static void meter(FILE *f, double pct, const char *what)
{
    char t[HN_REP_NUM];
    if (!isfinite(pct)) put(f, "<small>\xE2\x80\x93</small>");
    else
        fprintf(
            f, "<span class=\"num\"><span class=\"meter\"><i style=\"width:%.0f%%\"></i></span>%s\xE2\x80\xAF%%</span>",
            fmax(0, fmin(100, pct)), hn_rep_num(t, pct, pct < 99.5 ? 2 : 3));
    if (isfinite(pct)) text2(f, " <span class=\"note\">", what, "</span>");
}

static void state_cell(FILE *f, json_t *record)
{
    json_t *v = json_object_get(record, "valid");
    if (json_is_true(v)) put(f, "<span class=\"v good\">\xE2\x9C\x93 valid</span>");
    else if (json_is_false(v))
        text2(f, "<span class=\"v bad\">\xE2\x9C\x95 invalid</span><small>", hn_record_text(record, "invalid_reason"),
              "</small>");
    else
        text2(f, "<span class=\"v same\">\xE2\x97\x8B not checked</span><small>",
              hn_record_text(record, "invalid_reason"), "</small>");
}

/* What disturbed a measurement, as its record says. */
static void notes(FILE *f, json_t *record, const char *before, const char *after)
{
    json_t *list = json_object_get(record, "notes"), *one;
    size_t i, n = 0;
    json_array_foreach(list, i, one) if (json_is_string(one) && n < MAX_NOTES)
        text2(f, n++ || *after ? before : "", json_string_value(one), after);
    if (json_array_size(list) > n) fprintf(f, "%sand %zu more%s", before, json_array_size(list) - n, after);
}

static const char *verdict_mark(int v)
{
    static const char *const marks[HN_REP_VERDICTS] = { "\xE2\x96\xBC", "?", "\xE2\x96\xB2", "=", "\xE2\x97\x8B" };
    return marks[v];
}
static const char *verdict_class(int v)
{
    static const char *const names[HN_REP_VERDICTS] = { "bad", "unsure", "good", "same", "same" };
    return names[v];
}

/* ---- head and summary ---------------------------------------------------------------------- */

static void distinct(FILE *f, const hn_report *r, const char *object, const char *key, const char *none)
{
    const char *seen[8];
    size_t n = 0, i, all = 0;
    json_t *o;
    json_array_foreach(r->records, i, o)
    {
        const char *s = hn_record_text(json_object_get(o, object), key);
        size_t k = 0;
        while (k < n && strcmp(seen[k], s) != 0) k++;
        if (!*s || k < n) continue;
        all++;
        if (n < 8) seen[n++] = s;
    }
    for (i = 0; i < n && i < 3; i++) text2(f, i ? ", " : "", seen[i], "");
    if (all > 3) fprintf(f, " and %zu more", all - 3);
    if (n == 0) put(f, none);
}

static void head(FILE *f, const hn_report *r)
{
    char when[48];
    hn_rep_when(when, sizeof when, r->date, true);
    put(f, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta "
           "charset=\"utf-8\"/>\n<title>");
    text(f, r->title);
    put(f, "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta "
           "name=\"color-scheme\" content=\"light dark\"/>\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
           "img-src data:\"/>\n"
           "<link rel=\"icon\" href=\"data:,\"/>\n<style>");
    put(f, hn_rep_style);
    put(f, "</style></head>\n<body>\n<header><p class=\"eyebrow\">hone laboratory report</p>\n<h1>");
    text(f, r->title);
    text2(f, "</h1>\n<p class=\"facts\">", when, strlen(r->date) > 16 ? " UTC" : "");
    put(f, " \xC2\xB7 model ");
    distinct(f, r, "model", "path_name", "none");
    put(f, " \xC2\xB7 machine ");
    distinct(f, r, "env", "cpu_model", "unknown");
    put(f, " <span class=\"num\">(");
    distinct(f, r, "env", "hash", "\xE2\x80\x93");
    size_t n = json_array_size(r->bench);
    fprintf(f, ")</span> \xC2\xB7 %zu measurement%s, %zu comparison%s</p>\n", n, plural(n), r->n_abs, plural(r->n_abs));
}

static void state(FILE *f, const hn_report *r)
{
    size_t bad = r->n_of[HN_REP_INVALID], changed = r->n_of[HN_REP_QUALITY], slower = r->n_verdict[HN_REP_REGRESSION];
    bool no = bad || changed || slower;
    if (json_array_size(r->bench) == 0 && r->n_abs == 0 && r->n_alerts == 0 && json_array_size(r->training))
        return; /* nothing to judge */
    fprintf(f, "<div class=\"state %s\"><p><strong>",
            no                                              ? "no"
            : r->n_unchecked || r->n_verdict[HN_REP_UNSURE] ? ""
                                                            : "ok");
    if (bad) fprintf(f, "%zu of %zu results %s invalid. ", bad, json_array_size(r->bench), bad == 1 ? "is" : "are");
    if (changed) fprintf(f, "The quality hash changed%s. ", changed > 1 ? " more than once" : "");
    if (slower) fprintf(f, "%zu comparison%s found a regression. ", slower, plural(slower));
    if (!no)
        put(f, r->n_abs ? "Nothing invalid, no change of quality, no regression found. "
                        : "Nothing invalid, no change of quality; nothing was compared. ");
    if (r->n_verdict[HN_REP_UNSURE])
        fprintf(f, "%zu of %zu comparisons remain inconclusive.", r->n_verdict[HN_REP_UNSURE], r->n_abs);
    put(f, "</strong></p>\n<p>");
    fprintf(f, "%zu result%s valid, %zu invalid, %zu not checked", r->n_valid, plural(r->n_valid), r->n_invalid,
            r->n_unchecked);
    if (bad) put(f, "; a number whose output is broken is worth nothing, however fast");
    put(f, ".</p></div>\n");
    put(f, "<ul class=\"pills\">");
    for (int v = 0; v < HN_REP_VERDICTS; v++)
        if (r->n_verdict[v] || (v < HN_REP_OTHER && r->n_abs))
            fprintf(f, "<li><span class=\"v %s\">%s %s</span> <b>%zu</b></li>", verdict_class(v), verdict_mark(v),
                    hn_rep_verdict_word(v), r->n_verdict[v]);
    put(f, "</ul>\n");
    if (r->n_alerts == 0) return;
    put(f, "<ul class=\"alerts\">\n");
    size_t shown = 0;
    for (size_t i = 0; i < r->n_alerts && shown < MAX_ALERTS; i++, shown++) {
        const hn_rep_alert *a = &r->alerts[i];
        char when[48];
        bool serious = a->kind <= HN_REP_REGRESSED;
        hn_rep_when(when, sizeof when, a->ts, true);
        fprintf(f, "<li><p><span class=\"v %s\">%s %s</span>", serious ? "bad" : "unsure",
                serious ? "\xE2\x9C\x95" : "!", hn_rep_alert_word(a->kind));
        if (a->ts[0]) text2(f, "<small class=\"num\"><br/>", when, "</small>");
        text2(f, "</p><p><b>", a->what, "</b><br/>");
        text2(f, "", a->text, "</p></li>\n");
    }
    put(f, "</ul>\n");
    left_out(f, shown, r->n_alerts, "findings");
}

/* The model run that people look for first: the newest of id e2e, else of any e2e.… id. */
static json_t *leading(const hn_report *r)
{
    for (size_t i = json_array_size(r->bench); i-- > 0;) {
        json_t *o = json_array_get(r->bench, i);
        if (hn_record_is_plain(o) && !json_is_false(json_object_get(o, "valid"))) return o;
    }
    return NULL;
}

static void tiles(FILE *f, const hn_report *r)
{
    json_t *o = leading(r), *roof = json_object_get(o, "roofline");
    hn_rep_metric m[HN_REP_METRICS];
    size_t n = o ? hn_rep_metrics(m, o) : 0;
    char *key = o ? hn_record_key(o, true) : NULL, when[48], num[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    if (n == 0 || !key) {
        free(key);
        return;
    }
    const char *label = "";
    for (size_t i = 0; i < r->n_rows; i++)
        if (strcmp(r->rows[i].key, key) == 0) label = r->rows[i].label;
    hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
    put(f, "<section id=\"newest\"><h2>The newest run of the model</h2>\n<p class=\"lead\">");
    text2(f, "", hn_record_text(o, "title"), ": ");
    text2(f, "", label, ". ");
    text2(f, "", when,
          " UTC. Medians; below them the 95\xE2\x80\xAF% interval of the median, and the runs before.</p>\n<div "
          "class=\"tiles\">\n");
    for (size_t i = 0; i < n && i < 5; i++) {
        double pct = strcmp(m[i].name, "decode_tok_s") == 0    ? hn_record_number(roof, "pct")
                     : strcmp(m[i].name, "prefill_tok_s") == 0 ? hn_record_number(roof, "prefill_pct")
                                                               : NAN;
        text2(f, "<div class=\"tile\"><h3>", hn_rep_metric_name(m[i].name), "</h3>");
        fprintf(f, "<p class=\"big num\">%s <small>", hn_rep_med(num, m[i].median, m[i].lo, m[i].hi));
        text2(f, "", hn_rep_unit(m[i].unit), "</small></p><p class=\"note\">");
        if (isfinite(m[i].lo) && isfinite(m[i].hi))
            fprintf(f, "<span class=\"num\">%s \xE2\x80\x93 %s</span>", hn_rep_bound(b, m[i].lo, m[i].lo, m[i].hi),
                    hn_rep_bound(c, m[i].hi, m[i].lo, m[i].hi));
        else fprintf(f, "no interval from %zu sample%s", m[i].n, plural(m[i].n));
        if (isfinite(pct)) fprintf(f, "<br/>%s\xE2\x80\xAF%% of the roof", hn_rep_num(num, pct, 2));
        put(f, "</p>");
        for (size_t k = 0; k < r->n_series; k++)
            if (r->series[k].n > 2 && strcmp(r->series[k].key, key) == 0 && strcmp(r->series[k].metric, m[i].name) == 0)
                hn_rep_plot_spark(f, &r->series[k]);
        put(f, "</div>\n");
    }
    put(f, "</div></section>\n");
    free(key);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void verdicts(FILE *f, const hn_report *r)
{
    double lo = 0.97, hi = 1.03;
    size_t n = r->n_abs < MAX_VERDICTS ? r->n_abs : MAX_VERDICTS;
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) {
        const hn_rep_ab *a = &r->abs[i];
        lo = fmin(lo, fmin(a->lo, a->ratio));
        hi = fmax(hi, fmax(a->hi, a->ratio));
        if (!(a->margin <= 0.25)) continue; /* a wide one may leave the drawing */
        lo = fmin(lo, hn_rep_margin_low(a) * 0.995);
        hi = fmax(hi, (1 + a->margin) * 1.005);
    }
    hn_rep_axis axis = hn_rep_axis_make(fmax(lo, 1e-3), fmin(hi, 1e3), 6, true);
    bool one = false;
    for (int i = 0; i < axis.n; i++) one = one || fabs(axis.tick[i] - 1) < 1e-9;
    if (!one && axis.n < 16) axis.tick[axis.n++] = 1;
    section(f, "verdicts", "Verdicts",
            "Speed of B against speed of A, measured in turns. Small dots: the rounds; bar: 95\xE2\x80\xAF% interval "
            "of their median; shaded: the margin, "
            "which the machine's noise may have widened; darker then: the margin asked for. <b>Regressed</b> and "
            "<b>improved</b> lie wholly outside of the margin, <b>same</b> wholly within the one "
            "asked for; everything else is <b>inconclusive</b>.");
    put(f, "<table class=\"fold\"><thead><tr><th>Compared</th><th>Verdict</th><th class=\"wide\">Ratio</th><th "
           "class=\"r\">Change</th><th class=\"r\">Rounds</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < n; i++) {
        const hn_rep_ab *a = &r->abs[i];
        char num[HN_REP_NUM];
        const char *name = hn_rep_metric_name(a->metric);
        text2(f, "<tr><th scope=\"row\" class=\"all\">", a->id, "");
        text2(f, *name ? " " : "", strcmp(name, a->id) == 0 ? "" : name, "<small>");
        text2(f, "A ", a->a, "<br/>");
        text2(f, "B ", a->b, "</small></th>");
        fprintf(f, "<td class=\"all\"><span class=\"v %s\">%s %s</span>", verdict_class(a->verdict),
                verdict_mark(a->verdict), a->word);
        if (*a->note) text2(f, "<small>", a->note, "</small>");
        put(f, "</td><td class=\"wide\">");
        hn_rep_plot_ratio(f, a, &axis);
        fprintf(f, "</td><td class=\"r\" data-h=\"change\"><b class=\"num\">%s</b>", hn_rep_pct(num, a->ratio));
        if (isfinite(a->lo)) {
            char h[HN_REP_NUM];
            fprintf(f, "<small><span class=\"num\">%s</span> to <span class=\"num\">%s</span></small>",
                    hn_rep_pct(num, a->lo), hn_rep_pct(h, a->hi));
        } else put(f, "<small>no interval</small>");
        fprintf(f, "</td><td class=\"r\" data-h=\"%s\">%zu", a->unpaired ? "samples" : "rounds", a->n_counted);
        if (a->unpaired) put(f, "<small>samples,<br/>not in turns</small>");
        if (a->n_voided) fprintf(f, "<small class=\"num\">%zu voided</small>", a->n_voided);
        if (isfinite(a->margin))
            fprintf(f, "<small class=\"num\">margin %s\xE2\x80\xAF%%</small>", hn_rep_num(num, 100 * a->margin, 2));
        put(f, "</td></tr>\n");
    }
    put(f, "<tr><td class=\"gone\"></td><td class=\"gone\"></td><td class=\"wide\">");
    hn_rep_plot_ratio_axis(f, &axis);
    put(f, "</td><td class=\"gone\"></td><td class=\"gone\"></td></tr>\n</tbody></table>\n");
    left_out(f, n, r->n_abs, "comparisons");
    put(f, "</section>\n");
}

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
            number_cell(f, hn_record_number(s, "median"), hn_rep_at_i(ci, 0), hn_rep_at_i(ci, 1));
            put(f, "</td>");
        }
        put(f, "<td data-h=\"of the roof\">");
        double d = hn_record_number(roof, "pct"), p = hn_record_number(roof, "prefill_pct");
        if (isfinite(d)) meter(f, d, "decode");
        if (isfinite(d) && isfinite(p)) put(f, "<br/>");
        if (isfinite(p)) meter(f, p, "prefill");
        if (!isfinite(d) && !isfinite(p)) put(f, "<small>not known</small>");
        put(f, "</td><td data-h=\"state\">");
        state_cell(f, o);
        if (hn_record_text(o, "quality")[0]) text2(f, "<small><code>", hn_record_text(o, "quality"), "</code></small>");
        put(f, "</td></tr>\n");
        if (!disturbed) continue;
        put(f, "<tr class=\"notes\"><td colspan=\"8\">! ");
        notes(f, o, " \xC2\xB7 ", "");
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
        notes(f, o, "<small>! ", "</small>");
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
        meter(f, hn_record_number(roof, "pct"), hn_record_text(roof, "roof"));
        put(f, "</td><td data-h=\"state\">");
        state_cell(f, o);
        put(f, "</td></tr>\n");
    }
    put(f, "</tbody></table>\n");
    left_out(f, shown, all, "measurements");
}

static void measurements(FILE *f, const hn_report *r)
{
    if (r->n_rows == 0) return;
    section(f, "measurements", "Measurements", "");
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

static void samples(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0;
    for (size_t i = 0; i < r->n_series; i++) all += has_samples(&r->lines[i]);
    if (all == 0) return;
    section(f, "samples", "Samples",
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
    left_out(f, shown, all, "series");
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

static void history(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0;
    for (size_t i = 0; i < r->n_series; i++) all += has_history(&r->lines[i]);
    if (all == 0) return;
    section(f, "history", "History",
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
    left_out(f, shown, all, "histories");
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

static void gaps(FILE *f, const hn_report *r)
{
    size_t shown = 0;
    for (size_t i = r->n_rows; i-- > 0 && shown < MAX_ITL;) {
        json_t *o = r->rows[i].record;
        double *x;
        size_t n;
        if (json_is_false(json_object_get(o, "valid")) || !hn_rep_itl(&x, &n, o)) continue;
        if (shown++ == 0)
            section(f, "gaps", "Gaps between tokens",
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

/* ---- roofline ------------------------------------------------------------------------------------- */

typedef struct roofs {
    hn_rep_roof roof[16];
    char name[16][48];
    size_t n;
} roofs;

static void add_roof(roofs *r, const char *kind, long threads, double value, bool bytes)
{
    char name[48];
    size_t k = 0;
    if (!(value > 0)) return;
    snprintf(name, sizeof name, "%.20s, %ld thread%s", kind, threads, threads == 1 ? "" : "s");
    while (k < r->n && strcmp(r->name[k], name) != 0) k++;
    if (k == r->n && r->n == 16) return;
    if (k == r->n) {
        memcpy(r->name[k], name, sizeof name);
        r->roof[r->n++] = (hn_rep_roof){ r->name[k], value, bytes };
    } else r->roof[k].value = fmax(r->roof[k].value, value);
}

static void peaks_roofs(roofs *r, json_t *peaks)
{
    static const char *const kinds[] = { "read", "int8", "f32" };
    for (size_t k = 0; k < 3; k++) {
        json_t *points = json_object_get(json_object_get(peaks, kinds[k]), "points"),
               *last = json_array_get(points, json_array_size(points) ? json_array_size(points) - 1 : 0);
        if (json_is_object(last))
            add_roof(r, kinds[k], (long)hn_rep_int(last, "threads"), hn_record_number(last, "best"), k == 0);
    }
}

typedef struct spots {
    hn_rep_spot s[MAX_SPOTS];
    char name[MAX_SPOTS][256];
    double pct[MAX_SPOTS];
    char bound[MAX_SPOTS][24];
    size_t n, all;
} spots;

static void add_spot(spots *p, double intensity, double gops, double pct, const char *bound, const char *id,
                     const char *what, const char *label)
{
    if (!(intensity > 0 && gops > 0 && isfinite(intensity) && isfinite(gops))) return;
    if (p->all++ >= MAX_SPOTS) return;
    size_t k = p->n++;
    snprintf(p->name[k], sizeof p->name[k], "%s%s%s%s%s", id, *what ? " " : "", what, *label ? ", " : "", label);
    snprintf(p->bound[k], sizeof p->bound[k], "%s", bound);
    p->pct[k] = pct;
    p->s[k] = (hn_rep_spot){ intensity, gops, (int)p->n, p->name[k] };
}

static void find_spots(spots *p, roofs *roof, const hn_report *r)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        json_t *o = r->rows[i].record, *f = json_object_get(o, "roofline"), *config = json_object_get(o, "config");
        const char *id = hn_record_id(o), *label = r->rows[i].label, *kind = hn_record_text(f, "roof");
        double pct = hn_record_number(f, "pct"), value = hn_record_number(f, "roof_value"),
               bytes = hn_record_number(f, "bytes");
        double ops = hn_record_number(f, "ops");
        long threads = (long)hn_rep_int(config, "threads");
        bool read = strcmp(kind, "read") == 0;
        if (json_is_false(json_object_get(o, "valid"))) continue;
        if (isfinite(value) && pct > 0) {
            add_roof(roof, kind, threads > 0 ? threads : 1, value, read);
            add_spot(p, ops / bytes, 0.01 * pct * value * (read ? ops / bytes : 1), pct, kind, id, "", label);
        }
        double per_token = hn_record_number(f, "bytes_per_token"),
               params = hn_record_number(json_object_get(o, "model"), "params"),
               n_prompt = hn_record_number(config, "n_prompt"), chunk = hn_record_number(config, "chunk");
        if (!(per_token > 0 && params > 0)) continue;
        double in = 2 * params / per_token, batch = chunk > 0 ? fmin(chunk, n_prompt) : n_prompt;
        add_roof(roof, "read", threads > 0 ? threads : 1, hn_record_number(f, "roof_gb_s"), true);
        add_spot(p, in, hn_record_number(f, "gb_s") * in, pct, "read", id, "decode", label);
        if (batch > 0)
            add_spot(p, in * batch, hn_record_number(f, "prefill_gops"), hn_record_number(f, "prefill_pct"),
                     "arithmetic", id, "prefill", label);
    }
}

/* Arithmetic before reading, high before low: as they lie in the drawing. */
static int by_roof(const void *a, const void *b)
{
    const hn_rep_roof *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes ? 1 : -1;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

static void roofline(FILE *f, const hn_report *r)
{
    spots *p = calloc(1, sizeof *p);
    roofs *roof = calloc(1, sizeof *roof);
    if (!p || !roof) hn_json_lose();
    if (p && roof) find_spots(p, roof, r);
    if (p && roof && json_array_size(r->peaks)) {
        roof->n = 0; /* measured as such: better than what single results repeat of it */
        peaks_roofs(roof, json_array_get(r->peaks, json_array_size(r->peaks) - 1));
    }
    if (roof) qsort(roof->roof, roof->n, sizeof *roof->roof, by_roof);
    if (p && roof && p->n) {
        section(f, "roofline", "Roofline",
                "How much arithmetic per byte read, and how fast. Below the slanted line memory is the limit, below "
                "the level ones arithmetic. The roofs were measured on the machine; "
                "operations per byte follow from the shapes, with weights read once per call.");
        put(f, "<figure>");
        hn_rep_plot_roofline(f, roof->roof, roof->n, p->s, p->n);
        put(f, "</figure>\n<table class=\"fold\"><thead><tr><th>Measurement</th><th class=\"r\">Operations<br/>per "
               "byte</th><th class=\"r\">10\xE2\x81\xB9 operations/s</th><th>Of the roof</th>"
               "</tr></thead>\n<tbody>\n");
        for (size_t i = 0; i < p->n; i++) {
            char a[HN_REP_NUM], b[HN_REP_NUM];
            fprintf(f, "<tr><th scope=\"row\" class=\"all\"><b class=\"num\">%d</b>\xC2\xA0 ", p->s[i].number);
            text2(f, "", p->name[i], "</th>");
            fprintf(f,
                    "<td class=\"r\" data-h=\"operations per byte\">%s</td><td class=\"r\" data-h=\"10\xE2\x81\xB9 "
                    "operations/s\">%s</td><td data-h=\"of the roof\">",
                    hn_rep_num(a, p->s[i].intensity, 3), hn_rep_num(b, p->s[i].gops, 3));
            meter(f, p->pct[i], p->bound[i]);
            put(f, "</td></tr>\n");
        }
        put(f, "</tbody></table>\n");
        left_out(f, p->n, p->all, "measurements");
        put(f, "</section>\n");
    }
    free(p);
    free(roof);
}

/* ---- memory and profile ------------------------------------------------------------------------------- */

static void parts_list(FILE *f, const hn_rep_part *p, size_t n, const char *unit)
{
    char num[HN_REP_NUM];
    put(f, "<ul class=\"parts\">");
    for (size_t i = 0; i < n; i++) {
        if (!(p[i].value >= 0)) continue;
        fprintf(f,
                "<li><svg width=\"11\" height=\"11\" aria-hidden=\"true\"><rect class=\"k%d\" width=\"11\" "
                "height=\"11\" rx=\"2\"/></svg>",
                p[i].kind % 7);
        text(f, p[i].name);
        fprintf(f, " <b>%s</b> %s</li>", hn_rep_num(num, p[i].value, 3), unit);
    }
    put(f, "</ul>\n");
}

static double mb(json_t *o, const char *key) { return hn_record_number(o, key); }

static void memory_rows(FILE *f, const hn_report *r, size_t *shown, size_t *all, bool draw)
{
    double full = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->n_rows; i++) {
            json_t *o = r->rows[i].record, *m = json_object_get(o, "memory");
            double anon = mb(m, "peak_anon_mb"), model = mb(m, "model_resident_mb"), hwm = mb(m, "hwm_mb");
            if (!(anon >= 0) || !(model >= 0) || !hn_record_is_plain(o)) continue;
            if (pass == 0) {
                ++*all;
                full = fmax(full, fmax(anon + model, isfinite(hwm) ? hwm : 0));
                continue;
            }
            if (!draw || *shown == MAX_STACKS) continue;
            ++*shown;
            hn_rep_part p[] = { { "model pages in memory", model, 0 }, { "anonymous memory, at its peak", anon, 1 } };
            char num[HN_REP_NUM], t[200];
            text2(f, "<div><h3>", r->rows[i].label, "</h3>");
            snprintf(t, sizeof t, "Memory: %s MB altogether", hn_rep_num(num, anon + model, 3));
            hn_rep_plot_bar(f, p, 2, full, hwm, "MB", t);
            parts_list(f, p, 2, "MB");
            put(f, "<p class=\"note\">");
            if (isfinite(hwm))
                fprintf(f, "Black line: high-water mark of everything resident, %s MB. ", hn_rep_num(num, hwm, 3));
            static const struct {
                const char *key, *name;
            } reserved[] = { { "cache_mb", "KV cache" }, { "scratch_mb", "scratch" }, { "logits_mb", "logits" } };
            int k = 0;
            for (int c = 0; c < 3; c++)
                if (isfinite(mb(m, reserved[c].key)))
                    fprintf(f, "%s%s %s MB", k++ ? ", " : "Reserved: ", reserved[c].name,
                            hn_rep_num(num, mb(m, reserved[c].key), 3));
            put(f, k ? ".</p></div>\n" : "</p></div>\n");
        }
}

/* A ledger: named parts in bytes or MB, and the peak that they should sum to. */
static size_t ledger_parts(hn_rep_part *p, size_t cap, json_t *o, double *peak)
{
    json_t *parts = json_object_get(o, "parts"), *one;
    size_t n = 0, i;
    const char *key;
    *peak = mb(o, "measured_mb");
    if (!isfinite(*peak)) *peak = mb(o, "peak_mb");
    if (json_is_object(parts)) json_object_foreach(parts, key, one)
        {
            if (n < cap && json_is_number(one) && json_number_value(one) >= 0)
                p[n] = (hn_rep_part){ key, json_number_value(one), (int)n }, n++;
        }
    json_array_foreach(parts, i, one)
    {
        double v = mb(one, "mb");
        if (!isfinite(v)) v = 1e-6 * mb(one, "bytes");
        const char *name = hn_record_text(one, "part");
        if (n < cap && v >= 0) p[n] = (hn_rep_part){ *name ? name : hn_record_text(one, "name"), v, (int)n }, n++;
    }
    return n;
}

static int by_value(const void *a, const void *b)
{
    const hn_rep_part *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

/* "stacks 0.1 MB, program 3.2 MB" */
static void all_parts(char *dst, size_t cap, const hn_rep_part *p, size_t n)
{
    char num[HN_REP_NUM];
    size_t at = 0;
    for (size_t i = 0; i < n && at + 1 < cap; i++)
        at += (size_t)snprintf(dst + at, cap - at, "%s%.60s %s MB", i ? ", " : "", p[i].name,
                               hn_rep_num(num, p[i].value, 2));
}

static void memory(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0, i, n_ledgers = json_array_size(r->ledgers);
    json_t *o;
    memory_rows(f, r, &shown, &all, false);
    if (all == 0 && n_ledgers == 0) return;
    section(f, "memory", "Memory",
            "What a run holds. Pages of the model file can be given back at any time; anonymous memory cannot.");
    put(f, "<div class=\"stacks\">\n");
    json_array_foreach(r->ledgers, i, o)
    {
        hn_rep_part p[16];
        double peak, sum = 0;
        size_t n = ledger_parts(p, 16, o, &peak);
        char num[HN_REP_NUM], b[HN_REP_NUM], t[120], names[1024] = "";
        if (n == 0 || i >= MAX_STACKS) continue;
        for (size_t k = 0; k < n; k++) sum += p[k].value;
        qsort(p, n, sizeof *p, by_value);
        size_t drawn = n;
        if (n > KINDS) { /* more than colours that can be told apart: the small ones as one */
            double rest = 0;
            for (size_t k = KINDS - 1; k < n; k++) rest += p[k].value;
            all_parts(names, sizeof names, p + KINDS - 1, n - KINDS + 1);
            p[KINDS - 1] = (hn_rep_part){ "smaller parts", rest, 0 };
            drawn = KINDS;
        }
        for (size_t k = 0; k < drawn; k++) p[k].kind = drawn == n ? (int)k : k == KINDS - 1 ? 5 : k == 5 ? 6 : (int)k;
        text2(f, "<div><h3>Ledger", hn_record_text(json_object_get(o, "model"), "path_name")[0] ? " of " : "", "");
        text2(f, "", hn_record_text(json_object_get(o, "model"), "path_name"), "</h3>");
        snprintf(t, sizeof t, "Parts sum to %s MB", hn_rep_num(num, sum, 3));
        hn_rep_plot_bar(f, p, drawn, fmax(sum, isfinite(peak) ? peak : 0), peak, "MB", t);
        parts_list(f, p, drawn, "MB");
        if (names[0]) text2(f, "<p class=\"note\">Smaller parts: ", names, ".</p>");
        if (isfinite(peak))
            fprintf(f, "<p class=\"note\">Parts sum to %s MB; black line: the measured peak, %s MB.</p>",
                    hn_rep_num(num, sum, 3), hn_rep_num(b, peak, 3));
        put(f, "</div>\n");
    }
    all = 0;
    memory_rows(f, r, &shown, &all, true);
    put(f, "</div>\n");
    left_out(f, shown, all, "configurations");
    put(f, "</section>\n");
}

typedef struct op {
    const char *name, *type, *bound;
    double ms, pct, gb_s, roof;
    long long calls;
} op;
static int by_ms(const void *a, const void *b)
{
    const op *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms) - (x->ms > y->ms) : strcmp(x->name, y->name);
}

static void phase(FILE *f, json_t *ph, const char *name)
{
    json_t *ops = json_object_get(ph, "ops"), *one;
    size_t i, n = 0, all = json_array_size(ops);
    op *list = calloc(all + 1, sizeof *list);
    char num[HN_REP_NUM], b[HN_REP_NUM];
    if (!list || all == 0) {
        free(list);
        return;
    }
    json_array_foreach(ops, i, one) list[n++] =
        (op){ hn_record_text(one, "op"),         hn_record_text(one, "type"),  hn_record_text(one, "bound"),
              hn_record_number(one, "ms"),       hn_record_number(one, "pct"), hn_record_number(one, "gb_s"),
              hn_record_number(one, "roof_pct"), hn_rep_int(one, "calls") };
    qsort(list, n, sizeof *list, by_ms);
    double whole = hn_record_number(ph, "whole_ms"), rest = hn_record_number(ph, "rest_ms"),
           rest_pct = hn_record_number(ph, "rest_pct");
    fprintf(f, "<table class=\"fold\"><caption>%s: %s ms, ", name, hn_rep_num(num, whole, 4));
    fprintf(f,
            "%s token%s</caption>\n<thead><tr><th>Operation</th><th class=\"wide\">Share of the time</th><th "
            "class=\"r\"></th><th class=\"r\">ms</th><th class=\"r\">Calls</th><th class=\"r\">GB/s</th><th>Of the "
            "roof</th></tr></thead>\n<tbody>\n",
            hn_rep_med(b, hn_record_number(ph, "tokens"), NAN, NAN), hn_record_number(ph, "tokens") == 1 ? "" : "s");
    size_t shown = n < MAX_OPS ? n : MAX_OPS;
    double most = rest_pct > 0 ? rest_pct : 0;
    for (i = 0; i < n; i++) most = fmax(most, list[i].pct);
    for (i = 0; i <= shown; i++) {
        bool is_rest = i == shown;
        if (is_rest && !isfinite(rest)) break;
        op o = is_rest ? (op){ "between operations", "", "", rest, rest_pct, NAN, NAN, 0 } : list[i];
        text2(f, "<tr><th scope=\"row\" class=\"all\">", o.name, "<small>");
        text2(f, "", o.type, "</small></th><td class=\"wide\">");
        hn_rep_part part = { o.name, fmax(0, o.pct), is_rest ? 5 : 0 };
        hn_rep_plot_bar(f, &part, 1, most, NAN, "%", o.name);
        fprintf(f, "</td><td class=\"r\" data-h=\"share\">%s\xE2\x80\xAF%%</td>",
                hn_rep_num(num, o.pct, o.pct < 9.95 ? 2 : 3));
        fprintf(f, "<td class=\"r\" data-h=\"ms\">%s</td>", hn_rep_num(num, o.ms, 3));
        fprintf(f, is_rest ? "<td class=\"r gone\"></td>" : "<td class=\"r\" data-h=\"calls\">%lld</td>", o.calls);
        fprintf(f, "<td class=\"r\" data-h=\"GB/s\">%s</td><td data-h=\"of the roof\">", hn_rep_num(num, o.gb_s, 3));
        meter(f, o.roof, o.bound);
        put(f, "</td></tr>\n");
    }
    put(f, "</tbody></table>\n");
    left_out(f, shown, n, "operations");
    hn_rep_flame_phase(f, ph, name);
    free(list);
}

static void profiles(FILE *f, const hn_report *r)
{
    size_t n = json_array_size(r->profiles);
    if (n == 0) return;
    json_t *o = json_array_get(r->profiles, n - 1); /* the newest */
    char when[48];
    hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
    section(f, "profile", "Where the time goes", "");
    text2(f, "<p class=\"lead\">", hn_record_text(json_object_get(o, "model"), "path_name"), ", ");
    text2(f, "", when, "; operations summed over all layers, longest first.</p>\n");
    if (json_is_false(json_object_get(o, "valid")))
        text2(f, "<p class=\"v bad\">\xE2\x9C\x95 invalid: ", hn_record_text(o, "invalid_reason"), "</p>\n");
    phase(f, json_object_get(o, "prefill"), "Prefill");
    phase(f, json_object_get(o, "decode"), "Decode");
    put(f, "</section>\n");
}

/* ---- environments ------------------------------------------------------------------------------------------ */

typedef struct environ_ {
    json_t *facts;
    size_t n;
    const char *first, *last;
} environ_;

static json_t *facts_of(json_t *record)
{
    static const char *const passing[] = { "load", "runnable", "mem_available_mb", NULL };
    static const char *const objects[] = { "env", "git", "build", "engine", NULL };
    json_t *all = json_object(), *v;
    const char *key;
    char name[120];
    for (const char *const *o = objects; *o; o++) json_object_foreach(json_object_get(record, *o), key, v)
        {
            bool keep = !json_is_null(v) && !json_is_object(v) && !json_is_array(v);
            for (const char *const *p = passing; *p; p++) keep = keep && strcmp(*p, key) != 0;
            snprintf(name, sizeof name, "%s %.90s", *o, key);
            if (keep) json_object_set(all, name, v);
        }
    json_t *cpu = json_object_get(json_object_get(record, "config"), "cpu");
    if (json_is_string(cpu)) json_object_set(all, "kernel level", cpu);
    return all;
}

/* Do they contradict each other? What one of them does not know is no contradiction. */
static bool contradict(json_t *a, json_t *b)
{
    const char *key;
    json_t *v;
    json_object_foreach(a, key, v)
    {
        json_t *w = json_object_get(b, key);
        if (w && !json_equal(v, w)) return true;
    }
    return false;
}

/* "env cpu_model" → "cpu model" */
static void fact_name(FILE *f, const char *name)
{
    if (strncmp(name, "env ", 4) == 0) name += 4;
    for (char c[2] = { 0 }; (c[0] = *name); name++) text(f, c[0] == '_' ? " " : c);
}

static void fact(FILE *f, json_t *v)
{
    char num[HN_REP_NUM];
    if (!v) put(f, "<small>\xE2\x80\x93</small>");
    else if (json_is_string(v)) text(f, json_string_value(v));
    else if (json_is_boolean(v)) put(f, json_is_true(v) ? "yes" : "no");
    else put(f, hn_rep_med(num, json_number_value(v), NAN, NAN));
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* One column each, the newest first; the rest are counted in *older. names: all facts that any record has. */
static size_t gather_environments(environ_ e[MAX_ENVIRONS], const hn_report *r, json_t *names, size_t *older)
{
    size_t n = 0;
    for (size_t i = json_array_size(r->bench); i-- > 0;) {
        json_t *o = json_array_get(r->bench, i), *facts = facts_of(o);
        size_t k = 0;
        while (k < n && contradict(e[k].facts, facts)) k++;
        if (k == n && n < MAX_ENVIRONS) e[n++] = (environ_){ .facts = json_object(), .last = hn_record_text(o, "ts") };
        if (k < n) {
            e[k].n++;
            e[k].first = hn_record_text(o, "ts");
            json_object_update_missing(e[k].facts, facts);
        } else ++*older;
        json_object_update_missing(names, facts);
        json_decref(facts);
    }
    return n;
}

/* Is that fact of environment k another than that of the first? */
static bool fact_differs(const environ_ *e, size_t k, const char *name)
{
    json_t *a = json_object_get(e[0].facts, name), *b = json_object_get(e[k].facts, name);
    return k && a && b && !json_equal(a, b);
}

static void environment_heads(FILE *f, const environ_ *e, size_t n)
{
    put(f, "<div class=\"scroll\"><table class=\"diff\"><thead><tr><th>What differs</th>");
    for (size_t k = 0; k < n; k++) {
        char first[48], last[48];
        hn_rep_when(first, sizeof first, e[k].first, false);
        hn_rep_when(last, sizeof last, e[k].last, false);
        text2(f, "<th scope=\"col\">", hn_record_text(e[k].facts, "env hash"), "<small>");
        text2(f, "", first, "");
        if (strcmp(first, last) != 0) text2(f, " \xE2\x80\x93 ", last, "");
        fprintf(f, "<br/>%zu record%s</small></th>", e[k].n, plural(e[k].n));
    }
    put(f, "</tr></thead>\n<tbody>\n");
}

/* A row for each fact that differs; the others are left at the front of list, so many of them. */
static size_t environment_rows(FILE *f, const environ_ *e, size_t n, const char **list, size_t n_names)
{
    size_t same = 0;
    for (size_t i = 0; i < n_names; i++) {
        bool differs = false;
        for (size_t k = 1; k < n; k++) differs = differs || fact_differs(e, k, list[i]);
        if (!differs) {
            list[same++] = list[i];
            continue;
        }
        put(f, "<tr><th scope=\"row\">");
        fact_name(f, list[i]);
        put(f, "</th>");
        for (size_t k = 0; k < n; k++) {
            put(f, fact_differs(e, k, list[i]) ? "<td class=\"other\">\xE2\x89\xA0 " : "<td>");
            fact(f, json_object_get(e[k].facts, list[i]));
            put(f, "</td>");
        }
        put(f, "</tr>\n");
    }
    return same;
}

static void environment_common(FILE *f, const environ_ *e, size_t n, const char *const *list, size_t same)
{
    fprintf(f, "%s<dl class=\"kv\">", n > 1 ? "<h3 style=\"margin-top:22px\">The same in all of them</h3>\n" : "");
    for (size_t i = 0; i < same; i++) {
        json_t *known = NULL;
        for (size_t k = 0; k < n && !known; k++) known = json_object_get(e[k].facts, list[i]);
        put(f, "<div><dt>");
        fact_name(f, list[i]);
        put(f, "</dt><dd>");
        fact(f, known);
        put(f, "</dd></div>\n");
    }
    put(f, "</dl>\n");
}

static void environments(FILE *f, const hn_report *r)
{
    environ_ e[MAX_ENVIRONS] = { { 0 } };
    size_t older = 0, i = 0;
    json_t *names = json_object(), *v;
    const char *key;
    size_t n = gather_environments(e, r, names, &older), n_names = json_object_size(names);
    const char **list = calloc(n_names + 1, sizeof *list);
    if (!list) hn_json_lose();
    if (n && list) {
        json_object_foreach(names, key, v) list[i++] = key;
        qsort(list, n_names, sizeof *list, by_name);
        section(f, "environment", "Environment",
                n > 1 ? "What differs between the environments that these records come from; numbers from different "
                        "ones do not compare."
                      : "All records come from one environment.");
        if (n > 1) environment_heads(f, e, n);
        size_t same = environment_rows(f, e, n, list, n_names);
        if (n > 1) put(f, "</tbody></table></div>\n");
        if (older)
            fprintf(f, "<p class=\"note\">%zu older record%s of other environments are left out.</p>\n", older,
                    plural(older));
        if (same) environment_common(f, e, n, list, same);
        put(f, "</section>\n");
    }
    for (i = 0; i < n; i++) json_decref(e[i].facts);
    free(list);
    json_decref(names);
}

/* ---- foot ------------------------------------------------------------------------------------------------------ */

static void foot(FILE *f, const hn_report *r)
{
    const char *seen[HN_REP_METRICS];
    size_t n = 0;
    section(f, "reading", "How to read this", "");
    put(f, "<p>A sample is one process, or one stretch of calls long enough for the clock. The interval is that of the "
           "median, from order statistics, without any assumption on the distribution; "
           "below six samples there is none. All samples are kept, outliers too. A result is invalid when the output "
           "behind it is broken or when it is faster than the machine can be; "
           "what was not checked proves nothing. Comparisons take turns (ABBA), so that drift falls out of each "
           "round's ratio.</p>\n<dl class=\"kv\">\n");
    for (size_t i = 0; i < r->n_series; i++) {
        const char *formula = hn_rep_metric_formula(r->series[i].metric);
        size_t k = 0;
        while (k < n && strcmp(seen[k], r->series[i].metric) != 0) k++;
        if (!formula || k < n || n == HN_REP_METRICS) continue;
        seen[n++] = r->series[i].metric;
        text2(f, "<div><dt>", hn_rep_metric_name(r->series[i].metric), ", ");
        text2(f, "", hn_rep_unit(r->series[i].unit), "</dt><dd>");
        text2(f, "", formula, "</dd></div>\n");
    }
    put(f, "</dl>\n<table class=\"fold\"><caption>Read for this report</caption><thead><tr><th>File</th><th "
           "class=\"r\">Lines</th><th class=\"r\">Records</th><th class=\"r\">Skipped</th><th class=\"r\">Seen "
           "before</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < r->n_files; i++) {
        const hn_rep_file *file = &r->files[i];
        text2(f, "<tr><th scope=\"row\" class=\"all\">", file->name, "");
        if (file->why[0]) text2(f, "<small>", file->why, "</small>");
        fprintf(f,
                "</th><td class=\"r\" data-h=\"lines\">%zu</td><td class=\"r\" data-h=\"records\">%zu</td><td "
                "class=\"r\" data-h=\"skipped\">%zu</td><td class=\"r\" data-h=\"seen before\">%zu</td></tr>\n",
                file->lines, file->records, file->broken + file->foreign, file->twice);
    }
    put(f, "</tbody></table></section>\n</main>\n<footer><p>Written by <code>hone lab report</code> ");
    text(f, hone_version());
    put(f, ". This page loads nothing and runs nothing.</p></footer>\n</body></html>\n");
}

static void contents(FILE *f, const hn_report *r, const char *body)
{
    static const struct {
        const char *id, *name;
    } all[] = { { "newest", "Newest run" }, { "verdicts", "Verdicts" },       { "measurements", "Measurements" },
                { "samples", "Samples" },   { "history", "History" },         { "training", "Training" },
                { "gaps", "Gaps" },         { "roofline", "Roofline" },       { "memory", "Memory" },
                { "profile", "Profile" },   { "environment", "Environment" }, { "reading", "How to read this" } };
    char mark[64];
    put(f, "<nav aria-label=\"Contents\">");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(mark, sizeof mark, "<section id=\"%s\">", all[i].id);
        if (strstr(body, mark)) fprintf(f, "<a href=\"#%s\">%s</a>\n", all[i].id, all[i].name);
    }
    put(f, "</nav>\n");
}

bool hn_rep_write_html(FILE *f, const hn_report *r)
{
    size_t n;
    hn_os_text t; /* first, so that the contents name what there is */
    if (!hn_os_text_open(&t)) return false;
    FILE *b = t.f;
    tiles(b, r);
    verdicts(b, r);
    measurements(b, r);
    samples(b, r);
    history(b, r);
    hn_rep_html_training(b, r);
    gaps(b, r);
    roofline(b, r);
    memory(b, r);
    profiles(b, r);
    environments(b, r);
    foot(b, r);
    char *body = hn_os_text_close(&t, &n);
    if (body) {
        head(f, r);
        state(f, r);
        contents(f, r, body);
        put(f, "</header>\n<main>\n");
        fwrite(body, 1, n, f);
    }
    free(body);
    return body != NULL;
}
