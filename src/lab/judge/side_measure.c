/* One measurement of a side: the command line, and what its process says and was seen to do. Refuses to know rounds and
 * verdicts. */
#define _GNU_SOURCE
#include "lab/judge/side_priv.h"

#include "base/json_text.h"
#include "base/json_tree.h"
#include "base/os.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/machine/clock.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>

/* ---- what was measured --------------------------------------------------------------------------- */

void hn_measured_add(hn_measured *m, const char *name, const char *unit, bool higher, double value)
{
    if (m->n == HN_MEASURED) return; /* take_records leaves room */
    hn_measured_metric *x = &m->m[m->n++];
    *x = (hn_measured_metric){ .higher = higher, .value = value };
    snprintf(x->name, sizeof x->name, "%s", name);
    snprintf(x->unit, sizeof x->unit, "%.15s", unit);
}

static const struct {
    const char *name, *full;
} short_names[] = {
    { "decode", "decode_tok_s" }, { "prefill", "prefill_tok_s" }, { "load", "load_ms" },
    { "ttft", "ttft_ms" },        { "anon", "peak_anon_mb" },     { "wall", "wall_ms" },
    { "cpu", "cpu_ms" },          { "user", "user_ms" },          { "sys", "sys_ms" },
    { "rss", "rss_mb" },
};

const char *hn_metric_full_name(const char *name)
{
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++)
        if (strcmp(name, short_names[i].name) == 0) return short_names[i].full;
    return name;
}

const hn_measured_metric *hn_measured_find(const hn_measured *m, const char *name)
{
    const char *full = hn_metric_full_name(name);
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->m[i].name, full) == 0) return &m->m[i];
    return NULL;
}

void hn_side_own_env(hn_side_command *c, const hn_side *s)
{
    for (int i = 0; i < s->n_env; i++) c->env[i] = s->env[i];
    c->env[s->n_env] = NULL;
}

void hn_side_env(hn_side_command *c, const hn_side *s, uint64_t salt)
{
    enum { MOST = 4096 };
    hn_side_own_env(c, s);
    size_t len = (size_t)(hn_rand64(salt, 0) % MOST);
    int k = snprintf(c->pad, sizeof c->pad, "HONE_AB_PAD=");
    memset(c->pad + k, 'x', len);
    c->pad[(size_t)k + len] = 0;
    c->env[s->n_env] = c->pad;
    c->env[s->n_env + 1] = NULL;
}

bool hn_target_is_plain(const hn_target *t)
{
    const hn_bench_entry *e = t->id ? hn_bench_find(t->id) : NULL;
    return !t->id || (e && e->plain);
}

hone_status hn_side_bench(hn_side_command *c, const hn_side *s, const hn_target *t, hn_run_kind kind, uint64_t question,
                          uint64_t salt, hone_error *err)
{
    const bool quality = kind == HN_RUN_QUALITY, plain = kind == HN_RUN_BENCH && hn_target_is_plain(t);
    hn_argv *a = &c->argv;
    *c = (hn_side_command){ .argv = { 0 } };
    hn_argv_extend(a, (const char *const[]){ s->program, "bench", kind == HN_RUN_ASKED ? "_asked" : NULL, NULL });
    if (kind == HN_RUN_BENCH && !plain) hn_argv_add(a, "%s", t->id);
    if (t->model) hn_argv_add(a, "--model=%s", t->model);
    for (int i = 0; i < HN_SIDE_ARGS && t->args[i]; i++) /* which hash matters where one is made */
        if (quality || !hn_argv_is(t->args[i], "quality")) hn_argv_add(a, "%s", t->args[i]);
    for (int i = 0; i < s->n_keys; i++)
        hn_argv_set(a, strcmp(s->key[i], "t") == 0 ? "threads" : s->key[i], "%s", s->value[i]);
    if (quality) hn_argv_extend(a, (const char *const[]){ "--n-prompt=4", "--n-gen=2", "--depth=0", NULL });
    if (plain || quality) hn_argv_extend(a, (const char *const[]){ "-r", "1", NULL });
    if (plain) hn_argv_add(a, "--no-quality");
    if (plain && question) hn_argv_set(a, "prompt-seed", "%" PRIu64, question);
    if (kind == HN_RUN_ASKED) hn_argv_add(a, "%" PRIu64, hn_clock_ns()); /* as every measured process has one */
    else hn_argv_add(a, "--json");
    hn_side_env(c, s, salt);
    return hn_argv_check(a, s->program, err);
}

