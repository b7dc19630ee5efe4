/* The forward pass of RWKV-7 and RWKV-6 in double precision, written from the equations: what test_rwkv.c compares
 * with. Owns the reference; knows of the library only the weights of tiny_rwkv.h. */
#ifndef HN_RWKV_REFERENCE_H
#define HN_RWKV_REFERENCE_H

#include "tiny_rwkv.h"

#include <math.h>

static const double group_eps = 64e-5; /* of the norm of a head's output; no file has it */

/* ---- the forward pass in double precision ---------------------------------------------------------- */

enum { MAX_W = 640, MAX_TOK = 96 };

static const float *weights(tiny *m, int il, const char *what)
{
    char name[64];
    if (il < 0) snprintf(name, sizeof name, "%s", what);
    else snprintf(name, sizeof name, "blk.%d.%s", il, what);
    tm_tensor *t = tm_find(m, name);
    if (!t) fail_msg("no %s", name);
    return t->f;
}
static void product(double *y, const float *w, const double *x, int n_in, int n_out)
{
    for (int o = 0; o < n_out; o++) {
        y[o] = 0;
        for (int i = 0; i < n_in; i++) y[o] += (double)w[(size_t)o * (size_t)n_in + (size_t)i] * x[i];
    }
}
/* Activations of n, as 8-bit codes and back: what a product with block types is defined on (kernels.h). */
static void round_activations(double *x, int n_in, int n)
{
    for (int b = 0; b < n_in; b += n) {
        double top = 0;
        for (int i = b; i < b + n; i++) top = fmax(top, fabs(x[i]));
        for (int i = b; i < b + n && top > 0; i++) x[i] = nearbyint(x[i] * 127.0 / top) * top / 127.0;
    }
}
static void linear(tiny *m, double *y, int il, const char *what, const double *x, int n_in, int n_out)
{
    double seen[MAX_W];
    char name[64];
    if (il < 0) snprintf(name, sizeof name, "%s", what);
    else snprintf(name, sizeof name, "blk.%d.%s", il, what);
    hn_type type = tm_find(m, name)->type;
    assert_true(n_in <= MAX_W);
    memcpy(seen, x, (size_t)n_in * sizeof *seen);
    if (type != HN_F32 && type != HN_F16 && type != HN_BF16)
        round_activations(seen, n_in, (int)hn_type_get(type)->block_elems);
    product(y, weights(m, il, what), seen, n_in, n_out);
}
static double sigma(double x) { return 1.0 / (1.0 + exp(-x)); }

/* Groups of n. */
static void layer_norm(double *y, const double *x, const float *w, const float *b, int n_all, int n, double eps)
{
    for (int g = 0; g < n_all; g += n) {
        double mean = 0, var = 0;
        for (int i = g; i < g + n; i++) mean += x[i] / n;
        for (int i = g; i < g + n; i++) var += (x[i] - mean) * (x[i] - mean) / n;
        double scale = 1.0 / sqrt(var + eps);
        for (int i = g; i < g + n; i++) y[i] = (x[i] - mean) * scale * (double)w[i] + (double)b[i];
    }
}
static void mixed(double *y, const double *h, const double *prev, const float *lerp, int n)
{
    for (int i = 0; i < n; i++) y[i] = h[i] + (prev[i] - h[i]) * (double)lerp[i];
}

/* The state of one layer as hone keeps it: a_prev, f_prev, S [H][key][value]. */
typedef struct layer_state {
    double *a, *f, *S;
} layer_state;

