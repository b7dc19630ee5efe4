/* The machinery of the catalogue: every id of the specification is there once, patterns mean
 * what they say, epochs are long enough, what cannot be is invalid, records fit the
 * published schema and would not without their parts, and nothing added is lost. */
#include "base/os.h"
#include "lab/inside/bench_rooms.h"
#include "schema_check.h"
#include "lab/machine/clock.h"
#include "lab/record/record.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static json_t *schema;

static int load_schema(void **state)
{
    json_error_t e;
    schema = json_load_file("docs/bench.schema.json", 0, &e);
    if (!schema) fprintf(stderr, "docs/bench.schema.json: line %d: %s\n", e.line, e.text);
    return schema ? 0 : -1;
}
static int free_schema(void **state)
{
    json_decref(schema);
    return 0;
}

static void assert_fits(json_t *record)
{
    schema_fault f = { "" };
    if (!schema_valid(schema, schema, record, "", &f))
        fail_msg("%s: %s", json_string_value(json_object_get(record, "id")), f.text);
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Section 6 of the benchmarking specification. What fresh processes measure (load, e2e, memory, quality) is
 * bench_process.c's to list. */
static const char *const ids[] = {
    "tok.encode",
    "tok.decode",
    "tensor.matmul.naive",
    "tensor.matmul.simd",
    "tensor.matmul.parallel",
    "tensor.elementwise",
    "tensor.1024.matmul",
    "tensor.1024.softmax",
    "tensor.1024.layernorm",
    "tensor.1024.rmsnorm",
    "tensor.1024.attention",
    "kern.matmul.single",
    "kern.matmul.batched",
    "kern.gemm.TYPE.SHAPE",
    "kern.trellis",
    "kern.attn",
    "kern.attn.variants",
    "kern.attn.bw",
    "kern.bf16.plain",
    "kern.bf16.opt",
    "kern.dtype",
    "kern.quant",
    "kern.fp4",
    "kern.select",
    "kern.variants",
    "disp.call",
    "disp.dynamic",
    "moe.kernel",
    "moe.dispatch",
    "moe.multicase",
    "moe.mixed.slow_path",
    "moe.mixed.fast_uniform",
    "moe.mixed.fast_mixed",
    "moe.mixed.hybrid",
    "moe.mixed.max_bits_padded",
    "mem.access",
    "mem.buffer",
    "mem.unified",
    "mem.kvlayout.BHSD",
    "mem.kvlayout.BSHD",
    "mem.kvlayout.HBSD",
    "layer.embed",
    "layer.rope",
    "layer.norm",
    "layer.attn",
    "layer.ffn",
    "layer.full",
    "layer.all",
    "sample.greedy",
    "sample.temp",
    "sample.topk",
    "sample.topp",
    "e2e.scale.shard",
    "e2e.stream",
    "e2e.glm47.throughput",
    "e2e.glm47.trellis",
    "e2e.glm47.quality",
    "memory.train",
    "train.lora",
    "train.grad.fwd",
    "train.grad.bwd",
    "train.grad.total",
    "serve.load",
    "cmp.ENGINE",
};
enum { N_IDS = sizeof ids / sizeof *ids };

static void test_every_id_once(void **state)
{
    const hn_bench_entry *e;
    for (size_t i = 0; i < N_IDS; i++) {
        int n = 0;
        for (size_t k = 0; (e = hn_bench_at(k)); k++) n += strcmp(e->id, ids[i]) == 0;
        if (n != 1) fail_msg("%s is listed %d times", ids[i], n);
    }
    for (size_t k = 0; (e = hn_bench_at(k)); k++) {
        assert_ptr_equal(hn_bench_find(e->id), e);
        assert_true(e->what && e->what[0] && e->unit && strchr("KOPST", e->method));
        if (!e->run == !e->needs) fail_msg("%s must either run or say what it needs", e->id);
        if (e->needs && (hn_bench_in_suite(e, "quick") || hn_bench_in_suite(e, "full")))
            fail_msg("%s is absent, but in a suite", e->id);
        if (!e->needs && !hn_bench_in_suite(e, "full")) fail_msg("%s is not in the full suite", e->id);
    }
    assert_null(hn_bench_find("tok"));
    assert_null(hn_bench_find(""));
}

/* Every word that a row uses or sets is an option of hone bench; what a row sets it does not use. */
static void test_options_of_rows(void **state)
{
    static const char *const known[] = { "n-prompt", "n-gen",        "depth",   "lora",   "no-quality",
                                         "quality",  "prompt-seed",  "timing",  "counts", "model",
                                         "draw",     "pre",          "threads", "cpu",    "threads-batch",
                                         "chunk",    "allow-paging", "kv",      "packed" };
    const hn_bench_entry *e;
    int plain = 0;
    for (size_t k = 0; (e = hn_bench_at(k)); k++) {
        const char *const lists[] = { e->uses, e->sets };
        for (int l = 0; l < 2; l++)
            for (const char *w = lists[l]; w && *w; w += strspn(w, " ")) {
                size_t n = strcspn(w, " "), i = 0, all = sizeof known / sizeof *known;
                while (i < all && !(strlen(known[i]) == n && memcmp(known[i], w, n) == 0)) i++;
                if (i == all) fail_msg("%s: '%.*s' is no option that rows have", e->id, (int)n, w);
                if (hn_bench_uses(e, known[i]) != (l == 0)) fail_msg("%s: %s", e->id, known[i]);
                w += n;
            }
        plain += e->plain;
    }
    assert_int_equal(plain, 1);
    assert_string_equal(hn_bench_plain()->id, "e2e");
    assert_true(hn_bench_uses(hn_bench_find("e2e"), "depth") && hn_bench_uses(hn_bench_find("e2e.gen"), "n-prompt"));
    assert_false(hn_bench_uses(hn_bench_find("e2e.gen"), "depth") ||
                 hn_bench_uses(hn_bench_find("e2e.clean"), "n-gen"));
    assert_false(hn_bench_uses(hn_bench_find("tok.encode"), "kv") ||
                 hn_bench_uses(hn_bench_find("disp.call"), "model"));
    assert_true(hn_bench_uses(hn_bench_find("tok.encode"), "pre") && hn_bench_uses(hn_bench_find("layer.all"), "kv"));
    assert_false(hn_bench_uses(hn_bench_find("e2e.backend"), "cpu") ||
                 hn_bench_uses(hn_bench_find("e2e.scale.threads"), "threads"));
    assert_true(hn_bench_id_uses("kern.gemv.Q4_K.64x256", "columns") && hn_bench_id_uses("e2e.*", "depth") == false);
    assert_true(hn_bench_id_uses("e2e.*", "n-prompt") && hn_bench_id_uses("tok", "model"));
    assert_true(hn_bench_is_particular("depth") && hn_bench_is_particular("layout") && !hn_bench_is_particular("file"));
    assert_true(hn_bench_takes("kern.norm.96", "--threads=2") && hn_bench_takes("kern.norm.96", "--title=x"));
    assert_false(hn_bench_takes("kern.norm.96", "--kv=f32") || hn_bench_takes("kern.norm.96", "--allow-paging"));
}

static void test_order_of_the_list(void **state)
{
    const hn_bench_entry *a = hn_bench_find("mem.access"), *b = hn_bench_find("layer.all"), *e;
    size_t ia = 0, ib = 0;
    for (size_t k = 0; (e = hn_bench_at(k)); k++) {
        if (e == a) ia = k;
        if (e == b) ib = k;
    }
    assert_true(ia < ib);
}

static void test_patterns(void **state)
{
    assert_true(hn_bench_matches("tok", "tok.encode"));
    assert_true(hn_bench_matches("tok.encode", "tok.encode"));
    assert_true(hn_bench_matches("kern.attn", "kern.attn"));
    assert_true(hn_bench_matches("kern.attn", "kern.attn.bw"));
    assert_true(hn_bench_matches("*.matmul*", "tensor.matmul.simd"));
    assert_true(hn_bench_matches("sample.top?", "sample.topk"));
    assert_false(hn_bench_matches("mem", "memory.load"));
    assert_false(hn_bench_matches("tok", "token.x"));
    assert_false(hn_bench_matches("tok.enc", "tok.encode"));
    assert_false(hn_bench_matches("", "tok.encode"));
    const hn_bench_entry e = { .suites = "quick full" };
    assert_true(hn_bench_in_suite(&e, "full"));
    assert_false(hn_bench_in_suite(&e, "ful"));
    assert_false(hn_bench_in_suite(&e, "ci"));
}

/* ---- a run --------------------------------------------------------------------------------------- */

typedef struct kept {
    int n;
    hone_status answer;
    json_t *last;
} kept;

static hone_status keep(void *arg, const hn_bench_entry *e, json_t *record, hone_error *err)
{
    kept *k = arg;
    k->n++;
    json_decref(k->last);
    k->last = json_incref(record);
    return k->answer == HONE_OK ? HONE_OK : HN_FAIL(err, k->answer, "told to");
}

static bool stop_now;
static bool stop(void *unused) { return stop_now; }

static void begin(hn_bench_run *r, kept *k)
{
    hone_error err;
    *k = (kept){ 0 };
    stop_now = false;
    const hn_bench_settings s = { .threads = 1,
                                  .cpu = "scalar",
                                  .warmups = -1,
                                  .samples = 8,
                                  .n_prompt = -1,
                                  .n_gen = -1,
                                  .depth = -1,
                                  .sink = keep,
                                  .sink_arg = k,
                                  .stop = stop,
                                  .title = "t" };
    if (hn_bench_begin(r, &s, &err) != HONE_OK) fail_msg("%s", err.message);
    snprintf(r->no_roof, sizeof r->no_roof, "none here");
}

static void end(hn_bench_run *r, kept *k)
{
    json_decref(k->last);
    hn_bench_end(r);
}

/* Peaks that this test has made up: 10 GB/s, 100 GOPS. */
static void give_roof(hn_bench_run *r)
{
    r->no_roof[0] = 0;
    r->peaks = (hn_peaks){ .cores = 1, .bound = true };
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        r->peaks.n[k] = 1;
        r->peaks.at[k][0] = (hn_peak_point){ .threads = 1,
                                             .best = k == HN_PEAK_READ_BW ? 10 : 100,
                                             .most = k == HN_PEAK_READ_BW ? 10 : 100 };
    }
}

