/* loss: the head and cross-entropy, over the rows that have a target, a few at a time:
 * no [T, n_vocab] is ever held.
 *   z = norm(x), logits = W·z (+ b), loss = Σ log Σ exp(logits) − logits[target],
 *   dlogits = weight·(softmax(logits) − onehot), dz = dlogits·W
 * Logits may be scaled by m and capped, l = c·tanh(m·(W·z)/c): then dlogits is multiplied by m·(1 − (l/c)²). */
#include "train/grad.h"

#include <math.h>

typedef struct loss_job {
    hn_grad *g;
    const hn_train_batch *b;
    int64_t first; /* of g->rows */
    double weight;
} loss_job;

enum { PIECE = 4096 }; /* floats that stay in the first cache from step to step */

float hn_train_max(const float *x, int64_t n)
{
    float part[16], max = x[0];
    int64_t v = 16;
    for (int l = 0; l < 16; l++) part[l] = x[l < n ? l : 0];
    for (; v + 16 <= n; v += 16)
        for (int l = 0; l < 16; l++) part[l] = x[v + l] > part[l] ? x[v + l] : part[l];
    for (int l = 0; l < 16; l++) max = part[l] > max ? part[l] : max;
    for (; v < n; v++) max = x[v] > max ? x[v] : max;
    return max;
}

/* Products become logits; slope takes what the cap does to their gradients, where there is a cap and it is wanted. */
static void tail(hn_grad *g, float *x, float *slope)
{
    const hn_hparams *hp = &g->m->hp;
    const int64_t V = hp->n_vocab;
    if (hp->logit_mul != 0)
        for (int64_t v = 0; v < V; v++) x[v] *= hp->logit_mul;
    if (hp->logit_cap == 0) return;
    for (int64_t v = 0; v < V; v++) x[v] *= 1.0f / hp->logit_cap;
    g->p.kernels->map[HN_MAP_TANH](x, V);
    for (int64_t v = 0; slope && v < V; v++) slope[v] = (1.0f - x[v]) * (1.0f + x[v]);
    for (int64_t v = 0; v < V; v++) x[v] *= hp->logit_cap;
}

/* A row of logits: its loss; then its gradient in place. */
static void loss_row(void *arg, int64_t i, int32_t thread)
{
    const loss_job *j = arg;
    hn_grad *g = j->g;
    int64_t V = g->m->hp.n_vocab, target = j->b->target[g->rows[j->first + i]];
    float *x = g->logits + i * V, *slope = g->slope ? g->slope + thread * V : NULL;
    tail(g, x, slope);
    float max = hn_train_max(x, V);
    double to_target = x[target] - max, part[16] = { 0 }, sum = 0;
    for (int64_t v0 = 0; v0 < V; v0 += PIECE) {
        int64_t n = V - v0 < PIECE ? V - v0 : PIECE, v = 0;
        float *at = x + v0;
        for (int64_t k = 0; k < n; k++) at[k] -= max;
        g->p.kernels->exp(at, at, n);
        for (; v + 16 <= n; v += 16)
            for (int l = 0; l < 16; l++) part[l] += at[v + l];
        for (; v < n; v++) part[v & 15] += at[v];
    }
    for (int l = 0; l < 16; l++) sum += part[l];
    g->loss[j->first + i] =
        isfinite(sum) && sum > 0 ? hn_log2_f64(sum) * 0.69314718055994530942 - to_target : (double)NAN;
    if (j->weight == 0) return;
    float scale = (float)(j->weight / sum);
    for (int64_t v = 0; v < V; v++) x[v] *= scale;
    x[target] -= (float)j->weight;
    for (int64_t v = 0; slope && v < V; v++) x[v] *= slope[v];
    if (g->m->hp.logit_mul != 0)
        for (int64_t v = 0; v < V; v++) x[v] *= g->m->hp.logit_mul;
    if (g->output.dy_rounded) hn_gemm_round(g->gemm, x, V);
}

static void gather(float *y, const float *x, const int32_t *rows, int64_t n, int64_t width)
{
    for (int64_t i = 0; i < n; i++) memcpy(y + i * width, x + rows[i] * width, (size_t)width * sizeof(float));
}

double hn_head_loss(hn_grad *g, const hn_train_batch *b, const float *x, double weight, float *dx)
{
    int64_t D = g->m->hp.n_embd, n = 0;
    double loss = 0;
    for (int32_t t = 0; t < b->n_tok; t++)
        if (b->target[t] >= 0) g->rows[n++] = t;
    if (weight != 0) memset(dx, 0, (size_t)b->n_tok * (size_t)D * sizeof(float));
    for (int64_t i = 0; i < n; i += g->chunk) {
        int64_t c = n - i < g->chunk ? n - i : g->chunk;
        hn_grad_at(g, HN_PART_FORWARD, -1);
        gather(g->last, x, g->rows + i, c, D);
        hn_train_stream_norm(g, g->z, g->last, &g->output_norm, &g->output_norm_b, c);
        hn_train_linear(g, &g->output, g->logits, g->z, c);
        loss_job j = { g, b, i, weight };
        uint64_t t0 = hn_look_begin(&g->look);
        hn_pool_run(g->p.pool, loss_row, &j, c);
        hn_look_end(&g->look, t0, "loss", c, (hn_look_cost){ 0 });
        if (weight == 0) continue;
        hn_grad_at(g, HN_PART_BACKWARD, -1);
        float *dn = g->dn; /* free until the layers' backward */
        hn_train_linear_back(g, &g->output, g->dz, false, g->logits, g->z, c);
        memset(dn, 0, (size_t)(c * D) * sizeof(float));
        hn_train_stream_norm_back(g, dn, g->dz, g->last, &g->output_norm, &g->output_norm_b, c);
        for (int64_t r = 0; r < c; r++) memcpy(dx + g->rows[i + r] * D, dn + r * D, (size_t)D * sizeof(float));
    }
    for (int64_t i = 0; i < n; i++) loss += g->loss[i];
    return loss;
}

/* The arrays of the layers that lie in the logits' memory are of no use after this. */
void hn_grad_logits(hn_grad *g, const int32_t *index, int32_t n, float *logits)
{
    int64_t D = g->m->hp.n_embd, V = g->m->hp.n_vocab;
    for (int32_t i = 0; i < n; i += g->chunk) {
        int64_t c = n - i < g->chunk ? n - i : g->chunk;
        gather(g->last, g->x0[g->m->hp.n_layer], index + i, c, D);
        hn_train_stream_norm(g, g->z, g->last, &g->output_norm, &g->output_norm_b, c);
        hn_train_linear(g, &g->output, g->logits, g->z, c);
        for (int64_t r = 0; r < c; r++) tail(g, g->logits + r * V, NULL);
        memcpy(logits + i * V, g->logits, (size_t)(c * V) * sizeof(float));
    }
}
