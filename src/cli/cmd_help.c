/* hone help: global help, help of one command, manual page, completion scripts. */
#include "cli/cli.h"
#include "hub/cache.h"
#include "lab/bench/bench.h"
#include "lab/judge/baseline.h"

#include <dirent.h>
#include <stdlib.h>

static const hn_opt opts[] = {
    HN_OPT("man", NULL, FLAG, NULL, "print the manual page (roff); try: hone help --man | man -l -", .excl = "output"),
    HN_OPT("completion", NULL, CHOICE, "SHELL", "print a completion script for", .choices = "bash|zsh|fish",
           .excl = "output"),
    HN_OPT("words", NULL, CHOICE, "KIND", "print the words of a kind, one a line, as completion asks for them",
           .choices = "presets|types|cpus|templates|targets|baselines|baseline-words|ids|commands|models|names",
           .excl = "output"),
    HN_OPT_END,
};
static const hn_opt_group group = { "Output", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static const char *const kinds[] = {
    [HN_OPT_FLAG] = "flag", [HN_OPT_STR] = "string", [HN_OPT_FILE] = "file",    [HN_OPT_I32] = "int",
    [HN_OPT_U64] = "int",   [HN_OPT_F32] = "number", [HN_OPT_CHOICE] = "choice"
};

static json_t *command_json(const hn_command *c)
{
    json_t *options = json_array();
    const hn_opt_group *const *lists[] = { c->groups, hn_common_groups };
    for (int l = 0; l < 2; l++)
        for (const hn_opt_group *const *g = lists[l]; g && *g; g++)
            for (const hn_opt *o = (*g)->opts; o->name; o++)
                json_array_append_new(options, json_pack("{s:s, s:s?, s:s, s:s?, s:s?, s:s}", "name", o->name, "alias",
                                                         o->alias, "kind", kinds[o->kind], "default", o->def, "choices",
                                                         o->choices, "help", o->help));
    json_t *o =
        json_pack("{s:s, s:s, s:s?, s:o}", "name", c->name, "summary", c->summary, "args", c->args, "options", options);
    if (!c->subs) return o;
    json_t *below = json_array();
    for (const hn_command *const *s = c->subs; *s; s++) json_array_append_new(below, command_json(*s));
    json_object_set_new(o, "commands", below);
    return o;
}

static int help_json(const hn_command *only)
{
    json_t *list = json_array();
    for (const hn_command *const *c = hn_commands; *c; c++)
        if (!only) json_array_append_new(list, command_json(*c));
    if (only) json_array_append_new(list, command_json(only));
    json_t *o = hn_json_new("hone.help/1");
    json_object_set_new(o, "commands", list);
    return hn_json_print(o);
}

static void list_baselines(void)
{
    struct dirent **list;
    int n = scandir(HN_BASELINE_DIR, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name, *dot = strrchr(name, '.');
        if (dot && dot != name && strcmp(dot, ".json") == 0) hn_out_printf("%.*s\n", (int)(dot - name), name);
        free(list[i]);
    }
    if (n >= 0) free(list);
}

/* Models that are here, by names that no shell would read anything into: it expands these words. */
static void list_models(void)
{
    hn_locals here;
    if (hn_cache_list(&here, HN_FIND_ALL, NULL) != HONE_OK) return;
    for (size_t i = 0; i < here.n; i++) {
        const char *name = here.list[i].name;
        bool plain =
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:@") == strlen(name);
        if (plain && !*here.list[i].trouble && !here.list[i].checkpoint) hn_out_printf("%s\n", name);
    }
    hn_locals_free(&here);
}

/* Short names of models, for hone pull. */
static void list_names(void)
{
    hn_short_names names;
    if (hn_short_names_read(&names, NULL) != HONE_OK) return;
    for (size_t i = 0; i < names.n; i++) hn_out_printf("%s\n", names.list[i].name);
    hn_short_names_free(&names);
}

/* Fixed lists, of what the library knows by name; tests/unit/test_words.c holds them against its tables. */
static const char *const
    types = "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q4_K_M Q4_K_S Q3_K_L Q3_K_M Q3_K_S Q2_K Q2_K_S Q5_0 "
            "Q5_1 Q4_0 Q4_1 IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4_MOE NVFP4 Q1_0 Q2_0",
    *const templates = "chatml llama2 llama3 mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 gemma phi3 "
                       "phi4 zephyr vicuna deepseek deepseek2 glm4 command-r gpt-oss rwkv-world",
    *const targets = "qv attn all q k v o gate up down";

const char *hn_help_words(const char *kind)
{
    return strcmp(kind, "types") == 0       ? types
           : strcmp(kind, "templates") == 0 ? templates
           : strcmp(kind, "targets") == 0   ? targets
                                            : "";
}

static void list_words(const char *kind)
{
    const hone_synth_preset *preset;
    size_t n = strcmp(kind, "presets") == 0 ? hone_synth_presets(&preset) : 0;
    const char *fixed = hn_help_words(kind);
    for (size_t i = 0; i < n; i++) hn_out_printf("%s\n", preset[i].name);
    for (size_t k; *fixed; fixed += k + (fixed[k] == ' ')) {
        k = strcspn(fixed, " ");
        hn_out_printf("%.*s\n", (int)k, fixed);
    }
    for (int l = 0; strcmp(kind, "cpus") == 0 && l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) hn_out_printf("%s\n", hn_cpu_level_name((hn_cpu_level)l));
    for (const hn_command *const *c = hn_commands; strcmp(kind, "commands") == 0 && *c; c++)
        hn_out_printf("%s\n", (*c)->name);
    const hn_bench_entry *e;
    for (size_t i = 0; strcmp(kind, "ids") == 0 && (e = hn_bench_at(i)); i++)
        if (!e->needs) hn_out_printf("%s\n", e->id);
    if (strcmp(kind, "baseline-words") == 0) hn_out_printf("save\nlist\nrm\ncompare\n");
    if (strncmp(kind, "baseline", 8) == 0) list_baselines();
    if (strcmp(kind, "models") == 0) list_models();
    if (strcmp(kind, "names") == 0) list_names();
}

static int run(const hn_cli *cli)
{
    const char *shell = hn_opts_str(cli->opts, "completion");
    const hn_command *cmd = NULL;
    for (int i = 0; i < hn_opts_n_args(cli->opts); i++) {
        const char *name = hn_opts_arg(cli->opts, i);
        const hn_command *found = NULL;
        size_t skip = cmd ? strlen(cmd->name) + 1 : 0;
        for (const hn_command *const *c = cmd ? cmd->subs : hn_commands; c && *c; c++)
            if (strcmp((*c)->name + skip, name) == 0) found = *c;
        if (!found && !cmd) return hn_cli_usage(NULL, "unknown command '%s'", HN_ESC(name, strlen(name)));
        if (!found)
            return hn_cli_usage(&(hn_cli){ .cmd = cmd }, "unknown command '%s %s'", cmd->name,
                                HN_ESC(name, strlen(name)));
        cmd = found;
    }
    if (hn_opts_flag(cli->opts, "man")) hn_help_man(stdout, "hone", HN_TAGLINE, hn_commands, hn_common_groups, cmd);
    else if (hn_opts_str(cli->opts, "words")) list_words(hn_opts_str(cli->opts, "words"));
    else if (shell) hn_help_completion(stdout, "hone", shell, hn_commands, hn_common_groups);
    else if (cli->json) return help_json(cmd);
    else if (cmd) hn_help_command(stdout, "hone", cmd, hn_common_groups, hn_out_width());
    else hn_help_global(stdout, "hone", "hone: " HN_TAGLINE, hn_commands, hn_out_width());
    return HN_EXIT_OK;
}

const hn_command hn_command_help = {
    .name = "help",
    .summary = "Explain the commands",
    .args = "[COMMAND [BELOW]…]",
    .max_args = -1,
    .groups = groups,
    .examples = "hone help run\nhone help lab peaks\nhone help --completion bash > /etc/bash_completion.d/hone\n",
    .run = run,
};
