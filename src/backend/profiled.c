/* The profiling backend: hands every operation to the backend beneath and reports when
 * it ran and what it had to read and compute. Owns the counting of bytes and
 * operations, and what an operation is called; refuses to know what it is for. Between two operations stand only two
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
    for (int i = 0; i < w->n_delta; i++)
        e->ops_float += 2.0 * (double)w->delta[i].rank * (double)(w->n_in + w->n_out) * (double)e->n_tok;
}

/* Every query multiplies with the keys and values that it sees; a run of rows of one sequence reads
 * that sequence's cache once, from what its first row sees. */
static void add_attention(hn_op_event *e)
{
    double n_kv = 0;
    uint64_t one = 2 * (uint64_t)e->kv->n_head_kv * (hn_cache_block_bytes(e->kv->type, e->kv->d) / HN_KEY_BLOCK),
             most = 0, least = UINT64_MAX;
    for (int64_t i = 0; i < e->n_tok; i++) {
        const hn_row *r = &e->rows[e->index ? e->index[i] : i],
                     *next = i + 1 < e->n_tok ? &e->rows[e->index ? e->index[i + 1] : i + 1] : NULL;
        uint64_t end = (uint64_t)r->pos + 1, from = e->window && r->pos + 1 > e->window ? end - (uint64_t)e->window : 0;
        n_kv += (double)(end - from);
        if (end > most) most = end;
        if (from < least) least = from;
        if (next && next->seq == r->seq) continue;
        e->bytes += (most - least) * one;
        most = 0;
        least = UINT64_MAX;
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
    if (e->op == HN_OP_EMBED)
        e->bytes = (w->packed ? w->group_bytes / HN_PACK_ROWS : w->row_bytes) * (uint64_t)e->n_tok;
    else if (e->op == HN_OP_ATTENTION) add_attention(e);
    else if (e->op == HN_OP_TIME_MIX) add_time_mix(e);
    else
        for (int i = 0; i < e->n_weight; i++) add_product(e, e->w[i]);
}

/* ---- what it is called ------------------------------------------------------------------------- */

static const char *const op_names[HN_OP_KINDS] = {
    [HN_OP_EMBED] = "embed",           [HN_OP_SET_ACT] = "set_act",         [HN_OP_GATE_UP] = "gate_up",
    [HN_OP_MATMUL] = "matmul",         [HN_OP_ROPE_TABLE] = "rope_table",   [HN_OP_HEADS] = "heads",
    [HN_OP_ATTENTION] = "attention",   [HN_OP_GATHER] = "gather",           [HN_OP_HEAD] = "output",
    [HN_OP_LAYER_NORM] = "layer_norm", [HN_OP_TOKEN_SHIFT] = "token_shift", [HN_OP_TIME_MIX] = "wkv",
    [HN_OP_SCALE] = "scale",           [HN_OP_ADD_NORM] = "add_norm",
};

/* A product by its weight, and several by the first. */
static const struct {
    const char *alone, *several;
} role_names[HN_ROLE_KINDS] = {
    [HN_ROLE_ATTN_Q] = { "attn_q", "attn_qkv" },
    [HN_ROLE_ATTN_K] = { "attn_k", "attn_kv" },
    [HN_ROLE_ATTN_V] = { "attn_v", "attn_v" },
    [HN_ROLE_ATTN_OUTPUT] = { "attn_output", "attn_output" },
    [HN_ROLE_FFN_GATE] = { "ffn_gate", "ffn_gate_up" },
    [HN_ROLE_FFN_UP] = { "ffn_up", "ffn_up" },
    [HN_ROLE_FFN_DOWN] = { "ffn_down", "ffn_down" },
    [HN_ROLE_TIME_R] = { "time_mix_receptance", "time_mix_in" },
    [HN_ROLE_LOW_OUT] = { "time_mix_g2", "time_mix_low_rank" },
    [HN_ROLE_DECAY_OUT] = { "time_mix_decay_w2", "time_mix_low_rank" },
    [HN_ROLE_MIX_IN] = { "time_mix_w1", "time_mix_w1" },
    [HN_ROLE_MIX_OUT] = { "time_mix_w2", "time_mix_w2" },
    [HN_ROLE_TIME_OUTPUT] = { "time_mix_output", "time_mix_output" },
    [HN_ROLE_CHANNEL_K] = { "channel_mix_key", "channel_mix_in" },
    [HN_ROLE_CHANNEL_V] = { "channel_mix_value", "channel_mix_value" },
};

static const char *name_of(const hn_op_event *e)
{
    hn_role role = e->n_weight ? e->w[0]->role : HN_ROLE_NONE;
    const char *name = e->n_weight > 1 ? role_names[role].several : role_names[role].alone;
    return name ? name : op_names[e->op];
}

void hn_backend_profile_flush(hn_profile_backend *p)
{
    for (int i = 0; i < p->n; i++) {
        count(&p->pending[i]);
        p->pending[i].name = name_of(&p->pending[i]);
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
    e->layer = p->layer;
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
static void copy(hn_backend *b, void *dst, const void *src, size_t n)
{
    self(b)->inner->op->copy(self(b)->inner, dst, src, n);
}
static void fill0(hn_backend *b, void *dst, size_t n) { self(b)->inner->op->fill0(self(b)->inner, dst, n); }
static void read(hn_backend *b, void *host, const void *src, size_t n)
{
    self(b)->inner->op->read(self(b)->inner, host, src, n);
}
static void write(hn_backend *b, void *dst, const void *host, size_t n)
{
    self(b)->inner->op->write(self(b)->inner, dst, host, n);
}
static bool act_alloc(hn_backend *b, hn_act *a, int64_t n, int64_t t)
{
    return self(b)->inner->op->act_alloc(self(b)->inner, a, n, t);
}
static void act_release(hn_backend *b, hn_act *a, int64_t n, int64_t t)
{
    self(b)->inner->op->act_release(self(b)->inner, a, n, t);
}
static void blocks(hn_backend *b, hn_block_fn *fn, void *arg) { self(b)->inner->op->blocks(self(b)->inner, fn, arg); }
static bool reserve_deltas(hn_backend *b, int64_t n, int64_t t)
{
    return self(b)->inner->op->reserve_deltas(self(b)->inner, n, t);
}
static hn_fault fault(hn_backend *b) { return self(b)->inner->op->fault(self(b)->inner); }
static void no_free(hn_backend *b) {}

/* Runs CALL of the backend beneath, `in`, between two looks at the clock. */
#define TIMED(CALL)                  \
    hn_profile_backend *p = self(b); \
    hn_backend *in = p->inner;       \
    uint64_t start = now_ns();       \
    in->op->CALL;                    \
    uint64_t end = now_ns()

static void layer(hn_backend *b, int32_t il)
{
    self(b)->layer = il;
    self(b)->inner->op->layer(self(b)->inner, il);
}

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

static void layer_norm(hn_backend *b, hn_act *act, const float *x, const float *w, const float *bias, int64_t n,
                       int64_t n_tok, float eps)
{
    self(b)->inner->op->layer_norm(self(b)->inner, act, x, w, bias, n, n_tok, eps);
}

static void layer_norm_rows(hn_backend *b, float *x, const float *w, const float *bias, int64_t n, int64_t n_tok,
                            float eps)
{
    TIMED(layer_norm_rows(in, x, w, bias, n, n_tok, eps));
    record(p, HN_OP_LAYER_NORM, n_tok, start, end);
}

static void token_shift(hn_backend *b, const hn_shift *s, const hn_state *state, const hn_row *rows, int64_t n_tok,
                        const int32_t *index, int64_t n_index)
{
    TIMED(token_shift(in, s, state, rows, n_tok, index, n_index));
    hn_op_event *e = record(p, HN_OP_TOKEN_SHIFT, n_tok, start, end);
    e->state = state;
    e->part = s->part;
}

static void time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state, const hn_row *rows,
                     int64_t n_tok)
{
    TIMED(time_mix(in, act, m, state, rows, n_tok));
    hn_op_event *e = record(p, HN_OP_TIME_MIX, n_tok, start, end);
    e->state = state;
    e->rows = rows;
    e->n_head = m->n_head;
    e->n = m->n;
}

static void add_norm(hn_backend *b, float *x, float *y, const float *w, int64_t n, int64_t n_tok, float eps)
{
    TIMED(add_norm(in, x, y, w, n, n_tok, eps));
    record(p, HN_OP_ADD_NORM, n_tok, start, end);
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

static void gate_up(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
                    float *up_y)
{
    TIMED(gate_up(in, out, act, kind, gate, up, up_y));
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

static void rope_table(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows,
                       int64_t n_tok)
{
    TIMED(rope_table(in, cs, freq, n_rot, mscale, rows, n_tok));
    record(p, HN_OP_ROPE_TABLE, n_tok, start, end);
}

static void heads(hn_backend *b, const hn_heads *h, const hn_kv *kv, const hn_row *rows, int64_t n_tok)
{
    TIMED(heads(in, h, kv, rows, n_tok));
    record(p, HN_OP_HEADS, n_tok, start, end)->kv = kv;
}

static void attention(hn_backend *b, hn_act *act, const float *q, const hn_kv *kv, const hn_row *rows,
                      const int32_t *index, int64_t n, int64_t n_head, float scale, int64_t window)
{
    TIMED(attention(in, act, q, kv, rows, index, n, n_head, scale, window));
    hn_op_event *e = record(p, HN_OP_ATTENTION, n, start, end);
    e->kv = kv;
    e->rows = rows;
    e->index = index;
    e->n_head = n_head;
    e->window = window;
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
    .name = "profile",
    .alloc = alloc,
    .alloc_cache = alloc_cache,
    .release = release,
    .copy = copy,
    .fill0 = fill0,
    .read = read,
    .write = write,
    .act_alloc = act_alloc,
    .act_release = act_release,
    .reserve_deltas = reserve_deltas,
    .layer = layer,
    .embed = embed,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .layer_norm_rows = layer_norm_rows,
    .token_shift = token_shift,
    .time_mix = time_mix,
    .add_norm = add_norm,
    .scale = scale,
    .set_act = set_act,
    .gate_up = gate_up,
    .matmul = matmul,
    .rope_table = rope_table,
    .heads = heads,
    .attention = attention,
    .gather = gather,
    .head = head,
    .fault = fault,
    .blocks = blocks,
    .free = no_free,
};

void hn_backend_profile_init(hn_profile_backend *p, hn_backend *inner, hn_op_fn *fn, void *arg)
{
    p->base.op = &profile_ops;
    p->inner = inner;
    p->fn = fn;
    p->arg = arg;
    p->n = 0;
    p->layer = -1;
}
