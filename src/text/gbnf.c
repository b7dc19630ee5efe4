/* gbnf: grammars as llama.cpp writes them (its grammars/README.md): name ::= alternatives, with literals, classes,
 * groups, repetitions and comments; the text is what rule root matches. Rules that are not defined, and left recursion,
 * are refused by name; rules that nothing reaches are told. Of token literals those with a number are read (<[7]>):
 * names would need a vocabulary. */
#include "text/grammar.h"
#include "base/utf8.h"

#include <stdlib.h>

enum { DEEPEST = 200, COUNT_MAX = 1000000 };

typedef struct name_slot {
    const char *name;
    size_t len;
    uint32_t rule;
    bool defined, used;
} name_slot;

typedef struct reader {
    hn_grammar *g;
    hn_langs *l;
    const char *begin, *p, *end;
    hone_error *err;
    int depth;
    name_slot *names;
    size_t n_name, cap_name;
    uint32_t *slot; /* name + 1 by hash */
    size_t n_slot;
} reader;

static hone_status wrong(reader *r, const char *expected)
{
    size_t line = 1, column = 1;
    for (const char *p = r->begin; p < r->p; p++) {
        column = *p == '\n' ? 1 : column + (((unsigned char)*p & 0xC0) != 0x80);
        line += *p == '\n';
    }
    size_t n = (size_t)(r->end - r->p);
    return HN_FAIL(r->err, HONE_E_ARG, "grammar: line %zu column %zu: expected %s, seen %s", line, column, expected,
                   n ? HN_ESC(r->p, n > 20 ? 20 : n) : "the end");
}

static bool is(const reader *r, char c) { return r->p < r->end && *r->p == c; }

static bool take(reader *r, char c)
{
    if (!is(r, c)) return false;
    r->p++;
    return true;
}

/* Blanks and comments; line ends too where lines says so. */
static void skip(reader *r, bool lines)
{
    while (r->p < r->end) {
        if (*r->p == '#')
            while (r->p < r->end && *r->p != '\n') r->p++;
        else if (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || (lines && *r->p == '\n')) r->p++;
        else return;
    }
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* ---- names of rules -------------------------------------------------------------------------------- */

static uint64_t name_hash(const char *s, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = hn_mix64(h ^ (unsigned char)s[i]);
    return h;
}

static bool more_names(reader *r)
{
    size_t cap = r->cap_name * 2 + 64, n_slot = 256;
    while (n_slot < cap * 2) n_slot *= 2;
    name_slot *p = realloc(r->names, cap * sizeof *p);
    if (p) r->names = p;
    uint32_t *s = p ? calloc(n_slot, sizeof *s) : NULL;
    if (!s) return false;
    free(r->slot);
    r->slot = s;
    r->n_slot = n_slot;
    r->cap_name = cap;
    for (size_t i = 0; i < r->n_name; i++) {
        size_t at = name_hash(p[i].name, p[i].len) & (n_slot - 1);
        while (s[at]) at = (at + 1) & (n_slot - 1);
        s[at] = (uint32_t)i + 1;
    }
    return true;
}

/* The rule whose name stands here; NULL: out of memory. */
static name_slot *rule_name(reader *r)
{
    const char *s = r->p;
    while (r->p < r->end && is_name(*r->p)) r->p++;
    size_t n = (size_t)(r->p - s);
    if (r->n_name == r->cap_name && !more_names(r)) return NULL;
    size_t at = name_hash(s, n) & (r->n_slot - 1);
    for (; r->slot[at]; at = (at + 1) & (r->n_slot - 1)) {
        name_slot *x = &r->names[r->slot[at] - 1];
        if (x->len == n && memcmp(x->name, s, n) == 0) return x;
    }
    r->slot[at] = (uint32_t)r->n_name + 1;
    r->names[r->n_name] = (name_slot){ .name = s, .len = n, .rule = hn_g_new_rule(r->g, s, n) };
    return &r->names[r->n_name++];
}

/* ---- characters ---------------------------------------------------------------------------------------- */

static bool hex_number(reader *r, int n, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, r->p++) {
        if (r->p == r->end) return false;
        char c = *r->p;
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return false;
        *out = *out * 16 + (uint32_t)d;
    }
    return true;
}

static hone_status character(reader *r, uint32_t *cp)
{
    if (!take(r, '\\')) {
        size_t used;
        if (r->p == r->end) return wrong(r, "a character");
        int32_t c = hn_utf8_next((const unsigned char *)r->p, (size_t)(r->end - r->p), &used);
        if (c < 0) return wrong(r, "UTF-8");
        r->p += used;
        *cp = (uint32_t)c;
        return HONE_OK;
    }
    static const char name[] = "nrt\\\"[]-^'/", means[] = "\n\r\t\\\"[]-^'/";
    char c = r->p < r->end ? *r->p : 0;
    const char *at = c ? strchr(name, c) : NULL;
    if (at) {
        r->p++;
        *cp = (uint32_t)means[at - name];
        return HONE_OK;
    }
    int n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!n) return wrong(r, "an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH or \\UHHHHHHHH");
    r->p++;
    if (!hex_number(r, n, cp)) return wrong(r, "a hexadecimal digit");
    if (*cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000)) return wrong(r, "a code point before here");
    return HONE_OK;
}

