/* Sixteen rows of quantized weights, turned word by word: lane r of a register is row r. Shared by what opens panels
 * (avx512_panel.c) and packed groups (avx512_group.c). Types and static inline only. */
#ifndef HN_AVX512_TURN_H
#define HN_AVX512_TURN_H

#include "kernels/avx512_unpack.h"

enum { HN_TURNED_ROWS = 16 };

/* 16 × 16 transpose of 32-bit elements: out[i] lane r = in[r] lane i. */
V16_OP void transpose16(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        v[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        v[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* v[4j + i]: rows 4j…4j+3, element i of each 128-bit lane */
        t[i] = _mm512_shuffle_i32x4(v[i], v[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(v[i], v[4 + i], 0xDD);
        t[8 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        v[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xDD);
        v[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        v[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xDD);
    }
}

/* Rows r0 … r0+15 of a matrix; beyond r1 the last again. */
typedef struct rows16 {
    const char *row[HN_TURNED_ROWS];
} rows16;
V16_OP rows16 rows_at(const hn_mm *m, int64_t r0)
{
    rows16 o;
    for (int i = 0; i < HN_TURNED_ROWS; i++)
        o.row[i] = (const char *)m->w + (size_t)(r0 + i < m->r1 ? r0 + i : m->r1 - 1) * m->w_stride;
    return o;
}

/* Sixteen words at byte `at` of every row. */
V16_OP void words16(__m512i v[16], const rows16 *w, int64_t at)
{
    for (int i = 0; i < HN_TURNED_ROWS; i++) v[i] = _mm512_loadu_si512(w->row[i] + at);
    transpose16(v);
}
/* Four words at byte `at`. */
V16_OP void words4(__m512i v[4], const rows16 *w, int64_t at)
{
    __m512i t[4];
    for (int i = 0; i < 4; i++) { /* rows i, 4+i, 8+i, 12+i */
        t[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(w->row[i] + at)));
        t[i] = _mm512_inserti32x4(t[i], _mm_loadu_si128((const __m128i *)(w->row[4 + i] + at)), 1);
        t[i] = _mm512_inserti32x4(t[i], _mm_loadu_si128((const __m128i *)(w->row[8 + i] + at)), 2);
        t[i] = _mm512_inserti32x4(t[i], _mm_loadu_si128((const __m128i *)(w->row[12 + i] + at)), 3);
    }
    __m512i a = _mm512_unpacklo_epi32(t[0], t[1]), b = _mm512_unpackhi_epi32(t[0], t[1]);
    __m512i c = _mm512_unpacklo_epi32(t[2], t[3]), d = _mm512_unpackhi_epi32(t[2], t[3]);
    v[0] = _mm512_unpacklo_epi64(a, c);
    v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d);
    v[3] = _mm512_unpackhi_epi64(b, d);
}
V16_OP __m512i word1(const rows16 *w, int64_t at)
{
    int32_t v[HN_TURNED_ROWS];
    for (int i = 0; i < HN_TURNED_ROWS; i++) memcpy(&v[i], w->row[i] + at, 4);
    return _mm512_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
                             v[14], v[15]);
}
/* The half at byte `at` of every row. */
V16_OP __m256i halves1(const rows16 *w, int64_t at)
{
    int16_t v[HN_TURNED_ROWS];
    for (int i = 0; i < HN_TURNED_ROWS; i++) memcpy(&v[i], w->row[i] + at, 2);
    return _mm256_setr_epi16(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
                             v[14], v[15]);
}
V16_OP __m512 half1(const rows16 *w, int64_t at) { return _mm512_cvtph_ps(halves1(w, at)); }

#endif
