/* The products of training in plain C: the oracle of the tile, and the packing of levels
 * that have no better one. The contract is in kernels.h. */

static inline float gemm_bf16(float f) /* rounded as the bf16 instructions round */
{
    uint32_t u = hn_f32_bits(f);
    return hn_bits_f32(u & 0x7F800000 ? (uint32_t)hn_f32_to_bf16(f) << 16 : u & 0x80000000);
}

static void gemm_plain_rows(void *dst, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16)
{
    for (int64_t i = 0; i < rows; i++, src += lds) {
        float *d = (float *)dst + i * HN_GEMM_K;
        if (!bf16) {
            memcpy(d, src, (size_t)n * sizeof *d);
            continue;
        }
        if (n & 1) d[n - 1] = 0;
        for (int64_t k = 0; k < n; k++) d[k ^ 1] = gemm_bf16(src[k]);
    }
}

static void gemm_plain_transpose(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n,
                                 bool bf16)
{
    float *d = dst;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < rows; i++)
            d[(bf16 ? k ^ 1 : k) * ldd + i] = bf16 ? gemm_bf16(src[i * lds + k]) : src[i * lds + k];
    if (bf16 && (n & 1))
        for (int64_t i = 0; i < rows; i++) d[(n - 1) * ldd + i] = 0;
}

static void gemm_plain_copy(void *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int64_t n, bool bf16)
{
    for (int64_t k = 0; k < rows; k++, src += lds) {
        float *d = (float *)dst + (bf16 ? k ^ 1 : k) * ldd;
        if (!bf16) memcpy(d, src, (size_t)n * sizeof *d);
        else
            for (int64_t i = 0; i < n; i++) d[i] = gemm_bf16(src[i]);
    }
    if (bf16 && (rows & 1)) memset((float *)dst + (rows - 1) * ldd, 0, (size_t)n * sizeof(float));
}

/* fma with a result below 2^-126 as zero of its sign. Below is meant before rounding to a subnormal: what looks like
 * 2^-126 is looked at again, 2^100 times as large. Operands are normal or zero; a result this small has small ones. */
static inline float gemm_fma_flush(float a, float b, float c)
{
    float r = fmaf(a, b, c);
    if (!(fabsf(r) <= 0x1p-126f)) return r;
    return fabsf(fmaf(a * 0x1p50f, b * 0x1p50f, c * 0x1p100f)) < 0x1p-26f ? copysignf(0.0f, r) : r;
}

static inline void gemm_tile_of(const hn_gemm_tile *t, bool bf16)
{
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->cols; j++) {
            const float *a = (const float *)t->a + i * t->a_row, *b = (const float *)t->b + j;
            float s = 0, *c = t->c + i * t->ldc + j, *sum = t->t + i * HN_GEMM_COLS + j;
            for (int64_t k = 0; k < t->steps; k++, a += t->a_step, b += t->b_step)
                s = bf16 ? gemm_fma_flush(*a, *b, s) : fmaf(*a, *b, s);
            if (!t->first) s = *sum + s;
            if (!t->last) {
                *sum = s;
                continue;
            }
            if (t->alpha != 1.0f) s = t->alpha * s;
            *c = t->add ? *c + s : s;
        }
}
__attribute__((unused)) static void gemm_plain_tile(const hn_gemm_tile *t) { gemm_tile_of(t, false); }
__attribute__((unused)) static void gemm_plain_tile_bf16(const hn_gemm_tile *t) { gemm_tile_of(t, true); }
