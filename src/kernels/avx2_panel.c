/* AVX2 matmul for many columns. 16 weight rows, or 32 where columns are many, are opened once into panels in
 * which a lane is a row: codes as [k/4][16 rows][4], scales and minima as vectors over
 * rows. The register tile is 16 rows × 4 columns; no sum ever runs across lanes.
 *
 * vpmaddubsw gives two products a 16-bit lane. Codes of 4 bits leave room for eight of
 * those (8·15·127·2 = 30,480), of 5 bits for four (31,496), of 6 bits for two (32,004)
 * before vpmaddwd widens them, with their scale in the same instruction. Signed bytes
 * leave room for one, which costs more than codes of 16 bits and vpmaddwd alone: those
 * are opened to 16 bits, IQ4_XS with its scale (|level|·32 ≤ 4,064), and the activations
 * are widened for each tile. */
#if defined(__x86_64__)

#include "kernels/avx2_panel.h"

/* One block of 256, of 32 of 16 rows, of signed codes; one panel only. */
typedef struct kwide {
    int16_t q[128][ROWS][2];
    float d[ROWS];
} kwide;
typedef struct twide {
    int16_t q[16][ROWS][2];
    float d[ROWS];
} twide;
_Static_assert(sizeof(kwide) <= HN_PANEL_ELEM * 256 && sizeof(twide) <= HN_PANEL_ELEM * 32, "HN_PANEL_BYTES");

static hn_panel_open wide_iq4_XS, pwide_iq4_XS, wide_iq4_NL, pwide_iq4_NL, wide_q8_0, pwide_q8_0;

/* ---- K-quants: opening eight rows of block b of nb ------------------------------------------------------- */

/* d, dmin and scales of Q4_K and Q5_K */
INLINE void open_header(kpanel *p, const from *f, int64_t at, int64_t pack)
{
    __m256i s[4], v[4];
    __m256 d, dmin;
    if (f->group) {
        words(s + 1, f, 0, pack + 64, 3);
        d = halves(f, 0, pack);
        dmin = halves(f, 0, pack + 32);
    } else {
        words(s, f, at, 0, 4);
        __m256i dd = _mm256_packus_epi32(and32(s[0], 0xFFFF), _mm256_srli_epi32(s[0], 16));
        dd = _mm256_permute4x64_epi64(dd, 0xD8);
        d = _mm256_cvtph_ps(_mm256_castsi256_si128(dd));
        dmin = _mm256_cvtph_ps(_mm256_extracti128_si256(dd, 1));
    }
    _mm256_store_ps(p->d + f->h, d);
    _mm256_store_ps(p->dmin + f->h, dmin);
    k_scale_words(v, s + 1);
    FOR(i, 4) {
        put(p->sc[i][f->h], _mm256_shuffle_epi8(v[0], byte_index(i, -1, i, -1)));
        put(p->sc[4 + i][f->h], _mm256_shuffle_epi8(v[1], byte_index(i, -1, i, -1)));
        put(p->pair[i][f->h], _mm256_shuffle_epi8(v[2 + i / 2], byte_index(2 * (i % 2), -1, 2 * (i % 2) + 1, -1)));
    }
}

