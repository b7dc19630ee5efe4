/* quality: what two answers have in common. The fixed text, the sketch beside the quality
 * hash and what it can say without a rerun, the likeness of continuations, records. Knows
 * hone.h and base/; refuses to know options and terminals. */
#ifndef HN_LAB_QUALITY_H
#define HN_LAB_QUALITY_H

#include "base/base.h"
#include "lab/quality/outer.h"
#include "lab/quality/quality.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

/* ---- the fixed text: stories, prose, code, data, other languages; written for this project ------- */

extern const char hn_q_corpus[]; /* t1, corpus_t1.txt: never changes under this name */
extern const char hn_q_corpus_name[];
/* Ids for a model without tokenizer: n of one stream. */
void hn_q_corpus_random(int32_t *ids, int64_t n, int32_t n_vocab);

/* ---- records -------------------------------------------------------------------------------------- */

typedef struct hn_q_result {
    const char *id, *unit;                /* "quality.kl", "nats"; lower is better */
    double value;                         /* NaN: there is none */
    double error;                         /* its standard error; NaN: unknown */
    const char *title, *change, *quality; /* quality: the hash, or NULL */
    json_t *model, *config, *extra;       /* borrowed */
    const hn_verdict *verdict;
    bool partial; /* stopped before the end */
    bool higher;  /* is better */
} hn_q_result;
json_t *hn_q_record(const hn_q_result *r); /* schema hone.bench/1 */

/* ---- answers: the hash's continuations with a sketch of their logits ----------------------------------- */

enum { HN_SKETCH_TOP = 64 };
typedef struct hn_sketch_step {
    int32_t ids[HN_SKETCH_TOP];
    float logits[HN_SKETCH_TOP];
    double lse;
} hn_sketch_step; /* greatest first */

typedef struct hn_answers {
    hn_quality q;
    char full[24];  /* the hash of all ways (paths.h); "" in files from before there was one */
    hn_outer outer; /* likewise */
    json_t *covers; /* which ways it went, as quality_detail has it; owned; NULL: it does not say */
    bool from_text;
    int32_t n_vocab, n_top;  /* n_top: of HN_SKETCH_TOP, as many as there are */
    unsigned char vocab[32]; /* hn_vocab_hash */
    char label[160];
    json_t *model, *config; /* as in records; owned; NULL: unknown */
    hn_sketch_step step[HN_Q_PROMPTS][HN_Q_STEPS];
} hn_answers;

/* hn_quality_run with a sketch. out is large (not for the stack), and to be freed. */
hone_status hn_answers_run(hn_answers *out, const hn_logits_source *src, const hn_q_prompts *p, hone_error *err);
void hn_answers_free(hn_answers *a); /* what it owns */
json_t *hn_answers_json(const hn_answers *a, bool with_sketch);
hone_status hn_answers_save(const hn_answers *a, const char *path, hone_error *err);
/* HONE_E_FORMAT: no file of answers, or one that contradicts itself. */
hone_status hn_answers_load(hn_answers *out, const char *path, hone_error *err);
bool hn_answers_is_file(const char *path);

typedef enum hn_likeness { HN_SAME = 0, HN_NUMERICS, HN_DIFFERENT } hn_likeness; /* T same and L differs; T differs */
typedef struct hn_answers_diff {
    hn_likeness what;
    bool beyond;                          /* of the full hash alone: the eight prompts do not show it */
    const char *outer;                    /* the answers are the same: what around the engine is not; or NULL */
    int32_t n_diverged;                   /* prompts */
    int32_t prompt, step, id_a, id_b;     /* the first divergence */
    int32_t n_steps;                      /* compared: those before a divergence and the one at it */
    double max_dlogit, max_dlogp, max_dp; /* over the ids that both sketches hold */
    int32_t at_prompt, at_step;           /* of max_dlogp */
    double kl_mean, kl_max;               /* of a from b, at least: what the sketches do not hold is taken as one */
} hn_answers_diff;
/* HONE_E_ARG: not the same question, or not the same vocabulary. */
hone_status hn_answers_compare(hn_answers_diff *out, const hn_answers *a, const hn_answers *b, hone_error *err);
json_t *hn_answers_diff_json(const hn_answers_diff *d);

/* 1 - Levenshtein distance / length of the longer one: 1 for the same ids. */
double hn_id_similarity(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b);

#endif
