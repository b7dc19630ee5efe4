/* Integer products of the NEON levels, written once and included by each after it has
 * defined dot4 and dot4_lane (and NEON_MMLA if the CPU multiplies 2 × 2 tiles).
 *
 * All codes become signed bytes, their offset taken off: the sums are the same integers
 * as those of unsigned codes less their offset times Σq. Two forms:
 *   rows    from the mapping, 4 rows × 1 or 4 columns; sums run across a register
 *   packed  from pack.h's groups, 16 rows × 1 or 4 columns; a lane is a row
 * With room for it and enough columns, rows are packed first, a group at a time. */

#include "quant/pack.h"

#define NEON_OP static inline __attribute__((always_inline))
enum { PACK_FROM = 8 }; /* columns that pay for packing a group */

/* 16-bit and 32-bit words of packed fields and files: little-endian, at any address */
NEON_OP int8x16_t load_s8(const void *p) { return vld1q_s8(p); }
NEON_OP uint8x16_t load_u8(const void *p) { return vld1q_u8(p); }
NEON_OP uint32x4_t load_u32(const void *p) { return vreinterpretq_u32_u8(vld1q_u8(p)); }
NEON_OP float32x4_t load_f16(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
NEON_OP int8x16_t low_codes(uint8x16_t b) { return vreinterpretq_s8_u8(vandq_u8(b, vdupq_n_u8(15))); }
NEON_OP int8x16_t high_codes(uint8x16_t b) { return vreinterpretq_s8_u8(vshrq_n_u8(b, 4)); }
NEON_OP int8x16_t nibble(uint8x16_t b, int high) { return high ? high_codes(b) : low_codes(b); }
/* bits of b where mask has them, shifted by n (left if positive), then by `bits` selected */
NEON_OP uint8x16_t shift_and(uint8x16_t b, int n, uint8_t mask)
{
    return vandq_u8(vshlq_u8(b, vdupq_n_s8((int8_t)n)), vdupq_n_u8(mask));
}
NEON_OP int8x16_t with_bits(int8x16_t code, uint8x16_t bits) { return vorrq_s8(code, vreinterpretq_s8_u8(bits)); }
NEON_OP int8x16_t less(int8x16_t code, int8_t offset) { return vsubq_s8(code, vdupq_n_s8(offset)); }
NEON_OP int8x16_t level_of(int8x16_t code) { return vqtbl1q_s8(vld1q_s8(hn_iq4_levels), vreinterpretq_u8_s8(code)); }
/* the scales of four rows, from four places */
NEON_OP float32x4_t four_f16(const uint16_t *a, const uint16_t *b, const uint16_t *c, const uint16_t *d)
{
    uint16x4_t h = vld1_dup_u16(a);
    h = vld1_lane_u16(b, h, 1);
    h = vld1_lane_u16(c, h, 2);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_lane_u16(d, h, 3)));
}
/* hn_mxfp4_scale of each */
NEON_OP float32x4_t four_e8m0(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    uint32x4_t e = { *a, *b, *c, *d }, least = vshlq_u32(vdupq_n_u32(0x200000), vreinterpretq_s32_u32(e));
    uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), least, normal));
}
/* member D of block b of each row of w[4] */
#define FOUR(OF, w, b, D) OF(&(w)[0][b].D, &(w)[1][b].D, &(w)[2][b].D, &(w)[3][b].D)
/* lane i = sum of v[i] */
NEON_OP int32x4_t sum4x4(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d)
{
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

/* tiles live in registers only if their loops are unrolled, at every level of optimisation */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
/* one word, for clang-format */
#define UNROLL_FOR(...) UNROLL for (__VA_ARGS__)
/* the runs of a block: clang warns that this is too much where dot4 is four instructions */
#if defined(__clang__)
#define RUNS_FOR(...) for (__VA_ARGS__)
#else
#define RUNS_FOR(...) UNROLL for (__VA_ARGS__)
#endif

NEON_OP const void *row_of(const hn_mm *m, int64_t r) /* rows beyond the last repeat it */
{
    return (const char *)m->w + (size_t)(r < m->r1 ? r : m->r1 - 1) * m->w_stride;
}
NEON_OP const void *column_of(const hn_mm *m, int64_t c) { return (const char *)m->x + (size_t)c * m->x_stride; }
/* four results of column c from row r on, those inside the range */
NEON_OP void store4(const hn_mm *m, int64_t r, int64_t c, float32x4_t acc)
{
    float y[4], *to = m->y + c * m->ldy + r;
    vst1q_f32(y, acc);
    for (int i = 0; i < 4 && r + i < m->r1; i++) to[i] = y[i];
}

/* ---- K-quants from rows ------------------------------------------------------------------------------ */

/* A weight block: codes in natural order, a scale for each run of 16 (or two runs), four a register, minima. Codes of
 * Q6_K have their offset 32, which `mn`, scales again, take off by the sums of 16 activations. */
typedef struct kopen {
    int8x16_t q[16];
    int32x4_t sc[4];
    int16x8_t mn, mn2;
} kopen;

NEON_OP int32x4_t low4(int16x8_t v) { return vmovl_s16(vget_low_s16(v)); }
NEON_OP int32x4_t high4(int16x8_t v) { return vmovl_high_s16(v); }
NEON_OP int16x8_t eight(uint64_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(vcreate_u8(bytes))); }
NEON_OP void open_scales(kopen *o, const uint8_t s[12])
{
    uint64_t lo;
    uint32_t hi;
    memcpy(&lo, s, 8);
    memcpy(&hi, s + 8, 4);
    /* six bits of each: words 0 and 1 have the first four whole, of the others the two above what word 2 has */
    uint64_t six = lo & 0x3F3F3F3F3F3F3F3F, top = lo >> 2 & 0x3030303030303030;
    uint64_t sc = (uint32_t)six | (uint64_t)((hi & 0x0F0F0F0F) | (uint32_t)top) << 32;
    uint64_t mn = six >> 32 | ((uint64_t)(hi >> 4 & 0x0F0F0F0F) << 32 | (top & 0xFFFFFFFF00000000));
    int16x8_t v = eight(sc);
    o->sc[0] = low4(v);
    o->sc[1] = high4(v);
    o->mn = eight(mn);
}
NEON_OP void open_q4_K(kopen *o, const hn_q4_K *w)
{
    UNROLL_FOR(int i = 0; i < 8; i++) {
        uint8x16_t b = load_u8(w->q + 16 * i);
        o->q[4 * (i / 2) + i % 2] = low_codes(b);
        o->q[4 * (i / 2) + i % 2 + 2] = high_codes(b);
    }
    open_scales(o, w->s);
}
NEON_OP void open_q5_K(kopen *o, const hn_q5_K *w)
{
    UNROLL_FOR(int i = 0; i < 8; i++) {
        uint8x16_t b = load_u8(w->q + 16 * i), h = load_u8(w->h + 16 * (i % 2));
        int g = i / 2;
        o->q[4 * g + i % 2] = with_bits(low_codes(b), shift_and(h, 4 - 2 * g, 16));
        o->q[4 * g + i % 2 + 2] = with_bits(high_codes(b), shift_and(h, 3 - 2 * g, 16));
    }
    open_scales(o, w->s);
}
NEON_OP void open_q6_K(kopen *o, const hn_q6_K *w)
{
    UNROLL_FOR(int i = 0; i < 16; i++) { /* element 16·i = 128·n + 32·j + 16·part */
        int n = i / 8, j = i / 2 % 4, part = i % 2;
        int8x16_t lo = nibble(load_u8(w->l + 64 * n + 32 * (j & 1) + 16 * part), j >> 1);
        o->q[i] = with_bits(lo, shift_and(load_u8(w->h + 32 * n + 16 * part), 4 - 2 * j, 48));
    }
    int8x16_t sc = vld1q_s8(w->s);
    o->mn = vmovl_s8(vget_low_s8(sc));
    o->mn2 = vmovl_high_s8(sc);
    o->sc[0] = low4(o->mn);
    o->sc[1] = high4(o->mn);
    o->sc[2] = low4(o->mn2);
    o->sc[3] = high4(o->mn2);
}
NEON_OP void open_iq4_XS(kopen *o, const hn_iq4_XS *w)
{
    static const int8_t lows[8] = { 0, -4, 0, -4, 0, -4, 0, -4 };
    static const int16_t highs[8] = { 0, -2, -4, -6, -8, -10, -12, -14 };
    UNROLL_FOR(int s = 0; s < 8; s++) {
        uint8x16_t b = load_u8(w->q + 16 * s);
        o->q[2 * s] = level_of(low_codes(b));
        o->q[2 * s + 1] = level_of(high_codes(b));
    }
    uint32_t sl;
    memcpy(&sl, w->sl, 4);
    uint8x8_t lo = vreinterpret_u8_u32(vdup_n_u32(sl));
    lo = vand_u8(vshl_u8(vzip1_u8(lo, lo), vld1_s8(lows)), vdup_n_u8(15));
    uint16x8_t hi = vandq_u16(vshlq_u16(vdupq_n_u16(w->sh), vld1q_s16(highs)), vdupq_n_u16(3));
    int16x8_t v = vreinterpretq_s16_u16(vorrq_u16(vmovl_u8(lo), vshlq_n_u16(hi, 4)));
    v = vsubq_s16(v, vdupq_n_s16(32));
    o->sc[0] = low4(v);
    o->sc[1] = high4(v);
}

