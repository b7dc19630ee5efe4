/* synth_fill: random tensor data in each storage type, straight in block format and
 * at memory speed. A block is random bytes whose scale fields are then set so that
 * the decoded values have mean 0 and the wanted spread. Every byte depends on the
 * tensor's stream and its own offset alone, so any split over threads gives the same
 * file. Field offsets: docs/formats.md. Knows blocks; refuses to know models. */
#include "forge/synth.h"

#include <math.h>
#include <stdlib.h>

/* Where a block keeps its f16 scale d, and for affine types the field m = ratio * d
 * that moves the mean of uniform codes to 0. sign: real encoders give d both signs
 * here (d comes from the element of largest magnitude), which centres codes 0…2h-1. */
typedef struct layout {
    int16_t d, m;
    float ratio;
    bool sign;
} layout;
#define L(d_, m_, ratio_, sign_)              \
    {                                         \
        (d_) + 1, (m_) + 1, (ratio_), (sign_) \
    } /* 0 in the table: none */
static const layout layouts[HN_TYPE_COUNT] = {
    [HN_Q4_0] = L(0, -1, 0, true),      [HN_Q4_1] = L(0, 2, -7.5f, false), [HN_Q5_0] = L(0, -1, 0, true),
    [HN_Q5_1] = L(0, 2, -15.5f, false), [HN_Q8_0] = L(0, -1, 0, false),    [HN_Q2_K] = L(80, 82, 1.5f, false),
    [HN_Q3_K] = L(108, -1, 0, false),   [HN_Q4_K] = L(0, 2, 7.5f, false),  [HN_Q5_K] = L(0, 2, 15.5f, false),
    [HN_Q6_K] = L(208, -1, 0, false),   [HN_IQ2_XXS] = L(0, -1, 0, false), [HN_IQ2_XS] = L(0, -1, 0, false),
    [HN_IQ2_S] = L(0, -1, 0, false),    [HN_IQ3_XXS] = L(0, -1, 0, false), [HN_IQ3_S] = L(0, -1, 0, false),
    [HN_IQ1_S] = L(0, -1, 0, false),    [HN_IQ4_NL] = L(0, -1, 0, true),   [HN_IQ4_XS] = L(0, -1, 0, false),
    [HN_TQ1_0] = L(52, -1, 0, false),   [HN_TQ2_0] = L(64, -1, 0, false),  [HN_Q1_0] = L(0, -1, 0, false),
    [HN_Q2_0] = L(0, -1, 0, false),
};

/* Two neighbouring scale codes and how often, of 256, the upper one is drawn. */
typedef struct ladder {
    uint8_t lo, hi;
    int n_hi;
} ladder;

typedef struct scales {
    uint16_t d[16], m[16]; /* block scales differ a little, as real ones do */
    ladder step;           /* types whose scales are not f16 */
} scales;

uint64_t hn_synth_key(uint64_t seed, const char *name)
{
    return hn_rand64(seed, hn_fnv1a(HN_FNV_INIT, name, strlen(name)));
}

uint64_t hn_synth_grain(hn_type type)
{
    const hn_type_info *ti = hn_type_get(type);
    return 8 * (uint64_t)ti->block_bytes; /* whole blocks and whole random words */
}

static void random_bytes(unsigned char *dst, uint64_t key, uint64_t off, uint64_t n)
{
    uint64_t k = off / 8, i = 0;
    for (; i + 8 <= n; i += 8, k++) {
        uint64_t r = hn_rand64(key, k);
        memcpy(dst + i, &r, 8);
    }
    if (i < n) {
        uint64_t r = hn_rand64(key, k);
        memcpy(dst + i, &r, n - i);
    }
}

/* ---- F32, F16, BF16: sums of four uniform numbers (Irwin-Hall), near enough normal ---- */

static void fill_f32(float *dst, const hn_synth_tensor *t, uint64_t key, uint64_t first, uint64_t n)
{
    float a = t->std / 37837.227f; /* sqrt(4 (2^32 - 1) / 12) */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t r = hn_rand64(key, first + i);
        int32_t s = (int32_t)((r & 0xFFFF) + (r >> 16 & 0xFFFF) + (r >> 32 & 0xFFFF) + (r >> 48)) - 131070;
        dst[i] = t->mean + a * (float)s;
    }
}

