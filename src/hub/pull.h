/* pull: a NAME becomes files on this disk: of a repository of the hub, of ollama's registry, of any address. Owns what
 * is wanted of each, the room for it, the order in which it becomes visible, and what offline means; never prints. */
#ifndef HN_PULL_H
#define HN_PULL_H

#include "hub/cache.h"
#include "hub/download.h"

#include <jansson.h>

typedef struct hn_pull_want {
    const char *type, *rev, *output;    /* of --type, --rev, --output; NULL: not given */
    bool offline, insecure, checkpoint; /* checkpoint: it, where a GGUF is there, too */
    int32_t silence_s, tries, n_conn;
    double wait_s;
    uint64_t piece;
    bool (*stop)(void *arg);
    void (*say)(void *arg, const char *text);
    /* file is coming: `done` of the `size` bytes of all that are to come */
    void (*progress)(void *arg, const char *file, uint64_t done, uint64_t size);
    void *arg;
} hn_pull_want;

typedef struct hn_pulled_file {
    const char *path, *local; /* as it is called there, and where it is here */
    uint64_t size;
    char sha256[65]; /* "" where nobody said or counted it */
    bool cached;     /* it was here */
} hn_pulled_file;

typedef struct hn_pulled {
    hn_name name;
    char commit[41];          /* hub */
    char why[400];            /* why these of all files */
    char path[HN_CACHE_PATH]; /* what to open: the model, or the folder of a checkpoint */
    bool checkpoint;          /* hone convert makes a GGUF of it */
    bool offline;             /* the network was not asked, or did not answer */
    hn_pulled_file *file;     /* [n] */
    size_t n, cap;
    uint64_t bytes, fetched;
    double seconds;
    hn_arena *arena;
} hn_pulled;

/* HONE_E_ARG: the name, the type or the file is none there. HONE_E_NETWORK, HONE_E_IO, HONE_E_NOMEM (nothing fits),
 * HONE_E_INTERRUPTED, HONE_E_FORMAT (parts missing). hn_pulled_free also after failures. */
hone_status hn_pull(hn_pulled *out, const char *name, const hn_pull_want *want, hone_error *err);
void hn_pulled_free(hn_pulled *p);

/* Only what is there: the files of a repository of the hub, with sizes, and the sets of models among them. */
typedef struct hn_pull_list {
    hn_name name;
    char commit[41];
    hn_repo_file *file;
    size_t n;
    hn_gguf_sets sets;
    size_t chosen; /* of sets; SIZE_MAX: none, and why says why not */
    char why[1200];
    struct hn_hub_repo *repo; /* owns them */
} hn_pull_list;
hone_status hn_pull_look(hn_pull_list *out, const char *name, const hn_pull_want *want, hone_error *err);
void hn_pull_list_free(hn_pull_list *l);

/* ---- ollama's manifests ------------------------------------------------------------------------------- */

typedef struct hn_ollama_layer {
    const char *digest, *type; /* of the manifest */
    uint64_t size;
} hn_ollama_layer;
enum { HN_LAYERS = 256 };
/* The layers of a manifest and its config, l [HN_LAYERS + 1], each checked; *model: the first that is a GGUF.
 * HONE_E_NETWORK, HONE_E_UNSUPPORTED: none is, or the model is in tensors of ollama's own. */
hone_status hn_ollama_layers(hn_ollama_layer *l, size_t *n_layer, size_t *model, const hn_name *n, const json_t *o,
                             hone_error *err);

/* ---- between pull.c, ollama.c and pull_address.c ---------------------------------------- */

typedef struct hn_puller {
    const hn_pull_want *want;
    hn_pulled *out;
    hn_fetch *http; /* NULL: offline */
    const char *now;
    uint64_t before, total; /* of the files to come: those that are done, all */
} hn_puller;

hone_status hn_pull_ollama(hn_puller *p, hone_error *err);
hone_status hn_pull_address(hn_puller *p, hone_error *err);
/* What is here, without a network. why: what the network said; NULL: nobody wanted one. */
hone_status hn_pull_local(hn_puller *p, const char *why, hone_error *err);
/* A file of the result; its sha256 is set by the caller. NULL: no memory. */
hn_pulled_file *hn_pull_add(hn_puller *p, const char *path, const char *local, uint64_t size, hone_error *err);
/* Is there room at folder for so many more bytes, and 256 MiB? */
hone_status hn_pull_room(const char *folder, uint64_t bytes, hone_error *err);
/* One file, with the progress of all; *f is filled. head: as hn_download_file. */
hone_status hn_pull_one(hn_puller *p, hn_pulled_file *f, hn_download *d, hn_fetch_head *head, hone_error *err);

#endif
