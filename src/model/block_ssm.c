/* block_ssm: Mamba (Gu and Dao 2023); Mamba-2 (Dao and Gu 2024), alone or beside attention over the same norm
 * (Falcon-H1, 2025). */
#include "model/forward.h"

/* z, what is convolved, and steps, of all rows, of what act holds. */
static void project(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const hn_product in[] = { { .w = &l->ssm_in[0], .y = s->z },
                              { .w = &l->ssm_in[1], .y = s->xbc },
                              { .w = &l->ssm_in[2], .y = s->dt, .map = HN_MAP_SOFTPLUS } };
    f->be->op->matmul(f->be, s->act, in, 3);
}

/* act = what comes out, of the rows to be given; states advance over all. */
static void recur(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const hn_conv conv = { .x = s->xbc,
                           .w = l->conv_w,
                           .b = l->conv_b,
                           .y = s->conv,
                           .n = hn_dim_value(hp, &m->plan[il], HN_DIM_SSM_CONV),
                           .taps = hp->taps,
                           .silu = true };
    f->be->op->conv(f->be, &conv, &f->state[il]);
    const hn_ssm ssm = { .xbc = s->conv,
                         .dt = s->dt,
                         .z = s->z,
                         .a = l->ssm_a,
                         .d = l->ssm_d,
                         .norm = l->ssm_norm,
                         .n_head = hp->ssm_head,
                         .p = hp->ssm_inner / hp->ssm_head,
                         .n = hp->ssm_state,
                         .n_group = hp->ssm_group,
                         .eps = hp->rms_eps,
                         .which = f->give };
    f->be->op->ssm(f->be, s->act, &ssm, &f->state[il]);
}

/* x += W·mamba2(norm(x)) */
void hn_block_mamba2(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_forward_norm(m, f, l->attn_norm, NULL, f->step->n_tok);
    project(m, f, il);
    recur(m, f, il);
    hn_forward_narrow(m, f);
    if (hn_forward_rows(f)) hn_forward_add(m, f, f->s->act, &l->ssm_out, NULL);
}

/* x = (x + W·mamba2(h)) + Wo·attention(h), h = norm(x) */
void hn_block_attn_mamba2(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_attn_project(m, f, il);
    project(m, f, il);
    hn_attn_heads(m, f, il);
    recur(m, f, il);
    hn_forward_narrow(m, f);
    if (!hn_forward_rows(f)) return;
    hn_forward_add(m, f, f->s->act, &l->ssm_out, NULL);
    hn_attn_core(m, f, il);
    hn_forward_add(m, f, f->s->act, &l->attn_output, NULL);
}

void hn_block_mamba2_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->z, hp->ssm_inner);
    hn_at_least(&w->xbc, hn_dim_value(hp, p, HN_DIM_SSM_CONV));
    hn_at_least(&w->conv, hn_dim_value(hp, p, HN_DIM_SSM_CONV));
    hn_at_least(&w->dt, hp->ssm_head);
    hn_at_least(&w->act, hp->ssm_inner);
}

void hn_block_attn_mamba2_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_block_attn_scratch(hp, p, w);
    hn_block_mamba2_scratch(hp, p, w);
}

/* ---- Mamba ----------------------------------------------------------------------------------------------------- */

/* y, or act: RMSNorm of n columns of y, where there is one. */
static void norm_part(const hone_model *m, const hn_forward *f, hn_buf *y, hn_act *act, const float *w, int64_t n)
{
    const bool normed = w || m->hp.ssm_normed;
    const hn_norm norm = { .kind = normed ? HN_NORM_RMS : HN_NORM_NONE,
                           .x = y,
                           .y = act ? NULL : y,
                           .act = act,
                           .w = w,
                           .n = n,
                           .n_tok = f->step->n_tok,
                           .eps = m->hp.rms_eps };
    if (normed || act) f->be->op->norm(f->be, &norm);
}

/* Of what is convolved: steps of each channel, from a few numbers; what goes into the state and out of it. */
static void steps(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_backend_ops *op = f->be->op;
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const hn_norm as_it_is = {
        .kind = HN_NORM_NONE, .x = s->conv, .act = s->act, .n = hp->ssm_inner, .n_tok = f->step->n_tok
    };
    const hn_product of[] = { { .w = &l->ssm_x[0], .y = s->beta },
                              { .w = &l->ssm_x[1], .y = s->k },
                              { .w = &l->ssm_x[2], .y = s->q } };
    const hn_product dt = { .w = &l->ssm_dt, .in = s->low[0], .y = s->dt, .map = HN_MAP_SOFTPLUS };
    op->norm(f->be, &as_it_is);
    op->matmul(f->be, s->act, of, 3);
    norm_part(m, f, s->beta, s->low[0], l->ssm_dt_norm, hp->ssm_rank);
    norm_part(m, f, s->k, NULL, l->ssm_b_norm, hp->ssm_state);
    norm_part(m, f, s->q, NULL, l->ssm_c_norm, hp->ssm_state);
    op->matmul(f->be, NULL, &dt, 1);
}

/* x += W·mamba(norm(x)) */
void hn_block_mamba(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_scratch *s = f->s;
    const hn_product in[] = { { .w = &l->ssm_in[0], .y = s->xbc }, { .w = &l->ssm_in[1], .y = s->z } };
    const hn_conv conv = {
        .x = s->xbc, .w = l->conv_w, .b = l->conv_b, .y = s->conv, .n = hp->ssm_inner, .taps = hp->taps, .silu = true
    };
    const hn_ssm ssm = { .xbc = s->conv,
                         .dt = s->dt,
                         .z = s->z,
                         .b = s->k,
                         .c = s->q,
                         .a = l->ssm_a,
                         .d = l->ssm_d,
                         .n_head = hp->ssm_inner,
                         .p = 1,
                         .n = hp->ssm_state,
                         .n_group = 1,
                         .which = f->give };
    hn_forward_norm(m, f, l->attn_norm, NULL, f->step->n_tok);
    f->be->op->matmul(f->be, s->act, in, 2);
    f->be->op->conv(f->be, &conv, &f->state[il]);
    steps(m, f, il);
    f->be->op->ssm(f->be, s->act, &ssm, &f->state[il]);
    hn_forward_narrow(m, f);
    if (hn_forward_rows(f)) hn_forward_add(m, f, s->act, &l->ssm_out, NULL);
}

void hn_block_mamba_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    int64_t *const wide[] = { &w->z, &w->xbc, &w->conv, &w->dt, &w->act };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) hn_at_least(wide[i], hp->ssm_inner);
    hn_at_least(&w->beta, hp->ssm_rank);
    hn_at_least(&w->low, hp->ssm_rank);
    hn_at_least(&w->k, hp->ssm_state);
    hn_at_least(&w->q, hp->ssm_state);
}
