/* What the options tables say about themselves: help, manual page, completion
 * scripts. Owns layout and quoting; the words come from the tables. */
#include "base/options.h"

#include <stdlib.h>

enum { HELP_COLUMN = 30, HELP_WIDTH = 100 };

/* ---- pieces ----------------------------------------------------------------------------- */

/* "-s, --seed N" */
static void option_heading(char *dst, size_t cap, const hn_opt *o)
{
    size_t n = 0;
    *dst = 0;
    for (const char *a = o->alias; a && *a && n < cap;) { /* short spellings first, as everyone writes them */
        size_t k = strcspn(a, " ");
        if (a[1] != '-') n += (size_t)snprintf(dst + n, cap - n, "%.*s, ", (int)k, a);
        a += k;
        while (*a == ' ') a++;
    }
    if (n < cap) n += (size_t)snprintf(dst + n, cap - n, "--%s", o->name);
    for (const char *a = o->alias; a && *a && n < cap;) {
        size_t k = strcspn(a, " ");
        if (a[1] == '-') n += (size_t)snprintf(dst + n, cap - n, ", %.*s", (int)k, a);
        a += k;
        while (*a == ' ') a++;
    }
    if (o->kind != HN_OPT_FLAG && n < cap)
        snprintf(dst + n, cap - n, " %s", o->kind == HN_OPT_CHOICE && !o->arg ? o->choices : o->arg ? o->arg : "VALUE");
}

static void option_text(char *dst, size_t cap, const hn_opt *o)
{
    int n = snprintf(dst, cap, "%s", o->help);
    if (o->kind == HN_OPT_CHOICE && o->arg && n > 0 && (size_t)n < cap)
        n += snprintf(dst + n, cap - (size_t)n, ": %s", o->choices);
    if (o->def && *o->def && n > 0 && (size_t)n < cap) snprintf(dst + n, cap - (size_t)n, " (default %s)", o->def);
}

/* Words of s from column `at`, further lines indented by `indent`. */
static void print_wrapped(FILE *f, const char *s, size_t at, size_t indent)
{
    size_t col = at;
    bool first = true;
    while (*s) {
        size_t k = strcspn(s, " ");
        if (!first && col + 1 + k > HELP_WIDTH) {
            fprintf(f, "\n%*s", (int)indent, "");
            col = indent;
        } else if (!first) {
            fputc(' ', f);
            col++;
        }
        fwrite(s, 1, k, f);
        col += k;
        first = false;
        s += k;
        while (*s == ' ') s++;
    }
    fputc('\n', f);
}

static void usage_line(char *dst, size_t cap, const char *prog, const hn_command *c)
{
    snprintf(dst, cap, "%s %s%s%s [OPTIONS]", prog, c->name, c->args ? " " : "", c->args ? c->args : "");
}

static void help_group(FILE *f, const hn_opt_group *g)
{
    fprintf(f, "\n%s:\n", g->title);
    for (const hn_opt *o = g->opts; o->name; o++) {
        char head[160], text[640];
        option_heading(head, sizeof head, o);
        option_text(text, sizeof text, o);
        int n = fprintf(f, "  %s", head);
        if (n < 0) return;
        if (n + 2 > HELP_COLUMN) fprintf(f, "\n%*s", HELP_COLUMN, "");
        else fprintf(f, "%*s", HELP_COLUMN - n, "");
        print_wrapped(f, text, HELP_COLUMN, HELP_COLUMN);
    }
}

void hn_help_command(FILE *f, const char *prog, const hn_command *cmd, const hn_opt_group *const *common)
{
    char usage[200];
    usage_line(usage, sizeof usage, prog, cmd);
    fprintf(f, "usage: %s\n\n%s.\n", usage, cmd->summary);
    if (cmd->subs) fputs("\nCommands:\n", f);
    for (const hn_command *const *c = cmd->subs; c && *c; c++)
        fprintf(f, "  %-12s %s\n", (*c)->name + strlen(cmd->name) + 1, (*c)->summary);
    for (const hn_opt_group *const *g = cmd->groups; g && *g; g++) help_group(f, *g);
    for (const hn_opt_group *const *g = common; g && *g; g++) help_group(f, *g);
    if (cmd->examples) {
        fputs("\nExamples:\n", f);
        for (const char *e = cmd->examples; *e;) {
            size_t k = strcspn(e, "\n");
            fprintf(f, "  %.*s\n", (int)k, e);
            e += k + (e[k] == '\n');
        }
    }
}

void hn_help_global(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds)
{
    fprintf(f, "%s\n\nusage: %s COMMAND [OPTIONS]\n\nCommands:\n", tagline, prog);
    for (; *cmds; cmds++) fprintf(f, "  %-12s %s\n", (*cmds)->name, (*cmds)->summary);
    fprintf(f, "\n'%s COMMAND --help' explains one; '%s help --man' prints the manual page.\n", prog, prog);
}

