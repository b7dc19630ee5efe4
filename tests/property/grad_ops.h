/* What tests of single operations of training share: arrays that a sanitizer sees the end of, every level and number of
 * threads with the same bits, central differences in double. */
#ifndef HN_TEST_GRAD_OPS_H
#define HN_TEST_GRAD_OPS_H

#include "train/grad.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng_key, rng_at;
static uint64_t rnd(void) { return hn_rand64(rng_key, rng_at++); }
static float rndf(void) { return (float)(int32_t)(rnd() >> 32) * 0x1p-31f; } /* [-1, 1) */

static void *need(void *p)
{
    if (!p) fail_msg("out of memory");
    return p;
}

/* All arrays end where they end, so that a sanitizer sees what lies beyond; freed together. */
static void *pool_of_arrays[256];
static int n_arrays;
static void *array(size_t bytes)
{
    assert_true(n_arrays < 256);
    return pool_of_arrays[n_arrays++] = need(malloc(bytes ? bytes : 1));
}
static float *floats(int64_t n) { return array((size_t)n * sizeof(float)); }
static double *doubles(int64_t n) { return array((size_t)n * sizeof(double)); }
static float *drawn(int64_t n, float size)
{
    float *x = floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = rndf() * size;
    return x;
}
static double *wide(const float *x, int64_t n)
{
    double *d = doubles(n);
    for (int64_t i = 0; i < n; i++) d[i] = x[i];
    return d;
}
static int sweep(void **state)
{
    while (n_arrays) free(pool_of_arrays[--n_arrays]);
    return 0;
}
static int begin(void **state)
{
    rng_key++;
    rng_at = 0;
    return 0;
}

/* ---- everywhere: levels and threads ------------------------------------------------------------- */

enum { N_POOL = 2, MOST_THREADS = 3 };
static struct {
    int n;
    const hn_kernels *k[HN_CPU_LEVELS];
    hn_pool *pool[N_POOL];
    hn_gemm_ctx *gemm[HN_CPU_LEVELS][N_POOL];
} world;

static int start(void **state)
{
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) world.k[world.n++] = hn_kernels_get((hn_cpu_level)l);
    for (int t = 0; t < N_POOL; t++) {
        if (hn_pool_new(&world.pool[t], t ? MOST_THREADS : 1, NULL)) return -1;
        for (int i = 0; i < world.n; i++)
            if (hn_gemm_new(&world.gemm[i][t], world.pool[t], world.k[i], NULL)) return -1;
    }
    return 0;
}
static int stop(void **state)
{
    for (int t = 0; t < N_POOL; t++) {
        for (int i = 0; i < world.n; i++) hn_gemm_free(world.gemm[i][t]);
        hn_pool_free(world.pool[t]);
    }
    return 0;
}

/* Fills out; g has the operation's arrays and nothing else. */
typedef void op_fn(hn_grad *g, void *arg, float *out);

static const float *everywhere(const char *what, const hn_grad *proto, op_fn *op, void *arg, int64_t n)
{
    float *first = floats(n), *out = floats(n);
    for (int i = 0; i < world.n; i++)
        for (int t = 0; t < N_POOL; t++) {
            bool none = !i && !t;
            hn_grad g = *proto;
            g.p.pool = world.pool[t];
            g.p.kernels = world.k[i];
            g.gemm = world.gemm[i][t];
            memset(none ? first : out, 0xFF, (size_t)n * sizeof(float)); /* NaN: what is not written is seen */
            op(&g, arg, none ? first : out);
            if (!none && memcmp(first, out, (size_t)n * sizeof(float)))
                fail_msg("%s on %s, %d threads: other bits than on %s", what, world.k[i]->name, t ? MOST_THREADS : 1,
                         world.k[0]->name);
        }
    return first;
}

/* ---- differences -------------------------------------------------------------------------------------- */

/* An array of the operation: x in double, and what is said to be the gradient, which was added to `from`. */
typedef struct var {
    const char *name;
    double *x;
    const float *got, *from;
    int64_t n;
} var;
enum { ALL = 800, SOME = 10, DIRECTIONS = 2 };
static const double step = 2e-5, bound = 1e-4;

static double said(const var *v, int64_t i) { return (double)v->got[i] - (v->from ? (double)v->from[i] : 0); }

