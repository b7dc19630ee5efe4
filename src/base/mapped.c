/* mapped: see mapped.h. A list of blocks of places, which only grows. A place is taken, filled and given back by
 * atomic stores of its address alone, so that whoever reads it needs no lock. */
#include "base/mapped.h"
#include "base/os.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { BLOCK = 32 };
enum { FREE = 0, FILLING = 1 }; /* no mapping begins there */

typedef struct place {
    _Atomic uintptr_t at;   /* FREE, FILLING, or where the mapping begins: then the rest holds */
    _Atomic uint64_t size;  /* bytes mapped */
    _Atomic uint64_t whole; /* bytes of the file then */
    uint64_t dev, ino;      /* of the file */
    int64_t mtime_ns;
    char path[HN_MAPPED_PATH + 1];
} place;

typedef struct block {
    place p[BLOCK];
    struct block *_Atomic next;
} block;

static block first;
static place changed; /* at: as in the list */
static _Atomic uint64_t changed_size;

static place *take_place(void)
{
    for (block *b = &first, *next;; b = next) {
        for (int i = 0; i < BLOCK; i++) {
            uintptr_t free_place = FREE;
            if (atomic_compare_exchange_strong(&b->p[i].at, &free_place, FILLING)) return &b->p[i];
        }
        next = atomic_load(&b->next);
        if (next) continue;
        block *fresh = calloc(1, sizeof *fresh);
        if (!fresh) return NULL;
        if (atomic_compare_exchange_strong(&b->next, &next, fresh)) next = fresh;
        else free(fresh); /* another thread was first; next is its block */
    }
}

static place *find_place(uintptr_t at)
{
    for (block *b = &first; b; b = atomic_load(&b->next))
        for (int i = 0; i < BLOCK; i++)
            if (atomic_load(&b->p[i].at) == at) return &b->p[i];
    return NULL;
}

static void keep_path(place *p, const char *path)
{
    size_t n = strlen(path), cut = n > HN_MAPPED_PATH ? n - HN_MAPPED_PATH : 0; /* the end of a long path tells more */
    memcpy(p->path, path + cut, n - cut + 1);
}

static bool add(const void *p, size_t n, const char *path, uint64_t whole, const struct stat *sb)
{
    place *e = take_place();
    if (!e) return false;
    keep_path(e, path);
    e->dev = sb ? (uint64_t)sb->st_dev : 0;
    e->ino = sb ? (uint64_t)sb->st_ino : 0;
    e->mtime_ns = sb ? hn_os_mtime_ns(sb) : 0;
    atomic_store(&e->whole, whole);
    atomic_store(&e->size, n);
    atomic_store(&e->at, (uintptr_t)p);
    return true;
}

bool hn_mapped_add(const void *p, size_t n, const char *path) { return add(p, n, path, n, NULL); }

void hn_mapped_remove(const void *p)
{
    place *e = find_place((uintptr_t)p);
    if (e) atomic_store(&e->at, FREE);
}

void *hn_mapped_open(int fd, size_t n, const char *path)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0) return NULL;
    void *p = hn_os_map_file(fd, n);
    if (!p || add(p, n, path, (uint64_t)sb.st_size, &sb)) return p;
    hn_os_unmap_file(p, n);
    errno = ENOMEM;
    return NULL;
}

/* A file replaced by renaming another over it is another file: what is mapped is as it was. */
static void look_for_change(const place *e)
{
    struct stat sb;
    uintptr_t none = FREE;
    uint64_t whole = atomic_load(&e->whole);
    if (stat(e->path, &sb) != 0 || sb.st_dev != e->dev || sb.st_ino != e->ino) return;
    if ((uint64_t)sb.st_size == whole && hn_os_mtime_ns(&sb) == e->mtime_ns) return;
    if (!atomic_compare_exchange_strong(&changed.at, &none, FILLING)) return;
    memcpy(changed.path, e->path, sizeof changed.path);
    atomic_store(&changed.whole, whole);
    atomic_store(&changed_size, (uint64_t)sb.st_size);
    atomic_store(&changed.at, atomic_load(&e->at));
}

void hn_mapped_close(const void *p, size_t n)
{
    if (!p) return;
    place *e = find_place((uintptr_t)p);
    if (e) {
        look_for_change(e);
        atomic_store(&e->at, FREE);
    }
    hn_os_unmap_file(p, n);
}

bool hn_mapped_at(const void *addr, hn_mapped_file *out)
{
    for (block *b = &first; b; b = atomic_load(&b->next))
        for (int i = 0; i < BLOCK; i++) {
            place *e = &b->p[i];
            uintptr_t at = atomic_load(&e->at);
            uint64_t size = atomic_load(&e->size);
            if (at <= FILLING || (uintptr_t)addr < at || (uintptr_t)addr - at >= size) continue;
            if (atomic_load(&e->at) != at) continue; /* given back meanwhile, so addr was not in it */
            *out = (hn_mapped_file){ e->path, (uintptr_t)addr - at, atomic_load(&e->whole) };
            return true;
        }
    return false;
}

bool hone_mapped_file_at(const void *addr, const char **path, uint64_t *offset, uint64_t *size)
{
    hn_mapped_file m;
    if (!hn_mapped_at(addr, &m)) return false;
    if (path) *path = m.path;
    if (offset) *offset = m.offset;
    if (size) *size = m.size;
    return true;
}

bool hn_mapped_changed(hn_mapped_file *out, uint64_t *size_now)
{
    if (atomic_load(&changed.at) <= FILLING) return false;
    *out = (hn_mapped_file){ changed.path, 0, atomic_load(&changed.whole) };
    *size_now = atomic_load(&changed_size);
    return true;
}
