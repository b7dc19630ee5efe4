/* outside: are the times of stored samples and of those of now what somebody else saw? Whoever started a process knows
 * how long it ran (seen_s); what it ran beside the work that it tells, its rest, is the same before and after. A build
 * whose clocks are slow by a factor tells less work and has more rest. Judges rows of baseline.h; measures nothing. */
#ifndef HN_OUTSIDE_H
#define HN_OUTSIDE_H

#include "lab/judge/baseline.h"

/* Rows that are SAME or IMPROVED by times become INCONCLUSIVE, with hidden_ms, where the processes did not run as they
 * tell, or, with moved_ms, where other parts of them took as much longer. Without seen_s on a side, and of numbers that
 * are no time, nothing is said. */
hone_status hn_outside_look(hn_baseline_row *rows, size_t n, json_t *now, hone_error *err);

#endif
