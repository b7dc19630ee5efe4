/* block_glu: the feed-forward part with a gate (Shazeer 2020): down(act(gate·h) ⊙ (up·h)). */
#include "model/forward.h"

/* x += post(down·(act(gate·norm(x)) ⊙ up·norm(x))) */
void hn_block_glu(const hone_model *m, const hn_forward *f, int32_t il, hn_wanted *rows)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    hn_scratch *s = f->s;
    hn_forward_narrow(m, f, rows);
    if (!rows->n) return;
    op->rms_norm(f->be, &s->act, s->x, l->ffn_norm, m->hp.n_embd, rows->n, m->hp.rms_eps);
    op->gate_up(f->be, &s->ff, &s->act, m->plan[il].act, &l->ffn_gate, &l->ffn_up, s->up);
    hn_forward_add(m, f, &s->ff, &l->ffn_down, l->ffn_post_norm);
}

void hn_block_glu_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->up, (int64_t)p->n_ff + 31);
    hn_at_least(&w->ff, p->n_ff);
}
