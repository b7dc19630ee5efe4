/* net: one quick look at products of very many shapes, with few rows of each: how long one takes, and what it gives.
 * The measured side of the speed net (lab/judge/net_looks.h has the other); refuses to judge. */
#ifndef HN_NET_H
#define HN_NET_H

#include "base/base.h"
#include "base/json_text.h"

enum { HN_NET_POINT = 48 };

/* "Q4_K.28672.c4.t2.packed": type, elements of a row, columns, threads, layout. Rows: what a cold walk needs. */
typedef struct hn_net_point {
    int32_t type, n_in, columns, threads;
    bool packed;
} hn_net_point;
const char *hn_net_name(char dst[HN_NET_POINT], const hn_net_point *p);

/* Every width of a row that a matrix of a preset has (NULL: of all presets), of every type that the level has products
 * for, in the layouts it has, at 1 and 4 columns (gemv) and 64 (gemm), on one thread and on n_threads; ordered by type.
 * *out malloc'ed. HONE_E_ARG: unknown preset. */
typedef struct hn_net_wanted {
    const char *preset, *cpu;
    bool gemv, gemm;
    int32_t n_threads;
} hn_net_wanted;
hone_status hn_net_list(hn_net_point **out, size_t *n, const hn_net_wanted *w, hone_error *err);

/* Measures points: the number of sweeps over them, then their names, with commas: {"level", "points": [{"us": least of
 * three times a sweep, "hash": of the output} or null: not on this level]}, in that order. Weights are cold: what was
 * read since is more than the last-level cache. HONE_E_ARG: no such point. */
hone_status hn_net_measure(json_t **out, const char *points, const char *cpu, hone_error *err);

#endif
