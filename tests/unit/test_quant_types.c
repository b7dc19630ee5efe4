/* The type table: ids, sizes and names as published; refused ids by name; tensor sizes. */
#include "quant/quant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void ids_and_sizes(void **state)
{
    /* ggml-org/ggml, 2026-08 */
    static const struct {
        uint32_t id;
        const char *name;
        uint32_t elems, bytes;
    } want[] = {
        { 0, "F32", 1, 4 },         { 1, "F16", 1, 2 },         { 2, "Q4_0", 32, 18 },      { 3, "Q4_1", 32, 20 },
        { 6, "Q5_0", 32, 22 },      { 7, "Q5_1", 32, 24 },      { 8, "Q8_0", 32, 34 },      { 9, "Q8_1", 32, 36 },
        { 10, "Q2_K", 256, 84 },    { 11, "Q3_K", 256, 110 },   { 12, "Q4_K", 256, 144 },   { 13, "Q5_K", 256, 176 },
        { 14, "Q6_K", 256, 210 },   { 15, "Q8_K", 256, 292 },   { 16, "IQ2_XXS", 256, 66 }, { 17, "IQ2_XS", 256, 74 },
        { 18, "IQ3_XXS", 256, 98 }, { 19, "IQ1_S", 256, 50 },   { 20, "IQ4_NL", 32, 18 },   { 21, "IQ3_S", 256, 110 },
        { 22, "IQ2_S", 256, 82 },   { 23, "IQ4_XS", 256, 136 }, { 24, "I8", 1, 1 },         { 25, "I16", 1, 2 },
        { 26, "I32", 1, 4 },        { 27, "I64", 1, 8 },        { 28, "F64", 1, 8 },        { 29, "IQ1_M", 256, 56 },
        { 30, "BF16", 1, 2 },       { 34, "TQ1_0", 256, 54 },   { 35, "TQ2_0", 256, 66 },   { 39, "MXFP4", 32, 17 },
        { 40, "NVFP4", 64, 36 },    { 41, "Q1_0", 128, 18 },    { 42, "Q2_0", 64, 18 },
    };
    size_t n = 0;
    for (uint32_t id = 0; id < 100000; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (n < sizeof want / sizeof *want && want[n].id == id) {
            assert_non_null(ti);
            assert_string_equal(ti->name, want[n].name);
            assert_int_equal(ti->block_elems, want[n].elems);
            assert_int_equal(ti->block_bytes, want[n].bytes);
            assert_non_null(ti->dequantize);
            assert_int_equal(hn_type_by_name(ti->name), id);
            assert_int_equal(hn_row_bytes(ti, 4 * want[n].elems), 4 * want[n].bytes);
            n++;
        } else if (ti) {
            fail_msg("id %u should have no entry", id);
        }
    }
    assert_int_equal(n, 35);
    assert_null(hn_type_get(UINT32_MAX));
}

static void weights_and_encoders(void **state)
{
    static const hn_type not_weights[] = { HN_Q8_1, HN_Q8_K, HN_I8, HN_I16, HN_I32, HN_I64 };
    for (size_t i = 0; i < sizeof not_weights / sizeof *not_weights; i++)
        assert_false(hn_type_get(not_weights[i])->weight);
    static const hn_type can[] = { HN_F32,  HN_F16,  HN_BF16, HN_Q8_0, HN_Q4_0, HN_Q4_1,   HN_Q5_0,  HN_Q5_1,
                                   HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_Q2_K, HN_Q3_K, HN_IQ4_NL, HN_IQ4_XS };
    for (size_t i = 0; i < sizeof can / sizeof *can; i++) {
        assert_non_null(hn_type_get(can[i])->quantize);
        assert_true(hn_type_get(can[i])->weight);
    }
}

static void names(void **state)
{
    assert_int_equal(hn_type_by_name("q4_k"), HN_Q4_K);
    assert_int_equal(hn_type_by_name("iq2_xxs"), HN_IQ2_XXS);
    assert_int_equal(hn_type_by_name("bf16"), HN_BF16);
    assert_int_equal(hn_type_by_name("Q4_K_M"), -1); /* a mixture, not a type */
    assert_int_equal(hn_type_by_name("Q4_2"), -1);
    assert_int_equal(hn_type_by_name(""), -1);
    assert_int_equal(hn_type_by_name(NULL), -1);
}

