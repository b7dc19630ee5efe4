/* lab: measuring and proving. Clocks, statistics, the record of the machine, memory,
 * the quality hash, one measured sample, fresh processes, the history. Knows hone.h
 * and base/ alone; refuses to know options, terminals and exit codes. */
#ifndef HN_LAB_H
#define HN_LAB_H

#include "base/base.h"

#include <jansson.h>
#include <math.h>
#include <sys/types.h>

#define HN_BENCH_SCHEMA "hone.bench/1"

/* ---- clock ------------------------------------------------------------------------- */

uint64_t hn_clock_ns(void); /* CLOCK_MONOTONIC_RAW: the same in every process of this machine */

/* ---- statistics: NaN stands for "not to be had from so few samples" ------------------- */

enum { HN_OUT_LOW_SEVERE, HN_OUT_LOW_MILD, HN_OUT_HIGH_MILD, HN_OUT_HIGH_SEVERE, HN_OUT_CLASSES };

typedef struct hn_stats {
    size_t n;
    double median, mean, min, max;   /* n >= 1 */
    double ci95[2], ci_coverage;     /* order statistics around the median, n >= 6 */
    double sd, cv;                   /* n >= 2; cv = sd / |mean| */
    double mad;                      /* median |x - median|, not scaled; n >= 2 */
    double p90, p95, p99;            /* percentile q: n >= 10 / (1 - q) */
    int outliers[HN_OUT_CLASSES];    /* Tukey's fences at 1.5 and 3 quartile ranges; -1: n < 5 */
} hn_stats;

/* x [n] in any order, all finite; unchanged. HONE_E_NOMEM. */
hone_status hn_stats_of(hn_stats *out, const double *x, size_t n, hone_error *err);
double hn_stats_half_width(const hn_stats *s); /* half of the interval; NaN without one */
/* The 1-based rank k whose interval (x_k, x_{n+1-k}) covers the median with at least
 * `level`; 0: n is too small. *coverage: what it really covers. */
size_t hn_median_rank(size_t n, double level, double *coverage);
json_t *hn_stats_json(const hn_stats *s);

/* ---- JSON ------------------------------------------------------------------------------ */

json_t *hn_lab_num(double x);        /* rounded to six significant decimals; null for NaN */
json_t *hn_lab_str(const char *s);   /* ill-formed UTF-8 is escaped; NULL gives null */

/* ---- memory of this or another process --------------------------------------------------- */

typedef struct hn_memory { /* bytes; from /proc/PID/status, 0 where unknown */
    uint64_t anon;  /* RssAnon: heap, stacks, copied pages */
    uint64_t file;  /* RssFile: pages of mapped files that are resident here */
    uint64_t hwm;   /* VmHWM: most that anon + file + shared ever was */
} hn_memory;
bool hn_memory_read(hn_memory *out, pid_t pid); /* pid 0: this process */

typedef struct hn_mapped { uint64_t mapped, resident; } hn_mapped; /* bytes */
/* Model files (*.gguf, *.hpack, or exactly `path` or `packed`, which may be NULL) mapped by this
 * process, from /proc/self/smaps. */
bool hn_memory_mapped(hn_mapped *out, const char *path, const char *packed);

/* ---- environment ---------------------------------------------------------------------------- */

typedef struct hn_environ {
    char cpu_model[128], microcode[32], kernel[128], machine[32], governor[32], boost[16], thp[32], hypervisor[32];
    char cgroup_cpu[32];
    char compiler[160], flags[256], commit[64];
    int32_t cores, cores_online;
    double load[3];
    int32_t runnable; /* threads running or ready, this one included; -1 unknown */
    uint64_t mem_total, mem_available;
    char hash[9]; /* of what makes two machines comparable: not the load, not the build */
} hn_environ;
void hn_environ_read(hn_environ *e); /* unknown texts are "" */
json_t *hn_environ_json(const hn_environ *e);

typedef struct hn_cpu_ticks { uint64_t total, steal; } hn_cpu_ticks; /* of the whole machine */
bool hn_cpu_ticks_read(hn_cpu_ticks *out);

/* ---- verdict ---------------------------------------------------------------------------------- */

