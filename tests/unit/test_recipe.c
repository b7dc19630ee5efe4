/* The recipe: files of tensors made by many threads are what one thread makes, whatever is asked to be a unit; of
 * several failures the first in the file is told; tensors that are opened are alone; stopped at any moment nothing is
 * left. */
#include "forge/recipe.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[96];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hn_recipe.XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/r.gguf", dir);
    return 0;
}
static int remove_dir(void **state) { return rmdir(dir); } /* which holds nothing any more */

/* ---- sources ------------------------------------------------------------------------------------- */

enum { LATER = 140000 }; /* the next piece, in the same batch */

/* What the sources are asked to do, and what they see. */
typedef struct world {
    uint64_t bad[3];          /* elements that are no numbers, UINT64_MAX: none; of tensor 0, 1, 2 */
    _Atomic int open, beside; /* opened now; pieces made of others meanwhile */
    int n_open, n_close;
    int calls, stop_after; /* of progress */
} world;

static int32_t number_of(const hn_recipe_tensor *t) { return t->name.ptr[1] - '0'; } /* "t0", "t1", … */

static float value_at(int32_t tensor, uint64_t i) { return hn_rand_f32((uint64_t)tensor + 1, i) - 0.5f; }

static void saw(world *w, const hn_recipe_tensor *t)
{
    int open = atomic_load(&w->open);
    if (t->source->open ? open != 1 + number_of(t) : open != 0) atomic_fetch_add(&w->beside, 1);
}

static bool is_bad(const world *w, int32_t tensor, uint64_t i)
{
    return tensor < 3 && i >= w->bad[tensor] && (i - w->bad[tensor]) % LATER == 0;
}

static hone_status values(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err)
{
    world *w = arg;
    int32_t k = number_of(p->t);
    uint64_t first = p->row * p->t->ne[0];
    saw(w, p->t);
    assert_true(p->at == p->row * hn_row_bytes(hn_type_get(p->t->type), p->t->ne[0]) && p->n_row > 0);
    memset(scratch, 0xA5, 100); /* each thread's own */
    for (uint64_t i = 0; i < p->n_row * p->t->ne[0]; i++)
        x[i] = is_bad(w, k, first + i) ? (float)NAN : value_at(k, first + i);
    for (int i = 0; i < 100; i++)
        if (((unsigned char *)scratch)[i] != 0xA5) return HN_FAIL(err, HONE_E_IO, "scratch is shared");
    return HONE_OK;
}

static hone_status bytes(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    saw(arg, p->t);
    for (uint64_t i = 0; i < p->n_bytes; i++) ((unsigned char *)p->out)[i] = (unsigned char)hn_mix64(p->at + i);
    return HONE_OK;
}

static hone_status fault(void *arg, const hn_recipe_tensor *t, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "tensor %d element %llu fault %d", number_of(t), (unsigned long long)i, what);
}

static hone_status open_one(void *arg, const hn_recipe_tensor *t, hone_error *err)
{
    world *w = arg;
    assert_int_equal(atomic_load(&w->open), 0);
    atomic_store(&w->open, 1 + number_of(t));
    w->n_open++;
    return HONE_OK;
}

static void close_one(void *arg, const hn_recipe_tensor *t)
{
    world *w = arg;
    assert_int_equal(atomic_load(&w->open), 1 + number_of(t));
    atomic_store(&w->open, 0);
    w->n_close++;
}

static const hn_recipe_source plain = { .values = values, .fault = fault };
static const hn_recipe_source ready = { .bytes = bytes };
static const hn_recipe_source opened = { .values = values, .fault = fault, .open = open_one, .close = close_one };

/* Several batches of several pieces; a row longer than a piece; units that no row divides; small ones between. */
static const hn_recipe_tensor list[] = {
    { { "t0", 2 }, HN_F32, 2, { 1000, 3000, 1, 1 }, &plain, NULL, 0, 0 },
    { { "t1", 2 }, HN_Q8_0, 2, { 1 << 18, 5, 1, 1 }, &opened, NULL, 0, 0 },
    { { "t2", 2 }, HN_F16, 3, { 64, 300, 70, 1 }, &opened, NULL, 0, 0 },
    { { "t3", 2 }, HN_F32, 1, { 7, 1, 1, 1 }, &plain, NULL, 0, 0 },
    { { "t4", 2 }, HN_Q4_K, 2, { 256, 9001, 1, 1 }, &ready, NULL, 8 * 144, 0 },
    { { "t5", 2 }, HN_F32, 2, { 3, 5, 1, 1 }, &opened, NULL, 0, 0 },
};
enum { N = sizeof list / sizeof *list };

