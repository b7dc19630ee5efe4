/* Fuzzes HTTP. The first byte chooses: the parser alone, whose answer must not depend on where the bytes are cut, and
 * whose requests keep what http_parse.h promises; or a whole server behind a pair of sockets, of whose answers every
 * one must be framed. Bytes 1 to 3: where the input is cut. The rest is what the client sends. Other bits of the
 * first: the clock jumps before the last piece, quiet connections are closed, errors are worded otherwise. Paths: /s
 * streams the body, /q tells what was asked, /e refuses, /w answers when the client is done, /b has more to say than
 * is taken.
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

enum { WAITING = 64 };
static hn_exchange *waiting[WAITING];
static size_t n_waiting;

/* Whoever waits for an answer gets it, unless its client is gone. */
static void answer_all(void)
{
    for (size_t i = 0; i < n_waiting; i++) {
        hn_exchange *x = waiting[i];
        if (x) hn_exchange_reply(x, 200, "text/plain", "late", 4);
    }
    n_waiting = 0;
}

static void gone(void *at)
{
    hn_exchange **place = at, *x = *place;
    *place = NULL;
    FF_MUST(!hn_exchange_send(x, "x", 1) && hn_exchange_backlog(x) == 0);
    hn_exchange_end(x, false);
}

static void wait_for_it(hn_exchange *x)
{
    if (n_waiting == WAITING) {
        hn_exchange_refuse(x, 503, "busy", "busy");
        return;
    }
    waiting[n_waiting] = x;
    hn_exchange_on_gone(x, gone, &waiting[n_waiting++]);
}

static void no_more(void *arg) { hn_exchange_end(arg, true); }
static bool cut_off; /* an answer that has begun does not come whole */
static void left(void *arg)
{
    cut_off = true;
    hn_exchange_end(arg, false);
}

/* More than a client here takes at once; the rest ends where there is room again. */
static void say_much(hn_exchange *x)
{
    static const char much[1 << 16];
    hn_exchange_begin(x, 200, "text/plain");
    bool more = true;
    for (int i = 0; more && i < 40 && hn_exchange_backlog(x) < HN_HTTP_BACKLOG; i++)
        more = hn_exchange_send(x, much, sizeof much);
    if (hn_exchange_backlog(x) < HN_HTTP_BACKLOG) {
        hn_exchange_end(x, true);
        return;
    }
    hn_exchange_on_gone(x, left, x);
    hn_exchange_on_room(x, no_more, x);
}

static void tell(hn_exchange *x)
{
    char said[400];
    const char *asked, *header = hn_exchange_header(x, "a");
    FF_MUST(*hn_exchange_id(x) && strlen(hn_exchange_id(x)) <= 64 && hn_exchange_client(x));
    bool there = hn_exchange_query(x, "b", &asked);
    FF_MUST(there == (asked != NULL));
    snprintf(said, sizeof said, "%s %.100s %.100s", hn_exchange_method(x), there ? asked : "-", header ? header : "-");
    hn_exchange_set_header(x, "x-said", header ? header : "none");
    hn_exchange_reply(x, 200, "text/plain", said, strlen(said));
}

static void refuse(hn_exchange *x)
{
    static const int status[] = { 400, 401, 403, 404, 405, 408, 409, 413, 415,
                                  417, 422, 429, 500, 501, 503, 504, 505, 599 };
    const char *n;
    size_t which = hn_exchange_query(x, "n", &n) ? strtoul(n, NULL, 10) : 0;
    hn_exchange_refuse(x, status[which % (sizeof status / sizeof *status)], "code", "a \"message\"\\\n");
}

