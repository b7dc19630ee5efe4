/* grad: a transformer as a differentiable function of its adapters or of all its weights. What a layer does is its
 * plan's and its tensors'; each backward step stands beside its forward.
 *
 * T rows of a batch, D n_embd, F n_ff, H query heads on K key heads of d. Per layer:
 *   x0 [T, D] → n1 = norm(x0) → q [T, H·d], k, v [T, K·d] (+ bias) → norms of heads, rotation
 *   → o = attention [T, H·d] → x1 = x0 + m·post(Wo·o)
 *   → n2 = norm(x1) → a = Wgate·n2, u = Wup·n2 [T, F] → h = act(a)·u → x2 = x1 + m·post(Wdown·h)
 * Norms before and after a half are there where their tensors are; side by side n2 = norm(x0); without a gate
 * h = map(u). Of a linear y = W·x + b + s·B·(A·x): dh = s·dy·B, dB += s·dyᵀ·h, dA += dhᵀ·x,
 * dx = dy·W + dh·A; trained whole: dW += dyᵀ·x, db += Σ dy. Kept of a layer are
 * x0, q, k, v, o, lse, x1, a, u, and what norms of heads and of halves took; norms, h and the adapters' inner rows are
 * made again.
 * Formulas: Hu et al. 2021; Dao 2023 for attention (attn_grad.c). */
#include "train/grad.h"

#include <math.h>
#include <stdlib.h>

/* ---- rows, a few at a time on each thread --------------------------------------------------------- */

enum { ROWS = 8 }; /* one chunk of a pool's job */

typedef struct rows_job {
    hn_grad *g;
    void (*fn)(hn_grad *g, const struct rows_job *j, int64_t t);
    int64_t n;
    float *y, *y2;
    const float *x, *x2, *x3;
    int64_t width;
    float eps;
    uint64_t key;
    const hn_train_batch *b;
    const hn_layer_plan *p;
    bool rounded;
} rows_job;

static void rows_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const rows_job *j = arg;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++) j->fn(j->g, j, t);
}

static void rows(hn_grad *g, rows_job j)
{
    j.g = g;
    hn_pool_run(g->p.pool, rows_chunk, &j, (j.n + ROWS - 1) / ROWS);
}

static void norm_row(hn_grad *g, const rows_job *j, int64_t t)
{
    g->p.kernels->rms_norm(j->y + t * j->width, j->x + t * j->width, j->x2, j->width, j->eps);
}
void hn_train_norm(hn_grad *g, float *y, const float *x, const hn_tensor_ref *w, int64_t n)
{
    rows(g, (rows_job){ .fn = norm_row,
                        .n = n,
                        .y = y,
                        .x = x,
                        .x2 = hn_ref_values(w),
                        .width = g->m->hp.n_embd,
                        .eps = g->m->hp.rms_eps });
}

static void norm_back_row(hn_grad *g, const rows_job *j, int64_t t)
{
    g->p.kernels->rms_norm_grad(j->y + t * j->width, j->x + t * j->width, j->x2 + t * j->width, j->x3, j->width,
                                j->eps);
}
/* columns [c, c + 16) of dw += Σ_t dy·x·r */
typedef struct norm_weight {
    float *dw;
    const float *dy, *x, *r;
    int64_t n, width;
} norm_weight;
static void norm_weight_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const norm_weight *j = arg;
    int64_t c0 = chunk * 16, c1 = c0 + 16 < j->width ? c0 + 16 : j->width;
    for (int64_t t = 0; t < j->n; t++)
        for (int64_t c = c0; c < c1; c++) j->dw[c] += j->dy[t * j->width + c] * (j->x[t * j->width + c] * j->r[t]);
}
static void inverse_rms(hn_grad *g, const rows_job *j, int64_t t)
{
    const float *x = j->x + t * j->width;
    double s = 0;
    for (int64_t i = 0; i < j->width; i++) s += (double)x[i] * x[i];
    j->y[t] = (float)(1 / sqrt(s / (double)j->width + j->eps));
}
void hn_train_norm_back(hn_grad *g, float *dx, const float *dy, const float *x, const hn_tensor_ref *w, int64_t n,
                        int64_t width)
{
    float eps = g->m->hp.rms_eps;
    rows(g, (rows_job){ .fn = norm_back_row,
                        .n = n,
                        .y = dx,
                        .x = dy,
                        .x2 = x,
                        .x3 = hn_ref_values(w),
                        .width = width,
                        .eps = eps });
    if (!w->full) return;
    rows(g, (rows_job){ .fn = inverse_rms, .n = n, .y = g->inv_rms, .x = x, .width = width, .eps = eps });
    norm_weight j = { hn_ref_grad(w), dy, x, g->inv_rms, n, width };
    hn_pool_run(g->p.pool, norm_weight_chunk, &j, (width + 15) / 16);
}

/* LayerNorm: y = z·w + b, z = (x − mean)·r; with e = dy·w: dx += r·(e − Σe/n − z·Σ(e·z)/n), dw += Σ dy·z, db += Σ dy */
static void layer_norm_row(hn_grad *g, const rows_job *j, int64_t t)
{
    g->p.kernels->layer_norm(j->y + t * j->width, j->x + t * j->width, j->x2, j->x3, j->width, j->eps);
}
static void layer_norm_back_row(hn_grad *g, const rows_job *j, int64_t t)
{
    const float *dy = j->x + t * j->width, *x = j->x2 + t * j->width, *w = j->x3;
    float *dx = j->y + t * j->width, *z = j->y2 + t * j->width; /* z is left there */
    const double n = (double)j->width;
    double sum = 0, square = 0, e_sum = 0, ez = 0;
    for (int64_t i = 0; i < j->width; i++) sum += (double)x[i];
    for (int64_t i = 0; i < j->width; i++) square += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
    double r = 1 / sqrt(square / n + (double)j->eps);
    for (int64_t i = 0; i < j->width; i++) {
        double zi = ((double)x[i] - sum / n) * r, e = (double)dy[i] * (double)w[i];
        z[i] = (float)zi;
        e_sum += e;
        ez += e * zi;
    }
    for (int64_t i = 0; i < j->width; i++)
        dx[i] += (float)(r * ((double)dy[i] * (double)w[i] - e_sum / n - (double)z[i] * (ez / n)));
}
static void ones_row(hn_grad *g, const rows_job *j, int64_t t) { j->y[t] = 1; }
static void sum_rows_chunk(void *arg, int64_t chunk, int32_t thread);

