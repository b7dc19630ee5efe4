/* attn_grad: causal grouped-query attention and its gradient, over documents, without
 * a T × T matrix: blocks of 64 queries by 64 keys, with the running softmax forward and
 * its log-sum-exp backward (Dao 2023, algorithms 1 and 2).
 *   S = scale·q·kᵀ, P = exp(S − lse), o = P·v;
 *   dv = Pᵀ·do, dP = do·vᵀ, dS = P·(dP − Σ do·o)·scale, dq = dS·k, dk = dSᵀ·q
 * Every sum over keys or queries goes block by block in ascending order. */
#include "train/grad.h"

#include <math.h>

enum { BLOCK = 64 };

uint64_t hn_attn_scratch(const hn_hparams *hp) { return 2 * BLOCK * BLOCK + BLOCK * (uint64_t)hp->head_dim + 2 * BLOCK; }

typedef struct attn_job {
    hn_grad *g;
    const hn_batch *b;
    const hn_kept *w;
    int64_t d, nq, nk;  /* head size; floats of a row of q, of k */
    int32_t group;      /* queries of a key head */
    float scale;
} attn_job;

static attn_job job_of(hn_grad *g, const hn_batch *b, const hn_kept *w)
{
    const hn_hparams *hp = &g->m->hp;
    return (attn_job){ g, b, w, hp->head_dim, (int64_t)hp->n_head * hp->head_dim, (int64_t)hp->n_head_kv * hp->head_dim,
                       hp->n_head / hp->n_head_kv, 1.0f / sqrtf((float)hp->head_dim) };
}

static void tile(const attn_job *j, int32_t thread, hn_gemm_form form, float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb,
                 int64_t m, int64_t n, int64_t k, float alpha, bool add)
{
    hn_gemm_serial(j->g->gemm, thread, &(hn_gemm){ .form = form, .c = c, .a = a, .b = b, .b_type = HN_F32, .b_row_bytes = (size_t)ldb * sizeof(float),
                                                   .ldc = ldc, .lda = lda, .m = m, .n = n, .k = k, .alpha = alpha, .add = add });
}

/* ---- forward: a chunk is (block of queries of the batch, head) ---------------------------------------- */

/* The block i of a batch's documents, each cut from its own start. */
static void find_block(const hn_batch *b, int64_t i, int64_t *start, int64_t *q0, int64_t *n)
{
    for (int32_t d = 0;; d++) {
        int64_t len = b->doc[d + 1] - b->doc[d], blocks = (len + BLOCK - 1) / BLOCK;
        if (i >= blocks) {
            i -= blocks;
            continue;
        }
        *start = b->doc[d];
        *q0 = i * BLOCK;
        *n = len - *q0 < BLOCK ? len - *q0 : BLOCK;
        return;
    }
}

static float row_max(const float *x, int64_t n)
{
    float m = x[0];
    for (int64_t i = 1; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static void forward_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    hn_grad *g = j->g;
    int32_t H = g->m->hp.n_head;
    int64_t start, q0, n, d = j->d, h = chunk % H;
    find_block(j->b, chunk / H, &start, &q0, &n);
    float *s = g->attn + (uint64_t)thread * hn_attn_scratch(&g->m->hp), *m = s + 2 * BLOCK * BLOCK + BLOCK * d, *l = m + BLOCK;
    const float *q = j->w->q + (start + q0) * j->nq + h * d, *k = j->w->k + start * j->nk + h / j->group * d, *v = j->w->v + start * j->nk + h / j->group * d;
    float *o = j->w->o + (start + q0) * j->nq + h * d;
    for (int64_t i = 0; i < n; i++) {
        m[i] = -INFINITY;
        l[i] = 0;
        memset(o + i * j->nq, 0, (size_t)d * sizeof(float));
    }
    for (int64_t k0 = 0; k0 <= q0; k0 += BLOCK) {
        int64_t nk = k0 == q0 ? n : BLOCK;
        tile(j, thread, HN_GEMM_NT, s, BLOCK, q, j->nq, k + k0 * j->nk, j->nk, n, nk, d, j->scale, false);
        for (int64_t i = 0; i < n; i++) {
            float *row = s + i * BLOCK;
            int64_t see = k0 == q0 ? i + 1 : nk;
            float top = row_max(row, see), now = top > m[i] ? top : m[i], c = hn_exp_f32(m[i] - now), sum = 0;
            for (int64_t t = 0; t < see; t++) row[t] -= now;
            g->p.kernels->exp(row, row, see);
            for (int64_t t = 0; t < see; t++) sum += row[t];
            for (int64_t t = see; t < nk; t++) row[t] = 0;
            for (int64_t t = 0; t < d; t++) o[i * j->nq + t] *= c;
            l[i] = l[i] * c + sum;
            m[i] = now;
        }
        tile(j, thread, HN_GEMM_NN, o, j->nq, s, BLOCK, v + k0 * j->nk, j->nk, n, d, nk, 1, true);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t t = 0; t < d; t++) o[i * j->nq + t] /= l[i];
        j->w->lse[(start + q0 + i) * H + h] = (float)((double)m[i] + hn_log2_f64((double)l[i]) * 0.69314718055994530942);
    }
}

