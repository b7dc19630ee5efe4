/* engine: contexts and sessions. Knows batches, caches and their files; refuses to
 * know architectures. */
#ifndef HN_ENGINE_H
#define HN_ENGINE_H

#include "engine/seq_memory.h"
#include "kernels/kernels.h"
#include "model/forward.h"

enum { HN_MAX_STOPS = 1 << 16 }; /* stop strings of an answer; each is looked at for every byte */

struct hone_context {
    hn_pool *pool;
    const char *backend;                /* which its sessions run on; NULL: the first there is */
    int32_t n_threads, n_threads_batch; /* of few tokens, of many */
    hn_cpu_level level;
    const hn_kernels *kernels;
};

/* Adapters that sequences run with, and their scales. */
typedef struct hn_adapter_set {
    hn_adapters of;         /* as a step names them */
    hn_delta *delta;        /* of all weights */
    hone_adapter **adapter; /* [n] held */
    float *scale;           /* [n] none is 0 */
    int32_t n;              /* at least 1 */
    uint64_t hash;          /* not 0 */
    int32_t users;          /* sequences */
    int32_t at;             /* of the step that is made: 1 the first of its sets; 0: not among them */
} hn_adapter_set;

typedef struct hn_adapter_mark hn_adapter_mark; /* adapter.c */

/* Sets of adapters that what is kept was computed with: each of their adapters is an entry. */
typedef struct hn_kept_with {
    uint64_t hash; /* the set's */
    hn_adapter_mark *mark;
} hn_kept_with;

struct hone_session {
    hone_context *ctx;
    const hone_model *model;
    hn_adapter_set **set; /* [n_seq] what each sequence runs with; NULL: the model alone */
    hn_kept_with *kept;   /* [n_kept] */
    int32_t n_kept, cap_kept;
    const hn_adapters **in_step; /* [n_seq] scratch of a forward pass: the sets of its rows */
    hn_backend *be;
    int32_t n_ctx, n_seq, n_chunk;
    hn_cache_type cache;
    hn_seq_memory *mem; /* what sequences remember */
    hn_kv *kv;          /* [n_layer] its views */
    hn_state *state;    /* [n_layer] */
    int32_t *last_row;  /* [n_seq] scratch of a forward pass */
    int32_t *next;      /* [n_seq] scratch of a call */
    hn_scratch s;
    hn_row *rows;       /* [n_chunk] */
    int32_t *want;      /* [n_chunk] */
    hone_token *prompt; /* [n_chunk] of hone_append */
    float *logits;      /* [n_vocab] of hone_append */
    float *hidden;      /* while rows are run for embeddings: takes those that are wanted; else NULL */
    bool (*abort_fn)(void *);
    void *abort_arg;
    hone_profile_fn *profile_fn; /* NULL: off, and be is used directly */
    void *profile_arg;
    hn_profile_backend profiled; /* be, with reports */
};

/* The sequence, which is empty, then runs with this set; NULL: none. */
void hn_seq_use_set(hone_session *s, int32_t seq, hn_adapter_set *set);
/* Has a handle of its set been closed, so that the set alone holds it? */
bool hn_seq_set_is_closed(const hone_session *s, int32_t seq);
/* What a sequence holds is to be kept. False: no memory. */
bool hn_adapters_note(hone_session *s, int32_t seq);
/* Forgets what is kept of adapters that are open no more, by whatever handle. False: nothing was. */
bool hn_adapters_drop_closed(hone_session *s);
void hn_adapters_forget(hone_session *s); /* at its end */
/* The hash that a sequence with these adapters would have; fails as hn_adapters_check does. */
hone_status hn_adapters_hash(const hone_session *s, uint64_t *hash, hone_adapter *const *adapters, const float *scales,
                             int32_t n, hone_error *err);
/* Whether a sequence may run with these adapters; fails as hone_seq_set_adapters does where it may not. */
hone_status hn_adapters_check(const hone_session *s, hone_adapter *const *adapters, const float *scales, int32_t n,
                              hone_error *err);
enum { HN_BLAME = 640 };
/* Why a number is none, and what to look at: the first adapter of a set (NULL: none), first, the cache ("": not that),
 * the weights. dst [HN_BLAME]; returns it. */
const char *hn_blame(char *dst, const hone_model *m, const hn_adapter_set *set, const char *cache);
/* "the adapter FILE at scale 2"; "": there is none. dst as before; returns it. */
const char *hn_scale_words(char *dst, const hn_adapter_set *set);
static inline uint64_t hn_seq_set_hash(const hone_session *s, int32_t seq)
{
    return s->set[seq] ? s->set[seq]->hash : 0;
}

/* Has a sequence states, and no positions beside them? */
static inline bool hn_is_recurrent(const hone_session *s) { return s->mem->state_floats && !s->mem->n_group; }
static inline size_t hn_state_bytes(const hone_session *s) { return (size_t)s->mem->state_floats * sizeof(float); }

/* session_profile.c: the profile hears that `bytes` were copied for n_tok tokens, since start_ns (hn_profile_now). */
void hn_session_tell_copy(hone_session *s, int32_t n_tok, uint64_t bytes, uint64_t start_ns);

/* sequence.c */
hone_status hn_check_seq(const hone_session *s, int32_t seq, hone_error *err);
/* HONE_E_NUMERIC: the state of the sequence has what is no finite number, as logits that nobody wanted would have told.
 * Reads all of it. */
hone_status hn_check_state(const hone_session *s, int32_t seq, hone_error *err);
/* hone_seq_keep for who keeps often: the state is not looked at. */
hone_status hn_seq_keep(hone_session *s, int32_t seq, hone_error *err);
/* session.c: runs s->prompt [n_tok], n_tok ≤ n_chunk, as hone_run_batch does; hidden [n_wanted, n_embd] takes the
 * stream at its end, normed, in place of logits. */
hone_status hn_session_hidden(hone_session *s, int32_t n_tok, float *hidden, hone_error *err);
/* session.c: hone_run_batch for who knows better than to let checkpoints go where memory is short: HONE_E_NOMEM. */
hone_status hn_session_run(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err);
/* session.c: for who runs parts of a pass alone: the sequence holds n_pos positions, of anything, and a state of
 * zeros. */
hone_status hn_session_hold(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
void hn_session_zero_state(hone_session *s, int32_t seq);

#endif
