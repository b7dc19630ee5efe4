/* What the panels of AVX2 and AVX_VNNI share: sixteen weight rows with a lane a row, how eight rows are read word by
 * word, and the loop over panels and columns. Knows no product. */
#ifndef HN_AVX2_PANEL_H
#define HN_AVX2_PANEL_H

#include "kernels/avx2.h"

enum { ROWS = HN_PACK_ROWS, COLS = 4 };
_Static_assert((int)HN_PANEL_ROWS == 2 * (int)ROWS, "two panels");

/* One block of 256 of 16 rows. */
typedef struct kpanel {
    uint8_t q[64][ROWS][4];
    int16_t sc[16][ROWS][2];  /* the scale of each sub-block, twice */
    int16_t pair[8][ROWS][2]; /* what meets the sums of activations: minima of 32 (4 pairs), scales of 16 (8) */
    float d[ROWS], dmin[ROWS];
} kpanel;
/* One block of 32 of 16 rows. */
typedef struct tpanel {
    uint8_t q[8][ROWS][4];
    float d[ROWS];
} tpanel;
_Static_assert(2 * sizeof(kpanel) <= HN_PANEL_ELEM * 256 && 2 * sizeof(tpanel) <= HN_PANEL_ELEM * 32, "HN_PANEL_BYTES");

/* Opens rows r … r + 15 of m, beyond r1 the last again, into m->n_in / 256 kpanels or m->n_in / 32 tpanels. */
typedef void hn_panel_open(void *panel, const hn_mm *m, int64_t r);
/* Of plain rows, of packed groups. MXFP4's codes are twice its levels and 16: 4 … 28. */
hn_panel_open hn_avx2_open_q4_K, hn_avx2_open_q5_K, hn_avx2_open_q6_K;
hn_panel_open hn_avx2_open_q4_0, hn_avx2_open_q5_0, hn_avx2_open_mxfp4;
hn_panel_open hn_avx2_popen_q4_K, hn_avx2_popen_q5_K, hn_avx2_popen_q6_K;
hn_panel_open hn_avx2_popen_q4_0, hn_avx2_popen_q5_0;

/* ---- eight rows, word by word: lane r is row r -------------------------------------------------------- */

/* Rows h … h+7 of a panel: of a matrix, or of a packed group. */
typedef struct from {
    const char *row[8], *group;
    int h;
} from;

INLINE from from_rows(const hn_mm *m, int64_t r, int h) /* beyond r1 the last row again */
{
    from f = { .h = h };
    for (int i = 0; i < 8; i++)
        f.row[i] = (const char *)m->w + (size_t)(r + h + i < m->r1 ? r + h + i : m->r1 - 1) * m->w_stride;
    return f;
}
INLINE from from_group(const hn_mm *m, int64_t r, int h)
{
    return (from){ .h = h, .group = (const char *)m->w + (size_t)(r / ROWS) * m->w_stride };
}

/* n words (a multiple of 4) at byte `at` of the rows, or from byte `pack` of the group on, `step` bytes apart. */
INLINE void words_apart(__m256i *v, const from *f, int64_t at, int64_t pack, int step, int n)
{
    if (f->group) {
        FOR(i, n) v[i] = load256(f->group + pack + step * i + 4 * f->h);
        return;
    }
    FOR(j, n / 4) {
        __m256i t[4];
        FOR(i, 4) /* rows i, 4+i */
            t[i] = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(f->row[i] + at + 16 * j))),
                _mm_loadu_si128((const __m128i *)(f->row[4 + i] + at + 16 * j)), 1);
        __m256i a = _mm256_unpacklo_epi32(t[0], t[1]), b = _mm256_unpackhi_epi32(t[0], t[1]);
        __m256i c = _mm256_unpacklo_epi32(t[2], t[3]), d = _mm256_unpackhi_epi32(t[2], t[3]);
        v[4 * j] = _mm256_unpacklo_epi64(a, c);
        v[4 * j + 1] = _mm256_unpackhi_epi64(a, c);
        v[4 * j + 2] = _mm256_unpacklo_epi64(b, d);
        v[4 * j + 3] = _mm256_unpackhi_epi64(b, d);
    }
}
INLINE void words(__m256i *v, const from *f, int64_t at, int64_t pack, int n) { words_apart(v, f, at, pack, 64, n); }
INLINE __m256 halves(const from *f, int64_t at, int64_t pack)
{
    if (f->group) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(f->group + pack + 2 * f->h)));
    int16_t v[8];
    for (int i = 0; i < 8; i++) memcpy(&v[i], f->row[i] + at, 2);
    return _mm256_cvtph_ps(_mm_setr_epi16(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]));
}
/* The words from which iq4_scale takes its bits: of the block at byte `at` of the rows, or `pack` of the group. */
INLINE void iq4_scale_words(__m256i *sh, __m256i *sl, const from *f, int64_t at, int64_t pack)
{
    __m256i s[4];
    if (f->group) {
        *sh = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(f->group + pack + 32 + 2 * f->h)));
        *sl = load256(f->group + pack + 64 + 4 * f->h);
    } else {
        words(s, f, at, 0, 4); /* and the first codes */
        *sh = _mm256_srli_epi32(s[0], 16);
        *sl = s[1];
    }
}
INLINE void put(void *dst, __m256i v) { _mm256_store_si256(dst, v); }
/* A word of four signed codes as two of two, 16 bits each. */
INLINE __m256i wide_low(__m256i v) { return _mm256_srai_epi16(_mm256_shuffle_epi8(v, byte_index(-1, 0, -1, 1)), 8); }
INLINE __m256i wide_high(__m256i v) { return _mm256_srai_epi16(_mm256_shuffle_epi8(v, byte_index(-1, 2, -1, 3)), 8); }

