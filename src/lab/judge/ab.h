/* ab: two sides measured in rounds until there is a verdict. First the same side against
 * itself: that says how finely this machine tells a thing from itself just now, how many
 * runs a round needs, and which summary of them is the steadiest. Then A against B, in
 * at most three looks. */
#ifndef HN_AB_H
#define HN_AB_H

#include "base/base.h"
#include "lab/stats/compare.h"
#include "lab/judge/sides.h"
#include "lab/machine/environ.h"
#include "base/json_text.h"

enum { HN_AB_METRICS = 8, HN_AB_MAX_RUNS = 32, HN_AB_NOTES = 8 };

/* What a round makes of several runs of one side. */
typedef enum hn_ab_within { HN_AB_AUTO = 0, HN_AB_LEAST, HN_AB_MEDIAN, HN_AB_MEAN } hn_ab_within;
const char *hn_ab_within_name(hn_ab_within w); /* "best" (least time, most speed) "median" "mean" */

typedef struct hn_ab_params {
    const hn_target *targets; /* benches, one after the other in every look */
    size_t n_targets;
    hn_side *a, *b;
    size_t rounds;       /* of the first look; 0: HN_AB_ROUNDS */
    double margin;       /* ε; 0: 2 %, single kernels 3 % */
    const char *metrics; /* names with commas; NULL: what the bench is about */
    uint64_t seed;
    int runs; /* runs of each side in a round; 0: found by the A/A rounds */
    hn_ab_within within;
    bool strict;    /* a disturbed machine ends it: HONE_E_UNSUPPORTED */
    bool different; /* the sides may answer differently: measured, and never called improved or the same */
    bool (*stop)(void *);
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* NULL allowed */
    void *progress_arg;
} hn_ab_params;

typedef struct hn_ab_line { /* one metric of one bench */
    const hn_target *target;
    char metric[64], unit[16];
    bool higher;
    bool beside; /* CPU time beside wall time: may raise an alarm, cannot lift one */
    hn_ab_within within;
    double aa_half_width; /* NaN: not measured */
    size_t aa_n;
    hn_ab_round *rounds; /* [n_rounds], A against B */
    double *runs;        /* [n_rounds][2][n_runs]: side a's, side b's */
    size_t n_rounds;
    int n_runs;
    size_t voided, kept; /* rounds thrown away on evidence; rounds kept in spite of it, too many having gone */
    int looks;
    double a, b; /* medians over the rounds that count */
    hn_ab_result r;
} hn_ab_line;

typedef struct hn_ab_report {
    hn_ab_line *line;
    size_t n;
    hn_ab_verdict overall;
    int looks;
    bool interrupted;
    uint64_t seed;
    char note[HN_AB_NOTES][200];
    int n_notes;
} hn_ab_report;

/* HONE_OK also when interrupted, with what was measured. HONE_E_FORMAT: a side failed;
 * HONE_E_NUMERIC: a side's result is not valid; HONE_E_ARG: no such metric. */
hone_status hn_ab_run(hn_ab_report *out, const hn_ab_params *p, hone_error *err);
void hn_ab_report_free(hn_ab_report *r);
/* A record of schema hone.ab/1. */
json_t *hn_ab_record(const hn_ab_report *r, const hn_ab_line *l, const hn_side *a, const hn_side *b,
                     const hn_environ *env);

#endif
