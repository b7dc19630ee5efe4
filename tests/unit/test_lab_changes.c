/* Mann-Whitney against scipy 1.17 (exact) and against all dealings counted one by one (ties);
 * steps against every segmentation of short series; false alarms and detections of both. */
#include "lab/stats/changes.c"
#include "slowed.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t key, counter;
static void seed(uint64_t k)
{
    key = k * 0x9E3779B97F4A7C15u;
    counter = 0;
}
static double uniform(void) { return ((double)(hn_rand64(key, counter++) >> 11) + 0.5) * 0x1p-53; }
static double normal(void)
{
    double r = sqrt(-2 * log(uniform()));
    return r * cos(6.283185307179586 * uniform());
}
static double laplace(void)
{
    double u = uniform() - 0.5;
    return (u < 0 ? -1 : 1) * -log(1 - 2 * fabs(u));
}
/* 0 normal, 1 Laplace, 2 skewed, 3 of few values */
static double noise(int kind)
{
    return kind == 0 ? normal() : kind == 1 ? laplace() : kind == 2 ? exp(normal()) : floor(normal());
}

/* ---- Mann-Whitney ------------------------------------------------------------------------------ */

typedef struct known {
    double x[10];
    size_t nx;
    double y[40];
    size_t ny;
    double u, less, greater;
} known;
static const known from_scipy[] = {
    { { 9.348 }, 1, { 10.325 }, 1, 0.0, 0.5, 1 },
    { { 11.664, 10.659, 8.359 }, 3, { 10.495, 9.877, 10.649, 8.892 }, 4, 8.0, 0.8, 0.314285714285714 },
    { { 10.242, 10.235, 11.576, 10.317 },
      4,
      { 11.011, 9.007, 12.753, 8.584 },
      4,
      9.0,
      0.657142857142857,
      0.442857142857143 },
    { { 11.102, 9.67, 9.119, 9.344, 9.328, 10.38 },
      6,
      { 10.39, 11.983, 8.67, 10.497, 9.608, 11.276, 8.382, 10.156, 10.71, 9.016 },
      10,
      26.0,
      0.356393606393606,
      0.682317682317682 },
    { { 10.985, 10.179, 11.007, 10.959, 9.02, 9.202, 9.797, 10.748 },
      8,
      { 11.351, 9.79, 9.893, 9.702, 9.916 },
      5,
      22.0,
      0.637917637917638,
      0.416472416472416 },
    { { 9.762, 9.868, 12.058, 9.494, 9.711, 10.459, 9.047, 9.631, 10.013, 10.774 },
      10,
      { 9.184,  11.871, 10.148, 10.669, 11.347, 11.161, 11.559, 10.673, 10.48,  10.816, 9.504,  11.714, 9.725,  9.24,
        12.556, 10.364, 9.321,  12.352, 10.17,  11.562, 9.671,  10.251, 8.811,  8.591,  9.524,  10.422, 11.298, 12.926,
        9.468,  11.509, 9.896,  10.347, 9.019,  9.021,  9.722,  9.307,  10.496, 9.797,  11.751, 10.653 },
      40,
      167.0,
      0.21823323306674,
      0.788804139539769 },
    /* with ties: all dealings of the values */
    { { 1, 0, 1 }, 3, { 2, 0, 0 }, 3, 5.0, 0.65, 0.5 },
    { { 1, 2, 0, 1, 1 }, 5, { 1, 0, 2, 3, 0 }, 5, 12.0, 0.5, 0.595238095238095 },
    { { 3, 1, 1, 1, 0, 1 }, 6, { 2, 4, 2, 4, 2, 4, 3 }, 7, 3.5, 0.00291375291375291, 0.998251748251748 },
    { { 3, 4, 0, 4 }, 4, { 2, 4, 3, 0, 6, 5, 2, 2 }, 8, 16.0, 0.531313131313131, 0.531313131313131 },
    { { 0 }, 5, { 0 }, 5, 12.5, 1, 1 },
};

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("%.15g, expected %.15g", got, want);
}

