/* net_looks: a speed net over products: every shape that a preset has, quickly, on two programs in turn, so that a
 * kernel that is several times slower at one width does not pass. First all points with few samples and a wide margin;
 * then those that looked slower, alone and with care, judged together. */
#ifndef HN_JUDGE_NET_H
#define HN_JUDGE_NET_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/inside/net.h"
#include "lab/judge/sides.h"
#include "lab/stats/compare.h"

#define HN_NET_SCHEMA "hone.net/1"
#define HN_NET_MARGIN 0.23 /* of speed: a product that takes 1.3 times as long is a regression */
enum { HN_NET_MOST = 64 };

typedef struct hn_net_params {
    hn_side *a, *b;
    hn_net_wanted wanted; /* cpu: of a side that says none */
    double margin;        /* 0: HN_NET_MARGIN */
    uint64_t seed;
    bool different; /* go on where outputs differ */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
} hn_net_params;

typedef struct hn_net_line { /* a point that looked slower at first */
    char name[HN_NET_POINT];
    double first;      /* speed of b over a in the first look */
    double us_a, us_b; /* medians of the last careful look */
    hn_ab_result r;
} hn_net_line;

/* Speed of b over a below which a point of the first look is looked at again. */
double hn_net_screen(const hn_net_params *p);
/* Does its interval leave "slower than the margin" out? What may be faster needs no proof here. */
bool hn_net_cleared(const hn_net_line *l);

typedef struct hn_net_report {
    size_t n_points, n_lacking; /* measured; on one side only */
    size_t n_gone;              /* of these, on side a only: nothing is known of what b has instead */
    char gone[HN_NET_POINT];    /* the first */
    size_t n_different;         /* outputs that are not the same bits */
    char different[HN_NET_POINT];
    size_t n_slower;               /* in the first look; the slowest HN_NET_MOST of them were looked at again: */
    hn_net_line line[HN_NET_MOST]; /* the slowest first */
    size_t n_line;
    size_t rounds; /* of the careful looks, together */
    char level[2][16];
    double slowest, median; /* speed b over a in the first look */
    hn_ab_verdict verdict;  /* SAME: none is slower by more than the margin; REGRESSED; INCONCLUSIVE */
} hn_net_report;

/* HONE_E_ARG, HONE_E_FORMAT: a side cannot do it; HONE_E_INTERRUPTED. Outputs that differ end it, unless allowed:
 * HONE_OK with n_different and nothing looked at twice. */
hone_status hn_net_run(hn_net_report *out, const hn_net_params *p, hone_error *err);
json_t *hn_net_json(const hn_net_report *r, const hn_side *a, const hn_side *b);

#endif
