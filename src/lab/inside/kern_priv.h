/* kern_priv: what the files of a kernel's measurement share: its data and life (kern_data.c), one call of each kind
 * (kern_call.c), checks (kern_check.c), stretches by the clock (kern_time.c), and what is made of these (kern_run.c).
 * Each calls only those named before it; nothing else includes this. */
#ifndef HN_KERN_PRIV_H
#define HN_KERN_PRIV_H

#include "backend/backend.h"
#include "kernels/kernels.h"
#include "lab/inside/bench_rooms.h"
#include "lab/inside/kern.h"

enum {
    HN_KB_PREFILL_TOKENS = 512,
    HN_KB_WKV_INPUTS = 8,
    HN_KB_X_KEY = 3 /* of the stream that b->x is from */
};
#define HN_KB_ATTN_SCALE 0.125f

struct hn_kern_bench {
    hn_kern k;
    hn_cpu_level level;
    const hn_kernels *fast, *scalar;
    uint64_t cache_bytes;
    /* copies of one matrix; one cache of keys and values, or state, of which the backends have copies */
    char *plain, *packed;
    size_t plain_bytes, packed_bytes; /* of one copy */
    int64_t n_plain, n_packed;        /* copies */
    hn_buf *mem, *oracle_mem;         /* of plain: n_plain copies, one */
    hn_pool *pool, *pool1;
    hn_backend *be, *oracle;
    int32_t threads;
    hn_act *act, *act_check;              /* of be, of oracle */
    hn_buf *in_rows[HN_KB_WKV_INPUTS];    /* of be: queries, or the inputs of a recurrence; product: the output */
    hn_buf *check_rows[HN_KB_WKV_INPUTS]; /* of oracle */
    float *x, *y, *y_check;
    uint64_t y_floats;
    int64_t turn;
    /* a number of the output is spoilt before each call, of a row kernel before some, at another place every time, and
     * must be there behind it */
    hn_bench_place place;
    uint64_t key, n_drawn;  /* of which calls these are */
    hn_bench_turned turned; /* operands, between stretches */
    char *met;              /* of a recurrence: the state that the last call of a stretch will use, before it */
    unsigned char *spoilt;  /* of a row kernel: its output, and what that must be */
    const unsigned char *wanted;
    /* of the call being measured */
    hn_kern_config config;
    hn_row *rows;
    float *in, *in2, *out;
    void *q;
};

/* ---- shapes ------------------------------------------------------------------------------------------ */

static inline bool hn_kb_is_wkv(const hn_kern *k) { return k->kind == HN_KERN_WKV7 || k->kind == HN_KERN_WKV6; }

static inline bool hn_kb_is_attn(const hn_kern *k)
{
    return k->kind == HN_KERN_ATTN_DECODE || k->kind == HN_KERN_ATTN_PREFILL;
}

static inline int64_t hn_kb_attn_tokens(const hn_kern *k)
{
    return k->kind == HN_KERN_ATTN_DECODE ? 1 : k->n[3] < HN_KB_PREFILL_TOKENS ? k->n[3] : HN_KB_PREFILL_TOKENS;
}

static inline int64_t hn_kb_wkv_width(const hn_kern *k) { return k->n[0] * k->n[1]; }

static inline int64_t hn_kb_row_floats(const hn_kern *k)
{
    return k->kind == HN_KERN_ROPE ? k->n[0] * k->n[1] : k->n[0];
}

/* Bytes that every encoded row fits in. */
static inline size_t hn_kb_row_room(const hn_kern *k) { return ((size_t)hn_kb_row_floats(k) * 8 + 4096) & ~(size_t)63; }

/* Elements of an activation row: what a product takes, what attention gives. */
static inline int64_t hn_kb_act_width(const hn_kern *k)
{
    return hn_kb_is_wkv(k) ? hn_kb_wkv_width(k) : hn_kb_is_attn(k) ? k->n[0] * k->n[2] : k->n[1];
}

/* ---- kern_data.c ------------------------------------------------------------------------------------- */

/* x[n] in [-1, 1), by stream `key`. */
void hn_kb_fill(float *x, int64_t n, uint64_t key);
/* Of a row of a product's weights as in the file. */
size_t hn_kb_row_bytes(const hn_kern_bench *b);
/* The copy of the weights, in the layout of b->config, whose turn it is. */
hn_weight hn_kb_weight(const hn_kern_bench *b, int64_t turn);
/* The copy in mem of the cache, or state, whose turn it is. */
hn_kv hn_kb_kv(const hn_kern_bench *b, hn_buf *mem, int64_t turn);
hn_state hn_kb_state(const hn_kern_bench *b, hn_buf *mem, int64_t turn);
/* A recurrence's floats in b->x: eight inputs of all tokens, then six vectors. */
int64_t hn_kb_wkv_floats(const hn_kern *k);
/* Its inputs x, with the vectors of b->x. */
hn_time_mix hn_kb_mix(const hn_kern_bench *b, hn_buf *const x[HN_KB_WKV_INPUTS]);
/* What a row kernel is given, at first and at last. False: hone has no random weights of that type. */
bool hn_kb_fill_operand(hn_kern_bench *b);
/* Pool, backend and memory for b->config of all but row kernels, in place of the last configuration's. */
hone_status hn_kb_prepare(hn_kern_bench *b, hone_error *err);

/* ---- kern_call.c ------------------------------------------------------------------------------------- */

typedef void hn_kb_call_fn(hn_kern_bench *b);
/* One call on what comes next in turn: of products, of attention, of recurrences. */
void hn_kb_call_product(hn_kern_bench *b);
void hn_kb_call_attn(hn_kern_bench *b);
void hn_kb_call_wkv(hn_kern_bench *b);
/* The tokens of a recurrence by any backend, on state s. */
void hn_kb_step(hn_kern_bench *b, hn_backend *be, hn_act *act, hn_buf *const x[HN_KB_WKV_INPUTS], const hn_state *s);
/* The next call meets what the first one met. */
void hn_kb_wkv_again(hn_kern_bench *b);
/* The last output, to y. */
void hn_kb_fetch(hn_kern_bench *b);
/* A row kernel by the table t: y, or bytes q, from the operands. */
void hn_kb_row_with(hn_kern_bench *b, const hn_kernels *t, float *y, void *q);
/* What a row kernel leaves: numbers, or bytes of an activation or a weight. */
const void *hn_kb_row_output(const hn_kern_bench *b, size_t *bytes);

/* ---- kern_check.c: false, and r is invalid, unless these are the bits of the scalar level ------------- */

/* A part of the outputs in y, of products and of attention. */
bool hn_kb_check_product(hn_kern_bench *b, hn_kern_result *r);
bool hn_kb_check_attn(hn_kern_bench *b, hn_kern_result *r);
/* Outputs of the call before, and the state left behind, which so many calls went on with from a first one. */
bool hn_kb_check_wkv(hn_kern_bench *b, const char *from, int64_t calls, hn_kern_result *r);
/* What a row kernel left; its hash to r. */
bool hn_kb_check_row(hn_kern_bench *b, hn_kern_result *r);

/* ---- kern_time.c ------------------------------------------------------------------------------------- */

/* One call of a row kernel. */
void hn_kb_call_row(hn_kern_bench *b);
/* Samples of `call` to r, operands turned between them; calls that left something out are in b->place. */
hone_status hn_kb_time_calls(hn_kern_result *r, hn_kern_bench *b, hn_kb_call_fn *call, bool (*stop)(void *),
                             hone_error *err);

#endif
