/* A library to preload: the allocation number HONE_FAIL_ALLOC (from 1) fails, of those since the program began; with 0
 * none does. HONE_COUNT_ALLOC names a file that is told how many there were. The C library's own allocations count
 * as well. Owns malloc and its kin; knows nothing of hone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_long seen, fails_at;
static atomic_bool begun;
static char count_path[4200];

static bool fails_now(void)
{
    if (!atomic_load(&begun) || atomic_fetch_add(&seen, 1) + 1 != atomic_load(&fails_at)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return fails_now() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails_now() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails_now() ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { return fails_now() ? NULL : __libc_memalign(align, n); }
void *memalign(size_t align, size_t n) { return fails_now() ? NULL : __libc_memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n)
{
    return fails_now() || !(*p = __libc_memalign(align, n)) ? ENOMEM : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *k = getenv("HONE_FAIL_ALLOC");
    const char *path = getenv("HONE_COUNT_ALLOC");
    atomic_store(&fails_at, k ? atol(k) : 0);
    snprintf(count_path, sizeof count_path, "%s", path ? path : "");
    unsetenv("LD_PRELOAD"); /* its children have their own troubles */
    unsetenv("HONE_FAIL_ALLOC");
    atomic_store(&begun, true);
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    atomic_store(&begun, false);
    int fd = *count_path ? open(count_path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&seen));
    if (fd < 0) return;
    if (write(fd, text, (size_t)n) < 0) _exit(99);
    close(fd);
}
