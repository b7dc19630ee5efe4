/* Values of arguments as JSON; see call_values.h. */
#include "text/call_values.h"
#include "base/json_tree.h"
#include "base/utf8.h"
#include "text/text_priv.h"

#include <stdlib.h>

hone_status hn_grown_put(hn_grown *t, const char *s, size_t n, hone_error *err)
{
    if (n > t->cap - t->n || !t->p) { /* also for nothing: whoever reads may add 0 to it */
        size_t cap = (t->n + n) * 2 + 64;
        char *p = realloc(t->p, cap);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "an answer's text of %zu bytes", cap);
        t->p = p;
        t->cap = cap;
    }
    if (n) memcpy(t->p + t->n, s, n);
    t->n += n;
    return HONE_OK;
}

static hone_status put_str(hn_grown *t, const char *s, hone_error *err) { return hn_grown_put(t, s, strlen(s), err); }

/* ---- JSON ------------------------------------------------------------------------------------------------ */

bool hn_json_scan_byte(hn_json_scan *s, char c)
{
    if (s->done) return false;
    if (s->string) {
        if (s->escape) s->escape = false;
        else if (c == '\\') s->escape = true;
        else if (c == '"') s->string = false;
        s->done = !s->string && s->depth == 0;
        return true;
    }
    bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!s->begun && blank) return true;
    if (s->depth == 0 && s->scalar && (blank || c == ',' || c == '}' || c == ']' || c == '<')) {
        s->done = true;
        return false;
    }
    s->begun = true;
    if (c == '"') s->string = true;
    else if (c == '{' || c == '[') s->depth++;
    else if (c == '}' || c == ']') s->depth--;
    else if (s->depth == 0) s->scalar = true;
    s->done = s->depth < 0 || (s->depth == 0 && !s->string && !s->scalar);
    return true;
}

static bool is_json(const char *s, size_t n)
{
    const hn_json_rules rules = { .max_depth = 64, .flags = HN_JSON_DIGITS }; /* they stay as they are */
    hn_jread j;
    return n && hn_jread_begin(&j, s, n, &rules, "arguments", NULL, NULL) == HONE_OK && hn_jread_skip(&j) == HONE_OK &&
           hn_jread_end(&j) == HONE_OK;
}

hone_status hn_call_escape(hn_grown *out, const char *s, size_t n, const hn_vocab *v, hone_error *err)
{
    hone_status st = HONE_OK;
    size_t plain = 0;
    for (size_t i = 0; i < n && st == HONE_OK;) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != HN_CALL_ESCAPE) {
            i++;
            continue;
        }
        static const char raw[] = "\"\\\b\f\n\r\t", name[] = "\"\\bfnrt";
        const char *at = c ? strchr(raw, c) : NULL;
        char esc[8];
        st = hn_grown_put(out, s + plain, i - plain, err);
        if (st != HONE_OK) break;
        if (c == HN_CALL_ESCAPE) {
            size_t len = 0;
            const char *text =
                v && n - i >= HN_CALL_TOKEN ? hn_vocab_piece(v, hn_call_get_token(s + i + 1), true, &len) : NULL;
            if (text) st = hn_call_escape(out, text, len, NULL, err);
            i += n - i >= HN_CALL_TOKEN ? HN_CALL_TOKEN : n - i;
        } else {
            if (at) snprintf(esc, sizeof esc, "\\%c", name[at - raw]);
            else snprintf(esc, sizeof esc, "\\u%04x", c);
            st = put_str(out, esc, err);
            i++;
        }
        plain = i;
    }
    return st == HONE_OK && n > plain ? hn_grown_put(out, s + plain, n - plain, err) : st;
}

static hone_status put_string(hn_grown *out, const char *s, size_t n, const hn_vocab *v, hone_error *err)
{
    hone_status st = put_str(out, "\"", err);
    if (st == HONE_OK) st = hn_call_escape(out, s, n, v, err);
    return st == HONE_OK ? put_str(out, "\"", err) : st;
}

hone_status hn_call_unescape(hn_grown *out, const char *s, size_t n, hone_error *err)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL };
    hn_jread j;
    hn_jread_text t;
    if (hn_jread_begin(&j, s, n, &rules, "arguments", NULL, NULL) != HONE_OK || hn_jread_string(&j, &t) != HONE_OK)
        return n > 2 ? hn_grown_put(out, s + 1, n - 2, err) : HONE_OK; /* no string of JSON: as it is */
    hone_status st = hn_grown_put(out, t.raw, t.n_raw, err);
    if (st != HONE_OK || !t.n_raw) return st;
    hn_jread_unescape(out->p + out->n - t.n_raw, &t);
    out->n -= t.n_raw - t.n;
    return HONE_OK;
}

