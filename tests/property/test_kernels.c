/* Every kernel level against the scalar oracle, by memcmp: all types, row ranges,
 * column counts, tails, unaligned rows, canaries around every output. */
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng_key, rng_at;
static uint64_t rnd(void) { return hn_rand64(rng_key, rng_at++); }
static float rndf(void) { return (float)(int32_t)(rnd() >> 32) * 0x1p-31f; } /* [-1, 1) */

/* A value with occasional zeros, denormals and large ones. */
static float rnd_wild(void)
{
    switch (rnd() % 16) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return rndf() * 0x1p-130f;
    case 3: return rndf() * 1e4f;
    default: return rndf();
    }
}

enum { CANARY = 0x5A };

typedef struct geometry { uint32_t elems, bytes; int scale_at[2]; } geometry;
static geometry geometry_of(hn_type t)
{
    switch (t) {
    case HN_F32: return (geometry){ 1, 4, { -1, -1 } };
    case HN_F16: case HN_BF16: return (geometry){ 1, 2, { -1, -1 } };
    case HN_Q8_0: return (geometry){ 32, 34, { 0, -1 } };
    case HN_Q4_0: case HN_IQ4_NL: return (geometry){ 32, 18, { 0, -1 } };
    case HN_Q5_0: return (geometry){ 32, 22, { 0, -1 } };
    case HN_Q4_K: return (geometry){ 256, 144, { 0, 2 } };
    case HN_Q5_K: return (geometry){ 256, 176, { 0, 2 } };
    case HN_IQ4_XS: return (geometry){ 256, 136, { 0, -1 } };
    default: return (geometry){ 256, 210, { 208, -1 } }; /* Q6_K */
    }
}

static void fill_weights(hn_type t, unsigned char *w, size_t n_bytes)
{
    geometry g = geometry_of(t);
    for (size_t i = 0; i < n_bytes; i++) w[i] = (unsigned char)rnd();
    for (size_t i = 0; i + g.bytes <= n_bytes; i += g.bytes) {
        if (t == HN_F32) {
            float f = rnd_wild();
            memcpy(w + i, &f, 4);
        } else if (t == HN_F16 || t == HN_BF16) {
            float f = rnd_wild();
            uint16_t h = t == HN_F16 ? hn_f32_to_f16(f) : hn_f32_to_bf16(f);
            memcpy(w + i, &h, 2);
        } else {
            for (int s = 0; s < 2; s++)
                if (g.scale_at[s] >= 0) {
                    uint16_t h = hn_f32_to_f16(rndf() * (rnd() % 8 ? 0.1f : 1e-7f));
                    memcpy(w + i + g.scale_at[s], &h, 2);
                }
        }
    }
}

