/* http: HTTP/1.0 and 1.1 over libevent's bufferevents, framed strictly; connections, their limits and deadlines; who
 * may ask (Host, Origin, keys). Hands whole requests to a handler on the event thread and sends what it is given.
 * Refuses to know what is asked.
 *
 * The event thread is the one in hn_http_run. Everything here is for that thread, but where it says "any thread".
 *
 * Answered here, before the handler and most of it before the body: bad framing 400, a slow request 408, foreign Host
 * or Origin 403, no key 401, unknown paths 404, other methods 405 with Allow, bodies that are not JSON 415, too large
 * 413, 414, 431, too many connections 503; OPTIONS 204. HEAD comes to the handler as GET, and the body of its answer is
 * dropped. */
#ifndef HN_HTTP_H
#define HN_HTTP_H

#include "base/base.h"

enum { HN_HTTP_BACKLOG = 256 << 10 }; /* bytes that a client has not taken, from which on a stream is to pause */

typedef struct hn_http hn_http;
typedef struct hn_exchange
    hn_exchange; /* one request and its answer; lives until it ends, also when its client is gone */

typedef struct hn_http_params { /* all of it is copied */
    const char *host;           /* NULL: 127.0.0.1 */
    int port;                   /* 0: any free one */
    const char *unix_path;      /* instead, mode 0600; a stale one is removed where nobody answers */
    const char *const
        *allow_host; /* [n_allow_host] names for the Host header, beside localhost, 127.0.0.1, [::1]. Looked at
                                      where bound to loopback, or where there are any; others are refused then */
    size_t n_allow_host;
    const char *const *cors_origin; /* [n_cors_origin] "https://host:port"; "*": all, wants a key or insecure_no_key */
    size_t n_cors_origin;
    const char *api_key,
        *api_key_file;    /* either or both; the file: a key a line, mode 0600 or less, # begins a comment */
    bool insecure_no_key; /* beyond loopback without a key */
    uint64_t max_body;    /* bytes; 0: 16 MiB. All bodies that are there, together: 16 times that */
    int max_connections, max_per_address; /* 0: 1024 and 128; loopback and UNIX sockets know no limit per address */
    int64_t header_ms, body_ms, idle_ms, write_ms; /* 0: 10, 30, 60 and 30 s */
    void (*handler)(void *arg, hn_exchange *x);    /* event thread; must not block */
    void *arg;
    /* Told of the answers that are given here, before or in place of the handler; path "": not known. NULL: nobody. */
    void (*answered)(void *arg, const char *path, int status);
    bool (*is_public)(const char *method, const char *path); /* needs no key; NULL: nothing is */
    /* "GET, POST": the methods of a path; NULL: there is no such path. Without this function the handler sees all. */
    const char *(*methods)(void *arg, const char *path);
} hn_http_params;

/* Binds and listens. Raises the limit of open files; HONE_E_IO where the system allows fewer than max_connections + 64,
 * or the address is in use. HONE_E_ARG: beyond loopback without a key, bad key files and origins. SIGPIPE is ignored
 * from now on. */
hone_status hn_http_open(hn_http **out, const hn_http_params *p, hone_error *err);
const char *hn_http_address(const hn_http *h); /* "http://127.0.0.1:8080" or "unix:PATH" */
/* Until hn_http_stop. HONE_E_IO: the system refuses to wait for events. */
hone_status hn_http_run(hn_http *h, hone_error *err);
/* Closes the listening socket; quiet connections are closed now, others after their answer, those that have just come
 * and ask nothing after a second. */
void hn_http_drain(hn_http *h);
bool hn_http_draining(const hn_http *h);
/* Drains, tells all exchanges that their client is gone, sends what is written for at most a second more; then
 * hn_http_run returns. Any thread, and signal handlers. */