/* Sums of the products of 16 codes (NSUB 16) or 32 (8) times their scales: in some lane each. */
NEON_OP int32x4_t kopen_dot(const kopen *w, const hn_a256 *a, int NSUB)
{
    int32x4_t sum = vdupq_n_s32(0), zero = sum;
    UNROLL_FOR(int t = 0; t < NSUB / 4; t++) {
        int32x4_t p[4];
        UNROLL_FOR(int i = 0; i < 4; i++) {
            int s = 4 * t + i;
            if (NSUB == 8)
                p[i] =
                    dot4(dot4(zero, w->q[2 * s], load_s8(a->q + 32 * s)), w->q[2 * s + 1], load_s8(a->q + 32 * s + 16));
            else p[i] = dot4(zero, w->q[s], load_s8(a->q + 16 * s));
        }
        sum = vmlaq_s32(sum, sum4x4(p[0], p[1], p[2], p[3]), w->sc[t]);
    }
    return sum;
}
NEON_OP int32x4_t kopen_min(const kopen *w, const hn_a256 *a)
{
    int16x8_t s32 = vpaddq_s16(vld1q_s16(a->bsum), vld1q_s16(a->bsum + 8)); /* sums of 32 codes */
    return vmlal_high_s16(vmull_s16(vget_low_s16(w->mn), vget_low_s16(s32)), w->mn, s32);
}
/* less the offset 32 of Q6_K: as much less, in the lanes of sum */
NEON_OP int32x4_t kopen_less(int32x4_t sum, const kopen *w, const hn_a256 *a)
{
    int16x8_t s0 = vld1q_s16(a->bsum), s1 = vld1q_s16(a->bsum + 8);
    int32x4_t p = vmlal_high_s16(vmull_s16(vget_low_s16(w->mn), vget_low_s16(s0)), w->mn, s0);
    p = vmlal_high_s16(vmlal_s16(p, vget_low_s16(w->mn2), vget_low_s16(s1)), w->mn2, s1);
    return vmlsq_s32(sum, p, vdupq_n_s32(32));
}