/* ---- manual page ---------------------------------------------------------------------------- */

/* Text for troff: minus signs and backslashes kept literal, no line starting a
 * request, characters beyond ASCII by number (the tables are well-formed UTF-8). */
static void roff(FILE *f, const char *s)
{
    if (*s == '.' || *s == '\'') fputs("\\&", f);
    for (const unsigned char *u = (const unsigned char *)s; *u; u++) {
        if (*u == '-') fputs("\\-", f);
        else if (*u == '\\') fputs("\\e", f);
        else if (*u < 0x80) fputc(*u, f);
        else {
            unsigned c = *u < 0xE0 ? *u & 31u : *u < 0xF0 ? *u & 15u : *u & 7u;
            while ((u[1] & 0xC0) == 0x80) c = c << 6 | (*++u & 63u);
            fprintf(f, "\\[u%04X]", c);
        }
    }
}

static void roff_upper(FILE *f, const char *s)
{
    for (; *s; s++) fputc(*s >= 'a' && *s <= 'z' ? *s - 32 : *s, f);
}

static void man_group(FILE *f, const hn_opt_group *g)
{
    for (const hn_opt *o = g->opts; o->name; o++) {
        char head[160], text[640];
        option_heading(head, sizeof head, o);
        option_text(text, sizeof text, o);
        fputs(".TP\n\\fB", f);
        roff(f, head);
        fputs("\\fR\n", f);
        roff(f, text);
        fputs(".\n", f);
    }
}

static void man_command(FILE *f, const char *prog, const hn_command *c)
{
    char usage[200];
    usage_line(usage, sizeof usage, prog, c);
    fputs(".SS ", f);
    roff(f, usage);
    fputs("\n", f);
    roff(f, c->summary);
    fputs(".\n", f);
    for (const hn_opt_group *const *g = c->groups; g && *g; g++) man_group(f, *g);
    if (c->examples) fputs(".PP\nExamples:\n.nf\n", f);
    for (const char *e = c->examples ? c->examples : ""; *e;) {
        char line[300];
        size_t k = strcspn(e, "\n");
        snprintf(line, sizeof line, "%.*s", (int)k, e);
        fputs("    ", f);
        roff(f, line);
        fputs("\n", f);
        e += k + (e[k] == '\n');
    }
    if (c->examples) fputs(".fi\n", f);
    for (const hn_command *const *sub = c->subs; sub && *sub; sub++) man_command(f, prog, *sub);
}

void hn_help_man(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds,
                 const hn_opt_group *const *common)
{
    fputs(".TH ", f);
    roff_upper(f, prog);
    fprintf(f, " 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n%s \\- ", prog, hone_version(), prog);
    roff(f, tagline);
    fprintf(f, "\n.SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n", prog);
    fputs("Results are written to standard output, everything else to standard error.\n.SH COMMANDS\n", f);
    for (const hn_command *const *c = cmds; *c; c++) man_command(f, prog, *c);
    fputs(".SH COMMON OPTIONS\n", f);
    for (const hn_opt_group *const *g = common; g && *g; g++) man_group(f, *g);
    fputs(".SH EXIT STATUS\n", f);
    static const char *const codes[][2] = {
        { "0", "success" },
        { "1", "failure" },
        { "2", "wrong usage" },
        { "3", "bad or unsupported model" },
        { "4", "out of memory" },
        { "5", "network" },
        { "6", "interrupted" },
        { "10", "regression found" },
        { "11", "inconclusive comparison" },
        { "12", "answers changed" },
        { "13", "the environment is not fit for measuring" },
        { "130", "interrupted from the keyboard" },
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) fprintf(f, ".TP\n%s\n%s.\n", codes[i][0], codes[i][1]);
    fputs(".SH ENVIRONMENT\n", f);
    for (const hn_env_switch *e = hn_env_switches; e->name; e++) {
        fprintf(f, ".TP\n.B %s\n", e->name);
        roff(f, e->help);
        fputs(".\n", f);
    }
}

/* ---- completion ------------------------------------------------------------------------------ */

/* "ab" of "lab ab". */
static const char *last_word(const hn_command *c)
{
    const char *space = strrchr(c->name, ' ');
    return space ? space + 1 : c->name;
}

/* Calls fn for every option of a command. */
typedef void option_fn(FILE *f, const char *prog, const hn_command *c, const hn_opt *o);
static void each_option(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common,
                        option_fn *fn)
{
    for (const hn_opt_group *const *g = c->groups; g && *g; g++)
        for (const hn_opt *o = (*g)->opts; o->name; o++) fn(f, prog, c, o);
    for (const hn_opt_group *const *g = common; g && *g; g++)
        for (const hn_opt *o = (*g)->opts; o->name; o++) fn(f, prog, c, o);
}

