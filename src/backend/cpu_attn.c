/* Attention of the CPU backend: heads normed, turned and stored; scores, softmax and values by tiles of rows, or by
 * splits of the keys where rows are few. Owns how that is cut; refuses to know layers. */
#include "backend/cpu.h"

#include <assert.h>

enum {
    ATTN_TILE = 96, /* queries that share an opened block of keys */
    ATTN_HEADS = 8  /* and query heads at least, where those of a KV head are cut */
};

uint64_t cpu_attn_floats(int64_t n_group, int64_t d)
{
    return ((uint64_t)hn_attn_floats(n_group > ATTN_TILE ? n_group : ATTN_TILE, d) + 15) & ~(uint64_t)15;
}

/* ---- heads ------------------------------------------------------------------------------------ */

typedef struct heads_job {
    cpu_backend *c;
    const hn_heads *h;
    const hn_latent *l;
    const hn_kv *kv;
    float limit;               /* of the cache */
    _Atomic int64_t first_bad; /* 2·row, or 2·row + 1 for V, of what exceeds it; INT64_MAX: nothing */
} heads_job;

static void lower(_Atomic int64_t *least, int64_t value)
{
    int64_t seen = atomic_load(least);
    while (value < seen && !atomic_compare_exchange_weak(least, &seen, value)) continue;
}

static void norm_heads(const hn_kernels *f, const hn_heads *h, float *x, const float *w, int64_t n_head, int64_t d)
{
    int64_t n = h->norm == HN_HEAD_NORM_FULL ? n_head * d : d;
    const bool gain = h->norm == HN_HEAD_NORM_GAIN, plain = gain || h->norm == HN_HEAD_NORM_PLAIN;
    if (h->norm == HN_HEAD_NORM_NONE || (!plain && !w)) return; /* the file has none */
    for (int64_t i = 0; i < n_head * d; i += n) {
        if (h->norm == HN_HEAD_NORM_LAYER) f->layer_norm(x + i, x + i, w + i, NULL, n, h->eps);
        else f->rms_norm(x + i, x + i, gain ? NULL : w, n, h->eps);
        for (int64_t e = 0; gain && w && e < n; e++) x[i + e] *= w[i / n];
    }
}

/* Within ± most; what is no number stays none. */
static void clip(float *x, int64_t n, float most)
{
    for (int64_t i = 0; most != 0 && i < n; i++) x[i] = x[i] > most ? most : x[i] < -most ? -most : x[i];
}

static void warm(const hn_temperature *t, float *q, int64_t n, int64_t pos)
{
    const double ln2 = 0.693147180559945309417;
    double steps = 1.0 + (double)((pos + t->offset) / t->length);
    float f = (float)(1.0 + t->scale * (hn_log2_f64(steps) * ln2));
    for (int64_t i = 0; i < n; i++) q[i] *= f;
}

