/* side_commit: the program of a commit, for a side that is one. */
#ifndef HN_SIDE_COMMIT_H
#define HN_SIDE_COMMIT_H

#include "lab/judge/sides.h"

enum { HN_SIDE_PATH = 4096 };

/* The whole hash of a commit of the repository of the current folder. HONE_E_ARG: there is none of that name. */
hone_status hn_side_find_commit(char hash[64], const char *rev, const hn_side_params *p, hone_error *err);
/* The program that `make` gives in a worktree of it, which is made and built where there is none. label: the side, for
 * messages. */
hone_status hn_side_build_commit(char program[HN_SIDE_PATH], const char *hash, const char *label,
                                 const hn_side_params *p, hone_error *err);

#endif
