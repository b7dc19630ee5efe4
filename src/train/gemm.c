/* gemm: the products of training; the rule is in train.h. A chunk of the pool is a rectangle of C.
 * It goes through k in blocks of 256: the block of B is decoded and laid out in strips of 64 columns,
 * which stay in the second cache, then every six rows of A pass over them in tiles that the level's
 * kernels hold in registers. Owns the order and the scratch; refuses to know instructions. */
#include "train/train.h"

#include <stdlib.h>

enum { MAX_M = 516, MAX_N = 256, STRIPS = MAX_N / HN_GEMM_COLS, WIDE = 8 * HN_GEMM_ROWS };

/* Scratch of one thread. */
typedef struct work {
    float b[STRIPS][HN_GEMM_K][HN_GEMM_COLS];                            /* the block of B in strips */
    float sum[MAX_M / HN_GEMM_ROWS][STRIPS][HN_GEMM_ROWS][HN_GEMM_COLS]; /* of the blocks before */
    float a[HN_GEMM_K * WIDE];
    float row[16][HN_GEMM_K];                                            /* decoded */
} work;

struct hn_gemm_ctx {
    hn_pool *pool;
    const hn_kernels *k;
    int32_t n_thread;
    work *w;           /* [n_thread] */
    uint32_t *rounded; /* ROUNDED rows of a block of A, in pairs of bf16 */
};
/* Rows of A that are rounded once for all columns; more than fit are rounded for each chunk of them. */
enum { ROUNDED = 516 * 20, PAIRS = HN_GEMM_K / 2 };

hone_status hn_gemm_new(hn_gemm_ctx **out, hn_pool *pool, const hn_kernels *k, hone_error *err)
{
    *out = NULL;
    hn_gemm_ctx *g = calloc(1, sizeof *g);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "products");
    *g = (hn_gemm_ctx){ .pool = pool, .k = k, .n_thread = hn_pool_threads(pool) };
    bool pairs = k->gemm->pairs;
    if (!(g->w = hn_pages_alloc((size_t)g->n_thread * sizeof *g->w)) || (pairs && !(g->rounded = hn_pages_alloc(ROUNDED * PAIRS * sizeof *g->rounded)))) {
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

uint64_t hn_gemm_bytes(const hn_gemm_ctx *g) { return (uint64_t)g->n_thread * sizeof *g->w + (g->rounded ? ROUNDED * PAIRS * sizeof *g->rounded : 0); }

typedef struct job {
    const hn_gemm_ctx *g;
    const hn_gemm *p;
    int64_t mc, nc, n_m; /* rows and columns of a chunk; chunks above each other */
    bool rounded;        /* A is in g->rounded: [block of k][m][PAIRS] */
} job;

/* Columns [n0, n0 + n) of rows [k0, k0 + k) of B, a row by a row of k. */
static void strips_of_rows(const hn_kernels *kn, const hn_gemm *p, work *w, int64_t n0, int64_t n, int64_t k0, int64_t k)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    const hn_gemm_ops *ops = kn->gemm;
    hn_dequantize_fn *decode = kn->decode[p->b_type] ? kn->decode[p->b_type] : ti->dequantize;
    int64_t from = n0 / ti->block_elems * ti->block_elems, all = n0 + n - from;
    all = (all + ti->block_elems - 1) / ti->block_elems * ti->block_elems;
    for (int64_t i = 0; i < k; i += 2) {
        int64_t rows = k - i < 2 ? 1 : 2, lds = HN_GEMM_K;
        const float *src = w->row[0] + (n0 - from);
        const char *b = (const char *)p->b + (size_t)(k0 + i) * p->b_row_bytes;
        if (p->b_type == HN_F32) {
            src = (const float *)b + n0;
            lds = (int64_t)(p->b_row_bytes / sizeof(float));
        } else
            for (int64_t r = 0; r < rows; r++) decode(w->row[r], b + (size_t)r * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)from), all);
        int64_t at = p->bf16 && ops->pairs ? i / 2 : i;
        for (int64_t j = 0; j < n; j += HN_GEMM_COLS)
            ops->copy(w->b[j / HN_GEMM_COLS][at], HN_GEMM_COLS, src + j, lds, rows, n - j < HN_GEMM_COLS ? n - j : HN_GEMM_COLS, p->bf16);
    }
}

