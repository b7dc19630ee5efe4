/* Who waits for whom, on a clock that counts rows and steps: short questions pass long ones, answers go on beside
 * prompts, clients come in turn; and what a scheduler refuses or cannot do, in the words and events of hone.h. */
#include "tiny_rwkv.h"
#include "engine/scheduler.h"
#include "slowed.h"

enum { LONG = SLOWED ? 2000 : 8000, LATE = SLOWED ? 600 : 4000 };
enum { MOST_ASKED = 24, SHORT = 40 };

typedef struct caller {
    uint64_t id, asked_at, first_at, last_at, longest_gap; /* ns */
    int n_tok, n_end, first_step;
    hone_end end;
    hone_status why;
} caller;

static caller callers[MOST_ASKED];
static int n_caller, n_ended, n_step, ends[MOST_ASKED];
static hone_scheduler *s, *other;                           /* on one clock */
static uint64_t row_ns, step_ns, disturbs_ns, disturbed_ns; /* what the next step takes beyond, and those so far */
static int32_t prompt[LONG + MOST_ASKED];

static uint64_t now(void *arg)
{
    hone_scheduler_stats n, o;
    static uint64_t rows;
    hone_scheduler_get_stats(s, &n);
    hone_scheduler_get_stats(other, &o);
    n.n_rows += o.n_rows, n.n_steps += o.n_steps;
    if (n.n_rows > rows) disturbed_ns += disturbs_ns, disturbs_ns = 0;
    rows = n.n_rows;
    return n.n_rows * row_ns + n.n_steps * step_ns + disturbed_ns;
}

static bool hear(void *arg, const hone_event *e)
{
    caller *c = arg;
    uint64_t t = now(NULL);
    assert_true(e->request == c->id && c->n_end == 0);
    if (e->kind == HONE_EVENT_TOKEN) {
        if (c->n_tok++ == 0) c->first_at = t, c->first_step = n_step;
        else if (t - c->last_at > c->longest_gap) c->longest_gap = t - c->last_at;
        c->last_at = t;
    }
    if (e->kind == HONE_EVENT_END) {
        c->n_end++;
        c->end = e->end;
        c->why = e->error ? e->error->code : HONE_OK;
        ends[n_ended++] = (int)(c - callers);
    }
    return true;
}

static void open_scheduler(hone_context *c, hone_model *m, hone_scheduler_params p)
{
    hone_error err = { 0 };
    memset(callers, 0, sizeof callers);
    n_caller = n_ended = n_step = 0;
    disturbed_ns = disturbs_ns = 0;
    s = other = NULL;
    p.now = now;
    if (hone_scheduler_new(&s, c, m, &p, &err)) fail_msg("%s", err.message);
}

static const int32_t *asks; /* the next prompt; NULL: each is another's from its first token on */

static hone_status ask(int32_t n_prompt, int32_t max_tokens, uint64_t client, hone_error *err)
{
    caller *c = &callers[n_caller];
    hone_request r = { .prompt = asks ? asks : prompt + n_caller,
                       .n_prompt = n_prompt,
                       .max_tokens = max_tokens,
                       .n_logprobs = -1,
                       .client = client };
    hone_sampler_defaults(&r.sampling);
    r.sampling.temp = 0;
    r.event = hear;
    r.arg = c;
    hone_status st = hone_scheduler_submit(s, &r, &c->id, err);
    c->asked_at = now(NULL);
    if (st == HONE_OK) n_caller++;
    return st;
}
static caller *must_ask(int32_t n_prompt, int32_t max_tokens, uint64_t client)
{
    hone_error err = { 0 };
    if (ask(n_prompt, max_tokens, client, &err)) fail_msg("%s", err.message);
    return &callers[n_caller - 1];
}
static bool step(void)
{
    hone_error err = { 0 };
    bool worked;
    n_step++;
    if (hone_scheduler_step(s, &worked, &err)) fail_msg("%s", err.message);
    return worked;
}
static void finish(void)
{
    while (step()) assert_true(n_step < 100000);
    for (int i = 0; i < n_caller; i++) assert_int_equal(callers[i].n_end, 1);
}

