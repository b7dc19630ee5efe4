/* pattern: regular expressions of ECMAScript (ECMA-262, 22.2, as with the flag u) as languages. What needs a memory of
 * what was read (back-references), looks back, or looks ahead from inside a group is refused by name.
 *
 * Anchors may stand anywhere, so a part of an expression is four languages: with or without "the text begins at its
 * left edge", with or without "the text ends at its right edge". */
#include "text/grammar.h"
#include "base/utf8.h"

#include <stdlib.h>

enum { DEEPEST = 200, COUNT_MAX = 1000000 };

typedef enum look { NO_LOOK, AHEAD, NOT_AHEAD } look;

typedef struct part {
    hn_lang t[2][2]; /* [begins here][ends here] */
    look look;       /* it takes nothing: what comes must begin so, or must not */
} part;

typedef struct reader {
    hn_langs *l;
    const char *begin, *p, *end;
    const char *what;
    hone_error *err;
    int depth;
    bool whole; /* all of the text must match */
} reader;

static hone_status wrong(reader *r, hone_status st, const char *why)
{
    return HN_FAIL(r->err, st, "%s, character %zu: %s", r->what, (size_t)(r->p - r->begin) + 1, why);
}

static hone_status syntax(reader *r, const char *why) { return wrong(r, HONE_E_ARG, why); }

static bool is(const reader *r, char c) { return r->p < r->end && *r->p == c; }

static bool next_is(const reader *r, const char *s)
{
    size_t n = strlen(s);
    return (size_t)(r->end - r->p) >= n && memcmp(r->p, s, n) == 0;
}

static bool take(reader *r, const char *s)
{
    if (!next_is(r, s)) return false;
    r->p += strlen(s);
    return true;
}

static part plain(hn_lang t) { return (part){ .t = { { t, HN_LANG_NONE }, { HN_LANG_NONE, HN_LANG_NONE } } }; }

static bool anchored(const part *x)
{
    return x->t[0][1] != HN_LANG_NONE || x->t[1][0] != HN_LANG_NONE || x->t[1][1] != HN_LANG_NONE;
}

/* x, then y. Where x ends the text, y is empty; where y begins it, x is. */
static part then(hn_langs *l, const part *x, const part *y)
{
    part r = plain(HN_LANG_NONE);
    for (int k = 0; k < 16; k++) {
        int xb = k & 1, xe = k >> 1 & 1, yb = k >> 2 & 1, ye = k >> 3;
        hn_lang a = x->t[xb][xe], b = y->t[yb][ye];
        if (a == HN_LANG_NONE || b == HN_LANG_NONE) continue;
        if (xe) b = hn_lang_accepts(l, b) ? HN_LANG_EMPTY : HN_LANG_NONE;
        if (yb) a = hn_lang_accepts(l, a) ? HN_LANG_EMPTY : HN_LANG_NONE;
        hn_lang *to = &r.t[xb | yb][xe | ye];
        *to = hn_lang_or(l, *to, hn_lang_cat(l, a, b));
    }
    return r;
}

/* ---- characters and classes --------------------------------------------------------------------------- */

