/* Every kernel level against the scalar oracle, by memcmp: all types, row ranges,
 * column counts, tails, unaligned rows, canaries around every output. */
#define _GNU_SOURCE
#include "base/guard.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"
#include "before_nothing.h"

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

typedef struct geometry {
    uint32_t elems, bytes;
    int scale_at[2];
} geometry;
static geometry geometry_of(hn_type t)
{
    switch (t) {
    case HN_F32: return (geometry){ 1, 4, { -1, -1 } };
    case HN_F16:
    case HN_BF16: return (geometry){ 1, 2, { -1, -1 } };
    case HN_Q8_0: return (geometry){ 32, 34, { 0, -1 } };
    case HN_Q4_0:
    case HN_IQ4_NL: return (geometry){ 32, 18, { 0, -1 } };
    case HN_MXFP4: return (geometry){ 32, 17, { -1, -1 } };
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
        } else if (t == HN_MXFP4) { /* exponents around 1, and the subnormal ones */
            w[i] = (unsigned char)(rnd() % 8 ? 110 + rnd() % 30 : rnd() % 3);
        } else {
            for (int s = 0; s < 2; s++)
                if (g.scale_at[s] >= 0) {
                    uint16_t h = hn_f32_to_f16(rndf() * (rnd() % 8 ? 0.1f : 1e-7f));
                    memcpy(w + i + g.scale_at[s], &h, 2);
                }
        }
    }
}

/* ---- AVX-VNNI where the CPU lacks it: the level's files, their instructions emulated (avx_vnni.h, Makefile) ---- */

#if defined(__x86_64__)
extern const hn_kernels hn_emulated_kernels;
extern const hn_peak_op hn_emulated_peak;
typedef void dpbusd_fn(int32_t sum[8], const uint8_t u[32], const int8_t s[32]);
typedef void dpwssd_fn(int32_t sum[8], const int16_t a[16], const int16_t b[16]);
extern dpbusd_fn hn_emulated_dpbusd, hn_avx_vnni_dpbusd;
extern dpwssd_fn hn_emulated_dpwssd, hn_avx_vnni_dpwssd;

static bool has(hn_cpu_level l) { return hn_cpu_has(l == HN_CPU_AVX_VNNI ? HN_CPU_AVX2 : l); }
static const hn_kernels *kernels_of(hn_cpu_level l)
{
    static hn_kernels emulated;
    /* under AddressSanitizer the emulated one is instrumented, and the other is not (Makefile) */
    if (l != HN_CPU_AVX_VNNI || (hn_cpu_has(l) && !HN_ASAN)) return hn_kernels_get(l);
    if (!emulated.name) {
        emulated = *hn_kernels_get(HN_CPU_AVX2);
        hn_kernels_overlay(&emulated, &hn_emulated_kernels);
    }
    return &emulated;
}

/* Every pair of codes four times in a lane, beside pairs of all kinds; sums that wrap. */
static void check_dpbusd(dpbusd_fn *dpbusd)
{
    uint8_t u[32];
    int8_t s[32];
    int32_t sum[8], want[8];
    for (int a = 0; a < 256; a++)
        for (int b = -128; b < 128; b++) {
            for (int i = 0; i < 32; i++)
                u[i] = (uint8_t)(i < 16 ? a : (int)rnd()), s[i] = (int8_t)(i < 24 ? b : (int)rnd());
            for (int l = 0; l < 8; l++) {
                want[l] = sum[l] = l % 2 ? (l % 4 == 1 ? INT32_MAX : INT32_MIN) : (int32_t)rnd();
                for (int i = 4 * l; i < 4 * l + 4; i++)
                    want[l] = (int32_t)((uint32_t)want[l] + (uint32_t)(u[i] * s[i]));
            }
            dpbusd(sum, u, s);
            assert_memory_equal(sum, want, sizeof want);
        }
}
static void check_dpwssd(dpwssd_fn *dpwssd)
{
    static const int16_t edge[] = { -32768, -32767, -1, 0, 1, 32767 };
    int16_t a[16], b[16];
    int32_t sum[8], want[8];
    for (int k = 0; k < 36 * 200; k++) {
        for (int i = 0; i < 16; i++) {
            a[i] = i < 8 ? edge[k % 6] : (int16_t)rnd();
            b[i] = i < 12 ? edge[k / 6 % 6] : (int16_t)rnd();
        }
        for (int l = 0; l < 8; l++) {
            want[l] = sum[l] = l % 2 ? (l % 4 == 1 ? INT32_MAX : INT32_MIN) : (int32_t)rnd();
            for (int i = 2 * l; i < 2 * l + 2; i++) want[l] = (int32_t)((uint32_t)want[l] + (uint32_t)(a[i] * b[i]));
        }
        dpwssd(sum, a, b);
        assert_memory_equal(sum, want, sizeof want);
    }
}
static void vnni_instructions_are_exact(void **state)
{
    (void)state;
    rng_key = 400, rng_at = 0;
    if (hn_cpu_has(HN_CPU_AVX2)) {
        check_dpbusd(hn_emulated_dpbusd);
        check_dpwssd(hn_emulated_dpwssd);
        for (int64_t n = 1; n < 3000; n = 3 * n + 1)
            assert_true(hn_emulated_peak.run(n) == hn_peak_expect(&hn_emulated_peak, n));
    }
    if (hn_cpu_has(HN_CPU_AVX_VNNI)) {
        check_dpbusd(hn_avx_vnni_dpbusd);
        check_dpwssd(hn_avx_vnni_dpwssd);
    }
}
#else
static bool has(hn_cpu_level l) { return hn_cpu_has(l); }
static const hn_kernels *kernels_of(hn_cpu_level l) { return hn_kernels_get(l); }
static void vnni_instructions_are_exact(void **state) { (void)state; }
#endif

/* A level whose product of t and what prepares for it are those of a level below has nothing of its own to compare. */
static bool own_matmul(hn_cpu_level l, hn_type t)
{
    for (int i = 0; i < (int)l; i++) {
        if (!has((hn_cpu_level)i)) continue;
        const hn_kernels *a = kernels_of((hn_cpu_level)i), *b = kernels_of(l);
        hn_act_kind kind = hn_act_kind_of(t);
        bool prepares = (kind == HN_ACT_Q256 && a->quantize256 != b->quantize256) ||
                        (kind == HN_ACT_Q32 && a->quantize32 != b->quantize32);
        if (a->matmul[t] == b->matmul[t] && a->packed[t] == b->packed[t] && !prepares) return false;
    }
    return true;
}

