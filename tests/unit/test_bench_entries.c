/* Every entry that measures in this process runs on the bundled model, is proved by its own
 * references, and gives records that fit the published schema; on recurrent models too, or
 * says why there is nothing to measure. */
#include "base/os.h"
#include "kernels/kernels.h"
#include "lab/bench/bench.h"
#include "schema_check.h"
#include "lab/machine/clock.h"
#include "lab/machine/roof.h"
#include "slowed.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static const char model[] = "models/hone-tiny.gguf";

typedef struct seen {
    json_t *schema;
    int n, invalid, unchecked;
    char why[700];
} seen;

static hone_status look(void *arg, const hn_bench_entry *e, json_t *record, hone_error *err)
{
    seen *s = arg;
    schema_fault f = { "" };
    s->n++;
    if (!schema_valid(s->schema, s->schema, record, "", &f)) snprintf(s->why, sizeof s->why, "%s: %s", e->id, f.text);
    if (json_is_false(json_object_get(record, "valid"))) {
        s->invalid++;
        snprintf(s->why, sizeof s->why, "%s: %s", e->id, json_string_value(json_object_get(record, "invalid_reason")));
    }
    s->unchecked += json_is_null(json_object_get(record, "valid"));
    return HONE_OK;
}

/* What is only in the full suite, or takes seconds to set up, runs where the sanitizers do not. */
enum { SLOW_TOO = !SLOWED };

/* A model has attention, or a state: what has no subject in it says so. */
static bool has_no_subject(const char *id, bool recurrent)
{
    static const char *const attention[] = { "kern.attn",  "kern.attn.variants", "kern.attn.bw",
                                             "layer.rope", "layer.attn",         "layer.ffn",
                                             NULL };
    static const char *const mixes[] = { "layer.time_mix", "layer.channel_mix", NULL };
    for (const char *const *k = recurrent ? attention : mixes; *k; k++)
        if (strcmp(*k, id) == 0) return true;
    return false;
}

/* What the kind of model makes a difference to. */
static bool looks_at_kind(const hn_bench_entry *e)
{
    return strncmp(e->id, "layer.", 6) == 0 || strncmp(e->id, "e2e.", 4) == 0 || strncmp(e->id, "kern.attn", 9) == 0;
}

static void run_entries(const char *path, bool recurrent)
{
    seen s = { .schema = json_load_file("docs/bench.schema.json", 0, NULL) };
    hn_bench_run r;
    hone_error err;
    const hn_bench_entry *e;
    const hn_bench_settings set = { .model = path,
                                    .threads = 2,
                                    .warmups = 0,
                                    .samples = 2,
                                    .n_prompt = -1,
                                    .n_gen = -1,
                                    .depth = -1,
                                    .quick = true,
                                    .seed = 1,
                                    .counts = "3,20",
                                    .sink = look,
                                    .sink_arg = &s };
    assert_non_null(s.schema);
    if (hn_bench_begin(&r, &set, &err) != HONE_OK) fail_msg("%s", err.message);
    snprintf(r.no_roof, sizeof r.no_roof, "not for this test"); /* a noisy machine's roof may be too low */
    for (size_t i = 0; (e = hn_bench_at(i)); i++) {
        if (!e->run || strchr("PS", e->method))
            continue; /* they start the program, which this is not: tests/e2e has them */
        if (recurrent && !looks_at_kind(e)) continue;
        if (!SLOW_TOO && (e->cost > 2 || strncmp(e->id, "tensor.", 7) == 0)) continue;
        int before = s.n;
        uint64_t t = hn_clock_ns();
        hone_status st = hn_bench_run_one(&r, e, &err);
        if (has_no_subject(e->id, recurrent)) {
            assert_int_equal(st, HONE_E_UNSUPPORTED);
            if (!strstr(err.message, e->id) ||
                !strstr(err.message, recurrent ? "not for a recurrent model" : "only for a recurrent model"))
                fail_msg("%s: %s", e->id, err.message);
            assert_int_equal(s.n, before);
            continue;
        }
        if (st != HONE_OK) fail_msg("%s: %s", e->id, err.message);
        if (s.why[0]) fail_msg("%s", s.why);
        if (s.n == before) fail_msg("%s gave no record", e->id);
        printf("# %-24s %d records, %.2f s\n", e->id, s.n - before, (double)(hn_clock_ns() - t) * 1e-9);
    }
    assert_int_equal(s.invalid, 0);
    assert_int_equal(json_array_size(r.records), s.n);
    hn_bench_end(&r);
    json_decref(s.schema);
}

static void test_entries(void **state) { run_entries(model, false); }

static void test_entries_of_recurrent_models(void **state)
{
    static const char *const shapes[] = {
        "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":64,\"head_dim\":32,\"n_ff\":96,\"n_vocab\":400,\"rank_decay\":8,"
        "\"rank_iclr\":4,\"rank_value\":4,\"rank_gate\":12}",
        "{\"arch\":\"rwkv6\",\"n_layer\":3,\"n_embd\":64,\"head_dim\":32,\"n_vocab\":400,\"rank_mix\":4,\"rank_decay\":"
        "8,\"rescale_every\":2}"
    };
    char config[64], path[64];
    snprintf(config, sizeof config, "/tmp/hone-entries-%d.json", (int)getpid());
    snprintf(path, sizeof path, "/tmp/hone-entries-%d.gguf", (int)getpid());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hone_error err;
        FILE *f = fopen(config, "w");
        assert_non_null(f);
        fputs(shapes[i], f);
        fclose(f);
        if (hone_synth(&(hone_synth_params){ .config_path = config, .type = i ? "F32" : "Q8_0" }, path, NULL, &err) !=
            HONE_OK)
            fail_msg("%s", err.message);
        run_entries(path, true);
    }
    unlink(config);
    unlink(path);
}

