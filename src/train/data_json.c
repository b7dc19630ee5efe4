/* data_json: one line of JSON (RFC 8259) into jansson's values. jansson's own reader is not
 * safe where memory runs out: it drops bytes of strings, and then reads past their end.
 * Owns the syntax; refuses to know what the values mean. */
#include "train/data_parts.h"

#include <errno.h>
#include <locale.h>
#include <math.h>

enum { MAX_DEPTH = 256 };

typedef struct reader {
    const char *p, *end;
    hn_data_fault *fault;
    int depth;
} reader;

static void *fail(reader *r, const char *at, const char *what)
{
    if (!r->fault->memory && !r->fault->what) *r->fault = (hn_data_fault){ .at = at, .what = what };
    return NULL;
}
static void *no_memory(reader *r)
{
    r->fault->memory = true;
    return NULL;
}

static char peek(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n')) r->p++;
    return r->p < r->end ? *r->p : 0;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *s, const char *end)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = s + i < end ? s[i] : 0;
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

static size_t put_utf8(char *dst, uint32_t c)
{
    if (c < 0x80) return dst[0] = (char)c, 1;
    if (c < 0x800) return dst[0] = (char)(0xC0 | c >> 6), dst[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000) return dst[0] = (char)(0xE0 | c >> 12), dst[1] = (char)(0x80 | (c >> 6 & 63)), dst[2] = (char)(0x80 | (c & 63)), 3;
    return dst[0] = (char)(0xF0 | c >> 18), dst[1] = (char)(0x80 | (c >> 12 & 63)), dst[2] = (char)(0x80 | (c >> 6 & 63)), dst[3] = (char)(0x80 | (c & 63)), 4;
}

/* The escape at r->p, behind the backslash; false: failed. */
static bool unescape(reader *r, char *dst, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = r->p - 1, *k = r->p < r->end && *r->p ? strchr(from, *r->p) : NULL;
    if (k) {
        dst[(*n)++] = to[k - from];
        r->p++;
        return true;
    }
    int32_t c = r->p < r->end && *r->p == 'u' ? hex4(r->p + 1, r->end) : -1;
    if (c < 0) return fail(r, at, "expected an escape such as \\n or \\u00e4") != NULL;
    r->p += 5;
    if (c >= 0xD800 && c < 0xE000) {
        int32_t low = c < 0xDC00 && r->end - r->p > 1 && r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r->p + 2, r->end) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return fail(r, at, "half of a pair of surrogates") != NULL;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        r->p += 6;
    }
    *n += put_utf8(dst + *n, (uint32_t)c);
    return true;
}

/* The string at r->p, malloc'ed, with a NUL behind it. */
static char *string(reader *r, size_t *n)
{
    const char *start = r->p++, *stop = r->p;
    while (stop < r->end && *stop != '"') stop += *stop == '\\' && stop + 1 < r->end ? 2 : 1;
    if (stop >= r->end) return fail(r, start, "a string without an end");
    char *s = malloc((size_t)(stop - r->p) + 1); /* escapes are longer than what they stand for */
    *n = 0;
    if (!s) return no_memory(r);
    while (r->p < stop) {
        unsigned char c = (unsigned char)*r->p;
        size_t used = 1;
        if (c == '\\') {
            r->p++;
            if (!unescape(r, s, n)) break;
            continue;
        }
        if (c < 0x20) {
            fail(r, r->p, "a control byte in a string");
            break;
        }
        if (c >= 0x80 && hn_utf8_next((const unsigned char *)r->p, (size_t)(stop - r->p), &used) < 0) {
            fail(r, r->p, "not UTF-8");
            break;
        }
        memcpy(s + *n, r->p, used);
        *n += used;
        r->p += used;
    }
    if (r->fault->what) {
        free(s);
        return NULL;
    }
    s[*n] = 0;
    r->p = stop + 1;
    return s;
}

static bool digits(reader *r)
{
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
    return r->p > start;
}