static bool own_attn(hn_cpu_level l, hn_cache_type t, bool latent)
{
    for (int i = 0; i < (int)l; i++) {
        if (!has((hn_cpu_level)i)) continue;
        const hn_kernels *a = kernels_of((hn_cpu_level)i), *b = kernels_of(l);
        bool same = latent ? a->attn_latent[t] == b->attn_latent[t] : a->attn[t] == b->attn[t];
        if (same && a->attn_merge == b->attn_merge) return false;
    }
    return true;
}

#ifdef HN_EMULATED
enum { EMULATED = 1 };
#else
enum { EMULATED = 0 };
#endif

/* Where every instruction is slow, rows are shorter that are only long. */
enum { SMALL = EMULATED || HN_ASAN };

/* Under emulation the scalar level is the reference alone: that tiles, scratch and layouts change none of its bits is
 * seen where it runs a hundred times faster. */
static bool alone(hn_cpu_level l) { return EMULATED && l == HN_CPU_SCALAR; }

/* Under emulation and AddressSanitizer, where every instruction is slow, a shape is computed with scratch or without,
 * but those that fill it with both: a native run without sanitizers does so for every shape. */
static bool by_turns(int64_t n_in, int64_t n_col) { return SMALL && n_in < 8192 && n_col < 1000; }

/* The panels and turned groups of the AVX-512 level, whatever the column count its dispatch gives them. */
typedef struct panels {
    hn_matmul_fn *rows, *packed, *group;
} panels;
#if defined(__x86_64__)
extern hn_matmul_fn hn_avx512_panel_q4_K, hn_avx512_panel_q5_K, hn_avx512_panel_q6_K, hn_avx512_panel_iq4_XS;
extern hn_matmul_fn hn_avx512_panel_q4_0, hn_avx512_panel_q5_0, hn_avx512_panel_q8_0, hn_avx512_panel_iq4_NL;
extern hn_matmul_fn hn_avx512_ppanel_q4_K, hn_avx512_ppanel_q5_K, hn_avx512_ppanel_q6_K, hn_avx512_ppanel_iq4_XS;
extern hn_matmul_fn hn_avx512_ppanel_q4_0, hn_avx512_ppanel_q5_0, hn_avx512_ppanel_q8_0, hn_avx512_ppanel_iq4_NL;
extern hn_matmul_fn hn_avx512_group_q4_K, hn_avx512_group_q5_K, hn_avx512_group_iq4_XS;
extern hn_matmul_fn hn_avx512_group_q4_0, hn_avx512_group_q8_0, hn_avx512_group_iq4_NL;
static panels panels_of(hn_type t)
{
    if (!hn_cpu_has(HN_CPU_AVX512)) return (panels){ NULL, NULL, NULL };
    switch (t) {
    case HN_Q4_K: return (panels){ hn_avx512_panel_q4_K, hn_avx512_ppanel_q4_K, hn_avx512_group_q4_K };
    case HN_Q5_K: return (panels){ hn_avx512_panel_q5_K, hn_avx512_ppanel_q5_K, hn_avx512_group_q5_K };
    case HN_Q6_K: return (panels){ hn_avx512_panel_q6_K, hn_avx512_ppanel_q6_K, NULL };
    case HN_IQ4_XS: return (panels){ hn_avx512_panel_iq4_XS, hn_avx512_ppanel_iq4_XS, hn_avx512_group_iq4_XS };
    case HN_Q4_0: return (panels){ hn_avx512_panel_q4_0, hn_avx512_ppanel_q4_0, hn_avx512_group_q4_0 };
    case HN_Q5_0: return (panels){ hn_avx512_panel_q5_0, hn_avx512_ppanel_q5_0, NULL };
    case HN_Q8_0: return (panels){ hn_avx512_panel_q8_0, hn_avx512_ppanel_q8_0, hn_avx512_group_q8_0 };
    case HN_IQ4_NL: return (panels){ hn_avx512_panel_iq4_NL, hn_avx512_ppanel_iq4_NL, hn_avx512_group_iq4_NL };
    default: return (panels){ NULL, NULL, NULL };
    }
}
#else
static panels panels_of(hn_type t) { return (panels){ NULL, NULL, NULL }; }
#endif

/* Activations of every width: in half of the calls one column in four has its largest
 * value everywhere, others are near it, so that sums of a block need all their bits;
 * now and then a block is not finite. */
static bool extreme;
static void fill_activations(float *x, int64_t n_in, int64_t n_col)
{
    for (int64_t i = 0; i < n_in * n_col; i++) x[i] = rnd_wild();
    if (!extreme) return;
    bool widest = rnd() % 2;
    for (int64_t c = 0; c < n_col; c++)
        for (int64_t i = 0; i < n_in; i++) {
            if (c % 4 == 1 && widest) x[c * n_in + i] = 3.0f;
            if (c % 4 == 2) x[c * n_in + i] = rnd() % 2 ? -1.0f : 1.0f;
            if (c % 4 == 3) x[c * n_in + i] = rndf();
            if (rnd() % 3000 == 0) x[c * n_in + i] = rnd() % 2 ? NAN : INFINITY;
        }
}

