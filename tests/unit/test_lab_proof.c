/* Proofs of answers, claims of processes, and the pairing of runs of a comparison: each difference and each false
 * claim is named, and what is true passes. */
#include "lab/bench/claims.h"
#include "lab/bench/runner.h"
#include "lab/judge/same.h"
#include "lab/quality/proof.h"
#include "lab/stats/compare.h"
#include "base/json_tree.h"
#include "base/os.h"

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

/* Of rounds, those that both runs have. */
static void rounds_that_both_have(void **state)
{
    char what[120];
    json_t *a = json_pack("{s:s, s:[s,s,s]}", "output", "x", "rounds", "x", "y", "z"),
           *b = json_pack("{s:s, s:[s,s]}", "output", "x", "rounds", "x", "y"),
           *c = json_pack("{s:s, s:[s,s]}", "output", "x", "rounds", "x", "w"),
           *none = json_pack("{s:s, s:[]}", "output", "x", "rounds"), *old = json_pack("{s:s}", "output", "x");
    assert_false(hn_proof_differ(what, sizeof what, a, b));
    assert_false(hn_proof_differ(what, sizeof what, a, none));
    assert_false(hn_proof_differ(what, sizeof what, a, old));
    assert_true(hn_proof_differ(what, sizeof what, a, c));
    names(what, "the output of a later round");
    json_decref(a);
    json_decref(b);
    json_decref(c);
    json_decref(none);
    json_decref(old);
}

/* Who proves less than was proved: nothing, a part of it, nothing in a list, or fewer rounds where they count. */
static void less_is_noticed(void **state)
{
    static const struct {
        const char *b;
        bool less, less_of_rounds;
    } rows[] = { { "{\"output\":\"y\",\"rounds\":[\"x\",\"y\"]}", false, false },
                 { "{\"output\":\"y\",\"rounds\":[1,2,3],\"late\":\"z\"}", false, false },
                 { "{\"output\":\"y\",\"rounds\":[\"x\"]}", false, true },
                 { "{\"output\":\"y\",\"rounds\":[]}", true, true },
                 { "{\"output\":\"y\"}", true, true },
                 { "{\"output\":null,\"rounds\":[\"x\",\"y\"]}", true, true },
                 { "{}", true, true } };
    json_t *a = json_pack("{s:s, s:[s,s]}", "output", "x", "rounds", "x", "y"), *none = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *b = json_loads(rows[i].b, 0, NULL);
        assert_non_null(b);
        assert_int_equal(hn_proof_less(b, a, false), rows[i].less);
        assert_int_equal(hn_proof_less(b, a, true), rows[i].less_of_rounds);
        assert_false(hn_proof_less(b, none, true));
        json_decref(b);
    }
    assert_true(hn_proof_less(NULL, a, false));
    assert_false(hn_proof_less(NULL, NULL, true));
    json_decref(a);
    json_decref(none);
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
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[f,f], s:[i,i,i], s:i, s:f, s:f, s:{s:i}, s:f, s:{s:i, "
                     "s:i}, s:f}",
                     "load_ms", 20.0, "ttft_ms", 80.5, "prefill_tok_s", 100.0, "decode_tok_s", 100.0,
                     "prompt_witness_ms", 80.6, "gen_witness_ms", 20.1, "hwm_mb", 500.0, "gaps_ms", 10.0, 10.0, "ids",
                     1, 2, 3, "positions", 10, "process_s", 0.3, "process_witness_s", 0.3, "proof", "steps", 3,
                     "peak_anon_mb", 50.0, "engine", "threads", 1, "threads_batch", 2, "cpu_use", 1.9);
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
    false_with("cpu_use", 3.1, "it used 3.10 CPUs while it was timed, with 2 threads as it says");
    false_with("main_cpu_s", 0.12, "computed for 0.120 s, and the times it reports are 0.101 s");
    r = honest(); /* all of it may be; so may what fills the depth, which is told apart */
    json_object_set_new(r, "main_cpu_s", json_real(0.1));
    if (!holds(r, why, sizeof why)) fail_msg("one that computes while it is timed: %s", why);
    json_object_set_new(r, "main_cpu_s", json_real(0.113));
    assert_false(holds(r, why, sizeof why));
    json_object_set_new(json_object_get(r, "engine"), "logits_mb", json_real(1)); /* three rows of it are hashed */
    if (!holds(r, why, sizeof why)) fail_msg("one with many logits: %s", why);
    json_object_set_new(r, "main_cpu_s", json_real(0.15));
    json_object_set_new(r, "depth_ms", json_real(50));
    if (!holds(r, why, sizeof why)) fail_msg("one that fills a depth: %s", why);
    json_object_set_new(r, "main_cpu_s", json_real(0.19));
    assert_false(holds(r, why, sizeof why));
    json_decref(r);
    r = honest(); /* a prompt that says it is there, and is computed when its first token is chosen */
    json_object_set_new(r, "prefill_tok_s", json_real(150));
    json_object_set_new(r, "prefill_witness_ms", json_real(53.3));
    assert_false(holds(r, why, sizeof why));
    names(why, "of the 80.500 ms until the first token");
    json_decref(r);
    false_with("process_s", 0.2, "its clock ran 0.200 s while the kernel's ran 0.300 s");
    false_with("process_witness_s", 0.35, "clock");
    false_with("load_ms", 400, "its parent saw it for 0.310 s");
    false_with("hwm_mb", 300, "the kernel counted 501.0 MB");
    false_with("load_witness_ms", 60, "loading took 20.000 ms by its own clock, and 60.000 ms");
}

