/* quant: the block formats of GGUF. One type table; exact dequantization for every
 * type that occurs in files; reference quantizers. Layouts and formulas:
 * ggml-org/ggml:src/ggml-common.h and ggml-quants.c, as described in docs/formats.md.
 * Knows blocks and rows; refuses to know tensors, files and speed. */
#ifndef HN_QUANT_H
#define HN_QUANT_H

#include "base/base.h"

typedef enum hn_type {
    HN_F32 = 0,
    HN_F16 = 1,
    HN_Q4_0 = 2,
    HN_Q4_1 = 3,
    HN_Q5_0 = 6,
    HN_Q5_1 = 7,
    HN_Q8_0 = 8,
    HN_Q8_1 = 9,
    HN_Q2_K = 10,
    HN_Q3_K = 11,
    HN_Q4_K = 12,
    HN_Q5_K = 13,
    HN_Q6_K = 14,
    HN_Q8_K = 15,
    HN_IQ2_XXS = 16,
    HN_IQ2_XS = 17,
    HN_IQ3_XXS = 18,
    HN_IQ1_S = 19,
    HN_IQ4_NL = 20,
    HN_IQ3_S = 21,
    HN_IQ2_S = 22,
    HN_IQ4_XS = 23,
    HN_I8 = 24,
    HN_I16 = 25,
    HN_I32 = 26,
    HN_I64 = 27,
    HN_F64 = 28,
    HN_IQ1_M = 29,
    HN_BF16 = 30,
    HN_TQ1_0 = 34,
    HN_TQ2_0 = 35,
    HN_MXFP4 = 39,
    HN_NVFP4 = 40,
    HN_Q1_0 = 41,
    HN_Q2_0 = 42,
    HN_TYPE_COUNT = 43
} hn_type;

/* y[n] = decoded row, n a multiple of the block; bit-exact. src may be unaligned. */
typedef void hn_dequantize_fn(float *y, const void *src, int64_t n);
/* dst = encoded x[n], one row, n a multiple of the block. importance: [n] non-negative
 * column weights, or NULL. dst may be unaligned. */
typedef void hn_quantize_fn(void *dst, const float *x, int64_t n, const float *importance);

typedef struct hn_type_info {
    const char *name; /* "Q4_K" */
    uint32_t block_elems, block_bytes;
    bool weight;                  /* may be a weight in a file (not Q8_1, Q8_K, integers) */
    hn_dequantize_fn *dequantize; /* never NULL in the table */
    hn_quantize_fn *quantize;     /* NULL where hone cannot */
} hn_type_info;

/* NULL for unknown, removed or foreign ids. */
const hn_type_info *hn_type_get(uint32_t id);
/* By name, case-insensitive; -1 if unknown. */
int32_t hn_type_by_name(const char *name);
/* Why an id is refused as a weight: "removed type Q4_2", "ik_llama.cpp type IQ4_KS", … Never NULL. */
const char *hn_type_why_not(uint32_t id);
/* Bytes of one row of n elements; n must be a multiple of the block. */
static inline uint64_t hn_row_bytes(const hn_type_info *ti, uint64_t n)
{
    return n / ti->block_elems * ti->block_bytes;
}
/* Bytes of a tensor; false if malformed (rows not whole blocks, more than 4 dims) or above
 * INT64_MAX. Dims of 0 give 0 bytes; n_dim 0 is one element. */
bool hn_tensor_nbytes(const hn_type_info *ti, const uint64_t *ne, int n_dim, uint64_t *out);
/* The first of n numbers of type F32, F16, BF16 or F64, at any address, that is NaN or infinite; n: none is. */
uint64_t hn_first_odd(const void *numbers, hn_type type, uint64_t n);

/* ---- mixtures: what "Q4_K_M" means for each tensor ------------------------------- */

typedef struct hn_mix_model { /* what the rules need to know of a model */
    const char *arch;
    int32_t n_layer;                     /* blocks that draft, too */
    int32_t n_head, n_head_kv, n_expert; /* heads of the first layer */
    bool tied;                           /* no output.weight */
    bool importance;                     /* quantized with an importance vector */
    int32_t n_v;                         /* number of attn_v, attn_qkv, attn_kv_b tensors; 0: n_layer */
} hn_mix_model;
/* Mixture name → base type and general.file_type; false: unknown. */
bool hn_mix_find(const char *name, hn_type *base, uint32_t *file_type);
const char *hn_mix_name(size_t i); /* of all, the short ones (Q4_K) too; NULL behind the last */
/* Type of tensor `name` with `ne` in this mixture. Call in processing order: tensors
 * outside layers first, then layers ascending; `state` starts zeroed. Tensors that
 * are never quantized give F32. */
