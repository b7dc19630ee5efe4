/* scheduler: what one is, shared by the files scheduler*.c. A request has choices; a choice that runs has a slot, which
 * is a sequence of the session. Until its prompt is done a request is one unit: choice 0 runs it, the slots of the
 * others wait; then each choice is a unit. A unit that was paused keeps all but its slot. */
#ifndef HN_SCHEDULER_H
#define HN_SCHEDULER_H

#include "base/pace.h"
#include "engine/engine.h"

enum {
    HN_PROMPT_MARK = 256, /* positions between two checkpoints of a prompt */
    HN_ECHO_ROWS = 32,    /* rows of prompts whose logits are wanted, of a step */
    HN_MOST_TOP = 64      /* n_logprobs at most */
};

typedef struct hn_ticket hn_ticket;

typedef struct hn_choice {
    hn_ticket *of;
    int32_t k, slot;   /* slot −1: none */
    int32_t last_slot; /* the one it has, or had last; −1: none yet */
    int32_t *ids;      /* [n_ids] prompt and what was picked, of capacity cap; until it starts choice 0 alone has it */
    int32_t n_ids, cap;
    int32_t n_picked;           /* tokens told */
    int32_t furthest;           /* positions it once held */
    int32_t rows, to;           /* of the running step; the positions that it holds then */
    int32_t first_want, n_want; /* of its rows, those that want logits, among all of the batch */
    hone_sampler *sampler;
    uint64_t *allowed; /* [n_words], once asked for */
    bool asked, all;   /* the mask of the next token is known; it is everything */
    bool ended;
} hn_choice;

struct hn_ticket {
    uint64_t id;
    uint64_t turn;  /* of a client's first request that waits: when its turn came; else 0 */
    hone_request r; /* its pointers are ours */
    hone_bias *bias;
    hone_adapter **adapters;
    float *scales;
    hn_choice *choice;                  /* [r.n_choices] */
    int32_t n_left;                     /* choices that have not ended */
    bool forked;                        /* the prompt is done */
    bool cancelled, held;               /* held: nothing of it is run */
    uint64_t scope;                     /* of its sequences */
    int32_t n_cached, n_done, n_echoed; /* of the prompt: found, there, told with log-probabilities */
};

typedef struct hn_seat {
    hn_choice *c;  /* NULL: idle */
    uint64_t used; /* when it was left, on the clock of ticks */
} hn_seat;

/* What steps took: those of answers alone as a line through how many they were of, and what a row of prompts adds. */
typedef struct hn_step_costs {
    double width, ns;     /* of a step of answers alone, on average; ns 0: there was none yet */
    double spread, along; /* of the widths around theirs, squared; of both together */
    bool late;            /* the last one took more than twice what was expected */
    hn_cost row;          /* of prompts */
} hn_step_costs;

struct hone_scheduler {
    hone_session *ses;
    const hone_model *model;
    uint64_t (*now)(void *arg);
    void *now_arg;
    int32_t n_slot, n_vocab, max_queue, fixed_prefill;
    size_t n_words; /* of a mask */
    uint64_t tick, n_id;
    hn_seat *slot;     /* [n_slot] */
    hn_ticket **queue; /* [n_queue] in order of arrival */
    int32_t n_queue;
    hn_ticket **active; /* [n_active] in order of their start: oldest first */
    int32_t n_active;
    hone_token *batch; /* [n_chunk + n_slot] */
    float *logits;     /* [logit_rows, n_vocab] */
    int32_t logit_rows;
    hone_logprob top[(HN_ECHO_ROWS + 1) * HN_MOST_TOP]; /* of an event */
    float echo[HN_ECHO_ROWS + 1];                       /* of a prompt's tokens */
    hn_step_costs cost;
    hone_scheduler_stats n;
    hone_scheduler *beside, *before; /* a ring of those that share a machine: itself, where it is alone */
    uint64_t n_freed;                /* slots and memory came back so often */
    const hn_choice *waiter;         /* of whom it is known … */
    uint64_t waits_since;            /* … that it has no place until n_freed is another */
};

/* scheduler.c */
hn_ticket *hn_scheduler_next(const hone_scheduler *s); /* whose turn it is; NULL: nobody waits */
void hn_scheduler_take(hone_scheduler *s, hn_ticket *a,
                       bool served); /* off the queue; served: its client goes behind */
void hn_scheduler_forget(hn_ticket *a);

/* scheduler_room.c: slots and memory */
void hn_scheduler_drop_closed(hone_scheduler *s); /* what idle slots have of adapters that were closed */
void hn_scheduler_admit(hone_scheduler *s);
void hn_scheduler_keep(hone_scheduler *s, const hn_choice *c); /* what its slot holds is there to be found by others */
void hn_scheduler_release(hone_scheduler *s, hn_choice *c);    /* keeps it; its slot is idle */
bool hn_scheduler_evict(hone_scheduler *s); /* empties the idle slot not used for longest; false: all are empty */
/* Some memory more for a batch that did not fit: what is kept goes first, then the youngest pauses. False: only the
 * oldest is left. */
bool hn_scheduler_make_room(hone_scheduler *s);

/* scheduler_batch.c: which rows run, and what becomes of a batch that fails. False: none can */
bool hn_scheduler_run(hone_scheduler *s);

/* scheduler_tell.c: picks and events */
/* A unit's rows were run: what they say of its prompt, and, behind the last of its ids, the next token of each choice.
 * logits: of its rows that wanted them; from: its first row's position. */
void hn_scheduler_tell_rows(hone_scheduler *s, hn_choice *c, int32_t from, const float *logits);
/* Asks for the masks of the next token behind a unit's ids; false: it ended. */
bool hn_scheduler_ask_masks(hone_scheduler *s, hn_choice *c);
void hn_scheduler_end(hone_scheduler *s, hn_choice *c, hone_end end, const hone_error *error);
void hn_scheduler_end_all(hone_scheduler *s, hn_ticket *a, hone_end end, const hone_error *error); /* of those left */

/* The choices that run by themselves: of a request whose prompt is not done, choice 0 alone. */
static inline int32_t hn_scheduler_units(const hn_ticket *a) { return a->forked ? a->r.n_choices : 1; }
static inline int32_t hn_scheduler_held(const hone_scheduler *s, const hn_choice *c)
{
    return s->ses->mem->length[c->slot];
}

#endif
