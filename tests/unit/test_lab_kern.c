/* Single kernels: ids there and back, every kind runs at odd shapes and threads, a kernel
 * that leaves work out is invalid and not fast. */
#include "base/os.h"
#include "kernels/kernels.h"
#include "lab/inside/kern.h"
#include "lab/machine/roof.h"
#include "lab/stats/verdict.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_ids(void **state)
{
    static const char *const good[] = { "kern.gemv.Q4_K.8192x2048",
                                        "kern.gemm.F16.1x1",
                                        "kern.attn.decode.32x8x64.4096",
                                        "kern.attn.prefill.14x2x64.512",
                                        "kern.norm.896",
                                        "kern.layernorm.896",
                                        "kern.wkv7.40x64.512",
                                        "kern.wkv6.1x5.1",
                                        "kern.silu.7",
                                        "kern.exp.1",
                                        "kern.act.q256.2048",
                                        "kern.act.q32.96",
                                        "kern.rope.14x64",
                                        "kern.quant.decode.IQ2_XXS.256",
                                        "kern.quant.encode.Q8_0.64" };
    static const char *const bad[] = { "",
                                       "kern",
                                       "kern.",
                                       "kern.gemv",
                                       "kern.gemv.",
                                       "kern.gemv.Q4_K",
                                       "kern.gemv.Q4_K.",
                                       "kern.gemv.Q4_K.8192",
                                       "kern.gemv.Q4_K.8192x",
                                       "kern.gemv.Q4_K.8192x2048x1",
                                       "kern.gemv.Q4_K.8192x2048 ",
                                       "kern.gemv.Q4_K.8192x2047",
                                       "kern.gemv.Q4_K.0x256",
                                       "kern.gemv.Q4_K.-1x256",
                                       "kern.gemv.Q4_K.99999999999999999999x256",
                                       "kern.gemv.Q4_Z.1x256",
                                       "kern.gemv.Q8_K.1x256",
                                       "kern.gemv.I8.1x256",
                                       "kern.attn.decode.32x8x64",
                                       "kern.attn.decode.32x5x64.128",
                                       "kern.rope.2x3",
                                       "kern.norm.x",
                                       "kern.act.q256.100",
                                       "kern.act.q32.33",
                                       "kern.quant.encode.NOPE.64",
                                       "kern.sort.5",
                                       "kern.wkv7.40x64",
                                       "kern.wkv7.40x64x1",
                                       "kern.wkv7.40x257.1",
                                       "kern.wkv6.40x64.4097",
                                       "kern.wkv6.F32.2x8.1",
                                       "kern.wkv7.0x8.1" };
    hn_kern k;
    hone_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(hn_kern_parse(&k, good[i], &err), HONE_OK);
        assert_string_equal(k.id, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.message[0] = 0;
        assert_int_equal(hn_kern_parse(&k, bad[i], &err), HONE_E_ARG);
        assert_true(strlen(err.message) > 10);
    }
}

static void test_list_of_a_preset(void **state)
{
    hn_kern *all, k;
    size_t n;
    hone_error err;
    assert_int_equal(hn_kern_list(&all, &n, "qwen2.5-0.5b", &err), HONE_OK);
    int gate = 0, q4k = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(hn_kern_parse(&k, all[i].id, &err), HONE_OK); /* every one has a name that is understood */
        assert_memory_equal(&k, &all[i], sizeof k);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(all[j].id, all[i].id);
        gate += strcmp(all[i].id, "kern.gemv.Q5_0.4864x896") == 0;
        q4k += strncmp(all[i].id, "kern.gemv.Q4_K.", 15) == 0;
    }
    assert_int_equal(gate, 1);
    assert_int_equal(q4k, 1); /* rows of 896 hold no blocks of 256; those of ffn_down (4864) do */
    free(all);
    static const struct {
        const char *preset, *has[4];
    } rwkv[] = {
        { "rwkv7-2.9b",
          { "kern.wkv7.40x64.1", "kern.wkv7.40x64.512", "kern.gemv.F16.320x2560", "kern.gemm.Q4_K.10240x2560" } },
        { "rwkv6-1.6b",
          { "kern.wkv6.32x64.1", "kern.gemv.F32.160x2048", "kern.gemv.F32.2048x32", "kern.layernorm.2048" } }
    };
    for (int p = 0; p < 2; p++) {
        assert_int_equal(hn_kern_list(&all, &n, rwkv[p].preset, &err), HONE_OK);
        int found = 0;
        for (size_t i = 0; i < n; i++) {
            for (int w = 0; w < 4; w++) found += strcmp(all[i].id, rwkv[p].has[w]) == 0;
            assert_true(strncmp(all[i].id, "kern.attn", 9) != 0 && strncmp(all[i].id, "kern.rope", 9) != 0);
            assert_false(strncmp(all[i].id, "kern.gemv.Q", 11) == 0 &&
                         strstr(all[i].id, "x320")); /* low-rank matrices stay as converted */
        }
        assert_int_equal(found, 4);
        free(all);
    }
    assert_int_equal(hn_kern_list(&all, &n, "gpt-9", &err), HONE_E_ARG);
    assert_null(all);
}

