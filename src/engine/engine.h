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

struct hone_session {
    hone_context *ctx;
    const hone_model *model;
    hn_backend *be;
    int32_t n_ctx, n_seq, n_chunk;
    int64_t n_pos;               /* n_ctx rounded up to whole blocks, beyond 512 to whole splits */
    hn_cache_type cache;
    hn_kv *kv;                   /* [n_layer] */
    char *cache_mem;             /* [n_seq][split][n_layer][K, V][n_head_kv] */
    uint64_t cache_floats;
    size_t head_bytes;           /* K, or V, of one head in a split */
    int32_t *length;             /* [n_seq] positions held */
    int32_t *next;               /* [n_seq] scratch of a decode call */
    hn_scratch s;
    int64_t act_n;
    struct { float **p; uint64_t n; } own[9];
    int n_own;
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

#endif
