/* What the options tables say about themselves: help, manual page, completion
 * scripts. Owns layout and quoting; the words come from the tables. */
#include "base/options.h"

#include <assert.h>
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

/* A script for one shell. Most options belong to groups that many commands have: each group is said once, under its
 * number, and a command names those it has. */
enum { MOST_GROUPS = 256 };
typedef struct script {
    FILE *f;
    const char *prog;
    const hn_command *const *cmds;
    const hn_opt_group *const *common;
    const hn_opt_group *groups[MOST_GROUPS]; /* [n_group] in the order in which they are met */
    int n_group;
} script;

static int number_of(script *s, const hn_opt_group *g)
{
    int i = 0;
    while (i < s->n_group && s->groups[i] != g) i++;
    if (i == s->n_group) {
        assert(i < MOST_GROUPS);
        s->groups[s->n_group++] = g;
    }
    return i;
}

static void list_groups(script *s, const hn_command *const *cmds)
{
    for (const hn_command *const *c = cmds; *c; c++) {
        for (const hn_opt_group *const *g = (*c)->groups; g && *g; g++) number_of(s, *g);
        if ((*c)->subs) list_groups(s, (*c)->subs);
    }
    for (const hn_opt_group *const *g = s->common; g && *g; g++) number_of(s, *g);
}

static void put_numbers(script *s, const hn_command *c)
{
    for (const hn_opt_group *const *g = c->groups; g && *g; g++) fprintf(s->f, " %d", number_of(s, *g));
    for (const hn_opt_group *const *g = s->common; g && *g; g++) fprintf(s->f, " %d", number_of(s, *g));
}

/* The words of a list, with another separator. */
static void with_separator(FILE *f, const char *list, char from, char to)
{
    for (; *list; list++) fputc(*list == from ? to : *list, f);
}

/* Text with PROG in it. */
static void put_text(const script *s, const char *text)
{
    for (const char *at; (at = strstr(text, "PROG")); text = at + 4) {
        fwrite(text, 1, (size_t)(at - text), s->f);
        fputs(s->prog, s->f);
    }
    fputs(text, s->f);
}

/* What is said of a file or of words: their kind, or any file. */
static const char *kind_of(const char *words) { return words ? words : "files"; }

/* An option is a value's name in bash; what it is followed by. */
static void bash_value(const script *s, const hn_opt *o)
{
    if (o->kind == HN_OPT_FLAG) return;
    fputs("  ", s->f);
    if (o->alias) {
        with_separator(s->f, o->alias, ' ', '|');
        fputc('|', s->f);
    }
    fprintf(s->f, "--%s) ", o->name);
    if (o->kind == HN_OPT_FILE || words_of_option(o)) {
        fprintf(s->f, "_%s_words %s", s->prog, kind_of(words_of_option(o)));
    } else if (o->kind == HN_OPT_CHOICE) {
        fprintf(s->f, "_%s_of -W '", s->prog);
        with_separator(s->f, o->choices, '|', ' ');
        fputc('\'', s->f);
    }
    fputs(" ;;\n", s->f);
}

/* True: the word is the value of one of its options. */
static void bash_group(const script *s, int i)
{
    fprintf(s->f, "_%s_%d() {\n  case $prev in\n", s->prog, i);
    for (const hn_opt *o = s->groups[i]->opts; o->name; o++) bash_value(s, o);
    fputs("  *) opts+='", s->f);
    for (const hn_opt *o = s->groups[i]->opts; o->name; o++)
        fprintf(s->f, " --%s%s%s", o->name, o->alias ? " " : "", o->alias ? o->alias : "");
    fputs("'; return 1 ;;\n  esac\n  return 0\n}\n", s->f);
}

static void bash_command(script *s, const hn_command *c, const char *indent)
{
    fprintf(s->f, "%s_%s_command %s", indent, s->prog, kind_of(words_of_args(c)));
    put_numbers(s, c);
    fputc('\n', s->f);
}

