/* What the entries that look into the rooms share. Refuses to know what they measure. */
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/stats/verdict.h"

#include <math.h>

hone_status hn_bench_be_open(hn_bench_be *b, const hn_bench_run *r, const char *level, int32_t threads,
                             const hn_backend_params *shape, hone_error *err)
{
    *b = (hn_bench_be){ 0 };
    hn_cpu_level l;
    hone_status st = hn_cpu_choose(&l, level ? level : r->level, err);
    if (st != HONE_OK) return st;
    hn_backend_params p = *shape;
    b->k = hn_kernels_get(l);
    b->scalar = hn_kernels_get(HN_CPU_SCALAR);
    st = hn_pool_new(&b->pool, threads > 0 ? threads : r->set.threads, err);
    if (st == HONE_OK) st = hn_pool_new(&b->pool1, 1, err);
    p.pool = b->pool;
    p.level = l;
    if (st == HONE_OK) st = hn_backend_open(&b->be, NULL, &p, err);
    p.pool = b->pool1;
    p.level = HN_CPU_SCALAR;
    if (st == HONE_OK) st = hn_backend_open(&b->oracle, NULL, &p, err);
    if (st != HONE_OK) hn_bench_be_close(b);
    return st;
}

void hn_bench_be_close(hn_bench_be *b)
{
    if (b->be) b->be->op->free(b->be);
    if (b->oracle) b->oracle->op->free(b->oracle);
    hn_pool_free(b->pool);
    hn_pool_free(b->pool1);
    *b = (hn_bench_be){ 0 };
}

hn_buf *hn_bench_rows(hn_backend *be, const float *x, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    hn_buf *b = be->op->alloc(be, bytes, HN_MEM_ROWS);
    if (b && x) be->op->write(be, b, 0, x, bytes);
    return b;
}

hn_act *hn_bench_act(hn_backend *be, const float *x, int64_t n, int64_t n_tok)
{
    hn_act *act = be->op->act_alloc(be, n, n_tok);
    if (act && x) hn_bench_put(be, act, x, n, n_tok);
    return act;
}

void hn_bench_put(hn_backend *be, hn_act *act, const float *x, int64_t n, int64_t n_tok)
{
    be->op->act_shape(be, act, n, n_tok);
    be->op->act_write(be, act, x, &(hn_act_part){ .n_row = n_tok, .n_col = n });
}

void hn_bench_get(hn_backend *be, float *host, hn_act *act, int64_t row, int64_t n_row, int64_t n)
{
    be->op->act_read(be, host, act, &(hn_act_part){ .row = row, .n_row = n_row, .n_col = n });
}

void hn_bench_attention(hn_backend *be, hn_act *act, const hn_attention *a, const hn_kv *kv, const hn_row *rows,
                        int32_t n_tok)
{
    be->op->step_begin(be, &(hn_step_block){ .rows = rows, .n_tok = n_tok, .n_seq = 1 });
    be->op->attention(be, act, a, kv);
    be->op->step_end(be, NULL, NULL);
}

float *hn_bench_floats(int64_t n, uint64_t key)
{
    float *x = hn_pages_alloc((size_t)n * sizeof *x);
    if (x) hn_bench_fill(x, n, key);
    return x;
}

void hn_bench_fill(float *x, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) x[i] = 2 * hn_rand_f32(key, (uint64_t)i) - 1;
}

void hn_bench_same(hn_verdict *v, const float *a, const float *b, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        hn_invalid(v, "%s: element %lld is %.9g, the reference has %.9g", what, (long long)i, (double)a[i],
                   (double)b[i]);
        return;
    }
}

void hn_bench_near(hn_verdict *v, const float *got, const double *want, int64_t n, double tolerance, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        if (fabs((double)got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))) continue;
        hn_invalid(v, "%s: element %lld is %.9g, the reference in double precision has %.9g", what, (long long)i,
                   (double)got[i], want[i]);
        return;
    }
}

static hn_act_part one_of(int64_t width, int64_t at)
{
    return (hn_act_part){ .row = at / width, .n_row = 1, .col = at % width, .n_col = 1 };
}

void hn_bench_spoil(hn_backend *be, hn_buf *y, int64_t at)
{
    const float spoilt = NAN;
    be->op->write(be, y, (size_t)at * sizeof spoilt, &spoilt, sizeof spoilt);
}

