/* The products of training on every level and any number of threads against their rule, written
 * plainly here, by memcmp: forms, shapes, strides, types, bf16; NaN, infinities, denormals. Then
 * against sums in double. And the gradients of norm and silu against the scalar oracle and
 * against derivatives in double. */
#include "train/train.h"
#include "../unit/slowed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng_key, rng_at;
static uint64_t rnd(void) { return hn_rand64(rng_key, rng_at++); }
static float rndf(void) { return (float)(int32_t)(rnd() >> 32) * 0x1p-31f; } /* [-1, 1) */
static int64_t below(int64_t n) { return (int64_t)(rnd() % (uint64_t)n); }

enum { ORDINARY, TINY, WILD, NOT_FINITE, TEMPERS };
static float drawn(int temper)
{
    float f = rndf();
    switch (temper) {
    case ORDINARY: return f;
    case TINY: return f * hn_bits_f32((uint32_t)(40 + below(50)) << 23); /* products around 2^-126 */
    case NOT_FINITE:
        if (rnd() % 997 == 0) return rnd() % 3 ? NAN : rnd() % 2 ? INFINITY : -INFINITY;
        /* fall through */
    default:
        switch (rnd() % 12) {
        case 0: return 0.0f;
        case 1: return -0.0f;
        case 2: return f * 0x1p-130f; /* denormal */
        case 3: return f * 1e30f;
        case 4: return f * 1e-30f;
        default: return f;
        }
    }
}

/* Every table that is to say the same as the rule: those of the levels, scalar without the FMA instruction, and
 * 512 bits without the dot product of bf16. */
static int tables(const hn_kernels *list[HN_CPU_LEVELS + 2])
{
    int n = 0;
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) list[n++] = hn_kernels_get((hn_cpu_level)l);
#if defined(__x86_64__)
    static hn_kernels no_bf16;
    if (hn_cpu_has(HN_CPU_AVX512)) {
        no_bf16 = *hn_kernels_get(HN_CPU_AVX512);
        no_bf16.name = "avx512 without bf16";
        no_bf16.gemm = &hn_gemm_avx512;
        list[n++] = &no_bf16;
    }
#endif
    list[n++] = &hn_kernels_scalar;
    return n;
}

static bool same_float(float a, float b) { return hn_f32_bits(a) == hn_f32_bits(b) || (isnan(a) && isnan(b)); }
static void same(const float *a, const float *b, int64_t n, const char *what, const char *level, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        if (!same_float(a[i], b[i]))
            fail_msg("%s on %s, n %lld: element %lld is %a, the oracle says %a", what, level, (long long)size,
                     (long long)i, (double)a[i], (double)b[i]);
}

/* ---- products -------------------------------------------------------------------------------------- */

enum { MAX_DIM = 600, PAD = 5 };
typedef struct product {
    hn_gemm p;
    float *a, *b, *c, *c0; /* b decoded; c as the kernels have it, c0 as it was */
    char *w;
    int64_t a_rows, a_cols, b_rows, b_cols, c_floats;
} product;

static void *need(void *p)
{
    if (!p) fail_msg("out of memory");
    return p;
}

static float rounded_bf16(float f)
{
    if (isnan(f)) return f;
    if (fabsf(f) < 0x1p-126f) return copysignf(0.0f, f);
    uint32_t u = hn_f32_bits(f), rest = u & 0xFFFF;
    u -= rest;
    if (rest > 0x8000 || (rest == 0x8000 && u & 0x10000)) u += 0x10000;
    return hn_bits_f32(u);
}

/* fma that has no subnormal result: rounded as if exponents had no end, then zero where it is below 2^-126. */
static float fma_flush(float a, float b, float c)
{
    float r = fmaf(a, b, c);
    if (!isfinite(r) || fabsf(r) > 0x1p-120f || r == 0.0f) return r;
    r = fmaf(a * 0x1p60f, b * 0x1p60f, c * 0x1p120f);
    return fabsf(r) < 0x1p-6f ? copysignf(0.0f, r) : r * 0x1p-120f;
}

