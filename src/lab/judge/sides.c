/* The sides of a comparison: what words mean, one measurement of any side. Owns the command lines it runs; refuses to
 * know rounds and verdicts. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "lab/judge/sides.h"
#include "lab/judge/asker.h"
#include "lab/judge/side_commit.h"
#include "lab/bench/asked.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "base/os.h"
#include "lab/record/record_read.h"
#include "lab/bench/process.h"
#include "lab/inside/kern.h"
#include "lab/quality/paths.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <inttypes.h>
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_KEYS = 16, MAX_ENV = 8, PATH_CAP = HN_SIDE_PATH };

typedef enum side_kind { SIDE_SELF, SIDE_BINARY, SIDE_COMMIT, SIDE_COMMAND } side_kind;

struct hn_side {
    hn_side_params p;
    side_kind kind;
    char *label, *words; /* as given; cut into the pieces below */
    const char *key[MAX_KEYS], *value[MAX_KEYS];
    int n_keys;
    const char *env[MAX_ENV]; /* "NAME=VALUE" */
    int n_env;
    char program[PATH_CAP];
    char version[64], commit[64];
    int dirty;               /* -1: not known */
    char hash[24], why[512]; /* of quality, once asked for */
    char older[24];          /* the same by the older kind of hash; "" */
    hn_outer outer;          /* and what else it answered then */
    json_t *detail;          /* which ways were gone then, in its quality_detail */
    const hn_target *asked;  /* the target that was asked for them */
    bool can_ask;            /* takes --prompt-seed, and proves its answers */
    bool can_walk;           /* has the hash of every way of computing, q2 */
    bool can_talk, talks;    /* answers what is asked through a pipe (asker.h); so it is asked */
    hn_asker *asker;         /* of the model asked last, `asked_of` */
    const char *asked_of;
    uint64_t series, n_asked; /* of prompts; questions so far */
    hn_kern kern;
    hn_kern_bench *bench; /* resident */
};

/* ---- words ------------------------------------------------------------------------------------ */

static bool is_config(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '-' || s[i] == '_')) i++;
    return i > 0 && i < n && (s[i] == '=' || (s[i] == ':' && strncmp(s, "env:", 4) == 0 && memchr(s, '=', n)));
}

static hone_status add_config(hn_side *s, char *word, hone_error *err)
{
    char *eq = strchr(word, '=');
    if (strncmp(word, "env:", 4) == 0) {
        if (eq == word + 4)
            return HN_FAIL(err, HONE_E_ARG, "side '%s': env: without a name; expected env:NAME=VALUE",
                           HN_ESC(s->label, strlen(s->label)));
        if (s->n_env == MAX_ENV)
            return HN_FAIL(err, HONE_E_ARG, "side '%s': more than %d variables", HN_ESC(s->label, strlen(s->label)),
                           MAX_ENV);
        s->env[s->n_env++] = word + 4;
        return HONE_OK;
    }
    if (s->n_keys == MAX_KEYS)
        return HN_FAIL(err, HONE_E_ARG, "side '%s': more than %d settings", HN_ESC(s->label, strlen(s->label)),
                       MAX_KEYS);
    *eq = 0;
    s->key[s->n_keys] = word;
    s->value[s->n_keys++] = eq + 1;
    return HONE_OK;
}

static const char *config_of(const hn_side *s, const char *key)
{
    const char *v = NULL;
    for (int i = 0; i < s->n_keys; i++)
        if (strcmp(s->key[i], key) == 0) v = s->value[i];
    return v;
}

/* ---- programs ------------------------------------------------------------------------------------- */

/* What a program printed, if it is to be believed and JSON; else NULL. */
static json_t *printed(const hn_process *r, bool believed)
{
    json_t *o = NULL;
    if (believed && r->out) hn_json_tree(&o, r->out, r->n_out, NULL, "output", NULL);
    return o;
}

/* What a program that has ended has done to those that are measured next; false: nothing. */
static bool meddles(char *why, size_t cap, const hn_process *r)
{
    if (r->n_left) snprintf(why, cap, "it left %d process%s behind", (int)r->n_left, r->n_left == 1 ? "" : "es");
    else if (r->moved) snprintf(why, cap, "it changed the CPUs that its parent may run on");
    return r->n_left || r->moved;
}

