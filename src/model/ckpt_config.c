/* ckpt_config: config.json and its kin, objects of few members, as a list that is looked into by
 * name. Owns the list; refuses to know syntax, which is base/json's, and what the members mean. */
#include "model/ckpt.h"

#include <stdlib.h>

enum { MAX_MEMBERS = 1 << 14 };

static hone_status add_member(hn_config *c, const hn_member *m, hone_error *err)
{
    int64_t dup;
    if (c->n == MAX_MEMBERS) return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d members", c->path, MAX_MEMBERS);
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        hn_member *p = realloc(c->m, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu members", c->path, cap);
        c->m = p;
        c->cap = cap;
    }
    c->m[c->n] = *m;
    if (!hn_index_add(&c->ix, c->m, sizeof *c->m, (uint32_t)c->n, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu members", c->path, c->n);
    if (dup >= 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: \"%s\" is there twice", c->path, HN_ESC(m->key.ptr, m->key.len));
    c->n++;
    return HONE_OK;
}

enum { MAX_DEPTH = 40 };

hone_status hn_ckpt_json(hn_jread *j, char *text, size_t len, const char *path, const char *what, hone_error *err)
{
    const hn_json_rules rules = { .max_depth = MAX_DEPTH, .flags = HN_JSON_PYTHON | HN_JSON_BIG };
    hone_status st = hn_jread_begin(j, text, len, &rules, path, what, err);
    j->room = text;
    return st;
}

/* The value behind a key. */
static hone_status read_member(hn_member *m, hn_jread *j)
{
    hn_jread_item it;
    hn_jread_peek(j);
    const char *start = j->p;
    hone_status st = hn_jread_scalar(j, &it);
    if (st != HONE_OK) return st;
    switch (it.kind) {
    case HN_JSON_NULL: m->kind = HN_J_NULL; break;
    case HN_JSON_BOOL: m->kind = HN_J_BOOL, m->num = it.truth; break;
    case HN_JSON_NUMBER: m->kind = HN_J_NUMBER, m->num = it.num.d; break;
    case HN_JSON_STRING:
        m->kind = HN_J_STRING;
        j->p = start;
        return hn_jread_str(j, &m->str);
    case HN_JSON_ARRAY:
    case HN_JSON_OBJECT:
        m->kind = HN_J_OTHER;
        if ((st = hn_jread_skip(j)) != HONE_OK) return st;
        m->str = (hone_str){ start, (size_t)(j->p - start) };
        break;
    }
    return HONE_OK;
}

hone_status hn_config_load(hn_config *c, const char *path, hone_error *err)
{
    char *text;
    size_t len;
    hone_status st = hn_source_text(&text, &len, path, HN_CONFIG_BYTES, err);
    return st == HONE_OK ? hn_config_take(c, path, text, len, err) : st;
}

hone_status hn_config_take(hn_config *c, const char *path, char *text, size_t len, hone_error *err)
{
    hn_jread j;
    bool more;
    hone_status st;
    c->text = text;
    c->path = strdup(path);
    if (!c->path) return HN_FAIL(err, HONE_E_NOMEM, "%s", path);
    if ((st = hn_ckpt_json(&j, c->text, len, c->path, NULL, err)) != HONE_OK) return st;
    for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
        hn_member m = { .kind = HN_J_OTHER };
        if ((st = hn_jread_key_str(&j, &m.key)) != HONE_OK || (st = read_member(&m, &j)) != HONE_OK) return st;
        if ((st = add_member(c, &m, err)) != HONE_OK) return st;
    }
    return st != HONE_OK ? st : hn_jread_end(&j);
}

void hn_config_free(hn_config *c)
{
    free(c->path);
    free(c->text);
    free(c->m);
    hn_index_free(&c->ix);
    *c = (hn_config){ 0 };
}

const hn_member *hn_config_get(const hn_config *c, const char *key)
{
    int64_t i = hn_index_find(&c->ix, c->m, sizeof *c->m, key, strlen(key));
    return i < 0 || c->m[i].kind == HN_J_NULL ? NULL : &c->m[i];
}