/* Both clocks of a process may lie; what its parent waited for says so, if it is more than a busy machine takes. */
static void clocks_beside_the_parent(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    hn_seen seen = { .wall_s = 0.56, .told_s = 0.55, .anon = 50000000, .anon_again = 50000000 };
    if (!hn_claims_hold(r, NULL, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
    seen.wall_s = seen.told_s = 0.7;
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "its parent waited 0.700 s for its result");
    seen.wall_s = 0; /* of nobody who ran */
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "did not see how long");
    json_decref(r);
}

/* It began 0.35 s late, as it says: a disturbance, if it had no more CPU time than its clocks allow. */
static void a_late_start(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    hn_seen seen = { .wall_s = 0.71, .told_s = 0.7, .anon = 50000000, .anon_again = 50000000, .cpu_s = 0.4 };
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why)); /* it does not say so */
    assert_false(hn_claims_late(r, &seen, why, sizeof why));
    json_object_set_new(r, "start_s", json_real(0.35));
    json_object_set_new(r, "load_ms", json_real(370)); /* since its start */
    if (!hn_claims_hold(r, NULL, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
    assert_true(hn_claims_late(r, &seen, why, sizeof why));
    names(why, "it began 0.350 s after its start");
    static const double beyond[][2] = { { 1e9, 20 },
                                        { 0.375, 370 },
                                        { 0.45, 470 } }; /* later than it loaded; than seen */
    for (int i = 0; i < 3; i++) {
        json_object_set_new(r, "start_s", json_real(beyond[i][0]));
        json_object_set_new(r, "load_ms", json_real(beyond[i][1]));
        if (hn_claims_late(r, &seen, why, sizeof why)) fail_msg("case %d: %s", i, why);
    }
    json_object_set_new(r, "start_s", json_real(0.35));
    json_object_set_new(r, "load_ms", json_real(370));
    seen.cpu_s = 0.02 * fmax(hn_os_cpu_count(), 2) + 0.7; /* it worked on two threads meanwhile */
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "its parent waited 0.700 s for its result");
    assert_false(hn_claims_late(r, &seen, why, sizeof why));
    seen.cpu_s = 0; /* not counted: nothing speaks for it */
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    seen = (hn_seen){ .wall_s = 0.31, .told_s = 0.3, .cpu_s = 0.4 };
    json_object_set_new(r, "start_s", json_real(0.001));
    assert_false(hn_claims_late(r, &seen, why, sizeof why)); /* as usual */
    json_decref(r);
}