/* Runs it, nothing of which may go on behind its end. */
static hone_status ask(hn_process *r, hn_side *s, const char *const *argv, const char *const *env, bool (*stop)(void *),
                       hone_error *err)
{
    char why[80];
    const hn_process_params p = { .argv = argv, .env = env, .alone = true, .keep_out = true, .stop = stop };
    hone_status st = hn_process_run(r, &p, err);
    if (st != HONE_OK || !meddles(why, sizeof why, r)) return st;
    hn_process_free(r);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: what is measured beside that means nothing",
                   HN_ESC(s->label, strlen(s->label)), why);
}

/* Which options another program has that older ones lack. */
static hone_status ask_options(hn_side *s, hone_error *err)
{
    const char *argv[] = { s->program, "bench", "--help", NULL };
    hn_process r;
    hone_status st = ask(&r, s, argv, NULL, s->p.stop, err);
    if (st != HONE_OK) return st;
    s->can_ask = r.exit_code == 0 && r.out && strstr(r.out, "--prompt-seed");
    s->can_walk = r.exit_code == 0 && r.out && strstr(r.out, "--quality");
    hn_process_free(&r);
    return HONE_OK;
}

/* What another program says it is. */
static hone_status ask_version(hn_side *s, hone_error *err)
{
    const char *argv[] = { s->program, "version", "--json", NULL };
    hn_process r;
    hone_status st = ask(&r, s, argv, NULL, s->p.stop, err);
    if (st != HONE_OK) return st;
    json_t *o = printed(&r, r.exit_code == 0);
    const char *v = json_string_value(json_object_get(o, "version")),
               *b = json_string_value(json_object_get(o, "build"));
    const char *c = b ? strstr(b, "; commit ") : NULL;
    if (!v) {
        char why[600];
        hn_process_why(&r, why, sizeof why);
        st = HN_FAIL(err, HONE_E_ARG, "%s: not a hone program: `version --json` %s",
                     HN_ESC(s->program, strlen(s->program)), why[0] ? why : "gave no version");
    } else {
        s->can_talk = json_integer_value(json_object_get(o, "asked")) == HN_ASKED_VERSION;
        snprintf(s->version, sizeof s->version, "%.60s", v);
        if (s->kind != SIDE_COMMIT) snprintf(s->commit, sizeof s->commit, "%.60s", c ? c + 9 : "");
        char *plus = strstr(s->commit, "+dirty");
        s->dirty = plus != NULL;
        if (plus) *plus = 0;
        if (!s->commit[0] || strcmp(s->commit, "unknown") == 0) s->dirty = -1;
    }
    json_decref(o);
    hn_process_free(&r);
    return st == HONE_OK ? ask_options(s, err) : st;
}

static hone_status open_binary(hn_side *s, const char *path, hone_error *err)
{
    struct stat sb;
    if (stat(path, &sb) != 0) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    if (!S_ISREG(sb.st_mode) || access(path, X_OK) != 0)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: not a program; expected a hone program, a commit, or settings as in threads=1",
                       HN_ESC(path, strlen(path)));
    if (!realpath(path, s->program))
        return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    s->kind = SIDE_BINARY;
    return ask_version(s, err);
}

static hone_status open_self(hn_side *s, hone_error *err)
{
    s->kind = SIDE_SELF;
    s->can_ask = s->can_walk = s->can_talk = true;
    if (!hn_os_program_path(s->program, sizeof s->program))
        return HN_FAIL(err, HONE_E_IO, "this program cannot find itself (on Linux this needs /proc)");
    hn_environ e;
    hn_environ_read(&e);
    snprintf(s->version, sizeof s->version, "%s", hone_version());
    snprintf(s->commit, sizeof s->commit, "%s", e.commit);
    char *plus = strstr(s->commit, "+dirty");
    s->dirty = !s->commit[0] || strcmp(s->commit, "unknown") == 0 ? -1 : plus != NULL;
    if (plus) *plus = 0;
    return HONE_OK;
}

