/* Lines of a terminal: no word is cut, no line is longer than the terminal, nothing but blanks becomes a line end,
 * however the text comes in pieces; code and long words stay as they are. */
#include "cli/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

static char out[4096];
static size_t n_out;

static bool sink(void *arg, const char *p, size_t n)
{
    assert_true(n_out + n < sizeof out);
    memcpy(out + n_out, p, n);
    out[n_out += n] = 0;
    return true;
}

static const char *wrapped(const char *text, int width, size_t piece)
{
    hn_wrap w = { .width = width };
    size_t n = strlen(text);
    n_out = 0;
    out[0] = 0;
    for (size_t i = 0; i < n; i += piece)
        assert_true(hn_wrap_put(&w, text + i, n - i < piece ? n - i : piece, sink, NULL));
    assert_true(hn_wrap_end(&w, sink, NULL));
    return out;
}

static void test_lines(void **state)
{
    static const struct {
        int width;
        const char *text, *lines;
    } t[] = {
        { 10, "one two three four", "one two\nthree four" },
        { 10, "one two  three", "one two\nthree" },
        { 7, "one two", "one two" },
        { 6, "one two", "one\ntwo" },
        { 5, "a incomprehensible b", "a\nincomprehensible\nb" },
        { 8, "ends. \n\nNext one", "ends.\n\nNext one" },
        { 12, "```\na line of code that is long\n```\nand words after it",
          "```\na line of code that is long\n```\nand words\nafter it" },
        { 6, "\xE4\xBD\xA0\xE5\xA5\xBD \xE4\xBD\xA0 x",
          "\xE4\xBD\xA0\xE5\xA5\xBD\n\xE4\xBD\xA0 x" }, /* two columns each */
        { 7, "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9\xC3\xA9",
          "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9\xC3\xA9" }, /* one */
        { 6, "\xE4\xBD\xA0\xE5\xA5\xBD\xE5\x90\x97\xE5\xA5\xBD\xE5\x90\x97",
          "\xE4\xBD\xA0\xE5\xA5\xBD\xE5\x90\x97\n\xE5\xA5\xBD\xE5\x90\x97" }, /* between any two of them */
        { 20, "1. item\n   goes on here", "1. item\n   goes on here" },
        { 0, "one two three four five six seven", "one two three four five six seven" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (size_t piece = 1; piece < 8; piece++)
            assert_string_equal(wrapped(t[i].text, t[i].width, piece), t[i].lines);
}

/* Of any text: words in their order, no line longer than the terminal but of one word. */
static void test_any_text(void **state)
{
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        char text[400], words[400], got[sizeof out];
        size_t n = 0;
        int width = 4 + round % 30;
        while (n < sizeof text - 20) {
            seed = seed * 1664525u + 1013904223u;
            for (unsigned k = 1 + (seed >> 16) % 12; k; k--) text[n++] = (char)('a' + k);
            text[n++] = (seed >> 24) % 9 ? ' ' : '\n';
        }
        text[n] = 0;
        wrapped(text, width, 1 + (size_t)round % 5);
        for (const char *s = out; *s; s += strcspn(s, "\n") + (s[strcspn(s, "\n")] == '\n')) {
            size_t line = strcspn(s, "\n");
            assert_true(line <= (size_t)width || !memchr(s, ' ', line) || memchr(s, ' ', line) == s + line - 1);
        }
        snprintf(words, sizeof words, "%s", text);
        snprintf(got, sizeof got, "%s", out);
        for (char *s = words; *s; s++) *s = *s == '\n' ? ' ' : *s;
        for (char *s = got; *s; s++) *s = *s == '\n' ? ' ' : *s;
        char *a = words, *b = got, *wa, *wb, *sa = NULL, *sb = NULL;
        do {
            wa = strtok_r(a, " ", &sa);
            wb = strtok_r(b, " ", &sb);
            a = b = NULL;
            assert_true(!wa == !wb && (!wa || strcmp(wa, wb) == 0));
        } while (wa);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_any_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
