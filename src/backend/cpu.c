/* The CPU backend: its life, its memory, and what is done to rows. Owns the scratch of each thread and how rows are cut
 * into chunks for the pool; refuses to know what is computed with them. Products are cpu_product.c's, attention
 * cpu_attn.c's, recurrences cpu_rwkv.c's and cpu_recurrent.c's, several streams cpu_streams.c's. */
#include "backend/cpu.h"
#include "backend/registry.h"

#include <assert.h>
#include <stdlib.h>

enum {
    PANEL_BYTES_MORE = 256, /* elements of a panel past the longest row */
    EMBED_PIECE = 256,      /* elements, a multiple of every packed type's block */
    ANGLE = 16,             /* what a sine costs, in numbers */
    PIECE = 4 * CPU_WORTH   /* numbers that one thread adds or scales: they pass by as memory gives them */
};

/* ---- memory ---------------------------------------------------------------------------- */

static float *pages(uint64_t n_floats)
{
    uint64_t bytes;
    if (!hn_mul_u64(n_floats, sizeof(float), &bytes) || bytes > SIZE_MAX) return NULL;
    return hn_pages_alloc((size_t)bytes);
}

static void free_pages(float *p, uint64_t n_floats) { hn_pages_free(p, (size_t)(n_floats * sizeof(float))); }

static hn_buf *be_alloc(hn_backend *b, uint64_t n_bytes, hn_mem_kind kind)
{
    cpu_backend *c = cpu_self(b);
    if (n_bytes > SIZE_MAX) return NULL;
    hn_buf *buf = calloc(1, sizeof *buf);
    if (!buf) return NULL;
    buf->bytes = (size_t)n_bytes;
    buf->kind = kind;
    buf->p = kind == HN_MEM_CACHE ? hn_pages_alloc_huge(buf->bytes) : hn_pages_alloc(buf->bytes);
    if (!buf->p) {
        free(buf);
        return NULL;
    }
    buf->next = c->bufs;
    if (c->bufs) c->bufs->prev = buf;
    c->bufs = buf;
    return buf;
}

static void be_release(hn_backend *b, hn_buf *buf)
{
    if (!buf) return;
    cpu_wrote(cpu_self(b), buf);
    if (buf->next) buf->next->prev = buf->prev;
    if (buf->prev) buf->prev->next = buf->next;
    else cpu_self(b)->bufs = buf->next;
    hn_pages_free(buf->p, buf->bytes);
    free(buf);
}

static char *at(hn_backend *b, hn_buf *buf, size_t at)
{
    cpu_wrote(cpu_self(b), buf);
    return (char *)buf->p + at;
}

static void be_copy(hn_backend *b, hn_buf *dst, size_t dst_at, const hn_buf *src, size_t src_at, size_t n)
{
    memcpy(at(b, dst, dst_at), (const char *)src->p + src_at, n);
}

static void be_fill0(hn_backend *b, hn_buf *dst, size_t dst_at, size_t n) { memset(at(b, dst, dst_at), 0, n); }

static void be_read(hn_backend *b, void *host, const hn_buf *src, size_t src_at, size_t n)
{
    memcpy(host, (const char *)src->p + src_at, n);
}

static void be_write(hn_backend *b, hn_buf *dst, size_t dst_at, const void *host, size_t n)
{
    memcpy(at(b, dst, dst_at), host, n);
}

static uint64_t available(hn_backend *b) { return hn_memory_available(); }

/* ---- activations ------------------------------------------------------------------------ */

/* Bytes of a form of so many rows; blocks of 256 and 32 are whole. */
static size_t form_bytes(hn_act_kind kind, int64_t n, int64_t n_tok)
{
    int64_t more = kind == HN_ACT_Q256 ? 255 : kind == HN_ACT_Q32 ? 31 : 0;
    return hn_act_row_bytes(kind, n + more) * (size_t)n_tok;
}

static void act_release(hn_backend *b, hn_act *a)
{
    cpu_backend *c = cpu_self(b);
    if (!a) return;
    if (c->late == a) c->late = NULL;
    if (a->next) a->next->prev = a->prev;
    if (a->prev) a->prev->next = a->next;
    else if (c->acts == a) c->acts = a->next;
    hn_pages_free(a->f32, form_bytes(HN_ACT_F32, a->n_max, a->n_tok_max));
    hn_pages_free(a->q256, form_bytes(HN_ACT_Q256, a->n_max, a->n_tok_max));
    hn_pages_free(a->q32, form_bytes(HN_ACT_Q32, a->n_max, a->n_tok_max));
    free(a);
}

