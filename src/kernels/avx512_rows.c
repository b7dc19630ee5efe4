/* Products of few columns straight from the rows of a file, AVX-512. Sixteen rows at a
 * time: lane i of every sum is row i of the tile. One to four columns share every opened
 * row; one column of K-quants goes row after row instead. What a type subtracts from its
 * codes goes in as the start of the sums: −offset·Σ of the activations a lane meets. */
#if defined(__x86_64__)

#include "kernels/avx512_rows.h"

#include "kernels/avx512_unpack.h"

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))
#define FOR(i, n) UNROLL for (int i = 0; i < (n); i++)
/* Not unrolled: a few instructions that load at a steady stride are what the hardware's
 * prefetchers follow; sixteen copies of each are not (measured: docs/LAB.md). */
#ifdef __clang__
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define ROLLED _Pragma("GCC unroll 1")
#endif
#define LOOP(i, n) ROLLED for (int i = 0; i < (n); i++)

enum { ROWS = 16, COLS = 4 };
/* From this many columns opening a panel pays, where nothing else does before (measured: docs/LAB.md). */
enum { PANEL_COLS = 5 };

/* ---- sums across a tile ----------------------------------------------------------------------- */

INLINE __m512i fold32(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
INLINE __m512i fold64(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
INLINE __m512i fold128(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}
/* per 128-bit lane the sums of v[0..3] in order */
INLINE __m512i fold4(const __m512i *v) { return fold64(fold32(v[0], v[1]), fold32(v[2], v[3])); }
/* f[e] = fold4 of rows 4e … 4e+3: lane i = sum of row i */
INLINE __m512i fold_rows(const __m512i f[4]) { return fold128(fold128(f[0], f[1]), fold128(f[2], f[3])); }

/* ---- operands ----------------------------------------------------------------------------------- */

INLINE __m512i and32(__m512i a, uint32_t m) { return _mm512_and_si512(a, _mm512_set1_epi32((int32_t)m)); }
/* a | (b & mask) */
INLINE __m512i or_and(__m512i a, __m512i b, __m512i m) { return _mm512_ternarylogic_epi32(a, b, m, 0xF8); }
INLINE __m512i load64(const void *p) { return _mm512_loadu_si512(p); }
INLINE __m512i twice32(const void *p) { return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m512i four16(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m512i lanes4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) /* of every 128-bit lane */
{
    return _mm512_set4_epi32((int32_t)d, (int32_t)c, (int32_t)b, (int32_t)a);
}
/* 32-bit a in the first two 128-bit lanes, b in the others */
INLINE __m512i halves(int a, int b) { return _mm512_inserti64x4(_mm512_set1_epi32(a), _mm256_set1_epi32(b), 1); }
/* v is loaded here, and not where it is used. */
#define HERE(v) __asm__ volatile("" : "+v"(v))
#define LOW(v) and32(v, 0x0F0F0F0Fu)
#define HIGH(v) LOW(_mm512_srli_epi32(v, 4))

/* 16 bytes at `at` of rows j, 4+j, 8+j, 12+j. */
INLINE __m512i headers(const char *const *row, int64_t at, int j)
{
    __m512i h = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[j] + at)));
    h = _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)(row[4 + j] + at)), 1);
    h = _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)(row[8 + j] + at)), 2);
    return _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)(row[12 + j] + at)), 3);
}
/* lane i = 32-bit word w of the headers of row i */
INLINE __m512i header_words(const __m512i h[4], int w)
{
    return w < 2
               ? (w ? _mm512_unpackhi_epi64(_mm512_unpacklo_epi32(h[0], h[1]), _mm512_unpacklo_epi32(h[2], h[3]))
                    : _mm512_unpacklo_epi64(_mm512_unpacklo_epi32(h[0], h[1]), _mm512_unpacklo_epi32(h[2], h[3])))
               : (w == 3 ? _mm512_unpackhi_epi64(_mm512_unpackhi_epi32(h[0], h[1]), _mm512_unpackhi_epi32(h[2], h[3]))
                         : _mm512_unpacklo_epi64(_mm512_unpackhi_epi32(h[0], h[1]), _mm512_unpackhi_epi32(h[2], h[3])));
}
INLINE __m512 low_f16(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE __m512 high_f16(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16))); }

/* ---- a tile: its rows, and what to fetch while it computes -------------------------------------- */

/* Sixteen rows side by side are sixteen short streams, too many for the hardware to
 * follow; but the tiles themselves are contiguous. While a tile computes, the next is
 * fetched in the order of its addresses. */
typedef struct tile {
    const char *row[ROWS]; /* rows beyond r1 repeat the last */
    const char *next;      /* what to fetch at its first block */
} tile;

INLINE void tile_begin(tile *t, const hn_mm *m, int64_t r)
{
    for (int i = 0; i < ROWS; i++)
        t->row[i] = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;
    t->next = t->row[0] + ROWS * m->w_stride;
    if (r == m->r0)
        for (const char *p = t->row[0]; p < t->next; p += 64) _mm_prefetch(p, _MM_HINT_T1);
}
/* Part i of 16 of the n bytes at p. */
INLINE void fetch_part(const char *p, int n, int i)
{
    p += i * (n / ROWS);
    FOR(l, (n / ROWS + 63) / 64) _mm_prefetch(p + 64 * l, _MM_HINT_T1);
}

INLINE const char *column(const hn_mm *m, int64_t c) { return (const char *)m->x + (size_t)c * m->x_stride; }
INLINE void store_rows(const hn_mm *m, int64_t r, int64_t c, __m512 y)
{
    int64_t n = m->r1 - r;
    _mm512_mask_storeu_ps(m->y + c * m->ldy + r, n >= ROWS ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1), y);
}

