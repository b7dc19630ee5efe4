/* forward: the pass over a batch: embedding, layers on a residual stream, head. Owns that loop and the scratch; what
 * happens in a layer is its blocks', which the plan names. */
#include "model/forward.h"

#include <stddef.h>

/* Halves that a layer may lack. */
static void no_mixer(const hone_model *m, hn_forward *f, int32_t il) {}
static void no_ffn(const hone_model *m, hn_forward *f, int32_t il) { hn_forward_narrow(m, f); }
static void no_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w) {}

static const struct {
    hn_half_fn *forward;
    hn_width_fn *scratch;
} mixers[HN_MIXER_KINDS] = {
    [HN_MIXER_ATTN] = { hn_block_attn, hn_block_attn_scratch },
    [HN_MIXER_MLA] = { hn_block_mla, hn_block_mla_scratch },
    [HN_MIXER_NONE] = { no_mixer, no_scratch },
    [HN_MIXER_LINEAR] = { hn_block_linear, no_scratch },
    [HN_MIXER_CONV] = { hn_block_conv, hn_block_conv_scratch },
    [HN_MIXER_MAMBA2] = { hn_block_mamba2, hn_block_mamba2_scratch },
    [HN_MIXER_MAMBA] = { hn_block_mamba, hn_block_mamba_scratch },
    [HN_MIXER_GDN] = { hn_block_gdn, hn_block_gdn_scratch },
    [HN_MIXER_KDA] = { hn_block_kda, hn_block_kda_scratch },
    [HN_MIXER_ATTN_MAMBA2] = { hn_block_attn_mamba2, hn_block_attn_mamba2_scratch },
    [HN_MIXER_RWKV6] = { hn_block_rwkv6, hn_block_rwkv_scratch },
    [HN_MIXER_RWKV7] = { hn_block_rwkv7, hn_block_rwkv_scratch },
}, ffns[HN_FFN_KINDS] = {
    [HN_FFN_GLU] = { hn_block_glu, hn_block_ff_scratch },
    [HN_FFN_MLP] = { hn_block_mlp, hn_block_ff_scratch },
    [HN_FFN_MOE] = { hn_block_moe, hn_block_moe_scratch },
    [HN_FFN_NONE] = { no_ffn, no_scratch },
    [HN_FFN_CHANNEL_MIX] = { hn_block_channel_mix, hn_block_channel_mix_scratch },
    [HN_FFN_GLU_MOE] = { hn_block_glu_moe, hn_block_glu_moe_scratch },
};

/* ---- the residual loop ------------------------------------------------------------------------------ */

hone_status hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err)
{
    const hn_backend_ops *op = f->be->op;
    const int32_t last = m->n_filling > 0 ? m->n_filling - 1 : 0; /* the last one that needs all rows */
    bool on = true;
    op->step_begin(f->be, f->step);
    hn_forward_start(f);
    hn_forward_begin(m, f);
    for (int32_t il = 0; il < m->hp.n_layer && (on = op->layer(f->be, il)); il++) {
        if (il == last && f->step->n_want < f->step->n_tok) f->give = HN_WANTED;
        hn_mixer_forward(m, f, il);
        hn_ffn_forward(m, f, il);
    }
    if (on) hn_forward_end(m, f);
    hone_status st = op->step_end(f->be, fault, err);
    if (on && st == HONE_OK && f->hidden)
        op->read(f->be, f->hidden, f->x, 0, (size_t)(hn_forward_rows(f) * m->hp.n_embd) * sizeof(float));
    if (on) return st;
    return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
}

/* A norm of x. */
static hn_norm norm_of(const hone_model *m, const hn_forward *f, const float *w, const float *b, int64_t n_tok)
{
    const hn_hparams *hp = &m->hp;
    return (hn_norm){ .kind = !w               ? HN_NORM_NONE
                              : hp->layer_norm ? HN_NORM_LAYER
                                               : HN_NORM_RMS,
                      .x = f->x,
                      .w = w,
                      .b = b,
                      .n = hp->n_embd,
                      .n_tok = n_tok,
                      .eps = hp->layer_norm ? hp->ln_eps : hp->rms_eps };
}

