/* perplexity: a model given a text, word by word, and what it thought of each. Windows over
 * ids, logits as teacher forcing gives them, scores of rows, perplexity, Kullback-Leibler
 * divergence, files of logits. Knows hone.h and base/; refuses to know options and terminals. */
#ifndef HN_LAB_PERPLEXITY_H
#define HN_LAB_PERPLEXITY_H

#include "base/base.h"
#include "lab/quality/quality.h"
#include "lab/stats/verdict.h"

/* ---- windows over a text ---------------------------------------------------------------------- */

/* Window w is ids [w * stride, w * stride + n_ctx); bos stands in its first place. The logits
 * at places [first, n_ctx - 1) are scored by the ids that follow them. */
typedef struct hn_windows {
    int32_t *ids; /* [n_ids], malloc'ed */
    int64_t n_ids;
    int32_t n_ctx, stride, first;
    int32_t bos;                  /* -1: nothing is put there */
    int64_t n_window, n_possible; /* used, and as many as the text gives */
} hn_windows;

/* ids are copied. stride 0: windows side by side, the second half scored, and at least two windows
 * of text, as llama.cpp has it; else the last `stride` places of each. most: windows at most, 0: all.
 * HONE_E_ARG: too few ids, or n_ctx or stride out of range. */
hone_status hn_windows_make(hn_windows *out, const int32_t *ids, int64_t n_ids, int32_t n_ctx, int32_t stride,
                            int32_t bos, int64_t most, hone_error *err);
void hn_windows_free(hn_windows *w);
static inline int32_t hn_windows_scored(const hn_windows *w) { return w->n_ctx - 1 - w->first; } /* of one window */
static inline int64_t hn_windows_rows(const hn_windows *w) { return w->n_window * hn_windows_scored(w); }
/* The id that scores row r, counted over all windows. */
static inline int32_t hn_windows_target(const hn_windows *w, int64_t r)
{
    return w->ids[r / hn_windows_scored(w) * w->stride + w->first + 1 + r % hn_windows_scored(w)];
}

/* The ids of a text as llama.cpp's perplexity sees it: names of special tokens are plain text; what
 * the model adds at the beginning is kept, what it adds at the end is not. *bos: the id for
 * hn_windows_make. *ids malloc'ed. */
hone_status hn_ppl_tokenize(const hone_model *m, const char *text, size_t len, int32_t **ids, int64_t *n, int32_t *bos,
                            hone_error *err);

/* ---- pieces: which tokens are run together --------------------------------------------------------- */

/* Windows are run in groups of n_seq sequences; a piece is what one call runs: part of a group
 * with at most max_rows scored rows. The pieces do not depend on who runs them. */
typedef struct hn_pieces {
    const hn_windows *w;
    int32_t n_seq;
    int64_t max_rows;
    int64_t token, row; /* the next of all (n_ctx - 1 tokens a window; the last place is never run) */
    hone_token *tokens; /* [n_tok] of this piece; position 0 begins its sequence anew */
    int32_t n_tok;
    int64_t first_row, n_rows;
} hn_pieces;
/* n_batch: tokens that are worth running together. */
hone_status hn_pieces_begin(hn_pieces *p, const hn_windows *w, int32_t n_vocab, int32_t n_batch, hone_error *err);
bool hn_pieces_next(hn_pieces *p); /* false: there are no more */
void hn_pieces_end(hn_pieces *p);

/* A hn_logits_source of a session: arg is the hone_session. */
hone_status hn_forced_run(void *session, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err);

/* ---- scores, in double -------------------------------------------------------------------------------- */

/* ln Σ exp x; NaN when one of x is not a finite number. */
double hn_log_sum_exp(const float *x, int32_t n);

typedef struct hn_mean {
    int64_t n;
    double mean, error;
} hn_mean; /* error: of the mean, sqrt(var / (n - 1)); NaN below 2 */
hn_mean hn_mean_of(const double *x, int64_t n);
/* q of n sorted numbers, interpolated. */
double hn_quantile(const double *sorted, int64_t n, double q);

typedef struct hn_ppl {
    double *nll;         /* [n] -ln p of each scored id, in order; malloc'ed */
    int64_t n, n_window; /* windows that are complete */
    hn_mean mean;
    double ppl, error;  /* exp(mean), and ± */
    hn_verdict verdict; /* HN_INVALID: a logit is not a number */
} hn_ppl;

