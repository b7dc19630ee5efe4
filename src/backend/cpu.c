/* The CPU backend. Owns how operations are cut into chunks for the pool and the
 * per-thread scratch; refuses to know what is computed with them. Every output
 * element is computed by one thread in an order fixed by kernels.h, so the chunks
 * (and with them the threads) cannot change a bit. */
#include "backend/backend.h"

#include <stdlib.h>

enum {
    PANEL_ROWS = 8,      /* rows decoded to f32 at a time for types without a kernel */
    MIN_ROWS = 16,       /* kernels work in tiles of 16 rows at most */
    PREFILL_ROWS = 2 * HN_PANEL_ROWS, /* rows of a chunk that stay in cache over all columns */
    MAX_CHUNKS = 4096,   /* of one matmul */
    ROWS_PER_CHUNK = 8,  /* rows of a batch handed out together */
    ATTN_ROWS = 8        /* batch rows of one KV head per attention chunk */
};

typedef struct cpu_backend {
    hn_backend base;
    hn_pool *pool;
    const hn_kernels *k;
    int32_t n_threads;
    float *panels;       /* [threads][panel_floats]: opened or decoded rows */
    uint64_t panel_floats;
    float *attn_scratch; /* [threads][attn_floats] */
    uint64_t attn_floats;
    struct mm_chunk *chunks; /* [MAX_CHUNKS] of the running matmul */
} cpu_backend;

static cpu_backend *self(hn_backend *b) { return (cpu_backend *)b; }

/* ---- memory ---------------------------------------------------------------------------- */

static float *be_alloc(hn_backend *b, uint64_t n)
{
    uint64_t bytes;
    if (!hn_mul_u64(n, sizeof(float), &bytes) || bytes > SIZE_MAX) return NULL;
    return hn_pages_alloc((size_t)bytes);
}

static void be_release(hn_backend *b, float *p, uint64_t n) { hn_pages_free(p, (size_t)(n * sizeof(float))); }

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
    float *y;
    const float *x, *x2, *w, *cs;
    const double *freq;
    const hn_weight *weight;
    const hn_row *rows;
    const hn_kv *kv;
    const hn_type_info *ti;
    bool want[HN_ACT_KINDS];
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
}

static void set_act(hn_backend *b, hn_act *act, const float *x, int64_t n, int64_t n_tok)
{
    act_begin(act, n, n_tok);
    for (int64_t t = 0; t < n_tok; t++) memcpy(act->f32 + (size_t)t * hn_f32_stride(n), x + t * n, (size_t)n * sizeof(float));
}

static void head_norm_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    float *x = j->y + t * j->n_head * j->d;
    for (int64_t h = 0; h < j->n_head; h++) j->c->k->rms_norm(x + h * j->d, x + h * j->d, j->w, j->d, j->eps);
}
static void head_norm(hn_backend *b, float *x, const float *w, int64_t n_head, int64_t d, int64_t n_tok, float eps)
{
    row_job j = { .c = self(b), .y = x, .w = w, .n_head = n_head, .d = d, .eps = eps };
    for_rows(j.c, head_norm_row, &j, n_tok);
}

static void rope_table_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    hn_rope_table(j->y + t * j->n_rot, j->freq, j->n_rot, j->rows[t].pos, j->mscale);
}
static void rope_table(hn_backend *b, float *cs, const double *freq, int32_t n_rot, float mscale, const hn_row *rows, int64_t n_tok)
{
    row_job j = { .y = cs, .freq = freq, .n_rot = n_rot, .mscale = mscale, .rows = rows };
    for_rows(self(b), rope_table_row, &j, n_tok);
}

static void rope_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    hn_rope_apply(j->y + t * j->n_head * j->d, j->cs + t * j->n_rot, j->n_head, j->d, j->n_rot, j->neox);
}
static void rope(hn_backend *b, float *x, const float *cs, int64_t n_head, int64_t d, int32_t n_rot, bool neox, int64_t n_tok)
{
    row_job j = { .y = x, .cs = cs, .n_head = n_head, .d = d, .n_rot = n_rot, .neox = neox };
    for_rows(self(b), rope_row, &j, n_tok);
}

static void kv_store_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    const hn_kv *kv = j->kv;
    for (int32_t h = 0; h < kv->n_head_kv; h++) {
        size_t plane = ((size_t)j->rows[t].seq * (size_t)kv->n_head_kv + (size_t)h) * kv->plane_bytes;
        int64_t at = (t * kv->n_head_kv + h) * kv->d;
        hn_store_k(kv->k + plane, j->x + at, kv->d, j->rows[t].pos, kv->f16);
        hn_store_v(kv->v + plane, j->x2 + at, kv->d, j->rows[t].pos, kv->f16);
    }
}
static void kv_store(hn_backend *b, const hn_kv *kv, const float *k, const float *v, const hn_row *rows, int64_t n_tok)
{
    row_job j = { .kv = kv, .x = k, .x2 = v, .rows = rows };
    for_rows(self(b), kv_store_row, &j, n_tok);
}

