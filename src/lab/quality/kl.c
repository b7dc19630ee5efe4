/* Divergence of two models over the same text, position by position. Owns the formulas;
 * refuses to know whether rows come from a model or from a file. */
#include "lab/quality/perplexity.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

const double hn_kl_quantiles[HN_KL_QUANTILES] = { 0.5, 0.9, 0.95, 0.99, 0.999 };

bool hn_kl_of_row(hn_kl_row *out, const float *ref, const float *now, int32_t n_vocab, int32_t id)
{
    hn_logit_scan a = hn_scan_logits(ref, n_vocab), b = hn_scan_logits(now, n_vocab);
    double lse_ref = hn_log_sum_exp(ref, n_vocab), lse_new = hn_log_sum_exp(now, n_vocab), kl = 0;
    *out = (hn_kl_row){ .kl = NAN, .nll_ref = NAN, .nll_new = NAN };
    if (!a.finite || !b.finite) return false;
    for (int32_t i = 0; i < n_vocab; i++) {
        double lp = ref[i] - lse_ref;
        kl += exp(lp) * (lp - (now[i] - lse_new)); /* equal logits: exactly 0 */
    }
    *out = (hn_kl_row){
        .kl = kl > 0 ? kl : 0, .nll_ref = lse_ref - ref[id], .nll_new = lse_new - now[id], .same_top = a.best == b.best
    };
    return true; /* below 0 is rounding: no divergence is negative */
}

/* ---- running ------------------------------------------------------------------------------------ */

typedef struct comparing {
    const float *ref, *now;
    const hn_windows *w;
    int64_t first_row;
    int32_t n_vocab;
    hn_kl_row *rows;
} comparing;

static void compare_row(void *arg, int64_t i, int32_t thread)
{
    comparing *c = arg;
    size_t at = (size_t)i * (size_t)c->n_vocab;
    hn_kl_of_row(&c->rows[c->first_row + i], c->ref + at, c->now + at, c->n_vocab,
                 hn_windows_target(c->w, c->first_row + i));
}

/* The first row of a piece that is not of numbers; -1: none is. */
static int64_t first_bad(const float *x, int64_t n, int32_t n_vocab)
{
    for (int64_t i = 0; i < n; i++)
        if (!hn_scan_logits(x + i * n_vocab, n_vocab).finite) return i;
    return -1;
}

static hone_status side_rows(const hn_kl_side *s, hn_pieces *p, float *dst, hone_error *err)
{
    hone_status st = HONE_OK;
    if (s->src) st = s->src->run(s->src->arg, p->tokens, p->n_tok, p->n_rows ? dst : NULL, err);
    else if (p->n_rows) st = hn_logits_get(s->file, dst, p->n_rows, err);
    if (st == HONE_OK && s->save && p->n_rows) st = hn_logits_put(s->save, dst, p->n_rows, err);
    return st;
}

static void reject(hn_kl *k, const char *who, int64_t row, const hn_windows *w)
{
    int32_t scored = hn_windows_scored(w);
    hn_invalid(&k->verdict, "%s: window %lld, token %lld: the logits hold a NaN or an infinity", who,
               (long long)(row / scored), (long long)(w->first + row % scored));
}

/* ---- statistics --------------------------------------------------------------------------------------- */

static void summarize(hn_kl *k, const hn_kl_row *r, int64_t n, double *x)
{
    k->n = n;
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = r[i].kl;
        same += r[i].same_top;
        if (i == 0 || x[i] > k->kl_max) k->kl_max = x[i], k->max_row = i;
    }
    k->kl = hn_mean_of(x, n);
    qsort(x, (size_t)n, sizeof *x, hn_ascending);
    for (int q = 0; q < HN_KL_QUANTILES; q++) k->kl_q[q] = hn_quantile(x, n, hn_kl_quantiles[q]);
    double share = n ? (double)same / (double)n : NAN;
    k->same_top = share;
    k->same_top_error = n > 1 ? sqrt(share * (1 - share) / (double)(n - 1)) : NAN;
    for (int64_t i = 0; i < n; i++) x[i] = r[i].nll_ref;
    k->nll_ref = hn_mean_of(x, n);
    for (int64_t i = 0; i < n; i++) x[i] = r[i].nll_new;
    k->nll_new = hn_mean_of(x, n);
    for (int64_t i = 0; i < n; i++) x[i] = r[i].nll_new - r[i].nll_ref;
    k->ln_ratio = hn_mean_of(x, n); /* pairs: what both find hard cancels */
    for (int64_t i = 0; i < n; i++) {
        double d = exp(-r[i].nll_new) - exp(-r[i].nll_ref);
        x[i] = d * d;
    }
    hn_mean square = hn_mean_of(x, n);
    k->rms_dp = sqrt(square.mean);
    k->rms_dp_error = square.mean > 0 ? 0.5 / k->rms_dp * square.error : 0;
}

