/* lab: measuring and proving. Clocks, statistics, the record of the machine, its peaks,
 * memory, the quality hash, one measured sample, fresh processes, single kernels, the
 * history. Knows hone.h and base/ alone, except where it measures the rooms themselves
 * (peaks*.c, kern*.c); refuses to know options, terminals and exit codes. */
#ifndef HN_LAB_H
#define HN_LAB_H

#include "base/file.h"
#include "lab/json_text.h"

#include <math.h>
#include <sys/types.h>

#define HN_BENCH_SCHEMA "hone.bench/1"

/* ---- clock ------------------------------------------------------------------------- */

uint64_t hn_clock_ns(void); /* CLOCK_MONOTONIC_RAW: the same in every process of this machine */
/* Another clock in its place, for tests that must not depend on how fast a machine is; it has to advance from one
 * reading to the next. NULL: the machine's again. Not while another thread measures. */
void hn_clock_set(uint64_t (*now)(void));

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

typedef struct hn_mapped { /* bytes */
    uint64_t mapped, resident;
    uint64_t huge;   /* of those resident, mapped by whole pages of the page table's second level */
    bool knows_huge; /* the system says how many these are */
} hn_mapped;
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

/* ---- peaks: the measured roof of this machine -------------------------------------------------- */

#define HN_PEAKS_SCHEMA "hone.peaks/1"
enum { HN_PEAK_POINTS = 24 }; /* thread counts measured: 1 to 8, then doubling, then all */

typedef enum hn_peak_kind { HN_PEAK_READ_BW = 0, HN_PEAK_INT8, HN_PEAK_F32, HN_PEAK_BF16, HN_PEAK_DISPATCH, HN_PEAK_BARRIER, HN_PEAK_KINDS } hn_peak_kind;

typedef struct hn_peak_point {
    int32_t threads;
    /* GB/s, 10^9 operations a second, or ns */
    double best;                 /* the roof: reached three times, within 3 %; of times the least */
    double most;                 /* reached at all: a rate above it is wrong */
    double median, spread;       /* of the fastest pattern; spread: (max - min) / median */
    int32_t streams, ahead;      /* reading: that pattern */
    double cpu_use;              /* CPU time / (wall time · threads) */
} hn_peak_point;

typedef struct hn_peaks {
    char hash[9], level[16], ts[32], cpu_model[128], kernel[128];
    char how[HN_PEAK_KINDS][80];  /* "vpdpbusd, 512 bits"; "": this CPU has none */
    int32_t n[HN_PEAK_KINDS];
    hn_peak_point at[HN_PEAK_KINDS][HN_PEAK_POINTS]; /* ascending threads */
    int32_t cores;
    double clock_ghz[2];          /* least and most seen; 0: unknown */
    uint64_t cache_bytes;         /* last-level cache; 0: unknown */
    uint64_t buffer_bytes;        /* what was read */
    double huge_pages;            /* share of the buffer in huge pages */
    double load, steal_pct;
    char cpus[64];                /* where the threads were put: "0,1" */
    bool bound;                   /* a kernel above these is wrong, not fast */
    bool quick;                   /* small sizes: shows that it works, says nothing */
    char doubts[320];             /* "": a quiet measurement; else what disturbed it */
} hn_peaks;

typedef struct hn_peaks_params {
    int32_t n_threads;            /* 0: all cores */
    const char *cpu;              /* NULL: as hone_context_params */
    bool quick;
    bool (*stop)(void *);         /* NULL allowed */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* NULL allowed */
    void *progress_arg;
} hn_peaks_params;

/* Measures. HONE_E_NUMERIC: what was computed is not what the work gives, or a rate beyond
 * what such a machine can do: nothing of it is to be believed. */
hone_status hn_peaks_measure(hn_peaks *out, const hn_peaks_params *p, hone_error *err);
/* Is this physically possible and complete? HONE_E_NUMERIC says why not. */
hone_status hn_peaks_check(const hn_peaks *p, hone_error *err);
json_t *hn_peaks_json(const hn_peaks *p);
/* HONE_E_FORMAT names the field. */
hone_status hn_peaks_parse(hn_peaks *out, json_t *o, hone_error *err);

