/* scheduler: what an idle slot holds, taken out and put in. */
#include "engine/scheduler.h"
#include "engine/snapshot.h"

#include <stdlib.h>

static hone_status check_slot(const hone_scheduler *s, int32_t slot, hone_error *err)
{
    if (slot < 0 || slot >= s->n_slot)
        return HN_FAIL(err, HONE_E_ARG, "slot %d, expected 0 to %d", slot, s->n_slot - 1);
    return s->slot[slot].c ? HN_FAIL(err, HONE_E_BUSY, "slot %d answers request %llu; try again when it has ended",
                                     slot, (unsigned long long)s->slot[slot].c->of->id)
                           : HONE_OK;
}

hone_status hone_scheduler_snapshot(const hone_scheduler *s, int32_t slot, hone_snapshot **out, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, s, "a scheduler");
    HN_NEED(err, out, "a place for the snapshot");
    hone_status st = check_slot(s, slot, err);
    if (st == HONE_OK) st = hone_seq_snapshot(s->ses, slot, out, err);
    if (st != HONE_OK || (*out)->known) return st;
    hone_snapshot_free(*out);
    *out = NULL;
    return HN_FAIL(err, HONE_E_ARG,
                   "slot %d holds positions whose ids are not known, so no request could find them again", slot);
}

hone_status hone_scheduler_erase(hone_scheduler *s, int32_t slot, int32_t *n, hone_error *err)
{
    if (n) *n = 0;
    HN_NEED(err, s, "a scheduler");
    HN_NEED(err, n, "a place for the number of positions");
    hone_status st = check_slot(s, slot, err);
    if (st != HONE_OK) return st;
    *n = s->ses->mem->length[slot];
    st = hone_seq_truncate(s->ses, slot, 0, err);
    s->n_freed++;
    return st == HONE_OK ? hone_seq_set_adapters(s->ses, slot, NULL, NULL, 0, err) : st; /* nothing holds them here */
}

hone_status hone_scheduler_restore(hone_scheduler *s, int32_t slot, const hone_snapshot *snap,
                                   hone_adapter *const *adapters, const float *scales, int32_t n_adapters,
                                   hone_error *err)
{
    hone_error first;
    HN_NEED(err, s, "a scheduler");
    HN_NEED(err, snap, "a snapshot");
    if (n_adapters < 0) return HN_FAIL(err, HONE_E_ARG, "%d adapters; expected 0 or more", n_adapters);
    if (n_adapters) HN_NEED(err, adapters, "a pointer to n adapters");
    HN_NEED_EACH(err, adapters, n_adapters, "an open adapter");
    hone_status st = check_slot(s, slot, err);
    if (st != HONE_OK) return st;
    if (!snap->known || !snap->length)
        return HN_FAIL(err, HONE_E_ARG, "the snapshot holds %s, so no request could find it",
                       snap->length ? "positions whose ids are not known" : "nothing");

    uint64_t hash;
    if ((st = hn_adapters_hash(s->ses, &hash, adapters, scales, n_adapters, err)) != HONE_OK) return st;
    if ((st = hn_snapshot_fits(s->ses, slot, hash, snap, err)) != HONE_OK) return st;

    /* an empty slot takes any scope and adapters; from here on memory alone can be wanting, which leaves it empty */
    hone_seq_truncate(s->ses, slot, 0, NULL);
    st = hone_seq_set_scope(s->ses, slot, snap->scope, err);
    if (st == HONE_OK) st = hone_seq_set_adapters(s->ses, slot, adapters, scales, n_adapters, err);
    if (st != HONE_OK) return st;
    while ((st = hone_seq_restore(s->ses, slot, snap, &first)) == HONE_E_NOMEM && hn_scheduler_evict(s)) {}
    if (st != HONE_OK) {
        if (err) *err = first;
        return st;
    }
    s->slot[slot].used = ++s->tick;
    s->n_freed++; /* of what it held before, perhaps */
    if (s->ses->mem->wants_checkpoints) hone_seq_checkpoint(s->ses, slot, NULL);
    hone_seq_keep(s->ses, slot, NULL); /* no memory for it: then the slot alone has it */
    return HONE_OK;
}
