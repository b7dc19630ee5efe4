/* Baselines: names, files that are kept whole and notice being changed, every byte of a model, what
 * differs, and verdicts: what they miss and how often they are wrong. */
#include "lab/judge/baseline.h"
#include "lab/judge/gate.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];
static uint64_t key, counter;
static double normal(void)
{
    double u = ((double)(hn_rand64(key, counter++) >> 11) + 0.5) * 0x1p-53,
           v = ((double)(hn_rand64(key, counter++) >> 11) + 0.5) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void spill(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *t = calloc(1, 1 << 20);
    assert_non_null(t);
    assert_true(fread(t, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return t;
}

/* A plain run: n samples around the given speeds. */
static json_t *record(size_t n, double prefill, double decode, double anon, double noise)
{
    json_t *samples = json_array(), *stats = json_object();
    double *x[3] = { calloc(n, sizeof(double)), calloc(n, sizeof(double)), calloc(n, sizeof(double)) };
    static const char *const names[] = { "prefill_tok_s", "decode_tok_s", "peak_anon_mb" };
    const double at[] = { prefill, decode, anon };
    for (size_t i = 0; i < n; i++) {
        json_t *s = json_object();
        for (int k = 0; k < 3; k++) {
            x[k][i] = at[k] * (k < 2 ? exp(noise * normal()) : 1);
            json_object_set_new(s, names[k], json_real(x[k][i]));
        }
        json_object_set_new(s, "ids", json_pack("[i,i,i]", 1, 2, 3));
        json_array_append_new(samples, s);
    }
    for (int k = 0; k < 3; k++) {
        hn_stats s;
        hn_stats_of(&s, x[k], n, NULL);
        json_object_set_new(stats, names[k], hn_stats_json(&s));
        free(x[k]);
    }
    json_t *r =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:n, s:{s:i,s:i,s:i,s:s,s:s,s:i}, s:{s:s,s:s}, s:{s:s,s:i,s:s}, "
                  "s:{s:s,s:b}, s:{s:s,s:s,s:s}}",
                  "schema", HN_BENCH_SCHEMA, "id", "e2e", "record", "0123456789ab", "ts", "2026-01-31T12:34:56Z",
                  "valid", 1, "invalid_reason", "config", "n_prompt", 64, "n_gen", 16, "threads", 2, "cpu", "avx2",
                  "weights", "plain", "samples", (int)n, "model", "path_name", "m.gguf", "fingerprint", "f", "env",
                  "hash", "12345678", "cores", 2, "kernel", "Linux 6", "git", "commit", "abc", "dirty", 0, "better",
                  "prefill_tok_s", "higher", "decode_tok_s", "higher", "peak_anon_mb", "lower");
    assert_non_null(r);
    json_object_set_new(r, "samples", samples);
    json_object_set_new(r, "stats", stats);
    return r;
}

static json_t *one(json_t *r)
{
    json_t *a = json_array();
    json_array_append_new(a, r);
    return a;
}

static json_t *quality(void)
{
    return json_pack("{s:s, s:b, s:n, s:[[i,i,i],[i,i,i]]}", "hash", "q1-11111111-22222222", "valid", 1, "reason",
                     "ids", 1, 2, 3, 4, 5, 6);
}
static json_t *bytes(void)
{
    return json_pack("{s:s, s:i, s:s, s:[{s:s,s:i,s:s}]}", "path", "/m.gguf", "bytes", 7, "sha256", "aa", "files",
                     "name", "m.gguf", "bytes", 7, "sha256", "aa");
}

static json_t *baseline(json_t *records)
{
    hone_error err;
    json_t *b, *m = bytes(), *q = quality(), *args = json_pack("[s]", "--n-gen=16");
    if (hn_baseline_make(&b, "base", records, m, q, args, &err) != HONE_OK) fail_msg("%s", err.message);
    json_decref(m);
    json_decref(q);
    json_decref(args);
    return b;
}

/* ---- names and files -------------------------------------------------------------------------- */

static void test_names(void **state)
{
    hone_error err;
    static const char *const good[] = { "a", "main", "v1.2_rc-3", "0",
                                        "0123456789012345678901234567890123456789012345678901234567890123" };
    static const char *const bad[] = {
        "",         ".",
        "..",       ".x",
        "-x",       "_x",
        "a/b",      "../a",
        "a b",      "a\n",
        "\xc3\xa9", "a\xff",
        "a*",       "01234567890123456789012345678901234567890123456789012345678901234"
    };
    char path[100];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(hn_baseline_name(good[i], &err), HONE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hn_baseline_name(bad[i], &err), HONE_E_ARG);
        assert_int_equal(hn_baseline_path(path, sizeof path, "d", bad[i], &err), HONE_E_ARG);
    }
    assert_int_equal(hn_baseline_path(path, sizeof path, NULL, "main", &err), HONE_OK);
    assert_string_equal(path, "benchmarks/baselines/main.json");
    assert_int_equal(hn_baseline_path(path, 20, "d", "0123456789012345", &err), HONE_E_ARG);
}

static void test_kept_whole(void **state)
{
    hone_error err;
    char path[128];
    key = 1;
    json_t *records = one(record(10, 1000, 50, 3, 0.02)), *b = baseline(records), *back;
    snprintf(path, sizeof path, "%s/deep/er/base.json", dir);
    assert_int_equal(hn_baseline_store(b, path, &err), HONE_OK);
    assert_int_equal(hn_baseline_load(&back, path, &err), HONE_OK);
    assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(back, "records"), 0), "samples")),
                     10);
    assert_string_equal(json_string_value(json_object_get(back, "quality")), "q1-11111111-22222222");
    assert_string_equal(json_string_value(json_array_get(json_object_get(back, "ids"), 0)), "e2e");
    assert_string_equal(json_string_value(json_object_get(json_object_get(back, "env"), "hash")), "12345678");
    json_decref(back);
    char *whole = slurp(path), *p = strstr(whole, "q1-1111");
    size_t n = strlen(whole);
    assert_non_null(p);
    p[3] = '2'; /* the hash that must never change */
    spill(path, whole, n);
    assert_int_equal(hn_baseline_load(&back, path, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "changed by hand"));
    p[3] = '1';
    for (size_t cut = 0; cut < n - 2; cut += 37) { /* cut anywhere: never taken for whole, never a crash */
        spill(path, whole, cut);
        assert_int_equal(hn_baseline_load(&back, path, &err), HONE_E_FORMAT);
        assert_null(back);
    }
    for (size_t i = 0; i < 300; i++) { /* a byte changed anywhere: damaged, or the same content */
        size_t at = hn_rand64(77, i) % n;
        char was = whole[at];
        whole[at] ^= (char)(1 << i % 7);
        spill(path, whole, n);
        if (hn_baseline_load(&back, path, &err) == HONE_OK) {
            assert_true(strchr(" \n\t\r", was) || json_equal(back, b));
            json_decref(back);
        }
        whole[at] = was;
    }
    free(whole);
    assert_int_equal(hn_baseline_load(&back, "/nowhere/base.json", &err), HONE_E_IO);
    json_decref(b);
    json_decref(records);
}

