/* fail_each: every allocation of a call fails once. Each failure must be HONE_E_NOMEM with a message; where the call
 * can do without that memory it succeeds; afterwards it succeeds again. Leaks are the sanitizer's. */
#ifndef HN_TEST_FAIL_EACH_H
#define HN_TEST_FAIL_EACH_H

#include "failing.h"

static void fail_each(hone_status (*fn)(hone_error *))
{
    hone_error err;
    if (fn(&err) != HONE_OK) fail_msg("%s", err.message);
    long k = 0, survived = 0;
    for (;; k++) {
        memset(&err, 0, sizeof err);
        n_failed = 0;
        countdown = k;
        hone_status st = fn(&err);
        countdown = -1;
        if (!n_failed) {
            assert_int_equal(st, HONE_OK);
            break;
        }
        if (st == HONE_OK) {
            survived++;
            continue;
        }
        if (st != HONE_E_NOMEM) print_message("allocation %ld: %s\n", k, err.message);
        assert_int_equal(st, HONE_E_NOMEM);
        assert_int_equal(err.code, HONE_E_NOMEM);
        assert_true(err.message[0] != 0);
        assert_true(k < 100000);
    }
    assert_true(k > 0); /* else nothing was tried */
    print_message("%ld allocations, %ld of them dispensable\n", k, survived);
    assert_int_equal(fn(&err), HONE_OK);
}

#endif
