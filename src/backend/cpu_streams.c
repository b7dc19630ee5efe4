/* Several residual streams of the CPU backend (AltUp), a wide one, and the gate that keeps its largest values alone:
 * rows by themselves, whose sums are those of kernels.h. Refuses to know layers. */
#include "backend/cpu.h"

#include <math.h>

enum { PIECE = 256 };

typedef struct stream_job {
    cpu_backend *c;
    const hn_streams *s;
    float *y, *up;
    const float *x;
    hn_act *out;
    hn_glu kind;
    int64_t n;
    float cut;
} stream_job;

/* The mean of (x − middle)² over a row. */
static float mean_square(const float *x, int64_t n, float middle)
{
    float square[PIECE], sum = 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t m = n - at < PIECE ? n - at : PIECE;
        for (int64_t i = 0; i < m; i++) square[i] = (x[at + i] - middle) * (x[at + i] - middle);
        sum += cpu_sum(square, m);
    }
    return sum / (float)n;
}

/* ---- as loud as another ------------------------------------------------------------------------------------- */

static void loud_row(void *arg, int64_t t, int32_t thread)
{
    const stream_job *j = arg;
    const float least = 1e-5f;
    float *y = j->y + t * j->n, is = mean_square(y, j->n, 0), wanted = sqrtf(mean_square(j->x + t * j->n, j->n, 0));
    float f = wanted / sqrtf(is > least ? is : least);
    for (int64_t i = 0; i < j->n; i++) y[i] *= f;
}

void cpu_loud(hn_backend *b, hn_buf *y, const hn_buf *x, int64_t n, int64_t n_tok)
{
    stream_job j = { .c = cpu_self(b), .y = y->p, .x = x->p, .n = n };
    cpu_wrote(j.c, y);
    cpu_for_rows(j.c, loud_row, &j, n_tok, 2 * n);
}

/* ---- prediction and correction --------------------------------------------------------------------------------- */

static void predict_row(void *arg, int64_t t, int32_t thread)
{
    const stream_job *j = arg;
    const hn_streams *s = j->s;
    const float *coef = s->coef->p + t * s->n * s->n;
    int64_t at = t * s->n_embd;
    for (int32_t m = 0; m < s->n; m++) {
        float *y = s->y[m]->p + at;
        memcpy(y, s->s[m]->p + at, (size_t)s->n_embd * sizeof *y);
        for (int32_t k = 0; k < s->n; k++) j->c->k->low_rank(y, s->s[k]->p + at, 0, coef + m * s->n + k, 1, s->n_embd);
    }
}

void cpu_predict(hn_backend *b, const hn_streams *s)
{
    stream_job j = { .c = cpu_self(b), .s = s };
    for (int32_t m = 0; m < s->n; m++) cpu_wrote(j.c, s->y[m]);
    cpu_for_rows(j.c, predict_row, &j, s->n_tok, s->n * s->n * s->n_embd);
}

static void correct_row(void *arg, int64_t t, int32_t thread)
{
    const stream_job *j = arg;
    const hn_streams *s = j->s;
    const float *coef = s->coef->p + t * s->n;
    float news[PIECE];
    for (int64_t k = 0; k < s->n_embd; k += PIECE) {
        int64_t at = t * s->n_embd + k, n = s->n_embd - k < PIECE ? s->n_embd - k : PIECE;
        for (int64_t i = 0; i < n; i++) news[i] = s->x->p[at + i] - s->s[s->active]->p[at + i];
        for (int32_t m = 0; m < s->n; m++) {
            const float c = 1.0f + coef[m];
            j->c->k->low_rank(s->s[m]->p + at, news, 0, &c, 1, n);
        }
    }
}

void cpu_correct(hn_backend *b, const hn_streams *s)
{
    stream_job j = { .c = cpu_self(b), .s = s };
    for (int32_t m = 0; m < s->n; m++) cpu_wrote(j.c, s->s[m]);
    cpu_for_rows(j.c, correct_row, &j, s->n_tok, s->n * s->n_embd);
}

/* ---- the gate's largest values ---------------------------------------------------------------------------------- */