static void heads_row(void *arg, int64_t t, int32_t thread)
{
    heads_job *j = arg;
    const hn_kernels *f = j->c->k;
    const hn_heads *h = j->h;
    const hn_kv *kv = j->kv;
    const hn_row *row = &j->c->step.rows[t];
    const uint32_t *table = cpu_table_of(j->c, kv, row->seq);
    int64_t d = kv->d, d_v = hn_kv_dv(kv), pos = row->pos;
    size_t page = hn_kv_at(kv, table ? table[pos / HN_PAGE] : (uint32_t)(pos / HN_PAGE), 0);
    const float *cs = h->cs ? h->cs->p + t * h->n_rot : NULL;
    float *q = h->q->p + t * h->n_head * d, *k = h->k->p + t * kv->n_head_kv * d,
          *v = h->v->p + t * kv->n_head_kv * d_v;
    char *mem = (char *)kv->mem->p + page;
    for (int64_t i = 0; h->q_gate && i < h->n_head; i++)
        memcpy(q + i * d, h->q_gate->p + (t * h->n_head + i) * 2 * d, (size_t)d * sizeof *q);
    clip(q, h->n_head * d, h->clip);
    clip(k, kv->n_head_kv * d, h->clip);
    clip(v, kv->n_head_kv * d_v, h->clip);
    for (int after = 0; after < 2; after++) {
        if (h->norm_after == after) {
            norm_heads(f, h, q, h->q_norm, h->n_head, d);
            norm_heads(f, h, k, h->k_norm, kv->n_head_kv, d);
        }
        if (after || !cs) continue;
        hn_rope_apply(q, cs, h->n_head, d, h->n_rot, h->neox);
        hn_rope_apply(k, cs, kv->n_head_kv, d, h->n_rot, h->neox);
    }
    if (h->temperature.scale != 0) warm(&h->temperature, q, h->n_head * d, pos);
    for (int64_t i = 0; h->v_normed && i < kv->n_head_kv; i++) f->rms_norm(v + i * d_v, v + i * d_v, NULL, d_v, h->eps);
    if (!hn_all_within(k, kv->n_head_kv * d, j->limit)) lower(&j->first_bad, 2 * t);
    else if (!hn_all_within(v, kv->n_head_kv * d_v, j->limit)) lower(&j->first_bad, 2 * t + 1);
    for (int64_t i = 0; i < kv->n_head_kv; i++) {
        f->store_k[kv->type](mem + kv->k_at + (size_t)i * kv->head_bytes, k + i * d, d, pos % HN_PAGE);
        f->store_v[kv->type](mem + kv->v_at + (size_t)i * hn_kv_v_head(kv), v + i * d_v, d_v, pos % HN_PAGE);
    }
}

/* Queries alone. */
static void queries_row(void *arg, int64_t i, int32_t thread)
{
    heads_job *j = arg;
    const hn_heads *h = j->h;
    int64_t t = cpu_row(j->c, h->which, i), d = j->kv->d;
    float *q = h->q->p + i * h->n_head * d;
    clip(q, h->n_head * d, h->clip);
    for (int after = 0; after < 2; after++) {
        if (h->norm_after == after) norm_heads(j->c->k, h, q, h->q_norm, h->n_head, d);
        if (!after && h->cs) hn_rope_apply(q, h->cs->p + t * h->n_rot, h->n_head, d, h->n_rot, h->neox);
    }
    if (h->temperature.scale != 0) warm(&h->temperature, q, h->n_head * d, j->c->step.rows[t].pos);
}

/* The first fault of a step is kept: what follows it is made of it. */
static void keep_fault(cpu_backend *c, const heads_job *j)
{
    const hn_kv *kv = j->kv;
    int64_t bad = j->first_bad, row = bad / 2, d = bad % 2 ? hn_kv_dv(kv) : kv->d, n = kv->n_head_kv * d, i = 0;
    const hn_buf *from = j->l ? j->l->row : bad % 2 ? j->h->v : j->h->k;
    const float *x = from->p + row * n;
    while (i < n - 1 && fabsf(x[i]) <= j->limit) i++;
    c->fault = (hn_fault){ .layer = c->layer,
                           .what = bad % 2 ? 'V' : 'K',
                           .seq = c->step.rows[row].seq,
                           .pos = c->step.rows[row].pos,
                           .head = i / d,
                           .value = x[i],
                           .limit = j->limit };
}

/* Is no row of the step the next position of the one before? Those lie side by side in the lines of K, and threads that
 * write to one line wait for each other: such rows stay together. */
static bool rows_apart(const hn_step_block *step)
{
    for (int32_t t = 1; t < step->n_tok; t++)
        if (step->rows[t].seq == step->rows[t - 1].seq) return false;
    return true;
}

