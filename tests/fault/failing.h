/* failing: an allocator of which one call fails (linked by --wrap). Set countdown, run
 * what is tried, see in n_failed whether it came so far. Included by one file of a program.
 * HN_FAILING_ALONE: only the calling thread's calls fail, and live anonymous mappings are counted in
 * n_maps; wants cmocka before it. */
#ifndef HN_TEST_FAILING_H
#define HN_TEST_FAILING_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HN_FAILING_ALONE
#define COUNTED _Thread_local
#else
#define COUNTED _Atomic
#endif
static COUNTED long countdown = -1; /* -1: never fail; else the allocation that fails */
static COUNTED long n_failed;

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
#ifdef HN_FAILING_ALONE
enum { MAX_MAPS = 256 };
static struct {
    void *p;
    size_t n;
} maps[MAX_MAPS];
static int n_maps;
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off)
{
    if (!(flags & MAP_ANONYMOUS)) return __real_mmap(p, n, prot, flags, fd, off);
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *q = __real_mmap(p, n, prot, flags, fd, off);
    assert_true(n_maps < MAX_MAPS);
    if (q != MAP_FAILED) maps[n_maps].p = q, maps[n_maps++].n = n;
    return q;
}
int munmap(void *p, size_t n)
{
    for (int i = 0; i < n_maps; i++)
        if (maps[i].p == p) {
            assert_int_equal(maps[i].n, n); /* all of it, or the rest stays */
            maps[i] = maps[--n_maps];
            break;
        }
    return (int)syscall(SYS_munmap, p, n);
}
#else
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t off)
{
    return (flags & MAP_ANONYMOUS) && fails() ? MAP_FAILED : __real_mmap(p, n, prot, flags, fd, off);
}
#endif

#endif
