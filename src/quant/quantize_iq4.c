/* quantize_iq4: encoders of IQ4_NL and IQ4_XS: a search over the scale of each 32 elements
 * with codes of the fixed 16-entry table. Operation order: ggml-org/ggml:src/ggml-quants.c. */
#include "quant/codecs.h"

#include <math.h>

/* Halfway points between neighbouring table entries. */
static const float mid[15] = { -115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101 };

/* codes[i] = index of the table entry nearest to f * x[i], ties to the larger one: the number
 * of halfway points not above it. (The differences to both neighbours are exact in f32
 * near a halfway point, so this equals comparing them.) */
static void nearest32(int32_t *restrict codes, const float *restrict x, float f)
{
    float v[32];
    for (int i = 0; i < 32; i++) v[i] = f * x[i];
    for (int i = 0; i < 32; i++) codes[i] = 0;
    for (int k = 0; k < 15; k++)
        for (int i = 0; i < 32; i++) codes[i] += v[i] >= mid[k];
}

/* Unrounded scale of one sub-block of 32. sigma2 is used with importance only. */
static float search(const float *x, const float *importance, float sigma2)
{
    float w[32], xm = 0, amax = 0, scale = 0, best = 0;
    for (int i = 0; i < 32; i++) {
        w[i] = importance ? importance[i] * sqrtf(sigma2 + x[i] * x[i]) : x[i] * x[i];
        if (fabsf(x[i]) > amax) {
            amax = fabsf(x[i]);
            xm = x[i];
        }
    }
    if (amax < 1e-15f) return 0;
    for (int k = -8; k <= 7; k++) { /* -8 stands for the first candidate, at the table's end */
        float f = k == -8 ? 1 / (-xm / (float)hn_iq4_levels[0]) : ((float)k + (float)hn_iq4_levels[0]) / xm;
        int32_t codes[32];
        float qx = 0, qq = 0;
        nearest32(codes, x, f);
        for (int i = 0; i < 32; i++) {
            float q = (float)hn_iq4_levels[codes[i]], wq = w[i] * q;
            qx += wq * x[i];
            qq += wq * q;
        }
        if (k == -8) {
            scale = qq > 0 ? qx / qq : 0;
            best = scale * qx;
        } else if (qq > 0 && qx * qx > best * qq) {
            scale = qx / qq;
            best = scale * qx;
        }
    }
    return scale;
}

static void encode32(uint8_t q[16], const float *x, float id)
{
    int32_t codes[32];
    nearest32(codes, x, id);
    for (int i = 0; i < 16; i++) q[i] = (uint8_t)(codes[i] | codes[i + 16] << 4);
}

static float two_mean_squares(int n, const float *x)
{
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s * 2 / (float)n;
}

void hn_q_iq4_nl(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 32, x += 32, b += 18) {
        float s = search(x, importance, importance ? two_mean_squares(32, x) : 0);
        hn_put_f16(b, s);
        encode32(b + 2, x, s != 0 ? 1 / s : 0);
        if (importance) importance += 32;
    }
}

void hn_q_iq4_xs(void *dst, const float *x, int64_t n, const float *importance)
{
    for (uint8_t *b = dst; n > 0; n -= 256, x += 256, b += 136) {
        float sigma2 = importance ? two_mean_squares(256, x) : 0, scale[8], sm = 0, amax = 0;
        for (int s = 0; s < 8; s++) {
            scale[s] = search(x + 32 * s, importance ? importance + 32 * s : NULL, sigma2);
            if (fabsf(scale[s]) > amax) {
                amax = fabsf(scale[s]);
                sm = scale[s];
            }
        }
        float d = -sm / 32, id = d != 0 ? 1 / d : 0;
        uint32_t high = 0;
        hn_put_f16(b, d);
        memset(b + 4, 0, 4);
        for (int s = 0; s < 8; s++) {
            int l = hn_rne(id * scale[s]);
            l = l < -32 ? -32 : l > 31 ? 31 : l;
            float dl = d * (float)l;
            encode32(b + 8 + 16 * s, x + 32 * s, dl != 0 ? 1 / dl : 0);
            b[4 + (s >> 1)] |= (uint8_t)(((l + 32) & 15) << 4 * (s & 1));
            high |= (uint32_t)((l + 32) >> 4) << 2 * s;
        }
        hn_put_u16(b + 2, (uint16_t)high);
        if (importance) importance += 256;
    }
}
