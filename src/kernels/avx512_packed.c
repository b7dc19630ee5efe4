/* Products of few columns from the packed layout (quant/pack.h), AVX-512. A lane is a
 * row: a word of codes meets a broadcast word of activations, scales are vectors, and
 * nothing is summed across lanes. One to four columns share every opened word. What a
 * type subtracts from its codes goes in as the start of the sums: −offset·Σq. */
#if defined(__x86_64__)

#include "kernels/avx512_packed.h"
#include "kernels/avx512_unpack.h"
#include "kernels/in_order.h"

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

enum { COLS = 4 };

/* 64 bytes of the stream. Zen 5's own prefetchers follow one ascending stream at half of what the core can read: the
 * line 4 KiB behind is asked for (measured: docs/LAB.md). */
INLINE __m512i next64(const char *p)
{
    fetch_line(p + 4096);
#if HN_SEES_LOADS
    return _mm512_loadu_si512(p);
#else
    __m512i v;
    __asm__ volatile("vmovdqu64 %1, %0" : "=v"(v) : "m"(*(const __m512i_u *)p));
    return v;
#endif
}
INLINE __m512i word(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}
INLINE __m512i dot(__m512i sum, __m512i codes, const void *x) { return _mm512_dpbusd_epi32(sum, codes, word(x)); }
INLINE __m512i dot16(__m512i sum, __m512i a, const void *x) { return _mm512_dpwssd_epi32(sum, a, word(x)); }
INLINE __m512 scales_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m512i and32(__m512i a, uint32_t m) { return _mm512_and_si512(a, _mm512_set1_epi32((int32_t)m)); }
/* a | (b & mask) */
INLINE __m512i or_and(__m512i a, __m512i b, uint32_t m)
{
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi32((int32_t)m), 0xF8);
}
#define LOW(v) and32(v, 0x0F0F0F0Fu)
#define HIGH(v) LOW(_mm512_srli_epi32(v, 4))
#define HIGH_16TH(v) and32(v, 0xF0F0F0F0u) /* 16 times the upper codes, one operation less */
#define FOR(i, n) UNROLL for (int i = 0; i < (n); i++)

/* ---- K-quants: a block of 256 times nc columns ------------------------------------------ */

typedef void k_block_fn(const char *p, const char *d, const hn_a256 *const *x, int nc, __m512 *acc);

INLINE __m512i byte_of(__m512i v, int i)
{
    return i == 3 ? _mm512_srli_epi32(v, 24) : and32(_mm512_srli_epi32(v, 8 * i), 255);
}

/* Scales and minima of Q4_K and Q5_K: bytes 0-3 and 4-7. */
INLINE void k_scales(const char *s, __m512i sc[2], __m512i mn[2])
{
    __m512i s0 = next64(s), s1 = next64(s + 64), s2 = next64(s + 128);
    sc[0] = and32(s0, 0x3F3F3F3Fu);
    mn[0] = and32(s1, 0x3F3F3F3Fu);
    sc[1] = or_and(and32(s2, 0x0F0F0F0Fu), _mm512_srli_epi32(s0, 2), 0x30303030u);
    mn[1] = or_and(HIGH(s2), _mm512_srli_epi32(s1, 2), 0x30303030u);
}

/* acc −= dmin·da·Σ min·Σq, after acc += d·da·isum. */
INLINE void k_finish(const char *p, const __m512i mn[2], const hn_a256 *const *x, int nc, const __m512i *isum,
                     __m512 *acc)
{
    __m512 d = scales_f16(p), dmin = scales_f16(p + 32);
    __m512i even[2], odd[2];
    FOR(h, 2) even[h] = and32(mn[h], 0x00FF00FFu), odd[h] = and32(_mm512_srli_epi32(mn[h], 8), 0x00FF00FFu);
    FOR(c, nc) {
        /* sums of 32, as pairs (0, 2), (1, 3) and (4, 6), (5, 7) */
        int32_t pair[8];
        __m256i s = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x[c]->bsum), _mm256_set1_epi16(1));
        s = _mm256_shuffle_epi8(s, _mm256_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 8,
                                                    9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1));
        _mm256_storeu_si256((__m256i *)pair, s);
        __m512i msum = dot16(_mm512_setzero_si512(), even[0], pair);
        msum = dot16(msum, odd[0], pair + 1);
        msum = dot16(msum, even[1], pair + 4);
        msum = dot16(msum, odd[1], pair + 5);
        __m512 da = _mm512_set1_ps(x[c]->d);
        acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(isum[c]), acc[c]);
        acc[c] = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, da), _mm512_cvtepi32_ps(msum), acc[c]);
    }
}

