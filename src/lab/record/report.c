/* The report's data: records of all files taken apart and put in order. Owns which measurement belongs to which;
 * refuses to know how anything looks. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "lab/record/record_read.h"
#include "base/os.h"
#include "lab/record/report_data.h"
#include "lab/record/history.h"
#include "lab/record/record.h"
#include "lab/record/report.h"
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- reading JSON ------------------------------------------------------------------------ */

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

long long hn_rep_int(json_t *o, const char *key)
{
    const double most = 0x1p53; /* so that the cast is defined, whatever the file says */
    double x = hn_record_number(o, key);
    return isnan(x) ? 0 : (long long)fmax(-most, fmin(most, x));
}
double hn_rep_at_i(json_t *array, size_t i)
{
    json_t *v = json_array_get(array, i);
    return json_is_number(v) && isfinite(json_number_value(v)) ? json_number_value(v) : NAN;
}

/* "20 Nov 2026 12:32" */
void hn_rep_when(char *dst, size_t cap, const char *ts, bool year)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int y, m, d, h, min;
    if (strlen(ts) < 16 || sscanf(ts, "%4d-%2d-%2dT%2d:%2d", &y, &m, &d, &h, &min) != 5 || m < 1 || m > 12) {
        hn_escape(dst, cap, ts[0] ? ts : "no date", ts[0] ? strlen(ts) : 7);
        return;
    }
    if (year) snprintf(dst, cap, "%d %.3s %d %02d:%02d", d, months + (size_t)3 * (size_t)(m - 1), y, h, min);
    else snprintf(dst, cap, "%d %.3s %02d:%02d", d, months + (size_t)3 * (size_t)(m - 1), h, min);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static const struct {
    const char *key, *name, *formula;
    int rank;
} metrics[] = {
    { "decode_tok_s", "decode",
      "(n_gen \xE2\x88\x92 1) / (start of the second token \xE2\x86\x92 last token known), picking the token included",
      0 },
    { "prefill_tok_s", "prefill", "n_prompt / (prompt handed over \xE2\x86\x92 its logits there)", 1 },
    { "ttft_ms", "first token", "prompt handed over \xE2\x86\x92 first token id known", 2 },
    { "load_ms", "load", "process started \xE2\x86\x92 model, threads and session ready", 3 },
    { "peak_anon_mb", "peak memory", "most anonymous memory: heap, stacks, KV cache, scratch; not the mapped model",
      6 },
    { "model_resident_mb", "model resident", "bytes of model files in memory at the end", 7 },
    { "hwm_mb", "high-water mark", "VmHWM: most of everything resident at once, model included", 8 },
    { "mapped_mb", "mapped", "bytes of model files mapped", 9 },
    { "itl_ms", "gap between tokens", "time between one token and the next", 4 },
    { "tpot_ms", "time per token", "mean gap between tokens of a request", 4 },
    { "latency_ms", "latency", "submitted \xE2\x86\x92 last token usable", 4 },
};
enum { N_METRICS = sizeof metrics / sizeof *metrics, OTHER_RANK = 5 };

static int find_metric(const char *key)
{
    for (int i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].key, key) == 0) return i;
    return -1;
}
const char *hn_rep_metric_name(const char *metric)
{
    int i = find_metric(metric);
    return i < 0 ? metric : metrics[i].name;
}
const char *hn_rep_metric_formula(const char *metric)
{
    int i = find_metric(metric);
    return i < 0 ? NULL : metrics[i].formula;
}
static int metric_rank(const char *metric)
{
    int i = find_metric(metric);
    return i < 0 ? *metric ? OTHER_RANK : 0 : metrics[i].rank;
}

size_t hn_rep_metrics(hn_rep_metric m[HN_REP_METRICS], json_t *record)
{
    size_t n = 0;
    const char *name, *unit;
    bool higher;
    for (void *at = NULL; hn_record_next(record, &at, &name, &unit, &higher);) {
        json_t *s = hn_record_stats(record, name), *ci = json_object_get(s, "ci95");
        double median = hn_record_number(s, "median");
        if (!isfinite(median)) continue;
        hn_rep_metric one = { name,
                              unit,
                              higher,
                              s,
                              median,
                              hn_rep_at_i(ci, 0),
                              hn_rep_at_i(ci, 1),
                              (size_t)fmax(0, hn_record_number(s, "n")) };
        size_t k = n;
        if (n == HN_REP_METRICS && metric_rank(m[n - 1].name) <= metric_rank(name)) continue;
        if (n == HN_REP_METRICS) k--;
        for (; k > 0 && metric_rank(m[k - 1].name) > metric_rank(name); k--) m[k] = m[k - 1];
        m[k] = one;
        if (n < HN_REP_METRICS) n++;
    }
    return n;
}