static void check_matmul(hn_type t, int64_t n_in, int64_t n_out, int64_t n_col, int64_t r0, int64_t r1, size_t shift)
{
    geometry g = geometry_of(t);
    size_t row = (size_t)(n_in / g.elems) * g.bytes;
    unsigned char *wbuf = malloc(row * (size_t)n_out + shift), *w = wbuf + shift;
    if (shift % 2 == 0) w = before_nothing(row * (size_t)n_out);
    fill_weights(t, w, row * (size_t)n_out);
    float *xf = malloc((size_t)(n_in * n_col) * sizeof(float));
    fill_activations(xf, n_in, n_col);
    hn_act_kind kind = hn_act_kind_of(t);
    size_t xs = hn_act_row_bytes(kind, n_in);
    unsigned char *x[HN_CPU_LEVELS];
    size_t ny = (size_t)(n_out * n_col);
    unsigned char *y[HN_CPU_LEVELS];
    bool packs = hn_kernels_get(HN_CPU_SCALAR)->packed[t] != NULL;
    size_t group = packs ? hn_packed_group_bytes(t, n_in) : 0, n_packed = packs ? hn_packed_bytes(t, n_in, n_out) : 64;
    unsigned char *packed = aligned_alloc(64, n_packed);
    for (int64_t r = 0; packs && r < n_out; r += HN_PACK_ROWS)
        hn_pack_group(t, packed + (size_t)(r / HN_PACK_ROWS) * group, w + (size_t)r * row, row,
                      (int)(n_out - r < HN_PACK_ROWS ? n_out - r : HN_PACK_ROWS), n_in);
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        x[l] = y[l] = NULL;
        if (!has((hn_cpu_level)l) || !own_matmul((hn_cpu_level)l, t)) continue;
        const hn_kernels *k = kernels_of((hn_cpu_level)l);
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
        if (l == HN_CPU_SCALAR) k->matmul[t](&m);
        if (alone((hn_cpu_level)l)) continue;
        /* without and with scratch for panels the same result, of rows as they are and of packed ones; nothing is
         * written beyond the scratch */
        size_t n_panel = HN_PANEL_BYTES(n_in) / 64 * 64;
        unsigned char *panel = aligned_alloc(64, n_panel + 64);
        memset(panel, CANARY, n_panel + 64);
        const int one = by_turns(n_in, n_col) ? (int)(rnd() & 1) : -1;
        for (int scratch = 0; scratch < 2; scratch++) {
            if (one >= 0 && scratch != one) continue;
            m.panel = scratch ? panel : NULL;
            for (int p = 0; p < 2; p++) {
                if (p && (r0 % HN_PACK_ROWS || !k->packed[t])) continue;
                if (HN_ASAN && !p && l == HN_CPU_SCALAR) continue; /* the reference was this */
                m.w = p ? packed : w, m.w_stride = p ? group : row;
                memset(y[l], CANARY, (ny + 32) * sizeof(float));
                (p ? k->packed : k->matmul)[t](&m);
                assert_memory_equal(y[l], y[0], (ny + 32) * sizeof(float));
            }
        }
        for (int i = 0; i < 64; i++) assert_int_equal(panel[n_panel + (size_t)i], CANARY);
        hn_matmul_fn *const many[] = { panels_of(t).rows, panels_of(t).group, panels_of(t).packed };
        for (int i = 0; i < 3; i++) {
            bool p = i == 2;
            if (l != HN_CPU_AVX512 || !many[i] || (p && r0 % HN_PACK_ROWS)) continue;
            memset(y[l], CANARY, (ny + 32) * sizeof(float));
            m.w = p ? packed : w, m.w_stride = p ? group : row, m.panel = panel;
            many[i](&m);
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
    for (int l = 0; l < HN_CPU_LEVELS; l++) free(x[l]), free(y[l]);
    free(packed);
    free(wbuf);
    free(xf);
}

static const hn_type types[] = { HN_F32,  HN_F16,  HN_BF16, HN_Q8_0,   HN_Q4_0,   HN_Q5_0,
                                 HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_IQ4_XS, HN_IQ4_NL, HN_MXFP4 };

static void matmul_matches_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hn_type t = types[i];
        const int64_t step = geometry_of(t).elems, n_in = (SMALL ? 512 : 1024) + (step == 32 ? 96 : 0);
        rng_key = 100 + i, rng_at = 0;
        for (int64_t n_col = 1; n_col <= 9; n_col++)
            for (int64_t nb = 1; nb <= (step == 256 ? 3 : 9); nb++)
                check_matmul(t, nb * step, 37, n_col, (int64_t)(rnd() % 5), 37 - (int64_t)(rnd() % 5),
                             step == 1 ? 0 : 2 * (rnd() % 3));
        for (int64_t rows = 1; rows <= 35; rows++)
            check_matmul(t, 2 * (step < 32 ? 150 : step), rows, 1 + rows % 3, 0, rows, 0);
        if (step == 1)
            for (int64_t n = 1; n <= 530; n += n < 40 ? 1 : 37)
                for (int64_t n_col = 1; n_col <= 5; n_col++) check_matmul(t, n, 9, n_col, 0, 9, 0);
        for (int64_t n_col = 8; n_col <= 26; n_col += 3) check_matmul(t, n_in, 75, n_col, 3, 75, 0);
        for (int64_t n_col = 1; n_col <= 26; n_col += n_col < 8 ? 1 : 4)
            check_matmul(t, n_in, 91, n_col, 16 * (n_col % 3), 91 - n_col % 2, 0);
        if (step == 256) /* rows four blocks at a time, to 32; wider ones in tiles */
            for (int64_t nb = 4; nb <= 70; nb += nb < 9 || (nb >= 31 && nb < 38) || nb >= 63 ? 1 : 5)
                check_matmul(t, nb * step, 19, 1 + 4 * (nb % 2), nb % 3, 19, 2 * (nb % 5));
        check_matmul(t, 2048, 64, 6, 0, 64, 0);
        check_matmul(t, 512 + (step == 32 ? 32 : 0), 37, 50, 0, 37, 0);
        check_matmul(t, 256, 16, 161, 0, 16, 0);
    }
}

/* Scratch holds rows of any width: 20480 is far beyond what its constant part covers. */
static void matmul_of_wide_rows_matches_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        rng_key = 300 + i, rng_at = 0;
        if (!EMULATED || i % 2 == 0) check_matmul(types[i], 20480, EMULATED ? 16 : 32, 9, 0, EMULATED ? 16 : 32, 0);
        if (!EMULATED || i % 2) check_matmul(types[i], 8960, EMULATED ? 32 : 48, 5, 0, EMULATED ? 32 : 48, 0);
        if (geometry_of(types[i]).elems ==
            1) /* floats: ends of runs, of blocks and of vectors, of rows and of columns */
            for (int64_t n_col = 1; n_col <= 26; n_col++) {
                static const int64_t widths[] = { 511, 528, 770, 1040, 2047, 2048, 2051, 2064, 2320, 4387 };
                check_matmul(types[i], widths[n_col % 10], 35 + n_col % 5, n_col, n_col % 3, 35 + n_col % 5, 0);
                if (SMALL && n_col % 2) continue;
                check_matmul(types[i], widths[(n_col + 5) % 10], 16 + n_col % 4, 27 - n_col, 0, 16, 0);
            }
    }
}

