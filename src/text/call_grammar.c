/* call_grammar: what calls may be, as a grammar made of the format's record and of the schemas of the tools: literal
 * marks and tokens, a choice of names, and behind each name the arguments its schema allows. Arguments that a format
 * writes one by one come in any order, many in that of the schema; strings among them as they are, all else as JSON or
 * as the format has it. */
#include "base/json_tree.h"
#include "text/call_values.h"
#include "text/calls.h"
#include "text/schema.h"

#include <limits.h>
#include <stdlib.h>

/* ---- marks ----------------------------------------------------------------------------------------------- */

static hn_gnode marks(hn_grammar *g, const hn_call_mark *m)
{
    hn_gnode at = HN_G_EMPTY;
    for (size_t end = m->n, i = end; end > 0; end = i) { /* from the end: lexemes in a row become one */
        if (end >= HN_CALL_TOKEN && (unsigned char)m->p[end - HN_CALL_TOKEN] == HN_CALL_ESCAPE) {
            i = end - HN_CALL_TOKEN;
            at = hn_g_seq(g, hn_g_token(g, hn_call_get_token(m->p + i + 1)), at);
            continue;
        }
        i = end;
        while (i > 0 && !(i >= HN_CALL_TOKEN && (unsigned char)m->p[i - HN_CALL_TOKEN] == HN_CALL_ESCAPE)) i--;
        at = hn_g_seq(g, hn_g_lex(g, hn_lang_text(hn_grammar_lang(g), m->p + i, end - i)), at);
    }
    return at;
}

static hn_gnode mark(hn_grammar *g, const hn_call_kit *k, const char *text)
{
    hn_call_mark m;
    hn_call_encode(&m, k->v, text, text == k->f.end || text == k->f.section_end);
    return marks(g, &m);
}

static hn_lang signs(hn_langs *l, bool colon)
{
    hn_range r[] = { { 'a', 'z' }, { 'A', 'Z' }, { '0', '9' }, { '_', '_' }, { '-', '-' }, { ':', ':' } };
    return hn_lang_set(l, r, colon ? 6 : 5);
}

static hn_lang id_text(const hn_call_kit *k, hn_langs *l)
{
    enum { LONGEST_ID = 40 };
    hn_range plain[] = { { 'a', 'z' }, { 'A', 'Z' }, { '0', '9' } };
    uint32_t n = k->f.id_length;
    return n ? hn_lang_repeat(l, hn_lang_set(l, plain, 3), n, n) : hn_lang_repeat(l, signs(l, false), 1, LONGEST_ID);
}

/* ---- arguments one by one -------------------------------------------------------------------------------- */

typedef struct each {
    const hn_call_kit *k;
    const hn_call_tool *tool;
    const char *key_begin, *key_end, *key_end_other, *value_end, *separator;
    bool json; /* strings are written as inside of other values, too */
} each;

static each how_each(const hn_call_kit *k, const hn_call_tool *t)
{
    const hn_call_format *f = &k->f;
    if (f->shape == HN_CALLS_PYTHON) return (each){ k, t, "", "=", "=", "", ", ", true };
    if (f->shape == HN_CALLS_GEMMA) return (each){ k, t, "", ":", ":", "", ",", true };
    return (each){
        k, t, f->key_begin, f->key_end, *f->key_end_other ? f->key_end_other : f->key_end, f->value_end, "", f->quoted
    };
}

/* Texts in which the mark behind them does not stand already: as far as its first white space, tokens as they are
 * spelt; of one that begins with a token, that. */
static hn_lang text_without(hn_langs *l, const hn_vocab *v, const hn_call_mark *end)
{
    size_t from = 0, n;
    hn_lang t = HN_LANG_EMPTY;
    while (from < end->n && strchr(" \n\t\r", end->p[from])) from++;
    for (size_t i = from; i < end->n;) {
        const char *s = end->p + i;
        bool token = (unsigned char)*s == HN_CALL_ESCAPE;
        if (token) {
            s = hn_vocab_piece(v, hn_call_get_token(s + 1), i > from, &n); /* no text is a control token's alone */
            i += HN_CALL_TOKEN;
        } else {
            for (n = 0; i + n < end->n && (unsigned char)s[n] != HN_CALL_ESCAPE && !strchr(" \n\t\r", s[n]);) n++;
            i += n;
        }
        if (n) t = hn_lang_cat(l, t, hn_lang_text(l, s, n));
        if ((!n && !token) || (unsigned char)end->p[from] == HN_CALL_ESCAPE) break;
    }
    if (t == HN_LANG_EMPTY) return HN_LANG_ALL;
    return hn_lang_not(l, hn_lang_cat(l, HN_LANG_ALL, hn_lang_cat(l, t, HN_LANG_ALL)));
}

