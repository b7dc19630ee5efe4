/* mapped: the files this process has mapped, and where, so that a program whose file was cut short under it can say
 * which one it was. Owns the list; every mapping of a file in the tree is on it. Looking up takes no lock and
 * allocates nothing, so a signal handler may. Refuses to know what the files hold, and installs no handler. */
#ifndef HN_MAPPED_H
#define HN_MAPPED_H

#include "base/base.h"

/* Maps n > 0 bytes of the file at path, which is open as fd, for reading (hn_os_map_file). NULL and errno. */
void *hn_mapped_open(int fd, size_t n, const char *path);
/* Unmaps what hn_mapped_open gave; accepts NULL. */
void hn_mapped_close(const void *p, size_t n);

/* The same for a mapping made elsewhere: keeps where it is (false: no memory), and forgets it before munmap. */
bool hn_mapped_add(const void *p, size_t n, const char *path);
void hn_mapped_remove(const void *p);

typedef struct hn_mapped_file {
    const char *path; /* as it was opened, the end of it where it is longer than HN_MAPPED_PATH; until it is unmapped */
    uint64_t offset;  /* of the address in the file */
    uint64_t size;    /* bytes the file had when it was mapped */
} hn_mapped_file;
enum { HN_MAPPED_PATH = 1023 };

/* The file mapped at addr; false: none. Async-signal-safe. */
bool hn_mapped_at(const void *addr, hn_mapped_file *out);

/* A file that had another size or time of change when it was unmapped than when it was mapped: what was read from it
 * last may have been zeros, or other numbers, without a fault. The first of this process; false: none. */
bool hn_mapped_changed(hn_mapped_file *out, uint64_t *size_now);

#endif