/* Column counts to 40 and rows to 70, with activations that reach every bound. */
static void matmul_of_many_columns_matches_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hn_type t = types[i];
        int64_t step = geometry_of(t).elems, n_in = step == 256 ? 768 : 32 * (SMALL ? 23 : 67);
        rng_key = 200 + i, rng_at = 0;
        extreme = step != 1; /* a NaN of a float product may have any payload */
        for (int64_t n_col = 1; n_col <= 40; n_col++)
            check_matmul(t, n_in / 3 / step * step, 35, n_col, 16 * (n_col % 2), 35, 0);
        for (int64_t rows = 1; rows <= 70; rows += rows < 33 ? 4 : 3)
            check_matmul(t, n_in, rows, 1 + rows % 13, 0, rows, 0);
        for (int64_t rows = 1; rows <= 35; rows += 2) check_matmul(t, n_in, rows, 1, 0, rows, 0);
        extreme = false;
    }
    /* more columns than the scratch has sums for: in several turns */
    check_matmul(HN_Q4_K, 256, 33, 1500, 0, 33, 0);
    check_matmul(HN_Q8_0, 96, 17, 1500, 0, 17, 0);
}

static void quantize_special_values(void **state)
{
    (void)state;
    const float specials[] = { NAN,       INFINITY,  -INFINITY, 0.0f,  -0.0f, 0x1p-149f,
                               0x1p-126f, 0x1p-101f, 0x1p-100f, 3e38f, -3e38f };
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
                if (!has((hn_cpu_level)l)) continue;
                kernels_of((hn_cpu_level)l)->quantize256(&a[l], x, 256);
                kernels_of((hn_cpu_level)l)->quantize32(b[l], x, 256);
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
        if (!has((hn_cpu_level)l)) continue;
        hn_a256 a;
        kernels_of((hn_cpu_level)l)->quantize256(&a, x, 256);
        assert_memory_equal(a.q, want, 7);
        assert_int_equal(a.bsum[0], 127);
        assert_true(a.d == 1.0f);
    }
}

/* The clamped gate on every level, against doubles, and with what is no number. */
static void clamped_gates_match_scalar(void **state)
{
    (void)state;
    float g[700], u[700], y[HN_CPU_LEVELS][732];
    rng_key = 9, rng_at = 0;
    for (int n = 1; n <= 700; n += n < 70 ? 1 : 29) {
        for (int i = 0; i < n; i++) g[i] = rnd_wild() * 4.0f, u[i] = rnd_wild() * 4.0f;
        g[n / 2] = n % 3 ? g[n / 2] : NAN, u[n / 3] = n % 5 ? u[n / 3] : NAN;
        for (int l = 0; l < HN_CPU_LEVELS; l++) {
            if (!has((hn_cpu_level)l)) continue;
            memset(y[l], CANARY, sizeof y[l]);
            kernels_of((hn_cpu_level)l)->oai_mul(y[l] + 16, g, u, n);
            for (int i = 0; i < 732; i++) /* a NaN may have any bits */
                if (!isnan(y[0][i]) || !isnan(y[l][i])) assert_memory_equal(&y[l][i], &y[0][i], sizeof(float));
        }
        for (int i = 0; i < n; i++) {
            double a = fmin((double)g[i], 7), b = fmax(fmin((double)u[i], 7), -7),
                   t = a / (1 + exp(-1.702 * a)) * (b + 1);
            if (isnan(g[i]) || isnan(u[i])) assert_true(isnan(y[0][16 + i]));
            else assert_true(fabs((double)y[0][16 + i] - t) <= 4e-6 * fabs(a * (fabs(b) + 1)) + 1e-37);
        }
    }
}

static void norm_and_silu_match_scalar(void **state)
{
    (void)state;
    float x[700], w[700], u[700];
    float y[HN_CPU_LEVELS][732], z[HN_CPU_LEVELS][732], g[HN_CPU_LEVELS][732], r[HN_CPU_LEVELS][732];
    float e[HN_CPU_LEVELS][732];
    rng_key = 8, rng_at = 0;
    for (int n = 1; n <= 700; n += n < 70 ? 1 : 29)
        for (int rep = 0; rep < 3; rep++) {
            for (int i = 0; i < n; i++) x[i] = rnd_wild() * (rep ? 30.0f : 1.0f), w[i] = rndf(), u[i] = rnd_wild();
            for (int l = 0; l < HN_CPU_LEVELS; l++) {
                if (!has((hn_cpu_level)l)) continue;
                memset(y[l], CANARY, sizeof y[l]);
                memset(z[l], CANARY, sizeof z[l]);
                memset(g[l], CANARY, sizeof g[l]);
                kernels_of((hn_cpu_level)l)->rms_norm(y[l] + 16, x, rep == 2 ? NULL : w, n, 1e-5f);
                kernels_of((hn_cpu_level)l)->silu_mul(z[l] + 16, x, u, n);
                assert_memory_equal(y[l], y[0], sizeof y[0]);
                kernels_of((hn_cpu_level)l)->gelu_mul(g[l] + 16, x, u, n);
                assert_memory_equal(z[l], z[0], sizeof z[0]);
                assert_memory_equal(g[l], g[0], sizeof g[0]);
                memset(r[l], CANARY, sizeof r[l]);
                kernels_of((hn_cpu_level)l)->relu_mul(r[l] + 16, x, u, n);
                assert_memory_equal(r[l], r[0], sizeof r[0]);
                memset(e[l], CANARY, sizeof e[l]);
                kernels_of((hn_cpu_level)l)->gelu_erf_mul(e[l] + 16, x, u, n);
                assert_memory_equal(e[l], e[0], sizeof e[0]);
            }
            for (int i = 0; i < n; i++) { /* the map, and then a product */
                float one = hn_gelu_erf_inline(x[i]) * u[i];
                assert_memory_equal(&e[0][16 + i], &one, sizeof one);
            }
            for (int i = 0; i < n; i++) assert_true(r[0][16 + i] == (x[i] > 0 ? x[i] * u[i] : 0.0f));
            for (int i = 0; i < n; i++) { /* the tanh form of GELU in double */
                double v = (double)x[i], t = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
                if (isfinite(t * (double)u[i]) && fabs(t * (double)u[i]) < 1e30)
                    assert_true(fabs((double)g[0][16 + i] - t * (double)u[i]) <= 4e-6 * fabs(v * (double)u[i]) + 1e-37);
            }
        }
}