/* The same where B's rows are columns. */
static void strips_of_columns(const hn_kernels *kn, const hn_gemm *p, work *w, int64_t n0, int64_t n, int64_t k0, int64_t k)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    const hn_gemm_ops *ops = kn->gemm;
    hn_dequantize_fn *decode = kn->decode[p->b_type] ? kn->decode[p->b_type] : ti->dequantize;
    for (int64_t j = 0; j < n; j += 16) {
        int64_t rows = n - j < 16 ? n - j : 16, lds = HN_GEMM_K;
        const float *src = w->row[0];
        const char *b = (const char *)p->b + (size_t)(n0 + j) * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)k0);
        if (p->b_type == HN_F32) {
            src = (const float *)b;
            lds = (int64_t)(p->b_row_bytes / sizeof(float));
        } else
            for (int64_t r = 0; r < rows; r++) decode(w->row[r], b + (size_t)r * p->b_row_bytes, k);
        ops->transpose(&w->b[j / HN_GEMM_COLS][0][j % HN_GEMM_COLS], HN_GEMM_COLS, src, lds, rows, k, p->bf16);
    }
}

/* Where row m of A is for the tiles there, rounded or copied for a passage over the strips. once: there is but
 * one strip, so floats may stay where they are. Columns of A, the rows of TN, are copied 48 at a time. */