static void handle(void *arg, hn_exchange *x)
{
    hone_str body = hn_exchange_body(x);
    const char *path = hn_exchange_path(x);
    if (strcmp(path, "/s") == 0) {
        hn_exchange_begin(x, 200, "text/plain");
        hn_exchange_send(x, body.ptr, body.len);
        hn_exchange_end(x, true);
    } else if (strcmp(path, "/q") == 0) tell(x);
    else if (strcmp(path, "/e") == 0) refuse(x);
    else if (strcmp(path, "/w") == 0) wait_for_it(x);
    else if (strcmp(path, "/b") == 0) say_much(x);
    else hn_exchange_reply(x, strcmp(path, "/n") ? 200 : 204, "text/plain", body.ptr, body.len);
}

static char *worded(const char *path, const char *id, int status, const char *type, const char *code,
                    const char *message)
{
    FF_MUST(path && id && *type && *code && *message && status >= 400);
    return strdup("{\"error\":1}");
}

/* As if much time had passed. */
static void grow_old(hn_conn *c)
{
    cut_off |= hn_conn_backlog(c) > 0;
    c->since -= 1000000;
    c->taken -= 1000000;
    c->limit -= 1000000;
    if (c->full_since) c->full_since -= 1000000;
}

static void later(hn_http *h)
{
    hn_conn_each(h, hn_conn_tick);
    hn_conn_each(h, grow_old);
    hn_conn_each(h, hn_conn_tick);
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

/* What the client can read now. False: more than there is room for, the rest is dropped. */
static bool take(int fd, char out[OUT], size_t *got)
{
    static char rest[OUT];
    if (*got == OUT) {
        (void)!read(fd, rest, OUT);
        return false;
    }
    ssize_t m = read(fd, out + *got, OUT - *got);
    if (m > 0) *got += (size_t)m;
    return *got < OUT;
}

static void the_server(hn_http *h, const char *bytes, size_t n, const size_t *cut, unsigned how)
{
    static const unsigned char address[16];
    static char out[OUT];
    int fd[2];
    bool fits = true;
    bool heads = memmem(bytes, n, "HEAD", 4); /* whose answers have a length and no body */
    FF_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    FF_MUST(evutil_make_socket_nonblocking(fd[0]) == 0 && evutil_make_socket_nonblocking(fd[1]) == 0);
    cut_off = false;
    hn_http_set_error_fn(h, how & 16 ? worded : NULL);
    hn_conn_open(h, fd[0], address, !(how & 64), how & 32); /* of this machine? one too many? */
    size_t at = 0, got = 0;
    for (size_t k = 0; k <= 3; k++) {
        size_t end = k < 3 ? cut[k] : n;
        if (end > at) {
            ssize_t put = write(fd[1], bytes + at, end - at); /* fits, or the server has closed */
            FF_MUST(put < 0 || (size_t)put == end - at);
            at = end;
        }
        if (k == 2 && how & 4) later(h);
        if (k == 1 && how & 8) hn_conn_each(h, hn_conn_drain);
        if (k == 3) {
            if (how & 128) answer_all();
            shutdown(fd[1], SHUT_WR);
        }
        for (size_t was = got + 1;
             fits && (got != was || event_base_get_num_events(h->base, EVENT_BASE_COUNT_ACTIVE));) {
            was = got;
            event_base_loop(h->base, EVLOOP_NONBLOCK);
            fits = take(fd[1], out, &got);
        }
    }
    answer_all();
    if (!fits && how & 4) later(h);             /* takes nothing for long, and is lost */
    for (int i = 0; h->conns && i < 100; i++) { /* what is still to be done comes with the next rounds */
        fits &= take(fd[1], out, &got);
        event_base_loop(h->base, EVLOOP_NONBLOCK);
    }
    FF_MUST(!h->conns && !h->exchanges && !h->body_bytes); /* a client that left leaves nothing */
    close(fd[1]);
    for (size_t o = 0, k; fits && !cut_off && o < got && !heads; o += k) {
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
    if (data[0] & 1) the_server(server(data[0] & 2), (const char *)data + 4, n, cut, data[0]);
    else the_parser((const char *)data + 4, n, cut);
    return 0;
}