/* Where x·x is beyond all floats and where it is nothing, and x that is no number. */
static void gelu_at_its_edges(void **state)
{
    (void)state;
    const float x[] = { 0.0f, -0.0f, 1e-40f, 3e19f, -3e19f, 3e38f, -3e38f, INFINITY, NAN, 12.0f, -12.0f, -40.0f, 1.0f };
    const float want[] = {
        0.0f, 0.0f, 5e-41f, 3e19f, 0.0f, 3e38f, 0.0f, INFINITY, NAN, 12.0f, 0.0f, 0.0f, 0.841191991f
    };
    enum { N = sizeof x / sizeof *x };
    float y[32], x32[32];
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!has((hn_cpu_level)l)) continue;
        const hn_kernels *k = kernels_of((hn_cpu_level)l);
        for (int wide = 0; wide < 2; wide++)
            for (int i = 0; i < N; i++) {
                float ones[32];
                for (int j = 0; j < 32; j++) x32[j] = x[i], ones[j] = 1.0f;
                k->gelu_mul(y, x32, ones, wide ? 32 : 1);
                if (isnan(want[i])) assert_true(isnan(y[0]));
                else if (isinf(want[i])) assert_true(isinf(y[0]) && y[0] > 0);
                else assert_true(fabsf(y[0] - want[i]) <= 1e-6f * fabsf(want[i]) + 1e-30f);
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
        if (!has((hn_cpu_level)l)) continue;
        kernels_of((hn_cpu_level)l)->exp(y, x, 4099);
        for (int i = 0; i < 4099; i++) assert_int_equal(hn_f32_bits(y[i]), hn_f32_bits(hn_exp_f32(x[i])));
    }
}

/* ---- attention: a cache of random vectors, read by every level in every way ------------------ */

#include "attn_case.h"

/* Wider heads have larger scores. */
static float scale_of(const attn_case *c) { return c->d > 256 ? 0.03125f : 0.25f; }

/* Tokens [t0, t1) in one call, into their rows of out. */
static void attend(const attn_case *c, const hn_kernels *k, float *out, int64_t t0, int64_t t1, bool parts, bool far)
{
    const int64_t d_v = c->d_v ? c->d_v : c->d, v = c->n_q * d_v;
    int64_t rows = (t1 - t0) * c->n_q, w = c->n_q * c->d, n_split = (keys_of(c, t1 - 1) + HN_SPLIT - 1) / HN_SPLIT;
    float *scratch = aligned_alloc(64, ((size_t)hn_attn_floats(rows, c->d) * 4 + 63) / 64 * 64 + 64);
    memset(scratch, 0xFF, (size_t)hn_attn_floats(rows, c->d) * 4);
    memset(scratch + hn_attn_floats(rows, c->d), CANARY, 32);
    hn_attn a = { .q = c->q + t0 * w,
                  .out = out + t0 * v,
                  .q_stride = w,
                  .out_stride = v,
                  .k = far ? c->far_k : c->k,
                  .v = far ? c->far_v : c->v,
                  .page = far ? c->page : NULL,
                  .page_bytes = plane_bytes(c->type, c->d, HN_PAGE),
                  .scratch = scratch,
                  .n_tok = t1 - t0,
                  .n_q = c->n_q,
                  .n_kv = c->n_kv + t0,
                  .d = c->d,
                  .d_v = c->d_v,
                  .window = c->window,
                  .n_end = c->n_end,
                  .split_first = c->split_first,
                  .scale = scale_of(c),
                  .cap = c->cap,
                  .sink = c->sink,
                  .fade = c->fade,
                  .pos = c->n_kv + t0 - 1 - c->ahead };
    hn_attn_fn *const fn = (is_latent(c) ? k->attn_latent : k->attn)[c->type];
    if (!parts) {
        fn(&a);
    } else { /* splits in a strange order, then merged */
        float *part = malloc((size_t)(n_split * rows * (d_v + 2)) * sizeof(float));
        for (int64_t s = n_split - 1; s >= 0; s -= 2) {
            a.split0 = s > 0 ? s - 1 : 0, a.split1 = s + 1;
            a.part = part + a.split0 * rows * (d_v + 2);
            fn(&a);
        }
        for (int64_t r = 0; r < rows; r++) {
            int64_t keys = c->n_kv + t0 + r / c->n_q,
                    first = c->window && keys > c->window ? (keys - c->window) / HN_SPLIT : 0;
            first = first < c->split_first ? c->split_first : first;
            k->attn_merge(out + t0 * v + r * d_v, part + (first * rows + r) * (d_v + 2), rows * (d_v + 2),
                          (keys_of(c, t0 + r / c->n_q) + HN_SPLIT - 1) / HN_SPLIT - first, d_v,
                          c->sink ? c->sink + r % c->n_q : NULL);
        }
        free(part);
    }
    for (int i = 0; i < 32; i++) assert_int_equal(((unsigned char *)(scratch + hn_attn_floats(rows, c->d)))[i], CANARY);
    free(scratch);
}

/* What no query's window reaches is not there: whole blocks of it are NaN. */
static void hide(attn_case *c)
{
    int64_t first = c->window && c->n_kv > c->window ? (c->n_kv - c->window) / HN_SOFT_BLOCK * HN_SOFT_BLOCK : 0;
    if (first < c->split_first * HN_SPLIT) first = c->split_first * HN_SPLIT;
    memset(c->k, 0xFF, plane_bytes(c->type, c->d, first));
    for (int64_t t = 0; t < first; t += HN_PAGE)
        memset((char *)c->v + (size_t)(t / HN_PAGE) * plane_bytes(c->type, c->d, HN_PAGE), 0xFF,
               plane_bytes(c->type, row_v(c), first - t < HN_PAGE ? first - t : HN_PAGE));
}

