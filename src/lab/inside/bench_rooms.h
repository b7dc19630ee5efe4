/* What the entries that look into the rooms share: a pool with a backend on it, beside
 * one at the scalar level to compare with, numbers drawn by counters, comparisons. */
#ifndef HN_BENCH_ROOMS_H
#define HN_BENCH_ROOMS_H

#include "base/base.h"
#include "backend/backend.h"
#include "kernels/kernels.h"
#include "lab/bench/bench.h"
#include "lab/stats/verdict.h"

typedef struct hn_bench_be {
    hn_pool *pool, *pool1;
    hn_backend *be, *oracle; /* at the run's level on all its threads; scalar on one */
    const hn_kernels *k, *scalar;
} hn_bench_be;
/* shape: all but threads and level count; 0 heads: no attention. level NULL: the run's. */
hone_status hn_bench_be_open(hn_bench_be *b, const hn_bench_run *r, const char *level, int32_t threads,
                             const hn_backend_params *shape, hone_error *err);
void hn_bench_be_close(hn_bench_be *b); /* also of a zeroed one; and all memory of both */

/* Memory of a backend with x[n] in it, zeros where x is NULL; an activation [n_tok, n] likewise. NULL: no memory. */
hn_buf *hn_bench_rows(hn_backend *be, const float *x, int64_t n);
hn_act *hn_bench_act(hn_backend *be, const float *x, int64_t n, int64_t n_tok);
/* act = x [n_tok, n]; rows [row, row + n_row) of act to host memory. */
void hn_bench_put(hn_backend *be, hn_act *act, const float *x, int64_t n, int64_t n_tok);
void hn_bench_get(hn_backend *be, float *host, hn_act *act, int64_t row, int64_t n_row, int64_t n);
/* Attention of rows [n_tok] as a step of its own. */
void hn_bench_attention(hn_backend *be, hn_act *act, const hn_attention *a, const hn_kv *kv, const hn_row *rows,
                        int32_t n_tok);

/* [n] floats, cache line aligned, in [-1, 1) by stream `key`; NULL: no memory. hn_pages_free(p, n * 4). */
float *hn_bench_floats(int64_t n, uint64_t key);
/* Invalid unless a[n] and b[n] are the same bits. */
void hn_bench_same(hn_verdict *v, const float *a, const float *b, int64_t n, const char *what);
/* Invalid unless |got - want| ≤ tolerance · (1 + |want|) everywhere; NaN is not. */
void hn_bench_near(hn_verdict *v, const float *got, const double *want, int64_t n, double tolerance, const char *what);
/* Proved, unless invalid. */
void hn_bench_proved(hn_verdict *v);

#endif
