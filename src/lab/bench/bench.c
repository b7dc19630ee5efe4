/* What the entries of the catalogue share: one run and its settings, the model, calibrated
 * loops, judgement and records. Refuses to know what is measured, terminals and files. */
#define _GNU_SOURCE
#include "base/os.h"
#include "lab/bench/bench.h"
#include "lab/bench/target.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/quality/proof.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EPOCH_NS = 1000000, EPOCH_TICKS = 1000, RECORD_KEYS = 29 };
static const double warm_enough_s = 1; /* unasked warm-ups end here: long calls are warm after one */

/* ---- a run --------------------------------------------------------------------------------- */

static void find_roof(hn_bench_run *r)
{
    char path[4096];
    hone_error err;
    if (hn_peaks_path(path, sizeof path, &r->env, r->level, &err) != HONE_OK ||
        hn_peaks_load(&r->peaks, path, &r->env, r->level, &err) != HONE_OK)
        snprintf(r->no_roof, sizeof r->no_roof, "%s", err.message);
}

hone_status hn_bench_begin(hn_bench_run *r, const hn_bench_settings *s, hone_error *err)
{
    *r = (hn_bench_run){ .set = *s, .free_warmups = s->warmups < 0, .free_samples = s->samples < 0 };
    hn_cpu_level level;
    hone_status st = hn_cpu_choose(&level, s->cpu, err);
    if (st != HONE_OK) return st;
    if (s->samples > HN_BENCH_MAX_SAMPLES)
        return HN_FAIL(err, HONE_E_ARG, "%d samples, expected at most %d", s->samples, HN_BENCH_MAX_SAMPLES);
    if (s->samples == 0) return HN_FAIL(err, HONE_E_ARG, "0 samples, expected at least 1");
    r->level = hn_cpu_level_name(level);
    if (r->set.threads <= 0) r->set.threads = hn_cpu_count();
    if (r->set.samples < 0) r->set.samples = s->quick ? HN_BENCH_QUICK_SAMPLES : HN_BENCH_SAMPLES;
    if (r->set.warmups < 0) r->set.warmups = s->quick ? HN_BENCH_QUICK_WARMUPS : HN_BENCH_WARMUPS;
    if (!r->set.kv) r->set.kv = "f16";
    if (!(r->records = json_array())) return HN_FAIL(err, HONE_E_NOMEM, "records");
    hn_environ_read(&r->env);
    find_roof(r);
    r->t0_ns = hn_clock_ns();
    return HONE_OK;
}

void hn_bench_end(hn_bench_run *r)
{
    hn_bench_model_close(r);
    hone_context_free(r->ctx);
    json_decref(r->model_json);
    json_decref(r->records);
    json_decref(r->quality);
    *r = (hn_bench_run){ 0 };
}

static double cost_of(const hn_bench_entry *e) { return e->cost > 0 ? (double)e->cost : 1; }

bool hn_bench_step(hn_bench_run *r, double done)
{
    const hn_bench_settings *s = &r->set;
    r->at_done = done;
    if (r->at && s->progress) {
        double all = fmax(r->cost_all, r->cost_done + cost_of(r->at));
        double share = (r->cost_done + cost_of(r->at) * fmin(fmax(done, 0), 1)) / all,
               gone_s = (double)(hn_clock_ns() - r->t0_ns) * 1e-9;
        s->progress(s->progress_arg, r->at->id, share, share > 0.02 ? gone_s * (1 - share) / share : NAN);
    }
    return s->stop && s->stop(NULL);
}

hone_status hn_bench_run_one(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    if (!e->run)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: not in this build: needs %s", e->id,
                       e->needs ? e->needs : "another one");
    if (e->model && !r->set.model) return HN_FAIL(err, HONE_E_ARG, "%s measures a model: -m FILE", e->id);
    r->at = e;
    hone_status st = hn_bench_step(r, 0) ? HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id) : e->run(r, e, err);
    r->cost_done += cost_of(e);
    r->at = NULL;
    return st;
}