/* Measuring that was stopped before the answer was computed again: nothing is known of it. */
static void stopped_before_the_check(void **state)
{
    hone_error err;
    hn_bench_run run = { .set = { .quick = true } };
    hn_runner p = { .r = &run };
    for (int without = 0; without < 2; without++) {
        hn_bunch b = { .mode = "_sample", .counted = true, .verdict = { .state = HN_VALID } };
        b.all = json_pack("[o]", honest());
        run.set.no_quality = without;
        assert_int_equal(hn_bunch_check(&p, &b, HONE_E_INTERRUPTED, &err), HONE_E_INTERRUPTED);
        assert_int_equal(b.verdict.state, HN_UNCHECKED);
        names(b.verdict.reason, "before the answer was computed again");
        hn_invalid(&b.verdict, "other tokens");
        assert_int_equal(hn_bunch_check(&p, &b, HONE_E_NOMEM, &err), HONE_E_NOMEM);
        assert_string_equal(b.verdict.reason, "other tokens");
        hn_bunch_free(&b);
    }
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

static void memory_of_stages(void **state)
{
    char why[400] = "";
    json_t *r = json_pack("{s:[{s:s, s:f}, {s:s, s:f}]}", "stages", "stage", "start", "anon_mb", 3.0, "stage",
                          "session", "anon_mb", 390.0);
    hn_seen seen = { .wall_s = 0.31, .anon_end = 400000000 };
    if (!hn_claims_hold(r, NULL, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
    json_object_set_new(json_array_get(json_object_get(r, "stages"), 1), "anon_mb", json_real(100));
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "its stages took 100.0 MB of anonymous memory at most, its parent saw 400.0 MB");
    json_decref(r);
}

/* All CPU time that the kernel counted: loading may use every core, what follows only the threads that are told. */
static void cpu_time_of_a_process(void **state)
{
    char why[400] = "";
    json_t *r = honest();
    hn_seen seen = { .wall_s = 0.31, .anon = 50000000, .anon_again = 50000000 };
    seen.cpu_s = 0.02 * fmax(hn_os_cpu_count(), 2) + 0.29 * 2;
    if (!hn_claims_hold(r, NULL, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
    seen.cpu_s = 0.02 * fmax(hn_os_cpu_count(), 2) + 0.29 * 2.4;
    assert_false(hn_claims_hold(r, NULL, &seen, why, sizeof why));
    names(why, "with 2 threads as it says");
    json_decref(r);
}

/* What a sample may be put aside for is what the kernel counted, and no more. */
static void disturbances_are_counted(void **state)
{
    static const char *const keys[] = { "major_faults", "throttled", "quota_stops", "steal_pct" };
    char why[400] = "";
    hn_seen seen = { .counted = true, .major_faults = 2, .throttled = 2, .stopped = 2, .stolen = 0 };
    for (int i = 0; i < 4; i++) {
        json_t *r = json_object();
        json_object_set_new(r, keys[i], json_integer(i < 3 ? 2 : 0));
        if (!hn_claims_disturbed(r, &seen, why, sizeof why)) fail_msg("the honest one: %s", why);
        json_object_set_new(r, keys[i], json_integer(3));
        assert_false(hn_claims_disturbed(r, &seen, why, sizeof why));
        names(why, "the kernel counted");
        const hn_seen unknown = { .counted = true, .major_faults = -1, .throttled = -1, .stopped = -1, .stolen = -1 };
        assert_true(hn_claims_disturbed(r, &unknown, why, sizeof why));
        json_decref(r);
    }
}

/* The numbers at the top of a record are its samples'. An old one, without samples, is believed; a new one is not. */
static void records_are_their_samples(void **state)
{
    char why[400] = "";
    json_t *r = json_pack("{s:{s:i}, s:f, s:f, s:f, s:[o, o]}", "config", "n_prompt", 8, "decode_tok_s", 100.0,
                          "prefill_tok_s", 100.0, "ttft_ms", 80.5, "samples", honest(), honest());
    if (!hn_claims_record(r, true, why, sizeof why)) fail_msg("the honest one: %s", why);
    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = { "decode_tok_s", "prefill_tok_s", "ttft_ms" };
        json_t *o = json_deep_copy(r);
        json_object_set_new(o, keys[i], json_real(1.3 * json_number_value(json_object_get(r, keys[i]))));
        assert_false(hn_claims_record(o, false, why, sizeof why));
        names(why, keys[i]);
        json_decref(o);
    }
    json_t *sample = json_array_get(json_object_get(r, "samples"), 0);
    json_object_set_new(sample, "gaps_ms", json_pack("[f,f]", 20.0, 20.0));
    assert_false(hn_claims_record(r, true, why, sizeof why));
    names(why, "by the times it reports 50");
    json_object_del(r, "samples");
    assert_true(hn_claims_record(r, false, why, sizeof why));
    assert_false(hn_claims_record(r, true, why, sizeof why));
    names(why, "none of its samples does");
    json_decref(r);
}

/* A record with one number: its median is its samples', and they are its processes'. */
static void numbers_of_suites(void **state)
{
    char why[400] = "";
    json_t *list = json_pack("[{s:s, s:{s:f}, s:[f,f], s:{s:s, s:[{s:[{s:f}]}, {s:[{s:f}]}]}},"
                             " {s:s, s:{s:f}, s:[f,f], s:{s:s, s:f}}]",
                             "id", "e2e.gen", "stats", "median", 15.0, "samples", 10.0, 20.0, "extra", "from",
                             "requests.0.decode_tok_s", "samples", "requests", "decode_tok_s", 10.0, "requests",
                             "decode_tok_s", 20.0, "id", "e2e.gen", "stats", "median", 1.5, "samples", 1.0, 2.0,
                             "extra", "from", "requests.0.decode_tok_s", "scale", 0.1);
    if (!hn_claims_records(list, why, sizeof why)) fail_msg("the honest one: %s", why);
    json_t *r = json_array_get(list, 1);
    json_object_set_new(json_object_get(r, "stats"), "median", json_real(1.95));
    assert_false(hn_claims_records(list, why, sizeof why));
    names(why, "the record says a median of 1.95, and its samples 1.5");
    json_object_set_new(r, "samples", json_pack("[f,f]", 1.3, 2.6)); /* both of them raised */
    assert_false(hn_claims_records(list, why, sizeof why));
    names(why, "not what its processes say (requests.0.decode_tok_s)");
    json_decref(list);
    json_t *many = json_array();
    for (int i = 0; i < 2000; i++) json_array_append_new(many, json_real(i < 1000 ? 1 : 3));
    list = json_pack("[{s:s, s:{s:f}, s:o}]", "id", "a", "stats", "median", 2.0, "samples", many);
    if (!hn_claims_records(list, why, sizeof why)) fail_msg("more samples than 1024: %s", why);
    json_decref(list);
}

/* A loop's samples take as long as its clock ran, whatever their unit is. */
static void samples_by_a_clock(void **state)
{
    char why[400] = "";
    for (int rate = 0; rate < 2; rate++) {
        double x[2] = { rate ? 500.0 : 2000.0, rate ? 250.0 : 4000.0 }; /* 2 and 4 ms a call, in 1/s and us */
        json_t *list = json_pack("[{s:s, s:[f,f], s:{s:{s:f, s:i, s:f, s:b}}}]", "id", "tok.a", "samples", x[0], x[1],
                                 "extra", "clock", "s", 0.018, "calls", 3, "scale", rate ? 1.0 : 1e6, "rate", rate);
        if (!hn_claims_records(list, why, sizeof why)) fail_msg("the honest one: %s", why);
        assert_true(fabs(hn_claims_seconds(list) - 0.018) < 1e-9);
        json_object_set_new(json_array_get(list, 0), "samples", json_pack("[f,f]", 1.3 * x[0], 1.3 * x[1]));
        assert_false(hn_claims_records(list, why, sizeof why));
        names(why, "and its clock ran 0.018 s");
        json_decref(list);
    }
    json_t *none = json_pack("[{s:s, s:[f]}]", "id", "tok.a", "samples", 1.0);
    assert_true(isnan(hn_claims_seconds(none)));
    json_decref(none);
}

/* What is told beside gaps follows from them; wrong counts and rates are no disturbance. */
static void paces_follow_from_gaps(void **state)
{
    static const char *const keys[] = { "itl_ms", "sustained_tok_s", "total_ms", "decode_tok_s" };
    const hn_asked asked = { .n_prompt = 8, .n_gen = 3 };
    char why[400] = "";
    json_t *r = honest();
    json_object_set_new(r, "itl_ms", json_real(10));
    json_object_set_new(r, "sustained_tok_s", json_real(100));
    json_object_set_new(r, "total_ms", json_real(100.5));
    if (!hn_claims_exact(r, &asked, why, sizeof why)) fail_msg("the honest one: %s", why);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *o = json_deep_copy(r);
        json_object_set_new(o, keys[i], json_real(0.7 * json_number_value(json_object_get(r, keys[i]))));
        assert_false(hn_claims_exact(o, &asked, why, sizeof why));
        names(why, "by the times it reports");
        json_decref(o);
    }
    json_object_set_new(r, "steady_tok_s", json_real(100)); /* of two gaps nobody knows */
    assert_false(hn_claims_exact(r, &asked, why, sizeof why));
    json_object_del(r, "steady_tok_s");
    json_object_set_new(r, "peak_tok_s", json_real(100)); /* nor has two gaps of 10 ms a second that is the fastest */
    assert_false(hn_claims_exact(r, &asked, why, sizeof why));
    names(why, "peak_tok_s is 100");
    json_object_del(r, "peak_tok_s");
    json_t *slow = json_deep_copy(r);
    json_object_set_new(slow, "gaps_ms", json_pack("[f,f]", 499.9996, 500.0)); /* a second but for what was rounded */
    static const char *const rates[] = { "decode_tok_s", "sustained_tok_s", "itl_ms", "total_ms" };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) json_object_del(slow, rates[i]);
    json_object_set_new(slow, "peak_tok_s", json_real(2.001));
    if (!hn_claims_exact(slow, &asked, why, sizeof why)) fail_msg("an honest peak: %s", why);
    json_object_set_new(slow, "peak_tok_s", json_real(2.01));
    assert_false(hn_claims_exact(slow, &asked, why, sizeof why));
    /* the second alone is too short by less than what may be rounded, the one with the gap before it is the faster */
    json_object_set_new(slow, "gaps_ms", json_pack("[f,f]", 0.6, 999.5));
    json_object_set_new(slow, "peak_tok_s", json_real(2 / 1.0001));
    if (!hn_claims_exact(slow, &asked, why, sizeof why)) fail_msg("an honest peak with a short gap: %s", why);
    json_object_set_new(slow, "peak_tok_s", json_real(2.01));
    assert_false(hn_claims_exact(slow, &asked, why, sizeof why));
    json_object_set_new(slow, "gaps_ms", json_pack("[f,f]", 600.0, 1001.5)); /* which is a second without another */
    json_object_set_new(slow, "peak_tok_s", json_real(1.2));
    assert_false(hn_claims_exact(slow, &asked, why, sizeof why));
    json_decref(slow);
    json_object_set_new(r, "gen_witness_ms", json_real(100)); /* another clock's, which a switch may have hit */
    assert_true(hn_claims_exact(r, &asked, why, sizeof why));
    assert_false(hn_claims_hold(r, &asked, NULL, why, sizeof why));
    json_object_set_new(r, "positions", json_integer(9));
    assert_false(hn_claims_exact(r, &asked, why, sizeof why));
    json_decref(r);
}

/* Steps of a load follow one on the other by one clock: less told of one is a lie, whatever the machine did. */
static void steps_of_a_load(void **state)
{
    char why[400] = "";
    json_t *r = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "start_ms", 0.41, "parse_ms", 0.82, "config_ms", 0.33,
                          "engine_ms", 1.54, "total_ms", 3.1, "load_ms", 3.1);
    if (!hn_claims_exact(r, NULL, why, sizeof why)) fail_msg("the honest one: %s", why);
    json_object_set_new(r, "engine_ms", json_real(1.54001)); /* six digits are told */
    if (!hn_claims_exact(r, NULL, why, sizeof why)) fail_msg("rounded: %s", why);
    json_object_set_new(r, "engine_ms", json_real(1.54));
    json_object_set_new(r, "parse_ms", json_real(0.815));
    assert_false(hn_claims_exact(r, NULL, why, sizeof why));
    names(why, "loading took 3.100 ms, and its parts 3.095 ms");
    json_decref(r);
    r = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "start_ms", 0.41, "parse_ms", 0.82, "config_ms", 0.33, "engine_ms",
                  121234.0, "total_ms", 121236.0, "load_ms", 121236.0); /* two minutes, in whole ms */
    if (!hn_claims_exact(r, NULL, why, sizeof why)) fail_msg("a long one, rounded: %s", why);
    json_object_set_new(r, "engine_ms", json_real(121233.0)); /* and one of them left out */
    assert_false(hn_claims_exact(r, NULL, why, sizeof why));
    json_decref(r);
}

