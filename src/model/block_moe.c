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
        op->glu(f->be, s->ff, s->act, m->plan[il].act, &l->ffn_gate_shexp, &l->ffn_up_shexp, m->plan[il].limit);
    } else {
        const hn_product up = { .w = &l->ffn_up_shexp, .out = s->ff, .map = m->plan[il].map };
        op->matmul(f->be, s->act, &up, 1);
    }
    op->matmul(f->be, s->ff, &down, 1);
}

/* What the experts chosen give of act: to y where that is given, else x += it. moe: what differs between blocks. */
static void run_experts(const hone_model *m, const hn_forward *f, int32_t il, hn_act *act, hn_moe moe)
{
    const hn_layer *l = &m->layers[il];
    const hn_moe_numbers *n = &m->hp.moe;
    const hn_backend_ops *op = f->be->op;
    moe.picks = f->s->picks;
    moe.gate = l->ffn_gate_exps.of;
    moe.up = l->ffn_up_exps.of;
    moe.down = l->ffn_down_exps.of;
    moe.n_expert = n->n_expert;
    moe.n_used = m->plan[il].n_used;
    moe.glu = m->plan[il].act;
    moe.map = m->plan[il].map;
    moe.limit = m->plan[il].limit_exp;
    moe.weigh_input = n->gating == HN_GATING_INPUT;
    moe.in = f->s->moe_in;
    if (!moe.y && m->hp.n_hyper) moe.y = f->x; /* who adds it is hn_hyper_add */
    else if (!moe.y) moe.sum = f->x;
    op->moe_glu(f->be, f->s->moe, act, &moe);
    op->moe_down(f->be, f->s->moe, &moe, hn_forward_rows(f));
}

/* For each row of act; next: what takes it afterwards, or NULL. */
static void choose_experts(const hone_model *m, const hn_forward *f, int32_t il, const hn_weight *next)
{
    const hn_layer *l = &m->layers[il];
    const hn_moe_numbers *n = &m->hp.moe;
    const hn_route route = { .router = &l->ffn_gate_inp,
                             .next = next,
                             .bias = l->exp_probs_b,
                             .per_expert = l->expert_scale,
                             .n_used = m->plan[il].n_used,
                             .n_group = n->n_group,
                             .n_group_used = n->n_group_used,
                             .best_alone = n->best_alone,
                             .gating = n->gating,
                             .norm = n->norm,
                             .scale = n->scale };
    f->be->op->route(f->be, f->s->picks, f->s->act, &route);
}

void hn_moe_choose_early(const hone_model *m, hn_forward *f, int32_t il)
{
    const bool some = f->give != HN_ALL && !f->narrow; /* the mixer takes all rows, and narrows */
    const hn_norm as_it_is = {
        .kind = HN_NORM_NONE, .x = some ? f->h : f->x, .act = f->s->act, .n = m->hp.n_embd, .n_tok = hn_forward_rows(f)
    };
    if (!as_it_is.n_tok) return;
    if (some) f->be->op->gather(f->be, f->h, f->x, m->hp.n_embd);
    f->be->op->norm(f->be, &as_it_is);
    choose_experts(m, f, il, NULL);
}

/* x += up(Σ w_e·expert_e(down(norm(x)))) + shared(norm(x)): experts of less than the stream; the latter is in h */
static void latent_experts(const hone_model *m, const hn_forward *f, int32_t il, bool shared)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const int64_t n_tok = hn_forward_rows(f);
    const hn_product in = { .w = &l->ffn_latent_down, .out = s->ff };
    const hn_product out = { .w = &l->ffn_latent_up, .sum = f->x };
    op->matmul(f->be, s->act, &in, 1);
    run_experts(m, f, il, s->ff, (hn_moe){ .y = s->dense });
    const hn_norm as_it_is = {
        .kind = HN_NORM_NONE, .x = s->dense, .act = s->ff, .n = m->hp.moe.n_latent, .n_tok = n_tok
    };
    op->norm(f->be, &as_it_is);
    op->matmul(f->be, s->ff, &out, 1);
    if (shared) op->add(f->be, f->x, f->h, n_tok * m->hp.n_embd);
}