hone_status hn_call_json_or_string(hn_grown *out, const char *s, size_t n, hone_error *err)
{
    return is_json(s, n) ? hn_grown_put(out, s, n, err) : put_string(out, s, n, NULL, err);
}

enum { CUT_DEEPEST = 64, CUT_TRIES = 8 };

typedef struct cut { /* where JSON stands that is cut */
    char close[CUT_DEEPEST];
    int depth;
    bool string, lost;                /* lost: it is no JSON, or too deep */
    size_t n;                         /* bytes of it: what is behind its end, or part of an escape, is none */
    size_t comma[CUT_TRIES], n_comma; /* the last ones outside of strings, comma i in place i % CUT_TRIES */
} cut;

static size_t hex_digits(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && s[k] && strchr("0123456789abcdefABCDEF", s[k])) k++;
    return k;
}

/* How many hexadecimal digits follow \c, in JSON or in Python. */
static size_t digits_of(char c) { return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; }

/* Bytes of what a string holds, which is cut at n, up to where its last whole escape or character ends. The first half
 * of a pair of surrogates is none while the second may come. */
static size_t whole_escapes(const char *s, size_t n)
{
    size_t i = 0, k;
    for (; i < n; i += k) {
        k = 1;
        if (s[i] != '\\') continue;
        if (i + 1 == n) return i;
        size_t want = digits_of(s[i + 1]), have = hex_digits(s + i + 2, n - i - 2 < want ? n - i - 2 : want);
        if (have < want && i + 2 + have == n) return i;
        k = have < want ? 2 : 2 + want;
        bool high = k == 6 && (s[i + 2] | 0x20) == 'd' && strchr("89abAB", s[i + 3]);
        size_t left = n - i - k;
        if (high && left < 6 && memcmp(s + i + k, "\\u", left < 2 ? left : 2) == 0) return i;
    }
    return i;
}

static void look_at_cut(cut *c, const char *s, size_t n)
{
    size_t string = 0; /* what the last one holds begins there */
    *c = (cut){ .n = n };
    for (size_t i = 0; i < c->n && !c->lost; i++) {
        if (c->string) {
            if (s[i] == '"') c->string = false;
            else if (s[i] == '\\') i++;
        } else if (s[i] == '{' || s[i] == '[') {
            c->lost = c->depth == CUT_DEEPEST;
            if (!c->lost) c->close[c->depth++] = s[i] == '{' ? '}' : ']';
        } else if (s[i] == '}' || s[i] == ']') {
            c->lost = !c->depth || c->close[--c->depth] != s[i];
            if (!c->depth) c->n = i + 1;
        } else if (s[i] == '"') {
            c->string = true;
            string = i + 1;
        } else if (s[i] == ',') {
            c->comma[c->n_comma++ % CUT_TRIES] = i;
        }
    }
    if (c->string) c->n = string + whole_escapes(s + string, n - string);
}

/* s with the ends that its cut has left out, as an object; *out NULL: it is none. */
static hone_status close_cut(json_t **out, const char *s, size_t n, hone_error *err)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_DIGITS };
    hn_grown t = { 0 };
    cut c;
    look_at_cut(&c, s, n);
    *out = NULL;
    if (c.lost) return HONE_OK;
    hone_status st = hn_grown_put(&t, s, c.n, err);
    if (st == HONE_OK && c.string) st = put_str(&t, "\"", err);
    while (st == HONE_OK && c.depth) st = hn_grown_put(&t, &c.close[--c.depth], 1, err);
    if (st == HONE_OK && hn_json_tree(out, t.p, t.n, &rules, "arguments", NULL) == HONE_E_NOMEM)
        st = HN_FAIL(err, HONE_E_NOMEM, "arguments of %zu bytes", n);
    free(t.p);
    if (json_is_object(*out)) return st;
    json_decref(*out);
    *out = NULL;
    return st;
}

hone_status hn_call_object(json_t **out, const char *s, size_t n, hone_error *err)
{
    cut c;
    look_at_cut(&c, s, n);
    hone_status st = close_cut(out, s, n, err);
    for (size_t i = 0; st == HONE_OK && !*out && !c.lost && i < CUT_TRIES && i < c.n_comma; i++)
        st = close_cut(out, s, c.comma[(c.n_comma - 1 - i) % CUT_TRIES], err);
    if (st == HONE_OK && !*out && !(*out = json_object())) st = HN_FAIL(err, HONE_E_NOMEM, "arguments");
    return st;
}

