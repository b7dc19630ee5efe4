/* quantize_simple: encoders of scalars, of the one-level blocks and of the ternary types.
 * They follow the reference encoders (ggml-org/ggml:src/ggml-quants.c) operation by
 * operation in f32, so files come out byte-identical. Values must be finite; others
 * give some code, never undefined behaviour. Rows are independent. */
#include "quant/codecs.h"

#include <math.h>

void hn_q_f32(void *dst, const float *x, int64_t n, const float *importance) { memcpy(dst, x, (size_t)n * 4); }

/* hn_f32_to_f16 without branches: all four cases are computed, so that a compiler can do several numbers at once. */
static inline uint16_t to_f16(float x)
{
    const uint32_t u = hn_f32_bits(x), s = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    const uint32_t normal = ((a + 0xFFF + (a >> 13 & 1)) >> 13) - (112 << 10);
    const uint32_t small = hn_f32_bits(hn_bits_f32(a) + 0.5f) - 0x3F000000;
    uint32_t h = a < 0x38800000 ? small : normal;
    h = a >= 0x477FF000 ? 0x7C00 : h;
    h = a > 0x7F800000 ? 0x7E00 | (a >> 13 & 0x3FF) : h;
    return (uint16_t)(s | h);
}

void hn_q_f16(void *dst, const float *x, int64_t n, const float *importance)
{
    uint8_t *b = dst;
    for (int64_t i = 0; i < n; i++) hn_put_u16(b + 2 * i, to_f16(x[i]));
}

void hn_q_bf16(void *dst, const float *x, int64_t n, const float *importance)
{
    uint8_t *b = dst;
    for (int64_t i = 0; i < n; i++) hn_put_u16(b + 2 * i, hn_f32_to_bf16(x[i]));
}

/* v truncated into [lo, hi]; NaN gives lo. */
static inline int trunc_to(float v, int lo, int hi) { return v >= (float)hi ? hi : v > (float)lo ? (int)v : lo; }

/* trunc_to(roundf(v), lo, hi): halves away from zero. Of numbers within [lo, hi] that is a truncation and what it left,
 * which is exact, and no call of a function for each. */
static inline int round_to(float v, int lo, int hi)
{
    v = v > (float)lo ? v : (float)lo;
    v = v < (float)hi ? v : (float)hi;
    const int whole = (int)v;
    const float rest = v - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static float amax_of(int n, const float *x) { return fabsf(hn_extreme(n, x)); }

void hn_q_q8_0(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 34) {
        float d = amax_of(32, x) / 127, id = d != 0 ? 1 / d : 0;
        hn_put_f16(b, d);
        for (int i = 0; i < 32; i++) b[2 + i] = (uint8_t)(int8_t)round_to(x[i] * id, -128, 127);
    }
}

/* Packs the codes of a 32-element block: low nibbles 0-15, high nibbles 16-31, and the
 * fifth bits, where there are any, into *high. */
static void pack32(uint8_t *q, uint32_t *high, const uint8_t *codes)
{
    uint32_t h = 0;
    for (int i = 0; i < 32; i++) h |= (uint32_t)(codes[i] >> 4 & 1) << i;
    for (int i = 0; i < 16; i++) q[i] = (uint8_t)((codes[i] & 15) | codes[i + 16] << 4);
    if (high) *high = h;
}

static float mean_square(int64_t n, const float *x)
{
    float s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    return s / (float)n;
}

static void row_weights(float w[32], const float *x, const float *importance, float sigma2)
{
    for (int i = 0; i < 32; i++) w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
}

/* Q4_0 (half 8) and Q5_0 (half 16): the extreme value gets code 0. */
static float encode_sym(uint8_t codes[32], const float *x, const float *importance, float sigma2, int half)
{
    if (importance) {
        float w[32];
        row_weights(w, x, importance, sigma2);
        return hn_search_sym(32, half, x, w, codes);
    }
    float d = hn_extreme(32, x) / (float)-half, id = d != 0 ? 1 / d : 0;
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)trunc_to(x[i] * id + ((float)half + 0.5f), 0, 2 * half - 1);
    return d;
}

