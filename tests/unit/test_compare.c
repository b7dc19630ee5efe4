/* A/B statistics: exact tails and intervals against values of scipy 1.17 (binom.cdf,
 * beta.ppf), ranks against Conover's table, verdicts against hand-made samples, and the
 * promises themselves (coverage, false alarms, power, Holm) against simulated machines
 * with heavy tails, drift, bursts and correlation. */
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "slowed.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) <= 1e-9 * fmax(1, fabs((double)(b))))

/* ---- exact values ------------------------------------------------------------------------ */

static void test_binomial(void **state)
{
    NEAR(hn_binomial_half(8, 0), 0.00390625);
    NEAR(hn_binomial_half(20, 4), 0.005908966064453125);
    NEAR(hn_binomial_half(20, 5), 0.020694732666015625);
    NEAR(hn_binomial_half(40, 11), 0.003213288047845708);
    NEAR(hn_binomial_half(80, 29), 0.00915804875845816);
    NEAR(hn_binomial_half(1000, 450), 0.0008652680424881513);
    NEAR(hn_binomial_half(7, 7), 1);
    NEAR(hn_binomial_half(5, -1), 0);
}

static void test_share_interval(void **state)
{
    static const struct {
        size_t k, n;
        double lo, hi;
    } t[] = {
        { 0, 20, 0, 0.1684334709830853 },
        { 20, 20, 0.8315665290169147, 1 },
        { 19, 20, 0.7512672372279723, 0.9987349105020502 },
        { 38, 40, 0.8308031360405823, 0.9938863534006491 },
        { 3, 1000, 0.0006190999316495715, 0.008742023238478303 },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double ci[2];
        hn_share_interval(ci, t[i].k, t[i].n, 0.95);
        assert_true(fabs(ci[0] - t[i].lo) < 1e-9 && fabs(ci[1] - t[i].hi) < 1e-9);
    }
}

