/* train_command: what the files of hone train share: the run at work, its log, what it
 * shows. Only cmd_train.c and train_*.c include it. */
#ifndef HN_TRAIN_COMMAND_H
#define HN_TRAIN_COMMAND_H

#include "cli/cli.h"

#define HN_TRAIN_SCHEMA "hone.train/1"

typedef struct hn_train_job {
    const hn_cli *cli;
    const char *out, *peft;    /* peft NULL: none */
    char *log, *folder, *base; /* of records; of checkpoints; the model to begin from, where hone makes it */
    bool base_made;            /* the file is there, to be removed in the end */
    char *chat_template;       /* Jinja source from a file; NULL: none */
    hone_model *m;
    hone_context *ctx;
    hone_trainer *t;
    hone_train_params p;
    hone_train_info info;
    int64_t save_every, resumed; /* resumed: the step it went on from, 0: none */
    int32_t keep;
    double started_ms, trained_ms; /* trained_ms: in steps, without validation and saving */
    int64_t n_tok;                 /* in them, in this process */
    FILE *log_file;
} hn_train_job;

/* ---- train_files.c ---- */

/* Names of all that is written, from the options: no file is read and written, or written twice, and each can be made.
 * 0 or the exit code. */
int hn_train_files(hn_train_job *j);

/* ---- train_log.c: one JSON object a line, kinds "run", "resume", "step", "end" ---- */

/* Opens the log for this process alone, as it is. Before anything of an earlier run is touched. 0 or the exit code. */
int hn_train_log_lock(hn_train_job *j);
/* Begins the log; when training goes on, records of later steps are taken out of the old one. 0 or the exit code. */
int hn_train_log_open(hn_train_job *j);
int hn_train_log_step(hn_train_job *j, const hone_train_step *s);
int hn_train_log_end(hn_train_job *j, const char *why);
void hn_train_log_close(hn_train_job *j);
json_t *hn_train_settings_json(const hn_train_job *j);
json_t *hn_train_real(double x); /* null when not finite; eight digits are enough for a loss */

/* ---- train_show.c: for people, on stderr ---- */

void hn_train_show_plan(const hn_train_job *j);
/* Before anything is trained: what the run cannot teach, and what to change. */
void hn_train_warn(const hn_train_job *j);
void hn_train_show_step(hn_train_job *j, const hone_train_step *s);
/* The summary on stdout, as text or --json. why: "done" "early" "interrupted" "plan". */
int hn_train_summary(hn_train_job *j, const char *why);

#endif
