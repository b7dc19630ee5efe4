/* grad.h: what grad.c, grad_new.c, attn_grad.c and loss.c share. */
#ifndef HN_TRAIN_GRAD_H
#define HN_TRAIN_GRAD_H

#include "train/train.h"

/* A matrix or vector of the model: frozen in the file, or trained whole. */
typedef struct hn_tensor_ref {
    const hn_weight *frozen; /* matrices */
    const float *values;     /* vectors; NULL: absent */
    hn_param *full;          /* or NULL */
    int64_t at;              /* of full, which may hold several: where this one begins */
} hn_tensor_ref;
static inline const float *hn_ref_values(const hn_tensor_ref *r) { return r->full ? r->full->p + r->at : r->values; }
static inline float *hn_ref_grad(const hn_tensor_ref *r) { return r->full->g + r->at; }

typedef struct hn_linear {
    hn_tensor_ref w, bias;
    hn_param *a, *b;            /* the adapter, or NULL */
    int64_t b_row;              /* of b: the first of this matrix; of several in one tensor the adapter is one */
    int64_t n_in, n_out;        /* 0: the layer has no such matrix */
    uint64_t id;                /* of the module, for dropout */
    bool x_rounded, dy_rounded; /* their rows come through hn_gemm_round, where only y or only dx is made of them */
} hn_linear;

enum { HN_LIN_Q, HN_LIN_K, HN_LIN_V, HN_LIN_O, HN_LIN_GATE, HN_LIN_UP, HN_LIN_DOWN, HN_LIN_KINDS };

typedef struct hn_tgrad_layer {
    const hn_layer_plan *plan;
    hn_tensor_ref attn_norm, attn_norm_b, ffn_norm, ffn_norm_b, attn_post, ffn_post, q_norm, k_norm;
    hn_linear lin[HN_LIN_KINDS];
} hn_tgrad_layer;

/* What backward needs of a layer, [max_tok] rows each. */
enum { HN_KEPT_ARRAYS = 11 };
typedef struct hn_kept {
    float *q, *k, *v, *o, *x1, *gate, *up; /* q, k after norm and rotation; gate NULL: the layer has none */
    float *q_raw, *k_raw;                  /* what norms of heads took, where there are such; else NULL */
    float *half1, *half2;                  /* the same of norms of what a half gives */
    float *lse;                            /* [max_tok, n_head] log Σ exp of the scores */
} hn_kept;
/* The same, rounded to bf16 (x0 too); lse stays f32. */
typedef struct hn_kept_half {
    uint16_t *x0, *part[HN_KEPT_ARRAYS];
} hn_kept_half;
/* Array i of a layer's, and how wide its rows are; 0: layers have none. grad_new.c */
float **hn_kept_array(const hn_grad *g, hn_kept *k, int i, int64_t *width);

/* Memory that lies in that of the logits. */
typedef struct hn_shared {
    float **p;
    uint64_t n;
} hn_shared;
enum { HN_MAX_SHARED = HN_KEPT_ARRAYS + 2 };

struct hn_grad {
    hn_grad_params p;
    const hone_model *m;
    hn_gemm_ctx *gemm;
    hn_tgrad_layer *layer; /* [n_layer] */
    hn_tensor_ref token_embd, pos_embd, output_norm, output_norm_b;
    hn_linear output;
    hn_param *param; /* [n_param] */
    int32_t n_param;
    int32_t low; /* lowest layer with anything trained; backward stops there */
    bool embd_trained;
    int32_t n_kept;     /* sets of kept arrays: of each layer from low on, or one */
    hn_kept *kept;      /* [n_kept], or one where they are kept as bf16 */
    hn_kept_half *half; /* [n_kept] or NULL */
    float **x0;         /* [n_layer + 1] each layer's input (of those kept), the last one's output */
    float *n1, *h, *dropped, *inner, *d_inner; /* [T, D] [T, F] [T, max n_in] [T, rank] */
    float *dx, *dn, *dq, *dk, *dv, *d_o, *dh, *dq_raw, *dk_raw;
    float *dr;                                         /* [T, D] of what a half gives, where that is not dx */
    const hn_rope *angles[HN_ROPES];                   /* NULL: no layer turns so */
    float *rope[HN_ROPES], *rope_back[HN_ROPES], *tau; /* tau [T]: queries grow by it, or NULL */
    float *delta, *inv_rms;
    float *slope; /* [threads, n_vocab] of capped logits */
    float *attn;  /* scratch of attention, [threads] */
    float *last, *z, *dz,
        *logits;   /* the head: rows of the last layer's output, normed, gradient [chunk, D]; [chunk, n_vocab] */
    int32_t *rows; /* [T] rows with a target */
    double *loss;  /* [T] of each of them */
    hn_shared shared[HN_MAX_SHARED];
    uint64_t shared_floats;
    int32_t n_shared, chunk, last_n;
    uint64_t drop_key, bytes;
    hn_step_look look;
    void **own;
    int32_t n_own, cap_own;
};