static hone_context *ctx;
static hone_model *rwkv, *llama, *gemma;

static hone_model *open_saved(tiny *t, const char *name)
{
    hone_error err = { 0 };
    hone_model *m;
    tm_save_raw(t, tm_path(name));
    tm_free(t);
    if (hone_model_open(&m, tm_path(name), &(hone_model_params){ .packed = "off" }, &err)) fail_msg("%s", err.message);
    return m;
}

static int begin(void **state)
{
    if (tm_make_dir(state)) return -1;
    for (int i = 0; i < LONG + MOST_ASKED; i++) prompt[i] = (int32_t)(hn_mix64((uint64_t)i) % 16);
    ctx = tm_context(NULL, 1);
    rwkv = open_saved(rw_new(&rw_vec7), "rwkv.gguf");
    llama = open_saved(tm_new(tm_llama), "llama.gguf");
    gemma = open_saved(tm_new(tm_gemma3), "gemma.gguf");
    return 0;
}
static int end(void **state)
{
    hone_model_close(rwkv);
    hone_model_close(llama);
    hone_model_close(gemma);
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

/* ---- fairness ------------------------------------------------------------------------- */

static void a_short_question_passes_long_ones(void **state)
{
    row_ns = 1000000, step_ns = 20000000;
    open_scheduler(ctx, rwkv, (hone_scheduler_params){ .session = { .n_ctx = LONG + 100 } });
    for (int i = 0; i < 4; i++) must_ask(LONG, 8, (uint64_t)i);
    for (int i = 0; i < 3; i++) step();
    caller *late = must_ask(SHORT, 8, 9);
    int asked = n_step;
    finish();
    assert_int_equal(late->first_step, asked + 1); /* half of a step is more than its prompt */
    for (int i = 0; i < 4; i++) {
        assert_true(late->first_at < callers[i].first_at);
        assert_int_equal(callers[i].n_tok, 8);
    }
    for (int i = 1; i < 4; i++) assert_true(callers[0].first_at <= callers[i].first_at); /* the oldest gets half */
    hone_scheduler_free(s);
}

/* 15 answers go on; a long prompt comes. cost: of a row and of a step; bound: of a gap between two tokens. */
static int gaps_beside_a_prompt(uint64_t row, uint64_t of_step, uint64_t bound)
{
    row_ns = row, step_ns = of_step;
    open_scheduler(ctx, rwkv, (hone_scheduler_params){ .session = { .n_ctx = LATE + 100, .n_seq = 16 } });
    for (int i = 0; i < 15; i++) must_ask(4, LATE / 10, (uint64_t)i);
    for (int i = 0; i < 20; i++) step();
    for (int i = 0; i < 15; i++) callers[i].longest_gap = 0;
    int asked = n_step;
    caller *late = must_ask(LATE, 2, 99);
    while (!late->n_end) step();
    for (int i = 0; i < 15; i++) {
        assert_int_equal(callers[i].n_end, 0);
        assert_true(callers[i].longest_gap > 0);
        if (callers[i].longest_gap > bound)
            fail_msg("a gap of %.1f ms, expected at most %.1f", (double)callers[i].longest_gap / 1e6,
                     (double)bound / 1e6);
    }
    int steps = late->first_step - asked;
    hone_scheduler_free(s);
    for (int i = 0; i < 15; i++) assert_true(callers[i].n_end == 1 && callers[i].end == HONE_END_CANCELLED);
    return steps;
}

static void answers_go_on_beside_a_prompt(void **state)
{
    /* rows are dear: twice a step of 70 ms is the bound, and most of it is used */
    int steps = gaps_beside_a_prompt(2000000, 40000000, 140000000);
    assert_in_range(steps, LATE / 35, LATE / 32 + 20);
    /* rows are cheap: 100 ms, of which a step uses what ends at a checkpoint */
    steps = gaps_beside_a_prompt(100000, 20000000, 100000000);
    assert_in_range(steps, LATE / 256, LATE / 256 + 8);
}

/* Steps until a prompt is answered. */
static int steps_of(caller *c)
{
    int from = n_step;
    while (!c->n_tok) step();
    return c->first_step - from;
}

/* What a step takes without any row is no cost of its rows, however few they are; one step that something disturbed
 * says little of the next ones. */
static void small_prompts_are_not_dear(void **state)
{
    row_ns = 500000, step_ns = 30000000;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 1000, .n_seq = 8 } });
    must_ask(4, 5, 0);
    finish();
    for (int i = 0; i < 3; i++) assert_int_equal(steps_of(must_ask(40, 1, 0)), 1);
    for (int i = 0; i < 3; i++) must_ask(4, 900, (uint64_t)i);
    for (int i = 0; i < 3; i++) step();
    assert_int_equal(steps_of(must_ask(120, 1, 9)), 1); /* 30 + 123 / 2 ms, of 100 */
    disturbs_ns = 900000000;
    must_ask(120, 1, 9);
    step();
    assert_int_equal(disturbs_ns, 0);
    assert_in_range(steps_of(must_ask(120, 1, 9)), 1, 2);
    assert_in_range(steps_of(must_ask(240, 1, 9)), 1, 3);
    for (int i = 0; i < 3; i++) assert_in_range(steps_of(must_ask(120, 1, 9)), 1, 2);
    assert_int_equal(steps_of(must_ask(120, 1, 9)), 1);
    hone_scheduler_free(s);
}

