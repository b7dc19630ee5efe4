/* Keys and values of latent attention that a file has in one matrix: of every type of weight each number is where
 * absorbed attention looks for it, and the number that it was. */
#include "model/hparams.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N_HEAD = 3, NOPE = 5, VALUE = 4, SHARE = NOPE + VALUE, RANK = 256 };

/* Element i of a row of a weight. */
static float element(const hn_weight *w, int64_t row, int64_t i)
{
    float y[RANK];
    hn_type_get(w->type)->dequantize(y, (const char *)w->data + (size_t)row * w->row_bytes, w->n_in);
    return y[i];
}

static void check(hn_type type)
{
    const hn_type_info *ti = hn_type_get(type);
    hone_model m = { .arena = hn_arena_new(), .path = "test", .hp = { .d_nope = NOPE, .d_value = VALUE } };
    const hn_layer_plan p = { .n_head = N_HEAD };
    hn_weight w = { .type = type, .n_in = RANK, .n_out = N_HEAD * SHARE, .row_bytes = hn_row_bytes(ti, RANK) };
    size_t n = (size_t)w.n_out * w.row_bytes;
    unsigned char *data = malloc(n);
    hone_error err = { 0 };
    hn_weight k_b, v_b;
    assert_non_null(m.arena);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)(hn_rand64(type, i) >> 40) & 0x3f; /* no scale is a NaN */
    w.data = data;
    assert_int_equal(hn_split_kv_b(&m, &k_b, &v_b, &w, &p, &err), HONE_OK);
    assert_true(k_b.n_in == NOPE && k_b.n_out == N_HEAD * RANK && v_b.n_in == RANK && v_b.n_out == N_HEAD * VALUE);
    assert_int_equal(k_b.type, ti->block_elems == 1 ? type : HN_F32); /* as exact as that */
    assert_int_equal(v_b.type, type);
    float row[RANK];
    for (int64_t h = 0; h < N_HEAD; h++) {
        for (int64_t i = 0; i < NOPE; i++) {
            ti->dequantize(row, data + (size_t)(h * SHARE + i) * w.row_bytes, RANK);
            for (int64_t c = 0; c < RANK; c++) {
                assert_false(isnan(row[c]));
                assert_true(element(&k_b, h * RANK + c, i) == row[c]);
            }
        }
        for (int64_t i = 0; i < VALUE; i++)
            assert_memory_equal((const char *)v_b.data + (size_t)(h * VALUE + i) * v_b.row_bytes,
                                data + (size_t)(h * SHARE + NOPE + i) * w.row_bytes, w.row_bytes);
    }
    free(data);
    hn_arena_free(m.arena);
}

static void keys_and_values_are_what_they_were(void **state)
{
    int n = 0;
    for (uint32_t type = 0; type < HN_TYPE_COUNT; type++) {
        const hn_type_info *ti = hn_type_get(type);
        if (!ti || !ti->weight || RANK % ti->block_elems) continue;
        check((hn_type)type);
        n++;
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(keys_and_values_are_what_they_were) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
