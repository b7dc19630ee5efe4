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
NEON_OP float32x4_t four_f16(const uint16_t d[4]) { return load_f16(d); }
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

/* A weight block: codes in natural order, a scale for each run of 16 (or two runs), minima. */
typedef struct kopen {
    int8x16_t q[16];
    int32_t sc[16];
    int16x8_t mn;
} kopen;

NEON_OP void open_scales(kopen *o, const uint8_t s[12])
{
    uint8_t sc[8], mn[8];
    hn_k_scales(s, sc, mn);
    for (int i = 0; i < 8; i++) o->sc[i] = sc[i];
    o->mn = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(mn)));
}
NEON_OP void open_q4_K(kopen *o, const hn_q4_K *w)
{
    for (int i = 0; i < 8; i++) {
        uint8x16_t b = load_u8(w->q + 16 * i);
        o->q[4 * (i / 2) + i % 2] = low_codes(b);
        o->q[4 * (i / 2) + i % 2 + 2] = high_codes(b);
    }
    open_scales(o, w->s);
}
NEON_OP void open_q5_K(kopen *o, const hn_q5_K *w)
{
    for (int i = 0; i < 8; i++) {
        uint8x16_t b = load_u8(w->q + 16 * i), h = load_u8(w->h + 16 * (i % 2));
        int g = i / 2;
        o->q[4 * g + i % 2] = with_bits(low_codes(b), shift_and(h, 4 - 2 * g, 16));
        o->q[4 * g + i % 2 + 2] = with_bits(high_codes(b), shift_and(h, 3 - 2 * g, 16));
    }
    open_scales(o, w->s);
}
NEON_OP void open_q6_K(kopen *o, const hn_q6_K *w)
{
    for (int i = 0; i < 16; i++) { /* element 16·i = 128·n + 32·j + 16·part */
        int n = i / 8, j = i / 2 % 4, part = i % 2;
        int8x16_t lo = nibble(load_u8(w->l + 64 * n + 32 * (j & 1) + 16 * part), j >> 1);
        o->q[i] = less(with_bits(lo, shift_and(load_u8(w->h + 32 * n + 16 * part), 4 - 2 * j, 48)), 32);
        o->sc[i] = w->s[i];
    }
}
NEON_OP void open_iq4_XS(kopen *o, const hn_iq4_XS *w)
{
    for (int s = 0; s < 8; s++) {
        uint8x16_t b = load_u8(w->q + 16 * s);
        o->q[2 * s] = level_of(low_codes(b));
        o->q[2 * s + 1] = level_of(high_codes(b));
        o->sc[s] = ((w->sl[s / 2] >> 4 * (s & 1) & 15) | (w->sh >> 2 * s & 3) << 4) - 32;
    }
}

/* NSUB scales a block: 8 or 16 */
NEON_OP int32x4_t kopen_dot(const kopen *w, const hn_a256 *a, int NSUB)
{
    int32x4_t sum = vdupq_n_s32(0), zero = sum;
    for (int s = 0; s < NSUB; s++) {
        int32x4_t p;
        if (NSUB == 8)
            p = dot4(dot4(zero, w->q[2 * s], load_s8(a->q + 32 * s)), w->q[2 * s + 1], load_s8(a->q + 32 * s + 16));
        else p = dot4(zero, w->q[s], load_s8(a->q + 16 * s));
        sum = vmlaq_n_s32(sum, p, w->sc[s]);
    }
    return sum;
}
NEON_OP int32x4_t kopen_min(const kopen *w, const hn_a256 *a)
{
    int16x8_t s32 = vpaddq_s16(vld1q_s16(a->bsum), vld1q_s16(a->bsum + 8)); /* sums of 32 codes */
    return vmlal_high_s16(vmull_s16(vget_low_s16(w->mn), vget_low_s16(s32)), w->mn, s32);
}

