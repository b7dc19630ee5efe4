/* e2e: a prompt and a generation of tokens that mean nothing, the same for everyone, in
 * fresh processes. Its record has many metrics, where other entries have one; it is what
 * `hone bench` measures without an id. How processes are run is runner.c's. */
#define _GNU_SOURCE
#include "lab/record/record_read.h"
#include "lab/bench/runner.h"
#include "lab/bench/bench.h"
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"
#include "base/json_tree.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>

enum { N_PROMPT = 512, N_GEN = 64, SAMPLES = 3 };

const hn_plain_metric hn_plain_metrics[] = {
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
    { 0 },
};
enum {
    N_METRICS = sizeof hn_plain_metrics / sizeof *hn_plain_metrics - 1,
    N_TOP = 5,
    FIRST_MEMORY = 4,
    END_MEMORY = 8
};

typedef struct plain {
    hn_runner p;
    hn_bunch b;
    hn_bench_config config;
    json_t *engine, *notes; /* engine: what the first process says of itself; borrowed */
    hn_stats stats[N_METRICS];
    const char *no_roof;                /* NULL: there is a roof */
    double decode_share, prefill_share; /* of it; NaN: unknown */
    bool interrupted;
} plain;

static const hn_stats *stats_of(const plain *x, const char *key)
{
    int k = 0;
    while (strcmp(hn_plain_metrics[k].key, key) != 0) k++;
    return &x->stats[k];
}

static int32_t threads_of(const plain *x) { return (int32_t)json_integer_value(json_object_get(x->engine, "threads")); }

/* What a process says of itself is the same in all: kept once, beside the samples. */
static void part_engine(plain *x)
{
    json_t *s, *v;
    size_t i;
    x->engine = json_incref(json_object_get(json_array_get(x->b.all, 0), "engine"));
    json_array_foreach(x->b.all, i, s)
    {
        json_t *engine = json_object_get(s, "engine");
        if (!x->engine && engine) x->engine = json_incref(engine);
        json_object_del(s, "engine");
    }
    json_array_foreach(x->b.voided, i, v) json_object_del(json_object_get(v, "result"), "engine");
}

static hone_status make_stats(plain *x, hone_error *err)
{
    size_t i, n_samples = json_array_size(x->b.all);
    double *v = calloc(n_samples + 1, sizeof *v);
    hone_status st = v ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "statistics of %zu samples", n_samples);
    for (int k = 0; k < N_METRICS && st == HONE_OK; k++) {
        size_t n = 0;
        json_t *s;
        json_array_foreach(x->b.all, i, s) if (isfinite(v[n] = hn_result_number(s, hn_plain_metrics[k].key))) n++;
        st = hn_stats_of(&x->stats[k], v, n, err);
    }
    free(v);
    return st;
}

/* ---- judged --------------------------------------------------------------------------------- */

/* The spread above which a number is called unstable: standard deviation over mean. */
static void note_unstable(plain *x)
{
    const double limit = 0.1;
    char text[300] = "";
    for (int k = 0; k < N_METRICS; k++) {
        size_t n = strlen(text);
        if (x->stats[k].n > 2 && x->stats[k].cv > limit)
            snprintf(text + n, sizeof text - n, "%s%s %.2f", n ? ", " : "", hn_plain_metrics[k].label, x->stats[k].cv);
    }
    if (text[0]) hn_notes_add(x->notes, "unstable (CV): %s", text);
}

/* How near the rates come to the roof; v: invalid where they are beyond it. arg: the plain bench. */
static void judge_rates(void *arg, hn_verdict *v, const hn_peaks *peaks)
{
    plain *x = arg;
    const hn_work *work = &x->p.work;
    const int32_t n = x->config.n_prompt, threads = threads_of(x);
    double prefill = stats_of(x, "prefill_tok_s")->median;
    x->decode_share = hn_check_roof(v, stats_of(x, "decode_tok_s")->median, work->bytes_per_token,
                                    hn_peaks_at(peaks, HN_PEAK_READ_BW, threads),
                                    hn_peaks_most(peaks, HN_PEAK_READ_BW, threads), peaks->cache_bytes);
    if (!(prefill > 0)) return;
    x->prefill_share = hn_work_prefill_s(work, peaks, threads, n, false) * prefill / n;
    if (peaks->bound)
        hn_check_compute(v, "prefill", hn_work_prefill_s(work, peaks, threads, n, true),
                         n / stats_of(x, "prefill_tok_s")->max); /* nor may one sample be beyond it */
}