static void fill_16(uint16_t *dst, const hn_synth_tensor *t, uint64_t key, uint64_t first, uint64_t n)
{
    uint16_t value[1021];
    float a = t->std / 147.80054f; /* sqrt(4 (2^16 - 1) / 12) */
    for (int i = 0; i < 1021; i++) {
        float v = t->mean + a * (float)(i - 510);
        value[i] = t->type == HN_F16 ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
    }
    for (uint64_t i = 0; i < n; i += 2) { /* two elements a word; first is even */
        uint64_t r = hn_rand64(key, (first + i) / 2);
        r = (r & 0x00FF00FF00FF00FF) + (r >> 8 & 0x00FF00FF00FF00FF);
        r += r >> 16;
        dst[i] = value[r & 0x3FF];
        if (i + 1 < n) dst[i + 1] = value[r >> 32 & 0x3FF];
    }
}

/* ---- blocks ------------------------------------------------------------------------- */

static float ue4m3(int x) { return x < 8 ? (float)x * 0x1p-9f : ldexpf(1.0f + (float)(x & 7) / 8, (x >> 3) - 7); }

static ladder make_ladder(hn_type type, float s)
{
    ladder r;
    float lo, hi;
    if (type == HN_MXFP4) { /* a block is 2^(e-128) times small integers */
        int x;
        (void)frexpf(s, &x);
        int e = x - 1 + 128;
        e = e < 0 ? 0 : e > 253 ? 253 : e;
        r.lo = (uint8_t)e;
        lo = ldexpf(1, e - 128), hi = 2 * lo;
    } else {
        int c = 0;
        while (c < 125 && ue4m3(c + 1) <= s) c++;
        r.lo = (uint8_t)c;
        lo = ue4m3(c), hi = ue4m3(c + 1);
    }
    r.hi = (uint8_t)(r.lo + 1);
    float p = (s * s - lo * lo) / (hi * hi - lo * lo);
    r.n_hi = p <= 0 ? 0 : p >= 1 ? 256 : (int)(p * 256 + 0.5f);
    return r;
}

static uint8_t draw(const ladder *l, uint8_t random) { return random < l->n_hi ? l->hi : l->lo; }

static void make_scales(scales *s, const hn_synth_tensor *t)
{
    const layout *l = &layouts[t->type];
    float scale = t->std / t->unit;
    memset(s, 0, sizeof *s);
    if (t->type == HN_MXFP4 || t->type == HN_NVFP4) {
        s->step = make_ladder(t->type, scale);
        return;
    }
    for (int i = 0; i < 16; i++) {
        s->d[i] = hn_f32_to_f16(scale * (0.75f + (float)i / 30)); /* 0.75 … 1.25 */
        s->m[i] = hn_f32_to_f16(l->ratio * hn_f16_to_f32(s->d[i]));
    }
}

/* Codes or sub-scales that real files do not contain, or that would spoil the mean. */
static void tidy(hn_type type, uint8_t *b)
{
    switch (type) {
    case HN_Q8_0: /* -128 is never written */
        for (int i = 2; i < 34; i++) b[i] = b[i] == 0x80 ? 0x81 : b[i];
        break;
    case HN_Q2_K: /* scale = min in 8…15 */
        for (int i = 0; i < 16; i++) b[i] = (uint8_t)(17 * (8 | (b[i] & 7)));
        break;
    case HN_Q4_K:
    case HN_Q5_K: /* scale = min in 32…63 */
        for (int i = 4; i < 8; i++) {
            unsigned a = 32u | (b[i] & 31u), c = 32u | (b[i + 8] & 31u);
            b[i] = b[i + 4] = (uint8_t)(a | c >> 4 << 6);
            b[i + 8] = (uint8_t)(17 * (c & 15));
        }
        break;
    case HN_Q6_K: /* ±64…127 */
        for (int i = 192; i < 208; i++) {
            int v = 64 | (b[i] & 63);
            b[i] = (uint8_t)(b[i] & 128 ? -v : v);
        }
        break;
    case HN_TQ2_0: /* code 3 becomes 1, the zero */
        for (int i = 0; i < 64; i++) b[i] &= (uint8_t) ~((b[i] & b[i] >> 1 & 0x55) << 1);
        break;
    case HN_Q2_0:
        for (int i = 2; i < 18; i++) b[i] &= (uint8_t) ~((b[i] & b[i] >> 1 & 0x55) << 1);
        break;
    default: break;
    }
}

