/* Molds as nodes of the grammar: one rule for each set of schemas that hold together, its body an alternative for each
 * type and choice. Objects are written in the order of their properties, with those that are not named at the end. */
#include "text/schema.h"

#include <stdlib.h>

enum { PATTERNS_MAX = 6, PLACES_MAX = 50000 };

/* ---- rules by their schemas ------------------------------------------------------------------------- */

static uint32_t conj_hash(const hn_nodes *c)
{
    uint64_t h = c->n;
    for (uint32_t i = 0; i < c->n; i++) h = hn_mix64(h ^ c->v[i]->number);
    return (uint32_t)h;
}

static bool more_rules(hn_schema *s)
{
    uint32_t cap = s->cap_memo * 2 + 64, n_slot = 128;
    while (n_slot < cap * 2) n_slot *= 2;
    hn_schema_memo *m = realloc(s->memo, cap * sizeof *m);
    if (m) s->memo = m;
    uint32_t *slot = m ? calloc(n_slot, sizeof *slot) : NULL;
    if (!slot) {
        hn_schema_no_memory(s);
        return false;
    }
    free(s->slot);
    s->slot = slot;
    s->n_slot = n_slot;
    s->cap_memo = cap;
    for (uint32_t i = 0; i < s->n_memo; i++) {
        uint32_t at = conj_hash(&s->memo[i].conj) & (n_slot - 1);
        while (slot[at]) at = (at + 1) & (n_slot - 1);
        slot[at] = i + 1;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    const hn_jnode *x = *(const hn_jnode *const *)a, *y = *(const hn_jnode *const *)b;
    return (x->number > y->number) - (x->number < y->number);
}

uint32_t hn_schema_rule(hn_schema *s, const hn_nodes *conj)
{
    hn_nodes c = { 0 };
    for (uint32_t i = 0; i < conj->n; i++) hn_schema_put(s, &c, conj->v[i]);
    if (s->st != HONE_OK) return 0;
    if (c.n) qsort(c.v, c.n, sizeof *c.v, by_number);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.v[i]->kind != HN_J_TRUE && (n == 0 || c.v[n - 1] != c.v[i])) c.v[n++] = c.v[i];
    c.n = n;
    if (s->n_memo == s->cap_memo && !more_rules(s)) return 0;
    uint32_t at = conj_hash(&c) & (s->n_slot - 1);
    for (; s->slot[at]; at = (at + 1) & (s->n_slot - 1)) {
        const hn_schema_memo *m = &s->memo[s->slot[at] - 1];
        if (m->conj.n == c.n && (c.n == 0 || memcmp(m->conj.v, c.v, c.n * sizeof *c.v) == 0)) return m->rule;
    }
    s->slot[at] = s->n_memo + 1;
    s->memo[s->n_memo] = (hn_schema_memo){ .conj = c, .rule = hn_g_new_rule(s->g, NULL, 0) };
    return s->memo[s->n_memo++].rule;
}

static hn_gnode rule_of(hn_schema *s, const hn_nodes *conj)
{
    for (uint32_t i = 0; i < conj->n; i++)
        if (conj->v[i]->kind == HN_J_FALSE) return HN_G_FAIL;
    return hn_g_rule(s->g, hn_schema_rule(s, conj));
}

/* ---- text ----------------------------------------------------------------------------------------------- */

/* A string as JSON writes it, with no more escapes than it must have. */
static hone_str json_string(hn_schema *s, hone_str t)
{
    char *out = hn_arena_alloc(s->arena, t.len * 6 + 3);
    size_t n = 0;
    if (!out) {
        hn_schema_no_memory(s);
        return (hone_str){ "", 0 };
    }
    out[n++] = '"';
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.ptr[i];
        static const char raw[] = "\"\\\b\f\n\r\t", name[] = "\"\\bfnrt";
        const char *at = c ? strchr(raw, c) : NULL;
        if (at) out[n++] = '\\', out[n++] = name[at - raw];
        else if (c < 0x20) n += (size_t)snprintf(out + n, 7, "\\u%04x", c);
        else out[n++] = (char)c;
    }
    out[n++] = '"';
    return (hone_str){ out, n };
}

