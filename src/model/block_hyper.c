/* block_hyper: a stream of several parts (hyper-connections, Zhu et al. 2024) as Qwen 4 has it
 * (huggingface/transformers:models/qwen4_exp/modular_qwen4_exp.py): each half takes a mix of all parts, which a
 * low-rank gate makes of their norms, and what it gives is added to each part by as much as that asks for; and what the
 * parts take of n-grams of ids. Refuses to know what a half does in between. */
#include "model/forward.h"

/* Rows of the stream: its parts, normed each by itself. */
static void norm_parts(const hone_model *m, const hn_forward *f, hn_buf *y, hn_buf *x, const float *w, int64_t n_tok)
{
    const hn_norm norm = { .x = x,
                           .y = y,
                           .w = w,
                           .n = m->hp.n_embd,
                           .n_w = m->hp.n_hyper,
                           .n_tok = n_tok * m->hp.n_hyper,
                           .eps = m->hp.rms_eps };
    f->be->op->norm(f->be, &norm);
}

static int64_t width(const hone_model *m) { return (int64_t)m->hp.n_hyper * m->hp.n_embd; }

/* Rows as they are, to be multiplied with. */
static void take(const hn_forward *f, hn_buf *x, int64_t n, int64_t n_tok)
{
    const hn_norm as_it_is = { .kind = HN_NORM_NONE, .x = x, .act = f->s->act, .n = n, .n_tok = n_tok };
    f->be->op->norm(f->be, &as_it_is);
}

static hn_wide wide_of(const hone_model *m, const hn_forward *f, int64_t n_tok)
{
    return (hn_wide){ .wide = f->wide, .x = f->x, .n = m->hp.n_hyper, .n_embd = m->hp.n_embd, .n_tok = n_tok };
}

void hn_hyper_begin(const hone_model *m, const hn_forward *f)
{
    const hn_wide all = wide_of(m, f, f->step->n_tok);
    f->be->op->inject(f->be, &all);
}

/* With n the norms of all parts over their number: x = Σ_c σ(up·silu(down·n))_c ⊙ n_c, and parts take 2·σ(inject·n). */
void hn_hyper_mix(const hone_model *m, const hn_forward *f, const hn_hyper *h)
{
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const int64_t n_tok = hn_forward_held(f);
    if (!n_tok) return;
    norm_parts(m, f, s->mixed, f->wide, h->norm, n_tok);
    op->scale(f->be, s->mixed, 1.0f / (float)m->hp.n_hyper, n_tok * width(m));
    take(f, s->mixed, width(m), n_tok);
    const hn_product in[] = { { .w = &h->down, .out = s->ff, .map = HN_MAP_SILU },
                              { .w = &h->inject, .y = f->inject, .map = HN_MAP_SIGMOID, .scale = 2 } };
    const hn_product gate = { .w = &h->up, .y = s->gated, .map = HN_MAP_SIGMOID, .mul = s->mixed };
    op->matmul(f->be, s->act, in, hn_weight_is_there(&h->inject) ? 2 : 1);
    op->matmul(f->be, s->ff, &gate, 1);
    hn_wide gated = wide_of(m, f, n_tok);
    gated.wide = s->gated;
    op->fold(f->be, &gated);
}

void hn_hyper_add(const hone_model *m, const hn_forward *f)
{
    hn_wide all = wide_of(m, f, hn_forward_rows(f));
    all.coef = f->inject;
    if (all.n_tok) f->be->op->inject(f->be, &all);
}

void hn_hyper_narrow(const hone_model *m, hn_forward *f)
{
    hn_buf *wide = f->wide, *inject = f->inject;
    f->be->op->gather(f->be, f->wide_room, wide, width(m));
    f->be->op->gather(f->be, f->inject_room, inject, m->hp.n_hyper);
    f->wide = f->wide_room;
    f->wide_room = wide;
    f->inject = f->inject_room;
    f->inject_room = inject;
}

/* The stream's parts take v_c = value ⊙ gate_c and what a convolution makes of its norms, where value and keys are made
 * of the n-grams' rows, and gates of how far keys and parts agree. */
void hn_hyper_ngrams(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_layer *l = &m->layers[il];
    const hn_ngram_numbers *n = &hp->ngram;
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const int64_t n_tok = f->step->n_tok, d = hn_ngram_heads(n) * n->d;
    const size_t tail = (size_t)(m->memory[il].conv_floats - hn_ngram_floats(hp));
    const hn_ngram rows = { .y = s->ngram,
                            .w = &m->ngrams,
                            .mul = n->mul,
                            .size = n->size,
                            .at = n->at,
                            .n_gram = n->n_gram,
                            .per_gram = n->per_gram,
                            .eos = n->eos,
                            .tail = (size_t)m->memory[il].conv_floats - (size_t)(n->n_gram - 1) };
    const hn_product in[] = { { .w = &l->ngram_key, .y = s->gated }, { .w = &l->ngram_value, .y = s->value } };
    const hn_agree agree = { .y = s->gated,
                             .x = s->value,
                             .k = s->gated,
                             .q = s->mixed,
                             .n = hp->n_hyper,
                             .n_embd = hp->n_embd,
                             .n_tok = n_tok };
    const hn_conv conv = { .x = s->mixed,
                           .w = l->ngram_conv,
                           .y = s->gated,
                           .n = width(m),
                           .tail = tail,
                           .taps = n->taps,
                           .apart = n->n_gram,
                           .silu = true };
    op->ngram(f->be, &rows, &f->state[il]);
    take(f, s->ngram, d, n_tok);
    op->matmul(f->be, s->act, in, 2);
    norm_parts(m, f, s->gated, s->gated, l->ngram_key_norm, n_tok);
    norm_parts(m, f, s->mixed, f->wide, l->ngram_query_norm, n_tok);
    op->agree(f->be, &agree);
    op->add(f->be, f->wide, s->gated, n_tok * width(m));
    norm_parts(m, f, s->mixed, s->gated, l->ngram_conv_norm, n_tok);
    op->conv(f->be, &conv, &f->state[il]);
    op->add(f->be, f->wide, s->gated, n_tok * width(m));
}

void hn_hyper_scratch(const hn_hparams *hp, hn_scratch_width *w)
{
    const int64_t n = (int64_t)hp->n_hyper * hp->n_embd, d = hn_ngram_heads(&hp->ngram) * hp->ngram.d;
    hn_at_least(&w->wide, n);
    hn_at_least(&w->mixed, n);
    hn_at_least(&w->gated, n);
    hn_at_least(&w->act, n);
    hn_at_least(&w->inject, hp->n_hyper);
    hn_at_least(&w->ff, hp->rank_hyper);
    if (!hp->ngram.n_gram) return;
    hn_at_least(&w->ngram, d);
    hn_at_least(&w->act, d);
    hn_at_least(&w->value, hp->n_embd);
}