/* HAS_MIN: Q4_K and Q5_K */
#define K_ROWS(NAME, BLOCK, OPEN, NSUB, HAS_MIN, C)                                                                \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                         \
    {                                                                                                              \
        const BLOCK *w[4];                                                                                         \
        const hn_a256 *x[C];                                                                                       \
        float32x4_t acc[C];                                                                                        \
        for (int i = 0; i < 4; i++) w[i] = row_of(m, r + i);                                                       \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j), acc[j] = vdupq_n_f32(0.0f);                        \
        for (int64_t b = 0; b < m->n_in / 256; b++) {                                                              \
            int32x4_t iv[4][C], mv[4][C];                                                                          \
            for (int i = 0; i < 4; i++) {                                                                          \
                kopen k;                                                                                           \
                OPEN(&k, w[i] + b);                                                                                \
                for (int j = 0; j < C; j++) {                                                                      \
                    iv[i][j] = kopen_dot(&k, x[j] + b, NSUB);                                                      \
                    mv[i][j] = HAS_MIN ? kopen_min(&k, x[j] + b) : iv[i][j];                                       \
                    if (NSUB == 16) iv[i][j] = kopen_less(iv[i][j], &k, x[j] + b);                                 \
                }                                                                                                  \
            }                                                                                                      \
            float32x4_t d = FOUR(four_f16, w, b, d), dmin = HAS_MIN ? FOUR(four_f16, w, b, HAS_MIN_##HAS_MIN) : d; \
            for (int j = 0; j < C; j++) {                                                                          \
                int32x4_t isum = sum4x4(iv[0][j], iv[1][j], iv[2][j], iv[3][j]);                                   \
                acc[j] = vfmaq_f32(acc[j], vmulq_n_f32(d, x[j][b].d), vcvtq_f32_s32(isum));                        \
                if (!HAS_MIN) continue;                                                                            \
                int32x4_t msum = sum4x4(mv[0][j], mv[1][j], mv[2][j], mv[3][j]);                                   \
                acc[j] = vfmsq_f32(acc[j], vmulq_n_f32(dmin, x[j][b].d), vcvtq_f32_s32(msum));                     \
            }                                                                                                      \
        }                                                                                                          \
        for (int j = 0; j < C; j++) store4(m, r, c + j, acc[j]);                                                   \
    }
#define HAS_MIN_0 d
#define HAS_MIN_1 dmin

/* ---- 32-blocks from rows -------------------------------------------------------------------------------- */

NEON_OP void open_q4_0(int8x16_t q[2], const hn_q4_0 *w)
{
    uint8x16_t b = load_u8(w->q);
    q[0] = less(low_codes(b), 8);
    q[1] = less(high_codes(b), 8);
}
NEON_OP void open_iq4_NL(int8x16_t q[2], const hn_q4_0 *w)
{
    uint8x16_t b = load_u8(w->q);
    q[0] = level_of(low_codes(b));
    q[1] = level_of(high_codes(b));
}
NEON_OP void open_q5_0(int8x16_t q[2], const hn_q5_0 *w)
{
    static const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    static const uint8_t of_byte[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 };
    uint8x16_t b = load_u8(w->q), bits = load_u8(bit), byte = load_u8(of_byte), minus16 = vdupq_n_u8(0xF0);
    uint32_t word;
    memcpy(&word, w->h, 4);
    uint8x16_t h = vreinterpretq_u8_u32(vdupq_n_u32(word));
    for (int i = 0; i < 2; i++) { /* where the fifth bit is not set, 16 is taken off */
        uint8x16_t set = vtstq_u8(vqtbl1q_u8(h, vorrq_u8(byte, vdupq_n_u8((uint8_t)(2 * i)))), bits);
        q[i] = with_bits(nibble(b, i), vbicq_u8(minus16, set));
    }
}
NEON_OP void open_q8_0(int8x16_t q[2], const hn_q8_0 *w)
{
    q[0] = load_s8(w->q);
    q[1] = load_s8(w->q + 16);
}

