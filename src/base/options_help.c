/* What the options tables say about themselves: help, manual page, completion
 * scripts. Owns layout and quoting; the words come from the tables. */
#include "base/options.h"

#include <stdlib.h>

enum { HELP_COLUMN = 28, NAME_COLUMN = 15, LEAST_WIDTH = 40, MOST_WIDTH = 100 };

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
    enum { LONG_LIST = 40 }; /* as one word it could not be folded */
    if (o->kind == HN_OPT_CHOICE && o->arg && n > 0 && (size_t)n < cap) {
        bool words = strlen(o->choices) > LONG_LIST;
        n += snprintf(dst + n, cap - (size_t)n, ": ");
        for (const char *c = o->choices; *c && (size_t)n < cap; c++)
            n += snprintf(dst + n, cap - (size_t)n, *c == '|' && words ? ", " : "%c", *c);
    }
    if (o->def && *o->def && n > 0 && (size_t)n < cap) snprintf(dst + n, cap - (size_t)n, " (default %s)", o->def);
}

/* Characters of s[n]. */
static size_t columns(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((unsigned char)s[i] & 0xC0) != 0x80;
    return k;
}

/* Bytes of the first word; of a command line what stands between quotes is one. */
static size_t word_length(const char *s, bool quotes)
{
    size_t n = 0;
    char in = 0;
    for (; s[n] && (in || s[n] != ' '); n++)
        if (quotes && (s[n] == '"' || s[n] == '\'')) in = in == s[n] ? 0 : in ? in : s[n];
    return n;
}