/* Narrow answers become wide ones in a step that something disturbs: it tells nothing of how long those are to wait. So
 * it is of the first prompt beside answers: what it says too much is forgotten with the second. */
static void disturbed_steps_tell_nothing(void **state)
{
    row_ns = 1000000, step_ns = 60000000;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 2000, .n_seq = 16 } });
    must_ask(4, 400, 0);
    for (int i = 0; i < 20; i++) step();
    for (int i = 1; i < 15; i++) must_ask(4, 400, (uint64_t)i);
    while (!callers[14].n_tok) step();
    disturbs_ns = 900000000;
    step();
    assert_int_equal(disturbs_ns, 0);
    callers[0].longest_gap = 0;
    assert_in_range(steps_of(must_ask(1500, 1, 99)), 1500 / 75, 1500 / 50);
    assert_in_range(callers[0].longest_gap, 75000000, 160000000); /* twice 60 + 15 */
    hone_scheduler_free(s);

    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 2000, .n_seq = 2 } });
    must_ask(4, 400, 0);
    for (int i = 0; i < 20; i++) step();
    disturbs_ns = 30000000000;
    must_ask(32, 1, 9);
    step();
    assert_int_equal(disturbs_ns, 0);
    assert_in_range(steps_of(must_ask(600, 1, 9)), 600 / 61, 600 / 61 + 4);
    hone_scheduler_free(s);
}

static void change_over(void)
{
    hone_scheduler *now = s;
    s = other;
    other = now;
}

/* A round of two models, as they come in turn. Rows of the first's step. */
static uint64_t round_of_both(void)
{
    hone_scheduler_stats before, after;
    hone_scheduler_get_stats(s, &before);
    step();
    hone_scheduler_get_stats(s, &after);
    change_over();
    step();
    change_over();
    return after.n_rows - before.n_rows;
}