/* The roof of this machine at the level and threads of the samples, and how near the rates come. */
static void judge_roof(plain *x)
{
    hn_bench_run *r = x->p.r;
    const hn_work *w = &x->p.work;
    int32_t threads = threads_of(x), n = x->config.n_prompt;
    x->decode_share = x->prefill_share = NAN;
    x->no_roof = !json_object_get(x->engine, "cpu") ? "nothing was measured" : r->no_roof[0] ? r->no_roof : NULL;
    if (n > 0) hn_check_possible(&x->b.verdict, w, threads, n, n / stats_of(x, "prefill_tok_s")->max);
    if (x->no_roof) return;
    unsigned kinds = 1u << HN_PEAK_READ_BW;
    if (w->int8_layers + w->int8_head > 0) kinds |= 1u << HN_PEAK_INT8;
    if (w->float_layers + w->float_head > 0) kinds |= 1u << HN_PEAK_F32;
    hn_check_twice(&x->b.verdict, judge_rates, x, &r->peaks, kinds, threads, r->set.stop);
    if (r->peaks.doubts[0]) hn_notes_add(x->notes, "the roof was measured on a noisy machine: %s", r->peaks.doubts);
}

/* A file in small pages is read more slowly, and the same file, evicted once, is not. */
static void note_pages(plain *x)
{
    const double large = 64, most = 0.9;
    const json_t *s = json_array_get(x->b.all, json_array_size(x->b.all) - 1);
    const json_t *huge_mb = json_object_get(s, "model_huge_mb");
    double resident = json_number_value(json_object_get(s, "model_resident_mb")), huge = json_number_value(huge_mb);
    if (json_is_number(huge_mb) && resident > large && huge < most * resident)
        hn_notes_add(
            x->notes,
            "%.0f %% of the weights are in huge pages, the others are read more slowly: docs/BENCHMARKING.md, Pages "
            "of a file",
            100 * huge / resident);
}

/* What the RWKV-7 guide wishes for: said beside its numbers. */
static void note_guide(plain *x)
{
    static const struct {
        const char *key, *text;
        double wish;
        bool higher;
    } wishes[] = { { "load_ms", "load < 5 s", 5000, false },
                   { "prefill_tok_s", "prefill 150+ tok/s", 150, true },
                   { "decode_tok_s", "generation 90+ tok/s", 90, true } };
    const double least_params = 1e8; /* the guide is of 0.1B and 2.9B */
    char text[200] = "";
    json_t *model = x->p.r->model_json;
    if (strcmp(hn_record_text(model, "arch"), "rwkv7") != 0 || hn_result_number(model, "params") < least_params) return;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        double v = stats_of(x, wishes[i].key)->median;
        size_t n = strlen(text);
        if (isfinite(v))
            snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "", wishes[i].text,
                     (wishes[i].higher ? v >= wishes[i].wish : v <= wishes[i].wish) ? "met" : "not met");
    }
    if (text[0]) hn_notes_add(x->notes, "guide: %s", text);
}

static void note_text(void *notes, const char *text) { hn_notes_add(notes, "%s", text); }

/* Threads that had to wait for a CPU were not measured alone. */
static void note_waiting(plain *x)
{
    const double least = 0.9;
    double use = hn_bunch_median(&x->b, "cpu_use") / threads_of(x);
    if (use < least) hn_notes_add(x->notes, "disturbed: the threads had %.0f %% of a CPU each", 100 * use);
}