static void test_mann_whitney_exact(void **state)
{
    for (size_t i = 0; i < sizeof from_scipy / sizeof *from_scipy; i++) {
        const known *k = &from_scipy[i];
        hn_mwu m, back;
        assert_int_equal(hn_mann_whitney(&m, k->x, k->nx, k->y, k->ny, NULL), HONE_OK);
        assert_true(m.exact && m.u == k->u);
        near(m.less, k->less, 1e-13);
        near(m.greater, k->greater, 1e-13);
        near(m.p, fmin(1, 2 * fmin(k->less, k->greater)), 1e-13);
        assert_int_equal(hn_mann_whitney(&back, k->y, k->ny, k->x, k->nx, NULL), HONE_OK); /* sides exchanged */
        near(back.less, k->greater, 1e-13);
        near(back.greater, k->less, 1e-13);
    }
}

static void test_mann_whitney_many(void **state)
{
    static const double x[60] = { 22, 37, 33, 2,  13, 6,  29, 30, 23, 35, 21, 25, 25, 26, 19, 14, 4,  24, 35, 13,
                                  38, 24, 33, 33, 14, 1,  25, 37, 30, 27, 2,  6,  31, 14, 3,  27, 37, 37, 9,  37,
                                  38, 28, 9,  9,  21, 29, 33, 6,  39, 2,  28, 13, 33, 30, 15, 1,  30, 37, 15, 10 };
    static const double y[70] = { 39, 15, 32, 12, 17, 18, 33, 2,  4,  15, 39, 2,  29, 35, 15, 41, 27, 20,
                                  33, 13, 27, 31, 37, 10, 18, 19, 14, 23, 16, 24, 13, 27, 21, 2,  32, 13,
                                  36, 29, 27, 10, 33, 23, 40, 2,  28, 13, 5,  33, 27, 34, 2,  6,  29, 9,
                                  41, 16, 21, 32, 39, 18, 2,  28, 40, 3,  8,  15, 35, 21, 13, 8 };
    hn_mwu m;
    assert_int_equal(hn_mann_whitney(&m, x, 60, y, 70, NULL), HONE_OK);
    assert_false(m.exact);
    assert_true(m.u == 2178.5);
    near(m.less, 0.6440299251957389, 1e-12);
    near(m.greater, 0.3577133716929817, 1e-12);
    static double same[200];
    assert_int_equal(hn_mann_whitney(&m, same, 100, same + 100, 100, NULL), HONE_OK);
    assert_true(m.p == 1);
    assert_int_equal(hn_mann_whitney(&m, x, 0, y, 70, NULL), HONE_OK);
    assert_true(m.p == 1);
}

/* The interval holds the true ratio as often as it says; the tests alarm no oftener than they say. */
static void test_unpaired(void **state)
{
    enum { ROUNDS = SLOWED ? 200 : 2000 };
    int covered = 0, slow = 0, fast = 0, within_wrong = 0, different = 0;
    hn_unpaired u;
    for (int r = 0; r < ROUNDS; r++) {
        double a[10], b[10], edge[10];
        seed(100 + (uint64_t)r);
        for (int i = 0; i < 10; i++) a[i] = 50 * exp(0.03 * laplace());
        for (int i = 0; i < 10; i++) b[i] = 50 * exp(0.03 * laplace());
        assert_int_equal(hn_unpaired_test(&u, a, 10, b, 10, true, 0, 0.95, NULL), HONE_OK);
        assert_true(u.coverage >= 0.95 && u.coverage < 0.97);
        covered += u.ci[0] <= 1 && 1 <= u.ci[1];
        assert_true(u.ci[0] <= u.ratio && u.ratio <= u.ci[1]);
        different += u.p_same <= 0.05;
        for (int i = 0; i < 10; i++) edge[i] = b[i] / 1.05; /* just at the margin: neither may be said */
        assert_int_equal(hn_unpaired_test(&u, a, 10, edge, 10, true, 0.05, 0.95, NULL), HONE_OK);
        slow += u.p_regressed <= 0.05;
        within_wrong += u.p_within <= 0.05;
        assert_int_equal(hn_unpaired_test(&u, a, 10, edge, 10, false, 0.05, 0.95, NULL),
                         HONE_OK); /* of times: as much faster */
        fast += u.p_improved <= 0.05;
    }
    if (SLOWED) return; /* what follows are laws of large numbers */
    near((double)covered / ROUNDS, 0.957, 0.02);
    assert_true(different <= 0.06 * ROUNDS && different > 0.03 * ROUNDS);
    assert_true(slow <= 0.062 * ROUNDS && slow > 0.03 * ROUNDS);
    assert_true(within_wrong <= 0.062 * ROUNDS);
    assert_true(fast <= 0.062 * ROUNDS && fast > 0.03 * ROUNDS);
}

