/* backend: the operations a model is made of. Models call only these, so that another device replaces one file. Owns
 * the words; knows matrices and caches; refuses to know which device it is, families, files and text.
 *
 * Memory is a backend's own: buffers and activations are handles, and only operations look into them. Rows are
 * [n_tok, n] of f32, row major. Operations cannot fail: shapes were checked when the model was bound, memory was sized
 * when the session was made; what went wrong in a step is asked once, at its end. To their callers operations happen
 * in the order they are called, each done on return: a device may be later as long as nobody can tell. */
#ifndef HN_BACKEND_H
#define HN_BACKEND_H

#include "kernels/layout.h"
#include "quant/quant.h"

/* ---- weights ---------------------------------------------------------------------------------- */

/* What a matrix is in its layer, whatever its family calls it. */
typedef enum HN_SMALL hn_role {
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
    /* latent attention: the pair of queries, keys and values compressed, each head's way from and to them */
    HN_ROLE_ATTN_Q_A,
    HN_ROLE_ATTN_Q_B,
    HN_ROLE_ATTN_KV_A,
    HN_ROLE_ATTN_K_B,
    HN_ROLE_ATTN_V_B,
    HN_ROLE_ATTN_GATE, /* of what attention gives */
    /* recurrent layers of hybrids */
    HN_ROLE_SSM_IN,
    HN_ROLE_SSM_OUT,
    HN_ROLE_SSM_X, /* Mamba: steps of low rank and what goes in and out of the state; steps */
    HN_ROLE_SSM_DT,
    HN_ROLE_GDN_QKV,
    HN_ROLE_GDN_GATE,
    HN_ROLE_GDN_BETA,
    HN_ROLE_GDN_ALPHA,
    HN_ROLE_KDA_LOW, /* first factors of the pairs of Kimi's delta rule, then the second ones */
    HN_ROLE_KDA_HIGH,
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
    /* mixtures of experts */
    HN_ROLE_ROUTER,
    HN_ROLE_EXPERT_GATE, /* of all experts of a layer */
    HN_ROLE_EXPERT_UP,
    HN_ROLE_EXPERT_DOWN,
    HN_ROLE_SHARED_GATE, /* of the expert that every token asks */
    HN_ROLE_SHARED_UP,
    HN_ROLE_SHARED_DOWN,
    HN_ROLE_SHARED_ROUTER,
    HN_ROLE_EXPERT_IN, /* from the stream to what experts take, and back from what they give */
    HN_ROLE_EXPERT_OUT,
    /* rows of each token and layer: made of the stream; a layer's gate of them, and its way back */
    HN_ROLE_PLE_MODEL,
    HN_ROLE_PLE_GATE,
    HN_ROLE_PLE_PROJ,
    /* several streams: from the first to the others and back, a layer's router and coefficients; a low-rank pair */
    HN_ROLE_ALTUP_PROJ,
    HN_ROLE_ALTUP_UNEMBD,
    HN_ROLE_ALTUP_ROUTER,
    HN_ROLE_ALTUP_COEF,
    HN_ROLE_LAUREL_L,
    HN_ROLE_LAUREL_R,
    /* a wide stream: what a half takes of it, a low-rank pair, and how much of what it gives each part takes; keys and
     * the value of n-grams; queries and keys that choose blocks of positions */
    HN_ROLE_HYPER_DOWN,
    HN_ROLE_HYPER_UP,
    HN_ROLE_HYPER_INJECT,
    HN_ROLE_NGRAM_KEY,
    HN_ROLE_NGRAM_VALUE,
    HN_ROLE_INDEX_Q,
    HN_ROLE_INDEX_K,
    HN_ROLE_INDEX_W, /* how much each head of queries counts */
    HN_ROLE_KINDS
} hn_role;

/* How rows of a matrix are dealt out to those who share a model's work. */
typedef enum HN_SMALL hn_cut {
    HN_CUT_WHOLE = 0, /* everybody has it */
    HN_CUT_ROWS,      /* by rows, the product is gathered */
    HN_CUT_KEEP,      /* by rows, the product stays where it is */
    HN_CUT_HEADS,     /* by heads of queries */
    HN_CUT_KV_HEADS   /* by heads of keys and values */
} hn_cut;

/* W [n_out, n_in], which never changes, and what is added to its product. Pointers are the host's view, in place in the
 * mapping: only backends follow them to compute; so it is with the vectors that operations take. */
typedef struct hn_weight {
    const void *data;    /* NULL: absent */
    const float *bias;   /* [n_out] or NULL */
    const float *factor; /* [1], of the product before adapters and bias; NULL: none */
    hn_type type;
    int64_t n_in, n_out;
    size_t row_bytes;
    const void *packed; /* the same numbers in groups of HN_PACK_ROWS rows (quant/pack.h), or NULL */
    size_t group_bytes;
    int32_t id;    /* its place in the model's list, which upload takes */
    int32_t layer; /* −1: outside layers */
    hn_role role;
    hn_cut cut;
} hn_weight;

static inline bool hn_weight_is_there(const hn_weight *w) { return w->data != NULL; }

