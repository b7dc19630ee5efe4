/* Histories are read whatever happened to them: lines cut off, binary rubbish, other
 * people's JSON; and sorted into series of the same measurement. */
#include "lab/record/history.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64], path[96];

static void spill(const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}
static void spill_text(const char *text) { spill(text, strlen(text)); }

static void test_broken_lines_are_counted(void **state)
{
    hn_history h;
    hone_error err;
    char say[256];
    static const char text[] = "{\"schema\":\"hone.bench/1\",\"id\":\"a\"}\r\n"
                               "\n  \t\n"
                               "{\"schema\":\"hone.bench/1\",\"id\":\"b\"\n" /* broken: line 4 */
                               "[1,2,3]\n"                                   /* broken: no object */
                               "{\"schema\":\"other/1\"}\n"                  /* foreign */
                               "{\"id\":\"x\"}\n"                            /* foreign */
                               "{\"schema\":\"hone.ab/1\",\"id\":\"c\"}\n"
                               "{\"schema\":\"hone.bench/1\",\"id\":\"\xff\xfe\"}\n" /* broken: no UTF-8 */
                               "{\"schema\":\"hone.bench/1\",\"id\":\"d\"} {}\n"     /* broken: two on a line */
                               "\0\0\0\0\n"                                          /* broken: a hole in the file */
                               "{\"schema\":\"hone.bench/1\",\"id\":\"e\"}";         /* whole, but without an end */
    spill(text, sizeof text - 1);
    assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
    assert_int_equal(json_array_size(h.records), 3);
    assert_string_equal(hn_record_id(json_array_get(h.records, 0)), "a");
    assert_string_equal(hn_record_id(json_array_get(h.records, 1)), "c");
    assert_string_equal(hn_record_id(json_array_get(h.records, 2)), "e");
    assert_int_equal(h.n_lines, 10);
    assert_int_equal(h.n_broken, 5);
    assert_int_equal(h.n_foreign, 2);
    assert_int_equal(h.first_broken, 4);
    assert_false(h.cut);
    hn_history_say(&h, say, sizeof say);
    assert_non_null(strstr(say, "7 of 10 lines skipped, the first is line 4"));
    hn_history_free(&h);
}

/* Every length that a crash can leave. */
static void test_cut_anywhere(void **state)
{
    static const char line[] = "{\"schema\":\"hone.bench/1\",\"id\":\"whole\"}\n{\"schema\":\"hone.bench/"
                               "1\",\"id\":\"second\",\"samples\":[1,2,3]}\n";
    const size_t first = strcspn(line, "\n") + 1, all = sizeof line - 1;
    for (size_t n = 0; n <= all; n++) {
        hn_history h;
        hone_error err;
        spill(line, n);
        assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
        size_t whole = n >= all - 1 ? 2 : n >= first - 1 ? 1 : 0;
        assert_int_equal(json_array_size(h.records), whole);
        bool broken = n > 0 && n != first && n != first - 1 && n < all - 1;
        assert_int_equal(h.n_broken, broken);
        assert_int_equal(h.cut, broken);
        hn_history_free(&h);
    }
}

static void test_no_file(void **state)
{
    hn_history h;
    hone_error err;
    assert_int_equal(hn_history_read(&h, "/nowhere/at/all.jsonl", &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "/nowhere/at/all.jsonl"));
    assert_int_equal(hn_history_read(&h, dir, &err), HONE_E_IO); /* a folder */
    hn_history_free(&h);
}

