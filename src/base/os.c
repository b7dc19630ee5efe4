/* The operating system: every call that is neither C11 nor POSIX lives here, with one
 * branch per system. Refuses to know what it is asked for. */
#define _GNU_SOURCE
#include "base/os.h"
#include "base/cgroup.h"
#include "base/guard.h"
#include "base/lines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#endif
#if !defined(__linux__)
#include "base/park.h"
#endif

/* ---- machine ------------------------------------------------------------------------- */

#if defined(__APPLE__)
/* A number of sysctl, 0 if there is none. */
static uint64_t sysctl_number(const char *name)
{
    union {
        uint64_t u64;
        uint32_t u32;
    } v = { 0 };
    size_t n = sizeof v;
    if (sysctlbyname(name, &v, &n, NULL, 0) != 0) return 0;
    return n == sizeof v.u32 ? v.u32 : n == sizeof v.u64 ? v.u64 : 0;
}
#endif

#if defined(__aarch64__)
unsigned hn_os_arm_features(void)
{
    unsigned f = 0;
#if defined(__linux__)
    enum { ASIMDDP = 1 << 20, I8MM = 1 << 13 }; /* of AT_HWCAP, of AT_HWCAP2; older headers lack the names */
    if (getauxval(AT_HWCAP) & ASIMDDP) f |= HN_ARM_DOTPROD;
    if (getauxval(AT_HWCAP2) & I8MM) f |= HN_ARM_I8MM;
#elif defined(__APPLE__)
    if (sysctl_number("hw.optional.arm.FEAT_DotProd")) f |= HN_ARM_DOTPROD;
    if (sysctl_number("hw.optional.arm.FEAT_I8MM")) f |= HN_ARM_I8MM;
#endif
    return f;
}
#else
unsigned hn_os_arm_features(void) { return 0; }
#endif

#if defined(__linux__)
/* A set of cpu_set_t has 1024 CPUs, and the system refuses one with fewer than it has. */
enum { CPU_SETS = 16, MOST_CPUS = CPU_SETS * CPU_SETSIZE };
typedef struct cpu_sets {
    cpu_set_t set[CPU_SETS];
} cpu_sets;

/* id: of a thread; 0: this one. */
static bool cpus_of(int64_t id, cpu_sets *c)
{
    memset(c, 0, sizeof *c);
    return sched_getaffinity((pid_t)id, sizeof c->set, c->set) == 0;
}
#endif

