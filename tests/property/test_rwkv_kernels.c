/* The kernels of RWKV, every level against the scalar oracle by memcmp: recurrences of all
 * head sizes, norms, interpolations, functions of one element; tails, unaligned rows,
 * canaries, zeros, denormals, infinities and NaN. And their values against libm. */
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng_key, rng_at;
static uint64_t rnd(void) { return hn_rand64(rng_key, rng_at++); }
static float rndf(void) { return (float)(int32_t)(rnd() >> 32) * 0x1p-31f; } /* [-1, 1) */

enum { ORDINARY, WILD, NOT_FINITE, TEMPERS };

static float drawn(int temper)
{
    if (temper == NOT_FINITE && rnd() % 97 == 0) return rnd() % 3 ? NAN : rnd() % 2 ? INFINITY : -INFINITY;
    switch (temper == ORDINARY ? 99 : rnd() % 12) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return rndf() * 0x1p-130f; /* denormal */
    case 3: return rndf() * 1e4f;
    case 4: return rndf() * 1e-20f;
    default: return rndf() * 3.0f;
    }
}

/* Every table that is to say the same as the first. */
static int tables(const hn_kernels *list[HN_CPU_LEVELS + 1])
{
    int n = 0;
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) list[n++] = hn_kernels_get((hn_cpu_level)l);
    list[n++] = &hn_kernels_scalar; /* without the FMA instruction */
    return n;
}

/* The same bits; of a NaN only that it is one, for an instruction may pass on any of several. */
static void same(const float *a, const float *b, size_t n, const char *what, const char *level, int size)
{
    for (size_t i = 0; i < n; i++)
        if (hn_f32_bits(a[i]) != hn_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s on %s, n %d: element %zu is %.9g, the oracle says %.9g", what, level, size, i, (double)a[i],
                     (double)b[i]);
}

/* ---- recurrences ---------------------------------------------------------------------------------- */

enum { GUARD = 16, MAX_N = HN_MAX_WKV, N_STEP = 3 };
static const float canary = 12345.678f;
#ifdef HN_EMULATED
enum { STEP = 19 }; /* beyond 70 channels, those of some sizes */
#else
enum { STEP = 1 };
#endif

/* Memory of a head, shifted by some floats so that nothing is aligned, between canaries. */
typedef struct head {
    float s[MAX_N * MAX_N + 2 * GUARD + 4], out[N_STEP][MAX_N + 2 * GUARD + 4], v_first[N_STEP][MAX_N + 2 * GUARD + 4];
} head;
static head heads[2];
static float in[N_STEP][12][MAX_N + 4];

static void fill(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = canary;
}
static void guarded(const float *p, size_t at, size_t n, size_t all, const char *what, const char *level, int size)
{
    for (size_t i = 0; i < all; i++)
        if ((i < at || i >= at + n) && hn_f32_bits(p[i]) != hn_f32_bits(canary))
            fail_msg("%s on %s, n %d: wrote %s its place", what, level, size, i < at ? "before" : "behind");
}

static void run_head(head *h, const hn_kernels *k, bool seven, bool first_layer, int n, int shift, const float *s0)
{
    fill(h->s, sizeof h->s / sizeof *h->s);
    memcpy(h->s + GUARD + shift, s0, (size_t)n * (size_t)n * sizeof *s0);
    for (int t = 0; t < N_STEP; t++) {
        float(*x)[MAX_N + 4] = in[t];
        fill(h->out[t], sizeof h->out[t] / sizeof h->out[t][0]);
        fill(h->v_first[t], sizeof h->v_first[t] / sizeof h->v_first[t][0]);
        if (seven && !first_layer) memcpy(h->v_first[t] + GUARD + shift, x[11] + shift, (size_t)n * sizeof(float));
        hn_wkv a = { .s = h->s + GUARD + shift,
                     .out = h->out[t] + GUARD + shift,
                     .r = x[0] + shift,
                     .k = x[1] + shift,
                     .v = x[2] + shift,
                     .w = x[3] + shift,
                     .g = x[4] + shift,
                     .ln_w = x[5] + shift,
                     .ln_b = x[6] + shift,
                     .n = n,
                     .eps = 64e-5f };
        if (seven) {
            a.a = x[7] + shift, a.v_mix = first_layer ? NULL : x[8] + shift, a.v_first = h->v_first[t] + GUARD + shift;
            a.k_k = x[9] + shift, a.k_a = x[10] + shift, a.r_k = x[5] + shift;
            k->wkv7(&a);
        } else {
            a.first = x[7] + shift;
            k->wkv6(&a);
        }
    }
}

