/* convert_json: JSON from strangers, read in passing. Nothing is built from it, so its size
 * bounds the memory it takes; depth is limited. Owns the syntax; refuses to know what the
 * members mean. */
#include "model/convert.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_DEPTH = 32 };

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

hone_status hn_jread_begin(hn_jread *j, char *text, size_t len, const char *path, const char *what, hone_error *err)
{
    *j = (hn_jread){path, what, text, text, text + len, err};
    const char *fault = hn_gguf_name_fault(text, len, SIZE_MAX);
    if (fault) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s %s, expected JSON", path, what, fault);
    return HONE_OK;
}

static hone_status fail_at(hn_jread *j, const char *at, const char *expected)
{
    size_t left = (size_t)(j->end - at);
    if (left == 0) return HN_FAIL(j->err, HONE_E_FORMAT, "%s: %s ends at byte %zu, expected %s", j->path, j->what, (size_t)(at - j->begin), expected);
    return HN_FAIL(j->err, HONE_E_FORMAT, "%s: %s, byte %zu: expected %s, seen %s", j->path, j->what, (size_t)(at - j->begin), expected, HN_ESC(at, left < 24 ? left : 24));
}

hone_status hn_jread_fail(hn_jread *j, const char *expected) { return fail_at(j, j->p, expected); }

char hn_jread_peek(hn_jread *j)
{
    while (j->p < j->end && is_space(*j->p)) j->p++;
    return j->p < j->end ? *j->p : 0;
}

static hone_status take(hn_jread *j, char c)
{
    if (hn_jread_peek(j) != c) return hn_jread_fail(j, (char[4]){'\'', c, '\'', 0});
    j->p++;
    return HONE_OK;
}

static char closing(char bracket) { return bracket == '{' ? '}' : ']'; }

hone_status hn_jread_open(hn_jread *j, char bracket, bool *more)
{
    hone_status st = take(j, bracket);
    if (st != HONE_OK) return st;
    *more = hn_jread_peek(j) != closing(bracket);
    if (!*more) j->p++;
    return HONE_OK;
}

hone_status hn_jread_next(hn_jread *j, char bracket, bool *more)
{
    char c = hn_jread_peek(j);
    *more = c == ',';
    if (c != ',' && c != closing(bracket)) return hn_jread_fail(j, bracket == '{' ? "',' or '}'" : "',' or ']'");
    j->p++;
    return HONE_OK;
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

/* UTF-8 of a code point, never longer than its escape. */
static char *put_utf8(char *w, uint32_t c)
{
    if (c < 0x80) { *w++ = (char)c; return w; }
    if (c < 0x800) { *w++ = (char)(0xC0 | c >> 6); *w++ = (char)(0x80 | (c & 63)); return w; }
    if (c < 0x10000) *w++ = (char)(0xE0 | c >> 12);
    else *w++ = (char)(0xF0 | c >> 18), *w++ = (char)(0x80 | (c >> 12 & 63));
    *w++ = (char)(0x80 | (c >> 6 & 63));
    *w++ = (char)(0x80 | (c & 63));
    return w;
}

/* The escape after a backslash at j->p. */
static hone_status unescape(hn_jread *j, char **w)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = j->p - 1, *k = j->p < j->end && *j->p ? strchr(from, *j->p) : NULL;
    if (k) {
        *(*w)++ = to[k - from];
        j->p++;
        return HONE_OK;
    }
    int32_t c = j->end - j->p >= 5 && *j->p == 'u' ? hex4(j->p + 1) : -1;
    if (c < 0) return fail_at(j, at, "an escape of JSON");
    j->p += 5;
    if (c >= 0xD800 && c < 0xE000) {
        int32_t lo = c < 0xDC00 && j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u' ? hex4(j->p + 2) : -1;
        if (lo < 0xDC00 || lo > 0xDFFF) return fail_at(j, at, "a pair of surrogates");
        c = 0x10000 + ((c - 0xD800) << 10) + (lo - 0xDC00);
        j->p += 6;
    }
    if (c == 0) return fail_at(j, at, "no NUL in a string");
    *w = put_utf8(*w, (uint32_t)c);
    return HONE_OK;
}

/* Past the string at j->p; keep: without changing the text, s then is what stands between the quotes. */
static hone_status string(hn_jread *j, hone_str *s, bool keep)
{
    hone_status st;
    if (hn_jread_peek(j) != '"') return hn_jread_fail(j, "a string");
    j->p++;
    char *start = j->p, *w = j->p;
    while (j->p < j->end && *j->p != '"') {
        char c = *j->p;
        if ((unsigned char)c < 0x20) return hn_jread_fail(j, "no control byte in a string");
        j->p++;
        if (c != '\\') {
            if (!keep) *w = c;
            w++;
        } else {
            char scratch[8], *k = scratch;
            if ((st = unescape(j, &k)) != HONE_OK) return st;
            if (!keep) memcpy(w, scratch, (size_t)(k - scratch));
            w += k - scratch;
        }
    }
    if (j->p == j->end) return hn_jread_fail(j, "the end of a string");
    *s = (hone_str){start, (size_t)((keep ? j->p : w) - start)};
    j->p++;
    return HONE_OK;
}

hone_status hn_jread_str(hn_jread *j, hone_str *s) { return string(j, s, false); }

hone_status hn_jread_key(hn_jread *j, hone_str *key)
{
    hone_status st = string(j, key, false);
    return st != HONE_OK ? st : take(j, ':');
}

static bool is_digit(const hn_jread *j) { return j->p < j->end && *j->p >= '0' && *j->p <= '9'; }

