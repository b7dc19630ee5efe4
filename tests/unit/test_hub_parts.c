/* What hone pull is made of, without a network: addresses, heads of answers, lists of files, SHA-1, parts and their
 * journals. */
#include "hub/head.h"
#include "hub/hub_api.h"
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
        { "http://127.0.0.256/", "http://127.0.0.256:80", false }, /* these four are names, and anybody's */
        { "http://127..0.1/", "http://127..0.1:80", false },
        { "http://127.0.0.0001/", "http://127.0.0.0001:80", false },
        { "http://127.0.1/", "http://127.0.1:80", false },
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

/* Who may be opened when sent there by whom. */
static void test_url_allowed(void **state)
{
    static const struct {
        const char *url, *from;
        bool allowed; /* without --insecure; with it, all that are addresses */
    } rows[] = {
        { "https://a/x", NULL, true },
        { "https://b/x", "https://a/x", true },
        { "https://b/x", "http://127.0.0.1:1/x", true },
        { "http://127.0.0.1:9/x", NULL, true },
        { "http://[::1]/x", "http://localhost/x", true },
        { "http://127.0.0.1:9/x", "http://127.0.0.1:8/x", true },
        { "http://a/x", NULL, false },
        { "http://a/x", "https://a/x", false },
        { "http://a/x", "http://127.0.0.1/x", false },
        { "http://127.0.0.1/x", "https://a/x", false }, /* a server elsewhere reaches nothing that listens here */
        { "http://localhost/x", "https://a/x", false },
        { "http://127.0.0.256/x", NULL, false },
        { "http://127.0.0.1/x", "nonsense", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hone_error err = { 0 };
        hone_status st = hn_url_allowed(rows[i].url, rows[i].from, false, &err);
        if (rows[i].allowed != (st == HONE_OK)) fail_msg("%s from %s", rows[i].url, rows[i].from);
        /* what was asked for is the asker's mistake, where a server leads the server's */
        hone_status refused = rows[i].from ? HONE_E_NETWORK : HONE_E_ARG;
        if (st != HONE_OK) assert_true(st == refused && strstr(err.message, "expected https"));
        assert_int_equal(hn_url_allowed(rows[i].url, rows[i].from, true, &err), HONE_OK);
    }
    static const char *const never[] = { "file:///etc/passwd", "ftp://a/x", "https://u@a/x", "", "gopher://a" };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_int_equal(hn_url_allowed(never[i], "https://a/x", true, NULL), HONE_E_NETWORK);
}

/* ---- heads ------------------------------------------------------------------------------------------ */

static void head_of(hn_fetch_head *a, const char *first, const char *lines, bool at_endpoint)
{
    hn_head_clear(a);
    hn_head_begin(a, first, strlen(first));
    for (const char *p = lines; *p;) {
        size_t n = strcspn(p, "\n");
        hn_head_line(a, p, n, at_endpoint);
        p += n + (p[n] == '\n');
    }
}

static void test_head(void **state)
{
    hn_fetch_head a;
    head_of(
        &a, "HTTP/1.1 206 Partial Content\r\n",
        "content-length:  100 \r\nContent-Range: bytes 0-99/1000\r\nETag: W/\"x y\"\r\nContent-Type: text/html;x\r\n"
        "X-Repo-Commit: c\r\nX-Linked-Etag: \"e\"\r\nX-Linked-Size: 7\r\nContent-Encoding: gzip\r\n",
        false);
    assert_int_equal(a.status, 206);
    assert_true(a.has_length && a.length == 100 && a.has_range && a.first == 0 && a.last == 99 && a.size == 1000);
    assert_true(a.weak && a.html && !*a.commit && !*a.linked_etag && !a.has_linked_size); /* not the endpoint's */
    assert_string_equal(a.etag, "x y");
    assert_string_equal(a.encoding, "gzip");
    assert_true(a.wait_s < 0);
    head_of(&a, "HTTP/2 302", "X-Repo-Commit: c\nX-Linked-Etag: W/\"e\"\nX-Linked-Size: 7\nX-Error-Code: No\n", true);
    assert_string_equal(a.linked_etag, "e");
    hn_head_begin(&a, "HTTP/1.1 200 OK", 15); /* what the endpoint said of the file stays, its refusal does not */
    assert_string_equal(a.commit, "c");
    assert_true(a.has_linked_size && a.linked_size == 7 && a.status == 200 && !*a.code);

    static const char *const no_range[] = { "bytes 0-99",
                                            "bytes 0-/9",
                                            "bytes -9/9",
                                            "items 0-9/10",
                                            "bytes 0-9/",
                                            "bytes 0-9/1x",
                                            "bytes 99999999999999999999-9/1",
                                            "bytes",
                                            ("bytes *"
                                             "/x") };
    for (size_t i = 0; i < sizeof no_range / sizeof *no_range; i++) {
        char line[100];
        snprintf(line, sizeof line, "Content-Range: %s", no_range[i]);
        head_of(&a, "HTTP/1.1 206", line, false);
        if (a.has_range) fail_msg("%s", line);
    }
    head_of(&a, "HTTP/1.1 206", "Content-Range: bytes 5-9/*", false);
    assert_true(a.has_range && a.size == UINT64_MAX);
    head_of(&a, "HTTP/1.1 200", "Content-Length: 18446744073709551616", false);
    assert_false(a.has_length);
    char *next = hn_head_next("<https://h/p?c=1>; rel=\"next\"", 29),
         *none = hn_head_next("<https://h>; rel=\"prev\"", 23);
    assert_string_equal(next, "https://h/p?c=1");
    assert_null(none);
    free(next);
}

/* How long a server wants to be left alone: -1 where it does not say. */
static void test_head_waits(void **state)
{
    static const struct {
        const char *lines;
        double wait_s;
    } rows[] = {
        { "RateLimit: \"api\";r=2999;t=217\nRetry-After: 5", 5 }, /* some other limit's 429 */
        { "RateLimit: \"api\";r=2999;t=217", -1 },
        { "RateLimit: \"api\";t=217", 217 },
        { "RateLimit: \"api\";t=217;r=0", 217 },
        { "Retry-After: 30", 30 },
        { "Retry-After: 86400", 86400 },
        { "Retry-After: -1", -1 },
        { "Retry-After: soon", -1 },
        { "Retry-After: 99999999999999999999999", -1 },
        { "RateLimit: \"api\";r=0;t=55\nRetry-After: 300", 55 },
        { "Retry-After: 300\nRateLimit: \"api\";r=0;t=55", 55 },
        { "Date: Wed, 21 Oct 2015 07:28:00 GMT\nRetry-After: Wed, 21 Oct 2015 07:28:05 GMT", 5 },
        { "Retry-After: Thu, 01 Jan 2026 00:00:01 GMT\nDate: Wed, 31 Dec 2025 23:59:59 GMT", 2 },
        { "Date: Wed, 28 Feb 2024 00:00:00 GMT\nRetry-After: Fri, 01 Mar 2024 00:00:00 GMT", 2 * 86400 },
        { "Date: Tue, 28 Feb 2023 00:00:00 GMT\nRetry-After: Wed, 01 Mar 2023 00:00:00 GMT", 86400 },
        { "Date: Wed, 21 Oct 2015 07:28:00 GMT\nRetry-After: Wed, 21 Oct 2015 07:00:00 GMT", 0 },
        { "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", 0 }, /* long ago by our own clock */
        { "Retry-After: Wed, 21 Oct 2015 07:28:00", -1 },
        { "Retry-After: Wed, 41 Oct 2015 07:28:00 GMT", -1 },
        { "Retry-After: Wed, 21 ctO 2015 07:28:00 GMT", -1 },
        { "Retry-After: Wednesday, 21-Oct-15 07:28:00 GMT", -1 },
        { "RateLimit: \"api\";r=0;t=", -1 },
        { "RateLimit: ;t", -1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_fetch_head a;
        head_of(&a, "HTTP/1.1 429 Too Many Requests", rows[i].lines, false);
        if (a.wait_s != rows[i].wait_s) fail_msg("%s: %g, expected %g", rows[i].lines, a.wait_s, rows[i].wait_s);
    }
    static const struct {
        const char *first, *lines;
        double wait_s;
    } others[] = {
        { "HTTP/1.1 200 OK", "RateLimit: \"api\";r=2999;t=217", -1 }, /* as huggingface.co says it with every answer */
        { "HTTP/1.1 502 Bad Gateway", "RateLimit: \"api\";r=2999;t=217", -1 },
        { "HTTP/1.1 503 Service Unavailable", "RateLimit: \"api\";r=0;t=217", -1 },
        { "HTTP/1.1 503 Service Unavailable", "RateLimit: \"api\";r=2999;t=217\nRetry-After: 5", 5 },
        { "HTTP/1.1 503 Service Unavailable", "Retry-After: 5\nRateLimit: \"api\";r=2999;t=217", 5 },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hn_fetch_head a;
        head_of(&a, others[i].first, others[i].lines, false);
        if (a.wait_s != others[i].wait_s) fail_msg("%s: %s: %g", others[i].first, others[i].lines, a.wait_s);
    }
}

static void test_head_content(void **state)
{
    static const char *const rows[][2] = { { "ETag: \"a\"", "a" },       { "ETag: \"a\"\nLast-Modified: M", "a" },
                                           { "ETag: W/\"a\"", "" },      { "ETag: W/\"a\"\nLast-Modified: M", "M a" },
                                           { "Last-Modified: M", "M " }, { "Server: x", "" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_fetch_head a;
        char content[HN_HEAD_NAME];
        head_of(&a, "HTTP/1.1 200 OK", rows[i][0], false);
        hn_head_content(content, &a);
        assert_string_equal(content, rows[i][1]);
    }
}

/* ---- what the hub says -------------------------------------------------------------------------------- */

#define OID "ce013625030ba8dba906f756967f9e9ca394464a"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void test_commit(void **state)
{
    static const struct {
        const char *text, *rev;
        bool good;
    } rows[] = {
        { "{\"sha\":\"" COMMIT "\"}", "main", true },
        { " { \"siblings\" : [ { \"sha\" : 1 } ] , \"sha\" : \"" COMMIT "\" } ", COMMIT, true },
        { "{\"\\u0073ha\":\"" COMMIT "\"}", "main", true },
        { "{\"sha\":\"" COMMIT "\"}", OID, false },
        { "{\"sha\":\"" COMMIT "0\"}", "main", false },
        { "{\"sha\":\"../../x\"}", "main", false },
        { "{\"sha\":[]}", "main", false },
        { "{\"sha\":null}", "main", false },
        { "{}", "main", false },
        { "[]", "main", false },
        { "{\"sha\":\"" COMMIT "\"}x", "main", false },
        { "", "main", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char commit[41];
        hone_error err = { 0 };
        hone_status st = hn_hub_commit_of(commit, rows[i].text, strlen(rows[i].text), "o/r", rows[i].rev, &err);
        if (rows[i].good != (st == HONE_OK)) fail_msg("%s at %s: %s", rows[i].text, rows[i].rev, err.message);
        assert_string_equal(commit, rows[i].good ? COMMIT : "");
        if (st != HONE_OK) assert_true(st == HONE_E_NETWORK && strstr(err.message, "expected"));
    }
}

#define FILE_OF(path, more) "{\"type\":\"file\",\"path\":\"" path "\",\"oid\":\"" OID "\"" more "}"

static void test_page(void **state)
{
    static const char *const good[] = {
        "[]",
        "[" FILE_OF("a", ",\"size\":0") "]",
        " [ " FILE_OF("a\\u00e4/b c", ",\"size\":5,\"x\":[{}]") " , {\"type\":\"directory\",\"path\":\"../x\"} , {} ] ",
        "[" FILE_OF("a", ",\"size\":3,\"lfs\":null") "," FILE_OF("b", ",\"size\":1125899906842624") "]",
        "[{\"type\":\"file\",\"path\":\"a\",\"lfs\":{\"size\":9,\"oid\":\"sha256:" OID "012345678901234567890123"
        "\"},\"oid\":\"\",\"size\":1}]",
    };
    static const size_t n[] = { 0, 1, 1, 2, 1 };
    static const char *const bad[] = {
        "",
        "{}",
        "[" FILE_OF("a", ",\"size\":0"),
        "[" FILE_OF("a", ",\"size\":0") "]]",
        "[1]",
        "[" FILE_OF("a", "") "]",
        "[" FILE_OF("a", ",\"size\":-1") "]",
        "[" FILE_OF("a", ",\"size\":1.5") "]",
        "[" FILE_OF("a", ",\"size\":\"5\"") "]",
        "[" FILE_OF("a", ",\"size\":1125899906842625") "]",
        "[" FILE_OF("a", ",\"size\":99999999999999999999") "]",
        "[" FILE_OF("../a", ",\"size\":1") "]",
        "[" FILE_OF("/a", ",\"size\":1") "]",
        "[" FILE_OF("a\\u0000", ",\"size\":1") "]",
        "[" FILE_OF("a\\u001b", ",\"size\":1") "]",
        "[" FILE_OF("a\\\\b", ",\"size\":1") "]",
        "[" FILE_OF("", ",\"size\":1") "]",
        "[" FILE_OF("a", ",\"size\":1,\"lfs\":{}") "]",
        "[" FILE_OF("a", ",\"size\":1,\"lfs\":{\"oid\":\"..\"}") "]",
        "[{\"type\":\"file\",\"path\":[\"a\"],\"oid\":\"" OID "\",\"size\":1}]",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        hn_hub_repo r = { .arena = hn_arena_new() };
        hone_error err = { 0 };
        if (hn_hub_add_page(&r, good[i], strlen(good[i]), "o/r", &err) != HONE_OK)
            fail_msg("%s: %s", good[i], err.message);
        assert_int_equal(r.n, n[i]);
        if (i == 2) assert_string_equal(r.file[0].path, "a\xC3\xA4/b c");
        if (i == 4) assert_int_equal(r.file[0].size, 9);
        if (i == 4) assert_string_equal(r.oid[0], OID "012345678901234567890123");
        hn_hub_repo_free(&r);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_hub_repo r = { .arena = hn_arena_new() };
        hone_error err = { 0 };
        if (hn_hub_add_page(&r, bad[i], strlen(bad[i]), "o/r", &err) != HONE_E_NETWORK) fail_msg("%s: taken", bad[i]);
        assert_true(err.message[0]);
        hn_hub_repo_free(&r);
    }
    char *text = malloc(3000); /* a name without an end */
    assert_non_null(text);
    int k = snprintf(text, 3000, "[{\"type\":\"file\",\"oid\":\"" OID "\",\"size\":1,\"path\":\"%02000d\"}]", 0);
    hn_hub_repo r = { .arena = hn_arena_new() };
    hone_error err = { 0 };
    assert_int_equal(hn_hub_add_page(&r, text, (size_t)k, "o/r", &err), HONE_E_NETWORK);
    assert_non_null(strstr(err.message, "2000 bytes"));
    hn_hub_repo_free(&r);
    free(text);
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

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
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
    write_text(journal, "{}"); /* killed between its last two steps */
    write_text(part, "x");
    assert_int_equal(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, NULL), HONE_OK);
    assert_true(is_whole);
    hn_part_close(&p, false);
    assert_false(there(part) || there(journal));
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
    char other[100];
    struct stat sb;
    snprintf(other, sizeof other, "%s/other", dir);
    unlink(part);
    write_text(other, "mine");
    begin(&a, "e1");
    assert_int_equal(symlink(other, journal), 0);
    assert_int_equal(hn_part_put(&a, 0, "abc", 3), 0);
    assert_int_equal(hn_part_note(&a, &err), HONE_OK);
    assert_true(lstat(journal, &sb) == 0 && S_ISREG(sb.st_mode));
    assert_true(stat(other, &sb) == 0 && sb.st_size == 4);
    hn_part_close(&a, true);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_parse),
        cmocka_unit_test(test_url_join),
        cmocka_unit_test(test_url_allowed),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_head_waits),
        cmocka_unit_test(test_head_content),
        cmocka_unit_test(test_commit),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_sha1),
        cmocka_unit_test_setup_teardown(test_part_resumes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part_disbelieves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part_lock, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
