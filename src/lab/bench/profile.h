/* profile: where the time of a prompt, of single tokens and of steps of a training goes, operation by operation,
 * with bytes, rates and shares of the roof; what looking costs, and what is left over. */
#ifndef HN_PROFILE_H
#define HN_PROFILE_H

#include "base/base.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#define HN_PROFILE_SCHEMA "hone.profile/1"
/* Looking may cost so much; the operations may leave so much of the time unexplained. */
#define HN_PROFILE_MAX_COST 0.02
#define HN_PROFILE_MAX_REST 0.05

/* Of answers, and of a training: whole steps (without operations of their own) and their three parts. */
typedef enum hn_profile_phase_id {
    HN_PROFILE_PREFILL = 0,
    HN_PROFILE_DECODE,
    HN_PROFILE_STEP,
    HN_PROFILE_FORWARD,
    HN_PROFILE_BACKWARD,
    HN_PROFILE_UPDATE,
    HN_PROFILE_PHASES
} hn_profile_phase_id;
enum { HN_PROFILE_ANSWER = HN_PROFILE_DECODE + 1 }; /* the phases of answers are those before */
typedef enum hn_profile_count {
    HN_COUNT_CYCLES = 0,
    HN_COUNT_INSTRUCTIONS,
    HN_COUNT_CACHE_MISSES,
    HN_COUNTS
} hn_profile_count;
enum { HN_PROFILE_OPS = 48 };

/* Counters of the CPU. To be opened before the context: its threads are counted when they start later. */
typedef struct hn_counters {
    int fd[HN_COUNTS];          /* -1: not to be had */
    const char *why[HN_COUNTS]; /* and why; else NULL */
} hn_counters;
void hn_counters_open(hn_counters *c);
void hn_counters_close(hn_counters *c);
extern const char *const hn_count_names[HN_COUNTS];

typedef struct hn_profile_sum {
    int64_t calls;
    uint64_t ns, bytes;
    double ops_int8, ops_float;
} hn_profile_sum;

typedef struct hn_profile_op {
    const char *name;
    char types[64];             /* of the weights: "Q4_K, Q6_K"; "" none */
    hn_profile_sum all, *layer; /* layer [n_layer + 1]: the last one is "no layer" */
} hn_profile_op;

typedef struct hn_profile_phase {
    int64_t n_call, n_tok;       /* with the hook */
    uint64_t whole_ns, parts_ns; /* entry to return of these calls; their operations */
    int n_op;
    hn_profile_op op[HN_PROFILE_OPS]; /* in order of appearance */
    hn_stats cost;                    /* of ln(time with / time without), over pairs of equal calls; n 0: none */
    double count[HN_COUNTS];          /* per token, without the hook; NaN: unknown */
} hn_profile_phase;

typedef struct hn_profile_call {
    int32_t phase, pos, n_tok;
    uint64_t start_ns, end_ns;
    size_t first_event, n_event;
} hn_profile_call;

typedef struct hn_profile {
    int32_t n_layer;
    bool training; /* which phases there are */
    hn_profile_phase phase[HN_PROFILE_PHASES];
    hone_profile_event *event; /* of the first round, for the trace */
    size_t n_event, cap_event;
    hn_profile_call *call;
    size_t n_call, cap_call;
    int64_t lost;         /* events beyond what was set aside: the sums lack them */
    int64_t not_traced;   /* events left out of the trace alone */
    hn_counters counters; /* why, where count is unknown */
    hn_verdict verdict;   /* HN_INVALID: the logits with the hook differ, or are not finite */
} hn_profile;

typedef struct hn_profile_params {
    int32_t n_prompt, n_gen, depth, rounds; /* rounds >= 1; each runs everything with and without the hook */
    int32_t n_chunk;                        /* tokens per forward pass of the session; 0: unknown */
    size_t max_trace;                       /* events kept for the trace; 0: no trace */
    const hn_counters *counters;            /* NULL: not wanted */
} hn_profile_params;

/* On a session of n_ctx >= depth + n_prompt + n_gen; its sequence 0 is overwritten. Every call is made
 * twice, with the hook and without, in alternating order (ABBA), and the logits compared bit by bit. */
hone_status hn_profile_run(hn_profile *out, hone_session *s, const hone_model *m, const hn_profile_params *p,
                           hone_error *err);
void hn_profile_free(hn_profile *p);
/* For who runs something else: adds an operation to a phase, its time to the phase's parts. */
void hn_profile_add(hn_profile *p, hn_profile_phase *ph, const hone_profile_event *e);

/* How near the roof a sum of operations is: the time its bytes and its operations need at the least
 * (whichever is more) over the time taken. NaN: no roof, or nothing counted. *bound (NULL allowed):
 * "read", "int8", "f32"; NULL. in_cache: the bytes may come from a cache, so reading is no bound. */
double hn_profile_share(const hn_profile_sum *s, const hn_peaks *peaks, int32_t threads, bool in_cache,
                        const char **bound);
/* Could a cache hold what a phase reads per call? Then reading from memory is no bound. */
bool hn_profile_in_cache(const hn_profile_phase *ph, const hn_peaks *peaks);
/* What the hook costs, as a share; ci [2] of 95 %, NaN where there are too few pairs. */
double hn_profile_cost(const hn_profile_phase *ph, double ci[2]);
double hn_profile_rest(const hn_profile_phase *ph); /* share of the time between the operations */

/* {"prefill": {…}, "decode": {…}}, or {"step", "forward", "backward", "update"}; a phase that was not run is null.
 * peaks NULL: no roof. */
json_t *hn_profile_json(const hn_profile *p, const hn_peaks *peaks, int32_t threads, int32_t threads_batch);
/* Trace Event JSON (chrome://tracing, Perfetto): calls hold layers hold operations. malloc'ed. */
hone_status hn_profile_trace(const hn_profile *p, char **text, size_t *n, hone_error *err);
/* One line "phase;layer;operation NANOSECONDS" each, for flame graphs; the rest of the time is a line too. malloc'ed.
 */
hone_status hn_profile_folded(const hn_profile *p, char **text, size_t *n, hone_error *err);

#endif
