/* guard: what memory of our own must tell a sanitizer, so that it sees an overrun of it as it sees one of
 * malloc's. Owns the question which sanitizer this is built with; refuses to allocate.
 *
 * HN_ISOLATE 1: blocks are not carved from larger ones, and nothing is rounded up. Under AddressSanitizer of
 * gcc and of clang; valgrind sees overruns too when built with -DHN_ISOLATE=1. */
#ifndef HN_GUARD_H
#define HN_GUARD_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) /* gcc says it so */
#define HN_ASAN 1
#elif defined(__has_feature) /* clang so */
#if __has_feature(address_sanitizer)
#define HN_ASAN 1
#endif
#endif
#ifndef HN_ASAN
#define HN_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define HN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HN_TSAN 1
#endif
#endif
#ifndef HN_TSAN
#define HN_TSAN 0
#endif
#define HN_WATCHED (HN_ASAN || HN_TSAN) /* kernels tell what they read and write (kernels/watched.h) */

#ifndef HN_ISOLATE
#define HN_ISOLATE HN_ASAN
#endif

#if HN_ASAN
void __asan_poison_memory_region(const volatile void *p, size_t n);
void __asan_unpoison_memory_region(const volatile void *p, size_t n);
/* From now on any access to p[n] is an error; unguarded before the memory goes back to the system. */
static inline void hn_guard(const volatile void *p, size_t n) { __asan_poison_memory_region(p, n); }
static inline void hn_unguard(const volatile void *p, size_t n) { __asan_unpoison_memory_region(p, n); }
#else
static inline void hn_guard(const volatile void *p, size_t n) { (void)p, (void)n; }
static inline void hn_unguard(const volatile void *p, size_t n) { (void)p, (void)n; }
#endif

/* A limit; and what it is where it is fuzzed, so that small inputs reach it. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define HN_LIMIT(real, fuzzed) (fuzzed)
#else
#define HN_LIMIT(real, fuzzed) (real)
#endif

#endif
