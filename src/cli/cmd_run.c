/* hone run: a prompt in, generated text out. Reads in the order of the path of a
 * token: model, prompt, session, prefill, then pick, show, decode until the end. */
#include "base/json_tree.h"
#include "cli/screen.h"

#include <stdlib.h>
#include <unistd.h>

enum { ENDLESS = 4096 }; /* tokens to make room for with -n -1 */

static const hn_opt generation_opts[] = {
    HN_OPT("n-predict", "-n --predict", I32, "N", "tokens to generate; -1: until the end of text or of the context",
           .def = "128", .min = -1, .max = INT32_MAX),
    HN_OPT("stop", "-r --reverse-prompt", STR, "TEXT", "stop before TEXT; may be given many times", .repeat = true),
    HN_OPT("ignore-eos", NULL, FLAG, NULL, "go on after an end-of-text token"),
    HN_OPT("no-echo", "--no-display-prompt", FLAG, NULL, "do not print the prompt before the text"),
    HN_OPT_END,
};
static const hn_opt_group generation_group = { "Generation", generation_opts };
static const hn_opt form_opts[] = {
    HN_OPT("json-schema", "-jf --json-schema-file", FILE, "FILE", "the answer is JSON that this schema allows"),
    HN_OPT("grammar", "--grammar-file", FILE, "FILE", "the answer is what these rules (GBNF) match"),
    HN_OPT("regex", NULL, STR, "RE", "all of the answer matches this regular expression"),
    HN_OPT("choice", NULL, STR, "TEXT", "the answer is one of these; may be given many times", .repeat = true),
    HN_OPT("finish-json", NULL, FLAG, NULL, "of any of these forms: the answer is whole within the tokens of -n"),
    HN_OPT_END,
};
static const hn_opt_group form_group = { "Form of the answer", form_opts };
static const hn_opt chat_opts[] = {
    HN_OPT("chat", NULL, FLAG, NULL, "the prompt is a message: wrap it in the model's chat template"),
    HN_OPT("system", NULL, STR, "TEXT", "system message before it"),
    HN_OPT("chat-template", NULL, STR, "NAME",
           "format to use instead of the model's template: chatml, llama3, mistral …, or @FILE with Jinja source",
           .use = HN_USE_AT),
    HN_OPT(
        "tools", NULL, FILE, "FILE",
        "tools that the model may call, a JSON array as OpenAI's API takes it; its calls are printed as lines of JSON"),
    HN_OPT("trust-input", NULL, FLAG, NULL, "let names of control tokens in the message become control tokens"),
    HN_OPT_END,
};
static const hn_opt_group chat_group = { "Chat", chat_opts };
static const hn_opt_group *const groups[] = { &hn_group_model,
                                              &hn_group_lora,
                                              &hn_group_prompt,
                                              &chat_group,
                                              &hn_group_reasoning,
                                              &generation_group,
                                              &form_group,
                                              &hn_group_sampling,
                                              &hn_group_context,
                                              &hn_group_compute,
                                              NULL };

typedef struct job {
    const hn_cli *cli;
    hone_model *model;
    hone_model_info info;
    hone_context *ctx;
    hone_session *session;
    hone_sampler *sampler;
    hone_grammar *grammar; /* NULL: any text */
    hone_matcher *matcher;
    uint64_t *allowed;        /* [(n_vocab + 63) / 64] */
    hone_stream *stream;      /* NULL: no tokenizer, or a chat */
    hone_chat_format *format; /* --chat: how an answer is marked, … */
    hone_chat_text rendered;  /* … what it continues, … */
    hone_reply *reply;        /* … and the answer; NULL: the text is shown as it is */
    hn_screen screen;
    hn_said reasoning; /* for JSON */
    char *tools;       /* --tools; NULL: none */
    json_t *calls;     /* of them: [{"id", "name", "arguments": text}]; the last one's may be still to come, … */
    hn_said arguments; /* … up to here */
    hn_prompt prompt;
    uint64_t seed;
    int32_t limit;   /* -n */
    int32_t *tokens; /* generated; capacity n_ctx */
    int32_t n_tok;
    char *text; /* generated, for JSON */
    size_t text_len, text_cap;
    bool text_begun;
    bool finish;                                                    /* the form is whole within the tokens */
    const char *stop;                                               /* why it ended */
    double t_start, t_submit, t_prefill, t_logits, t_first, t_last; /* ms; t_logits 0: the prompt was not finished */
} job;

/* ---- setting up ------------------------------------------------------------------------------ */

