/* What the entries that look into the rooms share: a pool with a backend on it, beside
 * one at the scalar level to compare with, numbers drawn by counters, comparisons. */
#ifndef HN_BENCH_ROOMS_H
#define HN_BENCH_ROOMS_H

#include "base/base.h"
#include "backend/backend.h"
#include "lab/bench/bench.h"
#include "lab/stats/verdict.h"

typedef struct hn_bench_be {
    hn_pool *pool, *pool1;
    hn_backend *be, *oracle; /* at the run's level on all its threads; scalar on one */
    const hn_kernels *k, *scalar;
} hn_bench_be;
/* shape: max_n_in, n_head, n_head_kv, d and n_ctx count; 0 heads: no attention. level NULL: the run's. */
hone_status hn_bench_be_open(hn_bench_be *b, const hn_bench_run *r, const char *level, int32_t threads,
                             const hn_cpu_params *shape, hone_error *err);
void hn_bench_be_close(hn_bench_be *b); /* also of a zeroed one */

/* [n] floats, cache line aligned, in [-1, 1) by stream `key`; NULL: no memory. hn_pages_free(p, n * 4). */
float *hn_bench_floats(int64_t n, uint64_t key);
/* Invalid unless a[n] and b[n] are the same bits. */
void hn_bench_same(hn_verdict *v, const float *a, const float *b, int64_t n, const char *what);
/* Invalid unless |got - want| ≤ tolerance · (1 + |want|) everywhere; NaN is not. */
void hn_bench_near(hn_verdict *v, const float *got, const double *want, int64_t n, double tolerance, const char *what);
/* Proved, unless invalid. */
void hn_bench_proved(hn_verdict *v);

#endif
