/* What the two files behind `hone bench ID…` share: bench_suite.c, entries of the
 * catalogue; bench_kern.c, single kernels at any shape. */
#ifndef HN_BENCH_PARTS_H
#define HN_BENCH_PARTS_H

#include "cli/cli.h"
#include "lab/bench/bench.h"
#include "lab/judge/ab.h"
#include "lab/inside/kern.h"

typedef struct hn_kern_choice {
    hn_kern *k;
    size_t n;
} hn_kern_choice; /* k: free() */

enum { HN_KERN_NONE = -1 };
/* Adds what arg means: the name of a kernel, a group ("kern.gemv") or a pattern over the shapes of --preset.
 * HN_KERN_NONE: a pattern that means none. Else 0 or an exit code. */
int hn_kern_choose(const hn_cli *cli, const char *arg, hn_kern_choice *c);
int hn_kern_check(const hn_cli *cli, hn_bench_run *run); /* the options for them: 0 or an exit code */
/* Measures them, one row each on stdout unless --json. */
hone_status hn_kern_run(const hn_cli *cli, hn_bench_run *run, const hn_kern_choice *c, hone_error *err);

/* ids: array of texts, what is to be measured. 0, or an exit code: an option on the command line changes nothing of
 * it, or is less than one of them needs. */
int hn_bench_check_options(const hn_cli *cli, const json_t *ids);

/* --format (bench_format.c). *mine: cli, told to keep stdout free where the result is not text. 0, or an exit code. */
int hn_bench_format(const hn_cli *cli, hn_cli *mine);
bool hn_bench_as_table(const hn_cli *cli); /* CSV or Markdown: at the end, by the next */
int hn_bench_print_table(const hn_cli *cli, json_t *records);

/* The record of a plain run, for people (bench_report.c). */
void hn_bench_report_plain(const hn_cli *cli, const hn_bench_run *run, const hn_work *work, json_t *record);

/* How a result compares with the newest one of the same measurement and machine among `records`; nothing when there is
 * none. brief: one line. HONE_E_NOMEM: it was not compared. */
hone_status hn_bench_print_last(json_t *records, json_t *record, bool brief, hone_error *err);
/* --require: 0, or an exit code: what it asks for is not measured by these ids. */
int hn_bench_check_required(const hn_cli *cli, const json_t *ids);
/* The exit code for what does not hold or was not measured, each said; else 0. absent: {id, reason} of what was left
 * out. */
int hn_bench_require(const hn_cli *cli, json_t *records, const json_t *absent);

/* Is there a list where hone bench expects a number (-p 128,512)? Then each combination is run as a command of its own;
 * the exit code is the last that is not 0. */
typedef int hn_bench_cell(int argc, char **argv);
bool hn_bench_is_grid(int argc, char **argv);
int hn_bench_grid(int argc, char **argv, hn_bench_cell *run);

/* The progress of a comparison, on a terminal; the argument is not used. */
void hn_ab_show_progress(void *unused, const hn_ab_progress *at);

#endif
