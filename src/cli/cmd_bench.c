/* hone bench: measures a model on this machine. Every sample is a fresh process: this
 * program again (bench_child.c). This is the parent: it collects, judges, prints and
 * records. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "lab/bench.h"
#include "lab/sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TOKENS = 1 << 24, MAX_TITLE = 1000, MAX_NOTES = 16, MOST_REPEATS = 2 };
static const double most_voided = 0.5; /* of the samples, and one */

static const hn_opt bench_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N", "tokens of the prompt; 0: none", .def = "512", .max = MAX_TOKENS),
    HN_OPT("n-gen", "-n", I32, "N", "tokens to generate; 0: none", .def = "64", .max = MAX_TOKENS),
    HN_OPT("depth", "-d", I32, "N", "tokens already in the cache or state when the prompt comes, not measured", .def = "0", .max = MAX_TOKENS),
    HN_OPT("samples", "-r --repetitions --iterations", I32, "N", "fresh processes to measure; an interval needs 6", .def = "3", .min = 1, .max = 100000),
    HN_OPT("no-quality", NULL, FLAG, NULL, "leave out the quality hash: the result is not checked"),
    HN_OPT_END,
};
static const hn_opt_group bench_group = { "Measurement", bench_opts };

static const hn_opt record_opts[] = {
    HN_OPT("file", NULL, STR, "NAME", "append the record to benchmarks/NAME.jsonl and a row to benchmarks/NAME.md; "
      "a NAME with a slash is a path of its own", .use = HN_USE_RECORDS),
    HN_OPT("title", NULL, STR, "TEXT", "what is measured, for the record", .def = "untitled"),
    HN_OPT("change", NULL, STR, "TEXT", "what changed since the last row, for the record"),
    HN_OPT_END,
};
static const hn_opt_group record_group = { "Record", record_opts };

typedef struct metric { const char *key, *label, *unit; bool higher; } metric;
static const metric metrics[] = {
    { "load_ms", "load ms", "ms", false },
    { "ttft_ms", "first token ms", "ms", false },
    { "prefill_tok_s", "prefill tok/s", "tok/s", true },
    { "decode_tok_s", "decode tok/s", "tok/s", true },
    { "peak_anon_mb", "peak anon MB", "MB", false },
    { "mapped_mb", "mapped MB", "MB", false },
    { "model_resident_mb", "model resident MB", "MB", false },
    { "hwm_mb", "peak resident MB", "MB", false },
    { "itl_ms", "between tokens ms", "ms", false },
    { "steady_tok_s", "steady tok/s", "tok/s", true },
    { "sustained_tok_s", "last half tok/s", "tok/s", true },
};
enum { N_METRICS = sizeof metrics / sizeof *metrics, N_TOP = 5, FIRST_MEMORY = 4, END_MEMORY = 8 };

static hn_bench_config config_of(const hn_cli *cli)
{
    return (hn_bench_config){ .n_prompt = hn_opts_i32(cli->opts, "n-prompt"), .n_gen = hn_opts_i32(cli->opts, "n-gen"),
                              .depth = hn_opts_i32(cli->opts, "depth") };
}

/* ---- the parent: running children ------------------------------------------------------------- */

typedef struct bench {
    const hn_cli *cli;
    hn_bench_config config;
    int32_t n_samples;
    int32_t n_warmups;
    json_t *model, *quality, *samples, *engine, *notes, *voided;
    bool interrupted;
    int32_t n_kept;        /* samples kept in spite of evidence against them; of the last: */
    char kept[200];
    hn_environ env;
    hn_verdict verdict;
    hn_stats stats[N_METRICS];
    hn_work work;
    hn_peaks peaks;
    char no_roof[1100];    /* "": peaks is the roof; else why there is none */
    double decode_share, prefill_share; /* of the roof; NaN: unknown */
    int32_t n_ctx_train; /* 0: nothing is to be said of it */
    char record[16];   /* id of the record, once it is made */
    char packed[4096]; /* the packed file in use, or "" */
    char why[600];     /* in words */
} bench;

