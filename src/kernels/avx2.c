/* The AVX2 level (AVX2, FMA, F16C). The contract's sixteen lanes are two registers.
 * Integer tiles hold 8 outputs: 8 rows × 1 column or 2 rows × 4 columns; lane
 * r·C + c of every tile vector is output (r, c). */
#if defined(__x86_64__)

#include "kernels/avx2.h"

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
} k8; /* signed codes of 8 keys each */
V16_OP v16 v16_load_i8(const int8_t *p)
{
    return (v16){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))),
                  _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))) };
}
V16_OP v16 i16_to_v16(i16v v) { return (v16){ _mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b) }; }
V16_OP i16v i16_start(int32_t qsum) { return (i16v){ _mm256_setzero_si256(), _mm256_setzero_si256() }; }
V16_OP k8 k8_load(const uint8_t *p)
{
    __m256i bias = _mm256_set1_epi8(-128);
    return (k8){ _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), bias),
                 _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(p + 32)), bias) };
}
/* |code|·(q with the code's sign): at most 2·127·127 in 16 bits */
V16_OP __m256i dot4(__m256i acc, __m256i codes, __m256i q)
{
    __m256i s = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(s, _mm256_set1_epi16(1)));
}
V16_OP i16v i16_dot(i16v acc, k8 codes, int32_t q4)
{
    __m256i q = _mm256_set1_epi32(q4);
    return (i16v){ dot4(acc.a, codes.a, q), dot4(acc.b, codes.b, q) };
}

/* ---- activations -------------------------------------------------------------------------- */

/* n = 32 or 256. Returns d; sums of 16 codes to sum16[n/16]. */
V16_OP float quantize_block(int8_t *q, int32_t *sum16, const float *x, int n)
{
    __m256i am = _mm256_setzero_si256(), abs_mask = _mm256_set1_epi32(0x7FFFFFFF);
    for (int i = 0; i < n; i += 8)
        am = _mm256_max_epu32(am, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), abs_mask));
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(am), _mm256_extracti128_si256(am, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    uint32_t amax_bits = (uint32_t)_mm_cvtsi128_si32(m);
    float amax = hn_bits_f32(amax_bits);
    if (amax_bits >= 0x7F800000 || amax < HN_TINY_AMAX) {
        memset(q, 0, (size_t)n);
        memset(sum16, 0, (size_t)n / 16 * sizeof *sum16);
        return amax_bits >= 0x7F800000 ? hn_bits_f32(0x7FC00000) : 0.0f;
    }
    __m256 inv = _mm256_set1_ps(127.0f / amax);
    for (int i = 0; i < n; i += 16) {
        __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), inv));
        __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8), inv));
        __m256i p = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
        _mm_storeu_si128((__m128i *)(q + i),
                         _mm_packs_epi16(_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1)));
        __m256i s = _mm256_add_epi32(a, b);
        __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4E));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xB1));
        sum16[i / 16] = _mm_cvtsi128_si32(t);
    }
    return amax / 127.0f;
}

#define HN_TILE_R 4
#define HN_TILE_C 3
#define HN_TILE_K 512 /* four rows and three columns of it stay in the first cache */
#define HN_LEVEL_MATMUL [HN_IQ4_XS] = matmul_iq4_XS, [HN_IQ4_NL] = matmul_iq4_NL, [HN_MXFP4] = matmul_mxfp4
#define HN_LEVEL_PACKED                                                                                \
    [HN_F32] = hn_avx2_packed_f32, [HN_F16] = hn_avx2_packed_f16, [HN_BF16] = hn_avx2_packed_bf16,     \
    [HN_Q4_K] = hn_avx2_packed_q4_K, [HN_Q5_K] = hn_avx2_packed_q5_K, [HN_Q6_K] = hn_avx2_packed_q6_K, \
    [HN_Q4_0] = hn_avx2_packed_q4_0, [HN_Q5_0] = hn_avx2_packed_q5_0, [HN_Q8_0] = hn_avx2_packed_q8_0, \
    [HN_IQ4_XS] = hn_avx2_packed_iq4_XS, [HN_IQ4_NL] = hn_avx2_packed_iq4_NL