/* Is --chat-template itself at fault, and not the message? */
static bool wrong_name(const job *j, const char *format)
{
    hone_chat_text t;
    hone_chat_params p = { .messages = "[{\"role\":\"user\",\"content\":\"x\"}]", .chat_template = format };
    if (!format) return false;
    bool wrong = hone_chat_render(j->model, &p, &t, NULL) == HONE_E_ARG;
    if (!wrong) hone_chat_text_free(&t);
    return wrong;
}

/* What the conversation was not rendered for, by the name that the command line has for it. */
static int not_rendered(const job *j, const char *format, const hone_error *err)
{
    const char *tools = hn_opts_str(j->cli->opts, "tools"), *why = err->message;
    static const char of_tools[] = "tools: ", of_variables[] = "variables: ";
    if (err->code != HONE_E_ARG || wrong_name(j, format)) return hn_cli_fail(err);
    if (hn_opts_given(j->cli->opts, "chat-vars") && strncmp(why, of_variables, sizeof of_variables - 1) == 0)
        return hn_cli_usage(j->cli, "--chat-vars: %s", why + sizeof of_variables - 1);
    if (strncmp(why, "think ", 6) == 0) return hn_cli_usage(j->cli, "--%s", why);
    if (!tools || strncmp(why, "tools", 5) != 0) return hn_cli_error(HN_EXIT_FAILURE, "%s", why);
    if (strncmp(why, of_tools, sizeof of_tools - 1) == 0) why += sizeof of_tools - 1;
    return hn_cli_usage(j->cli, "--tools %s: %s", HN_ESC(tools, strlen(tools)), why);
}