int32_t hn_os_cpu_count(void)
{
#if defined(__linux__)
    cpu_sets c;
    if (cpus_of(0, &c)) {
        int n = CPU_COUNT_S(sizeof c.set, c.set);
        if (n > 0) return n;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

int32_t hn_os_thread_count(int32_t cpus, const char *root)
{
    int32_t n = cpus < HN_MOST_THREADS ? cpus : HN_MOST_THREADS;
    double share = hn_cgroup_cpus(root);
    return share >= n ? n : share > 1 ? (int32_t)ceil(share) : 1;
}

int32_t hn_cpu_count(void) { return hn_os_thread_count(hn_os_cpu_count(), ""); }

int32_t hn_os_cpus(int32_t *cpu, int32_t cap)
{
    int32_t n = 0;
#if defined(__linux__)
    cpu_sets all;
    if (!cpus_of(0, &all)) return 0;
    for (int c = 0; c < MOST_CPUS && n < cap; c++)
        if (CPU_ISSET_S(c, sizeof all.set, all.set)) cpu[n++] = c;
#endif
    return n;
}

bool hn_os_run_on(const int32_t *cpu, int32_t n)
{
#if defined(__linux__)
    cpu_sets c = { 0 };
    for (int32_t i = 0; i < n; i++) CPU_SET_S(cpu[i], sizeof c.set, c.set);
    return sched_setaffinity(0, sizeof c.set, c.set) == 0;
#else
    return false;
#endif
}

/* ---- threads that keep off a CPU ---- */

#if defined(__linux__)
static bool same_cpus(const cpu_sets *a, const cpu_sets *b) { return CPU_EQUAL_S(sizeof a->set, a->set, b->set); }

static bool run_on_all_but(const hn_os_thread *t, int32_t cpu)
{
    cpu_sets c = *(const cpu_sets *)t->may;
    if (cpu >= 0) CPU_CLR_S(cpu, sizeof c.set, c.set);
    return sched_setaffinity((pid_t)t->id, sizeof c.set, c.set) == 0; /* with no CPU it fails */
}
#endif

void hn_os_thread_new(hn_os_thread *t)
{
    *t = (hn_os_thread){ .off = -1 };
#if defined(__linux__)
    t->may = malloc(sizeof(cpu_sets));
#endif
}

void hn_os_thread_begin(hn_os_thread *t)
{
#if defined(__linux__)
    cpu_sets first;
    t->id = syscall(SYS_gettid);
    t->process = getpid();
    t->left = !t->may || !cpus_of(t->id, t->may);
    t->as_first = !t->left && cpus_of(t->process, &first) && same_cpus(&first, t->may);
#else
    t->left = true;
#endif
}

void hn_os_thread_end(hn_os_thread *t)
{
    free(t->may);
    t->may = NULL;
}

#if defined(__linux__)
/* Brings t->may up to date; false: its CPUs are somebody's decision. What a thread has is what was asked for it, less
 * the CPUs that a control group takes from the process, and it gets no more when the group gives more. So the first
 * thread is looked at, too, for which hone asks nothing. Who has the very CPUs of that one was set together with it
 * (taskset -a; a control group, of systems before Linux 6.2). Two threads of two CPUs, of which somebody sets the first
 * alone to where this one is, look the same: this one stays there, as it must if both were meant. */
static bool see_cpus(hn_os_thread *t)
{
    cpu_sets *may = t->may, asked = *may, is, first, common;
    if (t->off >= 0) CPU_CLR_S(t->off, sizeof asked.set, asked.set);
    if (!cpus_of(t->id, &is) || !cpus_of(t->process, &first)) return false;
    if (t->as_first && same_cpus(&is, &first)) {
        *may = first;
        t->off = -1;
        return true;
    }
    CPU_AND_S(sizeof common.set, common.set, may->set, first.set);
    if (t->as_first && same_cpus(&is, &asked) && same_cpus(&common, may)) *may = first; /* it has more now */
    CPU_AND_S(sizeof common.set, common.set, asked.set, first.set);
    return same_cpus(&is, &asked) || same_cpus(&is, &common); /* less: the system will cut what is asked next, too */
}
#endif

void hn_os_keep_off(hn_os_thread *t, int32_t cpu)
{
    if (t->left || t->off == cpu || cpu < 0) return;
#if defined(__linux__)
    t->left = true;
    if (cpu >= MOST_CPUS || t->process != getpid()) return; /* a child, in which the thread is not */
    if (!see_cpus(t)) return;
    t->off = run_on_all_but(t, cpu) ? cpu : -1;
    t->left = t->off < 0 && !run_on_all_but(t, -1); /* it has no other: not where it was sent the last time, either */
#endif
}

int32_t hn_os_current_cpu(void)
{
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

void hn_os_want_huge_pages(void *p, size_t n)
{
#if defined(MADV_HUGEPAGE)
    madvise(p, n, MADV_HUGEPAGE);
#endif
}

/* Bytes between the end of a file and that of its last page: zeros that nobody may rely on. */
static size_t file_tail(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (page - n % page) % page;
}

static void *map_file(int fd, size_t n)
{
    const size_t huge = HN_OS_HUGE_PAGE;
    if (n >= huge && n <= SIZE_MAX - 2 * huge) { /* address ≡ offset modulo a huge page */
        char *all = mmap(NULL, n + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all != MAP_FAILED) {
            char *at = (char *)(((uintptr_t)all + huge - 1) & ~(uintptr_t)(huge - 1));
            size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (n + page - 1) & ~(page - 1); /* of the file's mapping */
            char *rest = at + end, *over = all + ((n + huge + page - 1) & ~(page - 1));
            void *m = mmap(at, n, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
            if (m == MAP_FAILED) {
                int e = errno;
                munmap(all, n + huge);
                errno = e;
                return NULL;
            }
            if (at > all) munmap(all, (size_t)(at - all));
            if (over > rest) munmap(rest, (size_t)(over - rest));
            hn_os_want_huge_pages(m, end);
            return m;
        }
    }
    void *m = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    return m == MAP_FAILED ? NULL : m;
}

void *hn_os_map_file(int fd, size_t n)
{
    char *m = map_file(fd, n);
    if (m) hn_guard(m + n, file_tail(n));
    return m;
}

void hn_os_unmap_file(const void *p, size_t n)
{
    hn_unguard((const char *)p + n, file_tail(n));
    munmap((void *)(uintptr_t)p, n);
}

#if defined(__APPLE__)

void hn_os_memory(const char *root, uint64_t *total, uint64_t *available)
{
    vm_statistics64_data_t vm;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    *total = sysctl_number("hw.memsize");
    *available = 0;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&vm, &n) == KERN_SUCCESS)
        *available =
            ((uint64_t)vm.free_count + vm.inactive_count + vm.purgeable_count) * (uint64_t)sysconf(_SC_PAGESIZE);
}

#else

/* A line "NAME: N kB" of /proc/meminfo in bytes, 0 if there is none. */
static uint64_t meminfo(const char *root, const char *name)
{
    hn_lines r;
    char path[1200], line[160];
    size_t n = strlen(name);
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "%.900s/proc/meminfo", root);
    if (!hn_lines_open(&r, path)) return 0;
    while (hn_lines_next(&r, line, sizeof line))
        if (strncmp(line, name, n) == 0 && line[n] == ':' && sscanf(line + n + 1, "%llu kB", &kib) == 1) break;
    hn_lines_close(&r);
    return (uint64_t)kib * 1024;
}

static uint64_t less(uint64_t system, uint64_t group)
{
    if (group == UINT64_MAX || (system && system < group)) return system;
    return group ? group : 1; /* 0: unknown */
}

void hn_os_memory(const char *root, uint64_t *total, uint64_t *available)
{
    uint64_t left, limit = hn_cgroup_memory(root, &left);
    *total = less(meminfo(root, "MemTotal"), limit);
    *available = less(meminfo(root, "MemAvailable"), left);
}

#endif

uint64_t hn_memory_total(void)
{
    uint64_t total, available;
    hn_os_memory("", &total, &available);
    return total;
}

uint64_t hn_memory_available(void)
{
    uint64_t total, available;
    hn_os_memory("", &total, &available);
    return available;
}

bool hn_os_random(void *dst, size_t n)
{
#if defined(__linux__)
    return getrandom(dst, n, GRND_NONBLOCK) == (ssize_t)n;
#elif defined(__APPLE__)
    return getentropy(dst, n) == 0;
#else
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t k = fd >= 0 ? read(fd, dst, n) : -1;
    if (fd >= 0) close(fd);
    return k == (ssize_t)n;
#endif
}

int hn_os_file_room(int fd, uint64_t n)
{
#if defined(__linux__)
    /* not posix_fallocate: where the file system cannot, that writes all of it */
    while (n && fallocate(fd, 0, 0, (off_t)n) != 0) {
        if (errno == EINTR) continue;
        if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return errno;
        break;
    }
#endif
    return ftruncate(fd, (off_t)n) != 0 ? errno : 0;
}

/* ---- waiting --------------------------------------------------------------------------- */

void hn_os_wait(_Atomic uint32_t *w, uint32_t seen)
{
#if defined(__linux__)
    syscall(SYS_futex, w, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    hn_park_wait(w, seen); /* what macOS has for this is private before version 14.4 */
#endif
}

void hn_os_wake(_Atomic uint32_t *w, int n)
{
#if defined(__linux__)
    syscall(SYS_futex, w, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
#else
    hn_park_wake(w, n);
#endif
}

/* ---- files and processes --------------------------------------------------------------------------- */

int hn_os_pipe(int fd[2], bool nonblocking)
{
#if defined(__linux__)
    return pipe2(fd, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0));
#else
    if (pipe(fd) != 0) return -1;
    for (int i = 0; i < 2; i++)
        if (fcntl(fd[i], F_SETFD, FD_CLOEXEC) != 0 || (nonblocking && fcntl(fd[i], F_SETFL, O_NONBLOCK) != 0)) {
            int e = errno;
            close(fd[0]);
            close(fd[1]);
            errno = e;
            return -1;
        }
    return 0;
#endif
}

bool hn_os_peer_ended(int fd)
{
#if defined(POLLRDHUP)
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };
#else
    struct pollfd p = { .fd = fd };
#endif
    return poll(&p, 1, 0) == 1; /* an error and the end of both ways are told without being asked for */
}

bool hn_os_names_open_file(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

#if defined(__linux__)
typedef struct mapped_file {
    char *path; /* resolved */
    uint64_t ino;
} mapped_file;

/* "begin-end perms offset dev inode path": inode and path alone, as devices look otherwise in some file systems. */
static bool is_of(const char *line, const mapped_file *f)
{
    uint64_t ino;
    int at = 0;
    if (sscanf(line, "%*s %*s %*s %*s %" SCNu64 " %n", &ino, &at) != 1 || !at || ino != f->ino) return false;
    return strcmp(line + at, f->path) == 0;
}

static bool maps_one(const char *pid, const mapped_file *f, size_t n, size_t *which)
{
    char path[64], line[PATH_MAX + 128];
    hn_lines r;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
    if (!hn_lines_open(&r, path)) return false;
    while (!found && hn_lines_next(&r, line, sizeof line))
        for (size_t i = 0; i < n && !found; i++) {
            found = f[i].path && is_of(line, &f[i]);
            if (found) *which = i;
        }
    hn_lines_close(&r);
    return found;
}
#endif

int64_t hn_os_file_user(const char *const *path, size_t n, size_t *which)
{
    *which = 0;
#if defined(__linux__)
    int64_t user = 0, self = (int64_t)getpid();
    mapped_file *f = calloc(n + 1, sizeof *f);
    DIR *d = f ? opendir("/proc") : NULL;
    for (size_t i = 0; d && i < n; i++) {
        struct stat sb;
        if (stat(path[i], &sb) != 0 || !S_ISREG(sb.st_mode) || !(f[i].path = realpath(path[i], NULL))) continue;
        f[i].ino = (uint64_t)sb.st_ino;
    }
    for (struct dirent *e; d && !user && (e = readdir(d));) {
        int64_t pid = strtoll(e->d_name, NULL, 10);
        if (pid > 0 && pid != self && maps_one(e->d_name, f, n, which)) user = pid;
    }
    if (d) closedir(d);
    for (size_t i = 0; f && i < n; i++) free(f[i].path);
    free(f);
    return user;
#else
    (void)path, (void)n;
    return 0;
#endif
}

bool hn_os_ignores_case(const char *folder)
{
#if defined(__linux__) && defined(FS_IOC_GETFLAGS) && defined(FS_CASEFOLD_FL)
    unsigned long flags = 0; /* the kernel writes an int, some file systems a long */
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool folds = fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
    if (fd >= 0) close(fd);
    return folds;
#elif defined(__APPLE__)
    return pathconf(folder, _PC_CASE_SENSITIVE) == 0;
#else
    (void)folder;
    return false;
#endif
}

int64_t hn_os_mtime_ns(const struct stat *sb)
{
#if defined(__APPLE__)
    const struct timespec *t = &sb->st_mtimespec;
#else
    const struct timespec *t = &sb->st_mtim;
#endif
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

int64_t hn_os_ctime_ns(const struct stat *sb)
{
#if defined(__APPLE__)
    const struct timespec *t = &sb->st_ctimespec;
#else
    const struct timespec *t = &sb->st_ctim;
#endif
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

uint64_t hn_os_kernel_ns(void)
{
    struct timespec t = { 0 };
#if defined(__linux__)
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) != 0) return 0;
#else
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return 0;
#endif
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hn_os_process_cpu_ns(int pid)
{
#if defined(__linux__)
    struct timespec t;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
    (void)pid;
    return 0;
#endif
}

bool hn_os_program_path(char *dst, size_t cap)
{
#if defined(__linux__)
    static const char self[] = "/proc/self/exe"; /* stays right when the file is renamed or replaced */
    if (cap < sizeof self || access(self, X_OK) != 0) return false;
    memcpy(dst, self, sizeof self);
    return true;
#elif defined(__APPLE__)
    uint32_t n = cap < UINT32_MAX ? (uint32_t)cap : UINT32_MAX;
    return _NSGetExecutablePath(dst, &n) == 0;
#else
    (void)dst, (void)cap;
    return false;
#endif
}

bool hn_os_die_with_parent(void)
{
#if defined(__linux__)
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
#else
    return false;
#endif
}

bool hn_os_adopt(bool on)
{
#if defined(__linux__)
    return prctl(PR_SET_CHILD_SUBREAPER, on ? 1UL : 0UL) == 0;
#else
    (void)on;
    return false;
#endif
}

int32_t hn_os_children_of(int32_t parent, int32_t *pid, int32_t cap)
{
    int32_t n = 0;
#if defined(__linux__)
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *d = opendir(path); /* each thread has its own */
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)parent, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "re") : NULL;
        while (f && n < cap && fscanf(f, "%d", &pid[n]) == 1) n++;
        if (f) fclose(f);
    }
    if (d) closedir(d);
#else
    (void)parent, (void)pid, (void)cap;
#endif
    return n;
}

