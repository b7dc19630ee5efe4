/* The one reader of JSON: cases written after RFC 8259 by hand, in the classes of well-known suites (what must be
 * taken, what must not), limits, places of faults, numbers to the last bit, and jansson's own reader as an oracle
 * on random documents and on every damage to them. */
#include "base/json_tree.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define RULES(...) (&(hn_json_rules){ __VA_ARGS__ })

/* In memory of exactly its size, so that a sanitizer sees a byte too far. */
static hone_status read_n(json_t **out, const char *text, size_t n, const hn_json_rules *rules, hone_error *err)
{
    char *own = malloc(n ? n : 1);
    assert_non_null(own);
    memcpy(own, text, n);
    hone_status st = hn_json_tree(out, own, n, rules, "t.json", err);
    free(own);
    assert_true((st == HONE_OK) == (*out != NULL));
    return st;
}

static json_t *taken(const char *text, size_t n, unsigned flags)
{
    json_t *v;
    hone_error err;
    if (read_n(&v, text, n, RULES(.flags = flags), &err) != HONE_OK) fail_msg("%.*s: %s", (int)n, text, err.message);
    return v;
}
#define TAKEN(text) taken(text, sizeof(text) - 1, 0)

static void refused_n(const char *text, size_t n, const hn_json_rules *rules, const char *says)
{
    json_t *v;
    hone_error err;
    hone_status st = read_n(&v, text, n, rules, &err);
    if (st != HONE_E_FORMAT) fail_msg("'%.*s': status %d, expected a fault", (int)n, text, st);
    if (!strstr(err.message, says) || strncmp(err.message, "t.json:", 7) != 0)
        fail_msg("'%.*s': %s; expected '%s'", (int)n, text, err.message, says);
}
#define REFUSED(text, says) refused_n(text, sizeof(text) - 1, NULL, says)

static void test_taken(void **state)
{
    static const struct {
        const char *text, *canonical;
    } good[] = {
        { "[]", "[]" },
        { "{}", "{}" },
        { " [ ] \t\r\n", "[]" },
        { "[[],[[]]]", "[[],[[]]]" },
        { "[{}]", "[{}]" },
        { "null", "null" },
        { "true", "true" },
        { "false", "false" },
        { "\"\"", "\"\"" },
        { "0", "0" },
        { "-0", "0" },
        { "[1 , 2]", "[1,2]" },
        { "{\"\":0}", "{\"\":0}" },
        { "{\"a\":1,\"b\":{\"c\":[null]}}", "{\"a\":1,\"b\":{\"c\":[null]}}" },
        { "[1E+2]", "[100.0]" },
        { "[1e-2]", "[0.01]" },
        { "[0e+1]", "[0.0]" },
        { "[-1]", "[-1]" },
        { "[123.456]", "[123.456]" },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}" }, /* the last wins, where nobody asked for more */
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
        { "\"\\u0041\\u00e4\\u20AC\"", "\"A\xC3\xA4\xE2\x82\xAC\"" },
        { "\"\\ud83d\\uDE00\"", "\"\xF0\x9F\x98\x80\"" },
        { "\"\\udbff\\udfff\"", "\"\xF4\x8F\xBF\xBF\"" },
        { "\"\x7F\"", "\"\x7F\"" },
        { "\"\xF4\x8F\xBF\xBF\xEF\xBF\xBF\"", "\"\xF4\x8F\xBF\xBF\xEF\xBF\xBF\"" },
        { "{\"\\u0061\":1}", "{\"a\":1}" },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        json_t *v = taken(good[i].text, strlen(good[i].text), 0);
        char *s = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        assert_string_equal(s, good[i].canonical);
        free(s);
        json_decref(v);
    }
    json_t *v = taken("[\"a\\u0000b\"]", 12, HN_JSON_ALLOW_NUL);
    assert_int_equal(json_string_length(json_array_get(v, 0)), 3);
    assert_memory_equal(json_string_value(json_array_get(v, 0)), "a\0b", 4);
    json_decref(v);
}

