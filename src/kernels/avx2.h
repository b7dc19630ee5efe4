/* What the files of the AVX2 level share. */
#ifndef HN_AVX2_H
#define HN_AVX2_H

#include "kernels/in_order.h"
#include "kernels/kernels.h"

#include <immintrin.h>

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define FOR(i, n) UNROLL for (int i = 0; i < (n); i++)
#define INLINE static inline __attribute__((always_inline))
/* A loop whose body is long enough: the compiler does not see its count, so there is one copy of it. */
INLINE int unseen(int i)
{
    __asm__("" : "+r"(i));
    return i;
}
#define FOR_ROLLED(i, n) for (int i = unseen(0); i < (n); i++)

/* many columns, from rows and from packed groups; both need scratch */
hn_matmul_fn hn_avx2_panel_q4_K, hn_avx2_panel_q5_K, hn_avx2_panel_q6_K, hn_avx2_panel_iq4_XS;
hn_matmul_fn hn_avx2_panel_q4_0, hn_avx2_panel_q5_0, hn_avx2_panel_q8_0, hn_avx2_panel_iq4_NL;
hn_matmul_fn hn_avx2_panel_mxfp4;
hn_matmul_fn hn_avx2_ppanel_q4_K, hn_avx2_ppanel_q5_K, hn_avx2_ppanel_q6_K, hn_avx2_ppanel_iq4_XS;
hn_matmul_fn hn_avx2_ppanel_q4_0, hn_avx2_ppanel_q5_0, hn_avx2_ppanel_q8_0, hn_avx2_ppanel_iq4_NL;

/* few columns, from rows as in the file; of floats one */
hn_matmul_fn hn_avx2_row_f32, hn_avx2_row_f16, hn_avx2_row_bf16;
hn_matmul_fn hn_avx2_rows_q4_K, hn_avx2_rows_q5_K, hn_avx2_rows_q6_K, hn_avx2_rows_iq4_XS;
hn_matmul_fn hn_avx2_rows_q4_0, hn_avx2_rows_q5_0, hn_avx2_rows_q8_0, hn_avx2_rows_iq4_NL, hn_avx2_rows_mxfp4;

/* packed groups */
hn_matmul_fn hn_avx2_packed_f32, hn_avx2_packed_f16, hn_avx2_packed_bf16;
hn_matmul_fn hn_avx2_packed_q4_K, hn_avx2_packed_q5_K, hn_avx2_packed_q6_K, hn_avx2_packed_iq4_XS;
hn_matmul_fn hn_avx2_packed_q4_0, hn_avx2_packed_q5_0, hn_avx2_packed_q8_0, hn_avx2_packed_iq4_NL;

#ifdef HN_VNNI_DOT /* a file of the level AVX_VNNI (avx_vnni.h) */
/* Lane i: sum + Σ of four products of unsigned u and signed s, modulo 2^32. Emulated, nothing is narrower than 32 bits:
 * vpmaddubsw's sums of 16 saturate, and vpdpbusd's do not. In place: a compiler that is free to may copy the sum. */
INLINE __m256i dpbusd(__m256i sum, __m256i u, __m256i s)
{
#ifdef HN_VNNI_EMULATED
    __m256i signed_even = _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8);
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)), signed_even);
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
    sum = _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
#else
    sum = _mm256_dpbusd_avx_epi32(sum, u, s);
#endif
    __asm__ volatile("" : "+x"(sum));
    return sum;
}
/* Lane i: sum + Σ of two products of 16 bits, modulo 2^32. */
INLINE __m256i dpwssd(__m256i sum, __m256i a, __m256i b)
{
#ifdef HN_VNNI_EMULATED
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#else
    sum = _mm256_dpwssd_avx_epi32(sum, a, b);
#endif
    __asm__ volatile("" : "+x"(sum));
    return sum;
}
#endif

/* sum + v, in this order, and before the loads that follow: a compiler that regroups long sums, or loads all of a block
 * first, keeps all their terms at once, in memory, since there are but sixteen registers */
INLINE __m256i add16(__m256i sum, __m256i v)
{
    sum = _mm256_add_epi16(sum, v);
    __asm__ volatile("" : "+x"(sum));
    return sum;
}
INLINE __m256i add_madd(__m256i sum, __m256i pairs, __m256i scale)
{
#ifdef HN_VNNI_DOT
    return dpwssd(sum, pairs, scale);
#else
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scale));
    __asm__ volatile("" : "+x"(sum));
    return sum;
#endif
}
/* The array stays in memory: its words are to be loaded into all lanes, which is free,
 * not shuffled out of the registers that it was written from. */
#define IN_MEMORY(ARRAY) __asm__("" : "+m"(ARRAY))

