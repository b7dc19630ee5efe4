/* The graphs of llama, qwen2 and qwen3 against two independent sources: logits published
 * with the recipe of the weights (float64, computed elsewhere), and a forward pass in
 * double precision written here from the formulas. The second is first checked by the
 * first, then used where no published numbers exist: biases, partial rotation, scaled
 * positions, odd sizes. */
#include "tiny_model.h"

#include "kernels/kernels.h"
#include "model/model.h"

#include <math.h>

/* ---- the forward pass in double precision ------------------------------------------------------ */

typedef struct rope_rule {
    double factor;
    bool yarn;
    double n_orig, fast, slow, ext, attn;
} rope_rule;

/* Angle per position of pair i. */
static double theta(const tm_shape *s, const rope_rule *r, int i)
{
    int n = s->n_rot ? s->n_rot : s->d;
    double t = pow(s->base, -2.0 * i / n) / (s->rope_freqs ? (double)s->rope_freqs[i] : 1.0);
    if (!r) return t;
    if (!r->yarn) return t / r->factor;
    double c_fast = n * log(r->n_orig / (2.0 * M_PI * r->fast)) / (2.0 * log(s->base));
    double c_slow = n * log(r->n_orig / (2.0 * M_PI * r->slow)) / (2.0 * log(s->base));
    double lo = fmax(0.0, floor(c_fast)), hi = fmin(n - 1.0, ceil(c_slow));
    double m = r->ext * (1.0 - fmin(1.0, fmax(0.0, (i - lo) / fmax(0.001, hi - lo))));
    return t * ((1.0 - m) / r->factor + m);
}
/* Without extrapolation nothing corrects the magnitude. */
static double magnitude(const rope_rule *r)
{
    return r && r->yarn && r->ext > 0 ? r->attn * (1.0 + 0.1 * log(r->factor)) : 1.0;
}

static const float *weights(tiny *m, int il, const char *what, const char *kind)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.%s", il, what, kind);
    tm_tensor *t = tm_find(m, name);
    return t ? t->f : NULL;
}

static void product(double *y, const float *w, const float *bias, const double *x, int n_in, int n_out)
{
    for (int o = 0; o < n_out; o++) {
        y[o] = bias ? (double)bias[o] : 0.0;
        for (int i = 0; i < n_in; i++) y[o] += (double)w[(size_t)o * (size_t)n_in + (size_t)i] * x[i];
    }
}
static void linear(tiny *m, double *y, int il, const char *what, const double *x, int n_in, int n_out)
{
    product(y, weights(m, il, what, "weight"), weights(m, il, what, "bias"), x, n_in, n_out);
}
static void rms(double *y, const double *x, const float *w, int n, double eps)
{
    double ss = 0;
    for (int i = 0; i < n; i++) ss += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = x[i] / sqrt(ss / n + eps) * (double)w[i];
}
static void rotate(const tm_shape *s, const rope_rule *r, double *x, int n_head, int pos)
{
    int n = s->n_rot ? s->n_rot : s->d;
    bool halves = strcmp(s->arch, "llama") != 0;
    for (int h = 0; h < n_head; h++, x += s->d)
        for (int i = 0; i < n / 2; i++) {
            double *a = halves ? &x[i] : &x[2 * i], *b = halves ? &x[i + n / 2] : &x[2 * i + 1];
            double t = pos * theta(s, r, i), mag = magnitude(r), u = *a, v = *b;
            *a = (u * cos(t) - v * sin(t)) * mag;
            *b = (u * sin(t) + v * cos(t)) * mag;
        }
}

enum { MAX_TOK = 96, MAX_W = 640 };

