/* Reading histories: lines to records, records to series. Owns what "the same measurement"
 * means; refuses to judge numbers. Nothing here writes. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/record.h"
#include "base/json_text.h"

#include <math.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAX_LINE = 64 << 20 }; /* a record holds samples, not tensors */

/* ---- lines ------------------------------------------------------------------------------ */

static bool blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", s[i]) || s[i] == 0) return false;
    return true;
}

static void skipped(hn_history *h, size_t *count, size_t line, const char *why)
{
    (*count)++;
    if (h->first_broken) return;
    h->first_broken = line;
    hn_escape(h->why, sizeof h->why, why, strlen(why));
}

/* *o NULL: no JSON, and why. False: out of memory. */
static bool parse_line(json_t **o, const char *s, size_t n, char *why, size_t cap)
{
    hn_jread j;
    size_t line, column;
    *o = NULL;
    hone_status st = hn_jread_begin(&j, s, n, NULL, "record", NULL, NULL);
    if (st == HONE_OK) st = hn_json_build(o, &j);
    if (st == HONE_OK || st == HONE_E_NOMEM) return st == HONE_OK;
    hn_jread_where(&j, &line, &column);
    snprintf(why, cap, "not JSON: expected %s at column %zu", j.expected, column);
    return true;
}

/* One line without its end. False: out of memory. */
static bool take_line(hn_history *h, const char *s, size_t n, size_t line, bool ended)
{
    char why[120];
    json_t *o;
    if (blank(s, n)) return true;
    h->n_lines++;
    if (!parse_line(&o, s, n, why, sizeof why)) return false;
    const char *schema = json_string_value(json_object_get(o, "schema"));
    bool ok = true;
    if (!o) {
        skipped(h, &h->n_broken, line, ended ? why : "it was cut off");
        h->cut = !ended;
    } else if (!json_is_object(o)) {
        skipped(h, &h->n_broken, line, "no JSON object");
    } else if (!schema || strncmp(schema, "hone.", 5) != 0) {
        skipped(h, &h->n_foreign, line, "no \"schema\" of hone's");
    } else if (!hn_record_fits(o, why, sizeof why)) {
        skipped(h, &h->n_broken, line, why);
    } else {
        ok = json_array_append(h->records, o) == 0;
    }
    json_decref(o);
    return ok;
}

/* getline with a limit: longer lines are read over. -1: end; -2: no memory. */
static ssize_t next_line(FILE *f, char **line, size_t *cap, bool *ended, bool *too_long)
{
    size_t n = 0;
    int c;
    *ended = *too_long = false;
    while ((c = getc_unlocked(f)) != EOF) {
        if (c == '\n') {
            *ended = true;
            break;
        }
        if (n == MAX_LINE) *too_long = true;
        if (*too_long) continue;
        if (n == *cap) {
            size_t more = *cap ? 2 * *cap : 65536;
            char *p = realloc(*line, more);
            if (!p) return -2;
            *line = p;
            *cap = more;
        }
        (*line)[n++] = (char)c;
    }
    return n == 0 && !*ended ? -1 : (ssize_t)n;
}

hone_status hn_history_read(hn_history *out, const char *path, hone_error *err)
{
    return hn_history_read_until(out, path, NULL, err);
}

