/* changes: did numbers move? Two samples measured at different times (Mann-Whitney), and steps
 * in a history (Potts functional). Pure numbers: knows neither records nor what was
 * measured. docs/BENCHMARKING.md explains both. */
#ifndef HN_CHANGES_H
#define HN_CHANGES_H

#include "base/base.h"
#include "base/json_text.h"

/* ---- two unpaired samples: Mann and Whitney 1947 ------------------------------------------- */

enum { HN_MWU_EXACT = 100 }; /* samples of both sides together, up to which the distribution is exact */

typedef struct hn_mwu {
    double u;       /* pairs with x > y, ties half */
    double less;    /* P(U ≤ u) where both come from one distribution: small when x tends to be less */
    double greater; /* P(U ≥ u) */
    double p;       /* two-sided: twice the lesser, at most 1 */
    bool exact;     /* else normal, with corrections for ties and continuity */
} hn_mwu;
/* Ties count half; the exact distribution is that of all ways to deal out the values that were
 * seen, ties included. Empty sides: every probability is 1. HONE_E_ARG: a sample is NaN. HONE_E_NOMEM. */
hone_status hn_mann_whitney(hn_mwu *out, const double *x, size_t nx, const double *y, size_t ny, hone_error *err);

/* What unpaired samples say about a change by a factor. */
typedef struct hn_unpaired {
    size_t n_old, n_new;
    double ratio; /* of speeds, new / old: above 1, new is faster; median of all pairs (Hodges and Lehmann 1963) */
    double ci[2],
        coverage;  /* interval of it at the level asked for, and what that really covers; NaN: too few samples */
    double p_same; /* Mann-Whitney, two-sided: are they different at all? */
    /* A change within the margin is a factor from 1 / (1 + margin) to 1 + margin: the same width on both sides of the
     * logarithm, so that margins above 1 keep a meaning. */
    double p_regressed, p_improved; /* against "not slower than that", "not faster than that" */
    double p_within;                /* against "outside of that" */
} hn_unpaired;
/* Positive samples; `higher`: more is better. HONE_E_ARG: a sample that is not above zero. */
hone_status hn_unpaired_test(hn_unpaired *out, const double *before, size_t n_before, const double *after,
                             size_t n_after, bool higher, double margin, double level, hone_error *err);

/* ---- steps in a history ------------------------------------------------------------------------- */

/* A level is one when it was seen so often; the newest may be younger. Less, and three odd results in a
 * row, which a long history of mostly equal numbers is bound to have, would be a level. */
enum { HN_LEVEL_MIN = 5, HN_STEP_MIN = 3 };
#define HN_STEP_ALPHA 0.01 /* a step has at most this probability of being chance */

typedef struct hn_step {
    size_t at;                /* index of the first point of the new level */
    size_t first, last;       /* the step is as likely anywhere from `first` to `last`, up to one typical deviation */
    size_t n_before, n_after; /* points of the two levels beside it */
    double before, after;     /* their medians */
    double ratio;             /* after / before; NaN unless both are above 0 */
    double p;                 /* share of shuffles of both levels whose best step is as large */
} hn_step;

typedef struct hn_steps {
    hn_step *step; /* malloc'ed, in order */
    size_t n;
    double noise; /* typical deviation from the level (of logarithms if `logs`) */
    bool logs;    /* all values are above zero: steps are factors */
} hn_steps;

/* x [n] in time order, finite. Levels are found in logarithms when all values are above zero.
 * The same input gives the same answer. Histories longer than HN_STEP_POINTS: the caller cuts. */
enum { HN_STEP_POINTS = 4000 };
hone_status hn_steps_find(hn_steps *out, const double *x, size_t n, hone_error *err);
void hn_steps_free(hn_steps *s);
/* {n, noise, steps: [{at, first, last, before, after, ratio, p, n_before, n_after}]} */
json_t *hn_steps_json(const hn_steps *s);

#endif
