/* Windows over a text, teacher forcing, perplexity. Owns the convention (llama.cpp's, so that
 * figures compare) and the arithmetic of scores; refuses to know where logits come from. */
#include "lab/quality/perplexity.h"
#include "lab/quality/quality.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

/* ---- windows --------------------------------------------------------------------------------- */

hone_status hn_windows_make(hn_windows *out, const int32_t *ids, int64_t n_ids, int32_t n_ctx, int32_t stride,
                            int32_t bos, int64_t most, hone_error *err)
{
    *out = (hn_windows){
        .n_ctx = n_ctx, .stride = stride ? stride : n_ctx, .first = stride ? n_ctx - stride - 1 : n_ctx / 2, .bos = bos
    };
    if (n_ctx < 4) return HN_FAIL(err, HONE_E_ARG, "windows of %d tokens; expected at least 4", n_ctx);
    if (stride < 0 || stride >= n_ctx)
        return HN_FAIL(err, HONE_E_ARG, "windows of %d tokens every %d tokens; expected every 1 to %d", n_ctx, stride,
                       n_ctx - 1);
    int64_t need = stride ? (int64_t)n_ctx + 1 : 2 * (int64_t)n_ctx;
    if (n_ids < need)
        return HN_FAIL(err, HONE_E_ARG, "the text has %lld tokens, and windows of %d need at least %lld%s",
                       (long long)n_ids, n_ctx, (long long)need,
                       n_ids >= 8 && !stride ? "; a longer text or smaller windows would do" : "");
    /* with a stride, llama.cpp's count: the last window may leave up to `stride` tokens unscored */
    out->n_possible = stride ? (n_ids - n_ctx + stride - 1) / stride : n_ids / n_ctx;
    out->n_window = most > 0 && most < out->n_possible ? most : out->n_possible;
    out->n_ids = n_ids;
    out->ids = malloc((size_t)n_ids * sizeof *ids);
    if (!out->ids) return HN_FAIL(err, HONE_E_NOMEM, "%lld token ids", (long long)n_ids);
    memcpy(out->ids, ids, (size_t)n_ids * sizeof *ids);
    return HONE_OK;
}

void hn_windows_free(hn_windows *w)
{
    free(w->ids);
    *w = (hn_windows){ 0 };
}

hone_status hn_ppl_tokenize(const hone_model *m, const char *text, size_t len, int32_t **ids, int64_t *n, int32_t *bos,
                            hone_error *err)
{
    int32_t *added, *all;
    size_t n_added, n_all;
    *ids = NULL;
    hone_status st = hone_tokenize(m, "", 0, HONE_TOK_ADD, &added, &n_added, err);
    if (st != HONE_OK) return st;
    *bos = n_added && added[0] == hone_token_bos(m) ? added[0] : -1;
    size_t behind = n_added - (*bos >= 0);
    hone_free(added);
    st = hone_tokenize(m, text, len, HONE_TOK_ADD, &all, &n_all, err);
    if (st != HONE_OK) return st;
    *n = (int64_t)(n_all > behind ? n_all - behind : 0);
    *ids = malloc((size_t)*n * sizeof **ids + 1);
    if (*ids) memcpy(*ids, all, (size_t)*n * sizeof **ids);
    else st = HN_FAIL(err, HONE_E_NOMEM, "%lld token ids", (long long)*n);
    hone_free(all);
    return st;
}

/* ---- pieces ------------------------------------------------------------------------------------- */

hone_status hn_pieces_begin(hn_pieces *p, const hn_windows *w, int32_t n_vocab, int32_t n_batch, hone_error *err)
{
    enum { BUFFER_BYTES = 128 << 20 };
    int64_t n_seq = n_batch / w->n_ctx, rows = BUFFER_BYTES / ((int64_t)n_vocab * (int64_t)sizeof(float));
    if (n_seq > w->n_window) n_seq = w->n_window;
    if (n_seq < 1) n_seq = 1;
    int64_t group = n_seq * hn_windows_scored(w);
    *p = (hn_pieces){ .w = w, .n_seq = (int32_t)n_seq, .max_rows = rows < 1 ? 1 : rows < group ? rows : group };
    for (int64_t i = 0; i < w->n_ids; i++)
        if (w->ids[i] < 0 || w->ids[i] >= n_vocab)
            return HN_FAIL(err, HONE_E_ARG,
                           "token id %d (number %lld of the text) is not in the vocabulary; expected 0 to %d",
                           w->ids[i], (long long)i, n_vocab - 1);
    p->tokens = malloc((size_t)n_seq * (size_t)w->n_ctx * sizeof *p->tokens);
    return p->tokens ? HONE_OK
                     : HN_FAIL(err, HONE_E_NOMEM, "%lld tokens of %d windows", (long long)n_seq * w->n_ctx, (int)n_seq);
}

bool hn_pieces_next(hn_pieces *p)
{
    const hn_windows *w = p->w;
    int64_t run = w->n_ctx - 1, end = w->n_window * run, group_end = (p->token / (run * p->n_seq) + 1) * run * p->n_seq;
    if (end > group_end) end = group_end;
    p->n_tok = 0;
    p->first_row = p->row;
    for (; p->token < end; p->token++) {
        int64_t window = p->token / run;
        int32_t place = (int32_t)(p->token % run);
        bool scored = place >= w->first;
        if (scored && p->row - p->first_row == p->max_rows) break;
        p->row += scored;
        p->tokens[p->n_tok++] =
            (hone_token){ .id = place == 0 && w->bos >= 0 ? w->bos : w->ids[window * w->stride + place],
                          .pos = place,
                          .seq = (int32_t)(window % p->n_seq),
                          .want_logits = scored };
    }
    p->n_rows = p->row - p->first_row;
    return p->n_tok > 0;
}

