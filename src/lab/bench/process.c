/* The launcher of processes and its collectors. What runs to be timed writes into files
 * without a name, so that nothing here runs while it does; what talks JSON writes into
 * pipes, read as it comes. A process that crashes, is killed or talks nonsense is a result
 * to report. */
#define _GNU_SOURCE
#include "lab/bench/process.h"
#include "base/json_tree.h"
#include "base/os.h"
#include "base/shown.h"
#include "lab/machine/around.h"
#include "lab/machine/clock.h"
#include "lab/machine/memory.h"
#include "lab/machine/standing.h"
#include "base/json_text.h"

#include <sys/types.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUT = 64 << 20, MAX_SAID = 4000, LOOK_MS = 50, MAX_RESULT = 64 << 20 };

extern char **environ;

/* ---- the launcher ------------------------------------------------------------------------ */

typedef struct launch {
    const char *program; /* looked up in PATH unless it has a slash */
    const char *const *argv;
    char **env;       /* NULL: this one's */
    const char *dir;  /* NULL: here */
    int in, out, err; /* in 0: nothing to read; out -1: thrown away */
    bool own_group;   /* else a Ctrl-C at the terminal reaches it too */
} launch;

static void become(const launch *l, pid_t parent)
{
    if (hn_os_die_with_parent() && getppid() != parent) _exit(127); /* nobody would read the result */
    if (l->own_group) setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(l->in > 0 ? l->in : null, 0) < 0 || dup2(l->out >= 0 ? l->out : null, 1) < 0 ||
        dup2(l->err, 2) < 0)
        _exit(127);
    if (l->dir && chdir(l->dir) != 0) {
        dprintf(2, "%s: %s\n", l->dir, strerror(errno));
        _exit(127);
    }
    if (l->own_group) signal(SIGPIPE, SIG_DFL); /* another program; this one chooses for itself */
    if (l->env) environ = l->env;
    execvp(l->program, (char *const *)(uintptr_t)l->argv);
    dprintf(2, "%s: %s\n", l->program, strerror(errno));
    _exit(127);
}

/* −1 and errno: there is no process. */
static pid_t start(const launch *l)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(l, parent);
    int fork_errno = errno;
    if (pid > 0 && l->own_group) setpgid(pid, pid);
    errno = fork_errno;
    return pid;
}

static void ended(int status, int *exit_code, int *sig)
{
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    *sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* ---- what is left behind --------------------------------------------------------------------- */

enum { MOST_CHILDREN = 64 };
/* This process's own, another one that it has just started among them; what that one leaves behind becomes its own,
 * too. Looked at behind the start: the time of a start is measured. */
typedef struct family {
    int32_t pid[MOST_CHILDREN], n;
    bool adopts;
} family;

static void family_look(family *f) { f->n = f->adopts ? hn_os_children(f->pid, MOST_CHILDREN) : 0; }

/* Ends what was not there before, and what comes out of that; how many they were. */
static int32_t family_end(const family *before)
{
    int32_t now[MOST_CHILDREN], left = 0;
    bool any = before->adopts;
    while (any && left < MOST_CHILDREN) {
        int32_t n = hn_os_children(now, MOST_CHILDREN);
        any = false;
        for (int32_t i = 0; i < n; i++) {
            bool known = false;
            for (int32_t k = 0; k < before->n; k++) known = known || before->pid[k] == now[i];
            if (known) continue;
            kill(now[i], SIGKILL);
            while (waitpid(now[i], NULL, 0) < 0 && errno == EINTR) {}
            any = true;
            left++;
        }
    }
    if (before->adopts) hn_os_adopt(false);
    return left;
}

/* ---- any program -------------------------------------------------------------------------- */

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

static uint64_t rss_of(const struct rusage *u)
{
#ifdef __APPLE__
    return (uint64_t)u->ru_maxrss;
#else
    return (uint64_t)u->ru_maxrss * 1024;
#endif
}

static hone_status wait_for(hn_process *out, pid_t pid, uint64_t t0, const hn_process_params *p, hone_error *err)
{
    int status = 0;
    struct rusage u = { 0 };
    bool stopped = false;
    const int32_t usual = hn_priority(getpid());
    siginfo_t info;
    for (pid_t got = -1; got < 0;) {
        if (!stopped && p->stop && p->stop(NULL)) {
            stopped = true;
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
        }
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0) { /* it is still there, to be looked at */
            out->raised = usual != INT32_MAX && hn_priority(pid) < usual;
            got = wait4(pid, &status, 0, &u);
        }
        if (got < 0 && errno != EINTR)
            return HN_FAIL(err, HONE_E_IO, "waiting for %s: %s", p->argv[0], strerror(errno));
    }
    out->wall_s = (double)(hn_clock_ns() - t0) * 1e-9;
    if (stopped || (p->stop && p->stop(NULL))) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    out->user_s = seconds(u.ru_utime);
    out->sys_s = seconds(u.ru_stime);
    out->max_rss = rss_of(&u);
    out->major_faults = u.ru_majflt;
    ended(status, &out->exit_code, &out->signal);
    return HONE_OK;
}