static void test_rubbish(void **state)
{
    char *noise = malloc(200000);
    assert_non_null(noise);
    for (size_t round = 0; round < 20; round++) {
        hn_history h;
        hone_error err;
        char say[256];
        for (size_t i = 0; i < 200000; i++) noise[i] = (char)hn_rand64(round, i);
        spill(noise, 200000);
        assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
        assert_int_equal(json_array_size(h.records), 0);
        assert_int_equal(h.n_broken, h.n_lines);
        hn_history_say(&h, say, sizeof say);
        for (const char *p = say; *p; p++) assert_true((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f);
        hn_history_free(&h);
    }
    memset(noise, '[', 200000); /* deep */
    spill(noise, 200000);
    hn_history h;
    hone_error err;
    assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
    assert_int_equal(h.n_broken, 1);
    hn_history_free(&h);
    free(noise);
}

/* ---- series -------------------------------------------------------------------------------- */

#define PLAIN(ts, extra, n, load, valid)                                                                           \
    "{\"schema\":\"hone.bench/1\",\"id\":\"0123456789ab\",\"ts\":\"" ts "\",\"valid\":" valid                      \
    ",\"model\":{\"fingerprint\":\"f1\",\"sha256\":null},"                                                         \
    "\"env\":{\"hash\":\"e1\"},\"config\":{\"n_gen\":" n ",\"threads\":2" extra                                    \
    "},\"better\":{\"load_ms\":\"lower\",\"decode_tok_s\":\"higher\"},"                                            \
    "\"samples\":[{\"load_ms\":1,\"decode_tok_s\":null},{\"load_ms\":" load ",\"decode_tok_s\":7}],"               \
    "\"stats\":{\"load_ms\":{\"n\":2,\"median\":" load ",\"ci95\":null},\"decode_tok_s\":{\"n\":1,\"median\":7.5," \
    "\"ci95\":[7,8]},\"hwm_mb\":{\"n\":0,\"median\":null}}}\n"
#define SINGLE(record, median)                                                                                       \
    "{\"schema\":\"hone.bench/1\",\"id\":\"tok.encode\",\"record\":\"" record                                        \
    "\",\"ts\":\"2026-01-01T00:00:00Z\",\"valid\":true,\"unit\":\"us\",\"better\":\"lower\","                        \
    "\"config\":{\"threads\":1},\"env\":{\"hash\":\"e1\"},\"model\":null,\"samples\":[1,2,\"x\",null,3],\"stats\":{" \
    "\"n\":3,\"median\":" median ",\"ci95\":[1,3]}}\n"

static void test_series(void **state)
{
    hn_history h;
    hone_error err;
    hn_series *s;
    size_t n;
    double *x;
    spill_text(PLAIN("2026-01-03T00:00:00Z", ",\"samples\":3", "8", "30", "true")
                   PLAIN("2026-01-01T00:00:00Z", ",\"samples\":9,\"weights_note\":\"other words\"", "8", "10", "null")
                       SINGLE("aaaaaaaaaaaa", "2") PLAIN("2026-01-02T00:00:00Z", "", "8", "20", "false")
                           PLAIN("2026-01-02T00:00:00Z", "", "9", "99", "true")
                               SINGLE("bbbbbbbbbbbb",
                                      "2.5") "{\"schema\":\"hone.ab/1\",\"id\":\"e2e\",\"stats\":{\"median\":1}}\n"
                                             "{\"schema\":\"hone.bench/1\"}\n");
    assert_int_equal(hn_history_read(&h, path, &err), HONE_OK);
    assert_int_equal(json_array_size(h.records), 8);
    assert_int_equal(hn_series_of(&s, &n, h.records, &err), HONE_OK);
    assert_int_equal(n, 5); /* load and decode of n_gen 8, tok.encode, load and decode of n_gen 9 */
    assert_string_equal(s[0].id, "e2e");
    assert_string_equal(s[0].metric, "load_ms");
    assert_string_equal(s[0].unit, "ms");
    assert_false(s[0].higher);
    assert_int_equal(s[0].n, 2);
    assert_int_equal(s[0].n_invalid, 1);
    assert_true(s[0].points[0].median == 10 && s[0].points[1].median == 30); /* by time */
    assert_true(isnan(s[0].points[0].ci95[0]));
    assert_string_equal(s[1].metric, "decode_tok_s");
    assert_true(s[1].higher && s[1].points[0].ci95[1] == 8);
    assert_string_equal(s[2].id, "tok.encode");
    assert_string_equal(s[2].metric, "");
    assert_string_equal(s[2].unit, "us");
    assert_int_equal(s[2].n, 2);
    assert_true(s[2].points[1].median == 2.5);
    assert_int_equal(s[3].n, 1);
    assert_int_equal(hn_record_samples(&x, &n, json_array_get(h.records, 2), "", &err), HONE_OK);
    assert_int_equal(n, 3);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3);
    free(x);
    assert_int_equal(hn_record_samples(&x, &n, json_array_get(h.records, 0), "decode_tok_s", &err), HONE_OK);
    assert_int_equal(n, 1);
    assert_true(x[0] == 7);
    free(x);
    hn_series_free(s, 5);
    hn_history_free(&h);
}

static void test_other_machines_are_other_series(void **state)
{
    json_error_t why;
    hone_error err;
    json_t *all = json_array();
    for (int i = 0; i < 4; i++) {
        json_t *r = json_loads(SINGLE("aaaaaaaaaaaa", "2"), 0, &why);
        assert_non_null(r);
        if (i == 1) json_object_set_new(json_object_get(r, "env"), "hash", json_string("e2"));
        if (i == 2) json_object_set_new(json_object_get(r, "config"), "threads", json_integer(2));
        if (i == 3) json_object_set_new(r, "model", json_pack("{s:s}", "fingerprint", "f9"));
        json_array_append_new(all, r);
    }
    hn_series *s;
    size_t n;
    assert_int_equal(hn_series_of(&s, &n, all, &err), HONE_OK);
    assert_int_equal(n, 4);
    hn_series_free(s, n);
    char *a = hn_record_key(json_array_get(all, 0), false), *b = hn_record_key(json_array_get(all, 1), false);
    assert_string_equal(a, b); /* but for the machine the same measurement */
    free(a);
    free(b);
    json_decref(all);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/hone-history-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/h.jsonl", dir);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_lines_are_counted),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_other_machines_are_other_series),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return bad;
}