static const hn_bench_entry fake = { .id = "tok.fake", .what = "x", .unit = "us", .method = 'K', .target = "< 1 us" };

static void add(hn_bench_run *r, hn_bench_result *res)
{
    hone_error err;
    if (hn_bench_add(r, &fake, res, &err) != HONE_OK) fail_msg("%s", err.message);
}

static bool is_valid(const kept *k) { return json_is_true(json_object_get(k->last, "valid")); }

static void test_a_record(void **state)
{
    hn_bench_run r;
    kept k;
    begin(&r, &k);
    const double x[] = { 3, 1, 2, 5, 4, 6, 8, 7 };
    hn_bench_result res = { .variant = "v",
                            .samples = x,
                            .n = 8,
                            .warmups = 2,
                            .verdict.state = HN_VALID,
                            .config = json_pack("{s:i}", "n", 7),
                            .extra = json_pack("{s:i}", "e", 1),
                            .memory = json_object() };
    hn_bench_note(&res, "said %d", 5);
    add(&r, &res);
    assert_int_equal(k.n, 1);
    assert_true(is_valid(&k));
    assert_fits(k.last);
    assert_int_equal(json_array_size(json_object_get(k.last, "samples")), 8);
    assert_float_equal(json_number_value(json_object_get(json_object_get(k.last, "stats"), "median")), 4.5, 0);
    assert_string_equal(json_string_value(json_object_get(k.last, "better")), "lower");
    assert_string_equal(json_string_value(json_object_get(k.last, "target")), "< 1 us");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(k.last, "config"), "n")), 7);
    assert_int_equal(json_array_size(r.records), 1);
    /* the schema is strict: none of these may be missing, nor anything unheard of be there */
    for (const char *const *key =
             (const char *const[]){ "samples", "unit", "roofline", "schema", "id",      "record", "stats",
                                    "config",  "env",  "valid",    "better", "warmups", "method", "notes",
                                    "extra",   "git",  "build",    "voided", "target",  "model",  NULL };
         *key; key++) {
        json_t *less = json_copy(k.last);
        json_object_del(less, *key);
        if (schema_valid(schema, schema, less, "", NULL)) fail_msg("a record without %s fits the schema", *key);
        json_decref(less);
    }
    json_t *more = json_copy(k.last);
    json_object_set_new(more, "speed", json_integer(1));
    assert_false(schema_valid(schema, schema, more, "", NULL));
    json_object_del(more, "speed");
    json_object_set_new(more, "unit", json_string("parsecs"));
    assert_false(schema_valid(schema, schema, more, "", NULL));
    json_object_set_new(more, "unit", json_string("us"));
    json_object_set_new(more, "samples", json_array()); /* valid, but of nothing */
    assert_false(schema_valid(schema, schema, more, "", NULL));
    json_decref(more);
    end(&r, &k);
}

