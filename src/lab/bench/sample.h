/* sample: what one measured process does, beyond hn_bench_measure: requests of text with
 * sampling, generation without a cache, several sequences at once; how a generation
 * paced itself; and what happened to the machine meanwhile. Knows hone.h and lab/;
 * refuses to know options and other processes. */
#ifndef HN_SAMPLE_H
#define HN_SAMPLE_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/allocs.h"
#include "lab/quality/proof.h"
#include "lab/stats/verdict.h"

/* ---- one sample -------------------------------------------------------------------------------- */

typedef struct hn_bench_config {
    int32_t n_prompt, n_gen, depth;
    uint64_t prompt_seed; /* which prompt; 0: that of everyone */
} hn_bench_config;

/* Ids of the measured prompts: pseudo-random, the same for everyone who gives the same seed (0 unless a comparison
 * asks for another prompt in each round); control and empty tokens left out where the model has a tokenizer. ids [n]
 * from place `first` of the stream. */
void hn_bench_ids(int32_t *ids, int32_t n, int32_t first, uint64_t seed, const hone_model *m);
/* The same where the model is no longer open: usable [n_vocab] of its tokens, as hn_bench_usable has filled it. */
void hn_bench_ids_of(int32_t *ids, int32_t n, int32_t first, uint64_t seed, const bool *usable, int32_t n_vocab);
void hn_bench_usable(bool *usable, const hone_model *m);

typedef struct hn_sample { /* NaN: not measured */
    double load_ms, ttft_ms, prefill_tok_s, decode_tok_s;
    double depth_ms; /* to fill the depth, which is not measured */
    double peak_anon_mb, hwm_mb, mapped_mb, model_resident_mb;
    double *gap_ms; /* [n_gaps] between tokens, malloc'ed */
    int32_t *ids;   /* [n_gen], malloc'ed */
    int32_t n_ids, n_gaps;
    int32_t positions; /* that the sequence holds at the end, as the session says */
    hn_proof proof;
    /* by the second clock, hashing left out: prompt; prompt and first token; generation. NaN: not measured */
    double prefill_witness_ms, prompt_witness_ms, gen_witness_ms;
    hn_allocs prompt_allocs, gen_allocs; /* in these two stretches */
    json_t *evidence;                    /* what the machine did meanwhile (lab/sample.h), or NULL */
    double looks_cpu_s;                  /* CPU time of this thread for reading that, and memory: the kernel's files */
    bool constant;                       /* one id repeated, at least HN_Q_STEPS / 4 times */
    hn_verdict verdict;                  /* numbers only: HN_INVALID or HN_UNCHECKED */
} hn_sample;

/* Measures on a fresh session of n_ctx >= depth + n_prompt + n_gen: fills depth tokens, then
 * prefills n_prompt and generates n_gen greedily. Memory and load are the caller's to add. */
hone_status hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                             hone_error *err);
void hn_sample_free(hn_sample *s);
/* What an answer must prove, by other ways of computing: the prompt in chunks of 37, and the ids that were generated
 * given again, five in a call. *out: with the ids that these logits choose. */
typedef struct hn_answer {
    const int32_t *prompt, *ids; /* [n_prompt], [n_gen] */
    int32_t n_prompt, n_gen;
    hone_sampler *sampler; /* as it was when the answer began; NULL: greedily */
} hn_answer;
hone_status hn_answer_again(hn_proof *out, hone_session *s, const hone_model *m, const hn_answer *answer,
                            hone_error *err);
/* The same of a sample of c. */
hone_status hn_bench_again(hn_proof *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                           const int32_t *ids, hone_error *err);
json_t *hn_sample_json(const hn_sample *s);

/* ---- pace ------------------------------------------------------------------------------------ */

typedef struct hn_pace { /* tokens a second; NaN: too few tokens to say */
    double steady;       /* of the median gap, without the first max(8, 10 %) */
    double peak;         /* the fastest stretch of at least a second */
    double sustained;    /* of the last half */
} hn_pace;
hone_status hn_pace_of(hn_pace *out, const double *gap_ms, int32_t n, hone_error *err);

/* ---- what every timed run of one sequence tells ------------------------------------------------ */

typedef struct hn_timed { /* borrowed, as in hn_sample */
    double ttft_ms, prefill_tok_s, decode_tok_s, prompt_witness_ms, gen_witness_ms;
    const double *gap_ms;
    const int32_t *ids;
    int32_t n_gaps, n_ids, positions;
    const hn_proof *proof;
    const hn_allocs *prompt_allocs, *gen_allocs;
    const hn_verdict *verdict;
} hn_timed;
/* Its members in the JSON of a process: rates, gaps, ids, proof, allocations, why it is invalid. */
void hn_timed_json(json_t *o, const hn_timed *t);