static void wkv7(tiny *m, const rw_shape *s, int il, const double *h, layer_state st, double *first, double *o)
{
    const float *lerp = weights(m, il, "time_mix_lerp_fused.weight"), *r_k = weights(m, il, "time_mix_r_k.weight");
    double x[6][MAX_W], r[MAX_W], w[MAX_W], k[MAX_W], v[MAX_W], a[MAX_W], g[MAX_W], kk[MAX_W], z[MAX_W], y[MAX_W],
        bonus[MAX_W];
    for (int c = 0; c < 6; c++) mixed(x[c], h, st.a, lerp + c * s->E, s->E); /* r w k v a g */
    linear(m, r, il, "time_mix_receptance.weight", x[0], s->E, s->E);
    linear(m, k, il, "time_mix_key.weight", x[2], s->E, s->E);
    linear(m, v, il, "time_mix_value.weight", x[3], s->E, s->E);
    linear(m, z, il, "time_mix_w1.weight", x[1], s->E, s->w);
    for (int i = 0; i < s->w; i++) z[i] = tanh(z[i]);
    linear(m, w, il, "time_mix_w2.weight", z, s->w, s->E);
    for (int i = 0; i < s->E; i++)
        w[i] = exp(-exp(-0.5) * sigma((double)weights(m, il, "time_mix_w0.weight")[i] + w[i]));
    linear(m, z, il, "time_mix_a1.weight", x[4], s->E, s->a);
    linear(m, a, il, "time_mix_a2.weight", z, s->a, s->E);
    for (int i = 0; i < s->E; i++) a[i] = sigma((double)weights(m, il, "time_mix_a0.weight")[i] + a[i]);
    linear(m, z, il, "time_mix_g1.weight", x[5], s->E, s->g);
    for (int i = 0; i < s->g; i++) z[i] = sigma(z[i]);
    linear(m, g, il, "time_mix_g2.weight", z, s->g, s->E);
    for (int i = 0; i < s->E; i++) kk[i] = k[i] * (double)weights(m, il, "time_mix_k_k.weight")[i];
    for (int i = 0; i < s->E; i++) k[i] *= 1.0 + (a[i] - 1.0) * (double)weights(m, il, "time_mix_k_a.weight")[i];
    if (il == 0) memcpy(first, v, (size_t)s->E * sizeof *v);
    else {
        double d[MAX_W];
        linear(m, z, il, "time_mix_v1.weight", x[3], s->E, s->v);
        linear(m, d, il, "time_mix_v2.weight", z, s->v, s->E);
        for (int i = 0; i < s->E; i++)
            v[i] += (first[i] - v[i]) * sigma((double)weights(m, il, "time_mix_v0.weight")[i] + d[i]);
    }
    for (int b = 0; b < s->E; b += s->N) { /* heads */
        double *S = st.S + (size_t)b * (size_t)s->N, len = 0, rk = 0;
        for (int j = b; j < b + s->N; j++) len += kk[j] * kk[j];
        for (int j = b; j < b + s->N; j++) kk[j] /= fmax(sqrt(len), 1e-12), rk += r[j] * k[j] * (double)r_k[j];
        for (int i = 0; i < s->N; i++) { /* value */
            double old = 0, out = 0;
            for (int j = 0; j < s->N; j++) old -= S[j * s->N + i] * kk[b + j];
            for (int j = 0; j < s->N; j++) {
                double *e = &S[j * s->N + i];
                *e = *e * w[b + j] + v[b + i] * k[b + j] + old * kk[b + j] * a[b + j];
                out += *e * r[b + j];
            }
            y[b + i] = out;
            bonus[b + i] = v[b + i] * rk;
        }
    }
    layer_norm(o, y, weights(m, il, "time_mix_ln.weight"), weights(m, il, "time_mix_ln.bias"), s->E, s->N, group_eps);
    for (int i = 0; i < s->E; i++) o[i] = (o[i] + bonus[i]) * g[i];
}

static void wkv6(tiny *m, const rw_shape *s, int il, const double *h, layer_state st, double *o)
{
    static const char *const names[5] = { "time_mix_lerp_w.weight", "time_mix_lerp_k.weight", "time_mix_lerp_v.weight",
                                          "time_mix_lerp_r.weight", "time_mix_lerp_g.weight" };
    double x[5][MAX_W], xx[MAX_W], z[MAX_W], t[MAX_W], r[MAX_W], w[MAX_W], k[MAX_W], v[MAX_W], g[MAX_W], y[MAX_W];
    const float *u = weights(m, il, "time_mix_first.weight");
    mixed(xx, h, st.a, weights(m, il, "time_mix_lerp_x.weight"), s->E);
    linear(m, z, il, "time_mix_w1.weight", xx, s->E, 5 * s->X);
    for (int i = 0; i < 5 * s->X; i++) z[i] = tanh(z[i]);
    for (int c = 0; c < 5; c++) { /* w k v r g */
        const float *lerp =
            s->separate ? weights(m, il, names[c]) : weights(m, il, "time_mix_lerp_fused.weight") + c * s->E;
        product(t, weights(m, il, "time_mix_w2.weight") + c * s->E * s->X, z + c * s->X, s->X, s->E);
        for (int i = 0; i < s->E; i++) x[c][i] = h[i] + (st.a[i] - h[i]) * ((double)lerp[i] + t[i]);
    }
    linear(m, r, il, "time_mix_receptance.weight", x[3], s->E, s->E);
    linear(m, k, il, "time_mix_key.weight", x[1], s->E, s->E);
    linear(m, v, il, "time_mix_value.weight", x[2], s->E, s->E);
    linear(m, g, il, "time_mix_gate.weight", x[4], s->E, s->E);
    linear(m, z, il, "time_mix_decay_w1.weight", x[0], s->E, s->D);
    for (int i = 0; i < s->D; i++) z[i] = tanh(z[i]);
    linear(m, w, il, "time_mix_decay_w2.weight", z, s->D, s->E);
    for (int i = 0; i < s->E; i++) w[i] = exp(-exp((double)weights(m, il, "time_mix_decay.weight")[i] + w[i]));
    for (int b = 0; b < s->E; b += s->N) {
        double *S = st.S + (size_t)b * (size_t)s->N;
        for (int j = 0; j < s->N; j++) { /* value */
            y[b + j] = 0;
            for (int i = 0; i < s->N; i++) {
                double kv = k[b + i] * v[b + j], *e = &S[i * s->N + j];
                y[b + j] += r[b + i] * (*e + (double)u[b + i] * kv);
                *e = *e * w[b + i] + kv;
            }
        }
    }
    layer_norm(o, y, weights(m, il, "time_mix_ln.weight"), weights(m, il, "time_mix_ln.bias"), s->E, s->N, group_eps);
    for (int i = 0; i < s->E; i++) o[i] *= g[i] * sigma(g[i]);
}