static hone_status open_commit(hn_side *s, const char *rev, hone_error *err)
{
    char hash[64];
    s->kind = SIDE_COMMIT;
    hone_status st = hn_side_find_commit(hash, rev, &s->p, err);
    if (st != HONE_OK) return st;
    snprintf(s->commit, sizeof s->commit, "%.12s", hash);
    st = hn_side_build_commit(s->program, hash, s->label, &s->p, err);
    if (st != HONE_OK) return st;
    st = ask_version(s, err);
    s->dirty = 0; /* what a commit is; its build may call files of its own making dirt */
    return st;
}

/* ---- life --------------------------------------------------------------------------------------------------- */

static hone_status open_words(hn_side *s, hone_error *err)
{
    char *program = NULL;
    hone_status st = HONE_OK;
    for (char *w = s->words, *next; w && st == HONE_OK; w = next) {
        next = strchr(w, ',');
        if (next) *next++ = 0;
        if (is_config(w, strlen(w))) st = add_config(s, w, err);
        else if (program || !w[0])
            st = HN_FAIL(err, HONE_E_ARG,
                         "side '%s': '%s' is no setting; expected KEY=VALUE or env:NAME=VALUE behind at most one "
                         "program or commit",
                         HN_ESC(s->label, strlen(s->label)), HN_ESC(w, strlen(w)));
        else program = w;
    }
    if (st != HONE_OK) return st;
    if (!program || strcmp(program, "this") == 0) return open_self(s, err);
    if (strncmp(program, "git:", 4) == 0) return open_commit(s, program + 4, err);
    struct stat sb;
    bool there = stat(program, &sb) == 0;
    if (there && !S_ISDIR(sb.st_mode)) return open_binary(s, program, err);
    if (there || strchr(program, '/')) { /* branches may have slashes, and folders the names of branches */
        char hash[64];
        if (hn_side_find_commit(hash, program, &s->p, NULL) != HONE_OK) return open_binary(s, program, err);
    }
    return open_commit(s, program, err);
}

hone_status hn_side_open(hn_side **out, const char *spec, const hn_side_params *p, hone_error *err)
{
    *out = NULL;
    hn_side *s = calloc(1, sizeof *s);
    if (s) s->label = strdup(spec);
    if (s) s->words = strdup(spec);
    if (!s || !s->label || !s->words) {
        hn_side_close(s);
        return HN_FAIL(err, HONE_E_NOMEM, "a side of the comparison");
    }
    s->p = *p;
    s->dirty = -1;
    hone_status st = HONE_OK;
    if (!spec[0])
        st = HN_FAIL(err, HONE_E_ARG, "an empty side; expected %s",
                     p->command ? "a shell command" : "settings, a program or a commit");
    else if (p->command) s->kind = SIDE_COMMAND;
    else st = open_words(s, err);
    if (st != HONE_OK) {
        hn_side_close(s);
        return st;
    }
    *out = s;
    return HONE_OK;
}

void hn_side_leave(hn_side *s)
{
    if (s) hn_kern_close(s->bench);
    if (s) s->bench = NULL;
}

void hn_side_close(hn_side *s)
{
    if (!s) return;
    hn_side_leave(s);
    json_decref(s->detail);
    hn_asker_free(s->asker);
    free(s->label);
    free(s->words);
    free(s);
}

const char *hn_side_label(const hn_side *s) { return s->label; }

json_t *hn_side_json(const hn_side *s)
{
    static const char *const what[] = { "config", "binary", "commit", "command" };
    json_t *o = json_object(), *config = json_object(), *env = json_object();
    for (int i = 0; i < s->n_keys; i++) json_object_set_new(config, s->key[i], hn_lab_str(s->value[i]));
    for (int i = 0; i < s->n_env; i++) {
        char name[128];
        size_t n = strcspn(s->env[i], "=");
        snprintf(name, sizeof name, "%.*s", (int)n, s->env[i]);
        json_object_set_new(env, name, hn_lab_str(s->env[i] + n + (s->env[i][n] == '=')));
    }
    json_object_set_new(o, "label", hn_lab_str(s->label));
    json_object_set_new(o, "what", json_string(what[s->kind]));
    json_object_set_new(o, "program",
                        s->kind == SIDE_COMMAND || s->kind == SIDE_SELF
                            ? json_null()
                            : hn_lab_str(strrchr(s->program, '/') ? strrchr(s->program, '/') + 1 : s->program));
    json_object_set_new(o, "config", config);
    json_object_set_new(o, "env", env);
    json_object_set_new(o, "version", s->version[0] ? hn_lab_str(s->version) : json_null());
    json_object_set_new(o, "commit",
                        s->commit[0] && strcmp(s->commit, "unknown") != 0 ? hn_lab_str(s->commit) : json_null());
    json_object_set_new(o, "dirty", s->dirty < 0 ? json_null() : json_boolean(s->dirty));
    json_object_set_new(o, "quality", s->hash[0] ? hn_lab_str(s->hash) : json_null());
    json_object_set_new(o, "invalid", s->why[0] ? hn_lab_str(s->why) : json_null());
    return o;
}