static hn_gnode raw_string(hn_schema *s, const each *e, hn_lang allowed)
{
    hn_call_mark end;
    hn_langs *l = s->l;
    hn_call_encode(&end, e->k->v, e->value_end, false);
    hn_lang plain = hn_lang_and(l, allowed, text_without(l, e->k->v, &end));
    if (!e->k->f.cdata) return hn_g_lex(s->g, plain);
    hn_lang open = hn_lang_text(l, HN_CALL_CDATA, strlen(HN_CALL_CDATA)),
            close = hn_lang_text(l, HN_CALL_CDATA_END, strlen(HN_CALL_CDATA_END)),
            held = hn_lang_and(l, allowed, text_without(l, e->k->v, &e->k->cdata_end));
    plain = hn_lang_and(l, plain, hn_lang_not(l, hn_lang_cat(l, open, HN_LANG_ALL)));
    return hn_g_lex(s->g, hn_lang_or(l, plain, hn_lang_cat(l, open, hn_lang_cat(l, held, close))));
}

/* Texts that are read as a value of such types (HN_T_*), blanks around it or not: a reader takes them for that. */
static hn_lang read_as(hn_langs *l, uint32_t types)
{
    static const char *const words[] = { "null", "None", "true", "True", "false", "False" };
    static const uint32_t of[] = { HN_T_NULL, HN_T_NULL, HN_T_TRUE, HN_T_TRUE, HN_T_FALSE, HN_T_FALSE };
    hn_lang t = HN_LANG_NONE, quote = hn_lang_char(l, '"'), minus = hn_lang_char(l, '-');
    hn_lang blanks = hn_lang_repeat(
        l, hn_lang_set(l, (hn_range[]){ { ' ', ' ' }, { '\n', '\n' }, { '\t', '\t' }, { '\r', '\r' } }, 4), 0,
        HN_LANG_ENDLESS);
    for (size_t i = 0; i < 6; i++)
        if (types & of[i]) t = hn_lang_or(l, t, hn_lang_text(l, words[i], strlen(words[i])));
    if (types & HN_T_NUMBER) {
        hn_lang digit = hn_lang_set(l, &(hn_range){ '0', '9' }, 1),
                digits = hn_lang_repeat(l, digit, 1, HN_LANG_ENDLESS);
        hn_lang first = hn_lang_set(l, &(hn_range){ '1', '9' }, 1);
        hn_lang whole =
            hn_lang_or(l, hn_lang_char(l, '0'), hn_lang_cat(l, first, hn_lang_repeat(l, digit, 0, HN_LANG_ENDLESS)));
        hn_lang part = hn_lang_cat(l, hn_lang_char(l, '.'), digits);
        hn_lang sign = hn_lang_set(l, (hn_range[]){ { '+', '+' }, { '-', '-' } }, 2);
        hn_lang exponent = hn_lang_cat(l, hn_lang_set(l, (hn_range[]){ { 'e', 'e' }, { 'E', 'E' } }, 2),
                                       hn_lang_cat(l, hn_lang_or(l, HN_LANG_EMPTY, sign), digits));
        hn_lang number = hn_lang_cat(
            l, hn_lang_or(l, HN_LANG_EMPTY, minus),
            hn_lang_cat(l, whole,
                        hn_lang_cat(l, hn_lang_or(l, HN_LANG_EMPTY, part), hn_lang_or(l, HN_LANG_EMPTY, exponent))));
        t = hn_lang_or(l, t, number);
    }
    if (types & HN_T_STRING) {
        hn_lang plain =
            hn_lang_set(l, (hn_range[]){ { 0, '"' - 1 }, { '"' + 1, '\\' - 1 }, { '\\' + 1, 0x10FFFF } }, 3);
        hn_lang one = hn_lang_or(l, plain, hn_lang_cat(l, hn_lang_char(l, '\\'), HN_LANG_ANY));
        t = hn_lang_or(l, t, hn_lang_cat(l, quote, hn_lang_cat(l, hn_lang_repeat(l, one, 0, HN_LANG_ENDLESS), quote)));
    }
    t = hn_lang_cat(l, blanks, hn_lang_cat(l, t, blanks));
    if (types & HN_T_ARRAY)
        t = hn_lang_or(l, t, hn_lang_cat(l, blanks, hn_lang_cat(l, hn_lang_char(l, '['), HN_LANG_ALL)));
    if (types & HN_T_OBJECT)
        t = hn_lang_or(l, t, hn_lang_cat(l, blanks, hn_lang_cat(l, hn_lang_char(l, '{'), HN_LANG_ALL)));
    return t;
}

/* What a schema allows, whichever of its choices is taken. */
typedef struct allowed {
    uint32_t types;  /* HN_T_* */
    hn_lang strings; /* their texts */
    hn_nodes words;  /* some more of these */
} allowed;

/* The values of the first enum or const that all members allow. */
static void add_listed(hn_schema *s, const hn_mold *m, allowed *a)
{
    const hn_jnode *list = NULL, *one = NULL;
    for (uint32_t i = 0; i < m->members.n && !list && !one; i++) {
        one = hn_jget(m->members.v[i], "const");
        list = one ? NULL : hn_jget(m->members.v[i], "enum");
    }
    for (const hn_jnode *x = one    ? one
                             : list ? list->first
                                    : NULL;
         x && hn_schema_work(s, 1); x = one ? NULL : x->next) {
        if (!hn_mold_allows(s, m, x)) continue;
        a->types |= hn_schema_type_of(s, x);
        if (x->kind == HN_J_STRING && !s->types_only) hn_schema_put(s, &a->words, x);
    }
}