static void channel_mix(tiny *m, const rw_shape *s, int il, const double *h, const double *prev, double *o)
{
    double x[MAX_W], k[MAX_W];
    assert_true(s->F <= MAX_W);
    mixed(x, h, prev, weights(m, il, "channel_mix_lerp_k.weight"), s->E);
    linear(m, k, il, "channel_mix_key.weight", x, s->E, s->F);
    for (int i = 0; i < s->F; i++) k[i] = k[i] > 0 ? k[i] * k[i] : 0;
    linear(m, o, il, "channel_mix_value.weight", k, s->F, s->E);
    if (rw_is7(s)) return;
    mixed(x, h, prev, weights(m, il, "channel_mix_lerp_r.weight"), s->E);
    linear(m, k, il, "channel_mix_receptance.weight", x, s->E, s->E);
    for (int i = 0; i < s->E; i++) o[i] *= sigma(k[i]);
}

/* logits [n][V], and the state after them, from zero */
static void reference(tiny *m, const rw_shape *s, const int32_t *ids, int n, double *logits, double *state)
{
    double x[MAX_W], h[MAX_W], o[MAX_W], first[MAX_W];
    assert_true(s->E <= MAX_W);
    memset(state, 0, rw_state_floats(s) * sizeof *state);
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < s->E; i++) h[i] = (double)weights(m, -1, "token_embd.weight")[ids[t] * s->E + i];
        layer_norm(x, h, weights(m, -1, "token_embd_norm.weight"), weights(m, -1, "token_embd_norm.bias"), s->E, s->E,
                   rw_eps(s));
        for (int il = 0; il < s->L; il++) {
            double *at = state + rw_state_floats(s) / (size_t)s->L * (size_t)il;
            layer_state st = { at, at + s->E, at + 2 * s->E };
            layer_norm(h, x, weights(m, il, "attn_norm.weight"), weights(m, il, "attn_norm.bias"), s->E, s->E,
                       rw_eps(s));
            if (rw_is7(s)) wkv7(m, s, il, h, st, first, o);
            else wkv6(m, s, il, h, st, o);
            memcpy(st.a, h, (size_t)s->E * sizeof *h);
            linear(m, h, il, "time_mix_output.weight", o, s->E, s->E);
            for (int i = 0; i < s->E; i++) x[i] += h[i];
            layer_norm(h, x, weights(m, il, "attn_norm_2.weight"), weights(m, il, "attn_norm_2.bias"), s->E, s->E,
                       rw_eps(s));
            channel_mix(m, s, il, h, st.f, o);
            memcpy(st.f, h, (size_t)s->E * sizeof *h);
            for (int i = 0; i < s->E; i++)
                x[i] = (x[i] + o[i]) * (s->rescale && (il + 1) % s->rescale == 0 ? 0.5 : 1.0);
        }
        layer_norm(h, x, weights(m, -1, "output_norm.weight"), weights(m, -1, "output_norm.bias"), s->E, s->E,
                   rw_eps(s));
        linear(m, logits + t * s->V, -1, "output.weight", h, s->E, s->V);
    }
}

#endif
