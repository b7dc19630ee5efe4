/* bench: the catalogue of what can be measured, and what its entries share: settings,
 * the model, calibrated loops, checks, records. Every entry is a row of a table; a row
 * whose subject this build lacks says so and has no function. Knows hone.h, base/ and
 * lab/ alone; only entries that measure a room itself look into it (bench_*.c). */
#ifndef HN_BENCH_H
#define HN_BENCH_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/allocs.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/verdict.h"

#define HN_SUITE_SCHEMA "hone.suite/1"

enum {
    HN_BENCH_WARMUPS = 5,
    HN_BENCH_SAMPLES = 10,
    HN_BENCH_QUICK_WARMUPS = 1,
    HN_BENCH_QUICK_SAMPLES = 6,
    HN_BENCH_MAX_SAMPLES = 10000
};

/* ---- the catalogue ---------------------------------------------------------------------- */

typedef struct hn_bench_run hn_bench_run;
typedef struct hn_bench_entry hn_bench_entry;
struct hn_bench_entry {
    const char *id;     /* "tok.encode" */
    const char *what;   /* one line for `hone lab list` */
    const char *unit;   /* of the samples: "us" "ms" "ns" "s" "MB" "GB/s" "GFLOP/s" "TOPS" "tok/s" "x" "%" */
    const char *target; /* of the specification, as text; NULL: none */
    char method;        /* K calibrated loop, O in this process, P fresh processes, S server, T training step */
    bool higher;        /* is better */
    bool model;         /* needs -m */
    const char *suites; /* words of "quick full ci"; "": none */
    const char *needs;  /* NULL; else what this build lacks to measure it: run is NULL */
    const char *uses;   /* words: options of hone bench that change what it measures, beside those all rows of its kind
                         * use (hn_bench_uses); NULL: none */
    const char *sets;   /* words: options that rows of its kind use, and that it chooses itself; NULL: none */
    int32_t least;      /* tokens of a prompt or generation asked for; 0: 1 */
    bool plain;         /* what hone bench measures without an id; its record holds many metrics (hn_plain_metrics) */
    float cost;         /* seconds at the defaults, roughly: for the remaining time alone; 0: 1 */
    /* Measures, and hands over one record or more by hn_bench_add. HONE_E_INTERRUPTED: stopped;
     * what was added stays. HONE_E_UNSUPPORTED: this model has nothing of the kind (said, not a failure). */
    hone_status (*run)(hn_bench_run *r, const hn_bench_entry *e, hone_error *err);
};

#define HN_BENCH_SESSION "threads-batch chunk kv allow-paging" /* options of what runs a model; all of method P do */

/* Tables, each ending with id NULL. */
extern const hn_bench_entry hn_bench_text[];     /* bench_text.c: tok.* */
extern const hn_bench_entry hn_bench_tensor[];   /* bench_tensor.c: tensor.* */
extern const hn_bench_entry hn_bench_kernels[];  /* bench_kernels.c: kern.* */
extern const hn_bench_entry hn_bench_attn[];     /* bench_attn.c: kern.attn*, mem.kvlayout.* */
extern const hn_bench_entry hn_bench_machine[];  /* bench_machine.c: disp.*, mem.* */
extern const hn_bench_entry hn_bench_layer[];    /* bench_layer.c: layer.* */
extern const hn_bench_entry hn_bench_sampling[]; /* bench_sampling.c: sample.* */
extern const hn_bench_entry hn_bench_training[]; /* bench_train.c: train.* */
extern const hn_bench_entry hn_bench_process[];  /* bench_process.c: load, e2e, memory, quality: fresh processes */
extern const hn_bench_entry hn_bench_absent[];   /* bench_list.c: what this build lacks */

