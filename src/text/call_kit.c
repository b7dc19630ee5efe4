/* call_kit: what one request offers: its tools, and the marks of the format as tokens of the vocabulary. */
#include "base/json_tree.h"
#include "text/calls.h"
#include "text/text_priv.h"

#include <stdlib.h>

/* ---- tokens in text -------------------------------------------------------------------------------------- */

void hn_call_put_token(char out[HN_CALL_TOKEN], int32_t id)
{
    out[0] = (char)HN_CALL_ESCAPE;
    for (int i = 1; i < HN_CALL_TOKEN; i++) out[i] = (char)(0x80 | (id >> 7 * (4 - i) & 0x7F));
}

int32_t hn_call_get_token(const char *s)
{
    int32_t id = 0;
    for (int i = 0; i < 4; i++) id = id << 7 | (s[i] & 0x7F);
    return id;
}

/* ---- marks ----------------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* The special token that begins text, the longest; -1: none. What users added counts where it looks like a tag. */
static int32_t token_at(const hn_vocab *v, const char *text, size_t n, size_t *len)
{
    int32_t best = -1;
    *len = 0;
    for (uint32_t i = v ? v->special.first[(unsigned char)*text] : 0,
                  end = v ? v->special.first[(unsigned char)*text + 1] : 0;
         i < end; i++) {
        int32_t id = v->special.ids[i];
        size_t k;
        const char *s = hn_vocab_text(v, id, &k);
        bool tag = v->type[id] == HN_TOK_CONTROL || *s == '<' || *s == '[';
        if (tag && k > *len && k <= n && memcmp(text, s, k) == 0) {
            best = id;
            *len = k;
        }
    }
    return best;
}

void hn_call_encode(hn_call_mark *m, const hn_vocab *v, const char *text, bool ends)
{
    m->n = 0;
    for (size_t i = 0, n = strlen(text), k; i < n;) {
        int32_t id = token_at(v, text + i, n - i, &k);
        if (id >= 0 && ends && hn_vocab_is_eog(v, id)) break;
        if (id >= 0 && m->n + HN_CALL_TOKEN <= sizeof m->p) {
            hn_call_put_token(m->p + m->n, id);
            m->n += HN_CALL_TOKEN;
            i += k;
        } else if (m->n < sizeof m->p) {
            m->p[m->n++] = text[i++];
        } else {
            break;
        }
    }
}

static void trim(hn_call_mark *m, bool front, bool back)
{
    size_t k = 0;
    while (back && m->n && is_blank(m->p[m->n - 1])) m->n--;
    while (front && k < m->n && is_blank(m->p[k])) k++;
    memmove(m->p, m->p + k, m->n -= k);
}

/* What makes a reader look for calls: a token, or text up to the end of a tag. */
static void make_trigger(hn_call_kit *k)
{
    hn_call_mark *m = &k->trigger;
    *m = k->section_begin.n ? k->section_begin : k->begin;
    trim(m, true, false);
    k->trigger_id = -1;
    if (m->n && (unsigned char)*m->p == HN_CALL_ESCAPE) {
        k->trigger_id = hn_call_get_token(m->p + 1);
        m->n = HN_CALL_TOKEN;
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (is_blank(m->p[i]) || (unsigned char)m->p[i] == HN_CALL_ESCAPE) m->n = i;
        else if (*m->p == '<' && m->p[i] == '>') m->n = i + 1;
    }
}

static void make_marks(hn_call_kit *k)
{
    const hn_call_format *f = &k->f;
    const hn_vocab *v = k->v;
    hn_call_encode(&k->section_begin, v, f->section_begin, false);
    hn_call_encode(&k->begin, v, f->begin, false);
    hn_call_encode(&k->end, v, f->end, true);
    hn_call_encode(&k->separator, v, f->separator, false);
    hn_call_encode(&k->section_end, v, f->section_end, true);
    hn_call_encode(&k->name_end, v, f->name_end, false);
    hn_call_encode(&k->id_end, v, f->id_end, false);
    hn_call_encode(&k->key_begin, v, f->key_begin, false);
    hn_call_encode(&k->key_end, v, f->key_end, false);
    hn_call_encode(&k->key_end_other, v, f->key_end_other, false);
    hn_call_encode(&k->value_end, v, f->value_end, false);
    hn_call_encode(&k->quote, v, "<|\"|>", false);
    char cdata_end[HN_CALL_MARK + sizeof HN_CALL_CDATA_END];
    snprintf(cdata_end, sizeof cdata_end, HN_CALL_CDATA_END "%s", f->value_end);
    hn_call_encode(&k->cdata_end, v, cdata_end, false);
    hn_call_mark *const front[] = { &k->section_begin, &k->begin,     &k->end,      &k->separator,
                                    &k->section_end,   &k->key_begin, &k->value_end };
    for (size_t i = 0; i < sizeof front / sizeof *front; i++) trim(front[i], true, front[i] == &k->separator);
    trim(&k->key_end, false, true);
    trim(&k->key_end_other, false, true);
    make_trigger(k);
}