/* The half floats at `at` of the sixteen rows. */
INLINE __m512 rows_f16(const char *const *row, int64_t at)
{
    __m128i h[2];
    FOR(k, 2) {
        uint16_t d[8];
        FOR(i, 8) memcpy(&d[i], row[8 * k + i] + at, 2);
        h[k] = _mm_setr_epi16((short)d[0], (short)d[1], (short)d[2], (short)d[3], (short)d[4], (short)d[5], (short)d[6],
                              (short)d[7]);
    }
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(h[0]), h[1], 1));
}

/* ---- K-quants --------------------------------------------------------------------------------------- */

/* Sums of 4 products fit 16 bits: two registers of them meet 16-bit scales. */
INLINE __m512i scaled(const __m512i d[4], const __m512i sc[2])
{
    __m512i s = _mm512_dpwssd_epi32(_mm512_setzero_si512(), _mm512_packs_epi32(d[0], d[1]), sc[0]);
    return _mm512_dpwssd_epi32(s, _mm512_packs_epi32(d[2], d[3]), sc[1]);
}

/* Activations of a block in the order of 64 bytes of two-code bytes: lower, upper. */
INLINE void nibble_order(__m512i a[4], const int8_t *q)
{
    __m512i x0 = load64(q), x1 = load64(q + 64), x2 = load64(q + 128), x3 = load64(q + 192);
    a[0] = _mm512_shuffle_i64x2(x0, x1, 0x44);
    a[1] = _mm512_shuffle_i64x2(x0, x1, 0xEE);
    a[2] = _mm512_shuffle_i64x2(x2, x3, 0x44);
    a[3] = _mm512_shuffle_i64x2(x2, x3, 0xEE);
}

INLINE void open_q4(__m512i q[4], const char *p)
{
    __m512i v0 = load64(p + 16), v1 = load64(p + 80);
    q[0] = LOW(v0);
    q[1] = HIGH(v0);
    q[2] = LOW(v1);
    q[3] = HIGH(v1);
}
INLINE void open_q5(__m512i q[4], const char *p)
{
    __m512i h = twice32(p + 16), v0 = load64(p + 48), v1 = load64(p + 112), bit = _mm512_set1_epi8(16);
    q[0] = or_and(LOW(v0), _mm512_rorv_epi32(h, halves(28, 30)), bit); /* bits 0 and 2 of a byte to its bit 4 */
    q[1] = or_and(HIGH(v0), _mm512_rorv_epi32(h, halves(29, 31)), bit);
    q[2] = or_and(LOW(v1), _mm512_rorv_epi32(h, halves(0, 2)), bit);
    q[3] = or_and(HIGH(v1), _mm512_rorv_epi32(h, halves(1, 3)), bit);
}

/* Of each 128-bit lane, the first 16 bytes of a block (d and dmin, the words s0 s1 s2): its eight scales and eight
 * minima. */
INLINE __m512i min_scales(__m512i h)
{
    __m512i v = _mm512_srlv_epi32(_mm512_shuffle_epi32(h, 0xED), lanes4(0, 0, 0, 4)); /* s0 s2 s1 s2>>4 */
    v = _mm512_and_si512(v, lanes4(0x3F3F3F3Fu, 0x0F0F0F0Fu, 0x3F3F3F3Fu, 0x0F0F0F0Fu));
    return or_and(v, _mm512_srli_epi32(_mm512_shuffle_epi32(h, 0x94), 2), lanes4(0, 0x30303030u, 0, 0x30303030u));
}
/* Scale bytes 0-7 of every 128-bit lane to 16 bits, in the order that packing two sums gives. */
INLINE void pick_scales(__m512i sc[2], __m512i v)
{
    const __m512i pick0 =
        _mm512_inserti64x4(lanes4(0x80008000u, 0x80008000u, 0x80018001u, 0x80018001u),
                           _mm512_castsi512_si256(lanes4(0x80028002u, 0x80028002u, 0x80038003u, 0x80038003u)), 1);
    sc[0] = _mm512_shuffle_epi8(v, pick0);
    sc[1] = _mm512_shuffle_epi8(v, _mm512_add_epi32(pick0, _mm512_set1_epi32(0x00040004)));
}
/* Sums of 32 consecutive q. */
INLINE __m128i sums_of_32(const hn_a256 *x)
{
    return _mm256_cvtepi32_epi16(_mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x->bsum), _mm256_set1_epi16(1)));
}

/* Q4_K, Q5_K */
INLINE void tile_min(const hn_mm *m, int64_t r, int64_t c0, int nc, int bytes, bool five)
{
    int64_t nb = m->n_in / 256;
    tile t;
    tile_begin(&t, m, r);
    const hn_a256 *x[COLS];
    __m512 acc[COLS];
    FOR(c, nc) x[c] = (const hn_a256 *)column(m, c0 + c), acc[c] = _mm512_setzero_ps();
    for (int64_t b = 0; b < nb; b++) {
        int64_t at = b * bytes;
        __m512i h[4], mn[4], a[COLS][4], f[COLS][4], side[COLS];
        char scales[4][64];
        FOR(j, 4) {
            h[j] = headers(t.row, at, j); /* d and dmin, then the words s0 s1 s2 */
            __m512i v = min_scales(h[j]);
            _mm512_storeu_si512(scales[j], v);
            mn[j] = _mm512_unpackhi_epi8(v, _mm512_setzero_si512());
        }
        __m512i dd = header_words(h, 0);
        FOR(c, nc) {
            nibble_order(a[c], x[c][b].q);
            __m512i bs = _mm512_broadcast_i32x4(sums_of_32(&x[c][b])), v[4];
            FOR(j, 4) v[j] = _mm512_madd_epi16(mn[j], bs);
            side[c] = fold4(v);
        }
        LOOP(e, 4) {
            __m512i s[COLS][4];
            FOR(j, 4) {
                __m512i q[4], v = four16(scales[j] + 16 * e);
                __m512i sc[2];
                pick_scales(sc, v);
                fetch_part(t.next + ROWS * at, ROWS * bytes, 4 * e + j);
                if (five) open_q5(q, t.row[4 * e + j] + at);
                else open_q4(q, t.row[4 * e + j] + at);
                FOR(c, nc) {
                    __m512i d[4];
                    FOR(k, 4) d[k] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), q[k], a[c][k]);
                    s[c][j] = scaled(d, sc);
                }
            }
            FOR(c, nc) f[c][e] = fold4(s[c]);
        }
        __m512 dw = low_f16(dd), dmin = high_f16(dd);
        FOR(c, nc) {
            __m512 da = _mm512_set1_ps(x[c][b].d);
            acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(dw, da), _mm512_cvtepi32_ps(fold_rows(f[c])), acc[c]);
            acc[c] = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, da), _mm512_cvtepi32_ps(side[c]), acc[c]);
        }
    }
    FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
}