/* Can it stand without quotes, and be told from what is behind it? */
static bool is_bare(hone_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] <= ' ' || strchr("\"'\\<>|:=,(){}[]", key.ptr[i])) return false;
    return key.len > 0;
}

/* The same in Python's single quotes; none where it would have to be escaped. */
static hn_lang single_quoted(hn_schema *s, hone_str t)
{
    hn_lang quote = hn_lang_char(s->l, '\'');
    for (size_t i = 0; i < t.len; i++)
        if ((unsigned char)t.ptr[i] < ' ' || t.ptr[i] == '\'' || t.ptr[i] == '\\') return HN_LANG_NONE;
    return hn_lang_cat(s->l, quote, hn_lang_cat(s->l, hn_lang_text(s->l, t.ptr, t.len), quote));
}

static hn_lang quoted_name(hn_schema *s, hone_str key)
{
    if (s->style.bare && is_bare(key)) return hn_lang_text(s->l, key.ptr, key.len);
    hone_str t = json_string(s, key);
    hn_lang name = hn_lang_text(s->l, t.ptr, t.len);
    return s->style.python ? hn_lang_or(s->l, name, single_quoted(s, key)) : name;
}

hn_lang hn_schema_key(hn_schema *s, hone_str key)
{
    return is_bare(key) ? hn_lang_text(s->l, key.ptr, key.len) : quoted_name(s, key);
}

/* A string of these texts. */
static hn_gnode string(hn_schema *s, hn_lang t)
{
    hn_grammar *g = s->g;
    hn_langs *l = s->l;
    if (s->style.bare) {
        hn_gnode text = hn_g_lex(g, hn_lang_and(l, t, s->style.inside));
        return hn_g_seq(g, s->style.quote, hn_g_seq(g, text, s->style.quote));
    }
    if (!s->style.python) return hn_g_string(g, t);
    static const hn_range plain[] = { { ' ', '\'' - 1 }, { '\'' + 1, '\\' - 1 }, { '\\' + 1, 0x10FFFF } };
    hn_lang quote = hn_lang_char(l, '\''), one = hn_lang_set(l, plain, 3);
    if (t == HN_LANG_ALL) { /* else what an escape stands for would count */
        static const hn_range escaped[] = { { '"', '"' }, { '\'', '\'' }, { '\\', '\\' },
                                            { 'n', 'n' }, { 'r', 'r' },   { 't', 't' } };
        one = hn_lang_or(l, one, hn_lang_cat(l, hn_lang_char(l, '\\'), hn_lang_set(l, escaped, 6)));
    }
    hn_lang text = hn_lang_and(l, hn_lang_repeat(l, one, 0, HN_LANG_ENDLESS), t == HN_LANG_ALL ? HN_LANG_ALL : t);
    hn_gnode single = hn_g_lex(g, hn_lang_cat(l, quote, hn_lang_cat(l, text, quote)));
    return hn_g_alt(g, (hn_gnode[]){ hn_g_string(g, t), single }, 2);
}

/* A name that is one of these texts. */
static hn_gnode free_name(hn_schema *s, hn_lang t)
{
    static const hn_range bare[] = { { '-', '.' }, { '0', '9' }, { 'A', 'Z' },
                                     { '_', '_' }, { 'a', 'z' }, { 0x80, 0x10FFFF } };
    if (!s->style.bare) return string(s, t);
    return hn_g_lex(s->g, hn_lang_and(s->l, t, hn_lang_repeat(s->l, hn_lang_set(s->l, bare, 6), 1, HN_LANG_ENDLESS)));
}

/* A word of JSON, and Python's for it. */
static hn_gnode word(hn_schema *s, const char *json, const char *python)
{
    hn_gnode one = hn_g_text(s->g, json);
    return s->style.python ? hn_g_alt(s->g, (hn_gnode[]){ one, hn_g_text(s->g, python) }, 2) : one;
}