static void recurrences_match_scalar(void **state)
{
    static float s0[MAX_N * MAX_N];
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    rng_key = 21, rng_at = 0;
    for (int n = 1; n <= MAX_N; n += n < 70 ? 1 : n + STEP > MAX_N && n < MAX_N ? MAX_N - n : STEP)
        for (int rep = 0; rep < (n <= 80 || n % 16 == 0 ? 6 : 1); rep++) {
            bool seven = rep % 2 == 0, first_layer = rep % 4 == 0;
            int shift = (n + rep) % 4, temper = rep < 4 ? (rep + n) % 2 : NOT_FINITE;
            const char *what = seven ? "wkv7" : "wkv6";
            for (int i = 0; i < n * n; i++) s0[i] = drawn(temper == NOT_FINITE ? WILD : temper);
            for (int t = 0; t < N_STEP; t++)
                for (int v = 0; v < 12; v++)
                    for (int i = 0; i < n + 4; i++) in[t][v][i] = drawn(temper);
            if (rep == 2)
                for (int t = 0; t < N_STEP; t++) memset(in[t][1], 0, sizeof in[t][1]); /* no keys: nothing to norm */
            for (int l = 0; l < n_table; l++) {
                head *h = &heads[l > 0];
                const char *level = l == n_table - 1 ? "scalar without fma" : list[l]->name;
                size_t at = (size_t)(GUARD + shift);
                run_head(h, list[l], seven, first_layer, n, shift, s0);
                guarded(h->s, at, (size_t)(n * n), sizeof h->s / sizeof *h->s, what, level, n);
                same(h->s + at, heads[0].s + at, (size_t)(n * n), "state", level, n);
                for (int t = 0; t < N_STEP; t++) {
                    guarded(h->out[t], at, (size_t)n, sizeof h->out[t] / sizeof(float), what, level, n);
                    guarded(h->v_first[t], at, seven ? (size_t)n : 0, sizeof h->v_first[t] / sizeof(float), what, level,
                            n);
                    same(h->out[t] + at, heads[0].out[t] + at, (size_t)n, what, level, n);
                    same(h->v_first[t] + at, heads[0].v_first[t] + at, (size_t)n, "v_first", level, n);
                    if (temper == ORDINARY)
                        for (int i = 0; i < n; i++) assert_true(isfinite(h->out[t][at + (size_t)i]));
                }
            }
        }
}

