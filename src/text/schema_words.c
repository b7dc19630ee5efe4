/* What the members of a mold say of one type of values, put together; formats and numbers as languages. */
#include "text/schema.h"

#include <stdlib.h>

enum { MULTIPLE_MAX = 10000, PART_MAX = 20, EXPONENT_DIGITS = 2 };

/* ---- counts ------------------------------------------------------------------------------------- */

static uint32_t count_of(hn_schema *s, const hn_jnode *x)
{
    hn_dec d;
    if (x->kind != HN_J_NUMBER || !hn_schema_number(s, &d, x->str) || d.negative || !hn_dec_whole(&d)) {
        hn_schema_wrong(s, x, "a whole number, not negative");
        return 0;
    }
    return d.point > 9 ? 1000000000u : hn_dec_rest(&d, 1000000000u);
}

uint32_t hn_mold_count(hn_schema *s, const hn_mold *m, const char *word, bool least, uint32_t none)
{
    uint32_t best = none;
    bool any = false;
    for (uint32_t i = 0; i < m->members.n; i++) {
        const hn_jnode *x = hn_jget(m->members.v[i], word);
        if (!x) continue;
        uint32_t c = count_of(s, x);
        if (!any || (least ? c > best : c < best)) best = c;
        any = true;
    }
    return best;
}

/* ---- numbers -------------------------------------------------------------------------------------- */

static void bound(hn_schema *s, hn_bounds *b, const hn_jnode *x, bool low, bool strict)
{
    hn_dec d;
    if (x->kind != HN_J_NUMBER) {
        hn_schema_wrong(s, x, "a number");
        return;
    }
    if (!hn_schema_number(s, &d, x->str)) {
        hn_schema_cannot(s, x, "a bound of more than 1000 digits");
        return;
    }
    bool *has = low ? &b->has_lo : &b->has_hi, *is_strict = low ? &b->lo_strict : &b->hi_strict;
    hn_dec *old = low ? &b->lo : &b->hi;
    int c = *has ? hn_dec_compare(&d, old) : low ? 1 : -1;
    if (c == 0) *is_strict = *is_strict || strict;
    if (low ? c > 0 : c < 0) {
        *old = d;
        *is_strict = strict;
    }
    *has = true;
}

hn_bounds hn_mold_bounds(hn_schema *s, const hn_mold *m)
{
    hn_bounds b = { 0 };
    for (uint32_t i = 0; i < m->members.n; i++) {
        const hn_jnode *o = m->members.v[i], *x;
        const hn_jnode *xlo = hn_jget(o, "exclusiveMinimum"), *xhi = hn_jget(o, "exclusiveMaximum");
        /* of draft 4: true makes the other word strict */
        bool lo_flag = xlo && (xlo->kind == HN_J_TRUE || xlo->kind == HN_J_FALSE);
        bool hi_flag = xhi && (xhi->kind == HN_J_TRUE || xhi->kind == HN_J_FALSE);
        if ((x = hn_jget(o, "minimum"))) bound(s, &b, x, true, lo_flag && xlo->kind == HN_J_TRUE);
        if ((x = hn_jget(o, "maximum"))) bound(s, &b, x, false, hi_flag && xhi->kind == HN_J_TRUE);
        if (xlo && !lo_flag) bound(s, &b, xlo, true, true);
        if (xhi && !hi_flag) bound(s, &b, xhi, false, true);
    }
    return b;
}

typedef struct digits { /* of a decimal that is not negative: before the point, at least "0"; behind it */
    const char *whole, *part;
    uint32_t n_whole, n_part;
} digits;

static bool digits_of(hn_schema *s, const hn_dec *d, digits *out)
{
    uint32_t n_whole = d->point > 0 ? (uint32_t)d->point : 1;
    uint32_t n_part = (int64_t)d->n - d->point > 0 ? (uint32_t)((int64_t)d->n - d->point) : 0;
    char *t = hn_arena_alloc(s->arena, n_whole + n_part + 1);
    if (!t) {
        hn_schema_no_memory(s);
        return false;
    }
    memset(t, '0', n_whole + n_part);
    int64_t at = (int64_t)n_whole - d->point; /* of the first digit */
    for (uint32_t i = 0; i < d->n; i++) t[at + i] = d->digit[i];
    *out = (digits){ .whole = t, .part = t + n_whole, .n_whole = n_whole, .n_part = n_part };
    return true;
}