const char *hn_rep_unit(const char *unit) { return strcmp(unit, "us") == 0 ? "\xC2\xB5s" : unit; }

const char *hn_rep_verdict_word(int verdict)
{
    static const char *const words[HN_REP_VERDICTS] = { "REGRESSED", "INCONCLUSIVE", "IMPROVED", "SAME", "NO VERDICT" };
    return words[verdict];
}
const char *hn_rep_alert_word(int kind)
{
    static const char *const words[HN_REP_ALERTS] = { "invalid", "quality changed", "regressed",
                                                      "worse",   "skipped",         "doubtful" };
    return words[kind];
}

static void take_gaps(double **x, size_t *n, json_t *a)
{
    double *more = json_array_size(a) > 0 ? realloc(*x, (*n + json_array_size(a)) * sizeof *more) : NULL;
    if (!more && json_array_size(a) > 0) hn_json_lose();
    if (!more) return;
    *x = more;
    for (size_t i = 0; i < json_array_size(a); i++) {
        double v = hn_rep_at_i(a, i);
        if (isfinite(v) && v >= 0) (*x)[(*n)++] = v;
    }
}

/* Of a record, of a sample, of a request in one: whichever says it first. */
static void find_gaps(double **x, size_t *n, json_t *o, int depth)
{
    static const char *const gaps[] = { "itl_ms", "gaps_ms", NULL }, *const within[] = { "samples", "requests", "extra",
                                                                                         NULL };
    json_t *one, *v;
    size_t i, before = *n;
    for (const char *const *k = gaps; *k && *n == before; k++)
        if (json_is_array(v = json_object_get(o, *k))) take_gaps(x, n, v);
    for (const char *const *k = within; *k && depth > 0 && *n == before; k++) {
        v = json_object_get(o, *k);
        if (json_is_object(v)) find_gaps(x, n, v, depth - 1);
        json_array_foreach(v, i, one) find_gaps(x, n, one, depth - 1);
    }
}

bool hn_rep_itl(double **x, size_t *n, json_t *record)
{
    *x = NULL;
    *n = 0;
    find_gaps(x, n, record, 3);
    if (*n >= 2) return true;
    free(*x);
    *x = NULL;
    return false;
}

/* ---- files ---------------------------------------------------------------------------------------- */

hone_status hn_report_new(hn_report **out, hone_error *err)
{
    hn_report *r = *out = calloc(1, sizeof *r);
    if (!r) return HN_FAIL(err, HONE_E_NOMEM, "report");
    r->records = json_array();
    r->bench = json_array();
    r->ab = json_array();
    r->peaks = json_array();
    r->profiles = json_array();
    r->ledgers = json_array();
    r->training = json_array();
    return HONE_OK;
}

void hn_report_free(hn_report *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_files; i++) free(r->files[i].name);
    for (size_t i = 0; i < r->n_series && r->lines; i++) {
        hn_steps_free(&r->lines[i].steps);
        free(r->lines[i].label);
    }
    for (size_t i = 0; i < r->n_rows; i++) {
        free(r->rows[i].key);
        free(r->rows[i].label);
    }
    for (size_t i = 0; i < r->n_abs; i++) free(r->abs[i].x);
    for (size_t i = 0; i < r->n_alerts; i++) {
        free(r->alerts[i].what);
        free(r->alerts[i].text);
    }
    hn_series_free(r->series, r->n_series);
    hn_rep_seen_free(&r->seen);
    hn_rep_seen_free(&r->runs);
    hn_keys_free(&r->row_of);
    free(r->files);
    free(r->lines);
    free(r->rows);
    free(r->abs);
    free(r->alerts);
    free(r->title);
    free(r->date);
    json_decref(r->bench);
    json_decref(r->ab);
    json_decref(r->peaks);
    json_decref(r->profiles);
    json_decref(r->ledgers);
    json_decref(r->training);
    json_decref(r->records);
    free(r);
}

size_t hn_report_records(const hn_report *r) { return json_array_size(r->records) + json_array_size(r->training); }
size_t hn_report_skipped(const hn_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_files; i++) n += r->files[i].broken + r->files[i].foreign;
    return n;
}

static bool stopped(const hn_report *r) { return r->stop && r->stop(NULL); }
void hn_report_set_stop(hn_report *r, bool (*stop)(void *)) { r->stop = stop; }

static bool keep(hn_report *r, hn_rep_file *file, json_t *record)
{
    bool again;
    if (!hn_rep_seen_add(&r->seen, record, &again)) return false;
    if (again) {
        file->twice++;
        return true;
    }
    file->records++;
    return json_array_append(r->records, record) == 0;
}