/* Against the equations in double: what the oracle is. */
static double sigma(double x) { return 1.0 / (1.0 + exp(-x)); }
static void normed(double *y, const hn_wkv *a)
{
    double mean = 0, var = 0;
    for (int i = 0; i < a->n; i++) mean += y[i] / a->n;
    for (int i = 0; i < a->n; i++) var += (y[i] - mean) * (y[i] - mean) / a->n;
    for (int i = 0; i < a->n; i++)
        y[i] = (y[i] - mean) / sqrt(var + (double)a->eps) * (double)a->ln_w[i] + (double)a->ln_b[i];
}
static void recurrences_follow_the_equations(void **state)
{
    static float s[MAX_N * MAX_N];
    static double want[MAX_N * MAX_N];
    rng_key = 22, rng_at = 0;
    for (int n = 1; n <= MAX_N; n = n < 8 ? n + 1 : n * 2 - n / 3)
        for (int which = 0; which < 3; which++) { /* rwkv6, rwkv7 in the first layer and in others */
            float out[MAX_N], first[MAX_N], x[11][MAX_N];
            double y[MAX_N], z[MAX_N], kk[MAX_N], k[MAX_N], v[MAX_N], d[MAX_N], b[MAX_N], worst = 0, top = 0, len = 0,
                                                                                          bonus = 0;
            for (int i = 0; i < n * n; i++) s[i] = rndf(), want[i] = (double)s[i];
            for (int j = 0; j < 11; j++)
                for (int i = 0; i < n; i++) x[j][i] = rndf() * 2.0f;
            for (int i = 0; i < n; i++) first[i] = x[0][n - 1 - i];
            hn_wkv a = { .s = s,
                         .out = out,
                         .r = x[0],
                         .k = x[1],
                         .v = x[2],
                         .w = x[3],
                         .g = x[4],
                         .ln_w = x[5],
                         .ln_b = x[6],
                         .n = n,
                         .eps = 64e-5f };
            if (which == 0) {
                a.first = x[7];
                for (int j = 0; j < n; j++) y[j] = 0;
                for (int i = 0; i < n; i++)
                    for (int j = 0; j < n; j++) {
                        double kv = (double)x[1][i] * (double)x[2][j], *e = &want[i * n + j];
                        y[j] += (double)x[0][i] * (*e + (double)x[7][i] * kv);
                        *e = *e * exp(-exp((double)x[3][i])) + kv;
                    }
                normed(y, &a);
                hn_kernels_scalar.wkv6(&a);
            } else {
                a.a = x[7], a.k_k = x[8], a.k_a = x[9], a.r_k = x[10], a.v_first = first,
                a.v_mix = which == 2 ? x[6] : NULL;
                for (int j = 0; j < n; j++) kk[j] = (double)x[1][j] * (double)x[8][j], len += kk[j] * kk[j];
                for (int j = 0; j < n; j++) {
                    double la = sigma((double)x[7][j]);
                    kk[j] /= fmax(sqrt(len), 1e-12);
                    b[j] = kk[j] * la;
                    d[j] = exp(-exp(-0.5) * sigma((double)x[3][j]));
                    k[j] = (double)x[1][j] * (1.0 + (la - 1.0) * (double)x[9][j]);
                    v[j] = which == 1 ? (double)x[2][j]
                                      : (double)x[2][j] + ((double)first[j] - (double)x[2][j]) * sigma((double)x[6][j]);
                    bonus += (double)x[0][j] * k[j] * (double)x[10][j];
                }
                for (int i = 0; i < n; i++) {
                    z[i] = y[i] = 0;
                    for (int j = 0; j < n; j++) z[i] -= want[j * n + i] * kk[j];
                    for (int j = 0; j < n; j++) {
                        want[j * n + i] = want[j * n + i] * d[j] + v[i] * k[j] + z[i] * b[j];
                        y[i] += want[j * n + i] * (double)x[0][j];
                    }
                }
                normed(y, &a);
                for (int i = 0; i < n; i++) y[i] += v[i] * bonus;
                hn_kernels_scalar.wkv7(&a);
                for (int i = 0; i < n && which == 1; i++) assert_true(hn_f32_bits(first[i]) == hn_f32_bits(x[2][i]));
            }
            for (int i = 0; i < n; i++)
                y[i] *= (double)x[4][i], worst = fmax(worst, fabs(y[i] - (double)out[i])), top = fmax(top, fabs(y[i]));
            if (!(worst <= 2e-5 * fmax(top, 1.0))) fail_msg("case %d, n %d: off by %g of %g", which, n, worst, top);
            for (int i = 0; i < n * n; i++)
                if (!(fabs(want[i] - (double)s[i]) <= 2e-5))
                    fail_msg("case %d, n %d: state %d is %g, expected %g", which, n, i, (double)s[i], want[i]);
        }
}

/* ---- rows --------------------------------------------------------------------------------------------- */

enum { MAX_ROW = 700 };

static void rows_match_scalar(void **state)
{
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    static float x[4][MAX_ROW + 4], y[6][2][MAX_ROW + 2 * GUARD + 4];
    static const char *const names[] = { "layer_norm",      "layer_norm in place", "lerp",
                                         "lerp with delta", "lerp into delta",     "layer_norm without bias" };
    rng_key = 23, rng_at = 0;
    for (int n = 1; n <= MAX_ROW; n += n < 70 ? 1 : n < 250 || n > 270 ? 29 : 1)
        for (int temper = 0; temper < TEMPERS; temper++) {
            int shift = n % 4;
            size_t at = (size_t)(GUARD + shift);
            for (int j = 0; j < 4; j++)
                for (int i = 0; i < n + 4; i++) x[j][i] = drawn(temper);
            for (int l = 0; l < n_table; l++) {
                int me = l > 0;
                const char *level = l == n_table - 1 ? "scalar without fma" : list[l]->name;
                for (int j = 0; j < 6; j++) fill(y[j][me], MAX_ROW + 2 * GUARD + 4);
                memcpy(y[1][me] + at, x[0] + shift, (size_t)n * sizeof(float));
                memcpy(y[4][me] + at, x[3] + shift, (size_t)n * sizeof(float));
                list[l]->layer_norm(y[0][me] + at, x[0] + shift, x[1] + shift, x[2] + shift, n, 1e-5f);
                list[l]->layer_norm(y[1][me] + at, y[1][me] + at, x[1] + shift, x[2] + shift, n, 1e-5f);
                list[l]->layer_norm(y[5][me] + at, x[0] + shift, x[1] + shift, NULL, n, 1e-5f);
                list[l]->lerp(y[2][me] + at, x[0] + shift, x[1] + shift, x[2] + shift, NULL, n);
                list[l]->lerp(y[3][me] + at, x[0] + shift, x[1] + shift, x[2] + shift, x[3] + shift, n);
                list[l]->lerp(y[4][me] + at, x[0] + shift, x[1] + shift, x[2] + shift, y[4][me] + at, n);
                for (int j = 0; j < 6; j++) {
                    same(y[j][me] + at, y[j][0] + at, (size_t)n, names[j], level, n);
                    guarded(y[j][me], at, (size_t)n, MAX_ROW + 2 * GUARD + 4, names[j], level, n);
                }
                same(y[1][me] + at, y[0][me] + at, (size_t)n, names[1], level, n);
                same(y[4][me] + at, y[3][me] + at, (size_t)n, names[4], level, n);
            }
        }
}