/* The rule of train.h and kernels.h for one element; *exact and *size: Σ a·b and Σ |a·b|. */
static float element(const product *q, int64_t m, int64_t n, float c, double *exact, double *size)
{
    const hn_gemm *p = &q->p;
    float sum = 0;
    *exact = *size = 0;
    for (int64_t k0 = 0; k0 < p->k; k0 += 256) {
        int64_t end = k0 + 256 < p->k ? k0 + 256 : p->k;
        float s = 0;
        for (int64_t i = k0; i < (p->bf16 ? k0 + ((end - k0 + 1) & ~(int64_t)1) : end); i++) {
            int64_t k = p->bf16 ? k0 + ((i - k0) ^ 1) : i;
            float a = k >= end ? 0 : p->form == HN_GEMM_TN ? q->a[k * p->lda + m] : q->a[m * p->lda + k];
            float b = k >= end ? 0 : p->form == HN_GEMM_NT ? q->b[n * q->b_cols + k] : q->b[k * q->b_cols + n];
            s = p->bf16 ? fma_flush(rounded_bf16(a), rounded_bf16(b), s) : fmaf(a, b, s);
            *exact += (double)a * (double)b;
            *size += fabs((double)a * (double)b);
        }
        sum = k0 ? sum + s : s;
    }
    if (p->alpha != 1.0f) sum = p->alpha * sum;
    return p->add ? c + sum : sum;
}

static product made(hn_gemm_form form, hn_type type, int64_t m, int64_t n, int64_t k, int temper)
{
    const hn_type_info *ti = hn_type_get(type);
    product q = { .a_rows = form == HN_GEMM_TN ? k : m,
                  .a_cols = form == HN_GEMM_TN ? m : k,
                  .b_rows = form == HN_GEMM_NT ? n : k,
                  .b_cols = form == HN_GEMM_NT ? k : n };
    int64_t lda = q.a_cols + below(PAD), ldc = n + below(PAD);
    size_t row = (size_t)hn_row_bytes(ti, (uint64_t)q.b_cols) +
                 (type == HN_F32 ? 4 * (size_t)below(PAD) : 2 * (size_t)below(PAD));
    /* nothing beyond the last element, so that a sanitizer sees what reads there */
    q.a = need(malloc(((size_t)(q.a_rows - 1) * (size_t)lda + (size_t)q.a_cols) * sizeof(float)));
    q.b = need(malloc((size_t)(q.b_rows * q.b_cols) * sizeof(float)));
    q.c_floats = m * ldc;
    q.c = need(malloc((size_t)q.c_floats * sizeof(float)));
    q.c0 = need(malloc((size_t)q.c_floats * sizeof(float)));
    q.w = need(malloc((size_t)(q.b_rows - 1) * row + (size_t)hn_row_bytes(ti, (uint64_t)q.b_cols)));
    for (int64_t i = 0; i < (q.a_rows - 1) * lda + q.a_cols; i++) q.a[i] = drawn(temper);
    for (int64_t i = 0; i < q.c_floats; i++) q.c0[i] = drawn(temper);
    for (int64_t i = 0; i < q.b_rows; i++) {
        float *b = q.b + i * q.b_cols;
        for (int64_t j = 0; j < q.b_cols; j++)
            b[j] = type == HN_F32 || type == HN_F16 || type == HN_BF16 ? drawn(temper) : rndf();
        ti->quantize(q.w + (size_t)i * row, b, q.b_cols, NULL);
        ti->dequantize(b, q.w + (size_t)i * row, q.b_cols);
    }
    q.p = (hn_gemm){ .form = form,
                     .c = q.c,
                     .a = q.a,
                     .b = q.w,
                     .b_type = type,
                     .b_row_bytes = row,
                     .ldc = ldc,
                     .lda = lda,
                     .m = m,
                     .n = n,
                     .k = k,
                     .alpha = rnd() % 2 ? 1.0f : 0.37f,
                     .add = rnd() % 2,
                     .bf16 = rnd() % 2 };
    return q;
}

static void release(product *q)
{
    free(q->a);
    free(q->b);
    free(q->c);
    free(q->c0);
    free(q->w);
}

static char said[160];
static const char *described(const product *q)
{
    static const char *const form[] = { "NT", "NN", "TN" };
    const hn_gemm *p = &q->p;
    snprintf(said, sizeof said, "%s %s %lldx%lld, k %lld%s%s%s", form[p->form], hn_type_get(p->b_type)->name,
             (long long)p->m, (long long)p->n, (long long)p->k, p->bf16 ? ", bf16" : "", p->add ? ", add" : "",
             p->alpha != 1.0f ? ", alpha" : "");
    return said;
}

