/* Counted allocations: against blocks whose number and size are known, of other threads and of shared libraries; and
 * the law that a token in the steady state allocates nothing, in every way of generating one. */
#define _GNU_SOURCE
#include "base/os.h"
#include "lab/bench/sample.h"
#include "lab/machine/allocs.h"
#include "lab/quality/quality.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define TINY "models/hone-tiny.gguf"
#define LORA "models/hone-tiny-rhyme.lora.gguf"

static void *volatile keep; /* the compiler must not leave out what is freed unseen */

static int64_t size_of(void *p)
{
    keep = p;
    return (int64_t)malloc_usable_size(p);
}

static void every_kind(void **state)
{
    hn_allocs a = { 0 };
    void *p[7] = { 0 };
    hn_allocs_begin();
    p[0] = malloc(100);
    p[1] = calloc(7, 30);
    p[2] = aligned_alloc(64, 640);
    int rc = posix_memalign(&p[3], 4096, 5000);
    p[4] = memalign(256, 300);
    p[5] = strdup("the C library's own calls count as well");
    p[6] = realloc(NULL, 33);
    hn_allocs_end(&a);
    int64_t all = 0;
    assert_int_equal(rc, 0);
    for (int i = 0; i < 7; i++) all += size_of(p[i]);
    assert_int_equal(a.n, 7);
    assert_int_equal(a.bytes, all);
    assert_int_equal(a.freed, 0);
    for (int i = 0; i < 210; i++) assert_int_equal(((char *)p[1])[i], 0);
    assert_int_equal((uintptr_t)p[3] % 4096, 0);
    /* a block that grows is a new one, and the old one is given back */
    hn_allocs b = { 0 };
    int64_t was = size_of(p[0]);
    hn_allocs_begin();
    p[0] = realloc(p[0], 100000);
    for (int i = 1; i < 7; i++) free(p[i]);
    free(NULL);
    hn_allocs_end(&b);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.bytes, size_of(p[0]));
    assert_int_equal(b.freed, all); /* p[0] as it was, and all others */
    assert_true(was > 0);
    /* sums go on; what happens outside of a stretch is not seen */
    free(p[0]);
    hn_allocs_begin();
    hn_allocs_end(&b);
    assert_int_equal(b.n, 1);
}

static void allocate(void *arg, int64_t i, int32_t thread)
{
    void **p = arg;
    p[i] = malloc(1000);
}

static void all_threads(void **state)
{
    enum { N = 64 };
    void *p[N];
    hn_pool *pool;
    hn_allocs a = { 0 };
    assert_int_equal(hn_pool_new(&pool, 4, NULL), HONE_OK);
    hn_pool_run(pool, allocate, p, N); /* each thread's first call makes its arena */
    for (int i = 0; i < N; i++) free(p[i]);
    hn_allocs_begin();
    hn_pool_run(pool, allocate, p, N);
    hn_allocs_end(&a);
    int64_t all = 0;
    for (int i = 0; i < N; i++) {
        all += size_of(p[i]);
        free(p[i]);
    }
    assert_int_equal(a.n, N);
    assert_int_equal(a.bytes, all);
    hn_pool_free(pool);
}

static void in_json(void **state)
{
    const hn_allocs a = { .n = 3, .bytes = 100, .freed = 50 };
    json_t *o = hn_allocs_json("token", &a, 2, NULL);
    assert_true(json_number_value(json_object_get(o, "n")) == 1.5); /* not one: a share of an allocation is shown */
    assert_true(json_number_value(json_object_get(o, "bytes")) == 50);
    assert_true(json_number_value(json_object_get(o, "freed")) == 25);
    assert_true(json_is_null(json_object_get(o, "missing")));
    json_decref(o);
    o = hn_allocs_json("token", &a, 0, "no token was generated");
    assert_true(json_is_null(json_object_get(o, "n")));
    assert_string_equal(json_string_value(json_object_get(o, "missing")), "no token was generated");
    json_decref(o);
}

/* ---- no token allocates ----------------------------------------------------------------------- */

typedef struct engine {
    hone_context *ctx;
    hone_model *m;
    hone_adapter *lora;
    hone_session *s;
} engine;