void hn_bench_spoil_act(hn_backend *be, hn_act *act, int64_t width, int64_t at)
{
    const float spoilt = NAN;
    const hn_act_part part = one_of(width, at);
    be->op->act_write(be, act, &spoilt, &part);
}

float hn_bench_look(hn_backend *be, hn_buf *y, int64_t at)
{
    float x;
    be->op->read(be, &x, y, (size_t)at * sizeof x, sizeof x);
    return x;
}

float hn_bench_look_act(hn_backend *be, hn_act *act, int64_t width, int64_t at)
{
    float x;
    const hn_act_part part = one_of(width, at);
    be->op->act_read(be, &x, act, &part);
    return x;
}

void hn_bench_wipe(hn_backend *be, hn_buf *y, float *host, int64_t n)
{
    for (int64_t i = 0; i < n; i++) host[i] = NAN;
    be->op->write(be, y, 0, host, (size_t)n * sizeof *host);
}

void hn_bench_wipe_act(hn_backend *be, hn_act *act, float *host, int64_t width, int64_t n_row)
{
    for (int64_t i = 0; i < n_row * width; i++) host[i] = NAN;
    be->op->act_write(be, act, host, &(hn_act_part){ .n_row = n_row, .n_col = width });
}

uint64_t hn_bench_hash(hn_backend *be, hn_buf *y, float *host, const hn_bench_place *p)
{
    be->op->read(be, host, y, 0, (size_t)p->n * sizeof *host);
    return hn_bits_hash(host, p->n) + (uint64_t)p->n_missed;
}

uint64_t hn_bench_hash_act(hn_backend *be, hn_act *act, float *host, int64_t width, const hn_bench_place *p)
{
    hn_bench_get(be, host, act, 0, p->n / width, width);
    return hn_bits_hash(host, p->n) + (uint64_t)p->n_missed;
}

/* ---- other numbers between stretches ---------------------------------------------------------------------- */

static uint64_t next_number(hn_bench_turned *t)
{
    if (!t->key) t->key = hn_rand64(hn_clock_ns(), 0) | 1;
    return hn_rand64(t->key, t->n_drawn++);
}

int64_t hn_bench_draw(hn_bench_turned *t, int64_t below) { return (int64_t)(next_number(t) % (uint64_t)below); }

void hn_bench_turn(hn_bench_turned *t, float *x, int64_t n_row, int64_t n)
{
    enum { EDGE = 8, ROWS_BEGIN = 0, ROWS_END, ANYWHERE, ALL_BEGINS, ALL_ENDS, KINDS };
    _Static_assert((int)KINDS == (int)HN_TURN_KINDS, "bench_rooms.h");
    if (!t->n_times) t->n_times = 1 + hn_bench_draw(t, KINDS);
    const int kind = (int)(t->n_times++ % KINDS);
    const int64_t edge = n < EDGE ? n : EDGE;
    for (int i = 0; i < HN_TURNED; i++) {
        int64_t row = kind == ALL_BEGINS ? 0 : kind == ALL_ENDS ? n_row - 1 : hn_bench_draw(t, n_row);
        int64_t at = hn_bench_draw(t, kind == ANYWHERE ? n : edge);
        if (kind == ROWS_END || kind == ALL_ENDS) at = n - 1 - at;
        x[row * n + at] = 2 * hn_rand_f32(next_number(t), 0) - 1;
        t->row[i] = row;
    }
}

static int64_t turn_one(hn_bench_turned *t, float *x, int64_t n)
{
    int64_t at = hn_bench_draw(t, n);
    x[at] = 2 * hn_rand_f32(next_number(t), 0) - 1;
    return at;
}

void hn_bench_turn_act(hn_bench_turned *t, hn_backend *be, hn_act *act, float *x, int64_t n_row, int64_t n)
{
    int64_t at = turn_one(t, x, n_row * n);
    const hn_act_part part = one_of(n, at);
    be->op->act_write(be, act, x + at, &part);
}

void hn_bench_turn_buf(hn_bench_turned *t, hn_backend *be, hn_buf *buf, float *x, int64_t n)
{
    int64_t at = turn_one(t, x, n);
    be->op->write(be, buf, (size_t)at * sizeof *x, x + at, sizeof *x);
}

void hn_bench_proved(hn_verdict *v)
{
    if (v->state == HN_UNCHECKED) v->state = HN_VALID;
}
