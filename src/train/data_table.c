/* data_table: tables of text (RFC 4180): a header that names columns, a record a row. Owns cells and quotes; refuses to
 * know what the columns mean, which is that of the keys of the same names in JSON (data_record.c).
 *
 * Cells are divided by tabs, commas or semicolons: by the one that stands most often in the header. A cell between
 * quotes may hold that, line ends, and "" for a quote. Empty rows are passed over. Of a file one row is in memory; one
 * that a quote opens and nothing closes is its first line, and what is behind that are rows again. */
#include "train/data_parts.h"

enum { MAX_COLUMN = 256 };

typedef struct table {
    hn_data_reader *r;
    hn_data_window w;
    int64_t line; /* where the window begins */
    char by;
    char *s; /* the row, without its line end; cells are unquoted in place */
    size_t n, at;
    int64_t n_line; /* of the row */
    bool ended;     /* by a line end */
    struct cell {
        char *p;
        size_t n;
    } cell[MAX_COLUMN];
    size_t n_cell;
    json_t *name; /* of the columns, an array */
    char why[300];
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
        c->p[c->n++] = t->s[i];
    }
    *end = i + 1;
    return i < t->n;
}

/* The row t->s into t->cell; *why NULL, or what is wrong with it. */
static void divide(table *t, const char **why)
{
    *why = NULL;
    for (t->n_cell = t->at = 0;;) {
        struct cell c = { t->s + t->at, 0 };
        size_t end = t->at;
        if (t->at < t->n && t->s[t->at] == '"') {
            if (!unquote(t, &c, &end)) *why = "a quote that nothing closes";
        } else {
            while (end < t->n && t->s[end] != t->by) end++;
            c.n = end - t->at - (t->ended && end > t->at && end == t->n && t->s[end - 1] == '\r');
        }
        if (t->n_cell < MAX_COLUMN) t->cell[t->n_cell++] = c;
        else *why = "more than 256 columns";
        t->at = end;
        if (t->at < t->n && t->s[t->at] == '\r') t->at++;
        if (t->at >= t->n) return;
        if (t->s[t->at] != t->by) {
            if (!*why) *why = "text behind a closing quote";
            return;
        }
        t->at++;
    }
}

/* Where one is in a row: at a cell's beginning, within one, within quotes, behind them, behind a CR there, in what
 * belongs to no cell. */
enum { BEGIN, PLAIN, QUOTED, CLOSED, BEHIND, STRAY };

/* What a character makes of that; -1: the row ends there. */
static int step(int at, char c, char by)
{
    if (at == QUOTED) return c == '"' ? CLOSED : QUOTED;
    if (at == CLOSED && c == '"') return QUOTED; /* "" is one */
    if (c == '\n') return -1;
    if (at != STRAY && c == by) return BEGIN;
    if (at == BEGIN) return c == '"' ? QUOTED : PLAIN;
    if (at == CLOSED) return c == '\r' ? BEHIND : STRAY;
    return at == BEHIND ? STRAY : at;
}

typedef struct found {
    size_t n, first; /* bytes of the row with its line end, 0: there is none; of its first line */
    int at;          /* where one is at its end */
} found;

/* All of the next row into the window; of one that has more than a record has, as much as that is. */
static hone_status find_row(table *t, found *x)
{
    bool more = true, ended = false;
    hone_status st = HONE_OK;
    for (*x = (found){ .at = BEGIN }; st == HONE_OK && more && x->n <= HN_DATA_RECORD;) {
        size_t have = t->w.n - t->w.from;
        const char *s = t->w.buf + t->w.from;
        while (x->n < have && !ended) {
            int next = step(x->at, s[x->n], t->by);
            ended = next < 0;
            if (!ended) x->at = next;
            if (s[x->n++] == '\n' && !x->first) x->first = x->n;
        }
        if (ended) break;
        st = hn_data_window_more(&t->w, t->r, &more);
    }
    if (!x->first) x->first = x->n;
    return st;
}

/* Whether only its first line is one: no quote closes it, or one that was meant to open another cell does. */
static bool is_torn(const found *x)
{
    return x->at == QUOTED || x->n > HN_DATA_RECORD || (x->at == STRAY && x->first < x->n);
}

/* The row that find_row found, without its end, which is done with: t->s … */
static void take_row(table *t, size_t n)
{
    t->s = t->w.buf + t->w.from;
    t->ended = t->s[n - 1] == '\n';
    t->n = n - t->ended;
    t->n_line = 1;
    for (const char *p = t->s, *end = t->s + t->n; (p = memchr(p, '\n', (size_t)(end - p))); p++) t->n_line++;
    t->w.from += n;
}

/* What is behind its first line is read again. */
static hone_status torn_row(table *t, const found *x)
{
    bool more = true;
    hone_status st = HONE_OK;
    take_row(t, x->n);
    t->w.from -= x->n - x->first;
    if (x->first == x->n && !t->ended) { /* a line without end: to its end */
        for (const char *nl = NULL; st == HONE_OK && more && !nl;) {
            size_t left = t->w.n - t->w.from;
            nl = left ? memchr(t->w.buf + t->w.from, '\n', left) : NULL;
            t->w.from = nl ? (size_t)(nl + 1 - t->w.buf) : t->w.n;
            if (!nl) st = hn_data_window_more(&t->w, t->r, &more);
        }
    }
    if (st != HONE_OK) return st;
    if (x->n > HN_DATA_RECORD) return hn_data_bad(t->r, "a row of more than %d bytes", HN_DATA_RECORD);
    if (x->at == STRAY)
        return hn_data_bad(t->r, "text behind a closing quote, in a row of %lld lines", (long long)t->n_line);
    return hn_data_bad(t->r, "a quote that nothing closes, down to line %lld, the last",
                       (long long)(t->line + t->n_line - 1));
}