/* An adapter of a matrix: its product becomes W·x + B·h, h = scale·(A·x), all f32: h by the float rule, times scale;
 * each element of B·h a chain of fma over ascending rank that begins with the product (several adapters: in order,
 * one after the other), before the bias. */
typedef struct hn_delta {
    const float *a; /* [rank, n_in] */
    const float *b; /* B transposed: element (row r, j) at b[j·ldb + r] */
    int64_t ldb, rank;
    float scale;
} hn_delta;
typedef struct hn_delta_list {
    const hn_delta *delta; /* [n] */
    int32_t n;
} hn_delta_list;
/* Adapters of a model: what each weight has of them, by its id. */
typedef struct hn_adapters {
    const hn_delta_list *of; /* [n_weight] */
    int32_t n_weight;
} hn_adapters;

/* A table of rotary angles: of each pair, per position. */
typedef struct hn_angles {
    const double *freq; /* [n_rot/2] */
    int32_t n_rot;
    float mscale; /* cos and sin are multiplied by it */
} hn_angles;

/* What a backend is given of a model, once; borrowed. */
enum { HN_MAX_ANGLES = 4 };
typedef struct hn_upload {
    const hn_weight *const *weight; /* [n_weight] by id */
    int32_t n_weight;
    hn_angles angles[HN_MAX_ANGLES]; /* as rope names them */
} hn_upload;

/* ---- memory ------------------------------------------------------------------------------------- */

/* Memory of a backend, and activations [n_tok, n] to be multiplied with: f32, and whatever forms the weights ask for.
 * Nobody else knows what is in them. */
typedef struct hn_buf hn_buf;
typedef struct hn_act hn_act;

typedef enum hn_mem_kind {
    HN_MEM_ROWS = 0, /* rows of a step */
    HN_MEM_CACHE,    /* what sequences remember: it fills from the front */
    HN_MEM_ACT,
    HN_MEM_OWN /* the backend's scratch */
} hn_mem_kind;

/* A block of memory that the backend has: where a host would see it (NULL: nowhere), its buffer if it is one. */
typedef struct hn_mem_block {
    hn_mem_kind kind;
    const hn_buf *buf;
    void *host;
    size_t bytes;
} hn_mem_block;
typedef void hn_mem_block_fn(void *arg, const hn_mem_block *block);

/* Some rows and columns of an activation. */
typedef struct hn_act_part {
    int64_t row, n_row, col, n_col;
} hn_act_part;

/* The cache of one layer. A sequence's positions lie in pages of HN_PAGE, which have numbers; a page holds all layers
 * of its group and their heads. A sequence is a table of numbers, and two of them may name the same page. */
typedef struct hn_kv {
    hn_buf *mem;       /* NULL: the layer keeps no positions */
    size_t k_at, v_at; /* bytes to where K and V of page 0, head 0 begin */
    int32_t group;     /* whose tables of the step these are */
    size_t page_bytes, head_bytes;
    int32_t n_head_kv;
    int64_t d, d_v; /* d_v: of values; 0: as keys */
    size_t i_at;    /* likewise to the rows of an index, of all heads one: f32 [HN_PAGE][d_i], whatever type is */
    int64_t d_i;    /* 0: there is none */
    hn_cache_type type;
} hn_kv;

/* Bytes from K of page 0, head 0 to that of another page and head; a position is pos % HN_PAGE there. */
static inline size_t hn_kv_at(const hn_kv *kv, uint32_t page, int64_t head)
{
    return (size_t)page * kv->page_bytes + (size_t)head * kv->head_bytes;
}
static inline int64_t hn_kv_dv(const hn_kv *kv) { return kv->d_v ? kv->d_v : kv->d; }
/* The same of V. */
static inline size_t hn_kv_v_head(const hn_kv *kv)
{
    return kv->d_v ? HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(kv->type, kv->d_v) : kv->head_bytes;
}

/* The state of one recurrent layer, f32. RWKV: the inputs that time mix and channel mix saw last, a_prev[n_embd] and
 * f_prev[n_embd], and S [n_head][n key][n value]; of others S alone, as their kernels have it. A sequence has its
 * states in one block, which has a number. */
typedef struct hn_state {
    hn_buf *mem;
    size_t at;           /* floats to this layer in block 0 */
    size_t block_floats; /* from one block to the next */
    size_t conv_at;      /* floats to the tails of its convolutions: rows [taps − 1][n], the oldest first */
    int64_t n_embd;
} hn_state;
enum { HN_PREV_TIME_MIX = 0, HN_PREV_CHANNEL_MIX = 1 };

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
    int32_t d_i;                 /* KV: and a row of its index, so wide; 0: none */
    int32_t window;              /* a query at p reads positions from p − window + 1 on; 0: all */
    int32_t kv_from;             /* the layer whose keys and values it reads, having none; −1: its own */
    int64_t state_floats, conv_floats;
} hn_memory_layer;

/* ---- a step --------------------------------------------------------------------------------------- */

/* Where each row of a step belongs. */
typedef struct hn_row {
    int32_t token, seq;
    int64_t pos;
    int64_t end;  /* attention both ways: positions that the sequence has once the step is done */
    int32_t prev; /* recurrent models: the row of this step that the sequence had before, −1: none, its state */
    bool last;    /* and whether it has no further one */
    int32_t set;  /* of the step's adapters: 1 the first; 0: none */
} hn_row;