#include "kernels/lanes.h"

/* lane i = sum of v[i] */
V16_OP __m256i sum8x8(const __m256i v[8])
{
    __m256i lo = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i hi = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(lo, hi, 0x20), _mm256_permute2x128_si256(lo, hi, 0x31));
}

/* Results of a tile of R rows × C columns at (r, c), those inside the matrix. */
V16_OP void store_tile(const hn_mm *m, int64_t r, int64_t c, int R, int C, __m256 acc)
{
    float y[8];
    _mm256_storeu_ps(y, acc);
    if (C == 1 && r + R <= m->r1) {
        _mm256_storeu_ps(m->y + c * m->ldy + r, acc);
        return;
    }
    for (int j = 0; j < C && c + j < m->n_col; j++)
        for (int i = 0; i < R && r + i < m->r1; i++) m->y[(c + j) * m->ldy + r + i] = y[i * C + j];
}

V16_OP __m256 four_twice(float a, float b, float c, float d) { return _mm256_setr_ps(a, b, c, d, a, b, c, d); }

/* Eight rows at once are eight short streams, too many for the hardware to follow.
 * Their successors are contiguous: fetch those in address order while these compute. */
V16_OP void prefetch_next(const hn_mm *m, const void *row0, int64_t at, size_t n)
{
    const char *p = (const char *)row0 + 8 * m->w_stride + at;
    for (size_t i = 0; i < n; i += 64) _mm_prefetch(p + i, _MM_HINT_T1);
}

/* ---- K-quants --------------------------------------------------------------------------------------- */

/* A weight block: codes in natural order, int16 scales for each pair of codes,
 * `side`: 16 int16 that multiply the sums of 16 activations. Codes stay below 64, so
 * maddubs (63·127·2 = 16,002) cannot saturate; levels are signed. `side` is of minima,
 * or of the offset 32 of the codes, or none. */
typedef enum kkind { MINIMA, OFFSET, LEVELS } kkind;
typedef struct kblock {
    __m256i q[8], sc[8], side;
} kblock;

/* two equal bytes for the shuffle of 16-bit lanes, in all lanes */
V16_OP __m256i lane16(int i) { return _mm256_set1_epi16((short)(2 * i | (2 * i + 1) << 8)); }

V16_OP void unpack_scales_k4(kblock *o, const uint8_t *s)
{
    uint32_t u[3];
    memcpy(u, s, 12);
    uint64_t sc = (u[0] & 0x3F3F3F3F) | (uint64_t)((u[2] & 0x0F0F0F0F) | (u[0] >> 2 & 0x30303030)) << 32;
    uint64_t mn = (u[1] & 0x3F3F3F3F) | (uint64_t)((u[2] >> 4 & 0x0F0F0F0F) | (u[1] >> 2 & 0x30303030)) << 32;
    __m256i v = _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)sc)));
    for (int i = 0; i < 8; i++) o->sc[i] = _mm256_shuffle_epi8(v, lane16(i));
    __m128i m = _mm_cvtsi64_si128((int64_t)mn);
    o->side = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(m, m));
}

V16_OP void unpack_q4_K(kblock *o, const hn_q4_K *w)
{
    __m256i mask = _mm256_set1_epi8(15);
    for (int g = 0; g < 4; g++) {
        __m256i b = _mm256_loadu_si256((const __m256i *)(w->q + 32 * g));
        o->q[2 * g] = _mm256_and_si256(b, mask);
        o->q[2 * g + 1] = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
    }
    unpack_scales_k4(o, w->s);
}

