/* forward: the pass over a batch: embedding, layers on a residual stream, head. Owns that loop and the scratch; what
 * happens in a layer is its blocks', which the plan names. */
#include "model/forward.h"

#include <stddef.h>

static const struct {
    hn_half_fn *forward;
    hn_width_fn *scratch;
} mixers[HN_MIXER_KINDS] = {
    [HN_MIXER_ATTN] = { hn_block_attn, hn_block_attn_scratch },
    [HN_MIXER_RWKV6] = { hn_block_rwkv6, hn_block_rwkv_scratch },
    [HN_MIXER_RWKV7] = { hn_block_rwkv7, hn_block_rwkv_scratch },
}, ffns[HN_FFN_KINDS] = {
    [HN_FFN_GLU] = { hn_block_glu, hn_block_glu_scratch },
    [HN_FFN_CHANNEL_MIX] = { hn_block_channel_mix, hn_block_channel_mix_scratch },
};

/* ---- the residual loop ------------------------------------------------------------------------------ */

bool hn_forward_run(const hone_model *m, const hn_forward *f)
{
    hn_wanted rows = { NULL, f->n_tok };
    hn_forward_begin(m, f);
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        if (f->abort_fn && f->abort_fn(f->abort_arg)) return false;
        f->be->op->layer(f->be, il);
        if (il == m->hp.n_layer - 1 && f->n_want < f->n_tok) rows = (hn_wanted){ f->want, f->n_want };
        hn_mixer_forward(m, f, il, &rows);
        hn_ffn_forward(m, f, il, &rows);
    }
    hn_forward_end(m, f, rows.n);
    return true;
}

void hn_mixer_forward(const hone_model *m, const hn_forward *f, int32_t il, hn_wanted *rows)
{
    mixers[m->plan[il].mixer].forward(m, f, il, rows);
}

void hn_ffn_forward(const hone_model *m, const hn_forward *f, int32_t il, hn_wanted *rows)
{
    ffns[m->plan[il].ffn].forward(m, f, il, rows);
}

void hn_forward_begin(const hone_model *m, const hn_forward *f)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    op->layer(f->be, -1);
    op->embed(f->be, f->s->x, &m->token_embd, f->rows, f->n_tok);
    if (hp->emb_scale != 1) op->scale(f->be, f->s->x, hp->emb_scale, (int64_t)f->n_tok * hp->n_embd);
    if (m->token_embd_norm)
        op->layer_norm_rows(f->be, f->s->x, m->token_embd_norm, m->token_embd_norm_b, hp->n_embd, f->n_tok, hp->ln_eps);
    for (int r = 0; r < HN_ROPES; r++)
        if (f->s->rope[r]) /* some layer asks for it */
            op->rope_table(f->be, f->s->rope[r], hp->rope[r].freq, hp->n_rot, hp->rope[r].mscale, f->rows, f->n_tok);
}

void hn_forward_end(const hone_model *m, const hn_forward *f, int64_t n)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    hn_scratch *s = f->s;
    op->layer(f->be, -1);
    if (!n) return;
    if (m->output_norm_b)
        op->layer_norm(f->be, &s->act, s->x, m->output_norm, m->output_norm_b, hp->n_embd, n, hp->ln_eps);
    else op->rms_norm(f->be, &s->act, s->x, m->output_norm, hp->n_embd, n, hp->rms_eps);
    op->head(f->be, f->logits, &s->act, &m->output);
}

void hn_forward_narrow(const hone_model *m, const hn_forward *f, hn_wanted *rows)
{
    if (!rows->index) return;
    if (rows->n) f->be->op->gather(f->be, f->s->x, f->s->x, rows->index, m->hp.n_embd, rows->n);
    rows->index = NULL;
}

void hn_forward_add(const hone_model *m, const hn_forward *f, hn_act *in, const hn_weight *w, const float *post)
{
    const hn_backend_ops *op = f->be->op;
    hn_scratch *s = f->s;
    op->matmul(f->be, in, &(hn_product){ .w = w, .y = s->h, .sum = post ? NULL : s->x }, 1);
    if (post) op->add_norm(f->be, s->x, s->h, post, m->hp.n_embd, in->n_tok, m->hp.rms_eps);
}

