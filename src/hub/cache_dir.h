/* cache_dir: one folder of models, looked through: which files lie below it, of what size, and which of them are not
 * what they seem. Owns the walk and its limits; what the files are together is cache_list.c. */
#ifndef HN_CACHE_DIR_H
#define HN_CACHE_DIR_H

#include "hub/cache.h"

typedef struct hn_cache_file {
    const char *trouble; /* "": it is there, and inside */
    int64_t when;        /* seconds since 1970, of its content */
} hn_cache_file;

typedef struct hn_cache_dir {
    hn_arena *arena;         /* of the caller, owns everything here */
    const char *path, *home; /* the folder; links may lead to what is below home, NULL: anywhere */
    hn_repo_file *file;      /* [n] sorted by path */
    hn_cache_file *about;    /* [n] */
    size_t n, cap;
} hn_cache_dir;

/* Walks `path`, `depth` folders deep (0: it alone); links to folders are not followed. only_gguf: other files are left
 * out, and hidden ones. A folder that is not there is empty. Fails as hn_cannot_look. */
hone_status hn_cache_walk(hn_cache_dir *d, hn_arena *arena, const char *path, const char *home, int depth,
                          bool only_gguf, hone_error *err);
/* The names in a folder, sorted; without `hidden` what begins with '.' is left out. As above. */
hone_status hn_cache_names(const char ***names, size_t *n, hn_arena *arena, const char *path, bool hidden,
                           hone_error *err);
/* What a failed look means (errno): nothing is there; it is closed to us and stays so. The failure: HONE_E_NOMEM,
 * HONE_E_ARG where it is closed, else HONE_E_IO. */
bool hn_is_absent(int e);
bool hn_is_closed(int e);
hone_status hn_cannot_look(const char *path, int e, hone_error *err);
/* "a/b/c" of the arena; NULL: no memory. */
char *hn_cache_join(hn_arena *arena, const char *a, const char *b);

/* Is there a checkpoint in the folder: a configuration, of a model or an adapter? And its weights, PyTorch's or
 * safetensors, beside it? */
bool hn_checkpoint_config(const hn_cache_dir *d);
bool hn_checkpoint_weights(const hn_cache_dir *d);
/* A configuration, and some weights or their index: a configuration alone lies beside many GGUF files. */
bool hn_checkpoint_begun(const hn_cache_dir *d);
/* What is not whole of it, in words of the arena: a file that is gone, a shard that is missing by its neighbours' names
 * or by the index. "": nothing; NULL: no memory. */
const char *hn_checkpoint_trouble(const hn_cache_dir *d);

#endif