/* logits [n][V] */
static void reference(tiny *m, const rope_rule *r, const int32_t *ids, int n, double *logits)
{
    const tm_shape *s = &m->s;
    int nq = s->H * s->d, nk = s->G * s->d;
    double *k = calloc((size_t)(s->L * n * nk), sizeof *k), *v = calloc((size_t)(s->L * n * nk), sizeof *v);
    double x[MAX_W], h[MAX_W], q[MAX_W], o[MAX_W], g[MAX_W], u[MAX_W];
    assert_true(k && v && nq <= MAX_W && s->E <= MAX_W && s->F <= MAX_W && n <= MAX_TOK);
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < s->E; i++) x[i] = (double)tm_find(m, "token_embd.weight")->f[ids[t] * s->E + i];
        for (int il = 0; il < s->L; il++) {
            double *K = k + (size_t)(il * n) * (size_t)nk, *V = v + (size_t)(il * n) * (size_t)nk;
            rms(h, x, weights(m, il, "attn_norm", "weight"), s->E, s->eps);
            linear(m, q, il, "attn_q", h, s->E, nq);
            linear(m, K + t * nk, il, "attn_k", h, s->E, nk);
            linear(m, V + t * nk, il, "attn_v", h, s->E, nk);
            for (int a = 0; weights(m, il, "attn_q_norm", "weight") && a < s->H; a++)
                rms(q + a * s->d, q + a * s->d, weights(m, il, "attn_q_norm", "weight"), s->d, s->eps);
            for (int a = 0; weights(m, il, "attn_k_norm", "weight") && a < s->G; a++)
                rms(K + t * nk + a * s->d, K + t * nk + a * s->d, weights(m, il, "attn_k_norm", "weight"), s->d,
                    s->eps);
            rotate(s, r, q, s->H, t);
            rotate(s, r, K + t * nk, s->G, t);
            for (int a = 0; a < s->H; a++) {
                int kv = a / (s->H / s->G) * s->d;
                double p[MAX_TOK], top = -INFINITY, sum = 0;
                for (int j = 0; j <= t; j++) {
                    p[j] = 0;
                    for (int i = 0; i < s->d; i++) p[j] += q[a * s->d + i] * K[j * nk + kv + i];
                    p[j] /= sqrt(s->d);
                    top = fmax(top, p[j]);
                }
                for (int j = 0; j <= t; j++) sum += p[j] = exp(p[j] - top);
                for (int i = 0; i < s->d; i++) {
                    o[a * s->d + i] = 0;
                    for (int j = 0; j <= t; j++) o[a * s->d + i] += p[j] / sum * V[j * nk + kv + i];
                }
            }
            linear(m, h, il, "attn_output", o, nq, s->E);
            for (int i = 0; i < s->E; i++) x[i] += h[i];
            rms(h, x, weights(m, il, "ffn_norm", "weight"), s->E, s->eps);
            linear(m, g, il, "ffn_gate", h, s->E, s->F);
            linear(m, u, il, "ffn_up", h, s->E, s->F);
            for (int i = 0; i < s->F; i++) g[i] = g[i] / (1.0 + exp(-g[i])) * u[i];
            linear(m, h, il, "ffn_down", g, s->F, s->E);
            for (int i = 0; i < s->E; i++) x[i] += h[i];
        }
        rms(h, x, tm_find(m, "output_norm.weight")->f, s->E, s->eps);
        tm_tensor *out = tm_find(m, "output.weight"), *bias = tm_find(m, "output.bias");
        product(logits + t * s->V, out ? out->f : tm_find(m, "token_embd.weight")->f, bias ? bias->f : NULL, h, s->E,
                s->V);
    }
    free(k);
    free(v);
}

/* ---- published logits ------------------------------------------------------------------------------ */

static const int32_t prompt[6] = { 3, 1, 4, 1, 5, 9 };

static const struct published {
    const char *name;
    const tm_shape *shape;
    double logits[16];
} published[] = {
    { "llama",
      &tm_llama,
      { 1.375744, 0.732734, 0.411979, -0.520243, 0.579676, 0.249072, -0.968276, 1.192893, 0.506780, -0.071049,
        -1.031336, 1.001445, 0.445238, 0.443371, 0.933276, 0.599995 } },
    { "llama tied, rope_freqs",
      &tm_llama_tied,
      { -2.455180, 1.605897, -2.677807, 0.794104, -1.367880, -1.405223, 2.495010, -3.301125, -0.659448, 11.077247,
        -1.914742, 0.614226, -0.432408, 1.265365, -3.845312, -4.180540 } },
    { "qwen2 tied",
      &tm_qwen2,
      { 0.893882, -0.631152, -3.375185, 0.077551, -1.722848, -1.917587, 3.619895, -3.088770, 2.043067, 11.740245,
        -0.093201, 5.371819, -0.947723, -0.247422, -3.595719, -3.740100 } },
    { "qwen3",
      &tm_qwen3,
      { -0.253339, 0.860437, -0.037118, -1.043440, -0.164581, 0.381343, -0.295352, 0.108354, 0.148655, -0.341366,
        -0.392223, -0.463033, -0.283987, 0.033627, 1.308851, -0.239867 } },
};
enum { N_PUBLISHED = sizeof published / sizeof *published };

