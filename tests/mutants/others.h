/* What the other files of wrong builds ask others.c. */
#ifndef HN_OTHERS_H
#define HN_OTHERS_H
#include "mutants.h"
bool mo_here(int32_t n, int32_t pos, int64_t pieces);
bool mo_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits);
void mo_batch(const hone_token *t, int32_t n);
void mo_cut(hone_session *s, int32_t seq, int32_t n_pos);
void mo_loaded(hone_session *s);
void mo_kept(void);
void mo_matched(int32_t kept);
bool mo_serves(void), mo_runs(void);
extern bool mo_five;
#endif
