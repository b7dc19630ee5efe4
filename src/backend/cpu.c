/* The CPU backend. Owns how operations are cut into chunks for the pool and the
 * per-thread scratch; refuses to know what is computed with them. Every output
 * element is computed by one thread in an order fixed by kernels.h, so the chunks
 * (and with them the threads) cannot change a bit. */
#include "backend/backend.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PANEL_ROWS = 8, /* rows decoded to f32 at a time for types without a kernel */
    MIN_ROWS = 16,  /* kernels work in tiles of 16 rows at most */
    PREFILL_ROWS =
        8 * HN_PANEL_ROWS, /* rows of a chunk at most: longer runs of every column of y, fewer visits to it */
    MAX_CHUNKS = 4096,     /* of one matmul */
    ROWS_PER_CHUNK = 8,    /* rows of a batch handed out together */
    ATTN_TILE = 96,        /* queries that share an opened block of keys */
    ATTN_SPLIT_TOK = 4,    /* batches up to this are split over the keys too */
    ATTN_RUNS = 8,         /* runs of splits per thread */
    DELTA_ALONE = 1 << 16  /* multiplications of A·x that are not worth waking the others */
};

typedef struct cpu_backend {
    hn_backend base;
    hn_pool *pool;
    const hn_kernels *k;
    int32_t n_threads;
    float *panels; /* [threads][panel_floats]: opened or decoded rows */
    uint64_t panel_floats;
    float *attn_scratch; /* [threads][attn_floats] */
    uint64_t attn_floats;
    struct mm_chunk *chunks; /* [MAX_CHUNKS] of the running matmul */
    float *parts;            /* partial results of attention split over the keys */
    uint64_t part_floats;
    _Atomic int64_t *parts_done; /* [ATTN_SPLIT_TOK · n_head_kv] */
    float *h;                    /* of adapters: scale·(A·x) of the running matmul */
    uint64_t h_floats;
    hn_fault fault; /* of this step */
} cpu_backend;

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static cpu_backend *self(hn_backend *b) { return (cpu_backend *)b; }

/* ---- memory ---------------------------------------------------------------------------- */

static float *be_alloc(hn_backend *b, uint64_t n)
{
    uint64_t bytes;
    if (!hn_mul_u64(n, sizeof(float), &bytes) || bytes > SIZE_MAX) return NULL;
    return hn_pages_alloc((size_t)bytes);
}

static float *be_alloc_cache(hn_backend *b, uint64_t n)
{
    uint64_t bytes;
    if (!hn_mul_u64(n, sizeof(float), &bytes) || bytes > SIZE_MAX) return NULL;
    return hn_pages_alloc_huge((size_t)bytes);
}

static void be_release(hn_backend *b, float *p, uint64_t n) { hn_pages_free(p, (size_t)(n * sizeof(float))); }

/* Host memory is ours: the four are one. */
static void be_copy(hn_backend *b, void *dst, const void *src, size_t n) { memcpy(dst, src, n); }
static void be_fill0(hn_backend *b, void *dst, size_t n) { memset(dst, 0, n); }

static bool act_alloc(hn_backend *b, hn_act *a, int64_t n, int64_t n_tok)
{
    size_t t = (size_t)n_tok;
    *a = (hn_act){ 0 };
    a->f32 = hn_pages_alloc(hn_act_row_bytes(HN_ACT_F32, n) * t);
    a->q256 = hn_pages_alloc(hn_act_row_bytes(HN_ACT_Q256, n + 255) * t);
    a->q32 = hn_pages_alloc(hn_act_row_bytes(HN_ACT_Q32, n + 31) * t);
    return a->f32 && a->q256 && a->q32;
}

static void act_release(hn_backend *b, hn_act *a, int64_t n, int64_t n_tok)
{
    size_t t = (size_t)n_tok;
    hn_pages_free(a->f32, hn_act_row_bytes(HN_ACT_F32, n) * t);
    hn_pages_free(a->q256, hn_act_row_bytes(HN_ACT_Q256, n + 255) * t);
    hn_pages_free(a->q32, hn_act_row_bytes(HN_ACT_Q32, n + 31) * t);
    *a = (hn_act){ 0 };
}

/* ---- rows of a batch --------------------------------------------------------------------- */

static void layer(hn_backend *b, int32_t il) {} /* all the same to this one */

