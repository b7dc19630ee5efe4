/* The laboratory tries itself on this machine. Owns what is put before it and what counts as
 * noticed; everything runs through the same doors as real comparisons: fresh processes of this
 * program, sides, rounds, quality runs. Nothing is mocked. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "lab/judge/selftest.h"
#include "base/os.h"
#include "lab/bench/process.h"
#include "lab/judge/ab.h"
#include "lab/judge/sides.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct trial {
    hn_selftest *out;
    const hn_selftest_params *p;
    hone_error *err;
    char program[4096], quoted[8300], dir[1100], path[3][1200], state[1200], peaks[1400];
    char cmd_a[8400], cmd_b[8400];
    uint64_t done, total, seed;
} trial;

uint64_t hn_selftest_work(uint64_t n)
{
    uint64_t x = 88172645463325252u; /* xorshift64: Marsaglia 2003 */
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static void step(trial *t)
{
    if (t->p->progress) t->p->progress(t->p->progress_arg, t->done, t->total);
    t->done++;
}

static void tally(hn_selftest_check *c, bool good)
{
    c->n++;
    c->good += good;
    c->exercised = true;
}

/* ---- the commands of A/A and of the slowdown -------------------------------------------------- */

static void quote(char *dst, size_t cap, const char *s)
{
    size_t n = 0;
    dst[n++] = '\'';
    for (; *s && n + 6 < cap; s++) {
        if (*s == '\'') {
            memcpy(dst + n, "'\\''", 4);
            n += 4;
        } else dst[n++] = *s;
    }
    dst[n++] = '\'';
    dst[n] = 0;
}

/* The least of some runs, as the shell starts them. */
static hone_status least_wall(double *out, trial *t, uint64_t work)
{
    enum { RUNS = 9 };
    char cmd[8400];
    snprintf(cmd, sizeof cmd, "%s lab selftest _work %llu", t->quoted, (unsigned long long)work);
    const char *argv[] = { "/bin/sh", "-c", cmd, NULL };
    *out = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        hn_process r;
        hone_status st = hn_process_run(&r, &(hn_process_params){ .argv = argv, .stop = t->p->stop }, t->err);
        if (st != HONE_OK) return st;
        char why[600];
        hn_process_why(&r, why, sizeof why);
        *out = fmin(*out, r.wall_s);
        hn_process_free(&r);
        if (why[0]) return HN_FAIL(t->err, HONE_E_IO, "the selftest's own command %s", why);
    }
    return HONE_OK;
}

/* A takes about so long in all; B has 5 % of A's whole time, start of the process included, more to do. */
static hone_status calibrate(trial *t)
{
    const double want = t->p->quick ? 0.008 : 0.012, slower = 0.05;
    const uint64_t few = 1000000;
    double t1, t3;
    hone_status st = least_wall(&t1, t, few);
    if (st == HONE_OK) st = least_wall(&t3, t, 4 * few);
    if (st != HONE_OK) return st;
    double step_s = fmax((t3 - t1) / (3.0 * (double)few), 1e-11), start = fmax(t1 - step_s * (double)few, 0);
    double n = fmax((want - start) / step_s, (double)few), more = slower * (start + n * step_s) / step_s;
    snprintf(t->cmd_a, sizeof t->cmd_a, "%s lab selftest _work %.0f", t->quoted, n);
    snprintf(t->cmd_b, sizeof t->cmd_b, "%s lab selftest _work %.0f", t->quoted, n + more);
    st = least_wall(&t->out->a_ms, t, (uint64_t)n);
    if (st == HONE_OK) st = least_wall(&t->out->b_ms, t, (uint64_t)(n + more));
    t->out->a_ms *= 1e3;
    t->out->b_ms *= 1e3;
    return st;
}

static hone_status compare_commands(hn_ab_report *r, trial *t, const char *a, const char *b)
{
    hn_target target = { .stop = t->p->stop };
    hn_side_params sp = { .command = true, .stop = t->p->stop };
    hn_ab_params p = { .targets = &target,
                       .n_targets = 1,
                       .rounds = t->p->quick ? HN_AB_MIN_ROUNDS : HN_AB_ROUNDS,
                       .runs = t->p->quick ? 6 : 0,
                       .looks = t->p->quick ? 2 : 0,
                       .seed = t->seed++,
                       .stop = t->p->stop };
    hone_status st = hn_side_open(&p.a, a, &sp, t->err);
    if (st == HONE_OK) st = hn_side_open(&p.b, b, &sp, t->err);
    if (st == HONE_OK) st = hn_ab_run(r, &p, t->err);
    if (st == HONE_OK && r->interrupted) {
        hn_ab_report_free(r);
        st = HN_FAIL(t->err, HONE_E_INTERRUPTED, "interrupted");
    }
    hn_side_close(p.a);
    hn_side_close(p.b);
    return st;
}

