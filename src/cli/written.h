/* written: what convert and synth say about the file they wrote. */
#ifndef HN_WRITTEN_H
#define HN_WRITTEN_H

#include "cli/cli.h"

/* Opens the new file, as a check, and describes it: one line, or with --json one
 * object {schema, file, bytes, parameters, types: {name: tensors}, seconds}. Takes
 * extra (may be NULL), whose members are added. Returns the exit code. */
int hn_cli_written(const hn_cli *cli, const char *schema, const char *path, double seconds, json_t *extra);

/* Says why a file at dst, or a folder, could not be made of a model and adapters. Returns the exit code: of a model
 * that cannot be read, but not where it is dst that cannot be written. */
int hn_cli_fail_made(const hone_error *err, const char *dst);

#endif