typedef struct rows_job {
    hn_pool_fn *fn;
    void *arg;
    int64_t n_tok;
} rows_job;
static void rows_chunk(void *arg, int64_t chunk, int32_t thread)
{
    rows_job *j = arg;
    int64_t end = (chunk + 1) * ROWS_PER_CHUNK < j->n_tok ? (chunk + 1) * ROWS_PER_CHUNK : j->n_tok;
    for (int64_t t = chunk * ROWS_PER_CHUNK; t < end; t++) j->fn(j->arg, t, thread);
}
/* Runs fn for every row; few rows alone, since waking the others costs more. */
static void for_rows(cpu_backend *c, hn_pool_fn *fn, void *arg, int64_t n_tok)
{
    rows_job j = { fn, arg, n_tok };
    hn_pool_run(c->pool, rows_chunk, &j, (n_tok + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK);
}

static void act_begin(hn_act *a, int64_t n, int64_t n_tok)
{
    a->n = n;
    a->n_tok = n_tok;
    memset(a->have, 0, sizeof a->have);
    a->have[HN_ACT_F32] = true;
    a->norm_x = NULL;
}

typedef struct row_job {
    cpu_backend *c;
    hn_act *act;
    float *y, *y2;
    const float *x, *x2, *w, *cs;
    const double *freq;
    const hn_weight *weight;
    const hn_row *rows;
    const hn_kv *kv;
    const hn_type_info *ti;
    int64_t n, n_head, d;
    int32_t n_rot;
    float eps, mscale;
    bool neox;
} row_job;

static void embed_row(void *arg, int64_t t, int32_t thread)
{
    enum { PIECE = 256 }; /* elements, a multiple of every packed type's block */
    row_job *j = arg;
    const hn_weight *w = j->weight;
    int64_t row = j->rows[t].token, n = w->n_in, be = j->ti->block_elems;
    float *y = j->y + t * n;
    if (!w->packed) {
        j->ti->dequantize(y, (const char *)w->data + (size_t)row * w->row_bytes, n);
        return;
    }
    _Alignas(64) char blocks[PIECE * sizeof(float)];
    const char *group = (const char *)w->packed + (size_t)(row / HN_PACK_ROWS) * w->group_bytes;
    for (int64_t k = 0; k < n; k += PIECE) {
        int64_t m = n - k < PIECE ? n - k : PIECE;
        hn_unpack_blocks(w->type, blocks, group, n, (int)(row % HN_PACK_ROWS), k / be, (k + m) / be);
        j->ti->dequantize(y + k, blocks, m);
    }
}
static void embed(hn_backend *b, float *y, const hn_weight *w, const hn_row *rows, int64_t n_tok)
{
    row_job j = { .y = y, .weight = w, .rows = rows, .ti = hn_type_get(w->type) };
    for_rows(self(b), embed_row, &j, n_tok);
}

static void rms_norm(hn_backend *b, hn_act *act, const float *x, const float *w, int64_t n, int64_t n_tok, float eps)
{
    act_begin(act, n, n_tok);
    act->have[HN_ACT_F32] = false;
    act->norm_x = x;
    act->norm_w = w;
    act->norm_eps = eps;
    act->layer_norm = false;
}

static void layer_norm(hn_backend *b, hn_act *act, const float *x, const float *w, const float *bias, int64_t n,
                       int64_t n_tok, float eps)
{
    rms_norm(b, act, x, w, n, n_tok, eps);
    act->layer_norm = true;
    act->norm_b = bias;
}

static void add_norm_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    float *y = j->y2 + t * j->n;
    j->c->k->rms_norm(y, y, j->w, j->n, j->eps);
    hn_add(j->y + t * j->n, y, j->n);
}
static void add_norm(hn_backend *b, float *x, float *y, const float *w, int64_t n, int64_t n_tok, float eps)
{
    row_job j = { .c = self(b), .y = x, .y2 = y, .w = w, .n = n, .eps = eps };
    for_rows(j.c, add_norm_row, &j, n_tok);
}

static void set_act(hn_backend *b, hn_act *act, const float *x, int64_t n, int64_t n_tok)
{
    act_begin(act, n, n_tok);
    for (int64_t t = 0; t < n_tok; t++)
        memcpy(act->f32 + (size_t)t * hn_f32_stride(n), x + t * n, (size_t)n * sizeof(float));
}

static void rope_table_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    hn_rope_table(j->y + t * j->n_rot, j->freq, j->n_rot, j->rows[t].pos, j->mscale);
}
static void rope_table(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows,
                       int64_t n_tok)
{
    row_job j = { .y = cs, .freq = freq, .n_rot = n_rot, .mscale = mscale, .rows = rows };
    for_rows(self(b), rope_table_row, &j, n_tok);
}

typedef struct heads_job {
    cpu_backend *c;
    const hn_heads *h;
    const hn_kv *kv;
    const hn_row *rows;
    float limit;               /* of the cache */
    _Atomic int64_t first_bad; /* 2·row, or 2·row + 1 for V, of what exceeds it; INT64_MAX: nothing */
} heads_job;

static void lower(_Atomic int64_t *least, int64_t value)
{
    int64_t seen = atomic_load(least);
    while (value < seen && !atomic_compare_exchange_weak(least, &seen, value)) continue;
}