/* ---- requests ---------------------------------------------------------------------------------- */

typedef struct hn_request_config {
    const char *text; /* NULL: the built-in texts, cut to n_prompt tokens */
    int32_t n_prompt; /* ignored with text */
    int32_t n_gen;
    float temp, top_p; /* temp 0: greedy */
    uint64_t seed;
} hn_request_config;

typedef struct hn_request { /* NaN: not measured */
    double tokenize_ms;     /* NaN: the model has no tokenizer, ids were given */
    double ttft_ms;         /* text handed over → bytes of the first token usable */
    double prefill_tok_s, decode_tok_s;
    double total_ms; /* text handed over → last token usable */
    double *gap_ms;  /* [n_gaps] between tokens; malloc'ed */
    int32_t *ids;    /* [n_ids] generated; malloc'ed */
    int32_t n_gaps, n_ids, n_prompt;
    int32_t positions;                        /* that the sequence holds at the end */
    double prompt_witness_ms, gen_witness_ms; /* as in hn_sample; the prompt's with the first token and its text */
    hn_allocs prompt_allocs, gen_allocs;      /* likewise */
    hn_proof proof;
    hn_verdict verdict;
} hn_request;

/* The text of a request: as many of the built-in texts as n tokens need, cut behind the first that
 * is too many; malloc'ed, or NULL with HONE_OK when the model has no tokenizer. */
hone_status hn_request_text(char **text, const hone_model *m, int32_t n, hone_error *err);
/* Empties sequence 0 and runs one request on it. */
hone_status hn_request_run(hn_request *out, hone_session *s, const hone_model *m, const char *text,
                           const hn_request_config *c, hone_error *err);
/* What such a request that generated ids [c->n_gen] must prove (hn_answer_again). s is empty. */
hone_status hn_request_again(hn_proof *out, hone_session *s, const hone_model *m, const char *text,
                             const hn_request_config *c, const int32_t *ids, hone_error *err);
void hn_request_free(hn_request *q);
json_t *hn_request_json(const hn_request *q);

/* ---- without a cache ------------------------------------------------------------------------------ */

typedef struct hn_uncached {
    int32_t n_prompt, n_tok;              /* generated until there were n_tok tokens in all */
    double on_s, off_s;                   /* with the cache; every token from the whole text before it */
    double on_witness_ms, off_witness_ms; /* the same by the second clock */
    int32_t *ids;                         /* [n_tok]: the prompt and what was generated with the cache; malloc'ed */
    bool same;                            /* both generated the same tokens, from the same logits */
    hn_proof proof;                       /* of the run with the cache */
    hn_verdict verdict;
} hn_uncached;
/* Generates greedily from n_prompt ids to n_tok tokens, with the cache and without. n_tok 0: 512, or
 * the largest of 256, 128, 64, 32 that should take less than most_s without a cache. */
hone_status hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt, int32_t n_tok,
                            double most_s, hone_error *err);
void hn_uncached_free(hn_uncached *u);

/* ---- several sequences ------------------------------------------------------------------------------ */

typedef struct hn_batch {
    int32_t n_seq, n_prompt, n_gen;
    double prefill_tok_s, decode_tok_s;        /* of all sequences together */
    double prefill_witness_ms, gen_witness_ms; /* by the second clock */
    double *gap_ms;                            /* [n_gen - 1] of a step of all; malloc'ed */
    int32_t *ids;                              /* [n_gen] of sequence 0; malloc'ed */
    hn_proof proof;                            /* of sequence 0: the same whatever its company */
    hn_proof company;                          /* of all sequences */
    uint64_t *each;                            /* [n_seq] of all steps' logits; malloc'ed */
    hn_allocs gen_allocs;                      /* of all steps behind the first */
    hn_verdict verdict;
} hn_batch;
/* Each sequence has a prompt of its own, the same whatever n_seq. Greedy. */
hone_status hn_batch_run(hn_batch *out, hone_session *s, const hone_model *m, int32_t n_seq, int32_t n_prompt,
                         int32_t n_gen, hone_error *err);
/* The same sequences, each with nobody beside it: `each` and the verdict alone. */
hone_status hn_batch_alone(hn_batch *out, hone_session *s, const hone_model *m, int32_t n_seq, int32_t n_prompt,
                           int32_t n_gen, hone_error *err);
void hn_batch_free(hn_batch *b);

#endif