INLINE void open_q4_K(kpanel *p, const from *f, int64_t b, int64_t nb)
{
    int64_t at = b * (int64_t)sizeof(hn_q4_K), pack = b * 2304;
    open_header(p, f, at, pack);
    FOR_ROLLED(g, 4) {
        __m256i q[8];
        words(q, f, at + 16 + 32 * g, pack + 256 + 512 * g, 8);
        FOR(i, 8) {
            put(p->q[16 * g + i][f->h], low_nibbles(q[i]));
            put(p->q[16 * g + 8 + i][f->h], high_nibbles(q[i]));
        }
    }
}
INLINE void open_q5_K(kpanel *p, const from *f, int64_t b, int64_t nb)
{
    int64_t at = b * (int64_t)sizeof(hn_q5_K), pack = b * 2816;
    __m256i hi[8];
    open_header(p, f, at, pack);
    words(hi, f, at + 16, pack + 256, 8);
    FOR(g, 4) { /* bit 2g of hi: the lower codes of group g, 2g + 1: the upper */
        __m256i q[8];
        words(q, f, at + 48 + 32 * g, pack + 768 + 512 * g, 8);
        FOR(i, 8) {
            put(p->q[16 * g + i][f->h], or_and(low_nibbles(q[i]), shift16(hi[i], 4 - 2 * g), 0x10101010));
            put(p->q[16 * g + 8 + i][f->h], or_and(high_nibbles(q[i]), shift16(hi[i], 3 - 2 * g), 0x10101010));
        }
    }
}
INLINE void open_q6_K(kpanel *p, const from *f, int64_t b, int64_t nb)
{
    int64_t at = b * (int64_t)sizeof(hn_q6_K), pack = (int64_t)hn_pair_block(3328, b);
    __m256i s[4];
    _mm256_store_ps(p->d + f->h, halves(f, at + 208, (int64_t)hn_pair_d(3328, b)));
    if (f->group)
        FOR(i, 4) s[i] = load256(f->group + pack + hn_pack_q6_s(i) + 4 * f->h);
    else words(s, f, at + 192, 0, 4);
    FOR(i, 4) {
        FOR(k, 4)
            put(p->sc[4 * i + k][f->h], _mm256_srai_epi16(_mm256_shuffle_epi8(s[i], byte_index(-1, k, -1, k)), 8));
        FOR(k, 2)
            put(p->pair[2 * i + k][f->h],
                _mm256_srai_epi16(_mm256_shuffle_epi8(s[i], byte_index(-1, 2 * k, -1, 2 * k + 1)), 8));
    }
    FOR_ROLLED(n, 2)
        FOR(j, 2) {
            __m256i l0[4], l1[4], h[4];
            words_apart(l0, f, at + 64 * n + 16 * j, pack + (int64_t)hn_pack_q6_l(16 * n + 4 * j), 192, 4);
            words_apart(l1, f, at + 64 * n + 32 + 16 * j, pack + (int64_t)hn_pack_q6_l(16 * n + 8 + 4 * j), 192, 4);
            words_apart(h, f, at + 128 + 32 * n + 16 * j, pack + (int64_t)hn_pack_q6_h(8 * n + 4 * j), 192, 4);
            FOR(i, 4) {
                uint8_t(*q)[ROWS][4] = p->q + 32 * n + 4 * j + i;
                put(q[0][f->h], or_and(low_nibbles(l0[i]), _mm256_slli_epi16(h[i], 4), 0x30303030));
                put(q[8][f->h], or_and(low_nibbles(l1[i]), _mm256_slli_epi16(h[i], 2), 0x30303030));
                put(q[16][f->h], or_and(high_nibbles(l0[i]), h[i], 0x30303030));
                put(q[24][f->h], or_and(high_nibbles(l1[i]), _mm256_srli_epi16(h[i], 2), 0x30303030));
            }
        }
}
INLINE void open_iq4_XS(kwide *p, const from *f, int64_t b, int64_t nb)
{
    int64_t at = b * (int64_t)sizeof(hn_iq4_XS), pack = b * 2176;
    __m256i sh, sl;
    iq4_scale_words(&sh, &sl, f, at, pack);
    _mm256_store_ps(p->d + f->h, halves(f, at, pack));
    __m256i scale[8];
    FOR(i, 8) scale[i] = iq4_scale(sh, sl, i);
    FOR_ROLLED(i, 8) {
        __m256i q[4], sc = scale[i];
        words(q, f, at + 8 + 16 * i, pack + 128 + 256 * i, 4);
        FOR(k, 4) {
            __m256i lo = iq4_levels(low_nibbles(q[k])), hi = iq4_levels(high_nibbles(q[k]));
            int16_t(*w)[ROWS][2] = p->q + 16 * i + 2 * k;
            put(w[0][f->h], _mm256_mullo_epi16(wide_low(lo), sc));
            put(w[1][f->h], _mm256_mullo_epi16(wide_high(lo), sc));
            put(w[8][f->h], _mm256_mullo_epi16(wide_low(hi), sc));
            put(w[9][f->h], _mm256_mullo_epi16(wide_high(hi), sc));
        }
    }
}

