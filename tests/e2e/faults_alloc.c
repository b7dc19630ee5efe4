/* A library to preload: one allocation fails. Which one is said by where it is made, not by a number that another
 * thread can shift: a site is the chain of calls that leads to an allocation, each call once (so that recursion of any
 * depth is one site), each address as an offset in its library (so that it is the same in every run). The program has
 * no tables for unwinding (it would be larger): the chain is what lies on the stack and points behind an instruction
 * that calls, which may be the rest of an earlier call, too: then one place is several sites, and none is lost.
 *   HONE_FAIL_SITE    ID:HIT, the HIT-th allocation (from 1) of this site fails; without it none does
 *   HONE_ALLOC_FILE   is told what there was: a line "site ID HITS" for each site, in the order they came; or, where
 *                     one failed, "struck" and the calls that led there, as addr2line wants them
 * The C library's own allocations count as well. Owns malloc and its kin; knows nothing of hone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

enum { MOST_FRAMES = 24, MOST_STACK = 4096, MOST_MODULES = 64, MOST_SITES = 1 << 14 };

typedef struct module {
    uintptr_t begin, end, base;
    uint64_t name_hash;
    char name[64];
    bool silent; /* the loader, and this library: what they leave on the stack depends on the environment */
} module;

typedef struct site {
    uint64_t id; /* 0: free */
    long hits;
    int order;
} site;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static module modules[MOST_MODULES];
static int n_modules, n_sites;
static site sites[MOST_SITES];
static bool begun, struck;
static uint64_t wanted;
static long wanted_hit;
static char told_path[4200];
static __thread bool within; /* unwinding may allocate */

/* ---- where ---------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    for (int i = 0; i < info->dlpi_phnum && n_modules < MOST_MODULES; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        module *m = &modules[n_modules++];
        m->base = info->dlpi_addr;
        m->begin = info->dlpi_addr + p->p_vaddr;
        m->end = m->begin + p->p_memsz;
        const char *slash = strrchr(info->dlpi_name, '/');
        snprintf(m->name, sizeof m->name, "%s", slash ? slash + 1 : *info->dlpi_name ? info->dlpi_name : "program");
        uintptr_t here = (uintptr_t)&add_module;
        m->silent = strncmp(m->name, "ld-", 3) == 0 || (here >= m->begin && here < m->end);
        m->name_hash = 7;
        for (const char *s = m->name; *s; s++) m->name_hash = mixed(m->name_hash, (unsigned char)*s);
    }
    return 0;
}

/* The library whose code has it; NULL: no code. What is loaded later is not known: such calls are no part of a site. */
static const module *module_at(uintptr_t at)
{
    for (int i = 0; i < n_modules; i++)
        if (at >= modules[i].begin && at < modules[i].end) return &modules[i];
    return NULL;
}

#if defined(__x86_64__)
/* E8 rel32; FF /2, of a register or memory, with or without a prefix for r8 to r15. */
static bool behind_call(uintptr_t at)
{
    const uint8_t *p = (const uint8_t *)at;
    if (p[-5] == 0xE8) return true;
    for (int n = 2; n <= 7; n++)
        if (p[-n] == 0xFF && (p[1 - n] >> 3 & 7) == 2) return true;
    return false;
}
#elif defined(__aarch64__)
static bool behind_call(uintptr_t at) /* BL, BLR */
{
    uint32_t op;
    if (at % 4) return false;
    memcpy(&op, (const void *)(at - 4), 4);
    return (op & 0xFC000000) == 0x94000000 || (op & 0xFFFFFC1F) == 0xD63F0000;
}
#else
static bool behind_call(uintptr_t at) { return at != 0; }
#endif

/* The top of this thread's stack. */
static char *stack_end(void)
{
    static __thread char *end;
    pthread_attr_t a;
    void *low;
    size_t n;
    if (end || pthread_getattr_np(pthread_self(), &a) != 0) return end;
    if (pthread_attr_getstack(&a, &low, &n) == 0) end = (char *)low + n;
    pthread_attr_destroy(&a);
    return end;
}