static void note(bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(bench *b, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (json_array_size(b->notes) < MAX_NOTES) json_array_append_new(b->notes, hn_lab_str(text));
}

/* Runs the hidden mode `mode`. Returns 0 with *out filled, or an exit code that ends the
 * bench: the child said what is wrong with the request, model or memory. */
static int run_child(bench *b, const char *mode, hn_child *out)
{
    enum { CAP = 96 };
    char *made[CAP] = { 0 };
    const char *argv[CAP + 1] = { "hone", "bench", mode };
    const hn_opts *o = b->cli->opts;
    int n = 3, made_n = 0, rc = 0;
    hone_error err;
    bool ok = true;
#define ARG(...) (ok = ok && asprintf(&made[made_n], __VA_ARGS__) >= 0, ok ? (void)(argv[n++] = made[made_n++]) : (void)0)
    ARG("--model=%s", hn_opts_str(o, "model"));
    if (hn_opts_str(o, "pre")) ARG("--pre=%s", hn_opts_str(o, "pre"));
    if (hn_opts_given(o, "threads")) ARG("--threads=%d", hn_opts_i32(o, "threads"));
    if (hn_opts_given(o, "threads-batch")) ARG("--threads-batch=%d", hn_opts_i32(o, "threads-batch"));
    if (hn_opts_str(o, "packed")) ARG("--packed=%s", hn_opts_str(o, "packed"));
    if (hn_opts_str(o, "cpu")) ARG("--cpu=%s", hn_opts_str(o, "cpu"));
    ARG("--chunk=%d", hn_opts_i32(o, "chunk"));
    ARG("--kv=%s", hn_opts_str(o, "kv"));
    if (hn_opts_flag(o, "allow-paging")) ARG("--allow-paging");
    for (size_t i = 0; i < hn_opts_count(o, "lora") && n < CAP - 4; i++) ARG("--lora=%s", hn_opts_nth(o, "lora", i));
    ARG("--n-prompt=%d", b->config.n_prompt);
    ARG("--n-gen=%d", b->config.n_gen);
    ARG("--depth=%d", b->config.depth);
    ARG("%" PRIu64, hn_clock_ns()); /* last: the time of the spawn */
#undef ARG
    argv[n] = NULL;
    *out = (hn_child){ 0 };
    if (!ok) rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for the arguments of a process");
    else if (hn_child_run(out, argv, hn_abort_fn, &err) != HONE_OK) rc = hn_cli_fail(&err);
    else if (out->exit_code > HN_EXIT_FAILURE && out->exit_code < 127) rc = out->exit_code;
    else if (out->exit_code == HN_EXIT_SIGINT) rc = out->exit_code;
    for (int i = 0; i < made_n; i++) free(made[i]);
    if (rc) hn_child_free(out);
    return rc;
}

static int run_quality(bench *b)
{
    hn_child c;
    int rc = run_child(b, "_quality", &c);
    if (rc) return rc;
    if (c.result) {
        b->quality = json_incref(c.result);
        if (!json_is_true(json_object_get(c.result, "valid"))) {
            const char *why = json_string_value(json_object_get(c.result, "reason"));
            hn_invalid(&b->verdict, "%s", why ? why : "the quality run gave no verdict");
        }
    } else {
        char why[640];
        hn_child_why(&c, why, sizeof why);
        hn_invalid(&b->verdict, "quality run: %.480s", why);
    }
    hn_child_free(&c);
    return 0;
}

/* Load times are those of a file in memory. The quality run has read all of it; without
 * one it is read here, unless it would not stay. */
static void read_model_file(const char *path)
{
    struct stat sb;
    if (stat(path, &sb) != 0 || (uint64_t)sb.st_size > hn_memory_available()) return;
    FILE *f = fopen(path, "rb");
    size_t cap = 1 << 20;
    char *buf = malloc(cap);
    while (f && buf && !hn_interrupted() && fread(buf, 1, cap, f) == cap) {}
    free(buf);
    if (f) fclose(f);
}

static double field(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text_of(json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "?";
}

static void print_roof(const bench *b)
{
    double prefill = hn_work_prefill_s(&b->work, &b->peaks, (int32_t)json_integer_value(json_object_get(b->engine, "threads")), 1, false);
    char when[512];
    if (b->no_roof[0]) {
        hn_out_printf("roof     not known: %s\n", b->no_roof);
        return;
    }
    hn_peaks_say(&b->peaks, when, sizeof when);
    double read = hn_peaks_at(&b->peaks, HN_PEAK_READ_BW, (int32_t)json_integer_value(json_object_get(b->engine, "threads")));
    hn_out_printf("roof     reading %.1f GB/s, %.0f MB a token", read, (double)b->work.bytes_per_token / 1e6);
    if (b->work.bytes_per_token <= 2 * b->peaks.cache_bytes) hn_out_printf(" (cache holds much of it: no roof for decode)");
    if (isfinite(prefill)) hn_out_printf("; multiplying %.4g ms a token", 1e3 * prefill);
    hn_out_printf("; %s\n", when);
}

static void look_at_sample(bench *b, json_t *s, int32_t i)
{
    const char *why = json_string_value(json_object_get(s, "invalid_reason"));
    if (why) hn_invalid(&b->verdict, "sample %d: %s", i + 1, why);
    json_t *first = json_object_get(json_array_get(b->samples, 0), "ids");
    if (!why && !json_equal(first, json_object_get(s, "ids")))
        hn_invalid(&b->verdict, "sample %d generated other tokens than sample 1: the engine is not deterministic", i + 1);
}

static double usual_mhz(const bench *b)
{
    double x[64];
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(b->samples, i, s) if (n < 64 && isfinite(x[n] = field(s, "clock_mhz"))) n++;
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

/* Only the machine gives a reason to measure a sample again, never its value. True: it was put aside. */
static bool put_aside(bench *b, json_t *s, int tries)
{
    char why[200];
    if (!hn_evidence_voids(s, false, usual_mhz(b), why, sizeof why)) return false;
    if (tries < MOST_REPEATS && (double)json_array_size(b->voided) < most_voided * b->n_samples + 1) {
        json_array_append_new(b->voided, json_pack("{s:o, s:O}", "reason", hn_lab_str(why), "result", s));
        return true;
    }
    b->n_kept++;
    snprintf(b->kept, sizeof b->kept, "%s", why);
    return false;
}

static int run_sample(bench *b, int32_t i)
{
    for (int tries = 0;; tries++) {
        hn_child c;
        int rc = run_child(b, "_sample", &c);
        if (rc) return rc;
        if (c.result) {
            double seen = (double)c.peak_anon / 1e6;
            if (!(field(c.result, "peak_anon_mb") >= seen)) json_object_set_new(c.result, "peak_anon_mb", hn_lab_num(seen));
            json_t *engine = json_object_get(c.result, "engine");
            if (engine && !b->engine) b->engine = json_incref(engine);
            json_object_del(c.result, "engine");
            bool again = put_aside(b, c.result, tries);
            if (!again) {
                json_array_append(b->samples, c.result);
                look_at_sample(b, c.result, i);
            }
            hn_child_free(&c);
            if (again) continue;
            return 0;
        }
        char why[640];
        hn_child_why(&c, why, sizeof why);
        hn_invalid(&b->verdict, "sample %d: %.480s", i + 1, why);
        json_array_append_new(b->samples, json_pack("{s:o}", "invalid_reason", hn_lab_str(why)));
        hn_child_free(&c);
        return 0;
    }
}

/* Processes whose numbers nobody keeps. */
static int warm_up(bench *b)
{
    double seconds = hn_opts_given(b->cli->opts, "warm-up-time") ? (double)hn_opts_f32(b->cli->opts, "warm-up-time") : 0;
    int32_t wanted = hn_opts_given(b->cli->opts, "warmup") ? hn_opts_i32(b->cli->opts, "warmup") : 0;
    uint64_t t0 = hn_clock_ns();
    int rc = 0;
    while (rc == 0 && (b->n_warmups < wanted || (double)(hn_clock_ns() - t0) * 1e-9 < seconds)) {
        hn_child c;
        hn_progress_fn("warming up", (uint64_t)b->n_warmups, (uint64_t)(wanted > 0 ? wanted : 1));
        if ((rc = run_child(b, "_sample", &c)) != 0) break;
        bool crashed = !c.result;
        hn_child_free(&c);
        if (crashed) break; /* the samples will say so */
        b->n_warmups++;
    }
    return rc;
}

/* ---- verdict and record ------------------------------------------------------------------------- */

static int make_stats(bench *b)
{
    double *x = calloc(json_array_size(b->samples) + 1, sizeof *x);
    hone_error err;
    hone_status st = x ? HONE_OK : HN_FAIL(&err, HONE_E_NOMEM, "statistics of %zu samples", json_array_size(b->samples));
    for (int k = 0; k < N_METRICS && st == HONE_OK; k++) {
        size_t i, n = 0;
        json_t *s;
        json_array_foreach(b->samples, i, s) {
            double v = field(s, metrics[k].key);
            if (isfinite(v)) x[n++] = v;
        }
        st = hn_stats_of(&b->stats[k], x, n, &err);
    }
    free(x);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}

static const hn_stats *stats_of(const bench *b, const char *key)
{
    int k = 0;
    while (strcmp(metrics[k].key, key) != 0) k++;
    return &b->stats[k];
}

/* The spread above which a number is called unstable: standard deviation over mean. */
static void note_unstable(bench *b)
{
    const double limit = 0.1;
    char text[300] = "";
    for (int k = 0; k < N_METRICS; k++) {
        size_t n = strlen(text);
        if (b->stats[k].n > 2 && b->stats[k].cv > limit)
            snprintf(text + n, sizeof text - n, "%s%s %.2f", n ? ", " : "", metrics[k].label, b->stats[k].cv);
    }
    if (text[0]) note(b, "unstable (CV): %s", text);
}

/* The roof of this machine at the level and threads of the samples, and how near the rates come. */
static void judge_roof(bench *b)
{
    char path[4096];
    hone_error err;
    const char *level = json_string_value(json_object_get(b->engine, "cpu"));
    int32_t threads = (int32_t)json_integer_value(json_object_get(b->engine, "threads"));
    b->decode_share = b->prefill_share = NAN;
    if (!level) {
        snprintf(b->no_roof, sizeof b->no_roof, "nothing was measured");
        return;
    }
    if (hn_peaks_path(path, sizeof path, &b->env, level, &err) != HONE_OK || hn_peaks_load(&b->peaks, path, &b->env, level, &err) != HONE_OK) {
        snprintf(b->no_roof, sizeof b->no_roof, "%s", err.message);
        return;
    }
    double prefill = stats_of(b, "prefill_tok_s")->median;
    int32_t n = b->config.n_prompt;
    b->decode_share = hn_check_roof(&b->verdict, stats_of(b, "decode_tok_s")->median, b->work.bytes_per_token,
                                    hn_peaks_at(&b->peaks, HN_PEAK_READ_BW, threads), hn_peaks_most(&b->peaks, HN_PEAK_READ_BW, threads),
                                    b->peaks.cache_bytes);
    if (prefill > 0) {
        b->prefill_share = hn_work_prefill_s(&b->work, &b->peaks, threads, n, false) * prefill / n;
        if (b->peaks.bound) hn_check_compute(&b->verdict, "prefill", hn_work_prefill_s(&b->work, &b->peaks, threads, n, true), n / prefill);
    }
    if (b->peaks.doubts[0]) note(b, "the roof was measured on a noisy machine: %s", b->peaks.doubts);
}

/* A file in small pages is read more slowly, and the same file, evicted once, is not. */
static void note_pages(bench *b)
{
    const double large = 64, most = 0.9;
    const json_t *s = json_array_get(b->samples, json_array_size(b->samples) - 1);
    const json_t *huge_mb = json_object_get(s, "model_huge_mb");
    double resident = json_number_value(json_object_get(s, "model_resident_mb")), huge = json_number_value(huge_mb);
    if (json_is_number(huge_mb) && resident > large && huge < most * resident)
        note(b, "%.0f %% of the weights are in huge pages, the others are read more slowly: docs/BENCHMARKING.md, Pages of a file", 100 * huge / resident);
}

/* What the RWKV-7 guide wishes for: said beside its numbers. */
static void note_guide(bench *b)
{
    static const struct { const char *key, *text; double wish; bool higher; } wishes[] = {
        { "load_ms", "load < 5 s", 5000, false }, { "prefill_tok_s", "prefill 150+ tok/s", 150, true }, { "decode_tok_s", "generation 90+ tok/s", 90, true } };
    char text[200] = "";
    if (strcmp(text_of(b->model, "arch"), "rwkv7") != 0 || field(b->model, "params") < 1e8) return; /* of 0.1B and 2.9B */
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        double x = stats_of(b, wishes[i].key)->median;
        size_t n = strlen(text);
        if (isfinite(x))
            snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "", wishes[i].text, (wishes[i].higher ? x >= wishes[i].wish : x <= wishes[i].wish) ? "met" : "not met");
    }
    if (text[0]) note(b, "guide: %s", text);
}

static void judge(bench *b)
{
    bool constant = json_is_true(json_object_get(json_array_get(b->samples, 0), "constant"));
    bool no_quality = hn_opts_flag(b->cli->opts, "no-quality");
    if (constant && no_quality) hn_invalid(&b->verdict, "degenerate output: one token repeated through the whole generation");
    else if (constant) note(b, "the pseudo-random measured prompt ended in one token repeated; the quality prompts did not");
    judge_roof(b);
    if (b->verdict.state == HN_UNCHECKED && !no_quality) b->verdict.state = HN_VALID;
    if (b->verdict.state == HN_UNCHECKED) snprintf(b->verdict.reason, sizeof b->verdict.reason, "quality not checked (--no-quality)");
    size_t again = json_array_size(b->voided);
    if (again) note(b, "%zu sample%s measured again: %s%s", again, again == 1 ? " was" : "s were", text_of(json_array_get(b->voided, 0), "reason"), again > 1 ? ", …" : "");
    if (b->n_kept) note(b, "%d of %zu samples are kept although %s: it would not stop", b->n_kept, json_array_size(b->samples), b->kept);
    note_guide(b);
    note_unstable(b);
    int64_t last = (int64_t)b->config.depth + b->config.n_prompt + b->config.n_gen;
    if (b->n_ctx_train > 0 && last > b->n_ctx_train) note(b, "%" PRId64 " positions, but the model was trained for %d", last, b->n_ctx_train);
    json_t *cautions = hn_cli_cautions();
    json_array_extend(b->notes, cautions);
    json_decref(cautions);
    note_pages(b);
    if (b->env.load[0] > 0.5 * b->env.cores) note(b, "load average %.1f on %d cores at the start: expect noise", b->env.load[0], b->env.cores);
}

static json_t *config_json(const bench *b)
{
    const hn_opts *o = b->cli->opts;
    json_t *j = json_object(), *cpu = json_object_get(b->engine, "cpu"), *threads = json_object_get(b->engine, "threads");
    json_object_set_new(j, "n_prompt", json_integer(b->config.n_prompt));
    json_object_set_new(j, "n_gen", json_integer(b->config.n_gen));
    json_object_set_new(j, "depth", json_integer(b->config.depth));
    json_object_set_new(j, "samples", json_integer(b->n_samples));
    json_object_set_new(j, "threads", threads ? json_incref(threads) : json_null());
    json_object_set_new(j, "cpu", cpu ? json_incref(cpu) : json_null());
    json_object_set_new(j, "kv", hn_lab_str(hn_opts_str(o, "kv")));
    json_object_set_new(j, "chunk", json_integer(hn_opts_i32(o, "chunk")));
    json_object_set_new(j, "weights", json_string(b->packed[0] ? "packed" : "plain"));
    json_object_set_new(j, "weights_note", hn_lab_str(b->why));
    if (json_object_get(b->engine, "adapters")) json_object_set(j, "adapters", json_object_get(b->engine, "adapters"));
    json_object_set_new(j, "sampler", json_string("greedy"));
    json_object_set_new(j, "seed", json_null());
    json_object_set_new(j, "load", json_string("warm"));
    return j;
}

static json_t *roofline_json(const bench *b)
{
    double decode = stats_of(b, "decode_tok_s")->median, prefill = stats_of(b, "prefill_tok_s")->median;
    bool roof = b->peaks.n[HN_PEAK_READ_BW] > 0;
    int32_t threads = (int32_t)json_integer_value(json_object_get(b->engine, "threads")), n = b->config.n_prompt;
    double prefill_s = roof && n > 0 ? hn_work_prefill_s(&b->work, &b->peaks, threads, n, false) : NAN;
    const hn_work *w = &b->work;
    double weights = w->int8_layers + w->float_layers + (n > 0 ? (w->int8_head + w->float_head) / n : 0);
    json_t *o = json_object();
    json_object_set_new(o, "bytes_per_token", json_integer((json_int_t)w->bytes_per_token));
    json_object_set_new(o, "gb_s", hn_lab_num(decode * (double)w->bytes_per_token / 1e9));
    json_object_set_new(o, "roof_gb_s", roof ? hn_lab_num(hn_peaks_at(&b->peaks, HN_PEAK_READ_BW, threads)) : json_null());
    json_object_set_new(o, "pct", hn_lab_num(100 * b->decode_share));
    json_object_set_new(o, "prefill_gops", hn_lab_num(2e-9 * weights * prefill));
    json_object_set_new(o, "prefill_roof_gops", hn_lab_num(2e-9 * weights * n / prefill_s));
    json_object_set_new(o, "prefill_pct", hn_lab_num(100 * b->prefill_share));
    json_object_set_new(o, "peaks", roof ? json_pack("{s:s, s:s, s:o}", "ts", b->peaks.ts, "level", b->peaks.level, "doubts",
                                                     b->peaks.doubts[0] ? hn_lab_str(b->peaks.doubts) : json_null()) : json_null());
    json_object_set_new(o, "missing", roof ? json_null() : hn_lab_str(b->no_roof));
    return o;
}

/* All gaps between tokens, pooled. Those of one process are not independent of each other: percentiles
 * describe them, an interval would promise too much. */
static hone_status pool_gaps(const bench *b, hn_stats *out)
{
    size_t i, k, n = 0, cap = 1;
    json_t *s, *g;
    json_array_foreach(b->samples, i, s) cap += json_array_size(json_object_get(s, "gaps_ms"));
    double *x = malloc(cap * sizeof *x);
    if (!x) return HONE_E_NOMEM;
    json_array_foreach(b->samples, i, s)
        json_array_foreach(json_object_get(s, "gaps_ms"), k, g) x[n++] = json_number_value(g);
    hone_status st = hn_stats_of(out, x, n, NULL);
    free(x);
    return st;
}

static json_t *extra_json(const bench *b)
{
    json_t *o = json_object();
    hn_stats g;
    double gb = (stats_of(b, "peak_anon_mb")->median + stats_of(b, "model_resident_mb")->median) / 1e3;
    if (pool_gaps(b, &g) == HONE_OK && g.n > 0)
        json_object_set_new(o, "itl_ms", json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "n", (int)g.n, "p50", hn_lab_num(g.median), "p90", hn_lab_num(g.p90), "p95",
                                                   hn_lab_num(g.p95), "p99", hn_lab_num(g.p99), "max", hn_lab_num(g.max), "mean", hn_lab_num(g.mean)));
    json_object_set_new(o, "tok_s_per_gb", hn_lab_num(stats_of(b, "decode_tok_s")->median / gb));
    if (json_array_size(b->voided)) json_object_set(o, "voided", b->voided);
    if (b->interrupted) json_object_set_new(o, "interrupted", json_true());
    return o;
}

