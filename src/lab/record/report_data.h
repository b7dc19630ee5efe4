/* report_data: what the files of the report share: its data, texts in foreign languages
 * (HTML, Markdown, CSV), numbers for people, scales and drawings. Only report*.c include it. */
#ifndef HN_REPORT_DATA_H
#define HN_REPORT_DATA_H

#include "base/base.h"
#include "lab/stats/changes.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "base/json_text.h"

#include <math.h>

/* ---- data (report.c) --------------------------------------------------------------------- */

typedef struct hn_rep_file {
    char *name; /* without folders: the report is the same wherever it is made */
    size_t lines, records, broken, foreign, twice;
    char why[200]; /* the first line that was skipped */
} hn_rep_file;

enum {
    HN_REP_INVALID = 0,
    HN_REP_QUALITY,
    HN_REP_REGRESSED,
    HN_REP_SLOWER,
    HN_REP_SKIPPED,
    HN_REP_DOUBT,
    HN_REP_ALERTS
};
typedef struct hn_rep_alert {
    int kind;
    char *what, *text; /* which measurement; what happened to it */
    const char *ts;    /* of the record; "" */
    json_t *record;    /* NULL: none */
} hn_rep_alert;

/* The newest record of each measurement on each machine. */
typedef struct hn_rep_row {
    json_t *record;
    size_t id, place;  /* number of its id, and its own, in order of appearance */
    char *key, *label; /* label: what tells it from others of its id */
    size_t n_runs, n_invalid;
} hn_rep_row;

typedef struct hn_rep_line { /* a series worth drawing */
    const hn_series *s;
    hn_steps steps;
    char *label;
    int rank; /* small: shown first */
} hn_rep_line;

enum { HN_REP_REGRESSION = 0, HN_REP_UNSURE, HN_REP_IMPROVEMENT, HN_REP_SAME, HN_REP_OTHER, HN_REP_VERDICTS };
typedef struct hn_rep_ab {
    json_t *record;
    const char *id, *metric, *unit, *a, *b, *note, *word;
    int verdict;
    double ratio, lo, hi, margin, wanted,
        half;  /* NaN: unknown; margin: in force, wanted: asked for; half: A/A half-width */
    double *x; /* ratios of the rounds that count, new / old speed */
    size_t n, n_voided;
    size_t n_counted; /* rounds, or new samples, even when they are not in the record */
    bool unpaired;    /* against a stored baseline: measured at different times */
    double coverage;  /* of the interval: 0.95 or a bit more; of stored samples their test's. NaN: unknown */
} hn_rep_ab;

/* Values that are there already, whatever the order of their members (report_seen.c). Zero-initialize. */
typedef struct hn_rep_seen {
    struct hn_rep_value {
        uint64_t hash;
        json_t *v;
    } * slot;      /* v borrowed; NULL: free */
    size_t n, cap; /* cap: a power of two */
    uint64_t key;  /* of the hashes: nobody can choose records that meet */
} hn_rep_seen;
/* *again: v, or one equal to it, was there. False: out of memory. */
bool hn_rep_seen_add(hn_rep_seen *s, json_t *v, bool *again);
void hn_rep_seen_free(hn_rep_seen *s);

struct hn_report {
    char *title, *date;
    hn_rep_file *files;
    size_t n_files;
    json_t *records;                                 /* all, one object each, suites taken apart */
    json_t *bench, *ab, *peaks, *profiles, *ledgers; /* arrays that borrow from it */
    json_t *training;       /* runs of hone train, {file, run, steps} each; their lines are not in records */
    bool (*stop)(void *);   /* or NULL */
    hn_rep_seen seen, runs; /* records; first lines of runs of training */
    hn_keys row_of;         /* the keys of rows, by number */
    bool same_run;          /* the lines being read are there already … */
    json_t *known_run;      /* … as far as this one of training has them; borrowed */
    hn_series *series;
    size_t n_series;
    hn_rep_line *lines; /* [n_series], best first */
    hn_rep_row *rows;   /* by id, in order of appearance */
    size_t n_rows;
    hn_rep_ab *abs; /* regressions first */
    size_t n_abs;
    hn_rep_alert *alerts; /* by kind */
    size_t n_alerts, cap_alerts, n_of[HN_REP_ALERTS];
    size_t n_valid, n_invalid, n_unchecked, n_verdict[HN_REP_VERDICTS];
    bool many_models, many_machines;
};