static void a_rows(const hn_gemm_ops *ops, const hn_gemm *p, work *w, hn_gemm_tile *t, int64_t m, int64_t i, int64_t left, int64_t k0, int64_t k, bool once)
{
    bool tn = p->form == HN_GEMM_TN;
    const float *a = p->a + (tn ? k0 * p->lda + m : m * p->lda + k0);
    if (!tn) /* the next ones are far away: another chunk had them last */
        for (int64_t r = HN_GEMM_ROWS; r < left && r < 2 * HN_GEMM_ROWS; r++)
            for (int64_t l = 0; l < k; l += 16) __builtin_prefetch(a + r * p->lda + l);
    if (once && !p->bf16 && !(tn && p->lda > HN_GEMM_K)) {
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
typedef struct ahead { const char *b; size_t stride, bytes; int64_t rows, next, per; } ahead;

static ahead ahead_of(const hn_gemm *p, int64_t n0, int64_t n1, int64_t k0, int64_t turns)
{
    const hn_type_info *ti = hn_type_get(p->b_type);
    bool nt = p->form == HN_GEMM_NT;
    int64_t k = p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K, row = nt ? n0 : k0, col = (nt ? k0 : n0) / ti->block_elems * ti->block_elems;
    if (k <= 0) return (ahead){ 0 };
    int64_t rows = nt ? n1 - n0 : k, cols = ((nt ? k : n1 - n0) + ti->block_elems - 1) / ti->block_elems * ti->block_elems;
    return (ahead){ (const char *)p->b + (size_t)row * p->b_row_bytes + hn_row_bytes(ti, (uint64_t)col), p->b_row_bytes, hn_row_bytes(ti, (uint64_t)cols),
                    rows, 0, (rows + turns - 1) / turns };
}

static void ask(ahead *x)
{
    for (int64_t end = x->next + x->per < x->rows ? x->next + x->per : x->rows; x->next < end; x->next++)
        for (size_t i = 0; i < x->bytes; i += 64) __builtin_prefetch(x->b + (size_t)x->next * x->stride + i, 0, 2);
}

/* C's rows [m0, m1) × columns [n0, n1). */
static void rectangle(const job *j, work *w, int64_t m0, int64_t m1, int64_t n0, int64_t n1)
{
    const hn_gemm_ctx *g = j->g;
    const hn_gemm *p = j->p;
    const hn_gemm_ops *ops = g->k->gemm;
    bool pairs = p->bf16 && ops->pairs;
    for (int64_t k0 = 0; k0 < p->k; k0 += HN_GEMM_K) {
        int64_t k = p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K;
        (p->form == HN_GEMM_NT ? strips_of_columns : strips_of_rows)(g->k, p, w, n0, n1 - n0, k0, k);
        hn_gemm_tile t = { .b_step = HN_GEMM_COLS, .ldc = p->ldc, .steps = pairs ? (k + 1) / 2 : p->bf16 ? (k + 1) & ~(int64_t)1 : k,
                           .alpha = p->alpha, .first = k0 == 0, .last = k0 + k == p->k, .add = p->add };
        int64_t turns = (m1 - m0 + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS, then = n0 + j->nc * g->n_thread; /* likely this thread's next columns */
        ahead next = k0 + k < p->k ? ahead_of(p, n0, n1, k0 + k, turns)
                     : then < p->n ? ahead_of(p, then, then + j->nc < p->n ? then + j->nc : p->n, 0, turns) : (ahead){ 0 };
        for (int64_t m = m0; m < m1; m += HN_GEMM_ROWS) {
            ask(&next);
            t.rows = (int32_t)(m1 - m < HN_GEMM_ROWS ? m1 - m : HN_GEMM_ROWS);
            if (j->rounded) {
                t.a = (const float *)(g->rounded + (k0 / HN_GEMM_K * p->m + m) * PAIRS);
                t.a_row = PAIRS;
                t.a_step = 1;
            } else a_rows(ops, p, w, &t, m, m - m0, m1 - m, k0, k, n1 - n0 <= HN_GEMM_COLS);
            for (int64_t n = n0; n < n1; n += HN_GEMM_COLS) {
                int64_t s = (n - n0) / HN_GEMM_COLS;
                t.b = w->b[s];
                t.t = &w->sum[(m - m0) / HN_GEMM_ROWS][s][0][0];
                t.c = p->c + m * p->ldc + n;
                t.cols = (int32_t)(n1 - n < HN_GEMM_COLS ? n1 - n : HN_GEMM_COLS);
                (p->bf16 ? ops->tile_bf16 : ops->tile)(&t);
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
    int64_t m = c % j->n_m * j->mc, n = c / j->n_m * j->nc;
    rectangle(j, &j->g->w[thread], m, m + j->mc < p->m ? m + j->mc : p->m, n, n + j->nc < p->n ? n + j->nc : p->n);
}

/* When the last thread is done, in products of a vector: decoding an element of B costs about half of what
 * rounding one of A does. */
static double time_of(const job *j, int32_t n_thread)
{
    double per = j->p->bf16 ? 32 : 16, a = per * 0.25, b = per * 0.5, done[16] = { 0 };
    int64_t n_n = (j->p->n + j->nc - 1) / j->nc, n = n_n * j->n_m;
    int64_t m_last = j->p->m - (j->n_m - 1) * j->mc, n_last = j->p->n - (n_n - 1) * j->nc;
    if (n_thread > 16 || n > 16 * n_thread) { /* many: what is left over at the end is half a chunk */
        double all = (double)j->p->m * (double)j->p->n + a * (double)(j->p->m * n_n) + b * (double)(j->p->n * j->n_m);
        return all / n_thread + (n_thread > 1 ? 0.5 * (double)(j->mc * j->nc) : 0);
    }
    double last = 0;
    for (int64_t c = 0; c < n; c++) { /* the next one goes to who is free first */
        double m = (double)(c % j->n_m == j->n_m - 1 ? m_last : j->mc), w = (double)(c / j->n_m == n_n - 1 ? n_last : j->nc);
        int32_t t = 0;
        for (int32_t i = 1; i < n_thread; i++) t = done[i] < done[t] ? i : t;
        done[t] += m * w + a * m + b * w;
        last = done[t] > last ? done[t] : last;
    }
    return last;
}

/* Rectangles that keep all threads at work to the end and decode B and round A seldom; results do not
 * depend on it. Columns of a chunk divide a block of any type. */
static void split(job *j, int32_t n_thread)
{
    job best = *j;
    double least = 0;
    for (j->nc = MAX_N; j->nc >= HN_GEMM_COLS; j->nc /= 2) {
        if (j->nc > HN_GEMM_COLS && j->nc / 2 >= j->p->n) continue;
        int64_t parts = (j->p->m + MAX_M - 1) / MAX_M;
        for (int i = 0; i < 5; i++, parts *= 2) {
            j->mc = ((j->p->m + parts - 1) / parts + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS * HN_GEMM_ROWS;
            if (i && j->mc < 4 * HN_GEMM_ROWS) break;
            j->n_m = (j->p->m + j->mc - 1) / j->mc;
            double t = time_of(j, n_thread);
            if (least != 0 && t >= least) continue;
            least = t;
            best = *j;
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
            j->g->k->gemm->rows(j->g->rounded + (k0 / HN_GEMM_K * p->m + m) * PAIRS, p->a + m * p->lda + k0, p->lda, 1, p->k - k0 < HN_GEMM_K ? p->k - k0 : HN_GEMM_K, true);
}

void hn_gemm_run(hn_gemm_ctx *g, const hn_gemm *p)
{
    if (p->m <= 0 || p->n <= 0) return;
    if (p->k <= 0) {
        zero(p);
        return;
    }
    job j = { .g = g, .p = p };
    split(&j, hn_pool_active(g->pool));
    if (p->bf16 && g->rounded && p->form != HN_GEMM_TN && p->n > 2 * j.nc && (p->k + HN_GEMM_K - 1) / HN_GEMM_K * p->m <= ROUNDED) {
        hn_pool_run(g->pool, round_rows, &j, (p->m + HN_GEMM_ROWS - 1) / HN_GEMM_ROWS);
        j.rounded = true;
    }
    hn_pool_run(g->pool, chunk, &j, (p->n + j.nc - 1) / j.nc * j.n_m);
}

void hn_gemm_serial(hn_gemm_ctx *g, int32_t thread, const hn_gemm *p)
{
    if (p->m <= 0 || p->n <= 0) return;
    if (p->k <= 0) zero(p);
    else rectangle(&(job){ .g = g, .p = p, .nc = p->n }, &g->w[thread], 0, p->m, 0, p->n);
}
