/* What of a session's memory is really there. Knows where its blocks are; refuses to
 * know what else the process has. */
#include "base/os.h"
#include "engine/engine.h"

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
