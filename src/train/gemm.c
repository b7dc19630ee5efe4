/* gemm: the products of training; the rule is in train.h. A chunk of the pool is a rectangle of C.
 * It goes through k in blocks of 256: the block of B is decoded and laid out in strips of 64 columns,
 * which stay in the second cache, then every six rows of A pass over them in tiles that the level's
 * kernels hold in registers. Owns the order and the scratch; refuses to know instructions. */
#include "train/train.h"

#include <stdlib.h>

enum { MAX_M = 516, STRIPS = 4, TILES = MAX_M / HN_GEMM_ROWS * STRIPS, WIDE = 8 * HN_GEMM_ROWS, PAIRS = HN_GEMM_K / 2 };

/* Scratch of one thread. */
typedef struct work {
    float b[STRIPS * HN_GEMM_K]
           [HN_GEMM_COLS]; /* the block of B: strips of 256 rows, or of 128 of pairs, twice as many */
    float sum[TILES][HN_GEMM_ROWS][HN_GEMM_COLS]; /* of the blocks before */
    float a[HN_GEMM_K * WIDE];
    float row[16][HN_GEMM_K]; /* decoded */
} work;

struct hn_gemm_ctx {
    hn_pool *pool;
    const hn_kernels *k;
    int32_t n_thread;
    work *w;           /* [n_thread] */
    uint32_t *rounded; /* ROUNDED rows of a block of A, in pairs of bf16 */
};
/* Rows of A that are rounded once for all columns; more than fit are rounded for each chunk of them. */
enum { ROUNDED = 516 * 20 };

hone_status hn_gemm_new(hn_gemm_ctx **out, hn_pool *pool, const hn_kernels *k, hone_error *err)
{
    *out = NULL;
    hn_gemm_ctx *g = calloc(1, sizeof *g);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "products");
    *g = (hn_gemm_ctx){ .pool = pool, .k = k, .n_thread = hn_pool_threads(pool) };
    bool pairs = k->gemm->pairs;
    if (!(g->w = hn_pages_alloc((size_t)g->n_thread * sizeof *g->w)) ||
        (pairs && !(g->rounded = hn_pages_alloc(ROUNDED * PAIRS * sizeof *g->rounded)))) {
        hn_gemm_free(g);
        return HN_FAIL(err, HONE_E_NOMEM, "products: scratch of %d threads", hn_pool_threads(pool));
    }
    *out = g;
    return HONE_OK;
}

void hn_gemm_free(hn_gemm_ctx *g)
{
    if (!g) return;
    if (g->w) hn_pages_free(g->w, (size_t)g->n_thread * sizeof *g->w);
    if (g->rounded) hn_pages_free(g->rounded, ROUNDED * PAIRS * sizeof *g->rounded);
    free(g);
}

uint64_t hn_gemm_bytes(const hn_gemm_ctx *g)
{
    return (uint64_t)g->n_thread * sizeof *g->w + (g->rounded ? ROUNDED * PAIRS * sizeof *g->rounded : 0);
}

typedef struct job {
    const hn_gemm_ctx *g;
    const hn_gemm *p;
    int64_t n_m, n_n, unit;  /* chunks above each other, of whole tiles; beside each other, of whole units of columns */
    bool may_round, rounded; /* A is, first of all, rounded into g->rounded: [block of k][m][PAIRS] */
} job;

/* Where part i of n begins, of `all` cut into whole units as evenly as can be, the longer parts first: what is left
 * over at the end is small. */
static int64_t part_at(int64_t all, int64_t unit, int64_t n, int64_t i)
{
    int64_t units = (all + unit - 1) / unit, at = (units / n * i + (i < units % n ? i : units % n)) * unit;
    return at < all ? at : all;
}

static bool in_pairs(const hn_gemm_ctx *g, const hn_gemm *p) { return p->bf16 && g->k->gemm->pairs; }
static bool a_in_pairs(const job *j) { return j->p->a_rounded && in_pairs(j->g, j->p); }