/* Under emulation and sanitizers fewer cases of the same, and one thread or three. */
#ifdef HN_EMULATED
enum { CASES = 40, LARGEST = 100000, FEW_THREADS = 1, EMULATED = 1 };
#else
enum { CASES = SLOWED ? 100 : 400, LARGEST = 400000, FEW_THREADS = SLOWED, EMULATED = 0 };
#endif
enum { N_THREADS = 3 };
typedef struct machine {
    int n;
    const hn_kernels *k[HN_CPU_LEVELS + 2];
    hn_pool *pool[N_THREADS];
    hn_gemm_ctx *g[HN_CPU_LEVELS + 2][N_THREADS];
} machine;

static machine world;

static bool start(machine *w)
{
    w->n = tables(w->k);
    for (int t = 0; t < N_THREADS; t++) {
        if (hn_pool_new(&w->pool[t], t + 1, NULL)) return false;
        for (int i = 0; i < w->n; i++)
            if (hn_gemm_new(&w->g[i][t], w->pool[t], w->k[i], NULL)) return false;
    }
    return true;
}

static void stop(machine *w)
{
    for (int t = 0; t < N_THREADS; t++) {
        for (int i = 0; i < w->n; i++) hn_gemm_free(w->g[i][t]);
        hn_pool_free(w->pool[t]);
    }
}

typedef struct alone {
    hn_gemm_ctx *g;
    const hn_gemm *p;
} alone;
static void run_alone(void *arg, int64_t chunk, int32_t thread)
{
    const alone *a = arg;
    hn_gemm_serial(a->g, thread, a->p);
}

/* With the rows of A through hn_gemm_round, each alone and between what must stay. */
static void run_rounded(hn_gemm_ctx *g, const hn_gemm *p)
{
    int64_t lda = p->k + 3;
    float *a = need(malloc((size_t)(p->m * lda) * sizeof(float)));
    for (int64_t m = 0; m < p->m; m++) {
        memcpy(a + m * lda, p->a + m * p->lda, (size_t)p->k * sizeof(float));
        a[m * lda + p->k] = 77.0f;
        hn_gemm_round(g, a + m * lda, p->k);
        assert_true(a[m * lda + p->k] == 77.0f);
    }
    hn_gemm q = *p;
    q.a = a;
    q.lda = lda;
    q.a_rounded = true;
    hn_gemm_run(g, &q);
    free(a);
}

/* One product everywhere. bound: also near the sums in double. */
static void check(const machine *w, product *q, bool bound)
{
    static int turn;
    float *want = need(malloc((size_t)q->c_floats * sizeof(float)));
    turn++;
    memcpy(want, q->c0, (size_t)q->c_floats * sizeof(float));
    for (int64_t m = 0; m < q->p.m; m++)
        for (int64_t n = 0; n < q->p.n; n++) {
            float *c = &want[m * q->p.ldc + n], old = *c;
            double exact, size;
            *c = element(q, m, n, old, &exact, &size);
            if (!bound) continue;
            double say = exact * (double)q->p.alpha + (q->p.add ? (double)old : 0), room = q->p.bf16 ? 0x1p-7 : 0;
            room = (room + 300 * 0x1p-24) * size + 0x1p-23 * fabs(say);
            if (!(fabs((double)*c - say) <= room)) fail_msg("%s: %g, in double %g", described(q), (double)*c, say);
        }
    for (int i = 0; i < w->n; i++)
        for (int t = 0; t < N_THREADS + 2; t++) {
            bool serial = t == N_THREADS, rounded = t > N_THREADS;
            if (FEW_THREADS && t == 1) continue;
            if (EMULATED && t < N_THREADS && t != (i + turn) % 2 * 2) continue; /* one thread and three by turns */
            if (rounded && (!q->p.bf16 || q->p.form == HN_GEMM_TN)) continue;
            if (serial && (q->p.b_type != HN_F32 || q->p.bf16 || q->p.m > 256 || q->p.n > 256 || q->p.k > 256))
                continue;
            memcpy(q->c, q->c0, (size_t)q->c_floats * sizeof(float));
            if (serial) hn_pool_run(w->pool[1], run_alone, &(alone){ w->g[i][1], &q->p }, 1);
            else if (rounded) run_rounded(w->g[i][1], &q->p);
            else hn_gemm_run(w->g[i][t], &q->p);
            for (int64_t j = 0; j < q->c_floats; j++) /* between the rows, too */
                if (!same_float(q->c[j], want[j]))
                    fail_msg(
                        "%s on %s, %s %d: row %lld, column %lld is %a, the rule says %a", described(q), w->k[i]->name,
                        serial    ? "serial"
                        : rounded ? "rounded"
                                  : "threads",
                        t + 1, (long long)(j / q->p.ldc), (long long)(j % q->p.ldc), (double)q->c[j], (double)want[j]);
        }
    free(want);
}