V16_OP void unpack_q5_K(kblock *o, const hn_q5_K *w)
{
    __m256i mask = _mm256_set1_epi8(15), bit = _mm256_set1_epi8(16);
    __m256i h = _mm256_loadu_si256((const __m256i *)w->h);
    for (int g = 0; g < 4; g++) {
        __m256i b = _mm256_loadu_si256((const __m256i *)(w->q + 32 * g));
        __m256i h0 = _mm256_and_si256(_mm256_slli_epi16(_mm256_srli_epi16(h, 2 * g), 4), bit);
        __m256i h1 = _mm256_and_si256(_mm256_slli_epi16(_mm256_srli_epi16(h, 2 * g + 1), 4), bit);
        o->q[2 * g] = _mm256_or_si256(_mm256_and_si256(b, mask), h0);
        o->q[2 * g + 1] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(b, 4), mask), h1);
    }
    unpack_scales_k4(o, w->s);
}

V16_OP void unpack_q6_K(kblock *o, const hn_q6_K *w)
{
    __m256i mask = _mm256_set1_epi8(15), high = _mm256_set1_epi8(48);
    for (int n = 0; n < 2; n++) {
        __m256i l0 = _mm256_loadu_si256((const __m256i *)(w->l + 64 * n)),
                l1 = _mm256_loadu_si256((const __m256i *)(w->l + 64 * n + 32));
        __m256i h = _mm256_loadu_si256((const __m256i *)(w->h + 32 * n));
        o->q[4 * n] = _mm256_or_si256(_mm256_and_si256(l0, mask), _mm256_and_si256(_mm256_slli_epi16(h, 4), high));
        o->q[4 * n + 1] = _mm256_or_si256(_mm256_and_si256(l1, mask), _mm256_and_si256(_mm256_slli_epi16(h, 2), high));
        o->q[4 * n + 2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l0, 4), mask), _mm256_and_si256(h, high));
        o->q[4 * n + 3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l1, 4), mask),
                                          _mm256_and_si256(_mm256_srli_epi16(h, 2), high));
    }
    o->side = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w->s));
    __m256i lo = _mm256_permute4x64_epi64(o->side, 0x44), hi = _mm256_permute4x64_epi64(o->side, 0xEE);
    for (int s = 0; s < 8; s++) /* scale 2s in the lower half, 2s + 1 in the upper */
        o->sc[s] = _mm256_shuffle_epi8(
            s < 4 ? lo : hi,
            _mm256_inserti128_si256(lane16(2 * s % 8),
                                    _mm_set1_epi16((short)((4 * s % 16 + 2) | (4 * s % 16 + 3) << 8)), 1));
}

V16_OP void unpack_iq4_XS(kblock *o, const hn_iq4_XS *w)
{
    for (int s = 0; s < 8; s++) {
        __m128i b = _mm_loadu_si128((const __m128i *)(w->q + 16 * s));
        o->q[s] = iq4_levels(low_nibbles(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1)));
    }
    __m128i sl = _mm_cvtsi32_si128(load32(w->sl)), sh = _mm_set1_epi16((short)w->sh);
    sl = _mm_and_si128(_mm_unpacklo_epi8(sl, _mm_srli_epi16(sl, 4)), _mm_set1_epi8(15));
    /* bits 2i, 2i + 1 of sh to the top of lane i */
    sh = _mm_srli_epi16(
        _mm_mullo_epi16(sh, _mm_setr_epi16(1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1)), 14);
    sl = _mm_sub_epi16(_mm_or_si128(_mm_cvtepu8_epi16(sl), _mm_slli_epi16(sh, 4)), _mm_set1_epi16(32));
    __m256i v = _mm256_broadcastsi128_si256(sl);
    for (int s = 0; s < 8; s++) o->sc[s] = _mm256_shuffle_epi8(v, lane16(s));
    o->side = _mm256_setzero_si256();
}

V16_OP __m256i kblock_dot(const kblock *w, const hn_a256 *a, kkind kind)
{
    __m256i acc = _mm256_setzero_si256();
    for (int s = 0; s < 8; s++) {
        __m256i v = load256(a->q + 32 * s),
                p = kind == LEVELS ? signed_pairs(w->q[s], v) : _mm256_maddubs_epi16(w->q[s], v);
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(p, w->sc[s]));
    }
    return acc;
}

