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
    add(&out->cache, s->cache_mem, (size_t)s->cache_floats * sizeof(float));
    size_t state_bytes = (size_t)s->state_floats * sizeof(float);
    add(&out->cache, s->state_mem, state_bytes * (size_t)s->n_seq);
    add(&out->cache, s->backup, state_bytes * (size_t)s->n_seq);
    for (int32_t i = 0; i < s->n_checkpoint; i++) add(&out->cache, s->checkpoint[i].mem, state_bytes);
    for (int i = 0; i < s->n_own; i++) add(&out->scratch, *s->own[i].p, (size_t)s->own[i].n * sizeof(float));
    for (int i = 0; i < s->n_act; i++) {
        const hn_act *a = s->act[i].a;
        int64_t n = s->act[i].n;
        add(&out->scratch, a->f32, hn_act_row_bytes(HN_ACT_F32, n) * (size_t)s->n_chunk);
        add(&out->scratch, a->q256, hn_act_row_bytes(HN_ACT_Q256, n + 255) * (size_t)s->n_chunk);
        add(&out->scratch, a->q32, hn_act_row_bytes(HN_ACT_Q32, n + 31) * (size_t)s->n_chunk);
    }
    s->be->op->blocks(s->be, add, &out->scratch);
    add(&out->logits, s->logits, (size_t)s->model->hp.n_vocab * sizeof(float));
    hn_pool_stacks(s->ctx->pool, add_stack, &out->stacks);
}
