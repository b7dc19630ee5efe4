/* kernels: the hot loops. One file per instruction set, one table each; dispatch.c
 * picks. Kernels allocate nothing and cannot fail; shapes were checked before.
 *
 * The numeric contract (every level gives the same bits; scalar.c is the oracle):
 *
 * Activations for block types, per row of x, per block of 256 (K-quants) or 32:
 *   amax = max|x|; q = rne(x·(127/amax)) in [−127, 127]; d = amax/127; integer sums of q.
 *   amax < 2^-100: d = 0, q = 0. A NaN or infinity in the block: d = NaN, q = 0.
 * K-quants, per block of 256, in int32 (exact, any order):
 *   isum = Σ_j sc_j·Σ w·q,  msum = Σ_j m_j·Σ q   (Q6_K: isum −= 32·Σ sc_j·Σ q)
 *   then in ascending blocks, one chain per output:
 *   acc = fma(dw·da, (float)isum, acc);  Q4_K, Q5_K: acc = fma(−(dmin·da), (float)msum, acc)
 *   IQ4_XS: w the level of a code, sc = ls − 32, as Q6_K.
 * Q4_0, Q5_0, Q8_0, IQ4_NL, MXFP4 (levels doubled, scales halved), per block of 32:
 *   acc = fma(dw·da, (float)isum, acc).
 * Float weights and every other type (decoded exactly to f32): element k belongs to
 *   lane k mod 16. Per block of 256 elements the 16 lanes start from zero and
 *   accumulate in ascending k by fma; t = first block, then t += each further block;
 *   at last lanes l and l+8 are added, then 4, 2, 1 apart.
 * Sums of norms and of softmax follow the same rule. exp is hn_exp_f32.
 * Attention: keys in blocks of 64 and splits of 512 at absolute positions; a rotation
 *   rounds both products and their sum, no fma (both below).
 */
#ifndef HN_KERNELS_H
#define HN_KERNELS_H

#include "kernels/layout.h"
#include "quant/pack.h"
#include "quant/quant.h"

#include <math.h>

/* ---- activations ------------------------------------------------------------------ */

typedef enum hn_act_kind { HN_ACT_F32 = 0, HN_ACT_Q256, HN_ACT_Q32, HN_ACT_KINDS } hn_act_kind;

/* One block of 256: five cache lines. */
typedef struct hn_a256 {
    int8_t q[256];
    int16_t bsum[16]; /* sums of 16 consecutive q */
    float d;
    uint16_t abs16;  /* the largest sum of |q| of 16 consecutive q */
    uint16_t side32; /* the largest of both sums, of q > 0 and of −q > 0, over 32 consecutive q */
    uint8_t pad[24];
} hn_a256;
_Static_assert(sizeof(hn_a256) == 320, "five lines");

/* A packed group of more bytes pushes a column's blocks out of the first cache before the next group needs them: they
 * are fetched a block ahead then (measured: docs/LAB.md). */
enum { HN_FAR_GROUP = 24 << 10 };
static inline void hn_fetch_a256(const hn_a256 *x)
{
    for (size_t i = 0; i < sizeof *x; i += 64) __builtin_prefetch((const char *)x + i);
}

/* Floats between rows of n, at most n + 31: whole lines, and never a multiple of 4 KiB, or
 * the same place of many rows would fight for the same sets of a cache. */
static inline size_t hn_f32_stride(int64_t n)
{
    size_t s = ((size_t)n + 15) & ~(size_t)15;
    return s % 1024 ? s : s + 16;
}

/* The bounds abs16 and side32 of a block with q and bsum, and zeros after them. */
static inline void hn_a256_bounds(hn_a256 *a)
{
    int abs16 = 0, side32 = 0, sum[16];
    for (int j = 0; j < 16; j++) {
        sum[j] = 0;
        for (int i = 0; i < 16; i++) sum[j] += a->q[16 * j + i] < 0 ? -a->q[16 * j + i] : a->q[16 * j + i];
        abs16 = sum[j] > abs16 ? sum[j] : abs16;
    }
    for (int j = 0; j < 16; j += 2) {
        int b = a->bsum[j] + a->bsum[j + 1], side = (sum[j] + sum[j + 1] + (b < 0 ? -b : b)) / 2;
        side32 = side > side32 ? side : side32;
    }
    a->abs16 = (uint16_t)abs16;
    a->side32 = (uint16_t)side32;
    memset(a->pad, 0, sizeof a->pad);
}

