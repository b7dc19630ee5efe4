/* The gradient of every operation of training alone, through the functions that the trainer calls: norm of
 * rows and of heads, rotation, products in their three forms, bias, adapters with and without dropout,
 * gate, attention, the head with its loss, embedding, the sum that goes around a block. Each against central
 * differences of the same operation written plainly here in double, on every level and number of threads
 * with the same bits.
 *
 * Relative error: the largest difference among the elements of an array over the largest element, at most
 * 1e-4; of large arrays a few elements are taken, and directions of ±1 in all of them at once, whose
 * differences are held against the array's 2-norm. */
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

/* ---- norm, and the sum around a block: y = x + norm(x)·w --------------------------------------------------- */

static void ref_norm_row(double *y, const double *x, const double *w, int64_t n, double eps)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    s = 1 / sqrt(s / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}

typedef struct norm_op {
    int64_t n, width;
    double eps, *x, *w, *y;
    const float *fx, *u;
    trained tw;
} norm_op;

static double norm_ref(void *arg)
{
    norm_op *o = arg;
    for (int64_t t = 0; t < o->n; t++) ref_norm_row(o->y + t * o->width, o->x + t * o->width, o->w, o->width, o->eps);
    return dot(o->y, o->u, o->n * o->width) + dot(o->x, o->u, o->n * o->width);
}
static void norm_run(hn_grad *g, void *arg, float *out)
{
    norm_op *o = arg;
    int64_t n = o->n * o->width;
    hn_tensor_ref w = { .full = &o->tw.p };
    trained_start(&o->tw);
    hn_train_norm(g, out, o->fx, &w, o->n);
    memcpy(out + n, o->u, (size_t)n * sizeof(float)); /* what went around is there already */
    hn_train_norm_back(g, out + n, o->u, o->fx, &w, o->n, o->width);
    trained_out(&o->tw, out + 2 * n);
}
static void norm_and_sum(void **state)
{
    static const int64_t widths[] = { 1, 5, 16, 24, 37, 256, 300 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t T = 9, D = widths[i], n = T * D;
        float eps = D == 1 ? 0.5f : 1e-5f; /* of one element, only eps leaves anything of the gradient */
        norm_op o = { .n = T, .width = D, .eps = eps, .fx = drawn(n, 2), .u = drawn(n, 1), .y = doubles(n) };
        const float *w = drawn(D, 1.5f);
        o.x = wide(o.fx, n);
        o.w = wide(w, D);
        o.tw = trained_new(w, 1, D);
        hone_model m = { .hp = { .n_embd = (int32_t)D, .rms_eps = eps } };
        hn_grad g = { .m = &m, .inv_rms = floats(T) };
        const float *out = everywhere("norm", &g, norm_run, &o, 2 * n + D);
        norm_ref(&o);
        near("norm", out, o.y, n);
        var v[] = { { "x", o.x, out + n, NULL, n }, { "weight", o.w, out + 2 * n, o.tw.from, D } };
        compare("norm", norm_ref, &o, v, 2, 0);
        sweep(state);
    }
}

/* ---- norm of heads and rotation ------------------------------------------------------------------------------- */

typedef struct heads_op {
    hn_hparams hp;
    batch b;
    double *x[2], *w[2], *y[2]; /* q, k */
    const float *fx[2], *u[2];
    trained tw[2];
    hn_tgrad_layer l;
    bool normed;
} heads_op;

