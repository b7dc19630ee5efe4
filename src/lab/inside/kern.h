/* kern: single kernels, compared with the scalar level and timed (kern_run.c), by ids that
 * name shapes (kern.c). */
#ifndef HN_KERN_H
#define HN_KERN_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "lab/bench/bench.h"

enum { HN_KERN_ID = 96, HN_KERN_SAMPLES = 64 };

typedef enum hn_kern_kind {
    HN_KERN_GEMV = 0,
    HN_KERN_GEMM,
    HN_KERN_ATTN_DECODE,
    HN_KERN_ATTN_PREFILL,
    HN_KERN_WKV7,
    HN_KERN_WKV6,
    HN_KERN_NORM,
    HN_KERN_SILU,
    HN_KERN_EXP,
    HN_KERN_LAYER_NORM,
    HN_KERN_Q256,
    HN_KERN_Q32,
    HN_KERN_ROPE,
    HN_KERN_DECODE,
    HN_KERN_ENCODE,
    HN_KERN_KINDS
} hn_kern_kind;

typedef struct hn_kern {
    char id[HN_KERN_ID]; /* "kern.gemv.Q4_K.8192x2048", rows × row length */
    hn_kern_kind kind;
    int32_t type; /* GGUF type id; -1: none */
    int64_t n[4]; /* products: n_out, n_in; attention: n_head, n_head_kv, d, positions; wkv: n_head, d, tokens; rows: n;
                     rope: n_head, d */
} hn_kern;
static inline bool hn_kern_is_product(const hn_kern *k) { return k->kind == HN_KERN_GEMV || k->kind == HN_KERN_GEMM; }

/* What ids mean. HONE_E_ARG: no such kernel, or a shape that its type cannot have. */
hone_status hn_kern_parse(hn_kern *out, const char *id, hone_error *err);
/* Every kernel at the shapes of a model preset; *out malloc'ed. HONE_E_ARG: unknown preset. */
hone_status hn_kern_list(hn_kern **out, size_t *n, const char *preset, hone_error *err);
const char *hn_kern_about(hn_kern_kind k); /* what, unit and method for `hone lab list` */

typedef struct hn_kern_config {
    int32_t threads, columns; /* columns: of products; others ignore it */
    bool packed;
    int32_t n_samples; /* 1 … HN_KERN_SAMPLES */
} hn_kern_config;

typedef struct hn_kern_result {
    hn_kern_config config;
    char level[16];
    double sample_s[HN_KERN_SAMPLES]; /* seconds of one call */
    int64_t calls;                    /* in each sample */
    hn_allocs allocs;                 /* of so many calls, before the clock runs */
    hn_stats time;                    /* of them, in seconds */
    double cpu_use;                   /* CPU time / (wall time · threads) meanwhile: below 1, something else ran */
    double bytes, ops;                /* of one call: read from memory; multiplications and additions */
    bool integers;                    /* ops of int8, else of f32 */
    double rotated_bytes;             /* calls take turns on so much; 0: the same data each time */
    double rmse;                      /* of encoding, relative; else NaN */
    double rate;                      /* in unit, at the median */
    const char *unit;                 /* "GB/s" "TOPS" "GFLOP/s" "us" */
    double share;                     /* of the roof; NaN: there is none, or it is not known */
    const char *roof;                 /* "read" "int8" "f32": which bounds; or NULL */
    bool hashed;                      /* all but rotations, which have another output each time: */
    uint64_t output;                  /* of all bits of the output, by any level, layout and threads */
    hn_verdict verdict;
} hn_kern_result;

/* A kernel with its data, kept from configuration to configuration. */
typedef struct hn_kern_bench hn_kern_bench;
hone_status hn_kern_open(hn_kern_bench **out, const hn_kern *k, const char *cpu, hone_error *err);
void hn_kern_close(hn_kern_bench *b);
bool hn_kern_has_packed(const hn_kern_bench *b);
/* Compares with the scalar level, times, compares again. Outputs that differ: HONE_OK and an
 * invalid result without times. peaks NULL: no roof; who is beyond them has them measured
 * again (hn_peaks_again). stop as in hn_child_run. */
hone_status hn_kern_measure(hn_kern_result *out, hn_kern_bench *b, const hn_kern_config *c, hn_peaks *peaks,
                            bool (*stop)(void *), hone_error *err);
json_t *hn_kern_json(const hn_kern *k, const hn_kern_result *r);

/* A measurement of hn_kern_measure as a record; e: NULL: of the kernel's own id. */
hone_status hn_bench_add_kern(hn_bench_run *r, const hn_bench_entry *e, const hn_kern *k, const hn_kern_result *res,
                              const char *variant, hone_error *err);

#endif