static void note_machine(plain *x)
{
    const hn_environ *env = &x->p.r->env;
    int64_t last = (int64_t)x->config.depth + x->config.n_prompt + x->config.n_gen;
    if (x->p.n_ctx_train > 0 && last > x->p.n_ctx_train)
        hn_notes_add(x->notes, "%" PRId64 " positions, but the model was trained for %d", last, x->p.n_ctx_train);
    json_t *cautions = x->p.r->set.cautions ? x->p.r->set.cautions() : NULL;
    json_array_extend(x->notes, cautions);
    json_decref(cautions);
    size_t i;
    json_t *left;
    json_array_foreach(json_object_get(x->p.r->quality, "left_here"), i, left)
        hn_notes_add(x->notes, "not compared here: %.200s", json_string_value(left));
    note_pages(x);
    note_waiting(x);
    hn_bench_judge_around(x->p.r, &x->b.verdict, note_text, x->notes);
    const char *fs = hn_record_text(x->p.r->model_json, "file_system");
    if (hn_file_system_is_memory(fs))
        hn_notes_add(x->notes, "the model is on %s, which is memory: load times say nothing of a disk", fs);
    if (env->load[0] > 0.5 * env->cores)
        hn_notes_add(x->notes, "load average %.1f on %d cores at the start: expect noise", env->load[0], env->cores);
}

static void judge(plain *x)
{
    const hn_bunch *b = &x->b;
    bool constant = json_is_true(json_object_get(json_array_get(b->all, 0), "constant"));
    size_t again = json_array_size(b->voided), n = json_array_size(b->all);
    if (x->interrupted) hn_notes_add(x->notes, "interrupted after %zu of %d", n, b->wanted);
    if (constant && x->p.r->set.no_quality)
        hn_invalid(&x->b.verdict, "degenerate output: one token repeated through the whole generation");
    else if (constant)
        hn_notes_add(x->notes,
                     "the pseudo-random measured prompt ended in one token repeated; the quality prompts did not");
    judge_roof(x);
    if (again)
        hn_notes_add(x->notes, "%zu sample%s measured again: %s%s", again, again == 1 ? " was" : "s were",
                     hn_record_text(json_array_get(b->voided, 0), "reason"), again > 1 ? ", …" : "");
    if (b->n_kept)
        hn_notes_add(x->notes, "%d of %zu samples are kept although %s: it would not stop", b->n_kept, n, b->kept);
    note_guide(x);
    note_unstable(x);
    note_machine(x);
}

/* ---- the record ------------------------------------------------------------------------------ */

static json_t *or_null(json_t *o) { return o ? json_incref(o) : json_null(); }

static json_t *config_json(const plain *x)
{
    const hn_bench_settings *set = &x->p.r->set;
    json_t *j = json_object(), *adapters = json_object_get(x->engine, "adapters");
    json_object_set_new(j, "n_prompt", json_integer(x->config.n_prompt));
    json_object_set_new(j, "n_gen", json_integer(x->config.n_gen));
    json_object_set_new(j, "depth", json_integer(x->config.depth));
    json_object_set_new(j, "samples", json_integer(x->b.wanted));
    json_object_set_new(j, "threads", or_null(json_object_get(x->engine, "threads")));
    json_object_set_new(j, "cpu", or_null(json_object_get(x->engine, "cpu")));
    json_object_set_new(j, "kv", hn_lab_str(set->kv));
    json_object_set_new(j, "chunk", json_integer(set->chunk));
    json_object_set_new(j, "weights", json_string(x->p.packed[0] ? x->p.r->weights : "plain"));
    json_object_set_new(j, "weights_note", hn_lab_str(x->p.packed_note));
    if (adapters) json_object_set(j, "adapters", adapters);
    if (set->pre) json_object_set_new(j, "pre", hn_lab_str(set->pre));
    if (x->config.prompt_seed) json_object_set_new(j, "prompt_seed", json_integer((json_int_t)x->config.prompt_seed));
    json_object_set_new(j, "sampler", json_string("greedy"));
    json_object_set_new(j, "seed", json_null());
    json_object_set_new(j, "load", json_string("warm"));
    return j;
}

