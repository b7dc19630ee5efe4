/* history: reads what record.c wrote. Records of any age, one per line; what is no record is
 * counted and skipped, never an error, so that a crash long ago does not hide a year of
 * measurements. Also sorts them into series: the same measurement over time. */
#ifndef HN_HISTORY_H
#define HN_HISTORY_H

#include "base/base.h"
#include "base/json_text.h"

typedef struct hn_history {
    json_t *records;     /* array, in the order of the file: objects whose "schema" begins with "hone." */
    size_t n_lines;      /* that are not empty */
    size_t n_broken;     /* no JSON, or no object: a line cut off, a damaged file */
    size_t n_foreign;    /* JSON objects without such a schema */
    size_t first_broken; /* number of the first broken or foreign line, from 1; 0: none */
    bool cut;            /* the file does not end in a line end, and its last line is broken */
    char why[160];       /* what is wrong with that first one */
} hn_history;

/* path: the .jsonl file itself. HONE_E_IO: there is none, or it cannot be read. */
hone_status hn_history_read(hn_history *out, const char *path, hone_error *err);
/* The same; stop (NULL allowed) is asked at every line and while a writer is waited for: HONE_E_INTERRUPTED. */
hone_status hn_history_read_until(hn_history *out, const char *path, bool (*stop)(void *), hone_error *err);
void hn_history_free(hn_history *h);
/* "3 of 40 lines skipped, the first is line 7: …"; "" when nothing was. */
void hn_history_say(const hn_history *h, char *dst, size_t cap);

/* ---- one record ---------------------------------------------------------------------- */

/* Does it hold many metrics of one run, each with statistics of its own (id e2e)? Other records have one number. */
bool hn_record_is_plain(json_t *record);
/* The catalogue id. Runs of a model from before records had one are "e2e". "" without. */
const char *hn_record_id(json_t *record);
/* What two records of the same measurement have in common: id, model, configuration and, when `env`, the
 * machine. One line of text, malloc'ed; NULL: out of memory. */
char *hn_record_key(json_t *record, bool env);
/* The next metric of a record: its name ("" for records of one number), unit ("" unknown), and whether more
 * is better; false behind the last. *at is NULL before the first. All borrowed. */
bool hn_record_next(json_t *record, void **at, const char **metric, const char **unit, bool *higher);
/* Its statistics (as hn_stats_json) or NULL; borrowed. */
json_t *hn_record_stats(json_t *record, const char *metric);
/* What one operation behind this metric allocated {op, n, bytes, freed}; NULL: the record does not say. */
json_t *hn_record_allocs(json_t *record, const char *metric);
/* In words: "0", "2 (576 B)"; "-": not known. */
const char *hn_allocs_text(char *dst, size_t cap, json_t *allocs);
/* The finite raw samples of a metric; *x malloc'ed, in order. HONE_E_NOMEM. */
hone_status hn_record_samples(double **x, size_t *n, json_t *record, const char *metric, hone_error *err);

/* ---- texts by number -------------------------------------------------------------------- */

/* Numbers different texts 0, 1, 2, … as they come, in the same time however many there are. Zero-initialize. */
typedef struct hn_keys {
    json_t *map;
    size_t n;
} hn_keys;
/* The number of key; *fresh: it is new. False: out of memory. */
bool hn_keys_add(hn_keys *k, const char *key, size_t *i, bool *fresh);
/* SIZE_MAX: not among them. */
size_t hn_keys_find(const hn_keys *k, const char *key);
void hn_keys_free(hn_keys *k);

/* ---- series -------------------------------------------------------------------------- */

typedef struct hn_point {
    json_t *record;         /* borrowed from the history */
    double median, ci95[2]; /* NaN: no interval */
    size_t n;               /* samples */
} hn_point;

typedef struct hn_series {
    const char *id, *metric, *unit; /* borrowed from the first record */
    bool higher;                    /* is better */
    char *key;                      /* hn_record_key with the machine */
    hn_point *points;               /* in time order: by "ts", those without in the order of the file */
    size_t n;
    json_t **invalid; /* [n_invalid] records left out, as their result is invalid; borrowed */
    size_t n_invalid;
} hn_series;

/* Every series of the bench records, in the order of their first record; valid and unchecked
 * results only. `records`: an array of them. *out malloc'ed. HONE_E_NOMEM. */
hone_status hn_series_of(hn_series **out, size_t *n, json_t *records, hone_error *err);
void hn_series_free(hn_series *s, size_t n);

#endif