/* ---- K-quants: the tile ------------------------------------------------------------------------------------- */

/* Sub-blocks; how many vpmaddubsw results fit 16 bits; what `pair` holds. */
typedef struct kform {
    int n_sub, fit, mins, offset;
} kform;
#define FORM_q4_K ((kform){ 8, 8, 1, 0 })
#define FORM_q5_K ((kform){ 8, 4, 1, 0 })
#define FORM_q6_K ((kform){ 16, 2, 0, 1 })

/* sum += Σ w·a·sc over the codes k0 … k0 + fit of 16 rows, C columns */
INLINE void k_steps(__m256i sum[2][COLS], const kpanel *p, const int8_t *const a[COLS], int k0, int s, int fit, int C)
{
    __m256i t[2][COLS];
    FOR(k, fit) {
        __m256i w0 = load256(p->q[k0 + k][0]), w1 = load256(p->q[k0 + k][8]);
        FOR(j, C) {
            __m256i v = word(a[j] + 4 * (k0 + k));
            __m256i t0 = _mm256_maddubs_epi16(w0, v);
            __m256i t1 = _mm256_maddubs_epi16(w1, v);
            t[0][j] = k ? add16(t[0][j], t0) : t0;
            t[1][j] = k ? add16(t[1][j], t1) : t1;
        }
    }
    __m256i s0 = load256(p->sc[s][0]), s1 = load256(p->sc[s][8]);
    FOR(j, C) {
        sum[0][j] = add_madd(sum[0][j], t[0][j], s0);
        sum[1][j] = add_madd(sum[1][j], t[1][j], s1);
    }
}

/* The same of a form of which two results fit: so short a sum is met by its scale before the next one begins, and the
 * registers hold `sum`. */
INLINE void k_steps_of_two(__m256i sum[2][COLS], const kpanel *p, const int8_t *const a[COLS], int k0, int s, int C)
{
    __m256i w[2][2];
    FOR(k, 2)
        FOR(h, 2) w[k][h] = load256(p->q[k0 + k][8 * h]);
    FOR(j, C) {
        __m256i v0 = word(a[j] + 4 * k0), v1 = word(a[j] + 4 * k0 + 4);
        FOR(h, 2) {
            __m256i t = add16(_mm256_maddubs_epi16(w[0][h], v0), _mm256_maddubs_epi16(w[1][h], v1));
            sum[h][j] = add_madd(sum[h][j], t, load256(p->sc[s][8 * h]));
        }
    }
}

/* One block of the panel against one block of C columns. */
INLINE void k_block(float acc[COLS][ROWS], const kpanel *p, const hn_a256 *const x[COLS], kform f, int C)
{
    const int k4 = 64 / f.n_sub, n_run = k4 / f.fit, n_pair = f.mins ? 4 : f.offset ? 8 : 0;
    __m256i sum[2][COLS];
    const int8_t *a[COLS];
    FOR(j, C) sum[0][j] = sum[1][j] = _mm256_setzero_si256(), a[j] = x[j]->q;
    for (int s = 0; s < f.n_sub; s++)
        FOR(k, n_run) {
            if (f.fit == 2) k_steps_of_two(sum, p, a, k4 * s + f.fit * k, s, C);
            else k_steps(sum, p, a, k4 * s + f.fit * k, s, f.fit, C);
        }
    int32_t pairs[COLS][4]; /* sums of 32 activations, two int16 at a time */
    if (f.mins) {
        FOR(j, C) {
            __m256i v = _mm256_madd_epi16(load256(x[j]->bsum), _mm256_set1_epi16(1));
            _mm_storeu_si128((__m128i *)pairs[j],
                             _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
        }
        IN_MEMORY(pairs);
    }
    FOR(j, C) {
        __m256 da = _mm256_set1_ps(x[j]->d);
        FOR(h, 2) {
            __m256i side = _mm256_setzero_si256(), isum = sum[h][j];
            FOR(i, n_pair)
                side =
                    add_madd(side, load256(p->pair[i][8 * h]), f.mins ? word(&pairs[j][i]) : word(x[j]->bsum + 2 * i));
            if (f.offset) isum = _mm256_sub_epi32(isum, _mm256_slli_epi32(side, 5));
            __m256 y = _mm256_load_ps(acc[j] + 8 * h);
            y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(p->d + 8 * h), da), _mm256_cvtepi32_ps(isum), y);
            if (f.mins)
                y = _mm256_fnmadd_ps(_mm256_mul_ps(_mm256_load_ps(p->dmin + 8 * h), da), _mm256_cvtepi32_ps(side), y);
            _mm256_store_ps(acc[j] + 8 * h, y);
        }
    }
}

