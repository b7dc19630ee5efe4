/* Where the memory of sequences is short: what is brought back takes the place of checkpoints, and texts that fit alone
 * are not refused for their neighbours. Each answer is the one with memory for all. */
#include "engine/scheduler.h"
#include "tiny_rwkv.h"

enum { N_CTX = 600, V = 16 };

static hone_context *ctx;
static hone_model *windowed, *recurrent, *plain;
static int32_t ids[N_CTX];

static uint64_t cost(const hone_model *m, int32_t n_pos)
{
    hone_error err = { 0 };
    hone_sequence_cost c;
    if (hone_model_sequence_cost(m, n_pos, HONE_CACHE_F16, &c, &err)) fail_msg("%s", err.message);
    return c.bytes;
}

static hone_session *session_of(const hone_model *m, hone_session_params p)
{
    hone_error err = { 0 };
    hone_session *s;
    if (hone_session_new(&s, ctx, m, &p, &err)) fail_msg("%s", err.message);
    return s;
}

/* Copies the logits of what is appended. */
static void append(hone_session *s, int32_t seq, const int32_t *at, int32_t n, float *y)
{
    hone_error err = { 0 };
    const float *logits;
    if (hone_append(s, seq, at, n, &logits, &err)) fail_msg("%s", err.message);
    if (y) memcpy(y, logits, V * sizeof *y);
}

/* ---- what is brought back --------------------------------------------------------------------------- */

/* As many checkpoints of sequence 0 as are wanted, each a piece further. */
static void mark(hone_session *s, int32_t n, int32_t each)
{
    for (int32_t k = 0; k < n; k++) {
        append(s, 0, ids, each, NULL);
        assert_int_equal(hone_seq_checkpoint(s, 0, NULL), HONE_OK);
    }
}

static void restores(const hone_model *m, int32_t n_check, int32_t each, uint64_t budget)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    hone_session_memory use;
    float want[V], got[V], other[V], after[V];
    hone_session_params p = { .n_ctx = N_CTX, .n_seq = 3, .n_chunk = 64, .n_checkpoints = n_check };
    hone_session *s = session_of(m, p);
    append(s, 1, ids, 200, NULL);
    assert_int_equal(hone_seq_snapshot(s, 1, &snap, &err), HONE_OK);
    append(s, 1, ids + 200, 1, want);
    mark(s, n_check, each);
    append(s, 0, ids + 7, 1, other);
    hone_session_free(s);

    p.cache_budget = budget;
    s = session_of(m, p);
    mark(s, n_check, each);
    hone_session_get_memory(s, &use);
    assert_true(use.cache_used_bytes + cost(m, 200) > budget); /* else nothing is tried here */
    if (hone_seq_restore(s, 1, snap, &err)) fail_msg("%s", err.message);
    append(s, 1, ids + 200, 1, got);
    append(s, 0, ids + 7, 1, after);
    assert_memory_equal(got, want, sizeof want);
    assert_memory_equal(after, other, sizeof other);

    /* what does not fit even so takes no checkpoint with it */
    hone_session_params two = p;
    two.cache_budget = budget - cost(m, 200);
    hone_session_free(s);
    s = session_of(m, two);
    mark(s, n_check < 3 ? n_check : 3, each);
    hone_session_get_memory(s, &use);
    uint64_t before = use.cache_used_bytes;
    if (hone_seq_restore(s, 1, snap, &err) == HONE_E_NOMEM) {
        hone_session_get_memory(s, &use);
        assert_int_equal(use.cache_used_bytes, before);
    }
    hone_session_free(s);
    hone_snapshot_free(snap);
}

static void checkpoints_go_for_what_is_restored(void **state)
{
    restores(windowed, 8, 40, 2 * cost(windowed, 256));
    restores(recurrent, 6, 5, 3 * cost(recurrent, 256));
}