/* Words of s from column `at`, further lines indented by `indent`; `more` ends a line that goes on. */
static void print_wrapped(FILE *f, const char *s, size_t at, size_t indent, size_t width, const char *more)
{
    size_t col = at;
    bool first = true;
    while (*s) {
        size_t k = word_length(s, *more), n = columns(s, k);
        if (!first && col + 1 + n + (s[k] ? strlen(more) : 0) > width) {
            fprintf(f, "%s\n%*s", more, (int)indent, "");
            col = indent;
        } else if (!first) {
            fputc(' ', f);
            col++;
        }
        fwrite(s, 1, k, f);
        col += n;
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

/* NAME and what it is, in two columns. */
static void help_row(FILE *f, const char *head, const char *text, size_t column, size_t width)
{
    size_t n = 2 + columns(head, strlen(head));
    if (width < 2 * column) column = 8;
    if (n + 2 > column) {
        fputs("  ", f);
        print_wrapped(f, head, 2, 6, width, "");
        fprintf(f, "%*s", (int)column, "");
    } else {
        fprintf(f, "  %s%*s", head, (int)(column - n), "");
    }
    print_wrapped(f, text, column, column, width, "");
}

static void help_group(FILE *f, const hn_opt_group *g, size_t width)
{
    fprintf(f, "\n%s:\n", g->title);
    for (const hn_opt *o = g->opts; o->name; o++) {
        char head[160], text[640];
        option_heading(head, sizeof head, o);
        option_text(text, sizeof text, o);
        help_row(f, head, text, HELP_COLUMN, width);
    }
}

void hn_help_command(FILE *f, const char *prog, const hn_command *cmd, const hn_opt_group *const *common, int columns)
{
    char usage[200];
    size_t width = columns < LEAST_WIDTH ? LEAST_WIDTH : columns > MOST_WIDTH ? MOST_WIDTH : (size_t)columns;
    usage_line(usage, sizeof usage, prog, cmd);
    fputs("usage: ", f);
    print_wrapped(f, usage, 7, 7, width, "");
    fputc('\n', f);
    print_wrapped(f, cmd->summary, 0, 0, width, "");
    if (cmd->subs) fputs("\nCommands:\n", f);
    for (const hn_command *const *c = cmd->subs; c && *c; c++)
        help_row(f, (*c)->name + strlen(cmd->name) + 1, (*c)->summary, NAME_COLUMN, width);
    for (const hn_opt_group *const *g = cmd->groups; g && *g; g++) help_group(f, *g, width);
    for (const hn_opt_group *const *g = common; g && *g; g++) help_group(f, *g, width);
    if (cmd->examples) fputs("\nExamples:\n", f);
    for (const char *e = cmd->examples ? cmd->examples : ""; *e;) {
        char line[300];
        size_t k = strcspn(e, "\n");
        snprintf(line, sizeof line, "%.*s", (int)k, e);
        fputs("  ", f);
        print_wrapped(f, line, 2, 6, width, " \\");
        e += k + (e[k] == '\n');
    }
}

void hn_help_global(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds, int columns)
{
    size_t width = columns < LEAST_WIDTH ? LEAST_WIDTH : columns > MOST_WIDTH ? MOST_WIDTH : (size_t)columns;
    fprintf(f, "%s\n\nusage: %s COMMAND [OPTIONS]\n       %s MODEL.gguf [PROMPT]\n\nCommands:\n", tagline, prog, prog);
    for (; *cmds; cmds++) help_row(f, (*cmds)->name, (*cmds)->summary, NAME_COLUMN, width);
    fprintf(f, "\n'%s COMMAND --help' explains one; 'man %s' is the manual.\n", prog, prog);
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

static void man_codes(FILE *f)
{
    static const char *const codes[][2] = {
        { "0", "success" },
        { "1", "failure" },
        { "2", "wrong usage" },
        { "3", "a model that is bad, not supported or not there" },
        { "4", "out of memory" },
        { "5", "network" },
        { "6", "interrupted by SIGTERM or a terminal that went away; measuring also by Ctrl-C, with what was measured "
               "kept" },
        { "10", "regression found" },
        { "11", "inconclusive comparison" },
        { "12", "answers changed" },
        { "13", "the environment is not fit for measuring" },
        { "130", "interrupted from the keyboard (Ctrl-C)" },
    };
    fputs(".SH EXIT STATUS\n", f);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fprintf(f, ".TP\n%s\n", codes[i][0]);
        roff(f, codes[i][1]);
        fputs(".\n", f);
    }
}

static void man_environment(FILE *f)
{
    fputs(".SH ENVIRONMENT\n", f);
    for (const hn_env_switch *e = hn_env_switches; e->name; e++) {
        fprintf(f, ".TP\n.B %s\n", e->name);
        roff(f, e->help);
        fputs(".\n", f);
    }
}

static void man_files(FILE *f)
{
    static const char *const files[][2] = {
        { "MODEL.hpack", "weights that hone pack wrote, beside the model; used where they belong to it" },
        { "OUTPUT.ckpt/, OUTPUT.jsonl", "checkpoints and log of a training" },
        { "benchmarks/NAME.jsonl, NAME.md", "records and history of hone bench --file NAME" },
        { "benchmarks/baselines/", "what hone lab baseline keeps" },
        { "~/.cache/huggingface/hub/", "models of the hub, shared with other programs; HF_HUB_CACHE, HF_HOME" },
        { "~/.local/share/hone/models/", "models that hone pull got from an address; in $XDG_DATA_HOME where that is "
                                         "set" },
        { "./models/", "models that are known by their names, too, as those in the folders of HONE_MODELS" },
        { "~/.config/hone/names", "short names of your own, a line NAME MEANING each; in $XDG_CONFIG_HOME where that "
                                  "is set" },
        { "~/.local/state/hone/", "what is known of files and of this machine; in $XDG_STATE_HOME where that is set" },
    };
    fputs(".SH FILES\n", f);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fputs(".TP\n.I ", f);
        roff(f, files[i][0]);
        fputc('\n', f);
        roff(f, files[i][1]);
        fputs(".\n", f);
    }
}

static void man_title(FILE *f, const char *prog, const char *name, const char *what)
{
    fputs(".TH ", f);
    roff_upper(f, prog);
    if (name) fputc('-', f);
    if (name) roff_upper(f, name);
    fprintf(f, " 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n%s%s%s \\- ", prog, hone_version(), prog,
            name ? "\\-" : "", name ? name : "");
    roff(f, what);
    fputc('\n', f);
}

static void man_one(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    man_title(f, prog, c->name, c->summary);
    fputs(".SH SYNOPSIS AND OPTIONS\n", f);
    man_command(f, prog, c);
    fputs(".SH COMMON OPTIONS\n", f);
    for (const hn_opt_group *const *g = common; g && *g; g++) man_group(f, *g);
    man_codes(f);
    fprintf(f, ".SH SEE ALSO\n.BR %s (1)\n", prog);
}

void hn_help_man(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds,
                 const hn_opt_group *const *common, const hn_command *only)
{
    if (only) {
        man_one(f, prog, only, common);
        return;
    }
    man_title(f, prog, NULL, tagline);
    fprintf(f, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n.B %s\n.I MODEL.gguf\n[\\fIPROMPT\\fR]\n",
            prog, prog);
    fputs(".SH DESCRIPTION\nResults are written to standard output, everything else to standard error.\n"
          "A model is a GGUF file; without a command, it is talked with.\n.SH COMMANDS\nEach has a page of its own.\n",
          f);
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, ".TP\n.BR %s\\-%s (1)\n", prog, (*c)->name);
        roff(f, (*c)->summary);
        fputs(".\n", f);
    }
    fputs(".SH COMMON OPTIONS\n", f);
    for (const hn_opt_group *const *g = common; g && *g; g++) man_group(f, *g);
    man_codes(f);
    man_environment(f);
    man_files(f);
    fputs(".SH SEE ALSO\n", f);
    for (const hn_command *const *c = cmds; *c; c++)
        fprintf(f, ".BR %s\\-%s (1)%s\n", prog, (*c)->name, c[1] ? "," : "");
}

