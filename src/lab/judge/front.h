/* front: what people start. Benches and hashes go through the engine; `hone run`, `hone chat`, `hone tokenize`,
 * `hone logits`, `hone embed`, `hone perplexity` and `hone serve` of both sides are held against each other here, by
 * what they say and by this process's clock. */
#ifndef HN_FRONT_H
#define HN_FRONT_H

#include "lab/judge/sides.h"

typedef struct hn_front {
    char name[24];    /* of the first command that differs, "run:drawn", "serve:chat"; "": none does */
    char hash[2][12]; /* of what each side printed then */
    char why[512];    /* b's could not be run, and a's could; "" */
} hn_front;
/* The same commands of both sides, with sampling seeds that are drawn from `draw`: their standard output and exit
 * codes. What a's program cannot do is left out. */
hone_status hn_front_texts(hn_front *out, hn_side *const side[2], const hn_target *t, uint64_t draw, hone_error *err);
/* The servers of both, and what they answer to the same requests: *out, as above, where nothing stands in it yet. */
hone_status hn_front_served(hn_front *out, hn_side *const side[2], const hn_target *t, uint64_t draw, hone_error *err);
/* The settings of a comparison and of a side, for a program that runs a model. */
void hn_front_settings(hn_argv *a, const hn_side *s, const hn_target *t);
/* Does `hone run` of b take much longer than a's, start to end, in nearly all of some pairs of runs? what: by how much,
 * and of what; "": it does not, or a's cannot be run. */
hone_status hn_front_slower(char *what, size_t cap, hn_side *const side[2], const hn_target *t, hone_error *err);

#endif
