/* Which kernel levels this machine offers, how many cores, how much memory.
 * Refuses to know the kernels. */
#define _GNU_SOURCE
#include "base/base.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_names[HN_CPU_LEVELS] = { "scalar", "avx2", "avx512" };

const char *hn_cpu_level_name(hn_cpu_level l) { return level_names[l]; }

#if defined(__x86_64__)
static bool has_f16c(void) /* clang 14 does not know the name; OS state is that of avx2 */
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

bool hn_cpu_has(hn_cpu_level l)
{
    switch (l) {
    case HN_CPU_SCALAR: return true;
#if defined(__x86_64__)
    /* __builtin_cpu_supports checks OSXSAVE/XCR0 too */
    case HN_CPU_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case HN_CPU_AVX512:
        return hn_cpu_has(HN_CPU_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vnni");
#endif
    default: return false;
    }
}

hn_cpu_level hn_cpu_best(void)
{
    for (int l = HN_CPU_LEVELS - 1; l > 0; l--)
        if (hn_cpu_has((hn_cpu_level)l)) return (hn_cpu_level)l;
    return HN_CPU_SCALAR;
}

hone_status hn_cpu_choose(hn_cpu_level *out, const char *name, hone_error *err)
{
    const char *from = "cpu level";
    if (!name || !*name) {
        name = getenv("HONE_CPU");
        from = "HONE_CPU";
    }
    if (!name || !*name) {
        *out = hn_cpu_best();
        return HONE_OK;
    }
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (strcmp(name, level_names[l]) != 0) continue;
        if (!hn_cpu_has((hn_cpu_level)l))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s=%s: this machine lacks it; best here: %s", from, name,
                           level_names[hn_cpu_best()]);
        *out = (hn_cpu_level)l;
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_ARG, "%s=%s: unknown level; expected scalar, avx2 or avx512", from,
                   HN_ESC(name, strlen(name)));
}

int32_t hn_cpu_count(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0) return n;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

/* A line "NAME: N kB" of /proc/meminfo in bytes, 0 if there is none. */
static uint64_t meminfo(const char *name)
{
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return 0;
    char line[160];
    size_t n = strlen(name);
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ':' && sscanf(line + n + 1, "%llu kB", &kib) == 1) break;
    fclose(f);
    return (uint64_t)kib * 1024;
}

uint64_t hn_memory_available(void) { return meminfo("MemAvailable"); }

uint64_t hn_memory_total(void)
{
    uint64_t total = meminfo("MemTotal");
    unsigned long long limit;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "r"); /* "max" when there is none */
    if (f) {
        if (fscanf(f, "%llu", &limit) == 1 && limit > 0 && (!total || limit < total)) total = limit;
        fclose(f);
    }
    return total;
}