static void add_mold(hn_schema *s, hn_mold *m, void *arg)
{
    allowed *a = arg;
    uint32_t types = hn_mold_types(m);
    if (m->finite) {
        add_listed(s, m, a);
        return;
    }
    a->types |= types;
    if (types & HN_T_STRING && !s->types_only) a->strings = hn_lang_or(s->l, a->strings, hn_mold_string(s, m));
}

/* One parameter, whichever of its ways it takes: each a set of schemas that hold together. */
static allowed allowed_by(hn_schema *s, const hn_nodes *way, uint32_t n)
{
    allowed a = { .strings = HN_LANG_NONE };
    for (uint32_t i = 0; i < n; i++) {
        hn_mold m = hn_mold_new(false);
        for (uint32_t k = 0; k < way[i].n; k++) hn_mold_add(s, &m, way[i].v[k]);
        hn_mold_choose(s, &m, add_mold, &a);
    }
    hone_str *text = hn_arena_alloc(s->arena, (a.words.n + 1) * sizeof *text);
    if (!text) hn_schema_no_memory(s);
    for (uint32_t i = 0; text && i < a.words.n; i++) text[i] = a.words.v[i]->str;
    if (text && a.words.n) a.strings = hn_lang_or(s->l, a.strings, hn_lang_words(s->l, text, a.words.n));
    if (a.types & (HN_T_TRUE | HN_T_FALSE)) a.types |= HN_T_TRUE | HN_T_FALSE; /* one kind for who reads them */
    return a;
}

/* key_begin K key_end V value_end */
static hn_gnode one_argument(hn_schema *s, const each *e, hn_lang key, hn_gnode value, bool text)
{
    hn_grammar *g = s->g;
    hn_gnode end = mark(g, e->k, e->value_end);
    hn_gnode at = hn_g_seq(g, mark(g, e->k, text ? e->key_end : e->key_end_other), hn_g_seq(g, value, end));
    return hn_g_seq(g, mark(g, e->k, e->key_begin), hn_g_seq(g, hn_g_lex(g, key), at));
}

/* One argument as its schemas have it: as text where it may be a string, else as JSON. Where the marks do not tell
 * which, texts that are read as JSON are that. */
static hn_gnode argument(hn_schema *s, const each *e, hn_lang key, const hn_nodes *way, uint32_t n_way)
{
    hn_gnode kind[2];
    uint32_t n = 0;
    const allowed a = e->json ? (allowed){ .types = HN_T_ALL } : allowed_by(s, way, n_way);
    bool text = !e->json && a.types & HN_T_STRING, other = e->json || a.types & ~(uint32_t)HN_T_STRING;
    if (text) {
        bool told = !other || strcmp(e->key_end, e->key_end_other) != 0;
        hn_lang strings = told ? a.strings : hn_lang_and(s->l, a.strings, hn_lang_not(s->l, read_as(s->l, a.types)));
        kind[n++] = one_argument(s, e, key, raw_string(s, e, strings), true);
    }
    if (other && n_way) {
        hn_gnode *value = hn_arena_alloc(s->arena, n_way * sizeof *value);
        if (!value) hn_schema_no_memory(s);
        for (uint32_t i = 0; value && i < n_way; i++) value[i] = hn_g_rule(s->g, hn_schema_rule(s, &way[i]));
        if (value) kind[n++] = one_argument(s, e, key, hn_g_alt(s->g, value, n_way), false);
    }
    return n ? hn_g_alt(s->g, kind, n) : HN_G_FAIL;
}

/* Arguments of a tool that says nothing of their names; value: schemas that each has, none: it may be anything. */
static hn_gnode free_arguments(hn_schema *s, const each *e, const hn_nodes *value)
{
    enum { MOST = 16, LONGEST = 64 };
    hn_grammar *g = s->g;
    hn_lang key = hn_lang_repeat(s->l, signs(s->l, false), 1, LONGEST);
    hn_nodes any = { 0 };
    bool text = !e->json && strcmp(e->key_end, e->key_end_other) == 0;
    hn_gnode one;
    if (value->n) one = argument(s, e, key, value, 1);
    else if (text) one = one_argument(s, e, key, raw_string(s, e, HN_LANG_ALL), true);
    else one = one_argument(s, e, key, hn_g_rule(g, hn_schema_rule(s, &any)), false);
    hn_gnode more = hn_g_rep(g, hn_g_seq(g, mark(g, e->k, e->separator), one), 0, MOST - 1);
    return hn_g_alt(g, (hn_gnode[]){ HN_G_EMPTY, hn_g_seq(g, one, more) }, 2);
}

/* Arguments in any order, each at most once: so many that all sets of them are few enough. */
static hn_gnode in_any_order(hn_schema *s, const each *e, const hn_gnode *one, uint32_t n, uint32_t must)
{
    hn_grammar *g = s->g;
    uint32_t sets = 1u << n;
    hn_gnode separator = mark(g, e->k, e->separator), way[32];
    hn_gnode *at = hn_arena_alloc(s->arena, sets * sizeof *at); /* behind those of a set */
    if (!at) {
        hn_schema_no_memory(s);
        return HN_G_FAIL;
    }
    for (uint32_t set = sets; set-- > 0;) {
        uint32_t k = 0;
        if ((set & must) == must) way[k++] = HN_G_EMPTY;
        for (uint32_t i = 0; i < n; i++)
            if (!(set >> i & 1)) {
                hn_gnode with = hn_g_seq(g, one[i], at[set | 1u << i]);
                way[k++] = set ? hn_g_seq(g, separator, with) : with;
            }
        at[set] = hn_g_alt(g, way, k);
    }
    return at[0];
}

