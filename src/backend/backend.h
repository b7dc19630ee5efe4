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

/* An adapter of a matrix: its product becomes W·x + B·h, h = scale·(A·x), all f32: h by the float rule, times scale;
 * each element of B·h a chain of fma over ascending rank that begins with the product (several adapters: in order,
 * one after the other), before the bias. */
typedef struct hn_delta {
    const float *a; /* [rank, n_in] */
    const float *b; /* B transposed: element (row r, j) at b[j·ldb + r] */
    int64_t ldb, rank;
    float scale;
} hn_delta;

/* What a matrix is in its layer, whatever its family calls it. */
typedef enum hn_role {
    HN_ROLE_NONE = 0,
    HN_ROLE_EMBD,
    HN_ROLE_OUTPUT,
    HN_ROLE_ATTN_Q,
    HN_ROLE_ATTN_K,
    HN_ROLE_ATTN_V,
    HN_ROLE_ATTN_OUTPUT,
    HN_ROLE_FFN_GATE,
    HN_ROLE_FFN_UP,
    HN_ROLE_FFN_DOWN,
    /* RWKV: time mix, the factors of its low-rank pairs, channel mix */
    HN_ROLE_TIME_R,
    HN_ROLE_TIME_K,
    HN_ROLE_TIME_V,
    HN_ROLE_TIME_G,
    HN_ROLE_TIME_OUTPUT,
    HN_ROLE_LOW_IN,
    HN_ROLE_LOW_OUT,
    HN_ROLE_DECAY_OUT, /* the second factor of the decay, alone in RWKV-6 */
    HN_ROLE_MIX_IN,
    HN_ROLE_MIX_OUT,
    HN_ROLE_CHANNEL_K,
    HN_ROLE_CHANNEL_V,
    HN_ROLE_CHANNEL_R,
    HN_ROLE_KINDS
} hn_role;

/* How rows of a matrix are dealt out to those who share a model's work. */
typedef enum hn_cut {
    HN_CUT_WHOLE = 0, /* everybody has it */
    HN_CUT_ROWS,      /* by rows, the product is gathered */
    HN_CUT_KEEP,      /* by rows, the product stays where it is */
    HN_CUT_HEADS,     /* by heads of queries */
    HN_CUT_KV_HEADS   /* by heads of keys and values */
} hn_cut;

/* W [n_out, n_in] in place in the mapping, and what is added to its product. */
typedef struct hn_weight {
    const void *data;  /* NULL: absent */
    const float *bias; /* [n_out] or NULL */
    hn_type type;
    int64_t n_in, n_out;
    size_t row_bytes;
    const void *packed; /* the same numbers in groups of HN_PACK_ROWS rows (quant/pack.h), or NULL */
    size_t group_bytes;
    const hn_delta *delta; /* [n_delta]; a session's weights only */
    int32_t n_delta;
    int32_t layer; /* −1: outside layers */
    hn_role role;
    hn_cut cut;
} hn_weight;

/* Activations [n_tok, n] to be multiplied with: f32, and the block forms that the
 * weights ask for, each made once and shared by all of them. */
typedef struct hn_act {
    float *f32; /* row stride hn_f32_stride(n) */
    void *q256, *q32;
    int64_t n, n_tok;
    bool have[HN_ACT_KINDS];
    const float *norm_x, *norm_w; /* set: f32 = RMSNorm(norm_x)·norm_w is still to be made, by the first product */
    float norm_eps;
    bool layer_norm; /* it is a LayerNorm, with norm_b */
    const float *norm_b;
} hn_act;

/* The cache of one layer. A sequence's positions lie in pages of HN_PAGE, which have numbers; a page holds all layers
 * of its group and their heads. A sequence is a table of numbers, and two of them may name the same page. */
typedef struct hn_kv {
    char *k, *v;          /* of page 0, head 0 */
    const uint32_t *page; /* [sequence][n_page] numbers; NULL: one sequence, in pages 0, 1, 2, … */
    int64_t n_page;
    size_t page_bytes, head_bytes;
    int32_t n_head_kv;
    int64_t d;
    hn_cache_type type;
} hn_kv;

