/* AVX_VNNI matmul for many columns: AVX2's panels of 16 rows, a lane a row, in tiles of 4 columns. vpdpbusd adds four
 * products to a lane of 32 bits, so codes are any bytes without sign: signed ones carry 128 or their type's offset,
 * which enters each sum as its first value, −offset · Σ activations.
 *
 * vpdpbusd, vpdpwssd, vpmulld, shifts and float multiplications share two ports, additions and logic have a third:
 * what counts is how many of the former a block takes beside its vpdpbusd. The scales of two sub-blocks meet their sums
 * in one vpdpwssd, both sums in one lane: the first moves to the upper 16 bits, the second accumulates below it. That
 * needs sums of 16 bits, which activations nearly always allow (fits16); where not, and for IQ4_XS, whose levels
 * are wide, vpmulld per sub-block gives the same integers. */
#if defined(__x86_64__)

#include "kernels/avx_vnni.h"

#include "kernels/avx2_panel.h"

static hn_panel_open open_iq4_XS, popen_iq4_XS, open_iq4_NL, popen_iq4_NL, open_q8_0, popen_q8_0;

/* ---- opening: what AVX2 keeps in 16 bits -------------------------------------------------------------------- */

INLINE void open8_iq4_XS(kpanel *p, const from *f, int64_t b, int64_t nb)
{
    int64_t at = b * (int64_t)sizeof(hn_iq4_XS), pack = b * 2176;
    __m256i sh, sl;
    iq4_scale_words(&sh, &sl, f, at, pack);
    _mm256_store_ps(p->d + f->h, halves(f, at, pack));
    FOR(i, 8) put(p->sc[i][f->h], iq4_scale(sh, sl, i));
    FOR_ROLLED(i, 8) {
        __m256i q[4];
        words(q, f, at + 8 + 16 * i, pack + 128 + 256 * i, 4);
        FOR(k, 4) {
            put(p->q[8 * i + k][f->h], high_levels(low_nibbles(q[k])));
            put(p->q[8 * i + 4 + k][f->h], high_levels(high_nibbles(q[k])));
        }
    }
}
INLINE void open8_iq4_NL(tpanel *p, const from *f, int64_t b, int64_t nb)
{
    __m256i q[4];
    int64_t at = b * (int64_t)sizeof(hn_q4_0);
    words(q, f, at + 2, (int64_t)hn_pair_block(256, b), 4);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(256, b)));
    FOR(i, 4) {
        put(p->q[i][f->h], high_levels(low_nibbles(q[i])));
        put(p->q[4 + i][f->h], high_levels(high_nibbles(q[i])));
    }
}
INLINE void open8_q8_0(tpanel *p, const from *f, int64_t b, int64_t nb) /* packed codes carry 128 */
{
    __m256i q[8];
    int64_t at = b * (int64_t)sizeof(hn_q8_0);
    words(q, f, at + 2, (int64_t)hn_pair_block(512, b), 8);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(512, b)));
    FOR(i, 8) put(p->q[i][f->h], f->group ? q[i] : _mm256_xor_si256(q[i], _mm256_set1_epi8(-128)));
}
OPENER(open_iq4_XS, from_rows, open8_iq4_XS, kpanel, 256)
OPENER(popen_iq4_XS, from_group, open8_iq4_XS, kpanel, 256)
OPENER(open_iq4_NL, from_rows, open8_iq4_NL, tpanel, 32)
OPENER(popen_iq4_NL, from_group, open8_iq4_NL, tpanel, 32)
OPENER(open_q8_0, from_rows, open8_q8_0, tpanel, 32)
OPENER(popen_q8_0, from_group, open8_q8_0, tpanel, 32)

/* ---- K-quants ----------------------------------------------------------------------------------------------- */

/* Sub-blocks; by which power of two codes are too large (0: not); minima; whether sums may fit 16 bits. */
typedef struct kform {
    int n_sub, offset, mins, narrow;
} kform;
#define FORM_MINS ((kform){ 8, 0, 1, 1 })
#define FORM_Q6_K ((kform){ 16, 5, 0, 1 })
#define FORM_IQ4_XS ((kform){ 8, 7, 0, 0 })
/* No sum of a sub-block exceeds these times the bound of its activations. */
enum { MOST_Q4_K = 15, MOST_Q5_K = 31, MOST_Q6_K = 32, MOST_IQ4_XS = 127 };

/* Do the sums of every sub-block fit 16 bits, whatever the weights? */
INLINE bool fits16(const hn_a256 *const x[COLS], kform f, int C, int largest)
{
    int most = 0;
    for (int j = 0; j < C; j++) {
        int v = f.n_sub == 16 ? x[j]->abs16 : x[j]->side32;
        most = v > most ? v : most;
    }
    return most * largest <= 32767;
}