/* Lane r·C + c: 4 bytes at offset `at` of row r. */
V16_OP __m256i row_words(const char *const *w, int R, int C, int64_t at)
{
    int32_t v[8];
    for (int i = 0; i < R; i++) v[i] = load32(w[i] + at);
    if (C == 1) return _mm256_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    return _mm256_setr_epi32(v[0], v[0], v[0], v[0], v[1], v[1], v[1], v[1]);
}
/* the lower, the upper halves of words */
V16_OP void two_f16(__m256i v, __m256 *lo, __m256 *hi)
{
    __m256i p = _mm256_packus_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xFFFF)), _mm256_srli_epi32(v, 16));
    p = _mm256_permute4x64_epi64(p, 0xD8);
    *lo = _mm256_cvtph_ps(_mm256_castsi256_si128(p));
    *hi = _mm256_cvtph_ps(_mm256_extracti128_si256(p, 1));
}

/* R·C = 8 outputs at (r, c); rows beyond r1 and columns beyond n_col repeat the last. */
#define K_TILE(NAME, BLOCK, UNPACK, KIND, R, C)                                                                 \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                      \
    {                                                                                                           \
        const char *w[R];                                                                                       \
        const hn_a256 *x[C];                                                                                    \
        for (int i = 0; i < R; i++)                                                                             \
            w[i] = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;              \
        for (int j = 0; j < C; j++)                                                                             \
            x[j] = (const hn_a256 *)((const char *)m->x +                                                       \
                                     (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride);          \
        __m256 acc = _mm256_setzero_ps();                                                                       \
        for (int64_t b = 0; b < m->n_in / 256; b++) {                                                           \
            __m256i iv[8], sv[8];                                                                               \
            int64_t at = b * (int64_t)sizeof(BLOCK);                                                            \
            for (int i = 0; i < R; i++) {                                                                       \
                kblock k;                                                                                       \
                UNPACK(&k, (const BLOCK *)(w[i] + at));                                                         \
                if (C == 1) prefetch_next(m, w[0], at *R + i * (int64_t)sizeof(BLOCK), sizeof(BLOCK));          \
                for (int j = 0; j < C; j++) {                                                                   \
                    iv[i * C + j] = kblock_dot(&k, x[j] + b, KIND);                                             \
                    if (KIND != LEVELS) sv[i * C + j] = _mm256_madd_epi16(k.side, load256(x[j][b].bsum));       \
                }                                                                                               \
            }                                                                                                   \
            /* d and dmin begin a block; in Q6_K d is the last of the last four bytes */                        \
            __m256 d, dmin,                                                                                     \
                da = C == 1 ? _mm256_set1_ps(x[0][b].d)                                                         \
                            : four_twice(x[0][b].d, x[1 % C][b].d, x[2 % C][b].d, x[3 % C][b].d);               \
            __m256i isum = sum8x8(iv), side = _mm256_setzero_si256();                                           \
            if (KIND == OFFSET) two_f16(row_words(w, R, C, at + (int64_t)sizeof(BLOCK) - 4), &dmin, &d);        \
            else two_f16(row_words(w, R, C, at), &d, &dmin);                                                    \
            if (KIND != LEVELS) side = sum8x8(sv);                                                              \
            if (KIND == OFFSET) isum = _mm256_sub_epi32(isum, _mm256_slli_epi32(side, 5));                      \
            acc = _mm256_fmadd_ps(_mm256_mul_ps(d, da), _mm256_cvtepi32_ps(isum), acc);                         \
            if (KIND == MINIMA) acc = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, da), _mm256_cvtepi32_ps(side), acc); \
        }                                                                                                       \
        store_tile(m, r, c, R, C, acc);                                                                         \
    }

/* Opening a panel pays from two columns (measured: docs/LAB.md). */
enum { PANEL_COLS = 2 };

