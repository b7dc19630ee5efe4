/* What sequences remember: pages of positions and blocks of states with counts of who holds them, tables that name
 * them, checkpoints, and the ids that positions came from. Owns all numbers and the budget; refuses to know what is
 * computed. The bytes are the backend's and are moved by its operations alone.
 *
 * A memory group is a set of layers that keep the same positions: all of them, the last W, or latent rows. A page holds
 * HN_PAGE positions of all layers of its group: [layer]{ K [head], V [head], rows of its index }. A sequence has a
 * table of page numbers for each group, and one block for the states of all recurrent layers. Whoever writes to what
 * others hold too gets a copy first. */
#ifndef HN_SEQ_MEMORY_H
#define HN_SEQ_MEMORY_H

#include "backend/backend.h"

enum { HN_MAX_MEMORY_GROUP = 16 };
#define HN_NO_BLOCK UINT32_MAX

typedef struct hn_prefix_tree hn_prefix_tree; /* prefix.h */

/* Pages of one size, address space until they are used. */
typedef struct hn_page_pool {
    hn_buf *mem;            /* [n] pages; the backend's */
    size_t bytes;           /* of a page */
    uint32_t n, fresh;      /* pages; those never used begin at fresh */
    uint32_t *refs, *spare; /* [n] holders; [n_spare] numbers that came back */
    uint32_t *kept;         /* [n] of the holders, nodes of the tree: more than one where a sequence was cut and kept */
    uint32_t n_spare;
} hn_page_pool;

typedef struct hn_memory_group {
    hn_page_pool pool;
    bool latent;
    int32_t window;       /* 0: all positions */
    int32_t n_tail, tail; /* windowed: pages that a checkpoint keeps at most, and where among its own */
    uint32_t *table;      /* [n_seq][n_page] */
    int32_t *first;       /* [n_seq] pages before it were dropped */
} hn_memory_group;

/* A place to go back to: what cannot be had by forgetting positions. */
typedef struct hn_checkpoint {
    int32_t seq, pos; /* seq −1: free */
    uint64_t used;    /* when, on the clock */
    uint32_t state;   /* its block */
    uint32_t *tail;   /* the last pages of windowed groups */
} hn_checkpoint;

/* What a position depends on beside the ids up to it: sequences share what they have in common of equal keys only. */
typedef struct hn_seq_key {
    uint64_t scope;    /* who may share: hone_seq_set_scope */
    uint64_t adapters; /* hash of the set; 0: none */
} hn_seq_key;

static inline bool hn_same_key(hn_seq_key a, hn_seq_key b) { return a.scope == b.scope && a.adapters == b.adapters; }

/* What a call replaced: the page of a group, or the state (group −1). */
typedef struct hn_replaced {
    int32_t group, seq;
    uint32_t old, new;
    bool kept; /* old still counts this sequence */
} hn_replaced;

typedef struct hn_memory_params {
    const hn_memory_layer *layer; /* [n_layer], borrowed */
    int32_t n_layer;
    hn_cache_type type;
    int32_t n_seq, n_ctx, n_checkpoint;
    int32_t n_kept;  /* states that the tree may hold */
    uint64_t budget; /* bytes of pages and blocks; 0: all that the sequences can ask for; more: for the tree */
} hn_memory_params;

typedef struct hn_memory_bytes {
    uint64_t one;    /* of the longest sequence, without states */
    uint64_t states; /* of all sequences, with room to go back and checkpoints */
    uint64_t all;    /* and what the tree may hold of states */
} hn_memory_bytes;

typedef struct hn_seq_memory {
    hn_backend *be; /* borrowed */
    hn_memory_params p;
    int64_t n_page; /* of the longest sequence */
    hn_memory_group group[HN_MAX_MEMORY_GROUP];
    int32_t n_group;
    const uint32_t *tables[HN_MAX_MEMORY_GROUP]; /* of each group */
    int32_t *group_of;                           /* [n_layer], −1: none */
    size_t *k_at, *v_at, *i_at;                  /* [n_layer] bytes from the start of a page */
    hn_page_pool states;                         /* blocks */
    uint64_t state_floats;                       /* of a block; 0: no layer has states */
    uint64_t *state_at;                          /* [n_layer] floats from the start of a block */
    uint32_t *state_block;                       /* [n_seq]; HN_NO_BLOCK: zeros */
    int32_t *length;                             /* [n_seq] positions */
    int32_t *held;   /* [n_seq] positions that there are pages for: more than length within a call */
    int32_t *ids;    /* [n_seq][n_ctx], address space */
    int32_t *n_ids;  /* [n_seq] positions whose ids are known: length of them, or fewer */
    hn_seq_key *key; /* [n_seq] */
    hn_prefix_tree *tree;
    hn_checkpoint *checkpoint;
    bool wants_checkpoints; /* there are places that cannot be had by forgetting positions */
    uint64_t clock;
    int32_t *call; /* [n_call] sequences that the running call extends */
    int32_t n_call;
    hn_replaced *replaced;
    int32_t n_replaced;
    uint64_t used;         /* bytes of pages and blocks that somebody holds */
    uint64_t copies;       /* pages and blocks copied so far, as they were written to while shared */
    uint64_t copied_bytes; /* of them all */
} hn_seq_memory;