hone_status hn_history_read_until(hn_history *out, const char *path, bool (*stop)(void *), hone_error *err)
{
    *out = (hn_history){ 0 };
    FILE *f = fopen(path, "re");
    if (!f && stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    if (!f) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    bool stopped = false;
    while (flock(fileno(f), LOCK_SH) != 0 && errno == EINTR && !stopped) /* a writer may be half way through a line */
        stopped = stop && stop(NULL);
    out->records = json_array();
    char *line = NULL;
    size_t cap = 0, number = 0;
    bool ended, too_long;
    ssize_t n = 0;
    while (out->records && n != -2 && !stopped && (n = next_line(f, &line, &cap, &ended, &too_long)) >= 0) {
        number++;
        stopped = stop && stop(NULL);
        if (too_long) {
            out->n_lines++;
            skipped(out, &out->n_broken, number, "longer than any record");
        } else {
            if (!take_line(out, line ? line : "", (size_t)n, number, ended)) n = -2;
        }
    }
    hone_status st = HONE_OK;
    if (stopped || (ferror(f) && stop && stop(NULL))) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    else if (!out->records || n == -2) st = HN_FAIL(err, HONE_E_NOMEM, "records of %s", HN_ESC(path, strlen(path)));
    else if (ferror(f)) st = HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    free(line);
    fclose(f);
    if (st != HONE_OK) hn_history_free(out);
    return st;
}

void hn_history_free(hn_history *h)
{
    json_decref(h->records);
    *h = (hn_history){ 0 };
}

void hn_history_say(const hn_history *h, char *dst, size_t cap)
{
    size_t bad = h->n_broken + h->n_foreign;
    if (cap) dst[0] = 0;
    if (bad)
        snprintf(dst, cap, "%zu of %zu lines skipped, the first is line %zu: %s", bad, h->n_lines, h->first_broken,
                 h->why);
}

/* ---- one record --------------------------------------------------------------------------- */

#define PLAIN_ID "e2e"

const char *hn_record_id(json_t *record)
{
    const char *id = hn_record_text(record, "id");
    /* once, "id" was what "record" is now: 12 hexadecimal digits */
    bool old = !json_object_get(record, "record") && strlen(id) == 12 && strspn(id, "0123456789abcdef") == 12;
    return old ? PLAIN_ID : id;
}

bool hn_record_is_plain(json_t *record) { return strcmp(hn_record_id(record), PLAIN_ID) == 0; }

/* Configuration without what does not change the measurement: how often it was repeated, and words. */
static json_t *config_of(json_t *record)
{
    static const char *const dropped[] = { "samples", "weights_note", NULL };
    json_t *c = json_copy(json_object_get(record, "config"));
    for (const char *const *k = dropped; *k; k++) json_object_del(c, *k);
    return c;
}

char *hn_record_key(json_t *record, bool env)
{
    json_t *c = config_of(record), *model = json_object_get(record, "model");
    char *config = c ? hn_json_text(c, JSON_SORT_KEYS | JSON_COMPACT) : NULL, *key = NULL;
    if (!config && json_is_object(json_object_get(record, "config"))) {
        json_decref(c); /* no memory: a key without it would be another's */
        return NULL;
    }
    /* by the fingerprint, which every record has; the hash of the file is not always known */
    const char *fingerprint = hn_record_text(model, "fingerprint"),
               *which = fingerprint[0] ? fingerprint : hn_record_text(model, "sha256");
    if (asprintf(&key, "%s|%s|%s|%s", hn_record_id(record), which, config ? config : "",
                 env ? hn_record_text(json_object_get(record, "env"), "hash") : "") < 0) {
        hn_json_lose();
        key = NULL;
    }
    /* keys are compared and listed as lines, whatever a record says of itself */
    for (char *p = key; p && *p; p++) *p = (unsigned char)*p < ' ' ? ' ' : *p;
    free(config);
    json_decref(c);
    return key;
}

/* Records of several numbers have an object of statistics per number. */
static bool single(json_t *record)
{
    json_t *s = json_object_get(record, "stats");
    return json_object_get(s, "median") && !json_is_object(json_object_get(s, "median"));
}

static const char *member(json_t *record, const char *key, const char *metric)
{
    json_t *v = json_object_get(record, key);
    if (json_is_object(v)) v = json_object_get(v, metric);
    return json_string_value(v) ? json_string_value(v) : "";
}

/* The unit that the name of a metric ends in; for records from before they said it. */
static const char *unit_in(const char *metric)
{
    static const struct {
        const char *end, *unit;
    } known[] = { { "_tok_s", "tok/s" }, { "_ms", "ms" }, { "_mb", "MB" } };
    size_t n = strlen(metric);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t k = strlen(known[i].end);
        if (n > k && strcmp(metric + n - k, known[i].end) == 0) return known[i].unit;
    }
    return "";
}

