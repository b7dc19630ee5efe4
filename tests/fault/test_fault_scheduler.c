/* Out of memory in a scheduler: the k-th allocation fails, for k = 1, 2, … while one is opened, requests with choices,
 * masks, biases, echoes and adapters are submitted, and all of them are run. A request either fails with HONE_E_NOMEM,
 * when it comes or at its end, or gets the answer that it gets with memory; each choice ends once; nothing leaks (the
 * sanitizer sees that). */
#include "../unit/tiny_model.h"

#include <sys/mman.h>

#include "fail_each.h"

enum { N_ASKED = 4, MOST_CHOICE = 2, MOST_TOK = 8, N_PROMPT = 80 };

typedef struct heard {
    uint64_t id;
    int32_t tok[MOST_CHOICE][MOST_TOK];
    int n[MOST_CHOICE], n_end[MOST_CHOICE], n_echoed;
    hone_status why;
} heard;

static hone_context *ctx;
static hone_model *m;
static hone_adapter *adapter;
static heard asked[N_ASKED], whole[N_ASKED]; /* now; with all memory */
static bool have_whole;
static hone_error first;

static hone_status mask(void *arg, int32_t choice, uint64_t *allowed, size_t n_words, bool *all, hone_error *err)
{
    const heard *h = arg;
    allowed[0] = UINT64_MAX << (h->n[choice] % 5);
    return HONE_OK;
}

static bool hear(void *arg, const hone_event *e)
{
    heard *h = arg;
    assert_int_equal(h->n_end[e->choice], 0);
    if (e->kind == HONE_EVENT_PROMPT) h->n_echoed += e->n_prompt_logprobs;
    if (e->kind == HONE_EVENT_TOKEN) h->tok[e->choice][h->n[e->choice]++] = e->id;
    if (e->kind != HONE_EVENT_END) return true;
    h->n_end[e->choice]++;
    if (e->error) {
        assert_int_equal(e->error->code, HONE_E_NOMEM);
        assert_true(e->error->message[0] != 0);
        h->why = e->error->code;
        if (first.code == HONE_OK) first = *e->error;
    } else assert_int_equal(e->end, HONE_END_LENGTH);
    return true;
}

static hone_status submit(hone_scheduler *s, int i, hone_error *err)
{
    static int32_t prompt[N_PROMPT];
    static const hone_bias bias[] = { { 3, 2 }, { 4, -1 } };
    static const float scale = 0.5f;
    for (int k = 0; k < N_PROMPT; k++) prompt[k] = (k * 7 + (k > 66) * i) % 16;
    hone_request r = { .prompt = prompt,
                       .n_prompt = N_PROMPT,
                       .n_choices = i % 2 + 1,
                       .max_tokens = MOST_TOK,
                       .n_logprobs = i,
                       .prompt_logprobs = i == 1,
                       .event = hear,
                       .arg = &asked[i] };
    hone_sampler_defaults(&r.sampling);
    r.sampling.presence_penalty = 0.5f;
    if (i == 2) r.mask = mask;
    if (i == 3) r.bias = bias, r.n_bias = 2, r.adapters = &adapter, r.scales = &scale, r.n_adapters = 1;
    return hone_scheduler_submit(s, &r, &asked[i].id, err);
}

static hone_status all_of_it(hone_error *err)
{
    hone_scheduler *s;
    bool worked = true;
    memset(asked, 0, sizeof asked);
    first = (hone_error){ 0 };
    const hone_scheduler_params p = { .session = { .n_ctx = 128, .n_seq = 3, .n_chunk = 16 } };
    hone_status st = hone_scheduler_new(&s, ctx, m, &p, err);
    if (st != HONE_OK) {
        assert_null(s);
        return st;
    }
    for (int i = 0; i < N_ASKED; i++) {
        hone_error e;
        st = submit(s, i, &e);
        if (st == HONE_OK) continue;
        assert_int_equal(asked[i].id, 0);
        asked[i].why = st;
        first = e;
    }
    for (int n = 0; worked; n++) {
        assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
        assert_true(n < 1000);
    }
    hone_scheduler_free(s);
    for (int i = 0; i < N_ASKED; i++)
        for (int k = 0; k <= i % 2; k++) {
            const heard *h = &asked[i], *w = &whole[i];
            assert_int_equal(h->n_end[k], h->id != 0);
            if (!have_whole) continue;
            if (h->why == HONE_OK) assert_true(h->n[k] == w->n[k] && h->n_echoed == w->n_echoed);
            assert_memory_equal(h->tok[k], w->tok[k], (size_t)h->n[k] * sizeof h->tok[k][0]);
        }
    if (first.code != HONE_OK) *err = first;
    return first.code;
}

static void a_scheduler(void **state)
{
    hone_error err;
    assert_int_equal(all_of_it(&err), HONE_OK);
    for (int i = 0; i < N_ASKED; i++) assert_int_equal(asked[i].n[0], MOST_TOK);
    assert_int_equal(asked[1].n_echoed, N_PROMPT);
    memcpy(whole, asked, sizeof whole);
    have_whole = true;
    fail_each(all_of_it);
}

static int begin(void **state)
{
    hone_error err;
    if (tm_make_dir(state)) return -1;
    tiny *a = calloc(1, sizeof *a), *t = tm_new(tm_llama);
    assert_non_null(a);
    m = tm_open(t);
    tm_free(t);
    ctx = tm_context(NULL, 1);
    a->s.arch = "llama";
    tm_put_str(a, "general.architecture", "llama");
    tm_put_str(a, "general.type", "adapter");
    tm_put_str(a, "adapter.type", "lora");
    tm_put_f32(a, "adapter.lora.alpha", 3);
    tm_add(a, "blk.0.attn_q.weight.lora_a", 2, 32, 2);
    tm_add(a, "blk.0.attn_q.weight.lora_b", 2, 2, 32);
    tm_save_raw(a, tm_path("adapter.gguf"));
    tm_free(a);
    if (hone_adapter_open(&adapter, m, tm_path("adapter.gguf"), &err)) fail_msg("%s", err.message);
    return 0;
}
static int end(void **state)
{
    hone_adapter_close(adapter);
    hone_model_close(m);
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheduler),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
