/* AVX-512 matmul for a few columns of plain rows, too many for the rows as they stand and too few to open a panel:
 * sixteen rows are turned into a packed group (quant/pack.h), which stays in the second cache, and the packed products
 * meet it. Turning moves words and opens nothing, so it costs as much as one to two columns; a panel, four. */
#if defined(__x86_64__)

#include "kernels/avx512_packed.h"
#include "kernels/avx512_turn.h"

_Static_assert((int)HN_TURNED_ROWS == (int)HN_PACK_ROWS, "a group is what is turned at once");
enum { MOST_OF_32 = 512 + 32 }; /* bytes that a block of 32 of sixteen rows takes, with its d: Q8_0 */
_Static_assert(MOST_OF_32 / 32 < HN_PANEL_ELEM, "HN_PANEL_BYTES");

V16_OP void put_words(char *dst, const __m512i *v, int n)
{
    _Pragma("GCC unroll 32") for (int i = 0; i < n; i++) _mm512_store_si512(dst + 64 * i, v[i]);
}
/* The lower or the upper halves of words, as the sixteen rows' d. */
V16_OP void put_low(char *dst, __m512i v) { _mm256_store_si256((__m256i *)dst, _mm512_cvtepi32_epi16(v)); }
V16_OP void put_high(char *dst, __m512i v) { put_low(dst, _mm512_srli_epi32(v, 16)); }
V16_OP void put_halves(char *dst, __m256i v) { _mm256_store_si256((__m256i *)dst, v); }

/* ---- block b of the rows to a group of nb blocks ------------------------------------------------------ */

V16_OP void turn_q4_K(char *g, const rows16 *w, int64_t b)
{
    __m512i s[4], q[16];
    int64_t at = b * (int64_t)sizeof(hn_q4_K);
    g += b * 2304;
    words4(s, w, at);
    put_low(g, s[0]), put_high(g + 32, s[0]);
    put_words(g + 64, s + 1, 3);
    for (int h = 0; h < 2; h++) {
        words16(q, w, at + 16 + 64 * h);
        put_words(g + 256 + 1024 * h, q, 16);
    }
}

V16_OP void turn_q5_K(char *g, const rows16 *w, int64_t b)
{
    __m512i s[4], h[8], q[16];
    int64_t at = b * (int64_t)sizeof(hn_q5_K);
    g += b * 2816;
    words4(s, w, at);
    words4(h, w, at + 16);
    words4(h + 4, w, at + 32);
    put_low(g, s[0]), put_high(g + 32, s[0]);
    put_words(g + 64, s + 1, 3);
    put_words(g + 256, h, 8);
    for (int i = 0; i < 2; i++) {
        words16(q, w, at + 48 + 64 * i);
        put_words(g + 768 + 1024 * i, q, 16);
    }
}

V16_OP void turn_iq4_XS(char *g, const rows16 *w, int64_t b)
{
    __m512i s[4], q[16];
    int64_t at = b * (int64_t)sizeof(hn_iq4_XS);
    g += b * 2176;
    words4(s, w, at); /* and the first codes */
    put_low(g, s[0]), put_high(g + 32, s[0]);
    put_words(g + 64, s + 1, 1);
    for (int i = 0; i < 2; i++) {
        words16(q, w, at + 8 + 64 * i);
        put_words(g + 128 + 1024 * i, q, 16);
    }
}

V16_OP void turn_q4_0(char *g, const rows16 *w, int64_t b)
{
    __m512i q[4];
    int64_t at = b * (int64_t)sizeof(hn_q4_0);
    words4(q, w, at + 2);
    put_words(g + hn_pair_block(256, b), q, 4);
    put_halves(g + hn_pair_d(256, b), halves1(w, at));
}

V16_OP void turn_iq4_NL(char *g, const rows16 *w, int64_t b) { turn_q4_0(g, w, b); } /* the same block */

V16_OP void turn_q8_0(char *g, const rows16 *w, int64_t b)
{
    __m512i q[8];
    int64_t at = b * (int64_t)sizeof(hn_q8_0);
    words4(q, w, at + 2);
    words4(q + 4, w, at + 18);
    for (int i = 0; i < 8; i++) q[i] = _mm512_xor_si512(q[i], _mm512_set1_epi8((char)0x80));
    put_words(g + hn_pair_block(512, b), q, 8);
    put_halves(g + hn_pair_d(512, b), halves1(w, at));
}

/* ---- every row ---------------------------------------------------------------------------------------- */

/* The same block of the next sixteen rows, asked for while this one is turned. */
V16_OP void fetch_block(const rows16 *next, int64_t at, int64_t bytes)
{
    for (int i = 0; i < HN_TURNED_ROWS; i++)
        for (int64_t line = 0; line < bytes; line += 64) _mm_prefetch(next->row[i] + at + line, _MM_HINT_T1);
}

#define GROUPS(TYPE, ELEMS, BYTES)                                             \
    void hn_avx512_group_##TYPE(const hn_mm *m)                                \
    {                                                                          \
        hn_mm part = *m; /* one group */                                       \
        part.w = m->panel, part.w_stride = 0, part.panel = NULL, part.r0 = 0;  \
        for (int64_t r = m->r0; r < m->r1; r += HN_TURNED_ROWS) {              \
            rows16 w = rows_at(m, r), next = rows_at(m, r + HN_TURNED_ROWS);   \
            for (int64_t b = 0; b < m->n_in / ELEMS; b++) {                    \
                fetch_block(&next, b *BYTES, BYTES);                           \
                turn_##TYPE(m->panel, &w, b);                                  \
            }                                                                  \
            part.y = m->y + r;                                                 \
            part.r1 = m->r1 - r < HN_TURNED_ROWS ? m->r1 - r : HN_TURNED_ROWS; \
            hn_avx512_packed_##TYPE(&part);                                    \
        }                                                                      \
    }
GROUPS(q4_K, 256, (int64_t)sizeof(hn_q4_K))
GROUPS(q5_K, 256, (int64_t)sizeof(hn_q5_K))
GROUPS(iq4_XS, 256, (int64_t)sizeof(hn_iq4_XS))
GROUPS(q4_0, 32, (int64_t)sizeof(hn_q4_0))
GROUPS(iq4_NL, 32, (int64_t)sizeof(hn_q4_0))
GROUPS(q8_0, 32, (int64_t)sizeof(hn_q8_0))

#else
typedef int hn_no_avx512_group; /* an empty file is not C */
#endif
