/* The reading of bodies: JSON to a tree, tables of fields over its objects, and checked values. Owns what is said of a
 * field that is wrong: where it stands, what was seen and what was expected. Refuses to know single APIs. */
#include "serve/ask_fields.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- refusals ---------------------------------------------------------------------------- */

bool hn_field_lost(hn_fields *f) { return hn_refuse(f->refusal, 500, NULL, NULL, "out of memory"); }

bool hn_field_missing(hn_fields *f, const char *path, const char *expected)
{
    return hn_refuse(f->refusal, 400, "missing_field", path, "%s is missing; expected %s", path, expected);
}

/* A value for a message: what kind it is, and what it is where that is short. */
static const char *shown(char to[200], const json_t *v)
{
    char text[80];
    if (json_is_string(v)) {
        hn_escape(text, sizeof text, json_string_value(v), json_string_length(v));
        snprintf(to, 200, "\"%s\"", text);
    } else if (json_is_integer(v)) {
        snprintf(to, 200, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        snprintf(to, 200, "%.9g", json_real_value(v));
    } else {
        snprintf(to, 200, "%s", hn_json_kind(v));
    }
    return to;
}

bool hn_field_wrong(hn_fields *f, const char *path, const json_t *v, const char *expected)
{
    char seen[200];
    return hn_refuse(f->refusal, 400, "invalid_type", path, "%s is %s; expected %s", path, shown(seen, v), expected);
}

bool hn_field_range(hn_fields *f, const char *path, const json_t *v, const char *expected)
{
    char seen[200];
    return hn_refuse(f->refusal, 400, "out_of_range", path, "%s is %s; expected %s", path, shown(seen, v), expected);
}

bool hn_field_refused(hn_fields *f, const char *path, const char *why)
{
    return hn_refuse(f->refusal, 400, "unsupported_parameter", path, "%s is not supported%s%s", path, why ? "; " : "",
                     why ? why : "");
}

void hn_field_ignored(hn_fields *f, const char *path)
{
    char name[HN_ASK_PATH];
    enum { HEADER = 1024 }; /* a header is no place for more */
    if (f->ignored.n > HEADER) return;
    if (f->ignored.n) hn_bytes_text(&f->ignored, ", ");
    if (snprintf(name, sizeof name, "%s", path) < 0) return; /* paths have no control characters */
    for (char *p = name; *p; p++)
        if ((unsigned char)*p >= 0x80 || *p == ',') *p = '?'; /* it becomes a header, a list */
    hn_bytes_text(&f->ignored, name);
}

/* ---- paths and members ------------------------------------------------------------------- */

const char *hn_field_path(char to[HN_ASK_PATH], const char *path, const char *name)
{
    char shown_name[64];
    hn_escape(shown_name, sizeof shown_name, name, strlen(name));
    if (snprintf(to, HN_ASK_PATH, "%s%s%s", path, *path ? "." : "", shown_name) < 0) *to = 0;
    return to;
}

const char *hn_field_element(char to[HN_ASK_PATH], const char *path, size_t i)
{
    if (snprintf(to, HN_ASK_PATH, "%s[%zu]", path, i) < 0) *to = 0;
    return to;
}

const json_t *hn_field_get(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_null(v) ? NULL : v;
}

/* ---- checked values ---------------------------------------------------------------------- */

bool hn_field_content(hn_fields *f, const json_t *v, const char *path, hone_str *out)
{
    *out = (hone_str){ "", 0 };
    if (!json_is_string(v)) return hn_field_wrong(f, path, v, "a string");
    out->len = json_string_length(v);
    out->ptr = hn_arena_strndup(f->ask->arena, json_string_value(v), out->len);
    return out->ptr || hn_field_lost(f);
}

bool hn_field_text(hn_fields *f, const json_t *v, const char *path, const char **out)
{
    hone_str s;
    *out = NULL;
    if (!hn_field_content(f, v, path, &s)) return false;
    if (memchr(s.ptr, 0, s.len)) return hn_field_wrong(f, path, v, "a string without NUL");
    *out = s.ptr;
    return true;
}

bool hn_field_bool(hn_fields *f, const json_t *v, const char *path, bool *out)
{
    *out = json_is_true(v);
    return json_is_boolean(v) || hn_field_wrong(f, path, v, "true or false");
}

/* The whole number that v is, also as 3.0; at the ends of int64_t where it is beyond. */
static bool whole(const json_t *v, int64_t *out)
{
    double d = json_number_value(v);
    *out = json_integer_value(v);
    if (json_is_integer(v)) return true;
    if (!json_is_real(v) || d != floor(d)) return false;
    *out = d >= 0x1p63 ? INT64_MAX : d < -0x1p63 ? INT64_MIN : (int64_t)d;
    return true;
}

bool hn_field_int(hn_fields *f, const json_t *v, const char *path, int64_t lo, int64_t hi, int64_t *out)
{
    char expected[96];
    if (!whole(v, out)) return hn_field_wrong(f, path, v, "a whole number");
    if (*out >= lo && *out <= hi) return true;
    if (hi == INT64_MAX) snprintf(expected, sizeof expected, "%lld or more", (long long)lo);
    else snprintf(expected, sizeof expected, "%lld to %lld", (long long)lo, (long long)hi);
    return hn_field_range(f, path, v, expected);
}

bool hn_field_object(hn_fields *f, const json_t *v, const char *path)
{
    return json_is_object(v) || hn_field_wrong(f, path, v, "an object");
}

bool hn_field_ids(hn_fields *f, const json_t *v, const char *path, const int32_t **ids, size_t *n)
{
    char at[HN_ASK_PATH];
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of token ids");
    *n = json_array_size(v);
    int32_t *list = hn_arena_alloc(f->ask->arena, *n * sizeof *list);
    if (!list) return hn_field_lost(f);
    for (size_t i = 0; i < *n; i++) {
        int64_t id;
        const json_t *e = json_array_get(v, i);
        if (!hn_field_int(f, e, hn_field_element(at, path, i), 0, f->limits->n_vocab - 1, &id)) return false;
        list[i] = (int32_t)id;
    }
    *ids = list;
    return true;
}

bool hn_field_type(hn_fields *f, const json_t *o, const char *path, const char **type)
{
    char at[HN_ASK_PATH];
    if (!hn_field_object(f, o, path)) return false;
    const json_t *v = hn_field_get(o, "type");
    hn_field_path(at, path, "type");
    return v ? hn_field_text(f, v, at, type) : hn_field_missing(f, at, "a string");
}

bool hn_field_one_of(hn_fields *f, const json_t *v, const char *path, const char *const *names, const char **out)
{
    char expected[256] = "one of ";
    if (!json_is_string(v)) return hn_field_wrong(f, path, v, "a string");
    for (size_t i = 0; names[i]; i++) {
        *out = names[i];
        if (strcmp(json_string_value(v), names[i]) == 0) return true;
        size_t n = strlen(expected);
        snprintf(expected + n, sizeof expected - n, "%s%s", i ? ", " : "", names[i]);
    }
    return hn_field_range(f, path, v, expected);
}

static const hn_json_rules raw_rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG };

