/* data_parts: what the files that read data share. Neighbours include data.h only. */
#ifndef HN_DATA_PARTS_H
#define HN_DATA_PARTS_H

#include "base/guard.h"
#include "base/json_tree.h"
#include "base/source.h"
#include "train/data.h"

#include <stdlib.h>

/* Ids and targets of all samples, never moved; shared by the two halves of a split set. */
typedef struct hn_data_block {
    struct hn_data_block *next;
    size_t n, cap;
    char data[];
} hn_data_block;
typedef struct hn_data_store {
    hn_data_block *block;
    uint8_t *ones; /* [seq] target of samples in which everything counts */
    int32_t n_user;
} hn_data_store;

typedef struct hn_data_chat hn_data_chat; /* data_chat.c: the model's template */

/* Where n messages of a conversation, one after the other, stand in its record: "key", "key[i]", "key[i/2][i%2]". */
typedef struct hn_data_from {
    const char *key;
    size_t n;
    enum { HN_DATA_ONE, HN_DATA_EACH, HN_DATA_PAIRS } how;
} hn_data_from;
enum { HN_DATA_FROM = 4 }; /* of them, the first for the system message that stood beside the others */

typedef struct hn_data_reader {
    hn_dataset *d;
    hn_data_store *store;
    const hn_data_params *p;
    const hone_model *m;
    const hn_vocab *v;
    hone_error *err;
    const char *path;
    int64_t line; /* of path, from 1 */
    bool cells;   /* strings of records are a table's, whose lists are text */
    int64_t cap_sample;
    hn_ids ids, other; /* of this record; of a rendering to compare with */
    uint8_t *target;   /* [cap_target] */
    size_t cap_target;
    char *text; /* [cap_text] */
    size_t cap_text;
    hn_data_chat *chat;              /* NULL: not asked for yet */
    size_t n_of_text;                /* samples of this text so far */
    int64_t n_about;                 /* files read that tell about others, by their names */
    hn_data_from from[HN_DATA_FROM]; /* where the messages of this record stand in it */
    /* Not NULL: no samples are made; texts of files and strings of records are given to it, in pieces. */
    hone_status (*take)(struct hn_data_reader *r, const char *s, size_t n);
    void *arg;
} hn_data_reader;

/* HONE_E_INTERRUPTED, if whoever reads is to end. */
hone_status hn_data_go_on(hn_data_reader *r);
/* The line r is at cannot be used: left out and counted (HONE_OK), or the error. */
hone_status hn_data_bad(hn_data_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* r->ids as samples of a text, `last`: to its end; else what is not a whole sample yet stays in r->ids. */
hone_status hn_data_put_text(hn_data_reader *r, bool last);
/* r->ids as one sample, cut to size; target NULL: all count. */
hone_status hn_data_put(hn_data_reader *r, const uint8_t *target);

/* The id that samples begin with, or -1. */
int32_t hn_data_bos(const hn_data_reader *r);
/* Bytes of the first ill-formed character of s, or n. */
size_t hn_data_well_formed(const char *s, size_t n);
#define HN_DATA_NOT_UTF8 "not UTF-8: byte 0x%02x in column %zu"
#define HN_DATA_TRY_UTF8 "; if it is Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 FILE >NEW_FILE"
/* Appends to out; what looks like a token that structures a prompt is text. */
hone_status hn_data_encode(hn_data_reader *r, const char *s, size_t n, hn_ids *out);
hone_status hn_data_put_bos(hn_data_reader *r, hn_ids *out); /* where the vocabulary adds one */
hone_status hn_data_put_eos(hn_data_reader *r, hn_ids *out); /* where it has one and it is missing */
/* r->target [from, r->ids.n) becomes `value`. */
hone_status hn_data_targets(hn_data_reader *r, size_t from, uint8_t value);
/* Ids that both begin with. */
size_t hn_data_common(const hn_ids *a, const hn_ids *b);

/* A file, or all files of a folder and of those in it, by their kinds (data_files.c). */
hone_status hn_data_read_path(hn_data_reader *r, const char *path);
#define HN_DATA_KINDS ".txt, .md, .jsonl, .json, .csv or .tsv"

/* What is read of a file and not done with yet: buf[from, n). Zero-initialize. */
typedef struct hn_data_window {
    hn_source f;
    uint64_t at; /* of the file, what comes behind buf */
    char *buf;
    size_t cap, from, n;
} hn_data_window;
hone_status hn_data_window_open(hn_data_window *w, hn_data_reader *r);
void hn_data_window_close(hn_data_window *w); /* zeros too */
/* Reads on; what is there moves to the front. *more false: there is nothing more. A byte order mark in front is passed
 * over. */
hone_status hn_data_window_more(hn_data_window *w, hn_data_reader *r, bool *more);
enum { HN_DATA_RECORD = HN_LIMIT(64 << 20, 1 << 14) }; /* bytes of a record at most */

/* All of r->path, whose kind is known. text: markdown, or not; table: divided by tabs, or by what its header has. */
hone_status hn_data_text(hn_data_reader *r, bool markdown);
hone_status hn_data_jsonl(hn_data_reader *r);
hone_status hn_data_json(hn_data_reader *r);
hone_status hn_data_table(hn_data_reader *r, bool tabs);

/* ---- records (data_record.c) ---- */

/* What a file's records are: those of the first one with keys of a kind. */
typedef enum hn_data_kind {
    HN_DATA_NONE,
    HN_DATA_CHAT,
    HN_DATA_SHAREGPT,
    HN_DATA_ALPACA,
    HN_DATA_COMPLETION,
    HN_DATA_TEXT
} hn_data_kind;
/* An object, as samples; *k is found out where it is HN_DATA_NONE. */
hone_status hn_data_record(hn_data_reader *r, const json_t *o, hn_data_kind *k);
/* s[n], which begins on r->line, as a record; counted. What is not JSON is a bad line. */
hone_status hn_data_json_record(hn_data_reader *r, const char *s, size_t n, hn_data_kind *k);

/* A conversation; messages and tools (or NULL) as hn_chat takes them. What the template refuses is a bad line. */
hone_status hn_data_conversation(hn_data_reader *r, const json_t *messages, const json_t *tools);
/* Where message i of a conversation stands in its record, by r->from. Returns dst. */
enum { HN_DATA_PLACE = 64 };
char *hn_data_place(const hn_data_reader *r, size_t i, char dst[HN_DATA_PLACE]);
/* Whether the model has a template. */
bool hn_data_has_template(hn_data_reader *r);
void hn_data_chat_free(hn_data_chat *c);

#endif
