/* What RWKV needs over sixteen lanes, included by lanes.h on each level. In the
 * recurrence lanes are values (rows of the paper's state), keys are walked in order, so
 * nothing is summed across lanes; four registers of values are in flight at a time. */

/* AddressSanitizer's stand-in for the stack (gcc 12) aligns to 32 bytes, but compilers give arrays that whole
 * registers are kept in 64 and rely on it. */
#define ON_STACK __attribute__((no_sanitize_address))

/* The first n of sixteen lanes, zeros after them. */
ON_STACK static __attribute__((noinline)) v16 tail16(const float *p, int64_t n)
{
    float t[16] = { 0 };
    memcpy(t, p, (size_t)n * sizeof(float));
    return v16_load(t);
}

HN_INLINE float sum_of(const float *x, int64_t n)
{
    v16 t = v16_zero(), one = v16_set1(1.0f);
    for (int64_t b = 0; b < n; b += 256) {
        int64_t end = b + 256 < n ? b + 256 : n, k = b;
        v16 p = v16_zero();
        for (; k + 16 <= end; k += 16) p = v16_add(p, v16_load(x + k));
        if (k < end) p = v16_fma_first(tail16(x + k, end - k), one, p, (int)(end - k));
        t = b ? v16_add(t, p) : p;
    }
    return v16_tree(t);
}

HN_INLINE float sum_of_squares(const float *x, float mean, int64_t n)
{
    v16 t = v16_zero(), m = v16_set1(mean);
    for (int64_t b = 0; b < n; b += 256) {
        int64_t end = b + 256 < n ? b + 256 : n, k = b;
        v16 p = v16_zero();
        for (; k + 16 <= end; k += 16) {
            v16 v = v16_sub(v16_load(x + k), m);
            p = v16_fma(v, v, p);
        }
        if (k < end) {
            v16 v = v16_sub(tail16(x + k, end - k), m);
            p = v16_fma_first(v, v, p, (int)(end - k));
        }
        t = b ? v16_add(t, p) : p;
    }
    return v16_tree(t);
}

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    float mean = sum_of(x, n) / (float)n, scale = 1.0f / sqrtf(sum_of_squares(x, mean, n) / (float)n + eps);
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        v16_store(y + k, v16_fma(v16_mul(v16_sub(v16_load(x + k), v16_set1(mean)), v16_set1(scale)), v16_load(w + k),
                                 b ? v16_load(b + k) : v16_zero()));
    for (; k < n; k++) y[k] = fmaf((x[k] - mean) * scale, w[k], b ? b[k] : 0.0f);
}

static void lerp(float *y, const float *h, const float *prev, const float *mix, const float *delta, int64_t n)
{
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        v16 hv = v16_load(h + k), m = v16_load(mix + k);
        if (delta) m = v16_add(m, v16_load(delta + k));
        v16_store(y + k, v16_fma(v16_sub(v16_load(prev + k), hv), m, hv));
    }
    for (; k < n; k++) y[k] = fmaf(prev[k] - h[k], delta ? mix[k] + delta[k] : mix[k], h[k]);
}

/* ---- functions of one element ------------------------------------------------------------------ */

HN_INLINE v16 v16_neg(v16 x) { return v16_sub(v16_set1(-0.0f), x); }
HN_INLINE v16 v16_sigmoid(v16 x) { return v16_div(v16_set1(1.0f), v16_add(v16_set1(1.0f), v16_exp(v16_neg(x)))); }
HN_INLINE v16 v16_silu(v16 x) { return v16_div(x, v16_add(v16_set1(1.0f), v16_exp(v16_neg(x)))); }
HN_INLINE v16 v16_sqrelu(v16 x)
{
    v16 p = v16_where_less(x, v16_zero(), v16_zero(), x);
    return v16_mul(p, p);
}
#define MAP(NAME, LANES, ONE)                                                  \
    static void NAME(float *y, int64_t n)                                      \
    {                                                                          \
        int64_t k = 0;                                                         \
        for (; k + 16 <= n; k += 16) v16_store(y + k, LANES(v16_load(y + k))); \
        for (; k < n; k++) y[k] = ONE(y[k]);                                   \
    }
