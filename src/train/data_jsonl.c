/* data_jsonl: files of a JSON object a line. Owns lines; refuses to know what records are. Lines end with LF or CR LF,
 * the last may lack it; a byte order mark before the first and lines of white space are passed over. */
#include "train/data_parts.h"

/* The next line without its end; *s NULL at the end of the file. *too_long: there is only its beginning. */
static hone_status next_line(hn_data_window *w, hn_data_reader *r, char **s, size_t *len, bool *too_long)
{
    size_t seen = 0; /* of what is there: no line end */
    *s = NULL;
    *too_long = false;
    for (bool more = true;;) {
        size_t n = w->n - w->from;
        char *nl = n > seen ? memchr(w->buf + w->from + seen, '\n', n - seen) : NULL;
        if (nl || !more) {
            if (!n) return HONE_OK;
            *s = w->buf + w->from;
            *len = nl ? (size_t)(nl - *s) : n;
            w->from += *len + (nl != NULL);
            return HONE_OK;
        }
        if (n > HN_DATA_RECORD) { /* its beginning is enough; look for its end */
            *too_long = true;
            n = 64;
            w->n = w->from + n;
        }
        seen = n;
        hone_status st = hn_data_window_more(w, r, &more);
        if (st != HONE_OK) return st;
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
    hn_data_window w;
    hn_data_kind k = HN_DATA_NONE;
    char *s;
    size_t n;
    bool too_long;
    hone_status st = hn_data_window_open(&w, r);
    for (r->line = 1; st == HONE_OK; r->line++) {
        if ((st = hn_data_go_on(r)) != HONE_OK || (st = next_line(&w, r, &s, &n, &too_long)) != HONE_OK || !s) break;
        if (!too_long) st = read_line(r, s, n, &k);
        else {
            r->d->stats.n_line++;
            st = hn_data_bad(r, "a line of more than %d bytes", HN_DATA_RECORD);
        }
    }
    hn_data_window_close(&w);
    return st;
}