typedef struct hn_mix_state {
    int32_t i_v, i_down, i_gate, i_up, n_fallback;
} hn_mix_state;
hn_type hn_mix_type(const char *mixture, const hn_mix_model *m, hn_mix_state *state, const char *name,
                    const uint64_t *ne, int n_dim);
bool hn_mix_is_v(const char *name); /* is the tensor of that name one of hn_mix_model.n_v? */

/* ---- scalars ---------------------------------------------------------------------- */

static inline uint32_t hn_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float hn_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float hn_bf16_to_f32(uint16_t h) { return hn_bits_f32((uint32_t)h << 16); }
static inline uint16_t hn_f32_to_bf16(float f) /* nearest even; NaN quieted; subnormals kept */
{
    uint32_t u = hn_f32_bits(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* binary16, subnormals kept, exact */
static inline float hn_f16_to_f32(uint16_t h)
{
    uint32_t s = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    if (e == 31) return hn_bits_f32(s | 0x7F800000 | m << 13 | (m ? 0x400000u : 0)); /* NaN quieted, as F16C does */
    if (e) return hn_bits_f32(s | (e + 112) << 23 | m << 13);
    float f = (float)m * 0x1p-24f;
    return hn_bits_f32(s | hn_f32_bits(f));
}
/* nearest even, overflow → infinity, NaN quieted with its top payload bits (as F16C) */
static inline uint16_t hn_f32_to_f16(float f)
{
    uint32_t u = hn_f32_bits(f), s = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000) return (uint16_t)(s | 0x7E00 | (a >> 13 & 0x3FF));
    if (a >= 0x477FF000) return (uint16_t)(s | 0x7C00); /* ≥ 65520 rounds to infinity */
    if (a < 0x38800000) {                               /* subnormal half: add 0.5 to align */
        float t = hn_bits_f32(a) + 0.5f;                /* ulp of 0.5 is 2^-24 */
        return (uint16_t)(s | (hn_f32_bits(t) - 0x3F000000));
    }
    return (uint16_t)(s | (((a + 0xFFF + (a >> 13 & 1)) >> 13) - (112 << 10)));
}

/* ---- blocks that kernels know (drawings: docs/formats.md) ---------------------------- */

typedef struct hn_q4_0 {
    uint16_t d;
    uint8_t q[16];
} hn_q4_0;
typedef struct hn_q5_0 {
    uint16_t d;
    uint8_t h[4];
    uint8_t q[16];
} hn_q5_0;
typedef struct hn_q8_0 {
    uint16_t d;
    int8_t q[32];
} hn_q8_0;
typedef struct hn_mxfp4 {
    uint8_t e;
    uint8_t q[16];
} hn_mxfp4;
typedef struct hn_q4_K {
    uint16_t d, dmin;
    uint8_t s[12];
    uint8_t q[128];
} hn_q4_K;
typedef struct hn_q5_K {
    uint16_t d, dmin;
    uint8_t s[12];
    uint8_t h[32];
    uint8_t q[128];
} hn_q5_K;
typedef struct hn_q6_K {
    uint8_t l[128];
    uint8_t h[64];
    int8_t s[16];
    uint16_t d;
} hn_q6_K;
typedef struct hn_iq4_XS {
    uint16_t d, sh;
    uint8_t sl[4];
    uint8_t q[128];
} hn_iq4_XS; /* IQ4_NL has the fields of Q4_0 */
_Static_assert(sizeof(hn_iq4_XS) == 136, "256-element blocks");
_Static_assert(sizeof(hn_q4_0) == 18 && sizeof(hn_q5_0) == 22 && sizeof(hn_q8_0) == 34 && sizeof(hn_mxfp4) == 17,
               "32-element blocks");
_Static_assert(sizeof(hn_q4_K) == 144 && sizeof(hn_q5_K) == 176 && sizeof(hn_q6_K) == 210, "256-element blocks");

extern const int8_t hn_e2m1_doubled[16]; /* of MXFP4 and NVFP4 */
/* The scale of an MXFP4 block, halved because its levels are doubled: 2^(e − 128), subnormal below e = 2. */
static inline float hn_mxfp4_scale(uint32_t e) { return hn_bits_f32(e < 2 ? 0x200000u << e : (e - 1) << 23); }
extern const int8_t hn_iq4_levels[16]; /* N of IQ4_NL and IQ4_XS */

/* The eight 6-bit scales and minima of Q4_K and Q5_K from their 12 bytes. */
static inline void hn_k_scales(const uint8_t s[12], uint8_t scale[8], uint8_t min[8])
{
    for (int i = 0; i < 4; i++) {
        scale[i] = s[i] & 63;
        min[i] = s[i + 4] & 63;
        scale[i + 4] = (uint8_t)((s[i + 8] & 15) | s[i] >> 6 << 4);
        min[i + 4] = (uint8_t)(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
    }
}

#endif