static hn_lang digit(hn_langs *l, int lo, int hi)
{
    return lo > hi ? HN_LANG_NONE : hn_lang_set(l, &(hn_range){ (uint32_t)('0' + lo), (uint32_t)('0' + hi) }, 1);
}

static hn_lang many(hn_langs *l, uint32_t min, uint32_t max) { return hn_lang_repeat(l, digit(l, 0, 9), min, max); }

/* ".d+" or nothing */
static hn_lang any_part(hn_langs *l)
{
    return hn_lang_repeat(l, hn_lang_cat(l, hn_lang_char(l, '.'), many(l, 1, HN_LANG_ENDLESS)), 0, 1);
}

/* "0", or digits of which the first is no 0, so many of them */
static hn_lang whole(hn_langs *l, uint32_t min, uint32_t max)
{
    if (min > max) return HN_LANG_NONE;
    uint32_t more = max == HN_LANG_ENDLESS ? max : max - 1;
    hn_lang t = hn_lang_cat(l, digit(l, 1, 9), many(l, min - 1, more));
    return min == 1 ? hn_lang_or(l, t, hn_lang_char(l, '0')) : t;
}

/* The part behind the point beside that of a bound: less than it, or more. */
static hn_lang part_beside(hn_langs *l, const digits *d, bool less, bool strict)
{
    hn_lang point = hn_lang_char(l, '.'), zeros = hn_lang_repeat(l, hn_lang_char(l, '0'), 1, HN_LANG_ENDLESS);
    hn_lang some =
        hn_lang_cat(l, many(l, 0, HN_LANG_ENDLESS), hn_lang_cat(l, digit(l, 1, 9), many(l, 0, HN_LANG_ENDLESS)));
    if (d->n_part == 0) {
        if (less) return strict ? HN_LANG_NONE : hn_lang_repeat(l, hn_lang_cat(l, point, zeros), 0, 1);
        return strict ? hn_lang_cat(l, point, some) : any_part(l);
    }
    /* from the last digit: equal up to here, then a smaller or greater one, or the end */
    hn_lang t = HN_LANG_NONE;
    if (!strict) t = less ? hn_lang_repeat(l, zeros, 0, 1) : many(l, 0, HN_LANG_ENDLESS);
    else if (!less) t = some;
    for (uint32_t i = d->n_part; i-- > 0;) {
        int c = d->part[i] - '0';
        t = hn_lang_cat(l, digit(l, c, c), t);
        hn_lang other = less ? digit(l, 0, c - 1) : digit(l, c + 1, 9);
        t = hn_lang_or(l, t, hn_lang_cat(l, other, many(l, 0, HN_LANG_ENDLESS)));
        if (less && i > 0) t = hn_lang_or(l, t, HN_LANG_EMPTY); /* what follows here is not zero alone */
    }
    t = hn_lang_cat(l, point, t);
    return less ? hn_lang_or(l, t, HN_LANG_EMPTY) : t;
}

/* Decimals without sign and exponent that are less than a bound, or more. */
static hn_lang beside(hn_schema *s, const hn_dec *bound_at, bool less, bool strict)
{
    hn_langs *l = s->l;
    digits d;
    if (!digits_of(s, bound_at, &d)) return HN_LANG_NONE;
    hn_lang t = part_beside(l, &d, less, strict), rest = any_part(l);
    for (uint32_t i = d.n_whole; i-- > 0;) { /* as many digits before the point */
        int c = d.whole[i] - '0';
        t = hn_lang_cat(l, digit(l, c, c), t);
        hn_lang other = less ? digit(l, i == 0 && d.n_whole > 1 ? 1 : 0, c - 1) : digit(l, c + 1, 9);
        hn_lang tail = hn_lang_cat(l, many(l, d.n_whole - 1 - i, d.n_whole - 1 - i), rest);
        t = hn_lang_or(l, t, hn_lang_cat(l, other, tail));
    }
    if (less && d.n_whole > 1) t = hn_lang_or(l, t, hn_lang_cat(l, whole(l, 1, d.n_whole - 1), rest));
    if (!less) t = hn_lang_or(l, t, hn_lang_cat(l, whole(l, d.n_whole + 1, HN_LANG_ENDLESS), rest));
    return t;
}

/* Multiples of a/10^k: W.F with j digits behind the point is one where a divides WF·10^(k-j), without the point; so
 * where a / gcd(a, 10^(k-j)) divides WF. NONE: a is too large. */
