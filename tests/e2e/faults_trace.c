/* faults_trace: a process and all it starts, traced; the k-th system call of a kind is not done, or done
 * for half of its bytes, or done and called a failure. Owns ptrace; refuses to know what failed means. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

const fault_kind fault_kinds[] = {
    { "write ENOSPC", CALL_WRITE, ENOSPC, false, true },
    { "write EIO", CALL_WRITE, EIO, false, false },
    { "write short", CALL_WRITE, 0, false, true },
    { "write EINTR", CALL_WRITE, EINTR, false, false },
    { "read EIO", CALL_READ, EIO, false, true },
    { "read short", CALL_READ, 0, false, true },
    { "read EINTR", CALL_READ, EINTR, false, false },
    { "fsync EIO", CALL_FSYNC, EIO, false, true },
    { "rename EIO", CALL_RENAME, EIO, false, true },
    { "close EIO", CALL_CLOSE, EIO, true, true },
    { "open EMFILE", CALL_OPEN, EMFILE, false, true },
    { "open EINTR", CALL_OPEN, EINTR, false, false },
    { "mmap ENOMEM", CALL_MMAP, ENOMEM, false, true },
    { "ftruncate ENOSPC", CALL_TRUNCATE, ENOSPC, false, true },
    { "link, unlink EIO", CALL_LINK, EIO, false, true },
    { "stat EIO", CALL_STAT, EIO, false, true },
    { "folder EIO", CALL_FOLDER, EIO, false, true },
    { "mode, lock EPERM", CALL_MODE, EPERM, false, true },
    { NULL, CALL_NONE, 0, false, false },
};

/* What is named by its first argument: a descriptor, a path, nothing; a path in the second where the first is a
 * folder's. */
typedef enum about { A_FD, A_PATH, A_PATH_AT, A_NOTHING } about;

static const struct {
    long nr;
    call_class class;
    about about;
} calls[] = {
    { SYS_write, CALL_WRITE, A_FD },
    { SYS_pwrite64, CALL_WRITE, A_FD },
    { SYS_writev, CALL_WRITE, A_FD },
    { SYS_read, CALL_READ, A_FD },
    { SYS_pread64, CALL_READ, A_FD },
    { SYS_readv, CALL_READ, A_FD },
    { SYS_fsync, CALL_FSYNC, A_FD },
    { SYS_fdatasync, CALL_FSYNC, A_FD },
    { SYS_msync, CALL_FSYNC, A_NOTHING },
    { SYS_renameat, CALL_RENAME, A_PATH_AT },
    { SYS_renameat2, CALL_RENAME, A_PATH_AT },
    { SYS_close, CALL_CLOSE, A_FD },
    { SYS_openat, CALL_OPEN, A_PATH_AT },
    { SYS_mmap, CALL_MMAP, A_NOTHING },
    { SYS_ftruncate, CALL_TRUNCATE, A_FD },
    { SYS_fallocate, CALL_TRUNCATE, A_FD },
    { SYS_unlinkat, CALL_LINK, A_PATH_AT },
    { SYS_linkat, CALL_LINK, A_PATH_AT },
    { SYS_symlinkat, CALL_LINK, A_NOTHING },
    { SYS_fstat, CALL_STAT, A_FD },
    { SYS_newfstatat, CALL_STAT, A_PATH_AT },
    { SYS_statx, CALL_STAT, A_PATH_AT },
    { SYS_lseek, CALL_STAT, A_FD },
    { SYS_faccessat, CALL_STAT, A_PATH_AT },
    { SYS_mkdirat, CALL_FOLDER, A_PATH_AT },
    { SYS_getdents64, CALL_FOLDER, A_FD },
    { SYS_fchmod, CALL_MODE, A_FD },
    { SYS_fchmodat, CALL_MODE, A_PATH_AT },
    { SYS_flock, CALL_MODE, A_FD },
    { SYS_fchown, CALL_MODE, A_FD },
#ifdef SYS_open /* x86-64 has the older forms, too */
    { SYS_open, CALL_OPEN, A_PATH },
    { SYS_creat, CALL_OPEN, A_PATH },
    { SYS_rename, CALL_RENAME, A_PATH },
    { SYS_unlink, CALL_LINK, A_PATH },
    { SYS_rmdir, CALL_LINK, A_PATH },
    { SYS_link, CALL_LINK, A_PATH },
    { SYS_symlink, CALL_LINK, A_NOTHING },
    { SYS_stat, CALL_STAT, A_PATH },
    { SYS_lstat, CALL_STAT, A_PATH },
    { SYS_access, CALL_STAT, A_PATH },
    { SYS_readlink, CALL_STAT, A_PATH },
    { SYS_mkdir, CALL_FOLDER, A_PATH },
    { SYS_chmod, CALL_MODE, A_PATH },
#endif
};