/* Word `at` is a command below; what follows are its options. */
static void bash_subs(script *s, const hn_command *c, int at)
{
    fprintf(s->f, "    if [ \"$COMP_CWORD\" -eq %d ]; then _%s_of -W '", at, s->prog);
    for (const hn_command *const *b = c->subs; *b; b++) fprintf(s->f, "%s%s", b == c->subs ? "" : " ", last_word(*b));
    fprintf(s->f, "'; return; fi\n    case ${COMP_WORDS[%d]} in\n", at);
    for (const hn_command *const *b = c->subs; *b; b++) {
        fprintf(s->f, "    %s)\n", last_word(*b));
        if ((*b)->subs) bash_subs(s, *b, at + 1);
        else bash_command(s, *b, "      ");
        fputs("      ;;\n", s->f);
    }
    fputs("    esac\n", s->f);
}

/* A command that may be followed by one below it, or by options and arguments of its own. */
static void bash_both(script *s, const hn_command *c)
{
    fputs("    case $([ \"$COMP_CWORD\" -gt 2 ] && echo \"${COMP_WORDS[2]}\") in\n", s->f);
    for (const hn_command *const *b = c->subs; *b; b++) {
        fprintf(s->f, "    %s)\n", last_word(*b));
        bash_command(s, *b, "      ");
        fputs("      ;;\n", s->f);
    }
    fputs("    *)\n", s->f);
    bash_command(s, c, "      ");
    fputs("      [ \"$COMP_CWORD\" -gt 2 ] || COMPREPLY+=($(compgen -W '", s->f);
    for (const hn_command *const *b = c->subs; *b; b++) fprintf(s->f, "%s%s", b == c->subs ? "" : " ", last_word(*b));
    fputs("' -- \"$cur\"))\n      ;;\n    esac\n", s->f);
}

static const char *const bash_helpers =
    "# bash completion for PROG: source this file\n"
    "_PROG_of() { COMPREPLY=($(compgen \"$@\" -- \"$cur\")); }\n"
    /* a line each: names of files have blanks and stars */
    "_PROG_add() {\n"
    "  local x IFS=$'\\n'\n"
    "  while IFS= read -r x; do [ -z \"$x\" ] || COMPREPLY+=(\"$x\"); done <<<\"$(compgen \"$@\" -- \"$cur\")\"\n"
    "}\n"
    "_PROG_words() {\n"
    "  COMPREPLY=()\n"
    "  case $1 in\n"
    "  files) _PROG_add -f ;;\n"
    "  gguf)\n"
    "    _PROG_add -d\n"
    "    _PROG_add -f -X '!*.gguf'\n"
    "    _PROG_add -W \"$(PROG help --words models 2>/dev/null)\"\n"
    "    ;;\n"
    "  *) _PROG_add -W \"$(PROG help --words $1 2>/dev/null)\" ;;\n"
    "  esac\n"
    "}\n"
    "_PROG_command() {\n"
    "  local i opts= args=$1\n"
    "  shift\n"
    "  for i; do _PROG_$i && return; done\n"
    "  if [[ $cur == -* ]]; then _PROG_of -W \"$opts\"; else _PROG_words $args; fi\n"
    "}\n";

/* bash divides words at colons, too, which names of models have, and wants what stands behind the last one. */
static const char *const bash_joined =
    "  esac\n}\n_PROG() {\n"
    "  local -a w=()\n  local i n=0 x cur\n"
    "  for ((i = 0; i <= COMP_CWORD; i++)); do\n    x=${COMP_WORDS[i]}\n"
    "    if ((n > 1)) && [ -n \"$x\" ] && [[ $x == :* || ${w[n - 1]} == *: ]]; then w[n - 1]+=$x; else w[n++]=$x; fi\n"
    "  done\n  local COMP_WORDS=(\"${w[@]}\") COMP_CWORD=$((n - 1))\n"
    "  _PROG_reply\n  cur=${w[n - 1]} x=${w[n - 1]##*:}\n  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then "
    "COMPREPLY=(\"${COMPREPLY[@]#\"${cur%%\"$x\"}\"}\"); fi\n}\ncomplete -o filenames -F _PROG PROG\n";

