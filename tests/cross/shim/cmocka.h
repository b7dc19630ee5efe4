/* The part of cmocka that tests/property uses, for a build without its library:
 * programs for another architecture, run under emulation. Same output: TAP. */
#ifndef HN_CMOCKA_SHIM_H
#define HN_CMOCKA_SHIM_H

#define HN_EMULATED 1 /* tests may do less of the same */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
};
#define cmocka_unit_test(f) \
    {                       \
#f, f               \
    }

static jmp_buf shim_failed;

static inline void shim_check(int ok, const char *what, const char *file, int line)
{
    if (ok) return;
    printf("# %s:%d: %s\n", file, line, what);
    longjmp(shim_failed, 1);
}
#define fail_msg(...) \
    (printf("# %s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), putchar('\n'), longjmp(shim_failed, 1))
#define assert_true(c) shim_check(!!(c), #c, __FILE__, __LINE__)
#define assert_int_equal(a, b) shim_check((uintmax_t)(a) == (uintmax_t)(b), #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) shim_check((uintmax_t)(a) != (uintmax_t)(b), #a " != " #b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) shim_check(memcmp(a, b, n) == 0, "the bytes of " #a " and " #b, __FILE__, __LINE__)

#define cmocka_run_group_tests(tests, setup, teardown) shim_run(tests, (int)(sizeof(tests) / sizeof *(tests)))
static inline int shim_run(const struct CMUnitTest *tests, int n)
{
    static volatile int bad, i;
    printf("1..%d\n", n);
    for (i = 0; i < n; i++) {
        int failed = setjmp(shim_failed);
        if (!failed) tests[i].test(NULL);
        printf("%sok %d - %s # %.1f s\n", failed ? "not " : "", i + 1, tests[i].name, (double)clock() / CLOCKS_PER_SEC);
        fflush(stdout);
        bad += failed != 0;
    }
    return bad;
}

#endif
