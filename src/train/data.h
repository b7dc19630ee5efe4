/* data: what is trained on. Samples from files, their shuffling and batches; a batch
 * depends on (samples, settings, epoch, cursor) alone, so training goes on anywhere. */
#ifndef HN_DATA_H
#define HN_DATA_H

#include "train/train.h"

/* n tokens; target[i] 1: token i counts where it is predicted (target[0] is of no use). */
typedef struct hn_data_sample {
    int32_t *ids;
    uint8_t *target;
    int32_t n;
} hn_data_sample;

typedef enum hn_mask {
    HN_MASK_NONE,
    HN_MASK_PROMPT,
    HN_MASK_LAST
} hn_mask; /* all tokens; completions, all answers; the last answer */

/* Where a file of plain text is divided, so that each part is a text of its own. AUTO: at "<|endoftext|>" where it has
 * that; else Markdown at headings and other text at blank lines. */
typedef enum hn_data_split {
    HN_SPLIT_AUTO,
    HN_SPLIT_BLANK,
    HN_SPLIT_MARK,
    HN_SPLIT_HEADING,
    HN_SPLIT_LINE,
    HN_SPLIT_NONE
} hn_data_split;

typedef struct hn_data_params {
    const char *const *path; /* files or folders; kinds: data_files.c, data_text.c, data_record.c */
    int32_t n_path;
    hn_data_split split;
    int32_t seq; /* tokens of a sample at most; longer ones are cut (texts: go on in the next sample), counted */
    hn_mask mask;
    int64_t max_bad; /* bad lines that are left out and counted; one more is an error. 0: the first is */
    const char
        *chat_template; /* NULL: the model's; else the name of a format or Jinja source, as hn_chat_source takes it */
    bool special;       /* what looks like a special token in texts, prompts and completions is one; else it is text */
    bool (*abort_fn)(
        void *arg); /* asked before each record and piece of a text; true: HONE_E_INTERRUPTED. NULL: never */
    void *abort_arg;
} hn_data_params;

typedef struct hn_data_stats {
    int64_t n_file, n_line, n_bad, n_sample; /* n_line: records, bad ones too; of plain text the parts */
    int64_t n_cut, n_split, n_empty; /* records: that lost their end, that go on in further samples, that are left out
                                        as nothing counts in them */
    int64_t n_chat;                  /* records that were written by a chat template */
    int64_t n_mid;                   /* samples that begin within a text */
    int64_t n_part, n_text, n_pair; /* parts of files of text; texts, those too; prompts with completions as they are */
    int64_t n_tok, n_target;
    int32_t min_len, median_len, p95_len, max_len;
    char first_bad[256]; /* FILE:LINE: why, of the first bad line; "" */
    /* files of folders in forms that are not read; records that a label rejects; texts that begin with the name of a
     * special token, as text; files with a mark only behind where AUTO looks for one */
    int64_t n_passed, n_rejected, n_spelt, n_marked;
    char files[512]; /* paths of those that were read, a line each, as many as fit */
    char first_passed[256], first_spelt[64];
} hn_data_stats;

typedef struct hn_dataset {
    hn_data_sample *sample;
    int64_t n;
    hn_data_stats stats;
    uint64_t hash; /* of all ids and targets, in order */
    void *own;
} hn_dataset;

/* Reads, tokenizes, masks. Errors name file and line. m has a tokenizer (HONE_E_UNSUPPORTED). */
hone_status hn_dataset_read(hn_dataset **out, const hone_model *m, const hn_data_params *p, hone_error *err);
void hn_dataset_free(hn_dataset *d);
/* Moves a share of the samples, chosen by seed, to a second set; at least one stays in either when share > 0
 * (HONE_E_ARG: cannot). */
hone_status hn_dataset_split(hn_dataset *d, double share, uint64_t seed, hn_dataset **second, hone_error *err);

/* Sequences: with packing as many whole samples as fit in seq tokens, else one each; a micro-batch is
 * n_seq of them. Each epoch is a seeded permutation. */
typedef struct hn_loader hn_loader;
typedef struct hn_cursor {
    int64_t epoch, at;
} hn_cursor; /* at: sequences given of this epoch */
hone_status hn_loader_new(hn_loader **out, const hn_dataset *d, int32_t seq, int32_t n_seq, bool pack, bool shuffle,
                          uint64_t seed, hone_error *err);
void hn_loader_free(hn_loader *l);
int64_t hn_loader_n_seq(hn_loader *l);         /* sequences of the epoch at the cursor */
int64_t hn_loader_max_tok(const hn_loader *l); /* rows of a batch at most */
hn_cursor hn_loader_tell(const hn_loader *l);
hone_status hn_loader_seek(hn_loader *l, hn_cursor c, hone_error *err);
/* The next micro-batch; the last of an epoch may be smaller, then the next epoch begins. Valid until the next call. */
hone_status hn_loader_next(hn_loader *l, hn_train_batch *b, hone_error *err);

#endif