static double heads_ref(void *arg)
{
    heads_op *o = arg;
    const hn_hparams *hp = &o->hp;
    double sum = 0;
    for (int a = 0; a < 2; a++) {
        int64_t d = hp->head_dim, H = a ? hp->n_head_kv : hp->n_head, T = o->b.b.n_tok, half = hp->n_rot / 2;
        memcpy(o->y[a], o->x[a], (size_t)(T * H * d) * sizeof(double));
        for (int64_t r = 0; r < T * H; r++) {
            double *y = o->y[a] + r * d;
            if (o->normed) ref_norm_row(y, o->x[a] + r * d, o->w[a], d, hp->rms_eps);
            for (int64_t i = 0; i < half; i++) {
                double t = (double)o->b.pos[r / H] * hp->rope[0].freq[i], c = cos(t) * hp->rope[0].mscale,
                       s = sin(t) * hp->rope[0].mscale;
                double *p = y + (hp->rope_neox ? i : 2 * i), *q = y + (hp->rope_neox ? i + half : 2 * i + 1), v = *p;
                *p = v * c - *q * s;
                *q = v * s + *q * c;
            }
        }
        sum += dot(o->y[a], o->u[a], T * H * d);
    }
    return sum;
}
static void heads_run(hn_grad *g, void *arg, float *out)
{
    heads_op *o = arg;
    int64_t T = o->b.b.n_tok, nq = T * o->hp.n_head * o->hp.head_dim, nk = T * o->hp.n_head_kv * o->hp.head_dim;
    float *x = need(malloc((size_t)(T * o->hp.n_embd) * sizeof *x)), *q = out, *k = q + nq, *dq = k + nk, *dk = dq + nq;
    for (int a = 0; a < 2; a++) trained_start(&o->tw[a]);
    hn_train_embed(g, x, &o->b.b);
    free(x);
    memcpy(q, o->fx[0], (size_t)nq * sizeof *q), memcpy(k, o->fx[1], (size_t)nk * sizeof *k);
    memcpy(dq, o->u[0], (size_t)nq * sizeof *q), memcpy(dk, o->u[1], (size_t)nk * sizeof *k);
    hn_train_heads(g, &o->l, q, k, T);
    hn_train_heads_back(g, &o->l, dq, dk, o->fx[0], o->fx[1], T);
    out = dk + nk;
    for (int a = 0; a < 2; a++) out = trained_out(&o->tw[a], out);
}
static void heads_case(bool neox, bool normed, int d, int n_rot, float mscale, const int *len, int32_t first)
{
    double freq[64];
    for (int i = 0; i < n_rot / 2; i++) freq[i] = pow(10000, -2.0 * i / n_rot);
    heads_op o = { .hp = { .n_embd = 3,
                           .n_head = 4,
                           .n_head_kv = 2,
                           .head_dim = d,
                           .n_rot = n_rot,
                           .rms_eps = 1e-6f,
                           .rope_neox = neox,
                           .rope[0].mscale = mscale,
                           .rope[0].freq = freq },
                   .b = batch_new(len, first, 5),
                   .normed = normed };
    int64_t T = o.b.b.n_tok, n[2] = { T * 4 * d, T * 2 * d };
    for (int a = 0; a < 2; a++) {
        const float *w = drawn(d, 1.5f);
        o.fx[a] = drawn(n[a], 2), o.u[a] = drawn(n[a], 1), o.y[a] = doubles(n[a]);
        o.x[a] = wide(o.fx[a], n[a]), o.w[a] = wide(w, d);
        o.tw[a] = trained_new(w, 1, d);
        if (normed) *(a ? &o.l.k_norm : &o.l.q_norm) = (hn_tensor_ref){ .full = &o.tw[a].p };
    }
    hone_model m = { .hp = o.hp };
    const float *e = drawn(15, 1);
    trained embd = trained_new(e, 5, 3);
    hn_grad g = { .m = &m,
                  .token_embd = { .full = &embd.p },
                  .rope = floats(T * n_rot),
                  .rope_back = floats(T * n_rot),
                  .inv_rms = floats(T * 4),
                  .dq_raw = normed ? floats(n[0]) : NULL,
                  .dk_raw = normed ? floats(n[1]) : NULL };
    const char *what = neox ? "heads, halves" : "heads, pairs";
    const float *out = everywhere(what, &g, heads_run, &o, 2 * (n[0] + n[1] + d)), *dq = out + n[0] + n[1];
    heads_ref(&o);
    near(what, out, o.y[0], n[0]);
    near(what, out + n[0], o.y[1], n[1]);
    var v[] = { { "q", o.x[0], dq, NULL, n[0] },
                { "k", o.x[1], dq + n[0], NULL, n[1] },
                { "q's norm", o.w[0], dq + n[0] + n[1], o.tw[0].from, d },
                { "k's norm", o.w[1], dq + n[0] + n[1] + d, o.tw[1].from, d } };
    compare(what, heads_ref, &o, v, normed ? 4 : 2, 0);
    sweep(NULL);
}
static void heads(void **state)
{
    static const int three[] = { 7, 1, 5, 0 }, one[] = { 1, 0 };
    for (int neox = 0; neox < 2; neox++)
        for (int normed = 0; normed < 2; normed++) {
            heads_case(neox, normed, 8, 8, 1, three, 0);
            heads_case(neox, normed, 10, 6, 1.25f, three, 0); /* some dims are not turned; YaRN's factor */
            heads_case(neox, normed, 16, 16, 1, one, 1000);
        }
}

/* ---- linear: products, bias, adapter ----------------------------------------------------------------------------- */

typedef struct linear_op {
    hn_linear l;
    int64_t n, rank;
    double scale, *x, *w, *bias, *a, *b, *mask, *h, *y;
    const float *fx, *u, *around;
    trained tw, tbias, ta, tb;
} linear_op;

