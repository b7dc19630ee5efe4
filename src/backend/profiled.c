/* The profiling backend: hands every operation to the backend beneath and reports when
 * it ran and what it had to read and compute. Owns the counting of bytes and
 * operations, and what an operation is called; refuses to know what it is for. Between two operations stand only two
 * looks at the clock and a few stores: counting and telling is done for many operations
 * at once, with warm caches, in the time of none of them. */
#define _GNU_SOURCE
#include "backend/backend.h"
#include "kernels/kernels.h"

#include <time.h>

uint64_t hn_profile_now(void)
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
    if (w->packed) return (uint64_t)((w->n_out + HN_PACK_ROWS - 1) / HN_PACK_ROWS) * w->group_bytes + more;
    return (uint64_t)w->n_out * w->row_bytes + more;
}

static void add_product(hn_op_event *e, const hn_step_block *step, const hn_weight *w)
{
    double ops = 2.0 * (double)w->n_in * (double)w->n_out * (double)e->n_tok;
    e->bytes += weight_bytes(w);
    if (hn_act_kind_of(w->type) == HN_ACT_F32) e->ops_float += ops;
    else e->ops_int8 += ops;
    for (int32_t k = 0; step && step->adapters && k < step->n_adapters; k++) {
        const hn_delta_list *l = &step->adapters[k]->of[w->id];
        double n_row = 0, rank = 0;
        for (int i = 0; i < l->n; i++) rank += (double)l->delta[i].rank;
        for (int64_t t = 0; l->n && t < e->n_tok; t++) n_row += hn_step_set(step, e->n_tok, t) == step->adapters[k];
        if (!n_row) continue;
        e->bytes += (uint64_t)(rank * (double)(w->n_in + w->n_out)) * sizeof(float);
        e->ops_float += 2.0 * rank * (double)(w->n_in + w->n_out) * n_row;
    }
}

/* Every query multiplies with the keys and values that it sees; a run of rows of one sequence reads
 * that sequence's cache once, from what its first row sees. */
static void add_attention(hn_op_event *e, const hn_step_block *step)
{
    const int32_t *index = e->which == HN_WANTED ? step->want : NULL;
    double n_kv = 0;
    const hn_kv *kv = e->kv;
    uint64_t one = (uint64_t)kv->n_head_kv *
                   ((hn_cache_block_bytes(kv->type, kv->d) + hn_cache_block_bytes(kv->type, hn_kv_dv(kv))) /
                    HN_KEY_BLOCK),
             most = 0, least = UINT64_MAX;
    for (int64_t i = 0; i < e->n_tok; i++) {
        const hn_row *r = &step->rows[index ? index[i] : i],
                     *next = i + 1 < e->n_tok ? &step->rows[index ? index[i + 1] : i + 1] : NULL;
        int64_t n = !e->both ? r->pos + 1 : e->window ? r->pos + e->window / 2 + 1 : r->end;
        uint64_t end = (uint64_t)(e->both && n > r->end ? r->end : n);
        uint64_t from = e->window && n > e->window ? (uint64_t)(n - e->window) : 0;
        if (e->most && end - from > (uint64_t)e->most) from = end - (uint64_t)e->most; /* as many, wherever they are */
        n_kv += (double)(end - from);
        if (end > most) most = end;
        if (from < least) least = from;
        if (next && next->seq == r->seq) continue;
        e->bytes += (most - least) * one;
        most = 0;
        least = UINT64_MAX;
    }
    e->ops_float = 2.0 * (double)(kv->d + hn_kv_dv(kv)) * (double)e->n_head * n_kv;
}

/* A sequence's state is read and written once; every token passes over it: so many operations an element. */
static void add_states(hn_op_event *e, const hn_step_block *step, double ops)
{
    uint64_t one = (uint64_t)e->n_head * (uint64_t)e->n;
    for (int64_t i = 0; i < e->n_tok; i++)
        if (step->rows[i].prev < 0) e->bytes += 2 * one * sizeof(float);
    e->ops_float = ops * (double)one * (double)e->n_tok;
}