static json_t *record_json(const bench *b)
{
    const hn_opts *o = b->cli->opts;
    json_t *r = hn_json_new(HN_BENCH_SCHEMA), *stats = json_object(), *better = json_object(), *unit = json_object(), *memory = json_object();
    json_t *hash = json_object_get(b->quality, "hash");
    char ts[40];
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(r, "id", json_string("e2e"));
    json_object_set_new(r, "record", hn_bench_identity());
    json_object_set_new(r, "ts", json_string(ts));
    json_object_set_new(r, "title", hn_lab_str(hn_opts_str(o, "title")));
    json_object_set_new(r, "change", hn_lab_str(hn_opts_str(o, "change")));
    for (int k = 0; k < N_METRICS; k++) {
        json_object_set_new(stats, metrics[k].key, hn_stats_json(&b->stats[k]));
        json_object_set_new(better, metrics[k].key, json_string(metrics[k].higher ? "higher" : "lower"));
        json_object_set_new(unit, metrics[k].key, json_string(metrics[k].unit));
    }
    for (int k = 0; k < N_TOP; k++) json_object_set_new(r, metrics[k].key, hn_lab_num(b->stats[k].median));
    for (int k = FIRST_MEMORY; k < END_MEMORY; k++) json_object_set_new(memory, metrics[k].key, hn_lab_num(b->stats[k].median));
    for (const char *const *m = (const char *const[]){ "cache_mb", "scratch_mb", "logits_mb", NULL }; *m; m++)
        json_object_set_new(memory, *m, hn_lab_num(field(b->engine, *m)));
    json_object_set_new(r, "quality", hash ? json_incref(hash) : json_null());
    json_object_set_new(r, "valid", b->verdict.state == HN_UNCHECKED ? json_null() : json_boolean(b->verdict.state == HN_VALID));
    json_object_set_new(r, "invalid_reason", b->verdict.state == HN_VALID ? json_null() : hn_lab_str(b->verdict.reason));
    json_object_set(r, "notes", b->notes);
    json_object_set_new(r, "config", config_json(b));
    json_object_set(r, "model", b->model);
    json_object_set_new(r, "env", hn_environ_json(&b->env));
    json_object_set_new(r, "git", hn_bench_git_json(&b->env));
    json_object_set_new(r, "build", hn_bench_build_json(&b->env));
    json_object_set_new(r, "engine", hn_bench_engine_json());
    json_object_set_new(r, "unit", unit);
    json_object_set_new(r, "better", better);
    json_object_set_new(r, "warmups", json_integer(b->n_warmups));
    json_object_set(r, "samples", b->samples);
    json_object_set_new(r, "stats", stats);
    json_object_set_new(r, "memory", memory);
    json_object_set_new(r, "energy", json_null());
    json_object_set_new(r, "roofline", roofline_json(b));
    json_object_set_new(r, "voided", json_integer((json_int_t)json_array_size(b->voided)));
    json_object_set_new(r, "target", json_null());
    json_object_set_new(r, "extra", extra_json(b));
    json_object_set_new(r, "quality_detail", b->quality ? json_incref(b->quality) : json_null());
    return r;
}

