/* memory: what the system says of a process's memory. */
#ifndef HN_MEMORY_H
#define HN_MEMORY_H

#include "base/base.h"
#include <sys/types.h>

typedef struct hn_memory { /* bytes; from /proc/PID/status, 0 where unknown */
    uint64_t anon;         /* its own: heap, stacks, copied pages, shared and huge ones, swapped out or not */
    uint64_t resident;     /* of it RssAnon: what is no file's and nobody else's, and in memory */
    uint64_t file;         /* pages of mapped files that are resident here, those of a file system in memory too */
    uint64_t hwm;          /* VmHWM: most that anon + file + shared ever was */
} hn_memory;
bool hn_memory_read(hn_memory *out, pid_t pid); /* pid 0: this process */
/* By another way, /proc/PID/statm, in bytes; 0: unknown. */
uint64_t hn_memory_anon_again(pid_t pid);
uint64_t hn_memory_resident(pid_t pid);

/* Has it a file mapped now whose name ends so? */
bool hn_memory_maps(pid_t pid, const char *end);

typedef struct hn_mapped { /* bytes */
    uint64_t mapped, resident;
    uint64_t huge;   /* of those resident, mapped by whole pages of the page table's second level */
    bool knows_huge; /* the system says how many these are */
} hn_mapped;
/* Model files (*.gguf, *.hpack, or exactly `path` or `packed`, which may be NULL) mapped by this
 * process, from /proc/self/smaps. */
bool hn_memory_mapped(hn_mapped *out, const char *path, const char *packed);

#endif