static hn_act *act_alloc(hn_backend *b, int64_t n, int64_t n_tok)
{
    cpu_backend *c = cpu_self(b);
    hn_act *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->n_max = n;
    a->n_tok_max = n_tok;
    a->f32 = hn_pages_alloc(form_bytes(HN_ACT_F32, n, n_tok));
    a->q256 = hn_pages_alloc(form_bytes(HN_ACT_Q256, n, n_tok));
    a->q32 = hn_pages_alloc(form_bytes(HN_ACT_Q32, n, n_tok));
    if (!a->f32 || !a->q256 || !a->q32) {
        act_release(b, a);
        return NULL;
    }
    a->next = c->acts;
    if (c->acts) c->acts->prev = a;
    c->acts = a;
    return a;
}

static uint64_t act_bytes(hn_backend *b, int64_t n, int64_t n_tok)
{
    uint64_t sum = 0;
    for (int k = 0; k < HN_ACT_KINDS; k++) sum += form_bytes((hn_act_kind)k, n, n_tok);
    return sum;
}

static int64_t act_rows(hn_backend *b, const hn_act *a) { return a->n_tok; }

void cpu_act_begin(cpu_backend *c, hn_act *a, int64_t n, int64_t n_tok)
{
    if (c->late == a) c->late = NULL;
    a->n = n;
    a->n_tok = n_tok;
    memset(a->have, 0, sizeof a->have);
    a->have[HN_ACT_F32] = true;
    a->late_x = NULL;
}

static void act_shape(hn_backend *b, hn_act *a, int64_t n, int64_t n_tok)
{
    assert(n <= a->n_max && n_tok <= a->n_tok_max);
    cpu_act_begin(cpu_self(b), a, n, n_tok);
}

static float *part_row(const hn_act *a, const hn_act_part *p, int64_t i)
{
    return a->f32 + (size_t)(p->row + i) * hn_f32_stride(a->n) + p->col;
}

static void act_read(hn_backend *b, float *host, hn_act *a, const hn_act_part *p)
{
    cpu_wrote(cpu_self(b), a->late_x);
    for (int64_t i = 0; i < p->n_row; i++)
        memcpy(host + i * p->n_col, part_row(a, p, i), (size_t)p->n_col * sizeof(float));
}

/* What is written is f32, and other forms are made of it anew. */
static void act_write(hn_backend *b, hn_act *a, const float *host, const hn_act_part *p)
{
    cpu_wrote(cpu_self(b), a->late_x);
    for (int64_t i = 0; i < p->n_row; i++)
        memcpy(part_row(a, p, i), host + i * p->n_col, (size_t)p->n_col * sizeof(float));
    a->have[HN_ACT_Q256] = a->have[HN_ACT_Q32] = false;
}

/* ---- rows of a step ----------------------------------------------------------------------- */

typedef struct rows_job {
    hn_pool_fn *fn;
    void *arg;
    int64_t n_tok, run; /* rows of a chunk */
} rows_job;

static void rows_chunk(void *arg, int64_t chunk, int32_t thread)
{
    rows_job *j = arg;
    int64_t end = (chunk + 1) * j->run < j->n_tok ? (chunk + 1) * j->run : j->n_tok;
    for (int64_t t = chunk * j->run; t < end; t++) j->fn(j->arg, t, thread);
}

void cpu_for_rows(cpu_backend *c, hn_pool_fn *fn, void *arg, int64_t n_tok, int64_t work)
{
    if (n_tok == 1) {
        fn(arg, 0, 0);
        return;
    }
    int64_t fair = n_tok / (2 * (int64_t)hn_pool_active(c->p.pool)), least = cpu_div_up(CPU_WORTH, work > 0 ? work : 1);
    fair = fair < 1 ? 1 : fair > CPU_ROWS ? CPU_ROWS : fair;
    rows_job j = { fn, arg, n_tok, fair > least ? fair : least };
    hn_pool_run(c->p.pool, rows_chunk, &j, cpu_div_up(n_tok, j.run));
}