/* ---- kernels in this process ------------------------------------------------------------------------------------ */

static bool kernel_config(const hn_side *s)
{
    static const char *const known[] = { "layout", "threads", "t", "cpu", "columns" };
    if (s->kind != SIDE_SELF || s->n_env) return false;
    for (int i = 0; i < s->n_keys; i++) {
        bool ok = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) ok = ok || strcmp(s->key[i], known[k]) == 0;
        if (!ok) return false;
    }
    return true;
}

bool hn_sides_resident(const hn_side *a, const hn_side *b, const hn_target *t)
{
    return t->id && strncmp(t->id, "kern.", 5) == 0 && kernel_config(a) && kernel_config(b);
}

hone_status hn_side_settle(hn_side *s, const hn_target *t, hone_error *err)
{
    hn_side_leave(s);
    hone_status st = hn_kern_parse(&s->kern, t->id, err);
    return st == HONE_OK ? hn_kern_open(&s->bench, &s->kern, config_of(s, "cpu"), err) : st;
}

static hone_status number_of(int32_t *out, const hn_side *s, const char *key, int32_t def, int32_t max, hone_error *err)
{
    int64_t v = def;
    const char *text = config_of(s, key);
    hone_status st = HONE_OK;
    if (text) { /* as options.c reads numbers, which lab/ does not know */
        char *end;
        errno = 0;
        v = strtoll(text, &end, 10);
        if (errno || end == text || *end || v < 1 || v > max)
            st = HN_FAIL(err, HONE_E_ARG, "side '%s': %s=%s; expected a number from 1 to %d",
                         HN_ESC(s->label, strlen(s->label)), key, HN_ESC(text, strlen(text)), max);
    }
    *out = (int32_t)v;
    return st;
}

static void add_metric(hn_measured *m, const char *name, const char *unit, bool higher, double value)
{
    if (m->n == HN_MEASURED) return; /* take_records leaves room */
    hn_measured_metric *x = &m->m[m->n++];
    *x = (hn_measured_metric){ .higher = higher, .value = value };
    snprintf(x->name, sizeof x->name, "%s", name);
    snprintf(x->unit, sizeof x->unit, "%.15s", unit);
}

static hone_status measure_kernel(hn_measured *out, hn_side *s, const hn_target *t, hone_error *err)
{
    enum { EPOCHS = 5 };
    hn_kern_config c = { .n_samples = EPOCHS };
    const char *own = config_of(s, "layout"), *layout = own ? own : t->layout,
               *th = config_of(s, "t") ? "t" : "threads";
    hone_status st = number_of(&c.threads, s, th, t->threads ? t->threads : hn_cpu_count(), 1024, err);
    if (st == HONE_OK)
        st = number_of(&c.columns, s, "columns",
                       t->columns                     ? t->columns
                       : s->kern.kind == HN_KERN_GEMV ? 1
                                                      : 512,
                       4096, err);
    if (st != HONE_OK) return st;
    if (layout && strcmp(layout, "plain") != 0 && strcmp(layout, "packed") != 0)
        return HN_FAIL(err, HONE_E_ARG, "side '%s': layout=%s; expected plain or packed",
                       HN_ESC(s->label, strlen(s->label)), HN_ESC(layout, strlen(layout)));
    c.packed = layout && strcmp(layout, "packed") == 0;
    if (c.packed && !hn_kern_has_packed(s->bench))
        return HN_FAIL(err, HONE_E_ARG, "%s has no packed layout at this level", t->id);
    hn_kern_result r;
    st = hn_kern_measure(&r, s->bench, &c, NULL, t->stop, err);
    if (st != HONE_OK) return st;
    if (r.verdict.state == HN_INVALID) snprintf(out->invalid, sizeof out->invalid, "%s", r.verdict.reason);
    add_metric(out, "us", "us", false, 1e6 * r.time.median);
    return HONE_OK;
}

