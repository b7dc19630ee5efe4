/* cli: what the commands share. A command is one cmd_NAME.c that defines
 *     const hn_command hn_command_NAME = { … .run = … };
 * and is listed in main.c. Sees hone.h, base/ and lab/ only.
 *
 * Results go to stdout through hn_out_*, everything else to stderr. A command
 * returns its exit code; functions here that return int give 0 or the exit code,
 * having printed the error. */
#ifndef HN_CLI_H
#define HN_CLI_H

#include "base/file.h"
#include "base/options.h"
#include "base/json_text.h"

typedef struct hn_cli {
    const hn_command *cmd;
    const hn_opts *opts;
    bool json;    /* --json */
    bool verbose; /* -v */
} hn_cli;

enum { /* exit codes */
       HN_EXIT_OK = 0,
       HN_EXIT_FAILURE = 1,
       HN_EXIT_USAGE = 2,
       HN_EXIT_MODEL = 3,
       HN_EXIT_NOMEM = 4,
       HN_EXIT_NETWORK = 5,
       HN_EXIT_INTERRUPTED = 6,
       HN_EXIT_REGRESSION = 10,
       HN_EXIT_INCONCLUSIVE = 11,
       HN_EXIT_QUALITY = 12,
       HN_EXIT_ENVIRONMENT = 13,
       HN_EXIT_SIGINT = 130
};

#define HN_TAGLINE "run and measure language models on this machine"
extern const hn_command hn_command_chat;
extern const hn_command *const hn_commands[];        /* ends with NULL */
const char *hn_help_words(const char *kind);         /* hone help --words: those that never change, by spaces */
extern const hn_opt_group *const hn_common_groups[]; /* --json -v --help; every command has them */

/* ---- option groups to list in a command -------------------------------------------------- */

extern const hn_opt_group hn_group_model;    /* model -m, pre */
extern const hn_opt_group hn_group_prompt;   /* prompt -p, file -f, ids, no-bos, no-special */
extern const hn_opt_group hn_group_compute;  /* threads -t, cpu, chunk -ub, kv */
extern const hn_opt_group hn_group_context;  /* ctx-size -c, state-in, state-out */
extern const hn_opt_group hn_group_lora;     /* lora (adapters.c) */
extern const hn_opt_group hn_group_sampling; /* temp top-k top-p min-p repeat-penalty presence-penalty
                                                frequency-penalty repeat-last-n seed -s */

/* ---- errors --------------------------------------------------------------------------------- */

int hn_exit_code(hone_status st); /* interrupted: 130 after SIGINT, else 6 */
/* 10 to 13: what a comparison found, and no error. */
static inline bool hn_is_verdict(int code) { return code >= HN_EXIT_REGRESSION && code <= HN_EXIT_ENVIRONMENT; }
/* "hone: MESSAGE"; returns the exit code of err->code. */
int hn_cli_fail(const hone_error *err);
/* The same for a file that should be a model: I/O errors count as a bad model (3). */
int hn_cli_fail_model(const hone_error *err);
/* The same of computing with the model of --model: where a number was none, its weights are looked through, and the
 * message names the first tensor and element that are to blame. */
