/* look: what a training step does, operation by operation, told to who asks. Owns the clock around operations and what
 * they are said to read and compute; refuses to know who asks. Nobody asks: no clock is read. */
#ifndef HN_LOOK_H
#define HN_LOOK_H

#include "base/base.h"

typedef enum hn_train_part { HN_PART_FORWARD = 0, HN_PART_BACKWARD, HN_PART_UPDATE, HN_TRAIN_PARTS } hn_train_part;
/* e: as of a session's profile; n_tok: the rows of the micro-batch, 0: of none. */
typedef void hn_look_fn(void *arg, const hone_profile_event *e, hn_train_part part);

typedef struct hn_step_look {
    hn_look_fn *fn; /* NULL: nobody looks */
    void *arg;
    int32_t layer; /* -1: of none */
    hn_train_part part;
} hn_step_look;

/* What an operation costs, as far as it is known. */
typedef struct hn_look_cost {
    const char *type; /* of the weights; NULL: none */
    uint64_t bytes;   /* of weights, gradients and moments, each once */
    double ops;       /* multiplications and additions of products and attention */
} hn_look_cost;

/* An operation runs between these two; what the first returns goes to the second. */
uint64_t hn_look_begin(const hn_step_look *l);
void hn_look_end(const hn_step_look *l, uint64_t start, const char *op, int64_t n_tok, hn_look_cost cost);

#endif