static void heads_row(void *arg, int64_t t, int32_t thread)
{
    heads_job *j = arg;
    const hn_kernels *f = j->c->k;
    const hn_heads *h = j->h;
    const hn_kv *kv = j->kv;
    int64_t d = kv->d, pos = j->rows[t].pos;
    size_t page = hn_kv_at(kv, j->rows[t].seq, pos, 0);
    const float *cs = h->cs + t * h->n_rot, *v = h->v + t * kv->n_head_kv * d;
    float *q = h->q + t * h->n_head * d, *k = h->k + t * kv->n_head_kv * d;
    for (int64_t i = 0; h->q_norm && i < h->n_head; i++) f->rms_norm(q + i * d, q + i * d, h->q_norm, d, h->eps);
    for (int64_t i = 0; h->k_norm && i < kv->n_head_kv; i++) f->rms_norm(k + i * d, k + i * d, h->k_norm, d, h->eps);
    hn_rope_apply(q, cs, h->n_head, d, h->n_rot, h->neox);
    hn_rope_apply(k, cs, kv->n_head_kv, d, h->n_rot, h->neox);
    if (!hn_all_within(k, kv->n_head_kv * d, j->limit)) lower(&j->first_bad, 2 * t);
    else if (!hn_all_within(v, kv->n_head_kv * d, j->limit)) lower(&j->first_bad, 2 * t + 1);
    for (int64_t i = 0; i < kv->n_head_kv; i++) {
        f->store_k[kv->type](kv->k + page + (size_t)i * kv->head_bytes, k + i * d, d, pos % HN_PAGE);
        f->store_v[kv->type](kv->v + page + (size_t)i * kv->head_bytes, v + i * d, d, pos % HN_PAGE);
    }
}

/* The first fault of a step is kept: what follows it is made of it. */
static void keep_fault(cpu_backend *c, const heads_job *j)
{
    const hn_kv *kv = j->kv;
    int64_t bad = j->first_bad, row = bad / 2, n = kv->n_head_kv * kv->d, i = 0;
    const float *x = (bad % 2 ? j->h->v : j->h->k) + row * n;
    while (i < n - 1 && fabsf(x[i]) <= j->limit) i++;
    c->fault = (hn_fault){ .kv = kv,
                           .what = bad % 2 ? 'V' : 'K',
                           .seq = j->rows[row].seq,
                           .pos = j->rows[row].pos,
                           .head = i / kv->d,
                           .value = x[i],
                           .limit = j->limit };
}

static void heads(hn_backend *b, const hn_heads *h, const hn_kv *kv, const hn_row *rows, int64_t n_tok)
{
    heads_job j = { self(b), h, kv, rows, hn_cache_limit(kv->type), INT64_MAX };
    for_rows(j.c, heads_row, &j, n_tok);
    if (j.first_bad != INT64_MAX && !j.c->fault.kv) keep_fault(j.c, &j);
}

static hn_fault fault(hn_backend *b)
{
    hn_fault f = self(b)->fault;
    self(b)->fault = (hn_fault){ 0 };
    return f;
}

static void gather(hn_backend *b, float *y, const float *x, const int32_t *index, int64_t n, int64_t n_index)
{
    for (int64_t i = 0; i < n_index; i++) memmove(y + i * n, x + index[i] * n, (size_t)n * sizeof(float));
}

/* ---- matmul ----------------------------------------------------------------------------------- */

typedef struct prepare_job {
    cpu_backend *c;
    int n;
    struct {
        hn_act *act;
        bool want[HN_ACT_KINDS];
    } a[HN_MAX_PRODUCT];
} prepare_job;

/* Row t of every activation in every form that is wanted; each is made of the one before while that is in cache. */
static void prepare_row(void *arg, int64_t t, int32_t thread)
{
    prepare_job *j = arg;
    const hn_kernels *k = j->c->k;
    for (int i = 0; i < j->n; i++) {
        hn_act *a = j->a[i].act;
        float *x = a->f32 + (size_t)t * hn_f32_stride(a->n);
        if (a->norm_x && a->layer_norm) k->layer_norm(x, a->norm_x + t * a->n, a->norm_w, a->norm_b, a->n, a->norm_eps);
        else if (a->norm_x) k->rms_norm(x, a->norm_x + t * a->n, a->norm_w, a->n, a->norm_eps);
        if (j->a[i].want[HN_ACT_Q256])
            k->quantize256((hn_a256 *)((char *)a->q256 + (size_t)t * hn_act_row_bytes(HN_ACT_Q256, a->n)), x, a->n);
        if (j->a[i].want[HN_ACT_Q32])
            k->quantize32((char *)a->q32 + (size_t)t * hn_act_row_bytes(HN_ACT_Q32, a->n), x, a->n);
    }
}

/* The activation of product p. */
static hn_act *in_of(hn_act *act, const hn_product *p) { return p->in ? p->in : act; }

/* The forms that n products ask for; act: of those without their own. */
static void act_prepare(cpu_backend *c, hn_act *act, const hn_product *p, int n)
{
    prepare_job j = { .c = c };
    for (int i = 0; i < n; i++) {
        hn_act *a = in_of(act, &p[i]);
        hn_act_kind kind = hn_act_kind_of(p[i].w->type);
        if (a->have[kind] && !a->norm_x) continue;
        int at = 0;
        while (at < j.n && j.a[at].act != a) at++;
        if (at == j.n) j.a[j.n++].act = a;
        j.a[at].want[kind] = !a->have[kind];
    }
    if (!j.n) return;
    for_rows(c, prepare_row, &j, in_of(act, p)->n_tok);
    for (int i = 0; i < j.n; i++) {
        hn_act *a = j.a[i].act;
        for (int k = 0; k < HN_ACT_KINDS; k++) a->have[k] = a->have[k] || j.a[i].want[k];
        a->have[HN_ACT_F32] = true;
        a->norm_x = NULL;
    }
}