/* What that takes; false: absurd. */
bool hn_memory_size(const hn_memory_params *p, hn_memory_bytes *out);
/* Reserves address space; touches next to nothing. On failure *out is NULL. */
hone_status hn_memory_new(hn_seq_memory **out, hn_backend *be, const hn_memory_params *p, hone_error *err);
void hn_memory_free(hn_seq_memory *m);
/* Layer il's as the backend takes it; valid as long as m. mem NULL: it has none. n_embd: of hn_state. */
hn_kv hn_memory_kv(const hn_seq_memory *m, int32_t il);
hn_state hn_memory_state(const hn_seq_memory *m, int32_t il, int64_t n_embd);

/* ---- a call: extend its sequences, then commit or undo -------------------------------------------- */

/* Positions [length, n_pos) of a sequence may be written, by nobody else; keep_state: undo brings its state back even
 * where nobody else holds it; slides: windowed groups get no pages for them, hn_memory_slide does that piece by piece.
 * HONE_E_NOMEM: the budget or the system refuses; then undo. Once a call for each. */
hone_status hn_memory_extend(hn_seq_memory *m, int32_t seq, int32_t n_pos, bool slides, bool keep_state,
                             hone_error *err);
/* Positions [from, to) of a call that began at position `before` come next: of the call's own pages those that its
 * windows have left behind go, and the new ones come. HONE_E_NOMEM: less may fit; else undo. */
hone_status hn_memory_slide(hn_seq_memory *m, int32_t seq, int32_t before, int32_t from, int32_t to, hone_error *err);
static inline int32_t *hn_memory_ids(const hn_seq_memory *m, int32_t seq)
{
    return m->ids + (size_t)seq * (size_t)m->p.n_ctx;
}
/* The id of position pos, as the sequence grows. */
static inline void hn_memory_note(hn_seq_memory *m, int32_t seq, int32_t pos, int32_t id)
{
    if (m->n_ids[seq] == pos) hn_memory_ids(m, seq)[m->n_ids[seq]++] = id;
}
/* Lengths are now what they are: what lies beyond, or behind a window, is let go. */
void hn_memory_commit(hn_seq_memory *m);
/* As before the call; ran: what was written in place is lost, and a state of which there is no copy goes back to its
 * furthest checkpoint, else to nothing; a page that two of its sequences shared may stay two. */
void hn_memory_undo(hn_seq_memory *m, bool ran);

/* ---- whole sequences: tables and counts alone ------------------------------------------------------ */

/* The furthest place of a sequence at or before n_pos; *c: the checkpoint that it needs, NULL: none. */
int32_t hn_memory_reach(const hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint **c);
/* To what hn_memory_reach said. */
void hn_memory_cut(hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint *c);
/* dst holds what src does, and has its key. */
void hn_memory_fork(hn_seq_memory *m, int32_t dst, int32_t src);
/* Of ids [n], n ≥ 1, seq then holds the first so many, at most n − 1: its own, or shared with the sequence of its key
 * that has the most, or with the tree. */
int32_t hn_memory_match(hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n);
void hn_memory_checkpoint(hn_seq_memory *m, int32_t seq);
int32_t hn_memory_drop_checkpoints(hn_seq_memory *m, int32_t seq, int32_t pos); /* those behind pos; how many */
/* Lets the checkpoint go that was not used for longest, whosever it is, within a call, too. False: there is none. */
bool hn_memory_drop_oldest(hn_seq_memory *m);

/* ---- for the tree, which holds pages as sequences do ------------------------------------------------- */