typedef enum hn_validity { HN_UNCHECKED = 0, HN_VALID, HN_INVALID } hn_validity;
typedef struct hn_verdict {
    hn_validity state;
    char reason[512]; /* of INVALID, or why UNCHECKED */
} hn_verdict;
/* The first reason stays. */
void hn_invalid(hn_verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A decode rate cannot exceed read bandwidth / weight bytes per token. roof_gb_s 0: not
 * measured, nothing is said. Returns the share of the roof, NaN without one. */
double hn_check_roof(hn_verdict *v, double decode_tok_s, uint64_t bytes_per_token, double roof_gb_s);

/* ---- logits ---------------------------------------------------------------------------------- */

typedef struct hn_scan {
    int32_t best;    /* greatest logit, ties to the lowest id; -1: there is a NaN or infinity */
    bool finite;     /* no NaN, no infinity */
    bool all_equal;  /* n > 1 and every logit the same number */
} hn_scan;
hn_scan hn_scan_logits(const float *x, int32_t n);

/* Where logits come from: a session, or a fake in the tests. */
typedef struct hn_logits_source {
    int32_t n_vocab;
    /* as hone_decode; logits [n_wanted, n_vocab]; sequences start empty */
    hone_status (*run)(void *arg, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err);
    void *arg;
} hn_logits_source;

/* ---- quality: spec/benchmarking 8, docs/BENCHMARKING.md ---------------------------------------------- */

enum { HN_Q_PROMPTS = 8, HN_Q_STEPS = 64, HN_Q_MAX_PROMPT = 256 };

typedef struct hn_q_prompts {
    int32_t ids[HN_Q_PROMPTS][HN_Q_MAX_PROMPT];
    int32_t n[HN_Q_PROMPTS];
    bool from_text; /* else pseudo-random ids: the model has no tokenizer */
} hn_q_prompts;
/* The eight fixed prompts in the ids of m. */
hone_status hn_q_prompts_make(hn_q_prompts *out, const hone_model *m, hone_error *err);
void hn_q_prompts_random(hn_q_prompts *out, int32_t n_vocab);
extern const char *const hn_q_texts[HN_Q_PROMPTS];

typedef struct hn_quality {
    char hash[24];            /* "q1-TTTTTTTT-LLLLLLLL"; "" when a logit is not a finite number */
    int32_t ids[HN_Q_PROMPTS][HN_Q_STEPS];
    int32_t n_steps;          /* done: HN_Q_STEPS unless stopped by such a logit */
    int32_t n_distinct;       /* different ids in all continuations */
    int32_t n_constant;       /* continuations that are one id repeated */
    hn_verdict verdict;
} hn_quality;
/* together: all prompts in one batch (the same bits, by the engine's contract), else one
 * after the other. Failures of the source are returned, except HONE_E_NUMERIC, which is
 * a verdict. */
hone_status hn_quality_run(hn_quality *out, const hn_logits_source *src, const hn_q_prompts *p, bool together, hone_error *err);
json_t *hn_quality_json(const hn_quality *q, bool from_text);

/* ---- one sample -------------------------------------------------------------------------------------------- */

typedef struct hn_bench_config {
    int32_t n_prompt, n_gen, depth;
} hn_bench_config;

/* Ids of the measured prompts: pseudo-random, the same for everyone; control and empty
 * tokens left out where the model has a tokenizer. ids [n] from place `first` of the stream. */
void hn_bench_ids(int32_t *ids, int32_t n, int32_t first, const hone_model *m);

typedef struct hn_sample { /* NaN: not measured */
    double load_ms, ttft_ms, prefill_tok_s, decode_tok_s;
    double peak_anon_mb, hwm_mb, mapped_mb, model_resident_mb;
    double cpu_use, steal_pct;
    int64_t major_faults, switches; /* of the measured part; switches: involuntary */
    int32_t *ids;                   /* [n_gen], malloc'ed */
    int32_t n_ids;
    bool constant;                  /* one id repeated, at least HN_Q_STEPS / 4 times */
    hn_verdict verdict;             /* numbers only: HN_INVALID or HN_UNCHECKED */
} hn_sample;

/* Measures on a fresh session of n_ctx >= depth + n_prompt + n_gen: fills depth tokens, then
 * prefills n_prompt and generates n_gen greedily. Memory and load are the caller's to add. */
hone_status hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c, hone_error *err);
void hn_sample_free(hn_sample *s);
json_t *hn_sample_json(const hn_sample *s);

/* ---- fresh processes ------------------------------------------------------------------------------------------ */

typedef struct hn_child {
    json_t *result;          /* what it printed on stdout, or NULL */
    int exit_code;           /* -1: killed by a signal */
    int signal;
    uint64_t peak_anon;      /* bytes, seen from outside */
    char message[512];       /* end of what it wrote on stderr */
} hn_child;
/* Runs this program again with argv (argv[0] is free, ends with NULL), waits for it, reading
 * its one JSON object. A process that fails is a result, not an error: HONE_OK. stop (NULL
 * allowed) is asked regularly; true kills the child: HONE_E_INTERRUPTED. */
hone_status hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
void hn_child_free(hn_child *c);
/* Why this child gave no result, in words: "killed by signal 11 (Segmentation fault)". */
void hn_child_why(const hn_child *c, char *dst, size_t cap);

/* ---- records and history ---------------------------------------------------------------------------------------- */

/* benchmarks/NAME, or NAME itself when it has a slash; .md or .jsonl at the end is dropped.
 * HONE_E_ARG: nothing left. */
hone_status hn_record_base(char *dst, size_t cap, const char *name, hone_error *err);
/* Appends one line of JSON to BASE.jsonl: locked, synced, and after a line that was cut off,
 * on a line of its own. Folders are made. */
hone_status hn_record_append(const char *base, json_t *record, hone_error *err);
/* Appends the history row of a record to BASE.md, with a header when the file is new. row
 * (NULL allowed) receives it. */
hone_status hn_history_append(const char *base, json_t *record, char *row, size_t cap, hone_error *err);
void hn_history_row(char *dst, size_t cap, json_t *record);
extern const char hn_history_header[];

void hn_utc_now(char *dst, size_t cap);      /* 2025-01-31T12:34:56Z */
/* SHA-256 in hex of a file's bytes; hex [65]. */
hone_status hn_file_sha256(char *hex, const char *path, hone_error *err);

#endif
