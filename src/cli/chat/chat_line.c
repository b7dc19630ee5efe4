/* chat_line: what the user writes. On a terminal through libedit, with history; else
 * plain lines. Owns the signals of a conversation on a terminal. Refuses to know what
 * the lines mean. */
#include "base/known.h"
#include "base/file.h"
#include "base/os.h"
#include "cli/chat/chat_state.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#define FENCE "\"\"\""
enum { HISTORY_LINES = 1000, MAX_MESSAGE = 64 << 20 };

struct chat_line {
    EditLine *el; /* NULL: no terminal */
    History *history;
    HistEvent event;
    char *history_path; /* NULL: nowhere */
    const char *prompt;
    mbstate_t mb; /* of a character whose bytes are not all here */
    bool again;   /* … which the byte `first` has cut short: it begins the next one */
    unsigned char first;
    char *raw; /* of getline */
    size_t raw_cap;
    char *text; /* a block */
    size_t len, cap;
};

/* ---- signals --------------------------------------------------------------------------------- */

/* A handler writes here to wake the reader, whichever thread the signal found. */
static int wake[2] = { -1, -1 };
static volatile sig_atomic_t stop_asked, resized, continued, handling;

static void on_signal(int sig)
{
    int e = errno;
    if (sig == SIGINT) stop_asked = 1;
    if (sig == SIGWINCH) resized = 1;
    if (sig == SIGCONT) continued = 1;
    (void)!write(wake[1], "", 1);
    errno = e;
}

bool hn_line_stop(void *unused) { return stop_asked || hn_interrupted(); }

void hn_line_listen(void) { stop_asked = 0; }

static bool take_signals(void)
{
    if (hn_os_pipe(wake, true) != 0) return false;
    struct sigaction sa = { .sa_handler = on_signal };
    handling = 1;
    return sigaction(SIGINT, &sa, NULL) == 0 && sigaction(SIGWINCH, &sa, NULL) == 0 &&
           sigaction(SIGCONT, &sa, NULL) == 0;
}

/* ---- history ------------------------------------------------------------------------------------ */

/* $XDG_STATE_HOME/hone/chat_history, else ~/.local/state/…; folders are made. NULL: nowhere. */
static char *find_history(void)
{
    char path[PATH_MAX];
    if (!hn_state_path(path, sizeof path, "chat_history")) return NULL;
    for (char *p = path + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        (void)!mkdir(path, 0700); /* the last one that fails makes writing fail, which is no matter */
    }
    return strdup(path);
}

/* Saved after every line, as a whole, so that a crash or a second chat cuts nothing off. What fails is no matter. */
static void save_history(chat_line *l)
{
    hn_file *f;
    HistEvent ev;
    const hn_file_want want = { .mode = 0600 };
    if (!l->history_path || hn_file_begin(&f, l->history_path, &want, NULL) != HONE_OK) return;
    FILE *out = hn_file_stream(f);
    bool ok = out && history(l->history, &ev, H_SAVE_FP, out) >= 0;
    if (out) ok = fclose(out) == 0 && ok;
    if (ok) hn_file_end(f, NULL);
    hn_file_drop(f);
}

static void remember(chat_line *l, const char *line)
{
    if (!line[strspn(line, " \t\n")]) return;
    if (history(l->history, &l->event, H_ENTER, line) >= 0) save_history(l);
}

/* ---- the editor ------------------------------------------------------------------------------------ */

static char *get_prompt(EditLine *el)
{
    void *l;
    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)((chat_line *)l)->prompt;
}

/* Waits for a byte; 1, 0 at the end of input, -1 when the line is to be given up. */
static int read_byte(EditLine *el, unsigned char *byte)
{
    char drain[64];
    for (;;) {
        if (hn_line_stop(NULL)) return -1;
        if (resized) {
            resized = 0;
            el_resize(el);
        }
        if (continued) { /* the shell has set the terminal its own way meanwhile */
            continued = 0;
            el_set(el, EL_PREP_TERM, 0);
            el_set(el, EL_PREP_TERM, 1);
            el_set(el, EL_REFRESH);
        }
        struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = wake[0], .events = POLLIN } };
        if (poll(p, 2, 500) < 0) { /* SIGTERM has the program's own handler, which wakes nobody in another thread */
            if (errno != EINTR) return -1;
            continue;
        }
        if (p[1].revents) {
            while (read(wake[0], drain, sizeof drain) > 0) {}
            continue;
        }
        if (!p[0].revents) continue;
        ssize_t k = read(STDIN_FILENO, byte, 1);
        if (k >= 0) return (int)k;
        if (errno == EIO) return 0; /* the terminal is gone */
        if (errno != EINTR && errno != EAGAIN) return -1;
    }
}

