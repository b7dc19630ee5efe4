/* The sixteen lanes of the AVX2 levels: two registers. What lanes.h and lanes_scores.h take; with HN_VNNI_LANES the
 * integer dot product of AVX-VNNI. */
#ifndef HN_AVX2_LANES_H
#define HN_AVX2_LANES_H

#ifdef HN_VNNI_LANES
#include "kernels/avx_vnni.h"
#else
#include "kernels/avx2.h"
#endif

typedef struct v16 {
    __m256 a, b;
} v16;
#define V16_OP static inline __attribute__((always_inline))
V16_OP v16 v16_zero(void) { return (v16){ _mm256_setzero_ps(), _mm256_setzero_ps() }; }
V16_OP v16 v16_set1(float f) { return (v16){ _mm256_set1_ps(f), _mm256_set1_ps(f) }; }
V16_OP v16 v16_load(const float *p) { return (v16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
V16_OP void v16_store(float *p, v16 v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}
V16_OP v16 v16_load_f16(const uint16_t *p)
{
    return (v16){ _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                  _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))) };
}
V16_OP __m256 widen_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
V16_OP v16 v16_load_bf16(const uint16_t *p) { return (v16){ widen_bf16(p), widen_bf16(p + 8) }; }
#define V16_BINARY(NAME, OP) \
    V16_OP v16 NAME(v16 x, v16 y) { return (v16){ OP(x.a, y.a), OP(x.b, y.b) }; }
V16_BINARY(v16_add, _mm256_add_ps)
V16_BINARY(v16_sub, _mm256_sub_ps)
V16_BINARY(v16_mul, _mm256_mul_ps)
V16_BINARY(v16_div, _mm256_div_ps)
V16_BINARY(v16_max, _mm256_max_ps) /* a > b ? a : b */
V16_BINARY(v16_min, _mm256_min_ps) /* a < b ? a : b */
V16_OP v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){ _mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b) };
}
/* all ones in the lanes below n */
V16_OP __m256 first_lanes(int n)
{
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}
V16_OP v16 v16_keep_first(v16 x, v16 other, int n)
{
    return (v16){ _mm256_blendv_ps(other.a, x.a, first_lanes(n)), _mm256_blendv_ps(other.b, x.b, first_lanes(n - 8)) };
}
/* fma in the first n lanes, z in the others */
V16_OP v16 v16_fma_first(v16 x, v16 y, v16 z, int n) { return v16_keep_first(v16_fma(x, y, z), z, n); }
/* a < b ? x : y */
V16_OP v16 v16_where_less(v16 a, v16 b, v16 x, v16 y)
{
    return (v16){ _mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                  _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)) };
}
V16_OP float v16_tree(v16 t)
{
    __m256 s = _mm256_add_ps(t.a, t.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
#define HN_V16_TREES
/* Eight of the trees below. */
V16_OP void trees8(float *y, float (*t)[16])
{
#define FOLD(SHUFFLE, v, w, ONE, OTHER) _mm256_add_ps(SHUFFLE(v, w, ONE), SHUFFLE(v, w, OTHER))
    __m256 a[8];
    for (int i = 0; i < 8; i++) a[i] = _mm256_add_ps(_mm256_loadu_ps(t[i]), _mm256_loadu_ps(t[i] + 8));
    for (int i = 0; i < 4; i++) a[i] = FOLD(_mm256_permute2f128_ps, a[i], a[i + 4], 0x20, 0x31);
    for (int i = 0; i < 2; i++) a[i] = FOLD(_mm256_shuffle_ps, a[2 * i], a[2 * i + 1], 0x44, 0xEE);
    _mm256_storeu_ps(y, FOLD(_mm256_shuffle_ps, a[0], a[1], 0x88, 0xDD));
#undef FOLD
}
/* y[i] = the tree of t[i], sixteen of them. */
V16_OP void v16_trees(float *y, float (*t)[16])
{
    trees8(y, t);
    trees8(y + 8, t + 8);
}

/* lane j of x[i] becomes lane i of x[j], of eight */
V16_OP void turn8(__m256 x[8])
{
    __m256 pair[8], four[8];
    for (int i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) { /* lane 4l + …: number 4l + 2h of four rows, and the next */
            four[i + 2 * h] = _mm256_shuffle_ps(pair[i + h], pair[i + h + 2], 0x44);
            four[i + 2 * h + 1] = _mm256_shuffle_ps(pair[i + h], pair[i + h + 2], 0xEE);
        }
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
        x[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
    }
}
/* The same of sixteen: by quarters, of which two change places. */
V16_OP void v16_turn(v16 x[16])
{
    __m256 quarter[4][8];
    for (int i = 0; i < 8; i++) {
        quarter[0][i] = x[i].a;
        quarter[1][i] = x[i + 8].a;
        quarter[2][i] = x[i].b;
        quarter[3][i] = x[i + 8].b;
    }
    for (int q = 0; q < 4; q++) turn8(quarter[q]);
    for (int i = 0; i < 8; i++) {
        x[i] = (v16){ quarter[0][i], quarter[1][i] };
        x[i + 8] = (v16){ quarter[2][i], quarter[3][i] };
    }
}

/* Half of the lanes, so that 4 × 3 sums stay in registers. */
#define HN_V16_PARTS
typedef __m256 vp;
#define vp_zero _mm256_setzero_ps
#define vp_load _mm256_loadu_ps
#define vp_load_bf16 widen_bf16
#define vp_add _mm256_add_ps
#define vp_fma _mm256_fmadd_ps
#define vp_store _mm256_storeu_ps
V16_OP vp vp_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

V16_OP float v16_hmax(v16 v)
{
    __m256 s = _mm256_max_ps(v.a, v.b);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}
V16_OP __m256 scale_pow2(__m256 p, __m256 t)
{
    __m256i e = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(HN_EXP_MAGIC)));
    __m256i h = _mm256_srai_epi32(e, 1), bias = _mm256_set1_epi32(127);
    __m256 s1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23));
    __m256 s2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(e, h), bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(p, s1), s2);
}
/* p·2^n, where t = n + magic */
V16_OP v16 v16_scale_pow2(v16 p, v16 t) { return (v16){ scale_pow2(p.a, t.a), scale_pow2(p.b, t.b) }; }

