/* Arena and page allocation. Owns memory that lives as long as a model or a
 * session; refuses to free single blocks. */
#include "base/base.h"
#include "base/guard.h"
#include "base/os.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { FIRST = 1024, BLOCK = 64 * 1024, ALIGN = 64 };

typedef struct chunk {
    struct chunk *next;
    size_t used, cap; /* bytes after the header */
} chunk;

struct hn_arena {
    chunk *head;
    size_t bytes;
};

static unsigned char *chunk_data(chunk *c) { return (unsigned char *)c + ALIGN; }

hn_arena *hn_arena_new(void) { return calloc(1, sizeof(hn_arena)); }

/* A chunk for cap bytes, zeroed and counted; NULL: out of memory. */
static chunk *chunk_new(hn_arena *a, size_t cap)
{
    chunk *c = aligned_alloc(ALIGN, ALIGN + cap);
    if (!c) return NULL;
    memset(c, 0, ALIGN + cap);
    c->cap = cap;
    a->bytes += ALIGN + cap;
    return c;
}

/* One block in a chunk of its own; what the rounding adds, and the gap before it, is out of bounds. */
static void *isolated(hn_arena *a, size_t n, size_t rounded)
{
    chunk *c = chunk_new(a, HN_ASAN ? rounded : n); /* ASan refuses sizes that are no multiple of the alignment */
    if (!c) return NULL;
    c->used = c->cap;
    c->next = a->head;
    a->head = c;
    hn_guard(c + 1, ALIGN - sizeof *c);
    hn_guard(chunk_data(c) + n, c->cap - n);
    return chunk_data(c);
}

/* Of the next chunk, for a block of n bytes: as much again as there is, from FIRST to BLOCK. What is zeroed and given
 * back costs more than what stands in it, and many an arena lives for one token alone. */
static size_t chunk_size(const hn_arena *a, size_t n)
{
    size_t size = FIRST;
    if (n > BLOCK / 4) return n; /* one of its own */
    while (size < BLOCK && (size < a->bytes || size < 4 * n)) size *= 2;
    return size;
}

void *hn_arena_alloc(hn_arena *a, size_t n)
{
    if (n > SIZE_MAX - 4 * ALIGN) return NULL;
    size_t exact = n;
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (n == 0) n = ALIGN;
    if (HN_ISOLATE) return isolated(a, exact, n);
    size_t cap = chunk_size(a, n);
    bool fits = a->head && a->head->cap - a->head->used >= n;
    if (!fits) {
        chunk *c = chunk_new(a, cap);
        if (!c) return NULL;
        if (cap == n && a->head) { /* a big one: keep filling the current block */
            c->used = n;
            c->next = a->head->next;
            a->head->next = c;
            return chunk_data(c);
        }
        c->next = a->head;
        a->head = c;
    }
    void *p = chunk_data(a->head) + a->head->used;
    a->head->used += n;
    return p;
}

char *hn_arena_strndup(hn_arena *a, const char *s, size_t n)
{
    char *p = hn_arena_alloc(a, n + 1);
    if (!p) return NULL;
    if (n) memcpy(p, s, n);
    p[n] = 0;
    return p;
}

size_t hn_arena_bytes(const hn_arena *a) { return a->bytes; }

void hn_arena_free(hn_arena *a)
{
    if (!a) return;
    for (chunk *c = a->head; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(a);
}

/* With a sanitizer there is one page more behind, and what follows byte n is out of bounds: pages are
 * rounded up by the system. guarded: bytes to map. */
static size_t guarded(size_t n)
{
    enum { PAGE = 4096 };
    if (!n) n = 1;
    return HN_ASAN && n < SIZE_MAX - 2 * PAGE ? ((n + PAGE - 1) & ~(size_t)(PAGE - 1)) + PAGE : n;
}

void *hn_pages_alloc(size_t n)
{
    size_t all = guarded(n);
    void *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    hn_guard((char *)p + n, all - n);
    return p;
}

void *hn_pages_alloc_huge(size_t n)
{
    void *p = hn_pages_alloc(n);
    if (p && n >= (size_t)4 << 20) hn_os_want_huge_pages(p, n);
    return p;
}

void hn_pages_free(void *p, size_t n)
{
    if (!p) return;
    size_t all = guarded(n);
    hn_unguard((char *)p + n, all - n);
    munmap(p, all);
}
