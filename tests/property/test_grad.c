/* Gradients of adapters and of whole models against central differences of a plain
 * double-precision forward pass written here, for llama, qwen2 and qwen3: grouped
 * heads, biases, norms of heads, tied and untied heads, masked targets, documents in a
 * row. Then what must not change a bit: threads, checkpointing, company of documents. */
#include "train/train.h"
#include "../unit/slowed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t key = 1, at;
static double rnd(void) { return (double)(hn_rand64(key, at++) >> 11) * 0x1p-53 * 2 - 1; } /* [-1, 1) */

/* ---- a model ------------------------------------------------------------------------------- */

typedef struct shape {
    const char *arch;
    int n_head, n_head_kv, head_dim;
    bool tied;
    const char *type;
    int n_embd, n_ff;
} shape;
enum { VOCAB = 37, LAYERS = 2 };

static hone_model *make(const shape *s)
{
    char dir[] = "/tmp/hone-grad-XXXXXX", json[64], file[64];
    assert_non_null(mkdtemp(dir));
    snprintf(json, sizeof json, "%s/c.json", dir);
    snprintf(file, sizeof file, "%s/m.gguf", dir);
    FILE *f = fopen(json, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"arch\":\"%s\",\"n_layer\":%d,\"n_embd\":%d,\"n_head\":%d,\"n_head_kv\":%d,\"head_dim\":%d,\"n_ff\":%d,"
            "\"n_vocab\":%d,"
            "\"n_ctx_train\":512,\"rope_base\":10000,\"rms_eps\":1e-5,\"tied\":%s}",
            s->arch, LAYERS, s->n_embd, s->n_head, s->n_head_kv, s->head_dim, s->n_ff, VOCAB,
            s->tied ? "true" : "false");
    assert_int_equal(fclose(f), 0);
    hone_error err;
    hone_synth_params p = { .config_path = json, .type = s->type, .seed = 7, .n_threads = 1 };
    if (hone_synth(&p, file, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_model *m;
    if (hone_model_open(&m, file, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    unlink(json);
    unlink(file);
    rmdir(dir);
    return m;
}

/* ---- the reference: the same function in double ------------------------------------------------ */

typedef struct mat {
    double *w, *b, *la, *lb;
    int64_t n_in, n_out, rank;
} mat;
typedef struct ref_layer {
    double *n1, *n2, *qn, *kn;
    mat m[7];
} ref_layer;
typedef struct ref {
    const hone_model *m;
    double *embd, *norm, scale;
    mat out;
    ref_layer l[LAYERS];
} ref;

static double *wide(const float *x, int64_t n)
{
    if (!x) return NULL;
    double *d = malloc((size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++) d[i] = x[i];
    return d;
}
static double *wide_matrix(const hn_weight *w)
{
    float *row = malloc((size_t)w->n_in * sizeof *row);
    double *d = malloc((size_t)(w->n_in * w->n_out) * sizeof *d);
    for (int64_t r = 0; r < w->n_out; r++) {
        hn_type_get(w->type)->dequantize(row, (const char *)w->data + (size_t)r * w->row_bytes, w->n_in);
        for (int64_t i = 0; i < w->n_in; i++) d[r * w->n_in + i] = row[i];
    }
    free(row);
    return d;
}
static mat mat_of(const hn_weight *w)
{
    return (mat){ wide_matrix(w), wide(w->bias, w->n_out), NULL, NULL, w->n_in, w->n_out, 0 };
}

static void ref_new(ref *r, const hone_model *m)
{
    const hn_hparams *hp = &m->hp;
    memset(r, 0, sizeof *r);
    r->m = m;
    r->embd = wide_matrix(&m->token_embd);
    r->norm = wide(m->output_norm, hp->n_embd);
    r->out = mat_of(&m->output);
    if (m->output.data == m->token_embd.data) {
        free(r->out.w);
        r->out.w = r->embd;
    }
    for (int i = 0; i < LAYERS; i++) {
        const hn_layer *l = &m->layers[i];
        const hn_weight *w[7] = { &l->attn_q,   &l->attn_k, &l->attn_v,  &l->attn_output,
                                  &l->ffn_gate, &l->ffn_up, &l->ffn_down };
        r->l[i] = (ref_layer){ wide(l->attn_norm, hp->n_embd),
                               wide(l->ffn_norm, hp->n_embd),
                               wide(l->attn_q_norm, hp->head_dim),
                               wide(l->attn_k_norm, hp->head_dim),
                               { { 0 } } };
        for (int k = 0; k < 7; k++) r->l[i].m[k] = mat_of(w[k]);
    }
}
static void mat_free(mat *m) { free(m->w), free(m->b), free(m->la), free(m->lb); }
static void ref_free(ref *r)
{
    if (r->out.w == r->embd) r->out.w = NULL;
    mat_free(&r->out);
    free(r->embd), free(r->norm);
    for (int i = 0; i < LAYERS; i++) {
        free(r->l[i].n1), free(r->l[i].n2), free(r->l[i].qn), free(r->l[i].kn);
        for (int k = 0; k < 7; k++) mat_free(&r->l[i].m[k]);
    }
}

static void ref_norm(double *y, const double *x, const double *w, int64_t n, double eps)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    s = 1 / sqrt(s / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}
/* Half of this test is this loop: four sums at once, and no sanitizer at every step. */
__attribute__((no_sanitize("address", "undefined"), noinline)) static double dot(const double *a, const double *b,
                                                                                 int64_t n)
{
    double s[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) s[j] += a[i + j] * b[i + j];
    for (; i < n; i++) s[0] += a[i] * b[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static void ref_mul(double *y, const mat *m, const double *x, double scale)
{
    double h[64];
    for (int64_t k = 0; k < m->rank; k++) h[k] = dot(m->la + k * m->n_in, x, m->n_in);
    for (int64_t o = 0; o < m->n_out; o++) {
        double s = (m->b ? m->b[o] : 0) + dot(m->w + o * m->n_in, x, m->n_in);
        for (int64_t k = 0; k < m->rank; k++) s += scale * m->lb[o * m->rank + k] * h[k];
        y[o] = s;
    }
}
static void ref_rope(double *x, const hn_hparams *hp, int64_t pos)
{
    for (int i = 0; i < hp->n_rot / 2; i++) {
        int a = hp->rope_neox ? i : 2 * i, b = hp->rope_neox ? i + hp->n_rot / 2 : 2 * i + 1;
        double t = (double)pos * hp->rope[0].freq[i], c = cos(t), s = sin(t), u = x[a], v = x[b];
        x[a] = u * c - v * s;
        x[b] = u * s + v * c;
    }
}

/* Σ −log p(target) of one document from position 0 */
static double ref_doc(const ref *r, const int32_t *ids, const int32_t *target, int n)
{
    const hn_hparams *hp = &r->m->hp;
    int D = hp->n_embd, F = hp->n_ff, d = hp->head_dim, H = hp->n_head, K = hp->n_head_kv;
    double *x = malloc((size_t)(n * (D * 2 + H * d * 2 + K * d * 2) + 2 * F + D + VOCAB + n) * sizeof *x);
    double *nx = x + n * D, *q = nx + n * D, *o = q + n * H * d, *k = o + n * H * d, *v = k + n * K * d,
           *f = v + n * K * d, *u = f + F, *y = u + F, *lg = y + D, *p = lg + VOCAB;
    double loss = 0;
    for (int t = 0; t < n; t++) memcpy(x + t * D, r->embd + ids[t] * D, (size_t)D * sizeof *x);
    for (int il = 0; il < LAYERS; il++) {
        const ref_layer *l = &r->l[il];
        for (int t = 0; t < n; t++) {
            ref_norm(nx + t * D, x + t * D, l->n1, D, hp->rms_eps);
            ref_mul(q + t * H * d, &l->m[0], nx + t * D, r->scale);
            ref_mul(k + t * K * d, &l->m[1], nx + t * D, r->scale);
            ref_mul(v + t * K * d, &l->m[2], nx + t * D, r->scale);
            for (int h = 0; h < H; h++) {
                if (l->qn) ref_norm(q + (t * H + h) * d, q + (t * H + h) * d, l->qn, d, hp->rms_eps);
                ref_rope(q + (t * H + h) * d, hp, t);
            }
            for (int h = 0; h < K; h++) {
                if (l->kn) ref_norm(k + (t * K + h) * d, k + (t * K + h) * d, l->kn, d, hp->rms_eps);
                ref_rope(k + (t * K + h) * d, hp, t);
            }
        }
        for (int t = 0; t < n; t++) {
            for (int h = 0; h < H; h++) {
                int kh = h / (H / K);
                double sum = 0, top = -INFINITY;
                for (int s = 0; s <= t; s++) {
                    p[s] = 0;
                    for (int i = 0; i < d; i++) p[s] += q[(t * H + h) * d + i] * k[(s * K + kh) * d + i];
                    p[s] /= sqrt(d);
                    top = fmax(top, p[s]);
                }
                for (int s = 0; s <= t; s++) sum += p[s] = exp(p[s] - top);
                for (int i = 0; i < d; i++) {
                    double a = 0;
                    for (int s = 0; s <= t; s++) a += p[s] * v[(s * K + kh) * d + i];
                    o[(t * H + h) * d + i] = a / sum;
                }
            }
            ref_mul(y, &l->m[3], o + t * H * d, r->scale);
            for (int i = 0; i < D; i++) x[t * D + i] += y[i];
            ref_norm(nx + t * D, x + t * D, l->n2, D, hp->rms_eps);
            ref_mul(f, &l->m[4], nx + t * D, r->scale);
            ref_mul(u, &l->m[5], nx + t * D, r->scale);
            for (int i = 0; i < F; i++) f[i] = f[i] / (1 + exp(-f[i])) * u[i];
            ref_mul(y, &l->m[6], f, r->scale);
            for (int i = 0; i < D; i++) x[t * D + i] += y[i];
        }
    }
    for (int t = 0; t < n; t++) {
        if (target[t] < 0) continue;
        ref_norm(nx, x + t * D, r->norm, D, hp->rms_eps);
        ref_mul(lg, &r->out, nx, 0);
        double sum = 0, top = -INFINITY;
        for (int i = 0; i < VOCAB; i++) top = fmax(top, lg[i]);
        for (int i = 0; i < VOCAB; i++) sum += exp(lg[i] - top);
        loss += top + log(sum) - lg[target[t]];
    }
    free(x);
    return loss;
}
static double ref_loss(const ref *r, const hn_train_batch *b)
{
    double loss = 0;
    for (int i = 0; i < b->n_doc; i++)
        loss += ref_doc(r, b->ids + b->doc[i], b->target + b->doc[i], b->doc[i + 1] - b->doc[i]);
    return loss;
}

/* The double array that stands for a parameter. */
static double **ref_find(ref *r, const char *name, int64_t rows)
{
    static const char *const lin[7] = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down" };
    char full[96];
    if (!strcmp(name, "token_embd.weight")) return &r->embd;
    if (!strcmp(name, "output_norm.weight")) return &r->norm;
    if (!strcmp(name, "output.weight")) return &r->out.w;
    for (int il = 0; il < LAYERS; il++) {
        struct {
            double **p;
            const char *name;
        } v[] = { { &r->l[il].n1, "attn_norm" },
                  { &r->l[il].n2, "ffn_norm" },
                  { &r->l[il].qn, "attn_q_norm" },
                  { &r->l[il].kn, "attn_k_norm" } };
        for (int i = 0; i < 4; i++) {
            snprintf(full, sizeof full, "blk.%d.%s.weight", il, v[i].name);
            if (!strcmp(full, name)) return v[i].p;
        }
        for (int i = 0; i < 7; i++) {
            mat *m = &r->l[il].m[i];
            struct {
                double **p;
                const char *end;
            } f[] = {
                { &m->w, "weight" }, { &m->b, "bias" }, { &m->la, "weight.lora_a" }, { &m->lb, "weight.lora_b" }
            };
            for (int k = 0; k < 4; k++) {
                snprintf(full, sizeof full, "blk.%d.%s.%s", il, lin[i], f[k].end);
                if (strcmp(full, name)) continue;
                if (k == 2) m->rank = rows;
                return f[k].p;
            }
        }
    }
    fail_msg("%s: not a name of a tensor", name);
    return NULL;
}

/* ---- batches ------------------------------------------------------------------------------------- */

typedef struct batch {
    hn_train_batch b;
    int32_t ids[256], target[256], pos[256], doc[17];
} batch;
static void batch_make(batch *b, const int *len, int n_doc)
{
    memset(b, 0, sizeof *b);
    for (int d = 0; d < n_doc; d++)
        for (int i = 0; i < len[d]; i++) {
            int t = b->doc[d] + i;
            b->ids[t] = (int32_t)(hn_rand64(key, at++) % VOCAB);
            b->pos[t] = i;
            b->doc[d + 1] = t + 1;
        }
    for (int d = 0; d < n_doc; d++)
        for (int t = b->doc[d]; t < b->doc[d + 1]; t++)
            b->target[t] = t + 1 == b->doc[d + 1] || rnd() > 0.6 ? -1 : b->ids[t + 1]; /* a fifth masked */
    b->b = (hn_train_batch){ b->doc[n_doc], n_doc, 0, b->ids, b->target, b->pos, b->doc };
    for (int t = 0; t < b->b.n_tok; t++) b->b.n_target += b->target[t] >= 0;
}

static hn_grad *grad_make(const hone_model *m, hn_pool *pool, hn_grad_params p)
{
    hn_grad *g;
    hone_error err;
    p.pool = pool;
    if (!p.kernels) p.kernels = hn_kernels_get(hn_cpu_best());
    if (hn_grad_new(&g, m, &p, &err) != HONE_OK) fail_msg("%s", err.message);
    for (int i = 0; i < hn_grad_n_param(g); i++) { /* B's too, or A would have no gradient */
        hn_param *q = hn_grad_param(g, i);
        for (int64_t k = 0; strstr(q->name, "lora_b") && k < q->rows * q->cols; k++)
            q->p[k] = (float)((double)(hn_rand64(5, (uint64_t)(i * 100003 + k)) >> 11) * 0x1p-53 - 0.5);
    }
    return g;
}

static void check(const shape *s, bool full, uint32_t targets, const int *len, int n_doc, int samples)
{
    /* only the reference runs for each: the library runs once, and under a sanitizer's eyes */
    if (SLOWED) samples = samples > 4 ? 4 : 1;
    hone_model *m = make(s);
    hn_pool *pool;
    assert_int_equal(hn_pool_new(&pool, 2, NULL), HONE_OK);
    hn_grad *g = grad_make(
        m, pool,
        (hn_grad_params){ .full = full, .targets = targets, .rank = 3, .scale = 1.5f, .max_tok = 256, .seed = 3 });
    batch b;
    batch_make(&b, len, n_doc);
    ref r;
    ref_new(&r, m);
    r.scale = 1.5;
    for (int i = 0; i < hn_grad_n_param(g); i++) {
        hn_param *p = hn_grad_param(g, i);
        double **d = ref_find(&r, p->name, p->rows);
        if (!*d) *d = malloc((size_t)(p->rows * p->cols) * sizeof **d);
        for (int64_t k = 0; k < p->rows * p->cols; k++) (*d)[k] = p->p[k];
    }
    double loss, want = ref_loss(&r, &b.b), weight = 1.0 / b.b.n_target;
    hn_grad_zero(g);
    assert_int_equal(hn_grad_run(g, &b.b, weight, 0, &loss, NULL), HONE_OK);
    if (!(fabs(loss - want) <= 1e-5 * fabs(want))) fail_msg("%s: loss %.9g, reference %.9g", s->arch, loss, want);
    int moved = 0;
    for (int i = 0; i < hn_grad_n_param(g); i++) {
        hn_param *p = hn_grad_param(g, i);
        double *d = *ref_find(&r, p->name, p->rows), err2 = 0, ref2 = 0;
        int64_t n = p->rows * p->cols;
        for (int k = 0; k < samples; k++) {
            int64_t e = n <= samples ? k : (int64_t)(hn_rand64(key, at++) % (uint64_t)n);
            if (e >= n) break;
            double keep = d[e], h = 1e-5 * fmax(1, fabs(keep)), up, down;
            d[e] = keep + h;
            up = ref_loss(&r, &b.b);
            d[e] = keep - h;
            down = ref_loss(&r, &b.b);
            d[e] = keep;
            double num = (up - down) / (2 * h) * weight, diff = num - (double)p->g[e];
            err2 += diff * diff;
            ref2 += num * num;
        }
        if (!(sqrt(err2) <= 1e-4 * sqrt(ref2) + 1e-9))
            fail_msg("%s %s: gradient differs by %.3g of %.3g", s->arch, p->name, sqrt(err2), sqrt(ref2));
        moved += ref2 > 0;
    }
    assert_int_equal(moved, hn_grad_n_param(g)); /* every parameter moves the loss */
    ref_free(&r);
    hn_grad_free(g);
    hn_pool_free(pool);
    hone_model_close(m);
}

static const int three[3] = { 9, 1, 14 }, one_long[1] = { 150 };
static const shape llama = { "llama", 4, 2, 8, false, "F32", 24, 40 },
                   llama_tied = { "llama", 3, 1, 10, true, "F32", 24, 40 },
                   qwen2 = { "qwen2", 4, 4, 6, true, "F32", 24, 40 },
                   qwen3 = { "qwen3", 6, 2, 8, false, "F32", 24, 40 },
                   quantized = { "qwen2", 4, 2, 64, true, "Q4_K_M", 256, 256 };

static void adapters_llama(void **state) { check(&llama, false, 127, three, 3, 40); }
static void adapters_qwen2(void **state) { check(&qwen2, false, 127, three, 3, 40); }
static void adapters_qwen3(void **state) { check(&qwen3, false, 127, three, 3, 40); }
static void adapters_quantized(void **state) { check(&quantized, false, 127, three, 3, 6); }
static void full_llama(void **state) { check(&llama_tied, true, 0, three, 3, 40); }
static void full_qwen2(void **state) { check(&qwen2, true, 0, three, 3, 40); }
static void full_qwen3(void **state) { check(&qwen3, true, 0, three, 3, 40); }
static void several_blocks(void **state) { check(&llama, false, 127, one_long, 1, 4); }

/* ---- what changes nothing ------------------------------------------------------------------------------ */

static void grads_of(float **out, int64_t *n, hn_grad *g)
{
    *n = 0;
    for (int i = 0; i < hn_grad_n_param(g); i++) *n += hn_grad_param(g, i)->rows * hn_grad_param(g, i)->cols;
    *out = malloc((size_t)*n * sizeof(float));
    int64_t k = 0;
    for (int i = 0; i < hn_grad_n_param(g); i++) {
        hn_param *p = hn_grad_param(g, i);
        memcpy(*out + k, p->g, (size_t)(p->rows * p->cols) * sizeof(float));
        k += p->rows * p->cols;
    }
}

/* gradients of one run with these settings */
static float *run_with(const hone_model *m, int threads, hn_cpu_level level, hn_grad_params p, const hn_train_batch *b,
                       int64_t *n, double *loss)
{
    hn_pool *pool;
    assert_int_equal(hn_pool_new(&pool, threads, NULL), HONE_OK);
    p.kernels = hn_kernels_get(level);
    hn_grad *g = grad_make(m, pool, p);
    float *out;
    hn_grad_zero(g);
    for (int i = 0; i < 2; i++) assert_int_equal(hn_grad_run(g, b, 0.25, p.dropout > 0 ? 77 : 0, loss, NULL), HONE_OK);
    grads_of(&out, n, g);
    hn_grad_free(g);
    hn_pool_free(pool);
    return out;
}

static void same_bits(void **state)
{
    const shape shapes[] = { llama, qwen3, quantized };
    for (int i = 0; i < 3; i++)
        for (int bf16 = 0; bf16 < 2; bf16++)
            for (int full = 0; full < 2; full++) {
                hone_model *m = make(&shapes[i]);
                batch b;
                batch_make(&b, three, 3);
                hn_grad_params p = { .full = full,
                                     .targets = 127,
                                     .rank = 4,
                                     .scale = 2,
                                     .max_tok = 64,
                                     .dropout = full ? 0 : 0.1f,
                                     .seed = 3,
                                     .bf16 = bf16 };
                int64_t n, k;
                double loss, again;
                float *want = run_with(m, 1, hn_cpu_best(), p, &b.b, &n, &loss);
                for (int v = 0; v < 4; v++) {
                    hn_grad_params q = p;
                    q.checkpoint = v >= 2;
                    float *got =
                        run_with(m, v == 3 ? 1 : v + 2, v == 1 ? HN_CPU_SCALAR : hn_cpu_best(), q, &b.b, &k, &again);
                    assert_int_equal(n, k);
                    if (memcmp(want, got, (size_t)n * sizeof(float)) || loss != again)
                        fail_msg("%s bf16 %d full %d: variant %d has other bits", shapes[i].arch, bf16, full, v);
                    free(got);
                }
                free(want);
                hone_model_close(m);
            }
}

/* Packed documents have the gradients that each has alone. */
static void company(void **state)
{
    hone_model *m = make(&qwen2);
    batch b, one;
    batch_make(&b, three, 3);
    hn_grad_params p = { .targets = 127, .rank = 3, .scale = 1, .max_tok = 64, .seed = 3 };
    int64_t n;
    double loss, part, sum = 0;
    float *all = run_with(m, 2, hn_cpu_best(), p, &b.b, &n, &loss), *got;
    double *added = calloc((size_t)n, sizeof *added), diff = 0, norm = 0;
    for (int d = 0; d < 3; d++) {
        one = b;
        int s = b.doc[d], len = b.doc[d + 1] - s;
        one.b = (hn_train_batch){ len, 1, 0, b.ids + s, b.target + s, b.pos + s, one.doc };
        one.doc[1] = len;
        got = run_with(m, 2, hn_cpu_best(), p, &one.b, &n, &part);
        sum += part;
        for (int64_t i = 0; i < n; i++) added[i] += got[i];
        free(got);
    }
    for (int64_t i = 0; i < n; i++) {
        diff = fmax(diff, fabs(added[i] - all[i]));
        norm = fmax(norm, fabs(added[i]));
    }
    assert_true(fabs(sum - loss) <= 1e-9 * loss);
    assert_true(diff <= 1e-6 * norm);
    free(all), free(added);
    hone_model_close(m);
}

/* Products of bf16 operands: the gradient points the same way. */
static void bf16_near(void **state)
{
    hone_model *m = make(&quantized);
    batch b;
    batch_make(&b, one_long, 1);
    hn_grad_params p = { .targets = 127, .rank = 4, .scale = 1, .max_tok = 160, .seed = 3 };
    int64_t n;
    double la, lb, ab = 0, aa = 0, bb = 0;
    float *x = run_with(m, 2, hn_cpu_best(), p, &b.b, &n, &la);
    p.bf16 = true;
    float *y = run_with(m, 2, hn_cpu_best(), p, &b.b, &n, &lb);
    for (int64_t i = 0; i < n; i++) {
        ab += (double)x[i] * y[i];
        aa += (double)x[i] * x[i];
        bb += (double)y[i] * y[i];
    }
    assert_true(memcmp(x, y, (size_t)n * sizeof(float)) != 0);
    if (!(ab / sqrt(aa * bb) > 0.999 && fabs(sqrt(bb / aa) - 1) < 0.01 && fabs(lb / la - 1) < 1e-3))
        fail_msg("cosine %g, norms %g, losses %g %g", ab / sqrt(aa * bb), sqrt(bb / aa), la, lb);
    free(x), free(y);
    hone_model_close(m);
}

/* A adapter of B = 0 gives A no gradient and B one; a batch without targets none at all. */
static void zeros(void **state)
{
    hone_model *m = make(&llama);
    hn_pool *pool;
    hn_grad *g;
    batch b;
    double loss;
    assert_int_equal(hn_pool_new(&pool, 2, NULL), HONE_OK);
    hn_grad_params p = { .pool = pool,
                         .kernels = hn_kernels_get(hn_cpu_best()),
                         .targets = 127,
                         .rank = 3,
                         .scale = 1,
                         .max_tok = 64,
                         .seed = 3 };
    assert_int_equal(hn_grad_new(&g, m, &p, NULL), HONE_OK);
    batch_make(&b, three, 3);
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, NULL), HONE_OK);
    for (int i = 0; i < hn_grad_n_param(g); i++) {
        hn_param *q = hn_grad_param(g, i);
        bool some = false;
        for (int64_t k = 0; k < q->rows * q->cols; k++) some |= q->g[k] != 0;
        assert_int_equal(some, strstr(q->name, "lora_b") != NULL);
    }
    hn_grad_zero(g);
    for (int t = 0; t < b.b.n_tok; t++) b.target[t] = -1;
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, NULL), HONE_OK);
    assert_true(loss == 0);
    for (int i = 0; i < hn_grad_n_param(g); i++)
        for (int64_t k = 0; k < hn_grad_param(g, i)->rows * hn_grad_param(g, i)->cols; k++)
            assert_true(hn_grad_param(g, i)->g[k] == 0);
    hn_grad_free(g);
    hn_pool_free(pool);
    hone_model_close(m);
}

/* Bad batches and settings are named. */
static void refused(void **state)
{
    hone_model *m = make(&llama);
    hn_pool *pool;
    hn_grad *g;
    hone_error err;
    assert_int_equal(hn_pool_new(&pool, 1, NULL), HONE_OK);
    const hn_grad_params good = {
        .pool = pool, .kernels = hn_kernels_get(HN_CPU_SCALAR), .targets = 1, .rank = 3, .scale = 1, .max_tok = 16
    };
    hn_grad_params p = good;
    p.rank = 0;
    assert_int_equal(hn_grad_new(&g, m, &p, &err), HONE_E_ARG);
    p = good, p.targets = 0;
    assert_int_equal(hn_grad_new(&g, m, &p, &err), HONE_E_ARG);
    p = good, p.first_layer = LAYERS;
    assert_int_equal(hn_grad_new(&g, m, &p, &err), HONE_E_ARG);
    p = good, p.dropout = 1;
    assert_int_equal(hn_grad_new(&g, m, &p, &err), HONE_E_ARG);
    assert_int_equal(hn_grad_new(&g, m, &good, &err), HONE_OK);
    batch b;
    double loss;
    batch_make(&b, three, 3);
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, &err), HONE_E_ARG); /* 24 rows, 16 at most */
    batch_make(&b, three, 2);
    b.ids[3] = VOCAB;
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "37"));
    b.ids[3] = 0, b.target[2] = -2;
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, &err), HONE_E_ARG);
    b.target[2] = -1, b.doc[1] = 0;
    assert_int_equal(hn_grad_run(g, &b.b, 1, 0, &loss, &err), HONE_E_ARG);
    hn_grad_free(g);
    hn_pool_free(pool);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_llama), cmocka_unit_test(adapters_qwen2),
        cmocka_unit_test(adapters_qwen3), cmocka_unit_test(adapters_quantized),
        cmocka_unit_test(full_llama),     cmocka_unit_test(full_qwen2),
        cmocka_unit_test(full_qwen3),     cmocka_unit_test(several_blocks),
        cmocka_unit_test(same_bits),      cmocka_unit_test(company),
        cmocka_unit_test(bf16_near),      cmocka_unit_test(zeros),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
