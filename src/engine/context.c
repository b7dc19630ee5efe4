/* Context: the worker threads and the kernel level of a caller. */
#include "engine/engine.h"
#include "base/os.h"

#include <stdlib.h>

hone_status hone_context_new(hone_context **out, const hone_context_params *params, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the context");
    int32_t n = params ? params->n_threads : 0;
    const char *env = getenv("HONE_THREADS");
    if (n == 0 && env && *env) {
        char *end;
        long v = strtol(env, &end, 10);
        if (*end || v < 1 || v > HN_MOST_THREADS)
            return HN_FAIL(err, HONE_E_ARG, "HONE_THREADS=%s: expected 1 to %d", HN_ESC(env, strlen(env)),
                           HN_MOST_THREADS);
        n = (int32_t)v;
    }
    if (n == 0) n = hn_cpu_count();
    int32_t n_batch = params && params->n_threads_batch ? params->n_threads_batch : n;
    if (n < 1 || n_batch < 1) return HN_FAIL(err, HONE_E_ARG, "threads: %d, expected at least 1", n < 1 ? n : n_batch);
    hone_context *c = calloc(1, sizeof *c);
    if (!c) return HN_FAIL(err, HONE_E_NOMEM, "context");
    hone_status st = hn_cpu_choose(&c->level, params ? params->cpu : NULL, err);
    if (st == HONE_OK) st = hn_pool_new(&c->pool, n > n_batch ? n : n_batch, err);
    if (st != HONE_OK) {
        free(c);
        return st;
    }
    c->kernels = hn_kernels_get(c->level);
    c->n_threads = n;
    c->n_threads_batch = n_batch;
    *out = c;
    return HONE_OK;
}

void hone_context_free(hone_context *c)
{
    if (!c) return;
    hn_pool_free(c->pool);
    free(c);
}

const char *hone_context_cpu(const hone_context *c) { return c ? hn_cpu_level_name(c->level) : ""; }
int32_t hone_context_threads(const hone_context *c) { return c ? c->n_threads : 0; }
int32_t hone_context_threads_batch(const hone_context *c) { return c ? c->n_threads_batch : 0; }