hone_status hn_bench_not_recurrent(const hn_bench_entry *e, const char *why, hone_error *err)
{
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: not for a recurrent model: %s", e->id, why);
}

hone_status hn_bench_only_recurrent(const hn_bench_entry *e, hone_error *err)
{
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: only for a recurrent model (RWKV), and this one has attention", e->id);
}

/* ---- the model ---------------------------------------------------------------------------------- */

void hn_bench_adopt(hn_bench_run *r, hone_model *m)
{
    r->model = m;
    hone_model_get_info(m, &r->info);
    r->packed = r->info.packed_path != NULL;
    hn_weights_words(r->weights, &r->info);
    if (!r->model_json) r->model_json = hn_bench_model_json(r->set.model, &r->info);
}

hone_status hn_bench_model(hn_bench_run *r, hone_model **out, hone_error *err)
{
    hone_status st = HONE_OK;
    if (!r->model) {
        const hone_model_params p = { .tokenizer_pre = r->set.pre, .packed = r->set.packed };
        hone_model *m;
        st = hone_model_open(&m, r->set.model, &p, err);
        if (st == HONE_OK) hn_bench_adopt(r, m);
    }
    *out = r->model;
    return st;
}

void hn_bench_model_close(hn_bench_run *r)
{
    hone_model_close(r->model);
    r->model = NULL;
    r->info = (hone_model_info){ 0 };
}

hone_status hn_bench_context(hn_bench_run *r, hone_context **out, hone_error *err)
{
    hone_status st = HONE_OK;
    if (!r->ctx) {
        const hone_context_params p = { .n_threads = r->set.threads,
                                        .cpu = r->set.cpu,
                                        .n_threads_batch = r->set.threads_batch };
        st = hone_context_new(&r->ctx, &p, err);
    }
    *out = r->ctx;
    return st;
}

hone_kv_cache_type hn_bench_cache(const hn_bench_run *r)
{
    return strcmp(r->set.kv, "f32") == 0    ? HONE_CACHE_F32
           : strcmp(r->set.kv, "q8_0") == 0 ? HONE_CACHE_Q8_0
                                            : HONE_CACHE_F16;
}

hone_status hn_bench_session(hn_bench_run *r, hone_session **out, int32_t n_ctx, int32_t n_seq, hone_error *err)
{
    *out = NULL;
    hone_model *m;
    hone_context *ctx;
    hone_session_params p = { .n_ctx = n_ctx,
                              .n_seq = n_seq,
                              .n_chunk = r->set.chunk,
                              .allow_paging = r->set.allow_paging,
                              .cache = hn_bench_cache(r) };
    hone_status st = hn_bench_model(r, &m, err);
    if (st == HONE_OK) st = hn_bench_context(r, &ctx, err);
    if (st == HONE_OK) st = hone_session_new(out, ctx, m, &p, err);
    if (st == HONE_OK && r->set.stop) hone_session_set_abort(*out, r->set.stop, NULL);
    return st;
}

/* ---- calibrated loops ----------------------------------------------------------------------------- */

/* The smallest step of the clock that can be seen, in ns. */
static uint64_t clock_tick(void)
{
    enum { LOOKS = 200 };
    static uint64_t tick;
    for (int i = 0; i < LOOKS && (tick == 0 || i); i++) {
        uint64_t a = hn_clock_ns(), b;
        while ((b = hn_clock_ns()) == a) {}
        if (tick == 0 || b - a < tick) tick = b - a;
    }
    return tick;
}

static double seconds_of(hn_bench_fn *fn, void *arg, int64_t calls, hn_stretches *sum)
{
    const hn_clocks from = hn_clocks_begin();
    fn(arg, calls);
    return hn_stretches_add(sum, &from);
}