/* A kernel's record from before kernels were benches: times of one call, and the rate at their median. */
static json_t *bench_of_kernel(json_t *k, json_t *around)
{
    json_t *o = json_copy(k), *us = json_object_get(k, "samples_us"), *samples = json_array(),
           *roof = json_copy(json_object_get(k, "roofline"));
    double median = hn_record_number(json_object_get(k, "stats_us"), "median"), value = hn_record_number(k, "value");
    const char *unit = hn_record_text(k, "unit");
    size_t n = json_array_size(us);
    double *x = calloc(n + 1, sizeof *x);
    hn_stats st = { .n = 0 };
    size_t used = 0;
    for (size_t i = 0; x && i < n; i++) {
        double t = hn_rep_at_i(us, i);
        if (!(t > 0)) continue;
        x[used] = strcmp(unit, "us") == 0 ? t : value * median / t;
        if (isfinite(x[used])) json_array_append_new(samples, hn_lab_num(x[used++]));
    }
    bool ok = x && hn_stats_of(&st, x, used, NULL) == HONE_OK;
    free(x);
    json_object_set_new(o, "schema", json_string(HN_BENCH_SCHEMA));
    json_object_set_new(o, "samples", samples);
    json_object_set_new(o, "stats", ok && used ? hn_stats_json(&st) : json_object());
    json_object_del(o, "samples_us");
    json_object_del(o, "stats_us");
    json_t *env = json_object_get(around ? around : k, "env");
    json_object_set_new(o, "env",
                        json_is_string(env) ? json_pack("{s:O}", "hash", env)
                        : env               ? json_incref(env)
                                            : json_object());
    if (around) json_object_set(o, "ts", json_object_get(around, "ts"));
    json_t *commit = json_object_get(around ? around : k, "commit");
    json_object_set_new(o, "git", json_pack("{s:O?}", "commit", commit));
    if (roof) {
        json_t *bound = json_object_get(roof, "bound");
        double pct = hn_record_number(roof, "pct"), per_s = median > 0 ? 1e6 / median : NAN;
        bool read = bound && strcmp(json_string_value(bound) ? json_string_value(bound) : "", "read") == 0;
        if (bound) json_object_set(roof, "roof", bound);
        json_object_set_new(roof, "roof_value",
                            hn_lab_num(1e-9 * hn_record_number(roof, read ? "bytes" : "ops") * per_s / (pct / 100)));
        json_object_set_new(o, "roofline", roof);
    }
    return o;
}

static bool take_apart(hn_report *r, hn_rep_file *file, json_t *o)
{
    const char *schema = hn_record_text(o, "schema");
    json_t *list, *one;
    size_t i;
    bool ok = true;
    char why[300];
    if (starts(schema, "hone.train/")) return hn_rep_take_training(r, file, o);
    if (strcmp(schema, HN_KERN_SCHEMA) == 0) {
        list = json_object_get(o, "results");
        if (json_is_object(json_object_get(o, "peaks"))) ok = keep(r, file, json_object_get(o, "peaks"));
        if (!list) {
            json_t *b = bench_of_kernel(o, NULL);
            ok = ok && b && keep(r, file, b);
            json_decref(b);
        }
        json_array_foreach(list, i, one)
        {
            json_t *b = json_is_object(one) ? bench_of_kernel(one, o) : NULL;
            if (b) ok = ok && keep(r, file, b);
            else file->foreign++;
            json_decref(b);
        }
        return ok;
    }
    if (json_is_array(list = json_object_get(o, "records"))) { /* what a command printed about several */
        json_array_foreach(list, i, one)
        {
            if (starts(hn_record_text(one, "schema"), "hone.") && hn_record_fits(one, why, sizeof why))
                ok = ok && take_apart(r, file, one);
            else file->foreign++;
        }
        if (!starts(schema, "hone.gate/")) return ok;
        json_t *gate = json_copy(o); /* its rows compare with a baseline */
        json_object_del(gate, "records");
        ok = ok && gate && keep(r, file, gate);
        json_decref(gate);
        return ok;
    }
    return keep(r, file, o);
}

/* One object over many lines: *whole is that, if it is one of hone's. */
static hone_status read_whole(json_t **whole, const char *path, hone_error *err)
{
    hone_status st = hn_json_tree_file(whole, path, NULL, err);
    if (st == HONE_E_NOMEM || st == HONE_E_IO) return st;
    char why[300];
    if (st == HONE_OK && hn_record_text(*whole, "schema")[0] && hn_record_fits(*whole, why, sizeof why)) return HONE_OK;
    json_decref(*whole);
    *whole = NULL;
    return HONE_OK;
}