/* A string of cell i; NULL: no memory, or *why. */
static json_t *text_of(table *t, size_t i, const char **why)
{
    const struct cell *c = &t->cell[i];
    size_t good = hn_data_well_formed(c->p, c->n);
    const char *name = json_string_value(json_array_get(t->name, i));
    if (good == c->n) return json_stringn_nocheck(c->p, c->n);
    snprintf(t->why, sizeof t->why, HN_DATA_NOT_UTF8 " of cell %zu%s%s%s" HN_DATA_TRY_UTF8, (unsigned char)c->p[good],
             good + 1, i + 1, name ? " (" : "", name ? HN_ESC(name, strlen(name)) : "", name ? ")" : "");
    *why = t->why;
    return NULL;
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

/* A row has one text of a name. NULL: no column before column i has its own; columns without one are nobody's. */
static const char *same_name(table *t, size_t i)
{
    const json_t *name = json_array_get(t->name, i);
    const char *s = json_string_value(name);
    for (size_t k = 0; k < i && *s; k++) {
        if (!json_equal(name, json_array_get(t->name, k))) continue;
        snprintf(t->why, sizeof t->why, "columns %zu and %zu are both named '%s'", k + 1, i + 1, HN_ESC(s, strlen(s)));
        return t->why;
    }
    return NULL;
}

static hone_status read_header(table *t)
{
    const char *why;
    found x;
    hone_status st = find_row(t, &x);
    if (st != HONE_OK) return st;
    if (x.n > HN_DATA_RECORD)
        return HN_FAIL(t->r->err, HONE_E_FORMAT, "%s:1: a header of more than %d bytes", t->r->path, HN_DATA_RECORD);
    if (x.n) take_row(t, x.n);
    divide(t, &why);
    t->line += t->n_line;
    if (!(t->name = json_array())) return no_memory(t);
    for (size_t i = 0; i < t->n_cell && !why; i++) {
        json_t *s = text_of(t, i, &why);
        if (!why && json_array_append_new(t->name, s) != 0) return no_memory(t);
        if (!why) why = same_name(t, i);
    }
    if (!why) return HONE_OK;
    return HN_FAIL(t->r->err, HONE_E_FORMAT, "%s:1: the header: %s; expected names of columns", t->r->path, why);
}

/* t's row as an object. *o NULL with HONE_OK: a bad row that may be left out. */
static hone_status make_record(table *t, json_t **o, const char *why)
{
    size_t want = json_array_size(t->name);
    char of[64] = "";
    *o = NULL;
    if (t->n_line > 1) snprintf(of, sizeof of, ", in a row of %lld lines", (long long)t->n_line);
    if (!why && t->n_cell != want)
        return hn_data_bad(t->r, "%zu cells, expected %zu as in the header%s", t->n_cell, want, of);
    json_t *row = json_object();
    bool ok = row != NULL;
    for (size_t i = 0; i < t->n_cell && ok && !why; i++) {
        json_t *s = text_of(t, i, &why);
        if (!why) ok = json_object_set_new_nocheck(row, json_string_value(json_array_get(t->name, i)), s) == 0;
    }
    if (ok && !why) *o = row;
    else json_decref(row);
    return why ? hn_data_bad(t->r, "%s%s", why, of) : ok ? HONE_OK : no_memory(t);
}

/* The row that was found. */
static hone_status read_row(table *t, hn_data_kind *k)
{
    const char *why;
    json_t *o;
    hone_status st;
    divide(t, &why);
    if (!why && t->n_cell == 1 && !t->cell[0].n) return HONE_OK;
    t->r->d->stats.n_line++;
    if ((st = make_record(t, &o, why)) != HONE_OK || !o) return st;
    st = hn_data_record(t->r, o, k);
    json_decref(o);
    return st;
}

static hone_status read_rows(table *t)
{
    hn_data_kind k = HN_DATA_NONE;
    hone_status st = read_header(t);
    while (st == HONE_OK) {
        found x;
        t->r->line = t->line;
        if ((st = hn_data_go_on(t->r)) != HONE_OK || (st = find_row(t, &x)) != HONE_OK || !x.n) break;
        if (is_torn(&x)) {
            t->r->d->stats.n_line++;
            st = torn_row(t, &x);
            t->line++;
        } else {
            take_row(t, x.n);
            st = read_row(t, &k);
            t->line += t->n_line;
        }
    }
    return st;
}

/* The first line into the window, and what divides it. */
static hone_status find_divider(table *t, bool tabs)
{
    hone_status st = HONE_OK;
    bool more = true, line = false;
    while (st == HONE_OK && more && !line && t->w.n - t->w.from <= HN_DATA_RECORD) {
        st = hn_data_window_more(&t->w, t->r, &more);
        line = t->w.n && memchr(t->w.buf + t->w.from, '\n', t->w.n - t->w.from);
    }
    t->by = divider(t->w.buf + t->w.from, t->w.n - t->w.from, tabs);
    return st;
}

hone_status hn_data_table(hn_data_reader *r, bool tabs)
{
    table *t = calloc(1, sizeof *t);
    if (!t) return HN_FAIL(r->err, HONE_E_NOMEM, "%s: a table", r->path);
    static char none[1];
    *t = (table){ .r = r, .line = 1, .n_line = 1, .s = none };
    r->cells = true;
    hone_status st = hn_data_window_open(&t->w, r);
    if (st == HONE_OK) st = find_divider(t, tabs);
    if (st == HONE_OK) st = read_rows(t);
    r->cells = false;
    hn_data_window_close(&t->w);
    json_decref(t->name);
    free(t);
    return st;
}
