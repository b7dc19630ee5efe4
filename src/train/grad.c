/* grad: a transformer (llama, qwen2, qwen3) as a differentiable function of its
 * adapters or of all its weights. Each backward step stands beside its forward.
 *
 * T rows of a batch, D n_embd, F n_ff, H query heads on K key heads of d. Per layer:
 *   x0 [T, D] → n1 = norm(x0) → q [T, H·d], k, v [T, K·d] (+ bias) → norm per head (qwen3)
 *   → rotation → o = attention [T, H·d] → x1 = x0 + Wo·o
 *   → n2 = norm(x1) → a = Wgate·n2, u = Wup·n2 [T, F] → h = silu(a)·u → x2 = x1 + Wdown·h
 * and of a linear y = W·x + b + s·B·(A·x): dh = s·dy·B, dB += s·dyᵀ·h, dA += dhᵀ·x,
 * dx = dy·W + dh·A; trained whole: dW += dyᵀ·x, db += Σ dy. Kept of a layer are
 * x0, q, k, v, o, lse, x1, a, u; norms, h and the adapters' inner rows are made again.
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
    norm_weight j = { w->full->g, dy, x, g->inv_rms, n, width };
    hn_pool_run(g->p.pool, norm_weight_chunk, &j, (width + 15) / 16);
}

static void add_row(hn_grad *g, const rows_job *j, int64_t t)
{
    for (int64_t i = 0; i < j->width; i++) j->y[t * j->width + i] += j->x[i];
}
static void add_rows_row(hn_grad *g, const rows_job *j, int64_t t)
{
    hn_add(j->y + t * j->width, j->x + t * j->width, j->width);
}
static void copy_row(hn_grad *g, const rows_job *j, int64_t t)
{
    memcpy(j->y + t * j->width, j->x + t * j->width, (size_t)j->width * sizeof(float));
}

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
void hn_train_gate(hn_grad *g, float *h, const float *a, const float *u, int64_t n, bool rounded)
{
    rows(g, (rows_job){ .fn = silu_row, .n = n, .y = h, .x = a, .x2 = u, .width = g->m->hp.n_ff, .rounded = rounded });
}
void hn_train_gate_back(hn_grad *g, float *a, float *u, const float *dh, int64_t n, bool rounded)
{
    rows(g, (rows_job){
                .fn = silu_back_row, .n = n, .y = a, .y2 = u, .x = dh, .width = g->m->hp.n_ff, .rounded = rounded });
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
    return l->w.full ? (const void *)l->w.full->p : l->w.frozen->data;
}

static const float *adapter_input(hn_grad *g, const hn_linear *l, const float *x, int64_t n)
{
    if (!g->drop_key || g->p.dropout <= 0) return x;
    rows(g,
         (rows_job){
             .fn = drop_row, .n = n, .y = g->dropped, .x = x, .width = l->n_in, .key = hn_rand64(g->drop_key, l->id) });
    return g->dropped;
}

/* y [n, n_out] = W·x + b + s·B·(A·x) */
void hn_train_linear(hn_grad *g, const hn_linear *l, float *y, const float *x, int64_t n)
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
    product_f32(g, HN_GEMM_NT, y, g->inner, l->b->p, n, l->n_out, l->a->rows, g->p.scale, true);
}

static void sum_rows_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const norm_weight *j = arg;
    int64_t c0 = chunk * 16, c1 = c0 + 16 < j->width ? c0 + 16 : j->width;
    for (int64_t t = 0; t < j->n; t++)
        for (int64_t c = c0; c < c1; c++) j->dw[c] += j->dy[t * j->width + c];
}

/* dx [n, n_in] = or += dy's gradient, where dx is wanted; those of l's own parameters += */
void hn_train_linear_back(hn_grad *g, const hn_linear *l, float *dx, bool add, const float *dy, const float *x,
                          int64_t n)
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
                                         .c = l->w.full->g,
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
        norm_weight j = { l->bias.full->g, dy, NULL, NULL, n, l->n_out };
        hn_pool_run(g->p.pool, sum_rows_chunk, &j, (l->n_out + 15) / 16);
    }
    if (!l->a) return;
    int64_t r = l->a->rows;
    const float *xd = adapter_input(g, l, x, n);
    product_f32(g, HN_GEMM_NT, g->inner, xd, l->a->p, n, r, l->n_in, 1, false);
    product_f32(g, HN_GEMM_NN, g->d_inner, dy, l->b->p, n, r, l->n_out, g->p.scale, false);
    product_f32(g, HN_GEMM_TN, l->b->g, dy, g->inner, l->n_out, r, n, g->p.scale, true);
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