/* The pages of a group; −1: the blocks of states. */
static inline hn_page_pool *hn_memory_pool(hn_seq_memory *m, int32_t group)
{
    return group < 0 ? &m->states : &m->group[group].pool;
}
static inline int64_t hn_pages_of(int64_t n_pos) { return (n_pos + HN_PAGE - 1) / HN_PAGE; }
static inline uint32_t *hn_memory_table(const hn_seq_memory *m, int32_t group, int32_t seq)
{
    return m->group[group].table + (size_t)seq * (size_t)m->n_page;
}
/* The page that a group must begin with at a length: a windowed one forgets those before. */
static inline int32_t hn_memory_first(const hn_memory_group *g, int32_t length)
{
    return g->window && length >= g->window ? (length - g->window + 1) / HN_PAGE : 0;
}
/* One holder less of a page of a group; its bytes are free when it was the last. */
void hn_memory_release(hn_seq_memory *m, int32_t group, uint32_t number);
/* The sequence holds nothing; its checkpoints stay. */
void hn_memory_empty(hn_seq_memory *m, int32_t seq);
/* In place of its state the sequence holds another block too. */
void hn_memory_set_state(hn_seq_memory *m, int32_t seq, uint32_t block);

/* ---- bytes of a sequence ----------------------------------------------------------------------------- */

/* The first position that a layer holds at a length, whole pages, so that what is brought back elsewhere can be cut as
 * the original can; -1: it holds none of its own. */
int32_t hn_memory_from(const hn_seq_memory *m, int32_t il, int32_t length);
/* Bytes of 16 positions of a head of layer il, of K and of V. */
static inline size_t hn_memory_k_block(const hn_seq_memory *m, int32_t il)
{
    return hn_cache_block_bytes(m->p.type, m->p.layer[il].d_k);
}
static inline size_t hn_memory_v_block(const hn_seq_memory *m, int32_t il)
{
    return m->p.layer[il].d_v ? hn_cache_block_bytes(m->p.type, m->p.layer[il].d_v) : 0;
}
/* What a layer keeps of a position is in planes: K, or latent rows; V; rows of an index, of all heads one. Is that one
 * there, of that head? */
enum { HN_PLANE_K = 0, HN_PLANE_V, HN_PLANE_INDEX, HN_PLANES };
static inline size_t hn_memory_block(const hn_seq_memory *m, int32_t il, int plane)
{
    if (plane == HN_PLANE_INDEX) return (size_t)m->p.layer[il].d_i * HN_KEY_BLOCK * sizeof(float);
    return plane ? hn_memory_v_block(m, il) : hn_memory_k_block(m, il);
}
static inline bool hn_memory_has_plane(const hn_seq_memory *m, int32_t il, int32_t head, int plane)
{
    return plane == HN_PLANE_K || ((plane != HN_PLANE_INDEX || !head) && hn_memory_block(m, il, plane));
}
uint64_t hn_memory_bytes_at(const hn_seq_memory *m, int32_t length); /* of a sequence that shares nothing */
uint64_t hn_memory_bytes_to(const hn_seq_memory *m, int32_t length); /* at most on its way there, page by page */
/* Do sequences 0 … n − 1 of these lengths fit, and nothing else? */
bool hn_memory_fits(const hn_seq_memory *m, const int32_t *length, int32_t n);
/* The sequence holds n_pos positions with anything in them, from somewhere else (ids: NULL, not known). Where memory is
 * short, checkpoints go that were not used for longest. HONE_E_NOMEM: that is not enough, and nothing changes. */
hone_status hn_memory_renew(hn_seq_memory *m, int32_t seq, int32_t n_pos, const int32_t *ids, hone_error *err);
/* Has a sequence states? Then *at: bytes of m->states.mem to where they begin, all of them; else they are zeros. */
static inline bool hn_memory_state_at(const hn_seq_memory *m, int32_t seq, size_t *at)
{
    uint32_t b = m->state_block[seq];
    if (b == HN_NO_BLOCK) return false;
    *at = (size_t)b * m->states.bytes;
    return true;
}
/* Where 16 positions of a head begin, pos among them: bytes of kv's buffer to that plane. */
size_t hn_memory_block_at(const hn_seq_memory *m, int32_t il, int32_t seq, int64_t pos, int32_t head, int plane);
/* Tables of the step: by group, and the numbers of state blocks. */
static inline void hn_memory_step(const hn_seq_memory *m, hn_step_block *step)
{
    step->n_seq = m->p.n_seq;
    step->table = m->n_group ? m->tables : NULL;
    step->n_page = m->n_page;
    step->block = m->state_block;
}
/* Bytes of a buffer of pages or blocks that were ever used; 0: it is none of m's. */
size_t hn_memory_used_of(const hn_seq_memory *m, const hn_buf *buf);
uint64_t hn_memory_reserved(const hn_seq_memory *m); /* bytes of address space of pages and blocks */

#endif