static void layer_norm_is_accurate(void **state)
{
    static float x[4096], w[4096], b[4096], y[4096];
    rng_key = 24, rng_at = 0;
    for (int n = 1; n <= 4096; n = n * 3 / 2 + 1) {
        double mean = 0, var = 0;
        for (int i = 0; i < n; i++) x[i] = 5.0f + rndf(), w[i] = rndf(), b[i] = rndf(), mean += (double)x[i] / n;
        for (int i = 0; i < n; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
        hn_kernels_scalar.layer_norm(y, x, w, b, n, 1e-5f);
        for (int i = 0; i < n; i++) {
            double want = ((double)x[i] - mean) / sqrt(var + 1e-5) * (double)w[i] + (double)b[i];
            if (!(fabs(want - (double)y[i]) <= 5e-6)) fail_msg("n %d: %g, expected %g", n, (double)y[i], want);
        }
    }
}

/* ---- functions of one element ---------------------------------------------------------------------------- */

static const char *const map_names[HN_MAP_KINDS] = { "none",           "tanh", "sigmoid",  "silu",
                                                     "square of relu", "gelu", "softplus", "gelu by erf" };
static double exactly(hn_map m, double x)
{
    switch (m) {
    case HN_MAP_TANH: return tanh(x);
    case HN_MAP_SIGMOID: return sigma(x);
    case HN_MAP_SILU: return x * sigma(x);
    case HN_MAP_GELU: return x * sigma(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x));
    case HN_MAP_SOFTPLUS: return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case HN_MAP_GELU_ERF: return x * 0.5 * erfc(-x / sqrt(2.0));
    default: return x > 0 ? x * x : 0;
    }
}

static void maps_match_scalar(void **state)
{
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    static float x[MAX_ROW + 4], y[2][MAX_ROW + 2 * GUARD + 4];
    rng_key = 25, rng_at = 0;
    for (int m = HN_MAP_TANH; m < HN_MAP_KINDS; m++)
        for (int n = 1; n <= MAX_ROW; n += n < 70 ? 1 : 29)
            for (int temper = 0; temper < TEMPERS; temper++) {
                size_t at = (size_t)(GUARD + n % 4);
                for (int i = 0; i < n; i++) x[i] = drawn(temper) * (i % 5 ? 1.0f : 40.0f);
                for (int l = 0; l < n_table; l++) {
                    const char *level = l == n_table - 1 ? "scalar without fma" : list[l]->name;
                    fill(y[l > 0], MAX_ROW + 2 * GUARD + 4);
                    memcpy(y[l > 0] + at, x, (size_t)n * sizeof *x);
                    list[l]->map[m](y[l > 0] + at, n);
                    same(y[l > 0] + at, y[0] + at, (size_t)n, map_names[m], level, n);
                    guarded(y[l > 0], at, (size_t)n, MAX_ROW + 2 * GUARD + 4, map_names[m], level, n);
                }
            }
}

