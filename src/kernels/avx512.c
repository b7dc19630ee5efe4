/* The AVX-512 level (F, BW, VL, DQ, VNNI). One 512-bit register is the contract's
 * sixteen lanes. Integer tiles hold 16 outputs: 16 rows × 1 column or 4 rows × 4
 * columns; lane r·C + c of every tile vector is output (r, c). */
#if defined(__x86_64__)

#include "kernels/avx512_decode.h"
#include "kernels/avx512_packed.h"
#include "kernels/avx512_rows.h"

#include <immintrin.h>

typedef __m512 v16;
#define V16_OP static inline __attribute__((always_inline))
V16_OP v16 v16_zero(void) { return _mm512_setzero_ps(); }
V16_OP v16 v16_set1(float f) { return _mm512_set1_ps(f); }
V16_OP v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
V16_OP void v16_store(float *p, v16 v) { _mm512_storeu_ps(p, v); }
V16_OP v16 v16_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
V16_OP v16 v16_load_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
V16_OP v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
V16_OP v16 v16_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
V16_OP v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
V16_OP v16 v16_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
V16_OP v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
V16_OP v16 v16_max(v16 a, v16 b) { return _mm512_max_ps(a, b); } /* a > b ? a : b */
V16_OP v16 v16_min(v16 a, v16 b) { return _mm512_min_ps(a, b); } /* a < b ? a : b */
/* fma in the first n lanes, c in the others */
V16_OP v16 v16_fma_first(v16 a, v16 b, v16 c, int n)
{
    return _mm512_mask3_fmadd_ps(a, b, c, (__mmask16)((1u << n) - 1));
}
V16_OP v16 v16_keep_first(v16 a, v16 other, int n)
{
    return n >= 16 ? a : _mm512_mask_blend_ps((__mmask16)((1u << n) - 1), other, a);
}
/* a < b ? x : y */
V16_OP v16 v16_where_less(v16 a, v16 b, v16 x, v16 y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
V16_OP float v16_tree(v16 t)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(t), _mm512_extractf32x8_ps(t, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
#define HN_V16_TREES
/* y[i] = the tree of t[i]: quarters of vectors, then lanes of quarters, side by side. */
V16_OP void v16_trees(float *y, float (*t)[16])
{
#define FOLD(SHUFFLE, v, w, ONE, OTHER) _mm512_add_ps(SHUFFLE(v, w, ONE), SHUFFLE(v, w, OTHER))
    v16 a[8];
    for (int i = 0; i < 8; i++)
        a[i] = FOLD(_mm512_shuffle_f32x4, v16_load(t[2 * i]), v16_load(t[2 * i + 1]), 0x44, 0xEE);
    for (int i = 0; i < 4; i++) a[i] = FOLD(_mm512_shuffle_f32x4, a[2 * i], a[2 * i + 1], 0x88, 0xDD);
    for (int i = 0; i < 2; i++) a[i] = FOLD(_mm512_shuffle_ps, a[2 * i], a[2 * i + 1], 0x44, 0xEE);
    a[0] = FOLD(_mm512_shuffle_ps, a[0], a[1], 0x88, 0xDD); /* lane 4j + i is t[4i + j]'s */
#undef FOLD
    v16_store(y, _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), a[0]));
}
V16_OP float v16_hmax(v16 v) { return _mm512_reduce_max_ps(v); }
/* p·2^n, where t = n + magic; one rounding, as two exact-but-one factors have */
V16_OP v16 v16_scale_pow2(v16 p, v16 t) { return _mm512_scalef_ps(p, _mm512_sub_ps(t, _mm512_set1_ps(HN_EXP_MAGIC))); }

/* what lanes_attn.h takes */
#define HN_LANES_STORE_F16
V16_OP void v16_store_f16(uint16_t *p, v16 v)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#define HN_LANES_DOT8
typedef __m512i i16v, k8;
V16_OP v16 v16_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
V16_OP v16 i16_to_v16(i16v v) { return _mm512_cvtepi32_ps(v); }
V16_OP i16v i16_start(int32_t qsum) { return _mm512_set1_epi32(-128 * qsum); } /* codes are stored 128 too large */
V16_OP k8 k8_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
V16_OP i16v i16_dot(i16v acc, k8 codes, int32_t q4) { return _mm512_dpbusd_epi32(acc, codes, _mm512_set1_epi32(q4)); }
#define HN_ATTN_VECS(n) 4
#define HN_ATTN_VECS_DOT(n) 2

#include "kernels/avx512_unpack.h"

/* ---- activations -------------------------------------------------------------------------- */

V16_OP __m512i abs_bits(__m512 v) { return _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7FFFFFFF)); }

