/* Prefixes that stay: where a prompt comes back to when the sequence that knew it is gone, in models that see all,
 * with windows and with states; who may have it; and that it gives way to whoever needs the memory. */
#include "tiny_rwkv.h"

enum { CTX = 330, N = 300 };

static hone_context *ctx;
static int32_t ids[N];

static int set_up(void **state)
{
    if (tm_make_dir(state)) return -1;
    ctx = tm_context(NULL, 1);
    for (int i = 0; i < N; i++) ids[i] = (int32_t)(hn_rand64(3, (uint64_t)i) % 16);
    return 0;
}
static int tear_down(void **state)
{
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

static hone_model *model_of(tiny *t)
{
    hone_model *m = tm_open(t);
    tm_free(t);
    return m;
}

static hone_session *session_of(const hone_model *m, int32_t n_seq, int32_t n_kept, uint64_t budget)
{
    hone_error err = { 0 };
    hone_session *s;
    const hone_session_params p = { .n_ctx = CTX, .n_seq = n_seq, .n_kept_states = n_kept, .cache_budget = budget };
    if (hone_session_new(&s, ctx, m, &p, &err)) fail_msg("%s", err.message);
    return s;
}

static void must(hone_status st) { assert_int_equal(st, HONE_OK); }

/* Sequence 0 holds the first n ids; they are kept, and it forgets them. */
static void keep(hone_session *s, int32_t n)
{
    int32_t kept;
    const float *y;
    must(hone_seq_sync(s, 0, ids, n, &kept, &y, NULL));
    must(hone_seq_keep(s, 0, NULL));
    must(hone_seq_truncate(s, 0, 0, NULL));
}

/* What sequence seq is given of the first n ids, whose last is another from `other` on. */
static int32_t match(hone_session *s, int32_t seq, int32_t n, int32_t other)
{
    int32_t want[N], kept;
    for (int32_t i = 0; i < n; i++) want[i] = i < other ? ids[i] : (ids[i] + 1) % 16;
    must(hone_seq_match(s, seq, want, n, &kept, NULL));
    assert_int_equal(hone_seq_length(s, seq), kept);
    must(hone_seq_truncate(s, seq, 0, NULL));
    return kept;
}

static void whole_pages(void **state)
{
    hone_model *m = model_of(tm_new(tm_llama));
    hone_session *s = session_of(m, 2, 0, 0);
    hone_prefix_info info;
    hone_session_memory use;
    keep(s, 200);
    assert_int_equal(match(s, 0, 201, 201), 192);
    assert_int_equal(match(s, 1, 201, 201), 192);
    assert_int_equal(match(s, 1, 192, 192), 191); /* a token must follow */
    assert_int_equal(match(s, 1, 130, 130), 128);
    assert_int_equal(match(s, 1, 128, 128), 127);
    assert_int_equal(match(s, 1, 300, 127), 64);
    assert_int_equal(match(s, 1, 300, 63), 0);
    assert_int_equal(match(s, 1, 63, 63), 0);
    assert_int_equal(match(s, 1, 1, 1), 0);
    hone_session_prefix_info(s, &info);
    hone_session_get_memory(s, &use);
    assert_true(info.n_nodes == 3 && info.n_pages == 3 && info.n_states == 0 && info.n_evicted == 0);
    assert_true(info.bytes == use.cache_used_bytes && info.alone_bytes == info.bytes && info.bytes > 0);
    assert_true(info.n_hits == 6 && info.n_hit_positions == 192 + 192 + 191 + 128 + 127 + 64);
    keep(s, 200); /* nothing twice */
    hone_session_prefix_info(s, &info);
    assert_true(info.n_nodes == 3 && info.bytes == use.cache_used_bytes);
    must(hone_seq_set_scope(s, 1, 9, NULL));
    assert_int_equal(match(s, 1, 201, 201), 0);
    must(hone_seq_set_scope(s, 0, 9, NULL));
    keep(s, 100);
    assert_int_equal(match(s, 1, 201, 201), 64);
    must(hone_seq_set_scope(s, 1, 0, NULL));
    assert_int_equal(match(s, 1, 201, 201), 192);
    tm_run(s, 1, ids, 3, NULL);
    assert_int_equal(hone_seq_set_scope(s, 1, 9, NULL), HONE_E_ARG);
    must(hone_seq_set_scope(s, 1, 0, NULL));
    must(hone_seq_truncate(s, 1, 0, NULL));
    hone_session_drop_prefixes(s);
    assert_int_equal(match(s, 1, 201, 201), 0);
    hone_session_prefix_info(s, &info);
    hone_session_get_memory(s, &use);
    assert_true(info.n_nodes == 0 && info.bytes == 0 && use.cache_used_bytes == 0);
    hone_session_free(s);
    hone_model_close(m);
}

/* Where layers recur, a prompt comes back to where it was kept; where they have windows, to every page as far back as
 * its window is there, too. */
static void places(void **state)
{
    static const struct {
        int32_t n, other, want;
    } tries[] = { { 300, 300, 250 }, { 250, 250, 150 }, { 250, 240, 150 }, { 151, 151, 150 }, { 150, 150, 100 },
                  { 120, 120, 100 }, { 101, 101, 100 }, { 100, 100, 0 },   { 300, 90, 0 } };
    hone_model *m = model_of(rw_new(&rw_vec7));
    hone_session *s = session_of(m, 2, 3, 0);
    hone_prefix_info info;
    keep(s, 100), keep(s, 150), keep(s, 250);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        assert_int_equal(match(s, 1, tries[i].n, tries[i].other), tries[i].want);
    keep(s, 200); /* the fourth: that at 250 was not used for longest */
    hone_session_prefix_info(s, &info);
    assert_true(info.n_states == 3 && info.n_evicted == 1);
    assert_int_equal(match(s, 1, 300, 300), 200);
    hone_session_free(s);
    s = session_of(m, 1, 0, 0); /* no room for states */
    keep(s, 100);
    assert_int_equal(match(s, 0, 300, 300), 0);
    hone_session_prefix_info(s, &info);
    assert_int_equal(info.n_nodes, 0);
    hone_session_free(s);
    hone_model_close(m);

    tm_shape shape = tm_gemma3;
    shape.window = 20;
    m = model_of(tm_new(shape));
    s = session_of(m, 2, 0, 0);
    keep(s, 250);
    assert_int_equal(match(s, 1, 300, 300), 250);
    assert_int_equal(match(s, 1, 250, 250), 249);
    assert_int_equal(match(s, 1, 300, 249), 0); /* the window of 192 begins on a page that was dropped */
    keep(s, 128);
    assert_int_equal(match(s, 1, 300, 249), 128);
    assert_int_equal(match(s, 1, 128, 128), 127);
    hone_session_free(s);
    hone_model_close(m);
}

/* A session whose memory is full of prefixes runs what one without them runs, with the same answers. */
static void gives_way(void **state)
{
    static const rw_shape seven = R7(32, 8, 48, 16, 3, 4, 8, 4, 12);
    for (int kind = 0; kind < 3; kind++) {
        hone_model *m = model_of(kind == 0 ? tm_new(tm_llama) : kind == 1 ? tm_new(tm_gemma3) : rw_new(&seven));
        hone_session *roomy = session_of(m, 2, 0, 0), *s;
        hone_session_memory use;
        hone_prefix_info info;
        hone_error err = { 0 };
        float want[16], got[16];
        tm_run(roomy, 0, ids, N - 1, NULL);
        tm_run(roomy, 0, ids + N - 1, 1, want);
        tm_run(roomy, 1, ids + 1, N - 1, NULL);
        hone_session_get_memory(roomy, &use);
        /* for these two; within a call a window keeps all that is new */
        s = session_of(m, 2, 2, kind == 1 ? 2 * use.cache_used_bytes : use.cache_used_bytes);
        assert_true(use.cache_used_bytes < use.cache_budget_bytes);
        for (int32_t k = 0; k < 20; k++) { /* prompts of their own, one after the other */
            tm_run(s, 0, ids + 2 + k, 65 + 30 * (k % 3), NULL);
            must(hone_seq_keep(s, 0, NULL));
            must(hone_seq_truncate(s, 0, 0, NULL));
        }
        hone_session_prefix_info(s, &info);
        assert_true(info.bytes > 0 && info.alone_bytes == info.bytes);
        tm_run(s, 1, ids + 1, N - 1, NULL);
        must(hone_seq_keep(s, 1, NULL));
        tm_run(s, 0, ids, N - 1, NULL);
        tm_run(s, 0, ids + N - 1, 1, got);
        assert_memory_equal(got, want, (size_t)16 * sizeof *got);
        hone_session_prefix_info(s, &info);
        assert_true(info.n_evicted > 0);
        if (kind == 0) { /* now all is theirs */
            assert_int_equal(hone_append(s, 0, ids, CTX - N, &(const float *){ 0 }, &err), HONE_E_NOMEM);
            hone_session_prefix_info(s, &info);
            assert_int_equal(info.alone_bytes, 0);
        }
        hone_session_free(s), hone_session_free(roomy);
        hone_model_close(m);
    }
}

/* A sequence that was cut within a page and kept: two places of the tree have that page, and give way like others. */
static void two_places_of_a_page_give_way(void **state)
{
    hone_model *m = model_of(tm_new(tm_gemma3));
    hone_session *s = session_of(m, 1, 0, 0);
    hone_session_memory use;
    hone_prefix_info info;
    hone_error err = { 0 };
    int32_t kept;
    tm_run(s, 0, ids, 64, NULL);
    hone_session_get_memory(s, &use);
    hone_session_free(s);

    s = session_of(m, 1, 0, use.cache_used_bytes); /* of one page of each kind */
    keep(s, 64);
    must(hone_seq_match(s, 0, ids, 64, &kept, NULL));
    assert_int_equal(kept, 63);
    must(hone_seq_keep(s, 0, NULL));
    must(hone_seq_truncate(s, 0, 0, NULL));
    hone_session_prefix_info(s, &info);
    assert_int_equal(info.n_nodes, 2);
    assert_true(info.bytes == use.cache_used_bytes && info.alone_bytes == info.bytes);

    if (hone_append(s, 0, ids + 7, 64, &(const float *){ 0 }, &err)) fail_msg("%s", err.message);
    hone_session_prefix_info(s, &info);
    assert_true(info.n_nodes == 0 && info.n_evicted == 2);
    hone_session_free(s);
    hone_model_close(m);
}

/* More budget than sequences can ask for is for what is kept. */
static void room_for_more(void **state)
{
    hone_model *m = model_of(tm_new(tm_llama));
    hone_session *one = session_of(m, 1, 0, 0), *more;
    hone_session_memory use;
    hone_prefix_info info;
    hone_session_get_memory(one, &use);
    more = session_of(m, 1, 0, 10 * use.cache_budget_bytes);
    for (int k = 0; k < 2; k++) {
        hone_session *s = k ? more : one;
        int32_t back = 0;
        for (int32_t i = 0; i < 8; i++) {
            tm_run(s, 0, ids + i, N - 8, NULL);
            must(hone_seq_keep(s, 0, NULL));
            must(hone_seq_truncate(s, 0, 0, NULL));
        }
        for (int32_t i = 0; i < 8; i++) {
            int32_t kept;
            must(hone_seq_match(s, 0, ids + i, N - 8, &kept, NULL));
            must(hone_seq_truncate(s, 0, 0, NULL));
            back += kept == 256;
        }
        hone_session_prefix_info(s, &info);
        assert_int_equal(back, k ? 8 : 1);
        assert_true((info.n_evicted == 0) == (k == 1));
    }
    hone_session_free(one), hone_session_free(more);
    hone_model_close(m);
}

/* A sequence that goes back to a copy of itself needs what it holds, and what is kept of it, no more. */
static void gives_way_to_a_restore(void **state)
{
    hone_model *m = model_of(tm_new(tm_llama));
    hone_session *s = session_of(m, 1, 0, 0);
    hone_snapshot *copy;
    float want[16], got[16];
    tm_run(s, 0, ids, 200, NULL);
    must(hone_seq_snapshot(s, 0, &copy, NULL));
    must(hone_seq_keep(s, 0, NULL));
    must(hone_seq_restore(s, 0, copy, NULL));
    tm_run(s, 0, ids + 200, 1, got);
    must(hone_seq_truncate(s, 0, 0, NULL));
    tm_run(s, 0, ids, 200, NULL);
    tm_run(s, 0, ids + 200, 1, want);
    assert_memory_equal(got, want, sizeof got);
    hone_snapshot_free(copy);
    hone_session_free(s);
    hone_model_close(m);
}

/* A place that was kept has the state that the sequence goes on with: it is forgotten before a copy would lack
 * memory. */
static void gives_way_to_one_more(void **state)
{
    static const rw_shape seven = R7(32, 8, 48, 16, 3, 4, 8, 4, 12);
    hone_model *m = model_of(rw_new(&seven));
    hone_session *roomy = session_of(m, 1, 0, 0), *s;
    hone_session_memory use;
    hone_prefix_info info;
    float want[16], got[16];
    tm_run(roomy, 0, ids, 100, NULL);
    hone_session_get_memory(roomy, &use);
    s = session_of(m, 1, 2, use.cache_used_bytes);
    tm_run(s, 0, ids, 100, NULL);
    must(hone_seq_keep(s, 0, NULL));
    tm_run(s, 0, ids + 100, 1, got);
    tm_run(roomy, 0, ids + 100, 1, want);
    assert_memory_equal(got, want, sizeof got);
    hone_session_prefix_info(s, &info);
    assert_int_equal(info.n_evicted, 1);
    hone_session_free(s), hone_session_free(roomy);
    hone_model_close(m);
}

/* A call of a whole prompt needs of windows what they hold, and not a page for each of its positions. */
static void windows_within_a_call(void **state)
{
    hone_model *m = model_of(tm_new(tm_gemma3));
    hone_session *roomy = session_of(m, 1, 0, 0), *s;
    hone_session_memory use;
    hone_sequence_cost cost;
    hone_error err = { 0 };
    const float *got, *want;
    must(hone_model_sequence_cost(m, CTX, HONE_CACHE_F16, &cost, NULL));
    s = session_of(m, 1, 0, cost.bytes);
    must(hone_append(roomy, 0, ids, N - 1, &want, NULL));
    if (hone_append(s, 0, ids, N - 1, &got, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_memory_equal(got, want, 16 * sizeof *got);
    must(hone_append(roomy, 0, ids + N - 1, 1, &want, NULL));
    must(hone_append(s, 0, ids + N - 1, 1, &got, NULL));
    assert_memory_equal(got, want, 16 * sizeof *got);
    must(hone_seq_truncate(s, 0, 0, NULL));
    must(hone_append(s, 0, ids, N, &got, NULL)); /* all of it came back */
    assert_memory_equal(got, want, 16 * sizeof *got);
    hone_session_get_memory(s, &use);
    assert_true(use.cache_used_bytes < use.cache_budget_bytes);
    hone_session_free(s), hone_session_free(roomy);
    hone_model_close(m);
}

/* Checkpoints hold pages of windows beside what a sequence holds: they go where a context that was granted needs them,
 * and answers stay what they are. how: 0 appended one by one, 1 in pieces, 2 as batches. */
static void checkpoints_give_way(void **state)
{
    hone_model *m = model_of(tm_new(tm_gemma3));
    hone_sequence_cost cost;
    must(hone_model_sequence_cost(m, CTX, HONE_CACHE_F16, &cost, NULL));
    for (int how = 0; how < 3; how++) {
        hone_session *roomy = session_of(m, 1, 0, 0), *s = session_of(m, 1, 0, cost.bytes);
        hone_error err = { 0 };
        float got[16], want[16];
        for (int32_t at = 0, n; at < N; at += n) {
            const float *y = got;
            n = how == 1 ? 30 : 1;
            for (int32_t i = at; i < at + n; i++) tm_run(roomy, 0, ids + i, 1, want);
            const hone_token t = { ids[at], at, 0, true };
            hone_status st = how < 2 ? hone_append(s, 0, ids + at, n, &y, &err) : hone_run_batch(s, &t, 1, got, &err);
            if (st != HONE_OK) fail_msg("way %d, position %d: %s", how, at, err.message);
            assert_memory_equal(y, want, sizeof want);
            if (at % 20 == 0) must(hone_seq_checkpoint(s, 0, NULL));
        }
        hone_session_free(s), hone_session_free(roomy);
    }
    hone_model_close(m);
}

/* What a sequence matched by the tree goes on with may be other ids: a checkpoint behind that place is of the old. */
static void checkpoints_behind_a_match(void **state)
{
    static const rw_shape seven = R7(32, 8, 48, 16, 3, 4, 8, 4, 12);
    hone_model *m = model_of(rw_new(&seven));
    hone_session *s = session_of(m, 1, 2, 0);
    int32_t kept;
    tm_run(s, 0, ids, 128, NULL);
    must(hone_seq_keep(s, 0, NULL));
    tm_run(s, 0, ids + 128, 72, NULL);
    must(hone_seq_checkpoint(s, 0, NULL));
    must(hone_seq_match(s, 0, ids, 200, &kept, NULL));
    assert_int_equal(kept, 128);
    tm_run(s, 0, ids, 80, NULL); /* others than stood there */
    assert_int_equal(hone_seq_truncate(s, 0, 200, NULL), HONE_E_UNSUPPORTED);
    assert_int_equal(hone_seq_length(s, 0), 208);
    hone_session_free(s);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pages),
        cmocka_unit_test(places),
        cmocka_unit_test(gives_way),
        cmocka_unit_test(two_places_of_a_page_give_way),
        cmocka_unit_test(room_for_more),
        cmocka_unit_test(gives_way_to_a_restore),
        cmocka_unit_test(gives_way_to_one_more),
        cmocka_unit_test(checkpoints_behind_a_match),
        cmocka_unit_test(windows_within_a_call),
        cmocka_unit_test(checkpoints_give_way),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