/* A row for 32-blocks: q[n], then d[n/32], then bsum[n/32] (int32), padded to 64 bytes. */
static inline size_t hn_act_row_bytes(hn_act_kind kind, int64_t n)
{
    switch (kind) {
    case HN_ACT_Q256: return (size_t)(n / 256) * sizeof(hn_a256);
    case HN_ACT_Q32: return ((size_t)n + (size_t)(n / 32) * 8 + 63) & ~(size_t)63;
    default: return hn_f32_stride(n) * sizeof(float);
    }
}

/* What a weight type multiplies with: its own block format, else exact f32. */
hn_act_kind hn_act_kind_of(hn_type t);

/* ---- matmul: y[c·ldy + r] = Σ_k W[r][k] · X[c][k] ------------------------------------ */

typedef struct hn_mm {
    float *y;
    int64_t ldy;                 /* floats between columns of y */
    const void *w;               /* row 0 */
    size_t w_stride;             /* bytes between weight rows */
    const void *x;               /* column 0, in the weight type's activation kind */
    size_t x_stride;             /* bytes between activation rows */
    int64_t n_in, n_col, r0, r1; /* rows [r0, r1) of W, all columns */
    void *panel;                 /* HN_PANEL_BYTES(n_in) of scratch of this thread, 64-byte aligned; NULL: none */
} hn_mm;
/* Scratch for rows opened or decoded, and for the sums of many columns. A kernel whose scratch
 * grows with n_in asserts what it needs an element against HN_PANEL_ELEM. */
#define HN_PANEL_ROWS 32
#define HN_PANEL_ELEM 48
#define HN_PANEL_BYTES(n_in) ((size_t)(n_in)*HN_PANEL_ELEM + 98304)
typedef void hn_matmul_fn(const hn_mm *a);
/* In the packed layout (quant/pack.h) w is group 0, w_stride the bytes between groups and
 * r0 a multiple of HN_PACK_ROWS; the same bits as from the rows. */

/* ---- attention ------------------------------------------------------------------------ */

/* n_tok tokens at consecutive positions, n_q queries (heads sharing one KV head) of each;
 * token i sees n_kv + i keys. Per query and split of 512 keys: m = −inf, l = 0, o = 0; per
 * block of 64 keys, those at or past the query's last masked to s = −inf:
 *   s_t = scale·(chain of fma over d from 0); mn = max(m, max s); c = exp(m−mn);
 *   p_t = exp(s_t−mn); l = l·c + Σp (lanes t mod 16, tree); o = o·c, then fma(p_t, v_t, o) in ascending t
 * (a block that is masked wholly changes nothing). Keys that are behind a token are seen like any other where n_kv
 * says so: all of a text, n_kv = n_end; as far behind as before, n_kv = pos + r + 1, window = 2r + 1. With a window,
 * keys before a query's first are masked too; blocks and splits of which it sees nothing are passed over. With a cap
 * c ≠ 0, before the mask, s_t = tanh(s_t·(1/c))·c. With fades, then, s_t = fma(−fade, |pos + i − t|, s_t) (ALiBi, Press
 * et al. 2022; distances below 2^24). With sinks there is one more part at last, m = sink, l = 1, o = 0,
 * of which O takes O·a alone. Splits merge ascending into M = −inf, L = 0, O = 0: Mn = max(M, m); a = exp(M−Mn);
 *   b = exp(m−Mn); L = fma(l, b, L·a); O = fma(o, b, O·a). out = O / L.
 * Latent rows are key and value at once: K has the layout of V, keys are all d of a row, values its first d_v, and q8_0
 * is decoded exactly, then as f32 (DeepSeek-V2, 2024). Else values have rows of their own, of d_v.
 * f16 is widened exactly. q8_0: q is quantized like an activation block per group of 32 dims
 * (codes, dq), per group isum = Σ code·q in int32, s = chain of fma(dk·dq, (float)isum, s)
 * over the groups from 0, times scale; v_t = (float)code·scale, which is exact. */
