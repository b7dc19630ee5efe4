/* desk: the one thread that computes. It runs what it is given between steps, a step of each scheduler that has work,
 * in turn, and behind them one slice of what is computed beside answers. No lock is held while it computes. Refuses to
 * know requests: they are callbacks of the scheduler. */
#ifndef HN_DESK_H
#define HN_DESK_H

#include "base/pace.h"
#include "serve/crew.h"

/* A scheduler at the desk; in one list of its thread alone. */
typedef struct hn_desk_model {
    hone_scheduler *scheduler;
    struct hn_desk_model *next;
} hn_desk_model;

typedef struct hn_desk hn_desk;

/* after is called on the desk's thread behind each round of steps, and within it behind a step that others' computing
 * follows: what was said can be handed on. now: its clock, ns, as hone_scheduler_params has one; NULL: CLOCK_MONOTONIC.
 * Both with arg. */
hone_status hn_desk_new(hn_desk **out, void (*after)(void *arg), uint64_t (*now)(void *arg), void *arg,
                        hone_error *err);
/* t is run on the desk's thread, between steps, in its turn. Any thread. */
void hn_desk_do(hn_desk *d, hn_task *t);
/* t is run behind the steps of a round, one such task a round, in its turn. On the desk's thread. */
void hn_desk_slice(hn_desk *d, hn_task *t);
/* What is computed in slices, part by part: how many rows a part may have beside answers. */
typedef struct hn_desk_pace {
    int32_t fixed;  /* so many; 0: as many as time allows, as hone_scheduler_params has it of prompts */
    hn_cost row;    /* what one took */
    uint64_t since; /* when the last part began */
} hn_desk_pace;
/* Before each part of a slice, from within it: the rows that it may have, at most `most`. n_last: rows of the part
 * before, 0: this is the first. Behind each other part all else has its turn: what was given to the desk, and a step of
 * each scheduler. */
int32_t hn_desk_rows(hn_desk *d, hn_desk_pace *p, int32_t n_last, int32_t most);
/* On the desk's thread. Its answers and those of all that are there wait for no long prompts of each other. */
void hn_desk_add(hn_desk *d, hn_desk_model *m);
void hn_desk_remove(hn_desk *d, hn_desk_model *m);
/* The first in the list. On the desk's thread. */
const hn_desk_model *hn_desk_first(const hn_desk *d);
/* When the running step began, on the desk's clock. On the desk's thread, from within it. */
uint64_t hn_desk_step_ns(const hn_desk *d);
/* Runs what it was given, then ends, whatever is still to be computed. Not on its own thread. */
void hn_desk_free(hn_desk *d);

#endif
