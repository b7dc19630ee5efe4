/* The sides of a comparison: what words mean, and which programs they are. Owns the words; how one is measured is
 * side_measure.c's, what it answers side_quality.c's. */
#define _GNU_SOURCE
#include "lab/judge/side_priv.h"

#include "base/json_text.h"
#include "base/json_tree.h"
#include "base/os.h"
#include "lab/bench/asked.h"
#include "lab/machine/environ.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
        if (s->n_env == HN_SIDE_ENV)
            return HN_FAIL(err, HONE_E_ARG, "side '%s': more than %d variables", HN_ESC(s->label, strlen(s->label)),
                           HN_SIDE_ENV);
        s->env[s->n_env++] = word + 4;
        return HONE_OK;
    }
    if (s->n_keys == HN_SIDE_KEYS)
        return HN_FAIL(err, HONE_E_ARG, "side '%s': more than %d settings", HN_ESC(s->label, strlen(s->label)),
                       HN_SIDE_KEYS);
    *eq = 0;
    s->key[s->n_keys] = word;
    s->value[s->n_keys++] = eq + 1;
    return HONE_OK;
}

const char *hn_side_config(const hn_side *s, const char *key)
{
    const char *v = NULL;
    for (int i = 0; i < s->n_keys; i++)
        if (strcmp(s->key[i], key) == 0) v = s->value[i];
    return v;
}

/* ---- programs ------------------------------------------------------------------------------------- */

json_t *hn_side_printed(const hn_process *r, bool believed)
{
    json_t *o = NULL;
    if (believed && r->out) hn_json_tree(&o, r->out, r->n_out, NULL, "output", NULL);
    return o;
}

bool hn_side_meddles(char *why, size_t cap, const hn_process *r)
{
    if (r->n_left) snprintf(why, cap, "it left %d process%s behind", (int)r->n_left, r->n_left == 1 ? "" : "es");
    else if (r->changed) snprintf(why, cap, "it changed %s", r->changed);
    return r->n_left || r->changed;
}

hone_status hn_side_start(hn_process *r, hn_side *s, const hn_process_params *p, hone_error *err)
{
    char why[80];
    hone_status st = hn_process_run(r, p, err);
    if (st != HONE_OK || !hn_side_meddles(why, sizeof why, r)) return st;
    hn_process_free(r);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: what is measured beside that means nothing",
                   HN_ESC(s->label, strlen(s->label)), why);
}

hone_status hn_side_run(hn_process *r, hn_side *s, const char *const *argv, const char *const *env,
                        bool (*stop)(void *), hone_error *err)
{
    const hn_process_params p = { .argv = argv, .env = env, .alone = true, .keep_out = true, .stop = stop };
    return hn_side_start(r, s, &p, err);
}

/* Which options another program has that older ones lack. */
static hone_status ask_options(hn_side *s, hone_error *err)
{
    const char *argv[] = { s->program, "bench", "--help", NULL };
    hn_process r;
    hone_status st = hn_side_run(&r, s, argv, NULL, s->p.stop, err);
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
    hone_status st = hn_side_run(&r, s, argv, NULL, s->p.stop, err);
    if (st != HONE_OK) return st;
    json_t *o = hn_side_printed(&r, r.exit_code == 0);
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
        if (s->kind != HN_SIDE_COMMIT) snprintf(s->commit, sizeof s->commit, "%.60s", c ? c + 9 : "");
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
    s->kind = HN_SIDE_BINARY;
    return ask_version(s, err);
}

static hone_status open_self(hn_side *s, hone_error *err)
{
    s->kind = HN_SIDE_SELF;
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
    s->kind = HN_SIDE_COMMIT;
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
    else if (p->command) s->kind = HN_SIDE_COMMAND;
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
                        s->kind == HN_SIDE_COMMAND || s->kind == HN_SIDE_SELF
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
    if (s->kind != HN_SIDE_SELF || s->n_env) return false;
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
    return st == HONE_OK ? hn_kern_open(&s->bench, &s->kern, hn_side_config(s, "cpu"), err) : st;
}

static hone_status number_of(int32_t *out, const hn_side *s, const char *key, int32_t def, int32_t max, hone_error *err)
{
    int64_t v = def;
    const char *text = hn_side_config(s, key);
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

hone_status hn_side_measure_kernel(hn_measured *out, hn_side *s, const hn_target *t, hone_error *err)
{
    enum { EPOCHS = 5 };
    hn_kern_config c = { .n_samples = EPOCHS };
    const char *own = hn_side_config(s, "layout"), *layout = own ? own : t->layout,
               *th = hn_side_config(s, "t") ? "t" : "threads";
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
    hn_measured_add(out, "us", "us", false, 1e6 * r.time.median);
    return HONE_OK;
}

bool hn_side_can_ask(const hn_side *s) { return s->can_ask; }

bool hn_side_must_prove(const hn_side *s, const hn_target *t) { return s->can_ask && t->id && hn_target_is_plain(t); }

bool hn_side_can_talk(const hn_side *s) { return s->can_talk; }
void hn_side_talk(hn_side *s, bool talks) { s->talks = talks; }

void hn_side_ask(hn_side *s, uint64_t series)
{
    s->series = series;
    s->n_asked = 0;
}
