/* The gradient of every operation of training alone, through the functions that the trainer calls: norms of
 * rows and of heads, rotation, products in their three forms, bias, adapters with and without dropout, gates
 * and maps, attention with windows and caps, the head with its loss, embedding, the sum that goes around a
 * block. Each against central differences of the same operation written plainly here in double, on every
 * level and number of threads with the same bits.
 *
 * Relative error: the largest difference among the elements of an array over the largest element, at most
 * 1e-4; of large arrays a few elements are taken, and directions of ±1 in all of them at once, whose
 * differences are held against the array's 2-norm. */
#include "grad_ops.h"

/* ---- norm, and the sum around a block: y = x + norm(x)·w --------------------------------------------------- */

static void ref_norm_row(double *y, const double *x, const double *w, int64_t n, double eps)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    s = 1 / sqrt(s / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}

typedef struct norm_op {
    int64_t n, width;
    double eps, *x, *w, *y;
    const float *fx, *u;
    trained tw;
} norm_op;

static double norm_ref(void *arg)
{
    norm_op *o = arg;
    for (int64_t t = 0; t < o->n; t++) ref_norm_row(o->y + t * o->width, o->x + t * o->width, o->w, o->width, o->eps);
    return dot(o->y, o->u, o->n * o->width) + dot(o->x, o->u, o->n * o->width);
}
static void norm_run(hn_grad *g, void *arg, float *out)
{
    norm_op *o = arg;
    int64_t n = o->n * o->width;
    hn_tensor_ref w = { .full = &o->tw.p };
    trained_start(&o->tw);
    hn_train_norm(g, out, o->fx, &w, o->n);
    memcpy(out + n, o->u, (size_t)n * sizeof(float)); /* what went around is there already */
    hn_train_norm_back(g, out + n, o->u, o->fx, &w, o->n, o->width);
    trained_out(&o->tw, out + 2 * n);
}
static void norm_and_sum(void **state)
{
    static const int64_t widths[] = { 1, 5, 16, 24, 37, 256, 300 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t T = 9, D = widths[i], n = T * D;
        float eps = D == 1 ? 0.5f : 1e-5f; /* of one element, only eps leaves anything of the gradient */
        norm_op o = { .n = T, .width = D, .eps = eps, .fx = drawn(n, 2), .u = drawn(n, 1), .y = doubles(n) };
        const float *w = drawn(D, 1.5f);
        o.x = wide(o.fx, n);
        o.w = wide(w, D);
        o.tw = trained_new(w, 1, D);
        hone_model m = { .hp = { .n_embd = (int32_t)D, .rms_eps = eps } };
        hn_grad g = { .m = &m, .inv_rms = floats(T) };
        const float *out = everywhere("norm", &g, norm_run, &o, 2 * n + D);
        norm_ref(&o);
        near("norm", out, o.y, n);
        var v[] = { { "x", o.x, out + n, NULL, n }, { "weight", o.w, out + 2 * n, o.tw.from, D } };
        compare("norm", norm_ref, &o, v, 2, 0);
        sweep(state);
    }
}

/* ---- LayerNorm, with or without a bias ------------------------------------------------------------------------ */

typedef struct layer_norm_op {
    int64_t n, width;
    double *x, *w, *b, *y;
    const float *fx, *u;
    trained tw, tb;
    bool biased;
} layer_norm_op;

static double layer_norm_ref(void *arg)
{
    layer_norm_op *o = arg;
    int64_t D = o->width;
    for (int64_t t = 0; t < o->n; t++) {
        const double *x = o->x + t * D;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < D; i++) mean += x[i] / (double)D;
        for (int64_t i = 0; i < D; i++) square += (x[i] - mean) * (x[i] - mean) / (double)D;
        for (int64_t i = 0; i < D; i++)
            o->y[t * D + i] = (x[i] - mean) / sqrt(square + 1e-3) * o->w[i] + (o->biased ? o->b[i] : 0);
    }
    return dot(o->y, o->u, o->n * D) + dot(o->x, o->u, o->n * D);
}
static void layer_norm_run(hn_grad *g, void *arg, float *out)
{
    layer_norm_op *o = arg;
    int64_t n = o->n * o->width;
    hn_tensor_ref w = { .full = &o->tw.p }, b = { .full = o->biased ? &o->tb.p : NULL };
    trained_start(&o->tw), trained_start(&o->tb);
    hn_train_stream_norm(g, out, o->fx, &w, &b, o->n);
    memcpy(out + n, o->u, (size_t)n * sizeof(float)); /* what went around is there already */
    hn_train_stream_norm_back(g, out + n, o->u, o->fx, &w, &b, o->n);
    trained_out(&o->tb, trained_out(&o->tw, out + 2 * n));
}
static void layer_norm(void **state)
{
    static const int64_t widths[] = { 2, 16, 37, 300 };
    for (size_t i = 0; i < 2 * sizeof widths / sizeof *widths; i++) {
        int64_t T = 9, D = widths[i / 2], n = T * D;
        layer_norm_op o = { .n = T, .width = D, .fx = drawn(n, 2), .u = drawn(n, 1), .y = doubles(n) };
        o.biased = i % 2;
        const float *w = drawn(D, 1.5f), *b = drawn(D, 1);
        o.x = wide(o.fx, n), o.w = wide(w, D), o.b = wide(b, D);
        o.tw = trained_new(w, 1, D), o.tb = trained_new(b, 1, D);
        hone_model m = { .hp = { .n_embd = (int32_t)D, .layer_norm = true, .ln_eps = 1e-3f } };
        hn_grad g = { .m = &m, .inv_rms = floats(T), .dr = floats(n) };
        const float *out = everywhere("LayerNorm", &g, layer_norm_run, &o, 2 * n + 2 * D);
        layer_norm_ref(&o);
        near("LayerNorm", out, o.y, n);
        var v[] = { { "x", o.x, out + n, NULL, n },
                    { "weight", o.w, out + 2 * n, o.tw.from, D },
                    { "bias", o.b, out + 2 * n + D, o.tb.from, D } };
        compare("LayerNorm", layer_norm_ref, &o, v, o.biased ? 3 : 2, 0);
        sweep(state);
    }
}

