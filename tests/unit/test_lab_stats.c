/* Statistics against values worked out by hand, and against published tables of the
 * median's order-statistic interval (Conover, Practical Nonparametric Statistics, A3). */
#include "lab/stats/stats.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) <= 1e-9 * fmax(1, fabs((double)(b))))

static hn_stats of(const double *x, size_t n)
{
    hn_stats s;
    assert_int_equal(hn_stats_of(&s, x, n, NULL), HONE_OK);
    assert_int_equal(s.n, n);
    return s;
}

static void test_textbook(void **state)
{
    const double x[] = { 9, 2, 5, 4, 7, 4, 5, 4 };
    hn_stats s = of(x, 8);
    NEAR(s.mean, 5);
    NEAR(s.sd, 2.138089935299395); /* sqrt(32 / 7) */
    NEAR(s.cv, 0.427617987059879);
    NEAR(s.median, 4.5);
    NEAR(s.mad, 0.5); /* of 2.5 0.5 0.5 0.5 0.5 0.5 2.5 4.5 */
    NEAR(s.min, 2);
    NEAR(s.max, 9);
    NEAR(s.ci95[0], 2);
    NEAR(s.ci95[1], 9);
    NEAR(s.ci_coverage, 1 - 2.0 / 256);
    NEAR(hn_stats_half_width(&s), 3.5);
    assert_true(x[0] == 9 && x[7] == 4); /* untouched */
}

static void test_odd_count(void **state)
{
    const double x[] = { 3, 1, 2 };
    hn_stats s = of(x, 3);
    NEAR(s.median, 2);
    NEAR(s.sd, 1);
    NEAR(s.mad, 1);
}

static void test_too_few_is_nothing(void **state)
{
    const double x[] = { 5, 6, 7, 8, 9 };
    hn_stats s = of(x, 5);
    assert_true(isnan(s.ci95[0]) && isnan(s.ci95[1]) && isnan(s.ci_coverage) && isnan(hn_stats_half_width(&s)));
    assert_true(isnan(s.p90) && isnan(s.p95) && isnan(s.p99));
    assert_int_equal(s.outliers[0], 0);
    s = of(x, 4);
    for (int c = 0; c < HN_OUT_CLASSES; c++) assert_int_equal(s.outliers[c], -1);
    s = of(x, 1);
    NEAR(s.median, 5);
    assert_true(isnan(s.sd) && isnan(s.cv) && isnan(s.mad));
    s = of(x, 0);
    assert_true(isnan(s.median) && isnan(s.mean) && isnan(s.min));
    json_t *j = hn_stats_json(&s);
    assert_true(json_is_null(json_object_get(j, "median")) && json_is_null(json_object_get(j, "ci95")));
    assert_true(json_is_null(json_object_get(j, "outliers")));
    json_decref(j);
}

static void test_median_ranks(void **state)
{
    static const struct {
        size_t n, rank;
        double coverage;
    } table[] = {
        { 5, 0, 0 },
        { 6, 1, 0.96875 },
        { 8, 1, 0.9921875 },
        { 9, 2, 0.9609375 },
        { 10, 2, 0.978515625 },
        { 12, 3, 0.96142578125 },
        { 15, 4, 0.96484375 },
        { 20, 6, 0.958610534667969 },
        { 25, 8, 0.956714749336243 },
        { 100, 40, 0.964799799782361 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double c;
        assert_int_equal(hn_median_rank(table[i].n, 0.95, &c), table[i].rank);
        if (table[i].rank) assert_true(fabs(c - table[i].coverage) < 1e-9);
        else assert_true(isnan(c));
    }
    double c;
    size_t k = hn_median_rank(100000, 0.95, &c); /* no underflow: n/2 - 1.96 sqrt(n)/2 */
    assert_true(k > 49680 && k < 49700 && c >= 0.95 && c < 0.953);
}

static void test_outlier_classes(void **state)
{
    double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 15 }; /* quartiles 3.25, 7.75; fences -3.5 14.5 and -10.25 21.25 */
    hn_stats s = of(x, 10);
    assert_int_equal(s.outliers[HN_OUT_HIGH_MILD], 1);
    assert_int_equal(s.outliers[HN_OUT_HIGH_SEVERE], 0);
    x[9] = 100;
    s = of(x, 10);
    assert_int_equal(s.outliers[HN_OUT_HIGH_MILD], 0);
    assert_int_equal(s.outliers[HN_OUT_HIGH_SEVERE], 1);
    for (int i = 0; i < 10; i++) x[i] = -x[i];
    s = of(x, 10);
    assert_int_equal(s.outliers[HN_OUT_LOW_SEVERE], 1);
    assert_int_equal(s.outliers[HN_OUT_LOW_MILD], 0);
}

static void test_percentiles_need_samples(void **state)
{
    double x[1000];
    for (int i = 0; i < 1000; i++) x[i] = 1000 - i; /* 1 … 1000 */
    hn_stats s = of(x, 1000);
    NEAR(s.p90, 900.1); /* 1 + 0.9 * 999 */
    NEAR(s.p95, 950.05);
    NEAR(s.p99, 990.01);
    s = of(x, 999);
    assert_true(isnan(s.p99) && !isnan(s.p95));
    s = of(x, 99);
    assert_true(isnan(s.p90));
}

static void test_numbers_in_json(void **state)
{
    json_t *j = hn_lab_num(NAN);
    assert_true(json_is_null(j));
    json_decref(j);
    j = hn_lab_num(INFINITY);
    assert_true(json_is_null(j));
    json_decref(j);
    j = hn_lab_num(1234.56789);
    assert_true(json_real_value(j) == 1234.57);
    json_decref(j);
}

/* Two digits of the error, and no more of the number; four of its own at most. */
static void test_digits(void **state)
{
    char t[80];
    assert_string_equal(hn_digits_error(t, sizeof t, 6.42163, 0.03812), "6.422 ± 0.038");
    assert_string_equal(hn_digits_error(t, sizeof t, 6.42163, 0.3812), "6.42 ± 0.38");
    assert_string_equal(hn_digits_error(t, sizeof t, 7998.3, 1980), "8000 ± 2000");
    assert_string_equal(hn_digits_error(t, sizeof t, 0.000380412, 3.5123e-5), "0.000380 ± 0.000035");
    assert_string_equal(hn_digits_error(t, sizeof t, -0.0009, 0.00171), "-0.0009 ± 0.0017");
    assert_string_equal(hn_digits_error(t, sizeof t, 98.8235, 0.39), "98.82 ± 0.39");
    assert_string_equal(hn_digits_error(t, sizeof t, 100, 0), "100.0 ± 0");
    assert_string_equal(hn_digits_error(t, sizeof t, 12.3456, NAN), "12.35");
    assert_string_equal(hn_digits_error(t, sizeof t, NAN, 1), "n/a ± 1.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),           cmocka_unit_test(test_odd_count),
        cmocka_unit_test(test_too_few_is_nothing), cmocka_unit_test(test_median_ranks),
        cmocka_unit_test(test_outlier_classes),    cmocka_unit_test(test_percentiles_need_samples),
        cmocka_unit_test(test_numbers_in_json),    cmocka_unit_test(test_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