bool hn_record_next(json_t *record, void **at, const char **metric, const char **unit, bool *higher)
{
    json_t *stats = json_object_get(record, "stats");
    if (single(record)) {
        if (*at) return false;
        *at = record;
        *metric = "";
    } else {
        if (!json_is_object(stats)) return false;
        *at = *at ? json_object_iter_next(stats, *at) : json_object_iter(stats);
        if (!*at) return false;
        *metric = json_object_iter_key(*at);
    }
    *unit = member(record, "unit", *metric);
    if (!**unit) *unit = unit_in(*metric);
    *higher = strcmp(member(record, "better", *metric), "higher") == 0;
    return true;
}

json_t *hn_record_stats(json_t *record, const char *metric)
{
    json_t *s = json_object_get(record, "stats");
    if (!*metric) return single(record) ? s : NULL;
    return single(record) ? NULL : json_object_get(s, metric);
}

json_t *hn_record_allocs(json_t *record, const char *metric)
{
    static const char *const of_token[] = { "", "decode_tok_s", "itl_ms", "steady_tok_s", "sustained_tok_s" },
                             *const of_prompt[] = { "prefill_tok_s", "ttft_ms" };
    json_t *all = json_object_get(record, "allocs"), *found = NULL;
    for (size_t i = 0; i < sizeof of_token / sizeof *of_token; i++)
        if (strcmp(metric, of_token[i]) == 0) found = all;
    for (size_t i = 0; i < sizeof of_prompt / sizeof *of_prompt; i++)
        if (strcmp(metric, of_prompt[i]) == 0) found = json_object_get(all, "prompt");
    return json_is_number(json_object_get(found, "n")) ? found : NULL;
}

const char *hn_allocs_text(char *dst, size_t cap, json_t *allocs)
{
    double n = hn_record_number(allocs, "n"), bytes = hn_record_number(allocs, "bytes");
    if (!isfinite(n)) snprintf(dst, cap, "-");
    else if (n == 0) snprintf(dst, cap, "0");
    else
        snprintf(dst, cap, "%.4g (%.4g %s)", n,
                 bytes < 1e4   ? bytes
                 : bytes < 1e7 ? bytes / 1e3
                               : bytes / 1e6,
                 bytes < 1e4   ? "B"
                 : bytes < 1e7 ? "kB"
                               : "MB");
    return dst;
}

hone_status hn_record_samples(double **x, size_t *n, json_t *record, const char *metric, hone_error *err)
{
    json_t *samples = json_object_get(record, "samples"), *s;
    size_t i;
    *n = 0;
    *x = malloc((json_array_size(samples) + 1) * sizeof **x);
    if (!*x) hn_json_lose(); /* a table or a plot without them is no report */
    if (!*x) return HN_FAIL(err, HONE_E_NOMEM, "%zu samples", json_array_size(samples));
    json_array_foreach(samples, i, s)
    {
        json_t *v = *metric ? json_object_get(s, metric) : s;
        if (json_is_number(v) && isfinite(json_number_value(v))) (*x)[(*n)++] = json_number_value(v);
    }
    return HONE_OK;
}

/* ---- texts by number -------------------------------------------------------------------------- */

bool hn_keys_add(hn_keys *k, const char *key, size_t *i, bool *fresh)
{
    if (!k->map && !(k->map = json_object())) return false;
    json_t *v = json_object_get(k->map, key);
    *fresh = !v;
    *i = v ? (size_t)json_integer_value(v) : k->n;
    if (v) return true;
    if (json_object_set_new_nocheck(k->map, key, json_integer((json_int_t)k->n)) != 0) return false;
    k->n++;
    return true;
}

size_t hn_keys_find(const hn_keys *k, const char *key)
{
    json_t *v = json_object_get(k->map, key);
    return v ? (size_t)json_integer_value(v) : SIZE_MAX;
}

void hn_keys_free(hn_keys *k)
{
    json_decref(k->map);
    *k = (hn_keys){ 0 };
}

/* ---- series ----------------------------------------------------------------------------------- */

typedef struct series_list {
    hn_series *s;
    size_t n, cap;
    hn_keys keys; /* key and metric of each */
} series_list;