static void test_ranks_of_the_looks(void **state)
{
    static const struct {
        size_t n, rank;
        double coverage;
    } t[] = { { 20, 4, 0.9974231719970703 },
              { 40, 12, 0.9935734239159501 },
              { 80, 29, 0.9903171500769424 },
              { 160, 66, 0.978426170380962 } };
    double spent = 0, few = 0, c;
    for (int look = 0; look < HN_AB_LOOKS; look++) {
        assert_int_equal(hn_ab_rounds_at(20, look), t[look].n);
        assert_int_equal(hn_median_rank(t[look].n, 1 - hn_ab_alpha(20, look), &c), t[look].rank);
        assert_true(fabs(c - t[look].coverage) < 1e-9);
        spent += hn_ab_alpha(20, look);
        few += hn_ab_alpha(8, look);
    }
    NEAR(spent, HN_AB_ALPHA); /* all looks together: no more than one was promised */
    NEAR(few, HN_AB_ALPHA);
    assert_int_equal(hn_median_rank(8, 1 - hn_ab_alpha(8, 0), &c), 1); /* eight rounds can decide */
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void test_order(void **state)
{
    int first_ba = 0;
    for (uint64_t i = 0; i < 2000; i += 2) {
        assert_true(hn_ab_order(5, i) != hn_ab_order(5, i + 1)); /* every block has both orders */
        assert_true(hn_ab_order(5, i) == hn_ab_order(5, i));
        first_ba += hn_ab_order(5, i);
    }
    assert_true(first_ba > 420 && first_ba < 580); /* fair: 5 sigma is 79 */
    int differ = 0;
    for (uint64_t i = 0; i < 64; i++) differ += hn_ab_order(1, i) != hn_ab_order(2, i);
    assert_true(differ > 8);
}

static void test_logs(void **state)
{
    const hn_ab_round r[] = { { .a = 2, .b = 1 }, { .a = 5, .b = 9, .voided = true }, { .a = 1, .b = 4, .ba = true } };
    double x[3];
    assert_int_equal(hn_ab_logs(x, r, 3, false, NULL), 2); /* times: a / b */
    NEAR(x[0], log(2));
    NEAR(x[1], -log(4));
    assert_int_equal(hn_ab_logs(x, r, 3, true, NULL), 2); /* rates: b / a */
    NEAR(x[0], -log(2));
    NEAR(x[1], log(4));
    hone_error err = { 0 };
    const hn_ab_round zero = { .b = 1 };
    assert_int_equal(hn_ab_logs(x, &zero, 1, false, &err), 0);
    assert_int_equal(err.code, HONE_E_ARG);
}

/* A against itself out of the rounds: blocks of two, the round with B first over the other; a copy's wherever there is
 * one. Half a block, or one that was thrown away, says nothing. */
static void test_self(void **state)
{
    const hn_ab_round r[] = { { .a = 2, .b = 9 },
                              { .a = 3, .b = 9, .ba = true },
                              { .a = 5, .b = 9, .ba = true },
                              { .a = 7, .b = 9 },
                              { .a = 1, .b = 9 },
                              { .a = 1, .ba = true, .voided = true },
                              { .a = 11, .b = 9 } };
    double x[7];
    assert_int_equal(hn_ab_self_logs(x, r, 7, true), 2);
    NEAR(x[0], log(3.0 / 2));
    NEAR(x[1], log(5.0 / 7));
    assert_int_equal(hn_ab_self_logs(x, r, 7, false), 2);
    NEAR(x[0], log(2.0 / 3));
    const hn_ab_round several[] = { { .a = 2, .b = 9 }, { .a = 3, .b = 9 }, { .a = 5, .b = 9 }, { .a = 7, .b = 9 } };
    assert_int_equal(hn_ab_self_logs(x, several, 4, true), 2); /* of one order: forth, and back */
    NEAR(x[0], log(3.0 / 2));
    NEAR(x[1], log(5.0 / 7));
    const hn_ab_round copies[] = { { .a = 2, .b = 9, .a2 = 4 }, { .a = 3, .b = 9, .a2 = 3, .ba = true } };
    assert_int_equal(hn_ab_self_logs(x, copies, 2, true), 2);
    NEAR(x[0], log(2));
    NEAR(x[1], 0);
    double off[20], around[20];
    for (int i = 0; i < 20; i++) {
        off[i] = log(1.05 + 0.0001 * i);
        around[i] = log(0.95 + 0.1 * i / 19);
    }
    assert_true(fabs(hn_ab_bias(off, 20) - 0.05095) < 1e-6); /* a copy that lies better */
    NEAR(hn_ab_bias(around, 20), 0);                         /* noise, however much of it */
    NEAR(hn_ab_bias(off, 5), 0);
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static hn_ab_result judge_line(double from, double to, size_t n, double wanted, double margin, double level)
{
    double *x = calloc(n, sizeof *x);
    hn_ab_result r;
    for (size_t i = 0; i < n; i++) x[n - 1 - i] = log(from + (to - from) * (double)i / (double)(n - 1));
    hn_ab_judge(&r, x, n, wanted, margin, 0, level);
    free(x);
    return r;
}

static void test_verdicts(void **state)
{
    double level = 1 - HN_AB_ALPHA / 3;
    hn_ab_result r = judge_line(0.90, 0.97, 20, 0.02, 0.02, level);
    assert_int_equal(r.verdict, HN_AB_REGRESSED);
    NEAR(r.ci[0], 0.90 + 0.07 * 4 / 19); /* the 5th and the 16th of 20 */
    NEAR(r.ci[1], 0.90 + 0.07 * 15 / 19);
    assert_true(fabs(r.ratio - 0.935) < 1e-4 && fabs(r.coverage - 0.988182) < 1e-6);
    NEAR(r.ci95[0], 0.90 + 0.07 * 5 / 19);
    assert_int_equal(judge_line(1.03, 1.10, 20, 0.02, 0.02, level).verdict, HN_AB_IMPROVED);
    assert_int_equal(judge_line(0.985, 1.015, 20, 0.02, 0.02, level).verdict, HN_AB_SAME);
    assert_int_equal(judge_line(0.97, 1.03, 20, 0.02, 0.02, level).verdict,
                     HN_AB_SAME); /* the ends lie outside the interval */
    r = judge_line(0.95, 0.999, 20, 0.02, 0.02, level);
    assert_int_equal(r.verdict, HN_AB_INCONCLUSIVE);
    assert_string_equal(hn_ab_note(&r), "slower, size unresolved");
    r = judge_line(1.001, 1.05, 20, 0.02, 0.02, level);
    assert_string_equal(hn_ab_note(&r), "faster, size unresolved");
    r = judge_line(0.94, 1.06, 20, 0.02, 0.02, level);
    assert_int_equal(r.verdict, HN_AB_INCONCLUSIVE);
    assert_string_equal(hn_ab_note(&r), "");
    r = judge_line(0.983, 0.995, 20, 0.02, 0.02, level);
    assert_int_equal(r.verdict, HN_AB_SAME);
    assert_string_equal(hn_ab_note(&r), "slower, by less than the margin");
}

static void test_a_copy_raises_no_alarm_and_excuses_nothing(void **state)
{
    double level = 1 - HN_AB_ALPHA / 3; /* a copy was 8 % off, 2 % were asked for */
    assert_int_equal(judge_line(0.93, 0.96, 20, 0.02, 0.08, level).verdict, HN_AB_INCONCLUSIVE);
    assert_int_equal(judge_line(0.96, 1.04, 20, 0.02, 0.08, level).verdict,
                     HN_AB_INCONCLUSIVE); /* not SAME: not within 2 % */
    assert_int_equal(judge_line(0.80, 0.90, 20, 0.02, 0.08, level).verdict, HN_AB_REGRESSED);
    assert_int_equal(judge_line(0.99, 1.01, 20, 0.02, 0.08, level).verdict, HN_AB_SAME);
    assert_int_equal(judge_line(0.2, 0.3, 20, 0.02, 1.4, level).verdict,
                     HN_AB_REGRESSED); /* noise beyond the thing itself: a factor of 2.4 either way */
    assert_int_equal(judge_line(0.45, 0.6, 20, 0.02, 1.4, level).verdict, HN_AB_INCONCLUSIVE);
    assert_int_equal(judge_line(0.9, 1.1, 20, 0.5, 1, level).verdict, HN_AB_SAME);
    assert_int_equal(judge_line(2.5, 3.5, 20, 0.02, 1.4, level).verdict, HN_AB_IMPROVED);
}

static void test_too_few(void **state)
{
    hn_ab_result r = judge_line(0.5, 0.6, 6, 0.02, 0.02, 1 - HN_AB_ALPHA / 3); /* needs 7 */
    assert_int_equal(r.verdict, HN_AB_INCONCLUSIVE);
    assert_true(isnan(r.ci[0]) && isfinite(r.ci95[0]));
    assert_int_equal(judge_line(0.5, 0.6, 7, 0.02, 0.02, 1 - HN_AB_ALPHA / 3).verdict, HN_AB_REGRESSED);
    hn_ab_judge(&r, NULL, 0, 0.02, 0.02, 0, 0.95);
    assert_true(isnan(r.ratio) && r.verdict == HN_AB_INCONCLUSIVE);
    json_t *o = hn_ab_result_json(&r);
    assert_true(json_is_null(json_object_get(o, "ratio")) && json_is_null(json_object_get(o, "ci95")));
    json_decref(o);
}

/* p is the least α at which the interval gives the verdict: at that level yes, below it no. */
static void test_p_is_the_edge(void **state)
{
    for (size_t n = 8; n <= 80; n += 9)
        for (int shape = 0; shape < 3; shape++) {
            double from = shape == 0   ? 0.93
                          : shape == 1 ? 0.99
                                       : 0.975,
                   to = shape == 0   ? 0.985
                        : shape == 1 ? 1.07
                                     : 1.024;
            hn_ab_verdict v = shape == 0 ? HN_AB_REGRESSED : shape == 1 ? HN_AB_IMPROVED : HN_AB_SAME;
            double p = judge_line(from, to, n, 0.02, 0.02, 0.95).p[v];
            if (p >= 1 || p < 1e-8) continue; /* beyond: 1 − p is too coarse a number */
            assert_int_equal(judge_line(from, to, n, 0.02, 0.02, 1 - p * 1.000001).verdict, v);
            assert_int_not_equal(judge_line(from, to, n, 0.02, 0.02, 1 - p * 0.999).verdict, v);
        }
}

static void test_half_width(void **state)
{
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = log(0.99 + 0.02 * i / 19);
    assert_true(fabs(hn_ab_half_width(x, 20) - 0.5 * 0.02 * 9 / 19) < 1e-9); /* the 6th and the 15th */
    for (int i = 0; i < 20; i++)
        x[i] = log(1.05 + 0.0001 * i); /* steady, but away from 1: one place is faster than the other */
    assert_true(fabs(hn_ab_half_width(x, 20) - 0.05095) < 1e-6);
    assert_true(isnan(hn_ab_half_width(x, 5)));
}

/* ---- Holm ----------------------------------------------------------------------------------------- */

static void test_holm_by_hand(void **state)
{
    /* three metrics of 12 rounds: 12, 11 and 10 of 12 below the margin: p 2/4096, 26/4096, 158/4096 */
    double data[3][12], *x[3];
    hn_ab_result r[3];
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < 12; i++) data[m][i] = i < 12 - m ? -0.1 - 0.001 * i : 0.05 + 0.001 * i;
        x[m] = data[m];
        hn_ab_judge(&r[m], x[m], 12, 0.02, 0.02, 0, 0.95);
        assert_int_equal(r[m].verdict, HN_AB_REGRESSED); /* each alone */
    }
    NEAR(r[2].p[HN_AB_REGRESSED], 158.0 / 4096);
    for (int m = 0; m < 3; m++)
        r[m] = (hn_ab_result){ .n = 12, .wanted = 0.02, .margin = 0.02 }; /* nothing else counts */
    hn_ab_holm(r, x, 3, 0.05);                                            /* 0.05/3, 0.05/2, 0.05: all three */
    for (int m = 0; m < 3; m++) assert_int_equal(r[m].verdict, HN_AB_REGRESSED);
    NEAR(r[0].level, 1 - 0.05 / 3);
    NEAR(r[2].level, 0.95);
    hn_ab_holm(r, x, 3, 0.03); /* 0.00049 ≤ 0.01, 0.0063 ≤ 0.015, 0.039 > 0.03 */
    assert_int_equal(r[1].verdict, HN_AB_REGRESSED);
    assert_int_equal(r[2].verdict, HN_AB_INCONCLUSIVE);
    hn_ab_holm(r, x, 3, 0.001); /* 0.00049 > 0.00033: nothing, though the last alone might pass */
    for (int m = 0; m < 3; m++) assert_int_equal(r[m].verdict, HN_AB_INCONCLUSIVE);
    NEAR(r[2].level, 1 - 0.001 / 3);
    for (int m = 0; m < 3; m++) r[m] = (hn_ab_result){ .n = 12, .wanted = 0.02, .margin = 0.02 };
    for (int i = 0; i < 12; i++)
        data[0][i] = i % 2 ? 0.2 : -0.2; /* the first is open: it must not stand in the way of the others */
    hn_ab_holm(r, x, 3, 0.05);
    assert_int_equal(r[0].verdict, HN_AB_INCONCLUSIVE);
    assert_int_equal(r[1].verdict, HN_AB_REGRESSED);
}