static void test_list(void **state)
{
    hone_error err;
    char d[80], path[128], **names;
    size_t n;
    snprintf(d, sizeof d, "%s/list", dir);
    assert_int_equal(hn_baseline_list(&names, &n, d, &err), HONE_OK);
    assert_int_equal(n, 0);
    hn_baseline_list_free(names, n);
    mkdir(d, 0777);
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "%s/b%02d.json", d, (i * 7) % 40);
        spill(path, "{}", 2);
    }
    for (const char *const *f = (const char *const[]){ "x.json.12.tmp", ".json", "a b.json", "note.txt", NULL }; *f;
         f++) {
        snprintf(path, sizeof path, "%s/%s", d, *f);
        spill(path, "{}", 2);
    }
    assert_int_equal(hn_baseline_list(&names, &n, d, &err), HONE_OK);
    assert_int_equal(n, 40);
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "b%02d", i);
        assert_string_equal(names[i], path);
    }
    assert_null(names[40]);
    hn_baseline_list_free(names, n);
}

static void test_nothing_unproved(void **state)
{
    hone_error err;
    key = 2;
    json_t *b, *records = json_array(), *m = bytes(), *q = quality();
    assert_int_equal(hn_baseline_make(&b, "x", records, m, q, NULL, &err), HONE_E_ARG); /* nothing */
    json_array_append_new(records, record(6, 1000, 50, 3, 0.02));
    assert_int_equal(hn_baseline_make(&b, "../x", records, m, q, NULL, &err), HONE_E_ARG);
    assert_int_equal(hn_baseline_make(&b, "x", records, m, NULL, NULL, &err), HONE_E_ARG); /* a model without a hash */
    json_object_set_new(q, "valid", json_false());
    json_object_set_new(q, "reason", json_string("a logit is NaN"));
    assert_int_equal(hn_baseline_make(&b, "x", records, m, q, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "NaN"));
    json_object_set_new(q, "valid", json_true());
    json_t *second = record(6, 1000, 50, 3, 0.02);
    json_object_set_new(json_object_get(second, "env"), "hash", json_string("87654321"));
    json_array_append_new(records, second);
    assert_int_equal(hn_baseline_make(&b, "x", records, m, q, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "two machines"));
    json_object_set_new(json_object_get(second, "env"), "hash", json_string("12345678"));
    json_object_set_new(second, "valid", json_false());
    json_object_set_new(second, "invalid_reason", json_string("a rate above the roof"));
    assert_int_equal(hn_baseline_make(&b, "x", records, m, q, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "above the roof"));
    json_object_set_new(second, "valid", json_true());
    json_object_set_new(second, "samples", json_array());
    assert_int_equal(hn_baseline_make(&b, "x", records, m, q, NULL, &err), HONE_E_ARG);
    json_decref(records);
    json_decref(m);
    json_decref(q);
}

