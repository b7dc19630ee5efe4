/* allocs: how often, and how much, an operation allocates. The program's own malloc and its kin stand in front of the C
 * library's and count while they are told to, in all threads; else they hand through. Only a program that links this
 * file is counted, never one that uses the library. Knows nothing of what is measured. */
#ifndef HN_ALLOCS_H
#define HN_ALLOCS_H

#include "base/base.h"
#include "base/json_text.h"

typedef struct hn_allocs {
    int64_t n;            /* blocks asked for: malloc, calloc, realloc (of any kind), aligned ones */
    int64_t bytes, freed; /* as the allocator rounds them: handed out; given back */
} hn_allocs;

/* Why this build does not count: a text; NULL: it does. */
const char *hn_allocs_missing(void);
/* Counts from here to the end, of all threads. No two stretches at once. */
void hn_allocs_begin(void);
/* Adds what there was since the beginning. */
void hn_allocs_end(hn_allocs *sum);
/* Of one operation, when there were n_ops: {op, n, bytes, freed, missing}; numbers are null where nothing was counted,
 * and missing says why (why NULL: this build's reason). */
json_t *hn_allocs_json(const char *op, const hn_allocs *sum, int64_t n_ops, const char *why);

#endif
