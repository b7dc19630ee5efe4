/* cache: where models lie on this machine, as hone and others put them there. Owns the layout of the hub's cache (that
 * of huggingface_hub, shared with it), of ollama's store (read in place) and of plain folders. Refuses to know of
 * networks, of what stands in a file, and of what a name means (hub/names.h).
 *
 *     ROOT/models--owner--repo/refs/main                 commit, no newline
 *     ROOT/models--owner--repo/blobs/OID                 content; while it comes OID.hone-part, OID.hone-part.json
 *     ROOT/models--owner--repo/snapshots/COMMIT/PATH     link ../../blobs/OID, or the file itself
 *     ROOT/.locks/models--owner--repo/OID.lock           flock, left in place */
#ifndef HN_CACHE_H
#define HN_CACHE_H

#include "hub/names.h"

enum { HN_CACHE_PATH = 4096 };

/* ---- where ------------------------------------------------------------------------------------ */

/* HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub; a
 * leading ~/ is the home folder. HONE_E_IO: none of them is set. It need not be there. */
hone_status hn_cache_root(char dst[HN_CACHE_PATH], hone_error *err);
/* The file that keeps the hub's token: HF_TOKEN_PATH, $HF_HOME/token, $XDG_CACHE_HOME/huggingface/token, … */
hone_status hn_cache_token_path(char dst[HN_CACHE_PATH], hone_error *err);
/* $OLLAMA_MODELS, else ~/.ollama/models. */
hone_status hn_ollama_root(char dst[HN_CACHE_PATH], hone_error *err);

/* hone's own folder of models, for files from anywhere (HN_NAME_URL): $XDG_DATA_HOME/hone/models, else
 * ~/.local/share/hone/models. Listed as a folder like those of HONE_MODELS. */
hone_status hn_models_home(char dst[HN_CACHE_PATH], hone_error *err);

typedef enum hn_cache_place {
    HN_CACHE_REPO = 0, /* the repository's folder; `a` is not used */
    HN_CACHE_BLOB,     /* a: oid */
    HN_CACHE_PART,
    HN_CACHE_JOURNAL,
    HN_CACHE_LOCK,
    HN_CACHE_REF,     /* a: revision */
    HN_CACHE_SNAPSHOT /* a: commit, b: path in it, or NULL for its folder */
} hn_cache_place;

/* A path below root; every part is checked first (hub/names.h), so what a server says cannot lead elsewhere.
 * HONE_E_ARG: a part that cannot be, or too long. */
hone_status hn_cache_path(char dst[HN_CACHE_PATH], hn_cache_place place, const char *root, const char *repo,
                          const char *a, const char *b, hone_error *err);
/* The same of ollama's store. digest: "sha256:<64 hex>". */
hone_status hn_ollama_blob(char dst[HN_CACHE_PATH], const char *root, const char *digest, hone_error *err);
hone_status hn_ollama_manifest(char dst[HN_CACHE_PATH], const char *root, const hn_name *n, hone_error *err);

/* ---- publishing ------------------------------------------------------------------------------- */

/* A file of a cache that is written anew is no link: what one that somebody put there leads to is none of the cache's.
 * HONE_E_IO: it is one. */
hone_status hn_cache_no_link(const char *path, hone_error *err);
/* Puts blob oid under its name in a snapshot: a relative link, made beside it and renamed; where links cannot be, the
 * blob moves there. Folders are made. What is there already and is the same stays. */
hone_status hn_cache_link(const char *root, const char *repo, const char *commit, const char *path, const char *oid,
                          hone_error *err);
/* refs/REV = commit, atomically; nothing where rev is the commit itself. */
hone_status hn_cache_set_ref(const char *root, const char *repo, const char *rev, const char *commit, hone_error *err);
/* The commit that rev ("" is main; a commit is itself) names here. HONE_E_IO, commit "": it is not known
 * here, or cannot be read; HONE_E_FORMAT: no commit stands there. */
hone_status hn_cache_ref(char commit[41], const char *root, const char *repo, const char *rev, hone_error *err);

/* ---- what is here ------------------------------------------------------------------------------ */

typedef enum hn_local_where { HN_LOCAL_HUB = 0, HN_LOCAL_OLLAMA, HN_LOCAL_FOLDER } hn_local_where;

/* One model: a GGUF file or a split set, or a folder of a checkpoint (`checkpoint`: config.json and its weights). */
typedef struct hn_local {
    hn_local_where where;
    const char *name;    /* what to type: "owner/repo:Q4_K_M", "ollama:llama3.2", "tiny" */
    const char *path;    /* what to open: its first file, or the folder */
    const char *tag;     /* "" where the name of the file says none */
    const char *repo;    /* hub: "owner/repo"; ollama: "host/namespace/name"; folder: the folder */
    const char *commit;  /* hub; else "" */
    const char *rev;     /* hub: a ref that names the commit ("main" of several), or "" */
    const char *trouble; /* "part 2 of 3 is missing", "its blob is gone", …; "": it is whole as far as names tell */
    const char *const *file; /* [n_file] every file of it, as named in snapshot, manifest or folder */
    size_t n_file;
    uint64_t bytes; /* of these */
    int64_t when;   /* seconds since 1970: the newest of its files */
    bool checkpoint;
    bool unfinished; /* a download that has not ended: no file of it has its name yet */
} hn_local;

typedef struct hn_locals {
    hn_local *list; /* sorted by name */
    size_t n;
    hn_arena *arena;
} hn_locals;

enum { HN_FIND_HUB = 1, HN_FIND_OLLAMA = 2, HN_FIND_FOLDERS = 4, HN_FIND_ALL = 7 };

/* All models here; nothing is opened but small lists. Links that lead out of their cache are trouble, not followed.
 * Folders: HONE_MODELS (a list with ':'), ./models and
 * hn_models_home. A root that is not there has none. */
hone_status hn_cache_list(hn_locals *out, unsigned where, hone_error *err);
/* The same of one repository of the hub. */
hone_status hn_cache_list_repo(hn_locals *out, const char *repo, hone_error *err);
void hn_locals_free(hn_locals *l);

/* The file that a name means here, without any network. HONE_OK: path[] can be opened. HONE_E_IO: it is not here, or
 * not whole: the message says so and how to get it ("hone pull NAME"). HONE_E_ARG: the name is ambiguous here. */
hone_status hn_cache_find(char path[HN_CACHE_PATH], const hn_name *name, hone_error *err);
/* The folder of a repository's files here, at the name's revision. HONE_E_IO: it is not here. */
hone_status hn_cache_find_folder(char path[HN_CACHE_PATH], const hn_name *name, hone_error *err);

#endif