static void say_lines(hn_selftest_check *c, const hn_ab_report *r)
{
    c->detail[0] = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t k = strlen(c->detail);
        snprintf(c->detail + k, sizeof c->detail - k, "%s%s %s %.4f [%.4f, %.4f]", k ? "; " : "", r->line[i].metric,
                 hn_ab_verdict_name(r->line[i].r.verdict), r->line[i].r.ratio, r->line[i].r.ci[0], r->line[i].r.ci[1]);
    }
}

static hone_status try_commands(trial *t, size_t n)
{
    hone_status st = calibrate(t);
    for (size_t i = 0; i < 2 * n && st == HONE_OK; i++) { /* taking turns */
        bool slow = i % 2;
        hn_selftest_check *c = &t->out->check[slow ? HN_ST_SLOW : HN_ST_AA];
        hn_ab_report r;
        step(t);
        st = compare_commands(&r, t, t->cmd_a, slow ? t->cmd_b : t->cmd_a);
        if (st != HONE_OK) break;
        bool quiet = r.overall == HN_AB_SAME || r.overall == HN_AB_INCONCLUSIVE;
        tally(c, slow ? r.overall == HN_AB_REGRESSED : quiet);
        if (slow && r.overall == HN_AB_INCONCLUSIVE) t->out->unresolved++;
        say_lines(c, &r);
        hn_ab_report_free(&r);
    }
    return st;
}

/* ---- broken models --------------------------------------------------------------------------------- */

/* this against this with a broken copy: as the first step of every comparison of models. */
static hone_status try_model(trial *t, hn_selftest_kind kind, hn_break how, size_t n)
{
    hn_selftest_check *c = &t->out->check[kind];
    char spec[1300], good[24], bad[24], why[512], *path = t->path[how];
    hn_target target = { .id = "e2e", .model = t->p->model, .stop = t->p->stop };
    hn_side_params sp = { .stop = t->p->stop };
    hone_error err;
    snprintf(path, sizeof t->path[how], "%s/broken%d.gguf", t->dir, (int)how);
    if (hn_break_model(path, t->p->model, how, &err) != HONE_OK) {
        snprintf(c->detail, sizeof c->detail, "not exercised: %.350s", err.message);
        return HONE_OK;
    }
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        hn_side *a = NULL, *b = NULL;
        step(t);
        snprintf(spec, sizeof spec, "model=%s,packed=off", path);
        st = hn_side_open(&a, "this", &sp, t->err);
        if (st == HONE_OK) st = hn_side_open(&b, spec, &sp, t->err);
        if (st == HONE_OK) st = hn_side_quality(a, &target, good, why, sizeof why, t->err);
        if (st == HONE_OK && why[0])
            st = HN_FAIL(t->err, HONE_E_NUMERIC,
                         "the model itself is not sound, so that breaking it proves nothing: %.300s", why);
        if (st == HONE_OK) st = hn_side_quality(b, &target, bad, why, sizeof why, t->err);
        if (st == HONE_OK) { /* speaking nonsense must be called so; small changes must show in the hash */
            tally(c, how == HN_BREAK_BLOCK ? strcmp(good, bad) != 0 : why[0] != 0);
            if (why[0]) snprintf(c->detail, sizeof c->detail, "%.390s", why);
            else snprintf(c->detail, sizeof c->detail, "%s became %s", good, bad);
        }
        hn_side_close(a);
        hn_side_close(b);
    }
    return st;
}

/* ---- the roof ------------------------------------------------------------------------------------------ */

/* Stored peaks of this machine, as if it did next to nothing: every real rate is above them. */
static hone_status low_roof(trial *t, const char *level)
{
    hn_environ e;
    hn_peaks p;
    hn_peaks_params pp = { .cpu = level, .quick = true, .stop = t->p->stop };
    hone_status st = hn_peaks_measure(&p, &pp, t->err);
    if (st != HONE_OK) return st;
    for (int k = 0; k < HN_PEAK_KINDS; k++)
        for (int32_t i = 0; i < p.n[k]; i++) p.at[k][i].best = p.at[k][i].most = p.at[k][i].median = 1e-4;
    p.quick = false;
    p.cache_bytes = 0;
    hn_environ_read(&e);
    snprintf(t->state, sizeof t->state, "%s/state", t->dir);
    snprintf(t->peaks, sizeof t->peaks, "%s/hone/peaks-%s-%s.json", t->state, e.hash, level);
    return hn_peaks_store(&p, t->peaks, t->err);
}