static void sparse_row(void *arg, int64_t t, int32_t thread)
{
    const stream_job *j = arg;
    float *g = j->y + t * j->n, mean = cpu_sum(g, j->n) / (float)j->n;
    float least = mean + sqrtf(mean_square(g, j->n, mean)) * j->cut;
    for (int64_t i = 0; i < j->n; i++) g[i] = g[i] <= least ? 0 : g[i] - least;
    cpu_glu_row(j->c, j->kind, j->out->f32 + (size_t)t * hn_f32_stride(j->n), g, j->up + t * j->n, j->n, 0);
}

void cpu_sparse_glu(hn_backend *b, hn_act *out, hn_glu kind, hn_buf *gate, const hn_buf *up, int64_t n, int64_t n_tok,
                    float cut)
{
    stream_job j = { .c = cpu_self(b), .y = gate->p, .up = up->p, .out = out, .kind = kind, .n = n, .cut = cut };
    cpu_wrote(j.c, gate);
    cpu_act_begin(j.c, out, n, n_tok);
    cpu_for_rows(j.c, sparse_row, &j, n_tok, 2 * n);
}

/* ---- a wide stream ----------------------------------------------------------------------------------------- */

typedef struct wide_job {
    cpu_backend *c;
    const hn_wide *w;
    const hn_agree *a;
} wide_job;

static void inject_row(void *arg, int64_t t, int32_t thread)
{
    const wide_job *j = arg;
    const hn_wide *w = j->w;
    const float *x = w->x->p + t * w->n_embd;
    float *wide = w->wide->p + t * w->n * w->n_embd;
    for (int32_t i = 0; i < w->n; i++, wide += w->n_embd) {
        if (w->coef) j->c->k->low_rank(wide, x, 0, w->coef->p + t * w->n + i, 1, w->n_embd);
        else memcpy(wide, x, (size_t)w->n_embd * sizeof *x);
    }
}

void cpu_inject(hn_backend *b, const hn_wide *w)
{
    wide_job j = { .c = cpu_self(b), .w = w };
    cpu_wrote(j.c, w->wide);
    cpu_for_rows(j.c, inject_row, &j, w->n_tok, w->n * w->n_embd);
}

static void fold_row(void *arg, int64_t t, int32_t thread)
{
    const wide_job *j = arg;
    const hn_wide *w = j->w;
    const float *wide = w->wide->p + t * w->n * w->n_embd;
    float *x = w->x->p + t * w->n_embd;
    memcpy(x, wide, (size_t)w->n_embd * sizeof *x);
    for (int32_t i = 1; i < w->n; i++) hn_add(x, wide + i * w->n_embd, w->n_embd);
}

void cpu_fold(hn_backend *b, const hn_wide *w)
{
    wide_job j = { .c = cpu_self(b), .w = w };
    cpu_wrote(j.c, w->x);
    cpu_for_rows(j.c, fold_row, &j, w->n_tok, w->n * w->n_embd);
}

/* The sum of products that are rounded. */
static float dot(const float *x, const float *y, int64_t n)
{
    float product[PIECE], sum = 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t m = n - at < PIECE ? n - at : PIECE;
        for (int64_t i = 0; i < m; i++) product[i] = x[at + i] * y[at + i];
        sum += cpu_sum(product, m);
    }
    return sum;
}

static void agree_row(void *arg, int64_t t, int32_t thread)
{
    const wide_job *j = arg;
    const hn_agree *a = j->a;
    const float *x = a->x->p + t * a->n_embd, least = 1e-6f;
    const float root = sqrtf((float)a->n_embd);
    for (int32_t i = 0; i < a->n; i++) {
        const int64_t at = (t * a->n + i) * a->n_embd;
        float s = dot(a->k->p + at, a->q->p + at, a->n_embd) / root, size = fabsf(s) > least ? fabsf(s) : least;
        float gate = s > 0 ? sqrtf(size) : s < 0 ? -sqrtf(size) : s; /* what is no number stays so */
        j->c->k->map[HN_MAP_SIGMOID](&gate, 1);
        for (int64_t e = 0; e < a->n_embd; e++) a->y->p[at + e] = x[e] * gate;
    }
}

void cpu_agree(hn_backend *b, const hn_agree *a)
{
    wide_job j = { .c = cpu_self(b), .a = a };
    cpu_wrote(j.c, a->y);
    cpu_for_rows(j.c, agree_row, &j, a->n_tok, 2 * a->n * a->n_embd);
}