/* Q4_1 (top 15) and Q5_1 (top 31): d and minimum. */
static float encode_asym(uint8_t codes[32], float *min, const float *x, const float *importance, float sigma2, int top)
{
    if (importance) {
        float w[32], offset;
        row_weights(w, x, importance, sigma2);
        float d = hn_search_asym(32, top, x, w, (hn_scan){ -0.9f, 0.05f, 36, false }, codes, &offset);
        *min = -offset;
        return d;
    }
    float lo = x[0], hi = x[0];
    for (int i = 1; i < 32; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    float d = (hi - lo) / (float)top, id = d != 0 ? 1 / d : 0;
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)trunc_to((x[i] - lo) * id + 0.5f, 0, top);
    *min = lo;
    return d;
}

void hn_q_q4_0(void *dst, const float *x, int64_t n, const float *importance)
{
    float sigma2 = importance ? mean_square(n, x) : 0;
    uint8_t c[32];
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 18) {
        hn_put_f16(b, encode_sym(c, x, importance, sigma2, 8));
        pack32(b + 2, NULL, c);
        if (importance) importance += 32;
    }
}

void hn_q_q4_1(void *dst, const float *x, int64_t n, const float *importance)
{
    float sigma2 = importance ? mean_square(n, x) : 0, min;
    uint8_t c[32];
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 20) {
        hn_put_f16(b, encode_asym(c, &min, x, importance, sigma2, 15));
        hn_put_f16(b + 2, min);
        pack32(b + 4, NULL, c);
        if (importance) importance += 32;
    }
}

void hn_q_q5_0(void *dst, const float *x, int64_t n, const float *importance)
{
    float sigma2 = importance ? mean_square(n, x) : 0;
    uint8_t c[32];
    uint32_t high;
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 22) {
        hn_put_f16(b, encode_sym(c, x, importance, sigma2, 16));
        pack32(b + 6, &high, c);
        hn_put_u32(b + 2, high);
        if (importance) importance += 32;
    }
}

void hn_q_q5_1(void *dst, const float *x, int64_t n, const float *importance)
{
    float sigma2 = importance ? mean_square(n, x) : 0, min;
    uint8_t c[32];
    uint32_t high;
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 24) {
        hn_put_f16(b, encode_asym(c, &min, x, importance, sigma2, 31));
        hn_put_f16(b + 2, min);
        pack32(b + 8, &high, c);
        hn_put_u32(b + 4, high);
        if (importance) importance += 32;
    }
}

/* The same as nearest_e2m1 where d is a power of two and |x| < 16 d: the middles between two values, and all that
 * decides between them, are exact then. */
static int e2m1_of_power(float x, float d)
{
    const float t = fabsf(x);
    const int below_4 = (t > 0.5f * d) + (t > 1.5f * d) + (t > 2.5f * d) + (t > 3.5f * d);
    const int c = below_4 + (t > 5 * d) + (t > 7 * d) + (t > 10 * d);
    return c | (x < 0 && c > 0 ? 8 : 0);
}

/* Code of the e2m1 value nearest to x at scale d; on ties the first, so never -0. */
static int nearest_e2m1(float x, float d)
{
    int best = 0;
    float err = fabsf(x);
    for (int c = 1; c < 16; c++) {
        float e = fabsf(d * (float)hn_e2m1_doubled[c] - x);
        if (e < err) {
            err = e;
            best = c;
        }
    }
    return best;
}

