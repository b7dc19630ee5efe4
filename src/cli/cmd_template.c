/* hone template: renders a chat template with the variables of a JSON file, and prints
 * exactly what it wrote. For looking at what a model is really told. */
#include "base/json_tree.h"
#include "cli/cli.h"

#include <stdlib.h>

static const hn_opt template_opts[] = {
    HN_OPT("file", "-f", FILE, "FILE",
           "the template: Jinja source; - is standard input (default: the one in the model)"),
    HN_OPT("context", NULL, FILE, "FILE",
           "JSON object of the variables: messages, tools, add_generation_prompt, bos_token …; nothing is added"),
    HN_OPT("format", NULL, FLAG, NULL,
           "instead of rendering, say how it marks the parts of an answer: reasoning, channels, the end of a turn"),
    HN_OPT("now", NULL, STR, "TIME",
           "what strftime_now tells, as in 2026-02-03T04:05:06, +01:00 behind it where that is not GMT (default: the "
           "clock)"),
    HN_OPT_END,
};
static const hn_opt_group template_group = { "Template", template_opts };
static const hn_opt_group *const groups[] = { &hn_group_model, &template_group, NULL };

/* A template that does not work is a failure, not a bad model. */
static int as_failure(int code) { return code == HN_EXIT_NOMEM ? code : HN_EXIT_FAILURE; }
static int fail(const hone_error *err) { return as_failure(hn_cli_fail(err)); }

/* Whether the context names tools: some models have another template for them. Bad JSON is told by who renders. */
static hone_status has_tools(bool *yes, const char *context, hone_error *err)
{
    json_t *c;
    hone_status st =
        hn_json_tree(&c, context, strlen(context), &(hn_json_rules){ .flags = HN_JSON_ALLOW_NUL }, "context", err);
    *yes = json_array_size(json_object_get(c, "tools")) > 0;
    json_decref(c);
    return st == HONE_E_NOMEM ? st : HONE_OK;
}

static int from_model(const hn_cli *cli, const char *context, hone_model **m, hone_str *source)
{
    hone_error err;
    bool tools;
    int rc = hn_cli_open_model(cli, true, m);
    if (rc) return rc;
    if (has_tools(&tools, context, &err) != HONE_OK) return hn_cli_fail(&err);
    return hone_chat_template(*m, tools, source, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

static int print(const hn_cli *cli, const char *text, size_t len)
{
    if (cli->json) {
        json_t *o = hn_json_new("hone.template/1");
        if (o && json_object_set_new(o, "text", hn_json_str(text, len)) != 0) {
            json_decref(o);
            o = NULL;
        }
        return hn_json_print(o);
    }
    hn_out_write(text, len);
    return hn_out_failed() ? HN_EXIT_FAILURE : 0;
}

/* --format: what hone chat and hone run --chat go by. */
static int print_format(const hn_cli *cli, const hone_model *m, const char *source)
{
    hone_error err;
    hone_chat_format *f;
    hone_chat_params p = { .chat_template = source, .now = hn_opts_str(cli->opts, "now") };
    if (hone_chat_format_new(&f, m, &p, &err) != HONE_OK) return fail(&err);
    const char *json = hone_chat_format_json(f);
    hn_out_write(json, strlen(json));
    hn_out_write("\n", 1);
    hone_chat_format_free(f);
    return hn_out_failed() ? HN_EXIT_FAILURE : 0;
}

static int format(const hn_cli *cli, const char *file)
{
    hone_model *m = NULL;
    hone_error err;
    char *source = NULL;
    size_t n;
    int rc = 0;
    if (hn_opts_str(cli->opts, "context"))
        return hn_cli_usage(cli, "--context with --format, which renders conversations of its own");
    if (!file) rc = hn_cli_open_model(cli, true, &m);
    else if (hn_read_all(file, &source, &n, &err) != HONE_OK)
        rc = as_failure(hn_cli_fail_input(cli, "--file", file, &err));
    else if (strlen(source) != n)
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: not a template: a NUL byte", HN_ESC(file, strlen(file)));
    if (!rc) rc = print_format(cli, m, source);
    free(source);
    hone_model_close(m);
    return rc;
}

static int run(const hn_cli *cli)
{
    const char *file = hn_opts_str(cli->opts, "file"), *context_file = hn_opts_str(cli->opts, "context"),
               *now = hn_opts_str(cli->opts, "now");
    hone_model *m = NULL;
    hone_error err;
    hone_str source = { 0 };
    char *read = NULL, *context = NULL, *text = NULL;
    size_t n_read, n_context, n = 0;
    int rc = 0;
    if (file && hn_opts_str(cli->opts, "model")) return hn_cli_usage(cli, "both -m and --file; expected one template");
    if (!file && !hn_opts_str(cli->opts, "model"))
        return hn_cli_usage(cli, "no template; expected -m FILE.gguf or --file FILE.jinja");
    if (hn_opts_flag(cli->opts, "format")) return format(cli, file);
    if (!context_file) return hn_cli_usage(cli, "no variables; expected --context FILE.json");
    if (hn_read_all(context_file, &context, &n_context, &err) != HONE_OK)
        rc = as_failure(hn_cli_fail_input(cli, "--context", context_file, &err));
    else if (strlen(context) != n_context)
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: not JSON: a NUL byte", HN_ESC(context_file, strlen(context_file)));
    else if (!file) rc = from_model(cli, context, &m, &source);
    else if (hn_read_all(file, &read, &n_read, &err) != HONE_OK)
        rc = as_failure(hn_cli_fail_input(cli, "--file", file, &err));
    else source = (hone_str){ read, n_read };
    const char *name = file ? HN_ESC(file, strlen(file)) : hn_cli_model_name(cli);
    if (!rc && hone_template_render(source.ptr, source.len, name, context, now, &text, &n, &err) != HONE_OK)
        rc = fail(&err);
    if (!rc) rc = print(cli, text, n);
    hone_free(text);
    free(read);
    free(context);
    hone_model_close(m);
    return rc;
}

const hn_command hn_command_template = {
    .name = "template",
    .summary = "Render a chat template with given variables",
    .groups = groups,
    .examples = "hone template -m model.gguf --context chat.json\n"
                "hone template -m model.gguf --format\n"
                "hone template --file chat.jinja --context chat.json --now 2026-02-03T04:05:06\n",
    .run = run,
};
