/* The profile of a session: gives the backend's events their names. A weight and a cache
 * are known by where they stand in the model and the session, so the architectures need
 * not say which layer they are at. */
#include "engine/engine.h"

#include <stddef.h>

/* A weight of a layer alone, and as the first of several products. */
static const struct { size_t at; const char *name, *several; } weights[] = {
    { offsetof(hn_layer, attn_q), "attn_q", "attn_qkv" }, { offsetof(hn_layer, attn_k), "attn_k", "attn_kv" },
    { offsetof(hn_layer, attn_v), "attn_v", "attn_v" }, { offsetof(hn_layer, attn_output), "attn_output", "attn_output" },
    { offsetof(hn_layer, ffn_gate), "ffn_gate", "ffn_gate_up" }, { offsetof(hn_layer, ffn_up), "ffn_up", "ffn_up" },
    { offsetof(hn_layer, ffn_down), "ffn_down", "ffn_down" },
};

static const char *const op_names[HN_OP_KINDS] = {
    [HN_OP_EMBED] = "embed", [HN_OP_SET_ACT] = "set_act", [HN_OP_GATE_UP] = "gate_up", [HN_OP_MATMUL] = "matmul",
    [HN_OP_ROPE_TABLE] = "rope_table", [HN_OP_HEADS] = "heads", [HN_OP_ATTENTION] = "attention", [HN_OP_GATHER] = "gather", [HN_OP_HEAD] = "output",
};

static void name_weight(hone_profile_event *out, const hone_model *m, const hn_op_event *e)
{
    uintptr_t first = (uintptr_t)m->layers, w = (uintptr_t)e->w[0];
    if (w < first || w >= first + (size_t)m->hp.n_layer * sizeof *m->layers) return;
    out->layer = (int32_t)((w - first) / sizeof *m->layers);
    size_t at = (w - first) % sizeof *m->layers;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (weights[i].at == at) out->op = e->n_weight > 1 ? weights[i].several : weights[i].name;
}

static void report(void *arg, const hn_op_event *e)
{
    hone_session *s = arg;
    hone_profile_event out = { .op = op_names[e->op], .layer = -1, .n_tok = (int32_t)e->n_tok, .start_ns = e->start_ns, .end_ns = e->end_ns,
                               .bytes = e->bytes, .ops_int8 = e->ops_int8, .ops_float = e->ops_float };
    if (e->n_weight) name_weight(&out, s->model, e);
    if (e->kv) out.layer = (int32_t)(e->kv - s->kv);
    if (e->op == HN_OP_GATHER || e->op == HN_OP_SET_ACT) out.layer = s->profile_layer; /* nothing of theirs tells: where we were */
    s->profile_layer = out.layer;
    if (e->n_weight) out.type = hn_type_get(e->w[0]->type)->name;
    for (int i = 1; i < e->n_weight; i++)
        if (e->w[i]->type != e->w[0]->type) out.type = "mixed";
    s->profile_fn(s->profile_arg, &out);
}

void hone_session_set_profile(hone_session *s, hone_profile_fn *fn, void *arg)
{
    s->profile_fn = fn;
    s->profile_arg = arg;
    hn_backend_profile_init(&s->profiled, s->be, report, s);
}
