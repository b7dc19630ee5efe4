/* sealed: see sealed.h. */
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int hn_seal_begin(hn_sealing *o, const char *path)
{
    size_t cap = strlen(path) + 32;
    *o = (hn_sealing){ .path = path, .tmp = malloc(cap), .hash = HN_FNV_INIT, .fd = -1 };
    if (!o->tmp) return o->error = ENOMEM;
    snprintf(o->tmp, cap, "%s.tmp-%ld", path, (long)getpid());
    if ((o->fd = open(o->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0) o->error = errno;
    return o->error;
}

void hn_seal_put(hn_sealing *o, const void *p, size_t n)
{
    o->hash = hn_fnv1a(o->hash, p, n);
    for (const char *c = p; n > 0 && !o->error;) {
        ssize_t k = write(o->fd, c, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            o->error = k < 0 ? errno : EIO;
            return;
        }
        c += k;
        n -= (size_t)k;
    }
}

int hn_seal_end(hn_sealing *o)
{
    uint64_t hash = o->hash;
    hn_seal_put(o, &hash, sizeof hash);
    if (!o->error && fsync(o->fd) != 0) o->error = errno;
    if (o->fd >= 0 && close(o->fd) != 0 && !o->error) o->error = errno;
    if (!o->error && rename(o->tmp, o->path) != 0) o->error = errno;
    if (o->error && o->fd >= 0) unlink(o->tmp);
    free(o->tmp);
    o->tmp = NULL;
    return o->error;
}

int hn_sealed_open(hn_sealed *f, const char *path)
{
    struct stat sb;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), why = 0; /* a pipe without a writer must not hold us */
    *f = (hn_sealed){ 0 };
    if (fd < 0) return errno;
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode) || sb.st_size <= 0) why = -1;
    else {
        void *p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) why = errno;
        else *f = (hn_sealed){ p, (uint64_t)sb.st_size };
    }
    close(fd);
    return why;
}

void hn_sealed_close(hn_sealed *f)
{
    if (f->p) munmap((void *)(uintptr_t)f->p, (size_t)f->size);
    *f = (hn_sealed){ 0 };
}

bool hn_sealed_fits(const hn_sealed *f)
{
    uint64_t sum;
    if (f->size < sizeof sum) return false;
    memcpy(&sum, f->p + f->size - sizeof sum, sizeof sum);
    return hn_fnv1a(HN_FNV_INIT, f->p, (size_t)(f->size - sizeof sum)) == sum;
}
