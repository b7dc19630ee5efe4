/* What each kernel reads and writes, said to the sanitizer before it does (watched.h); the arguments are those of
 * kernels.h. A level has functions of its own, for a pointer to a function knows no level. Elsewhere than under a
 * sanitizer this file compiles to nothing. */
#include "kernels/watched.h"

#if HN_WATCHED

static hn_kernels inner[HN_CPU_LEVELS];
static hn_gemm_ops gemm[HN_CPU_LEVELS];

#if HN_TSAN
extern void __tsan_read_range(void *p, long n);
extern void __tsan_write_range(void *p, long n);
static void tell_reads(void *p, size_t bytes) { __tsan_read_range(p, (long)bytes); }
static void tell_writes(void *p, size_t bytes) { __tsan_write_range(p, (long)bytes); }
#else
/* Without a halt unless the options ask for one, which they do where they say nothing. */
extern void __asan_loadN_noabort(void *p, long n);
extern void __asan_storeN_noabort(void *p, long n);
static void tell_reads(void *p, size_t bytes) { __asan_loadN_noabort(p, (long)bytes); }
static void tell_writes(void *p, size_t bytes) { __asan_storeN_noabort(p, (long)bytes); }
#endif

static void reads(const void *p, size_t bytes)
{
    if (p && bytes) tell_reads((void *)(uintptr_t)p, bytes);
}
static void writes(void *p, size_t bytes)
{
    if (p && bytes) tell_writes(p, bytes);
}
static void reads_f32(const float *p, int64_t n)
{
    if (n > 0) reads(p, (size_t)n * sizeof *p);
}
static void writes_f32(float *p, int64_t n)
{
    if (n > 0) writes(p, (size_t)n * sizeof *p);
}
/* Rows of `bytes`, `stride` bytes apart. */
static void reads_rows(const void *p, size_t stride, size_t bytes, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) reads((const char *)p + (size_t)i * stride, bytes);
}

/* ---- products --------------------------------------------------------------------------------------------------- */

static void product(const hn_mm *a, int type, bool packed)
{
    hn_act_kind kind = hn_act_kind_of((hn_type)type);
    size_t x = kind == HN_ACT_F32 ? (size_t)a->n_in * sizeof(float) : hn_act_row_bytes(kind, a->n_in);
    size_t w = packed ? a->w_stride : (size_t)hn_row_bytes(hn_type_get((hn_type)type), (uint64_t)a->n_in);
    int64_t of = packed ? HN_PACK_ROWS : 1, first = a->r0 / of, end = (a->r1 + of - 1) / of;
    /* Weights are written in whole rows or groups, once: whether that is over is seen at the first bytes of each. */
    if (HN_TSAN) w = 8;
    reads_rows((const char *)a->w + (size_t)first * a->w_stride, a->w_stride, w, end - first);
    reads_rows(a->x, a->x_stride, x, a->n_col);
    for (int64_t c = 0; c < a->n_col; c++) writes_f32(a->y + c * a->ldy + a->r0, a->r1 - a->r0);
    writes(a->panel, 1); /* another thread's scratch is another's from its first byte */
}

/* ---- attention -------------------------------------------------------------------------------------------------- */

/* Blocks of 16 positions that hold keys [lo, hi), or their values. Who writes a position writes all of it, its first
 * elements too: for ThreadSanitizer, which looks for two threads at a position, those are enough. */
static void reads_cache(const hn_attn *a, const void *base, int64_t d, hn_cache_type t, int64_t lo, int64_t hi,
                        bool rows)
{
    size_t block = hn_cache_block_bytes(t, d), row = block / HN_KEY_BLOCK;
    for (int64_t p = lo / HN_KEY_BLOCK * HN_KEY_BLOCK; p < hi; p += HN_KEY_BLOCK) {
        const char *at = (const char *)base + hn_attn_at(a, row, p);
        if (!HN_TSAN || t == HN_CACHE_Q8_0) reads(at, block);
        else if (rows) reads_rows(at, row, t == HN_CACHE_F16 ? 2 : 4, HN_KEY_BLOCK);
        else reads(at, row / (size_t)d * HN_KEY_BLOCK);
    }
}

