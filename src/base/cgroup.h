/* cgroup: the control groups of Linux that this process is in, and what they leave it of CPUs and memory. Each group
 * around another may have a limit, and the least of them counts. Refuses to know what is done with that.
 *
 * root: "" this machine; else a folder with its own proc/ and sys/, for tests. */
#ifndef HN_CGROUP_H
#define HN_CGROUP_H

#include "base/base.h"

/* A group's folder, and its name: "/batch/job", "/" the outermost. */
typedef void hn_cgroup_fn(void *arg, const char *folder, const char *name);
/* The group of a controller ("cpu", "memory") that this process is in and all around it, innermost first; of version 2,
 * of 1, or of both. */
void hn_cgroup_climb(const char *root, const char *controller, hn_cgroup_fn *fn, void *arg);

double hn_cgroup_quota(const char *folder); /* CPUs by the limit of this one group; infinity: none, or unknown */
double hn_cgroup_cpus(const char *root);    /* by the least on the way; infinity: none has one */
/* Bytes by the least limit on the way, UINT64_MAX: none has one. *left: what the group with the least of it may still
 * take; its files in the page cache can be dropped and are not counted, as the system has it (MemAvailable). */
uint64_t hn_cgroup_memory(const char *root, uint64_t *left);

#endif
