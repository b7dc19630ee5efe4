/* What hone pull is made of, without a network: addresses, SHA-1, parts and their journals. */
#include "hub/part.h"
#include "hub/sha1.h"
#include "hub/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- addresses ---------------------------------------------------------------------------------- */

static void test_url_parse(void **state)
{
    static const struct {
        const char *text, *origin;
        bool loopback;
    } good[] = {
        { "https://huggingface.co/a/b?c", "https://huggingface.co:443", false },
        { "HTTPS://HuggingFace.CO", "https://huggingface.co:443", false },
        { "http://localhost:80/x", "http://localhost:80", true },
        { "http://127.0.0.1/x", "http://127.0.0.1:80", true },
        { "http://127.9.0.1:8080", "http://127.9.0.1:8080", true },
        { "http://[::1]:99/x", "http://[::1]:99", true },
        { "http://127.evil.org/x", "http://127.evil.org:80", false },
        { "http://127.0.0.1.evil.org/", "http://127.0.0.1.evil.org:80", false },
        { "http://localhost.evil.org/", "http://localhost.evil.org:80", false },
        { "http://[::2]/", "http://[::2]:80", false },
    };
    static const char *const bad[] = {
        "",
        "ftp://x/y",
        "file:///etc/passwd",
        "https://",
        "https:///x",
        "https://user@host/x",
        "https://a:b@host/",
        "https://host:0/",
        "https://host:65536/",
        "https://host:8a/",
        "https://ho st/",
        "https://host/\n",
        "https://[::1/",
        "https://host/\x80",
        "https://h\\x/",
        "https://[]/",
        "https://host:123456/",
        "javascript:x",
    };
    hn_url u;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(hn_url_parse(&u, good[i].text, NULL));
        assert_string_equal(u.origin, good[i].origin);
        assert_int_equal(u.loopback, good[i].loopback);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = NULL;
        assert_false(hn_url_parse(&u, bad[i], &why));
        assert_non_null(why);
    }
    char *longest = calloc(1, HN_URL_BYTES + 16);
    assert_non_null(longest);
    memset(longest, 'a', HN_URL_BYTES + 8);
    memcpy(longest, "https://", 8);
    assert_false(hn_url_parse(&u, longest, NULL));
    free(longest);
    assert_true(hn_url_same_origin("https://a/x", "https://A:443/y"));
    assert_false(hn_url_same_origin("https://a/x", "http://a/x"));
    assert_false(hn_url_same_origin("https://a/x", "https://a:444/x"));
    assert_false(hn_url_same_origin("https://a/x", "https://a.b/x"));
}

/* RFC 3986 5.4, those without dots */
static void test_url_join(void **state)
{
    static const char *const rows[][3] = {
        { "https://a/b/c/d?q", "g", "https://a/b/c/g" },
        { "https://a/b/c/d?q", "/g", "https://a/g" },
        { "https://a/b/c/d?q", "//g", "https://g" },
        { "https://a/b/c/d?q", "?y", "https://a/b/c/d?y" },
        { "https://a/b/c/d?q", "g?y", "https://a/b/c/g?y" },
        { "https://a/b/c/d?q", "g?y/./x", "https://a/b/c/g?y/./x" },
        { "https://a/b/c/d?q", "g#s", "https://a/b/c/g" },
        { "https://a/b/c/d?q", "", "https://a/b/c/d" },
        { "https://a/b/c/d?q=x/y", "g", "https://a/b/c/g" },
        { "https://a", "g", "https://a/g" },
        { "https://a:8/x", "http://c/y", "http://c/y" },
    };
    static const char *const bad[] = { "file:///x", "https://u@h/", "https:", "http://\x01/", "//", "/a b" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *out;
        hone_error err;
        assert_int_equal(hn_url_join(&out, rows[i][0], rows[i][1], &err), HONE_OK);
        assert_string_equal(out, rows[i][2]);
        free(out);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *out = (char *)"x";
        assert_int_equal(hn_url_join(&out, "https://a/b", bad[i], NULL), HONE_E_NETWORK);
        assert_null(out);
    }
    char *q = hn_url_quote("a b/ü%?#&=.~-_", true), *r = hn_url_quote("v1/x", false);
    assert_string_equal(q, "a%20b/%C3%BC%25%3F%23%26%3D.~-_");
    assert_string_equal(r, "v1%2Fx");
    free(q);
    free(r);
}

/* ---- SHA-1: FIPS 180-4 and git's own names ---------------------------------------------------------- */

static void sha1_is(const char *text, size_t n, size_t step, const char *want)
{
    unsigned char sum[20];
    char hex[41];
    hn_sha1 s;
    hn_sha1_init(&s);
    for (size_t i = 0; i < n; i += step) hn_sha1_add(&s, text + i, n - i < step ? n - i : step);
    hn_sha1_end(&s, sum);
    assert_string_equal(hn_hex(hex, sum, 20), want);
}

