/* embed: texts as vectors: their rows, pooled, and what a model has behind that. Owns the sums, which are in double, in
 * the order of positions and columns; refuses to know attention and layers. */
#include "engine/engine.h"
#include "base/floats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

_Static_assert((int)HONE_POOL_NONE == HN_POOL_NONE + 1 && (int)HONE_POOL_MEAN == HN_POOL_MEAN + 1 &&
                   (int)HONE_POOL_CLS == HN_POOL_FIRST + 1 && (int)HONE_POOL_LAST == HN_POOL_LAST + 1 &&
                   (int)HONE_POOL_RANK == HN_POOL_RANK + 1 && (int)HONE_POOL_FILE == HN_POOL_UNSAID + 1,
               "one behind the file's numbers");

enum {
    AT_ONCE = 16, /* vectors that share what is decoded of a weight */
    OUTPUTS = 8   /* rows of a weight that one thread takes */
};

typedef struct job {
    hone_session *s;
    const hone_model *m;
    const hone_text_ids *texts;
    int32_t n_text;
    hn_pooling pooling;
    const hone_embed_params *p;
    int32_t width;
    hn_weight judge[2];        /* of scores without a classifier: rows of the head … */
    int32_t word[2];           /* … for these tokens */
    float *out;                /* where the next vector goes */
    float *hidden;             /* [n_chunk, n_embd] */
    double *sum;               /* [n_embd] of the text that is pooled now */
    float *rows;               /* [threads, OUTPUTS, n_most] of a weight */
    double *x, *y;             /* [AT_ONCE, n_most] vectors and what becomes of them */
    int64_t n_most;            /* columns of the widest */
    int32_t n_pooled;          /* vectors in x */
    int32_t it, ip;            /* the next token to be run: of which text, at which position */
    int32_t seq;               /* where that text is, if it has begun */
    uint64_t adapters;         /* of the sequences that texts may be in */
    const hn_adapter_set *set; /* the same; NULL: none */
    int32_t done, at;          /* likewise of the next row to be pooled */
} job;

/* ---- what is asked for -------------------------------------------------------------------------------- */

/* Columns of a pooled vector. */
static int32_t pooled_width(const hone_model *m)
{
    if (hn_weight_is_there(&m->dense[1])) return m->hp.n_dense[1];
    return hn_weight_is_there(&m->dense[0]) ? m->hp.n_dense[0] : m->hp.n_embd;
}

/* Is the layer behind rows of each row, pooled or not (ColBERT)? */
static bool dense_of_rows(const hone_model *m) { return m->arch->bit == HN_LFM2; }

enum { YES_NO = 2 };

static hn_pooling pooling_of(const hone_model *m, hone_pooling p)
{
    return p == HONE_POOL_FILE ? (hn_pooling)m->hp.pooling : (hn_pooling)((int)p - 1);
}

static int32_t width_of(const hone_model *m, hn_pooling p)
{
    switch (p) {
    case HN_POOL_NONE: return dense_of_rows(m) ? pooled_width(m) : m->hp.n_embd;
    case HN_POOL_RANK: return hn_weight_is_there(&m->cls_out) ? m->hp.n_class : m->hp.both ? 0 : YES_NO;
    case HN_POOL_MEAN:
    case HN_POOL_FIRST:
    case HN_POOL_LAST: return pooled_width(m);
    default: return 0;
    }
}

int32_t hone_embed_width(const hone_model *m, hone_pooling pooling, hone_pooling *which)
{
    if (which) *which = HONE_POOL_FILE;
    if (!m || !m->arch || (int)pooling < HONE_POOL_FILE || (int)pooling > HONE_POOL_RANK) return 0;
    hn_pooling p = pooling_of(m, pooling);
    if (which) *which = (hone_pooling)((int)p + 1);
    return width_of(m, p);
}

/* Rows of the head for "yes" and "no". */
static hone_status judge_rows(job *j, hone_error *err)
{
    static const char *const words[YES_NO] = { "yes", "no" };
    const hone_model *m = j->m;
    const hn_vocab *v;
    hone_status st = hn_model_vocab(m, &v, err);
    for (int i = 0; st == HONE_OK && i < YES_NO; i++) {
        hn_ids ids = { 0 };
        st = hn_vocab_encode(v, words[i], strlen(words[i]), 0, &ids, err);
        if (st == HONE_OK && (ids.n != 1 || ids.data[0] >= m->hp.n_vocab))
            st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: \"%s\" is no token of its own, and there is no classifier",
                         m->path, words[i]);
        if (st == HONE_OK) {
            j->judge[i] = m->output;
            j->judge[i].n_out = 1;
            j->word[i] = ids.data[0];
            j->judge[i].data = (const char *)m->output.data + (size_t)ids.data[0] * m->output.row_bytes;
            if (m->output.bias) j->judge[i].bias = m->output.bias + ids.data[0];
        }
        free(ids.data);
    }
    return st;
}