static hn_lang decimal_multiples(hn_langs *l, uint32_t a, int64_t k, bool is_whole)
{
    hn_lang t = HN_LANG_NONE, point = hn_lang_char(l, '.'), front = whole(l, 1, HN_LANG_ENDLESS);
    if (a == 1 && (k == 0 || is_whole)) return front; /* whatever digits there are */
    if (a == 1) return hn_lang_cat(l, front, hn_lang_repeat(l, hn_lang_cat(l, point, many(l, 1, (uint32_t)k)), 0, 1));
    if (k > PART_MAX && !is_whole) return HN_LANG_NONE;
    for (int64_t j = is_whole ? 0 : k; j >= 0; j--) {
        uint32_t m = a, n = (uint32_t)j;
        for (int64_t twos = k - j; twos > 0 && m % 2 == 0; twos--) m /= 2;
        for (int64_t fives = k - j; fives > 0 && m % 5 == 0; fives--) m /= 5;
        if (m > MULTIPLE_MAX) return HN_LANG_NONE;
        hn_lang shape = hn_lang_cat(l, front, n ? hn_lang_cat(l, point, many(l, n, n)) : HN_LANG_EMPTY);
        t = hn_lang_or(l, t, m == 1 ? shape : hn_lang_and(l, shape, hn_lang_multiple(l, m)));
    }
    return t;
}

/* Of multiples of x: the digits, without a sign; no more of them behind the point than x has. */
static hn_lang multiples(hn_schema *s, const hn_jnode *x, bool is_whole)
{
    enum { DIGITS = 9 };
    hn_dec d;
    hn_langs *l = s->l;
    if (x->kind != HN_J_NUMBER || !hn_schema_number(s, &d, x->str) || d.negative || d.n == 0) {
        hn_schema_wrong(s, x, "a number greater than 0");
        return HN_LANG_NONE;
    }
    bool integer = hn_dec_whole(&d);
    if (integer ? d.point <= DIGITS : d.n <= DIGITS) {
        uint32_t a = integer ? hn_dec_rest(&d, 1000000000u) : 0;
        for (uint32_t i = 0; !integer && i < d.n; i++) a = a * 10 + (uint32_t)(d.digit[i] - '0');
        hn_lang t = decimal_multiples(l, a, integer ? 0 : (int64_t)d.n - d.point, is_whole);
        if (t != HN_LANG_NONE) return t;
    }
    hn_schema_cannot(s, x, "hone enforces multiples of decimals whose digits make at most 10000");
    return hn_lang_cat(l, whole(l, 1, HN_LANG_ENDLESS), is_whole ? HN_LANG_EMPTY : any_part(l));
}

/* All texts of the number without exponent, and without the sign. */
static hn_lang same_value(hn_schema *s, const hn_dec *d)
{
    digits t;
    hn_langs *l = s->l;
    if (!digits_of(s, d, &t)) return HN_LANG_NONE;
    hn_lang zeros = hn_lang_repeat(l, hn_lang_char(l, '0'), t.n_part ? 0 : 1, HN_LANG_ENDLESS);
    hn_lang part = hn_lang_cat(l, hn_lang_char(l, '.'), hn_lang_cat(l, hn_lang_text(l, t.part, t.n_part), zeros));
    if (t.n_part == 0) part = hn_lang_repeat(l, part, 0, 1);
    return hn_lang_cat(l, hn_lang_text(l, t.whole, t.n_whole), part);
}