void cpu_heads(hn_backend *b, const hn_heads *h, const hn_kv *kv)
{
    heads_job j = { .c = cpu_self(b), .h = h, .kv = kv, .limit = hn_cache_limit(kv->type), .first_bad = INT64_MAX };
    cpu_wrote(j.c, h->q);
    if (!h->k) {
        cpu_for_rows(j.c, queries_row, &j, cpu_n_rows(j.c, h->which), h->n_head * kv->d);
        return;
    }
    cpu_wrote(j.c, h->k);
    cpu_wrote(j.c, h->v);
    int64_t work = (h->n_head + 2 * (int64_t)kv->n_head_kv) * kv->d, together = CPU_WORTH / CPU_ROWS;
    cpu_for_rows(j.c, heads_row, &j, j.c->step.n_tok, work < together || rows_apart(&j.c->step) ? work : together);
    if (j.first_bad != INT64_MAX && !j.c->fault.what) keep_fault(j.c, &j);
}

static void latent_row(void *arg, int64_t t, int32_t thread)
{
    heads_job *j = arg;
    const hn_latent *l = j->l;
    const hn_kv *kv = j->kv;
    const hn_row *at = &j->c->step.rows[t];
    const uint32_t *table = cpu_table_of(j->c, kv, at->seq);
    const int64_t pos = at->pos, d = kv->d;
    const float *cs = l->cs ? l->cs->p + t * l->n_rot : NULL;
    const float *q = l->q->p + t * l->n_head * (l->nope + l->n_rot) + l->nope;
    float *query = l->query->p + t * l->n_head * d + l->rank, *row = l->row->p + t * d;
    for (int64_t h = 0; h < l->n_head; h++, q += l->nope + l->n_rot, query += d) {
        memcpy(query, q, (size_t)l->n_rot * sizeof *q);
        if (cs) hn_rope_apply(query, cs, 1, l->n_rot, l->n_rot, l->neox);
    }
    if (l->temperature.scale != 0) warm(&l->temperature, l->query->p + t * l->n_head * d, l->n_head * d, pos);
    j->c->k->rms_norm(row, row, l->norm, l->rank, l->eps);
    if (cs) hn_rope_apply(row + l->rank, cs, 1, l->n_rot, l->n_rot, l->neox);
    if (!hn_all_within(row, d, j->limit)) lower(&j->first_bad, 2 * t);
    char *page = (char *)kv->mem->p + hn_kv_at(kv, table ? table[pos / HN_PAGE] : (uint32_t)(pos / HN_PAGE), 0);
    j->c->k->store_v[kv->type](page + kv->k_at, row, d, pos % HN_PAGE);
}

void cpu_latent(hn_backend *b, const hn_latent *l, const hn_kv *kv)
{
    heads_job j = { .c = cpu_self(b), .l = l, .kv = kv, .limit = hn_cache_limit(kv->type), .first_bad = INT64_MAX };
    cpu_wrote(j.c, l->query);
    cpu_wrote(j.c, l->row);
    cpu_for_rows(j.c, latent_row, &j, j.c->step.n_tok, l->n_head * l->n_rot + kv->d);
    if (j.first_bad != INT64_MAX && !j.c->fault.what) keep_fault(j.c, &j);
}

/* ---- attention -------------------------------------------------------------------------------- */

typedef struct attn_job {
    cpu_backend *c;
    float *out;
    int64_t out_stride;
    const float *q;
    const hn_kv *kv;
    const hn_row *rows;
    hn_which which;
    int64_t n, n_head, d_v, tile, n_tile;
    hn_attn_fn *fn;
    int64_t n_cut;               /* runs of the query heads of a KV head: their rows know nothing of each other */
    int64_t n_split, run, n_run; /* most splits of a row; splits of a chunk; chunks of a (row, head, run of heads) */
    int64_t first;               /* row of those that are split now */
    const hn_attention *a;
} attn_job;

static int64_t batch_row(const attn_job *j, int64_t i) { return cpu_row(j->c, j->which, i); }
/* And of queries. */
static int64_t query_row(const attn_job *j, int64_t i) { return j->a->narrow ? i : batch_row(j, i); }

