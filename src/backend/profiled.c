/* The profiling backend: hands every operation to the backend beneath and reports when
 * it ran and what it had to read and compute. Owns the counting of bytes and
 * operations; refuses to know layers and names. Between two operations stand only two
 * looks at the clock and a few stores: counting and telling is done for many operations
 * at once, with warm caches, in the time of none of them. */
#define _GNU_SOURCE
#include "backend/backend.h"

#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static hn_profile_backend *self(hn_backend *b) { return (hn_profile_backend *)b; }

/* ---- what an operation reads and computes -------------------------------------------------- */

static uint64_t weight_bytes(const hn_weight *w)
{
    uint64_t more = w->bias ? (uint64_t)w->n_out * sizeof(float) : 0;
    for (int i = 0; i < w->n_delta; i++) more += (uint64_t)(w->delta[i].rank * (w->n_in + w->n_out)) * sizeof(float);
    if (w->packed) return (uint64_t)((w->n_out + HN_PACK_ROWS - 1) / HN_PACK_ROWS) * w->group_bytes + more;
    return (uint64_t)w->n_out * w->row_bytes + more;
}

static void add_product(hn_op_event *e, const hn_weight *w)
{
    double ops = 2.0 * (double)w->n_in * (double)w->n_out * (double)e->n_tok;
    e->bytes += weight_bytes(w);
    if (hn_act_kind_of(w->type) == HN_ACT_F32) e->ops_float += ops;
    else e->ops_int8 += ops;
    for (int i = 0; i < w->n_delta; i++) e->ops_float += 2.0 * (double)w->delta[i].rank * (double)(w->n_in + w->n_out) * (double)e->n_tok;
}

/* Every query multiplies with all keys and all values up to its position; a run of rows of
 * one sequence reads that sequence's cache once. */
static void add_attention(hn_op_event *e)
{
    double n_kv = 0;
    uint64_t one = 2 * (uint64_t)e->kv->n_head_kv * (hn_cache_block_bytes(e->kv->type, e->kv->d) / HN_KEY_BLOCK), most = 0;
    for (int64_t i = 0; i < e->n_tok; i++) {
        const hn_row *r = &e->rows[e->index ? e->index[i] : i], *next = i + 1 < e->n_tok ? &e->rows[e->index ? e->index[i + 1] : i + 1] : NULL;
        n_kv += (double)(r->pos + 1);
        if ((uint64_t)r->pos + 1 > most) most = (uint64_t)r->pos + 1;
        if (next && next->seq == r->seq) continue;
        e->bytes += most * one;
        most = 0;
    }
    e->ops_float = 4.0 * (double)e->kv->d * (double)e->n_head * n_kv;
}

/* A sequence's state is read and written once; every token passes over it: five operations an element. */
static void add_time_mix(hn_op_event *e)
{
    uint64_t one = (uint64_t)e->n_head * (uint64_t)e->n * (uint64_t)e->n;
    for (int64_t i = 0; i < e->n_tok; i++)
        if (e->rows[i].prev < 0) e->bytes += 2 * one * sizeof(float);
    e->ops_float = 10.0 * (double)one * (double)e->n_tok;
}

static void count(hn_op_event *e)
{
    const hn_weight *w = e->w[0];
    e->bytes = 0;
    e->ops_int8 = e->ops_float = 0;
    if (e->op == HN_OP_EMBED) e->bytes = (w->packed ? w->group_bytes / HN_PACK_ROWS : w->row_bytes) * (uint64_t)e->n_tok;
    else if (e->op == HN_OP_ATTENTION) add_attention(e);
    else if (e->op == HN_OP_TIME_MIX) add_time_mix(e);
    else
        for (int i = 0; i < e->n_weight; i++) add_product(e, e->w[i]);
}

void hn_backend_profile_flush(hn_profile_backend *p)
{
    for (int i = 0; i < p->n; i++) {
        count(&p->pending[i]);
        p->fn(p->arg, &p->pending[i]);
    }
    p->n = 0;
}