typedef struct hn_force_params {
    int32_t n_batch, n_threads;
    void (*progress)(void *arg, int64_t windows, int64_t of, double ppl); /* may be NULL; the first model's */
    void *progress_arg;
} hn_force_params;

/* HONE_E_INTERRUPTED: out holds the windows that are complete. Free it in any case. */
hone_status hn_ppl_run(hn_ppl *out, const hn_windows *w, const hn_logits_source *src, const hn_force_params *p,
                       hone_error *err);
/* Perplexity of the first n windows. */
double hn_ppl_after(const hn_ppl *p, const hn_windows *w, int64_t n_window);
void hn_ppl_free(hn_ppl *p);

/* ---- files of logits ------------------------------------------------------------------------------------- */

/* The scored rows of one model over windows, with the ids: docs/BENCHMARKING.md. 32 bits: as
 * computed. 16 bits: 65536 steps from the greatest logit down to the least, at most 32 below it. */
typedef struct hn_logits_file hn_logits_file;
typedef struct hn_logits_head {
    int32_t bits, n_vocab;
    uint64_t fingerprint;    /* of the model */
    unsigned char vocab[32]; /* SHA-256 of the pieces; zeros: no tokenizer */
    char label[128];
} hn_logits_head;
/* Written beside `path` and renamed by hn_logits_finish. */
hone_status hn_logits_create(hn_logits_file **out, const char *path, const hn_logits_head *head, const hn_windows *w,
                             hone_error *err);
hone_status hn_logits_put(hn_logits_file *f, const float *rows, int64_t n, hone_error *err); /* in order */
hone_status hn_logits_finish(hn_logits_file *f, hone_error *err);
/* w receives the windows. HONE_E_FORMAT: no such file, damaged or incomplete. */
hone_status hn_logits_open(hn_logits_file **out, const char *path, hn_logits_head *head, hn_windows *w,
                           hone_error *err);
/* The next n rows. The checksum of a window is compared when its last row is read. */
hone_status hn_logits_get(hn_logits_file *f, float *rows, int64_t n, hone_error *err);
void hn_logits_close(hn_logits_file *f); /* an unfinished file is removed */
bool hn_logits_is_file(const char *path);

/* SHA-256 of all pieces of the vocabulary; false: no tokenizer. */
bool hn_vocab_hash(unsigned char out[32], const hone_model *m);
/* HONE_E_ARG: ids of a and b do not mean the same; names the first. */
hone_status hn_vocab_compare(const hone_model *a, const char *name_a, const hone_model *b, const char *name_b,
                             hone_error *err);

/* ---- divergence -------------------------------------------------------------------------------------------- */

typedef struct hn_kl_row {
    double kl, nll_ref, nll_new;
    bool same_top;
} hn_kl_row;
/* KL(ref‖new) of one position, and the scores of id. False: a logit is not a finite number. */
bool hn_kl_of_row(hn_kl_row *out, const float *ref, const float *now, int32_t n_vocab, int32_t id);

enum { HN_KL_QUANTILES = 5 };
extern const double hn_kl_quantiles[HN_KL_QUANTILES]; /* 0.5 0.9 0.95 0.99 0.999 */

typedef struct hn_kl {
    int64_t n; /* positions */
    hn_mean kl;
    double kl_max, kl_q[HN_KL_QUANTILES];
    int64_t max_row;                 /* where */
    double same_top, same_top_error; /* shares */
    double rms_dp, rms_dp_error;     /* of the probability of the id that came */
    hn_mean ln_ratio;                /* ln(PPL new / PPL ref) */
    hn_mean nll_ref, nll_new;
    bool identical; /* every logit has the same bits */
    hn_verdict verdict;
} hn_kl;

typedef struct hn_kl_side {
    const hn_logits_source *src; /* or */
    hn_logits_file *file;
    hn_logits_file *save; /* its rows are written there too; NULL: not */
} hn_kl_side;

/* Runs ref and n_side models over the same windows, position by position. out [n_side]. With
 * n_side 0 only ref.save is made. HONE_E_INTERRUPTED: out holds the positions compared so far. */
hone_status hn_kl_run(hn_kl *out, const hn_windows *w, const hn_kl_side *ref, const hn_kl_side *side, int32_t n_side,
                      int32_t n_vocab, const hn_force_params *p, hone_error *err);

#endif
