/* Encoders: byte-identical to the gguf package and ggml on golden rows; errors as the
 * published table for N(0,1) and Student-t samples; properties of the importance vector;
 * odd inputs. Decoders are proven elsewhere (test_quant_decode.c). */
#include "quant/codecs.h"
#include "slowed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int hex2(const char *s)
{
    int v = 0;
    for (int i = 0; i < 2; i++) v = v * 16 + (s[i] <= '9' ? s[i] - '0' : s[i] - 'a' + 10);
    return v;
}

/* The inputs of tests/golden/make_quant_blocks.py, which describes them. */
static void golden_input(float *x, float *w, int n, bool hashed)
{
    for (int k = 0; k < n; k++) {
        uint64_t r = hn_rand64(20261, (uint64_t)k);
        if (!hashed) {
            x[k] = (float)((int64_t)(r >> 40) - (1 << 23)) * ldexpf(1, -22 - k / 32 % 4);
        } else {
            int s = (int)((r & 65535) + (r >> 16 & 65535) + (r >> 32 & 65535) + (r >> 48)) - 131070;
            int eighth = s >= 0 ? s / 8192 : -((8191 - s) / 8192);
            int part = (int)(4ll * k / n);
            x[k] = part == 0   ? (float)s * 0x1p-16f
                   : part == 1 ? (float)s * 0x1p-50f
                   : part == 2 ? (float)eighth * 0.125f
                               : (float)abs(s) * 0x1p-16f + 1;
        }
        w[k] = (float)((hn_rand64(20262, (uint64_t)k) >> 40) % 1024) / 1024;
    }
}

/* Lines E (bytes) and H (hash of a long row). */
static void golden_rows(void **state)
{
    enum { N_MAX = 65536 };
    FILE *f = fopen("tests/golden/quant_blocks.txt", "r");
    assert_non_null(f);
    static char line[65536];
    uint64_t seen[2][2] = { { 0, 0 }, { 0, 0 } };
    float *x = malloc(N_MAX * sizeof *x), *w = malloc(N_MAX * sizeof *w);
    while (fgets(line, sizeof line, f)) {
        if (line[0] != 'E' && line[0] != 'H') continue;
        bool hashed = *strtok(line, " \n") == 'H';
        int32_t id = hn_type_by_name(strtok(NULL, " \n"));
        strtok(NULL, " \n");
        bool weighted = !strcmp(strtok(NULL, " \n"), "weighted");
        int n = atoi(strtok(NULL, " \n"));
        const char *want = strtok(NULL, " \n");
        assert_true(id >= 0 && n > 0 && n <= N_MAX && want);
        const hn_type_info *ti = hn_type_get((uint32_t)id);
        assert_non_null(ti->quantize);
        size_t len = (size_t)hn_row_bytes(ti, (uint64_t)n);
        assert_int_equal(strlen(want), hashed ? 16 : 2 * len);
        golden_input(x, w, n, hashed);
        for (size_t shift = 0; shift < 2; shift++) { /* unaligned too */
            uint8_t *out = malloc(len + shift);
            ti->quantize(out + shift, x, n, weighted ? w : NULL);
            if (hashed && hn_fnv1a(HN_FNV_INIT, out + shift, len) != strtoull(want, NULL, 16))
                fail_msg("%s %s: hash of %d values differs", ti->name, weighted ? "weighted" : "plain", n);
            for (size_t i = 0; i < len && !hashed; i++)
                if (out[shift + i] != hex2(want + 2 * i))
                    fail_msg("%s %s: byte %zu of block %zu is %d, expected %d", ti->name,
                             weighted ? "weighted" : "plain", i % ti->block_bytes, i / ti->block_bytes, out[shift + i],
                             hex2(want + 2 * i));
            free(out);
        }
        seen[hashed][weighted] |= 1ull << id;
    }
    fclose(f);
    free(x);
    free(w);
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (!ti || !ti->quantize || id == HN_F32) continue;
        for (int i = 0; i < 4; i++)
            if (!(seen[i & 1][i >> 1] >> id & 1)) fail_msg("no golden rows for %s", ti->name);
    }
}