/* The choices, or the alternatives of names, with another separator. */
static void with_separator(FILE *f, const char *s, char from, char to)
{
    for (; *s; s++) fputc(*s == from ? to : *s, f);
}

static void bash_word(FILE *f, const char *prog, const hn_command *c, const hn_opt *o)
{
    fprintf(f, " --%s", o->name);
    if (o->alias) fprintf(f, " %s", o->alias);
}

static void bash_value(FILE *f, const char *prog, const hn_command *c, const hn_opt *o)
{
    if (o->kind == HN_OPT_FLAG) return;
    fputs("    ", f);
    if (o->alias) {
        with_separator(f, o->alias, ' ', '|');
        fputc('|', f);
    }
    fprintf(f, "--%s) ", o->name);
    if (o->kind == HN_OPT_FILE) {
        fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", f);
    } else if (o->kind == HN_OPT_CHOICE) {
        fputs("COMPREPLY=($(compgen -W \"", f);
        with_separator(f, o->choices, '|', ' ');
        fputs("\" -- \"$cur\"))", f);
    } else {
        fputs(":", f);
    }
    fputs("; return ;;\n", f);
}

static void bash_command(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common,
                         const char *indent)
{
    fprintf(f, "%scase $prev in\n", indent);
    each_option(f, prog, c, common, bash_value);
    fprintf(f, "%sesac\n%sif [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"", indent, indent);
    each_option(f, prog, c, common, bash_word);
    fputs("\" -- \"$cur\")); else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n", f);
}

/* Word `at` is a command below; what follows are its options. */
static void bash_subs(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common, int at)
{
    fprintf(f, "    if [ \"$COMP_CWORD\" -eq %d ]; then COMPREPLY=($(compgen -W \"", at);
    for (const hn_command *const *s = c->subs; *s; s++) fprintf(f, "%s%s", s == c->subs ? "" : " ", last_word(*s));
    fprintf(f, "\" -- \"$cur\")); return; fi\n    case ${COMP_WORDS[%d]} in\n", at);
    for (const hn_command *const *s = c->subs; *s; s++) {
        fprintf(f, "    %s)\n", last_word(*s));
        if ((*s)->subs) bash_subs(f, prog, *s, common, at + 1);
        else bash_command(f, prog, *s, common, "      ");
        fputs("      ;;\n", f);
    }
    fputs("    esac\n", f);
}

static void completion_bash(FILE *f, const char *prog, const hn_command *const *cmds, const hn_opt_group *const *common)
{
    fprintf(f, "# bash completion for %s: source this file\n_%s() {\n", prog, prog);
    fputs("  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n  COMPREPLY=()\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"",
          f);
    for (const hn_command *const *c = cmds; *c; c++) fprintf(f, "%s%s", c == cmds ? "" : " ", (*c)->name);
    fputs("\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in\n", f);
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "  %s)\n", (*c)->name);
        if ((*c)->subs) bash_subs(f, prog, *c, common, 2);
        else bash_command(f, prog, *c, common, "    ");
        fputs("    ;;\n", f);
    }
    fprintf(f, "  esac\n}\ncomplete -o filenames -F _%s %s\n", prog, prog);
}

/* Inside single quotes of zsh or fish; also the characters _arguments gives a meaning. */
static void quoted(FILE *f, const char *s, bool zsh)
{
    for (; *s; s++) {
        if (*s == '\'') fputs("'\\''", f);
        else if (zsh && (*s == '[' || *s == ']' || *s == ':' || *s == '\\')) fprintf(f, "\\%c", *s);
        else if (!zsh && *s == '\\') fputs("\\\\", f);
        else fputc(*s, f);
    }
}

static void zsh_spelling(FILE *f, const hn_opt *o, const char *word, size_t len)
{
    fprintf(f, " \\\n      '*%.*s[", (int)len, word); /* '*': may be given again, the last wins */
    quoted(f, o->help, true);
    fputc(']', f);
    if (o->kind != HN_OPT_FLAG) {
        fprintf(f, ":");
        quoted(f, o->arg ? o->arg : "value", true);
        fputc(':', f);
        if (o->kind == HN_OPT_FILE) fputs("_files", f);
        if (o->kind == HN_OPT_CHOICE) {
            fputc('(', f);
            with_separator(f, o->choices, '|', ' ');
            fputc(')', f);
        }
    }
    fputc('\'', f);
}

