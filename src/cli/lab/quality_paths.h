/* The quality hash q2 of a model that is open: who answers the prompts, and the sessions that its
 * ways ask for. */
#ifndef HN_CLI_QUALITY_PATHS_H
#define HN_CLI_QUALITY_PATHS_H

#include "cli/cli.h"
#include "lab/quality/paths.h"

/* Walks all ways for m, which is opened and run as the options say. eight: of the same model at the same settings. 0,
 * or an exit code. */
int hn_cli_paths(const hn_cli *cli, const hone_model *m, const hn_q_prompts *prompts, const hn_quality *eight,
                 bool quick, hn_paths *out);
/* {asked, rows_compared, draw, widest, left_here}: by which hn_quality_proved holds two results against each other. */
json_t *hn_cli_covers_json(const hn_paths *p);
/* Adds the hash, its kind and what was left out to what hn_quality_json gave for the eight. Takes o, returns it. */
json_t *hn_cli_paths_json(json_t *o, const hn_paths *p, const hn_quality *eight);

#endif
