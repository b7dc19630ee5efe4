/* verdict: may a result be believed? Every measurement carries one. */
#ifndef HN_VERDICT_H
#define HN_VERDICT_H

#include "base/base.h"

typedef enum hn_validity { HN_UNCHECKED = 0, HN_VALID, HN_INVALID } hn_validity;
typedef struct hn_verdict {
    hn_validity state;
    char reason[512]; /* of INVALID, or why UNCHECKED */
} hn_verdict;
/* The first reason stays. */
void hn_invalid(hn_verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
