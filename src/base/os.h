/* os: what hone asks of the operating system beyond POSIX and C11. The one file
 * behind it, os.c, has a branch for Linux, one for macOS and a plain one for others;
 * lint keeps such calls out of every other file. */
#ifndef HN_OS_H
#define HN_OS_H

#include "base/base.h"

enum { HN_ARM_DOTPROD = 1, HN_ARM_I8MM = 2 };
unsigned hn_os_arm_features(void); /* 0 on other machines */

enum { HN_MOST_THREADS = 1024 }; /* of a pool */
int32_t hn_os_cpu_count(void);   /* CPUs this thread may run on, whatever its share of them */
/* hn_cpu_count of so many CPUs: no more threads than the control groups allow them CPUs, rounded up. root as in
 * base/cgroup.h. */
int32_t hn_os_thread_count(int32_t cpus, const char *root);
/* Of the machine, or of the control groups where they allow less; 0: unknown. root as in base/cgroup.h. */
void hn_os_memory(const char *root, uint64_t *total, uint64_t *available);
/* CPUs this thread may run on, in ascending order; their number, 0 if unknown. */
int32_t hn_os_cpus(int32_t *cpu, int32_t cap);
bool hn_os_run_on(const int32_t *cpu, int32_t n); /* this thread, there only; false: the system cannot */
int32_t hn_os_current_cpu(void);                  /* −1: unknown */
typedef struct hn_os_thread {                     /* a thread that is to keep off one CPU */
    int64_t id, process;
    void *may;     /* its CPUs, and the one that it keeps off */
    bool as_first; /* they were those of the first thread, and become so with them */
    bool left;     /* as it is, for good */
    int32_t off;   /* -1: none */
} hn_os_thread;
void hn_os_thread_new(hn_os_thread *t);   /* by anyone, before it begins: its room, if there is memory */
void hn_os_thread_begin(hn_os_thread *t); /* by the thread itself */
void hn_os_thread_end(hn_os_thread *t);
/* t, which may be another thread of this process, runs on any of its CPUs but this one from now on, if it has another.
 * One whose CPUs somebody sets stays so for good; not seen is who sets the very same, of this thread alone. What all of
 * the process is given or loses (a control group, taskset -a) is followed at the next call for another CPU. */
void hn_os_keep_off(hn_os_thread *t, int32_t cpu);
/* Asks for large pages for p[n], from hn_pages_alloc. */
void hn_os_want_huge_pages(void *p, size_t n);

/* Maps n > 0 bytes of a file for reading, at an address where its pages can be huge: reading in order is
 * a third faster then. NULL and errno. Ends with hn_os_unmap_file(p, n). Only base/mapped.c calls the two. Pages are
 * huge if the file came into memory by such a mapping, or was written in pieces of HN_OS_HUGE_PAGE, on file systems
 * that can (Linux: ext4, xfs, btrfs). */
void *hn_os_map_file(int fd, size_t n);
void hn_os_unmap_file(const void *p, size_t n);
enum { HN_OS_HUGE_PAGE = 2 << 20 };

/* n ≤ 256 bytes nobody can guess; false: the system has none now. Does not wait. */
bool hn_os_random(void *dst, size_t n);

/* Returns soon after *w ≠ seen; may return early. */
void hn_os_wait(_Atomic uint32_t *w, uint32_t seen);
void hn_os_wake(_Atomic uint32_t *w, int n); /* up to n of those that wait on w */

/* Has the other side of a socket ended its sending or broken the connection, also where bytes from it wait to be read?
 * False where the system does not tell. */
bool hn_os_peer_ended(int fd);
/* A pipe that child programs do not inherit. 0, or −1 and errno. */
int hn_os_pipe(int fd[2], bool nonblocking);
struct stat;
int64_t hn_os_mtime_ns(const struct stat *sb); /* when the content changed last, as far as its owner says */
int64_t hn_os_ctime_ns(const struct stat *sb); /* when content, mode or names did: nobody can set it */
/* Is it a name for what a process has open, /dev/fd/1, rather than for a file? No link is followed. */
bool hn_os_names_open_file(const char *path);
/* A process but this one that has one of these files (their number in *which) mapped; 0: none, or the system does not
 * tell. */