/* Where column j of the block of B is. */
static float *strip(work *w, int64_t j, bool pairs)
{
    return &w->b[j / HN_GEMM_COLS * (pairs ? PAIRS : HN_GEMM_K)][j % HN_GEMM_COLS];
}

/* Columns [n0, n0 + n) of rows [k0, k0 + k) of B, a row by a row of k. */
static void strips_of_rows(const hn_gemm_ctx *g, const hn_gemm *p, work *w, int64_t n0, int64_t n, int64_t k0,
                           int64_t k)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    const hn_gemm_ops *ops = g->k->gemm;
    hn_dequantize_fn *decode = g->k->decode[p->b_type] ? g->k->decode[p->b_type] : ti->dequantize;
    bool pairs = in_pairs(g, p);
    hn_gemm_pack_fn *at_once = pairs ? ops->rows_of[p->b_type] : NULL;
    int64_t from = n0 / ti->block_elems * ti->block_elems, all = n0 + n - from;
    all = (all + ti->block_elems - 1) / ti->block_elems * ti->block_elems;
    for (int64_t i = 0; i < k; i += 2) {
        int64_t rows = k - i < 2 ? 1 : 2, lds = HN_GEMM_K, at = (pairs ? i / 2 : i) * HN_GEMM_COLS;
        const float *src = w->row[0] + (n0 - from);
        const char *b = (const char *)p->b + (size_t)(k0 + i) * p->b_row_bytes;
        if (p->b_type == HN_F32) {
            src = (const float *)b + n0;
            lds = (int64_t)(p->b_row_bytes / sizeof(float));
        } else if (!at_once)
            for (int64_t r = 0; r < rows; r++)
                decode(w->row[r], b + (size_t)r * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)from), all);
        for (int64_t j = 0; j < n; j += HN_GEMM_COLS) {
            int64_t now = n - j < HN_GEMM_COLS ? n - j : HN_GEMM_COLS;
            if (at_once)
                at_once(strip(w, j, pairs) + at, b + hn_row_bytes(ti, (uint64_t)(n0 + j)), p->b_row_bytes, rows, now);
            else ops->copy(strip(w, j, pairs) + at, HN_GEMM_COLS, src + j, lds, rows, now, p->bf16);
        }
    }
}

/* The same where B's rows are columns. */
static void strips_of_columns(const hn_gemm_ctx *g, const hn_gemm *p, work *w, int64_t n0, int64_t n, int64_t k0,
                              int64_t k)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    const hn_gemm_ops *ops = g->k->gemm;
    hn_dequantize_fn *decode = g->k->decode[p->b_type] ? g->k->decode[p->b_type] : ti->dequantize;
    bool pairs = in_pairs(g, p);
    hn_gemm_pack_fn *at_once = pairs ? ops->columns_of[p->b_type] : NULL;
    for (int64_t j = 0; j < n; j += 16) {
        int64_t rows = n - j < 16 ? n - j : 16, lds = HN_GEMM_K;
        const float *src = w->row[0];
        const char *b = (const char *)p->b + (size_t)(n0 + j) * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)k0);
        if (at_once) {
            at_once(strip(w, j, pairs), b, p->b_row_bytes, rows, k);
            continue;
        }
        if (p->b_type == HN_F32) {
            src = (const float *)b;
            lds = (int64_t)(p->b_row_bytes / sizeof(float));
        } else
            for (int64_t r = 0; r < rows; r++) decode(w->row[r], b + (size_t)r * p->b_row_bytes, k);
        ops->transpose(strip(w, j, pairs), HN_GEMM_COLS, src, lds, rows, k, p->bf16);
    }
}

static void ask_for_a(const float *a, int64_t lda, int64_t left, int64_t words)
{
    for (int64_t r = HN_GEMM_ROWS; r < left && r < 2 * HN_GEMM_ROWS; r++)
        for (int64_t l = 0; l < words; l += 16) __builtin_prefetch(a + r * lda + l);
}

/* Where row m of A is for the tiles there, rounded or copied for a passage over the strips. once: there is but
 * one strip, so floats may stay where they are. Columns of A, the rows of TN, are copied 48 at a time. */