/* ---- simulated machines ------------------------------------------------------------------------------ */

typedef struct machine {
    uint64_t key, at;
    double drift, slow;
} machine;

static double uniform(machine *m) { return (double)(hn_rand64(m->key, m->at++) >> 11) * 0x1p-53; }
static double gauss(machine *m) { return sqrt(-2 * log(uniform(m) + 1e-300)) * cos(6.283185307179586 * uniform(m)); }

/* Time of one run of work 1: an AR(1) speed of the machine, bursts that last, and now and then something
 * that takes long. Kind 0: Gauss alone. */
static double run_time(machine *m, int kind, double sd)
{
    if (kind == 0) return exp(sd * gauss(m));
    m->drift = 0.9 * m->drift + 0.4 * sd * gauss(m);
    if (m->slow > 0) m->slow--;
    else if (uniform(m) < 0.02) m->slow = 5 + 20 * uniform(m);
    double t = exp(m->drift + sd * gauss(m)) * (m->slow > 0 ? 1.25 : 1);
    if (uniform(m) < 0.05) t += 0.1 / (uniform(m) + 0.02); /* heavy tail */
    return t;
}

/* Rounds with B `factor` times as long; ABBA by the seed. */
static void simulate(double *x, size_t n, machine *m, int kind, double sd, double factor, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        double first = run_time(m, kind, sd), second = run_time(m, kind, sd);
        bool ba = hn_ab_order(seed, i);
        double a = ba ? second : first, b = factor * (ba ? first : second);
        x[i] = log(a / b);
    }
}