void hn_train_stream_norm(hn_grad *g, float *y, const float *x, const hn_tensor_ref *w, const hn_tensor_ref *b,
                          int64_t n)
{
    const hn_hparams *hp = &g->m->hp;
    uint64_t t0 = hn_look_begin(&g->look);
    if (!hp->layer_norm) hn_train_norm(g, y, x, w, n);
    else
        rows(g, (rows_job){ .fn = layer_norm_row,
                            .n = n,
                            .y = y,
                            .x = x,
                            .x2 = hn_ref_values(w),
                            .x3 = hn_ref_values(b),
                            .width = hp->n_embd,
                            .eps = hp->ln_eps });
    hn_look_end(&g->look, t0, "norm", n, (hn_look_cost){ 0 });
}
static void layer_norm_back(hn_grad *g, float *dx, const float *dy, const float *x, const hn_tensor_ref *w,
                            const hn_tensor_ref *b, int64_t n)
{
    const hn_hparams *hp = &g->m->hp;
    int64_t D = hp->n_embd;
    rows(g, (rows_job){ .fn = layer_norm_back_row,
                        .n = n,
                        .y = dx,
                        .y2 = g->dr,
                        .x = dy,
                        .x2 = x,
                        .x3 = hn_ref_values(w),
                        .width = D,
                        .eps = hp->ln_eps });
    if (w->full) {
        rows(g, (rows_job){ .fn = ones_row, .n = n, .y = g->inv_rms });
        norm_weight j = { hn_ref_grad(w), dy, g->dr, g->inv_rms, n, D };
        hn_pool_run(g->p.pool, norm_weight_chunk, &j, (D + 15) / 16);
    }
    if (b->full) {
        norm_weight j = { hn_ref_grad(b), dy, NULL, NULL, n, D };
        hn_pool_run(g->p.pool, sum_rows_chunk, &j, (D + 15) / 16);
    }
}
void hn_train_stream_norm_back(hn_grad *g, float *dx, const float *dy, const float *x, const hn_tensor_ref *w,
                               const hn_tensor_ref *b, int64_t n)
{
    uint64_t t0 = hn_look_begin(&g->look);
    if (g->m->hp.layer_norm) layer_norm_back(g, dx, dy, x, w, b, n);
    else hn_train_norm_back(g, dx, dy, x, w, n, g->m->hp.n_embd);
    hn_look_end(&g->look, t0, "norm", n, (hn_look_cost){ 0 });
}

static void add_row(hn_grad *g, const rows_job *j, int64_t t)
{
    for (int64_t i = 0; i < j->width; i++) j->y[t * j->width + i] += j->x[i];
}
static void add_rows_row(hn_grad *g, const rows_job *j, int64_t t)
{
    hn_add(j->y + t * j->width, j->x + t * j->width, j->width);
}
static void scale_row(hn_grad *g, const rows_job *j, int64_t t) /* by eps */
{
    for (int64_t i = t * j->width; i < (t + 1) * j->width; i++) j->y[i] = j->x[i] * j->eps;
}

/* ---- what is fed forward: a gate's or a plain map, and their gradients ------------------------------------------ */

static void silu_row(hn_grad *g, const rows_job *j, int64_t t)
{
    int64_t at = t * j->width;
    g->p.kernels->silu_mul(j->y + at, j->x + at, j->x2 + at, j->width);
    if (j->rounded) hn_gemm_round(g->gemm, j->y + at, j->width);
}
static void silu_back_row(hn_grad *g, const rows_job *j, int64_t t)
{
    int64_t at = t * j->width;
    g->p.kernels->silu_mul_grad(j->y + at, j->y2 + at, j->x + at, j->y + at, j->y2 + at, j->width);
    if (!j->rounded) return;
    hn_gemm_round(g->gemm, j->y + at, j->width);
    hn_gemm_round(g->gemm, j->y2 + at, j->width);
}
static void gelu_row(hn_grad *g, const rows_job *j, int64_t t)
{
    int64_t at = t * j->width;
    g->p.kernels->gelu_mul(j->y + at, j->x + at, j->x2 + at, j->width);
    if (j->rounded) hn_gemm_round(g->gemm, j->y + at, j->width);
}
static void gelu_back_row(hn_grad *g, const rows_job *j, int64_t t)
{
    int64_t at = t * j->width;
    g->p.kernels->gelu_mul_grad(j->y + at, j->y2 + at, j->x + at, j->y + at, j->y2 + at, j->width);
    if (!j->rounded) return;
    hn_gemm_round(g->gemm, j->y + at, j->width);
    hn_gemm_round(g->gemm, j->y2 + at, j->width);
}
/* relu² or GELU of x alone */
static void map_row(hn_grad *g, const rows_job *j, int64_t t)
{
    float *y = j->y + t * j->width;
    memcpy(y, j->x + t * j->width, (size_t)j->width * sizeof *y);
    g->p.kernels->map[j->p->map](y, j->width);
    if (j->rounded) hn_gemm_round(g->gemm, y, j->width);
}
static void map_back_row(hn_grad *g, const rows_job *j, int64_t t)
{
    float *y = j->y + t * j->width;
    const float *dh = j->x + t * j->width;
    if (j->p->map == HN_MAP_GELU) g->p.kernels->gelu_mul_grad(y, NULL, dh, y, NULL, j->width);
    else
        for (int64_t i = 0; i < j->width; i++) y[i] = y[i] > 0 ? dh[i] * (2.0f * y[i]) : 0.0f;
    if (j->rounded) hn_gemm_round(g->gemm, y, j->width);
}
void hn_train_gate(hn_grad *g, const hn_layer_plan *p, float *h, const float *a, const float *u, int64_t n,
                   bool rounded)
{
    rows_job j = { .fn = !a                      ? map_row
                         : p->act == HN_GLU_GELU ? gelu_row
                                                 : silu_row,
                   .n = n,
                   .y = h,
                   .x = a ? a : u,
                   .x2 = u,
                   .width = g->m->hp.n_ff,
                   .p = p,
                   .rounded = rounded };
    uint64_t t0 = hn_look_begin(&g->look);
    rows(g, j);
    hn_look_end(&g->look, t0, "ffn_map", n, (hn_look_cost){ 0 });
}
void hn_train_gate_back(hn_grad *g, const hn_layer_plan *p, float *a, float *u, const float *dh, int64_t n,
                        bool rounded)
{
    rows_job j = { .fn = !a                      ? map_back_row
                         : p->act == HN_GLU_GELU ? gelu_back_row
                                                 : silu_back_row,
                   .n = n,
                   .y = a ? a : u,
                   .y2 = u,
                   .x = dh,
                   .width = g->m->hp.n_ff,
                   .p = p,
                   .rounded = rounded };
    uint64_t t0 = hn_look_begin(&g->look);
    rows(g, j);
    hn_look_end(&g->look, t0, "ffn_map", n, (hn_look_cost){ 0 });
}

