/* The AVX-512 level (F, BW, VL, DQ, VNNI). One 512-bit register is the contract's
 * sixteen lanes. Integer tiles hold 16 outputs: 16 rows × 1 column or 4 rows × 4
 * columns; lane r·C + c of every tile vector is output (r, c). */
#if defined(__x86_64__)

#include "kernels/avx512_packed.h"

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
V16_OP float v16_tree(v16 t)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(t), _mm512_extractf32x8_ps(t, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
V16_OP float v16_hmax(v16 v) { return _mm512_reduce_max_ps(v); }
/* p·2^n, where t = n + magic; one rounding, as two exact-but-one factors have */
V16_OP v16 v16_scale_pow2(v16 p, v16 t) { return _mm512_scalef_ps(p, _mm512_sub_ps(t, _mm512_set1_ps(HN_EXP_MAGIC))); }

/* what lanes_attn.h takes */
#define HN_LANES_STORE_F16
V16_OP void v16_store_f16(uint16_t *p, v16 v) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
#define HN_LANES_DOT8
typedef __m512i i16v, k8;
V16_OP v16 v16_load_i8(const int8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p))); }
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

#define HN_TILE_R 4
#define HN_TILE_C 4
#define HN_LEVEL_PACKED                                                                                              \
    [HN_F32] = hn_avx512_packed_f32, [HN_F16] = hn_avx512_packed_f16, [HN_BF16] = hn_avx512_packed_bf16,             \
    [HN_Q4_K] = hn_avx512_packed_q4_K, [HN_Q5_K] = hn_avx512_packed_q5_K, [HN_Q6_K] = hn_avx512_packed_q6_K,         \
    [HN_Q4_0] = hn_avx512_packed_q4_0, [HN_Q5_0] = hn_avx512_packed_q5_0, [HN_Q8_0] = hn_avx512_packed_q8_0,         \
    [HN_IQ4_XS] = hn_avx512_packed_iq4_XS, [HN_IQ4_NL] = hn_avx512_packed_iq4_NL
#include "kernels/lanes.h"

/* ---- sums across a tile ----------------------------------------------------------------------- */

V16_OP __m512i fold32(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
V16_OP __m512i fold64(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
V16_OP __m512i fold128(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}
/* per 128-bit lane the sums of v[0..3] in order */
V16_OP __m512i fold4(const __m512i *v) { return fold64(fold32(v[0], v[1]), fold32(v[2], v[3])); }

/* lane i = sum of all lanes of v[i] */
V16_OP __m512i sum16x16(const __m512i v[16])
{
    return fold128(fold128(fold4(v), fold4(v + 4)), fold128(fold4(v + 8), fold4(v + 12)));
}
/* *lo: lane i = sum of the low half of v[i]; *hi of the high half */
V16_OP void sum16x8x2(const __m512i v[16], __m512i *lo, __m512i *hi)
{
    __m512i a = fold128(fold4(v), fold4(v + 4)), b = fold128(fold4(v + 8), fold4(v + 12));
    *lo = _mm512_shuffle_i32x4(a, b, 0x88);
    *hi = _mm512_shuffle_i32x4(a, b, 0xDD);
}
/* lane i = sum of v[i] */
V16_OP __m512i sum16x8(const __m256i v[16])
{
    __m512i z[8];
    for (int i = 0; i < 8; i++) z[i] = _mm512_inserti64x4(_mm512_castsi256_si512(v[i]), v[i + 8], 1);
    __m512i s = fold128(fold4(z), fold4(z + 4)); /* 0-3, 8-11, 4-7, 12-15 */
    return _mm512_shuffle_i32x4(s, s, 0xD8);
}

/* Sixteen rows at once are sixteen short streams, too many for the hardware to follow.
 * Their successors are contiguous: fetch those in address order while these compute. */
V16_OP void prefetch_next(const hn_mm *m, const void *row0, int64_t at, size_t n)
{
    const char *p = (const char *)row0 + 16 * m->w_stride + at;
    for (size_t i = 0; i < n; i += 64) _mm_prefetch(p + i, _MM_HINT_T1);
}

/* ---- K-quants --------------------------------------------------------------------------------------- */

V16_OP __m512i kblock_dot(const kblock *w, const hn_a256 *a)
{
    __m512i s[4];
    for (int g = 0; g < 4; g++)
        s[g] = _mm512_mullo_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), w->q[g], _mm512_loadu_si512(a->q + 64 * g)), w->sc[g]);
    return _mm512_add_epi32(_mm512_add_epi32(s[0], s[1]), _mm512_add_epi32(s[2], s[3]));
}
V16_OP __m256i kblock_side(const kblock *w, const hn_a256 *a)
{
    return _mm256_madd_epi16(w->side, _mm256_loadu_si256((const __m256i *)a->bsum));
}