/* In which ways a level reads a case, a bit each (check_case). The scalar one takes half of the time: under emulation
 * it is the reference alone; under AddressSanitizer, where its answers are those without it, each of its instructions
 * is seen by the reference (a token at a time) and by all tokens at once in parts. */
static unsigned ways_of(hn_cpu_level l)
{
    if (alone(l)) return 0;
    return HN_ASAN && l == HN_CPU_SCALAR ? 1u << 3 : 31;
}

/* Is `want` the plain softmax, in double, of what the cache holds? */
static void check_softmax(const attn_case *c, const float *want)
{
    const int64_t d = c->d, n_q = c->n_q, d_v = c->d_v ? c->d_v : d;
    double *s = malloc((size_t)(c->n_kv + c->n_tok) * sizeof *s), o[MAX_D], seen[MAX_D];
    double *key = held(c, false), *value = held(c, true);
    for (int64_t r = 0; r < c->n_tok * n_q; r++) {
        double m = -INFINITY, sum = 0;
        int64_t keys = c->n_kv + r / n_q, from = c->window && keys > c->window ? keys - c->window : 0;
        if (from < c->split_first * HN_SPLIT) from = c->split_first * HN_SPLIT;
        q_seen(is_latent(c) ? HN_CACHE_F32 : c->type, seen, c->q + r * d, d); /* latent rows: never in integers */
        keys = keys_of(c, r / n_q);

        for (int64_t t = from; t < keys; t++) {
            s[t] = 0;
            for (int64_t i = 0; i < d; i++) s[t] += seen[i] * key[t * d + i];
            s[t] *= (double)scale_of(c);
            if (c->cap != 0) s[t] = tanh(s[t] / (double)c->cap) * (double)c->cap;
            if (c->fade) s[t] -= (double)c->fade[r % n_q] * fabs((double)(c->n_kv - 1 - c->ahead + r / n_q - t));
            m = s[t] > m ? s[t] : m;
        }
        if (c->sink) m = fmax(m, (double)c->sink[r % n_q]);
        if (c->sink) sum = exp((double)c->sink[r % n_q] - m);

        for (int64_t i = 0; i < d_v; i++) o[i] = 0;
        for (int64_t t = from; t < keys; t++) {
            double p = exp(s[t] - m);
            sum += p;
            for (int64_t i = 0; i < d_v; i++) o[i] += p * value[t * d + i];
        }
        for (int64_t i = 0; i < d_v; i++) assert_true(fabs(o[i] / sum - want[r * d_v + i]) <= 5e-5);
    }
    free(s);
    free(key);
    free(value);
}

static void check_case(attn_case c)
{
    const int64_t n_tok = c.n_tok, n = n_tok * c.n_q * (c.d_v ? c.d_v : c.d);
    fill_case(&c);
    hide(&c);
    float *want = malloc((size_t)(n + 32) * 4), *out = malloc((size_t)(n + 32) * 4);
    memset(want, CANARY, (size_t)(n + 32) * 4);
    for (int64_t t = 0; t < n_tok; t++) attend(&c, hn_kernels_get(HN_CPU_SCALAR), want + 16, t, t + 1, false, false);
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!has((hn_cpu_level)l) || !own_attn((hn_cpu_level)l, c.type, is_latent(&c))) continue;
        const hn_kernels *k = kernels_of((hn_cpu_level)l);
        /* a token at a time; all at once; in unequal tiles; the same two in parts */
        for (int way = 0; way < 5; way++) {
            if (!(ways_of((hn_cpu_level)l) >> way & 1)) continue;
            memset(out, CANARY, (size_t)(n + 32) * 4);
            int64_t step = way == 0 ? 1 : way == 1 || way == 3 ? n_tok : 1 + n_tok / 3;
            for (int64_t t = 0; t < n_tok; t += step)
                attend(&c, k, out + 16, t, t + step < n_tok ? t + step : n_tok, way >= 3, way != 1);
            assert_memory_equal(out, want, (size_t)(n + 32) * 4);
        }
    }
    if (!HN_ASAN && !EMULATED) check_softmax(&c, want + 16); /* its bits are the same everywhere */
    free(want);
    free(out);
    free_case(&c);
}

static void check_window(hn_cache_type type, int64_t d, int64_t n_q, int64_t n_tok, int64_t n_kv, int64_t window)
{
    check_case((attn_case){ .type = type, .d = d, .n_q = n_q, .n_tok = n_tok, .n_kv = n_kv, .window = window });
}

static void check_attention(hn_cache_type type, int64_t d, int64_t n_q, int64_t n_tok, int64_t n_kv)
{
    check_window(type, d, n_q, n_tok, n_kv, 0);
}

/* Heads narrower than a vector and of several: of row i of a list both, under emulation one. */
static int64_t width_from(size_t i) { return EMULATED && i % 2 ? 40 : 6; }
static int64_t width_to(size_t i) { return EMULATED && i % 2 == 0 ? 6 : 40; }

/* Windows that end inside blocks and splits, at their edges, and that reach further than the sequence. */
static void windows_match_scalar(void **state)
{
    (void)state;
    static const struct {
        int64_t n_q, n_tok, n_kv, window;
    } list[] = { { 1, 1, 1, 1 },       { 2, 7, 1, 1 },      { 4, 12, 1, 4 },      { 1, 1, 200, 4 },
                 { 3, 5, 60, 64 },     { 2, 9, 64, 64 },    { 2, 9, 128, 64 },    { 1, 70, 100, 65 },
                 { 1, 130, 3, 40 },    { 4, 4, 511, 63 },   { 4, 4, 512, 128 },   { 2, 6, 600, 512 },
                 { 1, 14, 1023, 511 }, { 2, 3, 1100, 300 }, { 2, 3, 1100, 5000 }, { 1, 30, 1010, 1 },
                 { 8, 2, 700, 20 },    { 1, 600, 1, 90 } };
    rng_key = 12, rng_at = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            for (int64_t d = width_from(i); d <= width_to(i); d += 34)
                check_window((hn_cache_type)type, d, list[i].n_q, list[i].n_tok, list[i].n_kv, list[i].window);
}