/* ---- processes ------------------------------------------------------------------------------------------------------
 */

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

typedef struct command {
    hn_argv argv;
    const char *env[MAX_ENV + 2];
    char pad[4200];
} command;

/* The environment of one run: the side's own, and a word of changing length that moves the
 * stack of the program a little (Mytkowicz et al. 2009 show what that may do to its speed). */
static void set_env(command *c, const hn_side *s, uint64_t salt)
{
    enum { MOST = 4096 };
    int n = 0;
    for (int i = 0; i < s->n_env; i++) c->env[n++] = s->env[i];
    size_t len = (size_t)(hn_rand64(salt, 0) % MOST);
    int k = snprintf(c->pad, sizeof c->pad, "HONE_AB_PAD=");
    memset(c->pad + k, 'x', len);
    c->pad[(size_t)k + len] = 0;
    c->env[n++] = c->pad;
    c->env[n] = NULL;
}

static bool is_plain(const hn_target *t)
{
    const hn_bench_entry *e = t->id ? hn_bench_find(t->id) : NULL;
    return !t->id || (e && e->plain);
}

/* What of a bench is run: it, the hash of its model's answers, or its measured process alone, which is asked. */
typedef enum run_kind { RUN_BENCH, RUN_QUALITY, RUN_ASKED } run_kind;

/* PROGRAM bench [ID] -m MODEL … --json. The plain run is asked for without an id, which older programs know too. What
 * a side says itself replaces what is said of both. */
static hone_status bench_command(command *c, const hn_side *s, const hn_target *t, run_kind kind, uint64_t question,
                                 uint64_t salt, hone_error *err)
{
    const bool quality = kind == RUN_QUALITY, plain = kind == RUN_BENCH && is_plain(t);
    hn_argv *a = &c->argv;
    *c = (command){ .argv = { 0 } };
    hn_argv_extend(a, (const char *const[]){ s->program, "bench", kind == RUN_ASKED ? "_asked" : NULL, NULL });
    if (kind == RUN_BENCH && !plain) hn_argv_add(a, "%s", t->id);
    if (t->model) hn_argv_add(a, "--model=%s", t->model);
    for (int i = 0; i < HN_SIDE_ARGS && t->args[i]; i++) /* which hash matters where one is made */
        if (quality || !hn_argv_is(t->args[i], "quality")) hn_argv_extend(a, (const char *const[]){ t->args[i], NULL });
    for (int i = 0; i < s->n_keys; i++)
        hn_argv_set(a, strcmp(s->key[i], "t") == 0 ? "threads" : s->key[i], "%s", s->value[i]);
    if (quality) hn_argv_extend(a, (const char *const[]){ "--n-prompt=4", "--n-gen=2", "--depth=0", NULL });
    if (plain || quality) hn_argv_extend(a, (const char *const[]){ "-r", "1", NULL });
    if (plain) hn_argv_add(a, "--no-quality");
    if (plain && question) hn_argv_set(a, "prompt-seed", "%" PRIu64, question);
    if (kind == RUN_ASKED) hn_argv_add(a, "%" PRIu64, hn_clock_ns() >> 1); /* as every measured process has one */
    else hn_argv_add(a, "--json");
    set_env(c, s, salt);
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
        add_metric(out, keys[i].key, keys[i].unit, keys[i].higher, hn_record_number(o, keys[i].key));
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
        json_t *m = median_of(r);
        double v = json_is_number(m) ? json_number_value(m) : hn_record_number(r, "value");
        char name[HN_METRIC_NAME];
        record_name(name, r, json_array_size(list) == 1);
        if (hn_measured_find(out, name))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: two records are called %s; nothing tells which is which",
                           HN_ESC(s->label, strlen(s->label)), HN_ESC(name, strlen(name)));
        if (why && !out->invalid[0]) snprintf(out->invalid, sizeof out->invalid, "%.200s: %.300s", name, why);
        json_t *extra = json_object_get(r, "extra");
        if (isfinite(v) && unit) {
            add_metric(out, name, unit, better ? strcmp(better, "higher") == 0 : strchr(unit, '/') != NULL, v);
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
    add_metric(out, "wall_ms", "ms", false, 1e3 * r->wall_s);
    add_metric(out, "cpu_ms", "ms", false, 1e3 * (r->user_s + r->sys_s));
    add_metric(out, "user_ms", "ms", false, 1e3 * r->user_s);
    add_metric(out, "sys_ms", "ms", false, 1e3 * r->sys_s);
    add_metric(out, "rss_mb", "MB", false, (double)r->max_rss / 1e6);
}

