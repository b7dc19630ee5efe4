/* sealed: see sealed.h. */
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