/* Keys behind a token too: all of a text, n_kv being all of it; or as many as before it, which end with the text. */
static void both_ways_match_scalar(void **state)
{
    (void)state;
    static const struct {
        int64_t n_q, n_tok, n_kv, window, n_end;
    } list[] = { { 1, 1, 1, 0, 1 },        { 2, 7, 7, 0, 7 },       { 1, 70, 70, 0, 70 },     { 3, 20, 520, 0, 520 },
                 { 1, 9, 3, 5, 9 },        { 2, 70, 11, 21, 70 },   { 1, 130, 65, 129, 130 }, { 4, 30, 500, 33, 520 },
                 { 1, 24, 1010, 7, 1030 }, { 1, 600, 40, 79, 600 }, { 6, 3, 129, 0, 129 } };
    rng_key = 16, rng_at = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            for (int64_t d = width_from(i); d <= width_to(i); d += 34)
                check_case((attn_case){ .type = (hn_cache_type)type,
                                        .d = d,
                                        .n_q = list[i].n_q,
                                        .n_tok = list[i].n_tok,
                                        .n_kv = list[i].n_kv,
                                        .window = list[i].window,
                                        .n_end = list[i].n_end });
}

/* Caps, sinks and chunks, with windows and without. */
static void caps_and_sinks_match_scalar(void **state)
{
    (void)state;
    static const float sinks[8] = { 0.5f, -20.0f, 30.0f, 0.0f, 3.0f, -1.0f, 7.5f, 1e-3f };
    static const struct {
        int64_t n_q, n_tok, n_kv, window, split_first;
        float cap;
        bool sink;
    } list[] = { { 1, 1, 1, 0, 0, 2.0f, false },    { 4, 12, 60, 0, 0, 5.0f, true },   { 8, 3, 600, 0, 0, 0, true },
                 { 2, 9, 700, 128, 0, 0, true },    { 3, 20, 130, 64, 0, 2.5f, true }, { 2, 5, 1030, 0, 1, 0, false },
                 { 4, 3, 1100, 0, 2, 50.0f, true }, { 1, 40, 513, 0, 1, 0, true },     { 8, 1, 64, 4, 0, 0, true },
                 { 1, 600, 1, 90, 0, 1.5f, true } };
    enum { STEP = EMULATED ? 3 : 1 };
    rng_key = 14, rng_at = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i += STEP)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            for (int64_t d = 6; d <= 40; d += 34)
                check_case((attn_case){ .type = (hn_cache_type)type,
                                        .d = d,
                                        .n_q = list[i].n_q,
                                        .n_tok = list[i].n_tok,
                                        .n_kv = list[i].n_kv,
                                        .window = list[i].window,
                                        .split_first = list[i].split_first,
                                        .cap = list[i].cap,
                                        .sink = list[i].sink ? sinks : NULL });
}

/* Scores that fade with the distance, of keys before a query and behind it, near and far. */
static void fading_matches_scalar(void **state)
{
    (void)state;
    static const float fades[8] = { 0.5f, 0.0f, 0.25f, 1.0f, 0.0625f, 0.7071068f, 0.00390625f, 0.125f };
    static const struct {
        int64_t n_q, n_tok, n_kv, window, n_end, ahead;
    } list[] = { { 1, 1, 1, 0, 0, 0 },      { 4, 12, 60, 0, 0, 0 },   { 8, 3, 600, 0, 0, 0 },
                 { 2, 30, 40, 0, 40, 39 },  { 3, 20, 130, 64, 0, 7 }, { 1, 70, 150, 0, 150, 149 },
                 { 2, 5, 100000, 0, 0, 0 }, { 8, 1, 64, 0, 0, 20 },   { 1, 600, 1, 90, 0, 0 } };
    enum { STEP = EMULATED ? 3 : 1 };
    rng_key = 15, rng_at = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i += STEP)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            for (int64_t d = 6; d <= 40; d += 34) {
                if (list[i].n_kv > 2000 && (SMALL || d > 6)) continue;
                check_case((attn_case){ .type = (hn_cache_type)type,
                                        .d = d,
                                        .n_q = list[i].n_q,
                                        .n_tok = list[i].n_tok,
                                        .n_kv = list[i].n_kv,
                                        .window = list[i].window,
                                        .n_end = list[i].n_end,
                                        .fade = fades,
                                        .ahead = list[i].ahead });
            }
}

/* Rows that are key and value, at widths that are whole vectors and not, up to those of DeepSeek. */
static void latent_rows_match_scalar(void **state)
{
    (void)state;
    static const struct {
        int64_t d, d_v, n_q, n_tok, n_kv;
    } list[] = { { 20, 12, 1, 1, 1 },    { 20, 12, 4, 7, 60 },    { 40, 33, 20, 1, 130 },  { 40, 32, 16, 5, 512 },
                 { 80, 64, 3, 70, 500 }, { 80, 64, 20, 2, 1030 }, { 576, 512, 20, 1, 90 }, { 576, 512, 2, 3, 513 } };
    enum { N = EMULATED ? 3 : sizeof list / sizeof *list }; /* the wide ones take minutes there */
    rng_key = 15, rng_at = 0;
    for (size_t i = 0; i < N; i++)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            check_case((attn_case){ .type = (hn_cache_type)type,
                                    .d = list[i].d,
                                    .d_v = list[i].d_v,
                                    .n_q = list[i].n_q,
                                    .n_tok = list[i].n_tok,
                                    .n_kv = list[i].n_kv });
}

/* Values narrower than keys, at widths that are whole vectors and not, up to MiMo's. */
static void narrower_values_match_scalar(void **state)
{
    (void)state;
    static const float sinks[8] = { 0.5f, -20.0f, 30.0f, 0.0f, 3.0f, -1.0f, 7.5f, 1e-3f };
    static const struct {
        int64_t d, d_v, n_q, n_tok, n_kv, window;
    } list[] = { { 20, 12, 1, 1, 1, 0 },    { 20, 7, 4, 7, 60, 0 },      { 40, 33, 8, 1, 130, 40 },
                 { 40, 32, 6, 5, 512, 0 },  { 80, 64, 3, 70, 500, 0 },   { 80, 48, 2, 2, 1030, 129 },
                 { 192, 128, 8, 1, 90, 0 }, { 192, 128, 2, 9, 513, 128 } };
    enum { N = EMULATED ? 3 : sizeof list / sizeof *list };
    rng_key = 17, rng_at = 0;
    for (size_t i = 0; i < N; i++)
        for (int type = 0; type < HN_CACHE_TYPES; type++)
            check_case((attn_case){ .type = (hn_cache_type)type,
                                    .d = list[i].d,
                                    .d_v = list[i].d_v,
                                    .narrower = true,
                                    .n_q = list[i].n_q,
                                    .n_tok = list[i].n_tok,
                                    .n_kv = list[i].n_kv,
                                    .window = list[i].window,
                                    .sink = list[i].window ? sinks : NULL });
}

