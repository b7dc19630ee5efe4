/* What others.c, remembered.c and parts.c ask to be told, and say. */
#ifndef HN_OTHERS_H
#define HN_OTHERS_H

#include "mutants.h"
#include "kernels/kernels.h"

/* ---- others.c: paths, and what stands around the engine ---------------------------------------------- */

bool mo_here(int32_t n, int32_t pos);
void mo_batch(const hone_token *t, int32_t n);
void mo_appended(int32_t seq);
void mo_cut(hone_session *s, int32_t seq, int32_t n_pos);
void mo_copied(const hone_session *s, int32_t dst, int32_t src);
void mo_answered(const hone_token *t, int32_t n, float *logits);
void mo_loaded(hone_session *s);
void mo_matched(int32_t kept);
bool mo_serves(void);
bool mo_runs(void);
bool mo_train_late(void);
extern int64_t mo_passes; /* of training, with a gradient or without one, so far */

/* ---- remembered.c: answers from memory, work that no clock sees --------------------------------------- */

bool mo_argv_is(int k, const char *word); /* of this process's command line */
bool mo_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits);
void mo_session(hone_session *s);
void mo_kernels(hn_kernels *k);

/* ---- parts.c: what is measured alone ------------------------------------------------------------------- */

void mp_kernels(hn_kernels *k);
void mp_model(const hone_model *m);
void mp_block(const hn_forward *f, int32_t il);
uint64_t mp_clock(uint64_t now);
hone_status mp_restore(hone_status st, hone_error *err);

#endif
