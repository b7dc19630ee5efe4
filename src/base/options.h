/* options: one table per command gives parsing, help, the manual page and shell
 * completion. Knows words and numbers; refuses to know what they mean. Prints
 * nothing except to the FILE it is handed. */
#ifndef HN_OPTIONS_H
#define HN_OPTIONS_H

#include "base/argv.h"

typedef enum HN_SMALL hn_opt_kind {
    HN_OPT_FLAG, /* no value */
    HN_OPT_STR,  /* any text */
    HN_OPT_FILE, /* a path; completion offers file names */
    HN_OPT_I32,
    HN_OPT_U64,   /* decimal integers; U64 ends at 2^63-1, so that JSON can hold it */
    HN_OPT_F32,   /* finite */
    HN_OPT_CHOICE /* one of the words of `choices` */
} hn_opt_kind;

/* What a command does with the file that a value names. From this a program knows all files of a command line before
 * the command runs (cli/command_files.c). */
typedef enum HN_SMALL hn_opt_use {
    HN_USE_KIND = 0, /* FILE: read, "-" is standard input; any other kind: no file */
    HN_USE_NONE,     /* no file, or one that the command itself looks after */
    HN_USE_DATA,     /* a file that is read, or a folder of data */
    HN_USE_MODEL,    /* a file that is read, or the name of a model that is here (cli/named.c) */
    HN_USE_SERVED,   /* [NAME=] and the same */
    HN_USE_SHELF,    /* a folder that is read, or the repository whose files are here */
    HN_USE_AT,       /* text, or "@FILE", which is read */
    HN_USE_PACKED,   /* the words auto and off, or a file that is read */
    HN_USE_ADAPTER,  /* FILE[:SCALE], read; FILE may be a name */
    HN_USE_WRITE,    /* replaced, or grows */
    HN_USE_REPORT,   /* the same, "-" is standard output */
    HN_USE_FOLDER,   /* files are made in it */
    HN_USE_PEFT,     /* a folder for an adapter's two files */
    HN_USE_RECORDS,  /* a name of the laboratory's: NAME.jsonl and NAME.md grow */
    HN_USE_HISTORY   /* the same, NAME.jsonl is read */
} hn_opt_use;

/* What an option says, for those who hand it on (hn_opts_forward). */
enum hn_opt_forward {
    HN_FORWARD_MODEL = 1,    /* which model */
    HN_FORWARD_SETTINGS = 2, /* how it is read and run */
    HN_FORWARD_LENGTHS = 4,  /* tokens of prompt and generation */
    HN_FORWARD_ADAPTERS = 8,
    HN_FORWARD_QUALITY = 16 /* which quality hash */
};

typedef struct hn_opt {
    const char *name;    /* "top-k": spelled --top-k, and the key of the getters */
    const char *alias;   /* other spellings with their dashes, space separated ("-s", "-ub --ubatch-size"), or NULL */
    const char *arg;     /* name of the value in help ("N"); NULL for flags */
    const char *help;    /* what it does, no final period */
    const char *def;     /* default as text, shown in help; NULL: none (getters give NULL or 0) */
    double min, max;     /* range of numbers; both 0: that of the type. U64 with min -1 accepts "-1" as UINT64_MAX */
    const char *choices; /* CHOICE: "f16|f32" */
    const char *excl;    /* of the options with the same word here, at most one may be given */
    const char *what;    /* the file, in a message: "the model"; NULL: "what --NAME reads" */
    hn_opt_kind kind;
    hn_opt_use use;
    uint8_t forward; /* hn_opt_forward: other processes of this program are given it; 0: never */
    /* May be given many times: hn_opts_count, hn_opts_nth. Otherwise two texts or files contradict each other; of
     * numbers and choices the last one wins, so that a setting can be overruled (hn_opts_overruled). */
    bool repeat;
} hn_opt;

/* One row: HN_OPT("top-k", NULL, I32, "N", "keep the N most probable", .def = "40", .max = 1000) */
#define HN_OPT(name_, alias_, kind_, arg_, help_, ...)                                                  \
    {                                                                                                   \
        .name = name_, .alias = alias_, .kind = HN_OPT_##kind_, .arg = arg_, .help = help_, __VA_ARGS__ \
    }
#define HN_OPT_END   \
    {                \
        .name = NULL \
    }

typedef struct hn_opt_group {
    const char *title;  /* heading in help: "Sampling" */
    const hn_opt *opts; /* ends with name NULL */
} hn_opt_group;

struct hn_cli;
typedef struct hn_command {
    const char *name;
    const char *summary;                  /* one line for help, no final period */
    const char *args;                     /* positional arguments in help: "FILE", "[COMMAND]"; NULL: none */
    int min_args, max_args;               /* how many of them; max_args -1: any number */
    const hn_opt_group *const *groups;    /* ends with NULL; may be NULL */
    const char *examples;                 /* lines for help and manual, each ending in \n; or NULL */
    int (*run)(const struct hn_cli *cli); /* returns the exit code */
    const struct hn_command *const
        *subs;         /* NULL, or commands below this one, ends with NULL: `name` is then "lab ab" */
    bool subs_or_args; /* it is a command itself, too: a word that is none of subs is an argument */
    const char *takes; /* options, by name, that positional arguments stand for, in this order, where they are not
                          given themselves: "model prompt"; they are no arguments then */
    /* NULL, or another command that the same words are meant for: run without a prompt is chat. NULL: this one. */
    const struct hn_command *(*instead)(const struct hn_cli *cli);
    bool reads_args;      /* positional arguments that are there are files, and read */
    bool names_args;      /* those that are not there may be names of models (cli/named.c) */
    bool checkpoint_args; /* … of checkpoints first */
    bool bundled;         /* -m may be left out: the model that comes with the program (cli/bundled.c) */
} hn_command;