/* The text of -p or -f as one user message in the model's chat template. */
static int chat_prompt(job *j)
{
    const hn_opts *o = j->cli->opts;
    const char *text = hn_opts_str(o, "prompt"), *file = hn_opts_str(o, "file"), *system = hn_opts_str(o, "system"),
               *format = hn_opts_str(o, "chat-template");
    hone_error err;
    char *source = NULL;
    size_t n_source;
    if (hn_opts_str(o, "ids")) return hn_cli_usage(j->cli, "--chat with --ids; expected text, -p or -f");
    if (hn_opts_flag(o, "no-bos") || hn_opts_flag(o, "no-special"))
        return hn_cli_usage(j->cli, "--chat with --%s; the template decides on special tokens",
                            hn_opts_flag(o, "no-bos") ? "no-bos" : "no-special");
    hn_cli_say_unread(j->cli);
    if (!text && !file && !hn_cli_piped()) return hn_cli_usage(j->cli, "no prompt; expected -p TEXT or -f FILE");
    if (!j->info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so it cannot chat", hn_cli_model_name(j->cli));
    int rc = hn_cli_prompt_text(j->cli, &j->prompt);
    if (rc) return rc;
    if (format && *format == '@') {
        if (hn_read_all(format + 1, &source, &n_source, &err) != HONE_OK)
            return hn_cli_fail_input(j->cli, "--chat-template @", format + 1, &err);
        format = source;
    }
    rc = format ? 0 : hn_cli_adapters_template(j->cli, j->model, &format);
    if (rc) return rc;
    json_t *messages = json_array();
    if (system)
        json_array_append_new(
            messages, json_pack("{s:s, s:o}", "role", "system", "content", hn_json_str(system, strlen(system))));
    json_array_append_new(
        messages, json_pack("{s:s, s:o}", "role", "user", "content", hn_json_str(j->prompt.text, j->prompt.len)));
    char *dump = hn_json_text(messages, JSON_COMPACT);
    const char *tools = hn_opts_str(o, "tools");
    size_t n_tools;
    if (tools && hn_opts_flag(o, "ignore-eos"))
        rc = hn_cli_usage(j->cli, "--ignore-eos with --tools; a call has an end");
    else if (tools && hn_read_all(tools, &j->tools, &n_tools, &err) != HONE_OK)
        rc = hn_cli_fail_input(j->cli, "--tools", tools, &err);
    hone_chat_params p = { .messages = dump,
                           .tools = j->tools,
                           .chat_template = format,
                           .add_generation_prompt = true,
                           .trust_input = hn_opts_flag(o, "trust-input") };
    char *variables = NULL;
    if (!rc && !dump) rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for the message");
    else if (!rc && hn_cli_chat_variables(j->cli, j->model, &p, hn_opts_str(o, "think"), &variables, &err) != HONE_OK)
        rc = not_rendered(j, format, &err);
    p.variables = variables;
    if (rc) goto done;
    if (hone_chat_tokenize(j->model, &p, &j->prompt.ids, &j->prompt.n, &err) != HONE_OK ||
        hone_chat_render(j->model, &p, &j->rendered, &err) != HONE_OK ||
        hone_chat_format_new(&j->format, j->model, &p, &err) != HONE_OK)
        rc = not_rendered(j, format, &err);
    else if (j->prompt.n == 0 || j->prompt.n > INT32_MAX)
        rc = hn_cli_error(HN_EXIT_FAILURE, "the prompt has %zu tokens", j->prompt.n);
    for (size_t i = 0; !rc && i < j->prompt.n; i++)
        if (j->prompt.ids[i] >= j->info.n_vocab)
            rc = hn_cli_error(HN_EXIT_MODEL,
                              "%s: its tokenizer gives token id %d, but tensor token_embd.weight has %d rows",
                              hn_cli_model_name(j->cli), j->prompt.ids[i], j->info.n_vocab);
done:
    hone_free(variables);
    json_decref(messages);
    free(dump);
    free(source);
    return rc;
}

static int make_prompt(job *j)
{
    static const char *const only_chat[] = { "system", "chat-template", "tools",    "trust-input",
                                             "think",  "reasoning",     "chat-vars" };
    int rc = hn_cli_check_reasoning(j->cli);
    if (rc) return rc;
    if (hn_opts_flag(j->cli->opts, "chat")) return chat_prompt(j);
    for (size_t i = 0; i < sizeof only_chat / sizeof *only_chat; i++)
        if (hn_opts_given(j->cli->opts, only_chat[i])) return hn_cli_usage(j->cli, "--%s is for --chat", only_chat[i]);
    return hn_cli_prompt(j->cli, j->model, &j->prompt);
}

static int new_sampler(job *j)
{
    hone_sampler_params p;
    hone_error err;
    int rc = hn_cli_sampling(j->cli, &p);
    if (rc) return rc;
    j->seed = p.seed;
    if (hone_sampler_new(&j->sampler, j->info.n_vocab, &p, &err) != HONE_OK) return hn_cli_fail(&err);
    if (hone_sampler_suppress(j->sampler, j->model, &err) != HONE_OK) return hn_cli_fail(&err);
    for (size_t i = 0; i < j->prompt.n; i++) hone_sampler_accept(j->sampler, j->prompt.ids[i]);
    return 0;
}

/* The form that one of the options asks for, if any does. */
static int new_grammar(job *j)
{
    static const char *const names[] = { "json-schema", "grammar", "regex", "choice" };
    static const hone_grammar_kind kinds[] = { HONE_GRAMMAR_JSON_SCHEMA, HONE_GRAMMAR_GBNF, HONE_GRAMMAR_REGEX,
                                               HONE_GRAMMAR_CHOICE };
    const hn_opts *o = j->cli->opts;
    int which = -1;
    for (int i = 0; i < 4; i++) {
        if (!hn_opts_given(o, names[i])) continue;
        if (which >= 0) return hn_cli_usage(j->cli, "--%s with --%s; expected one of them", names[which], names[i]);
        which = i;
    }
    j->finish = hn_opts_flag(o, "finish-json");
    if (j->finish && (which < 0 || j->limit < 0))
        return hn_cli_usage(j->cli, "--finish-json ends a form within its tokens; expected %s beside it",
                            which < 0 ? "--json-schema, --grammar, --regex or --choice" : "-n with a number of them");
    if (which < 0) return 0;
    if (hn_opts_flag(o, "ignore-eos"))
        return hn_cli_usage(j->cli, "--ignore-eos with --%s; a text of that form has an end", names[which]);
    if (!j->info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "--%s needs text, and %s has no tokenizer", names[which],
                            hn_cli_model_name(j->cli));
    hone_error err;
    char *text = NULL;
    size_t n = which == 3 ? hn_opts_count(o, "choice") : 0;
    hone_str *choices = n ? calloc(n, sizeof *choices) : NULL;
    hone_grammar_params p = { .kind = kinds[which], .choices = choices, .n_choices = n };
    const char *value = hn_opts_str(o, names[which]);
    if (n && !choices) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %zu choices", n);
    for (size_t i = 0; i < n; i++) {
        const char *c = hn_opts_nth(o, "choice", i);
        choices[i] = (hone_str){ c, strlen(c) };
    }
    if (which == 2) p.text = value, p.len = strlen(value);
    int rc = 0;
    if (which < 2 && hn_read_all(value, &text, &p.len, &err) != HONE_OK)
        rc = hn_cli_fail_input(j->cli, which ? "--grammar" : "--json-schema", value, &err);
    if (which < 2) p.text = text;
    if (!rc && hone_grammar_compile(&j->grammar, &p, &err) != HONE_OK)
        rc = which < 2 ? hn_cli_error(hn_exit_code(err.code) == HN_EXIT_NOMEM ? HN_EXIT_NOMEM : HN_EXIT_USAGE,
                                      "--%s %s: %s", names[which], value, err.message)
                       : hn_cli_error(HN_EXIT_USAGE, "--%s: %s", names[which], err.message);
    if (!rc && *hone_grammar_notes(j->grammar)) hn_cli_note("--%s: %s", names[which], hone_grammar_notes(j->grammar));
    if (!rc && hone_matcher_new(&j->matcher, j->grammar, j->model, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (!rc && !(j->allowed = calloc(((size_t)j->info.n_vocab + 63) / 64, sizeof *j->allowed)))
        rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for a mask");
    free(text);
    free(choices);
    return rc;
}

static int new_stream(job *j)
{
    const hn_opts *o = j->cli->opts;
    size_t n = hn_opts_count(o, "stop");
    if (!j->info.has_tokenizer) {
        if (n)
            return hn_cli_error(HN_EXIT_MODEL, "--stop needs text, and %s has no tokenizer", hn_cli_model_name(j->cli));
        return 0;
    }
    const char **stops = calloc(n + 1, sizeof *stops);
    if (!stops) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %zu stop strings", n);
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        stops[i] = hn_opts_nth(o, "stop", i);
        if (!*stops[i]) rc = hn_cli_usage(j->cli, "--stop is empty; expected some text");
    }
    hone_error err;
    if (rc == 0 && j->format && !hn_opts_flag(o, "ignore-eos")) {
        hone_reply_params p = { .format = j->format,
                                .prompt = &j->rendered,
                                .stops = stops,
                                .n_stops = n,
                                .form = j->grammar,
                                .tools = j->tools,
                                .reasoning_budget = -1,
                                .id_seed = j->seed };
        if (hone_reply_open(&j->reply, &p, &err) != HONE_OK) rc = hn_cli_fail(&err);
        if (!rc && *hone_reply_notes(j->reply)) hn_cli_note("--tools: %s", hone_reply_notes(j->reply));
        if (!rc && j->tools && !(j->calls = json_array())) rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for calls");
        if (!rc && j->tools && !j->allowed &&
            !(j->allowed = calloc(((size_t)j->info.n_vocab + 63) / 64, sizeof *j->allowed)))
            rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for a mask");
        hone_matcher_free(j->matcher); /* the answer keeps its form itself, from behind the reasoning */
        j->matcher = NULL;
        hn_screen_open(&j->screen, j->cli, j->cli->json);
        hn_screen_begin(&j->screen);
    } else if (rc == 0 && hone_stream_new(&j->stream, j->model, stops, n, &err) != HONE_OK) rc = hn_cli_fail(&err);
    free(stops);
    return rc;
}

static int new_session(job *j)
{
    int64_t n_more = j->limit < 0 ? ENDLESS : j->limit;
    int rc = hn_cli_open_session(j->cli, j->ctx, j->model, j->prompt.n, n_more, 1, &j->session);
    if (rc) return rc;
    int32_t n_ctx = hone_session_n_ctx(j->session);
    int64_t room = (int64_t)n_ctx - hone_seq_length(j->session, 0) - (int64_t)j->prompt.n + 1;
    if (hn_opts_given(j->cli->opts, "n-predict") && j->limit > room)
        hn_cli_note("-n %d: the context of %d positions has room for %d tokens behind the prompt%s", j->limit, n_ctx,
                    (int)room, hn_opts_given(j->cli->opts, "ctx-size") ? "" : "; the model was trained for so many");
    j->tokens = malloc(((size_t)n_ctx + 1) * sizeof *j->tokens);
    return j->tokens ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for %d token ids", n_ctx);
}

/* ---- output ------------------------------------------------------------------------------------ */

static bool show(job *j, const char *text, size_t len)
{
    if (!len) return true;
    if (!j->cli->json) return hn_out_write(text, len) && hn_out_flush();
    if (j->text_len + len > j->text_cap) {
        size_t cap = (j->text_len + len) * 2;
        char *t = realloc(j->text, cap);
        if (!t) return false;
        j->text = t;
        j->text_cap = cap;
    }
    memcpy(j->text + j->text_len, text, len);
    j->text_len += len;
    return true;
}

static int echo_prompt(job *j)
{
    if (j->cli->json || hn_opts_flag(j->cli->opts, "no-echo") || hn_opts_flag(j->cli->opts, "chat"))
        return 0; /* a chat shows answers */
    if (j->prompt.text) {
        show(j, j->prompt.text, j->prompt.len);
    } else if (j->stream) {
        char *text;
        size_t len;
        hone_error err;
        if (hone_detokenize(j->model, j->prompt.ids, j->prompt.n, false, &text, &len, &err) != HONE_OK)
            return hn_cli_fail(&err);
        show(j, text, len);
        hone_free(text);
    }
    return 0;
}

/* Whether a prompt that shows nothing (a lone BOS) makes the text drop the space its
 * first word begins with: SentencePiece puts one there that is not part of the text. */
static bool drops_space(const job *j)
{
    char *text = NULL;
    size_t len = 1, n = j->prompt.n + (size_t)j->n_tok;
    int32_t *ids = malloc(n * sizeof *ids);
    if (!ids) return false;
    memcpy(ids, j->prompt.ids, j->prompt.n * sizeof *ids);
    memcpy(ids + j->prompt.n, j->tokens, (size_t)j->n_tok * sizeof *ids);
    bool drops = hone_detokenize(j->model, ids, j->prompt.n, false, &text, &len, NULL) == HONE_OK && len == 0;
    hone_free(text);
    text = NULL;
    drops =
        drops && hone_detokenize(j->model, ids, n, false, &text, &len, NULL) == HONE_OK && (len == 0 || *text != ' ');
    hone_free(text);
    free(ids);
    return drops;
}

/* Text of the stream: shown, and kept for JSON. */
static bool show_generated(job *j, const char *text, size_t len)
{
    if (!len) return true;
    if (!j->text_begun && *text == ' ' && drops_space(j)) text++, len--;
    j->text_begun = true;
    return show(j, text, len);
}

/* The arguments of the last call are all there, or there will be no more. */
static bool end_call(job *j)
{
    json_t *last = json_array_get(j->calls, json_array_size(j->calls) - 1);
    const char *text = j->arguments.p ? j->arguments.p : "";
    bool ok = json_object_set_new(last, "arguments", hn_json_str(text, j->arguments.n)) == 0;
    j->arguments.n = 0;
    return ok;
}

/* A part of a call is kept; *mine: it is one. */
static hone_status take_call(job *j, const hone_reply_part *p, bool *mine, hone_error *err)
{
    bool ok = true;
    *mine = p->part == HONE_PART_CALL_NAME || p->part == HONE_PART_ARGUMENTS || p->part == HONE_PART_CALL_END;
    if (p->part == HONE_PART_ARGUMENTS) return hn_said_add(&j->arguments, p->text, p->len, err);
    if (p->part == HONE_PART_CALL_NAME) {
        json_t *call = json_pack("{s:s, s:o}", "id", p->id ? p->id : "", "name", hn_json_str(p->text, p->len));
        ok = json_array_append_new(j->calls, call) == 0;
    } else if (p->part == HONE_PART_CALL_END) {
        ok = end_call(j);
    }
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "no memory for the call of a tool");
}

/* A part of an answer: shown, or kept for JSON. */
static hone_status show_part(job *j, const hone_reply_part *p, bool *done, hone_error *err)
{
    if (j->cli->json && p->part == HONE_PART_TEXT && !show(j, p->text, p->len))
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu bytes of text", j->text_len);
    hone_status st =
        j->cli->json && p->part == HONE_PART_REASONING ? hn_said_add(&j->reasoning, p->text, p->len, err) : HONE_OK;
    if (st == HONE_OK && !hn_screen_show(&j->screen, p, 1)) *done = true;
    return st;
}

static hone_status show_parts(job *j, const hone_reply_part *parts, size_t n, bool *done, hone_error *err)
{
    hone_status st = HONE_OK;
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        bool call = false;
        if (j->calls) st = take_call(j, &parts[i], &call, err);
        if (st == HONE_OK && !call) st = show_part(j, &parts[i], done, err);
    }
    return st;
}

