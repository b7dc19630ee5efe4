/* adapter_list: the LoRA adapters of a server's first model, by id and name: those of the command line, and those that
 * clients load and unload while it runs. An adapter that a request uses stays until that request ends. One lock; files
 * are read outside of it. Refuses to know requests and models' names. */
#ifndef HN_ADAPTER_LIST_H
#define HN_ADAPTER_LIST_H

#include "serve/ask.h"

enum { HN_ADAPTERS_MOST = 64, HN_ADAPTER_NAME = 128 /* characters of a name that a client gives */ };

typedef struct hn_adapter_list hn_adapter_list;

typedef struct hn_adapter_file {
    const char *path;
    float scale; /* where a request says nothing; 0: off */
} hn_adapter_file;

/* What a request uses; given back by hn_adapter_list_give. */
typedef struct hn_adapter_use {
    int32_t id;
    hone_adapter *adapter;
    float scale; /* where the request says nothing */
} hn_adapter_use;

/* What it is to be from now on. */
typedef struct hn_adapter_scale {
    int64_t id;
    float scale;
} hn_adapter_scale;

/* One of them, as it is listed. */
typedef struct hn_adapter_view {
    int32_t id;
    const char *name, *path;
    float scale;
} hn_adapter_view;

/* files [n], at most HN_ADAPTERS_MOST, get the ids 0 to n - 1, and their files' names without the ending; later ones
 * the next ids, which no other ever gets. folder: below it clients may load adapters; NULL: they may not. HONE_E_ARG:
 * too many. HONE_E_IO: the folder. */
hone_status hn_adapter_list_new(hn_adapter_list **out, const hn_adapter_file *files, size_t n, const char *folder,
                                hone_error *err);
void hn_adapter_list_free(hn_adapter_list *a);
/* The folder; NULL: none. */
const char *hn_adapter_list_folder(const hn_adapter_list *a);

/* With their model: opens them all; closes them, names and scales stay. One that a client had loaded, and that is gone
 * or is none any more, is dropped, with a line in the log; where memory or open files are wanting it stays, and this
 * fails. One thread at a time; nobody uses any. */
hone_status hn_adapter_list_open(hn_adapter_list *a, const hone_model *m, hone_error *err);
void hn_adapter_list_close(hn_adapter_list *a);

/* ---- while the model is loaded or not; any thread ---- */

bool hn_adapter_list_has(hn_adapter_list *a, const char *name);
/* Was one of this name here once, and is no more? Of the last thousand names. */
bool hn_adapter_list_had(hn_adapter_list *a, const char *name);
/* Each in the order of ids, under the lock: fn must be quick. */
void hn_adapter_list_each(hn_adapter_list *a, void (*fn)(void *arg, const hn_adapter_view *v), void *arg);
/* Scales for later requests, v [n]; 0 for those that it does not name. False, and nothing changed: v[*unknown] is
 * none of them. */
bool hn_adapter_list_set_scales(hn_adapter_list *a, const hn_adapter_scale *v, size_t n, size_t *unknown);

/* ---- while the caller has taken the model; any thread ---- */

/* By name, or by id where name is NULL. False: it is not here. */
bool hn_adapter_list_take(hn_adapter_list *a, const char *name, int64_t id, hn_adapter_use *use);
/* All whose scale is not 0, to use [HN_ADAPTERS_MOST]; their number. */
size_t hn_adapter_list_take_on(hn_adapter_list *a, hn_adapter_use *use);
void hn_adapter_list_give(hn_adapter_list *a, int32_t id);

/* Loads path, which may be relative to the folder and must lie below it with all that is read of it, under a new name;
 * off but for requests that name it. False: *r says why. One thread at a time. */
bool hn_adapter_list_load(hn_adapter_list *a, const hone_model *m, const char *name, const char *path, int32_t *id,
                          hn_refusal *r);
/* Takes it out of the list: later requests do not find it. It is closed when its last request ends; then done(arg) is
 * called, on that request's thread, or before this returns. force false, and requests use it: 409, nothing changes. */
bool hn_adapter_list_unload(hn_adapter_list *a, const char *name, bool force, void (*done)(void *arg), void *arg,
                            hn_refusal *r);

#endif