/* What a file holds becomes records; *file counts. */
static hone_status take_file(hn_report *r, hn_rep_file *file, const hn_history *h, const char *path, hone_error *err)
{
    size_t i;
    json_t *o, *whole = NULL;
    bool ok = true;
    hn_history_say(h, file->why, sizeof file->why);
    if (json_array_size(h->records) == 0 && h->n_broken) {
        hone_status st = read_whole(&whole, path, err);
        if (st != HONE_OK) return st;
    }
    if (whole) {
        file->lines = 1;
        file->broken = file->foreign = 0;
        file->why[0] = 0;
        ok = take_apart(r, file, whole);
    }
    json_decref(whole);
    json_array_foreach(h->records, i, o)
    {
        if (stopped(r)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        ok = ok && take_apart(r, file, o);
    }
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "records of %s", HN_ESC(path, strlen(path)));
}

hone_status hn_report_add(hn_report *r, const char *path, hone_error *err)
{
    hn_history h;
    hone_status st = hn_history_read_until(&h, path, r->stop, err);
    if (st != HONE_OK) return st;
    hn_rep_file *files = realloc(r->files, (r->n_files + 1) * sizeof *files);
    const char *slash = strrchr(path, '/');
    if (files) r->files = files;
    hn_rep_file file = {
        .name = strdup(slash ? slash + 1 : path), .lines = h.n_lines, .broken = h.n_broken, .foreign = h.n_foreign
    };
    if (!files || !file.name) {
        free(file.name);
        hn_history_free(&h);
        return HN_FAIL(err, HONE_E_NOMEM, "records of %s", HN_ESC(path, strlen(path)));
    }
    r->same_run = false;
    st = take_file(r, &file, &h, path, err);
    r->files[r->n_files++] = file;
    hn_history_free(&h);
    return st;
}

hone_status hn_report_add_records(hn_report *r, json_t *records, hone_error *err)
{
    hn_rep_file none = { 0 };
    size_t i;
    json_t *o;
    r->same_run = false;
    json_array_foreach(records, i, o) if (!take_apart(r, &none, o)) return HN_FAIL(
        err, HONE_E_NOMEM, "a report on %zu records", json_array_size(records));
    return HONE_OK;
}

/* ---- order --------------------------------------------------------------------------------------------- */

typedef struct dated {
    const char *ts;
    size_t place;
    json_t *record;
} dated;
static int by_date(const void *a, const void *b)
{
    const dated *x = a, *y = b;
    int c = strcmp(x->ts, y->ts);
    return c ? c : (x->place > y->place) - (x->place < y->place);
}

/* By time; records of one time stay in the order of the files. */
static bool sort_records(hn_report *r)
{
    size_t n = json_array_size(r->records);
    dated *a = malloc((n + 1) * sizeof *a);
    json_t *sorted = json_array();
    for (size_t i = 0; a && i < n; i++)
        a[i] = (dated){ hn_record_text(json_array_get(r->records, i), "ts"), i, json_array_get(r->records, i) };
    if (!a || !sorted) {
        free(a);
        json_decref(sorted);
        return false;
    }
    qsort(a, n, sizeof *a, by_date);
    bool ok = true;
    for (size_t i = 0; i < n; i++) ok = ok && json_array_append(sorted, a[i].record) == 0;
    free(a);
    json_decref(r->records);
    r->records = sorted;
    return ok;
}

/* The list that records of a schema belong to; NULL: none. */
static json_t *list_for(const hn_report *r, const char *schema)
{
    if (starts(schema, "hone.bench/")) return r->bench;
    if (starts(schema, "hone.ab/") || starts(schema, "hone.gate/")) return r->ab;
    if (starts(schema, "hone.peaks/")) return r->peaks;
    if (starts(schema, "hone.profile/")) return r->profiles;
    return starts(schema, "hone.memory/") || starts(schema, "hone.ledger/") ? r->ledgers : NULL;
}

static bool append(json_t *list, json_t *v) { return json_array_append(list, v) == 0; }

static bool classify(hn_report *r)
{
    size_t i;
    json_t *o;
    bool ok = true;
    json_array_foreach(r->records, i, o)
    {
        json_t *to = list_for(r, hn_record_text(o, "schema")),
               *within = json_object_get(o, "memory"); /* a profile brings its ledger along */
        if (to == r->profiles && json_object_get(within, "parts")) ok = ok && append(r->ledgers, within);
        if (to) ok = ok && append(to, o);
        if (to != r->bench) continue;
        json_t *valid = json_object_get(o, "valid");
        if (json_is_true(valid)) r->n_valid++;
        else if (json_is_false(valid)) r->n_invalid++;
        else r->n_unchecked++;
        json_t *profile = json_object_get(o, "profile"), *ledger = json_object_get(o, "ledger");
        if (json_is_object(profile)) ok = ok && append(r->profiles, profile);
        if (json_is_object(ledger)) ok = ok && append(r->ledgers, ledger);
    }
    return ok;
}

