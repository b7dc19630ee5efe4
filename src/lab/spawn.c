/* Processes of any program, timed from outside: wall time from start to end, what the
 * kernel counted for it and the descendants it waited for. Output goes to files without
 * a name, so that nothing here runs while the process does. Refuses to know what is
 * measured; fresh processes of this program that talk JSON are child.c. */
#define _GNU_SOURCE
#include "base/os.h"
#include "lab/sides.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUT = 64 << 20, MAX_SAID = 4000 };

extern char **environ;

/* The environment with `add` in front; duplicates further back are dropped. */
static char **environment(const char *const *add)
{
    size_t n = 0, m = 0;
    while (environ && environ[n]) n++;
    while (add && add[m]) m++;
    char **e = calloc(n + m + 1, sizeof *e);
    if (!e) return NULL;
    size_t k = 0;
    for (size_t i = 0; i < m; i++) { /* the last of equal names wins */
        size_t len = strcspn(add[i], "=") + 1;
        bool again = false;
        for (size_t j = i + 1; j < m; j++) again = again || strncmp(add[i], add[j], len) == 0;
        if (!again) e[k++] = (char *)(uintptr_t)add[i];
    }
    size_t added = k;
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(environ[i], "=") + 1;
        bool replaced = false;
        for (size_t j = 0; j < added; j++) replaced = replaced || strncmp(environ[i], e[j], len) == 0;
        if (!replaced) e[k++] = environ[i];
    }
    return e;
}

/* A file for output, gone when closed; −1 and errno. */
static int nameless(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/hone-XXXXXX", tmp && *tmp && strlen(tmp) < 900 ? tmp : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

static void become(const hn_proc_params *p, char **env, int out, int err, pid_t parent)
{
    if (hn_os_die_with_parent() && getppid() != parent) _exit(127);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out >= 0 ? out : null, 1) < 0 || dup2(err, 2) < 0) _exit(127);
    if (p->dir && chdir(p->dir) != 0) {
        dprintf(2, "%s: %s\n", p->dir, strerror(errno));
        _exit(127);
    }
    signal(SIGPIPE, SIG_DFL);
    environ = env;
    execvp(p->argv[0], (char *const *)(uintptr_t)p->argv);
    dprintf(2, "%s: %s\n", p->argv[0], strerror(errno));
    _exit(127);
}

/* The file's last `limit` bytes, NUL-terminated; NULL: no memory, or they cannot be read. */
static char *content(int fd, size_t limit, size_t *n)
{
    off_t end = lseek(fd, 0, SEEK_END), from = end > (off_t)limit ? end - (off_t)limit : 0;
    size_t want = end > 0 ? (size_t)(end - from) : 0, got = 0;
    char *s = malloc(want + 1);
    while (s && got < want) {
        ssize_t k = pread(fd, s + got, want - got, from + (off_t)got);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) { /* less than was written is no output */
            free(s);
            return NULL;
        }
        got += (size_t)k;
    }
    if (s) s[got] = 0;
    if (n) *n = got;
    return s;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static hone_status wait_for(hn_proc *out, pid_t pid, uint64_t start, const hn_proc_params *p, hone_error *err)
{
    int status = 0;
    struct rusage u = { 0 };
    bool stopped = false;
    for (pid_t got = -1; got < 0;) {
        if (!stopped && p->stop && p->stop(NULL)) {
            stopped = true;
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
        }
        got = wait4(pid, &status, 0, &u);
        if (got < 0 && errno != EINTR) return HN_FAIL(err, HONE_E_IO, "waiting for %s: %s", p->argv[0], strerror(errno));
    }
    out->wall_s = (double)(hn_clock_ns() - start) * 1e-9;
    if (stopped || (p->stop && p->stop(NULL))) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    out->user_s = seconds(u.ru_utime);
    out->sys_s = seconds(u.ru_stime);
#ifdef __APPLE__
    out->max_rss = (uint64_t)u.ru_maxrss;
#else
    out->max_rss = (uint64_t)u.ru_maxrss * 1024;
#endif
    out->major_faults = u.ru_majflt;
    out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return HONE_OK;
}

hone_status hn_proc_run(hn_proc *out, const hn_proc_params *p, hone_error *err)
{
    *out = (hn_proc){ .exit_code = -1 };
    if (p->stop && p->stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    int o = p->keep_out ? nameless() : -1, e = nameless();
    char **env = environment(p->env);
    hone_status st = HONE_OK;
    if ((p->keep_out && o < 0) || e < 0) st = HN_FAIL(err, HONE_E_IO, "a file for what %s writes: %s", p->argv[0], strerror(errno));
    else if (!env) st = HN_FAIL(err, HONE_E_NOMEM, "environment of %s", p->argv[0]);
    if (st == HONE_OK) {
        pid_t parent = getpid();
        uint64_t start = hn_clock_ns();
        pid_t pid = fork();
        if (pid == 0) become(p, env, o, e, parent);
        if (pid < 0) st = HN_FAIL(err, HONE_E_IO, "starting %s: %s", p->argv[0], strerror(errno));
        else {
            setpgid(pid, pid);
            st = wait_for(out, pid, start, p, err);
        }
    }
    if (st == HONE_OK) {
        out->said = content(e, MAX_SAID, NULL);
        errno = 0;
        if (p->keep_out && !(out->out = content(o, MAX_OUT, &out->n_out)))
            st = HN_FAIL(err, errno == ENOMEM ? HONE_E_NOMEM : HONE_E_IO, "what %s printed cannot be read: %s", p->argv[0],
                         errno ? strerror(errno) : "less of it than was written");
    }
    if (o >= 0) close(o);
    if (e >= 0) close(e);
    free(env);
    if (st != HONE_OK) hn_proc_free(out);
    return st;
}

void hn_proc_free(hn_proc *p)
{
    free(p->out);
    free(p->said);
    p->out = p->said = NULL;
}

void hn_proc_why(const hn_proc *p, char *dst, size_t cap)
{
    char last[512] = "";
    const char *s = p->said ? p->said : "";
    size_t n = strlen(s);
    while (n && strchr("\r\n \t", s[n - 1])) n--;
    size_t from = n;
    while (from && s[from - 1] != '\n') from--;
    if (strncmp(s + from, "hone: try: ", 11) == 0 && from > 1) { /* the line before it says what is wrong */
        n = from - 1;
        for (from = n; from && s[from - 1] != '\n';) from--;
    }
    hn_escape(last, sizeof last, s + from, n - from < 400 ? n - from : 400);
    const char *colon = last[0] ? ": " : "";
    if (p->signal) snprintf(dst, cap, "died of signal %d (%s)%s%s", p->signal, strsignal(p->signal), colon, last);
    else if (p->exit_code != 0) snprintf(dst, cap, "ended with exit code %d%s%s", p->exit_code, colon, last);
    else snprintf(dst, cap, "%s", "");
}