/* ---- dropout: element (t, c) of a module's input falls where its own random number says so -------------- */

static void drop_row(hn_grad *g, const rows_job *j,
                     int64_t t) /* y = x·mask/(1 − p), added to y2's row where that is given */
{
    const float keep = 1.0f / (1.0f - g->p.dropout);
    const uint32_t limit = (uint32_t)((double)g->p.dropout * 4294967296.0);
    const float *x = j->x + t * j->width;
    float *y = (j->y2 ? j->y2 : j->y) + t * j->width;
    for (int64_t c = 0; c < j->width; c += 2) {
        uint64_t r = hn_rand64(j->key, (uint64_t)t << 32 | (uint64_t)c);
        for (int64_t i = c; i < c + 2 && i < j->width; i++, r >>= 32) {
            float v = (uint32_t)r < limit ? 0.0f : x[i] * keep;
            y[i] = j->y2 ? y[i] + v : v;
        }
    }
}

/* ---- linear ------------------------------------------------------------------------------------------------ */

static void product_f32(hn_grad *g, hn_gemm_form form, float *c, const float *a, const float *b, int64_t m, int64_t n,
                        int64_t k, float alpha, bool add)
{
    hn_gemm_run(g->gemm, &(hn_gemm){ .form = form,
                                     .c = c,
                                     .a = a,
                                     .b = b,
                                     .b_type = HN_F32,
                                     .b_row_bytes = (size_t)(form == HN_GEMM_NT ? k : n) * sizeof(float),
                                     .ldc = n,
                                     .lda = form == HN_GEMM_TN ? m : k,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .alpha = alpha,
                                     .add = add });
}

static const void *matrix(const hn_linear *l, hn_type *type, size_t *row_bytes)
{
    *type = l->w.full ? HN_F32 : l->w.frozen->type;
    *row_bytes = l->w.full ? (size_t)l->n_in * sizeof(float) : l->w.frozen->row_bytes;
    return l->w.full ? (const void *)hn_ref_values(&l->w) : l->w.frozen->data;
}

static const float *adapter_input(hn_grad *g, const hn_linear *l, const float *x, int64_t n)
{
    if (!g->drop_key || g->p.dropout <= 0) return x;
    rows(g,
         (rows_job){
             .fn = drop_row, .n = n, .y = g->dropped, .x = x, .width = l->n_in, .key = hn_rand64(g->drop_key, l->id) });
    return g->dropped;
}

/* What a look is told of a linear: its name, and what `products` with its matrix, of them `kept` with what is read and
 * written of its gradient, and `inner` with each of its adapter's two halves read and compute. */
static const char *name_of(const hn_grad *g, const hn_linear *l)
{
    static const char *const names[HN_LIN_KINDS] = {
        [HN_LIN_Q] = "attn_q",      [HN_LIN_K] = "attn_k",  [HN_LIN_V] = "attn_v",      [HN_LIN_O] = "attn_output",
        [HN_LIN_GATE] = "ffn_gate", [HN_LIN_UP] = "ffn_up", [HN_LIN_DOWN] = "ffn_down",
    };
    return l == &g->output ? "output" : names[l - g->layer[g->look.layer].lin];
}
static hn_look_cost cost_of(const hn_linear *l, int64_t n, int products, bool kept, double to_a, double to_b)
{
    hn_type type;
    size_t row_bytes;
    hn_look_cost c = { 0 };
    double in = (double)l->n_in, out = (double)l->n_out, r = l->a ? (double)l->a->rows : 0;
    matrix(l, &type, &row_bytes);
    c.type = hn_type_get(type)->name;
    c.ops = 2.0 * (double)n * (in * out * (products + kept) + r * (to_a * in + to_b * out));
    if (products) c.bytes += (uint64_t)l->n_out * row_bytes;
    if (kept) c.bytes += 2 * (uint64_t)l->n_out * (uint64_t)l->n_in * sizeof(float);
    if (l->a) c.bytes += (uint64_t)(r * (in + out)) * sizeof(float);
    return c;
}