/* ---- the newest of each measurement ------------------------------------------------------------------------ */

const char *hn_rep_model_name(json_t *record)
{
    json_t *m = json_object_get(record, "model");
    const char *s = hn_record_text(m, "path_name");
    return *s ? s : hn_record_text(m, "name");
}

/* Rows of one id together, ids in order of appearance, within them as they appeared. */
static int by_id(const void *a, const void *b)
{
    const hn_rep_row *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->place > y->place) - (x->place < y->place);
}

/* The row of key, new at the end of rows. */
static hn_rep_row *row_for(hn_report *r, hn_keys *ids, json_t *record, char *key)
{
    size_t i, id;
    bool fresh, unused;
    if (!key || !hn_keys_add(&r->row_of, key, &i, &fresh)) return NULL;
    if (!fresh) return &r->rows[i];
    r->rows[i] = (hn_rep_row){ .key = strdup(key), .place = i };
    r->n_rows++;
    if (!r->rows[i].key || !hn_keys_add(ids, hn_record_id(record), &id, &unused)) return NULL;
    r->rows[i].id = id;
    return &r->rows[i];
}

static bool add_to_row(hn_report *r, hn_keys *ids, json_t *record)
{
    char *key = hn_record_key(record, true);
    hn_rep_row *row = row_for(r, ids, record, key);
    free(key);
    if (!row) return false;
    row->record = record; /* in time order: the last is the newest */
    row->n_runs++;
    row->n_invalid += json_is_false(json_object_get(record, "valid"));
    return true;
}

static bool find_rows(hn_report *r)
{
    size_t i, unused;
    json_t *o;
    const char *model = "", *machine = "";
    hn_keys ids = { 0 };
    bool ok, fresh;
    r->rows = calloc(json_array_size(r->bench) + 1, sizeof *r->rows);
    ok = r->rows != NULL;
    json_array_foreach(r->bench, i, o)
    {
        const char *m = hn_record_text(json_object_get(o, "model"), "fingerprint"),
                   *e = hn_record_text(json_object_get(o, "env"), "hash");
        if (*m && *model && strcmp(m, model) != 0) r->many_models = true;
        if (*e && *machine && strcmp(e, machine) != 0) r->many_machines = true;
        model = *m ? m : model;
        machine = *e ? e : machine;
        ok = ok && !stopped(r) && add_to_row(r, &ids, o);
    }
    hn_keys_free(&ids);
    if (!ok) return false;
    qsort(r->rows, r->n_rows, sizeof *r->rows, by_id);
    hn_keys_free(&r->row_of); /* the numbers are others now */
    for (i = 0; i < r->n_rows; i++) ok = ok && hn_keys_add(&r->row_of, r->rows[i].key, &unused, &fresh);
    return ok;
}

static void say_setting(FILE *f, const char *key, json_t *v)
{
    static const struct {
        const char *key, *before, *after;
    } words[] = { { "n_prompt", "prompt ", "" }, { "n_gen", "gen ", "" },       { "depth", "depth ", "" },
                  { "kv", "KV ", "" },           { "variant", "", "" },         { "shape", "", "" },
                  { "layout", "", "" },          { "weights", "", " weights" }, { "cpu", "", "" },
                  { "chunk", "chunk ", "" } };
    char *t = json_is_string(v) ? strdup(json_string_value(v))
                                : hn_json_text(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    json_int_t n = json_integer_value(v);
    const char *before = NULL, *after = "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i].key) == 0) {
            before = words[i].before;
            after = words[i].after;
        }
    if (strcmp(key, "threads") == 0) fprintf(f, "%lld thread%s", (long long)n, n == 1 ? "" : "s");
    else if (strcmp(key, "columns") == 0) fprintf(f, "%lld column%s", (long long)n, n == 1 ? "" : "s");
    else if (before) fprintf(f, "%s%s%s", before, t ? t : "", after);
    else fprintf(f, "%s %s", key, t ? t : "");
    free(t);
}