static void gather(hn_backend *b, float *y, const float *x, const int32_t *index, int64_t n, int64_t n_index)
{
    for (int64_t i = 0; i < n_index; i++) memmove(y + i * n, x + index[i] * n, (size_t)n * sizeof(float));
}

/* ---- matmul ----------------------------------------------------------------------------------- */

/* Row t in every form that is wanted; each is made of the one before while that is in cache. */
static void prepare_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    hn_act *a = j->act;
    float *x = a->f32 + (size_t)t * hn_f32_stride(a->n);
    if (a->norm_x) j->c->k->rms_norm(x, a->norm_x + t * a->n, a->norm_w, a->n, a->norm_eps);
    if (j->want[HN_ACT_Q256]) j->c->k->quantize256((hn_a256 *)((char *)a->q256 + (size_t)t * hn_act_row_bytes(HN_ACT_Q256, a->n)), x, a->n);
    if (j->want[HN_ACT_Q32]) j->c->k->quantize32((char *)a->q32 + (size_t)t * hn_act_row_bytes(HN_ACT_Q32, a->n), x, a->n);
}

/* The forms of `a` that n products ask for. */
static void act_prepare(cpu_backend *c, hn_act *a, const hn_product *p, int n)
{
    row_job j = { .c = c, .act = a };
    bool any = a->norm_x != NULL;
    for (int i = 0; i < n; i++) {
        hn_act_kind kind = hn_act_kind_of(p[i].w->type);
        j.want[kind] = !a->have[kind];
        any = any || !a->have[kind];
    }
    if (!any) return;
    for_rows(c, prepare_row, &j, a->n_tok);
    for (int k = 0; k < HN_ACT_KINDS; k++) a->have[k] = a->have[k] || j.want[k];
    a->have[HN_ACT_F32] = true;
    a->norm_x = NULL;
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
} mm_job;

/* Rows [r0, r1) of one product, all columns, into y, bias added. */
static void product_rows(cpu_backend *c, const hn_weight *w, const hn_act *a, float *y, int64_t ldy, int64_t r0, int64_t r1, int32_t thread)
{
    hn_act_kind kind = hn_act_kind_of(w->type);
    hn_mm m = { .y = y, .ldy = ldy, .w = w->data, .w_stride = w->row_bytes,
                .x = kind == HN_ACT_Q256 ? a->q256 : kind == HN_ACT_Q32 ? a->q32 : (void *)a->f32,
                .x_stride = hn_act_row_bytes(kind, a->n), .n_in = w->n_in, .n_col = a->n_tok, .r0 = r0, .r1 = r1,
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
            for (int64_t i = 0; i < m.r1; i++) ti->dequantize(panel + i * w->n_in, (const char *)w->data + (size_t)(r + i) * w->row_bytes, w->n_in);
            m.y = y + r;
            c->k->matmul[HN_F32](&m);
        }
    }
    if (w->bias)
        for (int64_t t = 0; t < a->n_tok; t++) hn_add(y + t * ldy + r0, w->bias + r0, r1 - r0);
}

static void run_chunk(void *arg, int64_t i, int32_t thread)
{
    mm_job *j = arg;
    cpu_backend *c = j->c;
    const mm_chunk *k = &c->chunks[i];
    const hn_product *p = &j->p[k->p];
    int64_t n_out = p->w->n_out, ldy = j->up || p->sum ? (int64_t)hn_f32_stride(n_out) : n_out, r0 = k->r0, n = k->r1 - k->r0;
    product_rows(c, p->w, j->act, p->y, ldy, r0, k->r1, thread);
    if (j->up) {
        product_rows(c, j->up, j->act, j->up_y, ldy, r0, k->r1, thread);
        for (int64_t t = 0; t < j->act->n_tok; t++) c->k->silu_mul(p->y + t * ldy + r0, p->y + t * ldy + r0, j->up_y + t * ldy + r0, n);
    }
    if (p->sum)
        for (int64_t t = 0; t < j->act->n_tok; t++) hn_add(p->sum + t * n_out + r0, p->y + t * ldy + r0, n);
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
            int64_t rows = left / (2 * hn_pool_active(c->pool)) / unit * unit;
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
    act_prepare(j.c, act, p, n);
    hn_pool_run(j.c->pool, run_chunk, &j, cut(j.c, p, n, act->n_tok));
}

static void gate_up(hn_backend *b, hn_act *out, hn_act *act, const hn_weight *gate, const hn_weight *up, float *up_y)
{
    const hn_product p[2] = { { gate, out->f32, NULL }, { up, up_y, NULL } };
    mm_job j = { .c = self(b), .act = act, .p = p, .up = up, .up_y = up_y };
    act_prepare(j.c, act, p, 2);
    act_begin(out, gate->n_out, act->n_tok);
    hn_pool_run(j.c->pool, run_chunk, &j, cut(j.c, p, 1, act->n_tok));
}

