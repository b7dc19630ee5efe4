/* Exchanges: one request and its answer. Owns what an answer looks like on the wire and the ids of requests; refuses to
 * know when a connection reads and who may ask. */
#include "serve/http_priv.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

/* ---- life ---------------------------------------------------------------------------------- */

/* [A-Za-z0-9._-]{1,64} */
static bool id_ok(const char *id)
{
    size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n >= 1 && n <= 64 && !id[n];
}

/* 128 bits that nobody can guess: the digest of a secret and a counter. */
static void new_id(hn_http *h, char out[65])
{
    hn_sha256 s;
    unsigned char d[32];
    uint64_t k = h->n_id++;
    hn_sha256_init(&s);
    hn_sha256_add(&s, h->secret, sizeof h->secret);
    hn_sha256_add(&s, &k, sizeof k);
    hn_sha256_end(&s, d);
    hn_hex(out, d, 16);
}

hn_exchange *hn_exchange_new(hn_conn *c, hn_http_request *r)
{
    hn_http *h = c->h;
    hn_exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (hn_exchange){ .h = h, .c = c, .next = h->exchanges, .r = r, .reading = true };
    if (h->exchanges) h->exchanges->prev = x;
    h->exchanges = x;
    const char *id = r ? hn_http_field(r, "x-request-id") : NULL;
    if (id && id_ok(id)) snprintf(x->id, sizeof x->id, "%s", id);
    else new_id(h, x->id);
    x->head_only = r && strcmp(hn_http_method(r), "HEAD") == 0;
    x->client = hn_mix64(hn_fnv1a(HN_FNV_INIT, c->address, sizeof c->address)) | 1;
    return x;
}

void hn_exchange_free(hn_exchange *x)
{
    if (x->prev) x->prev->next = x->next;
    else x->h->exchanges = x->next;
    if (x->next) x->next->prev = x->prev;
    x->h->body_bytes -= x->body_bytes;
    if (!x->reading) hn_http_request_free(x->r); /* else the parser's */
    free(x->headers);
    free(x);
}

void hn_exchange_lose(hn_exchange *x)
{
    void (*gone)(void *) = x->gone;
    x->c = NULL;
    x->gone = NULL;
    if (!x->handed) hn_exchange_free(x);
    else if (gone) gone(x->gone_arg); /* which may end x */
}

void hn_exchange_on_gone(hn_exchange *x, void (*fn)(void *), void *arg)
{
    x->gone = fn;
    x->gone_arg = arg;
    if (!x->c) hn_exchange_lose(x);
}

void hn_exchange_on_room(hn_exchange *x, void (*fn)(void *), void *arg)
{
    x->room = fn;
    x->room_arg = arg;
}

/* ---- the request --------------------------------------------------------------------------- */

const char *hn_exchange_method(const hn_exchange *x) { return x->head_only ? "GET" : hn_http_method(x->r); }
const char *hn_exchange_path(const hn_exchange *x) { return hn_http_path(x->r); }
const char *hn_exchange_header(const hn_exchange *x, const char *name) { return hn_http_field(x->r, name); }
const char *hn_exchange_id(const hn_exchange *x) { return x->id; }
uint64_t hn_exchange_client(const hn_exchange *x) { return x->client; }

bool hn_exchange_query(const hn_exchange *x, const char *name, const char **value)
{
    *value = hn_http_query(x->r, name);
    return *value != NULL;
}

hone_str hn_exchange_body(const hn_exchange *x) { return (hone_str){ x->r->body ? x->r->body : "", x->r->n_body }; }

void hn_exchange_drop_body(hn_exchange *x)
{
    x->h->body_bytes -= x->body_bytes;
    x->body_bytes = 0;
    free(x->r->body);
    x->r->body = NULL;
    x->r->n_body = x->r->cap_body = 0;
}

/* ---- the answer's head --------------------------------------------------------------------- */

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } row[] = { { 200, "OK" },
                { 204, "No Content" },
                { 304, "Not Modified" },
                { 400, "Bad Request" },
                { 401, "Unauthorized" },
                { 403, "Forbidden" },
                { 404, "Not Found" },
                { 405, "Method Not Allowed" },
                { 408, "Request Timeout" },
                { 409, "Conflict" },
                { 413, "Content Too Large" },
                { 414, "URI Too Long" },
                { 415, "Unsupported Media Type" },
                { 417, "Expectation Failed" },
                { 422, "Unprocessable Content" },
                { 429, "Too Many Requests" },
                { 431, "Request Header Fields Too Large" },
                { 500, "Internal Server Error" },
                { 501, "Not Implemented" },
                { 503, "Service Unavailable" },
                { 504, "Gateway Timeout" },
                { 505, "HTTP Version Not Supported" } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].status == status) return row[i].text;
    return "Answer";
}