/* The whole procedure: looks of 20, 40, 80, 160. */
static hn_ab_result all_looks(machine *m, int kind, double sd, double factor, uint64_t seed, bool *covered)
{
    double all[160], x[160];
    hn_ab_result r;
    simulate(all, 160, m, kind, sd, factor, seed);
    *covered = true;
    for (int look = 0; look < HN_AB_LOOKS; look++) {
        size_t n = hn_ab_rounds_at(20, look);
        memcpy(x, all, n * sizeof *x);
        hn_ab_judge(&r, x, n, 0.02, 0.02, 0, 1 - hn_ab_alpha(20, look));
        *covered = *covered && r.ci[0] <= 1 / factor && 1 / factor <= r.ci[1];
        if (r.verdict != HN_AB_INCONCLUSIVE) break;
    }
    return r;
}

enum { TIMES = 2000 };

static void test_simulated_false_alarms_and_power(void **state)
{
    static const struct {
        int kind;
        double sd, factor;
    } cases[] = {
        { 0, 0.01, 1 },    { 0, 0.03, 1 },    { 0, 0.08, 1 },    { 1, 0.01, 1 },
        { 1, 0.03, 1 },    { 0, 0.01, 1.05 }, { 0, 0.03, 1.05 }, { 1, 0.01, 1.05 },
        { 0, 0.01, 1.02 }, { 1, 0.01, 1.02 }, { 1, 0.03, 1.02 },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int v[HN_AB_VERDICTS] = { 0 }, covered_n = 0;
        for (uint64_t i = 0; i < TIMES; i++) {
            machine m = { .key = 1000 * c + 7 + i * 1000003 };
            bool covered;
            v[all_looks(&m, cases[c].kind, cases[c].sd, cases[c].factor, i, &covered).verdict]++;
            covered_n += covered;
        }
        print_message("# %s noise %.0f %%, B %.0f %% slower: %d SAME, %d IMPROVED, %d REGRESSED, %d INCONCLUSIVE; the "
                      "truth in every interval: %.2f %%\n",
                      cases[c].kind ? "bursty" : "plain", 100 * cases[c].sd, 100 * (cases[c].factor - 1), v[HN_AB_SAME],
                      v[HN_AB_IMPROVED], v[HN_AB_REGRESSED], v[HN_AB_INCONCLUSIVE], 100.0 * covered_n / TIMES);
        assert_true(covered_n >= 0.94 * TIMES); /* 95 % promised; 1 % is two standard errors */
        if (cases[c].factor == 1) assert_true(v[HN_AB_REGRESSED] + v[HN_AB_IMPROVED] <= TIMES / 100);
        if (cases[c].factor == 1.05) assert_true(v[HN_AB_REGRESSED] >= 0.95 * TIMES);
        if (cases[c].factor > 1) assert_int_equal(v[HN_AB_IMPROVED], 0);
    }
}

