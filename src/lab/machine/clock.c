/* Time. Owns the one clock that every measurement uses: raw, so that no time daemon
 * bends it, and of the machine, so that parent and child may subtract. */
#define _GNU_SOURCE
#include "lab/machine/clock.h"
#include "base/os.h"

#include <time.h>

static uint64_t (*source)(void); /* NULL: the machine's */

void hn_clock_set(uint64_t (*now)(void)) { source = now; }

uint64_t hn_clock_ns(void)
{
    struct timespec t;
    if (source) return source();
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hn_clock_witness_ns(void) { return source ? source() : hn_os_kernel_ns(); }

uint64_t hn_clock_thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool hn_clock_lies(double told_s, double seen_s)
{
    const double share = 0.02, slack_s = 0.0005;
    return told_s < (1 - share) * seen_s - slack_s;
}

bool hn_cpu_beyond(double cpu_s, double threads, double wall_s)
{
    const double share = 0.05, slack_s = 0.01, tick_s = 0.012; /* of each other thread: what was not booked before */
    return cpu_s > (1 + share) * threads * wall_s + slack_s + tick_s * (threads - 1);
}

bool hn_stretches_lie(char *why, size_t cap, const hn_stretches *s, double cpu_s, double wall_s, int32_t threads)
{
    double told_s = 1e-9 * (double)s->ns, seen_s = 1e-9 * (double)s->seen;
    if (hn_clock_lies(told_s, seen_s))
        snprintf(why, cap, "all samples took %.3f ms by the clock, and %.3f ms by the kernel's", 1e3 * told_s,
                 1e3 * seen_s);
    else if (hn_cpu_beyond(cpu_s, threads, wall_s))
        snprintf(why, cap, "%.3f s of CPU time in %.3f s: more than %d thread%s can have", cpu_s, wall_s, (int)threads,
                 threads == 1 ? "" : "s");
    else return false;
    return true;
}

void hn_utc_now(char *dst, size_t cap)
{
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(dst, cap, "%Y-%m-%dT%H:%M:%SZ", &tm)) snprintf(dst, cap, "unknown");
}