NEON_OP void open_mxfp4(int8x16_t q[2], const hn_mxfp4 *w)
{
    uint8x16_t b = load_u8(w->q);
    int8x16_t level = vld1q_s8(hn_e2m1_doubled);
    q[0] = vqtbl1q_s8(level, vreinterpretq_u8_s8(low_codes(b)));
    q[1] = vqtbl1q_s8(level, vreinterpretq_u8_s8(high_codes(b)));
}

/* D, OF: the member that says a block's scale, and what makes floats of four such */
#define T32_ROWS(NAME, BLOCK, OPEN, D, OF, C)                                                                     \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                        \
    {                                                                                                             \
        const BLOCK *w[4];                                                                                        \
        const int8_t *x[C];                                                                                       \
        float32x4_t acc[C];                                                                                       \
        for (int i = 0; i < 4; i++) w[i] = row_of(m, r + i);                                                      \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j), acc[j] = vdupq_n_f32(0.0f);                       \
        for (int64_t b = 0; b < m->n_in / 32; b++) {                                                              \
            int32x4_t iv[4][C], zero = vdupq_n_s32(0);                                                            \
            UNROLL_FOR(int i = 0; i < 4; i++) {                                                                   \
                int8x16_t q[2];                                                                                   \
                OPEN(q, w[i] + b);                                                                                \
                UNROLL_FOR(int j = 0; j < C; j++)                                                                 \
                    iv[i][j] = dot4(dot4(zero, q[0], load_s8(x[j] + 32 * b)), q[1], load_s8(x[j] + 32 * b + 16)); \
            }                                                                                                     \
            float32x4_t d = FOUR(OF, w, b, D);                                                                    \
            UNROLL_FOR(int j = 0; j < C; j++) {                                                                   \
                float da = ((const float *)(x[j] + m->n_in))[b];                                                  \
                int32x4_t isum = sum4x4(iv[0][j], iv[1][j], iv[2][j], iv[3][j]);                                  \
                acc[j] = vfmaq_f32(acc[j], vmulq_n_f32(d, da), vcvtq_f32_s32(isum));                              \
            }                                                                                                     \
        }                                                                                                         \
        for (int j = 0; j < C; j++) store4(m, r, c + j, acc[j]);                                                  \
    }

/* ---- packed groups ------------------------------------------------------------------------------------------ */

/* Word w of four rows 4·v … 4·v+3: bytes 4w … 4w+3 of each as signed codes. `blk` is a
 * block of the group. */
NEON_OP const uint8_t *word_at(const uint8_t *field, int w, int v) { return field + 64 * w + 16 * v; }

NEON_OP int8x16_t code_q4_K(const uint8_t *blk, int w, int v)
{
    return nibble(load_u8(word_at(blk + 256, 8 * (w / 16) + w % 8, v)), w / 8 % 2);
}
NEON_OP int8x16_t code_q5_K(const uint8_t *blk, int w, int v)
{
    int8x16_t lo = nibble(load_u8(word_at(blk + 768, 8 * (w / 16) + w % 8, v)), w / 8 % 2);
    return with_bits(lo, shift_and(load_u8(word_at(blk + 256, w % 8, v)), 4 - w / 8, 16));
}
NEON_OP int8x16_t code_q6_K(const uint8_t *blk, int w, int v)
{
    int n = w / 32, j = w / 8 % 4;
    int8x16_t lo = nibble(load_u8(word_at(blk + hn_pack_q6_l(16 * n + 8 * (j & 1) + w % 8), 0, v)), j >> 1);
    return less(with_bits(lo, shift_and(load_u8(word_at(blk + hn_pack_q6_h(8 * n + w % 8), 0, v)), 4 - 2 * j, 48)), 32);
}
NEON_OP int8x16_t code_iq4_XS(const uint8_t *blk, int w, int v)
{
    return level_of(nibble(load_u8(word_at(blk + 128, 4 * (w / 8) + w % 4, v)), w / 4 % 2));
}
NEON_OP int8x16_t code_q4_0(const uint8_t *blk, int w, int v)
{
    return less(nibble(load_u8(word_at(blk, w % 4, v)), w / 4), 8);
}
NEON_OP int8x16_t code_iq4_NL(const uint8_t *blk, int w, int v)
{
    return level_of(nibble(load_u8(word_at(blk, w % 4, v)), w / 4));
}
NEON_OP int8x16_t code_q5_0(const uint8_t *blk, int w, int v)
{
    /* bit w of byte b is bit 4w + b of the block's: where it is not set, 16 is taken off */
    uint8x16_t set = vtstq_u8(load_u8(word_at(blk, 0, v)), vdupq_n_u8((uint8_t)(1 << w)));
    return with_bits(nibble(load_u8(word_at(blk + 64, w % 4, v)), w / 4), vbicq_u8(vdupq_n_u8(0xF0), set));
}
NEON_OP int8x16_t code_q8_0(const uint8_t *blk, int w, int v)
{
    return vreinterpretq_s8_u8(veorq_u8(load_u8(word_at(blk, w, v)), vdupq_n_u8(128)));
}

