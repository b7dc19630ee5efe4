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

uint64_t hn_clock_witness_ns(void) { return hn_os_kernel_ns(); }

void hn_utc_now(char *dst, size_t cap)
{
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(dst, cap, "%Y-%m-%dT%H:%M:%SZ", &tm)) snprintf(dst, cap, "unknown");
}