/* Student's t with 3 degrees of freedom: a Gauss over the root of the mean of three squares. */
static double student3(machine *m)
{
    double s = 0;
    for (int i = 0; i < 3; i++) {
        double z = gauss(m);
        s += z * z;
    }
    return gauss(m) / sqrt(s / 3);
}

/* Two metrics judged together, as decode and prefill of a model are, whose rounds are noisy by `noise` times Student's
 * t3; B takes slow[j] times as long. REGRESSED when either is; else the verdict of metric 0; rounds in *n. */
static hn_ab_verdict two_metrics(machine *m, double noise, const double slow[2], size_t *n)
{
    double all[2][160], x[2][160], *at[2] = { x[0], x[1] };
    hn_ab_result r[2] = { { .wanted = 0.02, .margin = 0.02 }, { .wanted = 0.02, .margin = 0.02 } };
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 160; i++) all[j][i] = noise * student3(m) - log(slow[j]);
    for (int look = 0; look < HN_AB_LOOKS; look++) {
        *n = hn_ab_rounds_at(HN_AB_ROUNDS, look);
        for (int j = 0; j < 2; j++) {
            if (r[j].verdict == HN_AB_INCONCLUSIVE) r[j].n = *n; /* what is decided keeps its rounds */
            memcpy(x[j], all[j], r[j].n * sizeof *x[j]);
            r[j].taken = false;
        }
        hn_ab_holm(r, at, 2, hn_ab_alpha(HN_AB_ROUNDS, look));
        bool open = r[0].verdict == HN_AB_INCONCLUSIVE || r[1].verdict == HN_AB_INCONCLUSIVE;
        if (!open || r[0].verdict == HN_AB_REGRESSED || r[1].verdict == HN_AB_REGRESSED) break;
    }
    return r[1].verdict == HN_AB_REGRESSED ? HN_AB_REGRESSED : r[0].verdict;
}

