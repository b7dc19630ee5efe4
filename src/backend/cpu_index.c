/* Attention of the CPU backend that sees chosen positions alone: an index whose rows become keys of blocks, scores of
 * blocks, the choice, and what is chosen gathered into pages of its own, which attention reads as it reads all others.
 * Owns how that is cut; refuses to know layers. */
#include "backend/cpu.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    SCORED = 512, /* blocks of a chunk */
    HEADS = 8,    /* of queries in a run, at least */
    LANES = 16
};

/* ---- scratch --------------------------------------------------------------------------------------------- */

/* Bytes of a page of keys and of one of values, of a head. */
static size_t half_page(hn_cache_type type, int64_t d)
{
    return HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(type, d);
}

bool cpu_index_open(cpu_backend *c)
{
    cpu_index_room *r = &c->index;
    const hn_backend_params *p = &c->p;
    if (!p->n_block) return true;
    r->scores_bytes = (size_t)(CPU_INDEX_ROWS * p->n_block) * sizeof *r->scores;
    r->order_bytes = (size_t)(CPU_INDEX_ROWS * p->n_block) * sizeof *r->order;
    r->gathered_bytes = (size_t)cpu_div_up(p->n_chosen, HN_PAGE) * 2 * half_page(HN_CACHE_F32, p->d);
    r->scores = hn_pages_alloc(r->scores_bytes);
    r->order = hn_pages_alloc(r->order_bytes);
    r->gathered = hn_pages_alloc(r->gathered_bytes * (size_t)c->n_threads);
    return r->scores && r->order && r->gathered;
}

void cpu_index_close(cpu_backend *c)
{
    cpu_index_room *r = &c->index;
    hn_pages_free(r->scores, r->scores_bytes);
    hn_pages_free(r->order, r->order_bytes);
    hn_pages_free(r->gathered, r->gathered_bytes * (size_t)c->n_threads);
}

void cpu_index_blocks(const cpu_backend *c, hn_mem_block_fn *fn, void *arg)
{
    const cpu_index_room *r = &c->index;
    const struct {
        void *p;
        size_t n;
    } all[] = { { r->scores, r->scores_bytes },
                { r->order, r->order_bytes },
                { r->gathered, r->gathered_bytes * (size_t)c->n_threads } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].p) fn(arg, &(hn_mem_block){ HN_MEM_OWN, NULL, all[i].p, all[i].n });
}

/* ---- rows and keys --------------------------------------------------------------------------------------- */

typedef struct index_job {
    cpu_backend *c;
    const hn_block_index *x;
    const hn_kv *kv;
} index_job;

/* The row of the index at a position; of a block's last position, once the block is whole, its key. */
static float *row_at(const cpu_backend *c, const hn_kv *kv, int32_t seq, int64_t pos)
{
    const uint32_t *table = cpu_table_of(c, kv, seq);
    uint32_t page = table ? table[pos / HN_PAGE] : (uint32_t)(pos / HN_PAGE);
    char *at = (char *)kv->mem->p + (size_t)page * kv->page_bytes + kv->i_at;
    return (float *)(void *)at + pos % HN_PAGE * kv->d_i;
}

static void store_row(void *arg, int64_t t, int32_t thread)
{
    index_job *j = arg;
    const hn_block_index *x = j->x;
    const hn_row *row = &j->c->step.rows[t];
    const int64_t d = j->kv->d_i;
    const int32_t n_rot = j->c->model.angles[x->angles].n_rot;
    float *q = x->q->p + t * x->n_head * d;
    for (int64_t h = 0; x->q_norm && h < x->n_head; h++) j->c->k->rms_norm(q + h * d, q + h * d, x->q_norm, d, x->eps);
    hn_rope_apply(q, x->cs->p + t * n_rot, x->n_head, d, n_rot, x->neox);
    memcpy(row_at(j->c, j->kv, row->seq, row->pos), x->k->p + t * d, (size_t)d * sizeof *q);
}

/* The key of the block whose last position is row t's: the mean of its rows, by a chain of additions, normed and turned
 * as its first position is. */