static void recipe(void **state)
{
    static const double first[4] = { 0.19979858, 0.58355713, -0.42687988, 0.08306885 };
    assert_true(tm_fnv("token_embd.weight") == 0x2d85b88e70e67727u);
    for (uint64_t k = 0; k < 4; k++) assert_true(fabs(tm_u("token_embd.weight", k) - first[k]) < 5.1e-9);
}

static void reference_gives_published(void **state)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        double y[6 * 16];
        tiny *m = tm_new(*published[i].shape);
        reference(m, NULL, prompt, 6, y);
        for (int j = 0; j < 16; j++)
            if (!(fabs(y[5 * 16 + j] - published[i].logits[j]) < 6e-7))
                fail_msg("%s: logit %d is %.7f, published %.6f", published[i].name, j, y[5 * 16 + j],
                         published[i].logits[j]);
        tm_free(m);
    }
}

static void engine_gives_published(void **state)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        tiny *m = tm_new(*published[i].shape);
        hone_model *model = tm_open(m);
        float first[6 * 16];
        for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
            hone_context *c = tm_context(*cpu, 2);
            hone_session *s = tm_session(c, model, 16, 1, 0, HONE_CACHE_F32);
            float y[6 * 16];
            double worst = 0;
            tm_run(s, 0, prompt, 6, y);
            for (int j = 0; j < 16; j++) worst = fmax(worst, fabs((double)y[5 * 16 + j] - published[i].logits[j]));
            if (!(worst <= 1e-5)) fail_msg("%s on %s: off by %g", published[i].name, *cpu, worst);
            print_message("  %-24s %-7s max error %.2g\n", published[i].name, *cpu, worst);
            if (cpu == tm_levels()) memcpy(first, y, sizeof y);
            assert_memory_equal(y, first, sizeof y);
            hone_session_free(s);
            hone_context_free(c);
        }
        hone_model_close(model);
        tm_free(m);
    }
}

/* ---- against the reference --------------------------------------------------------------------------- */

/* Logits of all n tokens in a cache of f32 against the reference; the error relative to
 * the largest logit. */
