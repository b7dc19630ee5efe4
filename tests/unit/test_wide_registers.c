/* A wide kernel returns with the upper halves of its registers clear: while they are not, many x86 CPUs run every plain
 * float instruction of the thread twenty times slower. Compilers clear them only from some level of optimisation on;
 * here they must whatever the flags are. */
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { YMM = 1 << 2, N = 512 };

static _Alignas(64) float x[N], y[N], w[N];

/* Which parts of the registers the CPU holds for in use: XGETBV with ECX = 1. */
__attribute__((noinline)) static uint32_t in_use(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low;
}

/* Whether there is such an instruction, and it sees both. */
static bool can_tell(void)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false; /* OSXSAVE */
    if (!__get_cpuid_count(0xD, 1, &a, &b, &c, &d) || !(a >> 2 & 1)) return false;
    if (!hn_cpu_has(HN_CPU_AVX2)) return false;
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    bool dirty = in_use() & YMM;
    __asm__ volatile("vzeroupper" ::: "xmm0");
    return dirty && !(in_use() & YMM);
}

static void call(const hn_kernels *k, int which)
{
    static hn_a256 q[N / 256];
    switch (which) {
    case 0: k->exp(y, x, N); break;
    case 1: k->rms_norm(y, x, w, N, 1e-5f); break;
    case 2: k->silu_mul(y, x, w, N); break;
    case 3: k->quantize256(q, x, N); break;
    case 4: k->layer_norm(y, x, w, w, N, 1e-5f); break;
    case 5: k->to_bf16((uint16_t *)(void *)y, x, N); break;
    default: k->low_rank(y, w, 16, x, 1, N); break;
    }
}

static void test_upper_halves_are_clear(void **state)
{
#if defined(__OPTIMIZE_SIZE__)
    print_message("SKIP: gcc clears nothing under -Os\n");
    skip();
#endif
    if (!can_tell()) {
        print_message("SKIP: this CPU does not say which registers are in use\n");
        skip();
    }
    for (int i = 0; i < N; i++) x[i] = (float)(i % 17) - 8, w[i] = 1;
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        const hn_kernels *k = hn_kernels_get((hn_cpu_level)l);
        for (int which = 0; which < 7; which++) {
            call(k, which);
            if (in_use() & YMM) fail_msg("%s, kernel %d: upper halves left in use", k->name, which);
        }
    }
}
#else
static void test_upper_halves_are_clear(void **state)
{
    print_message("SKIP: not x86-64\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_upper_halves_are_clear) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