INLINE __m512i minus(__m512i a) { return _mm512_sub_epi32(_mm512_setzero_si512(), a); }

/* Codes of a block and its scales as 16 bits in the order that packing two sums gives; returns them in order.
 * `ascending`: the loads keep the order of their addresses, which the hardware follows where nothing is fetched ahead
 * (measured: docs/LAB.md). */
INLINE __m256i open_q6(__m512i q[4], __m512i sc[2], const char *p, bool ascending)
{
    /* scale 8n + L to the first four, 8n + 4 + L to the other four of lane L */
    const __m512i pick0 =
        _mm512_add_epi16(_mm512_set4_epi32(0x00040004, 0x00040004, 0, 0),
                         _mm512_inserti64x4(_mm512_inserti32x4(_mm512_setzero_si512(), _mm_set1_epi16(1), 1),
                                            _mm256_inserti128_si256(_mm256_set1_epi16(2), _mm_set1_epi16(3), 1), 1));
    const __m512i two = _mm512_set1_epi8(0x30);
    __m512i l0 = load64(p), l1 = load64(p + 64), h0 = twice32(p + 128), h1 = twice32(p + 160);
    if (ascending) {
        HERE(l0);
        HERE(l1);
        HERE(h0);
        HERE(h1);
    }
    __m256i s16 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(p + 192)));
    sc[0] = _mm512_permutexvar_epi16(pick0, _mm512_castsi256_si512(s16));
    sc[1] = _mm512_permutexvar_epi16(_mm512_add_epi16(pick0, _mm512_set1_epi16(8)), _mm512_castsi256_si512(s16));
    q[0] = or_and(LOW(l0), _mm512_rorv_epi32(h0, halves(28, 30)), two); /* bits 0-1, 2-3 of a byte to 4-5 */
    q[1] = or_and(HIGH(l0), _mm512_rorv_epi32(h0, halves(0, 2)), two);
    q[2] = or_and(LOW(l1), _mm512_rorv_epi32(h1, halves(28, 30)), two);
    q[3] = or_and(HIGH(l1), _mm512_rorv_epi32(h1, halves(0, 2)), two);
    return s16;
}

INLINE void tile_q6_K(const hn_mm *m, int64_t r, int64_t c0, int nc)
{
    enum { BYTES = sizeof(hn_q6_K) };
    int64_t nb = m->n_in / 256;
    tile t;
    tile_begin(&t, m, r);
    const hn_a256 *x[COLS];
    __m512 acc[COLS];
    FOR(c, nc) x[c] = (const hn_a256 *)column(m, c0 + c), acc[c] = _mm512_setzero_ps();
    for (int64_t b = 0; b < nb; b++) {
        int64_t at = b * BYTES;
        __m512i h[4], start[COLS][4], f[COLS][4];
        FOR(c, nc)
            FOR(k, 4)
                start[c][k] = minus(
                    _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(32), load64(x[c][b].q + 64 * k)));
        LOOP(e, 4) {
            __m512i s[COLS][4];
            LOOP(j, 4) {
                const char *p = t.row[4 * e + j] + at;
                __m512i q[4], sc[2];
                open_q6(q, sc, p, false);
                fetch_part(t.next + ROWS * at, ROWS * BYTES, 4 * e + j);
                FOR(c, nc) {
                    __m512i d[4];
                    FOR(k, 4) d[k] = _mm512_dpbusd_epi32(start[c][k], q[k], load64(x[c][b].q + 64 * k));
                    s[c][j] = scaled(d, sc);
                }
            }
            FOR(c, nc) f[c][e] = fold4(s[c]);
        }
        FOR(j, 4) h[j] = headers(t.row, at + BYTES - 16, j); /* d is the last of the last four bytes */
        __m512 dw = high_f16(header_words(h, 3));
        FOR(c, nc)
            acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(dw, _mm512_set1_ps(x[c][b].d)), _mm512_cvtepi32_ps(fold_rows(f[c])),
                                     acc[c]);
    }
    FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
}

/* levels with 128 added, in every lane */
INLINE __m512i iq4_table(void)
{
    return _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_loadu_si128((const __m128i *)hn_iq4_levels), _mm_set1_epi8((char)128)));
}
/* a, b, c, d: one for all 32-bit words of each 128-bit lane */
INLINE __m512i per_lane(int a, int b, int c, int d)
{
    return _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
}