/* ---- adapters: h = scale·(A·x), before the rows of the product -------------------------------------- */

typedef struct delta_job {
    cpu_backend *c;
    hn_act *act;
    const hn_product *p;
    int n;
    int64_t n_part; /* runs of the adapters */
} delta_job;

/* Chunk: some rows of the batch, one of n_part of the adapters. */
static void delta_chunk(void *arg, int64_t chunk, int32_t thread)
{
    delta_job *j = arg;
    cpu_backend *c = j->c;
    int64_t part = chunk % j->n_part, t0 = chunk / j->n_part * ROWS_PER_CHUNK, k = 0;
    float *h = c->h;
    for (int i = 0; i < j->n; i++) {
        const hn_act *a = in_of(j->act, &j->p[i]);
        int64_t n = a->n_tok - t0 < ROWS_PER_CHUNK ? a->n_tok - t0 : ROWS_PER_CHUNK;
        for (int d = 0; d < j->p[i].w->n_delta; d++, k++) {
            const hn_delta *e = &j->p[i].w->delta[d];
            int64_t stride = (int64_t)hn_f32_stride(e->rank);
            hn_mm m = { .y = h + t0 * stride,
                        .ldy = stride,
                        .w = e->a,
                        .w_stride = (size_t)a->n * sizeof(float),
                        .x = a->f32 + (size_t)t0 * hn_f32_stride(a->n),
                        .x_stride = hn_act_row_bytes(HN_ACT_F32, a->n),
                        .n_in = a->n,
                        .n_col = n,
                        .r1 = e->rank,
                        .panel = c->panels + (uint64_t)thread * c->panel_floats };
            h += a->n_tok * stride;
            if (k % j->n_part != part) continue;
            c->k->matmul[HN_F32](&m);
            for (int64_t t = 0; t < n; t++)
                for (int64_t r = 0; r < e->rank; r++) m.y[t * stride + r] *= e->scale;
        }
    }
}

/* The h of all adapters of n products, in c->h one after the other; where product i's begin: h[i], NULL: it has none.
 */
static void make_h(cpu_backend *c, hn_act *act, const hn_product *p, int n, const float *h[HN_MAX_PRODUCT])
{
    delta_job j = { c, act, p, n, 1 };
    int64_t n_delta = 0, work = 0, n_tok = in_of(act, p)->n_tok;
    const float *at = c->h;
    for (int i = 0; i < n; i++) {
        h[i] = p[i].w->n_delta ? at : NULL;
        for (int d = 0; d < p[i].w->n_delta; d++, n_delta++) {
            at += n_tok * (int64_t)hn_f32_stride(p[i].w->delta[d].rank);
            work += n_tok * p[i].w->n_in * p[i].w->delta[d].rank;
        }
    }
    if (!n_delta) return;
    if (n_tok <= ROWS_PER_CHUNK && work > DELTA_ALONE) j.n_part = n_delta;
    hn_pool_run(c->pool, delta_chunk, &j, div_up(n_tok, ROWS_PER_CHUNK) * j.n_part);
}

static void add_deltas(const cpu_backend *c, const hn_weight *w, const float *h, float *y, int64_t ldy, int64_t n_tok,
                       int64_t r0, int64_t r1)
{
    for (int d = 0; d < w->n_delta; d++) {
        const hn_delta *e = &w->delta[d];
        int64_t stride = (int64_t)hn_f32_stride(e->rank);
        for (int64_t t = 0; t < n_tok; t++, h += stride)
            c->k->low_rank(y + t * ldy + r0, e->b + r0, e->ldb, h, e->rank, r1 - r0);
    }
}

/* Rows [r0, r1) of product p. */
typedef struct mm_chunk {
    int32_t p, r0, r1;
} mm_chunk;

typedef struct mm_job {
    cpu_backend *c;
    hn_act *act;
    const hn_product *p;
    const hn_weight *up; /* gate_up: p is the gate */
    float *up_y;
    hn_glu glu;
    const float *h[HN_MAX_PRODUCT]; /* of make_h */
} mm_job;

/* Rows [r0, r1) of one product, all columns, into y, adapters and bias added. */
static void product_rows(cpu_backend *c, const hn_weight *w, const hn_act *a, const float *h, float *y, int64_t ldy,
                         int64_t r0, int64_t r1, int32_t thread)
{
    hn_act_kind kind = hn_act_kind_of(w->type);
    hn_mm m = { .y = y,
                .ldy = ldy,
                .w = w->data,
                .w_stride = w->row_bytes,
                .x = kind == HN_ACT_Q256  ? a->q256
                     : kind == HN_ACT_Q32 ? a->q32
                                          : (void *)a->f32,
                .x_stride = hn_act_row_bytes(kind, a->n),
                .n_in = w->n_in,
                .n_col = a->n_tok,
                .r0 = r0,
                .r1 = r1,
                .panel = c->panels + (uint64_t)thread * c->panel_floats };
    hn_matmul_fn *fn = c->k->matmul[w->type];
    if (w->packed && c->k->packed[w->type]) { /* chunks are whole groups */
        fn = c->k->packed[w->type];
        m.w = w->packed;
        m.w_stride = w->group_bytes;
    }
    if (fn) {
        fn(&m);
    } else { /* decode a panel of rows exactly, then the float rule */
        const hn_type_info *ti = hn_type_get(w->type);
        float *panel = m.panel;
        m.w = panel;
        m.w_stride = (size_t)w->n_in * sizeof(float);
        m.r0 = 0;
        for (int64_t r = r0; r < r1; r += PANEL_ROWS) {
            m.r1 = r1 - r < PANEL_ROWS ? r1 - r : PANEL_ROWS;
            for (int64_t i = 0; i < m.r1; i++)
                ti->dequantize(panel + i * w->n_in, (const char *)w->data + (size_t)(r + i) * w->row_bytes, w->n_in);
            m.y = y + r;
            c->k->matmul[HN_F32](&m);
        }
    }
    if (h) add_deltas(c, w, h, y, ldy, a->n_tok, r0, r1);
    if (w->bias)
        for (int64_t t = 0; t < a->n_tok; t++) hn_add(y + t * ldy + r0, w->bias + r0, r1 - r0);
}