/* ---- norm of heads and rotation ------------------------------------------------------------------------------- */

typedef struct heads_op {
    hn_hparams hp;
    batch b;
    double *x[2], *w[2], *y[2]; /* q, k */
    const float *fx[2], *u[2];
    trained tw[2];
    hn_tgrad_layer l;
    hn_layer_plan plan;
} heads_op;

/* Norms of rows of heads, each or all together. */
static void heads_norm_ref(const heads_op *o, double *y, const double *x, const double *w, int64_t n_row, int64_t H)
{
    int64_t d = o->hp.head_dim, n = o->plan.qk_norm == HN_HEAD_NORM_FULL ? H * d : d;
    for (int64_t i = 0; i < n_row * H * d; i += n) ref_norm_row(y + i, x + i, w, n, o->hp.rms_eps);
}

static double heads_ref(void *arg)
{
    heads_op *o = arg;
    const hn_hparams *hp = &o->hp;
    double sum = 0;
    bool normed = o->plan.qk_norm != HN_HEAD_NORM_NONE, after = o->plan.qk_norm_after;
    for (int a = 0; a < 2; a++) {
        int64_t d = hp->head_dim, H = a ? hp->n_head_kv : hp->n_head, T = o->b.b.n_tok, half = hp->n_rot / 2;
        memcpy(o->y[a], o->x[a], (size_t)(T * H * d) * sizeof(double));
        if (normed && !after) heads_norm_ref(o, o->y[a], o->x[a], o->w[a], T, H);
        for (int64_t r = 0; r < T * H; r++) {
            double *y = o->y[a] + r * d;
            for (int64_t i = 0; i < half && o->plan.rope >= 0; i++) {
                double t = (double)o->b.pos[r / H] * hp->rope[0].freq[i], c = cos(t) * hp->rope[0].mscale,
                       s = sin(t) * hp->rope[0].mscale;
                double *p = y + (hp->rope_neox ? i : 2 * i), *q = y + (hp->rope_neox ? i + half : 2 * i + 1), v = *p;
                *p = v * c - *q * s;
                *q = v * s + *q * c;
            }
        }
        if (normed && after) heads_norm_ref(o, o->y[a], o->y[a], o->w[a], T, H);
        for (int64_t i = 0; o->plan.warm && !a && i < T * H * d; i++)
            o->y[a][i] *= 1 + hp->temperature.scale * log(1 + (double)(o->b.pos[i / (H * d)] / hp->temperature.length));
        sum += dot(o->y[a], o->u[a], T * H * d);
    }
    return sum;
}
static void heads_run(hn_grad *g, void *arg, float *out)
{
    heads_op *o = arg;
    int64_t T = o->b.b.n_tok, nq = T * o->hp.n_head * o->hp.head_dim, nk = T * o->hp.n_head_kv * o->hp.head_dim;
    float *x = need(malloc((size_t)(T * o->hp.n_embd) * sizeof *x)), *q = out, *k = q + nq, *dq = k + nk, *dk = dq + nq;
    float *q_raw = need(malloc((size_t)nq * sizeof *x)), *k_raw = need(malloc((size_t)nk * sizeof *x));
    for (int a = 0; a < 2; a++) trained_start(&o->tw[a]);
    hn_train_embed(g, x, &o->b.b);
    free(x);
    memcpy(q, o->fx[0], (size_t)nq * sizeof *q), memcpy(k, o->fx[1], (size_t)nk * sizeof *k);
    memcpy(dq, o->u[0], (size_t)nq * sizeof *q), memcpy(dk, o->u[1], (size_t)nk * sizeof *k);
    hn_train_heads(g, &o->l, q, k, q_raw, k_raw, T);
    hn_train_heads_back(g, &o->l, dq, dk, q_raw, k_raw, T);
    free(q_raw), free(k_raw);
    out = dk + nk;
    for (int a = 0; a < 2; a++) out = trained_out(&o->tw[a], out);
}
static void heads_case(bool neox, hn_layer_plan plan, int d, int n_rot, float mscale, const int *len, int32_t first)
{
    bool normed = plan.qk_norm != HN_HEAD_NORM_NONE, all = plan.qk_norm == HN_HEAD_NORM_FULL;
    double freq[64];
    for (int i = 0; i < n_rot / 2; i++) freq[i] = pow(10000, -2.0 * i / n_rot);
    heads_op o = { .hp = { .n_embd = 3,
                           .emb_scale = 1,
                           .temperature = { 0.3, 2, 0 },
                           .n_head = 4,
                           .n_head_kv = 2,
                           .head_dim = d,
                           .n_rot = n_rot,
                           .rms_eps = 1e-6f,
                           .rope_neox = neox,
                           .rope[0].mscale = mscale,
                           .rope[0].freq = freq },
                   .b = batch_new(len, first, 5),
                   .plan = plan };
    int64_t T = o.b.b.n_tok, n[2] = { T * 4 * d, T * 2 * d }, nw[2] = { all ? 4 * d : d, all ? 2 * d : d };
    o.l.plan = &o.plan;
    for (int a = 0; a < 2; a++) {
        const float *w = drawn(nw[a], 1.5f);
        o.fx[a] = drawn(n[a], 2), o.u[a] = drawn(n[a], 1), o.y[a] = doubles(n[a]);
        o.x[a] = wide(o.fx[a], n[a]), o.w[a] = wide(w, nw[a]);
        o.tw[a] = trained_new(w, 1, nw[a]);
        if (normed) *(a ? &o.l.k_norm : &o.l.q_norm) = (hn_tensor_ref){ .full = &o.tw[a].p };
    }
    hone_model m = { .hp = o.hp };
    const float *e = drawn(15, 1);
    trained embd = trained_new(e, 5, 3);
    hn_grad g = { .m = &m,
                  .token_embd = { .full = &embd.p },
                  .angles[0] = &m.hp.rope[0],
                  .rope[0] = floats(T * n_rot),
                  .rope_back[0] = floats(T * n_rot),
                  .tau = plan.warm ? floats(T) : NULL,
                  .inv_rms = floats(T * 4),
                  .dq_raw = normed ? floats(n[0]) : NULL,
                  .dk_raw = normed ? floats(n[1]) : NULL };
    const char *what = neox ? "heads, halves" : "heads, pairs";
    const float *out = everywhere(what, &g, heads_run, &o, 2 * (n[0] + n[1]) + nw[0] + nw[1]), *dq = out + n[0] + n[1];
    heads_ref(&o);
    near(what, out, o.y[0], n[0]);
    near(what, out + n[0], o.y[1], n[1]);
    var v[] = { { "q", o.x[0], dq, NULL, n[0] },
                { "k", o.x[1], dq + n[0], NULL, n[1] },
                { "q's norm", o.w[0], dq + n[0] + n[1], o.tw[0].from, nw[0] },
                { "k's norm", o.w[1], dq + n[0] + n[1] + nw[0], o.tw[1].from, nw[1] } };
    compare(what, heads_ref, &o, v, normed ? 4 : 2, 0);
    sweep(NULL);
}
static void heads(void **state)
{
    static const int three[] = { 7, 1, 5, 0 }, one[] = { 1, 0 };
    for (int neox = 0; neox < 2; neox++)
        for (int normed = 0; normed < 2; normed++) {
            const hn_layer_plan plan = { .qk_norm = normed ? HN_HEAD_NORM_EACH : HN_HEAD_NORM_NONE };
            heads_case(neox, plan, 8, 8, 1, three, 0);
            heads_case(neox, plan, 10, 6, 1.25f, three, 0); /* some dims are not turned; YaRN's factor */
            heads_case(neox, plan, 16, 16, 1, one, 1000);
        }
    for (int after = 0; after < 2; after++)
        for (int norm = HN_HEAD_NORM_EACH; norm <= HN_HEAD_NORM_FULL; norm++)
            heads_case(true,
                       (hn_layer_plan){ .qk_norm = (hn_head_norm)norm, .qk_norm_after = after, .warm = norm != 1 }, 10,
                       6, 1, three, 0);
    heads_case(false, (hn_layer_plan){ .rope = -1, .qk_norm = HN_HEAD_NORM_EACH, .warm = true }, 6, 6, 1, three, 3);
}

