/* clock: the one clock of all measurements, and the date. */
#ifndef HN_CLOCK_H
#define HN_CLOCK_H

#include "base/base.h"

uint64_t hn_clock_ns(void); /* CLOCK_MONOTONIC_RAW: the same in every process of this machine */
/* Another clock in its place, for tests that must not depend on how fast a machine is; it has to advance from one
 * reading to the next. NULL: the machine's again. Not while another thread measures. */
void hn_clock_set(uint64_t (*now)(void));

/* A second clock, of the kernel and by another way: what one clock claims, the other has seen. They run at the same
 * rate within 0.05 %, from different beginnings. */
uint64_t hn_clock_witness_ns(void);

/* Both clocks from one moment on. A process may lose the processor between two readings; the witness must not be told
 * to have seen that, so it is read between two readings of the other clock that are close together, and what passes
 * behind the end is taken off. */
typedef struct hn_clocks {
    uint64_t from, witness;
} hn_clocks;

static inline hn_clocks hn_clocks_begin(void)
{
    enum { TRIES = 3, CLOSE_NS = 20000 };
    hn_clocks c;
    uint64_t before = hn_clock_ns();
    for (int i = 0; i < TRIES; i++) {
        c.witness = hn_clock_witness_ns();
        c.from = hn_clock_ns();
        if (c.from - before < CLOSE_NS) break;
        before = c.from;
    }
    return c;
}

/* Nanoseconds that the witness saw until `end` of the other clock, which has just been read. */
static inline uint64_t hn_clocks_seen(const hn_clocks *c, uint64_t end)
{
    uint64_t seen = hn_clock_witness_ns() - c->witness, late = hn_clock_ns() - end;
    return seen > late ? seen - late : 0;
}

void hn_utc_now(char *dst, size_t cap); /* 2025-01-31T12:34:56Z */

#endif
