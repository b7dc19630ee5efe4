/* tally: what a server counts, and Prometheus' text of it. Any thread. Refuses to know models. */
#ifndef HN_TALLY_H
#define HN_TALLY_H

#include "serve/bytes.h"

enum { HN_TALLY_ROUTES = 64, HN_TALLY_CODES = 24, HN_TALLY_BUCKETS = 16 };

typedef enum hn_tally_count {
    HN_COUNT_CANCELLED,
    HN_COUNT_PROMPT,
    HN_COUNT_CACHED,
    HN_COUNT_GENERATED,
    HN_COUNT_REJECTED_QUEUE,
    HN_COUNT_REJECTED_DRAIN,
    HN_TALLY_COUNTS
} hn_tally_count;

typedef enum hn_tally_time {
    HN_TIME_QUEUE,
    HN_TIME_FIRST,
    HN_TIME_BETWEEN,
    HN_TIME_REQUEST,
    HN_TIME_ANSWER,
    HN_TALLY_TIMES
} hn_tally_time;

typedef struct hn_tally hn_tally;
hn_tally *hn_tally_new(void); /* NULL: out of memory */
void hn_tally_free(hn_tally *t);
/* An answer to a route was sent. route: a path of the table, "other" for the rest. */
void hn_tally_answer(hn_tally *t, const char *route, int status);
void hn_tally_add(hn_tally *t, hn_tally_count what, uint64_t n);
void hn_tally_take(hn_tally *t, hn_tally_time what, double seconds);
uint64_t hn_tally_total(const hn_tally *t, hn_tally_count what);
double hn_tally_mean(const hn_tally *t, hn_tally_time what); /* seconds; 0: nothing was taken */

/* What is now, beside what was counted. */
typedef struct hn_tally_now {
    uint64_t running, waiting, kv_used, kv_total, pages, pages_total, page_tokens, preempted;
    const char *model, *cpu;
    double roof_ratio; /* NaN: not known */
} hn_tally_now;
/* Whose names of metrics there are beside hone's. */
typedef enum hn_tally_names { HN_NAMES_OWN, HN_NAMES_VLLM, HN_NAMES_LLAMA } hn_tally_names;

/* The text of /metrics. */
void hn_tally_write(const hn_tally *t, const hn_tally_now *now, hn_tally_names compat, hn_bytes *o);

#endif
