/* block_glu: the feed-forward part: with a gate (Shazeer 2020), down(act(gate·h) ⊙ (up·h)); without, down(act(up·h)).
 * Beside attention instead of after it (Wang and Komatsuzaki 2021) it begins with the same x, and adds both. */
#include "model/forward.h"

/* What is fed forward: norm(x). False: no row is to be given. */
static bool begin(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_forward_narrow(m, f);
    if (!hn_forward_rows(f)) return false;
    if (m->plan[il].parallel && !l->ffn_norm) hn_forward_norm(m, f, l->attn_norm, l->attn_norm_b, hn_forward_rows(f));
    else hn_forward_norm(m, f, l->ffn_norm, l->ffn_norm_b, hn_forward_rows(f));
    return true;
}

static void end(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_forward_sub_norm(m, f, f->s->ff, l->ffn_sub_norm, m->plan[il].n_ff);
    hn_forward_add(m, f, f->s->ff, &l->ffn_down, l->ffn_post_norm);
    if (m->plan[il].parallel) f->be->op->add(f->be, f->x, f->h, hn_forward_rows(f) * m->hp.n_embd);
}

/* Of the gate what is far above its mean alone: all of a row must be there before any of it is used. */
static void sparse_glu(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_layer_plan *p = &m->plan[il];
    const hn_backend_ops *op = f->be->op;
    const hn_product both[] = { { .w = &l->ffn_gate, .y = f->s->gate }, { .w = &l->ffn_up, .y = f->s->up } };
    op->matmul(f->be, f->s->act, both, 2);
    op->sparse_glu(f->be, f->s->ff, p->act, f->s->gate, f->s->up, p->n_ff, hn_forward_rows(f), p->cut);
}

/* A gate with a map of its own. */
static void mapped_glu(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_product up = { .w = &l->ffn_up, .y = f->s->up },
                     gate = { .w = &l->ffn_gate, .out = f->s->ff, .map = m->plan[il].map, .mul = f->s->up };
    f->be->op->matmul(f->be, f->s->act, &up, 1);
    f->be->op->matmul(f->be, f->s->act, &gate, 1);
}

/* x += post(down·sub(act(gate·norm(x)) ⊙ up·norm(x))) */
void hn_block_glu(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    if (!begin(m, f, il)) return;
    if (m->plan[il].sparse) sparse_glu(m, f, il);
    else if (m->plan[il].map) mapped_glu(m, f, il);
    else f->be->op->glu(f->be, f->s->ff, f->s->act, m->plan[il].act, &l->ffn_gate, &l->ffn_up, m->plan[il].limit);
    end(m, f, il);
}

/* x += post(down·act(up·norm(x))) */
void hn_block_mlp(const hone_model *m, hn_forward *f, int32_t il)
{
    if (!begin(m, f, il)) return;
    const hn_product up = {
        .w = &m->layers[il].ffn_up, .out = f->s->ff, .map = m->plan[il].map, .xielu = m->plan[il].xielu
    };
    f->be->op->matmul(f->be, f->s->act, &up, 1);
    end(m, f, il);
}

void hn_block_ff_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->ff, p->n_ff);
    if (p->sparse) hn_at_least(&w->gate, p->n_ff);
    if (p->sparse || (p->map && p->ffn == HN_FFN_GLU)) hn_at_least(&w->up, p->n_ff);
}