INLINE void tile_iq4_XS(const hn_mm *m, int64_t r, int64_t c0, int nc)
{
    enum { BYTES = sizeof(hn_iq4_XS) };
    int64_t nb = m->n_in / 256;
    tile t;
    tile_begin(&t, m, r);
    const hn_a256 *x[COLS];
    __m512 acc[COLS];
    const __m512i table = iq4_table();
    FOR(c, nc) x[c] = (const hn_a256 *)column(m, c0 + c), acc[c] = _mm512_setzero_ps();
    for (int64_t b = 0; b < nb; b++) {
        int64_t at = b * BYTES;
        __m512i a[COLS][4], start[COLS][2], f[COLS][4];
        FOR(c, nc)
            FOR(k, 2) { /* lane L: codes 32(4k+L) …, lower and upper halves of 16 */
                __m512i x0 = load64(x[c][b].q + 128 * k), x1 = load64(x[c][b].q + 128 * k + 64);
                a[c][2 * k] = _mm512_shuffle_i32x4(x0, x1, 0x88);
                a[c][2 * k + 1] = _mm512_shuffle_i32x4(x0, x1, 0xDD);
                __m512i s = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8((char)128), a[c][2 * k]);
                start[c][k] = minus(_mm512_dpbusd_epi32(s, _mm512_set1_epi8((char)128), a[c][2 * k + 1]));
            }
        LOOP(e, 4) {
            __m512i s[COLS][4];
            FOR(j, 4) {
                const char *p = t.row[4 * e + j] + at;
                int32_t dh, sl;
                memcpy(&dh, p, 4);
                memcpy(&sl, p + 4, 4);
                __m512i vh = _mm512_set1_epi32(dh), vl = _mm512_set1_epi32(sl),
                        v[2] = { load64(p + 8), load64(p + 72) };
                fetch_part(t.next + ROWS * at, ROWS * BYTES, 4 * e + j);
                FOR(c, nc) s[c][j] = _mm512_setzero_si512();
                FOR(k, 2) {
                    __m512i sc =
                        _mm512_and_si512(_mm512_srlv_epi32(vl, k ? per_lane(16, 20, 24, 28) : per_lane(0, 4, 8, 12)),
                                         _mm512_set1_epi32(15));
                    sc = or_and(sc, _mm512_srlv_epi32(vh, k ? per_lane(20, 22, 24, 26) : per_lane(12, 14, 16, 18)),
                                _mm512_set1_epi32(0x30));
                    sc = _mm512_sub_epi32(sc, _mm512_set1_epi32(32));
                    __m512i lo = _mm512_shuffle_epi8(table, LOW(v[k])), hi = _mm512_shuffle_epi8(table, HIGH(v[k]));
                    FOR(c, nc) {
                        __m512i d =
                            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(start[c][k], lo, a[c][2 * k]), hi, a[c][2 * k + 1]);
                        s[c][j] = _mm512_add_epi32(s[c][j], _mm512_mullo_epi32(d, sc));
                    }
                }
            }
            FOR(c, nc) f[c][e] = fold4(s[c]);
        }
        __m512 dw = rows_f16(t.row, at);
        FOR(c, nc)
            acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(dw, _mm512_set1_ps(x[c][b].d)), _mm512_cvtepi32_ps(fold_rows(f[c])),
                                     acc[c]);
    }
    FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
}

/* ---- K-quants, one column: row after row ------------------------------------------------------------ */

/* With one column, memory decides. A row is read to its end before the next, one ascending
 * stream, which the hardware follows better than the sixteen of a tile (docs/LAB.md). Four
 * blocks at a time take the lanes that rows take above; the integers of sixteen rows wait
 * for the floats, whose lanes are rows again. */
enum {
    ROW_BLOCKS = 32, /* most blocks of a row met so */
    FOUR = 4,
    AHEAD = 56
}; /* blocks from the one met to what is fetched into the second cache (measured: docs/LAB.md) */

typedef struct sums { /* of sixteen rows */
    _Alignas(64) int32_t isum[ROWS][ROW_BLOCKS];
    int32_t msum[ROWS][ROW_BLOCKS];
    int32_t d[ROWS][ROW_BLOCKS]; /* half floats: d, or d and dmin */
} sums;
typedef struct one_column {
    const hn_a256 *x;
    _Alignas(64) int8_t q[ROW_BLOCKS][256]; /* in the order of the codes' bytes */
    int16_t sum32[ROW_BLOCKS][8];
} one_column;
/* Blocks g … g+n−1 of row i, n ≤ 4, from p on. */
typedef void four_fn(sums *s, int64_t i, int64_t g, int n, const char *p, const one_column *c);

/* The sums over all lanes of v[0..3]. */
INLINE __m128i four_sums(const __m512i v[FOUR])
{
    __m512i f = fold4(v);
    __m256i s = _mm256_add_epi32(_mm512_castsi512_si256(f), _mm512_extracti64x4_epi64(f, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}
/* The first word of each 128-bit lane. */
INLINE __m128i first_words(__m512i v)
{
    return _mm512_castsi512_si128(
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), v));
}
/* Lane i of v[k] = s[i·ROW_BLOCKS + k]. */
INLINE void lanes_are_rows(__m512i v[FOUR], const int32_t *s)
{
    const char *row[ROWS];
    __m512i h[FOUR];
    FOR(i, ROWS) row[i] = (const char *)(s + i * ROW_BLOCKS);
    FOR(j, FOUR) h[j] = headers(row, 0, j);
    FOR(k, FOUR) v[k] = header_words(h, k);
}

/* Q4_K, Q5_K */
INLINE void four_min(sums *s, int64_t i, int64_t g, int n, const char *p, const one_column *c, bool five)
{
    int bytes = five ? (int)sizeof(hn_q5_K) : (int)sizeof(hn_q4_K);
    const char *b[FOUR];
    FOR(k, FOUR) b[k] = p + (k < n ? k : 0) * bytes;
    __m512i h = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)b[0])), sum[FOUR];
    h = _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)b[1]), 1);
    h = _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)b[2]), 2);
    h = _mm512_inserti32x4(h, _mm_loadu_si128((const __m128i *)b[3]), 3);
    _mm_store_si128((__m128i *)&s->d[i][g], first_words(h));
    __m512i sc = min_scales(h),
            m = _mm512_madd_epi16(_mm512_unpackhi_epi8(sc, _mm512_setzero_si512()), load64(c->sum32[g]));
    m = _mm512_add_epi32(m, _mm512_shuffle_epi32(m, 0x4E));
    m = _mm512_add_epi32(m, _mm512_shuffle_epi32(m, 0xB1));
    _mm_store_si128((__m128i *)&s->msum[i][g], first_words(m));
    const __m512i of[FOUR] = { _mm512_shuffle_i32x4(sc, sc, 0), _mm512_shuffle_i32x4(sc, sc, 0x55),
                               _mm512_shuffle_i32x4(sc, sc, 0xAA),
                               _mm512_shuffle_i32x4(sc, sc, 0xFF) }; /* one block's in every lane */
    FOR(k, FOUR) {
        __m512i w[4], d[4], two[2];
        pick_scales(two, of[k]);
        if (five) open_q5(w, b[k]);
        else open_q4(w, b[k]);
        FOR(l, 4) d[l] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w[l], load64(c->q[g + k] + 64 * l));
        sum[k] = scaled(d, two);
    }
    _mm_store_si128((__m128i *)&s->isum[i][g], four_sums(sum));
}