enum { MOST_TASKS = 256, LONGEST_RUN_S = 300 };

typedef struct task {
    pid_t pid;
    bool inside, fail_at_exit, begun, announced; /* begun: main has; announced: its first stop was seen */
    long nr;
} task;

typedef struct tracing {
    task task[MOST_TASKS];
    int n;
    injection *in;
    const char *work, *inputs;
} tracing;

static task *task_of(tracing *t, pid_t pid)
{
    for (int i = 0; i < t->n; i++)
        if (t->task[i].pid == pid) return &t->task[i];
    if (t->n == MOST_TASKS) return NULL;
    t->task[t->n] = (task){ .pid = pid };
    return &t->task[t->n++];
}

static void forget_task(tracing *t, pid_t pid)
{
    for (int i = 0; i < t->n; i++)
        if (t->task[i].pid == pid) t->task[i] = t->task[--t->n];
}

/* ---- which calls count ------------------------------------------------------------------------------ */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static bool is_ours(const tracing *t, const char *path)
{
    return path[0] && (path[0] != '/' || is_below(path, t->work) || is_below(path, t->inputs));
}

/* Standard input and output, and files of ours; not standard error, which has to tell. */
static bool fd_counts(const tracing *t, pid_t pid, int64_t fd)
{
    char link[64], path[4200];
    if (fd == 0 || fd == 1) return true;
    if (fd == 2) return false;
    snprintf(link, sizeof link, "/proc/%d/fd/%lld", (int)pid, (long long)fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return false;
    path[n] = 0;
    return path[0] == '/' && is_ours(t, path);
}

static bool path_counts(const tracing *t, pid_t pid, uint64_t at)
{
    char path[256] = "";
    struct iovec here = { path, sizeof path - 1 }, there = { (void *)(uintptr_t)at, sizeof path - 1 };
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0) { /* the page may end before that */
        here.iov_len = there.iov_len = 4096 - (at & 4095) < sizeof path ? 4096 - (at & 4095) : sizeof path - 1;
        if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0) return false;
    }
    return is_ours(t, path);
}

static call_class class_of(const tracing *t, pid_t pid, const struct __ptrace_syscall_info *s)
{
    const uint64_t *arg = s->entry.args;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].nr != (long)s->entry.nr) continue;
        bool counts = true;
        if (calls[i].about == A_FD) counts = fd_counts(t, pid, (int64_t)arg[0]);
        if (calls[i].about == A_PATH) counts = path_counts(t, pid, arg[0]);
        if (calls[i].about == A_PATH_AT) counts = arg[1] && path_counts(t, pid, arg[1]);
        /* fstat is newfstatat(fd, "", AT_EMPTY_PATH) in newer libraries */
        if (calls[i].about == A_PATH_AT && calls[i].class == CALL_STAT && !counts)
            counts = (int)arg[0] >= 0 && fd_counts(t, pid, (int)arg[0]);
        if (calls[i].class == CALL_CLOSE && (int64_t)arg[0] <= 2) counts = false;
        return counts ? calls[i].class : CALL_NONE;
    }
    return CALL_NONE;
}