/* ---- heads: norm of each (qwen3), rotation ------------------------------------------------------------------- */

typedef struct heads_job {
    hn_grad *g;
    const hn_tgrad_layer *l;
    float *q, *k, *dq, *dk;
    int64_t n;
} heads_job;

static void heads_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const heads_job *j = arg;
    hn_grad *g = j->g;
    const hn_hparams *hp = &g->m->hp;
    int64_t d = hp->head_dim, H = hp->n_head, K = hp->n_head_kv;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++) {
        float *q = j->q + t * H * d, *k = j->k + t * K * d;
        const float *qn = hn_ref_values(&j->l->q_norm), *kn = hn_ref_values(&j->l->k_norm);
        for (int64_t h = 0; qn && h < H; h++) g->p.kernels->rms_norm(q + h * d, q + h * d, qn, d, hp->rms_eps);
        for (int64_t h = 0; kn && h < K; h++) g->p.kernels->rms_norm(k + h * d, k + h * d, kn, d, hp->rms_eps);
        hn_rope_apply(q, g->rope + t * hp->n_rot, H, d, hp->n_rot, hp->rope_neox);
        hn_rope_apply(k, g->rope + t * hp->n_rot, K, d, hp->n_rot, hp->rope_neox);
    }
}
void hn_train_heads(hn_grad *g, const hn_tgrad_layer *l, float *q, float *k, int64_t n)
{
    heads_job j = { .g = g, .l = l, .q = q, .k = k, .n = n };
    hn_pool_run(g->p.pool, heads_chunk, &j, (n + ROWS - 1) / ROWS);
}

static void unrotate_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const heads_job *j = arg;
    hn_grad *g = j->g;
    const hn_hparams *hp = &g->m->hp;
    int64_t d = hp->head_dim;
    for (int64_t t = chunk * ROWS; t < j->n && t < (chunk + 1) * ROWS; t++) { /* the transposed rotation has −sin */
        hn_rope_apply(j->dq + t * hp->n_head * d, g->rope_back + t * hp->n_rot, hp->n_head, d, hp->n_rot,
                      hp->rope_neox);
        hn_rope_apply(j->dk + t * hp->n_head_kv * d, g->rope_back + t * hp->n_rot, hp->n_head_kv, d, hp->n_rot,
                      hp->rope_neox);
    }
}
void hn_train_heads_back(hn_grad *g, const hn_tgrad_layer *l, float *dq, float *dk, const float *q_raw,
                         const float *k_raw, int64_t n)
{
    const hn_hparams *hp = &g->m->hp;
    int64_t d = hp->head_dim, nq = n * hp->n_head, nk = n * hp->n_head_kv;
    heads_job j = { .g = g, .l = l, .dq = dq, .dk = dk, .n = n };
    hn_pool_run(g->p.pool, unrotate_chunk, &j, (n + ROWS - 1) / ROWS);
    if (!hn_ref_values(&l->q_norm)) return;
    memset(g->dq_raw, 0, (size_t)(nq * d) * sizeof(float));
    hn_train_norm_back(g, g->dq_raw, dq, q_raw, &l->q_norm, nq, d);
    memset(g->dk_raw, 0, (size_t)(nk * d) * sizeof(float));
    hn_train_norm_back(g, g->dk_raw, dk, k_raw, &l->k_norm, nk, d);
    memcpy(dq, g->dq_raw, (size_t)(nq * d) * sizeof(float));
    memcpy(dk, g->dk_raw, (size_t)(nk * d) * sizeof(float));
}

/* ---- a layer ---------------------------------------------------------------------------------------------------- */