/* Who is asked for one thread has one, and says so. */
static void settings_as_asked(void **state)
{
    static const struct {
        const char *argv[6], *why;
    } t[] = { { { "hone", "-p", "8" }, NULL },
              { { "hone", "--threads=2", "--cpu=avx2" }, NULL },
              { { "hone", "--threads=1", "--threads=2", "--threads-batch=3", "--threads-batch=2" }, NULL },
              { { "hone", "--cpu=auto" }, NULL },
              { { "hone", "--threads=1" }, "it ran with 2 threads, 1 were asked for" },
              { { "hone", "--threads=2", "--threads-batch=1" }, "2 threads for prompts, 1 were asked for" },
              { { "hone", "--cpu=scalar" }, "kernels of level avx2, scalar was asked for" },
              { { "hone", "--packed=auto" }, NULL },
              { { "hone", "--packed=m.hpack" }, NULL },
              { { "hone", "--packed=m.hpack", "--packed=off" }, "packed weights, --packed off was asked for" } };
    char why[400] = "";
    json_t *r =
        json_pack("{s:{s:i, s:i, s:s, s:b}}", "engine", "threads", 2, "threads_batch", 2, "cpu", "avx2", "packed", 1);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        bool ok = hn_claims_settings(r, t[i].argv, why, sizeof why);
        if (ok != !t[i].why) fail_msg("case %zu: %s", i, why);
        if (!ok) names(why, t[i].why);
    }
    json_object_set_new(json_object_get(r, "engine"), "packed", json_false());
    assert_false(hn_claims_settings(r, (const char *const[]){ "hone", "--packed=m.hpack", NULL }, why, sizeof why));
    names(why, "plain weights, --packed m.hpack was asked for");
    json_decref(r);
    assert_true(hn_claims_settings(NULL, t[1].argv, why, sizeof why)); /* a process that says nothing */
}