static hone_status check_pooling(job *j, hone_pooling asked, hone_error *err)
{
    const hone_model *m = j->m;
    const char *path = HN_ESC(m->path, strlen(m->path));
    if ((int)asked < HONE_POOL_FILE || (int)asked > HONE_POOL_RANK)
        return HN_FAIL(err, HONE_E_ARG, "pooling %d, expected one of HONE_POOL_…", (int)asked);
    j->pooling = pooling_of(m, asked);
    if (j->pooling == HN_POOL_UNSAID)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: the file does not say how embeddings are pooled (%s.pooling_type); expected a pooling: "
                       "mean, cls, last, none or rank",
                       path, m->arch->name);
    if (!(j->width = width_of(m, j->pooling)))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tensor cls.output.weight is missing: there is nothing to rank with", path);
    if (j->pooling != HN_POOL_RANK) return HONE_OK;
    return hn_weight_is_there(&m->cls_out) ? HONE_OK : judge_rows(j, err);
}

static hone_status check_texts(const job *j, hone_error *err)
{
    const hone_session *s = j->s;
    for (int32_t i = 0; i < j->n_text; i++) {
        const hone_text_ids *t = &j->texts[i];
        if (t->n < 1) return HN_FAIL(err, HONE_E_ARG, "text %d has %d tokens, expected at least 1", i, t->n);
        if (!t->ids)
            return HN_FAIL(err, HONE_E_ARG, "hone_embed: texts->ids is NULL; expected a pointer to ids of text %d", i);
        if (t->n > s->n_ctx)
            return HN_FAIL(err, HONE_E_CTX, "text %d: %d tokens do not fit a context of %d positions", i, t->n,
                           s->n_ctx);
        if (j->m->hp.both && t->n > s->n_chunk)
            return HN_FAIL(err, HONE_E_CTX,
                           "text %d has %d tokens, expected at most %d: %s reads a text at once, and the session runs "
                           "%d tokens at a time; use a larger chunk (--chunk)",
                           i, t->n, s->n_chunk, j->m->arch->name, s->n_chunk);
        for (int32_t k = 0; k < t->n; k++)
            if (t->ids[k] < 0 || t->ids[k] >= j->m->hp.n_vocab)
                return HN_FAIL(err, HONE_E_ARG, "token %d of text %d has id %d, expected 0 to %d", k, i, t->ids[k],
                               j->m->hp.n_vocab - 1);
    }
    return HONE_OK;
}

/* ---- behind pooling ------------------------------------------------------------------------------------ */

typedef struct product {
    const job *j;
    const hn_weight *w;
    double *y;
} product;

/* Some outputs of all vectors: sums in the order of columns, side by side, as each waits for its last addition. */
static void multiply_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const product *p = arg;
    const job *j = p->j;
    const hn_weight *w = p->w;
    const hn_type_info *ti = hn_type_get(w->type);
    float *row[OUTPUTS];
    const int64_t first = chunk * OUTPUTS, n = w->n_out - first < OUTPUTS ? w->n_out - first : OUTPUTS;
    for (int64_t o = 0; o < OUTPUTS; o++) { /* beyond the last: the first, for nobody */
        row[o] = j->rows + ((int64_t)thread * OUTPUTS + (o < n ? o : 0)) * j->n_most;
        if (o < n) ti->dequantize(row[o], (const char *)w->data + (size_t)(first + o) * w->row_bytes, w->n_in);
    }
    for (int32_t t = 0; t < j->n_pooled; t++) {
        const double *x = j->x + t * j->n_most;
        double sum[OUTPUTS] = { 0 };
        for (int64_t i = 0; i < w->n_in; i++)
            for (int o = 0; o < OUTPUTS; o++) sum[o] += (double)row[o][i] * x[i];
        for (int64_t o = 0; o < n; o++) {
            if (w->factor) sum[o] *= (double)*w->factor;
            p->y[t * j->n_most + first + o] = w->bias ? sum[o] + (double)w->bias[first + o] : sum[o];
        }
    }
}

