/* forward: one pass over a step, made of blocks. forward.c owns the residual loop, block_*.c a layer's halves; each
 * block says what scratch it wants and does its part, by backend operations alone. They refuse to know files,
 * sessions and sampling. */
#ifndef HN_FORWARD_H
#define HN_FORWARD_H

#include "model/model.h"

/* What a forward pass works on, for n_tok rows. */
typedef struct hn_scratch {
    hn_buf *x, *h;    /* the residual stream, and what a half of a layer gives: they may change places in a pass */
    hn_act *act, *ff; /* what a half's products take; what the last product of the feed-forward part takes */
    hn_buf *q, *k, *v, *rope[HN_ROPES];
    hn_buf *query; /* latent attention: queries of latent rows */
    hn_act *room;  /* and of its products by head */
    /* experts: what was picked; the shared one's gate; rows by expert, [n_tok·n_used], that they take and that the
     * last product takes */
    hn_buf *picks, *shared_gate;
    hn_act *moe_in, *moe;
    hn_buf *xbc, *conv, *z, *dt, *beta;  /* recurrent layers: what is convolved, what comes out, gates, per head */
    hn_buf *q_gate;                      /* of attention: queries and gates, or gates alone */
    hn_buf *ple;                         /* rows of each token and layer, [n_tok, n_layer·n_ple] */
    hn_buf *dense;                       /* what the dense part gives beside experts, or a low-rank pair takes */
    hn_buf *stream[2 * HN_MAX_STREAM];   /* residual streams, and room to make them anew */
    hn_buf *index_q, *index_k, *index_w; /* of attention that chooses */
    /* a wide stream: itself, and room to narrow it; its norm, what is made of that; what its parts take; of n-grams */
    hn_buf *wide[2], *mixed, *gated, *inject[2], *ngram, *value;
    hn_buf *z_high, *z_low;   /* where two stacks take turns: what the other one gave last; or
                                         * the embedding, of all rows and of x's */
    hn_buf *coef, *gate, *up; /* coefficients of streams; a gate and what it opens, where it is sparse */
    /* RWKV */
    hn_act *shift[HN_MAX_SHIFT], *low[HN_RWKV_MIXES]; /* token-shifted inputs; activations of low rank */
    hn_buf *r, *w, *a, *v_mix, *g, *v_first;
} hn_scratch;

/* Floats of a row of each; 0: it is not wanted. */
typedef struct hn_scratch_width {
    int64_t n_used; /* experts of a row */
    int64_t picks, shared_gate, moe_in, moe;
    int64_t x, h, act, ff, q, k, v, query, room, rope[HN_ROPES], shift, low, r, w, a, v_mix, g, v_first;
    int64_t xbc, conv, z, dt, beta, q_gate, ple, dense, stream, coef, gate, up, z_high, z_low;
    int64_t index_q, index_k, index_w, wide, mixed, gated, inject, ngram, value;
} hn_scratch_width;

typedef struct hn_forward {
    hn_backend *be;
    const hn_scratch *s;
    const hn_kv *kv;       /* [n_layer] or NULL */
    const hn_state *state; /* [n_layer] or NULL */
    const hn_step_block *step;
    float *logits; /* host, [n_want, n_vocab]; or */
    float *hidden; /* [n_want, n_embd] of the stream at its end, normed */
    /* as the pass goes: */
    hn_buf *x, *h;                                        /* of s */
    hn_buf *stream[HN_MAX_STREAM], *spare[HN_MAX_STREAM]; /* of s: streams, of which x is one for a while, and room */
    hn_buf *wide, *wide_room, *inject, *inject_room;      /* likewise a wide stream, and what its parts take */
    /* rows that a layer has to give: all, or, in the last one that keeps anything of a sequence and those after it,
     * those whose logits are wanted */
    hn_which give;
    bool narrow; /* x holds these alone already */
} hn_forward;

/* All of the pass, a step from its beginning to its end; f's last fields are set here. HONE_E_INTERRUPTED: the step was
 * stopped; HONE_E_NUMERIC: *fault says what could not be stored. */
hone_status hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err);

/* Its pieces, for who measures them alone, within a step. */
void hn_forward_begin(const hone_model *m, hn_forward *f); /* embeddings into x, angles of the rows */
void hn_forward_end(const hone_model *m, hn_forward *f);   /* logits of the rows of x */
/* Before a piece: x and h are the scratch's, all rows are to be given. */
static inline void hn_forward_start(hn_forward *f)
{
    f->x = f->s->x;
    f->h = f->s->h;
    memcpy(f->stream, f->s->stream, sizeof f->stream);
    memcpy(f->spare, f->s->stream + HN_MAX_STREAM, sizeof f->spare);
    f->wide = f->s->wide[0];
    f->wide_room = f->s->wide[1];
    f->inject = f->s->inject[0];
    f->inject_room = f->s->inject[1];
    f->give = HN_ALL;
    f->narrow = false;
}

/* What was made in the room for streams is the streams. */
static inline void hn_forward_swap(hn_forward *f)
{
    for (int i = 0; i < HN_MAX_STREAM; i++) {
        hn_buf *s = f->stream[i];
        f->stream[i] = f->spare[i];
        f->spare[i] = s;
    }
}

/* Rows that x has, and that a layer has to give. */
static inline int64_t hn_forward_held(const hn_forward *f) { return f->narrow ? f->step->n_want : f->step->n_tok; }
static inline int64_t hn_forward_rows(const hn_forward *f)
{
    return f->give == HN_ALL ? f->step->n_tok : f->step->n_want;
}
/* x keeps the rows that are to be given, alone. */
void hn_forward_narrow(const hone_model *m, hn_forward *f);

