/* Text that grows, and JSON written by hand: an allocation that fails is remembered in the text itself, so that one
 * check at its end is enough. Owns escaping and how numbers are written; refuses to know what is said. */
#include "serve/bytes.h"
#include "base/json_tree.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

void hn_bytes_free(hn_bytes *b)
{
    free(b->p);
    *b = (hn_bytes){ 0 };
}

char *hn_bytes_keep(const hn_bytes *b, hn_arena *a) { return b->lost ? NULL : hn_arena_strndup(a, b->p, b->n); }

/* Room for n more. */
static bool reserve(hn_bytes *b, size_t n)
{
    if (b->lost) return false;
    if (n <= b->cap - b->n) return true;
    size_t need = b->n + n, cap = b->cap < 128 ? 256 : b->cap / 2 * 3;
    if (cap < need) cap = need;
    char *p = need < n ? NULL : realloc(b->p, cap);
    if (!p) {
        b->lost = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void hn_bytes_add(hn_bytes *b, const void *p, size_t n)
{
    if (n == 0 || !reserve(b, n)) return;
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

void hn_bytes_text(hn_bytes *b, const char *s) { hn_bytes_add(b, s, strlen(s)); }

void hn_bytes_printf(hn_bytes *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) b->lost = true;
    else if (reserve(b, (size_t)n + 1)) b->n += (size_t)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
    va_end(again);
}

void hn_bytes_comma(hn_bytes *b)
{
    if (b->n && !strchr("{[:,", b->p[b->n - 1])) hn_bytes_add(b, ",", 1);
}

/* ---- strings ----------------------------------------------------------------------------- */

void hn_bytes_escaped(hn_bytes *b, const char *s, size_t n)
{
    static const char named[32] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
    const unsigned char *u = (const unsigned char *)s;
    size_t from = 0, used; /* [from, i) is as it is */
    for (size_t i = 0; i < n; i += used) {
        used = 1;
        if (u[i] >= 0x20 && u[i] < 0x80 && u[i] != '"' && u[i] != '\\') continue;
        if (u[i] >= 0x80 && hn_utf8_next(u + i, n - i, &used) >= 0) continue;

        hn_bytes_add(b, s + from, i - from);
        if (u[i] >= 0x80) {
            hn_bytes_text(b, "\xEF\xBF\xBD");
            if (used == 0) used = 1;
        } else if (u[i] == '"' || u[i] == '\\') {
            hn_bytes_add(b, (char[]){ '\\', s[i] }, 2);
        } else if (named[u[i]]) {
            hn_bytes_add(b, (char[]){ '\\', named[u[i]] }, 2);
        } else {
            hn_bytes_printf(b, "\\u%04x", u[i]);
        }
        from = i + used;
    }
    if (from < n) hn_bytes_add(b, s + from, n - from);
}

void hn_bytes_json(hn_bytes *b, const char *s, size_t n)
{
    if (!s) {
        hn_bytes_text(b, "null");
        return;
    }
    hn_bytes_add(b, "\"", 1);
    hn_bytes_escaped(b, s, n);
    hn_bytes_add(b, "\"", 1);
}

void hn_bytes_json_text(hn_bytes *b, const char *s) { hn_bytes_json(b, s, s ? strlen(s) : 0); }

/* ---- numbers ----------------------------------------------------------------------------- */

void hn_bytes_int(hn_bytes *b, int64_t v) { hn_bytes_printf(b, "%lld", (long long)v); }

/* s as JSON wants it: a point whatever the locale has, and one where there is no exponent. */
static void add_real(hn_bytes *b, char *s)
{
    bool real = false;
    for (char *p = s; *p; p++) {
        if (!strchr("-+0123456789eE", *p)) *p = '.';
        real |= strchr(".eE", *p) != NULL;
    }
    hn_bytes_text(b, s);
    if (!real) hn_bytes_text(b, ".0");
}

void hn_bytes_f64(hn_bytes *b, double v)
{
    char s[HN_JSON_REAL_TEXT];
    if (!isfinite(v)) {
        hn_bytes_text(b, "null");
        return;
    }
    hn_json_real(s, v);
    hn_bytes_text(b, s);
}

void hn_bytes_f32(hn_bytes *b, float v)
{
    char s[40];
    if (!isfinite(v)) {
        hn_bytes_text(b, "null");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, (double)v);
        if (digits == 9 || strtof(s, NULL) == v) break;
    }
    add_real(b, s);
}

void hn_bytes_name(hn_bytes *b, const char *name)
{
    hn_bytes_comma(b);
    hn_bytes_json_text(b, name);
    hn_bytes_text(b, ":");
}

void hn_bytes_text_member(hn_bytes *b, const char *name, const char *value)
{
    hn_bytes_name(b, name);
    hn_bytes_json_text(b, value);
}

void hn_bytes_int_member(hn_bytes *b, const char *name, int64_t value)
{
    hn_bytes_name(b, name);
    hn_bytes_int(b, value);
}

void hn_bytes_base64(hn_bytes *b, const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *u = p;
    if (!reserve(b, n / 3 * 4 + 4)) return;
    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3; /* bytes of this group */
        uint32_t v = (uint32_t)u[i] << 16 | (k > 1 ? (uint32_t)u[i + 1] << 8 : 0) | (k > 2 ? u[i + 2] : 0);
        for (size_t d = 0; d < 4; d++) b->p[b->n++] = d <= k ? digits[v >> (18 - 6 * d) & 63] : '=';
    }
}
