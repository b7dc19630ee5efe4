/* failing: an allocator of which one call fails (linked by --wrap). Set countdown, run
 * what is tried, see in n_failed whether it came so far. Included by one file of a program. */
#ifndef HN_TEST_FAILING_H
#define HN_TEST_FAILING_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

static _Atomic long countdown = -1; /* -1: never fail; else the allocation that fails */
static _Atomic long n_failed;

static bool fails(void)
{
    if (countdown < 0) return false;
    if (countdown-- > 0) return false;
    countdown = -1;
    n_failed++;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off);

void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t m) { return fails() ? NULL : __real_calloc(n, m); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
void *__wrap_aligned_alloc(size_t a, size_t n) { return fails() ? NULL : __real_aligned_alloc(a, n); }
/* only anonymous memory: a file that cannot be mapped is another error */
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off)
{
    return (flags & MAP_ANONYMOUS) && fails() ? MAP_FAILED : __real_mmap(p, n, prot, flags, fd, off);
}

#endif