typedef struct row_job {
    cpu_backend *c;
    float *y, *y2;
    const float *x, *w, *b;
    const hn_weight *weight;
    const hn_angles *angles;
    const hn_type_info *ti;
    hn_act *act;
    int64_t n;
    float eps, scale, after;
    bool by_position;
} row_job;

void cpu_open_row(float *y, const hn_weight *w, const hn_type_info *ti, int64_t row, int64_t at, int64_t n)
{
    int64_t be = ti->block_elems;
    if (!w->packed) {
        const char *from = (const char *)w->data + (size_t)row * w->row_bytes;
        ti->dequantize(y, from + (size_t)(at / be) * ti->block_bytes, n);
        return;
    }
    _Alignas(64) char blocks[EMBED_PIECE * sizeof(float)];
    const char *group = (const char *)w->packed + (size_t)(row / HN_PACK_ROWS) * w->group_bytes;
    for (int64_t k = at; k < at + n; k += EMBED_PIECE, y += EMBED_PIECE) {
        int64_t m = at + n - k < EMBED_PIECE ? at + n - k : EMBED_PIECE;
        hn_unpack_blocks(w->type, blocks, group, w->n_in, (int)(row % HN_PACK_ROWS), k / be, (k + m) / be);
        ti->dequantize(y, blocks, m);
    }
}

static int64_t embedded(const row_job *j, int64_t t)
{
    const hn_row *r = &j->c->step.rows[t];
    return j->by_position ? r->pos : r->token;
}

static void embed_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    cpu_open_row(j->y + t * j->weight->n_in, j->weight, j->ti, embedded(j, t), 0, j->weight->n_in);
}

static void embed(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position)
{
    row_job j = { .c = cpu_self(b), .y = y->p, .weight = w, .ti = hn_type_get(w->type), .by_position = by_position };
    cpu_wrote(j.c, y);
    cpu_for_rows(j.c, embed_row, &j, j.c->step.n_tok, w->n_in);
}

static void embed_add_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    _Alignas(64) float x[EMBED_PIECE];
    int64_t n = j->weight->n_in, row = embedded(j, t);
    float *y = j->y + t * n;
    for (int64_t k = 0; k < n; k += EMBED_PIECE) {
        int64_t m = n - k < EMBED_PIECE ? n - k : EMBED_PIECE;
        cpu_open_row(x, j->weight, j->ti, row, k, m);
        for (int64_t i = 0; i < m; i++) y[k + i] = (y[k + i] + x[i] * j->scale) * j->after;
    }
}

static void embed_add(hn_backend *b, hn_buf *y, const hn_weight *w, bool by_position, float scale, float after)
{
    row_job j = { .c = cpu_self(b),
                  .y = y->p,
                  .weight = w,
                  .ti = hn_type_get(w->type),
                  .by_position = by_position,
                  .scale = scale,
                  .after = after };
    cpu_wrote(j.c, y);
    cpu_for_rows(j.c, embed_add_row, &j, j.c->step.n_tok, w->n_in);
}

static void rope_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    const hn_angles *a = j->angles;
    hn_rope_table(j->y + t * a->n_rot, a->freq, a->n_rot, j->c->step.rows[t].pos, a->mscale);
}

static void rope(hn_backend *b, hn_buf *cs, int angles)
{
    row_job j = { .c = cpu_self(b), .y = cs->p, .angles = &cpu_self(b)->model.angles[angles] };
    cpu_wrote(j.c, cs);
    cpu_for_rows(j.c, rope_row, &j, j.c->step.n_tok, ANGLE * j.angles->n_rot);
}

static void add_norm_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    float *y = j->y2 + t * j->n;
    j->c->k->rms_norm(y, y, j->w, j->n, j->eps);
    hn_add(j->y + t * j->n, y, j->n);
}

static void add_norm(hn_backend *b, hn_buf *x, hn_buf *y, const float *w, int64_t n, int64_t n_tok, float eps)
{
    row_job j = { .c = cpu_self(b), .y = x->p, .y2 = y->p, .w = w, .n = n, .eps = eps };
    cpu_wrote(j.c, x);
    cpu_wrote(j.c, y);
    cpu_for_rows(j.c, add_norm_row, &j, n_tok, 2 * n);
}

