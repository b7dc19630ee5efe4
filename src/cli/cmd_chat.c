/* hone chat: a conversation with a model. Sets up what chat_*.c work on, then reads,
 * answers, reads … until the input ends. */
#include "cli/chat/chat_state.h"

#include <stdlib.h>

enum { DEFAULT_CTX = 4096, RECURRENT_CTX = 1 << 20 };

static const hn_opt chat_opts[] = {
    HN_OPT("system", "-sys --system-prompt", STR, "TEXT", "the system prompt; @FILE reads it from FILE",
           .use = HN_USE_AT),
    HN_OPT("chat-template", NULL, STR, "NAME",
           "a format by name (chatml, llama3, …), or @FILE with a Jinja template (default: the model's own)",
           .use = HN_USE_AT),
    HN_OPT("n-predict", "-n --predict", I32, "N", "tokens of one answer; -1: until it ends", .def = "-1", .min = -1,
           .max = INT32_MAX),
    HN_OPT("load", NULL, FILE, "FILE", "go on with a conversation that /save wrote"),
    HN_OPT("ctx-size", "-c", I32, "N",
           "positions of the context; 0: as many as the model was trained for (default: 4096 at most)", .min = 0,
           .max = INT32_MAX),
    HN_OPT("commands", NULL, FLAG, NULL, "obey /commands without a terminal, too"),
    HN_OPT("trust-input", NULL, FLAG, NULL, "let what is typed spell control tokens"),
    HN_OPT_END,
};
static const hn_opt_group chat_group = { "Conversation", chat_opts };
static const hn_opt_group *const groups[] = { &hn_group_model,    &hn_group_lora,    &chat_group, &hn_group_reasoning,
                                              &hn_group_sampling, &hn_group_compute, NULL };

static int read_params(chat *c)
{
    c->params = (chat_params){ .limit = hn_opts_i32(c->cli->opts, "n-predict") };
    return hn_cli_sampling(c->cli, &c->params.sampling);
}

/* --load, whose parameters hold where the command line says nothing. */
static int load(chat *c)
{
    const hn_opts *o = c->cli->opts;
    const char *path = hn_opts_str(o, "load");
    char *model;
    hone_error err;
    if (!path) return 0;
    chat_params given = c->params;
    if (hn_chat_load(path, &c->talk, &c->params, &model, &err) != HONE_OK)
        return hn_cli_fail(&err) == HN_EXIT_NOMEM ? HN_EXIT_NOMEM : HN_EXIT_FAILURE;
    free(model);
    c->file = strdup(path);
    hn_chat_params_keep(&c->params, &given, o);
    return 0;
}

static int read_system(chat *c)
{
    const char *s = hn_opts_str(c->cli->opts, "system");
    if (!s) return 0;
    char *data = NULL;
    size_t n = strlen(s);
    hone_error err;
    if (*s == '@') {
        if (hn_read_all(s + 1, &data, &n, &err) != HONE_OK) return hn_cli_fail_input(c->cli, "--system @", s + 1, &err);
        while (n && (data[n - 1] == '\n' || data[n - 1] == '\r')) n--;
    }
    bool ok = hn_talk_set_system(&c->talk, data ? data : s, n);
    free(data);
    return ok ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for the system prompt");
}

static int new_session(chat *c)
{
    const hn_opts *o = c->cli->opts;
    bool recurrent = c->info.recurrent; /* its memory does not grow with what was said */
    int32_t train = recurrent ? RECURRENT_CTX : c->info.n_ctx_train > 0 ? c->info.n_ctx_train : DEFAULT_CTX;
    int32_t n_ctx = recurrent || train < DEFAULT_CTX ? train : DEFAULT_CTX;
    if (hn_opts_given(o, "ctx-size")) {
        n_ctx = hn_opts_i32(o, "ctx-size");
        if (n_ctx > train && !recurrent && !c->info.n_window)
            hn_cli_note("-c %d is more than the %d positions the model was trained for", n_ctx, train);
        if (n_ctx == 0) n_ctx = train;
    }
    int rc = hn_cli_new_session(c->cli, c->ctx, c->model, n_ctx, 1, &c->session);
    if (rc == 0) hn_cli_session_notes(c->model, n_ctx);
    if (rc) return rc;
    hone_session_set_abort(c->session, hn_line_stop, NULL);
    size_t n = (size_t)hone_session_n_ctx(c->session) + 1;
    c->ids = malloc(n * sizeof *c->ids);
    c->own = malloc(n * sizeof *c->own);
    return c->ids && c->own ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for %zu token ids", n);
}

