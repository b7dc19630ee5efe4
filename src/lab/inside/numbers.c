/* numbers: see numbers.h. A change of what is asked is a change of the part's hash, and needs another name for it. */
#include "lab/inside/numbers.h"

#include "kernels/kernels.h"
#include "quant/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cosines and sines of positions to a million, by frequencies that no library computes. */
static uint64_t far_turns(uint64_t h)
{
    enum { N_ROT = 64, STEPS = 61 };
    double freq[N_ROT / 2];
    float cs[N_ROT];
    freq[0] = 1;
    for (int32_t i = 1; i < N_ROT / 2; i++) freq[i] = freq[i - 1] * 0.71875;
    for (int64_t k = 0, pos = 1; k < STEPS; k++, pos += pos / 4 + 1) {
        hn_rope_table(cs, freq, N_ROT, pos, k % 5 ? 1.0F : 0.75F);
        h = hn_fnv1a(h, cs, sizeof cs);
    }
    return h;
}

/* Each of them as its bits, but for what is no number: whose bits differ from processor to processor. */
static uint64_t add_floats(uint64_t h, const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const float v = isnan(x[i]) ? 12345.0F : x[i];
        h = hn_fnv1a(h, &v, sizeof v);
    }
    return h;
}

/* Types whose bytes follow from the numbers by rounding: where one is searched for, a better one is no other answer. */
static bool is_rounded(uint32_t t)
{
    static const uint32_t types[] = { HN_F16,  HN_BF16, HN_Q4_0,  HN_Q4_1,  HN_Q5_0,
                                      HN_Q5_1, HN_Q8_0, HN_MXFP4, HN_TQ1_0, HN_TQ2_0 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == t) return true;
    return false;
}

/* Bytes as numbers, of all types; numbers of every size that a half can be, and smaller ones, as bytes. */
hone_status hn_numbers_hash(uint64_t *h, hone_error *err)
{
    enum { N = 512, BYTES = 4 * N };
    float *x = malloc(2 * N * sizeof *x), *y = x + N;
    uint8_t *bytes = malloc(BYTES);
    if (!x || !bytes) {
        free(x);
        free(bytes);
        return HN_FAIL(err, HONE_E_NOMEM, "%d numbers", 2 * N);
    }
    *h = far_turns(*h);
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t drawn = hn_rand64(0x6E756Du, i);
        const int around = (int)(i / 32 * 3) - 30; /* blocks of 32 of one size, and of all sizes */
        const int e = i % 32 < 16 ? around : (int)(drawn >> 8 & 63) - 45;
        x[i] = ldexpf((float)(int32_t)(drawn >> 32) * 0x1p-31F, e < 15 ? e : 15);
    }
    for (uint32_t t = 0; t < HN_TYPE_COUNT; t++) {
        const hn_type_info *ti = hn_type_get(t);
        if (!ti || !ti->weight || t == HN_F64) continue;
        const size_t n = (size_t)hn_row_bytes(ti, N);
        for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(hn_rand64(0x62797465u + t, i) >> 56);
        ti->dequantize(y, bytes, N);
        *h = add_floats(*h, y, N);
        if (!ti->quantize || !is_rounded(t)) continue;
        memset(bytes, 0, n);
        ti->quantize(bytes, x, N, NULL);
        *h = hn_fnv1a(*h, bytes, n);
    }
    free(x);
    free(bytes);
    return HONE_OK;
}