static hone_status failed(const hn_side *s, const hn_process *r, hone_error *err)
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
    add_metric(out, "load_ms", "ms", false, 1e3 * h->load_s);
    if (h->prompt_s > 0) add_metric(out, "prefill_tok_s", "tok/s", true, h->n_prompt / h->prompt_s);
    if (h->prompt_s > 0) add_metric(out, "ttft_ms", "ms", false, 1e3 * h->prompt_s);
    if (h->gen_s > 0) add_metric(out, "decode_tok_s", "tok/s", true, gaps / h->gen_s);
    add_metric(out, "peak_anon_mb", "MB", false, h->anon_mb);
    for (int i = 0; i < out->n; i++) out->m[i].proved = proof != NULL;
    out->anon_mb = h->anon_mb;
    out->part_s[HN_PART_LOAD] = h->load_s;
    out->part_s[HN_PART_PROMPT] = out->part_s[HN_PART_FIRST] = h->prompt_s;
    out->part_s[HN_PART_GEN] = h->gen_s;
    out->claimed_s = h->load_s + (isfinite(h->prompt_s) ? h->prompt_s : 0) + (isfinite(h->gen_s) ? h->gen_s : 0);
    snprintf(out->weights, sizeof out->weights, "%s",
             json_is_true(json_object_get(engine, "packed")) ? "packed" : "plain");
    if (json_is_integer(json_object_get(engine, "threads")))
        snprintf(out->ran, sizeof out->ran, "--threads %d, %.20s, kv %.10s, chunk %d",
                 (int)json_integer_value(json_object_get(engine, "threads")), hn_record_text(engine, "cpu"),
                 hn_record_text(engine, "kv"), (int)json_integer_value(json_object_get(engine, "chunk")));
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
    command c;
    hn_heard h;
    if (s->series) out->question = question_of(s->series, s->n_asked++);
    hone_status st = bench_command(&c, s, t, RUN_ASKED, out->question, salt, err);
    const hn_ask_run q = { .argv = hn_argv_words(&c.argv), .env = c.env, .question = out->question, .stop = t->stop };
    if (st == HONE_OK) st = asker_of(s, t, q.argv, err);
    if (st == HONE_OK) st = hn_asker_run(&h, s->asker, &q, err);
    if (st == HONE_OK && !h.told && !h.invalid[0]) {
        st = failed(s, &h.process, err);
        hn_heard_free(&h);
    }
    if (st == HONE_OK) {
        take_heard(out, &h);
        take_process(out, &h.process);
        snprintf(out->invalid, sizeof out->invalid, "%s", h.invalid);
        if (!out->invalid[0] && h.process.raised)
            snprintf(out->invalid, sizeof out->invalid, "it raised its own priority");
        if (!out->invalid[0]) (void)meddles(out->invalid, sizeof out->invalid, &h.process);
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
    command c;
    hn_process r;
    if (s->series) out->question = question_of(s->series, s->n_asked++);
    hone_status st = bench_command(&c, s, t, RUN_BENCH, out->question, salt, err);
    const hn_process_params p = {
        .argv = hn_argv_words(&c.argv), .env = c.env, .alone = true, .keep_out = true, .stop = t->stop
    };
    const double threads = st == HONE_OK ? threads_asked(p.argv) : 0;
    if (st == HONE_OK) st = hn_process_run(&r, &p, err);
    hn_argv_free(&c.argv);
    if (st != HONE_OK) return st;
    json_t *o = printed(&r, r.exit_code == 0 || r.exit_code == 1);
    json_t *list = json_object_get(o, "records");
    if (!list) list = json_object_get(o, "results");
    if (!json_is_object(o)) st = failed(s, &r, err);
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
        if (!out->invalid[0]) (void)meddles(out->invalid, sizeof out->invalid, &r);
        take_settings(out, config);
        take_model(out, json_object_get(list ? json_array_get(list, 0) : o, "model"));
        if (list) out->claimed_s = hn_claims_seconds(list);
        else {
            take_times(out, o, config);
            check_threads(out, &r, threads);
        }
        if (st == HONE_OK) st = take_proofs(out, json_object_get(json_object_get(o, "extra"), "proof"), list, s, err);
        if (st == HONE_OK && out->n == 0 && !out->invalid[0]) st = failed(s, &r, err);
        if (st == HONE_OK && r.exit_code == 1 && !out->invalid[0]) st = failed(s, &r, err);
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
    command c = { .argv = { 0 } };
    const char *argv[] = { "/bin/sh", "-c", s->label, NULL };
    hn_process r;
    set_env(&c, s, salt);
    hone_status st = hn_process_run(
        &r, &(hn_process_params){ .argv = argv, .env = c.env, .keep_out = t->number != NULL, .stop = t->stop }, err);
    if (st != HONE_OK) return st;
    if (r.exit_code != 0) st = failed(s, &r, err);
    double v = 0;
    if (st == HONE_OK && t->number) st = find_number(&v, s, t->number, r.out, err);
    if (st == HONE_OK && t->number) add_metric(out, "number", "", t->number_higher, v);
    if (st == HONE_OK) take_process(out, &r);
    hn_process_free(&r);
    return st;
}