/* ---- what a person sees -------------------------------------------------------------------------- */

static int decimals(double x) { return fabs(x) >= 1000 ? 0 : fabs(x) >= 100 ? 1 : fabs(x) >= 10 ? 2 : 3; }

/* The share of the roof in words for the two rates that have one. */
static const char *share_text(const bench *b, int k, char *dst, size_t cap)
{
    double share = strcmp(metrics[k].key, "decode_tok_s") == 0 ? b->decode_share : strcmp(metrics[k].key, "prefill_tok_s") == 0 ? b->prefill_share : NAN;
    dst[0] = 0;
    if (isfinite(share)) snprintf(dst, cap, "%.0f %%", 100 * share);
    return dst;
}

static void print_metric(const bench *b, int k)
{
    enum { SHOWN = 8 };
    const hn_stats *s = &b->stats[k];
    char ci[32] = "n/a", share[32];
    if (s->n == 0) {
        hn_out_printf("%-18s %10s\n", metrics[k].label, "-");
        return;
    }
    int d = decimals(s->median);
    if (isfinite(s->ci95[0])) snprintf(ci, sizeof ci, "%.*f", d, hn_stats_half_width(s));
    hn_out_printf("%-18s %10.*f %10s %7s   ", metrics[k].label, d, s->median, ci, share_text(b, k, share, sizeof share));
    size_t i;
    json_t *one;
    json_array_foreach(b->samples, i, one) {
        double v = field(one, metrics[k].key);
        if (i == SHOWN) hn_out_printf(" …");
        if (i >= SHOWN) break;
        if (isfinite(v)) hn_out_printf(" %.*f", d, v);
        else hn_out_printf(" -");
    }
    hn_out_printf("\n");
}