/* Scales and minima of sixteen rows, a lane a row. */
typedef struct kscales {
    int32x4_t sc[16][4], mn[8][4];
} kscales;

/* Σ minima times sums of 32 activations, the first four in lo */
NEON_OP int32x4_t minima(const kscales *k, int v, int32x4_t lo, int32x4_t hi)
{
    int32x4_t sum = vmulq_laneq_s32(k->mn[0][v], lo, 0);
    sum = vmlaq_laneq_s32(sum, k->mn[1][v], lo, 1);
    sum = vmlaq_laneq_s32(sum, k->mn[2][v], lo, 2);
    sum = vmlaq_laneq_s32(sum, k->mn[3][v], lo, 3);
    sum = vmlaq_laneq_s32(sum, k->mn[4][v], hi, 0);
    sum = vmlaq_laneq_s32(sum, k->mn[5][v], hi, 1);
    sum = vmlaq_laneq_s32(sum, k->mn[6][v], hi, 2);
    return vmlaq_laneq_s32(sum, k->mn[7][v], hi, 3);
}
NEON_OP int32x4_t byte_u(uint32x4_t w, int i)
{
    return vreinterpretq_s32_u32(vandq_u32(vshlq_u32(w, vdupq_n_s32(-8 * i)), vdupq_n_u32(255)));
}
NEON_OP void scales_k4(kscales *o, const uint8_t *blk)
{
    uint32x4_t six = vdupq_n_u32(0x3F3F3F3F), low = vdupq_n_u32(0x0F0F0F0F), top = vdupq_n_u32(0x30303030);
    for (int v = 0; v < 4; v++) {
        uint32x4_t s0 = load_u32(word_at(blk + 64, 0, v)), s1 = load_u32(word_at(blk + 64, 1, v)),
                   s2 = load_u32(word_at(blk + 64, 2, v));
        uint32x4_t sc0 = vandq_u32(s0, six), mn0 = vandq_u32(s1, six);
        uint32x4_t sc1 = vorrq_u32(vandq_u32(s2, low), vandq_u32(vshrq_n_u32(s0, 2), top));
        uint32x4_t mn1 = vorrq_u32(vandq_u32(vshrq_n_u32(s2, 4), low), vandq_u32(vshrq_n_u32(s1, 2), top));
        for (int i = 0; i < 4; i++) {
            o->sc[i][v] = byte_u(sc0, i);
            o->sc[i + 4][v] = byte_u(sc1, i);
            o->mn[i][v] = byte_u(mn0, i);
            o->mn[i + 4][v] = byte_u(mn1, i);
        }
    }
}
NEON_OP void scales_q6_K(kscales *o, const uint8_t *blk)
{
    for (int t = 0; t < 16; t++)
        for (int v = 0; v < 4; v++) {
            int32x4_t w = vreinterpretq_s32_u32(load_u32(word_at(blk + hn_pack_q6_s(t / 4), 0, v)));
            o->sc[t][v] = vshrq_n_s32(vshlq_s32(w, vdupq_n_s32(24 - 8 * (t % 4))), 24);
        }
}
NEON_OP void scales_iq4_XS(kscales *o, const uint8_t *blk)
{
    for (int v = 0; v < 4; v++) {
        uint32x4_t sh = vmovl_u16(vreinterpret_u16_u8(vld1_u8(blk + 32 + 8 * v))),
                   sl = load_u32(word_at(blk + 64, 0, v));
        for (int s = 0; s < 8; s++) {
            uint32x4_t lo = vandq_u32(vshlq_u32(sl, vdupq_n_s32(-4 * s)), vdupq_n_u32(15));
            uint32x4_t hi = vandq_u32(vshlq_u32(sh, vdupq_n_s32(-2 * s)), vdupq_n_u32(3));
            o->sc[s][v] = vsubq_s32(vreinterpretq_s32_u32(vorrq_u32(lo, vshlq_n_u32(hi, 4))), vdupq_n_s32(32));
        }
    }
}

/* What comes before is done before what follows is begun, and what is made of x is made again: a compiler that first
 * opens the codes of all four registers of rows, or keeps a lane of x for all of them, spills them: up to twice the
 * instructions (docs/LAB.md). */
#define APART(x) __asm__ volatile("" : "+w"(x)::"memory")

/* p[j] = Σ over words w0 … w0+N−1 of four rows v and column j, whose activations are x[·][j], four words a register */
#define DOT_WORDS(p, CODE, blk, w0, N, v, x, C)                                                           \
    do {                                                                                                  \
        UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[j_] = vdupq_n_s32(0);                                  \
        UNROLL_FOR(int i_ = 0; i_ < (N); i_ += 4) {                                                       \
            int8x16_t q0_ = CODE(blk, (w0) + i_, v), q1_ = CODE(blk, (w0) + i_ + 1, v);                   \
            int8x16_t q2_ = CODE(blk, (w0) + i_ + 2, v), q3_ = CODE(blk, (w0) + i_ + 3, v);               \
            UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[j_] = dot4_lane((p)[j_], q0_, (x)[i_ / 4][j_], 0); \
            UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[j_] = dot4_lane((p)[j_], q1_, (x)[i_ / 4][j_], 1); \
            UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[j_] = dot4_lane((p)[j_], q2_, (x)[i_ / 4][j_], 2); \
            UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[j_] = dot4_lane((p)[j_], q3_, (x)[i_ / 4][j_], 3); \
        }                                                                                                 \
    } while (0)