/* Numbers that are made of several of a process's, and of two records. */
static void numbers_made_of_others(void **state)
{
    static const struct {
        const char *from;
        double is, scale;
    } rows[] = { { "ttft_ms + gaps_ms", 16, 1 },
                 { "320 / (ttft_ms + gaps_ms)", 20, 1 },
                 { "12 - ttft_ms / n", 1, 1 },
                 { "cpu_use", 75, 50 },
                 { "stages.512 positions.mb - stages.start.mb", 6, 1 },
                 { "requests.0.total_ms / requests.1-.total_ms", 3, 1 } };
    char why[400] = "";
    json_t *result = json_pack("{s:f, s:[f,f], s:f, s:f, s:[{s:s, s:f}, {s:s, s:f}], s:[{s:f}, {s:f}, {s:f}, {s:f}]}",
                               "ttft_ms", 10.0, "gaps_ms", 2.0, 4.0, "n", 2.0, "cpu_use", 1.5, "stages", "stage",
                               "start", "mb", 1.0, "stage", "512 positions", "mb", 7.0, "requests", "total_ms", 6.0,
                               "total_ms", 1.0, "total_ms", 9.0, "total_ms", 2.0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *list = json_pack("[{s:s, s:[f], s:{s:s, s:f, s:[O]}}]", "id", "e2e.a", "samples", rows[i].is, "extra",
                                 "from", rows[i].from, "scale", rows[i].scale, "samples", result);
        if (!hn_claims_records(list, why, sizeof why)) fail_msg("%s: %s", rows[i].from, why);
        json_object_set_new(json_array_get(list, 0), "samples", json_pack("[f]", 1.3 * rows[i].is));
        assert_false(hn_claims_records(list, why, sizeof why));
        names(why, "not what its processes say");
        json_decref(list);
    }
    json_decref(result);
    assert_true(isnan(hn_result_number(NULL, "a + (b")));
    json_t *list =
        json_pack("[{s:s, s:{s:s}, s:[f,f]}, {s:s, s:{s:s}, s:[f,f]}, {s:s, s:[f,f], s:{s:[s,s]}}]", "id", "e2e.b",
                  "config", "variant", "fast", "samples", 6.0, 8.0, "id", "e2e.b", "config", "variant", "slow",
                  "samples", 3.0, 2.0, "id", "e2e.b", "samples", 2.0, 4.0, "extra", "ratio", "fast", "slow");
    if (!hn_claims_records(list, why, sizeof why)) fail_msg("the honest one: %s", why);
    json_object_set_new(json_array_get(list, 2), "samples", json_pack("[f,f]", 2.6, 5.2));
    assert_false(hn_claims_records(list, why, sizeof why));
    names(why, "not those of 'fast' by those of 'slow'");
    json_array_remove(list, 1);
    assert_false(hn_claims_records(list, why, sizeof why));
    names(why, "no record of it is 'slow'");
    json_decref(list);
}

/* ---- runs of a comparison ------------------------------------------------------------------------- */