/* --timing: where the time of each process went. */
static void print_timing(const bench *b)
{
    hn_stats g;
    size_t i;
    json_t *s;
    hn_out_printf("\n%-8s %10s %10s %10s %10s %10s %10s %8s\n", "process", "load ms", "prompt ms", "gen ms", "gap ms", "longest", "CPUs", "steal %");
    json_array_foreach(b->samples, i, s) {
        double n = b->config.n_prompt, prefill = 1e3 * n / field(s, "prefill_tok_s"), gap = 0, most = 0;
        size_t k;
        json_t *one;
        json_array_foreach(json_object_get(s, "gaps_ms"), k, one) {
            gap += json_number_value(one);
            most = fmax(most, json_number_value(one));
        }
        hn_out_printf("%-8zu %10.2f %10.2f %10.2f %10.3f %10.3f %10.2f %8.1f\n", i + 1, field(s, "load_ms"), prefill, gap, field(s, "itl_ms"), most, field(s, "cpu_use"),
                      field(s, "steal_pct"));
    }
    if (pool_gaps(b, &g) != HONE_OK || g.n == 0) return;
    hn_out_printf("gaps     %zu: median %.3f ms", g.n, g.median);
    const double q[] = { g.p90, g.p95, g.p99 };
    for (int k = 0; k < 3; k++) {
        if (isfinite(q[k])) hn_out_printf(", p%d %.3f", k == 0 ? 90 : k == 1 ? 95 : 99, q[k]);
        else hn_out_printf(", p%d needs %d gaps", k == 0 ? 90 : k == 1 ? 95 : 99, k == 0 ? 100 : k == 1 ? 200 : 1000);
    }
    hn_out_printf(", longest %.3f\n", g.max);
}