/* The i-th entry of all tables, in the order of the catalogue; NULL behind the last. */
const hn_bench_entry *hn_bench_at(size_t i);
const hn_bench_entry *hn_bench_find(const char *id); /* NULL: no such id */
const hn_bench_entry *hn_bench_plain(void);          /* the row that is so */
/* Does this option of hone bench change what the row measures? */
bool hn_bench_uses(const hn_bench_entry *e, const char *option);
bool hn_bench_id_uses(const char *id, const char *option); /* a row, a group, a pattern, a single kernel */
/* Is it an option that some benchmarks use and others do not? */
bool hn_bench_is_particular(const char *option);
/* May it be given this word, "--NAME=VALUE"? */
bool hn_bench_takes(const char *id, const char *word);
bool hn_bench_in_suite(const hn_bench_entry *e, const char *suite);
/* Does `pattern` mean this id? An id, a group ("tok", "kern.attn": all below it), or a pattern of fnmatch. */
bool hn_bench_matches(const char *pattern, const char *id);

/* ---- one run of some entries ----------------------------------------------------------------- */

typedef struct hn_bench_settings {
    const char *model, *packed, *pre; /* as on the command line; NULL: not given */
    int32_t threads, threads_batch;   /* 0: not given */
    const char *cpu;                  /* NULL: HONE_CPU or the best */
    const char *kv;                   /* "f16" "f32" "q8_0" */
    int32_t chunk;                    /* 0: the engine's */
    bool allow_paging;
    int32_t n_prompt, n_gen, depth; /* of e2e benches; -1: not given, each has its own */
    int32_t warmups, samples;       /* -1: not given: 5 and 10, quick: 1 and 6 */
    double warm_up_s, measure_s;    /* at least so long each; 0: as long as the counts take */
    bool quick, no_quality;
    uint64_t seed;              /* of orders and draws; 0 is a seed */
    uint64_t prompt_seed;       /* which prompt e2e is given; 0: everyone's */
    const char *counts;         /* comma list for benches that have such; NULL: all */
    const char *title, *change; /* for the record */
    json_t *(*cautions)(void);  /* texts for the notes of a plain record, a new array; NULL: none */
    const char *const
        *child_args;      /* the settings above as options for `hone bench _…` (hn_child_run), ends with NULL */
    bool (*stop)(void *); /* NULL allowed */
    /* Called now and then. id: of the entry at work; done: share of the whole run in [0, 1]; left_s: NaN at first. */
    void (*progress)(void *arg, const char *id, double done, double left_s);
    void *progress_arg;
    /* Takes each record as soon as it is there: to print and to keep it. Borrowed. A failure is returned
     * by hn_bench_add only when it is HONE_E_INTERRUPTED. */
    hone_status (*sink)(void *arg, const hn_bench_entry *e, json_t *record, hone_error *err);
    void *sink_arg;
} hn_bench_settings;

struct hn_bench_run {
    hn_bench_settings set; /* with everything decided: threads, samples, … */
    const char *level;     /* kernels in use: "avx512" */
    hn_environ env;
    hn_peaks peaks;
    char no_roof[1100]; /* "": peaks is the roof; else why there is none */
    json_t *records;    /* array of all so far */
    int32_t n_invalid;  /* of them */
    int32_t n_lost;     /* that the sink could not keep */
    /* opened at first use */
    hone_model *model;
    hone_model_info info; /* texts in it die with the model: see model_json */
    hone_context *ctx;
    json_t *model_json;
    bool packed; /* weights of the model come from a packed file, some at least: */
    char weights[HN_WEIGHTS_WORDS];
    /* where we are */
    const hn_bench_entry *at;
    double cost_done, cost_all, at_done; /* at_done: of 1, of the running entry */
    uint64_t t0_ns;
    bool free_warmups, free_samples; /* their number was not asked for */
    bool told;                       /* a process that failed has said on stderr why */
    json_t *quality;                 /* of the model at these settings, once known (bench_process.c) */
};

