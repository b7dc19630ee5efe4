/* Lines of small files: each whole, however the pieces fall, what is too long cut and the next one right, and all of it
 * without a byte of the heap. Compared with fgets of the same file, and with texts written down here. */
#define _GNU_SOURCE
#include "base/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/hone-lines-XXXXXX";

static void put(const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_true(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

static int begin(void **state)
{
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}
static int end(void **state) { return unlink(path); }

static void test_ends(void **state)
{
    static const struct {
        const char *text;
        const char *line[4];
    } cases[] = {
        { "", { NULL } },
        { "\n", { "", NULL } },
        { "a", { "a", NULL } },
        { "a\n", { "a", NULL } },
        { "a\n\nbc", { "a", "", "bc", NULL } },
        { "1234567\n12345678\n123456789\n", { "1234567", "1234567", "1234567", NULL } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_lines r;
        char line[8];
        put(cases[i].text, strlen(cases[i].text));
        assert_true(hn_lines_open(&r, path));
        for (int k = 0; k < 4 && cases[i].line[k]; k++) {
            assert_true(hn_lines_next(&r, line, sizeof line));
            assert_string_equal(line, cases[i].line[k]);
        }
        assert_false(hn_lines_next(&r, line, sizeof line));
        hn_lines_close(&r);
        assert_int_equal(hn_lines_first(line, sizeof line, path), cases[i].line[0] && cases[i].line[0][0]);
    }
}

/* Lines of every length around the reader's own buffer. */
static void test_pieces(void **state)
{
    const size_t cap = 6000;
    char *text = malloc(cap * 8), *line = malloc(cap), *other = malloc(cap);
    size_t n = 0;
    assert_true(text && line && other);
    for (size_t len = 2040; len < 2056; len++) {
        for (size_t i = 0; i < len; i++) text[n++] = (char)('a' + (i + len) % 26);
        text[n++] = '\n';
    }
    put(text, n);
    hn_lines r;
    FILE *f = fopen(path, "r");
    assert_true(f && hn_lines_open(&r, path));
    while (fgets(other, (int)cap, f)) {
        other[strcspn(other, "\n")] = 0;
        assert_true(hn_lines_next(&r, line, cap));
        assert_string_equal(line, other);
    }
    assert_false(hn_lines_next(&r, line, cap));
    hn_lines_close(&r);
    fclose(f);
    free(text);
    free(line);
    free(other);
}

static void test_absent(void **state)
{
    hn_lines r;
    char line[8] = "x";
    assert_false(hn_lines_open(&r, "/tmp/no/such/file"));
    assert_false(hn_lines_next(&r, line, sizeof line));
    hn_lines_close(&r);
    assert_false(hn_lines_first(line, sizeof line, "/tmp/no/such/file"));
    assert_string_equal(line, "");
    assert_false(hn_lines_first(line, sizeof line, "/tmp")); /* a folder opens, and has no lines */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests_name("lines", tests, begin, end);
}
