/* block_moe: the feed-forward part of experts (Shazeer et al. 2017; Fedus et al. 2022): a router chooses a few for
 * each row, whose outputs are added by weight; a shared expert, if there is one, serves every row, gated or not
 * (DeepSeekMoE, Dai et al. 2024). */
#include "model/forward.h"

/* h = the shared expert's output; its gate, if it has one, beside it. */
static void shared_expert(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const hn_product down = { .w = &l->ffn_down_shexp, .y = f->h };
    const hn_product gate = { .w = &l->ffn_gate_inp_shexp, .y = s->shared_gate, .map = HN_MAP_SIGMOID };
    if (hn_weight_is_there(&l->ffn_gate_inp_shexp)) op->matmul(f->be, s->act, &gate, 1);
    if (hn_weight_is_there(&l->ffn_gate_shexp)) {
        op->glu(f->be, s->ff, s->act, m->plan[il].act, &l->ffn_gate_shexp, &l->ffn_up_shexp);
    } else {
        const hn_product up = { .w = &l->ffn_up_shexp, .out = s->ff, .map = m->plan[il].map };
        op->matmul(f->be, s->act, &up, 1);
    }
    op->matmul(f->be, s->ff, &down, 1);
}

/* x += post(Σ w_e·expert_e(norm(x)) + shared(norm(x))) */
void hn_block_moe(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_moe_numbers *n = &m->hp.moe;
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    bool shared = hn_weight_is_there(&l->ffn_up_shexp);
    hn_forward_narrow(m, f);
    int64_t n_tok = hn_forward_rows(f);
    if (!n_tok) return;
    const hn_route route = { .router = &l->ffn_gate_inp,
                             .next = l->ffn_up_exps.of,
                             .bias = l->exp_probs_b,
                             .per_expert = l->expert_scale,
                             .n_used = n->n_used,
                             .n_group = n->n_group,
                             .n_group_used = n->n_group_used,
                             .gating = n->gating,
                             .norm = n->norm,
                             .scale = n->scale };
    const hn_moe moe = { .picks = s->picks,
                         .gate = l->ffn_gate_exps.of,
                         .up = l->ffn_up_exps.of,
                         .down = l->ffn_down_exps.of,
                         .n_expert = n->n_expert,
                         .n_used = n->n_used,
                         .glu = m->plan[il].act,
                         .map = m->plan[il].map,
                         .weigh_input = n->gating == HN_GATING_INPUT,
                         .in = s->moe_in,
                         .shared = shared ? f->h : NULL,
                         .shared_gate = hn_weight_is_there(&l->ffn_gate_inp_shexp) ? s->shared_gate : NULL,
                         .y = l->ffn_post_norm ? f->h : NULL,
                         .sum = l->ffn_post_norm ? NULL : f->x,
                         .scale = l->ffn_post_norm ? 0 : m->hp.res_mul };
    hn_forward_norm(m, f, l->ffn_norm, l->ffn_norm_b, n_tok);
    op->route(f->be, s->picks, s->act, &route);
    if (shared) shared_expert(m, f, il);
    op->moe_glu(f->be, s->moe, s->act, &moe);
    op->moe_down(f->be, s->moe, &moe, n_tok);
    if (moe.y) op->add_norm(f->be, f->x, f->h, l->ffn_post_norm, m->hp.n_embd, n_tok, m->hp.rms_eps);
}

void hn_block_moe_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->n_used, hp->moe.n_used);
    hn_at_least(&w->picks, 2 * (int64_t)hp->moe.n_used);
    hn_at_least(&w->shared_gate, 1);
    hn_at_least(&w->ff, hp->moe.n_ff_shared);
    hn_at_least(&w->moe_in, hp->n_embd);
    hn_at_least(&w->moe, hp->moe.n_ff);
}