static void check_matmul(hn_type t, int64_t n_in, int64_t n_out, int64_t n_col, int64_t r0, int64_t r1, size_t shift)
{
    geometry g = geometry_of(t);
    size_t row = (size_t)(n_in / g.elems) * g.bytes;
    unsigned char *wbuf = malloc(row * (size_t)n_out + 64 + shift), *w = wbuf + shift;
    fill_weights(t, w, row * (size_t)n_out);
    float *xf = malloc((size_t)(n_in * n_col) * sizeof(float));
    for (int64_t i = 0; i < n_in * n_col; i++) xf[i] = rnd_wild();
    hn_act_kind kind = hn_act_kind_of(t);
    size_t xs = hn_act_row_bytes(kind, n_in);
    unsigned char *x[HN_CPU_LEVELS];
    size_t ny = (size_t)(n_out * n_col);
    unsigned char *y[HN_CPU_LEVELS];
    size_t group = hn_packed_group_bytes(t, n_in), n_packed = hn_packed_bytes(t, n_in, n_out);
    unsigned char *packed = aligned_alloc(64, n_packed);
    for (int64_t r = 0; r < n_out; r += HN_PACK_ROWS)
        hn_pack_group(t, packed + (size_t)(r / HN_PACK_ROWS) * group, w + (size_t)r * row, row, (int)(n_out - r < HN_PACK_ROWS ? n_out - r : HN_PACK_ROWS), n_in);
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        const hn_kernels *k = hn_kernels_get((hn_cpu_level)l);
        x[l] = aligned_alloc(64, xs * (size_t)n_col);
        memset(x[l], CANARY, xs * (size_t)n_col);
        for (int64_t c = 0; c < n_col; c++) {
            void *dst = x[l] + (size_t)c * xs;
            if (kind == HN_ACT_Q256) k->quantize256(dst, xf + c * n_in, n_in);
            else if (kind == HN_ACT_Q32) k->quantize32(dst, xf + c * n_in, n_in);
            else memcpy(dst, xf + c * n_in, (size_t)n_in * sizeof(float));
        }
        assert_memory_equal(x[l], x[0], xs * (size_t)n_col);
        y[l] = malloc((ny + 32) * sizeof(float));
        memset(y[l], CANARY, (ny + 32) * sizeof(float));
        hn_mm m = { (float *)y[l] + 16, n_out, w, row, x[l], xs, n_in, n_col, r0, r1, NULL };
        k->matmul[t](&m);
        assert_memory_equal(y[l], y[0], (ny + 32) * sizeof(float));
        /* again with scratch for panels: nothing written beyond it, the same result */
        size_t n_panel = HN_PANEL_BYTES(n_in) / 64 * 64;
        unsigned char *panel = aligned_alloc(64, n_panel + 64);
        memset(panel, CANARY, n_panel + 64);
        memset(y[l], CANARY, (ny + 32) * sizeof(float));
        m.panel = panel;
        k->matmul[t](&m);
        assert_memory_equal(y[l], y[0], (ny + 32) * sizeof(float));
        for (int i = 0; i < 64; i++) assert_int_equal(panel[n_panel + (size_t)i], CANARY);
        /* packed rows give the bits of plain ones, without and with scratch */
        if (r0 % HN_PACK_ROWS == 0)
            for (int scratch = 0; scratch < 2; scratch++) {
                memset(y[l], CANARY, (ny + 32) * sizeof(float));
                m.w = packed, m.w_stride = group, m.panel = scratch ? panel : NULL;
                k->packed[t](&m);
                assert_memory_equal(y[l], y[0], (ny + 32) * sizeof(float));
            }
        for (int i = 0; i < 64; i++) assert_int_equal(panel[n_panel + (size_t)i], CANARY);
        free(panel);
    }
    /* only rows [r0, r1) may be written */
    for (int64_t c = 0; c < n_col; c++)
        for (int64_t r = 0; r < n_out; r++) {
            uint32_t bits;
            memcpy(&bits, (float *)y[0] + 16 + c * n_out + r, 4);
            if (r < r0 || r >= r1) assert_int_equal(bits, 0x5A5A5A5A);
            else assert_int_not_equal(bits, 0x5A5A5A5A);
        }
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) free(x[l]), free(y[l]);
    free(packed);
    free(wbuf);
    free(xf);
}

static const hn_type types[] = { HN_F32, HN_F16, HN_BF16, HN_Q8_0, HN_Q4_0, HN_Q5_0, HN_Q4_K, HN_Q5_K, HN_Q6_K,
                                 HN_IQ4_XS, HN_IQ4_NL };

static void matmul_matches_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hn_type t = types[i];
        int64_t step = geometry_of(t).elems;
        rng_key = 100 + i, rng_at = 0;
        for (int64_t n_col = 1; n_col <= 9; n_col++)
            for (int64_t nb = 1; nb <= (step == 256 ? 3 : 9); nb++)
                check_matmul(t, nb * step, 37, n_col, (int64_t)(rnd() % 5), 37 - (int64_t)(rnd() % 5), step == 1 ? 0 : 2 * (rnd() % 3));
        for (int64_t rows = 1; rows <= 35; rows++) check_matmul(t, 2 * (step < 32 ? 150 : step), rows, 1 + rows % 3, 0, rows, 0);
        if (step == 1)
            for (int64_t n = 1; n <= 530; n += n < 40 ? 1 : 37) check_matmul(t, n, 9, 5, 0, 9, 0);
        for (int64_t n_col = 8; n_col <= 26; n_col += 3) check_matmul(t, 1024 + (step == 32 ? 96 : 0), 75, n_col, 3, 75, 0);
        for (int64_t n_col = 1; n_col <= 26; n_col += n_col < 8 ? 1 : 4) check_matmul(t, 1024 + (step == 32 ? 96 : 0), 91, n_col, 16 * (n_col % 3), 91 - n_col % 2, 0);
        check_matmul(t, 2048, 64, 6, 0, 64, 0);
        check_matmul(t, 512 + (step == 32 ? 32 : 0), 37, 50, 0, 37, 0);
        check_matmul(t, 256, 16, 161, 0, 16, 0);
    }
}