/* ---- what a schema says ---------------------------------------------------------------------------------- */

uint32_t hn_call_kinds(const hn_call_tool *t, const char *key, size_t n)
{
    uint32_t kinds = t ? t->other_kinds : 0;
    for (size_t i = 0; t && i < t->n_argument; i++)
        if (strlen(t->argument[i].name) == n && memcmp(t->argument[i].name, key, n) == 0) kinds = t->argument[i].kinds;
    return kinds ? kinds : HN_VALUE_ANY;
}

/* ---- syntaxes of their own ------------------------------------------------------------------------------- */

typedef struct own {
    const char *s;
    size_t n, i;
    bool python;
    const hn_call_mark *quote; /* Gemma's, of strings */
    const hn_vocab *v;
    hn_grown *out;
    hone_status st;
    hone_error *err;
    int depth;
    bool bad;       /* something is not as the syntax has it */
    bool open, cut; /* what is cut is left open, as far as it goes; it is, and nothing comes behind it */
} own;

static bool at_quote(const char *s, size_t n, const hn_call_mark *q)
{
    return q->n && n >= q->n && memcmp(s, q->p, q->n) == 0;
}

/* Behind the string that begins at s; 0: it does not end. */
static size_t behind_string(const char *s, size_t n, bool python, const hn_call_mark *q)
{
    if (!python && *s != '"') {
        for (size_t i = q->n; i < n; i++)
            if (at_quote(s + i, n - i, q)) return i + q->n;
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if (s[i] == '\\') i++;
        else if (s[i] == *s) return i + 1;
    }
    return 0;
}

static bool begins_string(const char *s, size_t n, bool python, const hn_call_mark *q)
{
    return *s == '"' || (python ? *s == '\'' : at_quote(s, n, q));
}

bool hn_call_own_end(hn_own_scan *o, const char *s, size_t n, bool python, const hn_call_mark *quote)
{
    const char mark = (char)HN_CALL_ESCAPE;
    while (o->i < n) {
        size_t left = n - o->i;
        char c = s[o->i];
        bool may_be = !python && (!o->open || o->open == mark);
        if (may_be && left < quote->n && memcmp(s + o->i, quote->p, left) == 0) return false; /* a part of a mark */
        if (may_be && at_quote(s + o->i, left, quote)) {
            o->open = o->open ? 0 : mark;
            o->i += quote->n;
            continue;
        }
        o->i++;
        if (o->open == mark) continue;
        if (o->open) {
            if (!o->escape && c == o->open) o->open = 0;
            o->escape = !o->escape && c == '\\';
        } else if (c == '"' || (python && c == '\'')) {
            o->open = c;
        } else {
            o->depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
            if (o->depth < 0) return true;
        }
    }
    return false;
}

static void put(own *o, const char *s, size_t n)
{
    if (o->st == HONE_OK) o->st = hn_grown_put(o->out, s, n, o->err);
}

static char peek(own *o)
{
    while (o->i < o->n && strchr(" \n\t\r", o->s[o->i]) && o->s[o->i]) o->i++;
    return (char)(o->i < o->n ? o->s[o->i] : 0);
}

static void put_utf8(hn_grown *t, uint32_t cp, own *o)
{
    char b[4];
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    if ((cp >= 0xD800 && cp <= 0xDFFF) || cp > 0x10FFFF) cp = 0xFFFD, n = 3;
    for (size_t i = n; i-- > 1; cp >>= 6) b[i] = (char)(0x80 | (cp & 0x3F));
    b[0] = (char)(lead[n > 1 ? n : 0] | cp);
    if (o->st == HONE_OK) o->st = hn_grown_put(t, b, n, o->err);
}

/* A literal of Python, without its quotes: its escapes are read. */
static void python_string(own *o, const char *s, size_t n)
{
    static const char name[] = "nrtbf0", means[] = "\n\r\t\b\f";
    hn_grown t = { 0 };
    for (size_t i = 0; i < n && o->st == HONE_OK; i++) {
        if (s[i] != '\\' || i + 1 == n) {
            o->st = hn_grown_put(&t, s + i, 1, o->err);
            continue;
        }
        char c = s[++i];
        size_t digits = digits_of(c), left = n - i - 1, k = hex_digits(s + i + 1, left < digits ? left : digits);
        uint32_t cp = 0;
        for (size_t d = i + 1; d < i + 1 + k; d++) cp = cp << 4 | (uint32_t)(s[d] <= '9' ? s[d] - '0' : (s[d] & 7) + 9);
        const char *at = c ? strchr(name, c) : NULL;
        if (digits && k == digits) {
            put_utf8(&t, cp, o);
            i += digits;
        } else if (at) {
            o->st = hn_grown_put(&t, &means[at - name], 1, o->err);
        } else {
            if (c != '\\' && c != '\'' && c != '"') o->st = hn_grown_put(&t, "\\", 1, o->err);
            if (o->st == HONE_OK && c != '\n') o->st = hn_grown_put(&t, &c, 1, o->err);
        }
    }
    if (o->st == HONE_OK) o->st = put_string(o->out, t.p, t.n, o->v, o->err);
    free(t.p);
}