static void on_progress(void *arg, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    ((world *)arg)->calls++;
}
static bool on_abort(void *arg)
{
    const world *w = arg;
    return w->stop_after >= 0 && w->calls > w->stop_after;
}

static hone_status write_list(world *w, int32_t n_threads, hone_error *err)
{
    hone_progress pr = { on_progress, w, on_abort };
    hn_recipe r = { .dst = path, .t = list, .n = N, .arg = w, .scratch_bytes = 100, .n_threads = n_threads, .pr = &pr };
    hn_gguf_writer *g;
    assert_int_equal(hn_gguf_writer_new(&g, err), HONE_OK);
    hone_status st = hn_recipe_write(&r, g, err);
    hn_gguf_writer_free(g);
    if (st == HONE_OK) assert_true(r.done == r.total);
    assert_int_equal(atomic_load(&w->beside), 0);
    return st;
}

static world quiet(void) { return (world){ .bad = { UINT64_MAX, UINT64_MAX, UINT64_MAX }, .stop_after = -1 }; }

/* ---- tests ---------------------------------------------------------------------------------------- */

static void check_file(void)
{
    hn_gguf *g;
    hone_error err = { 0 };
    static float x[1 << 18];
    static char want[1 << 20];
    assert_int_equal(hn_gguf_open(&g, path, &err), HONE_OK);
    for (uint64_t k = 0; k < N; k++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, k);
        const hn_type_info *ti = hn_type_get(t->type);
        uint64_t row = hn_row_bytes(ti, t->ne[0]), rows = t->ne[1] * t->ne[2];
        for (uint64_t i = 0; k == 4 && i < t->n_bytes; i++)
            if (((const unsigned char *)t->data)[i] != (unsigned char)hn_mix64(i)) fail_msg("byte %d", (int)i);
        for (uint64_t r = 0; k != 4 && r < rows; r++) {
            for (uint64_t i = 0; i < t->ne[0]; i++) x[i] = value_at((int32_t)k, r * t->ne[0] + i);
            ti->quantize(want, x, (int64_t)t->ne[0], NULL);
            if (memcmp((const char *)t->data + r * row, want, row)) fail_msg("tensor %d row %d", (int)k, (int)r);
        }
    }
    hn_gguf_close(g);
}

static void test_file(void **state)
{
    for (int32_t n_threads = 1; n_threads < 6; n_threads += 2) {
        world w = quiet();
        hone_error err = { 0 };
        if (write_list(&w, n_threads, &err)) fail_msg("%s", err.message);
        assert_true(w.n_open == 3 && w.n_close == 3);
        check_file();
        unlink(path);
    }
}

static void refused(world w, const char *says)
{
    for (int32_t n_threads = 1; n_threads < 6; n_threads += 2)
        for (int again = 0; again < 5; again++) { /* threads are not always as quick */
            world k = w;
            hone_error err = { 0 };
            assert_int_equal(write_list(&k, n_threads, &err), HONE_E_NUMERIC);
            assert_string_equal(err.message, says);
            assert_int_equal(access(path, F_OK), -1);
        }
}

static void test_first_fault(void **state)
{
    world w = quiet();
    w.bad[2] = 64 * 300 * 70 - 1;
    refused(w, "tensor 2 element 1343999 fault 0");
    w.bad[1] = 3 * (1 << 18) + 5;
    refused(w, "tensor 1 element 786437 fault 0");
    w.bad[0] = 11;
    refused(w, "tensor 0 element 11 fault 0");
}

static void test_stopped(void **state)
{
    for (int stop = -1, calls = 1; stop < calls; stop++) {
        world w = quiet();
        hone_error err = { 0 };
        w.stop_after = stop;
        hone_status st = write_list(&w, 2, &err);
        if (stop < 0) {
            assert_int_equal(st, HONE_OK);
            assert_true((calls = w.calls) > 8);
            unlink(path);
        } else {
            assert_int_equal(st, HONE_E_INTERRUPTED);
            assert_non_null(strstr(err.message, "interrupted; nothing is left on disk"));
        }
        assert_int_equal(access(path, F_OK), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_first_fault),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
