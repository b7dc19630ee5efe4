/* tensor.*: products, rows and attention of f32 at square sizes, as earlier engines
 * measured them. What hone's engine runs is measured through its backend; naive loops
 * and a softmax of its own the engine does not have: they are plain C here, and the
 * list says so. Every output is compared before the clock runs. */
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 1024, NAIVE_SIDE = 512, ROW = 1024, HEADS = 16, HEAD = 64, CHECK = 8 };
enum { MM_X_KEY = 2, Q_KEY = 7 }; /* of the streams that x and q are from; k and v: of the next ones */

/* ---- products ------------------------------------------------------------------------------- */

typedef struct mm_job {
    hn_bench_be b;
    int64_t n; /* W [n, n], x [n, n], y [n, n]: y[c·n + r] = Σ W[r][k] x[c][k] */
    float *w, *x, *y;
    hn_weight weight;
    hn_act *act;
    hn_buf *be_y;
    bool naive;
    hn_bench_place place; /* in y */
    hn_bench_turned turned;
} mm_job;

/* Three loops and one chain of sums: what a compiler makes of it without leave to reorder. */
static void naive_matmul(float *y, const float *w, const float *x, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < n; r++) {
            float s = 0;
            for (int64_t k = 0; k < n; k++) s += w[r * n + k] * x[c * n + k];
            y[c * n + r] = s;
        }
}

static void call_matmul(void *arg, int64_t calls)
{
    mm_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        if (j->naive) {
            j->y[at] = NAN;
            naive_matmul(j->y, j->w, j->x, j->n);
        } else {
            if (i) hn_bench_turn_act(&j->turned, j->b.be, j->act, j->x, j->n, j->n);
            hn_bench_spoil(j->b.be, j->be_y, at);
            j->b.be->op->matmul(j->b.be, j->act, &(hn_product){ .w = &j->weight, .y = j->be_y }, 1);
        }
        hn_bench_sink(j->naive ? (const void *)j->y : j->be_y);
        j->place.n_missed += isnan(j->naive ? j->y[at] : hn_bench_look(j->b.be, j->be_y, at));
    }
}

static void wipe_matmul(void *arg)
{
    mm_job *j = arg;
    j->turned.called = false;
    if (!j->naive) hn_bench_wipe(j->b.be, j->be_y, j->y, j->n * j->n);
    for (int64_t i = 0; i < j->n * j->n; i++) j->y[i] = NAN;
}

static uint64_t hash_matmul(void *arg)
{
    mm_job *j = arg;
    if (!j->naive) return hn_bench_hash(j->b.be, j->be_y, j->y, &j->place);
    return hn_bits_hash(j->y, j->place.n) + (uint64_t)j->place.n_missed;
}

static float naive_one(const mm_job *j, int64_t c, int64_t r)
{
    float s = 0;
    for (int64_t k = 0; k < j->n; k++) s += j->w[r * j->n + k] * j->x[c * j->n + k];
    return s;
}

/* n_col columns of be's from column c on, in memory of their own: the bits that y has? */
static bool same_columns(const mm_job *j, hn_backend *be, int64_t c, int64_t n_col)
{
    const size_t bytes = (size_t)(j->n * n_col) * sizeof(float);
    float *want = malloc(bytes);
    hn_act *act = hn_bench_act(be, j->x + c * j->n, j->n, n_col);
    hn_buf *y = hn_bench_rows(be, NULL, j->n * n_col);
    bool same = want && act && y;
    if (same) {
        be->op->matmul(be, act, &(hn_product){ .w = &j->weight, .y = y }, 1);
        be->op->read(be, want, y, 0, bytes);
        same = memcmp(want, j->y + c * j->n, bytes) == 0;
    }
    be->op->act_release(be, act);
    be->op->release(be, y);
    free(want);
    return same;
}

/* What a stretch left: of it the columns that were turned, by the scalar level; of the last one all of them besides, a
 * few at a time. */
static void look_matmul(mm_job *j, bool all)
{
    enum { FEW = 37 };
    if (!j->naive) j->b.be->op->read(j->b.be, j->y, j->be_y, 0, (size_t)(j->n * j->n) * sizeof(float));
    for (int i = 0; i < HN_TURNED; i++) {
        const int64_t c = j->turned.row[i], r = hn_bench_draw(&j->turned, j->n);
        bool right = j->naive ? j->y[c * j->n + r] == naive_one(j, c, r) : same_columns(j, j->b.oracle, c, 1);
        j->place.n_missed += !right;
    }
    for (int64_t c = 0; c < j->n && all && !j->naive; c += FEW)
        j->place.n_missed += !same_columns(j, j->b.be, c, j->n - c < FEW ? j->n - c : FEW);
}