int32_t hn_os_children(int32_t *pid, int32_t cap) { return hn_os_children_of((int32_t)getpid(), pid, cap); }

/* Share of the pages of a file that are in the page cache. mincore tells the truth about files that
 * the caller owns or may write to; of others it says "all there". */
static double resident_share(int fd, size_t n)
{
#if defined(__linux__)
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (n + page - 1) / page, there = 0;
    unsigned char *vec = malloc(pages ? pages : 1);
    void *p = n ? mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    bool ok = vec && p != MAP_FAILED && mincore(p, n, vec) == 0;
    for (size_t i = 0; ok && i < pages; i++) there += vec[i] & 1;
    if (p != MAP_FAILED) munmap(p, n);
    free(vec);
    return ok ? (double)there / (double)pages : -1;
#else
    (void)fd, (void)n;
    return -1;
#endif
}

double hn_os_drop_file(const char *path)
{
    struct stat sb;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    double share = -1;
    if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode)) {
#if defined(POSIX_FADV_DONTNEED)
        fsync(fd); /* only clean pages can be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
        share = resident_share(fd, (size_t)sb.st_size);
    }
    close(fd);
    return share;
}

int64_t hn_os_resident(const void *p, size_t n)
{
#if defined(__linux__)
    enum { CHUNK = 4096 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char vec[CHUNK];
    int64_t there = 0;
    for (size_t at = 0; at < n; at += CHUNK * page) {
        size_t len = n - at < CHUNK * page ? n - at : CHUNK * page;
        if (mincore((char *)(uintptr_t)p + at, len, vec) != 0) return -1;
        for (size_t i = 0; i < (len + page - 1) / page; i++) there += vec[i] & 1;
    }
    return there * (int64_t)page;
#else
    (void)p, (void)n;
    return -1;
#endif
}

bool hn_os_heap_read(hn_os_heap *out)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33) && !HN_ASAN && !HN_TSAN
    struct mallinfo2 m = mallinfo2();
    *out = (hn_os_heap){ .in_use = m.uordblks + m.hblkhd, .mapped = m.hblkhd, .free = m.fordblks };
    return true;
#else
    *out = (hn_os_heap){ 0 };
    return false;
#endif
}

bool hn_os_flush_caches(const void *p, size_t n)
{
#if defined(__x86_64__)
    enum { LINE = 64 };
    uintptr_t end = (uintptr_t)p + n;
    for (uintptr_t at = (uintptr_t)p & ~(uintptr_t)(LINE - 1); at < end; at += LINE)
        __builtin_ia32_clflush((const void *)at);
    __builtin_ia32_mfence();
    return true;
#else
    return false;
#endif
}

void hn_os_heap_trim(void)
{
#if defined(__GLIBC__) && !HN_ASAN && !HN_TSAN
    malloc_trim(0);
#endif
}

size_t hn_os_block_bytes(void *p)
{
#if defined(__linux__)
    return malloc_usable_size(p);
#else
    (void)p;
    return 0;
#endif
}

bool hn_os_stack(const void *thread, void **lo, size_t *n)
{
#if defined(__linux__)
    pthread_attr_t a;
    if (pthread_getattr_np(*(const pthread_t *)thread, &a) != 0) return false;
    bool ok = pthread_attr_getstack(&a, lo, n) == 0;
    pthread_attr_destroy(&a);
    return ok;
#else
    (void)thread, (void)lo, (void)n;
    return false;
#endif
}

int hn_os_count_open(hn_os_counter what, const char **why_not)
{
#if defined(__linux__)
    struct perf_event_attr a = { .size = sizeof a, .inherit = 1, .exclude_kernel = 1, .exclude_hv = 1 };
    static const uint64_t config[] = { [HN_OS_CACHE_MISSES] = PERF_COUNT_HW_CACHE_MISSES,
                                       [HN_OS_PAGE_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS,
                                       [HN_OS_CYCLES] = PERF_COUNT_HW_CPU_CYCLES,
                                       [HN_OS_INSTRUCTIONS] = PERF_COUNT_HW_INSTRUCTIONS };
    a.type = what == HN_OS_PAGE_FAULTS ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE;
    a.config = config[what];
    a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0) return fd;
    *why_not = errno == EACCES || errno == EPERM ? "the kernel does not allow it (perf_event_paranoid)"
               : errno == ENOSYS                 ? "the kernel has no performance counters"
                                 : "this machine has no such counter (virtual machines often have none)";
#else
    *why_not = "not on this system";
#endif
    return -1;
}

int64_t hn_os_count_read(int fd)
{
    uint64_t v[3]; /* count, time enabled, time running */
    return fd >= 0 && read(fd, v, sizeof v) == (ssize_t)sizeof v && v[1] == v[2] ? (int64_t)v[0] : -1;
}