/* Rows from i on, at most to end, that are consecutive positions of one sequence. */
static int64_t run_length(const attn_job *j, int64_t i, int64_t end)
{
    int64_t n = 1, r = batch_row(j, i);
    while (i + n < end && batch_row(j, i + n) == r + n && j->rows[r + n].seq == j->rows[r].seq &&
           j->rows[r + n].pos == j->rows[r].pos + n && (!j->a->chunk || j->rows[r + n].pos % j->a->chunk))
        n++;
    return n;
}

/* The first position that row r does not see, of those that there may be. */
static int64_t seen_before(const attn_job *j, int64_t r)
{
    const hn_row *row = &j->rows[r];
    return !j->a->both ? row->pos + 1 : j->a->window ? row->pos + j->a->window / 2 + 1 : row->end;
}

/* The first query head of a run of those of KV head h. */
static int64_t head_of(const attn_job *j, int64_t h, int64_t cut)
{
    int64_t group = j->n_head / j->kv->n_head_kv;
    return h * group + cut * group / j->n_cut;
}

static hn_attn attn_of(const attn_job *j, int64_t i, int64_t n, int64_t h, int64_t cut, int32_t thread)
{
    const hn_kv *kv = j->kv;
    int64_t r = batch_row(j, i), d = kv->d, head = head_of(j, h, cut);
    const char *mem = (const char *)kv->mem->p, *k = mem + kv->k_at + (size_t)h * kv->head_bytes;
    return (hn_attn){ .q = j->q + (query_row(j, i) * j->n_head + head) * d,
                      .out = j->out + i * j->out_stride + head * j->d_v,
                      .q_stride = j->n_head * d,
                      .out_stride = j->out_stride,
                      .k = k,
                      .v = j->a->d_v ? k : mem + kv->v_at + (size_t)h * hn_kv_v_head(kv),
                      .page = cpu_table_of(j->c, kv, j->rows[r].seq),
                      .page_bytes = kv->page_bytes,
                      .scratch = j->c->attn_scratch + (uint64_t)thread * j->c->attn_floats,
                      .n_tok = n,
                      .n_q = head_of(j, h, cut + 1) - head,
                      .n_kv = seen_before(j, r),
                      .n_end = j->a->both ? j->rows[r].end : 0,
                      .d = d,
                      .d_v = j->d_v,
                      .window = j->a->window,
                      .split_first = j->a->chunk ? j->rows[r].pos / j->a->chunk * (j->a->chunk / HN_SPLIT) : 0,
                      .scale = j->a->scale,
                      .cap = j->a->cap,
                      .sink = j->a->sink ? j->a->sink + head : NULL,
                      .fade = j->a->fade ? j->a->fade + head : NULL,
                      .pos = j->rows[r].pos };
}

/* Chunk: one run of a KV head's query heads, one tile of rows; heads outermost, so that a head's keys stay in cache. */
static void attn_chunk(void *arg, int64_t chunk, int32_t thread)
{
    attn_job *j = arg;
    int64_t part = chunk / j->n_tile, i0 = chunk % j->n_tile * j->tile, i1 = i0 + j->tile < j->n ? i0 + j->tile : j->n;
    for (int64_t i = i0, n; i < i1; i += n) {
        n = run_length(j, i, i1);
        hn_attn a = attn_of(j, i, n, part / j->n_cut, part % j->n_cut, thread);
        j->fn(&a);
    }
}

/* The splits of which row r sees anything: *n of them from the one returned on. */
static int64_t first_split(const attn_job *j, int64_t r, int64_t *n)
{
    const int64_t window = j->a->window, chunk = j->a->chunk, pos = j->rows[r].pos;
    int64_t n_kv = seen_before(j, r), first = window && n_kv > window ? (n_kv - window) / HN_SPLIT : 0;
    if (j->a->both && n_kv > j->rows[r].end) n_kv = j->rows[r].end;
    if (chunk && pos / chunk * (chunk / HN_SPLIT) > first) first = pos / chunk * (chunk / HN_SPLIT);
    *n = cpu_div_up(n_kv, HN_SPLIT) - first;
    return first;
}