/* ---- completion ------------------------------------------------------------------------------ */

/* "ab" of "lab ab". */
static const char *last_word(const hn_command *c)
{
    const char *space = strrchr(c->name, ' ');
    return space ? space + 1 : c->name;
}

/* Words that the program is asked for when they are wanted (hone help --words KIND); "gguf": files of models, and names
 * of those that are here. Options of one name mean the same in every command. NULL: none. */
static const char *words_of_option(const hn_opt *o)
{
    static const char *const words[][2] = { { "model", "gguf" },         { "lora", "gguf" },
                                            { "tokenizer", "gguf" },     { "cpu", "cpus" },
                                            { "type", "types" },         { "chat-template", "templates" },
                                            { "preset", "presets" },     { "targets", "targets" },
                                            { "baseline", "baselines" }, { "save-baseline", "baselines" } };
    for (size_t i = 0; o->kind != HN_OPT_CHOICE && i < sizeof words / sizeof *words; i++)
        if (strcmp(o->name, words[i][0]) == 0) return words[i][1];
    return NULL;
}

/* Of the arguments of a command. */
static const char *words_of_args(const hn_command *c)
{
    static const char *const words[][2] = { { "synth", "presets" },
                                            { "bench", "ids" },
                                            { "help", "commands" },
                                            { "rm", "models" },
                                            { "list", "models" },
                                            { "pull", "names" },
                                            { "lab baseline", "baseline-words" } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(c->name, words[i][0]) == 0) return words[i][1];
    return c->takes && strncmp(c->takes, "model", 5) == 0 ? "gguf" : NULL;
}

static void bash_words(FILE *f, const char *prog, const char *words)
{
    if (!words) fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", f);
    else if (strcmp(words, "gguf") == 0)
        fprintf(f,
                "COMPREPLY=($(compgen -d -- \"$cur\") $(compgen -f -X '!*.gguf' -- \"$cur\") $(compgen -W \"$(%s help "
                "--words models 2>/dev/null)\" -- \"$cur\"))",
                prog);
    else fprintf(f, "COMPREPLY=($(compgen -W \"$(%s help --words %s 2>/dev/null)\" -- \"$cur\"))", prog, words);
}

