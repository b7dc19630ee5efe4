/* sample: what one measured process does, beyond hn_bench_measure: requests of text with
 * sampling, generation without a cache, several sequences at once; how a generation
 * paced itself; and what happened to the machine meanwhile. Knows hone.h and lab/;
 * refuses to know options and other processes. */
#ifndef HN_SAMPLE_H
#define HN_SAMPLE_H

#include "lab/lab.h"

/* ---- evidence against a sample: only this, never its value, may void it ------------------ */

typedef struct hn_evidence { /* before and after are subtracted */
    hn_cpu_ticks ticks;
    int64_t major, switches, waits; /* page faults from disk; involuntary and voluntary switches */
    double cpu_s;
    int64_t throttled;              /* of all cores; −1: unknown */
    double mhz;                     /* mean of the cores; 0: unknown */
    uint64_t ns;
} hn_evidence;

enum { HN_STEAL_PCT = 1, HN_CLOCK_PCT = 5 }; /* more than so much voids */

void hn_evidence_look(hn_evidence *out);
/* Adds steal_pct, major_faults, throttled, clock_mhz (at the end, under load), cpu_use and switches to o. */
void hn_evidence_json(json_t *o, const hn_evidence *before, const hn_evidence *after);
/* Why a sample with these keys should be measured again; false: no reason. from_disk: reading
 * from disk is what is measured. usual_mhz: of the samples before; NaN: there were none. */
bool hn_evidence_voids(json_t *sample, bool from_disk, double usual_mhz, char *why, size_t cap);

/* Cache misses of this process and of the threads it starts from now on: a file descriptor, or −1 and why. */
int hn_count_misses(const char **why_not);
int64_t hn_count_read(int fd); /* so far; −1: unknown */

/* ---- loading (bench_stages.c) ------------------------------------------------------------------ */

typedef struct hn_stages { double parse_ms, config_ms; } hn_stages;
/* As hone_model_open, and how long its two steps took: the file mapped and its directory checked;
 * architecture, hyper-parameters and weights bound. look (NULL allowed) is called after each. */
hone_status hn_stages_open(hone_model **out, hn_stages *t, const char *path, const hone_model_params *p, void (*look)(void *, const char *), void *arg,
                           hone_error *err);

typedef struct hn_look { /* bytes, exact; −1, or 0 of the first three: unknown */
    int64_t anon, rss, pss;
    int64_t tensors;         /* pages of weights, plain or packed, mapped into this process so far */
    int64_t cache, state;    /* of the KV cache; of recurrent states and their copies */
} hn_look;
void hn_look_at(hn_look *out, const hone_model *m, const hone_session *s); /* both may be NULL */
json_t *hn_look_json(const char *stage, const hn_look *l);

/* ---- pace ------------------------------------------------------------------------------------ */

typedef struct hn_pace { /* tokens a second; NaN: too few tokens to say */
    double steady;    /* of the median gap, without the first max(8, 10 %) */
    double peak;      /* the fastest stretch of at least a second */
    double sustained; /* of the last half */
} hn_pace;
hone_status hn_pace_of(hn_pace *out, const double *gap_ms, int32_t n, hone_error *err);

/* ---- requests ---------------------------------------------------------------------------------- */

typedef struct hn_request_config {
    const char *text;    /* NULL: the built-in texts, cut to n_prompt tokens */
    int32_t n_prompt;    /* ignored with text */
    int32_t n_gen;
    float temp, top_p;   /* temp 0: greedy */
    uint64_t seed;
} hn_request_config;

typedef struct hn_request { /* NaN: not measured */
    double tokenize_ms;  /* NaN: the model has no tokenizer, ids were given */
    double ttft_ms;      /* text handed over → bytes of the first token usable */
    double prefill_tok_s, decode_tok_s;
    double total_ms;     /* text handed over → last token usable */
    double *gap_ms;      /* [n_gaps] between tokens; malloc'ed */
    int32_t *ids;        /* [n_ids] generated; malloc'ed */
    int32_t n_gaps, n_ids, n_prompt;
    hn_verdict verdict;
} hn_request;

/* The text of a request: as many of the built-in texts as n tokens need, cut behind the first that
 * is too many; malloc'ed, or NULL with HONE_OK when the model has no tokenizer. */
hone_status hn_request_text(char **text, const hone_model *m, int32_t n, hone_error *err);
/* Empties sequence 0 and runs one request on it. */
hone_status hn_request_run(hn_request *out, hone_session *s, const hone_model *m, const char *text, const hn_request_config *c, hone_error *err);
void hn_request_free(hn_request *q);
json_t *hn_request_json(const hn_request *q);

/* ---- without a cache ------------------------------------------------------------------------------ */

typedef struct hn_uncached {
    int32_t n_prompt, n_tok;   /* generated until there were n_tok tokens in all */
    double on_s, off_s;        /* with the cache; every token from the whole text before it */
    bool same;                 /* both generated the same tokens */
    hn_verdict verdict;
} hn_uncached;
/* Generates greedily from n_prompt ids to n_tok tokens, with the cache and without. n_tok 0: 512, or
 * the largest of 256, 128, 64, 32 that should take less than most_s without a cache. */
hone_status hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt, int32_t n_tok, double most_s, hone_error *err);

/* ---- several sequences ------------------------------------------------------------------------------ */

typedef struct hn_batch {
    int32_t n_seq, n_prompt, n_gen;
    double prefill_tok_s, decode_tok_s; /* of all sequences together */
    int32_t *ids;                       /* [n_gen] of sequence 0; malloc'ed */
    hn_verdict verdict;
} hn_batch;
/* Each sequence has a prompt of its own, the first the same whatever n_seq. Greedy. */
hone_status hn_batch_run(hn_batch *out, hone_session *s, const hone_model *m, int32_t n_seq, int32_t n_prompt, int32_t n_gen, hone_error *err);
void hn_batch_free(hn_batch *b);

#endif
