/* json_tree: jansson's values from the one reader. Owns memory and duplicates; refuses to know
 * syntax, which is base/json's, and what members mean. */
#include "base/json_tree.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys wait here for their values, unescaped, each with a NUL: a stack, as objects are within objects. */
typedef struct builder {
    hn_jread *j;
    char *text;
    size_t n, cap;
} builder;

static hone_status no_memory(builder *b) { return HN_FAIL(b->j->err, HONE_E_NOMEM, "%s: a value of JSON", b->j->name); }

/* t unescaped on top of the stack, at *at; 0 on failure. */
static hone_status push(builder *b, const hn_jread_text *t, size_t *at)
{
    size_t need = b->n + t->n + 1;
    *at = 0;
    if (need > b->cap) {
        size_t cap = b->cap * 2 > need ? b->cap * 2 : need + 256;
        char *p = realloc(b->text, cap);
        if (!p) return no_memory(b);
        b->text = p;
        b->cap = cap;
    }
    *at = b->n;
    hn_jread_unescape(b->text + b->n, t);
    b->n += t->n;
    b->text[b->n++] = 0;
    return HONE_OK;
}

static hone_status value(builder *b, json_t **out);

static hone_status string(builder *b, const hn_jread_text *t, json_t **out)
{
    size_t at;
    if (!t->escaped) {
        *out = json_stringn_nocheck(t->raw, t->n);
    } else {
        hone_status st = push(b, t, &at);
        if (st != HONE_OK) return st;
        *out = json_stringn_nocheck(b->text + at, t->n);
        b->n = at;
    }
    return *out ? HONE_OK : no_memory(b);
}

/* The value of a member at rules.as_text. Within it no member is. */
static hone_status value_or_text(builder *b, json_t **out)
{
    hn_jread *j = b->j, before;
    bool object = hn_jread_peek(j) == '{';
    before = *j;
    j->rules.as_text = NULL;
    j->err = object ? NULL : j->err;
    hone_status st = value(b, out);
    if (object && st != HONE_OK && st != HONE_E_NOMEM) {
        *j = before;
        j->rules.as_text = NULL;
        j->rules.flags |= HN_JSON_DIGITS;
        st = value(b, out);
        json_decref(*out);
        *out = st == HONE_OK ? json_stringn_nocheck(before.p, (size_t)(j->p - before.p)) : NULL;
        if (st == HONE_OK && !*out) st = no_memory(b);
    }
    j->err = before.err;
    j->rules = before.rules;
    return st == HONE_E_NOMEM ? no_memory(b) : st; /* the first try tells nobody */
}

static hone_status member(builder *b, json_t *o)
{
    hn_jread *j = b->j;
    hn_jread_text key;
    json_t *v = NULL;
    size_t at;
    hn_jread_peek(j);
    const char *start = j->p;
    hone_status st = hn_jread_key(j, &key);
    if (st != HONE_OK) return st;
    if (key.nul) {
        j->p = start;
        return hn_jread_fail(j, "a key without NUL");
    }
    if ((st = push(b, &key, &at)) != HONE_OK) return st;
    if (j->rules.flags & HN_JSON_UNIQUE && json_object_get(o, b->text + at)) {
        j->p = start;
        return hn_jread_fail(j, "a key that is not there yet");
    }
    bool may_be_text = j->rules.as_text && strcmp(b->text + at, j->rules.as_text) == 0;
    if ((st = may_be_text ? value_or_text(b, &v) : value(b, &v)) != HONE_OK) return st;
    st = json_object_set_new_nocheck(o, b->text + at, v) == 0 ? HONE_OK : no_memory(b);
    b->n = at;
    return st;
}

static hone_status element(builder *b, json_t *a)
{
    json_t *v;
    hone_status st = value(b, &v);
    if (st != HONE_OK) return st;
    return json_array_append_new(a, v) == 0 ? HONE_OK : no_memory(b);
}

