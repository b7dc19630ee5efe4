/* A whole hone serve in a thread of a test, and questions to it. For programs of cmocka. */
#ifndef HN_SERVE_SITE_H
#define HN_SERVE_SITE_H

#include "base/base.h"
#include "serve/server.h"
#include "serve_client.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
/* cmocka's header wants those above */
#include <cmocka.h>

enum { SITE_CTX = 512 };
static const char site_model[] = "models/hone-chat.gguf";

static __attribute__((unused)) void must(hone_status st, const hone_error *e)
{
    if (st != HONE_OK) fail_msg("%s", e->message);
}

/* ---- a server in a thread --------------------------------------------------------------------------------------- */

typedef struct running {
    hn_serve_params p;
    hone_context *ctx;
    const char *path; /* of the models; NULL: site_model */
    struct hn_shelf_model model[2];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int port, code;
    bool over;
    hone_status st;
    hone_error err;
} running;

static void on_ready(void *arg, const char *address)
{
    running *r = arg;
    pthread_mutex_lock(&r->lock);
    r->port = atoi(strrchr(address, ':') + 1);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void *serve(void *arg)
{
    running *r = arg;
    r->st = hn_serve(&r->p, &r->code, &r->err);
    pthread_mutex_lock(&r->lock);
    r->over = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Waits until it listens; fails where it ends before. Positions and bytes of caches are as r->p says, if it does. */
static __attribute__((unused)) void start(running *r, int32_t n_slots)
{
    hone_error e;
    hone_session_params *session = &r->p.shelf.scheduler.session;
    must(hone_context_new(&r->ctx, &(hone_context_params){ .n_threads = 2 }, &e), &e);
    const char *path = r->path ? r->path : site_model;
    r->model[0] = (struct hn_shelf_model){ .name = "chat", .path = path };
    r->model[1] = (struct hn_shelf_model){ .name = "other", .path = path };
    r->p.shelf.models = r->model;
    if (!r->p.shelf.n_models) r->p.shelf.n_models = 1;
    r->p.shelf.ctx = r->ctx;
    r->p.shelf.model.packed = "off";
    *session = (hone_session_params){ .n_ctx = session->n_ctx ? session->n_ctx : SITE_CTX,
                                      .n_seq = n_slots,
                                      .n_chunk = 64,
                                      .cache_budget = session->cache_budget };
    r->p.limits.n_slots = n_slots;
    hone_sampler_defaults(&r->p.limits.defaults);
    r->p.metrics = r->p.slots = r->p.ui = true;
    r->p.timeout_s = 600;
    r->p.ready = on_ready;
    r->p.arg = r;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    assert_int_equal(pthread_create(&r->thread, NULL, serve, r), 0);
    pthread_mutex_lock(&r->lock);
    while (!r->port && !r->over) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (!r->port) fail_msg("the server did not start: %s", r->err.message);
}

/* As SIGTERM does; it has ended behind it. */
static __attribute__((unused)) void stop(running *r)
{
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    pthread_join(r->thread, NULL);
    hone_context_free(r->ctx);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    if (r->st != HONE_OK) fail_msg("%s", r->err.message);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static __attribute__((unused)) json_t *ask_json(int port, const char *method, const char *path, const char *body,
                                                int status)
{
    client_answer a = client_ask(port, method, path, NULL, body);
    if (a.status != status) fail_msg("%s %s: status %d, expected %d: %s", method, path, a.status, status, a.body);
    json_t *j = json_loadb(a.body, a.n_body, JSON_DECODE_ANY, NULL);
    if (!j) fail_msg("%s: no JSON: %s", path, a.body);
    client_free(&a);
    return j;
}

/* What a counter of /metrics says: the sum of its lines. */
static __attribute__((unused)) double metric(int port, const char *name)
{
    client_answer a = client_ask(port, "GET", "/metrics", NULL, NULL);
    double sum = 0;
    size_t n = strlen(name);
    assert_int_equal(a.status, 200);
    for (const char *p = a.body; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncmp(p, name, n) == 0 && (p[n] == ' ' || p[n] == '{')) sum += atof(strchr(p + n, ' '));
    client_free(&a);
    return sum;
}

/* Until n requests have ended, and nothing is left of them. */
static __attribute__((unused)) void await_rest(int port, double n)
{
    while (metric(port, "hone_request_seconds_count") < n || metric(port, "hone_requests_running") > 0 ||
           metric(port, "hone_requests_waiting") > 0)
        sched_yield();
    assert_true(metric(port, "hone_request_seconds_count") == n);
}

#endif
