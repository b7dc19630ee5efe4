/* packed: a model's side file of packed weights, within this room: found and proven (packed_find.c), made and
 * compared (pack_model.c). */
#ifndef HN_PACKED_H
#define HN_PACKED_H

#include "model/model.h"

typedef struct hn_packed_found {
    hn_packed *file;          /* READY and TOUCHED */
    const hn_gguf_tensor **t; /* [file->n] the tensor of each entry */
    hone_packed_state state;
    char why[600]; /* UNUSABLE; TOUCHED: "", or why it cannot be told whether it is more */
} hn_packed_found;

/* MODEL.hpack; of a split set, that of its first file. Malloc'ed; NULL: no memory. */
char *hn_packed_default_path(const hn_gguf *g);
/* SHA-256 of names, types and shapes of all tensors. */
void hn_packed_shapes(const hn_gguf *g, unsigned char out[HN_PACKED_HASH]);
/* Opens the file and says whether it is of this model, as far as that is known without reading weights: READY is
 * proven, TOUCHED is to be proven. Fails only for want of memory. */
hone_status hn_packed_look(hn_packed_found *f, const hn_gguf *g, const char *path, hone_error *err);
/* TOUCHED becomes READY, or UNUSABLE with the reason: all of the model is hashed and all of the packed file, each only
 * if nothing is kept of it. *kept: the next start need not do it again. Fails for want of memory, when a file
 * is changed meanwhile, or when interrupted. */
hone_status hn_packed_prove(hn_packed_found *f, const hn_gguf *g, const hone_progress *pr, bool *kept, hone_error *err);
void hn_packed_drop(hn_packed_found *f);

#endif
