/* Own elementary functions and the small loops that need no level of their own.
 * Only +, −, ·, / and fmaf: the same bits with any compiler and C library. */
#include "kernels/kernels.h"

float hn_exp_f32(float x) { return hn_exp_inline(x); }

static double bits_f64(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

/* 2^x, |x| < 1000: split off the nearest integer, Taylor of e^(f·ln 2), |f| ≤ ½. */
double hn_exp2_f64(double x)
{
    double n = (x + 0x1.8p52) - 0x1.8p52, y = (x - n) * 0.693147180559945309417, p = 1.0;
    for (int k = 18; k >= 1; k--) p = 1.0 + p * y / k;
    return p * bits_f64((uint64_t)((int64_t)n + 1023) << 52);
}

/* log2 of a positive normal number: x = 2^e·m, m in [√½, √2); ln m = 2·atanh((m−1)/(m+1)). */
double hn_log2_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    int64_t e = (int64_t)(u >> 52 & 2047) - 1023;
    double m = bits_f64((u & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
    if (m > 1.41421356237309504880) m *= 0.5, e++;
    double z = (m - 1.0) / (m + 1.0), z2 = z * z, s = 0.0;
    for (int k = 23; k >= 1; k -= 2) s = s * z2 + 1.0 / k;
    return (double)e + 2.0 * z * s * 1.44269504088896340736;
}

void hn_sincos(double x, double *sn, double *cs)
{
    /* π/2 in three parts of 33, 33 and 53 bits: n·part is exact for |n| < 2^20, tiny beyond */
    static const double P1 = 0x1.921fb544p+0, P2 = 0x1.0b4611a6p-34, P3 = 0x1.3198a2e037073p-69;
    double n = (x * 0.636619772367581343076 + 0x1.8p52) - 0x1.8p52;
    double r = ((x - n * P1) - n * P2) - n * P3, r2 = r * r, s = 1.0, c = 1.0;
    for (int k = 19; k >= 3; k -= 2) s = 1.0 - s * r2 / (double)(k * (k - 1));
    for (int k = 20; k >= 2; k -= 2) c = 1.0 - c * r2 / (double)(k * (k - 1));
    s *= r;
    switch ((int64_t)n & 3) {
    case 0: *sn = s, *cs = c; break;
    case 1: *sn = c, *cs = -s; break;
    case 2: *sn = -s, *cs = -c; break;
    default: *sn = -c, *cs = s;
    }
}

void hn_rope_freqs(double *freq, int32_t n_rot, double base, const float *factors, double freq_scale)
{
    double l = hn_log2_f64(base);
    for (int32_t i = 0; i < n_rot / 2; i++) {
        double f = hn_exp2_f64(-2.0 * i / n_rot * l);
        freq[i] = (factors ? f / (double)factors[i] : f) * freq_scale;
    }
}

void hn_rope_table(float *cs, const double *freq, int32_t n_rot, int64_t pos, float mscale)
{
    for (int32_t i = 0; i < n_rot / 2; i++) {
        double s, c;
        hn_sincos((double)pos * freq[i], &s, &c);
        cs[2 * i] = (float)c * mscale;
        cs[2 * i + 1] = (float)s * mscale;
    }
}

/* Not a kernel of the levels: where the compiler has FMA, gcc 12 turns the pairs of this
 * loop into fused multiply-add-subtracts even under -ffp-contract=off. */
void hn_rope_apply(float *x, const float *cs, int64_t n_head, int64_t d, int32_t n_rot, bool neox)
{
    int64_t half = n_rot / 2;
    for (int64_t h = 0; h < n_head; h++, x += d) {
        if (neox)
            for (int64_t i = 0; i < half; i++) {
                float c = cs[2 * i], s = cs[2 * i + 1], a = x[i], b = x[i + half];
                x[i] = a * c - b * s;
                x[i + half] = a * s + b * c;
            }
        else
            for (int64_t i = 0; i < half; i++) {
                float c = cs[2 * i], s = cs[2 * i + 1], a = x[2 * i], b = x[2 * i + 1];
                x[2 * i] = a * c - b * s;
                x[2 * i + 1] = a * s + b * c;
            }
    }
}

/* No early end: such a loop becomes one of vectors, and what is looked for is hardly ever there. */
bool hn_all_within(const float *x, int64_t n, float limit)
{
    int32_t bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= !(fabsf(x[i]) <= limit);
    return !bad;
}

void hn_add(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}