HN_INLINE float silu_of(float x) { return x / (1.0f + hn_exp_inline(-x)); }
HN_INLINE float sqrelu_of(float x)
{
    float p = x < 0.0f ? 0.0f : x;
    return p * p;
}
HN_INLINE v16 v16_softplus(v16 x)
{
    v16 zero = v16_zero(), t = v16_exp(v16_where_less(x, zero, x, v16_neg(x))),
        s = v16_div(t, v16_add(v16_set1(2.0f), t));
    v16 z = v16_mul(s, s), p = v16_set1(HN_LOG1P_C(8));
    HN_UNROLL_FOR(int k = 7; k >= 1; k--) p = v16_fma(p, z, v16_set1(HN_LOG1P_C(k)));
    return v16_add(v16_where_less(x, zero, zero, x), v16_fma(v16_mul(s, z), p, v16_add(s, s)));
}
HN_INLINE v16 v16_gelu_erf(v16 x)
{
    v16 zero = v16_zero(), most = v16_set1(HN_ERF_FAR), a = v16_where_less(x, zero, v16_neg(x), x);
    a = v16_where_less(a, most, a, most);
    v16 t = v16_div(v16_set1(1.0f), v16_fma(v16_set1(HN_ERF_P), a, v16_set1(1.0f)));
    v16 p = v16_fma(v16_set1(HN_ERF_A5), t, v16_set1(HN_ERF_A4));
    p = v16_fma(p, t, v16_set1(HN_ERF_A3));
    p = v16_fma(p, t, v16_set1(HN_ERF_A2));
    p = v16_fma(p, t, v16_set1(HN_ERF_A1));
    v16 half = v16_mul(v16_set1(0.5f), a), e = v16_exp(v16_mul(v16_mul(v16_set1(-0.5f), a), a));
    return v16_sub(v16_where_less(x, zero, zero, x), v16_mul(half, v16_mul(v16_mul(p, t), e)));
}
HN_INLINE v16 v16_xielu(v16 x, const hn_xielu *a)
{
    v16 eps = v16_set1(a->eps), m = v16_where_less(x, eps, x, eps), z = v16_mul(m, m);
    v16 p = v16_fma(v16_set1(HN_XIELU_C9), m, v16_set1(HN_XIELU_C8));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C7));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C6));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C5));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C4));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C3));
    p = v16_fma(p, m, v16_set1(HN_XIELU_C2));
    v16 far = v16_sub(v16_sub(v16_exp(m), v16_set1(1.0f)), m), beta = v16_set1(a->beta);
    v16 t = v16_where_less(z, v16_set1(HN_XIELU_EDGE), v16_mul(z, p), far);
    v16 below = v16_fma(v16_add(t, v16_sub(m, x)), v16_set1(a->alpha_n), v16_mul(beta, x));
    return v16_where_less(v16_zero(), x, v16_mul(x, v16_fma(v16_set1(a->alpha_p), x, beta)), below);
}
static void xielu(float *y, int64_t n, const hn_xielu *a)
{
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) v16_store(y + k, v16_xielu(v16_load(y + k), a));
    for (; k < n; k++) y[k] = hn_xielu_inline(y[k], a);
}
MAP(map_tanh, v16_tanh, hn_tanh_inline)
MAP(map_sigmoid, v16_sigmoid, hn_sigmoid_inline)
MAP(map_silu, v16_silu, silu_of)
MAP(map_sqrelu, v16_sqrelu, sqrelu_of)
MAP(map_gelu, v16_gelu, hn_gelu_inline)
MAP(map_softplus, v16_softplus, hn_softplus_inline)
MAP(map_gelu_erf, v16_gelu_erf, hn_gelu_erf_inline)

static void gelu_erf_mul(float *y, const float *g, const float *u, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_mul(v16_gelu_erf(v16_load(g + i)), v16_load(u + i)));
    for (; i < n; i++) y[i] = hn_gelu_erf_inline(g[i]) * u[i];
}

/* ---- recurrences ----------------------------------------------------------------------------------- */

/* What a step takes, made of the vectors of a head. */
typedef struct wkv_head {
    float d[HN_MAX_WKV], kk[HN_MAX_WKV], ka[HN_MAX_WKV], kb[HN_MAX_WKV], v[HN_MAX_WKV];
} wkv_head;