/* The sums of 32 signed codes of 16 bits of 16 rows, C columns. */
INLINE void wide_steps(__m256i sum[2][COLS], int16_t (*w)[ROWS][2], const int8_t *const a[COLS], bool first, int C)
{
    _Alignas(32) int16_t x[COLS][32];
    FOR(j, C)
        FOR(i, 2) put(x[j] + 16 * i, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(a[j] + 16 * i))));
    IN_MEMORY(x);
    FOR(k, 16) {
        __m256i w0 = load256(w[k][0]), w1 = load256(w[k][8]);
        FOR(j, C) {
            __m256i v = word(x[j] + 2 * k);
            sum[0][j] = first && !k ? _mm256_madd_epi16(w0, v) : add_madd(sum[0][j], w0, v);
            sum[1][j] = first && !k ? _mm256_madd_epi16(w1, v) : add_madd(sum[1][j], w1, v);
        }
    }
}

INLINE void kwide_block(float acc[COLS][ROWS], kwide *p, const hn_a256 *const x[COLS], int C)
{
    __m256i sum[2][COLS];
    const int8_t *a[COLS];
    FOR(j, C) sum[0][j] = sum[1][j] = _mm256_setzero_si256(), a[j] = x[j]->q;
    for (int s = 0; s < 8; s++) {
        wide_steps(sum, p->q + 16 * s, a, false, C);
        FOR(j, C) a[j] += 32;
    }
    FOR(j, C)
        FOR(h, 2) {
            __m256 y = _mm256_load_ps(acc[j] + 8 * h),
                   d = _mm256_mul_ps(_mm256_load_ps(p->d + 8 * h), _mm256_set1_ps(x[j]->d));
            _mm256_store_ps(acc[j] + 8 * h, _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(sum[h][j]), y));
        }
}