void hn_http_stop(hn_http *h);
/* What was posted and did not run, runs now. Exchanges that were not ended are gone. NULL is accepted. */
void hn_http_free(hn_http *h);
size_t hn_http_connections(const hn_http *h); /* open now; any thread */
bool hn_http_is_local(const hn_http *h);      /* only this machine reaches it */
/* Reads the key file again. False: it cannot be used, the old keys hold. */
bool hn_http_reload_keys(hn_http *h, hone_error *err);
/* Runs fn on the event thread, soon and in order; any thread. False: out of memory. */
bool hn_http_post(hn_http *h, void (*fn)(void *), void *arg);
/* fn on the event thread every ms milliseconds. False: out of memory. */
bool hn_http_every(hn_http *h, int ms, void (*fn)(void *), void *arg);
/* A signal of this process is given to fn on the event thread. Of one hn_http at a time. */
bool hn_http_on_signal(hn_http *h, int sig, void (*fn)(void *, int), void *arg);

/* ---- the request; valid until the exchange ends --------------------------------------------- */

const char *hn_exchange_method(const hn_exchange *x);
/* Decoded once, without query: UTF-8 without control bytes, backslashes, segments . and ..; "%2f" came as '/'. */
const char *hn_exchange_path(const hn_exchange *x);
bool hn_exchange_query(const hn_exchange *x, const char *name, const char **value); /* decoded; false: absent */
const char *hn_exchange_header(const hn_exchange *x, const char *lower_name);       /* NULL: absent */
hone_str hn_exchange_body(const hn_exchange *x);
/* It is empty from now on: nobody needs it, and another's has its room. Event thread. */
void hn_exchange_drop_body(hn_exchange *x);
/* x-request-id: the client's where it is [A-Za-z0-9._-]{1,64}, else ours, 128 random bits. */
const char *hn_exchange_id(const hn_exchange *x);
uint64_t hn_exchange_client(const hn_exchange *x); /* a number by key, else by address, for fairness; not 0 */

/* ---- the answer; event thread only ---------------------------------------------------------- */

/* A header of the answer, before it begins. What is always sent (x-request-id, date, CORS, connection, length) is set
 * here already. Values with control bytes are left out. */
void hn_exchange_set_header(hn_exchange *x, const char *name, const char *value);
/* The whole answer; ends the exchange. body is copied. */
void hn_exchange_reply(hn_exchange *x, int status, const char *content_type, const void *body, size_t len);
/* The same with a body by hn_http_error_fn; code and message as there. */
void hn_exchange_refuse(hn_exchange *x, int status, const char *code, const char *message);
/* A stream: chunked, or ended by closing for HTTP/1.0. */
void hn_exchange_begin(hn_exchange *x, int status, const char *content_type);
bool hn_exchange_send(hn_exchange *x, const void *p, size_t n); /* false: the client is gone */
size_t hn_exchange_backlog(const hn_exchange *x);               /* bytes not yet taken by the client */
void hn_exchange_end(hn_exchange *x, bool whole); /* ends it. whole false: closed in the middle, no last chunk */
/* fn on the event thread, once, where the client goes away before the end: it closed, or takes nothing for write_ms, or
 * has more than HN_HTTP_BACKLOG waiting for that long and a second for each 16 kB of it. The exchange is still to be
 * ended, in fn or later. */
void hn_exchange_on_gone(hn_exchange *x, void (*fn)(void *), void *arg);
/* fn on the event thread each time when the backlog, which was HN_HTTP_BACKLOG or more, is below a quarter of it. */
void hn_exchange_on_room(hn_exchange *x, void (*fn)(void *), void *arg);

/* How errors are worded: a body of JSON for a path ("" where it is not known), malloc'ed; NULL: no memory. type and
 * code are constants; message is text, to be escaped. Usual: OpenAI's shape. */
typedef char *hn_http_error_fn(const char *path, const char *request_id, int status, const char *type, const char *code,
                               const char *message);
void hn_http_set_error_fn(hn_http *h, hn_http_error_fn *fn);

#endif