static void test_unpaired_finds(void **state)
{
    hn_unpaired u;
    double a[10], b[20];
    seed(5);
    for (int i = 0; i < 10; i++) a[i] = 100 * exp(0.02 * normal());
    for (int i = 0; i < 20; i++) b[i] = 80 * exp(0.02 * normal());
    assert_int_equal(hn_unpaired_test(&u, a, 10, b, 20, true, 0.05, 0.99, NULL), HONE_OK);
    assert_true(u.p_regressed < 1e-6 && u.p_improved > 0.99 && u.p_within > 0.99 && u.ci[1] < 0.85 && u.ci[0] > 0.75);
    assert_int_equal(hn_unpaired_test(&u, a, 10, b, 20, false, 0.05, 0.99, NULL), HONE_OK); /* less time */
    assert_true(u.p_improved < 1e-6 && u.ratio > 1.2);
    assert_int_equal(hn_unpaired_test(&u, a, 10, a, 10, true, 0.1, 0.99, NULL), HONE_OK);
    assert_true(u.p_within < 1e-3 && u.p_regressed > 0.99 && u.ratio == 1);
    for (int i = 0; i < 10; i++) a[i] = 7; /* no spread at all, as memory */
    assert_int_equal(hn_unpaired_test(&u, a, 10, a, 10, false, 0.02, 0.95, NULL), HONE_OK);
    assert_true(u.p_within < 1e-4 && u.p_regressed == 1 && u.p_same == 1 && u.ratio == 1);
    assert_int_equal(hn_unpaired_test(&u, a, 2, a, 2, false, 0.02, 0.95, NULL), HONE_OK); /* too few to say anything */
    assert_true(isnan(u.ci[0]) && u.p_within > 0.1);
    for (int i = 0; i < 10; i++) a[i] = 100 + i; /* a margin above 1 must still be able to alarm */
    for (int i = 0; i < 20; i++) b[i] = 10 + 0.1 * i;
    assert_int_equal(hn_unpaired_test(&u, a, 10, b, 20, true, 3, 0.95, NULL), HONE_OK);
    assert_true(u.p_regressed < 1e-6 && u.p_improved > 0.99 && u.p_within > 0.99);
    assert_int_equal(hn_unpaired_test(&u, b, 20, a, 10, true, 3, 0.95, NULL), HONE_OK);
    assert_true(u.p_improved < 1e-6 && u.p_regressed > 0.99);
    b[3] = 0;
    hone_error err;
    hn_mwu m;
    const double nan_[1] = { NAN };
    assert_int_equal(hn_mann_whitney(&m, nan_, 1, b, 20, &err), HONE_E_ARG);
    assert_int_equal(hn_unpaired_test(&u, a, 10, b, 20, true, 0.05, 0.99, &err), HONE_E_ARG);
    assert_int_equal(hn_unpaired_test(&u, a, 0, b, 3, true, 0.05, 0.99, &err), HONE_OK);
    assert_true(u.p_regressed == 1 && isnan(u.ratio));
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static void series(double *x, size_t n, size_t at, double factor, double sigma, int kind)
{
    for (size_t i = 0; i < n; i++) x[i] = 100 * exp(sigma * noise(kind)) * (i >= at ? factor : 1);
}

static double level_cost(const double *x, size_t from, size_t to)
{
    double room[32], sum = 0, m = median_of(x + from, to - from, room);
    for (size_t i = from; i < to; i++) sum += fabs(x[i] - m);
    return sum;
}

/* Every set of cuts of a short series, one by one. */
static double least_of_all(const double *x, size_t n, double penalty)
{
    double best = INFINITY;
    for (uint32_t cuts = 0; cuts < 1u << (n - 1); cuts++) {
        double sum = 0;
        size_t from = 0;
        for (size_t to = 1; to <= n && isfinite(sum); to++) {
            if (to < n && !(cuts >> (to - 1) & 1)) continue;
            sum += to - from < least_length(to, n) ? INFINITY : level_cost(x, from, to) + (from ? penalty : 0);
            from = to;
        }
        best = fmin(best, sum);
    }
    return best;
}

static void test_least_cost(void **state)
{
    for (uint64_t r = 0; r < 60; r++) {
        double x[16];
        int32_t cut[17];
        search s;
        size_t n = 8 + r % 9;
        seed(r);
        for (size_t i = 0; i < n; i++) x[i] = noise((int)(r % 4)) + (i > n / 2 ? 2.0 * (double)(r % 3) : 0);
        double penalty = 0.1 * (double)(r % 30), sum = 0;
        assert_true(search_open(&s, x, n) && potts(&s, n, penalty, cut));
        for (size_t to = n; to > 0; to = (size_t)cut[to])
            sum += level_cost(x, (size_t)cut[to], to) + (cut[to] ? penalty : 0);
        near(sum, least_of_all(x, n, penalty), 1e-9);
        search_close(&s);
    }
}

static void test_no_step_in_noise(void **state)
{
    static const size_t lengths[] = { 3, 8, 10, 20, 60, 200 };
    int alarms = 0, all = 0;
    for (int kind = 0; kind < 4; kind++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (uint64_t r = 0; r < (SLOWED ? 20 : 100); r++, all++) {
                double x[200];
                hn_steps s;
                seed(r * 100 + (uint64_t)kind * 10 + l);
                series(x, lengths[l], 1000, 1, 0.05, kind);
                assert_int_equal(hn_steps_find(&s, x, lengths[l], NULL), HONE_OK);
                alarms += s.n > 0;
                hn_steps_free(&s);
            }
    print_message("%d alarms in %d histories of noise\n", alarms, all);
    assert_true(alarms <= all / 80); /* 1.25 % of whole histories */
}

static void test_steps_are_found(void **state)
{
    int found = 0, there = 0, three = 0;
    enum { ROUNDS = SLOWED ? 12 : 100 };
    for (uint64_t r = 0; r < ROUNDS; r++) {
        double x[120];
        hn_steps s;
        seed(9000 + r);
        series(x, 40, 25, 0.9, 0.02, (int)(r % 2)); /* 10 % slower at noise of 2 % */
        assert_int_equal(hn_steps_find(&s, x, 40, NULL), HONE_OK);
        found += s.n == 1;
        there += s.n == 1 && s.step[0].first <= 25 && 25 <= s.step[0].last;
        if (s.n == 1) {
            near(s.step[0].ratio, 0.9, 0.04);
            assert_true(s.step[0].p <= HN_STEP_ALPHA && s.step[0].first <= s.step[0].at &&
                        s.step[0].at <= s.step[0].last);
            assert_int_equal(s.step[0].n_before, s.step[0].at);
            assert_int_equal(s.step[0].n_after, 40 - s.step[0].at);
            near(s.noise, 0.018, 0.012);
        }
        hn_steps_free(&s);
        series(x, 120, 40, 1.1, 0.02, 0);
        for (size_t i = 80; i < 120; i++) x[i] *= 0.85;
        assert_int_equal(hn_steps_find(&s, x, 120, NULL), HONE_OK);
        three += s.n == 2 && s.step[0].ratio > 1.05 && s.step[1].ratio < 0.9;
        hn_steps_free(&s);
    }
    print_message("step of 5 deviations: %d of %d found, %d at its place; two steps: %d\n", found, ROUNDS, there,
                  three);
    assert_true(found >= 0.97 * ROUNDS && there >= 0.9 * ROUNDS && three >= 0.97 * ROUNDS);
}

/* Single outliers are none; a level that comes and goes is two; the last three points may be news. */
static void test_outliers_and_news(void **state)
{
    double x[60];
    hn_steps s;
    seed(77);
    series(x, 60, 100, 1, 0.01, 0);
    x[10] *= 0.5;
    x[30] *= 1.7;
    x[31] *= 1.6;
    assert_int_equal(hn_steps_find(&s, x, 60, NULL), HONE_OK);
    assert_int_equal(s.n, 0);
    hn_steps_free(&s);
    for (size_t i = 20; i < 30; i++) x[i] *= 0.9;
    assert_int_equal(hn_steps_find(&s, x, 60, NULL), HONE_OK);
    assert_int_equal(s.n, 2);
    assert_true(s.step[0].at == 20 && s.step[1].at == 30);
    hn_steps_free(&s);
    series(x, 60, 57, 0.9, 0.01, 0);
    assert_int_equal(hn_steps_find(&s, x, 60, NULL), HONE_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.step[0].at, 57);
    hn_steps_free(&s);
    series(x, 60, 59, 0.5, 0.01, 0); /* one is not yet */
    assert_int_equal(hn_steps_find(&s, x, 60, NULL), HONE_OK);
    assert_int_equal(s.n, 0);
    hn_steps_free(&s);
}

static void test_exact_and_zero(void **state)
{
    double x[40];
    hn_steps s;
    for (size_t i = 0; i < 40; i++) x[i] = i < 20 ? 5 : 5.05; /* memory: no noise at all */
    assert_int_equal(hn_steps_find(&s, x, 40, NULL), HONE_OK);
    assert_true(s.n == 1 && s.step[0].at == 20 && s.logs && s.noise == 0);
    near(s.step[0].ratio, 1.01, 1e-12);
    json_t *j = hn_steps_json(&s);
    assert_int_equal(json_array_size(json_object_get(j, "steps")), 1);
    json_decref(j);
    hn_steps_free(&s);
    for (size_t i = 0; i < 40; i++) x[i] = i < 20 ? 0 : -3;
    assert_int_equal(hn_steps_find(&s, x, 40, NULL), HONE_OK);
    assert_true(s.n == 1 && s.step[0].at == 20 && !s.logs && isnan(s.step[0].ratio) && s.step[0].after == -3);
    hn_steps_free(&s);
    memset(x, 0, sizeof x);
    assert_int_equal(hn_steps_find(&s, x, 40, NULL), HONE_OK);
    assert_int_equal(s.n, 0);
    hn_steps_free(&s);
    for (size_t n = 0; n < 9; n++) {
        assert_int_equal(hn_steps_find(&s, x, n, NULL), HONE_OK);
        assert_int_equal(s.n, 0);
        hn_steps_free(&s);
    }
    hone_error err;
    static double many[HN_STEP_POINTS + 1];
    assert_int_equal(hn_steps_find(&s, many, HN_STEP_POINTS + 1, &err), HONE_E_ARG);
}

/* The same answer again, and the same when the unit changes. */
static void test_units_do_not_matter(void **state)
{
    double x[80], y[80];
    hn_steps a, b;
    seed(3);
    series(x, 80, 50, 1.2, 0.03, 1);
    for (size_t i = 0; i < 80; i++) y[i] = x[i] * 1e6;
    assert_int_equal(hn_steps_find(&a, x, 80, NULL), HONE_OK);
    assert_int_equal(hn_steps_find(&b, y, 80, NULL), HONE_OK);
    assert_true(a.n == 1 && b.n == 1 && a.step[0].at == b.step[0].at && a.step[0].p == b.step[0].p);
    near(a.step[0].ratio, b.step[0].ratio, 1e-9);
    hn_steps_free(&a);
    hn_steps_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mann_whitney_exact), cmocka_unit_test(test_mann_whitney_many),
        cmocka_unit_test(test_unpaired),           cmocka_unit_test(test_unpaired_finds),
        cmocka_unit_test(test_least_cost),         cmocka_unit_test(test_no_step_in_noise),
        cmocka_unit_test(test_steps_are_found),    cmocka_unit_test(test_outliers_and_news),
        cmocka_unit_test(test_exact_and_zero),     cmocka_unit_test(test_units_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