/* A sequence that does not fit leaves the others their checkpoints. */
static void nothing_goes_in_vain(void **state)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    int32_t kept;
    hone_session *s = session_of(recurrent, (hone_session_params){ .n_seq = 1 });
    append(s, 0, ids, 20, NULL);
    assert_int_equal(hone_seq_snapshot(s, 0, &snap, &err), HONE_OK);
    hone_session_free(s);
    s = session_of(recurrent,
                   (hone_session_params){ .n_seq = 2, .n_checkpoints = 4, .cache_budget = cost(recurrent, 9) });
    append(s, 0, ids, 4, NULL);
    assert_int_equal(hone_seq_checkpoint(s, 0, NULL), HONE_OK); /* of the state that it has: no bytes more */
    assert_int_equal(hone_seq_restore(s, 1, snap, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, "cache_budget"));
    assert_int_equal(hone_seq_rewind(s, 0, 4, &kept, &err), HONE_OK);
    assert_int_equal(kept, 4);
    assert_int_equal(s->mem->checkpoint[0].pos, 4);
    assert_int_equal(s->mem->checkpoint[0].seq, 0);
    hone_session_free(s);
    hone_snapshot_free(snap);
}

/* The same of a slot, beside one that answers and has checkpoints of its prompt. */
static void slots_are_restored_beside_answers(void **state)
{
    hone_error err = { 0 };
    hone_scheduler *s;
    hone_snapshot *snap;
    hone_scheduler_stats st;
    uint64_t id;
    bool worked = true;
    int32_t n;
    const hone_scheduler_params p = { .session = { .n_ctx = N_CTX,
                                                   .n_seq = 2,
                                                   .n_chunk = 64,
                                                   .n_checkpoints = 16,
                                                   .cache_budget = 2 * cost(windowed, N_CTX) } };
    if (hone_scheduler_new(&s, ctx, windowed, &p, &err)) fail_msg("%s", err.message);
    hone_request r = { .prompt = ids, .n_prompt = 200, .max_tokens = 1, .n_logprobs = -1, .slot_plus_1 = 2 };
    hone_sampler_defaults(&r.sampling);
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_OK);
    while (worked) assert_int_equal(hone_scheduler_step(s, &worked, &err), HONE_OK);
    assert_int_equal(hone_scheduler_snapshot(s, 1, &snap, &err), HONE_OK);
    assert_int_equal(hone_scheduler_erase(s, 1, &n, &err), HONE_OK);
    hone_request other = { .prompt = ids + 30, .n_prompt = 520, .max_tokens = 50, .n_logprobs = -1 };
    other.mark = 500, other.slot_plus_1 = 1, other.ignore_eog = true;
    hone_sampler_defaults(&other.sampling);
    assert_int_equal(hone_scheduler_submit(s, &other, &id, &err), HONE_OK);
    for (int i = 0; i < 20; i++) assert_int_equal(hone_scheduler_step(s, &worked, &err), HONE_OK);
    hone_scheduler_get_stats(s, &st);
    assert_int_equal(st.n_running, 1);
    assert_true(st.cache_used + hone_snapshot_bytes(snap) > st.cache_total);
    if (hone_scheduler_restore(s, 1, snap, NULL, NULL, 0, &err)) fail_msg("%s", err.message);
    hone_snapshot_free(snap);
    hone_scheduler_free(s);
}

/* ---- texts ------------------------------------------------------------------------------------------- */

enum { N_TEXT = 8, WIDTH = 64 };

static int32_t few_rows(void *arg, int32_t last) { return 7; }