static void value(own *o);

/* Appends what stands between quotes, and these, as it is, where it is JSON. */
static bool raw_string(own *o, const char *s, size_t n)
{
    size_t before = o->out->n;
    put(o, "\"", 1);
    put(o, s, n);
    put(o, "\"", 1);
    if (o->st != HONE_OK || is_json(o->out->p + before, o->out->n - before)) return true;
    o->out->n = before;
    return false;
}

static void string(own *o)
{
    const char *from = o->s + o->i;
    size_t k = behind_string(from, o->n - o->i, o->python, o->quote), q = o->python || *from == '"' ? 1 : o->quote->n;
    const char *s = from + q;
    size_t n = k ? k - 2 * q : o->n - o->i - q;
    o->cut = o->cut || (!k && o->open);
    if (o->cut && (o->python || *from == '"')) n = whole_escapes(s, n);
    bool json = *from == '"' && (k || o->cut) && raw_string(o, s, n); /* the same in all three */
    o->bad |= *from == '"' && !json && !o->python;
    if (!json && o->python) python_string(o, s, n);
    else if (!json && o->st == HONE_OK) o->st = put_string(o->out, s, n, o->v, o->err);
    if (o->st == HONE_OK && o->cut) o->out->n--; /* the quote */
    o->i = k ? o->i + k : o->n;
}

static const char *python_word(hone_str w)
{
    static const char *const words[][2] = { { "True", "true" }, { "False", "false" }, { "None", "null" } };
    for (size_t i = 0; i < 3; i++)
        if (w.len == strlen(words[i][0]) && memcmp(w.ptr, words[i][0], w.len) == 0) return words[i][1];
    return NULL;
}

/* May it become a number or a word of JSON or Python? */
static bool begins_word(hone_str w)
{
    static const char *const words[] = { "true", "false", "null", "True", "False", "None" };
    char number[64];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (w.len <= strlen(words[i]) && memcmp(w.ptr, words[i], w.len) == 0) return true;
    if (w.len >= sizeof number) return false;
    memcpy(number, w.ptr, w.len);
    number[w.len] = '0';
    return is_json(number, w.len + 1);
}

/* A word: a number, true, a name. */
static void word(own *o, bool key)
{
    size_t from = o->i;
    while (o->i < o->n && !strchr(key ? ":=,}]) \n" : ",}]) \n", o->s[o->i])) o->i++;
    if (o->st != HONE_OK) return;
    hone_str w = { o->s + from, o->i - from };
    bool whole = is_json(w.ptr, w.len) || python_word(w);
    o->cut = o->open && !key && !whole && o->i == o->n;
    o->bad |= key || !(o->cut ? begins_word(w) : whole);
    if (o->cut) return;
    if (key) o->st = put_string(o->out, o->s + from, o->i - from, o->v, o->err);
    else if (o->i > from) o->st = hn_call_value(o->out, o->s + from, o->i - from, HN_VALUE_ANY, o->v, o->err);
    else o->st = hn_grown_put(o->out, "null", 4, o->err);
}

/* Members or elements up to the bracket. */
static void list(own *o, char close, bool keys)
{
    for (bool more = false; o->st == HONE_OK && !o->cut; more = true) {
        char c = peek(o);
        if (!c || c == close) break;
        size_t from = o->i, before = o->out->n;
        if (more) put(o, ", ", 2);
        if (keys) {
            if (begins_string(o->s + o->i, o->n - o->i, o->python, o->quote)) string(o);
            else word(o, true);
            c = peek(o);
            if (!c && o->open) { /* a part of a name */
                o->cut = true;
                o->out->n = before;
                break;
            }
            if (c == ':' || c == '=') o->i++;
            else o->bad = true;
            put(o, ": ", 2);
        }
        value(o);
        c = peek(o);
        if (c == ',') o->i++;
        else o->bad |= c && c != close;
        if (o->i == from) o->i++, o->bad = true; /* whatever it is */
    }
    if (o->i < o->n) {
        o->i++;
    } else {
        o->bad |= !o->open;
        o->cut = o->open;
    }
}