static int read_char(EditLine *el, wchar_t *wc)
{
    void *data;
    unsigned char b;
    el_get(el, EL_CLIENTDATA, &data);
    chat_line *l = data;
    for (;;) {
        int k = l->again ? 1 : read_byte(el, &b);
        if (l->again) b = l->first;
        l->again = false;
        if (k <= 0) memset(&l->mb, 0, sizeof l->mb);
        if (k <= 0) return k;
        if (b == 0) b = 4; /* what a Ctrl-D typed while an answer came has turned into */
        bool begun = !mbsinit(&l->mb);
        size_t n = mbrtowc(wc, (char *)&b, 1, &l->mb);
        if (n == (size_t)-2) continue;
        if (n == (size_t)-1) {
            memset(&l->mb, 0, sizeof l->mb);
            *wc = 0xFFFD;
            l->again = begun;
            l->first = b;
        }
        return 1;
    }
}

/* Tab: the rest of a command's name, when only one begins so. */
static unsigned char complete(EditLine *el, int key)
{
    const LineInfo *li = el_line(el);
    size_t n = (size_t)(li->cursor - li->buffer), matches = 0;
    const char *match = NULL, *name;
    if (n == 0 || li->buffer[0] != '/' || memchr(li->buffer, ' ', n))
        return el_insertstr(el, "\t") == 0 ? CC_REFRESH : CC_ERROR;
    for (size_t i = 0; (name = hn_chat_command_name(i)); i++)
        if (strncmp(name, li->buffer + 1, n - 1) == 0) match = name, matches++;
    if (matches != 1 || el_insertstr(el, match + n - 1) != 0) return CC_ERROR;
    el_insertstr(el, " ");
    return CC_REFRESH;
}

/* Characters are wide ones to libedit. LC_CTYPE alone: numbers keep their point. */
static void choose_locale(void)
{
    if (setlocale(LC_CTYPE, "") && MB_CUR_MAX > 1) return;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "C");
}

