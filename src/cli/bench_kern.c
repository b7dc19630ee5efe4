/* hone bench kern.…: single kernels, chosen by ids and patterns; and the list of all that
 * can be measured. Owns choice and output; the measuring is lab's. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "lab/lab.h"

#include <fnmatch.h>
#include <stdlib.h>

enum { MAX_COLUMNS = 16, DEFAULT_SAMPLES = 11, QUICK_SAMPLES = 7, MAX_COLUMN = 4096 };

static const hn_opt kern_opts[] = {
    HN_OPT("preset", NULL, STR, "NAME", "the model whose shapes a pattern means (hone synth --list)", .def = "llama-3.2-1b"),
    HN_OPT("columns", NULL, STR, "LIST", "columns of products (default: 1,2,4 for gemv, 8,16,64,512 for gemm)"),
    HN_OPT("layout", NULL, CHOICE, "WHICH", "weights as in the file, packed, or each", .def = "both", .choices = "plain|packed|both"),
    HN_OPT("quick", NULL, FLAG, NULL, "one shape of the common types, 1 and 512 columns, fewer samples"),
    HN_OPT_END,
};
const hn_opt_group hn_group_kern = { "Single kernels (kern.… ids)", kern_opts };

bool hn_is_kern_id(const char *id) { return strncmp(id, "kern.", 5) == 0 || strcmp(id, "kern*") == 0; }

typedef struct kern_run {
    const hn_cli *cli;
    hn_kern *kernels;      /* chosen */
    size_t n_kernels;
    int32_t columns[MAX_COLUMNS], n_columns; /* 0: by kind */
    int32_t threads[2], n_threads, n_samples;
    hn_environ env;
    hn_peaks peaks;
    char no_roof[1100];
    char base[4096];       /* of --file; "": none */
    json_t *results;
    int32_t n_invalid;
    bool header;
} kern_run;

/* ---- choice -------------------------------------------------------------------------------- */

static bool chosen(const kern_run *r, const hn_kern *k)
{
    if (hn_opts_flag(r->cli->opts, "quick")) {
        static const char *const types[] = { ".Q4_K.", ".Q6_K.", ".Q8_0.", ".F16." };
        bool common = k->kind > HN_KERN_GEMM;
        for (size_t i = 0; i < 4; i++) common = common || strstr(k->id, types[i]);
        if (!common || (k->kind <= HN_KERN_GEMM && k->n[0] < 2 * k->n[1])) return false;
        if (k->kind <= HN_KERN_GEMM && k->n[0] > 65536) return false;
    }
    for (int i = 0; i < hn_opts_n_args(r->cli->opts); i++)
        if (fnmatch(hn_opts_arg(r->cli->opts, i), k->id, 0) == 0) return true;
    return false;
}

static int choose(kern_run *r)
{
    const hn_opts *o = r->cli->opts;
    hone_error err;
    hn_kern *all;
    size_t n;
    if (hn_kern_list(&all, &n, hn_opts_str(o, "preset"), &err) != HONE_OK) return hn_cli_usage(r->cli, "%s", err.message);
    r->kernels = calloc(n + (size_t)hn_opts_n_args(o), sizeof *r->kernels);
    if (!r->kernels) {
        free(all);
        return hn_cli_error(HN_EXIT_NOMEM, "no memory for the list of kernels");
    }
    for (size_t i = 0; i < n; i++)
        if (chosen(r, &all[i])) r->kernels[r->n_kernels++] = all[i];
    free(all);
    for (int i = 0; i < hn_opts_n_args(o); i++) { /* any other shape, by its full name */
        const char *id = hn_opts_arg(o, i);
        bool known = strpbrk(id, "*?[") != NULL;
        for (size_t k = 0; k < r->n_kernels; k++) known = known || strcmp(r->kernels[k].id, id) == 0;
        if (known) continue;
        if (hn_kern_parse(&r->kernels[r->n_kernels], id, &err) != HONE_OK) return hn_cli_usage(r->cli, "%s", err.message);
        r->n_kernels++;
    }
    if (r->n_kernels == 0) return hn_cli_usage(r->cli, "no kernel of %s is called so; see: hone lab list", hn_opts_str(o, "preset"));
    return 0;
}

