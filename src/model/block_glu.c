/* block_glu: the feed-forward part with a gate (Shazeer 2020): down(act(gate·h) ⊙ (up·h)). */
#include "model/forward.h"

/* x += post(down·(act(gate·norm(x)) ⊙ up·norm(x))) */
void hn_block_glu(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    hn_forward_narrow(m, f);
    if (!hn_forward_rows(f)) return;
    const hn_norm norm = {
        .x = f->x, .act = s->act, .w = l->ffn_norm, .n = m->hp.n_embd, .n_tok = hn_forward_rows(f), .eps = m->hp.rms_eps
    };
    op->norm(f->be, &norm);
    op->glu(f->be, s->ff, s->act, m->plan[il].act, &l->ffn_gate, &l->ffn_up);
    hn_forward_add(m, f, s->ff, &l->ffn_down, l->ffn_post_norm);
}

void hn_block_glu_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->ff, p->n_ff);
}
