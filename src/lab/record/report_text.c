/* The report for other programs and for plain text: Markdown, CSV (RFC 4180, every statistic of every record)
 * and JSON (schema hone.report/1). */
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

enum { MAX_MD = 200 };

/* ---- Markdown ------------------------------------------------------------------------------- */

static void md2(FILE *f, const char *before, const char *s, const char *after)
{
    fputs(before, f);
    hn_rep_md(f, s);
    fputs(after, f);
}

static void md_number(FILE *f, const hn_rep_metric *m)
{
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
    fputs(hn_rep_med(a, m->median, m->lo, m->hi), f);
    if (isfinite(m->lo) && isfinite(m->hi))
        fprintf(f, " (%s \xE2\x80\x93 %s)", hn_rep_bound(b, m->lo, m->lo, m->hi), hn_rep_bound(c, m->hi, m->lo, m->hi));
    else fputs(" (no interval)", f);
}

static void md_verdicts(FILE *f, const hn_report *r, bool unpaired)
{
    size_t shown = 0;
    if (hn_rep_n_abs(r, unpaired) == 0) return;
    fputs(unpaired
              ? "\n## Verdicts against stored samples\n\nSpeed now against speed then, measured at another time, so "
                "that what drifted in between is in it; the interval is that of the shifts which the test does not "
                "reject.\n\n| Verdict | What | A | B | Change | Interval | Of | Margin | Samples "
                "|\n|---|---|---|---|--:|--:|--:|--:|--:|\n"
              : "\n## Verdicts\n\nSpeed of B against speed of A, measured in turns; 95 % interval of the median "
                "ratio.\n\n| Verdict | What | A | B | Change | Interval | Margin | Rounds "
                "|\n|---|---|---|---|--:|--:|--:|--:|\n",
          f);
    for (size_t i = 0; i < r->n_abs && shown < MAX_MD; i++) {
        const hn_rep_ab *a = &r->abs[i];
        char x[HN_REP_NUM], lo[HN_REP_NUM], hi[HN_REP_NUM], e[HN_REP_NUM];
        if (a->unpaired != unpaired) continue;
        shown++;
        fprintf(f, "| %s | ", a->word);
        md2(f, "", a->id, " ");
        md2(f, "", strcmp(a->metric, a->id) == 0 ? "" : hn_rep_metric_name(a->metric), " | ");
        md2(f, "", a->a, " | ");
        md2(f, "", a->b, " | ");
        fprintf(f, "%s | %s to %s | ", hn_rep_pct(x, a->ratio), hn_rep_pct(lo, a->lo), hn_rep_pct(hi, a->hi));
        if (unpaired && isfinite(a->coverage)) fprintf(f, "%s %%", hn_rep_num(e, 100 * a->coverage, 3));
        if (unpaired) fputs(" | ", f);
        fprintf(f, "%s %% | %zu |\n", hn_rep_num(e, 100 * a->margin, 2), a->n_counted);
    }
}

/* False: not all rows are shown. */
static bool md_table(FILE *f, const hn_report *r)
{
    size_t shown = 0;
    fputs("| What | Configuration | Metric | Median | Unit | Allocations | Samples | State "
          "|\n|---|---|---|--:|---|--:|--:|---|\n",
          f);
    for (size_t i = 0; i < r->n_rows; i++) {
        hn_rep_metric m[HN_REP_METRICS];
        json_t *o = r->rows[i].record, *valid = json_object_get(o, "valid");
        size_t n = hn_rep_metrics(m, o);
        for (size_t k = 0; k < n && k < 5 && shown < MAX_MD; k++, shown++) {
            bool bad = json_is_false(valid);
            char allocs[64];
            md2(f, "| ", hn_record_id(o), " | ");
            md2(f, "", r->rows[i].label, " | ");
            md2(f, "", hn_rep_metric_name(m[k].name), " | ");
            if (bad) fputs("~~", f);
            md_number(f, &m[k]);
            if (bad) fputs("~~", f);
            md2(f, " | ", m[k].unit, " | ");
            hn_allocs_text(allocs, sizeof allocs, hn_record_allocs(o, m[k].name));
            json_t *met = json_object_get(o, "target_met");
            fprintf(f, "%s | %zu | %s", allocs, m[k].n,
                    bad                   ? "INVALID"
                    : json_is_true(valid) ? "valid"
                                          : "not checked");
            if (json_is_boolean(met) && !bad)
                md2(f, "; target ", hn_record_text(o, "target"), json_is_true(met) ? ": met" : ": not met");
            fputs(" |\n", f);
        }
    }
    return shown < MAX_MD;
}

