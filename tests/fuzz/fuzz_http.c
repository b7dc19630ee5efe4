/* Fuzzes HTTP. The first byte chooses: the parser alone, whose answer must not depend on where the bytes are cut, and
 * whose requests keep what http_parse.h promises; or a whole server behind a pair of sockets, of whose answers every
 * one must be framed. Bytes 1 to 3: where the input is cut. The rest is what the client sends.
 * covers: src/serve/http_parse.c src/serve/http_conn.c src/serve/http_exchange.c src/serve/http_rules.c */
#define _GNU_SOURCE
#include "../unit/http_trace.h"
#include "base/utf8.h"
#include "must.h"
#include "serve/http_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT = 1 << 16, MAX_BODY = 300, MAX_INPUT = 12 << 10 };

/* ---- the parser ----------------------------------------------------------------------------- */

static void keeps_promises(const hn_http_request *r)
{
    const char *path = hn_http_path(r);
    FF_MUST(*path == '/' || strcmp(path, "*") == 0);
    FF_MUST(!strchr(path, '\\') && !strstr(path, "/../") && !strstr(path, "/./"));
    size_t n = strlen(path);
    FF_MUST(n < 3 || strcmp(path + n - 3, "/..") != 0);
    for (size_t i = 0, used; i < n; i += used) {
        int32_t c = hn_utf8_next((const unsigned char *)path + i, n - i, &used);
        FF_MUST(c >= 0x20 && c != 0x7F);
    }
    FF_MUST(r->n_field <= HN_HTTP_MAX_FIELDS && r->n_query <= HN_HTTP_MAX_QUERY && r->n_body <= MAX_BODY);
    FF_MUST(!(r->chunked && r->has_length) && (r->minor == 0 || hn_http_field(r, "host")));
    FF_MUST(!r->has_length || r->n_body == r->length);
    for (size_t i = 0; i < r->n_field; i++) {
        const char *name = r->head + r->field[i].name, *value = r->head + r->field[i].value;
        FF_MUST(*name && !strpbrk(name, " \t:\r\nABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strpbrk(value, "\r\n"));
    }
}

static void the_parser(const char *bytes, size_t n, const size_t *cut)
{
    static char whole[OUT], pieces[OUT];
    hn_http_parser p;
    hn_http_event e = HN_HTTP_MORE;
    hn_http_parser_init(&p, MAX_BODY);
    for (size_t at = 0, used = 1; e != HN_HTTP_BAD && (at < n || e != HN_HTTP_MORE); at += used) {
        used = hn_http_parse(&p, bytes + at, n - at, &e);
        FF_MUST(used <= n - at && (used > 0 || e != HN_HTTP_MORE || at == n));
        if (e == HN_HTTP_BAD) FF_MUST(p.status >= 400 && p.status < 600 && p.code && *p.message);
        if (e != HN_HTTP_WHOLE) continue;
        hn_http_request *r = hn_http_parser_take(&p);
        keeps_promises(r);
        hn_http_request_free(r);
        if (at + used == n) break;
    }
    hn_http_parser_clear(&p);
    trace(whole, sizeof whole, bytes, n, NULL, 0, MAX_BODY);
    trace(pieces, sizeof pieces, bytes, n, cut, 3, MAX_BODY);
    FF_MUST(strcmp(whole, pieces) == 0);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void handle(void *arg, hn_exchange *x)
{
    hone_str body = hn_exchange_body(x);
    const char *path = hn_exchange_path(x);
    if (strcmp(path, "/s") == 0) {
        hn_exchange_begin(x, 200, "text/plain");
        hn_exchange_send(x, body.ptr, body.len);
        hn_exchange_end(x, true);
    } else hn_exchange_reply(x, 200, "text/plain", body.ptr, body.len);
}

static const char *methods(void *arg, const char *path) { return strlen(path) > 8 ? NULL : "GET, POST"; }

/* The length of a whole answer in s[n); 0: it is not whole. */
static size_t answer_length(const char *s, size_t n)
{
    char *end = memmem(s, n, "\r\n\r\n", 4), *at;
    FF_MUST(n < 9 || memcmp(s, "HTTP/1.1 ", 9) == 0);
    if (!end) return 0;
    size_t head = (size_t)(end + 4 - s);
    int status = (int)strtol(s + 9, NULL, 10);
    if (status == 100) return head;
    FF_MUST(memmem(s, head, "\r\nx-request-id: ", 16) && memmem(s, head, "\r\ndate: ", 8));
    if (status == 204) return head;
    if ((at = memmem(s, head, "\r\ncontent-length: ", 18))) return head + strtoul(at + 18, NULL, 10);
    if (!memmem(s, head, "\r\ntransfer-encoding: chunked\r\n", 30)) return n; /* to the end: HTTP/1.0 */
    size_t o = head;
    for (;;) {
        char *line = memmem(s + o, n - o, "\r\n", 2);
        if (!line) return 0;
        size_t k = strtoul(s + o, NULL, 16);
        o = (size_t)(line + 2 - s) + k + 2;
        if (o > n) return 0;
        if (k == 0) return o;
    }
}

/* Two servers: one is open, the other asks for keys and lets a page in. */
static hn_http *server(bool keys)
{
    static hn_http *open[2];
    static const char *const origins[] = { "https://app.example" }, *const hosts[] = { "a.b" };
    hone_error err;
    hn_http_params p = { .handler = handle, .methods = methods, .max_body = MAX_BODY };
    if (keys) {
        p.api_key = "key";
        p.cors_origin = origins;
        p.allow_host = hosts;
        p.n_cors_origin = p.n_allow_host = 1;
    }
    if (!open[keys]) FF_MUST(hn_http_open(&open[keys], &p, &err) == HONE_OK);
    return open[keys];
}

static void the_server(hn_http *h, const char *bytes, size_t n, const size_t *cut)
{
    static const unsigned char address[16];
    static char out[OUT];
    int fd[2];
    bool heads = memmem(bytes, n, "HEAD", 4); /* whose answers have a length and no body */
    FF_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    FF_MUST(evutil_make_socket_nonblocking(fd[0]) == 0 && evutil_make_socket_nonblocking(fd[1]) == 0);
    hn_conn_open(h, fd[0], address, true, false);
    size_t at = 0, got = 0;
    for (size_t k = 0; k <= 3; k++) {
        size_t end = k < 3 ? cut[k] : n;
        if (end > at) {
            ssize_t put = write(fd[1], bytes + at, end - at); /* fits, or the server has closed */
            FF_MUST(put < 0 || (size_t)put == end - at);
            at = end;
        }
        if (k == 3) shutdown(fd[1], SHUT_WR);
        for (ssize_t m = 1; m > 0 || event_base_get_num_events(h->base, EVENT_BASE_COUNT_ACTIVE) > 0;) {
            event_base_loop(h->base, EVLOOP_NONBLOCK);
            m = read(fd[1], out + got, sizeof out - got);
            if (m > 0) got += (size_t)m;
        }
    }
    for (int i = 0; h->conns && i < 100; i++) { /* what is still to be done comes with the next rounds */
        event_base_loop(h->base, EVLOOP_NONBLOCK);
        ssize_t m = read(fd[1], out + got, sizeof out - got);
        if (m > 0) got += (size_t)m;
    }
    FF_MUST(!h->conns && !h->exchanges && !h->body_bytes); /* a client that left leaves nothing */
    close(fd[1]);
    for (size_t o = 0, k; o < got && !heads; o += k) {
        k = answer_length(out + o, got - o);
        FF_MUST(k > 0 && k <= got - o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    size_t n = size - 4 < MAX_INPUT ? size - 4 : MAX_INPUT, cut[3];
    for (int i = 0; i < 3; i++) cut[i] = n * data[1 + i] / 256;
    for (int i = 0; i < 2; i++) /* ascending */
        for (int k = 0; k < 2; k++)
            if (cut[k] > cut[k + 1]) {
                size_t c = cut[k];
                cut[k] = cut[k + 1];
                cut[k + 1] = c;
            }
    if (data[0] & 1) the_server(server(data[0] & 2), (const char *)data + 4, n, cut);
    else the_parser((const char *)data + 4, n, cut);
    return 0;
}