INLINE void q4_K_block(const char *p, const char *d, const hn_a256 *const *x, int nc, __m512 *acc)
{
    __m512i sc[2], mn[2], isum[COLS], high[COLS];
    k_scales(p + 64, sc, mn);
    FOR(c, nc) isum[c] = high[c] = _mm512_setzero_si512();
    FOR(g, 4) {
        __m512i lo[COLS], hi[COLS];
        FOR(c, nc) lo[c] = hi[c] = _mm512_setzero_si512();
        FOR(i, 8) {
            __m512i q = next64(p + 256 + 64 * (8 * g + i)), ql = LOW(q), qh = HIGH_16TH(q);
            FOR(c, nc) {
                lo[c] = dot(lo[c], ql, x[c]->q + 64 * g + 4 * i);
                hi[c] = dot(hi[c], qh, x[c]->q + 64 * g + 32 + 4 * i);
            }
        }
        __m512i sl = byte_of(sc[g / 2], 2 * g % 4), sh = byte_of(sc[g / 2], 2 * g % 4 + 1);
        FOR(c, nc) {
            isum[c] = _mm512_add_epi32(isum[c], _mm512_mullo_epi32(lo[c], sl));
            high[c] = _mm512_add_epi32(high[c], _mm512_mullo_epi32(hi[c], sh));
        }
    }
    FOR(c, nc) isum[c] = _mm512_add_epi32(isum[c], _mm512_srai_epi32(high[c], 4));
    k_finish(p, mn, x, nc, isum, acc);
}

/* bit `from` of every byte to bit 4, other bits undefined */
INLINE __m512i to_bit4(__m512i v, int from)
{
    return from <= 4 ? _mm512_slli_epi32(v, 4 - from) : _mm512_srli_epi32(v, from - 4);
}

INLINE void q5_K_block(const char *p, const char *d, const hn_a256 *const *x, int nc, __m512 *acc)
{
    __m512i sc[2], mn[2], isum[COLS], h[8];
    k_scales(p + 64, sc, mn);
    FOR(i, 8) h[i] = next64(p + 256 + 64 * i);
    FOR(c, nc) isum[c] = _mm512_setzero_si512();
    FOR(g, 4) {
        __m512i lo[COLS], hi[COLS];
        FOR(c, nc) lo[c] = hi[c] = _mm512_setzero_si512();
        FOR(i, 8) {
            __m512i q = next64(p + 768 + 64 * (8 * g + i));
            __m512i ql = or_and(LOW(q), to_bit4(h[i], 2 * g), 0x10101010u);
            __m512i qh = or_and(HIGH(q), to_bit4(h[i], 2 * g + 1), 0x10101010u);
            FOR(c, nc) {
                lo[c] = dot(lo[c], ql, x[c]->q + 64 * g + 4 * i);
                hi[c] = dot(hi[c], qh, x[c]->q + 64 * g + 32 + 4 * i);
            }
        }
        __m512i sl = byte_of(sc[g / 2], 2 * g % 4), sh = byte_of(sc[g / 2], 2 * g % 4 + 1);
        FOR(c, nc) {
            isum[c] = _mm512_add_epi32(isum[c], _mm512_mullo_epi32(lo[c], sl));
            isum[c] = _mm512_add_epi32(isum[c], _mm512_mullo_epi32(hi[c], sh));
        }
    }
    k_finish(p, mn, x, nc, isum, acc);
}

INLINE void d_finish(const char *d, const hn_a256 *const *x, int nc, const __m512i *isum, __m512 *acc)
{
    __m512 dw = scales_f16(d);
    FOR(c, nc)
        acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(dw, _mm512_set1_ps(x[c]->d)), _mm512_cvtepi32_ps(isum[c]), acc[c]);
}