hn_lang hn_mold_number(hn_schema *s, const hn_mold *m, uint32_t types)
{
    hn_langs *l = s->l;
    hn_bounds b = hn_mold_bounds(s, m);
    hn_dec zero = { 0 }, d;
    bool is_whole = !(types & HN_T_FRAC), plain = !b.has_lo && !b.has_hi;
    hn_lang shape = hn_lang_cat(l, whole(l, 1, HN_LANG_ENDLESS), is_whole ? HN_LANG_EMPTY : any_part(l));
    for (uint32_t i = 0; i < m->members.n; i++) {
        const hn_jnode *x = hn_jget(m->members.v[i], "multipleOf");
        if (!x) continue;
        shape = hn_lang_and(l, shape, multiples(s, x, is_whole));
        plain = false;
    }
    if (!(types & HN_T_INT)) { /* no whole numbers: something must stand behind the point */
        digits nothing = { .whole = "0", .part = "", .n_whole = 1, .n_part = 0 };
        shape =
            hn_lang_and(l, shape, hn_lang_cat(l, whole(l, 1, HN_LANG_ENDLESS), part_beside(l, &nothing, false, true)));
        plain = false;
    }
    hn_lang up = shape, down = hn_lang_and(l, shape, beside(s, &zero, false, true)); /* no -0 */
    for (uint32_t i = 0; i < m->forbidden.n; i++) {
        const hn_jnode *x = m->forbidden.v[i];
        if (x->kind != HN_J_NUMBER) continue;
        plain = false;
        if (!hn_schema_number(s, &d, x->str)) continue; /* too long to be written without exponent here */
        hn_lang *side = d.negative ? &down : &up;
        *side = hn_lang_and(l, *side, hn_lang_not(l, same_value(s, &d)));
    }
    if (b.has_lo && !b.lo.negative) {
        up = hn_lang_and(l, up, beside(s, &b.lo, false, b.lo_strict));
        down = HN_LANG_NONE;
    } else if (b.has_lo) {
        down = hn_lang_and(l, down, beside(s, &b.lo, true, b.lo_strict));
    }
    if (b.has_hi && b.hi.negative) {
        down = hn_lang_and(l, down, beside(s, &b.hi, false, b.hi_strict));
        up = HN_LANG_NONE;
    } else if (b.has_hi) {
        up = hn_lang_and(l, up, beside(s, &b.hi, true, b.hi_strict));
    }
    hn_lang t = hn_lang_or(l, up, hn_lang_cat(l, hn_lang_char(l, '-'), down));
    if (!plain || is_whole) return t;
    /* nothing is asked of it: an exponent too, of two digits, so that it stays a finite double */
    hn_lang sign = hn_lang_repeat(l, hn_lang_set(l, (hn_range[]){ { '+', '+' }, { '-', '-' } }, 2), 0, 1);
    hn_lang e = hn_lang_set(l, (hn_range[]){ { 'e', 'e' }, { 'E', 'E' } }, 2);
    hn_lang exponent = hn_lang_repeat(l, hn_lang_cat(l, e, hn_lang_cat(l, sign, many(l, 1, EXPONENT_DIGITS))), 0, 1);
    hn_lang minus = hn_lang_repeat(l, hn_lang_char(l, '-'), 0, 1);
    return hn_lang_cat(l, minus, hn_lang_cat(l, shape, exponent));
}

/* ---- strings -------------------------------------------------------------------------------------------- */

#define DATE                                                                                                     \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"         \
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)" \
    "-02-29)"
#define TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 BYTE "\\." BYTE "\\." BYTE "\\." BYTE
#define H "[0-9a-fA-F]{1,4}"
#define LAST "(?:" H ":" H "|" IPV4 ")"
#define ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]" /* one byte */
#define PCHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define HOST LABEL "(?:\\." LABEL ")*"
/* The same as names of the Internet may be: labels of at most 63 bytes, 253 in all, no "--" (of encoded names). A sound
 * subset whose lengths need no counters beside each other: three labels of any length, or seven of 31. */
#define AN "[A-Za-z0-9]"
#define NAME_LABEL \
    "(?:" AN "{1,63}|" AN "{1,15}(?:-" AN "{1,15}){1,3}|" AN "{1,31}-" AN "{1,31}|" AN "{1,9}(?:-" AN "{1,9}){4,5})"
#define SHORT_LABEL \
    "(?:" AN "{1,31}|" AN "{1,15}-" AN "{1,15}|" AN "{1,9}(?:-" AN "{1,9}){2}|" AN "{1,5}(?:-" AN "{1,5}){3,4})"
#define HOST_NAME "(?:" NAME_LABEL "(?:\\." NAME_LABEL "){0,2}|" SHORT_LABEL "(?:\\." SHORT_LABEL "){3,6})"
/* In front of the @, 64 bytes in all: one part, two, three, four or up to seven. */
#define DOTTED(n, more) ATEXT "{1," n "}(?:\\." ATEXT "{1," n "})" more
#define LOCAL \
    "(?:" ATEXT "{1,64}|" DOTTED("31", "") "|" DOTTED("20", "{2}") "|" DOTTED("15", "{3}") "|" DOTTED("8", "{4,6}") ")"