/* t += n groups of four codes from group k0 on */
INLINE void steps(__m256i t[2][COLS], uint8_t (*q)[ROWS][4], const int8_t *const a[COLS], int k0, int n, int C)
{
    FOR(k, n) {
        __m256i w0 = load256(q[k0 + k][0]), w1 = load256(q[k0 + k][8]);
        FOR(j, C) {
            __m256i v = word(a[j] + 4 * (k0 + k));
            t[0][j] = dpbusd(t[0][j], w0, v);
            t[1][j] = dpbusd(t[1][j], w1, v);
        }
    }
}
/* sum += t · scale, the scale twice in every lane */
INLINE void scaled(__m256i sum[2][COLS], __m256i t[2][COLS], __m256i s0, __m256i s1, int C)
{
    s0 = _mm256_srai_epi32(s0, 16), s1 = _mm256_srai_epi32(s1, 16);
    FOR(j, C) {
        sum[0][j] = _mm256_add_epi32(sum[0][j], _mm256_mullo_epi32(t[0][j], s0));
        sum[1][j] = _mm256_add_epi32(sum[1][j], _mm256_mullo_epi32(t[1][j], s1));
    }
}

/* One block of the panel against one block of C columns. */
INLINE void k_block(float acc[COLS][ROWS], kpanel *p, const hn_a256 *const x[COLS], kform f, int C, int largest)
{
    const int k4 = 64 / f.n_sub;
    const bool narrow = f.narrow && fits16(x, f, C, largest);
    const __m256i half = _mm256_set1_epi32(0x8000), zero = _mm256_setzero_si256();
    __m256i sum[2][COLS];
    const int8_t *a[COLS];
    _Alignas(32)
        int32_t first[COLS][16]; /* of each sub-block: minus the codes' offset, the second of two for `narrow` */
    _Alignas(16) int32_t pairs[COLS][4]; /* sums of 32 activations, two int16 at a time */
    FOR(j, C) {
        __m256i b = load256(x[j]->bsum), v[2] = { _mm256_madd_epi16(b, _mm256_set1_epi16(1)) };
        a[j] = x[j]->q;
        sum[0][j] = sum[1][j] = zero;
        if (f.mins)
            _mm_store_si128((__m128i *)pairs[j],
                            _mm_packs_epi32(_mm256_castsi256_si128(v[0]), _mm256_extracti128_si256(v[0], 1)));
        if (f.n_sub == 16) {
            v[0] = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(b));
            v[1] = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(b, 1));
        }
        if (f.offset)
            FOR(i, f.n_sub / 8) {
                v[i] = _mm256_sub_epi32(zero, _mm256_slli_epi32(v[i], f.offset));
                if (narrow) v[i] = _mm256_add_epi32(v[i], _mm256_set1_epi64x(0x8000ll << 32));
                put(first[j] + 8 * i, v[i]);
            }
    }
    if (f.mins) IN_MEMORY(pairs);
    if (f.offset) IN_MEMORY(first);
    _Pragma("GCC unroll 1") for (int s = 0; s < f.n_sub; s += 2)
    {
        __m256i t[2][COLS];
        __m256i s0 = load256(p->sc[s][0]), s1 = load256(p->sc[s][8]);
        FOR(j, C) t[0][j] = t[1][j] = f.offset ? word(&first[j][s]) : zero;
        steps(t, p->q, a, k4 * s, k4, C);
        if (narrow) {
            FOR(j, C) {
                __m256i v = f.offset ? word(&first[j][s + 1]) : half; /* half is in first, too */
                t[0][j] = _mm256_add_epi32(_mm256_slli_epi32(t[0][j], 16), v);
                t[1][j] = _mm256_add_epi32(_mm256_slli_epi32(t[1][j], 16), v);
            }
        } else {
            scaled(sum, t, s0, s1, C);
            FOR(j, C) t[0][j] = t[1][j] = f.offset ? word(&first[j][s + 1]) : zero;
        }
        steps(t, p->q, a, k4 * (s + 1), k4, C);
        __m256i u0 = load256(p->sc[s + 1][0]), u1 = load256(p->sc[s + 1][8]);
        if (narrow) {
            u0 = _mm256_blend_epi16(u0, s0, 0xAA), u1 = _mm256_blend_epi16(u1, s1, 0xAA);
            FOR(j, C) {
                sum[0][j] = dpwssd(sum[0][j], _mm256_xor_si256(t[0][j], half), u0);
                sum[1][j] = dpwssd(sum[1][j], _mm256_xor_si256(t[1][j], half), u1);
            }
        } else {
            scaled(sum, t, u0, u1, C);
        }
    }
    FOR(j, C) {
        __m256 da = _mm256_set1_ps(x[j]->d);
        FOR(h, 2) {
            __m256 y = _mm256_load_ps(acc[j] + 8 * h);
            y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(p->d + 8 * h), da), _mm256_cvtepi32_ps(sum[h][j]), y);
            if (f.mins) {
                __m256i side = zero;
                FOR(i, 4) side = dpwssd(side, load256(p->pair[i][8 * h]), word(&pairs[j][i]));
                y = _mm256_fnmadd_ps(_mm256_mul_ps(_mm256_load_ps(p->dmin + 8 * h), da), _mm256_cvtepi32_ps(side), y);
            }
            _mm256_store_ps(acc[j] + 8 * h, y);
        }
    }
}

