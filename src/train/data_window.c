/* data_window: a file that is read through a part of it in memory, so that no file is too large. Refuses to know what
 * stands in it: its users say what they are done with. */
#include "base/guard.h"
#include "train/data_parts.h"

enum { CHUNK = HN_LIMIT(1 << 20, 1 << 12) };

hone_status hn_data_window_open(hn_data_window *w, hn_data_reader *r)
{
    *w = (hn_data_window){ 0 };
    return hn_source_open(&w->f, r->path, r->err);
}

void hn_data_window_close(hn_data_window *w)
{
    free(w->buf);
    hn_source_close(&w->f);
}

hone_status hn_data_window_more(hn_data_window *w, hn_data_reader *r, bool *more)
{
    uint64_t left = w->f.size - w->at;
    size_t want = left < CHUNK ? (size_t)left : CHUNK;
    *more = want > 0;
    if (!want) return HONE_OK;
    if (w->from) {
        memmove(w->buf, w->buf + w->from, w->n - w->from);
        w->n -= w->from;
        w->from = 0;
    }
    if (w->cap - w->n < want) {
        size_t cap = 2 * w->cap + CHUNK;
        char *p = realloc(w->buf, cap);
        if (!p)
            return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: a record of %zu bytes and more", r->path, (long long)r->line,
                           w->n);
        w->buf = p;
        w->cap = cap;
    }
    hone_status st = hn_source_read(&w->f, w->at, w->buf + w->n, want, r->err);
    if (st != HONE_OK) return st;
    if (!w->at && want >= 3 && memcmp(w->buf, "\xEF\xBB\xBF", 3) == 0) w->from = 3;
    w->at += want;
    w->n += want;
    return HONE_OK;
}