/* Settings that differ among the rows [from, to), as keys of an object; NULL: out of memory. */
static json_t *differing(const hn_report *r, size_t from, size_t to)
{
    json_t *all = json_object(), *first = json_object_get(r->rows[from].record, "config"), *v;
    bool ok = all != NULL;
    const char *key;
    for (size_t i = from + 1; i < to && ok; i++) {
        json_t *c = json_object_get(r->rows[i].record, "config");
        json_object_foreach(c, key, v)
        {
            json_t *w = json_object_get(first, key);
            if (!w || !json_equal(v, w)) ok = ok && json_object_set_new_nocheck(all, key, json_true()) == 0;
        }
        json_object_foreach(first, key, v) if (!json_object_get(c, key)) ok =
            ok && json_object_set_new_nocheck(all, key, json_true()) == 0;
    }
    if (ok) return all;
    json_decref(all);
    return NULL;
}

static bool label_row(hn_report *r, size_t i, json_t *differ)
{
    static const char *const first[] = { "variant", "shape",   "n_prompt", "n_gen",   "depth", "columns",
                                         "layout",  "threads", "kv",       "weights", "cpu",   NULL };
    static const char *const dropped[] = { "samples", "weights_note", "seed", "sampler", "load", NULL };
    static const char *const always[] = { "variant", "shape", "n_prompt", "n_gen", "columns", "threads", NULL };
    json_t *c = json_object_get(r->rows[i].record, "config"), *v;
    const char *key;
    hn_os_text label;
    if (!hn_os_text_open(&label)) return false;
    FILE *f = label.f;
    bool some = false;
    for (int pass = 0; pass < 2; pass++) {
        for (const char *const *p = first; pass == 0 && *p; p++) {
            bool show = (v = json_object_get(c, *p)) && !json_is_null(v) && json_object_get(differ, *p);
            for (const char *const *a = always; *a; a++) show = show || (strcmp(*a, *p) == 0 && v && !json_is_null(v));
            if (!show) continue;
            if (some) fputs(", ", f);
            say_setting(f, *p, v);
            some = true;
        }
        if (pass == 0) continue;
        json_object_foreach(c, key, v)
        {
            bool known = json_is_null(v);
            for (const char *const *p = first; *p; p++) known = known || strcmp(*p, key) == 0;
            for (const char *const *p = dropped; *p; p++) known = known || strcmp(*p, key) == 0;
            if (known || !json_object_get(differ, key)) continue;
            if (some) fputs(", ", f);
            say_setting(f, key, v);
            some = true;
        }
    }
    if (r->many_models && hn_rep_model_name(r->rows[i].record)[0]) {
        fprintf(f, "%s%s", some ? ", " : "", hn_rep_model_name(r->rows[i].record));
        some = true;
    }
    if (r->many_machines)
        fprintf(f, "%smachine %s", some ? ", " : "", hn_record_text(json_object_get(r->rows[i].record, "env"), "hash"));
    r->rows[i].label = hn_os_text_close(&label, NULL);
    return r->rows[i].label != NULL;
}

static bool label_rows(hn_report *r)
{
    bool ok = true;
    for (size_t from = 0, to; from < r->n_rows && ok; from = to) {
        for (to = from; to < r->n_rows && r->rows[to].id == r->rows[from].id; to++) {}
        json_t *differ = differing(r, from, to);
        ok = differ && !stopped(r);
        for (size_t i = from; i < to && ok; i++) ok = label_row(r, i, differ);
        json_decref(differ);
    }
    return ok;
}

const hn_rep_row *hn_rep_row_of(const hn_report *r, const char *key)
{
    size_t i = hn_keys_find(&r->row_of, key);
    return i < r->n_rows ? &r->rows[i] : NULL;
}

const char *hn_rep_label_of(const hn_report *r, const char *key)
{
    const hn_rep_row *row = hn_rep_row_of(r, key);
    return row ? row->label : "";
}

/* ---- series ---------------------------------------------------------------------------------------------- */

enum { STEP_RUNS = 400 }; /* steps are looked for in so many of the last runs: the search is quadratic */

static int by_rank(const void *a, const void *b)
{
    const hn_rep_line *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->s > y->s) - (x->s < y->s);
}

