/* data_json: files of one JSON value: an array of records, or records one after the other. Owns where they begin and
 * end, and the commas between them; refuses to know what they are. Of a file one record is in memory. */
#include "train/data_parts.h"

typedef struct values {
    hn_data_reader *r;
    hn_data_window w;
    int64_t line;  /* of w.buf[w.from], from 1 … */
    size_t column; /* … and the characters of that line before it */
    hn_data_kind k;
} values;

/* A fault of the file's own JSON: behind it nothing can be read. The line and column are from 1 from here on. */
static hone_status not_json(const values *v, size_t line, size_t column, const char *expected, const char *seen,
                            size_t left)
{
    return HN_FAIL(v->r->err, HONE_E_FORMAT, "%s:%lld: not JSON: column %zu: expected %s%s%s", v->r->path,
                   (long long)v->line + (long long)line - 1, line == 1 ? v->column + column : column, expected,
                   left ? ", seen " : ", where it ends", HN_ESC(seen, left < 16 ? left : 16));
}
static hone_status not_here(const values *v, const char *expected)
{
    return not_json(v, 1, 1, expected, v->w.buf + v->w.from, v->w.n - v->w.from);
}

/* Done with n bytes. */
static void consume(values *v, size_t n)
{
    const char *s = v->w.buf + v->w.from;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            v->line++;
            v->column = 0;
        } else if (((unsigned char)s[i] & 0xC0) != 0x80) {
            v->column++;
        }
    }
    v->w.from += n;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Past white space; *c is what stands there, -1: the end. */
static hone_status peek(values *v, int *c)
{
    for (bool more = true; more;) {
        size_t n = v->w.n - v->w.from, i = 0;
        while (i < n && is_space(v->w.buf[v->w.from + i])) i++;
        if (n) consume(v, i);
        if (i < n) {
            *c = (unsigned char)v->w.buf[v->w.from];
            return HONE_OK;
        }
        hone_status st = hn_data_window_more(&v->w, v->r, &more);
        if (st != HONE_OK) return st;
    }
    *c = -1;
    return HONE_OK;
}

typedef struct extent {
    size_t n; /* bytes of the value that are in the window, seen by the scan */
    int depth;
    bool string, escaped, scalar, done;
    bool dropped; /* too long: its beginning is gone */
} extent;

/* Up to the end of the value, as far as the window goes: brackets and quotes alone are looked at. */
static void scan(const values *v, extent *x)
{
    const char *s = v->w.buf + v->w.from;
    for (size_t n = v->w.n - v->w.from; x->n < n && !x->done;) {
        char c = s[x->n];
        if (x->scalar && (is_space(c) || strchr(",[]{}\"", c ? c : 'x'))) {
            x->done = true;
            return;
        }
        x->n++;
        if (x->string) {
            if (x->escaped) x->escaped = false;
            else if (c == '\\') x->escaped = true;
            else if (c == '"') x->string = false;
        } else if (c == '"') {
            x->string = true;
        } else if (c == '{' || c == '[') {
            x->depth++;
        } else if (c == '}' || c == ']') {
            x->depth--;
        } else if (!x->depth) {
            x->scalar = true;
        }
        x->done = !x->string && !x->scalar && x->depth <= 0;
    }
}

/* All of the value that stands here, or its beginning where it has no end. */
static hone_status find_value(values *v, extent *x)
{
    *x = (extent){ 0 };
    for (bool more = true;;) {
        scan(v, x);
        if (x->done || !more) return HONE_OK;
        if (x->n > HN_DATA_RECORD) {
            consume(v, x->n);
            x->n = 0;
            x->dropped = true;
        }
        hone_status st = hn_data_window_more(&v->w, v->r, &more);
        if (st != HONE_OK) return st;
    }
}

static hone_status read_value(values *v)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    hn_jread j;
    hone_error e;
    extent x;
    hone_status st = hn_data_go_on(v->r);
    v->r->line = v->line;
    if (st != HONE_OK || (st = find_value(v, &x)) != HONE_OK) return st;
    const char *s = v->w.buf + v->w.from;
    if (x.dropped) {
        bool whole = x.done || x.scalar;
        if (!whole) consume(v, x.n);
        if (!whole) return not_here(v, "the end of a record of more bytes than it may have");
        v->r->d->stats.n_line++;
        st = hn_data_bad(v->r, "a record of more than %d bytes", HN_DATA_RECORD);
    } else {
        if (hn_jread_begin(&j, s, x.n, &rules, v->r->path, NULL, &e) != HONE_OK || hn_jread_skip(&j) != HONE_OK ||
            hn_jread_end(&j) != HONE_OK) {
            size_t line, column;
            hn_jread_where(&j, &line, &column);
            return not_json(v, line, column, j.expected, j.at, (size_t)(v->w.buf + v->w.n - j.at));
        }
        st = hn_data_json_record(v->r, s, x.n, &v->k);
    }
    consume(v, x.n);
    return st;
}

/* The rest of an array, whose bracket is passed. */
static hone_status read_array(values *v)
{
    int c;
    hone_status st = peek(v, &c);
    if (st == HONE_OK && c == ']') {
        consume(v, 1);
        return HONE_OK;
    }
    while (st == HONE_OK) {
        if ((st = read_value(v)) != HONE_OK || (st = peek(v, &c)) != HONE_OK) return st;
        if (c != ',' && c != ']') return not_here(v, "',' or ']'");
        consume(v, 1);
        if (c == ']') return HONE_OK;
        st = peek(v, &c);
    }
    return st;
}

hone_status hn_data_json(hn_data_reader *r)
{
    values v = { .r = r, .line = 1 };
    int c;
    hone_status st = hn_data_window_open(&v.w, r);
    if (st == HONE_OK) st = peek(&v, &c);
    if (st == HONE_OK && c == '[') {
        consume(&v, 1);
        st = read_array(&v);
        if (st == HONE_OK) st = peek(&v, &c);
        if (st == HONE_OK && c >= 0) st = not_here(&v, "the end of the text");
    } else { /* objects, with white space between them or not */
        while (st == HONE_OK && c >= 0)
            if ((st = read_value(&v)) == HONE_OK) st = peek(&v, &c);
    }
    hn_data_window_close(&v.w);
    return st;
}
