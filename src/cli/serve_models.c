/* {"models": [{"name", "path", "aliases", "ttl", "options": {"ctx-size", "pooling", "chat-template"}}, …]}. Paths
 * that do not begin with / are of the file's folder. What is not known is refused. */
#include "cli/serve_models.h"

#include "base/json_tree.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_TTL = 365 * 24 * 3600, MOST_ALIASES = 64 };

typedef struct reading {
    const char *path; /* of the file */
    size_t at;        /* the model's place in it */
    hn_arena *arena;
    hone_error *err;
} reading;

static hone_status wrong(const reading *r, const char *member, const json_t *v, const char *expected)
{
    return HN_FAIL(r->err, HONE_E_ARG, "%s: models[%zu].%s is %s; expected %s", r->path, r->at, member, hn_json_kind(v),
                   expected);
}

static hone_status no_memory(const reading *r) { return HN_FAIL(r->err, HONE_E_NOMEM, "%s: no memory", r->path); }

static hone_status read_text(const reading *r, const char *member, const json_t *v, const char **out)
{
    if (!json_is_string(v) || !json_string_length(v)) return wrong(r, member, v, "a string that is not empty");
    *out = hn_arena_strndup(r->arena, json_string_value(v), json_string_length(v));
    return *out ? HONE_OK : no_memory(r);
}

static hone_status read_number(const reading *r, const char *member, const json_t *v, int32_t most, int32_t *out)
{
    char expected[60];
    snprintf(expected, sizeof expected, "a whole number from 1 to %d", most);
    if (!json_is_integer(v)) return wrong(r, member, v, expected);
    if (json_integer_value(v) < 1 || json_integer_value(v) > most)
        return HN_FAIL(r->err, HONE_E_ARG, "%s: models[%zu].%s is %lld; expected %s", r->path, r->at, member,
                       (long long)json_integer_value(v), expected);
    *out = (int32_t)json_integer_value(v);
    return HONE_OK;
}

/* Of the file's folder, unless it says where it is. */
static hone_status read_path(const reading *r, const char *member, const json_t *v, const char **out)
{
    const char *text, *slash = strrchr(r->path, '/');
    hone_status st = read_text(r, member, v, &text);
    if (st != HONE_OK || *text == '/' || !slash) {
        *out = text;
        return st;
    }
    size_t folder = (size_t)(slash - r->path) + 1, n = strlen(text);
    char *joined = hn_arena_alloc(r->arena, folder + n + 1);
    if (!joined) return no_memory(r);
    memcpy(joined, r->path, folder);
    memcpy(joined + folder, text, n);
    *out = joined;
    return HONE_OK;
}

/* A path; what is no file there, but the name of a model that is here, becomes its file. */
static hone_status read_model_path(const reading *r, const json_t *v, const char **out)
{
    char path[HN_CLI_PATH];
    hone_error why;
    hone_status st = read_path(r, "path", v, out);
    if (st != HONE_OK || access(*out, F_OK) == 0) return st;
    st = hn_cli_model_path(path, json_string_value(v), &why);
    if (st != HONE_OK) return HN_FAIL(r->err, st, "%s: models[%zu].path: %s", r->path, r->at, why.message);
    if (!*path) return HONE_OK; /* that nothing is there is said when it is opened */
    *out = hn_arena_strndup(r->arena, path, strlen(path));
    return *out ? HONE_OK : no_memory(r);
}

static hone_status read_aliases(const reading *r, const json_t *v, struct hn_shelf_model *m)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n > MOST_ALIASES) return wrong(r, "aliases", v, "an array of at most 64 strings");
    const char **list = hn_arena_alloc(r->arena, (n + 1) * sizeof *list);
    if (!list) return no_memory(r);
    hone_status st = HONE_OK;
    for (size_t i = 0; st == HONE_OK && i < n; i++) st = read_text(r, "aliases", json_array_get(v, i), &list[i]);
    m->aliases = list;
    m->n_aliases = n;
    return st;
}

static hone_status read_ttl(const reading *r, const json_t *v, struct hn_shelf_model *m)
{
    if (json_is_integer(v) && json_integer_value(v) <= 0) { /* 0, and -1 as others write it: it stays */
        m->ttl_s = -1;
        return HONE_OK;
    }
    return read_number(r, "ttl", v, MOST_TTL, &m->ttl_s);
}

static hone_status read_pooling(const reading *r, const json_t *v, struct hn_shelf_model *m)
{
    static const struct {
        const char *name;
        hone_pooling pooling;
    } rows[] = {
        { "none", HONE_POOL_NONE }, { "mean", HONE_POOL_MEAN }, { "cls", HONE_POOL_CLS }, { "last", HONE_POOL_LAST }
    };
    for (size_t i = 0; json_is_string(v) && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(json_string_value(v), rows[i].name) == 0) {
            m->pooling = rows[i].pooling;
            return HONE_OK;
        }
    return wrong(r, "options.pooling", v, "\"none\", \"mean\", \"cls\" or \"last\"");
}