static json_t *roofline_json(const plain *x)
{
    const hn_work *w = &x->p.work;
    const hn_peaks *peaks = &x->p.r->peaks;
    double decode = stats_of(x, "decode_tok_s")->median, prefill = stats_of(x, "prefill_tok_s")->median;
    bool roof = !x->no_roof && peaks->n[HN_PEAK_READ_BW] > 0;
    int32_t threads = threads_of(x), n = x->config.n_prompt;
    double prefill_s = roof && n > 0 ? hn_work_prefill_s(w, peaks, threads, n, false) : NAN;
    double weights = w->int8_layers + w->float_layers + (n > 0 ? (w->int8_head + w->float_head) / n : 0);
    json_t *o = json_object();
    json_object_set_new(o, "bytes_per_token", json_integer((json_int_t)w->bytes_per_token));
    json_object_set_new(o, "gb_s", hn_lab_num(decode * (double)w->bytes_per_token / 1e9));
    json_object_set_new(o, "roof_gb_s", roof ? hn_lab_num(hn_peaks_at(peaks, HN_PEAK_READ_BW, threads)) : json_null());
    json_object_set_new(o, "pct", hn_lab_num(100 * x->decode_share));
    json_object_set_new(o, "prefill_gops", hn_lab_num(2e-9 * weights * prefill));
    json_object_set_new(o, "prefill_roof_gops", hn_lab_num(2e-9 * weights * n / prefill_s));
    json_object_set_new(o, "prefill_pct", hn_lab_num(100 * x->prefill_share));
    json_object_set_new(o, "peaks",
                        roof ? json_pack("{s:s, s:s, s:o}", "ts", peaks->ts, "level", peaks->level, "doubts",
                                         peaks->doubts[0] ? hn_lab_str(peaks->doubts) : json_null())
                             : json_null());
    json_object_set_new(o, "missing", roof ? json_null() : hn_lab_str(x->no_roof));
    return o;
}

static json_t *extra_json(const plain *x)
{
    json_t *o = json_object(), *gaps = hn_bunch_gaps(&x->b, "gaps_ms");
    double gb = (stats_of(x, "peak_anon_mb")->median + stats_of(x, "model_resident_mb")->median) / 1e3;
    if (json_is_null(gaps)) json_decref(gaps);
    else json_object_set_new(o, "itl_ms", gaps);
    json_object_set_new(o, "tok_s_per_gb", hn_lab_num(stats_of(x, "decode_tok_s")->median / gb));
    json_t *proof = json_object_get(json_array_get(x->b.all, 0), "proof");
    if (proof) json_object_set(o, "proof", proof);
    if (json_array_size(x->b.voided)) json_object_set(o, "voided", x->b.voided);
    if (x->interrupted) json_object_set_new(o, "interrupted", json_true());
    return o;
}

/* One member for each metric from number `from` up to `end`. */
static json_t *of_metrics(const plain *x, json_t *(*of)(const plain *x, int k), int from, int end)
{
    json_t *o = json_object();
    for (int k = from; k < end; k++) json_object_set_new(o, hn_plain_metrics[k].key, of(x, k));
    return o;
}

static json_t *median_of(const plain *x, int k) { return hn_lab_num(x->stats[k].median); }
static json_t *stats_json(const plain *x, int k) { return hn_stats_json(&x->stats[k]); }
static json_t *unit_of(const plain *x, int k) { return json_string(hn_plain_metrics[k].unit); }
static json_t *better_of(const plain *x, int k) { return json_string(hn_plain_metrics[k].higher ? "higher" : "lower"); }

static json_t *memory_json(const plain *x)
{
    json_t *o = of_metrics(x, median_of, FIRST_MEMORY, END_MEMORY);
    for (const char *const *m = (const char *const[]){ "cache_mb", "scratch_mb", "logits_mb", NULL }; *m; m++)
        json_object_set_new(o, *m, hn_lab_num(hn_result_number(x->engine, *m)));
    return o;
}