/* hone bench -m …: one object with its numbers at the top. */
static void take_plain(hn_measured *out, json_t *o)
{
    static const struct {
        const char *key, *unit;
        bool higher;
    } keys[] = {
        { "decode_tok_s", "tok/s", true }, { "prefill_tok_s", "tok/s", true }, { "load_ms", "ms", false },
        { "ttft_ms", "ms", false },        { "peak_anon_mb", "MB", false },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!isfinite(hn_record_number(o, keys[i].key))) continue;
        hn_measured_add(out, keys[i].key, keys[i].unit, keys[i].higher, hn_record_number(o, keys[i].key));
        out->m[out->n - 1].proved = json_object_get(json_object_get(json_object_get(o, "extra"), "proof"), "all");
    }
    out->anon_mb = hn_record_number(o, "peak_anon_mb");
}

static json_t *median_of(json_t *record) { return json_object_get(json_object_get(record, "stats"), "median"); }

/* What tells the records of a list apart: the whole variant, of a single product how its weights lie, columns, threads.
 * Commas part names on a command line. */
static void record_name(char name[HN_METRIC_NAME], json_t *r, bool alone)
{
    enum { ID = 36 };
    const char *id = json_string_value(json_object_get(r, "id"));
    json_t *config = json_object_get(r, "config"), *cols = json_object_get(config, "columns"),
           *threads = json_object_get(config, "threads");
    const char *variant = json_string_value(json_object_get(config, "variant"));
    if (!variant) variant = json_string_value(json_object_get(config, "layout"));
    if (!variant && id && strncmp(id, "kern.", 5) == 0 && strncmp(hn_record_text(config, "weights"), "packed", 6) == 0)
        variant = "packed";
    size_t n = (size_t)snprintf(name, HN_METRIC_NAME, "%.*s", ID, id ? id : "value");
    if (!alone && variant) snprintf(name + n, HN_METRIC_NAME - n, "/%.160s", variant);
    n = strlen(name);
    if (!alone && json_is_integer(cols)) snprintf(name + n, HN_METRIC_NAME - n, "/c%d", (int)json_integer_value(cols));
    n = strlen(name);
    if (!alone && json_is_integer(threads))
        snprintf(name + n, HN_METRIC_NAME - n, "/t%d", (int)json_integer_value(threads));
    char *to = name;
    for (const char *c = name; *c; c++)
        if (*c != ',') *to++ = *c;
    *to = 0;
}

/* One number per record of a suite, or of the kernels of older programs. */
static hone_status take_records(hn_measured *out, json_t *list, const hn_side *s, hone_error *err)
{
    enum { OF_PROCESS = 5 }; /* take_process */
    if (json_array_size(list) > HN_MEASURED - OF_PROCESS)
        return HN_FAIL(err, HONE_E_ARG, "%s: %zu records at once; expected at most %d: compare fewer benches",
                       HN_ESC(s->label, strlen(s->label)), json_array_size(list), HN_MEASURED - OF_PROCESS);
    size_t i;
    json_t *r;
    json_array_foreach(list, i, r)
    {
        const char *unit = json_string_value(json_object_get(r, "unit"));
        const char *better = json_string_value(json_object_get(r, "better")),
                   *why = json_string_value(json_object_get(r, "invalid_reason"));
        const bool unchecked = json_is_null(json_object_get(r, "valid")); /* nothing to compare is no fault */
        json_t *m = median_of(r);
        double v = json_is_number(m) ? json_number_value(m) : hn_record_number(r, "value");
        char name[HN_METRIC_NAME];
        record_name(name, r, json_array_size(list) == 1);
        if (hn_measured_find(out, name))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: two records are called %s; nothing tells which is which",
                           HN_ESC(s->label, strlen(s->label)), HN_ESC(name, strlen(name)));
        if (why && !unchecked && !out->invalid[0])
            snprintf(out->invalid, sizeof out->invalid, "%.200s: %.300s", name, why);
        json_t *extra = json_object_get(r, "extra");
        if (isfinite(v) && unit) {
            hn_measured_add(out, name, unit, better ? strcmp(better, "higher") == 0 : strchr(unit, '/') != NULL, v);
            out->m[out->n - 1].proved = json_object_size(json_object_get(extra, "proof")) > 0;
        }
        out->n_clocked += json_object_get(extra, "clock") != NULL;
    }
    return HONE_OK;
}