/* The pages of a sequence; NULL: in order. */
static inline const uint32_t *hn_kv_table(const hn_kv *kv, int32_t seq)
{
    return kv->page ? kv->page + (size_t)seq * (size_t)kv->n_page : NULL;
}
/* Bytes from k (v) to where the page of position pos begins, of a head; the position is pos % HN_PAGE there. */
static inline size_t hn_kv_at(const hn_kv *kv, int32_t seq, int64_t pos, int64_t head)
{
    size_t i = (size_t)pos / HN_PAGE;
    return (kv->page ? hn_kv_table(kv, seq)[i] : i) * kv->page_bytes + (size_t)head * kv->head_bytes;
}

/* The state of one recurrent layer, f32: the inputs that time mix and channel mix saw last, a_prev[n_embd] and
 * f_prev[n_embd], and S [n_head][n key][n value]. A sequence has its states in one block, which has a number. */
typedef struct hn_state {
    float *mem;            /* of block 0, this layer */
    const uint32_t *block; /* [sequence] numbers; NULL: the sequence's own */
    size_t block_floats;
    int64_t n_embd;
} hn_state;

/* What one layer keeps of a sequence: bits, as a layer may have several. */
enum {
    HN_MEMORY_KV = 1,     /* keys and values of each position, or of the last `window` */
    HN_MEMORY_LATENT = 2, /* one row of each position, d_k wide, that is key and value */
    HN_MEMORY_STATE = 4,  /* floats that each position changes */
    HN_MEMORY_CONV = 8    /* the tail of a convolution: floats likewise, after the state's */
};
typedef struct hn_memory_layer {
    uint8_t kind;                /* of the bits; 0: nothing */
    int32_t n_head_kv, d_k, d_v; /* KV; latent: 1, width, 0 */
    int32_t window;              /* a query at p reads positions from p − window + 1 on; 0: all */
    int32_t kv_from;             /* the layer whose keys and values it reads, having none; −1: its own */
    int64_t state_floats, conv_floats;
} hn_memory_layer;
enum { HN_PREV_TIME_MIX = 0, HN_PREV_CHANNEL_MIX = 1 };

/* Up to so many columns a product is bound by reading its weights. */
enum { HN_FEW_TOKENS = 4 };
/* What becomes of the queries, keys and values of a batch before attention. */
typedef struct hn_heads {
    float *q, *k;                 /* [n_tok, n_head·d], [n_tok, n_head_kv·d]; changed in place */
    const float *v;               /* [n_tok, n_head_kv·d] */
    const float *q_norm, *k_norm; /* [d] of RMSNorm per head, or NULL */
    const float *cs;              /* of rope_table */
    int64_t n_head;
    int32_t n_rot;
    bool neox;
    float eps;
} hn_heads;

/* Where each row of a batch belongs. */
typedef struct hn_row {
    int32_t token, seq;
    int64_t pos;
    int32_t prev; /* recurrent models: the row of this batch that the sequence had before, −1: none, its state */
    bool last;    /* and whether it has no further one */
} hn_row;

/* y = map(W·in (+ bias)); times mul, added to sum or made an activation, where these are given. */
typedef struct hn_product {
    const hn_weight *w;
    float *y;         /* [n_tok, n_out]; with sum: scratch of n_tok·(n_out + 31) floats */
    float *sum;       /* [n_tok, n_out]: sum += the product; or NULL */
    hn_act *in;       /* NULL: the call's */
    hn_act *out;      /* takes the place of y; or NULL */
    const float *mul; /* [n_tok, n_out] */
    hn_map map;
} hn_product;

/* What a step could not store: the first value of a batch that is too large for its cache, or no finite number. */
typedef struct hn_fault {
    const hn_kv *kv; /* of the layer, as it was handed to heads; NULL: nothing of the kind happened */
    char what;       /* 'K' or 'V' */
    int32_t seq;
    int64_t pos, head;
    float value, limit; /* limit: hn_cache_limit of the cache */
} hn_fault;

enum { HN_MAX_PRODUCT = 8 };

/* x_c = h + (prev − h)·(lerp_c + delta_c) for several c, where h = LayerNorm(x) and prev is that of the
 * token before it in the sequence. */
enum { HN_MAX_SHIFT = 6 };
typedef struct hn_shift {
    const float *x, *ln_w, *ln_b; /* x [n_tok, n_embd]; NULL: h is there already */
    float *h;                     /* [n_tok, n_embd] */
    float eps;
    int n;
    hn_act *out[HN_MAX_SHIFT];
    const float *lerp[HN_MAX_SHIFT];  /* [n_embd] */
    const float *delta[HN_MAX_SHIFT]; /* [n_tok, n_embd] or NULL */
    int part;                         /* HN_PREV_… */
    bool keep;                        /* the last h of each sequence goes into its state */
} hn_shift;

