/* chat_talk: the conversation, its parameters, and the file both are saved in. Refuses
 * to know templates and tokens. */
#include "base/json_tree.h"
#include "base/file.h"
#include "cli/chat/chat_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SCHEMA "hone.chat/1"
const char *const hn_chat_roles[CHAT_ROLES] = { "system", "user", "assistant" };

/* ---- messages ----------------------------------------------------------------------------- */

bool hn_talk_push(chat_talk *t, chat_role role, const char *text, size_t len)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        chat_message *m = realloc(t->msg, cap * sizeof *m);
        if (!m) return false;
        t->msg = m;
        t->cap = cap;
    }
    char *copy = malloc(len + 1);
    if (!copy) return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    t->msg[t->n++] = (chat_message){ .role = role, .text = copy, .len = len };
    return true;
}

bool hn_talk_reason(chat_talk *t, const char *text, size_t len)
{
    chat_message *m = &t->msg[t->n - 1];
    if (!len) return true;
    char *copy = malloc(len + 1);
    if (!copy) return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    free(m->reasoning);
    m->reasoning = copy;
    m->n_reasoning = len;
    return true;
}

void hn_message_free(chat_message *m)
{
    free(m->text);
    free(m->reasoning);
    *m = (chat_message){ 0 };
}

void hn_talk_cut(chat_talk *t, size_t n)
{
    while (t->n > n) hn_message_free(&t->msg[--t->n]);
}

void hn_talk_free(chat_talk *t)
{
    hn_talk_cut(t, 0);
    free(t->msg);
    *t = (chat_talk){ 0 };
}

bool hn_talk_set_system(chat_talk *t, const char *text, size_t len)
{
    bool has = t->n && t->msg[0].role == CHAT_SYSTEM;
    if (text && !has) {
        if (!hn_talk_push(t, CHAT_SYSTEM, text, len)) return false;
        chat_message m = t->msg[t->n - 1];
        memmove(t->msg + 1, t->msg, (t->n - 1) * sizeof *t->msg);
        t->msg[0] = m;
    } else if (text) {
        char *copy = malloc(len + 1);
        if (!copy) return false;
        memcpy(copy, text, len);
        copy[len] = 0;
        free(t->msg[0].text);
        t->msg[0].text = copy;
        t->msg[0].len = len;
    } else if (has) {
        free(t->msg[0].text);
        memmove(t->msg, t->msg + 1, --t->n * sizeof *t->msg);
    }
    return true;
}

const chat_message *hn_talk_last(const chat_talk *t) { return t->n ? &t->msg[t->n - 1] : NULL; }

/* ---- parameters: ranges and kinds are those of the option table ---------------------------------- */

/* hn_group_sampling knows them all, but for the length of an answer. */
static const hn_opt limit_opt = HN_OPT("n-predict", NULL, I32, "N", "", .min = -1, .max = INT32_MAX);