INLINE void q6_K_block(const char *p, const char *d, const hn_a256 *const *x, int nc, __m512 *acc)
{
    __m512i isum[COLS];
    int32_t start[COLS][16];
    FOR(c, nc) {
        __m512i b = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)x[c]->bsum));
        _mm512_storeu_si512(start[c], _mm512_slli_epi32(_mm512_sub_epi32(_mm512_setzero_si512(), b), 5));
        isum[c] = _mm512_setzero_si512();
    }
    FOR(n, 2) {
        __m512i s0 = next64(p + hn_pack_q6_s(2 * n)), s1 = next64(p + hn_pack_q6_s(2 * n + 1)); /* scales 8n … 8n+7 */
        FOR(half, 2) {
            __m512i s[4][COLS];
            FOR(j, 4)
                FOR(c, nc) s[j][c] = word(&start[c][8 * n + 2 * j + half]);
            FOR(k, 4) {
                int i = 4 * half + k;
                const char *at = p + hn_pack_q6_h(8 * n + i);
                __m512i h = next64(at), l0 = next64(at + 64), l1 = next64(at + 128);
                __m512i q[4] = { or_and(LOW(l0), _mm512_slli_epi32(h, 4), 0x30303030u),
                                 or_and(LOW(l1), _mm512_slli_epi32(h, 2), 0x30303030u),
                                 or_and(HIGH(l0), h, 0x30303030u),
                                 or_and(HIGH(l1), _mm512_srli_epi32(h, 2), 0x30303030u) };
                FOR(j, 4)
                    FOR(c, nc) s[j][c] = dot(s[j][c], q[j], x[c]->q + 128 * n + 32 * j + 4 * i);
            }
            FOR(j, 4) {
                int at = 2 * j + half; /* of eight */
                __m512i v = at < 4 ? s0 : s1;
                __m512i sc = _mm512_srai_epi32(at % 4 == 3 ? v : _mm512_slli_epi32(v, 24 - 8 * (at % 4)), 24);
                FOR(c, nc) isum[c] = _mm512_add_epi32(isum[c], _mm512_mullo_epi32(s[j][c], sc));
            }
        }
    }
    d_finish(d, x, nc, isum, acc);
}

INLINE __m512i iq4_table(void)
{
    __m128i t = _mm_add_epi8(_mm_loadu_si128((const __m128i *)hn_iq4_levels), _mm_set1_epi8((char)128));
    return _mm512_broadcast_i32x4(t);
}

INLINE void iq4_XS_block(const char *p, const char *d, const hn_a256 *const *x, int nc, __m512 *acc)
{
    __m512i isum[COLS], table = iq4_table(), sl = next64(p + 64);
    __m512i sh = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p + 32)));
    int32_t start[COLS][8];
    FOR(c, nc) {
        __m256i b = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x[c]->bsum), _mm256_set1_epi16(-128));
        _mm256_storeu_si256((__m256i *)start[c], b);
        isum[c] = _mm512_setzero_si512();
    }
    FOR(s, 8) {
        __m512i lo[COLS], hi[COLS];
        FOR(c, nc) lo[c] = word(&start[c][s]), hi[c] = _mm512_setzero_si512();
        FOR(i, 4) {
            __m512i q = next64(p + 128 + 64 * (4 * s + i));
            __m512i ql = _mm512_shuffle_epi8(table, LOW(q)), qh = _mm512_shuffle_epi8(table, HIGH(q));
            FOR(c, nc) {
                lo[c] = dot(lo[c], ql, x[c]->q + 32 * s + 4 * i);
                hi[c] = dot(hi[c], qh, x[c]->q + 32 * s + 16 + 4 * i);
            }
        }
        __m512i sc = or_and(and32(_mm512_srli_epi32(sl, 4 * s), 15),
                            s < 2 ? _mm512_slli_epi32(sh, 4 - 2 * s) : _mm512_srli_epi32(sh, 2 * s - 4), 0x30);
        sc = _mm512_sub_epi32(sc, _mm512_set1_epi32(32));
        FOR(c, nc) isum[c] = _mm512_add_epi32(isum[c], _mm512_mullo_epi32(_mm512_add_epi32(lo[c], hi[c]), sc));
    }
    d_finish(p, x, nc, isum, acc);
}

/* ---- 32-blocks ------------------------------------------------------------------------------ */

/* codes of a block times the columns; sums begin at −offset·Σq */
typedef void q32_block_fn(const char *p, const int8_t *const *x, int nc, __m512i *sum);

