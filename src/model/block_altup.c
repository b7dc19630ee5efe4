/* block_altup: several residual streams of which a layer computes one (AltUp, Baykal et al. 2023), and the low-rank
 * pair beside its attention (LAuReL, Menghani et al. 2024), as Gemma 3n has them
 * (huggingface/transformers:models/gemma3n/modeling_gemma3n.py). Refuses to know what the layer does in between. */
#include "model/forward.h"

#include <math.h>

/* n_tok rows of x, with a norm of weights w, into act. */
static void norm_of(const hone_model *m, const hn_forward *f, hn_norm_kind kind, hn_buf *x, const float *w,
                    int64_t n_tok)
{
    const hn_norm norm = {
        .kind = kind, .x = x, .act = f->s->act, .w = w, .n = m->hp.n_embd, .n_tok = n_tok, .eps = m->hp.rms_eps
    };
    f->be->op->norm(f->be, &norm);
}

/* The same rows in another buffer. */
static void copy_rows(const hone_model *m, const hn_forward *f, hn_buf *to, const hn_buf *from, int64_t n_tok)
{
    f->be->op->copy(f->be, to, 0, from, 0, (size_t)(n_tok * m->hp.n_embd) * sizeof(float));
}

static hn_streams streams_of(const hone_model *m, const hn_forward *f, int64_t n_tok)
{
    hn_streams s = { .coef = f->s->coef,
                     .x = f->x,
                     .n = m->hp.n_stream,
                     .active = m->hp.active,
                     .n_embd = m->hp.n_embd,
                     .n_tok = n_tok };
    for (int32_t i = 0; i < s.n; i++) s.s[i] = f->stream[i], s.y[i] = f->spare[i];
    return s;
}

/* coef = W·tanh(router·norm(x)/n_embd) */
static void coefficients(const hone_model *m, const hn_forward *f, int32_t il, hn_buf *x, const hn_weight *w,
                         int64_t n_tok)
{
    const hn_layer *l = &m->layers[il];
    const hn_backend_ops *op = f->be->op;
    const hn_product router = { .w = &l->altup_router, .out = f->s->ff, .map = HN_MAP_TANH };
    const hn_product coef = { .w = w, .y = f->s->coef };
    norm_of(m, f, HN_NORM_RMS, x, l->altup_router_norm, n_tok);
    op->matmul(f->be, f->s->act, &router, 1);
    op->matmul(f->be, f->s->ff, &coef, 1);
}

/* The first is x, the others are made of it, as loud as it. */
void hn_altup_begin(const hone_model *m, const hn_forward *f)
{
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = f->step->n_tok;
    copy_rows(m, f, f->stream[0], f->x, n_tok);
    norm_of(m, f, HN_NORM_NONE, f->x, NULL, n_tok);
    for (int32_t i = 1; i < m->hp.n_stream; i++) {
        const hn_product p = { .w = &m->altup_proj[i - 1], .y = f->stream[i] };
        op->matmul(f->be, f->s->act, &p, 1);
        op->loud(f->be, f->stream[i], f->x, m->hp.n_embd, n_tok);
    }
}

void hn_altup_predict(const hone_model *m, hn_forward *f, int32_t il)
{
    int64_t n_tok = hn_forward_held(f);
    if (!n_tok) return;
    coefficients(m, f, il, f->stream[m->hp.active], &m->layers[il].altup_predict, n_tok);
    const hn_streams s = streams_of(m, f, n_tok);
    f->be->op->predict(f->be, &s);
    hn_forward_swap(f);
    copy_rows(m, f, f->x, f->stream[m->hp.active], n_tok);
}

/* x = (x + h + post(r·(l·h)))/√2, h = norm of what x was before attention. */
void hn_altup_laurel(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = hn_forward_rows(f), n = n_tok * hp->n_embd;
    const hn_product left = { .w = &l->laurel_l, .out = f->s->ff }, right = { .w = &l->laurel_r, .y = f->h };
    const hn_norm before = { .x = f->stream[hp->active],
                             .y = f->s->dense,
                             .w = l->attn_norm,
                             .n = hp->n_embd,
                             .n_tok = n_tok,
                             .eps = hp->rms_eps };
    if (!n_tok) return;
    op->norm(f->be, &before);
    norm_of(m, f, HN_NORM_NONE, f->s->dense, NULL, n_tok);
    op->matmul(f->be, f->s->act, &left, 1);
    op->matmul(f->be, f->s->ff, &right, 1);
    op->add(f->be, f->x, f->s->dense, n);
    op->add_norm(f->be, f->x, f->h, l->laurel_post_norm, hp->n_embd, n_tok, hp->rms_eps);
    op->scale(f->be, f->x, sqrtf(0.5f), n);
}

/* Streams follow x; all but the first take what the token has of its own for the layer. */
void hn_altup_correct(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = hn_forward_rows(f);
    if (!n_tok) return;
    coefficients(m, f, il, f->x, &l->altup_correct, n_tok);
    const hn_streams s = streams_of(m, f, n_tok);
    op->correct(f->be, &s);
    norm_of(m, f, HN_NORM_NONE, f->stream[hp->active], l->altup_correct_scale, n_tok);
    hn_ple_rows(m, f, il);
    const hn_norm post = {
        .x = f->h, .y = f->h, .w = l->ple_post_norm, .n = hp->n_embd, .n_tok = n_tok, .eps = hp->rms_eps
    };
    op->norm(f->be, &post);
    for (int32_t i = 1; i < hp->n_stream; i++) op->add(f->be, f->stream[i], f->h, n_tok * hp->n_embd);
}

void hn_altup_end(const hone_model *m, const hn_forward *f)
{
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = hn_forward_rows(f), n = n_tok * m->hp.n_embd;
    copy_rows(m, f, f->x, f->stream[0], n_tok);
    for (int32_t i = 1; i < m->hp.n_stream; i++) {
        const hn_product p = { .w = &m->altup_unembd[i - 1], .y = f->h };
        norm_of(m, f, HN_NORM_NONE, f->stream[i], NULL, n_tok);
        op->matmul(f->be, f->s->act, &p, 1);
        op->loud(f->be, f->h, f->stream[0], m->hp.n_embd, n_tok);
        op->add(f->be, f->x, f->h, n);
    }
    op->scale(f->be, f->x, 1.0f / (float)m->hp.n_stream, n);
}

void hn_altup_scratch(const hn_hparams *hp, hn_scratch_width *w)
{
    hn_at_least(&w->stream, hp->n_embd);
    hn_at_least(&w->dense, hp->n_embd);
    hn_at_least(&w->coef, (int64_t)hp->n_stream * hp->n_stream);
    hn_at_least(&w->ff, hp->rank_laurel > hp->n_stream ? hp->rank_laurel : hp->n_stream);
}
