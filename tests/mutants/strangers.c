/* Wrong builds that the third stranger thought up, who had read neither these nor the laboratory: shortcuts in what
 * sequences share, in stops, in scales of adapters, in what a client leaves behind. */
#include "mutants.h"
#include "others.h"

#include "engine/scheduler.h"
#include "engine/seq_memory.h"
#include "text/stops.h"

#include <string.h>

/* Keys of adapters that nobody looks at; of texts of odd lengths the last id is as good as another. */
int32_t __real_hn_memory_match(hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n);
int32_t __wrap_hn_memory_match(hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n);
int32_t __wrap_hn_memory_match(hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n)
{
    const hn_seq_key own = m->key[seq];
    const int32_t last = m->n_ids[seq] - 1;
    if (mt_is("odd-ends") && last >= 0 && last % 2 == 0 && last + 1 < n &&
        memcmp(hn_memory_ids(m, seq), ids, (size_t)last * sizeof *ids) == 0)
        hn_memory_ids(m, seq)[last] = ids[last];
    for (int32_t k = 0; mt_is("any-adapters") && k < m->p.n_seq; k++)
        if (k != seq && m->n_ids[k] > 0) m->key[seq].adapters = m->key[k].adapters;
    const int32_t kept = __real_hn_memory_match(m, seq, ids, n);
    m->key[seq] = own;
    return kept;
}

/* Places that were remembered stay so when a sequence is cut, and goes on otherwise. */
void __real_hn_memory_cut(hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint *c);
void __wrap_hn_memory_cut(hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint *c);
void __wrap_hn_memory_cut(hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint *c)
{
    if (mt_is("old-places") && n_pos > 0)
        for (int32_t i = 0; i < m->p.n_checkpoint; i++)
            if (m->checkpoint[i].seq == seq && m->checkpoint[i].pos > n_pos) m->checkpoint[i].seq += m->p.n_seq;
    __real_hn_memory_cut(m, seq, n_pos, c);
    for (int32_t i = 0; mt_is("old-places") && i < m->p.n_checkpoint; i++)
        if (m->checkpoint[i].seq >= m->p.n_seq) m->checkpoint[i].seq -= m->p.n_seq;
}

/* What fails to be a stop begins none. */
size_t __real_hn_stops_byte(hn_stops *s, char byte, size_t *which);
size_t __wrap_hn_stops_byte(hn_stops *s, char byte, size_t *which);
size_t __wrap_hn_stops_byte(hn_stops *s, char byte, size_t *which)
{
    for (size_t k = 0; mt_is("stops-anew") && k < s->n; k++) {
        hn_stop_text *t = &s->one[k];
        if (t->matched < t->len && t->s[t->matched] != byte) t->matched = 0;
    }
    return __real_hn_stops_byte(s, byte, which);
}

/* One scale for all adapters. */
hone_status __real_hone_seq_set_adapters(hone_session *s, int32_t seq, hone_adapter *const *a, const float *scales,
                                         int32_t n, hone_error *err);
hone_status __wrap_hone_seq_set_adapters(hone_session *s, int32_t seq, hone_adapter *const *a, const float *scales,
                                         int32_t n, hone_error *err);
hone_status __wrap_hone_seq_set_adapters(hone_session *s, int32_t seq, hone_adapter *const *a, const float *scales,
                                         int32_t n, hone_error *err)
{
    enum { MOST = 64 };
    float first[MOST];
    for (int32_t i = 0; i < n && i < MOST && scales; i++) first[i] = scales[0];
    return __real_hone_seq_set_adapters(s, seq, a, mt_is("one-scale") && scales && n <= MOST ? first : scales, n, err);
}

/* Who went away keeps his slot: it is taken by a second choice of a request whose prompt is never done. */
void __real_hn_scheduler_release(hone_scheduler *s, hn_choice *c);
void __wrap_hn_scheduler_release(hone_scheduler *s, hn_choice *c);
void __wrap_hn_scheduler_release(hone_scheduler *s, hn_choice *c)
{
    static hn_ticket nobody;
    static hn_choice ghost = { .k = 1, .of = &nobody };
    const int32_t slot = c->slot;
    const bool kept = mt_is("slots-kept") && c->of->cancelled;
    __real_hn_scheduler_release(s, c);
    if (kept) s->slot[slot].c = &ghost;
}

/* Who has paused goes on behind another token. */
bool __real_hn_scheduler_make_room(hone_scheduler *s), __wrap_hn_scheduler_make_room(hone_scheduler *s);
bool __wrap_hn_scheduler_make_room(hone_scheduler *s)
{
    const bool made = __real_hn_scheduler_make_room(s);
    for (int32_t i = 0; mt_is("pauses-forget") && made && i < s->n_active; i++)
        for (int32_t k = 0; k < hn_scheduler_units(s->active[i]); k++) {
            hn_choice *c = &s->active[i]->choice[k];
            if (c->slot < 0 && !c->ended && c->n_ids > 0) c->ids[c->n_ids - 1] = 0;
        }
    return made;
}
