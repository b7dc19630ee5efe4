/* sealed: see sealed.h. */
#include "base/os.h"
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 28 }; /* bytes of one read: systems have limits of 2 GiB */

hone_status hn_seal_begin(hn_sealing *o, const char *path, uint64_t n_bytes, hone_error *err)
{
    *o = (hn_sealing){ .hash = HN_FNV_INIT };
    return hn_file_begin(&o->file, path, &(hn_file_want){ .n_bytes = n_bytes }, err);
}

void hn_seal_put(hn_sealing *o, const void *p, size_t n)
{
    o->hash = hn_fnv1a(o->hash, p, n);
    hn_file_put(o->file, p, n, NULL); /* the file remembers a failure until its end */
}

hone_status hn_seal_end(hn_sealing *o, hone_error *err)
{
    uint64_t hash = o->hash;
    hn_seal_put(o, &hash, sizeof hash);
    hone_status st = hn_file_end(o->file, err);
    hn_file_drop(o->file);
    o->file = NULL;
    return st;
}

/* 0, or errno: what is there could not be read. Pipes, folders and devices are nothing that we would replace. */
static int begins_with(bool *out, int fd, const char *magic, size_t n_magic)
{
    struct stat sb;
    char first[16];
    ssize_t n = -1;
    *out = false;
    if (fstat(fd, &sb) != 0) return errno;
    if (!S_ISREG(sb.st_mode) || n_magic > sizeof first) return 0;
    while ((n = read(fd, first, n_magic)) < 0 && errno == EINTR) {}
    if (n < 0) return errno;
    *out = n == (ssize_t)n_magic && memcmp(first, magic, n_magic) == 0;
    return 0;
}

hone_status hn_sealed_check_place(const char *path, const char *magic, size_t n_magic, const char *kind,
                                  hone_error *err)
{
    bool ours = false;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), why; /* a pipe must not hold us */
    if (fd < 0 && errno == ENOENT) return HONE_OK;
    why = fd < 0 ? errno : begins_with(&ours, fd, magic, n_magic);
    if (fd >= 0) close(fd);
    const char *name = HN_ESC(path, strlen(path));
    if (why) return HN_FAIL(err, HONE_E_IO, "%s: %s; expected a %s, or a name that is free", name, strerror(why), kind);
    return ours ? HONE_OK
                : HN_FAIL(err, HONE_E_ARG, "%s is there, and no %s; expected another name, or a %s", name, kind, kind);
}

/* Bytes [at, n) of the file. 0, errno, or HN_SEALED_CHANGED: it has fewer. */
static int read_upto(int fd, unsigned char *p, uint64_t at, uint64_t n)
{
    while (at < n) {
        size_t piece = n - at < PIECE ? (size_t)(n - at) : PIECE;
        ssize_t k = read(fd, p + at, piece);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno;
        if (k == 0) return HN_SEALED_CHANGED;
        at += (uint64_t)k;
    }
    return 0;
}

/* Nothing follows, and nobody has written meanwhile. */
static int read_end(int fd, const struct stat *before)
{
    struct stat after;
    char more;
    ssize_t k;
    while ((k = read(fd, &more, 1)) < 0 && errno == EINTR) {}
    if (k < 0 || fstat(fd, &after) != 0) return errno;
    bool same = k == 0 && after.st_size == before->st_size && hn_os_mtime_ns(&after) == hn_os_mtime_ns(before);
    return same ? 0 : HN_SEALED_CHANGED;
}

static int read_file(hn_sealed *f, int fd, const char *magic, size_t n_magic)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode) || sb.st_size <= 0) return HN_SEALED_NO_FILE;
    uint64_t size = (uint64_t)sb.st_size, room = hn_memory_available(), head = size < n_magic ? size : n_magic;
    if (size > SIZE_MAX || (room && size > room)) return ENOMEM;
    unsigned char *p = hn_pages_alloc((size_t)size);
    if (!p) return ENOMEM;
    *f = (hn_sealed){ p, size };
    int why = read_upto(fd, p, 0, head); /* what is another kind of file is not read for nothing */
    if (!why && head == n_magic && memcmp(p, magic, n_magic) != 0) return HN_SEALED_OTHER;
    if (!why) why = read_upto(fd, p, head, size);
    return why ? why : read_end(fd, &sb);
}

int hn_sealed_open(hn_sealed *f, const char *path, const char *magic, size_t n_magic)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hold us */
    *f = (hn_sealed){ 0 };
    if (fd < 0) return errno;
    int why = read_file(f, fd, magic, n_magic);
    if (why) hn_sealed_close(f);
    close(fd);
    return why;
}

void hn_sealed_close(hn_sealed *f)
{
    hn_pages_free((void *)(uintptr_t)f->p, (size_t)f->size);
    *f = (hn_sealed){ 0 };
}

bool hn_sealed_fits(const hn_sealed *f)
{
    uint64_t sum;
    if (f->size < sizeof sum) return false;
    memcpy(&sum, f->p + f->size - sizeof sum, sizeof sum);
    return hn_fnv1a(HN_FNV_INIT, f->p, (size_t)(f->size - sizeof sum)) == sum;
}