/* Other numbers before each stretch; behind the last one as they were at first. */
static void turn_matmul(void *arg, int64_t calls)
{
    mm_job *j = arg;
    if (j->turned.called) look_matmul(j, calls == 0);
    if (calls) hn_bench_turn(&j->turned, j->x, j->n, j->n);
    else hn_bench_fill(j->x, j->n * j->n, MM_X_KEY);
    if (!j->naive) hn_bench_put(j->b.be, j->act, j->x, j->n, j->n);
    wipe_matmul(j);
    j->turned.called = calls > 0;
    if (!calls) call_matmul(j, 1);
}
static const hn_bench_left left_matmul = { .wipe = wipe_matmul, .hash = hash_matmul, .turn = turn_matmul };

static void close_matmul(mm_job *j)
{
    size_t bytes = (size_t)(j->n * j->n) * sizeof(float);
    hn_pages_free(j->w, bytes);
    hn_pages_free(j->x, bytes);
    hn_pages_free(j->y, bytes);
    hn_bench_be_close(&j->b);
}

static hone_status open_matmul(mm_job *j, hn_bench_run *r, int64_t n, bool naive, int32_t threads, hone_error *err)
{
    *j = (mm_job){ .n = n, .naive = naive, .place = hn_bench_places(n * n) };
    hone_status st = hn_bench_be_open(&j->b, r, NULL, threads, &(hn_backend_params){ .max_n_in = n }, err);
    if (st != HONE_OK) return st;
    j->w = hn_bench_floats(n * n, 1);
    j->x = hn_bench_floats(n * n, MM_X_KEY);
    j->y = hn_pages_alloc((size_t)(n * n) * sizeof(float));
    if (!j->w || !j->x || !j->y || !(j->act = hn_bench_act(j->b.be, j->x, n, n)) ||
        !(j->be_y = hn_bench_rows(j->b.be, NULL, n * n)))
        return HN_FAIL(err, HONE_E_NOMEM, "matrices of %lld", (long long)n);
    j->weight =
        (hn_weight){ .data = j->w, .type = HN_F32, .n_in = n, .n_out = n, .row_bytes = (size_t)n * sizeof(float) };
    return HONE_OK;
}

/* Columns from the beginning, the middle and the end against sums in double precision; those of the
 * engine against the scalar level besides, bit by bit. */
static hone_status check_matmul(mm_job *j, hn_bench_result *res, hone_error *err)
{
    const int64_t n = j->n, cols[] = { 0, n / 2, n - 1 };
    double *want = malloc((size_t)n * sizeof *want);
    float *exact = malloc((size_t)n * sizeof *exact);
    hn_backend *o = j->b.oracle;
    hn_act *act = hn_bench_act(o, NULL, n, 1);
    hn_buf *y = hn_bench_rows(o, NULL, n);
    hone_status st = HONE_OK;
    if (!want || !exact || !act || !y) st = HN_FAIL(err, HONE_E_NOMEM, "references");
    call_matmul(j, 1);
    if (!j->naive) j->b.be->op->read(j->b.be, j->y, j->be_y, 0, (size_t)(n * n) * sizeof(float));
    for (int i = 0; i < 3 && st == HONE_OK; i++) {
        for (int64_t r = 0; r < n; r++) {
            double s = 0;
            for (int64_t k = 0; k < n; k++) s += (double)j->w[r * n + k] * (double)j->x[cols[i] * n + k];
            want[r] = s;
        }
        hn_bench_near(&res->verdict, j->y + cols[i] * n, want, n, 1e-4, "product");
        if (j->naive) continue;
        hn_bench_put(o, act, j->x + cols[i] * n, n, 1);
        o->op->matmul(o, act, &(hn_product){ .w = &j->weight, .y = y }, 1);
        o->op->read(o, exact, y, 0, (size_t)n * sizeof(float));
        hn_bench_same(&res->verdict, j->y + cols[i] * n, exact, n, "product");
    }
    hn_bench_proved(&res->verdict);
    free(want);
    free(exact);
    return st;
}