/* Of token i. */
static int64_t first_key(const hn_attn *a, int64_t i)
{
    int64_t lo = a->window && a->n_kv + i > a->window ? a->n_kv + i - a->window : 0;
    return lo < a->split_first * HN_SPLIT ? a->split_first * HN_SPLIT : lo;
}
static int64_t end_of_keys(const hn_attn *a, int64_t i)
{
    int64_t hi = a->n_kv + i;
    return a->n_end && hi > a->n_end ? a->n_end : hi;
}

/* What is kept of a split, of those tokens that see it. */
static void writes_parts(const hn_attn *a, int64_t d_v)
{
    for (int64_t s = a->split0; s < a->split1; s++)
        for (int64_t i = 0; i < a->n_tok; i++)
            if (first_key(a, i) < (s + 1) * HN_SPLIT && end_of_keys(a, i) > s * HN_SPLIT)
                writes_f32(a->part + ((s - a->split0) * a->n_tok + i) * a->n_q * (d_v + 2), a->n_q * (d_v + 2));
}

static void attention(const hn_attn *a, hn_cache_type t, bool latent)
{
    int64_t lo = first_key(a, 0), hi = end_of_keys(a, a->n_tok - 1), d_v = a->d_v ? a->d_v : a->d;
    if (a->part) {
        lo = lo < a->split0 * HN_SPLIT ? a->split0 * HN_SPLIT : lo;
        hi = hi > a->split1 * HN_SPLIT ? a->split1 * HN_SPLIT : hi;
    }
    reads_cache(a, a->k, a->d, t, lo, hi, latent);
    if (!latent) reads_cache(a, a->v, d_v, t, lo, hi, true);
    for (int64_t i = 0; i < a->n_tok; i++) {
        reads_f32(a->q + i * a->q_stride, a->n_q * a->d);
        if (!a->part) writes_f32(a->out + i * a->out_stride, a->n_q * d_v);
    }
    if (a->part) writes_parts(a, d_v);
    reads_f32(a->sink, a->n_q);
    writes(a->scratch, 1);
}

static void merges(float *out, const float *part, int64_t stride, int64_t n_split, int64_t d, const float *sink)
{
    reads_rows(part, (size_t)stride * sizeof *part, (size_t)(d + 2) * sizeof *part, n_split);
    reads_f32(sink, 1);
    writes_f32(out, d);
}

/* A key's elements lie 16 positions apart, four at once of q8_0, with their scales behind the codes. */
static void stores_key(void *k, hn_cache_type t, int64_t d, int64_t pos)
{
    char *block = (char *)k + (size_t)(pos / HN_KEY_BLOCK) * hn_cache_block_bytes(t, d);
    size_t lane = (size_t)(pos % HN_KEY_BLOCK), one = t == HN_CACHE_F16 ? 2 : 4;
    int64_t n = t == HN_CACHE_Q8_0 ? hn_cache_d4(d) / 4 : d;
    for (int64_t i = 0; i < n; i++) writes(block + ((size_t)i * HN_KEY_BLOCK + lane) * one, one);
    for (int64_t g = 0; t == HN_CACHE_Q8_0 && g < hn_cache_groups(d); g++)
        writes(block + (size_t)hn_cache_d4(d) * HN_KEY_BLOCK + ((size_t)g * HN_KEY_BLOCK + lane) * 2, 2);
}

static void stores_value(void *v, hn_cache_type t, int64_t d, int64_t pos)
{
    char *block = (char *)v + (size_t)(pos / HN_KEY_BLOCK) * hn_cache_block_bytes(t, d);
    size_t lane = (size_t)(pos % HN_KEY_BLOCK), one = t == HN_CACHE_F16 ? 2 : 4, n_g = (size_t)hn_cache_groups(d);
    size_t row = t == HN_CACHE_Q8_0 ? (size_t)hn_cache_d4(d) : (size_t)d * one;
    writes(block + lane * row, row);
    if (t == HN_CACHE_Q8_0) writes(block + (size_t)hn_cache_d4(d) * HN_KEY_BLOCK + lane * n_g * 2, n_g * 2);
}

/* ---- recurrences ------------------------------------------------------------------------------------------------ */