static void test_identities_differ(void **state)
{
    char seen[64][16];
    for (int i = 0; i < 64; i++) {
        json_t *id = hn_bench_identity();
        snprintf(seen[i], sizeof seen[i], "%s", json_string_value(id));
        assert_int_equal(strlen(seen[i]), 12);
        for (int j = 0; j < i; j++) assert_string_not_equal(seen[i], seen[j]);
        json_decref(id);
    }
}

static void test_what_cannot_be(void **state)
{
    hn_bench_run r;
    kept k;
    begin(&r, &k);
    static const double nan[] = { 1, NAN, 2 }, zero[] = { 1, 0 }, negative[] = { -1 }, inf[] = { INFINITY };
    static const struct {
        const double *x;
        size_t n;
    } bad[] = { { nan, 3 }, { zero, 2 }, { negative, 1 }, { inf, 1 }, { NULL, 0 } };
    for (size_t i = 0; i < 5; i++) {
        hn_bench_result res = { .samples = bad[i].x, .n = bad[i].n, .verdict.state = HN_VALID };
        add(&r, &res);
        assert_false(is_valid(&k));
        assert_true(json_is_string(json_object_get(k.last, "invalid_reason")));
        assert_fits(k.last);
        assert_int_equal(r.n_invalid, i + 1);
    }
    hn_bench_result fine = { .samples = zero, .n = 2, .zero_ok = true, .verdict.state = HN_VALID };
    add(&r, &fine);
    assert_true(is_valid(&k));
    hn_bench_result unchecked = { .samples = zero, .n = 1 };
    add(&r, &unchecked);
    assert_true(json_is_null(json_object_get(k.last, "valid")));
    assert_fits(k.last);
    end(&r, &k);
}