static void test_bad_counts(void **state)
{
    hn_bench_run r;
    hone_error err;
    static const char *const bad[] = { "0", "x", "1,,2", "99999999", "1;2", "-1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const hn_bench_settings set = { .threads = 1, .warmups = 0, .samples = 2, .counts = bad[i] };
        if (hn_bench_begin(&r, &set, &err) != HONE_OK) fail_msg("%s", err.message);
        if (hn_bench_run_one(&r, hn_bench_find("disp.call"), &err) != HONE_E_ARG)
            fail_msg("--counts %s was taken", bad[i]);
        hn_bench_end(&r);
    }
}

/* ---- broken kernels: each entry that runs them must notice ------------------------------------------- */

static hn_kernels right;
static _Atomic int n_norms;

static void wrong_matmul(const hn_mm *m)
{
    right.matmul[HN_F32](m);
    if (m->r0 == 0) m->y[0] += 1e-3f * m->y[0] + 1e-3f;
}
static void wrong_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    right.rms_norm(y, x, w, n, eps);
    y[n - 1] = nextafterf(y[n - 1], INFINITY); /* one bit, once it is warm */
    if (n_norms++ < 1000) y[n - 1] = nextafterf(y[n - 1], -INFINITY);
}
static void wrong_silu(float *y, const float *g, const float *u, int64_t n)
{
    right.silu_mul(y, g, u, n);
    y[0] = 0;
}
static void wrong_exp(float *y, const float *x, int64_t n)
{
    right.exp(y, x, n - 1);
    y[n - 1] = x[n - 1];
}
static void wrong_attn(const hn_attn *a, hn_cache_type t)
{
    right.attn[t](a);
    if (a->out && !a->part) a->out[a->d - 1] = NAN;
}
static void wrong_f16(const hn_attn *a) { wrong_attn(a, HN_CACHE_F16); }
static void wrong_f32(const hn_attn *a) { wrong_attn(a, HN_CACHE_F32); }

static void run_broken(const char *id, int least)
{
    seen s = { .schema = json_load_file("docs/bench.schema.json", 0, NULL) };
    hn_bench_run r;
    hone_error err;
    const hn_bench_settings set = {
        .model = model, .threads = 1, .warmups = 0, .samples = 2, .quick = true, .sink = look, .sink_arg = &s
    };
    if (hn_bench_begin(&r, &set, &err) != HONE_OK) fail_msg("%s", err.message);
    snprintf(r.no_roof, sizeof r.no_roof, "not for this test");
    n_norms = 0;
    if (hn_bench_run_one(&r, hn_bench_find(id), &err) != HONE_OK) fail_msg("%s: %s", id, err.message);
    if (s.invalid < least)
        fail_msg("%s: %d of %d records of a broken kernel are invalid, expected %d", id, s.invalid, s.n, least);
    size_t i;
    json_t *o;
    json_array_foreach(r.records, i, o) if (json_is_false(json_object_get(o, "valid")))
        assert_int_equal(json_array_size(json_object_get(o, "samples")), 0); /* nor was it timed */
    hn_bench_end(&r);
    json_decref(s.schema);
}

static void test_broken_kernels_are_seen(void **state)
{
    hn_cpu_level level = hn_cpu_best();
    if (level == HN_CPU_SCALAR) {
        print_message("SKIP: only the scalar level here, which is the reference\n");
        return;
    }
    hn_kernels *table = (hn_kernels *)hn_kernels_get(level); /* the one thing that a test may do to it */
    right = *table;
    table->matmul[HN_F32] = wrong_matmul;
    run_broken("kern.matmul.single", 1);
    run_broken("kern.matmul.batched", 1);
    if (SLOW_TOO) run_broken("tensor.matmul.parallel", 1);
    *table = right;
    table->rms_norm = wrong_norm;
    run_broken("tensor.1024.rmsnorm", 1);
    run_broken("layer.full", 1);
    run_broken("layer.all", 1);
    *table = right;
    table->silu_mul = wrong_silu;
    run_broken("tensor.elementwise", 1);
    *table = right;
    table->exp = wrong_exp;
    run_broken("tensor.elementwise", 1);
    run_broken("tensor.1024.softmax", 1);
    *table = right;
    table->attn[HN_CACHE_F32] = wrong_f32;
    table->attn[HN_CACHE_F16] = wrong_f16;
    if (SLOW_TOO) run_broken("tensor.1024.attention", 1);
    run_broken("kern.attn.variants", 2);
    *table = right;
}

int main(void)
{
    if (access(model, R_OK) != 0) {
        printf("SKIP: %s is not here\n", model);
        return 77;
    }
    hn_cache_bytes_set(1 << 20); /* how cold the data is makes no difference here, only to how long it takes */
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_entries),
                                        cmocka_unit_test(test_entries_of_recurrent_models),
                                        cmocka_unit_test(test_bad_counts),
                                        cmocka_unit_test(test_broken_kernels_are_seen) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
