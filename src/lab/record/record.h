/* record: what is kept of a measurement: one object in BASE.jsonl, a row in BASE.md, and the parts
 * that every such object has. */
#ifndef HN_RECORD_H
#define HN_RECORD_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/environ.h"

#include <stdarg.h>

#define HN_BENCH_SCHEMA "hone.bench/1"
#define HN_KERN_SCHEMA "hone.kern/1" /* of single kernels, as older programs wrote them */

/* benchmarks/NAME, or NAME itself when it has a slash; .md or .jsonl at the end is dropped.
 * HONE_E_ARG: nothing left. */
hone_status hn_record_base(char *dst, size_t cap, const char *name, hone_error *err);
/* Appends one line of JSON to BASE.jsonl: locked, synced, and after a line that was cut off,
 * on a line of its own. Folders are made. */
hone_status hn_record_append(const char *base, json_t *record, hone_error *err);
/* Appends the history row of a record to BASE.md, with a header when the file is new. row
 * (NULL allowed) receives it. */
hone_status hn_history_append(const char *base, json_t *record, char *row, size_t cap, hone_error *err);
void hn_history_row(char *dst, size_t cap, json_t *record);
extern const char hn_history_header[];

/* Parts of records, for others that write them. */
enum { HN_MOST_NOTES = 16 };
/* One more sentence, where there is room: a list of everything is read by nobody. */
void hn_notes_add(json_t *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hn_notes_add_v(json_t *notes, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
json_t *hn_bench_identity(void); /* 12 hex digits, never twice */
json_t *hn_bench_git_json(const hn_environ *e);
json_t *hn_bench_build_json(const hn_environ *e);
json_t *hn_bench_engine_json(void);
json_t *hn_bench_model_json(const char *path, const hone_model_info *info);

#endif
