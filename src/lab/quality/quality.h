/* quality: does a model still answer the same, and with the same bits? The hash over eight
 * prompts: docs/BENCHMARKING.md. Logits come from a session, or a fake in the tests. */
#ifndef HN_QUALITY_H
#define HN_QUALITY_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/stats/verdict.h"

typedef struct hn_logit_scan {
    int32_t best;   /* greatest logit, ties to the lowest id; -1: there is a NaN or infinity */
    bool finite;    /* no NaN, no infinity */
    bool all_equal; /* n > 1 and every logit the same number */
} hn_logit_scan;
hn_logit_scan hn_scan_logits(const float *x, int32_t n);

/* Where logits come from: a session, or a fake in the tests. */
typedef struct hn_logits_source {
    int32_t n_vocab;
    /* as hone_run_batch; logits [n_wanted, n_vocab]; sequences start empty */
    hone_status (*run)(void *arg, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err);
    void *arg;
} hn_logits_source;

enum { HN_Q_PROMPTS = 8, HN_Q_STEPS = 64, HN_Q_QUICK_STEPS = 8, HN_Q_MAX_PROMPT = 256 };

typedef struct hn_q_prompts {
    int32_t ids[HN_Q_PROMPTS][HN_Q_MAX_PROMPT];
    int32_t n[HN_Q_PROMPTS];
    bool from_text; /* else pseudo-random ids: the model has no tokenizer */
} hn_q_prompts;
/* The eight fixed prompts in the ids of m. */
hone_status hn_q_prompts_make(hn_q_prompts *out, const hone_model *m, hone_error *err);
void hn_q_prompts_random(hn_q_prompts *out, int32_t n_vocab);
extern const char *const hn_q_texts[HN_Q_PROMPTS];
/* The first *n ids of the fixed text, or of a stream for a model without tokenizer; *n may become less. */
hone_status hn_q_long_ids(int32_t *ids, int32_t *n, const hone_model *m, bool from_text, hone_error *err);

typedef struct hn_quality {
    char hash[24]; /* "q1-TTTTTTTT-LLLLLLLL"; "" when a logit is not a finite number, or there were fewer steps */
    unsigned char answers[32], logits[32]; /* SHA-256 of all ids, and of the logits that are kept */
    int32_t ids[HN_Q_PROMPTS][HN_Q_STEPS];
    int32_t n_steps;    /* done: as asked for, unless stopped by such a logit */
    int32_t n_distinct; /* different ids in all continuations */
    int32_t n_constant; /* continuations that are one id repeated */
    hn_verdict verdict;
} hn_quality;
/* together: all prompts in one batch (the same bits, by the engine's contract), else one
 * after the other. n_steps: HN_Q_STEPS, or fewer for a quick look, which has no hash
 * of its own. Failures of the source are returned, except HONE_E_NUMERIC, which is a verdict. */
hone_status hn_quality_run(hn_quality *out, const hn_logits_source *src, const hn_q_prompts *p, bool together,
                           int32_t n_steps, hone_error *err);
json_t *hn_quality_json(const hn_quality *q, bool from_text);

/* ---- hashes of different kinds ----------------------------------------------------------------- */

/* "q1", "q2", "q2q": how a hash was made. Only hashes of one kind compare. */
bool hn_q_same_kind(const char *a, const char *b);
/* The same answers, whatever the logits behind them? */
bool hn_q_same_answers(const char *a, const char *b);

#endif