/* x becomes its norm, where there is one. */
static void norm_stream(const hone_model *m, const hn_forward *f, const float *w, const float *b)
{
    if (!w || !hn_forward_rows(f)) return;
    hn_norm norm = norm_of(m, f, w, b, hn_forward_held(f));
    norm.y = f->x;
    f->be->op->norm(f->be, &norm);
}

void hn_mixer_forward(const hone_model *m, hn_forward *f, int32_t il)
{
    if (m->hp.n_stream) hn_altup_predict(m, f, il);
    if (m->plan[il].ngram) hn_hyper_ngrams(m, f, il);
    if (m->hp.n_hyper) hn_hyper_mix(m, f, &m->layers[il].hyper_attn);
    if (m->hp.n_stack) hn_cycle_turn(m, f, il);
    if (m->plan[il].early) hn_moe_choose_early(m, f, il);
    mixers[m->plan[il].mixer].forward(m, f, il);
    norm_stream(m, f, m->layers[il].attn_out_norm, m->layers[il].attn_out_norm_b);
    if (m->hp.n_stream) hn_altup_laurel(m, f, il);
    if (m->hp.n_hyper) hn_hyper_add(m, f);
}

void hn_ffn_forward(const hone_model *m, hn_forward *f, int32_t il)
{
    if (m->hp.n_hyper && hn_forward_rows(f)) hn_hyper_mix(m, f, &m->layers[il].hyper_ffn);
    ffns[m->plan[il].ffn].forward(m, f, il);
    if (m->hp.n_hyper) hn_hyper_add(m, f);
    norm_stream(m, f, m->layers[il].layer_out_norm, m->layers[il].layer_out_norm_b);
    if (m->hp.n_stream) hn_altup_correct(m, f, il);
    else if (m->plan[il].n_ple) hn_ple_add(m, f, il);
    const float *scale = m->layers[il].out_scale;
    if (m->hp.is && m->hp.is->embd_again) hn_again_add(m, f, il);
    else if (scale) f->be->op->scale(f->be, f->x, *scale, hn_forward_rows(f) * m->hp.n_embd);
}

void hn_forward_norm(const hone_model *m, const hn_forward *f, const float *w, const float *b, int64_t n_tok)
{
    hn_norm norm = norm_of(m, f, w, b, n_tok);
    norm.act = f->s->act;
    f->be->op->norm(f->be, &norm);
}

void hn_forward_begin(const hone_model *m, hn_forward *f)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    int64_t n_tok = f->step->n_tok;
    op->layer(f->be, -1);
    op->embed(f->be, f->x, &m->token_embd, false);
    if (hp->emb_scale != 1) op->scale(f->be, f->x, hp->emb_scale, n_tok * hp->n_embd);
    if (hn_weight_is_there(&m->pos_embd)) {
        op->embed(f->be, f->h, &m->pos_embd, true);
        op->add(f->be, f->x, f->h, n_tok * hp->n_embd);
    }
    if (hp->n_stack) hn_cycle_begin(m, f);
    if (hn_weight_is_there(&m->type_embd)) {
        op->embed(f->be, f->h, &m->type_embd, true);
        op->add(f->be, f->x, f->h, n_tok * hp->n_embd);
    }
    if (hp->n_ple) hn_ple_begin(m, f);
    if (hp->n_stream) hn_altup_begin(m, f);
    if (hp->n_hyper) hn_hyper_begin(m, f);
    if (m->token_embd_norm) {
        hn_norm norm = norm_of(m, f, m->token_embd_norm, m->token_embd_norm_b, n_tok);
        norm.y = f->x;
        op->norm(f->be, &norm);
    }
    if (hp->is && hp->is->embd_again) hn_again_begin(m, f);
    for (int r = 0; r < HN_ROPES; r++)
        if (f->s->rope[r]) op->rope(f->be, f->s->rope[r], r); /* some layer asks for it */
}

