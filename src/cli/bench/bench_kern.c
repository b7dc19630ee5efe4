/* hone bench kern.…: single kernels at any shape, chosen by ids and patterns; and the list
 * of all that can be measured. Owns choice and the table; the measuring is lab's. */
#define _GNU_SOURCE
#include "cli/bench/bench_command.h"
#include "lab/inside/kern.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <stdlib.h>

extern const hn_command hn_command_lab;

enum { MAX_COLUMNS = 16, DEFAULT_SAMPLES = 11, QUICK_SAMPLES = 7, MAX_COLUMN = 4096 };

static const hn_opt kern_opts[] = {
    HN_OPT("preset", NULL, STR, "NAME", "the model whose shapes a pattern means (hone synth --list)",
           .def = "llama-3.2-1b"),
    HN_OPT("columns", NULL, STR, "LIST", "columns of products (default: 1,2,4 for gemv, 8,16,64,512 for gemm)"),
    HN_OPT("layout", NULL, CHOICE, "WHICH", "weights as in the file, packed, or each", .def = "both",
           .choices = "plain|packed|both"),
    HN_OPT("quick", NULL, FLAG, NULL,
           "fewer samples, sizes and variants; of single kernels one shape of the common types, 1 and 512 columns"),
    HN_OPT_END,
};
const hn_opt_group hn_group_kern = { "Single kernels (kern.… ids)", kern_opts };

/* How to measure them. */
typedef struct kern_run {
    const hn_cli *cli;
    hn_bench_run *run;
    int32_t columns[MAX_COLUMNS], n_columns; /* 0: by kind */
    int32_t threads[2], n_threads, n_samples;
    bool header;
} kern_run;

/* ---- choice -------------------------------------------------------------------------------- */

/* --quick: one shape of the common types. */
static bool common(const hn_cli *cli, const hn_kern *k)
{
    static const char *const types[] = { ".Q4_K.", ".Q6_K.", ".Q8_0.", ".F16." };
    if (!hn_opts_flag(cli->opts, "quick")) return true;
    bool known = k->kind > HN_KERN_GEMM;
    for (size_t i = 0; i < 4; i++) known = known || strstr(k->id, types[i]);
    return known && (k->kind > HN_KERN_GEMM || (k->n[0] >= 2 * k->n[1] && k->n[0] <= 65536));
}

static bool add_kern(hn_kern_choice *c, const hn_kern *k)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->k[i].id, k->id) == 0) return true;
    hn_kern *grown = realloc(c->k, (c->n + 1) * sizeof *grown);
    if (!grown) return false;
    c->k = grown;
    c->k[c->n++] = *k;
    return true;
}

int hn_kern_choose(const hn_cli *cli, const char *arg, hn_kern_choice *c)
{
    hone_error err;
    hn_kern *all, one;
    size_t n;
    bool pattern = strpbrk(arg, "*?[") != NULL, ok = true;
    hone_status st = pattern ? HONE_E_ARG : hn_kern_parse(&one, arg, &err);
    if (st == HONE_OK) return add_kern(c, &one) ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for the list of kernels");
    hone_error list_err;
    if (hn_kern_list(&all, &n, hn_opts_str(cli->opts, "preset"), &list_err) != HONE_OK)
        return hn_cli_usage(cli, "%s", list_err.message);
    size_t found = 0;
    for (size_t i = 0; i < n && ok; i++)
        if (hn_bench_matches(arg, all[i].id)) {
            found++;
            if (common(cli, &all[i])) ok = add_kern(c, &all[i]);
        }
    free(all);
    if (!ok) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the list of kernels");
    if (found) return 0;
    return pattern ? HN_KERN_NONE : hn_cli_usage(cli, "%s", err.message);
}

static int settings(kern_run *r)
{
    const hn_opts *o = r->cli->opts;
    hone_error err;
    const char *list = hn_opts_str(o, "columns");
    int32_t *ids, all = r->run->env.cores;
    size_t n;
    if (list) {
        if (hn_parse_ids(&ids, &n, list, strlen(list), "--columns", &err) != HONE_OK)
            return hn_cli_usage(r->cli, "%s", err.message);
        for (size_t i = 0; i < n && i < MAX_COLUMNS; i++) r->columns[r->n_columns++] = ids[i];
        bool bad = n > MAX_COLUMNS;
        for (int32_t i = 0; i < r->n_columns; i++) bad = bad || r->columns[i] < 1 || r->columns[i] > MAX_COLUMN;
        free(ids);
        if (bad)
            return hn_cli_usage(r->cli, "--columns %s: expected at most %d numbers of 1 to %d",
                                HN_ESC(list, strlen(list)), MAX_COLUMNS, MAX_COLUMN);
    }
    bool quick = hn_opts_flag(o, "quick");
    if (hn_opts_given(o, "threads")) r->threads[r->n_threads++] = hn_opts_i32(o, "threads");
    else {
        if (!quick && all > 1) r->threads[r->n_threads++] = 1;
        r->threads[r->n_threads++] = all;
    }
    r->n_samples = hn_opts_given(o, "samples") ? hn_opts_i32(o, "samples") : quick ? QUICK_SAMPLES : DEFAULT_SAMPLES;
    if (r->n_samples > HN_KERN_SAMPLES)
        return hn_cli_usage(r->cli, "-r %d: expected at most %d for kernels", r->n_samples, HN_KERN_SAMPLES);
    return 0;
}

