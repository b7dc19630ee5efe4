/* The record of a plain run, for people: a row for each metric, where it stands below the
 * roof, what disturbed it. Everything shown stands in the record, but for the roof. */
#include "cli/bench/bench_command.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"

#include <math.h>

static const char *text_of(json_t *o, const char *key)
{
    const char *s = hn_record_text(o, key);
    return *s ? s : "?";
}

/* The share of the roof in words for the two rates that have one. */
static const char *share_text(json_t *record, const char *metric, char *dst, size_t cap)
{
    const char *key = strcmp(metric, "decode_tok_s") == 0    ? "pct"
                      : strcmp(metric, "prefill_tok_s") == 0 ? "prefill_pct"
                                                             : "";
    double share = hn_record_number(json_object_get(record, "roofline"), key);
    dst[0] = 0;
    if (isfinite(share)) snprintf(dst, cap, "%.0f %%", share);
    return dst;
}

static void print_metric(json_t *record, const hn_plain_metric *m)
{
    enum { SHOWN = 8 };
    json_t *stats = json_object_get(json_object_get(record, "stats"), m->key), *ci = json_object_get(stats, "ci95"),
           *one;
    double median = hn_record_number(stats, "median");
    char half[32], share[32], value[32];
    if (!(hn_record_number(stats, "n") > 0)) {
        hn_out_printf("%-18s %10s\n", m->label, "-");
        return;
    }
    bool known = json_array_size(ci) == 2;
    double width = known ? json_number_value(json_array_get(ci, 1)) - json_number_value(json_array_get(ci, 0))
                         : hn_record_number(stats, "max") - hn_record_number(stats, "min");
    int d = hn_decimals(median, 0.5 * width);
    if (known) hn_digits(half, sizeof half, 0.5 * width, 0.5 * width);
    else snprintf(half, sizeof half, "n = %.0f", hn_record_number(stats, "n"));
    hn_out_printf("%-18s %10s %10s %7s   ", m->label, hn_digits(value, sizeof value, median, 0.5 * width), half,
                  share_text(record, m->key, share, sizeof share));
    size_t i;
    json_array_foreach(json_object_get(record, "samples"), i, one)
    {
        double v = hn_record_number(one, m->key);
        if (i == SHOWN) hn_out_printf(" …");
        if (i >= SHOWN) break;
        if (isfinite(v)) hn_out_printf(" %.*f", d < 0 ? 0 : d, v);
        else hn_out_printf(" -");
    }
    hn_out_printf("\n");
}

/* -v: what other harnesses print. */
static void print_means(json_t *record)
{
    hn_out_printf("\n%-18s %10s %10s %10s %10s\n", "", "mean", "sd", "min", "max");
    for (const hn_plain_metric *m = hn_plain_metrics; m->key; m++) {
        static const char *const keys[] = { "mean", "sd", "min", "max" };
        json_t *stats = json_object_get(json_object_get(record, "stats"), m->key);
        if (!(hn_record_number(stats, "n") > 0)) continue;
        hn_out_printf("%-18s", m->label);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            double v = hn_record_number(stats, keys[k]);
            if (isfinite(v)) hn_out_printf(" %10.5g", v);
            else hn_out_printf(" %10s", "-");
        }
        hn_out_printf("\n");
    }
}

/* --timing: where the time of each process went. */
static void print_timing(json_t *record)
{
    static const struct {
        const char *key;
        int p, needs;
    } shown[] = { { "p90", 90, 100 }, { "p95", 95, 200 }, { "p99", 99, 1000 } };
    json_t *s, *one, *g = json_object_get(json_object_get(record, "extra"), "itl_ms");
    double n_prompt = hn_record_number(json_object_get(record, "config"), "n_prompt");
    size_t i, k;
    hn_out_printf("\n%-8s %10s %10s %10s %10s %10s %10s %8s\n", "process", "load ms", "prompt ms", "gen ms", "gap ms",
                  "longest", "CPUs", "steal %");
    json_array_foreach(json_object_get(record, "samples"), i, s)
    {
        double prefill = 1e3 * n_prompt / hn_record_number(s, "prefill_tok_s"), gap = 0, most = 0;
        json_array_foreach(json_object_get(s, "gaps_ms"), k, one)
        {
            gap += json_number_value(one);
            most = fmax(most, json_number_value(one));
        }
        hn_out_printf("%-8zu %10.2f %10.2f %10.2f %10.3f %10.3f %10.2f %8.1f\n", i + 1, hn_record_number(s, "load_ms"),
                      prefill, gap, hn_record_number(s, "itl_ms"), most, hn_record_number(s, "cpu_use"),
                      hn_record_number(s, "steal_pct"));
    }
    if (!g) return;
    hn_out_printf("gaps     %.0f: median %.3f ms", hn_record_number(g, "n"), hn_record_number(g, "p50"));
    for (k = 0; k < sizeof shown / sizeof *shown; k++) {
        double v = hn_record_number(g, shown[k].key);
        if (isfinite(v)) hn_out_printf(", p%d %.3f", shown[k].p, v);
        else hn_out_printf(", p%d needs %d gaps", shown[k].p, shown[k].needs);
    }
    hn_out_printf(", longest %.3f\n", hn_record_number(g, "max"));
}