/* Chunk: one row, one run of a KV head's query heads, a run of splits. Who finishes the last run of a row merges all of
 * them, in order. */
static void attn_split_chunk(void *arg, int64_t chunk, int32_t thread)
{
    attn_job *j = arg;
    cpu_backend *c = j->c;
    int64_t unit = chunk / j->n_run, split0 = chunk % j->n_run * j->run, row = unit / (j->kv->n_head_kv * j->n_cut),
            part = unit % (j->kv->n_head_kv * j->n_cut), h = part / j->n_cut, cut = part % j->n_cut;
    hn_attn a = attn_of(j, j->first + row, 1, h, cut, thread);
    int64_t n_split, first = first_split(j, batch_row(j, j->first + row), &n_split), d_v = j->d_v,
                     one = a.n_q * (d_v + 2);
    float *parts = c->parts + (row * j->n_head + head_of(j, h, cut)) * j->n_split * (d_v + 2);
    if (split0 < n_split) {
        a.split0 = first + split0;
        a.split1 = first + (split0 + j->run < n_split ? split0 + j->run : n_split);
        a.part = parts + split0 * one;
        j->fn(&a);
    }
    if (atomic_fetch_add(&c->parts_done[unit], 1) + 1 < j->n_run) return;
    for (int64_t g = 0; g < a.n_q; g++)
        c->k->attn_merge(a.out + g * d_v, parts + g * (d_v + 2), one, n_split, d_v, a.sink ? a.sink + g : NULL);
}

enum { PIECE = 256 }; /* of gates, which are mapped apart */

/* g[n] by the map these gates have: σ, where none is named. */
static void map_gates(const attn_job *j, float *g, int64_t n)
{
    j->c->k->map[j->a->gate_map ? j->a->gate_map : HN_MAP_SIGMOID](g, n);
}

/* What came out of row i, times one gate for each head. */
static void gate_heads(void *arg, int64_t i, int32_t thread)
{
    attn_job *j = arg;
    const int64_t d = j->d_v;
    const float *gate = j->a->gate->p + query_row(j, i) * j->n_head;
    float g[PIECE], *out = j->out + i * j->out_stride;
    for (int64_t h = 0; h < j->n_head; h += PIECE) {
        const int64_t n = j->n_head - h < PIECE ? j->n_head - h : PIECE;
        memcpy(g, gate + h, (size_t)n * sizeof *g);
        map_gates(j, g, n);
        for (int64_t k = 0; k < n; k++, out += d)
            for (int64_t e = 0; e < d; e++) out[e] *= g[k];
    }
}

/* What came out of row i, times σ(gate), or another map of it. */
static void gate_row(void *arg, int64_t i, int32_t thread)
{
    attn_job *j = arg;
    const int64_t d = j->kv->d, first = j->a->gate_alone ? 0 : d, each = first + d;
    const float *gate = j->a->gate->p + query_row(j, i) * j->n_head * each + first;
    float g[PIECE], *out = j->out + i * j->out_stride;
    for (int64_t h = 0; h < j->n_head; h++, gate += each, out += d)
        for (int64_t k = 0; k < d; k += PIECE) {
            int64_t n = d - k < PIECE ? d - k : PIECE;
            memcpy(g, gate + k, (size_t)n * sizeof *g);
            map_gates(j, g, n);
            for (int64_t e = 0; e < n; e++) out[k + e] *= g[e];
        }
}

/* Runs to cut the query heads of a KV head into, where so many chunks are too few for the threads. */
static int64_t cuts(const attn_job *j, int64_t n_chunk)
{
    int64_t most = j->n_head / j->kv->n_head_kv / ATTN_HEADS;
    int64_t n = cpu_div_up(hn_pool_active(j->c->p.pool), n_chunk);
    return n <= most ? n : most > 1 ? most : 1;
}