static const hn_range digits[] = { { '0', '9' } };
static const hn_range words[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
static const hn_range spaces[] = { { 9, 13 },          { ' ', ' ' },       { 0xA0, 0xA0 },     { 0x1680, 0x1680 },
                                   { 0x2000, 0x200A }, { 0x2028, 0x2029 }, { 0x202F, 0x202F }, { 0x205F, 0x205F },
                                   { 0x3000, 0x3000 }, { 0xFEFF, 0xFEFF } };
static const hn_range line_ends[] = { { '\n', '\n' }, { '\r', '\r' }, { 0x2028, 0x2029 } };
#define SET(l, r) hn_lang_set((l), (r), sizeof(r) / sizeof *(r))

/* \p{…}: the general categories that utf8.h tells apart. */
static hone_status property(reader *r, hn_lang *out)
{
    static const struct {
        const char *name;
        unsigned classes;
    } known[] = {
        { "L", 1u << HN_CLASS_UPPER | 1u << HN_CLASS_LOWER | 1u << HN_CLASS_LETTER },
        { "Letter", 1u << HN_CLASS_UPPER | 1u << HN_CLASS_LOWER | 1u << HN_CLASS_LETTER },
        { "Ll", 1u << HN_CLASS_LOWER },
        { "Lowercase_Letter", 1u << HN_CLASS_LOWER },
        { "M", 1u << HN_CLASS_MARK },
        { "Mark", 1u << HN_CLASS_MARK },
        { "N", 1u << HN_CLASS_NUMBER },
        { "Number", 1u << HN_CLASS_NUMBER },
        { "P", 1u << HN_CLASS_PUNCT },
        { "Punctuation", 1u << HN_CLASS_PUNCT },
        { "S", 1u << HN_CLASS_SYMBOL },
        { "Symbol", 1u << HN_CLASS_SYMBOL },
    };
    if (!take(r, "{")) return syntax(r, "\\p without {…}");
    const char *name = r->p;
    while (r->p < r->end && *r->p != '}') r->p++;
    size_t n = (size_t)(r->p - name);
    if (!take(r, "}")) return syntax(r, "\\p{ without }");
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strlen(known[k].name) != n || memcmp(known[k].name, name, n) != 0) continue;
        const hn_class_table *t = hn_class_table_get();
        hn_lang set = HN_LANG_NONE;
        hn_range some[512];
        size_t m = 0;
        for (uint32_t c = 0; c <= 0x10FFFF;) {
            hn_class cls = hn_class_of(t, c);
            uint32_t to = c;
            while (to < 0x10FFFF && hn_class_of(t, to + 1) == cls) to++;
            if (known[k].classes >> cls & 1) some[m++] = (hn_range){ c, to };
            if (m == 512) {
                set = hn_lang_or(r->l, set, hn_lang_set(r->l, some, m));
                m = 0;
            }
            c = to + 1;
        }
        *out = hn_lang_or(r->l, set, hn_lang_set(r->l, some, m));
        return HONE_OK;
    }
    return wrong(r, HONE_E_UNSUPPORTED, "a Unicode property other than L, Ll, M, N, P, S");
}

static bool hex_number(reader *r, int n, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++) {
        if (r->p + i >= r->end) return false;
        char c = r->p[i];
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return false;
        v = v * 16 + (uint32_t)d;
    }
    r->p += n;
    *out = v;
    return true;
}

/* Behind \u. */
static hone_status unicode_escape(reader *r, uint32_t *cp)
{
    uint32_t low;
    if (take(r, "{")) {
        int n = 0;
        while (r->p + n < r->end && r->p[n] != '}') n++;
        if (n < 1 || n > 7 || !hex_number(r, n, cp) || *cp > 0x10FFFF || !take(r, "}"))
            return syntax(r, "\\u{…} with something else than a code point");
    } else if (!hex_number(r, 4, cp)) {
        return syntax(r, "\\u without four hexadecimal digits");
    } else if (*cp >= 0xD800 && *cp < 0xDC00 && next_is(r, "\\u")) {
        const char *back = r->p;
        r->p += 2;
        if (hex_number(r, 4, &low) && low >= 0xDC00 && low < 0xE000)
            *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
        else r->p = back;
    }
    if (*cp >= 0xD800 && *cp < 0xE000) return wrong(r, HONE_E_UNSUPPORTED, "half of a surrogate pair");
    return HONE_OK;
}

