/* The parser of HTTP: good requests are read, bad ones are refused with their status, wherever the bytes are cut. The
 * vectors are written from RFC 9112 and from what is known of request smuggling, not from the parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http_trace.h"

enum { OUT = 128 << 10, MAX_BODY = 1000 };

#define H "Host: x\r\n"

static const struct {
    const char *bytes, *want;
} vectors[] = {
    /* ---- plain ---- */
    { "GET / HTTP/1.1\r\n" H "\r\n", "GET / 1.1 keep\n" },
    { "GET / HTTP/1.0\r\n\r\n", "GET / 1.0\n" },
    { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / connection:Keep-Alive 1.0 keep\n" },
    { "GET / HTTP/1.1\r\n" H "Connection: foo, Close\r\n\r\n", "GET / connection:foo, Close 1.1\n" },
    { "GET / HTTP/1.1\r\n" H "Connection: a\r\nConnection: close\r\n\r\n",
      "GET / connection:a connection:close 1.1\n" },
    { "GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", "GET / connection:closed 1.1 keep\n" },
    { "\r\nGET / HTTP/1.1\r\n" H "\r\n", "GET / 1.1 keep\n" },
    { "\r\n", "" },
    { "", "" },
    { "G", "more\n" },
    { "POST /v1 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", "POST /v1 content-length:5 1.1 keep <hello>\n" },
    { "POST /v1 HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "POST /v1 content-length:0 1.1 keep\n" },
    { "POST /v1 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhell", "more\n" },
    { "GET / HTTP/1.1\r\n" H "X-A:b\r\nX-B: \t c d \t\r\nX-C:\r\n\r\n", "GET / x-a:b x-b:c d x-c: 1.1 keep\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: \xC3\xA4\r\n\r\n", "GET / x-a:\xC3\xA4 1.1 keep\n" },
    { "GET / HTTP/1.1\r\nHOST: a.b:80\r\n\r\n", "GET / 1.1 keep\n" },
    { "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET / 1.1 keep\n" },
    /* ---- one after the other ---- */
    { "GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n", "GET /a 1.1 keep\nGET /b 1.1 keep\n" },
    { "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n" H "\r\n",
      "POST /a content-length:3 1.1 keep <abc>\nGET /b 1.1 keep\n" },
    { "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n",
      "POST /a transfer-encoding:chunked 1.1 keep <abc>\nGET /b 1.1 keep\n" },
    { "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc\r\nGET /b HTTP/1.1\r\n" H "\r\n",
      "POST /a content-length:3 1.1 keep <abc>\nGET /b 1.1 keep\n" },
    /* ---- chunks ---- */
    { "POST / HTTP/1.1\r\n" H
      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n00A\r\n0123456789\r\n0\r\n\r\n",
      "POST / transfer-encoding:chunked 1.1 keep <hello!0123456789>\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / transfer-encoding:chunked 1.1 keep\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\nContent-Type: a\r\n\r\n",
      "POST / transfer-encoding:chunked 1.1 keep <a>\n" },
    { "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\na",
      "POST / expect:100-Continue content-length:1 1.1 keep expects <a>\n" },
    { "GET / HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n", "GET / expect:100-continue 1.1 keep\n" },
    /* ---- targets ---- */
    { "GET /a%20b?x=1&y=%C3%A4+z&&k HTTP/1.1\r\n" H "\r\n", "GET /a b ?x=1 ?y=\xC3\xA4 z ?k= 1.1 keep\n" },
    { "GET /?a=b=c&=d HTTP/1.1\r\n" H "\r\n", "GET / ?a=b=c ?=d 1.1 keep\n" },
    { "GET /v1/models/a%2Fb HTTP/1.1\r\n" H "\r\n", "GET /v1/models/a/b 1.1 keep\n" },
    { "GET /a%2525 HTTP/1.1\r\n" H "\r\n", "GET /a%25 1.1 keep\n" }, /* once */
    { "GET /...//..a/b.. HTTP/1.1\r\n" H "\r\n", "GET /...//..a/b.. 1.1 keep\n" },
    { "GET http://x/a?b HTTP/1.1\r\n" H "\r\n", "GET /a ?b= 1.1 keep\n" },
    { "GET HTTP://X HTTP/1.1\r\n" H "\r\n", "GET / 1.1 keep\n" },
    { "GET http://x?q=1 HTTP/1.1\r\n" H "\r\n", "GET / ?q=1 1.1 keep\n" },
    { "OPTIONS * HTTP/1.1\r\n" H "\r\n", "OPTIONS * 1.1 keep\n" },
    { "GET * HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET http://y/a HTTP/1.1\r\n" H "\r\n", "400 bad_host\n" },
    { "GET http://x@y/a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET http:///a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET ftp://x/a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "CONNECT x:80 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /../etc/passwd HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a/.. HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /./a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /%2e%2E/a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%2f..%2fb HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a\\b HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%5cb HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%00 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%0d%0ab HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%7f HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%2 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a%zz HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /%c3 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" }, /* half a character */
    { "GET /%c0%ae HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /?a=%00 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /?a=%0a HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /?%ff HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /\xC3\xA4 HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /a#b HTTP/1.1\r\n" H "\r\n", "400 bad_target\n" },
    { "GET /?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17&18&19&20&21&22&23&24&25&26&27&28&29&30&31&32&33 HTTP/1.1\r\n" H
      "\r\n",
      "400 bad_target\n" },
    /* ---- request lines ---- */
    { "GET  / HTTP/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET / HTTP/1.1 \r\n" H "\r\n", "400 bad_request_line\n" },
    { " GET / HTTP/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET\t/ HTTP/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET /\r\n\r\n", "400 bad_request_line\n" },
    { "GET / HTTP/1.1x\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET / http/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET / HTTP/1.\r\n" H "\r\n", "400 bad_request_line\n" },
    { "GET / HTTP/2.0\r\n" H "\r\n", "505 bad_version\n" },
    { "GET / HTTP/1.2\r\n" H "\r\n", "505 bad_version\n" },
    { "GET / HTTP/0.9\r\n" H "\r\n", "505 bad_version\n" },
    { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 bad_version\n" },
    { "GE(T / HTTP/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", "400 bad_request_line\n" },
    { "\x16\x03\x01\x02", "400 bad_line\n" }, /* TLS */
    { "GET / HTTP/1.1\n" H "\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r" H "\r\n", "400 bad_line\n" },
    { "\nGET / HTTP/1.1\r\n" H "\r\n", "400 bad_line\n" },
    /* ---- fields ---- */
    { "GET / HTTP/1.1\r\n" H "X-A: b\n\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: b\r\r\n\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r\n" H "\r\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: b\x01\r\n\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: b\x7F\r\n\r\n", "400 bad_line\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: b\r\n c\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "X-A: b\r\n\tc\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n X-A: b\r\n" H "\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "X-A : b\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "X-A\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H ": b\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "X\xC3\xA4: b\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400 bad_host\n" },
    { "GET / HTTP/1.1\r\n" H "Host: x\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: a\r\n\r\n", "400 bad_header\n" },
    { "GET / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n", "417 bad_expect\n" },
    /* ---- smuggling ---- */
    { "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400 bad_header\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400 bad_header\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\nhello", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 1001\r\n\r\n", "413 body_too_large\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\n", "413 body_too_large\n" },
    { "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999999999999999999\r\n\r\n",
      "413 body_too_large\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "400 bad_header\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", "400 bad_header\n" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\x0B"
      "chunked\r\n\r\n0\r\n\r\n",
      "400 bad_line\n" },
    { "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_length\n" },
/* ---- chunks ---- */
#define C "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
    { C "\r\n", "400 bad_chunk\n" },
    { C " 5\r\nhello\r\n", "400 bad_chunk\n" },
    { C "5 \r\nhello\r\n", "400 bad_chunk\n" },
    { C "+5\r\nhello\r\n", "400 bad_chunk\n" },
    { C "0x5\r\nhello\r\n", "400 bad_chunk\n" },
    { C "-1\r\n", "400 bad_chunk\n" },
    { C "g\r\n", "400 bad_chunk\n" },
    { C "000000001\r\na\r\n", "400 bad_chunk\n" },
    { C "FFFFFFFF\r\n", "413 body_too_large\n" },
    { C "3e9\r\n", "413 body_too_large\n" },
    { C "5\nhello\r\n", "400 bad_chunk\n" },
    { C "5\rhello\r\n", "400 bad_chunk\n" },
    { C "5\r\nhello!\r\n", "400 bad_chunk\n" },
    { C "5\r\nhello\n", "400 bad_chunk\n" },
    { C "5\r\nhello\r0", "400 bad_chunk\n" },
    { C "5;a\nb\r\n", "400 bad_chunk\n" },
    { C "5;a\x01\r\n", "400 bad_chunk\n" },
    { C "0\r\nX : 1\r\n\r\n", "400 bad_header\n" },
    { C "0\r\n X: 1\r\n\r\n", "400 bad_header\n" },
    { C "0\r\nContent-Length: 9\r\n\r\n", "400 bad_header\n" },
    { C "0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 bad_header\n" },
    { C "0\r\nHost: y\r\n\r\n", "400 bad_header\n" },
    { C "0\r\n\n", "400 bad_line\n" },
    { C "5\r\nhello\r\n", "more\n" },
};

static char got[OUT], other[OUT];

static void check(const char *bytes, size_t n, const char *want)
{
    trace(got, sizeof got, bytes, n, NULL, 0, MAX_BODY);
    if (strcmp(got, want) != 0) fail_msg("%.200s\nis   %s\nwant %s", bytes, got, want);
}

static void test_vectors(void **state)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check(vectors[i].bytes, strlen(vectors[i].bytes), vectors[i].want);
}

/* Two pieces at every place, and single bytes. */
static void test_every_cut(void **state)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        size_t n = strlen(vectors[i].bytes), all[1024];
        for (size_t cut = 0; cut <= n; cut++) {
            trace(other, sizeof other, vectors[i].bytes, n, &cut, 1, MAX_BODY);
            if (strcmp(other, vectors[i].want) != 0)
                fail_msg("%s\ncut at %zu is %s\nwant %s", vectors[i].bytes, cut, other, vectors[i].want);
        }
        assert_true(n < sizeof all / sizeof *all);
        for (size_t k = 0; k < n; k++) all[k] = k + 1;
        trace(other, sizeof other, vectors[i].bytes, n, all, n, MAX_BODY);
        assert_string_equal(other, vectors[i].want);
    }
}

/* A NUL anywhere in the head. */
static void test_nul(void **state)
{
    static const char good[] = "GET /a HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\r\n";
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char bytes[sizeof good];
        memcpy(bytes, good, sizeof good);
        bytes[i] = 0;
        check(bytes, sizeof good - 1, "400 bad_line\n");
    }
}

/* Each limit: what is just within is read, one more is not. */
static void test_limits(void **state)
{
    static char bytes[64 << 10];
    size_t n;
    hn_http_parser p;
    hn_http_event e;
    for (int more = 0; more < 2; more++) {
        /* "GET /aaa… HTTP/1.1" of 8 KiB */
        n = (size_t)sprintf(bytes, "GET /");
        while (n < HN_HTTP_MAX_LINE - 9u + (unsigned)more) bytes[n++] = 'a';
        n += (size_t)sprintf(bytes + n, " HTTP/1.1\r\n" H "\r\n");
        trace(got, sizeof got, bytes, n, NULL, 0, MAX_BODY);
        assert_true(more ? strcmp(got, "414 target_too_long\n") == 0 : strncmp(got, "GET /aaa", 8) == 0);
        /* 64 fields */
        n = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\n" H);
        for (int i = 1; i < HN_HTTP_MAX_FIELDS + more; i++) n += (size_t)sprintf(bytes + n, "a%d: b\r\n", i);
        n += (size_t)sprintf(bytes + n, "\r\n");
        trace(got, sizeof got, bytes, n, NULL, 0, MAX_BODY);
        assert_true(more ? strcmp(got, "431 too_many_headers\n") == 0 : strncmp(got, "GET / a1:b", 10) == 0);
        /* 16 KiB of fields, the empty line included */
        size_t first = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\n");
        n = first + (size_t)sprintf(bytes + first, H "a: ");
        while (n - first < HN_HTTP_MAX_HEAD - 4u + (unsigned)more) bytes[n++] = 'b';
        n += (size_t)sprintf(bytes + n, "\r\n\r\n");
        trace(got, sizeof got, bytes, n, NULL, 0, MAX_BODY);
        assert_true(more ? strcmp(got, "431 headers_too_large\n") == 0 : strncmp(got, "GET / a:bbb", 11) == 0);
        /* an extension of 256 bytes */
        n = (size_t)sprintf(bytes, C "1;");
        memset(bytes + n, 'x', HN_HTTP_MAX_EXTENSION + (size_t)more);
        n += HN_HTTP_MAX_EXTENSION + (size_t)more;
        n += (size_t)sprintf(bytes + n, "\r\na\r\n0\r\n\r\n");
        check(bytes, n, more ? "400 bad_chunk\n" : "POST / transfer-encoding:chunked 1.1 keep <a>\n");
        /* a body of MAX_BODY bytes, in chunks of 100 */
        n = (size_t)sprintf(bytes, C);
        for (int i = 0; i < MAX_BODY / 100; i++) n += (size_t)sprintf(bytes + n, "64\r\n%0100d\r\n", 0);
        n += (size_t)sprintf(bytes + n, "%s0\r\n\r\n", more ? "1\r\na\r\n" : "");
        trace(got, sizeof got, bytes, n, NULL, 0, MAX_BODY);
        assert_true(more ? strcmp(got, "413 body_too_large\n") == 0 : strncmp(got, "POST / ", 7) == 0);
    }
    /* all extensions of a body: 64 of 256 are read, then no more */
    n = (size_t)sprintf(bytes, C);
    for (int i = 0; i < 65; i++) n += (size_t)sprintf(bytes + n, "1;%0256d\r\na\r\n", 0);
    check(bytes, n, "400 bad_chunk\n");
    /* trailers count as fields, in number and in size */
    n = (size_t)sprintf(bytes, C "0\r\n");
    for (int i = 0; i < HN_HTTP_MAX_FIELDS; i++) n += (size_t)sprintf(bytes + n, "a: b\r\n");
    check(bytes, n, "431 too_many_headers\n");
    n = (size_t)sprintf(bytes, C "0\r\na: ");
    memset(bytes + n, 'b', HN_HTTP_MAX_HEAD);
    check(bytes, n + HN_HTTP_MAX_HEAD, "431 headers_too_large\n");
    /* a method without end is refused when its line is, not read for ever */
    memset(bytes, 'A', HN_HTTP_MAX_LINE + 1);
    check(bytes, HN_HTTP_MAX_LINE + 1, "414 target_too_long\n");
    /* what was taken for a body grows with what came, not with what was promised */
    hn_http_parser_init(&p, UINT32_MAX);
    n = (size_t)sprintf(bytes, "POST / HTTP/1.1\r\n" H "Content-Length: 4000000000\r\n\r\n");
    assert_int_equal(hn_http_parse(&p, bytes, n, &e), n);
    assert_int_equal(e, HN_HTTP_HEAD);
    assert_int_equal(hn_http_parse(&p, "a", 1, &e), 1);
    assert_true(p.r->cap_body <= 64 << 10);
    hn_http_parser_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
