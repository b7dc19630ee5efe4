/* ab: two sides measured in rounds until there is a verdict. First, where that is open, a few rounds of A
 * against itself: how many runs a round needs. Then A against B in at most four looks; A against itself comes from the
 * same rounds, and says at each look which summary of a few runs is the steadiest, or that each run is a round. */
#ifndef HN_AB_H
#define HN_AB_H

#include "base/base.h"
#include "lab/stats/compare.h"
#include "lab/judge/sides.h"
#include "lab/machine/environ.h"
#include "base/json_text.h"

enum { HN_AB_METRICS = HN_MEASURED, HN_AB_MAX_RUNS = 32, HN_AB_NOTES = 16 };

/* What a round makes of several runs of one side. */
typedef enum hn_ab_within { HN_AB_AUTO = 0, HN_AB_LEAST, HN_AB_MEDIAN, HN_AB_MEAN } hn_ab_within;
const char *hn_ab_within_name(hn_ab_within w); /* "best" (least time, most speed) "median" "mean" */

/* Where a comparison is. Seconds are what the rounds took so far, times the rounds to come. */
typedef struct hn_ab_progress {
    int look;              /* from 0; −1: trying out how many runs a round needs */
    uint64_t done, total;  /* rounds of this look */
    double left_s, most_s; /* of this look; if all other looks must follow. NaN: not known yet */
} hn_ab_progress;

typedef struct hn_ab_params {
    const hn_target *targets; /* benches, one after the other in every look */
    size_t n_targets;
    hn_side *a, *b;
    size_t rounds;       /* of the first look; 0: HN_AB_ROUNDS */
    int looks;           /* at most; 0: HN_AB_LOOKS */
    double margin;       /* ε; 0: 2 %, single kernels 3 % */
    const char *metrics; /* names with commas; NULL: what the bench is about */
    uint64_t seed;
    int runs; /* runs of each side in a round; 0: found by trying, and perhaps each a round of its own */
    hn_ab_within within;
    bool strict;    /* a disturbed machine ends it: HONE_E_UNSUPPORTED */
    bool different; /* the sides are known to answer their model differently: never called improved or the same */
    bool allowed;   /* they may answer differently: where they do, likewise */
    bool (*stop)(void *);
    void (*progress)(void *arg, const hn_ab_progress *at); /* NULL allowed */
    void *progress_arg;
} hn_ab_params;

typedef struct hn_ab_line { /* one metric of one bench */
    const hn_target *target;
    char metric[HN_METRIC_NAME], unit[16];
    bool higher;
    bool moved;    /* unseen, as another part of b's runs takes most of it longer */
    bool unseen;   /* better by b's own clock, and not beyond chance by what its processes took */
    bool unproved; /* a run of a side has not proved the answer that this was measured of */
    bool trusted;  /* better, and nothing but b's word for it: no proof, or no time */
    bool beside;   /* CPU time beside wall time: may raise an alarm, cannot lift one */
    hn_ab_within within;
    double aa_half_width; /* of A against itself in the rounds that count; NaN: fewer than 6 pairs */
    size_t aa_n;          /* pairs of A and A */
    hn_ab_round *rounds;  /* [n_rounds], A against B */
    double *runs;         /* [n_rounds][2][n_runs]: side a's, side b's */
    size_t n_rounds;
    int n_runs;
    size_t taken;        /* rounds as they were measured, of which some may make one of n_rounds */
    size_t voided, kept; /* of them: rounds thrown away on evidence; rounds kept in spite of it, too many having gone */
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
    size_t first;                    /* rounds of the first look */
    char name[16];                   /* of this comparison, in all its records */
    char note[HN_AB_NOTES + 1][200]; /* the last says how many more there would be */
    int n_notes, n_unsaid;
} hn_ab_report;

/* HONE_OK also when interrupted, with what was measured. HONE_E_FORMAT: a side failed;
 * HONE_E_NUMERIC: a side's result is not valid; HONE_E_ARG: no such metric. */
hone_status hn_ab_run(hn_ab_report *out, const hn_ab_params *p, hone_error *err);
void hn_ab_report_free(hn_ab_report *r);
/* A line's numbers with the digits that its interval supports, each side with its own; "n/a": there is none. */
typedef struct hn_ab_digits {
    char a[32], b[32], ratio[32], ci[72]; /* ci: "[0.93, 0.96]" */
} hn_ab_digits;
hn_ab_digits hn_ab_digits_of(const hn_ab_line *l);
/* "B takes 7.7 % longer (5.4 to 8.5)": the interval at the level of the verdict, as B's time, or memory, against A's;
 * "" without one. Returns dst. */
const char *hn_ab_say(char *dst, size_t cap, const hn_ab_line *l);
/* "look 1 of 4, about 12 s left (2 min if it stays open)". Returns dst. */
const char *hn_ab_say_progress(char *dst, size_t cap, const hn_ab_progress *at);
/* A record of schema hone.ab/1. */
json_t *hn_ab_record(const hn_ab_report *r, const hn_ab_line *l, const hn_side *a, const hn_side *b,
                     const hn_environ *env);

#endif
