/* backend: the operations a model is made of. The architectures call only these, so
 * another device replaces one file. Knows matrices, caches and kernels; refuses to
 * know architectures, files and text.
 *
 * Buffers: float pointers from `alloc` belong to the backend and are never
 * dereferenced by a model. Operations on n_tok rows take and give [n_tok, n] row
 * major. They cannot fail: shapes were checked when the model was bound, memory was
 * sized when the session was made. */
#ifndef HN_BACKEND_H
#define HN_BACKEND_H

#include "kernels/kernels.h"

/* W [n_out, n_in] in place in the mapping, and what is added to its product. */
typedef struct hn_weight {
    const void *data;  /* NULL: absent */
    const float *bias; /* [n_out] or NULL */
    hn_type type;
    int64_t n_in, n_out;
    size_t row_bytes;
    const void *packed; /* the same numbers in groups of HN_PACK_ROWS rows (quant/pack.h), or NULL */
    size_t group_bytes;
} hn_weight;

/* Activations [n_tok, n] to be multiplied with: f32, and the block forms that the
 * weights ask for, each made once and shared by all of them. */
typedef struct hn_act {
    float *f32;          /* row stride hn_f32_stride(n) */
    void *q256, *q32;
    int64_t n, n_tok;
    bool have[HN_ACT_KINDS];
    const float *norm_x, *norm_w; /* set: f32 = RMSNorm(norm_x)·norm_w is still to be made, by the first product */
    float norm_eps;
} hn_act;

/* The cache of one layer. Plane of (seq, head): n_pos positions, K as [n_pos/16][d][16],
 * V as [n_pos][d]; n_pos a multiple of 64. */
typedef struct hn_kv {
    char *k, *v;
    size_t plane_bytes; /* of one (seq, head) */
    int32_t n_head_kv;
    int64_t d;
    bool f16;
} hn_kv;

/* Up to so many columns a product is bound by reading its weights. */
enum { HN_FEW_TOKENS = 4 };

/* Where each row of a batch belongs. */
typedef struct hn_row {
    int32_t token, seq;
    int64_t pos;
} hn_row;

typedef struct hn_product { /* y = W·act (+ bias) */
    const hn_weight *w;
    float *y;   /* [n_tok, n_out]; with sum: scratch of n_tok·(n_out + 31) floats */
    float *sum; /* [n_tok, n_out]: sum += the product; or NULL */
} hn_product;

typedef struct hn_backend hn_backend;
typedef struct hn_backend_ops {
    const char *name;
    float *(*alloc)(hn_backend *b, uint64_t n_floats);   /* zeroed, untouched; NULL: no memory */
    void (*release)(hn_backend *b, float *p, uint64_t n_floats);
    bool (*act_alloc)(hn_backend *b, hn_act *a, int64_t n_max, int64_t n_tok_max);
    /* also of what act_alloc left half done, and of a zeroed one */
    void (*act_release)(hn_backend *b, hn_act *a, int64_t n_max, int64_t n_tok_max);
    /* y[t] = row tokens[t] of W, as f32 */
    void (*embed)(hn_backend *b, float *y, const hn_weight *w, const hn_row *rows, int64_t n_tok);
    /* act = RMSNorm(x)·w; x must stay as it is until the act's first product */
    void (*rms_norm)(hn_backend *b, hn_act *act, const float *x, const float *w, int64_t n, int64_t n_tok, float eps);
    /* act = x */
    void (*set_act)(hn_backend *b, hn_act *act, const float *x, int64_t n, int64_t n_tok);
    /* out = silu(gate·act) ⊙ (up·act), both [n_out, n_in]; up_y is scratch of n_tok·(n_out + 31) floats */
    void (*gate_up)(hn_backend *b, hn_act *out, hn_act *act, const hn_weight *gate, const hn_weight *up, float *up_y);
    /* up to four products of one activation, in one go */
    void (*matmul)(hn_backend *b, hn_act *act, const hn_product *p, int n_product);
    /* per head of d: x = RMSNorm(x)·w, for x [n_tok, n_head·d] */
    void (*head_norm)(hn_backend *b, float *x, const float *w, int64_t n_head, int64_t d, int64_t n_tok, float eps);
    /* cs[t] = cos, sin of pos·freq [n_rot/2][2] */
    void (*rope_table)(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows, int64_t n_tok);
    void (*rope)(hn_backend *b, float *x, const float *cs, int64_t n_head, int64_t d, int32_t n_rot, bool neox, int64_t n_tok);
    /* writes k, v [n_tok, n_head_kv·d] at their rows' places */
    void (*kv_store)(hn_backend *b, const hn_kv *kv, const float *k, const float *v, const hn_row *rows, int64_t n_tok);
    /* out [n_tok, n_head·d] = causal attention of q over each row's own sequence */
    void (*attention)(hn_backend *b, float *out, const float *q, const hn_kv *kv, const hn_row *rows, int64_t n_tok, int64_t n_head, float scale);
    /* y[i] = x[index[i]], rows of n; y may be x when index ascends */
    void (*gather)(hn_backend *b, float *y, const float *x, const int32_t *index, int64_t n, int64_t n_index);
    /* logits to host memory [n_tok, n_vocab] */
    void (*head)(hn_backend *b, float *logits, hn_act *act, const hn_weight *w);
    void (*free)(hn_backend *b);
} hn_backend_ops;

struct hn_backend {
    const hn_backend_ops *op;
};

/* The CPU backend on a pool (borrowed) and a level. max_n_in: longest weight row,
 * n_head·d of the widest attention: max_group queries share a KV head of d. */
hone_status hn_backend_cpu_new(hn_backend **out, hn_pool *pool, const hn_kernels *kernels, int64_t max_n_in,
                               int64_t max_group, int64_t d, hone_error *err);

#endif
