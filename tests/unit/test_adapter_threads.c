/* Adapters are opened and closed by one thread while another steps a scheduler that answers with them, as a server
 * does: every answer is the one that was given when nobody else was there. */
#include "engine/scheduler.h"
#include "tiny_lora.h"
#include "slowed.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { N_ANSWER = SLOWED ? 60 : 300, N_PROMPT = 70, N_TOKEN = 6, N_FILE = 2 }; /* N_PROMPT: a page and a bit */

static hone_context *plain;

typedef struct answer {
    int32_t id[N_TOKEN];
    float logprob[N_TOKEN];
    int n;
    hone_end end;
} answer;

static bool hear(void *arg, const hone_event *e)
{
    answer *a = arg;
    if (e->kind == HONE_EVENT_TOKEN && a->n < N_TOKEN) a->logprob[a->n] = e->logprob, a->id[a->n++] = e->id;
    if (e->kind == HONE_EVENT_END) a->end = e->end;
    return true;
}

/* The answer to a prompt, with an adapter or without (NULL). */
static answer ask(hone_scheduler *s, hone_adapter *adapter)
{
    int32_t ids[N_PROMPT];
    answer out = { .end = HONE_END_ERROR };
    hone_error err = { 0 };
    bool worked = true;
    uint64_t id;
    for (int i = 0; i < N_PROMPT; i++) ids[i] = (int32_t)(hn_rand64(7, (uint64_t)i) % 16);
    hone_request r = { .prompt = ids,
                       .n_prompt = N_PROMPT,
                       .max_tokens = N_TOKEN,
                       .n_logprobs = 0,
                       .adapters = &adapter,
                       .n_adapters = adapter != NULL,
                       .event = hear,
                       .arg = &out };
    hone_sampler_defaults(&r.sampling);
    r.sampling.temp = 0;
    if (hone_scheduler_submit(s, &r, &id, &err)) fail_msg("%s", err.message);
    while (worked)
        if (hone_scheduler_step(s, &worked, &err)) fail_msg("%s", err.message);
    return out;
}

static void same(const answer *got, const answer *want)
{
    assert_int_equal(got->end, want->end);
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->id, want->id, sizeof want->id);
    assert_memory_equal(got->logprob, want->logprob, sizeof want->logprob);
}

/* Who opens: a handle lies in `ready` until somebody takes it; others are closed again at once. */
typedef struct opener {
    const hone_model *m;
    const lora *l;
    _Atomic(hone_adapter *) ready[N_FILE];
    atomic_bool stop;
    atomic_int n_opened;
    atomic_int failed;
} opener;

static void *open_and_close(void *arg)
{
    opener *o = arg;
    for (int k = 0; !atomic_load(&o->stop); k++) {
        const int file = k % N_FILE;
        hone_adapter *a, *none = NULL;
        hone_status st = hone_adapter_open(&a, o->m, o->l[file].path, NULL);
        if (st != HONE_OK) {
            atomic_store(&o->failed, (int)st);
            return NULL;
        }
        atomic_fetch_add(&o->n_opened, 1);
        if (!atomic_compare_exchange_strong(&o->ready[file], &none, a)) hone_adapter_close(a);
    }
    return NULL;
}

/* Every handle that it can take is answered with and closed here; beside it one of the first file is open all the
 * time, and in the end none. */
static void opened_beside_steps(void **state)
{
    tiny *t = tm_new((tm_shape)TM("llama", 16, 2, 1, 8, 32, 16, 2, 10000, 1e-5));
    lora l[N_FILE];
    lora_make(&l[0], t, "attn_q", "one", 3, 2.0f, 3.0f);
    lora_make(&l[1], t, "ffn_down", "two", 2, 1.0f, 3.0f);
    hone_model *m = tm_open(t);
    hone_scheduler *s;
    const hone_scheduler_params p = { .session = { .n_ctx = 80, .n_seq = 1, .cache_budget = 1 << 20 } };
    assert_int_equal(hone_scheduler_new(&s, plain, m, &p, NULL), HONE_OK);

    answer want[N_FILE + 1];
    hone_adapter *first[N_FILE] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
    for (int i = 0; i < N_FILE; i++) want[i] = ask(s, first[i]);
    want[N_FILE] = ask(s, NULL);
    for (int i = 0; i < N_FILE; i++)
        assert_memory_not_equal(want[i].logprob, want[N_FILE].logprob,
                                sizeof want[i].logprob); /* they have an effect */
    hone_adapter_close(first[1]);

    opener o = { .m = m, .l = l };
    pthread_t thread;
    int n_taken = 0;
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, &o), 0);
    while (!atomic_load(&o.ready[0]) && !atomic_load(&o.failed)) sched_yield();
    for (int k = 0; k < N_ANSWER; k++) {
        const int file = k % N_FILE;
        hone_adapter *a = atomic_exchange(&o.ready[file], NULL);
        const answer with = ask(s, a), bare = ask(s, NULL);
        same(&with, &want[a ? file : N_FILE]);
        same(&bare, &want[N_FILE]);
        if (a) n_taken++, hone_adapter_close(a);
        else sched_yield();
        if (k == N_ANSWER / 2) hone_adapter_close(first[0]);
    }
    atomic_store(&o.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&o.failed), HONE_OK);
    assert_true(n_taken > 0 && atomic_load(&o.n_opened) >= n_taken);

    /* what was computed with them goes with the last handles */
    bool worked;
    hone_prefix_info info;
    for (int i = 0; i < N_FILE; i++) hone_adapter_close(atomic_load(&o.ready[i]));
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    hone_session_prefix_info(s->ses, &info);
    assert_int_equal(info.n_nodes, 1);
    hone_scheduler_free(s);
    hone_model_close(m);
    for (int i = 0; i < N_FILE; i++) lora_free(&l[i]);
    tm_free(t);
}

static int setup(void **state)
{
    if (tm_make_dir(state)) return -1;
    plain = tm_context("scalar", 1);
    return 0;
}
static int teardown(void **state)
{
    hone_context_free(plain);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(opened_beside_steps) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
