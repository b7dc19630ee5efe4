/* side_priv: what the files of a side share: sides.c (what words mean), side_measure.c (one measurement) and
 * side_quality.c (its answers). Nobody else includes it. */
#ifndef HN_SIDE_PRIV_H
#define HN_SIDE_PRIV_H

#include "lab/judge/asker.h"
#include "lab/judge/side_commit.h"
#include "lab/judge/sides.h"
#include "lab/inside/kern.h"
#include "lab/quality/paths.h"

enum { HN_SIDE_KEYS = 16, HN_SIDE_ENV = 8 };

typedef enum hn_side_kind { HN_SIDE_SELF, HN_SIDE_BINARY, HN_SIDE_COMMIT, HN_SIDE_COMMAND } hn_side_kind;

struct hn_side {
    hn_side_params p;
    hn_side_kind kind;
    char *label, *words; /* as given; cut into the pieces below */
    const char *key[HN_SIDE_KEYS], *value[HN_SIDE_KEYS];
    int n_keys;
    const char *env[HN_SIDE_ENV]; /* "NAME=VALUE" */
    int n_env;
    char program[HN_SIDE_PATH];
    char version[64], commit[64];
    int dirty;               /* -1: not known */
    char hash[24], why[512]; /* of quality, once asked for */
    char older[24];          /* the same by the older kind of hash; "" */
    hn_outer outer;          /* and what else it answered then */
    json_t *detail;          /* which ways were gone then, in its quality_detail */
    const hn_target *asked;  /* the target that was asked for them */
    bool can_ask;            /* takes --prompt-seed, and proves its answers */
    bool can_walk;           /* has the hash of every way of computing, q2 */
    uint64_t draw;           /* of the hash, that both sides are given; 0: each draws for itself */
    bool can_talk, talks;    /* answers what is asked through a pipe (asker.h); so it is asked */
    hn_asker *asker;         /* of the model asked last, `asked_of` */
    const char *asked_of;
    uint64_t series, n_asked; /* of prompts; questions so far */
    hn_kern kern;
    hn_kern_bench *bench; /* resident */
};

const char *hn_side_config(const hn_side *s, const char *key); /* the value that counts, or NULL */

/* ---- its program ------------------------------------------------------------------------------- */

typedef struct hn_side_command {
    hn_argv argv;
    const char *env[HN_SIDE_ENV + 2];
    char pad[4200];
} hn_side_command;

/* Its environment for one run: the side's own, and a word of changing length that moves the stack of the program a
 * little (Mytkowicz et al. 2009 show what that may do to its speed). */
void hn_side_env(hn_side_command *c, const hn_side *s, uint64_t salt);
/* The side's own alone: what people start tells nobody that it is compared. */
void hn_side_own_env(hn_side_command *c, const hn_side *s);
/* What of a bench is run: it, the hash of its model's answers, or its measured process alone, which is asked. */
typedef enum hn_run_kind { HN_RUN_BENCH, HN_RUN_QUALITY, HN_RUN_ASKED } hn_run_kind;
/* PROGRAM bench [ID] -m MODEL … --json. The plain run is asked for without an id, which older programs know too. What
 * a side says itself replaces what is said of both. */
hone_status hn_side_bench(hn_side_command *c, const hn_side *s, const hn_target *t, hn_run_kind kind, uint64_t question,
                          uint64_t salt, hone_error *err);

/* Runs it, nothing of which may go on behind its end: else HONE_E_NUMERIC. */
hone_status hn_side_start(hn_process *r, hn_side *s, const hn_process_params *p, hone_error *err);
hone_status hn_side_run(hn_process *r, hn_side *s, const char *const *argv, const char *const *env,
                        bool (*stop)(void *), hone_error *err);
/* What a program that has ended has done to those that are measured next; false: nothing. */
bool hn_side_meddles(char *why, size_t cap, const hn_process *r);
/* What a program printed, if it is to be believed and JSON; else NULL. */
json_t *hn_side_printed(const hn_process *r, bool believed);
hone_status hn_side_failed(const hn_side *s, const hn_process *r, hone_error *err);

/* ---- a measurement ------------------------------------------------------------------------------- */

bool hn_target_is_plain(const hn_target *t);
void hn_measured_add(hn_measured *m, const char *name, const char *unit, bool higher, double value);
hone_status hn_side_measure_kernel(hn_measured *out, hn_side *s, const hn_target *t, hone_error *err);

#endif