#define BLOCK_MINS(C) k_block(acc, p, x, FORM_MINS, C, type)
#define BLOCK_Q6_K(C) k_block(acc, p, x, FORM_Q6_K, C, type)
#define BLOCK_IQ4_XS(C) k_block(acc, p, x, FORM_IQ4_XS, C, type)
#define PANEL(NAME, OPEN, PACKED, PANEL_BLOCK, ELEMS, TILE, TYPE)                                                  \
    void HN_VNNI(NAME)(const hn_mm *m)                                                                             \
    {                                                                                                              \
        run_panels(m, OPEN, (size_t)(m->n_in / ELEMS) * sizeof(PANEL_BLOCK), PACKED, 2, TILE##_4, TILE##_2, TYPE); \
    }
#define PANEL_K(TYPE, OPEN, POPEN, TILE, MOST)                \
    PANEL(panel_##TYPE, OPEN, false, kpanel, 256, TILE, MOST) \
    PANEL(ppanel_##TYPE, POPEN, true, kpanel, 256, TILE, MOST)
K_TILE(tile_mins_4, kpanel, BLOCK_MINS, 4)
K_TILE(tile_mins_2, kpanel, BLOCK_MINS, 2)
K_TILE(tile_q6_K_4, kpanel, BLOCK_Q6_K, 4)
K_TILE(tile_q6_K_2, kpanel, BLOCK_Q6_K, 2)
K_TILE(tile_iq4_XS_4, kpanel, BLOCK_IQ4_XS, 4)
K_TILE(tile_iq4_XS_2, kpanel, BLOCK_IQ4_XS, 2)
PANEL_K(q4_K, hn_avx2_open_q4_K, hn_avx2_popen_q4_K, tile_mins, MOST_Q4_K)
PANEL_K(q5_K, hn_avx2_open_q5_K, hn_avx2_popen_q5_K, tile_mins, MOST_Q5_K)
PANEL_K(q6_K, hn_avx2_open_q6_K, hn_avx2_popen_q6_K, tile_q6_K, MOST_Q6_K)
PANEL_K(iq4_XS, open_iq4_XS, popen_iq4_XS, tile_iq4_XS, MOST_IQ4_XS)

/* ---- 32-blocks ------------------------------------------------------------------------------------------------ */

/* Codes that carry 2^shift more than their value. */
INLINE void t_tile(const hn_mm *m, void *panel, int64_t r, int64_t c, int shift, int C, asking *ahead)
{
    tpanel *p = panel;
    _Alignas(32) float acc[COLS][ROWS] = { { 0 } };
    int64_t nb = m->n_in / 32;
    const int8_t *a[COLS];
    const float *d[COLS];
    for (int j = 0; j < C; j++) a[j] = column(m, c + j), d[j] = (const float *)(a[j] + m->n_in);
    for (int64_t b = 0; b < nb; b += 256 / 32) ask_behind(ahead); /* in the loop it costs registers */
    for (int64_t b = 0; b < nb; b++, p++) {
        __m256i t[2][COLS];
        FOR(j, C)
            t[0][j] = t[1][j] = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(word(d[j] + nb + b), shift));
        steps(t, p->q, a, 0, 8, C);
        FOR(j, C) {
            __m256 da = _mm256_set1_ps(d[j][b]);
            FOR(h, 2) {
                __m256 dw = _mm256_mul_ps(_mm256_load_ps(p->d + 8 * h), da), y = _mm256_load_ps(acc[j] + 8 * h);
                _mm256_store_ps(acc[j] + 8 * h, _mm256_fmadd_ps(dw, _mm256_cvtepi32_ps(t[h][j]), y));
            }
            a[j] += 32;
        }
    }
    store(m, r, c, acc, C);
}
static void tile_t_4(const hn_mm *m, void *panel, int64_t r, int64_t c, int type, asking *ahead)
{
    t_tile(m, panel, r, c, type, 4, ahead);
}
static void tile_t_2(const hn_mm *m, void *panel, int64_t r, int64_t c, int type, asking *ahead)
{
    t_tile(m, panel, r, c, type, 2, ahead);
}

#define PANEL_T(TYPE, OPEN, POPEN, SHIFT)                       \
    PANEL(panel_##TYPE, OPEN, false, tpanel, 32, tile_t, SHIFT) \
    PANEL(ppanel_##TYPE, POPEN, true, tpanel, 32, tile_t, SHIFT)
PANEL_T(q4_0, hn_avx2_open_q4_0, hn_avx2_popen_q4_0, 3)
PANEL_T(q5_0, hn_avx2_open_q5_0, hn_avx2_popen_q5_0, 4)
PANEL_T(q8_0, open_q8_0, popen_q8_0, 7)
PANEL_T(iq4_NL, open_iq4_NL, popen_iq4_NL, 7)
PANEL(panel_mxfp4, hn_avx2_open_mxfp4, false, tpanel, 32, tile_t, 4)

#else
typedef int hn_no_avx_vnni_panel; /* an empty file is not C */
#endif
