/* report: what history files say, as one page (HTML, offline, drawings inline), as
 * Markdown, CSV or JSON. Reads records, never measures, never judges anew: verdicts are
 * those of the comparisons, steps those of changes.h. The same records give the same bytes. */
#ifndef HN_REPORT_H
#define HN_REPORT_H

#include "base/base.h"
#include "base/json_text.h"

#define HN_REPORT_SCHEMA "hone.report/1"

typedef enum hn_report_format {
    HN_REPORT_HTML = 0,
    HN_REPORT_MD,
    HN_REPORT_MD_TABLE, /* of the measurements, alone */
    HN_REPORT_CSV,
    HN_REPORT_JSON
} hn_report_format;

typedef struct hn_report hn_report;
hone_status hn_report_new(hn_report **out, hone_error *err);
void hn_report_free(hn_report *r);
/* Asked while files are read and put in order: true ends that with HONE_E_INTERRUPTED. */
void hn_report_set_stop(hn_report *r, bool (*stop)(void *));
/* Adds the records of a file: one JSON object per line, or one object altogether. Broken lines,
 * foreign objects and records that are there already are counted and left out. HONE_E_IO: it cannot be read. */
hone_status hn_report_add(hn_report *r, const char *path, hone_error *err);
/* Adds records that no file holds; borrowed. */
hone_status hn_report_add_records(hn_report *r, json_t *records, hone_error *err);
/* After the last file. title NULL: that of the newest record. date NULL: that of the newest record. */
hone_status hn_report_finish(hn_report *r, const char *title, const char *date, hone_error *err);
size_t hn_report_records(const hn_report *r); /* 0: nothing to report */
size_t hn_report_skipped(const hn_report *r); /* lines that are no record */
/* *text malloc'ed, NUL-terminated. HONE_E_NOMEM. */
hone_status hn_report_write(char **text, size_t *n, const hn_report *r, hn_report_format f, hone_error *err);

#endif
