/* A library to preload (tests/e2e/gate.sh): makes a sound program give broken answers. EVIL says how:
 *   zero      the model's weights read as zeros               constant  all layers do nothing: one token for ever
 *   nan       one norm weight is no number                    bit       one bit of one weight of a layer is flipped
 *   timed     as constant, but only in timed processes        maps      as bit, in every process: whoever maps the
 * model sees it EVIL_FROM and EVIL_TO: where the layers lie in the file. The others act in processes that measure alone
 * (hone bench), so that whoever judges from outside sees a good file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static int is(const char *how)
{
    const char *evil = getenv("EVIL");
    return evil && strcmp(evil, how) == 0;
}

/* Is this process one that measures, and, for "timed", one that is timed? */
static int acts(void)
{
    static int known = -1;
    if (known >= 0) return known;
    char line[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    int bench = 0, sample = 0;
    for (size_t i = 0; i < n; i += strlen(line + i) + 1) {
        bench |= strcmp(line + i, "bench") == 0;
        sample |= strcmp(line + i, "_sample") == 0;
    }
    return known = is("maps") || (is("timed") ? sample : bench);
}

static void spoil(unsigned char *p, size_t size)
{
    size_t from = strtoul(getenv("EVIL_FROM"), NULL, 10), to = strtoul(getenv("EVIL_TO"), NULL, 10);
    if (from >= to || to > size) return;
    if (is("zero")) memset(p + from - 786432, 0, size - (from - 786432)); /* the embedding lies before the layers */
    if (is("constant") || is("timed")) memset(p + from, 0, to - from);
    if (is("nan")) memset(p + to, 0xff, 4); /* the last norm lies behind them */
    if (is("bit") || is("maps")) p[from + (to - from) / 3 | 1] ^= 0x40;
}

static void *spoiled(void *m, size_t n, int prot, int flags, int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t k = fd >= 0 ? readlink(link, path, sizeof path - 1) : -1;
    if (m == MAP_FAILED || k < 5 || strcmp(path + k - 5, ".gguf") != 0 || prot != PROT_READ || !getenv("EVIL") ||
        !acts())
        return m;
    if (mprotect(m, n, PROT_READ | PROT_WRITE) == 0) spoil(m, n); /* private: only this process sees it */
    return m;
}

void *mmap(void *a, size_t n, int prot, int flags, int fd, off_t at)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    return spoiled(real(a, n, prot, flags, fd, at), n, prot, flags, fd);
}

void *mmap64(void *a, size_t n, int prot, int flags, int fd, off64_t at)
{
    static void *(*real)(void *, size_t, int, int, int, off64_t);
    if (!real) real = (void *(*)(void *, size_t, int, int, int, off64_t))dlsym(RTLD_NEXT, "mmap64");
    return spoiled(real(a, n, prot, flags, fd, at), n, prot, flags, fd);
}
