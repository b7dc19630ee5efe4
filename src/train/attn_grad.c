/* attn_grad: causal grouped-query attention and its gradient, over documents, without
 * a T × T matrix: blocks of 64 queries by 64 keys, with the running softmax forward and
 * its log-sum-exp backward (Dao 2023, algorithms 1 and 2).
 *   S = scale·q·kᵀ, P = exp(S − lse), o = P·v;
 *   dv = Pᵀ·do, dP = do·vᵀ, dS = P·(dP − Σ do·o)·scale, dq = dS·k, dk = dSᵀ·q
 * With a cap c, S = c·tanh(scale·q·kᵀ/c), and dS is multiplied by 1 − (S/c)². With a window w, query t sees keys from
 * t − w + 1 on: blocks of which none is seen are passed over.
 * Every sum over keys or queries goes block by block in ascending order, so it does not matter who does which
 * block: backward a thread has a document's key head, or, where there are too few of these, only one block of
 * keys, and later one of queries. */
#include "train/grad.h"

#include <math.h>

enum { BLOCK = 64 };

uint64_t hn_attn_scratch(const hn_hparams *hp)
{
    return 2 * BLOCK * BLOCK + BLOCK * (uint64_t)hp->head_dim + 2 * BLOCK + (hp->attn_cap != 0 ? BLOCK * BLOCK : 0);
}

typedef struct attn_job {
    hn_grad *g;
    const hn_train_batch *b;
    const hn_kept *w;
    int64_t d, nq, nk; /* head size; floats of a row of q, of k */
    int64_t n_block;   /* of all documents */
    int32_t group;     /* queries of a key head */
    float scale, cap;
    int64_t window; /* of all positions: more than there are */
} attn_job;

static int64_t n_blocks(const hn_train_batch *b, int32_t doc)
{
    return (b->doc[doc + 1] - b->doc[doc] + BLOCK - 1) / BLOCK;
}

static attn_job job_of(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p)
{
    const hn_hparams *hp = &g->m->hp;
    int64_t n = 0;
    for (int32_t i = 0; i < b->n_doc; i++) n += n_blocks(b, i);
    return (attn_job){ g,
                       b,
                       w,
                       hp->head_dim,
                       (int64_t)hp->n_head * hp->head_dim,
                       (int64_t)hp->n_head_kv * hp->head_dim,
                       n,
                       hp->n_head / hp->n_head_kv,
                       p->scale,
                       hp->attn_cap,
                       p->window ? p->window : INT32_MAX };
}

/* Of a block of queries that begins at q and one of keys that begins at k, row i sees the keys [*from, the result). */
static int64_t seen(const attn_job *j, int64_t q, int64_t k, int64_t nk, int64_t i, int64_t *from)
{
    int64_t first = q + i - j->window + 1 - k;
    *from = first > 0 ? first : 0;
    return q == k ? i + 1 : nk;
}
/* The first block of keys that a block of queries sees anything of, the last query that sees one of keys. */
static int64_t first_key(const attn_job *j, int64_t q)
{
    return q >= j->window ? (q - j->window + 1) / BLOCK * BLOCK : 0;
}
static int64_t last_query(const attn_job *j, int64_t k, int64_t nk) { return k + nk - 1 + j->window - 1; }

/* Scores s of a row become c·tanh(s/c); slope, where it is wanted, dS/ds. */
static void cap_row(const attn_job *j, float *s, float *slope, int64_t n)
{
    for (int64_t t = 0; t < n; t++) s[t] *= 1.0f / j->cap;
    j->g->p.kernels->map[HN_MAP_TANH](s, n);
    for (int64_t t = 0; slope && t < n; t++) slope[t] = (1.0f - s[t]) * (1.0f + s[t]);
    for (int64_t t = 0; t < n; t++) s[t] *= j->cap;
}

static void tile(const attn_job *j, int32_t thread, hn_gemm_form form, float *c, int64_t ldc, const float *a,
                 int64_t lda, const float *b, int64_t ldb, int64_t m, int64_t n, int64_t k, float alpha, bool add)
{
    hn_gemm_serial(j->g->gemm, thread,
                   &(hn_gemm){ .form = form,
                               .c = c,
                               .a = a,
                               .b = b,
                               .b_type = HN_F32,
                               .b_row_bytes = (size_t)ldb * sizeof(float),
                               .ldc = ldc,
                               .lda = lda,
                               .m = m,
                               .n = n,
                               .k = k,
                               .alpha = alpha,
                               .add = add });
}

/* ---- forward: a chunk is (block of queries of the batch, head) ---------------------------------------- */

/* Rows [at, at + n) of a document of len rows that starts at `start`. */
typedef struct block {
    int64_t start, len, at, n;
} block;
static block block_at(int64_t start, int64_t len, int64_t at)
{
    return (block){ start, len, at, len - at < BLOCK ? len - at : BLOCK };
}

/* The block i of a batch's documents, each cut from its own start. */
static block find_block(const hn_train_batch *b, int64_t i)
{
    int32_t d = 0;
    for (; i >= n_blocks(b, d); d++) i -= n_blocks(b, d);
    return block_at(b->doc[d], b->doc[d + 1] - b->doc[d], i * BLOCK);
}

