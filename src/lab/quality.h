/* quality: what two answers have in common. The fixed text, the sketch beside the quality
 * hash and what it can say without a rerun, the likeness of continuations, records. Knows
 * hone.h and base/; refuses to know options and terminals. */
#ifndef HN_LAB_QUALITY_H
#define HN_LAB_QUALITY_H

#include "lab/lab.h"

/* ---- the fixed text: stories, prose, code, data, other languages; written for this project ------- */

extern const char hn_q_corpus[];      /* t1: never changes under this name */
extern const char hn_q_corpus_name[];
/* Ids for a model without tokenizer: n of one stream. */
void hn_q_corpus_random(int32_t *ids, int64_t n, int32_t n_vocab);

/* ---- records -------------------------------------------------------------------------------------- */

typedef struct hn_q_result {
    const char *id, *unit;       /* "quality.kl", "nats"; lower is better */
    double value;                /* NaN: there is none */
    double error;                /* its standard error; NaN: unknown */
    const char *title, *change, *quality; /* quality: the hash, or NULL */
    json_t *model, *config, *extra; /* borrowed */
    const hn_verdict *verdict;
    bool partial;                /* stopped before the end */
} hn_q_result;
json_t *hn_q_record(const hn_q_result *r); /* schema hone.bench/1 */
json_t *hn_q_model_json(const char *path, const hone_model_info *info);

#endif