void hn_forward_end(const hone_model *m, hn_forward *f)
{
    const hn_backend_ops *op = f->be->op;
    op->layer(f->be, -1);
    if (!hn_forward_rows(f)) return;
    if (m->hp.n_stream) hn_altup_end(m, f);
    if (m->hp.n_hyper) hn_hyper_mix(m, f, &m->hyper);
    if (f->hidden) {
        norm_stream(m, f, m->output_norm, m->output_norm_b);
        return;
    }
    hn_forward_norm(m, f, m->output_norm, m->output_norm_b, hn_forward_rows(f));
    op->logits(f->be, f->logits, f->s->act, &m->output, (hn_logits_tail){ m->hp.logit_mul, m->hp.logit_cap });
}

void hn_forward_narrow(const hone_model *m, hn_forward *f)
{
    if (f->give == HN_ALL || f->narrow) return;
    f->narrow = true;
    if (!f->step->n_want) return;
    hn_buf *x = f->x;
    f->be->op->gather(f->be, f->h, x, m->hp.n_embd);
    f->x = f->h;
    f->h = x;
    if (m->hp.is && m->hp.is->embd_again) hn_again_narrow(m, f);
    for (int32_t i = 0; i < m->hp.n_stream; i++) f->be->op->gather(f->be, f->spare[i], f->stream[i], m->hp.n_embd);
    hn_forward_swap(f);
    if (m->hp.n_hyper) hn_hyper_narrow(m, f);
}

void hn_forward_sub_norm(const hone_model *m, const hn_forward *f, hn_act *in, const float *w, int64_t n)
{
    const hn_norm norm = { .act = in, .w = w, .n = n, .n_tok = hn_forward_rows(f), .eps = m->hp.rms_eps };
    if (w) f->be->op->norm(f->be, &norm);
}

void hn_forward_add(const hone_model *m, const hn_forward *f, hn_act *in, const hn_weight *w, const float *post)
{
    const hn_backend_ops *op = f->be->op;
    hn_product p = { .w = w };
    if (post) p.y = f->h;
    else if (m->hp.n_hyper) p.y = f->x; /* who adds it is hn_hyper_add */
    else p.sum = f->x;
    if (p.sum) p.scale = m->hp.res_mul;
    op->matmul(f->be, in, &p, 1);
    const float eps = m->hp.post_eps != 0 ? m->hp.post_eps : m->hp.rms_eps;
    if (post) op->add_norm(f->be, f->x, f->h, post, m->hp.n_embd, hn_forward_rows(f), eps);
}

/* ---- scratch ------------------------------------------------------------------------------------------- */

/* The widest of all layers: they take turns. */
static hn_scratch_width widths(const hone_model *m)
{
    hn_scratch_width w = { .x = m->hp.n_embd, .h = m->hp.n_embd, .act = m->hp.n_embd };
    if (m->hp.n_ple) hn_ple_scratch(&m->hp, &w);
    if (m->hp.n_stream) hn_altup_scratch(&m->hp, &w);
    if (m->hp.n_hyper) hn_hyper_scratch(&m->hp, &w);
    if (m->hp.n_stack || (m->hp.is && m->hp.is->embd_again)) hn_cycle_scratch(&m->hp, &w);
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        mixers[m->plan[il].mixer].scratch(&m->hp, &m->plan[il], &w);
        ffns[m->plan[il].ffn].scratch(&m->hp, &m->plan[il], &w);
    }
    return w;
}

#define ROWS(field)                                                             \
    {                                                                           \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 0, 1, 0 \
    }
#define MANY_ROWS(field, n)                                                     \
    {                                                                           \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 0, n, 0 \
    }
#define ACTS(field, n)                                                          \
    {                                                                           \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 1, n, 0 \
    }