/* What changes from step to step, handed over once and borrowed until its end. */
typedef struct hn_step_block {
    const hn_row *rows; /* [n_tok] */
    int32_t n_tok, n_seq;
    const int32_t *want; /* [n_want] rows whose logits are wanted, ascending */
    int32_t n_want;
    const uint32_t *const *table; /* [group] of page numbers [n_seq][n_page]; NULL: one sequence, in pages 0, 1, 2, … */
    int64_t n_page;
    const uint32_t *block;              /* [n_seq] numbers of state blocks; NULL: the sequence's own */
    const hn_adapters *const *adapters; /* [n_adapters] sets, which rows name; NULL: no row has any */
    int32_t n_adapters;
    bool (*stop)(void *arg); /* asked at each layer; NULL: never */
    void *stop_arg;
} hn_step_block;

/* Which rows of the step an operation is for. */
typedef enum hn_which { HN_ALL = 0, HN_WANTED } hn_which;

/* Row t of n_row rows that are all of the step's, or the wanted ones: its set of adapters; NULL: none. Asked of steps
 * that name adapters. */
static inline const hn_adapters *hn_step_set(const hn_step_block *s, int64_t n_row, int64_t t)
{
    int32_t set = s->rows[n_row == s->n_tok ? t : s->want[t]].set;
    return set ? s->adapters[set - 1] : NULL;
}

/* What a step could not store: the first value of a step that is too large for its cache, or no finite number. And
 * whether a logit of it is none, which who reads them finds. */
typedef struct hn_fault {
    int32_t layer;
    char what; /* 'K' or 'V'; 0: nothing of the kind happened */
    int32_t seq;
    int64_t pos, head;
    float value, limit; /* limit: hn_cache_limit of the cache */
    bool logits;        /* not all are finite */
} hn_fault;

/* ---- what operations take ------------------------------------------------------------------------- */

typedef enum hn_norm_kind { HN_NORM_RMS = 0, HN_NORM_LAYER, HN_NORM_NONE } hn_norm_kind;
/* RMS: x·(1/rms(x))·w, w NULL: 1; layer: (x − mean)/sqrt(var + eps)·w + b, b NULL: +0; none: x·w, w NULL: x; of n_tok
 * rows of n. With n_w, w has so many rows, which those of x take by turns. */
typedef struct hn_norm {
    hn_norm_kind kind;
    hn_buf *x;   /* NULL: act's own rows, in place */
    hn_buf *y;   /* takes it, and may be x; or NULL: */
    hn_act *act; /* takes it */
    const float *w, *b;
    int64_t n, n_tok;
    float eps;
    int32_t n_w; /* 0: one; of y alone */
} hn_norm;

/* y = map(W·in (+ bias)), times mul, times scale; or added to sum, or made an activation, where one of these is
 * given. mul is [n_tok, n_out], or, where mul_row is given, n_out columns from mul_at on of rows of so many floats, one
 * for each of the step, of which mul_of's are taken. */
typedef struct hn_product {
    const hn_weight *w;
    hn_buf *y;         /* [n_tok, n_out]; or */
    hn_buf *sum;       /* [n_tok, n_out]: sum += the product; or */
    hn_act *out;       /* takes the place of y */
    hn_act *in;        /* NULL: the call's */
    const hn_buf *mul; /* or NULL */
    int64_t mul_row, mul_at;
    hn_which mul_of;
    hn_map map;
    const hn_xielu *xielu; /* in place of map, or NULL */
    float scale;           /* 0: none */
} hn_product;
enum { HN_MAX_PRODUCT = 8 };

/* How queries and keys are normed. */
typedef enum hn_head_norm {
    HN_HEAD_NORM_NONE = 0,
    HN_HEAD_NORM_EACH,  /* RMSNorm of each head, weights [d] */
    HN_HEAD_NORM_FULL,  /* of all heads together, weights [n_head·d] and [n_head_kv·d] */
    HN_HEAD_NORM_PLAIN, /* of each head, without weights */
    HN_HEAD_NORM_LAYER, /* LayerNorm of each head, weights of its own: [n_head·d] and [n_head_kv·d] */
    HN_HEAD_NORM_GAIN   /* RMSNorm of each head without weights, then times a number of its own: [n_head], or NULL */
} hn_head_norm;

/* Queries grow with their positions: q·(1 + scale·ln(1 + ⌊(pos + offset)/length⌋)), in double, rounded once. */
typedef struct hn_temperature {
    double scale; /* 0: they do not */
    int64_t length, offset;
} hn_temperature;

/* What becomes of the queries, keys and values of a step before attention. Without k and v (NULL) nothing is stored:
 * queries of another layer's keys; those of `which` rows, one below the other. */
typedef struct hn_heads {
    hn_buf *q, *k;                /* [n_tok, n_head·d], [n_tok, n_head_kv·d]; changed in place */
    const hn_buf *q_gate;         /* [n_tok, n_head][2][d]: q takes the former halves first; or NULL */
    hn_buf *v;                    /* [n_tok, n_head_kv·d_v] */
    const float *q_norm, *k_norm; /* of norm */
    hn_head_norm norm;
    bool v_normed; /* v is: each head, without weights */
    hn_which which;
    bool norm_after;  /* the rotation */
    const hn_buf *cs; /* of rope; NULL: nothing turns */
    int64_t n_head;
    int32_t n_rot;
    bool neox;
    float eps;
    float clip;                 /* q, k and v are kept within ± it at first; 0: they are not */
    hn_temperature temperature; /* at last */
} hn_heads;