/* Behind the backslash: a class (*set), or one character (*set HN_LANG_NONE). */
static hone_status escape(reader *r, bool in_class, uint32_t *cp, hn_lang *set)
{
    hn_langs *l = r->l;
    *set = HN_LANG_NONE;
    if (r->p == r->end) return syntax(r, "a backslash at the end");
    char c = *r->p++;
    switch (c) {
    case 'd': *set = SET(l, digits); return HONE_OK;
    case 'D': *set = hn_lang_others(l, SET(l, digits)); return HONE_OK;
    case 'w': *set = SET(l, words); return HONE_OK;
    case 'W': *set = hn_lang_others(l, SET(l, words)); return HONE_OK;
    case 's': *set = SET(l, spaces); return HONE_OK;
    case 'S': *set = hn_lang_others(l, SET(l, spaces)); return HONE_OK;
    case 'p': return property(r, set);
    case 'P': {
        hone_status st = property(r, set);
        if (st == HONE_OK) *set = hn_lang_others(l, *set);
        return st;
    }
    case 't': *cp = '\t'; return HONE_OK;
    case 'n': *cp = '\n'; return HONE_OK;
    case 'v': *cp = '\v'; return HONE_OK;
    case 'f': *cp = '\f'; return HONE_OK;
    case 'r': *cp = '\r'; return HONE_OK;
    case 'c':
        if (r->p == r->end || (*r->p | 32) < 'a' || (*r->p | 32) > 'z') return syntax(r, "\\c without a letter");
        *cp = (uint32_t)*r->p++ & 31;
        return HONE_OK;
    case 'x': return hex_number(r, 2, cp) ? HONE_OK : syntax(r, "\\x without two hexadecimal digits");
    case 'u': return unicode_escape(r, cp);
    case 'b':
        *cp = '\b';
        if (in_class) return HONE_OK;
        r->p -= 2;
        return wrong(r, HONE_E_UNSUPPORTED, "\\b, the edge of a word");
    case 'B': r->p -= 2; return wrong(r, HONE_E_UNSUPPORTED, "\\B, no edge of a word");
    case 'k': r->p -= 2; return wrong(r, HONE_E_UNSUPPORTED, "a back-reference");
    default: break;
    }
    if (c == '0' && !(r->p < r->end && *r->p >= '0' && *r->p <= '9')) {
        *cp = 0;
        return HONE_OK;
    }
    r->p--;
    if (c >= '0' && c <= '9') return wrong(r, HONE_E_UNSUPPORTED, "a back-reference, or an octal number");
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return syntax(r, "an escape that ECMAScript does not have");
    if ((unsigned char)c >= 0x80) return syntax(r, "a backslash before a character that needs none");
    *cp = (uint32_t)(unsigned char)c;
    r->p++;
    return HONE_OK;
}

static hone_status character(reader *r, uint32_t *cp)
{
    size_t used;
    int32_t c = hn_utf8_next((const unsigned char *)r->p, (size_t)(r->end - r->p), &used);
    if (c < 0) return syntax(r, "bytes that are no UTF-8");
    r->p += used;
    *cp = (uint32_t)c;
    return HONE_OK;
}

static hone_status class_atom(reader *r, uint32_t *cp, hn_lang *set)
{
    *set = HN_LANG_NONE;
    if (take(r, "\\")) return escape(r, true, cp, set);
    return character(r, cp);
}

/* Behind the opening bracket. */
static hone_status char_class(reader *r, hn_lang *out)
{
    bool negative = take(r, "^");
    hn_lang all = HN_LANG_NONE, set, other;
    uint32_t lo, hi;
    hone_status st;
    while (!is(r, ']')) {
        if (r->p == r->end) return syntax(r, "a class without its ]");
        if ((st = class_atom(r, &lo, &set)) != HONE_OK) return st;
        if (set == HN_LANG_NONE && is(r, '-') && !next_is(r, "-]")) {
            r->p++;
            if (r->p == r->end) return syntax(r, "a class without its ]");
            if ((st = class_atom(r, &hi, &other)) != HONE_OK) return st;
            if (other != HN_LANG_NONE) return syntax(r, "a range up to a class");
            if (hi < lo) return syntax(r, "a range whose end comes before its beginning");
            set = hn_lang_set(r->l, &(hn_range){ lo, hi }, 1);
        } else if (set == HN_LANG_NONE) {
            set = hn_lang_char(r->l, lo);
        }
        all = hn_lang_or(r->l, all, set);
    }
    r->p++;
    *out = negative ? hn_lang_others(r->l, all) : all;
    return HONE_OK;
}

