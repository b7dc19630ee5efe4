/* What the system lets this process do, as far as its files say. */
#include "lab/machine/standing.h"

#include "base/os.h"
#include "lab/machine/around.h"

#include <unistd.h>

static const struct {
    const char *path, *words;
} files[] = {
    { "/proc/self/autogroup", "the priority of its parent's session" },
    { "/proc/self/cgroup", "the control group of its parent" },
    { "/proc/self/limits", "the limits of its parent" },
    { "/proc/self/timerslack_ns", "how late its parent may wake" },
    { "/sys/devices/system/cpu/online", "which CPUs there are" },
    { "/sys/kernel/mm/transparent_hugepage/enabled", "which memory comes in huge pages" },
};
_Static_assert(sizeof files / sizeof *files <= HN_STANDING_FILES, "a place for each");
enum { N_FILES = sizeof files / sizeof *files };

/* 0: it is not there. */
static uint64_t hash_of(const char *path)
{
    char buf[4096];
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    return hn_fnv1a(HN_FNV_INIT, buf, n) | 1;
}

void hn_standing_look(hn_standing *out)
{
    out->n_cpu = hn_os_cpus(out->cpu, HN_STANDING_CPUS);
    out->priority = hn_priority(getpid());
    for (int i = 0; i < N_FILES; i++) out->file[i] = hash_of(files[i].path);
}

const char *hn_standing_changed(const hn_standing *then)
{
    hn_standing now;
    hn_standing_look(&now);
    if (now.n_cpu != then->n_cpu || memcmp(now.cpu, then->cpu, (size_t)now.n_cpu * sizeof *now.cpu) != 0)
        return "the CPUs that its parent may run on";
    if (now.priority != then->priority) return "the priority of its parent";
    for (int i = 0; i < N_FILES; i++)
        if (now.file[i] != then->file[i]) return files[i].words;
    return NULL;
}