/* A convolution of each channel by itself over the rows of a sequence (hn_conv_row), its last tap on the row itself, or
 * on the row that is so many ahead, of whole texts in one step, beyond whose ends there is nothing: x, first times
 * in_gate where that is given, which changes it; what comes out, times out_gate, to y, or to act, for `which` rows
 * alone. Taps may lie `apart` rows from each other. The last rows of each sequence stay in its tail, as many as lie
 * between its first tap and its last. */
typedef struct hn_conv {
    hn_buf *x; /* [n_tok, n]; as are the gates */
    const hn_buf *in_gate, *out_gate;
    const float *w, *b; /* [taps][n]; [n] or NULL */
    hn_buf *y;          /* [n_tok, n], not x; or */
    hn_act *act;
    int64_t n;
    size_t tail;                /* floats to its own among the tails of the layer */
    int32_t taps, ahead, apart; /* apart 0: 1 */
    bool silu;
    hn_which which; /* of act */
} hn_conv;
enum { HN_MAX_REACH = 128 }; /* rows between a first tap and a last */

/* The gated delta rule over a step (hn_delta_head). Queries and keys belong to n_head_k heads, values, decay and gate
 * to n_head: head j takes those of head j mod n_head_k where they are tiled, else of j / (n_head / n_head_k). */
typedef struct hn_delta_rule {
    const hn_buf *q, *k, *v; /* rows of *_stride floats, the part begins at *_at */
    int64_t stride, q_at, k_at, v_at;
    const hn_buf *decay, *beta; /* [n_tok, n_head], decay [n_tok, n_head·n] where each key has its own */
    const hn_buf *gate;         /* [n_tok, n_head·n] */
    const float *a, *norm;      /* [n_head], [n] */
    int32_t n_head, n_head_k, n;
    bool tiled, each, sigmoid;
    float eps;
    hn_which which;
} hn_delta_rule;

/* Mamba-2's recurrence over a step (hn_ssm_head), then y·silu(z) and, where norm is given, RMSNorm of the channels of
 * each group. Rows of xbc are x [n_head·p], b [n_group·n], c [n_group·n]; the heads of a group stand together. Or,
 * where b and c are given, Mamba's (hn_scan_run), each of whose channels is a head: p 1, one group, a [n][n_head]. */
typedef struct hn_ssm {
    const hn_buf *xbc, *dt, *z; /* dt [n_tok, n_head], z [n_tok, n_head·p] */
    const hn_buf *b, *c;        /* of Mamba, [n_tok, n], and xbc is x alone; else NULL */
    const float *a, *d, *norm;  /* [n_head], [n_head], [n_head·p] or NULL */
    int32_t n_head, p, n, n_group;
    float eps;
    hn_which which;
} hn_ssm;

/* The same with latent rows (DeepSeek-V2, 2024), which are key and value of all heads: what keys and values were
 * compressed to, and a part that turns. */
typedef struct hn_latent {
    const hn_buf *q; /* [n_tok, n_head·(nope + n_rot)]: the latter turn, into */
    hn_buf *query;   /* [n_tok, n_head·(rank + n_rot)]: the last of each head; what is before is there */
    hn_buf *row;     /* [n_tok, rank + n_rot]: normed and turned in place, and stored */
    const float *norm;
    const hn_buf *cs; /* of rope; NULL: nothing turns */
    int64_t n_head, rank, nope;
    int32_t n_rot;
    bool neox;
    float eps;
    hn_temperature temperature; /* of whole queries, at last */
} hn_latent;

/* A product of each head with a matrix of its own, the rows of w from head·n_out on: y = W_head·x. */
typedef struct hn_head_product {
    const hn_weight *w; /* [n_head·n_out, n_in] */
    int64_t n_head;
    const hn_buf *x;       /* head h of row t at t·x_row + h·x_head; or */
    const hn_act *x_act;   /* [n_tok, n_head·n_in] */
    int64_t x_row, x_head; /* floats */
    hn_act *room;          /* of n_head·(n_in + 64) columns and n_tok rows: anything may be left in it */
    hn_buf *y;             /* likewise; or */
    hn_act *out;           /* [n_tok, n_head·n_out] */
    int64_t y_row, y_head;
    int64_t n_tok;
} hn_head_product;

/* What chooses the positions that a query sees (Qwen's QSA, 2026; with blocks of one position, DeepSeek's, 2025): keys
 * of an index, one row of each position, whose mean over each block of `block` positions from 0 on is normed and turned
 * as its first position is. A block scores Σ_h max(q_h·key, 0), or Σ_h weigh_h·max(q_h·key, 0), ascending h, each
 * product by lanes and tree of the float rule; of the blocks that are whole at a query's position, its own too, the
 * n_best that score most are seen, ties to the earlier, and what comes after the last whole block. */
