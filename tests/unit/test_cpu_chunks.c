/* How the CPU backend cuts its work: into chunks enough for the threads where there is something to share, into one
 * where that is not worth waking another, and into bits that know nothing of it. */
#include "backend/backend.h"
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct world {
    hn_pool *pool;
    hn_backend *be;
} world;

static world open_world(int32_t threads, const hn_backend_params *with)
{
    world w;
    hn_backend_params p = *with;
    assert_int_equal(hn_pool_new(&w.pool, threads, NULL), HONE_OK);
    p.pool = w.pool;
    p.level = hn_cpu_best();
    assert_int_equal(hn_backend_open(&w.be, "cpu", &p, NULL), HONE_OK);
    return w;
}

static void close_world(world *w)
{
    w->be->op->free(w->be);
    hn_pool_free(w->pool);
}

static hn_buf *random_rows(const world *w, int64_t n, uint64_t key)
{
    float *x = malloc((size_t)n * sizeof *x);
    hn_buf *b = w->be->op->alloc(w->be, (uint64_t)n * sizeof *x, HN_MEM_ROWS);
    assert_true(x && b);
    for (int64_t i = 0; i < n; i++) x[i] = 2 * hn_rand_f32(key, (uint64_t)i) - 1;
    w->be->op->write(w->be, b, 0, x, (size_t)n * sizeof *x);
    free(x);
    return b;
}

/* ---- attention ------------------------------------------------------------------------------------------ */

enum { MOST_ROWS = 64, SEQS = 5 };

typedef struct attn_shape {
    const char *what;
    int64_t n_head, n_head_kv, d, d_v, n_ctx, n, pos; /* of the first row; others follow it */
    int64_t window, chunk;
    bool both, sink, scattered; /* rows are of several sequences, at places far apart */
    int64_t least, most;        /* chunks on 8 threads */
} attn_shape;

static void place_rows(hn_row *rows, const attn_shape *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        int64_t pos = s->scattered ? (s->pos + i * 613) % s->n_ctx : s->pos + i;
        rows[i] = (hn_row){ .pos = (int32_t)pos, .seq = s->scattered ? (int32_t)(i % SEQS) : 0 };
        rows[i].end = s->both ? (int32_t)(s->pos + s->n) : rows[i].pos + 1;
    }
}

/* What comes out, and how many chunks it took. */
static int64_t attend(float *out, const attn_shape *s, int32_t threads)
{
    world w = open_world(threads, &(hn_backend_params){ .n_tok = s->n,
                                                        .max_n_in = s->n_head * s->d,
                                                        .n_head = s->n_head,
                                                        .n_head_kv = s->n_head_kv,
                                                        .d = s->d,
                                                        .n_ctx = s->n_ctx });
    int64_t d_v = s->d_v ? s->d_v : s->d, width = s->n_head * d_v, pages = (s->n_ctx + HN_PAGE - 1) / HN_PAGE;
    size_t head = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(HN_CACHE_F32, s->d), half = head * (size_t)s->n_head_kv;
    hn_row rows[MOST_ROWS];
    float sinks[256];
    for (int64_t h = 0; h < s->n_head; h++) sinks[h] = hn_rand_f32(5, (uint64_t)h);
    place_rows(rows, s);
    hn_kv kv = { .mem = random_rows(&w, (int64_t)(2 * half / sizeof(float)) * pages, 1),
                 .v_at = half,
                 .page_bytes = 2 * half,
                 .head_bytes = head,
                 .n_head_kv = (int32_t)s->n_head_kv,
                 .d = s->d,
                 .type = HN_CACHE_F32 };
    hn_act *act = w.be->op->act_alloc(w.be, width, s->n);
    const hn_attention a = { .q = random_rows(&w, s->n * s->n_head * s->d, 2),
                             .n_head = s->n_head,
                             .scale = 0.5f,
                             .both = s->both,
                             .window = s->window,
                             .chunk = s->chunk,
                             .sink = s->sink ? sinks : NULL,
                             .d_v = s->d_v };
    w.be->op->step_begin(w.be, &(hn_step_block){ .rows = rows, .n_tok = (int32_t)s->n, .n_seq = SEQS });
    int64_t before = hn_pool_handed(w.pool);
    w.be->op->attention(w.be, act, &a, &kv);
    int64_t chunks = hn_pool_handed(w.pool) - before;
    w.be->op->step_end(w.be, NULL, NULL);
    w.be->op->act_read(w.be, out, act, &(hn_act_part){ .n_row = s->n, .n_col = width });
    w.be->op->act_release(w.be, act);
    close_world(&w);
    return chunks;
}

