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

/* CPU time of the thread that asks, which nobody else's work adds to. */
uint64_t hn_clock_thread_cpu_ns(void);

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

/* Stretches of time by both clocks, added up. */
typedef struct hn_stretches {
    uint64_t ns, seen;
} hn_stretches;

/* Ends the stretch that began at `from`, and adds it; its seconds. */
static inline double hn_stretches_add(hn_stretches *s, const hn_clocks *from)
{
    uint64_t end = hn_clock_ns(), ns = end - from->from;
    s->seen += hn_clocks_seen(from, end);
    s->ns += ns;
    return (double)ns * 1e-9;
}

/* Less time than the witness saw, by more than two readings one after the other differ? */
bool hn_clock_lies(double told_s, double seen_s);
/* CPU time is a third clock: more of it than so many threads can have in that time? The kernel books that of threads
 * which run at its ticks. */
bool hn_cpu_beyond(double cpu_s, double threads, double wall_s);
/* Both, of calls on at most so many threads: why their times are not believed. False: they are. */
bool hn_stretches_lie(char *why, size_t cap, const hn_stretches *s, double cpu_s, double wall_s, int32_t threads);

void hn_utc_now(char *dst, size_t cap); /* 2025-01-31T12:34:56Z */

#endif