/* … else in the order of the schema. */
static hn_gnode in_order(hn_schema *s, const each *e, const hn_gnode *one, uint32_t n, const bool *must)
{
    hn_grammar *g = s->g;
    hn_gnode at[2] = { HN_G_EMPTY, HN_G_EMPTY }; /* behind argument i: none has come, some have */
    for (uint32_t i = n; i-- > 0;) {
        hn_gnode with = hn_g_seq(g, one[i], at[1]), next = hn_g_seq(g, mark(g, e->k, e->separator), with);
        at[0] = must[i] ? with : hn_g_alt(g, (hn_gnode[]){ with, at[0] }, 2);
        at[1] = must[i] ? next : hn_g_alt(g, (hn_gnode[]){ next, at[1] }, 2);
    }
    return at[0];
}

/* How many arguments may come in any order: the sets of those of all tools are to be at most so many. */
static uint32_t order_free(const hn_call_kit *k)
{
    enum { SETS = 4096, MOST = 8 };
    uint32_t n = 0;
    while (n < MOST && ((uint64_t)k->n_tool << (n + 1)) <= SETS) n++;
    return n;
}

static void set_style(hn_schema *s, const hn_call_kit *k)
{
    hn_call_mark quote;
    s->style.python = k->f.shape == HN_CALLS_PYTHON;
    if (k->f.shape != HN_CALLS_GEMMA) return;
    hn_call_encode(&quote, k->v, "<|\"|>", false);
    s->style.bare = true;
    s->style.quote = marks(s->g, &quote);
    s->style.inside = text_without(s->l, k->v, &quote);
}

/* ---- parameters -------------------------------------------------------------------------------------------- */

typedef struct parameter {
    hone_str name;
    hn_nodes *way; /* [n_way] what it may be: of each choice at the root the schemas that hold together */
    uint32_t n_way;
    uint32_t n_must; /* choices that require it … */
    uint32_t must;   /* … and the last of them: its number, from 1 */
} parameter;

typedef struct parameters {
    parameter *v; /* [n] */
    uint32_t n, cap;
    hn_keyset keys;
    uint32_t n_choice; /* at the root, 1 where there is none */
    bool open;         /* some choice names none, and lets any come */
    hn_nodes other;    /* schemas of parameters that are not named, where there is one choice */
} parameters;

static parameter *parameter_of(hn_schema *s, parameters *p, hone_str name)
{
    uint32_t at;
    if (!hn_keyset_put(&p->keys, s->arena, name, &at)) {
        hn_schema_no_memory(s);
        return NULL;
    }
    if (at < p->n) return &p->v[at];
    if (p->n == p->cap) {
        uint32_t cap = p->cap * 2 + 8;
        parameter *v = hn_arena_alloc(s->arena, cap * sizeof *v);
        if (!v) {
            hn_schema_no_memory(s);
            return NULL;
        }
        if (p->n) memcpy(v, p->v, p->n * sizeof *v);
        p->v = v;
        p->cap = cap;
    }
    p->v[p->n] = (parameter){ .name = name };
    return &p->v[p->n++];
}

/* One more way, unless it is there or nothing can be of it. */
static void put_way(hn_schema *s, parameter *a, const hn_nodes *conj)
{
    for (uint32_t i = 0; i < conj->n; i++)
        if (conj->v[i]->kind == HN_J_FALSE) return;
    for (uint32_t i = 0; i < a->n_way && hn_schema_work(s, 1); i++)
        if (a->way[i].n == conj->n && (!conj->n || !memcmp(a->way[i].v, conj->v, conj->n * sizeof *conj->v))) return;
    if ((a->n_way & (a->n_way - 1)) == 0) { /* it is full: of 1, 2, 4 … */
        hn_nodes *way = hn_arena_alloc(s->arena, (a->n_way * 2 + 1) * sizeof *way);
        if (!way) {
            hn_schema_no_memory(s);
            return;
        }
        if (a->n_way) memcpy(way, a->way, a->n_way * sizeof *way);
        a->way = way;
    }
    a->way[a->n_way++] = *conj;
}

/* This choice requires the parameter. */
static void put_must(hn_schema *s, parameters *p, hone_str name)
{
    parameter *a = parameter_of(s, p, name);
    if (!a || a->must == p->n_choice) return;
    a->must = p->n_choice;
    a->n_must++;
}

