/* data_table: tables of text (RFC 4180): a header that names columns, a record a row. Owns cells and quotes; refuses to
 * know what the columns mean, which is that of the keys of the same names in JSON (data_record.c).
 *
 * Cells are divided by tabs, commas or semicolons: by the one that stands most often in the header. A cell between
 * quotes may hold that, line ends, and "" for a quote. Empty rows are passed over. */
#include "train/data_parts.h"

enum { MAX_COLUMN = 256 };

typedef struct table {
    hn_data_reader *r;
    char *s; /* the file; cells are unquoted in place */
    size_t n, at;
    char by;
    int64_t line; /* where s[at] stands */
    struct cell {
        char *p;
        size_t n;
    } cell[MAX_COLUMN];
    size_t n_cell;
    json_t *name; /* of the columns, an array */
} table;

/* Between quotes, to the one that closes it; *end behind that. False: none does. */
static bool unquote(table *t, struct cell *c, size_t *end)
{
    size_t i = t->at + 1;
    c->p = t->s + i;
    for (c->n = 0; i < t->n; i++) {
        if (t->s[i] == '"') {
            if (i + 1 == t->n || t->s[i + 1] != '"') break;
            i++;
        }
        t->line += t->s[i] == '\n';
        c->p[c->n++] = t->s[i];
    }
    *end = i + 1;
    return i < t->n;
}

/* The next row into t->cell; *why NULL, or what is wrong with it. */
static void next_row(table *t, const char **why)
{
    *why = NULL;
    for (t->n_cell = 0;;) {
        struct cell c = { t->s + t->at, 0 };
        size_t end = t->at;
        if (t->at < t->n && t->s[t->at] == '"') {
            if (!unquote(t, &c, &end)) *why = "a quote that nothing closes";
        } else {
            while (end < t->n && t->s[end] != t->by && t->s[end] != '\n') end++;
            c.n = end - t->at - (end > t->at && end < t->n && t->s[end] == '\n' && t->s[end - 1] == '\r');
        }
        if (t->n_cell < MAX_COLUMN) t->cell[t->n_cell++] = c;
        else *why = "more than 256 columns";
        t->at = end;
        if (t->at < t->n && t->s[t->at] == '\r') t->at++;
        bool on = t->at < t->n && t->s[t->at] == t->by;
        if (!on && t->at < t->n && t->s[t->at] != '\n') {
            if (!*why) *why = "text behind a closing quote";
            const char *nl = memchr(t->s + t->at, '\n', t->n - t->at);
            t->at = nl ? (size_t)(nl - t->s) : t->n;
        }
        if (t->at < t->n) {
            t->line += t->s[t->at] == '\n';
            t->at++;
        }
        if (!on) return;
    }
}

/* A string of a cell; NULL: no memory, or *why. */
static json_t *text_of(const struct cell *c, const char **why)
{
    if (hn_data_well_formed(c->p, c->n) < c->n) *why = "not UTF-8";
    return *why ? NULL : json_stringn_nocheck(c->p, c->n);
}

static char divider(const char *s, size_t n, bool tabs)
{
    size_t count[3] = { 0 };
    static const char by[] = ",;\t";
    for (size_t i = 0; i < n && s[i] != '\n'; i++) {
        const char *b = s[i] ? strchr(by, s[i]) : NULL;
        if (b) count[b - by]++;
    }
    if (tabs || (count[2] > count[0] && count[2] > count[1])) return '\t';
    return count[1] > count[0] ? ';' : ',';
}

static hone_status no_memory(const table *t) { return HN_FAIL(t->r->err, HONE_E_NOMEM, "%s: a table", t->r->path); }

static hone_status read_header(table *t)
{
    const char *why;
    next_row(t, &why);
    if (!(t->name = json_array())) return no_memory(t);
    for (size_t i = 0; i < t->n_cell && !why; i++) {
        json_t *s = text_of(&t->cell[i], &why);
        if (!why && json_array_append_new(t->name, s) != 0) return no_memory(t);
    }
    if (!why) return HONE_OK;
    return HN_FAIL(t->r->err, HONE_E_FORMAT, "%s:1: the header: %s; expected names of columns", t->r->path, why);
}

/* t's row as an object. *o NULL with HONE_OK: a bad row that may be left out. */
static hone_status make_record(table *t, json_t **o, const char *why)
{
    size_t want = json_array_size(t->name);
    *o = NULL;
    if (!why && t->n_cell != want)
        return hn_data_bad(t->r, "%zu cells, expected %zu as in the header", t->n_cell, want);
    json_t *row = json_object();
    bool ok = row != NULL;
    for (size_t i = 0; i < t->n_cell && ok && !why; i++) {
        json_t *s = text_of(&t->cell[i], &why);
        if (!why) ok = json_object_set_new_nocheck(row, json_string_value(json_array_get(t->name, i)), s) == 0;
    }
    if (ok && !why) *o = row;
    else json_decref(row);
    return why ? hn_data_bad(t->r, "%s", why) : ok ? HONE_OK : no_memory(t);
}

static hone_status read_rows(table *t)
{
    hn_data_kind k = HN_DATA_NONE;
    hone_status st = read_header(t);
    while (st == HONE_OK && t->at < t->n) {
        const char *why;
        json_t *o;
        t->r->line = t->line;
        if ((st = hn_data_go_on(t->r)) != HONE_OK) break;
        next_row(t, &why);
        if (!why && t->n_cell == 1 && !t->cell[0].n) continue;
        t->r->d->stats.n_line++;
        if ((st = make_record(t, &o, why)) != HONE_OK || !o) continue;
        st = hn_data_record(t->r, o, &k);
        json_decref(o);
    }
    return st;
}

hone_status hn_data_table(hn_data_reader *r, bool tabs)
{
    char *s;
    size_t n;
    hone_status st = hn_source_text(&s, &n, r->path, HN_JSON_FILE_BYTES, r->err);
    if (st != HONE_OK) return st;
    size_t bom = n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    table *t = calloc(1, sizeof *t);
    if (t) {
        *t = (table){ .r = r, .s = s, .n = n, .at = bom, .by = divider(s + bom, n - bom, tabs), .line = 1 };
        st = read_rows(t);
        json_decref(t->name);
    } else {
        st = HN_FAIL(r->err, HONE_E_NOMEM, "%s: a table", r->path);
    }
    free(t);
    free(s);
    return st;
}