#define DOT_WORDS_1(p, CODE, blk, w0, N, v, x) DOT_WORDS(p, CODE, blk, w0, N, v, x, 1)
#define LOAD_WORDS_1(x, a, N) \
    UNROLL_FOR(int i_ = 0; i_ < (N) / 4; i_++) (x)[i_][0] = load_s8((a)[0] + 16 * i_)

#ifdef NEON_MMLA
NEON_OP int8x16_t zip_low(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
NEON_OP int8x16_t zip_high(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
/* The same for four columns. Two words of rows {0,1} or {2,3} times two words of two
 * columns give [r0c0 r0c1 r1c0 r1c1]; at the end lanes become rows again. x[i][2h + j]: words 4i + 2h, 4i + 2h + 1 of
 * columns 2j and 2j + 1. */
#define LOAD_WORDS_4(x, a, N)                                                                       \
    UNROLL_FOR(int i_ = 0; i_ < (N) / 4; i_++)                                                      \
        UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                                      \
            int8x16_t e_ = load_s8((a)[2 * j_] + 16 * i_), o_ = load_s8((a)[2 * j_ + 1] + 16 * i_); \
            (x)[i_][j_] = vcombine_s8(vget_low_s8(e_), vget_low_s8(o_));                            \
            (x)[i_][j_ + 2] = vcombine_s8(vget_high_s8(e_), vget_high_s8(o_));                      \
        }
#define DOT_WORDS_4(p, CODE, blk, w0, N, v, x)                                          \
    do {                                                                                \
        int32x4_t t_[2][2];                                                             \
        t_[0][0] = t_[0][1] = t_[1][0] = t_[1][1] = vdupq_n_s32(0);                     \
        UNROLL_FOR(int i_ = 0; i_ < (N); i_ += 2) {                                     \
            int8x16_t q0_ = CODE(blk, (w0) + i_, v), q1_ = CODE(blk, (w0) + i_ + 1, v); \
            int8x16_t lo_ = zip_low(q0_, q1_), hi_ = zip_high(q0_, q1_);                \
            UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                      \
                t_[j_][0] = vmmlaq_s32(t_[j_][0], lo_, (x)[i_ / 4][i_ % 4 + j_]);       \
                t_[j_][1] = vmmlaq_s32(t_[j_][1], hi_, (x)[i_ / 4][i_ % 4 + j_]);       \
            }                                                                           \
        }                                                                               \
        UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                          \
            (p)[2 * j_] = vuzp1q_s32(t_[j_][0], t_[j_][1]);                             \
            (p)[2 * j_ + 1] = vuzp2q_s32(t_[j_][0], t_[j_][1]);                         \
        }                                                                               \
    } while (0)
#else
#define LOAD_WORDS_4(x, a, N)                  \
    UNROLL_FOR(int i_ = 0; i_ < (N) / 4; i_++) \
        UNROLL_FOR(int j_ = 0; j_ < 4; j_++) (x)[i_][j_] = load_s8((a)[j_] + 16 * i_)
#define DOT_WORDS_4(p, CODE, blk, w0, N, v, x) DOT_WORDS(p, CODE, blk, w0, N, v, x, 4)
#endif

NEON_OP const uint8_t *group_of(const hn_mm *m, int64_t r)
{
    return (const uint8_t *)m->w + (size_t)(r / HN_PACK_ROWS) * m->w_stride;
}

/* 16 rows from r on, columns c … c+C−1. The d of the rows stand at the head of a block,
 * or blocks come in pairs behind theirs (PAIRS). */