/* y [n, n_out] = W·x + b + s·B·(A·x) */
static void linear(hn_grad *g, const hn_linear *l, float *y, const float *x, int64_t n)
{
    hn_type type;
    size_t row_bytes;
    const void *w = matrix(l, &type, &row_bytes);
    hn_gemm_run(g->gemm, &(hn_gemm){ .form = HN_GEMM_NT,
                                     .c = y,
                                     .a = x,
                                     .b = w,
                                     .b_type = type,
                                     .b_row_bytes = row_bytes,
                                     .ldc = l->n_out,
                                     .lda = l->n_in,
                                     .m = n,
                                     .n = l->n_out,
                                     .k = l->n_in,
                                     .alpha = 1,
                                     .bf16 = g->p.bf16,
                                     .a_rounded = l->x_rounded });
    if (hn_ref_values(&l->bias))
        rows(g, (rows_job){ .fn = add_row, .n = n, .y = y, .x = hn_ref_values(&l->bias), .width = l->n_out });
    if (!l->a) return;
    product_f32(g, HN_GEMM_NT, g->inner, adapter_input(g, l, x, n), l->a->p, n, l->a->rows, l->n_in, 1, false);
    product_f32(g, HN_GEMM_NT, y, g->inner, l->b->p + l->b_row * l->a->rows, n, l->n_out, l->a->rows, g->p.scale, true);
}
void hn_train_linear(hn_grad *g, const hn_linear *l, float *y, const float *x, int64_t n)
{
    uint64_t t0 = hn_look_begin(&g->look);
    linear(g, l, y, x, n);
    if (t0) hn_look_end(&g->look, t0, name_of(g, l), n, cost_of(l, n, 1, false, 1, 1));
}

static void sum_rows_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const norm_weight *j = arg;
    int64_t c0 = chunk * 16, c1 = c0 + 16 < j->width ? c0 + 16 : j->width;
    for (int64_t t = 0; t < j->n; t++)
        for (int64_t c = c0; c < c1; c++) j->dw[c] += j->dy[t * j->width + c];
}

/* dx [n, n_in] = or += dy's gradient, where dx is wanted; those of l's own parameters += */
static void linear_back(hn_grad *g, const hn_linear *l, float *dx, bool add, const float *dy, const float *x, int64_t n)
{
    hn_type type;
    size_t row_bytes;
    const void *w = matrix(l, &type, &row_bytes);
    if (dx)
        hn_gemm_run(g->gemm, &(hn_gemm){ .form = HN_GEMM_NN,
                                         .c = dx,
                                         .a = dy,
                                         .b = w,
                                         .b_type = type,
                                         .b_row_bytes = row_bytes,
                                         .ldc = l->n_in,
                                         .lda = l->n_out,
                                         .m = n,
                                         .n = l->n_in,
                                         .k = l->n_out,
                                         .alpha = 1,
                                         .add = add,
                                         .bf16 = g->p.bf16,
                                         .a_rounded = l->dy_rounded });
    if (l->w.full)
        hn_gemm_run(g->gemm, &(hn_gemm){ .form = HN_GEMM_TN,
                                         .c = hn_ref_grad(&l->w),
                                         .a = dy,
                                         .b = x,
                                         .b_type = HN_F32,
                                         .b_row_bytes = (size_t)l->n_in * sizeof(float),
                                         .ldc = l->n_in,
                                         .lda = l->n_out,
                                         .m = l->n_out,
                                         .n = l->n_in,
                                         .k = n,
                                         .alpha = 1,
                                         .add = true,
                                         .bf16 = g->p.bf16 });
    if (l->bias.full) {
        norm_weight j = { hn_ref_grad(&l->bias), dy, NULL, NULL, n, l->n_out };
        hn_pool_run(g->p.pool, sum_rows_chunk, &j, (l->n_out + 15) / 16);
    }
    if (!l->a) return;
    int64_t r = l->a->rows, to_b = l->b_row * r;
    const float *xd = adapter_input(g, l, x, n);
    product_f32(g, HN_GEMM_NT, g->inner, xd, l->a->p, n, r, l->n_in, 1, false);
    product_f32(g, HN_GEMM_NN, g->d_inner, dy, l->b->p + to_b, n, r, l->n_out, g->p.scale, false);
    product_f32(g, HN_GEMM_TN, l->b->g + to_b, dy, g->inner, l->n_out, r, n, g->p.scale, true);
    product_f32(g, HN_GEMM_TN, l->a->g, g->d_inner, xd, r, l->n_in, n, 1, true);
    if (!dx) return;
    if (xd == x) {
        product_f32(g, HN_GEMM_NN, dx, g->d_inner, l->a->p, n, l->n_in, r, 1, true);
    } else { /* the mask again: dx += mask/(1 − p)·(dh·A) */
        product_f32(g, HN_GEMM_NN, g->dropped, g->d_inner, l->a->p, n, l->n_in, r, 1, false);
        rows(g, (rows_job){ .fn = drop_row,
                            .n = n,
                            .y2 = dx,
                            .x = g->dropped,
                            .width = l->n_in,
                            .key = hn_rand64(g->drop_key, l->id) });
    }
}
void hn_train_linear_back(hn_grad *g, const hn_linear *l, float *dx, bool add, const float *dy, const float *x,
                          int64_t n)
{
    uint64_t t0 = hn_look_begin(&g->look);
    linear_back(g, l, dx, add, dy, x, n);
    if (t0) hn_look_end(&g->look, t0, name_of(g, l), n, cost_of(l, n, dx != NULL, l->w.full != NULL, dx ? 3 : 2, 2));
}

/* ---- heads: norms, rotation, growth --------------------------------------------------------------------------- */

typedef struct heads_job {
    hn_grad *g;
    const hn_tgrad_layer *l;
    float *q, *k, *q_raw, *k_raw;
    const float *rope; /* of the layer's table, or its transpose; NULL: nothing turns */
    int64_t n;
} heads_job;