static hone_status container(builder *b, char bracket, json_t **out)
{
    bool more;
    json_t *c = bracket == '{' ? json_object() : json_array();
    if (!c) return no_memory(b);
    hone_status st = hn_jread_open(b->j, bracket, &more);
    while (st == HONE_OK && more) {
        st = bracket == '{' ? member(b, c) : element(b, c);
        if (st == HONE_OK) st = hn_jread_next(b->j, bracket, &more);
    }
    if (st == HONE_OK) *out = c;
    else json_decref(c);
    return st;
}

/* A string that no text makes: FF is in no UTF-8. */
static json_t *digits(const char *s, size_t n)
{
    char *copy = malloc(n + 1);
    if (!copy) return NULL;
    copy[0] = (char)0xFF;
    memcpy(copy + 1, s, n);
    json_t *v = json_stringn_nocheck(copy, n + 1);
    free(copy);
    return v;
}

const char *hn_json_digits(const json_t *v)
{
    const char *s = json_string_value(v);
    return s && (unsigned char)*s == 0xFF ? s + 1 : NULL;
}

static hone_status number(builder *b, const char *start, const hn_jread_num *v, json_t **out)
{
    size_t n = (size_t)(b->j->p - start);
    if (b->j->rules.flags & HN_JSON_DIGITS && v->kind != HN_JSON_INT &&
        (isinf(v->d) || !(memchr(start, '.', n) || memchr(start, 'e', n) || memchr(start, 'E', n)))) {
        *out = digits(start, n);
        return *out ? HONE_OK : no_memory(b);
    }
    if (v->kind == HN_JSON_UINT && !(b->j->rules.flags & HN_JSON_BIG)) { /* jansson's whole numbers end at 2^63 - 1 */
        b->j->p = start;
        return hn_jread_fail(b->j, "a whole number below 2^63");
    }
    *out = v->kind == HN_JSON_INT ? json_integer((json_int_t)v->i) : json_real(v->d);
    return *out ? HONE_OK : no_memory(b);
}

/* Depth of recursion: rules.max_depth. */
static hone_status value(builder *b, json_t **out)
{
    hn_jread_item it;
    *out = NULL;
    hn_jread_peek(b->j);
    const char *start = b->j->p;
    hone_status st = hn_jread_scalar(b->j, &it);
    if (st != HONE_OK) return st;
    switch (it.kind) {
    case HN_JSON_NULL: *out = json_null(); break;
    case HN_JSON_BOOL: *out = json_boolean(it.truth); break;
    case HN_JSON_NUMBER: st = number(b, start, &it.num, out); break;
    case HN_JSON_STRING: st = string(b, &it.str, out); break;
    case HN_JSON_ARRAY: st = container(b, '[', out); break;
    case HN_JSON_OBJECT: st = container(b, '{', out); break;
    }
    return st;
}

hone_status hn_json_build(json_t **out, hn_jread *j)
{
    builder b = { .j = j };
    hone_status st = value(&b, out);
    if (st == HONE_OK) st = hn_jread_end(j);
    free(b.text);
    if (st == HONE_OK) return HONE_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}

hone_status hn_json_tree(json_t **out, const char *text, size_t len, const hn_json_rules *rules, const char *name,
                         hone_error *err)
{
    hn_jread j;
    *out = NULL;
    hone_status st = hn_jread_begin(&j, text, len, rules, name, NULL, err);
    return st == HONE_OK ? hn_json_build(out, &j) : st;
}

/* ---- files ------------------------------------------------------------------------------- */

/* All of f, at most `most` bytes. HONE_E_FORMAT: there are more. */
static hone_status read_file(char **text, size_t *n, FILE *f, size_t most, const char *name, hone_error *err)
{
    size_t cap = 0, got;
    *text = NULL;
    *n = 0;
    do {
        if (*n == cap) {
            size_t more = cap ? 2 * cap : 16384;
            char *p = realloc(*text, more);
            if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu bytes", name, more);
            *text = p;
            cap = more;
        }
        got = fread(*text + *n, 1, cap - *n, f);
        *n += got;
        if (*n > most) return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %zu bytes of JSON", name, most);
    } while (got > 0);
    if (ferror(f)) return HN_FAIL(err, HONE_E_IO, "%s: %s", name, strerror(errno));
    return HONE_OK;
}

