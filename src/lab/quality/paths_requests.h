/* Requests of a scheduler, and what each of them must be told: what its prompt says alone. */
#ifndef HN_PATHS_REQUESTS_H
#define HN_PATHS_REQUESTS_H

#include "lab/quality/paths_walk.h"

enum { HN_ASKED_CHOICES = 3, HN_ASKED_GEN = 84, HN_ASKED_TOP = 3, HN_ASKED_PROMPT = 160 };

typedef struct hn_question {
    const int32_t *ids; /* [n] the prompt */
    int32_t n, gen;     /* gen: tokens of each choice */
    int32_t n_choices;  /* 0: 1 */
    hone_sampler_params how;
    int32_t n_logprobs; /* -1: none; 0 to HN_ASKED_TOP */
    bool sampled;       /* probabilities behind the chain, in place of these; the chain has top_k alone */
    bool echo;          /* the prompt's, too */
    uint64_t mask;      /* which tokens may come is drawn from it; 0: all */
    const hone_bias *bias;
    size_t n_bias;
    bool ends;                 /* at tokens that end generation */
    bool full;                 /* goes on until the context of n_ctx is full */
    int32_t n_ctx;             /* positions of the scheduler's sequences */
    int32_t stop_after;        /* who listens says so behind so many tokens; 0: never */
    int32_t cancel_after;      /* the same from outside: what was told until then must be right */
    int32_t hold_at, hold_for; /* it is held before that step, for so many; 0: never */
    uint64_t client, scope;
} hn_question;

typedef struct hn_told {
    const hn_question *of;
    uint64_t id; /* the scheduler's number; 0: it was not asked */
    int32_t n[HN_ASKED_CHOICES], n_ended, slot;
    bool other_place; /* of a token or the prompt was told than it has */
    hone_end end[HN_ASKED_CHOICES];
    int32_t ids[HN_ASKED_CHOICES][HN_ASKED_GEN];
    float logprob[HN_ASKED_CHOICES][HN_ASKED_GEN];
    hone_logprob top[HN_ASKED_CHOICES][HN_ASKED_GEN][HN_ASKED_TOP];
    int32_t n_echoed;
    float prompt[HN_ASKED_PROMPT];
    hone_logprob prompt_top[HN_ASKED_PROMPT][HN_ASKED_TOP];
    int32_t n_vocab;
} hn_told;

/* Submits it; t is told from then on. */
hone_status hn_ask(hn_walk *w, hone_scheduler *s, const hn_question *q, hn_told *t);
/* Steps until nobody of t [n] waits, or until so many steps are made; holds and cancels as they ask. */
hone_status hn_ask_step(hn_walk *w, hone_scheduler *s, hn_told *t, int32_t n, int32_t most);
/* Of every choice: what it was told beside what it is told in the session at hand, alone. The verdict says where it
 * differs. */
hone_status hn_ask_alone(hn_walk *w, const hn_told *t);

#endif
