/* train: gradients of a model with respect to adapters or to all its weights, the
 * optimizer, data and checkpoints. Knows models and text; refuses to know sessions'
 * caches, the command line and drawing.
 *
 * All numbers are f32 unless said; sums over many elements that are reported are
 * double. Nothing here depends on the number of threads: an element is always computed
 * by one of them, in an order that the shapes alone decide. */
#ifndef HN_TRAIN_H
#define HN_TRAIN_H

#include "kernels/kernels.h"
#include "model/model.h"
#include "train/look.h"

/* ---- products (gemm.c) --------------------------------------------------------------------- */

/* C [m, n] = alpha·Σ_k …, row major, added to C where add is set:
 *   HN_GEMM_NT  A[m][k]·B[n][k]   B's rows of any type: y = x·Wᵀ
 *   HN_GEMM_NN  A[m][k]·B[k][n]   B's rows of any type: dx = dy·W
 *   HN_GEMM_TN  A[k][m]·B[k][n]   both f32: dW = dyᵀ·x
 * B is decoded exactly. Rule, on every level, for any tiling and number of threads: per 256 k a chain
 * of fma from 0 in ascending k; the first block's sum, then += each further one's; times alpha (left out
 * where it is 1), then C += it.
 * bf16: A's and B's elements are rounded to bf16 (nearest even, subnormals to 0) and multiplied as the
 * processor's bf16 dot product does: kernels.h says how; also the same bits on every level. */
typedef enum hn_gemm_form { HN_GEMM_NT, HN_GEMM_NN, HN_GEMM_TN } hn_gemm_form;
typedef struct hn_gemm {
    hn_gemm_form form;
    float *c;
    const float *a;
    const void *b;
    hn_type b_type;
    size_t b_row_bytes; /* bytes between rows of B */
    int64_t ldc, lda;   /* floats between rows */
    int64_t m, n, k;
    float alpha;
    bool add, bf16;
    bool a_rounded; /* with bf16, not TN: A's rows have been through hn_gemm_round */
} hn_gemm;
typedef struct hn_gemm_ctx hn_gemm_ctx;
/* pool and k are borrowed. */
hone_status hn_gemm_new(hn_gemm_ctx **out, hn_pool *pool, const hn_kernels *k, hone_error *err);
void hn_gemm_free(hn_gemm_ctx *g);
uint64_t hn_gemm_bytes(const hn_gemm_ctx *g); /* of memory held */
/* A row of n floats in place as a product with bf16 and a_rounded wants it: pairs in its first half where the processor
 * multiplies pairs, else as it was. */
void hn_gemm_round(const hn_gemm_ctx *g, float *x, int64_t n);
/* On all threads of the pool; not within hn_pool_run. Empty shapes do nothing but, without add, zero C. */
void hn_gemm_run(hn_gemm_ctx *g, const hn_gemm *p);
/* The same by the calling thread `thread` of the pool alone, from within hn_pool_run; B f32 only, no bf16;
 * m, n, k ≤ 256. */
void hn_gemm_serial(hn_gemm_ctx *g, int32_t thread, const hn_gemm *p);

/* ---- data (dataset.c, loader.c) --------------------------------------------------------------- */

/* Tokens of one or several documents in a row, each an own sequence from position 0. Row t's target is
 * the token after it in its document, or -1 where it does not count. No padding. */
typedef struct hn_train_batch {
    int32_t n_tok, n_doc, n_target;
    const int32_t *ids, *target, *pos; /* [n_tok] */
    const int32_t *doc;                /* [n_doc + 1] first row of each document; doc[n_doc] = n_tok */
} hn_train_batch;

/* ---- gradients (grad.c) ------------------------------------------------------------------------ */

/* A trainable array: an adapter's A [rank, n_in] or B [n_out, rank], or a whole tensor [rows, cols]. */
typedef struct hn_param {
    char name[96]; /* "blk.0.attn_q.weight.lora_a", "blk.0.attn_norm.weight" */
    float *p, *g;  /* value, gradient: [rows, cols] */
    int64_t rows, cols;
    bool decay; /* matrices: weight decay acts on them */
} hn_param;

enum {
    HN_TGT_Q = 1,
    HN_TGT_K = 2,
    HN_TGT_V = 4,
    HN_TGT_O = 8,
    HN_TGT_GATE = 16,
    HN_TGT_UP = 32,
    HN_TGT_DOWN = 64,
    HN_TGT_KINDS = 7
};

typedef struct hn_grad_params {
    hn_pool *pool; /* borrowed */
    const hn_kernels *kernels;
    bool full;           /* all weights are trained (copied to f32); else adapters */
    uint32_t targets;    /* HN_TGT_…; adapters */
    int32_t first_layer; /* adapters in layers [first_layer, n_layer) */
    int32_t rank;
    float scale;     /* s = alpha/rank or alpha/sqrt(rank) */
    float dropout;   /* of the adapters' inputs, [0, 1) */
    uint64_t seed;   /* A's first values, dropout */
    int32_t max_tok; /* rows of a batch at most */
    int32_t n_ctx;   /* positions of sessions that will run it: some models turn otherwise in long ones */
    bool checkpoint; /* keep only each layer's input, compute the rest again */
    bool bf16;       /* products of bf16-rounded operands; activations are kept as bf16 */
} hn_grad_params;

typedef struct hn_grad hn_grad;
/* HONE_E_UNSUPPORTED, with its name: some block of the model has no gradient here. */
hone_status hn_grad_check(const hone_model *m, hone_error *err);
/* Weights of adapters of the targets in layers [first_layer, n_layer). Matrices that are one tensor have one adapter,
 * if any of them is a target. */
int64_t hn_grad_count(const hone_model *m, uint32_t targets, int32_t first_layer, int32_t rank);
/* As hn_grad_check refuses. m is borrowed. */
hone_status hn_grad_new(hn_grad **out, const hone_model *m, const hn_grad_params *p, hone_error *err);
void hn_grad_free(hn_grad *g);
uint64_t hn_grad_bytes(const hn_grad *g); /* of memory held */
int32_t hn_grad_n_param(const hn_grad *g);
hn_param *hn_grad_param(hn_grad *g, int32_t i);
void hn_grad_zero(hn_grad *g); /* all gradients */
/* Forward over b. *loss: Σ over targets of −log p, double. weight ≠ 0: then backward, with gradients of weight·loss
 * added (weight = 1 / targets of the whole step). dropout_key: of this micro-batch; 0: no dropout.
 * A loss that is not finite: HONE_OK, *loss says so, gradients are of no use. */
hone_status hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                        hone_error *err);
/* fn is told of each operation of hn_grad_run, when it is done; NULL: off. The numbers are the same. */
void hn_grad_set_look(hn_grad *g, hn_look_fn *fn, void *arg);
/* Logits [n, n_vocab] of rows index[i] of the last hn_grad_run, for checks. */
void hn_grad_logits(hn_grad *g, const int32_t *index, int32_t n, float *logits);

/* ---- optimizer (adam.c) --------------------------------------------------------------------------- */

typedef struct hn_adam {
    double beta1, beta2, eps, weight_decay; /* double: 1 − 0.999f is off by 1.3e-5 */
} hn_adam;
/* One AdamW step of PyTorch's order, step t = 1, 2, …: p *= 1 − lr·wd (where decay); m, v; p −= lr·m̂/(√v̂ + eps).
 * Elements are independent: any range of an array alone. */
void hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t, double lr,
                  bool decay);
/* √Σg² over all, in double and in a fixed order. */
double hn_grad_norm(const hn_grad *g);

#endif