#define MATMUL_TILES(NAME, PANEL)                                           \
    static void NAME(const hn_mm *m)                                        \
    {                                                                       \
        if (m->n_col == 1) {                                                \
            for (int64_t r = m->r0; r < m->r1; r += 8) NAME##_8x1(m, r, 0); \
            return;                                                         \
        }                                                                   \
        if (m->panel && m->n_col >= PANEL_COLS) {                           \
            PANEL(m);                                                       \
            return;                                                         \
        }                                                                   \
        for (int64_t c = 0; c < m->n_col; c += 4)                           \
            for (int64_t r = m->r0; r < m->r1; r += 2) NAME##_2x4(m, r, c); \
    }
#define MATMUL_K(TYPE, KIND)                                          \
    K_TILE(matmul_##TYPE##_8x1, hn_##TYPE, unpack_##TYPE, KIND, 8, 1) \
    K_TILE(matmul_##TYPE##_2x4, hn_##TYPE, unpack_##TYPE, KIND, 2, 4) \
    MATMUL_TILES(matmul_##TYPE, hn_avx2_panel_##TYPE)
MATMUL_K(q4_K, MINIMA)
MATMUL_K(q5_K, MINIMA)
MATMUL_K(q6_K, OFFSET)
MATMUL_K(iq4_XS, LEVELS)

/* ---- 32-blocks ------------------------------------------------------------------------------------------ */

V16_OP __m256i nibbles(const uint8_t *q)
{
    __m128i b = _mm_loadu_si128((const __m128i *)q);
    return _mm256_and_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1),
                            _mm256_set1_epi8(15));
}
V16_OP __m256i unpack_q4_0(const hn_q4_0 *w) { return nibbles(w->q); }
V16_OP __m256i unpack_iq4_NL(const hn_q4_0 *w) { return iq4_levels(nibbles(w->q)); }
V16_OP __m256i unpack_q5_0(const hn_q5_0 *w)
{
    int32_t h;
    memcpy(&h, w->h, 4);
    /* byte i of each 8 sees bit i of its own byte of h */
    __m256i spread = _mm256_shuffle_epi8(
        _mm256_set1_epi32(h), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    __m256i bits = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i on = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits);
    return _mm256_or_si256(nibbles(w->q), _mm256_and_si256(on, _mm256_set1_epi8(16)));
}
V16_OP __m256i unpack_q8_0(const hn_q8_0 *w) { return _mm256_loadu_si256((const __m256i *)w->q); }

/* Σ of 4 products per lane; codes unsigned and small, or signed 8-bit (`S`): then
 * |w| ≤ 128 unsigned times a with w's sign, 128·127·2 = 32,512. */
V16_OP __m256i dot_u(__m256i w, __m256i a)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), _mm256_set1_epi16(1));
}
V16_OP __m256i dot_s(__m256i w, __m256i a)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w)), _mm256_set1_epi16(1));
}