/* y = W·x + b of each vector, from a column of y on. */
static void multiply(job *j, const hn_weight *w, int64_t column)
{
    product p = { .j = j, .w = w, .y = j->y + column };
    hn_pool_run(j->s->ctx->pool, multiply_chunk, &p, (w->n_out + OUTPUTS - 1) / OUTPUTS);
}

static void swap(job *j)
{
    double *x = j->x;
    j->x = j->y;
    j->y = x;
}

/* Shares of 1. */
static void softmax(double *x, int32_t n)
{
    double most = x[0], sum = 0;
    for (int32_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int32_t i = 0; i < n; i++) sum += x[i] = (double)hn_exp_inline((float)(x[i] - most));
    for (int32_t i = 0; i < n; i++) x[i] /= sum;
}

/* As the head's: scaled, then capped. */
static void as_logit(const hn_hparams *hp, double *x)
{
    if (hp->logit_mul != 0) *x *= hp->logit_mul;
    if (hp->logit_cap != 0) *x = hp->logit_cap * (double)hn_tanh_inline((float)(*x / hp->logit_cap));
}

/* What adapters add to a row of the head's product: of each scale·B·(A·x). */
static double of_adapters(const job *j, int32_t row, const double *x)
{
    const hn_delta_list *l = &j->set->of.of[j->m->output.id];
    double sum = 0;
    for (int32_t d = 0; d < l->n; d++) {
        const hn_delta *e = &l->delta[d];
        for (int64_t r = 0; r < e->rank; r++) {
            double h = 0;
            for (int64_t i = 0; i < j->m->output.n_in; i++) h += (double)e->a[r * j->m->output.n_in + i] * x[i];
            sum += (double)e->scale * (double)e->b[r * e->ldb + row] * h;
        }
    }
    return sum;
}

/* LayerNorm without a bias. */
static void norm(double *x, const float *w, int32_t n, double eps)
{
    double mean = 0, square = 0;
    for (int32_t i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int32_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / sqrt(square / n + eps);
    for (int32_t i = 0; i < n; i++) x[i] = (x[i] - mean) * scale * (double)w[i];
}

/* What a classifier takes: act(cls·x), normed where the file has a norm. */
static void judged(job *j)
{
    const hone_model *m = j->m;
    const bool gelu = m->arch->bit == HN_MODERN_BERT;
    multiply(j, &m->cls, 0);
    swap(j);
    for (int32_t t = 0; t < j->n_pooled; t++) {
        double *const row = j->x + t * j->n_most;
        for (double *x = row; x < row + m->hp.n_embd; x++)
            *x = (double)(gelu ? hn_gelu_erf_inline((float)*x) : hn_tanh_inline((float)*x));
        if (m->cls_norm) norm(row, m->cls_norm, m->hp.n_embd, (double)m->hp.ln_eps);
    }
}

static void rank(job *j)
{
    const hone_model *m = j->m;
    if (hn_weight_is_there(&m->cls)) judged(j);
    if (hn_weight_is_there(&m->cls_out)) multiply(j, &m->cls_out, 0);
    else
        for (int i = 0; i < YES_NO; i++) {
            multiply(j, &j->judge[i], i);
            for (int32_t t = 0; t < j->n_pooled; t++) {
                double *y = j->y + t * j->n_most + i;
                if (j->set) *y += of_adapters(j, j->word[i], j->x + t * j->n_most);
                as_logit(&m->hp, y);
            }
        }
    swap(j);
    for (int32_t t = 0; t < j->n_pooled && !m->hp.both && j->width > 1; t++) softmax(j->x + t * j->n_most, j->width);
}

/* x through the file's own layers. */
static void through_dense(job *j)
{
    for (int i = 0; i < 2; i++) {
        if (!hn_weight_is_there(&j->m->dense[i])) continue;
        multiply(j, &j->m->dense[i], 0);
        swap(j);
    }
}

/* x of length 1. */
static void normalize(double *x, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i] * x[i];
    const double root = sqrt(sum);
    for (int32_t i = 0; i < n && root > 0; i++) x[i] /= root;
}

/* The rows x, pooled ones or those of a text, become vectors. */
static void finish(job *j)
{
    if (j->pooling == HN_POOL_RANK) rank(j);
    else through_dense(j);
    for (int32_t t = 0; t < j->n_pooled; t++) {
        double *x = j->x + t * j->n_most;
        if (j->pooling != HN_POOL_RANK && j->pooling != HN_POOL_NONE && !j->p->plain) normalize(x, j->width);
        for (int32_t i = 0; i < j->width; i++) *j->out++ = (float)x[i];
    }
    j->n_pooled = 0;
}

