/* source: see source.h. */
#define _GNU_SOURCE
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

hone_status hn_source_open(hn_source *s, const char *path, hone_error *err)
{
    struct stat st;
    *s = (hn_source){ path, -1, 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang */
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return HN_FAIL(err, HONE_E_IO, "%s: expected a regular file", path);
    }
    s->fd = fd;
    s->size = (uint64_t)st.st_size;
    return HONE_OK;
}

hone_status hn_source_scratch(hn_source *s, const char *path, hone_error *err)
{
    char name[4096];
    const char *folder = getenv("TMPDIR");
    *s = (hn_source){ path, -1, 0 };
    if (!folder || !*folder) folder = "/tmp";
    int n = snprintf(name, sizeof name, "%s/hone-XXXXXX", folder);
    int fd = n > 0 && (size_t)n < sizeof name ? mkostemp(name, O_CLOEXEC) : (errno = ENAMETOOLONG, -1);
    if (fd < 0)
        return HN_FAIL(err, HONE_E_IO, "%s: cannot make a temporary file in %s: %s; set TMPDIR to a folder with room",
                       path, folder, strerror(errno));
    unlink(name);
    s->fd = fd;
    return HONE_OK;
}

hone_status hn_source_append(hn_source *s, const void *p, uint64_t n, hone_error *err)
{
    for (uint64_t done = 0; done < n;) {
        size_t k = n - done < 1 << 30 ? (size_t)(n - done) : 1 << 30;
        ssize_t r = pwrite(s->fd, (const char *)p + done, k, (off_t)(s->size + done));
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0)
            return HN_FAIL(err, HONE_E_IO,
                           "%s: cannot write %llu bytes of a temporary file: %s; set TMPDIR to a folder "
                           "with room",
                           s->path, (unsigned long long)n, strerror(r < 0 ? errno : ENOSPC));
        done += (uint64_t)r;
    }
    s->size += n;
    return HONE_OK;
}

void hn_source_close(hn_source *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

hone_status hn_source_read(const hn_source *s, uint64_t off, void *dst, uint64_t n, hone_error *err)
{
    for (uint64_t done = 0; done < n;) {
        ssize_t r =
            pread(s->fd, (char *)dst + done, n - done < 1 << 30 ? (size_t)(n - done) : 1 << 30, (off_t)(off + done));
        if (r < 0 && errno == EINTR) continue;
        if (r < 0)
            return HN_FAIL(err, HONE_E_IO, "%s: cannot read at byte %llu: %s", s->path,
                           (unsigned long long)(off + done), strerror(errno));
        if (r == 0)
            return HN_FAIL(err, HONE_E_IO, "%s: ends at byte %llu, expected %llu: it changed while being read", s->path,
                           (unsigned long long)(off + done), (unsigned long long)s->size);
        done += (uint64_t)r;
    }
    return HONE_OK;
}

hone_status hn_source_text(char **text, size_t *len, const char *path, uint64_t max, hone_error *err)
{
    hn_source s;
    *text = NULL;
    *len = 0;
    hone_status st = hn_source_open(&s, path, err);
    if (st != HONE_OK) return st;
    if (s.size > max)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected at most %llu", path, (unsigned long long)s.size,
                     (unsigned long long)max);
    else if (!(*text = malloc((size_t)s.size + 1)))
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", path, (unsigned long long)s.size);
    else if ((st = hn_source_read(&s, 0, *text, s.size, err)) == HONE_OK) (*text)[ *len = (size_t)s.size] = 0;
    hn_source_close(&s);
    if (st != HONE_OK) {
        free(*text);
        *text = NULL;
    }
    return st;
}
