/* block_attn: grouped-query attention with rotary positions (Vaswani et al. 2017; Su et al. 2021; Ainslie et al.
 * 2023), of all positions before a query or of a window of them. */
#include "model/forward.h"

void hn_attn_project(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const hn_layer_plan *p = &m->plan[il];
    int64_t n_tok = hn_forward_held(f);
    hn_forward_norm(m, f, l->attn_norm, l->attn_norm_b, n_tok);
    hn_product in[6] = { { .w = &l->attn_q, .y = p->out_gate == HN_OUT_GATE_OF_Q ? s->q_gate : s->q },
                         { .w = &l->attn_k, .y = s->k },
                         { .w = &l->attn_v, .y = s->v } };
    bool v = hn_weight_is_there(&l->attn_v);
    int n = p->no_keys ? 1 : v ? 3 : 2;
    if (p->out_gate >= HN_OUT_GATE_OWN) in[n++] = (hn_product){ .w = &l->attn_gate, .y = s->q_gate };
    if (p->index) {
        in[n++] = (hn_product){ .w = &l->index_q, .y = s->index_q };
        in[n++] = (hn_product){ .w = &l->index_k, .y = s->index_k };
    }
    op->matmul(f->be, s->act, in, n);
    if (p->no_keys || v) return;
    op->copy(f->be, s->v, 0, s->k, 0, (size_t)(n_tok * p->n_head_kv * p->d_k) * sizeof(float));
}

static hn_block_index index_of(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_index_numbers *n = &m->hp.index;
    const int8_t rope = m->plan[il].rope;
    return (hn_block_index){ .q = f->s->index_q,
                             .k = f->s->index_k,
                             .q_norm = l->index_q_norm,
                             .k_norm = l->index_k_norm,
                             .cs = f->s->rope[rope],
                             .angles = rope,
                             .n_head = n->n_head,
                             .block = n->block,
                             .n_best = n->n_best,
                             .neox = m->hp.rope_neox,
                             .eps = m->hp.rms_eps };
}

void hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_layer_plan *p = &m->plan[il];
    const hn_scratch *s = f->s;
    const hn_heads heads = { .q = s->q,
                             .k = p->no_keys ? NULL : s->k,
                             .v = p->no_keys ? NULL : s->v,
                             .q_gate = p->out_gate == HN_OUT_GATE_OF_Q ? s->q_gate : NULL,
                             .q_norm = l->attn_q_norm,
                             .k_norm = l->attn_k_norm,
                             .norm = p->qk_norm,
                             .norm_after = p->qk_norm_after,
                             .v_normed = p->v_normed,
                             .which = p->no_keys && f->narrow ? HN_WANTED : HN_ALL,
                             .cs = p->rope < 0 ? NULL : s->rope[p->rope],
                             .n_head = p->n_head,
                             .clip = m->hp.qkv_clip,
                             .n_rot = p->rope < 0 ? 0 : m->hp.rope[p->rope].n_rot,
                             .neox = m->hp.rope_neox,
                             .eps = m->hp.layer_norm ? m->hp.ln_eps : m->hp.rms_eps,
                             .temperature = p->warm ? m->hp.temperature : (hn_temperature){ 0 } };
    f->be->op->heads(f->be, &heads, &f->kv[il]);
    if (!p->index) return;
    const hn_block_index index = index_of(m, f, il);
    f->be->op->index(f->be, &index, &f->kv[il]);
}

void hn_attn_core(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer_plan *p = &m->plan[il];
    const hn_block_index index = p->index ? index_of(m, f, il) : (hn_block_index){ 0 };
    const hn_attention a = { .q = f->s->q,
                             .narrow = p->no_keys && f->narrow,
                             .gate = p->out_gate ? f->s->q_gate : NULL,
                             .gate_alone = p->out_gate == HN_OUT_GATE_OWN,
                             .gate_heads = p->out_gate == HN_OUT_GATE_HEADS,
                             .gate_map = p->gate_map,
                             .n_head = p->n_head,
                             .scale = p->scale,
                             .cap = m->hp.attn_cap,
                             .both = p->both,
                             .window = p->window,
                             .chunk = p->chunk,
                             .sink = m->layers[il].attn_sinks,
                             .fade = m->hp.fade,
                             .index = p->index ? &index : NULL,
                             .which = f->give };
    f->be->op->attention(f->be, f->s->act, &a, &f->kv[il]);
}

/* x += post(Wo·sub(attention(norm(x)))) */
void hn_block_attn(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    if (m->plan[il].no_keys && !hn_forward_rows(f)) return;
    hn_attn_project(m, f, il);
    hn_attn_heads(m, f, il);
    if (!hn_forward_rows(f)) return; /* the cache is filled */
    hn_attn_core(m, f, il);
    hn_forward_narrow(m, f);
    hn_forward_sub_norm(m, f, f->s->act, l->attn_sub_norm, (int64_t)m->plan[il].n_head * m->plan[il].d_v);
    if (m->plan[il].parallel) { /* x stays for the other half, which adds h too */
        const hn_product p = { .w = &l->attn_output, .y = f->h, .scale = m->hp.res_mul };
        f->be->op->matmul(f->be, f->s->act, &p, 1);
        return;
    }
    if (m->hp.value_mul != 0) { /* of values: of their sums, and of what comes of them */
        const hn_product p = { .w = &l->attn_output, .sum = f->x, .scale = m->hp.value_mul };
        f->be->op->matmul(f->be, f->s->act, &p, 1);
        return;
    }
    hn_forward_add(m, f, f->s->act, &l->attn_output, l->attn_post_norm);
}

/* x += Wo·norm(x) */
void hn_block_linear(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_forward_narrow(m, f);
    if (!hn_forward_rows(f)) return;
    hn_forward_norm(m, f, l->attn_norm, NULL, hn_forward_rows(f));
    hn_forward_add(m, f, f->s->act, &l->attn_output, NULL);
}

void hn_block_attn_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    int64_t n_q = (int64_t)p->n_head * p->d_k;
    hn_at_least(&w->q, n_q);
    if (p->out_gate) hn_at_least(&w->q_gate, p->out_gate == HN_OUT_GATE_OF_Q ? 2 * n_q : n_q);
    hn_at_least(&w->k, (int64_t)p->n_head_kv * p->d_k);
    hn_at_least(&w->v, (int64_t)p->n_head_kv * p->d_v);
    hn_at_least(&w->act, n_q);
    if (p->index) hn_at_least(&w->index_q, (int64_t)hp->index.n_head * hp->index.d);
    if (p->index) hn_at_least(&w->index_k, hp->index.d);
    if (p->rope >= 0) hn_at_least(&w->rope[p->rope], hp->rope[p->rope].n_rot);
}