static void value(own *o)
{
    enum { DEEPEST = 64 };
    char c = peek(o);
    o->cut = o->cut || (!c && o->open);
    if (o->cut) return;
    if (!c || o->depth >= DEEPEST) {
        put(o, "null", 4);
        o->i = o->depth >= DEEPEST ? o->n : o->i;
        return;
    }
    o->depth++;
    if (begins_string(o->s + o->i, o->n - o->i, o->python, o->quote)) {
        string(o);
    } else if (c == '{') {
        o->i++;
        put(o, "{", 1);
        list(o, '}', true);
        if (!o->cut) put(o, "}", 1);
    } else if (c == '[' || (o->python && c == '(')) {
        o->i++;
        put(o, "[", 1);
        list(o, c == '[' ? ']' : ')', false);
        if (!o->cut) put(o, "]", 1);
    } else {
        word(o, false);
    }
    o->depth--;
}

hone_status hn_call_own(hn_grown *out, const char *s, size_t n, bool python, const hn_call_mark *quote,
                        const hn_vocab *v, bool open, hone_error *err)
{
    own o = { .s = s, .n = n, .python = python, .quote = quote, .v = v, .out = out, .open = open, .err = err };
    put(&o, "{", 1);
    list(&o, python ? ')' : '}', true);
    if (!o.cut) put(&o, "}", 1);
    return o.st;
}

/* The kind of a value as it is written, blanks before it or not. */
static uint32_t kind_written(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \n\t\r", s[i])) i++;
    switch (i < n ? s[i] : 0) {
    case '"': return HN_VALUE_STRING;
    case '[': return HN_VALUE_ARRAY;
    case '{': return HN_VALUE_OBJECT;
    case 'n': return HN_VALUE_NULL;
    case 't':
    case 'f': return HN_VALUE_BOOL;
    default: return HN_VALUE_NUMBER;
    }
}

/* Appends s as JSON, where it is some; *is: it was. */
static hone_status put_value(hn_grown *out, const char *s, size_t n, const hn_vocab *v, bool *is, hone_error *err)
{
    const char *word = python_word((hone_str){ s, n });
    static const hn_call_mark none;
    *is = true;
    if (word) return put_str(out, word, err);
    if (is_json(s, n)) return hn_grown_put(out, s, n, err);
    if (n && (*s == '{' || *s == '[')) { /* some templates write lists and objects as Python shows them */
        size_t before = out->n;
        own o = { .s = s, .n = n, .python = true, .quote = &none, .v = v, .out = out, .err = err };
        value(&o);
        if (o.st != HONE_OK || (!o.bad && !peek(&o) && is_json(out->p + before, out->n - before))) return o.st;
        out->n = before;
    }
    *is = false;
    return HONE_OK;
}

hone_status hn_call_value(hn_grown *out, const char *s, size_t n, uint32_t kinds, const hn_vocab *v, hone_error *err)
{
    size_t before = out->n;
    bool is;
    hone_status st = put_value(out, s, n, v, &is, err);
    if (st != HONE_OK) return st;
    if (is && (!(kinds & HN_VALUE_STRING) || kinds & kind_written(out->p + before, out->n - before))) return HONE_OK;
    out->n = before;
    return put_string(out, s, n, v, err);
}

hone_status hn_call_value_cut(hn_grown *out, const char *s, size_t n, uint32_t kinds, const hn_vocab *v,
                              hone_error *err)
{
    static const hn_call_mark none;
    size_t before = out->n, blank = 0;
    while (blank < n && strchr(" \n\t\r", s[blank]) && s[blank]) blank++;
    if (blank == n) return HONE_OK;
    bool string = kinds & HN_VALUE_STRING;
    char c = s[blank];
    if (c == '{' || c == '[' || c == '"') {
        own o = { .s = s, .n = n, .i = blank, .quote = &none, .v = v, .out = out, .open = true, .err = err };
        o.python = c != '"';
        bool may_be = kinds & kind_written(s, n);
        if (may_be) value(&o);
        if (o.st != HONE_OK || !string || (may_be && !o.bad && !peek(&o))) return o.st;
        out->n = before; /* text that only begins as a value does */
    }
    hone_status st =
        c == '{' || c == '[' || c == '"' ? put_string(out, s, n, v, err) : hn_call_value(out, s, n, kinds, v, err);
    if (st != HONE_OK || out->p[before] != '"') return st;
    out->n = string ? out->n - 1 : before;
    return HONE_OK;
}