/* The time that the sample of a plain record adds up to, and its parts. */
static void take_times(hn_measured *out, json_t *plain, json_t *config)
{
    json_t *sample = json_array_get(json_object_get(plain, "samples"), 0), *gaps = json_object_get(sample, "gaps_ms"),
           *gap;
    double load = hn_record_number(sample, "load_ms"), ttft = hn_record_number(sample, "ttft_ms"), gen = 0,
           prompt = hn_record_number(config, "n_prompt") / hn_record_number(sample, "prefill_tok_s");
    size_t i;
    json_array_foreach(gaps, i, gap) gen += json_number_value(gap);
    out->part_s[HN_PART_LOAD] = 1e-3 * load;
    out->part_s[HN_PART_PROMPT] = prompt;
    out->part_s[HN_PART_FIRST] = 1e-3 * ttft;
    out->part_s[HN_PART_GEN] = json_array_size(gaps) ? 1e-3 * gen : NAN;
    out->claimed_s = 1e-3 * (load + (isfinite(ttft) ? ttft : 0) + gen);
}

/* What two sides may have run otherwise although nobody asked for it. */
static void take_settings(hn_measured *out, json_t *config)
{
    snprintf(out->weights, sizeof out->weights, "%s", hn_record_text(config, "weights"));
    if (json_is_integer(json_object_get(config, "threads")))
        snprintf(out->ran, sizeof out->ran, "--threads %d, %.20s, kv %.10s, chunk %d",
                 (int)json_integer_value(json_object_get(config, "threads")), hn_record_text(config, "cpu"),
                 hn_record_text(config, "kv"), (int)json_integer_value(json_object_get(config, "chunk")));
}

/* Which content it measured, as it says: what of it nobody knows is empty. */
static void take_model(hn_measured *out, json_t *model)
{
    static const char *const keys[HN_MODEL_PARTS] = { "fingerprint", "sha256", "identity" };
    for (int i = 0; i < HN_MODEL_PARTS; i++)
        snprintf(out->model[i], sizeof out->model[i], "%.64s", hn_record_text(model, keys[i]));
}