hone_status hn_json_tree_file(json_t **out, const char *path, const hn_json_rules *rules, hone_error *err)
{
    size_t most = rules && rules->max_bytes ? rules->max_bytes : HN_JSON_FILE_BYTES, n;
    char *text, name[160];
    hn_escape(name, sizeof name, path, strlen(path));
    *out = NULL;
    errno = 0;
    FILE *f = fopen(path, "re");
    if (!f) {
        int e = errno;
        hone_status why =
            HN_FAIL(err, e == ENOMEM ? HONE_E_NOMEM : HONE_E_IO, "%s: cannot open: %s", name, strerror(e));
        errno = e;
        return why;
    }
    hone_status st = read_file(&text, &n, f, most, name, err);
    fclose(f);
    if (st == HONE_E_FORMAT && rules && rules->fault != HONE_OK && err) err->code = rules->fault;
    if (st == HONE_E_FORMAT && rules && rules->fault != HONE_OK) st = rules->fault;
    if (st == HONE_OK) st = hn_json_tree(out, text, n, rules, name, err);
    free(text);
    return st;
}

/* ---- fields ------------------------------------------------------------------------------ */

const char *hn_json_kind(const json_t *v)
{
    if (!v) return "nothing";
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

void hn_json_real(char text[HN_JSON_REAL_TEXT], double v)
{
    bool real = false;
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) { /* those near 0 have fewer */
        snprintf(text, HN_JSON_REAL_TEXT, "%.*g", digits, v);
        if (digits == 17 || strtod(text, NULL) == v) break;
    }
    for (char *p = text; *p; p++) {
        if (!strchr("-+0123456789eE", *p)) *p = '.';
        real |= strchr(".eE", *p) != NULL;
    }
    size_t n = strlen(text);
    if (!real) snprintf(text + n, HN_JSON_REAL_TEXT - n, ".0");
}

/* jansson writes 17 digits, 0.69999999999999996 of what was read as 0.7: each number behind `at` of its text gets those
 * that it needs. What comes out is never longer, but beyond 10^15, where digits are whole. */
static void shorten_reals(char *at)
{
    static const hn_json_rules rules = { .max_depth = 1, .fault = HONE_E_FORMAT };
    char *to = at;
    bool string = false;
    while (*at) {
        size_t n = string ? 0 : strspn(at, "-+.0123456789eE");
        char text[HN_JSON_REAL_TEXT] = "";
        hn_jread j;
        hn_jread_num x;
        if (n && (*at == '-' || (*at >= '0' && *at <= '9')) && memchr(at, '.', n) &&
            hn_jread_begin(&j, at, n, &rules, "", "", NULL) == HONE_OK && hn_jread_number(&j, &x) == HONE_OK &&
            fabs(x.d) < 1e15)
            hn_json_real(text, x.d);
        if (!n) n = 1;
        if (string && *at == '\\' && at[1]) n = 2;
        if (n == 1 && *at == '"') string = !string;
        size_t n_to = *text && strlen(text) < n ? strlen(text) : n;
        memmove(to, n_to < n ? text : at, n_to);
        to += n_to;
        at += n;
    }
    *to = 0;
}

char *hn_json_dump(const json_t *v, size_t flags)
{
    size_t n = json_dumpb(v, NULL, 0, flags);
    char *s = n ? malloc(n + 1) : NULL;
    if (s && json_dumpb(v, s, n, flags) != n) {
        free(s);
        return NULL;
    }
    if (s) s[n] = 0;
    if (s) shorten_reals(s);
    return s;
}

double hn_json_number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *hn_json_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}
