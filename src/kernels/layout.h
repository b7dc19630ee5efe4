/* layout: what kernels share with everybody who hands them work: how a cache of keys and values lies, and the names of
 * functions that products end with. Every device keeps a cache this way, so that files and copies of sequences need no
 * conversion; no arithmetic here. */
#ifndef HN_LAYOUT_H
#define HN_LAYOUT_H

#include "base/base.h"

/* ---- the KV cache ---------------------------------------------------------------------- */

enum {
    HN_KEY_BLOCK = 16,  /* positions stored together */
    HN_SOFT_BLOCK = 64, /* keys per step of the running softmax */
    HN_SPLIT = 512,     /* keys per independent partial result */
    HN_CACHE_GROUP = 32 /* dims that share a scale in q8_0 */
};

/* Positions stored in one place. Where they lie is no matter of arithmetic: no bit depends on it. */
#ifndef HN_PAGE
#define HN_PAGE 64
#endif
_Static_assert(HN_PAGE % HN_SOFT_BLOCK == 0 && HN_SPLIT % HN_PAGE == 0, "64, 128, 256 or 512");

/* The cache of one KV head: K and V in blocks of 16 positions of the same size, which
 * follow each other within a page. Pages hold whole soft blocks: keys past the last
 * may be read, never used.
 *   f16, f32  K [d][16], V [16][d]
 *   q8_0      per 32 dims of a head vector (the last group may be shorter) codes and an f16
 *             scale; d4 = d rounded up to 4 with codes of zero.
 *             K: codes + 128 [d4/4][16][4], then scales [groups][16]
 *             V: codes [16][d4], then scales [16][groups]
 *             scale = f16(max|x| / 127); code = rne(x·(1/scale)) in [−127, 127];
 *             scale 0: codes 0. A NaN or infinity in the group: scale NaN, codes 0. */
typedef enum hn_cache_type { HN_CACHE_F16 = 0, HN_CACHE_F32, HN_CACHE_Q8_0, HN_CACHE_TYPES } hn_cache_type;

static inline int64_t hn_cache_groups(int64_t d) { return (d + HN_CACHE_GROUP - 1) / HN_CACHE_GROUP; }
static inline int64_t hn_cache_d4(int64_t d) { return (d + 3) & ~(int64_t)3; }
/* Bytes of 16 positions of K, or of V. */
static inline size_t hn_cache_block_bytes(hn_cache_type t, int64_t d)
{
    switch (t) {
    case HN_CACHE_F16: return (size_t)d * HN_KEY_BLOCK * 2;
    case HN_CACHE_F32: return (size_t)d * HN_KEY_BLOCK * 4;
    default: return (size_t)(hn_cache_d4(d) + 2 * hn_cache_groups(d)) * HN_KEY_BLOCK;
    }
}

/* The largest |x| that a cache holds as a number: what f16 rounds to at most 65504, and what has such a scale in q8_0
 * (x/127 rounded to f32, then to f16). One float more is stored as infinity, which a softmax turns into NaN. */
static inline float hn_cache_limit(hn_cache_type t)
{
    switch (t) {
    case HN_CACHE_F16: return 0x1.ffdffep+15f; /* the float before 65520, halfway to where 65536 would be */
    case HN_CACHE_F32: return 0x1.fffffep+127f;
    default: return 0x1.fbe03ep+22f; /* the last whose 127th part is below 65520 */
    }
}

/* ---- functions of one element ------------------------------------------------------------ */

/* What a function of one element is, after a product. */
typedef enum hn_map {
    HN_MAP_NONE = 0,
    HN_MAP_TANH,
    HN_MAP_SIGMOID,
    HN_MAP_SILU,
    HN_MAP_SQRELU,
    HN_MAP_GELU,
    HN_MAP_SOFTPLUS,
    HN_MAP_GELU_ERF, /* GELU itself; the other is its tanh form */
    HN_MAP_KINDS
} hn_map;

/* What a gate's function is, before it multiplies. */
typedef enum hn_glu { HN_GLU_SILU = 0, HN_GLU_GELU, HN_GLU_OAI, HN_GLU_RELU, HN_GLU_GELU_ERF, HN_GLU_KINDS } hn_glu;

/* The numbers of xIELU (Huang and Schlag 2024), which a layer learns: what multiplies squares above 0, what e^x - 1 - x
 * below it, what x is multiplied by; the largest number of which that exponential is taken. */
typedef struct hn_xielu {
    float alpha_p, alpha_n, beta, eps;
} hn_xielu;

#endif