static void completion_bash(script *s)
{
    put_text(s, bash_helpers);
    for (int i = 0; i < s->n_group; i++) bash_group(s, i);
    put_text(s, "_PROG_reply() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "  COMPREPLY=()\n  if [ \"$COMP_CWORD\" -eq 1 ]; then _PROG_of -W '");
    for (const hn_command *const *c = s->cmds; *c; c++) fprintf(s->f, "%s%s", c == s->cmds ? "" : " ", (*c)->name);
    fputs("'; return; fi\n  case ${COMP_WORDS[1]} in\n", s->f);
    for (const hn_command *const *c = s->cmds; *c; c++) {
        fprintf(s->f, "  %s)\n", (*c)->name);
        if ((*c)->subs && !(*c)->subs_or_args) bash_subs(s, *c, 2);
        else if ((*c)->subs) bash_both(s, *c);
        else bash_command(s, *c, "    ");
        fputs("    ;;\n", s->f);
    }
    put_text(s, bash_joined);
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

/* '*': may be given again, the last wins. */
static void zsh_option(const script *s, const hn_opt *o)
{
    if (o->alias) {
        fprintf(s->f, "'*'{--%s,", o->name);
        with_separator(s->f, o->alias, ' ', ',');
        fputs("}'[", s->f);
    } else {
        fprintf(s->f, "'*--%s[", o->name);
    }
    quoted(s->f, o->help, true);
    fputc(']', s->f);
    if (o->kind != HN_OPT_FLAG) {
        fputc(':', s->f);
        quoted(s->f, o->arg ? o->arg : "value", true);
        fputc(':', s->f);
        if (words_of_option(o)) fprintf(s->f, "{_%s_words %s}", s->prog, words_of_option(o));
        else if (o->kind == HN_OPT_FILE) fputs("_files", s->f);
        if (o->kind == HN_OPT_CHOICE) {
            fputc('(', s->f);
            with_separator(s->f, o->choices, '|', ' ');
            fputc(')', s->f);
        }
    }
    fputs("'\n", s->f);
}

static void zsh_names(FILE *f, const hn_command *const *cmds)
{
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(f, "    '%s:", last_word(*c));
        quoted(f, (*c)->summary, true);
        fputs("'\n", f);
    }
}

static void zsh_command(script *s, const hn_command *c)
{
    const char *words = words_of_args(c);
    fprintf(s->f, "    _%s_command '", s->prog);
    if (words) fprintf(s->f, "{_%s_words %s}", s->prog, words);
    else if (c->max_args || c->takes) fputs("_files", s->f);
    fputc('\'', s->f);
    put_numbers(s, c);
    fputs(" ;;\n", s->f);
}

/* The commands below, which are offered if the word is one; and behind that. */
static void zsh_below(script *s, const hn_command *c, const char *then)
{
    fputs("    local -a below\n    below=(\n", s->f);
    zsh_names(s->f, c->subs);
    fprintf(s->f, "    )\n    if (( CURRENT == 2 )); then _describe command below; %sfi\n", then);
}

/* One of the commands of a level, and below it the next level. */
static void zsh_level(script *s, const hn_command *c)
{
    fprintf(s->f, "  %s)\n", last_word(c));
    if (c->subs_or_args) {
        fputs("    if (( CURRENT > 2 )); then case $words[2] in\n", s->f);
        for (const hn_command *const *b = c->subs; *b; b++) {
            fprintf(s->f, "  %s) shift words; (( CURRENT-- ))\n", last_word(*b));
            zsh_command(s, *b);
        }
        fprintf(s->f, "    esac; [[ $words[1] == %s ]] || return; fi\n", last_word(c));
        zsh_below(s, c, "");
    }
    if (!c->subs || c->subs_or_args) {
        zsh_command(s, c);
        return;
    }
    zsh_below(s, c, "return; ");
    fputs("    cmd=$words[2]\n    shift words; (( CURRENT-- ))\n    case $cmd in\n", s->f);
    for (const hn_command *const *b = c->subs; *b; b++) zsh_level(s, *b);
    fputs("    esac ;;\n", s->f);
}

static const char *const zsh_helpers = "#compdef PROG\n"
                                       "# zsh completion for PROG: put it as _PROG into a folder of $fpath\n"
                                       "_PROG_words() {\n"
                                       "  compadd -- $(PROG help --words ${1/gguf/models} 2>/dev/null)\n"
                                       "  [[ $1 != gguf ]] || _files -g \"*.gguf(-.)\"\n"
                                       "}\n"
                                       "_PROG_command() {\n"
                                       "  local -a opts\n"
                                       "  local i\n"
                                       "  for i in $@[2,-1]; do _PROG_$i; done\n"
                                       "  _arguments $opts ${1:+\"*:argument:$1\"}\n"
                                       "}\n";

static void completion_zsh(script *s)
{
    put_text(s, zsh_helpers);
    for (int i = 0; i < s->n_group; i++) {
        fprintf(s->f, "_%s_%d() { opts+=(\n", s->prog, i);
        for (const hn_opt *o = s->groups[i]->opts; o->name; o++) zsh_option(s, o);
        fputs(") }\n", s->f);
    }
    put_text(s, "_PROG() {\n  local -a commands\n  commands=(\n");
    zsh_names(s->f, s->cmds);
    fputs("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  local cmd=$words[2]\n"
          "  shift words; (( CURRENT-- ))\n  case $cmd in\n",
          s->f);
    for (const hn_command *const *c = s->cmds; *c; c++) zsh_level(s, *c);
    /* Found in $fpath, the file is the body of _PROG when it is first wanted, and has to answer; else it was sourced */
    put_text(s, "  esac\n}\nif [ \"$funcstack[1]\" = _PROG ]; then _PROG \"$@\"; else compdef _PROG PROG; fi\n");
}

/* A line is its words, with a slash behind each. Files that are no models are offered too, behind them. */
static const char *const fish_helpers = "# fish completion for PROG\n"
                                        "function __PROG_is\n"
                                        "    set -l line (string join -- / (commandline -opc)[2..-1])\n"
                                        "    test \"$line\" = \"$argv\"\n"
                                        "end\n"
                                        "function __PROG_in\n"
                                        "    set -l line (string join -- / (commandline -opc)[2..-1])/\n"
                                        "    for c in $argv\n"
                                        "        string match -qr \"^$c/\" \"$line\"; and return\n"
                                        "    end\n"
                                        "    return 1\n"
                                        "end\n"
                                        "function __PROG_words\n"
                                        "    test $argv = gguf; and __fish_complete_suffix .gguf\n"
                                        "    PROG help --words (string replace gguf models $argv) 2>/dev/null\n"
                                        "end\n";

/* "lab/ab" */
static void fish_name(const script *s, const hn_command *c)
{
    fputc(' ', s->f);
    if (c) with_separator(s->f, c->name, ' ', '/');
}

/* The same as an expression; of a command with others below it and options of its own: where none of those follows. */
static void fish_pattern(const script *s, const hn_command *c)
{
    fish_name(s, c);
    if (!c->subs_or_args) return;
    fputs("\"(?!/(", s->f);
    for (const hn_command *const *b = c->subs; *b; b++) fprintf(s->f, "%s%s", b == c->subs ? "" : "|", last_word(*b));
    fputs(")/)\"", s->f);
}

static void fish_option(const script *s, const hn_opt *o)
{
    const char *words = words_of_option(o);
    fprintf(s->f, "complete $c -l %s", o->name);
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        if (a[1] == '-') fprintf(s->f, " -l %.*s", (int)k - 2, a + 2);
        else fprintf(s->f, " -%c %.*s", k == 2 ? 's' : 'o', (int)k - 1, a + 1);
        a += k;
        while (*a == ' ') a++;
    }
    if (words) fprintf(s->f, " -%s '(__%s_words %s)'", strcmp(words, "gguf") ? "xa" : "rka", s->prog, words);
    else if (o->kind == HN_OPT_FILE) fputs(" -rF", s->f);
    else if (o->kind == HN_OPT_CHOICE) {
        fputs(" -xa '", s->f);
        with_separator(s->f, o->choices, '|', ' ');
        fputs("'", s->f);
    } else if (o->kind != HN_OPT_FLAG) fputs(" -x", s->f);
    fputs(" -d '", s->f);
    quoted(s->f, o->help, false);
    fputs("'\n", s->f);
}

