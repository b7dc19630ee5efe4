/* What hone perplexity and hone lab quality share: the text, the engine, the record. */
#ifndef HN_CLI_QUALITY_H
#define HN_CLI_QUALITY_H

#include "cli/cli.h"
#include "lab/bench/bench.h"
#include "lab/quality/perplexity.h"
#include "lab/quality/sketch.h"

extern const hn_opt_group hn_group_record;  /* file title change */
extern const hn_opt_group hn_group_windows; /* text -f, ids, ctx-size -c, chunks, stride */

typedef struct hn_text {
    int32_t *ids;
    int64_t n;
    int32_t bos;
    char name[300];  /* for a reader */
    char sha256[65]; /* of the bytes; "" for ids */
} hn_text;
/* What the options name; else the fixed text, or pseudo-random ids for a model without tokenizer. */
int hn_cli_text(const hn_cli *cli, const hone_model *m, const char *model_name, hn_text *out);
void hn_text_free(hn_text *t);
/* Windows of -c, --stride, --chunks. */
int hn_cli_windows(const hn_cli *cli, const hn_text *t, int64_t most, hn_windows *out);

/* One model ready to run. */
typedef struct hn_subject {
    hone_model *m;
    hone_model_info info;
    hone_context *ctx;
    hone_session *s;
    hn_logits_source src;
    const char *path;
} hn_subject;
/* NULL: as the options of hn_group_model and hn_group_compute say. */
typedef struct hn_subject_choice {
    const char *path, *kv, *cpu, *packed;
} hn_subject_choice;
int hn_subject_open_model(const hn_cli *cli, hn_subject *out, const hn_subject_choice *c);
/* Context and session, for windows of n_ctx tokens; n_seq: of them at a time. */
int hn_subject_start(const hn_cli *cli, hn_subject *s, const hn_subject_choice *c, int32_t n_ctx, int32_t n_seq);
int32_t hn_subject_sequences(const hn_cli *cli, const hn_windows *w); /* as hn_pieces_begin cuts them */
void hn_subject_close(hn_subject *s);
/* As hn_subject.src, for prompts: nothing begins anew. */
hone_status hn_subject_decode(void *session, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err);
json_t *hn_subject_config(const hn_cli *cli, const hn_subject *s, const hn_subject_choice *c);

json_t *hn_windows_json(const hn_windows *w, const hn_text *t); /* for config */
/* Prints the records (an array) with --json and appends each with --file. Takes it. */
int hn_cli_records(const hn_cli *cli, json_t *records);

#endif