static void set_scale(hn_type type, const layout *l, const scales *s, uint8_t *b)
{
    if (type == HN_MXFP4) {
        b[0] = draw(&s->step, b[0]);
    } else if (type == HN_NVFP4) {
        for (int i = 0; i < 4; i++) b[i] = draw(&s->step, b[i]);
    } else if (type == HN_IQ1_M) { /* d lies in the top nibbles of four words */
        unsigned d = s->d[b[49] >> 4];
        for (int i = 0; i < 4; i++) b[49 + 2 * i] = (uint8_t)((b[49 + 2 * i] & 15) | (d >> 4 * i & 15) << 4);
    } else {
        uint8_t *pd = b + l->d - 1;
        int i = pd[0] & 15;
        unsigned sign = l->sign ? (pd[1] & 128u) << 8 : 0;
        uint16_t d = (uint16_t)(s->d[i] | sign);
        memcpy(pd, &d, 2);
        if (l->m) memcpy(b + l->m - 1, &s->m[i], 2);
    }
}

void hn_synth_fill(const hn_synth_tensor *t, uint64_t key, uint64_t off, uint64_t n, void *dst)
{
    if (t->type == HN_F32) {
        fill_f32(dst, t, key, off / 4, n / 4);
        return;
    }
    if (t->type == HN_F16 || t->type == HN_BF16) {
        fill_16(dst, t, key, off / 2, n / 2);
        return;
    }
    scales s;
    make_scales(&s, t);
    uint32_t bytes = hn_type_get(t->type)->block_bytes;
    const layout *l = &layouts[t->type];
    uint8_t *b = dst;
    random_bytes(b, key, off, n);
    for (uint64_t i = 0; i < n; i += bytes) {
        tidy(t->type, b + i);
        set_scale(t->type, l, &s, b + i);
    }
}

float hn_synth_unit(hn_type type)
{
    enum { n_elem = 1 << 19 };
    if (type == HN_F32 || type == HN_F16 || type == HN_BF16) return 1;
    const hn_type_info *ti = hn_type_get(type);
    if (!ti || !ti->weight) return 0;
    if (!layouts[type].d && type != HN_IQ1_M && type != HN_MXFP4 && type != HN_NVFP4) return 0;
    hn_synth_tensor t = { .type = type, .n_bytes = hn_row_bytes(ti, n_elem), .std = 1, .unit = 1 };
    void *raw = malloc(t.n_bytes);
    float *y = malloc(n_elem * sizeof *y);
    float unit = -1;
    if (raw && y) {
        double sum = 0;
        hn_synth_fill(&t, 1, 0, t.n_bytes, raw);
        ti->dequantize(y, raw, n_elem);
        for (int i = 0; i < n_elem; i++) sum += (double)y[i] * (double)y[i];
        unit = (float)sqrt(sum / n_elem);
    }
    free(raw);
    free(y);
    return unit;
}

void hn_synth_rope_freqs(float *dst, int32_t n_rot, float base, float factor)
{
    /* Llama 3.1: wavelengths beyond the old context are stretched by `factor`, those below
     * a quarter of it kept, between them a blend (low 1, high 4, old context 8192). */
    for (int32_t i = 0; i < n_rot / 2; i++) {
        double lambda = 6.283185307179586 * pow((double)base, 2.0 * i / n_rot);
        double s = (8192 / lambda - 1) / 3;
        dst[i] = (float)(lambda < 8192.0 / 4 ? 1 : lambda > 8192 ? factor : 1 / ((1 - s) / (double)factor + s));
    }
}