/* Decides what is not given. r lives until hn_bench_end. HONE_E_ARG: unknown level, bad numbers. */
hone_status hn_bench_begin(hn_bench_run *r, const hn_bench_settings *s, hone_error *err);
void hn_bench_end(hn_bench_run *r);
/* Runs one entry, of which there are `cost_all` worth in this run (set it before). */
hone_status hn_bench_run_one(hn_bench_run *r, const hn_bench_entry *e, hone_error *err);
/* Why an entry has no subject in the model it was given: HONE_E_UNSUPPORTED. */
hone_status hn_bench_not_recurrent(const hn_bench_entry *e, const char *why, hone_error *err);
hone_status hn_bench_only_recurrent(const hn_bench_entry *e, hone_error *err);
/* Says that `done` of 1 of the running entry is done; true: stop (interrupted). */
bool hn_bench_step(hn_bench_run *r, double done);

/* Opened once and kept. Before fresh processes run it is closed (a mapped file cannot be dropped from memory). */
hone_status hn_bench_model(hn_bench_run *r, hone_model **out, hone_error *err);
void hn_bench_model_close(hn_bench_run *r);
void hn_bench_adopt(hn_bench_run *r, hone_model *m); /* takes a model that was opened as the settings say */
hone_status hn_bench_context(hn_bench_run *r, hone_context **out, hone_error *err);
hone_kv_cache_type hn_bench_cache(const hn_bench_run *r); /* of the settings */
/* A session on both, of n_ctx positions and n_seq sequences, as the settings want it; the caller frees it. */
hone_status hn_bench_session(hn_bench_run *r, hone_session **out, int32_t n_ctx, int32_t n_seq, hone_error *err);

/* ---- a result ------------------------------------------------------------------------------------ */

typedef enum hn_bench_roof { HN_ROOF_NONE = 0, HN_ROOF_READ, HN_ROOF_INT8, HN_ROOF_F32 } hn_bench_roof;

/* What the calls of a loop leave behind them: looked at when no clock runs. arg: as of the calls. */
typedef struct hn_bench_left {
    void (*wipe)(void *arg);     /* spoils all of it; NULL: calls go on from what the one before left */
    uint64_t (*hash)(void *arg); /* of all of it; NULL: turn says what is wrong */
    /* Before each stretch of calls, and behind the last one (calls 0): looks at what the stretch before left, and gives
     * the one to come what no call has met, so that an answer that is remembered is not the answer. NULL: nothing */
    void (*turn)(void *arg, int64_t calls);
} hn_bench_left;

/* Zero it, fill what there is, hand it to hn_bench_add. */
typedef struct hn_bench_result {
    const char *variant;   /* what the bench varies, in a word: "short", "packed"; NULL */
    json_t *config;        /* taken; more that tells this record from others of its id ("columns", "type", "n"); NULL */
    const char *unit;      /* NULL: the entry's */
    int better;            /* 0: the entry's; 1: higher; -1: lower */
    const double *samples; /* in unit, finite and above 0 unless zero_ok */
    size_t n;
    bool zero_ok; /* a sample may be 0 or less (differences) */
    int32_t warmups;
    int32_t threads; /* that worked; 0: those of the run */
    /* for the roof: of one call. How long a call took is known from the unit: times, and rates of bytes
     * (GB/s), operations (GFLOP/s, TOPS) and tokens (tok/s: a call is a token). */
    double bytes, ops;
    bool int8;            /* ops are of 8-bit integers, else of f32 */
    double rotated_bytes; /* calls take turns on so much memory: reading bounds them; 0: a cache may hold it all */
    double cpu_use;       /* CPU time / (wall time · threads) meanwhile; 0: unknown */
    hn_verdict verdict;   /* HN_VALID: the outputs were proved; HN_UNCHECKED: reason why there was nothing to check */
    int32_t voided;
    int64_t parts;          /* operations in one call, of which a sample tells one; 0: 1 */
    json_t *allocs;         /* taken; of one operation (hn_allocs_json); NULL: not counted */
    json_t *memory, *extra; /* taken; objects; NULL */
    json_t *notes;          /* taken; array of texts; NULL */
    const char *quality;    /* hash, or NULL */
    /* of hn_bench_loop: the call that was proved has left its output, and each timed one leaves the same; NULL */
    const hn_bench_left *left;
    json_t *full_samples; /* taken; array of objects to keep beside the numbers (processes), in extra; NULL */
} hn_bench_result;

