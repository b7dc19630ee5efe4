/* dequant_simple: decoders of scalars and of the one-level blocks (32, 64, 128 elements,
 * and Q8_K). Every product of a scale and a code is exact in f32, so the order of the
 * factors cannot be seen in the result; only types with a minimum round, once, when it is
 * added. Layouts: docs/formats.md. Knows rows; refuses to know tensors and speed levels. */
#include "quant/codecs.h"

void hn_deq_f32(float *y, const void *src, int64_t n) { memcpy(y, src, (size_t)n * 4); }

void hn_deq_f16(float *y, const void *src, int64_t n)
{
    const uint8_t *b = src;
    for (int64_t i = 0; i < n; i++) { /* hn_f16_to_f32 by masks, so that it vectorises */
        uint32_t h = hn_get_u16(b + 2 * i), s = (h & 0x8000) << 16, em = h & 0x7FFF;
        uint32_t is_sub = -(uint32_t)(em < 0x400), is_big = -(uint32_t)(em >= 0x7C00),
                 is_nan = -(uint32_t)(em > 0x7C00);
        uint32_t sub = hn_f32_bits((float)(int32_t)em * 0x1p-24f);
        uint32_t nrm = ((em << 13) + (112u << 23)) | (is_big & 0x7F800000) | (is_nan & 0x400000);
        y[i] = hn_bits_f32(s | (sub & is_sub) | (nrm & ~is_sub));
    }
}

void hn_deq_bf16(float *y, const void *src, int64_t n)
{
    const uint8_t *b = src;
    for (int64_t i = 0; i < n; i++) y[i] = hn_bf16_to_f32(hn_get_u16(b + 2 * i));
}

#define DEQ_SCALAR(name, type)                               \
    void hn_deq_##name(float *y, const void *src, int64_t n) \
    {                                                        \
        const uint8_t *b = src;                              \
        for (int64_t i = 0; i < n; i++) {                    \
            type v;                                          \
            memcpy(&v, b + (size_t)i * sizeof v, sizeof v);  \
            y[i] = (float)v;                                 \
        }                                                    \
    }
DEQ_SCALAR(f64, double)
DEQ_SCALAR(i8, int8_t)
DEQ_SCALAR(i16, int16_t)
DEQ_SCALAR(i32, int32_t)
DEQ_SCALAR(i64, int64_t)

/* 32-element blocks: byte i holds element i in its low nibble and i + 16 in its high one. */

void hn_deq_q4_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 18) {
        float d = hn_get_f16(b);
        for (int i = 0; i < 16; i++) {
            y[i] = d * (float)((b[2 + i] & 15) - 8);
            y[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
        }
    }
}

void hn_deq_q4_1(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 20) {
        float d = hn_get_f16(b), m = hn_get_f16(b + 2);
        for (int i = 0; i < 16; i++) {
            y[i] = d * (float)(b[4 + i] & 15) + m;
            y[i + 16] = d * (float)(b[4 + i] >> 4) + m;
        }
    }
}

/* The 32 five-bit codes of Q5_0 and Q5_1: 16 bytes of nibbles, 32 fifth bits. Each lane
 * tests its own bit, because SSE2 and NEON lack a cheap shift by different amounts. */
static inline void codes5(int32_t *restrict c, const uint8_t *restrict q, uint32_t h)
{
    static const uint32_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768 };
#pragma GCC unroll 1 /* sixteen steps one behind the other are not made vectors: a third of the rate */
    for (int i = 0; i < 16; i++) {
        c[i] = (q[i] & 15) | ((h & bit[i]) != 0) << 4;
        c[i + 16] = q[i] >> 4 | ((h >> 16 & bit[i]) != 0) << 4;
    }
}

void hn_deq_q5_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 22) {
        float d = hn_get_f16(b);
        int32_t c[32];
        codes5(c, b + 6, hn_get_u32(b + 2));
        for (int i = 0; i < 32; i++) y[i] = d * (float)(c[i] - 16);
    }
}

void hn_deq_q5_1(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 24) {
        float d = hn_get_f16(b), m = hn_get_f16(b + 2);
        int32_t c[32];
        codes5(c, b + 8, hn_get_u32(b + 4));
        for (int i = 0; i < 32; i++) y[i] = d * (float)c[i] + m;
    }
}

void hn_deq_q8_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 34) {
        float d = hn_get_f16(b);
        for (int i = 0; i < 32; i++) y[i] = d * (float)(int8_t)b[2 + i];
    }
}

void hn_deq_q8_1(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 36) {
        float d = hn_get_f16(b);
        for (int i = 0; i < 32; i++) y[i] = d * (float)(int8_t)b[4 + i];
    }
}

void hn_deq_q8_K(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 256, y += 256, b += 292) {
        float d = hn_bits_f32(hn_get_u32(b));
        for (int i = 0; i < 256; i++) y[i] = d * (float)(int8_t)b[4 + i];
    }
}

void hn_deq_mxfp4(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 32, y += 32, b += 17) {
        float d = hn_mxfp4_scale(b[0]);
        float level[16];
        for (int c = 0; c < 16; c++) level[c] = d * (float)hn_e2m1_doubled[c];
        for (int i = 0; i < 16; i++) {
            y[i] = level[b[1 + i] & 15];
            y[i + 16] = level[b[1 + i] >> 4];
        }
    }
}

/* Unsigned e4m3: bit 7 is ignored, not a sign; 0x7F counts as zero, 0xFF does not. */
float hn_ue4m3_to_f32(uint8_t x)
{
    uint32_t e = x >> 3 & 15, m = x & 7;
    if (x == 127) return 0;
    if (e == 0) return (float)m * 0x1p-9f;
    return hn_bits_f32((e + 120) << 23 | m << 20);
}

void hn_deq_nvfp4(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 64, y += 64, b += 36)
        for (int s = 0; s < 4; s++) {
            float d = 0.5f * hn_ue4m3_to_f32(b[s]);
            const uint8_t *q = b + 4 + 8 * s;
#pragma GCC unroll 1 /* as above */
            for (int r = 0; r < 8; r++) {
                y[16 * s + r] = d * (float)hn_e2m1_doubled[q[r] & 15];
                y[16 * s + 8 + r] = d * (float)hn_e2m1_doubled[q[r] >> 4];
            }
        }
}

void hn_deq_q1_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 128, y += 128, b += 18) {
        float d = hn_get_f16(b);
        for (int i = 0; i < 128; i++) y[i] = b[2 + (i >> 3)] >> (i & 7) & 1 ? d : -d;
    }
}

void hn_deq_q2_0(float *restrict y, const void *src, int64_t n)
{
    for (const uint8_t *b = src; n > 0; n -= 64, y += 64, b += 18) {
        float d = hn_get_f16(b);
        for (int i = 0; i < 64; i++) y[i] = d * (float)((b[2 + (i >> 2)] >> 2 * (i & 3) & 3) - 1);
    }
}