/* ---- scratch ------------------------------------------------------------------------------------------- */

/* The widest of all layers: they take turns. */
static hn_scratch_width widths(const hone_model *m)
{
    hn_scratch_width w = { .x = m->hp.n_embd, .h = m->hp.n_embd + 31, .act = m->hp.n_embd };
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        mixers[m->plan[il].mixer].scratch(&m->hp, &m->plan[il], &w);
        ffns[m->plan[il].ffn].scratch(&m->hp, &m->plan[il], &w);
    }
    return w;
}

#define ROWS(field)                                                          \
    {                                                                        \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 0, 1 \
    }
#define ACTS(field, n)                                                       \
    {                                                                        \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 1, n \
    }
static const struct {
    size_t at, width;
    bool act;
    int n;
} parts[] = { ROWS(x),
              ROWS(h),
              ROWS(q),
              ROWS(k),
              ROWS(v),
              ROWS(up),
              ROWS(rope[0]),
              ROWS(rope[1]),
              ROWS(r),
              ROWS(w),
              ROWS(a),
              ROWS(v_mix),
              ROWS(g),
              ROWS(v_first),
              ACTS(shift, HN_MAX_SHIFT),
              ACTS(low, HN_RWKV_MIXES),
              ACTS(act, 1),
              ACTS(ff, 1) };
enum { N_PARTS = sizeof parts / sizeof *parts };

static int64_t width_of(const hn_scratch_width *w, int i)
{
    return *(const int64_t *)(const void *)((const char *)w + parts[i].width);
}
static float **rows_of(const hn_scratch *s, int i) { return (float **)(void *)((char *)(uintptr_t)s + parts[i].at); }
static hn_act *acts_of(const hn_scratch *s, int i) { return (hn_act *)(void *)((char *)(uintptr_t)s + parts[i].at); }

bool hn_scratch_alloc(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok)
{
    const hn_scratch_width w = widths(m);
    *s = (hn_scratch){ 0 };
    for (int i = 0; i < N_PARTS; i++) {
        int64_t n = width_of(&w, i);
        if (!n) continue;
        if (!parts[i].act) {
            if (!(*rows_of(s, i) = be->op->alloc(be, (uint64_t)(n_tok * n)))) return false;
            continue;
        }
        for (int k = 0; k < parts[i].n; k++)
            if (!be->op->act_alloc(be, &acts_of(s, i)[k], n, n_tok)) return false;
    }
    return true;
}

void hn_scratch_free(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok)
{
    const hn_scratch_width w = widths(m);
    for (int i = 0; i < N_PARTS; i++) {
        int64_t n = width_of(&w, i);
        if (!n) continue;
        if (!parts[i].act && *rows_of(s, i)) be->op->release(be, *rows_of(s, i), (uint64_t)(n_tok * n));
        for (int k = 0; k < parts[i].n && parts[i].act; k++) be->op->act_release(be, &acts_of(s, i)[k], n, n_tok);
    }
    *s = (hn_scratch){ 0 };
}

void hn_scratch_each(const hn_scratch *s, const hone_model *m, int64_t n_tok, hn_block_fn *fn, void *arg)
{
    const hn_scratch_width w = widths(m);
    for (int i = 0; i < N_PARTS; i++) {
        int64_t n = width_of(&w, i);
        if (!n) continue;
        if (!parts[i].act) fn(arg, *rows_of(s, i), (size_t)(n_tok * n) * sizeof(float));
        for (int k = 0; k < parts[i].n && parts[i].act; k++) {
            const hn_act *a = &acts_of(s, i)[k];
            fn(arg, a->f32, hn_act_row_bytes(HN_ACT_F32, n) * (size_t)n_tok);
            fn(arg, a->q256, hn_act_row_bytes(HN_ACT_Q256, n + 255) * (size_t)n_tok);
            fn(arg, a->q32, hn_act_row_bytes(HN_ACT_Q32, n + 31) * (size_t)n_tok);
        }
    }
}
