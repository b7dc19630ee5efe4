/* scheduler: requests in, events out. Owns the session, the queue with its turns, and the order of a step. Refuses to
 * know sockets, threads and text. */
#include "engine/scheduler.h"
#include "base/floats.h"

#include "engine/sampler.h"

#include <stdlib.h>
#include <time.h>

enum { DEFAULT_SLOTS = 8, DEFAULT_QUEUE = 64, MOST_QUEUE = 1 << 20 };

static uint64_t monotonic_ns(void *arg)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- life ----------------------------------------------------------------------------- */

hone_status hone_scheduler_new(hone_scheduler **out, hone_context *ctx, const hone_model *m,
                               const hone_scheduler_params *params, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the scheduler");
    HN_NEED(err, ctx, "a context");
    HN_NEED(err, m, "an open model");
    hone_scheduler_params p = params ? *params : (hone_scheduler_params){ 0 };
    if (p.max_queue < 0 || p.max_queue > MOST_QUEUE)
        return HN_FAIL(err, HONE_E_ARG, "a queue of %d requests; expected 0 to %d", p.max_queue, MOST_QUEUE);
    if (p.fixed_prefill < 0)
        return HN_FAIL(err, HONE_E_ARG, "%d tokens of prompts in a step; expected 0 or more", p.fixed_prefill);
    if (p.session.n_seq == 0) p.session.n_seq = DEFAULT_SLOTS;
    if (p.session.n_seq > 0 && p.session.n_seq < 1024) { /* else it is refused, or must say what it wants */
        if (p.session.n_checkpoints == 0) p.session.n_checkpoints = 2 * p.session.n_seq;
        if (p.session.n_kept_states == 0) p.session.n_kept_states = 4 * p.session.n_seq;
    }

    hone_scheduler *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "scheduler");
    s->model = m;
    s->beside = s->before = s;
    s->now = p.now ? p.now : monotonic_ns;
    s->now_arg = p.now_arg;
    s->max_queue = p.max_queue ? p.max_queue : DEFAULT_QUEUE;
    s->fixed_prefill = p.fixed_prefill;
    hone_status st = hone_session_new(&s->ses, ctx, m, &p.session, err);
    if (st != HONE_OK) {
        hone_scheduler_free(s);
        return st;
    }
    s->n_slot = s->logit_rows = s->ses->n_seq;
    s->n_vocab = m->hp.n_vocab;
    s->n_words = ((size_t)s->n_vocab + 63) / 64;
    size_t n = (size_t)s->n_slot;
    s->slot = calloc(n, sizeof *s->slot);
    s->queue = calloc((size_t)s->max_queue, sizeof *s->queue);
    s->active = calloc(2 * n, sizeof *s->active); /* those that end in a step are there until it is over */
    s->batch = calloc(n + (size_t)s->ses->n_chunk, sizeof *s->batch);
    s->logits = malloc(n * (size_t)s->n_vocab * sizeof *s->logits);
    if (!s->slot || !s->queue || !s->active || !s->batch || !s->logits) {
        hone_scheduler_free(s);
        return HN_FAIL(err, HONE_E_NOMEM, "scheduler of %d slots and %d logits each", p.session.n_seq, m->hp.n_vocab);
    }
    *out = s;
    return HONE_OK;
}

void hone_scheduler_beside(hone_scheduler *s, hone_scheduler *other)
{
    if (!s) return;
    s->before->beside = s->beside;
    s->beside->before = s->before;
    s->beside = s->before = s;
    if (!other || other == s) return;
    s->before = other;
    s->beside = other->beside;
    other->beside = s->beside->before = s;
}