hone_status hn_side_measure(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err)
{
    *out = (hn_measured){
        .claimed_s = NAN, .wall_s = NAN, .part_s = { NAN, NAN, NAN, NAN }, .anon_mb = NAN, .rss_mb = NAN
    };
    if (s->kind == SIDE_COMMAND) return measure_command(out, s, t, salt, err);
    if (s->bench) return measure_kernel(out, s, t, err);
    return s->talks && is_plain(t) ? measure_asked(out, s, t, salt, err) : measure_bench(out, s, t, salt, err);
}

hone_status hn_side_ask_mode(json_t **out, hn_side *s, const char *mode, const char *word, const char *cpu,
                             uint64_t salt, hone_error *err)
{
    command c = { .argv = { 0 } };
    hn_process r;
    hn_argv *a = &c.argv;
    *out = NULL;
    if (s->kind == SIDE_COMMAND) return HN_FAIL(err, HONE_E_ARG, "side '%s': a command has no kernels", s->label);
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
    set_env(&c, s, salt);
    hone_status st = hn_argv_check(a, s->program, err);
    if (st == HONE_OK) st = ask(&r, s, hn_argv_words(a), c.env, s->p.stop, err);
    hn_argv_free(a);
    if (st != HONE_OK) return st;
    *out = printed(&r, r.exit_code == 0);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        st = failed(s, &r, err);
    }
    hn_process_free(&r);
    return st;
}

bool hn_side_can_ask(const hn_side *s) { return s->can_ask; }

bool hn_side_must_prove(const hn_side *s, const hn_target *t) { return s->can_ask && t->id && is_plain(t); }

bool hn_side_can_talk(const hn_side *s) { return s->can_talk; }
void hn_side_talk(hn_side *s, bool talks) { s->talks = talks; }

void hn_side_ask(hn_side *s, uint64_t series)
{
    s->series = series;
    s->n_asked = 0;
}

/* ---- quality
 * --------------------------------------------------------------------------------------------------------------- */

/* Of a target's options those that the answers depend on: not how many tokens, and where the rest is a matter of speed.
 */