typedef struct hn_attn {
    const float *q; /* query g of token i at q + i·q_stride + g·d */
    float *out;     /* likewise */
    int64_t q_stride, out_stride;
    const void *k, *v;    /* of page 0 */
    const uint32_t *page; /* the numbers of the pages that hold positions [i·HN_PAGE, …); NULL: 0, 1, 2, … */
    size_t page_bytes;    /* from the keys (values) of one page to those of the next */
    float *scratch;       /* hn_attn_floats(n_tok·n_q, d), 64-byte aligned */
    int64_t n_tok, n_q, n_kv, d;
    int64_t d_v;    /* of values, at most d: of latent rows, and where they are narrower than keys; 0: d */
    int64_t window; /* a token sees so many keys, the last at n_kv + i − 1; 0: all before that */
    int64_t n_end;  /* there are so many keys: nobody sees those from there on; 0: as many as the last token sees */
    int64_t split_first; /* none of the keys before this split is seen */
    float scale, cap;
    const float *sink; /* [n_q] or NULL */
    const float *fade; /* [n_q] or NULL: scores lose so much with every position between query and key */
    int64_t pos;       /* of the first token, where scores fade */
    /* not NULL: only splits [split0, split1), not merged: m, l, o[d] of row i·n_q + g at
     * part + ((split − split0)·n_tok·n_q + row)·(d + 2), where the row sees the split */
    float *part;
    int64_t split0, split1;
} hn_attn;
typedef void hn_attn_fn(const hn_attn *a);

/* Bytes from k (v) to position pos, a multiple of 64. One look into the table per soft block. */
static inline size_t hn_attn_at(const hn_attn *a, size_t pos_bytes, int64_t pos)
{
    size_t i = (size_t)pos / HN_PAGE;
    return (a->page ? a->page[i] : i) * a->page_bytes + (size_t)pos % HN_PAGE * pos_bytes;
}

static inline int64_t hn_attn_floats(int64_t rows, int64_t d)
{
    int64_t r = (rows + 15) & ~(int64_t)15;
    return r * (2 * d + 4 + HN_SOFT_BLOCK + 5) + HN_SOFT_BLOCK * ((d + 15) & ~(int64_t)15);
}

/* ---- RWKV ----------------------------------------------------------------------------- */

enum { HN_MAX_WKV = 256 }; /* head size */

/* One token of one head of n channels; vectors [n] unless said. The state s is [n key][n value] (RWKV-7's
 * paper has it the other way round). Sums over the head are lanes and a tree as in the float rule, those over
 * keys chains of fma from 0 in ascending order. sigma(x) = 1 / (1 + exp(−x)).
 *   RWKV-7 (Peng et al. 2025)
 *     d = exp(−0.606531·sigma(w));  a = sigma(a)
 *     kk = k·k_k;  kk = kk·(1 / max(sqrt(Σkk²), 1e-12));  k = k·fma(a − 1, k_a, 1)
 *     v = v_first, or fma(v_first − v, sigma(v_mix), v) where v_mix is given
 *     z_i = Σ_j s[j][i]·(−kk_j);  s[j][i] = fma(z_i, kk_j·a_j, fma(v_i, k_j, s[j][i]·d_j));  y_i = Σ_j s[j][i]·r_j
 *     y = norm(y)·ln_w + ln_b;  y_i = fma(v_i, Σ_j (r_j·k_j)·r_k_j, y_i);  out = y·g
 *   RWKV-6 (Peng et al. 2024)
 *     d = exp(−exp(w));  y_j = Σ_i r_i·fma(first_i, k_i·v_j, s[i][j]) of the old s;  s[i][j] = fma(s[i][j], d_i,
 * k_i·v_j) out = (norm(y)·ln_w + ln_b)·g norm(y) = (y − Σy/n)·(1 / sqrt(Σ(y − Σy/n)²/n + eps)), then fma(·, ln_w,
 * ln_b). */
typedef struct hn_wkv {
    float *s, *out;
    const float *r, *k, *v, *w, *g;
    const float *ln_w, *ln_b;
    const float *a, *v_mix; /* RWKV-7; v_mix NULL in the first layer, which writes v_first */
    float *v_first;
    const float *k_k, *k_a, *r_k;
    const float *first; /* RWKV-6 */
    int32_t n;
    float eps;
} hn_wkv;
typedef void hn_wkv_fn(const hn_wkv *a);

/* ---- recurrences of hybrids ------------------------------------------------------------ */

enum { HN_MAX_TAPS = 16 };