static void forward_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    hn_grad *g = j->g;
    int32_t H = g->m->hp.n_head;
    block at = find_block(j->b, chunk / H);
    int64_t start = at.start, q0 = at.at, n = at.n, d = j->d, h = chunk % H;
    float *s = g->attn + (uint64_t)thread * hn_attn_scratch(&g->m->hp), *m = s + 2 * BLOCK * BLOCK + BLOCK * d,
          *l = m + BLOCK;
    const float *q = j->w->q + (start + q0) * j->nq + h * d, *k = j->w->k + start * j->nk + h / j->group * d,
                *v = j->w->v + start * j->nk + h / j->group * d;
    float *o = j->w->o + (start + q0) * j->nq + h * d;
    for (int64_t i = 0; i < n; i++) {
        m[i] = -INFINITY;
        l[i] = 0;
        memset(o + i * j->nq, 0, (size_t)d * sizeof(float));
    }
    for (int64_t k0 = first_key(j, q0); k0 <= q0; k0 += BLOCK) {
        int64_t nk = k0 == q0 ? n : BLOCK;
        tile(j, thread, HN_GEMM_NT, s, BLOCK, q, j->nq, k + k0 * j->nk, j->nk, n, nk, d, j->scale, false);
        for (int64_t i = 0; i < n; i++) {
            float *row = s + i * BLOCK;
            int64_t from, see = seen(j, q0, k0, nk, i, &from);
            if (from >= see) {
                memset(row, 0, (size_t)nk * sizeof *row);
                continue;
            }
            if (j->cap != 0) cap_row(j, row + from, NULL, see - from);
            float top = hn_train_max(row + from, see - from), now = top > m[i] ? top : m[i], c = hn_exp_f32(m[i] - now),
                  sum = 0;
            for (int64_t t = from; t < see; t++) row[t] -= now;
            g->p.kernels->exp(row + from, row + from, see - from);
            for (int64_t t = from; t < see; t++) sum += row[t];
            for (int64_t t = 0; t < from; t++) row[t] = 0;
            for (int64_t t = see; t < nk; t++) row[t] = 0;
            for (int64_t t = 0; t < d; t++) o[i * j->nq + t] *= c;
            l[i] = l[i] * c + sum;
            m[i] = now;
        }
        tile(j, thread, HN_GEMM_NN, o, j->nq, s, BLOCK, v + k0 * j->nk, j->nk, n, d, nk, 1, true);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t t = 0; t < d; t++) o[i * j->nq + t] /= l[i];
        j->w->lse[(start + q0 + i) * H + h] =
            (float)((double)m[i] + hn_log2_f64((double)l[i]) * 0.69314718055994530942);
    }
}

void hn_attn_forward(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p)
{
    attn_job j = job_of(g, b, w, p);
    hn_pool_run(g->p.pool, forward_chunk, &j, j.n_block * g->m->hp.n_head);
}

/* ---- backward ------------------------------------------------------------------------------------------- */

/* P and dS of a block of queries of head h and one of keys of the same document. */
static void block_back(const attn_job *j, int32_t thread, float *p, float *ds, const block *q, const block *k,
                       int64_t h)
{
    hn_grad *g = j->g;
    int32_t H = g->m->hp.n_head;
    int64_t d = j->d, at = (q->start + q->at) * j->nq + h * d, to_k = (k->start + k->at) * j->nk + h / j->group * d;
    float *slope = j->cap != 0 ? ds + BLOCK * BLOCK : NULL;
    tile(j, thread, HN_GEMM_NT, p, BLOCK, j->w->q + at, j->nq, j->w->k + to_k, j->nk, q->n, k->n, d, j->scale, false);
    for (int64_t i = 0; i < q->n; i++) {
        float *row = p + i * BLOCK, lse = j->w->lse[(q->start + q->at + i) * H + h];
        int64_t from, see = seen(j, q->at, k->at, k->n, i, &from);
        if (from > see) from = see;
        if (slope) cap_row(j, row + from, slope + i * BLOCK + from, see - from);
        for (int64_t t = from; t < see; t++) row[t] -= lse;
        g->p.kernels->exp(row + from, row + from, see - from);
        for (int64_t t = 0; t < from; t++) row[t] = 0;
        for (int64_t t = see; t < k->n; t++) row[t] = 0;
    }
    tile(j, thread, HN_GEMM_NT, ds, BLOCK, g->d_o + at, j->nq, j->w->v + to_k, j->nk, q->n, k->n, d, 1, false);
    for (int64_t i = 0; i < q->n; i++) {
        float *to = ds + i * BLOCK, *row = p + i * BLOCK, delta = g->delta[(q->start + q->at + i) * H + h];
        for (int64_t t = 0; t < k->n; t++) to[t] = row[t] * (to[t] - delta) * j->scale;
        int64_t from, see = seen(j, q->at, k->at, k->n, i, &from);
        for (int64_t t = from; slope && t < see; t++) to[t] *= slope[i * BLOCK + t]; /* elsewhere it is 0 */
    }
}

