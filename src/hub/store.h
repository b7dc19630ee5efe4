/* store: what lies in ollama's store, read in place, and the folders of models. What hub's own files share; the rooms
 * above see cache.h. */
#ifndef HN_STORE_H
#define HN_STORE_H

#include "hub/cache.h"

/* A manifest: m's path, files (of blobs/), bytes, age and trouble. A manifest that says nothing is trouble, too. */
hone_status hn_store_read(hn_local *m, hn_arena *arena, const char *root, const hn_name *n, hone_error *err);

/* HONE_MODELS, ./models and hn_models_home, those that are there, each once, in this order. */
hone_status hn_each_models_folder(hone_status (*fn)(void *arg, const char *folder), void *arg, hone_error *err);
/* The name of a file without folders, ending and -00001-of-00003. */
void hn_model_stem(char *dst, size_t cap, const char *path);

#endif