/* A row that is not pooled. */
static void give_row(job *j, const float *h)
{
    const int32_t n_embd = j->m->hp.n_embd;
    if (!dense_of_rows(j->m)) {
        memcpy(j->out, h, (size_t)n_embd * sizeof *h);
        j->out += n_embd;
        return;
    }
    double *x = j->x + j->n_pooled * j->n_most;
    for (int32_t k = 0; k < n_embd; k++) x[k] = (double)h[k];
    if (++j->n_pooled == AT_ONCE) finish(j);
}

/* ---- texts in steps ------------------------------------------------------------------------------------- */

/* Is that row of a text of n one that pooling looks at? */
static bool is_wanted(const job *j, int32_t pos, int32_t n)
{
    switch (j->pooling) {
    case HN_POOL_FIRST: return pos == 0;
    case HN_POOL_LAST: return pos == n - 1;
    case HN_POOL_RANK: return j->m->hp.rank_mean || pos == (j->m->hp.both ? 0 : n - 1);
    default: return true;
    }
}

/* An empty sequence from `from` on, of the first one's adapters: a vector does not depend on which it is. n_seq: there
 * is none. */
static int32_t empty_seq(const job *j, int32_t from)
{
    const hone_session *s = j->s;
    while (from < s->n_seq && (s->mem->length[from] > 0 || hn_seq_set_hash(s, from) != j->adapters)) from++;
    return from;
}

/* A step of the next tokens, at most so many and of so many texts: whole texts while there are sequences for them, and
 * of a causal model's text what fits; of others' one at least. Its rows. */
static int32_t fill(job *j, int32_t most, int32_t most_texts)
{
    hone_session *s = j->s;
    int32_t n = 0, next = 0, last = most_texts < j->n_text - j->it ? j->it + most_texts : j->n_text;
    while (n < most && j->it < last) {
        const hone_text_ids *t = &j->texts[j->it];
        int32_t k = t->n - j->ip < most - n ? t->n - j->ip : most - n;
        if (j->m->hp.both && k < t->n && n) break;
        if (j->m->hp.both) k = t->n;
        if (j->ip == 0) {
            if ((next = empty_seq(j, next)) >= s->n_seq) break;
            j->seq = next++;
        }
        for (int32_t i = j->ip; i < j->ip + k; i++)
            s->prompt[n++] = (hone_token){ t->ids[i], i, j->seq, is_wanted(j, i, t->n) };
        j->ip += k;
        if (j->ip < t->n) break;
        j->ip = 0;
        j->it++;
    }
    return n;
}

static hone_status fail_row(const job *j, hone_error *err)
{
    char why[HN_BLAME];
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: what token %d of text %d becomes is not finite: %s",
                   HN_ESC(j->m->path, strlen(j->m->path)), j->at, j->done, hn_blame(why, j->m, j->set, ""));
}

/* The rows of a step. */
static hone_status pool(job *j, int32_t n, hone_error *err)
{
    const int32_t n_embd = j->m->hp.n_embd;
    const float *h = j->hidden;
    for (int32_t i = 0; i < n; i++) {
        const hone_text_ids *t = &j->texts[j->done];
        if (j->at == 0) memset(j->sum, 0, (size_t)n_embd * sizeof *j->sum);
        if (j->s->prompt[i].want_logits) {
            if (!hn_all_within(h, n_embd, FLT_MAX)) return fail_row(j, err);
            if (j->pooling == HN_POOL_NONE) give_row(j, h);
            else
                for (int32_t k = 0; k < n_embd; k++) j->sum[k] += (double)h[k];
            h += n_embd;
        }
        if (++j->at < t->n) continue;
        const bool mean = j->pooling == HN_POOL_MEAN || (j->pooling == HN_POOL_RANK && j->m->hp.rank_mean);
        for (int32_t k = 0; mean && k < n_embd; k++) j->sum[k] /= t->n;
        memcpy(j->x + j->n_pooled * j->n_most, j->sum, (size_t)n_embd * sizeof *j->sum);
        if (j->pooling != HN_POOL_NONE && ++j->n_pooled == AT_ONCE) finish(j);
        j->at = 0;
        j->done++;
    }
    if (j->n_pooled) finish(j);
    return HONE_OK;
}