static void md_measurements(FILE *f, const hn_report *r)
{
    if (r->n_rows == 0) return;
    fputs("\n## Measurements\n\nThe newest of each configuration: median (95 % interval of the median).\n\n", f);
    if (!md_table(f, r)) fputs("\nMore rows are in the CSV and JSON reports.\n", f);
}

void hn_rep_write_md_table(FILE *f, const hn_report *r)
{
    if (!md_table(f, r)) fputs("\nMore rows are in the CSV and JSON.\n", f);
}

/* Each run of what was measured more than once, in time order, beside the one before: the history as a table. */
static void md_runs(FILE *f, const hn_report *r)
{
    size_t shown = 0;
    for (size_t i = 0; i < r->n_series; i++) {
        const hn_series *s = r->lines[i].s;
        for (size_t k = 0; s->n > 1 && k < s->n && shown < MAX_MD; k++, shown++) {
            const hn_point *p = &s->points[k];
            char when[48], a[HN_REP_NUM], c[HN_REP_NUM];
            if (!shown)
                fputs(
                    "\n## Runs\n\nEach run beside the one before it; not measured side by side, so a difference can be "
                    "the machine's.\n\n| Series | When | Title | Change | Median | Unit | To the one before "
                    "|\n|---|---|---|---|--:|---|--:|\n",
                    f);
            hn_rep_when(when, sizeof when, hn_record_text(p->record, "ts"), true);
            md2(f, "| ", r->lines[i].label, " | ");
            md2(f, "", when, " | ");
            md2(f, "", hn_record_text(p->record, "title"), " | ");
            md2(f, "", hn_record_text(p->record, "change"), " | ");
            md2(f, hn_rep_med(a, p->median, p->ci95[0], p->ci95[1]), "", " | ");
            md2(f, "", s->unit, " | ");
            fprintf(f, "%s |\n", k ? hn_rep_pct(c, p->median / s->points[k - 1].median) : "");
        }
    }
    if (shown == MAX_MD) fputs("\nMore runs are in the CSV and JSON reports.\n", f);
}

/* ---- where the time goes: the newest profile ---- */

const hn_rep_phase hn_rep_phases[HN_REP_PHASES] = {
    { "prefill", "Prefill" },   { "decode", "Decode" }, { "forward", "Forward" },
    { "backward", "Backward" }, { "update", "Update" },
};

static void md_phase(FILE *f, json_t *phase, const char *name)
{
    json_t *ops = json_object_get(phase, "ops"), *op;
    size_t i;
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM], d[HN_REP_NUM];
    if (json_array_size(ops) == 0) return;
    fprintf(f,
            "\n%s: %s ms.\n\n| Operation | Weights | ms | Of the time | Calls | GB/s | Of the roof |\n"
            "|---|---|--:|--:|--:|--:|--:|\n",
            name, hn_rep_num(a, hn_record_number(phase, "whole_ms"), 4));
    json_array_foreach(ops, i, op)
    {
        double gb_s = hn_record_number(op, "gb_s"), roof = hn_record_number(op, "roof_pct");
        md2(f, "| ", hn_record_text(op, "op"), " | ");
        md2(f, "", hn_record_text(op, "type"), " | ");
        fprintf(f, "%s | %s %% | %lld | %s | %s%s |\n", hn_rep_num(a, hn_record_number(op, "ms"), 3),
                hn_rep_num(b, hn_record_number(op, "pct"), 3), hn_rep_int(op, "calls"),
                isfinite(gb_s) ? hn_rep_num(c, gb_s, 3) : "", isfinite(roof) ? hn_rep_num(d, roof, 2) : "",
                isfinite(roof) ? " %" : "");
    }
    fprintf(f, "| between operations | | %s | %s %% | | | |\n", hn_rep_num(a, hn_record_number(phase, "rest_ms"), 3),
            hn_rep_num(b, hn_record_number(phase, "rest_pct"), 3));
}

