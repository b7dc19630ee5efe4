/* malloc and its kin, counted on demand. Who comes next in the order of the dynamic linker (a preloaded library,
 * else the C library) allocates; sanitizers have a malloc of their own, and are left alone. Knows not who asks. */
#define _GNU_SOURCE
#include "lab/machine/allocs.h"
#include "base/guard.h"
#include "base/os.h"
#include "lab/stats/stats.h"

#include <stdatomic.h>
#include <stdlib.h>

#if HN_ASAN || HN_TSAN
#define ALLOCS_SANITIZED 1
#elif defined(__linux__) && defined(__GLIBC__)
#define ALLOCS_COUNTED 1
#endif

static atomic_bool on;
static atomic_int_fast64_t blocks, bytes_out, bytes_back;

const char *hn_allocs_missing(void)
{
#if defined(ALLOCS_COUNTED)
    return NULL;
#elif defined(ALLOCS_SANITIZED)
    return "this build has the allocator of a sanitizer";
#else
    return "this system does not let a program stand in front of its allocator";
#endif
}

void hn_allocs_begin(void)
{
    atomic_store(&blocks, 0);
    atomic_store(&bytes_out, 0);
    atomic_store(&bytes_back, 0);
    atomic_store(&on, true);
}

void hn_allocs_end(hn_allocs *sum)
{
    atomic_store(&on, false);
    sum->n += atomic_load(&blocks);
    sum->bytes += atomic_load(&bytes_out);
    sum->freed += atomic_load(&bytes_back);
}

json_t *hn_allocs_json(const char *op, const hn_allocs *sum, int64_t n_ops, const char *why)
{
    json_t *o = json_object();
    bool known = n_ops > 0 && !hn_allocs_missing();
    double ops = (double)n_ops;
    if (!known && !why) why = hn_allocs_missing() ? hn_allocs_missing() : "not counted for this";
    json_object_set_new(o, "op", op ? json_string(op) : json_null());
    json_object_set_new(o, "n", known ? hn_lab_num((double)sum->n / ops) : json_null());
    json_object_set_new(o, "bytes", known ? hn_lab_num((double)sum->bytes / ops) : json_null());
    json_object_set_new(o, "freed", known ? hn_lab_num((double)sum->freed / ops) : json_null());
    json_object_set_new(o, "missing", known ? json_null() : json_string(why));
    return o;
}

#if defined(ALLOCS_COUNTED)
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define SEEN_BY_ALL __attribute__((visibility("default"))) /* shared libraries call these, too */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void (*free)(void *);
} next;

/* What the linker itself allocates while it is asked where the others are. */
static _Alignas(64) char early[8192];
static size_t early_used;
static bool asking;

static bool is_early(const void *p) { return (const char *)p >= early && (const char *)p < early + sizeof early; }

static void *early_block(size_t n)
{
    enum { ALIGN = 16 };
    if (n > sizeof early - early_used) return NULL;
    void *p = early + early_used;
    early_used += (n + ALIGN - 1) / ALIGN * ALIGN;
    if (early_used > sizeof early) early_used = sizeof early;
    return p;
}

static void find(const char *name, void *dst)
{
    void *p = dlsym(RTLD_NEXT, name);
    memcpy(dst, &p, sizeof p); /* ISO C has no cast from an object to a function */
}

/* Once, before there are threads: the start of any program allocates. free is last: who has it, has all. */
static bool ready(void)
{
    if (next.free) return true;
    if (asking) return false;
    asking = true;
    find("malloc", &next.malloc);
    find("calloc", &next.calloc);
    find("realloc", &next.realloc);
    find("aligned_alloc", &next.aligned_alloc);
    find("memalign", &next.memalign);
    find("posix_memalign", &next.posix_memalign);
    find("free", &next.free);
    asking = false;
    return next.free != NULL;
}

static inline bool counting(void) { return atomic_load_explicit(&on, memory_order_relaxed); }

static void *out(void *p)
{
    if (!p || !counting()) return p;
    atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes_out, (int_fast64_t)hn_os_block_bytes(p), memory_order_relaxed);
    return p;
}

static void back(void *p)
{
    if (p && counting())
        atomic_fetch_add_explicit(&bytes_back, (int_fast64_t)hn_os_block_bytes(p), memory_order_relaxed);
}

SEEN_BY_ALL void *malloc(size_t n) { return ready() ? out(next.malloc(n)) : early_block(n); }

SEEN_BY_ALL void *calloc(size_t n, size_t size)
{
    if (ready()) return out(next.calloc(n, size));
    size_t all;
    return __builtin_mul_overflow(n, size, &all) ? NULL : early_block(all); /* never handed out before: zeros */
}

SEEN_BY_ALL void free(void *p)
{
    if (!p || is_early(p) || !ready()) return;
    back(p);
    next.free(p);
}

SEEN_BY_ALL void *realloc(void *p, size_t n)
{
    if (!ready() || is_early(p)) {
        size_t most = is_early(p) ? (size_t)(early + sizeof early - (char *)p) : 0;
        void *q = malloc(n);
        if (q && p) memcpy(q, p, n < most ? n : most);
        return q;
    }
    size_t was = p && counting() ? hn_os_block_bytes(p) : 0;
    void *q = out(next.realloc(p, n));
    if (was && (q || n == 0)) atomic_fetch_add_explicit(&bytes_back, (int_fast64_t)was, memory_order_relaxed);
    return q;
}

SEEN_BY_ALL void *aligned_alloc(size_t align, size_t n) { return ready() ? out(next.aligned_alloc(align, n)) : NULL; }
void *memalign(size_t align, size_t n); /* stdlib.h does not have it */
SEEN_BY_ALL void *memalign(size_t align, size_t n) { return ready() ? out(next.memalign(align, n)) : NULL; }

SEEN_BY_ALL int posix_memalign(void **p, size_t align, size_t n)
{
    int rc = ready() ? next.posix_memalign(p, align, n) : ENOMEM;
    if (rc == 0) out(*p);
    return rc;
}
#endif