static void make_key(void *arg, int64_t t, int32_t thread)
{
    index_job *j = arg;
    const hn_block_index *x = j->x;
    const hn_row *row = &j->c->step.rows[t];
    const int64_t d = j->kv->d_i, first = row->pos + 1 - x->block;
    const hn_angles *a = &j->c->model.angles[x->angles];
    float key[HN_MAX_INDEX], cs[HN_MAX_INDEX];
    if ((row->pos + 1) % x->block) return;
    memcpy(key, row_at(j->c, j->kv, row->seq, first), (size_t)d * sizeof *key);
    for (int64_t pos = first + 1; pos <= row->pos; pos++) hn_add(key, row_at(j->c, j->kv, row->seq, pos), d);
    for (int64_t i = 0; i < d; i++) key[i] /= (float)x->block;
    if (x->k_norm_b) j->c->k->layer_norm(key, key, x->k_norm, x->k_norm_b, d, x->eps);
    else j->c->k->rms_norm(key, key, x->k_norm, d, x->eps);
    hn_rope_table(cs, a->freq, a->n_rot, first, a->mscale);
    hn_rope_apply(key, cs, 1, d, a->n_rot, x->neox);
    memcpy(row_at(j->c, j->kv, row->seq, row->pos), key, (size_t)d * sizeof *key);
}

void cpu_index(hn_backend *b, const hn_block_index *x, const hn_kv *kv)
{
    index_job j = { .c = cpu_self(b), .x = x, .kv = kv };
    assert(kv->d_i <= HN_MAX_INDEX && j.c->model.angles[x->angles].n_rot <= kv->d_i);
    cpu_wrote(j.c, x->q);
    cpu_for_rows(j.c, store_row, &j, j.c->step.n_tok, (x->n_head + 1) * kv->d_i);
    cpu_for_rows(j.c, make_key, &j, j.c->step.n_tok, 4 * kv->d_i);
}

/* ---- scores and the choice ------------------------------------------------------------------------------- */

typedef struct chosen_job {
    cpu_backend *c;
    const hn_attention *a;
    const hn_kv *kv;
    float *out;
    int64_t out_stride, d_v;
    int64_t first, n; /* of the rows that are given: those of this turn */
    int64_t n_run;    /* chunks of a row's blocks at most */
    int64_t n_cut;    /* runs of the query heads of a KV head */
} chosen_job;

static int64_t row_of(const chosen_job *j, int64_t i) { return cpu_row(j->c, j->a->which, j->first + i); }
/* Blocks that are whole at a row's position; as many as it may see: it sees everything. */
static int64_t blocks_of(const chosen_job *j, int64_t r) { return (j->c->step.rows[r].pos + 1) / j->a->index->block; }
static bool chooses(const chosen_job *j, int64_t r) { return blocks_of(j, r) > j->a->index->n_best; }

static float dot(const float *x, const float *y, int64_t n)
{
    float lane[LANES] = { 0 };
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += x[k + l] * y[k + l];
    for (int l = 0; k + l < n; l++) lane[l] += x[k + l] * y[k + l];
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        for (int l = 0; l < apart; l++) lane[l] += lane[l + apart];
    return lane[0];
}

/* Chunk: some blocks of one row. */
static void score_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const chosen_job *j = arg;
    const hn_block_index *x = j->a->index;
    const hn_kv *rows = x->rows ? x->rows : j->kv;
    const int64_t i = chunk / j->n_run, r = row_of(j, i), d = rows->d_i, from = chunk % j->n_run * SCORED;
    const int64_t n = blocks_of(j, r), end = from + SCORED < n ? from + SCORED : n;
    const float *q = x->q->p + r * x->n_head * d, *weigh = x->weigh ? x->weigh->p + r * x->n_head : NULL;
    float *scores = j->c->index.scores + i * j->c->p.n_block;
    if (!chooses(j, r)) return;
    for (int64_t k = from; k < end; k++) {
        const float *key = row_at(j->c, rows, j->c->step.rows[r].seq, (k + 1) * x->block - 1);
        float sum = 0;
        for (int64_t h = 0; h < x->n_head; h++) {
            float s = dot(q + h * d, key, d);
            s = s > 0 ? s : 0;
            sum += weigh ? weigh[h] * s : s;
        }
        scores[k] = sum;
    }
}