long long hn_rep_int(json_t *o, const char *key); /* cut to whole, within ±2^53; 0 when there is none */
double hn_rep_at_i(json_t *array, size_t i);
const char *hn_rep_metric_name(const char *metric);    /* "decode_tok_s" → "decode" */
const char *hn_rep_metric_formula(const char *metric); /* NULL: none known */
const char *hn_rep_unit(const char *unit);             /* as people write it: "us" → "µs" */
const char *hn_rep_verdict_word(int verdict);
const char *hn_rep_alert_word(int kind);
/* "20 Nov 2026 12:32" of an ISO time; the text itself when it is none. */
void hn_rep_when(char *dst, size_t cap, const char *ts, bool year);
/* The metrics of a record that a table shows, most telling first; how many. */
enum { HN_REP_METRICS = 12 };
typedef struct hn_rep_metric {
    const char *name, *unit;
    bool higher;
    json_t *stats;
    double median, lo, hi;
    size_t n;
} hn_rep_metric;
size_t hn_rep_metrics(hn_rep_metric m[HN_REP_METRICS], json_t *record);
/* Gaps between tokens in ms, where a record has them; *x malloc'ed. False: none. */
bool hn_rep_itl(double **x, size_t *n, json_t *record);

/* ---- what needs attention (report_alerts.c) ------------------------------------------------ */

bool hn_rep_find_alerts(hn_report *r);                                            /* false: no memory */
char *hn_rep_text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* malloc'ed, or NULL */
/* those of report.c */
const char *hn_rep_model_name(json_t *record);
const hn_rep_row *hn_rep_row_of(const hn_report *r, const char *key);
size_t hn_rep_n_abs(const hn_report *r, bool unpaired); /* comparisons of one kind */
const char *hn_rep_label_of(const hn_report *r, const char *key);

/* ---- numbers for people (report_num.c) ----------------------------------------------------- */

enum { HN_REP_NUM = 48 };
/* So many significant digits, groups of three kept apart from five digits on; "–" for NaN. */
char *hn_rep_num(char dst[HN_REP_NUM], double x, int digits);
/* A median with the digits that its interval supports, and the interval. No interval: three digits. */
char *hn_rep_med(char dst[HN_REP_NUM], double x, double lo, double hi);
char *hn_rep_bound(char dst[HN_REP_NUM], double bound, double lo, double hi);
/* A ratio as a change: "+4.2 %"; "±0 %" */
char *hn_rep_pct(char dst[HN_REP_NUM], double ratio);
/* "95 % interval" of a comparison, with a narrow space; "interval" where nobody knows of how much. */
char *hn_rep_interval(char dst[HN_REP_NUM], const hn_rep_ab *a);

typedef struct hn_rep_axis {
    double lo, hi;
    bool log;
    double tick[16];
    int n, decimals;
} hn_rep_axis;
/* From lo to hi with some air, about `want` ticks. log: both above 0. */
hn_rep_axis hn_rep_axis_make(double lo, double hi, int want, bool log);
double hn_rep_pos(const hn_rep_axis *a, double x); /* 0 … 100, clamped */
char *hn_rep_tick(char dst[HN_REP_NUM], const hn_rep_axis *a, int i);

/* ---- foreign languages (report_num.c): untrusted text goes through one of these ------------- */