static int open_all(chat *c)
{
    int rc;
    if ((rc = hn_cli_check_reasoning(c->cli)) || (rc = read_params(c)) || (rc = load(c)) || (rc = read_system(c)) ||
        (rc = hn_cli_new_context(c->cli, &c->ctx)) || (rc = hn_cli_open_model(c->cli, false, &c->model)))
        return rc;
    hone_model_get_info(c->model, &c->info);
    if (!c->info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so it cannot be talked to; try: hone run --ids LIST",
                            hn_cli_model_name(c->cli));
    if ((rc = hn_format_open(c)) || (rc = hn_line_open(&c->line)) || (rc = new_session(c))) return rc;
    hn_screen_open(&c->screen, c->cli, c->cli->json);
    c->screen.wraps = true;
    return 0;
}

static void greet(const chat *c)
{
    const char *name = *c->info.name ? c->info.name : hn_cli_model_name(c->cli);
    char adapters[512];
    hn_chat_say("%s%s, %d positions; /help explains, Ctrl-D leaves", HN_ESC(name, strlen(name)),
                hn_cli_adapters_words(adapters, sizeof adapters), hone_session_n_ctx(c->session));
    if (c->talk.n > 1) hn_chat_say("going on after %zu messages", c->talk.n);
    hn_chat_say_unanswered(c);
}

static void take_message(chat *c, const char *text, size_t len)
{
    size_t before = c->talk.n;
    if (!hn_talk_push(&c->talk, CHAT_USER, text, len)) {
        hn_chat_say("no memory for a message of %zu bytes", len);
        c->n_refused++;
        return;
    }
    c->attempt = 0;
    if (hn_chat_answer(c) != CHAT_REFUSED) return;
    hn_talk_cut(&c->talk, before);
    hn_chat_say_unanswered(c); /* which many templates refuse a second message for */
    c->n_refused++;
}

static bool is_blank(const char *s, size_t n)
{
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    return n == 0;
}

static int talk(chat *c)
{
    const char *text;
    size_t len;
    bool block, tty = hn_line_interactive(c->line), commands = tty || hn_opts_flag(c->cli->opts, "commands"),
                noted = false;
    if (tty) greet(c);
    while (!c->quit && !hn_out_failed()) {
        hn_out_flush();
        switch (hn_line_read(c->line, &text, &len, &block)) {
        case CHAT_CLEARED: continue;
        case CHAT_STOPPED: return hn_exit_code(HONE_E_INTERRUPTED);
        case CHAT_FAILED:
            if (tty) continue;
            return HN_EXIT_FAILURE;
        case CHAT_END:
            if (tty) hn_err_printf("\n");
            return c->n_refused && !tty ? HN_EXIT_FAILURE : HN_EXIT_OK;
        case CHAT_TEXT: break;
        }
        if (is_blank(text, len)) continue;
        if (!block && commands && strcmp(text, "?") == 0) {
            hn_chat_command(c, "/?");
            continue;
        }
        if (!block && text[0] == '/' && commands) {
            if (len < 2 || text[1] != '/') {
                hn_chat_command(c, text);
                continue;
            }
            text++;
            len--;
        } else if (!block && text[0] == '/' && !noted) {
            noted = true;
            hn_cli_note("'%s' is a message here; with --commands such lines are commands", HN_ESC(text, len));
        }
        take_message(c, text, len);
        if (hn_interrupted()) return hn_exit_code(HONE_E_INTERRUPTED);
    }
    return c->n_refused && !tty ? HN_EXIT_FAILURE : HN_EXIT_OK;
}

static int run(const hn_cli *cli)
{
    chat c = { .cli = cli };
    int rc = open_all(&c);
    if (rc == 0) rc = talk(&c);
    hn_line_close(c.line);
    hn_format_close(&c);
    hn_talk_free(&c.talk);
    free(c.ids);
    free(c.own);
    free(c.file);
    hone_session_free(c.session);
    hone_context_free(c.ctx);
    hone_model_close(c.model);
    return rc;
}

const hn_command hn_command_chat = {
    .name = "chat",
    .summary = "Talk with a model",
    .args = "[MODEL]",
    .takes = "model",
    .groups = groups,
    .bundled = true,
    .examples = "hone chat\n"
                "hone chat -m model.gguf --system \"You are brief.\"\n"
                "hone chat -m model.gguf --load talk.json\n"
                "printf 'Hello\\nAnd again\\n' | hone chat -m model.gguf --temp 0\n",
    .run = run,
};