static int settings(kern_run *r)
{
    const hn_opts *o = r->cli->opts;
    hone_error err;
    const char *list = hn_opts_str(o, "columns");
    int32_t *ids, all = r->env.cores;
    size_t n;
    if (list) {
        if (hn_parse_ids(&ids, &n, list, strlen(list), "--columns", &err) != HONE_OK) return hn_cli_usage(r->cli, "%s", err.message);
        for (size_t i = 0; i < n && i < MAX_COLUMNS; i++) r->columns[r->n_columns++] = ids[i];
        bool bad = n > MAX_COLUMNS;
        for (int32_t i = 0; i < r->n_columns; i++) bad = bad || r->columns[i] < 1 || r->columns[i] > MAX_COLUMN;
        free(ids);
        if (bad) return hn_cli_usage(r->cli, "--columns %s: expected at most %d numbers of 1 to %d", HN_ESC(list, strlen(list)), MAX_COLUMNS, MAX_COLUMN);
    }
    bool quick = hn_opts_flag(o, "quick");
    if (hn_opts_given(o, "threads")) r->threads[r->n_threads++] = hn_opts_i32(o, "threads");
    else {
        if (!quick && all > 1) r->threads[r->n_threads++] = 1;
        r->threads[r->n_threads++] = all;
    }
    r->n_samples = hn_opts_given(o, "samples") ? hn_opts_i32(o, "samples") : quick ? QUICK_SAMPLES : DEFAULT_SAMPLES;
    if (r->n_samples > HN_KERN_SAMPLES) return hn_cli_usage(r->cli, "-r %d: expected at most %d for kernels", r->n_samples, HN_KERN_SAMPLES);
    const char *file = hn_opts_str(o, "file");
    if (file && hn_record_base(r->base, sizeof r->base, file, &err) != HONE_OK) return hn_cli_usage(r->cli, "%s", err.message);
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
    char cols[16] = "", ci[32] = "n/a", share[48] = "";
    if (!r->header)
        hn_out_printf("%-40s %-6s %4s %3s %12s %9s %10s %-8s %s\n", "", "layout", "cols", "thr", "us", "± 95 %", "rate", "", "of roof");
    r->header = true;
    if (product) snprintf(cols, sizeof cols, "%d", res->config.columns);
    hn_out_printf("%-40s %-6s %4s %3d ", k->id, product ? res->config.packed ? "packed" : "plain" : "", cols, res->config.threads);
    if (isfinite(res->time.ci95[0])) snprintf(ci, sizeof ci, "%.1f %%", 100 * hn_stats_half_width(&res->time) / res->time.median);
    if (isfinite(res->share)) snprintf(share, sizeof share, "%.0f %% (%s)", 100 * res->share, res->roof);
    if (res->time.n) hn_out_printf("%12.5g %9s %10.4g %-8s %s", 1e6 * res->time.median, ci, res->rate, res->unit, share);
    if (isfinite(res->rmse)) hn_out_printf("  error %.4g", res->rmse);
    if (res->time.n && res->cpu_use < 0.9) hn_out_printf("  noisy: %.0f %% of a CPU each", 100 * res->cpu_use);
    if (res->verdict.state != HN_VALID) hn_out_printf("  INVALID: %s", res->verdict.reason);
    hn_out_printf("\n");
    hn_out_flush();
}

static int keep_result(kern_run *r, const hn_kern *k, const hn_kern_result *res)
{
    json_t *o = hn_kern_json(k, res);
    if (res->verdict.state != HN_VALID) {
        r->n_invalid++;
        hn_cli_error(0, "invalid result: %s: %s", k->id, res->verdict.reason);
    }
    if (!r->cli->json) print_result(r, k, res);
    json_array_append(r->results, o);
    int rc = 0;
    if (r->base[0]) {
        char ts[40];
        hone_error err;
        hn_utc_now(ts, sizeof ts);
        json_t *record = hn_json_new(HN_KERN_SCHEMA);
        json_object_set_new(record, "ts", json_string(ts));
        json_object_set_new(record, "title", hn_lab_str(hn_opts_str(r->cli->opts, "title")));
        json_object_set_new(record, "change", hn_lab_str(hn_opts_str(r->cli->opts, "change")));
        json_object_set_new(record, "commit", hn_lab_str(r->env.commit));
        json_object_set_new(record, "env", json_string(r->env.hash));
        json_object_update(record, o);
        if (hn_record_append(r->base, record, &err) != HONE_OK) rc = hn_cli_fail(&err);
        json_decref(record);
    }
    json_decref(o);
    return rc;
}

/* ---- the run ----------------------------------------------------------------------------------- */

