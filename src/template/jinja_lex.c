/* jinja_lex: template source into tokens. Owns white space control (trim_blocks,
 * lstrip_blocks, - and + at delimiters), raw blocks, comments and literals. */
#include "template/jinja_priv.h"

#include "base/guard.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

typedef struct lex {
    hn_jcore *c;
    const char *s;
    size_t n, i;
    hn_jtok *tok;
    size_t n_tok, cap;
    bool line_start; /* the last delimiter ended with a newline, or nothing came before */
} lex;

static hn_jtok *push(lex *x, hn_jtok_kind kind, size_t pos, size_t len)
{
    x->tok = hn_jj_grow(x->c, x->tok, x->n_tok, &x->cap, sizeof *x->tok);
    hn_jtok *t = &x->tok[x->n_tok++];
    *t = (hn_jtok){ .kind = kind, .pos = (uint32_t)pos, .len = (uint32_t)len };
    return t;
}

static hn_jval text_value(lex *x, size_t a, size_t e)
{
    hn_jstr *s = hn_js_view(x->c, x->s + a, e - a, false);
    s->n_char = 0;
    for (size_t i = a; i < e; i++) s->n_char += ((unsigned char)x->s[i] & 0xC0) != 0x80;
    return HN_JSTR(s);
}

static size_t skip_space(const lex *x, size_t i)
{
    for (size_t used; i < x->n && hn_jj_is_space(hn_jj_cp(x->s + i, x->n - i, &used));) i += used;
    return i;
}

static bool at(const lex *x, size_t i, const char *what)
{
    size_t n = strlen(what);
    return x->n - i >= n && memcmp(x->s + i, what, n) == 0;
}

/* ---- text between delimiters ------------------------------------------------------------------ */

/* Text [a, e) before a delimiter that is followed by sign ('-', '+' or 0); strip: lstrip_blocks applies. */
static void push_text(lex *x, size_t a, size_t e, char sign, bool strip)
{
    if (sign == '-') {
        size_t end = a, used;
        for (size_t i = a; i < e; i += used)
            if (!hn_jj_is_space(hn_jj_cp(x->s + i, e - i, &used))) end = i + used;
        e = end;
    } else if (sign != '+' && strip) {
        size_t line = e;
        while (line > a && x->s[line - 1] != '\n') line--;
        if (line > a || x->line_start) {
            size_t i = line, used;
            while (i < e && hn_jj_is_space(hn_jj_cp(x->s + i, e - i, &used))) i += used;
            if (i >= e) e = line;
        }
    }
    if (e > a) push(x, HN_JT_TEXT, a, e - a)->v = text_value(x, a, e);
}

/* Behind a closing delimiter that may have begun with sign; trim: trim_blocks applies. */
static void after_close(lex *x, char sign, bool trim)
{
    size_t from = x->i;
    if (sign == '-') x->i = skip_space(x, x->i);
    else if (sign != '+' && trim && x->i < x->n && x->s[x->i] == '\n') x->i++;
    x->line_start = x->i > from && x->s[x->i - 1] == '\n';
}

static char sign_at(const lex *x, size_t i) { return i < x->n && (x->s[i] == '-' || x->s[i] == '+') ? x->s[i] : 0; }

static void comment(lex *x, size_t open)
{
    for (size_t i = open + 2; i + 1 < x->n; i++)
        if (x->s[i] == '#' && x->s[i + 1] == '}') {
            char sign = i > open + 2 + (sign_at(x, open + 2) != 0) ? sign_at(x, i - 1)
                                                                   : 0; /* {#-#}: one sign, of the opening */
            x->i = i + 2;
            after_close(x, sign, true);
            return;
        }
    hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)open, "Missing end of comment tag");
}

/* Position behind "{%- name -%}" at i, or 0; *begin_sign and *end_sign receive its signs. */
static size_t word_tag(const lex *x, size_t i, const char *name, char *begin_sign, char *end_sign)
{
    if (!at(x, i, "{%")) return 0;
    i += 2;
    *begin_sign = sign_at(x, i);
    i = skip_space(x, i + (*begin_sign != 0));
    if (!at(x, i, name)) return 0;
    i = skip_space(x, i + strlen(name));
    *end_sign = sign_at(x, i);
    i += *end_sign != 0;
    return at(x, i, "%}") ? i + 2 : 0;
}

/* A raw block whose opening tag ended with sign at x->i. */
static void raw(lex *x, size_t open, char sign)
{
    char b, e;
    if (sign == '-') x->i = skip_space(x, x->i);
    x->line_start = x->i > open && x->s[x->i - 1] == '\n';
    for (size_t i = x->i; i < x->n; i++) {
        size_t end = word_tag(x, i, "endraw", &b, &e);
        if (!end) continue;
        push_text(x, x->i, i, b, true);
        x->i = end;
        after_close(x, e, true);
        return;
    }
    hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)open, "Missing end of raw directive");
}