static hn_measured measured(uint64_t question, const char *last, double claimed_s, double wall_s)
{
    hn_measured m = { .question = question, .claimed_s = claimed_s, .wall_s = wall_s };
    snprintf(m.proof, sizeof m.proof, "{\"\":{\"steps\":3,\"last\":\"%s\"}}", last);
    return m;
}

typedef struct pair { /* two sides, and what both are asked */
    hn_side *a, *b;
    hn_target t;
} pair;

static pair open_pair(void)
{
    pair p = { .t = { .id = "e2e" } };
    hone_error err;
    const hn_side_params command = { .command = true };
    assert_int_equal(hn_side_open(&p.a, "true", &command, &err), HONE_OK);
    assert_int_equal(hn_side_open(&p.b, "false", &command, &err), HONE_OK);
    return p;
}

static void close_pair(pair *p)
{
    hn_side_close(p->a);
    hn_side_close(p->b);
}

static void runs_are_paired(void **state)
{
    hn_same *s;
    hone_error err;
    pair p = open_pair();
    assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
    hn_measured m = measured(1, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
    m = measured(2, "bb", 0.1, 0.2); /* another question: another answer */
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
    m = measured(1, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
    assert_true(hn_same_compared(s, &p.t));
    m = measured(2, "cc", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_E_NUMERIC);
    names(err.message,
          "run 2 of side b (false) and run 2 of side a (true) were asked the same, and the logits of the last");
    m = measured(3, "aa", 0.3, 0.2);
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_E_NUMERIC);
    names(err.message, "claims 0.300 s of work, and its process ran for 0.200 s");
    hn_same_free(s);
    assert_int_equal(hn_same_new(&s, p.a, p.b, true, false, 1, &err),
                     HONE_OK); /* the sides may differ, not a side from itself */
    m = measured(0, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
    m = measured(0, "bb", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
    assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_E_NUMERIC);
    assert_true(hn_same_differs(s, &p.t));
    assert_true(hn_same_compared(s, &p.t));
    m = measured(0, "aa", 0.1, 0.2); /* as a does, and not as b did */
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_E_NUMERIC);
    hn_same_free(s);
    assert_int_equal(hn_same_new(&s, p.a, p.b, false, true, 1, &err), HONE_OK); /* they may, and do not */
    m = measured(0, "aa", 0.1, 0.2);
    assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
    assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
    assert_false(hn_same_differs(s, &p.t));
    hn_same_free(s);
    close_pair(&p);
}

/* Runs of a target are of one model, and say as much of it as side a does: hashing it takes time. */
static void runs_are_of_one_model(void **state)
{
    static const struct {
        const char *sha, *identity, *words;
    } rows[] = { { "ab12", "cd34", NULL },
                 { "0000", "cd34", "its hash of the file is 0000…, expected ab12…" },
                 { "ab12", "", "its identity is not told…, expected cd34…" },
                 { "", "cd34", "its hash of the file is not told…" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int allowed = 0; allowed < 2; allowed++) {
            hn_same *s;
            hone_error err = { 0 };
            pair p = open_pair();
            assert_int_equal(hn_same_new(&s, p.a, p.b, false, allowed, 1, &err), HONE_OK);
            hn_measured a = measured(1, "aa", 0.1, 0.2), b = a;
            snprintf(a.model[1], sizeof a.model[1], "ab12");
            snprintf(a.model[2], sizeof a.model[2], "cd34");
            snprintf(b.model[1], sizeof b.model[1], "%s", rows[i].sha);
            snprintf(b.model[2], sizeof b.model[2], "%s", rows[i].identity);
            assert_int_equal(hn_same_check(s, p.a, &p.t, &a, &err), HONE_OK);
            const bool wrong = rows[i].words && !allowed;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &b, &err), wrong ? HONE_E_NUMERIC : HONE_OK);
            if (wrong) names(err.message, rows[i].words);
            hn_same_free(s);
            close_pair(&p);
        }
}

/* What a proves and b does not: b's speed means nothing, unless it is not to be judged. An older program is side a. */
static void proofs_of_one_side(void **state)
{
    hn_target t = { .id = "sample.topk" }; /* which an older program has without a proof */
    hn_side *side[2];
    hone_error err;
    for (int i = 0; i < 2; i++) assert_int_equal(hn_side_open(&side[i], "this", &(hn_side_params){ 0 }, &err), HONE_OK);
    for (int k = 0; k < 3; k++) {
        hn_same *s;
        assert_int_equal(hn_same_new(&s, side[0], side[1], false, k == 1, 1, &err), HONE_OK);
        hn_measured with = measured(1, "aa", 0.1, 0.2), without = with;
        without.proof[0] = 0;
        assert_int_equal(hn_same_check(s, side[k == 2], &t, &with, &err), HONE_OK);
        assert_int_equal(hn_same_check(s, side[k != 2], &t, &without, &err), k == 0 ? HONE_E_NUMERIC : HONE_OK);
        if (k == 0) names(err.message, "is named first, as side a");
        assert_int_equal(hn_same_differs(s, &t), k == 1);
        hn_same_free(s);
    }
    static const char *const rounds[] = { "\"x\",\"y\"", "\"x\",\"y\",\"z\"", "\"x\"", "" };
    for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++) { /* as many rounds as a, or more */
        hn_same *s;
        assert_int_equal(hn_same_new(&s, side[0], side[1], false, false, 1, &err), HONE_OK);
        for (int i = 0; i < 2; i++) {
            hn_measured m = measured(1, "aa", 0.1, 0.2);
            snprintf(m.proof, sizeof m.proof, "{\"serve.load 1\":{\"output\":\"x\",\"rounds\":[%s]}}",
                     rounds[i ? k : 0]);
            assert_int_equal(hn_same_check(s, side[i], &t, &m, &err), i && k > 1 ? HONE_E_NUMERIC : HONE_OK);
        }
        if (k > 1) names(err.message, "or less, of its answer to serve.load 1 than side a does");
        hn_same_free(s);
    }
    hn_side_close(side[0]);
    hn_side_close(side[1]);
}