/* What is promised at the noise of small virtual machines: t3, 6 % a round. */
static void test_simulated_power_in_heavy_noise(void **state)
{
    enum { TRIES = SLOWED ? 200 : 600 };
    static const struct {
        double noise, slow[2];
    } cases[] = { { 0.06, { 1, 1 } },        { 0.06, { 1.05, 1 } }, { 0.06, { 1.05, 1.05 } }, { 0.06, { 1.02, 1 } },
                  { 0.06, { 1 / 1.02, 1 } }, { 0.035, { 1, 1 } },   { 0.035, { 1.05, 1 } } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int v[HN_AB_VERDICTS] = { 0 };
        size_t rounds = 0;
        for (uint64_t i = 0; i < TRIES; i++) {
            machine m = { .key = 31 * c + 5 + i * 1000003 };
            size_t n;
            v[two_metrics(&m, cases[c].noise, cases[c].slow, &n)]++;
            rounds += n;
        }
        double slow = cases[c].slow[0];
        print_message("# t3 noise %.1f %% a round, B takes %+.1f %% and %+.1f %%: %d SAME, %d IMPROVED, %d REGRESSED, "
                      "%d INCONCLUSIVE, "
                      "%.0f rounds\n",
                      100 * cases[c].noise, 100 * (slow - 1), 100 * (cases[c].slow[1] - 1), v[HN_AB_SAME],
                      v[HN_AB_IMPROVED], v[HN_AB_REGRESSED], v[HN_AB_INCONCLUSIVE], (double)rounds / TRIES);
        if (slow == 1) assert_true(v[HN_AB_REGRESSED] + v[HN_AB_IMPROVED] <= TRIES / 100);
        if (slow >= 1.05) assert_true(v[HN_AB_REGRESSED] >= 0.95 * TRIES);
        if (slow > 1) assert_int_equal(v[HN_AB_IMPROVED], 0);
        if (slow < 1) assert_true(v[HN_AB_IMPROVED] <= 0.025 * TRIES); /* at the margin: half of 5 % */
    }
}