/* GFLOP/s of the naive loops, quickly. */
static hone_status naive_rate(double *out, hn_bench_run *r, hone_error *err)
{
    mm_job j;
    *out = NAN;
    hone_status st = open_matmul(&j, r, NAIVE_SIDE, true, 1, err);
    for (int i = 0; st == HONE_OK && i < (r->set.quick ? 1 : 3); i++) {
        uint64_t t = hn_clock_ns();
        call_matmul(&j, 1);
        double rate = 2.0 * NAIVE_SIDE * NAIVE_SIDE * NAIVE_SIDE / (double)(hn_clock_ns() - t);
        *out = fmax(*out, rate); /* fmax ignores a NaN */
    }
    close_matmul(&j);
    return st;
}

typedef struct mm_ratio {
    mm_job *j;
    double naive;
} mm_ratio;

static void call_ratio(void *arg, int64_t calls) { call_matmul(((mm_ratio *)arg)->j, calls); }
static void wipe_ratio(void *arg) { wipe_matmul(((mm_ratio *)arg)->j); }
static uint64_t hash_ratio(void *arg) { return hash_matmul(((mm_ratio *)arg)->j); }
static void turn_ratio(void *arg, int64_t calls) { turn_matmul(((mm_ratio *)arg)->j, calls); }
static const hn_bench_left left_ratio = { .wipe = wipe_ratio, .hash = hash_ratio, .turn = turn_ratio };

static void after_ratio(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    mm_ratio *m = arg;
    double ops = 2.0 * (double)m->j->n * (double)m->j->n * (double)m->j->n;
    res->extra = json_pack("{s:o, s:o}", "naive_gflops", hn_lab_num(m->naive), "times_naive",
                           hn_lab_num(ops / (hn_bench_median(t->s, t->n) * 1e9) / m->naive));
}

static hone_status run_matmul(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    mm_job j;
    bool naive = strcmp(e->id, "tensor.matmul.naive") == 0, parallel = strcmp(e->id, "tensor.matmul.parallel") == 0;
    double base = NAN;
    hone_status st = naive ? HONE_OK : naive_rate(&base, r, err);
    if (st != HONE_OK) return st;
    double ops = 2.0 * NAIVE_SIDE * NAIVE_SIDE * NAIVE_SIDE;
    hn_bench_result res = { .threads = parallel ? r->set.threads : 1,
                            .ops = ops,
                            .left = &left_ratio,
                            .config = json_pack("{s:s}", "shape", "512x512x512") };
    st = open_matmul(&j, r, NAIVE_SIDE, naive, res.threads, err);
    if (st == HONE_OK) st = check_matmul(&j, &res, err);
    mm_ratio m = { &j, base };
    if (st == HONE_OK)
        st = hn_bench_loop(r, e, &res, call_ratio, &m, ops * 1e-9, true, naive ? NULL : after_ratio, err);
    else hn_bench_result_free(&res);
    close_matmul(&j);
    return st;
}

static hone_status run_square(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    mm_job j;
    hn_bench_result res = { .ops = 2.0 * SIDE * SIDE * SIDE,
                            .left = &left_matmul,
                            .config = json_pack("{s:s}", "shape", "1024x1024x1024") };
    hone_status st = open_matmul(&j, r, SIDE, false, 0, err);
    if (st == HONE_OK) st = check_matmul(&j, &res, err);
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_matmul, &j, 1e6, false, NULL, err);
    else hn_bench_result_free(&res);
    close_matmul(&j);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

typedef enum row_kind { ROW_ADD = 0, ROW_SILU, ROW_EXP, ROW_SOFTMAX, ROW_LAYERNORM, ROW_RMSNORM, ROW_KINDS } row_kind;

enum { X_KEY = 3 }; /* of the stream that x is from */

typedef struct row_job {
    hn_bench_be b;
    row_kind kind;
    const hn_kernels *k;
    int64_t n, n_row;
    float *x, *x2, *w, *bias, *y;
    hn_bench_place place; /* in y; not of ROW_ADD, which goes on from what it left: */
    int64_t n_added;      /* calls since y was 0 */
    hn_bench_turned turned;
} row_job;