/* The name of one, its text, or "@FILE". */
static hone_status read_template(const reading *r, const json_t *v, const char **out)
{
    const char *name = json_string_value(v), *path;
    char *text = NULL;
    size_t n;
    if (!name || *name != '@') return read_text(r, "options.chat-template", v, out);
    json_t *rest = json_string(name + 1);
    hone_status st = rest ? read_path(r, "options.chat-template", rest, &path) : no_memory(r);
    json_decref(rest);
    if (st == HONE_OK) st = hn_read_all(path, &text, &n, r->err);
    if (st == HONE_OK && memchr(text, 0, n))
        st = HN_FAIL(r->err, HONE_E_FORMAT, "%s: models[%zu].options.chat-template: %s has a NUL; expected a template",
                     r->path, r->at, path);
    if (st == HONE_OK && !(*out = hn_arena_strndup(r->arena, text, n))) st = no_memory(r);
    free(text);
    return st;
}

static hone_status read_options(const reading *r, const json_t *o, struct hn_shelf_model *m)
{
    const char *name;
    json_t *v;
    hone_status st = HONE_OK;
    if (!json_is_object(o)) return wrong(r, "options", o, "an object");
    json_object_foreach((json_t *)o, name, v)
    {
        if (strcmp(name, "ctx-size") == 0) st = read_number(r, "options.ctx-size", v, INT32_MAX, &m->n_ctx);
        else if (strcmp(name, "pooling") == 0) st = read_pooling(r, v, m);
        else if (strcmp(name, "chat-template") == 0) st = read_template(r, v, &m->chat_template);
        else
            st = HN_FAIL(r->err, HONE_E_ARG, "%s: models[%zu].options.%s; expected ctx-size, pooling or chat-template",
                         r->path, r->at, HN_ESC(name, strlen(name)));
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

static hone_status read_model(const reading *r, const json_t *o, struct hn_shelf_model *m)
{
    const char *name;
    json_t *v;
    hone_status st = HONE_OK;
    if (!json_is_object(o))
        return HN_FAIL(r->err, HONE_E_ARG, "%s: models[%zu] is %s; expected an object", r->path, r->at,
                       hn_json_kind(o));
    json_object_foreach((json_t *)o, name, v)
    {
        if (strcmp(name, "name") == 0) st = read_text(r, name, v, &m->name);
        else if (strcmp(name, "path") == 0) st = read_model_path(r, v, &m->path);
        else if (strcmp(name, "aliases") == 0) st = read_aliases(r, v, m);
        else if (strcmp(name, "ttl") == 0) st = read_ttl(r, v, m);
        else if (strcmp(name, "options") == 0) st = read_options(r, v, m);
        else
            st = HN_FAIL(r->err, HONE_E_ARG, "%s: models[%zu].%s; expected name, path, aliases, ttl or options",
                         r->path, r->at, HN_ESC(name, strlen(name)));
        if (st != HONE_OK) return st;
    }
    if (!m->name) return wrong(r, "name", NULL, "a string that is not empty");
    return m->path ? HONE_OK : wrong(r, "path", NULL, "a GGUF file");
}

hone_status hn_serve_models_read(struct hn_shelf_model *list, size_t cap, size_t *n, const char *path, hn_arena *a,
                                 hone_error *err)
{
    const hn_json_rules rules = { .max_depth = 16, .flags = HN_JSON_UNIQUE, .fault = HONE_E_ARG };
    reading r = { .path = path, .arena = a, .err = err };
    json_t *o = NULL;
    hone_status st = hn_json_tree_file(&o, path, &rules, err);
    if (st != HONE_OK) return st;
    const json_t *models = json_object_get(o, "models");
    size_t most = cap - *n;
    if (!json_is_array(models) || json_object_size(o) != 1)
        st = HN_FAIL(err, HONE_E_ARG, "%s: expected an object with \"models\", an array, and nothing else", path);
    else if (!json_array_size(models) || json_array_size(models) > most)
        st = HN_FAIL(err, HONE_E_ARG, "%s: %zu models; expected 1 to %zu", path, json_array_size(models), most);
    for (; st == HONE_OK && r.at < json_array_size(models); r.at++) {
        list[*n] = (struct hn_shelf_model){ 0 };
        st = read_model(&r, json_array_get(models, r.at), &list[*n]);
        *n += st == HONE_OK;
    }
    json_decref(o);
    return st;
}