static void print_report(const bench *b, json_t *r)
{
    json_t *c = json_object_get(r, "config");
    const char *path = hn_opts_str(b->cli->opts, "model");
    hn_out_printf("model    %s: %s %s, %.1f MB, %.1f M weights\n", HN_ESC(path, strlen(path)), text_of(b->model, "arch"), text_of(b->model, "type"),
                  field(b->model, "bytes") / 1e6, field(b->model, "params") / 1e6);
    double state = field(b->model, "state_mb");
    char memory[64];
    if (state > 0) snprintf(memory, sizeof memory, "state %.4g MB", state);
    else snprintf(memory, sizeof memory, "kv %s", text_of(c, "kv"));
    hn_out_printf("config   prompt %d, generate %d, depth %d; %.0f thread%s, %s, %s, chunk %d, %s weights; %d fresh process%s\n", b->config.n_prompt,
                  b->config.n_gen, b->config.depth, field(c, "threads"), field(c, "threads") == 1 ? "" : "s", text_of(c, "cpu"), memory,
                  hn_opts_i32(b->cli->opts, "chunk"), text_of(c, "weights"), b->n_samples, b->n_samples == 1 ? "" : "es");
    size_t at;
    json_t *a;
    json_array_foreach(json_object_get(c, "adapters"), at, a)
        hn_out_printf("adapter  %s × %.4g: rank %.0f, %.0f matrices\n", HN_ESC(text_of(a, "file"), strlen(text_of(a, "file"))), field(a, "scale"), field(a, "rank"), field(a, "pairs"));
    hn_out_printf("machine  %s, %d cores, %s (env %s)\n\n", b->env.cpu_model[0] ? b->env.cpu_model : b->env.machine, b->env.cores, b->env.kernel,
                  b->env.hash);
    hn_out_printf("%-18s %10s     ± 95 %%  of roof   samples\n", "", "median");
    for (int k = 0; k < N_METRICS; k++) print_metric(b, k);
    if (hn_opts_flag(b->cli->opts, "timing")) print_timing(b);
    hn_out_printf("\n");
    print_roof(b);
    hn_out_printf("quality  %s\n", json_is_string(json_object_get(r, "quality")) ? text_of(r, "quality") : "none");
    switch (b->verdict.state) {
    case HN_VALID: hn_out_printf("verdict  valid\n"); break;
    case HN_INVALID: hn_out_printf("verdict  INVALID: %s\n", b->verdict.reason); break;
    default: hn_out_printf("verdict  %s\n", b->verdict.reason);
    }
    size_t i;
    json_t *n;
    json_array_foreach(b->notes, i, n) hn_out_printf("note     %s\n", json_string_value(n));
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int open_and_describe(bench *b)
{
    hone_model *m;
    hone_model_info info;
    int rc = hn_cli_open_model(b->cli, false, &m);
    if (rc) return rc;
    hone_model_get_info(m, &info);
    b->model = hn_bench_model_json(hn_opts_str(b->cli->opts, "model"), &info);
    b->n_ctx_train = info.n_window ? 0 : info.n_ctx_train; /* a window has a note of its own */
    hn_cli_window_note(&info, (int64_t)b->config.depth + b->config.n_prompt + b->config.n_gen);
    snprintf(b->packed, sizeof b->packed, "%s", info.packed_path ? info.packed_path : "");
    snprintf(b->why, sizeof b->why, "%s", info.packed_note);
    hone_error err;
    hone_status st = hn_work_of(&b->work, hn_opts_str(b->cli->opts, "model"), &err);
    hn_work_add(&b->work, &info);
    hone_model_close(m);
    return st == HONE_OK ? 0 : hn_cli_fail_model(&err);
}

static void show_progress(const bench *b, int32_t done, double since_s)
{
    char label[80] = "measuring";
    double left = done ? since_s * (b->n_samples - done) / done : NAN;
    if (left < 100) snprintf(label, sizeof label, "measuring, about %.0f s left", left);
    else if (left >= 100) snprintf(label, sizeof label, "measuring, about %.0f min left", left / 60);
    hn_progress_fn(label, (uint64_t)(done < b->n_samples ? done : b->n_samples), (uint64_t)b->n_samples);
}

static int measure(bench *b)
{
    int rc = 0;
    double seconds = hn_opts_given(b->cli->opts, "measurement-time") ? (double)hn_opts_f32(b->cli->opts, "measurement-time") : 0, since = 0;
    if (hn_opts_flag(b->cli->opts, "no-quality")) read_model_file(b->packed[0] ? b->packed : hn_opts_str(b->cli->opts, "model"));
    else rc = run_quality(b);
    if (rc == 0) rc = warm_up(b);
    uint64_t t0 = hn_clock_ns();
    for (int32_t i = 0; rc == 0 && (i < b->n_samples || (since < seconds && b->verdict.state != HN_INVALID)); i++) {
        show_progress(b, i, since);
        rc = run_sample(b, i);
        since = (double)(hn_clock_ns() - t0) * 1e-9;
    }
    hn_progress_end();
    if (rc == 0 && hn_interrupted() && (int32_t)json_array_size(b->samples) < b->n_samples) rc = HN_EXIT_INTERRUPTED;
    if (rc == HN_EXIT_SIGINT) rc = HN_EXIT_INTERRUPTED; /* in the laboratory every stop is 6 */
    b->interrupted = rc == HN_EXIT_INTERRUPTED;
    if (!b->interrupted || json_array_size(b->samples) == 0) return rc;
    note(b, "interrupted after %zu of %d", json_array_size(b->samples), b->n_samples);
    return 0;
}

static int report(bench *b, const char *base)
{
    hone_error err;
    char row[8192] = "";
    int rc = make_stats(b);
    if (rc) return rc;
    judge(b);
    json_t *r = record_json(b);
    if (!r) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the record");
    snprintf(b->record, sizeof b->record, "%s", text_of(r, "record"));
    if (base && (hn_record_append(base, r, &err) != HONE_OK || hn_history_append(base, r, row, sizeof row, &err) != HONE_OK)) rc = hn_cli_fail(&err);
    if (!b->cli->json) {
        print_report(b, r);
        if (base && !rc) hn_out_printf("\n%s.md:\n%s", base, row);
    }
    if (b->verdict.state == HN_INVALID) hn_cli_error(0, "invalid result: %s", b->verdict.reason);
    if (!b->cli->json) json_decref(r);
    else if (hn_json_print(r) && !rc) rc = HN_EXIT_FAILURE;
    if (b->interrupted) {
        hn_cli_error(0, "interrupted after %zu of %d samples: those are shown%s", json_array_size(b->samples), b->n_samples, base ? " and kept" : "");
        return HN_EXIT_INTERRUPTED;
    }
    return rc ? rc : b->verdict.state == HN_INVALID ? HN_EXIT_FAILURE : HN_EXIT_OK;
}

static int check_texts(const hn_cli *cli)
{
    for (const char *const *name = (const char *const[]){ "title", "change", NULL }; *name; name++) {
        const char *s = hn_opts_str(cli->opts, *name);
        if (s && strlen(s) > MAX_TITLE)
            return hn_cli_usage(cli, "--%s: %zu bytes of text; expected at most %d", *name, strlen(s), MAX_TITLE);
    }
    return 0;
}

static int run(const hn_cli *cli)
{
    if (hn_is_bench_child(cli)) return hn_bench_child(cli);
    int refused = hn_bench_aliases(cli);
    if (refused) return refused;
    const char *file = hn_opts_str(cli->opts, "file");
    if (hn_opts_n_args(cli->opts) > 0 || hn_opts_str(cli->opts, "suite")) {
        if (hn_opts_count(cli->opts, "lora")) return hn_cli_usage(cli, "--lora: benches by id and suites measure the base alone; leave out the id, or the adapter");
        int rc = hn_bench_suite(cli);
        return rc ? rc : hn_bench_follow(cli, file, NULL);
    }
    char base[4096];
    if (!file && (hn_opts_str(cli->opts, "baseline") || hn_opts_str(cli->opts, "save-baseline"))) file = "local";
    hone_error err;
    if (file && hn_record_base(base, sizeof base, file, &err) != HONE_OK) return hn_cli_usage(cli, "%s", err.message);
    int rc = check_texts(cli);
    if (rc) return rc;
    bench b = { .cli = cli, .config = config_of(cli), .n_samples = hn_opts_i32(cli->opts, "samples"), .samples = json_array(), .notes = json_array(),
                .voided = json_array() };
    hn_environ_read(&b.env);
    rc = open_and_describe(&b);
    if (rc == 0) rc = measure(&b);
    if (rc == 0) rc = report(&b, file ? base : NULL);
    if (rc == 0) rc = hn_bench_follow(cli, file, b.record);
    json_decref(b.model);
    json_decref(b.quality);
    json_decref(b.samples);
    json_decref(b.engine);
    json_decref(b.notes);
    json_decref(b.voided);
    return rc;
}

static const hn_opt_group *const groups[] = { &hn_group_model, &hn_group_lora, &bench_group, &hn_group_compute, &record_group, &hn_group_alias, &hn_group_suite, &hn_group_kern, NULL };
const hn_command hn_command_bench = {
    .name = "bench", .summary = "Measure a model on this machine, and whether it still answers the same",
    .args = "[ID…]", .max_args = -1, .groups = groups,
    .examples = "hone bench -m model.gguf\n"
                "hone bench -m model.gguf -p 1024 -n 128 -r 10 --json\n"
                "hone bench -m model.gguf -r 6 --file local --title \"tiny, 2 threads\" --change \"new matmul\"\n"
                "hone bench 'kern.gemv.Q4_K.*' --preset llama-3.2-1b -t 2\n",
    .run = run,
};
