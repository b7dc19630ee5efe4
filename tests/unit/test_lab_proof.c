/* Proofs of answers, claims of processes, and the pairing of runs of a comparison: each difference and each false
 * claim is named, and what is true passes. */
#include "lab/bench/claims.h"
#include "lab/judge/same.h"
#include "lab/quality/proof.h"
#include "base/json_tree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void names(const char *said, const char *word)
{
    if (!strstr(said, word)) fail_msg("'%s' does not name '%s'", said, word);
}

/* ---- proofs ---------------------------------------------------------------------------------- */

enum { N = 37, STEPS = 5 };

/* Proof of STEPS steps of N logits; one of them, and one id, moved by the least. */
static json_t *proof(int moved_step, int moved_logit, int moved_id)
{
    hn_proof p;
    float x[N];
    hn_proof_begin(&p, STEPS);
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < N; i++) x[i] = (float)(s * N + i) * 0.25f;
        if (s == moved_step) x[moved_logit] = nextafterf(x[moved_logit], 1e9f);
        hn_proof_step(&p, x, N, s == moved_id ? 7 : s);
    }
    return hn_proof_json(&p);
}

static void every_bit_counts(void **state)
{
    static const char *const words[STEPS] = { "first step", "between first", "middle step (2)", "between first",
                                              "last step (4)" };
    char what[120];
    json_t *a = proof(-1, 0, -1), *b = proof(-1, 0, -1);
    assert_false(hn_proof_differ(what, sizeof what, a, b));
    json_decref(b);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < N; i++) {
            b = proof(s, i, -1);
            assert_true(hn_proof_differ(what, sizeof what, a, b));
            names(what, words[s]);
            json_decref(b);
        }
    b = proof(-1, 0, 3);
    assert_true(hn_proof_differ(what, sizeof what, a, b));
    names(what, "generated ids");
    json_decref(b);
    assert_false(hn_proof_differ(what, sizeof what, a, NULL)); /* an old record proves nothing */
    json_decref(a);
}

static void order_and_length_count(void **state)
{
    float x[40] = { 0 };
    x[3] = 1;
    uint64_t h = hn_bits_hash(x, 40);
    x[3] = 0;
    x[4] = 1;
    assert_true(hn_bits_hash(x, 40) != h);
    assert_true(hn_bits_hash(x, 39) != hn_bits_hash(x, 40));
    x[4] = 0;
    uint64_t zero = hn_bits_hash(x, 40);
    x[39] = -0.0f; /* equal as a number, another bit */
    assert_true(hn_bits_hash(x, 40) != zero);
}

/* ---- claims ------------------------------------------------------------------------------------ */

/* A sample as an honest process prints it: 8 tokens of prompt, 3 generated, 10 ms each. */
static json_t *honest(void)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[f,f], s:[i,i,i], s:i, s:f, s:f, s:{s:i}, s:f, s:f}",
                     "load_ms", 20.0, "ttft_ms", 80.5, "prefill_tok_s", 100.0, "decode_tok_s", 100.0,
                     "prompt_witness_ms", 80.6, "gen_witness_ms", 20.1, "hwm_mb", 500.0, "gaps_ms", 10.0, 10.0, "ids",
                     1, 2, 3, "positions", 10, "process_s", 0.3, "process_witness_s", 0.3, "proof", "steps", 3,
                     "peak_anon_mb", 50.0, "x", 0.0);
}

static bool holds(json_t *r, char *why, size_t cap)
{
    const hn_asked asked = { .n_prompt = 8, .n_gen = 3 };
    const hn_seen seen = {
        .wall_s = 0.31, .max_rss = 501000000, .own_rss = 5000000, .anon = 50000000, .anon_again = 50100000
    };
    return hn_claims_hold(r, &asked, &seen, why, cap);
}

static void false_with(const char *key, double value, const char *word)
{
    char why[400] = "";
    json_t *r = honest();
    json_object_set_new(r, key,
                        value == floor(value) && strcmp(key, "positions") == 0 ? json_integer((json_int_t)value)
                                                                               : json_real(value));
    if (holds(r, why, sizeof why)) fail_msg("%s = %g was believed", key, value);
    names(why, word);
    json_decref(r);
}

static void claims(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    if (!holds(r, why, sizeof why)) fail_msg("the honest one: %s", why);
    json_array_remove(json_object_get(r, "ids"), 2);
    assert_false(holds(r, why, sizeof why));
    names(why, "2 tokens were generated, 3");
    json_decref(r);
    r = honest();
    json_object_del(r, "proof");
    assert_false(holds(r, why, sizeof why));
    names(why, "0 steps are proved");
    json_decref(r);
    false_with("positions", 9, "9 positions at the end, expected 10");
    false_with("decode_tok_s", 110, "by the times it reports");
    false_with("gen_witness_ms", 40, "generation took 20.000 ms by its own clock, and 40.000 ms");
    false_with("prompt_witness_ms", 100, "prompt and first token");
    false_with("prefill_tok_s", 400, "of the 80.500 ms");
    false_with("prefill_tok_s", 80, "its first token was there after");
    false_with("process_s", 0.2, "its clock ran 0.200 s while the kernel's ran 0.300 s");
    false_with("process_witness_s", 0.35, "clock");
    false_with("load_ms", 400, "its parent saw it for 0.310 s");
    false_with("hwm_mb", 300, "the kernel counted 501.0 MB");
    false_with("load_witness_ms", 60, "loading took 20.000 ms by its own clock, and 60.000 ms");
}

