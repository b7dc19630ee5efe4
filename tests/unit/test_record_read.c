/* What files of the laboratory say, with every field of them turned into every type, taken away or out of range:
 * each is refused with its field, what was seen and what was expected, or does no harm. Also the settings that a stored
 * baseline may ask for: never a path, an output, a variable or anything hone did not write itself. */
#include "base/json_tree.h"
#include "lab/judge/baseline.h"
#include "lab/stats/changes.h"
#include "lab/judge/gate.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/hone-record-XXXXXX";

static void spill(const char *text, size_t n)
{
    unlink(path); /* some file systems write a truncated file to the disk before they go on */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- every field, every type ------------------------------------------------------------------ */

static const char *const values[] = { "null",
                                      "true",
                                      "false",
                                      "0",
                                      "-1",
                                      "2147483648",
                                      "9223372036854775807",
                                      "1e300",
                                      "0.5",
                                      "\"\"",
                                      "\"x\"",
                                      "\"-f\"",
                                      "\"%s%n\"",
                                      "[]",
                                      "[null]",
                                      "[[[]]]",
                                      "[\"x\",{}]",
                                      "{}",
                                      "{\"a\":{\"b\":1}}",
                                      "{\"median\":[]}" };
enum { N_VALUES = sizeof values / sizeof *values };

typedef void visit(json_t *root, const char *where, void *arg);

static void each_field(json_t *root, json_t *at, const char *where, visit *fn, void *arg);

static void at_key(json_t *root, json_t *o, const char *key, const char *where, visit *fn, void *arg)
{
    json_t *was = json_incref(json_object_get(o, key));
    for (size_t i = 0; i < N_VALUES; i++) {
        json_object_set_new(o, key, json_loads(values[i], JSON_DECODE_ANY, NULL));
        fn(root, where, arg);
    }
    json_object_del(o, key);
    fn(root, where, arg);
    json_object_set_new(o, key, was);
    each_field(root, was, where, fn, arg);
}

/* Of arrays the first two elements. */
static void each_field(json_t *root, json_t *at, const char *where, visit *fn, void *arg)
{
    char *keys[64], next[400];
    size_t n = 0;
    const char *key;
    json_t *v;
    if (json_is_object(at)) {
        json_object_foreach(at, key, v) if (n < 64) keys[n++] = strdup(key);
        for (size_t i = 0; i < n; i++) {
            snprintf(next, sizeof next, "%s.%s", where, keys[i]);
            at_key(root, at, keys[i], next, fn, arg);
            free(keys[i]);
        }
    }
    for (size_t i = 0; i < json_array_size(at) && i < 2; i++) {
        json_t *was = json_incref(json_array_get(at, i));
        snprintf(next, sizeof next, "%s[%zu]", where, i);
        for (size_t k = 0; k < N_VALUES; k++) {
            json_array_set_new(at, i, json_loads(values[k], JSON_DECODE_ANY, NULL));
            fn(root, next, arg);
        }
        json_array_set_new(at, i, was);
        each_field(root, was, next, fn, arg);
    }
}

/* ---- records ------------------------------------------------------------------------------------- */

static json_t *a_record(void)
{
    static const char text[] =
        "{\"schema\":\"hone.bench/"
        "1\",\"id\":\"e2e\",\"record\":\"0123456789ab\",\"ts\":\"2026-01-31T12:34:56Z\",\"title\":\"t\",\"change\":"
        "\"c\",\"valid\":true,"
        "\"invalid_reason\":null,\"git\":{\"commit\":\"abc\",\"dirty\":false},\"build\":{\"cc\":\"gcc\",\"flags\":\"-"
        "O3\"},\"engine\":{\"version\":\"1\"},"
        "\"env\":{\"hash\":\"12345678\",\"cores\":2,\"cpu_model\":\"x\"},\"model\":{\"path_name\":\"m\","
        "\"fingerprint\":\"f\",\"sha256\":\"aa\",\"params\":5},"
        "\"config\":{\"n_prompt\":64,\"n_gen\":16,\"threads\":2,\"depth\":0,\"chunk\":512,\"kv\":\"f16\",\"cpu\":"
        "\"avx2\",\"weights\":\"plain\",\"samples\":6},"
        "\"unit\":{\"decode_tok_s\":\"tok/"
        "s\"},\"better\":{\"decode_tok_s\":\"higher\",\"peak_anon_mb\":\"lower\"},\"quality\":\"q1-11111111-22222222\","
        "\"quality_detail\":{\"hash\":\"q1-11111111-22222222\",\"valid\":true,\"reason\":null,\"ids\":[[1,2],[3,4]]},"
        "\"samples\":[{\"decode_tok_s\":50.5,\"peak_anon_mb\":3,\"ids\":[1,2,3],\"gaps_ms\":[1.5,2.5]},{\"decode_tok_"
        "s\":51,\"peak_anon_mb\":3}],"
        "\"stats\":{\"decode_tok_s\":{\"median\":50.7,\"n\":2,\"ci95\":[50,51]},\"peak_anon_mb\":{\"median\":3,\"n\":2,"
        "\"ci95\":null}},"
        "\"roofline\":{\"bytes_per_token\":5,\"gb_s\":1,\"roof_gb_s\":10,\"pct\":10},\"memory\":{\"peak_anon_mb\":3,"
        "\"model_resident_mb\":2,\"hwm_mb\":5}}";
    return json_loads(text, 0, NULL);
}

typedef struct lines {
    FILE *f;
    char *text;
    size_t n, n_lines;
} lines;

static void add_line(json_t *root, const char *where, void *arg)
{
    lines *l = arg;
    json_dumpf(root, l->f, JSON_COMPACT);
    fputc('\n', l->f);
    l->n_lines++;
}

/* All of them in one history: whatever is not skipped goes through everything that reads histories. */
static void test_history(void **state)
{
    lines l = { 0 };
    hn_history h;
    hone_error err;
    hn_report *r;
    l.f = open_memstream(&l.text, &l.n);
    json_t *record = a_record();
    assert_non_null(record);
    add_line(record, "", &l);
    each_field(record, record, "", add_line, &l);
    fclose(l.f);
    spill(l.text, l.n);
    assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
    assert_int_equal(h.n_lines, l.n_lines);
    assert_true(h.n_broken > l.n_lines / 3); /* every wrong type that matters */
    assert_true(json_array_size(h.records) > 100);
    assert_int_equal(h.first_broken, 2);
    hn_series *s;
    size_t n;
    assert_int_equal(hn_series_of(&s, &n, h.records, &err), HONE_OK);
    hn_series_free(s, n);
    hn_history_free(&h);
    assert_int_equal(hn_report_new(&r, &err), HONE_OK);
    assert_int_equal(hn_report_add(r, path, &err), HONE_OK);
    assert_int_equal(hn_report_finish(r, NULL, NULL, &err), HONE_OK);
    for (int format = HN_REPORT_HTML; format <= HN_REPORT_JSON; format++) {
        char *text;
        assert_int_equal(hn_report_write(&text, &n, r, (hn_report_format)format, &err), HONE_OK);
        free(text);
    }
    hn_report_free(r);
    json_decref(record);
    free(l.text);
}

static void test_words(void **state)
{
    static const struct {
        const char *record, *says;
    } bad[] = { { "{\"schema\":\"hone.bench/1\",\"config\":{\"threads\":\"2\"}}",
                  "field config.threads is \"2\", expected a whole number or null of 0 to 2147483647" },
                { "{\"schema\":\"hone.bench/1\",\"ts\":{}}", "field ts is an object, expected a string or null" },
                { "{\"schema\":\"hone.bench/1\",\"samples\":[1,{\"ids\":[7,\"x\"]}]}",
                  "field samples[1].ids[1] is \"x\", expected a whole number" },
                { "{\"schema\":\"hone.bench/1\",\"stats\":{\"a_ms\":{\"n\":-1}}}",
                  "field stats.a_ms.n is -1, expected a whole number or null of 0 to" },
                { "{\"schema\":\"hone.ab/1\",\"verdict\":[1]}",
                  "field verdict is an array of 1, expected a string or null" },
                { "{\"schema\":\"hone.train/1\",\"kind\":7}", "field kind is 7, expected" },
                { "{\"schema\":\"hone.gate/1\",\"rows\":\"x\"}", "field rows is \"x\", expected an array" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[300];
        json_t *o = json_loads(bad[i].record, 0, NULL);
        assert_non_null(o);
        assert_false(hn_record_fits(o, why, sizeof why));
        if (!strstr(why, bad[i].says)) fail_msg("%s; expected: %s", why, bad[i].says);
        json_decref(o);
    }
}

/* ---- baselines ------------------------------------------------------------------------------------ */

static json_t *a_baseline(void)
{
    json_t *b, *records = json_array(), *args = json_pack("[s,s,s]", "--n-gen=16", "--threads=2", "--kv=f16"),
               *r = a_record();
    json_t *bytes = json_pack("{s:s, s:i, s:s, s:[{s:s,s:i,s:s}]}", "path", "/m.gguf", "bytes", 7, "sha256", "aa",
                              "files", "name", "m.gguf", "bytes", 7, "sha256", "aa");
    hone_error err;
    json_array_append(records, r);
    if (hn_baseline_make(&b, "base", records, bytes, json_object_get(r, "quality_detail"), args, &err) != HONE_OK)
        fail_msg("%s", err.message);
    json_decref(records);
    json_decref(args);
    json_decref(bytes);
    json_decref(r);
    return b;
}

/* As whoever forges a file would: with the checksum of what it says now. */
static void sign(json_t *b)
{
    unsigned char d[32];
    char hex[65];
    hn_sha256 h;
    json_object_del(b, "sum");
    char *s = json_dumps(b, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(12));
    assert_non_null(s);
    hn_sha256_init(&h);
    hn_sha256_add(&h, s, strlen(s));
    hn_sha256_end(&h, d);
    free(s);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
    json_object_set_new(b, "sum", json_string(hex));
}

typedef struct tried {
    size_t n, taken;
    json_t *whole;
} tried;

static void use_baseline(json_t *b, json_t *now)
{
    hone_error err;
    hn_baseline_row *rows;
    size_t n;
    json_t *args;
    char words[2000];
    json_t *records = json_object_get(now, "records"), *was = json_array_get(json_object_get(b, "records"), 0);
    assert_int_equal(hn_settings_read(&args, json_object_get(b, "args"), NULL, &err), HONE_OK);
    json_decref(args);
    hn_environ_differ(words, sizeof words, json_object_get(b, "env"), json_object_get(now, "env"));
    hn_quality_differ(words, sizeof words, json_object_get(b, "quality_detail"),
                      json_object_get(now, "quality_detail"));
    hn_model_bytes_differ(words, sizeof words, json_object_get(b, "model"), json_object_get(now, "model"));
    hn_gate_answers_differ(words, sizeof words, was, json_array_get(records, 0));
    const hn_baseline_rule rule = { .alpha = 0.05 };
    if (hn_baseline_compare(&rows, &n, b, records, &rule, &err) != HONE_OK) return;
    for (size_t i = 0; i < n; i++) json_decref(hn_baseline_row_json(&rows[i]));
    free(rows);
}

static void load_baseline(json_t *root, const char *where, void *arg)
{
    tried *t = arg;
    json_t *b;
    hone_error err;
    if (strcmp(where, ".sum") != 0) sign(root);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    spill(text, strlen(text));
    free(text);
    t->n++;
    hone_status st = hn_baseline_load(&b, path, &err);
    if (st == HONE_OK) {
        t->taken++;
        use_baseline(b, t->whole);
        use_baseline(t->whole, b);
        json_decref(b);
        return;
    }
    if (st != HONE_E_FORMAT || !strstr(err.message, path)) fail_msg("%s: %d %s", where, st, err.message);
    if (strcmp(where, ".sum") != 0 && !strstr(err.message, "expected") && !strstr(err.message, "is invalid: "))
        fail_msg("%s: %s: nothing expected", where, err.message);
}

static void test_baseline(void **state)
{
    tried t = { .whole = a_baseline() };
    json_t *b = json_deep_copy(t.whole);
    each_field(b, b, "", load_baseline, &t);
    assert_true(t.n > 1000 && t.taken > 50 && t.taken < t.n / 2);
    json_decref(b);
    json_decref(t.whole);
}

/* ---- settings ---------------------------------------------------------------------------------------- */

static void test_settings(void **state)
{
    static const char *const good[] = { "--n-prompt=0",
                                        "--n-gen=16",
                                        "--depth=5",
                                        "--threads=1024",
                                        "--threads-batch=3",
                                        "--chunk=512",
                                        "--kv=q8_0",
                                        "--cpu=avx512",
                                        "--seed=18446744073709551615",
                                        "--preset=llama-3.2-1b",
                                        "--columns=1,2,64",
                                        "--layout=both",
                                        "--quick",
                                        "--allow-paging",
                                        "--packed=off",
                                        "--warmup=3",
                                        "--warm-up-time=0.5",
                                        "--pre=llama-bpe" };
    static const char *const bad[] = { "--file=/etc/passwd",
                                       "--file",
                                       "-f",
                                       "-f/tmp/x",
                                       "--out=x",
                                       "--output=x",
                                       "--keep=x",
                                       "--model=/dev/zero",
                                       "-m",
                                       "--packed=/tmp/evil.hpack",
                                       "--packed=evil",
                                       "--save-baseline=x",
                                       "--baseline=x",
                                       "--title=x",
                                       "--change=x",
                                       "--json",
                                       "--samples=1000000",
                                       "-r",
                                       "HONE_CPU=scalar",
                                       "env:LD_PRELOAD=x",
                                       "",
                                       "-",
                                       "--",
                                       "--=1",
                                       "e2e",
                                       "kern.norm.96",
                                       "--n-gen",
                                       "--n-gen=",
                                       "--n-gen=x",
                                       "--n-gen=1x",
                                       "--n-gen= 1",
                                       "--n-gen=1 ",
                                       "--n-gen=-1",
                                       "--n-gen=1e3",
                                       "--n-gen=0x10",
                                       "--n-gen=16777217",
                                       "--n-gen=99999999999999999999",
                                       "--n-gen=1\n--file=x",
                                       "--N-gen=1",
                                       "--n-ge=1",
                                       "--n-gen=1=2",
                                       "--threads=0",
                                       "--threads=1025",
                                       "--kv=f16|f32",
                                       "--kv=",
                                       "--kv=F16",
                                       "--cpu=avx2 --file=x",
                                       "--quick=1",
                                       "--seed=-1",
                                       "--seed=1.5",
                                       "--columns=1,,2",
                                       "--columns=1,",
                                       "--columns=,1",
                                       "--columns=/x",
                                       "--preset=../x",
                                       "--preset=/x",
                                       "--preset=",
                                       "--preset=.x",
                                       "--pre=a/b",
                                       "--pre=a b",
                                       "--pre=-x",
                                       "--warm-up-time=nan",
                                       "--warm-up-time=inf",
                                       "--warm-up-time=1e9",
                                       "--help",
                                       "--lora=x",
                                       "--state-out=x" };
    hone_error err;
    json_t *out;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        json_t *args = json_pack("[s]", good[i]);
        if (hn_settings_read(&out, args, NULL, &err) != HONE_OK) fail_msg("%s: %s", good[i], err.message);
        assert_string_equal(json_string_value(json_array_get(out, 0)), good[i]);
        json_decref(out);
        json_decref(args);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *args = json_pack("[s,s]", "--n-gen=1", bad[i]);
        char seen[160];
        if (hn_settings_read(&out, args, "/p", &err) != HONE_E_ARG) fail_msg("%s: taken", bad[i]);
        assert_null(out);
        hn_escape(seen, sizeof seen, bad[i], strlen(bad[i]));
        if (!strstr(err.message, "args[1]") || !strstr(err.message, seen)) fail_msg("%s: %s", bad[i], err.message);
        json_decref(args);
    }
    json_t *args = json_pack("[s]", "--packed=given"), *nul = json_pack("[s#]", "--n-gen=1\0x", 11),
           *wrong[] = { json_pack("[i]", 5), json_object(), json_string("--n-gen=1") };
    assert_int_equal(hn_settings_read(&out, args, "/a b/m.hpack", &err), HONE_OK); /* the user's word, not the file's */
    assert_string_equal(json_string_value(json_array_get(out, 0)), "--packed=/a b/m.hpack");
    json_decref(out);
    assert_int_equal(hn_settings_read(&out, args, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "--packed FILE"));
    assert_int_equal(hn_settings_read(&out, nul, NULL, &err), HONE_E_ARG);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hn_settings_read(&out, wrong[i], NULL, &err), HONE_E_ARG);
        json_decref(wrong[i]);
    }
    json_decref(args);
    json_decref(nul);
    static const char *const ids[] = { "e2e", "kern.gemv.q4_K.4096x4096", "tok.encode", "kern.gemv.*" },
                             *const no_ids[] = { "", "-f", "--file=x", "/x", "a/b", "a b", ".x", "a\n" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) assert_true(hn_settings_id(ids[i]));
    for (size_t i = 0; i < sizeof no_ids / sizeof *no_ids; i++) assert_false(hn_settings_id(no_ids[i]));
}

