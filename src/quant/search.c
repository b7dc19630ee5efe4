/* search: the four scale searches under the block encoders. Each minimises a weighted
 * squared (once: absolute) error over a scale, perhaps an offset, and integer codes, by
 * trying a short list of code assignments and solving the scale in closed form for each.
 * The order of the f32 operations decides ties, so it is that of
 * ggml-org/ggml:src/ggml-quants.c and must stay (with -ffp-contract=off). */
#include "quant/codecs.h"

#include <math.h>

#define GROUP_MIN 1e-15f /* groups whose largest magnitude is below get scale 0 */

static inline int clampi(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

/* l[i] = clamp(rne(f * (x[i] - lo))), apart from the sums so that it vectorises. The
 * clamp in integers keeps NaN harmless. */
static inline void assign(float *restrict l, int n, const float *restrict x, float f, float lo, int min, int max)
{
    for (int i = 0; i < n; i++) {
        int c = hn_rne(f * (x[i] - lo));
        c = c < min ? min : c;
        c = c > max ? max : c;
        l[i] = (float)c;
    }
}

float hn_search_sym(int n, int nmax, const float *x, const float *w, uint8_t *codes)
{
    float xm = hn_extreme(n, x);
    if (fabsf(xm) < GROUP_MIN) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    float scale = 0, best = 0;
    for (int k = -10; k <= 9; k++) { /* -10 stands for the plain candidate, which comes first */
        if (k == 0) continue;
        float f = k == -10 ? -(float)nmax / xm : -((float)nmax + 0.1f * (float)k) / xm;
        float l[32], xl = 0, ll = 0;
        assign(l, n, x, f, 0, -nmax, nmax - 1);
        for (int i = 0; i < n; i++) {
            float wi = w ? w[i] : x[i] * x[i];
            xl += wi * x[i] * l[i];
            ll += wi * l[i] * l[i];
        }
        if (k == -10) {
            scale = ll != 0 ? xl / ll : 0;
            best = scale * xl;
        } else if (ll > 0 && xl * xl > best * ll) {
            scale = xl / ll;
            best = scale * xl;
        } else {
            continue;
        }
        for (int i = 0; i < n; i++) codes[i] = (uint8_t)((int)l[i] + nmax);
    }
    return scale;
}

float hn_search_sym_descent(int n, int nmax, const float *x, uint8_t *codes)
{
    float xm = hn_extreme(n, x);
    if (fabsf(xm) < GROUP_MIN) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    int l[32];
    float f = -(float)nmax / xm, xl = 0, ll = 0;
    for (int i = 0; i < n; i++) {
        l[i] = clampi(hn_rne(f * x[i]), -nmax, nmax - 1);
        float w = x[i] * x[i];
        xl += w * x[i] * (float)l[i];
        ll += w * (float)l[i] * (float)l[i];
    }
    for (int sweep = 0, changed = 1; sweep < 5 && changed; sweep++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            float w = x[i] * x[i];
            float p = xl - w * x[i] * (float)l[i];
            if (!(p > 0)) continue;
            float r = ll - w * (float)l[i] * (float)l[i];
            int c = clampi(hn_rne(x[i] * r / p), -nmax, nmax - 1);
            if (c == l[i]) continue;
            p += w * x[i] * (float)c;
            r += w * (float)c * (float)c;
            if (r > 0 && p * p * ll > xl * xl * r) {
                l[i] = c;
                xl = p;
                ll = r;
                changed = 1;
            }
        }
    }
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(l[i] + nmax);
    return ll > 0 ? xl / ll : 0;
}

static float asym_error(int n, const float *x, const float *w, const float *l, float s, float m, bool absolute)
{
    float term[32], e = 0;
    if (absolute)
        for (int i = 0; i < n; i++) term[i] = w[i] * fabsf(s * l[i] + m - x[i]);
    else
        for (int i = 0; i < n; i++) {
            float d = s * l[i] + m - x[i];
            term[i] = w[i] * (d * d);
        }
    for (int i = 0; i < n; i++) e += term[i];
    return e;
}