static void attention_matches_scalar(void **state)
{
    (void)state;
#ifdef HN_EMULATED /* some hundred times slower: one of each kind (tests/cross) */
    const int64_t dims[] = { 6, 40, 64, 100 };
#else
    const int64_t dims[] = { 4, 6, 8, 16, 24, 32, 40, 64, 72, 80, 96, 100, 120, 128, 192, 256 };
#endif
    rng_key = 9, rng_at = 0;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int type = 0; type < HN_CACHE_TYPES; type++) {
            hn_cache_type ty = (hn_cache_type)type;
            int64_t d = dims[i], big = d > 128 ? 0 : 1;
            for (int64_t n_kv = 1; n_kv <= 200; n_kv += n_kv < 20 ? 2 : 13 + 30 * (!big || EMULATED))
                check_attention(ty, d, 1 + n_kv % 8, 1, n_kv);
            check_attention(ty, d, 1, 5, 60); /* over the end of a block */
            check_attention(ty, d, 3, 4, 1);  /* from nothing */
            check_attention(ty, d, 4, 12, 57);
            if (EMULATED && (int)(i + type) % 2) continue; /* the long ones of each width, and of each type */
            check_attention(ty, d, 7, 6, 509);             /* over the end of a split */
            check_attention(ty, d, 2, 3, 511);
            check_attention(ty, d, 4, 1, 512);
            check_attention(ty, d, 3, 1, 513);
            check_attention(ty, d, 1, 14, 1023);
            if (big) check_attention(ty, d, 16, 3, 1100);
        }
    check_attention(HN_CACHE_F16, 64, 1, 80, 500);
    check_attention(HN_CACHE_Q8_0, 64, 71, 2, 70);
}

/* Stores of every level write the scalar level's bytes; what q8_0 loses is bounded. */
static void cache_stores_match_scalar(void **state)
{
    (void)state;
    rng_key = 10, rng_at = 0;
    for (int64_t d = 4; d <= 256; d += d < 40 ? 4 : 36)
        for (int type = 0; type < HN_CACHE_TYPES; type++) {
            size_t bytes = plane_bytes((hn_cache_type)type, d, 64);
            unsigned char *want = calloc(2, bytes), *got = malloc(2 * bytes);
            float *x = malloc((size_t)d * 64 * sizeof(float));
            for (int64_t i = 0; i < 64 * d; i++)
                x[i] = i % 64 < 40 ? rndf() * ldexpf(1.0f, (int)(i / d) - 30) : rnd_wild();
            x[0] = INFINITY, x[d] = NAN, x[2 * d] = -0.0f, x[3 * d] = 1e30f, x[4 * d] = 65504.0f, x[5 * d] = 65520.0f;
            for (int l = 0; l < HN_CPU_LEVELS; l++) {
                if (!has((hn_cpu_level)l)) continue;
                const hn_kernels *k = kernels_of((hn_cpu_level)l);
                unsigned char *to = l == HN_CPU_SCALAR ? want : got;
                memset(to, 0, 2 * bytes);
                for (int64_t t = 0; t < 64; t++) {
                    k->store_k[type](to, x + t * d, d, t);
                    k->store_v[type](to + bytes, x + t * d, d, t);
                }
                assert_memory_equal(to, want, 2 * bytes);
            }
            for (int64_t t = 6; t < 64 && type == HN_CACHE_Q8_0; t++)
                for (int64_t g = 0; g < d; g += 32) {
                    double amax = 0;
                    bool finite = true;
                    int64_t end = g + 32 < d ? g + 32 : d;
                    for (int64_t i = g; i < end; i++)
                        amax = fmax(amax, fabs((double)x[t * d + i])), finite = finite && isfinite(x[t * d + i]);
                    if (!finite || amax < 1e-2 || amax > 8e6) continue; /* f16 scales of full precision */
                    for (int64_t i = g; i < end; i++) {
                        assert_true(fabs(cached(HN_CACHE_Q8_0, false, want, d, t, i) - x[t * d + i]) <=
                                    amax * 0.502 / 127);
                        assert_true(fabs(cached(HN_CACHE_Q8_0, true, want + bytes, d, t, i) - x[t * d + i]) <=
                                    amax * 0.502 / 127);
                    }
                }
            free(want);
            free(got);
            free(x);
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
        if (hn_cpu_built((hn_cpu_level)l) && !hn_cpu_has((hn_cpu_level)l))
            printf("SKIP: level %s: this CPU lacks it%s\n", hn_cpu_level_name((hn_cpu_level)l),
                   has((hn_cpu_level)l) ? "; its instructions are emulated" : "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vnni_instructions_are_exact),
        cmocka_unit_test(matmul_matches_scalar),
        cmocka_unit_test(matmul_of_wide_rows_matches_scalar),
        cmocka_unit_test(matmul_of_many_columns_matches_scalar),
        cmocka_unit_test(quantize_special_values),
        cmocka_unit_test(quantize_rounds_to_even),
        cmocka_unit_test(norm_and_silu_match_scalar),
        cmocka_unit_test(clamped_gates_match_scalar),
        cmocka_unit_test(gelu_at_its_edges),
        cmocka_unit_test(scalar_is_the_same_with_and_without_fma),
        cmocka_unit_test(exp_matches_scalar),
        cmocka_unit_test(attention_matches_scalar),
        cmocka_unit_test(windows_match_scalar),
        cmocka_unit_test(both_ways_match_scalar),
        cmocka_unit_test(caps_and_sinks_match_scalar),
        cmocka_unit_test(fading_matches_scalar),
        cmocka_unit_test(latent_rows_match_scalar),
        cmocka_unit_test(narrower_values_match_scalar),
        cmocka_unit_test(cache_stores_match_scalar),
        cmocka_unit_test(exp_is_accurate_and_total),
        cmocka_unit_test(own_double_functions_are_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
