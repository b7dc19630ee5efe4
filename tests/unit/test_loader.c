/* Batches: every sample once an epoch, targets and documents as the contract says, and
 * a cursor from which training goes on with the same bytes. */
#include "train/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* Samples of given lengths; token i of sample k is 100·k + i, and it counts unless (k + i) % 3 is 0. */
static hn_dataset *make(int64_t n, int32_t (*len)(int64_t))
{
    hn_dataset *d = calloc(1, sizeof *d);
    d->sample = calloc((size_t)n, sizeof *d->sample);
    d->n = n;
    for (int64_t k = 0; k < n; k++) {
        hn_data_sample *s = &d->sample[k];
        s->n = len(k);
        s->ids = malloc((size_t)s->n * sizeof *s->ids);
        s->target = malloc((size_t)s->n);
        for (int32_t i = 0; i < s->n; i++) {
            s->ids[i] = (int32_t)(100 * k + i);
            s->target[i] = (k + i) % 3 != 0;
        }
    }
    return d;
}
static void drop(hn_dataset *d)
{
    for (int64_t k = 0; k < d->n; k++) free(d->sample[k].ids), free(d->sample[k].target);
    free(d->sample);
    free(d);
}
static int32_t mixed(int64_t k) { return 2 + (int32_t)(k * 7 % 19); }
static int32_t same(int64_t k) { return 5; }

static hn_loader *start(const hn_dataset *d, int32_t seq, int32_t n_seq, bool pack, bool shuffle, uint64_t seed)
{
    hn_loader *l;
    hone_error e = { 0 };
    if (hn_loader_new(&l, d, seq, n_seq, pack, shuffle, seed, &e) != HONE_OK) fail_msg("%s", e.message);
    return l;
}
static hn_train_batch next(hn_loader *l)
{
    hn_train_batch b;
    hone_error e = { 0 };
    if (hn_loader_next(l, &b, &e) != HONE_OK) fail_msg("%s", e.message);
    return b;
}

/* Checks b against the samples its documents name; seen[k] counts them. */
static void check(const hn_dataset *d, const hn_loader *l, const hn_train_batch *b, int *seen)
{
    int32_t n_target = 0;
    assert_true(b->n_doc > 0 && b->n_tok <= hn_loader_max_tok(l));
    assert_int_equal(b->doc[0], 0);
    assert_int_equal(b->doc[b->n_doc], b->n_tok);
    for (int32_t i = 0; i < b->n_doc; i++) {
        int32_t at = b->doc[i], k = b->ids[at] / 100;
        assert_in_range(k, 0, d->n - 1);
        seen[k]++;
        assert_int_equal(b->doc[i + 1] - at, d->sample[k].n);
        for (int32_t t = 0; t < d->sample[k].n; t++) {
            bool counts = t + 1 < d->sample[k].n && (k + t + 1) % 3 != 0;
            assert_int_equal(b->ids[at + t], 100 * k + t);
            assert_int_equal(b->pos[at + t], t);
            assert_int_equal(b->target[at + t], counts ? 100 * k + t + 1 : -1);
            n_target += counts;
        }
    }
    assert_int_equal(b->n_target, n_target);
}

static void test_epochs(void **state)
{
    for (int pack = 0; pack <= 1; pack++)
        for (int shuffle = 0; shuffle <= 1; shuffle++)
            for (int32_t n_seq = 1; n_seq <= 5; n_seq += 2) {
                hn_dataset *d = make(47, mixed);
                hn_loader *l = start(d, 24, n_seq, pack, shuffle, 3);
                int first[2] = { -1, -1 };
                for (int64_t epoch = 0; epoch < 3; epoch++) {
                    int seen[47] = { 0 };
                    int64_t total = hn_loader_n_seq(l), given = 0;
                    if (!pack) assert_int_equal(total, 47);
                    else assert_true(total < 40); /* 22 at least: 515 tokens in windows of 24 */
                    while (given < total) {
                        hn_cursor c = hn_loader_tell(l);
                        assert_int_equal(c.epoch, epoch);
                        assert_int_equal(c.at, given);
                        hn_train_batch b = next(l);
                        check(d, l, &b, seen);
                        if (given == 0 && epoch < 2) first[epoch] = b.ids[0];
                        given += total - given < n_seq ? total - given : n_seq;
                    }
                    for (int k = 0; k < 47; k++) assert_int_equal(seen[k], 1);
                    hn_cursor c = hn_loader_tell(l);
                    assert_int_equal(c.epoch, epoch + 1);
                    assert_int_equal(c.at, 0);
                }
                assert_true(shuffle ? first[0] != first[1] : first[0] == 0 && first[1] == 0);
                hn_loader_free(l);
                drop(d);
            }
}

/* Windows take whole samples in the epoch's order as long as they fit. */
static void test_packing(void **state)
{
    hn_dataset *d = make(7, same);
    hn_loader *l = start(d, 16, 2, true, false, 0);
    int seen[7] = { 0 };
    assert_int_equal(hn_loader_n_seq(l), 3);
    hn_train_batch b = next(l);
    check(d, l, &b, seen);
    assert_int_equal(b.n_doc, 6);
    assert_int_equal(b.n_tok, 30);
    b = next(l);
    check(d, l, &b, seen);
    assert_int_equal(b.n_doc, 1);
    assert_int_equal(b.ids[0], 600);
    hn_loader_free(l);
    l = start(d, 16, 2, false, false, 0);
    assert_int_equal(hn_loader_max_tok(l), 10); /* no longer than the longest sample */
    b = next(l);
    assert_int_equal(b.n_doc, 2);
    hn_loader_free(l);
    drop(d);
}

