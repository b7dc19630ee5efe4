/* The kernels of hybrids, every level against the scalar oracle by memcmp: convolutions, the gated delta rule, Mamba
 * and Mamba-2; all tails, nothing aligned, canaries, zeros, denormals, and NaN. And the equations in double. */
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX_N = 160, GUARD = 16, ROOM = MAX_N + 2 * GUARD + 4, N_STEP = 3, N_ROW = 8 };
static const float canary = 12345.678f;
static uint64_t rng_at;
static uint64_t rnd(void) { return hn_rand64(77, rng_at++); }
static float rndf(void) { return (float)(int32_t)(rnd() >> 32) * 0x1p-31f; } /* [-1, 1) */
static float drawn(bool wild)
{
    switch (wild ? rnd() % 16 : 99) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return rndf() * 0x1p-130f;
    case 3: return rndf() * 1e4f;
    case 4: return rnd() % 64 ? 1.0f : NAN;
    default: return rndf() * 2.0f;
    }
}

static int tables(const hn_kernels *list[HN_CPU_LEVELS + 1])
{
    int n = 0;
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) list[n++] = hn_kernels_get((hn_cpu_level)l);
    list[n++] = &hn_kernels_scalar; /* without the FMA instruction */
    return n;
}

/* The same bits; of a NaN only that it is one. */
static void same(const float *a, const float *b, size_t n, const char *what, const char *level, int size)
{
    for (size_t i = 0; i < n; i++)
        if (hn_f32_bits(a[i]) != hn_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s on %s, n %d: element %zu is %.9g, the oracle says %.9g", what, level, size, i, (double)a[i],
                     (double)b[i]);
}

static float in[N_STEP][N_ROW][ROOM], state[2][MAX_N * MAX_N + 2 * GUARD], out[2][N_STEP][ROOM];

static void begin(int l, const float *s0, size_t n)
{
    for (size_t i = 0; i < sizeof state[l] / sizeof(float); i++) state[l][i] = canary;
    for (int t = 0; t < N_STEP; t++)
        for (int i = 0; i < ROOM; i++) out[l][t][i] = canary;
    memcpy(state[l] + GUARD, s0, n * sizeof *s0);
}

/* All of both, canaries and all, are as the oracle's; and it left its own alone. */
static void end(int l, size_t n_state, int n, const char *what, const char *level)
{
    same(state[l], state[0], sizeof state[l] / sizeof(float), "state", level, n);
    same(&out[l][0][0], &out[0][0][0], sizeof out[l] / sizeof(float), what, level, n);
    assert_true(state[l][GUARD - 1] == canary && state[l][GUARD + n_state] == canary);
    for (int t = 0; t < N_STEP; t++)
        assert_true(out[l][t][GUARD] == canary && out[l][t][GUARD + 1 + n] == canary); /* it begins at GUARD + 1 */
}

static void draw(bool wild)
{
    for (int t = 0; t < N_STEP; t++)
        for (int r = 0; r < N_ROW; r++)
            for (int i = 0; i < ROOM; i++) in[t][r][i] = drawn(wild);
}

static void delta_of(const hn_kernels *k, int l, int n, bool each, bool sigmoid)
{
    for (int t = 0; t < N_STEP; t++) {
        float(*x)[ROOM] = in[t];
        const hn_delta_head a = { .s = state[l] + GUARD,
                                  .out = out[l][t] + GUARD + 1,
                                  .q = x[0] + 1,
                                  .k = x[1] + 2,
                                  .v = x[2] + 3,
                                  .gate = x[3] + 1,
                                  .norm = x[4] + 2,
                                  .decay = x[5] + 1,
                                  .a = -0.4f,
                                  .beta = 0.7f,
                                  .eps = 1e-6f,
                                  .each = each,
                                  .sigmoid = sigmoid,
                                  .n = n };
        k->delta(&a);
    }
}

static void delta_matches_scalar(void **unused)
{
    static float s0[MAX_N * MAX_N];
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    for (int n = 1; n <= MAX_N; n += n < 40 ? 1 : 24)
        for (int rep = 0; rep < 4; rep++) {
            draw(rep & 1);
            for (int i = 0; i < n * n; i++) s0[i] = drawn(rep & 1);
            for (int l = 0; l < n_table; l++) {
                begin(l > 0, s0, (size_t)(n * n));
                delta_of(list[l], l > 0, n, rep & 1, rep & 2);
                end(l > 0, (size_t)(n * n), n, "delta", l == n_table - 1 ? "scalar without fma" : list[l]->name);
            }
        }
}

