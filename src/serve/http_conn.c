/* Connections: bytes between the socket, the parser and an exchange, one request at a time; deadlines; the end of a
 * client seen while its request is worked on. Refuses to know what is asked and who may. */
#include "serve/http_priv.h"

#include "base/os.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    INPUT = 64 << 10,      /* bytes of further requests that are read while one is answered */
    ROUNDS = 16,           /* requests in a row before other connections have their turn */
    FLUSH_BYTES_A_MS = 16, /* of a whole answer, or a large frame, a client takes 16 kB a second at least */
    LINGER_MS = 2000,
    DRAIN_MS = 1000, /* so long a connection that came just before the end may take to ask */
    BODY_MS_A_MIB = 1000
};

size_t hn_conn_backlog(const hn_conn *c) { return evbuffer_get_length(bufferevent_get_output(c->bev)); }

/* ---- life ---------------------------------------------------------------------------------- */

static void count_body(hn_conn *c, int64_t bytes)
{
    c->h->body_bytes += (uint64_t)(bytes - c->body_bytes);
    c->body_bytes = bytes;
}

static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg);

/* Frees a dead one that nobody up the stack has. */
static void release(hn_conn *c)
{
    hn_http *h = c->h;
    if (!c->dead || c->busy || h->walking) return;
    if (c->prev) c->prev->next = c->next;
    else h->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->over) h->n_over--;
    else h->n_conn--;
    count_body(c, 0);
    hn_http_parser_clear(&c->parser);
    if (c->resume) event_free(c->resume);
    evbuffer_remove_cb(bufferevent_get_output(c->bev), on_output, c);
    bufferevent_free(c->bev); /* and its socket */
    free(c);
    if (h->stopping && !h->conns) event_base_loopbreak(h->base);
}

void hn_conn_lose(hn_conn *c)
{
    hn_exchange *x = c->x;
    if (c->dead) return;
    c->dead = true;
    c->x = NULL;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bool busy = c->busy;
    c->busy = true; /* what x's end does must not free c */
    if (x) hn_exchange_lose(x);
    c->busy = busy;
    release(c);
}

void hn_conn_each(hn_http *h, void (*fn)(hn_conn *))
{
    bool walking = h->walking;
    h->walking = true;
    for (hn_conn *c = h->conns; c; c = c->next)
        if (!c->dead) fn(c);
    h->walking = walking;
    for (hn_conn *c = h->conns, *next; c; c = next) {
        next = c->next;
        release(c);
    }
}

/* All is sent. */
static void sent(hn_conn *c)
{
    if (c->unread && !c->eof && c->state == HN_CONN_FLUSH) {
        c->state = HN_CONN_LINGER;
        c->limit = hn_http_ms() + LINGER_MS;
        shutdown(bufferevent_getfd(c->bev), SHUT_WR);
        bufferevent_enable(c->bev, EV_READ);
        struct evbuffer *in = bufferevent_get_input(c->bev);
        evbuffer_drain(in, evbuffer_get_length(in));
    } else hn_conn_lose(c);
}

/* ms: so long a client may take to take n bytes. */
static int64_t time_to_take(const hn_conn *c, size_t n) { return c->h->p.write_ms + (int64_t)(n / FLUSH_BYTES_A_MS); }

void hn_conn_limit(hn_conn *c) { c->limit = hn_http_ms() + time_to_take(c, hn_conn_backlog(c)); }

void hn_conn_finish(hn_conn *c)
{
    if (c->dead || c->state != HN_CONN_OPEN) return;
    hn_exchange *x = c->x;
    c->x = NULL;
    if (x) hn_exchange_lose(x); /* the rest of its body will not come */
    c->state = HN_CONN_FLUSH;
    count_body(c, 0); /* nothing is read any more: what was makes room for others now, not when the client has left */
    hn_http_parser_clear(&c->parser);
    hn_conn_limit(c);
    c->unread = c->unread || evbuffer_get_length(bufferevent_get_input(c->bev)) > 0;
    if (c->broken) hn_conn_lose(c);
    else if (hn_conn_backlog(c) == 0) sent(c);
}