/* ---- linear: products, bias, adapter ----------------------------------------------------------------------------- */

typedef struct linear_op {
    hn_linear l;
    int64_t n, rank;
    double scale, *x, *w, *bias, *a, *b, *mask, *h, *y;
    const float *fx, *u, *around;
    trained tw, tbias, ta, tb;
} linear_op;

static double linear_ref(void *arg)
{
    linear_op *o = arg;
    int64_t n_in = o->l.n_in, n_out = o->l.n_out;
    for (int64_t t = 0; t < o->n; t++) {
        const double *x = o->x + t * n_in, *mask = o->mask + t * n_in;
        for (int64_t r = 0; r < o->rank; r++) {
            o->h[r] = 0;
            for (int64_t i = 0; i < n_in; i++) o->h[r] += o->a[r * n_in + i] * x[i] * mask[i];
        }
        for (int64_t c = 0; c < n_out; c++) {
            double s = o->bias ? o->bias[c] : 0;
            for (int64_t i = 0; i < n_in; i++) s += o->w[c * n_in + i] * x[i];
            for (int64_t r = 0; r < o->rank; r++) s += o->scale * o->b[c * o->rank + r] * o->h[r];
            o->y[t * n_out + c] = s;
        }
    }
    return dot(o->y, o->u, o->n * n_out);
}
/* y, dx, then of what is trained */
static void linear_run(hn_grad *g, void *arg, float *out)
{
    linear_op *o = arg;
    trained *t[] = { &o->tw, &o->tbias, &o->ta, &o->tb };
    for (int i = 0; i < 4; i++)
        if (t[i]->p.p) trained_start(t[i]);
    float *dx = out + o->n * o->l.n_out;
    hn_train_linear(g, &o->l, out, o->fx, o->n);
    if (o->around) memcpy(dx, o->around, (size_t)(o->n * o->l.n_in) * sizeof *dx);
    hn_train_linear_back(g, &o->l, dx, o->around != NULL, o->u, o->fx, o->n);
    out = dx + o->n * o->l.n_in;
    for (int i = 0; i < 4; i++)
        if (t[i]->p.p) out = trained_out(t[i], out);
}

static float *share_out(hn_grad *g, int64_t n, int64_t n_in, int64_t rank, float dropout)
{
    g->inner = floats(n * rank), g->d_inner = floats(n * rank);
    g->dropped = dropout > 0 ? floats(n * n_in) : NULL;
    g->p.dropout = dropout;
    return g->dropped;
}

/* What falls, seen through an adapter that is the identity around a W of zeros. */
static void mask_run(hn_grad *g, void *arg, float *out)
{
    linear_op *o = arg;
    hn_train_linear(g, &o->l, out, o->fx, o->n);
}
static void find_mask(double *mask, int64_t n, int64_t n_in, uint64_t id, float dropout, uint64_t key)
{
    float *zeros = floats(n_in * n_in), *one = floats(n_in * n_in), *x = floats(n * n_in);
    int64_t fell = 0;
    for (int64_t i = 0; i < n_in * n_in; i++) zeros[i] = 0, one[i] = i % (n_in + 1) == 0;
    for (int64_t i = 0; i < n * n_in; i++) x[i] = 1;
    trained w = trained_new(zeros, n_in, n_in), eye = trained_new(one, n_in, n_in);
    linear_op o = { .l = { .w = { .full = &w.p }, .a = &eye.p, .b = &eye.p, .n_in = n_in, .n_out = n_in, .id = id },
                    .n = n,
                    .fx = x };
    hone_model m = { .hp = { .n_embd = (int32_t)n_in } };
    hn_grad g = { .m = &m, .p.scale = 1, .drop_key = key };
    share_out(&g, n, n_in, n_in, dropout);
    const float *out = everywhere("dropout", &g, mask_run, &o, n * n_in);
    for (int64_t i = 0; i < n * n_in; i++) {
        mask[i] = out[i] == 0 ? 0 : 1 / (1 - (double)dropout);
        if (!(fabs((double)out[i] - mask[i]) <= 1e-6))
            fail_msg("dropout: an element is multiplied by %g", (double)out[i]);
        fell += out[i] == 0;
    }
    double share = (double)fell / (double)(n * n_in), room = 4 * sqrt(dropout * (1 - dropout) / (double)(n * n_in));
    if (!(fabs(share - dropout) <= room)) fail_msg("dropout: %g of all fell, expected %g", share, (double)dropout);
}

