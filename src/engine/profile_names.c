/* The profile of a session: gives the backend's events their names. A weight and a cache
 * are known by where they stand in the model and the session, so the architectures need
 * not say which layer they are at. */
#include "engine/engine.h"

#include <stddef.h>

/* A weight of a layer alone, and as the first of several products. */
typedef struct weight_name { size_t at; const char *name, *several; } weight_name;
static const weight_name weights[] = {
    { offsetof(hn_layer, attn_q), "attn_q", "attn_qkv" }, { offsetof(hn_layer, attn_k), "attn_k", "attn_kv" },
    { offsetof(hn_layer, attn_v), "attn_v", "attn_v" }, { offsetof(hn_layer, attn_output), "attn_output", "attn_output" },
    { offsetof(hn_layer, ffn_gate), "ffn_gate", "ffn_gate_up" }, { offsetof(hn_layer, ffn_up), "ffn_up", "ffn_up" },
    { offsetof(hn_layer, ffn_down), "ffn_down", "ffn_down" },
};

static const weight_name rwkv_weights[] = {
    { offsetof(hn_rwkv_layer, receptance), "time_mix_receptance", "time_mix_in" }, { offsetof(hn_rwkv_layer, g2), "time_mix_g2", "time_mix_low_rank" },
    { offsetof(hn_rwkv_layer, w2), "time_mix_decay_w2", "time_mix_low_rank" }, { offsetof(hn_rwkv_layer, mix1), "time_mix_w1", "time_mix_w1" },
    { offsetof(hn_rwkv_layer, mix2), "time_mix_w2", "time_mix_w2" }, { offsetof(hn_rwkv_layer, output), "time_mix_output", "time_mix_output" },
    { offsetof(hn_rwkv_layer, channel_key), "channel_mix_key", "channel_mix_in" }, { offsetof(hn_rwkv_layer, channel_value), "channel_mix_value", "channel_mix_value" },
};

static const char *const op_names[HN_OP_KINDS] = {
    [HN_OP_EMBED] = "embed", [HN_OP_SET_ACT] = "set_act", [HN_OP_GATE_UP] = "gate_up", [HN_OP_MATMUL] = "matmul",
    [HN_OP_ROPE_TABLE] = "rope_table", [HN_OP_HEADS] = "heads", [HN_OP_ATTENTION] = "attention", [HN_OP_GATHER] = "gather", [HN_OP_HEAD] = "output",
    [HN_OP_LAYER_NORM] = "layer_norm", [HN_OP_TOKEN_SHIFT] = "token_shift", [HN_OP_TIME_MIX] = "wkv", [HN_OP_SCALE] = "scale",
};

static void name_weight(hone_profile_event *out, const hone_model *m, const hn_op_event *e)
{
    size_t one = m->rwkv ? sizeof *m->rwkv : sizeof *m->layers, n = m->rwkv ? sizeof rwkv_weights / sizeof *rwkv_weights : sizeof weights / sizeof *weights;
    uintptr_t first = m->rwkv ? (uintptr_t)m->rwkv : (uintptr_t)m->layers, w = (uintptr_t)e->w[0];
    if (w < first || w >= first + (size_t)m->hp.n_layer * one) return;
    out->layer = (int32_t)((w - first) / one);
    size_t at = (w - first) % one;
    for (size_t i = 0; i < n; i++) {
        const weight_name *k = m->rwkv ? &rwkv_weights[i] : &weights[i];
        if (k->at == at) out->op = e->n_weight > 1 ? k->several : k->name;
    }
}

static void report(void *arg, const hn_op_event *e)
{
    hone_session *s = arg;
    hone_profile_event out = { .op = op_names[e->op], .layer = -1, .n_tok = (int32_t)e->n_tok, .start_ns = e->start_ns, .end_ns = e->end_ns,
                               .bytes = e->bytes, .ops_int8 = e->ops_int8, .ops_float = e->ops_float };
    if (e->n_weight) name_weight(&out, hn_session_model(s), e);
    if (e->kv) out.layer = (int32_t)(e->kv - s->kv);
    if (e->state) out.layer = (int32_t)(e->state - s->state);
    if (e->op == HN_OP_SCALE || e->op == HN_OP_GATHER || e->op == HN_OP_SET_ACT) out.layer = s->profile_layer; /* nothing of theirs tells: where we were */
    s->profile_layer = out.layer;
    if (e->n_weight) out.type = hn_type_get(e->w[0]->type)->name;
    for (int i = 1; i < e->n_weight; i++)
        if (e->w[i]->type != e->w[0]->type) out.type = "mixed";
    s->profile_fn(s->profile_arg, &out);
}

void hone_session_set_profile(hone_session *s, hone_profile_fn *fn, void *arg)
{
    if (!s) return;
    s->profile_fn = fn;
    s->profile_arg = arg;
    hn_backend_profile_init(&s->profiled, s->be, report, s);
}