void hn_pieces_end(hn_pieces *p)
{
    free(p->tokens);
    *p = (hn_pieces){ 0 };
}

hone_status hn_forced_run(void *session, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    for (int32_t i = 0; i < n_tok; i++)
        if (tokens[i].pos == 0 && hone_seq_length(session, tokens[i].seq) > 0) {
            hone_status st = hone_seq_truncate(session, tokens[i].seq, 0, err);
            if (st != HONE_OK) return st;
        }
    return hone_run_batch(session, tokens, n_tok, logits, err);
}

/* ---- scores ----------------------------------------------------------------------------------------- */

double hn_log_sum_exp(const float *x, int32_t n)
{
    hn_logit_scan s = hn_scan_logits(x, n);
    if (!s.finite) return NAN;
    double sum = 0, top = x[s.best];
    for (int32_t i = 0; i < n; i++) sum += exp(x[i] - top);
    return top + log(sum);
}

hn_mean hn_mean_of(const double *x, int64_t n)
{
    hn_mean m = { .n = n, .mean = NAN, .error = NAN };
    if (n < 1) return m;
    double sum = 0, sq = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    m.mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) sq += (x[i] - m.mean) * (x[i] - m.mean);
    if (n > 1) m.error = sqrt(sq / (double)n / (double)(n - 1));
    return m;
}

double hn_quantile(const double *sorted, int64_t n, double q)
{
    if (n < 1) return NAN;
    double at = q * (double)(n - 1);
    int64_t i = (int64_t)at;
    if (i >= n - 1) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* ---- perplexity ----------------------------------------------------------------------------------------- */

typedef struct scoring {
    const float *logits;
    const hn_windows *w;
    int64_t first_row;
    int32_t n_vocab;
    double *nll;
} scoring;

static void score_row(void *arg, int64_t i, int32_t thread)
{
    scoring *s = arg;
    const float *row = s->logits + i * s->n_vocab;
    s->nll[s->first_row + i] = hn_log_sum_exp(row, s->n_vocab) - row[hn_windows_target(s->w, s->first_row + i)];
}

/* Room for what is to come; and the row after which nothing counts: one that is not a number. */
static void finish(hn_ppl *out, const hn_windows *w, int64_t rows)
{
    int64_t scored = hn_windows_scored(w);
    for (int64_t r = 0; r < rows; r++)
        if (!isfinite(out->nll[r])) {
            hn_invalid(&out->verdict, "window %lld, token %lld: the logits hold a NaN or an infinity",
                       (long long)(r / scored), (long long)(w->first + r % scored));
            rows = r;
        }
    out->n_window = rows / scored;
    out->n = out->n_window * scored;
    out->mean = hn_mean_of(out->nll, out->n);
    out->ppl = exp(out->mean.mean);
    out->error = out->ppl * out->mean.error;
}

double hn_ppl_after(const hn_ppl *p, const hn_windows *w, int64_t n_window)
{
    int64_t n = n_window * hn_windows_scored(w);
    return n > p->n ? NAN : exp(hn_mean_of(p->nll, n).mean);
}

hone_status hn_ppl_run(hn_ppl *out, const hn_windows *w, const hn_logits_source *src, const hn_force_params *p,
                       hone_error *err)
{
    *out = (hn_ppl){ .nll = malloc((size_t)hn_windows_rows(w) * sizeof *out->nll) };
    hn_pieces pieces = { 0 };
    hn_pool *pool = NULL;
    float *logits = NULL;
    double sum = 0;
    int64_t done = 0;
    hone_status st = out->nll ? hn_pieces_begin(&pieces, w, src->n_vocab, p->n_batch, err)
                              : HN_FAIL(err, HONE_E_NOMEM, "scores of %lld tokens", (long long)hn_windows_rows(w));
    if (st == HONE_OK) st = hn_pool_new(&pool, p->n_threads, err);
    if (st == HONE_OK && !(logits = malloc((size_t)pieces.max_rows * (size_t)src->n_vocab * sizeof *logits)))
        st = HN_FAIL(err, HONE_E_NOMEM, "%lld rows of %d logits", (long long)pieces.max_rows, src->n_vocab);
    while (st == HONE_OK && hn_pieces_next(&pieces)) {
        hone_error why = { 0 };
        st = src->run(src->arg, pieces.tokens, pieces.n_tok, pieces.n_rows ? logits : NULL, &why);
        if (st == HONE_E_NUMERIC) { /* a verdict, not a failure */
            hn_invalid(&out->verdict, "window %lld: %s", (long long)(done / hn_windows_scored(w)), why.message);
            st = HONE_OK;
            break;
        }
        if (st != HONE_OK) {
            if (err) *err = why;
            break;
        }
        scoring s = {
            .logits = logits, .w = w, .first_row = pieces.first_row, .n_vocab = src->n_vocab, .nll = out->nll
        };
        if (pieces.n_rows) hn_pool_run(pool, score_row, &s, pieces.n_rows);
        for (; done < pieces.row; done++) sum += out->nll[done];
        if (!isfinite(sum)) break; /* no later window makes this a result */
        if (p->progress && done)
            p->progress(p->progress_arg, done / hn_windows_scored(w), w->n_window, exp(sum / (double)done));
    }
    if (out->nll) finish(out, w, done);
    free(logits);
    hn_pool_free(pool);
    hn_pieces_end(&pieces);
    return st;
}

void hn_ppl_free(hn_ppl *p)
{
    free(p->nll);
    *p = (hn_ppl){ 0 };
}