static hn_lang mark(hn_schema *s, const char *text, bool before, bool behind) /* with white space */
{
    hn_lang t = hn_lang_text(s->l, text, strlen(text));
    if (before) t = hn_lang_cat(s->l, s->space, t);
    return behind ? hn_lang_cat(s->l, t, s->space) : t;
}

/* False: an array or an object. */
static bool scalar(hn_schema *s, const hn_jnode *v, hone_str *text)
{
    switch (v->kind) {
    case HN_J_NULL: *text = (hone_str){ "null", 4 }; return true;
    case HN_J_FALSE: *text = (hone_str){ "false", 5 }; return true;
    case HN_J_TRUE: *text = (hone_str){ "true", 4 }; return true;
    case HN_J_NUMBER: *text = v->str; return true;
    case HN_J_STRING: *text = json_string(s, v->str); return true;
    default: return false;
    }
}

static hn_lang literal(hn_schema *s, const hn_jnode *v)
{
    hn_langs *l = s->l;
    hone_str text;
    if (scalar(s, v, &text)) return hn_lang_text(l, text.ptr, text.len);
    bool object = v->kind == HN_J_OBJECT;
    hn_lang t = mark(s, object ? "}" : "]", true, false);
    if (v->n == 0) return hn_lang_cat(l, mark(s, object ? "{" : "[", false, false), t);
    const hn_jnode **list = hn_arena_alloc(s->arena, v->n * sizeof *list);
    if (!list) {
        hn_schema_no_memory(s);
        return HN_LANG_NONE;
    }
    for (const hn_jnode *x = v->first; x; x = x->next) list[x->index] = x;
    for (uint32_t i = v->n; i-- > 0;) { /* from the end */
        hn_lang one = literal(s, list[i]);
        if (object) one = hn_lang_cat(l, quoted_name(s, list[i]->key), hn_lang_cat(l, mark(s, ":", true, true), one));
        hn_lang before = i ? mark(s, ",", true, true) : mark(s, object ? "{" : "[", false, true);
        t = hn_lang_cat(l, before, hn_lang_cat(l, one, t));
    }
    return t;
}

/* ---- arrays ------------------------------------------------------------------------------------------------ */

static uint32_t less(uint32_t a, uint32_t b) { return a == HN_LANG_ENDLESS ? a : a > b ? a - b : 0; }

static hn_gnode array(hn_schema *s, const hn_mold *m)
{
    hn_grammar *g = s->g;
    uint32_t min = hn_mold_count(s, m, "minItems", true, 0),
             max = hn_mold_count(s, m, "maxItems", false, HN_LANG_ENDLESS);
    uint32_t n = hn_mold_prefix(m);
    hn_gnode close = hn_g_lex(g, mark(s, "]", true, false)), comma = hn_g_lex(g, mark(s, ",", true, true));
    hn_gnode space = hn_g_lex(g, s->space), at;
    hn_nodes rest = hn_mold_item(s, m, n);
    hn_gnode other = rule_of(s, &rest);
    if (n > max) n = max; /* no element behind it can be there */
    if (n == 0) {
        hn_gnode more = hn_g_rep(g, hn_g_seq(g, comma, other), less(min, 1), less(max, 1));
        hn_gnode some = max ? hn_g_seq(g, space, hn_g_seq(g, other, hn_g_seq(g, more, close))) : HN_G_FAIL;
        at = hn_g_alt(g, (hn_gnode[]){ min ? HN_G_FAIL : close, some }, 2);
    } else {
        at = hn_g_seq(g, hn_g_rep(g, hn_g_seq(g, comma, other), less(min, n), less(max, n)), close);
        for (uint32_t i = n; i-- > 0 && s->st == HONE_OK;) { /* at: behind element i */
            hn_nodes item = hn_mold_item(s, m, i);
            hn_gnode one = hn_g_seq(g, i ? comma : space, hn_g_seq(g, rule_of(s, &item), at));
            at = hn_g_alt(g, (hn_gnode[]){ i >= min ? close : HN_G_FAIL, one }, 2);
        }
    }
    return hn_g_seq(g, hn_g_text(g, "["), at);
}

