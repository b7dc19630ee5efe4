/* engine: contexts and sessions. Knows batches, caches and their files; refuses to
 * know architectures. */
#ifndef HN_ENGINE_H
#define HN_ENGINE_H

#include "model/model.h"

struct hone_context {
    hn_pool *pool;
    int32_t n_threads, n_threads_batch; /* of few tokens, of many */
    hn_cpu_level level;
    const hn_kernels *kernels;
};

enum { HN_SESSION_ACTS = 2 + HN_MAX_SHIFT + 5 };

/* A state kept to go back to. */
typedef struct hn_checkpoint {
    float *mem;       /* NULL: never used */
    int32_t seq, pos; /* seq -1: free */
    uint64_t used;    /* when, on checkpoint_clock */
} hn_checkpoint;

/* What a session has of its adapters: a copy of the model's layer table whose weights point to them. */
typedef struct hn_adapter_set {
    hone_model *model;       /* NULL: none */
    hn_delta *delta;         /* of all weights */
    hone_adapter **adapter;  /* [n] held */
    int32_t n;
    uint64_t hash;           /* 0: none */
} hn_adapter_set;

struct hone_session {
    hone_context *ctx;
    const hone_model *model;
    hn_adapter_set adapters;
    hn_backend *be;
    int32_t n_ctx, n_seq, n_chunk;
    int64_t n_pos;               /* n_ctx rounded up to whole blocks, beyond 512 to whole splits */
    hn_cache_type cache;
    hn_kv *kv;                   /* [n_layer]; NULL in recurrent models, which have instead */
    hn_state *state;             /* [n_layer] */
    float *state_mem;            /* [n_seq][n_layer]{ a_prev, f_prev, S } */
    float *backup;               /* the same, of the sequences in `touched`: as they were before the running call */
    uint64_t state_floats;       /* of one sequence */
    uint8_t *touched;            /* [n_seq] */
    int32_t *last_row;           /* [n_seq] scratch of a forward pass */
    hn_checkpoint *checkpoint;   /* [n_checkpoint] */
    int32_t n_checkpoint;
    uint64_t checkpoint_clock;
    char *cache_mem;             /* [n_seq][split][n_layer][K, V][n_head_kv] */
    uint64_t cache_floats;
    size_t head_bytes;           /* K, or V, of one head in a split */
    int32_t *length;             /* [n_seq] positions held */
    int32_t *next;               /* [n_seq] scratch of a decode call */
    hn_scratch s;
    struct { float **p; uint64_t n; } own[12];
    struct { hn_act *a; int64_t n; } act[HN_SESSION_ACTS];
    int n_own, n_act;
    hn_row *rows;                /* [n_chunk] */
    int32_t *want;               /* [n_chunk] */
    hone_token *prompt;          /* [n_chunk] of hone_prefill */
    float *logits;               /* [n_vocab] of hone_prefill */
    bool (*abort_fn)(void *);
    void *abort_arg;
    hone_profile_fn *profile_fn; /* NULL: off, and be is used directly */
    void *profile_arg;
    int32_t profile_layer;       /* of the last operation */
    hn_profile_backend profiled; /* be, with reports */
};

/* adapter.c: the model as the session runs it. */
static inline const hone_model *hn_session_model(const hone_session *s) { return s->adapters.model ? s->adapters.model : s->model; }
void hn_adapter_set_free(hn_adapter_set *set);

/* sequence.c */
static inline bool hn_is_recurrent(const hone_session *s) { return s->model->hp.recurrent; }
static inline float *hn_state_of(const hone_session *s, int32_t seq) { return s->state_mem + (uint64_t)seq * s->state_floats; }
/* Forgets the checkpoints of a sequence behind position pos. */
void hn_checkpoints_drop(hone_session *s, int32_t seq, int32_t pos);
void hn_checkpoints_free(hone_session *s);
/* A recurrent state is no longer that of the sequence's length: back to the furthest checkpoint, else to none. */
void hn_state_lost(hone_session *s, int32_t seq);

#endif