static void memory_by_two_ways(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    const hn_seen seen = { .wall_s = 0.31, .anon = 20000000, .anon_again = 60000000 };
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "by another way");
    json_decref(r);
}

/* A process no larger than its parent: what the kernel counted began with the parent's pages and proves nothing, what
 * was resident at its end does. */
static void memory_of_a_small_one(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    hn_seen seen = { .wall_s = 0.31, .max_rss = 13000000, .own_rss = 13000000, .resident = 12100000 };
    json_object_set_new(r, "hwm_mb", json_real(3.0));
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "its parent saw 12.1 MB resident at its end");
    json_object_set_new(r, "hwm_mb", json_real(12.0));
    if (!hn_claims_hold(r, NULL, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
    seen.resident = 0; /* it was not looked at: nothing is known */
    json_object_set_new(r, "hwm_mb", json_real(3.0));
    assert_true(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    json_decref(r);
}

/* ---- runs of a comparison ------------------------------------------------------------------------- */

static hn_measured measured(uint64_t question, const char *last, double claimed_s, double wall_s)
{
    hn_measured m = { .question = question, .claimed_s = claimed_s, .wall_s = wall_s };
    snprintf(m.proof, sizeof m.proof, "{\"\":{\"steps\":3,\"last\":\"%s\"}}", last);
    return m;
}

static void runs_are_paired(void **state)
{
    hn_side *a, *b;
    hn_same *s;
    hone_error err;
    hn_target t = { .id = "e2e" };
    const hn_side_params p = { .command = true };
    assert_int_equal(hn_side_open(&a, "true", &p, &err), HONE_OK);
    assert_int_equal(hn_side_open(&b, "false", &p, &err), HONE_OK);
    assert_int_equal(hn_same_new(&s, a, b, false, 1, &err), HONE_OK);
    hn_measured m = measured(1, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, b, &t, &m, &err), HONE_OK);
    m = measured(2, "bb", 0.1, 0.2); /* another question: another answer */
    assert_int_equal(hn_same_check(s, b, &t, &m, &err), HONE_OK);
    m = measured(1, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, a, &t, &m, &err), HONE_OK);
    assert_int_equal(hn_same_n_compared(s), 1);
    m = measured(2, "cc", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, a, &t, &m, &err), HONE_E_NUMERIC);
    names(err.message,
          "run 2 of side b (false) and run 2 of side a (true) were asked the same, and the logits of the last");
    m = measured(3, "aa", 0.3, 0.2);
    assert_int_equal(hn_same_check(s, b, &t, &m, &err), HONE_E_NUMERIC);
    names(err.message, "claims 0.300 s of work, and its process ran for 0.200 s");
    hn_same_free(s);
    assert_int_equal(hn_same_new(&s, a, b, true, 1, &err), HONE_OK); /* the sides may differ, not a side from itself */
    m = measured(0, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, a, &t, &m, &err), HONE_OK);
    m = measured(0, "bb", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, b, &t, &m, &err), HONE_OK);
    assert_int_equal(hn_same_check(s, a, &t, &m, &err), HONE_E_NUMERIC);
    hn_same_free(s);
    hn_side_close(a);
    hn_side_close(b);
}

/* A side that says 40 ms less. The processes of an honest one take 40 ms less; those of a liar do not. */
static void gains_are_seen_outside(void **state)
{
    hn_side *a, *b;
    hone_error err;
    hn_target t = { .id = "e2e" };
    const hn_side_params p = { .command = true };
    assert_int_equal(hn_side_open(&a, "true", &p, &err), HONE_OK);
    assert_int_equal(hn_side_open(&b, "false", &p, &err), HONE_OK);
    for (int lie = 0; lie < 2; lie++) {
        hn_same *s;
        assert_int_equal(hn_same_new(&s, a, b, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 20; i++) {
            double noise = 0.004 * (double)(i % 5);
            hn_measured m = measured(i, "aa", 0.100, 0.2 + noise);
            assert_int_equal(hn_same_check(s, a, &t, &m, &err), HONE_OK);
            m = measured(i, "aa", 0.060, (lie ? 0.2 : 0.16) + 0.016 - noise);
            assert_int_equal(hn_same_check(s, b, &t, &m, &err), HONE_OK);
        }
        assert_int_equal(hn_same_outside(s, &t, &err), lie ? HONE_E_NUMERIC : HONE_OK);
        if (lie) names(err.message, "claims to take 40.0 ms less");
        hn_same_free(s);
    }
    hn_side_close(a);
    hn_side_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(order_and_length_count),
        cmocka_unit_test(claims),
        cmocka_unit_test(memory_by_two_ways),
        cmocka_unit_test(memory_of_a_small_one),
        cmocka_unit_test(runs_are_paired),
        cmocka_unit_test(gains_are_seen_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