/* ---- objects ------------------------------------------------------------------------------------------------- */

typedef struct property {
    hone_str key;
    bool required;
    hn_gnode value;
    hn_lang name; /* with its quotes */
} property;

typedef struct names {
    property *v; /* [keys.n] */
    uint32_t cap;
    hn_keyset keys;
} names;

/* The place of key, which is added where it is not there. */
static property *name_of(hn_schema *s, names *w, hone_str key)
{
    uint32_t at, n = w->keys.n;
    if (!hn_keyset_put(&w->keys, s->arena, key, &at)) {
        hn_schema_no_memory(s);
        return NULL;
    }
    if (w->keys.n > w->cap) {
        property *v = hn_arena_alloc(s->arena, w->keys.cap * sizeof *v);
        if (!v) {
            hn_schema_no_memory(s);
            return NULL;
        }
        if (n) memcpy(v, w->v, n * sizeof *v);
        w->v = v;
        w->cap = w->keys.cap;
    }
    w->v[at].key = key;
    return &w->v[at];
}

/* Properties that members name, in their order; those that are only required behind them, then the others of a list of
 * names, where there is one: *listed. */
static void collect_names(hn_schema *s, const hn_mold *m, names *w, bool *listed)
{
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *p = hn_jget(m->members.v[k], "properties");
        if (p && p->kind != HN_J_OBJECT) hn_schema_wrong(s, p, "an object of schemas");
        for (const hn_jnode *x = p ? p->first : NULL; x && s->st == HONE_OK; x = x->next) name_of(s, w, x->key);
    }
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *r = hn_jget(m->members.v[k], "required");
        if (r && r->kind != HN_J_ARRAY && r->kind != HN_J_TRUE && r->kind != HN_J_FALSE)
            hn_schema_wrong(s, r, "an array of names");
        for (const hn_jnode *x = r ? r->first : NULL; x && s->st == HONE_OK; x = x->next) {
            if (x->kind != HN_J_STRING) {
                hn_schema_wrong(s, x, "the name of a property");
                return;
            }
            property *p = name_of(s, w, x->str);
            if (p) p->required = true;
        }
    }
    uint32_t named = w->keys.n;
    *listed = false;
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *list = hn_schema_names(s, m->members.v[k]);
        *listed = *listed || list;
        for (const hn_jnode *x = list ? list->first : NULL; x && s->st == HONE_OK; x = x->next)
            if (x->kind == HN_J_STRING) name_of(s, w, x->str);
    }
    for (uint32_t i = 0; i < w->keys.n && s->st == HONE_OK; i++) {
        bool declared;
        hn_nodes conj = hn_mold_property(s, m, w->v[i].key, &declared);
        bool absent = !hn_mold_names(s, m, w->v[i].key) || (i >= named && !conj.n && hn_mold_closed(m));
        for (uint32_t k = 0; k < m->absent.n; k++) absent = absent || hn_str_same(m->absent.v[k]->str, w->v[i].key);
        w->v[i].value = absent ? HN_G_FAIL : rule_of(s, &conj);
        w->v[i].name = quoted_name(s, w->v[i].key);
        w->v[i].required = w->v[i].required || hn_mold_tagged(m, w->v[i].key);
        if (!hn_schema_work(s, 4)) return;
    }
}