INLINE void q4_0_block(const char *p, const int8_t *const *x, int nc, __m512i *sum)
{
    __m512i high[COLS];
    FOR(c, nc) high[c] = _mm512_setzero_si512();
    FOR(i, 4) {
        __m512i q = next64(p + 64 * i), ql = LOW(q), qh = HIGH_16TH(q);
        FOR(c, nc) {
            sum[c] = dot(sum[c], ql, x[c] + 4 * i);
            high[c] = dot(high[c], qh, x[c] + 16 + 4 * i);
        }
    }
    FOR(c, nc) sum[c] = _mm512_add_epi32(sum[c], _mm512_srai_epi32(high[c], 4));
}

INLINE void iq4_NL_block(const char *p, const int8_t *const *x, int nc, __m512i *sum)
{
    __m512i table = iq4_table();
    FOR(i, 4) {
        __m512i q = next64(p + 64 * i);
        __m512i ql = _mm512_shuffle_epi8(table, LOW(q)), qh = _mm512_shuffle_epi8(table, HIGH(q));
        FOR(c, nc) {
            sum[c] = dot(sum[c], ql, x[c] + 4 * i);
            sum[c] = dot(sum[c], qh, x[c] + 16 + 4 * i);
        }
    }
}

INLINE void q5_0_block(const char *p, const int8_t *const *x, int nc, __m512i *sum)
{
    __m512i h = next64(p);
    FOR(i, 4) {
        __m512i q = next64(p + 64 + 64 * i);
        __m512i ql = or_and(LOW(q), _mm512_slli_epi32(h, 4 - i), 0x10101010u);
        __m512i qh = or_and(HIGH(q), _mm512_srli_epi32(h, i), 0x10101010u);
        FOR(c, nc) {
            sum[c] = dot(sum[c], ql, x[c] + 4 * i);
            sum[c] = dot(sum[c], qh, x[c] + 16 + 4 * i);
        }
    }
}

INLINE void q8_0_block(const char *p, const int8_t *const *x, int nc, __m512i *sum)
{
    FOR(i, 8) {
        __m512i q = next64(p + 64 * i);
        FOR(c, nc) sum[c] = dot(sum[c], q, x[c] + 4 * i);
    }
}

/* ---- from blocks to a matmul ------------------------------------------------------------------- */

INLINE const char *column(const hn_mm *m, int64_t c) { return (const char *)m->x + (size_t)c * m->x_stride; }
INLINE const char *group(const hn_mm *m, int64_t r)
{
    return (const char *)m->w + (size_t)(r / HN_PACK_ROWS) * m->w_stride;
}

INLINE void store_rows(const hn_mm *m, int64_t r, int64_t c, __m512 y)
{
    int64_t n = m->r1 - r;
    _mm512_mask_storeu_ps(m->y + c * m->ldy + r, n >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1), y);
}

/* pairs: the blocks come in pairs behind their d. */
INLINE void rows_k(const hn_mm *m, int64_t c0, int nc, k_block_fn *block, size_t bytes, const bool pairs)
{
    int64_t nb = m->n_in / 256;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *p = group(m, r);
        const hn_a256 *x[COLS];
        __m512 acc[COLS];
        FOR(c, nc) acc[c] = _mm512_setzero_ps(), x[c] = (const hn_a256 *)column(m, c0 + c);
        for (int64_t b = 0; b < nb; b++) {
            const char *d = p;
            if (pairs && b % 2 == 0) p += 64;
            else if (pairs) d = p - bytes - 32;
            if (m->w_stride > HN_FAR_GROUP)
                FOR(c, nc) hn_fetch_a256(x[c] + 1);
            block(p, d, x, nc, acc);
            p += bytes;
            FOR(c, nc) x[c]++;
        }
        FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
    }
}

INLINE void block_32(const char *p, const char *d, q32_block_fn *block, const int8_t **x, const float *const *dx,
                     int64_t nb, int64_t b, int nc, int offset, __m512 *acc)
{
    __m512i sum[COLS];
    FOR(c, nc) sum[c] = _mm512_mullo_epi32(word(dx[c] + nb + b), _mm512_set1_epi32(-offset));
    block(p, x, nc, sum);
    __m512 dw = scales_f16(d);
    FOR(c, nc) {
        acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(dw, _mm512_set1_ps(dx[c][b])), _mm512_cvtepi32_ps(sum[c]), acc[c]);
        x[c] += 32;
    }
}

