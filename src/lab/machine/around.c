/* What is around this process. Owns reading it; refuses to judge a number by it. */
#define _GNU_SOURCE
#include "lab/machine/around.h"
#include "base/lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

enum { PATH_CAP = 1200 };

/* ---- code of others ------------------------------------------------------------------------------ */

static void add_word(hn_around *a, const char *what)
{
    size_t n = strlen(a->preload);
    if (what && *what) snprintf(a->preload + n, sizeof a->preload - n, "%s%s", n ? " " : "", what);
}

static void read_preload(hn_around *a, const char *root)
{
    char path[PATH_CAP], line[200];
    add_word(a, getenv("LD_PRELOAD"));
    add_word(a, getenv("LD_AUDIT"));
    snprintf(path, sizeof path, "%.900s/etc/ld.so.preload", root);
    if (hn_lines_first(line, sizeof line, path)) add_word(a, line);
}

/* ---- control groups -------------------------------------------------------------------------------- */

/* CPUs by the limit of one group, of version 2 or 1; NaN: none, or unknown. */
static double quota_of(const char *folder)
{
    char path[PATH_CAP + 40], line[64], period_line[64];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (hn_lines_first(line, sizeof line, path))
        return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : NAN;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!hn_lines_first(line, sizeof line, path)) return NAN;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!hn_lines_first(period_line, sizeof period_line, path)) return NAN;
    quota = strtod(line, NULL);
    period = strtod(period_line, NULL);
    return quota > 0 && period > 0 ? quota / period : NAN;
}

static int64_t stopped_of(const char *folder)
{
    char path[PATH_CAP + 40], line[128];
    long long n = -1;
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    hn_lines r;
    hn_lines_open(&r, path);
    while (hn_lines_next(&r, line, sizeof line))
        if (sscanf(line, "nr_throttled %lld", &n) == 1) break;
    hn_lines_close(&r);
    return (int64_t)n;
}

/* The group and all around it, innermost first: each may have a limit, and the least of them counts. */
static void climb(hn_around *a, const char *mount, const char *group)
{
    char folder[PATH_CAP];
    size_t top = (size_t)snprintf(folder, sizeof folder, "%.900s", mount);
    snprintf(folder + top, sizeof folder - top, "%s%.250s", group[0] == '/' ? "" : "/", group);
    size_t n = strlen(folder);
    while (n > top && folder[n - 1] == '/') folder[--n] = 0;
    for (;;) {
        double q = quota_of(folder);
        int64_t s = stopped_of(folder);
        if (q < a->quota || (isfinite(q) && !isfinite(a->quota))) {
            a->quota = q;
            snprintf(a->quota_at, sizeof a->quota_at, "%.127s", n > top ? folder + top : "/");
        }
        if (s >= 0) a->stopped = (a->stopped < 0 ? 0 : a->stopped) + s;
        if (n <= top) return;
        while (n > top && folder[--n] != '/') continue;
        folder[n] = 0;
    }
}

static bool names_cpu(const char *controllers)
{
    for (const char *s = controllers; s; s = strchr(s, ',')) {
        s += *s == ',';
        if (strncmp(s, "cpu", 3) == 0 && (s[3] == 0 || s[3] == ',')) return true;
    }
    return false;
}

/* Lines "0::/group" (version 2) and "N:cpu,cpuacct:/group" (version 1). */
static void read_groups(hn_around *a, const char *root)
{
    char path[PATH_CAP], mount[PATH_CAP], line[700];
    snprintf(path, sizeof path, "%.900s/proc/self/cgroup", root);
    hn_lines r;
    bool listed = hn_lines_open(&r, path);
    while (hn_lines_next(&r, line, sizeof line)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || strstr(group, "/..")) continue; /* outside of what this process may see */
        *group++ = 0;
        controllers++;
        if (controllers[0] && !names_cpu(controllers)) continue;
        snprintf(mount, sizeof mount, "%.900s/sys/fs/cgroup%s%s", root, controllers[0] ? "/" : "",
                 controllers[0] ? "cpu" : "");
        climb(a, mount, group);
    }
    hn_lines_close(&r);
    for (int version = 2; version > 0 && !listed; version--) { /* no list of groups: the outermost */
        snprintf(mount, sizeof mount, "%.900s/sys/fs/cgroup%s", root, version == 1 ? "/cpu" : "");
        climb(a, mount, "");
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

void hn_around_read(hn_around *out, const char *root)
{
    *out = (hn_around){ .quota = NAN, .stopped = -1 };
    read_preload(out, root);
    read_groups(out, root);
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0) out->nice = nice;
}

int hn_around_doubts(char text[HN_DOUBTS][400], const hn_around *a, int32_t cores)
{
    int n = 0;
    if (a->preload[0])
        snprintf(text[n++], 400, "code of others runs in the measured processes: LD_PRELOAD or its like has %.250s",
                 HN_ESC(a->preload, strlen(a->preload)));
    if (a->nice)
        snprintf(text[n++], 400, "the priority is %s than usual: niceness %d", a->nice > 0 ? "lower" : "higher",
                 a->nice);
    if (a->quota < cores)
        snprintf(text[n++], 400, "the control group %.120s may use %.2f of %d cores", a->quota_at, a->quota,
                 (int)cores);
    return n;
}

const char *hn_file_system(const char *path)
{
#ifdef __linux__
    static const struct {
        long type;
        const char *name;
    } known[] = {
        { 0x01021994, "tmpfs" }, { 0x858458F6, "ramfs" }, { 0x958458F6, "hugetlbfs" }, { 0xEF53, "ext4" },
        { 0x58465342, "xfs" },   { 0x9123683E, "btrfs" }, { 0x794C7630, "overlay" },   { 0x6969, "nfs" },
        { 0x2FC12FC1, "zfs" },   { 0x65735546, "fuse" },  { 0x01021997, "9p" },        { 0xFF534D42, "cifs" }
    };
    struct statfs s;
    if (statfs(path, &s) != 0) return "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((long)(uint32_t)s.f_type == known[i].type) return known[i].name;
#endif
    return "";
}

bool hn_file_system_is_memory(const char *name)
{
    return strcmp(name, "tmpfs") == 0 || strcmp(name, "ramfs") == 0 || strcmp(name, "hugetlbfs") == 0;
}