/* ---- structure ----------------------------------------------------------------------------------------------- */

static hone_status alternatives(reader *r, part *out);

static hone_status group(reader *r, part *out)
{
    if (next_is(r, "?<=") || next_is(r, "?<!")) return wrong(r, HONE_E_UNSUPPORTED, "a look-around that looks back");
    look kind = next_is(r, "?=") ? AHEAD : next_is(r, "?!") ? NOT_AHEAD : NO_LOOK;
    if (kind && r->depth > 0) return wrong(r, HONE_E_UNSUPPORTED, "a look-around inside a group");
    if (kind) r->p += 2;
    else if (take(r, "?<")) {
        while (r->p < r->end && *r->p != '>') r->p++;
        if (!take(r, ">")) return syntax(r, "a name of a group without >");
    } else if (!take(r, "?:") && is(r, '?')) {
        return wrong(r, HONE_E_UNSUPPORTED, "a group of this kind");
    }
    if (++r->depth > DEEPEST) return wrong(r, HONE_E_UNSUPPORTED, "groups within each other, more than 200 deep");
    hone_status st = alternatives(r, out);
    r->depth--;
    if (st != HONE_OK) return st;
    out->look = kind;
    return take(r, ")") ? HONE_OK : syntax(r, "a group without its )");
}

static bool number(reader *r, uint32_t *v)
{
    const char *at = r->p;
    uint64_t n = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        n = n * 10 + (uint64_t)(*r->p++ - '0');
        if (n > COUNT_MAX) n = COUNT_MAX + 1;
    }
    *v = (uint32_t)n;
    return r->p > at;
}

/* Does {m}, {m,} or {m,n} stand here? {,n} too: 0 to n elsewhere, and itself in ECMAScript without u. */
static bool counts(const reader *r)
{
    reader at = *r;
    uint32_t n;
    if (!take(&at, "{")) return false;
    bool least = number(&at, &n), comma = take(&at, ","), most = comma && number(&at, &n);
    return (least || most) && take(&at, "}");
}

static hone_status atom(reader *r, part *out)
{
    hn_langs *l = r->l;
    hn_lang set = HN_LANG_NONE;
    uint32_t cp = 0;
    hone_status st = HONE_OK;
    *out = plain(HN_LANG_NONE);
    if (take(r, "^") || take(r, "\\A")) {
        out->t[1][0] = HN_LANG_EMPTY;
        return HONE_OK;
    }
    if (take(r, "$") || take(r, "\\Z") || take(r, "\\z")) { /* of others: the end of the text, too */
        out->t[0][1] = HN_LANG_EMPTY;
        return HONE_OK;
    }
    if (take(r, "(")) return group(r, out);
    if (is(r, '*') || is(r, '+') || is(r, '?')) return syntax(r, "nothing that could be repeated");
    if (counts(r)) return syntax(r, "a count behind a count, or behind nothing, or without its least number: {0,n}");
    if (take(r, ".")) {
        set = hn_lang_others(l, SET(l, line_ends));
    } else if (take(r, "[")) {
        st = char_class(r, &set);
        *out = plain(set);
        return st;
    } else if (take(r, "\\")) {
        st = escape(r, false, &cp, &set);
    } else {
        st = character(r, &cp);
    }
    *out = plain(set != HN_LANG_NONE ? set : hn_lang_char(l, cp));
    return st;
}

