/* gemm: the products of training. Plain loops over the pool; the rule is in train.h. */
#include "train/train.h"

#include <stdlib.h>

struct hn_gemm_ctx {
    hn_pool *pool;
    const hn_kernels *k;
    int64_t max_row;
    int32_t n_thread;
    float *row; /* [n_thread][max_row] */
};

hone_status hn_gemm_new(hn_gemm_ctx **out, hn_pool *pool, const hn_kernels *k, int64_t max_row, hone_error *err)
{
    *out = NULL;
    hn_gemm_ctx *g = calloc(1, sizeof *g);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "products");
    *g = (hn_gemm_ctx){ .pool = pool, .k = k, .max_row = max_row, .n_thread = hn_pool_threads(pool) };
    if (!(g->row = malloc((size_t)g->n_thread * (size_t)max_row * sizeof(float)))) {
        hn_gemm_free(g);
        return HN_FAIL(err, HONE_E_NOMEM, "products: rows of %lld", (long long)max_row);
    }
    *out = g;
    return HONE_OK;
}

void hn_gemm_free(hn_gemm_ctx *g)
{
    if (!g) return;
    free(g->row);
    free(g);
}

uint64_t hn_gemm_bytes(const hn_gemm_ctx *g) { return (uint64_t)g->n_thread * (uint64_t)g->max_row * sizeof(float); }

static float a_of(const hn_gemm *p, int64_t m, int64_t k) { return p->form == HN_GEMM_TN ? p->a[k * p->lda + m] : p->a[m * p->lda + k]; }

static void finish(const hn_gemm *p, float *c, float sum)
{
    if (p->alpha != 1.0f) sum = p->alpha * sum;
    *c = p->add ? *c + sum : sum;
}

typedef struct job { hn_gemm_ctx *g; const hn_gemm *p; float *sum, *part; } job;

/* NT: chunk = one row of B = one column of C. */
static void run_nt(void *arg, int64_t n, int32_t thread)
{
    const job *j = arg;
    const hn_gemm *p = j->p;
    float *w = j->g->row + (int64_t)thread * j->g->max_row;
    hn_type_get(p->b_type)->dequantize(w, (const char *)p->b + (size_t)n * p->b_row_bytes, p->k);
    for (int64_t m = 0; m < p->m; m++) {
        float sum = 0;
        for (int64_t k0 = 0; k0 < p->k; k0 += 256) {
            float s = 0;
            for (int64_t k = k0; k < p->k && k < k0 + 256; k++) s = fmaf(a_of(p, m, k), w[k], s);
            sum = k0 ? sum + s : s;
        }
        finish(p, &p->c[m * p->ldc + n], sum);
    }
}

/* NN, TN: chunk = one row of C. */
static void run_n(void *arg, int64_t m, int32_t thread)
{
    const job *j = arg;
    const hn_gemm *p = j->p;
    float *w = j->g->row + (int64_t)thread * j->g->max_row, *sum = calloc((size_t)p->n * 2, sizeof *sum), *s = sum + p->n;
    if (!sum) abort();
    for (int64_t k0 = 0; k0 < p->k; k0 += 256) {
        for (int64_t n = 0; n < p->n; n++) s[n] = 0;
        for (int64_t k = k0; k < p->k && k < k0 + 256; k++) {
            hn_type_get(p->b_type)->dequantize(w, (const char *)p->b + (size_t)k * p->b_row_bytes, p->n);
            float a = a_of(p, m, k);
            for (int64_t n = 0; n < p->n; n++) s[n] = fmaf(a, w[n], s[n]);
        }
        for (int64_t n = 0; n < p->n; n++) sum[n] = k0 ? sum[n] + s[n] : s[n];
    }
    for (int64_t n = 0; n < p->n; n++) finish(p, &p->c[m * p->ldc + n], sum[n]);
    free(sum);
}

void hn_gemm_run(hn_gemm_ctx *g, const hn_gemm *p)
{
    job j = { g, p, NULL, NULL };
    hn_pool_run(g->pool, p->form == HN_GEMM_NT ? run_nt : run_n, &j, p->form == HN_GEMM_NT ? p->n : p->m);
}

void hn_gemm_serial(hn_gemm_ctx *g, int32_t thread, const hn_gemm *p)
{
    job j = { g, p, NULL, NULL };
    for (int64_t i = 0, n = p->form == HN_GEMM_NT ? p->n : p->m; i < n; i++) (p->form == HN_GEMM_NT ? run_nt : run_n)(&j, i, thread);
}