INLINE void four_q4_K(sums *s, int64_t i, int64_t g, int n, const char *p, const one_column *c)
{
    four_min(s, i, g, n, p, c, false);
}
INLINE void four_q5_K(sums *s, int64_t i, int64_t g, int n, const char *p, const one_column *c)
{
    four_min(s, i, g, n, p, c, true);
}

INLINE void four_q6_K(sums *s, int64_t i, int64_t g, int n, const char *p, const one_column *c)
{
    __m512i sum[FOUR];
    FOR(k, FOUR) {
        const hn_q6_K *w = (const hn_q6_K *)p + (k < n ? k : 0);
        const hn_a256 *x = c->x + g + (k < n ? k : 0);
        __m512i q[4], d[4], sc[2];
        __m256i s16 = open_q6(q, sc, (const char *)w, true);
        s->d[i][g + k] = w->d;
        FOR(l, 4) d[l] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), q[l], load64(x->q + 64 * l));
        __m256i off =
            _mm256_madd_epi16(_mm256_slli_epi16(s16, 5), _mm256_loadu_si256((const __m256i *)x->bsum)); /* codes − 32 */
        sum[k] = _mm512_sub_epi32(scaled(d, sc), _mm512_zextsi256_si512(off));
    }
    _mm_store_si128((__m128i *)&s->isum[i][g], four_sums(sum));
}

INLINE void rows_one_column(const hn_mm *m, int64_t r, int64_t c0, four_fn *four, int bytes, bool has_min, int ahead)
{
    int64_t n = m->n_in / 256, whole = n & ~(int64_t)(FOUR - 1);
    sums s;
    one_column c;
    __m512 acc = _mm512_setzero_ps();
    c.x = (const hn_a256 *)column(m, c0);
    for (int64_t b = 0; has_min && b < n; b++) {
        __m512i v[4];
        nibble_order(v, c.x[b].q);
        FOR(k, 4) _mm512_store_si512(c.q[b] + 64 * k, v[k]);
        _mm_store_si128((__m128i *)c.sum32[b], sums_of_32(&c.x[b]));
    }
    if (has_min && whole < n) { /* what the last four meet beyond n */
        memset(c.q[n], 0, (size_t)(whole + FOUR - n) * sizeof *c.q);
        memset(c.sum32[n], 0, (size_t)(whole + FOUR - n) * sizeof *c.sum32);
    }
    for (int64_t i = 0; i < ROWS; i++) {
        const char *p = (const char *)m->w + (size_t)(r + i < m->r1 ? r + i : m->r1 - 1) * m->w_stride;
        for (int64_t g = 0; g < whole; g += FOUR) {
            if (ahead)
                FOR(l, FOUR * bytes / 64) _mm_prefetch(p + (g + ahead) * bytes + 64 * l, _MM_HINT_T1);
            four(&s, i, g, FOUR, p + g * bytes, &c);
        }
        if (whole < n) {
            for (int64_t l = 0; ahead && l < (n - whole) * bytes; l += 64) /* else each row's end is waited for */
                _mm_prefetch(p + (whole + ahead) * bytes + l, _MM_HINT_T1);
            four(&s, i, whole, (int)(n - whole), p + whole * bytes, &c);
        }
    }
    for (int64_t g = 0; g < n; g += FOUR) {
        __m512i d[FOUR], isum[FOUR], msum[FOUR];
        lanes_are_rows(d, &s.d[0][g]);
        lanes_are_rows(isum, &s.isum[0][g]);
        if (has_min) lanes_are_rows(msum, &s.msum[0][g]);
        FOR(k, FOUR) {
            if (g + k == n) break;
            __m512 da = _mm512_set1_ps(c.x[g + k].d);
            acc = _mm512_fmadd_ps(_mm512_mul_ps(low_f16(d[k]), da), _mm512_cvtepi32_ps(isum[k]), acc);
            if (has_min) acc = _mm512_fnmadd_ps(_mm512_mul_ps(high_f16(d[k]), da), _mm512_cvtepi32_ps(msum[k]), acc);
        }
    }
    store_rows(m, r, c0, acc);
}
/* One column of rows that fit; wider ones in parts would be sixteen streams again, and were three times slower so. */
#define BY_ROW(m, NC) (NC == 1 && (m)->n_in <= 256 * ROW_BLOCKS)

/* ---- 32-blocks ------------------------------------------------------------------------------------------ */

/* Codes of the block at p and, if two, of the next in the upper half. */
typedef __m512i open2_fn(const char *p, bool two);
/* The scales of the rows' blocks at `at`. */
typedef __m512 scales_fn(const char *const *row, int64_t at);

