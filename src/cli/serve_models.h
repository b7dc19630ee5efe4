/* serve_models: the file of hone serve --models-file: models with names, aliases and settings of their own. */
#ifndef HN_SERVE_MODELS_H
#define HN_SERVE_MODELS_H

#include "serve/shelf.h"

/* Adds the models of a file to list [cap], of which *n are there; what they point to is the arena's. HONE_E_ARG: a file
 * that says something else, its member named; HONE_E_IO: it cannot be read. */
hone_status hn_serve_models_read(struct hn_shelf_model *list, size_t cap, size_t *n, const char *path, hn_arena *a,
                                 hone_error *err);

#endif