/* ---- numbers as they are written ----------------------------------------------------------- */

struct hn_written { /* a number of the tree that is a double there, and its text in the body */
    const json_t *v;
    const char *text;
    size_t n;
};

static size_t count_reals(const json_t *v)
{
    const char *key;
    json_t *m;
    size_t i, n = json_is_real(v);
    json_object_foreach((json_t *)v, key, m) n += count_reals(m);
    json_array_foreach(v, i, m) n += count_reals(m);
    return n;
}

static hn_written *written_at(const hn_fields *f, const json_t *v)
{
    size_t at = (size_t)hn_mix64((uintptr_t)v) & (f->n_written - 1);
    while (f->written[at].v && f->written[at].v != v) at = (at + 1) & (f->n_written - 1);
    return &f->written[at];
}

/* v is what stands at j, whose members the tree has in the same order. */
static bool note_written(hn_fields *f, hn_jread *j, const json_t *v)
{
    char c = hn_jread_peek(j);
    bool more = false, object = c == '{';
    if (object || c == '[') {
        void *it = object ? json_object_iter((json_t *)v) : NULL;
        if (!(object ? json_is_object(v) : json_is_array(v)) || hn_jread_open(j, c, &more) != HONE_OK) return false;
        for (size_t i = 0; more; i++) {
            hn_jread_text key;
            if (object && hn_jread_key(j, &key) != HONE_OK) return false;
            const json_t *m = object ? json_object_iter_value(it) : json_array_get(v, i);
            if (!m || !note_written(f, j, m) || hn_jread_next(j, c, &more) != HONE_OK) return false;
            if (object) it = json_object_iter_next((json_t *)v, it);
        }
        return true;
    }
    hn_jread_item it;
    const char *text = j->p;
    if (hn_jread_scalar(j, &it) != HONE_OK) return false;
    if (!json_is_real(v)) return true;
    if (it.kind != HN_JSON_NUMBER || it.num.d != json_real_value(v)) return false;
    *written_at(f, v) = (hn_written){ v, text, (size_t)(j->p - text) };
    return true;
}