static const int64_t dims[] = { 1, 2, 5, 7, 8, 13, 16, 17, 33, 49, 63, 64, 65, 129, 255, 256, 257, 300, 511, 577 };
static int64_t dim(void) { return dims[below((int64_t)(sizeof dims / sizeof *dims))]; }

static void test_floats(void **state)
{
    rng_key = 11;
    for (int i = 0; i < CASES; i++) {
        int64_t m = dim(), n = dim(), k = dim();
        while (m * n * k > LARGEST) *(m >= n && m >= k ? &m : n >= k ? &n : &k) /= 3;
        product q = made((hn_gemm_form)(i % 3), HN_F32, m, n, k, i / 3 % TEMPERS);
        check(&world, &q, i / 3 % TEMPERS == ORDINARY);
        release(&q);
    }
}

/* Many rows and columns: several chunks, strips and passages. */
static void test_large(void **state)
{
    rng_key = 12;
    static const int64_t shape[][3] = { { 1100, 70, 3 }, { 40, 600, 7 },  { 531, 131, 9 }, { 5, 9, 1300 },
                                        { 100, 3, 513 }, { 13, 1536, 5 }, { 7, 1024, 256 } };
    static const hn_type type[] = { HN_F32, HN_F16, HN_BF16, HN_Q8_0, HN_Q4_K };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int form = 0; form < 3 + 2 * 4; form++) {
            hn_type t = form < 3 ? HN_F32 : type[1 + (form - 3) / 2];
            int64_t f = form < 3 ? form : (form - 3) % 2, row = f == HN_GEMM_NT ? shape[i][2] : shape[i][1];
            if (row % (int64_t)hn_type_get(t)->block_elems) continue;
            if (EMULATED && (form + (int)i) % 2) continue; /* each form with every other shape */
            product q = made((hn_gemm_form)f, t, shape[i][0], shape[i][1], shape[i][2], ORDINARY);
            q.p.bf16 = form >= 3 || q.p.bf16;
            check(&world, &q, true);
            release(&q);
        }
}

/* Halves are packed in pairs without going through floats. */
static void test_halves(void **state)
{
    rng_key = 17;
    for (int i = 0; i < CASES; i++) {
        int64_t m = 1 + below(9), n = dim(), k = dim();
        while (m * n * k > LARGEST) *(n >= k ? &n : &k) /= 3;
        product q = made(i & 1 ? HN_GEMM_NN : HN_GEMM_NT, i & 2 ? HN_F16 : HN_BF16, m, n, k, i / 4 % TEMPERS);
        q.p.bf16 = true;
        check(&world, &q, false);
        release(&q);
    }
}

static void test_types(void **state)
{
    rng_key = 13;
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        const hn_type_info *ti = hn_type_get((uint32_t)t);
        if (!ti || !ti->weight || !ti->quantize) continue;
        for (int i = 0; i < 8; i++) {
            int64_t block = ti->block_elems == 1 ? 1 + below(70) : (int64_t)ti->block_elems,
                    row = block * (1 + below(600 / block));
            int64_t other = 1 + below(i < 4 ? 20 : 90), m = 1 + below(15);
            product q = made(i % 2 ? HN_GEMM_NN : HN_GEMM_NT, (hn_type)t, m, i % 2 ? row : other, i % 2 ? other : row,
                             i < 6 ? ORDINARY : WILD);
            check(&world, &q, i < 6);
            release(&q);
        }
    }
}

/* Sums that fall on either side of 2^-126 before they are rounded to a subnormal: the odd element of a pair
 * makes 2^-126, the even one adds or takes 2^-151 to 2^-149. */
static float edge(int64_t k, int power)
{
    float sign = rnd() % 2 ? 1.0f : -1.0f;
    return k & 1 ? sign * 0x1p-63f : sign * ldexpf(1 + (float)below(128) / 128, power);
}