static void test_sha1(void **state)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char git[] = "blob 6\0hello\n"; /* git hash-object */
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    sha1_is("", 0, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    sha1_is("abc", 3, 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha1_is(git, 13, 5, "ce013625030ba8dba906f756967f9e9ca394464a");
    for (size_t step = 1; step < 70; step += 3)
        sha1_is(two, strlen(two), step, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    sha1_is(million, 1000000, 4097, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(million);
}

/* ---- parts --------------------------------------------------------------------------------------------- */

static char dir[64], whole[100], part[120], journal[130];
static hn_part_names names;

static int set_up(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-part-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(whole, sizeof whole, "%s/f", dir);
    snprintf(part, sizeof part, "%s.hone-part", whole);
    snprintf(journal, sizeof journal, "%s.json", part);
    names = (hn_part_names){ .whole = whole, .part = part, .journal = journal, .what = "f", .size = 10000 };
    return 0;
}

static int tear_down(void **state)
{
    unlink(whole);
    unlink(part);
    unlink(journal);
    return rmdir(dir); /* nothing else may be left */
}

static bool there(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0;
}

static void begin(hn_part *p, const char *etag)
{
    bool is_whole;
    hone_error err;
    assert_int_equal(hn_part_lock(p, &names, &is_whole, NULL, NULL, NULL, &err), HONE_OK);
    assert_false(is_whole);
    assert_int_equal(hn_part_open(p, 10000, etag, 4096, &err), HONE_OK);
}

static void test_part_resumes(void **state)
{
    hn_part p;
    char bytes[10000], back[10000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7 + i / 256);
    begin(&p, "e1");
    assert_int_equal(p.n_piece, 3);
    assert_int_equal(hn_part_put(&p, 4096, bytes + 4096, 4096), 0);
    assert_int_equal(hn_part_put(&p, 0, bytes, 1000), 0);
    assert_int_equal(hn_part_prefix(&p), 1000);
    assert_int_equal(hn_part_put(&p, 2000, bytes + 2000, 10), 0); /* a hole before it: it does not count */
    assert_int_equal(p.total, 5096);
    assert_int_equal(hn_part_note(&p, NULL), HONE_OK);
    hn_part_close(&p, false);
    assert_true(there(part) && there(journal) && !there(whole));

    begin(&p, "e1");
    assert_int_equal(p.total, 5096);
    assert_int_equal(p.have[0], 1000);
    assert_int_equal(p.have[1], 4096);
    assert_int_equal(hn_part_put(&p, 1000, bytes + 1000, 9000), 0); /* over all pieces */
    assert_int_equal(hn_part_prefix(&p), 10000);
    assert_int_equal(hn_part_get(&p, 0, back, 10000), 0);
    assert_memory_equal(back, bytes, 10000);
    assert_int_equal(hn_part_publish(&p, NULL), HONE_OK);
    hn_part_close(&p, false);
    assert_true(there(whole) && !there(part) && !there(journal));

    bool is_whole;
    assert_int_equal(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, NULL), HONE_OK);
    assert_true(is_whole);
    hn_part_close(&p, false);
    assert_false(there(part));
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_part_disbelieves(void **state)
{
    static const char *const rows[] = {
        "",
        "[",
        "{}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e2\",\"size\":10000,\"piece\":4096,\"have\":[4096,4096,1808]}",
        "{\"schema\":\"hone.part/2\",\"etag\":\"e1\",\"size\":10000,\"piece\":4096,\"have\":[4096,4096,1808]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10001,\"piece\":4096,\"have\":[4096,4096,1809]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":4096,\"have\":[4096,4096,1809]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":4096,\"have\":[4096,4096]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":4096,\"have\":[4096,-1,1808]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":4096,\"have\":[4096,1.5,1808]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":0,\"have\":[]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":1,\"have\":[1]}",
        "{\"schema\":\"hone.part/1\",\"etag\":\"e1\",\"size\":10000,\"piece\":9223372036854775807,\"have\":[10001]}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_part p;
        begin(&p, "e1");
        assert_int_equal(hn_part_put(&p, 0, "abc", 3), 0);
        hn_part_close(&p, false);
        write_text(journal, rows[i]);
        begin(&p, "e1");
        assert_int_equal(p.total, 0);
        assert_int_equal(hn_part_prefix(&p), 0);
        hn_part_close(&p, true);
        assert_false(there(part) || there(journal));
    }
    hn_part p; /* a part that somebody cut */
    begin(&p, "e1");
    assert_int_equal(hn_part_put(&p, 0, "abc", 3), 0);
    assert_int_equal(hn_part_note(&p, NULL), HONE_OK);
    hn_part_close(&p, false);
    assert_int_equal(truncate(part, 100), 0);
    begin(&p, "e1");
    assert_int_equal(p.total, 0);
    hn_part_close(&p, true);
    begin(&p, ""); /* what is known by nothing is never gone on with */
    assert_int_equal(hn_part_put(&p, 0, "abc", 3), 0);
    assert_int_equal(hn_part_note(&p, NULL), HONE_OK);
    hn_part_close(&p, false);
    begin(&p, "");
    assert_int_equal(p.total, 0);
    hn_part_close(&p, true);
}

static bool stop_at_once(void *arg) { return true; }
static void count(void *arg) { ++*(int *)arg; }

static void test_part_lock(void **state)
{
    hn_part a, b;
    bool is_whole;
    int waited = 0;
    hone_error err;
    begin(&a, "e1");
    assert_int_equal(hn_part_lock(&b, &names, &is_whole, stop_at_once, count, &waited, &err), HONE_E_INTERRUPTED);
    assert_int_equal(waited, 1);
    hn_part_close(&b, false);
    hn_part_close(&a, true);
    assert_int_equal(symlink("/etc/passwd", part), 0); /* nobody's link is written through */
    assert_int_equal(hn_part_lock(&b, &names, &is_whole, stop_at_once, count, &waited, &err), HONE_E_IO);
    hn_part_close(&b, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_parse),
        cmocka_unit_test(test_url_join),
        cmocka_unit_test(test_sha1),
        cmocka_unit_test_setup_teardown(test_part_resumes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part_disbelieves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part_lock, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
