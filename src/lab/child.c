/* Fresh processes: this program run again, one measurement each, so that no sample
 * inherits another's memory, page tables or luck. A child that crashes, is killed or
 * talks nonsense is a result to report. Refuses to know what is measured. */
#include "base/json_tree.h"
#include "base/os.h"
#include "base/shown.h"
#include "lab/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 50, MAX_RESULT = 64 << 20 };

typedef struct text { char *data; size_t n, cap; } text;

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

static void become(const char *const *argv, int out, int err, pid_t parent)
{
    if (hn_os_die_with_parent() && getppid() != parent) _exit(127); /* nobody would read the result */
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(127);
    char self[1024];
    if (hn_os_program_path(self, sizeof self)) execv(self, (char *const *)(uintptr_t)argv);
    static const char said[] = "hone: cannot run itself as a fresh process (on Linux this needs /proc)\n";
    pass_on(NULL, said, sizeof said - 1);
    _exit(127);
}

/* Both streams until they end; looks at the child's memory meanwhile. */
static hone_status follow(hn_child *c, pid_t pid, int out, int errfd, text *result, text *said, bool (*stop)(void *), hone_error *err)
{
    hn_shown shown = { 0 };
    struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = errfd, .events = POLLIN } };
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int n = poll(p, 2, LOOK_MS);
        if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if (n < 0 && errno != EINTR) return HN_FAIL(err, HONE_E_IO, "waiting for the measured process: %s", strerror(errno));
        hn_memory m;
        if (hn_memory_read(&m, pid) && m.anon > c->peak_anon) c->peak_anon = m.anon;
        if (n <= 0) continue;
        if (p[0].revents && !drain(out, result, MAX_RESULT, false)) p[0].fd = -1;
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

hone_status hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err)
{
    *out = (hn_child){ .exit_code = -1 };
    int a[2], b[2];
    if (hn_os_pipe(a, false) != 0) return HN_FAIL(err, HONE_E_IO, "pipe: %s", strerror(errno));
    if (hn_os_pipe(b, false) != 0) {
        close(a[0]);
        close(a[1]);
        return HN_FAIL(err, HONE_E_IO, "pipe: %s", strerror(errno));
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(argv, a[1], b[1], parent);
    int fork_errno = errno;
    close(a[1]);
    close(b[1]);
    text result = { 0 }, said = { 0 };
    hone_status st;
    if (pid < 0) {
        st = HN_FAIL(err, HONE_E_IO, "starting a process to measure: %s", strerror(fork_errno));
    } else {
        st = follow(out, pid, a[0], b[0], &result, &said, stop, err);
        if (st != HONE_OK) kill(pid, SIGKILL);
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        if (said.data) last_words(out, &said);
        /* 1: a failure that may have a record all the same, of an invalid result */
        bool may = (out->exit_code == 0 || out->exit_code == 1) && result.data && st == HONE_OK;
        if (may && hn_json_tree(&out->result, result.data, result.n, NULL, "the measured process",
                                NULL) == HONE_E_NOMEM)
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
        snprintf(dst, cap, "the measured process was killed by signal 9 (out of memory, if nobody did it on purpose)%s%s", colon, c->message);
    else if (c->signal) snprintf(dst, cap, "the measured process died of signal %d (%s)%s%s", c->signal, strsignal(c->signal), colon, c->message);
    else if (c->exit_code != 0) snprintf(dst, cap, "the measured process ended with exit code %d%s%s", c->exit_code, colon, c->message);
    else snprintf(dst, cap, "the measured process printed no result%s%s", colon, c->message);
}