static void quantize_special_values(void **state)
{
    (void)state;
    const float specials[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 0x1p-149f, 0x1p-126f, 0x1p-101f, 0x1p-100f, 3e38f, -3e38f };
    float x[256];
    hn_a256 a[HN_CPU_LEVELS];
    unsigned char b[HN_CPU_LEVELS][320];
    rng_key = 7, rng_at = 0;
    for (size_t s = 0; s < sizeof specials / sizeof *specials; s++)
        for (int where = 0; where < 256; where += 5) {
            float scale = s == 3 || s == 4 ? 0.0f : s >= 5 && s <= 8 ? 0x1p-120f : 1.0f;
            for (int i = 0; i < 256; i++) x[i] = rndf() * scale;
            x[where] = specials[s];
            for (int l = 0; l < HN_CPU_LEVELS; l++) {
                if (!hn_cpu_has((hn_cpu_level)l)) continue;
                hn_kernels_get((hn_cpu_level)l)->quantize256(&a[l], x, 256);
                hn_kernels_get((hn_cpu_level)l)->quantize32(b[l], x, 256);
                assert_memory_equal(&a[l], &a[0], sizeof a[0]);
                assert_memory_equal(b[l], b[0], 256 + 64);
            }
            if (s <= 2) assert_true(isnan(a[0].d));
            for (int i = 0; i < 256; i++) assert_true(a[0].q[i] > -128);
        }
}

/* Halves halfway between codes go to the even one. */
static void quantize_rounds_to_even(void **state)
{
    (void)state;
    float x[256] = { 127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f };
    const int8_t want[7] = { 127, 0, 2, 2, 0, -2, -2 };
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        hn_a256 a;
        hn_kernels_get((hn_cpu_level)l)->quantize256(&a, x, 256);
        assert_memory_equal(a.q, want, 7);
        assert_int_equal(a.bsum[0], 127);
        assert_true(a.d == 1.0f);
    }
}

static void norm_and_silu_match_scalar(void **state)
{
    (void)state;
    float x[700], w[700], u[700];
    float y[HN_CPU_LEVELS][732], z[HN_CPU_LEVELS][732];
    rng_key = 8, rng_at = 0;
    for (int n = 1; n <= 700; n += n < 70 ? 1 : 29)
        for (int rep = 0; rep < 3; rep++) {
            for (int i = 0; i < n; i++) x[i] = rnd_wild() * (rep ? 30.0f : 1.0f), w[i] = rndf(), u[i] = rnd_wild();
            for (int l = 0; l < HN_CPU_LEVELS; l++) {
                if (!hn_cpu_has((hn_cpu_level)l)) continue;
                memset(y[l], CANARY, sizeof y[l]);
                memset(z[l], CANARY, sizeof z[l]);
                hn_kernels_get((hn_cpu_level)l)->rms_norm(y[l] + 16, x, w, n, 1e-5f);
                hn_kernels_get((hn_cpu_level)l)->silu_mul(z[l] + 16, x, u, n);
                assert_memory_equal(y[l], y[0], sizeof y[0]);
                assert_memory_equal(z[l], z[0], sizeof z[0]);
            }
        }
}

