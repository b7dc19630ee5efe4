/* floats: how this thread rounds. The bits that hone computes are those of IEEE 754 as it is by default: to nearest,
 * with subnormal numbers, no traps. A program that loads the library may have set its thread otherwise
 * (torch.set_flush_denormal, fesetround, feenableexcept), and hone's own threads inherit that. Refuses to
 * change what the caller set for longer than a call. */
#ifndef HN_FLOATS_H
#define HN_FLOATS_H

#include <stdint.h>

/* The register that says it, and the bits of it that do; what is left over are flags that operations raise. */
#if defined(__x86_64__)
enum { HN_FLOATS_STANDARD = 0x1F80, HN_FLOATS_MASK = 0xFFC0 }; /* of MXCSR: all exceptions masked, nothing else */
static inline uint64_t hn_floats_get(void)
{
    uint32_t x;
    __asm__ volatile("stmxcsr %0" : "=m"(x) : : "memory");
    return x;
}
static inline void hn_floats_set(uint64_t mode)
{
    uint32_t x = (uint32_t)mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(x) : "memory");
}
#elif defined(__aarch64__)
enum { HN_FLOATS_STANDARD = 0, HN_FLOATS_MASK = 0x07FFBF07 }; /* of FPCR: AHP DN FZ RMode FZ16, traps, EBF NEP AH FIZ */
static inline uint64_t hn_floats_get(void)
{
    uint64_t x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x) : : "memory");
    return x;
}
static inline void hn_floats_set(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
enum { HN_FLOATS_STANDARD = 0, HN_FLOATS_MASK = 0 };
static inline uint64_t hn_floats_get(void) { return 0; }
static inline void hn_floats_set(uint64_t mode) { (void)mode; }
#endif

/* This thread computes by the standard from now on; what it did before. */
static inline uint64_t hn_floats_begin(void)
{
    uint64_t before = hn_floats_get();
    if ((before & HN_FLOATS_MASK) != HN_FLOATS_STANDARD) hn_floats_set(HN_FLOATS_STANDARD);
    return before;
}

static inline void hn_floats_end(const uint64_t *before)
{
    if ((*before & HN_FLOATS_MASK) != HN_FLOATS_STANDARD) hn_floats_set(*before);
}

/* First in a function of the API that computes: until it returns, by whichever way. */
#define HN_FLOATS uint64_t floats_before __attribute__((cleanup(hn_floats_end), unused)) = hn_floats_begin()

#endif
