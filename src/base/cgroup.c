/* Control groups. Owns their files of both versions and the way up; refuses to judge what they allow. */
#include "base/cgroup.h"
#include "base/lines.h"

#include <math.h>
#include <stdlib.h>

enum { LINE_CAP = 900, MOUNT_CAP = 1000, PATH_CAP = MOUNT_CAP + LINE_CAP, FILE_CAP = PATH_CAP + 40 };

/* ---- the way up ----------------------------------------------------------------------------------- */

static void climb(const char *mount, const char *group, hn_cgroup_fn *fn, void *arg)
{
    char folder[PATH_CAP];
    size_t top = (size_t)snprintf(folder, sizeof folder, "%s", mount);
    snprintf(folder + top, sizeof folder - top, "%s%s", group[0] == '/' ? "" : "/", group);
    size_t n = strlen(folder);
    while (n > top && folder[n - 1] == '/') folder[--n] = 0;
    for (;;) {
        fn(arg, folder, n > top ? folder + top : "/");
        if (n <= top) return;
        while (n > top && folder[--n] != '/') continue;
        folder[n] = 0;
    }
}

/* Is one of "cpu,cpuacct" this controller? */
static bool names(const char *list, const char *controller)
{
    size_t n = strlen(controller);
    for (const char *s = list; s; s = strchr(s, ',')) {
        s += *s == ',';
        if (strncmp(s, controller, n) == 0 && (s[n] == 0 || s[n] == ',')) return true;
    }
    return false;
}

/* Lines "0::/group" (version 2) and "N:cpu,cpuacct:/group" (version 1). */
void hn_cgroup_climb(const char *root, const char *controller, hn_cgroup_fn *fn, void *arg)
{
    char path[MOUNT_CAP], mount[MOUNT_CAP], line[LINE_CAP];
    snprintf(path, sizeof path, "%.900s/proc/self/cgroup", root);
    hn_lines r;
    bool listed = hn_lines_open(&r, path);
    while (hn_lines_next(&r, line, sizeof line)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || strstr(group, "/..")) continue; /* outside of what this process may see */
        *group++ = 0;
        controllers++;
        if (controllers[0] && !names(controllers, controller)) continue;
        snprintf(mount, sizeof mount, "%.900s/sys/fs/cgroup%s%.30s", root, controllers[0] ? "/" : "",
                 controllers[0] ? controller : "");
        climb(mount, group, fn, arg);
    }
    hn_lines_close(&r);
    for (int version = 2; version > 0 && !listed; version--) { /* no list of groups: the outermost */
        snprintf(mount, sizeof mount, "%.900s/sys/fs/cgroup%s%.30s", root, version == 1 ? "/" : "",
                 version == 1 ? controller : "");
        climb(mount, "", fn, arg);
    }
}

/* ---- CPUs ------------------------------------------------------------------------------------------ */

double hn_cgroup_quota(const char *folder)
{
    char path[FILE_CAP], line[64], period_line[64];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (hn_lines_first(line, sizeof line, path))
        return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : INFINITY;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!hn_lines_first(line, sizeof line, path)) return INFINITY;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!hn_lines_first(period_line, sizeof period_line, path)) return INFINITY;
    quota = strtod(line, NULL);
    period = strtod(period_line, NULL);
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

static void least_quota(void *arg, const char *folder, const char *name)
{
    double *least = arg, quota = hn_cgroup_quota(folder);
    if (quota < *least) *least = quota;
}

double hn_cgroup_cpus(const char *root)
{
    double least = INFINITY;
    hn_cgroup_climb(root, "cpu", least_quota, &least);
    return least;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

/* The number a file begins with; other where it has none: "max", or it is not there. */
static uint64_t number_in(const char *folder, const char *file, uint64_t other)
{
    char path[FILE_CAP], line[64];
    unsigned long long n;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return hn_lines_first(line, sizeof line, path) && sscanf(line, "%llu", &n) == 1 ? (uint64_t)n : other;
}

/* Bytes of files in the page cache of this group and those within it. Version 1 has their sum under names of its own,
 * and the same names as version 2 for this group alone, which come first. */
static uint64_t droppable(const char *folder)
{
    static const char *const names_of[2][2] = { { "inactive_file", "active_file" },
                                                { "total_inactive_file", "total_active_file" } };
    char path[FILE_CAP], line[128], name[64];
    unsigned long long n;
    uint64_t sum[2] = { 0 };
    bool whole = false;
    hn_lines r;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    hn_lines_open(&r, path);
    while (hn_lines_next(&r, line, sizeof line)) {
        if (sscanf(line, "%63s %llu", name, &n) != 2) continue;
        for (int i = 0; i < 4; i++)
            if (strcmp(name, names_of[i / 2][i % 2]) == 0) {
                sum[i / 2] += (uint64_t)n;
                whole = whole || i >= 2;
            }
    }
    hn_lines_close(&r);
    return sum[whole];
}

/* What version 1 says where there is none: the largest number of whole pages. */
#define NO_LIMIT_V1 (INT64_MAX & ~(uint64_t)0xFFFF)

typedef struct memory {
    uint64_t limit, left;
} memory;

static void least_memory(void *arg, const char *folder, const char *name)
{
    memory *m = arg;
    uint64_t limit = number_in(folder, "memory.max", UINT64_MAX),
             high = number_in(folder, "memory.high", UINT64_MAX), /* beyond it the group hardly runs */
        old = number_in(folder, "memory.limit_in_bytes", UINT64_MAX);
    if (old >= NO_LIMIT_V1) old = UINT64_MAX;
    uint64_t room = high < limit ? high : limit; /* some set memory.high to 0 for a moment, to get memory back */
    if (high && high < limit) limit = high;
    limit = old < limit ? old : limit;
    room = old < room ? old : room;
    if (room == UINT64_MAX) return;
    uint64_t used = number_in(folder, "memory.current", number_in(folder, "memory.usage_in_bytes", 0)),
             files = droppable(folder);
    used -= files < used ? files : used;
    uint64_t left = used < room ? room - used : 0;
    if (limit < m->limit) m->limit = limit;
    if (left < m->left) m->left = left;
}

uint64_t hn_cgroup_memory(const char *root, uint64_t *left)
{
    memory m = { UINT64_MAX, UINT64_MAX };
    hn_cgroup_climb(root, "memory", least_memory, &m);
    *left = m.left;
    return m.limit;
}
