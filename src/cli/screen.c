/* screen: see screen.h. */
#include "cli/screen.h"

#include <stdlib.h>
#include <unistd.h>

static const hn_opt reasoning_opts[] = {
    HN_OPT("think", NULL, STR, "HOW", "reason before an answer: on, off, low, medium, high; where its template asks"),
    HN_OPT("reasoning", NULL, STR, "WHAT",
           "show or hide it (default: show on a terminal, hide where it would go to stderr)"),
    HN_OPT("chat-vars", "--chat-template-kwargs", STR, "JSON",
           "more variables for the template, as in {\"enable_thinking\": false}"),
    HN_OPT_END,
};
const hn_opt_group hn_group_reasoning = { "Reasoning", reasoning_opts };

int hn_cli_check_reasoning(const hn_cli *cli)
{
    const char *what = hn_opts_str(cli->opts, "reasoning");
    if (!what || strcmp(what, "show") == 0 || strcmp(what, "hide") == 0) return 0;
    return hn_cli_usage(cli, "--reasoning %s; expected show or hide", HN_ESC(what, strlen(what)));
}

hone_status hn_cli_chat_variables(const hn_cli *cli, const hone_model *m, const hone_chat_params *p, const char *how,
                                  char **out, hone_error *err)
{
    hone_chat_params asked = *p;
    asked.variables = hn_opts_str(cli->opts, "chat-vars");
    *out = NULL;
    if (how) return hone_chat_think(m, &asked, how, out, err);
    if (asked.variables && !(*out = strdup(asked.variables)))
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the template's variables");
    return HONE_OK;
}

hone_status hn_said_add(hn_said *t, const char *s, size_t n, hone_error *err)
{
    if (n > t->cap - t->n) {
        size_t cap = (t->n + n) * 2;
        char *p = realloc(t->p, cap);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "no memory for an answer of %zu bytes", t->n + n);
        t->p = p;
        t->cap = cap;
    }
    if (n) memcpy(t->p + t->n, s, n);
    t->n += n;
    return HONE_OK;
}

void hn_screen_open(hn_screen *s, const hn_cli *cli, bool mute)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *what = hn_opts_str(cli->opts, "reasoning");
    *s = (hn_screen){ .mute = mute, .newline = true };
    s->tty = isatty(STDOUT_FILENO) == 1;
    s->dim = s->tty && !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0;
    s->reasoning = what ? strcmp(what, "show") == 0 : s->tty;
}

void hn_screen_begin(hn_screen *s)
{
    s->newline = true;
    s->begun = s->answered = s->hidden = s->called = false;
    s->wrap = (hn_wrap){ .width = s->tty && s->wraps ? hn_out_width() : 0 };
}

static bool to_out(void *unused, const char *p, size_t n) { return hn_out_write(p, n); }
static bool to_lines(void *arg, const char *p, size_t n)
{
    hn_screen *s = arg;
    return hn_wrap_put(&s->wrap, p, n, to_out, NULL);
}
/* Nothing is held back any more. */
static bool end_held(hn_screen *s)
{
    return hn_shown_end(&s->shown, to_lines, s) && hn_wrap_end(&s->wrap, to_out, NULL);
}

/* A part of a character that was left behind ends before the colour changes. */
static bool set_dim(hn_screen *s, bool on)
{
    if (!s->dim || s->dimmed == on) return true;
    s->dimmed = on;
    return end_held(s) && hn_out_control(on ? "\033[2m" : "\033[0m");
}

static bool put(hn_screen *s, const char *p, size_t n)
{
    if (n) s->newline = p[n - 1] == '\n';
    return s->tty ? hn_shown_put(&s->shown, p, n, to_lines, s) : hn_out_write(p, n);
}

/* Another part begins: an empty line between the two, and where colours cannot tell them apart, a word. */
static bool begin_part(hn_screen *s, hone_part part)
{
    static const char *const names[] = { "[answer]\n", "[reasoning]\n", "[answer]\n", "[call]\n" };
    bool ok = set_dim(s, false);
    if (s->begun) ok = ok && put(s, s->newline ? "\n" : "\n\n", s->newline ? 1 : 2);
    bool named = part == HONE_PART_CALL || (!s->dim && (s->begun || part == HONE_PART_REASONING));
    if (named) ok = ok && put(s, names[part], strlen(names[part]));
    s->begun = true;
    s->part = part;
    return ok && set_dim(s, part == HONE_PART_REASONING);
}

/* Away from a terminal what is no answer goes to stderr, or nowhere. */
static bool show_beside(hn_screen *s, const hone_reply_part *p)
{
    s->called |= p->part == HONE_PART_CALL;
    if (!s->reasoning) {
        s->hidden = true;
        return true;
    }
    hn_out_flush();
    hn_err_printf("%.*s", (int)p->len, p->text);
    s->err_open = p->text[p->len - 1] != '\n';
    return true;
}

static void end_beside(hn_screen *s)
{
    if (s->err_open) hn_err_printf("\n");
    s->err_open = false;
}

bool hn_screen_show(hn_screen *s, const hone_reply_part *parts, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok && !s->mute; i++) {
        const hone_reply_part *p = &parts[i];
        if (!s->tty && p->part != HONE_PART_TEXT) {
            ok = show_beside(s, p);
            continue;
        }
        end_beside(s);
        s->answered |= p->part == HONE_PART_TEXT;
        if (p->part == HONE_PART_REASONING && !s->reasoning) {
            s->hidden = true;
            continue;
        }
        if (s->tty && (s->begun ? p->part != s->part : p->part != HONE_PART_TEXT)) ok = begin_part(s, p->part);
        s->begun = true;
        s->part = p->part;
        ok = ok && put(s, p->text, p->len);
    }
    return s->mute || (ok && hn_out_flush());
}

bool hn_screen_end(hn_screen *s)
{
    if (s->mute) return true;
    end_beside(s);
    end_held(s);
    set_dim(s, false);
    if (!s->tty || !s->newline) hn_out_write("\n", 1);
    s->newline = true;
    bool ok = hn_out_flush();
    if (s->called && !s->answered) hn_cli_note("the model called a tool, and none is offered; there is no answer");
    else if (s->hidden && !s->answered)
        hn_cli_note("the model was still reasoning, so there is no answer; --reasoning show shows it, --think off does "
                    "without where the template can, -n gives it more tokens");
    return ok;
}