float hn_search_asym(int n, int nmax, const float *x, const float *w, hn_scan scan, uint8_t *codes, float *offset)
{
    float lo = x[0], hi = x[0], sw = w[0], sx = w[0] * x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
        sw += w[i];
        sx += w[i] * x[i];
    }
    if (lo > 0) lo = 0;
    if (!(hi > lo)) {
        memset(codes, 0, (size_t)n);
        *offset = -lo;
        return 0;
    }
    float l[32] = { 0 }, kept[32] = { 0 }; /* gcc 12 at -O2 cannot see that assign fills them */
    float f = (float)nmax / (hi - lo), scale = 1 / f;
    assign(kept, n, x, f, lo, 0, nmax);
    float best = asym_error(n, x, w, kept, scale, lo, scan.absolute);

    for (int k = 0; k <= scan.steps; k++) {
        f = (scan.rmin + scan.rdelta * (float)k + (float)nmax) / (hi - lo);
        assign(l, n, x, f, lo, 0, nmax);
        float sl = 0, sll = 0, sxl = 0;
        for (int i = 0; i < n; i++) {
            float wl = w[i] * l[i];
            sl += wl;
            sll += wl * l[i];
            sxl += wl * x[i];
        }
        float det = sw * sll - sl * sl;
        if (!(det > 0)) continue;
        float s = (sw * sxl - sx * sl) / det, m = (sll * sx - sl * sxl) / det;
        if (m > 0) {
            m = 0;
            s = sxl / sll;
        }
        float e = asym_error(n, x, w, l, s, m, scan.absolute);
        if (e < best) {
            memcpy(kept, l, sizeof kept);
            best = e;
            scale = s;
            lo = m; /* the following candidates start from here; byte equality depends on it */
        }
    }
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)kept[i];
    *offset = -lo;
    return scale;
}

float hn_search_scale(int n, int nmax, const float *v, const float *w, uint8_t *codes)
{
    float max = 0;
    for (int i = 0; i < n; i++)
        if (v[i] > max) max = v[i];
    if (max < GROUP_MIN) {
        memset(codes, 0, (size_t)n);
        return 0;
    }
    float f = (float)nmax / max, best = 0;
    for (int i = 0; i < n; i++) {
        float d = v[i] - 1 / f * (float)hn_rne(f * v[i]);
        best += w[i] * d * d;
    }
    for (int k = -4; k <= 4; k++) {
        if (k == 0) continue;
        float fk = (0.1f * (float)k + (float)nmax) / max, sk = 1 / fk, e = 0;
        for (int i = 0; i < n; i++) {
            float d = v[i] - sk * (float)clampi(hn_rne(fk * v[i]), 0, nmax);
            e += w[i] * d * d;
        }
        if (e < best) {
            best = e;
            f = fk;
        }
    }
    float vl = 0, ll = 0;
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t)clampi(hn_rne(f * v[i]), 0, nmax);
        vl += w[i] * v[i] * (float)codes[i];
        ll += w[i] * (float)codes[i] * (float)codes[i];
    }
    for (int sweep = 0, changed = 1; sweep < 5 && changed; sweep++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            float p = vl - w[i] * v[i] * (float)codes[i];
            float r = ll - w[i] * (float)codes[i] * (float)codes[i];
            if (!(p > 0 && r > 0)) continue;
            int c = clampi(hn_rne(v[i] * r / p), 0, nmax);
            if (c == codes[i]) continue;
            p += w[i] * v[i] * (float)c;
            r += w[i] * (float)c * (float)c;
            if (p * p * ll > vl * vl * r) {
                codes[i] = (uint8_t)c;
                vl = p;
                ll = r;
                changed = 1;
            }
        }
    }
    return ll > 0 ? vl / ll : 0;
}