static void count(hn_op_event *e, const hn_step_block *step)
{
    const hn_weight *w = e->w[0];
    if (e->op == HN_OP_MOE_GLU || e->op == HN_OP_MOE_DOWN) return; /* counted while its picks were there */
    e->bytes = 0;
    e->ops_int8 = e->ops_float = 0;
    if (e->op == HN_OP_EMBED)
        e->bytes = (w->packed ? w->group_bytes / HN_PACK_ROWS : w->row_bytes) * (uint64_t)e->n_tok;
    else if (e->op == HN_OP_ATTENTION) add_attention(e, step);
    else if (e->op == HN_OP_TIME_MIX) add_states(e, step, 10);
    else if (e->op == HN_OP_DELTA) add_states(e, step, 8);
    else if (e->op == HN_OP_SSM) add_states(e, step, 5);
    else
        for (int i = 0; i < e->n_weight; i++) add_product(e, step, e->w[i]);
}

/* ---- what it is called ------------------------------------------------------------------------- */

static const char *const op_names[HN_OP_KINDS] = {
    [HN_OP_EMBED] = "embed",           [HN_OP_GLU] = "gate_up",
    [HN_OP_MATMUL] = "matmul",         [HN_OP_ROPE] = "rope_table",
    [HN_OP_HEADS] = "heads",           [HN_OP_ATTENTION] = "attention",
    [HN_OP_GATHER] = "gather",         [HN_OP_LOGITS] = "output",
    [HN_OP_NORM] = "layer_norm",       [HN_OP_SCALE] = "scale",
    [HN_OP_TIME_MIX] = "wkv",          [HN_OP_TOKEN_SHIFT] = "token_shift",
    [HN_OP_ADD_NORM] = "add_norm",     [HN_OP_ADD] = "add",
    [HN_OP_ROUTE] = "router",          [HN_OP_MOE_GLU] = "experts_gate_up",
    [HN_OP_MOE_DOWN] = "experts_down", [HN_OP_CONV] = "conv",
    [HN_OP_DELTA] = "delta",           [HN_OP_SSM] = "ssm",
    [HN_OP_STREAMS] = "streams",       [HN_OP_SPARSE_GLU] = "sparse_gate",
    [HN_OP_NGRAM] = "ngram",           [HN_OP_INDEX] = "index",
};