void hn_rep_html(FILE *f, const char *s); /* element text and attribute values, XML too */
void hn_rep_md(FILE *f, const char *s);   /* in a table cell */
void hn_rep_csv(FILE *f, const char *s);  /* one quoted cell; a formula becomes text */

/* ---- drawings (report_svg.c, report_plots.c) ------------------------------------------------- */

/* Widths are percentages, heights and texts pixels: a drawing fits any page without being scaled. */
void hn_rep_svg_open(FILE *f, const char *class_, int height, const char *title, const char *desc);
void hn_rep_svg_close(FILE *f);
void hn_rep_x_axis(FILE *f, const hn_rep_axis *a, int top, int bottom, const char *unit);
void hn_rep_y_axis(FILE *f, const hn_rep_axis *a, int top, int bottom);
double hn_rep_y(const hn_rep_axis *a, double v, int top, int bottom);

void hn_rep_plot_spark(FILE *f, const hn_series *s);
void hn_rep_plot_strip(FILE *f, const double *x, size_t n, double mid, double lo, double hi, const hn_rep_axis *a,
                       const char *title);
const char *hn_rep_verdict_class(int v); /* of CSS */
double hn_rep_margin_low(
    const hn_rep_ab *ab); /* below it a change is a regression: 1 − ε, or of a margin that noise made 1 / (1 + ε) */
void hn_rep_plot_ratio(FILE *f, const hn_rep_ab *ab, const hn_rep_axis *a);
void hn_rep_plot_ratio_axis(FILE *f, const hn_rep_axis *a);
void hn_rep_plot_samples(FILE *f, const hn_rep_line *l);
void hn_rep_plot_history(FILE *f, const hn_report *r, const hn_rep_line *l);
void hn_rep_plot_itl(FILE *f, const double *x, size_t n);
void hn_rep_plot_hist(FILE *f, const double *x, size_t n);
typedef struct hn_rep_part {
    const char *name;
    double value;
    int kind;
} hn_rep_part; /* kind: colour and pattern, 0 … 6 */
void hn_rep_plot_bar(FILE *f, const hn_rep_part *p, size_t n, double full, double mark, const char *unit,
                     const char *title);
typedef struct hn_rep_roof {
    const char *name;
    double value;
    bool bytes;
} hn_rep_roof; /* GB/s, or 10^9 operations a second */
typedef struct hn_rep_spot {
    double intensity, gops;
    int number;
    const char *name;
} hn_rep_spot;
void hn_rep_plot_roofline(FILE *f, const hn_rep_roof *roof, size_t n_roof, const hn_rep_spot *s, size_t n);

/* Flame graphs (report_flame.c): of a phase of a profile; of the steps of a training run. Nothing without times. */
void hn_rep_flame_phase(FILE *f, json_t *phase, const char *name);
void hn_rep_flame_training(FILE *f, json_t *steps);

extern const char hn_rep_style[]; /* report_style.c */

/* ---- training (report_train.c) --------------------------------------------------------------- */

bool hn_rep_take_training(hn_report *r, hn_rep_file *file, json_t *line); /* false: out of memory */
void hn_rep_html_training(FILE *f, const hn_report *r);
void hn_rep_md_training(FILE *f, const hn_report *r);
json_t *hn_rep_json_training(const hn_report *r);

/* ---- formats ---------------------------------------------------------------------------------- */

bool hn_rep_write_html(FILE *f, const hn_report *r); /* false: no memory */
void hn_rep_write_md(FILE *f, const hn_report *r);
void hn_rep_write_md_table(FILE *f, const hn_report *r);
void hn_rep_write_csv(FILE *f, const hn_report *r);
json_t *hn_rep_json(const hn_report *r);

/* Phases of a profile, of answers or of a training, as a report shows them: their key in its JSON, and the heading. */
enum { HN_REP_PHASES = 5 };
typedef struct hn_rep_phase {
    const char *key, *title;
} hn_rep_phase;
extern const hn_rep_phase hn_rep_phases[HN_REP_PHASES];

#endif
