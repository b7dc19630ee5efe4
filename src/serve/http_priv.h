/* http_priv: what the files of http share: the server, a connection, an exchange. Nothing else includes it. */
#ifndef HN_HTTP_PRIV_H
#define HN_HTTP_PRIV_H

#include "serve/http.h"
#include "serve/http_keys.h"
#include "serve/http_parse.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <pthread.h>
#include <sys/socket.h>

typedef struct hn_conn hn_conn;

struct hn_exchange {
    hn_http *h;
    hn_conn *c;                                  /* NULL: the client is gone */
    hn_exchange *prev, *next;                    /* of the server's list */
    hn_http_request *r;                          /* NULL: the head could not be read */
    bool reading;                                /* the parser still has r, the handler has not seen it */
    bool handed;                                 /* the handler has seen it */
    bool head_only, begun, chunked, close, lost; /* lost: a header had no memory */
    bool full;                                   /* the backlog was HN_HTTP_BACKLOG */
    uint64_t body_bytes;                         /* of r, once it is handed; counted in the server's */
    char id[65];
    bool cors, cors_all; /* Access-Control-Allow-Origin is said: the Origin (a trailer may move it), or "*" */
    uint64_t client;
    char *headers; /* [n_headers] lines */
    size_t n_headers, cap_headers;
    void (*gone)(void *), (*room)(void *);
    void *gone_arg, *room_arg;
};

typedef enum hn_conn_state {
    HN_CONN_OPEN,   /* reads requests, one at a time */
    HN_CONN_FLUSH,  /* closes when all is sent */
    HN_CONN_LINGER, /* all is sent and said so; what still comes is dropped, so that the client can read the answer */
} hn_conn_state;

struct hn_conn {
    hn_http *h;
    hn_conn *prev, *next;
    struct bufferevent *bev;
    struct event *resume; /* reading goes on when others had their turn; NULL until needed */
    hn_http_parser parser;
    hn_exchange *x; /* the one at a time */
    hn_conn_state state;
    bool over;       /* beyond the limits: gets a 503 */
    bool local;      /* loopback or a UNIX socket */
    bool eof;        /* the client sends no more */
    bool held;       /* enough is read ahead */
    bool unread;     /* bytes may come that nobody wants: linger */
    bool answered;   /* one request at least */
    bool broken;     /* no memory for a part of an answer: lost at the next tick */
    bool busy, dead; /* busy: somebody up the stack reads from it, and frees it if it is dead */
    bool again;      /* the parser has something to say without further bytes */
    unsigned char address[16];
    int64_t since;      /* ms: when what is being read began, or the quiet did */
    int64_t limit;      /* ms: when all of a whole answer is to be taken, or LINGER is over */
    int64_t taken;      /* ms: when the client took something last, or began to have something to take */
    int64_t full_since; /* ms: since when the backlog is HN_HTTP_BACKLOG; 0: it is not */
    size_t full_most;   /* bytes: the largest it has been since then */
    int64_t body_bytes; /* that are being read; counted in the server's */
};

typedef struct hn_http_task {
    struct hn_http_task *next;
    void (*fn)(void *);
    void *arg;
} hn_http_task;

typedef struct hn_http_hook { /* a timer's or a signal's */
    struct hn_http_hook *next;
    hn_http *h;
    struct event *ev;
    void (*tick)(void *);
    void (*signal)(void *, int);
    void *arg;
} hn_http_hook;

enum { HN_HTTP_MAX_LISTENERS = 8 };

struct hn_http {
    hn_http_params p; /* its texts are copies in `own` */
    hn_arena *own;
    struct event_base *base;
    struct evconnlistener *listener[HN_HTTP_MAX_LISTENERS];
    size_t n_listener;
    struct event *tick, *wake, *relisten;
    int wake_fd[2];
    char address[160];
    bool loopback, is_unix;
    uint64_t unix_dev, unix_ino;
    hn_http_keys keys;
    hn_conn *conns;
    _Atomic size_t n_conn, n_over;
    hn_exchange *exchanges;
    uint64_t body_bytes; /* of all requests that are being read or answered */
    bool draining, stopping;
    bool walking; /* over conns: nothing of them is freed */
    int64_t stop_limit;
    _Atomic bool stop;
    pthread_mutex_t mu;
    hn_http_task *tasks, **last_task; /* guarded by mu */
    hn_http_hook *hooks;
    hn_http_error_fn *error_fn;
    unsigned char secret[32]; /* of request ids */
    uint64_t n_id;
    int64_t date_s;
    char date[32];
};

int64_t hn_http_ms(void); /* monotonic */
/* An answer is given here, not by the handler: it is told (hn_http_params.answered). */
void hn_http_tell(const hn_exchange *x, int status);
bool hn_http_ticks(hn_http *h); /* deadlines are looked at from now on; false: no memory */

/* ---- http_conn.c ---- */
/* A connection that was accepted; takes fd. over: it gets a 503 and no more. */
void hn_conn_open(hn_http *h, int fd, const unsigned char address[16], bool local, bool over);
/* The client is gone, for whatever reason: tells the exchange and frees c, now or when its caller is through. */
void hn_conn_lose(hn_conn *c);
/* Reads on: the next request, if there is one. */
void hn_conn_read(hn_conn *c);
void hn_conn_limit(hn_conn *c);  /* all that is there to be sent is to be taken in some time */
void hn_conn_finish(hn_conn *c); /* close when all is sent */
void hn_conn_drain(hn_conn *c);  /* no further request, but for one that is here or about to come */
/* fn of each connection, whatever it does to them. */
void hn_conn_each(hn_http *h, void (*fn)(hn_conn *));
void hn_conn_tick(hn_conn *c); /* deadlines */
size_t hn_conn_backlog(const hn_conn *c);

/* ---- http_exchange.c ---- */
/* NULL: no memory. r may be NULL. */
hn_exchange *hn_exchange_new(hn_conn *c, hn_http_request *r);
void hn_exchange_free(hn_exchange *x);
/* Its connection is gone: tells the handler, if it has seen x, else frees it. */
void hn_exchange_lose(hn_exchange *x);

/* ---- http_rules.c: who may ask what ---- */
/* The head is whole. False: it was refused, or answered (OPTIONS). */
bool hn_http_judge(hn_exchange *x);
/* Origins as they are written in the parameters: "*", or scheme, host and port. */
bool hn_http_origin_ok(const char *origin);

#endif