/* Answers of one model wait for prompts of another no longer than for their own. */
static void answers_go_on_beside_other_models(void **state)
{
    enum { EACH = 1500 };
    row_ns = 1000000, step_ns = 10000000;
    const hone_scheduler_params p = { .session = { .n_ctx = 2 * EACH, .n_seq = 4 }, .now = now };
    hone_error err = { 0 };
    open_scheduler(ctx, llama, p);
    for (int i = 0; i < 3; i++) must_ask(4, 1000, (uint64_t)i);
    for (int i = 0; i < 20; i++) step();
    if (hone_scheduler_new(&other, ctx, gemma, &p, &err)) fail_msg("%s", err.message);
    hone_scheduler_beside(other, s);
    change_over(); /* s has prompts, other the answers */
    for (int i = 0; i < 3; i++) callers[i].longest_gap = 0;
    caller *late = must_ask(EACH, 1, 9);
    int rounds = 0;
    for (; !late->n_end; rounds++) round_of_both();
    for (int i = 0; i < 3; i++) assert_in_range(callers[i].longest_gap, 50000000, 102000000);
    assert_in_range(rounds, EACH / 80, EACH / 60); /* 100 ms, of which 13 are those answers' and 10 the step's */

    change_over(); /* a prompt of each: they share what there is */
    caller *own = must_ask(EACH, 1, 8);
    change_over();
    late = must_ask(EACH, 1, 9);
    for (int i = 0; i < 3; i++) callers[i].longest_gap = 0;
    while (!late->n_end || !own->n_end) round_of_both();
    for (int i = 0; i < 3; i++) assert_in_range(callers[i].longest_gap, 50000000, 112000000);

    hone_scheduler_beside(s, NULL); /* and what is alone has no neighbours */
    must_ask(EACH, 1, 9);
    assert_int_equal(round_of_both(), HN_PROMPT_MARK);
    hone_scheduler_beside(s, other);
    hone_scheduler_free(other);
    other = NULL;
    must_ask(EACH, 1, 9);
    step();
    hone_scheduler_free(s);
}

/* A step with a prompt may take as long as two of the answers that are there now, not of those that were. before, then:
 * answers. Returns the longest gap that one of them had; *steps: until the prompt was answered. */
static uint64_t gap_behind_a_change(int before, int then, int *steps)
{
    enum { OF_PROMPT = 1500 };
    const int least = before < then ? before : then;
    row_ns = 1000000, step_ns = 60000000;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = OF_PROMPT + 100, .n_seq = 16 } });
    for (int i = 0; i < before; i++) must_ask(4, i < least ? 500 : 20, (uint64_t)i);
    for (int i = 0; i < 20; i++) step();
    for (int i = 0; i < before; i++) assert_int_equal(callers[i].n_end, i >= least);
    for (int i = before; i < then; i++) must_ask(4, 500, (uint64_t)i);
    callers[0].longest_gap = 0;
    *steps = steps_of(must_ask(OF_PROMPT, 1, 99));
    uint64_t gap = callers[0].longest_gap;
    hone_scheduler_free(s);
    return gap;
}

static void answers_are_counted(void **state)
{
    int steps;
    assert_in_range(gap_behind_a_change(15, 1, &steps), 100000000, 122000000); /* twice 60 + 1 */
    assert_in_range(gap_behind_a_change(1, 15, &steps), 122000001, 150000000); /* twice 60 + 15 */
    assert_in_range(steps, 1500 / 75, 1500 / 61);                              /* they took 61 when there was one */
}

/* Four prompts come at one moment, beside nobody's answer: each has its first token when it is through, not when the
 * last one is. And one of many rows goes on beside short ones without end. */
static void prompts_come_through_one_by_one(void **state)
{
    enum { EACH = 100, LATER = 30 };
    row_ns = 1000000, step_ns = 10000000;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = LONG + 100, .n_seq = 4 } });
    for (int i = 0; i < 4; i++) must_ask(EACH, 4, (uint64_t)i);
    step();
    assert_int_equal(callers[0].n_tok, 1);
    assert_int_equal(callers[0].first_at, EACH * row_ns + step_ns);
    finish();
    for (int i = 1; i < 4; i++) assert_true(callers[i - 1].first_at < callers[i].first_at);
    hone_scheduler_free(s);

    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = LONG + 100, .n_seq = 4 } });
    caller *far = must_ask(1000, 1, 0);
    for (int i = 1; n_caller < MOST_ASKED && !far->n_end; i++) {
        caller *near = must_ask(LATER, 2, 1);
        while (!near->n_end) step();
        assert_true(near->first_at - near->asked_at <= (2 * 64 + LATER) * row_ns + 2 * step_ns);
    }
    assert_int_equal(far->n_end, 1);
    finish();
    hone_scheduler_free(s);
}

