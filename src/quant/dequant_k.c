/* dequant_k: decoders of the 256-element super-blocks with integer sub-scales (Q2_K to
 * Q6_K) and of the ternary types. Layouts: docs/formats.md. The loops run over the bytes
 * as they are stored, 32 at a time, so that a compiler can vectorise them. */
#include "quant/codecs.h"

/* 16 scale bytes (low nibble scale, high nibble minimum), 64 codes, d, dmin */
void hn_deq_q2_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 84) {
        float d = hn_get_f16(b + 80), dmin = hn_get_f16(b + 82);
        const uint8_t *sc = b;
        for (int half = 0; half < 2; half++)
            for (int j = 0; j < 4; j++)
                for (int t = 0; t < 2; t++, sc++, y += 16) {
                    const uint8_t *q = b + 16 + 32 * half + 16 * t;
                    float s = d * (float)(*sc & 15), m = dmin * (float)(*sc >> 4);
                    for (int l = 0; l < 16; l++) y[l] = s * (float)(q[l] >> 2 * j & 3) - m;
                }
    }
}

/* 32 high-bit bytes, 64 codes, 12 bytes with 16 six-bit scales, d */
void hn_deq_q3_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 110) {
        float d = hn_get_f16(b + 108);
        const uint8_t *s = b + 96;
        int t = 0;
        for (int half = 0; half < 2; half++)
            for (int j = 0; j < 4; j++)
                for (int u = 0; u < 2; u++, t++, y += 16) {
                    const uint8_t *q = b + 32 + 32 * half + 16 * u, *h = b + 16 * u;
                    int low = t < 8 ? s[t] & 15 : s[t - 8] >> 4;
                    int sc = low + 16 * (s[8 + (t & 3)] >> 2 * (t >> 2) & 3) - 32;
                    float ds = d * (float)sc;
                    for (int l = 0; l < 16; l++) /* a set high bit means "no -4" */
                        y[l] = ds * (float)((q[l] >> 2 * j & 3) + (h[l] >> (4 * half + j) & 1) * 4 - 4);
                }
    }
}

void hn_deq_q4_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 144) {
        float d = hn_get_f16(b), dmin = hn_get_f16(b + 2);
        uint8_t sc[8], mn[8];
        hn_k_scales(b + 4, sc, mn);
        const uint8_t *q = b + 16;
        for (int s = 0; s < 8; s += 2, q += 32, y += 64) {
            float d0 = d * (float)sc[s], m0 = dmin * (float)mn[s];
            float d1 = d * (float)sc[s + 1], m1 = dmin * (float)mn[s + 1];
            for (int l = 0; l < 32; l++) y[l] = d0 * (float)(q[l] & 15) - m0;
            for (int l = 0; l < 32; l++) y[l + 32] = d1 * (float)(q[l] >> 4) - m1;
        }
    }
}

void hn_deq_q5_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 176) {
        float d = hn_get_f16(b), dmin = hn_get_f16(b + 2);
        uint8_t sc[8], mn[8];
        hn_k_scales(b + 4, sc, mn);
        const uint8_t *h = b + 16, *q = b + 48;
        for (int s = 0; s < 8; s += 2, q += 32, y += 64) {
            float d0 = d * (float)sc[s], m0 = dmin * (float)mn[s];
            float d1 = d * (float)sc[s + 1], m1 = dmin * (float)mn[s + 1];
            for (int l = 0; l < 32; l++) y[l] = d0 * (float)((q[l] & 15) | (h[l] >> s & 1) << 4) - m0;
            for (int l = 0; l < 32; l++) y[l + 32] = d1 * (float)(q[l] >> 4 | (h[l] >> (s + 1) & 1) << 4) - m1;
        }
    }
}

/* 128 low nibbles, 64 bytes of high bit pairs, 16 s8 scales, d */
void hn_deq_q6_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 210) {
        float d = hn_get_f16(b + 208);
        const uint8_t *lo = b, *hi = b + 128;
        const uint8_t *sc = b + 192;
        for (int half = 0; half < 2; half++, lo += 64, hi += 32, sc += 8, y += 128)
            for (int t = 0; t < 2; t++) { /* sub-blocks of 16 within each run of 32 */
                float d0 = d * (float)(int8_t)sc[t], d1 = d * (float)(int8_t)sc[t + 2];
                float d2 = d * (float)(int8_t)sc[t + 4], d3 = d * (float)(int8_t)sc[t + 6];
                for (int l = 16 * t; l < 16 * t + 16; l++) {
                    y[l] = d0 * (float)(((lo[l] & 15) | (hi[l] & 3) << 4) - 32);
                    y[l + 32] = d1 * (float)(((lo[l + 32] & 15) | (hi[l] >> 2 & 3) << 4) - 32);
                    y[l + 64] = d2 * (float)((lo[l] >> 4 | (hi[l] >> 4 & 3) << 4) - 32);
                    y[l + 96] = d3 * (float)((lo[l + 32] >> 4 | hi[l] >> 6 << 4) - 32);
                }
            }
    }
}

/* Trit z of a byte that holds a base-3 fraction: multiply by 3^z, keep the fraction, and
 * the next digit is the integer part of three times it. */
static inline float trit(uint8_t byte, uint8_t pow3, float d)
{
    uint8_t r = (uint8_t)(byte * pow3);
    return d * (float)((r * 3 >> 8) - 1);
}

void hn_deq_tq1_0(float *restrict y, const void *src, int64_t n)
{
    static const uint8_t pow3[5] = { 1, 3, 9, 27, 81 };
    for (const uint8_t *b = src; n > 0; n -= 256, b += 54) {
        float d = hn_get_f16(b + 52);
        for (int z = 0; z < 5; z++)
            for (int i = 0; i < 32; i++) *y++ = trit(b[i], pow3[z], d);
        for (int z = 0; z < 5; z++)
            for (int i = 0; i < 16; i++) *y++ = trit(b[32 + i], pow3[z], d);
        for (int z = 0; z < 4; z++)
            for (int i = 0; i < 4; i++) *y++ = trit(b[48 + i], pow3[z], d);
    }
}

void hn_deq_tq2_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 66) {
        float d = hn_get_f16(b + 64);
        for (int half = 0; half < 2; half++)
            for (int j = 0; j < 4; j++, y += 32)
                for (int l = 0; l < 32; l++) y[l] = d * (float)((b[32 * half + l] >> 2 * j & 3) - 1);
    }
}