/* ---- C library ------------------------------------------------------------------------------ */

static bool keep(hn_os_text *t, const char *p, size_t n)
{
    if (t->lost || n > SIZE_MAX / 2 - t->n - 1) t->lost = true;
    else if (t->n + n + 1 > t->cap) {
        size_t cap = 2 * (t->n + n + 1);
        char *more = realloc(t->p, cap);
        t->lost = !more;
        t->p = more ? more : t->p;
        t->cap = more ? cap : t->cap;
    }
    if (t->lost) return false;
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
    return true;
}

#if defined(__linux__)
static ssize_t keep_piece(void *t, const char *p, size_t n) { return keep(t, p, n) ? (ssize_t)n : 0; }

bool hn_os_text_open(hn_os_text *t)
{
    *t = (hn_os_text){ .f = fopencookie(t, "w", (cookie_io_functions_t){ .write = keep_piece }) };
    return t->f != NULL;
}
#else
static int keep_piece(void *t, const char *p, int n) { return keep(t, p, (size_t)n) ? n : -1; }

bool hn_os_text_open(hn_os_text *t)
{
    *t = (hn_os_text){ .f = funopen(t, NULL, keep_piece, NULL, NULL) };
    return t->f != NULL;
}
#endif

char *hn_os_text_close(hn_os_text *t, size_t *n)
{
    bool ok = fclose(t->f) == 0 && keep(t, "", 0); /* a text of nothing is a text */
    char *text = t->p;
    if (!ok) {
        free(text);
        text = NULL;
    }
    if (n) *n = text ? t->n : 0;
    *t = (hn_os_text){ .lost = !ok };
    return text;
}