typedef int32_t int32_t_u __attribute__((aligned(1), may_alias));
INLINE int32_t load32(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}
INLINE __m256i word(const void *p) { return _mm256_set1_epi32(load32(p)); }
INLINE __m256i load256(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

#if HN_SEES_LOADS /* a sanitizer does not look into assembly */
INLINE __m256i load_in_order(const void *p) { return load256(p); }
INLINE __m128i load_half_in_order(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
INLINE __m256i word_in_order(const void *p) { return word(p); }
#else
INLINE __m256i load_in_order(const void *p)
{
    __m256i v;
    __asm__ volatile("vmovdqu %1, %0" : "=x"(v) : "m"(*(const __m256i_u *)p));
    return v;
}
INLINE __m128i load_half_in_order(const void *p)
{
    __m128i v;
    __asm__ volatile("vmovdqu %1, %0" : "=x"(v) : "m"(*(const __m128i_u *)p));
    return v;
}
/* a word that is met twice is loaded twice: kept in between, hundreds of them go to memory as whole registers */
INLINE __m256i word_in_order(const void *p)
{
    __m256i v;
    __asm__ volatile("vpbroadcastd %1, %0" : "=x"(v) : "m"(*(const int32_t_u *)p));
    return v;
}
#endif

/* ---- reading ahead in several streams --------------------------------------------------------------- */

/* One ascending stream is not read at memory's rate: a core has no more lines in flight than its first cache waits
 * for (Zen 3: 24), and its second cache's prefetchers, which could ask for more, go but a few lines ahead of each
 * stream. So weights are computed nearly as they lie, and asked for in four streams, each a page or more from the
 * others (measured: docs/LAB.md). Weights are cut into segments: while one is computed, the next four are asked for,
 * the nearest one's last quarter, the next one's third …, so that each is whole when its turn comes. */
enum { STREAMS = 4, SEGMENT = 16 << 10 };
typedef struct streams {
    const char *at[STREAMS];
} streams;

/* Where the streams are when what stands at p, of weights that begin at w, is computed; each goes on by a quarter of
 * what p does. Nothing is asked for from `end` on: such a stream goes along p instead, whose lines have come. */
INLINE streams ahead_of(const char *w, const char *p, const char *end, size_t segment)
{
    streams a;
    const size_t begun = (size_t)(p - w) % segment;
    const char *f = p - begun + segment + segment / 4 * 3 + begun / 4;
    FOR(i, STREAMS) {
        a.at[i] = f < end ? f : p;
        f += segment / 4 * 3;
    }
    return a;
}
INLINE void ask(const char *p) { __asm__ volatile("prefetcht1 %0" : : "m"(*p)); }
/* Asks for the line of each stream that is due with line i from there. */
INLINE void ask_ahead(const streams *a, int i) { ask(a->at[i % STREAMS] + i / STREAMS * 64); }

/* Whether what is computed of one product may be too much for the second cache. */
INLINE bool worth_streams(const char *p, const char *end) { return end - p >= 512 << 10; }
/* Asks for what would have come before the first of the weights, at p, had those before it been computed: the rest of
 * its segment, and less of each behind it. */
static inline void begin_ahead(const char *w, const char *p, const char *end, size_t segment)
{
    const size_t begun = (size_t)(p - w) % segment, all = (size_t)(end - p);
    size_t left[STREAMS + 1];
    if (!worth_streams(p, end)) return;
    for (size_t i = 0; i <= STREAMS; i++) {
        const size_t from = i ? i * segment - begun : 0, n = i ? segment / 4 * (4 - i) + begun / 4 : segment - begun;
        left[i] = from + n <= all ? n : from < all ? all - from : 0;
    }
    for (size_t k = 0; k < segment; k += 64)
        for (size_t i = 0; i <= STREAMS; i++)
            if (k < left[i]) ask(p + (i ? i * segment - begun : 0) + k);
}

INLINE __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
INLINE __m256i high_nibbles(__m256i v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
INLINE __m256i and32(__m256i v, uint32_t m) { return _mm256_and_si256(v, _mm256_set1_epi32((int32_t)m)); }
/* a | (b & m) */
INLINE __m256i or_and(__m256i a, __m256i b, uint32_t m) { return _mm256_or_si256(a, and32(b, m)); }
/* `bits` of every byte moved up (down if negative); other bits undefined */
INLINE __m256i shift16(__m256i v, int up) { return up >= 0 ? _mm256_slli_epi16(v, up) : _mm256_srli_epi16(v, -up); }
/* indices for a shuffle of the four bytes of every word */
INLINE __m256i byte_index(int a, int b, int c, int d)
{
    uint32_t w = (uint32_t)(a & 255) | (uint32_t)(b & 255) << 8 | (uint32_t)(c & 255) << 16 | (uint32_t)(d & 255) << 24;
    return _mm256_or_si256(_mm256_set1_epi32((int32_t)w), _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C, 0,
                                                                            0x04040404, 0x08080808, 0x0C0C0C0C));
}
INLINE __m256i iq4_levels(__m256i codes)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)hn_iq4_levels)), codes);
}
/* The 6-bit scales and minima of Q4_K and Q5_K, a word a row: bytes 0–3 and 4–7 of the
 * scales, then of the minima. */
INLINE void k_scale_words(__m256i v[4], const __m256i s[3])
{
    v[0] = and32(s[0], 0x3F3F3F3F);
    v[1] = or_and(and32(s[2], 0x0F0F0F0F), _mm256_srli_epi32(s[0], 2), 0x30303030);
    v[2] = and32(s[1], 0x3F3F3F3F);
    v[3] = or_and(and32(_mm256_srli_epi32(s[2], 4), 0x0F0F0F0F), _mm256_srli_epi32(s[1], 2), 0x30303030);
}
/* Scale s of IQ4_XS, of 16 bits, twice in every word. */
INLINE __m256i iq4_scale(__m256i sh, __m256i sl, int s)
{
    __m256i up = and32(_mm256_srli_epi32(sh, 2 * s), 3), v = and32(_mm256_srli_epi32(sl, 4 * s), 15);
    v = _mm256_sub_epi32(_mm256_or_si256(v, _mm256_slli_epi32(up, 4)), _mm256_set1_epi32(32));
    return _mm256_shuffle_epi8(v, byte_index(0, 1, 0, 1));
}
/* |w|·(a with w's sign): at most 128·127·2 in 16 bits */
INLINE __m256i signed_pairs(__m256i w, __m256i a)
{
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
}

#endif
