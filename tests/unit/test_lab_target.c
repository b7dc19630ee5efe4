/* Wishes and requirements held against numbers made by hand. */
#include "lab/bench/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>

static void test_targets(void **state)
{
    static const struct {
        const char *target, *unit, *variant;
        double lo, hi;
        bool interval;
        hn_wish wish;
    } t[] = {
        { "< 5 us a word", "us", "word", 1, 4.9, true, HN_WISH_MET },
        { "< 5 us a word", "us", "word", 4, 6, true, HN_WISH_OPEN },
        { "< 5 us a word", "us", "word", 5.1, 6, true, HN_WISH_NOT_MET },
        { "< 5 us a word", "us", "page", 1, 2, true, HN_WISH_NONE },
        { "< 5 us a word", "ms", "word", 0.001, 0.004, false, HN_WISH_MET },
        { "< 200 ms (guides: < 5 s)", "ms", "", 150, 199, true, HN_WISH_MET },
        { "< 1 ms", "us", "flat", 900, 1100, false, HN_WISH_OPEN },
        { "anon < 2 MB, metadata < 1 MB, tensors 0", "MB", "metadata", 1.5, 1.6, true, HN_WISH_NOT_MET },
        { "anon < 2 MB, metadata < 1 MB, tensors 0", "MB", "anon", 1.5, 1.6, true, HN_WISH_MET },
        { "anon < 2 MB, metadata < 1 MB, tensors 0", "MB", "tensors", 0, 0, true, HN_WISH_MET },
        { "anon < 2 MB, metadata < 1 MB, tensors 0", "MB", "tensors", 2, 2, true, HN_WISH_NOT_MET },
        { "about 106 ms", "ms", "", 1, 2, true, HN_WISH_NONE },
        { "< 100 ms at width 5120", "ms", "", 1, 2, true, HN_WISH_NONE },
        { "< 5 us", "MB", "", 1, 2, true, HN_WISH_NONE },
        { "times slower > 2 x", "x", "times slower", 2.1, 9, true, HN_WISH_MET },
        { "times slower > 2 x", "x", "times slower", 1.5, 9, true, HN_WISH_OPEN },
        { "times slower > 2 x", "x", "times slower", 1.5, 1.9, true, HN_WISH_NOT_MET },
        { "times slower > 2 x", "s", "seconds", 3, 4, true, HN_WISH_NONE },
        { "", "ms", "", 1, 2, true, HN_WISH_NONE },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        json_t *ci = t[i].interval ? json_pack("[f,f]", t[i].lo, t[i].hi) : json_null();
        json_t *r = json_pack("{s:s, s:s, s:{s:s}, s:{s:o, s:f, s:f}}", "target", t[i].target, "unit", t[i].unit,
                              "config", "variant", t[i].variant, "stats", "ci95", ci, "min",
                              t[i].interval ? -1e9 : t[i].lo, "max", t[i].interval ? 1e9 : t[i].hi);
        assert_non_null(r);
        if (hn_target_judge(r) != t[i].wish) fail_msg("%s of %s: %d", t[i].target, t[i].variant, hn_target_judge(r));
        json_decref(r);
    }
}

static void test_requirements(void **state)
{
    hn_requirement r;
    hone_error err;
    assert_int_equal(hn_requirement_parse(&r, "decode_tok_s>=44", &err), HONE_OK);
    assert_string_equal(r.name, "decode_tok_s");
    assert_true(hn_requirement_met(&r, 44) && !hn_requirement_met(&r, 43.9) && !hn_requirement_met(&r, NAN));
    assert_int_equal(hn_requirement_parse(&r, "load.total < 1.5e2", &err), HONE_OK);
    assert_string_equal(r.name, "load.total");
    assert_true(hn_requirement_met(&r, 149) && !hn_requirement_met(&r, 150) && !hn_requirement_met(&r, NAN));
    static const char *const bad[] = { "", "decode", ">=4", "decode>=", "decode>=4x", "decode=4", "a>inf", "a>nan" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hn_requirement_parse(&r, bad[i], &err), HONE_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_targets), cmocka_unit_test(test_requirements) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