/* The time of now as HTTP writes it, whatever the locale; made once a second. */
static const char *date(hn_http *h)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm t;
    if (now == h->date_s && h->date[0]) return h->date;
    if (!gmtime_r(&now, &t)) return h->date;
    h->date_s = now;
    snprintf(h->date, sizeof h->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * (t.tm_wday % 7),
             (unsigned)t.tm_mday % 100, months + 3 * (t.tm_mon % 12), (unsigned)(t.tm_year + 1900) % 10000,
             (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
    return h->date;
}

void hn_exchange_set_header(hn_exchange *x, const char *name, const char *value)
{
    size_t n = strlen(name), m = strlen(value), need = x->n_headers + n + m + 4;
    for (size_t i = 0; i < m; i++) /* a line end would begin a header of the sender's choice */
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7F) return;
    if (need > x->cap_headers) {
        size_t cap = need < 256 ? 256 : 2 * need;
        char *more = realloc(x->headers, cap);
        x->lost = x->lost || !more;
        if (!more) return;
        x->headers = more;
        x->cap_headers = cap;
    }
    char *s = x->headers + x->n_headers;
    memcpy(s, name, n);
    memcpy(s + n, ": ", 2);
    memcpy(s + n + 2, value, m);
    memcpy(s + n + 2 + m, "\r\n", 2);
    x->n_headers = need;
}

static bool has_body(const hn_http_request *r) { return r->chunked || r->length > 0; }

/* Nothing can be read after this answer. */
static bool closes(const hn_exchange *x)
{
    return x->close || !x->r || !x->r->keep || x->h->draining || (x->reading && has_body(x->r));
}

/* All of the parts are queued, or none and the connection is broken: a chunk that lacks its end would be another
 * answer. */
static bool put(hn_exchange *x, const hone_str *part, size_t n_part)
{
    struct evbuffer *out = x->c ? bufferevent_get_output(x->c->bev) : NULL;
    struct evbuffer_iovec room;
    size_t n = 0;
    bool fits = true;
    if (!out || x->c->broken) return false;
    for (size_t i = 0; i < n_part; i++) fits = fits && !__builtin_add_overflow(n, part[i].len, &n);
    if (!fits || n > SIZE_MAX / 4 || x->lost || evbuffer_reserve_space(out, (ev_ssize_t)n, &room, 1) != 1) {
        x->c->broken = true; /* its handler is told by a tick soon, not in the midst of what it does */
        event_active(x->h->tick, EV_TIMEOUT, 1);
        return false;
    }
    char *to = room.iov_base;
    for (size_t i = 0; i < n_part; i++) {
        if (part[i].len) memcpy(to, part[i].ptr, part[i].len);
        to += part[i].len;
    }
    room.iov_len = n;
    evbuffer_commit_space(out, &room, 1);
    return true;
}

static bool empty_by_status(int status) { return status == 204 || status == 304; }

/* The head of an answer and, where there is one, its body. length -1: of a stream. */
static void put_head(hn_exchange *x, int status, const char *type, int64_t length, const void *body)
{
    char head[640], size[64] = "";
    if (length >= 0 && !empty_by_status(status))
        snprintf(size, sizeof size, "content-length: %lld\r\n", (long long)length);
    else if (length < 0 && x->chunked) snprintf(size, sizeof size, "transfer-encoding: chunked\r\n");
    bool old = x->r && x->r->minor == 0;
    int n = snprintf(
        head, sizeof head,
        "HTTP/1.1 %d %s\r\ndate: %s\r\n%s%.200s%s%sx-content-type-options: nosniff\r\nx-request-id: %s\r\n%s", status,
        reason(status), date(x->h), type ? "content-type: " : "", type ? type : "", type ? "\r\n" : "", size, x->id,
        closes(x) ? "connection: close\r\n"
        : old     ? "connection: keep-alive\r\n"
                  : "");
    if (x->cors) {
        hn_exchange_set_header(x, "access-control-allow-origin", x->cors_all ? "*" : hn_http_field(x->r, "origin"));
        hn_exchange_set_header(
            x, "access-control-expose-headers",
            "x-request-id, retry-after, x-should-retry, x-hone-ignored, x-hone-load, x-hone-chat-template");
    }
    if (x->h->p.n_cors_origin) hn_exchange_set_header(x, "vary", "origin");
    size_t n_body = length > 0 && !x->head_only && !empty_by_status(status) ? (size_t)length : 0;
    put(x, (hone_str[]){ { head, (size_t)n }, { x->headers, x->n_headers }, { "\r\n", 2 }, { body, n_body } }, 4);
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* The answer is whole, or broken off: the connection goes on, or closes when all is sent. */
static void finish(hn_exchange *x)
{
    hn_conn *c = x->c;
    bool close = closes(x), unread = x->reading && (!x->r || has_body(x->r));
    if (c) c->x = NULL;
    hn_exchange_free(x);
    if (!c) return;
    c->since = hn_http_ms();
    c->answered = true;
    c->unread = c->unread || unread;
    if (close) hn_conn_finish(c);
    else {
        hn_conn_limit(c);
        hn_conn_read(c);
    }
}

void hn_exchange_reply(hn_exchange *x, int status, const char *content_type, const void *body, size_t len)
{
    if (!x->begun) put_head(x, status, content_type, (int64_t)len, body);
    finish(x);
}

void hn_exchange_begin(hn_exchange *x, int status, const char *content_type)
{
    if (x->begun) return;
    x->begun = true;
    x->chunked = x->r->minor == 1;
    if (!x->chunked) x->close = true;
    put_head(x, status, content_type, -1, NULL);
}

/* What of the parts the socket takes at once, where nothing waits before them, in bytes; the rest waits for it. (To
 * wait and be called is three calls of the system, for each token.) Who waits is told of errors. */
static size_t send_now(const hn_exchange *x, const hone_str *part, size_t n_part)
{
    enum { MOST = 3 };
    struct iovec v[MOST];
    if (n_part > MOST || hn_conn_backlog(x->c) > 0) return 0;
    for (size_t i = 0; i < n_part; i++) v[i] = (struct iovec){ (void *)(uintptr_t)part[i].ptr, part[i].len };
    ssize_t n = writev(bufferevent_getfd(x->c->bev), v, (int)n_part);
    return n > 0 ? (size_t)n : 0;
}

bool hn_exchange_send(hn_exchange *x, const void *p, size_t n)
{
    char size[24];
    if (!x->c || x->c->broken) return false;
    if (n == 0 || x->head_only) return true; /* a chunk of no bytes would be the last one */
    int k = x->chunked ? snprintf(size, sizeof size, "%zx\r\n", n) : 0;
    hone_str part[] = { { size, (size_t)k }, { p, n }, { "\r\n", x->chunked ? 2 : 0 } };
    size_t sent = x->lost ? 0 : send_now(x, part, 3), left = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t gone = sent < part[i].len ? sent : part[i].len;
        part[i] = (hone_str){ part[i].ptr + gone, part[i].len - gone };
        sent -= gone;
        left += part[i].len;
    }
    if (left && !put(x, part, 3)) return false;
    if (hn_exchange_backlog(x) >= HN_HTTP_BACKLOG) x->full = true;
    return true;
}

