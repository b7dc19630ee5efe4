/* The calls of schedulers and log-probabilities: a part of api_calls.h, which has what they work on. */
#ifndef HN_API_CALLS_SCHEDULER_H
#define HN_API_CALLS_SCHEDULER_H

static uint64_t no_time(void *arg) { return 1; }

/* A request is asked for, and cancelled. */
static uint64_t ask_scheduler(void)
{
    static const int32_t ids[] = { 5, 6 };
    uint64_t id;
    hone_error e;
    hone_request r = { .prompt = ids, .n_prompt = 2, .max_tokens = 1, .n_logprobs = -1 };
    hone_sampler_defaults(&r.sampling);
    must(hone_scheduler_submit(scheduler, &r, &id, &e), &e);
    return id;
}
static void clear_scheduler(uint64_t id)
{
    bool worked = true;
    hone_scheduler_hold(scheduler, id, false);
    hone_scheduler_cancel(scheduler, id);
    while (worked) assert_int_equal(hone_scheduler_step(scheduler, &worked, NULL), HONE_OK);
}

static void c_logprobs(void)
{
    const float logits[] = { 1, 2, 3, 0 };
    float logprob = 7;
    hone_logprob top[2];
    STATUS(hone_logprobs(NEED("logits", logits), COUNT("n_vocab", 4), TRUST("id", 1), NEED("logprob", &logprob),
                         NEED("top", top), RANGE("n_top", 2), aw->err));
    EMPTY("logprob", logprob == 0);
}
static void c_scheduler_new(void)
{
    hone_scheduler *out = (hone_scheduler *)1;
    hone_scheduler_params p = { .session = TRUST("p->session", ((hone_session_params){ .n_ctx = 32, .n_chunk = 8 })),
                                .max_queue = RANGE("p->max_queue", 4),
                                .now = MAY("p->now", no_time),
                                .now_arg = MAY("p->now_arg", (void *)ctx),
                                .fixed_prefill = LOW("p->fixed_prefill", 4) };
    STATUS(hone_scheduler_new(NEED("out", &out), NEED("ctx", ctx), NEED("m", model), MAY("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_scheduler_free(out);
}
static void c_scheduler_beside(void)
{
    hone_scheduler *s;
    const hone_scheduler_params p = { .session = { .n_ctx = 32, .n_chunk = 8 } };
    assert_int_equal(hone_scheduler_new(&s, ctx, model, &p, NULL), HONE_OK);
    hone_scheduler_beside(MAY("s", s), MAY("other", scheduler));
    NEUTRAL(false);
    hone_scheduler_free(s);
}
static void c_scheduler_free(void)
{
    hone_scheduler *s;
    const hone_scheduler_params p = { .session = { .n_ctx = 32, .n_chunk = 8 } };
    assert_int_equal(hone_scheduler_new(&s, ctx, model, &p, NULL), HONE_OK);
    hone_scheduler_free(MAY("s", s));
    NEUTRAL(false);
    if (aw_is("s")) hone_scheduler_free(s);
}
static void c_scheduler_submit(void)
{
    const int32_t prompt[] = { 5, RANGE("r->prompt[1]", 6) };
    const hone_bias bias[] = { { RANGE("r->bias[0].id", 1), 1 } };
    hone_adapter *list[] = { NEED("r->adapters[0]", adapter) };
    const float scales[] = { 2 };
    uint64_t id = 7;
    hone_request r = { .prompt = NEED("r->prompt", prompt),
                       .n_prompt = COUNT("r->n_prompt", 2),
                       .mark = RANGE("r->mark", 1),
                       .n_choices = RANGE("r->n_choices", 1),
                       .max_tokens = TRUST("r->max_tokens", 1),
                       .bias = NEED("r->bias", bias),
                       .n_bias = TRUST("r->n_bias", 1),
                       .n_logprobs = TRUST("r->n_logprobs", 1),
                       .scope = ANY("r->scope", (uint64_t)1),
                       .client = ANY("r->client", (uint64_t)1),
                       .adapters = NEED("r->adapters", list),
                       .scales = MAY("r->scales", scales),
                       .n_adapters = COUNT("r->n_adapters", 1) };
    hone_sampler_defaults(&r.sampling);
    STATUS(hone_scheduler_submit(NEED("s", scheduler), NEED("r", &r), NEED("id", &id), aw->err));
    EMPTY("id", id == 0);
    if (!aw->failed) clear_scheduler(id);
}
static void c_scheduler_cancel(void)
{
    uint64_t id = ask_scheduler();
    NEUTRAL(!hone_scheduler_cancel(NEED("s", scheduler), RANGE("id", id)));
    clear_scheduler(id);
}
static void c_scheduler_hold(void)
{
    uint64_t id = ask_scheduler();
    NEUTRAL(!hone_scheduler_hold(NEED("s", scheduler), RANGE("id", id), false));
    clear_scheduler(id);
}
static void c_scheduler_step(void)
{
    bool worked = true;
    uint64_t id = ask_scheduler();
    STATUS(hone_scheduler_step(NEED("s", scheduler), NEED("worked", &worked), aw->err));
    EMPTY("worked", !worked);
    clear_scheduler(id);
}
static void c_scheduler_get_stats(void)
{
    hone_scheduler_stats out;
    memset(&out, 1, sizeof out);
    hone_scheduler_get_stats(NEED("s", scheduler), NEED("out", &out));
    NEUTRAL(aw_is("s") || aw_is("out"));
    EMPTY("out", ZERO(out));
}
static void c_scheduler_slot(void)
{
    hone_slot_info out;
    memset(&out, 1, sizeof out);
    NEUTRAL(!hone_scheduler_slot(NEED("s", scheduler), RANGE("slot", 1), NEED("out", &out)));
    EMPTY("out", ZERO(out));
}
static void c_scheduler_snapshot(void)
{
    hone_snapshot *out = (hone_snapshot *)1;
    STATUS(hone_scheduler_snapshot(NEED("s", scheduler), RANGE("slot", 1), NEED("out", &out), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_snapshot_free(out);
}
static void c_scheduler_erase(void)
{
    int32_t n = 7;
    STATUS(hone_scheduler_erase(NEED("s", scheduler), RANGE("slot", 1), NEED("n", &n), aw->err));
    EMPTY("n", n == 0);
}
/* What a session had with both adapters. */
static void c_scheduler_restore(void)
{
    hone_snapshot *with;
    hone_adapter *both[] = { adapter, adapter };
    prefill(0);
    assert_int_equal(hone_session_set_adapters(session, both, NULL, 2, NULL), HONE_OK);
    prefill(2);
    assert_int_equal(hone_seq_snapshot(session, 0, &with, NULL), HONE_OK);
    prefill(0);
    assert_int_equal(hone_session_set_adapters(session, NULL, NULL, 0, NULL), HONE_OK);

    hone_adapter *list[] = { adapter, NEED("adapters[1]", adapter) };
    const float scales[] = { 1, RANGE("scales[1]", 1.0f) };
    STATUS(hone_scheduler_restore(NEED("s", scheduler), RANGE("slot", 1), NEED("snap", with), NEED("adapters", list),
                                  MAY("scales", scales), COUNT("n_adapters", 2), aw->err));
    hone_snapshot_free(with);
}
static void c_scheduler_n_ctx(void) { NEUTRAL(!hone_scheduler_n_ctx(NEED("s", scheduler))); }

#endif