bool hn_call_kit_marks(const hn_call_kit *k, int32_t id)
{
    const hn_call_mark *const all[] = { &k->section_begin, &k->begin,     &k->end,     &k->separator,
                                        &k->section_end,   &k->name_end,  &k->id_end,  &k->key_begin,
                                        &k->key_end,       &k->value_end, &k->trigger, &k->key_end_other };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < all[i]->n; j++)
            if ((unsigned char)all[i]->p[j] == HN_CALL_ESCAPE) {
                if (hn_call_get_token(all[i]->p + j + 1) == id) return true;
                j += HN_CALL_TOKEN - 1;
            }
    return k->f.shape == HN_CALLS_GEMMA && (unsigned char)*k->quote.p == HN_CALL_ESCAPE &&
           hn_call_get_token(k->quote.p + 1) == id;
}

/* ---- tools ----------------------------------------------------------------------------------------------- */

const hn_call_tool *hn_call_kit_find(const hn_call_kit *k, const char *name, size_t n)
{
    for (size_t i = 0; i < k->n_tool; i++)
        if (k->tool[i].offered && strlen(k->tool[i].name) == n && memcmp(k->tool[i].name, name, n) == 0)
            return &k->tool[i];
    return NULL;
}

static bool good_name(const json_t *s)
{
    static const char sign[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t n = json_string_length(s);
    return n && n <= HN_CALL_NAME_MAX && strspn(json_string_value(s), sign) == n;
}

static hone_status read_tool(hn_call_kit *k, size_t i, hone_error *err)
{
    const json_t *t = json_array_get(k->tools, i), *f = json_object_get(t, "function");
    hn_call_tool *out = &k->tool[i];
    if (!json_is_object(t)) return HN_FAIL(err, HONE_E_ARG, "tools[%zu]: %s; expected an object", i, hn_json_kind(t));
    const char *at = f ? "function." : "";
    if (!f) f = t;
    const json_t *name = json_object_get(f, "name"), *schema = json_object_get(f, "parameters");
    if (!json_is_string(name) || !good_name(name))
        return HN_FAIL(err, HONE_E_ARG, "tools[%zu].%sname: %s%s; expected 1 to %d letters, digits, _, . and -", i, at,
                       json_is_string(name) ? "" : hn_json_kind(name),
                       json_is_string(name) ? HN_ESC(json_string_value(name), json_string_length(name)) : "",
                       HN_CALL_NAME_MAX);
    out->name = json_string_value(name);
    for (size_t j = 0; j < i; j++)
        if (strcmp(k->tool[j].name, out->name) == 0)
            return HN_FAIL(err, HONE_E_ARG, "tools[%zu].%sname: %s is the name of tools[%zu], too", i, at, out->name,
                           j);
    if (schema && !json_is_object(schema) && !json_is_null(schema))
        return HN_FAIL(err, HONE_E_ARG, "tools[%zu].%sparameters: %s; expected an object, a JSON schema", i, at,
                       hn_json_kind(schema));
    out->schema = json_is_object(schema) ? (json_t *)schema : NULL;
    out->strict = json_is_true(json_object_get(f, "strict"));
    out->offered = true;
    return HONE_OK;
}

static bool has_reals(const json_t *v)
{
    const char *key;
    json_t *m;
    size_t i;
    bool any = json_is_real(v);
    json_object_foreach((json_t *)v, key, m) any = any || has_reals(m);
    json_array_foreach(v, i, m) any = any || has_reals(m);
    return any;
}

/* Where the member of this name stands in the object at j, which is left; empty: nowhere. Of two the last counts. */
static hone_str member_at(hn_jread *j, const char *name)
{
    hone_str found = { "", 0 };
    bool more;
    if (hn_jread_peek(j) != '{' || hn_jread_open(j, '{', &more) != HONE_OK) return found;
    while (more) {
        hn_jread_text key;
        if (hn_jread_key(j, &key) != HONE_OK) return found;
        hn_jread_peek(j);
        const char *at = j->p;
        if (hn_jread_skip(j) != HONE_OK) return found;
        if (!key.escaped && key.n == strlen(name) && memcmp(key.raw, name, key.n) == 0)
            found = (hone_str){ at, (size_t)(j->p - at) };
        if (hn_jread_next(j, '{', &more) != HONE_OK) return found;
    }
    return found;
}

/* Are they those of the tree, in which of two members of one name the last is left? */
static bool is_plain(hone_str o)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG | HN_JSON_UNIQUE };
    json_t *v;
    bool plain = hn_json_tree(&v, o.ptr, o.len, &rules, "tools", NULL) == HONE_OK;
    json_decref(v);
    return plain;
}

