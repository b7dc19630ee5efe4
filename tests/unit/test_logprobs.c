/* Log-probabilities against the definition in long double, their order, and what is refused. */
#include "hone.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 152064, N_TOP = 64 };
static float logits[MOST];

static uint64_t state_of = 1;
static double uniform(void)
{
    state_of = state_of * 6364136223846793005u + 1442695040888963407u;
    return (double)(state_of >> 11) / 9007199254740992.0;
}

static long double exactly(int n, int id)
{
    long double max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) max = logits[i] > max ? logits[i] : max;
    for (int i = 0; i < n; i++) sum += expl(logits[i] - max);
    return logits[id] - max - logl(sum);
}

/* Is a before b: more likely, or as likely and of a lower id? */
static bool before(int a, int b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); }

static void check(int n)
{
    hone_logprob top[N_TOP];
    hone_error err;
    float logprob;
    int n_top = n < N_TOP ? n : N_TOP, id = (int)(uniform() * n);
    if (hone_logprobs(logits, n, id, &logprob, top, n_top, &err)) fail_msg("%s", err.message);
    long double want = exactly(n, id);
    if (isinf(want)) assert_true(isinf(logprob) && logprob < 0);
    else if (!(fabsl(logprob - want) <= 1e-6L + 1e-6L * fabsl(want)))
        fail_msg("n %d: %.9g, expected %.9Lg", n, (double)logprob, want);
    for (int k = 0; k < n_top; k++) {
        int n_before = 0;
        for (int i = 0; i < n; i++) n_before += before(i, top[k].id);
        assert_int_equal(n_before, k);
        float alone;
        assert_int_equal(hone_logprobs(logits, n, top[k].id, &alone, NULL, 0, NULL), HONE_OK);
        assert_memory_equal(&alone, &top[k].logprob, sizeof alone);
    }
}

static void as_defined(void **state)
{
    static const int sizes[] = { 1, 2, 7, 64, 511, 512, 513, 1000, 5000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 4; kind++) {
            for (int i = 0; i < sizes[s]; i++) {
                logits[i] = (float)(uniform() * 40 - 20);
                if (kind == 1) logits[i] = (float)(int)(uniform() * 3); /* many ties */
                if (kind == 2) logits[i] *= 1e30f;                      /* one of them is all */
                if (kind == 3 && i && uniform() < 0.5) logits[i] = -INFINITY;
            }
            check(sizes[s]);
        }
}

/* All of a large vocabulary counts, though each weighs little. */
static void large(void **state)
{
    float logprob;
    for (int i = 0; i < MOST; i++) logits[i] = 0.001f * (float)(i % 7);
    assert_int_equal(hone_logprobs(logits, MOST, 5, &logprob, NULL, 0, NULL), HONE_OK);
    assert_true(fabsl(logprob - exactly(MOST, 5)) < 2e-6L);
}

/* All of a vocabulary in order. In that of ids, the best last, each was put before all the others: 10^10 moves. */
static void all_in_order(void **state)
{
    hone_logprob *top = malloc(MOST * sizeof *top);
    for (int ties = 0; ties < 2; ties++) {
        for (int i = 0; i < MOST; i++) logits[i] = 1e-4f * (float)(ties ? i / 3 : i);
        assert_int_equal(hone_logprobs(logits, MOST, -1, NULL, top, MOST, NULL), HONE_OK);
        for (int i = 0; i < MOST; i++) {
            const int group = ties ? MOST / 3 - 1 - i / 3 : 0;
            assert_int_equal(top[i].id, ties ? 3 * group + i % 3 : MOST - 1 - i);
        }
    }
    free(top);
}

static void refused(void **state)
{
    float logprob = 7;
    hone_logprob top[2];
    hone_error err;
    memset(logits, 0, sizeof logits);
    logits[3] = NAN;
    assert_int_equal(hone_logprobs(logits, 8, 1, &logprob, NULL, 0, &err), HONE_E_NUMERIC);
    assert_non_null(strstr(err.message, "token 3 is NaN"));
    assert_true(logprob == 0);
    logits[3] = INFINITY;
    assert_int_equal(hone_logprobs(logits, 8, 1, &logprob, NULL, 0, &err), HONE_E_NUMERIC);
    for (int i = 0; i < 8; i++) logits[i] = -INFINITY;
    assert_int_equal(hone_logprobs(logits, 8, 1, &logprob, NULL, 0, &err), HONE_E_NUMERIC);
    logits[2] = 1;
    assert_int_equal(hone_logprobs(logits, 8, -1, NULL, top, 2, &err), HONE_OK);
    assert_int_equal(top[0].id, 2);
    assert_int_equal(top[1].id, 0);
    assert_true(isinf(top[1].logprob) && top[0].logprob == 0);
    assert_int_equal(hone_logprobs(logits, 8, -2, &logprob, NULL, 0, &err), HONE_E_ARG);
    assert_int_equal(hone_logprobs(logits, 8, 8, &logprob, NULL, 0, &err), HONE_E_ARG);
    assert_int_equal(hone_logprobs(logits, 8, 1, &logprob, top, 9, &err), HONE_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_defined),
        cmocka_unit_test(large),
        cmocka_unit_test(all_in_order),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