int64_t hn_os_file_user(const char *const *path, size_t n, size_t *which);
/* Folders in which A and a are one name; false where the system does not tell. */
bool hn_os_ignores_case(const char *folder);
/* CLOCK_MONOTONIC in ns, asked of the kernel itself: nothing in this process stands between. 0: it does not tell. */
uint64_t hn_os_kernel_ns(void);
/* CPU time that all threads of a process have had, those that ended among them; 0: unknown. */
uint64_t hn_os_process_cpu_ns(int pid);
/* The file this program runs from; false: unknown, or longer than cap. */
bool hn_os_program_path(char *dst, size_t cap);
/* After fork: this process is killed when its parent ends. False: the system cannot. */
bool hn_os_die_with_parent(void);
/* From now on (false: no longer) processes below this one whose own parent ends are its own. False: the system
 * cannot. */
bool hn_os_adopt(bool on);
/* Processes of this one, those that ended and were not waited for too: their number, at most cap; 0: or unknown. */
int32_t hn_os_children(int32_t *pid, int32_t cap);
int32_t hn_os_children_of(int32_t parent, int32_t *pid, int32_t cap); /* the same of another process */

/* The file fd has n bytes from now on, and their room on disk as far as the file system can say so before they are
 * written. 0, or errno: ENOSPC. */
int hn_os_file_room(int fd, uint64_t n);

/* Drops a file from the page cache, as far as nobody has it mapped; the share of it that is still there
 * afterwards, in [0, 1]. Negative: the system cannot, or does not tell. */
double hn_os_drop_file(const char *path);
/* Drops p[n] from every cache of the processor: whoever reads it next waits for memory. false: programs cannot here. */
bool hn_os_flush_caches(const void *p, size_t n);
/* Bytes of p[n], anonymous memory from hn_pages_alloc, that are in memory; -1: the system does not tell. */
int64_t hn_os_resident(const void *p, size_t n);
/* Bytes that malloc has given out, all of them, and what it holds beyond; false: it does not tell. */
typedef struct hn_os_heap {
    uint64_t in_use, mapped, free;
} hn_os_heap; /* mapped: of in_use, those in mappings of their own */
bool hn_os_heap_read(hn_os_heap *out);
/* Gives what malloc holds beyond back to the system, as far as it can. Takes as long as looking through all of it. */
void hn_os_heap_trim(void);
size_t hn_os_block_bytes(void *p); /* of a block of malloc, as it was rounded; 0: the system does not tell */
/* The stack of a running thread (pthread_t by address): lowest address and bytes, the guard left out. */
bool hn_os_stack(const void *thread, void **lo, size_t *n);
/* Counts something of this process and all threads it starts from now on, user code only; a file
 * descriptor, or -1 and why not. */
typedef enum hn_os_counter {
    HN_OS_CACHE_MISSES = 0,
    HN_OS_PAGE_FAULTS,
    HN_OS_CYCLES,
    HN_OS_INSTRUCTIONS
} hn_os_counter;
int hn_os_count_open(hn_os_counter what, const char **why_not);
int64_t hn_os_count_read(int fd); /* so far; -1: unknown, or others had the counter part of the time */

/* A stream into memory that knows when memory was short: open_memstream drops what it has no room for, and neither
 * ferror nor fclose tells. Begin with open; write to t->f, whose ftell is -1; end with close, which gives the text,
 * NUL-terminated, to be freed, and its length; NULL: something was lost. t must stay where it is. */
typedef struct hn_os_text {
    FILE *f;
    char *p;
    size_t n, cap;
    bool lost;
} hn_os_text;
bool hn_os_text_open(hn_os_text *t);              /* false: no memory */
char *hn_os_text_close(hn_os_text *t, size_t *n); /* n may be NULL */

/* qsort with an argument for the comparison. */
typedef int hn_os_compare(const void *a, const void *b, void *arg);
void hn_os_sort(void *base, size_t n, size_t size, hn_os_compare *compare, void *arg);

/* What the CPU calls itself ("model name", or of ARM "CPU part"), with that key; "" where the system does not say. */
void hn_os_cpu_name(char *dst, size_t cap);
uint64_t hn_cache_bytes(void); /* last-level cache of CPU 0; 0: unknown */
/* For tests: what hn_cache_bytes says from now on, 0: the truth, UINT64_MAX: unknown. Data that is to be cold is eight
 * times as large, and there are machines with half a gigabyte of cache. Not while anything is measured. */
void hn_cache_bytes_set(uint64_t bytes);

#endif