static void clients_come_in_turn(void **state)
{
    static const int want[] = { 0, 3, 5, 1, 4, 2 };
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 64, .n_seq = 1 } });
    for (int i = 0; i < 3; i++) must_ask(5, 3, 1);
    for (int i = 0; i < 2; i++) must_ask(5, 3, 2);
    must_ask(5, 3, 3);
    finish();
    for (int i = 0; i < 6; i++) assert_int_equal(ends[i], want[i]);
    hone_scheduler_free(s);
}

/* ---- refusals and ends ---------------------------------------------------------------- */

static void bad_requests_are_refused(void **state)
{
    hone_error err = { 0 };
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 64, .n_seq = 2 }, .max_queue = 3 });
    assert_int_equal(ask(64, 1, 0, &err), HONE_E_CTX);
    assert_non_null(strstr(err.message, "expected at most 63"));
    assert_int_equal(ask(0, 1, 0, &err), HONE_E_ARG);
    assert_int_equal(ask(5, -2, 0, &err), HONE_E_ARG);
    hone_request r = { .prompt = prompt, .n_prompt = 5, .n_choices = 3, .n_logprobs = -1 };
    uint64_t id = 7;
    hone_sampler_defaults(&r.sampling);
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "expected 1 to 2"));
    assert_int_equal(id, 0);
    r.n_choices = 1, r.mark = 6;
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "a mark at 6; expected 0 to 5"));
    r.mark = 0, r.sampling.top_p = 2;
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_E_ARG);
    for (int i = 0; i < 3; i++) must_ask(5, 1, 0);
    assert_int_equal(ask(5, 1, 0, &err), HONE_E_BUSY);
    hone_scheduler_stats n;
    hone_scheduler_get_stats(s, &n);
    assert_int_equal(n.n_rejected, 1);
    assert_int_equal(n.n_waiting, 3);
    finish();
    hone_scheduler_free(s);
}

/* Tokens found of a prompt [n] whose first `same` are those of one with this mark. */
static uint64_t found_of(hone_model *m, int32_t n, int32_t same, int32_t mark)
{
    static int32_t ids[LONG];
    hone_error err = { 0 };
    hone_scheduler_stats before, after;
    uint64_t id;
    hone_request r = { .prompt = ids, .n_prompt = n, .mark = mark, .max_tokens = 2, .n_logprobs = -1 };
    hone_sampler_defaults(&r.sampling);
    row_ns = step_ns = 1;
    memcpy(ids, prompt, (size_t)n * sizeof *ids);
    open_scheduler(ctx, m, (hone_scheduler_params){ .session = { .n_ctx = 1000, .n_seq = 2 } });
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_OK);
    finish();
    hone_scheduler_get_stats(s, &before);
    for (int32_t i = same; i < n; i++) ids[i] = (ids[i] + 1) % 16;
    r.mark = 0;
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_OK);
    finish();
    hone_scheduler_get_stats(s, &after);
    hone_scheduler_free(s);
    return after.n_cached_tokens - before.n_cached_tokens;
}

/* A recurrent model goes on where a prompt was marked, at every 256th position, and nowhere else. */
static void a_prompt_is_left_at_its_mark(void **state)
{
    assert_int_equal(found_of(rwkv, 100, 93, 90), 90);
    assert_int_equal(found_of(rwkv, 100, 93, 94), 0);
    assert_int_equal(found_of(rwkv, 100, 93, 0), 0);
    assert_int_equal(found_of(rwkv, 700, 693, 690), 690);
    assert_int_equal(found_of(rwkv, 700, 693, 0), 512);
    assert_int_equal(found_of(rwkv, 700, 600, 690), 512);
    assert_int_equal(found_of(rwkv, 700, 530, 512), 512); /* where one is anyway */
    assert_int_equal(found_of(rwkv, 100, 99, 100), 0);    /* its end is one, and is not before the change */
    assert_int_equal(found_of(llama, 100, 93, 0), 93);    /* positions can be forgotten: any place will do */
}

