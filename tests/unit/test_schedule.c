/* Learning rates against their formulas in the plainest form, and at their ends. */
#include "train/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-15 + 1e-13 * fabs(b))) fail_msg("%.17g, expected %.17g", a, b);
}

static void cosine_function(void **state)
{
    for (int i = 0; i <= 1000; i++)
        assert_true(fabs(hn_cos_pi(i / 1000.0) - cos(3.14159265358979323846 * i / 1000.0)) < 1e-15);
    assert_true(hn_cos_pi(0.5) == 0);
}

static void warm_up(void **state)
{
    for (hone_train_schedule k = HONE_TRAIN_CONSTANT; k <= HONE_TRAIN_WSD; k++) {
        hn_schedule s = { .kind = k, .total = 100, .warmup = 4, .lr = 0.8, .min_lr = 0.1 };
        const double want[5] = { 0.2, 0.4, 0.6, 0.8, 0.8 };
        for (int i = 0; i < 5; i++) near(hn_schedule_lr(&s, i), want[i]);
        s.warmup = 0;
        near(hn_schedule_lr(&s, 0), 0.8);
        s.warmup = 500; /* more than there are steps */
        near(hn_schedule_lr(&s, 49), 0.4);
        near(hn_schedule_lr(&s, 99), 0.8);
    }
}

static void shapes(void **state)
{
    hn_schedule s = { .total = 110, .warmup = 10, .lr = 3e-4, .min_lr = 3e-5 };
    for (int k = 10; k < 110; k++) {
        double x = (k - 10) / 100.0;
        s.kind = HONE_TRAIN_CONSTANT;
        near(hn_schedule_lr(&s, k), 3e-4);
        s.kind = HONE_TRAIN_LINEAR;
        near(hn_schedule_lr(&s, k), 3e-4 - 2.7e-4 * x);
        s.kind = HONE_TRAIN_COSINE;
        near(hn_schedule_lr(&s, k), 3e-5 + 0.5 * 2.7e-4 * (1 + cos(3.14159265358979323846 * x)));
        s.kind = HONE_TRAIN_WSD;
        near(hn_schedule_lr(&s, k), k < 88 ? 3e-4 : 3e-5 + 2.7e-4 * (1 - sqrt((k - 88) / 22.0)));
    }
}

static void ends(void **state)
{
    for (hone_train_schedule k = HONE_TRAIN_LINEAR; k <= HONE_TRAIN_WSD; k++) {
        hn_schedule s = { .kind = k, .total = 50, .warmup = 5, .lr = 1, .min_lr = 0.25 };
        near(hn_schedule_lr(&s, 50), 0.25);
        near(hn_schedule_lr(&s, 5000), 0.25);
        for (int i = 5; i < 50; i++) assert_true(hn_schedule_lr(&s, i) >= hn_schedule_lr(&s, i + 1));
        s.total = s.warmup = 1;
        near(hn_schedule_lr(&s, 0), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cosine_function), cmocka_unit_test(warm_up),
                                        cmocka_unit_test(shapes), cmocka_unit_test(ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