/* scalar.c with and without the FMA instruction, and exp on every level. */
static void scalar_is_the_same_with_and_without_fma(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("fma")) return;
    enum { N = 300, ROWS = 5, COLS = 11 };
    static float w[ROWS * N], x[COLS * 304], y[2][ROWS * COLS];
    rng_key = 11, rng_at = 0;
    for (int i = 0; i < ROWS * N; i++) w[i] = rnd_wild();
    for (int i = 0; i < COLS * 304; i++) x[i] = rnd_wild();
    const hn_kernels *k[2] = { &hn_kernels_scalar, &hn_kernels_scalar_fma };
    for (int l = 0; l < 2; l++) {
        hn_mm m = { y[l], ROWS, w, N * sizeof(float), x, 304 * sizeof(float), N, COLS, 0, ROWS, NULL };
        k[l]->matmul[HN_F32](&m);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (int l = 0; l < 2; l++) k[l]->rms_norm(y[l], x, w, ROWS * COLS, 1e-6f);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (int l = 0; l < 2; l++) k[l]->silu_mul(y[l], x, w, ROWS * COLS);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
#endif
}

static void exp_matches_scalar(void **state)
{
    (void)state;
    static float x[4099], y[4099];
    rng_key = 12, rng_at = 0;
    for (int i = 0; i < 4099; i++) x[i] = rndf() * (i % 7 ? 90.0f : 200.0f);
    x[5] = INFINITY, x[6] = -INFINITY, x[7] = 0.0f, x[8] = -0.0f, x[9] = -104.0f, x[10] = 89.0f, x[11] = 88.72f;
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        hn_kernels_get((hn_cpu_level)l)->exp(y, x, 4099);
        for (int i = 0; i < 4099; i++) assert_int_equal(hn_f32_bits(y[i]), hn_f32_bits(hn_exp_f32(x[i])));
    }
}

static void check_attention(bool f16, int64_t d, int64_t n_q, int64_t n_kv)
{
    int64_t n_pad = (n_kv + 15) / 16 * 16;
    size_t es = f16 ? 2 : 4;
    void *k = calloc((size_t)(n_pad * d), es), *v = calloc((size_t)(n_pad * d), es);
    memset(k, 0xFF, (size_t)(n_pad * d) * es); /* keys beyond n_kv are NaN and must not matter */
    memset(v, 0xFF, (size_t)(n_pad * d) * es);
    float row[256], *q = malloc((size_t)(n_q * d) * 4);
    for (int64_t t = 0; t < n_kv; t++) {
        for (int64_t i = 0; i < d; i++) row[i] = rndf() * 3.0f;
        hn_store_k(k, row, d, t, f16);
        for (int64_t i = 0; i < d; i++) row[i] = rndf() * 2.0f;
        hn_store_v(v, row, d, t, f16);
    }
    for (int64_t i = 0; i < n_q * d; i++) q[i] = rndf() * 3.0f;
    float *out[HN_CPU_LEVELS];
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        out[l] = malloc((size_t)(n_q * d + 32) * 4);
        memset(out[l], CANARY, (size_t)(n_q * d + 32) * 4);
        float *scratch = malloc((size_t)(n_q * (HN_SOFT_BLOCK + d)) * 4);
        hn_attn a = { q, out[l] + 16, k, v, scratch, n_q, n_kv, d, 0.25f };
        (f16 ? hn_kernels_get((hn_cpu_level)l)->attn_f16 : hn_kernels_get((hn_cpu_level)l)->attn_f32)(&a);
        assert_memory_equal(out[l], out[0], (size_t)(n_q * d + 32) * 4);
        free(scratch);
    }
    /* against a plain double softmax */
    for (int64_t iq = 0; iq < n_q; iq++) {
        double m = -INFINITY, sum = 0, *s = malloc((size_t)n_kv * sizeof *s), *o = calloc((size_t)d, sizeof *o);
        for (int64_t t = 0; t < n_kv; t++) {
            s[t] = 0;
            for (int64_t i = 0; i < d; i++) {
                int64_t at = t / 16 * d * 16 + i * 16 + t % 16;
                s[t] += (double)q[iq * d + i] * (f16 ? hn_f16_to_f32(((uint16_t *)k)[at]) : ((float *)k)[at]);
            }
            s[t] *= 0.25;
            m = s[t] > m ? s[t] : m;
        }
        for (int64_t t = 0; t < n_kv; t++) {
            double p = exp(s[t] - m);
            sum += p;
            for (int64_t i = 0; i < d; i++) o[i] += p * (f16 ? hn_f16_to_f32(((uint16_t *)v)[t * d + i]) : ((float *)v)[t * d + i]);
        }
        for (int64_t i = 0; i < d; i++) assert_true(fabs(o[i] / sum - out[0][16 + iq * d + i]) <= 1e-5);
        free(s);
        free(o);
    }
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) free(out[l]);
    free(k);
    free(v);
    free(q);
}

