/* How work grows with its input, whatever the machine: the same work is done on a small and on
 * a large input, and their ratio is looked at, never a number of seconds. Owns that comparison;
 * knows nothing of what is measured. */
#ifndef HN_TEST_GROWTH_H
#define HN_TEST_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

typedef void growth_work(void *arg, size_t n); /* works on an input of n */

/* Seconds of the processor that this thread has had: others at work here do not count. */
static inline double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double seconds_for(growth_work *work, void *arg, size_t n)
{
    double t = thread_seconds();
    work(arg, n);
    return thread_seconds() - t;
}

/* Is `large` done within GROWTH_SLACK times the share of `small`? A linear rule with caches, and one
 * with a logarithm, is within a third of that; a quadratic one is large/small times its share, so
 * large must be 3 * GROWTH_SLACK times small at least. The least of several tries counts on
 * both sides, because a disturbance only adds. */
enum { GROWTH_SLACK = 10, GROWTH_TRIES = 5 };

static inline bool grows_as_input(const char *what, growth_work *work, void *arg, size_t small, size_t large)
{
    double share = (double)large / (double)small, least_small = 1e30, least_large = 1e30, ratio = 0;
    for (int i = 0; i < GROWTH_TRIES; i++) {
        double s = seconds_for(work, arg, small), l = seconds_for(work, arg, large);
        if (s < least_small) least_small = s;
        if (l < least_large) least_large = l;
        ratio = least_small > 0 ? least_large / least_small / share : 1; /* a clock too coarse for it tells nothing */
        if (ratio <= GROWTH_SLACK) return true;
        if (ratio > 8 * GROWTH_SLACK) break; /* no disturbance does that: spare the reader the other tries */
    }
    fprintf(stderr,
            "%s: an input %.0f times as large took %.0f times as long (%.3g s and %.3g s); expected at most %.0f\n",
            what, share, ratio * share, least_small, least_large, share * GROWTH_SLACK);
    return false;
}

#endif
