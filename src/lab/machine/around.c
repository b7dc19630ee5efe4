/* What is around this process. Owns reading it; refuses to judge a number by it. */
#define _GNU_SOURCE
#include "lab/machine/around.h"
#include "base/cgroup.h"
#include "base/lines.h"

#include <dirent.h>
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

static void look_at_group(void *arg, const char *folder, const char *name)
{
    hn_around *a = arg;
    double q = hn_cgroup_quota(folder);
    int64_t s = stopped_of(folder);
    if (q < a->quota || (isfinite(q) && !isfinite(a->quota))) {
        a->quota = q;
        snprintf(a->quota_at, sizeof a->quota_at, "%.127s", name);
    }
    if (s >= 0) a->stopped = (a->stopped < 0 ? 0 : a->stopped) + s;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

void hn_around_read(hn_around *out, const char *root)
{
    *out = (hn_around){ .quota = NAN, .stopped = -1 };
    read_preload(out, root);
    hn_cgroup_climb(root, "cpu", look_at_group, out);
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

/* From the policy and what was asked for, the 41st, 40th and 19th of /proc/PID/task/TID/stat. The 18th, which is made
 * of them, is also what the kernel lends a thread that others wait for. The name before them may hold anything. */
static bool own_priority(const char *line, int32_t *is)
{
    enum { NICE = 19, RT = 40, POLICY = 41, FIFO = 1, RR = 2, DEADLINE = 6 };
    const char *p = strrchr(line, ')');
    int field[POLICY + 1] = { 0 };
    for (int i = 3; i <= POLICY; i++) {
        if (!p || !(p = strchr(p, ' '))) return false;
        p++;
        if (i == NICE || i == RT || i == POLICY) field[i] = (int)strtol(p, NULL, 10);
    }
    const int policy = field[POLICY];
    *is = policy == FIFO || policy == RR ? -1 - field[RT] : policy == DEADLINE ? -200 : 20 + field[NICE];
    return true;
}

int32_t hn_priority(pid_t pid)
{
    int32_t most = INT32_MAX, is;
    char path[80], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%ld/task/%.20s/stat", (long)pid, e->d_name);
        if (e->d_name[0] == '.' || !hn_lines_first(line, sizeof line, path)) continue;
        if (own_priority(line, &is) && is < most) most = is;
    }
    if (d) closedir(d);
    return most;
}