static double gauss(uint64_t key, uint64_t k)
{
    double u = ((double)(hn_rand64(key, 2 * k) >> 11) + 0.5) * 0x1p-53,
           v = (double)(hn_rand64(key, 2 * k + 1) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

enum { N_SAMPLE = 262144, ROW = 256 };

/* N(0,1), or Student-t with 4 degrees of freedom. */
static float *samples(bool t4)
{
    float *x = malloc(N_SAMPLE * sizeof *x);
    for (uint64_t k = 0; k < N_SAMPLE; k++) {
        double z = gauss(7, k);
        if (t4) {
            double c = 0;
            for (uint64_t j = 0; j < 4; j++) {
                double g = gauss(8, 4 * k + j);
                c += g * g;
            }
            z /= sqrt(c / 4);
        }
        x[k] = (float)z;
    }
    return x;
}

/* sqrt(sum (y-x)^2 / sum x^2) in double over rows of 256. */
static double relative_error(const hn_type_info *ti, const float *x, const float *importance)
{
    uint8_t buf[2048];
    float y[ROW];
    double e = 0, s = 0;
    for (int r = 0; r < N_SAMPLE / ROW; r++, x += ROW) {
        ti->quantize(buf, x, ROW, importance);
        ti->dequantize(y, buf, ROW);
        for (int i = 0; i < ROW; i++) {
            double d = (double)y[i] - (double)x[i];
            e += d * d;
            s += (double)x[i] * (double)x[i];
        }
    }
    return sqrt(e / s);
}

/* Of the values that a block of MXFP4 can say the nearest, by their distances in double precision; between two the one
 * that is nearer to 0: on both sides of each middle, at every scale. */
static void mxfp4_takes_the_nearest(void **state)
{
    static const double says[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    const hn_type_info *ti = hn_type_get(HN_MXFP4);
    for (int e = -123; e <= 124; e++) {
        const float scale = ldexpf(1, e);
        float x[32] = { 0 }, y[32];
        uint8_t b[17];
        x[0] = 7.9f * scale / 2; /* 4 to 8 halves of the scale: it fixes the block's */
        for (int i = 0; i < 7; i++) {
            float middle = (float)((says[i] + says[i + 1]) / 2) * scale / 2;
            x[1 + i] = middle;
            x[8 + i] = nextafterf(middle, INFINITY);
            x[15 + i] = -middle;
            x[22 + i] = -nextafterf(middle, 0);
        }
        x[29] = -nextafterf((float)says[7] * scale / 2, INFINITY);
        ti->quantize(b, x, 32, NULL);
        ti->dequantize(y, b, 32);
        for (int i = 0; i < 32; i++) {
            double best = 0;
            for (int k = 1; k < 8; k++) {
                double v = says[k] * (double)scale / 2;
                if (fabs(fabs((double)x[i]) - v) < fabs(fabs((double)x[i]) - best)) best = v;
            }
            if (fabs((double)y[i]) != best || (best > 0 && signbit(y[i]) != signbit(x[i])) ||
                (best == 0 && signbit(y[i])))
                fail_msg("scale 2^%d: %a is told as %a, expected %a", e, (double)x[i], (double)y[i], best);
        }
    }
}

static void published_errors(void **state)
{
    /* acceptance figures: independent measurement on as many samples of each kind */
    static const struct {
        hn_type t;
        bool im;
        double n, t4;
    } table[] = {
        { HN_Q8_0, false, 0.0053, 0.0074 },   { HN_Q5_0, false, 0.0426, 0.0585 },  { HN_Q5_1, false, 0.0379, 0.0453 },
        { HN_Q4_0, false, 0.0859, 0.1163 },   { HN_Q4_1, false, 0.0783, 0.0936 },  { HN_IQ4_NL, false, 0.0762, 0.0939 },
        { HN_IQ4_XS, false, 0.0768, 0.0949 }, { HN_IQ4_XS, true, 0.0756, 0.0933 }, { HN_MXFP4, false, 0.1150, 0.1318 },
        { HN_NVFP4, false, 0.0948, 0.0921 },  { HN_Q6_K, false, 0.0177, 0.0229 },  { HN_Q6_K, true, 0.0173, 0.0224 },
        { HN_Q5_K, false, 0.0362, 0.0438 },   { HN_Q5_K, true, 0.0354, 0.0432 },   { HN_Q4_K, false, 0.0714, 0.0868 },
        { HN_Q4_K, true, 0.0707, 0.0861 },    { HN_Q3_K, false, 0.1511, 0.1835 },  { HN_Q3_K, true, 0.1446, 0.1774 },
        { HN_Q2_K, false, 0.2967, 0.3408 },   { HN_Q2_K, true, 0.2683, 0.3018 },   { HN_TQ1_0, false, 0.805, 0 },
        { HN_TQ2_0, false, 0.805, 0 },        { HN_Q1_0, false, 0.601, 0.706 },    { HN_Q2_0, false, 0.717, 0.729 },
    };
    float ones[ROW];
    for (int i = 0; i < ROW; i++) ones[i] = 1;
    int n_bad = 0;
    for (int kind = SLOWED; kind < 2; kind++) {
        float *x = samples(kind == 1);
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            double want = kind ? table[i].t4 : table[i].n;
            if (want == 0) continue;
            double got = relative_error(hn_type_get(table[i].t), x, table[i].im ? ones : NULL);
            /* 2 %, and half a unit of the table's last digit */
            bool ok = fabs(got - want) <= 0.02 * want + 0.00005;
            if (!ok)
                printf("%s%s on %s: %.4f, expected %.4f\n", hn_type_get(table[i].t)->name, table[i].im ? " im1" : "",
                       kind ? "t4" : "N(0,1)", got, want);
            n_bad += !ok;
        }
        free(x);
    }
    assert_int_equal(n_bad, 0);
}

/* More importance on a column lowers its error, at the others' cost. */
static void importance_moves_error(void **state)
{
    static const hn_type types[] = { HN_Q4_0, HN_Q4_1, HN_Q5_0, HN_Q5_1,   HN_Q2_K,  HN_Q3_K,
                                     HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_IQ4_NL, HN_IQ4_XS };
    float *x = samples(false), w[ROW], y[ROW];
    for (int i = 0; i < ROW; i++) w[i] = i % 8 == 0 ? 100 : 1;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const hn_type_info *ti = hn_type_get(types[t]);
        double e[2] = { 0, 0 };
        for (int im = 0; im < 2; im++)
            for (int r = 0; r < 100; r++) {
                uint8_t buf[512];
                ti->quantize(buf, x + r * ROW, ROW, im ? w : NULL);
                ti->dequantize(y, buf, ROW);
                for (int i = 0; i < ROW; i += 8)
                    e[im] += (double)(y[i] - x[r * ROW + i]) * (double)(y[i] - x[r * ROW + i]);
            }
        if (!(e[1] < 0.97 * e[0])) fail_msg("%s: weighted columns' error %g, unweighted %g", ti->name, e[1], e[0]);
    }
    free(x);
}

/* Zero rows decode to zeros; constant, one-spike, tiny and huge rows stay finite and close;
 * NaN, infinity and zero weights do not trap, and nothing is written past the row. */
static void odd_inputs(void **state)
{
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (!ti || !ti->quantize) continue;
        float x[ROW], w[ROW] = { 0 }, y[ROW];
        uint8_t buf[1100];
        size_t len = (size_t)hn_row_bytes(ti, ROW);
        for (int kind = 0; kind < 8; kind++)
            for (int im = 0; im < 3; im++) {
                for (int i = 0; i < ROW; i++) {
                    float z = (float)gauss(5, (uint64_t)i);
                    w[i] = im == 1 ? 0 : 1;
                    x[i] = kind == 0   ? 0
                           : kind == 1 ? -0.25f
                           : kind == 2 ? (i == 37 ? 3.f : 0)
                           : kind == 3 ? z * 1e-30f
                           : kind == 4 ? z * 1e-42f
                           : kind == 5 ? z * 1000
                           : kind == 6 ? (i % 50 == 3 ? NAN : z)
                                       : (i % 60 == 5 ? INFINITY : z * 1e30f);
                }
                memset(buf, 0xA5, sizeof buf);
                ti->quantize(buf, x, ROW, im ? w : NULL);
                for (size_t i = len; i < sizeof buf; i++) assert_int_equal(buf[i], 0xA5);
                ti->dequantize(y, buf, ROW);
                if (kind == 0)
                    for (int i = 0; i < ROW; i++) assert_true(y[i] == 0);
                if (kind == 1 && !im)
                    for (int i = 0; i < ROW; i++)
                        if (!(fabsf(y[i] + 0.25f) <= 0.06f))
                            fail_msg("%s: constant -0.25 decodes to %g", ti->name, (double)y[i]);
                if (kind == 2 && im != 1 && id != HN_Q1_0) assert_true(fabsf(y[37] - 3) <= 0.3f);
                if (kind <= 5 && im != 1)
                    for (int i = 0; i < ROW; i++) assert_true(isfinite(y[i]));
            }
    }
}

/* Rows are independent, and a row of many blocks is its blocks, for types whose weights do
 * not depend on the whole row. */
static void blocks_are_independent(void **state)
{
    float *x = samples(true);
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (!ti || !ti->quantize) continue;
        size_t half = (size_t)hn_row_bytes(ti, 256);
        uint8_t a[2048], b[2048];
        ti->quantize(a, x, 512, NULL);
        ti->quantize(b, x, 256, NULL);
        ti->quantize(b + half, x + 256, 256, NULL);
        assert_memory_equal(a, b, 2 * half);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_rows),      cmocka_unit_test(mxfp4_takes_the_nearest),
        cmocka_unit_test(published_errors), cmocka_unit_test(importance_moves_error),
        cmocka_unit_test(odd_inputs),       cmocka_unit_test(blocks_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