static void md_profile(FILE *f, const hn_report *r)
{
    size_t n = json_array_size(r->profiles);
    json_t *o = json_array_get(r->profiles, n ? n - 1 : 0);
    char when[48];
    if (!o) return;
    hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
    md2(f, "\n## Where the time goes\n\n", hn_record_text(json_object_get(o, "model"), "path_name"), ", ");
    md2(f, "", when, "; operations summed over all layers.\n");
    if (json_is_false(json_object_get(o, "valid")))
        md2(f, "\n**Invalid**: ", hn_record_text(o, "invalid_reason"), "\n");
    for (int i = 0; i < HN_REP_PHASES; i++)
        md_phase(f, json_object_get(o, hn_rep_phases[i].key), hn_rep_phases[i].title);
}

static void md_history(FILE *f, const hn_report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->n_series; i++) {
        const hn_rep_line *l = &r->lines[i];
        for (size_t k = 0; k < l->steps.n; k++) {
            const hn_step *s = &l->steps.step[k];
            char when[48], a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM];
            if (!any)
                fputs("\n## Steps in the history\n\nNot measured side by side: a step can be the machine's.\n\n| "
                      "Series | Since | Before | After | Unit | Change |\n|---|---|--:|--:|---|--:|\n",
                      f);
            any = true;
            hn_rep_when(when, sizeof when, hn_record_text(l->s->points[s->at].record, "ts"), true);
            md2(f, "| ", l->label, " | ");
            md2(f, "", when, " | ");
            fprintf(f, "%s | %s | ", hn_rep_num(a, s->before, 4), hn_rep_num(b, s->after, 4));
            md2(f, "", l->s->unit, " | ");
            fprintf(f, "%s %s |\n", hn_rep_pct(c, s->after / s->before),
                    (s->after > s->before) == l->s->higher ? "better" : "worse");
        }
    }
}

void hn_rep_write_md(FILE *f, const hn_report *r)
{
    char when[48];
    hn_rep_when(when, sizeof when, r->date, true);
    md2(f, "# ", r->title, "\n\n");
    md2(f, "", when, ". ");
    fprintf(f, "%zu measurements: %zu valid, %zu invalid, %zu not checked. %zu comparisons", json_array_size(r->bench),
            r->n_valid, r->n_invalid, r->n_unchecked, r->n_abs);
    for (int v = 0; v < HN_REP_VERDICTS; v++)
        if (r->n_verdict[v]) fprintf(f, ", %zu %s", r->n_verdict[v], hn_rep_verdict_word(v));
    fputs(".\n", f);
    if (r->n_alerts) fputs("\n## Attention\n\n", f);
    for (size_t i = 0; i < r->n_alerts && i < MAX_MD; i++) {
        fprintf(f, "- **%s**", hn_rep_alert_word(r->alerts[i].kind));
        md2(f, " ", r->alerts[i].what, ": ");
        md2(f, "", r->alerts[i].text, "\n");
    }
    md_verdicts(f, r, false);
    md_verdicts(f, r, true);
    md_measurements(f, r);
    md_runs(f, r);
    md_history(f, r);
    md_profile(f, r);
    hn_rep_md_training(f, r);
    fputs("\n## Files\n\n| File | Lines | Records | Skipped | Seen before |\n|---|--:|--:|--:|--:|\n", f);
    for (size_t i = 0; i < r->n_files; i++) {
        md2(f, "| ", r->files[i].name, " | ");
        fprintf(f, "%zu | %zu | %zu | %zu |\n", r->files[i].lines, r->files[i].records,
                r->files[i].broken + r->files[i].foreign, r->files[i].twice);
    }
}

