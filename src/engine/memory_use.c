/* What of a session's memory is really there, and what a sequence will take. Knows where its blocks are; refuses to
 * know what else the process has. */
#include "base/os.h"
#include "engine/engine.h"

#include <stdlib.h>

static void add(void *arg, const void *p, size_t n)
{
    hone_memory_use *u = arg;
    if (!p || !n) return;
    int64_t there = hn_os_resident(p, n);
    u->reserved += n;
    u->resident = there < 0 || u->resident < 0 ? -1 : u->resident + there;
}

typedef struct sums {
    const hone_session *s;
    hone_memory *out;
} sums;

/* Of a cache, which fills from the front, only what was used can be there. */
static void add_block(void *arg, const hn_mem_block *b)
{
    sums *k = arg;
    bool cache = b->kind == HN_MEM_CACHE;
    hone_memory_use *u = cache ? &k->out->cache : &k->out->scratch;
    size_t used = cache ? hn_memory_used_of(k->s->mem, b->buf) : b->bytes;
    add(u, b->host, used);
    u->reserved += b->bytes - used;
}

/* A stack begins where the system says, which need not be a page of ours to ask for: whole pages of it. */
static void add_stack(void *arg, const void *p, size_t n)
{
    enum { PAGE = 4096 };
    uintptr_t lo = ((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1), hi = ((uintptr_t)p + n) & ~(uintptr_t)(PAGE - 1);
    if (hi > lo) add(arg, (const void *)lo, hi - lo);
}

void hone_session_memory_use(const hone_session *s, hone_memory *out)
{
    if (!out) return;
    *out = (hone_memory){ 0 };
    if (!s) return;
    s->be->op->blocks(s->be, add_block, &(sums){ s, out });
    add(&out->logits, s->logits, (size_t)s->model->hp.n_vocab * sizeof(float));
    hn_pool_stacks(s->ctx->pool, add_stack, &out->stacks);
}

/* ---- before there is a session ------------------------------------------------------------------------- */

static uint64_t bytes_of(const hone_model *m, const hn_memory_layer *l, hn_cache_type type, int32_t n_pos)
{
    hn_memory_bytes b;
    const hn_memory_params p = { .layer = l, .n_layer = m->hp.n_layer, .type = type, .n_seq = 1, .n_ctx = n_pos };
    return hn_memory_size(&p, &b) ? b.one : UINT64_MAX;
}

hone_status hone_model_sequence_cost(const hone_model *m, int32_t n_pos, hone_kv_cache_type cache,
                                     hone_sequence_cost *out, hone_error *err)
{
    HN_NEED(err, out, "a place for the result");
    *out = (hone_sequence_cost){ 0 };
    HN_NEED(err, m, "an open model");
    if (!m->memory) return HN_FAIL(err, HONE_E_ARG, "%s: opened for its vocabulary only", m->path);
    if (n_pos < 1 || n_pos > HN_MAX_CTX)
        return HN_FAIL(err, HONE_E_ARG, "%d positions, expected 1 to %d", n_pos, HN_MAX_CTX);
    if (cache < HONE_CACHE_F16 || cache > HONE_CACHE_Q8_0)
        return HN_FAIL(err, HONE_E_ARG, "cache type %d, expected f16, f32 or q8_0", (int)cache);
    const hn_cache_type type = (hn_cache_type)cache;
    size_t n = (size_t)m->hp.n_layer;
    hn_memory_layer *full = malloc(n * sizeof *full); /* layers that see all; the others keep nothing here */
    if (!full) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of %d layers", m->path, m->hp.n_layer);
    for (size_t il = 0; il < n; il++) {
        const hn_memory_layer *l = &m->memory[il];
        bool own = (l->kind & (HN_MEMORY_KV | HN_MEMORY_LATENT)) && l->kv_from < 0;
        full[il] = l->window ? (hn_memory_layer){ .kv_from = -1 } : *l;
        out->n_window += own && l->window;
        out->n_full += own && !l->window;
        out->n_latent += own && !l->window && l->kind & HN_MEMORY_LATENT;
        out->n_state += l->state_floats + l->conv_floats > 0;
    }
    uint64_t all = bytes_of(m, m->memory, type, n_pos), growing = bytes_of(m, full, type, n_pos);
    out->position_bytes = bytes_of(m, full, type, HN_PAGE) / HN_PAGE;
    free(full);
    if (all == UINT64_MAX) return HN_FAIL(err, HONE_E_ARG, "%d positions, expected fewer", n_pos);
    out->window_bytes = all - growing;
    out->state_bytes = (uint64_t)hn_all_state_floats(m) * sizeof(float);
    out->bytes = all + out->state_bytes;
    return HONE_OK;
}