/* A call of 100 us: 10 GB/s are 1 MB, 100 GFLOP/s are 10^7 operations. */
static bool at_once(void *arg) { return true; }

static void test_the_roof(void **state)
{
    hn_bench_run r;
    kept k;
    begin(&r, &k);
    give_roof(&r);
    /* what is beyond a made-up roof is not measured again, for seconds each: test_lab_peaks does that */
    r.set.stop = at_once;
    static const double us[] = { 100, 100, 100 };
    double far = 1e15; /* rotated bytes: no cache keeps any */
    static const struct {
        double bytes, ops, rotated;
        bool valid;
        const char *roof;
        double pct;
    } cases[] = { { 0.5e6, 0, 1, true, "read", 50 },     { 0.99e6, 0, 1, true, "read", 99 },
                  { 1.04e6, 0, 1, true, "read", 104 },   { 1.10e6, 0, 1, false, "read", 110 },
                  { 1.10e6, 0, 0, true, NULL, 0 },       { 0, 0.25e7, 0, true, "f32", 25 },
                  { 0, 1.10e7, 0, false, "f32", 110 },   { 0.5e6, 0.25e7, 1, true, "read", 50 },
                  { 0.1e6, 0.25e7, 1, true, "f32", 25 }, { 0, 0, 0, true, NULL, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_bench_result res = { .samples = us,
                                .n = 3,
                                .verdict.state = HN_VALID,
                                .bytes = cases[i].bytes,
                                .ops = cases[i].ops,
                                .rotated_bytes = cases[i].rotated * far };
        add(&r, &res);
        json_t *roof = json_object_get(k.last, "roofline");
        assert_int_equal(is_valid(&k), cases[i].valid);
        assert_fits(k.last);
        if (!cases[i].roof) assert_true(json_is_null(json_object_get(roof, "roof")));
        else {
            assert_string_equal(json_string_value(json_object_get(roof, "roof")), cases[i].roof);
            assert_float_equal(json_number_value(json_object_get(roof, "pct")), cases[i].pct, 0.01);
        }
    }
    hn_cache_bytes_set(UINT64_MAX); /* unknown: all of it may lie in one */
    hn_bench_result cached = {
        .samples = us, .n = 3, .verdict.state = HN_VALID, .bytes = 1.10e6, .rotated_bytes = far
    };
    add(&r, &cached);
    assert_true(is_valid(&k));
    hn_cache_bytes_set(0);
    static const double gb[] = { 11 }, tops[] = { 0.11 }, tok[] = { 11000 };
    const struct {
        const char *unit;
        const double *x;
        double bytes, ops;
    } rates[] = { { "GB/s", gb, 1e6, 0 }, { "TOPS", tops, 0, 1e7 }, { "tok/s", tok, 1e6, 0 } };
    for (size_t i = 0; i < 3; i++) { /* rates say how long a call takes */
        hn_bench_result res = { .unit = rates[i].unit,
                                .better = 1,
                                .samples = rates[i].x,
                                .n = 1,
                                .verdict.state = HN_VALID,
                                .bytes = rates[i].bytes,
                                .ops = rates[i].ops,
                                .int8 = true,
                                .rotated_bytes = far };
        add(&r, &res);
        assert_false(is_valid(&k));
        assert_string_equal(json_string_value(json_object_get(k.last, "better")), "higher");
    }
    end(&r, &k);
}

static void test_a_sink_that_cannot(void **state)
{
    hn_bench_run r;
    kept k;
    hone_error err;
    static const double us[] = { 1 };
    begin(&r, &k);
    k.answer = HONE_E_IO; /* a full disk: the record is in memory, the run goes on */
    hn_bench_result res = { .samples = us, .n = 1, .verdict.state = HN_VALID };
    add(&r, &res);
    assert_int_equal(r.n_lost, 1);
    assert_int_equal(json_array_size(r.records), 1);
    k.answer = HONE_E_INTERRUPTED;
    hn_bench_result again = { .samples = us, .n = 1, .verdict.state = HN_VALID };
    assert_int_equal(hn_bench_add(&r, &fake, &again, &err), HONE_E_INTERRUPTED);
    assert_int_equal(json_array_size(r.records), 2);
    end(&r, &k);
}

/* ---- loops ------------------------------------------------------------------------------------------ */

/* A clock that only readings and work move, whatever the machine does meanwhile. */
static uint64_t made_ns;
static uint64_t made_clock(void) { return made_ns += 10; }
static int begin_made_clock(void **state)
{
    made_ns = 1;
    hn_clock_set(made_clock);
    return 0;
}
static int end_made_clock(void **state)
{
    hn_clock_set(NULL);
    return 0;
}

typedef struct work {
    int64_t calls, epochs;
} work;
static void spin(void *arg, int64_t calls)
{
    work *w = arg;
    w->epochs++;
    w->calls += calls;
    made_ns += (uint64_t)calls * 20000; /* 20 us a call */
}

static void test_epochs(void **state)
{
    hn_bench_run r;
    kept k;
    hone_error err;
    hn_bench_timing t;
    work w = { 0 };
    begin(&r, &k);
    assert_int_equal(hn_bench_time(&r, &t, spin, &w, 1, NULL, &err), HONE_OK);
    assert_int_equal(t.n, 8);
    assert_int_equal(t.warmups, HN_BENCH_WARMUPS);
    assert_in_range(t.calls, 50, 500); /* an epoch is a millisecond at least, and not ten */
    for (size_t i = 0; i < t.n; i++) assert_true(t.s[i] >= 20e-6 && t.s[i] < 20.1e-6);
    assert_true(w.calls >= t.calls * (8 + HN_BENCH_WARMUPS));
    hn_bench_timing_free(&t);
    r.set.measure_s = 0.1; /* as long as asked for, then more samples */
    uint64_t began = hn_clock_ns();
    assert_int_equal(hn_bench_time(&r, &t, spin, &w, 1, NULL, &err), HONE_OK);
    assert_true(hn_clock_ns() - began > 100000000u && t.n >= 8);
    hn_bench_timing_free(&t);
    stop_now = true;
    assert_int_equal(hn_bench_time(&r, &t, spin, &w, 1, NULL, &err), HONE_E_INTERRUPTED);
    assert_null(t.s);
    end(&r, &k);
}

static void slow(void *arg, int64_t calls)
{
    work *w = arg;
    w->calls += calls;
    made_ns += 300000000u * (uint64_t)calls;
}

static void test_long_calls_are_warm_soon(void **state)
{
    hn_bench_run r;
    kept k;
    hone_error err;
    hn_bench_timing t;
    work w = { 0 };
    begin(&r, &k);
    r.set.samples = 1;
    assert_int_equal(hn_bench_time(&r, &t, slow, &w, 1, NULL, &err), HONE_OK);
    assert_int_equal(t.calls, 1);
    assert_true(t.warmups >= 3 && t.warmups <= 5); /* a second of 0.3 s each, and no more unless asked for */
    hn_bench_timing_free(&t);
    end(&r, &k);
}

static void never(void *arg, int64_t calls) { fail_msg("timed what is wrong"); }

static void test_wrong_output_is_not_timed(void **state)
{
    hn_bench_run r;
    kept k;
    hone_error err;
    begin(&r, &k);
    hn_bench_result res = { 0 };
    hn_invalid(&res.verdict, "the output differs");
    assert_int_equal(hn_bench_loop(&r, &fake, &res, never, NULL, 1, false, NULL, &err), HONE_OK);
    assert_false(is_valid(&k));
    assert_string_equal(json_string_value(json_object_get(k.last, "invalid_reason")), "the output differs");
    assert_int_equal(json_array_size(json_object_get(k.last, "samples")), 0);
    assert_fits(k.last);
    end(&r, &k);
}

static void test_comparisons(void **state)
{
    const float a[] = { 1, -2, 0.5f, 0 };
    const double want[] = { 1, -2, 0.5, 0 };
    for (int broken = -1; broken < 4; broken++)
        for (int how = 0; how < 3; how++) {
            float b[4];
            hn_verdict same = { 0 }, near = { 0 };
            memcpy(b, a, sizeof b);
            if (broken >= 0) b[broken] = how == 0 ? NAN : how == 1 ? b[broken] + 0.01f : -INFINITY;
            hn_bench_same(&same, b, a, 4, "x");
            hn_bench_near(&near, b, want, 4, 1e-3, "x");
            hn_bench_proved(&same);
            hn_bench_proved(&near);
            assert_int_equal(same.state, broken < 0 ? HN_VALID : HN_INVALID);
            assert_int_equal(near.state, broken < 0 ? HN_VALID : HN_INVALID);
        }
    const float zeros[] = { 0, -0.0f }, plain[] = { 0, 0 }; /* equal numbers, other bits */
    hn_verdict v = { 0 };
    hn_bench_same(&v, zeros, plain, 2, "x");
    assert_int_equal(v.state, HN_INVALID);
}

static double seen_done, seen_left;
static void watch(void *arg, const char *id, double done, double left_s)
{
    seen_done = done;
    seen_left = left_s;
}
static hone_status steps(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    assert_false(hn_bench_step(r, 0.5));
    assert_float_equal(seen_done, 0.25, 1e-9);
    assert_true(seen_left >= 0);
    return HONE_OK;
}

static void test_progress_and_refusals(void **state)
{
    hn_bench_run r;
    kept k;
    hone_error err;
    begin(&r, &k);
    r.set.progress = watch;
    r.cost_all = 4;
    const hn_bench_entry e = { .id = "x", .unit = "us", .method = 'K', .cost = 2, .run = steps },
                         none = { .id = "y", .unit = "us", .method = 'K', .needs = "a moon" };
    const hn_bench_entry with_model = { .id = "z", .unit = "us", .method = 'K', .model = true, .run = steps };
    assert_int_equal(hn_bench_run_one(&r, &e, &err), HONE_OK);
    assert_float_equal(r.cost_done, 2, 0);
    assert_int_equal(hn_bench_run_one(&r, &none, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a moon"));
    assert_int_equal(hn_bench_run_one(&r, &with_model, &err), HONE_E_ARG);
    stop_now = true;
    assert_int_equal(hn_bench_run_one(&r, &e, &err), HONE_E_INTERRUPTED);
    const hn_bench_settings bad = { .cpu = "vax", .warmups = -1, .samples = -1 }, none_at_all = { .samples = 0 },
                            many = { .samples = 1000000 };
    hn_bench_run r2;
    assert_int_equal(hn_bench_begin(&r2, &bad, &err), HONE_E_ARG);
    assert_int_equal(hn_bench_begin(&r2, &none_at_all, &err), HONE_E_ARG);
    assert_int_equal(hn_bench_begin(&r2, &many, &err), HONE_E_ARG);
    end(&r, &k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_id_once),
        cmocka_unit_test(test_options_of_rows),
        cmocka_unit_test(test_order_of_the_list),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_a_record),
        cmocka_unit_test(test_identities_differ),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_the_roof),
        cmocka_unit_test(test_a_sink_that_cannot),
        cmocka_unit_test_setup_teardown(test_epochs, begin_made_clock, end_made_clock),
        cmocka_unit_test_setup_teardown(test_long_calls_are_warm_soon, begin_made_clock, end_made_clock),
        cmocka_unit_test(test_wrong_output_is_not_timed),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_progress_and_refusals),
    };
    return cmocka_run_group_tests(tests, load_schema, free_schema);
}