static void a_rows(const job *j, work *w, hn_gemm_tile *t, int64_t m, int64_t i, int64_t left, int64_t k0, int64_t k,
                   bool once)
{
    const hn_gemm *p = j->p;
    const hn_gemm_ops *ops = j->g->k->gemm;
    bool tn = p->form == HN_GEMM_TN;
    t->a_step = 1;
    if (j->rounded) {
        t->a = j->g->rounded + (k0 / HN_GEMM_K * p->m + m) * PAIRS;
        t->a_row = PAIRS;
        return;
    }
    const float *a = p->a + (tn ? k0 * p->lda + m : m * p->lda + (a_in_pairs(j) ? k0 / 2 : k0));
    if (!tn)
        ask_for_a(a, p->lda, left,
                  a_in_pairs(j) ? (k + 1) / 2 : k); /* the next ones are far away: another chunk had them last */
    if (a_in_pairs(j) || (once && !p->bf16 && !(tn && p->lda > HN_GEMM_K))) {
        t->a = a;
        t->a_row = tn ? 1 : p->lda;
        t->a_step = tn ? p->lda : 1;
        return;
    }
    t->a = w->a + (tn ? i % WIDE : 0);
    t->a_row = tn ? 1 : HN_GEMM_K;
    t->a_step = tn ? WIDE : 1;
    if (!tn) ops->rows(w->a, a, p->lda, t->rows, k, p->bf16);
    else if (i % WIDE == 0) ops->copy(w->a, WIDE, a, p->lda, k, left < WIDE ? left : WIDE, p->bf16);
}

/* The bytes of B that a block needs, asked for while the one before is multiplied: rows of `bytes` from b on. */
typedef struct ahead {
    const char *b;
    size_t stride, bytes;
    int64_t rows, next, per;
} ahead;

static ahead ahead_of(const hn_gemm *p, int64_t n0, int64_t n1, int64_t k0, int64_t turns)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    bool nt = p->form == HN_GEMM_NT;
    int64_t k = p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K, row = nt ? n0 : k0,
            col = (nt ? k0 : n0) / ti->block_elems * ti->block_elems;
    if (k <= 0 || n0 >= n1) return (ahead){ 0 };
    int64_t rows = nt ? n1 - n0 : k,
            cols = ((nt ? k : n1 - n0) + ti->block_elems - 1) / ti->block_elems * ti->block_elems;
    return (ahead){ (const char *)p->b + (size_t)row * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)col),
                    p->b_row_bytes,
                    hn_row_bytes(ti, (uint64_t)cols),
                    rows,
                    0,
                    (rows + turns - 1) / turns };
}

static void ask(ahead *x)
{
    for (int64_t end = x->next + x->per < x->rows ? x->next + x->per : x->rows; x->next < end; x->next++)
        for (size_t i = 0; i < x->bytes; i += 64) __builtin_prefetch(x->b + (size_t)x->next * x->stride + i, 0, 2);
}

/* Rows [m0, m1) × columns [n0, n1) of C; columns [then0, then1) are likely this thread's next. */
typedef struct rect {
    int64_t m0, m1, n0, n1, then0, then1;
} rect;

