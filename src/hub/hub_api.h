/* hub_api: what a hub says of a repository: its commit, its files; and its refusals in words. Owns addresses and
 * answers of the hub's API; refuses to know which files are wanted and where they go. */
#ifndef HN_HUB_API_H
#define HN_HUB_API_H

#include "hub/fetch.h"
#include "hub/names.h"

typedef struct hn_hub_repo {
    char commit[41];
    hn_repo_file *file;    /* [n], in the hub's order; paths checked (hn_hub_path_ok) */
    char (*oid)[65];       /* [n]: SHA-256 (64 hex) of large files, git's SHA-1 (40 hex) of others */
    size_t n, cap, n_text; /* n_text: bytes of the paths */
    hn_arena *arena;
} hn_hub_repo;

/* ---- answers, as texts; HONE_E_NETWORK: what is wrong with them ---------------------------------------- */

/* About a revision: the commit that it is. rev is a commit itself: that one and no other. */
hone_status hn_hub_commit_of(char commit[41], const char *text, size_t n, const char *repo, const char *rev,
                             hone_error *err);
/* A page of the list of files: what it has is added to r, whose arena is there. Nothing is built of the text: what it
 * costs in memory is the files that it names. */
hone_status hn_hub_add_page(hn_hub_repo *r, const char *text, size_t n, const char *repo, hone_error *err);

/* ---- asking --------------------------------------------------------------------------------------------- */

/* HF_ENDPOINT, or https://huggingface.co, without a '/' at the end. */
const char *hn_hub_endpoint(char *dst, size_t cap);
/* HF_TOKEN, HUGGING_FACE_HUB_TOKEN, else the file HF_TOKEN_PATH or $HF_HOME/token; malloc'ed, trimmed. NULL and
 * HONE_OK: there is none. from: that variable or file. HONE_E_ARG: one with bytes that no token has. */
hone_status hn_hub_token(char **token, char *from, size_t cap, hone_error *err);

/* The commit that rev ("": main) is now, and all files of it. HONE_E_NETWORK: in words what the hub refuses. */
hone_status hn_hub_read(hn_fetch *h, hn_hub_repo *out, const char *endpoint, const char *repo, const char *rev,
                        hone_error *err);
void hn_hub_repo_free(hn_hub_repo *r);
/* The address of a file's bytes; malloc'ed, NULL: no memory. */
char *hn_hub_address(const char *endpoint, const char *repo, const char *commit, const char *path);
/* Fills err for an answer that is no success: of the repository (path NULL), or of a file in it. */
hone_status hn_hub_refusal(const hn_fetch *h, const hn_fetch_head *a, const char *repo, const char *rev,
                           const char *path, hone_error *err);

#endif
