/* same: do the runs of a comparison answer the same? Each run of a side is asked with another
 * prompt, which neither side can know before, and what it proves of its answer must be what the
 * other side proves of the same question. Also what a program claims of itself beside what was
 * seen of its process. Refuses to know rounds and statistics. */
#ifndef HN_SAME_H
#define HN_SAME_H

#include "base/base.h"
#include "lab/judge/sides.h"

typedef struct hn_same hn_same;

/* different: the sides are known to answer differently, and are asked the prompt of everyone. allowed, or different:
 * that they do is told (hn_same_differs), and each is held against itself. seed: of the prompts. */
hone_status hn_same_new(hn_same **out, hn_side *a, hn_side *b, bool different, bool allowed, uint64_t seed,
                        hone_error *err);
void hn_same_free(hn_same *s);

/* One run of a side, which hn_side_measure gave. HONE_E_NUMERIC: it answers differently than a run that was asked the
 * same, or claims what its process contradicts; the message says which run of which side, and where. */
hone_status hn_same_check(hn_same *s, const hn_side *side, const hn_target *t, const hn_measured *m, hone_error *err);

/* What a claims to have taken less time for, or b, must have taken less time seen from outside too, what its other
 * parts claim to take more or less reckoned in. HONE_E_NUMERIC: b's claims of being faster are not seen in how long its
 * processes ran. *seen false: what was seen of them may be chance, so neither is known; or b only *moved it, and other
 * parts of its runs, the load, say, take most of it longer. Call it before b is said to be
 * better in this metric, in each look; one that tells no time is not held to any. asks: how often a comparison may
 * call it, in all looks, of all metrics: honest sides are accused in 1 % of comparisons at most. */
hone_status hn_same_outside(const hn_same *s, const hn_target *t, const char *metric, int asks, bool *seen, bool *moved,
                            hone_error *err);
/* Does a metric tell a time that is asked for then? */
bool hn_same_tells_time(const char *metric);

/* The same of a bench of other records, and of peak_anon_mb, of which nobody is accused: is b seen from outside to be
 * better? Of loops as long as their clock makes them, one of which b calls `ratio` times as fast, by what their
 * processes took besides: a clock that lies leaves more of it. Of processes, by how much less they took all together.
 */
bool hn_same_seen(const hn_same *s, const hn_target *t, const char *metric, double ratio);

/* Did the sides answer differently of this target, or did b prove less than a, where that was allowed? */
bool hn_same_differs(const hn_same *s, const hn_target *t);

/* Were answers of both sides to this target compared with each other? Not where a program proves none. */
bool hn_same_compared(const hn_same *s, const hn_target *t);

#endif