static bool open_editor(chat_line *l)
{
    FILE *out = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    HistEvent ev;
    choose_locale();
    if (!getenv("TERM")) setenv("TERM", "dumb", 1);
    l->el = el_init("hone", stdin, out, stderr);
    l->history = history_init();
    if (!l->el || !l->history) return false;
    l->history_path = find_history();
    history(l->history, &ev, H_SETSIZE, HISTORY_LINES);
    history(l->history, &ev, H_SETUNIQUE, 1);
    if (l->history_path) history(l->history, &ev, H_LOAD, l->history_path);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_SIGNAL, 0);
    el_set(l->el, EL_GETCFN, read_char);
    el_set(l->el, EL_PROMPT, get_prompt);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_ADDFN, "hone-complete", "complete the name of a command", complete);
    el_set(l->el, EL_BIND, "^I", "hone-complete", NULL);
    el_set(l->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(l->el, EL_BIND, "\\e[1~", "ed-move-to-beg", NULL);
    el_set(l->el, EL_BIND, "\\e[4~", "ed-move-to-end", NULL);
    el_set(l->el, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
    el_source(l->el, NULL); /* ~/.editrc */
    return true;
}

int hn_line_open(chat_line **out)
{
    chat_line *l = *out = calloc(1, sizeof *l);
    if (!l) return hn_cli_error(HN_EXIT_NOMEM, "no memory to read lines");
    if (isatty(STDIN_FILENO) != 1) return 0;
    if (!take_signals()) return hn_cli_error(HN_EXIT_FAILURE, "signals: %s", strerror(errno));
    if (!open_editor(l))
        return hn_cli_error(HN_EXIT_FAILURE, "the terminal cannot be used for line editing; try: hone chat … <FILE");
    return 0;
}

void hn_line_close(chat_line *l)
{
    if (!l) return;
    if (handling) {
        struct sigaction sa = { .sa_handler = SIG_DFL };
        sigaction(SIGINT, &sa, NULL);
        sigaction(SIGWINCH, &sa, NULL);
        sigaction(SIGCONT, &sa, NULL);
        handling = 0;
    }
    if (l->el) el_end(l->el);
    if (l->history) history_end(l->history);
    free(l->history_path);
    free(l->raw);
    free(l->text);
    free(l);
}

bool hn_line_interactive(const chat_line *l) { return l->el != NULL; }

/* ---- lines and blocks ----------------------------------------------------------------------------------- */

/* One line without its end. */
static chat_event read_line(chat_line *l, const char *prompt, const char **line, size_t *len)
{
    if (!l->el) {
        errno = 0;
        ssize_t n = getline(&l->raw, &l->raw_cap, stdin);
        if (hn_interrupted()) return CHAT_STOPPED;
        if (n < 0 && !feof(stdin)) { /* an error, or no memory for the line, which ferror does not tell */
            hn_cli_error(0, "standard input: %s", strerror(errno));
            return CHAT_FAILED;
        }
        if (n < 0) return CHAT_END;
        *line = l->raw;
        *len = (size_t)n;
    } else {
        int n = 0;
        l->prompt = prompt;
        el_set(l->el, EL_PREP_TERM, 1); /* before the prompt invites anyone to type; el_gets alone does it after */
        const char *s = el_gets(l->el, &n);
        if (hn_interrupted()) return CHAT_STOPPED;
        if (stop_asked) {
            hn_err_printf("^C\n");
            return CHAT_CLEARED;
        }
        if (!s || n <= 0) return CHAT_END;
        remember(l, s);
        *line = s;
        *len = strlen(s);
    }
    if (*len && (*line)[*len - 1] == '\n') --*len;
    if (*len && (*line)[*len - 1] == '\r') --*len;
    return CHAT_TEXT;
}

static bool append(chat_line *l, const char *s, size_t n)
{
    if (n > MAX_MESSAGE - l->len) {
        hn_cli_error(0, "a message of more than %d bytes", MAX_MESSAGE);
        return false;
    }
    if (l->len + n + 1 > l->cap) {
        size_t cap = (l->len + n + 1) * 2;
        char *t = realloc(l->text, cap);
        if (!t) {
            hn_cli_error(0, "no memory for a message of %zu bytes", l->len + n);
            return false;
        }
        l->text = t;
        l->cap = cap;
    }
    memcpy(l->text + l->len, s, n);
    l->len += n;
    l->text[l->len] = 0;
    return true;
}

static bool is_fence(const char *s, size_t n)
{
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    return n == 3 && memcmp(s, FENCE, 3) == 0;
}

chat_event hn_line_read(chat_line *l, const char **text, size_t *len, bool *block)
{
    const char *s;
    size_t n;
    hn_line_listen();
    l->len = 0;
    *block = false;
    chat_event e = read_line(l, "> ", &s, &n);
    if (e != CHAT_TEXT) return e;
    if (is_fence(s, n)) {
        *block = true;
        for (bool first = true;; first = false) {
            e = read_line(l, ".. ", &s, &n);
            if (e == CHAT_END || (e == CHAT_TEXT && is_fence(s, n))) break; /* the end of input ends a block too */
            if (e != CHAT_TEXT) return e;
            if ((!first && !append(l, "\n", 1)) || !append(l, s, n)) return CHAT_FAILED;
        }
        if (!append(l, "", 0)) return CHAT_FAILED;
    } else {
        /* the end of a line from a pipe is the end of a message, whatever stands before it */
        for (; l->el && n && s[n - 1] == '\\';) {
            if (!append(l, s, n - 1) || !append(l, "\n", 1)) return CHAT_FAILED;
            e = read_line(l, ".. ", &s, &n);
            if (e == CHAT_END) n = 0;
            else if (e != CHAT_TEXT) return e;
        }
        if (!append(l, s, n)) return CHAT_FAILED;
    }
    *text = l->text;
    *len = l->len;
    return CHAT_TEXT;
}
