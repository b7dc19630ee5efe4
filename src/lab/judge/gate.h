/* gate: the measurements that baselines are made of and that gates repeat, each by fresh
 * processes of this program, so that nothing is cached and whatever the environment does
 * to a program (preloaded libraries, variables) is done to them too. Refuses to judge. */
#ifndef HN_GATE_H
#define HN_GATE_H

#include "base/base.h"
#include "base/json_text.h"

typedef struct hn_gate_run {
    const char *model; /* NULL: none of the benches needs one */
    json_t *ids;       /* array of texts */
    json_t *args;      /* array of texts: options for `hone bench` */
    bool (*stop)(void *);
} hn_gate_run;

/* The quality of the model now (as hn_quality_json), computed by a process of its own; *out NULL with the
 * reason in why: the process gave no answer. HONE_E_INTERRUPTED. */
hone_status hn_gate_quality(json_t **out, const hn_gate_run *g, char *why, size_t cap, hone_error *err);
/* Measures all ids, `samples` fresh processes or epochs each, and adds the records to `records`; quality: with
 * the quality hash in each. *why: the first result that is invalid or missing, and its reason; "" when all are well.
 * exit: of the process that gave no record (usage, model, memory), else 0. */
hone_status hn_gate_measure(json_t *records, const hn_gate_run *g, int32_t samples, bool quality, char *why, size_t cap,
                            int *exit_code, hone_error *err);
/* How the timed runs of a record answered differently than those of `was`, which measured the same: in words; "" the
 * same, or nothing to compare: records from before there were proofs have ids at most. */
void hn_gate_answers_differ(char *dst, size_t cap, json_t *was, json_t *is);
/* Does what the baseline proves of its answer go without a proof now? */
bool hn_gate_unproved(json_t *was, json_t *is);

#endif
