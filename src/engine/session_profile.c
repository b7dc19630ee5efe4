/* The profile of a session: hands what the profiling backend tells on to whoever asked. Names and layers are the
 * backend's (backend/profiled.c), types of weights the table's. */
#include "engine/engine.h"

static void report(void *arg, const hn_op_event *e)
{
    hone_session *s = arg;
    hone_profile_event out = { .op = e->name,
                               .layer = e->layer,
                               .n_tok = (int32_t)e->n_tok,
                               .start_ns = e->start_ns,
                               .end_ns = e->end_ns,
                               .bytes = e->bytes,
                               .ops_int8 = e->ops_int8,
                               .ops_float = e->ops_float };
    if (e->n_weight) out.type = hn_type_get(e->w[0]->type)->name;
    for (int i = 1; i < e->n_weight; i++)
        if (e->w[i]->type != e->w[0]->type) out.type = "mixed";
    s->profile_fn(s->profile_arg, &out);
}

void hn_session_tell_copy(hone_session *s, int32_t n_tok, uint64_t bytes, uint64_t start_ns)
{
    hone_profile_event out = { .op = "memory_copy",
                               .layer = -1,
                               .n_tok = n_tok,
                               .start_ns = start_ns,
                               .end_ns = hn_profile_now(),
                               .bytes = bytes };
    s->profile_fn(s->profile_arg, &out);
}

void hone_session_set_profile(hone_session *s, hone_profile_fn *fn, void *arg)
{
    if (!s) return;
    s->profile_fn = fn;
    s->profile_arg = arg;
    hn_backend_profile_init(&s->profiled, s->be, report, s);
}