/* x += post(Σ w_e·expert_e(norm(x)) + shared(norm(x))) */
void hn_block_moe(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    bool shared = hn_weight_is_there(&l->ffn_up_shexp);
    hn_forward_narrow(m, f);
    int64_t n_tok = hn_forward_rows(f);
    if (!n_tok) return;
    if (m->plan[il].parallel) { /* it begins with the same norm, and what attention gave is added then */
        hn_forward_norm(m, f, l->attn_norm, l->attn_norm_b, n_tok);
        op->add(f->be, f->x, f->h, n_tok * m->hp.n_embd);
    } else {
        hn_forward_norm(m, f, l->ffn_norm, l->ffn_norm_b, n_tok);
    }
    const bool latent = hn_weight_is_there(&l->ffn_latent_down);
    if (!m->plan[il].early) choose_experts(m, f, il, latent ? &l->ffn_latent_down : l->ffn_up_exps.of);
    if (shared) shared_expert(m, f, il);
    if (latent) {
        latent_experts(m, f, il, shared);
        return;
    }
    const hn_moe moe = { .shared = shared ? f->h : NULL,
                         .shared_gate = hn_weight_is_there(&l->ffn_gate_inp_shexp) ? f->s->shared_gate : NULL,
                         .y = l->ffn_post_norm ? f->h : NULL,
                         .scale = l->ffn_post_norm              ? 0
                                  : shared && m->hp.moe.average ? 0.5f
                                                                : m->hp.res_mul };
    run_experts(m, f, il, f->s->act, moe);
    if (moe.y) op->add_norm(f->be, f->x, f->h, l->ffn_post_norm, m->hp.n_embd, n_tok, m->hp.rms_eps);
}

/* Of n_tok rows, in place. */
static void norm_rows(const hone_model *m, const hn_forward *f, hn_buf *x, const float *w, int64_t n_tok)
{
    const hn_norm norm = { .x = x, .y = x, .w = w, .n = m->hp.n_embd, .n_tok = n_tok, .eps = m->hp.rms_eps };
    f->be->op->norm(f->be, &norm);
}

/* x += post(post1(dense(norm(x))) + post2(Σ w_e·expert_e(norm2(x)))), the router has a norm of its own */
void hn_block_glu_moe(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    hn_forward_narrow(m, f);
    int64_t n_tok = hn_forward_rows(f);
    if (!n_tok) return;
    const hn_product down = { .w = &l->ffn_down, .y = s->dense };
    hn_forward_norm(m, f, l->ffn_norm, NULL, n_tok);
    op->glu(f->be, s->ff, s->act, m->plan[il].act, &l->ffn_gate, &l->ffn_up, m->plan[il].limit);
    op->matmul(f->be, s->ff, &down, 1);
    norm_rows(m, f, s->dense, l->ffn_post_norm_1, n_tok);
    hn_forward_norm(m, f, l->router_norm, NULL, n_tok);
    choose_experts(m, f, il, NULL);
    hn_forward_norm(m, f, l->ffn_norm_2, NULL, n_tok);
    run_experts(m, f, il, f->s->act, (hn_moe){ .y = f->h });
    norm_rows(m, f, f->h, l->ffn_post_norm_2, n_tok);
    op->add(f->be, f->h, s->dense, n_tok * m->hp.n_embd);
    op->add_norm(f->be, f->x, f->h, l->ffn_post_norm, m->hp.n_embd, n_tok, m->hp.rms_eps);
}

void hn_block_glu_moe_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_block_ff_scratch(hp, p, w);
    hn_block_moe_scratch(hp, p, w);
    hn_at_least(&w->dense, hp->n_embd);
}

void hn_block_moe_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->n_used, p->n_used);
    hn_at_least(&w->picks, 2 * (int64_t)p->n_used);
    hn_at_least(&w->shared_gate, 1);
    hn_at_least(&w->ff, hp->moe.n_ff_shared);
    hn_at_least(&w->moe_in, hp->moe.n_latent ? hp->moe.n_latent : hp->n_embd);
    if (hp->moe.n_latent) hn_at_least(&w->ff, hp->moe.n_latent);
    if (hp->moe.n_latent) hn_at_least(&w->dense, hp->moe.n_latent);
    hn_at_least(&w->moe, p->n_ff_exp);
}