#define K_PACKED(NAME, TYPE, CODE, SCALES, NSUB, HAS_MIN, PAIRS, C)                                                   \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                            \
    {                                                                                                                 \
        const uint8_t *group = group_of(m, r);                                                                        \
        const size_t n_block = hn_packed_block_bytes(TYPE);                                                           \
        const int64_t nb = m->n_in / 256;                                                                             \
        const hn_a256 *x[C];                                                                                          \
        float32x4_t acc[4][C];                                                                                        \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j);                                                       \
        for (int v = 0; v < 4; v++)                                                                                   \
            for (int j = 0; j < C; j++) acc[v][j] = vdupq_n_f32(0.0f);                                                \
        for (int64_t b = 0; b < nb; b++) {                                                                            \
            const uint8_t *blk = group + (PAIRS ? hn_pair_block(n_block, b) : (size_t)b * n_block);                   \
            const uint8_t *d = PAIRS ? group + hn_pair_d(n_block, b) : blk;                                           \
            kscales k;                                                                                                \
            SCALES(&k, blk);                                                                                          \
            int32x4_t isum[4][C];                                                                                     \
            for (int v = 0; v < 4; v++)                                                                               \
                for (int j = 0; j < C; j++) isum[v][j] = vdupq_n_s32(0);                                              \
            RUNS_FOR(int s = 0; s < NSUB; s++)                                                                        \
            {                                                                                                         \
                const int8_t *a[C];                                                                                   \
                int8x16_t y[16 / NSUB][C];                                                                            \
                UNROLL_FOR(int j = 0; j < C; j++) a[j] = x[j][b].q + 256 / NSUB * s;                                  \
                LOAD_WORDS_##C(y, a, 64 / NSUB);                                                                      \
                UNROLL_FOR(int v = 0; v < 4; v++) {                                                                   \
                    int32x4_t p[C];                                                                                   \
                    DOT_WORDS_##C(p, CODE, blk, 64 / NSUB * s, 64 / NSUB, v, y);                                      \
                    UNROLL_FOR(int j = 0; j < C; j++) isum[v][j] = vmlaq_s32(isum[v][j], p[j], k.sc[s][v]);           \
                    UNROLL_FOR(int i = 0; i < 16 / NSUB; i++)                                                         \
                        UNROLL_FOR(int j = 0; j < C; j++) APART(y[i][j]);                                             \
                }                                                                                                     \
            }                                                                                                         \
            UNROLL_FOR(int v = 0; v < 4; v++)                                                                         \
                UNROLL_FOR(int j = 0; j < C; j++)                                                                     \
                    acc[v][j] =                                                                                       \
                        vfmaq_f32(acc[v][j], vmulq_n_f32(load_f16(d + 8 * v), x[j][b].d), vcvtq_f32_s32(isum[v][j])); \
            if (!HAS_MIN) continue;                                                                                   \
            UNROLL_FOR(int j = 0; j < C; j++) {                                                                       \
                int16x8_t s32 = vpaddq_s16(vld1q_s16(x[j][b].bsum), vld1q_s16(x[j][b].bsum + 8));                     \
                int32x4_t lo = low4(s32), hi = high4(s32);                                                            \
                UNROLL_FOR(int v = 0; v < 4; v++)                                                                     \
                    acc[v][j] = vfmsq_f32(acc[v][j], vmulq_n_f32(load_f16(d + 32 + 8 * v), x[j][b].d),                \
                                          vcvtq_f32_s32(minima(&k, v, lo, hi)));                                      \
            }                                                                                                         \
        }                                                                                                             \
        for (int v = 0; v < 4; v++)                                                                                   \
            for (int j = 0; j < C; j++) store4(m, r + 4 * v, c + j, acc[v][j]);                                       \
    }

#define T32_PACKED(NAME, TYPE, CODE, C)                                                                     \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                  \
    {                                                                                                       \
        const uint8_t *group = group_of(m, r);                                                              \
        const size_t n_block = hn_packed_block_bytes(TYPE);                                                 \
        const int64_t nb = m->n_in / 32;                                                                    \
        const int8_t *x[C];                                                                                 \
        float32x4_t acc[4][C];                                                                              \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j);                                             \
        for (int v = 0; v < 4; v++)                                                                         \
            for (int j = 0; j < C; j++) acc[v][j] = vdupq_n_f32(0.0f);                                      \
        for (int64_t b = 0; b < nb; b++) {                                                                  \
            const uint8_t *blk = group + hn_pair_block(n_block, b), *d = group + hn_pair_d(n_block, b);     \
            const int8_t *a[C];                                                                             \
            int8x16_t y[2][C];                                                                              \
            UNROLL_FOR(int j = 0; j < C; j++) a[j] = x[j] + 32 * b;                                         \
            LOAD_WORDS_##C(y, a, 8);                                                                        \
            UNROLL_FOR(int v = 0; v < 4; v++) {                                                             \
                int32x4_t p[C];                                                                             \
                DOT_WORDS_##C(p, CODE, blk, 0, 8, v, y);                                                    \
                float32x4_t dw = load_f16(d + 8 * v);                                                       \
                UNROLL_FOR(int j = 0; j < C; j++)                                                           \
                    acc[v][j] = vfmaq_f32(acc[v][j], vmulq_n_f32(dw, ((const float *)(x[j] + m->n_in))[b]), \
                                          vcvtq_f32_s32(p[j]));                                             \
                UNROLL_FOR(int i = 0; C > 1 && i < 2; i++)                                                  \
                    UNROLL_FOR(int j = 0; j < C; j++) APART(y[i][j]); /* one column fits */                 \
            }                                                                                               \
        }                                                                                                   \
        for (int v = 0; v < 4; v++)                                                                         \
            for (int j = 0; j < C; j++) store4(m, r + 4 * v, c + j, acc[v][j]);                             \
    }

/* ---- the loops over a range --------------------------------------------------------------------------------- */

