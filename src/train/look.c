/* The clock of look.h: the one of a session's profile. */
#define _GNU_SOURCE
#include "train/look.h"

#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hn_look_begin(const hn_step_look *l) { return l->fn ? now_ns() : 0; }

void hn_look_end(const hn_step_look *l, uint64_t start, const char *op, int64_t n_tok, hn_look_cost cost)
{
    if (!l->fn) return;
    const hone_profile_event e = { .op = op,
                                   .type = cost.type,
                                   .layer = l->layer,
                                   .n_tok = (int32_t)n_tok,
                                   .start_ns = start,
                                   .end_ns = now_ns(),
                                   .bytes = cost.bytes,
                                   .ops_float = cost.ops };
    l->fn(l->arg, &e, l->part);
}