static const hn_opt *find_opt(const char *name)
{
    if (strcmp(name, limit_opt.name) == 0) return &limit_opt;
    for (const hn_opt *o = hn_group_sampling.opts; o->name; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

static void *field(chat_params *p, const char *name)
{
    hone_sampler_params *s = &p->sampling;
    const struct {
        const char *name;
        void *at;
    } fields[] = {
        { "temp", &s->temp },
        { "top-k", &s->top_k },
        { "top-p", &s->top_p },
        { "min-p", &s->min_p },
        { "repeat-penalty", &s->repeat_penalty },
        { "presence-penalty", &s->presence_penalty },
        { "frequency-penalty", &s->frequency_penalty },
        { "repeat-last-n", &s->penalty_last_n },
        { "seed", &s->seed },
        { "n-predict", &p->limit },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0) return fields[i].at;
    return NULL;
}

hone_status hn_chat_param_set(chat_params *p, const char *name, const char *value, hone_error *err)
{
    const hn_opt *o = find_opt(name);
    void *at = field(p, name);
    if (!o || !at) {
        const char *names[32], *near;
        size_t n = 0;
        names[n++] = limit_opt.name;
        for (const hn_opt *k = hn_group_sampling.opts; k->name && n < 32; k++) names[n++] = k->name;
        near = hn_nearest(name, names, n);
        return HN_FAIL(err, HONE_E_ARG, "unknown parameter '%s'; %s%s%s", HN_ESC(name, strlen(name)),
                       near ? "did you mean " : "/params lists them", near ? near : "", near ? "?" : "");
    }
    hone_status st;
    int64_t i;
    float f;
    switch (o->kind) {
    case HN_OPT_F32:
        if ((st = hn_parse_f32(&f, value, o->min, o->max, name, err)) == HONE_OK) *(float *)at = f;
        return st;
    case HN_OPT_U64:
        if ((st = hn_parse_i64(&i, value, (int64_t)o->min, INT64_MAX, name, err)) != HONE_OK) return st;
        uint64_t seed = (uint64_t)i;
        if (!hn_cli_new_seed(&seed)) return HN_FAIL(err, HONE_E_IO, "no random %s from the system", name);
        *(uint64_t *)at = seed;
        return HONE_OK;
    default:
        if ((st = hn_parse_i64(&i, value, (int64_t)o->min, (int64_t)o->max, name, err)) == HONE_OK)
            *(int32_t *)at = (int32_t)i;
        return st;
    }
}

static size_t param_size(const hn_opt *o)
{
    return o->kind == HN_OPT_U64 ? sizeof(uint64_t) : o->kind == HN_OPT_I32 ? sizeof(int32_t) : sizeof(float);
}

static void keep(chat_params *p, const chat_params *given, const hn_opts *o, const hn_opt *opt)
{
    chat_params from = *given;
    void *to = field(p, opt->name);
    if (to && hn_opts_given(o, opt->name)) memcpy(to, field(&from, opt->name), param_size(opt));
}

void hn_chat_params_keep(chat_params *p, const chat_params *given, const hn_opts *o)
{
    keep(p, given, o, &limit_opt);
    for (const hn_opt *k = hn_group_sampling.opts; k->name; k++) keep(p, given, o, k);
}

/* Value as text; the shortest that gives the same float. */
static void param_text(char *dst, size_t cap, const hn_opt *o, const void *at)
{
    if (o->kind == HN_OPT_U64) {
        snprintf(dst, cap, "%llu", (unsigned long long)*(const uint64_t *)at);
    } else if (o->kind == HN_OPT_I32) {
        snprintf(dst, cap, "%d", *(const int32_t *)at);
    } else {
        float f = *(const float *)at;
        for (int digits = 1; digits <= 9; digits++) {
            snprintf(dst, cap, "%.*g", digits, (double)f);
            if (strtof(dst, NULL) == f) break;
        }
    }
}

typedef void param_fn(void *arg, const hn_opt *o, const char *value);

static void each_param(const chat_params *p, param_fn *fn, void *arg)
{
    chat_params copy = *p;
    char value[40];
    param_text(value, sizeof value, &limit_opt, &copy.limit);
    fn(arg, &limit_opt, value);
    for (const hn_opt *o = hn_group_sampling.opts; o->name; o++) {
        void *at = field(&copy, o->name);
        if (!at) continue;
        param_text(value, sizeof value, o, at);
        fn(arg, o, value);
    }
}

static void print_param(void *f, const hn_opt *o, const char *value) { fprintf(f, "  %-18s %s\n", o->name, value); }
void hn_chat_params_print(FILE *f, const chat_params *p) { each_param(p, print_param, f); }

static void add_param(void *obj, const hn_opt *o, const char *value)
{
    json_object_set_new(
        obj, o->name, o->kind == HN_OPT_F32 ? json_real(strtod(value, NULL)) : json_integer(strtoll(value, NULL, 10)));
}

json_t *hn_chat_params_json(const chat_params *p)
{
    json_t *o = json_object();
    if (o) each_param(p, add_param, o);
    return o;
}

hone_status hn_chat_params_from_json(chat_params *p, json_t *o, const char *where, hone_error *err)
{
    const char *name;
    json_t *v;
    chat_params q = *p;
    if (!json_is_object(o))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: params is not an object but %s; expected names with numbers", where,
                       hn_json_kind(o));
    json_object_foreach(o, name, v)
    {
        char text[64];
        hone_error why;
        if (json_is_integer(v)) snprintf(text, sizeof text, "%lld", (long long)json_integer_value(v));
        else if (json_is_real(v)) snprintf(text, sizeof text, "%.17g", json_real_value(v));
        else
            return HN_FAIL(err, HONE_E_FORMAT, "%s: params.%s is not a number but %s", where,
                           HN_ESC(name, strlen(name)), hn_json_kind(v));
        if (hn_chat_param_set(&q, name, text, &why) != HONE_OK)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: params: %s", where, why.message);
    }
    *p = q;
    return HONE_OK;
}

/* ---- files -------------------------------------------------------------------------------------------- */

/* Whether path may be replaced: it is not there, is empty, or is a saved conversation. */
static hone_status may_replace(const char *path, hone_error *err)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT)
        return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    if (!there || (S_ISREG(st.st_mode) && st.st_size == 0)) return HONE_OK;
    if (!S_ISREG(st.st_mode))
        return HN_FAIL(err, HONE_E_IO, "%s: not a regular file; expected the name of a file to write",
                       HN_ESC(path, strlen(path)));
    char *data;
    size_t n;
    hone_status rc = hn_read_all(path, &data, &n, err);
    if (rc != HONE_OK) return rc;
    json_t *o;
    rc = hn_json_tree(&o, data, n, &(hn_json_rules){ .flags = HN_JSON_ALLOW_NUL }, path, err);
    free(data);
    if (rc == HONE_E_NOMEM) return rc;
    const char *schema = json_string_value(json_object_get(o, "schema"));
    bool ours = schema && strcmp(schema, SCHEMA) == 0;
    json_decref(o);
    if (ours) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO,
                   "%s: exists and is not a saved conversation (schema " SCHEMA "); expected another name",
                   HN_ESC(path, strlen(path)));
}