/* Six metrics on a machine where nothing differs, judged together against margin 0 in effect: how often
 * is any of them called different? */
static void test_simulated_holm(void **state)
{
    int any = 0, any_alone = 0;
    for (uint64_t i = 0; i < TIMES; i++) {
        double data[6][20], *x[6];
        hn_ab_result r[6];
        machine m = { .key = 99 + i * 7919 };
        bool wrong = false, alone = false;
        for (int j = 0; j < 6; j++) {
            simulate(data[j], 20, &m, 0, 0.05, 1, i * 6 + (uint64_t)j);
            x[j] = data[j];
            hn_ab_judge(&r[j], x[j], 20, 0, 0, 0, 0.95);
            alone = alone || r[j].verdict != HN_AB_INCONCLUSIVE;
        }
        hn_ab_holm(r, x, 6, 0.05);
        for (int j = 0; j < 6; j++) wrong = wrong || r[j].verdict != HN_AB_INCONCLUSIVE;
        any += wrong;
        any_alone += alone;
    }
    print_message("# six metrics, no difference: any called different in %.1f %% with Holm, %.1f %% without\n",
                  100.0 * any / TIMES, 100.0 * any_alone / TIMES);
    assert_true(any <= 0.06 * TIMES);
    assert_true(any_alone > 0.12 * TIMES); /* the test can fail */
}

/* Runs of a machine whose other core is busy fall into modes: as fast as it goes, and by `less` slower, each kept with
 * probability `kept` for the next run. Runs of A and B are taken one by one, as many as four times the rounds of a
 * look; which rounds tell, A's own values say. How many of the comparisons end in each verdict, by all rounds and by
 * those that are near, too. */
static int by_modes(int v[2][HN_AB_VERDICTS], double slow, double less, double in_mode, double kept, int tries,
                    uint64_t key)
{
    enum { EACH = 4, MOST = EACH * 160, NEAR_BY = 8 };
    static double a[MOST], x[MOST], sorted[MOST], d[2 * NEAR_BY * MOST];
    int by_near = 0;
    for (int t = 0; t < tries; t++) {
        machine m = { .key = key + (uint64_t)t * 1000003 };
        bool slowed[2] = { false, false };
        for (int i = 0; i < MOST; i++) {
            double value[2];
            for (int side = 0; side < 2; side++) {
                if (uniform(&m) >= kept) slowed[side] = uniform(&m) < in_mode;
                value[side] = 0.02 * gauss(&m) - (slowed[side] ? less * (0.6 + uniform(&m)) : 0);
            }
            a[i] = value[0];
            x[i] = value[1] - log(slow) - value[0];
        }
        for (int with = 0; with < 2; with++) {
            hn_ab_result r = { 0 };
            for (int look = 0; look < HN_AB_LOOKS && r.verdict == HN_AB_INCONCLUSIVE; look++) {
                const size_t n = EACH * hn_ab_rounds_at(HN_AB_ROUNDS, look);
                size_t n_d = 0;
                for (size_t i = 0; i < n; i++)
                    for (size_t o = i + 1; o < n && o <= i + NEAR_BY; o++)
                        d[n_d++] = a[i] - a[o], d[n_d++] = a[o] - a[i];
                qsort(d, n_d, sizeof *d, hn_ascending);
                memcpy(sorted, x, n * sizeof *x);
                hn_ab_judge(&r, sorted, n, 0.02, 0.02, with ? hn_ab_near(d, n_d, 1.5 * log(1.02)) : 0,
                            1 - hn_ab_alpha(HN_AB_ROUNDS, look) / 2); /* of two metrics */
            }
            v[with][r.verdict]++;
            by_near += with && r.near > 0;
        }
    }
    return by_near;
}

