/* chat_command: lines that begin with a slash. */
#include "cli/chat/chat_state.h"

#include <stdarg.h>
#include <stdlib.h>

typedef struct command {
    const char *name, *args, *help;
    void (*run)(chat *c, char *arg); /* arg: the rest of the line, without blanks around it; "" without one */
} command;

void hn_chat_say(const char *fmt, ...)
{
    char line[2000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    hn_out_flush();
    hn_cli_error(0, "%s", line); /* which sees to control characters */
}

static void cmd_help(chat *c, char *arg);

static size_t count(const chat *c, chat_role r)
{
    size_t n = 0;
    for (size_t i = 0; i < c->talk.n; i++) n += c->talk.msg[i].role == r;
    return n;
}

/* Takes back the last answer and, with the question, the whole exchange; false: there is none. */
static bool drop_last(chat *c, bool question)
{
    const chat_message *m = hn_talk_last(&c->talk);
    if (!m || m->role == CHAT_SYSTEM) return false;
    if (m->role == CHAT_ASSISTANT) hn_talk_cut(&c->talk, c->talk.n - 1);
    m = hn_talk_last(&c->talk);
    if (question && m && m->role == CHAT_USER) hn_talk_cut(&c->talk, c->talk.n - 1);
    return true;
}

static void cmd_reset(chat *c, char *arg)
{
    bool system = c->talk.n && c->talk.msg[0].role == CHAT_SYSTEM;
    hn_talk_cut(&c->talk, system ? 1 : 0);
    hn_chat_say("a new conversation%s", system ? "; the system prompt stays" : "");
}

static void cmd_retry(chat *c, char *arg)
{
    const chat_message *m = hn_talk_last(&c->talk);
    if (!m || m->role == CHAT_SYSTEM ||
        (m->role == CHAT_ASSISTANT && (c->talk.n < 2 || c->talk.msg[c->talk.n - 2].role != CHAT_USER))) {
        hn_chat_say("there is no answer to try again");
        return;
    }
    bool answered = m->role == CHAT_ASSISTANT;
    chat_message old = *m;
    if (answered) c->talk.n--;
    if (answered && c->params.sampling.temp <= 0)
        hn_chat_say("temp is 0, so the answer will be the same; try: /params temp 0.8");
    c->attempt++;
    bool ok = hn_chat_answer(c) == CHAT_ANSWERED;
    if (answered && ok) hn_message_free(&old);
    if (answered && !ok) c->talk.msg[c->talk.n++] = old; /* its place is still there */
    if (answered && !ok) hn_chat_say("the answer before is kept");
}

static void cmd_undo(chat *c, char *arg)
{
    if (drop_last(c, true)) hn_chat_say("took back the last exchange; %zu messages are left", c->talk.n);
    else hn_chat_say("there is nothing to take back");
}

/* "~/x" as the shell would have it. malloc'ed. */
static char *file_name(const char *arg)
{
    const char *home = getenv("HOME");
    if (arg[0] != '~' || arg[1] != '/' || !home) return strdup(arg);
    size_t n = strlen(home) + strlen(arg);
    char *p = malloc(n);
    if (p) snprintf(p, n, "%s%s", home, arg + 1);
    return p;
}

/* The file of /save and /load: arg, else that of the last time. malloc'ed; NULL: said why. */
static char *choose_file(chat *c, const char *arg, const char *name)
{
    char *f = *arg ? file_name(arg) : c->file ? strdup(c->file) : NULL;
    if (!f && !*arg && !c->file) hn_chat_say("no file; expected /%s FILE", name);
    else if (!f) hn_chat_say("no memory for a file name");
    return f;
}

/* Takes f (owned) as the file of the next time: only when it has worked, so that no /save
 * replaces a file that /load could not read. */
static void remember_file(chat *c, char *f)
{
    free(c->file);
    c->file = f;
}

void hn_chat_say_unanswered(const chat *c)
{
    const chat_message *m = hn_talk_last(&c->talk);
    if (m && m->role == CHAT_USER) hn_chat_say("the last message has no answer; /retry answers it");
}

static void cmd_save(chat *c, char *arg)
{
    hone_error err;
    char *path = choose_file(c, arg, "save");
    if (!path) return;
    if (hn_chat_save(path, &c->talk, &c->params, c->info.name, &err) != HONE_OK) {
        hn_chat_say("%s", err.message);
        free(path);
        return;
    }
    hn_chat_say("%zu messages saved in %s", c->talk.n, HN_ESC(path, strlen(path)));
    remember_file(c, path);
}

static void cmd_load(chat *c, char *arg)
{
    hone_error err;
    char *model;
    char *path = choose_file(c, arg, "load");
    if (!path) return;
    if (hn_chat_load(path, &c->talk, &c->params, &model, &err) != HONE_OK) {
        hn_chat_say("%s", err.message);
        free(path);
        return;
    }
    hn_chat_say("%zu messages from %s", c->talk.n, HN_ESC(path, strlen(path)));
    remember_file(c, path);
    if (*model && strcmp(model, c->info.name) != 0)
        hn_chat_say("note: it was written with %s; this is %s", HN_ESC(model, strlen(model)),
                    HN_ESC(c->info.name, strlen(c->info.name)));
    hn_chat_say_unanswered(c);
    free(model);
    c->attempt = 0;
}

static void cmd_system(chat *c, char *arg)
{
    bool ok = true;
    if (!*arg) {
        const chat_message *m = c->talk.n ? c->talk.msg : NULL;
        char shown[1500];
        if (m && m->role == CHAT_SYSTEM)
            hn_chat_say("the system prompt is: %s", hn_escape(shown, sizeof shown, m->text, m->len));
        else hn_chat_say("there is no system prompt");
        return;
    }
    if (strcmp(arg, "-") == 0) ok = hn_talk_set_system(&c->talk, NULL, 0);
    else ok = hn_talk_set_system(&c->talk, arg, strlen(arg));
    if (!ok) hn_chat_say("no memory for the system prompt");
    else
        hn_chat_say("%s from the next answer on",
                    strcmp(arg, "-") == 0 ? "no system prompt" : "the new system prompt holds");
}

static void cmd_params(chat *c, char *arg)
{
    hone_error err;
    char *value = arg + strcspn(arg, " \t=");
    if (!*arg) {
        hn_chat_params_print(stderr, &c->params);
        return;
    }
    if (*value) {
        *value++ = 0;
        value += strspn(value, " \t=");
    }
    if (!*value) hn_chat_say("no value for '%s'; expected /params NAME VALUE", HN_ESC(arg, strlen(arg)));
    else if (hn_chat_param_set(&c->params, arg, value, &err) != HONE_OK) hn_chat_say("%s", err.message);
    else hn_chat_say("%s is %s from the next answer on", arg, value);
}

static void cmd_think(chat *c, char *arg)
{
    hone_error err;
    bool show = strcmp(arg, "show") == 0, hide = strcmp(arg, "hide") == 0;
    if (show || hide) {
        c->screen.reasoning = show;
        hn_chat_say("reasoning is %s from the next answer on", show ? "shown" : "hidden");
    } else if (!*arg) {
        hn_chat_say("expected /think on, off or an effort (low, medium, high), or /think show or hide");
    } else if (hn_format_think(c, arg, &err) != HONE_OK) {
        hn_chat_say("%s", err.message);
    } else {
        hn_chat_say("think %s from the next answer on", arg);
    }
}

void hn_chat_print_stats(const chat *c, const chat_stats *s, const char *what)
{
    char prefill[48] = "", decode[48] = "", ttft[48] = "";
    if (s->prefill_ms > 0)
        snprintf(prefill, sizeof prefill, " (%.1f tok/s)", (double)s->prefilled / s->prefill_ms * 1e3);
    if (s->decode_ms > 0) snprintf(decode, sizeof decode, " (%.1f tok/s)", (double)s->decoded / s->decode_ms * 1e3);
    if (s->ttft_ms > 0) snprintf(ttft, sizeof ttft, ", first token after %.0f ms", s->ttft_ms);
    hn_chat_say("%s: %lld tokens prefilled%s, %lld reused, %lld generated%s%s", what, (long long)s->prefilled, prefill,
                (long long)s->reused, (long long)s->generated, decode, ttft);
}

static void cmd_stats(chat *c, char *arg)
{
    hn_chat_print_stats(c, &c->last, "last answer");
    chat_stats all = c->total;
    all.ttft_ms = 0;
    hn_chat_print_stats(c, &all, "all answers");
    hn_chat_say("%zu messages, %zu of them yours; %d of %d positions of the context hold tokens; %s, %d threads",
                c->talk.n, count(c, CHAT_USER), hone_seq_length(c->session, 0), hone_session_n_ctx(c->session),
                hone_context_cpu(c->ctx), hone_context_threads(c->ctx));
}

static void cmd_quit(chat *c, char *arg) { c->quit = true; }

static const command commands[] = {
    { "help", "", "this list", cmd_help },
    { "reset", "", "begin anew; the system prompt stays", cmd_reset },
    { "retry", "", "answer the last message again, with other random numbers", cmd_retry },
    { "undo", "", "take back the last message and its answer", cmd_undo },
    { "save", "[FILE]", "write the conversation to FILE, or to that of the last time", cmd_save },
    { "load", "[FILE]", "go on with a saved conversation", cmd_load },
    { "system", "[TEXT]", "show or change the system prompt; - removes it", cmd_system },
    { "params", "[NAME VALUE]", "show all parameters, or change one", cmd_params },
    { "think", "HOW", "reason or not: on, off, low, medium, high; show or hide it", cmd_think },
    { "stats", "", "tokens and rates of the last answer and of all", cmd_stats },
    { "quit", "", "leave; also /bye and /exit", cmd_quit },
    { NULL, NULL, NULL, NULL },
};

static void cmd_help(chat *c, char *arg)
{
    for (const command *k = commands; k->name; k++)
        hn_err_printf("  /%s%s%-*s %s\n", k->name, *k->args ? " " : "", (int)(26 - strlen(k->name) - !!*k->args),
                      k->args, k->help);
    hn_err_printf("%s",
                  "A line ending in \\ goes on in the next one; lines between two lines of \"\"\" are one message;\n"
                  "// at the beginning sends a message that begins with one slash. Ctrl-C stops an answer, or\n"
                  "clears the line; Ctrl-D leaves.\n");
}

const char *hn_chat_command_name(size_t i) { return i < sizeof commands / sizeof *commands ? commands[i].name : NULL; }

/* Words of other programs: *arg goes on behind what is part of them. NULL: none of these. */
static const char *word_of_others(const char *name, char **arg)
{
    static const struct {
        const char *name, *first, *is; /* first: the word behind it, "" any or none */
    } words[] = {
        { "bye", "", "quit" },
        { "exit", "", "quit" },
        { "q", "", "quit" },
        { "?", "", "help" },
        { "clear", "", "reset" },
        { "new", "", "reset" },
        { "regen", "", "retry" },
        { "set", "parameter", "params" },
        { "set", "system", "system" },
        { "show", "system", "system" },
        { "show", "parameters", "params" },
        { "show", "info", "stats" },
    };
    size_t n = strcspn(*arg, " \t\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *first = words[i].first;
        if (strcmp(words[i].name, name) != 0 || (*first && (strlen(first) != n || strncmp(first, *arg, n) != 0)))
            continue;
        if (*first) *arg += n + strspn(*arg + n, " \t\n");
        return words[i].is;
    }
    return NULL;
}

void hn_chat_command(chat *c, const char *line)
{
    size_t n = strcspn(line + 1, " \t\n");
    char *name = strndup(line + 1, n), *rest = strdup(line + 1 + n), *arg = rest;
    if (!name || !rest) {
        hn_chat_say("no memory for a command");
        goto done;
    }
    arg += strspn(arg, " \t\n");
    for (size_t k = strlen(arg); k && strchr(" \t\n", arg[k - 1]); k--) arg[k - 1] = 0;
    const command *k = commands;
    const char *other = word_of_others(name, &arg), *want = other ? other : name;
    while (k->name && strcmp(k->name, want) != 0) k++;
    if (!k->name) {
        const char *names[16], *near;
        size_t m = 0;
        for (const command *j = commands; j->name; j++) names[m++] = j->name;
        near = hn_nearest(name, names, m);
        if (near) hn_chat_say("unknown command '/%s'; did you mean /%s?", HN_ESC(name, strlen(name)), near);
        else
            hn_chat_say("unknown command '/%s'; /help lists them, // sends a message that begins with a slash",
                        HN_ESC(name, strlen(name)));
    } else if (!*k->args && *arg) {
        hn_chat_say("/%s takes nothing after it, and there is '%s'", k->name, HN_ESC(arg, strlen(arg)));
    } else {
        k->run(c, arg);
    }
done:
    free(name);
    free(rest);
}