/* The same of an answer in a chat: its parts, and where its turn ends. */
static hone_status emit_reply(job *j, int32_t id, bool *done, hone_error *err)
{
    const hone_reply_part *parts;
    size_t n;
    hone_reply_end end;
    hone_status st = hone_reply_push(j->reply, id, &parts, &n, &end, err);
    if (st == HONE_OK) st = show_parts(j, parts, n, done, err);
    if (end) {
        j->stop = end == HONE_REPLY_TURN ? "eos" : "stop";
        *done = true;
    }
    return st;
}

/* Shows one token. *done: a stop string is complete, or nobody reads any more. */
static hone_status emit(job *j, int32_t id, bool *done, hone_error *err)
{
    const char *text;
    size_t len;
    j->tokens[j->n_tok++] = id;
    if (j->reply) return emit_reply(j, id, done, err);
    if (!j->stream) { /* no words: the numbers themselves */
        char num[16];
        int n = snprintf(num, sizeof num, "%s%d", j->n_tok > 1 ? " " : "", id);
        if (!j->cli->json) *done = !show(j, num, (size_t)n);
        return HONE_OK;
    }
    bool stopped = false;
    hone_status st = hone_stream_push(j->stream, id, &text, &len, &stopped, err);
    if (st != HONE_OK) return st;
    if (!show_generated(j, text, len)) {
        if (j->cli->json) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu bytes of text", j->text_len);
        *done = true;
    }
    if (stopped) {
        j->stop = "stop";
        *done = true;
    }
    return HONE_OK;
}

