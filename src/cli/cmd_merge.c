/* hone merge: adapters become part of the weights. */
#include "cli/written.h"

#include <math.h>
#include <stdlib.h>

static const hn_opt opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "the base, a GGUF model; it is not changed", .use = HN_USE_MODEL,
           .what = "the model"),
    HN_OPT("output", "-o", FILE, "FILE", "the GGUF file to write", .use = HN_USE_WRITE, .what = "the output"),
    HN_OPT("type", NULL, STR, "TYPE",
           "storage of the merged matrices: keep (their own), F32, F16, BF16, Q8_0, Q4_K_M, …; all others are copied",
           .def = "keep"),
    HN_OPT_END,
};
static const hn_opt_group group = { "Merging", opts };
static const hn_opt_group *const groups[] = { &group, &hn_group_lora, NULL };

typedef struct job {
    const hn_cli *cli;
    json_t *tensors;
    int64_t n, n_f16;
    double elems, weight, delta, error; /* sums of squares */
} job;

/* Over all elements; nothing is merged where all scales are 0. */
static double rms(const job *j, double sum) { return j->n ? sqrt(sum / j->elems) : 0; }

static double share(double error, double delta) { return delta > 0 ? error / delta : NAN; }

static void report(void *arg, const hone_merge_tensor *t)
{
    job *j = arg;
    double n = (double)t->n;
    j->n++;
    j->n_f16 += strcmp(t->to, "F16") == 0 && strcmp(t->from, "F16") && !hn_opts_given(j->cli->opts, "type");
    j->elems += n;
    j->weight += n * t->weight_rms * t->weight_rms;
    j->delta += n * t->delta_rms * t->delta_rms;
    j->error += n * t->error_rms * t->error_rms;
    json_array_append_new(j->tensors,
                          json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "name", t->name, "from", t->from, "to", t->to,
                                    "weight_rms", t->weight_rms, "delta_rms", t->delta_rms, "error_rms", t->error_rms));
}

static void print_row(const char *name, const char *type, double weight, double delta, double error)
{
    char lost[24] = "-";
    if (delta > 0) snprintf(lost, sizeof lost, "%.3g %%", 100 * share(error, delta));
    hn_out_printf("%-28s %-12s %10.3g %10.3g %10.3g %10s\n", name, type, weight, delta, error, lost);
}

static void print_report(const job *j)
{
    size_t i;
    json_t *t;
    hn_out_printf("%-28s %-12s %10s %10s %10s %10s\n", "rms of", "type", "W", "added", "error", "of added");
    json_array_foreach(j->tensors, i, t)
    {
        char type[40];
        const char *from = json_string_value(json_object_get(t, "from")),
                   *to = json_string_value(json_object_get(t, "to"));
        snprintf(type, sizeof type, strcmp(from, to) ? "%s > %s" : "%s", from, to);
        print_row(
            json_string_value(json_object_get(t, "name")), type, json_number_value(json_object_get(t, "weight_rms")),
            json_number_value(json_object_get(t, "delta_rms")), json_number_value(json_object_get(t, "error_rms")));
    }
    print_row("all", "", rms(j, j->weight), rms(j, j->delta), rms(j, j->error));
}

static void advise(const job *j)
{
    if (j->n_f16) hn_cli_note("%lld matrices became F16, as hone has no encoder for their type", (long long)j->n_f16);
    double lost = share(sqrt(j->error), sqrt(j->delta));
    if (lost > 0.3)
        hn_cli_note("the error of encoding is %.0f %% of what was added; --type Q8_0 or F16 keeps more, and --lora at "
                    "run time all of it",
                    100 * lost);
}

static int finish(job *j, const char *dst, double seconds)
{
    if (!j->cli->json) print_report(j);
    advise(j);
    json_t *extra = json_pack("{s:O, s:{s:f, s:f, s:f}}", "merged", j->tensors, "all", "weight_rms", rms(j, j->weight),
                              "delta_rms", rms(j, j->delta), "error_rms", rms(j, j->error));
    return hn_cli_written(j->cli, "hone.merge/1", dst, seconds, extra);
}

static int run_job(job *j, const char **paths, float *scales)
{
    const hn_opts *o = j->cli->opts;
    const char *dst = hn_opts_str(o, "output"), *base = hn_opts_str(o, "model");
    size_t n = hn_opts_count(o, "lora");
    hone_error err;
    int rc;
    for (size_t i = 0; i < n; i++)
        if ((rc = hn_cli_adapter_arg(hn_opts_nth(o, "lora", i), (char **)&paths[i], &scales[i]))) return rc;
    hone_merge_params p = { .base = base,
                            .adapters = paths,
                            .scales = scales,
                            .n_adapters = (int32_t)n,
                            .type = hn_opts_str(o, "type"),
                            .report = report,
                            .report_arg = j };
    hone_progress pr = { hn_progress_fn, (void *)"merging", hn_abort_fn };
    double t0 = hn_now_ms();
    hone_status st = hone_merge(&p, dst, &pr, &err);
    hn_progress_end();
    if (st != HONE_OK) return hn_cli_fail_made(&err, dst);
    return finish(j, dst, (hn_now_ms() - t0) / 1e3);
}

static int run(const hn_cli *cli)
{
    size_t n = hn_opts_count(cli->opts, "lora");
    if (!hn_opts_str(cli->opts, "model")) return hn_cli_usage(cli, "no model; expected -m FILE.gguf");
    if (!n) return hn_cli_usage(cli, "no adapter; expected --lora FILE");
    if (!hn_opts_str(cli->opts, "output")) return hn_cli_usage(cli, "no output file: -o FILE");
    job j = { .cli = cli, .tensors = json_array() };
    const char **paths = calloc(n, sizeof *paths);
    float *scales = calloc(n, sizeof *scales);
    int rc = j.tensors && paths && scales ? run_job(&j, paths, scales)
                                          : hn_cli_error(HN_EXIT_NOMEM, "no memory for %zu adapters", n);
    for (size_t i = 0; paths && i < n; i++) free((char *)paths[i]);
    free(paths);
    free(scales);
    json_decref(j.tensors);
    return rc;
}

const hn_command hn_command_merge = {
    .name = "merge",
    .summary = "Make adapters part of a model's weights",
    .groups = groups,
    .examples = "hone merge -m base.gguf --lora adapter.gguf -o merged.gguf\n"
                "hone merge -m base-Q4_K_M.gguf --lora a.gguf:0.5 --lora b.gguf --type Q8_0 -o merged.gguf\n",
    .run = run,
};