/* The next record, all but op's own fields set. */
static hn_op_event *record(hn_profile_backend *p, hn_op_kind op, int64_t n_tok, uint64_t start, uint64_t end)
{
    if (p->n == HN_PROFILE_PENDING) hn_backend_profile_flush(p);
    hn_op_event *e = &p->pending[p->n++];
    e->op = op;
    e->n_weight = 0;
    e->kv = NULL;
    e->state = NULL;
    e->n_tok = n_tok;
    e->start_ns = start;
    e->end_ns = end;
    return e;
}

/* ---- the operations ---------------------------------------------------------------------------- */

static float *alloc(hn_backend *b, uint64_t n) { return self(b)->inner->op->alloc(self(b)->inner, n); }
static float *alloc_cache(hn_backend *b, uint64_t n) { return self(b)->inner->op->alloc_cache(self(b)->inner, n); }
static void release(hn_backend *b, float *p, uint64_t n) { self(b)->inner->op->release(self(b)->inner, p, n); }
static bool act_alloc(hn_backend *b, hn_act *a, int64_t n, int64_t t) { return self(b)->inner->op->act_alloc(self(b)->inner, a, n, t); }
static void act_release(hn_backend *b, hn_act *a, int64_t n, int64_t t) { self(b)->inner->op->act_release(self(b)->inner, a, n, t); }
static void blocks(hn_backend *b, hn_block_fn *fn, void *arg) { self(b)->inner->op->blocks(self(b)->inner, fn, arg); }
static bool reserve_deltas(hn_backend *b, int64_t n, int64_t t) { return self(b)->inner->op->reserve_deltas(self(b)->inner, n, t); }
static hn_fault fault(hn_backend *b) { return self(b)->inner->op->fault(self(b)->inner); }
static void no_free(hn_backend *b) {}

/* Runs CALL of the backend beneath, `in`, between two looks at the clock. */
#define TIMED(CALL)                        \
    hn_profile_backend *p = self(b);       \
    hn_backend *in = p->inner;             \
    uint64_t start = now_ns();             \
    in->op->CALL;                          \
    uint64_t end = now_ns()

static void embed(hn_backend *b, float *y, const hn_weight *w, const hn_row *rows, int64_t n_tok)
{
    TIMED(embed(in, y, w, rows, n_tok));
    hn_op_event *e = record(p, HN_OP_EMBED, n_tok, start, end);
    e->w[e->n_weight++] = w;
}

/* Not timed: a norm is made by the first product that needs it, and belongs to that one's time. */
static void rms_norm(hn_backend *b, hn_act *act, const float *x, const float *w, int64_t n, int64_t n_tok, float eps)
{
    self(b)->inner->op->rms_norm(self(b)->inner, act, x, w, n, n_tok, eps);
}

static void layer_norm(hn_backend *b, hn_act *act, const float *x, const float *w, const float *bias, int64_t n, int64_t n_tok, float eps)
{
    self(b)->inner->op->layer_norm(self(b)->inner, act, x, w, bias, n, n_tok, eps);
}

static void layer_norm_rows(hn_backend *b, float *x, const float *w, const float *bias, int64_t n, int64_t n_tok, float eps)
{
    TIMED(layer_norm_rows(in, x, w, bias, n, n_tok, eps));
    record(p, HN_OP_LAYER_NORM, n_tok, start, end);
}

static void token_shift(hn_backend *b, const hn_shift *s, const hn_state *state, const hn_row *rows, int64_t n_tok, const int32_t *index, int64_t n_index)
{
    TIMED(token_shift(in, s, state, rows, n_tok, index, n_index));
    hn_op_event *e = record(p, HN_OP_TOKEN_SHIFT, n_tok, start, end);
    e->state = state;
    e->part = s->part;
}

