/* block_ple: rows that each token has for each layer (Gemma 3n and 4, Google DeepMind 2025: per-layer embeddings), of a
 * table and of the stream as it begins: P = (norm(W·x/√n_embd) + table·√n_ple)/√2. A layer adds at its end
 * post(proj·(gelu(gate·x) ⊙ P)). Refuses to know what else the layer does. */
#include "model/forward.h"

#include <math.h>

void hn_ple_begin(const hone_model *m, const hn_forward *f)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = f->step->n_tok;
    const hn_product rows = { .w = &m->ple_model_proj, .y = f->s->ple, .scale = 1 / sqrtf((float)hp->n_embd) };
    const hn_norm norm = { .x = f->s->ple,
                           .y = f->s->ple,
                           .w = m->ple_norm,
                           .n = hp->n_ple,
                           .n_tok = n_tok * hp->n_layer,
                           .eps = hp->rms_eps };
    hn_forward_norm(m, f, NULL, NULL, n_tok);
    op->matmul(f->be, f->s->act, &rows, 1);
    op->norm(f->be, &norm);
    op->embed_add(f->be, f->s->ple, &m->ple_embd, false, sqrtf((float)hp->n_ple), sqrtf(0.5f));
}

void hn_ple_rows(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    const hn_product gate = { .w = &l->ple_gate,
                              .out = f->s->ff,
                              .map = HN_MAP_GELU,
                              .mul = f->s->ple,
                              .mul_row = (int64_t)hp->n_layer * hp->n_ple,
                              .mul_at = (int64_t)il * hp->n_ple,
                              .mul_of = f->give };
    const hn_product proj = { .w = &l->ple_proj, .y = f->h };
    op->matmul(f->be, f->s->act, &gate, 1);
    op->matmul(f->be, f->s->ff, &proj, 1);
}

void hn_ple_add(const hone_model *m, const hn_forward *f, int32_t il)
{
    int64_t n_tok = hn_forward_rows(f);
    if (!n_tok) return;
    hn_forward_norm(m, f, NULL, NULL, n_tok);
    hn_ple_rows(m, f, il);
    f->be->op->add_norm(f->be, f->x, f->h, m->layers[il].ple_post_norm, m->hp.n_embd, n_tok, m->hp.rms_eps);
}

void hn_ple_scratch(const hn_hparams *hp, hn_scratch_width *w)
{
    hn_at_least(&w->ple, (int64_t)hp->n_layer * hp->n_ple);
    hn_at_least(&w->ff, hp->n_ple);
}