static float sum_of(const float *x, int64_t n)
{
    enum { LANES = 16 };
    float lane[LANES] = { 0 }, s = 0;
    for (int64_t i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES && i + l < n; l++) lane[l] += x[i + l];
    for (int l = 0; l < LANES; l++) s += lane[l];
    return s;
}

static void softmax_row(const hn_kernels *k, float *y, const float *x, int64_t n)
{
    float max = x[0];
    for (int64_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - max;
    k->exp(y, y, n);
    float inv = 1 / sum_of(y, n);
    for (int64_t i = 0; i < n; i++) y[i] *= inv;
}

static void do_row(const row_job *j, const hn_kernels *k, float *y, int64_t row)
{
    const float *x = j->x + row * j->n;
    switch (j->kind) {
    case ROW_ADD: hn_add(y, x, j->n); break;
    case ROW_SILU: k->silu_mul(y, x, j->x2, j->n); break;
    case ROW_EXP: k->exp(y, x, j->n); break;
    case ROW_SOFTMAX: softmax_row(k, y, x, j->n); break;
    case ROW_LAYERNORM: k->layer_norm(y, x, j->w, j->bias, j->n, 1e-5f); break;
    default: k->rms_norm(y, x, j->w, j->n, 1e-5f); break;
    }
}

enum { ROWS_PER_CHUNK = 8 };
static void row_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const row_job *j = arg;
    for (int64_t i = chunk * ROWS_PER_CHUNK; i < (chunk + 1) * ROWS_PER_CHUNK && i < j->n_row; i++)
        do_row(j, j->k, j->y + i * j->n, i);
}

static void call_rows(void *arg, int64_t calls)
{
    row_job *j = arg;
    bool adds = j->kind == ROW_ADD;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        if (!adds) j->y[at] = NAN;
        if (j->n_row == 1) do_row(j, j->k, j->y, 0);
        else hn_pool_run(j->b.pool, row_chunk, j, (j->n_row + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK);
        hn_bench_sink(j->y);
        j->place.n_missed += !adds && isnan(j->y[at]);
    }
    j->n_added += calls;
}

static void wipe_rows(void *arg)
{
    row_job *j = arg;
    j->n_added = 0;
    j->turned.called = false;
    for (int64_t i = 0; i < j->place.n; i++) j->y[i] = j->kind == ROW_ADD ? 0 : NAN;
}

/* Of sums: what one call leaves in zeros, if as many calls as there were left their sums; they are added up here. */
static uint64_t hash_rows(void *arg)
{
    const row_job *j = arg;
    uint64_t h = hn_bits_hash(j->y, j->place.n);
    if (j->kind != ROW_ADD) return h + (uint64_t)j->place.n_missed;
    float *sum = calloc((size_t)j->n, sizeof *sum);
    for (int64_t k = 0; k < j->n_added && sum; k++) {
        for (int64_t i = 0; i < j->n; i++) sum[i] += j->x[i];
        hn_bench_sink(sum);
    }
    if (sum && h == hn_bits_hash(sum, j->n)) h = hn_bits_hash(j->x, j->n);
    free(sum);
    return h;
}

/* Of row i of what a stretch left: the bits of the scalar level? */
static bool same_row(const row_job *j, float *exact, int64_t row)
{
    do_row(j, j->b.scalar, exact, row);
    return memcmp(exact, j->y + row * j->n, (size_t)j->n * sizeof *exact) == 0;
}

/* Other numbers before each stretch, so that an output which is remembered is not the one; the rows that have them, and
 * some from all over, are looked at, and behind the last stretch each. Then they are as they were at first. */
static void turn_rows(void *arg, int64_t calls)
{
    row_job *j = arg;
    float *exact = j->kind == ROW_ADD ? NULL : calloc((size_t)j->n, sizeof *exact);
    if (!exact) return; /* sums go on from what they left */
    for (int i = 0; i < CHECK && j->turned.called; i++) {
        j->place.n_missed += !same_row(j, exact, i * (j->n_row - 1) / (CHECK - 1));
        j->place.n_missed += !same_row(j, exact, j->turned.row[i % HN_TURNED]);
    }
    for (int64_t row = 0; row < j->n_row && j->turned.called && !calls; row++)
        j->place.n_missed += !same_row(j, exact, row);
    free(exact);
    if (calls) hn_bench_turn(&j->turned, j->x, j->n_row, j->n);
    else hn_bench_fill(j->x, j->n * j->n_row, X_KEY);
    wipe_rows(j);
    j->turned.called = calls > 0;
    if (!calls) call_rows(j, 1);
}
static const hn_bench_left left_rows = { .wipe = wipe_rows, .hash = hash_rows, .turn = turn_rows };