/* ---- registers ------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
#include <sys/user.h>

static void skip_call(pid_t pid)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    r.orig_rax = (unsigned long long)-1;
    ptrace(PTRACE_SETREGS, pid, 0, &r);
}

static void set_result(pid_t pid, long v)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    r.rax = (unsigned long long)v;
    ptrace(PTRACE_SETREGS, pid, 0, &r);
}

static void halve_bytes(pid_t pid) /* the third argument */
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    r.rdx /= 2;
    ptrace(PTRACE_SETREGS, pid, 0, &r);
}
#else
#include <sys/user.h>

static void change_register(pid_t pid, int which, bool halve, uint64_t v)
{
    struct user_regs_struct r;
    struct iovec io = { &r, sizeof r };
    ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io);
    r.regs[which] = halve ? r.regs[which] / 2 : v;
    ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io);
}

static void skip_call(pid_t pid)
{
    int none = -1;
    struct iovec io = { &none, sizeof none };
    ptrace(PTRACE_SETREGSET, pid, 0x404 /* NT_ARM_SYSTEM_CALL */, &io);
}

static void set_result(pid_t pid, long v) { change_register(pid, 0, false, (uint64_t)v); }
static void halve_bytes(pid_t pid) { change_register(pid, 2, true, 0); }
#endif

/* ---- stops ------------------------------------------------------------------------------------------------ */

static bool can_halve(const struct __ptrace_syscall_info *s)
{
    long nr = (long)s->entry.nr;
    bool plain = nr == SYS_write || nr == SYS_pwrite64 || nr == SYS_read || nr == SYS_pread64;
    return plain && s->entry.args[2] > 1;
}

static void before_call(tracing *t, task *k, const struct __ptrace_syscall_info *s)
{
    injection *in = t->in;
    k->nr = (long)s->entry.nr;
    if (k->nr == SYS_execve) k->begun = false;
    if (k->nr == SYS_fcntl) k->begun = true; /* the first thing that main does; the loader never */
    if (!k->begun) return;
    call_class c = class_of(t, k->pid, s);
    if (c == CALL_NONE) return;
    in->n_calls[c]++;
    if (!in->kind || in->kind->class != c || in->n_calls[c] != in->k) return;
    if (in->kind->error == 0) {
        if (!can_halve(s)) return;
        halve_bytes(k->pid);
        in->struck = true;
        return;
    }
    in->struck = true;
    k->fail_at_exit = true;
    if (!in->kind->done_too) skip_call(k->pid);
}

static void at_syscall(tracing *t, task *k)
{
    struct __ptrace_syscall_info s;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, k->pid, sizeof s, &s) <= 0) return;
    if (s.op == PTRACE_SYSCALL_INFO_ENTRY) before_call(t, k, &s);
    if (s.op == PTRACE_SYSCALL_INFO_EXIT && k->fail_at_exit) {
        k->fail_at_exit = false;
        set_result(k->pid, -t->in->kind->error);
    }
}

static volatile sig_atomic_t too_long;
static void on_alarm(int sig) { too_long = 1; }

/* New threads have begun when the one that made them has; new processes, too. */
static void at_event(tracing *t, pid_t pid)
{
    unsigned long child;
    task *k = task_of(t, pid);
    bool begun = k && k->begun;
    if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) != 0) return;
    task *c = task_of(t, (pid_t)child);
    if (c) c->begun = begun;
}