/* A product by its weight, and several by the first. */
static const struct {
    const char *alone, *several;
} role_names[HN_ROLE_KINDS] = {
    [HN_ROLE_ATTN_Q] = { "attn_q", "attn_qkv" },
    [HN_ROLE_ATTN_K] = { "attn_k", "attn_kv" },
    [HN_ROLE_ATTN_V] = { "attn_v", "attn_v" },
    [HN_ROLE_ATTN_OUTPUT] = { "attn_output", "attn_output" },
    [HN_ROLE_ATTN_Q_A] = { "attn_q_a", "attn_qkv_a" },
    [HN_ROLE_ATTN_Q_B] = { "attn_q_b", "attn_q_b" },
    [HN_ROLE_ATTN_KV_A] = { "attn_kv_a", "attn_kv_a" },
    [HN_ROLE_ATTN_K_B] = { "attn_k_b", "attn_k_b" },
    [HN_ROLE_ATTN_V_B] = { "attn_v_b", "attn_v_b" },
    [HN_ROLE_ATTN_GATE] = { "attn_gate", "attn_gate" },
    [HN_ROLE_FFN_GATE] = { "ffn_gate", "ffn_gate_up" },
    [HN_ROLE_FFN_UP] = { "ffn_up", "ffn_up" },
    [HN_ROLE_FFN_DOWN] = { "ffn_down", "ffn_down" },
    [HN_ROLE_ROUTER] = { "ffn_gate_inp", "ffn_gate_inp" },
    [HN_ROLE_EXPERT_GATE] = { "ffn_gate_exps", "ffn_gate_up_exps" },
    [HN_ROLE_EXPERT_UP] = { "ffn_up_exps", "ffn_up_exps" },
    [HN_ROLE_EXPERT_DOWN] = { "ffn_down_exps", "ffn_down_exps" },
    [HN_ROLE_SHARED_GATE] = { "ffn_gate_shexp", "ffn_gate_up_shexp" },
    [HN_ROLE_SHARED_UP] = { "ffn_up_shexp", "ffn_up_shexp" },
    [HN_ROLE_SHARED_DOWN] = { "ffn_down_shexp", "ffn_down_shexp" },
    [HN_ROLE_SHARED_ROUTER] = { "ffn_gate_inp_shexp", "ffn_gate_inp_shexp" },
    [HN_ROLE_EXPERT_IN] = { "ffn_latent_down", "ffn_latent_down" },
    [HN_ROLE_EXPERT_OUT] = { "ffn_latent_up", "ffn_latent_up" },
    [HN_ROLE_PLE_MODEL] = { "per_layer_model_proj", "per_layer_model_proj" },
    [HN_ROLE_ALTUP_PROJ] = { "altup_proj", "altup_proj" },
    [HN_ROLE_ALTUP_UNEMBD] = { "altup_unembd_proj", "altup_unembd_proj" },
    [HN_ROLE_ALTUP_ROUTER] = { "altup_router", "altup_router" },
    [HN_ROLE_ALTUP_COEF] = { "altup_coef", "altup_coef" },
    [HN_ROLE_LAUREL_L] = { "laurel_l", "laurel_l" },
    [HN_ROLE_LAUREL_R] = { "laurel_r", "laurel_r" },
    [HN_ROLE_HYPER_DOWN] = { "hc_down", "hc_down_inject" },
    [HN_ROLE_HYPER_UP] = { "hc_up", "hc_up" },
    [HN_ROLE_NGRAM_KEY] = { "ple_key", "ple_key_value" },
    [HN_ROLE_INDEX_Q] = { "indexer_q", "indexer_qk" },
    [HN_ROLE_PLE_GATE] = { "inp_gate", "inp_gate" },
    [HN_ROLE_PLE_PROJ] = { "proj", "proj" },
    [HN_ROLE_SSM_IN] = { "ssm_in", "ssm_in" },
    [HN_ROLE_SSM_X] = { "ssm_x", "ssm_x" },
    [HN_ROLE_SSM_DT] = { "ssm_dt", "ssm_dt" },
    [HN_ROLE_SSM_OUT] = { "ssm_out", "ssm_out" },
    [HN_ROLE_GDN_QKV] = { "gdn_qkv", "gdn_in" },
    [HN_ROLE_KDA_HIGH] = { "kda_f_b", "kda_low_rank" },
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

static void flush(hn_profile_backend *p)
{
    for (int i = 0; i < p->n; i++) {
        count(&p->pending[i], p->step);
        p->pending[i].name = name_of(&p->pending[i]);
        p->fn(p->arg, &p->pending[i]);
    }
    p->n = 0;
}

/* The next record, all but op's own fields set. */
static hn_op_event *record(hn_profile_backend *p, hn_op_kind op, int64_t n_tok, uint64_t start, uint64_t end)
{
    if (p->n == HN_PROFILE_PENDING) flush(p);
    hn_op_event *e = &p->pending[p->n++];
    e->op = op;
    e->layer = p->layer;
    e->n_weight = 0;
    e->kv = NULL;
    e->n_tok = n_tok;
    e->start_ns = start;
    e->end_ns = end;
    return e;
}

/* ---- handed on ---------------------------------------------------------------------------------- */

static hn_backend *inner(hn_backend *b) { return self(b)->inner; }

static void no_free(hn_backend *b) {}
static uint64_t available(hn_backend *b) { return inner(b)->op->available(inner(b)); }
static void blocks(hn_backend *b, hn_mem_block_fn *fn, void *arg) { inner(b)->op->blocks(inner(b), fn, arg); }
static hone_status upload(hn_backend *b, const hn_upload *u, hone_error *err)
{
    return inner(b)->op->upload(inner(b), u, err);
}
static bool reserve(hn_backend *b, const hn_adapters *a) { return inner(b)->op->reserve(inner(b), a); }
static hn_buf *alloc(hn_backend *b, uint64_t n, hn_mem_kind k) { return inner(b)->op->alloc(inner(b), n, k); }
static void release(hn_backend *b, hn_buf *p) { inner(b)->op->release(inner(b), p); }
static void copy(hn_backend *b, hn_buf *dst, size_t dst_at, const hn_buf *src, size_t src_at, size_t n)
{
    inner(b)->op->copy(inner(b), dst, dst_at, src, src_at, n);
}
static void fill0(hn_backend *b, hn_buf *dst, size_t at, size_t n) { inner(b)->op->fill0(inner(b), dst, at, n); }
static void read(hn_backend *b, void *host, const hn_buf *src, size_t at, size_t n)
{
    inner(b)->op->read(inner(b), host, src, at, n);
}
static void write(hn_backend *b, hn_buf *dst, size_t at, const void *host, size_t n)
{
    inner(b)->op->write(inner(b), dst, at, host, n);
}
static hn_act *act_alloc(hn_backend *b, int64_t n, int64_t t) { return inner(b)->op->act_alloc(inner(b), n, t); }
static void act_release(hn_backend *b, hn_act *a) { inner(b)->op->act_release(inner(b), a); }
static uint64_t act_bytes(hn_backend *b, int64_t n, int64_t t) { return inner(b)->op->act_bytes(inner(b), n, t); }
static int64_t act_rows(hn_backend *b, const hn_act *a) { return inner(b)->op->act_rows(inner(b), a); }
static void act_shape(hn_backend *b, hn_act *a, int64_t n, int64_t t) { inner(b)->op->act_shape(inner(b), a, n, t); }
static void act_read(hn_backend *b, float *host, hn_act *a, const hn_act_part *p)
{
    inner(b)->op->act_read(inner(b), host, a, p);
}
static void act_write(hn_backend *b, hn_act *a, const float *host, const hn_act_part *p)
{
    inner(b)->op->act_write(inner(b), a, host, p);
}

/* ---- a step --------------------------------------------------------------------------------------- */

static void step_begin(hn_backend *b, const hn_step_block *step)
{
    self(b)->step = step;
    inner(b)->op->step_begin(inner(b), step);
}

static bool layer(hn_backend *b, int32_t il)
{
    self(b)->layer = il;
    return inner(b)->op->layer(inner(b), il);
}

static hone_status step_end(hn_backend *b, hn_fault *f, hone_error *err)
{
    hone_status st = inner(b)->op->step_end(inner(b), f, err);
    flush(self(b)); /* while its rows are there */
    self(b)->step = NULL;
    return st;
}

/* ---- the operations ---------------------------------------------------------------------------- */

/* Runs CALL of the backend beneath, `in`, between two looks at the clock. */
#define TIMED(CALL)                    \
    hn_profile_backend *p = self(b);   \
    hn_backend *in = p->inner;         \
    uint64_t start = hn_profile_now(); \
    in->op->CALL;                      \
    uint64_t end = hn_profile_now()

/* Rows of the step; who profiles has one. */
static int64_t n_rows(const hn_profile_backend *p, hn_which w)
{
    return w == HN_ALL ? p->step->n_tok : p->step->n_want;
}

static void embed(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position)
{
    TIMED(embed(in, y, w, by_position));
    hn_op_event *e = record(p, HN_OP_EMBED, n_rows(p, HN_ALL), start, end);
    e->w[e->n_weight++] = w;
}

static void embed_add(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position, float scale, float after)
{
    TIMED(embed_add(in, y, w, by_position, scale, after));
    hn_op_event *e = record(p, HN_OP_EMBED, n_rows(p, HN_ALL), start, end);
    e->w[e->n_weight++] = w;
}

static void rope(hn_backend *b, hn_buf *cs, int angles)
{
    TIMED(rope(in, cs, angles));
    record(p, HN_OP_ROPE, n_rows(p, HN_ALL), start, end);
}

/* To an activation it is not told: it belongs to the time of the product that takes it. */
static void norm(hn_backend *b, const hn_norm *n)
{
    TIMED(norm(in, n));
    if (n->y) record(p, HN_OP_NORM, n->n_tok, start, end);
}

static void add_norm(hn_backend *b, hn_buf *x, hn_buf *y, const float *w, int64_t n, int64_t n_tok, float eps)
{
    TIMED(add_norm(in, x, y, w, n, n_tok, eps));
    record(p, HN_OP_ADD_NORM, n_tok, start, end);
}

static void scale(hn_backend *b, hn_buf *x, float f, int64_t n)
{
    TIMED(scale(in, x, f, n));
    record(p, HN_OP_SCALE, 1, start, end);
}

static void add(hn_backend *b, hn_buf *x, const hn_buf *y, int64_t n)
{
    TIMED(add(in, x, y, n));
    record(p, HN_OP_ADD, 1, start, end);
}

static void gather(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n)
{
    TIMED(gather(in, y, x, n));
    record(p, HN_OP_GATHER, n_rows(p, HN_WANTED), start, end);
}

static void loud(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n, int64_t n_tok)
{
    TIMED(loud(in, y, x, n, n_tok));
    record(p, HN_OP_STREAMS, n_tok, start, end);
}

static void predict(hn_backend *b, const hn_streams *s)
{
    TIMED(predict(in, s));
    record(p, HN_OP_STREAMS, s->n_tok, start, end);
}

static void correct(hn_backend *b, const hn_streams *s)
{
    TIMED(correct(in, s));
    record(p, HN_OP_STREAMS, s->n_tok, start, end);
}

static void inject(hn_backend *b, const hn_wide *w)
{
    TIMED(inject(in, w));
    record(p, HN_OP_STREAMS, w->n_tok, start, end);
}

static void fold(hn_backend *b, const hn_wide *w)
{
    TIMED(fold(in, w));
    record(p, HN_OP_STREAMS, w->n_tok, start, end);
}

static void ngram(hn_backend *b, const hn_ngram *n, const hn_state *state)
{
    TIMED(ngram(in, n, state));
    record(p, HN_OP_NGRAM, n_rows(p, HN_ALL), start, end);
}

static void agree(hn_backend *b, const hn_agree *a)
{
    TIMED(agree(in, a));
    record(p, HN_OP_STREAMS, a->n_tok, start, end);
}

static void sparse_glu(hn_backend *b, hn_act *out, hn_glu kind, hn_buf *gate, const hn_buf *up, int64_t n,
                       int64_t n_tok, float cut)
{
    TIMED(sparse_glu(in, out, kind, gate, up, n, n_tok, cut));
    record(p, HN_OP_SPARSE_GLU, n_tok, start, end);
}

static void matmul(hn_backend *b, hn_act *act, const hn_product *pr, int n)
{
    TIMED(matmul(in, act, pr, n));
    hn_op_event *e = record(p, HN_OP_MATMUL, in->op->act_rows(in, pr->in ? pr->in : act), start, end);
    for (int i = 0; i < n && i < HN_MAX_PRODUCT; i++) e->w[e->n_weight++] = pr[i].w;
}

static void glu(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
                float limit)
{
    TIMED(glu(in, out, act, kind, gate, up, limit));
    hn_op_event *e = record(p, HN_OP_GLU, in->op->act_rows(in, act), start, end);
    e->w[e->n_weight++] = gate;
    e->w[e->n_weight++] = up;
}

static void route(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r)
{
    TIMED(route(in, picks, act, r));
    hn_op_event *e = record(p, HN_OP_ROUTE, in->op->act_rows(in, act), start, end);
    e->w[e->n_weight++] = r->router;
}

/* Each expert that somebody chose is read once; every row multiplies with its own. */
static void count_experts(hn_op_event *e, hn_backend *in, const hn_moe *m, const hn_weight *const *w, int n_w)
{
    bool seen[HN_MAX_EXPERT] = { false };
    int32_t id[HN_MAX_EXPERT];
    e->bytes = 0;
    e->ops_int8 = e->ops_float = 0;
    for (int64_t t = 0; t < e->n_tok; t++) {
        in->op->read(in, id, m->picks, (size_t)t * 8 * (size_t)m->n_used, (size_t)m->n_used * sizeof *id);
        for (int32_t j = 0; j < m->n_used; j++)
            for (int k = 0; k < n_w; k++) {
                const hn_weight *x = w[k] + id[j];
                double ops = 2.0 * (double)x->n_in * (double)x->n_out;
                if (!seen[id[j]]) e->bytes += weight_bytes(x);
                if (hn_act_kind_of(x->type) == HN_ACT_F32) e->ops_float += ops;
                else e->ops_int8 += ops;
                seen[id[j]] = seen[id[j]] || k == n_w - 1;
            }
    }
}

static void moe_glu(hn_backend *b, hn_act *out, hn_act *act, const hn_moe *m)
{
    TIMED(moe_glu(in, out, act, m));
    hn_op_event *e = record(p, HN_OP_MOE_GLU, in->op->act_rows(in, act), start, end);
    const hn_weight *w[2] = { m->up, m->gate };
    if (m->gate) e->w[e->n_weight++] = m->gate;
    e->w[e->n_weight++] = m->up;
    count_experts(e, in, m, w, m->gate ? 2 : 1);
}

static void moe_down(hn_backend *b, hn_act *act, const hn_moe *m, int64_t n_tok)
{
    TIMED(moe_down(in, act, m, n_tok));
    hn_op_event *e = record(p, HN_OP_MOE_DOWN, n_tok, start, end);
    e->w[e->n_weight++] = m->down;
    count_experts(e, in, m, &m->down, 1);
}

static void heads(hn_backend *b, const hn_heads *h, const hn_kv *kv)
{
    TIMED(heads(in, h, kv));
    record(p, HN_OP_HEADS, n_rows(p, h->which), start, end)->kv = kv;
}

static void latent(hn_backend *b, const hn_latent *l, const hn_kv *kv)
{
    TIMED(latent(in, l, kv));
    record(p, HN_OP_HEADS, n_rows(p, HN_ALL), start, end)->kv = kv;
}

static void index_rows(hn_backend *b, const hn_block_index *x, const hn_kv *kv)
{
    TIMED(index(in, x, kv));
    record(p, HN_OP_INDEX, n_rows(p, HN_ALL), start, end);
}

static void matmul_heads(hn_backend *b, const hn_head_product *pr)
{
    TIMED(matmul_heads(in, pr));
    hn_op_event *e = record(p, HN_OP_MATMUL, pr->n_tok, start, end);
    e->w[e->n_weight++] = pr->w;
}

static void attention(hn_backend *b, hn_act *act, const hn_attention *a, const hn_kv *kv)
{
    TIMED(attention(in, act, a, kv));
    hn_op_event *e = record(p, HN_OP_ATTENTION, n_rows(p, a->which), start, end);
    e->kv = kv;
    e->which = a->which;
    e->n_head = a->n_head;
    e->window = a->window;
    e->most = a->index ? ((int64_t)a->index->n_best + 1) * a->index->block - 1 : 0;
    e->both = a->both;
}

static void token_shift(hn_backend *b, const hn_shift *s, const hn_state *state)
{
    TIMED(token_shift(in, s, state));
    record(p, HN_OP_TOKEN_SHIFT, n_rows(p, HN_ALL), start, end);
}

static void time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state)
{
    TIMED(time_mix(in, act, m, state));
    hn_op_event *e = record(p, HN_OP_TIME_MIX, n_rows(p, HN_ALL), start, end);
    e->n_head = m->n_head;
    e->n = (int64_t)m->n * m->n;
}