/* One row in double precision. */
static void row_reference(const row_job *j, double *want, int64_t row)
{
    const float *x = j->x + row * j->n;
    double mean = 0, var = 0, sq = 0, sum = 0, n = (double)j->n;
    for (int64_t i = 0; i < j->n; i++) {
        mean += (double)x[i] / n;
        sq += (double)x[i] * (double)x[i] / n;
        sum += exp((double)x[i]);
    }
    for (int64_t i = 0; i < j->n; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
    for (int64_t i = 0; i < j->n; i++) {
        double v = (double)x[i], w = j->w ? (double)j->w[i] : 0;
        switch (j->kind) {
        case ROW_ADD: want[i] = v; break; /* to zeros */
        case ROW_SILU: want[i] = v / (1 + exp(-v)) * (double)j->x2[i]; break;
        case ROW_EXP: want[i] = exp(v); break;
        case ROW_SOFTMAX: want[i] = exp(v) / sum; break;
        case ROW_LAYERNORM: want[i] = (v - mean) / sqrt(var + 1e-5) * w + (double)j->bias[i]; break;
        default: want[i] = v / sqrt(sq + 1e-5) * w; break;
        }
    }
}

static hone_status check_rows(row_job *j, hn_verdict *v, hone_error *err)
{
    double *want = malloc((size_t)j->n * sizeof *want);
    float *exact = calloc((size_t)j->n, sizeof *exact);
    if (!want || !exact) {
        free(want);
        free(exact);
        return HN_FAIL(err, HONE_E_NOMEM, "references");
    }
    call_rows(j, 1);
    for (int i = 0; i < CHECK; i++) {
        int64_t row = i * (j->n_row - 1) / (CHECK - 1);
        row_reference(j, want, row);
        hn_bench_near(v, j->y + row * j->n, want, j->n, j->kind == ROW_SOFTMAX ? 1e-7 : 2e-6, "row");
        if (j->kind == ROW_ADD) continue;
        do_row(j, j->b.scalar, exact, row);
        hn_bench_same(v, j->y + row * j->n, exact, j->n, "row against the scalar level");
    }
    hn_bench_proved(v);
    free(want);
    free(exact);
    return HONE_OK;
}

static void close_rows(row_job *j)
{
    size_t all = (size_t)(j->n * j->n_row) * sizeof(float), one = (size_t)j->n * sizeof(float);
    hn_pages_free(j->x, all);
    hn_pages_free(j->y, all);
    hn_pages_free(j->x2, one);
    hn_pages_free(j->w, one);
    hn_pages_free(j->bias, one);
    hn_bench_be_close(&j->b);
}

static hone_status open_rows(row_job *j, hn_bench_run *r, row_kind kind, int64_t n, int64_t n_row, hone_error *err)
{
    *j = (row_job){ .kind = kind, .n = n, .n_row = n_row, .place = hn_bench_places(n * n_row) };
    hone_status st = hn_bench_be_open(&j->b, r, NULL, n_row > 1 ? 0 : 1, &(hn_backend_params){ .max_n_in = n }, err);
    if (st != HONE_OK) return st;
    j->k = j->b.k;
    j->x = hn_bench_floats(n * n_row, X_KEY);
    j->x2 = hn_bench_floats(n, 4);
    j->w = hn_bench_floats(n, 5);
    j->bias = hn_bench_floats(n, 6);
    j->y = hn_pages_alloc((size_t)(n * n_row) * sizeof(float));
    return j->x && j->x2 && j->w && j->bias && j->y ? HONE_OK
                                                    : HN_FAIL(err, HONE_E_NOMEM, "rows of %lld", (long long)n);
}

static hone_status measure_rows(hn_bench_run *r, const hn_bench_entry *e, row_kind kind, int64_t n_row,
                                const char *variant, hone_error *err)
{
    row_job j;
    hn_bench_result res = { .variant = variant,
                            .threads = n_row > 1 ? r->set.threads : 1,
                            .left = &left_rows,
                            .config = json_pack("{s:I, s:I}", "n", (json_int_t)ROW, "rows", (json_int_t)n_row) };
    hone_status st = open_rows(&j, r, kind, ROW, n_row, err);
    if (st == HONE_OK) st = check_rows(&j, &res.verdict, err);
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_rows, &j, 1e6, false, NULL, err);
    else hn_bench_result_free(&res);
    close_rows(&j);
    return st;
}

