/* Recurrences of hybrids, as plain loops: the oracle of every level. Part of scalar.c, behind scalar_rwkv.h, whose
 * sums it takes. kernels.h has the formulas and the order. */

static void map_softplus(float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_softplus_inline(y[k]);
}

static void xielu(float *y, int64_t n, const hn_xielu *a)
{
    for (int64_t k = 0; k < n; k++) y[k] = hn_xielu_inline(y[k], a);
}

static void conv(const hn_conv_row *a)
{
    for (int64_t c = 0; c < a->n; c++) {
        float s = 0.0f;
        for (int32_t j = 0; j < a->taps; j++) s = fmaf(a->w[j * a->ldw + c], a->x[j][c], s);
        if (a->b) s += a->b[c];
        a->y[c] = a->silu ? s / (1.0f + hn_exp_inline(-s)) : s;
    }
}

static void ssm(const hn_ssm_head *a)
{
    for (int32_t i = 0; i < a->p; i++) {
        float x = a->dt * a->x[i], y = 0.0f;
        for (int32_t j = 0; j < a->n; j++) {
            float *s = &a->s[j * a->p + i];
            *s = fmaf(*s, a->decay, x * a->b[j]);
            y = fmaf(*s, a->c[j], y);
        }
        a->y[i] = fmaf(a->d, a->x[i], y);
    }
}

static void scan(const hn_scan_run *a)
{
    for (int64_t i = 0; i < a->p; i++) {
        float x = a->dt[i] * a->x[i], y = 0.0f;
        for (int32_t j = 0; j < a->n; j++) {
            float *s = &a->s[j * a->lds + i];
            *s = fmaf(*s, hn_exp_inline(a->dt[i] * a->a[j * a->lda + i]), x * a->b[j]);
            y = fmaf(*s, a->c[j], y);
        }
        a->y[i] = fmaf(a->d[i], a->x[i], y);
    }
}

/* x·(1/sqrt(Σx² + eps))·f */
static void l2_norm(float *y, const float *x, int32_t n, float eps, float f)
{
    float sum;
#define TERM(k, acc) fmaf(x[k], x[k], acc)
    SUM16(sum, n, TERM);
#undef TERM
    float scale = 1.0f / sqrtf(sum + eps);
    for (int32_t i = 0; i < n; i++) y[i] = x[i] * scale * f;
}

static void delta(const hn_delta_head *a)
{
    float q[HN_MAX_WKV], k[HN_MAX_WKV], g[HN_MAX_WKV];
    int32_t n = a->n;
    l2_norm(q, a->q, n, a->eps, 1.0f / sqrtf((float)n));
    l2_norm(k, a->k, n, a->eps, 1.0f);
    for (int32_t j = 0; j < n; j++) g[j] = hn_exp_inline(a->a * a->decay[a->each ? j : 0]);
    for (int32_t i = 0; i < n; i++) {
        float z = 0.0f, o = 0.0f;
        for (int32_t j = 0; j < n; j++) z = fmaf(a->s[j * n + i] * g[j], k[j], z);
        float d = a->beta * (a->v[i] - z);
        for (int32_t j = 0; j < n; j++) {
            float *s = &a->s[j * n + i];
            *s = fmaf(k[j], d, *s * g[j]);
            o = fmaf(*s, q[j], o);
        }
        a->out[i] = o;
    }
    rms_norm(a->out, a->out, a->norm, n, a->eps);
    for (int32_t i = 0; i < n; i++) {
        float e = 1.0f + hn_exp_inline(-a->gate[i]);
        a->out[i] *= a->sigmoid ? 1.0f / e : a->gate[i] / e;
    }
}