static bool answers_alike(const hn_target *a, const hn_target *b)
{
    static const char *const names[] = { "kv", "lora", "chunk", "packed", "pre", "cpu", "quality" };
    if (strcmp(a->model, b->model) != 0) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int turn = 0; turn < 2; turn++) { /* each one's words are all the other's */
            const hn_target *x = turn ? b : a, *y = turn ? a : b;
            for (int k = 0; k < HN_SIDE_ARGS && x->args[k]; k++) {
                bool there = !hn_argv_is(x->args[k], names[i]);
                for (int j = 0; j < HN_SIDE_ARGS && y->args[j]; j++) there = there || !strcmp(x->args[k], y->args[j]);
                if (!there) return false;
            }
        }
    return true;
}

size_t hn_targets_answering(const hn_target **out, const hn_target *t, size_t n)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        bool known = !t[i].model || !t[i].id || strncmp(t[i].id, "kern.", 5) == 0;
        for (size_t k = 0; k < n_out && !known; k++) known = answers_alike(out[k], &t[i]);
        if (!known) out[n_out++] = &t[i];
    }
    return n_out;
}

hone_status hn_side_quality(hn_side *s, const hn_target *t, char hash[24], char *why, size_t cap, hone_error *err)
{
    hone_status st = HONE_OK;
    if (s->asked != t) {
        command c;
        hn_process r;
        s->hash[0] = s->why[0] = s->older[0] = 0;
        st = bench_command(&c, s, t, RUN_QUALITY, 0, 0, err);
        if (st == HONE_OK) st = ask(&r, s, hn_argv_words(&c.argv), c.env, t->stop, err);
        hn_argv_free(&c.argv);
        if (st != HONE_OK) return st;
        json_t *o = printed(&r, r.exit_code == 0 || r.exit_code == 1);
        const char *q = json_string_value(json_object_get(o, "quality")),
                   *bad = json_string_value(json_object_get(o, "invalid_reason"));
        if (!json_is_object(o)) st = failed(s, &r, err);
        else if (json_is_false(json_object_get(o, "valid")))
            snprintf(s->why, sizeof s->why, "%.500s", bad ? bad : "invalid");
        else if (!q) snprintf(s->why, sizeof s->why, "no quality hash");
        else if (s->can_walk && strncmp(q, "q1", 2) == 0)
            snprintf(s->why, sizeof s->why, "a hash of the older kind, although its program has the newer");
        if (q) snprintf(s->hash, sizeof s->hash, "%.23s", q);
        json_decref(s->detail);
        s->detail = json_incref(json_object_get(o, "quality_detail"));
        snprintf(s->older, sizeof s->older, "%.23s", hn_record_text(s->detail, "q1"));
        hn_outer_read(&s->outer, json_object_get(s->detail, "outer"));
        s->asked = st == HONE_OK ? t : NULL;
        json_decref(o);
        hn_process_free(&r);
    }
    snprintf(hash, 24, "%s", s->hash);
    snprintf(why, cap, "%s", s->why);
    return st;
}

hone_status hn_sides_quality(hn_side *const side[2], const hn_target *t, char hash[2][24], char why[2][512],
                             hone_error *err)
{
    for (int i = 0; i < 2; i++) {
        hone_status st = hn_side_quality(side[i], t, hash[i], why[i], 512, err);
        if (st != HONE_OK) return st;
    }
    for (int i = 0; i < 2; i++)
        if (hash[0][0] && hash[1][0] && !hn_q_same_kind(hash[0], hash[1]) && hn_q_same_kind(side[i]->older, hash[!i]))
            snprintf(hash[i], 24, "%s", side[i]->older);
    /* a difference that the model's answers do not show stands in their place */
    hn_outer_part part = strcmp(hash[0], hash[1]) == 0 ? hn_outer_of(&side[0]->outer, &side[1]->outer) : HN_OUTER_PARTS;
    for (int i = 0; i < 2 && part != HN_OUTER_PARTS; i++)
        snprintf(hash[i], 24, "%s-%s", hn_outer_name(part), side[i]->outer.hash[part]);
    return HONE_OK;
}

void hn_sides_proved(hn_proved *out, hn_side *const side[2])
{
    const bool both = side[0]->can_walk && side[1]->can_walk;
    hn_quality_proved(out, both ? side[0]->detail : NULL, both ? side[1]->detail : NULL);
}