/* ---- CSV --------------------------------------------------------------------------------------- */

static void cell(FILE *f, const char *s)
{
    hn_rep_csv(f, s);
    fputc(',', f);
}
static void number(FILE *f, double x, bool last)
{
    char t[40] = "";
    if (isfinite(x)) snprintf(t, sizeof t, "%.6g", x);
    fprintf(f, "%s%s", t, last ? "\r\n" : ",");
}

/* The configuration in one cell: "cpu=avx2;threads=2" */
static void config_cell(FILE *f, json_t *config)
{
    hn_os_text m;
    const char *key, *between = "";
    json_t *v;
    if (!hn_os_text_open(&m)) {
        hn_json_lose();
        return;
    }
    json_object_foreach(config, key, v)
    {
        char *t = json_is_string(v)
                      ? strdup(json_string_value(v))
                      : hn_json_text(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
        if (!t) hn_json_lose();
        fprintf(m.f, "%s%s=%s", between, key, t ? t : "");
        between = ";";
        free(t);
    }
    char *all = hn_os_text_close(&m, NULL);
    if (!all) hn_json_lose();
    cell(f, all ? all : "");
    free(all);
}

static void csv_head(FILE *f, json_t *o, const char *kind, const char *id)
{
    json_t *m = json_object_get(o, "model"), *git = json_object_get(o, "git");
    const char *record = hn_record_text(o, "record");
    cell(f, kind);
    cell(f, *record || strcmp(kind, "bench") != 0      ? record
            : strcmp(hn_record_text(o, "id"), id) != 0 ? hn_record_text(o, "id")
                                                       : "");
    cell(f, id);
    cell(f, hn_record_text(o, "ts"));
    cell(f, hn_record_text(o, "title"));
    cell(f, hn_record_text(o, "change"));
    cell(f, hn_record_text(git, "commit"));
    cell(f, json_is_true(json_object_get(git, "dirty"))    ? "yes"
            : json_is_false(json_object_get(git, "dirty")) ? "no"
                                                           : "");
    cell(f, hn_record_text(json_object_get(o, "env"), "hash"));
    cell(f, hn_record_text(m, "path_name"));
    cell(f, hn_record_text(m, "fingerprint"));
    config_cell(f, json_object_get(o, "config"));
}

/* The last four cells. */
static void csv_allocs(FILE *f, json_t *allocs)
{
    cell(f, hn_record_text(allocs, "op"));
    number(f, hn_record_number(allocs, "n"), false);
    number(f, hn_record_number(allocs, "bytes"), false);
    number(f, hn_record_number(allocs, "freed"), true);
}

static void csv_bench(FILE *f, json_t *o)
{
    static const char *const numbers[] = { "ci_coverage", "mean", "sd",  "cv",  "mad", "min",
                                           "max",         "p90",  "p95", "p99", NULL };
    const char *metric, *unit;
    bool higher;
    json_t *valid = json_object_get(o, "valid"), *roof = json_object_get(o, "roofline");
    for (void *at = NULL; hn_record_next(o, &at, &metric, &unit, &higher);) {
        json_t *s = hn_record_stats(o, metric), *ci = json_object_get(s, "ci95"), *out = json_object_get(s, "outliers");
        if (!json_is_object(s)) continue;
        csv_head(f, o, "bench", hn_record_id(o));
        cell(f, metric);
        cell(f, unit);
        cell(f, higher ? "higher" : "lower");
        number(f, hn_record_number(s, "n"), false);
        number(f, hn_record_number(s, "median"), false);
        number(f, hn_rep_at_i(ci, 0), false);
        number(f, hn_rep_at_i(ci, 1), false);
        for (const char *const *k = numbers; *k; k++) number(f, hn_record_number(s, *k), false);
        for (size_t k = 0; k < 4; k++) number(f, hn_rep_at_i(out, k), false);
        number(f,
               strcmp(metric, "prefill_tok_s") == 0              ? hn_record_number(roof, "prefill_pct")
               : !*metric || strcmp(metric, "decode_tok_s") == 0 ? hn_record_number(roof, "pct")
                                                                 : NAN,
               false);
        cell(f, hn_record_text(o, "quality"));
        cell(f, json_is_true(valid) ? "valid" : json_is_false(valid) ? "invalid" : "not checked");
        cell(f, hn_record_text(o, "invalid_reason"));
        fputs(",,,,,,,", f); /* of comparisons */
        csv_allocs(f, hn_record_allocs(o, metric));
    }
}

static void csv_ab(FILE *f, const hn_rep_ab *a)
{
    csv_head(f, a->record, "ab", a->id);
    cell(f, a->metric);
    cell(f, a->unit);
    cell(f, hn_record_text(a->record, "better"));
    number(f, (double)a->n_counted, false);
    fputs(",,,", f); /* of the statistics of one side … */
    number(f, a->coverage, false);
    fputs(",,,,,,,,,,,,,,,,,", f); /* … but for what the interval covers */
    cell(f, a->a);
    cell(f, a->b);
    number(f, a->ratio, false);
    number(f, a->lo, false);
    number(f, a->hi, false);
    number(f, a->margin, false);
    cell(f, a->word);
    csv_allocs(f, NULL);
}

void hn_rep_write_csv(FILE *f, const hn_report *r)
{
    size_t i;
    json_t *o;
    fputs("kind,record,id,ts,title,change,commit,dirty,env,model,fingerprint,config,metric,unit,better,n,median,ci95_"
          "low,ci95_high,ci_coverage,mean,sd,cv,mad,min,max,p90,p95,p99,"
          "outliers_low_severe,outliers_low_mild,outliers_high_mild,outliers_high_severe,roof_pct,quality,valid,"
          "invalid_reason,a,b,ratio,ratio_low,ratio_high,margin,verdict,alloc_op,allocs,alloc_bytes,freed_bytes\r\n",
          f);
    json_array_foreach(r->bench, i, o) csv_bench(f, o);
    for (i = 0; i < r->n_abs; i++) csv_ab(f, &r->abs[i]);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static json_t *counts(const hn_report *r)
{
    json_t *v = json_object(), *a = json_object();
    for (int i = 0; i < HN_REP_VERDICTS; i++)
        json_object_set_new(v, hn_rep_verdict_word(i), json_integer((json_int_t)r->n_verdict[i]));
    for (int i = 0; i < HN_REP_ALERTS; i++)
        json_object_set_new(a, hn_rep_alert_word(i), json_integer((json_int_t)r->n_of[i]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "records", (json_int_t)json_array_size(r->bench),
                     "comparisons", (json_int_t)r->n_abs, "valid", (json_int_t)r->n_valid, "invalid",
                     (json_int_t)r->n_invalid, "unchecked", (json_int_t)r->n_unchecked, "verdicts", v, "attention", a);
}

static json_t *pair(double lo, double hi)
{
    return isfinite(lo) && isfinite(hi) ? json_pack("[o, o]", hn_lab_num(lo), hn_lab_num(hi)) : json_null();
}

static json_t *line_json(const hn_rep_line *l)
{
    json_t *points = json_array();
    for (size_t i = 0; i < l->s->n; i++) {
        const hn_point *p = &l->s->points[i];
        const char *record = hn_record_text(p->record, "record");
        json_array_append_new(
            points, json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "ts", hn_lab_str(hn_record_text(p->record, "ts")),
                              "record", *record ? json_string(record) : json_null(), "title",
                              hn_lab_str(hn_record_text(p->record, "title")), "median", hn_lab_num(p->median), "ci95",
                              pair(p->ci95[0], p->ci95[1]), "n", (json_int_t)p->n));
    }
    json_t *o = json_object();
    json_object_set_new(o, "id", hn_lab_str(l->s->id));
    json_object_set_new(o, "metric", l->s->metric[0] ? hn_lab_str(l->s->metric) : json_null());
    json_object_set_new(o, "label", hn_lab_str(l->label));
    json_object_set_new(o, "unit", hn_lab_str(l->s->unit));
    json_object_set_new(o, "better", json_string(l->s->higher ? "higher" : "lower"));
    json_object_set_new(o, "invalid", json_integer((json_int_t)l->s->n_invalid));
    json_object_set_new(o, "points", points);
    json_object_set_new(o, "steps", l->steps.n ? hn_steps_json(&l->steps) : json_null());
    return o;
}

static json_t *ab_json(const hn_rep_ab *a)
{
    const char *record = hn_record_text(a->record, "record");
    json_t *o = json_object();
    json_object_set_new(o, "record", *record ? json_string(record) : json_null());
    json_object_set_new(o, "ts", hn_lab_str(hn_record_text(a->record, "ts")));
    json_object_set_new(o, "id", hn_lab_str(a->id));
    json_object_set_new(o, "metric", hn_lab_str(a->metric));
    json_object_set_new(o, "a", hn_lab_str(a->a));
    json_object_set_new(o, "b", hn_lab_str(a->b));
    json_object_set_new(o, "verdict", json_string(a->word));
    json_object_set_new(o, "ratio", hn_lab_num(a->ratio));
    json_object_set_new(o, "ci95", a->unpaired ? json_null() : pair(a->lo, a->hi));
    json_object_set_new(o, "ci", pair(a->lo, a->hi));
    json_object_set_new(o, "coverage", hn_lab_num(a->coverage));
    json_object_set_new(o, "margin", hn_lab_num(a->margin));
    json_object_set_new(o, "rounds", json_integer((json_int_t)a->n_counted));
    json_object_set_new(o, "paired", json_boolean(!a->unpaired));
    json_object_set_new(o, "voided", json_integer((json_int_t)a->n_voided));
    json_object_set_new(o, "note", *a->note ? hn_lab_str(a->note) : json_null());
    return o;
}

json_t *hn_rep_json(const hn_report *r)
{
    json_t *o = json_object(), *files = json_array(), *alerts = json_array(), *verdicts = json_array(),
           *series = json_array();
    for (size_t i = 0; i < r->n_files; i++) {
        const hn_rep_file *f = &r->files[i];
        json_array_append_new(files,
                              json_pack("{s:o, s:I, s:I, s:I, s:I, s:o}", "name", hn_lab_str(f->name), "lines",
                                        (json_int_t)f->lines, "records", (json_int_t)f->records, "skipped",
                                        (json_int_t)(f->broken + f->foreign), "seen_before", (json_int_t)f->twice,
                                        "first_skipped", f->why[0] ? hn_lab_str(f->why) : json_null()));
    }
    for (size_t i = 0; i < r->n_alerts; i++) {
        const hn_rep_alert *a = &r->alerts[i];
        json_array_append_new(alerts, json_pack("{s:s, s:o, s:o, s:o}", "kind", hn_rep_alert_word(a->kind), "what",
                                                hn_lab_str(a->what), "text", hn_lab_str(a->text), "ts",
                                                a->ts[0] ? hn_lab_str(a->ts) : json_null()));
    }
    for (size_t i = 0; i < r->n_abs; i++) json_array_append_new(verdicts, ab_json(&r->abs[i]));
    for (size_t i = 0; i < r->n_series; i++) json_array_append_new(series, line_json(&r->lines[i]));
    json_object_set_new(o, "schema", json_string(HN_REPORT_SCHEMA));
    json_object_set_new(o, "title", hn_lab_str(r->title));
    json_object_set_new(o, "date", hn_lab_str(r->date));
    json_object_set_new(o, "summary", counts(r));
    json_object_set_new(o, "attention", alerts);
    json_object_set_new(o, "verdicts", verdicts);
    json_object_set_new(o, "series", series);
    if (json_array_size(r->training)) json_object_set_new(o, "training", hn_rep_json_training(r));
    json_object_set_new(o, "files", files);
    return o;
}