static hone_status run_elementwise(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const names[] = { "add", "silu*up", "exp" };
    hone_status st = HONE_OK;
    for (int k = ROW_ADD; k <= ROW_EXP && st == HONE_OK; k++) st = measure_rows(r, e, (row_kind)k, 1, names[k], err);
    return st;
}

static hone_status run_rows(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    row_kind kind = strstr(e->id, "softmax") ? ROW_SOFTMAX : strstr(e->id, "layernorm") ? ROW_LAYERNORM : ROW_RMSNORM;
    return measure_rows(r, e, kind, SIDE, NULL, err);
}

/* ---- attention: 16 heads of 64, 1024 tokens, causal --------------------------------------------------- */

typedef struct attn_job {
    hn_bench_be b;
    hn_kv kv;
    char *cache;
    size_t cache_bytes;
    float *q, *k, *v, *out; /* out: what calls left */
    hn_row *rows;
    hn_buf *be_q;
    hn_act *act;
    hn_bench_place place;                       /* in what they leave */
    hn_bench_turned turned, turned_k, turned_v; /* rows of a head each */
} attn_job;

static const float attn_scale = 0.125f;

static void call_attn(void *arg, int64_t calls)
{
    attn_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        if (i) hn_bench_turn_buf(&j->turned, j->b.be, j->be_q, j->q, (int64_t)SIDE * HEADS * HEAD);
        hn_bench_spoil_act(j->b.be, j->act, HEADS * HEAD, at);
        hn_bench_attention(j->b.be, j->act, &(hn_attention){ .q = j->be_q, .n_head = HEADS, .scale = attn_scale },
                           &j->kv, j->rows, SIDE);
        hn_bench_sink(j->act);
        j->place.n_missed += isnan(hn_bench_look_act(j->b.be, j->act, HEADS * HEAD, at));
    }
}

static void wipe_attn(void *arg)
{
    attn_job *j = arg;
    j->turned.called = false;
    hn_bench_wipe_act(j->b.be, j->act, j->out, HEADS * HEAD, SIDE);
}

static uint64_t hash_attn(void *arg)
{
    attn_job *j = arg;
    return hn_bench_hash_act(j->b.be, j->act, j->out, HEADS * HEAD, &j->place);
}
/* Token t, head h by the textbook, in double precision, over what the cache holds (f32: exactly k and v). */
static void attn_reference(const attn_job *j, double *want, int64_t t, int64_t h)
{
    double p[SIDE], max = -INFINITY, sum = 0;
    const float *q = j->q + (t * HEADS + h) * HEAD;
    for (int64_t i = 0; i <= t; i++) {
        p[i] = 0;
        for (int d = 0; d < HEAD; d++) p[i] += (double)q[d] * (double)j->k[(i * HEADS + h) * HEAD + d];
        p[i] *= (double)attn_scale;
        max = fmax(max, p[i]);
    }
    for (int64_t i = 0; i <= t; i++) sum += p[i] = exp(p[i] - max);
    for (int d = 0; d < HEAD; d++) {
        want[d] = 0;
        for (int64_t i = 0; i <= t; i++) want[d] += p[i] / sum * (double)j->v[(i * HEADS + h) * HEAD + d];
    }
}

/* Keys and values to the backend's cache. */
static void store_attn(attn_job *j)
{
    for (int64_t t = 0; t < SIDE; t++)
        for (int64_t h = 0; h < HEADS; h++) {
            char *at = j->cache + hn_kv_at(&j->kv, (uint32_t)(t / HN_PAGE), h);
            j->b.scalar->store_k[HN_CACHE_F32](at, j->k + (t * HEADS + h) * HEAD, HEAD, t % HN_PAGE);
            j->b.scalar->store_v[HN_CACHE_F32](at + j->kv.v_at, j->v + (t * HEADS + h) * HEAD, HEAD, t % HN_PAGE);
        }
    j->b.be->op->write(j->b.be, j->kv.mem, 0, j->cache, j->cache_bytes);
}

static const double attn_tolerance = 1e-5;