#define K_ROWS(NAME, BLOCK, OPEN, NSUB, HAS_MIN, C)                                                      \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                               \
    {                                                                                                    \
        const BLOCK *w[4];                                                                               \
        const hn_a256 *x[C];                                                                             \
        float32x4_t acc[C];                                                                              \
        for (int i = 0; i < 4; i++) w[i] = row_of(m, r + i);                                             \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j), acc[j] = vdupq_n_f32(0.0f);              \
        for (int64_t b = 0; b < m->n_in / 256; b++) {                                                    \
            int32x4_t iv[4][C], mv[4][C];                                                                \
            uint16_t d[4], dmin[4];                                                                      \
            for (int i = 0; i < 4; i++) {                                                                \
                kopen k;                                                                                 \
                OPEN(&k, w[i] + b);                                                                      \
                d[i] = w[i][b].d;                                                                        \
                dmin[i] = HAS_MIN ? ((const uint16_t *)(w[i] + b))[1] : 0;                               \
                for (int j = 0; j < C; j++) {                                                            \
                    iv[i][j] = kopen_dot(&k, x[j] + b, NSUB);                                            \
                    mv[i][j] = HAS_MIN ? kopen_min(&k, x[j] + b) : iv[i][j];                             \
                }                                                                                        \
            }                                                                                            \
            for (int j = 0; j < C; j++) {                                                                \
                int32x4_t isum = sum4x4(iv[0][j], iv[1][j], iv[2][j], iv[3][j]);                         \
                acc[j] = vfmaq_f32(acc[j], vmulq_n_f32(four_f16(d), x[j][b].d), vcvtq_f32_s32(isum));    \
                if (!HAS_MIN) continue;                                                                  \
                int32x4_t msum = sum4x4(mv[0][j], mv[1][j], mv[2][j], mv[3][j]);                         \
                acc[j] = vfmsq_f32(acc[j], vmulq_n_f32(four_f16(dmin), x[j][b].d), vcvtq_f32_s32(msum)); \
            }                                                                                            \
        }                                                                                                \
        for (int j = 0; j < C; j++) store4(m, r, c + j, acc[j]);                                         \
    }

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
    uint8x16_t b = load_u8(w->q), bits = load_u8(bit), sixteen = vdupq_n_u8(16);
    for (int i = 0; i < 2; i++) {
        uint8x16_t h = vcombine_u8(vdup_n_u8(w->h[2 * i]), vdup_n_u8(w->h[2 * i + 1]));
        q[i] = less(with_bits(nibble(b, i), vandq_u8(vtstq_u8(h, bits), sixteen)), 16);
    }
}
NEON_OP void open_q8_0(int8x16_t q[2], const hn_q8_0 *w)
{
    q[0] = load_s8(w->q);
    q[1] = load_s8(w->q + 16);
}