#define PANEL(TYPE, OPEN, POPEN, PANEL_BLOCK, N, ELEMS, TILE)                                                  \
    void hn_avx2_panel_##TYPE(const hn_mm *m)                                                                  \
    {                                                                                                          \
        run_panels(m, OPEN, (size_t)(m->n_in / ELEMS) * sizeof(PANEL_BLOCK), false, N, TILE##_4, TILE##_2, 0); \
    }                                                                                                          \
    void hn_avx2_ppanel_##TYPE(const hn_mm *m)                                                                 \
    {                                                                                                          \
        run_panels(m, POPEN, (size_t)(m->n_in / ELEMS) * sizeof(PANEL_BLOCK), true, N, TILE##_4, TILE##_2, 0); \
    }
#define PANEL_K(TYPE, OPEN, POPEN, PANEL_BLOCK, N, BLOCK)    \
    OPENER(OPEN, from_rows, open_##TYPE, PANEL_BLOCK, 256)   \
    OPENER(POPEN, from_group, open_##TYPE, PANEL_BLOCK, 256) \
    K_TILE(tile_##TYPE##_4, PANEL_BLOCK, BLOCK, 4)           \
    K_TILE(tile_##TYPE##_2, PANEL_BLOCK, BLOCK, 2)           \
    PANEL(TYPE, OPEN, POPEN, PANEL_BLOCK, N, 256, tile_##TYPE)
#define BLOCK_Q4_K(C) k_block(acc, p, x, FORM_q4_K, C)
#define BLOCK_Q5_K(C) k_block(acc, p, x, FORM_q5_K, C)
#define BLOCK_Q6_K(C) k_block(acc, p, x, FORM_q6_K, C)
#define BLOCK_IQ4_XS(C) kwide_block(acc, p, x, C)
PANEL_K(q4_K, hn_avx2_open_q4_K, hn_avx2_popen_q4_K, kpanel, 2, BLOCK_Q4_K)
PANEL_K(q5_K, hn_avx2_open_q5_K, hn_avx2_popen_q5_K, kpanel, 2, BLOCK_Q5_K)
PANEL_K(q6_K, hn_avx2_open_q6_K, hn_avx2_popen_q6_K, kpanel, 2, BLOCK_Q6_K)
PANEL_K(iq4_XS, wide_iq4_XS, pwide_iq4_XS, kwide, 1, BLOCK_IQ4_XS)

/* ---- 32-blocks ------------------------------------------------------------------------------------------------- */

INLINE void open_q4_0(tpanel *p, const from *f, int64_t b, int64_t nb)
{
    __m256i q[4];
    int64_t at = b * (int64_t)sizeof(hn_q4_0);
    words(q, f, at + 2, (int64_t)hn_pair_block(256, b), 4);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(256, b)));
    FOR(i, 4) put(p->q[i][f->h], low_nibbles(q[i])), put(p->q[4 + i][f->h], high_nibbles(q[i]));
}
INLINE void open_iq4_NL(twide *p, const from *f, int64_t b, int64_t nb)
{
    __m256i q[4];
    int64_t at = b * (int64_t)sizeof(hn_q4_0);
    words(q, f, at + 2, (int64_t)hn_pair_block(256, b), 4);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(256, b)));
    FOR(i, 4) {
        __m256i lo = iq4_levels(low_nibbles(q[i])), hi = iq4_levels(high_nibbles(q[i]));
        put(p->q[2 * i][f->h], wide_low(lo)), put(p->q[2 * i + 1][f->h], wide_high(lo));
        put(p->q[8 + 2 * i][f->h], wide_low(hi)), put(p->q[8 + 2 * i + 1][f->h], wide_high(hi));
    }
}
INLINE void open_q5_0(tpanel *p, const from *f, int64_t b, int64_t nb)
{
    __m256i q[4], hi;
    int64_t at = b * (int64_t)sizeof(hn_q5_0);
    words(q, f, at + 6, (int64_t)hn_pair_block(320, b) + 64, 4);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(320, b)));
    if (f->group) {
        hi = load256(f->group + (int64_t)hn_pair_block(320, b) + 4 * f->h);
    } else {
        int32_t v[8];
        for (int i = 0; i < 8; i++) v[i] = load32(f->row[i] + at + 2);
        hi = _mm256_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    }
    FOR(i, 8) {
        __m256i v = i < 4 ? low_nibbles(q[i]) : high_nibbles(q[i - 4]), up;
        if (f->group) { /* bit i of each byte */
            up = shift16(hi, 4 - i);
        } else { /* bits 4i … 4i+3 belong to the four codes of word i */
            __m256i which = _mm256_set1_epi32(i % 2 ? (int32_t)0x80402010 : 0x08040201);
            up = _mm256_cmpeq_epi8(
                _mm256_and_si256(_mm256_shuffle_epi8(hi, byte_index(i / 2, i / 2, i / 2, i / 2)), which), which);
        }
        put(p->q[i][f->h], or_and(v, up, 0x10101010));
    }
}
INLINE void open_q8_0(twide *p, const from *f, int64_t b, int64_t nb) /* packed codes carry 128 */
{
    __m256i q[8];
    int64_t at = b * (int64_t)sizeof(hn_q8_0);
    words(q, f, at + 2, (int64_t)hn_pair_block(512, b), 8);
    _mm256_store_ps(p->d + f->h, halves(f, at, (int64_t)hn_pair_d(512, b)));
    FOR(i, 8) {
        __m256i v = f->group ? _mm256_xor_si256(q[i], _mm256_set1_epi8(-128)) : q[i];
        put(p->q[2 * i][f->h], wide_low(v)), put(p->q[2 * i + 1][f->h], wide_high(v));
    }
}

INLINE void open_mxfp4(tpanel *p, const from *f, int64_t b, int64_t nb)
{
    __m256i q[4], e, low;
    int64_t at = b * (int64_t)sizeof(hn_mxfp4);
    int32_t v[8];
    const __m256i levels = _mm256_add_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)hn_e2m1_doubled)), _mm256_set1_epi8(16));
    for (int i = 0; i < 8; i++) v[i] = (uint8_t)f->row[i][at];
    e = _mm256_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    low = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e); /* hn_mxfp4_scale */
    e = _mm256_blendv_epi8(_mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23), low,
                           _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
    _mm256_store_ps(p->d + f->h, _mm256_castsi256_ps(e));
    words(q, f, at + 1, 0, 4);
    FOR(i, 4) {
        put(p->q[i][f->h], _mm256_shuffle_epi8(levels, low_nibbles(q[i])));
        put(p->q[4 + i][f->h], _mm256_shuffle_epi8(levels, high_nibbles(q[i])));
    }
}