static double cpu_seconds(int64_t *major)
{
    struct rusage u = { 0 };
    getrusage(RUSAGE_SELF, &u);
    *major = u.ru_majflt;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool stopped(const hn_bench_run *r) { return r->set.stop && r->set.stop(NULL); }

static void turn(const hn_bench_left *left, void *arg, int64_t calls)
{
    if (left && left->turn) left->turn(arg, calls);
}

/* Calls that fill an epoch. */
static int64_t calibrate(hn_bench_run *r, hn_bench_fn *fn, void *arg, const hn_bench_left *left)
{
    double want = 1e-9 * fmax(EPOCH_NS, (double)clock_tick() * EPOCH_TICKS), s;
    int64_t calls = 1;
    hn_stretches sum = { 0 };
    turn(left, arg, calls);
    for (; !stopped(r); turn(left, arg, calls)) {
        if ((s = seconds_of(fn, arg, calls, &sum)) >= want) break;
        double next = s > 0 ? 1.3 * want / s * (double)calls : 10.0 * (double)calls;
        calls = next > 10.0 * (double)calls ? 10 * calls : (int64_t)next + 1;
    }
    return calls;
}

hone_status hn_bench_time(hn_bench_run *r, hn_bench_timing *out, hn_bench_fn *fn, void *arg, int32_t threads,
                          const hn_bench_left *left, hone_error *err)
{
    void (*wipe)(void *arg) = left ? left->wipe : NULL;
    const hn_bench_settings *set = &r->set;
    *out = (hn_bench_timing){ .steal_pct = NAN };
    size_t cap = set->measure_s > 0 ? HN_BENCH_MAX_SAMPLES : (size_t)set->samples;
    if (!(out->s = malloc(cap * sizeof *out->s))) return HN_FAIL(err, HONE_E_NOMEM, "%zu samples", cap);
    if (wipe) wipe(arg);
    out->calls = calibrate(r, fn, arg, left);
    double wall = 0;
    hn_stretches sum = { 0 };
    while (!stopped(r) && (out->warmups < set->warmups || wall < set->warm_up_s)) {
        if (r->free_warmups && out->warmups && wall > fmax(warm_enough_s, set->warm_up_s)) break;
        turn(left, arg, out->calls);
        hn_allocs_begin(); /* of the last one it is kept: the steady state, before the clock runs */
        wall += seconds_of(fn, arg, out->calls, &sum);
        out->allocs = (hn_allocs){ 0 };
        hn_allocs_end(&out->allocs);
        out->warmups++;
    }
    if (wipe) wipe(arg);
    hn_cpu_ticks a = { 0 }, b = { 0 };
    int64_t major0, major1;
    bool ticks = hn_cpu_ticks_read(&a);
    double cpu = cpu_seconds(&major0);
    uint64_t t = hn_clock_ns();
    wall = 0;
    sum = (hn_stretches){ 0 };
    while (out->n < (size_t)set->samples || (wall < set->measure_s && out->n < cap)) {
        if (hn_bench_step(r, r->at_done)) { /* between epochs, never within */
            hn_bench_timing_free(out);
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", r->at ? r->at->id : "bench");
        }
        turn(left, arg, out->calls);
        out->s[out->n++] = seconds_of(fn, arg, out->calls, &sum) / (double)out->calls;
        wall = (double)(hn_clock_ns() - t) * 1e-9;
    }
    cpu = cpu_seconds(&major1) - cpu;
    turn(left, arg, 0);
    out->cpu_use = wall > 0 ? cpu / (wall * threads) : 0;
    int32_t most = set->threads > set->threads_batch ? set->threads : set->threads_batch; /* threads of a room, too */
    hn_stretches_lie(out->lie, sizeof out->lie, &sum, cpu, wall, threads > most ? threads : most);
    out->major_faults = major1 - major0;
    if (ticks && hn_cpu_ticks_read(&b) && b.total > a.total)
        out->steal_pct = 100.0 * (double)(b.steal - a.steal) / (double)(b.total - a.total);
    return HONE_OK;
}

void hn_bench_timing_free(hn_bench_timing *t)
{
    free(t->s);
    *t = (hn_bench_timing){ 0 };
}

void hn_bench_clock(json_t *extra, double seconds, int64_t calls, double scale, bool rate)
{
    json_object_set_new(extra, "clock",
                        json_pack("{s:o, s:I, s:o, s:b}", "s", hn_lab_num(seconds), "calls", (json_int_t)calls, "scale",
                                  hn_lab_num(scale), "rate", rate));
}

void hn_bench_use(hn_bench_result *res, hn_bench_timing *t, double scale, bool rate)
{
    double seconds = 0;
    for (size_t i = 0; i < t->n; i++) seconds += t->s[i] * (double)t->calls;
    for (size_t i = 0; i < t->n; i++) t->s[i] = rate ? scale / t->s[i] : scale * t->s[i];
    res->samples = t->s;
    res->n = t->n;
    res->warmups = t->warmups;
    res->cpu_use = t->cpu_use;
    if (t->lie[0]) hn_invalid(&res->verdict, "%s", t->lie);
    if (!res->extra) res->extra = json_object();
    json_object_set_new(res->extra, "calls", json_integer(t->calls));
    hn_bench_clock(res->extra, seconds, t->calls, scale, rate);
    json_decref(res->allocs);
    res->allocs = hn_allocs_json("call", &t->allocs, t->warmups > 0 ? t->calls * (res->parts > 0 ? res->parts : 1) : 0,
                                 t->warmups > 0 ? NULL : "there was no warm-up to count in");
    if (t->steal_pct > 1) hn_bench_note(res, "the hypervisor took %.1f %% of the time", t->steal_pct);
    if (t->major_faults > 0) hn_bench_note(res, "%" PRId64 " pages had to be read from disk", t->major_faults);
}

double hn_bench_median(const double *x, size_t n)
{
    hn_stats st;
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

/* ---- a result: judged ------------------------------------------------------------------------------- */

void hn_bench_note(hn_bench_result *res, const char *fmt, ...)
{
    va_list ap;
    if (!res->notes) res->notes = json_array();
    va_start(ap, fmt);
    hn_notes_add_v(res->notes, fmt, ap);
    va_end(ap);
}

void hn_bench_result_free(hn_bench_result *res)
{
    json_decref(res->config);
    json_decref(res->allocs);
    json_decref(res->memory);
    json_decref(res->extra);
    json_decref(res->notes);
    json_decref(res->full_samples);
    *res = (hn_bench_result){ 0 };
}

/* Seconds of one call at `value` of a unit; NaN: the unit does not say. */
static double call_seconds(const char *unit, double value, const hn_bench_result *res)
{
    static const struct {
        const char *unit;
        double s;
    } times[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 } };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (strcmp(unit, times[i].unit) == 0) return value * times[i].s;
    if (strcmp(unit, "GB/s") == 0 && res->bytes > 0) return res->bytes / (value * 1e9);
    if (strcmp(unit, "GFLOP/s") == 0 && res->ops > 0) return res->ops / (value * 1e9);
    if (strcmp(unit, "TOPS") == 0 && res->ops > 0) return res->ops / (value * 1e12);
    if (strcmp(unit, "tok/s") == 0) return 1 / value;
    return NAN;
}

typedef struct roof {
    hn_bench_roof which;
    double value, share;
} roof; /* value: GB/s, or 10^9 operations a second */

typedef struct call {
    const hn_bench_result *res;
    int32_t threads;
    double s;
    roof roof; /* the nearer one */
} call;

static void judge_call(void *arg, hn_verdict *v, const hn_peaks *p)
{
    call *c = arg;
    const hn_bench_result *res = c->res;
    hn_peak_kind kind = res->int8 ? HN_PEAK_INT8 : HN_PEAK_F32;
    double read = hn_peaks_at(p, HN_PEAK_READ_BW, c->threads), mul = hn_peaks_at(p, kind, c->threads);
    double read_s = res->rotated_bytes > 0 && read > 0 ? res->bytes / (read * 1e9) : 0,
           mul_s = mul > 0 ? res->ops / (mul * 1e9) : 0;
    if (!(read_s > 0) && !(mul_s > 0)) return;
    c->roof = read_s > mul_s ? (roof){ HN_ROOF_READ, read, read_s / c->s }
                             : (roof){ res->int8 ? HN_ROOF_INT8 : HN_ROOF_F32, mul, mul_s / c->s };
    double most = hn_peaks_most(p, HN_PEAK_READ_BW, c->threads) * 1e9;
    const double cache = (double)hn_cache_bytes(); /* 0: nobody knows, and all may be in it */
    double kept = res->rotated_bytes > 0 && cache > 0 ? fmin(1, cache / res->rotated_bytes) : 1;
    if (most > 0) hn_check_read(v, res->bytes, kept, most, c->s);
    most = hn_peaks_most(p, kind, c->threads) * 1e9;
    if (p->bound && most > 0 && res->ops > 0) hn_check_compute(v, "one call", res->ops / most, c->s);
}

static roof judge_roof(hn_bench_run *r, hn_bench_result *res, int32_t threads, double s)
{
    call c = { res, threads, s, { HN_ROOF_NONE, NAN, NAN } };
    const unsigned kinds = 1u << HN_PEAK_READ_BW | 1u << (res->int8 ? HN_PEAK_INT8 : HN_PEAK_F32);
    if (!r->no_roof[0] && s > 0) hn_check_twice(&res->verdict, judge_call, &c, &r->peaks, kinds, threads, r->set.stop);
    return c.roof;
}

static void judge_samples(hn_bench_result *res)
{
    if (res->n == 0 && res->verdict.state != HN_INVALID) hn_invalid(&res->verdict, "nothing was measured");
    for (size_t i = 0; i < res->n; i++) {
        if (isfinite(res->samples[i]) && (res->zero_ok || res->samples[i] > 0)) continue;
        hn_invalid(&res->verdict, "sample %zu is %g, which no measurement gives", i + 1, res->samples[i]);
        return;
    }
}

/* ---- records ------------------------------------------------------------------------------------------ */

static json_t *config_json(const hn_bench_run *r, const hn_bench_entry *e, const hn_bench_result *res)
{
    const hn_bench_settings *s = &r->set;
    json_t *o = json_object();
    json_object_set_new(o, "threads", json_integer(res->threads > 0 ? res->threads : s->threads));
    json_object_set_new(o, "cpu", json_string(r->level));
    for (const char *const *k = (const char *const[]){ "n_prompt", "n_gen", "depth", "chunk", "kv", "weights",
                                                       "sampler", "variant", NULL };
         *k; k++)
        json_object_set_new(o, *k, json_null());
    json_object_set_new(o, "seed", json_integer((json_int_t)(s->seed & INT64_MAX)));
    if (e->model) json_object_set_new(o, "weights", json_string(r->packed ? r->weights : "plain"));
    if (e->model && s->pre) json_object_set_new(o, "pre", hn_lab_str(s->pre));
    if (res->variant) json_object_set_new(o, "variant", hn_lab_str(res->variant));
    if (res->config) json_object_update(o, res->config);
    return o;
}

static json_t *roofline_json(const hn_bench_run *r, const hn_bench_result *res, const roof *f)
{
    static const char *const names[] = { NULL, "read", "int8", "f32" };
    json_t *o = json_object();
    bool bounded = res->ops > 0 || (res->bytes > 0 && res->rotated_bytes > 0);
    json_object_set_new(o, "bytes", res->bytes > 0 ? hn_lab_num(res->bytes) : json_null());
    json_object_set_new(o, "ops", res->ops > 0 ? hn_lab_num(res->ops) : json_null());
    json_object_set_new(o, "rotated_mb", res->rotated_bytes > 0 ? hn_lab_num(res->rotated_bytes / 1e6) : json_null());
    json_object_set_new(o, "roof", names[f->which] ? json_string(names[f->which]) : json_null());
    json_object_set_new(o, "roof_value", hn_lab_num(f->value));
    json_object_set_new(o, "pct", hn_lab_num(100 * f->share));
    json_object_set_new(o, "missing",
                        f->which        ? json_null()
                        : !bounded      ? json_string("no roof bounds this")
                        : r->no_roof[0] ? hn_lab_str(r->no_roof)
                                        : json_string("not measured for this"));
    json_object_set_new(o, "doubts", f->which && r->peaks.doubts[0] ? hn_lab_str(r->peaks.doubts) : json_null());
    return o;
}

void hn_bench_judge_around(const hn_bench_run *r, hn_verdict *v, void (*note)(void *arg, const char *text), void *arg)
{
    char text[HN_DOUBTS][400];
    int n = hn_around_doubts(text, &r->env.around, r->env.cores);
    for (int i = 0; i < n; i++) note(arg, text[i]);
    if (!r->env.around.preload[0] || v->state != HN_VALID) return;
    v->state = HN_UNCHECKED;
    snprintf(v->reason, sizeof v->reason, "%s", text[0]);
}

static void note_result(void *res, const char *text) { hn_bench_note(res, "%s", text); }

static void note_trouble(const hn_bench_entry *e, hn_bench_result *res, const hn_stats *st)
{
    if (st->n > 2 && st->cv > 0.1 && !res->zero_ok)
        hn_bench_note(res, "unstable: standard deviation %.0f %% of the mean", 100 * st->cv);
    if (res->cpu_use > 0 && res->cpu_use < 0.9 && strchr("KP", e->method))
        hn_bench_note(res, "noisy: the threads had %.0f %% of a CPU each", 100 * res->cpu_use);
}

static json_t *or_null(json_t *o) { return o ? json_incref(o) : json_null(); }

static json_t *record_json(const hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, const hn_stats *st,
                           const roof *f)
{
    char ts[40];
    json_t *o = json_object(), *samples = json_array(), *extra = res->extra ? json_incref(res->extra) : json_object();
    bool higher = res->better ? res->better > 0 : e->higher;
    hn_utc_now(ts, sizeof ts);
    for (size_t i = 0; i < res->n; i++) json_array_append_new(samples, hn_lab_num(res->samples[i]));
    if (res->full_samples) json_object_set(extra, "samples", res->full_samples);
    if (e->method == 'P' && res->cpu_use > 0) json_object_set_new(extra, "cpu_use", hn_lab_num(res->cpu_use));
    json_object_set_new(o, "schema", json_string(HN_BENCH_SCHEMA));
    json_object_set_new(o, "id", hn_lab_str(e->id));
    json_object_set_new(o, "record", hn_bench_identity());
    json_object_set_new(o, "ts", json_string(ts));
    json_object_set_new(o, "title", hn_lab_str(r->set.title));
    json_object_set_new(o, "change", hn_lab_str(r->set.change));
    json_object_set_new(o, "git", hn_bench_git_json(&r->env));
    json_object_set_new(o, "build", hn_bench_build_json(&r->env));
    json_object_set_new(o, "env", hn_environ_json(&r->env));
    json_object_set_new(o, "model", e->model ? or_null(r->model_json) : json_null());
    json_object_set_new(o, "config", config_json(r, e, res));
    json_object_set_new(o, "engine", hn_bench_engine_json());
    json_object_set_new(o, "unit", json_string(res->unit ? res->unit : e->unit));
    json_object_set_new(o, "better", json_string(higher ? "higher" : "lower"));
    json_object_set_new(o, "method", json_stringn(&e->method, 1));
    json_object_set_new(o, "warmups", json_integer(res->warmups));
    json_object_set_new(o, "samples", samples);
    json_object_set_new(o, "stats", hn_stats_json(st));
    json_object_set_new(o, "allocs", res->allocs ? json_incref(res->allocs) : hn_allocs_json(NULL, NULL, 0, NULL));
    json_object_set_new(o, "memory", or_null(res->memory));
    json_object_set_new(o, "energy", json_null());
    json_object_set_new(o, "roofline", roofline_json(r, res, f));
    json_object_set_new(o, "quality", hn_lab_str(res->quality));
    json_object_set_new(
        o, "valid", res->verdict.state == HN_UNCHECKED ? json_null() : json_boolean(res->verdict.state == HN_VALID));
    json_object_set_new(o, "invalid_reason",
                        res->verdict.state == HN_VALID ? json_null() : hn_lab_str(res->verdict.reason));
    json_object_set_new(o, "voided", json_integer(res->voided));
    json_object_set_new(o, "target", hn_lab_str(e->target));
    hn_wish wish = hn_target_judge(o);
    json_object_set_new(o, "target_met",
                        wish == HN_WISH_MET || wish == HN_WISH_NOT_MET ? json_boolean(wish == HN_WISH_MET)
                                                                       : json_null());
    json_object_set_new(o, "notes", res->notes ? json_incref(res->notes) : json_array());
    json_object_set_new(o, "extra", extra);
    return o;
}

hone_status hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err)
{
    hn_stats stats;
    const char *unit = res->unit ? res->unit : e->unit;
    judge_samples(res);
    size_t finite = 0;
    while (finite < res->n && isfinite(res->samples[finite])) finite++;
    res->n = finite; /* what follows a NaN is not believed either */
    hone_status st = hn_stats_of(&stats, res->samples, res->n, err);
    if (st != HONE_OK) {
        hn_bench_result_free(res);
        return st;
    }
    int32_t threads = res->threads > 0 ? res->threads : r->set.threads;
    roof f = judge_roof(r, res, threads, res->n ? call_seconds(unit, stats.median, res) : NAN);
    if (res->verdict.state == HN_UNCHECKED && !res->verdict.reason[0])
        snprintf(res->verdict.reason, sizeof res->verdict.reason, "no output to compare");
    note_trouble(e, res, &stats);
    hn_bench_judge_around(r, &res->verdict, note_result, res);
    json_t *o = record_json(r, e, res, &stats, &f);
    bool invalid = res->verdict.state == HN_INVALID;
    hn_bench_result_free(res);
    return hn_bench_keep(r, e, o, invalid, err);
}