static double rate(int64_t n, double ms) { return n > 0 && ms > 0 ? (double)n / ms * 1e3 : -1; }

static json_t *rate_json(double r) { return r < 0 ? json_null() : hn_json_num(r); }

static int print_json(job *j)
{
    json_t *o = hn_json_new("hone.run/1"), *t = json_object();
    json_object_set_new(o, "prompt_tokens", hn_json_ids(j->prompt.ids, j->prompt.n));
    json_object_set_new(o, "tokens", hn_json_ids(j->tokens, (size_t)j->n_tok));
    json_object_set_new(o, "text", hn_json_str(j->text ? j->text : "", j->text_len));
    if (j->calls) json_object_set(o, "tool_calls", j->calls);
    if (j->reply)
        json_object_set_new(o, "reasoning", hn_json_str(j->reasoning.p ? j->reasoning.p : "", j->reasoning.n));
    json_object_set_new(o, "stop", json_string(j->stop));
    json_object_set_new(t, "load_ms", hn_json_num(j->t_submit - j->t_start));
    json_object_set_new(t, "ttft_ms", j->n_tok ? hn_json_num(j->t_first - j->t_submit) : json_null());
    json_object_set_new(t, "prefill_tok_s", rate_json(rate((int64_t)j->prompt.n, j->t_logits - j->t_prefill)));
    json_object_set_new(t, "decode_tok_s", rate_json(rate(j->n_tok - 1, j->t_last - j->t_first)));
    json_object_set_new(o, "timings", t);
    json_object_set_new(o, "seed", json_integer((json_int_t)j->seed));
    json_object_set_new(o, "cpu", json_string(hone_context_cpu(j->ctx)));
    json_object_set_new(o, "threads", json_integer(hone_context_threads(j->ctx)));
    json_object_set_new(o, "threads_batch", json_integer(hone_context_threads_batch(j->ctx)));
    json_object_set_new(o, "weights", json_string(hn_cli_weights(&j->info)));
    json_object_set_new(o, "weights_note", hn_json_str(j->info.packed_note, strlen(j->info.packed_note)));
    json_t *adapters = hn_cli_adapters_json();
    if (adapters) json_object_set_new(o, "adapters", adapters);
    return hn_json_print(o);
}