/* One row of a causal convolution of each channel by itself: s = chain of fma(w[j], x[j]) over ascending taps j, the
 * oldest first, from +0; then + b; then silu(s) where it is asked for. */
typedef struct hn_conv_row {
    float *y;
    const float *const *x; /* [taps] rows of n, the newest last */
    const float *w, *b;    /* tap j of channel c at w[j·ldw + c]; b [n] or NULL */
    int64_t n, ldw;
    int32_t taps;
    bool silu;
} hn_conv_row;
typedef void hn_conv_fn(const hn_conv_row *a);

/* One token of one head of Mamba-2 (Dao and Gu 2024), p channels, n states of each, s [n][p]:
 *   s[j][i] = fma(s[j][i], decay, (dt·x_i)·b_j);  y_i = chain of fma(s[j][i], c_j) over ascending j from +0;
 *   y_i = fma(d, x_i, y_i) */
typedef struct hn_ssm_head {
    float *s, *y;
    const float *x, *b, *c;
    float dt, decay, d;
    int32_t p, n;
} hn_ssm_head;
typedef void hn_ssm_fn(const hn_ssm_head *a);

/* One token of p channels of Mamba (Gu and Dao 2023), each of which has steps and n decays of its own; rows of s and a
 * are lds and lda floats apart:
 *   s[j][i] = fma(s[j][i], exp(dt_i·a[j][i]), (dt_i·x_i)·b_j);  y_i = chain of fma(s[j][i], c_j) over ascending j from
 *   +0;  y_i = fma(d_i, x_i, y_i) */
typedef struct hn_scan_run {
    float *s, *y;
    const float *x, *dt, *a, *b, *c, *d;
    int64_t lds, lda, p;
    int32_t n;
} hn_scan_run;
typedef void hn_scan_fn(const hn_scan_run *a);

/* One token of one head of the gated delta rule (Yang et al. 2024), n ≤ HN_MAX_WKV keys and values, s [n key][n value];
 * with a decay for each key it is Kimi's (2025). Sums of squares and the norm are by the float rule.
 *   q = (q·(1/sqrt(Σq² + eps)))·(1/√n);  k = k·(1/sqrt(Σk² + eps));  g_j = exp(a·decay_j), or, of all, exp(a·decay_0)
 *   t_ji = s[j][i]·g_j;  z_i = chain of fma(t_ji, k_j) over ascending j from +0;  d_i = beta·(v_i − z_i)
 *   s[j][i] = fma(k_j, d_i, t_ji);  o_i = chain of fma(s[j][i], q_j);  out = rms_norm(o, norm)·map(gate) */
typedef struct hn_delta_head {
    float *s, *out;
    const float *q, *k, *v, *gate, *norm;
    const float *decay; /* [n] if each, else [1] */
    float a, beta, eps;
    bool each;
    bool sigmoid; /* is the map of gate; else silu */
    int32_t n;
} hn_delta_head;
typedef void hn_delta_fn(const hn_delta_head *a);

/* ---- products of training (train/gemm.c) ---------------------------------------------------- */

enum { HN_GEMM_ROWS = 6, HN_GEMM_COLS = 64, HN_GEMM_K = 256 };

/* rows ≤ 6 × cols ≤ 64 of C, over steps of one block of k. s = chain of fma(a, b, s) from 0 in ascending steps;
 * where not first, t + s; then to t, or, where last, times alpha unless it is 1, added to C where add is set, to C.
 * B is padded to whole vectors of 16 columns: what it holds past cols is read, not used. */
typedef struct hn_gemm_tile {
    const void *a, *b; /* words of row i, step k at a + i·a_row + k·a_step; of column j at b + k·b_step + j */
    float *t;          /* [rows][64], 64-byte aligned */
    float *c;
    int64_t a_row, a_step, b_step, ldc; /* words of 4 bytes */
    int64_t steps;
    int32_t rows, cols;
    float alpha;
    bool first, last, add;
} hn_gemm_tile;

/* dst[..][64] words of rows of n elements */
typedef void hn_gemm_pack_fn(void *dst, const void *src, size_t row_bytes, int64_t rows, int64_t n);

/* Operands of bf16 are rounded to nearest even, subnormals to zero of their sign, NaNs quieted. A step of the chain is
 * two: the odd element of a pair first, then the even one, s = fma(a, b, s), where s below 2^-126 (before it is rounded
 * to a subnormal) is zero of its sign; an odd number of k is filled up with 0. That is VDPBF16PS. Words are then
 * pairs, k in the low half, and a step is two k; or, where pairs is false, floats in the order k + 1, k. */