void hn_attn_forward(hn_grad *g, const hn_batch *b, const hn_kept *w)
{
    attn_job j = job_of(g, b, w);
    int64_t blocks = 0;
    for (int32_t i = 0; i < b->n_doc; i++) blocks += (b->doc[i + 1] - b->doc[i] + BLOCK - 1) / BLOCK;
    hn_pool_run(g->p.pool, forward_chunk, &j, blocks * g->m->hp.n_head);
}

/* ---- backward: a chunk is (document, key head), its block of keys by block ------------------------------- */

static void backward_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const attn_job *j = arg;
    hn_grad *g = j->g;
    int32_t H = g->m->hp.n_head, K = g->m->hp.n_head_kv;
    int64_t d = j->d, kh = chunk % K, start = j->b->doc[chunk / K], len = j->b->doc[chunk / K + 1] - start;
    float *p = g->attn + (uint64_t)thread * hn_attn_scratch(&g->m->hp), *dp = p + BLOCK * BLOCK;
    for (int64_t k0 = 0; k0 < len; k0 += BLOCK) {
        int64_t nk = len - k0 < BLOCK ? len - k0 : BLOCK;
        const float *k = j->w->k + (start + k0) * j->nk + kh * d, *v = j->w->v + (start + k0) * j->nk + kh * d;
        float *dk = g->dk + (start + k0) * j->nk + kh * d, *dv = g->dv + (start + k0) * j->nk + kh * d;
        for (int64_t i = 0; i < nk; i++) {
            memset(dk + i * j->nk, 0, (size_t)d * sizeof(float));
            memset(dv + i * j->nk, 0, (size_t)d * sizeof(float));
        }
        for (int64_t h = kh * j->group; h < (kh + 1) * j->group; h++)
            for (int64_t q0 = k0; q0 < len; q0 += BLOCK) {
                int64_t n = len - q0 < BLOCK ? len - q0 : BLOCK, at = (start + q0) * j->nq + h * d;
                const float *q = j->w->q + at, *d_o = g->d_o + at;
                tile(j, thread, HN_GEMM_NT, p, BLOCK, q, j->nq, k, j->nk, n, nk, d, j->scale, false);
                for (int64_t i = 0; i < n; i++) {
                    float *row = p + i * BLOCK, lse = j->w->lse[(start + q0 + i) * H + h];
                    int64_t see = q0 == k0 ? i + 1 : nk;
                    for (int64_t t = 0; t < see; t++) row[t] -= lse;
                    g->p.kernels->exp(row, row, see);
                    for (int64_t t = see; t < nk; t++) row[t] = 0;
                }
                tile(j, thread, HN_GEMM_TN, dv, j->nk, p, BLOCK, d_o, j->nq, nk, d, n, 1, true);
                tile(j, thread, HN_GEMM_NT, dp, BLOCK, d_o, j->nq, v, j->nk, n, nk, d, 1, false);
                for (int64_t i = 0; i < n; i++) {
                    float *ds = dp + i * BLOCK, *row = p + i * BLOCK, delta = g->delta[(start + q0 + i) * H + h];
                    for (int64_t t = 0; t < nk; t++) ds[t] = row[t] * (ds[t] - delta) * j->scale;
                }
                tile(j, thread, HN_GEMM_NN, g->dq + at, j->nq, dp, BLOCK, k, j->nk, n, d, nk, 1, true);
                tile(j, thread, HN_GEMM_TN, dk, j->nk, dp, BLOCK, q, j->nq, nk, d, n, 1, true);
            }
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

void hn_attn_backward(hn_grad *g, const hn_batch *b, const hn_kept *w)
{
    attn_job j = job_of(g, b, w);
    hn_pool_run(g->p.pool, delta_chunk, &j, (b->n_tok + BLOCK - 1) / BLOCK);
    hn_pool_run(g->p.pool, backward_chunk, &j, (int64_t)b->n_doc * g->m->hp.n_head_kv);
}