typedef struct hn_block_index {
    hn_buf *q, *k;                /* [n_tok, n_head·d_i], [n_tok, d_i]: before norm and rotation; q changes in place */
    const hn_buf *weigh;          /* [n_tok, n_head], or NULL */
    const float *q_norm, *k_norm; /* [d_i]; q_norm NULL: queries are not normed */
    const float *k_norm_b;        /* given: keys' norm is LayerNorm */
    const hn_kv *rows;            /* whose index it is; NULL: the call's */
    const hn_buf *cs;             /* of rope, */
    int angles;                   /* these */
    int64_t n_head;
    int32_t block, n_best;
    bool neox;
    float eps;
} hn_block_index;
enum { HN_MAX_INDEX = 1024 }; /* d_i */

/* Attention of each row over its own sequence: causal, or `both` ways, of texts whose rows are all in this step. */
typedef struct hn_attention {
    const hn_buf *q; /* [all rows, n_head·d]; [rows, n_head·d] where `narrow` */
    bool narrow;
    const hn_buf *gate; /* [all rows, n_head][2][d]: what comes out is multiplied by σ of the latter halves; or NULL */
    bool gate_alone;    /* gate is [all rows, n_head·d], */
    bool gate_heads;    /* or, of each head one, [all rows, n_head] */
    hn_map gate_map;    /* in place of σ; 0: σ */
    int64_t n_head;
    float scale;       /* of scores */
    float cap;         /* scores become tanh(s·(1/cap))·cap; 0: they do not */
    bool both;         /* ways: positions behind a row are seen like those before it */
    int64_t window;    /* so many positions are seen, its own too, which is the last of them, or, both ways, the one in
                        * the middle; 0: all */
    int64_t chunk;     /* positions are seen of the same run of so many, a multiple of HN_SPLIT; 0: of all */
    const float *sink; /* [n_head] scores that take their share and add nothing, or NULL */
    const float *fade; /* [n_head] what a score loses with every position between query and key (ALiBi), or NULL */
    const hn_block_index *index; /* what chooses among all positions, whose rows are stored; or NULL */
    int64_t d_v; /* of latent rows: the first so many are the value, and act is [rows, n_head·d_v]; 0: no such rows */
    hn_which which;
} hn_attention;

/* Several residual streams of which one is computed (AltUp, Baykal et al. 2023): each [n_tok, n_embd]. */
enum { HN_MAX_STREAM = 4 };
typedef struct hn_streams {
    hn_buf *s[HN_MAX_STREAM];
    hn_buf *y[HN_MAX_STREAM]; /* predict: what comes out */
    const hn_buf *x;          /* correct: what became of s[active] */
    const hn_buf *coef;       /* predict: [n_tok, n, n]; correct: [n_tok, n] */
    int32_t n, active;
    int64_t n_embd, n_tok;
} hn_streams;

/* A wide stream of n parts for each row (hyper-connections, Zhu et al. 2024): [n_tok, n, n_embd]. */
typedef struct hn_wide {
    hn_buf *wide;
    hn_buf *x;          /* [n_tok, n_embd] */
    const hn_buf *coef; /* [n_tok, n], or NULL */
    int32_t n;
    int64_t n_embd, n_tok;
} hn_wide;

/* Rows of a table for the n-grams that end at each row of the step: heads per_gram of each length 2 … n_gram, one after
 * the other. Of ids t_0, the row's own, t_1 before it …, and eos for all from the first eos on that is before it, or
 * where the sequence begins: m = (t_0·mul_0) xor … xor (t_(n−1)·mul_(n−1)); head h takes row m mod size_h + at_h. The
 * last n_gram − 1 ids of each sequence stay in its tail, as f32 of id + 1, the oldest first; 0: there is none. */
enum { HN_MAX_NGRAM = 8, HN_MAX_NGRAM_HEADS = 64 };
typedef struct hn_ngram {
    hn_buf *y;          /* [n_tok, heads·w->n_in] */
    const hn_weight *w; /* the table */
    const uint64_t *mul, *size, *at;
    int32_t n_gram, per_gram, eos;
    size_t tail; /* floats to its own among the tails of the layer */
} hn_ngram;

/* y[t][c] = x[t]·σ(f(k[t][c]·q[t][c]/√n_embd)) with f(s) = sign(s)·√max(|s|, 1e-6): how far a stream's parts agree
 * with keys. Sums of products that are rounded, 256 at a time by the float rule. */
typedef struct hn_agree {
    hn_buf *y;           /* [n_tok, n, n_embd] */
    const hn_buf *x;     /* [n_tok, n_embd] */
    const hn_buf *k, *q; /* as y, which may be k */
    int32_t n;
    int64_t n_embd, n_tok;
} hn_agree;

/* What becomes of logits: times scale (0: 1), then tanh(x·(1/cap))·cap (0: no cap). */
typedef struct hn_logits_tail {
    float scale, cap;
} hn_logits_tail;