static void test_refused(void **state)
{
    static const char *const bad[] = { "",
                                       " ",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "[1",
                                       "[1,",
                                       "[1,]",
                                       "[,1]",
                                       "[1 2]",
                                       "[1,,2]",
                                       "[1}",
                                       "{]",
                                       "{,}",
                                       "{1:2}",
                                       "{a:1}",
                                       "{\"a\"}",
                                       "{\"a\":}",
                                       "{\"a\" 1}",
                                       "{\"a\":1,}",
                                       "{\"a\":1 \"b\":2}",
                                       "{'a':1}",
                                       "[1]x",
                                       "[1][2]",
                                       "nul",
                                       "nulll",
                                       "True",
                                       "NaN",
                                       "Infinity",
                                       "-Infinity",
                                       "-",
                                       "+1",
                                       "01",
                                       "-01",
                                       "00",
                                       "1.",
                                       ".5",
                                       "-.5",
                                       "1e",
                                       "1e+",
                                       "1.e1",
                                       "0x10",
                                       "1_000",
                                       "1,5",
                                       "--1",
                                       "1e5.5",
                                       "\"",
                                       "\"a",
                                       "\"\\",
                                       "\"\\\"",
                                       "\"\\x\"",
                                       "\"\\'\"",
                                       "\"\\u\"",
                                       "\"\\u12\"",
                                       "\"\\u123g\"",
                                       "\"\\ud800\"",
                                       "\"\\udc00\"",
                                       "\"\\ud800\\u0041\"",
                                       "\"\\ud800\\ud800\"",
                                       "\"\\ud800x\"",
                                       "\"\\ud83d\\ude0\"",
                                       "\"\n\"",
                                       "\"\t\"",
                                       "\"\x1F\"",
                                       "'a'",
                                       "/* c */ 1",
                                       "// c\n1",
                                       "\xEF\xBB\xBF[]",
                                       "\x0B[]",
                                       "\xC2\xA0[]",
                                       "[1\x0C]",
                                       "{\"a\":1}}",
                                       "[[]",
                                       "[\"a\",\n4\n,1,",
                                       "\"\x80\"",
                                       "\"\xC0\x80\"",
                                       "\"\xC1\xBF\"",
                                       "\"\xE0\x80\x80\"",
                                       "\"\xED\xA0\x80\"",
                                       "\"\xF0\x80\x80\x80\"",
                                       "\"\xF4\x90\x80\x80\"",
                                       "\"\xF5\x80\x80\x80\"",
                                       "\"\xFF\"",
                                       "\"\xC3\"",
                                       "\"\xE2\x82\"",
                                       "\"\xF0\x9F\x98\"",
                                       "\"\xC3(\"",
                                       "\"\xE2\x82(\"",
                                       "{\"\xFF\":1}",
                                       "[\"a\\u0000\"]",
                                       "{\"\\u0000\":1}" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused_n(bad[i], strlen(bad[i]), NULL, "expected");
    refused_n("1\0", 2, NULL, "expected the end");
    refused_n("[\0]", 3, NULL, "expected");
    refused_n("\"\0\"", 3, NULL, "no control byte");
    refused_n("{\"a\\u0000\":1}", 13, RULES(.flags = HN_JSON_ALLOW_NUL), "a key without NUL");
    refused_n("{\"a\":1,\"b\":2,\"a\":3}", 19, RULES(.flags = HN_JSON_UNIQUE),
              "column 14: expected a key that is not there yet, seen \"a\"");
    refused_n("{\"a\":1,\"\\u0061\":3}", 18, RULES(.flags = HN_JSON_UNIQUE), "not there yet");
    REFUSED("{\"a\": 1,\n \"\xC3\xA4\": tru}", "line 2 column 7: expected a value, seen tru}");
    REFUSED("[1,\n2", "line 2 column 2: ends at byte 5, expected ',' or ']'");
    REFUSED("nope", "t.json: not JSON: line 1 column 1");
}

static void test_limits(void **state)
{
    enum { DEEP = 100000 };
    char *s = malloc(2 * DEEP);
    json_t *v;
    hone_error err;
    memset(s, '[', DEEP);
    memset(s + DEEP, ']', DEEP);
    refused_n(s, 2 * DEEP, NULL, "no deeper nesting");
    refused_n(s, DEEP, NULL, "no deeper nesting");
    refused_n(s + DEEP - 257, 2 * 257, NULL, "column 257: expected no deeper nesting");
    json_decref(taken(s + DEEP - 256, 2 * 256, 0));
    refused_n(s + DEEP - 4, 8, RULES(.max_depth = 3), "no deeper nesting");
    for (size_t i = 0; i < DEEP; i++) memcpy(s + i * 2, i % 2 ? ":{" : "\"\"", 2);
    refused_n("{\"a\":{\"a\":{}}}", 14, RULES(.max_depth = 2), "no deeper nesting");
    free(s);
    refused_n("[1,2]", 5, RULES(.max_bytes = 4), "5 bytes of JSON, expected at most 4");
    json_decref(taken("[1,2]", 5, 0));
    refused_n("[\"abcde\"]", 9, RULES(.max_string = 4), "column 2: expected a shorter string");
    refused_n("{\"abcde\":1}", 11, RULES(.max_string = 4), "a shorter string");
    assert_int_equal(read_n(&v, "\"\\u0041bcd\"", 11, RULES(.max_string = 4), &err), HONE_OK);
    json_decref(v);
    assert_int_equal(read_n(&v, "x", 1, RULES(.fault = HONE_E_ARG), &err), HONE_E_ARG);
    assert_int_equal(err.code, HONE_E_ARG);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static double real(const char *s)
{
    hn_jread j;
    hn_jread_num v;
    assert_int_equal(hn_jread_begin(&j, s, strlen(s), RULES(.flags = HN_JSON_BIG), "t", NULL, NULL), HONE_OK);
    assert_int_equal(hn_jread_number(&j, &v), HONE_OK);
    assert_int_equal(hn_jread_end(&j), HONE_OK);
    return v.d;
}

/* What is written has the digits that it was read from, not all that a double has. */
static void test_dumped(void **state)
{
    static const char *const texts[] = {
        "[0.7,0.1,-0.3,1e-07,2.5,0.0,-0.0,1e22,1234567890123450.0,0.30000000000000004,5e-324]",
        "{\"a\":{\"maximum\":0.7,\"multipleOf\":0.1},\"0.69999999999999996\":\"x\\\\\\\"0.69999999999999996\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *v = taken(texts[i], strlen(texts[i]), 0);
        char *s = hn_json_dump(v, JSON_COMPACT);
        assert_string_equal(s, texts[i]);
        free(s);
        json_decref(v);
    }
    for (uint64_t i = 0; i < 20000; i++) { /* any double reads back as itself */
        uint64_t u = hn_rand64(5, i);
        double x, y;
        memcpy(&x, &u, sizeof x);
        if (!isfinite(x)) continue;
        json_t *v = json_pack("[f]", x);
        char *s = hn_json_dump(v, JSON_COMPACT);
        s[strlen(s) - 1] = 0;
        y = real(s + 1);
        assert_memory_equal(&x, &y, sizeof x);
        free(s);
        json_decref(v);
    }
}

static void test_whole(void **state)
{
    json_t *v = TAKEN("[9223372036854775807,-9223372036854775808,0,-1]");
    assert_true(json_integer_value(json_array_get(v, 0)) == INT64_MAX &&
                json_integer_value(json_array_get(v, 1)) == INT64_MIN);
    json_decref(v);
    REFUSED("9223372036854775808", "a whole number below 2^63, seen 9223372036854775808");
    REFUSED("-9223372036854775809", "a whole number of 64 bits");
    REFUSED("18446744073709551616", "a whole number of 64 bits");
    v = taken("9223372036854775808", 19, HN_JSON_BIG);
    assert_true(json_is_real(v) && json_real_value(v) == 9223372036854775808.0);
    json_decref(v);
    static const char digits[] = "[9223372036854775807,9223372036854775808,-9223372036854775809,1e999,1e22,-1e-999]";
    v = taken(digits, sizeof digits - 1, HN_JSON_DIGITS);
    static const char *const kept[] = { NULL, "9223372036854775808", "-9223372036854775809", "1e999", NULL, NULL };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *got = hn_json_digits(json_array_get(v, i));
        assert_true(!got == !kept[i]);
        if (got) assert_string_equal(got, kept[i]);
    }
    assert_true(json_real_value(json_array_get(v, 4)) == 1e22);
    json_decref(v);
    v = taken("[\"\\u00ff1\"]", 11, HN_JSON_DIGITS);
    assert_null(hn_json_digits(json_array_get(v, 0)));
    json_decref(v);
    hone_error err;
    const hn_json_rules *as_text = RULES(.as_text = "a");
    static const char bare[] = "{\"a\": 123456789012345678901}",
                      object[] = "{\"x\": [{\"a\": {\"a\": [1, 123456789012345678901]} , \"b\": 2}]}";
    assert_int_equal(read_n(&v, bare, sizeof bare - 1, as_text, &err), HONE_E_FORMAT);
    assert_int_equal(read_n(&v, object, sizeof object - 1, as_text, &err), HONE_OK);
    assert_string_equal(hn_json_text_of(json_array_get(json_object_get(v, "x"), 0), "a"),
                        "{\"a\": [1, 123456789012345678901]}");
    json_decref(v);
    hn_jread j;
    hn_jread_num n;
    uint64_t u;
    hn_jread_begin(&j, "18446744073709551615", 20, NULL, "t", NULL, NULL);
    assert_int_equal(hn_jread_number(&j, &n), HONE_OK);
    assert_true(n.kind == HN_JSON_UINT && n.u == UINT64_MAX);
    static const char *const none[] = { "-1", "1.0", "1e2", "01", "18446744073709551616", "\"1\"", "", "x" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        hn_jread_begin(&j, none[i], strlen(none[i]), NULL, "t", NULL, NULL);
        assert_int_equal(hn_jread_u64(&j, &u), HONE_E_FORMAT);
    }
}

/* Against strtod, and against values that are known. */
static void test_real(void **state)
{
    char text[1200];
    static const struct {
        const char *s;
        double x;
    } known[] = { { "0.1", 0.1 },
                  { "1e22", 1e22 },
                  { "1e23", 1e23 },
                  { "123456789012345678901234567890", 123456789012345678901234567890.0 },
                  { "2.2250738585072011e-308", 2.2250738585072011e-308 },
                  { "4.9e-324", 0x1p-1074 },
                  { "2.4703282292062327e-324", 0 },
                  { "2.4703282292062328e-324", 0x1p-1074 },
                  { "1.7976931348623157e308", DBL_MAX },
                  { "1.7976931348623158e308", DBL_MAX },
                  { "9007199254740993", 9007199254740992.0 },
                  { "9007199254740993.0000000000000000000000000000000000000001", 9007199254740994.0 },
                  { "0.000000000000000000000000000000000001", 1e-36 },
                  { "1e-400", 0 },
                  { "0e999999999999999999999", 0 },
                  { "1e-999999999999999999999", 0 },
                  { "100e-2", 1 },
                  { "0.00e5", 0 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (real(known[i].s) != known[i].x)
            fail_msg("%s: %.17g, expected %.17g", known[i].s, real(known[i].s), known[i].x);
    assert_true(signbit(real("-0.0")));
    REFUSED("1e309", "a number within double");
    REFUSED("-1.8e308", "a number within double");
    REFUSED("1e99999999999999999999", "a number within double");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t r = hn_rand64(5, i), bits = hn_rand64(6, i);
        double x;
        memcpy(&x, &bits, 8);
        if (!isfinite(x)) continue;
        if (r % 3 == 0) snprintf(text, sizeof text, "%.*g", (int)(r / 3 % 25), x);
        else if (r % 3 == 1)
            snprintf(text, sizeof text, "%.*e", (int)(r / 3 % 900), x); /* half-way cases and beyond, exactly */
        else snprintf(text, sizeof text, "%.*f", (int)(r / 3 % 20), x);
        if (real(text) != strtod(text, NULL) && isfinite(strtod(text, NULL))) fail_msg("%s: %.17g", text, real(text));
    }
    /* digits whose only difference is far behind all that a double holds */
    memset(text, '0', sizeof text);
    memcpy(text, "0.5", 3);
    text[1100] = 0;
    assert_true(real(text) == 0.5);
    snprintf(text, sizeof text, "1.00000000000000011102230246251565404236316680908203125%0900d1",
             0); /* half-way to the next, and above */
    assert_true(real(text) == nextafter(1, 2));
}

static void test_locale(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setlocale(LC_ALL, names[i]); /* where there is none, the test is of the next */
        assert_true(real("1.5e3") == 1500 && real("0.1234567890123456789") == 0.1234567890123456789);
    }
    setlocale(LC_ALL, "C");
}

/* ---- in passing --------------------------------------------------------------------------------- */

static void test_in_place(void **state)
{
    char text[] = "{\"a\\u0041\": \"x\\n\\ud83d\\ude00\", \"n\": [1, {\"deep\": [true, \"\\t\"]}], \"z\": NaN}";
    hn_jread j;
    hone_str key, s;
    bool more;
    hn_jread_item it;
    hone_error err;
    assert_int_equal(hn_jread_begin(&j, text, sizeof text - 1, RULES(.flags = HN_JSON_PYTHON), "t", "header", &err),
                     HONE_OK);
    j.room = text;
    assert_int_equal(hn_jread_open(&j, '{', &more), HONE_OK);
    assert_true(more);
    assert_int_equal(hn_jread_key_str(&j, &key), HONE_OK);
    assert_true(key.len == 2 && memcmp(key.ptr, "aA", 2) == 0);
    assert_int_equal(hn_jread_str(&j, &s), HONE_OK);
    assert_true(s.len == 6 && memcmp(s.ptr, "x\n\xF0\x9F\x98\x80", 6) == 0);
    assert_int_equal(hn_jread_next(&j, '{', &more), HONE_OK);
    assert_int_equal(hn_jread_key_str(&j, &key), HONE_OK);
    assert_int_equal(hn_jread_skip(&j), HONE_OK);
    assert_int_equal(hn_jread_next(&j, '{', &more), HONE_OK);
    assert_int_equal(hn_jread_key_str(&j, &key), HONE_OK);
    assert_int_equal(hn_jread_scalar(&j, &it), HONE_OK);
    assert_int_equal(it.kind, HN_JSON_NULL);
    assert_int_equal(hn_jread_next(&j, '{', &more), HONE_OK);
    assert_false(more);
    assert_int_equal(hn_jread_end(&j), HONE_OK);
    hn_jread_begin(&j, "[1 x", 4, NULL, "t", "header", &err);
    assert_int_equal(hn_jread_skip(&j), HONE_E_FORMAT);
    assert_string_equal(err.message, "t: header not JSON: line 1 column 4: expected ',' or ']', seen x");
}

/* ---- jansson as an oracle ------------------------------------------------------------------------ */

typedef struct writer {
    char s[4000];
    size_t n;
    uint64_t key, k;
} writer;
static uint64_t draw(writer *w, uint64_t n) { return hn_rand64(w->key, w->k++) % n; }
static void add(writer *w, const char *s)
{
    size_t n = strlen(s);
    if (w->n + n < sizeof w->s) memcpy(w->s + w->n, s, n), w->n += n;
}

static void a_string(writer *w)
{
    static const char *const parts[] = {
        "a", "\xC3\xA4", "\\n", "\\u0041", "\\ud83d\\ude00", "\xF0\x9F\x98\x80", "\\\\", "\\\"", " ", "\x7F", "/"
    };
    add(w, "\"");
    for (uint64_t n = draw(w, 6); n > 0; n--) add(w, parts[draw(w, sizeof parts / sizeof *parts)]);
    add(w, "\"");
}

static void a_value(writer *w, int depth)
{
    static const char *const scalars[] = { "0",   "-1",     "9223372036854775807", "1.5",  "-0.0",
                                           "1e5", "2.5E-3", "123456.789e-10",      "true", "false",
                                           "null" };
    static const char *const space[] = { "", " ", "\n", "\t\r" };
    uint64_t what = draw(w, depth > 4 || w->n > 2000 ? 3 : 5);
    add(w, space[draw(w, 4)]);
    if (what < 2) add(w, scalars[draw(w, sizeof scalars / sizeof *scalars)]);
    else if (what == 2) a_string(w);
    else {
        bool object = what == 3;
        add(w, object ? "{" : "[");
        for (uint64_t i = 0, n = draw(w, 4); i < n; i++) {
            if (i) add(w, ",");
            if (object) a_string(w), add(w, ":");
            a_value(w, depth + 1);
        }
        add(w, object ? "}" : "]");
    }
    add(w, space[draw(w, 4)]);
}

static void same_as_jansson(const char *s, size_t n)
{
    json_error_t e;
    hone_error err;
    json_t *a, *b = json_loadb(s, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &e);
    hone_status st = read_n(&a, s, n, RULES(.flags = HN_JSON_UNIQUE), &err);
    if (!a != !b) fail_msg("'%.*s': %s, jansson: %s", (int)n, s, st ? err.message : "taken", b ? "taken" : e.text);
    if (a) assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static void test_oracle(void **state)
{
    static const char bytes[] = "{}[]\",:\\u0 tfn1-.eE\xC3\x80\x01";
    for (uint64_t i = 0; i < 1500; i++) {
        writer w = { .key = 1000 + i };
        a_value(&w, 0);
        same_as_jansson(w.s, w.n);
        if (w.n > 120) continue;
        for (size_t cut = 0; cut < w.n; cut++) same_as_jansson(w.s, cut);
        for (size_t k = 0; k < 40 && w.n; k++) { /* one byte of it another */
            size_t at = draw(&w, w.n);
            char was = w.s[at];
            w.s[at] = bytes[draw(&w, sizeof bytes - 1)];
            same_as_jansson(w.s, w.n);
            w.s[at] = was;
        }
    }
}

static void test_file(void **state)
{
    char path[] = "/tmp/hone-json-XXXXXX";
    json_t *v;
    hone_error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "{\"a\": [1,\n 2}", 13) == 13);
    assert_int_equal(hn_json_tree_file(&v, path, NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "line 2 column 3: expected ',' or ']', seen }"));
    assert_int_equal(hn_json_tree_file(&v, path, RULES(.max_bytes = 5), &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "more than 5 bytes"));
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(hn_json_tree_file(&v, path, NULL, &err), HONE_E_FORMAT);
    close(fd);
    unlink(path);
    assert_int_equal(hn_json_tree_file(&v, path, NULL, &err), HONE_E_IO);
    assert_int_equal(hn_json_tree_file(&v, "/tmp", NULL, &err), HONE_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),  cmocka_unit_test(test_refused),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_whole),  cmocka_unit_test(test_dumped),   cmocka_unit_test(test_real),
        cmocka_unit_test(test_locale), cmocka_unit_test(test_in_place), cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