/* Bytes of a request are here already: to close upon them would be no answer. */
static bool has_bytes(const hn_conn *c)
{
    char b;
    return evbuffer_get_length(bufferevent_get_input(c->bev)) > 0 ||
           recv(bufferevent_getfd(c->bev), &b, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Nothing is asked, and nothing is about to be, as far as can be seen. */
static bool is_quiet(const hn_conn *c)
{
    if (c->x || hn_http_parser_busy(&c->parser) || has_bytes(c)) return false;
    return c->answered || hn_http_ms() - c->since > DRAIN_MS;
}

void hn_conn_drain(hn_conn *c)
{
    if (c->state == HN_CONN_OPEN && !c->busy && is_quiet(c)) hn_conn_finish(c);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* An answer to what is no request: a bad one, a slow one. */
static void refuse_unread(hn_conn *c, int status, const char *code, const char *message)
{
    hn_http_request *r = c->parser.r;
    hn_exchange *x = c->x ? c->x : hn_exchange_new(c, r && r->path ? r : NULL);
    if (!x) {
        hn_conn_lose(c);
        return;
    }
    c->x = x;
    c->unread = true;
    x->close = true;
    hn_http_tell(x, status);
    hn_exchange_refuse(x, status, code, message);
}

/* The head is there. */
static void begin_request(hn_conn *c)
{
    hn_http_request *r = c->parser.r;
    bool body = r->chunked || r->length > 0;
    hn_exchange *x = c->x = hn_exchange_new(c, r);
    c->since = hn_http_ms();
    c->again = true; /* the parser has something to say without further bytes */
    if (!x) {
        hn_conn_lose(c);
        return;
    }
    if (!hn_http_judge(x)) { /* answered: x is gone. Without a body the connection goes on, without the request */
        c->again = !body;
        return;
    }
    if (r->expects && evbuffer_get_length(bufferevent_get_input(c->bev)) == 0 &&
        bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25) != 0)
        hn_conn_lose(c);
}

static void hand_over(hn_conn *c)
{
    hn_http_request *r = hn_http_parser_take(&c->parser);
    hn_exchange *x = c->x;
    if (!x) { /* refused by its head */
        count_body(c, 0);
        hn_http_request_free(r);
        return;
    }
    x->body_bytes = (uint64_t)c->body_bytes; /* they go on being counted */
    c->body_bytes = 0;
    x->reading = false;
    x->handed = true;
    c->h->p.handler(c->h->p.arg, x);
}

/* One call of the parser; false: nothing more can be done now. */
static bool parse_some(hn_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct evbuffer_iovec piece = { .iov_base = "", .iov_len = 0 };
    hn_http_event event;
    if (evbuffer_peek(in, -1, NULL, &piece, 1) < 1 && !c->again) return false;
    bool was = hn_http_parser_busy(&c->parser);
    c->again = false;
    size_t used = hn_http_parse(&c->parser, piece.iov_base, piece.iov_len, &event);
    evbuffer_drain(in, used);
    /* of a first request the time runs since the connection came */
    if (!was && c->answered && hn_http_parser_busy(&c->parser)) c->since = hn_http_ms();
    if (c->parser.r) count_body(c, (int64_t)c->parser.r->cap_body);
    if (event == HN_HTTP_BAD) refuse_unread(c, c->parser.status, c->parser.code, c->parser.message);
    else if (c->h->body_bytes > 16 * c->h->p.max_body)
        refuse_unread(c, 503, "bodies_too_large", "too many large requests are being read or answered");
    else if (event == HN_HTTP_HEAD) begin_request(c);
    else if (event == HN_HTTP_WHOLE) hand_over(c);
    return true;
}

static bool reads(const hn_conn *c) { return !c->dead && c->state == HN_CONN_OPEN && (!c->x || c->x->reading); }

static void on_resume(evutil_socket_t fd, short what, void *arg);

/* Reading goes on with the loop's next round, or, where that cannot be asked for, now. */
static bool resume_later(hn_conn *c)
{
    static const struct timeval now = { 0, 0 };
    if (!c->resume) c->resume = event_new(c->h->base, -1, 0, on_resume, c);
    return c->resume && event_add(c->resume, &now) == 0;
}

/* As much is read ahead as INPUT says. */
static void hold_or_go_on(hn_conn *c);

void hn_conn_read(hn_conn *c)
{
    if (c->busy) return;
    c->busy = true;
    for (int round = 0; reads(c) && hn_conn_backlog(c) < HN_HTTP_BACKLOG; round++) {
        if (round >= ROUNDS && resume_later(c)) break;
        if (!parse_some(c)) break;
    }
    c->busy = false;
    if (c->dead) {
        release(c);
        return;
    }
    if (c->state != HN_CONN_OPEN) return;
    if ((c->h->draining && is_quiet(c)) || (c->eof && reads(c) && !evbuffer_get_length(bufferevent_get_input(c->bev))))
        hn_conn_finish(c);
    else hold_or_go_on(c);
}

/* ---- events -------------------------------------------------------------------------------- */

/* The client sends no more. With a request at work it counts as gone, as most clients that leave close both ways; of
 * HTTP/1.0 some close one way and read on. */
static void ended(hn_conn *c)
{
    c->eof = true;
    if (c->state == HN_CONN_LINGER || (c->x && c->x->handed && c->x->r->minor == 1)) hn_conn_lose(c);
    else if (c->state == HN_CONN_OPEN) hn_conn_read(c);
}

static void on_resume(evutil_socket_t fd, short what, void *arg) { hn_conn_read(arg); }

/* libevent's own high watermark is not for us: its callback is added without a look whether there was memory for it. */
static void hold_or_go_on(hn_conn *c)
{
    bool held = evbuffer_get_length(bufferevent_get_input(c->bev)) >= INPUT;
    if (held == c->held) return;
    c->held = held;
    if (held) bufferevent_disable(c->bev, EV_READ);
    else if (bufferevent_enable(c->bev, EV_READ) != 0) hn_conn_lose(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    hn_conn *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    if (c->state == HN_CONN_OPEN) hn_conn_read(c);
    else {
        c->unread = true;
        evbuffer_drain(in, evbuffer_get_length(in));
    }
}

/* The client took something, and little is left. */
static void on_write(struct bufferevent *bev, void *arg)
{
    hn_conn *c = arg;
    hn_exchange *x = c->x;
    bool none = hn_conn_backlog(c) == 0;
    if (x && x->full) {
        x->full = false;
        if (x->room) { /* which may end x, and c with it */
            x->room(x->room_arg);
            return;
        }
    }
    if (c->state == HN_CONN_FLUSH && none) sent(c);
    else if (c->state == HN_CONN_OPEN) {
        if (none && !x && !hn_http_parser_busy(&c->parser)) c->since = hn_http_ms(); /* the quiet begins now */
        hn_conn_read(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    hn_conn *c = arg;
    if (what & BEV_EVENT_ERROR) hn_conn_lose(c);
    else if (what & BEV_EVENT_EOF) ended(c);
}

/* Whenever bytes of answers come or go. */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
    hn_conn *c = arg;
    size_t n = evbuffer_get_length(out);
    int64_t now = hn_http_ms();
    if (info->n_deleted || !info->orig_size) c->taken = now;
    if (n < HN_HTTP_BACKLOG) {
        c->full_since = 0;
        c->full_most = 0;
        return;
    }
    if (!c->full_since) c->full_since = now;
    if (n > c->full_most) c->full_most = n;
}

/* ---- deadlines ----------------------------------------------------------------------------- */

/* Absolute ones: a byte now and then does not prolong them. */
void hn_conn_tick(hn_conn *c)
{
    const hn_http_params *p = &c->h->p;
    int64_t now = hn_http_ms(), quiet = now - c->since;
    bool waits = hn_conn_backlog(c) > 0;
    bool streams = c->x && c->x->begun;
    if (c->broken || (waits && now - c->taken > p->write_ms) ||
        (streams && c->full_since && now - c->full_since > time_to_take(c, c->full_most))) {
        hn_conn_lose(c);
        return;
    }
    if (c->state != HN_CONN_OPEN || (waits && !c->x)) {
        if (now > c->limit) hn_conn_lose(c);
        return;
    }
    if (!reads(c)) {
        /* while nothing is read the end of the sender is not seen. No event tells it: of a broken connection libevent
         * hears as "can be read", again and again */
        if (c->held && !c->eof && hn_os_peer_ended(bufferevent_getfd(c->bev))) ended(c);
        return;
    }
    const hn_http_request *r = c->parser.r;
    if (hn_http_parser_in_body(&c->parser)) {
        uint64_t n = r->length > r->n_body ? r->length : r->n_body;
        if (quiet > p->body_ms + (int64_t)(n >> 20) * BODY_MS_A_MIB)
            refuse_unread(c, 408, "body_too_slow", "the body did not come in time");
    } else if (hn_http_parser_busy(&c->parser)) {
        if (quiet > p->header_ms) refuse_unread(c, 408, "headers_too_slow", "the headers did not come in time");
    } else if (quiet > (c->answered ? p->idle_ms : p->header_ms)) hn_conn_finish(c);
    else if (c->h->draining) hn_conn_drain(c);
}

/* ---- the beginning ------------------------------------------------------------------------- */

void hn_conn_open(hn_http *h, int fd, const unsigned char address[16], bool local, bool over)
{
    hn_conn *c = calloc(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        free(c);
        close(fd);
        return;
    }
    int yes = 1; /* no such option of a UNIX socket: nothing lost */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    *c = (hn_conn){ .h = h, .next = h->conns, .bev = bev, .over = over, .local = local, .since = hn_http_ms() };
    memcpy(c->address, address, sizeof c->address);
    if (h->conns) h->conns->prev = c;
    h->conns = c;
    if (over) h->n_over++;
    else h->n_conn++;
    hn_http_parser_init(&c->parser, h->p.max_body);
    bufferevent_setcb(bev, on_read, on_write, on_event, c);
    bufferevent_setwatermark(bev, EV_WRITE, HN_HTTP_BACKLOG / 4 - 1, 0);
    if (!evbuffer_add_cb(bufferevent_get_output(bev), on_output, c) ||
        bufferevent_enable(bev, EV_READ | EV_WRITE) != 0 || !hn_http_ticks(h))
        hn_conn_lose(c);
    else if (over) refuse_unread(c, 503, "too_many_connections", "too many connections; try again soon");
}