static double error_of(tiny *m, const rope_rule *r, int n, hone_kv_cache_type cache)
{
    int32_t ids[MAX_TOK];
    double *want = malloc((size_t)(n * m->s.V) * sizeof *want), worst = 0, largest = 0;
    float *y = malloc((size_t)(n * m->s.V) * sizeof *y), *first = malloc((size_t)(n * m->s.V) * sizeof *y);
    assert_true(want && y && first);
    for (int i = 0; i < n; i++) ids[i] = (i * i + 3 * i + 1) % m->s.V;
    reference(m, r, ids, n, want);
    hone_model *model = tm_open(m);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
        hone_context *c = tm_context(*cpu, 2);
        hone_session *s = tm_session(c, model, MAX_TOK, 1, 32, cache);
        tm_run(s, 0, ids, n, y);
        if (cpu == tm_levels()) memcpy(first, y, (size_t)(n * m->s.V) * sizeof *y);
        assert_memory_equal(y, first, (size_t)(n * m->s.V) * sizeof *y);
        hone_session_free(s);
        hone_context_free(c);
    }
    for (int i = 0; i < n * m->s.V; i++) {
        assert_true(isfinite(y[i]));
        worst = fmax(worst, fabs((double)y[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    hone_model_close(model);
    free(want);
    free(y);
    free(first);
    return worst / largest;
}

static void shapes(void **state)
{
    static const float factors[6] = { 1.0f, 1.5f, 0.75f, 3.0f, 8.0f, 32.0f };
    static const tm_shape list[] = {
        TM("llama", 32, 4, 4, 8, 48, 16, 2, 1e4, 1e-5),                         /* as many key heads as heads */
        TM("llama", 32, 4, 1, 8, 48, 16, 2, 1e4, 1e-5, .tied = true),           /* one key head */
        TM("llama", 30, 3, 3, 10, 17, 7, 3, 1e4, 1e-5),                         /* no size a multiple of a lane */
        TM("llama", 36, 6, 2, 12, 40, 33, 2, 5e5, 1e-6, .rope_freqs = factors), /* heads wider than E/H */
        TM("llama", 40, 2, 1, 6, 24, 16, 2, 1e4, 1e-5),                         /* narrower */
        TM("llama", 32, 4, 2, 8, 48, 16, 2, 1e4, 1e-5, .qkv_bias = true, .all_bias = true, .out_bias = true),
        TM("llama", 24, 12, 3, 2, 20, 16, 1, 1e4, 1e-3, .tied = true, .out_bias = true), /* a single pair */
        TM("llama", 8, 1, 1, 8, 1, 1, 1, 1e4, 1e-5),                                     /* vocabulary and n_ff of 1 */
        TM("qwen2", 32, 4, 2, 8, 48, 16, 2, 1e6, 1e-6, .qkv_bias = true, .out_bias = true),
        TM("qwen2", 28, 2, 1, 14, 30, 16, 2, 1e6, 1e-6, .qkv_bias = true, .n_rot = 6), /* part of the head rotated */
        TM("qwen3", 32, 4, 2, 24, 48, 19, 3, 1e6, 1e-6, .tied = true, .n_rot = 10),
        TM("qwen3", 20, 5, 1, 128, 33, 16, 1, 1e6, 1e-6),
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiny *m = tm_new(list[i]);
        double e = error_of(m, NULL, 70, HONE_CACHE_F32), e16 = error_of(m, NULL, 70, HONE_CACHE_F16);
        print_message("  %s, case %zu: f32 cache %.2g, f16 cache %.2g\n", list[i].arch, i, e, e16);
        assert_true(e < 3e-6);
        assert_true(e16 < 5e-3);
        assert_true(e16 > e || list[i].V == 1); /* else the type of the cache was ignored */
        tm_free(m);
    }
}

/* Scaled positions. The reference takes them from the formulas, in double. */
static void rope_scaling(void **state)
{
    static const tm_shape wide = TM("qwen2", 64, 2, 1, 32, 48, 16, 2, 1e4, 1e-6, .qkv_bias = true);
    static const tm_shape llama = TM("llama", 64, 2, 1, 32, 48, 16, 2, 1e4, 1e-6);
    static const struct {
        const char *type;
        rope_rule r;
        bool old_key;
    } list[] = {
        { "linear", { 4.0, .yarn = false }, false },
        { "linear", { 2.5, .yarn = false }, true },
        { NULL, { 3.0, .yarn = false }, false },
        { "none", { 1.0, .yarn = false }, false },
        { "yarn", { 4.0, true, 64, 32, 1, 1, 1 }, false },
        { "yarn", { 8.0, true, 256, 16, 2, 1, 0.75 }, false },
        { "yarn", { 40.0, true, 4096, 32, 1, 0.5, 1 }, false },
        { "yarn", { 4.0, true, 4096, 32, 1, 0, 1 }, false },
        { "yarn", { 4.0, true, 2048, 32, 1, 1, 1 }, false }, /* original context from context_length */
    };
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            const rope_rule *r = &list[i].r;
            tiny *m = tm_new(a ? wide : llama), *plain = tm_new(a ? wide : llama);
            if (list[i].type) tm_put_str(m, tm_key(m, "rope.scaling.type"), list[i].type);
            tm_put_f32(m, tm_key(m, list[i].old_key ? "rope.scale_linear" : "rope.scaling.factor"),
                       list[i].type && !strcmp(list[i].type, "none") ? 7.0f : (float)r->factor);
            if (r->yarn && r->n_orig != 2048)
                tm_put_u32(m, tm_key(m, "rope.scaling.original_context_length"), (uint32_t)r->n_orig);
            if (r->yarn && r->fast != 32) tm_put_f32(m, tm_key(m, "rope.scaling.yarn_beta_fast"), (float)r->fast);
            if (r->yarn && r->slow != 1) tm_put_f32(m, tm_key(m, "rope.scaling.yarn_beta_slow"), (float)r->slow);
            if (r->yarn && r->ext == 1 && r->factor == 4 && a)
                tm_put_f32(m, tm_key(m, "rope.scaling.yarn_ext_factor"), -1); /* "auto" */
            if (r->yarn && r->ext != 1) tm_put_f32(m, tm_key(m, "rope.scaling.yarn_ext_factor"), (float)r->ext);
            if (r->yarn && r->attn != 1) tm_put_f32(m, tm_key(m, "rope.scaling.attn_factor"), (float)r->attn);

            hone_model *model = tm_open(m);
            int mixed = 0;
            for (int j = 0; j < 16; j++) {
                double want = theta(&m->s, r, j), full = theta(&m->s, NULL, j);
                assert_true(fabs(model->hp.rope[0].freq[j] - want) <= 1e-13 * want);
                mixed += want < full * 0.999 && want > full / r->factor * 1.001;
            }
            assert_true(fabs((double)model->hp.rope[0].mscale - magnitude(r)) < 1e-6);
            if (r->yarn && r->ext > 0) assert_true(mixed > 0); /* the ramp is in the table */
            hone_model_close(model);

            double e = error_of(m, r, 70, HONE_CACHE_F32);
            print_message("  %s %s × %g: %.2g\n", m->s.arch, list[i].type ? list[i].type : "(no type)", r->factor, e);
            assert_true(e < 3e-6);
            if (r->factor != 1.0) { /* and it is not what an unscaled model says */
                double *x = malloc(sizeof(double) * 70 * 16), *y = malloc(sizeof(double) * 70 * 16), gap = 0;
                int32_t ids[70];
                for (int t = 0; t < 70; t++) ids[t] = (t * t + 3 * t + 1) % 16;
                reference(plain, NULL, ids, 70, x);
                reference(m, r, ids, 70, y);
                for (int t = 0; t < 70 * 16; t++) gap = fmax(gap, fabs(x[t] - y[t]));
                assert_true(gap > 1e-2);
                free(x);
                free(y);
            }
            tm_free(m);
            tm_free(plain);
        }
}

/* Values of ff_i for Llama 3.1 8B (λ against 8192, factor 8) as a file would carry them. */
static void llama3_factors(void **state)
{
    float ff[64];
    for (int i = 0; i < 64; i++) {
        double lambda = 2.0 * M_PI * pow(5e5, 2.0 * i / 128.0), s = (8192.0 / lambda - 1.0) / 3.0;
        ff[i] = (float)(lambda < 2048.0 ? 1.0 : lambda > 8192.0 ? 8.0 : 1.0 / ((1.0 - s) / 8.0 + s));
    }
    static const double golden[6] = { 1.207484, 1.553415, 2.026313, 2.694530, 3.684253, 5.257327 };
    assert_true(ff[28] == 1.0f && ff[35] == 8.0f);
    for (int i = 0; i < 6; i++) assert_true(fabs((double)ff[29 + i] - golden[i]) < 1e-6);
    tiny *m = tm_new((tm_shape)TM("llama", 16, 2, 1, 128, 16, 16, 1, 5e5, 1e-5, .rope_freqs = ff));
    hone_model *model = tm_open(m);
    for (int i = 0; i < 64; i++) {
        double want = pow(5e5, -2.0 * i / 128.0) / (double)ff[i];
        assert_true(fabs(model->hp.rope[0].freq[i] - want) <= 1e-13 * want);
    }
    hone_model_close(model);
    tm_free(m);
}

/* A score depends on the distance alone: q at p + c and k at t + c give what p and t give. */
static void rotation_is_relative(void **state)
{
    for (int neox = 0; neox < 2; neox++) {
        double freq[32];
        float q[64], k[64], cs[64];
        double first = 0;
        hn_rope_freqs(freq, 64, 1e6, NULL, 1.0);
        static const int64_t shift[] = { 0, 1, 77, 4096, 131071, 1000000 };
        for (size_t i = 0; i < sizeof shift / sizeof *shift; i++) {
            double dot = 0;
            for (uint64_t j = 0; j < 64; j++) q[j] = (float)tm_u("q", j), k[j] = (float)tm_u("k", j);
            hn_rope_table(cs, freq, 64, 19 + shift[i], 1.0f);
            hn_rope_apply(q, cs, 1, 64, 64, neox);
            hn_rope_table(cs, freq, 64, 5 + shift[i], 1.0f);
            hn_rope_apply(k, cs, 1, 64, 64, neox);
            for (int j = 0; j < 64; j++) dot += (double)q[j] * (double)k[j];
            if (i == 0) first = dot;
            assert_true(fabs(dot - first) < 5e-6);
        }
    }
}

/* ---- other layouts of the same file --------------------------------------------------------------------- */

static void logits_of(tiny *m, float *y)
{
    hone_model *model = tm_open(m);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, model, 64, 1, 4, HONE_CACHE_F16);
    tm_run(s, 0, prompt, 6, y);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(model);
}

static void fused_qkv(void **state)
{
    static const hn_type types[] = { HN_F32, HN_F16, HN_BF16, HN_Q8_0, HN_Q4_0, HN_Q5_0 };
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
            tm_shape s = i == 0 ? tm_llama : i == 1 ? tm_qwen2 : tm_qwen3;
            if (i == 0 && j % 2) s.qkv_bias = true;
            float a[6 * 16], b[6 * 16];
            tiny *m = tm_new(s);
            for (int il = 0; il < s.L; il++)
                for (int k = 0; k < 3; k++) {
                    char name[64];
                    snprintf(name, sizeof name, "blk.%d.attn_%c.weight", il, "qkv"[k]);
                    tm_retype(m, name, types[j]);
                }
            logits_of(m, a);
            tm_fuse_qkv(m);
            assert_null(tm_find(m, "blk.0.attn_q.weight"));
            logits_of(m, b);
            assert_memory_equal(a, b, sizeof a);
            tm_free(m);
        }
}

