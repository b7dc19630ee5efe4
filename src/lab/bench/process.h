/* process: programs run apart from this one, by one launcher, and collected in three ways:
 * a program of any kind is timed from outside (hn_process_run); one that answers questions
 * is timed answer by answer (hn_talk); this program again talks JSON over a pipe and is
 * looked at meanwhile (hn_child_run). Refuses to know what is measured. */
#ifndef HN_PROCESS_H
#define HN_PROCESS_H

#include "base/argv.h"
#include "base/json_text.h"

/* ---- any program: what the kernel counted, what it wrote ---------------------------------- */

typedef struct hn_process {
    double wall_s, user_s, sys_s; /* of it and the descendants it waited for */
    uint64_t max_rss;             /* bytes; of the largest of them */
    int64_t major_faults;
    int32_t n_left;        /* processes that it left behind, ended since; 0 unless asked for */
    bool raised;           /* its own priority, above that of this process */
    const char *changed;   /* what of this process it changed, for who runs next (standing.h); NULL: nothing */
    int exit_code, signal; /* exit_code -1: killed by signal */
    char *out;             /* what it wrote on stdout, NUL-terminated; NULL unless asked for */
    size_t n_out;
    char *said; /* the end of what it wrote on stderr, NUL-terminated; may be NULL */
} hn_process;

typedef struct hn_process_params {
    const char *const *argv; /* argv[0] looked up in PATH unless it has a slash; ends with NULL */
    const char *const *env;  /* "NAME=VALUE" added to the environment; NULL, or ends with NULL */
    const char *dir;         /* where it runs; NULL: here */
    bool alone;              /* nothing may go on behind its end */
    bool keep_out;           /* else stdout is thrown away */
    const char *input;       /* what it reads on stdin; NULL: nothing */
    bool (*stop)(void *);    /* NULL allowed; true after a signal: the process is killed */
} hn_process_params;
/* Runs it to its end, alone in a process group. A program that fails is a
 * result: HONE_OK. HONE_E_INTERRUPTED: stopped. */
hone_status hn_process_run(hn_process *out, const hn_process_params *p, hone_error *err);
void hn_process_free(hn_process *p);
/* "ended with exit code 3: what it said last"; dst "" when it ended well. */
void hn_process_why(const hn_process *p, char *dst, size_t cap);

/* ---- a program that is asked: its answers come when this process's clock says --------------- */

typedef struct hn_talk {
    int pid, in, out, err; /* pid 0: there is none; in: where it reads; out, err: what it writes */
    uint64_t from;         /* hn_clock_ns, when it was started */
    uint64_t anon;         /* bytes: most memory of its own, looked at regularly and at each answer */
    uint64_t cpu_ns; /* CPU time of all its threads when the last line was there, read before the clock; 0: unknown */
    int32_t usual, priority; /* of this process; the most favoured of its threads, looked at likewise (hn_priority) */
    int32_t n_children;      /* processes that it was seen to have, at most */
    int32_t soon_ms;         /* when it is looked at next; 0: at the usual time */
    char *heard;             /* read and not taken yet: [taken, n) */
    size_t n, cap, taken;
    bool spoke;
    bool (*stop)(void *);
    struct hn_talk_about *about; /* what must be the same behind its end */
} hn_talk;
/* Starts it as hn_process_run does, with its standard input and output here: p->alone and p->keep_out are taken for
 * granted. */
hone_status hn_talk_start(hn_talk *t, const hn_process_params *p, hone_error *err);
/* What it has ended before it read is no error: the next answer is. */
hone_status hn_talk_say(hn_talk *t, const void *data, size_t n, hone_error *err);
/* Its next line, NUL-terminated, without its end, until the next call; *at: hn_clock_ns when it was there. NULL: it has
 * no more to say. */
hone_status hn_talk_hear(hn_talk *t, char **line, uint64_t *at, hone_error *err);
/* Its memory now, which counts as seen. */
void hn_talk_look(hn_talk *t);
/* Nothing more is said: waits for its end. *out: as of hn_process_run, without what it wrote on stdout. A talk that was
 * not started is left alone; one that is stopped, or failed, is killed. */
hone_status hn_talk_end(hn_talk *t, hn_process *out, hone_error *err);

/* ---- a program that runs beside this one until it is told to end: a server --------------------- */

typedef struct hn_beside {
    int pid, err;          /* pid 0: it is gone; err: what it writes on stderr */
    int exit_code, signal; /* of one that is gone; exit_code -1: killed by signal */
    double cpu_s, wall_s;  /* of one that is gone: as the kernel counted; how long it ran by the second clock */
    uint64_t from;         /* by that clock, when it began */
} hn_beside;
/* env: as hn_process_params.env. */
hone_status hn_beside_start(hn_beside *b, const char *const *argv, const char *const *env, hone_error *err);
bool hn_beside_gone(hn_beside *b);
/* The end of what it has written on stderr until now, NUL-terminated; the caller frees. NULL: no memory. */
char *hn_beside_said(const hn_beside *b);
/* SIGTERM, and after 10 s SIGKILL. why [cap]: how it ended and the last line that it wrote on stderr; "": well. */
void hn_beside_stop(hn_beside *b, char *why, size_t cap);

/* ---- this program again: one JSON object ---------------------------------------------------- */

/* What the parent saw of a process, by means that are not the process's own. */
typedef struct hn_seen {
    double wall_s;        /* from before its start until it was gone, by the second clock */
    double told_s;        /* until its result was there, whole; 0: it was not held for it */
    uint64_t max_rss;     /* bytes: most that was resident, as the kernel counted; 0: unknown */
    uint64_t own_rss;     /* of the parent when it started it, which max_rss of a new process begins with */
    uint64_t resident;    /* bytes: what was resident at its end, it being held until it was looked at; 0: it was not */
    uint64_t anon;        /* bytes: most memory of its own, looked at regularly */
    uint64_t anon_again;  /* the same by another way */
    uint64_t own_peak;    /* what of the kernel's peak cannot have been pages of files; 0: unknown */
    uint64_t anon_end;    /* anonymous and in memory at its end; 0: it was not looked at */
    double cpu_s;         /* that it and what it waited for used, user and system; 0: unknown */
    int32_t n_left;       /* processes that it left behind, ended since */
    int32_t priority;     /* the most favoured of any of its threads (hn_priority), looked at regularly */
    int32_t usual;        /* its parent's when it was started */
    int64_t major_faults; /* of it and what it waited for */
    /* of the machine meanwhile, where somebody looked (run_child of runner.c); −1: the system does not tell. Stolen:
     * ticks of all cores */
    bool counted;
    int64_t stolen, throttled, stopped;
} hn_seen;

typedef struct hn_child {
    json_t *result; /* what it printed on stdout, or NULL */
    int exit_code;  /* -1: killed by a signal */
    int signal;
    hn_seen seen;
    char message[512]; /* end of what it wrote on stderr */
} hn_child;
/* For the process, when it has printed its result: waits until its parent has looked at its memory. At once where no
 * parent holds the other end of its standard input. */
void hn_child_hold(void);
/* Runs this program again with argv (argv[0] is free, ends with NULL), waits for it, reading
 * its one JSON object. A process that fails is a result, not an error: HONE_OK. stop (NULL
 * allowed) is asked regularly; true kills the child: HONE_E_INTERRUPTED. */
hone_status hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
void hn_child_free(hn_child *c);
/* Why this child gave no result, in words: "killed by signal 11 (Segmentation fault)". */
void hn_child_why(const hn_child *c, char *dst, size_t cap);

#endif
