/* json: JSON of strangers, read in passing. Owns the syntax; refuses to know what the members
 * mean, and to allocate. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(const hn_jread *j) { return j->p < j->end && *j->p >= '0' && *j->p <= '9'; }

/* ---- faults ------------------------------------------------------------------------------ */

void hn_jread_where(const hn_jread *j, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (const char *p = j->begin; p < j->at; p++) {
        if (*p == '\n') {
            (*line)++;
            *column = 1;
        } else {
            *column += ((unsigned char)*p & 0xC0) != 0x80;
        }
    }
}

/* syntax: the text is no JSON; else it is, and a rule of its reader is broken. */
static hone_status fault(hn_jread *j, const char *at, const char *expected, bool syntax)
{
    size_t line, column, left = (size_t)(j->end - at);
    const char *space = j->what ? " " : "", *what = j->what ? j->what : "", *no = syntax ? " not JSON:" : "";
    char seen[160];
    j->at = at;
    j->expected = expected;
    hn_jread_where(j, &line, &column);
    hone_status code = j->rules.fault;
    if (left == 0)
        return HN_FAIL(j->err, code, "%s:%s%s%s line %zu column %zu: ends at byte %zu, expected %s", j->name, space,
                       what, no, line, column, (size_t)(at - j->begin), expected);
    hn_escape(seen, sizeof seen, at, left < 24 ? left : 24);
    return HN_FAIL(j->err, code, "%s:%s%s%s line %zu column %zu: expected %s, seen %s", j->name, space, what, no, line,
                   column, expected, seen);
}

static hone_status fail_at(hn_jread *j, const char *at, const char *expected) { return fault(j, at, expected, true); }
hone_status hn_jread_fail(hn_jread *j, const char *expected) { return fault(j, j->p, expected, false); }

hone_status hn_jread_begin(hn_jread *j, const char *text, size_t len, const hn_json_rules *rules, const char *name,
                           const char *what, hone_error *err)
{
    *j = (hn_jread){ .begin = text, .p = text, .end = text + len, .name = name, .what = what, .err = err };
    if (rules) j->rules = *rules;
    if (j->rules.max_depth <= 0 || j->rules.max_depth > HN_JSON_DEPTH) j->rules.max_depth = HN_JSON_DEPTH;
    if (j->rules.fault == HONE_OK) j->rules.fault = HONE_E_FORMAT;
    if (j->rules.max_bytes == 0 || len <= j->rules.max_bytes) return HONE_OK;
    j->at = text;
    j->expected = "less text";
    return HN_FAIL(err, j->rules.fault, "%s: %zu bytes of JSON, expected at most %zu", name, len, j->rules.max_bytes);
}

/* ---- structure --------------------------------------------------------------------------- */

char hn_jread_peek(hn_jread *j)
{
    while (j->p < j->end && is_space(*j->p)) j->p++;
    return j->p < j->end ? *j->p : 0;
}

static hone_status past(hn_jread *j, char c, const char *expected)
{
    if (hn_jread_peek(j) != c || j->p == j->end) return fail_at(j, j->p, expected);
    j->p++;
    return HONE_OK;
}

static char closing(char bracket) { return bracket == '{' ? '}' : ']'; }

hone_status hn_jread_open(hn_jread *j, char bracket, bool *more)
{
    const char *at;
    *more = false;
    hone_status st = past(j, bracket, bracket == '{' ? "'{'" : "'['");
    if (st != HONE_OK) return st;
    at = j->p - 1;
    if (j->depth == j->rules.max_depth) return fault(j, at, "no deeper nesting", false);
    *more = hn_jread_peek(j) != closing(bracket);
    if (*more) j->depth++;
    else j->p++;
    return HONE_OK;
}

hone_status hn_jread_next(hn_jread *j, char bracket, bool *more)
{
    char c = hn_jread_peek(j);
    *more = c == ',';
    if (c != ',' && c != closing(bracket)) {
        *more = false;
        return fail_at(j, j->p, bracket == '{' ? "',' or '}'" : "',' or ']'");
    }
    j->p++;
    if (!*more) j->depth--;
    return HONE_OK;
}

/* ---- strings ----------------------------------------------------------------------------- */