/* What a plain run, or its records, prove of their answers: all of it, or it could not be compared. */
static hone_status take_proofs(hn_measured *out, json_t *proof, json_t *list, const hn_side *s, hone_error *err)
{
    json_t *all = json_object(), *r;
    size_t i;
    if (json_object_get(proof, "all")) json_object_set(all, "", proof);
    json_array_foreach(list, i, r)
    {
        char name[100];
        proof = json_object_get(json_object_get(r, "extra"), "proof");
        snprintf(name, sizeof name, "%.60s %zu", hn_record_text(r, "id"), i + 1);
        if (proof) json_object_set(all, name, proof);
    }
    char *text = json_object_size(all) ? hn_json_text(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    bool fits = !text || strlen(text) < sizeof out->proof;
    if (text && fits) snprintf(out->proof, sizeof out->proof, "%s", text);
    size_t n = json_object_size(all);
    free(text);
    json_decref(all);
    return fits ? HONE_OK
                : HN_FAIL(err, HONE_E_ARG,
                          "%s: what %zu records prove of their answers is too long; compare fewer benches",
                          HN_ESC(s->label, strlen(s->label)), n);
}

static void take_process(hn_measured *out, const hn_process *r)
{
    out->major_faults = r->major_faults;
    out->wall_s = r->wall_s;
    out->rss_mb = (double)r->max_rss / 1e6;
    hn_measured_add(out, "wall_ms", "ms", false, 1e3 * r->wall_s);
    hn_measured_add(out, "cpu_ms", "ms", false, 1e3 * (r->user_s + r->sys_s));
    hn_measured_add(out, "user_ms", "ms", false, 1e3 * r->user_s);
    hn_measured_add(out, "sys_ms", "ms", false, 1e3 * r->sys_s);
    hn_measured_add(out, "rss_mb", "MB", false, (double)r->max_rss / 1e6);
}

hone_status hn_side_failed(const hn_side *s, const hn_process *r, hone_error *err)
{
    char why[700];
    hn_process_why(r, why, sizeof why);
    /* 2: this command line is wrong, not what it measures */
    return HN_FAIL(err, r->exit_code == 2 ? HONE_E_ARG : HONE_E_FORMAT, "%s: %s", HN_ESC(s->label, strlen(s->label)),
                   why[0] ? why : "printed no result");
}

/* Threads that a command line names, for prompts or for the rest; 0: it leaves them to the program. */
static double threads_asked(const char *const *argv)
{
    static const char *const names[] = { "--threads=", "--threads-batch=" };
    double n[2] = { 0, 0 };
    for (; *argv; argv++)
        for (int i = 0; i < 2; i++)
            if (strncmp(*argv, names[i], strlen(names[i])) == 0) n[i] = strtod(*argv + strlen(names[i]), NULL);
    return n[0] > 0 ? fmax(n[0], n[1]) : 0;
}

/* All of its time, and what it says that it took to load, in which any core may read a file: more CPU time than so many
 * threads can have had is of others. */
static void check_threads(hn_measured *out, const hn_process *r, double threads)
{
    const double load = isfinite(out->part_s[HN_PART_LOAD]) ? 2 * out->part_s[HN_PART_LOAD] : 0, /* opened twice */
        cores = fmax(hn_os_cpu_count(), threads), cpu = r->user_s + r->sys_s;
    if (!(threads > 0) || out->invalid[0] || !hn_cpu_beyond(cpu - cores * load, threads, fmax(r->wall_s - load, 0)))
        return;
    snprintf(out->invalid, sizeof out->invalid,
             "it and what it started used %.3f s of CPU time in %.3f s, more than the %.0f thread%s that it was asked "
             "to have",
             cpu, r->wall_s, threads, threads == 1 ? "" : "s");
}

/* The k-th question of a series: who was asked some cannot tell which come. */
static uint64_t question_of(uint64_t series, uint64_t k)
{
    const uint64_t in[2] = { series, k };
    unsigned char hash[32];
    uint64_t q;
    hn_sha256 h;
    hn_sha256_init(&h);
    hn_sha256_add(&h, in, sizeof in);
    hn_sha256_end(&h, hash);
    memcpy(&q, hash, sizeof q);
    return (q >> 16) | 1;
}

/* ---- a plain run, asked and timed from here ------------------------------------------------- */

/* The same numbers as a record of it would say, by this process's clock. */
static void take_heard(hn_measured *out, const hn_heard *h)
{
    json_t *engine = json_object_get(h->told, "engine"), *proof = json_object_get(h->told, "proof");
    const double gaps = h->n_gen > 1 ? h->n_gen - 1 : 0;
    hn_measured_add(out, "load_ms", "ms", false, 1e3 * h->load_s);
    if (h->prompt_s > 0) hn_measured_add(out, "prefill_tok_s", "tok/s", true, h->n_prompt / h->prompt_s);
    if (h->prompt_s > 0) hn_measured_add(out, "ttft_ms", "ms", false, 1e3 * h->prompt_s);
    if (h->gen_s > 0) hn_measured_add(out, "decode_tok_s", "tok/s", true, gaps / h->gen_s);
    hn_measured_add(out, "peak_anon_mb", "MB", false, h->anon_mb);
    for (int i = 0; i < out->n; i++) out->m[i].proved = proof != NULL;
    out->anon_mb = h->anon_mb;
    out->part_s[HN_PART_LOAD] = h->load_s;
    out->part_s[HN_PART_PROMPT] = out->part_s[HN_PART_FIRST] = h->prompt_s;
    out->part_s[HN_PART_GEN] = h->gen_s;
    out->claimed_s = h->load_s + (isfinite(h->prompt_s) ? h->prompt_s : 0) + (isfinite(h->gen_s) ? h->gen_s : 0);
    take_settings(out, engine);
    snprintf(out->weights, sizeof out->weights, "%s",
             json_is_true(json_object_get(engine, "packed")) ? "packed" : "plain");
}

static hone_status asker_of(hn_side *s, const hn_target *t, const char *const *argv, hone_error *err)
{
    const char *pre = NULL;
    if (s->asker && strcmp(s->asked_of, t->model) == 0) return HONE_OK;
    for (; *argv; argv++)
        if (strncmp(*argv, "--pre=", 6) == 0) pre = *argv + 6;
    hn_asker_free(s->asker);
    s->asked_of = t->model;
    return hn_asker_new(&s->asker, t->model, pre, err);
}

static hone_status measure_asked(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err)
{
    hn_side_command c;
    hn_heard h;
    if (s->series) out->question = question_of(s->series, s->n_asked++);
    hone_status st = hn_side_bench(&c, s, t, HN_RUN_ASKED, out->question, salt, err);
    const hn_ask_run q = { .argv = hn_argv_words(&c.argv), .env = c.env, .question = out->question, .stop = t->stop };
    if (st == HONE_OK) st = asker_of(s, t, q.argv, err);
    if (st == HONE_OK) st = hn_asker_run(&h, s->asker, &q, err);
    if (st == HONE_OK && !h.told && !h.invalid[0]) {
        st = hn_side_failed(s, &h.process, err);
        hn_heard_free(&h);
    }
    if (st == HONE_OK) {
        take_heard(out, &h);
        take_process(out, &h.process);
        snprintf(out->invalid, sizeof out->invalid, "%s", h.invalid);
        if (!out->invalid[0] && h.process.raised)
            snprintf(out->invalid, sizeof out->invalid, "it raised its own priority");
        if (!out->invalid[0] && h.n_children > 0)
            snprintf(out->invalid, sizeof out->invalid,
                     "it has other processes at work, whose time and memory are not its own");
        if (!out->invalid[0]) (void)hn_side_meddles(out->invalid, sizeof out->invalid, &h.process);
        if (!out->invalid[0]) (void)hn_claims_settings(h.told, q.argv, out->invalid, sizeof out->invalid);
        check_threads(out, &h.process, threads_asked(q.argv));
        st = take_proofs(out, json_object_get(h.told, "proof"), NULL, s, err);
        hn_heard_free(&h);
    }
    hn_argv_free(&c.argv);
    return st;
}

static hone_status measure_bench(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err)
{
    hn_side_command c;
    hn_process r;
    if (s->series) out->question = question_of(s->series, s->n_asked++);
    hone_status st = hn_side_bench(&c, s, t, HN_RUN_BENCH, out->question, salt, err);
    const hn_process_params p = {
        .argv = hn_argv_words(&c.argv), .env = c.env, .alone = true, .keep_out = true, .stop = t->stop
    };
    const double threads = st == HONE_OK ? threads_asked(p.argv) : 0;
    if (st == HONE_OK) st = hn_process_run(&r, &p, err);
    hn_argv_free(&c.argv);
    if (st != HONE_OK) return st;
    json_t *o = hn_side_printed(&r, r.exit_code == 0 || r.exit_code == 1);
    json_t *list = json_object_get(o, "records");
    if (!list) list = json_object_get(o, "results");
    if (!json_is_object(o)) st = hn_side_failed(s, &r, err);
    else {
        const char *why = json_string_value(json_object_get(o, "invalid_reason"));
        bool bad = json_is_false(json_object_get(o, "valid"));
        if (bad) snprintf(out->invalid, sizeof out->invalid, "%.500s", why ? why : "invalid");
        if (!list && (!bad || (why && strncmp(why, "degenerate", 10) == 0))) /* broken is told as it is */
            hn_claims_record(o, s->can_ask, out->invalid, sizeof out->invalid);
        if (list && !bad && !out->invalid[0]) hn_claims_records(list, out->invalid, sizeof out->invalid);
        if (list) st = take_records(out, list, s, err);
        else take_plain(out, o);
        json_t *config = json_object_get(list ? json_array_get(list, 0) : o, "config");
        if (r.raised && !out->invalid[0]) snprintf(out->invalid, sizeof out->invalid, "it raised its own priority");
        if (!out->invalid[0]) (void)hn_side_meddles(out->invalid, sizeof out->invalid, &r);
        take_settings(out, config);
        take_model(out, json_object_get(list ? json_array_get(list, 0) : o, "model"));
        if (list) out->claimed_s = hn_claims_seconds(list);
        else {
            take_times(out, o, config);
            check_threads(out, &r, threads);
        }
        if (st == HONE_OK) st = take_proofs(out, json_object_get(json_object_get(o, "extra"), "proof"), list, s, err);
        if (st == HONE_OK && out->n == 0 && !out->invalid[0]) st = hn_side_failed(s, &r, err);
        if (st == HONE_OK && r.exit_code == 1 && !out->invalid[0]) st = hn_side_failed(s, &r, err);
        take_process(out, &r);
    }
    json_decref(o);
    hn_process_free(&r);
    return st;
}

static hone_status find_number(double *out, const hn_side *s, const char *pattern, const char *text, hone_error *err)
{
    regex_t re;
    regmatch_t m[2];
    char why[128], number[64], *end;
    int rc = regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE);
    if (rc != 0) {
        regerror(rc, &re, why, sizeof why);
        return HN_FAIL(err, HONE_E_ARG, "--metric number:%s: %s", HN_ESC(pattern, strlen(pattern)), why);
    }
    bool group = re.re_nsub >= 1, found = regexec(&re, text, 2, m, 0) == 0;
    regfree(&re);
    if (!found || (group && m[1].rm_so < 0))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: its output has nothing like '%s'", HN_ESC(s->label, strlen(s->label)),
                       HN_ESC(pattern, strlen(pattern)));
    regmatch_t at = group ? m[1] : m[0];
    snprintf(number, sizeof number, "%.*s", (int)(at.rm_eo - at.rm_so), text + at.rm_so);
    *out = strtod(number, &end);
    if (end == number || *end || !isfinite(*out))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: '%s' found '%s', which is no number",
                       HN_ESC(s->label, strlen(s->label)), HN_ESC(pattern, strlen(pattern)),
                       HN_ESC(number, strlen(number)));
    return HONE_OK;
}

