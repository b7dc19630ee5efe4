/* What hone lab baseline and hone lab gate share: options, tables, words. */
#define _GNU_SOURCE
#include "cli/lab/gate_settings.h"
#include "lab/bench/bench.h"
#include "lab/record/record_read.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TOKENS = 1 << 24 };

static const hn_opt measured_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N", "tokens of the prompt; 0: none", .def = "512", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("n-gen", "-n", I32, "N", "tokens to generate; 0: none", .def = "64", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("depth", "-d", I32, "N", "tokens already in the cache when the prompt comes", .def = "0", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("quality", NULL, CHOICE, "HOW", "the quality hash: full, or quick, which leaves out the long prompt",
           .def = "full", .choices = "full|quick", .forward = HN_FORWARD_QUALITY),
    HN_OPT("bench-arg", NULL, STR, "OPTION", "one more option for hone bench, as --bench-arg=--preset=llama-3.2-1b",
           .repeat = true),
    HN_OPT_END,
};
const hn_opt_group hn_group_measured = { "What is measured", measured_opts };

const char hn_gate_stored[] =
    "the baseline was measured at another time: what drifts between two times does not cancel, and its margin is wide. "
    "hone lab gate --ab measures both sides interleaved and sees far less";

int hn_lab_code(int code) { return code == HN_EXIT_SIGINT ? HN_EXIT_INTERRUPTED : code; }

json_t *hn_gate_args(const hn_cli *cli, bool given)
{
    const hn_opts *o = cli->opts;
    hn_argv a = { 0 };
    json_t *args = json_array();
    hn_opts_forward(o, HN_FORWARD_LENGTHS, true, &a);
    hn_opts_forward(o, HN_FORWARD_SETTINGS, !given, &a);
    hn_opts_forward(o, HN_FORWARD_QUALITY, false, &a); /* programs from before there was a choice have none */
    for (size_t i = 0; i < a.n; i++) json_array_append_new(args, hn_lab_str(a.word[i]));
    for (size_t i = 0; i < hn_opts_count(o, "bench-arg"); i++)
        json_array_append_new(args, hn_lab_str(hn_opts_nth(o, "bench-arg", i)));
    if (a.lost) hn_json_lose();
    hn_argv_free(&a);
    return args;
}

int hn_gate_settings(const hn_cli *cli, json_t *baseline, json_t **out)
{
    hone_error err;
    hone_status st = hn_settings_read(out, json_object_get(baseline, "args"), hn_opts_str(cli->opts, "packed"), &err);
    if (st == HONE_OK && strncmp(hn_record_text(baseline, "quality"), "q2q-", 4) == 0) { /* only equal kinds compare */
        size_t i;
        json_t *arg;
        bool said = false;
        json_array_foreach(*out, i, arg) said = said || hn_argv_is(json_string_value(arg), "quality");
        if (!said) json_array_append_new(*out, json_string("--quality=quick"));
    }
    if (st == HONE_OK) return 0;
    const char *name = json_string_value(json_object_get(baseline, "name"));
    return hn_cli_error(hn_exit_code(st), "baseline %s: %s", name ? name : "?", err.message);
}

json_t *hn_gate_args_kept(json_t *args)
{
    static const char packed[] = "--packed=";
    json_t *kept = json_array(), *a;
    size_t i;
    json_array_foreach(args, i, a)
    {
        const char *s = json_string_value(a),
                   *value = strncmp(s, packed, sizeof packed - 1) == 0 ? s + sizeof packed - 1 : NULL;
        bool file = value && strcmp(value, "auto") != 0 && strcmp(value, "off") != 0;
        if (json_array_append_new(kept, file ? json_string("--packed=given") : json_incref(a)) == 0) continue;
        json_decref(kept);
        return NULL;
    }
    return kept;
}

json_t *hn_gate_ids(const hn_cli *cli, int first)
{
    json_t *ids = json_array();
    for (int i = first; i < hn_opts_n_args(cli->opts); i++)
        json_array_append_new(ids, hn_lab_str(hn_opts_arg(cli->opts, i)));
    if (json_array_size(ids) == 0) json_array_append_new(ids, json_string(hn_bench_plain()->id));
    return ids;
}

int hn_gate_load(const hn_cli *cli, const char *name, json_t **out)
{
    char path[4200], have[600] = "";
    hone_error err;
    char **names;
    size_t n = 0;
    const char *dir = hn_opts_str(cli->opts, "dir");
    if (hn_baseline_path(path, sizeof path, dir, name, &err) != HONE_OK) return hn_cli_usage(cli, "%s", err.message);
    hone_status st = hn_baseline_load(out, path, &err);
    if (st == HONE_OK) return 0;
    if (st != HONE_E_IO) return hn_cli_fail(&err) ? HN_EXIT_FAILURE : 0;
    if (hn_baseline_list(&names, &n, dir, NULL) == HONE_OK) {
        for (size_t i = 0, k = 0; i < n && k + 70 < sizeof have; i++)
            k += (size_t)snprintf(have + k, sizeof have - k, "%s%s", i ? ", " : "", names[i]);
        hn_baseline_list_free(names, n);
    }
    return hn_cli_error(HN_EXIT_FAILURE, "baseline '%s': %s; %s%s", name, err.message,
                        n ? "there are: " : "there is none yet: hone lab baseline save NAME -m MODEL", have);
}