/* Statistics, judgement (a rate above the roof, a sample that is no time), the record, the sink. Frees what
 * res holds, whatever happens. An invalid result is a record too: HONE_OK. */
hone_status hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err);
/* A record as it is: takes it, keeps it, hands it to the sink. */
hone_status hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid, hone_error *err);
void hn_bench_note(hn_bench_result *res, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hn_bench_result_free(hn_bench_result *res); /* of one that is not added */

/* ---- the plain record: many metrics of one run (bench_plain.c) ------------------------------------- */

typedef struct hn_plain_metric {
    const char *key, *label, *unit;
    bool higher; /* is better */
} hn_plain_metric;
extern const hn_plain_metric hn_plain_metrics[]; /* ends with key NULL */

/* ---- calibrated loops ---------------------------------------------------------------------------- */

/* Does the work `calls` times. */
typedef void hn_bench_fn(void *arg, int64_t calls);

typedef struct hn_bench_timing {
    double *s; /* [n] seconds of one call, one per epoch; malloc'ed */
    size_t n;
    int64_t calls;    /* in each epoch */
    int32_t warmups;  /* epochs before the first sample, calibration not counted */
    double cpu_use;   /* CPU time / (wall time · threads) */
    double steal_pct; /* NaN: unknown */
    int64_t major_faults;
    hn_allocs allocs; /* of one epoch, the last before the clock counts */
    char lie[160];    /* why its times are not believed; "" */
} hn_bench_timing;

/* Epochs of at least 1 ms and 1000 ticks of the clock; warm-ups and samples as the settings say. left (NULL allowed)
 * wipes before any call, and again before the first that is timed. HONE_E_INTERRUPTED: stopped; HONE_E_NOMEM. */
hone_status hn_bench_time(hn_bench_run *r, hn_bench_timing *out, hn_bench_fn *fn, void *arg, int32_t threads,
                          const hn_bench_left *left, hone_error *err);
void hn_bench_timing_free(hn_bench_timing *t);
/* What is around the process (another priority, a limit) is noted; code of others in it proves nothing any more: a
 * valid result becomes one that was not checked. note: called with each sentence. */
void hn_bench_judge_around(const hn_bench_run *r, hn_verdict *v, void (*note)(void *arg, const char *text), void *arg);
/* Fills samples, n, warmups, cpu_use and the notes on what disturbed: each sample is value(seconds) = scale·s, or
 * scale/s for rates. The numbers are put into t->s. */
void hn_bench_use(hn_bench_result *res, hn_bench_timing *t, double scale, bool rate);

/* By which clock a record's samples stand: extra.clock {s, calls, scale, rate}: calls in each sample, seconds of all.
 * Claims hold the samples against it, and a comparison holds it against how long the process ran. */
void hn_bench_clock(json_t *extra, double seconds, int64_t calls, double scale, bool rate);

/* hn_bench_time, hn_bench_use, `after` (NULL allowed: it looks at what the calls left), res->left, hn_bench_add. With
 * an invalid res nothing is timed. Frees what res holds. */
hone_status hn_bench_loop(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hn_bench_fn *fn, void *arg,
                          double scale, bool rate,
                          void (*after)(void *arg, hn_bench_result *res, const hn_bench_timing *t), hone_error *err);

double hn_bench_median(const double *x, size_t n); /* NaN without any, or without memory */

/* The compiler must believe that someone reads p. */
static inline void hn_bench_sink(const void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

#endif