static bool find_lines(hn_report *r)
{
    if (hn_series_of(&r->series, &r->n_series, r->bench, NULL) != HONE_OK) return false;
    r->lines = calloc(r->n_series + 1, sizeof *r->lines);
    double *x = NULL;
    bool ok = r->lines;
    for (size_t i = 0; ok && i < r->n_series; i++) {
        const hn_series *s = &r->series[i];
        hn_rep_line *l = &r->lines[i];
        const char *label = hn_rep_label_of(r, s->key), *name = hn_rep_metric_name(s->metric);
        l->s = s;
        ok = !stopped(r) &&
             asprintf(&l->label, "%s%s%s%s%s", s->id, *name ? " " : "", name, *label ? ", " : "", label) >= 0;
        if (!ok) l->label = NULL;
        double *more = realloc(x, (s->n + 1) * sizeof *x);
        if (more) x = more;
        ok = ok && more;
        if (!ok) break;
        size_t first = s->n > STEP_RUNS ? s->n - STEP_RUNS : 0;
        for (size_t k = first; k < s->n; k++) x[k - first] = s->points[k].median;
        if (s->n >= 2 * HN_STEP_MIN) ok = hn_steps_find(&l->steps, x, s->n - first, NULL) == HONE_OK;
        for (size_t k = 0; k < l->steps.n; k++) l->steps.step[k].at += first;
        l->rank = (l->steps.n ? 0 : 1000) + (s->n >= 4 ? 0 : s->n >= 2 ? 200 : 400) + 10 * metric_rank(s->metric);
    }
    free(x);
    if (ok) qsort(r->lines, r->n_series, sizeof *r->lines, by_rank);
    return ok;
}

/* ---- comparisons -------------------------------------------------------------------------------------------- */

/* Ratios of the rounds as speeds, new / old. Whether more is better is known from where their median lies. */
static void read_rounds(hn_rep_ab *ab, json_t *rounds, const char *metric)
{
    size_t n = json_array_size(rounds);
    double *x = calloc(n + 1, sizeof *x), *s = calloc(n + 1, sizeof *s);
    for (size_t i = 0; x && i < n; i++) {
        json_t *one = json_array_get(rounds, i), *va = json_object_get(one, "a"), *vb = json_object_get(one, "b");
        double a = json_is_object(va) ? hn_record_number(va, metric) : hn_record_number(one, "a"),
               b = json_is_object(vb) ? hn_record_number(vb, metric) : hn_record_number(one, "b");
        if (json_is_true(json_object_get(one, "voided"))) ab->n_voided++;
        else if (a > 0 && b > 0) x[ab->n++] = b / a;
    }
    if (x && s && ab->n && isfinite(ab->ratio)) {
        memcpy(s, x, ab->n * sizeof *s);
        qsort(s, ab->n, sizeof *s, hn_ascending);
        double mid = log(0.5 * (s[(ab->n - 1) / 2] + s[ab->n / 2])), want = log(ab->ratio);
        for (size_t i = 0; fabs(-mid - want) < fabs(mid - want) && i < ab->n; i++) x[i] = 1 / x[i];
    }
    free(s);
    ab->x = x;
    if (!x) ab->n = 0;
}

static int verdict_of(const char *word)
{
    for (int v = 0; v < HN_REP_OTHER; v++)
        if (strcmp(word, hn_rep_verdict_word(v)) == 0) return v;
    return HN_REP_OTHER;
}

static void add_ab(hn_report *r, json_t *o, json_t *result)
{
    json_t *a = json_object_get(o, "a"), *b = json_object_get(o, "b"), *ci = json_object_get(result, "ci95");
    hn_rep_ab *ab = &r->abs[r->n_abs++];
    *ab = (hn_rep_ab){ .record = o,
                       .id = *hn_record_text(result, "id") ? hn_record_text(result, "id") : hn_record_text(o, "id"),
                       .metric = hn_record_text(result, "metric"),
                       .unit = hn_record_text(result, "unit"),
                       .a = json_is_string(a) ? json_string_value(a) : hn_record_text(a, "label"),
                       .b = json_is_string(b) ? json_string_value(b) : hn_record_text(b, "label"),
                       .note = hn_record_text(result, "note"),
                       .ratio = hn_record_number(result, "ratio"),
                       .lo = hn_rep_at_i(ci, 0),
                       .hi = hn_rep_at_i(ci, 1),
                       .margin = hn_record_number(result, "margin"),
                       .wanted = hn_record_number(result, "margin_wanted"),
                       .half = hn_record_number(o, "aa_half_width"),
                       .coverage = hn_record_number(result, "coverage") };
    if (result != o && starts(hn_record_text(o, "schema"), "hone.gate/")) {
        ab->unpaired = true;
        ab->a = hn_record_text(o, "baseline");
        ab->b = "now";
        if (!ci) ci = json_object_get(result, "ci");
        ab->lo = hn_rep_at_i(ci, 0);
        ab->hi = hn_rep_at_i(ci, 1);
    }
    if (!(ab->coverage > 0 && ab->coverage <= 1)) ab->coverage = NAN;
    if (!(ab->wanted <= ab->margin)) ab->wanted = ab->margin;
    if (strcmp(ab->metric, ab->unit) == 0) ab->metric = ""; /* a bench of one number */
    if (!(ab->ratio > 0)) ab->ratio = NAN;
    if (!(ab->lo > 0 && ab->hi >= ab->lo)) ab->lo = ab->hi = NAN;
    ab->verdict = verdict_of(hn_record_text(result, "verdict"));
    ab->word = hn_rep_verdict_word(ab->verdict);
    r->n_verdict[ab->verdict]++;
    json_t *rounds = json_object_get(result, "rounds");
    read_rounds(ab, json_is_array(rounds) ? rounds : json_object_get(o, "rounds"), ab->metric);
    long long said = hn_rep_int(result, ab->unpaired ? "n_after" : "n");
    ab->n_counted = ab->n ? ab->n : said > 0 ? (size_t)said : 0;
}