/* The schemas with doubles as they are written: the tree may have other digits. */
static void find_written(hn_call_kit *k, const char *text)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    hn_jread j, in;
    bool more;
    if (!text || !has_reals(k->tools) || hn_jread_begin(&j, text, strlen(text), &rules, "tools", NULL, NULL) != HONE_OK)
        return;
    if (hn_jread_peek(&j) != '[' || hn_jread_open(&j, '[', &more) != HONE_OK) return;
    for (size_t i = 0; more && i < k->n_tool; i++) {
        hn_jread_peek(&j);
        const char *at = j.p;
        if (hn_jread_skip(&j) != HONE_OK) return;
        hone_str o = { at, (size_t)(j.p - at) };
        if (json_object_get(json_array_get(k->tools, i), "function")) {
            if (hn_jread_begin(&in, o.ptr, o.len, &rules, "tools", NULL, NULL) == HONE_OK)
                o = member_at(&in, "function");
        }
        if (k->tool[i].schema && has_reals(k->tool[i].schema) &&
            hn_jread_begin(&in, o.ptr, o.len, &rules, "tools", NULL, NULL) == HONE_OK)
            o = member_at(&in, "parameters");
        else o.len = 0;
        if (o.len && is_plain(o)) k->tool[i].written = o;
        if (hn_jread_next(&j, '[', &more) != HONE_OK) return;
    }
}

static hone_status choose(hn_call_kit *k, const char *const *names, size_t n, hone_error *err)
{
    if (!n) return HONE_OK;
    for (size_t i = 0; i < k->n_tool; i++) k->tool[i].offered = false;
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t j = 0; j < k->n_tool; j++)
            if (strcmp(k->tool[j].name, names[i]) == 0) k->tool[j].offered = found = true;
        if (!found)
            return HN_FAIL(err, HONE_E_ARG, "names[%zu]: %s is none of the tools; expected one of their names", i,
                           HN_ESC(names[i], strlen(names[i])));
    }
    return HONE_OK;
}

hone_status hn_call_kit_new(hn_call_kit **out, const hn_call_format *f, const hn_vocab *v, const hn_call_ask *ask,
                            hone_error *err)
{
    *out = NULL;
    if (!json_is_array(ask->tools)) return HN_FAIL(err, HONE_E_ARG, "tools: expected a JSON array");
    size_t n = json_array_size(ask->tools);
    hn_call_kit *k = calloc(1, sizeof *k);
    hone_status st = HONE_OK;
    if (k) {
        atomic_init(&k->owners, 1);
        k->f = *f;
        k->v = v;
        k->tools = json_incref((json_t *)ask->tools);
        k->tool = calloc(n + 1, sizeof *k->tool);
        k->notes = strdup("");
        make_marks(k);
    }
    if (!k || !k->tool || !k->notes) st = HN_FAIL(err, HONE_E_NOMEM, "%zu tools", n);
    for (; st == HONE_OK && k->n_tool < n; k->n_tool++)
        if ((st = read_tool(k, k->n_tool, err)) != HONE_OK) break;
    if (st == HONE_OK) find_written(k, ask->text);
    if (st == HONE_OK) st = choose(k, ask->names, ask->n_names, err);
    if (st == HONE_OK) st = hn_call_kit_kinds(k, err);
    if (st == HONE_OK && !ask->bare) st = hn_call_kit_grammars(k, ask->one, err);
    for (size_t i = 0; k && k->tool && i < k->n_tool; i++) k->tool[i].written = (hone_str){ "", 0 }; /* the caller's */
    if (st == HONE_OK) *out = k;
    else hn_call_kit_drop(k);
    return st;
}

void hn_call_kit_hold(hn_call_kit *k) { atomic_fetch_add(&k->owners, 1); }

void hn_call_kit_drop(hn_call_kit *k)
{
    if (!k || atomic_fetch_sub(&k->owners, 1) > 1) return;
    hn_grammar_drop(k->section);
    hn_grammar_drop(k->required);
    json_decref(k->tools);
    for (size_t i = 0; i < k->n_tool; i++) {
        for (size_t j = 0; j < k->tool[i].n_argument; j++) free(k->tool[i].argument[j].name);
        free(k->tool[i].argument);
    }
    free(k->tool);
    free(k->notes);
    free(k);
}