static void run_chunk(void *arg, int64_t i, int32_t thread)
{
    mm_job *j = arg;
    cpu_backend *c = j->c;
    const mm_chunk *k = &c->chunks[i];
    const hn_product *p = &j->p[k->p];
    const hn_act *in = in_of(j->act, p);
    int64_t n_out = p->w->n_out, ldy = j->up || p->sum || p->out ? (int64_t)hn_f32_stride(n_out) : n_out, r0 = k->r0,
            n = k->r1 - k->r0;
    float *y = p->out ? p->out->f32 : p->y;
    product_rows(c, p->w, in, j->h[k->p], y, ldy, r0, k->r1, thread);
    if (j->up) {
        product_rows(c, j->up, in, j->h[1], j->up_y, ldy, r0, k->r1, thread);
        void (*glu)(float *, const float *, const float *, int64_t) =
            j->glu == HN_GLU_GELU ? c->k->gelu_mul : c->k->silu_mul;
        for (int64_t t = 0; t < in->n_tok; t++) glu(y + t * ldy + r0, y + t * ldy + r0, j->up_y + t * ldy + r0, n);
    }
    for (int64_t t = 0; t < in->n_tok; t++) {
        float *row = y + t * ldy + r0;
        if (p->map) c->k->map[p->map](row, n);
        if (p->mul)
            for (int64_t r = 0; r < n; r++) row[r] *= p->mul[t * n_out + r0 + r];
        if (p->sum) hn_add(p->sum + t * n_out + r0, row, n);
    }
}

/* Cuts the rows of n products into chunks of whole tiles: large ones first, since few
 * streams are fetched best, small ones last, so that nobody waits long for the last. */
static int cut(cpu_backend *c, const hn_product *p, int n, int64_t n_tok)
{
    bool many = n_tok > HN_FEW_TOKENS;
    int64_t unit = many ? HN_PANEL_ROWS : MIN_ROWS, most = many ? PREFILL_ROWS : INT32_MAX, left = 0;
    for (int i = 0; i < n; i++) left += p[i].w->n_out;
    while (left / unit > MAX_CHUNKS / 2) unit *= 2;
    if (most < unit) most = unit;
    int n_chunk = 0;
    for (int i = 0; i < n; i++)
        for (int64_t r = 0; r < p[i].w->n_out;) {
            int64_t rows = left * 3 / (4 * hn_pool_active(c->pool)) / unit * unit;
            rows = rows < unit ? unit : rows > most ? most : rows;
            rows = rows < p[i].w->n_out - r ? rows : p[i].w->n_out - r;
            c->chunks[n_chunk++] = (mm_chunk){ i, (int32_t)r, (int32_t)(r + rows) };
            r += rows;
            left -= rows;
        }
    return n_chunk;
}

static void matmul(hn_backend *b, hn_act *act, const hn_product *p, int n)
{
    mm_job j = { .c = self(b), .act = act, .p = p };
    int64_t n_tok = in_of(act, p)->n_tok;
    act_prepare(j.c, act, p, n);
    make_h(j.c, act, p, n, j.h);
    for (int i = 0; i < n; i++)
        if (p[i].out) act_begin(p[i].out, p[i].w->n_out, n_tok);
    hn_pool_run(j.c->pool, run_chunk, &j, cut(j.c, p, n, n_tok));
}

static void gate_up(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
                    float *up_y)
{
    const hn_product p[2] = { { .w = gate, .y = out->f32 }, { .w = up, .y = up_y } };
    mm_job j = { .c = self(b), .act = act, .p = p, .up = up, .up_y = up_y, .glu = kind };
    act_prepare(j.c, act, p, 2);
    make_h(j.c, act, p, 2, j.h);
    act_begin(out, gate->n_out, act->n_tok);
    hn_pool_run(j.c->pool, run_chunk, &j, cut(j.c, p, 1, act->n_tok));
}

static void head(hn_backend *b, float *logits, hn_act *act, const hn_weight *w)
{
    matmul(b, act, &(hn_product){ .w = w, .y = logits }, 1); /* host memory is ours */
}