static void open_engine(engine *e, int32_t threads, hone_kv_cache_type cache, int32_t n_seq, bool lora)
{
    const hone_context_params c = { .n_threads = threads };
    const hone_session_params p = { .n_ctx = 256, .n_seq = n_seq, .cache = cache };
    const float one = 1;
    *e = (engine){ 0 };
    assert_int_equal(hone_context_new(&e->ctx, &c, NULL), HONE_OK);
    assert_int_equal(hone_model_open(&e->m, TINY, NULL, NULL), HONE_OK);
    assert_int_equal(hone_session_new(&e->s, e->ctx, e->m, &p, NULL), HONE_OK);
    if (!lora) return;
    assert_int_equal(hone_adapter_open(&e->lora, e->m, LORA, NULL), HONE_OK);
    assert_int_equal(hone_session_set_adapters(e->s, &e->lora, &one, 1, NULL), HONE_OK);
}

static void close_engine(engine *e)
{
    hone_session_free(e->s);
    hone_adapter_close(e->lora);
    hone_model_close(e->m);
    hone_context_free(e->ctx);
}

static void of_a_sample(int32_t threads, hone_kv_cache_type cache, bool lora)
{
    engine e;
    hn_sample s;
    const hn_bench_config c = { .n_prompt = 70, .n_gen = 80 }; /* over the end of a page of positions, twice */
    open_engine(&e, threads, cache, 1, lora);
    assert_int_equal(hn_bench_measure(&s, e.s, e.m, &c, NULL), HONE_OK);
    assert_int_equal(s.n_gaps, 79);
    if (s.gen_allocs.n != 0 || s.gen_allocs.bytes != 0 || s.gen_allocs.freed != 0)
        fail_msg("%d threads, cache %d: 79 tokens made %lld allocations of %lld bytes", threads, (int)cache,
                 (long long)s.gen_allocs.n, (long long)s.gen_allocs.bytes);
    assert_int_equal(s.prompt_allocs.n, 0); /* and neither does a prompt: scratch is there before it */
    json_t *o = hn_sample_json(&s), *allocs = json_object_get(o, "allocs");
    assert_string_equal(json_string_value(json_object_get(allocs, "op")), "token");
    assert_true(json_number_value(json_object_get(allocs, "n")) == 0);
    json_decref(o);
    hn_sample_free(&s);
    close_engine(&e);
}

static void one_token(void **state)
{
    of_a_sample(1, HONE_CACHE_F16, false);
    of_a_sample(2, HONE_CACHE_F16, false);
    of_a_sample(2, HONE_CACHE_Q8_0, false);
    of_a_sample(2, HONE_CACHE_F32, true);
}

/* A request of text: drawn with everything a sampler has, and made text of. */
static void a_request(void **state)
{
    engine e;
    hn_request q;
    char *text;
    open_engine(&e, 2, HONE_CACHE_F16, 1, false);
    const hn_request_config c = { .n_prompt = 60, .n_gen = 60, .temp = 0.7F, .top_p = 0.9F, .seed = 1 };
    assert_int_equal(hn_request_text(&text, e.m, c.n_prompt, NULL), HONE_OK);
    assert_int_equal(hn_request_run(&q, e.s, e.m, text, &c, NULL), HONE_OK);
    assert_int_equal(q.n_gaps, 59);
    assert_int_equal(q.gen_allocs.n, 0);
    assert_true(q.prompt_allocs.n > 0); /* encoding a text does, and it is seen */
    hn_request_free(&q);
    free(text);
    close_engine(&e);
}

static void several_sequences(void **state)
{
    engine e;
    hn_batch b;
    open_engine(&e, 2, HONE_CACHE_F16, 5, false);
    assert_int_equal(hn_batch_run(&b, e.s, e.m, 5, 20, 90, NULL), HONE_OK);
    assert_int_equal(b.gen_allocs.n, 0);
    hn_batch_free(&b);
    close_engine(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_kind), cmocka_unit_test(all_threads),
                                        cmocka_unit_test(in_json),    cmocka_unit_test(one_token),
                                        cmocka_unit_test(a_request),  cmocka_unit_test(several_sequences) };
    if (hn_allocs_missing()) {
        printf("SKIP: %s\n", hn_allocs_missing());
        return 77;
    }
    if (access(TINY, R_OK) != 0) {
        printf("SKIP: no %s\n", TINY);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