/* Rounds near a margin say what is beyond it, as long as most of all rounds do not contradict. */
static void test_near_and_far(void **state)
{
    enum { CLOSE = 30, MOST = 200 };
    static const struct {
        size_t far;
        double near;
        hn_ab_verdict is;
    } cases[] = { { 28, 0.04, HN_AB_REGRESSED }, { 28, 0, HN_AB_INCONCLUSIVE }, { 31, 0.04, HN_AB_INCONCLUSIVE } };
    for (int up = 0; up < 2; up++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            double x[MOST];
            size_t n = 0;
            while (n < CLOSE) x[n++] = up ? 0.05 : -0.05;
            for (size_t i = 0; i < cases[c].far; i++) x[n++] = up ? -0.5 : 0.5;
            hn_ab_result r;
            hn_ab_judge(&r, x, n, 0.02, 0.02, cases[c].near, 0.95);
            assert_int_equal(r.verdict, up && cases[c].is ? HN_AB_IMPROVED : cases[c].is);
            if (cases[c].near > 0) assert_int_equal(r.n_near[up], CLOSE);
        }
}

static void test_simulated_modes(void **state)
{
    enum { TRIES = SLOWED ? 120 : 300 };
    static const struct {
        double slow, less, in_mode, kept;
    } cases[] = { { 1, 0.5, 0.5, 0.7 },  { 1.05, 0.5, 0.5, 0.7 }, { 1 / 1.02, 0.5, 0.5, 0 },
                  { 1.02, 0.5, 0.5, 0 }, { 1.05, 0.5, 0, 0 },     { 1, 0, 0, 0 } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int v[2][HN_AB_VERDICTS] = { { 0 } };
        const double slow = cases[c].slow;
        int near = by_modes(v, slow, cases[c].less, cases[c].in_mode, cases[c].kept, TRIES, 77 + c);
        print_message("# modes: %.0f %% of runs slower by %.0f %%, B takes %+.1f %%: REGRESSED %d by all rounds, %d by "
                      "those near, too; IMPROVED %d, %d; SAME %d, %d\n",
                      100 * cases[c].in_mode, 100 * cases[c].less, 100 * (slow - 1), v[0][HN_AB_REGRESSED],
                      v[1][HN_AB_REGRESSED], v[0][HN_AB_IMPROVED], v[1][HN_AB_IMPROVED], v[0][HN_AB_SAME],
                      v[1][HN_AB_SAME]);
        if (slow == 1) assert_true(v[1][HN_AB_REGRESSED] + v[1][HN_AB_IMPROVED] <= 0.05 * TRIES);
        if (slow == 1.05) assert_true(v[1][HN_AB_REGRESSED] >= 0.98 * TRIES);
        if (slow == 1.05 && cases[c].in_mode > 0)
            assert_true(v[0][HN_AB_REGRESSED] < v[1][HN_AB_REGRESSED] - TRIES / 20);
        if (slow < 1) assert_true(v[1][HN_AB_IMPROVED] <= 0.05 * TRIES && v[1][HN_AB_REGRESSED] == 0);
        if (slow == 1.02) assert_true(v[1][HN_AB_REGRESSED] <= 0.05 * TRIES && v[1][HN_AB_IMPROVED] == 0);
        assert_true((near > 0) == (cases[c].in_mode > 0)); /* where nothing is disturbed all rounds tell */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binomial),
        cmocka_unit_test(test_share_interval),
        cmocka_unit_test(test_ranks_of_the_looks),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_a_copy_raises_no_alarm_and_excuses_nothing),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_p_is_the_edge),
        cmocka_unit_test(test_half_width),
        cmocka_unit_test(test_holm_by_hand),
        cmocka_unit_test(test_simulated_false_alarms_and_power),
        cmocka_unit_test(test_simulated_power_in_heavy_noise),
        cmocka_unit_test(test_simulated_holm),
        cmocka_unit_test(test_near_and_far),
        cmocka_unit_test(test_simulated_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