/* What is told from here on belongs there. */
static inline void hn_grad_at(hn_grad *g, hn_train_part part, int32_t layer)
{
    g->look.part = part;
    g->look.layer = layer;
}

/* w->o and lse of q, k, v; g->dq, dk, dv of g->d_o. attn_grad.c */
void hn_attn_forward(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p);
void hn_attn_backward(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p);
uint64_t hn_attn_scratch(const hn_hparams *hp); /* floats a thread */

/* Σ −log p over b's targets of the last layer's output x [T, D]; weight ≠ 0: dx = the gradient of weight·that. loss.c
 */
double hn_head_loss(hn_grad *g, const hn_train_batch *b, const float *x, double weight, float *dx);

float hn_train_max(const float *x, int64_t n); /* n > 0; NaNs may be passed over. loss.c */

/* The operations of grad.c and their gradients, for loss.c and tests: n rows each. */
/* y = norm(x)·w of n_embd; rows of any width: dx += */
void hn_train_norm(hn_grad *g, float *y, const float *x, const hn_tensor_ref *w, int64_t n);
void hn_train_norm_back(hn_grad *g, float *dx, const float *dy, const float *x, const hn_tensor_ref *w, int64_t n,
                        int64_t width);
/* The family's norm of rows of the stream: that, or LayerNorm with bias b (absent: 0); dx += */
void hn_train_stream_norm(hn_grad *g, float *y, const float *x, const hn_tensor_ref *w, const hn_tensor_ref *b,
                          int64_t n);
void hn_train_stream_norm_back(hn_grad *g, float *dx, const float *dy, const float *x, const hn_tensor_ref *w,
                               const hn_tensor_ref *b, int64_t n);
/* y [n, n_out] = W·x + b + s·B·(A·x); dx = or, with add, +=, where it is wanted; x only where W, A or B is trained */
void hn_train_linear(hn_grad *g, const hn_linear *l, float *y, const float *x, int64_t n);
void hn_train_linear_back(hn_grad *g, const hn_linear *l, float *dx, bool add, const float *dy, const float *x,
                          int64_t n);
/* h = act(a)·u [n, n_ff] by the plan, or, where a is NULL, map(u); a, u become their gradients; rounded: what is made
 * goes through hn_gemm_round */
void hn_train_gate(hn_grad *g, const hn_layer_plan *p, float *h, const float *a, const float *u, int64_t n,
                   bool rounded);
void hn_train_gate_back(hn_grad *g, const hn_layer_plan *p, float *a, float *u, const float *dh, int64_t n,
                        bool rounded);
/* q [n, H·d], k [n, K·d] through the norms of heads, where there are such, and the rotation, before or after it, in
 * place, and q's growth; q_raw, k_raw take what the norms took. The same for their gradients. After hn_train_embed. */
void hn_train_heads(hn_grad *g, const hn_tgrad_layer *l, float *q, float *k, float *q_raw, float *k_raw, int64_t n);
void hn_train_heads_back(hn_grad *g, const hn_tgrad_layer *l, float *dq, float *dk, const float *q_raw,
                         const float *k_raw, int64_t n);
/* x [n_tok, n_embd] of b's tokens, and the rotations of their positions; dx is added to the gradient of the embedding,
 * which is trained */
void hn_train_embed(hn_grad *g, float *x, const hn_train_batch *b);
void hn_train_embed_back(hn_grad *g, const float *dx, const hn_train_batch *b);

#endif