/* x2 [n, D] of x0 (NULL: only what is kept); w takes what backward needs. */
static void layer(hn_grad *g, int32_t il, const hn_train_batch *b, const hn_kept *w, const float *x0, float *x2)
{
    const hn_tgrad_layer *l = &g->layer[il];
    int64_t n = b->n_tok, D = g->m->hp.n_embd;
    hn_train_norm(g, g->n1, x0, &l->attn_norm, n);
    hn_train_linear(g, &l->lin[HN_LIN_Q], w->q, g->n1, n);
    hn_train_linear(g, &l->lin[HN_LIN_K], w->k, g->n1, n);
    hn_train_linear(g, &l->lin[HN_LIN_V], w->v, g->n1, n);
    if (w->q_raw) { /* norms of heads: backward wants what they took */
        rows(g, (rows_job){ .fn = copy_row, .n = n, .y = w->q_raw, .x = w->q, .width = l->lin[HN_LIN_Q].n_out });
        rows(g, (rows_job){ .fn = copy_row, .n = n, .y = w->k_raw, .x = w->k, .width = l->lin[HN_LIN_K].n_out });
    }
    hn_train_heads(g, l, w->q, w->k, n);
    hn_attn_forward(g, b, w);
    hn_train_linear(g, &l->lin[HN_LIN_O], w->x1, w->o, n);
    rows(g, (rows_job){ .fn = add_rows_row, .n = n, .y = w->x1, .x = x0, .width = D });
    hn_train_norm(g, g->n1, w->x1, &l->ffn_norm, n);
    hn_train_linear(g, &l->lin[HN_LIN_GATE], w->gate, g->n1, n);
    hn_train_linear(g, &l->lin[HN_LIN_UP], w->up, g->n1, n);
    if (!x2) return;
    hn_train_gate(g, g->h, w->gate, w->up, n, l->lin[HN_LIN_DOWN].x_rounded);
    hn_train_linear(g, &l->lin[HN_LIN_DOWN], x2, g->h, n);
    rows(g, (rows_job){ .fn = add_rows_row, .n = n, .y = x2, .x = w->x1, .width = D });
}

/* g->dx: of x2 on entry, of x0 on return (where il > low, or the embedding is trained). */
static void layer_back(hn_grad *g, int32_t il, const hn_train_batch *b, const hn_kept *w, const float *x0)
{
    const hn_tgrad_layer *l = &g->layer[il];
    int64_t n = b->n_tok, D = g->m->hp.n_embd;
    bool go_on = il > g->low || g->embd_trained;
    const float *h = NULL;
    if (l->lin[HN_LIN_DOWN].a || l->lin[HN_LIN_DOWN].w.full) {
        hn_train_gate(g, g->h, w->gate, w->up, n, false);
        h = g->h;
    }
    hn_train_linear_back(g, &l->lin[HN_LIN_DOWN], g->dh, false, g->dx, h, n);
    hn_train_gate_back(g, w->gate, w->up, g->dh, n, l->lin[HN_LIN_UP].dy_rounded);
    hn_train_norm(g, g->n1, w->x1, &l->ffn_norm, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_GATE], g->dn, false, w->gate, g->n1, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_UP], g->dn, true, w->up, g->n1, n);
    hn_train_norm_back(g, g->dx, g->dn, w->x1, &l->ffn_norm, n, D);

    hn_train_linear_back(g, &l->lin[HN_LIN_O], g->d_o, false, g->dx, w->o, n);
    hn_attn_backward(g, b, w);
    hn_train_heads_back(g, l, g->dq, g->dk, w->q_raw, w->k_raw, n);
    hn_train_norm(g, g->n1, x0, &l->attn_norm, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_Q], go_on ? g->dn : NULL, false, g->dq, g->n1, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_K], go_on ? g->dn : NULL, true, g->dk, g->n1, n);
    hn_train_linear_back(g, &l->lin[HN_LIN_V], go_on ? g->dn : NULL, true, g->dv, g->n1, n);
    if (go_on) hn_train_norm_back(g, g->dx, g->dn, x0, &l->attn_norm, n, D);
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
    const hn_linear *l = g->layer[0].lin;
    float *const f[HN_KEPT_ARRAYS] = { w->q, w->k, w->v, w->o, w->x1, w->gate, w->up, w->q_raw, w->k_raw };
    const int64_t width[HN_KEPT_ARRAYS] = { l[HN_LIN_Q].n_out,  l[HN_LIN_K].n_out, l[HN_LIN_V].n_out,
                                            l[HN_LIN_O].n_in,   l[HN_LIN_O].n_out, l[HN_LIN_GATE].n_out,
                                            l[HN_LIN_UP].n_out, l[HN_LIN_Q].n_out, l[HN_LIN_K].n_out };
    for (int i = 0; i < HN_KEPT_ARRAYS; i++) half(g, f[i], k->part[i], (uint64_t)(n * width[i]), back);
    half(g, x0, k->x0, (uint64_t)(n * g->m->hp.n_embd), back);
}