static void print_timings(const job *j)
{
    if (!j->t_logits || (!j->cli->verbose && !hn_stderr_is_tty())) return;
    char decode[48] = "", adapters[512];
    const char *weights = hn_cli_weights(&j->info), *why = j->info.packed_note;
    if (j->info.packed_path && (j->info.packed_compared || strcmp(why, j->info.packed_path) == 0)) why = "";
    double r = rate(j->n_tok - 1, j->t_last - j->t_first);
    if (r >= 0) snprintf(decode, sizeof decode, ", decode %.2f tok/s", r);
    hn_err_printf("hone: load %.0f ms, %zu prompt tokens in %.0f ms (%.2f tok/s), first token after %.0f ms, %d "
                  "tokens%s; %s, %d threads, %.*s weights%s%s%s%s, seed %llu\n",
                  j->t_submit - j->t_start, j->prompt.n, j->t_logits - j->t_prefill,
                  rate((int64_t)j->prompt.n, j->t_logits - j->t_prefill), j->n_tok ? j->t_first - j->t_submit : 0.0,
                  j->n_tok, decode, hone_context_cpu(j->ctx), hone_context_threads(j->ctx), (int)strcspn(weights, ":"),
                  weights, *why ? " (" : "", why, *why ? ")" : "", hn_cli_adapters_words(adapters, sizeof adapters),
                  (unsigned long long)j->seed);
}

/* ---- generating ---------------------------------------------------------------------------------- */