static hone_status measure_command(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err)
{
    hn_side_command c = { .argv = { 0 } };
    const char *argv[] = { "/bin/sh", "-c", s->label, NULL };
    hn_process r;
    hn_side_env(&c, s, salt);
    hone_status st = hn_process_run(
        &r, &(hn_process_params){ .argv = argv, .env = c.env, .keep_out = t->number != NULL, .stop = t->stop }, err);
    if (st != HONE_OK) return st;
    if (r.exit_code != 0) st = hn_side_failed(s, &r, err);
    double v = 0;
    if (st == HONE_OK && t->number) st = find_number(&v, s, t->number, r.out, err);
    if (st == HONE_OK && t->number) hn_measured_add(out, "number", "", t->number_higher, v);
    if (st == HONE_OK) take_process(out, &r);
    hn_process_free(&r);
    return st;
}

hone_status hn_side_measure(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err)
{
    *out = (hn_measured){
        .claimed_s = NAN, .wall_s = NAN, .part_s = { NAN, NAN, NAN, NAN }, .anon_mb = NAN, .rss_mb = NAN
    };
    if (s->kind == HN_SIDE_COMMAND) return measure_command(out, s, t, salt, err);
    if (s->bench) return hn_side_measure_kernel(out, s, t, err);
    return s->talks && hn_target_is_plain(t) ? measure_asked(out, s, t, salt, err)
                                             : measure_bench(out, s, t, salt, err);
}