/* Bytes of two 16-byte fields as codes: lower halves in the even 128-bit lanes. */
INLINE __m512i nibbles2(const char *p, const char *p2)
{
    __m512i v = four16(p);
    if (p2) v = _mm512_mask_broadcast_i32x4(v, 0xFF00, _mm_loadu_si128((const __m128i *)p2));
    return LOW(_mm512_srlv_epi32(v, per_lane(0, 4, 0, 4)));
}
INLINE __m512i open2_q4_0(const char *p, bool two) { return nibbles2(p + 2, two ? p + 20 : NULL); }
INLINE __m512i open2_iq4_NL(const char *p, bool two) { return _mm512_shuffle_epi8(iq4_table(), open2_q4_0(p, two)); }
INLINE __m512i e2m1_table(void) /* doubled levels with 12 added */
{
    return _mm512_broadcast_i32x4(_mm_add_epi8(_mm_loadu_si128((const __m128i *)hn_e2m1_doubled), _mm_set1_epi8(12)));
}
INLINE __m512i open2_mxfp4(const char *p, bool two)
{
    return _mm512_shuffle_epi8(e2m1_table(), nibbles2(p + 1, two ? p + 18 : NULL));
}
INLINE __m512 rows_e8m0(const char *const *row, int64_t at)
{
    uint8_t e[ROWS];
    FOR(i, ROWS) e[i] = (uint8_t)row[i][at];
    return hn_avx512_e8m0(_mm_loadu_si128((const __m128i *)e));
}
INLINE __m512i open2_q5_0(const char *p, bool two)
{
    uint32_t h0, h1 = 0;
    memcpy(&h0, p + 2, 4);
    if (two) memcpy(&h1, p + 24, 4);
    __m512i q = nibbles2(p + 6, two ? p + 28 : NULL);
    return _mm512_mask_add_epi8(q, (uint64_t)h1 << 32 | h0, q, _mm512_set1_epi8(16));
}
INLINE __m512i open2_q8_0(const char *p, bool two)
{
    __m512i q = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(p + 2)));
    q = _mm512_inserti64x4(q, _mm256_loadu_si256((const __m256i *)(p + (two ? 36 : 2))), 1);
    return _mm512_xor_si512(q, _mm512_set1_epi8((char)128));
}

/* `n` ≤ 2 blocks from block b on. */
INLINE void pair_32(const tile *t, int64_t b, int n, const int8_t *const *x, const float *const *dx, int nc,
                    open2_fn *open, int bytes, int offset, scales_fn *scales, __m512 *acc)
{
    __m512i a[COLS], start[COLS], f[COLS][4];
    FOR(c, nc) {
        a[c] = n == 2 ? load64(x[c] + 32 * b)
                      : _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(x[c] + 32 * b)));
        start[c] = minus(_mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8((char)offset), a[c]));
    }
    LOOP(e, 4) {
        __m512i s[COLS][4];
        FOR(j, 4) {
            const char *p = t->row[4 * e + j];
            __m512i q = open(p + b * bytes, n == 2);
            fetch_part(t->next + ROWS * bytes * b, ROWS * 2 * bytes, 4 * e + j);
            FOR(c, nc) s[c][j] = _mm512_dpbusd_epi32(start[c], q, a[c]);
        }
        FOR(c, nc) f[c][e] = fold4(s[c]);
    }
    __m512 d[2];
    FOR(k, n) d[k] = scales(t->row, (b + k) * bytes);
    FOR(c, nc) {
        __m512i u = fold128(f[c][0], f[c][1]), v = fold128(f[c][2], f[c][3]);
        __m512i sum[2] = { _mm512_shuffle_i32x4(u, v, 0x88), _mm512_shuffle_i32x4(u, v, 0xDD) };
        FOR(k, n) {
            acc[c] =
                _mm512_fmadd_ps(_mm512_mul_ps(d[k], _mm512_set1_ps(dx[c][b + k])), _mm512_cvtepi32_ps(sum[k]), acc[c]);
        }
    }
}

/* What a 4-bit type of 32-blocks is, for four blocks of a row side by side: lane L of a register is block L. A block
 * begins with its scale, `skip` bytes; those of blocks 0 to 3 lie at byte L·skip of lane L of the row's 64 bytes, since
 * a block is 16 + skip bytes. */
typedef struct four_kind {
    int skip, offset;
    bool table;     /* else codes are levels */
    __m512i levels; /* of all 16 codes, offset added */
} four_kind;

/* Scales of one block of sixteen rows, zero-extended. */
INLINE __m512 four_scales(__m512i v, int skip)
{
    return skip == 1 ? hn_avx512_e8m0(_mm512_cvtepi32_epi8(v)) : low_f16(v);
}
/* v[e] has lane L of rows 4e … 4e+3: of all rows, lane i row i, v[L]. */
INLINE void lanes_are_blocks(__m512i v[FOUR])
{
    __m512i t0 = _mm512_shuffle_i32x4(v[0], v[1], 0x44), t1 = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    __m512i t2 = _mm512_shuffle_i32x4(v[2], v[3], 0x44), t3 = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(t0, t2, 0x88);
    v[1] = _mm512_shuffle_i32x4(t0, t2, 0xDD);
    v[2] = _mm512_shuffle_i32x4(t1, t3, 0x88);
    v[3] = _mm512_shuffle_i32x4(t1, t3, 0xDD);
}