typedef struct hn_gemm_ops {
    void (*tile)(const hn_gemm_tile *t);
    void (*tile_bf16)(const hn_gemm_tile *t);
    bool pairs;
    /* Operands from floats src[rows][lds]; n is the columns, all or rows is the k of a block:
     * rows:      dst[rows][256] words, k along the columns
     * transpose: dst[k][ldd] words, k along the columns, rows ≤ 16; up to 16 words are written
     * copy:      dst[k][ldd] words, k along the rows */
    void (*rows)(void *dst, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16);
    void (*transpose)(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16);
    void (*copy)(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16);
    /* The same in pairs, straight from a type's rows, rows ≤ 16 or rows ≤ 2, any n; NULL: decoded first. */
    hn_gemm_pack_fn *columns_of[HN_TYPE_COUNT], *rows_of[HN_TYPE_COUNT];
} hn_gemm_ops;

/* ---- the table ---------------------------------------------------------------------------- */

typedef struct hn_kernels {
    const char *name;
    hn_matmul_fn *matmul[HN_TYPE_COUNT]; /* NULL: inherit the level below; below scalar: decode, then F32 */
    hn_matmul_fn *packed[HN_TYPE_COUNT]; /* comes with matmul[t]; NULL: the rows are used */
    void (*quantize256)(hn_a256 *dst, const float *x, int64_t n);
    void (*quantize32)(void *dst, const float *x, int64_t n);
    /* y = (x · (1/sqrt(Σx²/n + eps))) · w; w may be NULL: 1 */
    void (*rms_norm)(float *y, const float *x, const float *w, int64_t n, float eps);
    /* y = (g / (1 + exp(−g))) · u; y may be g or u */
    void (*silu_mul)(float *y, const float *g, const float *u, int64_t n);
    /* y = (g / (1 + exp(−2z))) · u, z = 0.79788456·fma(0.044715·(g·g), g, g): the tanh form of GELU; y may be g */
    void (*gelu_mul)(float *y, const float *g, const float *u, int64_t n);
    /* y = (g / (1 + exp(−1.702·g)))·(u + 1), g ≤ 7 and −7 ≤ u ≤ 7 first (gpt-oss); y may be g */
    void (*oai_mul)(float *y, const float *g, const float *u, int64_t n);
    /* y = hn_gelu_erf_inline(g)·u: GELU itself; y may be g */
    void (*gelu_erf_mul)(float *y, const float *g, const float *u, int64_t n);
    /* y = max(g, 0)·u; y may be g; a NaN stays one */
    void (*relu_mul)(float *y, const float *g, const float *u, int64_t n);
    /* training: of h = silu(g)·u and gh = dL/dh. s = 1/(1 + exp(−g)); gg = (gh·u)·(s·fma(g, 1 − s, 1)), gu = gh·(g·s);
     * gg may be gh or g, gu may be u */
    void (*silu_mul_grad)(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n);
    /* the same of h = gelu(g)·u, c = 0.044715·(g·g): s = 1/(1 + exp(−2z)), z as above, t = 2·0.79788456·fma(3, c, 1);
     * gg = (gh·u)·(s·fma(g·(1 − s), t, 1)), gu = gh·(g·s); u NULL: 1, and nothing goes to gu */
    void (*gelu_mul_grad)(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n);
    /* of y = (x·r)·w, r = 1/sqrt(Σx²/n + eps): gx += (gy·w − (x·r)·c)·r, c = Σ((gy·w)·x)·r/n; gx is not gy */
    void (*rms_norm_grad)(float *gx, const float *gy, const float *x, const float *w, int64_t n, float eps);
    void (*to_bf16)(uint16_t *y, const float *x, int64_t n); /* hn_f32_to_bf16 of each */
    const hn_gemm_ops *gemm;
    hn_dequantize_fn *decode[HN_TYPE_COUNT];          /* the type table's bits; NULL: its decoder */
    void (*exp)(float *y, const float *x, int64_t n); /* hn_exp_f32 of each; y may be x */
    /* y = fma((x − Σx/n)·(1/sqrt(Σ(x − Σx/n)²/n + eps)), w, b); y may be x; b may be NULL: +0 */
    void (*layer_norm)(float *y, const float *x, const float *w, const float *b, int64_t n, float eps);
    /* y = fma(prev − h, lerp, h), or with delta fma(prev − h, lerp + delta, h); y may be delta */
    void (*lerp)(float *y, const float *h, const float *prev, const float *lerp, const float *delta, int64_t n);
    void (*map[HN_MAP_KINDS])(float *y, int64_t n); /* in place; NONE is NULL */
    /* in place: above 0 x·fma(alpha_p, x, beta); else, with m = min(x, eps), fma(t + (m − x), alpha_n, beta·x), where
     * t = e^m − 1 − m: for m² < 1/4 m·m times its series of eight terms, else (e^m − 1) − m */
    void (*xielu)(float *y, int64_t n, const hn_xielu *a);
    hn_wkv_fn *wkv6, *wkv7;
    hn_conv_fn *conv;
    hn_ssm_fn *ssm;
    hn_scan_fn *scan;
    hn_delta_fn *delta;
    hn_attn_fn *attn[HN_CACHE_TYPES], *attn_latent[HN_CACHE_TYPES];
    /* out = the merge of n_split partial results, stride floats apart, and of *sink (NULL: none) */
    void (*attn_merge)(float *out, const float *part, int64_t stride, int64_t n_split, int64_t d, const float *sink);
    /* Writes one key, one value vector of d floats to position pos of a page. */
    void (*store_k[HN_CACHE_TYPES])(void *k, const float *x, int64_t d, int64_t pos);
    void (*store_v[HN_CACHE_TYPES])(void *v, const float *x, int64_t d, int64_t pos);
    /* y[i] = a chain of fma(b[j·ldb + i], h[j], ·) from y[i] over ascending j < rank */
    void (*low_rank)(float *y, const float *b, int64_t ldb, const float *h, int64_t rank, int64_t n);
} hn_kernels;

