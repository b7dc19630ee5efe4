/* What a measured process does: pace against values worked out by hand, evidence reason by
 * reason, requests and batches against the plain way of generating, memory that is known. */
#include "base/os.h"
#include "lab/bench/runner.h"
#include "lab/inside/bench_stages.h"
#include "lab/machine/evidence.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) <= 1e-9 * fmax(1, fabs((double)(b))))

static void pace_by_hand(void **state)
{
    double gap[40];
    hn_pace p;
    for (int i = 0; i < 40; i++) gap[i] = i < 8 ? 500 : i < 20 ? 40 : 50; /* slow beginning */
    assert_int_equal(hn_pace_of(&p, gap, 40, NULL), HONE_OK);
    NEAR(p.steady, 20);               /* 32 gaps are left: 12 of 40 ms, 20 of 50 ms, median 50 */
    NEAR(p.sustained, 20);            /* the last 20 gaps */
    NEAR(p.peak, 1000.0 * 23 / 1030); /* a second or more: twelve of 40 and eleven of 50 ms; 22 of them are only 980 */
    assert_int_equal(hn_pace_of(&p, gap, 8, NULL), HONE_OK);
    assert_true(isnan(p.steady)); /* nothing is left */
    NEAR(p.sustained, 2);
    NEAR(p.peak, 2);
    assert_int_equal(hn_pace_of(&p, gap + 20, 10, NULL), HONE_OK);
    NEAR(p.steady, 20);
    assert_true(isnan(p.peak)); /* half a second in all */
    assert_int_equal(hn_pace_of(&p, NULL, 0, NULL), HONE_OK);
    assert_true(isnan(p.steady) && isnan(p.peak) && isnan(p.sustained));
    double *many = malloc(1000 * sizeof *many); /* 10 % of many is more than 8 */
    for (int i = 0; i < 1000; i++) many[i] = i < 100 ? 1000 : i < 600 ? 2 : 3;
    assert_int_equal(hn_pace_of(&p, many, 1000, NULL), HONE_OK);
    NEAR(p.steady, 500); /* 500 of 2 ms and 400 of 3 ms behind the first hundred */
    free(many);
}

static json_t *sample(const char *key, double value)
{
    json_t *o =
        json_pack("{s:f, s:i, s:i, s:f}", "steal_pct", 0.9, "major_faults", 0, "throttled", 0, "clock_mhz", 3000.0);
    if (key) json_object_set_new(o, key, json_real(value));
    return o;
}

static bool voids(const char *key, double value, bool from_disk, double usual, const char *word)
{
    char why[200] = "";
    json_t *o = sample(key, value);
    bool bad = hn_evidence_voids(o, from_disk, usual, why, sizeof why);
    json_decref(o);
    if (bad && word && !strstr(why, word)) fail_msg("'%s' does not name '%s'", why, word);
    return bad;
}

static void evidence_by_reason(void **state)
{
    assert_false(voids(NULL, 0, false, NAN, NULL));
    assert_false(voids(NULL, 0, false, 3000, NULL));
    assert_false(voids("decode_tok_s", 1e-9, false, 3000, NULL)); /* a bad value is no reason */
    assert_true(voids("steal_pct", 1.1, false, NAN, "hypervisor"));
    assert_false(voids("steal_pct", 1.0, false, NAN, NULL));
    assert_true(voids("major_faults", 1, false, NAN, "disk"));
    assert_false(voids("major_faults", 1, true, NAN, NULL)); /* reading from disk is what is measured */
    assert_true(voids("throttled", 1, true, NAN, "throttled"));
    assert_true(voids("clock_mhz", 2800, false, 3000, "clock"));
    assert_true(voids("clock_mhz", 3200, false, 3000, "clock"));
    assert_false(voids("clock_mhz", 2860, false, 3000, NULL));
    json_t *empty = json_object(); /* a system that tells nothing gives no reason */
    char why[200];
    assert_false(hn_evidence_voids(empty, false, 3000, why, sizeof why));
    json_decref(empty);
}

static double process_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void evidence_is_seen(void **state)
{
    hn_evidence a, b;
    double outer = process_seconds();
    hn_evidence_look(&a);
    double inner = process_seconds();
    volatile double x = 1;
    while (process_seconds() - inner < 0.03) x = x * 1.0000001; /* of a CPU's time, however long that takes */
    inner = process_seconds() - inner;
    hn_evidence_look(&b);
    outer = process_seconds() - outer;
    json_t *o = json_object();
    hn_evidence_json(o, &a, &b);
    /* what the process used between the two looks, of the time between them; 10 ms: where the kernel counts in ticks */
    double use = json_number_value(json_object_get(o, "cpu_use")), wall_s = (double)(b.ns - a.ns) * 1e-9;
    assert_true(use * wall_s > inner - 0.011 - 1e-3 * wall_s && use * wall_s < outer + 0.011 + 1e-3 * wall_s);
    assert_true(json_integer_value(json_object_get(o, "major_faults")) >= 0);
    json_decref(o);
}