static int measure_kernel(kern_run *r, const hn_kern *k)
{
    hn_kern_bench *b;
    hone_error err;
    const hn_opts *o = r->cli->opts;
    const char *layout = hn_opts_str(o, "layout");
    const int32_t *cols;
    int32_t n_cols;
    int rc = 0;
    if (hn_kern_open(&b, k, hn_opts_str(o, "cpu"), &err) != HONE_OK) return hn_cli_fail(&err);
    columns_of(r, k, &cols, &n_cols);
    bool each_thread = k->kind <= HN_KERN_ATTN_PREFILL;
    for (int packed = 0; packed < 2; packed++) {
        if (packed ? strcmp(layout, "plain") == 0 || !hn_kern_has_packed(b) : strcmp(layout, "packed") == 0 && hn_kern_has_packed(b)) continue;
        for (int32_t c = 0; c < n_cols && rc == 0; c++)
            for (int32_t t = 0; t < (each_thread ? r->n_threads : 1) && rc == 0; t++) {
                hn_kern_result res;
                hn_kern_config config = { .threads = r->threads[t], .columns = cols[c], .packed = packed, .n_samples = r->n_samples };
                hone_status st = hn_kern_measure(&res, b, &config, r->no_roof[0] ? NULL : &r->peaks, hn_abort_fn, &err);
                rc = st == HONE_OK ? keep_result(r, k, &res) : hn_cli_fail(&err);
            }
    }
    hn_kern_close(b);
    return rc;
}

static void find_roof(kern_run *r)
{
    char path[4096];
    hone_error err;
    hn_cpu_level level;
    if (hn_cpu_choose(&level, hn_opts_str(r->cli->opts, "cpu"), &err) != HONE_OK ||
        hn_peaks_path(path, sizeof path, &r->env, hn_cpu_level_name(level), &err) != HONE_OK ||
        hn_peaks_load(&r->peaks, path, &r->env, hn_cpu_level_name(level), &err) != HONE_OK)
        snprintf(r->no_roof, sizeof r->no_roof, "%s", err.message);
}

static json_t *summary(const kern_run *r)
{
    char ts[40];
    json_t *o = hn_json_new(HN_KERN_SCHEMA);
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(o, "ts", json_string(ts));
    json_object_set_new(o, "commit", hn_lab_str(r->env.commit));
    json_object_set_new(o, "env", hn_environ_json(&r->env));
    json_object_set_new(o, "build", json_pack("{s:o, s:o}", "cc", hn_lab_str(r->env.compiler), "flags", hn_lab_str(r->env.flags)));
    json_object_set_new(o, "peaks", r->no_roof[0] ? json_null() : hn_peaks_json(&r->peaks));
    json_object_set_new(o, "missing_roof", r->no_roof[0] ? hn_lab_str(r->no_roof) : json_null());
    json_object_set_new(o, "invalid", json_integer(r->n_invalid));
    json_object_set(o, "results", r->results);
    return o;
}

int hn_bench_kern(const hn_cli *cli)
{
    kern_run r = { .cli = cli, .results = json_array() };
    hn_environ_read(&r.env);
    int rc = settings(&r);
    if (rc == 0) rc = choose(&r);
    bool started = rc == 0;
    if (rc == 0) find_roof(&r);
    for (size_t i = 0; i < r.n_kernels && rc == 0; i++) {
        hn_progress_fn("measuring kernels", i, r.n_kernels);
        rc = measure_kernel(&r, &r.kernels[i]);
    }
    hn_progress_end();
    if (started && cli->json && json_array_size(r.results) > 0) hn_json_print(summary(&r));
    else if (started && !cli->json) {
        char when[512];
        hn_peaks_say(&r.peaks, when, sizeof when);
        hn_out_printf("\nroof     %s%s\n", r.no_roof[0] ? "not known: " : "", r.no_roof[0] ? r.no_roof : when);
    }
    json_decref(r.results);
    free(r.kernels);
    return rc ? rc : r.n_invalid ? HN_EXIT_FAILURE : HN_EXIT_OK;
}

/* ---- hone lab list ---------------------------------------------------------------------------------- */

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
        for (size_t i = 0; i < n; i++) json_array_append_new(ids, json_pack("{s:s, s:s}", "id", all[i].id, "what", hn_kern_about(all[i].kind)));
        json_object_set_new(o, "preset", hn_lab_str(preset));
        json_object_set_new(o, "ids", ids);
        rc = hn_json_print(o);
    } else {
        for (size_t i = 0; i < n; i++) {
            if (i == 0 || all[i].kind != all[i - 1].kind) hn_out_printf("%s%s\n", i ? "\n" : "", hn_kern_about(all[i].kind));
            hn_out_printf("  %s\n", all[i].id);
        }
    }
    free(all);
    return rc;
}