static void ssm_of(const hn_kernels *k, int l, int p, int n)
{
    for (int t = 0; t < N_STEP; t++) {
        const hn_ssm_head a = { .s = state[l] + GUARD,
                                .y = out[l][t] + GUARD + 1,
                                .x = in[t][0] + 1,
                                .b = in[t][1] + 2,
                                .c = in[t][2] + 3,
                                .dt = 0.3f,
                                .decay = 0.9f,
                                .d = -1.25f,
                                .p = p,
                                .n = n };
        k->ssm(&a);
    }
}

static void ssm_matches_scalar(void **unused)
{
    static float s0[MAX_N * MAX_N];
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    for (int p = 1; p <= MAX_N; p += p < 40 ? 1 : 24)
        for (int rep = 0; rep < 4; rep++) {
            int n = rep < 2 ? 1 + (int)(rnd() % 20) : MAX_N;
            draw(rep & 1);
            for (int i = 0; i < p * n; i++) s0[i] = drawn(rep & 1);
            for (int l = 0; l < n_table; l++) {
                begin(l > 0, s0, (size_t)(p * n));
                ssm_of(list[l], l > 0, p, n);
                end(l > 0, (size_t)(p * n), p, "ssm", l == n_table - 1 ? "scalar without fma" : list[l]->name);
            }
        }
}

static float decays[MAX_N * (MAX_N + 3)];

static void scan_of(const hn_kernels *k, int l, int p, int n)
{
    for (int t = 0; t < N_STEP; t++) {
        const hn_scan_run a = { .s = state[l] + GUARD,
                                .y = out[l][t] + GUARD + 1,
                                .x = in[t][0] + 1,
                                .dt = in[t][1] + 2,
                                .a = decays + 1,
                                .b = in[t][2] + 3,
                                .c = in[t][3] + 1,
                                .d = in[t][4] + 2,
                                .lds = p + p % 3, /* channels of others lie between */
                                .lda = MAX_N + 2,
                                .p = p,
                                .n = n };
        k->scan(&a);
    }
}

static void draw_decays(bool wild)
{
    for (size_t i = 0; i < sizeof decays / sizeof *decays; i++) decays[i] = wild ? drawn(true) : -fabsf(rndf());
}

static void scan_matches_scalar(void **unused)
{
    static float s0[MAX_N * MAX_N];
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    for (int p = 1; p <= MAX_N - 2; p += p < 40 ? 1 : 24)
        for (int rep = 0; rep < 4; rep++) {
            const int n = rep < 2 ? 1 + (int)(rnd() % 20) : MAX_N, ld = p + p % 3;
            draw(rep & 1);
            draw_decays(rep & 1);
            for (int i = 0; i < ld * n; i++) s0[i] = i % ld < p ? drawn(rep & 1) : canary;
            for (int l = 0; l < n_table; l++) {
                begin(l > 0, s0, (size_t)(ld * n));
                scan_of(list[l], l > 0, p, n);
                end(l > 0, (size_t)(ld * n), p, "scan", l == n_table - 1 ? "scalar without fma" : list[l]->name);
                for (int i = 0; i < ld * n; i++) assert_true(i % ld < p || state[l > 0][GUARD + i] == canary);
            }
        }
}

/* Mamba's recurrence as its paper has it: h = exp(Δ·A)·h + Δ·B·x, y = C·h + D·x, in double. */
static void scan_follows_the_equations(void **unused)
{
    enum { P = 37, N = 18, LD = P + P % 3 };
    static double h[N][P];
    static float s0[N * LD];
    draw(false);
    draw_decays(false);
    for (int t = 0; t < N_STEP; t++)
        for (int i = 0; i < ROOM; i++) in[t][1][i] = fabsf(in[t][1][i]); /* steps */
    for (int i = 0; i < N * LD; i++) s0[i] = rndf();
    for (int i = 0; i < N * P; i++) h[i / P][i % P] = (double)s0[i / P * LD + i % P];
    begin(0, s0, N * LD);
    scan_of(&hn_kernels_scalar, 0, P, N);
    for (int t = 0; t < N_STEP; t++)
        for (int i = 0; i < P; i++) {
            const double x = (double)in[t][0][i + 1], dt = (double)in[t][1][i + 2], d = (double)in[t][4][i + 2];
            double y = d * x;
            for (int j = 0; j < N; j++) {
                h[j][i] =
                    exp(dt * (double)decays[1 + j * (MAX_N + 2) + i]) * h[j][i] + dt * (double)in[t][2][j + 3] * x;
                y += (double)in[t][3][j + 1] * h[j][i];
            }
            if (!(fabs(y - (double)out[0][t][GUARD + 1 + i]) <= 2e-5))
                fail_msg("token %d, channel %d: %.8g, expected %.8g", t, i, (double)out[0][t][GUARD + 1 + i], y);
        }
}