/* subnormal operands and results as zero; returns what the mode was */
V16_OP unsigned flush_on(void)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040);
    return mode;
}
#define HN_FLUSH_ON flush_on
#define HN_FLUSH_OFF _mm_setcsr

/* what lanes_attn.h takes */
#define HN_LANES_STORE_F16
V16_OP void v16_store_f16(uint16_t *p, v16 v)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#define HN_LANES_DOT8
typedef struct i16v {
    __m256i a, b;
} i16v;
typedef struct k8 {
    __m256i a, b;
} k8; /* codes of 8 keys each */
V16_OP v16 v16_load_i8(const int8_t *p)
{
    return (v16){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))),
                  _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))) };
}
V16_OP v16 i16_to_v16(i16v v) { return (v16){ _mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b) }; }
#ifdef HN_VNNI_LANES
/* codes are stored 128 too large */
V16_OP i16v i16_start(int32_t qsum) { return (i16v){ _mm256_set1_epi32(-128 * qsum), _mm256_set1_epi32(-128 * qsum) }; }
V16_OP k8 k8_load(const uint8_t *p) { return (k8){ load256(p), load256(p + 32) }; }
#define key_dot4 dpbusd
#else
V16_OP i16v i16_start(int32_t qsum) { return (i16v){ _mm256_setzero_si256(), _mm256_setzero_si256() }; }
V16_OP k8 k8_load(const uint8_t *p)
{
    __m256i bias = _mm256_set1_epi8(-128);
    return (k8){ _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), bias),
                 _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(p + 32)), bias) };
}
/* |code|·(q with the code's sign): at most 2·127·127 in 16 bits */
V16_OP __m256i key_dot4(__m256i acc, __m256i codes, __m256i q)
{
    __m256i s = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(s, _mm256_set1_epi16(1)));
}
#endif
V16_OP i16v i16_dot(i16v acc, k8 codes, int32_t q4)
{
    __m256i q = _mm256_set1_epi32(q4);
    return (i16v){ key_dot4(acc.a, codes.a, q), key_dot4(acc.b, codes.b, q) };
}

/* Attention over a q8_0 cache with scores by other tiles of lanes_scores.h than AVX2's. */
struct attn_rows;
typedef void hn_attn_scores_fn(const struct attn_rows *a, const void *block, int64_t r);
void hn_avx2_attn_q8(const hn_attn *h, hn_attn_scores_fn *const *scores);

#endif
