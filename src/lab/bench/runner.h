/* runner: measuring in fresh processes, for the entries that do (bench_process.c, bench_e2e.c,
 * bench_plain.c, bench_scale.c). */
#ifndef HN_RUNNER_H
#define HN_RUNNER_H

#include "base/base.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/bench/sample.h"
#include "lab/machine/roof.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

typedef struct hn_runner { /* one run of one entry */
    hn_bench_run *r;
    const hn_bench_entry *e;
    char packed[4096], packed_note[600]; /* packed file in use, or ""; why that one */
    hn_work work;
    double bytes_per_token;
    uint64_t state_bytes; /* of a model that keeps nothing else; else 0 */
    uint64_t n_bytes, fingerprint;
    int32_t n_ctx_train, n_layer; /* n_ctx_train 0: any number of positions */
    bool has_tokenizer;
    bool quick;
    int32_t todo, done; /* processes of this entry, for the progress */
} hn_runner;

/* Samples of one configuration. Zero it; free it. */
typedef struct hn_bunch {
    const char *mode; /* "_sample" */
    char word[160];   /* for modes that take one; "": none */
    hn_argv args;     /* options behind those of the settings, which they overrule */
    hn_asked asked;   /* of each sample or request, where `counted` */
    bool counted;
    bool from_disk;    /* reading from disk is part of it */
    bool drop;         /* drop the model's files from memory before each process */
    bool unverified;   /* they were not gone all the same */
    bool no_warmup;    /* unless it is asked for */
    bool keep_crashes; /* a process that crashed stands among the results, as {"invalid_reason"}, and others follow */
    json_t *all;       /* kept results of processes */
    json_t *voided;    /* array of {"reason", "result"} */
    int32_t warmups;
    int32_t wanted;
    hn_verdict verdict;
    char kept[200]; /* why the last sample that was kept in spite of evidence should have been voided */
    int32_t n_kept; /* such samples */
} hn_bunch;

/* Opens the model once, to know it. */
hone_status hn_runner_begin(hn_runner *p, hn_bench_run *r, const hn_bench_entry *e, hone_error *err);
/* How many samples: as asked, else the default but at most `most`. */
int32_t hn_runner_samples(const hn_runner *p, int32_t most);
void hn_bunch_free(hn_bunch *b);
/* Asks for so many tokens (depth < 0: a mode that has none), and holds every sample against it. */
void hn_bunch_ask(hn_bunch *b, int32_t n_prompt, int32_t n_gen, int32_t depth);
/* Once, in a process of its own: what the first sample proves, by other ways of computing (hn_bench_again). Makes the
 * verdict invalid if it is not the same, and unchecked if it is not known: measuring ended with `ran`, or this does, of
 * which one is returned. Only of bunches of "_sample", or of a "_request" that is no known text, that were asked for by
 * hn_bunch_ask; nothing with --no-quality. */
hone_status hn_bunch_check(hn_runner *p, hn_bunch *b, hone_status ran, hone_error *err);
/* Where st is an error, the check did not come about: what is valid so far is unchecked. Returns st. */
hone_status hn_bunch_not_checked(hn_bunch *b, hone_status st);
/* Warm-ups, then n samples of each of k bunches in turns, each round in an order drawn by the seed. A
 * process that crashes makes its bunch invalid; one that says the request is wrong is an error.
 * HONE_E_INTERRUPTED: stopped; what was measured is in the bunches. */
hone_status hn_bunch_measure(hn_runner *p, hn_bunch *b, size_t k, int32_t n, hone_error *err);
/* One process that is no sample: *out, what it printed, or {"invalid_reason"} of one that crashed. */
hone_status hn_bunch_once(hn_runner *p, hn_bunch *b, json_t **out, hone_error *err);
/* The number of a result at a path like "requests.0.ttft_ms"; NaN: none. An array of numbers is their sum,
 * "requests.1-.total_ms" the median of all but the first, "stages.session.anon_mb" of the stage that is called so.
 * Paths and numbers may be put together from left to right: "496000 / (ttft_ms + gaps_ms)". */
double hn_result_number(json_t *o, const char *path);
double hn_bunch_median(const hn_bunch *b, const char *path); /* of such numbers; NaN: there are none */

typedef struct hn_runner_record {
    const char *variant, *unit;
    int better;                      /* as hn_bench_result */
    const char *path;                /* of the number in the results; NULL: x */
    double *x;                       /* [n of results] */
    bool decode, zero_ok;            /* tok/s of single tokens: reading the weights bounds it */
    double scale;                    /* 0: 1 */
    const char *ratio[2];            /* x is the samples of this record of the id, by those of the other; NULL */
    json_t *config, *extra, *memory; /* taken */
    bool raw;                        /* keep the results themselves in it */
    const char *note;
} hn_runner_record;
/* A record of a bunch. Finite numbers only; none: invalid, unless the verdict says why already. */
hone_status hn_runner_add(hn_runner *p, hn_bunch *b, const hn_runner_record *rec, hone_error *err);
/* The verdict of the eight quality prompts at these settings, once per run: makes v valid or invalid. */
hone_status hn_runner_quality(hn_runner *p, hn_verdict *v, hone_error *err);
json_t *hn_runner_config(const hn_runner *p, int32_t n_prompt, int32_t n_gen, const char *sampler);
/* What one operation behind the number at this path allocated, as hn_allocs_json: medians over the processes. */
json_t *hn_bunch_allocs(const hn_bunch *b, const char *path);
json_t *hn_bunch_allocs_of_run(const hn_bunch *b); /* a token, and beside it "prompt" */
json_t *hn_runner_stages(const hn_bunch *b);       /* of the last result */
json_t *hn_runner_memory(const hn_bunch *b);       /* medians of what the results say of memory */
/* All gaps between tokens at this path of the results, pooled: {n, p50, p90, p95, p99, max, mean}; null: there are
 * none. Those of one process are not independent of each other: percentiles describe them, an interval would promise
 * too much. */
json_t *hn_bunch_gaps(const hn_bunch *b, const char *path);
/* Interrupted after some samples: they are recorded, with a note. True: there is something to record. */
bool hn_bunch_some(const hn_bunch *b);
/* Is there a record to be made of it: a number, or that there is none? */
static inline bool hn_bunch_to_record(const hn_bunch *b) { return hn_bunch_some(b) || b->verdict.state == HN_INVALID; }

typedef hone_status hn_bench_run_fn(hn_bench_run *r, const hn_bench_entry *e, hone_error *err);
hn_bench_run_fn hn_run_e2e_clean, hn_run_e2e_gen, hn_run_e2e_kv_on, hn_run_e2e_kv_off, hn_run_e2e_cold,
    hn_run_e2e_cpu; /* bench_e2e.c */
hn_bench_run_fn hn_run_e2e_backend, hn_run_scale_size, hn_run_scale_quant, hn_run_scale_threads,
    hn_run_scale_batch;                               /* bench_scale.c */
hn_bench_run_fn hn_run_e2e_profile;                   /* bench_profile.c */
hn_bench_run_fn hn_run_e2e;                           /* bench_plain.c */
hn_bench_run_fn hn_run_serve_load, hn_run_e2e_stream; /* bench_load.c */

#endif