/* RWKV's recurrence over a batch; kernels.h has the formulas. [n_tok, n_head·n] and [n_head·n]. */
typedef struct hn_time_mix {
    const float *r, *k, *v, *w, *g;
    const float *ln_w, *ln_b;
    const float *a, *v_mix, *k_k, *k_a, *r_k; /* RWKV-7, */
    float *v_first;
    const float *first; /* RWKV-6 where it is not NULL */
    int32_t n_head, n;
    float eps;
} hn_time_mix;

typedef struct hn_backend hn_backend;
typedef struct hn_backend_ops {
    const char *name;
    float *(*alloc)(hn_backend *b, uint64_t n_floats);       /* zeroed, untouched; NULL: no memory */
    float *(*alloc_cache)(hn_backend *b, uint64_t n_floats); /* the same for hn_kv, which fills from the front */
    void (*release)(hn_backend *b, float *p, uint64_t n_floats);
    /* bytes of caches and states, which nobody else dereferences: */
    void (*copy)(hn_backend *b, void *dst, const void *src, size_t n); /* apart from each other */
    void (*fill0)(hn_backend *b, void *dst, size_t n);
    void (*read)(hn_backend *b, void *host, const void *src, size_t n);
    void (*write)(hn_backend *b, void *dst, const void *host, size_t n);
    bool (*act_alloc)(hn_backend *b, hn_act *a, int64_t n_max, int64_t n_tok_max);
    /* also of what act_alloc left half done, and of a zeroed one */
    void (*act_release)(hn_backend *b, hn_act *a, int64_t n_max, int64_t n_tok_max);
    /* Room for the adapters of any one call, before the first: at most n_floats of h (hn_f32_stride(rank) each) for
     * each of n_tok rows. False: no memory, and the room is as it was. */
    bool (*reserve_deltas)(hn_backend *b, int64_t n_floats, int64_t n_tok);
    /* What follows belongs to layer il, or, where it is −1, to none. */
    void (*layer)(hn_backend *b, int32_t il);
    /* y[t] = row tokens[t] of W, as f32; without adapters */
    void (*embed)(hn_backend *b, float *y, const hn_weight *w, const hn_row *rows, int64_t n_tok);
    /* act = RMSNorm(x)·w; x must stay as it is until the act's first product */
    void (*rms_norm)(hn_backend *b, hn_act *act, const float *x, const float *w, int64_t n, int64_t n_tok, float eps);
    /* act = (x − mean)/sqrt(var + eps)·w + b, made like rms_norm's */
    void (*layer_norm)(hn_backend *b, hn_act *act, const float *x, const float *w, const float *bias, int64_t n,
                       int64_t n_tok, float eps);
    /* the same of rows in place */
    void (*layer_norm_rows)(hn_backend *b, float *x, const float *w, const float *bias, int64_t n, int64_t n_tok,
                            float eps);
    /* the outputs of s for rows index[i] of the batch (ascending; NULL: all), n_index of them; h and the state for all
     */
    void (*token_shift)(hn_backend *b, const hn_shift *s, const hn_state *state, const hn_row *rows, int64_t n_tok,
                        const int32_t *index, int64_t n_index);
    /* act = m's output; the states advance over the rows of their sequences */
    void (*time_mix)(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state, const hn_row *rows,
                     int64_t n_tok);
    /* x += RMSNorm(y)·w, rows of n; y may be changed */
    void (*add_norm)(hn_backend *b, float *x, float *y, const float *w, int64_t n, int64_t n_tok, float eps);
    /* x *= f */
    void (*scale)(hn_backend *b, float *x, float f, int64_t n);
    /* act = x */
    void (*set_act)(hn_backend *b, hn_act *act, const float *x, int64_t n, int64_t n_tok);
    /* out = kind(gate·act) ⊙ (up·act), both [n_out, n_in]; up_y is scratch of n_tok·(n_out + 31) floats */
    void (*gate_up)(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
                    float *up_y);
    /* up to HN_MAX_PRODUCT products, in one go; act NULL: each has its own */
    void (*matmul)(hn_backend *b, hn_act *act, const hn_product *p, int n_product);
    /* cs[t] = cos, sin of pos·freq [n_rot/2][2] */
    void (*rope_table)(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows,
                       int64_t n_tok);
    /* q, k: normed per head, rotated; k, v: written at their rows' places; what cannot be stored: see fault */
    void (*heads)(hn_backend *b, const hn_heads *h, const hn_kv *kv, const hn_row *rows, int64_t n_tok);
    /* act [n, n_head·d]: causal attention of q over each row's own sequence; row i is batch
     * row index[i] (ascending), or i where index is NULL; window: so many positions are seen, its own too, 0: all */
    void (*attention)(hn_backend *b, hn_act *act, const float *q, const hn_kv *kv, const hn_row *rows,
                      const int32_t *index, int64_t n, int64_t n_head, float scale, int64_t window);
    /* y[i] = x[index[i]], rows of n; y may be x when index ascends */
    void (*gather)(hn_backend *b, float *y, const float *x, const int32_t *index, int64_t n, int64_t n_index);
    /* logits to host memory [n_tok, n_vocab] */
    void (*head)(hn_backend *b, float *logits, hn_act *act, const hn_weight *w);
    /* The fault of the operations since the last call, the first by layer, row, K before V and head: whatever they gave
     * is void then. Asked once per step; the same whatever the threads. */
    hn_fault (*fault)(hn_backend *b);
    /* calls fn for each block of memory that the backend has for itself, from hn_pages_alloc */
    void (*blocks)(hn_backend *b, hn_block_fn *fn, void *arg);
    void (*free)(hn_backend *b);
} hn_backend_ops;