static void attention_matches_scalar(void **state)
{
    (void)state;
    const int64_t dims[] = { 4, 8, 16, 24, 64, 80, 128 };
    rng_key = 9, rng_at = 0;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int f16 = 0; f16 < 2; f16++) {
            for (int64_t n_kv = 1; n_kv <= 200; n_kv += n_kv < 20 ? 1 : 13) check_attention(f16, dims[i], 1 + n_kv % 6, n_kv);
            check_attention(f16, dims[i], 5, 511);
            check_attention(f16, dims[i], 4, 512);
            check_attention(f16, dims[i], 3, 513);
            check_attention(f16, dims[i], 2, 1100);
        }
}

static void exp_is_accurate_and_total(void **state)
{
    (void)state;
    double worst = 0;
    for (float x = -87.0f; x < 88.5f; x += 0.00137f) {
        double e = fabs((double)hn_exp_f32(x) / exp((double)x) - 1.0);
        worst = e > worst ? e : worst;
    }
    assert_true(worst < 1.2e-7);
    assert_true(hn_exp_f32(-INFINITY) == 0.0f);
    assert_true(hn_exp_f32(-1e30f) == 0.0f);
    assert_true(hn_exp_f32(0.0f) == 1.0f);
    assert_true(isinf(hn_exp_f32(1000.0f)));
    assert_true(isnan(hn_exp_f32(NAN)));
    assert_true(hn_exp_f32(-100.0f) > 0.0f && hn_exp_f32(-100.0f) < 0x1p-126f); /* subnormal kept */
}

static void own_double_functions_are_accurate(void **state)
{
    (void)state;
    rng_key = 10, rng_at = 0;
    for (int i = 0; i < 200000; i++) {
        double x = ((double)(rnd() >> 11) * 0x1p-53 - 0.5) * (i % 2 ? 4e5 : 20.0), s, c;
        hn_sincos(x, &s, &c);
        assert_true(fabs(s - sin(x)) < 4e-16 && fabs(c - cos(x)) < 4e-16);
        double y = ((double)(rnd() >> 11) * 0x1p-53) * 60.0 - 30.0;
        assert_true(fabs(hn_exp2_f64(y) / exp2(y) - 1.0) < 1e-15);
        double z = exp2(y);
        assert_true(fabs(hn_log2_f64(z) - log2(z)) <= 1e-15 * (1.0 + fabs(y)));
    }
    float cs[64];
    double f[32];
    hn_rope_freqs(f, 64, 500000.0, NULL, 1.0);
    for (int i = 0; i < 32; i++) assert_true(fabs(f[i] / pow(500000.0, -2.0 * i / 64) - 1.0) < 4e-15);
    hn_rope_table(cs, f, 64, 131071, 1.0f);
    for (int i = 0; i < 32; i++) {
        double a = 131071.0 * pow(500000.0, -2.0 * i / 64);
        assert_true(fabs(cs[2 * i] - cos(a)) < 1e-7 && fabs(cs[2 * i + 1] - sin(a)) < 1e-7);
    }
}

int main(void)
{
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_built((hn_cpu_level)l) && !hn_cpu_has((hn_cpu_level)l)) printf("SKIP: level %s: this CPU lacks it\n", hn_cpu_level_name((hn_cpu_level)l));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_matches_scalar),
        cmocka_unit_test(quantize_special_values),
        cmocka_unit_test(quantize_rounds_to_even),
        cmocka_unit_test(norm_and_silu_match_scalar),
        cmocka_unit_test(scalar_is_the_same_with_and_without_fma),
        cmocka_unit_test(exp_matches_scalar),
        cmocka_unit_test(attention_matches_scalar),
        cmocka_unit_test(exp_is_accurate_and_total),
        cmocka_unit_test(own_double_functions_are_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