V16_OP __m256 half_scales(const char *const *w, int R, int C, int64_t at)
{
    __m256 d, rest;
    two_f16(row_words(w, R, C, at), &d, &rest);
    return d;
}
/* hn_mxfp4_scale of the first byte */
V16_OP __m256 e8m0_scales(const char *const *w, int R, int C, int64_t at)
{
    __m256i e = _mm256_and_si256(row_words(w, R, C, at), _mm256_set1_epi32(255));
    __m256i low = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __m256i d = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(d, low, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

#define T32_TILE(NAME, BLOCK, UNPACK, DOT, OFFSET, SCALES, R, C)                                                       \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                             \
    {                                                                                                                  \
        const char *w[R];                                                                                              \
        const int8_t *x[C];                                                                                            \
        const float *d[C];                                                                                             \
        const int32_t *bs[C];                                                                                          \
        int64_t nb = m->n_in / 32;                                                                                     \
        for (int i = 0; i < R; i++)                                                                                    \
            w[i] = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;                     \
        for (int j = 0; j < C; j++) {                                                                                  \
            x[j] = (const int8_t *)m->x + (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride;             \
            d[j] = (const float *)(x[j] + m->n_in);                                                                    \
            bs[j] = (const int32_t *)(d[j] + nb);                                                                      \
        }                                                                                                              \
        __m256 acc = _mm256_setzero_ps();                                                                              \
        for (int64_t b = 0; b < nb; b++) {                                                                             \
            __m256i iv[8];                                                                                             \
            int64_t at = b * (int64_t)sizeof(BLOCK);                                                                   \
            for (int i = 0; i < R; i++) {                                                                              \
                __m256i q = UNPACK((const BLOCK *)(w[i] + at));                                                        \
                if (C == 1) prefetch_next(m, w[0], at *R + i * (int64_t)sizeof(BLOCK), sizeof(BLOCK));                 \
                for (int j = 0; j < C; j++) iv[i * C + j] = DOT(q, load256(x[j] + 32 * b));                            \
            }                                                                                                          \
            __m256 dw = SCALES(w, R, C, at),                                                                           \
                   da = C == 1 ? _mm256_set1_ps(d[0][b]) : four_twice(d[0][b], d[1 % C][b], d[2 % C][b], d[3 % C][b]); \
            __m256i isum = sum8x8(iv);                                                                                 \
            if (OFFSET) {                                                                                              \
                __m256i off = C == 1 ? _mm256_set1_epi32(bs[0][b])                                                     \
                                     : _mm256_setr_epi32(bs[0][b], bs[1 % C][b], bs[2 % C][b], bs[3 % C][b], bs[0][b], \
                                                         bs[1 % C][b], bs[2 % C][b], bs[3 % C][b]);                    \
                isum = _mm256_sub_epi32(isum, _mm256_mullo_epi32(off, _mm256_set1_epi32(OFFSET)));                     \
            }                                                                                                          \
            acc = _mm256_fmadd_ps(_mm256_mul_ps(dw, da), _mm256_cvtepi32_ps(isum), acc);                               \
        }                                                                                                              \
        store_tile(m, r, c, R, C, acc);                                                                                \
    }
#define MATMUL_32(TYPE, BLOCK, UNPACK, DOT, OFFSET)                              \
    T32_TILE(matmul_##TYPE##_8x1, BLOCK, UNPACK, DOT, OFFSET, half_scales, 8, 1) \
    T32_TILE(matmul_##TYPE##_2x4, BLOCK, UNPACK, DOT, OFFSET, half_scales, 2, 4) \
    MATMUL_TILES(matmul_##TYPE, hn_avx2_panel_##TYPE)
MATMUL_32(q4_0, hn_q4_0, unpack_q4_0, dot_u, 8)
MATMUL_32(q5_0, hn_q5_0, unpack_q5_0, dot_u, 16)
MATMUL_32(q8_0, hn_q8_0, unpack_q8_0, dot_s, 0)
MATMUL_32(iq4_NL, hn_q4_0, unpack_iq4_NL, dot_s, 0)

V16_OP __m256i unpack_mxfp4(const hn_mxfp4 *w)
{
    __m128i levels = _mm_loadu_si128((const __m128i *)hn_e2m1_doubled);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), nibbles(w->q));
}
T32_TILE(matmul_mxfp4_8x1, hn_mxfp4, unpack_mxfp4, dot_s, 0, e8m0_scales, 8, 1)
T32_TILE(matmul_mxfp4_2x4, hn_mxfp4, unpack_mxfp4, dot_s, 0, e8m0_scales, 2, 4)
static void matmul_mxfp4(const hn_mm *m)
{
    for (int64_t r = m->r0; m->n_col == 1 && r < m->r1; r += 8) matmul_mxfp4_8x1(m, r, 0);
    for (int64_t c = 0; m->n_col > 1 && c < m->n_col; c += 4)
        for (int64_t r = m->r0; r < m->r1; r += 2) matmul_mxfp4_2x4(m, r, c);
}

const hn_kernels hn_kernels_avx2 = HN_LANES_TABLE("avx2");
#else
typedef int hn_no_avx2; /* an empty file is not C */
#endif