static hone_status try_roof(trial *t, const char *level, size_t n)
{
    hn_selftest_check *c = &t->out->check[HN_ST_ROOF];
    char env[1300];
    hone_status st = low_roof(t, level);
    if (st != HONE_OK) return st;
    snprintf(env, sizeof env, "XDG_STATE_HOME=%s", t->state);
    const char *argv[] = { t->program, "bench", "-m", t->p->model, "-p", "16", "-n", "8", "-r", "1", "--json", NULL },
               *add[] = { env, NULL };
    for (size_t i = 0; i < n; i++) {
        hn_process r;
        step(t);
        st = hn_process_run(&r, &(hn_process_params){ .argv = argv, .env = add, .keep_out = true, .stop = t->p->stop },
                            t->err);
        if (st != HONE_OK) return st;
        json_t *o;
        hn_json_tree(&o, r.out, r.n_out, NULL, "hone bench", NULL); /* NULL: it noticed nothing */
        const char *why = json_string_value(json_object_get(o, "invalid_reason"));
        bool noticed = r.exit_code == 1 && json_is_false(json_object_get(o, "valid")) && why &&
                       (strstr(why, "machine reads") || strstr(why, "took"));
        tally(c, noticed);
        snprintf(c->detail, sizeof c->detail, "%.390s", why ? why : "nothing was said");
        json_decref(o);
        hn_process_free(&r);
    }
    return HONE_OK;
}

/* ---- a slower level ----------------------------------------------------------------------------------------- */

static hone_status try_level(trial *t, const char *level, size_t n)
{
    hn_selftest_check *c = &t->out->check[HN_ST_LEVEL];
    if (strcmp(level, "scalar") == 0) {
        snprintf(c->detail, sizeof c->detail,
                 "not exercised: this machine runs at the scalar level, there is no slower one");
        return HONE_OK;
    }
    hn_target target = {
        .id = "e2e", .model = t->p->model, .args = { "--n-prompt=64", "--n-gen=0", "--threads=1" }, .stop = t->p->stop
    };
    hn_side_params sp = { .stop = t->p->stop };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        hn_ab_params p = { .targets = &target,
                           .n_targets = 1,
                           .rounds = HN_AB_MIN_ROUNDS,
                           .runs = 1,
                           .metrics = "prefill",
                           .seed = t->seed++,
                           .stop = t->p->stop };
        hn_ab_report r;
        step(t);
        st = hn_side_open(&p.a, "this", &sp, t->err);
        if (st == HONE_OK) st = hn_side_open(&p.b, "env:HONE_CPU=scalar", &sp, t->err);
        if (st == HONE_OK) st = hn_ab_run(&r, &p, t->err);
        if (st == HONE_OK) {
            tally(c, r.overall == HN_AB_REGRESSED);
            say_lines(c, &r);
            if (r.interrupted) st = HN_FAIL(t->err, HONE_E_INTERRUPTED, "interrupted");
            hn_ab_report_free(&r);
        }
        hn_side_close(p.a);
        hn_side_close(p.b);
    }
    return st;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static hone_status prepare(trial *t)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(t->dir, sizeof t->dir, "%s/hone-selftest-XXXXXX", tmp && *tmp && strlen(tmp) < 900 ? tmp : "/tmp");
    if (!hn_os_program_path(t->program, sizeof t->program))
        return HN_FAIL(t->err, HONE_E_IO, "this program cannot find itself (on Linux this needs /proc)");
    char *real = realpath(t->program, NULL); /* a shell that runs /proc/self/exe runs itself */
    if (real) snprintf(t->program, sizeof t->program, "%s", real);
    free(real);
    quote(t->quoted, sizeof t->quoted, t->program);
    if (!mkdtemp(t->dir)) {
        hone_status st = HN_FAIL(t->err, HONE_E_IO, "folder %s: %s", t->dir, strerror(errno));
        t->dir[0] = 0;
        return st;
    }
    return HONE_OK;
}

static void clean_up(trial *t)
{
    char path[1300];
    for (int i = 0; i < 3; i++)
        if (t->path[i][0]) unlink(t->path[i]);
    if (t->peaks[0]) {
        unlink(t->peaks);
        snprintf(path, sizeof path, "%s/hone", t->state);
        rmdir(path);
        rmdir(t->state);
    }
    if (t->dir[0]) rmdir(t->dir);
}