/* A side that says 40 ms less. The processes of an honest one take 40 ms less; those of a liar do not. */
static void gains_are_seen_outside(void **state)
{
    hone_error err;
    pair p = open_pair();
    for (int lie = 0; lie < 2; lie++) {
        hn_same *s;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 40; i++) {
            double noise = 0.004 * (double)(i % 5);
            hn_measured m = measured(i, "aa", 0.100, 0.2 + noise);
            m.part_s[HN_PART_GEN] = 0.080;
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", 0.060, (lie ? 0.2 : 0.16) + 0.016 - noise);
            m.part_s[HN_PART_GEN] = 0.040;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        bool seen, moved;
        assert_int_equal(hn_same_outside(s, &p.t, "decode_tok_s", HN_AB_LOOKS, &seen, &moved, &err),
                         lie ? HONE_E_NUMERIC : HONE_OK);
        assert_int_equal(seen, !lie);
        if (lie) names(err.message, "claims to take 40.0 ms less");
        hn_same_free(s);
    }
    close_pair(&p);
}

/* Loops of 10 ms each that b calls 1.5 times as fast: a clock that lies leaves 5 ms more of the process beside it. And
 * memory, of which the kernel counted as much as before. */
static void other_gains_are_seen_outside(void **state)
{
    hone_error err;
    pair p = open_pair();
    for (int lie = 0; lie < 2; lie++) {
        hn_same *s;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 20; i++) {
            double noise = 0.0004 * (double)(i % 5);
            hn_measured m = measured(i, "aa", 0.020, 0.05 + noise);
            m.n_clocked = 2;
            m.anon_mb = 50, m.rss_mb = 80;
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", lie ? 0.0133 : 0.020, 0.05 + 0.001 - noise);
            m.n_clocked = 2;
            m.anon_mb = 30, m.rss_mb = lie ? 80 : 60.5;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        assert_int_equal(hn_same_seen(s, &p.t, "tok.encode", 1.5), !lie);
        assert_int_equal(hn_same_seen(s, &p.t, "peak_anon_mb", 1.6), !lie);
        assert_false(hn_same_seen(s, &p.t, "tok.encode", 1.0));
        hn_same_free(s);
    }
    close_pair(&p);
}

/* A lie is asked for in each of HN_AB_LOOKS looks: what chance does once in a hundred must not accuse in one of them.
 * 20 pairs of runs, of which 16 hide the gain (0.6 % by chance), and 17 (0.1 %). */
static void looks_share_the_level(void **state)
{
    pair p = open_pair();
    for (uint64_t hide = 16; hide <= 17; hide++) {
        hn_same *s;
        bool seen, moved;
        hone_error err;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 20; i++) {
            hn_measured m = measured(i, "aa", 0.100, 0.2);
            m.part_s[HN_PART_GEN] = 0.080;
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", 0.060, i < hide ? 0.2 : 0.16);
            m.part_s[HN_PART_GEN] = 0.040;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        assert_int_equal(hn_same_outside(s, &p.t, "decode_tok_s", HN_AB_LOOKS, &seen, &moved, &err),
                         hide == 16 ? HONE_OK : HONE_E_NUMERIC);
        assert_false(seen);
        /* four metrics of two benches ask as often, each (17 of 20: 0.13 %) */
        assert_int_equal(hn_same_outside(s, &p.t, "decode_tok_s", 8 * HN_AB_LOOKS, &seen, &moved, &err), HONE_OK);
        hn_same_free(s);
    }
    close_pair(&p);
}

/* What the generation takes less, the prompt takes more in eight of nine pairs: that it was not moved is not seen. */
static void gains_that_may_have_been_moved(void **state)
{
    hone_error err;
    pair p = open_pair();
    for (int moves = 0; moves < 2; moves++) {
        hn_same *s;
        bool seen, moved;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 9; i++) {
            hn_measured m = measured(i, "aa", 0.100, 0.2);
            m.part_s[HN_PART_GEN] = 0.080;
            m.part_s[HN_PART_FIRST] = m.part_s[HN_PART_PROMPT] = 0.020;
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", moves ? 0.100 : 0.060, moves ? 0.2 : 0.16);
            m.part_s[HN_PART_GEN] = 0.040;
            m.part_s[HN_PART_FIRST] = m.part_s[HN_PART_PROMPT] = moves && i != 4 ? 0.060 : 0.021;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        assert_int_equal(hn_same_outside(s, &p.t, "decode_tok_s", HN_AB_LOOKS, &seen, &moved, &err), HONE_OK);
        assert_int_equal(seen, !moves);
        hn_same_free(s);
    }
    close_pair(&p);
}