/* A step ends at a mark only where that could not be gone back to: a prompt within the windows is one step. */
static void windows_stop_where_they_forget(void **state)
{
    hone_error err = { 0 };
    hone_scheduler_stats n;
    row_ns = step_ns = 1;
    open_scheduler(ctx, gemma, (hone_scheduler_params){ .session = { .n_ctx = 1000, .n_chunk = 512, .n_seq = 2 } });
    const hn_seq_memory *m = s->ses->mem;
    int32_t window = 0, steps[2];
    for (int32_t i = 0; i < m->n_group; i++) window = m->group[i].window ? m->group[i].window : window;
    assert_in_range(window, 1, 300);
    for (int i = 0; i < 2; i++) {
        uint64_t id;
        const int32_t len = window + 62 + i;
        hone_request r = { .prompt = prompt + i, .n_prompt = len, .mark = len - 3, .max_tokens = 1, .n_logprobs = -1 };
        hone_sampler_defaults(&r.sampling);
        assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_OK);
        hone_scheduler_get_stats(s, &n);
        steps[i] = (int32_t)n.n_steps;
        finish();
        hone_scheduler_get_stats(s, &n);
        steps[i] = (int32_t)n.n_steps - steps[i];
    }
    assert_true(steps[0] == 1 && steps[1] == 2 + (window + 63) / 257);
    hone_scheduler_free(s);
}

/* Turns of two conversations, one after the other, in as many slots: a turn finds all that the one before it left, and
 * not whole pages alone, as it does not take the other's slot. */
static void conversations_keep_their_slots(void **state)
{
    enum { FIRST = 100, MORE = 20 };
    static int32_t ids[2][LONG];
    hone_scheduler_stats before, after;
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 400, .n_seq = 2 } });
    for (int32_t i = 0; i < FIRST; i++) ids[0][i] = i % 13, ids[1][i] = (i + 1) % 13;
    for (int turn = 0; turn < 6; turn++) {
        int who = turn % 2 ? 1 - turn / 2 % 2 : turn / 2 % 2; /* 0 1 1 0 0 1: also the one that was left last */
        const int32_t n = FIRST + (turn / 2) * MORE;
        hone_scheduler_get_stats(s, &before);
        asks = ids[who];
        caller *c = must_ask(n, 1, 0);
        asks = NULL;
        finish();
        hone_scheduler_get_stats(s, &after);
        assert_int_equal(after.n_cached_tokens - before.n_cached_tokens, turn < 2 ? 0 : n - MORE);
        assert_int_equal(c->n_tok, 1);
        for (int32_t i = 0; i < MORE; i++) ids[who][n + i] = (i + 3 * who + turn) % 13;
    }
    hone_scheduler_free(s);
}

/* Who waits for memory costs others no conversation that would not be enough. */
static void waiting_forgets_nothing(void **state)
{
    hone_error err = { 0 };
    hone_sequence_cost cost;
    hone_slot_info was, is;
    assert_int_equal(hone_model_sequence_cost(llama, 12 * HN_PAGE, HONE_CACHE_F16, &cost, &err), HONE_OK);
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama,
                   (hone_scheduler_params){ .session = { .n_ctx = 1000, .n_seq = 3, .cache_budget = cost.bytes } });
    must_ask(100, 1, 0);
    finish();
    for (int32_t i = 0; i < 3 && !(hone_scheduler_slot(s, i, &was) && was.n_past); i++) {}
    assert_int_equal(was.n_past, 100);
    caller *runs = must_ask(320, 60, 1);
    step();
    caller *waits = must_ask(620, 2, 2);
    for (int i = 0; i < 20; i++) step();
    assert_true(!waits->n_tok && !runs->n_end);
    int32_t n = 0;
    for (int32_t i = 0; i < 3; i++) n += hone_scheduler_slot(s, i, &is) && !is.running && is.n_past == was.n_past;
    assert_int_equal(n, 1);
    finish();
    assert_true(waits->n_tok == 2 && waits->end == HONE_END_LENGTH);
    hone_scheduler_free(s);
}

