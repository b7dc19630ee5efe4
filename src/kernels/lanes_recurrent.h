/* Recurrences of hybrids over sixteen lanes, included by lanes.h on each level behind lanes_rwkv.h. Lanes are channels
 * or values, states and keys are walked in order: nothing is summed across lanes but what norms sum. */

static void conv(const hn_conv_row *a)
{
    int64_t c = 0;
    for (; c + 16 <= a->n; c += 16) {
        v16 s = v16_zero();
        for (int32_t j = 0; j < a->taps; j++) s = v16_fma(v16_load(a->w + j * a->ldw + c), v16_load(a->x[j] + c), s);
        if (a->b) s = v16_add(s, v16_load(a->b + c));
        v16_store(a->y + c, a->silu ? v16_silu(s) : s);
    }
    for (; c < a->n; c++) {
        float s = 0.0f;
        for (int32_t j = 0; j < a->taps; j++) s = fmaf(a->w[j * a->ldw + c], a->x[j][c], s);
        if (a->b) s += a->b[c];
        a->y[c] = a->silu ? silu_of(s) : s;
    }
}

/* Channels [i, i + 16·V) of Mamba-2's step. */
ON_STACK HN_INLINE void ssm_step(const hn_ssm_head *a, int32_t i, const int V)
{
    v16 x[4], y[4], decay = v16_set1(a->decay);
    float *s = a->s + i;
    HN_UNROLL_FOR(int c = 0; c < V; c++)
        x[c] = v16_mul(v16_set1(a->dt), v16_load(a->x + i + 16 * c)), y[c] = v16_zero();
    for (int32_t j = 0; j < a->n; j++, s += a->p) {
        v16 b = v16_set1(a->b[j]), k = v16_set1(a->c[j]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) {
            v16 t = v16_fma(v16_load(s + 16 * c), decay, v16_mul(x[c], b));
            v16_store(s + 16 * c, t);
            y[c] = v16_fma(t, k, y[c]);
        }
    }
    HN_UNROLL_FOR(int c = 0; c < V; c++) {
        v16_store(a->y + i + 16 * c, v16_fma(v16_set1(a->d), v16_load(a->x + i + 16 * c), y[c]));
    }
}

static void ssm(const hn_ssm_head *a)
{
    int32_t i = 0;
    for (; i + 64 <= a->p; i += 64) ssm_step(a, i, 4);
    for (; i + 16 <= a->p; i += 16) ssm_step(a, i, 1);
    for (; i < a->p; i++) {
        float x = a->dt * a->x[i], y = 0.0f;
        for (int32_t j = 0; j < a->n; j++) {
            float *s = &a->s[j * a->p + i];
            *s = fmaf(*s, a->decay, x * a->b[j]);
            y = fmaf(*s, a->c[j], y);
        }
        a->y[i] = fmaf(a->d, a->x[i], y);
    }
}

/* ---- Mamba: a decay of each channel and state ------------------------------------------------------------ */

static void scan(const hn_scan_run *a)
{
    int64_t i = 0;
    for (; i + 16 <= a->p; i += 16) {
        v16 x = v16_load(a->x + i), dt = v16_load(a->dt + i), in = v16_mul(dt, x), y = v16_zero();
        for (int32_t j = 0; j < a->n; j++) {
            float *s = a->s + j * a->lds + i;
            v16 decay = v16_exp(v16_mul(dt, v16_load(a->a + j * a->lda + i)));
            v16 t = v16_fma(v16_load(s), decay, v16_mul(in, v16_set1(a->b[j])));
            v16_store(s, t);
            y = v16_fma(t, v16_set1(a->c[j]), y);
        }
        v16_store(a->y + i, v16_fma(v16_load(a->d + i), x, y));
    }
    for (; i < a->p; i++) {
        float in = a->dt[i] * a->x[i], y = 0.0f;
        for (int32_t j = 0; j < a->n; j++) {
            float *s = &a->s[j * a->lds + i];
            *s = fmaf(*s, hn_exp_inline(a->dt[i] * a->a[j * a->lda + i]), in * a->b[j]);
            y = fmaf(*s, a->c[j], y);
        }
        a->y[i] = fmaf(a->d[i], a->x[i], y);
    }
}

/* ---- the gated delta rule -------------------------------------------------------------------------- */