static void test_flush(void **state)
{
    rng_key = 14;
    for (int i = 0; i < 60; i++) {
        product q = made((hn_gemm_form)(i % 3), HN_F32, 7, 33, i % 2 ? 2 : 9, ORDINARY);
        q.p.bf16 = true;
        q.p.add = false; /* or C's size hides it */
        for (int64_t m = 0; m < q.p.m; m++)
            for (int64_t k = 0; k < q.p.k; k++)
                q.a[q.p.form == HN_GEMM_TN ? k * q.p.lda + m : m * q.p.lda + k] = edge(k, -75);
        for (int64_t n = 0; n < q.p.n; n++)
            for (int64_t k = 0; k < q.p.k; k++) {
                int64_t row = q.p.form == HN_GEMM_NT ? n : k, col = q.p.form == HN_GEMM_NT ? k : n;
                float f = q.b[row * q.b_cols + col] = edge(k, -76);
                memcpy(q.w + (size_t)row * q.p.b_row_bytes + sizeof f * (size_t)col, &f, sizeof f);
            }
        check(&world, &q, false);
        release(&q);
    }
}

static void test_decoders(void **state)
{
    const machine *w = &world;
    rng_key = 15;
    static unsigned char src[8 * 1024 + 1];
    static float y[1024], want[1024];
    for (int i = 0; i < w->n; i++)
        for (int t = 0; t < HN_TYPE_COUNT; t++) {
            if (!w->k[i]->decode[t]) continue;
            const hn_type_info *ti = hn_type_get((uint32_t)t);
            for (int64_t n = ti->block_elems; n <= 1024; n += ti->block_elems * (1 + below(3)))
                for (int at = 0; at < 2; at++) {
                    for (size_t b = 0; b < sizeof src; b++)
                        src[b] = (unsigned char)(rnd() & (n & 1 || rnd() % 2 ? 0xFF : 0x3F));
                    w->k[i]->decode[t](y, src + at, n);
                    ti->dequantize(want, src + at, n);
                    same(y, want, n, ti->name, w->k[i]->name, n);
                }
        }
}

/* ---- gradients ------------------------------------------------------------------------------------- */

enum { LONGEST = 530 };
static float v[6][LONGEST + 1], got[2][LONGEST + 2], want[2][LONGEST + 2];

/* d(act)/dg in double, and act itself */
static double slope_of(bool gelu, double g, double *act)
{
    double root = sqrt(2 / 3.14159265358979323846), t = tanh(root * (g + 0.044715 * g * g * g)), s = 1 / (1 + exp(-g));
    *act = gelu ? 0.5 * g * (1 + t) : g * s;
    if (!gelu) return s * (1 + g * (1 - s));
    return 0.5 * (1 + t) + 0.5 * g * (1 - t * t) * root * (1 + 3 * 0.044715 * g * g);
}

static void check_gate_grad(bool gelu)
{
    const machine *w = &world;
    rng_key = gelu ? 21 : 16;
    void (*scalar)(float *, float *, const float *, const float *, const float *, int64_t) =
        gelu ? hn_kernels_scalar.gelu_mul_grad : hn_kernels_scalar.silu_mul_grad;
    for (int n = 1; n <= LONGEST; n += n < 70 ? 1 : 23)
        for (int temper = 0; temper < TEMPERS; temper++) {
            for (int i = 0; i < 3; i++)
                for (int j = 0; j <= n; j++) v[i][j] = drawn(temper) * (temper == ORDINARY ? 9.0f : 1.0f);
            const float *gh = v[0] + 1, *g = v[1] + 1, *u = v[2] + 1;
            scalar(want[0], want[1], gh, g, u, n);
            for (int j = 0; temper == ORDINARY && j < n; j++) {
                double act, slope = slope_of(gelu, (double)g[j], &act), gg = (double)gh[j] * (double)u[j] * slope,
                            gu = (double)gh[j] * act;
                assert_true(fabs((double)want[0][j] - gg) <= 2e-6 * fabs((double)gh[j] * (double)u[j]) &&
                            fabs((double)want[1][j] - gu) <=
                                (gelu ? 2e-6 * fabs((double)gh[j]) : 1e-6 * fabs(gu)) + 1e-30);
            }
            for (int i = 0; i < w->n; i++)
                for (int place = 0; place < 3; place++) { /* apart; over gh and u; over g and u */
                    memcpy(v[3] + 1, gh, sizeof(float) * (size_t)n);
                    memcpy(v[4] + 1, g, sizeof(float) * (size_t)n);
                    memcpy(v[5] + 1, u, sizeof(float) * (size_t)n);
                    float *gg = place == 0 ? got[0] + 1 : v[place == 1 ? 3 : 4] + 1,
                          *gu = place == 0 ? got[1] + 1 : v[5] + 1;
                    got[0][n + 1] = got[1][n + 1] = 77.0f;
                    (gelu ? w->k[i]->gelu_mul_grad : w->k[i]->silu_mul_grad)(gg, gu, v[3] + 1, v[4] + 1, v[5] + 1, n);
                    same(gg, want[0], n, gelu ? "gelu_mul_grad, gg" : "silu_mul_grad, gg", w->k[i]->name, n);
                    same(gu, want[1], n, gelu ? "gelu_mul_grad, gu" : "silu_mul_grad, gu", w->k[i]->name, n);
                    assert_true(got[0][n + 1] == 77.0f && got[1][n + 1] == 77.0f);
                }
            if (!gelu) continue;
            scalar(want[0], NULL, gh, g, NULL, n); /* without a gate, over g */
            for (int i = 0; i < w->n; i++) {
                memcpy(v[4] + 1, g, sizeof(float) * (size_t)n);
                w->k[i]->gelu_mul_grad(v[4] + 1, NULL, gh, v[4] + 1, NULL, n);
                same(v[4] + 1, want[0], n, "gelu_mul_grad without u", w->k[i]->name, n);
            }
        }
}
static void test_silu_mul_grad(void **state) { check_gate_grad(false); }
static void test_gelu_mul_grad(void **state) { check_gate_grad(true); }