/* What waits and is cancelled never starts, and ends once; the scheduler's end ends the rest. */
static void cancelled_while_it_waits(void **state)
{
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 64, .n_seq = 1 } });
    must_ask(5, 9, 0), must_ask(5, 9, 0), must_ask(5, 9, 0);
    step();
    assert_true(hone_scheduler_cancel(s, callers[1].id));
    assert_false(hone_scheduler_cancel(s, 99));
    step();
    assert_true(callers[1].n_end == 1 && callers[1].end == HONE_END_CANCELLED && callers[1].n_tok == 0);
    assert_false(hone_scheduler_cancel(s, callers[1].id));
    assert_int_equal(callers[0].n_tok, 2);
    hone_scheduler_free(s);
    for (int i = 0; i < 3; i++) assert_true(callers[i].n_end == 1 && callers[i].end == HONE_END_CANCELLED);
}

/* What is held stands still beside others, says the same when it goes on, and is late or cancelled where it stands. */
static void held_stands_still(void **state)
{
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama, (hone_scheduler_params){ .session = { .n_ctx = 64, .n_seq = 2 } });
    must_ask(5, 9, 0), must_ask(5, 20, 0), must_ask(5, 9, 0);
    step(), step();
    assert_true(hone_scheduler_hold(s, callers[0].id, true));
    assert_false(hone_scheduler_hold(s, 99, true));
    int n = callers[0].n_tok;
    for (int i = 0; i < 5; i++) assert_true(step());
    assert_true(callers[0].n_tok == n && callers[1].n_tok == n + 5);
    assert_true(hone_scheduler_hold(s, callers[1].id, true));
    assert_true(hone_scheduler_hold(s, callers[2].id, true)); /* waits */
    for (int i = 0; i < 3; i++) assert_false(step());
    assert_true(hone_scheduler_cancel(s, callers[1].id)); /* its slot is the third's, which is held, too */
    assert_true(step());
    assert_false(step());
    assert_true(callers[1].end == HONE_END_CANCELLED && callers[1].n_tok == n + 5 && callers[2].n_tok == 0);
    hone_scheduler_hold(s, callers[0].id, false), hone_scheduler_hold(s, callers[2].id, false);
    finish();
    assert_true(callers[0].n_tok == 9 && callers[0].end == HONE_END_LENGTH && callers[2].n_tok == 9);
    hone_scheduler_free(s);
}

/* Too much for the memory there is, even alone: an error, and a neighbour that fits is answered. */
static void too_large_for_the_memory(void **state)
{
    hone_error err = { 0 };
    hone_sequence_cost cost;
    assert_int_equal(hone_model_sequence_cost(llama, 128, HONE_CACHE_F16, &cost, &err), HONE_OK);
    row_ns = step_ns = 1;
    open_scheduler(ctx, llama,
                   (hone_scheduler_params){ .session = { .n_ctx = 400, .n_seq = 2, .cache_budget = cost.bytes } });
    must_ask(300, 4, 0);
    must_ask(60, 30, 0);
    finish();
    assert_true(callers[0].end == HONE_END_ERROR && callers[0].why == HONE_E_NOMEM && callers[0].n_tok == 0);
    assert_true(callers[1].end == HONE_END_LENGTH && callers[1].n_tok == 30);
    hone_scheduler_free(s);
}

/* Tokens of a long prompt's answer beside one that decodes, or is held. A batch of a model with windows holds more than
 * what is left behind it: who was let in goes on with fewer rows, and where all is held or waits nothing worked. */
static int tokens_beside(uint64_t budget, bool held, int32_t wanted)
{
    hone_scheduler_stats before, after;
    open_scheduler(
        ctx, gemma,
        (hone_scheduler_params){ .session = { .n_ctx = 1024, .n_chunk = 512, .n_seq = 2, .cache_budget = budget } });
    caller *a = must_ask(128, 80, 0);
    step(), step();
    hone_scheduler_hold(s, a->id, held);
    caller *b = must_ask(704, wanted, 1);
    for (int i = 0; i < 60 + wanted && !b->n_end; i++) {
        hone_scheduler_get_stats(s, &before);
        bool worked = step();
        hone_scheduler_get_stats(s, &after);
        if (held && after.n_rows == before.n_rows) assert_false(worked);
    }
    int n = b->n_tok;
    assert_true(!held || a->n_tok < 80);
    if (held && wanted <= 64) assert_int_equal(after.n_preempted, 0); /* what it was let in for */
    hone_scheduler_free(s);
    return n;
}