/* A half of layer il: x += what it makes of norm(x), for the rows to be given; memory is filled for all. */
typedef void hn_half_fn(const hone_model *m, hn_forward *f, int32_t il);
hn_half_fn hn_mixer_forward, hn_ffn_forward; /* whichever the plan names */
hn_half_fn hn_block_attn, hn_block_linear, hn_block_mla, hn_block_glu, hn_block_mlp, hn_block_moe, hn_block_rwkv6,
    hn_block_rwkv7, hn_block_channel_mix, hn_block_conv, hn_block_mamba2, hn_block_attn_mamba2, hn_block_gdn,
    hn_block_kda, hn_block_mamba, hn_block_glu_moe;
hn_half_fn hn_moe_choose_early; /* of experts, by what the layer begins with, of rows to be given: before its mixer */
/* Norms of n_tok rows of x, into act: the model's kind, b NULL: without; w NULL: x as it is. */
void hn_forward_norm(const hone_model *m, const hn_forward *f, const float *w, const float *b, int64_t n_tok);
/* in = norm(in) [hn_forward_rows, n], where w is there. */
void hn_forward_sub_norm(const hone_model *m, const hn_forward *f, hn_act *in, const float *w, int64_t n);
/* x += post(W·in), where the layer has a norm of what a half gives; else x += W·in. */
void hn_forward_add(const hone_model *m, const hn_forward *f, hn_act *in, const hn_weight *w, const float *post);

/* Rows of each token and layer: made at the beginning, of all tokens and layers; and what layer il adds of its own, at
 * its end. */
/* The embedding, which each layer adds again (block_cycle.c): kept; of the rows of x alone; times a number added. */
void hn_again_begin(const hone_model *m, const hn_forward *f);
void hn_again_narrow(const hone_model *m, const hn_forward *f);
void hn_again_add(const hone_model *m, const hn_forward *f, int32_t il);
/* Two stacks that take turns (block_cycle.c): what the stream begins with; before layer il. */
void hn_cycle_begin(const hone_model *m, const hn_forward *f);
void hn_cycle_turn(const hone_model *m, const hn_forward *f, int32_t il);
void hn_cycle_scratch(const hn_hparams *hp, hn_scratch_width *w);
void hn_ple_begin(const hone_model *m, const hn_forward *f);
void hn_ple_add(const hone_model *m, const hn_forward *f, int32_t il);
void hn_ple_scratch(const hn_hparams *hp, hn_scratch_width *w);
/* h = proj·(gelu(gate·act) ⊙ the rows of layer il). */
void hn_ple_rows(const hone_model *m, const hn_forward *f, int32_t il);

/* Several residual streams: made of x at the beginning; predicted before a layer, x being one of them; after its mixer
 * what a low-rank pair gives is added; then all are corrected by what became of x; at the end x is their mean. */
void hn_altup_begin(const hone_model *m, const hn_forward *f);
void hn_altup_predict(const hone_model *m, hn_forward *f, int32_t il);
void hn_altup_laurel(const hone_model *m, const hn_forward *f, int32_t il);
void hn_altup_correct(const hone_model *m, const hn_forward *f, int32_t il);
void hn_altup_end(const hone_model *m, const hn_forward *f);
void hn_altup_scratch(const hn_hparams *hp, hn_scratch_width *w);

/* A wide stream: x in all its parts at the beginning; what a half takes of it, which becomes x; what that gave, added
 * to its parts; at the end x is what the head takes of it. And what it takes of n-grams, before layer il. */
void hn_hyper_begin(const hone_model *m, const hn_forward *f);
void hn_hyper_ngrams(const hone_model *m, const hn_forward *f, int32_t il);
void hn_hyper_mix(const hone_model *m, const hn_forward *f, const hn_hyper *h);
void hn_hyper_add(const hone_model *m, const hn_forward *f);
void hn_hyper_narrow(const hone_model *m, hn_forward *f);
void hn_hyper_scratch(const hn_hparams *hp, hn_scratch_width *w);

/* The steps of attention: queries, keys and values of all rows of x; their heads, stored; and, of the rows to be given,
 * scores and values. */
void hn_attn_project(const hone_model *m, const hn_forward *f, int32_t il);
void hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il);
void hn_attn_core(const hone_model *m, const hn_forward *f, int32_t il);

/* Raises w to what such a layer's block wants. */
typedef void hn_width_fn(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w);
hn_width_fn hn_block_attn_scratch, hn_block_mla_scratch, hn_block_ff_scratch, hn_block_moe_scratch,
    hn_block_rwkv_scratch, hn_block_channel_mix_scratch, hn_block_conv_scratch, hn_block_mamba2_scratch,
    hn_block_attn_mamba2_scratch, hn_block_mamba_scratch, hn_block_gdn_scratch, hn_block_kda_scratch,
    hn_block_glu_moe_scratch;
static inline void hn_at_least(int64_t *width, int64_t n) { *width = *width > n ? *width : n; }

/* Bytes of scratch for n_tok rows. */
uint64_t hn_scratch_bytes(const hone_model *m, hn_backend *be, int64_t n_tok);
/* The scratch. False: no memory; hn_scratch_free must follow in either case. */
bool hn_scratch_alloc(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok);
void hn_scratch_free(hn_scratch *s, hn_backend *be);

#endif