/* The names that nobody has declared or forbidden. */
static hn_lang free_names_of(hn_schema *s, const hn_mold *m, const names *w)
{
    hone_str *known = hn_arena_alloc(s->arena, (w->keys.n + m->absent.n + 1) * sizeof *known);
    if (!known) hn_schema_no_memory(s);
    if (!known) return HN_LANG_NONE;
    for (uint32_t i = 0; i < w->keys.n; i++) known[i] = w->keys.v[i];
    for (uint32_t i = 0; i < m->absent.n; i++) known[w->keys.n + i] = m->absent.v[i]->str;
    uint32_t n = w->keys.n + m->absent.n;
    return n ? hn_lang_not(s->l, hn_lang_words(s->l, known, n)) : HN_LANG_ALL;
}

static hn_gnode any_property(hn_schema *s, hn_lang name)
{
    hn_nodes any = { 0 };
    if (s->st != HONE_OK) return HN_G_FAIL;
    hn_gnode colon = hn_g_lex(s->g, mark(s, ":", true, true));
    return hn_g_seq(s->g, free_name(s, name), hn_g_seq(s->g, colon, rule_of(s, &any)));
}

/* Any other property: one class of names for each set of patterns that a name may match. */
static hn_gnode other_property(hn_schema *s, const hn_mold *m, const names *w)
{
    const hn_jnode *at[PATTERNS_MAX];
    bool said[PATTERNS_MAX];
    hn_lang pattern[PATTERNS_MAX], free_names = free_names_of(s, m, w);
    hn_gnode kind[1 << PATTERNS_MAX];
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *o = hn_jget(m->members.v[k], "patternProperties");
        if (o && o->kind != HN_J_OBJECT) hn_schema_wrong(s, o, "an object of schemas");
        for (const hn_jnode *x = o ? o->first : NULL; x && s->st == HONE_OK; x = x->next) {
            if (n == PATTERNS_MAX) {
                hn_schema_cannot(s, o, "more than 6 patterns at the same time");
                return any_property(s, free_names);
            }
            at[n] = x;
            said[n] = hn_schema_pattern(s, x, x->key, &pattern[n]); /* else any name may match it */
            n++;
        }
    }
    hn_lang colon = mark(s, ":", true, true);
    for (uint32_t set = 0; set < 1u << n && s->st == HONE_OK; set++) {
        hn_nodes conj = { 0 };
        hn_lang name = free_names;
        kind[set] = HN_G_FAIL;
        for (uint32_t i = 0; i < n; i++)
            name = hn_lang_and(s->l, name, set >> i & 1 ? pattern[i] : hn_lang_not(s->l, pattern[i]));
        if ((set == 0 && hn_mold_closed(m)) || !hn_lang_live(s->l, name)) continue;
        for (uint32_t k = 0; k < m->members.n; k++) {
            const hn_jnode *rest = hn_jget(m->members.v[k], "additionalProperties");
            bool spoken = false;
            for (uint32_t i = 0; i < n; i++)
                if (set >> i & 1 && at[i]->parent->parent == m->members.v[k]) {
                    if (said[i]) hn_schema_put(s, &conj, at[i]);
                    spoken = true;
                }
            if (!spoken && rest) hn_schema_put(s, &conj, rest);
        }
        hn_gnode value = rule_of(s, &conj);
        kind[set] = hn_g_seq(s->g, free_name(s, name), hn_g_seq(s->g, hn_g_lex(s->g, colon), value));
    }
    return s->st == HONE_OK ? hn_g_alt(s->g, kind, (size_t)1 << n) : HN_G_FAIL;
}

