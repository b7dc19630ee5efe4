/* data_json: files of one JSON value: an array of records, or records one after the other. Owns where they begin and
 * end; refuses to know what they are. */
#include "train/data_parts.h"

/* A fault of the file's own JSON: behind it nothing can be read. */
static hone_status not_json(hn_data_reader *r, hn_jread *j)
{
    size_t line, column, left = (size_t)(j->end - j->at);
    hn_jread_where(j, &line, &column);
    return HN_FAIL(r->err, HONE_E_FORMAT, "%s:%zu: not JSON: column %zu: expected %s%s%s", r->path, line, column,
                   j->expected, left ? ", seen " : ", where it ends", HN_ESC(j->at, left < 16 ? left : 16));
}

/* The value j stands before, as a record. */
static hone_status read_value(hn_data_reader *r, hn_jread *j, const char **seen, hn_data_kind *k)
{
    hone_status st = hn_data_go_on(r);
    if (st != HONE_OK) return st;
    hn_jread_peek(j);
    const char *start = j->p;
    if (hn_jread_skip(j) != HONE_OK) return not_json(r, j);
    for (const char *p = *seen; (p = memchr(p, '\n', (size_t)(start - p))); p++) r->line++;
    *seen = start;
    return hn_data_json_record(r, start, (size_t)(j->p - start), k);
}

static hone_status read_values(hn_data_reader *r, const char *s, size_t n)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    hn_jread j;
    hone_error e;
    hn_data_kind k = HN_DATA_NONE;
    const char *seen = s;
    hone_status st = HONE_OK;
    if (hn_jread_begin(&j, s, n, &rules, r->path, NULL, &e) != HONE_OK) return not_json(r, &j);
    if (hn_jread_peek(&j) != '[') { /* objects, with white space between them or not */
        while (st == HONE_OK && hn_jread_peek(&j)) st = read_value(r, &j, &seen, &k);
        return st == HONE_OK && j.p < j.end ? hn_jread_end(&j) == HONE_OK ? HONE_OK : not_json(r, &j) : st;
    }
    bool more;
    if (hn_jread_open(&j, '[', &more) != HONE_OK) return not_json(r, &j);
    while (st == HONE_OK && more)
        if ((st = read_value(r, &j, &seen, &k)) == HONE_OK && hn_jread_next(&j, '[', &more) != HONE_OK)
            st = not_json(r, &j);
    return st != HONE_OK || hn_jread_end(&j) == HONE_OK ? st : not_json(r, &j);
}

hone_status hn_data_json(hn_data_reader *r)
{
    char *s;
    size_t n;
    hone_status st = hn_source_text(&s, &n, r->path, HN_JSON_FILE_BYTES, r->err);
    if (st != HONE_OK) return st;
    size_t bom = n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    st = read_values(r, s + bom, n - bom);
    free(s);
    return st;
}