typedef struct copy {
    hn_cursor at;
    int32_t n_tok, n_doc, n_target, *v;
} copy;

static copy keep(hn_loader *l)
{
    copy c = { .at = hn_loader_tell(l) };
    hn_train_batch b = next(l);
    size_t n = (size_t)b.n_tok * sizeof(int32_t);
    c.n_tok = b.n_tok, c.n_doc = b.n_doc, c.n_target = b.n_target;
    c.v = malloc(3 * n + (size_t)(b.n_doc + 1) * sizeof(int32_t));
    memcpy(c.v, b.ids, n);
    memcpy(c.v + b.n_tok, b.target, n);
    memcpy(c.v + 2 * b.n_tok, b.pos, n);
    memcpy(c.v + 3 * b.n_tok, b.doc, (size_t)(b.n_doc + 1) * sizeof(int32_t));
    return c;
}

/* From every cursor, in a loader that has been anywhere: the same batches. */
static void test_seek(void **state)
{
    enum { N = 60 };
    for (int pack = 0; pack <= 1; pack++) {
        hn_dataset *d = make(31, mixed);
        hn_loader *l = start(d, 30, 2, pack, true, 11);
        copy want[N];
        for (int i = 0; i < N; i++) want[i] = keep(l);
        for (int i = N - 1; i >= 0; i--) {
            hn_loader *fresh = start(d, 30, 2, pack, true, 11);
            hn_loader *who = i % 2 ? l : fresh;
            assert_int_equal(hn_loader_seek(who, want[i].at, NULL), HONE_OK);
            for (int k = i; k < N && k < i + 25; k++) {
                copy c = keep(who);
                assert_memory_equal(&c, &want[k], offsetof(copy, v));
                assert_memory_equal(c.v, want[k].v, (size_t)(3 * c.n_tok + c.n_doc + 1) * sizeof(int32_t));
                free(c.v);
            }
            hn_loader_free(fresh);
        }
        assert_true(want[N - 1].at.epoch >= 2);
        hn_loader_free(l);
        l = start(d, 30, 2, pack, true, 12);
        copy other = keep(l);
        assert_true(other.n_tok != want[0].n_tok ||
                    memcmp(other.v, want[0].v, (size_t)other.n_tok * sizeof(int32_t)) != 0);
        free(other.v);
        for (int i = 0; i < N; i++) free(want[i].v);
        hn_loader_free(l);
        drop(d);
    }
}

static void test_seek_refused(void **state)
{
    hn_dataset *d = make(10, mixed);
    hn_loader *l = start(d, 30, 2, false, true, 1), *m = start(d, 30, 2, false, true, 1);
    hone_error e = { 0 };
    next(l), next(m);
    assert_int_equal(hn_loader_seek(l, (hn_cursor){ 5, 11 }, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "sequence 11 of epoch 5, which has 10"));
    assert_int_equal(hn_loader_seek(l, (hn_cursor){ -1, 0 }, &e), HONE_E_ARG);
    assert_int_equal(hn_loader_seek(l, (hn_cursor){ 0, -1 }, &e), HONE_E_ARG);
    copy a = keep(l), b = keep(m); /* it goes on where it was */
    assert_memory_equal(&a, &b, offsetof(copy, v));
    assert_memory_equal(a.v, b.v, (size_t)a.n_tok * sizeof(int32_t));
    free(a.v), free(b.v);
    assert_int_equal(hn_loader_seek(l, (hn_cursor){ 0, 10 }, &e),
                     HONE_OK); /* the end of an epoch is the beginning of the next */
    assert_int_equal(hn_loader_tell(l).epoch, 1);
    assert_int_equal(hn_loader_tell(l).at, 0);
    hn_loader_free(l), hn_loader_free(m);
    hn_loader *x = NULL;
    assert_int_equal(hn_loader_new(&x, d, 19, 1, true, false, 0, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "a sample of 20 tokens does not fit sequences of 19"));
    assert_int_equal(hn_loader_new(&x, d, 30, 0, true, false, 0, &e), HONE_E_ARG);
    assert_null(x);
    x = start(d, INT32_MAX, 2, true, false, 0); /* settings beyond the data: one batch of all of it */
    int64_t all = 0;
    for (int64_t i = 0; i < d->n; i++) all += d->sample[i].n;
    assert_int_equal(hn_loader_max_tok(x), all);
    assert_int_equal(next(x).n_tok, all);
    hn_loader_free(x);
    drop(d);
}

/* Each order of four samples about equally often: chi² with 23 degrees of freedom, 0.1 % above 49.7. */
static void test_shuffle_is_fair(void **state)
{
    hn_dataset *d = make(4, same);
    hn_loader *l = start(d, 5, 4, false, true, 99);
    int count[256] = { 0 };
    double chi = 0;
    int n_order = 0;
    for (int i = 0; i < 24000; i++) {
        hn_train_batch b = next(l);
        int code = 0;
        for (int k = 0; k < 4; k++) code = 4 * code + b.ids[b.doc[k]] / 100;
        count[code]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i]) n_order++, chi += (count[i] - 1000.0) * (count[i] - 1000.0) / 1000;
    assert_int_equal(n_order, 24);
    if (chi > 49.7) fail_msg("chi² %.1f", chi);
    hn_loader_free(l);
    drop(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),       cmocka_unit_test(test_packing),         cmocka_unit_test(test_seek),
        cmocka_unit_test(test_seek_refused), cmocka_unit_test(test_shuffle_is_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