static json_t *record_json(const plain *x)
{
    const hn_bench_run *run = x->p.r;
    const hn_verdict *v = &x->b.verdict;
    json_t *r = json_object(), *quality = run->set.no_quality ? NULL : run->quality;
    char ts[40];
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(r, "schema", json_string(HN_BENCH_SCHEMA));
    json_object_set_new(r, "id", json_string(x->p.e->id));
    json_object_set_new(r, "record", hn_bench_identity());
    json_object_set_new(r, "ts", json_string(ts));
    json_object_set_new(r, "title", hn_lab_str(run->set.title));
    json_object_set_new(r, "change", hn_lab_str(run->set.change));
    for (int k = 0; k < N_TOP; k++) json_object_set_new(r, hn_plain_metrics[k].key, median_of(x, k));
    json_object_set_new(r, "quality", or_null(json_object_get(quality, "hash")));
    json_object_set_new(r, "valid", v->state == HN_UNCHECKED ? json_null() : json_boolean(v->state == HN_VALID));
    json_object_set_new(r, "invalid_reason", v->state == HN_VALID ? json_null() : hn_lab_str(v->reason));
    json_object_set(r, "notes", x->notes);
    json_object_set_new(r, "config", config_json(x));
    json_object_set(r, "model", run->model_json);
    json_object_set_new(r, "env", hn_environ_json(&run->env));
    json_object_set_new(r, "git", hn_bench_git_json(&run->env));
    json_object_set_new(r, "build", hn_bench_build_json(&run->env));
    json_object_set_new(r, "engine", hn_bench_engine_json());
    json_object_set_new(r, "unit", of_metrics(x, unit_of, 0, N_METRICS));
    json_object_set_new(r, "better", of_metrics(x, better_of, 0, N_METRICS));
    json_object_set_new(r, "warmups", json_integer(x->b.warmups));
    json_object_set(r, "samples", x->b.all);
    json_object_set_new(r, "stats", of_metrics(x, stats_json, 0, N_METRICS));
    json_object_set_new(r, "allocs", hn_bunch_allocs_of_run(&x->b));
    json_object_set_new(r, "memory", memory_json(x));
    json_object_set_new(r, "energy", json_null());
    json_object_set_new(r, "roofline", roofline_json(x));
    json_object_set_new(r, "voided", json_integer((json_int_t)json_array_size(x->b.voided)));
    json_object_set_new(r, "target", json_null());
    json_object_set_new(r, "extra", extra_json(x));
    json_object_set_new(r, "quality_detail", or_null(quality));
    return r;
}

/* ---- the row ----------------------------------------------------------------------------------- */

/* The rates of one more process, of the measured prompt or of one that nobody was ever asked: [0] prompt, [1]
 * generation. NaN: it has none. */
static hone_status rates_of(double rate[2], plain *x, bool fresh, hone_error *err)
{
    hn_bunch b = { .mode = "_sample" };
    json_t *o = NULL;
    hn_argv_extend(&b.args, hn_argv_words(&x->b.args));
    if (fresh) hn_argv_set(&b.args, "prompt-seed", "%" PRIu64, hn_rand64(hn_clock_ns(), 1) >> 8);
    hone_status st = hn_bunch_once(&x->p, &b, &o, err);
    rate[0] = hn_json_number_of(o, "prefill_tok_s");
    rate[1] = hn_json_number_of(o, "decode_tok_s");
    json_decref(o);
    hn_argv_free(&b.args);
    return st;
}

/* All samples are asked the same, which a program may have kept from one to the next. What was not asked before is as
 * fast; where it is much slower, both are asked in turns, since the machine may have become slower. */