static finish follow(tracing *t, pid_t first)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    finish f = { -1, 0, false };
    int status;
    if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status)) return f;
    ptrace(PTRACE_SETOPTIONS, first, 0, options);
    task_of(t, first)->announced = true;
    ptrace(PTRACE_SYSCALL, first, 0, 0);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR && too_long) {
            f.hung = true;
            for (int i = 0; i < t->n; i++) kill(t->task[i].pid, SIGKILL);
            too_long = 0;
            continue;
        }
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return f;
        if (!WIFSTOPPED(status)) {
            if (pid == first) {
                f.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
                f.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            }
            forget_task(t, pid);
            continue;
        }
        task *k = task_of(t, pid);
        int sig = WSTOPSIG(status), event = status >> 16, pass = 0;
        if (sig == (SIGTRAP | 0x80)) {
            if (k) at_syscall(t, k);
        } else if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
            at_event(t, pid);
        } else if (event == 0 && !(sig == SIGSTOP && k && !k->announced)) {
            pass = sig;
        }
        if (k) k->announced = true;
        /* behind the one failure nobody looks at calls any more: two switches of context less for each */
        bool done = t->in->struck && !(k && k->fail_at_exit);
        ptrace(done ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, pass);
    }
}

/* ---- a run --------------------------------------------------------------------------------------------------- */

static void put_on(int fd, const char *path, int how)
{
    int from = open(path, how, 0666);
    if (from < 0 || dup2(from, fd) < 0) _exit(126);
    if (from > 2) close(from);
}

static void become(char *const *argv, const char *work, const injection *in)
{
    put_on(0, in->stdin_path ? in->stdin_path : "/dev/null", O_RDONLY);
    put_on(1, in->to_full ? "/dev/full" : in->out_path, O_WRONLY | O_CREAT | O_TRUNC);
    put_on(2, in->err_path, O_WRONLY | O_CREAT | O_TRUNC);
    if (chdir(work) != 0) _exit(126);
    if (in->alloc_library) {
        char which[64];
        snprintf(which, sizeof which, "%s:%ld", in->site ? in->site->id : "", in->k);
        if (in->site) setenv("HONE_FAIL_SITE", which, 1);
        setenv("HONE_ALLOC_FILE", in->alloc_path, 1);
        setenv("LD_PRELOAD", in->alloc_library, 1);
    }
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    execv(argv[0], argv);
    _exit(126);
}

/* Without tracing: what fails is an allocation, or standard output. */
static finish wait_untraced(pid_t pid)
{
    finish f = { -1, 0, false };
    int status;
    while (waitpid(pid, &status, __WALL) < 0)
        if (too_long) {
            f.hung = true;
            kill(pid, SIGKILL);
            too_long = 0;
        }
    f.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    f.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return f;
}

finish run_injected(char *const *argv, const char *work, const char *inputs, injection *in)
{
    tracing t = { .in = in, .work = work, .inputs = inputs };
    struct sigaction a = { .sa_handler = on_alarm };
    bool traced = in->kind || in->count_only;
    memset(in->n_calls, 0, sizeof in->n_calls);
    in->struck = false;
    unlink(in->alloc_path);
    sigaction(SIGALRM, &a, NULL);
    too_long = 0;
    pid_t pid = fork();
    if (pid < 0) return (finish){ -1, 0, false };
    if (pid == 0) become(argv, work, in);
    alarm(LONGEST_RUN_S);
    if (!traced) { /* let it go */
        int status;
        waitpid(pid, &status, 0);
        ptrace(PTRACE_DETACH, pid, 0, 0);
    }
    finish f = traced ? follow(&t, pid) : wait_untraced(pid);
    alarm(0);
    if (in->alloc_library) {
        free(in->told.p);
        in->told = blob_of(in->alloc_path);
        in->struck = strncmp(in->told.p, "struck", 6) == 0;
    }
    return f;
}

bool can_inject(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) != 0 || raise(SIGSTOP) != 0);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return false;
    if (!WIFSTOPPED(status)) return false;
    struct __ptrace_syscall_info s;
    bool can = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof s, &s) >= 0 || errno != EIO;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return can;
}

#else /* no ptrace that is known here */

const fault_kind fault_kinds[] = { { NULL, CALL_NONE, 0, false, false } };
bool can_inject(void) { return false; }
finish run_injected(char *const *argv, const char *work, const char *inputs, injection *in)
{
    return (finish){ -1, 0, true };
}

#endif