/* Piece i: as long as it is, from *at on. */
static int64_t piece_of(const row_job *j, int64_t i, int64_t *at)
{
    *at = i * PIECE;
    return j->n - *at < PIECE ? j->n - *at : PIECE;
}

static void scale_piece(void *arg, int64_t i, int32_t thread)
{
    const row_job *j = arg;
    int64_t at, n = piece_of(j, i, &at);
    const float f = j->scale; /* what is written could be it, as far as the compiler knows */
    float *y = j->y + at;
    for (int64_t k = 0; k < n; k++) y[k] *= f;
}

static void scale(hn_backend *b, hn_buf *x, float f, int64_t n)
{
    row_job j = { .c = cpu_self(b), .y = x->p, .n = n, .scale = f };
    cpu_wrote(j.c, x);
    hn_pool_run(j.c->p.pool, scale_piece, &j, cpu_div_up(n, PIECE));
}

static void add_piece(void *arg, int64_t i, int32_t thread)
{
    const row_job *j = arg;
    int64_t at, n = piece_of(j, i, &at);
    hn_add(j->y + at, j->x + at, n);
}

static void add(hn_backend *b, hn_buf *x, const hn_buf *y, int64_t n)
{
    row_job j = { .c = cpu_self(b), .y = x->p, .x = y->p, .n = n };
    cpu_wrote(j.c, x);
    hn_pool_run(j.c->p.pool, add_piece, &j, cpu_div_up(n, PIECE));
}

static void gather_row(void *arg, int64_t i, int32_t thread)
{
    const row_job *j = arg;
    memcpy(j->y + i * j->n, j->x + j->c->step.want[i] * j->n, (size_t)j->n * sizeof(float));
}

static void gather(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n)
{
    row_job j = { .c = cpu_self(b), .y = y->p, .x = x->p, .n = n };
    assert(y != x);
    cpu_wrote(j.c, y);
    cpu_for_rows(j.c, gather_row, &j, j.c->step.n_want, n);
}

/* ---- norms ---------------------------------------------------------------------------------- */

static void norm_row(const cpu_backend *c, const hn_norm *n, float *y, const float *x, const float *w)
{
    if (n->kind == HN_NORM_LAYER) c->k->layer_norm(y, x, w, n->b, n->n, n->eps);
    else if (n->kind == HN_NORM_NONE && w)
        for (int64_t i = 0; i < n->n; i++) y[i] = x[i] * w[i];
    else if (n->kind == HN_NORM_NONE) memcpy(y, x, (size_t)n->n * sizeof *y);
    else c->k->rms_norm(y, x, w, n->n, n->eps);
}

/* Sanitizers look whether x is what it was, all others trust cpu_wrote. */
static uint64_t hash_of(const hn_norm *n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return hn_fnv1a(HN_FNV_INIT, n->x->p, (size_t)(n->n * n->n_tok) * sizeof(float));
#else
    return 0;
#endif
}

void cpu_norm_row(const cpu_backend *c, const hn_act *a, int64_t t)
{
    norm_row(c, &a->late, a->f32 + (size_t)t * hn_f32_stride(a->n), a->late_x->p + t * a->n, a->late.w);
}

void cpu_late_done(cpu_backend *c, hn_act *a)
{
    assert(a->late_hash == hash_of(&a->late));
    a->have[HN_ACT_F32] = true;
    a->late_x = NULL;
    if (c->late == a) c->late = NULL;
}

static void late_row(void *arg, int64_t t, int32_t thread)
{
    row_job *j = arg;
    cpu_norm_row(j->c, j->act, t);
}

void cpu_wrote(cpu_backend *c, const hn_buf *b)
{
    hn_act *a = c->late;
    if (!a || a->late_x != b) return;
    row_job j = { .c = c, .act = a };
    cpu_for_rows(c, late_row, &j, a->n_tok, a->n);
    cpu_late_done(c, a);
}

typedef struct norm_job {
    cpu_backend *c;
    const hn_norm *n;
} norm_job;

static void norm_rows(void *arg, int64_t t, int32_t thread)
{
    norm_job *j = arg;
    const hn_norm *n = j->n;
    norm_row(j->c, n, n->y->p + t * n->n, n->x->p + t * n->n, n->n_w ? n->w + t % n->n_w * n->n : n->w);
}

