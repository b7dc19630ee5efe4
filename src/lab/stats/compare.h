/* compare: from measured rounds to a verdict. Pure numbers: nothing here measures,
 * prints or knows what was measured. A round is both sides measured next to each other,
 * so that what drifts with time drifts out of its ratio; everything is said about the
 * median of the rounds' ratios, from order statistics alone: no shape of the noise is
 * assumed. docs/BENCHMARKING.md explains it. */
#ifndef HN_COMPARE_H
#define HN_COMPARE_H

#include "base/base.h"
#include "base/json_text.h"

#include <math.h>

#define HN_AB_SCHEMA "hone.ab/1"
#define HN_AB_ALPHA 0.05
enum { HN_AB_LOOKS = 4, HN_AB_MIN_ROUNDS = 8, HN_AB_ROUNDS = 20, HN_AB_MAX_ROUNDS = 10000 };
enum { HN_STORED_LOOKS = 3 }; /* at stored samples, with equal shares of α */

/* ---- rounds ---------------------------------------------------------------------------- */

typedef struct hn_ab_round {
    double a, b; /* in the metric's unit; > 0 unless voided */
    double a2;   /* a copy of A with data of its own, measured in the same round; 0: none */
    bool ba;     /* B came first */
    bool voided; /* thrown away, both sides, on evidence of the environment */
} hn_ab_round;

/* Does B come first in round i? Rounds come in blocks of two with opposite orders
 * (ABBA or BAAB), the order of each block drawn from the seed. */
bool hn_ab_order(uint64_t seed, uint64_t i);
/* Rounds that look 0, 1, 2, 3 has altogether: each look doubles. */
size_t hn_ab_rounds_at(size_t first, int look);
/* The share of HN_AB_ALPHA that this look may spend. The shares add up to it, so that everything said in all looks is
 * wrong with that probability at most, however the looks depend on each other. The last, with most rounds, has half
 * of it: it decides what is hard to see. With fewer than HN_AB_ROUNDS first rounds a small share could not be reached
 * by any numbers (8 rounds: 0.0078), and all shares are equal. */
double hn_ab_alpha(size_t first, int look);

/* Ratios of the rounds that count, as natural logarithms of new speed / old speed: above 0,
 * B is faster, whatever the unit. x [n]; returns how many there are. HONE_E_ARG in err (and
 * 0): a value that is not above zero, whose ratio means nothing. */
size_t hn_ab_logs(double *x, const hn_ab_round *r, size_t n, bool higher_better, hone_error *err);
/* A against itself, from the same rounds: with a copy of A that each round's a2 / a; else, of each block of two rounds
 * that both count, A of the round where B came first / A of the other one. Which of the two came earlier is the
 * block's coin, so drift falls on both alike. Where both have one order, as rounds made of several may, the later one
 * and the earlier one in turn. x [n]; logarithms, above 0: faster. */
size_t hn_ab_self_logs(double *x, const hn_ab_round *r, size_t n, bool higher_better);

/* ---- judging one metric ------------------------------------------------------------------- */

typedef enum hn_ab_verdict {
    HN_AB_INCONCLUSIVE = 0,
    HN_AB_SAME,
    HN_AB_IMPROVED,
    HN_AB_REGRESSED,
    HN_AB_VERDICTS,
    HN_AB_DIFFERENT = HN_AB_VERDICTS /* measured, but the sides answer differently: no verdict on their speed */
} hn_ab_verdict;
const char *hn_ab_verdict_name(hn_ab_verdict v);

typedef struct hn_ab_result {
    size_t n;               /* rounds that count */
    double ratio;           /* median of new / old speed; NaN: no rounds */
    double ci[2], coverage; /* interval at the level that the verdict needed; what it really covers */
    double ci95[2], coverage95;
    double level;             /* asked for: 1 − α of this look, shared out by Holm */
    double margin, wanted;    /* ε in force, and as asked for */
    double near;              /* rounds further than this from a margin are no evidence about it; 0: all are */
    size_t n_near[2];         /* rounds that near 1 − margin, and near 1 + margin */
    double p[HN_AB_VERDICTS]; /* the least α at which this would be the verdict; of INCONCLUSIVE: 1 */
    hn_ab_verdict verdict;
    bool taken; /* of hn_ab_holm */
} hn_ab_result;

/* x [n]: logarithms of the ratios, in any order; sorted in place. Verdict at `level`: REGRESSED when
 * the interval ends below 1 − margin, IMPROVED when it begins above 1 + margin, SAME when it
 * lies within 1 ± wanted; INCONCLUSIVE otherwise and when n is too small for the level. margin is
 * wanted, or more where two copies of one thing differ by more (hn_ab_bias): no alarm over such a
 * difference, but it is no reason either to call two things the same. near > 0: REGRESSED and IMPROVED also where the
 * rounds within it of their margin say so and most of all rounds are beyond it, each of the two tests at half of what
 * is left of α. */
void hn_ab_judge(hn_ab_result *out, double *x, size_t n, double wanted, double margin, double near, double level);
/* Which rounds tell most of a shift of `shift` beyond a margin, by differences of a side and itself, d [n_d], sorted:
 * those within so much of it (logarithms); 0: all of them do, or no others do by much. */
double hn_ab_near(const double *d, size_t n_d, double shift);

/* Several metrics or benches looked at together (Holm 1979): the m verdicts are found so that the
 * chance that any of them is wrong stays below alpha. Of r[i] only n, wanted, margin and near are
 * read; x[i] [r[i].n] as for hn_ab_judge. */
void hn_ab_holm(hn_ab_result *r, double *const *x, size_t m, double alpha);

/* How far apart a machine finds a thing and itself: half of the 95 % interval of the median
 * of A/A ratios, or how far that median is from 1, whichever is more. x as above. NaN below 6. */
double hn_ab_half_width(double *x, size_t n);
/* How far a thing is from its own copy beyond chance: how far the median is from 1 if its 95 % interval leaves 1 out,
 * else 0. What is chance is in the intervals of A against B already, and is not counted twice. x as above. */
double hn_ab_bias(double *x, size_t n);

/* What a person should know beyond the verdict: "slower, size unresolved"; "" if nothing. */
const char *hn_ab_note(const hn_ab_result *r);

/* P(Bin(n, ½) ≤ k); 0 for k < 0. */
double hn_binomial_half(size_t n, long k);
/* Interval for a share of k in n (Clopper and Pearson 1934). */
void hn_share_interval(double out[2], size_t k, size_t n, double level);

/* {n, ratio, ci95, coverage, ci, ci_coverage, level, margin, margin_wanted, near, n_near, verdict, note}. */
json_t *hn_ab_result_json(const hn_ab_result *r);

#endif