/* What one choice at the root says of parameters. */
static void gather(hn_schema *s, hn_mold *m, void *arg)
{
    parameters *p = arg;
    bool named = false, closed = false, has_list = false, has_more = false;
    hn_nodes more = { 0 };
    p->n_choice++;
    for (uint32_t k = 0; k < m->members.n && s->st == HONE_OK; k++) {
        const hn_jnode *o = m->members.v[k], *list = hn_jget(o, "properties"), *x = list ? list->first : NULL;
        const hn_jnode *other = hn_jget(o, "additionalProperties");
        has_list = has_list || list;
        has_more = has_more || other;
        closed = closed || (other && other->kind == HN_J_FALSE);
        if (other && other->kind != HN_J_TRUE) hn_schema_put(s, &more, other);
        if (list && list->kind != HN_J_OBJECT) hn_schema_wrong(s, list, "an object of schemas");
        for (; x && hn_schema_work(s, 4); x = x->next) {
            bool declared, again = false;
            for (uint32_t i = 0; i < k; i++)
                again = again || hn_jget_str(hn_jget(m->members.v[i], "properties"), x->key);
            parameter *a = again ? NULL : parameter_of(s, p, x->key);
            named = true;
            if (!a) continue;
            hn_nodes conj = hn_mold_property(s, m, x->key, &declared);
            put_way(s, a, &conj);
            if (hn_mold_tagged(m, x->key)) put_must(s, p, x->key);
        }
    }
    p->open = p->open || (!named && !closed && (has_more || !has_list));
    p->other = p->n_choice == 1 ? more : (hn_nodes){ 0 };
    for (uint32_t k = 0; k < m->members.n && s->st == HONE_OK; k++) {
        const hn_jnode *required = hn_jget(m->members.v[k], "required");
        bool flag = required && (required->kind == HN_J_TRUE || required->kind == HN_J_FALSE);
        if (required && required->kind != HN_J_ARRAY && !flag) hn_schema_wrong(s, required, "an array of names");
        for (const hn_jnode *x = required ? required->first : NULL; x && hn_schema_work(s, 1); x = x->next) {
            bool declared = false;
            for (uint32_t i = 0; i < m->members.n && x->kind == HN_J_STRING && !declared; i++)
                declared = hn_jget_str(hn_jget(m->members.v[i], "properties"), x->str);
            if (declared) put_must(s, p, x->str);
            else hn_schema_cannot(s, x, "calls in the format of this template name all they require in properties");
        }
    }
}

static hn_gnode arguments_each(hn_schema *s, const hn_jnode *root, void *arg)
{
    const each *e = arg;
    hn_mold m = hn_mold_new(false);
    parameters p = { 0 };
    static const char *const refused[] = { "minProperties", "maxProperties", "patternProperties", "not" };
    set_style(s, e->k);
    hn_mold_add(s, &m, root);
    for (uint32_t k = 0; k < m.members.n; k++)
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
            const hn_jnode *x = hn_jget(m.members.v[k], refused[i]);
            if (x) hn_schema_cannot(s, x, "the calls of this template do not have it");
        }
    for (uint32_t k = 0; k < m.members.n; k++)
        if (hn_schema_names(s, m.members.v[k]))
            hn_schema_cannot(s, hn_jget(m.members.v[k], "propertyNames"), "the calls of this template do not have it");
    if (m.finite) hn_schema_cannot(s, root, "the calls of this template have no lists of values");
    for (uint32_t i = 0; i < m.n_choice; i++)
        hn_schema_cannot(s, m.choice[i].list, "the calls of this template take what any of them lets in");
    hn_mold_choose(s, &m, gather, &p);
    if (s->st != HONE_OK) return HN_G_FAIL;
    if (!p.n && p.open) return free_arguments(s, e, &p.other);
    uint32_t musts = 0;
    hn_gnode *one = hn_arena_alloc(s->arena, (p.n + 1) * sizeof *one);
    bool *must = hn_arena_alloc(s->arena, (p.n + 1) * sizeof *must);
    if (!one || !must) {
        hn_schema_no_memory(s);
        return HN_G_FAIL;
    }
    for (uint32_t i = 0; i < p.n && s->st == HONE_OK; i++) {
        const parameter *a = &p.v[i];
        /* where the end of a name is a sign, one that has such signs stands in quotes */
        bool own = e->k->f.shape == HN_CALLS_GEMMA || e->k->f.shape == HN_CALLS_PYTHON;
        hn_lang key = own ? hn_schema_key(s, a->name) : hn_lang_text(s->l, a->name.ptr, a->name.len);
        one[i] = argument(s, e, key, a->way, a->n_way);
        must[i] = a->n_must == p.n_choice;
        if (must[i] && i < 32) musts |= 1u << i;
    }
    if (s->st != HONE_OK) return HN_G_FAIL;
    return p.n <= order_free(e->k) ? in_any_order(s, e, one, p.n, musts) : in_order(s, e, one, p.n, must);
}

/* ---- arguments of one tool ------------------------------------------------------------------------------- */

/* As it is written, with "type": "object" in front where it says no type. */
static char *as_written(const hn_call_tool *t)
{
    const char *type = json_object_get(t->schema, "type") ? "" : "\"type\":\"object\",";
    size_t n = t->written.len + 32;
    char *s = malloc(n);
    if (s) snprintf(s, n, "{%s%.*s", type, (int)(t->written.len - 1), t->written.ptr + 1);
    return s;
}