static hn_gnode object(hn_schema *s, const hn_mold *m)
{
    hn_grammar *g = s->g;
    hn_langs *l = s->l;
    names w = { 0 };
    uint32_t min = hn_mold_count(s, m, "minProperties", true, 0);
    uint32_t max = hn_mold_count(s, m, "maxProperties", false, HN_LANG_ENDLESS);
    bool listed = false;
    collect_names(s, m, &w, &listed);
    hn_gnode other = listed ? HN_G_FAIL : other_property(s, m, &w);
    if (s->st != HONE_OK) return HN_G_FAIL;
    uint32_t sure = 0;
    const uint32_t n_name = w.keys.n;
    for (uint32_t i = 0; i < n_name; i++) sure += w.v[i].required;
    if (other != HN_G_FAIL && min > sure + 1) {
        for (uint32_t k = 0; k < m->members.n; k++)
            if (hn_jget(m->members.v[k], "minProperties"))
                hn_schema_cannot(s, hn_jget(m->members.v[k], "minProperties"),
                                 "names that are free would have to differ from each other");
        if (s->st != HONE_OK) return HN_G_FAIL;
        min = sure + 1;
    }
    /* how many there are is counted as far as min and max need it, at least whether there are any */
    uint32_t most = max != HN_LANG_ENDLESS && max > min ? max : min;
    most = most > n_name + 1 ? n_name + 1 : most ? most : 1;
    if ((uint64_t)(n_name + 1) * (most + 1) > PLACES_MAX) {
        s->st = HN_FAIL(s->err, HONE_E_UNSUPPORTED, "JSON schema: %u properties, counted up to %u; expected less",
                        n_name, most);
        return HN_G_FAIL;
    }
    hn_gnode close = hn_g_lex(g, mark(s, "}", true, false)), comma = hn_g_lex(g, mark(s, ",", true, true));
    hn_gnode space = hn_g_lex(g, s->space);
    hn_gnode *here = hn_arena_alloc(s->arena, (most + 1) * sizeof *here); /* [c]: with c properties before */
    if (!here) {
        hn_schema_no_memory(s);
        return HN_G_FAIL;
    }
    for (uint32_t c = 0; c <= most; c++) { /* behind those with a name */
        hn_gnode more = hn_g_rep(g, hn_g_seq(g, comma, other), less(min, c ? c : 1), less(max, c ? c : 1));
        if (c) here[c] = hn_g_seq(g, more, close);
        else {
            hn_gnode some = max ? hn_g_seq(g, space, hn_g_seq(g, other, hn_g_seq(g, more, close))) : HN_G_FAIL;
            here[0] = hn_g_alt(g, (hn_gnode[]){ min ? HN_G_FAIL : close, some }, 2);
        }
        if (max < c) here[c] = HN_G_FAIL;
    }
    for (uint32_t i = n_name; i-- > 0 && s->st == HONE_OK;) {
        const property *p = &w.v[i];
        hn_lang colon = hn_lang_cat(l, p->name, mark(s, ":", true, true));
        for (uint32_t c = 0; c <= most; c++) { /* ascending: what comes behind has at least as many */
            uint32_t next = c < most ? c + 1 : most;
            hn_gnode with = p->value == HN_G_FAIL || c >= max ? HN_G_FAIL : hn_g_seq(g, p->value, here[next]);
            if (with != HN_G_FAIL)
                with = hn_g_seq(g, hn_g_lex(g, hn_lang_cat(l, c ? mark(s, ",", true, true) : s->space, colon)), with);
            here[c] = p->required ? with : hn_g_alt(g, (hn_gnode[]){ with, here[c] }, 2);
        }
        if (!hn_schema_work(s, most)) return HN_G_FAIL;
    }
    return hn_g_seq(g, hn_g_text(g, "{"), here[0]);
}

/* ---- molds ----------------------------------------------------------------------------------------------------- */

typedef struct body {
    hn_gnode *v;
    uint32_t n, cap;
} body;

static void put_body(hn_schema *s, body *b, hn_gnode x)
{
    if (b->n == b->cap) {
        uint32_t cap = b->cap * 2 + 8;
        hn_gnode *v = hn_arena_alloc(s->arena, cap * sizeof *v);
        if (!v) {
            hn_schema_no_memory(s);
            return;
        }
        if (b->n) memcpy(v, b->v, b->n * sizeof *v);
        b->v = v;
        b->cap = cap;
    }
    b->v[b->n++] = x;
}