/* dst takes what src has. */
void hn_kernels_overlay(hn_kernels *dst, const hn_kernels *src);
/* The table of a level, holes filled from below. The level must be present. */
const hn_kernels *hn_kernels_get(hn_cpu_level level);

/* scalar_fma is scalar.c compiled with the FMA instruction: the same bits, since fmaf
 * is exact either way, without a library call for each; used where the CPU has it. */
extern const hn_kernels hn_kernels_scalar, hn_kernels_scalar_fma, hn_kernels_avx2, hn_kernels_avx512;
extern const hn_kernels hn_avx_vnni_kernels;                  /* over avx2 */
extern const hn_gemm_ops hn_gemm_avx512, hn_gemm_avx512_bf16; /* the latter where the CPU multiplies pairs of bf16 */
/* neon: floats; neon_int, neon_dotprod, neon_i8mm: the integer products over it */
extern const hn_kernels hn_kernels_neon, hn_kernels_neon_int, hn_kernels_neon_dotprod, hn_kernels_neon_i8mm;

/* ---- shared pieces, the same code on every level -------------------------------------------- */

/* tanh for |x| < 0.625 by an odd polynomial (Cephes' coefficients), else 1 − 2/(exp(2x) + 1) with its sign. */
#define HN_TANH_EDGE 0.625f
#define HN_TANH_C4 (-5.70498872745e-3f)
#define HN_TANH_C3 2.06390887954e-2f
#define HN_TANH_C2 (-5.37397155531e-2f)
#define HN_TANH_C1 1.33314422036e-1f
#define HN_TANH_C0 (-3.33332819422e-1f)
#define HN_RWKV7_DECAY (-0.606531f) /* −exp(−1/2), as the reference rounds it */

float hn_exp_f32(float x); /* the oracle of every vector exp; own polynomial */
/* y[i] = hn_exp_f32(x[i]) by the best level here; y may be x */
void hn_exp_many(float *y, const float *x, int64_t n);
/* sin and cos of a double, reduced in double; own polynomials; |x| < 2^30 */
void hn_sincos(double x, double *s, double *c);
double hn_exp2_f64(double x);
double hn_log2_f64(double x); /* x > 0, normal */