/* ---- every byte ------------------------------------------------------------------------------------ */

static void test_model_bytes(void **state)
{
    hone_error err;
    enum { N = (3 << 20) + 17 };
    char path[128], said[300], part[2][160];
    unsigned char *data = malloc(N);
    json_t *a, *b;
    assert_non_null(data);
    for (size_t i = 0; i < N; i++) data[i] = (unsigned char)hn_rand64(5, i);
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    spill(path, "abc", 3); /* FIPS 180-4 */
    assert_int_equal(hn_model_bytes(&a, path, NULL, &err), HONE_OK);
    assert_string_equal(json_string_value(json_object_get(a, "sha256")),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    json_decref(a);
    spill(path, data, N);
    assert_int_equal(hn_model_bytes(&a, path, NULL, &err), HONE_OK);
    for (int i = 0; i < 12; i++) { /* any single bit, the ends of blocks among them */
        static const size_t at[] = { 0, N - 1, (1 << 20) - 1, 1 << 20, 2 << 20, (3 << 20) - 1, 3 << 20 };
        size_t k = i < 7 ? at[i] : hn_rand64(6, (uint64_t)i) % N;
        data[k] ^= 4;
        spill(path, data, N);
        assert_int_equal(hn_model_bytes(&b, path, NULL, &err), HONE_OK);
        hn_model_bytes_differ(said, sizeof said, a, b);
        assert_non_null(strstr(said, "same size, other bytes"));
        json_decref(b);
        data[k] ^= 4;
    }
    spill(path, data, N - 1);
    assert_int_equal(hn_model_bytes(&b, path, NULL, &err), HONE_OK);
    hn_model_bytes_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "3145744 bytes"));
    json_decref(b);
    for (int i = 0; i < 2; i++) { /* a split set: every member, whichever is named */
        snprintf(part[i], sizeof part[i], "%s/s-0000%d-of-00002.gguf", dir, i + 1);
        spill(part[i], i ? data + 1000 : data, i ? N - 1000 : 1000);
    }
    assert_int_equal(hn_model_bytes(&b, part[1], NULL, &err), HONE_OK);
    assert_string_equal(json_string_value(json_object_get(a, "sha256")),
                        json_string_value(json_object_get(b, "sha256")));
    assert_int_equal(json_array_size(json_object_get(b, "files")), 2);
    json_t *c;
    data[500] ^= 1;
    spill(part[0], data, 1000);
    assert_int_equal(hn_model_bytes(&c, part[1], NULL, &err), HONE_OK);
    hn_model_bytes_differ(said, sizeof said, b, c);
    assert_non_null(strstr(said, "s-00001-of-00002.gguf"));
    json_decref(b);
    json_decref(c);
    unlink(part[0]);
    assert_int_equal(hn_model_bytes(&b, part[1], NULL, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "s-00001-of-00002.gguf"));
    assert_int_equal(hn_model_bytes(&b, dir, NULL, &err), HONE_E_IO);
    spill(path, "", 0);
    assert_int_equal(hn_model_bytes(&b, path, NULL, &err), HONE_OK);
    assert_string_equal(json_string_value(json_object_get(b, "sha256")),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    json_decref(a);
    json_decref(b);
    free(data);
}