typedef struct delta_keys {
    float q[HN_MAX_WKV], k[HN_MAX_WKV], g[HN_MAX_WKV];
} delta_keys;

HN_INLINE void l2_norm(float *y, const float *x, int32_t n, float eps, float f)
{
    float scale = 1.0f / sqrtf(sum_of_squares(x, 0.0f, n) + eps);
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_mul(v16_mul(v16_load(x + i), v16_set1(scale)), v16_set1(f)));
    for (; i < n; i++) y[i] = x[i] * scale * f;
}

/* Values [i, i + 16·V): what the state says of the key, then the state with its correction, which is asked. */
ON_STACK HN_INLINE void delta_step(const hn_delta_head *a, const delta_keys *h, int32_t i, const int V)
{
    int32_t n = a->n;
    v16 z[4], o[4], d[4];
    float *s = a->s + i;
    HN_UNROLL_FOR(int c = 0; c < V; c++) z[c] = o[c] = v16_zero();
    for (int32_t j = 0; j < n; j++) {
        v16 k = v16_set1(h->k[j]), g = v16_set1(h->g[j]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) {
            z[c] = v16_fma(v16_mul(v16_load(s + (int64_t)j * n + 16 * c), g), k, z[c]);
        }
    }
    HN_UNROLL_FOR(int c = 0; c < V; c++) {
        d[c] = v16_mul(v16_set1(a->beta), v16_sub(v16_load(a->v + i + 16 * c), z[c]));
    }
    for (int32_t j = 0; j < n; j++) {
        v16 k = v16_set1(h->k[j]), g = v16_set1(h->g[j]), q = v16_set1(h->q[j]);
        HN_UNROLL_FOR(int c = 0; c < V; c++) {
            v16 t = v16_fma(k, d[c], v16_mul(v16_load(s + (int64_t)j * n + 16 * c), g));
            v16_store(s + (int64_t)j * n + 16 * c, t);
            o[c] = v16_fma(t, q, o[c]);
        }
    }
    HN_UNROLL_FOR(int c = 0; c < V; c++) v16_store(a->out + i + 16 * c, o[c]);
}

/* out = out·map(gate) */
static void delta_gate(const hn_delta_head *a)
{
    int32_t i = 0;
    for (; i + 16 <= a->n; i += 16) {
        v16 g = v16_load(a->gate + i);
        v16_store(a->out + i, v16_mul(v16_load(a->out + i), a->sigmoid ? v16_sigmoid(g) : v16_silu(g)));
    }
    for (; i < a->n; i++) a->out[i] *= a->sigmoid ? hn_sigmoid_inline(a->gate[i]) : silu_of(a->gate[i]);
}

ON_STACK static void delta(const hn_delta_head *a)
{
    delta_keys h;
    int32_t n = a->n, i = 0, j = 0;
    l2_norm(h.q, a->q, n, a->eps, 1.0f / sqrtf((float)n));
    l2_norm(h.k, a->k, n, a->eps, 1.0f);
    if (!a->each) h.g[0] = hn_exp_inline(a->a * a->decay[0]);
    for (; j + 16 <= n; j += 16)
        v16_store(h.g + j, a->each ? v16_exp(v16_mul(v16_set1(a->a), v16_load(a->decay + j))) : v16_set1(h.g[0]));
    for (; j < n; j++) h.g[j] = a->each ? hn_exp_inline(a->a * a->decay[j]) : h.g[0];
    for (; i + 64 <= n; i += 64) delta_step(a, &h, i, 4);
    for (; i + 16 <= n; i += 16) delta_step(a, &h, i, 1);
    for (; i < n; i++) {
        float z = 0.0f, o = 0.0f;
        for (j = 0; j < n; j++) z = fmaf(a->s[j * n + i] * h.g[j], h.k[j], z);
        float d = a->beta * (a->v[i] - z);
        for (j = 0; j < n; j++) {
            float *s = &a->s[j * n + i];
            *s = fmaf(h.k[j], d, *s * h.g[j]);
            o = fmaf(*s, h.q[j], o);
        }
        a->out[i] = o;
    }
    rms_norm(a->out, a->out, a->norm, n, a->eps);
    delta_gate(a);
}

#define HN_LANES_RECURRENT .conv = conv, .ssm = ssm, .scan = scan, .delta = delta