/* b says 3 ms less, and processes differ by more than that from run to run. Honest or not: it is not known. With many
 * runs the honest one is seen, and the liar is not. */
static void gains_too_small_to_see(void **state)
{
    hone_error err;
    pair p = open_pair();
    for (int k = 0; k < 3; k++) { /* few runs; many, honest; many, a lie */
        hn_same *s;
        bool seen, moved, lie = k == 2;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < (k ? 240 : 10); i++) {
            double noise = 0.003 * (double)(i % 5) - 0.006;
            hn_measured m = measured(i, "aa", 0.010, 0.03);
            m.part_s[HN_PART_GEN] = 0.010;
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", 0.007, (lie ? 0.03 : 0.027) + noise);
            m.part_s[HN_PART_GEN] = 0.007;
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        assert_int_equal(hn_same_outside(s, &p.t, "decode_tok_s", HN_AB_LOOKS, &seen, &moved, &err), HONE_OK);
        assert_int_equal(seen, k == 1);
        hn_same_free(s);
    }
    close_pair(&p);
}

/* Of one part alone: the prompt takes 40 ms less, as it says. A first token that comes no earlier, and processes that
 * take as long, are a lie; a generation that takes as much longer is none. */
static void gains_of_a_part(void **state)
{
    static const struct {
        double load, first, gen, claimed, wall;
        hone_status st;
        bool seen, moved;
    } b[] = { { 0, 0.020, 0.040, 0.060, 0.160, HONE_OK, true, false },         /* all of it seen */
              { 0, 0.060, 0.040, 0.100, 0.200, HONE_E_NUMERIC, false, false }, /* the first token is no earlier */
              { 0, 0.020, 0.040, 0.060, 0.200, HONE_E_NUMERIC, false, false }, /* neither is its end */
              { 0, 0.020, 0.080, 0.100, 0.200, HONE_OK, false, true },         /* the generation takes longer */
              { 0.040, 0.020, 0.040, 0.100, 0.240, HONE_OK, false, true },     /* the load does, seen twice */
              { 0.010, 0.020, 0.040, 0.070, 0.180, HONE_OK, true, false } };   /* a little */
    hone_error err;
    pair p = open_pair();
    for (size_t k = 0; k < sizeof b / sizeof *b; k++) {
        hn_same *s;
        assert_int_equal(hn_same_new(&s, p.a, p.b, false, false, 1, &err), HONE_OK);
        for (uint64_t i = 0; i < 40; i++) {
            double noise = 0.004 * (double)(i % 5) - 0.008;
            hn_measured m = measured(i, "aa", 0.100, 0.2 + noise);
            memcpy(m.part_s, (double[HN_PARTS]){ 0, 0.060, 0.060, 0.040 }, sizeof m.part_s);
            assert_int_equal(hn_same_check(s, p.a, &p.t, &m, &err), HONE_OK);
            m = measured(i, "aa", b[k].claimed, b[k].wall - noise);
            memcpy(m.part_s, (double[HN_PARTS]){ b[k].load, 0.020, b[k].first, b[k].gen }, sizeof m.part_s);
            assert_int_equal(hn_same_check(s, p.b, &p.t, &m, &err), HONE_OK);
        }
        bool seen, moved;
        hone_status st = hn_same_outside(s, &p.t, "prefill_tok_s", HN_AB_LOOKS, &seen, &moved, &err);
        if (st != b[k].st) fail_msg("case %zu: %d", k, (int)st);
        if (st == HONE_OK && (seen != b[k].seen || moved != b[k].moved)) fail_msg("case %zu: %d %d", k, seen, moved);
        if (st != HONE_OK) names(err.message, "40.0 ms less a run (prefill_tok_s)");
        hn_same_free(s);
    }
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(rounds_that_both_have),
        cmocka_unit_test(order_and_length_count),
        cmocka_unit_test(less_is_noticed),
        cmocka_unit_test(samples_by_a_clock),
        cmocka_unit_test(paces_follow_from_gaps),
        cmocka_unit_test(other_gains_are_seen_outside),
        cmocka_unit_test(claims),
        cmocka_unit_test(clocks_beside_the_parent),
        cmocka_unit_test(numbers_of_suites),
        cmocka_unit_test(steps_of_a_load),
        cmocka_unit_test(settings_as_asked),
        cmocka_unit_test(numbers_made_of_others),
        cmocka_unit_test(gains_too_small_to_see),
        cmocka_unit_test(gains_that_may_have_been_moved),
        cmocka_unit_test(a_late_start),
        cmocka_unit_test(memory_by_two_ways),
        cmocka_unit_test(memory_of_a_small_one),
        cmocka_unit_test(memory_of_stages),
        cmocka_unit_test(cpu_time_of_a_process),
        cmocka_unit_test(disturbances_are_counted),
        cmocka_unit_test(records_are_their_samples),
        cmocka_unit_test(runs_are_paired),
        cmocka_unit_test(runs_are_of_one_model),
        cmocka_unit_test(gains_are_seen_outside),
        cmocka_unit_test(proofs_of_one_side),
        cmocka_unit_test(looks_share_the_level),
        cmocka_unit_test(gains_of_a_part),
        cmocka_unit_test(stopped_before_the_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