#if defined(__linux__)
void hn_os_sort(void *base, size_t n, size_t size, hn_os_compare *compare, void *arg)
{
    qsort_r(base, n, size, compare, arg);
}
#else /* the BSD form: every argument elsewhere */
typedef struct order {
    hn_os_compare *compare;
    void *arg;
} order;

static int compare_by(void *arg, const void *a, const void *b)
{
    const order *o = arg;
    return o->compare(a, b, o->arg);
}

void hn_os_sort(void *base, size_t n, size_t size, hn_os_compare *compare, void *arg)
{
    order o = { compare, arg };
    qsort_r(base, n, size, &o, compare_by);
}
#endif

void hn_os_cpu_name(char *dst, size_t cap)
{
    hn_lines r;
    bool found = false;
    hn_lines_open(&r, "/proc/cpuinfo");
    while (!found && hn_lines_next(&r, dst, cap))
        found = strncmp(dst, "model name", 10) == 0 || strncmp(dst, "CPU part", 8) == 0;
    hn_lines_close(&r);
    if (!found) dst[0] = 0;
}

/* ---- the cache ----------------------------------------------------------------------------- */

static uint64_t pretended; /* 0: nothing */
void hn_cache_bytes_set(uint64_t bytes) { pretended = bytes; }

uint64_t hn_cache_bytes(void)
{
    if (pretended) return pretended == UINT64_MAX ? 0 : pretended;
    uint64_t most = 0;
    for (int i = 0; i < 8; i++) {
        char path[96], type[32] = "";
        unsigned long long kib = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        FILE *f = fopen(path, "re");
        if (!f) break;
        if (fscanf(f, "%31s", type) != 1) type[0] = 0;
        fclose(f);
        if (strcmp(type, "Instruction") == 0) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (!(f = fopen(path, "re"))) continue;
        if (fscanf(f, "%lluK", &kib) == 1 && kib * 1024 > most) most = kib * 1024;
        fclose(f);
    }
    return most;
}
