/* claims: what a measured process says of itself, held against what was asked of it, against its
 * own other figures, and against what its parent saw. Knows JSON results; refuses to know how
 * processes run. */
#ifndef HN_CLAIMS_H
#define HN_CLAIMS_H

#include "base/json_text.h"
#include "lab/bench/process.h"

typedef struct hn_asked {           /* of each request or sample of a process */
    int32_t n_prompt, n_gen, depth; /* n_prompt < 0: a text, which has as many tokens as it says */
} hn_asked;

/* False: `why` names the claim that cannot be so. asked, seen: NULL allowed. What a result does not say is not held
 * against it, but what was asked for must be there. */
bool hn_claims_hold(json_t *result, const hn_asked *asked, const hn_seen *seen, char *why, size_t cap);

/* Of these, what no disturbance makes false: counts, positions, and rates that are those of its own times. A process
 * that fails here is not asked again. */
bool hn_claims_exact(json_t *result, const hn_asked *asked, char *why, size_t cap);

/* The same of the threads, the level and the packed file that its command line asked for; where it names none, any
 * will do. */
bool hn_claims_settings(json_t *result, const char *const *argv, char *why, size_t cap);

/* The same of what the machine did meanwhile, for which a sample may be put aside: no more than the kernel counted; and
 * that nothing of it goes on behind its end. These are exact: a process that fails here is not asked again. */
bool hn_claims_disturbed(json_t *result, const hn_seen *seen, char *why, size_t cap);

/* Did it begin late, as it says (start_s) and as the CPU time that the kernel counted allows: it worked no longer than
 * by its own clocks? A disturbance then, and no claim that cannot be so. */
bool hn_claims_late(json_t *result, const hn_seen *seen, char *why, size_t cap);

/* The numbers at the top of a record of many metrics (bench_plain.c) are those of its samples. whole: of a program that
 * is not too old to tell its samples, whose own numbers must fit each other then. */
bool hn_claims_record(json_t *record, bool whole, char *why, size_t cap);

/* Of records with one number each: their median is that of their samples; and where a record says which number of its
 * processes the samples are (extra.from), the processes that a record of its id keeps (extra.samples) have them. */
bool hn_claims_records(json_t *records, char *why, size_t cap);

/* Seconds that the records of a suite claim to have timed, in calibrated loops or in the processes that they keep; NaN:
 * they do not say. */
double hn_claims_seconds(json_t *records);

/* Seconds that a process says it loaded and worked: what it was timed for. */
double hn_claims_told_s(json_t *result);

/* Adds to a result what hn_claims_hold needs of the process itself: how long it has run by both clocks.
 * clock0_ns, witness0_ns: the clocks at its beginning. */
void hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns);

#endif
