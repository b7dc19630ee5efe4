/* Memory of a process, from /proc. Refuses to know what the memory is for.
 *
 * A process's own memory is what is no file's: RssAnon, shared memory, huge pages, what was swapped out of it, and
 * files that it maps to write to.
 * The peak of it has no counter of its own: VmHWM, the only peak the
 * kernel keeps, counts the pages of the mapped model too. So it is read where it is
 * largest (after loading, after prefill, after decode: between a call's start and its
 * logits nothing is allocated) by the measured process, and regularly from outside by
 * the one waiting for it, which also sees what loading took and gave back. The
 * kernel's counters are kept per thread and may be behind by some 64 pages each. */
#include "lab/machine/memory.h"
#include "lab/machine/around.h"

#include <sys/types.h>
#include <unistd.h>

/* Where mappings of a process begin in its smaps, and the name behind; else NULL. */
static const char *mapping(char *line, char mode[8], unsigned long long *lo, unsigned long long *hi)
{
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    return sscanf(line, "%llx-%llx %7s %*s %*s %*s %n", lo, hi, mode, &at) == 3 && at > 0 ? line + at : NULL;
}

/* The system counts pages of a file system in memory as shared ones. They are a file's where it is only read. */
static uint64_t files_in_memory(pid_t pid)
{
    char path[48] = "/proc/self/smaps", line[4600], mode[8];
    unsigned long long lo, hi, kib;
    uint64_t sum = 0;
    bool ours = false;
    if (pid) snprintf(path, sizeof path, "/proc/%ld/smaps", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *name = mapping(line, mode, &lo, &hi);
        if (name) ours = mode[1] != 'w' && name[0] == '/' && hn_file_system_is_memory(hn_file_system(name));
        else if (ours && sscanf(line, "Rss: %llu kB", &kib) == 1) sum += kib * 1024;
    }
    if (f) fclose(f);
    return sum;
}

static FILE *open_proc(pid_t pid, const char *name)
{
    char path[64];
    if (pid) snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    else snprintf(path, sizeof path, "/proc/self/%s", name);
    return fopen(path, "re");
}

/* A file on disk that is mapped to be written to, shared, as who hides memory in one does: it counts as a file's. */
static bool is_written(const char *name, const char *mode)
{
    return mode[1] == 'w' && mode[3] == 's' && name[0] == '/' && strncmp(name, "/dev/", 5) != 0 &&
           !hn_file_system_is_memory(hn_file_system(name));
}

/* Bytes of such files in memory. Whether there are any is asked of the cheaper list first. */
static uint64_t written_files(pid_t pid)
{
    char line[4600], mode[8];
    unsigned long long lo, hi, kib;
    uint64_t sum = 0;
    bool any = false, ours = false;
    FILE *f = open_proc(pid, "maps");
    while (f && !any && fgets(line, sizeof line, f)) {
        const char *name = mapping(line, mode, &lo, &hi);
        any = name && is_written(name, mode);
    }
    if (f) fclose(f);
    f = any ? open_proc(pid, "smaps") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        const char *name = mapping(line, mode, &lo, &hi);
        if (name) ours = is_written(name, mode);
        else if (ours && sscanf(line, "Rss: %llu kB", &kib) == 1) sum += kib * 1024;
    }
    if (f) fclose(f);
    return sum;
}

bool hn_memory_read(hn_memory *out, pid_t pid)
{
    uint64_t shared = 0, more = 0;
    *out = (hn_memory){ 0 };
    char path[48] = "/proc/self/status", line[256];
    if (pid) snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    int seen = 0;
    while (fgets(line, sizeof line, f)) {
        unsigned long long kib;
        if (sscanf(line, "RssAnon: %llu kB", &kib) == 1) out->resident = kib * 1024, seen++;
        else if (sscanf(line, "RssFile: %llu kB", &kib) == 1) out->file = kib * 1024, seen++;
        else if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) out->hwm = kib * 1024, seen++;
        else if (sscanf(line, "RssShmem: %llu kB", &kib) == 1) shared = kib * 1024;
        else if (sscanf(line, "VmSwap: %llu kB", &kib) == 1) more += kib * 1024;
        else if (sscanf(line, "HugetlbPages: %llu kB", &kib) == 1) more += kib * 1024;
    }
    fclose(f);
    uint64_t of_files = shared ? files_in_memory(pid) : 0;
    if (of_files > shared) of_files = shared;
    uint64_t written = written_files(pid);
    if (written > out->file) written = out->file;
    out->file += of_files - written;
    out->anon = out->resident + more + shared - of_files + written;
    return seen == 3;
}

static bool statm(pid_t pid, unsigned long long *resident, unsigned long long *shared)
{
    char path[48];
    unsigned long long size;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fscanf(f, "%llu %llu %llu", &size, resident, shared) == 3 && *resident >= *shared;
    fclose(f);
    return ok;
}

uint64_t hn_memory_anon_again(pid_t pid)
{
    unsigned long long resident, shared;
    return statm(pid, &resident, &shared) ? (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t hn_memory_resident(pid_t pid)
{
    unsigned long long resident, shared;
    return statm(pid, &resident, &shared) ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

bool hn_memory_maps(pid_t pid, const char *end)
{
    char line[4600], mode[8];
    unsigned long long lo, hi;
    bool any = false;
    FILE *f = open_proc(pid, "maps");
    while (f && !any && fgets(line, sizeof line, f)) {
        const char *name = mapping(line, mode, &lo, &hi);
        any = name && ends_with(name, end);
    }
    if (f) fclose(f);
    return any;
}

static bool is_model(const char *name, const char *path, const char *packed)
{
    return strcmp(name, path) == 0 || (packed && strcmp(name, packed) == 0) || ends_with(name, ".gguf") ||
           ends_with(name, ".hpack");
}

bool hn_memory_mapped(hn_mapped *out, const char *path, const char *packed)
{
    *out = (hn_mapped){ 0 };
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f) return false;
    char line[4600], mode[8];
    bool ours = false;
    while (fgets(line, sizeof line, f)) {
        unsigned long long lo, hi, kib;
        const char *name = mapping(line, mode, &lo, &hi);
        if (name) {
            ours = is_model(name, path, packed);
            if (ours) out->mapped += hi - lo;
        } else if (ours && sscanf(line, "Rss: %llu kB", &kib) == 1) {
            out->resident += kib * 1024;
        } else if (ours && sscanf(line, "FilePmdMapped: %llu kB", &kib) == 1) {
            out->huge += kib * 1024;
            out->knows_huge = true;
        }
    }
    fclose(f);
    return true;
}
