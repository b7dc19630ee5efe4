/* The page of hone serve as it is sent: whole, its hashes those that another program computes, nothing in it that a
 * browser would refuse or fetch. How it behaves: tests/e2e/page.sh. */
#include "serve/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* How often `word` stands in the page. */
static int count(const char *word)
{
    int n = 0;
    for (const char *at = hn_page_get()->bytes; (at = strstr(at, word)); at += strlen(word)) n++;
    return n;
}

static void test_whole(void **state)
{
    const hn_page *p = hn_page_get();
    assert_ptr_equal(p, hn_page_get());
    assert_int_equal(strlen(p->bytes), p->len); /* no NUL within */
    assert_true(p->len > 10000 && p->len <= 150 * 1024);
    assert_memory_equal(p->bytes, "<!doctype html>\n", 16);
    assert_string_equal(p->bytes + p->len - 8, "</html>\n");
    assert_int_equal(count("<style>"), 1);
    assert_int_equal(count("</style>"), 1);
    assert_int_equal(count("<script>"), 1);
    assert_int_equal(count("</script>"), 1);
    assert_int_equal(count("\n@STYLE@\n") + count("\n@SCRIPT@\n"), 0);
    assert_int_equal(count("begin();"), 1); /* the last line of the last script */
}

/* Compressed it is the same, as gzip(1) reads it. */
static void test_compressed(void **state)
{
    const hn_page *p = hn_page_get();
    char path[] = "/tmp/hone-page-XXXXXX", command[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && p->gzip_len < p->len / 2);
    assert_int_equal(write(fd, p->gzip, p->gzip_len), p->gzip_len);
    close(fd);
    snprintf(command, sizeof command, "gzip -dc <%s", path);
    FILE *f = popen(command, "r");
    char *text = malloc(p->len + 1);
    assert_true(f && text);
    assert_int_equal(fread(text, 1, p->len + 1, f), p->len);
    assert_int_equal(pclose(f), 0);
    assert_memory_equal(text, p->bytes, p->len);
    free(text);
    unlink(path);
}

/* Ways from text to markup, to other hosts, or past the policy. */
static void test_never(void **state)
{
    static const char *const never[] = {
        "innerHTML",       "outerHTML",      "insertAdjacentHTML",
        "document.write",  "DOMParser",      "createContextualFragment",
        "eval(",           "new Function",   "setAttribute('on",
        "style=",          "src=",           "srcdoc",
        "import(",         "XMLHttpRequest", "WebSocket",
        "EventSource",     "sendBeacon",     "serviceWorker",
        "document.cookie",
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        if (count(never[i])) print_message("%s is in the page\n", never[i]);
        assert_int_equal(count(never[i]), 0);
    }
    /* one place asks the server, with paths below the page's own */
    assert_int_equal(count("fetch("), 1);
}

/* hex [65]: what sha256sum says of p. False: there is no such program. */
static bool digest(char *hex, const char *p, size_t n)
{
    char path[] = "/tmp/hone-page-XXXXXX", command[80];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
    snprintf(command, sizeof command, "sha256sum <%s 2>/dev/null", path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    bool there = fscanf(f, "%64s", hex) == 1 && strlen(hex) == 64;
    pclose(f);
    unlink(path);
    return there;
}

/* The 6-bit digit at `at` of base64 must be that of the hash. */
static void same_hash(const char *base64, const char *hex)
{
    unsigned char sum[33] = { 0 };
    for (int i = 0; i < 32; i++) {
        unsigned v;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
        sum[i] = (unsigned char)v;
    }
    for (int i = 0; i < 43; i++) {
        int bit = 6 * i, v = (sum[bit / 8] << 8 | sum[bit / 8 + 1]) >> (10 - bit % 8) & 63;
        char c = (char)(v < 26 ? 'A' + v : v < 52 ? 'a' + v - 26 : v < 62 ? '0' + v - 52 : v == 62 ? '+' : '/');
        assert_int_equal(base64[i], c);
    }
    assert_memory_equal(base64 + 43, "='", 2);
}

static void test_hashes(void **state)
{
    const hn_page *p = hn_page_get();
    static const char *const parts[][3] = { { "script-src 'sha256-", "<script>", "</script>" },
                                            { "style-src 'sha256-", "<style>", "</style>" } };
    char hex[65];
    if (!digest(hex, p->bytes, p->len)) {
        print_message("SKIP: no sha256sum\n");
        skip();
    }
    assert_int_equal(strlen(p->etag), 66);
    assert_true(p->etag[0] == '"' && p->etag[65] == '"');
    assert_memory_equal(p->etag + 1, hex, 64);
    for (int i = 0; i < 2; i++) {
        const char *from = strstr(p->bytes, parts[i][1]) + strlen(parts[i][1]), *to = strstr(from, parts[i][2]);
        const char *said = strstr(p->csp, parts[i][0]);
        assert_non_null(said);
        assert_true(digest(hex, from, (size_t)(to - from)));
        same_hash(said + strlen(parts[i][0]), hex);
    }
    assert_memory_equal(p->csp, "default-src 'none'; ", 20);
    const char *end =
        "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    assert_string_equal(p->csp + strlen(p->csp) - strlen(end), end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