int hn_gate_bytes(const char *model, json_t **out)
{
    hone_error err;
    hn_watch w = { hn_progress_fn, (void *)(uintptr_t) "hashing the model", hn_abort_fn };
    hone_status st = hn_model_bytes(out, model, &w, &err);
    hn_progress_end();
    if (st == HONE_OK) return 0;
    return hn_lab_code(st == HONE_E_IO ? hn_cli_fail_model(&err) : hn_cli_fail(&err));
}

const char *hn_gate_model(const hn_cli *cli, json_t *baseline)
{
    const char *given = hn_opts_str(cli->opts, "model");
    json_t *model = json_object_get(baseline, "model");
    return json_is_null(model) ? NULL : given ? given : json_string_value(json_object_get(model, "path"));
}

static int decimals(double x) { return fabs(x) >= 1000 ? 0 : fabs(x) >= 100 ? 1 : fabs(x) >= 10 ? 2 : 3; }

static const char *plus_minus(char *dst, size_t cap, double x, double half)
{
    int d = decimals(x);
    if (!isfinite(x)) snprintf(dst, cap, "-");
    else if (isfinite(half)) snprintf(dst, cap, "%.*f ± %.*f", d, x, d, half);
    else snprintf(dst, cap, "%.*f ± n/a", d, x);
    return dst;
}

/* Why there is nothing beside a row, once for a record. */
static void print_missing(const hn_baseline_row *r, bool said)
{
    char why[200] = "";
    if (r->near && !said) hn_measurement_differs(why, sizeof why, r->before, r->near);
    hn_out_printf("not measured now%s%s\n", why[0] ? ": " : "", HN_ESC(why, strlen(why)));
}

void hn_gate_print_rows(const hn_baseline_row *rows, size_t n)
{
    hn_out_printf("%-20s %18s %18s %-7s %7s  %-16s %7s %8s   %s\n", "", "baseline", "now", "", "ratio", "interval",
                  "margin", "p", "verdict");
    for (size_t i = 0; i < n; i++) {
        const hn_baseline_row *r = &rows[i];
        char was[64], now[64], ci[40] = "n/a", p[24];
        if ((i == 0 || strcmp(rows[i - 1].id, r->id) != 0) && !*r->metric) hn_out_printf("%s\n", r->id);
        if (isfinite(r->test.ci[0])) snprintf(ci, sizeof ci, "[%.3f, %.3f]", r->test.ci[0], r->test.ci[1]);
        if (r->test.p_same < 1e-4) snprintf(p, sizeof p, "<.0001");
        else snprintf(p, sizeof p, "%.4f", r->test.p_same);
        /* ± is two bytes wide to printf */
        const char *variant = json_string_value(json_object_get(json_object_get(r->before, "config"), "variant"));
        hn_out_printf(
            "%-20s %*s %*s %-7s ",
            *r->metric ? r->metric
            : variant  ? variant
                       : r->unit,
            isfinite(r->median_before) ? 19 : 18, plus_minus(was, sizeof was, r->median_before, r->half_before),
            isfinite(r->median_after) ? 19 : 18, plus_minus(now, sizeof now, r->median_after, r->half_after), r->unit);
        if (!r->after) print_missing(r, i > 0 && rows[i - 1].before == r->before);
        else if (!isfinite(r->test.ratio)) hn_out_printf("no ratio\n");
        else
            hn_out_printf("%7.3f  %-16s %5.1f %% %8s   %s%s\n", r->test.ratio, ci, 100 * r->margin, p,
                          hn_ab_verdict_name(r->verdict), r->gated ? "" : " (shown only)");
        if (r->moved_ms > 0)
            hn_out_printf("%-20s as other parts of its processes took %.1f ms longer than the baseline's: moved, not "
                          "gained\n",
                          "", r->moved_ms);
        if (r->hidden_ms > 0)
            hn_out_printf("%-20s by its own clocks; its processes ran about %.1f ms longer beside what they tell than "
                          "the baseline's: --ab, or longer runs, would show it\n",
                          "", r->hidden_ms);
    }
}

json_t *hn_gate_rows_json(const hn_baseline_row *rows, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, hn_baseline_row_json(&rows[i]));
    return a;
}

void hn_gate_when(char *dst, size_t cap, json_t *b)
{
    const char *ts = json_string_value(json_object_get(b, "ts")),
               *commit = json_string_value(json_object_get(json_object_get(b, "git"), "commit"));
    const char *version = json_string_value(json_object_get(json_object_get(b, "engine"), "version"));
    bool dirty = json_is_true(json_object_get(json_object_get(b, "git"), "dirty"));
    snprintf(dst, cap, "%s, hone %s%s%s%s", ts ? ts : "?", version ? version : "?", commit ? ", commit " : "",
             commit ? commit : "", dirty ? "+dirty" : "");
}

void hn_lab_tell(void *unused, const char *words)
{
    (void)unused;
    hn_err_printf("hone: %s%s", words, words[0] && words[strlen(words) - 1] == '\n' ? "" : "\n");
}
