/* The program: finds the command, parses its options, runs it, makes sure that
 * what it printed has arrived. */
#include "base/file.h"
#include "cli/bench/bench_command.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

extern const hn_command hn_command_run, hn_command_chat, hn_command_bench, hn_command_lab, hn_command_doctor,
    hn_command_perplexity, hn_command_inspect, hn_command_tokenize, hn_command_detokenize, hn_command_template,
    hn_command_logits, hn_command_train, hn_command_merge, hn_command_convert, hn_command_synth, hn_command_pack,
    hn_command_env, hn_command_version, hn_command_help, hn_command_serve, hn_command_embed, hn_command_list,
    hn_command_show, hn_command_rm, hn_command_pull;

const hn_command *const hn_commands[] = {
    &hn_command_run,        &hn_command_chat,
    &hn_command_serve,      &hn_command_bench,
    &hn_command_lab,        &hn_command_doctor,
    &hn_command_perplexity, &hn_command_inspect,
    &hn_command_tokenize,   &hn_command_detokenize,
    &hn_command_template,   &hn_command_logits,
    &hn_command_embed,      &hn_command_train,
    &hn_command_merge,      &hn_command_convert,
    &hn_command_synth,      &hn_command_pack,
    &hn_command_pull,       &hn_command_list,
    &hn_command_show,       &hn_command_rm,
    &hn_command_env,        &hn_command_version,
    &hn_command_help,       NULL,
};

static const hn_opt common_opts[] = {
    HN_OPT("json", NULL, FLAG, NULL, "print one JSON object, with a schema field"),
    HN_OPT("verbose", "-v", FLAG, NULL, "say more on standard error"),
    HN_OPT("help", "-h", FLAG, NULL, "explain this command"),
    HN_OPT_END,
};
static const hn_opt_group common_group = { "Common", common_opts };
const hn_opt_group *const hn_common_groups[] = { &common_group, NULL };