void hone_scheduler_free(hone_scheduler *s)
{
    if (!s) return;
    hone_scheduler_beside(s, NULL);
    s->max_queue = 0; /* nothing comes in any more */
    while (s->n_active) {
        hn_ticket *a = s->active[0];
        hn_scheduler_end_all(s, a, HONE_END_CANCELLED, NULL);
        memmove(s->active, s->active + 1, (size_t)--s->n_active * sizeof *s->active);
        hn_scheduler_forget(a);
    }
    while (s->n_queue) {
        hn_ticket *a = s->queue[0];
        hn_scheduler_take(s, a, false);
        hn_scheduler_end_all(s, a, HONE_END_CANCELLED, NULL);
        hn_scheduler_forget(a);
    }
    hone_session_free(s->ses);
    free(s->slot);
    free(s->queue);
    free(s->active);
    free(s->batch);
    free(s->logits);
    free(s);
}

/* ---- the queue: clients in turn ------------------------------------------------------- */

hn_ticket *hn_scheduler_next(const hone_scheduler *s)
{
    hn_ticket *next = NULL;
    for (int32_t i = 0; i < s->n_queue; i++) {
        hn_ticket *a = s->queue[i];
        if (a->turn && (!next || a->turn < next->turn)) next = a;
    }
    return next;
}

/* The first of a client's requests that wait; NULL: none does. */
static hn_ticket *first_of(const hone_scheduler *s, uint64_t client)
{
    for (int32_t i = 0; i < s->n_queue; i++)
        if (s->queue[i]->r.client == client) return s->queue[i];
    return NULL;
}

void hn_scheduler_take(hone_scheduler *s, hn_ticket *a, bool served)
{
    int32_t i = 0;
    while (s->queue[i] != a) i++;
    memmove(s->queue + i, s->queue + i + 1, (size_t)(--s->n_queue - i) * sizeof *s->queue);
    hn_ticket *next = a->turn ? first_of(s, a->r.client) : NULL;
    if (next) next->turn = served ? ++s->tick : a->turn;
    a->turn = 0;
}

/* ---- requests ------------------------------------------------------------------------- */

void hn_scheduler_forget(hn_ticket *a)
{
    if (!a) return;
    for (int32_t k = 0; a->choice && k < a->r.n_choices; k++) {
        free(a->choice[k].ids);
        free(a->choice[k].allowed);
        hone_sampler_free(a->choice[k].sampler);
    }
    free(a->choice);
    free(a->bias);
    free(a->adapters);
    free(a->scales);
    free(a);
}

static hone_status check_request(const hone_scheduler *s, const hone_request *r, hone_error *err)
{
    const int32_t n_ctx = s->ses->n_ctx;
    if (r->n_prompt < 1) return HN_FAIL(err, HONE_E_ARG, "prompt of %d tokens; expected at least 1", r->n_prompt);
    if (r->n_prompt >= n_ctx)
        return HN_FAIL(err, HONE_E_CTX,
                       "a prompt of %d tokens leaves no room for an answer in a context of %d positions; "
                       "expected at most %d",
                       r->n_prompt, n_ctx, n_ctx - 1);
    for (int32_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= s->n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the prompt has id %d; expected 0 to %d", i, r->prompt[i],
                           s->n_vocab - 1);
    if (r->mark < 0 || r->mark > r->n_prompt)
        return HN_FAIL(err, HONE_E_ARG, "a mark at %d; expected 0 to %d, the prompt's length", r->mark, r->n_prompt);
    if (r->slot_plus_1 < 0) return HN_FAIL(err, HONE_E_ARG, "slot_plus_1 %d; expected 0 or more", r->slot_plus_1);
    if (r->n_choices < 0 || r->n_choices > s->n_slot)
        return HN_FAIL(err, HONE_E_ARG, "%d answers at once; expected 1 to %d", r->n_choices, s->n_slot);
    if (r->max_tokens < -1)
        return HN_FAIL(err, HONE_E_ARG, "an answer of %d tokens; expected 0 or more, or -1", r->max_tokens);
    int32_t most = s->n_vocab < HN_MOST_TOP ? s->n_vocab : HN_MOST_TOP;
    if (r->n_logprobs < -1 || r->n_logprobs > most)
        return HN_FAIL(err, HONE_E_ARG, "log-probabilities of the %d most likely; expected -1 to %d", r->n_logprobs,
                       most);
    if (r->n_adapters < 0) return HN_FAIL(err, HONE_E_ARG, "%d adapters; expected 0 or more", r->n_adapters);
    hone_status st = hn_adapters_check(s->ses, r->adapters, r->scales, r->n_adapters, err);
    if (st == HONE_OK) st = hn_sampler_check(s->n_vocab, &r->sampling, err);
    return st == HONE_OK ? hn_bias_check(s->n_vocab, r->bias, r->n_bias, err) : st;
}

