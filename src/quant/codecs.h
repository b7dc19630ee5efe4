/* codecs: what the files of quant/ share with each other. One decoder per type, one
 * encoder where hone has one; the grids of the IQ types. Neighbours use the type
 * table of quant.h instead. */
#ifndef HN_QUANT_CODECS_H
#define HN_QUANT_CODECS_H

#include "quant/quant.h"

#include <math.h>

/* Fields of blocks are read and written bytewise: sources may be unaligned. */
static inline uint16_t hn_get_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}
static inline uint32_t hn_get_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline float hn_get_f16(const void *p) { return hn_f16_to_f32(hn_get_u16(p)); }
static inline void hn_put_u16(void *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void hn_put_u32(void *p, uint32_t v) { memcpy(p, &v, 4); }
/* Stores v as binary16 and returns what a decoder will read back. */
static inline float hn_put_f16(void *p, float v)
{
    uint16_t h = hn_f32_to_f16(v);
    hn_put_u16(p, h);
    return hn_f16_to_f32(h);
}
/* Nearest integer, ties to even, |v| <= 4194303; anything else gives some integer, never UB. */
static inline int hn_rne(float v)
{
    float t = v + 12582912.f; /* 1.5 * 2^23: the ulp is 1 */
    return (int)(hn_f32_bits(t) & 0x7FFFFF) - 0x400000;
}

/* IQ grids: one word per row, element k in byte k (bits 8k..8k+7). */
extern const uint64_t hn_grid_iq2xxs[256], hn_grid_iq2xs[512], hn_grid_iq2s[1024];
extern const uint64_t hn_grid_iq1s[2048]; /* bytes are -1, 0, 1 as s8 */
extern const uint32_t hn_grid_iq3xxs[256], hn_grid_iq3s[512];

/* dequant_simple.c */
hn_dequantize_fn hn_deq_f32, hn_deq_f16, hn_deq_bf16, hn_deq_f64, hn_deq_i8, hn_deq_i16, hn_deq_i32, hn_deq_i64;
hn_dequantize_fn hn_deq_q4_0, hn_deq_q4_1, hn_deq_q5_0, hn_deq_q5_1, hn_deq_q8_0, hn_deq_q8_1, hn_deq_q8_K;
hn_dequantize_fn hn_deq_mxfp4, hn_deq_nvfp4, hn_deq_q1_0, hn_deq_q2_0;
float hn_ue4m3_to_f32(uint8_t x);
uint8_t hn_f32_to_ue4m3(float x);
/* dequant_k.c */
hn_dequantize_fn hn_deq_q2_K, hn_deq_q3_K, hn_deq_q4_K, hn_deq_q5_K, hn_deq_q6_K, hn_deq_tq1_0, hn_deq_tq2_0;
/* dequant_iq.c */
hn_dequantize_fn hn_deq_iq1_s, hn_deq_iq1_m, hn_deq_iq2_xxs, hn_deq_iq2_xs, hn_deq_iq2_s, hn_deq_iq3_xxs, hn_deq_iq3_s;
hn_dequantize_fn hn_deq_iq4_nl, hn_deq_iq4_xs;

/* quantize_simple.c */
hn_quantize_fn hn_q_f32, hn_q_f16, hn_q_bf16, hn_q_q8_0, hn_q_q4_0, hn_q_q4_1, hn_q_q5_0, hn_q_q5_1;
hn_quantize_fn hn_q_mxfp4, hn_q_nvfp4, hn_q_q1_0, hn_q_q2_0, hn_q_tq1_0, hn_q_tq2_0;
/* quantize_k.c */
hn_quantize_fn hn_q_q2_K, hn_q_q3_K, hn_q_q4_K, hn_q_q5_K, hn_q_q6_K;
/* quantize_iq4.c */
hn_quantize_fn hn_q_iq4_nl, hn_q_iq4_xs;

/* search.c: the scale searches of the encoders. All sums in element order, f32. */

/* Symmetric: x ~ s*(L - nmax), L in [0, 2 nmax), minimising sum w*(x - s*(L - nmax))^2.
 * w NULL: x^2. Returns s. */
float hn_search_sym(int n, int nmax, const float *x, const float *w, uint8_t *codes);
/* The same problem by coordinate descent, w = x^2. */
float hn_search_sym_descent(int n, int nmax, const float *x, uint8_t *codes);
/* Asymmetric: x ~ s*L - *offset, L in [0, nmax], s and *offset >= 0; n <= 32. The error is
 * weighted by w, squared, or absolute where `absolute`. */
typedef struct hn_scan {
    float rmin, rdelta;
    int steps;
    bool absolute;
} hn_scan;
float hn_search_asym(int n, int nmax, const float *x, const float *w, hn_scan scan, uint8_t *codes, float *offset);
/* Non-negative values: v ~ s*L, L in [0, nmax]. */
float hn_search_scale(int n, int nmax, const float *v, const float *w, uint8_t *codes);

/* First element of largest magnitude, with its sign. */
static inline float hn_extreme(int n, const float *x)
{
    float best = 0, amax = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > amax) {
            amax = fabsf(x[i]);
            best = x[i];
        }
    return best;
}

#endif
