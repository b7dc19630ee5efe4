/* block_cycle: two stacks of layers that take turns over one stream (Wang et al. 2025, "Hierarchical Reasoning Model"):
 * several passes of the low one, then one of the high one, and so again. Each pass begins with the sum of what both
 * gave last, and ends with a norm (bind.c). Before the first, the high one gave the embedding, the low one a learnt
 * row.
 * And the embedding, which layers of another family add again at their end, each times a number that it has learnt. */
#include "model/forward.h"

static void keep(const hone_model *m, const hn_forward *f, hn_buf *z)
{
    f->be->op->copy(f->be, z, 0, f->x, 0, (size_t)(f->step->n_tok * m->hp.n_embd) * sizeof(float));
}

void hn_cycle_begin(const hone_model *m, const hn_forward *f) { keep(m, f, f->s->z_high); }

/* x is what the last pass gave. */
void hn_cycle_turn(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const int32_t pass = il / hp->n_stack % (hp->n_low + 1);
    if (il == 0 || il % hp->n_stack) return;
    if (pass == 0) keep(m, f, f->s->z_high);
    if (pass == hp->n_low) keep(m, f, f->s->z_low);
    f->be->op->add(f->be, f->x, pass == 0 ? f->s->z_low : f->s->z_high, f->step->n_tok * hp->n_embd);
}

void hn_again_begin(const hone_model *m, const hn_forward *f) { keep(m, f, f->s->z_high); }

void hn_again_narrow(const hone_model *m, const hn_forward *f)
{
    f->be->op->gather(f->be, f->s->z_low, f->s->z_high, m->hp.n_embd);
}

void hn_again_add(const hone_model *m, const hn_forward *f, int32_t il)
{
    const int64_t n = hn_forward_held(f) * m->hp.n_embd;
    if (!n) return;
    f->be->op->copy(f->be, f->h, 0, f->narrow ? f->s->z_low : f->s->z_high, 0, (size_t)n * sizeof(float));
    f->be->op->scale(f->be, f->h, *m->layers[il].out_scale, n);
    f->be->op->add(f->be, f->x, f->h, n);
}

void hn_cycle_scratch(const hn_hparams *hp, hn_scratch_width *w) { w->z_high = w->z_low = hp->n_embd; }
