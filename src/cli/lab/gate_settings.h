/* gate_settings: what hone lab baseline and hone lab gate share. */
#ifndef HN_GATE_SETTINGS_H
#define HN_GATE_SETTINGS_H

#include "cli/cli.h"
#include "lab/judge/baseline.h"
#include "lab/judge/gate.h"

extern const hn_opt_group hn_group_measured; /* n-prompt, n-gen, depth, bench-arg */

/* The options above and those of hn_group_model and hn_group_compute, as options for `hone bench`; the model and
 * the number of samples left out. given: only those on the command line, but for the lengths; else chunk and kv too, so
 * that a baseline asks for the same when defaults change. */
json_t *hn_gate_args(const hn_cli *cli, bool given);
/* The settings of a stored baseline as options for `hone bench`; *out to be released. On failure the exit code. */
int hn_gate_settings(const hn_cli *cli, json_t *baseline, json_t **out);
/* args as a file may hold them: a packed file's name becomes "given". NULL: out of memory. */
json_t *hn_gate_args_kept(json_t *args);
/* ids of the positional arguments from number `first` on; the plain run's without. */
json_t *hn_gate_ids(const hn_cli *cli, int first);
/* Loads baseline NAME of --dir; on failure the exit code, with what there is instead. */
int hn_gate_load(const hn_cli *cli, const char *name, json_t **out);
/* Hashes every byte of the model, with progress. */
int hn_gate_bytes(const char *model, json_t **out);
/* The model of a baseline: -m, or where it was then. NULL: none was needed. */
const char *hn_gate_model(const hn_cli *cli, json_t *baseline);
void hn_gate_print_rows(const hn_baseline_row *rows, size_t n);
json_t *hn_gate_rows_json(const hn_baseline_row *rows, size_t n);
/* "2026-01-31T12:34:56Z, commit abc, hone 0.1.0" */
void hn_gate_when(char *dst, size_t cap, json_t *baseline);
/* hn_side_params.tell: a line, or several, of what a side has to say. */
void hn_lab_tell(void *unused, const char *words);
/* In the laboratory an interruption is 6, whoever sent it. */
int hn_lab_code(int code);
/* kern, kern.gemv or kern.gemm among the ids: the net of all shapes, its report and exit code (gate_net.c). */
bool hn_gate_is_net(const hn_cli *cli);
int hn_gate_net(const hn_cli *cli, const char *preset); /* NULL: shapes of all */
extern const char hn_gate_stored[];                     /* what every comparison with stored numbers must say */

#endif
