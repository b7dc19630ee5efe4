/* forward: one pass over a batch, made of blocks. forward.c owns the residual loop, block_*.c a layer's halves; each
 * block says what scratch it wants and does its part, by backend operations alone. They refuse to know files,
 * sessions and sampling. */
#ifndef HN_FORWARD_H
#define HN_FORWARD_H

#include "model/model.h"

/* What a forward pass works on, for n_tok rows. */
typedef struct hn_scratch {
    float *x, *h;   /* the residual stream; what a half of a layer gives, and room for its products */
    hn_act act, ff; /* what a half's products take; what the last product of the feed-forward part takes */
    float *q, *k, *v, *up, *rope[HN_ROPES];
    /* RWKV */
    hn_act shift[HN_MAX_SHIFT], low[HN_RWKV_MIXES]; /* token-shifted inputs; activations of low rank */
    float *r, *w, *a, *v_mix, *g, *v_first;
} hn_scratch;

/* Floats of a row of each; 0: it is not wanted. */
typedef struct hn_scratch_width {
    int64_t x, h, act, ff, q, k, v, up, rope[HN_ROPES], shift, low, r, w, a, v_mix, g, v_first;
} hn_scratch_width;

typedef struct hn_forward {
    hn_backend *be;
    hn_scratch *s;
    const hn_kv *kv;       /* [n_layer] or NULL */
    const hn_state *state; /* [n_layer] or NULL */
    const hn_row *rows;    /* [n_tok] */
    int32_t n_tok;
    const int32_t *want; /* [n_want] rows whose logits are wanted */
    int32_t n_want;
    float *logits;            /* host, [n_want, n_vocab] */
    bool (*abort_fn)(void *); /* asked before each layer; NULL: never */
    void *abort_arg;
} hn_forward;

/* All of the pass; false: aborted. */
bool hn_forward_run(const hone_model *m, const hn_forward *f);

/* Its pieces, for who measures them alone. */
void hn_forward_begin(const hone_model *m, const hn_forward *f);          /* embeddings into x, angles of the rows */
void hn_forward_end(const hone_model *m, const hn_forward *f, int64_t n); /* logits of the n rows of x */

/* Rows of the batch that a layer has to give: all, or, in the last layer, those whose logits are wanted. */
typedef struct hn_wanted {
    const int32_t *index; /* [n]; NULL: x holds these n rows already */
    int64_t n;
} hn_wanted;
/* x keeps the wanted rows alone. */
void hn_forward_narrow(const hone_model *m, const hn_forward *f, hn_wanted *rows);

/* A half of layer il: x += what it makes of norm(x), for the wanted rows; memory is filled for all. */
typedef void hn_half_fn(const hone_model *m, const hn_forward *f, int32_t il, hn_wanted *rows);
hn_half_fn hn_mixer_forward, hn_ffn_forward; /* whichever the plan names */
hn_half_fn hn_block_attn, hn_block_glu, hn_block_rwkv6, hn_block_rwkv7, hn_block_channel_mix;
/* x += post(W·in), where the layer has a norm of what a half gives; else x += W·in. */
void hn_forward_add(const hone_model *m, const hn_forward *f, hn_act *in, const hn_weight *w, const float *post);

/* The steps of attention, of all rows: queries, keys and values of x; their heads, stored; and scores and values. */
void hn_attn_project(const hone_model *m, const hn_forward *f, int32_t il);
void hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il);
void hn_attn_core(const hone_model *m, const hn_forward *f, int32_t il, const hn_wanted *rows);

/* Raises w to what such a layer's block wants. */
typedef void hn_width_fn(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w);
hn_width_fn hn_block_attn_scratch, hn_block_glu_scratch, hn_block_rwkv_scratch, hn_block_channel_mix_scratch;
static inline void hn_at_least(int64_t *width, int64_t n) { *width = *width > n ? *width : n; }

/* Scratch for n_tok rows. False: no memory; hn_scratch_free must follow in either case. */
bool hn_scratch_alloc(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok);
void hn_scratch_free(hn_scratch *s, const hone_model *m, hn_backend *be, int64_t n_tok);
/* Each block of it; n in bytes. */
void hn_scratch_each(const hn_scratch *s, const hone_model *m, int64_t n_tok, hn_block_fn *fn, void *arg);

#endif