static hn_series *series_for(series_list *l, json_t *record, const char *key, const char *metric, const char *unit,
                             bool higher)
{
    char *name = NULL;
    size_t i = 0;
    bool fresh = false;
    bool ok = asprintf(&name, "%s|%s", metric, key) >= 0 && hn_keys_add(&l->keys, name, &i, &fresh);
    free(name);
    if (!ok || !fresh) return ok ? &l->s[i] : NULL;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        hn_series *s = realloc(l->s, cap * sizeof *s);
        if (!s) return NULL;
        l->s = s;
        l->cap = cap;
    }
    hn_series *s = &l->s[l->n];
    *s =
        (hn_series){ .id = hn_record_id(record), .metric = metric, .unit = unit, .higher = higher, .key = strdup(key) };
    if (!s->key) return NULL;
    l->n++;
    return s;
}

static bool add_invalid(hn_series *s, json_t *record)
{
    if ((s->n_invalid & (s->n_invalid - 1)) == 0) { /* full at each power of two */
        json_t **more = realloc(s->invalid, (s->n_invalid ? 2 * s->n_invalid : 1) * sizeof *more);
        if (!more) return false;
        s->invalid = more;
    }
    s->invalid[s->n_invalid++] = record;
    return true;
}

static bool add_point(hn_series *s, json_t *record, json_t *stats)
{
    json_t *ci = json_object_get(stats, "ci95"), *lo = json_array_get(ci, 0), *hi = json_array_get(ci, 1);
    if ((s->n & (s->n - 1)) == 0) { /* full at each power of two */
        hn_point *p = realloc(s->points, (s->n ? 2 * s->n : 1) * sizeof *p);
        if (!p) return false;
        s->points = p;
    }
    s->points[s->n++] = (hn_point){ .record = record,
                                    .median = json_number_value(json_object_get(stats, "median")),
                                    .ci95 = { json_is_number(lo) ? json_number_value(lo) : NAN,
                                              json_is_number(hi) ? json_number_value(hi) : NAN },
                                    .n = (size_t)json_integer_value(json_object_get(stats, "n")) };
    return true;
}

static bool add_record(series_list *l, json_t *record)
{
    if (strcmp(hn_record_text(record, "schema"), HN_BENCH_SCHEMA) != 0 || !hn_record_id(record)[0]) return true;
    char *key = hn_record_key(record, true);
    bool ok = key, higher, invalid = json_is_false(json_object_get(record, "valid"));
    const char *metric, *unit;
    for (void *at = NULL; ok && hn_record_next(record, &at, &metric, &unit, &higher);) {
        json_t *stats = hn_record_stats(record, metric), *m = json_object_get(stats, "median");
        if (!json_is_number(m) || !isfinite(json_number_value(m))) continue;
        hn_series *s = series_for(l, record, key, metric, unit, higher);
        ok = s && (invalid ? add_invalid(s, record) : add_point(s, record, stats));
    }
    free(key);
    return ok;
}

typedef struct placed {
    hn_point p;
    const char *ts;
    size_t at;
} placed;

/* UTC texts compare as times. */
static int by_time(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int c = strcmp(x->ts, y->ts);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Points without a time stay behind the one before them. */
static bool sort_points(hn_series *s)
{
    placed *a = calloc(s->n + 1, sizeof *a);
    if (!a) return false;
    for (size_t i = 0; i < s->n; i++) {
        const char *ts = hn_record_text(s->points[i].record, "ts");
        a[i] = (placed){ s->points[i], ts[0] || i == 0 ? ts : a[i - 1].ts, i };
    }
    qsort(a, s->n, sizeof *a, by_time);
    for (size_t i = 0; i < s->n; i++) s->points[i] = a[i].p;
    free(a);
    return true;
}

hone_status hn_series_of(hn_series **out, size_t *n, json_t *records, hone_error *err)
{
    series_list l = { 0 };
    size_t i;
    json_t *r;
    bool ok = true;
    *out = NULL;
    *n = 0;
    json_array_foreach(records, i, r) ok = ok && add_record(&l, r);
    for (size_t k = 0; k < l.n; k++) ok = ok && sort_points(&l.s[k]);
    hn_keys_free(&l.keys);
    if (!ok) {
        hn_series_free(l.s, l.n);
        return HN_FAIL(err, HONE_E_NOMEM, "series of %zu records", json_array_size(records));
    }
    *out = l.s;
    *n = l.n;
    return HONE_OK;
}

void hn_series_free(hn_series *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(s[i].key);
        free(s[i].points);
        free(s[i].invalid);
    }
    free(s);
}
