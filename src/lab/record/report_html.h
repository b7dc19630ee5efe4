/* report_html: what the files of the page share: marks, cells, notes. Only report_html*.c include it. */
#ifndef HN_REPORT_HTML_H
#define HN_REPORT_HTML_H

#include "lab/record/report_data.h"

/* The parts of the page, in its order; each writes its section, or nothing. */
void hn_html_measurements(FILE *f, const hn_report *r); /* report_html_runs.c */
void hn_html_samples(FILE *f, const hn_report *r);
void hn_html_history(FILE *f, const hn_report *r);
void hn_html_gaps(FILE *f, const hn_report *r);
void hn_html_roofline(FILE *f, const hn_report *r); /* report_html_machine.c */
void hn_html_memory(FILE *f, const hn_report *r);
void hn_html_profiles(FILE *f, const hn_report *r);
void hn_html_environments(FILE *f, const hn_report *r);

static inline void put(FILE *f, const char *s) { fputs(s, f); }
static inline void text(FILE *f, const char *s) { hn_rep_html(f, s); }
static inline void text2(FILE *f, const char *before, const char *s, const char *after)
{
    fputs(before, f);
    hn_rep_html(f, s);
    fputs(after, f);
}
static inline const char *plural(size_t n) { return n == 1 ? "" : "s"; }

void hn_html_section(FILE *f, const char *id, const char *title, const char *lead);
void hn_html_left_out(FILE *f, size_t shown, size_t all, const char *what); /* nothing when all are shown */
void hn_html_number_cell(FILE *f, double median, double lo, double hi);     /* median and interval */
void hn_html_meter(FILE *f, double pct, const char *what);
void hn_html_state_cell(FILE *f, json_t *record);
/* What disturbed a measurement, as its record says. */
void hn_html_notes(FILE *f, json_t *record, const char *before, const char *after);

#endif