/* *min, *max: of the quantifier that stands here; *is_one false: none does. */
static hone_status quantifier(reader *r, uint32_t *min, uint32_t *max, bool *is_one)
{
    const char *at = r->p;
    *is_one = true;
    if (take(r, "*")) *min = 0, *max = HN_LANG_ENDLESS;
    else if (take(r, "+")) *min = 1, *max = HN_LANG_ENDLESS;
    else if (take(r, "?")) *min = 0, *max = 1;
    else if (take(r, "{") && number(r, min)) {
        *max = *min;
        if (take(r, ",") && !number(r, max)) *max = HN_LANG_ENDLESS;
        if (!take(r, "}")) *is_one = false;
    } else {
        *is_one = false;
    }
    if (!*is_one) { /* a brace that counts nothing is itself */
        r->p = at;
        return HONE_OK;
    }
    if (*min > COUNT_MAX || (*max > COUNT_MAX && *max != HN_LANG_ENDLESS))
        return wrong(r, HONE_E_UNSUPPORTED, "a count of more than 1000000");
    if (*min > *max) return syntax(r, "{m,n} with m greater than n");
    take(r, "?"); /* a lazy one matches the same texts */
    return HONE_OK;
}

static hone_status repeated(reader *r, part *out)
{
    uint32_t min, max;
    bool is_one;
    hone_status st = atom(r, out);
    if (st == HONE_OK) st = quantifier(r, &min, &max, &is_one);
    if (st != HONE_OK || !is_one) return st;
    if (out->look) return syntax(r, "a look-ahead that is repeated");
    if (anchored(out)) {
        if (max > 1) return wrong(r, HONE_E_UNSUPPORTED, "an anchor inside a repetition");
        if (max == 0) *out = plain(HN_LANG_EMPTY);
        else if (min == 0) out->t[0][0] = hn_lang_or(r->l, out->t[0][0], HN_LANG_EMPTY);
        return HONE_OK;
    }
    *out = plain(hn_lang_repeat(r->l, out->t[0][0], min, max));
    return HONE_OK;
}

/* ---- looking ahead: what may come behind a place is known from the right ---------------------------------------- */

typedef struct rest { /* texts that may follow, up to the end: inside of the text, and where it begins */
    hn_lang inside, begin;
} rest;

static hn_lang end_of(hn_langs *l, hn_lang t, bool ends)
{
    return !ends ? t : hn_lang_accepts(l, t) ? HN_LANG_EMPTY : HN_LANG_NONE;
}

/* x, and then what r says. */
static rest before(hn_langs *l, const part *x, rest r)
{
    rest out = { HN_LANG_NONE, HN_LANG_NONE };
    hn_lang some = hn_lang_repeat(l, HN_LANG_ANY, 1, HN_LANG_ENDLESS);
    for (int ends = 0; ends < 2; ends++) {
        hn_lang t = x->t[0][ends], first = hn_lang_or(l, t, x->t[1][ends]), inside = end_of(l, r.inside, ends),
                begin = end_of(l, r.begin, ends);
        out.inside = hn_lang_or(l, out.inside, hn_lang_cat(l, t, inside));
        if (inside == begin) {
            out.begin = hn_lang_or(l, out.begin, hn_lang_cat(l, first, inside));
            continue;
        }
        out.begin = hn_lang_or(l, out.begin, hn_lang_cat(l, hn_lang_and(l, first, some), inside));
        if (hn_lang_accepts(l, first)) out.begin = hn_lang_or(l, out.begin, begin);
    }
    return out;
}

/* r where x stands in front of it, or does not. */
static rest looked(hn_langs *l, const part *x, rest r)
{
    hn_lang inside = hn_lang_or(l, hn_lang_cat(l, x->t[0][0], HN_LANG_ALL), x->t[0][1]),
            begin = hn_lang_or(l, hn_lang_cat(l, x->t[1][0], HN_LANG_ALL), x->t[1][1]);
    begin = hn_lang_or(l, begin, inside);
    if (x->look == NOT_AHEAD) inside = hn_lang_not(l, inside), begin = hn_lang_not(l, begin);
    return (rest){ hn_lang_and(l, r.inside, inside), hn_lang_and(l, r.begin, begin) };
}