/* A conversation is its writer's own: 0600 where the file is new. */
static hone_status write_file(const char *path, const char *data, size_t n, hone_error *err)
{
    hn_file *f;
    hone_status st = hn_file_begin(&f, path, &(hn_file_want){ .n_bytes = n, .mode = 0600 }, err);
    if (st != HONE_OK) return st;
    st = hn_file_put(f, data, n, err);
    if (st == HONE_OK) st = hn_file_end(f, err);
    hn_file_drop(f);
    return st;
}

hone_status hn_chat_save(const char *path, const chat_talk *t, const chat_params *p, const char *model, hone_error *err)
{
    hone_status st = may_replace(path, err);
    if (st != HONE_OK) return st;
    json_t *o = hn_json_new(SCHEMA), *a = json_array();
    bool ok = o && a;
    ok = ok && json_object_set_new(o, "model", hn_json_str(model, strlen(model))) == 0;
    ok = ok && json_object_set_new(o, "params", hn_chat_params_json(p)) == 0;
    for (size_t i = 0; ok && i < t->n; i++) {
        json_t *m = json_object();
        ok = json_object_set_new(m, "role", json_string(hn_chat_roles[t->msg[i].role])) == 0 &&
             json_object_set_new(m, "content", hn_json_str(t->msg[i].text, t->msg[i].len)) == 0 &&
             (!t->msg[i].reasoning ||
              json_object_set_new(m, "reasoning_content", hn_json_str(t->msg[i].reasoning, t->msg[i].n_reasoning)) ==
                  0) &&
             json_array_append(a, m) == 0;
        json_decref(m);
    }
    ok = ok && json_object_set(o, "messages", a) == 0;
    char *text = ok ? hn_json_text(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(a);
    json_decref(o);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "no memory for a conversation of %zu messages", t->n);
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of the NUL: its length is known */
    st = write_file(path, text, n + 1, err);
    free(text);
    return st;
}

static hone_status read_messages(chat_talk *t, json_t *a, const char *where, hone_error *err)
{
    size_t i;
    json_t *m;
    if (!json_is_array(a))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: no array messages: it is %s", where, hn_json_kind(a));
    json_array_foreach(a, i, m)
    {
        json_t *content = json_object_get(m, "content");
        const json_t *given = json_object_get(m, "role");
        const char *role = json_string_value(given);
        size_t len = json_string_length(given);
        int r = 0;
        while (role && r < CHAT_ROLES && (strlen(role) != len || strcmp(role, hn_chat_roles[r]) != 0)) r++;
        if (!role || r == CHAT_ROLES)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: messages[%zu].role is %s; expected system, user or assistant",
                           where, i, role ? HN_ESC(role, len) : "missing");
        if (r == CHAT_SYSTEM && i)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: messages[%zu].role is system; expected only the first to be", where,
                           i);
        if (!json_is_string(content))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: messages[%zu].content is not a string but %s", where, i,
                           hn_json_kind(content));
        const json_t *said = json_object_get(m, "reasoning_content");
        if (said && !json_is_null(said) && (r != CHAT_ASSISTANT || !json_is_string(said)))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: messages[%zu].reasoning_content: expected a string, of an assistant", where, i);
        if (!hn_talk_push(t, (chat_role)r, json_string_value(content), json_string_length(content)) ||
            !hn_talk_reason(t, json_string_value(said), json_string_length(said)))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory for %zu messages", where, json_array_size(a));
    }
    return HONE_OK;
}

hone_status hn_chat_load(const char *path, chat_talk *t, chat_params *p, char **model, hone_error *err)
{
    char *data;
    size_t n;
    json_t *o;
    chat_talk fresh = { 0 };
    chat_params params = *p;
    const char *where = HN_ESC(path, strlen(path));
    *model = NULL;
    hone_status st = hn_read_all(path, &data, &n, err);
    if (st != HONE_OK) return st;
    st = hn_json_tree(&o, data, n, &(hn_json_rules){ .flags = HN_JSON_ALLOW_NUL | HN_JSON_UNIQUE }, where, err);
    free(data);
    if (st != HONE_OK) return st;
    const char *schema = json_string_value(json_object_get(o, "schema")),
               *name = json_string_value(json_object_get(o, "model"));
    json_t *jp = json_object_get(o, "params");
    if (!schema || strcmp(schema, SCHEMA) != 0)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: schema is %s; expected " SCHEMA, where,
                     schema ? HN_ESC(schema, strlen(schema)) : "missing");
    if (st == HONE_OK) st = read_messages(&fresh, json_object_get(o, "messages"), where, err);
    json_t *jm = json_object_get(o, "model");
    if (st == HONE_OK && jm && !name && !json_is_null(jm))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: model is %s, expected a string", where, hn_json_kind(jm));
    if (st == HONE_OK && jp) st = hn_chat_params_from_json(&params, jp, where, err);
    if (st == HONE_OK && !(*model = strdup(name ? name : ""))) st = HN_FAIL(err, HONE_E_NOMEM, "%s: no memory", where);
    json_decref(o);
    if (st != HONE_OK) {
        hn_talk_free(&fresh);
        return st;
    }
    hn_talk_free(t);
    *t = fresh;
    *p = params;
    return HONE_OK;
}
