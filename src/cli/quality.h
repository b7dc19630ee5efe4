/* What hone perplexity and hone lab quality share: the text, the engine, the record. */
#ifndef HN_CLI_QUALITY_H
#define HN_CLI_QUALITY_H

#include "cli/cli.h"
#include "lab/perplexity.h"
#include "lab/quality.h"

extern const hn_opt_group hn_group_record;  /* file title change */
extern const hn_opt_group hn_group_windows; /* text -f, ids, ctx-size -c, chunks, stride */

typedef struct hn_text {
    int32_t *ids;
    int64_t n;
    int32_t bos;
    char name[300];   /* for a reader */
    char sha256[65];  /* of the bytes; "" for ids */
} hn_text;
/* What the options name; else the fixed text, or pseudo-random ids for a model without tokenizer. */
int hn_cli_text(const hn_cli *cli, const hone_model *m, const char *model_name, hn_text *out);
void hn_text_free(hn_text *t);
/* Windows of -c, --stride, --chunks. */
int hn_cli_windows(const hn_cli *cli, const hn_text *t, int64_t most, hn_windows *out);

/* One model ready to run. */
typedef struct hn_side { hone_model *m; hone_model_info info; hone_context *ctx; hone_session *s; hn_logits_source src; const char *path; } hn_side;
void hn_side_close(hn_side *s);

json_t *hn_windows_json(const hn_windows *w, const hn_text *t); /* for config */
/* Prints the record with --json and appends it with --file. Takes record. */
int hn_cli_record(const hn_cli *cli, json_t *record);

#endif
