/* A word is held back until it ends, so that it can begin the next line. Indented lines and those of code keep
 * their form. */
#include "cli/wrap.h"

/* Columns of a character of three or four bytes by its first two: East Asian ones and pictures take two. */
static int cells_of(unsigned char first, unsigned char second)
{
    if (first >= 0xF0) return 2;
    if (first == 0xE1) return second >= 0x84 && second < 0x86 ? 2 : 1; /* Hangul jamo */
    if (first == 0xE2 || first == 0xE0) return second >= 0xBA && first == 0xE2 ? 2 : 1;
    return first >= 0xE3 && first < 0xEE ? 2 : 1;
}

static bool end_line(hn_wrap *w, hn_wrap_sink *sink, void *arg)
{
    w->col = w->blanks = w->ticks = 0;
    w->begun = false;
    return sink(arg, "\n", 1);
}

static bool put_blanks(hn_wrap *w, hn_wrap_sink *sink, void *arg)
{
    bool ok = true;
    for (; w->blanks > 0 && ok; w->blanks--, w->col++) ok = sink(arg, " ", 1);
    return ok;
}

/* The word, on this line if there is room for it. */
static bool put_word(hn_wrap *w, hn_wrap_sink *sink, void *arg)
{
    bool ok = true, room = w->col + w->blanks + w->cells <= w->width;
    if (w->n == 0) return true;
    if (!room && w->col > 0 && (w->blanks > 0 || w->wide) && !w->code) {
        bool begun = w->begun;
        ok = end_line(w, sink, arg);
        w->begun = begun;
    }
    ok = ok && put_blanks(w, sink, arg) && sink(arg, w->word, (size_t)w->n);
    w->col += w->cells;
    w->n = w->cells = 0;
    return ok;
}

bool hn_wrap_end(hn_wrap *w, hn_wrap_sink *sink, void *arg)
{
    bool ok = put_word(w, sink, arg);
    if (w->col + w->blanks > w->width) w->blanks = 0;
    return ok && put_blanks(w, sink, arg);
}

bool hn_wrap_put(hn_wrap *w, const char *p, size_t n, hn_wrap_sink *sink, void *arg)
{
    if (w->width == 0) return sink(arg, p, n);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\n') {
            ok = put_word(w, sink, arg);
            w->blanks = 0; /* at the end of a line nobody sees them */
            ok = ok && end_line(w, sink, arg);
            continue;
        }
        if (c == '`' && !w->begun && ++w->ticks == 3) w->code = !w->code;
        if (c != '`' && !(c == ' ' && w->ticks == 0)) w->begun = true;
        if (c == ' ') {
            ok = put_word(w, sink, arg);
            w->blanks++;
            continue;
        }
        if (w->n == HN_WRAP_WORD) ok = put_word(w, sink, arg);
        w->word[w->n++] = (char)c;
        if ((c & 0xC0) != 0x80) {
            w->left = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
            w->cells += w->left < 2 ? 1 : 0;
        } else if (w->left > 0) {
            unsigned char first = w->n > 1 ? (unsigned char)w->word[w->n - 2] : 0; /* of which this is the second */
            int cells = first >= 0xE0 ? cells_of(first, c) : 0;
            w->cells += cells;
            w->wide |= cells == 2;
            if (--w->left == 0 && w->wide) {
                ok = ok && put_word(w, sink, arg);
                w->wide = false;
            }
        }
    }
    return ok;
}
