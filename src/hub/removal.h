/* removal: models taken off this machine. First a plan, which can be shown; then whether anybody uses what is in it;
 * then the files go. Owns what belongs to a model alone and what it shares; whether to do it is the caller's question.
 * No link is followed: what it leads to goes only where it is a blob of the same repository that nothing else links
 * to. */
#ifndef HN_REMOVAL_H
#define HN_REMOVAL_H

#include "hub/cache.h"

typedef struct hn_removal {
    hn_arena *arena;
    const char **file; /* [n] to be unlinked, in this order */
    size_t n, cap;
    const char **tree; /* [n_tree] folders of repositories, to be removed with all that is in them */
    size_t n_tree, tree_cap;
    const char **home; /* [n_home] of repositories, to be tidied up */
    size_t n_home, home_cap;
    uint64_t bytes;  /* that this frees */
    uint64_t shared; /* of these models, bytes that stay, as others have them too */
} hn_removal;        /* zero it */

/* One model of the list of all that are here (hn_cache_list of HN_FIND_ALL); going [all->n]: which of them go, so that
 * they keep nothing. Of the hub's cache or ollama's store; HONE_E_ARG for one of a folder. */
hone_status hn_removal_add(hn_removal *r, const hn_locals *all, size_t which, const bool *going, hone_error *err);
/* All of a repository of the hub: every revision, what was begun, and its refs. HONE_E_IO: it is not here. */
hone_status hn_removal_add_repo(hn_removal *r, const char *repo, hone_error *err);
/* A file by its path: the entry itself, the other parts of its set, and its packed weights. Must end in .gguf. */
hone_status hn_removal_add_path(hn_removal *r, const char *path, hone_error *err);
/* HONE_E_BUSY: another process has one of the files mapped or is downloading it; names file and process. */
hone_status hn_removal_check(const hn_removal *r, hone_error *err);
hone_status hn_removal_do(const hn_removal *r, hone_error *err);
void hn_removal_free(hn_removal *r);

#endif