static const struct {
    const char *name, *pattern;
    bool numeric; /* of numbers: says nothing here */
} formats[] = {
    { "date", DATE, false },
    { "time", TIME, false },
    { "date-time", DATE "[Tt]" TIME, false },
    { "duration",
      "P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
      "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
      "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))",
      false },
    { "uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", false },
    { "ipv4", IPV4, false },
    { "ipv6",
      "(?:" H ":){6}" LAST "|::(?:" H ":){5}" LAST "|(?:" H ")?::(?:" H ":){4}" LAST "|(?:(?:" H ":){0,1}" H ")?::(?:" H
      ":){3}" LAST "|(?:(?:" H ":){0,2}" H ")?::(?:" H ":){2}" LAST "|(?:(?:" H ":){0,3}" H ")?::" H ":" LAST
      "|(?:(?:" H ":){0,4}" H ")?::" LAST "|(?:(?:" H ":){0,5}" H ")?::" H "|(?:(?:" H ":){0,6}" H ")?::",
      false },
    { "hostname", HOST_NAME, false },
    { "email", LOCAL "@" HOST_NAME, false },
    { "uri",
      "[A-Za-z][A-Za-z0-9+.-]*:(?://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?(?:" HOST "|" IPV4
      ")(?::[0-9]{1,5})?(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" PCHAR "+(?:/" PCHAR "*)*)"
      "(?:\\?(?:" PCHAR "|[/?])*)?(?:#(?:" PCHAR "|[/?])*)?",
      false },
    { "int32", NULL, true },
    { "int64", NULL, true },
    { "uint32", NULL, true },
    { "uint64", NULL, true },
    { "float", NULL, true },
    { "double", NULL, true },
};

hn_lang hn_schema_format(hn_schema *s, const hn_jnode *format)
{
    hn_lang t;
    if (format->kind != HN_J_STRING) {
        hn_schema_wrong(s, format, "the name of a format");
        return HN_LANG_NONE;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats && s->st == HONE_OK; i++) {
        if (!hn_str_is(format->str, formats[i].name)) continue;
        if (formats[i].numeric) return HN_LANG_ALL;
        s->st =
            hn_pattern_compile(s->l, formats[i].pattern, strlen(formats[i].pattern), true, formats[i].name, &t, s->err);
        return t;
    }
    if (s->rules->strict) hn_schema_refuse(s, format, "a format that hone does not know");
    else hn_schema_tell(s, format, "is not known, and ignored");
    return HN_LANG_ALL;
}

bool hn_schema_pattern(hn_schema *s, const hn_jnode *at, hone_str text, hn_lang *t)
{
    char name[300];
    *t = HN_LANG_ALL;
    snprintf(name, sizeof name, "JSON schema: %s", HN_JPOINTER(at));
    if (s->st != HONE_OK) return false;
    s->st = hn_pattern_compile(s->l, text.ptr, text.len, false, name, t, s->err);
    if (s->st == HONE_OK) return true;
    *t = HN_LANG_ALL;
    if (s->st == HONE_E_NOMEM || !s->rules->lenient || hn_langs_failed(s->l)) return false;
    bool other = s->st == HONE_E_ARG;
    s->st = HONE_OK;
    hn_schema_cannot(s, at,
                     other ? "no expression of ECMAScript" : "no expression of a regular language that hone knows");
    return false;
}

/* A format without a text that fits the pattern beside it, as Zod's times without a zone have: format is an annotation,
 * and the pattern is what was meant. */
static hn_lang other_format(hn_schema *s, const hn_jnode *format)
{
    if (s->rules->strict) hn_schema_refuse(s, format, "no text of this format fits the pattern beside it");
    else hn_schema_tell(s, format, "has no text that fits the pattern beside it, and is ignored");
    return HN_LANG_ALL;
}

hn_lang hn_mold_string(hn_schema *s, const hn_mold *m)
{
    hn_langs *l = s->l;
    uint32_t min = hn_mold_count(s, m, "minLength", true, 0);
    uint32_t max = hn_mold_count(s, m, "maxLength", false, HN_LANG_ENDLESS);
    hn_lang t = HN_LANG_ALL;
    for (uint32_t i = 0; i < m->members.n && s->st == HONE_OK; i++) {
        const hn_jnode *p = hn_jget(m->members.v[i], "pattern"), *f = hn_jget(m->members.v[i], "format");
        if (p && p->kind != HN_J_STRING) hn_schema_wrong(s, p, "a regular expression");
        hn_lang said = HN_LANG_ALL, form = f ? hn_schema_format(s, f) : HN_LANG_ALL;
        bool both = p && p->kind == HN_J_STRING && hn_schema_pattern(s, p, p->str, &said) && f && s->st == HONE_OK;
        if (both && !hn_lang_live(l, hn_lang_and(l, said, form)) && hn_lang_live(l, said)) form = other_format(s, f);
        t = hn_lang_and(l, t, hn_lang_and(l, said, form));
    }
    for (uint32_t i = 0; i < m->forbidden.n; i++)
        if (m->forbidden.v[i]->kind == HN_J_STRING)
            t = hn_lang_and(l, t,
                            hn_lang_not(l, hn_lang_text(l, m->forbidden.v[i]->str.ptr, m->forbidden.v[i]->str.len)));
    if (min || max != HN_LANG_ENDLESS) t = hn_lang_and(l, t, hn_lang_repeat(l, HN_LANG_ANY, min, max));
    return t;
}

