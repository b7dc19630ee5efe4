/* http_site: an HTTP server with an echo, streams and a slow handler behind it, in a thread of this program. One at a
 * time. Include once, after cmocka. */
#ifndef HN_TEST_HTTP_SITE_H
#define HN_TEST_HTTP_SITE_H

#include "serve/http.h"

#include "base/os.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "http_client.h"

#define H "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"

/* ---- the server under test ------------------------------------------------------------------ */

enum { MAX_HELD = 64 };

typedef struct site {
    hn_http *h;
    pthread_t thread;
    hn_exchange *held[MAX_HELD]; /* event thread */
    _Atomic int n_held, n_gone, n_seen, n_ended;
    _Atomic size_t most; /* the largest backlog of a stream */
} site;

typedef struct flood { /* a stream that pauses while its client does */
    site *s;
    hn_exchange *x;
    size_t left, piece;
} flood;

static site now; /* one at a time */

static void held_gone(void *arg)
{
    hn_exchange *x = arg;
    for (int i = 0; i < MAX_HELD; i++)
        if (now.held[i] == x) now.held[i] = NULL;
    hn_exchange_end(x, false);
    now.n_held--;
    now.n_gone++;
}

static void hold(hn_exchange *x)
{
    int i = 0;
    while (now.held[i]) i++;
    assert(i < MAX_HELD);
    now.held[i] = x;
    hn_exchange_on_gone(x, held_gone, x);
    now.n_held++;
}

static void release_all(void *arg)
{
    for (int i = 0; i < MAX_HELD; i++)
        if (now.held[i]) {
            hn_exchange *x = now.held[i];
            now.held[i] = NULL;
            now.n_held--;
            hn_exchange_reply(x, 200, "text/plain", "slow", 4);
        }
}

static void flood_gone(void *arg)
{
    flood *f = arg;
    hn_exchange_end(f->x, false);
    free(f);
    now.n_gone++;
}

static void flood_on(void *arg)
{
    static const char piece[8 << 20];
    flood *f = arg;
    while (f->left && hn_exchange_backlog(f->x) < HN_HTTP_BACKLOG) {
        size_t n = f->left < f->piece ? f->left : f->piece;
        if (!hn_exchange_send(f->x, piece, n)) return;
        f->left -= n;
    }
    size_t backlog = hn_exchange_backlog(f->x);
    if (backlog > now.most) now.most = backlog;
    if (f->left || backlog >= HN_HTTP_BACKLOG) return; /* it is to be called again */
    hn_exchange_end(f->x, true);
    free(f);
    now.n_ended++;
}

static size_t number(const hn_exchange *x)
{
    const char *n;
    return hn_exchange_query(x, "n", &n) ? strtoul(n, NULL, 10) : 0;
}

static void handle(void *arg, hn_exchange *x)
{
    const char *path = hn_exchange_path(x);
    hone_str body = hn_exchange_body(x);
    char text[256];
    now.n_seen++;
    if (strcmp(path, "/echo") == 0) hn_exchange_reply(x, 200, "application/octet-stream", body.ptr, body.len);
    else if (strcmp(path, "/stream") == 0) {
        hn_exchange_set_header(x, "cache-control", "no-cache");
        hn_exchange_begin(x, 200, "text/event-stream");
        for (size_t i = 0; i < number(x); i++) {
            snprintf(text, sizeof text, "data: %zu\n\n", i);
            hn_exchange_send(x, text, strlen(text));
            hn_exchange_send(x, "", 0); /* not the last chunk */
        }
        hn_exchange_end(x, true);
    } else if (strcmp(path, "/broken") == 0) {
        hn_exchange_begin(x, 200, "text/event-stream");
        hn_exchange_send(x, "half", 4);
        hn_exchange_end(x, false);
    } else if (strcmp(path, "/slow") == 0) hold(x);
    else if (strcmp(path, "/flood") == 0 || strcmp(path, "/frame") == 0) {
        flood *f = malloc(sizeof *f);
        *f = (flood){ &now, x, number(x), path[2] == 'l' ? 10000 : number(x) };
        hn_exchange_on_gone(x, flood_gone, f);
        hn_exchange_on_room(x, flood_on, f);
        hn_exchange_begin(x, 200, "text/plain");
        flood_on(f);
    } else if (strcmp(path, "/big") == 0) {
        size_t n = number(x);
        char *p = calloc(1, n + 1);
        hn_exchange_reply(x, 200, "text/plain", p, n);
        free(p);
    } else if (strcmp(path, "/inject") == 0) {
        hn_exchange_set_header(x, "x-bad", "a\r\nx-evil: 1");
        hn_exchange_set_header(x, "x-good", "fine");
        hn_exchange_reply(x, 200, "text/plain", "", 0);
    } else if (strcmp(path, "/full") == 0) hn_exchange_refuse(x, 429, "queue_full", "say \"later\"\n");
    else if (strcmp(path, "/who") == 0) {
        snprintf(text, sizeof text, "%s %s %llx", hn_exchange_method(x), hn_exchange_id(x),
                 (unsigned long long)hn_exchange_client(x));
        hn_exchange_reply(x, 200, "text/plain", text, strlen(text));
    } else hn_exchange_reply(x, hn_http_draining(now.h) ? 503 : 200, "application/json", "{\"status\":\"ok\"}", 15);
}

static const char *methods(void *arg, const char *path)
{
    static const char *const post[] = { "/echo", "/slow", "/full" };
    static const char *const get[] = { "/health", "/stream", "/flood", "/frame", "/big", "/who", "/broken", "/inject" };
    for (size_t i = 0; i < sizeof post / sizeof *post; i++)
        if (strcmp(path, post[i]) == 0) return "POST";
    for (size_t i = 0; i < sizeof get / sizeof *get; i++)
        if (strcmp(path, get[i]) == 0) return "GET";
    return strcmp(path, "/both") == 0 ? "GET, POST" : NULL;
}

static bool is_public(const char *method, const char *path) { return strcmp(path, "/health") == 0; }

static void *run(void *arg)
{
    hone_error err;
    assert(hn_http_run(now.h, &err) == HONE_OK);
    return NULL;
}

static const char *start(hn_http_params p)
{
    hone_error err;
    memset(&now, 0, sizeof now);
    p.handler = handle;
    p.methods = methods;
    p.is_public = is_public;
    if (hn_http_open(&now.h, &p, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(pthread_create(&now.thread, NULL, run, NULL), 0);
    return hn_http_address(now.h);
}

static void join(void)
{
    pthread_join(now.thread, NULL);
    assert_int_equal(hn_http_connections(now.h), 0);
    hn_http_free(now.h);
    assert_int_equal(now.n_held, 0);
}

static void stop(void)
{
    hn_http_stop(now.h);
    join();
}

static int64_t ms_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void) { nanosleep(&(struct timespec){ 0, 1000000 }, NULL); }

/* Waits until *v is n. */
static void await(_Atomic int *v, int n)
{
    int64_t end = ms_now() + PATIENCE_MS;
    while (*v != n && ms_now() < end) nap();
    assert_int_equal(*v, n);
}

#endif
