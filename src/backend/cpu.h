/* cpu: what the files of the CPU backend share: its memory, its scratch, rows handed to threads. Nobody else includes
 * it. Every output element is computed by one thread in an order fixed by kernels.h, so the chunks (and with them the
 * threads) cannot change a bit. */
#ifndef HN_CPU_H
#define HN_CPU_H

#include "backend/backend.h"
#include "kernels/kernels.h"

#include <string.h>

enum {
    CPU_FEW_TOKENS = 4,  /* up to so many columns a product is bound by reading its weights */
    CPU_ROWS = 8,        /* rows of a step handed out together at most, */
    CPU_WORTH = 4096,    /* but as many as have so many numbers: fewer are not worth waking another thread */
    CPU_ATTN_RUNS = 8,   /* chunks of a thread where attention is split over the keys */
    CPU_INDEX_ROWS = 32, /* of an index whose scores have room at once */
    CPU_SPLIT_ROWS = 4   /* rows of the whole context whose partial results have room at once */
};

struct hn_buf {
    float *p;
    hn_buf *prev, *next; /* of the backend's */
    size_t bytes;
    hn_mem_kind kind;
};

struct hn_act {
    float *f32; /* row stride hn_f32_stride(n) */
    void *q256, *q32;
    int64_t n, n_tok;
    bool have[HN_ACT_KINDS];
    const hn_buf *late_x; /* set: f32 = the norm of this is still to be made: see cpu_late */
    hn_norm late;
    uint64_t late_hash; /* of x then, where it is proved */
    int64_t n_max, n_tok_max;
    hn_act *prev, *next;
};

/* Scratch of mixtures of experts: see cpu_moe.c. */
typedef struct cpu_moe {
    int64_t n_pick;  /* the most of a step */
    int32_t *first;  /* [n_expert + 1] where an expert's rows begin */
    int32_t *row;    /* [n_pick] the row of the step, by expert */
    float *weight;   /* [n_pick] likewise */
    int32_t *active; /* [n_expert] those that have rows, ascending */
    int32_t n_active;
    struct moe_chunk *chunks; /* of the running operation */
    float *tiles;             /* [threads][n_tok·CPU_MOE_ROWS] of products before they are added */
    float *scores;            /* [CPU_ROWS threads][3·n_expert] of a row */
    float *logits;            /* [n_tok, n_expert] */
} cpu_moe;

/* Scratch of indexes: see cpu_index.c. */
typedef struct cpu_index_room {
    float *scores;  /* [CPU_INDEX_ROWS][n_block] */
    int32_t *order; /* likewise: numbers of blocks */
    char *gathered; /* [threads][gathered_bytes]: pages of chosen positions */
    size_t scores_bytes, order_bytes, gathered_bytes;
} cpu_index_room;

typedef struct cpu_backend {
    hn_backend base;
    hn_backend_params p;
    const hn_kernels *k;
    int32_t n_threads;
    hn_buf *bufs;
    hn_act *acts;
    hn_upload model;
    hn_step_block step;
    int32_t layer;
    hn_act *late;  /* the activation whose norm is still to be made, or NULL */
    float *panels; /* [threads][panel_floats]: opened or decoded rows */
    uint64_t panel_floats;
    float *attn_scratch; /* [threads][attn_floats] */
    uint64_t attn_floats;
    struct mm_chunk *chunks; /* of the running matmul */
    float *wide;             /* of products that are multiplied or added further: columns at hn_f32_stride(n_out) */
    uint64_t wide_floats;
    float *parts; /* partial results of attention split over the keys */
    uint64_t part_floats;
    _Atomic int64_t *parts_done; /* [threads · CPU_ATTN_RUNS] */
    float *h;                    /* of adapters: scale·(A·x) of the running matmul */
    uint64_t h_floats;
    cpu_moe moe;
    cpu_index_room index;
    hn_fault fault; /* of this step */
    _Atomic bool bad_logits;
} cpu_backend;

static inline cpu_backend *cpu_self(hn_backend *b) { return (cpu_backend *)b; }
static inline int64_t cpu_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline float *cpu_rows(const hn_buf *b) { return b ? b->p : NULL; }

/* cpu.c */
/* fn for each row; work: the numbers of one, of which a thread does a few in a nanosecond. */
void cpu_for_rows(cpu_backend *c, hn_pool_fn *fn, void *arg, int64_t n_tok, int64_t work);
void cpu_act_begin(cpu_backend *c, hn_act *a, int64_t n, int64_t n_tok); /* it will hold f32 */
/* Norms to activations are made late, in cache, by the product that takes them; nobody can tell, since whoever writes
 * to a buffer says so before, and whatever waits for its rows is made then. */
void cpu_wrote(cpu_backend *c, const hn_buf *b);
/* Elements [at, at + n) of a row of W, at whole blocks, into y. */
void cpu_open_row(float *y, const hn_weight *w, const hn_type_info *ti, int64_t row, int64_t at, int64_t n);
void cpu_norm_row(const cpu_backend *c, const hn_act *a, int64_t t); /* the late norm's row t, into f32 */
void cpu_late_done(cpu_backend *c, hn_act *a);                       /* all rows were made */
/* The rows of the step that an operation is for, and the i-th of them. */
static inline int64_t cpu_n_rows(const cpu_backend *c, hn_which w)
{
    return w == HN_ALL ? c->step.n_tok : c->step.n_want;
}
static inline int64_t cpu_row(const cpu_backend *c, hn_which w, int64_t i) { return w == HN_ALL ? i : c->step.want[i]; }