static hone_status literal(reader *r, hn_gnode *out)
{
    hn_lang *list = NULL, t = HN_LANG_EMPTY;
    size_t n = 0, cap = 0;
    hone_status st = HONE_OK;
    const char *begin = r->p - 1;
    while (st == HONE_OK && !take(r, '"')) { /* which may go over lines */
        uint32_t cp = 0;
        if (r->p == r->end) {
            r->p = begin;
            st = wrong(r, "a \" that closes what begins here");
        } else {
            st = character(r, &cp);
        }
        if (st == HONE_OK && n == cap) {
            cap = cap * 2 + 16;
            hn_lang *p = realloc(list, cap * sizeof *p);
            if (!p) st = HN_FAIL(r->err, HONE_E_NOMEM, "grammar");
            else list = p;
        }
        if (st == HONE_OK) list[n++] = hn_lang_char(r->l, cp);
    }
    while (st == HONE_OK && n > 0) t = hn_lang_cat(r->l, list[--n], t);
    free(list);
    *out = hn_g_lex(r->g, t);
    return st;
}

static hone_status char_class(reader *r, hn_gnode *out)
{
    bool negative = take(r, '^');
    hn_lang set = HN_LANG_NONE;
    while (!take(r, ']')) {
        uint32_t lo, hi;
        if (r->p == r->end) return wrong(r, "the closing ]");
        hone_status st = character(r, &lo);
        if (st != HONE_OK) return st;
        hi = lo;
        if (is(r, '-') && r->p + 1 < r->end && r->p[1] != ']') {
            r->p++;
            if ((st = character(r, &hi)) != HONE_OK) return st;
            if (hi < lo) return wrong(r, "a range whose end does not come before its beginning");
        }
        set = hn_lang_or(r->l, set, hn_lang_set(r->l, &(hn_range){ lo, hi }, 1));
    }
    if (negative) set = hn_lang_others(r->l, set);
    *out = hn_g_lex(r->g, set);
    return HONE_OK;
}

static bool number(reader *r, uint32_t *v)
{
    const char *at = r->p;
    uint64_t n = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (n <= COUNT_MAX) n = n * 10 + (uint64_t)(*r->p - '0');
    *v = (uint32_t)n;
    return r->p > at;
}

/* Behind the <. */
static hone_status token(reader *r, hn_gnode *out)
{
    uint32_t id;
    if (!take(r, '['))
        return HN_FAIL(r->err, HONE_E_UNSUPPORTED,
                       "grammar: <…> names a token; write its text instead, or its number: <[7]>");
    if (!number(r, &id) || id > COUNT_MAX) return wrong(r, "the number of a token, at most 1000000, before here");
    if (!take(r, ']') || !take(r, '>')) return wrong(r, "]>");
    *out = hn_g_token(r->g, (int32_t)id);
    return HONE_OK;
}

/* ---- structure ---------------------------------------------------------------------------------------------- */

static hone_status alternatives(reader *r, bool nested, hn_gnode *out);

static bool starts_element(const reader *r)
{
    return r->p < r->end && *r->p && (is_name(*r->p) || strchr("\"[(.<", *r->p) != NULL);
}

static hone_status element(reader *r, hn_gnode *out)
{
    if (take(r, '"')) return literal(r, out);
    if (take(r, '[')) return char_class(r, out);
    if (take(r, '.')) {
        *out = hn_g_lex(r->g, HN_LANG_ANY);
        return HONE_OK;
    }
    if (take(r, '(')) {
        if (++r->depth > DEEPEST) return wrong(r, "groups at most 200 deep");
        hone_status st = alternatives(r, true, out);
        r->depth--;
        if (st != HONE_OK) return st;
        skip(r, true);
        return take(r, ')') ? HONE_OK : wrong(r, "the closing )");
    }
    if (take(r, '<')) return token(r, out);
    name_slot *x = rule_name(r);
    if (!x) return HN_FAIL(r->err, HONE_E_NOMEM, "grammar");
    x->used = true;
    *out = hn_g_rule(r->g, x->rule);
    return HONE_OK;
}

static hone_status repetition(reader *r, bool nested, hn_gnode *x)
{
    for (;;) {
        uint32_t min = 0, max = HN_LANG_ENDLESS;
        const char *at = r->p;
        skip(r, nested);
        if (take(r, '*')) {
        } else if (take(r, '+')) {
            min = 1;
        } else if (take(r, '?')) {
            max = 1;
        } else if (take(r, '{')) {
            skip(r, nested);
            bool has_min = number(r, &min);
            skip(r, nested);
            if (take(r, ',')) {
                skip(r, nested);
                if (!number(r, &max)) max = HN_LANG_ENDLESS;
                skip(r, nested);
            } else if (has_min) {
                max = min;
            } else {
                return wrong(r, "a number");
            }
            if (!take(r, '}')) return wrong(r, "}");
            if (min > COUNT_MAX || (max > COUNT_MAX && max != HN_LANG_ENDLESS) || min > max)
                return wrong(r, "{m,n} with m ≤ n ≤ 1000000 before here");
        } else {
            r->p = at;
            return HONE_OK;
        }
        *x = hn_g_rep(r->g, *x, min, max);
    }
}