/* ---- recurrent models ------------------------------------------------------------------------------- */

typedef struct shift_job {
    cpu_backend *c;
    const hn_shift *s;
    const hn_state *state;
    const hn_row *rows;
    const int32_t *index;
} shift_job;

static float *prev_of(const hn_state *st, int32_t seq, int part)
{
    return st->mem + (st->block ? st->block[seq] : (size_t)seq) * st->block_floats + part * st->n_embd;
}

static void shift_norm_row(void *arg, int64_t t, int32_t thread)
{
    shift_job *j = arg;
    int64_t n = j->state->n_embd;
    j->c->k->layer_norm(j->s->h + t * n, j->s->x + t * n, j->s->ln_w, j->s->ln_b, n, j->s->eps);
}

static void shift_row(void *arg, int64_t i, int32_t thread)
{
    shift_job *j = arg;
    const hn_shift *s = j->s;
    int64_t n = j->state->n_embd, t = j->index ? j->index[i] : i;
    const hn_row *row = &j->rows[t];
    const float *prev = row->prev >= 0 ? s->h + row->prev * n : prev_of(j->state, row->seq, s->part);
    for (int c = 0; c < s->n; c++)
        j->c->k->lerp(s->out[c]->f32 + (size_t)i * hn_f32_stride(n), s->h + t * n, prev, s->lerp[c],
                      s->delta[c] ? s->delta[c] + t * n : NULL, n);
}

static void token_shift(hn_backend *b, const hn_shift *s, const hn_state *state, const hn_row *rows, int64_t n_tok,
                        const int32_t *index, int64_t n_index)
{
    shift_job j = { self(b), s, state, rows, index };
    for (int c = 0; c < s->n; c++) act_begin(s->out[c], state->n_embd, n_index);
    if (s->x) for_rows(j.c, shift_norm_row, &j, n_tok);
    for_rows(j.c, shift_row, &j, n_index);
    for (int64_t t = 0; s->keep && t < n_tok; t++)
        if (rows[t].last)
            memcpy(prev_of(state, rows[t].seq, s->part), s->h + t * state->n_embd,
                   (size_t)state->n_embd * sizeof(float));
}

static void layer_norm_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    j->c->k->layer_norm(j->y + t * j->n, j->x + t * j->n, j->w, j->x2, j->n, j->eps);
}
static void layer_norm_rows(hn_backend *b, float *x, const float *w, const float *bias, int64_t n, int64_t n_tok,
                            float eps)
{
    row_job j = { .c = self(b), .y = x, .x = x, .w = w, .x2 = bias, .n = n, .eps = eps };
    for_rows(j.c, layer_norm_row, &j, n_tok);
}

typedef struct time_mix_job {
    cpu_backend *c;
    const hn_time_mix *m;
    const hn_state *state;
    const hn_row *rows;
    float *out;
    int64_t out_stride, n_tok;
    int32_t run; /* heads of a chunk */
} time_mix_job;

/* Chunk: some heads, all rows of the batch in order; a head's state stays in cache. */
static void time_mix_chunk(void *arg, int64_t chunk, int32_t thread)
{
    time_mix_job *j = arg;
    const hn_time_mix *m = j->m;
    int64_t n = m->n, width = n * m->n_head;
    int32_t end = (int32_t)(chunk + 1) * j->run < m->n_head ? (int32_t)(chunk + 1) * j->run : m->n_head;
    for (int32_t ih = (int32_t)chunk * j->run; ih < end; ih++)
        for (int64_t t = 0; t < j->n_tok; t++) {
            int64_t at = t * width + ih * n, c = ih * n;
            hn_wkv a = { .s = prev_of(j->state, j->rows[t].seq, 2) + c * n,
                         .out = j->out + t * j->out_stride + c,
                         .r = m->r + at,
                         .k = m->k + at,
                         .v = m->v + at,
                         .w = m->w + at,
                         .g = m->g + at,
                         .ln_w = m->ln_w + c,
                         .ln_b = m->ln_b + c,
                         .n = m->n,
                         .eps = m->eps };
            if (m->first) {
                a.first = m->first + c;
                j->c->k->wkv6(&a);
                continue;
            }
            a.a = m->a + at;
            a.v_mix = m->v_mix ? m->v_mix + at : NULL;
            a.v_first = m->v_first + at;
            a.k_k = m->k_k + c;
            a.k_a = m->k_a + c;
            a.r_k = m->r_k + c;
            j->c->k->wkv7(&a);
        }
}

static void time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state, const hn_row *rows,
                     int64_t n_tok)
{
    enum { RUNS = 4 }; /* chunks per thread */
    int64_t width = (int64_t)m->n * m->n_head;
    time_mix_job j = { .c = self(b),
                       .m = m,
                       .state = state,
                       .rows = rows,
                       .out = act->f32,
                       .out_stride = (int64_t)hn_f32_stride(width),
                       .n_tok = n_tok };
    act_begin(act, width, n_tok);
    j.run = (int32_t)div_up(m->n_head, (int64_t)RUNS * hn_pool_active(j.c->pool));
    hn_pool_run(j.c->pool, time_mix_chunk, &j, div_up(m->n_head, j.run));
}