typedef struct linear_case {
    hn_type type;
    int64_t n, n_in, n_out, rank;
    bool whole, bias, around;
    float dropout;
} linear_case;

static void check_linear(const linear_case *c)
{
    const hn_type_info *ti = hn_type_get(c->type);
    int64_t nw = c->n_in * c->n_out, nx = c->n * c->n_in, ny = c->n * c->n_out;
    size_t row = (size_t)hn_row_bytes(ti, (uint64_t)c->n_in);
    linear_op o = { .n = c->n,
                    .rank = c->rank,
                    .scale = 1.5,
                    .fx = drawn(nx, 1),
                    .u = drawn(ny, 1),
                    .y = doubles(ny),
                    .mask = doubles(nx),
                    .h = doubles(c->rank),
                    .l = { .n_in = c->n_in, .n_out = c->n_out, .id = 9 } };
    float *w = drawn(nw, 1), *bias = drawn(c->n_out, 1), *a = drawn(c->rank * c->n_in, 1),
          *b = drawn(c->rank * c->n_out, 1);
    char *data = array((size_t)c->n_out * row), what[96];
    for (int64_t r = 0; r < c->n_out; r++) {
        ti->quantize(data + (size_t)r * row, w + r * c->n_in, c->n_in, NULL);
        ti->dequantize(w + r * c->n_in, data + (size_t)r * row, c->n_in);
    }
    hn_weight frozen = { .data = data, .type = c->type, .row_bytes = row, .n_in = c->n_in, .n_out = c->n_out };
    o.l.w.frozen = &frozen;
    o.x = wide(o.fx, nx), o.w = wide(w, nw), o.a = wide(a, c->rank * c->n_in), o.b = wide(b, c->rank * c->n_out);
    if (c->bias) {
        o.bias = wide(bias, c->n_out);
        o.l.bias.values = bias;
    }
    if (c->around) o.around = drawn(nx, 1);
    int64_t n = ny + nx;
    var v[5] = { { "x", o.x, NULL, o.around, nx } };
    int n_var = 1;
    if (c->whole) {
        o.tw = trained_new(w, c->n_out, c->n_in);
        o.l.w.full = &o.tw.p;
        v[n_var++] = (var){ "W", o.w, NULL, o.tw.from, nw };
        if (c->bias) {
            o.tbias = trained_new(bias, 1, c->n_out);
            o.l.bias.full = &o.tbias.p;
            v[n_var++] = (var){ "bias", o.bias, NULL, o.tbias.from, c->n_out };
        }
    }
    if (c->rank) {
        o.ta = trained_new(a, c->rank, c->n_in), o.tb = trained_new(b, c->n_out, c->rank);
        o.l.a = &o.ta.p, o.l.b = &o.tb.p;
        v[n_var++] = (var){ "A", o.a, NULL, o.ta.from, c->rank * c->n_in };
        v[n_var++] = (var){ "B", o.b, NULL, o.tb.from, c->rank * c->n_out };
    }
    hone_model m = { .hp = { .n_embd = (int32_t)c->n_in } };
    hn_grad g = { .m = &m, .p.scale = 1.5f, .drop_key = c->dropout > 0 ? 77 : 0 };
    for (int64_t i = 0; i < nx; i++) o.mask[i] = 1;
    if (c->dropout > 0) find_mask(o.mask, c->n, c->n_in, o.l.id, c->dropout, g.drop_key);
    share_out(&g, c->n, c->n_in, c->rank, c->dropout);
    for (int i = 1; i < n_var; i++) n += v[i].n;
    snprintf(what, sizeof what, "linear %s %lldx%lld, %lld rows, rank %lld%s", ti->name, (long long)c->n_out,
             (long long)c->n_in, (long long)c->n, (long long)c->rank, c->dropout > 0 ? ", dropout" : "");
    const float *out = everywhere(what, &g, linear_run, &o, n), *at = out + ny;
    for (int i = 0; i < n_var; at += v[i++].n) v[i].got = at;
    linear_ref(&o);
    near(what, out, o.y, ny);
    compare(what, linear_ref, &o, v, n_var, 0);
    sweep(NULL);
}

