/* block_mla: multi-head latent attention (DeepSeek-V2, 2024), absorbed: each head's matrices go to the query and what
 * comes out, so that all heads attend over one row a position, which is key and value; all positions, or those that an
 * index chooses (DeepSeek-V3.2, 2025). */
#include "model/forward.h"

/* Compressed rows into k; queries of all heads into q, by way of their own compression where there is one. */
static void project(const hone_model *m, const hn_forward *f, const hn_layer *l, bool indexed)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    bool direct = hp->rank_q == 0;
    hn_forward_norm(m, f, l->attn_norm, l->attn_norm_b, f->step->n_tok);
    const hn_product in[] = { { .w = direct ? &l->attn_q : &l->q_a, .y = direct ? s->q : s->v },
                              { .w = &l->kv_a, .y = s->k },
                              { .w = &l->index_k, .y = s->index_k },
                              { .w = &l->index_w, .y = s->index_w } };
    const hn_product q[] = { { .w = &l->q_b, .y = s->q }, { .w = &l->index_q, .y = s->index_q } };
    op->matmul(f->be, s->act, in, indexed ? 4 : 2);
    if (direct) return;
    const hn_norm norm = {
        .x = s->v, .act = s->ff, .w = l->q_a_norm, .n = hp->rank_q, .n_tok = f->step->n_tok, .eps = hp->rms_eps
    };
    op->norm(f->be, &norm);
    op->matmul(f->be, s->ff, q, indexed ? 2 : 1);
}

/* Queries of rows: the part that does not turn by way of k_b, the rest turned; rows stored. */
static void heads(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_layer_plan *p = &m->plan[il];
    const hn_scratch *s = f->s;
    const int64_t d = hp->d_nope + hp->d_rope;
    const hn_head_product absorb = { .w = &l->k_b,
                                     .n_head = p->n_head,
                                     .x = s->q,
                                     .x_row = p->n_head * d,
                                     .x_head = d,
                                     .room = s->room,
                                     .y = s->query,
                                     .y_row = (int64_t)p->n_head * p->d_k,
                                     .y_head = p->d_k,
                                     .n_tok = f->step->n_tok };
    f->be->op->matmul_heads(f->be, &absorb);
    const hn_latent latent = { .q = s->q,
                               .query = s->query,
                               .row = s->k,
                               .norm = l->kv_a_norm,
                               .cs = p->rope < 0 ? NULL : s->rope[p->rope],
                               .n_head = p->n_head,
                               .rank = hp->rank_kv,
                               .nope = hp->d_nope,
                               .n_rot = hp->d_rope,
                               .neox = hp->rope_neox,
                               .eps = hp->rms_eps,
                               .temperature = p->warm ? hp->temperature : (hn_temperature){ 0 } };
    f->be->op->latent(f->be, &latent, &f->kv[il]);
}

/* What chooses for layer il: its own index, or that of an earlier layer, whose queries are still there. */
static hn_block_index index_of(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_index_numbers *n = &m->hp.index;
    const int32_t from = m->plan[il].index_from;
    const int8_t rope = m->plan[from].rope;
    return (hn_block_index){ .q = f->s->index_q,
                             .k = f->s->index_k,
                             .weigh = f->s->index_w,
                             .k_norm = m->layers[from].index_k_norm,
                             .k_norm_b = m->layers[from].index_k_norm_b,
                             .rows = &f->kv[from],
                             .cs = f->s->rope[rope],
                             .angles = rope,
                             .n_head = n->n_head,
                             .block = n->block,
                             .n_best = n->n_best,
                             .neox = n->neox,
                             .eps = 1e-6f }; /* not in files */
}

/* x += post(Wo·(v_b·attention(norm(x)))) */
void hn_block_mla(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_layer_plan *p = &m->plan[il];
    const hn_scratch *s = f->s;
    const bool chooses = m->hp.index.block != 0;
    const hn_block_index index = chooses ? index_of(m, f, il) : (hn_block_index){ 0 };
    project(m, f, l, p->index);
    heads(m, f, il);
    if (p->index) f->be->op->index(f->be, &index, &f->kv[il]);
    if (!hn_forward_rows(f)) return; /* the cache is filled */
    const hn_attention a = { .q = s->query,
                             .n_head = p->n_head,
                             .scale = p->scale,
                             .index = chooses ? &index : NULL,
                             .d_v = m->hp.rank_kv,
                             .which = f->give };
    f->be->op->attention(f->be, s->act, &a, &f->kv[il]);
    const hn_head_product values = {
        .w = &l->v_b, .n_head = p->n_head, .x_act = s->act, .room = s->room, .out = s->ff, .n_tok = hn_forward_rows(f)
    };
    f->be->op->matmul_heads(f->be, &values);
    hn_forward_narrow(m, f);
    hn_forward_add(m, f, s->ff, &l->attn_output, l->attn_post_norm);
}

void hn_block_mla_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    enum { ROOM = 64 }; /* beyond a head's columns: hn_head_product */
    int64_t n_head = p->n_head, widest = hp->d_nope > hp->rank_kv ? hp->d_nope : hp->rank_kv;
    hn_at_least(&w->q, n_head * (hp->d_nope + hp->d_rope));
    hn_at_least(&w->query, n_head * p->d_k);
    hn_at_least(&w->k, p->d_k);
    hn_at_least(&w->v, hp->rank_q);
    hn_at_least(&w->ff, hp->rank_q);
    hn_at_least(&w->ff, n_head * hp->d_value);
    hn_at_least(&w->act, n_head * hp->rank_kv);
    hn_at_least(&w->room, n_head * (widest + ROOM));
    if (p->rope >= 0) hn_at_least(&w->rope[p->rope], hp->d_rope);
    if (p->index) hn_at_least(&w->index_q, (int64_t)hp->index.n_head * hp->index.d);
    if (p->index) hn_at_least(&w->index_k, hp->index.d);
    if (p->index) hn_at_least(&w->index_w, hp->index.n_head);
}
