/* Products of training on small numbers worked out by hand: the three forms, strides, alpha, add,
 * weights of a block type, rounding to bf16, shapes without elements. tests/property has the rest. */
#include "train/train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static hn_pool *pool;
static hn_gemm_ctx *g;

static int start(void **state)
{
    return hn_pool_new(&pool, 2, NULL) || hn_gemm_new(&g, pool, hn_kernels_get(hn_cpu_best()), NULL);
}
static int stop(void **state)
{
    hn_gemm_free(g);
    hn_gemm_free(NULL);
    hn_pool_free(pool);
    return 0;
}

static void equal(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        if (got[i] != want[i]) fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)want[i]);
}

/* [1 2 3; 4 5 6] times [1 0 2; 0 1 −1]ᵀ, and its kin; 99 stands between rows */
static void test_forms(void **state)
{
    const float a[] = { 1, 2, 3, 99, 4, 5, 6 }, b[] = { 1, 0, 2, 99, 99, 0, 1, -1 };
    float c[5] = { 0, 0, 77, 0, 0 };
    hn_gemm p = { .form = HN_GEMM_NT,
                  .c = c,
                  .a = a,
                  .b = b,
                  .b_type = HN_F32,
                  .b_row_bytes = 20,
                  .ldc = 3,
                  .lda = 4,
                  .m = 2,
                  .n = 2,
                  .k = 3,
                  .alpha = 1 };
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 7, -1, 77, 16, -1 }, 5);

    const float x[] = { 1, 2, 99, 3, 4 }; /* [1 2; 3 4] times [1 0 2; 0 1 −1] */
    float d[6] = { 10, 10, 10, 20, 20, 20 };
    p = (hn_gemm){ .form = HN_GEMM_NN,
                   .c = d,
                   .a = x,
                   .b = b,
                   .b_type = HN_F32,
                   .b_row_bytes = 20,
                   .ldc = 3,
                   .lda = 3,
                   .m = 2,
                   .n = 3,
                   .k = 2,
                   .alpha = 2,
                   .add = true };
    hn_gemm_run(g, &p);
    equal(d, (float[]){ 12, 14, 10, 26, 28, 24 }, 6);

    p.form = HN_GEMM_TN; /* [1 3; 2 4] times the same */
    p.add = false;
    p.alpha = 1;
    hn_gemm_run(g, &p);
    equal(d, (float[]){ 1, 3, -1, 2, 4, 0 }, 6);
}

static void test_block_type(void **state)
{
    hn_q8_0 w[3] = { 0 };
    float a[32], c[3];
    for (int r = 0; r < 3; r++) {
        w[r].d = hn_f32_to_f16(0.5f);
        for (int i = 0; i < 32; i++) w[r].q[i] = (int8_t)(i == r ? 8 : i == 31 ? -2 : 0);
    }
    for (int i = 0; i < 32; i++) a[i] = (float)(i + 1);
    hn_gemm p = { .form = HN_GEMM_NT,
                  .c = c,
                  .a = a,
                  .b = w,
                  .b_type = HN_Q8_0,
                  .b_row_bytes = sizeof *w,
                  .ldc = 3,
                  .lda = 32,
                  .m = 1,
                  .n = 3,
                  .k = 32,
                  .alpha = 1 };
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 4 - 32, 8 - 32, 12 - 32 }, 3);
    float d[32];
    p = (hn_gemm){ .form = HN_GEMM_NN,
                   .c = d,
                   .a = (float[]){ 1, 10, 100 },
                   .b = w,
                   .b_type = HN_Q8_0,
                   .b_row_bytes = sizeof *w,
                   .ldc = 32,
                   .lda = 3,
                   .m = 1,
                   .n = 32,
                   .k = 3,
                   .alpha = 1 };
    hn_gemm_run(g, &p);
    equal(d, (float[32]){ 4, 40, 400, [31] = -111 }, 32);
}

/* 1 + 2^-8 lies between two bf16 and goes to the even one, 1; 1 + 3·2^-8 to 1 + 2^-6; what a float adds to them is
 * lost. A subnormal is 0, also as a result: 2^-127 is not there to be doubled. */
static void test_bf16(void **state)
{
    const float a[] = { 1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1p-8f + 0x1p-20f, 0x1p-127f };
    const float one[] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x1p100f };
    float c[4];
    hn_gemm p = { .form = HN_GEMM_NT,
                  .c = c,
                  .a = a,
                  .b = one,
                  .b_type = HN_F32,
                  .b_row_bytes = 16,
                  .ldc = 4,
                  .lda = 4,
                  .m = 1,
                  .n = 4,
                  .k = 4,
                  .alpha = 1,
                  .bf16 = true };
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 1, 1 + 0x1p-6f, 1 + 0x1p-7f, 0 }, 4);
    const float half[] = { 0x1p-64f }, small[] = { 0x1p-63f };
    p = (hn_gemm){ .form = HN_GEMM_NT,
                   .c = c,
                   .a = half,
                   .b = small,
                   .b_type = HN_F32,
                   .b_row_bytes = 4,
                   .ldc = 1,
                   .lda = 1,
                   .m = 1,
                   .n = 1,
                   .k = 1,
                   .alpha = 0x1p10f,
                   .bf16 = true };
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 0 }, 1);
    p.bf16 = false;
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 0x1p-117f }, 1);
}

static void test_empty(void **state)
{
    float c[4] = { 1, 2, 3, 4 };
    hn_gemm p = { .form = HN_GEMM_NT,
                  .c = c,
                  .a = c,
                  .b = c,
                  .b_type = HN_F32,
                  .b_row_bytes = 4,
                  .ldc = 2,
                  .lda = 2,
                  .m = 2,
                  .n = 1,
                  .k = 0,
                  .alpha = 1,
                  .add = true };
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 1, 2, 3, 4 }, 4);
    p.m = 0;
    p.k = 1;
    p.add = false;
    hn_gemm_run(g, &p);
    p.m = 2;
    p.n = 0;
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 1, 2, 3, 4 }, 4);
    p.n = 1;
    p.k = 0;
    hn_gemm_run(g, &p);
    equal(c, (float[]){ 0, 2, 0, 4 }, 4);
    assert_true(hn_gemm_bytes(g) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_block_type),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
