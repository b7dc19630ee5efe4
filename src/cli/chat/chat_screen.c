/* chat_screen: an answer on stdout. A terminal gets no control characters from a model,
 * and reasoning parts dimmed; anything else gets the bytes as they are. */
#include "cli/chat/chat_state.h"

#include <stdlib.h>
#include <unistd.h>

/* How models mark reasoning. No tag here is the beginning of another of its column. */
static const struct {
    const char *open, *close;
} tags[] = {
    { "<think>", "</think>" },
    { "<thinking>", "</thinking>" },
    { "<thought>", "</thought>" },
    { "<reasoning>", "</reasoning>" },
    { "<seed:think>", "</seed:think>" },
    { "[THINK]", "[/THINK]" },
    { "<|START_THINKING|>", "<|END_THINKING|>" },
    { "<|channel|>analysis<|message|>", "<|end|>" },
};
enum { N_TAGS = sizeof tags / sizeof *tags };

void hn_screen_open(chat_screen *s, bool mute)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    *s = (chat_screen){ .mute = mute, .newline = true };
    s->tty = isatty(STDOUT_FILENO) == 1;
    s->dim = s->tty && !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0;
}

void hn_screen_begin(chat_screen *s, const char *prompt, size_t len)
{
    s->thinking = false;
    s->newline = true;
    s->n_held = 0;
    while (len && (prompt[len - 1] == '\n' || prompt[len - 1] == ' ')) len--;
    for (size_t i = 0; i < N_TAGS; i++) {
        size_t n = strlen(tags[i].open);
        if (len >= n && memcmp(prompt + len - n, tags[i].open, n) == 0) s->thinking = true;
    }
}

static bool to_out(void *unused, const char *p, size_t n) { return hn_out_write(p, n); }

/* A part of a character that was left behind ends before the colour changes. */
static bool set_dim(chat_screen *s, bool on)
{
    if (!s->dim || s->dimmed == on) return true;
    s->dimmed = on;
    return hn_shown_end(&s->shown, to_out, NULL) && hn_out_control(on ? "\033[2m" : "\033[0m");
}

/* Bytes for a terminal. */
static bool put_safe(chat_screen *s, const char *p, size_t n)
{
    if (n) s->newline = p[n - 1] == '\n';
    return hn_shown_put(&s->shown, p, n, to_out, NULL);
}

/* A tag at p? Its length; 0: none; *partial: p[0..n) may become one. */
static size_t tag_at(const chat_screen *s, const char *p, size_t n, bool *partial)
{
    *partial = false;
    for (size_t i = 0; i < N_TAGS; i++) {
        const char *t = s->thinking ? tags[i].close : tags[i].open;
        size_t len = strlen(t);
        if (n >= len && memcmp(p, t, len) == 0) return len;
        if (n < len && memcmp(p, t, n) == 0) *partial = true;
    }
    return 0;
}

/* Shows text[0..n) up to what may become a tag; returns how much. */
static size_t show_parts(chat_screen *s, const char *text, size_t n)
{
    size_t from = 0, i = 0;
    bool partial;
    while (i < n) {
        if (text[i] != '<' && text[i] != '[') {
            i++;
            continue;
        }
        size_t len = tag_at(s, text + i, n - i, &partial);
        if (!len && partial) break;
        if (!len) {
            i++;
        } else if (s->thinking) {
            put_safe(s, text + from, i + len - from);
            set_dim(s, false);
            s->thinking = false;
            from = i += len;
        } else {
            put_safe(s, text + from, i - from);
            set_dim(s, true);
            s->thinking = true;
            from = i;
            i += len;
        }
    }
    put_safe(s, text + from, i - from);
    return i;
}

bool hn_screen_show(chat_screen *s, const char *text, size_t len)
{
    if (s->mute || !len) return true;
    if (!s->tty) {
        s->newline = text[len - 1] == '\n';
        return hn_out_write(text, len) && hn_out_flush();
    }
    if (!s->dim) return put_safe(s, text, len) && hn_out_flush();
    set_dim(s, s->thinking);
    while (s->n_held && len) { /* the longest tag fits: at most one byte too many is ever held */
        s->held[s->n_held++] = *text++;
        len--;
        size_t done = show_parts(s, s->held, s->n_held);
        memmove(s->held, s->held + done, s->n_held - done);
        s->n_held -= done;
    }
    if (len) {
        size_t done = show_parts(s, text, len);
        memcpy(s->held, text + done, len - done);
        s->n_held = len - done;
    }
    return hn_out_flush();
}

bool hn_screen_end(chat_screen *s)
{
    if (s->mute) return true;
    put_safe(s, s->held, s->n_held);
    hn_shown_end(&s->shown, to_out, NULL);
    s->n_held = 0;
    set_dim(s, false);
    s->thinking = false;
    if (!s->tty || !s->newline) hn_out_write("\n", 1);
    s->newline = true;
    return hn_out_flush();
}
