/* hone lab history: what was measured over time, and where it changed. Owns words; levels
 * and steps are lab's. */
#include "cli/lab/gate_settings.h"
#include "lab/stats/changes.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <fnmatch.h>
#include <stdlib.h>

static const hn_opt opts[] = {
    HN_OPT("id", NULL, STR, "PATTERN", "only benches whose id matches, as in 'kern.gemv.*'", .repeat = true),
    HN_OPT("metric", NULL, STR, "NAME", "only this metric", .repeat = true),
    HN_OPT("changes", NULL, FLAG, NULL, "only series in which something changed"),
    HN_OPT_END,
};
static const hn_opt_group group = { "History", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static bool among(const hn_cli *cli, const char *option, const char *value)
{
    size_t n = hn_opts_count(cli->opts, option);
    for (size_t i = 0; i < n; i++)
        if (fnmatch(hn_opts_nth(cli->opts, option, i), value, 0) == 0) return true;
    return n == 0;
}

/* The newest points, as many as steps are looked for in. */
static size_t newest(const hn_series *s) { return s->n > HN_STEP_POINTS ? s->n - HN_STEP_POINTS : 0; }

static hone_status steps_of(hn_steps *out, const hn_series *s, hone_error *err)
{
    size_t from = newest(s), n = s->n - from;
    double *x = malloc((n + 1) * sizeof *x);
    if (!x) return HN_FAIL(err, HONE_E_NOMEM, "%zu points", n);
    for (size_t i = 0; i < n; i++) x[i] = s->points[from + i].median;
    hone_status st = hn_steps_find(out, x, n, err);
    free(x);
    for (size_t i = 0; i < out->n; i++) {
        out->step[i].at += from;
        out->step[i].first += from;
        out->step[i].last += from;
    }
    return st;
}

static void when(char *dst, size_t cap, json_t *r)
{
    json_t *git = json_object_get(r, "git");
    snprintf(dst, cap, "%.16s%s%.10s%s", hn_record_text(r, "ts"), hn_record_text(git, "commit")[0] ? " " : "",
             hn_record_text(git, "commit"), json_is_true(json_object_get(git, "dirty")) ? "+dirty" : "");
}

static void print_series(const hn_series *s, const hn_steps *st)
{
    json_t *last = s->points[s->n - 1].record, *c = json_object_get(last, "config");
    const char *name = hn_record_text(json_object_get(last, "model"), "path_name"),
               *variant = hn_record_text(c, "variant");
    char at[80];
    hn_out_printf("%s%s%s  %s%s%s, env %s: %zu run%s", s->id, *s->metric ? " " : "", s->metric,
                  name[0] ? name : "no model", variant[0] ? ", " : "", variant,
                  hn_record_text(json_object_get(last, "env"), "hash"), s->n, s->n == 1 ? "" : "s");
    if (s->n_invalid) hn_out_printf(" (%zu invalid left out)", s->n_invalid);
    double now = s->points[s->n - 1].median, before = s->n > 1 ? s->points[s->n - 2].median : NAN;
    if (isfinite(before)) hn_out_printf(", before %.5g", before);
    hn_out_printf(", now %.5g %s", now, s->unit);
    if (before > 0 && isfinite(now)) hn_out_printf(" (%+.1f %%)", 100 * (now / before - 1));
    if (s->n > 2) hn_out_printf(", noise %.2g%s", st->logs ? 100 * st->noise : st->noise, st->logs ? " %" : "");
    hn_out_printf("\n");
    for (size_t i = 0; i < st->n; i++) {
        const hn_step *k = &st->step[i];
        bool better = (k->after > k->before) == s->higher;
        json_t *r = s->points[k->at].record;
        when(at, sizeof at, r);
        hn_out_printf("  %-6s %s  %.5g → %.5g", better ? "better" : "WORSE", at, k->before, k->after);
        if (isfinite(k->ratio)) hn_out_printf(" (%+.1f %%)", 100 * (k->ratio - 1));
        hn_out_printf("  p %.3f", k->p);
        if (k->first != k->last) hn_out_printf("  run %zu, or any of %zu to %zu", k->at + 1, k->first + 1, k->last + 1);
        else hn_out_printf("  run %zu", k->at + 1);
        if (hn_record_text(r, "title")[0]) hn_out_printf("  %s", hn_record_text(r, "title"));
        if (hn_record_text(r, "change")[0]) hn_out_printf(": %s", hn_record_text(r, "change"));
        hn_out_printf("\n");
    }
}

static json_t *series_json(const hn_series *s, const hn_steps *st)
{
    json_t *o = json_object(), *points = json_array(), *last = s->points[s->n - 1].record;
    json_object_set_new(o, "id", hn_lab_str(s->id));
    json_object_set_new(o, "metric", *s->metric ? hn_lab_str(s->metric) : json_null());
    json_object_set_new(o, "unit", hn_lab_str(s->unit));
    json_object_set_new(o, "better", json_string(s->higher ? "higher" : "lower"));
    for (const char *const *k = (const char *const[]){ "model", "config", NULL }; *k; k++) {
        json_t *v = json_object_get(last, *k);
        json_object_set_new(o, *k, v ? json_incref(v) : json_null());
    }
    json_object_set_new(o, "env", hn_lab_str(hn_record_text(json_object_get(last, "env"), "hash")));
    for (size_t i = 0; i < s->n; i++) {
        const hn_point *p = &s->points[i];
        json_t *git = json_object_get(json_object_get(p->record, "git"), "commit");
        json_array_append_new(
            points, json_pack("{s:o, s:o, s:o, s:[o,o], s:I, s:o}", "ts", hn_lab_str(hn_record_text(p->record, "ts")),
                              "commit", git ? json_incref(git) : json_null(), "median", hn_lab_num(p->median), "ci95",
                              hn_lab_num(p->ci95[0]), hn_lab_num(p->ci95[1]), "n", (json_int_t)p->n, "title",
                              hn_lab_str(hn_record_text(p->record, "title"))));
    }
    json_object_set_new(o, "points", points);
    json_object_set_new(o, "invalid", json_integer((json_int_t)s->n_invalid));
    json_object_set_new(o, "changes", hn_steps_json(st));
    return o;
}

/* Records of all files; what was skipped is said on stderr. */
static int read_files(const hn_cli *cli, json_t *records)
{
    char base[4096], path[4200], say[400];
    hone_error err;
    int n = hn_opts_n_args(cli->opts);
    for (int i = 0; i < (n ? n : 1); i++) {
        hn_history h;
        if (hn_record_base(base, sizeof base, n ? hn_opts_arg(cli->opts, i) : "local", &err) != HONE_OK)
            return hn_cli_usage(cli, "%s", err.message);
        snprintf(path, sizeof path, "%s.jsonl", base);
        if (hn_history_read_until(&h, path, hn_abort_fn, &err) != HONE_OK) return hn_lab_code(hn_cli_fail(&err));
        hn_history_say(&h, say, sizeof say);
        if (say[0]) hn_cli_note("%s: %s", HN_ESC(path, strlen(path)), say);
        json_array_extend(records, h.records);
        hn_history_free(&h);
    }
    return 0;
}

static int show(const hn_cli *cli, const hn_series *s, size_t n, json_t *all)
{
    size_t shown = 0, changes = 0;
    hone_error err;
    for (size_t i = 0; i < n; i++) {
        hn_steps st;
        if (s[i].n == 0 || !among(cli, "id", s[i].id) || !among(cli, "metric", s[i].metric)) continue;
        if (hn_interrupted()) return hn_cli_error(HN_EXIT_INTERRUPTED, "interrupted");
        if (steps_of(&st, &s[i], &err) != HONE_OK) return hn_cli_fail(&err);
        if (st.n > 0 || !hn_opts_flag(cli->opts, "changes")) {
            if (cli->json) json_array_append_new(all, series_json(&s[i], &st));
            else print_series(&s[i], &st);
            shown++;
        }
        changes += st.n;
        hn_steps_free(&st);
    }
    if (!cli->json)
        hn_out_printf("%s%zu series, %zu change%s\n", shown ? "\n" : "", n, changes, changes == 1 ? "" : "s");
    return 0;
}

static int run(const hn_cli *cli)
{
    json_t *records = json_array(), *all = json_array();
    hn_series *s = NULL;
    size_t n = 0;
    hone_error err;
    int rc = read_files(cli, records);
    if (rc == 0 && hn_series_of(&s, &n, records, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (rc == 0) rc = show(cli, s, n, all);
    if (rc == 0 && cli->json) {
        json_t *o = hn_json_new("hone.history/1");
        json_object_set(o, "series", all);
        rc = hn_json_print(o);
    }
    hn_series_free(s, n);
    json_decref(records);
    json_decref(all);
    return rc;
}

const hn_command hn_command_lab_history = {
    .name = "lab history",
    .summary = "Show what was measured over time, and where it changed",
    .args = "[FILE…]",
    .max_args = -1,
    .groups = groups,
    .examples = "hone lab history\nhone lab history local --id e2e --metric decode_tok_s\nhone lab history "
                "'runs/nightly' --changes --json\n",
    .run = run,
};