hone_status hn_side_ask_mode(json_t **out, hn_side *s, const char *mode, const char *word, const char *cpu,
                             uint64_t salt, hone_error *err)
{
    hn_side_command c = { .argv = { 0 } };
    hn_process r;
    hn_argv *a = &c.argv;
    *out = NULL;
    if (s->kind == HN_SIDE_COMMAND) return HN_FAIL(err, HONE_E_ARG, "side '%s': a command has no kernels", s->label);
    hn_argv_extend(a, (const char *const[]){ s->program, "bench", mode, word, NULL });
    if (cpu) hn_argv_add(a, "--cpu=%s", cpu);
    for (int i = 0; i < s->n_keys; i++) {
        if (strcmp(s->key[i], "cpu") != 0) {
            hn_argv_free(a);
            return HN_FAIL(err, HONE_E_ARG, "side '%s': %s=… says nothing of single products; expected cpu=LEVEL",
                           HN_ESC(s->label, strlen(s->label)), s->key[i]);
        }
        hn_argv_set(a, "cpu", "%s", s->value[i]);
    }
    hn_argv_add(a, "%" PRIu64, hn_clock_ns() >> 1);
    hn_side_env(&c, s, salt);
    hone_status st = hn_argv_check(a, s->program, err);
    if (st == HONE_OK) st = hn_side_run(&r, s, hn_argv_words(a), c.env, s->p.stop, err);
    hn_argv_free(a);
    if (st != HONE_OK) return st;
    *out = hn_side_printed(&r, r.exit_code == 0);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        st = hn_side_failed(s, &r, err);
    }
    hn_process_free(&r);
    return st;
}