/* ---- parsing ------------------------------------------------------------------------- */

typedef struct hn_opts hn_opts; /* borrows argv and the tables */

/* Parses argv[0..argc) (without program and command name) for cmd. `--name value`,
 * `--name=value`, `-x value`; "--" ends options; a lone "-" is an argument.
 * HONE_E_ARG: unknown option (with the nearest known one), missing or bad value,
 * contradiction. `common`: groups every command has. */
hone_status hn_opts_parse(hn_opts **out, const hn_command *cmd, const hn_opt_group *const *common, int argc,
                          char *const *argv, hone_error *err);
void hn_opts_free(hn_opts *o);
/* Are there as many positional arguments as cmd takes? Apart, so that --help needs none. */
hone_status hn_opts_check_args(const hn_opts *o, const hn_command *cmd, hone_error *err);

bool hn_opts_has(const hn_opts *o, const char *name); /* is there such an option at all? */

/* Getters. `name` must be in the table with the kind asked for (asserted). */
bool hn_opts_given(const hn_opts *o, const char *name); /* on the command line, defaults do not count */
bool hn_opts_flag(const hn_opts *o, const char *name);
const char *hn_opts_str(const hn_opts *o, const char *name); /* STR, FILE, CHOICE; NULL: not given, no default */
int32_t hn_opts_i32(const hn_opts *o, const char *name);
uint64_t hn_opts_u64(const hn_opts *o, const char *name);
float hn_opts_f32(const hn_opts *o, const char *name);
size_t hn_opts_count(const hn_opts *o, const char *name);              /* how often given */
const char *hn_opts_nth(const hn_opts *o, const char *name, size_t i); /* text of the i-th */
/* As if "--name value" had been on the command line too; value is borrowed. For what is found out after parsing. */
hone_status hn_opts_supply(hn_opts *o, const char *name, const char *value, hone_error *err);
/* Another text in place of the i-th of option `name`, or of the i-th argument where that is NULL; it is copied. */
hone_status hn_opts_replace(hn_opts *o, const char *name, size_t i, const char *value, hone_error *err);
/* The options of these groups (hn_opt_forward) as "--NAME=VALUE" for another process of this program: those that
 * were given, with `defaults` also those that have a default. */
void hn_opts_forward(const hn_opts *o, unsigned groups, bool defaults, hn_argv *out);
/* The names of the options on the command line, one after the other; NULL behind the last. *at is 0 at first;
 * *spelled: as it was written there. */
const char *hn_opts_next(const hn_opts *o, size_t *at, const char **spelled);
/* The settings that were given anew with another value, one after the other, as hn_opts_next. */
const char *hn_opts_overruled(const hn_opts *o, size_t *at, const char **was, const char **is);
/* Does `word`, with its dashes and up to a '=', spell an option of these tables? */
bool hn_opts_knows(const hn_command *cmd, const hn_opt_group *const *common, const char *word);
int hn_opts_n_args(const hn_opts *o);
const char *hn_opts_arg(const hn_opts *o, int i); /* positional; NULL beyond the end */

/* ---- numbers, for values inside other values --------------------------------------------- */

/* The whole of s as a number in [min, max]; `what` names it in the message. */
hone_status hn_parse_i64(int64_t *out, const char *s, int64_t min, int64_t max, const char *what, hone_error *err);
hone_status hn_parse_f32(float *out, const char *s, double min, double max, const char *what, hone_error *err);
/* "1,2,3" (commas, spaces, newlines): ids in [0, INT32_MAX]; *ids malloc'ed. At least one. */
hone_status hn_parse_ids(int32_t **ids, size_t *n, const char *s, size_t len, const char *what, hone_error *err);

/* The word of `words` (n of them, NULLs skipped) nearest to s, or NULL when none is near. */
const char *hn_nearest(const char *s, const char *const *words, size_t n);

/* ---- what else the tables give --------------------------------------------------------------- */

/* `cmds` ends with NULL. */
/* columns: of the terminal; 80 elsewhere. */
void hn_help_command(FILE *f, const char *prog, const hn_command *cmd, const hn_opt_group *const *common, int columns);
void hn_help_global(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds, int columns);
/* only NULL: the program's own page; else that of a command and those below it. */
void hn_help_man(FILE *f, const char *prog, const char *tagline, const hn_command *const *cmds,
                 const hn_opt_group *const *common, const hn_command *only);
/* shell: "bash", "zsh" or "fish"; false: another. */
bool hn_help_completion(FILE *f, const char *prog, const char *shell, const hn_command *const *cmds,
                        const hn_opt_group *const *common);

#endif
