/* selftest: is the laboratory to be believed on this machine, now? Things that must be found
 * are put before it, through the front door: commands, corrupted models, a lowered roof. */
#ifndef HN_SELFTEST_H
#define HN_SELFTEST_H

#include "base/base.h"
#include "lab/judge/ab.h"
#include "base/json_text.h"

#define HN_SELFTEST_SCHEMA "hone.selftest/1"

typedef enum hn_selftest_kind {
    HN_ST_AA = 0,   /* false alarms: a command against itself */
    HN_ST_SLOW,     /* the same command with 5 % more to do */
    HN_ST_CONSTANT, /* a model that repeats one token */
    HN_ST_NAN,      /* a NaN among the weights */
    HN_ST_BLOCK,    /* one block of weights changed */
    HN_ST_ROOF,     /* a rate above the roof */
    HN_ST_LEVEL,    /* plain C forced on one side */
    HN_ST_CLAIMS,   /* false claims of a measured process */
    HN_ST_WAYS,     /* one way of computing that answers otherwise */
    HN_ST_KINDS
} hn_selftest_kind;

typedef struct hn_selftest_check {
    const char *what;
    size_t good, n;     /* right answers of so many tries */
    double interval[2]; /* of the share of right answers, 95 % */
    bool exercised;     /* false: `detail` says why not */
    bool passed;
    char detail[400]; /* what the last try said */
} hn_selftest_check;

typedef struct hn_selftest {
    hn_selftest_check check[HN_ST_KINDS];
    double a_ms, b_ms;  /* the commands of AA and SLOW, least wall time */
    int32_t unresolved; /* SLOW: tries that ended without a verdict */
    double seconds;
    bool quick;
} hn_selftest;

typedef struct hn_selftest_params {
    const char *model;
    bool quick;
    uint64_t seed;
    bool (*stop)(void *);
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* NULL allowed */
    void *progress_arg;
} hn_selftest_params;

/* HONE_OK: all was tried; the checks say how it went. */
hone_status hn_selftest_run(hn_selftest *out, const hn_selftest_params *p, hone_error *err);
json_t *hn_selftest_json(const hn_selftest *t);

/* What the commands of AA and SLOW do (`hone lab selftest _work N`): n steps of arithmetic that depend
 * on each other. */
uint64_t hn_selftest_work(uint64_t n);

/* ---- lies and ways (selftest_lies.c) --- */

/* One honest process, and its result tampered with in eight ways. */
hone_status hn_selftest_claims(hn_selftest_check *c, const char *model, bool (*stop)(void *), hone_error *err);
hone_status hn_selftest_ways(hn_selftest_check *c, const char *model, hone_error *err);

/* ---- breaking models ---------------------------------------------------------------------- */

typedef enum hn_break { HN_BREAK_CONSTANT, HN_BREAK_NAN, HN_BREAK_BLOCK } hn_break;
/* A copy of a one-file model with weights changed so that it answers as `how` says. */
hone_status hn_break_model(const char *dst, const char *src, hn_break how, hone_error *err);

#endif