static void conv_matches_scalar(void **unused)
{
    static float w[HN_MAX_TAPS * (MAX_N + 3)], nothing[1];
    const hn_kernels *list[HN_CPU_LEVELS + 1];
    int n_table = tables(list);
    for (int n = 1; n <= MAX_N; n += n < 40 ? 1 : 24)
        for (int taps = 1; taps <= 4; taps++) {
            const float *x[HN_MAX_TAPS];
            draw(taps == 3);
            for (size_t i = 0; i < sizeof w / sizeof *w; i++) w[i] = drawn(taps == 3);
            for (int j = 0; j < taps; j++) x[j] = in[0][j] + 1 + j % 3;
            for (int l = 0; l < n_table; l++) {
                begin(l > 0, nothing, 0);
                for (int t = 0; t < 2; t++) {
                    const hn_conv_row a = { .y = out[l > 0][t] + GUARD + 1,
                                            .x = x,
                                            .w = w + 1,
                                            .b = t ? in[1][0] + 1 : NULL,
                                            .n = n,
                                            .ldw = MAX_N + 2,
                                            .taps = taps,
                                            .silu = t };
                    list[l]->conv(&a);
                }
                end(l > 0, 0, n, "conv", l == n_table - 1 ? "scalar without fma" : list[l]->name);
            }
        }
}

/* The delta rule as its paper has it: S = S·γ + k̂ ⊗ β(v − (S·γ)ᵀk̂), o = Sᵀq̂, in double. */
static void delta_follows_the_equations(void **unused)
{
    enum { N = 24 };
    static double s[N][N];
    static float s0[N * N];
    draw(false);
    for (int i = 0; i < N * N; i++) s0[i] = rndf(), s[i / N][i % N] = (double)s0[i];
    begin(0, s0, N * N);
    delta_of(&hn_kernels_scalar, 0, N, true, true);
    for (int t = 0; t < N_STEP; t++) {
        double qq = 1e-6, kk = 1e-6, oo = 0, o[N] = { 0 };
        const float *q = in[t][0] + 1, *k = in[t][1] + 2, *v = in[t][2] + 3, *g = in[t][5] + 1;
        for (int i = 0; i < N; i++) qq += (double)q[i] * (double)q[i], kk += (double)k[i] * (double)k[i];
        for (int j = 0; j < N; j++)
            for (int c = 0; c < N; c++) s[j][c] *= exp((double)-0.4f * (double)g[j]);
        for (int c = 0; c < N; c++) {
            double z = 0;
            for (int j = 0; j < N; j++) z += s[j][c] * (double)k[j] / sqrt(kk);
            for (int j = 0; j < N; j++) s[j][c] += (double)k[j] / sqrt(kk) * (double)0.7f * ((double)v[c] - z);
            for (int j = 0; j < N; j++) o[c] += s[j][c] * (double)q[j] / sqrt(qq) / sqrt((double)N);
            oo += o[c] * o[c] / N;
        }
        for (int c = 0; c < N; c++) {
            double gate = 1 / (1 + exp(-(double)in[t][3][c + 1])), y = (double)out[0][t][GUARD + 1 + c];
            double want = o[c] / sqrt(oo + 1e-6) * (double)in[t][4][c + 2] * gate;
            if (!(fabs(want - y) <= 2e-5)) fail_msg("token %d, value %d: %.8g, expected %.8g", t, c, y, want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_matches_scalar),  cmocka_unit_test(ssm_matches_scalar),
        cmocka_unit_test(scan_matches_scalar),  cmocka_unit_test(scan_follows_the_equations),
        cmocka_unit_test(delta_matches_scalar), cmocka_unit_test(delta_follows_the_equations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