static hone_status ask_another(plain *x, hone_error *err)
{
    enum { LEAST = 3, PAIRS = 5 };
    static const char *const keys[] = { "prefill_tok_s", "decode_tok_s" }, *const words[] = { "prompt", "generation" };
    const double share = 0.7;
    double rate[2], known[2];
    int slower[2] = { 0 };
    if (x->b.wanted < LEAST || x->p.r->set.no_quality || x->b.verdict.state == HN_INVALID) return HONE_OK;
    for (int i = 0; i < 2; i++) known[i] = hn_bunch_median(&x->b, keys[i]);
    for (int n = 0; n < PAIRS; n++) {
        bool open = false;
        hone_status st = rates_of(rate, x, true, err);
        if (st == HONE_OK && n > 0) st = rates_of(known, x, false, err);
        if (st != HONE_OK) return st;
        for (int i = 0; i < 2; i++) {
            slower[i] += rate[i] < share * known[i];
            open = open || slower[i] == n + 1;
        }
        if (!open) return HONE_OK;
    }
    for (int i = 0; i < 2; i++)
        if (slower[i] == PAIRS)
            hn_invalid(&x->b.verdict,
                       "what was never asked before is slower each time, %.4g tok/s beside %.4g of the measured %s: it "
                       "is remembered",
                       rate[i], known[i], words[i]);
    return HONE_OK;
}

static hone_status measure(plain *x, hone_error *err)
{
    hn_bunch_ask(&x->b, x->config.n_prompt, x->config.n_gen, x->config.depth);
    if (x->config.prompt_seed) hn_argv_add(&x->b.args, "--prompt-seed=%" PRIu64, x->config.prompt_seed);
    hone_status ran = hn_bunch_measure(&x->p, &x->b, 1, hn_runner_samples(&x->p, SAMPLES), err);
    if (ran == HONE_OK) ran = ask_another(x, err);
    ran = hn_bunch_check(&x->p, &x->b, ran, err);
    size_t n = json_array_size(x->b.all);
    if (n == 0 || (ran != HONE_OK && ran != HONE_E_INTERRUPTED)) return ran;
    hone_error other;
    x->interrupted = ran == HONE_E_INTERRUPTED;
    part_engine(x);
    hone_status st = make_stats(x, &other);
    if (st == HONE_OK) {
        judge(x);
        st = hn_bench_keep(x->p.r, x->p.e, record_json(x), x->b.verdict.state == HN_INVALID, &other);
    }
    return st == HONE_OK ? ran : HN_FAIL(err, st, "%s", other.message);
}

/* A prompt that nobody asked for need not be longer than what the model was trained for. */
static void fit_prompt(plain *x, const hn_bench_settings *set)
{
    int32_t room = x->p.n_ctx_train - x->config.depth - x->config.n_gen;
    if (set->n_prompt < 0 && x->p.n_ctx_train > 0 && room >= 64 && room < x->config.n_prompt)
        x->config.n_prompt = room & ~63;
}

hone_status hn_run_e2e(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    const hn_bench_settings *set = &r->set;
    plain *x = calloc(1, sizeof *x);
    if (!x || !(x->notes = json_array())) {
        free(x);
        return HN_FAIL(err, HONE_E_NOMEM, "%s", e->id);
    }
    x->b = (hn_bunch){ .mode = "_sample", .no_warmup = true, .keep_crashes = true };
    x->config = (hn_bench_config){ .n_prompt = set->n_prompt >= 0 ? set->n_prompt : N_PROMPT,
                                   .n_gen = set->n_gen >= 0 ? set->n_gen : N_GEN,
                                   .depth = set->depth > 0 ? set->depth : 0,
                                   .prompt_seed = set->prompt_seed };
    hone_status st = hn_runner_begin(&x->p, r, e, err);
    if (st == HONE_OK) fit_prompt(x, set);
    if (st == HONE_OK) st = hn_runner_quality(&x->p, &x->b.verdict, err);
    if (st == HONE_OK) st = measure(x, err);
    hn_bunch_free(&x->b);
    json_decref(x->engine);
    json_decref(x->notes);
    free(x);
    return st;
}
