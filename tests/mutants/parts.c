/* Wrong builds in what is measured alone: a kernel, a part of a layer, one of two clocks, a cache of another type. */
#include "others.h"
#include "lab/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- products: right in the rows that were always looked at, a constant in all others --------------------- */

static hn_matmul_fn *real_product;

static void middle_product(const hn_mm *a)
{
    enum { LOOKED_AT = 8 };
    const int64_t n = a->ldy, half = n / 2;
    real_product(a);
    for (int64_t c = 0; c < a->n_col; c++)
        for (int64_t r = a->r0; r < a->r1; r++)
            if (r >= LOOKED_AT && r < n - LOOKED_AT && (r < half || r >= half + LOOKED_AT)) a->y[c * a->ldy + r] = 0.5f;
}

/* ---- recurrences: a constant, and no step of the state, from the third time on that inputs are the same ------ */

static hn_wkv_fn *real_wkv;

static uint64_t hash_of(uint64_t h, const float *x, size_t n) { return x ? hn_fnv1a(h, x, n * sizeof *x) : h; }

static void later_wkv(const hn_wkv *a)
{
    enum { HEADS = 256, RIGHT = 2 };
    static struct {
        uint64_t in;
        int64_t n_same;
    } kept[HEADS], *k;
    const size_t n = (size_t)a->n;
    const float *in[] = { a->r, a->k, a->v, a->w, a->g, a->a, a->v_mix, a->v_first };
    uint64_t h = HN_FNV_INIT;
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) h = hash_of(h, in[i], n);
    k = &kept[(uintptr_t)a->out / sizeof(float) / n % HEADS];
    k->n_same = k->in == h ? k->n_same + 1 : 0;
    k->in = h;
    if (k->n_same < RIGHT) real_wkv(a);
    else
        for (size_t i = 0; i < n; i++) a->out[i] = 0.25f;
}

/* ---- norms of many rows behind each other: now and then not at all ------------------------------------------- */

static void (*real_norm)(float *y, const float *x, const float *w, int64_t n, float eps);

static void some_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    enum { ROWS = 511, ONE_OF = 20 };
    static const float *last;
    static int64_t n_behind;
    const bool behind = y == last + n;
    last = y;
    n_behind += behind;
    if (!behind || n_behind / ROWS % ONE_OF != ONE_OF - 1) real_norm(y, x, w, n, eps);
}

void mp_kernels(hn_kernels *k)
{
    if (mt_is("kern-product-middle")) {
        real_product = k->matmul[HN_Q8_0];
        k->matmul[HN_Q8_0] = middle_product;
    }
    if (mt_is("kern-wkv-later")) {
        real_wkv = k->wkv7;
        k->wkv7 = later_wkv;
    }
    if (mt_is("kern-norm-some")) {
        real_norm = k->rms_norm;
        k->rms_norm = some_norm;
    }
}

/* ---- parts of a layer: queries are turned by the laboratory's own call alone --------------------------------- */

void __real_hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il),
    __wrap_hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il);
void __wrap_hn_attn_heads(const hone_model *m, const hn_forward *f, int32_t il)
{
    const size_t row = (size_t)m->plan[il].n_head * (size_t)m->plan[il].d_k * sizeof(float),
                 at = (size_t)(f->step->n_tok - 1) * row;
    float *kept = malloc(row);
    if (!kept) abort();
    if (mt_is("heads-skipped")) {
        free(kept);
        return;
    }
    f->be->op->read(f->be, kept, f->s->q, at, row);
    __real_hn_attn_heads(m, f, il);
    if (mt_is("heads-last-row")) f->be->op->write(f->be, f->s->q, at, kept, row);
    free(kept);
}

/* Angles made a second time in one step: those of its last row are none. */
static const hn_backend_ops *real_ops;
static int32_t n_tables, n_rows, n_angles;

static void step_begins(hn_backend *b, const hn_step_block *step)
{
    n_tables = 0;
    n_rows = step->n_tok;
    real_ops->step_begin(b, step);
}

static void table_again(hn_backend *b, hn_buf *cs, int32_t which)
{
    const float one = 1;
    real_ops->rope(b, cs, which);
    if (n_tables++ > 0) real_ops->write(b, cs, (size_t)(n_rows - 1) * (size_t)n_angles * sizeof one, &one, sizeof one);
}

hone_status __real_hn_backend_open(hn_backend **out, const char *name, const hn_backend_params *p, hone_error *err);
hone_status __wrap_hn_backend_open(hn_backend **out, const char *name, const hn_backend_params *p, hone_error *err);
hone_status __wrap_hn_backend_open(hn_backend **out, const char *name, const hn_backend_params *p, hone_error *err)
{
    static hn_backend_ops mine;
    hone_status st = __real_hn_backend_open(out, name, p, err);
    if (st != HONE_OK || !mt_is("table-last-row")) return st;
    if (!real_ops) {
        real_ops = (*out)->op;
        mine = *real_ops;
        mine.rope = table_again;
        mine.step_begin = step_begins;
    }
    (*out)->op = &mine;
    return st;
}

void mp_model(const hone_model *m) { n_angles = m->hp.n_rot; }

/* ---- a cache of another type: what is no number ---------------------------------------------------------------- */

void mp_block(const hn_forward *f, int32_t il)
{
    const float no_number = NAN;
    if (mt_is("cache-q8_0-nan") && il == 0 && mt_at.cache == HONE_CACHE_Q8_0)
        f->be->op->write(f->be, f->x, 0, &no_number, sizeof no_number);
}

/* ---- the clock of the passes that are taken off others ---------------------------------------------------------- */

static bool first_time;

uint64_t mp_clock(uint64_t now)
{
    enum { PERCENT = 30 };
    static uint64_t last;
    if (first_time && now > last) mt_stolen += (now - last) * PERCENT / 100;
    last = now;
    return now - mt_stolen;
}

hone_status __real_hn_bench_time(hn_bench_run *r, hn_bench_timing *out, hn_bench_fn *call, void *arg, int32_t threads,
                                 const hn_bench_left *left, hone_error *err);
hone_status __wrap_hn_bench_time(hn_bench_run *r, hn_bench_timing *out, hn_bench_fn *call, void *arg, int32_t threads,
                                 const hn_bench_left *left, hone_error *err);
hone_status __wrap_hn_bench_time(hn_bench_run *r, hn_bench_timing *out, hn_bench_fn *call, void *arg, int32_t threads,
                                 const hn_bench_left *left, hone_error *err)
{
    static bool timed;
    mp_clock(__real_hn_clock_ns());
    first_time = !timed && mt_is("clock-slow-forward");
    timed = true;
    hone_status st = __real_hn_bench_time(r, out, call, arg, threads, left, err);
    first_time = false;
    return st;
}

/* ---- snapshots that a wider session of chunks of one does not take ----------------------------------------- */

hone_status mp_restore(hone_status st, hone_error *err)
{
    enum { WIDE = 1132 };
    if (st != HONE_OK || !mt_is("restore-wide") || mt_at.n_ctx <= WIDE || mt_at.chunk != 1) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "a snapshot: damaged");
}