static void recurrent_wkv(const hn_wkv *a)
{
    const float *const in[] = { a->r, a->k,     a->v,   a->w,   a->g,   a->ln_w, a->ln_b,
                                a->a, a->v_mix, a->k_k, a->k_a, a->r_k, a->first };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) reads_f32(in[i], a->n);
    if (a->v_first && a->v_mix) reads_f32(a->v_first, a->n);
    else writes_f32(a->v_first, a->n);
    writes_f32(a->s, (int64_t)a->n * a->n);
    writes_f32(a->out, a->n);
}

static void recurrent_conv(const hn_conv_row *a)
{
    for (int32_t j = 0; j < a->taps; j++) {
        reads_f32(a->x[j], a->n);
        reads_f32(a->w + j * a->ldw, a->n);
    }
    reads_f32(a->b, a->n);
    writes_f32(a->y, a->n);
}

static void recurrent_ssm(const hn_ssm_head *a)
{
    reads_f32(a->x, a->p);
    reads_f32(a->b, a->n);
    reads_f32(a->c, a->n);
    writes_f32(a->s, (int64_t)a->n * a->p);
    writes_f32(a->y, a->p);
}

static void recurrent_scan(const hn_scan_run *a)
{
    const float *const in[] = { a->x, a->dt, a->d };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) reads_f32(in[i], a->p);
    reads_f32(a->b, a->n);
    reads_f32(a->c, a->n);
    for (int32_t j = 0; j < a->n; j++) {
        reads_f32(a->a + j * a->lda, a->p);
        writes_f32(a->s + j * a->lds, a->p);
    }
    writes_f32(a->y, a->p);
}

static void recurrent_delta(const hn_delta_head *a)
{
    const float *const in[] = { a->q, a->k, a->v, a->gate, a->norm };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) reads_f32(in[i], a->n);
    reads_f32(a->decay, a->each ? a->n : 1);
    writes_f32(a->s, (int64_t)a->n * a->n);
    writes_f32(a->out, a->n);
}

/* ---- training --------------------------------------------------------------------------------------------------- */

static void tile(const hn_gemm_tile *t)
{
    for (int32_t i = 0; i < t->rows; i++) {
        writes_f32(t->t + i * HN_GEMM_COLS, t->cols);
        if (t->last) writes_f32(t->c + i * t->ldc, t->cols);
    }
}
static void packs(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++) reads_f32(src + i * lds, n);
    writes(dst, 4);
    (void)ldd;
}

/* ---- the entries of each level ---------------------------------------------------------------------------------- */

/* Of types, by number: a pointer to a function knows no type either. */
#define TYPES(X, L) \
    X(L, 0)         \
    X(L, 1)         \
    X(L, 2)         \
    X(L, 3)         \
    X(L, 4)         \
    X(L, 5)         \
    X(L, 6)         \
    X(L, 7)         \
    X(L, 8)         \
    X(L, 9)         \
    X(L, 10)        \
    X(L, 11)        \
    X(L, 12)        \
    X(L, 13)        \
    X(L, 14)        \
    X(L, 15)        \
    X(L, 16)        \
    X(L, 17)        \
    X(L, 18)        \
    X(L, 19)        \
    X(L, 20)        \
    X(L, 21)        \
    X(L, 22)        \
    X(L, 23)        \
    X(L, 24)        \
    X(L, 25)        \
    X(L, 26)        \
    X(L, 27)        \
    X(L, 28)        \
    X(L, 29)        \
    X(L, 30) X(L, 31) X(L, 32) X(L, 33) X(L, 34) X(L, 35) X(L, 36) X(L, 37) X(L, 38) X(L, 39) X(L, 40) X(L, 41) X(L, 42)
_Static_assert(HN_TYPE_COUNT == 43, "TYPES names each of them");

#define OF_TYPE(L, T)                                                  \
    static void matmul_##L##_##T(const hn_mm *a)                       \
    {                                                                  \
        product(a, T, false);                                          \
        inner[L].matmul[T](a);                                         \
    }                                                                  \
    static void packed_##L##_##T(const hn_mm *a)                       \
    {                                                                  \
        product(a, T, true);                                           \
        inner[L].packed[T](a);                                         \
    }                                                                  \
    static void decode_##L##_##T(float *y, const void *src, int64_t n) \
    {                                                                  \
        reads(src, (size_t)hn_row_bytes(hn_type_get(T), (uint64_t)n)); \
        writes_f32(y, n);                                              \
        inner[L].decode[T](y, src, n);                                 \
    }
