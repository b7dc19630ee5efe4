/* block_conv: the short convolution of LFM2 (Liquid AI 2025) between two gates: c ⊙ conv(b ⊙ x); where a
 * model looks both ways, its taps do too. */
#include "model/forward.h"

/* x += W·(c ⊙ conv(b ⊙ x')), where b, c and x' are made of norm(x) */
void hn_block_conv(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    hn_forward_norm(m, f, l->attn_norm, NULL, f->step->n_tok);
    const hn_product in[] = { { .w = &l->ssm_in[0], .y = s->z },
                              { .w = &l->ssm_in[1], .y = s->conv },
                              { .w = &l->ssm_in[2], .y = s->xbc } };
    op->matmul(f->be, s->act, in, 3);
    const hn_conv conv = { .x = s->xbc,
                           .in_gate = s->z,
                           .out_gate = s->conv,
                           .w = l->conv_w,
                           .act = s->act,
                           .n = m->hp.n_embd,
                           .taps = m->hp.taps,
                           .ahead = m->plan[il].both ? (m->hp.taps - 1) / 2 : 0,
                           .which = f->give };
    op->conv(f->be, &conv, &f->state[il]);
    hn_forward_narrow(m, f);
    if (hn_forward_rows(f)) hn_forward_add(m, f, s->act, &l->ssm_out, NULL);
}

void hn_block_conv_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->xbc, hp->n_embd);
    hn_at_least(&w->conv, hp->n_embd);
    hn_at_least(&w->z, hp->n_embd);
}