/* n = 32 or 256. Returns d; sums of 16 codes to sum16[n/16]. */
V16_OP float quantize_block(int8_t *q, int32_t *sum16, const float *x, int n)
{
    __m512i am = _mm512_setzero_si512();
    for (int i = 0; i < n; i += 16) am = _mm512_max_epu32(am, abs_bits(_mm512_loadu_ps(x + i)));
    uint32_t amax_bits = _mm512_reduce_max_epu32(am);
    float amax = hn_bits_f32(amax_bits);
    if (amax_bits >= 0x7F800000 || amax < HN_TINY_AMAX) {
        memset(q, 0, (size_t)n);
        memset(sum16, 0, (size_t)n / 16 * sizeof *sum16);
        return amax_bits >= 0x7F800000 ? hn_bits_f32(0x7FC00000) : 0.0f;
    }
    __m512 inv = _mm512_set1_ps(127.0f / amax);
    for (int i = 0; i < n; i += 16) {
        __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), inv));
        _mm_storeu_si128((__m128i *)(q + i), _mm512_cvtepi32_epi8(v));
        sum16[i / 16] = _mm512_reduce_add_epi32(v);
    }
    return amax / 127.0f;
}

/* ---- products of training ------------------------------------------------------------------ */

/* subnormal operands and results as zero; returns what the mode was */
V16_OP unsigned flush_on(void)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040);
    return mode;
}
#define HN_FLUSH_ON flush_on
#define HN_FLUSH_OFF _mm_setcsr
#define HN_GEMM_VECS 4
#define HN_GEMM_NAME hn_gemm_avx512
#define HN_LEVEL_DECODE                                                                                      \
    [HN_F16] = decode_f16, [HN_BF16] = decode_bf16, [HN_Q8_0] = hn_avx512_decode_q8_0,                       \
    [HN_Q4_0] = hn_avx512_decode_q4_0, [HN_Q5_0] = hn_avx512_decode_q5_0, [HN_Q4_K] = hn_avx512_decode_q4_K, \
    [HN_Q5_K] = hn_avx512_decode_q5_K, [HN_Q6_K] = hn_avx512_decode_q6_K
#include "kernels/avx512_gemm.h"
/* lane j of x[i] becomes lane i of x[j] */
V16_OP void v16_turn(v16 x[16])
{
    __m512i word[16];
    for (int i = 0; i < 16; i++) word[i] = _mm512_castps_si512(x[i]);
    transpose_words(word);
    for (int i = 0; i < 16; i++) x[i] = _mm512_castsi512_ps(word[i]);
}
#define HN_GEMM_TRANSPOSE(dst, ldd, src, lds, rows, n) transpose16(dst, ldd, src, lds, rows, n)
#define HN_GEMM_COPY(dst, ldd, src, lds, rows, n) copy16(dst, ldd, src, lds, rows, n)

#define HN_TILE_R 4
#define HN_TILE_C 4
#define HN_TILE_K 2048
#define HN_FLOAT_FEW(T) hn_avx512_rows_##T
#define HN_LEVEL_MATMUL \
    [HN_IQ4_XS] = hn_avx512_rows_iq4_XS, [HN_IQ4_NL] = hn_avx512_rows_iq4_NL, [HN_MXFP4] = hn_avx512_rows_mxfp4
#define HN_LEVEL_PACKED                                                                                      \
    [HN_F32] = hn_avx512_packed_f32, [HN_F16] = hn_avx512_packed_f16, [HN_BF16] = hn_avx512_packed_bf16,     \
    [HN_Q4_K] = hn_avx512_packed_q4_K, [HN_Q5_K] = hn_avx512_packed_q5_K, [HN_Q6_K] = hn_avx512_packed_q6_K, \
    [HN_Q4_0] = hn_avx512_packed_q4_0, [HN_Q5_0] = hn_avx512_packed_q5_0, [HN_Q8_0] = hn_avx512_packed_q8_0, \
    [HN_IQ4_XS] = hn_avx512_packed_iq4_XS, [HN_IQ4_NL] = hn_avx512_packed_iq4_NL
#include "kernels/lanes.h"

#define matmul_q8_0 hn_avx512_rows_q8_0
#define matmul_q4_0 hn_avx512_rows_q4_0
#define matmul_q5_0 hn_avx512_rows_q5_0
#define matmul_q4_K hn_avx512_rows_q4_K
#define matmul_q5_K hn_avx512_rows_q5_K
#define matmul_q6_K hn_avx512_rows_q6_K
const hn_kernels hn_kernels_avx512 = HN_LANES_TABLE("avx512");
#else
typedef int hn_no_avx512; /* an empty file is not C */
#endif
