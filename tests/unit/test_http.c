/* The HTTP server over real sockets: clients that are right, wrong, slow and gone. The client, http_client.h, shares
 * nothing with the server. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http_site.h"

#include <fcntl.h>

/* ---- requests and answers -------------------------------------------------------------------- */

static void test_answers(void **state)
{
    const char *at = start((hn_http_params){ 0 });
    int fd = dial(at);
    const answer *a = ask(fd, "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 5\r\n\r\nhello");
    assert_int_equal(a->status, 200);
    assert_string_equal(a->body, "hello");
    assert_true(a->whole && !header(a, "connection") && !header(a, "server"));
    assert_string_equal(header(a, "content-type"), "application/octet-stream");
    assert_string_equal(header(a, "x-content-type-options"), "nosniff");
    int day, year, hour;
    assert_int_equal(sscanf(header(a, "date"), "%*3c, %2d %*3c %4d %2d:", &day, &year, &hour), 3);
    assert_true(year > 2000);
    /* the same connection: chunks, then an answer without body, then a stream */
    a = ask(fd, "POST /echo HTTP/1.1\r\n" H JSON "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert_string_equal(a->body, "abcde");
    a = ask(fd, "HEAD /health HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(a->status, 200);
    assert_string_equal(header(a, "content-length"), "15");
    a = ask(fd, "HEAD /stream?n=3 HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(a->status, 200);
    a = ask(fd, "GET /stream?n=3 HTTP/1.1\r\n" H "\r\n");
    assert_true(a->whole);
    assert_string_equal(a->body, "data: 0\n\ndata: 1\n\ndata: 2\n\n");
    assert_string_equal(header(a, "cache-control"), "no-cache");
    a = ask(fd, "GET /health HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    assert_string_equal(header(a, "connection"), "close");
    assert_true(is_closed(fd, PATIENCE_MS));
    close(fd);
    /* HTTP/1.0: no Host, closes, unless asked not to; a stream ends by closing */
    fd = dial(at);
    a = ask(fd, "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_string_equal(header(a, "connection"), "keep-alive");
    a = ask(fd, "GET /stream?n=2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_null(header(a, "transfer-encoding"));
    assert_string_equal(a->body, "data: 0\n\ndata: 1\n\n");
    close(fd);
    a = ask_once(at, "GET /health HTTP/1.0\r\n\r\n");
    assert_string_equal(header(a, "connection"), "close");
    /* broken off: no last chunk */
    a = ask_once(at, "GET /broken HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(a->body, "half");
    assert_false(a->whole);
    /* a value with a line end is no header */
    a = ask_once(at, "GET /inject HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(header(a, "x-good"), "fine");
    assert_true(!header(a, "x-bad") && !header(a, "x-evil"));
    /* an error of the handler's, worded here */
    a = ask_once(at, "POST /full HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(a->status, 429);
    assert_string_equal(a->body, "{\"error\":{\"message\":\"say \\\"later\\\"\\u000a\",\"type\":\"rate_limit_error\","
                                 "\"param\":null,\"code\":\"queue_full\"}}");
    stop();
}

static char *worded(const char *path, const char *id, int status, const char *type, const char *code,
                    const char *message)
{
    char *text = malloc(512);
    snprintf(text, 512, "%s|%d|%s|%s|%d", path, status, type, code, *id && *message);
    return text;
}
static void word_errors(void *arg) { hn_http_set_error_fn(now.h, worded); }

/* Whoever words errors is told the path as soon as it is known. */
static void test_words(void **state)
{
    static const struct {
        const char *bytes, *body;
    } rows[] = {
        { "GET /nowhere HTTP/1.1\r\n" H "\r\n", "/nowhere|404|not_found_error|unknown_path|1" },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "/health|403|permission_error|bad_host|1" },
        { "nonsense\r\n", "|400|invalid_request_error|bad_request_line|1" },
        { "GET /../a HTTP/1.1\r\n", "|400|invalid_request_error|bad_target|1" },
        { "GET /a?b HTTP/1.1\r\nA : b\r\n", "/a|400|invalid_request_error|bad_header|1" },
        { "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 99999999999\r\n\r\n",
          "/echo|413|invalid_request_error|body_too_large|1" },
        { "POST /echo HTTP/1.1\r\n" H JSON "Transfer-Encoding: chunked\r\n\r\n1\r\nab",
          "/echo|400|invalid_request_error|bad_chunk|1" },
        { "POST /full HTTP/1.1\r\n" H "\r\n", "/full|429|rate_limit_error|queue_full|1" },
    };
    const char *at = start((hn_http_params){ 0 });
    assert_true(hn_http_post(now.h, word_errors, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(ask_once(at, rows[i].bytes)->body, rows[i].body);
    stop();
}

/* One at a time and in order, also where each waits; more than the rounds a connection has in a row. */
static void test_pipeline(void **state)
{
    const char *at = start((hn_http_params){ 0 });
    char all[64 * 100];
    size_t n = 0;
    answer *a = malloc(sizeof *a);
    for (int i = 0; i < 64; i++)
        n += (size_t)sprintf(all + n, "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 2\r\n\r\n%02d", i);
    int fd = dial(at);
    put_n(fd, all, n);
    for (int i = 0; i < 64; i++) {
        char want[16];
        sprintf(want, "%02d", i);
        read_answer(fd, a, false);
        assert_string_equal(a->body, want);
    }
    int seen = now.n_seen;
    put(fd, "POST /slow HTTP/1.1\r\n" H "\r\nPOST /slow HTTP/1.1\r\n" H "\r\nGET /health HTTP/1.1\r\n" H "\r\n");
    for (int i = 1; i <= 2; i++) {
        await(&now.n_held, 1);
        assert_int_equal(now.n_seen, seen + i);
        assert_true(hn_http_post(now.h, release_all, NULL));
        read_answer(fd, a, false);
        assert_string_equal(a->body, "slow");
    }
    read_answer(fd, a, false);
    assert_string_equal(a->body, "{\"status\":\"ok\"}");
    close(fd);
    stop();
    free(a);
}

static void test_expect(void **state)
{
    const char *at = start((hn_http_params){ .max_body = 100 });
    int fd = dial(at);
    const answer *a = ask(fd, "POST /echo HTTP/1.1\r\n" H JSON "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_int_equal(a->status, 100);
    a = ask(fd, "abc");
    assert_int_equal(a->status, 200);
    assert_string_equal(a->body, "abc");
    close(fd);
    /* what will not be taken is refused before it is sent */
    a = ask_once(at, "POST /echo HTTP/1.1\r\n" H JSON "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n");
    assert_int_equal(a->status, 413);
    a = ask_once(at, "POST /nowhere HTTP/1.1\r\n" H JSON "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_int_equal(a->status, 404);
    stop();
}

static void test_refusals(void **state)
{
    static const struct {
        const char *bytes;
        int status;
        const char *code, *header, *value;
    } rows[] = {
        { "GET /nowhere HTTP/1.1\r\n" H "\r\n", 404, "unknown_path", NULL, NULL },
        { "GET /echo HTTP/1.1\r\n" H "\r\n", 405, "method_not_allowed", "allow", "POST, OPTIONS" },
        { "POST /health HTTP/1.1\r\n" H "\r\n", 405, "method_not_allowed", "allow", "GET, HEAD, OPTIONS" },
        { "BREW /both HTTP/1.1\r\n" H "\r\n", 405, "method_not_allowed", "allow", "GET, POST, HEAD, OPTIONS" },
        { "HEAD /echo HTTP/1.1\r\n" H "\r\n", 405, NULL, "allow", "POST, OPTIONS" },
        { "OPTIONS /both HTTP/1.1\r\n" H "\r\n", 204, NULL, "allow", "GET, POST, HEAD, OPTIONS" },
        { "OPTIONS * HTTP/1.1\r\n" H "\r\n", 204, NULL, "allow", "GET, POST, HEAD, OPTIONS" },
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n1", 415,
          "unsupported_media_type", "connection", "close" },
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: application/jsonx\r\nContent-Length: 1\r\n\r\n1", 415,
          "unsupported_media_type", NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H JSON "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\n1", 415,
          "unsupported_media_type", NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 1\r\n\r\n1",
          200, NULL, NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\n1", 200, NULL, NULL, NULL }, /* no browser */
        { "POST /echo HTTP/1.1\r\n" H "Sec-Fetch-Site: none\r\nContent-Length: 1\r\n\r\n1", 415,
          "unsupported_media_type", NULL, NULL },
        /* curl -d without a header, as ollama's documentation has it everywhere; but no page's form */
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: application/x-www-form-urlencoded\r\n"
          "Content-Length: 1\r\n\r\n1",
          200, NULL, NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: application/x-www-form-urlencoded\r\n"
          "Sec-Fetch-Mode: navigate\r\nContent-Length: 1\r\n\r\n1",
          415, "unsupported_media_type", NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H "Content-Type: application/x-www-form-urlencoded\r\n"
          "Origin: http://localhost\r\nContent-Length: 1\r\n\r\n1",
          415, "unsupported_media_type", NULL, NULL },
        { "POST /echo HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
          "bad_length", "connection", "close" },
        { "GET /../../etc/passwd HTTP/1.1\r\n" H "\r\n", 400, "bad_target", "connection", "close" },
        { "GET /health HTTP/1.1\n" H "\n", 400, "bad_line", "connection", "close" },
        { "GET /health HTTP/2.0\r\n" H "\r\n", 505, "bad_version", "connection", "close" },
        { "POST /echo HTTP/1.1\r\n" H JSON "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "bad_chunk", "connection",
          "close" },
        { "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 99999999\r\n\r\n", 413, "body_too_large", "connection",
          "close" },
    };
    const char *at = start((hn_http_params){ 0 });
    int n_handled = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = dial(at);
        const answer *a = ask(fd, rows[i].bytes);
        if (a->status != rows[i].status) fail_msg("%s\nis %d, want %d", rows[i].bytes, a->status, rows[i].status);
        if (rows[i].code) assert_non_null(strstr(a->body, rows[i].code));
        if (rows[i].header) assert_string_equal(header(a, rows[i].header), rows[i].value);
        assert_non_null(header(a, "x-request-id"));
        bool closes = header(a, "connection") && strcmp(header(a, "connection"), "close") == 0;
        if (closes) assert_true(is_closed(fd, PATIENCE_MS));
        else assert_int_equal(ask(fd, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
        n_handled += (rows[i].status == 200) + !closes;
        close(fd);
    }
    assert_int_equal(now.n_seen, n_handled); /* a handler sees none of the refused */
    stop();
}

static void test_ids(void **state)
{
    const char *at = start((hn_http_params){ 0 });
    char first[64], method[16], id[80], again[80], client[32], same[32];
    const answer *a = ask_once(at, "GET /who HTTP/1.1\r\n" H "X-Request-Id: my.ID_1-x\r\n\r\n");
    assert_string_equal(header(a, "x-request-id"), "my.ID_1-x");
    assert_int_equal(sscanf(a->body, "%15s %79s %31s", method, id, client), 3);
    assert_string_equal(method, "GET");
    assert_string_equal(id, "my.ID_1-x");
    a = ask_once(at, "HEAD /who HTTP/1.1\r\n" H "X-Request-Id: not good\r\n\r\n");
    snprintf(first, sizeof first, "%s", header(a, "x-request-id"));
    assert_int_equal(strspn(first, "0123456789abcdef"), 32);
    assert_int_equal(strlen(first), 32);
    a = ask_once(at, "GET /who HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(sscanf(a->body, "%15s %79s %31s", method, again, same), 3);
    assert_string_equal(again, header(a, "x-request-id"));
    assert_string_not_equal(again, first);
    assert_string_equal(client, same); /* one address, one client */
    char long_id[256];
    sprintf(long_id, "GET /who HTTP/1.1\r\n" H "X-Request-Id: %065d\r\n\r\n", 0);
    assert_int_equal(strlen(header(ask_once(at, long_id), "x-request-id")), 32);
    stop();
}

/* ---- clients that leave ---------------------------------------------------------------------- */

static void test_gone(void **state)
{
    const char *at = start((hn_http_params){ 0 });
    static const char slow[] = "POST /slow HTTP/1.1\r\n" H "\r\n";
    int fd = dial(at);
    put(fd, slow);
    await(&now.n_held, 1);
    close(fd);
    await(&now.n_gone, 1);
    /* one way only counts as gone in HTTP/1.1 … */
    fd = dial(at);
    put(fd, slow);
    await(&now.n_held, 1);
    shutdown(fd, SHUT_WR);
    await(&now.n_gone, 2);
    assert_true(is_closed(fd, PATIENCE_MS));
    close(fd);
    /* … and not in HTTP/1.0 */
    fd = dial(at);
    put(fd, "POST /slow HTTP/1.0\r\n\r\n");
    shutdown(fd, SHUT_WR);
    await(&now.n_held, 1);
    for (int i = 0; i < 20; i++) nap();
    assert_int_equal(now.n_gone, 2);
    assert_true(hn_http_post(now.h, release_all, NULL));
    answer *a = malloc(sizeof *a);
    read_answer(fd, a, false);
    assert_string_equal(a->body, "slow");
    close(fd);
    /* a whole request and the end in one: it is answered */
    fd = dial(at);
    put(fd, "GET /health HTTP/1.1\r\n" H "\r\n");
    shutdown(fd, SHUT_WR);
    read_answer(fd, a, false);
    assert_int_equal(a->status, 200);
    close(fd);
    /* reset instead of closed */
    fd = dial(at);
    put(fd, slow);
    await(&now.n_held, 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    close(fd);
    await(&now.n_gone, 3);
    /* behind more bytes than are read ahead */
    static char ahead[100 << 10];
    memset(ahead, 'x', sizeof ahead);
    fd = dial(at);
    put(fd, slow);
    await(&now.n_held, 1);
    put_n(fd, ahead, sizeof ahead);
    for (int i = 0; i < 20; i++) nap();
    assert_int_equal(now.n_gone, 3);
    close(fd);
    await(&now.n_gone, 4);
    /* in the midst of a request: no handler sees it */
    int seen = now.n_seen;
    fd = dial(at);
    put(fd, "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 10\r\n\r\nabc");
    close(fd);
    fd = dial(at);
    put(fd, "GET /hea");
    close(fd);
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    assert_int_equal(now.n_seen, seen + 1);
    free(a);
    stop();
}

/* A stream waits for its reader: little is kept meanwhile, nothing is lost; a reader that stops is given up. */
static void test_backlog(void **state)
{
    enum { ALL = 12 << 20 };
    const char *at = start((hn_http_params){ .write_ms = 300 });
    int fd = dial_room(at, 16 << 10);
    char text[100], buf[32 << 10];
    sprintf(text, "GET /flood?n=%d HTTP/1.0\r\n\r\n", ALL);
    put(fd, text);
    size_t n = 0;
    for (ssize_t k; (k = read(fd, buf, sizeof buf)) > 0;) {
        n += (size_t)k;
        if (n < 100000) nap(); /* slowly at first: the backlog fills up */
    }
    assert_true(n > ALL && n < ALL + 1000);
    await(&now.n_ended, 1);
    assert_true(now.most >= HN_HTTP_BACKLOG && now.most < HN_HTTP_BACKLOG + 20000);
    close(fd);
    fd = dial_room(at, 16 << 10);
    put(fd, text);
    await(&now.n_gone, 1);
    close(fd);
    /* the same of a whole answer: its connection does not stay for ever */
    fd = dial_room(at, 16 << 10);
    sprintf(text, "GET /big?n=%d HTTP/1.1\r\n" H "\r\n", ALL);
    put(fd, text);
    int64_t end = ms_now() + PATIENCE_MS;
    await(&now.n_seen, 3);
    while (hn_http_connections(now.h) && ms_now() < end) nap();
    assert_int_equal(hn_http_connections(now.h), 0);
    close(fd);
    stop();
}

/* One frame of a stream, larger than what is to wait: who takes it steadily has as much time as for a whole answer. */
static void test_large_frame(void **state)
{
    enum { FRAME = 4 << 20 };
    const char *at = start((hn_http_params){ .write_ms = 200 });
    int fd = dial_room(at, 16 << 10);
    char text[100], buf[16 << 10];
    sprintf(text, "GET /frame?n=%d HTTP/1.0\r\n\r\n", FRAME);
    put(fd, text);
    size_t n = 0;
    int64_t begun = ms_now();
    for (ssize_t k; (k = read(fd, buf, sizeof buf)) > 0;) {
        n += (size_t)k;
        for (int i = 0; i < 6 && n < FRAME / 4 * 3; i++) nap();
    }
    if (n < FRAME) fail_msg("%zu bytes of %d came", n, (int)FRAME);
    assert_true(ms_now() - begun > 1000);
    await(&now.n_ended, 1);
    close(fd);
    fd = dial_room(at, 16 << 10); /* who takes nothing of it is given up as ever */
    put(fd, text);
    await(&now.n_gone, 1);
    close(fd);
    stop();
}

/* Writes until nothing is taken for that long, or all of n; how much. */
static size_t push(int fd, size_t n, int patience_ms)
{
    static const char some[100000];
    struct pollfd p = { fd, POLLOUT, 0 };
    size_t done = 0;
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    while (done < n && poll(&p, 1, patience_ms) == 1) {
        ssize_t k = write(fd, some, sizeof some < n - done ? sizeof some : n - done);
        if (k <= 0) break;
        done += (size_t)k;
    }
    return done;
}

/* What a client sends beyond its request waits with it; what it sends of one that was refused is taken and dropped, so
 * that it comes to read why. */
static void test_ahead(void **state)
{
    enum { MUCH = 64 << 20, BODY = 8 << 20 };
    const char *at = start((hn_http_params){ 0 });
    int fd = dial(at);
    put(fd, "POST /slow HTTP/1.1\r\n" H "\r\n");
    await(&now.n_held, 1);
    assert_true(push(fd, MUCH, 100) < MUCH);
    /* an orderly end would wait behind those bytes, in the client's own system */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    close(fd);
    await(&now.n_gone, 1);
    char head[200];
    fd = dial(at);
    sprintf(head, "POST /nowhere HTTP/1.1\r\n" H JSON "Content-Length: %d\r\n\r\n", BODY);
    put(fd, head);
    assert_int_equal(push(fd, BODY, PATIENCE_MS), BODY);
    assert_int_equal(ask(fd, "")->status, 404);
    assert_true(is_closed(fd, PATIENCE_MS));
    close(fd);
    stop();
}

/* Ten thousand requests at once whose answers nobody reads: they are answered as far as there is room, and no further.
 * */
static void test_unread(void **state)
{
    enum { MANY = 10000, EACH = 20000 };
    const char *at = start((hn_http_params){ .write_ms = 300 });
    int fd = dial_room(at, 16 << 10);
    char one[100];
    size_t n = (size_t)sprintf(one, "GET /big?n=%d HTTP/1.1\r\n" H "\r\n", EACH);
    static char all[MANY * 100];
    for (int i = 0; i < MANY; i++) memcpy(all + (size_t)i * n, one, n);
    int flags = fcntl(fd, F_GETFL);
    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    put_n(fd, all, MANY * n); /* as far as they go */
    int64_t end = ms_now() + PATIENCE_MS;
    while (hn_http_connections(now.h) == 0 && ms_now() < end) nap();
    while (hn_http_connections(now.h) && ms_now() < end) nap(); /* write_ms later it is lost */
    assert_int_equal(hn_http_connections(now.h), 0);
    assert_true(now.n_seen > 5 &&
                now.n_seen < 1000); /* 1000 answers are 20 MB: more than the system keeps of a socket */
    close(fd);
    stop();
}

/* ---- slow clients ---------------------------------------------------------------------------- */

/* A byte now and then does not prolong a deadline. */
static void dribble(int fd, const char *bytes, char more, int *status)
{
    struct pollfd p = { fd, POLLIN, 0 };
    answer *a = malloc(sizeof *a);
    put(fd, bytes);
    int i = 0;
    while (i < 500 && poll(&p, 1, 10) == 0) put_n(fd, &more, 1), i++;
    assert_true(i < 500); /* it ends by itself: 5 s are more than any deadline here */
    read_answer(fd, a, false);
    *status = a->status;
    free(a);
    assert_true(is_closed(fd, PATIENCE_MS));
    close(fd);
}

static void test_slow(void **state)
{
    const char *at = start((hn_http_params){ .header_ms = 100, .body_ms = 150, .idle_ms = 200, .write_ms = 1000 });
    int status;
    dribble(dial(at), "GET /health HTTP/1.1\r\nX: ", 'a', &status);
    assert_int_equal(status, 408);
    dribble(dial(at), "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 5000\r\n\r\n", 'a', &status);
    assert_int_equal(status, 408);
    dribble(dial(at), "POST /echo HTTP/1.1\r\n" H JSON "Transfer-Encoding: chunked\r\n\r\n1;", 'a', &status);
    assert_int_equal(status, 408);
    /* nothing at all: closed without a word, also after an answer; later than the headers' deadline then */
    int fd = dial(at);
    assert_true(is_closed(fd, PATIENCE_MS));
    close(fd);
    fd = dial(at);
    int64_t from = ms_now();
    ask(fd, "GET /health HTTP/1.1\r\n" H "\r\n");
    char c;
    assert_int_equal(get_byte(fd, &c, PATIENCE_MS), 0);
    assert_true(ms_now() - from >= 190);
    close(fd);
    /* a handler may take its time */
    fd = dial(at);
    put(fd, "POST /slow HTTP/1.1\r\n" H "\r\n");
    await(&now.n_held, 1);
    assert_int_equal(get_byte(fd, &c, 400), -1);
    assert_true(hn_http_post(now.h, release_all, NULL));
    assert_int_equal(get_byte(fd, &c, PATIENCE_MS), 1);
    close(fd);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_words),   cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_unread),      cmocka_unit_test(test_ahead),   cmocka_unit_test(test_expect),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_ids),     cmocka_unit_test(test_gone),
        cmocka_unit_test(test_large_frame), cmocka_unit_test(test_backlog), cmocka_unit_test(test_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