/* One block of 32: Σ w·a */
INLINE void t_block(__m256i sum[2][COLS], const tpanel *p, const int8_t *const a[COLS], int fit, int C)
{
    const __m256i ones = _mm256_set1_epi16(1);
    FOR(g, 8 / fit) {
        __m256i t[2][COLS];
        FOR(k, fit) {
            __m256i w0 = load256(p->q[fit * g + k][0]), w1 = load256(p->q[fit * g + k][8]);
            FOR(j, C) {
                __m256i v = word(a[j] + 4 * (fit * g + k));
                __m256i t0 = _mm256_maddubs_epi16(w0, v);
                __m256i t1 = _mm256_maddubs_epi16(w1, v);
                t[0][j] = k ? add16(t[0][j], t0) : t0;
                t[1][j] = k ? add16(t[1][j], t1) : t1;
            }
        }
        FOR(j, C) {
            sum[0][j] = g ? add_madd(sum[0][j], t[0][j], ones) : _mm256_madd_epi16(t[0][j], ones);
            sum[1][j] = g ? add_madd(sum[1][j], t[1][j], ones) : _mm256_madd_epi16(t[1][j], ones);
        }
    }
}

/* acc += sums, of codes that carry 2^shift more than their value (0: none), by the scales of block b */
INLINE void t_finish(float acc[COLS][ROWS], __m256i sum[2][COLS], const float *dw, const float *const d[COLS],
                     int64_t b, int64_t nb, int shift, int C)
{
    FOR(j, C) {
        __m256 da = _mm256_set1_ps(d[j][b]);
        __m256i off = _mm256_slli_epi32(word(d[j] + nb + b), shift);
        FOR(h, 2) {
            __m256i isum = shift ? _mm256_sub_epi32(sum[h][j], off) : sum[h][j];
            __m256 y = _mm256_load_ps(acc[j] + 8 * h);
            y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(dw + 8 * h), da), _mm256_cvtepi32_ps(isum), y);
            _mm256_store_ps(acc[j] + 8 * h, y);
        }
    }
}