/* Four hexadecimal digits before end, or -1. */
static int32_t hex4(const char *s, const char *end)
{
    int32_t v = 0;
    if (end - s < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

/* The code point of \uXXXX, or of a pair of them, at s behind the backslash; *used bytes. -1: no
 * hexadecimal digits; -2: half of a pair. */
static int32_t code_point(const char *s, const char *end, size_t *used)
{
    int32_t c = hex4(s + 1, end);
    *used = 5;
    if (c < 0xD800 || c > 0xDFFF) return c;
    int32_t low = c < 0xDC00 && end - s >= 11 && s[5] == '\\' && s[6] == 'u' ? hex4(s + 7, end) : -1;
    *used = 11;
    return low >= 0xDC00 && low <= 0xDFFF ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : -2;
}

static size_t utf8_bytes(int32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

static char *write_utf8(char *w, int32_t c)
{
    static const unsigned char lead[5] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    size_t n = utf8_bytes(c);
    if (n == 1) {
        *w = (char)c;
        return w + 1;
    }
    for (size_t i = n - 1; i > 0; i--, c >>= 6) w[i] = (char)(0x80 | (c & 63));
    *w = (char)(lead[n] | c);
    return w + n;
}

/* Bytes of the well-formed UTF-8 sequence at s (Unicode, table 3-7); 0: there is none. */
static size_t utf8_length(const char *s, const char *end)
{
    const unsigned char *b = (const unsigned char *)s;
    size_t left = (size_t)(end - s), n = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    unsigned char low = b[0] == 0xE0   ? 0xA0
                        : b[0] == 0xF0 ? 0x90
                                       : 0x80,
                  high = b[0] == 0xED   ? 0x9F
                         : b[0] == 0xF4 ? 0x8F
                                        : 0xBF;
    if (b[0] < 0xC2 || b[0] > 0xF4 || left < n || b[1] < low || b[1] > high) return 0;
    for (size_t i = 2; i < n; i++)
        if ((b[i] & 0xC0) != 0x80) return 0;
    return n;
}

static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";

/* The escape whose backslash is at j->p. */
static hone_status check_escape(hn_jread *j, hn_jread_text *t)
{
    const char *at = j->p, *s = at + 1;
    size_t used = 1;
    int32_t c = 0;
    if (s < j->end && *s && strchr(escapes, *s)) {
        t->n++;
    } else {
        c = s < j->end && *s == 'u' ? code_point(s, j->end, &used) : -1;
        if (c == -1) return fail_at(j, at, "an escape of JSON, such as \\n or \\u00e4");
        if (c == -2) return fail_at(j, at, "a pair of surrogates");
        if (c == 0 && !(j->rules.flags & HN_JSON_ALLOW_NUL)) return fault(j, at, "no NUL in a string", false);
        t->nul = t->nul || c == 0;
        t->n += utf8_bytes(c);
    }
    t->escaped = true;
    j->p = s + used;
    return HONE_OK;
}

hone_status hn_jread_string(hn_jread *j, hn_jread_text *t)
{
    hone_status st = past(j, '"', "a string");
    if (st != HONE_OK) return st;
    const char *start = j->p - 1;
    *t = (hn_jread_text){ .raw = j->p };
    while (j->p < j->end && *j->p != '"') {
        unsigned char c = (unsigned char)*j->p;
        if (c == '\\') {
            if ((st = check_escape(j, t)) != HONE_OK) return st;
            continue;
        }
        if (c < 0x20) return fail_at(j, j->p, "no control byte in a string");
        size_t n = c < 0x80 ? 1 : utf8_length(j->p, j->end);
        if (n == 0) return fail_at(j, j->p, "a string; it is not valid UTF-8");
        j->p += n;
        t->n += n;
    }
    if (j->p == j->end) return fail_at(j, start, "the end of a string");
    if (j->rules.max_string && t->n > j->rules.max_string) return fault(j, start, "a shorter string", false);
    t->n_raw = (size_t)(j->p - t->raw);
    j->p++;
    return HONE_OK;
}

void hn_jread_unescape(char *dst, const hn_jread_text *t)
{
    const char *s = t->raw, *end = t->raw + t->n_raw;
    if (!t->escaped) {
        memmove(dst, s, t->n_raw);
        return;
    }
    while (s < end) {
        if (*s != '\\') {
            *dst++ = *s++;
            continue;
        }
        size_t used = 1;
        const char *k = strchr(escapes, *++s);
        if (k) *dst++ = meanings[k - escapes];
        else dst = write_utf8(dst, code_point(s, end, &used));
        s += used;
    }
}

hone_status hn_jread_key(hn_jread *j, hn_jread_text *t)
{
    if (hn_jread_peek(j) != '"') return fail_at(j, j->p, "a string as a key");
    hone_status st = hn_jread_string(j, t);
    return st != HONE_OK ? st : past(j, ':', "':'");
}

static void in_place(const hn_jread *j, hone_str *s, const hn_jread_text *t)
{
    char *dst = j->room + (t->raw - j->begin);
    if (t->escaped) hn_jread_unescape(dst, t);
    *s = (hone_str){ dst, t->n };
}

hone_status hn_jread_str(hn_jread *j, hone_str *s)
{
    hn_jread_text t;
    hone_status st = hn_jread_string(j, &t);
    if (st == HONE_OK) in_place(j, s, &t);
    return st;
}

hone_status hn_jread_key_str(hn_jread *j, hone_str *s)
{
    hn_jread_text t;
    hone_status st = hn_jread_key(j, &t);
    if (st == HONE_OK) in_place(j, s, &t);
    return st;
}

/* ---- numbers ----------------------------------------------------------------------------- */

hone_status hn_jread_u64(hn_jread *j, uint64_t *v)
{
    hn_jread_peek(j);
    const char *start = j->p;
    *v = 0;
    for (; is_digit(j); j->p++)
        if (!hn_mul_u64(*v, 10, v) || !hn_add_u64(*v, (uint64_t)(*j->p - '0'), v))
            return fault(j, start, "a number below 2^64", false);
    if (j->p == start || (*start == '0' && j->p > start + 1) || (j->p < j->end && strchr(".eE", *j->p)))
        return fault(j, start, "a whole number", false);
    return HONE_OK;
}

/* A decimal number as its significant digits: 0.d1 d2 d3 … · 10^place. 770 digits tell any two
 * doubles apart; a further digit stands for all that were left out and not zero. */
enum { MOST_DIGITS = 770 };
typedef struct decimal {
    char digit[MOST_DIGITS + 1];
    int n;
    bool more;
    int64_t place;
} decimal;

static void add_digit(decimal *d, char c, bool whole)
{
    if (d->n == 0 && c == '0') { /* leading: nothing but place */
        d->place -= !whole;
        return;
    }
    d->place += whole;
    if (d->n < MOST_DIGITS) d->digit[d->n++] = c;
    else if (c != '0') d->more = true;
}

/* strtod of digits and an exponent, without a point: no locale changes what it reads. */
static double nearest(decimal *d)
{
    static const double ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[MOST_DIGITS + 40];
    while (d->n > 0 && !d->more && d->digit[d->n - 1] == '0') d->n--;
    if (d->n == 0) return 0;
    int64_t e = d->place - d->n;
    if (d->n <= 15 && e >= -22 && e <= 22) { /* both factors are exact, so one rounding is the nearest (Clinger 1990) */
        int64_t m = 0;
        for (int i = 0; i < d->n; i++) m = 10 * m + (d->digit[i] - '0');
        return e < 0 ? (double)m / ten[-e] : (double)m * ten[e];
    }
    if (d->place > 400) return INFINITY;
    if (d->place < -400) return 0;
    memcpy(text, d->digit, (size_t)d->n);
    snprintf(text + d->n, sizeof text - (size_t)d->n, "%se%lld", d->more ? "1" : "", (long long)(e - d->more));
    return strtod(text, NULL);
}

/* Digits at j->p, at least one. */
static bool take_digits(hn_jread *j, decimal *d, bool whole)
{
    const char *start = j->p;
    for (; is_digit(j); j->p++) add_digit(d, *j->p, whole);
    return j->p > start;
}

/* The exponent at j->p, if there is one; false: without digits. */
static bool take_exponent(hn_jread *j, decimal *d, bool *seen)
{
    int64_t e = 0;
    *seen = j->p < j->end && (*j->p | 32) == 'e';
    if (!*seen) return true;
    j->p++;
    bool minus = j->p < j->end && *j->p == '-';
    if (j->p < j->end && (*j->p == '+' || *j->p == '-')) j->p++;
    if (!is_digit(j)) return false;
    for (; is_digit(j); j->p++)
        if (e < (INT64_C(1) << 50)) e = 10 * e + (*j->p - '0'); /* far beyond the digits of any text */
    d->place += minus ? -e : e;
    return true;
}

/* Whole numbers: exactly. */
static bool whole_number(hn_jread_num *v, const char *s, const char *end, bool minus)
{
    uint64_t u = 0;
    for (; s < end; s++)
        if (!hn_mul_u64(u, 10, &u) || !hn_add_u64(u, (uint64_t)(*s - '0'), &u)) return false;
    if (minus && u > (uint64_t)INT64_MAX + 1) return false;
    v->kind = minus || u <= INT64_MAX ? HN_JSON_INT : HN_JSON_UINT;
    v->u = minus ? 0 : u;
    v->i = minus ? (int64_t)(0 - u) : v->kind == HN_JSON_INT ? (int64_t)u : INT64_MAX;
    return true;
}

hone_status hn_jread_number(hn_jread *j, hn_jread_num *v)
{
    hn_jread_peek(j);
    const char *start = j->p, *first;
    bool minus = j->p < j->end && *j->p == '-', point = false, exponent;
    decimal d;
    d.n = 0;
    d.more = false;
    d.place = 0;
    j->p += minus;
    first = j->p;
    if (!take_digits(j, &d, true)) return fail_at(j, start, "a value");
    if (*first == '0' && j->p > first + 1) return fail_at(j, start, "a number without leading zero");
    const char *stop = j->p;
    if (j->p < j->end && *j->p == '.') {
        point = true;
        j->p++;
        if (!take_digits(j, &d, false)) return fail_at(j, start, "digits behind the point");
    }
    if (!take_exponent(j, &d, &exponent)) return fail_at(j, start, "digits of an exponent");
    v->d = nearest(&d);
    if (minus) v->d = -v->d;
    if (isinf(v->d) && !(j->rules.flags & HN_JSON_DIGITS)) return fault(j, start, "a number within double", false);
    if (!point && !exponent && whole_number(v, first, stop, minus)) return HONE_OK;
    if (!point && !exponent && !(j->rules.flags & (HN_JSON_BIG | HN_JSON_DIGITS)))
        return fault(j, start, "a whole number of 64 bits", false);
    v->kind = HN_JSON_REAL;
    v->i = 0;
    v->u = 0;
    return HONE_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

/* The word, and nothing that would continue it. */
static bool word(hn_jread *j, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, w, n) != 0) return false;
    j->p += n;
    return true;
}

hone_status hn_jread_scalar(hn_jread *j, hn_jread_item *it)
{
    char c = hn_jread_peek(j);
    *it = (hn_jread_item){ .kind = HN_JSON_NULL };
    if (c == '{' || c == '[') {
        it->kind = c == '{' ? HN_JSON_OBJECT : HN_JSON_ARRAY;
        return HONE_OK;
    }
    if (c == '"') {
        it->kind = HN_JSON_STRING;
        return hn_jread_string(j, &it->str);
    }
    if (word(j, "null")) return HONE_OK;
    if (j->rules.flags & HN_JSON_PYTHON && (word(j, "NaN") || word(j, "Infinity") || word(j, "-Infinity")))
        return HONE_OK;
    it->kind = HN_JSON_BOOL;
    it->truth = c == 't';
    if (word(j, "true") || word(j, "false")) return HONE_OK;
    it->kind = HN_JSON_NUMBER;
    return hn_jread_number(j, &it->num);
}

hone_status hn_jread_skip(hn_jread *j)
{
    hn_jread_item it;
    hn_jread_text key;
    bool more;
    hone_status st = hn_jread_scalar(j, &it);
    if (st != HONE_OK || (it.kind != HN_JSON_ARRAY && it.kind != HN_JSON_OBJECT)) return st;
    char bracket = *j->p;
    for (st = hn_jread_open(j, bracket, &more); st == HONE_OK && more; st = hn_jread_next(j, bracket, &more)) {
        if (bracket == '{' && (st = hn_jread_key(j, &key)) != HONE_OK) return st;
        if ((st = hn_jread_skip(j)) != HONE_OK) return st; /* no deeper than rules.max_depth */
    }
    return st;
}

hone_status hn_jread_end(hn_jread *j)
{
    hn_jread_peek(j);
    return j->p < j->end ? fail_at(j, j->p, "the end") : HONE_OK;
}