/* Where the peaks of a level on this machine are kept: $XDG_STATE_HOME/hone, else
 * ~/.local/state/hone. HONE_E_IO: no home. */
hone_status hn_peaks_path(char *dst, size_t cap, const hn_environ *e, const char *level, hone_error *err);
/* Replaces the file at once, or leaves it. Quick ones are refused. */
hone_status hn_peaks_store(const hn_peaks *p, const char *path, hone_error *err);
/* HONE_E_IO: none stored. HONE_E_FORMAT: damaged. HONE_E_UNSUPPORTED: of another machine or
 * level. The message says how to get them. */
hone_status hn_peaks_load(hn_peaks *out, const char *path, const hn_environ *e, const char *level, hone_error *err);

/* The roof at so many threads: the most of all counts up to the next one measured. 0: none. */
double hn_peaks_at(const hn_peaks *p, hn_peak_kind kind, int32_t threads);
double hn_peaks_most(const hn_peaks *p, hn_peak_kind kind, int32_t threads); /* the same of hn_peak_point.most */
/* The fewest threads that read within 3 % of what any number of them reads: more only wait
 * for memory when tokens come one at a time. 0: not measured. */
int32_t hn_peaks_decode_threads(const hn_peaks *p);
/* One line for reports: level, date, doubts. */
void hn_peaks_say(const hn_peaks *p, char *dst, size_t cap);
uint64_t hn_cache_bytes(void);    /* last-level cache of CPU 0; 0: unknown */

/* Bytes that must move to decode one token: weights read; a recurrent state read and written. */
static inline uint64_t hn_bytes_per_token(const hone_model_info *info) { return info->bytes_per_token + 2 * info->state_bytes; }

/* What a sequence is remembered in, in words: "kv f16", or of a recurrent model "state f32". */
static inline const char *hn_kv_words(char dst[24], const hone_model_info *info, const char *kv)
{
    if (info->state_bytes) snprintf(dst, 24, "state f32");
    else snprintf(dst, 24, "kv %.15s", kv ? kv : "?");
    return dst;
}

/* What one token asks of a machine, by the types of the weights. */
typedef struct hn_work {
    uint64_t bytes_per_token;          /* moved to decode one token */
    double int8_layers, float_layers;  /* weights multiplied for each token, by the arithmetic of their type */
    double int8_head, float_head;      /* and once, for the logits */
} hn_work;
/* From the tensor directory of a model file; the rest is hn_work_add's. */
hone_status hn_work_of(hn_work *out, const char *path, hone_error *err);
/* What the file does not say: bytes of a token, and a recurrent model's passes over its state. */
void hn_work_add(hn_work *w, const hone_model_info *info);
/* Seconds that the multiplications of a prompt take at the roof, or at the most; NaN without. */
double hn_work_prefill_s(const hn_work *w, const hn_peaks *p, int32_t threads, int32_t n_tok, bool most);

/* A rate this much above the roof is wrong: measurements of the roof have errors too. */
#define HN_ROOF_TOLERANCE 0.05

/* A decode rate cannot exceed read bandwidth / weight bytes per token, except for what a cache
 * of cache_bytes holds from token to token: against most_gb_s. roof_gb_s 0: not measured, nothing is
 * said. Returns the share of the roof; NaN without one, or when a cache could hold half of the weights. */
double hn_check_roof(hn_verdict *v, double decode_tok_s, uint64_t bytes_per_token, double roof_gb_s, double most_gb_s, uint64_t cache_bytes);
/* Work that took s, and takes least_s at the very least: NaN says nothing. */
void hn_check_compute(hn_verdict *v, const char *what, double least_s, double s);

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
    double *gap_ms;                 /* [n_gaps] between tokens, malloc'ed */
    int32_t *ids;                   /* [n_gen], malloc'ed */
    int32_t n_ids, n_gaps;
    json_t *evidence;               /* what the machine did meanwhile (lab/sample.h), or NULL */
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