static void measure(const char *id, const hn_kern_config *c, hn_kern_result *r, hn_peaks *p, bool packed_too)
{
    hn_kern k;
    hn_kern_bench *b;
    hone_error err;
    assert_int_equal(hn_kern_parse(&k, id, &err), HONE_OK);
    if (hn_kern_open(&b, &k, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_kern_config config = *c;
    for (int packed = 0; packed < (packed_too && hn_kern_has_packed(b) ? 2 : 1); packed++) {
        uint64_t plain = r->output;
        config.packed = packed;
        if (hn_kern_measure(r, b, &config, p, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
        if (packed && r->hashed) assert_true(r->output == plain);
    }
    hn_kern_close(b);
}

static void test_every_kind_runs(void **state)
{
    static const char *const ids[] = { "kern.gemv.Q4_K.37x256",
                                       "kern.gemv.Q5_0.5x96",
                                       "kern.gemv.Q2_K.9x256",
                                       "kern.gemm.Q8_0.70x64",
                                       "kern.gemm.BF16.33x50",
                                       "kern.attn.decode.6x2x32.77",
                                       "kern.attn.prefill.4x4x16.70",
                                       "kern.norm.33",
                                       "kern.silu.33",
                                       "kern.exp.33",
                                       "kern.act.q256.512",
                                       "kern.act.q32.96",
                                       "kern.rope.3x32",
                                       "kern.layernorm.33",
                                       "kern.wkv7.3x16.1",
                                       "kern.wkv7.2x5.7",
                                       "kern.wkv6.3x16.1",
                                       "kern.wkv6.5x8.9",
                                       "kern.quant.decode.Q6_K.512",
                                       "kern.quant.encode.Q4_0.64" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (int32_t t = 1; t <= 3; t += 2) {
            hn_kern_result r = { .output = 0 };
            hn_kern k;
            measure(ids[i], &(hn_kern_config){ .threads = t, .columns = 1 + 4 * t, .n_samples = 2 }, &r, NULL, true);
            if (r.verdict.state != HN_VALID) fail_msg("%s: %s", ids[i], r.verdict.reason);
            assert_true(r.time.n == 2 && r.time.median > 0 && r.rate > 0 && isnan(r.share) && r.calls >= 1);
            assert_int_equal(hn_kern_parse(&k, ids[i], NULL), HONE_OK);
            assert_true(r.hashed == (k.kind != HN_KERN_ROPE) && (r.output != 0) == r.hashed);
            json_t *o = hn_kern_json(&k, &r);
            assert_int_equal(json_array_size(json_object_get(o, "samples_us")), 2);
            assert_true(json_is_true(json_object_get(o, "valid")));
            assert_true(json_is_null(json_object_get(json_object_get(o, "roofline"), "pct")));
            json_decref(o);
        }
}

/* ---- a broken kernel --------------------------------------------------------------------------- */

static hn_matmul_fn *honest;
static int n_calls;
static void lazy(const hn_mm *m) /* leaves out the last row of the matrix */
{
    hn_mm some = *m;
    if (some.r1 == m->ldy) some.r1--;
    honest(&some);
}
static void lazy_later(const hn_mm *m) /* only once the checks are over */
{
    if (n_calls++ < 4) honest(m);
    else lazy(m);
    if (n_calls > 4 && m->r1 == m->ldy) m->y[m->r1 - 1] = 0;
}

static void lazy_between(const hn_mm *m) /* and right again behind the clock */
{
    if (n_calls++ < 4 || n_calls % 8) honest(m);
}

static hn_wkv_fn *honest_wkv;
static void wkv_forgets(const hn_wkv *a) /* the right output, and a state that is off by a bit */
{
    honest_wkv(a);
    a->s[a->n * a->n - 1] = nextafterf(a->s[a->n * a->n - 1], INFINITY);
}
static void wkv_errs(const hn_wkv *a)
{
    honest_wkv(a);
    a->out[a->n - 1] = nextafterf(a->out[a->n - 1], INFINITY);
}

static void test_broken_recurrences_are_invalid(void **state)
{
    hn_cpu_level level = hn_cpu_best();
    if (level == HN_CPU_SCALAR) {
        print_message("SKIP: only the scalar level here, which is the reference\n");
        return;
    }
    hn_kernels *table = (hn_kernels *)hn_kernels_get(level);
    hn_kern_config c = { .threads = 2, .n_samples = 2 };
    for (int v = 6; v <= 7; v++) {
        hn_wkv_fn **fn = v == 6 ? &table->wkv6 : &table->wkv7;
        hn_kern_result r;
        char id[32];
        snprintf(id, sizeof id, "kern.wkv%d.4x16.3", v);
        honest_wkv = *fn;
        *fn = wkv_errs;
        measure(id, &c, &r, NULL, false);
        assert_int_equal(r.verdict.state, HN_INVALID);
        assert_non_null(strstr(r.verdict.reason, "token 0 differs"));
        assert_int_equal(r.time.n, 0);
        *fn = wkv_forgets;
        snprintf(id, sizeof id, "kern.wkv%d.4x16.1", v);
        measure(id, &c, &r, NULL, false);
        assert_int_equal(r.verdict.state, HN_INVALID);
        assert_non_null(strstr(r.verdict.reason, "state differs"));
        *fn = honest_wkv;
    }
}

static void test_broken_kernels_are_invalid(void **state)
{
    hn_cpu_level level = hn_cpu_best();
    if (level == HN_CPU_SCALAR) {
        print_message("SKIP: only the scalar level here, which is the reference\n");
        return;
    }
    hn_kernels *table = (hn_kernels *)hn_kernels_get(level); /* the one thing that a test may do to it */
    hn_kern_result r;
    hn_kern_config c = { .threads = 1, .columns = 1, .n_samples = 2 };
    honest = table->matmul[HN_Q8_0];
    table->matmul[HN_Q8_0] = lazy;
    measure("kern.gemv.Q8_0.64x256", &c, &r, NULL, false);
    assert_int_equal(r.verdict.state, HN_INVALID);
    assert_non_null(strstr(r.verdict.reason, "row 63"));
    assert_int_equal(r.time.n, 0); /* no time of wrong work */
    table->matmul[HN_Q8_0] = lazy_later;
    n_calls = 0;
    measure("kern.gemv.Q8_0.64x256", &c, &r, NULL, false);
    assert_int_equal(r.verdict.state, HN_INVALID);
    assert_non_null(strstr(r.verdict.reason, "row 63")); /* behind the clock it is looked at again */
    table->matmul[HN_Q8_0] = lazy_between;
    n_calls = 0;
    measure("kern.gemv.Q8_0.64x256", &c, &r, NULL, false);
    assert_int_equal(r.verdict.state, HN_INVALID);
    table->matmul[HN_Q8_0] = honest;
}

static void test_above_the_roof(void **state)
{
    hn_peaks p = { .cores = 1, .bound = true };
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        p.n[k] = 1;
        p.at[k][0] = (hn_peak_point){
            .threads = 1, .best = 1e-6, .most = 1e-6, .median = 1e-6
        }; /* a machine of 1000 operations a second */
    }
    hn_kern_result r;
    measure("kern.gemv.Q8_0.64x256", &(hn_kern_config){ .threads = 1, .columns = 1, .n_samples = 2 }, &r, &p, false);
    assert_int_equal(r.verdict.state, HN_INVALID);
    assert_true(r.share > 1);
    p.at[HN_PEAK_INT8][0].best = p.at[HN_PEAK_INT8][0].most = 1e9;
    hn_cache_bytes_set(UINT64_MAX); /* unknown: all of it may lie in one */
    measure("kern.gemv.Q8_0.64x256", &(hn_kern_config){ .threads = 1, .columns = 1, .n_samples = 2 }, &r, &p, false);
    if (r.verdict.state != HN_VALID) fail_msg("%s", r.verdict.reason);
    hn_cache_bytes_set(1 << 20);
    measure("kern.gemv.Q8_0.64x256", &(hn_kern_config){ .threads = 1, .columns = 1, .n_samples = 2 }, &r, &p, false);
    assert_int_equal(r.verdict.state, HN_INVALID);
    for (int k = 0; k < HN_PEAK_KINDS; k++) p.at[k][0].best = p.at[k][0].most = 1e9;
    measure("kern.gemv.Q8_0.64x256", &(hn_kern_config){ .threads = 1, .columns = 1, .n_samples = 2 }, &r, &p, false);
    assert_int_equal(r.verdict.state, HN_VALID);
    assert_true(r.share > 0 && r.share < 0.01 && r.roof);
}

int main(void)
{
    hn_cache_bytes_set(1 << 20); /* how cold the data is makes no difference here, only to how long it takes */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_list_of_a_preset),
        cmocka_unit_test(test_every_kind_runs),
        cmocka_unit_test(test_broken_kernels_are_invalid),
        cmocka_unit_test(test_broken_recurrences_are_invalid),
        cmocka_unit_test(test_above_the_roof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