/* The next token, of those that the form allows. *id -1: none can follow the text that is there. */
static hone_status pick(job *j, const float *logits, int32_t pos, int32_t *id, hone_error *err)
{
    size_t n_words = ((size_t)j->info.n_vocab + 63) / 64;
    int64_t n = 1;
    bool all = !j->grammar && !j->tools;
    hone_status st = HONE_OK;
    int64_t left = j->finish ? (int64_t)j->limit - j->n_tok : -1;
    if (j->matcher) st = hone_matcher_mask_within(j->matcher, left, j->allowed, n_words, &n, err);
    else if (j->reply && !all) st = hone_reply_mask_within(j->reply, left, j->allowed, n_words, &all, err);
    for (size_t i = 0, none = 0; j->reply && !all && st == HONE_OK && i < n_words && n; i++) {
        none += j->allowed[i] == 0;
        if (none == n_words) n = 0;
    }
    if (st == HONE_OK && n == 0 && !(j->matcher && hone_matcher_can_end(j->matcher)))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "grammar: no token of %s can follow; its vocabulary lacks what the form needs",
                       hn_cli_model_name(j->cli));
    hone_pick p = { .allowed = all ? NULL : j->allowed, .pos = pos };
    *id = -1;
    if (st != HONE_OK || n == 0) return st;
    st = hone_sampler_pick_from(j->sampler, logits, &p, id, err);
    if (st == HONE_OK && j->matcher) st = hone_matcher_accept(j->matcher, id, 1, err);
    return st;
}

static hone_status generate(job *j, hone_error *err)
{
    const float *logits;
    hone_status st;
    bool ignore_eos = hn_opts_flag(j->cli->opts, "ignore-eos"), done = false;
    bool keep = hn_opts_str(j->cli->opts, "state-out") != NULL; /* the saved session holds every token shown */
    int32_t n_ctx = hone_session_n_ctx(j->session);

    j->t_prefill = hn_now_ms();
    st = hn_cli_append(j->cli, j->session, j->prompt.ids, (int32_t)j->prompt.n, &logits, err);
    if (st != HONE_OK) return st;
    j->t_logits = hn_now_ms();
    if (hn_cli_append_shows(j->cli, (int32_t)j->prompt.n) && echo_prompt(j) != 0)
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the text of the prompt");
    j->stop = "length";
    while (!done && (j->limit < 0 || j->n_tok < j->limit)) {
        int32_t id, pos = hone_seq_length(j->session, 0);
        if (hn_interrupted()) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if ((st = pick(j, logits, pos, &id, err)) != HONE_OK) return st;
        if (id < 0) { /* the text is whole, and the model has no token that says so */
            j->stop = "eos";
            break;
        }
        if (!ignore_eos && hone_token_is_eog(j->model, id)) {
            if (j->tools) st = emit_reply(j, id, &done, err); /* a call may end with it */
            j->stop = "eos";
            if (st != HONE_OK) return st;
            break;
        }
        hone_sampler_accept(j->sampler, id);
        if ((st = emit(j, id, &done, err)) != HONE_OK) return st;
        j->t_last = hn_now_ms();
        if (j->n_tok == 1) j->t_first = j->t_last;
        if (pos >= n_ctx) {
            if (!done && j->n_tok != j->limit)
                hn_cli_note("the context of %d positions is full; stopped after %d tokens", n_ctx, j->n_tok);
            break;
        }
        if (keep || (!done && j->n_tok != j->limit))
            if ((st = hone_append(j->session, 0, &id, 1, &logits, err)) != HONE_OK) return st;
    }
    return HONE_OK;
}

/* Each call, a line of JSON: its name, and its arguments as they are, or as text where the answer's end cut them. */
static void print_calls(const job *j)
{
    size_t i;
    json_t *call;
    json_array_foreach(j->calls, i, call)
    {
        const char *text = hn_json_text_of(call, "arguments");
        json_t *arguments = NULL;
        if (j->cli->json) break;
        bool whole = hn_json_tree(&arguments, text, strlen(text), NULL, "arguments", NULL) == HONE_OK;
        json_t *line = json_pack("{s:O, s:o}", "name", json_object_get(call, "name"), "arguments",
                                 whole ? arguments : json_string(text));
        char *dump = line ? hn_json_text(line, JSON_COMPACT) : NULL;
        if (dump) hn_out_printf("%s\n", dump);
        free(dump);
        json_decref(line);
    }
    hn_out_flush();
}