static void conv(hn_backend *b, const hn_conv *c, const hn_state *state)
{
    TIMED(conv(in, c, state));
    record(p, HN_OP_CONV, n_rows(p, HN_ALL), start, end);
}

static void delta(hn_backend *b, hn_act *act, const hn_delta_rule *d, const hn_state *state)
{
    TIMED(delta(in, act, d, state));
    hn_op_event *e = record(p, HN_OP_DELTA, n_rows(p, HN_ALL), start, end);
    e->n_head = d->n_head;
    e->n = (int64_t)d->n * d->n;
}

static void ssm(hn_backend *b, hn_act *act, const hn_ssm *m, const hn_state *state)
{
    TIMED(ssm(in, act, m, state));
    hn_op_event *e = record(p, HN_OP_SSM, n_rows(p, HN_ALL), start, end);
    e->n_head = m->n_head;
    e->n = (int64_t)m->p * m->n;
}

static void logits(hn_backend *b, float *host, hn_act *act, const hn_weight *w, hn_logits_tail tail)
{
    TIMED(logits(in, host, act, w, tail));
    hn_op_event *e = record(p, HN_OP_LOGITS, in->op->act_rows(in, act), start, end);
    e->w[e->n_weight++] = w;
}

static const hn_backend_ops profile_ops = {
    .name = "profile",
    .free = no_free,
    .available = available,
    .blocks = blocks,
    .upload = upload,
    .reserve = reserve,
    .alloc = alloc,
    .release = release,
    .copy = copy,
    .fill0 = fill0,
    .read = read,
    .write = write,
    .act_alloc = act_alloc,
    .act_release = act_release,
    .act_bytes = act_bytes,
    .act_rows = act_rows,
    .act_shape = act_shape,
    .act_read = act_read,
    .act_write = act_write,
    .step_begin = step_begin,
    .layer = layer,
    .step_end = step_end,
    .embed = embed,
    .embed_add = embed_add,
    .rope = rope,
    .norm = norm,
    .add_norm = add_norm,
    .scale = scale,
    .add = add,
    .gather = gather,
    .loud = loud,
    .predict = predict,
    .correct = correct,
    .inject = inject,
    .fold = fold,
    .ngram = ngram,
    .agree = agree,
    .sparse_glu = sparse_glu,
    .matmul = matmul,
    .glu = glu,
    .route = route,
    .moe_glu = moe_glu,
    .moe_down = moe_down,
    .heads = heads,
    .latent = latent,
    .index = index_rows,
    .matmul_heads = matmul_heads,
    .attention = attention,
    .token_shift = token_shift,
    .time_mix = time_mix,
    .conv = conv,
    .delta = delta,
    .ssm = ssm,
    .logits = logits,
};

void hn_backend_profile_init(hn_profile_backend *p, hn_backend *in, hn_op_fn *fn, void *arg)
{
    p->base.op = &profile_ops;
    p->inner = in;
    p->fn = fn;
    p->arg = arg;
    p->step = NULL;
    p->n = 0;
    p->layer = -1;
}