/* How many right answers are enough. Statistics may err: one false alarm in twenty, and what a noisy machine
 * cannot resolve. Broken output must be noticed every time. */
static void judge(hn_selftest *t)
{
    for (int k = 0; k < HN_ST_KINDS; k++) {
        hn_selftest_check *c = &t->check[k];
        hn_share_interval(c->interval, c->good, c->n, 0.95);
        size_t wrong = c->n - c->good;
        c->passed = c->exercised && (k == HN_ST_AA     ? wrong <= (c->n + 10) / 20
                                     : k == HN_ST_SLOW ? wrong <= (c->n + 10) / 20
                                                       : wrong == 0);
    }
}

hone_status hn_selftest_run(hn_selftest *out, const hn_selftest_params *p, hone_error *err)
{
    static const char *const what[] = {
        "the same command twice raises no alarm",        "5 % more work is found slower",
        "a model that repeats one token is invalid",     "a NaN among the weights is invalid",
        "one changed block of weights changes the hash", "a rate above the roof is invalid",
        "plain C forced on one side is found slower",    "a false claim of a process is not believed",
        "one way of computing that differs is named",
    };
    hone_error own;
    trial t = { .out = out, .p = p, .err = err ? err : &own, .seed = p->seed };
    size_t n_ab = p->quick ? 1 : 20, n = p->quick ? 1 : 5;
    uint64_t start = hn_clock_ns();
    hn_cpu_level level;
    *out = (hn_selftest){ .quick = p->quick };
    for (int k = 0; k < HN_ST_KINDS; k++) out->check[k].what = what[k];
    t.total = 2 * n_ab + 5 * n;
    hone_status st = hn_cpu_choose(&level, NULL, t.err);
    if (st == HONE_OK) st = prepare(&t);
    if (st == HONE_OK) st = try_model(&t, HN_ST_CONSTANT, HN_BREAK_CONSTANT, n);
    if (st == HONE_OK) st = try_model(&t, HN_ST_NAN, HN_BREAK_NAN, n);
    if (st == HONE_OK) st = try_model(&t, HN_ST_BLOCK, HN_BREAK_BLOCK, n);
    if (st == HONE_OK) st = hn_selftest_claims(&out->check[HN_ST_CLAIMS], p->model, p->stop, t.err);
    if (st == HONE_OK) st = hn_selftest_ways(&out->check[HN_ST_WAYS], p->model, t.err);
    if (st == HONE_OK) st = try_roof(&t, hn_cpu_level_name(level), n);
    if (st == HONE_OK) st = try_level(&t, hn_cpu_level_name(level), n);
    if (st == HONE_OK) st = try_commands(&t, n_ab);
    judge(out);
    out->seconds = (double)(hn_clock_ns() - start) * 1e-9;
    clean_up(&t);
    return st;
}

json_t *hn_selftest_json(const hn_selftest *t)
{
    static const char *const names[] = { "aa",   "slow_5_pct", "constant", "nan", "block",
                                         "roof", "level",      "claims",   "ways" };
    json_t *o = json_object(), *checks = json_object();
    for (int k = 0; k < HN_ST_KINDS; k++) {
        const hn_selftest_check *c = &t->check[k];
        json_t *j = json_object(), *ci = json_array();
        json_array_append_new(ci, hn_lab_num(c->interval[0]));
        json_array_append_new(ci, hn_lab_num(c->interval[1]));
        json_object_set_new(j, "what", json_string(c->what));
        json_object_set_new(j, "right", json_integer((json_int_t)c->good));
        json_object_set_new(j, "tries", json_integer((json_int_t)c->n));
        json_object_set_new(j, "interval", ci);
        json_object_set_new(j, "exercised", json_boolean(c->exercised));
        json_object_set_new(j, "passed", json_boolean(c->passed));
        json_object_set_new(j, "detail", hn_lab_str(c->detail));
        json_object_set_new(checks, names[k], j);
    }
    json_object_set_new(o, "quick", json_boolean(t->quick));
    json_object_set_new(o, "seconds", hn_lab_num(t->seconds));
    json_object_set_new(o, "a_ms", hn_lab_num(t->a_ms));
    json_object_set_new(o, "b_ms", hn_lab_num(t->b_ms));
    json_object_set_new(o, "unresolved", json_integer(t->unresolved));
    json_object_set_new(o, "checks", checks);
    return o;
}