/* The texts in which the parts [n] match, as one that begins and ends there. */
static part whole_texts(reader *r, const part *list, size_t n)
{
    hn_langs *l = r->l;
    part out = plain(HN_LANG_NONE);
    hn_lang tail = r->whole ? HN_LANG_EMPTY : HN_LANG_ALL, some = hn_lang_repeat(l, HN_LANG_ANY, 1, HN_LANG_ENDLESS);
    rest at = { tail, tail };
    for (size_t i = n; i-- > 0;) at = list[i].look ? looked(l, &list[i], at) : before(l, &list[i], at);
    if (!r->whole) at.begin = hn_lang_or(l, at.begin, hn_lang_cat(l, some, at.inside));
    out.t[1][1] = at.begin;
    return out;
}

static hone_status sequence(reader *r, part *out)
{
    part *list = NULL;
    size_t n = 0, cap = 0;
    bool looks = false;
    hone_status st = HONE_OK;
    while (st == HONE_OK && r->p < r->end && *r->p != '|' && *r->p != ')') {
        if (n == cap) {
            cap = cap * 2 + 16;
            part *p = realloc(list, cap * sizeof *p);
            if (!p) {
                st = HN_FAIL(r->err, HONE_E_NOMEM, "%s", r->what);
                break;
            }
            list = p;
        }
        st = repeated(r, &list[n++]);
        looks = looks || (st == HONE_OK && list[n - 1].look);
    }
    *out = st == HONE_OK && looks ? whole_texts(r, list, n) : plain(HN_LANG_EMPTY);
    for (size_t i = looks ? 0 : n; st == HONE_OK && i-- > 0;)
        *out = then(r->l, &list[i], out); /* from the end: see hn_lang_cat */
    free(list);
    return st;
}

/* One of the parts [n]: all at once, as adding each to those before takes the square of n. */
static hone_status one_of(reader *r, const part *list, size_t n, part *out)
{
    hn_lang *t = malloc(n * sizeof *t);
    if (!t) return HN_FAIL(r->err, HONE_E_NOMEM, "%s", r->what);
    for (int k = 0; k < 4; k++) {
        for (size_t i = 0; i < n; i++) t[i] = list[i].t[k >> 1][k & 1];
        out->t[k >> 1][k & 1] = hn_lang_or_all(r->l, t, n);
    }
    free(t);
    return HONE_OK;
}

static hone_status alternatives(reader *r, part *out)
{
    part *list = NULL;
    size_t n = 0, cap = 0;
    hone_status st = sequence(r, out);
    while (st == HONE_OK && is(r, '|')) {
        if (n + 1 >= cap) {
            cap = cap * 2 + 16;
            part *p = realloc(list, cap * sizeof *p);
            if (!p) {
                st = HN_FAIL(r->err, HONE_E_NOMEM, "%s", r->what);
                break;
            }
            list = p;
        }
        if (n == 0) list[n++] = *out;
        r->p++;
        st = sequence(r, &list[n++]);
    }
    if (st == HONE_OK && n > 0) st = one_of(r, list, n, out);
    free(list);
    return st;
}

hone_status hn_pattern_compile(hn_langs *l, const char *text, size_t len, bool whole, const char *what, hn_lang *out,
                               hone_error *err)
{
    reader r = { .l = l, .begin = text, .p = text, .end = text + len, .what = what, .err = err, .whole = whole };
    part x;
    *out = HN_LANG_NONE;
    if (len > HN_GRAMMAR_TEXT)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %zu bytes; expected at most %d", what, len, HN_GRAMMAR_TEXT);
    hone_status st = alternatives(&r, &x);
    if (st == HONE_OK && r.p < r.end) st = syntax(&r, "a ) that nothing has opened");
    if (st != HONE_OK) return st;
    hn_lang t = HN_LANG_NONE;
    for (int k = 0; k < 4; k++) {
        hn_lang y = x.t[k >> 1][k & 1];
        if (!whole && !(k >> 1)) y = hn_lang_cat(l, HN_LANG_ALL, y);
        if (!whole && !(k & 1)) y = hn_lang_cat(l, y, HN_LANG_ALL);
        t = hn_lang_or(l, t, y);
    }
    *out = t;
    return hn_langs_check(l, err);
}