/* ---- arrays ------------------------------------------------------------------------------------------------ */

/* Of one member: the list for the first elements, and the schema of the others. */
static void items_of(const hn_jnode *o, const hn_jnode **list, const hn_jnode **rest)
{
    const hn_jnode *items = hn_jget(o, "items");
    *list = hn_jget(o, "prefixItems");
    *rest = items;
    if (items && items->kind == HN_J_ARRAY) { /* draft 7 */
        *list = items;
        *rest = hn_jget(o, "additionalItems");
    }
}

uint32_t hn_mold_prefix(const hn_mold *m)
{
    uint32_t n = 0;
    const hn_jnode *list, *rest;
    for (uint32_t i = 0; i < m->members.n; i++) {
        items_of(m->members.v[i], &list, &rest);
        if (list && list->n > n) n = list->n;
    }
    return n;
}

hn_nodes hn_mold_item(hn_schema *s, const hn_mold *m, uint32_t i)
{
    hn_nodes v = { 0 };
    const hn_jnode *list, *rest, *x;
    for (uint32_t k = 0; k < m->members.n; k++) {
        items_of(m->members.v[k], &list, &rest);
        if (list && list->kind != HN_J_ARRAY) hn_schema_wrong(s, list, "an array of schemas");
        for (x = list ? list->first : NULL; x && x->index < i;) x = x->next;
        if (!x) x = rest;
        if (x) hn_schema_put(s, &v, x);
    }
    return v;
}

/* ---- objects -------------------------------------------------------------------------------------------------- */

hn_nodes hn_mold_property(hn_schema *s, const hn_mold *m, hone_str key, bool *declared)
{
    hn_nodes v = { 0 };
    *declared = false;
    for (uint32_t k = 0; k < m->members.n && s->st == HONE_OK; k++) {
        const hn_jnode *o = m->members.v[k], *x = hn_jget_str(hn_jget(o, "properties"), key);
        const hn_jnode *patterns = hn_jget(o, "patternProperties"), *other = hn_jget(o, "additionalProperties");
        bool spoken = x != NULL;
        if (x) *declared = true;
        if (x) hn_schema_put(s, &v, x);
        for (const hn_jnode *p = patterns ? patterns->first : NULL; p && s->st == HONE_OK; p = p->next) {
            hn_lang t;
            bool said = hn_schema_pattern(s, p, p->key, &t); /* what cannot be said may be about any name */
            if (said && !hn_lang_matches(s->l, t, key.ptr, key.len)) continue;
            if (said) hn_schema_put(s, &v, p);
            spoken = true;
        }
        if (!spoken && other) hn_schema_put(s, &v, other);
    }
    return v;
}

bool hn_mold_required(const hn_mold *m, hone_str key)
{
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *r = hn_jget(m->members.v[k], "required");
        for (const hn_jnode *x = r ? r->first : NULL; x; x = x->next)
            if (x->kind == HN_J_STRING && hn_str_same(x->str, key)) return true;
    }
    return hn_mold_tagged(m, key);
}

bool hn_mold_names(const hn_schema *s, const hn_mold *m, hone_str key)
{
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *list = hn_schema_names(s, m->members.v[k]), *x = list ? list->first : NULL;
        while (x && !(x->kind == HN_J_STRING && hn_str_same(x->str, key))) x = x->next;
        if (list && !x) return false;
    }
    return true;
}

bool hn_mold_tagged(const hn_mold *m, hone_str key)
{
    uint32_t i = 0;
    while (i < m->tags.n && !hn_str_same(m->tags.v[i]->str, key)) i++;
    if (i == m->tags.n) return false;
    for (uint32_t k = 0; k < m->members.n; k++)
        if (hn_jget_str(hn_jget(m->members.v[k], "properties"), key)) return true;
    return false;
}

bool hn_mold_closed(const hn_mold *m)
{
    bool named = false;
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *o = m->members.v[k];
        if (hn_jget(o, "additionalProperties")) return false;
        named = named || hn_jget(o, "properties") || hn_jget(o, "required");
    }
    return named && !m->real;
}