static double linear_ref(void *arg)
{
    linear_op *o = arg;
    int64_t n_in = o->l.n_in, n_out = o->l.n_out;
    for (int64_t t = 0; t < o->n; t++) {
        const double *x = o->x + t * n_in, *mask = o->mask + t * n_in;
        for (int64_t r = 0; r < o->rank; r++) {
            o->h[r] = 0;
            for (int64_t i = 0; i < n_in; i++) o->h[r] += o->a[r * n_in + i] * x[i] * mask[i];
        }
        for (int64_t c = 0; c < n_out; c++) {
            double s = o->bias ? o->bias[c] : 0;
            for (int64_t i = 0; i < n_in; i++) s += o->w[c * n_in + i] * x[i];
            for (int64_t r = 0; r < o->rank; r++) s += o->scale * o->b[c * o->rank + r] * o->h[r];
            o->y[t * n_out + c] = s;
        }
    }
    return dot(o->y, o->u, o->n * n_out);
}
/* y, dx, then of what is trained */
static void linear_run(hn_grad *g, void *arg, float *out)
{
    linear_op *o = arg;
    trained *t[] = { &o->tw, &o->tbias, &o->ta, &o->tb };
    for (int i = 0; i < 4; i++)
        if (t[i]->p.p) trained_start(t[i]);
    float *dx = out + o->n * o->l.n_out;
    hn_train_linear(g, &o->l, out, o->fx, o->n);
    if (o->around) memcpy(dx, o->around, (size_t)(o->n * o->l.n_in) * sizeof *dx);
    hn_train_linear_back(g, &o->l, dx, o->around != NULL, o->u, o->fx, o->n);
    out = dx + o->n * o->l.n_in;
    for (int i = 0; i < 4; i++)
        if (t[i]->p.p) out = trained_out(t[i], out);
}

static float *share_out(hn_grad *g, int64_t n, int64_t n_in, int64_t rank, float dropout)
{
    g->inner = floats(n * rank), g->d_inner = floats(n * rank);
    g->dropped = dropout > 0 ? floats(n * n_in) : NULL;
    g->p.dropout = dropout;
    return g->dropped;
}

/* What falls, seen through an adapter that is the identity around a W of zeros. */
static void mask_run(hn_grad *g, void *arg, float *out)
{
    linear_op *o = arg;
    hn_train_linear(g, &o->l, out, o->fx, o->n);
}
static void find_mask(double *mask, int64_t n, int64_t n_in, uint64_t id, float dropout, uint64_t key)
{
    float *zeros = floats(n_in * n_in), *one = floats(n_in * n_in), *x = floats(n * n_in);
    int64_t fell = 0;
    for (int64_t i = 0; i < n_in * n_in; i++) zeros[i] = 0, one[i] = i % (n_in + 1) == 0;
    for (int64_t i = 0; i < n * n_in; i++) x[i] = 1;
    trained w = trained_new(zeros, n_in, n_in), eye = trained_new(one, n_in, n_in);
    linear_op o = { .l = { .w = { .full = &w.p }, .a = &eye.p, .b = &eye.p, .n_in = n_in, .n_out = n_in, .id = id },
                    .n = n,
                    .fx = x };
    hone_model m = { .hp = { .n_embd = (int32_t)n_in } };
    hn_grad g = { .m = &m, .p.scale = 1, .drop_key = key };
    share_out(&g, n, n_in, n_in, dropout);
    const float *out = everywhere("dropout", &g, mask_run, &o, n * n_in);
    for (int64_t i = 0; i < n * n_in; i++) {
        mask[i] = out[i] == 0 ? 0 : 1 / (1 - (double)dropout);
        if (!(fabs((double)out[i] - mask[i]) <= 1e-6))
            fail_msg("dropout: an element is multiplied by %g", (double)out[i]);
        fell += out[i] == 0;
    }
    double share = (double)fell / (double)(n * n_in), room = 4 * sqrt(dropout * (1 - dropout) / (double)(n * n_in));
    if (!(fabs(share - dropout) <= room)) fail_msg("dropout: %g of all fell, expected %g", share, (double)dropout);
}

typedef struct linear_case {
    hn_type type;
    int64_t n, n_in, n_out, rank;
    bool whole, bias, around;
    float dropout;
} linear_case;