/* ---- what differs -------------------------------------------------------------------------------------- */

static void test_machines_differ(void **state)
{
    char said[600];
    json_t *a = json_pack("{s:s, s:i, s:s}", "hash", "11111111", "cores", 2, "kernel", "Linux 6"),
           *b = json_deep_copy(a);
    hn_environ_differ(said, sizeof said, a, b);
    assert_string_equal(said, "");
    json_object_set_new(b, "cores", json_integer(4));
    json_object_set_new(b, "hash", json_string("22222222"));
    hn_environ_differ(said, sizeof said, a, b);
    assert_string_equal(said, "cores: 2 → 4\nhash: 11111111 → 22222222\n");
    json_decref(a);
    json_decref(b);
}

static void test_answers_differ(void **state)
{
    char said[600];
    json_t *a = quality();
    json_t *b = quality();
    hn_quality_differ(said, sizeof said, a, b);
    assert_string_equal(said, "");
    json_object_set_new(b, "hash", json_string("q1-11111111-99999999"));
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "the same answers from other logits"));
    json_object_set_new(b, "hash", json_string("q1-33333333-99999999"));
    json_array_set_new(json_array_get(json_object_get(b, "ids"), 1), 2, json_integer(9));
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "prompt 2, token 3: 9, was 6"));
    json_object_set_new(b, "hash", json_null());
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "none"));
    json_object_set_new(b, "hash", json_string("q2-55555555-66666666")); /* an older baseline: by what both know */
    json_object_set_new(b, "q1", json_string("q1-11111111-22222222"));
    hn_quality_differ(said, sizeof said, a, b);
    assert_string_equal(said, "");
    json_object_set_new(b, "q1", json_string("q1-11111111-22222223"));
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "the same answers from other logits"));
    json_object_set_new(b, "hash", json_string("q2q-55555555-66666666"));
    json_object_set_new(b, "q1", json_null());
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "of two kinds"));
    json_decref(a);
    json_decref(b);
}

