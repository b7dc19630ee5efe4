/* sides: what an A/B comparison compares. A side is a configuration of this program
 * ("threads=1", "kv=q8_0", "cpu=avx2", "env:NAME=VALUE", several with commas), another hone
 * program (a path), a git commit ("git:REV", or a word that names a commit and no file; built
 * in a worktree), each with configuration behind a comma, or any shell command. "this" is
 * this program as it is. Programs and commits are driven through their public command line,
 * so that old versions work too. Knows hone.h, base/ and, for kernels that stay resident in
 * this process, lab.h; refuses to know statistics. */
#ifndef HN_SIDES_H
#define HN_SIDES_H

#include "base/base.h"
#include "lab/bench/process.h"
#include "lab/judge/baseline.h"
#include "base/json_text.h"

/* ---- what is measured on both sides ------------------------------------------------------ */

enum { HN_SIDE_ARGS = 24 };
typedef struct hn_target {
    const char *id;                 /* a row of the catalogue, or a kern.… id; NULL: commands */
    const char *model;              /* NULL: the bench needs none */
    const char *args[HN_SIDE_ARGS]; /* more options for `hone bench`, "--n-prompt=128"; end with NULL */
    int32_t threads, columns;       /* of a resident kernel; 0: all cores, 1 column (gemv) or 512 (gemm) */
    const char *layout;             /* of a resident kernel whose side says none: "plain" or "packed"; NULL: plain */
    const char *number; /* commands: POSIX extended regex whose first group is a number on stdout, or NULL */
    bool number_higher; /* and more of it is better */
    bool (*stop)(void *);
} hn_target;

/* What the samples of a plain run say that its parts took: the prompt to its last logits, and to the first token. */
enum { HN_PART_LOAD, HN_PART_PROMPT, HN_PART_FIRST, HN_PART_GEN, HN_PARTS };

enum { HN_MEASURED = 512, HN_METRIC_NAME = 224, HN_PROOF_TEXT = 1 << 16 };
typedef struct hn_measured_metric {
    char name[HN_METRIC_NAME], unit[16]; /* no comma; no other metric of the measurement has it */
    bool higher;                         /* more is better */
    bool proved;                         /* the record that it is of proves an answer */
    double value;
} hn_measured_metric;
enum { HN_MODEL_PARTS = 3 }; /* its fingerprint, the hash of its file, that of its content */
typedef struct hn_measured {
    hn_measured_metric m[HN_MEASURED];
    int n;
    int64_t major_faults;
    char weights[240];         /* how those of a model were read, as its configuration says; "": it does not */
    char invalid[512];         /* why the result is not valid; "" */
    char proof[HN_PROOF_TEXT]; /* JSON text, {name of a record: its proof} (proof.h); "": it proves nothing */
    uint64_t question;         /* which prompt was asked, where the side can be asked several; 0: that of everyone */
    char model[HN_MODEL_PARTS][65]; /* hexadecimal; "": none is told */
    char ran[120];                  /* with what settings, as its configuration says; "" */
    double part_s[HN_PARTS];        /* NaN: there is none, or it does not say */
    double claimed_s;               /* seconds that its samples add up to; NaN: it does not say */
    int n_clocked;                  /* loops that were as long as their clock made them, by which it says so; else 0 */
    double wall_s;                  /* that its process ran; NaN: it ran in this one */
    double anon_mb, rss_mb;         /* memory, as it says, and as the kernel counted; NaN: not said, not counted */
} hn_measured;
/* The metric called so, or NULL. Short names work: decode, prefill, load, ttft, rss, anon. */
const hn_measured_metric *hn_measured_find(const hn_measured *m, const char *name);
const char *hn_metric_full_name(const char *name);

/* ---- sides --------------------------------------------------------------------------------- */

typedef struct hn_side hn_side;

typedef struct hn_side_params {
    bool command; /* spec is a shell command */
    bool (*stop)(void *);
    void (*tell)(void *arg, const char *text); /* what takes long ("building abc123"); NULL allowed */
    void *tell_arg;
} hn_side_params;

/* Understands spec; a commit is built if it is not yet. HONE_E_ARG: what is wrong with it;
 * HONE_E_IO: no such program; a build that failed (the message ends with the compiler's words). */
hone_status hn_side_open(hn_side **out, const char *spec, const hn_side_params *p, hone_error *err);
void hn_side_close(hn_side *s);
const char *hn_side_label(const hn_side *s); /* as the user wrote it */
/* {label, what: "config|binary|commit|command", program, config {}, env {}, version, commit, dirty, quality, invalid}
 */
json_t *hn_side_json(const hn_side *s);

/* Can both stay in this process for this kernel? Otherwise fresh processes alternate. */
bool hn_sides_resident(const hn_side *a, const hn_side *b, const hn_target *t);
/* Makes a kernel side ready to stay; anything else is left alone. */
hone_status hn_side_settle(hn_side *s, const hn_target *t, hone_error *err);
void hn_side_leave(hn_side *s);

/* Can its runs be asked other prompts than that of everyone? Programs from before there were such cannot. */
bool hn_side_can_ask(const hn_side *s);
/* Can plain runs of it be asked and timed from here (asker.h)? From now on they are, or tell their own times. */
bool hn_side_can_talk(const hn_side *s);
void hn_side_talk(hn_side *s, bool talks);
/* Must a run prove its answers? One that can be asked, and whose record is that of a plain run. */
bool hn_side_must_prove(const hn_side *s, const hn_target *t);
/* From now on, run k of this side for a target is asked prompt k of a series; 0: that of everyone. */
void hn_side_ask(hn_side *s, uint64_t series);

/* Of targets, the first of each set of those whose model is asked the same for its answers: *out [n]. Returns how many;
 * 0: none has a model. */
size_t hn_targets_answering(const hn_target **out, const hn_target *t, size_t n);
/* The quality hash of this side's answers; "" with the reason in `why` when the run is invalid. Remembered, for the
 * target asked last. */
hone_status hn_side_quality(hn_side *s, const hn_target *t, char hash[24], char *why, size_t cap, hone_error *err);
/* Of both sides, by a hash of one kind: where one program is too old for the other's, by what both know. */
hone_status hn_sides_quality(hn_side *const side[2], const hn_target *t, char hash[2][24], char why[2][512],
                             hone_error *err);
void hn_sides_proved(hn_proved *out, hn_side *const side[2]); /* behind it: what b proves less than a */
/* What its program's hidden `bench MODE WORD` prints, for what only fresh processes of both sides measure: *out. Of its
 * settings a kernel level and variables count; HONE_E_ARG: it has others, or its program knows no such mode. */
hone_status hn_side_ask_mode(json_t **out, hn_side *s, const char *mode, const char *word, const char *cpu,
                             uint64_t salt, hone_error *err);
/* One measurement. salt makes the environment's size differ from run to run, so that a lucky
 * stack alignment is nobody's advantage. HONE_E_FORMAT: the program failed or printed nonsense. */
hone_status hn_side_measure(hn_measured *out, hn_side *s, const hn_target *t, uint64_t salt, hone_error *err);

#endif