size_t hn_rep_n_abs(const hn_report *r, bool unpaired)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_abs; i++) n += r->abs[i].unpaired == unpaired;
    return n;
}

static int by_verdict(const void *a, const void *b)
{
    const hn_rep_ab *x = a, *y = b;
    if (x->verdict != y->verdict) return x->verdict - y->verdict;
    double dx = isfinite(x->ratio) ? x->ratio : 9, dy = isfinite(y->ratio) ? y->ratio : 9;
    if (dx != dy) return dx < dy ? -1 : 1;
    int c = strcmp(hn_record_text(x->record, "ts"), hn_record_text(y->record, "ts"));
    if (!c) c = strcmp(x->id, y->id);
    return c ? c : strcmp(x->metric, y->metric);
}

static json_t *rows_of(json_t *o)
{
    return json_object_get(o, starts(hn_record_text(o, "schema"), "hone.gate/") ? "rows" : "results");
}

static bool find_abs(hn_report *r)
{
    size_t i, k, n = 0;
    json_t *o, *one;
    json_array_foreach(r->ab, i, o) n += json_array_size(rows_of(o)) + 1;
    r->abs = calloc(n + 1, sizeof *r->abs);
    if (!r->abs) return false;
    json_array_foreach(r->ab, i, o)
    {
        json_t *list = rows_of(o);
        if (!list) add_ab(r, o, o);
        json_array_foreach(list, k, one) add_ab(r, o, one);
    }
    qsort(r->abs, r->n_abs, sizeof *r->abs, by_verdict);
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool name_it(hn_report *r, const char *title, const char *date)
{
    size_t i;
    json_t *newest = NULL, *o;
    const char *model = "";
    json_array_foreach(r->bench, i, o) if (hn_rep_model_name(o)[0]) model = hn_rep_model_name(o);
    json_array_foreach(r->records, i, o) /* in time order; a roof is no result */
        if (!newest || !starts(hn_record_text(o, "schema"), "hone.peaks/")) newest = o;
    if (!newest && json_array_size(r->training)) { /* logs of training alone */
        newest = json_object_get(json_array_get(r->training, json_array_size(r->training) - 1), "run");
        if (!title) title = "Training";
    }
    r->title = title                       ? strdup(title)
               : *model && !r->many_models ? hn_rep_text_of("Measurements of %s", model)
                                           : strdup("Measurements");
    r->date = strdup(date ? date : hn_record_text(newest, "ts"));
    return r->title && r->date;
}

hone_status hn_report_finish(hn_report *r, const char *title, const char *date, hone_error *err)
{
    bool ok = sort_records(r) && classify(r);
    ok = ok && find_rows(r) && label_rows(r) && find_lines(r) && find_abs(r);
    ok = ok && hn_rep_find_alerts(r) && name_it(r, title, date);
    if (!ok && stopped(r)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "report on %zu records", hn_report_records(r));
}

hone_status hn_report_write(char **text, size_t *n, const hn_report *r, hn_report_format format, hone_error *err)
{
    *text = NULL;
    *n = 0;
    hn_os_text t;
    bool ok = hn_os_text_open(&t);
    if (!ok) return HN_FAIL(err, HONE_E_NOMEM, "report");
    switch (format) {
    case HN_REPORT_HTML: ok = hn_rep_write_html(t.f, r); break;
    case HN_REPORT_MD: hn_rep_write_md(t.f, r); break;
    case HN_REPORT_MD_TABLE: hn_rep_write_md_table(t.f, r); break;
    case HN_REPORT_CSV: hn_rep_write_csv(t.f, r); break;
    case HN_REPORT_JSON: {
        json_t *o = hn_rep_json(r);
        char *json = hn_json_text(o, JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (json) fprintf(t.f, "%s\n", json);
        free(json);
        json_decref(o);
        break;
    }
    }
    *text = hn_os_text_close(&t, n);
    if (!*text || !ok || *n == 0 || hn_json_lost()) {
        free(*text);
        *text = NULL;
        return HN_FAIL(err, HONE_E_NOMEM, "report on %zu records", hn_report_records(r));
    }
    return HONE_OK;
}