/* Return addresses on the stack from `at` on, the innermost first. Under the lock. */
static __attribute__((no_sanitize("address"))) int calls_from(void **frames, const char *at)
{
    const char *end = stack_end();
    int n = 0;
    if (!end) return 0;
    if (end - at > MOST_STACK) end = at + MOST_STACK;
    for (const uintptr_t *p = (const uintptr_t *)((uintptr_t)at & ~(uintptr_t)7); (const char *)(p + 1) <= end; p++) {
        const module *m = *p > 4096 ? module_at(*p) : NULL;
        if (!m || m->silent || *p - 8 < m->begin || !behind_call(*p)) continue;
        frames[n++] = (void *)*p;
        if (n == MOST_FRAMES) break;
    }
    return n;
}

static uint64_t id_of(void **frames, int n)
{
    uint64_t h = 1;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++) seen = frames[j] == frames[i];
        const module *m = seen ? NULL : module_at((uintptr_t)frames[i]);
        if (m) h = mixed(mixed(h, m->name_hash), (uintptr_t)frames[i] - m->base);
    }
    return h ? h : 1;
}

static void tell(const char *text)
{
    int fd = *told_path ? open(told_path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd < 0) return;
    if (write(fd, text, strlen(text)) < 0) _exit(99);
    close(fd);
}

static void tell_struck(void **frames, int n)
{
    char line[160];
    tell("struck\n");
    for (int i = 0; i < n; i++) {
        const module *m = module_at((uintptr_t)frames[i]);
        if (!m) continue;
        snprintf(line, sizeof line, "%s 0x%lx\n", m->name, (unsigned long)((uintptr_t)frames[i] - m->base - 1));
        tell(line);
    }
}

/* ---- whether -------------------------------------------------------------------------------------- */

/* Under the lock. */
static bool note_site(uint64_t id)
{
    size_t i = id % MOST_SITES;
    while (sites[i].id && sites[i].id != id) i = (i + 1) % MOST_SITES;
    if (!sites[i].id) {
        if (n_sites == MOST_SITES / 2) return false; /* more than anybody could try */
        sites[i] = (site){ id, 0, n_sites++ };
    }
    return ++sites[i].hits == wanted_hit && id == wanted;
}

static __attribute__((noinline)) bool fails_now(void)
{
    void *frames[MOST_FRAMES];
    if (!begun || within || struck) return false;
    int was = errno;
    within = true;
    pthread_mutex_lock(&lock);
    int n = calls_from(frames, (const char *)__builtin_frame_address(0));
    bool fails = !struck && note_site(id_of(frames, n));
    struck = struck || fails;
    if (fails) tell_struck(frames, n);
    pthread_mutex_unlock(&lock);
    within = false;
    errno = fails ? ENOMEM : was;
    return fails;
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

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void begin(void)
{
    const char *which = getenv("HONE_FAIL_SITE"), *path = getenv("HONE_ALLOC_FILE"), *colon;
    if (!which) which = "0:0"; /* the same calls, whose rests on the stack are the same */
    if ((colon = strchr(which, ':'))) {
        wanted = strtoull(which, NULL, 16);
        wanted_hit = atol(colon + 1);
    }
    snprintf(told_path, sizeof told_path, "%s", path ? path : "");
    unsetenv("LD_PRELOAD"); /* its children have their own troubles */
    unsetenv("HONE_FAIL_SITE");
    unsetenv("HONE_ALLOC_FILE");
    dl_iterate_phdr(add_module, NULL);
    pthread_atfork(hold, let_go, let_go);
    begun = true;
}

static int by_order(const void *a, const void *b) { return ((const site *)a)->order - ((const site *)b)->order; }

__attribute__((destructor)) static void end(void)
{
    char line[64];
    begun = false;
    if (wanted) return;
    size_t n = 0;
    for (size_t i = 0; i < MOST_SITES; i++)
        if (sites[i].id) sites[n++] = sites[i];
    qsort(sites, n, sizeof *sites, by_order);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "site %016llx %ld\n", (unsigned long long)sites[i].id, sites[i].hits);
        tell(line);
    }
}
