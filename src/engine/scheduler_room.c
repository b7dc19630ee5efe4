/* scheduler: slots and memory. Who starts, in which slot, what it finds there, and who has to pause. Refuses to know
 * what is computed. */
#include "engine/prefix.h"
#include "engine/scheduler.h"

#include <stdlib.h>

/* ---- slots ---------------------------------------------------------------------------- */

static void empty_slot(hone_scheduler *s, int32_t slot) { hone_seq_truncate(s->ses, slot, 0, NULL); }

void hn_scheduler_keep(hone_scheduler *s, const hn_choice *c)
{
    if (c->of->r.no_share) return;
    /* a state that is no number is not looked for: who shares it ends as who computes it anew */
    if (s->ses->mem->wants_checkpoints) hn_memory_checkpoint(s->ses->mem, c->slot);
    hn_seq_keep(s->ses, c->slot, NULL); /* no memory for it: then it is not kept */
}

void hn_scheduler_release(hone_scheduler *s, hn_choice *c)
{
    int32_t slot = c->slot;
    hn_scheduler_keep(s, c);
    c->slot = -1;
    c->rows = 0;
    s->n_freed++;
    s->slot[slot] = (hn_seat){ .used = ++s->tick };
    if (c->of->r.no_share) empty_slot(s, slot); /* else the last page, which is not whole, is found here */
}

/* The idle slot that is missed least: empty, or left for longest; −1: none. */
static int32_t idle_slot(const hone_scheduler *s, bool with_something)
{
    int32_t best = -1;
    bool best_empty = false;
    for (int32_t i = 0; i < s->n_slot; i++) {
        bool empty = s->ses->mem->length[i] == 0;
        if (s->slot[i].c || (with_something && empty)) continue;
        if (best >= 0 && (best_empty > empty || (best_empty == empty && s->slot[best].used <= s->slot[i].used)))
            continue;
        best = i;
        best_empty = empty;
    }
    return best;
}

/* The idle slot with most in it of which all is where a unit's ids begin: going on there costs nobody anything, while
 * elsewhere what does not fill a page, which slots alone have, would be lost to another conversation. −1: none. */
static int32_t begun_slot(const hone_scheduler *s, const hn_choice *c)
{
    const hn_seq_memory *m = s->ses->mem;
    const hone_request *r = &c->of->r;
    hn_seq_key key = { .scope = c->of->scope };
    int32_t best = -1;
    if (hn_adapters_hash(s->ses, &key.adapters, r->adapters, r->scales, r->n_adapters, NULL) != HONE_OK) return -1;
    for (int32_t i = 0; i < s->n_slot; i++) {
        int32_t n = m->length[i];
        if (s->slot[i].c || !n || n > c->n_ids || m->n_ids[i] < n || !hn_same_key(m->key[i], key)) continue;
        if (best >= 0 && n <= m->length[best]) continue;
        if (!memcmp(hn_memory_ids(m, i), c->ids, (size_t)n * sizeof *c->ids)) best = i;
    }
    return best;
}

/* The slot that the request names, where nobody has it: what is in which slot changes no answer. */
static int32_t wanted_slot(const hone_scheduler *s, const hn_choice *c)
{
    int32_t slot = c->of->r.slot_plus_1 - 1;
    if (!c->k && slot >= 0 && slot < s->n_slot && !s->slot[slot].c) return slot;
    slot = begun_slot(s, c);
    return slot >= 0 ? slot : idle_slot(s, false);
}

static int32_t n_idle(const hone_scheduler *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_slot; i++) n += !s->slot[i].c;
    return n;
}

/* ---- memory --------------------------------------------------------------------------- */

bool hn_scheduler_evict(hone_scheduler *s)
{
    int32_t slot = idle_slot(s, true);
    if (slot < 0) return false;
    empty_slot(s, slot);
    s->n_freed++;
    return true;
}

/* Nobody asks for a closed handle again: no slot holds it for the next request. What was computed with it goes where no
 * other handle of its content is open; else its whole pages stay. */
void hn_scheduler_drop_closed(hone_scheduler *s)
{
    s->n_freed += hn_adapters_drop_closed(s->ses);
    for (int32_t i = 0; i < s->n_slot; i++) {
        if (s->slot[i].c || !hn_seq_set_is_closed(s->ses, i)) continue;
        empty_slot(s, i);
        hn_seq_use_set(s->ses, i, NULL);
        s->n_freed++;
    }
}