static void check_linear(const linear_case *c)
{
    const hn_type_info *ti = hn_type_get(c->type);
    int64_t nw = c->n_in * c->n_out, nx = c->n * c->n_in, ny = c->n * c->n_out;
    size_t row = (size_t)hn_row_bytes(ti, (uint64_t)c->n_in);
    linear_op o = { .n = c->n,
                    .rank = c->rank,
                    .scale = 1.5,
                    .fx = drawn(nx, 1),
                    .u = drawn(ny, 1),
                    .y = doubles(ny),
                    .mask = doubles(nx),
                    .h = doubles(c->rank),
                    .l = { .n_in = c->n_in, .n_out = c->n_out, .id = 9 } };
    float *w = drawn(nw, 1), *bias = drawn(c->n_out, 1), *a = drawn(c->rank * c->n_in, 1),
          *b = drawn(c->rank * c->n_out, 1);
    char *data = array((size_t)c->n_out * row), what[96];
    for (int64_t r = 0; r < c->n_out; r++) {
        ti->quantize(data + (size_t)r * row, w + r * c->n_in, c->n_in, NULL);
        ti->dequantize(w + r * c->n_in, data + (size_t)r * row, c->n_in);
    }
    hn_weight frozen = { .data = data, .type = c->type, .row_bytes = row, .n_in = c->n_in, .n_out = c->n_out };
    o.l.w.frozen = &frozen;
    o.x = wide(o.fx, nx), o.w = wide(w, nw), o.a = wide(a, c->rank * c->n_in), o.b = wide(b, c->rank * c->n_out);
    if (c->bias) {
        o.bias = wide(bias, c->n_out);
        o.l.bias.values = bias;
    }
    if (c->around) o.around = drawn(nx, 1);
    int64_t n = ny + nx;
    var v[5] = { { "x", o.x, NULL, o.around, nx } };
    int n_var = 1;
    if (c->whole) {
        o.tw = trained_new(w, c->n_out, c->n_in);
        o.l.w.full = &o.tw.p;
        v[n_var++] = (var){ "W", o.w, NULL, o.tw.from, nw };
        if (c->bias) {
            o.tbias = trained_new(bias, 1, c->n_out);
            o.l.bias.full = &o.tbias.p;
            v[n_var++] = (var){ "bias", o.bias, NULL, o.tbias.from, c->n_out };
        }
    }
    if (c->rank) {
        o.ta = trained_new(a, c->rank, c->n_in), o.tb = trained_new(b, c->n_out, c->rank);
        o.l.a = &o.ta.p, o.l.b = &o.tb.p;
        v[n_var++] = (var){ "A", o.a, NULL, o.ta.from, c->rank * c->n_in };
        v[n_var++] = (var){ "B", o.b, NULL, o.tb.from, c->rank * c->n_out };
    }
    hone_model m = { .hp = { .n_embd = (int32_t)c->n_in } };
    hn_grad g = { .m = &m, .p.scale = 1.5f, .drop_key = c->dropout > 0 ? 77 : 0 };
    for (int64_t i = 0; i < nx; i++) o.mask[i] = 1;
    if (c->dropout > 0) find_mask(o.mask, c->n, c->n_in, o.l.id, c->dropout, g.drop_key);
    share_out(&g, c->n, c->n_in, c->rank, c->dropout);
    for (int i = 1; i < n_var; i++) n += v[i].n;
    snprintf(what, sizeof what, "linear %s %lldx%lld, %lld rows, rank %lld%s", ti->name, (long long)c->n_out,
             (long long)c->n_in, (long long)c->n, (long long)c->rank, c->dropout > 0 ? ", dropout" : "");
    const float *out = everywhere(what, &g, linear_run, &o, n), *at = out + ny;
    for (int i = 0; i < n_var; at += v[i++].n) v[i].got = at;
    linear_ref(&o);
    near(what, out, o.y, ny);
    compare(what, linear_ref, &o, v, n_var, 0);
    sweep(NULL);
}