/* n of size bytes at p, ours; NULL where n is 0. *ok becomes false without memory. */
static void *own(const void *p, size_t n, size_t size, bool *ok)
{
    void *q = n && p && *ok ? malloc(n * size) : NULL;
    if (n && p && !q) *ok = false;
    if (q) memcpy(q, p, n * size);
    return q;
}

static hn_ticket *new_ticket(const hone_request *r)
{
    bool ok = true;
    hn_ticket *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->r = *r;
    if (a->r.n_choices == 0) a->r.n_choices = 1;
    a->n_left = a->r.n_choices;
    a->bias = own(r->bias, r->n_bias, sizeof *r->bias, &ok);
    a->adapters = own(r->adapters, (size_t)r->n_adapters, sizeof *a->adapters, &ok);
    a->scales = own(r->scales, (size_t)r->n_adapters, sizeof *a->scales, &ok);
    a->choice = calloc((size_t)a->n_left, sizeof *a->choice);
    if (ok && a->choice) a->choice[0].ids = own(r->prompt, (size_t)r->n_prompt, sizeof *r->prompt, &ok);
    if (!ok || !a->choice) {
        hn_scheduler_forget(a);
        return NULL;
    }
    for (int32_t k = 0; k < a->n_left; k++)
        a->choice[k] = (hn_choice){ .of = a, .k = k, .slot = -1, .last_slot = -1, .ids = a->choice[k].ids };
    a->choice[0].n_ids = a->choice[0].cap = r->n_prompt;
    a->r.prompt = NULL; /* the caller's; ours are in the choices */
    a->r.bias = a->bias;
    a->r.adapters = a->adapters;
    a->r.scales = a->scales;
    return a;
}

hone_status hone_scheduler_submit(hone_scheduler *s, const hone_request *r, uint64_t *id, hone_error *err)
{
    if (id) *id = 0;
    HN_NEED(err, s, "a scheduler");
    HN_NEED(err, r, "a request");
    HN_NEED(err, id, "a place for the request's number");
    HN_NEED(err, r->prompt, "a pointer to n_prompt ids");
    if (r->n_bias) HN_NEED(err, r->bias, "a pointer to n_bias biases");
    if (r->n_adapters > 0) HN_NEED(err, r->adapters, "a pointer to n_adapters adapters");
    HN_NEED_EACH(err, r->adapters, r->n_adapters, "an adapter");
    hone_status st = check_request(s, r, err);
    if (st != HONE_OK) return st;
    if (s->n_queue >= s->max_queue) {
        s->n.n_rejected++;
        return HN_FAIL(err, HONE_E_BUSY, "%d requests wait already; expected fewer than %d: try again later",
                       s->n_queue, s->max_queue);
    }
    hn_ticket *a = new_ticket(r);
    if (!a) return HN_FAIL(err, HONE_E_NOMEM, "request with a prompt of %d tokens", r->n_prompt);
    *id = a->id = ++s->n_id;
    a->scope = r->no_share ? hn_mix64(~s->n_id) | 1 : r->scope; /* one of its own: nobody comes back to it */
    s->n.n_requests++;
    if (!first_of(s, r->client)) a->turn = ++s->tick;
    s->queue[s->n_queue++] = a;
    return HONE_OK;
}

/* That has not ended; NULL: there is none. */
static hn_ticket *find(const hone_scheduler *s, uint64_t id)
{
    for (int32_t i = 0; s && i < s->n_queue + s->n_active; i++) {
        hn_ticket *a = i < s->n_queue ? s->queue[i] : s->active[i - s->n_queue];
        if (a->id == id && a->n_left) return a;
    }
    return NULL;
}