/* Of what a stretch left, in out: heads of tokens whose query, key or value was turned, by the textbook. */
static void look_attn(attn_job *j, const hn_bench_turned *turned)
{
    for (int i = 0; i < HN_TURNED; i++) {
        double want[HEAD];
        hn_verdict v = { 0 };
        const int64_t row = turned->row[i];
        attn_reference(j, want, row / HEADS, row % HEADS);
        hn_bench_near(&v, j->out + row * HEAD, want, HEAD, attn_tolerance, "attention");
        j->place.n_missed += v.state == HN_INVALID;
    }
}

/* All of it, a few tokens at a time, from and to memory of their own: the same bits? */
static bool same_attn(const attn_job *j)
{
    enum { FEW = 37, LONG = HEADS * HEAD };
    hn_backend *be = j->b.be;
    float *want = malloc(sizeof *want * FEW * LONG);
    hn_act *act = hn_bench_act(be, NULL, LONG, FEW);
    hn_buf *q = hn_bench_rows(be, NULL, FEW * LONG);
    bool same = want && act && q;
    for (int64_t t = 0; t < SIDE && same; t += FEW) {
        const int64_t n = SIDE - t < FEW ? SIDE - t : FEW;
        be->op->write(be, q, 0, j->q + t * LONG, (size_t)(n * LONG) * sizeof *want);
        hn_bench_attention(be, act, &(hn_attention){ .q = q, .n_head = HEADS, .scale = attn_scale }, &j->kv,
                           j->rows + t, (int32_t)n);
        hn_bench_get(be, want, act, 0, n, LONG);
        same = memcmp(want, j->out + t * LONG, (size_t)(n * LONG) * sizeof *want) == 0;
    }
    be->op->act_release(be, act);
    be->op->release(be, q);
    free(want);
    return same;
}

/* Other queries, keys and values before each stretch; behind the last one as they were at first. */
static void turn_attn(void *arg, int64_t calls)
{
    attn_job *j = arg;
    const int64_t n_row = (int64_t)SIDE * HEADS, n = n_row * HEAD;
    if (j->turned.called) {
        hn_bench_get(j->b.be, j->out, j->act, 0, SIDE, HEADS * HEAD);
        look_attn(j, &j->turned);
        look_attn(j, &j->turned_k);
        look_attn(j, &j->turned_v);
        if (!calls) j->place.n_missed += !same_attn(j);
    }
    float *const x[] = { j->q, j->k, j->v };
    hn_bench_turned *const t[] = { &j->turned, &j->turned_k, &j->turned_v };
    for (uint64_t i = 0; i < 3; i++) {
        if (calls) hn_bench_turn(t[i], x[i], n_row, HEAD);
        else hn_bench_fill(x[i], n, Q_KEY + i);
    }
    j->b.be->op->write(j->b.be, j->be_q, 0, j->q, (size_t)n * sizeof(float));
    store_attn(j);
    wipe_attn(j);
    j->turned.called = calls > 0;
    if (!calls) call_attn(j, 1);
}
static const hn_bench_left left_attn = { .wipe = wipe_attn, .hash = hash_attn, .turn = turn_attn };

static hone_status open_attn(attn_job *j, hn_bench_run *r, hone_error *err)
{
    int64_t width = HEADS * HEAD;
    *j = (attn_job){ .place = hn_bench_places(SIDE * width) };
    hone_status st = hn_bench_be_open(
        &j->b, r, NULL, 0,
        &(hn_backend_params){ .max_n_in = width, .n_head = HEADS, .n_head_kv = HEADS, .d = HEAD, .n_ctx = SIDE }, err);
    if (st != HONE_OK) return st;
    size_t head = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(HN_CACHE_F32, HEAD), half = head * HEADS;
    j->cache_bytes = 2 * half * (SIDE / HN_PAGE);
    j->cache = hn_pages_alloc(j->cache_bytes);
    j->q = hn_bench_floats(SIDE * width, Q_KEY);
    j->k = hn_bench_floats(SIDE * width, Q_KEY + 1);
    j->v = hn_bench_floats(SIDE * width, Q_KEY + 2);
    j->out = hn_bench_floats(SIDE * width, 10);
    j->rows = calloc(SIDE, sizeof *j->rows);
    j->kv.mem = j->b.be->op->alloc(j->b.be, j->cache_bytes, HN_MEM_CACHE);
    j->act = hn_bench_act(j->b.be, NULL, width, SIDE);
    if (!j->cache || !j->q || !j->k || !j->v || !j->out || !j->rows || !j->kv.mem || !j->act ||
        !(j->be_q = hn_bench_rows(j->b.be, j->q, SIDE * width)))
        return HN_FAIL(err, HONE_E_NOMEM, "attention");
    j->kv = (hn_kv){ .mem = j->kv.mem,
                     .v_at = half,
                     .page_bytes = 2 * half,
                     .head_bytes = head,
                     .n_head_kv = HEADS,
                     .d = HEAD,
                     .type = HN_CACHE_F32 };
    for (int64_t t = 0; t < SIDE; t++) j->rows[t].pos = t;
    store_attn(j);
    return HONE_OK;
}