#define PUT_TYPE(L, T)                                 \
    if (k->matmul[T]) k->matmul[T] = matmul_##L##_##T; \
    if (k->packed[T]) k->packed[T] = packed_##L##_##T; \
    if (k->decode[T]) k->decode[T] = decode_##L##_##T;

#define OF_CACHE(L, T)                                                             \
    static void attn_##L##_##T(const hn_attn *a)                                   \
    {                                                                              \
        attention(a, T, false);                                                    \
        inner[L].attn[T](a);                                                       \
    }                                                                              \
    static void latent_##L##_##T(const hn_attn *a)                                 \
    {                                                                              \
        attention(a, T, true);                                                     \
        inner[L].attn_latent[T](a);                                                \
    }                                                                              \
    static void store_k_##L##_##T(void *k, const float *x, int64_t d, int64_t pos) \
    {                                                                              \
        reads_f32(x, d);                                                           \
        stores_key(k, T, d, pos);                                                  \
        inner[L].store_k[T](k, x, d, pos);                                         \
    }                                                                              \
    static void store_v_##L##_##T(void *v, const float *x, int64_t d, int64_t pos) \
    {                                                                              \
        reads_f32(x, d);                                                           \
        stores_value(v, T, d, pos);                                                \
        inner[L].store_v[T](v, x, d, pos);                                         \
    }
#define PUT_CACHE(L, T)                                          \
    if (k->attn[T]) k->attn[T] = attn_##L##_##T;                 \
    if (k->attn_latent[T]) k->attn_latent[T] = latent_##L##_##T; \
    if (k->store_k[T]) k->store_k[T] = store_k_##L##_##T;        \
    if (k->store_v[T]) k->store_v[T] = store_v_##L##_##T;

#define OF_MAP(L, M)                               \
    static void map_##L##_##M(float *y, int64_t n) \
    {                                              \
        writes_f32(y, n);                          \
        inner[L].map[M](y, n);                     \
    }
#define PUT_MAP(L, M) \
    if (k->map[M]) k->map[M] = map_##L##_##M;
#define MAPS(X, L) X(L, 0) X(L, 1) X(L, 2) X(L, 3) X(L, 4) X(L, 5) X(L, 6) X(L, 7)
_Static_assert(HN_MAP_KINDS == 8, "MAPS names each of them");
#define CACHES(X, L) X(L, 0) X(L, 1) X(L, 2)
_Static_assert(HN_CACHE_TYPES == 3, "CACHES names each of them");

#define GLU(L, NAME)                                                            \
    static void NAME##_##L(float *y, const float *g, const float *u, int64_t n) \
    {                                                                           \
        reads_f32(g, n), reads_f32(u, n), writes_f32(y, n);                     \
        inner[L].NAME(y, g, u, n);                                              \
    }
#define GLU_GRAD(L, NAME)                                                                                    \
    static void NAME##_##L(float *gg, float *gu, const float *gh, const float *g, const float *u, int64_t n) \
    {                                                                                                        \
        reads_f32(gh, n), reads_f32(g, n), reads_f32(u, n);                                                  \
        writes_f32(gg, n), writes_f32(u ? gu : NULL, n);                                                     \
        inner[L].NAME(gg, gu, gh, g, u, n);                                                                  \
    }
#define RECURRENT(L, NAME, STRUCT, TELL)    \
    static void NAME##_##L(const STRUCT *a) \
    {                                       \
        TELL(a);                            \
        inner[L].NAME(a);                   \
    }
#define TILE(L, NAME)                             \
    static void NAME##_##L(const hn_gemm_tile *t) \
    {                                             \
        tile(t);                                  \
        inner[L].gemm->NAME(t);                   \
    }
