/* Out of memory while JSON is read: the k-th allocation fails, for k = 0, 1, … until the call succeeds. Each failure
 * must be HONE_E_NOMEM with a message, give nothing and leak nothing; what succeeds is what it would have been: never a
 * string with bytes missing, never a line of a history taken for damage. */
#include "base/json_tree.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"

#include <setjmp.h>

#include <cmocka.h>

#include "failing.h"

static char path[] = "/tmp/hone-fault-json-XXXXXX";
static const char text[] = "{\"k\\u0041y\": [1, -2.5, true, null, \"plain\", \"esc\\u00e4\\ud83d\\ude00aped\"], \"o\": "
                           "{\"a\": {\"b\": {}}, \"c\": []},"
                           " \"long\": \"0123456789012345678901234567890123456789012345678901234567890123456789\\n\"}";
static const char record[] =
    "{\"schema\":\"hone.bench/"
    "1\",\"id\":\"kern.x\",\"record\":\"a\",\"ts\":\"2026-01-01T00:00:00Z\",\"valid\":true,\"unit\":\"us\","
    "\"config\":{\"threads\":2,\"n\\u0041me\":\"t\\u00e4xt\"},\"env\":{\"hash\":\"x\"},\"samples\":[1,2,3],\"stats\":{"
    "\"median\":2,\"n\":3}}\n";

static void a_tree(json_t *v)
{
    json_t *list = json_object_get(v, "kAy");
    assert_int_equal(json_array_size(list), 6);
    assert_string_equal(json_string_value(json_array_get(list, 5)), "esc\xC3\xA4\xF0\x9F\x98\x80"
                                                                    "aped");
    assert_int_equal(json_string_length(json_object_get(v, "long")), 71);
}

static hone_status from_text(hone_error *err)
{
    json_t *v;
    hone_status st = hn_json_tree(&v, text, sizeof text - 1, NULL, "text", err);
    if (st == HONE_OK) a_tree(v);
    else assert_null(v);
    json_decref(v);
    return st;
}

static hone_status from_file(hone_error *err)
{
    json_t *v;
    hone_status st = hn_json_tree_file(&v, path, &(hn_json_rules){ .flags = HN_JSON_UNIQUE }, err);
    if (st == HONE_OK)
        assert_string_equal(json_string_value(json_object_get(json_object_get(v, "config"), "nAme")), "t\xC3\xA4xt");
    else assert_null(v);
    json_decref(v);
    return st;
}

static hone_status a_history(hone_error *err)
{
    hn_history h;
    hone_status st = hn_history_read(&h, path, err);
    if (st != HONE_OK) return st;
    assert_int_equal(json_array_size(h.records), 1);
    assert_int_equal(h.n_broken + h.n_foreign, 0);
    hn_history_free(&h);
    return HONE_OK;
}

static hone_status a_series(hone_error *err)
{
    hn_history h;
    hn_series *s;
    size_t n;
    hone_status st = hn_history_read(&h, path, err);
    if (st != HONE_OK) return st;
    st = hn_series_of(&s, &n, h.records, err);
    if (st == HONE_OK) {
        assert_int_equal(n, 1);
        assert_int_equal(s[0].n, 1);
        hn_series_free(s, n);
    }
    hn_history_free(&h);
    return st;
}

static hone_status settings(hone_error *err)
{
    static const char *const want[] = { "--threads=2", "--kv=q8_0", "--columns=1,2", "--packed=/p" };
    json_t *out, *args = json_array();
    bool ok = args != NULL;
    for (size_t i = 0; i < 4; i++)
        ok = ok && json_array_append_new(args, json_string(i == 3 ? "--packed=given" : want[i])) == 0;
    hone_status st = ok ? hn_settings_read(&out, args, "/p", err) : HN_FAIL(err, HONE_E_NOMEM, "the test's own");
    if (st == HONE_OK) {
        for (size_t i = 0; i < 4; i++) assert_string_equal(json_string_value(json_array_get(out, i)), want[i]);
        json_decref(out);
    }
    json_decref(args);
    return st;
}

static void every_failure(hone_status (*fn)(hone_error *))
{
    long k = 0;
    for (;; k++) {
        hone_error err = { 0 };
        countdown = k;
        n_failed = 0;
        hone_status st = fn(&err);
        countdown = -1;
        if (n_failed == 0) {
            assert_int_equal(st, HONE_OK);
            break;
        }
        if (st == HONE_OK) continue; /* it did without: the C library's own buffers */
        if (st != HONE_E_NOMEM) fail_msg("allocation %ld: status %d: %s", k, st, err.message);
        assert_true(err.message[0]);
    }
    assert_true(k > 3);
}

static void test_text(void **state) { every_failure(from_text); }
static void test_file(void **state) { every_failure(from_file); }
static void test_history(void **state) { every_failure(a_history); }
static void test_series(void **state) { every_failure(a_series); }
static void test_settings(void **state) { every_failure(settings); }

static void *counted_malloc(size_t n) { return malloc(n); } /* jansson's own, in a library of its own, is not wrapped */

int main(void)
{
    json_set_alloc_funcs(counted_malloc, free);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_file),
                                        cmocka_unit_test(test_history), cmocka_unit_test(test_series),
                                        cmocka_unit_test(test_settings) };
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, record, sizeof record - 1) != (ssize_t)sizeof record - 1 || close(fd) != 0) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