bool hone_scheduler_cancel(hone_scheduler *s, uint64_t id)
{
    hn_ticket *a = find(s, id);
    if (a) a->cancelled = true;
    return a != NULL;
}

bool hone_scheduler_hold(hone_scheduler *s, uint64_t id, bool hold)
{
    hn_ticket *a = find(s, id);
    if (a) a->held = hold;
    return a != NULL;
}

/* ---- a step --------------------------------------------------------------------------- */

/* Does a request end before it is done? */
static bool is_over(const hn_ticket *a, uint64_t now, hone_end *end)
{
    *end = a->cancelled ? HONE_END_CANCELLED : HONE_END_DEADLINE;
    return a->cancelled || (a->r.deadline_ns && now >= a->r.deadline_ns);
}

static void take_out(hone_scheduler *s)
{
    uint64_t now = s->now(s->now_arg);
    hone_end end;
    for (int32_t i = 0; i < s->n_active; i++)
        if (is_over(s->active[i], now, &end)) hn_scheduler_end_all(s, s->active[i], end, NULL);
    for (int32_t i = 0; i < s->n_queue;) {
        hn_ticket *a = s->queue[i];
        if (!is_over(a, now, &end)) {
            i++;
            continue;
        }
        hn_scheduler_take(s, a, false);
        hn_scheduler_end_all(s, a, end, NULL);
        hn_scheduler_forget(a);
    }
}

/* Requests of which no choice is left are gone. */
static void sweep(hone_scheduler *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_active; i++) {
        if (s->active[i]->n_left) s->active[n++] = s->active[i];
        else hn_scheduler_forget(s->active[i]);
    }
    s->n_active = n;
}

hone_status hone_scheduler_step(hone_scheduler *s, bool *worked, hone_error *err)
{
    HN_FLOATS;
    if (worked) *worked = false;
    HN_NEED(err, s, "a scheduler");
    HN_NEED(err, worked, "a place for whether there was anything to do");
    const int32_t before = s->n_active + s->n_queue, waited = s->n_queue;
    hn_scheduler_drop_closed(s);
    take_out(s);
    sweep(s);
    hn_scheduler_admit(s);
    *worked = hn_scheduler_run(s);
    sweep(s);
    *worked = *worked || s->n_active + s->n_queue != before || s->n_queue != waited;
    return HONE_OK;
}

/* ---- what is there -------------------------------------------------------------------- */

void hone_scheduler_get_stats(const hone_scheduler *s, hone_scheduler_stats *out)
{
    if (!out) return;
    *out = (hone_scheduler_stats){ 0 };
    if (!s) return;
    *out = s->n;
    out->n_waiting = s->n_queue;
    out->n_slots = s->n_slot;
    out->cache_used = s->ses->mem->used;
    out->cache_total = s->ses->mem->p.budget;
    for (int32_t i = 0; i < s->n_slot; i++) out->n_running += s->slot[i].c != NULL;
    for (int32_t i = 0; i < s->n_active; i++)
        for (int32_t k = 0; k < s->active[i]->r.n_choices; k++)
            out->n_paused += !s->active[i]->choice[k].ended && s->active[i]->choice[k].slot < 0;
}

bool hone_scheduler_slot(const hone_scheduler *s, int32_t slot, hone_slot_info *out)
{
    if (out) *out = (hone_slot_info){ 0 };
    if (!s || !out || slot < 0 || slot >= s->n_slot) return false;
    const hn_choice *c = s->slot[slot].c;
    *out = (hone_slot_info){ .n_past = s->ses->mem->length[slot], .running = c != NULL };
    if (c) out->request = c->of->id, out->choice = c->k;
    return true;
}

int32_t hone_scheduler_n_ctx(const hone_scheduler *s) { return s ? s->ses->n_ctx : 0; }