/* Four blocks from block b on. */
INLINE void four_32(const tile *t, int64_t b, const int8_t *const *x, const float *const *dx, int nc, four_kind kind,
                    __m512 *acc)
{
    const int bytes = 16 + kind.skip;
    /* to every word of lane L its byte L·skip, and the next where a scale has two; else zeros */
    const __m512i pick = _mm512_or_si512(per_lane(0, kind.skip * 0x101, 2 * kind.skip * 0x101, 3 * kind.skip * 0x101),
                                         _mm512_set1_epi32((int)(kind.skip == 1 ? 0x80808000u : 0x80800100u)));
    __m512i a[COLS][2], start[COLS], f[COLS][FOUR], d[FOUR];
    FOR(c, nc) {
        __m512i x0 = load64(x[c] + 32 * b), x1 = load64(x[c] + 32 * b + 64), off = _mm512_set1_epi8((char)kind.offset);
        a[c][0] = _mm512_shuffle_i32x4(x0, x1, 0x88);
        a[c][1] = _mm512_shuffle_i32x4(x0, x1, 0xDD);
        start[c] = minus(_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), off, a[c][0]), off, a[c][1]));
    }
    LOOP(e, FOUR) {
        __m512i s[COLS][FOUR];
        FOR(j, FOUR) {
            const char *p = t->row[4 * e + j] + b * bytes, *q = p + kind.skip;
            __m512i h = load64(p), v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)q));
            v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(q + bytes)), 1);
            v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(q + 2 * bytes)), 2);
            v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(q + 3 * bytes)), 3);
            fetch_part(t->next + ROWS * bytes * b, ROWS * FOUR * bytes, 4 * e + j);
            d[e] = j ? _mm512_mask_shuffle_epi8(d[e], 0x000F000F000F000Full << (4 * j), h, pick)
                     : _mm512_shuffle_epi8(h, pick);
            __m512i lo = LOW(v), hi = HIGH(v);
            if (kind.table) {
                lo = _mm512_shuffle_epi8(kind.levels, lo);
                hi = _mm512_shuffle_epi8(kind.levels, hi);
            }
            FOR(c, nc) s[c][j] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(start[c], lo, a[c][0]), hi, a[c][1]);
        }
        FOR(c, nc) f[c][e] = fold4(s[c]);
    }
    lanes_are_blocks(d);
    FOR(c, nc) lanes_are_blocks(f[c]);
    FOR(k, FOUR) {
        __m512 dw = four_scales(d[k], kind.skip);
        FOR(c, nc)
            acc[c] =
                _mm512_fmadd_ps(_mm512_mul_ps(dw, _mm512_set1_ps(dx[c][b + k])), _mm512_cvtepi32_ps(f[c][k]), acc[c]);
    }
}

INLINE void tile_32(const hn_mm *m, int64_t r, int64_t c0, int nc, open2_fn *open, int bytes, int offset,
                    scales_fn *scales, const four_kind *four)
{
    int64_t nb = m->n_in / 32;
    tile t;
    tile_begin(&t, m, r);
    const int8_t *x[COLS];
    const float *dx[COLS];
    __m512 acc[COLS];
    FOR(c, nc) {
        x[c] = (const int8_t *)column(m, c0 + c);
        dx[c] = (const float *)(x[c] + m->n_in);
        acc[c] = _mm512_setzero_ps();
    }
    int64_t b = 0;
    for (; four && b + FOUR <= nb; b += FOUR) four_32(&t, b, x, dx, nc, *four, acc);
    for (; b + 2 <= nb; b += 2) pair_32(&t, b, 2, x, dx, nc, open, bytes, offset, scales, acc);
    if (b < nb) pair_32(&t, b, 1, x, dx, nc, open, bytes, offset, scales, acc);
    FOR(c, nc) store_rows(m, r, c0 + c, acc[c]);
}

/* ---- every row range and column count ------------------------------------------------------------------- */

/* With scratch, PANEL from MIN columns on. */
#define BY_COLUMNS(NAME, TILE, PANEL, MIN)                  \
    void NAME(const hn_mm *m)                               \
    {                                                       \
        if (m->panel && m->n_col >= MIN) {                  \
            PANEL(m);                                       \
            return;                                         \
        }                                                   \
        for (int64_t c = 0; c < m->n_col; c += COLS)        \
            for (int64_t r = m->r0; r < m->r1; r += ROWS) { \
                switch (m->n_col - c) {                     \
                case 1: TILE(1); break;                     \
                case 2: TILE(2); break;                     \
                case 3: TILE(3); break;                     \
                default: TILE(4); break;                    \
                }                                           \
            }                                               \
    }

/* Rows of WIDE and more as packed groups below MIN columns; all others as panels (MIN measured: docs/LAB.md). */
#define WITH_GROUPS(TYPE, WIDE, MIN)                                                              \
    static void many_##TYPE(const hn_mm *m)                                                       \
    {                                                                                             \
        (m->n_col < MIN && m->n_in >= WIDE ? hn_avx512_group_##TYPE : hn_avx512_panel_##TYPE)(m); \
    }
#define TILE_Q4_K(NC)                                                                  \
    (BY_ROW(m, NC) ? rows_one_column(m, r, c, four_q4_K, sizeof(hn_q4_K), true, AHEAD) \
                   : tile_min(m, r, c, NC, sizeof(hn_q4_K), false))
#define TILE_Q5_K(NC)                                                                  \
    (BY_ROW(m, NC) ? rows_one_column(m, r, c, four_q5_K, sizeof(hn_q5_K), true, AHEAD) \
                   : tile_min(m, r, c, NC, sizeof(hn_q5_K), true))
#define TILE_Q6_K(NC) \
    (BY_ROW(m, NC) ? rows_one_column(m, r, c, four_q6_K, sizeof(hn_q6_K), false, 0) : tile_q6_K(m, r, c, NC))
#define TILE_IQ4_XS(NC) tile_iq4_XS(m, r, c, NC)
#define TILE_Q4_0(NC) \
    tile_32(m, r, c, NC, open2_q4_0, sizeof(hn_q4_0), 8, rows_f16, &(four_kind){ 2, 8, false, iq4_table() })
#define TILE_Q5_0(NC) tile_32(m, r, c, NC, open2_q5_0, sizeof(hn_q5_0), 16, rows_f16, NULL)
#define TILE_Q8_0(NC) tile_32(m, r, c, NC, open2_q8_0, sizeof(hn_q8_0), 128, rows_f16, NULL)
#define TILE_IQ4_NL(NC) \
    tile_32(m, r, c, NC, open2_iq4_NL, sizeof(hn_q4_0), 128, rows_f16, &(four_kind){ 2, 128, true, iq4_table() })
#define TILE_MXFP4(NC) \
    tile_32(m, r, c, NC, open2_mxfp4, sizeof(hn_mxfp4), 12, rows_e8m0, &(four_kind){ 1, 12, true, e2m1_table() })
enum { LONG_ROW = 1024 };
WITH_GROUPS(q4_K, 0, 16)
WITH_GROUPS(q5_K, 0, 64)
WITH_GROUPS(iq4_XS, 0, 12)
WITH_GROUPS(q4_0, 0, 48)
WITH_GROUPS(q8_0, LONG_ROW, 16)
WITH_GROUPS(iq4_NL, LONG_ROW, 10)
BY_COLUMNS(hn_avx512_rows_q4_K, TILE_Q4_K, many_q4_K, 5)
BY_COLUMNS(hn_avx512_rows_q5_K, TILE_Q5_K, many_q5_K, 5)
BY_COLUMNS(hn_avx512_rows_q6_K, TILE_Q6_K, hn_avx512_panel_q6_K, 8)
BY_COLUMNS(hn_avx512_rows_iq4_XS, TILE_IQ4_XS, many_iq4_XS, 5)
BY_COLUMNS(hn_avx512_rows_q4_0, TILE_Q4_0, many_q4_0, 3)
BY_COLUMNS(hn_avx512_rows_q5_0, TILE_Q5_0, hn_avx512_panel_q5_0, PANEL_COLS)
BY_COLUMNS(hn_avx512_rows_q8_0, TILE_Q8_0, many_q8_0, PANEL_COLS)
BY_COLUMNS(hn_avx512_rows_iq4_NL, TILE_IQ4_NL, many_iq4_NL, PANEL_COLS)
BY_COLUMNS(hn_avx512_rows_mxfp4, TILE_MXFP4, hn_avx512_panel_mxfp4, PANEL_COLS)

/* ---- floats ------------------------------------------------------------------------------------------------ */

/* Elements of a row into lanes; the first n of 16 */
typedef __m512 widen_fn(const char *p, __mmask16 first);
INLINE __m512 widen_f32(const char *p, __mmask16 first) { return _mm512_maskz_loadu_ps(first, p); }
INLINE __m512 widen_f16(const char *p, __mmask16 first) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first, p)); }
INLINE __m512 widen_bf16(const char *p, __mmask16 first)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first, p)), 16));
}