#define T32_ROWS(NAME, BLOCK, OPEN, C)                                                                            \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                        \
    {                                                                                                             \
        const BLOCK *w[4];                                                                                        \
        const int8_t *x[C];                                                                                       \
        float32x4_t acc[C];                                                                                       \
        for (int i = 0; i < 4; i++) w[i] = row_of(m, r + i);                                                      \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j), acc[j] = vdupq_n_f32(0.0f);                       \
        for (int64_t b = 0; b < m->n_in / 32; b++) {                                                              \
            int32x4_t iv[4][C], zero = vdupq_n_s32(0);                                                            \
            uint16_t d[4];                                                                                        \
            for (int i = 0; i < 4; i++) {                                                                         \
                int8x16_t q[2];                                                                                   \
                OPEN(q, w[i] + b);                                                                                \
                d[i] = w[i][b].d;                                                                                 \
                for (int j = 0; j < C; j++)                                                                       \
                    iv[i][j] = dot4(dot4(zero, q[0], load_s8(x[j] + 32 * b)), q[1], load_s8(x[j] + 32 * b + 16)); \
            }                                                                                                     \
            for (int j = 0; j < C; j++) {                                                                         \
                float da = ((const float *)(x[j] + m->n_in))[b];                                                  \
                int32x4_t isum = sum4x4(iv[0][j], iv[1][j], iv[2][j], iv[3][j]);                                  \
                acc[j] = vfmaq_f32(acc[j], vmulq_n_f32(four_f16(d), da), vcvtq_f32_s32(isum));                    \
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
    uint8x16_t h = shift_and(load_u8(word_at(blk, 0, v)), -w, 1); /* bit w of byte b is bit 4w + b of the block's */
    return less(with_bits(nibble(load_u8(word_at(blk + 64, w % 4, v)), w / 4), vshlq_n_u8(h, 4)), 16);
}
NEON_OP int8x16_t code_q8_0(const uint8_t *blk, int w, int v)
{
    return vreinterpretq_s8_u8(veorq_u8(load_u8(word_at(blk, w, v)), vdupq_n_u8(128)));
}

/* Scales and minima of sixteen rows, a lane a row. */
typedef struct kscales {
    int32x4_t sc[16][4], mn[8][4];
} kscales;

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

/* p[v][j] = Σ over words w0 … w0+N−1 of four rows v and column j; a[j]: word w0. */
#define DOT_WORDS(p, CODE, blk, w0, N, a, C)                                                  \
    UNROLL_FOR(int v_ = 0; v_ < 4; v_++)                                                      \
        UNROLL_FOR(int j_ = 0; j_ < (C); j_++) (p)[v_][j_] = vdupq_n_s32(0);                  \
    UNROLL_FOR(int i_ = 0; i_ < (N); i_ += 4) {                                               \
        int8x16_t x_[C];                                                                      \
        UNROLL_FOR(int j_ = 0; j_ < (C); j_++) x_[j_] = load_s8((a)[j_] + 4 * i_);            \
        UNROLL_FOR(int v_ = 0; v_ < 4; v_++) {                                                \
            int8x16_t q0_ = CODE(blk, (w0) + i_, v_), q1_ = CODE(blk, (w0) + i_ + 1, v_);     \
            int8x16_t q2_ = CODE(blk, (w0) + i_ + 2, v_), q3_ = CODE(blk, (w0) + i_ + 3, v_); \
            UNROLL_FOR(int j_ = 0; j_ < (C); j_++) {                                          \
                (p)[v_][j_] = dot4_lane((p)[v_][j_], q0_, x_[j_], 0);                         \
                (p)[v_][j_] = dot4_lane((p)[v_][j_], q1_, x_[j_], 1);                         \
                (p)[v_][j_] = dot4_lane((p)[v_][j_], q2_, x_[j_], 2);                         \
                (p)[v_][j_] = dot4_lane((p)[v_][j_], q3_, x_[j_], 3);                         \
            }                                                                                 \
        }                                                                                     \
    }

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
 * columns give [r0c0 r0c1 r1c0 r1c1]; at the end lanes become rows again. */
#define DOT_WORDS_4(p, CODE, blk, w0, N, a)                                                                         \
    do {                                                                                                            \
        int32x4_t t_[4][2][2];                                                                                      \
        UNROLL_FOR(int v_ = 0; v_ < 4; v_++)                                                                        \
            UNROLL_FOR(int j_ = 0; j_ < 2; j_++) t_[v_][j_][0] = t_[v_][j_][1] = vdupq_n_s32(0);                    \
        UNROLL_FOR(int i_ = 0; i_ < (N); i_ += 4) {                                                                 \
            int8x16_t x_[4], y_[2][2];                                                                              \
            UNROLL_FOR(int j_ = 0; j_ < 4; j_++) x_[j_] = load_s8((a)[j_] + 4 * i_);                                \
            UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                                                  \
                y_[j_][0] = vcombine_s8(vget_low_s8(x_[2 * j_]), vget_low_s8(x_[2 * j_ + 1]));                      \
                y_[j_][1] = vcombine_s8(vget_high_s8(x_[2 * j_]), vget_high_s8(x_[2 * j_ + 1]));                    \
            }                                                                                                       \
            UNROLL_FOR(int v_ = 0; v_ < 4; v_++)                                                                    \
                UNROLL_FOR(int h_ = 0; h_ < 2; h_++) {                                                              \
                    int8x16_t q0_ = CODE(blk, (w0) + i_ + 2 * h_, v_), q1_ = CODE(blk, (w0) + i_ + 2 * h_ + 1, v_); \
                    int8x16_t lo_ = zip_low(q0_, q1_), hi_ = zip_high(q0_, q1_);                                    \
                    UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                                          \
                        t_[v_][j_][0] = vmmlaq_s32(t_[v_][j_][0], lo_, y_[j_][h_]);                                 \
                        t_[v_][j_][1] = vmmlaq_s32(t_[v_][j_][1], hi_, y_[j_][h_]);                                 \
                    }                                                                                               \
                }                                                                                                   \
        }                                                                                                           \
        UNROLL_FOR(int v_ = 0; v_ < 4; v_++)                                                                        \
            UNROLL_FOR(int j_ = 0; j_ < 2; j_++) {                                                                  \
                (p)[v_][2 * j_] = vuzp1q_s32(t_[v_][j_][0], t_[v_][j_][1]);                                         \
                (p)[v_][2 * j_ + 1] = vuzp2q_s32(t_[v_][j_][0], t_[v_][j_][1]);                                     \
            }                                                                                                       \
    } while (0)