static void test_around_differs(void **state)
{
    hn_proved proved;
    char said[600];
    json_t *a = quality(); /* what answers as before is not all that there is */
    json_t *b = quality();
    json_object_set_new(b, "outer", json_pack("{s:s, s:s}", "tokenizer", "11111111", "sampler", "22222222"));
    hn_quality_differ(said, sizeof said, a, b);
    assert_string_equal(said, ""); /* from before it was asked */
    json_object_set_new(a, "outer", json_pack("{s:s, s:s}", "tokenizer", "11111111", "sampler", "22222223"));
    hn_quality_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "something is not: sampler"));
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.untold, "");
    json_object_del(json_object_get(b, "outer"), "sampler"); /* what one of them does not tell is no difference */
    hn_quality_differ(said, sizeof said, a, b);
    assert_string_equal(said, "");
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.untold, "not compared, as only one side tells it: sampler");
    json_object_set_new(b, "left_here", json_array());
    hn_quality_proved(&proved, b, a);
    assert_string_equal(proved.untold, "not compared, as only one side tells it: sampler, which ways were left out");
    json_decref(a);
    json_decref(b);
}

static void test_fewer_ways(void **state)
{
    hn_proved proved;
    char said[600];
    json_t *a =
        json_pack("{s:s, s:i, s:[s]}", "asked", "avx2, 2 threads", "rows_compared", 900, "left_here", "embeddings");
    json_t *b = json_deep_copy(a);
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.less, "");
    json_object_set_new(a, "rows_compared", json_integer(901));
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.less, "900 rows of logits were compared on all ways, not 901");
    hn_quality_proved(&proved, b, a);
    snprintf(said, sizeof said, "%s", proved.less); /* more are no matter */
    assert_string_equal(said, "");
    json_object_set_new(b, "asked", json_string("scalar, 2 threads")); /* below which there is no level */
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.less, "");
    json_array_append_new(json_object_get(b, "left_here"), json_string("snapshots"));
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.less, "left out: snapshots");
    hn_quality_proved(&proved, b, a);
    assert_string_equal(proved.less, "");
    json_object_del(b, "left_here");
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.less, ""); /* by a program from before it was proved.less */
    hn_quality_proved(&proved, a, b);
    assert_string_equal(proved.untold, "not compared, as only one side tells it: which ways were left out");
    hn_quality_proved(&proved, b, a);
    snprintf(said, sizeof said, "%s", proved.less); /* a program from before it was said */
    assert_string_equal(said, "");
    json_decref(a);
    json_decref(b);
}