/* Values [i, i + 16·V) of RWKV-7's step. */
ON_STACK HN_INLINE void step7(const hn_wkv *a, wkv_head *h, int32_t i, const int V)
{
    int32_t n = a->n;
    v16 z[4], y[4], v[4];
    float *s = a->s + i;
    HN_UNROLL_FOR(int c = 0; c < V; c++) z[c] = y[c] = v16_zero(), v[c] = v16_load(h->v + i + 16 * c);
    for (int32_t j = 0; j < n; j++) {
        v16 kk = v16_set1(-h->kk[j]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) z[c] = v16_fma(v16_load(s + (int64_t)j * n + 16 * c), kk, z[c]);
    }
    for (int32_t j = 0; j < n; j++) {
        v16 d = v16_set1(h->d[j]), ka = v16_set1(h->ka[j]), kb = v16_set1(h->kb[j]), r = v16_set1(a->r[j]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) {
            v16 t = v16_fma(z[c], kb, v16_fma(v[c], ka, v16_mul(v16_load(s + (int64_t)j * n + 16 * c), d)));
            v16_store(s + (int64_t)j * n + 16 * c, t);
            y[c] = v16_fma(t, r, y[c]);
        }
    }
    HN_UNROLL_FOR(int c = 0; c < V; c++) v16_store(a->out + i + 16 * c, y[c]);
}

ON_STACK static void wkv7(const hn_wkv *a)
{
    wkv_head h;
    int32_t n = a->n, j = 0, i = 0;
    for (; j + 16 <= n; j += 16) v16_store(h.kk + j, v16_mul(v16_load(a->k + j), v16_load(a->k_k + j)));
    for (; j < n; j++) h.kk[j] = a->k[j] * a->k_k[j];
    float norm = sqrtf(sum_of_squares(h.kk, 0.0f, n)), inv = 1.0f / (norm < 1e-12f ? 1e-12f : norm);
    v16 one = v16_set1(1.0f), bonus = v16_zero();
    for (j = 0; j + 16 <= n; j += 16) {
        v16 k = v16_load(a->k + j), v = v16_load(a->v + j), s = v16_sigmoid(v16_load(a->a + j)),
            kk = v16_mul(v16_load(h.kk + j), v16_set1(inv));
        v16 ka = v16_mul(k, v16_fma(v16_sub(s, one), v16_load(a->k_a + j), one));
        v16_store(h.d + j, v16_exp(v16_mul(v16_set1(HN_RWKV7_DECAY), v16_sigmoid(v16_load(a->w + j)))));
        v16_store(h.kk + j, kk);
        v16_store(h.kb + j, v16_mul(kk, s));
        v16_store(h.ka + j, ka);
        if (!a->v_mix) v16_store(a->v_first + j, v);
        else v = v16_fma(v16_sub(v16_load(a->v_first + j), v), v16_sigmoid(v16_load(a->v_mix + j)), v);
        v16_store(h.v + j, v);
        bonus = v16_fma(v16_mul(v16_load(a->r + j), ka), v16_load(a->r_k + j),
                        bonus); /* at most 256: one block of the rule */
    }
    if (j < n) {
        float rka[16] = { 0 };
        int m = n - j;
        for (int32_t x = j; x < n; x++) {
            float s = hn_sigmoid_inline(a->a[x]);
            h.d[x] = hn_exp_inline(HN_RWKV7_DECAY * hn_sigmoid_inline(a->w[x]));
            h.kk[x] *= inv;
            h.kb[x] = h.kk[x] * s;
            h.ka[x] = a->k[x] * fmaf(s - 1.0f, a->k_a[x], 1.0f);
            if (!a->v_mix) a->v_first[x] = a->v[x];
            h.v[x] = a->v_mix ? fmaf(a->v_first[x] - a->v[x], hn_sigmoid_inline(a->v_mix[x]), a->v[x]) : a->v[x];
            rka[x - j] = a->r[x] * h.ka[x];
        }
        bonus = v16_fma_first(v16_load(rka), tail16(a->r_k + j, m), bonus, m);
    }
    for (; i + 64 <= n; i += 64) step7(a, &h, i, 4);
    for (; i + 16 <= n; i += 16) step7(a, &h, i, 1);
    for (; i < n; i++) {
        float z = 0.0f, y = 0.0f;
        for (j = 0; j < n; j++) z = fmaf(a->s[j * n + i], -h.kk[j], z);
        for (j = 0; j < n; j++) {
            float *s = &a->s[j * n + i];
            *s = fmaf(z, h.kb[j], fmaf(h.v[i], h.ka[j], *s * h.d[j]));
            y = fmaf(*s, a->r[j], y);
        }
        a->out[i] = y;
    }
    layer_norm(a->out, a->out, a->ln_w, a->ln_b, n, a->eps);
    float b = v16_tree(bonus);
    for (i = 0; i + 16 <= n; i += 16)
        v16_store(a->out + i,
                  v16_mul(v16_fma(v16_load(h.v + i), v16_set1(b), v16_load(a->out + i)), v16_load(a->g + i)));
    for (; i < n; i++) a->out[i] = fmaf(h.v[i], b, a->out[i]) * a->g[i];
}