/* How a router's logits l become scores p, by which experts are chosen, and weights. */
typedef enum hn_gating {
    HN_GATING_SOFTMAX = 1, /* p = softmax(l) over all; the weight is p */
    HN_GATING_SIGMOID,     /* p = 1/(1 + exp(−l)); the weight is p */
    HN_GATING_CHOSEN,      /* p = l; weights are the softmax of the chosen ones */
    HN_GATING_INPUT,       /* p = l; the weight is 1/(1 + exp(−l)) */
    HN_GATING_SPARSE /* p = l; the weight is the expert's share of a softmax of those that are near it: SparseMixer
                            * (Liu et al. 2023): of those left when it is chosen (earlier choices are no more among
                            * them), m the largest, without whose l has (m − l)/max(|l|, m) > 0.02 */
} hn_gating;

enum { HN_MAX_EXPERT = 1024, HN_MAX_GROUPS = 64 };
/* Chooses n_used of the experts for each row: the largest of p + bias, ties to the lower number. Of n_group equal runs
 * of experts only n_group_used take part, by the sum of their two best, or by their best alone. Weights: p, where norm
 * is set over max(Σp, 2^-14), then times scale, then times per_expert. */
typedef struct hn_route {
    const hn_weight *router;               /* [n_expert, n_embd] */
    const hn_weight *next;                 /* what takes the same activation afterwards, or NULL */
    const float *bias, *per_expert;        /* [n_expert] or NULL */
    int32_t n_used, n_group, n_group_used; /* n_group 0, 1: no groups */
    bool best_alone;
    hn_gating gating;
    bool norm;
    float scale; /* 0: none */
} hn_route;

/* The experts of a layer, each weight [n_expert]. picks: rows of n_used numbers (int32), best first, then as many
 * weights (f32), which route writes. */
typedef struct hn_moe {
    const hn_buf *picks;
    const hn_weight *gate, *up, *down; /* gate NULL: map instead */
    int32_t n_expert, n_used;
    hn_glu glu;
    hn_map map;
    float limit;      /* as glu has it; 0: none */
    bool weigh_input; /* a row is multiplied with its expert's weight before, not after */
    hn_act *in;       /* [n_tok·n_used, n_embd] of scratch */
    /* of moe_down: */
    const hn_buf *shared;      /* [n_tok, n_embd] to be added at last, or NULL; */
    const hn_buf *shared_gate; /* times this [n_tok], or NULL */
    hn_buf *y;                 /* takes the sum, and may be shared; or NULL: */
    hn_buf *sum;               /* sum += scale·it */
    float scale;               /* 0: none */
} hn_moe;

/* x_c = h + (prev − h)·(lerp_c + delta_c) for several c, where h = LayerNorm(x) and prev is that of the
 * token before it in the sequence. */
enum { HN_MAX_SHIFT = 6 };
typedef struct hn_shift {
    const hn_buf *x; /* [n_tok, n_embd]; NULL: h is there already */
    const float *ln_w, *ln_b;
    hn_buf *h; /* [n_tok, n_embd] */
    float eps;
    int n;
    hn_act *out[HN_MAX_SHIFT];
    const float *lerp[HN_MAX_SHIFT];   /* [n_embd] */
    const hn_buf *delta[HN_MAX_SHIFT]; /* [n_tok, n_embd] or NULL */
    int part;                          /* HN_PREV_… */
    bool keep;                         /* the last h of each sequence goes into its state */
    hn_which which;                    /* rows of out; h and the state are for all */
} hn_shift;

/* RWKV's recurrence over a step; kernels.h has the formulas. [n_tok, n_head·n] and [n_head·n]. */
typedef struct hn_time_mix {
    const hn_buf *r, *k, *v, *w, *g;
    const float *ln_w, *ln_b;
    const hn_buf *a, *v_mix;      /* RWKV-7, */
    const float *k_k, *k_a, *r_k; /* as these */
    hn_buf *v_first;
    const float *first; /* RWKV-6 where it is not NULL */
    int32_t n_head, n;
    float eps;
} hn_time_mix;

/* ---- the operations --------------------------------------------------------------------------------- */

