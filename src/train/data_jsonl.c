/* data_jsonl: files of a JSON object a line. Owns lines; refuses to know what records are. Lines end with LF or CR LF,
 * the last may lack it; a byte order mark before the first and lines of white space are passed over. */
#include "base/guard.h"
#include "train/data_parts.h"

enum { CHUNK = HN_LIMIT(1 << 20, 1 << 12), MAX_LINE = HN_LIMIT(64 << 20, 1 << 14) };

/* ---- lines -------------------------------------------------------------------------------------- */

typedef struct lines {
    hn_source f;
    uint64_t at; /* of the file, what comes behind the buffer */
    char *buf;
    size_t cap, from, n;  /* what is not given yet: buf[from, n) */
    bool begun, too_long; /* too_long: of the line given last there is only the beginning */
} lines;

/* The next line without its end; *s NULL at the end of the file. */
static hone_status next_line(lines *l, hn_data_reader *r, char **s, size_t *len)
{
    size_t seen = l->from;
    hone_status st;
    *s = NULL;
    l->too_long = false;
    for (;;) {
        char *nl = l->n > seen ? memchr(l->buf + seen, '\n', l->n - seen) : NULL;
        bool end = l->at == l->f.size;
        if (nl || end) {
            if (l->from == l->n) return HONE_OK;
            size_t stop = nl ? (size_t)(nl - l->buf) : l->n;
            *s = l->buf + l->from;
            *len = stop - l->from;
            l->from = stop + (nl != NULL);
            return HONE_OK;
        }
        if (l->n - l->from > MAX_LINE) { /* its beginning is enough; look for its end */
            l->too_long = true;
            l->n = l->from + 64;
        }
        if (l->from) {
            memmove(l->buf, l->buf + l->from, l->n - l->from);
            l->n -= l->from;
            l->from = 0;
        }
        seen = l->n;
        if (l->cap - l->n < CHUNK) {
            size_t cap = 2 * l->cap + CHUNK;
            char *p = realloc(l->buf, cap);
            if (!p)
                return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: a line of %zu bytes and more", r->path,
                               (long long)r->line, l->n);
            l->buf = p;
            l->cap = cap;
        }
        size_t want = l->f.size - l->at < CHUNK ? (size_t)(l->f.size - l->at) : CHUNK;
        if ((st = hn_source_read(&l->f, l->at, l->buf + l->n, want, r->err)) != HONE_OK) return st;
        l->at += want;
        l->n += want;
        if (!l->begun && l->n >= 3 && memcmp(l->buf, "\xEF\xBB\xBF", 3) == 0) seen = l->from = 3;
        l->begun = true;
    }
}

static hone_status read_line(hn_data_reader *r, const char *s, size_t n, hn_data_kind *k)
{
    size_t blank = 0;
    while (blank < n && (s[blank] == ' ' || s[blank] == '\t' || s[blank] == '\r')) blank++;
    return blank == n ? HONE_OK : hn_data_json_record(r, s, n, k);
}

hone_status hn_data_jsonl(hn_data_reader *r)
{
    lines l = { 0 };
    hn_data_kind k = HN_DATA_NONE;
    char *s;
    size_t n;
    hone_status st = hn_source_open(&l.f, r->path, r->err);
    for (r->line = 1; st == HONE_OK; r->line++) {
        if ((st = hn_data_go_on(r)) != HONE_OK || (st = next_line(&l, r, &s, &n)) != HONE_OK || !s) break;
        if (!l.too_long) st = read_line(r, s, n, &k);
        else {
            r->d->stats.n_line++;
            st = hn_data_bad(r, "a line of more than %d bytes", MAX_LINE);
        }
    }
    free(l.buf);
    hn_source_close(&l.f);
    return st;
}