/* Does block a come before block b: does it score more, or as much and is the earlier one? */
static bool before(const float *scores, int32_t a, int32_t b)
{
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

static void sink(int32_t *heap, int64_t n, int64_t at, const float *scores)
{
    for (int64_t kid; (kid = 2 * at + 1) < n; at = kid) { /* the worst is on top */
        if (kid + 1 < n && before(scores, heap[kid], heap[kid + 1])) kid++;
        if (before(scores, heap[kid], heap[at])) return;
        int32_t x = heap[at];
        heap[at] = heap[kid];
        heap[kid] = x;
    }
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The n_best blocks of a row, ascending, at the beginning of its order: a heap of the best so far. */
static void choose_row(void *arg, int64_t i, int32_t thread)
{
    const chosen_job *j = arg;
    const int64_t r = row_of(j, i), n = blocks_of(j, r), k = j->a->index->n_best;
    const float *scores = j->c->index.scores + i * j->c->p.n_block;
    int32_t *heap = j->c->index.order + i * j->c->p.n_block;
    if (!chooses(j, r)) return;
    for (int64_t b = 0; b < k; b++) heap[b] = (int32_t)b;
    for (int64_t at = k / 2 - 1; at >= 0; at--) sink(heap, k, at, scores);
    for (int64_t b = k; b < n; b++) {
        if (!before(scores, (int32_t)b, heap[0])) continue;
        heap[0] = (int32_t)b;
        sink(heap, k, 0, scores);
    }
    qsort(heap, (size_t)k, sizeof *heap, ascending);
}

/* ---- attention over them --------------------------------------------------------------------------------- */

/* Items of `bytes` each in rows of 16: item `from` of src becomes item `to` of dst, in n rows. */
static void copy_items(char *dst, int64_t to, const char *src, int64_t from, int64_t n, size_t bytes)
{
    const size_t row = HN_KEY_BLOCK * bytes;
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * row + (size_t)to * bytes, src + (size_t)i * row + (size_t)from * bytes, bytes);
}

/* Position `from` of a block of 16 becomes position `to` of another: keys, or values, as layout.h has them. */
static void copy_key(char *dst, int64_t to, const char *src, int64_t from, hn_cache_type type, int64_t d)
{
    const int64_t d4 = hn_cache_d4(d);
    if (type == HN_CACHE_F16) copy_items(dst, to, src, from, d, 2);
    else if (type == HN_CACHE_F32) copy_items(dst, to, src, from, d, 4);
    else {
        copy_items(dst, to, src, from, d4 / 4, 4);
        copy_items(dst + d4 * HN_KEY_BLOCK, to, src + d4 * HN_KEY_BLOCK, from, hn_cache_groups(d), 2);
    }
}
static void copy_value(char *dst, int64_t to, const char *src, int64_t from, hn_cache_type type, int64_t d)
{
    const int64_t d4 = hn_cache_d4(d);
    if (type == HN_CACHE_F16) copy_items(dst, to, src, from, 1, (size_t)d * 2);
    else if (type == HN_CACHE_F32) copy_items(dst, to, src, from, 1, (size_t)d * 4);
    else {
        copy_items(dst, to, src, from, 1, (size_t)d4);
        copy_items(dst + d4 * HN_KEY_BLOCK, to, src + d4 * HN_KEY_BLOCK, from, 1, (size_t)hn_cache_groups(d) * 2);
    }
}

typedef struct gathering {
    const chosen_job *j;
    char *to; /* pages, each keys and then values; or rows that are both */
    const uint32_t *table;
    int64_t h, n; /* the head; positions so far */
} gathering;

static void gather_position(gathering *g, int64_t pos)
{
    const hn_kv *kv = g->j->kv;
    const size_t half = half_page(kv->type, kv->d), one = hn_cache_block_bytes(kv->type, kv->d);
    const uint32_t page = g->table ? g->table[pos / HN_PAGE] : (uint32_t)(pos / HN_PAGE);
    const char *mem = (const char *)kv->mem->p + hn_kv_at(kv, page, g->h);
    const size_t from = (size_t)(pos % HN_PAGE / HN_KEY_BLOCK) * one;
    char *to = g->to + (size_t)(g->n / HN_PAGE) * 2 * half + (size_t)(g->n % HN_PAGE / HN_KEY_BLOCK) * one;
    const bool latent = g->j->a->d_v != 0;
    if (!latent) copy_key(to, g->n % HN_KEY_BLOCK, mem + kv->k_at + from, pos % HN_KEY_BLOCK, kv->type, kv->d);
    copy_value(latent ? to : to + half, g->n % HN_KEY_BLOCK, mem + (latent ? kv->k_at : kv->v_at) + from,
               pos % HN_KEY_BLOCK, kv->type, kv->d);
    g->n++;
}

/* Chunk: one row, a run of the query heads of one KV head. A row that sees everything reads where it lies. */
static void attend_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const chosen_job *j = arg;
    const hn_kv *kv = j->kv;
    const hn_block_index *x = j->a->index;
    cpu_backend *c = j->c;
    const int64_t unit = chunk / j->n_cut, cut = chunk % j->n_cut, i = unit / kv->n_head_kv, h = unit % kv->n_head_kv;
    const int64_t r = row_of(j, i), d = kv->d, group = j->a->n_head / kv->n_head_kv;
    const int64_t head = h * group + cut * group / j->n_cut, end = h * group + (cut + 1) * group / j->n_cut;
    const hn_row *row = &c->step.rows[r];
    const char *mem = (const char *)kv->mem->p + (size_t)h * kv->head_bytes;
    hn_attn a = { .q = j->a->q->p + (r * j->a->n_head + head) * d,
                  .out = j->out + (j->first + i) * j->out_stride + head * j->d_v,
                  .q_stride = j->a->n_head * d,
                  .out_stride = j->out_stride,
                  .k = mem + kv->k_at,
                  .v = mem + (j->a->d_v ? kv->k_at : kv->v_at),
                  .page = cpu_table_of(c, kv, row->seq),
                  .page_bytes = kv->page_bytes,
                  .scratch = c->attn_scratch + (uint64_t)thread * c->attn_floats,
                  .n_tok = 1,
                  .n_q = end - head,
                  .n_kv = row->pos + 1,
                  .d = d,
                  .d_v = j->a->d_v,
                  .scale = j->a->scale,
                  .cap = j->a->cap,
                  .pos = row->pos };
    if (chooses(j, r)) {
        gathering g = { j, c->index.gathered + (size_t)thread * c->index.gathered_bytes, a.page, h, 0 };
        const int32_t *chosen = c->index.order + i * c->p.n_block;
        for (int32_t k = 0; k < x->n_best; k++)
            for (int32_t e = 0; e < x->block; e++) gather_position(&g, (int64_t)chosen[k] * x->block + e);
        for (int64_t pos = blocks_of(j, r) * x->block; pos <= row->pos; pos++) gather_position(&g, pos);
        a.k = g.to;
        a.v = j->a->d_v ? g.to : g.to + half_page(kv->type, d);
        a.page = NULL;
        a.page_bytes = 2 * half_page(kv->type, d);
        a.n_kv = g.n;
        a.pos = g.n - 1;
    }
    (j->a->d_v ? c->k->attn_latent : c->k->attn)[kv->type](&a);
}