/* cpu_product.c */
enum { CPU_MAX_CHUNKS = 4096 }; /* of one matmul */
size_t cpu_chunk_bytes(void);
/* scale·(A·x) of the adapters of a call's products, in h of the backend: of each row those of its set, product by
 * product, adapter by adapter. */
typedef struct cpu_delta_rows {
    const hn_product *p; /* of the call */
    int i;               /* which of them is meant */
    int64_t ld;          /* floats from one row to the next */
} cpu_delta_rows;
/* The forms that n products ask for; act: of those without their own. */
void cpu_act_prepare(cpu_backend *c, hn_act *act, const hn_product *p, int n);
/* Rows [r0, r1) of one product, all columns, into y, adapters (d: of them, or NULL) and bias added. */
void cpu_product_rows(cpu_backend *c, const hn_weight *w, const hn_act *a, const cpu_delta_rows *d, float *y,
                      int64_t ldy, int64_t r0, int64_t r1, int32_t thread);
/* y = act(g) ⊙ u; y may be g; limit: as glu has it, of silu alone */
void cpu_glu_limited(const cpu_backend *c, hn_glu kind, float *y, const float *g, const float *u, int64_t n,
                     float limit);
static inline void cpu_glu_row(const cpu_backend *c, hn_glu kind, float *y, const float *g, const float *u, int64_t n,
                               float limit)
{
    if (limit > 0) {
        cpu_glu_limited(c, kind, y, g, u, n, limit);
        return;
    }
    switch (kind) {
    case HN_GLU_GELU: c->k->gelu_mul(y, g, u, n); return;
    case HN_GLU_OAI: c->k->oai_mul(y, g, u, n); return;
    case HN_GLU_RELU: c->k->relu_mul(y, g, u, n); return;
    case HN_GLU_GELU_ERF: c->k->gelu_erf_mul(y, g, u, n); return;
    default: c->k->silu_mul(y, g, u, n);
    }
}
void cpu_matmul(hn_backend *b, hn_act *act, const hn_product *p, int n);
void cpu_glu(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
             float limit);
void cpu_logits(hn_backend *b, float *host, hn_act *act, const hn_weight *w, hn_logits_tail tail);
void cpu_matmul_heads(hn_backend *b, const hn_head_product *p);
bool cpu_reserve(hn_backend *b, const hn_adapters *a);

/* cpu_moe.c */
enum { CPU_MOE_ROWS = 256 };       /* rows of a chunk of the sum at most */
bool cpu_moe_open(cpu_backend *c); /* false: no memory; cpu_moe_close follows in either case */
void cpu_moe_close(cpu_backend *c);
void cpu_moe_blocks(const cpu_backend *c, hn_mem_block_fn *fn, void *arg);
void cpu_route(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r);
void cpu_moe_glu(hn_backend *b, hn_act *out, hn_act *act, const hn_moe *m);
void cpu_moe_down(hn_backend *b, hn_act *act, const hn_moe *m, int64_t n_tok);
/* The sum of n numbers as kernels.h has it of float products: lanes of 16, blocks of 256, a tree. */
float cpu_sum(const float *x, int64_t n);

/* cpu_streams.c */
void cpu_loud(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n, int64_t n_tok);
void cpu_predict(hn_backend *b, const hn_streams *s);
void cpu_correct(hn_backend *b, const hn_streams *s);
void cpu_inject(hn_backend *b, const hn_wide *w);
void cpu_fold(hn_backend *b, const hn_wide *w);
void cpu_agree(hn_backend *b, const hn_agree *a);
void cpu_sparse_glu(hn_backend *b, hn_act *out, hn_glu kind, hn_buf *gate, const hn_buf *up, int64_t n, int64_t n_tok,
                    float cut);

/* cpu_attn.c */
uint64_t cpu_attn_floats(int64_t n_group, int64_t d); /* of a thread */
void cpu_heads(hn_backend *b, const hn_heads *h, const hn_kv *kv);
void cpu_latent(hn_backend *b, const hn_latent *l, const hn_kv *kv);
void cpu_attention(hn_backend *b, hn_act *act, const hn_attention *a, const hn_kv *kv);
/* The pages of a sequence; NULL: in order. */
static inline const uint32_t *cpu_table_of(const cpu_backend *c, const hn_kv *kv, int32_t seq)
{
    return c->step.table ? c->step.table[kv->group] + (size_t)seq * (size_t)c->step.n_page : NULL;
}

/* cpu_index.c */
bool cpu_index_open(cpu_backend *c); /* false: no memory; cpu_index_close follows in either case */
void cpu_index_close(cpu_backend *c);
void cpu_index_blocks(const cpu_backend *c, hn_mem_block_fn *fn, void *arg);
void cpu_index(hn_backend *b, const hn_block_index *x, const hn_kv *kv);
/* Attention of rows some of which see chosen positions alone, into act, which was begun. */
void cpu_attend_chosen(cpu_backend *c, hn_act *act, const hn_attention *a, const hn_kv *kv);

/* cpu_rwkv.c */
void cpu_token_shift(hn_backend *b, const hn_shift *s, const hn_state *state);
void cpu_time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state);

/* cpu_recurrent.c */
void cpu_conv(hn_backend *b, const hn_conv *v, const hn_state *state);
void cpu_ngram(hn_backend *b, const hn_ngram *n, const hn_state *state);
void cpu_delta(hn_backend *b, hn_act *act, const hn_delta_rule *d, const hn_state *state);
void cpu_ssm(hn_backend *b, hn_act *act, const hn_ssm *m, const hn_state *state);

#endif