/* ---- single kernels -------------------------------------------------------------------------------------------- */

#define HN_KERN_SCHEMA "hone.kern/1"
enum { HN_KERN_ID = 96, HN_KERN_SAMPLES = 64 };

typedef enum hn_kern_kind { HN_KERN_GEMV = 0, HN_KERN_GEMM, HN_KERN_ATTN_DECODE, HN_KERN_ATTN_PREFILL, HN_KERN_WKV7, HN_KERN_WKV6, HN_KERN_NORM, HN_KERN_SILU, HN_KERN_EXP,
                            HN_KERN_LAYER_NORM, HN_KERN_Q256, HN_KERN_Q32, HN_KERN_ROPE, HN_KERN_DECODE, HN_KERN_ENCODE, HN_KERN_KINDS } hn_kern_kind;

typedef struct hn_kern {
    char id[HN_KERN_ID];  /* "kern.gemv.Q4_K.8192x2048", rows × row length */
    hn_kern_kind kind;
    int32_t type;         /* GGUF type id; -1: none */
    int64_t n[4];         /* products: n_out, n_in; attention: n_head, n_head_kv, d, positions; wkv: n_head, d, tokens; rows: n; rope: n_head, d */
} hn_kern;

/* What ids mean. HONE_E_ARG: no such kernel, or a shape that its type cannot have. */
hone_status hn_kern_parse(hn_kern *out, const char *id, hone_error *err);
/* Every kernel at the shapes of a model preset; *out malloc'ed. HONE_E_ARG: unknown preset. */
hone_status hn_kern_list(hn_kern **out, size_t *n, const char *preset, hone_error *err);
const char *hn_kern_about(hn_kern_kind k); /* what, unit and method for `hone lab list` */

typedef struct hn_kern_config {
    int32_t threads, columns; /* columns: of products; others ignore it */
    bool packed;
    int32_t n_samples;        /* 1 … HN_KERN_SAMPLES */
} hn_kern_config;

typedef struct hn_kern_result {
    hn_kern_config config;
    char level[16];
    double sample_s[HN_KERN_SAMPLES]; /* seconds of one call */
    int64_t calls;            /* in each sample */
    hn_stats time;            /* of them, in seconds */
    double cpu_use;           /* CPU time / (wall time · threads) meanwhile: below 1, something else ran */
    double bytes, ops;        /* of one call: read from memory; multiplications and additions */
    bool integers;            /* ops of int8, else of f32 */
    double rotated_bytes;     /* calls take turns on so much; 0: the same data each time */
    double rmse;              /* of encoding, relative; else NaN */
    double rate;              /* in unit, at the median */
    const char *unit;         /* "GB/s" "TOPS" "GFLOP/s" "us" */
    double share;             /* of the roof; NaN: there is none, or it is not known */
    const char *roof;         /* "read" "int8" "f32": which bounds; or NULL */
    hn_verdict verdict;
} hn_kern_result;

/* A kernel with its data, kept from configuration to configuration. */
typedef struct hn_kern_bench hn_kern_bench;
hone_status hn_kern_open(hn_kern_bench **out, const hn_kern *k, const char *cpu, hone_error *err);
void hn_kern_close(hn_kern_bench *b);
bool hn_kern_has_packed(const hn_kern_bench *b);
/* Compares with the scalar level, times, compares again. Outputs that differ: HONE_OK and an
 * invalid result without times. peaks NULL: no roof. stop as in hn_child_run. */
hone_status hn_kern_measure(hn_kern_result *out, hn_kern_bench *b, const hn_kern_config *c, const hn_peaks *peaks, bool (*stop)(void *), hone_error *err);
json_t *hn_kern_json(const hn_kern *k, const hn_kern_result *r);

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