/* a row for each pick */
#define PICKED(field)                                                           \
    {                                                                           \
        offsetof(hn_scratch, field), offsetof(hn_scratch_width, field), 1, 1, 1 \
    }
static const struct {
    size_t at, width;
    bool act;
    int n;
    bool picked;
} parts[] = { ROWS(x),
              ROWS(h),
              ROWS(q),
              ROWS(k),
              ROWS(v),
              ROWS(query),
              ACTS(room, 1),
              ROWS(rope[HN_ROPE_ALL]),
              ROWS(rope[HN_ROPE_WINDOW]),
              ROWS(xbc),
              ROWS(conv),
              ROWS(z),
              ROWS(dt),
              ROWS(beta),
              ROWS(q_gate),
              ROWS(ple),
              ROWS(dense),
              MANY_ROWS(stream, 2 * HN_MAX_STREAM),
              ROWS(z_high),
              ROWS(z_low),
              ROWS(coef),
              ROWS(index_q),
              ROWS(index_k),
              ROWS(index_w),
              MANY_ROWS(wide, 2),
              ROWS(mixed),
              ROWS(gated),
              MANY_ROWS(inject, 2),
              ROWS(ngram),
              ROWS(value),
              ROWS(gate),
              ROWS(up),
              ROWS(r),
              ROWS(w),
              ROWS(a),
              ROWS(v_mix),
              ROWS(g),
              ROWS(v_first),
              ACTS(shift, HN_MAX_SHIFT),
              ACTS(low, HN_RWKV_MIXES),
              ACTS(act, 1),
              ACTS(ff, 1),
              ROWS(picks),
              ROWS(shared_gate),
              PICKED(moe_in),
              PICKED(moe) };
enum { N_PARTS = sizeof parts / sizeof *parts };

static int64_t width_of(const hn_scratch_width *w, int i)
{
    return *(const int64_t *)(const void *)((const char *)w + parts[i].width);
}
static void *part_of(const hn_scratch *s, int i) { return (char *)(uintptr_t)s + parts[i].at; }

uint64_t hn_scratch_bytes(const hone_model *m, hn_backend *be, int64_t n_tok)
{
    const hn_scratch_width w = widths(m);
    uint64_t bytes = 0;
    for (int i = 0; i < N_PARTS; i++) {
        int64_t n = width_of(&w, i);
        uint64_t one = parts[i].act && n ? be->op->act_bytes(be, n, parts[i].picked ? n_tok * w.n_used : n_tok)
                                         : (uint64_t)(n_tok * n) * sizeof(float);
        bytes += one * (uint64_t)parts[i].n;
    }
    return bytes;
}

bool hn_scratch_alloc(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok)
{
    const hn_scratch_width w = widths(m);
    *s = (hn_scratch){ 0 };
    for (int i = 0; i < N_PARTS; i++) {
        int64_t n = width_of(&w, i);
        if (!n) continue;
        if (!parts[i].act) {
            hn_buf **rows = part_of(s, i);
            for (int k = 0; k < parts[i].n; k++)
                if (!(rows[k] = be->op->alloc(be, (uint64_t)(n_tok * n) * sizeof(float), HN_MEM_ROWS))) return false;
            continue;
        }
        hn_act **acts = part_of(s, i);
        for (int k = 0; k < parts[i].n; k++)
            if (!(acts[k] = be->op->act_alloc(be, n, parts[i].picked ? n_tok * w.n_used : n_tok))) return false;
    }
    return true;
}

void hn_scratch_free(hn_scratch *s, hn_backend *be)
{
    for (int i = 0; i < N_PARTS; i++) {
        for (int k = 0; k < parts[i].n && !parts[i].act; k++) be->op->release(be, ((hn_buf **)part_of(s, i))[k]);
        for (int k = 0; k < parts[i].n && parts[i].act; k++) be->op->act_release(be, ((hn_act **)part_of(s, i))[k]);
    }
    *s = (hn_scratch){ 0 };
}