static void rotate(const heads_job *j, float *q, float *k, int64_t t)
{
    const hn_hparams *hp = &j->g->m->hp;
    const float *cs = j->rope + t * hp->n_rot;
    if (!j->rope) return;
    hn_rope_apply(q, cs, hp->n_head, hp->head_dim, hp->n_rot, hp->rope_neox);
    hn_rope_apply(k, cs, hp->n_head_kv, hp->head_dim, hp->n_rot, hp->rope_neox);
}

/* Norms of n_head heads of a row, or of all of them together; raw takes what they took. */
static void norm_heads(const heads_job *j, float *x, float *raw, const float *w, int64_t n_head)
{
    const hn_hparams *hp = &j->g->m->hp;
    int64_t all = n_head * hp->head_dim, n = j->l->plan->qk_norm == HN_HEAD_NORM_FULL ? all : hp->head_dim;
    if (!w) return;
    if (raw) memcpy(raw, x, (size_t)all * sizeof *raw);
    for (int64_t i = 0; i < all; i += n) j->g->p.kernels->rms_norm(x + i, x + i, w, n, hp->rms_eps);
}

static void heads_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const heads_job *j = arg;
    hn_grad *g = j->g;
    const hn_hparams *hp = &g->m->hp;
    int64_t d = hp->head_dim, H = hp->n_head, K = hp->n_head_kv;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++) {
        float *q = j->q + t * H * d, *k = j->k + t * K * d;
        if (j->l->plan->qk_norm_after) rotate(j, q, k, t);
        norm_heads(j, q, j->q_raw ? j->q_raw + t * H * d : NULL, hn_ref_values(&j->l->q_norm), H);
        norm_heads(j, k, j->k_raw ? j->k_raw + t * K * d : NULL, hn_ref_values(&j->l->k_norm), K);
        if (!j->l->plan->qk_norm_after) rotate(j, q, k, t);
        for (int64_t i = 0; g->tau && j->l->plan->warm && i < H * d; i++) q[i] *= g->tau[t];
    }
}
static const float *angles_of(float *const table[HN_ROPES], const hn_layer_plan *p)
{
    return p->rope < 0 ? NULL : table[p->rope];
}
void hn_train_heads(hn_grad *g, const hn_tgrad_layer *l, float *q, float *k, float *q_raw, float *k_raw, int64_t n)
{
    heads_job j = { g, l, q, k, q_raw, k_raw, angles_of(g->rope, l->plan), n };
    uint64_t t0 = hn_look_begin(&g->look);
    hn_pool_run(g->p.pool, heads_chunk, &j, (n + ROWS - 1) / ROWS);
    hn_look_end(&g->look, t0, "heads", n, (hn_look_cost){ 0 });
}

static void cool_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const heads_job *j = arg;
    int64_t width = (int64_t)j->g->m->hp.n_head * j->g->m->hp.head_dim;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++)
        for (int64_t i = 0; i < width; i++) j->q[t * width + i] *= j->g->tau[t];
}
static void unrotate_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const heads_job *j = arg;
    const hn_hparams *hp = &j->g->m->hp;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++) /* the transposed rotation has −sin */
        rotate(j, j->q + t * hp->n_head * hp->head_dim, j->k + t * hp->n_head_kv * hp->head_dim, t);
}
/* dx becomes the gradient of what norms of rows of n_head heads took, which is raw; room: as large. */
static void unnorm_heads(hn_grad *g, const hn_layer_plan *p, float *dx, const float *raw, float *room,
                         const hn_tensor_ref *w, int64_t n, int64_t n_head)
{
    int64_t d = g->m->hp.head_dim, all = n * n_head * d, width = p->qk_norm == HN_HEAD_NORM_FULL ? n_head * d : d;
    if (!hn_ref_values(w)) return;
    memset(room, 0, (size_t)all * sizeof *room);
    hn_train_norm_back(g, room, dx, raw, w, all / width, width);
    memcpy(dx, room, (size_t)all * sizeof *dx);
}
void hn_train_heads_back(hn_grad *g, const hn_tgrad_layer *l, float *dq, float *dk, const float *q_raw,
                         const float *k_raw, int64_t n)
{
    const hn_hparams *hp = &g->m->hp;
    heads_job j = { .g = g, .l = l, .q = dq, .k = dk, .rope = angles_of(g->rope_back, l->plan), .n = n };
    int64_t chunks = (n + ROWS - 1) / ROWS;
    uint64_t t0 = hn_look_begin(&g->look);
    if (g->tau && l->plan->warm) hn_pool_run(g->p.pool, cool_chunk, &j, chunks);
    if (!l->plan->qk_norm_after) hn_pool_run(g->p.pool, unrotate_chunk, &j, chunks);
    unnorm_heads(g, l->plan, dq, q_raw, g->dq_raw, &l->q_norm, n, hp->n_head);
    unnorm_heads(g, l->plan, dk, k_raw, g->dk_raw, &l->k_norm, n, hp->n_head_kv);
    if (l->plan->qk_norm_after) hn_pool_run(g->p.pool, unrotate_chunk, &j, chunks);
    hn_look_end(&g->look, t0, "heads", n, (hn_look_cost){ 0 });
}

/* ---- attention, as it is told: each query with the keys that it sees, so many products forward and back */

static double attn_ops(const hn_grad *g, const hn_train_batch *b, const hn_layer_plan *p, int products)
{
    double n_key = 0;
    for (int32_t i = 0; i < b->n_doc; i++)
        for (int64_t t = 1; t <= b->doc[i + 1] - b->doc[i]; t++)
            n_key += (double)(p->window && t > p->window ? p->window : t);
    return 2.0 * products * (double)g->m->hp.head_dim * (double)g->m->hp.n_head * n_key;
}
static void attention(hn_grad *g, const hn_train_batch *b, const hn_kept *w, const hn_layer_plan *p, bool back)
{
    enum { FORWARD = 2, BACK = 5 }; /* S, O; S again, dP, dV, dQ, dK */
    uint64_t t0 = hn_look_begin(&g->look);
    if (back) hn_attn_backward(g, b, w, p);
    else hn_attn_forward(g, b, w, p);
    if (t0)
        hn_look_end(&g->look, t0, "attention", b->n_tok,
                    (hn_look_cost){ .ops = attn_ops(g, b, p, back ? BACK : FORWARD) });
}