static void columns_of(const kern_run *r, const hn_kern *k, const int32_t **cols, int32_t *n)
{
    static const int32_t few[] = { 1, 2, 4 }, many[] = { 8, 16, 64, 512 }, none[] = { 0 };
    bool quick = hn_opts_flag(r->cli->opts, "quick");
    if (k->kind > HN_KERN_GEMM) {
        *cols = none;
        *n = 1;
    } else if (r->n_columns) {
        *cols = r->columns;
        *n = r->n_columns;
    } else if (k->kind == HN_KERN_GEMV) {
        *cols = few;
        *n = quick ? 1 : 3;
    } else {
        *cols = quick ? many + 3 : many;
        *n = quick ? 1 : 4;
    }
}

/* ---- results -------------------------------------------------------------------------------- */

static void print_result(kern_run *r, const hn_kern *k, const hn_kern_result *res)
{
    bool product = k->kind <= HN_KERN_GEMM;
    char cols[16] = "", ci[32] = "n/a", share[48] = "", us[40], rate[40], allocs[24];
    if (!r->header)
        hn_out_printf("%-40s %-6s %4s %3s %12s %10s %10s %-8s %8s  %s\n", "", "layout", "cols", "thr", "us", "± 95 %",
                      "rate", "", "allocs", "of roof");
    r->header = true;
    if (product) snprintf(cols, sizeof cols, "%d", res->config.columns);
    hn_out_printf("%-40s %-6s %4s %3d ", k->id, product ? res->config.packed ? "packed" : "plain" : "", cols,
                  res->config.threads);
    if (isfinite(res->time.ci95[0]))
        snprintf(ci, sizeof ci, "%.1f %%", 100 * hn_stats_half_width(&res->time) / res->time.median);
    if (hn_allocs_missing()) snprintf(allocs, sizeof allocs, "-");
    else snprintf(allocs, sizeof allocs, "%.4g", (double)res->allocs.n / (double)res->calls);
    if (isfinite(res->share)) snprintf(share, sizeof share, "%.0f %% (%s)", 100 * res->share, res->roof);
    if (res->time.n) {
        double half =
            isfinite(res->time.ci95[0]) ? hn_stats_half_width(&res->time) : 0.5 * (res->time.max - res->time.min);
        half /= res->time.median;
        hn_out_printf("%12s %9s %10s %-8s %8s  %s",
                      hn_digits(us, sizeof us, 1e6 * res->time.median, 1e6 * res->time.median * half), ci,
                      hn_digits(rate, sizeof rate, res->rate, res->rate * half), res->unit, allocs, share);
    }
    if (isfinite(res->rmse)) hn_out_printf("  error %.4g", res->rmse);
    if (res->time.n && res->cpu_use < 0.9) hn_out_printf("  noisy: %.0f %% of a CPU each", 100 * res->cpu_use);
    if (res->verdict.state != HN_VALID) hn_out_printf("  INVALID: %s", res->verdict.reason);
    hn_out_printf("\n");
    hn_out_flush();
}

/* ---- the run ----------------------------------------------------------------------------------- */

static hone_status measure_kernel(kern_run *r, const hn_kern *k, hone_error *err)
{
    hn_kern_bench *b;
    const hn_opts *o = r->cli->opts;
    const char *layout = hn_opts_str(o, "layout");
    const int32_t *cols;
    int32_t n_cols;
    hone_status st = hn_kern_open(&b, k, hn_opts_str(o, "cpu"), err);
    if (st != HONE_OK) return st;
    columns_of(r, k, &cols, &n_cols);
    bool each_thread = k->kind <= HN_KERN_WKV6;
    for (int packed = 0; packed < 2; packed++) {
        if (packed ? strcmp(layout, "plain") == 0 || !hn_kern_has_packed(b)
                   : strcmp(layout, "packed") == 0 && hn_kern_has_packed(b))
            continue;
        for (int32_t c = 0; c < n_cols && st == HONE_OK; c++)
            for (int32_t t = 0; t < (each_thread ? r->n_threads : 1) && st == HONE_OK; t++) {
                hn_kern_result res;
                hn_kern_config config = {
                    .threads = r->threads[t], .columns = cols[c], .packed = packed, .n_samples = r->n_samples
                };
                st = hn_kern_measure(&res, b, &config, r->run->no_roof[0] ? NULL : &r->run->peaks, hn_abort_fn, err);
                if (st == HONE_OK) st = hn_bench_add_kern(r->run, NULL, k, &res, NULL, err);
                if (st == HONE_OK && !r->cli->json) print_result(r, k, &res);
            }
    }
    hn_kern_close(b);
    return st;
}

