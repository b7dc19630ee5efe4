/* A file that is cut short while it is mapped: SIGBUS in whichever thread reads it. Owns the handler, which says
 * which file it was and ends the program, and the look at the end for files that changed without a fault. Any other
 * SIGBUS ends the program as ever. Everything here is async-signal-safe but for what main.c calls. */
#include "base/mapped.h"
#include "base/shown.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT_STEP "run again with the whole file, and replace files in use by renaming new ones over them"

void (*volatile hn_cli_last_act)(void);

/* One line, put together without the C library's formatting. */
typedef struct line {
    char text[2048];
    size_t n;
} line;

static void add_text(line *l, const char *s)
{
    size_t n = strlen(s), room = sizeof l->text - 1 - l->n;
    if (n > room) n = room;
    memcpy(l->text + l->n, s, n);
    l->n += n;
    l->text[l->n] = 0;
}

static void add_number(line *l, uint64_t v)
{
    char digits[24], *d = digits + sizeof digits;
    *--d = 0;
    do *--d = (char)('0' + v % 10);
    while (v /= 10);
    add_text(l, d);
}

static void describe(line *l, const hn_mapped_file *m)
{
    struct stat sb;
    char path[1200];
    add_text(l, "hone: ");
    add_text(l, hn_escape(path, sizeof path, m->path, strlen(m->path)));
    add_text(l, " was changed or cut short while it was in use (read at byte ");
    add_number(l, m->offset);
    add_text(l, " of ");
    add_number(l, m->size);
    if (stat(m->path, &sb) != 0) {
        add_text(l, "; there is no such file now");
    } else if ((uint64_t)sb.st_size == m->size) {
        add_text(l, "; it has its size, so its disk may have failed");
    } else {
        add_text(l, "; it has ");
        add_number(l, (uint64_t)sb.st_size);
        add_text(l, " now");
    }
    add_text(l, "); " NEXT_STEP "\n");
}

static void on_bus(int sig, siginfo_t *info, void *unused)
{
    static volatile sig_atomic_t ending;
    hn_mapped_file m;
    bool sent = info->si_code <= 0; /* by kill(2), not by an access */
    if (sent || !hn_mapped_at(info->si_addr, &m)) {
        signal(sig, SIG_DFL);
        if (sent) raise(sig); /* else the access faults again when this handler returns */
        return;
    }
    while (__atomic_exchange_n(&ending, 1, __ATOMIC_SEQ_CST)) pause(); /* another thread says it */
    line l = { .n = 0 };
    describe(&l, &m);
    hn_out_restore();
    for (size_t at = 0; at < l.n;) {
        ssize_t k = write(STDERR_FILENO, l.text + at, l.n - at);
        if (k <= 0) break;
        at += (size_t)k;
    }
    void (*last_act)(void) = hn_cli_last_act;
    if (last_act) last_act();
    _exit(HN_EXIT_FAILURE);
}

/* The other stack is the main thread's; workers run the handler on their own, which no fault of theirs has filled. */
void hn_cli_catch_faults(void)
{
    static char stack[1 << 16];
    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
    struct sigaction bus = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaction(SIGBUS, &bus, NULL);
}

int hn_cli_check_files(int code)
{
    hn_mapped_file m;
    uint64_t now;
    if (code != HN_EXIT_OK || !hn_mapped_changed(&m, &now)) return code;
    if (now == m.size)
        return hn_cli_error(HN_EXIT_FAILURE,
                            "%s was written to while it was in use, so the result may be wrong; " NEXT_STEP,
                            HN_ESC(m.path, strlen(m.path)));
    return hn_cli_error(HN_EXIT_FAILURE,
                        "%s was changed or cut short while it was in use (%" PRIu64 " bytes, now %" PRIu64 "), so "
                        "the result may be wrong; " NEXT_STEP,
                        HN_ESC(m.path, strlen(m.path)), m.size, now);
}