/* ---- a batch -------------------------------------------------------------------------------------------------------
 */

static void embed_row(hn_grad *g, const rows_job *j, int64_t t)
{
    const hn_tensor_ref *e = &g->token_embd;
    int64_t D = g->m->hp.n_embd, id = j->b->ids[t];
    if (e->full) memcpy(j->y + t * D, e->full->p + id * D, (size_t)D * sizeof(float));
    else
        hn_type_get(e->frozen->type)
            ->dequantize(j->y + t * D, (const char *)e->frozen->data + (size_t)id * e->frozen->row_bytes, D);
    const hn_hparams *hp = &g->m->hp;
    float *cs = g->rope + t * hp->n_rot, *back = g->rope_back + t * hp->n_rot;
    hn_rope_table(cs, hp->rope[0].freq, hp->n_rot, j->b->pos[t], hp->rope[0].mscale);
    for (int32_t i = 0; i < hp->n_rot; i += 2) {
        back[i] = cs[i];
        back[i + 1] = -cs[i + 1];
    }
}
void hn_train_embed(hn_grad *g, float *x, const hn_train_batch *b)
{
    rows(g, (rows_job){ .fn = embed_row, .n = b->n_tok, .y = x, .b = b });
}

/* columns of the embedding's gradient: a row may come up several times, in ascending t */
static void embed_back_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const rows_job *j = arg;
    int64_t c0 = chunk * 16, c1 = c0 + 16 < j->width ? c0 + 16 : j->width;
    for (int64_t t = 0; t < j->n; t++)
        for (int64_t c = c0; c < c1; c++) j->y[j->b->ids[t] * j->width + c] += j->x[t * j->width + c];
}
void hn_train_embed_back(hn_grad *g, const float *dx, const hn_train_batch *b)
{
    rows_job j = { .g = g, .n = b->n_tok, .y = g->token_embd.full->g, .x = dx, .width = g->m->hp.n_embd, .b = b };
    hn_pool_run(g->p.pool, embed_back_chunk, &j, (j.width + 15) / 16);
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
        if (b->pos[t] < 0) return HN_FAIL(err, HONE_E_ARG, "position %d at %d", b->pos[t], t);
    }
    bool fine = b->n_doc > 0 && b->doc[0] == 0 && b->doc[b->n_doc] == b->n_tok;
    for (int32_t i = 0; fine && i < b->n_doc; i++) fine = b->doc[i] < b->doc[i + 1];
    return fine ? HONE_OK : HN_FAIL(err, HONE_E_ARG, "a batch whose documents do not cover its %d rows", b->n_tok);
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

    hn_train_embed(g, g->x0[0], b);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        int32_t i = il - g->low;
        hn_kept w = kept_of(g, il);
        layer(g, il, b, &w, g->x0[il], g->x0[il + 1]);
        if (back && i >= 0 && g->half && !g->p.checkpoint) kept_half(g, &w, g->x0[il], &g->half[i], n, false);
    }
    float *last = g->x0[hp->n_layer];
    *loss = hn_head_loss(g, b, last, weight, g->dx);
    if (!back || !isfinite(*loss)) return HONE_OK;
    for (int32_t il = hp->n_layer - 1; il >= g->low; il--) {
        const hn_kept_half *k = g->half ? &g->half[g->n_kept > 1 ? il - g->low : 0] : NULL;
        hn_kept w = kept_of(g, il);
        float *x0 = g->x0[il];
        if (g->p.checkpoint) layer(g, il, b, &w, x0, NULL);
        if (k && g->p.checkpoint) kept_half(g, &w, x0, k, n, false);
        if (k) kept_half(g, &w, x0, k, n, true);
        layer_back(g, il, b, &w, x0);
    }
    if (g->token_embd.full) hn_train_embed_back(g, g->dx, b);
    return HONE_OK;
}