INLINE float tree(__m512 t)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(t), _mm512_extractf32x8_ps(t, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* nr rows from r on times nc columns */
INLINE void tile_float(const hn_mm *m, int64_t r, int64_t c0, int nr, int nc, widen_fn *widen, int elem)
{
    enum { MAX = 8 };
    const char *w[MAX];
    const float *x[COLS];
    __m512 t[MAX][COLS];
    FOR(i, nr) w[i] = (const char *)m->w + (size_t)(r + i) * m->w_stride;
    FOR(c, nc) x[c] = (const float *)column(m, c0 + c);
    FOR(i, nr)
        FOR(c, nc) t[i][c] = _mm512_setzero_ps();
    const char *ahead = w[0] + (size_t)nr * m->w_stride;
    if (r == m->r0)
        for (const char *p = w[0]; p < ahead; p += 64) _mm_prefetch(p, _MM_HINT_T1);
    for (int64_t b = 0; b < m->n_in; b += 256) {
        int64_t end = b + 256 < m->n_in ? b + 256 : m->n_in, k = b;
        __m512 s[MAX][COLS];
        FOR(i, nr)
            FOR(c, nc) s[i][c] = _mm512_setzero_ps();
        for (; k + 32 <= end; k += 32) { /* whole lines of every row */
            FOR(i, nr * elem / 2) _mm_prefetch(ahead + k * elem * nr + 64 * i, _MM_HINT_T1);
            FOR(h, 2) {
                __m512 xv[COLS];
                FOR(c, nc) xv[c] = _mm512_loadu_ps(x[c] + k + 16 * h);
                FOR(i, nr) {
                    __m512 v = widen(w[i] + (k + 16 * h) * elem, 0xFFFF);
                    FOR(c, nc) s[i][c] = _mm512_fmadd_ps(v, xv[c], s[i][c]);
                }
            }
        }
        for (; k < end; k += 16) {
            __mmask16 first = end - k >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << (end - k)) - 1);
            FOR(i, nr) {
                __m512 v = widen(w[i] + k * elem, first);
                FOR(c, nc) s[i][c] = _mm512_mask3_fmadd_ps(v, _mm512_maskz_loadu_ps(first, x[c] + k), s[i][c], first);
            }
        }
        if (b == 0)
            FOR(i, nr)
                FOR(c, nc) t[i][c] = s[i][c];
        else
            FOR(i, nr)
                FOR(c, nc) t[i][c] = _mm512_add_ps(t[i][c], s[i][c]);
    }
    FOR(i, nr)
        FOR(c, nc) m->y[(c0 + c) * m->ldy + r + i] = tree(t[i][c]);
}

#define ROWS_FLOAT(NC)                                                             \
    do {                                                                           \
        for (; r + NR <= m->r1; r += NR) tile_float(m, r, c, NR, NC, widen, elem); \
        for (; r < m->r1; r++) tile_float(m, r, c, 1, NC, widen, elem);            \
    } while (0)

INLINE void rows_float(const hn_mm *m, widen_fn *widen, int elem)
{
    enum { NR = 4 };
    for (int64_t c = 0; c < m->n_col; c += COLS) {
        int64_t r = m->r0;
        switch (m->n_col - c) {
        case 1: ROWS_FLOAT(1); break;
        case 2: ROWS_FLOAT(2); break;
        case 3: ROWS_FLOAT(3); break;
        default: ROWS_FLOAT(4); break;
        }
    }
}
void hn_avx512_rows_f32(const hn_mm *m) { rows_float(m, widen_f32, 4); }
void hn_avx512_rows_f16(const hn_mm *m) { rows_float(m, widen_f16, 2); }
void hn_avx512_rows_bf16(const hn_mm *m) { rows_float(m, widen_bf16, 2); }

#else
typedef int hn_no_avx512_rows; /* an empty file is not C */
#endif