static void numbers_by_path(void **state)
{
    json_t *o = json_pack("{s:f, s:{s:i}, s:[{s:f}, {s:f}], s:s}", "a", 1.5, "b", "c", 7, "r", "x", 2.0, "x", 3.0, "t",
                          "no number");
    NEAR(hn_result_number(o, "a"), 1.5);
    NEAR(hn_result_number(o, "b.c"), 7);
    NEAR(hn_result_number(o, "r.0.x"), 2);
    NEAR(hn_result_number(o, "r.1.x"), 3);
    assert_true(isnan(hn_result_number(o, "r.2.x")));
    assert_true(isnan(hn_result_number(o, "t")));
    assert_true(isnan(hn_result_number(o, "b.d")));
    assert_true(isnan(hn_result_number(NULL, "a")));
    json_decref(o);
}

/* ---- on the bundled model ---------------------------------------------------------------------- */

static hone_model *model;
static hone_context *ctx;

static bool have_model(void)
{
    if (model) return true;
    if (access("models/hone-tiny.gguf", R_OK) != 0 ||
        hone_model_open(&model, "models/hone-tiny.gguf", NULL, NULL) != HONE_OK) {
        puts("SKIP: models/hone-tiny.gguf is not here");
        return false;
    }
    assert_int_equal(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 2 }, NULL), HONE_OK);
    return true;
}

static hone_session *session(int32_t n_ctx, int32_t n_seq)
{
    hone_session *s;
    assert_int_equal(hone_session_new(&s, ctx, model, &(hone_session_params){ .n_ctx = n_ctx, .n_seq = n_seq }, NULL),
                     HONE_OK);
    return s;
}

static void a_request_says_what_run_says(void **state)
{
    if (!have_model()) skip();
    hone_session *s = session(64, 1);
    hn_request r;
    const hn_request_config c = { .text = "Once upon a time", .n_gen = 24, .temp = 0, .top_p = 1 };
    assert_int_equal(hn_request_run(&r, s, model, c.text, &c, NULL), HONE_OK);
    assert_int_equal(r.n_prompt, 5); /* BOS and four words */
    assert_int_equal(r.n_ids, 24);
    assert_int_equal(r.n_gaps, 23);
    char *text;
    size_t len;
    assert_int_equal(hone_detokenize(model, r.ids, 24, false, &text, &len, NULL), HONE_OK);
    assert_memory_equal(text, ", there was a little boy named Finn. He lived", 45); /* models/README.md */
    hone_free(text);
    double sum = 0;
    for (int i = 0; i < r.n_gaps; i++) sum += r.gap_ms[i];
    NEAR(r.ttft_ms + sum, r.total_ms); /* the parts are the whole */
    assert_true(r.tokenize_ms > 0 && r.tokenize_ms < r.ttft_ms);
    assert_true(fabs(r.decode_tok_s - 23000 / sum) < 1e-6 * r.decode_tok_s);
    hn_request again;
    assert_int_equal(hn_request_run(&again, s, model, c.text, &c, NULL),
                     HONE_OK); /* on the same session: from the start */
    assert_memory_equal(r.ids, again.ids, 24 * sizeof *r.ids);
    hn_request_free(&again);
    const hn_request_config drawn = { .n_prompt = 32, .n_gen = 24, .temp = 0.7f, .top_p = 0.9f, .seed = 1 };
    assert_int_equal(hn_request_text(&text, model, 32, NULL), HONE_OK);
    hn_request_free(&r);
    assert_int_equal(hn_request_run(&r, s, model, text, &drawn, NULL), HONE_OK);
    assert_int_equal(r.n_prompt, 32);
    assert_int_equal(hn_request_run(&again, s, model, text, &drawn, NULL), HONE_OK);
    assert_memory_equal(r.ids, again.ids, 24 * sizeof *r.ids); /* the seed decides */
    hn_request_free(&again);
    const hn_request_config other = { .n_prompt = 32, .n_gen = 24, .temp = 0.7f, .top_p = 0.9f, .seed = 2 };
    assert_int_equal(hn_request_run(&again, s, model, text, &other, NULL), HONE_OK);
    assert_memory_not_equal(r.ids, again.ids, 24 * sizeof *r.ids);
    hn_request_free(&again);
    hn_request_free(&r);
    free(text);
    hone_session_free(s);
}

/* In chunks of 37 and calls of 5 a request proves the same, drawn and greedily; other ids prove something else. */
static void a_request_again(void **state)
{
    if (!have_model()) skip();
    for (int k = 0; k < 2; k++) {
        const hn_request_config c = {
            .n_prompt = 80, .n_gen = 24, .temp = k ? 0.7f : 0, .top_p = k ? 0.9f : 1, .seed = 1
        };
        hone_session *s = session(104, 1);
        hn_request r;
        hn_proof again;
        char *text, what[120];
        assert_int_equal(hn_request_text(&text, model, 80, NULL), HONE_OK);
        assert_int_equal(hn_request_run(&r, s, model, text, &c, NULL), HONE_OK);
        for (int wrong = 0; wrong < 2; wrong++) {
            r.ids[12] ^= wrong;
            assert_int_equal(hone_seq_truncate(s, 0, 0, NULL), HONE_OK);
            assert_int_equal(hn_request_again(&again, s, model, text, &c, r.ids, NULL), HONE_OK);
            json_t *a = hn_proof_json(&r.proof), *b = hn_proof_json(&again);
            assert_int_equal(hn_proof_differ(what, sizeof what, a, b), wrong);
            json_decref(a);
            json_decref(b);
        }
        hn_request_free(&r);
        free(text);
        hone_session_free(s);
    }
}

