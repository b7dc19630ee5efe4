/* What RWKV needs, as plain loops: the oracle of every level. Part of scalar.c, whose
 * tree16 it takes. kernels.h has the formulas and the order. */

/* Σ f(k) over n by the float rule: lanes, partial sums per 256, tree. */
#define SUM16(RESULT, N, TERM)                                                      \
    do {                                                                            \
        float t_[16] = { 0 };                                                       \
        for (int64_t b_ = 0; b_ < (N); b_ += 256) {                                 \
            float p_[16] = { 0 };                                                   \
            int64_t end_ = b_ + 256 < (N) ? b_ + 256 : (N);                         \
            for (int64_t k = b_; k < end_; k++) p_[k & 15] = TERM(k, p_[k & 15]);   \
            for (int l_ = 0; l_ < 16; l_++) t_[l_] = b_ ? t_[l_] + p_[l_] : p_[l_]; \
        }                                                                           \
        (RESULT) = tree16(t_);                                                      \
    } while (0)

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    float sum, var;
#define TERM(k, acc) ((acc) + x[k])
    SUM16(sum, n, TERM);
#undef TERM
    float mean = sum / (float)n;
#define TERM(k, acc) fmaf(x[k] - mean, x[k] - mean, acc)
    SUM16(var, n, TERM);
#undef TERM
    float scale = 1.0f / sqrtf(var / (float)n + eps);
    for (int64_t k = 0; k < n; k++) y[k] = fmaf((x[k] - mean) * scale, w[k], b ? b[k] : 0.0f);
}

static void lerp(float *y, const float *h, const float *prev, const float *mix, const float *delta, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = fmaf(prev[k] - h[k], delta ? mix[k] + delta[k] : mix[k], h[k]);
}

static void map_tanh(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_tanh_inline(y[k]);
}

static void map_sigmoid(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_sigmoid_inline(y[k]);
}

static void map_silu(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = y[k] / (1.0f + hn_exp_inline(-y[k]));
}

static void map_sqrelu(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float p = y[k] < 0.0f ? 0.0f : y[k]; /* a NaN stays */
        y[k] = p * p;
    }
}

static void map_gelu(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_gelu_inline(y[k]);
}

static void map_gelu_erf(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_gelu_erf_inline(y[k]);
}

static void wkv7(const hn_wkv *a)
{
    enum { M = HN_MAX_WKV };
    float d[M], kk[M], ka[M], kb[M], v[M], *y = a->out, ss, bonus;
    int32_t n = a->n;
    for (int32_t j = 0; j < n; j++) kk[j] = a->k[j] * a->k_k[j];
#define TERM(k, acc) fmaf(kk[k], kk[k], acc)
    SUM16(ss, n, TERM);
#undef TERM
    float norm = sqrtf(ss), inv = 1.0f / (norm < 1e-12f ? 1e-12f : norm);
    for (int32_t j = 0; j < n; j++) {
        float s = hn_sigmoid_inline(a->a[j]);
        d[j] = hn_exp_inline(HN_RWKV7_DECAY * hn_sigmoid_inline(a->w[j]));
        kk[j] *= inv;
        kb[j] = kk[j] * s;
        ka[j] = a->k[j] * fmaf(s - 1.0f, a->k_a[j], 1.0f);
        if (!a->v_mix) a->v_first[j] = a->v[j];
        v[j] = a->v_mix ? fmaf(a->v_first[j] - a->v[j], hn_sigmoid_inline(a->v_mix[j]), a->v[j]) : a->v[j];
    }
    for (int32_t i = 0; i < n; i++) {
        float z = 0.0f;
        y[i] = 0.0f;
        for (int32_t j = 0; j < n; j++) z = fmaf(a->s[j * n + i], -kk[j], z);
        for (int32_t j = 0; j < n; j++) {
            float *s = &a->s[j * n + i];
            *s = fmaf(z, kb[j], fmaf(v[i], ka[j], *s * d[j]));
            y[i] = fmaf(*s, a->r[j], y[i]);
        }
    }
#define TERM(k, acc) fmaf(a->r[k] * ka[k], a->r_k[k], acc)
    SUM16(bonus, n, TERM);
#undef TERM
    layer_norm(y, y, a->ln_w, a->ln_b, n, a->eps);
    for (int32_t i = 0; i < n; i++) a->out[i] = fmaf(v[i], bonus, y[i]) * a->g[i];
}

static void wkv6(const hn_wkv *a)
{
    float d[HN_MAX_WKV], *y = a->out;
    int32_t n = a->n;
    for (int32_t i = 0; i < n; i++) d[i] = hn_exp_inline(-hn_exp_inline(a->w[i]));
    for (int32_t j = 0; j < n; j++) {
        y[j] = 0.0f;
        for (int32_t i = 0; i < n; i++) {
            float *s = &a->s[i * n + j], kv = a->k[i] * a->v[j];
            y[j] = fmaf(a->r[i], fmaf(a->first[i], kv, *s), y[j]);
            *s = fmaf(*s, d[i], kv);
        }
    }
    layer_norm(y, y, a->ln_w, a->ln_b, n, a->eps);
    for (int32_t j = 0; j < n; j++) a->out[j] = y[j] * a->g[j];
}