hone_status hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *o, bool invalid, hone_error *err)
{
    if (invalid) r->n_invalid++;
    if (!o || json_object_size(o) < RECORD_KEYS ||
        json_array_append(r->records, o) != 0) { /* jansson leaves out what it had no memory for */
        json_decref(o);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: record", e->id);
    }
    hone_error lost;
    hone_status st = r->set.sink ? r->set.sink(r->set.sink_arg, e, o, &lost) : HONE_OK;
    json_decref(o);
    if (st == HONE_OK) return HONE_OK;
    r->n_lost++;
    if (st != HONE_E_INTERRUPTED) return HONE_OK; /* the record is in memory still, and what follows may be kept */
    return HN_FAIL(err, st, "%s", lost.message);
}

hone_status hn_bench_loop(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hn_bench_fn *fn, void *arg,
                          double scale, bool rate,
                          void (*after)(void *arg, hn_bench_result *res, const hn_bench_timing *t), hone_error *err)
{
    hn_bench_timing t = { 0 };
    hone_status st = HONE_OK;
    const hn_bench_left *left = res->left;
    if (res->verdict.state != HN_INVALID) {
        const bool hashes = left && left->hash;
        uint64_t proved = hashes ? left->hash(arg) : 0;
        st = hn_bench_time(r, &t, fn, arg, res->threads > 0 ? res->threads : r->set.threads, left, err);
        if (st == HONE_OK) {
            if (after) after(arg, res, &t);
            hn_bench_use(res, &t, scale, rate);
        }
        if (st == HONE_OK && hashes && left->hash(arg) != proved)
            hn_invalid(&res->verdict, "the output of the timed calls differs from the one that was proved before them");
        if (st == HONE_OK && hashes) json_object_set_new(res->extra, "proof", hn_proof_of("output", proved));
    }
    if (st == HONE_OK) st = hn_bench_add(r, e, res, err);
    else hn_bench_result_free(res);
    hn_bench_timing_free(&t);
    return st;
}
