/* pace: how much is computed beside answers. What a row of a prompt or of a text costs, and how many of them fit into a
 * step: one rule for all who share out a machine's time. Refuses to know what rows are of, and reads no clock. */
#ifndef HN_PACE_H
#define HN_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { HN_LEAST_PREFILL = 32 }; /* rows beside answers, whatever they cost */
#define HN_STEP_NS 1e8          /* what a step may take with other rows in it, if twice one without is less */

typedef struct hn_cost {
    double ns;    /* of one row, or round; 0: not known */
    bool guessed; /* it has a share of what a step takes without any row, or was seen once */
    bool late;    /* the last took more than twice what was expected */
} hn_cost;

/* More than twice what was expected says nothing, for something disturbed it; twice in a row it counts: the machine
 * has become slower, or the guess was wrong. *late: the last one was such. */
bool hn_is_disturbed(bool *late, double ns, double expected);
/* One took each ns, and these were `weight` (0 to 1) of all that was measured. More counts at once, up to twice what
 * was known; less counts half. guess: nobody knows what all takes without them. */
void hn_cost_learn(hn_cost *c, double each, double weight, bool guess);
/* What is left to other rows beside answers that take alone_ns. */
double hn_time_beside(double alone_ns);
/* Rows that fit into left_ns, at least HN_LEAST_PREFILL; fixed, if not 0: so many. At most `most`. */
int32_t hn_rows_beside(const hn_cost *c, double left_ns, int32_t fixed, int32_t most);

#endif