/* tiny: what may be off where all differences vanish */
static void compare(const char *what, double (*f)(void *), void *arg, const var *v, int n_var, double tiny)
{
    for (int a = 0; a < n_var; a++, v++) {
        double worst = 0, largest = 0, norm = 0;
        int64_t n = v->n <= ALL ? v->n : SOME;
        for (int64_t k = 0; k < n; k++) {
            int64_t i = n == v->n ? k : (int64_t)(rnd() % (uint64_t)v->n);
            double keep = v->x[i], up, down, num;
            v->x[i] = keep + step;
            up = f(arg);
            v->x[i] = keep - step;
            down = f(arg);
            v->x[i] = keep;
            num = (up - down) / (2 * step);
            double off = fabs(num - said(v, i));
            if (!(off <= worst)) worst = off; /* also NaN */
            largest = fmax(largest, fabs(num));
        }
        if (!(worst <= bound * largest + tiny)) fail_msg("%s, %s: %.3g off, of %.3g", what, v->name, worst, largest);
        if (n == v->n) continue;
        for (int64_t i = 0; i < v->n; i++) norm += said(v, i) * said(v, i);
        double *keep = need(malloc((size_t)v->n * sizeof *keep));
        memcpy(keep, v->x, (size_t)v->n * sizeof *keep);
        for (int d = 0; d < DIRECTIONS; d++) {
            uint64_t key = rnd();
            double want = 0, f2[2];
            for (int s = 0; s < 2; s++) {
                for (int64_t i = 0; i < v->n; i++)
                    v->x[i] = keep[i] + (hn_rand64(key, (uint64_t)i) & 1 ? step : -step) * (s ? -1 : 1) / 16;
                f2[s] = f(arg);
            }
            memcpy(v->x, keep, (size_t)v->n * sizeof *keep);
            for (int64_t i = 0; i < v->n; i++) want += hn_rand64(key, (uint64_t)i) & 1 ? said(v, i) : -said(v, i);
            double num = (f2[0] - f2[1]) / (2 * step / 16);
            if (!(fabs(num - want) <= bound * sqrt(norm) + tiny))
                fail_msg("%s, %s: %.3g in a direction, differences say %.3g; norm %.3g", what, v->name, want, num,
                         sqrt(norm));
        }
        free(keep);
    }
}

static void near(const char *what, const float *got, const double *want, int64_t n)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)got[i] - want[i]);
        if (!(off <= worst)) worst = off;
        largest = fmax(largest, fabs(want[i]));
    }
    if (!(worst <= 1e-5 * largest)) fail_msg("%s: forward is %.3g off, of %.3g", what, worst, largest);
}

static double dot(const double *y, const float *u, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += y[i] * (double)u[i];
    return s;
}

/* A trained array; its gradient begins at `from`, as one of an earlier batch. */
typedef struct trained {
    hn_param p;
    const float *from;
} trained;
static trained trained_new(const float *values, int64_t rows, int64_t cols)
{
    trained t = { .p = { .p = floats(rows * cols), .g = floats(rows * cols), .rows = rows, .cols = cols },
                  .from = drawn(rows * cols, 1) };
    memcpy(t.p.p, values, (size_t)(rows * cols) * sizeof(float));
    return t;
}
static void trained_start(trained *t) { memcpy(t->p.g, t->from, (size_t)(t->p.rows * t->p.cols) * sizeof(float)); }
static float *trained_out(const trained *t, float *out)
{
    memcpy(out, t->p.g, (size_t)(t->p.rows * t->p.cols) * sizeof(float));
    return out + t->p.rows * t->p.cols;
}

/* Documents in a row, each from position `first` on. */
typedef struct batch {
    hn_train_batch b;
    int32_t *ids, *target, *pos, *doc;
} batch;
static batch batch_new(const int *len, int32_t first, int32_t n_vocab)
{
    batch b = { .doc = array(17 * sizeof(int32_t)) };
    int32_t n = 0, n_doc = 0;
    for (; len[n_doc]; n_doc++) {
        b.doc[n_doc] = n;
        n += len[n_doc];
    }
    b.doc[n_doc] = n;
    b.ids = array((size_t)n * sizeof(int32_t)), b.target = array((size_t)n * sizeof(int32_t)),
    b.pos = array((size_t)n * sizeof(int32_t));
    for (int32_t d = 0; d < n_doc; d++)
        for (int32_t t = b.doc[d]; t < b.doc[d + 1]; t++) {
            b.ids[t] = (int32_t)(rnd() % (uint64_t)n_vocab);
            b.target[t] = (int32_t)(rnd() % (uint64_t)n_vocab);
            b.pos[t] = first + t - b.doc[d];
        }
    b.b = (hn_train_batch){ n, n_doc, 0, b.ids, b.target, b.pos, b.doc };
    return b;
}

#endif