#else
#define DOT_WORDS_4(p, CODE, blk, w0, N, a) DOT_WORDS(p, CODE, blk, w0, N, a, 4)
#endif
#define DOT_WORDS_1(p, CODE, blk, w0, N, a) DOT_WORDS(p, CODE, blk, w0, N, a, 1)

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
            int32x4_t isum[4][C], msum[4][C];                                                                         \
            for (int v = 0; v < 4; v++)                                                                               \
                for (int j = 0; j < C; j++) isum[v][j] = msum[v][j] = vdupq_n_s32(0);                                 \
            for (int s = 0; s < NSUB; s++) {                                                                          \
                const int8_t *a[C];                                                                                   \
                int32x4_t p[4][C];                                                                                    \
                for (int j = 0; j < C; j++) a[j] = x[j][b].q + 256 / NSUB * s;                                        \
                DOT_WORDS_##C(p, CODE, blk, 64 / NSUB * s, 64 / NSUB, a);                                             \
                for (int v = 0; v < 4; v++)                                                                           \
                    for (int j = 0; j < C; j++) isum[v][j] = vmlaq_s32(isum[v][j], p[v][j], k.sc[s][v]);              \
            }                                                                                                         \
            for (int s = 0; HAS_MIN && s < 8; s++)                                                                    \
                for (int v = 0; v < 4; v++)                                                                           \
                    for (int j = 0; j < C; j++)                                                                       \
                        msum[v][j] =                                                                                  \
                            vmlaq_n_s32(msum[v][j], k.mn[s][v], x[j][b].bsum[2 * s] + x[j][b].bsum[2 * s + 1]);       \
            for (int v = 0; v < 4; v++)                                                                               \
                for (int j = 0; j < C; j++) {                                                                         \
                    acc[v][j] =                                                                                       \
                        vfmaq_f32(acc[v][j], vmulq_n_f32(load_f16(d + 8 * v), x[j][b].d), vcvtq_f32_s32(isum[v][j])); \
                    if (HAS_MIN)                                                                                      \
                        acc[v][j] = vfmsq_f32(acc[v][j], vmulq_n_f32(load_f16(d + 32 + 8 * v), x[j][b].d),            \
                                              vcvtq_f32_s32(msum[v][j]));                                             \
                }                                                                                                     \
        }                                                                                                             \
        for (int v = 0; v < 4; v++)                                                                                   \
            for (int j = 0; j < C; j++) store4(m, r + 4 * v, c + j, acc[v][j]);                                       \
    }

