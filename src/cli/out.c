/* What leaves the program: stdout, stderr, progress. Owns the difference between a terminal, which
 * gets no character that steers it but those hone itself sends by hn_out_control and hn_err_control,
 * and anything else, which gets the bytes as they are. Refuses to know what is said. */
#include "base/shown.h"
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool out_tty, err_tty; /* as hn_out_open found them */
static hn_shown out_shown;    /* of stdout: its text comes in pieces */
static int out_errno;         /* of the first failure; -1: unknown */
static volatile sig_atomic_t coloured, progress_shown;

void hn_out_open(void)
{
    out_tty = isatty(STDOUT_FILENO) == 1;
    err_tty = isatty(STDERR_FILENO) == 1;
}

static bool json_wanted, out_any; /* out_any: something was written */
static char first_error[2048];

void hn_out_is_json(bool json)
{
    out_shown.json = json;
    json_wanted = json;
}

void hn_out_remember(const char *error)
{
    if (!first_error[0]) snprintf(first_error, sizeof first_error, "%s", error);
}

bool hn_out_is_tty(void) { return out_tty; }

int hn_out_width(void)
{
    struct winsize w;
    return out_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* ---- stdout ----------------------------------------------------------------------------------- */

static bool out_result(bool ok)
{
    if (!ok && !out_errno) out_errno = errno ? errno : -1;
    return out_errno == 0;
}

static bool to_stdout(void *unused, const char *p, size_t n) { return fwrite(p, 1, n, stdout) == n; }

bool hn_out_write(const void *p, size_t n)
{
    if (out_errno) return false;
    out_any |= n > 0;
    errno = 0;
    return out_result(out_tty ? hn_shown_put(&out_shown, p, n, to_stdout, NULL) : to_stdout(NULL, p, n));
}

bool hn_out_control(const char *sequence)
{
    if (out_errno) return false;
    errno = 0;
    coloured = strcmp(sequence, "\033[0m") != 0;
    return out_result(hn_shown_end(&out_shown, to_stdout, NULL) && to_stdout(NULL, sequence, strlen(sequence)));
}

/* The text of a format; *small holds it if it can, else it is malloc'ed. NULL and errno. */
static char *format(char *small, size_t cap, size_t *len, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, cap, fmt, ap);
    char *t = small;
    if (n >= 0 && (size_t)n >= cap) {
        t = malloc((size_t)n + 1);
        if (t) vsnprintf(t, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    *len = n > 0 ? (size_t)n : 0;
    return n < 0 ? NULL : t;
}

bool hn_out_printf(const char *fmt, ...)
{
    if (out_errno) return false;
    char small[1024], *text;
    size_t n;
    bool ok;
    va_list ap;
    va_start(ap, fmt);
    out_any = true;
    errno = 0;
    if (!out_tty) {
        ok = vfprintf(stdout, fmt, ap) >= 0;
    } else {
        text = format(small, sizeof small, &n, fmt, ap);
        ok = text && hn_shown_put(&out_shown, text, n, to_stdout, NULL);
        if (text != small) free(text);
    }
    va_end(ap);
    return out_result(ok);
}

bool hn_out_flush(void)
{
    if (out_errno) return false;
    errno = 0;
    return out_result(fflush(stdout) == 0);
}

bool hn_out_failed(void) { return out_errno != 0 || ferror(stdout); }

/* Whoever reads JSON gets the error as JSON, too. */
static void print_error(int code)
{
    json_t *o = hn_json_new("hone.error/1");
    json_object_set_new(o, "code", json_integer(code));
    json_object_set_new(o, "message", hn_json_str(first_error, strlen(first_error)));
    hn_json_print(o);
}

int hn_out_finish(int code)
{
    if (code && json_wanted && !out_any && first_error[0]) print_error(code);
    if (!out_errno) {
        errno = 0;
        out_result(hn_shown_end(&out_shown, to_stdout, NULL));
    }
    hn_out_flush();
    if ((!code || hn_is_verdict(code)) && hn_json_lost())
        code = hn_cli_error(HN_EXIT_NOMEM, "out of memory for JSON: what was printed or kept may lack a part; "
                                           "expected more free memory");
    if (!hn_out_failed()) return code;
    if (out_errno != EPIPE)
        hn_cli_error(0, "standard output: %s", out_errno > 0 ? strerror(out_errno) : "write failed");
    /* a verdict whose reasons did not arrive is none; whoever closes a pipe has seen enough */
    bool verdict = hn_is_verdict(code) && out_errno != EPIPE;
    return code && !verdict ? code : HN_EXIT_FAILURE;
}

/* ---- stderr ----------------------------------------------------------------------------------- */

static bool to_stderr(void *unused, const char *p, size_t n) { return fwrite(p, 1, n, stderr) == n; }

/* Whole texts, so nothing is held back between two calls. */
static void show_on_stderr(const char *text, size_t n)
{
    hn_shown shown = { 0 };
    hn_shown_put(&shown, text, n, to_stderr, NULL);
    hn_shown_end(&shown, to_stderr, NULL);
}

void hn_err_printf(const char *fmt, ...)
{
    char small[1024];
    size_t n;
    va_list ap;
    va_start(ap, fmt);
    if (!err_tty) {
        vfprintf(stderr, fmt, ap);
    } else {
        char *text = format(small, sizeof small, &n, fmt, ap);
        if (text) show_on_stderr(text, n);
        if (text != small) free(text);
    }
    va_end(ap);
}

void hn_err_control(const char *sequence) { fputs(sequence, stderr); }

bool hn_stderr_is_tty(void) { return isatty(STDERR_FILENO) == 1; }

int hn_columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* ---- progress --------------------------------------------------------------------------------- */

/* Bytes of s that fit n columns, taking a character for one. */
static int fitting(const char *s, int n)
{
    int i = 0;
    while (s[i] && (((unsigned char)s[i] & 0xC0) == 0x80 || n-- > 0)) i++;
    return i;
}

typedef struct label {
    char text[512];
    size_t n;
} label;

static bool to_label(void *arg, const char *p, size_t n)
{
    label *l = arg;
    size_t room = sizeof l->text - 1 - l->n;
    memcpy(l->text + l->n, p, n < room ? n : room);
    l->n += n < room ? n : room;
    return n <= room;
}

static double progress_at;

void hn_progress_fn(void *arg, uint64_t done, uint64_t total)
{
    double now = hn_now_ms();
    if (!hn_stderr_is_tty() || (progress_shown && done < total && now - progress_at < 100)) return;
    progress_at = now;
    progress_shown = true;
    label l = { .n = 0 };
    hn_shown shown = { 0 };
    hn_shown_put(&shown, arg, strlen(arg), to_label, &l);
    hn_shown_end(&shown, to_label, &l);
    /* a longer line would go on in the next one, and only the last can be taken back */
    int n = fitting(l.text, hn_columns() - HN_PROGRESS_ROOM);
    double percent = total ? 100.0 * (double)done / (double)total : 100.0;
    hn_err_control("\r\033[K");
    hn_err_printf("%.*s %3.0f %%", n, l.text, percent);
    fflush(stderr);
}

void hn_progress_end(void)
{
    if (progress_shown) hn_err_control("\r\033[K");
    progress_shown = false;
}

void hn_out_restore(void)
{
    if (coloured) (void)!write(STDOUT_FILENO, "\033[0m", 4);
    if (progress_shown) (void)!write(STDERR_FILENO, "\r\033[K", 4);
}