/* The schema with "type": "object", malloc'ed; loose: nothing else is asked. NULL: out of memory. */
static char *schema_text(const hn_call_tool *t, bool loose)
{
    if (!loose && t->schema && t->written.len && t->written.len < INT_MAX) return as_written(t);
    json_t *o = t->schema && !loose ? json_copy(t->schema) : json_object();
    bool ok = o && (json_object_get(o, "type") || json_object_set_new(o, "type", json_string("object")) == 0);
    char *s = ok ? hn_json_dump(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return s;
}

static hone_status arguments(hn_grammar *g, const hn_call_kit *k, const hn_call_tool *t, bool loose, hn_gnode *out,
                             hone_error *err)
{
    hn_schema_rules rules = { .strict = t->strict, .lenient = !t->strict };
    each e = how_each(k, t);
    bool json = k->f.shape == HN_CALLS_JSON || k->f.shape == HN_CALLS_NAMED || k->f.shape == HN_CALLS_HARMONY;
    char *text = schema_text(t, loose);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "schema of tool %s", t->name);
    hone_status st = hn_schema_compile_as(g, text, strlen(text), &rules, json ? NULL : arguments_each, &e, out, err);
    free(text);
    return st;
}

/* ---- kinds of arguments ---------------------------------------------------------------------------------- */

/* Each parameter may be as much work as a schema, until four of them were: then it is little. What cannot be told of
 * one is told of the others. */
static uint32_t kinds_of(hn_schema *s, uint64_t *spent, const hn_nodes *way, uint32_t n)
{
    static const uint32_t kind[][2] = { { HN_T_NULL, HN_VALUE_NULL },     { HN_T_TRUE, HN_VALUE_BOOL },
                                        { HN_T_NUMBER, HN_VALUE_NUMBER }, { HN_T_STRING, HN_VALUE_STRING },
                                        { HN_T_ARRAY, HN_VALUE_ARRAY },   { HN_T_OBJECT, HN_VALUE_OBJECT } };
    enum { MANY = 4 * HN_SCHEMA_WORK, LITTLE = 1024 };
    uint32_t begin = *spent < MANY ? 0 : HN_SCHEMA_WORK - LITTLE, kinds = 0;
    s->work = begin;
    uint32_t types = allowed_by(s, way, n).types;
    *spent += s->work - begin;
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (types & kind[i][0]) kinds |= kind[i][1];
    if (s->st == HONE_OK || s->st == HONE_E_NOMEM) return kinds;
    s->st = HONE_OK;
    return 0;
}

/* No grammar, but the kinds of values that it would be made of. */
static hn_gnode kinds_each(hn_schema *s, const hn_jnode *root, void *arg)
{
    hn_call_tool *t = arg;
    parameters p = { 0 };
    hn_mold m = hn_mold_new(false);
    uint64_t spent = 0;
    s->types_only = true;
    hn_mold_add(s, &m, root);
    hn_mold_choose(s, &m, gather, &p);
    if (s->st != HONE_OK && s->st != HONE_E_NOMEM) { /* more choices than can be looked at: what holds in all of them */
        s->st = HONE_OK;
        s->work = 0;
        p = (parameters){ 0 };
        gather(s, &m, &p);
    }
    t->argument = calloc(p.n + 1, sizeof *t->argument);
    if (!t->argument) hn_schema_no_memory(s);
    if (p.other.n) t->other_kinds = kinds_of(s, &spent, &p.other, 1);
    for (uint32_t i = 0; t->argument && i < p.n && s->st == HONE_OK; i++) {
        char *name = strndup(p.v[i].name.ptr, p.v[i].name.len);
        if (!name) hn_schema_no_memory(s);
        else t->argument[t->n_argument++] = (hn_call_argument){ name, kinds_of(s, &spent, p.v[i].way, p.v[i].n_way) };
    }
    return HN_G_EMPTY;
}