/* ---- a layer ---------------------------------------------------------------------------------------------------- */

/* What a half begins with: norm(x) in g->n1, or x itself where the layer has no such norm. */
static const float *before(hn_grad *g, const hn_tensor_ref *w, const hn_tensor_ref *b, const float *x, int64_t n)
{
    if (!hn_ref_values(w)) return x;
    hn_train_stream_norm(g, g->n1, x, w, b, n);
    return g->n1;
}
/* dx += the gradient of x from that of what a half begins with, dn */
static void before_back(hn_grad *g, float *dx, const float *dn, const float *x, const hn_tensor_ref *w,
                        const hn_tensor_ref *b, int64_t n)
{
    if (hn_ref_values(w)) {
        hn_train_stream_norm_back(g, dx, dn, x, w, b, n);
        return;
    }
    uint64_t t0 = hn_look_begin(&g->look);
    rows(g, (rows_job){ .fn = add_rows_row, .n = n, .y = dx, .x = dn, .width = g->m->hp.n_embd });
    hn_look_end(&g->look, t0, "residual", n, (hn_look_cost){ 0 });
}

/* y = x + m·post(W·in); half takes W·in where there is a norm after it. */
static void add_half(hn_grad *g, const hn_linear *w, const hn_tensor_ref *post, float *half, float *y, const float *x,
                     const float *in, int64_t n)
{
    int64_t D = g->m->hp.n_embd;
    float mul = g->m->hp.res_mul;
    hn_train_linear(g, w, half ? half : y, in, n);
    uint64_t t0 = hn_look_begin(&g->look);
    if (half) hn_train_norm(g, y, half, post, n);
    else if (mul != 0) rows(g, (rows_job){ .fn = scale_row, .n = n, .y = y, .x = y, .width = D, .eps = mul });
    rows(g, (rows_job){ .fn = add_rows_row, .n = n, .y = y, .x = x, .width = D });
    hn_look_end(&g->look, t0, "residual", n, (hn_look_cost){ 0 });
}
/* The gradient of W·in there: g->dx, or made of it in g->dr. */
static const float *half_back(hn_grad *g, const hn_tensor_ref *post, const float *half, int64_t n)
{
    int64_t D = g->m->hp.n_embd;
    float mul = g->m->hp.res_mul;
    if (!half && mul == 0) return g->dx;
    uint64_t t0 = hn_look_begin(&g->look);
    if (half) {
        memset(g->dr, 0, (size_t)(n * D) * sizeof *g->dr);
        hn_train_norm_back(g, g->dr, g->dx, half, post, n, D);
    } else rows(g, (rows_job){ .fn = scale_row, .n = n, .y = g->dr, .x = g->dx, .width = D, .eps = mul });
    hn_look_end(&g->look, t0, "residual", n, (hn_look_cost){ 0 });
    return g->dr;
}

/* The feed-forward half's norm: its own, or, side by side, maybe attention's; and what it is of. */
static const hn_tensor_ref *ffn_norm(const hn_tgrad_layer *l, const hn_tensor_ref **b)
{
    bool shared = l->plan->parallel && !hn_ref_values(&l->ffn_norm);
    *b = shared ? &l->attn_norm_b : &l->ffn_norm_b;
    return shared ? &l->attn_norm : &l->ffn_norm;
}

/* x2 [n, D] of x0 (NULL: only what is kept); w takes what backward needs. */
static void layer(hn_grad *g, int32_t il, const hn_train_batch *b, const hn_kept *w, const float *x0, float *x2)
{
    const hn_tgrad_layer *l = &g->layer[il];
    int64_t n = b->n_tok;
    const hn_tensor_ref *bias, *norm = ffn_norm(l, &bias);
    const float *in = before(g, &l->attn_norm, &l->attn_norm_b, x0, n);
    hn_train_linear(g, &l->lin[HN_LIN_Q], w->q, in, n);
    hn_train_linear(g, &l->lin[HN_LIN_K], w->k, in, n);
    hn_train_linear(g, &l->lin[HN_LIN_V], w->v, in, n);
    hn_train_heads(g, l, w->q, w->k, w->q_raw, w->k_raw, n);
    attention(g, b, w, l->plan, false);
    add_half(g, &l->lin[HN_LIN_O], &l->attn_post, w->half1, w->x1, x0, w->o, n);
    in = before(g, norm, bias, l->plan->parallel ? x0 : w->x1, n);
    if (w->gate) hn_train_linear(g, &l->lin[HN_LIN_GATE], w->gate, in, n);
    hn_train_linear(g, &l->lin[HN_LIN_UP], w->up, in, n);
    if (!x2 && !w->half2) return;
    hn_train_gate(g, l->plan, g->h, w->gate, w->up, n, l->lin[HN_LIN_DOWN].x_rounded);
    if (x2) add_half(g, &l->lin[HN_LIN_DOWN], &l->ffn_post, w->half2, x2, w->x1, g->h, n);
    else hn_train_linear(g, &l->lin[HN_LIN_DOWN], w->half2, g->h, n);
}