static const attn_shape shapes[] = {
    /* few keys of one KV head: its query heads are shared out */
    { "latent, 300 keys", 128, 1, 24, 16, 512, 1, 299, .least = 8, .most = 16 },
    { "latent, 300 keys, 3 rows", 24, 1, 24, 16, 512, 3, 297, .sink = true, .least = 8, .most = 9 },
    { "of 16 heads, 300 keys", 16, 1, 16, 0, 512, 1, 299, .least = 2, .most = 2 },
    { "of 19 heads, 900 keys", 19, 1, 16, 0, 1024, 1, 899, .sink = true, .least = 4, .most = 4 },
    { "four of a group, 300 keys", 16, 4, 16, 0, 512, 1, 299, .least = 4, .most = 4 },
    /* rows more than a few, at depth: the keys are shared out */
    { "4 rows at 8000", 8, 1, 16, 0, 8192, 4, 8000, .least = 48, .most = 80 },
    { "5 rows at 8000", 8, 1, 16, 0, 8192, 5, 8000, .least = 48, .most = 80 },
    { "latent, 5 rows at 8000", 16, 1, 24, 16, 8192, 5, 8000, .sink = true, .least = 40, .most = 80 },
    { "11 rows at the end of a full context", 8, 2, 16, 0, 2048, 11, 2037, .least = 30, .most = 130 },
    { "20 rows of five sequences", 8, 1, 16, 0, 4096, 20, 4000, .scattered = true, .least = 40, .most = 160 },
    { "with a window", 8, 1, 16, 0, 4096, 7, 4000, .window = 1500, .least = 20, .most = 80 },
    { "in chunks of positions", 8, 2, 16, 0, 4096, 6, 4000, .chunk = 2048, .sink = true, .least = 40, .most = 80 },
    { "both ways", 8, 1, 16, 0, 2048, 30, 2000, .both = true, .least = 40, .most = 130 },
    /* rows enough: tiles of them share what is read */
    { "64 rows at 4000", 8, 4, 16, 0, 8192, 64, 4000, .least = 32, .most = 64 },
};

static void attention_is_shared_out(void **state)
{
    static const int32_t threads[] = { 2, 3, 8, 31 };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const attn_shape *s = &shapes[i];
        size_t n = (size_t)(s->n * s->n_head * (s->d_v ? s->d_v : s->d));
        float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
        assert_true(want && got);
        attend(want, s, 1);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            memset(got, 0xFF, n * sizeof *got);
            int64_t chunks = attend(got, s, threads[t]);
            if (memcmp(got, want, n * sizeof *got) != 0) fail_msg("%s: other bits on %d threads", s->what, threads[t]);
            if (threads[t] == 8 && (chunks < s->least || chunks > s->most))
                fail_msg("%s: %lld chunks, expected %lld to %lld", s->what, (long long)chunks, (long long)s->least,
                         (long long)s->most);
        }
        free(want);
        free(got);
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------- */

typedef enum row_op { SCALE = 0, ADD, GATHER, NORM } row_op;

/* An operation on n_row rows of n; the chunks it took. */
static int64_t run_rows(float *out, row_op op, int64_t n_row, int64_t n, int32_t threads)
{
    world w = open_world(threads, &(hn_backend_params){ .n_tok = n_row, .max_n_in = n });
    hn_buf *x = random_rows(&w, n_row * n, 3), *y = random_rows(&w, n_row * n, 4);
    hn_row *rows = calloc((size_t)n_row, sizeof *rows);
    int32_t *want = calloc((size_t)n_row, sizeof *want);
    float *weight = malloc((size_t)n * sizeof *weight);
    assert_true(rows && want && weight);
    for (int64_t i = 0; i < n; i++) weight[i] = hn_rand_f32(6, (uint64_t)i);
    for (int64_t i = 0; i < n_row; i++) want[i] = (int32_t)i;
    w.be->op->step_begin(
        w.be,
        &(hn_step_block){ .rows = rows, .n_tok = (int32_t)n_row, .n_seq = 1, .want = want, .n_want = (int32_t)n_row });
    int64_t before = hn_pool_handed(w.pool);
    if (op == SCALE) w.be->op->scale(w.be, y, 0.3f, n_row * n);
    else if (op == ADD) w.be->op->add(w.be, y, x, n_row * n);
    else if (op == GATHER) w.be->op->gather(w.be, y, x, n);
    else
        w.be->op->norm(
            w.be, &(hn_norm){ .kind = HN_NORM_RMS, .x = x, .y = y, .w = weight, .n = n, .n_tok = n_row, .eps = 1e-6f });
    int64_t chunks = hn_pool_handed(w.pool) - before;
    w.be->op->step_end(w.be, NULL, NULL);
    w.be->op->read(w.be, out, y, 0, (size_t)(n_row * n) * sizeof *out);
    close_world(&w);
    free(rows);
    free(want);
    free(weight);
    return chunks;
}

static void rows_are_shared_out(void **state)
{
    static const struct {
        row_op op;
        int64_t n_row, n, least, most; /* chunks on 4 threads */
    } list[] = {
        { SCALE, 64, 4096, 16, 64 }, { ADD, 64, 4096, 16, 64 },   { GATHER, 64, 4096, 8, 64 }, { NORM, 64, 4096, 8, 8 },
        { SCALE, 1, 4096, 1, 1 },    { ADD, 1, 8192, 1, 1 },      { GATHER, 1, 4096, 0, 1 },   { NORM, 1, 8192, 0, 1 },
        { NORM, 2, 4096, 2, 2 },     { NORM, 8, 4096, 8, 8 },     { NORM, 5, 2048, 3, 3 },     { NORM, 8, 64, 1, 1 },
        { SCALE, 512, 64, 2, 2 },    { NORM, 512, 4096, 64, 64 }, { ADD, 13, 5000, 4, 4 },
    };
    static const int32_t threads[] = { 2, 4, 7 };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t n = (size_t)(list[i].n_row * list[i].n);
        float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
        assert_true(want && got);
        run_rows(want, list[i].op, list[i].n_row, list[i].n, 1);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            int64_t chunks = run_rows(got, list[i].op, list[i].n_row, list[i].n, threads[t]);
            assert_memory_equal(got, want, n * sizeof *got);
            if (threads[t] == 4 && (chunks < list[i].least || chunks > list[i].most))
                fail_msg("case %zu: %lld chunks, expected %lld to %lld", i, (long long)chunks, (long long)list[i].least,
                         (long long)list[i].most);
        }
        free(want);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(attention_is_shared_out),
                                        cmocka_unit_test(rows_are_shared_out) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
