/* paths: one model, one long prompt, many ways to compute it: in one call, in chunks of the engine's
 * and of 37, token by token, alone and with neighbours, after steps back and forks, from kept
 * prefixes, in calls of each small count, on one thread, on some and on all, from packed weights and
 * from plain ones, on each level of kernels. Promise:
 * the same bits. Whatever way a measurement goes, one of these goes it too, so that a build that is
 * wrong in one of them is found here, by name. The quality hash q2 is that of the eight prompts
 * (quality.h) and of this prompt. Knows hone.h; sessions are opened by the caller. */
#ifndef HN_PATHS_H
#define HN_PATHS_H

#include "base/base.h"
#include "lab/quality/outer.h"
#include "lab/quality/quality.h"

enum {
    HN_Q_LONG = 1100,      /* ids of the long prompt: beyond 512 and 1024 */
    HN_Q_LONG_QUICK = 112, /* in a quick run */
    HN_Q_MORE = 32,        /* generated behind it */
    HN_Q_PIECE = 37,       /* a chunk that no edge of the engine's is a multiple of */
    HN_Q_CRUMBS = 40,      /* calls of one token to so many */
    HN_Q_SEQS = 9,         /* sequences that a session must have room for */
    HN_Q_MANY = 20,        /* and one of short sequences, in which so many stand beside each other in any case */
    HN_Q_MOST = 64,        /* and as many as this now and then, */
    HN_Q_MOST_SMALL = 200, /* or, of a small model, half as often, as this */
    HN_Q_DEEP = 2112       /* positions of a small model: beyond 2048 */
};

/* How a session differs from what was asked for; all 0: not at all. */
typedef struct hn_q_way {
    int32_t n_ctx, n_seq;
    int32_t chunk;   /* 0: as asked */
    int32_t threads; /* 0: as asked */
    const char *cpu; /* NULL: as asked */
    int32_t cache;   /* 1 + hone_kv_cache_type; 0: as asked */
    uint64_t budget; /* bytes that its sequences may come to hold together; 0: as many as they can */
    bool plain;      /* weights from the model's file, not from a packed one */
    bool beside;     /* the session of the way before this one stays open, until the way behind it */
} hn_q_way;

typedef struct hn_paths_params {
    const hone_model *m;
    bool quick;
    uint64_t draw; /* of what is drawn: another number each run, or, `shared`, one that others draw by, too */
    bool shared;
    /* *out: NULL with HONE_OK: there is no such way here. What was opened for the way before is closed then. */
    hone_status (*open)(void *arg, const hn_q_way *w, hone_session **out, hone_error *err);
    /* Beside the session that was opened last: *out with n_seq slots, freed by who asked. May be NULL: none. */
    hone_status (*open_scheduler)(void *arg, const hn_q_way *w, hone_scheduler **out, hone_error *err);
    hone_status (*numbers)(uint64_t *h, hone_error *err); /* *h goes on by what no prompt reaches; NULL: nothing */
    void *arg;
    bool (*abort_fn)(void *arg); /* of these sessions, set again where they are stopped on purpose; NULL: none */
    void *abort_arg;
    hone_kv_cache_type cache;  /* as asked */
    int32_t threads;           /* a count between 1 and the one in use, drawn by the caller; 0: there is none */
    int32_t threads_more;      /* and one above it; 0: there is none */
    const char *const *levels; /* of kernels below the one in use, ends with NULL */
    bool packed;               /* the model's weights come from a packed file */
    /* seq, which is empty, gets them, and the first of them once more, at scales that `draw` draws; NULL: none */
    hone_status (*scale_adapters)(void *arg, hone_session *s, int32_t seq, uint64_t draw, hone_error *err);
    bool adapted; /* adapters go with it: they are of this model, and of no other of its plain weights */
} hn_paths_params;

enum { HN_PATHS_LEFT = 20 };
typedef struct hn_paths {
    char hash[24];              /* "q2-TTTTTTTT-LLLLLLLL", of a quick run "q2q-…"; "" when there is none */
    int32_t n_long, n_compared; /* ids of the long prompt; rows of logits that were compared */
    int32_t n_ways;
    uint64_t draw;                   /* as asked */
    const char *left[HN_PATHS_LEFT]; /* what was not compared, in words: the first n_never are, whoever asks */
    int32_t n_left, n_never;
    int32_t widest;     /* positions of the widest session that there was room for, drawn; 0: of none */
    char asked[80];     /* with what, in words of the caller: results of the same compare as many rows */
    char beyond[40];    /* one of them, with a number in it */
    hn_outer outer;     /* what stands around the engine, its embeddings among it: in no hash above */
    hn_verdict verdict; /* INVALID: two ways gave different bits, and which; or no numbers */
} hn_paths;

/* eight: of the same model and settings, valid or not. */
hone_status hn_paths_run(hn_paths *out, const hn_paths_params *p, const hn_q_prompts *prompts, const hn_quality *eight,
                         hone_error *err);

#endif
