/* The products of few columns of the AVX2 level, from rows as in the file: quantized ones, whose source AVX_VNNI
 * shares, and one column of floats. */
#if defined(__x86_64__)

#include "kernels/avx2.h"

#define NAME_ROWS(TYPE) hn_avx2_rows_##TYPE
#define NAME_PANEL(TYPE) hn_avx2_panel_##TYPE
#define PANEL_FROM(n) (n)
#include "kernels/avx2_rows.h"

/* ---- floats ------------------------------------------------------------------------------------------ */

/* Eight elements from p, in order. */
typedef __m256 widen_fn(const char *p);

INLINE __m256 widen_f32(const char *p) { return _mm256_castsi256_ps(load_in_order(p)); }
INLINE __m256 widen_f16(const char *p) { return _mm256_cvtph_ps(load_half_in_order(p)); }
INLINE __m256 widen_bf16(const char *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half_in_order(p)), 16));
}

/* all ones in the lanes below n */
INLINE __m256 first_lanes(int n)
{
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}
/* The contract's tree of sixteen lanes. */
INLINE float tree(__m256 a, __m256 b)
{
    __m256 s = _mm256_add_ps(a, b);
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
}

/* p += sixteen elements of a row times x */
INLINE void float_step(__m256 p[2], const char *w, const float *x, widen_fn *widen, int size)
{
    FOR(h, 2) p[h] = _mm256_fmadd_ps(widen(w + 8 * h * size), _mm256_loadu_ps(x + 8 * h), p[h]);
}
/* The same of the row's last n < 16. */
INLINE void float_last(__m256 p[2], const char *w, const float *x, int n, widen_fn *widen, int size)
{
    char wt[16 * sizeof(float)] = { 0 };
    float xt[16] = { 0 };
    memcpy(wt, w, (size_t)n * (size_t)size);
    memcpy(xt, x, (size_t)n * sizeof(float));
    FOR(h, 2) {
        __m256 s = _mm256_fmadd_ps(widen(wt + 8 * h * size), _mm256_loadu_ps(xt + 8 * h), p[h]);
        p[h] = _mm256_blendv_ps(p[h], s, first_lanes(n - 8 * h));
    }
}

enum { NEAR = 1024 }; /* bytes; more is slower (measured: docs/LAB.md) */

/* One column, row after row. Weights that may lie in a cache are asked for into the first one; others in streams. (Two
 * to four columns go four rows at a time, lanes_matmul.h: there loads of activations decide.) */
INLINE void float_rows(const hn_mm *m, widen_fn *widen, int size)
{
    const float *x = (const float *)column(m, 0);
    const bool far = worth_streams(row_of(m, m->r0), row_of(m, m->r1));
    begin_ahead(m->w, row_of(m, m->r0), row_of(m, m->r1), SEGMENT);
    for (int64_t r = m->r0; r < m->r1; r++) {
        const char *w = row_of(m, r);
        __m256 t[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
        for (int64_t b = 0; b < m->n_in; b += 256) {
            int64_t k = b, end = b + 256 < m->n_in ? b + 256 : m->n_in;
            __m256 p[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
            if (end - b == 256) { /* what is left of a row is too little to ask for more */
                const streams a = ahead_of(m->w, w, row_of(m, m->r1), SEGMENT);
                if (far)
                    FOR(i, 256 * size / 64) ask_ahead(&a, i);
                else
                    FOR(i, 256 * size / 64) fetch_line(w + NEAR + 64 * i);
            }
            for (; k + 32 <= end; k += 32, w += 32 * size) {
                float_step(p, w, x + k, widen, size);
                float_step(p, w + 16 * size, x + k + 16, widen, size);
            }
            if (k + 16 <= end) {
                float_step(p, w, x + k, widen, size);
                k += 16, w += 16 * size;
            }
            if (k < end) float_last(p, w, x + k, (int)(end - k), widen, size);
            FOR(h, 2) t[h] = b ? _mm256_add_ps(t[h], p[h]) : p[h];
        }
        m->y[r] = tree(t[0], t[1]);
    }
}

void hn_avx2_row_f32(const hn_mm *m) { float_rows(m, widen_f32, 4); }
void hn_avx2_row_f16(const hn_mm *m) { float_rows(m, widen_f16, 2); }
void hn_avx2_row_bf16(const hn_mm *m) { float_rows(m, widen_bf16, 2); }

#else
typedef int hn_no_avx2_rows; /* an empty file is not C */
#endif
