/* The NEON level, floats: the contract's sixteen lanes are four registers. The integer
 * products are in neon_tiles.h, compiled once per dot product instruction.
 * Needs FPCR as programs start with it: no flushing, NaNs kept, nearest even. */
#if defined(__aarch64__)

#include "kernels/neon_scores.h"
#include "kernels/neon_v16.h"

/* Quarters of the lanes, so that 4 × 4 sums stay in registers. */
#define HN_V16_PARTS
typedef float32x4_t vp;
V16_OP vp vp_zero(void) { return vdupq_n_f32(0.0f); }
V16_OP vp vp_fma(vp x, vp y, vp z) { return vfmaq_f32(z, x, y); }
#define vp_load vld1q_f32
#define vp_load_f16 widen_f16
#define vp_load_bf16 widen_bf16
#define vp_add vaddq_f32
#define vp_store vst1q_f32

#define HN_TILE_R 4
#define HN_TILE_C 4
#define HN_TILE_K 2048
#include "kernels/lanes.h"

/* ---- packed floats: four rows a register, the sixteen lanes of the contract are registers ----------- */

#define PACKED_FLOAT(NAME, ELEM, LOAD4)                                                                               \
    static void NAME(const hn_mm *m)                                                                                  \
    {                                                                                                                 \
        for (int64_t r = m->r0; r < m->r1; r += 4)                                                                    \
            for (int64_t c = 0; c < m->n_col; c++) {                                                                  \
                const ELEM *w =                                                                                       \
                    (const ELEM *)((const char *)m->w + (size_t)(r / HN_PACK_ROWS) * m->w_stride) + r % HN_PACK_ROWS; \
                const float *x = (const float *)((const char *)m->x + (size_t)c * m->x_stride);                       \
                float32x4_t t[16];                                                                                    \
                for (int l = 0; l < 16; l++) t[l] = vdupq_n_f32(0.0f);                                                \
                for (int64_t b = 0; b < m->n_in; b += 256) {                                                          \
                    int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in, k = b;                                       \
                    float32x4_t p[16];                                                                                \
                    for (int l = 0; l < 16; l++) p[l] = vdupq_n_f32(0.0f);                                            \
                    for (; k + 16 <= end; k += 16)                                                                    \
                        for (int l = 0; l < 16; l++)                                                                  \
                            p[l] = vfmaq_f32(p[l], LOAD4(w + (k + l) * HN_PACK_ROWS), vdupq_n_f32(x[k + l]));         \
                    for (int l = 0; k < end; k++, l++)                                                                \
                        p[l] = vfmaq_f32(p[l], LOAD4(w + k * HN_PACK_ROWS), vdupq_n_f32(x[k]));                       \
                    for (int l = 0; l < 16; l++) t[l] = b ? vaddq_f32(t[l], p[l]) : p[l];                             \
                }                                                                                                     \
                for (int n = 8; n; n /= 2)                                                                            \
                    for (int l = 0; l < n; l++) t[l] = vaddq_f32(t[l], t[l + n]);                                     \
                float y[4];                                                                                           \
                vst1q_f32(y, t[0]);                                                                                   \
                for (int i = 0; i < 4 && r + i < m->r1; i++) m->y[c * m->ldy + r + i] = y[i];                         \
            }                                                                                                         \
    }
PACKED_FLOAT(packed_f32, float, vld1q_f32)
PACKED_FLOAT(packed_f16, uint16_t, widen_f16)
PACKED_FLOAT(packed_bf16, uint16_t, widen_bf16)

/* q8_0 with the scores of CPUs that have SDOT (neon_dotprod_scores.c) */
void hn_neon_attn_q8_dotprod(const hn_attn *h)
{
    static const attn_reader how = { TABLE(hn_neon_dotprod_scores),
                                     TABLE(hn_neon_dotprod_scores),
                                     TABLE(q8_values),
                                     TABLE(wide_values),
                                     NULL,
                                     open_q8,
                                     scales_q8,
                                     false };
    attn_walk(h, HN_CACHE_Q8_0, &how);
}

const hn_kernels hn_kernels_neon = {
    .name = "neon",
    .matmul = { [HN_F32] = matmul_f32, [HN_F16] = matmul_f16, [HN_BF16] = matmul_bf16 },
    .packed = { [HN_F32] = packed_f32, [HN_F16] = packed_f16, [HN_BF16] = packed_bf16 },
    .low_rank = low_rank,
    .quantize256 = quantize256,
    .quantize32 = quantize32,
    .rms_norm = rms_norm,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .oai_mul = oai_mul,
    .relu_mul = relu_mul,
    .exp = exp_many,
    HN_LANES_RWKV,
    HN_LANES_RECURRENT,
    HN_LANES_TRAIN,
    HN_LANES_ATTN
};
#else
typedef int hn_no_neon; /* an empty file is not C */
#endif