/* What a unit in a slot will take before it is past the first page of what comes. */
static uint64_t to_come(const hone_scheduler *s, const hn_choice *c)
{
    const hn_seq_memory *m = s->ses->mem;
    int32_t to = c->n_ids < s->ses->n_ctx - HN_PAGE ? c->n_ids + HN_PAGE : s->ses->n_ctx;
    uint64_t then = hn_memory_bytes_to(m, to), now = hn_memory_bytes_at(m, hn_scheduler_held(s, c));
    uint64_t forks = c->of->forked ? 0 : (uint64_t)(c->of->r.n_choices - 1) * hn_memory_bytes_at(m, HN_PAGE);
    return (then > now ? then - now : 0) + forks;
}

/* What idle slots hold without their checkpoints, at most: others may hold some of it too. */
static uint64_t idle_bytes(const hone_scheduler *s)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < s->n_slot; i++)
        if (!s->slot[i].c) n += hn_memory_bytes_at(s->ses->mem, s->ses->mem->length[i]);
    return n;
}

/* Do its ids and a page more fit beside what the others were promised? */
static bool fits(hone_scheduler *s, const hn_choice *c)
{
    const hn_seq_memory *m = s->ses->mem;
    uint64_t need = 0;
    bool alone = true;
    for (int32_t i = 0; i < s->n_slot; i++) {
        const hn_choice *o = s->slot[i].c;
        if (!o || (o->k && !o->of->forked)) continue;
        need += to_come(s, o);
        alone = alone && o == c;
    }
    if (alone) return true; /* what is too much even so fails when it runs */
    uint64_t idle = idle_bytes(s);
    if (!m->wants_checkpoints && m->used + need > m->p.budget + idle &&
        !hn_prefix_can_free(m, m->used + need - m->p.budget - idle))
        return false; /* conversations are not forgotten for nothing (what checkpoints hold is not counted) */
    do {              /* what the tree keeps goes by itself where it is in the way */
        uint64_t all = m->used + need;
        if (all <= m->p.budget || hn_prefix_can_free(m, all - m->p.budget)) return true;
    } while (hn_scheduler_evict(s));
    return false;
}

/* The slots of a unit are free again, as it waits. */
static void leave(hone_scheduler *s, hn_choice *c)
{
    hn_ticket *a = c->of;
    int32_t n = a->forked ? c->k + 1 : a->r.n_choices;
    for (int32_t k = c->k; k < n; k++) {
        s->slot[a->choice[k].slot].c = NULL;
        a->choice[k].slot = -1;
        a->choice[k].rows = 0;
    }
}

bool hn_scheduler_make_room(hone_scheduler *s)
{
    hn_choice *youngest = NULL, *c = NULL;
    int32_t n = 0;
    if (hn_scheduler_evict(s)) return true;
    for (int32_t i = 0; i < s->n_active; i++)
        for (int32_t k = 0; k < hn_scheduler_units(s->active[i]); k++) {
            c = &s->active[i]->choice[k];
            if (c->slot < 0 || c->ended) continue;
            youngest = c;
            n++;
        }
    if (n < 2) return false;
    hn_scheduler_keep(s, youngest); /* of its pages only those go that are needed, if it comes back soon */
    empty_slot(s, youngest->slot);
    leave(s, youngest);
    s->n_freed++;
    s->n.n_preempted++;
    return true;
}

/* ---- starting ------------------------------------------------------------------------- */

typedef enum placing { PLACED, WAITS, FAILED } placing;

/* A unit's first slot is of its scope and adapters; with others' it is emptied. */
static hone_status set_key(hone_scheduler *s, const hn_choice *c, hone_error *err)
{
    const hone_request *r = &c->of->r;
    hone_status st = hone_seq_set_scope(s->ses, c->slot, c->of->scope, err);
    if (st == HONE_OK) st = hone_seq_set_adapters(s->ses, c->slot, r->adapters, r->scales, r->n_adapters, err);
    if (st != HONE_E_ARG || !hn_scheduler_held(s, c)) return st;
    empty_slot(s, c->slot);
    return set_key(s, c, err);
}

/* It holds what is there already of its ids. */
static void find(hone_scheduler *s, hn_choice *c)
{
    hn_ticket *a = c->of;
    bool echoes = a->r.prompt_logprobs && a->n_echoed < a->r.n_prompt;
    int32_t n = echoes ? a->n_echoed : c->n_ids, kept;
    if (n < 1 || hone_seq_match(s->ses, c->slot, c->ids, n, &kept, NULL) != HONE_OK) empty_slot(s, c->slot);
}

