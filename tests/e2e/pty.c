/* pty: drives a program in a pseudo-terminal. Usage: pty [-t SECONDS] [-w COLUMNS] PROGRAM [ARG]… <SCRIPT
 * Each line of the script is one step:
 *     send TEXT       writes TEXT; \n \r \t \\ \e, \cX for Ctrl-X, \xHH for a byte
 *     wait TEXT       reads on until TEXT has been seen since the last wait; same escapes
 *     more            reads on until the program writes something
 *     pause MS        reads on for so long
 *     signal NAME     INT, TERM, WINCH
 *     close           closes the terminal
 * All that the program writes goes to stdout. The exit code is the program's (128 + signal
 * when killed), 99 when a wait saw the end or the time ran out; the step is named on stderr. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fd;
static pid_t child;
static char *seen;
static size_t n_seen, from; /* bytes read; the last wait ended at from */
static double deadline;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads what there is, waiting at most s seconds; 1: something, 0: nothing, -1: the end. */
static int read_some(double s)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char buf[4096];
    if (s < 0) s = 0;
    if (poll(&p, 1, (int)(s * 1000)) <= 0) return 0;
    ssize_t k = read(fd, buf, sizeof buf);
    if (k <= 0) return -1;
    fwrite(buf, 1, (size_t)k, stdout);
    fflush(stdout);
    seen = realloc(seen, n_seen + (size_t)k);
    if (!seen) abort();
    memcpy(seen + n_seen, buf, (size_t)k);
    n_seen += (size_t)k;
    return 1;
}

static size_t unescape(char *s)
{
    char *d = s, *begin = s;
    while (*s) {
        if (*s != '\\' || !s[1]) {
            *d++ = *s++;
            continue;
        }
        s += 2;
        switch (s[-1]) {
        case 'n': *d++ = '\n'; break;
        case 'r': *d++ = '\r'; break;
        case 't': *d++ = '\t'; break;
        case 'e': *d++ = 27; break;
        case 'c': *d++ = (char)(*s++ & 31); break;
        case 'x': {
            char hex[3] = { s[0], s[0] ? s[1] : 0, 0 };
            *d++ = (char)strtol(hex, NULL, 16);
            s += strlen(hex);
            break;
        }
        default: *d++ = s[-1];
        }
    }
    return (size_t)(d - begin);
}

static void give_up(const char *why, const char *step)
{
    fprintf(stderr, "pty: %s at: %s\n", why, step);
    kill(child, SIGKILL);
    exit(99);
}

static void run_step(char *line)
{
    char step[1024];
    snprintf(step, sizeof step, "%s", line);
    char *arg = strchr(line, ' ');
    if (arg) *arg++ = 0;
    else arg = line + strlen(line);
    if (strcmp(line, "send") == 0) {
        size_t n = unescape(arg);
        for (size_t i = 0; i < n;) {
            ssize_t k = write(fd, arg + i, n - i);
            if (k < 0) give_up(strerror(errno), step);
            i += (size_t)k;
        }
    } else if (strcmp(line, "wait") == 0) {
        size_t n = unescape(arg);
        char *at;
        while (!(at = n_seen > from ? memmem(seen + from, n_seen - from, arg, n) : NULL)) {
            if (now() > deadline) give_up("the time ran out", step);
            if (read_some(deadline - now()) < 0) give_up("the program ended", step);
        }
        from = (size_t)(at - seen) + n;
    } else if (strcmp(line, "more") == 0) {
        size_t before = n_seen;
        while (n_seen == before) {
            if (now() > deadline) give_up("the time ran out", step);
            if (read_some(deadline - now()) < 0) give_up("the program ended", step);
        }
    } else if (strcmp(line, "pause") == 0) {
        double end = now() + atof(arg) / 1000;
        while (now() < end)
            if (read_some(end - now()) < 0) return;
    } else if (strcmp(line, "signal") == 0) {
        kill(child, strcmp(arg, "INT") == 0 ? SIGINT : strcmp(arg, "TERM") == 0 ? SIGTERM : SIGWINCH);
    } else if (strcmp(line, "close") == 0) {
        close(fd);
        fd = -1;
    } else if (*line && *line != '#') {
        give_up("unknown step", step);
    }
}

int main(int argc, char **argv)
{
    double limit = 20;
    int first = 1, status;
    int columns = 200;
    for (; argc > first + 2 && argv[first][0] == '-'; first += 2) {
        if (strcmp(argv[first], "-t") == 0) limit = atof(argv[first + 1]);
        else if (strcmp(argv[first], "-w") == 0) columns = atoi(argv[first + 1]);
        else break;
    }
    if (argc <= first) {
        fprintf(stderr, "usage: pty [-t SECONDS] [-w COLUMNS] PROGRAM [ARG]... <SCRIPT\n");
        return 98;
    }
    deadline = now() + limit;
    struct winsize size = { .ws_row = 40, .ws_col = (unsigned short)columns };
    child = forkpty(&fd, NULL, NULL, &size);
    if (child < 0) {
        perror("pty: forkpty");
        return 77;
    }
    if (child == 0) {
        execv(argv[first], argv + first);
        perror(argv[first]);
        _exit(127);
    }
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) >= 0) {
        if (n && line[n - 1] == '\n') line[n - 1] = 0;
        run_step(line);
    }
    free(line);
    while (fd >= 0 && now() < deadline && read_some(deadline - now()) >= 0) {}
    if (now() >= deadline) give_up("the time ran out", "the end");
    if (fd >= 0) close(fd);
    free(seen);
    if (waitpid(child, &status, 0) < 0) return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