static void add_dq(const attn_job *j, int32_t thread, const float *ds, const block *q, const block *k, int64_t h)
{
    float *dq = j->g->dq + (q->start + q->at) * j->nq + h * j->d;
    const float *from = j->w->k + (k->start + k->at) * j->nk + h / j->group * j->d;
    tile(j, thread, HN_GEMM_NN, dq, j->nq, ds, BLOCK, from, j->nk, q->n, j->d, k->n, 1, true);
}

/* dk and dv of a block of keys; dq too of all that see it, if no other thread is at them. */
static void keys_back(const attn_job *j, int32_t thread, const block *k, int64_t kh, bool queries)
{
    hn_grad *g = j->g;
    int64_t d = j->d, from = (k->start + k->at) * j->nk + kh * d;
    float *p = g->attn + (uint64_t)thread * hn_attn_scratch(&g->m->hp), *ds = p + BLOCK * BLOCK, *dk = g->dk + from,
          *dv = g->dv + from;
    for (int64_t i = 0; i < k->n; i++) {
        memset(dk + i * j->nk, 0, (size_t)d * sizeof(float));
        memset(dv + i * j->nk, 0, (size_t)d * sizeof(float));
    }
    for (int64_t h = kh * j->group; h < (kh + 1) * j->group; h++)
        for (int64_t q0 = k->at; q0 < k->len && q0 <= last_query(j, k->at, k->n); q0 += BLOCK) {
            block q = block_at(k->start, k->len, q0);
            int64_t at = (q.start + q0) * j->nq + h * d;
            block_back(j, thread, p, ds, &q, k, h);
            tile(j, thread, HN_GEMM_TN, dv, j->nk, p, BLOCK, g->d_o + at, j->nq, k->n, d, q.n, 1, true);
            tile(j, thread, HN_GEMM_TN, dk, j->nk, ds, BLOCK, j->w->q + at, j->nq, k->n, d, q.n, 1, true);
            if (queries) add_dq(j, thread, ds, &q, k, h);
        }
}

/* (document, key head) */
static void whole_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    int64_t K = j->g->m->hp.n_head_kv, start = j->b->doc[chunk / K], len = j->b->doc[chunk / K + 1] - start;
    for (int64_t k0 = 0; k0 < len; k0 += BLOCK) {
        block k = block_at(start, len, k0);
        keys_back(j, thread, &k, chunk % K, true);
    }
}

/* (block of keys, key head), and then (block of queries, head), the longest first */
static void keys_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    int64_t K = j->g->m->hp.n_head_kv;
    block k = find_block(j->b, chunk / K);
    keys_back(j, thread, &k, chunk % K, false);
}
static void queries_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    int64_t H = j->g->m->hp.n_head, h = chunk % H;
    block q = find_block(j->b, j->n_block - 1 - chunk / H);
    float *p = j->g->attn + (uint64_t)thread * hn_attn_scratch(&j->g->m->hp), *ds = p + BLOCK * BLOCK;
    for (int64_t k0 = first_key(j, q.at); k0 <= q.at; k0 += BLOCK) {
        block k = block_at(q.start, q.len, k0);
        block_back(j, thread, p, ds, &q, &k, h);
        add_dq(j, thread, ds, &q, &k, h);
    }
}

/* delta = Σ do·o of each head; dq begins at zero */
static void delta_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    hn_grad *g = j->g;
    int32_t H = g->m->hp.n_head;
    for (int64_t t = chunk * BLOCK; t < j->b->n_tok && t < (chunk + 1) * BLOCK; t++) {
        memset(g->dq + t * j->nq, 0, (size_t)j->nq * sizeof(float));
        for (int64_t h = 0; h < H; h++) {
            const float *a = g->d_o + t * j->nq + h * j->d, *o = j->w->o + t * j->nq + h * j->d;
            float sum = 0;
            for (int64_t i = 0; i < j->d; i++) sum = fmaf(a[i], o[i], sum);
            g->delta[t * H + h] = sum;
        }
    }
}

void hn_attn_backward(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p)
{
    attn_job j = job_of(g, b, w, p);
    int64_t K = g->m->hp.n_head_kv, all = 0, longest = 0;
    for (int32_t i = 0; i < b->n_doc; i++) {
        int64_t n = n_blocks(b, i);
        all += n * n;
        longest = n * n > longest ? n * n : longest;
    }
    hn_pool_run(g->p.pool, delta_chunk, &j, (b->n_tok + BLOCK - 1) / BLOCK);
    /* In blocks P and dS are made twice, half as much again; the bits are the same. */
    if (2 * longest * hn_pool_active(g->p.pool) > 3 * all * K) {
        hn_pool_run(g->p.pool, keys_chunk, &j, j.n_block * K);
        hn_pool_run(g->p.pool, queries_chunk, &j, j.n_block * g->m->hp.n_head);
    } else hn_pool_run(g->p.pool, whole_chunk, &j, b->n_doc * K);
}