/* cos,sin pairs [n_rot/2][2] of pos·base^(−2i/n)/factor_i·freq_scale; factors may be NULL. */
void hn_rope_freqs(double *freq, int32_t n_rot, double base, const float *factors, double freq_scale);
void hn_rope_table(float *cs, const double *freq, int32_t n_rot, int64_t pos, float mscale);
/* Rotates n_head vectors of d floats; pairs (2i, 2i+1), or (i, i + n_rot/2) if neox. */
void hn_rope_apply(float *x, const float *cs, int64_t n_head, int64_t d, int32_t n_rot, bool neox);
void hn_add(float *y, const float *x, int64_t n); /* y += x */
/* Is every |x[i]| at most limit? Not where one is NaN. */
bool hn_all_within(const float *x, int64_t n, float limit);
/* Constants of exp, shared by all levels. e^x = 2^n·p(r), n = rne(x·log2 e), r = x − n·ln 2
 * in two parts; p by Horner in fma: Taylor coefficients, |r| ≤ 0.347, error < 1 ulp. */
#define HN_EXP_LO (-104.0f)
#define HN_EXP_HI 89.0f
#define HN_EXP_LOG2E 1.44269504f
#define HN_EXP_MAGIC 12582912.0f /* 1.5·2^23: adding it rounds to an integer */
#define HN_EXP_LN2_HI 0.693359375f
#define HN_EXP_LN2_LO (-2.12194440e-4f)
#define HN_EXP_C7 1.98412698e-4f
#define HN_EXP_C6 1.38888889e-3f
#define HN_EXP_C5 8.33333333e-3f
#define HN_EXP_C4 4.16666667e-2f
#define HN_EXP_C3 1.66666667e-1f
#define HN_EXP_C2 5.0e-1f

#define HN_TINY_AMAX 0x1p-100f