INLINE void rows_32(const hn_mm *m, int64_t c0, int nc, q32_block_fn *block, size_t bytes, int offset)
{
    int64_t nb = m->n_in / 32;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *p = group(m, r);
        const int8_t *x[COLS];
        const float *dx[COLS];
        __m512 acc[COLS];
        FOR(c, nc) {
            acc[c] = _mm512_setzero_ps();
            x[c] = (const int8_t *)column(m, c0 + c);
            dx[c] = (const float *)(x[c] + m->n_in);
        }
        for (int64_t b = 0; b < nb; b += 2, p += 64 + 2 * bytes) {
            block_32(p + 64, p, block, x, dx, nb, b, nc, offset, acc);
            if (b + 1 < nb) block_32(p + 64 + bytes, p + 32, block, x, dx, nb, b + 1, nc, offset, acc);
        }
        FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
    }
}

/* Each number of columns has its own code. From MIN columns on opening a panel costs less
 * (MIN measured: docs/LAB.md). */
#define BY_COLUMNS(NAME, ROWS, PANEL, MIN)             \
    void NAME(const hn_mm *m)                          \
    {                                                  \
        if (m->panel && m->n_col >= MIN) {             \
            PANEL(m);                                  \
            return;                                    \
        }                                              \
        for (int64_t c = 0; c < m->n_col; c += COLS) { \
            switch (m->n_col - c) {                    \
            case 1: ROWS(1); break;                    \
            case 2: ROWS(2); break;                    \
            case 3: ROWS(3); break;                    \
            default: ROWS(4); break;                   \
            }                                          \
        }                                              \
    }

#define ROWS_Q4_K(NC) rows_k(m, c, NC, q4_K_block, 2304, false)
#define ROWS_Q5_K(NC) rows_k(m, c, NC, q5_K_block, 2816, false)
#define ROWS_Q6_K(NC) rows_k(m, c, NC, q6_K_block, 3328, true)
#define ROWS_IQ4_XS(NC) rows_k(m, c, NC, iq4_XS_block, 2176, false)
#define ROWS_Q4_0(NC) rows_32(m, c, NC, q4_0_block, 256, 8)
#define ROWS_IQ4_NL(NC) rows_32(m, c, NC, iq4_NL_block, 256, 128)
#define ROWS_Q5_0(NC) rows_32(m, c, NC, q5_0_block, 320, 16)
#define ROWS_Q8_0(NC) rows_32(m, c, NC, q8_0_block, 512, 128)
BY_COLUMNS(hn_avx512_packed_q4_K, ROWS_Q4_K, hn_avx512_ppanel_q4_K, 48)
BY_COLUMNS(hn_avx512_packed_q5_K, ROWS_Q5_K, hn_avx512_ppanel_q5_K, 48)
BY_COLUMNS(hn_avx512_packed_q6_K, ROWS_Q6_K, hn_avx512_ppanel_q6_K, 12)
BY_COLUMNS(hn_avx512_packed_iq4_XS, ROWS_IQ4_XS, hn_avx512_ppanel_iq4_XS, 20)
BY_COLUMNS(hn_avx512_packed_q4_0, ROWS_Q4_0, hn_avx512_ppanel_q4_0, 160)
BY_COLUMNS(hn_avx512_packed_iq4_NL, ROWS_IQ4_NL, hn_avx512_ppanel_iq4_NL, 48)
BY_COLUMNS(hn_avx512_packed_q5_0, ROWS_Q5_0, hn_avx512_ppanel_q5_0, 24)
BY_COLUMNS(hn_avx512_packed_q8_0, ROWS_Q8_0, hn_avx512_ppanel_q8_0, 160)

/* ---- floats: the contract's sixteen lanes are sixteen sums, each a vector of rows ------------------ */

