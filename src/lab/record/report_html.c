/* The page: one HTML file that is also well-formed XML, with its style and drawings inside. It loads
 * nothing (its own policy forbids it), runs no script, and says everything in text and tables
 * as well. Owns what stands where; the numbers are report.c's, the drawings report_plots.c's. */
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

enum { MAX_ALERTS = 30, MAX_VERDICTS = 200, MAX_NOTES = 3 };

/* ---- cells and notes --------------------------------------------------------------------------- */

void hn_html_section(FILE *f, const char *id, const char *title, const char *lead)
{
    fprintf(f, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
    if (lead && *lead) fprintf(f, "<p class=\"lead\">%s</p>\n", lead);
}

void hn_html_left_out(FILE *f, size_t shown, size_t all, const char *what)
{
    if (shown < all)
        fprintf(f, "<p class=\"note\">%zu of %zu %s are shown; CSV and JSON have them all.</p>\n", shown, all, what);
}

void hn_html_number_cell(FILE *f, double median, double lo, double hi)
{
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    fprintf(f, "<b class=\"num\">%s</b>", hn_rep_med(a, median, lo, hi));
    if (isfinite(lo) && isfinite(hi))
        fprintf(f, "<small class=\"num\">%s \xE2\x80\x93 %s</small>", hn_rep_bound(b, lo, lo, hi),
                hn_rep_bound(c, hi, lo, hi));
    else if (isfinite(median)) put(f, "<small>no interval</small>");
}

void hn_html_meter(FILE *f, double pct, const char *what)
{
    char t[HN_REP_NUM];
    if (!isfinite(pct)) put(f, "<small>\xE2\x80\x93</small>");
    else
        fprintf(
            f, "<span class=\"num\"><span class=\"meter\"><i style=\"width:%.0f%%\"></i></span>%s\xE2\x80\xAF%%</span>",
            fmax(0, fmin(100, pct)), hn_rep_num(t, pct, pct < 99.5 ? 2 : 3));
    if (isfinite(pct)) text2(f, " <span class=\"note\">", what, "</span>");
}

void hn_html_state_cell(FILE *f, json_t *record)
{
    json_t *v = json_object_get(record, "valid");
    if (json_is_true(v)) put(f, "<span class=\"v good\">\xE2\x9C\x93 valid</span>");
    else if (json_is_false(v))
        text2(f, "<span class=\"v bad\">\xE2\x9C\x95 invalid</span><small>", hn_record_text(record, "invalid_reason"),
              "</small>");
    else
        text2(f, "<span class=\"v same\">\xE2\x97\x8B not checked</span><small>",
              hn_record_text(record, "invalid_reason"), "</small>");
    json_t *met = json_object_get(record, "target_met");
    if (!json_is_boolean(met)) return;
    if (json_is_true(met)) text2(f, "<small>\xE2\x9C\x93 target met: ", hn_record_text(record, "target"), "</small>");
    else text2(f, "<small class=\"v bad\">\xE2\x9C\x95 target missed: ", hn_record_text(record, "target"), "</small>");
}

void hn_html_notes(FILE *f, json_t *record, const char *before, const char *after)
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
            fprintf(f, "<li><span class=\"v %s\">%s %s</span> <b>%zu</b></li>", hn_rep_verdict_class(v),
                    verdict_mark(v), hn_rep_verdict_word(v), r->n_verdict[v]);
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
    hn_html_left_out(f, shown, r->n_alerts, "findings");
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

/* One axis for the first MAX_VERDICTS of a kind. */
static hn_rep_axis verdict_axis(const hn_report *r, bool unpaired)
{
    double lo = 0.97, hi = 1.03;
    for (size_t i = 0, n = 0; i < r->n_abs && n < MAX_VERDICTS; i++) {
        const hn_rep_ab *a = &r->abs[i];
        if (a->unpaired != unpaired) continue;
        n++;
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
    return axis;
}

static void verdict_heading(FILE *f, bool unpaired)
{
    if (unpaired)
        hn_html_section(
            f, "stored", "Verdicts against stored samples",
            "Speed now against speed then: measured at another time, so that what drifted in between is in it. Bar: "
            "the "
            "interval of the shifts which the test of the samples does not reject, with what it covers beside it; "
            "shaded: the margin. <b>Regressed</b> and <b>improved</b> lie beyond the margin, <b>same</b> within it, "
            "beyond doubt; everything else is <b>inconclusive</b>.");
    else
        hn_html_section(
            f, "verdicts", "Verdicts",
            "Speed of B against speed of A, measured in turns. Small dots: the rounds; bar: 95\xE2\x80\xAF% interval "
            "of their median; shaded: the margin, "
            "which the machine's noise may have widened; darker then: the margin asked for. <b>Regressed</b> and "
            "<b>improved</b> lie wholly outside of the margin, <b>same</b> wholly within the one "
            "asked for; everything else is <b>inconclusive</b>.");
}

static void verdicts(FILE *f, const hn_report *r, bool unpaired)
{
    size_t n = 0, all = hn_rep_n_abs(r, unpaired);
    if (all == 0) return;
    hn_rep_axis axis = verdict_axis(r, unpaired);
    verdict_heading(f, unpaired);
    put(f, "<table class=\"fold\"><thead><tr><th>Compared</th><th>Verdict</th><th class=\"wide\">Ratio</th><th "
           "class=\"r\">Change</th><th class=\"r\">");
    put(f, unpaired ? "Samples" : "Rounds");
    put(f, "</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < r->n_abs && n < MAX_VERDICTS; i++) {
        const hn_rep_ab *a = &r->abs[i];
        if (a->unpaired != unpaired) continue;
        n++;
        char num[HN_REP_NUM];
        const char *name = hn_rep_metric_name(a->metric);
        text2(f, "<tr><th scope=\"row\" class=\"all\">", a->id, "");
        text2(f, *name ? " " : "", strcmp(name, a->id) == 0 ? "" : name, "<small>");
        text2(f, "A ", a->a, "<br/>");
        text2(f, "B ", a->b, "</small></th>");
        fprintf(f, "<td class=\"all\"><span class=\"v %s\">%s %s</span>", hn_rep_verdict_class(a->verdict),
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
        fprintf(f, "</td><td class=\"r\" data-h=\"%s\">%zu", unpaired ? "samples" : "rounds", a->n_counted);
        if (unpaired && isfinite(a->lo)) fprintf(f, "<small>%s</small>", hn_rep_interval(num, a));
        if (a->n_voided) fprintf(f, "<small class=\"num\">%zu voided</small>", a->n_voided);
        if (isfinite(a->margin))
            fprintf(f, "<small class=\"num\">margin %s\xE2\x80\xAF%%</small>", hn_rep_num(num, 100 * a->margin, 2));
        put(f, "</td></tr>\n");
    }
    put(f, "<tr><td class=\"gone\"></td><td class=\"gone\"></td><td class=\"wide\">");
    hn_rep_plot_ratio_axis(f, &axis);
    put(f, "</td><td class=\"gone\"></td><td class=\"gone\"></td></tr>\n</tbody></table>\n");
    hn_html_left_out(f, n, all, "comparisons");
    put(f, "</section>\n");
}

/* ---- foot ------------------------------------------------------------------------------------------------------ */

static void foot(FILE *f, const hn_report *r)
{
    const char *seen[HN_REP_METRICS];
    size_t n = 0;
    hn_html_section(f, "reading", "How to read this", "");
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
    } all[] = { { "newest", "Newest run" },       { "verdicts", "Verdicts" },
                { "stored", "Stored" },           { "measurements", "Measurements" },
                { "samples", "Samples" },         { "history", "History" },
                { "training", "Training" },       { "gaps", "Gaps" },
                { "roofline", "Roofline" },       { "memory", "Memory" },
                { "profile", "Profile" },         { "environment", "Environment" },
                { "reading", "How to read this" } };
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
    verdicts(b, r, false);
    verdicts(b, r, true);
    hn_html_measurements(b, r);
    hn_html_samples(b, r);
    hn_html_history(b, r);
    hn_rep_html_training(b, r);
    hn_html_gaps(b, r);
    hn_html_roofline(b, r);
    hn_html_memory(b, r);
    hn_html_profiles(b, r);
    hn_html_environments(b, r);
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