static void time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state, const hn_row *rows, int64_t n_tok)
{
    TIMED(time_mix(in, act, m, state, rows, n_tok));
    hn_op_event *e = record(p, HN_OP_TIME_MIX, n_tok, start, end);
    e->state = state;
    e->rows = rows;
    e->n_head = m->n_head;
    e->n = m->n;
}

static void scale(hn_backend *b, float *x, float f, int64_t n)
{
    TIMED(scale(in, x, f, n));
    record(p, HN_OP_SCALE, 1, start, end);
}

static void set_act(hn_backend *b, hn_act *act, const float *x, int64_t n, int64_t n_tok)
{
    TIMED(set_act(in, act, x, n, n_tok));
    record(p, HN_OP_SET_ACT, n_tok, start, end);
}

static void gate_up(hn_backend *b, hn_act *out, hn_act *act, const hn_weight *gate, const hn_weight *up, float *up_y)
{
    TIMED(gate_up(in, out, act, gate, up, up_y));
    hn_op_event *e = record(p, HN_OP_GATE_UP, act->n_tok, start, end);
    e->w[e->n_weight++] = gate;
    e->w[e->n_weight++] = up;
}

static void matmul(hn_backend *b, hn_act *act, const hn_product *pr, int n)
{
    TIMED(matmul(in, act, pr, n));
    hn_op_event *e = record(p, HN_OP_MATMUL, (pr->in ? pr->in : act)->n_tok, start, end);
    for (int i = 0; i < n && i < HN_MAX_PRODUCT; i++) e->w[e->n_weight++] = pr[i].w;
}

static void rope_table(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows, int64_t n_tok)
{
    TIMED(rope_table(in, cs, freq, n_rot, mscale, rows, n_tok));
    record(p, HN_OP_ROPE_TABLE, n_tok, start, end);
}

static void heads(hn_backend *b, const hn_heads *h, const hn_kv *kv, const hn_row *rows, int64_t n_tok)
{
    TIMED(heads(in, h, kv, rows, n_tok));
    record(p, HN_OP_HEADS, n_tok, start, end)->kv = kv;
}

static void attention(hn_backend *b, hn_act *act, const float *q, const hn_kv *kv, const hn_row *rows, const int32_t *index, int64_t n,
                      int64_t n_head, float scale)
{
    TIMED(attention(in, act, q, kv, rows, index, n, n_head, scale));
    hn_op_event *e = record(p, HN_OP_ATTENTION, n, start, end);
    e->kv = kv;
    e->rows = rows;
    e->index = index;
    e->n_head = n_head;
}

static void gather(hn_backend *b, float *y, const float *x, const int32_t *index, int64_t n, int64_t n_index)
{
    TIMED(gather(in, y, x, index, n, n_index));
    record(p, HN_OP_GATHER, n_index, start, end);
}

static void head(hn_backend *b, float *logits, hn_act *act, const hn_weight *w)
{
    TIMED(head(in, logits, act, w));
    hn_op_event *e = record(p, HN_OP_HEAD, act->n_tok, start, end);
    e->w[e->n_weight++] = w;
}

static const hn_backend_ops profile_ops = {
    .name = "profile", .alloc = alloc, .alloc_cache = alloc_cache, .release = release, .act_alloc = act_alloc, .act_release = act_release,
    .reserve_deltas = reserve_deltas, .embed = embed, .rms_norm = rms_norm, .layer_norm = layer_norm, .layer_norm_rows = layer_norm_rows,
    .token_shift = token_shift, .time_mix = time_mix, .scale = scale, .set_act = set_act, .gate_up = gate_up, .matmul = matmul,
    .rope_table = rope_table, .heads = heads, .attention = attention,
    .gather = gather, .head = head, .fault = fault, .blocks = blocks, .free = no_free,
};

void hn_backend_profile_init(hn_profile_backend *p, hn_backend *inner, hn_op_fn *fn, void *arg)
{
    p->base.op = &profile_ops;
    p->inner = inner;
    p->fn = fn;
    p->arg = arg;
    p->n = 0;
}