#define T32_PACKED(NAME, TYPE, CODE, C)                                                                              \
    static void NAME(const hn_mm *m, int64_t r, int64_t c)                                                           \
    {                                                                                                                \
        const uint8_t *group = group_of(m, r);                                                                       \
        const size_t n_block = hn_packed_block_bytes(TYPE);                                                          \
        const int64_t nb = m->n_in / 32;                                                                             \
        const int8_t *x[C];                                                                                          \
        float32x4_t acc[4][C];                                                                                       \
        for (int j = 0; j < C; j++) x[j] = column_of(m, c + j);                                                      \
        for (int v = 0; v < 4; v++)                                                                                  \
            for (int j = 0; j < C; j++) acc[v][j] = vdupq_n_f32(0.0f);                                               \
        for (int64_t b = 0; b < nb; b++) {                                                                           \
            const uint8_t *blk = group + hn_pair_block(n_block, b), *d = group + hn_pair_d(n_block, b);              \
            const int8_t *a[C];                                                                                      \
            int32x4_t p[4][C];                                                                                       \
            for (int j = 0; j < C; j++) a[j] = x[j] + 32 * b;                                                        \
            DOT_WORDS_##C(p, CODE, blk, 0, 8, a);                                                                    \
            for (int v = 0; v < 4; v++)                                                                              \
                for (int j = 0; j < C; j++)                                                                          \
                    acc[v][j] =                                                                                      \
                        vfmaq_f32(acc[v][j], vmulq_n_f32(load_f16(d + 8 * v), ((const float *)(x[j] + m->n_in))[b]), \
                                  vcvtq_f32_s32(p[v][j]));                                                           \
        }                                                                                                            \
        for (int v = 0; v < 4; v++)                                                                                  \
            for (int j = 0; j < C; j++) store4(m, r + 4 * v, c + j, acc[v][j]);                                      \
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

#define MATMUL_32(N, TYPE, BLOCK)                 \
    T32_ROWS(rows_##N##_4, BLOCK, open_##N, 4)    \
    T32_ROWS(rows_##N##_1, BLOCK, open_##N, 1)    \
    T32_PACKED(packed_##N##_4, TYPE, code_##N, 4) \
    T32_PACKED(packed_##N##_1, TYPE, code_##N, 1) \
    RANGES(N, TYPE)
MATMUL_32(q4_0, HN_Q4_0, hn_q4_0)
MATMUL_32(q5_0, HN_Q5_0, hn_q5_0)
MATMUL_32(q8_0, HN_Q8_0, hn_q8_0)
MATMUL_32(iq4_NL, HN_IQ4_NL, hn_q4_0)

#define NEON_TILES_TABLE(NAME)                                                                                         \
    {                                                                                                                  \
        .name = NAME, .matmul = { [HN_Q8_0] = matmul_q8_0,     [HN_Q4_0] = matmul_q4_0,    [HN_Q5_0] = matmul_q5_0,    \
                                  [HN_Q4_K] = matmul_q4_K,     [HN_Q5_K] = matmul_q5_K,    [HN_Q6_K] = matmul_q6_K,    \
                                  [HN_IQ4_XS] = matmul_iq4_XS, [HN_IQ4_NL] = matmul_iq4_NL },                          \
        .packed = {                                                                                                    \
            [HN_Q8_0] = packed_q8_0, [HN_Q4_0] = packed_q4_0, [HN_Q5_0] = packed_q5_0,     [HN_Q4_K] = packed_q4_K,    \
            [HN_Q5_K] = packed_q5_K, [HN_Q6_K] = packed_q6_K, [HN_IQ4_XS] = packed_iq4_XS, [HN_IQ4_NL] = packed_iq4_NL \
        },                                                                                                             \
    }
