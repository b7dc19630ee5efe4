/* dequant_iq: decoders of the codebook types: IQ1, IQ2, IQ3 (rows of a fixed grid, signs
 * or a shift, integer sub-scales) and IQ4 (one 16-entry table). Layouts: docs/formats.md. */
#include "quant/codecs.h"

/* Eight sign bits from seven: the number of minus signs is even. */
static inline uint32_t sign7(uint32_t v)
{
    v &= 127;
    return v | (uint32_t)__builtin_parity(v) << 7;
}

static inline void put8(float *y, uint64_t row, float d, uint32_t signs)
{
    for (int k = 0; k < 8; k++) {
        float v = d * (float)(row >> 8 * k & 255);
        y[k] = signs >> k & 1 ? -v : v;
    }
}

static inline void put4(float *y, uint32_t row, float d, uint32_t signs)
{
    for (int k = 0; k < 4; k++) {
        float v = d * (float)(row >> 8 * k & 255);
        y[k] = signs >> k & 1 ? -v : v;
    }
}

void hn_deq_iq2_xxs(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 66) {
        float d = hn_get_f16(b);
        for (int g = 0; g < 8; g++) { /* 4 index bytes, then 4 x 7 sign bits and a 4-bit scale */
            const uint8_t *idx = b + 2 + 8 * g;
            uint32_t w = hn_get_u32(idx + 4);
            float ds = d * (0.5f + (float)(w >> 28)) * 0.25f;
            for (int a = 0; a < 4; a++, y += 8) put8(y, hn_grid_iq2xxs[idx[a]], ds, sign7(w >> 7 * a));
        }
    }
}

void hn_deq_iq2_xs(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 74) {
        float d = hn_get_f16(b);
        for (int p = 0; p < 32; p++, y += 8) {
            uint32_t w = hn_get_u16(b + 2 + 2 * p);
            int sc = b[66 + (p >> 2)] >> 4 * (p >> 1 & 1) & 15;
            put8(y, hn_grid_iq2xs[w & 511], d * (0.5f + (float)sc) * 0.25f, sign7(w >> 9));
        }
    }
}

void hn_deq_iq2_s(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 82) {
        float d = hn_get_f16(b);
        for (int p = 0; p < 32; p++, y += 8) {
            int g = p >> 2, idx = b[2 + p] | (b[66 + g] >> 2 * (p & 3) & 3) << 8;
            int sc = b[74 + g] >> 4 * (p >> 1 & 1) & 15;
            put8(y, hn_grid_iq2s[idx], d * (0.5f + (float)sc) * 0.25f, b[34 + p]);
        }
    }
}

void hn_deq_iq3_xxs(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 98) {
        float d = hn_get_f16(b);
        for (int g = 0; g < 8; g++) {
            const uint8_t *idx = b + 2 + 8 * g;
            uint32_t w = hn_get_u32(b + 66 + 4 * g);
            float ds = d * (0.5f + (float)(w >> 28)) * 0.5f;
            for (int a = 0; a < 4; a++, y += 8) {
                uint32_t signs = sign7(w >> 7 * a);
                put4(y, hn_grid_iq3xxs[idx[2 * a]], ds, signs);
                put4(y + 4, hn_grid_iq3xxs[idx[2 * a + 1]], ds, signs >> 4);
            }
        }
    }
}

void hn_deq_iq3_s(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 110) {
        float d = hn_get_f16(b);
        for (int u = 0; u < 64; u++, y += 4) {
            int g = u >> 3, idx = b[2 + u] | (b[66 + g] >> (u & 7) & 1) << 8;
            int sc = b[106 + (g >> 1)] >> 4 * (g & 1) & 15;
            put4(y, hn_grid_iq3s[idx], d * (float)(1 + 2 * sc), (uint32_t)b[74 + (u >> 1)] >> 4 * (u & 1));
        }
    }
}

static inline void put8_shifted(float *y, uint64_t row, float d, float delta)
{
    for (int k = 0; k < 8; k++) y[k] = d * ((float)(int8_t)(row >> 8 * k & 255) + delta);
}

void hn_deq_iq1_s(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 50) {
        float d = hn_get_f16(b);
        for (int g = 0; g < 8; g++) { /* 4 x 3 high index bits, a 3-bit scale, the sign of the shift */
            uint32_t h = hn_get_u16(b + 34 + 2 * g);
            float ds = d * (float)(2 * (h >> 12 & 7) + 1), delta = h & 0x8000 ? -0.125f : 0.125f;
            for (int a = 0; a < 4; a++, y += 8)
                put8_shifted(y, hn_grid_iq1s[b[2 + 4 * g + a] | (h >> 3 * a & 7) << 8], ds, delta);
        }
    }
}

void hn_deq_iq1_m(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 56) {
        uint32_t w[4]; /* 4 x 3-bit scales each; the top nibbles together are d */
        for (int i = 0; i < 4; i++) w[i] = hn_get_u16(b + 48 + 2 * i);
        float d = hn_f16_to_f32((uint16_t)(w[0] >> 12 | w[1] >> 12 << 4 | w[2] >> 12 << 8 | w[3] >> 12 << 12));
        for (int p = 0; p < 32; p++, y += 8) {
            int t = p >> 1;
            uint32_t h = b[32 + t] >> 4 * (p & 1) & 15u, sc = w[t >> 2] >> 3 * (t & 3) & 7;
            put8_shifted(y, hn_grid_iq1s[b[p] | (h & 7) << 8], d * (float)(2 * sc + 1), h & 8 ? -0.125f : 0.125f);
        }
    }
}

/* 32 codes of the fixed table at scale d: 16 products serve all of them. */
static inline void put_iq4(float *restrict y, const uint8_t *q, float d)
{
    float level[16];
    for (int c = 0; c < 16; c++) level[c] = d * (float)hn_iq4_levels[c];
    for (int i = 0; i < 16; i++) {
        y[i] = level[q[i] & 15];
        y[i + 16] = level[q[i] >> 4];
    }
}

void hn_deq_iq4_nl(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 18) put_iq4(y, b + 2, hn_get_f16(b));
}

void hn_deq_iq4_xs(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, b += 136) {
        float d = hn_get_f16(b);
        uint32_t high = hn_get_u16(b + 2);
        for (int s = 0; s < 8; s++, y += 32) {
            int ls = (b[4 + (s >> 1)] >> 4 * (s & 1) & 15) | (int)(high >> 2 * s & 3) << 4;
            put_iq4(y, b + 8 + 16 * s, d * (float)(ls - 32));
        }
    }
}
