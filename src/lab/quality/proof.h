/* proof: what a measured path answered, in a few numbers: hashes of the ids it generated and of
 * the bits of the logits behind them. Two runs that were asked the same must have equal proofs,
 * whoever ran them; a run whose proof is another has not answered the same question, and its
 * speed means nothing. Knows hone.h and base/; refuses to know clocks: callers take it when
 * none runs. */
#ifndef HN_PROOF_H
#define HN_PROOF_H

#include "base/base.h"
#include "base/json_text.h"

/* Of n numbers, bit by bit, in order: for equality between honest runs, not against collisions on purpose. Reads as
 * fast as memory. */
uint64_t hn_bits_hash(const float *x, int64_t n);

typedef struct hn_proof {
    uint64_t ids;                 /* of all generated ids, in order */
    uint64_t all;                 /* of the logits of every step, in order */
    uint64_t first, middle, last; /* of the logits of these steps */
    int32_t n_steps, n_wanted;    /* seen; asked for: the middle one is n_wanted / 2 */
} hn_proof;

/* n_wanted: generated ids asked for, at least 1: after a prompt alone there is one step too. */
void hn_proof_begin(hn_proof *p, int32_t n_wanted);
/* One step: its logits [n], of one sequence or of several, and what was chosen (−1: nothing). */
void hn_proof_step(hn_proof *p, const float *logits, int64_t n, int32_t id);
/* {steps, ids, first, middle, last, all}: the hashes as 16 hexadecimal digits. */
json_t *hn_proof_json(const hn_proof *p);

/* Of what is no generation: {NAME: 16 digits}. */
json_t *hn_proof_of(const char *name, uint64_t hash);

/* Proofs of two runs that were asked the same, either of which may be NULL: nothing to compare. True: they differ, and
 * `what` says in which step ("the logits of the middle step (32)", "the generated ids"). */
bool hn_proof_differ(char *what, size_t cap, const json_t *a, const json_t *b);

/* Does b prove less than a: nothing, not all that a has, or a list that is empty; of as many rounds, a shorter list?
 * Less than nothing is not possible. */
bool hn_proof_less(const json_t *b, const json_t *a, bool as_many_rounds);

#endif