static void test_to_bf16(void **state)
{
    const machine *w = &world;
    rng_key = 18;
    static uint16_t h[LONGEST + 2], right[LONGEST + 1];
    for (int n = 1; n <= LONGEST; n += n < 70 ? 1 : 23)
        for (int temper = 0; temper < TEMPERS; temper++) {
            float *x = v[0] + 1;
            for (int j = 0; j < n; j++) x[j] = rnd() % 4 ? drawn(temper) : hn_bits_f32((uint32_t)rnd());
            for (int j = 0; j < n; j++) right[j] = hn_f32_to_bf16(x[j]);
            for (int i = 0; i < w->n; i++) {
                h[n + 1] = 7777;
                w->k[i]->to_bf16(h + 1, x, n);
                assert_memory_equal(h + 1, right, sizeof *h * (size_t)n);
                assert_int_equal(h[n + 1], 7777);
            }
        }
}

static void test_rms_norm_grad(void **state)
{
    const machine *w = &world;
    rng_key = 17;
    for (int n = 1; n <= LONGEST; n += n < 70 ? 1 : 23)
        for (int temper = 0; temper < TEMPERS; temper++) {
            for (int i = 0; i < 4; i++)
                for (int j = 0; j <= n; j++) v[i][j] = drawn(temper);
            const float *gy = v[0] + 1, *x = v[1] + 1, *wt = v[2] + 1, *gx = v[3] + 1;
            memcpy(want[0], gx, sizeof(float) * (size_t)n);
            hn_kernels_scalar.rms_norm_grad(want[0], gy, x, wt, n, 1e-5f);
            if (temper == ORDINARY) {
                double ss = 0, dot = 0, size = 0;
                for (int j = 0; j < n; j++) {
                    ss += (double)x[j] * (double)x[j];
                    dot += (double)gy[j] * (double)wt[j] * (double)x[j];
                    size += fabs((double)gy[j] * (double)wt[j] * (double)x[j]);
                }
                double r = 1 / sqrt(ss / n + 1e-5);
                for (int j = 0; j < n; j++) {
                    double add = r * ((double)gy[j] * (double)wt[j] - (double)x[j] * r * r * dot / n),
                           room = r * (fabs((double)gy[j] * (double)wt[j]) + fabs((double)x[j]) * r * r * size / n);
                    assert_true(fabs((double)want[0][j] - ((double)gx[j] + add)) <=
                                1e-5 * room + 1e-6 * fabs((double)gx[j]));
                }
            }
            for (int i = 0; i < w->n; i++) {
                memcpy(got[0] + 1, gx, sizeof(float) * (size_t)n);
                got[0][0] = got[0][n + 1] = 77.0f;
                w->k[i]->rms_norm_grad(got[0] + 1, gy, x, wt, n, 1e-5f);
                same(got[0] + 1, want[0], n, "rms_norm_grad", w->k[i]->name, n);
                assert_true(got[0][0] == 77.0f && got[0][n + 1] == 77.0f);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_types),         cmocka_unit_test(test_flush),
        cmocka_unit_test(test_halves),        cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_to_bf16),       cmocka_unit_test(test_silu_mul_grad),
        cmocka_unit_test(test_gelu_mul_grad), cmocka_unit_test(test_rms_norm_grad),
    };
    if (!start(&world)) return 1;
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    stop(&world);
    return bad;
}