static void texts_of(const hone_model *m, const int32_t *len, int32_t n, hone_session_params small, const char *what)
{
    hone_error err = { 0 };
    hone_text_ids t[N_TEXT];
    static float want[N_TEXT * WIDTH], got[N_TEXT * WIDTH];
    int32_t w = hone_embed_width(m, HONE_POOL_MEAN, NULL);
    assert_true(w > 0 && w <= WIDTH && n <= N_TEXT);
    for (int32_t i = 0; i < n; i++) t[i] = (hone_text_ids){ ids + i, len[i] };
    hone_session *s = session_of(m, (hone_session_params){ .n_ctx = N_CTX, .n_seq = N_TEXT, .n_chunk = N_CTX });
    hone_embed_params p = { .pooling = HONE_POOL_MEAN };
    for (int32_t i = 0; i < n; i++)
        if (hone_embed(s, t + i, 1, &p, want + i * w, &err)) fail_msg("%s: %s", what, err.message);
    hone_session_free(s);
    for (int k = 0; k < 2; k++) {
        p.rows = k ? few_rows : NULL;
        s = session_of(m, small);
        for (int32_t i = 0; i < n; i++) /* each fits alone */
            if (hone_embed(s, t + i, 1, &p, got + i * w, &err)) fail_msg("%s: %d alone: %s", what, i, err.message);
        memset(got, 0, sizeof got);
        if (hone_embed(s, t, n, &p, got, &err)) fail_msg("%s: %s", what, err.message);
        assert_memory_equal(got, want, (size_t)(n * w) * sizeof *want);
        for (int32_t i = 0; i < small.n_seq; i++) assert_int_equal(hone_seq_length(s, i), 0);
        hone_session_free(s);
    }
}

static void texts_that_fit_alone_fit(void **state)
{
    static const int32_t even[N_TEXT] = { 60, 60, 60, 60, 60, 60, 60, 60 },
                         odd[N_TEXT] = { 256, 20, 3, 200, 64, 65, 1, 9 };
    hone_session_params p = { .n_ctx = 256, .n_seq = N_TEXT, .n_chunk = 512, .cache_budget = cost(plain, 256) };
    texts_of(plain, even, N_TEXT, p, "eight in the room of four");
    texts_of(plain, odd, N_TEXT, p, "short ones beside long ones");
    p.n_chunk = 100;
    p.n_seq = 2;
    texts_of(plain, odd, N_TEXT, p, "in parts");
    p.cache_budget = cost(windowed, 256);
    texts_of(windowed, odd, N_TEXT, p, "with windows");
    p.n_chunk = 512; /* more rows at once than a window keeps pages of */
    texts_of(windowed, odd, N_TEXT, p, "with windows, all of a text at once");
    p.n_seq = N_TEXT;
    p.cache_budget = 2 * cost(recurrent, 256);
    texts_of(recurrent, odd, N_TEXT, p, "states");
}

/* What does not fit alone is refused, and leaves nothing. */
static void texts_that_do_not_fit_are_refused(void **state)
{
    hone_error err = { 0 };
    float out[2 * WIDTH];
    const hone_text_ids t[2] = { { ids, 20 }, { ids, 200 } };
    const hone_embed_params p = { .pooling = HONE_POOL_MEAN };
    hone_session *s = session_of(
        plain, (hone_session_params){ .n_ctx = 256, .n_seq = 2, .n_chunk = 64, .cache_budget = cost(plain, 128) });
    assert_int_equal(hone_embed(s, t, 2, &p, out, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, "cache_budget"));
    assert_int_equal(hone_seq_length(s, 0), 0);
    assert_int_equal(hone_seq_length(s, 1), 0);
    assert_int_equal(hone_embed(s, t, 1, &p, out, &err), HONE_OK);
    hone_session_free(s);
}

static int begin(void **state)
{
    if (tm_make_dir(state)) return -1;
    for (int i = 0; i < N_CTX; i++) ids[i] = (int32_t)(hn_mix64((uint64_t)i) % V);
    ctx = tm_context(NULL, 1);
    tm_shape g = tm_gemma3;
    g.window = 70;
    g.L = 7;
    tiny *t[3] = { tm_new(g), rw_new(&rw_vec7), tm_new(tm_llama) };
    windowed = tm_open(t[0]);
    recurrent = tm_open(t[1]);
    plain = tm_open(t[2]);
    for (int i = 0; i < 3; i++) tm_free(t[i]);
    return 0;
}

static int end(void **state)
{
    hone_model_close(windowed);
    hone_model_close(recurrent);
    hone_model_close(plain);
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_go_for_what_is_restored), cmocka_unit_test(nothing_goes_in_vain),
        cmocka_unit_test(slots_are_restored_beside_answers),   cmocka_unit_test(texts_that_fit_alone_fit),
        cmocka_unit_test(texts_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