/* Lane r·C + c: 4 bytes at offset `at` of block b of row r. */
V16_OP __m512i row_words(const char *const *w, int R, int C, int64_t at)
{
    int32_t v[16];
    for (int i = 0; i < R; i++) memcpy(&v[i], w[i] + at, 4);
    if (C == 1)
        return _mm512_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]);
    return _mm512_setr_epi32(v[0], v[0], v[0], v[0], v[1], v[1], v[1], v[1], v[2], v[2], v[2], v[2], v[3], v[3], v[3], v[3]);
}
V16_OP __m512 low_f16(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
V16_OP __m512 high_f16(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16))); }

/* R·C = 16 outputs at (r, c); rows beyond r1 and columns beyond n_col repeat the last. */
#define K_TILE(NAME, BLOCK, UNPACK, IS_Q6, R, C)                                                                    \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                          \
    {                                                                                                               \
        const BLOCK *w[R];                                                                                          \
        const char *row[R];                                                                                         \
        const hn_a256 *x[C];                                                                                        \
        for (int i = 0; i < R; i++) {                                                                               \
            row[i] = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;                \
            w[i] = (const BLOCK *)row[i];                                                                           \
        }                                                                                                           \
        for (int j = 0; j < C; j++)                                                                                 \
            x[j] = (const hn_a256 *)((const char *)m->x + (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride); \
        __m512 acc = _mm512_setzero_ps();                                                                           \
        int64_t nb = m->n_in / 256;                                                                                 \
        for (int64_t b = 0; b < nb; b++) {                                                                          \
            __m512i iv[16];                                                                                         \
            __m256i sv[16];                                                                                         \
            for (int i = 0; i < R; i++) {                                                                           \
                kblock k;                                                                                           \
                UNPACK(&k, w[i] + b);                                                                               \
                if (C == 1) prefetch_next(m, w[0], (b * R + i) * (int64_t)sizeof(BLOCK), sizeof(BLOCK));            \
                for (int j = 0; j < C; j++) {                                                                       \
                    iv[i * C + j] = kblock_dot(&k, x[j] + b);                                                       \
                    sv[i * C + j] = kblock_side(&k, x[j] + b);                                                      \
                }                                                                                                   \
            }                                                                                                       \
            /* d and dmin begin a block; in Q6_K d is the last of the last four bytes */                            \
            __m512i dd = row_words(row, R, C, (b + IS_Q6) * (int64_t)sizeof(BLOCK) - 4 * IS_Q6); \
            __m512 da = C == 1 ? _mm512_set1_ps(x[0][b].d)                                                          \
                               : _mm512_broadcast_f32x4(_mm_setr_ps(x[0][b].d, x[1 % C][b].d, x[2 % C][b].d, x[3 % C][b].d)); \
            __m512i isum = sum16x16(iv), side = sum16x8(sv);                                                        \
            if (IS_Q6) {                                                                                            \
                isum = _mm512_sub_epi32(isum, _mm512_slli_epi32(side, 5));                                          \
                acc = _mm512_fmadd_ps(_mm512_mul_ps(high_f16(dd), da), _mm512_cvtepi32_ps(isum), acc);              \
            } else {                                                                                                \
                acc = _mm512_fmadd_ps(_mm512_mul_ps(low_f16(dd), da), _mm512_cvtepi32_ps(isum), acc);               \
                acc = _mm512_fnmadd_ps(_mm512_mul_ps(high_f16(dd), da), _mm512_cvtepi32_ps(side), acc);             \
            }                                                                                                       \
        }                                                                                                           \
        store_tile(m, r, c, R, C, acc);                                                                             \
    }

V16_OP void store_tile(const hn_mm *m, int64_t r, int64_t c, int R, int C, __m512 acc)
{
    float y[16];
    if (C == 1) {
        int64_t n = m->r1 - r < R ? m->r1 - r : R;
        _mm512_mask_storeu_ps(m->y + c * m->ldy + r, (__mmask16)((1u << n) - 1), acc);
        return;
    }
    _mm512_storeu_ps(y, acc);
    for (int j = 0; j < C && c + j < m->n_col; j++)
        for (int i = 0; i < R && r + i < m->r1; i++) m->y[(c + j) * m->ldy + r + i] = y[i * C + j];
}

/* From this many columns opening a panel pays (measured: docs/LAB.md). */
enum { PANEL_COLS_K = 5, PANEL_COLS_32 = 3 };

#define MATMUL_TILES(NAME, PANEL, MIN)                                              \
    static void NAME(const hn_mm *m)                                           \
    {                                                                          \
        if (m->n_col == 1) {                                                   \
            for (int64_t r = m->r0; r < m->r1; r += 16) NAME##_16x1(m, r, 0);  \
            return;                                                            \
        }                                                                      \
        if (m->panel && m->n_col >= MIN) {                                     \
            PANEL(m);                                                          \
            return;                                                            \
        }                                                                      \
        for (int64_t c = 0; c < m->n_col; c += 4)                              \
            for (int64_t r = m->r0; r < m->r1; r += 4) NAME##_4x4(m, r, c);    \
    }
#define MATMUL_K(NAME, BLOCK, UNPACK, IS_Q6, PANEL)    \
    K_TILE(NAME##_16x1, BLOCK, UNPACK, IS_Q6, 16, 1)   \
    K_TILE(NAME##_4x4, BLOCK, UNPACK, IS_Q6, 4, 4)     \
    MATMUL_TILES(NAME, PANEL, PANEL_COLS_K)
MATMUL_K(matmul_q4_K, hn_q4_K, unpack_q4_K, 0, hn_avx512_panel_q4_K)
MATMUL_K(matmul_q5_K, hn_q5_K, unpack_q5_K, 0, hn_avx512_panel_q5_K)
MATMUL_K(matmul_q6_K, hn_q6_K, unpack_q6_K, 1, hn_avx512_panel_q6_K)

/* ---- 32-blocks ------------------------------------------------------------------------------------------ */

/* Two blocks at a time; an odd last block is paired with zeros. */
#define T32_TILE(NAME, BLOCK, UNPACK, OFFSET, R, C)                                                                 \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                          \
    {                                                                                                               \
        const BLOCK *w[R];                                                                                          \
        const char *row[R];                                                                                         \
        const int8_t *x[C];                                                                                         \
        const float *d[C];                                                                                          \
        const int32_t *bs[C];                                                                                       \
        int64_t nb = m->n_in / 32;                                                                                  \
        for (int i = 0; i < R; i++) {                                                                               \
            row[i] = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;                \
            w[i] = (const BLOCK *)row[i];                                                                           \
        }                                                                                                           \
        for (int j = 0; j < C; j++) {                                                                               \
            x[j] = (const int8_t *)m->x + (size_t)(c + j < m->n_col ? c + j : m->n_col - 1) * m->x_stride;          \
            d[j] = (const float *)(x[j] + m->n_in);                                                                 \
            bs[j] = (const int32_t *)(d[j] + nb);                                                                   \
        }                                                                                                           \
        __m512 acc = _mm512_setzero_ps();                                                                           \
        for (int64_t b = 0; b < nb; b += 2) {                                                                       \
            __m512i iv[16], sum[2];                                                                                 \
            bool two = b + 1 < nb;                                                                                  \
            for (int i = 0; i < R; i++) {                                                                           \
                __m512i q = _mm512_castsi256_si512(UNPACK(w[i] + b));                                               \
                q = _mm512_inserti64x4(q, two ? UNPACK(w[i] + b + 1) : _mm256_setzero_si256(), 1);                  \
                if (C == 1) prefetch_next(m, w[0], (b * R / 2 + i) * 2 * (int64_t)sizeof(BLOCK), 2 * sizeof(BLOCK)); \
                for (int j = 0; j < C; j++) {                                                                       \
                    __m512i a = two ? _mm512_loadu_si512(x[j] + 32 * b)                                             \
                                    : _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(x[j] + 32 * b))); \
                    iv[i * C + j] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), q, a);                              \
                }                                                                                                   \
            }                                                                                                       \
            sum16x8x2(iv, &sum[0], &sum[1]);                                                                        \
            for (int h = 0; h < 1 + two; h++) {                                                                     \
                __m512 da = C == 1 ? _mm512_set1_ps(d[0][b + h])                                                    \
                                   : _mm512_broadcast_f32x4(_mm_setr_ps(d[0][b + h], d[1 % C][b + h], d[2 % C][b + h], d[3 % C][b + h])); \
                __m512i off = C == 1 ? _mm512_set1_epi32(bs[0][b + h])                                              \
                                     : _mm512_broadcast_i32x4(_mm_setr_epi32(bs[0][b + h], bs[1 % C][b + h], bs[2 % C][b + h], bs[3 % C][b + h])); \
                __m512i isum = _mm512_sub_epi32(sum[h], _mm512_mullo_epi32(off, _mm512_set1_epi32(OFFSET)));        \
                acc = _mm512_fmadd_ps(_mm512_mul_ps(low_f16(row_words(row, R, C, (b + h) * (int64_t)sizeof(BLOCK))), da), _mm512_cvtepi32_ps(isum), acc);         \
            }                                                                                                       \
        }                                                                                                           \
        store_tile(m, r, c, R, C, acc);                                                                             \
    }
#define MATMUL_32(NAME, BLOCK, UNPACK, OFFSET, PANEL)    \
    T32_TILE(NAME##_16x1, BLOCK, UNPACK, OFFSET, 16, 1)  \
    T32_TILE(NAME##_4x4, BLOCK, UNPACK, OFFSET, 4, 4)    \
    MATMUL_TILES(NAME, PANEL, PANEL_COLS_32)
MATMUL_32(matmul_q4_0, hn_q4_0, unpack_q4_0, 8, hn_avx512_panel_q4_0)
MATMUL_32(matmul_q5_0, hn_q5_0, unpack_q5_0, 16, hn_avx512_panel_q5_0)
MATMUL_32(matmul_q8_0, hn_q8_0, unpack_q8_0, 128, hn_avx512_panel_q8_0)

const hn_kernels hn_kernels_avx512 = HN_LANES_TABLE("avx512");
#else
typedef int hn_no_avx512; /* an empty file is not C */
#endif
