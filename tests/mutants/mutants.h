/* What the files of wrong builds share: which one is chosen, and where the program is. */
#ifndef HN_MUTANTS_H
#define HN_MUTANTS_H
#define _GNU_SOURCE
#include "hone.h"
#include "model/forward.h"

bool mt_is(const char *name); /* the one that HONE_MUTANT chooses */

extern int32_t mt_n_vocab;         /* of the session opened last */
extern const hone_model *mt_model; /* likewise */
extern uint64_t mt_stolen;         /* ns that a clock that stops has not told */
extern struct mt_at {
    int32_t threads, chunk, cache, n, pos, seqs_of_call, piece; /* piece: of the call, from 0 */
    int32_t threads_first, n_seq;     /* threads of the session opened first; sequences of the one at work */
    bool interleaved, beside_a_chunk; /* the call: a sequence goes on behind another's rows; one row beside many */
    int32_t n_ctx;                    /* of the session at work */
    bool two_chunks;                  /* nine rows or more of each of two sequences, and nothing else */
    bool two_depths;                  /* few rows, beyond 512 positions and beyond 1024 */
    unsigned past;                    /* what any sequence of the call went through: of enum past */
    char level[24];
    bool packed, adapters, sample; /* sample: this process measures one */
    int64_t pieces;                /* of all calls */
    int32_t open;                  /* sessions */
} mt_at;

void mt_begin(int32_t n, int32_t pos, int32_t n_seq); /* a call of so many tokens and sequences */
void mt_linger(const char *part, uint64_t from);      /* as much longer as "slower-PART-N" says */
void mt_keep_memory(void);
void mt_dawdle(void);
void ml_begin(void); /* what a measured process does before it measures, and behind */
void ml_end(void);
bool mt_put_off(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits);
void mt_catch_up(const float *x);

uint64_t __real_hn_clock_ns(void);
uint64_t __wrap_hn_clock_ns(void);
hone_status __real_hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits,
                               hone_error *err);

#endif