static bool has_options(const hn_command *c) { return !c->subs || c->subs_or_args; }

static bool is_in(const hn_opt_group *g, const hn_opt_group *const *groups)
{
    for (; groups && *groups; groups++)
        if (*groups == g) return true;
    return false;
}

/* The names of the commands that have a group. */
static void fish_having(const script *s, const hn_opt_group *g, const hn_command *const *cmds)
{
    for (const hn_command *const *c = cmds; *c; c++) {
        if (has_options(*c) && (is_in(g, (*c)->groups) || is_in(g, s->common))) fish_pattern(s, *c);
        if ((*c)->subs) fish_having(s, g, (*c)->subs);
    }
}

/* The commands of a level, below it the next ones, and the words that are no options. */
static void fish_level(const script *s, const hn_command *above, const hn_command *const *cmds)
{
    fprintf(s->f, "set c -c %s -f -n '__%s_is", s->prog, s->prog);
    fish_name(s, above);
    fputs("'\n", s->f);
    for (const hn_command *const *c = cmds; *c; c++) {
        fprintf(s->f, "complete $c -a %s -d '", last_word(*c));
        quoted(s->f, (*c)->summary, false);
        fputs("'\n", s->f);
    }
    for (const hn_command *const *c = cmds; *c; c++) {
        const char *words = words_of_args(*c);
        if ((*c)->subs) fish_level(s, *c, (*c)->subs);
        if (!has_options(*c) || (!words && ((*c)->max_args || (*c)->takes)))
            continue; /* files, as fish does by itself */
        fprintf(s->f, "complete -c %s -f -n '__%s_in", s->prog, s->prog);
        fish_pattern(s, *c);
        fputc('\'', s->f);
        if (words) fprintf(s->f, " -%sa '(__%s_words %s)'", strcmp(words, "gguf") ? "" : "k", s->prog, words);
        fputc('\n', s->f);
    }
}

static void completion_fish(script *s)
{
    put_text(s, fish_helpers);
    fputs("set -l c\n", s->f);
    fish_level(s, NULL, s->cmds);
    for (int i = 0; i < s->n_group; i++) {
        fprintf(s->f, "set c -c %s -n '__%s_in", s->prog, s->prog);
        fish_having(s, s->groups[i], s->cmds);
        fputs("'\n", s->f);
        for (const hn_opt *o = s->groups[i]->opts; o->name; o++) fish_option(s, o);
    }
}

bool hn_help_completion(FILE *f, const char *prog, const char *shell, const hn_command *const *cmds,
                        const hn_opt_group *const *common)
{
    static const struct {
        const char *shell;
        void (*write)(script *s);
    } shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh }, { "fish", completion_fish } };
    script s = { .f = f, .prog = prog, .cmds = cmds, .common = common };
    list_groups(&s, cmds);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].shell) != 0) continue;
        shells[i].write(&s);
        return true;
    }
    return false;
}