INLINE __m512 widen_f32(const char *p) { return _mm512_loadu_ps(p); }
INLINE __m512 widen_f16(const char *p) { return scales_f16(p); }
INLINE __m512 widen_bf16(const char *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

typedef __m512 widen_fn(const char *p);

/* NL lanes at a time, so that NL·nc sums stay in registers; a block is read 16/NL times,
 * all but the first from L1. */
INLINE void rows_float(const hn_mm *m, int64_t c0, int nc, widen_fn *widen, size_t bytes)
{
    enum { MAX_SUMS = 16 };
    const int nl = nc == 1 ? 16 : nc == 2 ? 8 : 4;
    for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {
        const char *p = group(m, r);
        const float *x[COLS];
        __m512 t[COLS][16];
        FOR(c, nc) x[c] = (const float *)column(m, c0 + c);
        for (int64_t b = 0; b < m->n_in; b += 256) {
            int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in;
            for (int l0 = 0; l0 < 16; l0 += nl) {
                __m512 s[MAX_SUMS];
                FOR(i, nl * nc) s[i] = _mm512_setzero_ps();
                int64_t k = b + l0;
                for (; k + nl <= end; k += 16) {
                    FOR(l, nl) {
                        __m512 w = widen(p + (size_t)(k + l) * bytes);
                        FOR(c, nc) s[l * nc + c] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[c][k + l]), s[l * nc + c]);
                    }
                }
                FOR(l, nl)
                    if (k + l < end) {
                        __m512 w = widen(p + (size_t)(k + l) * bytes);
                        FOR(c, nc) s[l * nc + c] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[c][k + l]), s[l * nc + c]);
                    }
                if (b == 0)
                    FOR(l, nl)
                        FOR(c, nc) t[c][l0 + l] = s[l * nc + c];
                else
                    FOR(l, nl)
                        FOR(c, nc) t[c][l0 + l] = _mm512_add_ps(t[c][l0 + l], s[l * nc + c]);
            }
        }
        FOR(c, nc) {
            for (int h = 8; h >= 1; h /= 2)
                for (int l = 0; l < h; l++) t[c][l] = _mm512_add_ps(t[c][l], t[c][l + h]);
            store_rows(m, r, c0 + c, t[c][0]);
        }
    }
}

#define ROWS_F32(NC) rows_float(m, c, NC, widen_f32, 64)
#define ROWS_F16(NC) rows_float(m, c, NC, widen_f16, 32)
#define ROWS_BF16(NC) rows_float(m, c, NC, widen_bf16, 32)

/* Many columns: as many rows as the scratch holds are put back in their order and
 * multiplied by the register tiles. */
static void float_panel(const hn_mm *m, hn_type t)
{
    const size_t es = t == HN_F32 ? 4 : 2;
    const int64_t n = m->n_in, step = es == 4 ? HN_PACK_ROWS / 2 : HN_PACK_ROWS;
    _Static_assert(HN_PACK_ROWS * 2 <= HN_PANEL_ELEM, "HN_PANEL_BYTES");
    for (int64_t r = m->r0; r < m->r1; r += step) {
        const char *p = group(m, r) + (size_t)(r % HN_PACK_ROWS) * es;
        char *w = m->panel;
        for (int64_t k0 = 0; k0 < n; k0 += 64) /* a line or two of each row at a time */
            for (int64_t i = 0; i < step; i++)
                for (int64_t k = k0; k < n && k < k0 + 64; k++)
                    memcpy(w + (size_t)(i * n + k) * es, p + (size_t)k * HN_PACK_ROWS * es + (size_t)i * es, es);
        hn_mm part = *m;
        part.w = w;
        part.w_stride = (size_t)n * es;
        part.y = m->y + r;
        part.r0 = 0;
        part.r1 = m->r1 - r < step ? m->r1 - r : step;
        part.panel = NULL;
        hn_kernels_avx512.matmul[t](&part);
    }
}
static void panel_f32(const hn_mm *m) { float_panel(m, HN_F32); }
static void panel_f16(const hn_mm *m) { float_panel(m, HN_F16); }
static void panel_bf16(const hn_mm *m) { float_panel(m, HN_BF16); }
BY_COLUMNS(hn_avx512_packed_f32, ROWS_F32, panel_f32, COLS + 1)
BY_COLUMNS(hn_avx512_packed_f16, ROWS_F16, panel_f16, COLS + 1)
BY_COLUMNS(hn_avx512_packed_bf16, ROWS_BF16, panel_bf16, COLS + 1)

#else
typedef int hn_no_avx512_packed; /* an empty file is not C */
#endif