static void products(void **state)
{
    static const linear_case cases[] = {
        { HN_F32, 1, 1, 1, .whole = true, .bias = true },
        { HN_F32, 13, 37, 21, .whole = true, .bias = true },
        { HN_F32, 70, 19, 90, .whole = true, .bias = true,
          .around = true },                   /* more rows than a tile, columns than a strip */
        { HN_F32, 300, 5, 3, .whole = true }, /* dW sums over several blocks of 256 */
        { HN_F32, 5, 300, 7, .bias = true },
        { HN_F16, 9, 70, 33, .rank = 0 },
        { HN_BF16, 9, 70, 33, .around = true },
        { HN_Q8_0, 9, 96, 70, .rank = 0 },
        { HN_Q4_0, 3, 64, 33, .bias = true },
        { HN_Q4_K, 9, 512, 70, .rank = 0 },
        { HN_Q4_K, 5, 256, 300, .around = true },
        { HN_Q6_K, 9, 256, 70, .bias = true },
        { HN_Q5_K, 1, 256, 9, .rank = 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_linear(&cases[i]);
}
static void adapters(void **state)
{
    static const linear_case cases[] = {
        { HN_F32, 1, 3, 2, .rank = 1 },
        { HN_F32, 13, 37, 21, .rank = 4, .bias = true, .around = true },
        { HN_Q4_K, 9, 256, 70, .rank = 8 },
        { HN_Q8_0, 70, 64, 33, .rank = 3, .around = true },
        { HN_F32, 13, 37, 21, .rank = 4, .dropout = 0.3f },
        { HN_F16, 9, 70, 33, .rank = 5, .dropout = 0.5f, .around = true },
        { HN_Q6_K, 9, 256, 20, .rank = 16, .dropout = 0.05f },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_linear(&cases[i]);
}

/* ---- gate: h = silu(a)·u ------------------------------------------------------------------------------------------
 */

typedef struct gate_op {
    int64_t n;
    double *a, *u, *y;
    const float *fa, *fu, *up;
} gate_op;
static double gate_ref(void *arg)
{
    gate_op *o = arg;
    for (int64_t i = 0; i < o->n; i++) o->y[i] = o->a[i] / (1 + exp(-o->a[i])) * o->u[i];
    return dot(o->y, o->up, o->n);
}
static void gate_run(hn_grad *g, void *arg, float *out)
{
    gate_op *o = arg;
    float *a = out + o->n, *u = a + o->n;
    memcpy(a, o->fa, (size_t)o->n * sizeof *a), memcpy(u, o->fu, (size_t)o->n * sizeof *u);
    hn_train_gate(g, out, a, u, o->n / g->m->hp.n_ff, false);
    hn_train_gate_back(g, a, u, o->up, o->n / g->m->hp.n_ff, false);
}
static void gate(void **state)
{
    static const int64_t widths[] = { 1, 16, 37, 100 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t n = 11 * widths[i];
        float *a = drawn(n, 6);
        a[0] = 0, a[n / 2] = -100, a[n / 3] = 100; /* exp(100) is more than a float holds */
        gate_op o = { .n = n, .fa = a, .fu = drawn(n, 1), .up = drawn(n, 1), .y = doubles(n) };
        o.a = wide(o.fa, n), o.u = wide(o.fu, n);
        hone_model m = { .hp = { .n_ff = (int32_t)widths[i] } };
        hn_grad g = { .m = &m };
        const float *out = everywhere("gate", &g, gate_run, &o, 3 * n);
        gate_ref(&o);
        near("gate", out, o.y, n);
        var v[] = { { "a", o.a, out + n, NULL, n }, { "u", o.u, out + 2 * n, NULL, n } };
        compare("gate", gate_ref, &o, v, 2, 0);
        sweep(state);
    }
}

/* ---- attention
 * ------------------------------------------------------------------------------------------------------- */

typedef struct attn_op {
    hn_hparams hp;
    batch b;
    double *x[3], *p, *y;
    const float *fx[3], *u;
    int64_t n[3];
} attn_op; /* q, k, v */

static double attn_ref(void *arg)
{
    attn_op *o = arg;
    int64_t d = o->hp.head_dim, H = o->hp.n_head, K = o->hp.n_head_kv;
    for (int32_t c = 0; c < o->b.b.n_doc; c++)
        for (int64_t t = o->b.doc[c]; t < o->b.doc[c + 1]; t++)
            for (int64_t h = 0; h < H; h++) {
                const double *q = o->x[0] + (t * H + h) * d, *k = o->x[1] + h / (H / K) * d,
                             *v = o->x[2] + h / (H / K) * d;
                double top = -INFINITY, sum = 0, *y = o->y + (t * H + h) * d;
                for (int64_t s = o->b.doc[c]; s <= t; s++) {
                    double dotted = 0;
                    for (int64_t i = 0; i < d; i++) dotted += q[i] * k[s * K * d + i];
                    o->p[s] = dotted / sqrt((double)d);
                    top = fmax(top, o->p[s]);
                }
                for (int64_t s = o->b.doc[c]; s <= t; s++) sum += o->p[s] = exp(o->p[s] - top);
                for (int64_t i = 0; i < d; i++) y[i] = 0;
                for (int64_t s = o->b.doc[c]; s <= t; s++)
                    for (int64_t i = 0; i < d; i++) y[i] += o->p[s] / sum * v[s * K * d + i];
            }
    return dot(o->y, o->u, o->n[0]);
}
static void attn_run(hn_grad *g, void *arg, float *out)
{
    attn_op *o = arg;
    float *copy[3];
    for (int a = 0; a < 3; a++)
        memcpy(copy[a] = need(malloc((size_t)o->n[a] * sizeof(float))), o->fx[a], (size_t)o->n[a] * sizeof(float));
    hn_kept w = { .q = copy[0], .k = copy[1], .v = copy[2], .o = out, .lse = out + o->n[0] };
    g->dq = w.lse + o->b.b.n_tok * o->hp.n_head;
    g->dk = g->dq + o->n[0];
    g->dv = g->dk + o->n[1];
    hn_attn_forward(g, &o->b.b, &w);
    hn_attn_backward(g, &o->b.b, &w);
    for (int a = 0; a < 3; a++) free(copy[a]);
}
static void check_attn(int H, int K, int d, const int *len, float size)
{
    attn_op o = { .hp = { .n_head = H, .n_head_kv = K, .head_dim = d }, .b = batch_new(len, 0, 5) };
    int64_t T = o.b.b.n_tok;
    char what[64];
    o.n[0] = T * H * d;
    o.n[1] = o.n[2] = T * K * d;
    for (int a = 0; a < 3; a++) {
        o.fx[a] = drawn(o.n[a], a < 2 ? size : 1);
        o.x[a] = wide(o.fx[a], o.n[a]);
    }
    float *u = drawn(o.n[0], 1);
    o.u = u, o.y = doubles(o.n[0]), o.p = doubles(T);
    hone_model m = { .hp = o.hp };
    hn_grad g = {
        .m = &m, .d_o = u, .delta = floats(T * H), .attn = floats((int64_t)hn_attn_scratch(&o.hp) * MOST_THREADS)
    };
    snprintf(what, sizeof what, "attention, %d/%d heads of %d, %lld tokens, %d documents", H, K, d, (long long)T,
             o.b.b.n_doc);
    const float *out = everywhere(what, &g, attn_run, &o, 2 * o.n[0] + 2 * o.n[1] + T * H), *dq = out + o.n[0] + T * H;
    attn_ref(&o);
    near(what, out, o.y, o.n[0]);
    var v[] = { { "q", o.x[0], dq, NULL, o.n[0] },
                { "k", o.x[1], dq + o.n[0], NULL, o.n[1] },
                { "v", o.x[2], dq + o.n[0] + o.n[1], NULL, o.n[2] } };
    compare(what, attn_ref, &o, v, 3, 1e-6); /* a document of one token: q and k move nothing */
    sweep(NULL);
}
static void attention(void **state)
{
    static const int one[] = { 1, 0 }, ones[] = { 1, 1, 1, 0 }, few[] = { 9, 1, 14, 0 }, below[] = { 63, 0 },
                     whole[] = { 64, 0 }, above[] = { 65, 0 }, several[] = { 70, 1, 64, 5, 0 }, blocks[] = { 150, 0 },
                     uneven[] = { 3, 140, 1, 0 };
    check_attn(4, 2, 8, one, 2);
    check_attn(3, 1, 5, ones, 2);
    check_attn(4, 2, 8, few, 3);
    check_attn(6, 6, 4, few, 3);
    check_attn(5, 1, 10, few, 8); /* sharp: most probabilities vanish */
    check_attn(2, 1, 16, below, 2);
    check_attn(2, 2, 16, whole, 2);
    check_attn(2, 1, 16, above, 2);
    check_attn(4, 2, 8, several, 2);
    check_attn(2, 1, 70, blocks, 1);
    check_attn(3, 1, 8, blocks, 4); /* on three threads, in blocks of keys and of queries */
    check_attn(4, 1, 6, uneven, 2);
}

/* ---- the loss of given logits ---------------------------------------------------------------------------------------
 */

typedef struct loss_op {
    int64_t T, V;
    batch *b;
    double *logits, weight, loss;
    const float *fx;
} loss_op;

static double cross_entropy(const double *x, int64_t V, int64_t target)
{
    double top = -INFINITY, sum = 0;
    for (int64_t v = 0; v < V; v++) top = fmax(top, x[v]);
    for (int64_t v = 0; v < V; v++) sum += exp(x[v] - top);
    return top - x[target] + log(sum);
}
static double loss_ref(void *arg)
{
    loss_op *o = arg;
    double sum = 0;
    for (int64_t t = 0; t < o->T; t++)
        if (o->b->target[t] >= 0) sum += cross_entropy(o->logits + t * o->V, o->V, o->b->target[t]);
    return sum * o->weight;
}
/* dlogits of all rows; zeros where there is no target */
static void loss_run(hn_grad *g, void *arg, float *out)
{
    loss_op *o = arg;
    float *dx = need(malloc((size_t)(o->T * g->m->hp.n_embd) * sizeof *dx));
    double loss = hn_head_loss(g, &o->b->b, o->fx, o->weight, dx);
    int64_t k = 0;
    free(dx);
    for (int64_t t = 0; t < o->T; t++)
        if (o->b->target[t] >= 0) memcpy(out + t * o->V, g->logits + k++ * o->V, (size_t)o->V * sizeof *out);
        else memset(out + t * o->V, 0, (size_t)o->V * sizeof *out);
    if (o->loss != 0 && o->loss != loss) fail_msg("loss %.17g on %s, first %.17g", loss, g->p.kernels->name, o->loss);
    o->loss = loss;
}
/* Row t of x is 4·e_t, of norm 1: column t of W is a quarter of its logits, and nothing is rounded. */
static void check_loss(int64_t V, int only)
{
    enum { D = 16 };
    static const int docs[] = { 5, 1, 10, 0 };
    batch b = batch_new(docs, 0, (int32_t)V);
    float *x = floats(D * D), *w = floats(V * D), *logits = floats(D * V), *ones = floats(D);
    int32_t n_target = 0;
    for (int64_t t = 0; t < D; t++) {
        ones[t] = 1;
        for (int64_t i = 0; i < D; i++) x[t * D + i] = i == t ? 4 : 0;
        for (int64_t v = 0; v < V; v++) {
            float l = (float)(int)(rndf() * 256) / 64;
            if (t == 1) l += 10000; /* all large */
            if (t == 2) l -= 10000;
            if (t == 3) l = v == 2 % V ? 10000 : -10000;  /* one takes all; the target is another */
            if (t == 4) l = v == b.target[t] ? 10000 : l; /* the target takes all */
            if (t == 5) l = 0;
            logits[t * V + v] = l;
            w[v * D + t] = l / 4;
        }
        if (t == 3) b.target[t] = V > 1 ? 1 : 0;
        if (only < 0 ? t % 4 == 3 && t != 3 : t != only) b.target[t] = -1;
        n_target += b.target[t] >= 0;
    }
    hn_weight head = { .data = w, .type = HN_F32, .row_bytes = D * sizeof(float), .n_in = D, .n_out = V };
    hone_model m = { .hp = { .n_embd = D, .n_vocab = (int32_t)V } };
    hn_grad g = { .m = &m,
                  .output_norm = { .values = ones },
                  .output = { .w = { .frozen = &head }, .n_in = D, .n_out = V },
                  .chunk = D,
                  .last = floats(D * D),
                  .z = floats(D * D),
                  .dz = floats(D * D),
                  .dn = floats(D * D),
                  .logits = floats(D * V),
                  .rows = array(D * sizeof(int32_t)),
                  .loss = doubles(D) };
    loss_op o = { .T = D, .V = V, .b = &b, .logits = wide(logits, D * V), .weight = 1.0 / n_target, .fx = x };
    const float *out = everywhere("loss", &g, loss_run, &o, D * V);
    double want = loss_ref(&o);
    if (!(fabs(o.loss * o.weight - want) <= 1e-6 * fabs(want) + 1e-9))
        fail_msg("loss of %lld logits: %.9g, expected %.9g", (long long)V, o.loss * o.weight, want);
    for (int64_t t = 0; t < D; t++) { /* each row alone: its scale is its own */
        var v = { "logits", o.logits + t * V, out + t * V, NULL, V };
        compare("loss", loss_ref, &o, &v, 1, 2e-6 * o.weight);
    }
    sweep(NULL);
}
static void loss(void **state)
{
    check_loss(1, -1);
    check_loss(37, -1);
    check_loss(64, -1);
    check_loss(131, -1);
    check_loss(37, 6); /* one target */
    check_loss(37, 1);
}

/* ---- the head: norm, product, loss
 * ----------------------------------------------------------------------------------- */

typedef struct head_op {
    int64_t T, D, V;
    batch *b;
    double *x, *norm, *w, *bias, *z, *logits, weight, loss;
    const float *fx;
    trained tn, tw, tb;
    bool whole;
} head_op;

static double head_ref(void *arg)
{
    head_op *o = arg;
    double sum = 0;
    for (int64_t t = 0; t < o->T; t++) {
        if (o->b->target[t] < 0) continue;
        ref_norm_row(o->z, o->x + t * o->D, o->norm, o->D, 1e-5f);
        for (int64_t v = 0; v < o->V; v++) {
            o->logits[v] = o->bias[v];
            for (int64_t i = 0; i < o->D; i++) o->logits[v] += o->w[v * o->D + i] * o->z[i];
        }
        sum += cross_entropy(o->logits, o->V, o->b->target[t]);
    }
    return sum * o->weight;
}
static void head_run(hn_grad *g, void *arg, float *out)
{
    head_op *o = arg;
    trained *t[] = { &o->tn, &o->tw, &o->tb };
    for (int i = 0; i < 3; i++) trained_start(t[i]);
    o->loss = hn_head_loss(g, &o->b->b, o->fx, o->weight, out);
    out += o->T * o->D;
    for (int i = 0; o->whole && i < 3; i++) out = trained_out(t[i], out);
}
static void check_head(hn_type type, int64_t D, int64_t V, int32_t chunk, bool whole, int n_masked)
{
    static const int docs[] = { 6, 1, 4, 0 };
    const hn_type_info *ti = hn_type_get(type);
    size_t row = (size_t)hn_row_bytes(ti, (uint64_t)D);
    batch b = batch_new(docs, 0, (int32_t)V);
    int64_t T = b.b.n_tok;
    for (int i = 0; i < n_masked; i++) b.target[i * 3 % T] = -1;
    int32_t n_target = 0;
    for (int64_t t = 0; t < T; t++) n_target += b.target[t] >= 0;
    float *norm = drawn(D, 1.5f), *w = drawn(V * D, 0.5f), *bias = drawn(V, 1);
    char *data = array((size_t)V * row);
    for (int64_t v = 0; v < V; v++) {
        ti->quantize(data + (size_t)v * row, w + v * D, D, NULL);
        ti->dequantize(w + v * D, data + (size_t)v * row, D);
    }
    hn_weight head = { .data = data, .type = type, .row_bytes = row, .n_in = D, .n_out = V };
    head_op o = { .T = T,
                  .D = D,
                  .V = V,
                  .b = &b,
                  .fx = drawn(T * D, 2),
                  .weight = n_target ? 1.0 / n_target : 1,
                  .z = doubles(D),
                  .logits = doubles(V),
                  .whole = whole,
                  .norm = wide(norm, D),
                  .w = wide(w, V * D),
                  .bias = wide(bias, V),
                  .tn = trained_new(norm, 1, D),
                  .tw = trained_new(w, V, D),
                  .tb = trained_new(bias, 1, V) };
    o.x = wide(o.fx, T * D);
    hone_model m = { .hp = { .n_embd = (int32_t)D, .n_vocab = (int32_t)V, .rms_eps = 1e-5f } };
    hn_grad g = { .m = &m,
                  .output_norm = { .values = norm },
                  .output = { .w = { .frozen = &head }, .bias = { .values = bias }, .n_in = D, .n_out = V },
                  .chunk = chunk,
                  .last = floats(chunk * D),
                  .z = floats(chunk * D),
                  .dz = floats(chunk * D),
                  .dn = floats(T * D),
                  .logits = floats(chunk * V),
                  .inv_rms = floats(chunk),
                  .rows = array((size_t)T * sizeof(int32_t)),
                  .loss = doubles(T) };
    if (whole) g.output_norm.full = &o.tn.p, g.output.w.full = &o.tw.p, g.output.bias.full = &o.tb.p;
    const float *out = everywhere("head", &g, head_run, &o, T * D + (whole ? D + V * D + V : 0)), *at = out + T * D;
    double want = head_ref(&o);
    if (!(fabs(o.loss * o.weight - want) <= 1e-6 * fabs(want)))
        fail_msg("head: loss %.9g, expected %.9g", o.loss * o.weight, want);
    var v[] = { { "x", o.x, out, NULL, T * D },
                { "norm", o.norm, at, o.tn.from, D },
                { "W", o.w, at + D, o.tw.from, V * D },
                { "bias", o.bias, at + D + V * D, o.tb.from, V } };
    compare("head", head_ref, &o, v, whole ? 4 : 1, 0);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; b.target[t] < 0 && i < D; i++) assert_true(out[t * D + i] == 0); /* exactly */
    sweep(NULL);
}
static void head(void **state)
{
    check_head(HN_F32, 24, 37, 3, true, 2);
    check_head(HN_F32, 24, 37, 100, true, 0);
    check_head(HN_F32, 5, 2, 1, true, 10); /* one target */
    check_head(HN_Q8_0, 32, 131, 4, false, 3);
    check_head(HN_Q6_K, 256, 20, 4, false, 3);
    check_head(HN_F32, 8, 9, 4, true, 11); /* none: zero, and nothing is added */
}

/* ---- embedding
 * --------------------------------------------------------------------------------------------------------- */

typedef struct embed_op {
    int64_t D;
    batch b;
    double *e, *y;
    const float *u;
    trained te;
} embed_op;
static double embed_ref(void *arg)
{
    embed_op *o = arg;
    for (int64_t t = 0; t < o->b.b.n_tok; t++)
        memcpy(o->y + t * o->D, o->e + o->b.ids[t] * o->D, (size_t)o->D * sizeof *o->y);
    return dot(o->y, o->u, o->b.b.n_tok * o->D);
}
static void embed_run(hn_grad *g, void *arg, float *out)
{
    embed_op *o = arg;
    trained_start(&o->te);
    hn_train_embed(g, out, &o->b.b);
    hn_train_embed_back(g, o->u, &o->b.b);
    trained_out(&o->te, out + o->b.b.n_tok * o->D);
}
static void embedding(void **state)
{
    enum { V = 7 }; /* 23 tokens: many come up several times */
    static const int docs[] = { 9, 1, 13, 0 };
    static const int64_t widths[] = { 1, 16, 19, 40 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t D = widths[i];
        embed_op o = { .D = D, .b = batch_new(docs, 0, V - 1) }; /* and one never */
        int64_t n = o.b.b.n_tok * D;
        const float *e = drawn(V * D, 1);
        o.u = drawn(n, 1), o.y = doubles(n), o.e = wide(e, V * D), o.te = trained_new(e, V, D);
        hone_model m = { .hp = { .n_embd = (int32_t)D, .n_vocab = V } };
        hn_grad g = { .m = &m, .token_embd = { .full = &o.te.p } };
        const float *out = everywhere("embedding", &g, embed_run, &o, n + V * D);
        embed_ref(&o);
        near("embedding", out, o.y, n);
        var v = { "rows", o.e, out + n, o.te.from, V * D };
        compare("embedding", embed_ref, &o, &v, 1, 0);
        for (int64_t c = 0; c < D; c++) assert_true(out[n + (V - 1) * D + c] == o.te.from[(V - 1) * D + c]);
        sweep(state);
    }
}

int main(void)
{
#define OP(f)                     \
    {                             \
#f, f, begin, sweep, NULL \
    }
    const struct CMUnitTest tests[] = { OP(norm_and_sum), OP(heads), OP(products), OP(adapters), OP(gate),
                                        OP(attention),    OP(loss),  OP(head),     OP(embedding) };
    return cmocka_run_group_tests(tests, start, stop);
}
