/* Which kernel levels this build has and this machine offers. Refuses to know the
 * kernels. */
#include "base/os.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_names[HN_CPU_LEVELS] = { "scalar", "avx2",         "avx_vnni", "avx512",
                                                        "neon",   "neon_dotprod", "neon_i8mm" };

const char *hn_cpu_level_name(hn_cpu_level l) { return level_names[l]; }

#if defined(__x86_64__)
bool hn_cpu_has_bf16(void) { return hn_cpu_has(HN_CPU_AVX512) && __builtin_cpu_supports("avx512bf16"); }

static bool has_f16c(void) /* clang 14 does not know the name; OS state is that of avx2 */
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx_vnni(void) /* CPUID 7.1: EAX bit 4; older compilers do not know the name */
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || a < 1) return false; /* no such leaf: it reads as another's */
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
#else
bool hn_cpu_has_bf16(void) { return false; }
#endif

bool hn_cpu_built(hn_cpu_level l)
{
#if defined(__x86_64__)
    return l <= HN_CPU_AVX512;
#elif defined(__aarch64__)
    return l == HN_CPU_SCALAR || (l >= HN_CPU_NEON && l <= HN_CPU_NEON_I8MM);
#else
    return l == HN_CPU_SCALAR;
#endif
}

bool hn_cpu_has(hn_cpu_level l)
{
    switch (l) {
    case HN_CPU_SCALAR: return true;
#if defined(__x86_64__)
    /* __builtin_cpu_supports checks OSXSAVE/XCR0 too */
    case HN_CPU_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case HN_CPU_AVX_VNNI: return hn_cpu_has(HN_CPU_AVX2) && has_avx_vnni();
    case HN_CPU_AVX512: /* not each of these CPUs has AVX-VNNI */
        return hn_cpu_has(HN_CPU_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__)
    case HN_CPU_NEON: return true; /* part of the architecture */
    case HN_CPU_NEON_DOTPROD: return hn_os_arm_features() & HN_ARM_DOTPROD;
    case HN_CPU_NEON_I8MM: return hn_cpu_has(HN_CPU_NEON_DOTPROD) && hn_os_arm_features() & HN_ARM_I8MM;
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

/* "scalar, avx2, avx_vnni or avx512" */
static const char *built_levels(char *dst, size_t cap)
{
    int left = 0;
    size_t n = 0;
    for (int l = 0; l < HN_CPU_LEVELS; l++) left += hn_cpu_built((hn_cpu_level)l);
    dst[0] = 0;
    for (int l = 0; l < HN_CPU_LEVELS && n < cap; l++)
        if (hn_cpu_built((hn_cpu_level)l)) {
            left--;
            n += (size_t)snprintf(dst + n, cap - n, "%s%s", level_names[l], left > 1 ? ", " : left == 1 ? " or " : "");
        }
    return dst;
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
        if (!hn_cpu_built((hn_cpu_level)l))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s=%s: a level of another architecture; expected %s", from, name,
                           built_levels((char[80]){ 0 }, 80));
        if (!hn_cpu_has((hn_cpu_level)l))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s=%s: this machine lacks it; best here: %s", from, name,
                           level_names[hn_cpu_best()]);
        *out = (hn_cpu_level)l;
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_ARG, "%s=%s: unknown level; expected %s", from, HN_ESC(name, strlen(name)),
                   built_levels((char[80]){ 0 }, 80));
}
