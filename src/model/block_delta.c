/* block_delta: the gated delta rule (Yang et al. 2024): a short convolution of queries, keys and values, a state for
 * each head that forgets and corrects itself, a gated norm. And Kimi's (2025), whose keys each forget at a rate of
 * their own. */
#include "model/forward.h"

/* Queries, keys and values before their convolution, gates, and two numbers of each head, of all rows. */
static void gdn_project(const hone_model *m, const hn_forward *f, const hn_layer *l)
{
    const hn_scratch *s = f->s;
    const hn_product in[] = { { .w = &l->gdn_qkv, .y = s->xbc },
                              { .w = &l->gdn_gate, .y = s->z },
                              { .w = &l->gdn_beta, .y = s->beta, .map = HN_MAP_SIGMOID },
                              { .w = &l->gdn_alpha, .y = s->dt, .map = HN_MAP_SOFTPLUS } };
    f->be->op->matmul(f->be, s->act, in, 4);
}

/* x += W·gdn(norm(x)) */
void hn_block_gdn(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const int64_t keys = (int64_t)hp->ssm_group * hp->ssm_state, n = hn_dim_value(hp, &m->plan[il], HN_DIM_GDN_CONV);
    hn_forward_norm(m, f, l->attn_norm, NULL, f->step->n_tok);
    gdn_project(m, f, l);
    const hn_conv conv = { .x = s->xbc, .w = l->conv_w, .y = s->conv, .n = n, .taps = hp->taps, .silu = true };
    f->be->op->conv(f->be, &conv, &f->state[il]);
    const hn_delta_rule rule = { .q = s->conv,
                                 .k = s->conv,
                                 .v = s->conv,
                                 .stride = n,
                                 .k_at = keys,
                                 .v_at = 2 * keys,
                                 .decay = s->dt,
                                 .beta = s->beta,
                                 .gate = s->z,
                                 .a = l->ssm_a,
                                 .norm = l->ssm_norm,
                                 .n_head = hp->ssm_head,
                                 .n_head_k = hp->ssm_group,
                                 .n = hp->ssm_state,
                                 .tiled = m->plan[il].tiled,
                                 .sigmoid = m->plan[il].sigmoid,
                                 .eps = hp->rms_eps,
                                 .which = f->give };
    f->be->op->delta(f->be, s->act, &rule, &f->state[il]);
    hn_forward_narrow(m, f);
    if (hn_forward_rows(f)) hn_forward_add(m, f, s->act, &l->ssm_out, NULL);
}

void hn_block_gdn_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->z, hp->ssm_inner);
    hn_at_least(&w->xbc, hn_dim_value(hp, p, HN_DIM_GDN_CONV));
    hn_at_least(&w->conv, hn_dim_value(hp, p, HN_DIM_GDN_CONV));
    hn_at_least(&w->dt, hp->ssm_head);
    hn_at_least(&w->beta, hp->ssm_head);
    hn_at_least(&w->act, hp->ssm_inner);
}

/* ---- Kimi's -------------------------------------------------------------------------------------------------- */

/* Queries, keys and values before their convolutions, and, of each head, decays of keys, a gate and a number. */
static void kda_project(const hone_model *m, const hn_forward *f, const hn_layer *l)
{
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const hn_product in[] = {
        { .w = &l->attn_q, .y = s->q },          { .w = &l->attn_k, .y = s->k },
        { .w = &l->attn_v, .y = s->v },          { .w = &l->kda_f[0], .out = s->low[0] },
        { .w = &l->kda_g[0], .out = s->low[1] }, { .w = &l->gdn_beta, .y = s->beta, .map = HN_MAP_SIGMOID }
    };
    op->matmul(f->be, s->act, in, 6);
    const hn_product high[] = { { .w = &l->kda_f[1], .in = s->low[0], .y = s->dt, .map = HN_MAP_SOFTPLUS },
                                { .w = &l->kda_g[1], .in = s->low[1], .y = s->z } };
    op->matmul(f->be, NULL, high, 2);
}

/* x += Wo·kda(norm(x)) */
void hn_block_kda(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const int64_t n = hp->ssm_inner;
    hn_buf *const in[] = { s->q, s->k, s->v }, *const out[] = { s->xbc, s->conv, s->query };
    hn_forward_norm(m, f, l->attn_norm, NULL, f->step->n_tok);
    kda_project(m, f, l);
    for (int i = 0; i < 3; i++) {
        const hn_conv conv = { .x = in[i],
                               .w = l->kda_conv[i],
                               .y = out[i],
                               .n = n,
                               .tail = (size_t)(i * (hp->taps - 1) * n),
                               .taps = hp->taps,
                               .silu = true };
        f->be->op->conv(f->be, &conv, &f->state[il]);
    }
    const hn_delta_rule rule = { .q = out[0],
                                 .k = out[1],
                                 .v = out[2],
                                 .stride = n,
                                 .decay = s->dt,
                                 .beta = s->beta,
                                 .gate = s->z,
                                 .a = l->ssm_a,
                                 .norm = l->ssm_norm,
                                 .n_head = hp->ssm_head,
                                 .n_head_k = hp->ssm_group,
                                 .n = hp->ssm_state,
                                 .each = true,
                                 .sigmoid = true,
                                 .eps = hp->rms_eps,
                                 .which = f->give };
    f->be->op->delta(f->be, s->act, &rule, &f->state[il]);
    hn_forward_narrow(m, f);
    if (hn_forward_rows(f)) hn_forward_add(m, f, s->act, &l->attn_output, NULL);
}

void hn_block_kda_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    int64_t *const wide[] = { &w->q, &w->k, &w->v, &w->xbc, &w->conv, &w->query, &w->dt, &w->z, &w->act };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) hn_at_least(wide[i], hp->ssm_inner);
    hn_at_least(&w->beta, hp->ssm_head);
    hn_at_least(&w->low, hp->ssm_state);
}