static void check_attn(attn_job *j, hn_verdict *v)
{
    static const int64_t at[] = { 0, 1, 511, 512, SIDE - 1 };
    double want[HEAD];
    float got[HEADS * HEAD];
    call_attn(j, 1);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        hn_bench_get(j->b.be, got, j->act, at[i], 1, HEADS * HEAD);
        for (int64_t h = 0; h < HEADS; h += 5) {
            attn_reference(j, want, at[i], h);
            hn_bench_near(v, got + h * HEAD, want, HEAD, attn_tolerance, "attention");
        }
    }
    hn_bench_proved(v);
}

static hone_status run_attn(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    attn_job j;
    hn_bench_result res = { .ops = 4.0 * HEADS * HEAD * (SIDE * (SIDE + 1.0) / 2),
                            .left = &left_attn,
                            .config = json_pack("{s:s}", "shape", "1024 tokens, 16 heads of 64") };
    hone_status st = open_attn(&j, r, err);
    if (st == HONE_OK) check_attn(&j, &res.verdict);
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_attn, &j, 1e6, false, NULL, err);
    else hn_bench_result_free(&res);
    hn_pages_free(j.cache, j.cache_bytes);
    for (float **p = (float *[]){ j.q, j.k, j.v, j.out, NULL }; *p; p++)
        hn_pages_free(*p, sizeof(float) * SIDE * HEADS * HEAD);
    free(j.rows);
    hn_bench_be_close(&j.b);
    return st;
}

#define TENSOR(id_, what_, unit_, target_, higher_, suites_, cost_, run_)                             \
    {                                                                                                 \
        .id = id_, .what = what_, .unit = unit_, .target = target_, .method = 'K', .higher = higher_, \
        .suites = suites_, .cost = cost_, .run = run_                                                 \
    }
const hn_bench_entry hn_bench_tensor[] = {
    TENSOR("tensor.matmul.naive",
           "f32 512x512x512: three plain loops, one thread; not the engine's, a base to compare with", "GFLOP/s", NULL,
           true, "quick full", 4, run_matmul),
    TENSOR("tensor.matmul.simd", "the same by the level's kernel, one thread; and how many times the naive loops",
           "GFLOP/s", NULL, true, "quick full ci", 2, run_matmul),
    TENSOR("tensor.matmul.parallel", "the same on all threads", "GFLOP/s", NULL, true, "quick full ci", 2, run_matmul),
    TENSOR("tensor.elementwise", "1024 elements, one thread: add, silu times up, exp", "us", "< 1 us", false,
           "quick full ci", 1, run_elementwise),
    TENSOR("tensor.1024.matmul", "f32 1024x1024x1024 by the level's kernel, all threads", "us", NULL, false,
           "quick full ci", 1, run_square),
    TENSOR("tensor.1024.softmax",
           "1024 rows of 1024, all threads: plain C around the level's exp (the engine's is part of attention)", "us",
           NULL, false, "full", 1, run_rows),
    TENSOR("tensor.1024.layernorm", "1024 rows of 1024, all threads, by the level's kernel (RWKV's)", "us", NULL, false,
           "full", 1, run_rows),
    TENSOR("tensor.1024.rmsnorm", "1024 rows of 1024, all threads, by the level's kernel", "us", NULL, false, "full ci",
           1, run_rows),
    TENSOR("tensor.1024.attention", "causal, 1024 tokens, 16 heads of 64, f32 cache, all threads", "us", NULL, false,
           "full ci", 1, run_attn),
    { 0 },
};