/* How n rows are split over the keys; returns their units, each of n_run chunks. */
static int64_t plan_split(attn_job *j, int64_t n)
{
    int64_t chunks = (int64_t)hn_pool_active(j->c->p.pool) * CPU_ATTN_RUNS, pairs = n * j->kv->n_head_kv;
    j->n_cut = cuts(j, pairs * j->n_split);
    j->run = cpu_div_up(pairs * j->n_cut * j->n_split, chunks);
    j->n_run = cpu_div_up(j->n_split, j->run);
    return pairs * j->n_cut;
}

/* By splits where there are chunks too few without, as many rows at a time as partial results have room for. */
static void attend_split(attn_job *j)
{
    cpu_backend *c = j->c;
    int64_t room = (int64_t)c->part_floats / (j->n_head * j->n_split * (j->d_v + 2));
    assert(room > 0);
    for (int64_t n; j->first < j->n; j->first += n) {
        n = j->n - j->first < room ? j->n - j->first : room;
        int64_t units = plan_split(j, n);
        assert(units <= (int64_t)c->n_threads * CPU_ATTN_RUNS);
        for (int64_t u = 0; u < units; u++) atomic_store_explicit(&c->parts_done[u], 0, memory_order_relaxed);
        hn_pool_run(c->p.pool, attn_split_chunk, j, units * j->n_run);
    }
}

static void attend(cpu_backend *c, attn_job *j)
{
    int64_t n = j->n, n_head_kv = j->kv->n_head_kv, group = j->n_head / n_head_kv, active = hn_pool_active(c->p.pool);
    for (int64_t i = 0, seen; i < n; i++) {
        first_split(j, batch_row(j, i), &seen);
        if (seen > j->n_split) j->n_split = seen;
    }
    if (!n) return;
    if (active > 1 && plan_split(j, n) && j->run < j->n_split) {
        attend_split(j);
        return;
    }
    /* tiles as tall as they may be, but enough of them for the threads */
    int64_t fair = n * n_head_kv / (active * 4);
    j->tile = ATTN_TILE / group < 1 ? 1 : ATTN_TILE / group;
    if (j->tile > fair) j->tile = fair < 1 ? 1 : fair;
    j->n_tile = cpu_div_up(n, j->tile);
    j->n_cut = cuts(j, j->n_tile * n_head_kv);
    hn_pool_run(c->p.pool, attn_chunk, j, j->n_tile * n_head_kv * j->n_cut);
}

/* Does any row have more blocks than it may choose? */
static bool beyond(const attn_job *j)
{
    const hn_block_index *x = j->a->index;
    for (int64_t i = 0; i < j->n; i++)
        if ((j->rows[batch_row(j, i)].pos + 1) / x->block > x->n_best) return true;
    return false;
}

void cpu_attention(hn_backend *b, hn_act *act, const hn_attention *a, const hn_kv *kv)
{
    cpu_backend *c = cpu_self(b);
    int64_t n = cpu_n_rows(c, a->which), d_v = a->d_v ? a->d_v : hn_kv_dv(kv);
    attn_job j = { .c = c,
                   .out = act->f32,
                   .out_stride = (int64_t)hn_f32_stride(a->n_head * d_v),
                   .q = a->q->p,
                   .kv = kv,
                   .rows = c->step.rows,
                   .which = a->which,
                   .n = n,
                   .n_head = a->n_head,
                   .d_v = d_v,
                   .fn = (a->d_v ? c->k->attn_latent : c->k->attn)[kv->type],
                   .a = a };
    assert(!a->gate || a->gate_heads || d_v == kv->d);
    cpu_act_begin(c, act, a->n_head * d_v, n);
    if (a->index && beyond(&j)) cpu_attend_chosen(c, act, a, kv);
    else attend(c, &j);
    if (a->gate) cpu_for_rows(c, a->gate_heads ? gate_heads : gate_row, &j, n, a->n_head * d_v);
}