int hn_kern_check(const hn_cli *cli, hn_bench_run *run)
{
    kern_run r = { .cli = cli, .run = run };
    return settings(&r);
}

hone_status hn_kern_run(const hn_cli *cli, hn_bench_run *run, const hn_kern_choice *c, hone_error *err)
{
    kern_run r = { .cli = cli, .run = run };
    hone_status st = settings(&r) ? HN_FAIL(err, HONE_E_ARG, "settings of kernels") : HONE_OK;
    for (size_t i = 0; i < c->n && st == HONE_OK; i++) {
        const hn_bench_entry at = { .id = c->k[i].id, .cost = 0.5f };
        run->at = &at;
        st = hn_bench_step(run, 0) ? HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", at.id)
                                   : measure_kernel(&r, &c->k[i], err);
        run->at = NULL;
        run->cost_done += (double)at.cost;
    }
    return st;
}

/* ---- hone lab list ---------------------------------------------------------------------------------- */

static const char *method_of(char m)
{
    return m == 'K'   ? "calibrated loop"
           : m == 'O' ? "in this process"
           : m == 'P' ? "fresh processes"
           : m == 'S' ? "server"
                      : "training steps";
}

static void print_entries(void)
{
    const hn_bench_entry *e;
    hn_out_printf("%-26s %-9s %-16s %-7s %-14s %s\n", "id", "unit", "method", "better", "suites", "what; target");
    for (size_t i = 0; (e = hn_bench_at(i)); i++) {
        if (e->needs) hn_out_printf("%-26s not in this build: needs %s\n", e->id, e->needs);
        else
            hn_out_printf("%-26s %-9s %-16s %-7s %-14s %s%s%s%s\n", e->id, e->unit, method_of(e->method),
                          e->higher ? "higher" : "lower", e->suites, e->what, e->model ? " (-m)" : "",
                          e->target ? "; target " : "", e->target ? e->target : "");
    }
    hn_out_printf("\nhone bench ID…: ids, groups (tok), patterns ('mem.*'); -m MODEL where (-m) stands. --suite "
                  "quick|full|ci: all of a suite.\n"
                  "Not entries but commands:");
    for (const hn_command *const *c = hn_command_lab.subs; *c; c++)
        hn_out_printf("%s hone %s", c == hn_command_lab.subs ? "" : ",", (*c)->name);
    hn_out_printf("\n\nSingle kernels, at these shapes or any other:\n\n");
}

static json_t *entries_json(void)
{
    json_t *a = json_array();
    const hn_bench_entry *e;
    for (size_t i = 0; (e = hn_bench_at(i)); i++) {
        json_t *o = json_object();
        json_object_set_new(o, "id", hn_lab_str(e->id));
        json_object_set_new(o, "what", hn_lab_str(e->what));
        json_object_set_new(o, "unit", hn_lab_str(e->unit));
        json_object_set_new(o, "better", json_string(e->higher ? "higher" : "lower"));
        json_object_set_new(o, "method", json_stringn(&e->method, 1));
        json_object_set_new(o, "target", hn_lab_str(e->target));
        json_object_set_new(o, "model", json_boolean(e->model));
        json_object_set_new(o, "suites", hn_lab_str(e->suites ? e->suites : ""));
        json_object_set_new(o, "in_this_build", json_boolean(!e->needs));
        json_object_set_new(o, "needs", hn_lab_str(e->needs));
        json_array_append_new(a, o);
    }
    return a;
}

int hn_lab_list(const hn_cli *cli)
{
    hn_kern *all;
    size_t n;
    hone_error err;
    const char *preset = hn_opts_str(cli->opts, "preset");
    if (hn_kern_list(&all, &n, preset, &err) != HONE_OK) return hn_cli_usage(cli, "%s", err.message);
    int rc = HN_EXIT_OK;
    if (cli->json) {
        json_t *o = hn_json_new("hone.list/1"), *ids = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(ids, json_pack("{s:s, s:s}", "id", all[i].id, "what", hn_kern_about(all[i].kind)));
        json_object_set_new(o, "entries", entries_json());
        json_object_set_new(o, "preset", hn_lab_str(preset));
        json_object_set_new(o, "ids", ids);
        rc = hn_json_print(o);
    } else {
        print_entries();
        for (size_t i = 0; i < n; i++) {
            if (i == 0 || all[i].kind != all[i - 1].kind)
                hn_out_printf("%s%s\n", i ? "\n" : "", hn_kern_about(all[i].kind));
            hn_out_printf("  %s\n", all[i].id);
        }
    }
    free(all);
    return rc;
}
