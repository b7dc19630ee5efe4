/* quantize_k: encoders of Q2_K to Q6_K. Three steps: a scale (and offset) per sub-block by
 * search; those scales as small integers of one f16; then the codes again, with the
 * scales as a decoder will read them. With an importance vector the error of each
 * column is weighted by it. Operation order: ggml-org/ggml:src/ggml-quants.c. */
#include "quant/codecs.h"

#include <math.h>

static inline int clampi(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

static float sum_squares(int n, const float *x)
{
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* w = importance * sqrt(sigma2 + x^2); returns their sum. */
static float importance_weights(float *w, int n, const float *x, const float *importance, float sigma2)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
        sum += w[i];
    }
    return sum;
}

/* Sub-scales to integers in [0, nmax] of one scale, by the maximum or, where the
 * sub-blocks have weights, by search. Returns the unrounded scale. */
static float integer_scales(int n, int nmax, const float *v, const float *sw, uint8_t *codes)
{
    if (sw) return hn_search_scale(n, nmax, v, sw, codes);
    float max = 0;
    for (int i = 0; i < n; i++)
        if (v[i] > max) max = v[i];
    float f = max > 0 ? (float)nmax / max : 0;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)clampi(hn_rne(f * v[i]), 0, nmax);
    return max / (float)nmax;
}

/* The codes of one sub-block with the scale and offset that will be read back. */
static void recode_asym(uint8_t *codes, int n, int nmax, const float *x, float d, float m)
{
    if (d == 0) return; /* every code means the same: keep what the search left */
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)clampi(hn_rne((x[i] + m) / d), 0, nmax);
}

static void recode_sym(uint8_t *codes, int n, int nmax, const float *x, float d)
{
    if (d == 0) return;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(clampi(hn_rne(x[i] / d), -nmax, nmax - 1) + nmax);
}

/* Four 2-bit codes per byte: element l + 32 j of each half in bits 2j of byte l. */
static void pack2(uint8_t *q, const uint8_t *codes)
{
    for (int half = 0; half < 2; half++, codes += 128)
        for (int l = 0; l < 32; l++)
            *q++ = (uint8_t)((codes[l] & 3) | (codes[l + 32] & 3) << 2 | (codes[l + 64] & 3) << 4 |
                             (codes[l + 96] & 3) << 6);
}

/* Low nibbles of 256 codes, 64 elements per 32 bytes. */
static void pack4(uint8_t *q, const uint8_t *codes)
{
    for (int g = 0; g < 4; g++, codes += 64)
        for (int l = 0; l < 32; l++) *q++ = (uint8_t)((codes[l] & 15) | (codes[l + 32] & 15) << 4);
}

void hn_q_q2_K(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 84) {
        uint8_t codes[256], ls[16], lm[16];
        float scale[16], offset[16], sw[16], w[16];
        float sigma2 = importance ? sum_squares(256, x) / 256 : 0;
        for (int t = 0; t < 16; t++) {
            const float *xt = x + 16 * t;
            hn_scan scan = { -0.5f, 0.1f, 15, true };
            if (importance) {
                sw[t] = importance_weights(w, 16, xt, importance + 16 * t, sigma2);
                scan = (hn_scan){ -0.9f, 0.05f, 36, false };
            } else {
                for (int i = 0; i < 16; i++) w[i] = fabsf(xt[i]);
            }
            scale[t] = hn_search_asym(16, 3, xt, w, scan, codes + 16 * t, &offset[t]);
        }
        const float *swp = importance ? sw : NULL;
        float d = hn_put_f16(b + 80, integer_scales(16, 15, scale, swp, ls));
        float dmin = hn_put_f16(b + 82, integer_scales(16, 15, offset, swp, lm));
        for (int t = 0; t < 16; t++) {
            b[t] = (uint8_t)(ls[t] | lm[t] << 4);
            recode_asym(codes + 16 * t, 16, 3, x + 16 * t, d * (float)ls[t], dmin * (float)lm[t]);
        }
        pack2(b + 16, codes);
        if (importance) importance += 256;
    }
}

/* First element of largest magnitude, with its sign. */
static float extreme(int n, const float *v)
{
    float best = 0, amax = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(v[i]) > amax) {
            amax = fabsf(v[i]);
            best = v[i];
        }
    return best;
}