/* ---- inside delimiters ---------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The escape behind a backslash at x->s[i]; returns the position after it, appends to out. */
static size_t escape(lex *x, size_t i, char *out, size_t *n)
{
    static const char from[] = "ntr\\'\"abfv", to[] = "\n\t\r\\'\"\a\b\f\v";
    char c = x->s[i];
    const char *k = c ? strchr(from, c) : NULL;
    if (k) {
        out[(*n)++] = to[k - from];
        return i + 1;
    }
    if (c == '\n') return i + 1;
    if (c >= '0' && c <= '7') {
        uint32_t v = 0;
        size_t e = i;
        while (e < i + 3 && e < x->n && x->s[e] >= '0' && x->s[e] <= '7') v = v * 8 + (uint32_t)(x->s[e++] - '0');
        *n += hn_utf8_put(out + *n, v);
        return e;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c == 'N')
        hn_jj_fail(x->c, HONE_E_UNSUPPORTED, (uint32_t)i - 1,
                   "characters by name, \\N{…}, are not supported; expected \\uHHHH");
    if (!digits) {
        out[(*n)++] = '\\'; /* stays, and so does what follows */
        return i;
    }
    uint32_t v = 0;
    for (size_t d = 1; d <= digits; d++) {
        int h = i + d < x->n ? hex(x->s[i + d]) : -1;
        if (h < 0)
            hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)i - 1,
                       "truncated escape \\%c in a string; expected %zu hexadecimal digits", c, digits);
        v = v << 4 | (uint32_t)h;
    }
    i += digits + 1;
    if (v >= 0xD800 && v < 0xDC00 && at(x, i, "\\u")) { /* a surrogate pair is one character */
        uint32_t low = 0;
        size_t d = 2;
        for (; d < 6 && i + d < x->n && hex(x->s[i + d]) >= 0; d++) low = low << 4 | (uint32_t)hex(x->s[i + d]);
        if (d == 6 && low >= 0xDC00 && low < 0xE000) {
            v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
        }
    }
    if (v > 0x10FFFF || (v >= 0xD800 && v < 0xE000))
        hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)i - 1, "U+%04X in a string is not a character", v);
    *n += hn_utf8_put(out + *n, v);
    return i;
}

static void string(lex *x)
{
    size_t open = x->i, i = open + 1, n = 0;
    char q = x->s[open];
    size_t end = i;
    while (end < x->n && x->s[end] != q) end += x->s[end] == '\\' ? 2 : 1;
    if (end >= x->n) hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)open, "a string that does not end; expected %c", q);
    char *out = hn_jj_alloc(x->c, end - i + 1); /* no escape is shorter than what it stands for */
    while (i < end)
        if (x->s[i] == '\\') i = escape(x, i + 1, out, &n);
        else out[n++] = x->s[i++];
    hn_guard(out + n, end - open - n); /* end - open bytes were allocated */
    x->i = end + 1;
    hn_jstr *s = hn_js_view(x->c, out, n, false);
    s->n_char = 0;
    for (size_t k = 0; k < n; k++) s->n_char += ((unsigned char)out[k] & 0xC0) != 0x80;
    push(x, HN_JT_STR, open, x->i - open)->v = HN_JSTR(s);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c)
{
    return is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') || (unsigned char)c >= 0x80;
}

/* Digits and single underscores between them, from i; the position after them. */
static size_t digits_end(const lex *x, size_t i)
{
    while (i < x->n &&
           (is_digit(x->s[i]) || (x->s[i] == '_' && i + 1 < x->n && is_digit(x->s[i + 1]) && is_digit(x->s[i - 1]))))
        i++;
    return i;
}

static void number(lex *x)
{
    size_t a = x->i, e = digits_end(x, a);
    bool real = false, member = a > 0 && x->s[a - 1] == '.'; /* a.0.1: two indexes */
    int base = 10;
    if (x->s[a] == '0' && a + 1 < x->n && hn_jj_one_of(x->s[a + 1], "xXoObB")) {
        base = (x->s[a + 1] | 32) == 'x' ? 16 : (x->s[a + 1] | 32) == 'o' ? 8 : 2;
        for (e = a + 2; e < x->n && (hex(x->s[e]) >= 0 || x->s[e] == '_'); e++) {}
    } else if (!member) {
        if (e + 1 < x->n && x->s[e] == '.' && is_digit(x->s[e + 1])) {
            real = true;
            e = digits_end(x, e + 1);
        }
        size_t k = e;
        if (k < x->n && (x->s[k] | 32) == 'e') {
            k++;
            if (k < x->n && (x->s[k] == '+' || x->s[k] == '-')) k++;
            if (k < x->n && is_digit(x->s[k])) {
                real = true;
                e = digits_end(x, k);
            }
        }
    }
    char buf[128];
    size_t n = 0;
    for (size_t i = base == 10 ? a : a + 2; i < e; i++)
        if (x->s[i] != '_') {
            if (n + 1 >= sizeof buf)
                hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "a number of more than %zu digits", sizeof buf);
            buf[n++] = x->s[i];
        }
    buf[n] = 0;
    x->i = e;
    if (real) {
        push(x, HN_JT_FLOAT, a, e - a)->v = HN_JFLOAT(hn_jj_strtod(buf, NULL));
        return;
    }
    char *end;
    errno = 0;
    long long v = strtoll(buf, &end, base);
    if (errno) hn_jj_fail(x->c, HONE_E_UNSUPPORTED, (uint32_t)a, "the integer %s is beyond 64 bits", buf);
    if (!n || *end || (base == 10 && n > 1 && buf[0] == '0' && v != 0))
        hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "malformed number");
    push(x, HN_JT_INT, a, e - a)->v = HN_JINT(v);
}