int hn_cli_fail_numbers(const hn_cli *cli, const hone_error *err);
/* "hone: …"; returns code. */
int hn_cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "hone: …" and where to read on; returns HN_EXIT_USAGE. */
int hn_cli_usage(const hn_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An option that is given and changes nothing of what is asked for is refused: all of the command's but those named
 * (only), or those named. names: ends with NULL; why: what it belongs to, in words. 0, or the exit code. */
int hn_cli_without_effect(const hn_cli *cli, bool only, const char *const *names, const char *why);
/* What hone has in place of a word of another program: an option of a command's with its dashes, a command; NULL: not
 * known. */
const char *hn_foreign_option(const hn_command *cmd, const char *word);
const char *hn_foreign_command(const char *word);
/* The same for what is near to such a word, *near, as in dowload; NULL: nothing is. */
const char *hn_foreign_near(const hn_command *cmd, const char *word, const char **near);
/* "hone: note: …" */
void hn_cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for what changes answers: once, and also in the "notes" of what hn_json_print prints and of records. */
void hn_cli_caution(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
json_t *hn_cli_cautions(void); /* new array of texts; NULL: none */

/* ---- stdout and stderr (out.c) --------------------------------------------------------------------- */

/* main.c, once: whether they are terminals. A terminal gets no character that steers it (base/shown.h),
 * whatever text has in it; anything else gets the bytes. Without the call neither is a terminal. */
void hn_out_open(void);
/* What goes to stdout from now on is JSON, and stays so on a terminal; where nothing has come by the end but an error,
 * hn_out_finish prints that: {"schema":"hone.error/1","code":…,"message":…}. */
void hn_out_is_json(bool json);
void hn_out_remember(const char *error); /* of several the first counts */
bool hn_out_is_tty(void);
int hn_out_width(void); /* columns of the terminal; 80 elsewhere */
/* Buffered; false once stdout has failed: then stop. A closed pipe ends the command
 * quietly, any other failure is named; both with exit code 1 (main.c sees to it). */
bool hn_out_write(const void *p, size_t n);
bool hn_out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* hone's own colours and movements, never text from elsewhere. The caller knows that stdout is a terminal. */
bool hn_out_control(const char *sequence);
bool hn_out_flush(void);
bool hn_out_failed(void);
/* Flushes, and turns exit code 0 into 1 if anything could not be written. */
int hn_out_finish(int code);
/* A whole text for stderr, for what is no error or note. */
void hn_err_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void hn_err_control(const char *sequence);
/* Undoes colours and a progress line, from a handler. Async-signal-safe. */
void hn_out_restore(void);

/* ---- JSON: one line, "schema" first ---------------------------------------------------------------- */

json_t *hn_json_new(const char *schema); /* object */
json_t *hn_json_ids(const int32_t *ids, size_t n);
json_t *hn_json_str(const char *s, size_t len); /* ill-formed UTF-8 becomes U+FFFD */
json_t *hn_json_num(double x);                  /* rounded to three decimals; null when not finite */
int hn_json_print(json_t *obj);                 /* takes obj (NULL: out of memory) */
/* The exit code of a command that ended with rc and whose JSON was printed with `printed`: where memory lacked for it
 * there is no verdict either, so that 10 to 13 become 4; an error stays the one that it was. */
int hn_json_printed(int rc, int printed);

/* ---- interruption ---------------------------------------------------------------------------------- */

void hn_cli_signals(void);      /* main.c, once */
void hn_cli_catch_hangup(void); /* a terminal that goes away is an interruption, too, unless it is ignored */
int hn_interrupted(void);       /* SIGINT or SIGTERM once received, else 0 */
bool hn_abort_fn(void *unused); /* for hone_session_set_abort, hone_progress.abort_fn */

/* ---- single kernels (bench_kern.c) ----------------------------------------------------------------- */

extern const hn_opt_group hn_group_kern; /* preset, columns, layout, quick */
int hn_lab_list(const hn_cli *cli);      /* hone lab list */

/* ---- measured processes (bench_child.c) ------------------------------------------------------------- */

bool hn_is_bench_child(const hn_cli *cli); /* does the command line mean one? */
int hn_bench_child(const hn_cli *cli);

/* ---- options of other harnesses (bench_alias.c) ----------------------------------------------------- */

extern const hn_opt_group hn_group_alias; /* warmup, warm-up-time, measurement-time, timing, profile, baselines, … */
int hn_bench_aliases(const hn_cli *cli);  /* refuses what this build lacks, before anything is measured */
/* After a measurement: --profile, --baseline and --save-baseline. base: where the records are, as --file takes
 * it; record: the one, NULL: all. */
int hn_bench_follow(const hn_cli *cli, const char *base, const char *record);

/* ---- entries of the catalogue (bench_suite.c) -------------------------------------------------------- */

extern const hn_opt_group hn_group_suite; /* suite, seed */
int hn_bench_suite(const hn_cli *cli);    /* hone bench ID…, hone bench --suite NAME */

/* ---- files that change under us (fault.c) ------------------------------------------------------------ */

void hn_cli_catch_faults(void);   /* main.c, once: SIGBUS in a mapped file ends the program with a word */
int hn_cli_check_files(int code); /* at the end: 1 instead of 0, and a word, if one had changed without a fault */
/* Called before the program ends in a handler: removes what is half written. Async-signal-safe; NULL: nothing. */
extern void (*volatile hn_cli_last_act)(void);

/* ---- input ------------------------------------------------------------------------------------------- */

/* The whole of a file; path "-": stdin. *data malloc'ed and NUL-terminated. HONE_E_IO names path and reason. */
hone_status hn_read_all(const char *path, char **data, size_t *n, hone_error *err);
/* hn_cli_fail for a file that `option` names and that could not be read, with the next step where it is not there. */
int hn_cli_fail_input(const hn_cli *cli, const char *option, const char *path, const hone_error *err);
bool hn_cli_piped(void); /* standard input is a pipe or a file: somebody has put something there */
/* A note where a pipe has something to say, and -p, -f or --ids gave the prompt. */
void hn_cli_say_unread(const hn_cli *cli);
/* Ids from the value of --ids: "1,2,3", or "@FILE" for a file of them ("@-": stdin). */
hone_status hn_read_ids(int32_t **ids, size_t *n, const char *value, const char *what, hone_error *err);

/* Those of --ids are in the vocabulary? 0, or the exit code of the first that is not. */
int hn_cli_check_ids(const hn_cli *cli, const hone_model_info *info, const int32_t *ids, size_t n);

/* Before any work: nothing that the command line writes is also read, or written twice, by whatever name, and all of it
 * can be replaced (no folder, device, pipe). main.c does it for every command from the tables of its options
 * (hn_opt.use, hn_command.reads_args); a command that makes names of its own calls it again with those, and says how
 * many folders on the way to them it makes: what it would not make must be there. */
enum { HN_ALL_FOLDERS = 4096 };
int hn_cli_files_apart(const hn_cli *cli, const hn_file_use *more, size_t n_more, int folders);

/* The prompt of hn_group_prompt. text/len: as given (text NULL with --ids); ids: tokens
 * to run, checked against the vocabulary, at least one. */
typedef struct hn_prompt {
    char *text;
    size_t len;
    int32_t *ids;
    size_t n;
} hn_prompt;
int hn_cli_prompt(const hn_cli *cli, const hone_model *m, hn_prompt *out);
/* Its text alone, of -p, -f or what is piped in, without the line end that echo adds. */
int hn_cli_prompt_text(const hn_cli *cli, hn_prompt *out);
void hn_prompt_free(hn_prompt *p);

/* ---- models, contexts, sessions from options ------------------------------------------------------------ */

const char *hn_cli_model_name(const hn_cli *cli);                            /* -m, fit for a message */
int hn_cli_open_model(const hn_cli *cli, bool vocab_only, hone_model **out); /* hn_group_model */
/* Where -m may be left out, and is: the model that comes with the program, said to be the one (bundled.c). Before the
 * command runs; 0 or the exit code. */
int hn_cli_supply_model(const hn_cli *cli, hn_opts *opts);
const char *hn_cli_bundled(void); /* where it is, NULL: nowhere */
/* What the options name as models and is no file: names of models here become their files, so that all that follows
 * sees the real ones (named.c). Before the command runs; 0 or the exit code. */
int hn_cli_resolve_models(const hn_cli *cli, hn_opts *opts);
/* The same of one text: path [HN_CLI_PATH] is the file where text is a name of one here, "" where it is a path.
 * HONE_E_IO: it is neither; the message says how to get it. */
enum { HN_CLI_PATH = 4096 };
hone_status hn_cli_model_path(char *path, const char *text, hone_error *err);
bool hn_cli_is_model_name(const char *text);       /* one that is here, or is listed */
const char *hn_cli_served_name(const char *value); /* the '=' of NAME=FILE; NULL: it is a file or name alone */
/* After "cannot open" of a model: what is there instead, and the next step (advise.c). */
void hn_cli_advise_model(const char *path);
/* What is to be told of a model just opened, and of a session of n_ctx positions on it, if anything. */
void hn_cli_model_notes(const hone_model_info *info);
void hn_cli_window_note(const hone_model_info *info, int64_t n_ctx);
const char *hn_cli_weights(const hone_model_info *info);       /* hn_weights_words, valid until the next call */
int hn_cli_new_context(const hn_cli *cli, hone_context **out); /* -t, else HONE_THREADS; --cpu, else HONE_CPU */
/* GB/s that these threads read at most, as hone lab peaks found on this machine; 0: it was not asked. */
double hn_cli_read_roof(const hone_context *ctx);
/* hn_group_compute; a session of n_ctx positions per sequence that stops on interruption. */
int hn_cli_new_session(const hn_cli *cli, hone_context *ctx, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                       hone_session **out);
/* The same with so many tokens of a pass, whatever --chunk says. */
int hn_cli_new_session_of(const hn_cli *cli, hone_context *ctx, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                          int32_t n_chunk, hone_session **out);
/* What a session of n_ctx positions does otherwise than its model was made for; apart from hn_cli_new_session, which
 * is timed. */
void hn_cli_session_notes(const hone_model *m, int32_t n_ctx);
hone_kv_cache_type hn_cache_of(const char *name); /* of --kv: "f16", "f32" or "q8_0" */
/* What --lora names, opened and set in an empty session; hn_cli_new_session does it. */
int hn_cli_set_adapters(const hn_cli *cli, const hone_model *m, hone_session *s);
/* A sequence that is empty gets them, and the first once more, at scales that `draw` draws; none: nothing. */
hone_status hn_cli_scale_adapters(const hn_cli *cli, const hone_model *m, hone_session *s, int32_t seq, uint64_t draw,
                                  hone_error *err);
/* The chat template that one of them (the last that has one) was trained with, or NULL; borrowed. */
int hn_cli_adapters_template(const hn_cli *cli, const hone_model *m, const char **source);
json_t *hn_cli_adapters_json(void); /* of those set last: array of {file, hash, scale, rank, pairs}; NULL: none */
const char *hn_cli_adapters_words(char *dst, size_t cap); /* ", adapter …" or "" */
/* hn_group_sampling; without a seed one of the system. 0, or the exit code. */
int hn_cli_sampling(const hn_cli *cli, hone_sampler_params *p);
bool hn_cli_new_seed(uint64_t *seed); /* of -1, which asks for one; false: the system has none */
/* "FILE[:SCALE]"; *path is malloc'ed. */
int hn_cli_adapter_arg(const char *arg, char **path, float *scale);
/* hn_group_context too: with -c that many positions; else room for n_prompt tokens and n_more
 * after what --state-in holds, at most what the model was trained for.
 * On failure *out may be there, half done: the caller frees it. */
int hn_cli_open_session(const hn_cli *cli, hone_context *ctx, const hone_model *m, size_t n_prompt, int64_t n_more,
                        int32_t n_seq, hone_session **out);

/* Will hn_cli_append of n tokens show its progress? What stands in that line of the terminal is lost then. */
bool hn_cli_append_shows(const hn_cli *cli, int32_t n);
/* hone_append to sequence 0; where stderr is a terminal and n are more than one --chunk, piece by piece. */
hone_status hn_cli_append(const hn_cli *cli, hone_session *s, const int32_t *ids, int32_t n, const float **logits,
                          hone_error *err);

/* Learns the identity of m, which its session files name; told of while all of a large file is read, the first time. */
hone_status hn_cli_know(const hone_model *m, hone_error *err);

/* ---- time and progress ------------------------------------------------------------------------------------ */

double hn_now_ms(void); /* monotonic */
/* Progress on stderr when it is a terminal: "label 42 %". Use as
 * hone_progress{ hn_progress_fn, "writing x.gguf", hn_abort_fn }; end with hn_progress_end. */
enum { HN_PROGRESS_ROOM = 7 }; /* columns that hn_progress_fn needs beside the label */
void hn_progress_fn(void *label, uint64_t done, uint64_t total);
int hn_columns(void); /* of the terminal; 80 where that is unknown */
void hn_progress_end(void);
bool hn_stderr_is_tty(void);

#endif