static json_t *number(reader *r)
{
    const char *start = r->p;
    char text[64];
    bool whole = true;
    if (*r->p == '-') r->p++;
    const char *first = r->p;
    if (!digits(r) || (*first == '0' && r->p > first + 1)) return fail(r, start, "expected a value");
    if (r->p < r->end && *r->p == '.') {
        whole = false;
        r->p++;
        if (!digits(r)) return fail(r, start, "expected digits behind the point");
    }
    if (r->p < r->end && (*r->p | 32) == 'e') {
        whole = false;
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-')) r->p++;
        if (!digits(r)) return fail(r, start, "expected the digits of an exponent");
    }
    size_t n = (size_t)(r->p - start);
    if (n >= sizeof text) return fail(r, start, "a number of more than 63 characters");
    memcpy(text, start, n);
    text[n] = 0;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    json_t *j;
    if (whole && !errno) {
        j = json_integer(v);
    } else {
        char *point = strchr(text, '.');
        if (point) *point = *localeconv()->decimal_point;
        double x = strtod(text, NULL);
        if (isinf(x)) return fail(r, start, "a number beyond double");
        j = json_real(x);
    }
    return j ? j : no_memory(r);
}

static json_t *value(reader *r);

/* One key and its value into o. */
static bool member(reader *r, json_t *o)
{
    size_t n;
    const char *at = r->p;
    if (peek(r) != '"') return fail(r, r->p, "expected a key in quotes") != NULL;
    char *key = string(r, &n);
    json_t *v = NULL;
    if (!key) return false;
    if (strlen(key) != n) fail(r, at, "U+0000 in a key");
    else if (json_object_get(o, key)) fail(r, at, "a key that is there twice");
    else if (peek(r) != ':') fail(r, r->p, "expected ':'");
    else {
        r->p++;
        v = value(r);
    }
    if (v && json_object_set_new_nocheck(o, key, v) != 0) v = no_memory(r);
    free(key);
    return v != NULL;
}

static json_t *object(reader *r)
{
    json_t *o = json_object();
    if (!o) return no_memory(r);
    r->p++;
    if (peek(r) == '}') return r->p++, o;
    while (member(r, o)) {
        char c = peek(r);
        if (c != ',' && c != '}') {
            fail(r, r->p, "expected ',' or '}'");
            break;
        }
        r->p++;
        if (c == '}') return o;
    }
    json_decref(o);
    return NULL;
}

static json_t *array(reader *r)
{
    json_t *a = json_array();
    if (!a) return no_memory(r);
    r->p++;
    if (peek(r) == ']') return r->p++, a;
    for (;;) {
        json_t *v = value(r);
        if (v && json_array_append_new(a, v) != 0) v = no_memory(r);
        char c = v ? peek(r) : 0;
        if (v && c != ',' && c != ']') v = fail(r, r->p, "expected ',' or ']'");
        if (!v) {
            json_decref(a);
            return NULL;
        }
        r->p++;
        if (c == ']') return a;
    }
}

static bool word(reader *r, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n) != 0) return false;
    r->p += n;
    return true;
}

static json_t *value(reader *r)
{
    json_t *j = NULL;
    size_t n;
    char *s, c = peek(r);
    if (c == '{' || c == '[') {
        if (r->depth == MAX_DEPTH) return fail(r, r->p, "nested too deeply");
        r->depth++;
        j = c == '{' ? object(r) : array(r);
        r->depth--;
        return j;
    }
    if (c == '"') {
        if (!(s = string(r, &n))) return NULL;
        j = json_stringn_nocheck(s, n);
        free(s);
        return j ? j : no_memory(r);
    }
    if (word(r, "true")) return json_true();
    if (word(r, "false")) return json_false();
    if (word(r, "null")) return json_null();
    if (r->p == r->end) return fail(r, r->p, "ends where a value is expected");
    return number(r);
}

json_t *hn_data_json(const char *s, size_t n, hn_data_fault *fault)
{
    reader r = { .p = s, .end = s + n, .fault = fault };
    *fault = (hn_data_fault){ 0 };
    json_t *j = value(&r);
    peek(&r);
    if (j && r.p < r.end) {
        json_decref(j);
        return fail(&r, r.p, "expected the end of the line");
    }
    return j;
}