hone_status hn_jread_u64(hn_jread *j, uint64_t *v)
{
    hn_jread_peek(j);
    char *start = j->p;
    *v = 0;
    for (; is_digit(j); j->p++)
        if (!hn_mul_u64(*v, 10, v) || !hn_add_u64(*v, (uint64_t)(*j->p - '0'), v)) return fail_at(j, start, "a number below 2^64");
    if (j->p == start || (*start == '0' && j->p > start + 1) || (j->p < j->end && strchr(".eE", *j->p))) return fail_at(j, start, "a whole number");
    return HONE_OK;
}

static hone_status number(hn_jread *j, double *v)
{
    char *start = j->p;
    bool minus = *j->p == '-';
    double m = 0;
    int32_t e10 = 0, e = 0;
    j->p += minus;
    if (!is_digit(j)) return fail_at(j, start, "a value");
    char *first = j->p;
    for (; is_digit(j); j->p++) m = 10 * m + (*j->p - '0');
    if (*first == '0' && j->p > first + 1) return fail_at(j, start, "a number without leading zero");
    if (j->p < j->end && *j->p == '.') {
        j->p++;
        if (!is_digit(j)) return fail_at(j, start, "digits behind the point");
        for (; is_digit(j); j->p++)
            if (m < 1e17) m = 10 * m + (*j->p - '0'), e10--;
    }
    if (j->p < j->end && (*j->p == 'e' || *j->p == 'E')) {
        bool neg = false;
        j->p++;
        if (j->p < j->end && (*j->p == '+' || *j->p == '-')) neg = *j->p++ == '-';
        if (!is_digit(j)) return fail_at(j, start, "digits of an exponent");
        for (; is_digit(j); j->p++)
            if (e < 100000) e = 10 * e + (*j->p - '0');
        e10 += neg ? -e : e;
    }
    *v = e10 < 0 ? m / pow(10, -e10) : m * pow(10, e10);
    if (minus) *v = -*v;
    return HONE_OK;
}

static bool word(hn_jread *j, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, w, n)) return false;
    j->p += n;
    return true;
}

/* A scalar; false in *is when an array or object stands here. */
static hone_status scalar(hn_jread *j, hn_member *m, bool keep, bool *is)
{
    char c = hn_jread_peek(j);
    *is = c != '{' && c != '[';
    if (!*is) return HONE_OK;
    if (c == '"') {
        m->kind = HN_J_STRING;
        return string(j, &m->str, keep);
    }
    m->kind = HN_J_NULL;
    if (word(j, "null") || word(j, "NaN") || word(j, "Infinity") || word(j, "-Infinity")) return HONE_OK;
    m->kind = HN_J_BOOL;
    m->num = c == 't';
    if (word(j, "true") || word(j, "false")) return HONE_OK;
    m->kind = HN_J_NUMBER;
    if (j->p == j->end) return hn_jread_fail(j, "a value");
    return number(j, &m->num);
}

static hone_status skip(hn_jread *j, int depth)
{
    hn_member m;
    hone_str key;
    bool is, more;
    hone_status st = scalar(j, &m, true, &is);
    if (st != HONE_OK || is) return st;
    if (depth == MAX_DEPTH) return hn_jread_fail(j, "no deeper nesting");
    char bracket = *j->p;
    for (st = hn_jread_open(j, bracket, &more); st == HONE_OK && more; st = hn_jread_next(j, bracket, &more)) {
        if (bracket == '{' && ((st = string(j, &key, true)) != HONE_OK || (st = take(j, ':')) != HONE_OK)) return st;
        if ((st = skip(j, depth + 1)) != HONE_OK) return st;
    }
    return st;
}

hone_status hn_jread_skip(hn_jread *j) { return skip(j, 0); }

hone_status hn_jread_end(hn_jread *j) { return hn_jread_peek(j) || j->p < j->end ? hn_jread_fail(j, "the end") : HONE_OK; }

/* ---- objects of few members ------------------------------------------------------------------ */

enum { MAX_CONFIG_BYTES = 4 << 20, MAX_MEMBERS = 1 << 14 };

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
    if (!hn_index_add(&c->ix, c->m, sizeof *c->m, (uint32_t)c->n, &dup)) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu members", c->path, c->n);
    if (dup >= 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: \"%s\" is there twice", c->path, HN_ESC(m->key.ptr, m->key.len));
    c->n++;
    return HONE_OK;
}

hone_status hn_config_load(hn_config *c, const char *path, hone_error *err)
{
    hn_jread j;
    size_t len;
    bool more, is;
    hone_status st;
    c->path = strdup(path);
    if (!c->path) return HN_FAIL(err, HONE_E_NOMEM, "%s", path);
    if ((st = hn_source_text(&c->text, &len, path, MAX_CONFIG_BYTES, err)) != HONE_OK) return st;
    if ((st = hn_jread_begin(&j, c->text, len, c->path, "JSON", err)) != HONE_OK) return st;
    for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
        hn_member m = {.kind = HN_J_OTHER};
        if ((st = hn_jread_key(&j, &m.key)) != HONE_OK || (st = scalar(&j, &m, false, &is)) != HONE_OK) return st;
        if (!is) {
            char *start = j.p;
            if ((st = hn_jread_skip(&j)) != HONE_OK) return st;
            m.str = (hone_str){start, (size_t)(j.p - start)};
        }
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
    *c = (hn_config){0};
}

const hn_member *hn_config_get(const hn_config *c, const char *key)
{
    int64_t i = hn_index_find(&c->ix, c->m, sizeof *c->m, key, strlen(key));
    return i < 0 || c->m[i].kind == HN_J_NULL ? NULL : &c->m[i];
}