static uint64_t cost_of(int32_t n_pos)
{
    hone_error err = { 0 };
    hone_sequence_cost cost;
    assert_int_equal(hone_model_sequence_cost(gemma, n_pos, HONE_CACHE_F16, &cost, &err), HONE_OK);
    return cost.bytes;
}

static void windows_beside_others(void **state)
{
    row_ns = step_ns = 1;
    const uint64_t page = cost_of(1024) - cost_of(960), both = cost_of(208 + 64) + cost_of(704 + 64) + cost_of(64);
    for (uint64_t b = cost_of(1024); b <= both + 2 * page; b += page)
        for (int held = 0; held < 2; held++) {
            int n = tokens_beside(b, held, 2);
            if (b >= both) assert_int_equal(n, 2);
            if (held) tokens_beside(b, held, 150);
        }
}

/* A long prompt between one that runs and a third that begins as the first did: tokens of it that are found; −1: the
 * long one does not fit. *marks: places that the first can still go back to when the long one is answered. */
static int found_beside(uint64_t budget, int *marks)
{
    enum { SAME = 540, THIRD = 560 };
    hone_scheduler_stats before, after;
    int32_t third[THIRD];
    memcpy(third, prompt, sizeof third);
    third[SAME] ^= 1;
    open_scheduler(
        ctx, gemma,
        (hone_scheduler_params){ .session = { .n_ctx = 1024, .n_chunk = 512, .n_seq = 3, .cache_budget = budget } });
    caller *a = must_ask(576, 200, 0), *b;
    while (!a->n_tok) step();
    b = must_ask(704, 2, 1);
    for (int i = 0; i < 60 && !b->n_end; i++) step();
    const hn_seq_memory *m = s->ses->mem;
    *marks = 0;
    for (int32_t i = 0; i < m->p.n_checkpoint; i++) *marks += m->checkpoint[i].seq == 0;
    hone_scheduler_get_stats(s, &before);
    asks = third;
    caller *c = must_ask(THIRD, 1, 2);
    asks = NULL;
    const bool fitted = b->n_end;
    while (fitted && !c->n_end) step();
    hone_scheduler_get_stats(s, &after);
    assert_int_equal(before.n_preempted, 0);
    hone_scheduler_free(s);
    return fitted ? (int)(after.n_cached_tokens - before.n_cached_tokens) : -1;
}

/* Fewer rows cost less than what is kept, and what is kept less than a pause. */
static void what_did_not_fit_costs_the_least(void **state)
{
    int found = -1, marks;
    row_ns = step_ns = 1;
    const uint64_t page = cost_of(1024) - cost_of(960);
    uint64_t budget = cost_of(1024) + cost_of(576);
    while (found < 0) found = found_beside(budget += page, &marks);
    assert_true(found >= 256);
    assert_int_equal(found_beside(budget += page, &marks), 512);
    assert_int_equal(found_beside(budget += 2 * page, &marks), 512);
    assert_true(marks > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_question_passes_long_ones), cmocka_unit_test(answers_go_on_beside_a_prompt),
        cmocka_unit_test(small_prompts_are_not_dear),        cmocka_unit_test(answers_are_counted),
        cmocka_unit_test(prompts_come_through_one_by_one),   cmocka_unit_test(clients_come_in_turn),
        cmocka_unit_test(bad_requests_are_refused),          cmocka_unit_test(a_prompt_is_left_at_its_mark),
        cmocka_unit_test(windows_stop_where_they_forget),    cmocka_unit_test(conversations_keep_their_slots),
        cmocka_unit_test(cancelled_while_it_waits),          cmocka_unit_test(held_stands_still),
        cmocka_unit_test(too_large_for_the_memory),          cmocka_unit_test(windows_beside_others),
        cmocka_unit_test(what_did_not_fit_costs_the_least),  cmocka_unit_test(disturbed_steps_tell_nothing),
        cmocka_unit_test(answers_go_on_beside_other_models), cmocka_unit_test(waiting_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