static void rectangle(const job *j, work *w, const rect *r)
{
    const hn_gemm_ctx *g = j->g;
    const hn_gemm *p = j->p;
    bool pairs = in_pairs(g, p);
    int64_t n_strip = (r->n1 - r->n0 + HN_GEMM_COLS - 1) / HN_GEMM_COLS;
    for (int64_t k0 = 0; k0 < p->k; k0 += HN_GEMM_K) {
        int64_t k = p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K;
        (p->form == HN_GEMM_NT ? strips_of_columns : strips_of_rows)(g, p, w, r->n0, r->n1 - r->n0, k0, k);
        hn_gemm_tile t = { .b_step = HN_GEMM_COLS,
                           .ldc = p->ldc,
                           .steps = pairs     ? (k + 1) / 2
                                    : p->bf16 ? (k + 1) & ~(int64_t)1
                                              : k,
                           .alpha = p->alpha,
                           .first = k0 == 0,
                           .last = k0 + k == p->k,
                           .add = p->add };
        int64_t turns = (r->m1 - r->m0 + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS;
        ahead next =
            k0 + k < p->k ? ahead_of(p, r->n0, r->n1, k0 + k, turns) : ahead_of(p, r->then0, r->then1, 0, turns);
        for (int64_t m = r->m0; m < r->m1; m += HN_GEMM_ROWS) {
            ask(&next);
            t.rows = (int32_t)(r->m1 - m < HN_GEMM_ROWS ? r->m1 - m : HN_GEMM_ROWS);
            a_rows(j, w, &t, m, m - r->m0, r->m1 - m, k0, k, n_strip == 1);
            for (int64_t s = 0; s < n_strip; s++) {
                int64_t n = r->n0 + s * HN_GEMM_COLS;
                t.b = strip(w, n - r->n0, pairs);
                t.t = w->sum[(m - r->m0) / HN_GEMM_ROWS * n_strip + s][0];
                t.c = p->c + m * p->ldc + n;
                t.cols = (int32_t)(r->n1 - n < HN_GEMM_COLS ? r->n1 - n : HN_GEMM_COLS);
                (p->bf16 ? g->k->gemm->tile_bf16 : g->k->gemm->tile)(&t);
            }
        }
    }
}

static void zero(const hn_gemm *p)
{
    for (int64_t m = 0; m < p->m && !p->add; m++) memset(p->c + m * p->ldc, 0, (size_t)p->n * sizeof *p->c);
}

static void chunk(void *arg, int64_t c, int32_t thread)
{
    const job *j = arg;
    const hn_gemm *p = j->p;
    int64_t m = c % j->n_m, n = c / j->n_m, then = n + j->g->n_thread < j->n_n ? n + j->g->n_thread : j->n_n;
    rect r = {
        part_at(p->m, HN_GEMM_ROWS, j->n_m, m), part_at(p->m, HN_GEMM_ROWS, j->n_m, m + 1),
        part_at(p->n, j->unit, j->n_n, n),      part_at(p->n, j->unit, j->n_n, n + 1),
        part_at(p->n, j->unit, j->n_n, then),   part_at(p->n, j->unit, j->n_n, then < j->n_n ? then + 1 : then)
    };
    rectangle(j, &j->g->w[thread], &r);
}

/* When the last thread is done, in products of an element: rounding or copying one of A, fetching one that is
 * rounded, packing one of B. */
static double time_of(const job *j, int32_t n_thread)
{
    const hn_gemm *p = j->p;
    double round = p->bf16 ? 8 : 4, a = j->rounded || a_in_pairs(j) ? 1 : round, done[16] = { 0 }, last = 0;
    double b = in_pairs(j->g, p) && j->g->k->gemm->rows_of[p->b_type] ? 10 : p->bf16 ? 16 : 8;
    for (int32_t i = 0; j->rounded && i < 16; i++) done[i] = round * (double)p->m / n_thread;
    int64_t n = j->n_n * j->n_m;
    if (n_thread > 16 || n > 16 * n_thread) { /* many: what is left over at the end is half a chunk */
        double all = (double)p->m * (double)p->n + a * (double)(p->m * j->n_n) + b * (double)(p->n * j->n_m);
        return done[0] + all / n_thread + (n_thread > 1 ? 0.5 * (double)(p->m * p->n / n) : 0);
    }
    for (int64_t c = 0; c < n; c++) { /* the next one goes to who is free first */
        double m = (double)(part_at(p->m, HN_GEMM_ROWS, j->n_m, c % j->n_m + 1) -
                            part_at(p->m, HN_GEMM_ROWS, j->n_m, c % j->n_m));
        double w =
            (double)(part_at(p->n, j->unit, j->n_n, c / j->n_m + 1) - part_at(p->n, j->unit, j->n_n, c / j->n_m));
        int32_t t = 0;
        for (int32_t i = 1; i < n_thread; i++) t = done[i] < done[t] ? i : t;
        done[t] += m * w + a * m + b * w;
        last = done[t] > last ? done[t] : last;
    }
    return last;
}

/* Rectangles that keep all threads at work to the end and pack B and fetch A seldom; results do not depend on
 * it. Where a row of B is cut, it is cut between its type's blocks, and what is decoded must fit w->row. */
static void split(job *j, int32_t n_thread)
{
    const hn_gemm *p = j->p;
    int64_t block = hn_type_get(p->b_type)->block_elems, most = in_pairs(j->g, p) ? 2 * STRIPS : STRIPS;
    bool whole =
        p->form == HN_GEMM_NT || p->b_type == HN_F32 || (in_pairs(j->g, p) && j->g->k->gemm->rows_of[p->b_type]);
    j->unit = !whole && block > HN_GEMM_COLS ? block : HN_GEMM_COLS;
    if (!whole && most > HN_GEMM_K / HN_GEMM_COLS) most = HN_GEMM_K / HN_GEMM_COLS;
    int64_t units = (p->n + j->unit - 1) / j->unit, rows = (p->m + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS;
    job best = *j;
    double least = 0;
    for (int64_t strips = most; strips > 0; strips /= 2) {
        int64_t per = strips * HN_GEMM_COLS / j->unit, deep = TILES / strips; /* units and tiles of a chunk, at most */
        if (per < 1) break;
        for (int more = 0; more < 2; more++) { /* as few chunks as can be; or as many for each thread */
            j->n_n = (units + per - 1) / per;
            if (more) j->n_n = (j->n_n + n_thread - 1) / n_thread * n_thread;
            if (j->n_n > units) continue;
            j->rounded = j->may_round && j->n_n > 2;
            int64_t parts = (rows + deep - 1) / deep;
            for (int i = 0; i < 5; i++, parts *= 2) {
                if (i && rows / parts < 4) break;
                j->n_m = parts;
                double t = time_of(j, n_thread);
                if (least != 0 && t >= least) continue;
                least = t;
                best = *j;
            }
        }
    }
    *j = best;
}

static void round_rows(void *arg, int64_t c, int32_t thread)
{
    const job *j = arg;
    const hn_gemm *p = j->p;
    for (int64_t m = c * HN_GEMM_ROWS; m < p->m && m < (c + 1) * HN_GEMM_ROWS; m++)
        for (int64_t k0 = 0; k0 < p->k; k0 += HN_GEMM_K)
            j->g->k->gemm->rows(j->g->rounded + (k0 / HN_GEMM_K * p->m + m) * PAIRS, p->a + m * p->lda + k0, p->lda, 1,
                                p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K, true);
}

void hn_gemm_round(const hn_gemm_ctx *g, float *x, int64_t n)
{
    if (g->k->gemm->pairs) g->k->gemm->rows(x, x, n, 1, n, true);
}

void hn_gemm_run(hn_gemm_ctx *g, const hn_gemm *p)
{
    if (p->m <= 0 || p->n <= 0) return;
    if (p->k <= 0) {
        zero(p);
        return;
    }
    job j = { .g = g, .p = p };
    j.may_round = in_pairs(g, p) && !p->a_rounded && p->form != HN_GEMM_TN &&
                  (p->k + HN_GEMM_K - 1) / HN_GEMM_K * p->m <= ROUNDED;
    split(&j, hn_pool_active(g->pool));
    if (j.rounded) hn_pool_run(g->pool, round_rows, &j, (p->m + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS);
    hn_pool_run(g->pool, chunk, &j, j.n_n * j.n_m);
}

void hn_gemm_serial(hn_gemm_ctx *g, int32_t thread, const hn_gemm *p)
{
    if (p->m <= 0 || p->n <= 0) return;
    if (p->k <= 0) zero(p);
    else rectangle(&(job){ .g = g, .p = p }, &g->w[thread], &(rect){ 0, p->m, 0, p->n, p->n, p->n });
}
