/* snapshot: a copy of one sequence, in memory (sequence.c) and in a file (snapshot_file.c); and which bytes of the
 * backend's blocks are a sequence's, which sessions' files ask, too. */
#ifndef HN_SNAPSHOT_H
#define HN_SNAPSHOT_H

#include "engine/engine.h"

struct hone_snapshot {
    const hone_model *model;
    uint64_t adapters, scope;
    hn_cache_type cache;
    bool lengthened; /* of a session longer than n_ctx_long, where the model has that */
    int32_t length;
    size_t bytes;
    char *mem;
    int32_t *ids; /* [length] */
    bool known;   /* the ids */
};

/* Would hone_seq_restore take it for a sequence with these adapters? As that says. */
hone_status hn_snapshot_fits(const hone_session *s, int32_t seq, uint64_t adapters, const hone_snapshot *p,
                             hone_error *err);

/* What a layer keeps of a head is in planes: K and V, or latent rows, which lie as V does, as do an index's. */
typedef struct hn_plane {
    int which;  /* HN_PLANE_… */
    bool rows;  /* lies as V: position by position */
    bool exact; /* f32, whatever the cache is */
    int64_t d;
    size_t block; /* bytes of 16 positions */
} hn_plane;
hn_plane hn_plane_of(const hone_session *s, int32_t il, int which);
/* p: whole blocks that hold len positions of it, read from the backend. What is past them in the last block belongs to
 * whoever had the page before: zeros. */
void hn_plane_clear(const hone_session *s, const hn_plane *plane, char *p, int64_t len);

/* A session's angles are those of more positions than the model was trained for at first. */
static inline bool hn_is_lengthened(const hone_session *s)
{
    const hn_hparams *hp = &s->model->hp;
    return s->mem->n_group && hp->n_ctx_long && s->n_ctx > hp->n_ctx_long;
}

#endif