static int finish(job *j, hone_status st, hone_error *err)
{
    hone_error flush_err;
    const char *text, *state = hn_opts_str(j->cli->opts, "state-out");
    size_t len;
    int code = st == HONE_OK ? 0 : hn_exit_code(st);
    if (st == HONE_E_INTERRUPTED) j->stop = "interrupted";
    if (j->stream && hone_stream_flush(j->stream, &text, &len, &flush_err) == HONE_OK &&
        !(j->stop && strcmp(j->stop, "stop") == 0))
        show_generated(j, text, len);
    const hone_reply_part *parts;
    bool done = false;
    if (j->reply && hone_reply_flush(j->reply, &parts, &len, &flush_err) == HONE_OK) {
        show_parts(j, parts, len, &done, &flush_err);
        if (st == HONE_OK && hone_reply_stop(j->reply)) j->stop = "stop"; /* it was in what was held back */
    }
    if (j->arguments.n) end_call(j); /* cut */
    if (j->reply) {
        if (!json_array_size(j->calls) || j->screen.begun) hn_screen_end(&j->screen); /* else nothing was shown */
        print_calls(j);
    } else if (!j->cli->json) {
        hn_out_write("\n", 1);
        hn_out_flush();
    }
    if (st != HONE_OK && st != HONE_E_INTERRUPTED) return hn_cli_fail_numbers(j->cli, err);
    if (j->cli->json) {
        int rc = print_json(j);
        if (rc) return rc;
    }
    if (hn_out_failed())
        return HN_EXIT_FAILURE; /* it stopped for that: the session would be a part of what was asked for */
    if (st == HONE_OK && state) {
        if ((st = hn_cli_know(j->model, err)) == HONE_OK) st = hone_session_save(j->session, state, err);
        if (st != HONE_OK) return hn_cli_fail(err);
    }
    print_timings(j);
    return code;
}

static int run_job(job *j)
{
    int rc;
    hone_error err;
    j->t_start = hn_now_ms();
    j->limit = hn_opts_i32(j->cli->opts, "n-predict");
    if ((rc = hn_cli_new_context(j->cli, &j->ctx)) || (rc = hn_cli_open_model(j->cli, false, &j->model))) return rc;
    hone_model_get_info(j->model, &j->info);
    double t_prompt = hn_now_ms();
    if ((rc = make_prompt(j))) return rc;
    t_prompt =
        hn_now_ms() - t_prompt; /* the session's size depends on the prompt, but loading does not: count it apart */
    if ((rc = new_session(j)) || (rc = new_sampler(j)) || (rc = new_grammar(j)) || (rc = new_stream(j))) return rc;
    if (!hn_cli_append_shows(j->cli, (int32_t)j->prompt.n) && (rc = echo_prompt(j))) return rc; /* else behind it */
    j->t_submit = hn_now_ms() - t_prompt;
    hone_status st = generate(j, &err);
    return finish(j, st, &err);
}

/* Without a prompt, someone at a terminal wants to talk. */
static const hn_command *instead(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    if (hn_opts_given(o, "prompt") || hn_opts_given(o, "file") || hn_opts_given(o, "ids")) return NULL;
    if (cli->json || !hn_opts_given(o, "model") || !isatty(STDIN_FILENO) || !hn_out_is_tty()) return NULL;
    hn_cli_note("no prompt, so this is hone chat; text from a prompt is: hone run MODEL \"PROMPT\"");
    return &hn_command_chat;
}

static int run(const hn_cli *cli)
{
    job j = { .cli = cli };
    int rc = run_job(&j);
    free(j.text);
    free(j.reasoning.p);
    free(j.arguments.p);
    free(j.tools);
    json_decref(j.calls);
    hone_reply_free(j.reply);
    hone_chat_format_free(j.format);
    hone_chat_text_free(&j.rendered);
    free(j.tokens);
    hn_prompt_free(&j.prompt);
    hone_stream_free(j.stream);
    hone_sampler_free(j.sampler);
    hone_matcher_free(j.matcher);
    hone_grammar_free(j.grammar);
    free(j.allowed);
    hone_session_free(j.session);
    hone_context_free(j.ctx);
    hone_model_close(j.model);
    return rc;
}

const hn_command hn_command_run = {
    .name = "run",
    .summary = "Generate text from a prompt",
    .args = "[MODEL] [PROMPT]",
    .takes = "model prompt",
    .instead = instead,
    .groups = groups,
    .bundled = true,
    .examples = "hone run -m model.gguf -p \"Once upon a time\" -n 200\n"
                "hone run -m model.gguf -f prompt.txt --temp 0 --json\n"
                "hone run -m model.gguf --chat -p \"Why is the sky blue?\" --system \"Answer in one sentence.\"\n"
                "hone run -m model.gguf --chat -p \"Who wrote Faust?\" --json-schema person.json\n",
    .run = run,
};