void cpu_attend_chosen(cpu_backend *c, hn_act *act, const hn_attention *a, const hn_kv *kv)
{
    chosen_job j = { .c = c,
                     .a = a,
                     .kv = kv,
                     .out = act->f32,
                     .out_stride = (int64_t)hn_f32_stride(a->n_head * (a->d_v ? a->d_v : kv->d)),
                     .d_v = a->d_v ? a->d_v : kv->d,
                     .n_run = cpu_div_up(c->p.n_block, SCORED) };
    const int64_t n = cpu_n_rows(c, a->which);
    assert(!a->narrow && !a->both && !a->window && !a->chunk && !a->sink && !a->fade && !kv->d_v);
    for (; j.first < n; j.first += j.n) {
        int64_t most = 0;
        j.n = n - j.first < CPU_INDEX_ROWS ? n - j.first : CPU_INDEX_ROWS;
        for (int64_t i = 0; i < j.n; i++)
            most = blocks_of(&j, row_of(&j, i)) > most ? blocks_of(&j, row_of(&j, i)) : most;
        j.n_run = cpu_div_up(most, SCORED);
        hn_pool_run(c->p.pool, score_chunk, &j, j.n * j.n_run);
        hn_pool_run(c->p.pool, choose_row, &j, j.n);
        /* few rows: heads are dealt out too, each run of them with positions of its own */
        const int64_t units = j.n * kv->n_head_kv, group = a->n_head / kv->n_head_kv;
        j.n_cut = cpu_div_up(hn_pool_active(c->p.pool), units);
        if (j.n_cut > group / HEADS) j.n_cut = group < 2 * HEADS ? 1 : group / HEADS;
        hn_pool_run(c->p.pool, attend_chunk, &j, units * j.n_cut);
    }
}