#define PACK(L, NAME)                                                                                                 \
    static void NAME##_##L(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16) \
    {                                                                                                                 \
        packs(dst, ldd, src, lds, rows, n);                                                                           \
        inner[L].gemm->NAME(dst, ldd, src, lds, rows, n, bf16);                                                       \
    }

#define OF_LEVEL(L)                                                                                                   \
    TYPES(OF_TYPE, L)                                                                                                 \
    CACHES(OF_CACHE, L)                                                                                               \
    MAPS(OF_MAP, L)                                                                                                   \
    GLU(L, silu_mul)                                                                                                  \
    GLU(L, gelu_mul)                                                                                                  \
    GLU(L, gelu_erf_mul)                                                                                              \
    GLU(L, oai_mul)                                                                                                   \
    GLU(L, relu_mul)                                                                                                  \
    static void xielu_##L(float *y, int64_t n, const hn_xielu *a)                                                     \
    {                                                                                                                 \
        writes_f32(y, n);                                                                                             \
        inner[L].xielu(y, n, a);                                                                                      \
    }                                                                                                                 \
    GLU_GRAD(L, silu_mul_grad)                                                                                        \
    GLU_GRAD(L, gelu_mul_grad)                                                                                        \
    RECURRENT(L, wkv6, hn_wkv, recurrent_wkv)                                                                         \
    RECURRENT(L, wkv7, hn_wkv, recurrent_wkv)                                                                         \
    RECURRENT(L, conv, hn_conv_row, recurrent_conv)                                                                   \
    RECURRENT(L, ssm, hn_ssm_head, recurrent_ssm)                                                                     \
    RECURRENT(L, scan, hn_scan_run, recurrent_scan)                                                                   \
    RECURRENT(L, delta, hn_delta_head, recurrent_delta)                                                               \
    TILE(L, tile)                                                                                                     \
    TILE(L, tile_bf16)                                                                                                \
    PACK(L, transpose)                                                                                                \
    PACK(L, copy) static void rows_##L(void *dst, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16)  \
    {                                                                                                                 \
        packs(dst, 0, src, lds, rows, n);                                                                             \
        inner[L].gemm->rows(dst, src, lds, rows, n, bf16);                                                            \
    }                                                                                                                 \
    static void quantize256_##L(hn_a256 *dst, const float *x, int64_t n)                                              \
    {                                                                                                                 \
        reads_f32(x, n), writes(dst, hn_act_row_bytes(HN_ACT_Q256, n));                                               \
        inner[L].quantize256(dst, x, n);                                                                              \
    }                                                                                                                 \
    static void quantize32_##L(void *dst, const float *x, int64_t n)                                                  \
    {                                                                                                                 \
        reads_f32(x, n), writes(dst, hn_act_row_bytes(HN_ACT_Q32, n));                                                \
        inner[L].quantize32(dst, x, n);                                                                               \
    }                                                                                                                 \
    static void rms_norm_##L(float *y, const float *x, const float *w, int64_t n, float eps)                          \
    {                                                                                                                 \
        reads_f32(x, n), reads_f32(w, n), writes_f32(y, n);                                                           \
        inner[L].rms_norm(y, x, w, n, eps);                                                                           \
    }                                                                                                                 \
    static void rms_norm_grad_##L(float *gx, const float *gy, const float *x, const float *w, int64_t n, float eps)   \
    {                                                                                                                 \
        reads_f32(gy, n), reads_f32(x, n), reads_f32(w, n), writes_f32(gx, n);                                        \
        inner[L].rms_norm_grad(gx, gy, x, w, n, eps);                                                                 \
    }                                                                                                                 \
    static void to_bf16_##L(uint16_t *y, const float *x, int64_t n)                                                   \
    {                                                                                                                 \
        reads_f32(x, n), writes(y, (size_t)n * sizeof *y);                                                            \
        inner[L].to_bf16(y, x, n);                                                                                    \
    }                                                                                                                 \
    static void exp_##L(float *y, const float *x, int64_t n)                                                          \
    {                                                                                                                 \
        reads_f32(x, n), writes_f32(y, n);                                                                            \
        inner[L].exp(y, x, n);                                                                                        \
    }                                                                                                                 \
    static void layer_norm_##L(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)        \
    {                                                                                                                 \
        reads_f32(x, n), reads_f32(w, n), reads_f32(b, n), writes_f32(y, n);                                          \
        inner[L].layer_norm(y, x, w, b, n, eps);                                                                      \
    }                                                                                                                 \
    static void lerp_##L(float *y, const float *h, const float *prev, const float *by, const float *delta, int64_t n) \
    {                                                                                                                 \
        reads_f32(h, n), reads_f32(prev, n), reads_f32(by, n), reads_f32(delta, n), writes_f32(y, n);                 \
        inner[L].lerp(y, h, prev, by, delta, n);                                                                      \
    }                                                                                                                 \
    static void attn_merge_##L(float *out, const float *part, int64_t stride, int64_t n, int64_t d, const float *s)   \
    {                                                                                                                 \
        merges(out, part, stride, n, d, s);                                                                           \
        inner[L].attn_merge(out, part, stride, n, d, s);                                                              \
    }                                                                                                                 \
    static void low_rank_##L(float *y, const float *b, int64_t ldb, const float *h, int64_t rank, int64_t n)          \
    {                                                                                                                 \
        for (int64_t j = 0; j < rank; j++) reads_f32(b + j * ldb, n);                                                 \
        reads_f32(h, rank), writes_f32(y, n);                                                                         \
        inner[L].low_rank(y, b, ldb, h, rank, n);                                                                     \
    }                                                                                                                 \
    static void watch_##L(hn_kernels *k)                                                                              \
    {                                                                                                                 \
        inner[L] = *k;                                                                                                \
        gemm[L] = *k->gemm;                                                                                           \
        gemm[L].tile = tile_##L, gemm[L].tile_bf16 = tile_bf16_##L, gemm[L].rows = rows_##L;                          \
        gemm[L].transpose = transpose_##L, gemm[L].copy = copy_##L;                                                   \
        k->gemm = &gemm[L];                                                                                           \
        TYPES(PUT_TYPE, L)                                                                                            \
        CACHES(PUT_CACHE, L)                                                                                          \
        MAPS(PUT_MAP, L)                                                                                              \
        k->silu_mul = silu_mul_##L, k->gelu_mul = gelu_mul_##L, k->oai_mul = oai_mul_##L;                             \
        k->gelu_erf_mul = gelu_erf_mul_##L, k->relu_mul = relu_mul_##L, k->xielu = xielu_##L;                         \
        k->silu_mul_grad = silu_mul_grad_##L, k->gelu_mul_grad = gelu_mul_grad_##L;                                   \
        k->wkv6 = wkv6_##L, k->wkv7 = wkv7_##L, k->conv = conv_##L, k->ssm = ssm_##L, k->scan = scan_##L;             \
        k->delta = delta_##L;                                                                                         \
        k->quantize256 = quantize256_##L, k->quantize32 = quantize32_##L, k->to_bf16 = to_bf16_##L;                   \
        k->rms_norm = rms_norm_##L, k->rms_norm_grad = rms_norm_grad_##L, k->layer_norm = layer_norm_##L;             \
        k->exp = exp_##L, k->lerp = lerp_##L, k->attn_merge = attn_merge_##L, k->low_rank = low_rank_##L;             \
    }

/* Numbers, as hn_cpu_level has them: names would be pasted as names. */
OF_LEVEL(0)
#if defined(__x86_64__)
OF_LEVEL(1)
OF_LEVEL(2)
OF_LEVEL(3) _Static_assert(HN_CPU_SCALAR == 0 && HN_CPU_AVX2 == 1 && HN_CPU_AVX512 == 3, "levels by number");
#elif defined(__aarch64__)
OF_LEVEL(4) OF_LEVEL(5) OF_LEVEL(6) _Static_assert(HN_CPU_NEON == 4 && HN_CPU_NEON_I8MM == 6, "levels by number");
#endif

void hn_kernels_watch(hn_kernels tables[HN_CPU_LEVELS])
{
    watch_0(&tables[0]);
#if defined(__x86_64__)
    watch_1(&tables[1]), watch_2(&tables[2]), watch_3(&tables[3]);
#elif defined(__aarch64__)
    watch_4(&tables[4]), watch_5(&tables[5]), watch_6(&tables[6]);
#endif
}

#endif