static void scale(hn_backend *b, float *x, float f, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= f;
}

/* ---- attention ------------------------------------------------------------------------------------ */

typedef struct attn_job {
    cpu_backend *c;
    float *out;
    int64_t out_stride;
    const float *q;
    const hn_kv *kv;
    const hn_row *rows;
    const int32_t *index;
    int64_t n, n_head, tile, n_tile;
    int64_t n_split, run, n_run; /* most splits of a row; splits of a chunk; chunks of a (tile, head) */
    int64_t window;
    float scale;
} attn_job;

static int64_t batch_row(const attn_job *j, int64_t i) { return j->index ? j->index[i] : i; }

/* Rows from i on, at most to end, that are consecutive positions of one sequence. */
static int64_t run_length(const attn_job *j, int64_t i, int64_t end)
{
    int64_t n = 1, r = batch_row(j, i);
    while (i + n < end && batch_row(j, i + n) == r + n && j->rows[r + n].seq == j->rows[r].seq &&
           j->rows[r + n].pos == j->rows[r].pos + n)
        n++;
    return n;
}

static hn_attn attn_of(const attn_job *j, int64_t i, int64_t n, int64_t h, int32_t thread)
{
    const hn_kv *kv = j->kv;
    int64_t r = batch_row(j, i), d = kv->d, group = j->n_head / kv->n_head_kv;
    size_t head = (size_t)h * kv->head_bytes;
    return (hn_attn){ .q = j->q + (r * j->n_head + h * group) * d,
                      .out = j->out + i * j->out_stride + h * group * d,
                      .q_stride = j->n_head * d,
                      .out_stride = j->out_stride,
                      .k = kv->k + head,
                      .v = kv->v + head,
                      .page = hn_kv_table(kv, j->rows[r].seq),
                      .page_bytes = kv->page_bytes,
                      .scratch = j->c->attn_scratch + (uint64_t)thread * j->c->attn_floats,
                      .n_tok = n,
                      .n_q = group,
                      .n_kv = j->rows[r].pos + 1,
                      .d = d,
                      .window = j->window,
                      .scale = j->scale };
}

/* Chunk: one KV head, one tile of rows; heads outermost, so that a head's keys stay in cache. */
static void attn_chunk(void *arg, int64_t chunk, int32_t thread)
{
    attn_job *j = arg;
    int64_t h = chunk / j->n_tile, i0 = chunk % j->n_tile * j->tile, i1 = i0 + j->tile < j->n ? i0 + j->tile : j->n;
    for (int64_t i = i0, n; i < i1; i += n) {
        n = run_length(j, i, i1);
        hn_attn a = attn_of(j, i, n, h, thread);
        j->c->k->attn[j->kv->type](&a);
    }
}

/* The splits of which a query at pos sees anything: *n of them from the one returned on. */
static int64_t first_split(const attn_job *j, int64_t pos, int64_t *n)
{
    int64_t first = j->window && pos + 1 > j->window ? (pos + 1 - j->window) / HN_SPLIT : 0;
    *n = div_up(pos + 1, HN_SPLIT) - first;
    return first;
}

/* Chunk: one KV head, one row, a run of splits. Who finishes the last run of a row merges
 * all of them, in order. */
static void attn_split_chunk(void *arg, int64_t chunk, int32_t thread)
{
    attn_job *j = arg;
    cpu_backend *c = j->c;
    int64_t unit = chunk / j->n_run, split0 = chunk % j->n_run * j->run, i = unit / j->kv->n_head_kv,
            h = unit % j->kv->n_head_kv;
    hn_attn a = attn_of(j, i, 1, h, thread);
    int64_t n_split, first = first_split(j, a.n_kv - 1, &n_split), one = a.n_q * (a.d + 2);
    float *parts = c->parts + unit * j->n_split * one;
    if (split0 < n_split) {
        a.split0 = first + split0;
        a.split1 = first + (split0 + j->run < n_split ? split0 + j->run : n_split);
        a.part = parts + split0 * one;
        c->k->attn[j->kv->type](&a);
    }
    if (atomic_fetch_add(&c->parts_done[unit], 1) + 1 < j->n_run) return;
    for (int64_t g = 0; g < a.n_q; g++) c->k->attn_merge(a.out + g * a.d, parts + g * (a.d + 2), one, n_split, a.d);
}