/* g->dn: of what the feed-forward half begins with, of g->dx of x2. */
static void ffn_back(hn_grad *g, const hn_tgrad_layer *l, const hn_kept *w, const float *x, int64_t n)
{
    const hn_tensor_ref *bias, *norm = ffn_norm(l, &bias);
    const float *h = NULL, *dy = half_back(g, &l->ffn_post, w->half2, n);
    if (l->lin[HN_LIN_DOWN].a || l->lin[HN_LIN_DOWN].w.full) {
        hn_train_gate(g, l->plan, g->h, w->gate, w->up, n, false);
        h = g->h;
    }
    hn_train_linear_back(g, &l->lin[HN_LIN_DOWN], g->dh, false, dy, h, n);
    hn_train_gate_back(g, l->plan, w->gate, w->up, g->dh, n, l->lin[HN_LIN_UP].dy_rounded);
    const float *in = before(g, norm, bias, x, n);
    if (w->gate) hn_train_linear_back(g, &l->lin[HN_LIN_GATE], g->dn, false, w->gate, in, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_UP], g->dn, w->gate != NULL, w->up, in, n);
}

/* g->dx: of x2 on entry, of x0 on return (where il > low, or the embedding is trained). */
static void layer_back(hn_grad *g, int32_t il, const hn_train_batch *b, const hn_kept *w, const float *x0)
{
    const hn_tgrad_layer *l = &g->layer[il];
    int64_t n = b->n_tok;
    bool go_on = il > g->low || g->embd_trained, beside = l->plan->parallel;
    const hn_tensor_ref *bias, *norm = ffn_norm(l, &bias);
    ffn_back(g, l, w, beside ? x0 : w->x1, n);
    if (!beside) before_back(g, g->dx, g->dn, w->x1, norm, bias, n);

    const float *dy = half_back(g, &l->attn_post, w->half1, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_O], g->d_o, false, dy, w->o, n);
    if (beside) before_back(g, g->dx, g->dn, x0, norm, bias, n); /* dx was attention's too, till here */
    attention(g, b, w, l->plan, true);
    hn_train_heads_back(g, l, g->dq, g->dk, w->q_raw, w->k_raw, n);
    const float *in = before(g, &l->attn_norm, &l->attn_norm_b, x0, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_Q], go_on ? g->dn : NULL, false, g->dq, in, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_K], go_on ? g->dn : NULL, true, g->dk, in, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_V], go_on ? g->dn : NULL, true, g->dv, in, n);
    if (go_on) before_back(g, g->dx, g->dn, x0, &l->attn_norm, &l->attn_norm_b, n);
}

/* ---- what is kept, as bf16 ----------------------------------------------------------------------------------------
 */

typedef struct half_job {
    const hn_kernels *k;
    float *f;
    uint16_t *h;
    uint64_t n;
    bool back;
} half_job;
enum { HALF_CHUNK = 1 << 14 };
static void half_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const half_job *j = arg;
    uint64_t i = (uint64_t)chunk * HALF_CHUNK, n = j->n - i < HALF_CHUNK ? j->n - i : HALF_CHUNK;
    hn_dequantize_fn *decode = j->k->decode[HN_BF16] ? j->k->decode[HN_BF16] : hn_type_get(HN_BF16)->dequantize;
    if (j->back) decode(j->f + i, j->h + i, (int64_t)n);
    else j->k->to_bf16(j->h + i, j->f + i, (int64_t)n);
}
static void half(hn_grad *g, float *f, uint16_t *h, uint64_t n, bool back)
{
    half_job j = { g->p.kernels, f, h, n, back };
    if (h) hn_pool_run(g->p.pool, half_chunk, &j, (int64_t)((n + HALF_CHUNK - 1) / HALF_CHUNK));
}
static void kept_half(hn_grad *g, hn_kept *w, float *x0, const hn_kept_half *k, int64_t n, bool back)
{
    hn_kept from = *w;
    uint64_t t0 = hn_look_begin(&g->look);
    for (int i = 0; i < HN_KEPT_ARRAYS; i++) {
        int64_t width;
        float **f = hn_kept_array(g, &from, i, &width);
        half(g, *f, k->part[i], (uint64_t)(n * width), back);
    }
    half(g, x0, k->x0, (uint64_t)(n * g->m->hp.n_embd), back);
    hn_look_end(&g->look, t0, "keep_bf16", n, (hn_look_cost){ 0 });
}

/* ---- a batch -------------------------------------------------------------------------------------------------------
 */

/* A row of an embedding. */
static void table_row(float *y, const hn_tensor_ref *e, int64_t row, int64_t n)
{
    if (e->full) memcpy(y, e->full->p + row * n, (size_t)n * sizeof *y);
    else
        hn_type_get(e->frozen->type)
            ->dequantize(y, (const char *)e->frozen->data + (size_t)row * e->frozen->row_bytes, n);
}
static void embed_row(hn_grad *g, const rows_job *j, int64_t t)
{
    const hn_hparams *hp = &g->m->hp;
    int64_t D = hp->n_embd, pos = j->b->pos[t];
    float *x = j->y + t * D;
    table_row(x, &g->token_embd, j->b->ids[t], D);
    for (int64_t i = 0; hp->emb_scale != 1 && i < D; i++) x[i] *= hp->emb_scale;
    if (g->pos_embd.frozen) {
        float *learnt = g->n1 + t * D; /* free until the layers */
        table_row(learnt, &g->pos_embd, pos, D);
        hn_add(x, learnt, D);
    }
    if (g->tau) { /* in double, as the backend's heads have it */
        const hn_temperature *w = &hp->temperature;
        double steps = 1.0 + (double)((pos + w->offset) / w->length);
        g->tau[t] = (float)(1.0 + w->scale * (hn_log2_f64(steps) * 0.693147180559945309417));
    }
    for (int r = 0; r < HN_ROPES; r++) {
        if (!g->angles[r]) continue;
        float *cs = g->rope[r] + t * hp->n_rot, *back = g->rope_back[r] + t * hp->n_rot;
        hn_rope_table(cs, g->angles[r]->freq, hp->n_rot, pos, g->angles[r]->mscale);
        for (int32_t i = 0; i < hp->n_rot; i += 2) {
            back[i] = cs[i];
            back[i + 1] = -cs[i + 1];
        }
    }
}
void hn_train_embed(hn_grad *g, float *x, const hn_train_batch *b)
{
    uint64_t t0 = hn_look_begin(&g->look);
    rows(g, (rows_job){ .fn = embed_row, .n = b->n_tok, .y = x, .b = b });
    hn_look_end(&g->look, t0, "embed", b->n_tok, (hn_look_cost){ 0 });
}