typedef struct hn_backend hn_backend;
typedef struct hn_backend_ops {
    const char *name;

    /* life and memory */
    void (*free)(hn_backend *b);          /* and all memory that it still has */
    uint64_t (*available)(hn_backend *b); /* bytes that may still be asked for; 0: unknown */
    /* fn is told of each block of memory that the backend has; they are the host's to look at, not to touch */
    void (*blocks)(hn_backend *b, hn_mem_block_fn *fn, void *arg);
    /* The model that all steps are of, before the first. */
    hone_status (*upload)(hn_backend *b, const hn_upload *u, hone_error *err);
    /* Room for steps whose rows have these adapters, or others that there is room for. False: no memory, and the room
     * is as it was. */
    bool (*reserve)(hn_backend *b, const hn_adapters *a);
    hn_buf *(*alloc)(hn_backend *b, uint64_t n_bytes, hn_mem_kind kind); /* zeroed, untouched; NULL: no memory */
    void (*release)(hn_backend *b, hn_buf *p);                           /* NULL: nothing to do */
    /* bytes [at, at + n) of a buffer, which nobody else dereferences; dst and src of copy are apart */
    void (*copy)(hn_backend *b, hn_buf *dst, size_t dst_at, const hn_buf *src, size_t src_at, size_t n);
    void (*fill0)(hn_backend *b, hn_buf *dst, size_t at, size_t n);
    void (*read)(hn_backend *b, void *host, const hn_buf *src, size_t at, size_t n);
    void (*write)(hn_backend *b, hn_buf *dst, size_t at, const void *host, size_t n);

    /* activations: up to so many rows of up to so many columns; NULL: no memory */
    hn_act *(*act_alloc)(hn_backend *b, int64_t n_max, int64_t n_tok_max);
    void (*act_release)(hn_backend *b, hn_act *act); /* NULL: nothing to do */
    uint64_t (*act_bytes)(hn_backend *b, int64_t n_max, int64_t n_tok_max);
    int64_t (*act_rows)(hn_backend *b, const hn_act *act); /* n_tok of what it holds */
    /* act = [n_tok, n] of anything, to be written */
    void (*act_shape)(hn_backend *b, hn_act *act, int64_t n, int64_t n_tok);
    /* f32 from and to host memory [n_row, n_col] */
    void (*act_read)(hn_backend *b, float *host, hn_act *act, const hn_act_part *part);
    void (*act_write)(hn_backend *b, hn_act *act, const float *host, const hn_act_part *part);

    /* a step: what follows is about its rows, until its end */
    void (*step_begin)(hn_backend *b, const hn_step_block *step);
    /* What follows belongs to layer il, or, where it is −1, to none. False: stop; nothing but step_end may follow. */
    bool (*layer)(hn_backend *b, int32_t il);
    /* HONE_E_NUMERIC: *f (NULL: nobody asks) says what could not be stored, the first by layer, row, K before V and
     * head, the same whatever the threads: whatever the step gave is void then. f->logits is set with HONE_OK. Other
     * failures: err says which. */
    hone_status (*step_end)(hn_backend *b, hn_fault *f, hone_error *err);

    /* y[t] = row of W of the step's token t, or of its position, as f32; without adapters */
    void (*embed)(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position);
    /* y[t] = (y[t] + scale·that row)·after */
    void (*embed_add)(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position, float scale, float after);
    /* cs[t] = cos, sin of the step's positions [n_rot/2][2], by uploaded angles */
    void (*rope)(hn_backend *b, hn_buf *cs, int angles);
    void (*norm)(hn_backend *b, const hn_norm *n);
    /* x += RMSNorm(y)·w, rows of n; y may be changed */
    void (*add_norm)(hn_backend *b, hn_buf *x, hn_buf *y, const float *w, int64_t n, int64_t n_tok, float eps);
    /* y *= sqrt(mean(x²))/sqrt(max(mean(y²), 1e-5)), rows of n: as loud as x */
    void (*loud)(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n, int64_t n_tok);
    /* y[m] = s[m] + Σ_k coef[m][k]·s[k], a chain of fma in ascending k that begins with s[m] */
    void (*predict)(hn_backend *b, const hn_streams *s);
    /* s[m] = fma(x − s[active], 1 + coef[m], s[m]) */
    void (*correct)(hn_backend *b, const hn_streams *s);
    /* wide[t][c] = fma(coef[t][c], x[t], wide[t][c]); without coef: = x[t] */
    void (*inject)(hn_backend *b, const hn_wide *w);
    /* x[t] = Σ_c wide[t][c], ascending */
    void (*fold)(hn_backend *b, const hn_wide *w);
    void (*ngram)(hn_backend *b, const hn_ngram *n, const hn_state *state);
    void (*agree)(hn_backend *b, const hn_agree *a);
    /* x *= f, n floats */
    void (*scale)(hn_backend *b, hn_buf *x, float f, int64_t n);
    /* x += y, n floats */
    void (*add)(hn_backend *b, hn_buf *x, const hn_buf *y, int64_t n);
    /* y[i] = x[want[i]] of the step, rows of n; y is not x */
    void (*gather)(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n);
    /* up to HN_MAX_PRODUCT products, in one go; act NULL: each has its own */
    void (*matmul)(hn_backend *b, hn_act *act, const hn_product *p, int n_product);
    /* out = kind(gate·act) ⊙ (up·act), both [n_out, n_in]; with a limit min(kind(…), limit) ⊙ what lies in ±limit of
     * the other; 0: none */
    void (*glu)(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
                float limit);
    /* out [n_tok, n] = kind(max(g − (mean(g) + cut·std(g)), 0)) ⊙ up, each row by itself, std over n; gate changes */
    void (*sparse_glu)(hn_backend *b, hn_act *out, hn_glu kind, hn_buf *gate, const hn_buf *up, int64_t n,
                       int64_t n_tok, float cut);
    /* picks [n_tok, 2·n_used] = r's choice for each row of act */
    void (*route)(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r);
    /* out [n_tok·n_used, n_ff] = kind(gate·act) ⊙ (up·act) of the experts chosen, in an order that moe_down knows */
    void (*moe_glu)(hn_backend *b, hn_act *out, hn_act *act, const hn_moe *m);
    /* the sum over a row's experts in ascending number, from +0: acc = fma(weight, down·act, acc); then acc + shared or
     * fma(shared_gate, shared, acc) */
    void (*moe_down)(hn_backend *b, hn_act *act, const hn_moe *m, int64_t n_tok);
    /* q, k: normed per head, rotated; k, v: written at their rows' places; what cannot be stored: see step_end */
    void (*heads)(hn_backend *b, const hn_heads *h, const hn_kv *kv);
    void (*latent)(hn_backend *b, const hn_latent *l, const hn_kv *kv);
    /* q: normed and turned; k: stored at its rows' places, blocks that are whole now are made keys of */
    void (*index)(hn_backend *b, const hn_block_index *x, const hn_kv *kv);
    void (*matmul_heads)(hn_backend *b, const hn_head_product *p);
    /* act [rows, n_head·d] */
    void (*attention)(hn_backend *b, hn_act *act, const hn_attention *a, const hn_kv *kv);
    void (*token_shift)(hn_backend *b, const hn_shift *s, const hn_state *state);
    /* act = m's output; the states advance over the rows of their sequences */
    void (*time_mix)(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state);
    void (*conv)(hn_backend *b, const hn_conv *c, const hn_state *state);
    /* act = what comes out of `which` rows, [rows, n_head·n]; the states advance over all */
    void (*delta)(hn_backend *b, hn_act *act, const hn_delta_rule *d, const hn_state *state);
    void (*ssm)(hn_backend *b, hn_act *act, const hn_ssm *m, const hn_state *state); /* likewise, [rows, n_head·p] */
    /* W·act to host memory [n_tok, n_vocab], which may be read after step_end */
    void (*logits)(hn_backend *b, float *host, hn_act *act, const hn_weight *w, hn_logits_tail tail);
} hn_backend_ops;