/* Over all magnitudes, both sides of where a formula changes, and at the ends. */
static void maps_are_accurate_and_total(void **state)
{
    for (int m = HN_MAP_TANH; m < HN_MAP_KINDS; m++) {
        double worst = 0;
        for (uint32_t u = 0; u < 0x7f800000u; u += u < 0x3c000000u ? 0x9123u : 0x1523u)
            for (int sign = 0; sign < 2; sign++) {
                float x = hn_bits_f32(u | (uint32_t)sign << 31), y = x;
                hn_kernels_scalar.map[m](&y, 1);
                double want = exactly((hn_map)m, (double)x), e = fabs(want - (double)y);
                if (fabs(want) > (double)3.4e38f) continue; /* its square is none */
                if (m == HN_MAP_GELU && fabsf(x) > 1e30f) continue;
                if (!isfinite(y)) fail_msg("%s of %g is %g", map_names[m], (double)x, (double)y);
                /* of GELU against x: its tail is the exponential of a cube */
                double size = m == HN_MAP_GELU || m == HN_MAP_GELU_ERF ? 10 * fabs((double)x) : fabs(want);
                worst = fmax(worst, e / fmax(size, 1e-30));
                if (!(e <= 4e-7 * size + 1e-36))
                    fail_msg("%s of %.9g is %.9g, expected %.9g", map_names[m], (double)x, (double)y, want);
            }
        printf("#  %-14s largest relative error %.2g\n", map_names[m], worst);
        float ends[3] = { INFINITY, -INFINITY, NAN };
        hn_kernels_scalar.map[m](ends, 3);
        assert_true(isnan(ends[2]));
        if (m == HN_MAP_TANH) assert_true(ends[0] == 1.0f && ends[1] == -1.0f);
        if (m == HN_MAP_SIGMOID) assert_true(ends[0] == 1.0f && ends[1] >= 0.0f && ends[1] < 1e-30f);
        if (m == HN_MAP_SQRELU || m == HN_MAP_GELU_ERF) assert_true(isinf(ends[0]) && ends[1] == 0.0f);
    }
}

/* Apertus' layers: as they begin to be trained, and others. */
static const hn_xielu xielus[] = { { 0.8f, 1.3f, 0.5f, -1e-6f },
                                   { 0.03f, 0.51f, 0.5f, -1e-6f },
                                   { 2.5f, 0.7f, 0.0f, 0.0f },
                                   { 1.0f, -0.4f, 0.25f, -0.6f } };
enum { N_XIELU = sizeof xielus / sizeof *xielus };

static void xielu_matches_scalar(void **state)
{
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    static float x[MAX_ROW + 4], y[2][MAX_ROW + 2 * GUARD + 4];
    rng_key = 26, rng_at = 0;
    for (int v = 0; v < N_XIELU; v++)
        for (int n = 1; n <= MAX_ROW; n += n < 70 ? 1 : 29)
            for (int temper = 0; temper < TEMPERS; temper++) {
                size_t at = (size_t)(GUARD + n % 4);
                for (int i = 0; i < n; i++) x[i] = drawn(temper) * (i % 5 ? 1.0f : 40.0f);
                for (int l = 0; l < n_table; l++) {
                    const char *level = l == n_table - 1 ? "scalar without fma" : list[l]->name;
                    fill(y[l > 0], MAX_ROW + 2 * GUARD + 4);
                    memcpy(y[l > 0] + at, x, (size_t)n * sizeof *x);
                    list[l]->xielu(y[l > 0] + at, n, &xielus[v]);
                    same(y[l > 0] + at, y[0] + at, (size_t)n, "xielu", level, n);
                    guarded(y[l > 0], at, (size_t)n, MAX_ROW + 2 * GUARD + 4, "xielu", level, n);
                }
            }
}

/* Both terms may cancel, but no more than a rounding of the larger is lost, however small x is. */
static void xielu_is_accurate(void **state)
{
    double worst = 0;
    for (int v = 0; v < N_XIELU; v++) {
        const hn_xielu *a = &xielus[v];
        for (uint32_t u = 0; u < 0x5d000000u; u += u < 0x3c000000u ? 0x9123u : 0x1523u)
            for (int sign = 0; sign < 2; sign++) {
                float y = hn_bits_f32(u | (uint32_t)sign << 31);
                const double x = (double)y, m = fmin(x, (double)a->eps);
                double one = x > 0 ? (double)a->alpha_p * x * x : (expm1(m) - x) * (double)a->alpha_n;
                if (x <= 0 && m == x && x > -1e-3) one = (x * x / 2 + x * x * x / 6) * (double)a->alpha_n;
                const double other = (double)a->beta * x, size = fabs(one) + fabs(other);
                hn_kernels_scalar.xielu(&y, 1, a);
                const double e = fabs(one + other - (double)y);
                worst = fmax(worst, e / fmax(size, 1e-30));
                if (!(e <= 6e-7 * size + 1e-36))
                    fail_msg("xielu of %.9g is %.9g, expected %.9g", x, (double)y, one + other);
            }
    }
    printf("#  xielu          largest error, of its terms %.2g\n", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrences_match_scalar), cmocka_unit_test(recurrences_follow_the_equations),
        cmocka_unit_test(rows_match_scalar),        cmocka_unit_test(layer_norm_is_accurate),
        cmocka_unit_test(maps_match_scalar),        cmocka_unit_test(maps_are_accurate_and_total),
        cmocka_unit_test(xielu_matches_scalar),     cmocka_unit_test(xielu_is_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