static void zsh_option(FILE *f, const char *prog, const hn_command *c, const hn_opt *o)
{
    char name[80];
    int n = snprintf(name, sizeof name, "--%s", o->name);
    zsh_spelling(f, o, name, (size_t)n);
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        zsh_spelling(f, o, a, k);
        a += k;
        while (*a == ' ') a++;
    }
}

static void zsh_names(FILE *f, const hn_command *const *cmds)
{
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "    '%s:", last_word(*c));
        quoted(f, (*c)->summary, true);
        fputs("'\n", f);
    }
}

static void zsh_command(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    fputs("    _arguments", f);
    each_option(f, prog, c, common, zsh_option);
    if (c->max_args) fputs(" \\\n      '*:argument:_files'", f);
    fputs(" ;;\n", f);
}

/* One of the commands of a level, and below it the next level. */
static void zsh_level(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    fprintf(f, "  %s)\n", last_word(c));
    if (!c->subs) {
        zsh_command(f, prog, c, common);
        return;
    }
    fputs("    local -a below\n    below=(\n", f);
    zsh_names(f, c->subs);
    fputs("    )\n    if (( CURRENT == 2 )); then _describe command below; return; fi\n    cmd=$words[2]\n"
          "    shift words; (( CURRENT-- ))\n    case $cmd in\n",
          f);
    for (const hn_command *const *s = c->subs; *s; s++) zsh_level(f, prog, *s, common);
    fputs("    esac ;;\n", f);
}

static void completion_zsh(FILE *f, const char *prog, const hn_command *const *cmds, const hn_opt_group *const *common)
{
    fprintf(f,
            "#compdef %s\n# zsh completion for %s: put it as _%s into a folder of $fpath\n_%s() {\n  local -a "
            "commands\n  commands=(\n",
            prog, prog, prog, prog);
    zsh_names(f, cmds);
    fputs("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  local cmd=$words[2]\n"
          "  shift words; (( CURRENT-- ))\n  case $cmd in\n",
          f);
    for (const hn_command *const *c = cmds; *c; c++) zsh_level(f, prog, *c, common);
    fprintf(f, "  esac\n}\ncompdef _%s %s\n", prog, prog);
}

static void fish_option(FILE *f, const char *prog, const hn_command *c, const hn_opt *o)
{
    const char *space = strchr(c->name, ' ');
    fprintf(f, "complete -c %s -n '__fish_seen_subcommand_from %.*s", prog, (int)strcspn(c->name, " "), c->name);
    if (space) fprintf(f, "; and __fish_seen_subcommand_from %s", space + 1);
    fprintf(f, "' -l %s", o->name);
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        if (a[1] == '-') fprintf(f, " -l %.*s", (int)k - 2, a + 2);
        else fprintf(f, " -%c %.*s", k == 2 ? 's' : 'o', (int)k - 1, a + 1);
        a += k;
        while (*a == ' ') a++;
    }
    if (o->kind == HN_OPT_FILE) fputs(" -rF", f);
    else if (o->kind == HN_OPT_CHOICE) {
        fputs(" -xa '", f);
        with_separator(f, o->choices, '|', ' ');
        fputs("'", f);
    } else if (o->kind != HN_OPT_FLAG) fputs(" -x", f);
    fputs(" -d '", f);
    quoted(f, o->help, false);
    fputs("'\n", f);
}

static void fish_subs(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    for (const hn_command *const *s = c->subs; *s; s++) {
        fprintf(f, "complete -c %s -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from", prog,
                last_word(c));
        for (const hn_command *const *k = c->subs; *k; k++) fprintf(f, " %s", last_word(*k));
        fprintf(f, "' -f -a %s -d '", last_word(*s));
        quoted(f, (*s)->summary, false);
        fputs("'\n", f);
        if ((*s)->subs) fish_subs(f, prog, *s, common);
        else each_option(f, prog, *s, common, fish_option);
    }
}

static void completion_fish(FILE *f, const char *prog, const hn_command *const *cmds, const hn_opt_group *const *common)
{
    fprintf(f, "# fish completion for %s\n", prog);
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "complete -c %s -n __fish_use_subcommand -f -a %s -d '", prog, (*c)->name);
        quoted(f, (*c)->summary, false);
        fputs("'\n", f);
        if ((*c)->subs) fish_subs(f, prog, *c, common);
        else each_option(f, prog, *c, common, fish_option);
    }
}

bool hn_help_completion(FILE *f, const char *prog, const char *shell, const hn_command *const *cmds,
                        const hn_opt_group *const *common)
{
    if (strcmp(shell, "bash") == 0) completion_bash(f, prog, cmds, common);
    else if (strcmp(shell, "zsh") == 0) completion_zsh(f, prog, cmds, common);
    else if (strcmp(shell, "fish") == 0) completion_fish(f, prog, cmds, common);
    else return false;
    return true;
}
