/* The HTTP server of hone without a model, for other programs to talk to: curl, wrk, proxies, hostile clients.
 *     make build/release/libapp.a build/release/libhone.a
 *     cc -std=gnu11 -Iinclude -Isrc -o http_echo tests/dev/http_echo.c build/release/libapp.a build/release/libhone.a \
 *         -levent_core -ljansson -lpthread -lm
 *     ./http_echo PORT NAME        (--uds: a PORT with a slash is a path)
 * POST /echo: the body again. GET /stream?n=N: N events, one every 10 ms. GET /who: NAME. GET /health, /readyz.
 * SIGUSR1: every answer but /who is 503 from now on, or no longer. SIGTERM, SIGINT: drains, then ends. */
#include "serve/http.h"

#include <signal.h>
#include <stdlib.h>

enum { MAX_STREAMS = 1024 };

typedef struct stream {
    hn_exchange *x;
    int left;
    bool gone;
} stream;

static stream streams[MAX_STREAMS];
static hn_http *h;
static const char *name;
static bool busy;

static void gone(void *arg) { ((stream *)arg)->gone = true; }

static void tick(void *arg)
{
    char event[64];
    int running = 0;
    for (stream *s = streams; s < streams + MAX_STREAMS; s++) {
        if (!s->x) continue;
        if (!s->gone && s->left > 0 && hn_exchange_backlog(s->x) < HN_HTTP_BACKLOG) {
            snprintf(event, sizeof event, "data: {\"from\":\"%s\",\"left\":%d}\n\n", name, --s->left);
            hn_exchange_send(s->x, event, strlen(event));
        }
        if (s->gone || s->left == 0) {
            hn_exchange_end(s->x, !s->gone);
            s->x = NULL;
        } else running++;
    }
    if (hn_http_draining(h) && running == 0) hn_http_stop(h);
}

static void begin_stream(hn_exchange *x)
{
    const char *n;
    for (stream *s = streams; s < streams + MAX_STREAMS; s++) {
        if (s->x) continue;
        *s = (stream){ .x = x, .left = hn_exchange_query(x, "n", &n) ? (int)strtol(n, NULL, 10) : 10 };
        hn_exchange_on_gone(x, gone, s);
        hn_exchange_begin(x, 200, "text/event-stream");
        return;
    }
    hn_exchange_refuse(x, 429, "queue_full", "too many streams");
}

static void handle(void *arg, hn_exchange *x)
{
    const char *path = hn_exchange_path(x);
    hone_str body = hn_exchange_body(x);
    if (strcmp(path, "/who") == 0) hn_exchange_reply(x, 200, "text/plain", name, strlen(name));
    else if (busy || hn_http_draining(h)) hn_exchange_refuse(x, 503, "draining", "draining");
    else if (strcmp(path, "/stream") == 0) begin_stream(x);
    else if (strcmp(path, "/echo") == 0) {
        hn_exchange_set_header(x, "x-from", name);
        hn_exchange_reply(x, 200, "application/json", body.ptr, body.len);
    } else hn_exchange_reply(x, 200, "application/json", "{\"status\":\"ok\"}", 15);
}

static const char *methods(void *arg, const char *path)
{
    static const char *const get[] = { "/who", "/stream", "/health", "/readyz" };
    for (size_t i = 0; i < sizeof get / sizeof *get; i++)
        if (strcmp(path, get[i]) == 0) return "GET";
    return strcmp(path, "/echo") == 0 ? "POST" : NULL;
}

static void signalled(void *arg, int sig)
{
    if (sig == SIGUSR1) busy = !busy;
    else hn_http_drain(h);
}

int main(int argc, char **argv)
{
    hone_error err;
    if (argc != 3) return fprintf(stderr, "usage: http_echo PORT|PATH NAME\n"), 2;
    name = argv[2];
    bool is_path = strchr(argv[1], '/') != NULL;
    const hn_http_params p = { .port = is_path ? 0 : (int)strtol(argv[1], NULL, 10),
                               .unix_path = is_path ? argv[1] : NULL,
                               .handler = handle,
                               .methods = methods };
    if (hn_http_open(&h, &p, &err) != HONE_OK) return fprintf(stderr, "http_echo: %s\n", err.message), 1;
    if (!hn_http_every(h, 10, tick, NULL) || !hn_http_on_signal(h, SIGUSR1, signalled, NULL) ||
        !hn_http_on_signal(h, SIGTERM, signalled, NULL) || !hn_http_on_signal(h, SIGINT, signalled, NULL))
        return fprintf(stderr, "http_echo: no memory\n"), 1;
    printf("%s\n", hn_http_address(h));
    fflush(stdout);
    bool ok = hn_http_run(h, &err) == HONE_OK;
    hn_http_free(h);
    return ok ? 0 : 1;
}