void hn_q_q3_K(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 110) {
        uint8_t codes[256], ls[16]; /* ls: six-bit scales, 32 means 0 */
        float scale[16], sw[16], w[16], d;
        float sigma2 = importance ? 2 * sum_squares(256, x) / 256 : 0;
        for (int t = 0; t < 16; t++) {
            const float *xt = x + 16 * t;
            if (importance) {
                sw[t] = importance_weights(w, 16, xt, importance + 16 * t, sigma2);
                scale[t] = hn_search_sym(16, 4, xt, w, codes + 16 * t);
            } else {
                scale[t] = hn_search_sym_descent(16, 4, xt, codes + 16 * t);
            }
        }
        if (importance) {
            d = hn_search_sym(16, 32, scale, sw, ls);
        } else {
            float m = extreme(16, scale), f = m != 0 ? -32 / m : 0;
            for (int t = 0; t < 16; t++) ls[t] = (uint8_t)(clampi(hn_rne(f * scale[t]), -32, 31) + 32);
            if (m == 0) memset(ls, 0, 16); /* d is 0; the reference leaves the bytes zero */
            d = m != 0 ? 1 / f : 0;
        }
        d = hn_put_f16(b + 108, d);
        memset(b + 96, 0, 12);
        for (int t = 0; t < 16; t++) {
            b[96 + (t & 7)] |= (uint8_t)((ls[t] & 15) << 4 * (t >> 3));
            b[104 + (t & 3)] |= (uint8_t)((ls[t] >> 4) << 2 * (t >> 2));
            recode_sym(codes + 16 * t, 16, 4, x + 16 * t, d * (float)(ls[t] - 32));
        }
        memset(b, 0, 32);
        for (int i = 0; i < 256; i++) b[i & 31] |= (uint8_t)((codes[i] >> 2) << (i >> 5));
        pack2(b + 32, codes);
        if (importance) importance += 256;
    }
}

/* What Q4_K and Q5_K share: 8 sub-blocks of 32 with six-bit scales and minima in the 16
 * bytes at b, and their codes in [0, nmax]. */
static void encode_k(uint8_t *b, uint8_t codes[256], int nmax, hn_scan plain, const float *x, const float *importance)
{
    uint8_t ls[8], lm[8];
    float scale[8], offset[8], sw[8], w[32];
    float sigma2 = importance ? 2 * sum_squares(256, x) / 256 : 0;
    for (int s = 0; s < 8; s++) {
        const float *xs = x + 32 * s;
        if (importance) {
            sw[s] = importance_weights(w, 32, xs, importance + 32 * s, sigma2);
            plain = (hn_scan){ -0.9f, 0.05f, 36, false };
        } else {
            float rms = sqrtf(sum_squares(32, xs) / 32);
            for (int i = 0; i < 32; i++) w[i] = rms + fabsf(xs[i]);
        }
        scale[s] = hn_search_asym(32, nmax, xs, w, plain, codes + 32 * s, &offset[s]);
    }
    const float *swp = importance ? sw : NULL;
    float d = hn_put_f16(b, integer_scales(8, 63, scale, swp, ls));
    float dmin = hn_put_f16(b + 2, integer_scales(8, 63, offset, swp, lm));
    for (int s = 0; s < 4; s++) {
        b[4 + s] = (uint8_t)(ls[s] | (ls[s + 4] >> 4) << 6);
        b[8 + s] = (uint8_t)(lm[s] | (lm[s + 4] >> 4) << 6);
        b[12 + s] = (uint8_t)((ls[s + 4] & 15) | (lm[s + 4] & 15) << 4);
    }
    for (int s = 0; s < 8; s++)
        recode_asym(codes + 32 * s, 32, nmax, x + 32 * s, d * (float)ls[s], dmin * (float)lm[s]);
}

void hn_q_q4_K(void *dst, const float *x, int64_t n, const float *importance)
{
    uint8_t codes[256];
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 144) {
        encode_k(b, codes, 15, (hn_scan){ -1.0f, 0.1f, 20, false }, x, importance);
        pack4(b + 16, codes);
        if (importance) importance += 256;
    }
}

void hn_q_q5_K(void *dst, const float *x, int64_t n, const float *importance)
{
    uint8_t codes[256];
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 176) {
        encode_k(b, codes, 31, (hn_scan){ -0.5f, 0.1f, 15, false }, x, importance);
        memset(b + 16, 0, 32);
        for (int i = 0; i < 256; i++) b[16 + (i & 31)] |= (uint8_t)((codes[i] >> 4) << (i >> 5));
        pack4(b + 48, codes);
        if (importance) importance += 256;
    }
}

void hn_q_q6_K(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 210) {
        uint8_t codes[256];
        float scale[16];
        for (int t = 0; t < 16; t++)
            scale[t] = hn_search_sym(16, 32, x + 16 * t, importance ? importance + 16 * t : NULL, codes + 16 * t);
        if (importance) importance += 256;
        float m = extreme(16, scale);
        if (fabsf(m) < 1e-15f) {
            memset(b, 0, 210);
            continue;
        }
        float f = -128 / m, d = hn_put_f16(b + 208, 1 / f);
        for (int t = 0; t < 16; t++) {
            int sc = clampi(hn_rne(f * scale[t]), -128, 127);
            b[192 + t] = (uint8_t)(int8_t)sc;
            recode_sym(codes + 16 * t, 16, 32, x + 16 * t, d * (float)sc);
        }
        uint8_t *lo = b, *hi = b + 128;
        const uint8_t *c = codes;
        for (int half = 0; half < 2; half++, c += 128, lo += 64, hi += 32)
            for (int l = 0; l < 32; l++) {
                lo[l] = (uint8_t)((c[l] & 15) | (c[l + 64] & 15) << 4);
                lo[l + 32] = (uint8_t)((c[l + 32] & 15) | (c[l + 96] & 15) << 4);
                hi[l] = (uint8_t)(c[l] >> 4 | c[l + 32] >> 4 << 2 | c[l + 64] >> 4 << 4 | c[l + 96] >> 4 << 6);
            }
    }
}
