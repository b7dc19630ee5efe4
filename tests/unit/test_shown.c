/* What a terminal may be given: every character that steers it, however the text is cut into pieces, and none that
 * only looks foreign; in JSON, the same meaning. What messages show of names. */
#include "base/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct text {
    char s[8192];
    size_t n;
} text;

static bool add(void *arg, const char *p, size_t n)
{
    text *t = arg;
    assert_true(n < sizeof t->s - t->n);
    memcpy(t->s + t->n, p, n);
    t->n += n;
    t->s[t->n] = 0;
    return true;
}

/* Whole, and in pieces of every size: always the same. */
static void check(bool json, const char *in, size_t n, const char *want)
{
    for (size_t size = n ? n : 1; size > 0; size--) {
        text t = { .n = 0 };
        hn_shown s = { .json = json };
        for (size_t i = 0; i < n; i += size) {
            size_t k = n - i < size ? n - i : size;
            assert_true(hn_shown_put(&s, in + i, k, add, &t));
        }
        assert_true(hn_shown_end(&s, add, &t));
        assert_string_equal(t.s, want);
        assert_int_equal(t.n, strlen(want));
    }
}

static void test_steering(void **unused)
{
    static const struct {
        const char *in, *want, *json;
    } cases[] = {
        { "plain \t text\n", "plain \t text\n", NULL },
        { "\x1b]52;c;aGk=\x07", "\\x1B]52;c;aGk=\\x07", "\\u001b]52;c;aGk=\\u0007" },
        { "a\rb\r\nc\r", "a\\x0Db\nc\\x0D", NULL },
        { "\r\r\n", "\\x0D\n", NULL },
        { "a\b\v\f\x7f", "a\\x08\\x0B\\x0C\\x7F", NULL },
        { "\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0", "\\x80\\x9B\\x9F\xC2\xA0", "\\u0080\\u009b\\u009f\xC2\xA0" },
        { "\x80\x9b\xff", "\\x80\\x9B\\xFF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xE2\x80\xAA\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA9", "\\u202A\\u202E\\u2066\\u2069",
          "\\u202a\\u202e\\u2066\\u2069" },
        { "\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C\xE2\x80\xA8\xE2\x80\xA9", "\\u200E\\u200F\\u061C\\u2028\\u2029", NULL },
        { "\xEF\xBF\xB9\xF3\xA0\x80\x81\xF3\xA0\x81\xA1", "\\uFFF9\\U000E0001\\U000E0061",
          "\\ufff9\\udb40\\udc01\\udb40\\udc61" },
        { "\xE2\x80", "\\xE2\\x80", "\xEF\xBF\xBD" },
        { "\xE2\x80\x1b", "\\xE2\\x80\\x1B", NULL },
        { "\xE2\xE2\x80\xAE", "\\xE2\\u202E", NULL },
        { "\xED\xA0\x80\xC0\xAF\xF4\x90\x80\x80", "\\xED\\xA0\\x80\\xC0\\xAF\\xF4\\x90\\x80\\x80", NULL },
        { "\xF0\x9F\x8F", "\\xF0\\x9F\\x8F", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(false, cases[i].in, strlen(cases[i].in), cases[i].want);
        if (cases[i].json) check(true, cases[i].in, strlen(cases[i].in), cases[i].json);
    }
    check(false, "a\0b", 3, "a\\x00b");
}

#define FLAG "\xF0\x9F\x8F\xB4"
#define TAG(x) "\xF3\xA0\x81" x
#define CANCEL TAG("\xBF")

static void test_harmless(void **unused)
{
    static const char *const same[] = {
        "na\xC3\xAFve \xE4\xBD\xA0\xE5\xA5\xBD "
        "\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7 \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D e\xCC\x81",
        /* joiner, selector, flag of two letters */
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB \xE2\x9D\xA4\xEF\xB8\x8F \xF0\x9F\x87\xA9\xF0\x9F\x87\xAA",
        /* non-joiner of Persian */
        "\xD9\x86\xD9\x85\xDB\x8C\xE2\x80\x8C\xD8\xAE\xD9\x88\xD8\xA7\xD9\x87\xD9\x85",
        FLAG TAG("\xA7") TAG("\xA2") TAG("\xA5") TAG("\xAE") TAG("\xA7") CANCEL " " FLAG " \xEF\xBF\xBD",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (int json = 0; json < 2; json++) check(json, same[i], strlen(same[i]), same[i]);
    /* tags that are no flag's: after its end, too many, after something else */
    check(false, FLAG TAG("\xA7") CANCEL TAG("\xA7"), strlen(FLAG) + 12, FLAG TAG("\xA7") CANCEL "\\U000E0067");
    check(false, FLAG "x" TAG("\xA7"), strlen(FLAG) + 5, FLAG "x\\U000E0067");
    text t = { .n = 0 };
    hn_shown s = { 0 };
    hn_shown_put(&s, FLAG, strlen(FLAG), add, &t);
    for (int i = 0; i < 9; i++) hn_shown_put(&s, TAG("\xA7"), 4, add, &t);
    assert_non_null(strstr(t.s, TAG("\xA7") "\\U000E0067\\U000E0067"));
}

/* Everything there is, one by one, against the lists of the terminals' and Unicode's documents. */
static void test_every_code(void **unused)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        bool steers = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E ||
                      c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x206F) ||
                      (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c < 0xE0080);
        if (hn_steers_terminal(c) != steers) fail_msg("U+%04X", c);
        if (steers && !hn_hides_in_name(c)) fail_msg("U+%04X in a name", c);
    }
}

static void test_escape(void **unused)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        { "a\\b\n", "a\\x5cb\\x0a" },
        { "x\xE2\x80\xAEy", "x\\xe2\\x80\\xaey" },
        { "\xC2\x9B\x9B", "\\xc2\\x9b\\x9b" },
        { "a\xE2\x80\x8B\xEF\xBB\xBF\xC2\xAD", "a\\xe2\\x80\\x8b\\xef\\xbb\\xbf\\xc2\\xad" },
        { "\xF3\xA0\x81\xA1", "\\xf3\\xa0\\x81\\xa1" },
        { "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB", "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(HN_ESC(cases[i].in, strlen(cases[i].in)), cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steering),
        cmocka_unit_test(test_harmless),
        cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
