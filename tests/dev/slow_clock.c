/* A machine that is SLOW times slower, for tests that must not care: every clock of the
 * process runs SLOW times as fast (default 20), sleeps last as long as ever.
 *     cc -shared -fPIC -O1 -o slow.so tests/dev/slow_clock.c -ldl
 *     SLOW=50 LD_PRELOAD=$PWD/slow.so build/release/tests/unit/test_sampler
 * Dates (time, CLOCK_REALTIME) stay as they are. It knows nothing of hone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long slowness(void)
{
    static long n;
    const char *s = n ? NULL : getenv("SLOW");
    if (!n) n = s && atol(s) > 0 ? atol(s) : 20;
    return n;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, t);
    if (rc != 0 || id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) return rc;
    __int128 ns = ((__int128)t->tv_sec * 1000000000 + t->tv_nsec) * slowness();
    t->tv_sec = (time_t)(ns / 1000000000);
    t->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

clock_t clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (clock_t)(t.tv_sec * CLOCKS_PER_SEC + t.tv_nsec / (1000000000 / CLOCKS_PER_SEC));
}