static inline float hn_exp_inline(float x)
{
    x = x < HN_EXP_LO ? HN_EXP_LO : x; /* NaN passes both */
    x = x > HN_EXP_HI ? HN_EXP_HI : x;
    float t = fmaf(x, HN_EXP_LOG2E, HN_EXP_MAGIC);
    float n = t - HN_EXP_MAGIC;
    float r = fmaf(n, -HN_EXP_LN2_HI, x);
    r = fmaf(n, -HN_EXP_LN2_LO, r);
    float p = HN_EXP_C7;
    p = fmaf(p, r, HN_EXP_C6);
    p = fmaf(p, r, HN_EXP_C5);
    p = fmaf(p, r, HN_EXP_C4);
    p = fmaf(p, r, HN_EXP_C3);
    p = fmaf(p, r, HN_EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* 2^n in two factors, so that results below 2^-126 and above 2^127 round by themselves */
    int32_t e = (int32_t)(hn_f32_bits(t) - hn_f32_bits(HN_EXP_MAGIC)), h = e >> 1;
    return p * hn_bits_f32((uint32_t)(h + 127) << 23) * hn_bits_f32((uint32_t)(e - h + 127) << 23);
}

static inline float hn_sigmoid_inline(float x) { return 1.0f / (1.0f + hn_exp_inline(-x)); }

#define HN_GELU_CUBE 0.044715f
#define HN_GELU_ROOT 0.79788456f /* sqrt(2/pi) */
static inline float hn_gelu_inline(float x)
{
    float z = HN_GELU_ROOT * fmaf(HN_GELU_CUBE * (x * x), x, x);
    return x / (1.0f + hn_exp_inline(-2.0f * z));
}

/* x·Φ(x) = max(x, 0) − |x|/2·erfc(|x|/√2); erfc(z) = exp(−z²)·(a1·t + … + a5·t⁵), t = 1/(1 + p·z), to 1.5e-7
 * (Abramowitz and Stegun, 7.1.26). A NaN stays one. */
#define HN_ERF_P 0.23164189f /* p/√2 */
#define HN_ERF_A1 0.254829592f
#define HN_ERF_A2 (-0.284496736f)
#define HN_ERF_A3 1.421413741f
#define HN_ERF_A4 (-1.453152027f)
#define HN_ERF_A5 1.061405429f
#define HN_ERF_FAR 16.0f /* nothing is left of erfc */
static inline float hn_gelu_erf_inline(float x)
{
    float a = x < 0.0f ? -x : x;
    a = a < HN_ERF_FAR ? a : HN_ERF_FAR;
    float t = 1.0f / fmaf(HN_ERF_P, a, 1.0f), p = fmaf(HN_ERF_A5, t, HN_ERF_A4);
    p = fmaf(p, t, HN_ERF_A3);
    p = fmaf(p, t, HN_ERF_A2);
    p = fmaf(p, t, HN_ERF_A1);
    float tail = (p * t) * hn_exp_inline((-0.5f * a) * a);
    return (x < 0.0f ? 0.0f : x) - (0.5f * a) * tail;
}

/* as gelu_mul_grad says; gu NULL: not wanted */
static inline void hn_gelu_grad_inline(float *gg, float *gu, float gh, float g, float u)
{
    float c = HN_GELU_CUBE * (g * g), z = HN_GELU_ROOT * fmaf(c, g, g), s = 1.0f / (1.0f + hn_exp_inline(-2.0f * z));
    float t = 2.0f * HN_GELU_ROOT * fmaf(3.0f, c, 1.0f);
    *gg = (gh * u) * (s * fmaf(g * (1.0f - s), t, 1.0f));
    if (gu) *gu = gh * (g * s);
}

#define HN_OAI_ALPHA 1.702f
#define HN_OAI_LIMIT 7.0f
/* A NaN stays one. */
static inline float hn_oai_inline(float g, float u)
{
    g = HN_OAI_LIMIT < g ? HN_OAI_LIMIT : g;
    u = HN_OAI_LIMIT < u ? HN_OAI_LIMIT : u;
    u = -HN_OAI_LIMIT > u ? -HN_OAI_LIMIT : u;
    return g / (1.0f + hn_exp_inline(-HN_OAI_ALPHA * g)) * (u + 1.0f);
}

/* e^m − 1 − m is m² times Σ m^(k−2)/k!, whose next term is below 2^-28 of it where the series is taken; beyond, what is
 * subtracted takes no more than three bits away. */
#define HN_XIELU_EDGE 0.25f /* of m² */
#define HN_XIELU_C2 0.5f
#define HN_XIELU_C3 0x1.555556p-3f
#define HN_XIELU_C4 0x1.555556p-5f
#define HN_XIELU_C5 0x1.111112p-7f
#define HN_XIELU_C6 0x1.6c16c2p-10f
#define HN_XIELU_C7 0x1.a01a02p-13f
#define HN_XIELU_C8 0x1.a01a02p-16f
#define HN_XIELU_C9 0x1.71de3ap-19f
static inline float hn_xielu_inline(float x, const hn_xielu *a)
{
    float m = x < a->eps ? x : a->eps, z = m * m, p = fmaf(HN_XIELU_C9, m, HN_XIELU_C8);
    p = fmaf(p, m, HN_XIELU_C7);
    p = fmaf(p, m, HN_XIELU_C6);
    p = fmaf(p, m, HN_XIELU_C5);
    p = fmaf(p, m, HN_XIELU_C4);
    p = fmaf(p, m, HN_XIELU_C3);
    p = fmaf(p, m, HN_XIELU_C2);
    float t = z < HN_XIELU_EDGE ? z * p : (hn_exp_inline(m) - 1.0f) - m;
    float below = fmaf(t + (m - x), a->alpha_n, a->beta * x), above = x * fmaf(a->alpha_p, x, a->beta);
    return 0.0f < x ? above : below;
}

/* log(1 + t) for t in [0, 1]: 2·atanh(t/(2 + t)) by its series in s = t/(2 + t) ≤ 1/3, whose next term is
 * below 2^-30. */
#define HN_LOG1P_C(k) (2.0f / (float)(2 * (k) + 1))
static inline float hn_softplus_inline(float x)
{
    float t = hn_exp_inline(x < 0.0f ? x : -x), s = t / (2.0f + t), z = s * s, p = HN_LOG1P_C(8);
    for (int k = 7; k >= 1; k--) p = fmaf(p, z, HN_LOG1P_C(k));
    return (x < 0.0f ? 0.0f : x) + fmaf(s * z, p, s + s);
}

static inline float hn_tanh_inline(float x)
{
    float z = x * x, p = HN_TANH_C4;
    p = fmaf(p, z, HN_TANH_C3);
    p = fmaf(p, z, HN_TANH_C2);
    p = fmaf(p, z, HN_TANH_C1);
    p = fmaf(p, z, HN_TANH_C0);
    p = fmaf(p * z, x, x);
    float far = 1.0f - 2.0f / (hn_exp_inline(x + x) + 1.0f);
    return z < HN_TANH_EDGE * HN_TANH_EDGE ? p : far;
}

#endif
