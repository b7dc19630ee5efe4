/* diff: two files of records beside each other, row by row. Rows are paired by what was asked: id, model and
 * configuration. What has no partner says why; what answers differently is told, not compared.
 * Records of two times: intervals know chance, not drift. Refuses to print. */
#ifndef HN_DIFF_H
#define HN_DIFF_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/stats/changes.h"

typedef struct hn_diff_row {
    const char *id, *metric, *unit; /* borrowed from the records; metric "" for records of one number */
    json_t *a, *b;                  /* records; one of them NULL: no partner */
    double median_a, median_b;
    hn_unpaired test; /* ratio of speeds b / a, 95 %; NaN: not compared */
    bool higher;
    bool counts;   /* in the geometric mean: speeds and times, of runs of a model those of prompt and generation */
    char why[300]; /* why it is not compared; "" */
} hn_diff_row;

typedef struct hn_diff {
    hn_diff_row *row;
    size_t n, n_compared, n_counted;
    double mean; /* geometric, of the ratios of the rows that count; NaN: none */
    bool other_machine;
} hn_diff;

/* a, b: arrays of records, borrowed; of each measurement the newest that is there counts. HONE_E_NOMEM. */
hone_status hn_diff_make(hn_diff *out, json_t *a, json_t *b, hone_error *err);
void hn_diff_free(hn_diff *d);
json_t *hn_diff_json(const hn_diff *d);

#endif