/* How many rows the next step may have. */
static int32_t most_rows(const job *j, int32_t n_last)
{
    int32_t most = j->p->rows ? j->p->rows(j->p->rows_arg, n_last) : j->s->n_chunk;
    return most < 1 ? 1 : most < j->s->n_chunk ? most : j->s->n_chunk;
}

/* Empties the sequences of a step, but for that of a text that goes on. */
static void leave(job *j, int32_t n, bool all)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t seq = j->s->prompt[i].seq;
        if ((all || j->ip == 0 || seq != j->seq) && j->s->mem->length[seq] > 0) hone_seq_truncate(j->s, seq, 0, NULL);
    }
}

/* A step of *n rows, at most so many. Where memory is short it is taken again, of fewer texts, then of fewer rows of
 * the first: what fits alone does not fail for its neighbours, and vectors do not depend on them. */
static hone_status run_step(job *j, int32_t most, int32_t *n, hone_error *err)
{
    const int32_t it = j->it, ip = j->ip, seq = j->seq;
    int32_t most_texts = j->n_text;
    for (;;) {
        *n = fill(j, most, most_texts);
        hone_status st = hn_session_hidden(j->s, *n, j->hidden, err);
        int32_t n_text = j->it - it + (j->ip > 0);
        if (st != HONE_E_NOMEM) return st;
        if (n_text > 1) most_texts = n_text / 2;
        else if (!j->m->hp.both && *n > HN_PAGE) most = *n / 2 > HN_PAGE ? *n / 2 : HN_PAGE;
        else return st;
        j->it = it;
        j->ip = ip;
        j->seq = seq;
    }
}

static hone_status run_texts(job *j, hone_error *err)
{
    const hone_session *s = j->s;
    hone_status st = HONE_OK;
    int32_t first = 0, n = 0;
    while (first < s->n_seq && s->mem->length[first] > 0) first++;
    if (j->n_text && first >= s->n_seq)
        return HN_FAIL(err, HONE_E_ARG, "all %d sequences hold something, expected an empty one for texts (n_seq)",
                       s->n_seq);
    if (j->n_text) {
        j->adapters = hn_seq_set_hash(s, first);
        j->set = s->set[first];
    }
    while (st == HONE_OK && j->it < j->n_text) {
        if ((st = run_step(j, most_rows(j, n), &n, err)) == HONE_OK) st = pool(j, n, err);
        leave(j, n, st != HONE_OK);
    }
    return st;
}

/* ---- the call ------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Columns of the widest vector on the way. */
static int64_t widest(const job *j)
{
    int64_t n = larger(j->m->hp.n_embd, j->width);
    for (int i = 0; i < 2; i++) n = larger(n, j->m->dense[i].n_out);
    return n;
}

enum { MOST_TEXTS = 1 << 20 };

hone_status hone_embed(hone_session *s, const hone_text_ids *texts, int32_t n_text, const hone_embed_params *p,
                       float *out, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, s, "a session");
    if (n_text > 0) HN_NEED(err, texts, "a pointer to n_text texts");
    HN_NEED(err, p, "parameters");
    if (n_text > 0) HN_NEED(err, out, "room for the vectors");
    if (n_text < 0 || n_text > MOST_TEXTS) /* before a text is looked at: no array is longer */
        return HN_FAIL(err, HONE_E_ARG, "%d texts, expected 0 to %d", n_text, (int)MOST_TEXTS);
    job j = { .s = s, .m = s->model, .texts = texts, .n_text = n_text, .out = out, .p = p };
    hone_status st = check_pooling(&j, p->pooling, err);
    if (st != HONE_OK || (st = check_texts(&j, err)) != HONE_OK) return st;
    const size_t n = (size_t)(j.n_most = widest(&j)), n_embd = (size_t)j.m->hp.n_embd;
    double *x = j.x = malloc((2 * AT_ONCE * n + n_embd) * sizeof *j.x);
    j.rows = malloc((size_t)hn_pool_threads(s->ctx->pool) * OUTPUTS * n * sizeof *j.rows);
    j.hidden = malloc((size_t)s->n_chunk * n_embd * sizeof *j.hidden);
    if (x) j.y = x + AT_ONCE * n, j.sum = j.y + AT_ONCE * n;
    st = x && j.rows && j.hidden ? run_texts(&j, err)
                                 : HN_FAIL(err, HONE_E_NOMEM, "embedding: rows of %d tokens", s->n_chunk);
    free(x);
    free(j.rows);
    free(j.hidden);
    return st;
}