/* columns of the embedding's gradient: a row may come up several times, in ascending t */
static void embed_back_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const rows_job *j = arg;
    int64_t c0 = chunk * 16, c1 = c0 + 16 < j->width ? c0 + 16 : j->width;
    const float scale = j->eps;
    for (int64_t t = 0; t < j->n && scale != 1; t++)
        for (int64_t c = c0; c < c1; c++) j->y[j->b->ids[t] * j->width + c] += j->x[t * j->width + c] * scale;
    for (int64_t t = 0; t < j->n && scale == 1; t++)
        for (int64_t c = c0; c < c1; c++) j->y[j->b->ids[t] * j->width + c] += j->x[t * j->width + c];
    for (int64_t t = 0; t < j->n && j->y2; t++) /* of learnt positions */
        for (int64_t c = c0; c < c1; c++) j->y2[j->b->pos[t] * j->width + c] += j->x[t * j->width + c];
}
void hn_train_embed_back(hn_grad *g, const float *dx, const hn_train_batch *b)
{
    rows_job j = { .g = g,
                   .n = b->n_tok,
                   .y = g->token_embd.full->g,
                   .y2 = g->pos_embd.full ? g->pos_embd.full->g : NULL,
                   .x = dx,
                   .width = g->m->hp.n_embd,
                   .eps = g->m->hp.emb_scale,
                   .b = b };
    uint64_t t0 = hn_look_begin(&g->look);
    hn_pool_run(g->p.pool, embed_back_chunk, &j, (j.width + 15) / 16);
    hn_look_end(&g->look, t0, "embed", b->n_tok, (hn_look_cost){ 0 });
}

/* Where a layer's arrays go: its own, or one set for all; below low nothing is kept. */
static hn_kept kept_of(const hn_grad *g, int32_t il)
{
    int32_t i = il > g->low && g->n_kept > 1 ? il - g->low : 0;
    hn_kept w = g->kept[g->half ? 0 : i];
    w.lse = g->kept[i].lse;
    return w;
}

static hone_status check_batch(const hn_grad *g, const hn_train_batch *b, hone_error *err)
{
    const hn_hparams *hp = &g->m->hp;
    if (b->n_tok < 1 || b->n_tok > g->p.max_tok)
        return HN_FAIL(err, HONE_E_ARG, "a batch of %d tokens: expected 1 to %d", b->n_tok, g->p.max_tok);
    for (int32_t t = 0; t < b->n_tok; t++) {
        if (b->ids[t] < 0 || b->ids[t] >= hp->n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token id %d at %d: expected 0 to %d", b->ids[t], t, hp->n_vocab - 1);
        if (b->target[t] < -1 || b->target[t] >= hp->n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "target %d at %d: expected -1 to %d", b->target[t], t, hp->n_vocab - 1);
        if (b->pos[t] < 0 || (g->pos_embd.frozen && b->pos[t] >= hp->n_ctx_train))
            return HN_FAIL(err, HONE_E_ARG, "position %d at %d", b->pos[t], t);
    }
    bool fine = b->n_doc > 0 && b->doc[0] == 0 && b->doc[b->n_doc] == b->n_tok;
    for (int32_t i = 0; fine && i < b->n_doc; i++) fine = b->doc[i] < b->doc[i + 1];
    return fine ? HONE_OK : HN_FAIL(err, HONE_E_ARG, "a batch whose documents do not cover its %d rows", b->n_tok);
}

void hn_grad_set_look(hn_grad *g, hn_look_fn *fn, void *arg)
{
    g->look = (hn_step_look){ .fn = fn, .arg = arg, .layer = -1 };
}

hone_status hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                        hone_error *err)
{
    const hn_hparams *hp = &g->m->hp;
    int64_t n = b->n_tok;
    hone_status st = check_batch(g, b, err);
    if (st != HONE_OK) return st;
    bool back = weight != 0;
    g->drop_key = dropout_key;
    g->last_n = (int32_t)n;

    hn_grad_at(g, HN_PART_FORWARD, -1);
    hn_train_embed(g, g->x0[0], b);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        int32_t i = il - g->low;
        hn_grad_at(g, HN_PART_FORWARD, il);
        hn_kept w = kept_of(g, il);
        layer(g, il, b, &w, g->x0[il], g->x0[il + 1]);
        if (back && i >= 0 && g->half && !g->p.checkpoint) kept_half(g, &w, g->x0[il], &g->half[i], n, false);
    }
    hn_grad_at(g, HN_PART_FORWARD, -1);
    float *last = g->x0[hp->n_layer];
    *loss = hn_head_loss(g, b, last, weight, g->dx);
    if (!back || !isfinite(*loss)) return HONE_OK;
    for (int32_t il = hp->n_layer - 1; il >= g->low; il--) {
        const hn_kept_half *k = g->half ? &g->half[g->n_kept > 1 ? il - g->low : 0] : NULL;
        hn_kept w = kept_of(g, il);
        float *x0 = g->x0[il];
        hn_grad_at(g, HN_PART_BACKWARD, il);
        if (g->p.checkpoint) layer(g, il, b, &w, x0, NULL);
        if (k && g->p.checkpoint) kept_half(g, &w, x0, k, n, false);
        if (k) kept_half(g, &w, x0, k, n, true);
        layer_back(g, il, b, &w, x0);
    }
    hn_grad_at(g, HN_PART_BACKWARD, -1);
    if (g->token_embd.full) hn_train_embed_back(g, g->dx, b);
    return HONE_OK;
}