void hn_q_mxfp4(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 17) {
        float amax = amax_of(32, x);
        int e2 = 0;
        frexpf(amax, &e2); /* amax = m * 2^e2 with m in [0.5, 1): floor(log2 amax) = e2 - 1 */
        int e = amax > 0 ? e2 - 1 - 2 + 127 : 0;
        e = e < 0 ? 0 : e > 254 ? 254 : e;
        float d = ldexpf(1, e - 128);
        b[0] = (uint8_t)e;
        for (int i = 0; i < 16; i++) b[1 + i] = (uint8_t)(e2m1_of_power(x[i], d) | e2m1_of_power(x[i + 16], d) << 4);
    }
}

uint8_t hn_f32_to_ue4m3(float x)
{
    if (!(x > 0)) return 0;
    if (x > 448) x = 448;
    uint32_t u = hn_f32_bits(x);
    int e = (int)(u >> 23) - 127 + 7;
    if (e <= 0) {
        int m = (int)(x * 512 + 0.5f);
        return (uint8_t)(m > 7 ? 7 : m);
    }
    uint32_t m = (u >> 20 & 7) + (u >> 19 & 1); /* round half up */
    if (m > 7) {
        m = 0;
        e++;
    }
    return (uint8_t)(e >= 15 ? 126 : (uint32_t)e << 3 | m);
}

void hn_q_nvfp4(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 64, b += 36)
        for (int s = 0; s < 4; s++, x += 16) {
            b[s] = hn_f32_to_ue4m3(amax_of(16, x) / 6);
            float d = 0.5f * hn_ue4m3_to_f32(b[s]);
            for (int r = 0; r < 8; r++)
                b[4 + 8 * s + r] = (uint8_t)(nearest_e2m1(x[r], d) | nearest_e2m1(x[r + 8], d) << 4);
        }
}

void hn_q_q1_0(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 128, x += 128, b += 18) {
        float sum = 0;
        memset(b + 2, 0, 16);
        for (int i = 0; i < 128; i++) {
            sum += fabsf(x[i]);
            b[2 + (i >> 3)] |= (uint8_t)((x[i] >= 0) << (i & 7));
        }
        hn_put_f16(b, sum / 128);
    }
}

/* Code 0, 1, 2 (3 for a rounding above the maximum) of x at scale d = max |x|. */
static int ternary(float x, float id) { return round_to(x * id, -1, 1) + 1; }

void hn_q_q2_0(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 64, x += 64, b += 18) {
        float d = amax_of(64, x), id = d > 0 ? 1 / d : 0;
        hn_put_f16(b, d);
        memset(b + 2, 0, 16);
        for (int i = 0; i < 64; i++) b[2 + (i >> 2)] |= (uint8_t)(ternary(x[i], id) << 2 * (i & 3));
    }
}

void hn_q_tq1_0(void *dst, const float *x, int64_t n, const float *importance)
{
    static const struct {
        int bytes, trits;
    } part[3] = { { 32, 5 }, { 16, 5 }, { 4, 4 } };
    for (uint8_t *b = dst; n > 0; n -= 256, b += 54) {
        float d = amax_of(256, x), id = d != 0 ? 1 / d : 0;
        hn_put_f16(b + 52, d);
        uint8_t *q = b;
        for (int p = 0; p < 3; p++) {
            for (int i = 0; i < part[p].bytes; i++) {
                int v = 0;
                for (int z = 0; z < 5; z++) v = 3 * v + (z < part[p].trits ? ternary(x[z * part[p].bytes + i], id) : 0);
                *q++ = (uint8_t)((v * 256 + 242) / 243); /* rounded up, so that digits survive */
            }
            x += part[p].bytes * part[p].trits;
        }
    }
}

void hn_q_tq2_0(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 256, b += 66) {
        float d = amax_of(256, x), id = d != 0 ? 1 / d : 0;
        hn_put_f16(b + 64, d);
        for (int half = 0; half < 2; half++, x += 128)
            for (int l = 0; l < 32; l++) {
                int q = 0;
                for (int j = 0; j < 4; j++) q |= ternary(x[l + 32 * j], id) << 2 * j;
                b[32 * half + l] = (uint8_t)q;
            }
    }
}