static void refusals(void **state)
{
    static const struct {
        uint32_t id;
        const char *part;
    } want[] = {
        { 4, "Q4_2" },
        { 5, "Q4_3" },
        { 31, "Q4_0_4_4" },
        { 32, "Q4_0_4_8" },
        { 33, "Q4_0_8_8" },
        { 36, "I2_S" },
        { 36, "IQ4_NL_4_4" },
        { 37, "IQ4_NL_4_8" },
        { 38, "IQ4_NL_8_8" },
        { 133, "Q6_0" },
        { 137, "IQ2_K" },
        { 138, "IQ3_K" },
        { 139, "IQ4_K" },
        { 140, "IQ5_K" },
        { 141, "IQ6_K" },
        { 144, "IQ4_KS" },
        { 91, "fork" },
        { 98, "ik_llama" },
        { 142, "ik_llama" },
        { 202, "_R8" },
        { 212, "Q4_K_R4" },
        { 300, "interleaved" },
        { 399, "ik_llama" },
        { 43, "unknown" },
        { UINT32_MAX, "unknown" },
        { 9, "activation" },
        { 15, "activation" },
        { 26, "integer" },
        { 12, "supported" },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (!strstr(hn_type_why_not(want[i].id), want[i].part))
            fail_msg("id %u: \"%s\" lacks \"%s\"", want[i].id, hn_type_why_not(want[i].id), want[i].part);
    for (uint32_t id = 0; id < 1000; id++) assert_non_null(hn_type_why_not(id));
}

#define NBYTES(t, n, ...) hn_tensor_nbytes(hn_type_get(t), (uint64_t[]){ __VA_ARGS__ }, (n), &out)

static void tensor_sizes(void **state)
{
    uint64_t out = 0, big = 1ull << 62;
    assert_true(NBYTES(HN_F32, 1, 7) && out == 28);
    assert_true(NBYTES(HN_Q4_K, 2, 4096, 3) && out == 4096 / 256 * 144 * 3);
    assert_true(NBYTES(HN_Q6_K, 4, 256, 2, 3, 5) && out == 210 * 30);
    assert_true(hn_tensor_nbytes(hn_type_get(HN_F16), NULL, 0, &out) && out == 2); /* a scalar */
    assert_false(hn_tensor_nbytes(hn_type_get(HN_Q4_K), NULL, 0, &out));
    assert_false(NBYTES(HN_Q4_K, 2, 255, 256)); /* rows are whole blocks, whatever the total */
    assert_false(NBYTES(HN_Q4_K, 2, 128, 2));
    assert_true(NBYTES(HN_Q4_K, 2, 0, 5) && out == 0);
    assert_true(NBYTES(HN_F32, 3, big, big, 0) && out == 0);
    assert_true(NBYTES(HN_F32, 4, 5, 0, big, big) && out == 0);
    assert_false(NBYTES(HN_Q4_K, 2, 100, 0)); /* malformed even though empty */
    assert_false(NBYTES(HN_F32, 1, big));
    assert_false(NBYTES(HN_F32, 2, 1ull << 32, 1ull << 32));
    assert_false(NBYTES(HN_I8, 2, UINT64_MAX, 2));
    assert_false(NBYTES(HN_I8, 1, 1ull << 63));
    assert_true(NBYTES(HN_I8, 1, INT64_MAX) && out == INT64_MAX);
    assert_false(NBYTES(HN_Q1_0, 2, big, 2)); /* bytes would fit, elements do not */
    assert_false(NBYTES(HN_F32, 5, 1, 1, 1, 1, 1));
    assert_false(NBYTES(HN_F32, -1, 1));
    assert_false(hn_tensor_nbytes(NULL, &big, 1, &out));
}

/* Every number of 16 bits, and of the others those around what is none. */
static void first_odd(void **state)
{
    static const uint32_t f32[] = { 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF, 0x7F000000, 0, 0x00800000, 1 };
    static const uint64_t f64[] = { 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001,
                                    0x7FFFFFFFFFFFFFFF, 0x7FE0000000000000, 0,
                                    0x0010000000000000, 0x000FFFFFFFFFFFFF };
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        uint16_t h = (uint16_t)bits;
        assert_int_equal(hn_first_odd(&h, HN_F16, 1), isfinite(hn_f16_to_f32(h)) ? 1 : 0);
        assert_int_equal(hn_first_odd(&h, HN_BF16, 1), isfinite(hn_bits_f32(bits << 16)) ? 1 : 0);
    }
    for (size_t i = 0; i < 16; i++) {
        uint32_t w = f32[i / 2] | (uint32_t)(i % 2) << 31;
        uint64_t q = f64[i / 2] | (uint64_t)(i % 2) << 63;
        assert_int_equal(hn_first_odd(&w, HN_F32, 1), i >= 2 && i < 8 ? 0 : 1);
        assert_int_equal(hn_first_odd(&q, HN_F64, 1), i >= 2 && i < 8 ? 0 : 1);
    }
}

/* One or two anywhere, among numbers as large as they can be on both sides: the first is told. */
static void first_odd_of_many(void **state)
{
    static const hn_type types[] = { HN_F32, HN_F16, HN_BF16, HN_F64 };
    static const uint64_t most[] = { 0xFF7FFFFF, 0xFBFF, 0xFF7F, 0xFFEFFFFFFFFFFFFF },
                          odd[] = { 0x7F800000, 0xFC00, 0x7F80, 0x7FF0000000000000 };
    enum { N = 5000 };
    unsigned char *all = malloc(8 * N + 8);
    for (size_t k = 0; k < 4; k++) {
        size_t each = hn_type_get(types[k])->block_bytes;
        for (uint64_t t = 0; t < 400; t++) {
            uint64_t n = t < 40 ? t : hn_rand64(k, 3 * t) % N, a = n ? hn_rand64(k, 3 * t + 1) % n : 0;
            uint64_t b = n ? hn_rand64(k, 3 * t + 2) % n : 0;
            unsigned char *p = all + t % 8;
            for (uint64_t i = 0; i < n; i++) memcpy(p + i * each, &most[k], each);
            assert_int_equal(hn_first_odd(p, types[k], n), n);
            if (!n) continue;
            memcpy(p + a * each, &odd[k], each);
            memcpy(p + b * each, &odd[k], each);
            assert_int_equal(hn_first_odd(p, types[k], n), a < b ? a : b);
        }
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_sizes),     cmocka_unit_test(weights_and_encoders), cmocka_unit_test(names),
        cmocka_unit_test(refusals),          cmocka_unit_test(tensor_sizes),         cmocka_unit_test(first_odd),
        cmocka_unit_test(first_odd_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