size_t hn_exchange_backlog(const hn_exchange *x) { return x->c ? hn_conn_backlog(x->c) : 0; }

void hn_exchange_end(hn_exchange *x, bool whole)
{
    if (!whole || !x->begun) x->close = true;
    else if (x->chunked && !x->head_only) put(x, &(hone_str){ "0\r\n\r\n", 5 }, 1);
    finish(x);
}

/* ---- errors -------------------------------------------------------------------------------- */

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404:
    case 405:
    case 415: return "not_found_error";
    case 408:
    case 504: return "timeout_error";
    case 429: return "rate_limit_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return status >= 500 && status != 505 ? "server_error" : "invalid_request_error";
    }
}

/* {"error":{"message","type","param":null,"code"}} */
static char *openai_error(const char *path, const char *id, int status, const char *type, const char *code,
                          const char *message)
{
    static const char form[] = "{\"error\":{\"message\":\"%s\",\"type\":\"%s\",\"param\":null,\"code\":\"%s\"}}";
    size_t n = strlen(message), cap = 6 * n + 1, size = sizeof form + cap + strlen(type) + strlen(code), o = 0;
    char *text = malloc(cap), *out = malloc(size);
    for (size_t i = 0; text && i < n; i++) {
        unsigned char c = (unsigned char)message[i];
        if (c == '"' || c == '\\') o += (size_t)snprintf(text + o, cap - o, "\\%c", c);
        else if (c < 0x20) o += (size_t)snprintf(text + o, cap - o, "\\u%04x", c);
        else text[o++] = (char)c;
    }
    if (text && out) {
        text[o] = 0;
        snprintf(out, size, form, text, type, code);
    } else {
        free(out);
        out = NULL;
    }
    free(text);
    return out;
}

void hn_http_set_error_fn(hn_http *h, hn_http_error_fn *fn) { h->error_fn = fn; }

void hn_http_tell(const hn_exchange *x, int status)
{
    const hn_http_params *p = &x->h->p;
    if (p->answered) p->answered(p->arg, x->r && x->r->path ? hn_http_path(x->r) : "", status);
}

void hn_exchange_refuse(hn_exchange *x, int status, const char *code, const char *message)
{
    hn_http_error_fn *word = x->h->error_fn ? x->h->error_fn : openai_error;
    char *body = word(x->r ? hn_http_path(x->r) : "", x->id, status, type_of(status), code, message);
    if (status == 408 || status == 413 || status == 431) x->close = true;
    if (status == 503) hn_exchange_set_header(x, "retry-after", "1");
    if (status == 500 || status == 501 || status == 504) hn_exchange_set_header(x, "x-should-retry", "false");
    hn_exchange_reply(x, status, "application/json", body, body ? strlen(body) : 0);
    free(body);
}