#define RANGES(N, TYPE)                                                                    \
    static void packed_##N(const hn_mm *m)                                                 \
    {                                                                                      \
        for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {                            \
            int64_t c = 0;                                                                 \
            for (; c + 4 <= m->n_col; c += 4) packed_##N##_4(m, r, c);                     \
            for (; c < m->n_col; c++) packed_##N##_1(m, r, c);                             \
        }                                                                                  \
    }                                                                                      \
    static void matmul_##N(const hn_mm *m)                                                 \
    {                                                                                      \
        if (m->panel && m->n_col >= PACK_FROM) {                                           \
            for (int64_t r = m->r0; r < m->r1; r += HN_PACK_ROWS) {                        \
                int64_t n = m->r1 - r < HN_PACK_ROWS ? m->r1 - r : HN_PACK_ROWS;           \
                hn_mm g = *m;                                                              \
                hn_pack_group(TYPE, m->panel, row_of(m, r), m->w_stride, (int)n, m->n_in); \
                g.w = m->panel, g.y = m->y + r, g.r0 = 0, g.r1 = n;                        \
                packed_##N(&g);                                                            \
            }                                                                              \
            return;                                                                        \
        }                                                                                  \
        int64_t c = 0;                                                                     \
        for (; c + 4 <= m->n_col; c += 4)                                                  \
            for (int64_t r = m->r0; r < m->r1; r += 4) rows_##N##_4(m, r, c);              \
        for (; c < m->n_col; c++)                                                          \
            for (int64_t r = m->r0; r < m->r1; r += 4) rows_##N##_1(m, r, c);              \
    }
#define MATMUL_K(N, TYPE, BLOCK, SCALES, NSUB, HAS_MIN, PAIRS)                \
    K_ROWS(rows_##N##_4, BLOCK, open_##N, NSUB, HAS_MIN, 4)                   \
    K_ROWS(rows_##N##_1, BLOCK, open_##N, NSUB, HAS_MIN, 1)                   \
    K_PACKED(packed_##N##_4, TYPE, code_##N, SCALES, NSUB, HAS_MIN, PAIRS, 4) \
    K_PACKED(packed_##N##_1, TYPE, code_##N, SCALES, NSUB, HAS_MIN, PAIRS, 1) \
    RANGES(N, TYPE)
MATMUL_K(q4_K, HN_Q4_K, hn_q4_K, scales_k4, 8, 1, 0)
MATMUL_K(q5_K, HN_Q5_K, hn_q5_K, scales_k4, 8, 1, 0)
MATMUL_K(q6_K, HN_Q6_K, hn_q6_K, scales_q6_K, 16, 0, 1)
MATMUL_K(iq4_XS, HN_IQ4_XS, hn_iq4_XS, scales_iq4_XS, 8, 0, 0)

#define MATMUL_32(N, TYPE, BLOCK)                           \
    T32_ROWS(rows_##N##_4, BLOCK, open_##N, d, four_f16, 4) \
    T32_ROWS(rows_##N##_1, BLOCK, open_##N, d, four_f16, 1) \
    T32_PACKED(packed_##N##_4, TYPE, code_##N, 4)           \
    T32_PACKED(packed_##N##_1, TYPE, code_##N, 1)           \
    RANGES(N, TYPE)
MATMUL_32(q4_0, HN_Q4_0, hn_q4_0)
MATMUL_32(q5_0, HN_Q5_0, hn_q5_0)
MATMUL_32(q8_0, HN_Q8_0, hn_q8_0)
MATMUL_32(iq4_NL, HN_IQ4_NL, hn_q4_0)

/* MXFP4 has no packed form */
T32_ROWS(rows_mxfp4_4, hn_mxfp4, open_mxfp4, e, four_e8m0, 4)
T32_ROWS(rows_mxfp4_1, hn_mxfp4, open_mxfp4, e, four_e8m0, 1)
static void matmul_mxfp4(const hn_mm *m)
{
    int64_t c = 0;
    for (; c + 4 <= m->n_col; c += 4)
        for (int64_t r = m->r0; r < m->r1; r += 4) rows_mxfp4_4(m, r, c);
    for (; c < m->n_col; c++)
        for (int64_t r = m->r0; r < m->r1; r += 4) rows_mxfp4_1(m, r, c);
}

#ifndef NEON_ATTN_Q8
#define NEON_ATTN_Q8 NULL
#endif
#define NEON_TILES_TABLE(NAME)                                                                             \
    {                                                                                                      \
        .name = NAME,                                                                                      \
        .matmul = { [HN_Q8_0] = matmul_q8_0,     [HN_Q4_0] = matmul_q4_0,     [HN_Q5_0] = matmul_q5_0,     \
                    [HN_Q4_K] = matmul_q4_K,     [HN_Q5_K] = matmul_q5_K,     [HN_Q6_K] = matmul_q6_K,     \
                    [HN_IQ4_XS] = matmul_iq4_XS, [HN_IQ4_NL] = matmul_iq4_NL, [HN_MXFP4] = matmul_mxfp4 }, \
        .packed = { [HN_Q8_0] = packed_q8_0,     [HN_Q4_0] = packed_q4_0,    [HN_Q5_0] = packed_q5_0,      \
                    [HN_Q4_K] = packed_q4_K,     [HN_Q5_K] = packed_q5_K,    [HN_Q6_K] = packed_q6_K,      \
                    [HN_IQ4_XS] = packed_iq4_XS, [HN_IQ4_NL] = packed_iq4_NL },                            \
        .attn = { [HN_CACHE_Q8_0] = NEON_ATTN_Q8 },                                                        \
    }
