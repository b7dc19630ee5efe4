/* The calls of sessions, sequences, embeddings, snapshots and adapters: a part of api_calls.h, which has what they
 * work on. */
#ifndef HN_API_CALLS_SESSION_H
#define HN_API_CALLS_SESSION_H

static bool stop_never(void *arg) { return false; }
static void hear_nothing(void *arg, const hone_profile_event *e) {}

static void c_session_new(void)
{
    hone_session *out = (hone_session *)1;
    hone_session_params p = { .n_ctx = RANGE("params->n_ctx", 16),
                              .n_seq = RANGE("params->n_seq", 1),
                              .n_chunk = RANGE("params->n_chunk", 4),
                              .cache = RANGE("params->cache", HONE_CACHE_F32),
                              .n_checkpoints = RANGE("params->n_checkpoints", 1),
                              .cache_budget = ANY("params->cache_budget", (uint64_t)0),
                              .n_kept_states = RANGE("params->n_kept_states", 1) };
    STATUS(hone_session_new(NEED("out", &out), NEED("ctx", ctx), NEED("m", model), MAY("params", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_session_free(out);
}
static void c_session_free(void)
{
    hone_session *s = tm_session(ctx, model, 16, 1, 4, HONE_CACHE_F16);
    hone_session_free(MAY("s", s));
    NEUTRAL(false);
    if (aw_is("s")) hone_session_free(s);
}
static void c_decode(void)
{
    static float logits[DF_N];
    prefill(0);
    hone_token t = { RANGE("tokens->id", 5), RANGE("tokens->pos", 0), RANGE("tokens->seq", 0), true };
    STATUS(hone_decode(NEED("s", session), NEED("tokens", &t), RANGE("n_tok", 1), NEED("logits", logits), aw->err));
}
static void c_prefill(void)
{
    const float *logits = (const float *)1;
    prefill(0);
    int32_t ids[] = { 5, RANGE("tokens[1]", 6) };
    STATUS(hone_prefill(NEED("s", session), NEED("tokens", ids), RANGE("n_tok", 2), NEED("logits", &logits), aw->err));
    EMPTY("logits", !logits);
}
static void c_run_batch(void)
{
    static float logits[DF_N];
    prefill(0);
    hone_token t = { RANGE("tokens->id", 5), RANGE("tokens->pos", 0), RANGE("tokens->seq", 0), true };
    STATUS(hone_run_batch(NEED("s", session), NEED("tokens", &t), RANGE("n_tok", 1), NEED("logits", logits), aw->err));
}
static void c_append(void)
{
    const float *logits = (const float *)1;
    prefill(0);
    int32_t ids[] = { 5, RANGE("ids[1]", 6) };
    STATUS(hone_append(NEED("s", session), RANGE("seq", 0), NEED("ids", ids), RANGE("n_tok", 2),
                       NEED("logits", &logits), aw->err));
    EMPTY("logits", !logits);
}
static void c_seq_sync(void)
{
    const float *logits = (const float *)1;
    int32_t ids[] = { 5, RANGE("ids[1]", 6) }, kept = 77;
    prefill(0);
    STATUS(hone_seq_sync(NEED("s", session), RANGE("seq", 0), NEED("ids", ids), RANGE("n", 2), NEED("kept", &kept),
                         NEED("logits", &logits), aw->err));
    EMPTY("logits", !logits);
    EMPTY("kept", !kept);
}
static void c_seq_match(void)
{
    const int32_t ids[] = { 5, 6 };
    int32_t kept = 77;
    prefill(2);
    STATUS(hone_seq_match(NEED("s", session), RANGE("seq", 0), NEED("ids", ids), RANGE("n", 2), NEED("kept", &kept),
                          aw->err));
    EMPTY("kept", !kept);
}
static void c_embed_width(void)
{
    hone_pooling which = HONE_POOL_RANK;
    int32_t n =
        hone_embed_width(NEED("m", model), (hone_pooling)RANGE("pooling", HONE_POOL_MEAN), MAY("which", &which));
    NEUTRAL(n == 0 && (aw_is("which") || which == HONE_POOL_FILE));
}
static int32_t rows_of_pass(void *arg, int32_t n_last) { return 1; }
static void c_embed(void)
{
    static float out[DF_N];
    const int32_t ids[] = { RANGE("texts->ids[0]", 5) };
    const hone_text_ids t = { NEED("texts->ids", ids), RANGE("texts->n", 1) };
    const hone_embed_params p = { .pooling = (hone_pooling)RANGE("p->pooling", HONE_POOL_MEAN),
                                  .rows = MAY("p->rows", rows_of_pass),
                                  .rows_arg = MAY("p->rows_arg", (void *)ctx) };
    prefill(0);
    STATUS(hone_embed(NEED("s", session), NEED("texts", &t), RANGE("n_text", 1), NEED("p", &p), NEED("out", out),
                      aw->err));
}
static void c_rank_tokenize(void)
{
    int32_t *ids = (int32_t *)1;
    size_t n = 77;
    STATUS(hone_rank_tokenize(NEED("m", model), MAY("instruction", "x"), NEED("query", "ab"),
                              RANGE("n_query", (size_t)2), NEED("document", "abc"), RANGE("n_document", (size_t)3),
                              NEED("ids", &ids), NEED("n", &n), aw->err));
    EMPTY("ids", !ids);
    EMPTY("n", n == 0);
    if (!aw->failed) hone_free(ids);
}
static void c_session_set_abort(void)
{
    hone_session_set_abort(NEED("s", session), MAY("fn", stop_never), MAY("arg", ctx));
    NEUTRAL(aw_is("s"));
    hone_session_set_abort(session, NULL, NULL);
}
static void c_session_set_profile(void)
{
    hone_session_set_profile(NEED("s", session), MAY("fn", hear_nothing), MAY("arg", ctx));
    NEUTRAL(aw_is("s"));
    hone_session_set_profile(session, NULL, NULL);
}
static void c_session_n_ctx(void) { NEUTRAL(!hone_session_n_ctx(NEED("s", session))); }
static void c_seq_length(void) { NEUTRAL(hone_seq_length(NEED("s", session), RANGE("seq", 0)) == -1); }
static void c_seq_truncate(void)
{
    prefill(2);
    STATUS(hone_seq_truncate(NEED("s", session), RANGE("seq", 0), RANGE("n_pos", 1), aw->err));
    if (aw->failed) assert_int_equal(hone_seq_length(session, 0), 2);
}
static void c_seq_copy(void)
{
    prefill(2);
    STATUS(hone_seq_copy(NEED("s", session), RANGE("dst", 1), RANGE("src", 0), aw->err));
}
static void c_seq_checkpoint(void) { STATUS(hone_seq_checkpoint(NEED("s", session), RANGE("seq", 0), aw->err)); }
static void c_seq_rewind(void)
{
    int32_t kept = 77;
    prefill(2);
    STATUS(hone_seq_rewind(NEED("s", session), RANGE("seq", 0), LOW("n_pos", 1), NEED("kept", &kept), aw->err));
    EMPTY("kept", kept == -1);
    if (aw->failed) assert_int_equal(hone_seq_length(session, 0), 2);
}
static void c_seq_snapshot(void)
{
    hone_snapshot *out = (hone_snapshot *)1;
    STATUS(hone_seq_snapshot(NEED("s", session), RANGE("seq", 0), NEED("out", &out), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_snapshot_free(out);
}
static void c_seq_restore(void)
{
    prefill(1);
    STATUS(hone_seq_restore(NEED("s", session), RANGE("seq", 0), NEED("snap", snapshot), aw->err));
    assert_int_equal(hone_seq_length(session, 0), aw->failed ? 1 : 2);
}
static void c_snapshot_save(void)
{
    STATUS(hone_snapshot_save(NEED("snap", snapshot), NEED("path", tm_path("walk.snapshot")), aw->err));
}
static void c_snapshot_load(void)
{
    hone_snapshot *out = (hone_snapshot *)1;
    assert_int_equal(hone_snapshot_save(snapshot, tm_path("walk.snapshot"), NULL), HONE_OK);
    STATUS(hone_snapshot_load(NEED("out", &out), NEED("m", model), NEED("path", tm_path("walk.snapshot")), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_snapshot_free(out);
}
static void c_snapshot_free(void)
{
    hone_snapshot *x;
    assert_int_equal(hone_seq_snapshot(session, 0, &x, NULL), HONE_OK);
    hone_snapshot_free(MAY("snap", x));
    NEUTRAL(false);
    if (aw_is("snap")) hone_snapshot_free(x);
}
static void c_snapshot_length(void) { NEUTRAL(!hone_snapshot_length(NEED("snap", snapshot))); }
static void c_snapshot_bytes(void) { NEUTRAL(!hone_snapshot_bytes(NEED("snap", snapshot))); }
static void c_session_save(void) { STATUS(hone_session_save(NEED("s", session), NEED("path", state_path), aw->err)); }
static void c_session_load(void)
{
    prefill(0);
    assert_int_equal(hone_session_save(session, state_path, NULL), HONE_OK);
    STATUS(hone_session_load(NEED("s", session), NEED("path", state_path), aw->err));
}
static void c_session_get_memory(void)
{
    hone_session_memory out;
    memset(&out, 1, sizeof out);
    hone_session_get_memory(NEED("s", session), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.cache_bytes);
    EMPTY("out", ZERO(out));
}
static void c_model_sequence_cost(void)
{
    hone_sequence_cost out;
    memset(&out, 1, sizeof out);
    STATUS(hone_model_sequence_cost(NEED("m", model), RANGE("n_pos", 8), RANGE("cache", HONE_CACHE_F16),
                                    NEED("out", &out), aw->err));
    EMPTY("out", ZERO(out));
}
static void c_session_memory_use(void)
{
    hone_memory out;
    memset(&out, 1, sizeof out);
    hone_session_memory_use(NEED("s", session), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.cache.reserved);
    EMPTY("out", ZERO(out));
}

static void c_adapter_open(void)
{
    hone_adapter *out = (hone_adapter *)1;
    STATUS(hone_adapter_open(NEED("out", &out), NEED("m", model), NEED("path", adapter_path), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_adapter_close(out);
}
static void c_adapter_close(void)
{
    hone_adapter *a;
    assert_int_equal(hone_adapter_open(&a, model, adapter_path, NULL), HONE_OK);
    hone_adapter_close(MAY("a", a));
    NEUTRAL(false);
    if (aw_is("a")) hone_adapter_close(a);
}
static void c_adapter_get_info(void)
{
    hone_adapter_info out;
    memset(&out, 1, sizeof out);
    hone_adapter_get_info(NEED("a", adapter), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.path);
    EMPTY("out", ZERO(out));
}
static void c_adapter_convert(void)
{
    STATUS(hone_adapter_convert(NEED("m", model), NEED("src", adapter_path), NEED("dst", out_path), false, aw->err));
}
static void c_session_set_adapters(void)
{
    hone_adapter *list[] = { adapter, NEED("adapters[1]", adapter) };
    float scales[] = { 1, RANGE("scales[1]", 2.0f) };
    prefill(0);
    STATUS(hone_session_set_adapters(NEED("s", session), NEED("adapters", list), MAY("scales", scales), COUNT("n", 2),
                                     aw->err));
    assert_int_equal(hone_session_adapters_hash(session) != 0, !aw->failed);
    assert_int_equal(hone_session_set_adapters(session, NULL, NULL, 0, NULL), HONE_OK);
}
static void c_session_adapters_hash(void)
{
    prefill(0);
    assert_int_equal(hone_session_set_adapters(session, &adapter, NULL, 1, NULL), HONE_OK);
    NEUTRAL(!hone_session_adapters_hash(NEED("s", session)));
    assert_int_equal(hone_session_set_adapters(session, NULL, NULL, 0, NULL), HONE_OK);
}

#endif