/* The digits that the body has of v; NULL: those of the double. One walk over the body, for the first that asks. */
static const hn_written *written(hn_fields *f, const json_t *v, bool *lost)
{
    hn_jread j;
    if (!f->written) {
        size_t n = 2;
        while (n < 2 * count_reals(f->root) + 2) n *= 2;
        f->written = hn_arena_alloc(f->ask->arena, n * sizeof *f->written);
        if (!f->written) {
            *lost = true;
            return NULL;
        }
        f->n_written = n;
        if (hn_jread_begin(&j, f->body, f->len, &raw_rules, "body", NULL, NULL) == HONE_OK)
            note_written(f, &j, f->root);
    }
    const hn_written *w = written_at(f, v);
    return w->v ? w : NULL;
}

void hn_field_value(hn_fields *f, hn_bytes *b, const json_t *v)
{
    const hn_written *w;
    const char *key;
    json_t *m;
    size_t i;
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        hn_bytes_text(b, "{");
        json_object_foreach((json_t *)v, key, m)
        {
            hn_bytes_comma(b);
            hn_bytes_json_text(b, key);
            hn_bytes_text(b, ":");
            hn_field_value(f, b, m);
        }
        hn_bytes_text(b, "}");
        break;
    case JSON_ARRAY:
        hn_bytes_text(b, "[");
        json_array_foreach(v, i, m)
        {
            if (i) hn_bytes_text(b, ",");
            hn_field_value(f, b, m);
        }
        hn_bytes_text(b, "]");
        break;
    case JSON_STRING: hn_bytes_json(b, json_string_value(v), json_string_length(v)); break;
    case JSON_INTEGER: hn_bytes_int(b, json_integer_value(v)); break;
    case JSON_REAL:
        if ((w = written(f, v, &b->lost))) hn_bytes_add(b, w->text, w->n);
        else hn_bytes_f64(b, json_real_value(v));
        break;
    case JSON_TRUE: hn_bytes_text(b, "true"); break;
    case JSON_FALSE: hn_bytes_text(b, "false"); break;
    case JSON_NULL: hn_bytes_text(b, "null"); break;
    }
}

bool hn_field_json(hn_fields *f, const json_t *v, const char **out)
{
    hn_bytes b = { 0 };
    hn_field_value(f, &b, v);
    *out = hn_bytes_keep(&b, f->ask->arena);
    hn_bytes_free(&b);
    return *out || hn_field_lost(f);
}

bool hn_json_raw(const char *text, size_t len, const char *path, char sep, const char **value, size_t *n)
{
    hn_jread j;
    hone_status st = hn_jread_begin(&j, text, len, &raw_rules, "body", NULL, NULL);
    while (st == HONE_OK && *path) {
        const char *end = strchr(path, sep);
        size_t k = end ? (size_t)(end - path) : strlen(path);
        bool more, here = false;
        if (hn_jread_peek(&j) != '{') return false;
        st = hn_jread_open(&j, '{', &more);
        while (st == HONE_OK && more) {
            hn_jread_text key;
            char name[HN_ASK_PATH];
            if ((st = hn_jread_key(&j, &key)) != HONE_OK) break;
            here = key.n == k && k <= sizeof name;
            if (here) hn_jread_unescape(name, &key);
            here = here && memcmp(name, path, k) == 0;
            if (here) break;
            if ((st = hn_jread_skip(&j)) == HONE_OK) st = hn_jread_next(&j, '{', &more);
        }
        if (!here) return false;
        path += end ? k + 1 : k;
    }
    hn_jread_peek(&j);
    *value = j.p;
    if (st != HONE_OK || hn_jread_skip(&j) != HONE_OK) return false;
    *n = (size_t)(j.p - *value);
    return true;
}

/* ---- tables ------------------------------------------------------------------------------ */

/* Does v ask for nothing, as hone can do? */
static bool is_neutral(const hn_field *row, const json_t *v)
{
    if (json_is_number(v)) return json_number_value(v) == row->lo || json_number_value(v) == row->hi;
    if (json_is_string(v)) return json_string_length(v) == 0;
    if (json_is_array(v)) return json_array_size(v) == 0;
    if (json_is_object(v)) return json_object_size(v) == 0;
    return json_is_false(v);
}

static bool read_number(hn_fields *f, const hn_field *row, const json_t *v, const char *path)
{
    char *to = (char *)f->ask + row->at, expected[64];
    int64_t i;
    double d = json_number_value(v);
    if (!json_is_number(v))
        return hn_field_wrong(f, path, v, row->kind == HN_FIELD_INT ? "a whole number" : "a number");
    if (row->kind == HN_FIELD_INT) {
        if (!hn_field_int(f, v, path, (int64_t)row->lo, (int64_t)row->hi, &i)) return false;
        memcpy(to, &(int32_t){ (int32_t)i }, sizeof(int32_t));
        return true;
    }
    snprintf(expected, sizeof expected, "%g to %g", row->lo, row->hi);
    if (!(d >= row->lo && d <= row->hi)) return hn_field_range(f, path, v, row->why ? row->why : expected);
    memcpy(to, &(float){ (float)d }, sizeof(float));
    return true;
}