hone_status hn_kl_run(hn_kl *out, const hn_windows *w, const hn_kl_side *ref, const hn_kl_side *side, int32_t n_side,
                      int32_t n_vocab, const hn_force_params *p, hone_error *err)
{
    hn_pieces pieces = { 0 };
    hn_pool *pool = NULL;
    int64_t total = hn_windows_rows(w), *done = calloc((size_t)n_side + 1, sizeof *done);
    float *a = NULL, *b = NULL;
    hn_kl_row *rows = calloc((size_t)n_side * (size_t)total + 1, sizeof *rows);
    double *x = malloc((size_t)total * sizeof *x), sum = 0;
    if (n_side) memset(out, 0, (size_t)n_side * sizeof *out);
    for (int32_t i = 0; i < n_side; i++) out[i].identical = true;
    hone_status st = rows && x && done ? hn_pieces_begin(&pieces, w, n_vocab, p->n_batch, err)
                                       : HN_FAIL(err, HONE_E_NOMEM, "scores of %lld positions", (long long)total);
    if (st == HONE_OK) st = hn_pool_new(&pool, p->n_threads, err);
    size_t bytes = (size_t)pieces.max_rows * (size_t)n_vocab * sizeof *a;
    if (st == HONE_OK && (!(a = malloc(bytes)) || !(b = malloc(bytes))))
        st = HN_FAIL(err, HONE_E_NOMEM, "twice %zu bytes of logits", bytes);
    for (bool go = true; st == HONE_OK && go && hn_pieces_next(&pieces);) {
        hone_error why = { 0 };
        if ((st = side_rows(ref, &pieces, a, &why)) == HONE_E_NUMERIC && n_side) { /* a verdict, not a failure */
            for (int32_t i = 0; i < n_side; i++) hn_invalid(&out[i].verdict, "the reference: %s", why.message);
            st = HONE_OK;
            break;
        }
        if (st != HONE_OK) {
            if (err) *err = why;
            break;
        }
        int64_t bad = first_bad(a, pieces.n_rows, n_vocab);
        for (int32_t i = 0; i < n_side && bad >= 0; i++) reject(&out[i], "the reference", pieces.first_row + bad, w);
        if (bad >= 0 && n_side == 0)
            st = HN_FAIL(err, HONE_E_NUMERIC, "row %lld: the logits hold a NaN or an infinity",
                         (long long)(pieces.first_row + bad));
        go = n_side == 0;
        for (int32_t i = 0; i < n_side && st == HONE_OK; i++) {
            if (out[i].verdict.state == HN_INVALID) continue;
            if ((st = side_rows(&side[i], &pieces, b, &why)) == HONE_E_NUMERIC) {
                hn_invalid(&out[i].verdict, "the model: %s", why.message);
                st = HONE_OK;
                continue;
            }
            if (st != HONE_OK) {
                if (err) *err = why;
                break;
            }
            comparing c = { a, b, w, pieces.first_row, n_vocab, rows + (size_t)i * (size_t)total };
            if (pieces.n_rows) hn_pool_run(pool, compare_row, &c, pieces.n_rows);
            out[i].identical =
                out[i].identical && memcmp(a, b, (size_t)pieces.n_rows * (size_t)n_vocab * sizeof *a) == 0;
            for (; done[i] < pieces.row && isfinite(c.rows[done[i]].kl); done[i]++)
                if (i == 0) sum += c.rows[done[i]].kl;
            if (done[i] < pieces.row) reject(&out[i], "the model", done[i], w);
            go = go || out[i].verdict.state != HN_INVALID;
        }
        if (st == HONE_OK && p->progress && pieces.row)
            p->progress(p->progress_arg, pieces.row / hn_windows_scored(w), w->n_window,
                        done[0] ? sum / (double)done[0] : 0);
    }
    for (int32_t i = 0; i < n_side && rows && x && done; i++)
        summarize(&out[i], rows + (size_t)i * (size_t)total, done[i], x);
    free(a);
    free(b);
    free(rows);
    free(x);
    free(done);
    hn_pool_free(pool);
    hn_pieces_end(&pieces);
    return st;
}