/* ---- peaks ------------------------------------------------------------------------------------------- */

static void parse_peaks(json_t *root, const char *where, void *arg)
{
    hn_peaks p;
    hone_error err;
    tried *t = arg;
    hone_status st = hn_peaks_parse(&p, root, &err);
    t->n++;
    t->taken += st == HONE_OK;
    assert_true(st == HONE_OK || (st == HONE_E_FORMAT && err.message[0]));
    if (st != HONE_OK) return;
    for (int k = 0; k < HN_PEAK_KINDS; k++) hn_peaks_at(&p, (hn_peak_kind)k, 1);
    hn_peaks_decode_threads(&p);
    json_decref(hn_peaks_json(&p));
    hn_environ e = { 0 };
    char *text = json_dumps(root, 0);
    spill(text, strlen(text));
    free(text);
    snprintf(e.hash, sizeof e.hash, "%s", p.hash);
    hn_peaks_load(&p, path, &e, p.level, &err);
}

static void test_peaks(void **state)
{
    hn_peaks p = { .hash = "12345678",
                   .level = "avx2",
                   .ts = "2026-01-01T00:00:00Z",
                   .cpu_model = "x",
                   .kernel = "k",
                   .cores = 2,
                   .clock_ghz = { 2, 3 },
                   .buffer_bytes = 1 << 28,
                   .load = 0.1,
                   .cpus = "0,1",
                   .bound = true };
    tried t = { 0 };
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        snprintf(p.how[k], sizeof p.how[k], "how");
        p.n[k] = 2;
        for (int i = 0; i < 2; i++)
            p.at[k][i] = (hn_peak_point){ .threads = i + 1,
                                          .best = 10 + i,
                                          .most = 10 + i,
                                          .median = 10 + i,
                                          .spread = 0.01,
                                          .cpu_use = 1,
                                          .streams = 1,
                                          .ahead = 64 };
    }
    json_t *o = hn_peaks_json(&p);
    each_field(o, o, "", parse_peaks, &t);
    assert_true(t.n > 500);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_history),
                                        cmocka_unit_test(test_baseline), cmocka_unit_test(test_settings),
                                        cmocka_unit_test(test_peaks) };
    if (close(mkstemp(path)) != 0) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