static void zsh_words(FILE *f, const char *prog, const char *words)
{
    if (!words) fputs("_files", f);
    else if (strcmp(words, "gguf") == 0)
        fprintf(f, "{compadd -- $(%s help --words models 2>/dev/null); _files -g \"*.gguf(-.)\"}", prog);
    else fprintf(f, "{compadd -- $(%s help --words %s 2>/dev/null)}", prog, words);
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
    if (o->kind == HN_OPT_FILE || words_of_option(o)) {
        bash_words(f, prog, words_of_option(o));
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
    fputs("\" -- \"$cur\")); else ", f);
    bash_words(f, prog, words_of_args(c));
    fputs("; fi\n", f);
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

/* A command that may be followed by one below it, or by options and arguments of its own. */
static void bash_both(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    fputs("    case $([ \"$COMP_CWORD\" -gt 2 ] && echo \"${COMP_WORDS[2]}\") in\n", f);
    for (const hn_command *const *s = c->subs; *s; s++) {
        fprintf(f, "    %s)\n", last_word(*s));
        bash_command(f, prog, *s, common, "      ");
        fputs("      ;;\n", f);
    }
    fputs("    *)\n", f);
    bash_command(f, prog, c, common, "      ");
    fputs("      ;;\n    esac\n", f);
}

/* bash divides words at colons, too, which names of models have, and wants what stands behind the last one. */
static const char *const bash_joined =
    "  local -a w=()\n  local i n=0 x cur\n"
    "  for ((i = 0; i <= COMP_CWORD; i++)); do\n    x=${COMP_WORDS[i]}\n"
    "    if ((n > 1)) && [ -n \"$x\" ] && [[ $x == :* || ${w[n - 1]} == *: ]]; then w[n - 1]+=$x; else w[n++]=$x; fi\n"
    "  done\n  local COMP_WORDS=(\"${w[@]}\") COMP_CWORD=$((n - 1))\n";

static void completion_bash(FILE *f, const char *prog, const hn_command *const *cmds, const hn_opt_group *const *common)
{
    fprintf(f, "# bash completion for %s: source this file\n_%s_reply() {\n", prog, prog);
    fputs("  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n  COMPREPLY=()\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"",
          f);
    for (const hn_command *const *c = cmds; *c; c++) fprintf(f, "%s%s", c == cmds ? "" : " ", (*c)->name);
    fputs("\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in\n", f);
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "  %s)\n", (*c)->name);
        if ((*c)->subs && !(*c)->subs_or_args) bash_subs(f, prog, *c, common, 2);
        else if ((*c)->subs) bash_both(f, prog, *c, common);
        else bash_command(f, prog, *c, common, "    ");
        fputs("    ;;\n", f);
    }
    fprintf(f, "  esac\n}\n_%s() {\n", prog);
    fputs(bash_joined, f);
    fprintf(f,
            "  _%s_reply\n  cur=${w[n - 1]} x=${w[n - 1]##*:}\n  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then "
            "COMPREPLY=(\"${COMPREPLY[@]#\"${cur%%\"$x\"}\"}\"); fi\n}\ncomplete -o filenames -F _%s %s\n",
            prog, prog, prog);
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

static void zsh_spelling(FILE *f, const char *prog, const hn_opt *o, const char *word, size_t len)
{
    fprintf(f, " \\\n      '*%.*s[", (int)len, word); /* '*': may be given again, the last wins */
    quoted(f, o->help, true);
    fputc(']', f);
    if (o->kind != HN_OPT_FLAG) {
        fprintf(f, ":");
        quoted(f, o->arg ? o->arg : "value", true);
        fputc(':', f);
        if (o->kind == HN_OPT_FILE || words_of_option(o)) zsh_words(f, prog, words_of_option(o));
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
    zsh_spelling(f, prog, o, name, (size_t)n);
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        zsh_spelling(f, prog, o, a, k);
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
    if (c->max_args || c->takes) {
        fputs(" \\\n      '*:argument:", f);
        zsh_words(f, prog, words_of_args(c));
        fputc('\'', f);
    }
    fputs(" ;;\n", f);
}

/* One of the commands of a level, and below it the next level. */
static void zsh_level(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    fprintf(f, "  %s)\n", last_word(c));
    if (c->subs_or_args) {
        fputs("    if (( CURRENT > 2 )); then case $words[2] in\n", f);
        for (const hn_command *const *s = c->subs; *s; s++) {
            fprintf(f, "  %s) shift words; (( CURRENT-- ))\n", last_word(*s));
            zsh_command(f, prog, *s, common);
        }
        fprintf(f, "    esac; [[ $words[1] == %s ]] || return; fi\n", last_word(c));
    }
    if (!c->subs || c->subs_or_args) {
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
    /* Found in $fpath, the file is the body of _PROG when it is first wanted, and has to answer; else it was sourced */
    fprintf(f, "  esac\n}\nif [ \"$funcstack[1]\" = _%s ]; then _%s \"$@\"; else compdef _%s %s; fi\n", prog, prog,
            prog, prog);
}

/* What stands on the line before the word that is wanted: `words`, or nothing else. */
static const char *const fish_helpers = "function __%s_is\n"
                                        "    set -l words (commandline -opc)[2..-1]\n"
                                        "    test (count $words) -eq (count $argv); and test \"$words\" = \"$argv\"\n"
                                        "end\n"
                                        "function __%s_in\n"
                                        "    set -l words (commandline -opc)[2..-1]\n"
                                        "    set -l n (count $argv)\n"
                                        "    test (count $words) -ge $n; and test \"$words[1..$n]\" = \"$argv\"\n"
                                        "end\n";

/* Files that are no models are offered too, behind them. */
static void fish_words(FILE *f, const char *prog, const char *words)
{
    if (strcmp(words, "gguf") == 0) fprintf(f, " -rka '(__fish_complete_suffix .gguf; %s help --words models)'", prog);
    else fprintf(f, " -xa '(%s help --words %s)'", prog, words);
}

static void fish_option(FILE *f, const char *prog, const hn_command *c, const hn_opt *o)
{
    fprintf(f, "complete -c %s -n '__%s_in %s", prog, prog, c->name);
    fprintf(f, "' -l %s", o->name);
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        if (a[1] == '-') fprintf(f, " -l %.*s", (int)k - 2, a + 2);
        else fprintf(f, " -%c %.*s", k == 2 ? 's' : 'o', (int)k - 1, a + 1);
        a += k;
        while (*a == ' ') a++;
    }
    if (words_of_option(o)) fish_words(f, prog, words_of_option(o));
    else if (o->kind == HN_OPT_FILE) fputs(" -rF", f);
    else if (o->kind == HN_OPT_CHOICE) {
        fputs(" -xa '", f);
        with_separator(f, o->choices, '|', ' ');
        fputs("'", f);
    } else if (o->kind != HN_OPT_FLAG) fputs(" -x", f);
    fputs(" -d '", f);
    quoted(f, o->help, false);
    fputs("'\n", f);
}

/* Its options, and the words that are none. */
static void fish_command(FILE *f, const char *prog, const hn_command *c, const hn_opt_group *const *common)
{
    const char *words = words_of_args(c);
    each_option(f, prog, c, common, fish_option);
    if (!words && (c->max_args || c->takes)) return; /* files, as fish does by itself */
    fprintf(f, "complete -c %s -n '__%s_in %s' -f", prog, prog, c->name);
    if (words && strcmp(words, "gguf") == 0)
        fprintf(f, " -ka '(__fish_complete_suffix .gguf; %s help --words models)'", prog);
    else if (words) fprintf(f, " -a '(%s help --words %s)'", prog, words);
    fputc('\n', f);
}

static void fish_level(FILE *f, const char *prog, const hn_command *above, const hn_command *const *cmds,
                       const hn_opt_group *const *common)
{
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "complete -c %s -n '__%s_is%s%s' -f -a %s -d '", prog, prog, above ? " " : "",
                above ? above->name : "", last_word(*c));
        quoted(f, (*c)->summary, false);
        fputs("'\n", f);
        if ((*c)->subs) fish_level(f, prog, *c, (*c)->subs, common);
        if (!(*c)->subs || (*c)->subs_or_args) fish_command(f, prog, *c, common);
    }
}

static void completion_fish(FILE *f, const char *prog, const hn_command *const *cmds, const hn_opt_group *const *common)
{
    fprintf(f, "# fish completion for %s\n", prog);
    fprintf(f, fish_helpers, prog, prog);
    fish_level(f, prog, NULL, cmds, common);
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