ON_STACK HN_INLINE void step6(const hn_wkv *a, wkv_head *h, int32_t j, const int V)
{
    int32_t n = a->n;
    v16 y[4], v[4];
    float *s = a->s + j;
    HN_UNROLL_FOR(int c = 0; c < V; c++) y[c] = v16_zero(), v[c] = v16_load(a->v + j + 16 * c);
    for (int32_t i = 0; i < n; i++) {
        v16 k = v16_set1(a->k[i]), d = v16_set1(h->d[i]), u = v16_set1(a->first[i]), r = v16_set1(a->r[i]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) {
            v16 t = v16_load(s + (int64_t)i * n + 16 * c), kv = v16_mul(k, v[c]);
            y[c] = v16_fma(r, v16_fma(u, kv, t), y[c]);
            v16_store(s + (int64_t)i * n + 16 * c, v16_fma(t, d, kv));
        }
    }
    HN_UNROLL_FOR(int c = 0; c < V; c++) v16_store(a->out + j + 16 * c, y[c]);
}

ON_STACK static void wkv6(const hn_wkv *a)
{
    wkv_head h;
    int32_t n = a->n, i = 0, j = 0;
    for (; i + 16 <= n; i += 16) v16_store(h.d + i, v16_exp(v16_neg(v16_exp(v16_load(a->w + i)))));
    for (; i < n; i++) h.d[i] = hn_exp_inline(-hn_exp_inline(a->w[i]));
    for (; j + 64 <= n; j += 64) step6(a, &h, j, 4);
    for (; j + 16 <= n; j += 16) step6(a, &h, j, 1);
    for (; j < n; j++) {
        float y = 0.0f;
        for (i = 0; i < n; i++) {
            float *s = &a->s[i * n + j], kv = a->k[i] * a->v[j];
            y = fmaf(a->r[i], fmaf(a->first[i], kv, *s), y);
            *s = fmaf(*s, h.d[i], kv);
        }
        a->out[j] = y;
    }
    layer_norm(a->out, a->out, a->ln_w, a->ln_b, n, a->eps);
    for (j = 0; j + 16 <= n; j += 16) v16_store(a->out + j, v16_mul(v16_load(a->out + j), v16_load(a->g + j)));
    for (; j < n; j++) a->out[j] = a->out[j] * a->g[j];
}

#define HN_LANES_RWKV                                                                                                 \
    .layer_norm = layer_norm, .lerp = lerp, .wkv6 = wkv6, .wkv7 = wkv7, .xielu = xielu, .gelu_erf_mul = gelu_erf_mul, \
    .map = { [HN_MAP_TANH] = map_tanh,        [HN_MAP_SIGMOID] = map_sigmoid, [HN_MAP_SILU] = map_silu,               \
             [HN_MAP_SQRELU] = map_sqrelu,    [HN_MAP_GELU] = map_gelu,       [HN_MAP_SOFTPLUS] = map_softplus,       \
             [HN_MAP_GELU_ERF] = map_gelu_erf }
