/* bench_stages: how long opening a model takes, step by step, and what its memory is for. Looks into
 * the library; whoever asks need not. */
#ifndef HN_BENCH_STAGES_H
#define HN_BENCH_STAGES_H

#include "base/base.h"
#include "base/json_text.h"

typedef struct hn_stages {
    double parse_ms, config_ms; /* without a look one begins when the other ends */
    uint64_t begun_ns, done_ns; /* hn_clock_ns before the first; behind the second */
} hn_stages;
/* As hone_model_open, and how long its two steps took: the file mapped and its directory checked;
 * architecture, hyper-parameters and weights bound. look (NULL allowed) is called after each. */
hone_status hn_stages_open(hone_model **out, hn_stages *t, const char *path, const hone_model_params *p,
                           void (*look)(void *, const char *), void *arg, hone_error *err);

typedef struct hn_look { /* bytes, exact; −1, or 0 of the first three: unknown */
    int64_t anon, rss, pss;
    int64_t tensors;      /* pages of weights, plain or packed, mapped into this process so far */
    int64_t cache, state; /* of the KV cache; of recurrent states and their copies */
} hn_look;
void hn_look_at(hn_look *out, const hone_model *m, const hone_session *s); /* both may be NULL */
json_t *hn_look_json(const char *stage, const hn_look *l);

/* A step as train.lora's, on n_tok tokens; look is called while its memory is held (bench_train.c). */
hone_status hn_bench_train_once(hone_context *ctx, hone_model *m, int32_t n_tok,
                                void (*look)(void *arg, const char *stage), void *arg, hone_error *err);

#endif