static void products(void **state)
{
    static const linear_case cases[] = {
        { HN_F32, 1, 1, 1, .whole = true, .bias = true },
        { HN_F32, 13, 37, 21, .whole = true, .bias = true },
        { HN_F32, 70, 19, 90, .whole = true, .bias = true,
          .around = true },                   /* more rows than a tile, columns than a strip */
        { HN_F32, 300, 5, 3, .whole = true }, /* dW sums over several blocks of 256 */
        { HN_F32, 5, 300, 7, .bias = true },
        { HN_F16, 9, 70, 33, .rank = 0 },
        { HN_BF16, 9, 70, 33, .around = true },
        { HN_Q8_0, 9, 96, 70, .rank = 0 },
        { HN_Q4_0, 3, 64, 33, .bias = true },
        { HN_Q4_K, 9, 512, 70, .rank = 0 },
        { HN_Q4_K, 5, 256, 300, .around = true },
        { HN_Q6_K, 9, 256, 70, .bias = true },
        { HN_Q5_K, 1, 256, 9, .rank = 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_linear(&cases[i]);
}
static void adapters(void **state)
{
    static const linear_case cases[] = {
        { HN_F32, 1, 3, 2, .rank = 1 },
        { HN_F32, 13, 37, 21, .rank = 4, .bias = true, .around = true },
        { HN_Q4_K, 9, 256, 70, .rank = 8 },
        { HN_Q8_0, 70, 64, 33, .rank = 3, .around = true },
        { HN_F32, 13, 37, 21, .rank = 4, .dropout = 0.3f },
        { HN_F16, 9, 70, 33, .rank = 5, .dropout = 0.5f, .around = true },
        { HN_Q6_K, 9, 256, 20, .rank = 16, .dropout = 0.05f },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_linear(&cases[i]);
}

/* ---- gate: h = silu(a)·u ------------------------------------------------------------------------------------------
 */

typedef struct gate_op {
    int64_t n;
    double *a, *u, *y;
    const float *fa, *fu, *up;
    hn_layer_plan plan;
} gate_op;
static double gelu_ref(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
static double gate_ref(void *arg)
{
    gate_op *o = arg;
    for (int64_t i = 0; i < o->n; i++) {
        double a = o->a[i], u = o->u[i];
        if (o->plan.ffn == HN_FFN_MLP) o->y[i] = o->plan.map == HN_MAP_GELU ? gelu_ref(u) : u > 0 ? u * u : 0;
        else o->y[i] = (o->plan.act == HN_GLU_GELU ? gelu_ref(a) : a / (1 + exp(-a))) * u;
    }
    return dot(o->y, o->up, o->n);
}
static void gate_run(hn_grad *g, void *arg, float *out)
{
    gate_op *o = arg;
    float *a = out + o->n, *u = a + o->n;
    memcpy(a, o->fa, (size_t)o->n * sizeof *a), memcpy(u, o->fu, (size_t)o->n * sizeof *u);
    if (o->plan.ffn == HN_FFN_MLP) a = NULL;
    hn_train_gate(g, &o->plan, out, a, u, o->n / g->m->hp.n_ff, false);
    hn_train_gate_back(g, &o->plan, a, u, o->up, o->n / g->m->hp.n_ff, false);
}
static void gate(void **state)
{
    static const int64_t widths[] = { 1, 16, 37, 100 };
    static const hn_layer_plan plans[] = { { .act = HN_GLU_SILU },
                                           { .act = HN_GLU_GELU },
                                           { .ffn = HN_FFN_MLP, .map = HN_MAP_GELU },
                                           { .ffn = HN_FFN_MLP, .map = HN_MAP_SQRELU } };
    for (size_t i = 0; i < 4 * sizeof widths / sizeof *widths; i++) {
        int64_t n = 11 * widths[i / 4];
        float *a = drawn(n, 6);
        a[0] = 0.125f, a[n / 2] = -100, a[n / 3] = 100; /* exp(100) is more than a float holds */
        bool mlp = plans[i % 4].ffn == HN_FFN_MLP;
        gate_op o = {
            .n = n, .fa = a, .fu = mlp ? a : drawn(n, 1), .up = drawn(n, 1), .y = doubles(n), .plan = plans[i % 4]
        };
        o.a = wide(o.fa, n), o.u = wide(o.fu, n);
        hone_model m = { .hp = { .n_ff = (int32_t)widths[i / 4] } };
        hn_grad g = { .m = &m };
        const float *out = everywhere("gate", &g, gate_run, &o, 3 * n);
        gate_ref(&o);
        near("gate", out, o.y, n);
        var v[] = { { "u", o.u, out + 2 * n, NULL, n }, { "a", o.a, out + n, NULL, n } };
        compare("gate", gate_ref, &o, v, mlp ? 1 : 2, 0);
        sweep(state);
    }
}

/* ---- attention
 * ------------------------------------------------------------------------------------------------------- */

typedef struct attn_op {
    hn_hparams hp;
    batch b;
    double *x[3], *p, *y;
    const float *fx[3], *u;
    int64_t n[3];
    hn_layer_plan plan;
} attn_op; /* q, k, v */

static double attn_ref(void *arg)
{
    attn_op *o = arg;
    int64_t d = o->hp.head_dim, H = o->hp.n_head, K = o->hp.n_head_kv;
    for (int32_t c = 0; c < o->b.b.n_doc; c++)
        for (int64_t t = o->b.doc[c]; t < o->b.doc[c + 1]; t++)
            for (int64_t h = 0; h < H; h++) {
                const double *q = o->x[0] + (t * H + h) * d, *k = o->x[1] + h / (H / K) * d,
                             *v = o->x[2] + h / (H / K) * d;
                double top = -INFINITY, sum = 0, *y = o->y + (t * H + h) * d, cap = (double)o->hp.attn_cap;
                int64_t first = o->b.doc[c];
                if (o->plan.window && t - o->plan.window + 1 > first) first = t - o->plan.window + 1;
                for (int64_t s = first; s <= t; s++) {
                    double dotted = 0;
                    for (int64_t i = 0; i < d; i++) dotted += q[i] * k[s * K * d + i];
                    o->p[s] = dotted * (double)o->plan.scale;
                    if (cap != 0) o->p[s] = cap * tanh(o->p[s] / cap);
                    top = fmax(top, o->p[s]);
                }
                for (int64_t s = first; s <= t; s++) sum += o->p[s] = exp(o->p[s] - top);
                for (int64_t i = 0; i < d; i++) y[i] = 0;
                for (int64_t s = first; s <= t; s++)
                    for (int64_t i = 0; i < d; i++) y[i] += o->p[s] / sum * v[s * K * d + i];
            }
    return dot(o->y, o->u, o->n[0]);
}
static void attn_run(hn_grad *g, void *arg, float *out)
{
    attn_op *o = arg;
    float *copy[3];
    for (int a = 0; a < 3; a++)
        memcpy(copy[a] = need(malloc((size_t)o->n[a] * sizeof(float))), o->fx[a], (size_t)o->n[a] * sizeof(float));
    hn_kept w = { .q = copy[0], .k = copy[1], .v = copy[2], .o = out, .lse = out + o->n[0] };
    g->dq = w.lse + o->b.b.n_tok * o->hp.n_head;
    g->dk = g->dq + o->n[0];
    g->dv = g->dk + o->n[1];
    hn_attn_forward(g, &o->b.b, &w, &o->plan);
    hn_attn_backward(g, &o->b.b, &w, &o->plan);
    for (int a = 0; a < 3; a++) free(copy[a]);
}
static void check_attn_like(hn_layer_plan plan, float cap, int H, int K, int d, const int *len, float size)
{
    attn_op o = { .hp = { .n_head = H, .n_head_kv = K, .head_dim = d, .attn_cap = cap },
                  .b = batch_new(len, 0, 5),
                  .plan = plan };
    int64_t T = o.b.b.n_tok;
    char what[96];
    o.n[0] = T * H * d;
    o.n[1] = o.n[2] = T * K * d;
    for (int a = 0; a < 3; a++) {
        o.fx[a] = drawn(o.n[a], a < 2 ? size : 1);
        o.x[a] = wide(o.fx[a], o.n[a]);
    }
    float *u = drawn(o.n[0], 1);
    o.u = u, o.y = doubles(o.n[0]), o.p = doubles(T);
    hone_model m = { .hp = o.hp };
    hn_grad g = {
        .m = &m, .d_o = u, .delta = floats(T * H), .attn = floats((int64_t)hn_attn_scratch(&o.hp) * MOST_THREADS)
    };
    snprintf(what, sizeof what, "attention, %d/%d heads of %d, %lld tokens, %d documents, window %d", H, K, d,
             (long long)T, o.b.b.n_doc, plan.window);
    const float *out = everywhere(what, &g, attn_run, &o, 2 * o.n[0] + 2 * o.n[1] + T * H), *dq = out + o.n[0] + T * H;
    attn_ref(&o);
    near(what, out, o.y, o.n[0]);
    var v[] = { { "q", o.x[0], dq, NULL, o.n[0] },
                { "k", o.x[1], dq + o.n[0], NULL, o.n[1] },
                { "v", o.x[2], dq + o.n[0] + o.n[1], NULL, o.n[2] } };
    compare(what, attn_ref, &o, v, 3, 1e-6); /* a document of one token: q and k move nothing */
    sweep(NULL);
}
static void check_attn(int H, int K, int d, const int *len, float size)
{
    check_attn_like((hn_layer_plan){ .scale = 1.0f / sqrtf((float)d) }, 0, H, K, d, len, size);
}
static void attention(void **state)
{
    static const int one[] = { 1, 0 }, ones[] = { 1, 1, 1, 0 }, few[] = { 9, 1, 14, 0 }, below[] = { 63, 0 },
                     whole[] = { 64, 0 }, above[] = { 65, 0 }, several[] = { 70, 1, 64, 5, 0 }, blocks[] = { 150, 0 },
                     uneven[] = { 3, 140, 1, 0 };
    check_attn(4, 2, 8, one, 2);
    check_attn(3, 1, 5, ones, 2);
    check_attn(4, 2, 8, few, 3);
    check_attn(6, 6, 4, few, 3);
    check_attn(5, 1, 10, few, 8); /* sharp: most probabilities vanish */
    check_attn(2, 1, 16, below, 2);
    check_attn(2, 2, 16, whole, 2);
    check_attn(2, 1, 16, above, 2);
    check_attn(4, 2, 8, several, 2);
    check_attn(2, 1, 70, blocks, 1);
    check_attn(3, 1, 8, blocks, 4); /* on three threads, in blocks of keys and of queries */
    check_attn(4, 1, 6, uneven, 2);
    /* windows: of one key, within a block, to its edges, over several; none of some blocks is seen */
    static const int windows[] = { 1, 5, 63, 64, 65, 130 };
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        check_attn_like((hn_layer_plan){ .scale = 0.3f, .window = windows[i] }, i % 3 == 1 ? 2 : 0, 2, 1, 6,
                        i % 2 ? blocks : uneven, 3);
    check_attn_like((hn_layer_plan){ .scale = 0.25f }, 3, 4, 2, 8, several, 4); /* caps, which most scores feel */
}

/* ---- the loss of given logits ---------------------------------------------------------------------------------------
 */

typedef struct loss_op {
    int64_t T, V;
    batch *b;
    double *logits, weight, loss, mul, cap; /* cap 0: none */
    const float *fx;
} loss_op;

static double cross_entropy(const double *x, int64_t V, int64_t target)
{
    double top = -INFINITY, sum = 0;
    for (int64_t v = 0; v < V; v++) top = fmax(top, x[v]);
    for (int64_t v = 0; v < V; v++) sum += exp(x[v] - top);
    return top - x[target] + log(sum);
}
static double loss_ref(void *arg)
{
    loss_op *o = arg;
    double sum = 0;
    double *x = need(malloc((size_t)o->V * sizeof *x));
    for (int64_t t = 0; t < o->T; t++) {
        if (o->b->target[t] < 0) continue;
        for (int64_t v = 0; v < o->V; v++) {
            x[v] = o->logits[t * o->V + v] * o->mul;
            if (o->cap != 0) x[v] = o->cap * tanh(x[v] / o->cap);
        }
        sum += cross_entropy(x, o->V, o->b->target[t]);
    }
    free(x);
    return sum * o->weight;
}
/* dlogits of all rows; zeros where there is no target */
static void loss_run(hn_grad *g, void *arg, float *out)
{
    loss_op *o = arg;
    float *dx = need(malloc((size_t)(o->T * g->m->hp.n_embd) * sizeof *dx));
    double loss = hn_head_loss(g, &o->b->b, o->fx, o->weight, dx);
    int64_t k = 0;
    free(dx);
    for (int64_t t = 0; t < o->T; t++)
        if (o->b->target[t] >= 0) memcpy(out + t * o->V, g->logits + k++ * o->V, (size_t)o->V * sizeof *out);
        else memset(out + t * o->V, 0, (size_t)o->V * sizeof *out);
    if (o->loss != 0 && o->loss != loss) fail_msg("loss %.17g on %s, first %.17g", loss, g->p.kernels->name, o->loss);
    o->loss = loss;
}
/* Row t of x is 4·e_t, of norm 1: column t of W is a quarter of its logits, and nothing is rounded. */
static void check_loss(int64_t V, int only, float mul, float cap)
{
    enum { D = 16 };
    static const int docs[] = { 5, 1, 10, 0 };
    batch b = batch_new(docs, 0, (int32_t)V);
    float *x = floats(D * D), *w = floats(V * D), *logits = floats(D * V), *ones = floats(D);
    int32_t n_target = 0;
    for (int64_t t = 0; t < D; t++) {
        ones[t] = 1;
        for (int64_t i = 0; i < D; i++) x[t * D + i] = i == t ? 4 : 0;
        for (int64_t v = 0; v < V; v++) {
            float l = (float)(int)(rndf() * 256) / 64;
            if (t == 1) l += 10000; /* all large */
            if (t == 2) l -= 10000;
            if (t == 3) l = v == 2 % V ? 10000 : -10000;  /* one takes all; the target is another */
            if (t == 4) l = v == b.target[t] ? 10000 : l; /* the target takes all */
            if (t == 5) l = 0;
            logits[t * V + v] = l;
            w[v * D + t] = l / 4;
        }
        if (t == 3) b.target[t] = V > 1 ? 1 : 0;
        if (only < 0 ? t % 4 == 3 && t != 3 : t != only) b.target[t] = -1;
        n_target += b.target[t] >= 0;
    }
    hn_weight head = { .data = w, .type = HN_F32, .row_bytes = D * sizeof(float), .n_in = D, .n_out = V };
    hone_model m = { .hp = { .n_embd = D, .n_vocab = (int32_t)V, .logit_mul = mul, .logit_cap = cap } };
    hn_grad g = { .m = &m,
                  .output_norm = { .values = ones },
                  .slope = cap != 0 ? floats(V * MOST_THREADS) : NULL,
                  .output = { .w = { .frozen = &head }, .n_in = D, .n_out = V },
                  .chunk = D,
                  .last = floats(D * D),
                  .z = floats(D * D),
                  .dz = floats(D * D),
                  .dn = floats(D * D),
                  .logits = floats(D * V),
                  .rows = array(D * sizeof(int32_t)),
                  .loss = doubles(D) };
    loss_op o = { .T = D,
                  .V = V,
                  .b = &b,
                  .logits = wide(logits, D * V),
                  .weight = 1.0 / n_target,
                  .mul = mul != 0 ? (double)mul : 1,
                  .cap = (double)cap,
                  .fx = x };
    const float *out = everywhere("loss", &g, loss_run, &o, D * V);
    double want = loss_ref(&o);
    if (!(fabs(o.loss * o.weight - want) <= 1e-6 * fabs(want) + 1e-9))
        fail_msg("loss of %lld logits: %.9g, expected %.9g", (long long)V, o.loss * o.weight, want);
    for (int64_t t = 0; t < D; t++) { /* each row alone: its scale is its own */
        var v = { "logits", o.logits + t * V, out + t * V, NULL, V };
        compare("loss", loss_ref, &o, &v, 1, 2e-6 * o.weight);
    }
    sweep(NULL);
}
static void loss(void **state)
{
    check_loss(1, -1, 0, 0);
    check_loss(37, -1, 0, 0);
    check_loss(64, -1, 0, 0);
    check_loss(131, -1, 0, 0);
    check_loss(37, 6, 0, 0); /* one target */
    check_loss(37, 1, 0, 0);
    check_loss(37, -1, 0.25f, 0);
    check_loss(131, -1, 0, 4);
    check_loss(64, -1, 0.5f, 30);
}

/* ---- the head: norm, product, loss
 * ----------------------------------------------------------------------------------- */

typedef struct head_op {
    int64_t T, D, V;
    batch *b;
    double *x, *norm, *w, *bias, *z, *logits, weight, loss;
    const float *fx;
    trained tn, tw, tb;
    bool whole;
} head_op;

static double head_ref(void *arg)
{
    head_op *o = arg;
    double sum = 0;
    for (int64_t t = 0; t < o->T; t++) {
        if (o->b->target[t] < 0) continue;
        ref_norm_row(o->z, o->x + t * o->D, o->norm, o->D, 1e-5f);
        for (int64_t v = 0; v < o->V; v++) {
            o->logits[v] = o->bias[v];
            for (int64_t i = 0; i < o->D; i++) o->logits[v] += o->w[v * o->D + i] * o->z[i];
        }
        sum += cross_entropy(o->logits, o->V, o->b->target[t]);
    }
    return sum * o->weight;
}
static void head_run(hn_grad *g, void *arg, float *out)
{
    head_op *o = arg;
    trained *t[] = { &o->tn, &o->tw, &o->tb };
    for (int i = 0; i < 3; i++) trained_start(t[i]);
    o->loss = hn_head_loss(g, &o->b->b, o->fx, o->weight, out);
    out += o->T * o->D;
    for (int i = 0; o->whole && i < 3; i++) out = trained_out(t[i], out);
}
static void check_head(hn_type type, int64_t D, int64_t V, int32_t chunk, bool whole, int n_masked)
{
    static const int docs[] = { 6, 1, 4, 0 };
    const hn_type_info *ti = hn_type_get(type);
    size_t row = (size_t)hn_row_bytes(ti, (uint64_t)D);
    batch b = batch_new(docs, 0, (int32_t)V);
    int64_t T = b.b.n_tok;
    for (int i = 0; i < n_masked; i++) b.target[i * 3 % T] = -1;
    int32_t n_target = 0;
    for (int64_t t = 0; t < T; t++) n_target += b.target[t] >= 0;
    float *norm = drawn(D, 1.5f), *w = drawn(V * D, 0.5f), *bias = drawn(V, 1);
    char *data = array((size_t)V * row);
    for (int64_t v = 0; v < V; v++) {
        ti->quantize(data + (size_t)v * row, w + v * D, D, NULL);
        ti->dequantize(w + v * D, data + (size_t)v * row, D);
    }
    hn_weight head = { .data = data, .type = type, .row_bytes = row, .n_in = D, .n_out = V };
    head_op o = { .T = T,
                  .D = D,
                  .V = V,
                  .b = &b,
                  .fx = drawn(T * D, 2),
                  .weight = n_target ? 1.0 / n_target : 1,
                  .z = doubles(D),
                  .logits = doubles(V),
                  .whole = whole,
                  .norm = wide(norm, D),
                  .w = wide(w, V * D),
                  .bias = wide(bias, V),
                  .tn = trained_new(norm, 1, D),
                  .tw = trained_new(w, V, D),
                  .tb = trained_new(bias, 1, V) };
    o.x = wide(o.fx, T * D);
    hone_model m = { .hp = { .n_embd = (int32_t)D, .n_vocab = (int32_t)V, .rms_eps = 1e-5f } };
    hn_grad g = { .m = &m,
                  .output_norm = { .values = norm },
                  .output = { .w = { .frozen = &head }, .bias = { .values = bias }, .n_in = D, .n_out = V },
                  .chunk = chunk,
                  .last = floats(chunk * D),
                  .z = floats(chunk * D),
                  .dz = floats(chunk * D),
                  .dn = floats(T * D),
                  .logits = floats(chunk * V),
                  .inv_rms = floats(chunk),
                  .rows = array((size_t)T * sizeof(int32_t)),
                  .loss = doubles(T) };
    if (whole) g.output_norm.full = &o.tn.p, g.output.w.full = &o.tw.p, g.output.bias.full = &o.tb.p;
    const float *out = everywhere("head", &g, head_run, &o, T * D + (whole ? D + V * D + V : 0)), *at = out + T * D;
    double want = head_ref(&o);
    if (!(fabs(o.loss * o.weight - want) <= 1e-6 * fabs(want)))
        fail_msg("head: loss %.9g, expected %.9g", o.loss * o.weight, want);
    var v[] = { { "x", o.x, out, NULL, T * D },
                { "norm", o.norm, at, o.tn.from, D },
                { "W", o.w, at + D, o.tw.from, V * D },
                { "bias", o.bias, at + D + V * D, o.tb.from, V } };
    compare("head", head_ref, &o, v, whole ? 4 : 1, 0);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; b.target[t] < 0 && i < D; i++) assert_true(out[t * D + i] == 0); /* exactly */
    sweep(NULL);
}
static void head(void **state)
{
    check_head(HN_F32, 24, 37, 3, true, 2);
    check_head(HN_F32, 24, 37, 100, true, 0);
    check_head(HN_F32, 5, 2, 1, true, 10); /* one target */
    check_head(HN_Q8_0, 32, 131, 4, false, 3);
    check_head(HN_Q6_K, 256, 20, 4, false, 3);
    check_head(HN_F32, 8, 9, 4, true, 11); /* none: zero, and nothing is added */
}

/* ---- embedding
 * --------------------------------------------------------------------------------------------------------- */

typedef struct embed_op {
    int64_t D;
    float scale;
    batch b;
    double *e, *y;
    const float *u;
    trained te;
} embed_op;
static double embed_ref(void *arg)
{
    embed_op *o = arg;
    for (int64_t t = 0; t < o->b.b.n_tok; t++)
        for (int64_t i = 0; i < o->D; i++) o->y[t * o->D + i] = o->e[o->b.ids[t] * o->D + i] * (double)o->scale;
    return dot(o->y, o->u, o->b.b.n_tok * o->D);
}
static void embed_run(hn_grad *g, void *arg, float *out)
{
    embed_op *o = arg;
    trained_start(&o->te);
    hn_train_embed(g, out, &o->b.b);
    hn_train_embed_back(g, o->u, &o->b.b);
    trained_out(&o->te, out + o->b.b.n_tok * o->D);
}
static void embedding(void **state)
{
    enum { V = 7 }; /* 23 tokens: many come up several times */
    static const int docs[] = { 9, 1, 13, 0 };
    static const int64_t widths[] = { 1, 16, 19, 40 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t D = widths[i];
        embed_op o = { .D = D, .scale = i % 2 ? 4.5f : 1, .b = batch_new(docs, 0, V - 1) }; /* and one never */
        int64_t n = o.b.b.n_tok * D;
        const float *e = drawn(V * D, 1);
        o.u = drawn(n, 1), o.y = doubles(n), o.e = wide(e, V * D), o.te = trained_new(e, V, D);
        hone_model m = { .hp = { .n_embd = (int32_t)D, .n_vocab = V, .emb_scale = o.scale } };
        hn_grad g = { .m = &m, .token_embd = { .full = &o.te.p } };
        const float *out = everywhere("embedding", &g, embed_run, &o, n + V * D);
        embed_ref(&o);
        near("embedding", out, o.y, n);
        var v = { "rows", o.e, out + n, o.te.from, V * D };
        compare("embedding", embed_ref, &o, &v, 1, 0);
        for (int64_t c = 0; c < D; c++) assert_true(out[n + (V - 1) * D + c] == o.te.from[(V - 1) * D + c]);
        sweep(state);
    }
}

int main(void)
{
#define OP(f)                     \
    {                             \
#f, f, begin, sweep, NULL \
    }
    const struct CMUnitTest tests[] = { OP(norm_and_sum), OP(layer_norm), OP(heads), OP(products), OP(adapters),
                                        OP(gate),         OP(attention),  OP(loss),  OP(head),     OP(embedding) };
    return cmocka_run_group_tests(tests, start, stop);
}