hone_status hn_call_kit_kinds(hn_call_kit *k, hone_error *err)
{
    hone_status st = HONE_OK;
    for (size_t i = 0; i < k->n_tool && st == HONE_OK && k->f.shape == HN_CALLS_TAGGED; i++) {
        hn_call_tool *t = &k->tool[i];
        const hn_schema_rules rules = { .lenient = !t->strict };
        hone_error why;
        hn_gnode root;
        if (!t->schema || !t->offered) continue;
        hn_grammar *g;
        if ((st = hn_grammar_new(&g, err)) != HONE_OK) break;
        char *text = schema_text(t, false);
        if (!text) st = HN_FAIL(err, HONE_E_NOMEM, "schema of tool %s", t->name);
        else if (hn_schema_compile_as(g, text, strlen(text), &rules, kinds_each, t, &root, &why) == HONE_E_NOMEM)
            st = HN_FAIL(err, HONE_E_NOMEM, "%s", why.message);
        free(text);
        hn_grammar_drop(g);
    }
    return st;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

typedef struct maker {
    hn_grammar *g;
    const hn_call_kit *k;
    hn_gnode space; /* between tokens of JSON */
} maker;

static hn_gnode space(hn_grammar *g)
{
    enum { INDENT = 20 };
    hn_langs *l = hn_grammar_lang(g);
    hn_lang blank = hn_lang_char(l, ' '),
            line = hn_lang_cat(l, hn_lang_char(l, '\n'), hn_lang_repeat(l, blank, 0, INDENT));
    return hn_g_lex(g, hn_lang_or_all(l, (hn_lang[]){ HN_LANG_EMPTY, blank, line }, 3));
}

static hn_gnode all(hn_grammar *g, const hn_gnode *n, size_t count)
{
    hn_gnode at = HN_G_EMPTY;
    while (count > 0) at = hn_g_seq(g, n[--count], at);
    return at;
}

/* "key": value */
static hn_gnode member(const maker *m, const char *key, hn_gnode value)
{
    hn_grammar *g = m->g;
    return all(g,
               (hn_gnode[]){ hn_g_text(g, "\""), hn_g_text(g, key), hn_g_text(g, "\""), m->space, hn_g_text(g, ":"),
                             m->space, value },
               7);
}

static hn_gnode quoted(const maker *m, const char *text)
{
    hn_grammar *g = m->g;
    return all(g, (hn_gnode[]){ hn_g_text(g, "\""), hn_g_text(g, text), hn_g_text(g, "\"") }, 3);
}

static hn_gnode json_call(const maker *m, const char *name, hn_gnode args)
{
    hn_grammar *g = m->g;
    const hn_call_format *f = &m->k->f;
    hn_gnode part[3], open = hn_g_seq(g, hn_g_text(g, "{"), m->space), close = hn_g_seq(g, m->space, hn_g_text(g, "}")),
                      comma = all(g, (hn_gnode[]){ m->space, hn_g_text(g, ","), m->space }, 3);
    size_t n = 0;
    if (f->name_is_key) return all(g, (hn_gnode[]){ open, member(m, name, args), close }, 3);
    if (f->bare) /* models trained on requests as APIs have them write this first */
        open = hn_g_seq(
            g, open,
            hn_g_alt(g, (hn_gnode[]){ HN_G_EMPTY, hn_g_seq(g, member(m, "type", quoted(m, "function")), comma) }, 2));
    hn_lang id = id_text(m->k, hn_grammar_lang(g));
    if (f->id == HN_CALL_ID_KEY && f->id_first) part[n++] = member(m, f->id_key, hn_g_string(g, id));
    part[n++] = member(m, f->name_key, quoted(m, name));
    part[n++] = member(m, f->args_key, args);
    if (f->id == HN_CALL_ID_KEY && !f->id_first) part[n++] = member(m, f->id_key, hn_g_string(g, id));
    hn_gnode at = close;
    while (n > 0) {
        n--;
        at = all(g, (hn_gnode[]){ n ? comma : HN_G_EMPTY, part[n], at }, 3);
    }
    return hn_g_seq(g, open, at);
}

/* From the name on, or the id in front of it, to the end of the arguments. */
static hn_gnode call_of(const maker *m, const char *name, hn_gnode args)
{
    hn_grammar *g = m->g;
    const hn_call_kit *k = m->k;
    const hn_call_format *f = &k->f;
    hn_langs *l = hn_grammar_lang(g);
    hn_gnode id = hn_g_lex(g, id_text(k, l)), id_end = mark(g, k, f->id_end), word = hn_g_text(g, name),
             name_end = mark(g, k, f->name_end);
    switch ((hn_call_shape)f->shape) {
    case HN_CALLS_JSON: return json_call(m, name, args);
    case HN_CALLS_HARMONY: return all(g, (hn_gnode[]){ word, mark(g, k, "<|message|>"), args }, 3);
    case HN_CALLS_PYTHON:
    case HN_CALLS_GEMMA: {
        hn_gnode close = hn_g_text(g, f->shape == HN_CALLS_PYTHON ? ")" : "}");
        return all(g, (hn_gnode[]){ word, name_end, args, close }, 4);
    }
    default: break;
    }
    hn_lang digits = hn_lang_repeat(l, hn_lang_set(l, &(hn_range){ '0', '9' }, 1), 1, 3);
    if (f->id == HN_CALL_ID_NAME)
        return all(
            g, (hn_gnode[]){ hn_g_text(g, "functions."), word, hn_g_text(g, ":"), hn_g_lex(g, digits), name_end, args },
            6);
    if (f->id == HN_CALL_ID_BEFORE) return all(g, (hn_gnode[]){ id, id_end, word, name_end, args }, 5);
    if (f->id == HN_CALL_ID_BEHIND) return all(g, (hn_gnode[]){ word, name_end, id, id_end, args }, 5);
    return all(g, (hn_gnode[]){ word, name_end, args }, 3);
}

/* gpt-oss, behind the role: reasoning, or a call in one of the ways its header is written. */
static hn_gnode header(const maker *m, hn_gnode *call, size_t n)
{
    hn_grammar *g = m->g;
    const hn_call_kit *k = m->k;
    hn_gnode kinds[] = { mark(g, k, "<|channel|>analysis<|message|>"),
                         hn_g_seq(g, mark(g, k, "<|channel|>commentary to=functions."), hn_g_alt(g, call, n)) };
    hn_gnode start = hn_g_alt(g, (hn_gnode[]){ HN_G_EMPTY, mark(g, k, "<|start|>assistant") }, 2);
    return hn_g_seq(g, start, hn_g_alt(g, kinds, 2));
}

/* Calls in the marks of their section; most: how many. first: the mark in front of the first one is to come. */
static hn_gnode section(const maker *m, hn_gnode one, bool several, bool first)
{
    hn_grammar *g = m->g;
    const hn_call_kit *k = m->k;
    const hn_call_format *f = &k->f;
    hn_gnode begin = mark(g, k, f->begin), whole = hn_g_seq(g, one, mark(g, k, f->end)),
             more = all(g, (hn_gnode[]){ mark(g, k, f->separator), begin, whole }, 3);
    hn_langs *l = hn_grammar_lang(g); /* tokens may hold the end of a mark and a line end */
    hn_lang blank = hn_lang_or(l, hn_lang_char(l, ' '), hn_lang_char(l, '\n'));
    return all(g,
               (hn_gnode[]){ mark(g, k, f->section_begin), first ? begin : HN_G_EMPTY, whole,
                             several ? hn_g_rep(g, more, 0, HN_LANG_ENDLESS) : HN_G_EMPTY, mark(g, k, f->section_end),
                             hn_g_lex(g, hn_lang_repeat(l, blank, 0, 2)) },
               6);
}

/* ---- grammars -------------------------------------------------------------------------------------------- */

static hone_status note(hn_call_kit *k, size_t tool, const char *what, const char *why, hone_error *err)
{
    char *s = NULL;
    size_t n = strlen(k->notes) + strlen(what) + strlen(why) + strlen(k->tool[tool].name) + 40;
    if (!(s = malloc(n))) return HN_FAIL(err, HONE_E_NOMEM, "notes of %zu bytes", n);
    snprintf(s, n, "%s%stools[%zu] %s: %s%s", k->notes, *k->notes ? "; " : "", tool, k->tool[tool].name, what, why);
    free(k->notes);
    k->notes = s;
    return HONE_OK;
}

/* One of both grammars; that of required calls, the last one, tells what of schemas is not enforced. *failed: the tool
 * whose schema cannot be, for HONE_E_UNSUPPORTED and HONE_E_ARG. */
static hone_status make(hn_grammar **out, hn_call_kit *k, bool required, bool one, const bool *loose, size_t *failed,
                        hone_error *err)
{
    hn_grammar *g;
    hone_status st = hn_grammar_new(&g, err);
    hn_gnode *call = calloc(k->n_tool + 1, sizeof *call);
    size_t n = 0;
    bool sections = k->section_begin.n || k->section_end.n, harmony = k->f.shape == HN_CALLS_HARMONY;
    *failed = k->n_tool;
    if (st != HONE_OK || !call) {
        free(call);
        if (st == HONE_OK) hn_grammar_drop(g);
        return st != HONE_OK ? st : HN_FAIL(err, HONE_E_NOMEM, "%zu tools", k->n_tool);
    }
    maker m = { g, k, space(g) };
    for (size_t i = 0; i < k->n_tool && st == HONE_OK; i++) {
        hn_gnode args = HN_G_FAIL;
        if (!k->tool[i].offered) continue;
        size_t told = strlen(hn_grammar_notes(g));
        st = arguments(g, k, &k->tool[i], loose[i], &args, err);
        const char *more = hn_grammar_notes(g) + told;
        if (st == HONE_OK && required && *more) st = note(k, i, "", more + (told ? 2 : 0), err);
        if (st != HONE_OK) *failed = i;
        else call[n++] = call_of(&m, k->tool[i].name, args);
    }
    hn_gnode root = HN_G_FAIL;
    if (st == HONE_OK && harmony) {
        root = required ? header(&m, call, n) : hn_g_alt(g, call, n);
    } else if (st == HONE_OK) {
        uint32_t rule = hn_g_new_rule(g, "call", strlen("call"));
        hn_g_set_rule(g, rule, hn_g_alt(g, call, n));
        root =
            section(&m, hn_g_rule(g, rule), !one && !k->f.single && (required || sections), !(required && k->f.bare));
    }
    free(call);
    if (st == HONE_OK) st = hn_grammar_finish(g, root, err);
    if (st == HONE_OK) *out = g;
    else hn_grammar_drop(g);
    return st;
}

hone_status hn_call_kit_grammars(hn_call_kit *k, bool one, hone_error *err)
{
    size_t offered = 0, failed;
    hone_status st = HONE_OK;
    hone_error why = { 0 };
    for (size_t i = 0; i < k->n_tool; i++) offered += k->tool[i].offered;
    if (!offered || k->f.shape == HN_CALLS_NONE) return HONE_OK;
    bool *loose = calloc(k->n_tool + 1, sizeof *loose);
    if (!loose) return HN_FAIL(err, HONE_E_NOMEM, "%zu tools", k->n_tool);
    while ((st = make(&k->section, k, false, one, loose, &failed, &why)) != HONE_OK && st != HONE_E_NOMEM &&
           failed < k->n_tool && !loose[failed] && !k->tool[failed].strict) {
        loose[failed] = true; /* what cannot be enforced is told */
        if ((st = note(k, failed, "its arguments are any object: ", why.message, err)) != HONE_OK) break;
    }
    if (st != HONE_OK && failed < k->n_tool && why.message[0])
        st = HN_FAIL(err, st, "tools[%zu] %s: %s", failed, k->tool[failed].name, why.message);
    else if (st != HONE_OK && why.message[0]) st = HN_FAIL(err, st, "tools: %s", why.message);
    if (st == HONE_OK) st = make(&k->required, k, true, one, loose, &failed, err);
    free(loose);
    return st;
}