struct hn_backend {
    const hn_backend_ops *op;
};

/* ---- which there are ----------------------------------------------------------------------------------- */

/* What a backend is made for. */
typedef struct hn_backend_params {
    hn_pool *pool;                     /* the host's threads, borrowed: */
    int32_t threads_few, threads_many; /* so many of them for steps of few tokens, of many; 0: all */
    hn_cpu_level level;
    int64_t n_tok;               /* rows of a step at most */
    int64_t max_n_in, max_n_out; /* the longest weight row; the most rows of a weight of glu, or added to a sum */
    int64_t n_head, n_head_kv;   /* the most queries of a layer, the most keys; 0: no attention */
    int64_t n_group, d;          /* the most queries that share a key, 0: n_head/n_head_kv; the widest of them */
    int64_t n_ctx;               /* positions of a sequence at most */
    int32_t n_expert, n_used;    /* experts of a layer, those of a row; 0: none */
    int64_t n_block, n_chosen;   /* of an index: blocks of a sequence at most, positions that a query sees; 0: none */
} hn_backend_params;
typedef hone_status hn_backend_open_fn(hn_backend **out, const hn_backend_params *p, hone_error *err);

/* The backend of that name (NULL: the first there is). HONE_E_ARG: there is none, with a list of those there are. */
hone_status hn_backend_open(hn_backend **out, const char *name, const hn_backend_params *p, hone_error *err);
/* One more, for this process; both are borrowed for good. A known name is replaced. False: too many. */
bool hn_backend_register(const char *name, hn_backend_open_fn *open);

/* ---- profile: a backend that does what another does and says when ------------------------- */

typedef enum hn_op_kind {
    HN_OP_EMBED = 0,
    HN_OP_GLU,
    HN_OP_MATMUL,
    HN_OP_ROPE,
    HN_OP_HEADS,
    HN_OP_ATTENTION,
    HN_OP_GATHER,
    HN_OP_LOGITS,
    HN_OP_NORM,
    HN_OP_TOKEN_SHIFT,
    HN_OP_TIME_MIX,
    HN_OP_CONV,
    HN_OP_DELTA,
    HN_OP_SSM,
    HN_OP_SCALE,
    HN_OP_ADD_NORM,
    HN_OP_ADD,
    HN_OP_ROUTE,
    HN_OP_MOE_GLU,
    HN_OP_MOE_DOWN,
    HN_OP_STREAMS,
    HN_OP_SPARSE_GLU,
    HN_OP_NGRAM,
    HN_OP_INDEX,
    HN_OP_KINDS
} hn_op_kind;

typedef struct hn_op_event {
    hn_op_kind op;
    const char *name; /* of the operation, of products by what their weights are */
    int32_t layer;    /* −1: outside layers */
    int n_weight;
    const hn_weight *w[HN_MAX_PRODUCT]; /* what the model handed over; as is kv */
    const hn_kv *kv;                    /* heads, attention; else NULL */
    hn_which which;                     /* attention: of the step's rows */
    bool both;                          /* likewise: ways */
    int64_t n_head, n, window;          /* n: floats of a head's state by its channels; window: attention's */
    int64_t most;                       /* attention: positions that a query sees at most; 0: all */
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
    const hn_step_block *step; /* the running one, or NULL */
    int n;
    int32_t layer;
    hn_op_event pending[HN_PROFILE_PENDING];
} hn_profile_backend;
/* &p->base then serves as the inner one does, same bits. fn is told of each operation but norms to activations, which
 * belong to the product that takes them, some time later: at the latest at the end of the step. Nothing to free. */
void hn_backend_profile_init(hn_profile_backend *p, hn_backend *inner, hn_op_fn *fn, void *arg);
uint64_t hn_profile_now(void); /* the clock of its events */

#endif