/* What was found of a prompt that had not been there before. */
static void count_found(hone_scheduler *s, hn_choice *c)
{
    hn_ticket *a = c->of;
    int32_t n = hn_scheduler_held(s, c);
    if (n <= c->furthest) return;
    int32_t more = n - c->furthest; /* of the prompt: of an answer nothing is there that was not run */
    c->furthest = n;
    a->n_cached += more;
    if (a->n_done < n) a->n_done = n;
    s->n.n_cached_tokens += (uint64_t)more;
    s->n.n_prompt_tokens += (uint64_t)more;
}

/* A unit gets its slots, if they and memory are there. */
static placing try_place(hone_scheduler *s, hn_choice *c, hone_error *err)
{
    hn_ticket *a = c->of;
    int32_t n = a->forked ? c->k + 1 : a->r.n_choices;
    if (n_idle(s) < n - c->k) return WAITS;
    for (int32_t k = c->k; k < n; k++) {
        a->choice[k].slot = k == c->k ? wanted_slot(s, c) : idle_slot(s, false);
        a->choice[k].last_slot = a->choice[k].slot;
        s->slot[a->choice[k].slot].c = &a->choice[k];
    }
    if (set_key(s, c, err) != HONE_OK) {
        leave(s, c);
        return FAILED;
    }
    find(s, c);
    for (int32_t k = c->k + 1; k < n; k++) empty_slot(s, a->choice[k].slot);
    if (!fits(s, c)) {
        leave(s, c);
        return WAITS;
    }
    count_found(s, c);
    return PLACED;
}

/* The same; who waits is not looked at again before something is free, as looking takes what a prompt of its length
 * does. */
static placing place(hone_scheduler *s, hn_choice *c, hone_error *err)
{
    if (s->waiter == c && s->waits_since == s->n_freed) return WAITS;
    placing p = try_place(s, c, err);
    s->waiter = p == WAITS ? c : NULL;
    s->waits_since = s->n_freed;
    return p;
}

/* What its choices need beside memory of the session. */
static hone_status prepare(hone_scheduler *s, hn_ticket *a, hone_error *err)
{
    const hone_request *r = &a->r;
    size_t n = (size_t)r->n_prompt;
    if (r->prompt_logprobs && s->logit_rows == s->n_slot) {
        size_t rows = (size_t)s->n_slot + HN_ECHO_ROWS;
        float *p = realloc(s->logits, rows * (size_t)s->n_vocab * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "logits of %d rows of prompts", HN_ECHO_ROWS);
        s->logits = p;
        s->logit_rows = (int32_t)rows;
    }
    for (int32_t k = 0; k < r->n_choices; k++) {
        hn_choice *c = &a->choice[k];
        if (!c->ids) {
            if (!(c->ids = malloc(n * sizeof *c->ids))) return HN_FAIL(err, HONE_E_NOMEM, "prompt of %zu tokens", n);
            memcpy(c->ids, a->choice[0].ids, n * sizeof *c->ids);
            c->n_ids = c->cap = r->n_prompt;
        }
        if (r->mask && !(c->allowed = malloc(s->n_words * sizeof *c->allowed)))
            return HN_FAIL(err, HONE_E_NOMEM, "mask of %d tokens", s->n_vocab);
        hone_status st = hone_sampler_new(&c->sampler, s->n_vocab, &r->sampling, err);
        if (st == HONE_OK) st = hone_sampler_suppress(c->sampler, s->model, err);
        if (st != HONE_OK) return st;
        for (int32_t i = 0; i < r->n_prompt; i++) hone_sampler_accept(c->sampler, c->ids[i]);
    }
    return HONE_OK;
}

void hn_scheduler_admit(hone_scheduler *s)
{
    hone_error err = { 0 };
    for (int32_t i = 0; i < s->n_active; i++) /* who paused comes first, the oldest before the others */
        for (int32_t k = 0; k < hn_scheduler_units(s->active[i]); k++) {
            hn_choice *c = &s->active[i]->choice[k];
            if (c->slot >= 0 || c->ended) continue;
            placing p = place(s, c, &err);
            if (p == WAITS) return;
            if (p == FAILED) hn_scheduler_end_all(s, c->of, HONE_END_ERROR, &err);
        }
    while (s->n_queue) {
        hn_ticket *a = hn_scheduler_next(s);
        placing p = place(s, &a->choice[0], &err);
        if (p == WAITS) return;
        hn_scheduler_take(s, a, true);
        if (p == PLACED && prepare(s, a, &err) == HONE_OK) {
            s->active[s->n_active++] = a;
            continue;
        }
        hn_scheduler_end_all(s, a, HONE_END_ERROR, &err);
        hn_scheduler_forget(a);
    }
}