static const hn_command *find_command(const char *name)
{
    for (const hn_command *const *c = hn_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

/* The command below `parent` that `name` means: "ab" is "lab ab". */
static const hn_command *find_sub(const hn_command *parent, const char *name)
{
    size_t n = strlen(parent->name);
    for (const hn_command *const *c = parent->subs; *c; c++)
        if (strcmp((*c)->name + n + 1, name) == 0) return *c;
    return NULL;
}

/* parent NULL: of hone itself. */
static int unknown_command(const hn_command *parent, const char *name)
{
    const char *names[64] = { 0 };
    size_t n = 0, skip = parent ? strlen(parent->name) + 1 : 0;
    hn_cli cli = { .cmd = parent };
    for (const hn_command *const *c = parent ? parent->subs : hn_commands; *c && n < 64; c++)
        names[n++] = (*c)->name + skip;
    const char *near = hn_nearest(name, names, n), *say = parent && near ? NULL : hn_foreign_command(name), *other;
    if (parent && !near && find_command(name))
        return hn_cli_usage(&cli, "unknown laboratory command '%s': it is one of its own, hone %s", name, name);
    if (say)
        return hn_cli_usage(parent ? &cli : NULL, "unknown %s '%s': %s", parent ? "laboratory command" : "command",
                            name, say);
    if (!near && (say = hn_foreign_near(NULL, name, &other)))
        return hn_cli_usage(parent ? &cli : NULL, "unknown %s '%s'; did you mean %s? %s",
                            parent ? "laboratory command" : "command", HN_ESC(name, strlen(name)), other, say);
    char all[200] = ""; /* where they are few */
    for (size_t i = 0, at = 0; parent && !near && n <= 6 && i < n && at < sizeof all; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "; expected ", names[i]);
    return hn_cli_usage(parent ? &cli : NULL, "unknown %s '%s'%s%s%s%s",
                        name[0] == '-' ? "option"
                        : parent       ? "laboratory command"
                                       : "command",
                        HN_ESC(name, strlen(name)), near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
                        all);
}

/* Before the options are known to be right. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0) return true;
    return false;
}

/* A word that cmd does not know but another program does; NULL: none. */
static const char *foreign_option(const hn_command *cmd, int argc, char **argv, const char **word)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (argv[i][0] == '-' && !hn_opts_knows(cmd, hn_common_groups, argv[i]) && hn_foreign_option(cmd, argv[i])) {
            *word = argv[i];
            return hn_foreign_option(cmd, argv[i]);
        }
    return NULL;
}

static int bad_options(const hn_cli *cli, int argc, char **argv, const hone_error *err)
{
    static const char unknown[] = "unknown option ";
    const char *word, *near, *say = err->code == HONE_E_ARG ? foreign_option(cli->cmd, argc, argv, &word) : NULL;
    hn_out_is_json(wants_json(argc, argv));
    if (say) return hn_cli_usage(cli, "unknown option %s: %s", HN_ESC(word, strlen(word)), say);
    bool bare = err->code == HONE_E_ARG && strncmp(err->message, unknown, sizeof unknown - 1) == 0 &&
                !strchr(err->message, ';'); /* nothing of cmd's own is near */
    if (bare && (say = hn_foreign_near(cli->cmd, err->message + sizeof unknown - 1, &near)))
        return hn_cli_usage(cli, "%s; did you mean %s? %s", err->message, near, say);
    return err->code == HONE_E_ARG ? hn_cli_usage(cli, "%s", err->message) : hn_cli_fail(err);
}

/* A model is opened before the context that --cpu is for, and which of its weights are read packed depends on the
 * level: for the whole program --cpu is HONE_CPU, if it can be. */
static void choose_level(const hn_opts *opts)
{
    hn_cpu_level level;
    const char *cpu = hn_opts_has(opts, "cpu") ? hn_opts_str(opts, "cpu") : NULL;
    if (cpu && hn_cpu_choose(&level, cpu, NULL) == HONE_OK) setenv("HONE_CPU", hn_cpu_level_name(level), 1);
}

static int run_command(const hn_command *cmd, int argc, char **argv)
{
    hn_cli cli = { .cmd = cmd };
    hn_opts *opts;
    hone_error err;
    const hn_command *other = NULL;
    if (hn_opts_parse(&opts, cmd, hn_common_groups, argc, argv, &err) != HONE_OK)
        return bad_options(&cli, argc, argv, &err);
    cli.opts = opts;
    cli.json = hn_opts_flag(opts, "json");
    cli.verbose = hn_opts_flag(opts, "verbose");
    hn_out_is_json(cli.json);
    const char *name, *was, *is;
    for (size_t at = 0; (name = hn_opts_overruled(opts, &at, &was, &is));)
        hn_cli_note("%s %s is overruled by %s %s", name, was, name, is);
    int code = HN_EXIT_OK;
    if (hn_opts_flag(opts, "help")) {
        hn_help_command(stdout, "hone", cmd, hn_common_groups, hn_out_width());
    } else if (hn_opts_check_args(opts, cmd, &err) != HONE_OK) {
        code = hn_cli_usage(&cli, "%s", err.message);
    } else if ((other = cmd->instead ? cmd->instead(&cli) : NULL)) {
        code = HN_EXIT_OK;
    } else if ((code = hn_cli_supply_model(&cli, opts)) == 0 && (code = hn_cli_resolve_models(&cli, opts)) == 0 &&
               (code = hn_cli_files_apart(&cli, NULL, 0, 0)) == 0) {
        choose_level(opts);
        code = cmd->run(&cli);
        /* in the laboratory every stop is 6 */
        if (code == HN_EXIT_SIGINT && strncmp(cmd->name, "lab ", 4) == 0) code = HN_EXIT_INTERRUPTED;
    }
    hn_opts_free(opts);
    return other ? run_command(other, argc, argv) : code;
}

/* hone MODEL …: a conversation, or text where there is a prompt. NULL: name is no file of a model. */
static const hn_command *command_for_model(const char *name, int argc, char **argv)
{
    static const char *const prompts[] = { "-p", "--prompt", "-f", "--file", "--ids" };
    size_t n = strlen(name);
    bool model = (n > 5 && strcmp(name + n - 5, ".gguf") == 0) || (strchr(name, '/') && name[0] != '-');
    bool prompt = argc > 2 && argv[2][0] != '-';
    if (!model && (name[0] == '-' || hn_foreign_command(name))) return NULL;
    if (!model && access(name, F_OK) != 0 && !hn_cli_is_model_name(name)) return NULL;
    for (int i = 2; i < argc; i++)
        for (size_t k = 0; k < sizeof prompts / sizeof *prompts; k++)
            prompt |= strncmp(argv[i], prompts[k], strlen(prompts[k])) == 0;
    hn_opts *o; /* behind options, too: whichever take a value */
    if (!prompt && hn_opts_parse(&o, &hn_command_run, hn_common_groups, argc - 1, argv + 1, NULL) == HONE_OK) {
        prompt = hn_opts_given(o, "prompt");
        hn_opts_free(o);
    }
    return prompt ? &hn_command_run : &hn_command_chat;
}

static int run_bench(int argc, char **argv) { return run_command(&hn_command_bench, argc, argv); }

/* With 0, 1 or 2 closed, the next file opened would take the number and receive
 * what was meant for stdout. A stand-in makes writing fail instead. */
static void hold_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) {
            int held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
            if (held < 0 || held > 2) return;
        }
}

int main(int argc, char **argv)
{
    hold_standard_fds();
    hn_out_open();
    hn_cli_signals();
    hn_cli_last_act = hn_file_unlink_live;
    hn_cli_catch_faults();
    hn_json_watch();
    if (argc < 2) {
        hn_help_global(stderr, "hone", "hone: " HN_TAGLINE, hn_commands, hn_columns());
        return HN_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    bool alone = argc == 2 && (strcmp(name, "-v") == 0 || strcmp(name, "-V") == 0);
    if (strcmp(name, "--version") == 0 || alone) name = "version";
    const hn_command *cmd = find_command(name), *of_model = cmd ? NULL : command_for_model(name, argc, argv);
    if (of_model) return hn_out_finish(hn_cli_check_files(run_command(of_model, argc - 1, argv + 1)));
    hn_out_is_json(!cmd && wants_json(argc, argv));
    if (!cmd) return hn_out_finish(unknown_command(NULL, name));
    int skip = 2;
    for (; cmd->subs && argc > skip && strcmp(argv[skip], "--help") != 0 && strcmp(argv[skip], "-h") != 0; skip++) {
        const hn_command *sub = find_sub(cmd, argv[skip]);
        if (!sub && cmd->subs_or_args) break;
        hn_out_is_json(!sub && wants_json(argc, argv));
        if (!sub) return hn_out_finish(unknown_command(cmd, argv[skip]));
        cmd = sub;
    }
    bool grid = cmd == &hn_command_bench && hn_bench_is_grid(argc - skip, argv + skip);
    int rc = grid ? hn_bench_grid(argc - skip, argv + skip, run_bench) : run_command(cmd, argc - skip, argv + skip);
    return hn_out_finish(hn_cli_check_files(rc));
}