/* The tile at (r, c) to y: rows below r1, columns below n_col. */
INLINE void store(const hn_mm *m, int64_t r, int64_t c, float acc[COLS][ROWS], int C)
{
    int64_t n = m->r1 - r < ROWS ? m->r1 - r : ROWS;
    for (int j = 0; j < C && c + j < m->n_col; j++)
        memcpy(m->y + (c + j) * m->ldy + r, acc[j], (size_t)n * sizeof(float));
}

INLINE const void *column(const hn_mm *m, int64_t c)
{
    return (const char *)m->x + (size_t)(c < m->n_col ? c : m->n_col - 1) * m->x_stride; /* beyond: the last again */
}

/* What is asked for while a panel is computed: the rows behind it, which are read when it is done, so many bytes with
 * each 256 elements of each tile. One ascending stream is enough: panels compute for longer than it takes to come. */
typedef struct asking {
    const char *at, *end;
    int64_t bytes;
} asking;
INLINE void ask_behind(asking *a)
{
    if (a->at >= a->end) return;
    for (const char *to = a->at + a->bytes; a->at < to; a->at += 64) ask(a->at);
}

/* A panel against the columns c … c + 3, or c, c + 1; `type` says what a tile of several types must know. */
typedef void panel_tile(const hn_mm *m, void *panel, int64_t r, int64_t c, int type, asking *a);

/* A panel_tile of C columns of K-quants: BLOCK(C) takes acc, p, the blocks x of the columns, and `type`. */
#define K_TILE(NAME, PANEL_BLOCK, BLOCK, C)                                                      \
    static void NAME(const hn_mm *m, void *panel, int64_t r, int64_t c, int type, asking *ahead) \
    {                                                                                            \
        PANEL_BLOCK *p = panel;                                                                  \
        _Alignas(32) float acc[COLS][ROWS] = { { 0 } };                                          \
        const hn_a256 *x[COLS];                                                                  \
        for (int j = 0; j < C; j++) x[j] = column(m, c + j);                                     \
        for (int64_t b = 0; b < m->n_in / 256; b++, p++) {                                       \
            ask_behind(ahead);                                                                   \
            BLOCK(C);                                                                            \
            for (int j = 0; j < C; j++) x[j]++;                                                  \
        }                                                                                        \
        store(m, r, c, acc, C);                                                                  \
    }

/* n panels of 16 rows and bytes each, opened one after the other, then all columns, four or fewer at a time. packed:
 * rows lie in groups. What is behind is asked for by the last tiles: earlier, many columns drive it out again. */
static __attribute__((noinline)) void run_panels(const hn_mm *m, hn_panel_open *open, size_t bytes, bool packed,
                                                 int n_panel, panel_tile *four, panel_tile *two, int type)
{
    enum { LAST = 32 }; /* columns */
    const int64_t last = m->n_col < LAST ? m->n_col : LAST, per_row = (int64_t)m->w_stride / (packed ? ROWS : 1);
    const int64_t n_ask = last ? (last + COLS - 1) / COLS * ((m->n_in + 255) / 256) : 1; /* of a panel */
    const int64_t r_end = packed ? (m->r1 + ROWS - 1) / ROWS * ROWS : m->r1;
    if (m->n_col <= LAST / 2) n_panel = 1; /* and the second cache holds it */
    for (int64_t r = m->r0; r < m->r1; r += n_panel * ROWS) {
        int n = m->r1 - r > ROWS ? n_panel : 1;
        const int64_t next = r + n * ROWS, left = r_end > next ? r_end - next : 0,
                      rows = left < n * ROWS ? left : n * ROWS;
        asking none = { NULL, NULL, 0 }, a = none;
        if (rows) {
            a.at = (const char *)m->w + next * per_row;
            a.end = a.at + rows * per_row;
            a.bytes = (ROWS * per_row / 64 + n_ask) / n_ask * 64;
        }
        for (int i = 0; i < n; i++) open((char *)m->panel + (size_t)i * bytes, m, r + ROWS * i);
        for (int64_t c = 0; c < m->n_col; c += COLS)
            for (int i = 0; i < n; i++)
                (m->n_col - c > 2 ? four : two)(m, (char *)m->panel + (size_t)i * bytes, r + ROWS * i, c, type,
                                                m->n_col - c > LAST ? &none : &a);
    }
}

/* Known of a source, in words that a compiler understands. */
INLINE void seen_from_rows(const from *f)
{
    if (f->group) __builtin_unreachable();
}
INLINE void seen_from_group(const from *f)
{
    if (!f->group) __builtin_unreachable();
}

/* A hn_panel_open: OPEN of one block of eight rows from SOURCE; both halves of a block, which share its lines, before
 * the next one. */
#define OPENER(NAME, SOURCE, OPEN, PANEL_BLOCK, ELEMS)             \
    void NAME(void *panel, const hn_mm *m, int64_t r)              \
    {                                                              \
        PANEL_BLOCK *p = panel;                                    \
        const from both[2] = { SOURCE(m, r, 0), SOURCE(m, r, 8) }; \
        int64_t nb = m->n_in / ELEMS;                              \
        for (int64_t b = 0; b < nb; b++)                           \
            FOR_ROLLED(h, 2) {                                     \
                from f = both[h];                                  \
                seen_##SOURCE(&f);                                 \
                OPEN(p + b, &f, b, nb);                            \
            }                                                      \
    }

#endif