static void attention(hn_backend *b, hn_act *act, const float *q, const hn_kv *kv, const hn_row *rows,
                      const int32_t *index, int64_t n, int64_t n_head, float scale, int64_t window)
{
    cpu_backend *c = self(b);
    int64_t group = n_head / kv->n_head_kv;
    attn_job j = { .c = c,
                   .out = act->f32,
                   .out_stride = (int64_t)hn_f32_stride(n_head * kv->d),
                   .q = q,
                   .kv = kv,
                   .rows = rows,
                   .index = index,
                   .n = n,
                   .n_head = n_head,
                   .window = window,
                   .scale = scale };
    act_begin(act, n_head * kv->d, n);
    for (int64_t i = 0, seen; i < n; i++) {
        first_split(&j, rows[batch_row(&j, i)].pos, &seen);
        if (seen > j.n_split) j.n_split = seen;
    }
    int64_t units = n * kv->n_head_kv;
    j.run = div_up(units * j.n_split, (int64_t)c->n_threads * ATTN_RUNS);
    if (c->n_threads > 1 && n <= ATTN_SPLIT_TOK && j.run < j.n_split) {
        j.n_run = div_up(j.n_split, j.run);
        for (int64_t u = 0; u < units; u++) atomic_store_explicit(&c->parts_done[u], 0, memory_order_relaxed);
        hn_pool_run(c->pool, attn_split_chunk, &j, units * j.n_run);
        return;
    }
    /* tiles as tall as they may be, but enough of them for the threads */
    int64_t fair = n * kv->n_head_kv / ((int64_t)c->n_threads * 4);
    j.tile = ATTN_TILE / group < 1 ? 1 : ATTN_TILE / group;
    if (j.tile > fair) j.tile = fair < 1 ? 1 : fair;
    j.n_tile = div_up(n, j.tile);
    hn_pool_run(c->pool, attn_chunk, &j, j.n_tile * kv->n_head_kv);
}

/* ---- life -------------------------------------------------------------------------------------------- */

static void cpu_blocks(hn_backend *b, hn_block_fn *fn, void *arg)
{
    cpu_backend *c = self(b);
    fn(arg, c->panels, (size_t)(c->panel_floats * (uint64_t)c->n_threads) * sizeof(float));
    fn(arg, c->attn_scratch, (size_t)(c->attn_floats * (uint64_t)c->n_threads) * sizeof(float));
    fn(arg, c->parts, (size_t)c->part_floats * sizeof(float));
    if (c->h) fn(arg, c->h, (size_t)c->h_floats * sizeof(float));
}

static bool reserve_deltas(hn_backend *b, int64_t n_floats, int64_t n_tok)
{
    cpu_backend *c = self(b);
    uint64_t n;
    if (!hn_mul_u64((uint64_t)n_floats, (uint64_t)n_tok, &n)) return false;
    if (n <= c->h_floats) return true;
    float *h = be_alloc(b, n);
    if (!h) return false;
    if (c->h) be_release(b, c->h, c->h_floats);
    c->h = h;
    c->h_floats = n;
    return true;
}

static void cpu_free(hn_backend *b)
{
    cpu_backend *c = self(b);
    be_release(b, c->panels, c->panel_floats * (uint64_t)c->n_threads);
    be_release(b, c->attn_scratch, c->attn_floats * (uint64_t)c->n_threads);
    free(c->chunks);
    be_release(b, c->parts, c->part_floats);
    if (c->h) be_release(b, c->h, c->h_floats);
    free(c->parts_done);
    free(c);
}

static const hn_backend_ops cpu_ops = {
    .name = "cpu",
    .alloc = be_alloc,
    .alloc_cache = be_alloc_cache,
    .release = be_release,
    .copy = be_copy,
    .fill0 = be_fill0,
    .read = be_copy,
    .write = be_copy,
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
    .blocks = cpu_blocks,
    .free = cpu_free,
};

hone_status hn_backend_cpu_new(hn_backend **out, const hn_cpu_params *p, hone_error *err)
{
    *out = NULL;
    cpu_backend *c = calloc(1, sizeof *c);
    if (!c) return HN_FAIL(err, HONE_E_NOMEM, "cpu backend");
    c->base.op = &cpu_ops;
    c->pool = p->pool;
    c->k = p->kernels;
    c->n_threads = hn_pool_threads(p->pool);
    c->panel_floats =
        HN_PANEL_BYTES((uint64_t)p->max_n_in + 256) / 64 * 16; /* whole lines; PANEL_ROWS decoded rows fit too */
    _Static_assert(PANEL_ROWS * sizeof(float) <= HN_PANEL_ELEM, "HN_PANEL_BYTES");
    int64_t group = p->n_head ? p->n_head / p->n_head_kv : 0;
    c->attn_floats =
        p->n_head ? ((uint64_t)hn_attn_floats(group > ATTN_TILE ? group : ATTN_TILE, p->d) + 15) & ~(uint64_t)15 : 16;
    c->part_floats = p->n_head ? (uint64_t)(ATTN_SPLIT_TOK * p->n_head * div_up(p->n_ctx, HN_SPLIT) * (p->d + 2)) : 16;
    c->parts = be_alloc(&c->base, c->part_floats);
    c->parts_done = calloc((size_t)(ATTN_SPLIT_TOK * p->n_head_kv + 1), sizeof *c->parts_done);
    c->panels = be_alloc(&c->base, c->panel_floats * (uint64_t)c->n_threads);
    c->attn_scratch = be_alloc(&c->base, c->attn_floats * (uint64_t)c->n_threads);
    c->chunks = malloc(MAX_CHUNKS * sizeof *c->chunks);
    if (!c->panels || !c->attn_scratch || !c->parts || !c->parts_done || !c->chunks) {
        cpu_free(&c->base);
        return HN_FAIL(err, HONE_E_NOMEM, "cpu backend: scratch of %d threads", (int)hn_pool_threads(p->pool));
    }
    *out = &c->base;
    return HONE_OK;
}