/* What is to be read from fd, from its beginning. */
static bool given(int fd, const char *text)
{
    const size_t n = strlen(text);
    return fd >= 0 && write(fd, text, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0;
}

hone_status hn_process_run(hn_process *out, const hn_process_params *p, hone_error *err)
{
    *out = (hn_process){ .exit_code = -1 };
    if (p->stop && p->stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    int o = p->keep_out ? nameless() : -1, e = nameless(), i = p->input ? nameless() : -1;
    char **env = environment(p->env);
    hone_status st = HONE_OK;
    if ((p->keep_out && o < 0) || e < 0 || (p->input && !given(i, p->input)))
        st = HN_FAIL(err, HONE_E_IO, "a file for what %s reads or writes: %s", p->argv[0], strerror(errno));
    else if (!env) st = HN_FAIL(err, HONE_E_NOMEM, "environment of %s", p->argv[0]);
    if (st == HONE_OK) {
        const launch l = { .program = p->argv[0],
                           .argv = p->argv,
                           .env = env,
                           .dir = p->dir,
                           .in = i > 0 ? i : 0,
                           .out = o,
                           .err = e,
                           .own_group = true };
        family before = { .adopts = p->alone && hn_os_adopt(true) };
        hn_standing mine;
        hn_standing_look(&mine);
        uint64_t t0 = hn_clock_ns();
        pid_t pid = start(&l);
        family_look(&before);
        st = pid < 0 ? HN_FAIL(err, HONE_E_IO, "starting %s: %s", p->argv[0], strerror(errno))
                     : wait_for(out, pid, t0, p, err);
        out->n_left = family_end(&before);
        out->changed = hn_standing_changed(&mine);
    }
    if (st == HONE_OK) {
        out->said = content(e, MAX_SAID, NULL);
        errno = 0;
        if (p->keep_out && !(out->out = content(o, MAX_OUT, &out->n_out)))
            st = HN_FAIL(err, errno == ENOMEM ? HONE_E_NOMEM : HONE_E_IO, "what %s printed cannot be read: %s",
                         p->argv[0], errno ? strerror(errno) : "less of it than was written");
    }
    if (o >= 0) close(o);
    if (e >= 0) close(e);
    if (i >= 0) close(i);
    free(env);
    if (st != HONE_OK) hn_process_free(out);
    return st;
}

/* ---- a program that is asked ---------------------------------------------------------------- */

struct hn_talk_about {
    family before;
    hn_standing mine;
};

static void talk_close(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

hone_status hn_talk_start(hn_talk *t, const hn_process_params *p, hone_error *err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 };
    *t = (hn_talk){ .in = -1, .out = -1, .err = nameless(), .stop = p->stop };
    t->usual = t->priority = hn_priority(getpid());
    char **env = environment(p->env);
    t->about = calloc(1, sizeof *t->about);
    hone_status st = HONE_OK;
    if (p->stop && p->stop(NULL)) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    else if (!env || !t->about) st = HN_FAIL(err, HONE_E_NOMEM, "environment of %s", p->argv[0]);
    else if (t->err < 0 || hn_os_pipe(in, false) != 0 || hn_os_pipe(out, false) != 0)
        st = HN_FAIL(err, HONE_E_IO, "pipes to %s: %s", p->argv[0], strerror(errno));
    if (st == HONE_OK) {
        const launch l = { .program = p->argv[0],
                           .argv = p->argv,
                           .env = env,
                           .dir = p->dir,
                           .in = in[0],
                           .out = out[1],
                           .err = t->err,
                           .own_group = true };
        t->about->before.adopts = hn_os_adopt(true);
        hn_standing_look(&t->about->mine);
        t->from = hn_clock_ns();
        t->pid = start(&l);
        int why = errno;
        family_look(&t->about->before);
        if (t->pid < 0) {
            t->pid = 0;
            family_end(&t->about->before);
            st = HN_FAIL(err, HONE_E_IO, "starting %s: %s", p->argv[0], strerror(why));
        }
    }
    talk_close(&in[0]);
    talk_close(&out[1]);
    t->in = in[1];
    t->out = out[0];
    free(env);
    if (st == HONE_OK) return st;
    talk_close(&t->in);
    talk_close(&t->out);
    talk_close(&t->err);
    free(t->about);
    *t = (hn_talk){ 0 };
    return st;
}

hone_status hn_talk_say(hn_talk *t, const void *data, size_t n, hone_error *err)
{
    const char *p = data;
    while (n) {
        ssize_t k = write(t->in, p, n);
        if (k < 0 && errno == EINTR && !(t->stop && t->stop(NULL))) continue;
        if (k < 0 && errno == EPIPE) return HONE_OK;
        if (k < 0 && errno == EINTR) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if (k < 0) return HN_FAIL(err, HONE_E_IO, "asking the measured process: %s", strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return HONE_OK;
}

/* What may be over before the usual look: another priority, others at work. */
static void look_soon(hn_talk *t)
{
    int32_t child[4];
    const int32_t is = hn_priority(t->pid), n = hn_os_children_of(t->pid, child, 4);
    if (is < t->priority) t->priority = is;
    if (n > t->n_children) t->n_children = n;
}

void hn_talk_look(hn_talk *t)
{
    hn_memory m;
    uint64_t again = hn_memory_anon_again(t->pid);
    look_soon(t);
    if (again > t->anon) t->anon = again;
    if (!hn_memory_read(&m, t->pid)) return;
    if (m.anon > t->anon) t->anon = m.anon;
    if (m.hwm > m.file && m.hwm - m.file > t->anon) t->anon = m.hwm - m.file; /* gone again, and it was no file's */
}

/* More of what it writes; false: there is no more. */
static hone_status talk_read(hn_talk *t, bool *more, uint64_t *at, hone_error *err)
{
    enum { PIECE = 1 << 16 };
    struct pollfd p = { .fd = t->out, .events = POLLIN };
    *more = true;
    if (t->taken) {
        memmove(t->heard, t->heard + t->taken, t->n - t->taken);
        t->n -= t->taken;
        t->taken = 0;
    }
    if (t->n + PIECE + 1 > t->cap) {
        size_t cap = 2 * t->cap + 2 * PIECE;
        char *grown = cap <= MAX_RESULT ? realloc(t->heard, cap) : NULL;
        if (!grown) return HN_FAIL(err, HONE_E_NOMEM, "what the measured process says is too long");
        t->heard = grown;
        t->cap = cap;
    }
    const int32_t soon = t->soon_ms;
    t->soon_ms = 0;
    int ready = poll(&p, 1, soon ? soon : LOOK_MS);
    t->cpu_ns = hn_os_process_cpu_ns(t->pid); /* no later than the clock: it can have had no more */
    *at = hn_clock_ns();
    if (t->stop && t->stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    if (ready <= 0) {
        if (soon) look_soon(t);             /* while it works */
        else if (t->spoke) hn_talk_look(t); /* before its first word it may still be this program */
        return HONE_OK;
    }
    ssize_t k = read(t->out, t->heard + t->n, PIECE);
    if (k < 0 && errno == EINTR) return HONE_OK;
    *more = k > 0;
    if (k > 0) t->n += (size_t)k;
    t->spoke = t->spoke || k > 0;
    return HONE_OK;
}

hone_status hn_talk_hear(hn_talk *t, char **line, uint64_t *at, hone_error *err)
{
    bool more = true;
    *line = NULL;
    *at = hn_clock_ns(); /* of a line that is here already */
    for (;;) {
        char *from = t->heard ? t->heard + t->taken : NULL, *end = from ? memchr(from, '\n', t->n - t->taken) : NULL;
        if (end) {
            *end = 0;
            *line = from;
            t->taken = (size_t)(end + 1 - t->heard);
            return HONE_OK;
        }
        if (!more) return HONE_OK;
        hone_status st = talk_read(t, &more, at, err);
        if (st != HONE_OK) return st;
    }
}

hone_status hn_talk_end(hn_talk *t, hn_process *out, hone_error *err)
{
    *out = (hn_process){ .exit_code = -1 };
    if (!t->pid) return HONE_OK;
    const bool stopped = t->stop && t->stop(NULL);
    const char *const argv[] = { "the measured process", NULL };
    talk_close(&t->in);
    talk_close(&t->out); /* who goes on talking is told so */
    if (stopped) kill(-t->pid, SIGKILL);
    hone_status st = wait_for(out, t->pid, t->from, &(hn_process_params){ .argv = argv, .stop = t->stop }, err);
    out->raised = out->raised || (t->usual != INT32_MAX && t->priority < t->usual);
    out->n_left = family_end(&t->about->before);
    out->changed = hn_standing_changed(&t->about->mine);
    if (st == HONE_OK) out->said = content(t->err, MAX_SAID, NULL);
    talk_close(&t->err);
    free(t->about);
    free(t->heard);
    *t = (hn_talk){ 0 };
    return st;
}

/* ---- a program beside this one ------------------------------------------------------------ */

hone_status hn_beside_start(hn_beside *b, const char *const *argv, const char *const *env, hone_error *err)
{
    *b = (hn_beside){ .err = nameless(), .from = hn_clock_witness_ns() };
    if (b->err < 0) return HN_FAIL(err, HONE_E_IO, "a file for what %s writes: %s", argv[0], strerror(errno));
    char **all = environment(env);
    const launch l = { .program = argv[0], .argv = argv, .env = all, .out = -1, .err = b->err, .own_group = true };
    if (all) b->pid = start(&l);
    free(all);
    if (b->pid > 0) return HONE_OK;
    close(b->err);
    *b = (hn_beside){ 0 };
    return all ? HN_FAIL(err, HONE_E_IO, "starting %s: %s", argv[0], strerror(errno))
               : HN_FAIL(err, HONE_E_NOMEM, "environment of %s", argv[0]);
}

bool hn_beside_gone(hn_beside *b)
{
    int status;
    struct rusage u = { 0 };
    if (b->pid && wait4(b->pid, &status, WNOHANG, &u) == b->pid) {
        b->cpu_s =
            (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
        b->wall_s = 1e-9 * (double)(hn_clock_witness_ns() - b->from);
        ended(status, &b->exit_code, &b->signal);
        b->pid = 0;
    }
    return b->pid == 0;
}

char *hn_beside_said(const hn_beside *b) { return content(b->err, MAX_SAID, NULL); }

void hn_beside_stop(hn_beside *b, char *why, size_t cap)
{
    enum { LOOKS = 200, PAUSE_NS = 50000000 };
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    for (int i = 0; !hn_beside_gone(b); i++) {
        if (i == 0 || i == LOOKS) kill(-b->pid, i ? SIGKILL : SIGTERM);
        nanosleep(&pause, NULL);
    }
    hn_process p = { .exit_code = b->exit_code,
                     .signal = b->signal,
                     .said = b->err ? content(b->err, MAX_SAID, NULL) : NULL };
    hn_process_why(&p, why, cap);
    hn_process_free(&p);
    if (b->err) close(b->err);
    b->err = 0;
}

void hn_process_free(hn_process *p)
{
    free(p->out);
    free(p->said);
    p->out = p->said = NULL;
}

void hn_process_why(const hn_process *p, char *dst, size_t cap)
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

/* ---- this program again ------------------------------------------------------------------- */

typedef struct text {
    char *data;
    size_t n, cap;
} text;

/* Reads what is there; false at the end of the stream. limit: older bytes may go. */
static bool drain(int fd, text *t, size_t limit, bool keep_end)
{
    if (keep_end && t->n > limit) {
        memmove(t->data, t->data + t->n - limit / 2, limit / 2);
        t->n = limit / 2;
    }
    if (t->n + 4097 > t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16384;
        char *d = cap <= 2 * limit + 32768 ? realloc(t->data, cap) : NULL;
        if (!d) return false;
        t->data = d;
        t->cap = cap;
    }
    ssize_t k = read(fd, t->data + t->n, 4096);
    if (k < 0) return errno == EINTR || errno == EAGAIN;
    t->n += (size_t)k;
    t->data[t->n] = 0;
    return k > 0;
}

static bool to_stderr(void *unused, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(STDERR_FILENO, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* The child's own words reach the user. It wrote them to a pipe: what they may be on a terminal is decided here. */
static void pass_on(hn_shown *shown, const char *p, size_t n)
{
    if (shown && isatty(STDERR_FILENO) == 1) hn_shown_put(shown, p, n, to_stderr, NULL);
    else to_stderr(NULL, p, n);
}

static void look_at(hn_seen *seen, pid_t pid)
{
    hn_memory m;
    int32_t priority = hn_priority(pid);
    if (priority < seen->priority) seen->priority = priority;
    uint64_t again = hn_memory_anon_again(pid);
    if (hn_memory_read(&m, pid) && m.anon > seen->anon) seen->anon = m.anon;
    if (again > seen->anon_again) seen->anon_again = again;
}

/* The result is there, whole, and the child waits for the other end of its input to be closed: what it holds now is
 * what it measured with, and no longer what its parent had before it began. Read in two ways. */
static void let_go(hn_seen *seen, pid_t pid, int *hold, uint64_t from)
{
    hn_memory m;
    if (*hold < 0) return;
    seen->told_s = (double)(hn_clock_witness_ns() - from) * 1e-9;
    look_at(seen, pid);
    seen->resident = hn_memory_resident(pid);
    if (hn_memory_read(&m, pid)) {
        if (m.hwm > seen->resident) seen->resident = m.hwm;
        seen->anon_end = m.resident;
        seen->own_peak = m.hwm > m.file ? m.hwm - m.file : 0; /* pages of files, once there, are there at the end */
    }
    close(*hold);
    *hold = -1;
}

void hn_child_hold(void)
{
    struct stat sb;
    char c;
    if (fstat(STDIN_FILENO, &sb) != 0 || !S_ISFIFO(sb.st_mode)) return;
    while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR) {}
}

/* Both streams until they end; looks at the child's memory meanwhile. */
static hone_status follow(hn_child *c, pid_t pid, int out, int errfd, int *hold, uint64_t from, text *result,
                          text *said, bool (*stop)(void *), hone_error *err)
{
    hn_shown shown = { 0 };
    struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = errfd, .events = POLLIN } };
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int n = poll(p, 2, LOOK_MS);
        if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if (n < 0 && errno != EINTR)
            return HN_FAIL(err, HONE_E_IO, "waiting for the measured process: %s", strerror(errno));
        look_at(&c->seen, pid);
        if (n <= 0) continue;
        if (p[0].revents && !drain(out, result, MAX_RESULT, false)) p[0].fd = -1;
        if (p[0].fd < 0 || (result->n && result->data[result->n - 1] == '\n')) let_go(&c->seen, pid, hold, from);
        if (p[1].revents) {
            size_t before = said->n;
            if (!drain(errfd, said, 8192, true)) p[1].fd = -1;
            else if (said->n > before) pass_on(&shown, said->data + before, said->n - before);
        }
    }
    if (shown.n_held) hn_shown_end(&shown, to_stderr, NULL);
    return HONE_OK;
}

/* The last line, for the record. */
static void last_words(hn_child *c, text *said)
{
    while (said->n && strchr("\r\n", said->data[said->n - 1])) said->data[--said->n] = 0;
    if (!said->n) return;
    const char *line = said->data + said->n;
    while (line > said->data && line[-1] != '\n') line--;
    if (strncmp(line, "hone: ", 6) == 0) line += 6;
    hn_escape(c->message, sizeof c->message, line, strlen(line));
}

/* A child counts its loading from the time that its last word names, which is when its command line was made: on a busy
 * machine some time ago. 0: there is no such word. */
static double since_said(const char *const *argv)
{
    const double most_s = 60;
    size_t n = 0;
    while (argv[n]) n++;
    const char *last = n ? argv[n - 1] : "";
    if (!*last || last[strspn(last, "0123456789")]) return 0;
    double s = 1e-9 * ((double)hn_clock_ns() - strtod(last, NULL));
    return s > 0 && s < most_s ? s : 0;
}

hone_status hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err)
{
    *out = (hn_child){ .exit_code = -1 };
    int a[2], b[2], in[2];
    char self[1024];
    if (!hn_os_program_path(self, sizeof self))
        return HN_FAIL(err, HONE_E_IO, "cannot run itself as a fresh process (on Linux this needs /proc)");
    if (hn_os_pipe(a, false) != 0) return HN_FAIL(err, HONE_E_IO, "pipe: %s", strerror(errno));
    bool two = hn_os_pipe(b, false) == 0;
    if (!two || hn_os_pipe(in, false) != 0) {
        int why = errno;
        for (int i = 0; i < 2; i++) {
            close(a[i]);
            if (two) close(b[i]);
        }
        return HN_FAIL(err, HONE_E_IO, "pipe: %s", strerror(why));
    }
    const launch l = { .program = self, .argv = argv, .in = in[0], .out = a[1], .err = b[1] };
    family mine = { .adopts = hn_os_adopt(true) };
    out->seen.own_rss = hn_memory_resident(getpid());
    out->seen.priority = out->seen.usual = hn_priority(getpid());
    double before_s = since_said(argv);
    uint64_t from = hn_clock_witness_ns();
    pid_t pid = start(&l);
    int fork_errno = errno;
    close(a[1]);
    close(b[1]);
    close(in[0]);
    text result = { 0 }, said = { 0 };
    hone_status st;
    if (pid < 0) {
        st = HN_FAIL(err, HONE_E_IO, "starting a process to measure: %s", strerror(fork_errno));
        family_end(&mine);
        close(in[1]);
    } else {
        family_look(&mine);
        st = follow(out, pid, a[0], b[0], &in[1], from, &result, &said, stop, err);
        if (in[1] >= 0) close(in[1]);
        if (st != HONE_OK) kill(pid, SIGKILL);
        int status = 0;
        struct rusage u = { 0 };
        while (wait4(pid, &status, 0, &u) < 0 && errno == EINTR) {}
        out->seen.wall_s = (double)(hn_clock_witness_ns() - from) * 1e-9 + before_s;
        out->seen.max_rss = rss_of(&u);
        out->seen.cpu_s = seconds(u.ru_utime) + seconds(u.ru_stime);
        out->seen.major_faults = u.ru_majflt;
        out->seen.n_left = family_end(&mine);
        ended(status, &out->exit_code, &out->signal);
        if (said.data) last_words(out, &said);
        /* 1: a failure that may have a record all the same, of an invalid result */
        bool may = (out->exit_code == 0 || out->exit_code == 1) && result.data && st == HONE_OK;
        if (may &&
            hn_json_tree(&out->result, result.data, result.n, NULL, "the measured process", NULL) == HONE_E_NOMEM)
            st = HN_FAIL(err, HONE_E_NOMEM, "the result of the measured process");
        if (out->result && !json_is_object(out->result)) {
            json_decref(out->result);
            out->result = NULL;
        }
    }
    close(a[0]);
    close(b[0]);
    free(result.data);
    free(said.data);
    return st;
}

void hn_child_free(hn_child *c)
{
    json_decref(c->result);
    c->result = NULL;
}

void hn_child_why(const hn_child *c, char *dst, size_t cap)
{
    const char *colon = c->message[0] ? ": " : "";
    if (c->signal == SIGKILL)
        snprintf(dst, cap,
                 "the measured process was killed by signal 9 (out of memory, if nobody did it on purpose)%s%s", colon,
                 c->message);
    else if (c->signal)
        snprintf(dst, cap, "the measured process died of signal %d (%s)%s%s", c->signal, strsignal(c->signal), colon,
                 c->message);
    else if (c->exit_code != 0)
        snprintf(dst, cap, "the measured process ended with exit code %d%s%s", c->exit_code, colon, c->message);
    else snprintf(dst, cap, "the measured process printed no result%s%s", colon, c->message);
}