static void print_roof(const hn_bench_run *run, const hn_work *work, json_t *record)
{
    const char *missing = json_string_value(json_object_get(json_object_get(record, "roofline"), "missing"));
    int32_t threads = (int32_t)json_integer_value(json_object_get(json_object_get(record, "config"), "threads"));
    char when[512];
    if (missing) {
        hn_out_printf("roof     not known: %s\n", missing);
        return;
    }
    hn_peaks_say(&run->peaks, when, sizeof when);
    double read = hn_peaks_at(&run->peaks, HN_PEAK_READ_BW, threads),
           prefill = hn_work_prefill_s(work, &run->peaks, threads, 1, false);
    hn_out_printf("roof     reading %.1f GB/s, %.0f MB a token", read, (double)work->bytes_per_token / 1e6);
    if (work->bytes_per_token <= 2 * run->peaks.cache_bytes)
        hn_out_printf(" (cache holds much of it: no roof for decode)");
    if (isfinite(prefill)) hn_out_printf("; multiplying %.4g ms a token", 1e3 * prefill);
    hn_out_printf("; %s\n", when);
}

static void print_allocs(json_t *record)
{
    static const char *const words[] = { "decode_tok_s", "a token", "prefill_tok_s", "a prompt" };
    const char *missing = json_string_value(json_object_get(json_object_get(record, "allocs"), "missing"));
    int said = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2) {
        char text[64];
        json_t *a = hn_record_allocs(record, words[i]);
        if (a)
            hn_out_printf("%s%s %s", said++ ? ", " : "allocs   ", hn_allocs_text(text, sizeof text, a), words[i + 1]);
    }
    if (said) hn_out_printf("\n");
    else hn_out_printf("allocs   not counted: %s\n", missing ? missing : "?");
}

static void print_head(const hn_cli *cli, const hn_bench_run *run, json_t *record)
{
    json_t *c = json_object_get(record, "config"), *model = json_object_get(record, "model"), *a;
    const char *path = hn_opts_str(cli->opts, "model");
    double state = hn_record_number(model, "state_mb"), samples = hn_record_number(c, "samples");
    const hn_environ *env = &run->env;
    char memory[64];
    size_t at;
    hn_out_printf("model    %s: %s %s, %.1f MB, %.1f M weights\n", HN_ESC(path, strlen(path)), text_of(model, "arch"),
                  text_of(model, "type"), hn_record_number(model, "bytes") / 1e6,
                  hn_record_number(model, "params") / 1e6);
    if (state > 0) snprintf(memory, sizeof memory, "state %.4g MB", state);
    else snprintf(memory, sizeof memory, "kv %s", text_of(c, "kv"));
    hn_out_printf(
        "config   prompt %.0f, generate %.0f, depth %.0f; %.0f thread%s, %s, %s, chunk %.0f, %s weights; %.0f "
        "fresh process%s\n",
        hn_record_number(c, "n_prompt"), hn_record_number(c, "n_gen"), hn_record_number(c, "depth"),
        hn_record_number(c, "threads"), hn_record_number(c, "threads") == 1 ? "" : "s", text_of(c, "cpu"), memory,
        hn_record_number(c, "chunk"), text_of(c, "weights"), samples, samples == 1 ? "" : "es");
    json_array_foreach(json_object_get(c, "adapters"), at, a) hn_out_printf(
        "adapter  %s × %.4g: rank %.0f, %.0f matrices\n", HN_ESC(text_of(a, "file"), strlen(text_of(a, "file"))),
        hn_record_number(a, "scale"), hn_record_number(a, "rank"), hn_record_number(a, "pairs"));
    hn_out_printf("machine  %s, %d cores, %s (env %s)\n\n", env->cpu_model[0] ? env->cpu_model : env->machine,
                  env->cores, env->kernel, env->hash);
}

void hn_bench_report_plain(const hn_cli *cli, const hn_bench_run *run, const hn_work *work, json_t *record)
{
    json_t *valid = json_object_get(record, "valid"), *n;
    size_t i;
    print_head(cli, run, record);
    hn_out_printf("%-18s %10s     ± 95 %%  of roof   samples\n", "", "median");
    for (const hn_plain_metric *m = hn_plain_metrics; m->key; m++) print_metric(record, m);
    double n_samples = (double)json_array_size(json_object_get(record, "samples"));
    if (n_samples > 0 && n_samples < 6)
        hn_out_printf("%-18s %.0f sample%s: no interval, which needs six (-r 6)\n", "", n_samples,
                      n_samples == 1 ? "" : "s");
    if (cli->verbose) print_means(record);
    if (hn_opts_flag(cli->opts, "timing")) print_timing(record);
    hn_out_printf("\n");
    print_roof(run, work, record);
    print_allocs(record);
    double per_gb = hn_record_number(json_object_get(record, "extra"), "tok_s_per_gb");
    char rate[40];
    if (isfinite(per_gb))
        hn_out_printf("memory   %s tok/s generated for each GB of it\n",
                      hn_digits(rate, sizeof rate, per_gb, 0.01 * per_gb));
    hn_out_printf("quality  %s\n",
                  json_is_string(json_object_get(record, "quality")) ? text_of(record, "quality") : "none");
    if (json_is_true(valid)) hn_out_printf("verdict  valid\n");
    else
        hn_out_printf("verdict  %s%s\n", json_is_false(valid) ? "INVALID: " : "",
                      hn_record_text(record, "invalid_reason"));
    json_array_foreach(json_object_get(record, "notes"), i, n) hn_out_printf("note     %s\n", json_string_value(n));
}
