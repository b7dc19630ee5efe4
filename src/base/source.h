/* source: a regular file that is read at places, as the inputs of conversions and datasets are. Owns the
 * descriptor; refuses to know what stands in it. */
#ifndef HN_SOURCE_H
#define HN_SOURCE_H

#include "base/base.h"

typedef struct hn_source {
    const char *path;
    int fd;
    uint64_t size;
} hn_source; /* path borrowed */

/* A regular file; nothing else is waited for. Zero-filled with fd -1 on failure. */
hone_status hn_source_open(hn_source *s, const char *path, hone_error *err);
void hn_source_close(hn_source *s);
/* An empty file without a name, in TMPDIR or /tmp, to be filled and read; path is that of messages. */
hone_status hn_source_scratch(hn_source *s, const char *path, hone_error *err);
hone_status hn_source_append(hn_source *s, const void *p, uint64_t n, hone_error *err); /* to such a file */
hone_status hn_source_read(const hn_source *s, uint64_t off, void *dst, uint64_t n, hone_error *err);
/* The whole of a text file of at most max bytes, with a NUL behind it; free() it. */
hone_status hn_source_text(char **text, size_t *len, const char *path, uint64_t max, hone_error *err);

#endif
