/* around: what somebody put around this process: code loaded into it, another priority, a share of the CPUs. It changes
 * what is measured and shows in no number. */
#ifndef HN_AROUND_H
#define HN_AROUND_H

#include "base/base.h"

#include <sys/types.h>

enum { HN_DOUBTS = 4 };

typedef struct hn_around {
    char preload[256];  /* libraries of others in every process: LD_PRELOAD, LD_AUDIT, /etc/ld.so.preload; "" none */
    int nice;           /* 0 the usual priority, above it a lower one */
    double quota;       /* CPUs: the least that this control group, or one around it, may use; NaN: no limit, unknown */
    char quota_at[128]; /* the group with that limit, "/" the outermost; "" none */
    int64_t stopped;    /* how often a quota stopped this group, or one around it, so far; -1: unknown */
} hn_around;

/* root: "" this machine; else a folder with its own proc/, sys/ and etc/, for tests. */
void hn_around_read(hn_around *out, const char *root);
/* What of it makes numbers doubtful on `cores` CPUs, a sentence each; how many. */
int hn_around_doubts(char text[HN_DOUBTS][400], const hn_around *a, int32_t cores);

/* "tmpfs", "ext4", … of what holds path; "" where the system does not say. */
const char *hn_file_system(const char *path);
bool hn_file_system_is_memory(const char *name);

/* By which the kernel chooses between threads, of that of a process which it favours most: 20 the usual one, below it a
 * negative niceness, below 0 a real-time policy. INT32_MAX: unknown. */
int32_t hn_priority(pid_t pid);

#endif