static bool read_field(hn_fields *f, const hn_field *row, const json_t *v, const char *path)
{
    void *to = (char *)f->ask + row->at;
    switch (row->kind) {
    case HN_FIELD_BOOL: return hn_field_bool(f, v, path, to);
    case HN_FIELD_INT:
    case HN_FIELD_REAL: return read_number(f, row, v, path);
    case HN_FIELD_TEXT: return hn_field_text(f, v, path, to);
    case HN_FIELD_CALL: return row->fn(f, v, path);
    case HN_FIELD_NEUTRAL: return is_neutral(row, v) || hn_field_refused(f, path, row->why);
    case HN_FIELD_REFUSED: return hn_field_refused(f, path, row->why);
    case HN_FIELD_LATER:
    case HN_FIELD_PASSED: break;
    }
    return true;
}

static const hn_field *find(const hn_field *const *tables, const char *name)
{
    for (; *tables; tables++)
        for (const hn_field *row = *tables; row->name; row++)
            if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

bool hn_fields_read(hn_fields *f, const json_t *o, const char *path, const hn_field *const *tables)
{
    const char *name;
    json_t *v;
    if (!hn_field_object(f, o, path)) return false;
    json_object_foreach((json_t *)o, name, v)
    {
        char at[HN_ASK_PATH];
        const hn_field *row = find(tables, name);
        if (json_is_null(v)) continue;
        hn_field_path(at, path, name);
        if (row) {
            if (!read_field(f, row, v, at)) return false;
        } else if (f->limits->strict_fields) {
            return hn_field_refused(f, at, "hone does not know it (--strict-fields)");
        } else {
            hn_field_ignored(f, at);
        }
    }
    return true;
}

/* ---- a whole body ------------------------------------------------------------------------ */

static void usual(hn_ask *a, const hn_limits *l)
{
    a->sampling = l->defaults;
    if (l->openai_defaults) {
        a->sampling.temp = 1;
        a->sampling.top_p = 1;
        a->sampling.top_k = 0;
        a->sampling.min_p = 0;
    }
    a->generation_prompt = a->parse_special = a->parallel_calls = a->cache = true;
    a->n = 1;
    a->norm = 2;
    a->max_tokens = a->top_logprobs = a->slot = -1;
    a->reasoning_budget = a->keep_alive_ms = -1;
    a->ignored = "";
}

/* At least as many values as a tree of this text would have, whether it is JSON or not. */
static size_t count_values(const char *s, size_t len)
{
    size_t n = 1;
    bool inside = false; /* a string */
    for (size_t i = 0; i < len; i++) {
        if (inside) {
            if (s[i] == '\\') i++;
            else if (s[i] == '"') inside = false;
        } else if (s[i] == '"') {
            inside = true;
        } else {
            n += s[i] == ',' || s[i] == '[' || s[i] == '{';
        }
    }
    return n;
}

bool hn_fields_begin(hn_fields *f, hn_ask *ask, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    /* BIG: seeds up to 2^64; NUL is a character of prompts */
    static const hn_json_rules rules = { .max_depth = HN_ASK_DEPTH,
                                         .flags = HN_JSON_UNIQUE | HN_JSON_ALLOW_NUL | HN_JSON_BIG,
                                         .fault = HONE_E_ARG };
    hone_error err;
    *f = (hn_fields){ .ask = ask,
                      .limits = l,
                      .refusal = r,
                      .body = body,
                      .len = len,
                      .generation = -1,
                      .continued = -1,
                      .logprobs = -1,
                      .top = -1 };
    usual(ask, l);
    if (count_values(body, len) > HN_ASK_VALUES)
        return hn_refuse(r, 400, "out_of_range", NULL, "the body has more than %d values of JSON; expected fewer",
                         HN_ASK_VALUES);
    hone_status st = hn_json_tree(&f->root, body, len, &rules, "body", &err);
    if (st == HONE_E_NOMEM) return hn_field_lost(f);
    if (st != HONE_OK) return hn_refuse(r, 400, "invalid_json", NULL, "%s", err.message);
    return json_is_object(f->root) ||
           hn_refuse(r, 400, "invalid_type", NULL, "the body is %s; expected an object", hn_json_kind(f->root));
}

bool hn_fields_end(hn_fields *f, bool ok)
{
    if (ok && (f->ignored.n || f->ignored.lost))
        ok = (f->ask->ignored = hn_bytes_keep(&f->ignored, f->ask->arena)) || hn_field_lost(f);
    hn_bytes_free(&f->ignored);
    json_decref(f->root);
    f->root = NULL;
    return ok;
}