struct hn_backend {
    const hn_backend_ops *op;
};

/* The CPU backend on a pool (borrowed) and a level. max_n_in: longest weight row; n_head
 * queries of d on n_head_kv keys, sequences of at most n_ctx positions; 0 of them: no attention. */
typedef struct hn_cpu_params {
    hn_pool *pool;
    const hn_kernels *kernels;
    int64_t max_n_in, n_head, n_head_kv, d, n_ctx;
} hn_cpu_params;
hone_status hn_backend_cpu_new(hn_backend **out, const hn_cpu_params *p, hone_error *err);

/* ---- profile: a backend that does what another does and says when ------------------------- */

typedef enum hn_op_kind {
    HN_OP_EMBED = 0,
    HN_OP_SET_ACT,
    HN_OP_GATE_UP,
    HN_OP_MATMUL,
    HN_OP_ROPE_TABLE,
    HN_OP_HEADS,
    HN_OP_ATTENTION,
    HN_OP_GATHER,
    HN_OP_HEAD,
    HN_OP_LAYER_NORM,
    HN_OP_TOKEN_SHIFT,
    HN_OP_TIME_MIX,
    HN_OP_SCALE,
    HN_OP_ADD_NORM,
    HN_OP_KINDS
} hn_op_kind;

typedef struct hn_op_event {
    hn_op_kind op;
    const char *name; /* of the operation, of products by what their weights are */
    int32_t layer;    /* −1: outside layers */
    int n_weight;
    const hn_weight *w[HN_MAX_PRODUCT]; /* what the architecture handed over; as is kv */
    const hn_kv *kv;                    /* heads, attention; else NULL */
    const hn_state *state;              /* token_shift, time_mix; else NULL */
    int part;                           /* token_shift: HN_PREV_… */
    const hn_row *rows;                 /* attention */
    const int32_t *index;
    int64_t n_head, n, window; /* n: time_mix's head size; window: attention's */
    int64_t n_tok;
    uint64_t start_ns, end_ns;  /* CLOCK_MONOTONIC_RAW */
    uint64_t bytes;             /* of weights and cache read, each once; activations are not counted */
    double ops_int8, ops_float; /* multiplications and additions of products and attention */
} hn_op_event;
typedef void hn_op_fn(void *arg, const hn_op_event *e);

enum { HN_PROFILE_PENDING = 64 };
typedef struct hn_profile_backend {
    hn_backend base;
    hn_backend *inner; /* borrowed */
    hn_op_fn *fn;
    void *arg;
    int n;
    int32_t layer;
    hn_op_event pending[HN_PROFILE_PENDING];
} hn_profile_backend;
/* &p->base then serves as the inner one does, same bits. fn is told of each operation but rms_norm, some
 * time later: at the latest by the flush, which must come before rows and index of the batch are reused.
 * Nothing to free. */
void hn_backend_profile_init(hn_profile_backend *p, hn_backend *inner, hn_op_fn *fn, void *arg);
void hn_backend_profile_flush(hn_profile_backend *p);

#endif
