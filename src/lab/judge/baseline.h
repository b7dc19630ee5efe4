/* baseline: measurements kept under a name, whole, so that they outlive the history they came
 * from; and what a gate asks of them: is this the same machine, the same file, the same
 * answers, the same speed? In that order. Nothing here runs the engine or prints. */
#ifndef HN_BASELINE_H
#define HN_BASELINE_H

#include "base/base.h"
#include "lab/stats/changes.h"
#include "lab/stats/compare.h"
#include "base/json_text.h"

#define HN_BASELINE_SCHEMA "hone.baseline/1"
#define HN_BASELINE_DIR "benchmarks/baselines"
/* Stored samples were measured at another time: what drifts between two times does not cancel, so
 * that less than this is not called a change. */
#define HN_BASELINE_MARGIN 0.10
enum { HN_BASELINE_NAME = 64 };

/* Letters, digits, and . _ - inside: a name, never a path. HONE_E_ARG. */
hone_status hn_baseline_name(const char *name, hone_error *err);
/* DIR/NAME.json; dir NULL: HN_BASELINE_DIR. HONE_E_ARG: not a name, or too long. */
hone_status hn_baseline_path(char *dst, size_t cap, const char *dir, const char *name, hone_error *err);

/* ---- the model, as bytes -------------------------------------------------------------- */

typedef struct hn_watch { /* of long work; members may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
    bool (*stop)(void *);
} hn_watch;

/* {path, bytes, sha256, files: [{name, bytes, sha256}]}: every byte of every file of a (split) model.
 * HONE_E_IO names the file; HONE_E_INTERRUPTED. */
hone_status hn_model_bytes(json_t **out, const char *path, const hn_watch *w, hone_error *err);
/* Which file differs, in words; "" when all bytes are the same. */
void hn_model_bytes_differ(char *dst, size_t cap, json_t *was, json_t *is);

/* ---- files ------------------------------------------------------------------------------ */

/* records: of one run, measured together; borrowed. bytes: of hn_model_bytes, or NULL without a model. quality:
 * as hn_quality_json, or NULL. args: options for `hone bench` that repeat the measurement. HONE_E_ARG: a record is
 * invalid, without samples, or there is none: such a baseline proves nothing. */
hone_status hn_baseline_make(json_t **out, const char *name, json_t *records, json_t *bytes, json_t *quality,
                             json_t *args, hone_error *err);
/* At once or not at all; folders are made. */
hone_status hn_baseline_store(json_t *b, const char *path, hone_error *err);
/* HONE_E_IO: there is none. HONE_E_FORMAT: damaged, or changed by hand. */
hone_status hn_baseline_load(json_t **out, const char *path, hone_error *err);
/* Names in DIR, sorted; each malloc'ed, ends with NULL. No folder: none. */
hone_status hn_baseline_list(char ***names, size_t *n, const char *dir, hone_error *err);
void hn_baseline_list_free(char **names, size_t n);

/* ---- what a gate asks, in this order ------------------------------------------------------ */

/* Lines "field: was → is", each ending in \n, of what makes two machines incomparable; "" when env.hash is equal.
 * builds: of compiler, flags and commit too, which may differ. */
void hn_environ_differ(char *dst, size_t cap, json_t *was, json_t *is);

/* What changed between two quality results (hn_quality_json): "" the same. Says which half of the hash moved and
 * where the first other answer is. */
void hn_quality_differ(char *dst, size_t cap, json_t *was, json_t *is);
/* What the same hash proves of two results (quality_detail, or what covers its ways with `outer`). */
typedef struct hn_proved {
    /* What `is` left out or compared less of than `was` did: "" nothing. Its hash may be the same, and proves less.
     * What `was` left out is nobody's matter: the ways of one result prove that one. */
    char less[400];
    char untold[400]; /* what only one of them tells, as an older program does not, and nobody can compare: a note */
} hn_proved;
void hn_quality_proved(hn_proved *out, json_t *was, json_t *is); /* NULL: not known, of which nothing is said */

/* One metric of one record, then and now. */
typedef struct hn_baseline_row {
    const char *id, *metric, *unit; /* borrowed from the baseline */
    json_t *before, *after;         /* records, borrowed; after NULL: nothing of the kind was measured */
    json_t *near;                   /* after NULL: what was measured of the same id, with other settings; or NULL */
    bool higher, gated;
    double margin;
    double median_before, median_after, half_before, half_after; /* NaN: unknown */
    hn_unpaired test;
    hn_ab_verdict verdict;
    double moved_ms;  /* INCONCLUSIVE because other parts of its processes took so much longer; 0: not so */
    double hidden_ms; /* INCONCLUSIVE because its processes ran so much longer than they tell (outside.h); 0: not so */
} hn_baseline_row;

typedef struct hn_baseline_rule {
    const char *metrics; /* comma list of those that are gated; NULL: speeds and memory; "all" */
    double margin;       /* 0: HN_BASELINE_MARGIN */
    double alpha;        /* of all verdicts of this look together */
} hn_baseline_rule;

/* Do two records measure the same: the same id, and the same asked for? Which kernels and which form of the weights
 * serve it may differ. */
bool hn_same_measurement(json_t *a, json_t *b);
/* Of two of one id that do not: the first thing that was asked for otherwise, "n_prompt is 512, there 128". */
void hn_measurement_differs(char *dst, size_t cap, json_t *a, json_t *b);

/* Compares every metric of every record of the baseline with the samples of all records of the same measurement in
 * `now`, taken together. HONE_E_ARG: a name in rule->metrics that no record has. */
hone_status hn_baseline_compare(hn_baseline_row **rows, size_t *n, json_t *baseline, json_t *now,
                                const hn_baseline_rule *rule, hone_error *err);
json_t *hn_baseline_row_json(const hn_baseline_row *r);
/* The worst of the gated rows; INCONCLUSIVE when none is gated or one was not measured. */
hn_ab_verdict hn_baseline_verdict(const hn_baseline_row *rows, size_t n);

#endif
