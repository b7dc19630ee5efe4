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
void hn_bench_fill(float *x, int64_t n, uint64_t key); /* those again */
/* Invalid unless a[n] and b[n] are the same bits. */
void hn_bench_same(hn_verdict *v, const float *a, const float *b, int64_t n, const char *what);
/* Invalid unless |got - want| ≤ tolerance · (1 + |want|) everywhere; NaN is not. */
void hn_bench_near(hn_verdict *v, const float *got, const double *want, int64_t n, double tolerance, const char *what);
/* One number of an output is spoilt before each call, and looked at behind it: at another place every time, and at
 * all of them in turn. Who leaves calls out, or a part of one now and then, is seen. */
typedef struct hn_bench_place {
    int64_t n, step, at, n_missed; /* n_missed: calls behind which it was not as it should be */
} hn_bench_place;
static inline hn_bench_place hn_bench_places(int64_t n)
{
    enum { STEP = 7919, ELSE = 104729 }; /* primes */
    return (hn_bench_place){ .n = n, .step = (n % STEP ? STEP : ELSE) % n };
}
static inline int64_t hn_bench_next_place(hn_bench_place *p)
{
    p->at += p->step;
    if (p->at >= p->n) p->at -= p->n;
    return p->at;
}
/* One float of a backend's memory, and of an activation of rows of `width`. */
void hn_bench_spoil(hn_backend *be, hn_buf *y, int64_t at);
void hn_bench_spoil_act(hn_backend *be, hn_act *act, int64_t width, int64_t at);
float hn_bench_look(hn_backend *be, hn_buf *y, int64_t at);
float hn_bench_look_act(hn_backend *be, hn_act *act, int64_t width, int64_t at);
/* All of them: no number, and their hash, to which calls that left something out belong. host [n] is overwritten. */
void hn_bench_wipe(hn_backend *be, hn_buf *y, float *host, int64_t n);
void hn_bench_wipe_act(hn_backend *be, hn_act *act, float *host, int64_t width, int64_t n_row);
uint64_t hn_bench_hash(hn_backend *be, hn_buf *y, float *host, const hn_bench_place *p);
uint64_t hn_bench_hash_act(hn_backend *be, hn_act *act, float *host, int64_t width, const hn_bench_place *p);

/* What becomes other numbers between two stretches of calls, so that nobody who remembers by a part of what a call is
 * given has the answer. Each time all of them are at one kind of place, so that others stay as they were: at the
 * beginnings of rows, at their ends, anywhere, at the beginning of it all, or at its end. */
enum { HN_TURN_KINDS = 5, HN_TURNED = 8 };
typedef struct hn_bench_turned {
    uint64_t key, n_drawn;
    int64_t n_times;
    int64_t row[HN_TURNED]; /* that changed the last time */
    bool called;            /* by a stretch, with what there is now */
} hn_bench_turned;
/* x [n_row, n] gets other numbers in [-1, 1). */
void hn_bench_turn(hn_bench_turned *t, float *x, int64_t n_row, int64_t n);
int64_t hn_bench_draw(hn_bench_turned *t, int64_t below);
/* One number of x [n_row, n], and of what be has of it: between calls that take long beside it. */
void hn_bench_turn_act(hn_bench_turned *t, hn_backend *be, hn_act *act, float *x, int64_t n_row, int64_t n);
void hn_bench_turn_buf(hn_bench_turned *t, hn_backend *be, hn_buf *buf, float *x, int64_t n);

/* Proved, unless invalid. */
void hn_bench_proved(hn_verdict *v);

#endif