/* A name with ::= behind it begins the next rule. */
static bool starts_rule(reader *r)
{
    const char *at = r->p;
    while (r->p < r->end && is_name(*r->p)) r->p++;
    bool named = r->p > at;
    skip(r, false);
    named = named && r->end - r->p >= 3 && memcmp(r->p, "::=", 3) == 0;
    r->p = at;
    return named;
}

static hone_status sequence(reader *r, bool nested, hn_gnode *out)
{
    hn_gnode *list = NULL;
    size_t n = 0, cap = 0;
    hone_status st = HONE_OK;
    for (;;) {
        skip(r, nested);
        if (!starts_element(r)) break;
        if (starts_rule(r)) break;
        if (n == cap) {
            cap = cap * 2 + 16;
            hn_gnode *p = realloc(list, cap * sizeof *p);
            if (!p) {
                st = HN_FAIL(r->err, HONE_E_NOMEM, "grammar");
                break;
            }
            list = p;
        }
        if ((st = element(r, &list[n])) != HONE_OK || (st = repetition(r, nested, &list[n])) != HONE_OK) break;
        n++;
    }
    *out = HN_G_EMPTY;
    while (st == HONE_OK && n > 0) *out = hn_g_seq(r->g, list[--n], *out);
    free(list);
    return st;
}

static hone_status alternatives(reader *r, bool nested, hn_gnode *out)
{
    hn_gnode *list = NULL;
    size_t n = 0, cap = 0;
    hone_status st = HONE_OK;
    do {
        if (n == cap) {
            cap = cap * 2 + 8;
            hn_gnode *p = realloc(list, cap * sizeof *p);
            if (!p) {
                st = HN_FAIL(r->err, HONE_E_NOMEM, "grammar");
                break;
            }
            list = p;
        }
        skip(r, true); /* behind ::= and | a line may end */
        if ((st = sequence(r, nested, &list[n++])) != HONE_OK) break;
        skip(r, nested);
        const char *at = r->p;
        skip(r, true);
        if (!is(r, '|')) r->p = at; /* a | on the next line goes on */
    } while (take(r, '|'));
    if (st == HONE_OK) *out = hn_g_alt(r->g, list, n);
    free(list);
    return st;
}

static hone_status rule(reader *r)
{
    if (!is_name(*r->p)) return wrong(r, "the name of a rule");
    name_slot *x = rule_name(r);
    if (!x) return HN_FAIL(r->err, HONE_E_NOMEM, "grammar");
    size_t which = (size_t)(x - r->names);
    skip(r, false);
    if (r->end - r->p < 3 || memcmp(r->p, "::=", 3) != 0) return wrong(r, "::=");
    r->p += 3;
    if (x->defined) return HN_FAIL(r->err, HONE_E_ARG, "grammar: rule %s is defined twice", HN_ESC(x->name, x->len));
    x->defined = true;
    hn_gnode body = HN_G_FAIL;
    hone_status st = alternatives(r, false, &body);
    if (st != HONE_OK) return st;
    hn_g_set_rule(r->g, r->names[which].rule, body);
    skip(r, false);
    return r->p == r->end || *r->p == '\n' ? HONE_OK : wrong(r, "| or the end of the line");
}

static hone_status read_rules(reader *r, hn_gnode *root)
{
    hone_status st = HONE_OK;
    for (skip(r, true); r->p < r->end && st == HONE_OK; skip(r, true)) st = rule(r);
    if (st != HONE_OK) return st;
    const name_slot *first = NULL;
    for (size_t i = 0; i < r->n_name; i++) {
        const name_slot *x = &r->names[i];
        bool is_root = x->len == 4 && memcmp(x->name, "root", 4) == 0;
        if (!x->defined)
            return HN_FAIL(r->err, HONE_E_ARG, "grammar: rule %s is used but not defined", HN_ESC(x->name, x->len));
        if (is_root) first = x;
        else if (!x->used) hn_grammar_note(r->g, "rule %s is not used", HN_ESC(x->name, x->len));
    }
    if (!first) return HN_FAIL(r->err, HONE_E_ARG, "grammar: no rule root; expected root ::= …");
    *root = hn_g_rule(r->g, first->rule);
    return hn_grammar_check(r->g, r->err);
}

hone_status hn_gbnf_compile(hn_grammar *g, const char *text, size_t len, hn_gnode *root, hone_error *err)
{
    reader r = { .g = g, .l = hn_grammar_lang(g), .begin = text, .p = text, .end = text + len, .err = err };
    *root = HN_G_FAIL;
    if (len > HN_GRAMMAR_TEXT)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "grammar: %zu bytes; expected at most %d", len, HN_GRAMMAR_TEXT);
    hone_status st = read_rules(&r, root);
    free(r.names);
    free(r.slot);
    return st;
}