/* The values of the first enum or const that all members allow. */
static void emit_finite(hn_schema *s, const hn_mold *m, body *b)
{
    const hn_jnode *list = NULL, *one = NULL;
    for (uint32_t i = 0; i < m->members.n && !list && !one; i++) {
        one = hn_jget(m->members.v[i], "const");
        list = one ? NULL : hn_jget(m->members.v[i], "enum");
    }
    uint32_t n = one ? 1 : list->n, k = 0, n_text = 0;
    bool own = s->style.bare || s->style.python;
    hone_str *words = hn_arena_alloc(s->arena, (n + 1) * sizeof *words),
             *texts = hn_arena_alloc(s->arena, (n + 1) * sizeof *texts);
    if (!words || !texts) {
        hn_schema_no_memory(s);
        return;
    }
    for (const hn_jnode *x = one ? one : list->first; x && hn_schema_work(s, 1); x = one ? NULL : x->next) {
        if (!hn_mold_allows(s, m, x)) continue;
        if (x->kind == HN_J_STRING && own) texts[n_text++] = x->str;
        else if (x->kind == HN_J_NULL && own) put_body(s, b, word(s, "null", "None"));
        else if (x->kind == HN_J_TRUE && own) put_body(s, b, word(s, "true", "True"));
        else if (x->kind == HN_J_FALSE && own) put_body(s, b, word(s, "false", "False"));
        else if (scalar(s, x, &words[k])) k++;
        else put_body(s, b, hn_g_lex(s->g, literal(s, x)));
    }
    put_body(s, b, hn_g_lex(s->g, hn_lang_words(s->l, words, k)));
    if (n_text) put_body(s, b, string(s, hn_lang_words(s->l, texts, n_text)));
}

static void emit(hn_schema *s, hn_mold *m, void *arg)
{
    body *b = arg;
    hn_grammar *g = s->g;
    uint32_t t = hn_mold_types(m);
    if (m->finite) {
        emit_finite(s, m, b);
        return;
    }
    for (uint32_t i = 0; i < m->forbidden.n; i++) {
        const hn_jnode *x = m->forbidden.v[i];
        if (x->kind == HN_J_NULL) t &= ~(uint32_t)HN_T_NULL;
        if (x->kind == HN_J_FALSE) t &= ~(uint32_t)HN_T_FALSE;
        if (x->kind == HN_J_TRUE) t &= ~(uint32_t)HN_T_TRUE;
        if ((x->kind == HN_J_ARRAY && t & HN_T_ARRAY) || (x->kind == HN_J_OBJECT && t & HN_T_OBJECT))
            hn_schema_cannot(s, x, "hone does not enforce not of an array or an object");
    }
    if (t & HN_T_NULL) put_body(s, b, word(s, "null", "None"));
    if (t & HN_T_FALSE) put_body(s, b, word(s, "false", "False"));
    if (t & HN_T_TRUE) put_body(s, b, word(s, "true", "True"));
    if (t & HN_T_NUMBER) put_body(s, b, hn_g_lex(g, hn_mold_number(s, m, t & HN_T_NUMBER)));
    if (t & HN_T_STRING) put_body(s, b, string(s, hn_mold_string(s, m)));
    if (t & HN_T_ARRAY) put_body(s, b, array(s, m));
    if (t & HN_T_OBJECT) put_body(s, b, object(s, m));
}

void hn_schema_emit_all(hn_schema *s)
{
    for (; s->n_made < s->n_memo && s->st == HONE_OK; s->n_made++) {
        hn_nodes conj = s->memo[s->n_made].conj;
        uint32_t rule = s->memo[s->n_made].rule;
        hn_mold m = hn_mold_new(false);
        body b = { 0 };
        s->trail = (hn_nodes){ 0 };
        for (uint32_t i = 0; i < conj.n; i++) hn_mold_add(s, &m, conj.v[i]);
        hn_mold_choose(s, &m, emit, &b);
        hn_g_set_rule(s->g, rule, hn_g_alt(s->g, b.v, b.n));
        if (s->st == HONE_OK) s->st = hn_grammar_check(s->g, s->err);
    }
}