static void test_timed_answers_differ(void **state)
{
    char said[600];
    json_t *a = record(2, 1, 1, 1, 0);
    json_t *b = record(2, 1, 1, 1, 0);
    hn_gate_answers_differ(said, sizeof said, a, b);
    assert_string_equal(said, "");
    json_array_set_new(json_object_get(json_array_get(json_object_get(b, "samples"), 0), "ids"), 1, json_integer(8));
    hn_gate_answers_differ(said, sizeof said, a, b);
    assert_non_null(strstr(said, "from token 2 on"));
    json_decref(a);
    json_decref(b);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------- */

static hn_ab_verdict judge(double prefill, double decode, double anon, size_t n, double noise, const char *metrics,
                           double alpha)
{
    hone_error err;
    hn_baseline_row *rows;
    size_t k;
    json_t *old = one(record(10, 1000, 50, 30, noise)), *b = baseline(old),
           *now = one(record(n / 2, 1000 * prefill, 50 * decode, 30 * anon, noise));
    json_array_append_new(
        now, record(n - n / 2, 1000 * prefill, 50 * decode, 30 * anon, noise)); /* in two processes: taken together */
    const hn_baseline_rule rule = { .metrics = metrics, .alpha = alpha };
    assert_int_equal(hn_baseline_compare(&rows, &k, b, now, &rule, &err), HONE_OK);
    assert_int_equal(k, 3);
    assert_int_equal(rows[0].test.n_new, n);
    hn_ab_verdict v = hn_baseline_verdict(rows, k);
    json_t *j = hn_baseline_row_json(&rows[0]);
    assert_non_null(j);
    json_decref(j);
    free(rows);
    json_decref(now);
    json_decref(b);
    json_decref(old);
    return v;
}

static void test_verdicts(void **state)
{
    enum { ROUNDS = 150 };
    int same = 0, wrong = 0, edge = 0, slower = 0, faster = 0, fat = 0, mixed = 0;
    const double alpha = HN_AB_ALPHA / HN_STORED_LOOKS;
    for (int r = 0; r < ROUNDS; r++) {
        key = 1000 + (uint64_t)r;
        counter = 0;
        hn_ab_verdict v = judge(1, 1, 1, 10, 0.03, NULL, alpha);
        same += v == HN_AB_SAME;
        wrong += v == HN_AB_REGRESSED || v == HN_AB_IMPROVED;
        edge += judge(1 / 1.1, 1 / 1.1, 1, 20, 0.03, NULL, alpha) == HN_AB_REGRESSED; /* exactly at the margin */
        slower += judge(1, 0.8, 1, 10, 0.03, NULL, alpha) == HN_AB_REGRESSED;
        faster += judge(1.3, 1, 1, 10, 0.03, NULL, alpha) == HN_AB_IMPROVED;
        fat += judge(1, 1, 1.2, 10, 0.03, NULL, alpha) == HN_AB_REGRESSED;
        mixed += judge(1.5, 0.8, 1, 10, 0.03, NULL, alpha) ==
                 HN_AB_REGRESSED; /* what got faster does not pay for what got slower */
    }
    print_message("of %d: same %d, wrong %d, at the margin %d, 20 %% slower found %d, 30 %% faster %d, 20 %% more "
                  "memory %d, mixed %d\n",
                  ROUNDS, same, wrong, edge, slower, faster, fat, mixed);
    assert_int_equal(wrong, 0);
    assert_true(same >= ROUNDS * 9 / 10);
    assert_true(edge <= ROUNDS * 4 / 100);
    assert_true(slower >= ROUNDS * 98 / 100 && faster >= ROUNDS * 95 / 100 && mixed >= ROUNDS * 98 / 100);
    assert_int_equal(fat, ROUNDS);
    key = 5;
    assert_int_equal(judge(1, 0.5, 1, 10, 0.03, "prefill_tok_s", alpha), HN_AB_SAME); /* only what is asked for */
    assert_int_equal(judge(1, 0.5, 1, 10, 0.03, "all", alpha), HN_AB_REGRESSED);
    assert_int_equal(judge(1, 0.5, 1, 2, 0.03, NULL, alpha), HN_AB_INCONCLUSIVE); /* two samples prove nothing */
}

/* Samples whose generation takes gen_ms, told `lie` times as long; who started them saw all of it, and 15 ms around. */
static json_t *timed(double gen_ms, double lie, bool seen)
{
    enum { N = 10, GAPS = 4 };
    const double prompt_ms = 20, load_ms = 8, rest_ms = 15;
    json_t *r = record(N, 1, 1, 3, 0), *s;
    size_t i;
    json_array_foreach(json_object_get(r, "samples"), i, s)
    {
        json_t *gaps = json_array();
        double gen = gen_ms * exp(0.02 * normal()), rest = rest_ms * exp(0.05 * normal());
        for (int k = 0; k < GAPS; k++) json_array_append_new(gaps, json_real(lie * gen / GAPS));
        json_object_set_new(s, "gaps_ms", gaps);
        json_object_set_new(s, "load_ms", json_real(load_ms));
        json_object_set_new(s, "ttft_ms", json_real(prompt_ms));
        json_object_set_new(s, "prefill_tok_s", json_real(64e3 / prompt_ms));
        json_object_set_new(s, "decode_tok_s", json_real(1e3 * GAPS / (lie * gen)));
        if (seen) json_object_set_new(s, "seen_s", json_real(1e-3 * (load_ms + prompt_ms + gen + rest)));
    }
    return r;
}

/* Of the rate of generation. */
static hn_ab_verdict outside(double gen_ms, double lie, bool seen, double *hidden_ms)
{
    hone_error err;
    hn_baseline_row *rows;
    size_t n;
    json_t *old = one(timed(100, 1, true)), *b = baseline(old), *now = one(timed(gen_ms, lie, seen));
    const hn_baseline_rule rule = { .alpha = HN_AB_ALPHA / HN_STORED_LOOKS };
    assert_int_equal(hn_baseline_compare(&rows, &n, b, now, &rule, &err), HONE_OK);
    assert_string_equal(rows[1].metric, "decode_tok_s");
    hn_ab_verdict v = rows[1].verdict;
    *hidden_ms = rows[1].hidden_ms;
    assert_true(rows[2].hidden_ms == 0); /* memory is no time */
    free(rows);
    json_decref(now);
    json_decref(b);
    json_decref(old);
    return v;
}

/* A build that tells 0.7 of its times is not believed, whether it claims to be better or hides that it is worse: who
 * started it waited as long. True gains and losses are what they were. */
static void test_seen_from_outside(void **state)
{
    double hidden;
    key = 11;
    assert_int_equal(outside(100, 1, true, &hidden), HN_AB_SAME);
    assert_true(hidden == 0);
    assert_int_equal(outside(75, 1, true, &hidden), HN_AB_IMPROVED);
    assert_int_equal(outside(125, 1, true, &hidden), HN_AB_REGRESSED);
    assert_int_equal(outside(100, 0.7, true, &hidden), HN_AB_INCONCLUSIVE);
    assert_true(hidden > 25 && hidden < 35);
    assert_int_equal(outside(100 / 0.7, 0.7, true, &hidden), HN_AB_INCONCLUSIVE);
    assert_true(hidden > 38 && hidden < 48);
    assert_int_equal(outside(100, 0.7, false, &hidden), HN_AB_IMPROVED); /* nobody saw: of older programs */
}

static void test_what_is_compared(void **state)
{
    hone_error err;
    hn_baseline_row *rows;
    size_t n;
    key = 9;
    json_t *old = one(record(10, 1000, 50, 3, 0.02)), *b = baseline(old), *now = one(record(10, 1000, 50, 3, 0.02)),
           *r = json_array_get(now, 0);
    hn_baseline_rule rule = { .alpha = 0.05 };
    json_object_set_new(json_object_get(r, "config"), "cpu",
                        json_string("scalar")); /* other kernels, the same question */
    assert_int_equal(hn_baseline_compare(&rows, &n, b, now, &rule, &err), HONE_OK);
    assert_non_null(rows[0].after);
    assert_true(rows[2].margin > 0.2); /* 3 MB, known to 64 pages a thread */
    free(rows);
    json_object_set_new(json_object_get(r, "config"), "n_prompt", json_integer(65)); /* another question */
    assert_int_equal(hn_baseline_compare(&rows, &n, b, now, &rule, &err), HONE_OK);
    assert_null(rows[0].after);
    assert_int_equal(hn_baseline_verdict(rows, n), HN_AB_INCONCLUSIVE);
    free(rows);
    rule.metrics = "decode_tok_s,beauty";
    assert_int_equal(hn_baseline_compare(&rows, &n, b, now, &rule, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "beauty"));
    rule.metrics = ",";
    assert_int_equal(hn_baseline_compare(&rows, &n, b, now, &rule, &err), HONE_E_ARG);
    assert_int_equal(hn_baseline_verdict(NULL, 0), HN_AB_INCONCLUSIVE); /* nothing decided is no pass */
    json_decref(now);
    json_decref(b);
    json_decref(old);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/hone-baseline-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_kept_whole),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_nothing_unproved),
        cmocka_unit_test(test_model_bytes),
        cmocka_unit_test(test_machines_differ),
        cmocka_unit_test(test_answers_differ),
        cmocka_unit_test(test_around_differs),
        cmocka_unit_test(test_fewer_ways),
        cmocka_unit_test(test_timed_answers_differ),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_what_is_compared),
        cmocka_unit_test(test_seen_from_outside),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0 || bad;
}