static void narrow_vectors(void **state)
{
    static const hn_type types[] = { HN_F16, HN_BF16 };
    for (int i = 0; i < N_PUBLISHED; i++)
        for (int j = 0; j < 2; j++) {
            float a[6 * 16], b[6 * 16], c[6 * 16];
            tiny *m = tm_new(*published[i].shape);
            logits_of(m, a);
            for (int k = 0; k < m->n_t; k++)
                if (m->t[k].n_dim == 1) tm_encode(&m->t[k], types[j]); /* the values are now those of the narrow type */
            logits_of(m, b);
            for (int k = 0; k < m->n_t; k++)
                if (m->t[k].n_dim == 1) tm_encode(&m->t[k], HN_F32);
            logits_of(m, c);
            assert_memory_equal(b, c, sizeof b);
            assert_memory_not_equal(a, b, sizeof a);
            tm_free(m);
        }
}

/* Integers of any width, f64 for f32, and per-layer arrays that say the same for all layers. */
static void other_value_types(void **state)
{
    float a[6 * 16], b[6 * 16];
    for (int i = 0; i < N_PUBLISHED; i++) {
        tiny *m = tm_new(*published[i].shape);
        logits_of(m, a);
        static const struct {
            uint32_t type;
            int size;
        } ints[] = { { HONE_KV_U8, 1 },  { HONE_KV_I8, 1 },  { HONE_KV_U16, 2 }, { HONE_KV_I16, 2 },
                     { HONE_KV_I32, 4 }, { HONE_KV_U64, 8 }, { HONE_KV_I64, 8 } };
        for (size_t j = 0; j < sizeof ints / sizeof *ints; j++) {
            for (int k = 0; k < m->n_kv; k++) {
                uint32_t v = 0;
                tm_kv *e = &m->kv[k];
                if (e->type == HONE_KV_STRING || e->type == HONE_KV_F32) continue;
                memcpy(&v, e->value.p, (size_t)(j && e->value.n < 4 ? (int)e->value.n : 4));
                if (strstr(e->key, "context_length")) v = 100;
                e->type = ints[j].type;
                e->value.n = 0;
                bb_le(&e->value, v, ints[j].size);
            }
            hone_error err = { 0 };
            hone_model *model;
            tm_save_raw(m, tm_path("ints.gguf"));
            if (hone_model_open(&model, tm_path("ints.gguf"), NULL, &err)) fail_msg("%s", err.message);
            hone_model_info info;
            hone_model_get_info(model, &info);
            assert_int_equal(info.n_embd, m->s.E);
            assert_int_equal(info.n_ff, m->s.F);
            assert_int_equal(info.n_layer, m->s.L);
            assert_int_equal(info.n_head, m->s.H);
            assert_int_equal(info.n_head_kv, m->s.G);
            assert_int_equal(info.head_dim, m->s.d);
            assert_int_equal(info.n_vocab, m->s.V);
            assert_int_equal(info.n_ctx_train, 100);
            assert_string_equal(info.arch, m->s.arch);
            hone_model_close(model);
        }
        tm_free(m);

        m = tm_new(*published[i].shape);
        double base = (double)(float)m->s.base, eps = (double)(float)m->s.eps;
        bb_raw(tm_put(m, tm_key(m, "rope.freq_base"), HONE_KV_F64), &base, 8);
        bb_raw(tm_put(m, tm_key(m, "attention.layer_norm_rms_epsilon"), HONE_KV_F64), &eps, 8);
        tm_put_u32s(m, tm_key(m, "attention.head_count"), 2, (uint32_t)m->s.H);
        tm_put_u32s(m, tm_key(m, "attention.head_count_kv"), 2, (uint32_t)m->s.G);
        tm_put_u32s(m, tm_key(m, "feed_forward_length"), 2, (uint32_t)m->s.F);
        tm_put_u32(m, tm_key(m, "vocab_size"), 16);
        tm_put_str(m, "general.type", "model");
        tm_put_str(m, "general.name", "tiny");
        hone_error err = { 0 };
        hone_model *model;
        tm_save_raw(m, tm_path("types.gguf"));
        if (hone_model_open(&model, tm_path("types.gguf"), NULL, &err)) fail_msg("%s", err.message);
        hone_context *c = tm_context(NULL, 1);
        hone_session *s = tm_session(c, model, 64, 1, 4, HONE_CACHE_F16);
        tm_run(s, 0, prompt, 6, b);
        assert_memory_equal(a, b, sizeof a);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(model);
        tm_free(m);
    }
}

/* What the information of a model says, counted here from the shapes. */
static void info(void **state)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        tiny *m = tm_new(*published[i].shape);
        hone_model *model = tm_open(m);
        hone_model_info in;
        uint64_t n = 0;
        hone_model_get_info(model, &in);
        for (int k = 0; k < m->n_t; k++) n += tm_elems(&m->t[k]);
        assert_int_equal(in.n_params, n);
        assert_int_equal(in.n_bytes, 4 * n);
        assert_int_equal(in.bytes_per_token, 4 * n - (m->s.tied ? 0 : (uint64_t)(4 * m->s.E * (m->s.V - 1))));
        assert_string_equal(in.type, "F32");
        assert_string_equal(in.name, "");
        assert_false(in.has_tokenizer);
        hone_model_close(model);
        tm_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipe),
        cmocka_unit_test(reference_gives_published),
        cmocka_unit_test(engine_gives_published),
        cmocka_unit_test(shapes),
        cmocka_unit_test(rope_scaling),
        cmocka_unit_test(llama3_factors),
        cmocka_unit_test(rotation_is_relative),
        cmocka_unit_test(fused_qkv),
        cmocka_unit_test(narrow_vectors),
        cmocka_unit_test(other_value_types),
        cmocka_unit_test(info),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