static void head(hn_backend *b, float *logits, hn_act *act, const hn_weight *w)
{
    matmul(b, act, &(hn_product){ w, logits, NULL }, 1); /* host memory is ours */
}

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- attention ------------------------------------------------------------------------------------ */

typedef struct attn_job {
    cpu_backend *c;
    float *out;
    const float *q;
    const hn_kv *kv;
    const hn_row *rows;
    int64_t n_tok, n_head, n_block;
    float scale;
} attn_job;

/* Chunk: one KV head, ATTN_ROWS rows of the batch; heads outermost, so that a head's
 * keys stay in cache. */
static void attn_chunk(void *arg, int64_t chunk, int32_t thread)
{
    attn_job *j = arg;
    const hn_kv *kv = j->kv;
    int64_t h = chunk / j->n_block, t0 = chunk % j->n_block * ATTN_ROWS, d = kv->d;
    int64_t t1 = t0 + ATTN_ROWS < j->n_tok ? t0 + ATTN_ROWS : j->n_tok, group = j->n_head / kv->n_head_kv;
    for (int64_t t = t0; t < t1; t++) {
        size_t plane = ((size_t)j->rows[t].seq * (size_t)kv->n_head_kv + (size_t)h) * kv->plane_bytes;
        int64_t at = (t * j->n_head + h * group) * d;
        hn_attn a = { .q = j->q + at, .out = j->out + at, .k = kv->k + plane, .v = kv->v + plane,
                      .scratch = j->c->attn_scratch + (uint64_t)thread * j->c->attn_floats,
                      .n_q = group, .n_kv = j->rows[t].pos + 1, .d = d, .scale = j->scale };
        (kv->f16 ? j->c->k->attn_f16 : j->c->k->attn_f32)(&a);
    }
}

static void attention(hn_backend *b, float *out, const float *q, const hn_kv *kv, const hn_row *rows, int64_t n_tok, int64_t n_head, float scale)
{
    attn_job j = { self(b), out, q, kv, rows, n_tok, n_head, div_up(n_tok, ATTN_ROWS), scale };
    hn_pool_run(j.c->pool, attn_chunk, &j, j.n_block * kv->n_head_kv);
}

/* ---- life -------------------------------------------------------------------------------------------- */

static void cpu_free(hn_backend *b)
{
    cpu_backend *c = self(b);
    be_release(b, c->panels, c->panel_floats * (uint64_t)c->n_threads);
    be_release(b, c->attn_scratch, c->attn_floats * (uint64_t)c->n_threads);
    free(c->chunks);
    free(c);
}

static const hn_backend_ops cpu_ops = {
    .name = "cpu", .alloc = be_alloc, .release = be_release, .act_alloc = act_alloc, .act_release = act_release,
    .embed = embed, .rms_norm = rms_norm, .set_act = set_act, .gate_up = gate_up, .matmul = matmul,
    .head_norm = head_norm, .rope_table = rope_table, .rope = rope, .kv_store = kv_store, .attention = attention,
    .gather = gather, .head = head, .free = cpu_free,
};

hone_status hn_backend_cpu_new(hn_backend **out, hn_pool *pool, const hn_kernels *kernels, int64_t max_n_in, int64_t max_group,
                               int64_t d, hone_error *err)
{
    *out = NULL;
    cpu_backend *c = calloc(1, sizeof *c);
    if (!c) return HN_FAIL(err, HONE_E_NOMEM, "cpu backend");
    c->base.op = &cpu_ops;
    c->pool = pool;
    c->k = kernels;
    c->n_threads = hn_pool_threads(pool);
    c->panel_floats = HN_PANEL_BYTES((uint64_t)max_n_in + 256) / 64 * 16; /* whole lines; PANEL_ROWS decoded rows fit too */
    _Static_assert(PANEL_ROWS * sizeof(float) <= 48, "HN_PANEL_BYTES");
    c->attn_floats = (uint64_t)(max_group * (HN_SOFT_BLOCK + d) + 16);
    c->panels = be_alloc(&c->base, c->panel_floats * (uint64_t)c->n_threads);
    c->attn_scratch = be_alloc(&c->base, c->attn_floats * (uint64_t)c->n_threads);
    c->chunks = malloc(MAX_CHUNKS * sizeof *c->chunks);
    if (!c->panels || !c->attn_scratch || !c->chunks) {
        cpu_free(&c->base);
        return HN_FAIL(err, HONE_E_NOMEM, "cpu backend: scratch of %d threads", (int)hn_pool_threads(pool));
    }
    *out = &c->base;
    return HONE_OK;
}