/* Counts how often a session asks whether it is to stop: as many times in every pass. */
static bool count_passes(void *n)
{
    ++*(int *)n;
    return false;
}

static void company_changes_nothing(void **state)
{
    if (!have_model()) skip();
    int32_t ids[12];
    int passes[2] = { 0 };
    hn_batch alone, b;
    hone_session *one = session(32, 1);
    assert_int_equal(hn_batch_alone(&alone, one, model, 4, 16, 12, NULL), HONE_OK);
    hone_session_free(one);
    for (int n = 1; n <= 4; n += 3) {
        hone_session *s = session(32, n);
        hone_session_set_abort(s, count_passes, &passes[n > 1]);
        assert_int_equal(hn_batch_run(&b, s, model, n, 16, 12, NULL), HONE_OK);
        if (n == 1) memcpy(ids, b.ids, sizeof ids);
        else assert_memory_equal(ids, b.ids, sizeof ids);
        assert_memory_equal(alone.each, b.each, (size_t)n * sizeof *b.each);
        assert_true(b.decode_tok_s > 0 && b.prefill_tok_s > 0);
        hn_batch_free(&b);
        hone_session_free(s);
    }
    for (int q = 1; q < 4; q++) assert_true(alone.each[q] != alone.each[0]); /* they are asked different things */
    assert_true(passes[0] > 0);
    assert_int_equal(passes[1], passes[0]); /* a sample is what is timed, and nothing else */
    hn_batch_free(&alone);
}

static void without_a_cache_the_same_comes_out(void **state)
{
    if (!have_model()) skip();
    hone_session *s = session(64, 1);
    hn_uncached u;
    assert_int_equal(hn_uncached_run(&u, s, model, 16, 64, 0, NULL), HONE_OK);
    assert_true(u.same);
    assert_int_equal(u.n_tok, 64);
    assert_int_not_equal(u.verdict.state, HN_INVALID);
    hn_uncached_free(&u);
    assert_true(u.off_s > u.on_s); /* 48 prompts of 16 to 63 tokens against 63 tokens */
    hone_session_free(s);
    s = session(512, 1);
    assert_int_equal(hn_uncached_run(&u, s, model, 16, 0, 1e-9, NULL), HONE_OK); /* no time at all: the shortest */
    assert_int_equal(u.n_tok, 32);
    hn_uncached_free(&u);
    hone_session_free(s);
}

static void memory_is_looked_at(void **state)
{
    if (!have_model()) skip();
    hn_stages t;
    hone_model *m;
    hone_error err;
    assert_int_equal(hn_stages_open(&m, &t, "models/no-such-file.gguf", NULL, NULL, NULL, &err), HONE_E_IO);
    assert_null(m);
    assert_int_equal(hn_stages_open(&m, &t, "models/hone-tiny.gguf", NULL, NULL, NULL, &err), HONE_OK);
    assert_true(t.parse_ms > 0 && t.config_ms > 0);
    hone_session *s;
    assert_int_equal(hone_session_new(&s, ctx, m, &(hone_session_params){ .n_ctx = 512, .n_seq = 1 }, NULL), HONE_OK);
    hn_look before, after;
    hn_look_at(&before, m, s);
    if (before.tensors < 0 || before.cache < 0 || !before.anon) {
        puts("SKIP: this system does not tell a process what it holds");
    } else {
        int32_t ids[512];
        const float *logits;
        hn_bench_ids(ids, 512, 0, 0, m);
        assert_int_equal(before.cache, 0);
        assert_true(before.tensors <
                    (2 << 20) +
                        (256 << 10)); /* nothing but what the kernel maps with the directory: up to a huge page */
        assert_int_equal(hone_prefill(s, ids, 512, &logits, NULL), HONE_OK);
        hn_look_at(&after, m, s);
        assert_true(after.tensors > 5000000 && after.tensors < 5600000); /* 5,514,240 bytes of weights */
        assert_int_equal(after.cache, 512 * 4 * 2 * 4 * 32 * 2); /* positions, layers, K and V, heads, dims, bytes */
        assert_true(after.anon - before.anon >= after.cache);
    }
    hone_session_free(s);
    hone_model_close(m);
}

static int close_all(void **state)
{
    hone_context_free(ctx);
    hone_model_close(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pace_by_hand),
        cmocka_unit_test(evidence_by_reason),
        cmocka_unit_test(evidence_is_seen),
        cmocka_unit_test(numbers_by_path),
        cmocka_unit_test(a_request_says_what_run_says),
        cmocka_unit_test(a_request_again),
        cmocka_unit_test(company_changes_nothing),
        cmocka_unit_test(without_a_cache_the_same_comes_out),
        cmocka_unit_test(memory_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, close_all);
}