static void own_row(void *arg, int64_t t, int32_t thread)
{
    norm_job *j = arg;
    float *x = j->n->act->f32 + (size_t)t * hn_f32_stride(j->n->n);
    norm_row(j->c, j->n, x, x, j->n->w);
}

static void norm(hn_backend *b, const hn_norm *n)
{
    cpu_backend *c = cpu_self(b);
    if (!n->x) {
        norm_job j = { c, n };
        cpu_wrote(c, n->act->late_x);
        cpu_for_rows(c, own_row, &j, n->n_tok, n->n);
        cpu_act_begin(c, n->act, n->n, n->n_tok);
        return;
    }
    if (n->y) {
        norm_job j = { c, n };
        cpu_wrote(c, n->y);
        cpu_for_rows(c, norm_rows, &j, n->n_tok, n->n);
        return;
    }
    hn_act *a = n->act;
    assert(!n->n_w);
    if (c->late && c->late != a) cpu_wrote(c, c->late->late_x); /* one waits at a time */
    cpu_act_begin(c, a, n->n, n->n_tok);
    a->have[HN_ACT_F32] = false;
    a->late_x = n->x;
    a->late = *n;
    a->late_hash = hash_of(n);
    c->late = a;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Few tokens wait for memory, for which few threads may do. */
static void step_begin(hn_backend *b, const hn_step_block *step)
{
    cpu_backend *c = cpu_self(b);
    int32_t n = step->n_tok > CPU_FEW_TOKENS ? c->p.threads_many : c->p.threads_few;
    hn_pool_limit(c->p.pool, n ? n : c->n_threads);
    c->step = *step;
    c->layer = -1;
    c->fault = (hn_fault){ 0 };
    c->bad_logits = false;
}

static bool layer(hn_backend *b, int32_t il)
{
    cpu_backend *c = cpu_self(b);
    c->layer = il;
    return il < 0 || !c->step.stop || !c->step.stop(c->step.stop_arg);
}

static hone_status step_end(hn_backend *b, hn_fault *f, hone_error *err)
{
    cpu_backend *c = cpu_self(b);
    c->fault.logits = c->bad_logits;
    if (f) *f = c->fault;
    c->step = (hn_step_block){ 0 };
    return c->fault.what ? HONE_E_NUMERIC : HONE_OK;
}

/* ---- life -------------------------------------------------------------------------------------- */

static void one_block(hn_mem_block_fn *fn, void *arg, hn_mem_kind kind, const hn_buf *buf, void *p, size_t n)
{
    if (p && n) fn(arg, &(hn_mem_block){ kind, buf, p, n });
}

static void blocks(hn_backend *b, hn_mem_block_fn *fn, void *arg)
{
    cpu_backend *c = cpu_self(b);
    size_t threads = (size_t)c->n_threads * sizeof(float);
    one_block(fn, arg, HN_MEM_OWN, NULL, c->panels, (size_t)c->panel_floats * threads);
    one_block(fn, arg, HN_MEM_OWN, NULL, c->attn_scratch, (size_t)c->attn_floats * threads);
    one_block(fn, arg, HN_MEM_OWN, NULL, c->parts, (size_t)c->part_floats * sizeof(float));
    one_block(fn, arg, HN_MEM_OWN, NULL, c->wide, (size_t)c->wide_floats * sizeof(float));
    one_block(fn, arg, HN_MEM_OWN, NULL, c->h, (size_t)c->h_floats * sizeof(float));
    cpu_index_blocks(c, fn, arg);
    cpu_moe_blocks(c, fn, arg);
    for (const hn_buf *p = c->bufs; p; p = p->next) one_block(fn, arg, p->kind, p, p->p, p->bytes);
    for (const hn_act *a = c->acts; a; a = a->next) {
        one_block(fn, arg, HN_MEM_ACT, NULL, a->f32, form_bytes(HN_ACT_F32, a->n_max, a->n_tok_max));
        one_block(fn, arg, HN_MEM_ACT, NULL, a->q256, form_bytes(HN_ACT_Q256, a->n_max, a->n_tok_max));
        one_block(fn, arg, HN_MEM_ACT, NULL, a->q32, form_bytes(HN_ACT_Q32, a->n_max, a->n_tok_max));
    }
}

/* Weights are read where they lie. */
static hone_status upload(hn_backend *b, const hn_upload *u, hone_error *err)
{
    for (int32_t i = 0; i < u->n_weight; i++) assert(u->weight[i]->id == i);
    cpu_self(b)->model = *u;
    return HONE_OK;
}

static void cpu_free(hn_backend *b)
{
    cpu_backend *c = cpu_self(b);
    while (c->acts) act_release(b, c->acts);
    while (c->bufs) be_release(b, c->bufs);
    free_pages(c->panels, c->panel_floats * (uint64_t)c->n_threads);
    free_pages(c->attn_scratch, c->attn_floats * (uint64_t)c->n_threads);
    free_pages(c->parts, c->part_floats);
    free_pages(c->wide, c->wide_floats);
    free_pages(c->h, c->h_floats);
    cpu_index_close(c);
    cpu_moe_close(c);
    free(c->chunks);
    free(c->parts_done);
    free(c);
}

static const hn_backend_ops cpu_ops = {
    .name = "cpu",
    .free = cpu_free,
    .available = available,
    .blocks = blocks,
    .upload = upload,
    .reserve = cpu_reserve,
    .alloc = be_alloc,
    .release = be_release,
    .copy = be_copy,
    .fill0 = be_fill0,
    .read = be_read,
    .write = be_write,
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
    .loud = cpu_loud,
    .predict = cpu_predict,
    .correct = cpu_correct,
    .inject = cpu_inject,
    .fold = cpu_fold,
    .ngram = cpu_ngram,
    .agree = cpu_agree,
    .sparse_glu = cpu_sparse_glu,
    .matmul = cpu_matmul,
    .glu = cpu_glu,
    .route = cpu_route,
    .moe_glu = cpu_moe_glu,
    .moe_down = cpu_moe_down,
    .heads = cpu_heads,
    .latent = cpu_latent,
    .index = cpu_index,
    .matmul_heads = cpu_matmul_heads,
    .attention = cpu_attention,
    .token_shift = cpu_token_shift,
    .time_mix = cpu_time_mix,
    .conv = cpu_conv,
    .delta = cpu_delta,
    .ssm = cpu_ssm,
    .logits = cpu_logits,
};

/* What each thread needs, and all of them together, from the shapes. */
static void plan_scratch(cpu_backend *c)
{
    const hn_backend_params *p = &c->p;
    c->panel_floats = HN_PANEL_BYTES((uint64_t)p->max_n_in + PANEL_BYTES_MORE) / 64 * 16; /* whole lines */
    c->attn_floats = p->n_head ? cpu_attn_floats(p->n_group ? p->n_group : p->n_head / p->n_head_kv, p->d) : 16;
    c->part_floats =
        p->n_head ? (uint64_t)(CPU_SPLIT_ROWS * p->n_head * cpu_div_up(p->n_ctx, HN_SPLIT) * (p->d + 2)) : 16;
    c->wide_floats = (uint64_t)p->n_tok * hn_f32_stride(p->max_n_out);
}

hone_status hn_backend_cpu_open(hn_backend **out, const hn_backend_params *p, hone_error *err)
{
    *out = NULL;
    cpu_backend *c = calloc(1, sizeof *c);
    if (!c) return HN_FAIL(err, HONE_E_NOMEM, "cpu backend");
    c->base.op = &cpu_ops;
    c->p = *p;
    c->k = hn_kernels_get(p->level);
    c->n_threads = hn_pool_threads(p->pool);
    plan_scratch(c);
    c->parts = pages(c->part_floats);
    c->parts_done = calloc((size_t)c->n_threads * CPU_ATTN_RUNS, sizeof *c->parts_done);
    c->panels = pages(c->panel_floats * (uint64_t)c->n_threads);
    c->attn_scratch = pages(c->attn_floats * (uint64_t)c->n_threads);
    c->chunks = malloc(cpu_chunk_bytes());
    if (c->wide_floats) c->wide = pages(c->wide_floats);
    if (!c->panels || !c->attn_scratch || !c->parts || !c->parts_done || !c->chunks || (c->wide_floats && !c->wide) ||
        !cpu_moe_open(c) || !cpu_index_open(c)) {
        cpu_free(&c->base);
        return HN_FAIL(err, HONE_E_NOMEM, "cpu backend: scratch of %d threads", (int)hn_pool_threads(p->pool));
    }
    *out = &c->base;
    return HONE_OK;
}