static void operator_(lex *x, char *stack, size_t *n_stack, size_t cap)
{
    static const struct {
        const char *text;
        int op;
    } two[] = {
        { "//", HN_JOP_FLOORDIV }, { "**", HN_JOP_POW }, { "==", HN_JOP_EQ },
        { "!=", HN_JOP_NE },       { "<=", HN_JOP_LE },  { ">=", HN_JOP_GE },
    };
    size_t a = x->i;
    char c = x->s[a];
    for (size_t k = 0; k < sizeof two / sizeof *two; k++)
        if (at(x, a, two[k].text)) {
            push(x, HN_JT_OP, a, 2)->op = two[k].op;
            x->i += 2;
            return;
        }
    if (!hn_jj_one_of(c, "+-*/%~|.,:()[]{}=<>"))
        hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "unexpected char '%s'",
                   HN_ESC(x->s + a, (unsigned char)c < 0x80 ? 1
                                    : x->n - a < 4          ? x->n - a
                                                            : 4));
    if (hn_jj_one_of(c, "([{")) {
        if (*n_stack >= cap)
            hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "brackets nested deeper than %zu levels", cap);
        stack[(*n_stack)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (hn_jj_one_of(c, ")]}")) {
        if (!*n_stack) hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "unexpected '%c'", c);
        if (stack[--*n_stack] != c)
            hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)a, "unexpected '%c', expected '%c'", c, stack[*n_stack]);
    }
    push(x, HN_JT_OP, a, 1)->op = c;
    x->i++;
}

/* Tokens up to the closing delimiter. */
static void inside(lex *x, bool block, size_t open)
{
    const char *close = block ? "%}" : "}}";
    char stack[256];
    size_t n_stack = 0;
    for (;;) {
        x->i = skip_space(x, x->i);
        if (x->i >= x->n)
            hn_jj_fail(x->c, HONE_E_FORMAT, (uint32_t)open, "a tag that does not end; expected '%s'", close);
        char sign = sign_at(x, x->i), c = x->s[x->i];
        if (sign == '+' && !block) sign = 0;
        if (!n_stack && at(x, x->i + (sign != 0), close)) {
            push(x, block ? HN_JT_BLOCK_END : HN_JT_VAR_END, x->i, 2);
            x->i += 2 + (sign != 0);
            after_close(x, sign, block);
            return;
        }
        if (c == '"' || c == '\'') {
            string(x);
        } else if (is_digit(c)) {
            number(x);
        } else if (is_word(c)) {
            size_t a = x->i;
            while (x->i < x->n && is_word(x->s[x->i])) {
                size_t used;
                if (hn_jj_is_space(hn_jj_cp(x->s + x->i, x->n - x->i, &used))) break;
                x->i += used;
            }
            push(x, HN_JT_NAME, a, x->i - a)->v = text_value(x, a, x->i);
        } else {
            operator_(x, stack, &n_stack, sizeof stack);
        }
    }
}

hn_jtok *hn_jj_lex(hn_jcore *c, size_t *n)
{
    lex x = { .c = c, .s = c->src, .n = c->src_len, .line_start = true };
    for (;;) {
        size_t a = x.i, i = a;
        while (i < x.n &&
               !(x.s[i] == '{' && i + 1 < x.n && (x.s[i + 1] == '{' || x.s[i + 1] == '%' || x.s[i + 1] == '#')))
            i++;
        if (i >= x.n) {
            if (x.n > a) push(&x, HN_JT_TEXT, a, x.n - a)->v = text_value(&x, a, x.n);
            push(&x, HN_JT_EOF, x.n, 0);
            *n = x.n_tok;
            return x.tok;
        }
        char kind = x.s[i + 1], sign = sign_at(&x, i + 2), b, e;
        push_text(&x, a, i, sign, kind != '{');
        size_t end;
        if (kind == '#') {
            comment(&x, i);
        } else if (kind == '%' && (end = word_tag(&x, i, "raw", &b, &e)) && e != '+') {
            x.i = end;
            raw(&x, i, e);
        } else {
            push(&x, kind == '%' ? HN_JT_BLOCK : HN_JT_VAR, i, 2);
            x.i = i + 2 + (sign != 0);
            inside(&x, kind == '%', i);
        }
    }
}