/* Blocks [b, end) in a function of its own: beside what is asked for, its registers would not do. */
#define T_TILE(NAME, PANEL_BLOCK, BLOCK, SHIFT, C)                                                                   \
    static __attribute__((noinline)) void NAME##_run(float sums[COLS][ROWS], const hn_mm *m, PANEL_BLOCK *p,         \
                                                     int64_t c, int64_t b, int64_t end)                              \
    {                                                                                                                \
        _Alignas(32) float acc[COLS][ROWS];                                                                          \
        int64_t nb = m->n_in / 32;                                                                                   \
        memcpy(acc, sums, sizeof acc);                                                                               \
        const int8_t *a[COLS];                                                                                       \
        const float *d[COLS];                                                                                        \
        for (int j = 0; j < C; j++) a[j] = column(m, c + j), d[j] = (const float *)(a[j] + m->n_in), a[j] += 32 * b; \
        for (p += b; b < end; b++, p++) {                                                                            \
            __m256i sum[2][COLS];                                                                                    \
            BLOCK(C);                                                                                                \
            t_finish(acc, sum, p->d, d, b, nb, SHIFT, C);                                                            \
            for (int j = 0; j < C; j++) a[j] += 32;                                                                  \
        }                                                                                                            \
        memcpy(sums, acc, sizeof acc);                                                                               \
    }                                                                                                                \
    static void NAME(const hn_mm *m, void *panel, int64_t r, int64_t c, int type, asking *ahead)                     \
    {                                                                                                                \
        _Alignas(32) float acc[COLS][ROWS] = { { 0 } };                                                              \
        const int64_t nb = m->n_in / 32, step = ahead->bytes ? 256 / 32 : nb;                                        \
        for (int64_t b = 0; b < nb; b += step) {                                                                     \
            ask_behind(ahead);                                                                                       \
            NAME##_run(acc, m, panel, c, b, b + step < nb ? b + step : nb);                                          \
        }                                                                                                            \
        store(m, r, c, acc, C);                                                                                      \
    }
#define T_TILES(NAME, PANEL_BLOCK, BLOCK, SHIFT)   \
    T_TILE(NAME##_4, PANEL_BLOCK, BLOCK, SHIFT, 4) \
    T_TILE(NAME##_2, PANEL_BLOCK, BLOCK, SHIFT, 2)
#define BLOCK_4(C) t_block(sum, p, a, 8, C)
#define BLOCK_5(C) t_block(sum, p, a, 4, C)
#define BLOCK_WIDE(C) wide_steps(sum, p->q, a, true, C)
T_TILES(tile_4, tpanel, BLOCK_4, 3)
T_TILES(tile_5, tpanel, BLOCK_5, 4)
T_TILES(tile_wide, twide, BLOCK_WIDE, 0)

#define PANEL_T(TYPE, OPEN, POPEN, PANEL_BLOCK, N, TILE)    \
    OPENER(OPEN, from_rows, open_##TYPE, PANEL_BLOCK, 32)   \
    OPENER(POPEN, from_group, open_##TYPE, PANEL_BLOCK, 32) \
    PANEL(TYPE, OPEN, POPEN, PANEL_BLOCK, N, 32, TILE)
PANEL_T(q4_0, hn_avx2_open_q4_0, hn_avx2_popen_q4_0, tpanel, 2, tile_4)
PANEL_T(q5_0, hn_avx2_open_q5_0, hn_avx2_popen_q5_0, tpanel, 2, tile_5)
PANEL_T(q8_0, wide_q8_0, pwide_q8_0, twide, 1, tile_wide)
PANEL_T(iq4_NL, wide_iq4_NL, pwide_iq4_NL, twide, 1, tile_wide)

/* 28·127·2 leaves room for four, as codes of 5 bits do; a packed form there is none. */
OPENER(hn_avx2_open_mxfp4, from_rows, open_mxfp4, tpanel, 32)
void hn_avx2_panel_mxfp4(const hn_mm *m)
{
    run_panels(m, hn_avx2_open_mxfp4, (size_t)(m->n_in / 32) * sizeof(tpanel), false, 2, tile_5_4, tile_5_2, 0);
}

#else
typedef int hn_no_avx2_panel; /* an empty file is not C */
#endif
