/* scheduler: from logits to events. Picks the next token of a choice, asks its mask, tells its caller, and ends it.
 * Refuses to know why a choice runs now. */
#include "engine/sampler.h"
#include "engine/scheduler.h"

#include <math.h>
#include <stdlib.h>

static hone_event event_of(const hn_ticket *a, hone_event_kind kind, int32_t choice)
{
    return (hone_event){ .kind = kind,
                         .request = a->id,
                         .choice = choice,
                         .n_prompt = a->r.n_prompt,
                         .n_cached = a->n_cached,
                         .n_done = a->n_done,
                         .slot = a->choice[choice].last_slot,
                         .id = -1 };
}

static bool tell(const hn_ticket *a, const hone_event *e) { return !a->r.event || a->r.event(a->r.arg, e); }

/* ---- ends ----------------------------------------------------------------------------- */

void hn_scheduler_end(hone_scheduler *s, hn_choice *c, hone_end end, const hone_error *error)
{
    hn_ticket *a = c->of;
    if (c->ended) return;
    c->ended = true;
    if (s->waiter == c) s->waiter = NULL;
    if (c->slot >= 0) hn_scheduler_release(s, c);
    if (--a->n_left == 0) {
        s->n.n_ended++;
        s->n.n_cancelled += end == HONE_END_CANCELLED;
    }
    hone_event e = event_of(a, HONE_EVENT_END, c->k);
    e.end = end;
    e.error = end == HONE_END_ERROR ? error : NULL;
    tell(a, &e);
}

void hn_scheduler_end_all(hone_scheduler *s, hn_ticket *a, hone_end end, const hone_error *error)
{
    for (int32_t k = 0; k < a->r.n_choices; k++) hn_scheduler_end(s, &a->choice[k], end, error);
}

/* ---- masks ---------------------------------------------------------------------------- */

static hone_status ask_mask(hone_scheduler *s, hn_choice *c, hone_error *err)
{
    const hone_request *r = &c->of->r;
    if (!r->mask || c->asked || c->ended) return HONE_OK;
    c->all = false;
    memset(c->allowed, 0, s->n_words * sizeof *c->allowed);
    hone_status st = r->mask(r->arg, c->k, c->allowed, s->n_words, &c->all, err);
    c->asked = st == HONE_OK;
    return st;
}

bool hn_scheduler_ask_masks(hone_scheduler *s, hn_choice *c)
{
    hn_ticket *a = c->of;
    hone_error err = { 0 };
    hone_status st = ask_mask(s, c, &err);
    for (int32_t k = 1; st == HONE_OK && !a->forked && k < a->r.n_choices; k++) st = ask_mask(s, &a->choice[k], &err);
    if (st == HONE_OK) return true;
    if (err.code == HONE_OK) HN_FAIL(&err, st, "the mask of request %llu failed", (unsigned long long)a->id);
    if (a->forked) hn_scheduler_end(s, c, HONE_END_ERROR, &err);
    else hn_scheduler_end_all(s, a, HONE_END_ERROR, &err); /* one state, one mask */
    return false;
}

static bool none_allowed(const hone_scheduler *s, const hn_choice *c)
{
    uint64_t any = 0;
    for (size_t i = 0; i < s->n_words; i++) any |= c->allowed[i];
    return !any;
}

/* ---- tokens --------------------------------------------------------------------------- */

static bool grow_ids(hn_choice *c)
{
    if (c->n_ids < c->cap) return true;
    int32_t cap = c->cap + c->cap / 2 + 16;
    int32_t *p = realloc(c->ids, (size_t)cap * sizeof *p);
    if (!p) return false;
    c->ids = p;
    c->cap = cap;
    return true;
}

/* The next token of a choice, told; maybe its end. */
static void pick(hone_scheduler *s, hn_choice *c, const float *logits)
{
    hn_ticket *a = c->of;
    const hone_request *r = &a->r;
    const bool masked = r->mask && !c->all;
    const int32_t pos = c->n_ids;
    hone_error err = { 0 };
    hone_event e = event_of(a, HONE_EVENT_TOKEN, c->k);
    hone_pick p = { masked ? c->allowed : NULL, a->bias, r->n_bias, c->k, pos };

    if (r->max_tokens == 0) {
        hn_scheduler_end(s, c, HONE_END_LENGTH, NULL);
        return;
    }
    if (masked && none_allowed(s, c)) {
        hn_scheduler_end(s, c, HONE_END_EOG, NULL);
        return;
    }
    hone_status st = grow_ids(c) ? HONE_OK : HN_FAIL(&err, HONE_E_NOMEM, "ids of an answer of %d tokens", c->n_picked);
    if (st == HONE_OK) st = hone_sampler_pick_from(c->sampler, logits, &p, &e.id, &err);
    int32_t n_top = r->n_logprobs > 0 ? r->n_logprobs : 0;
    if (st == HONE_OK && r->n_logprobs >= 0 && r->sampled_probs)
        st = hn_sampler_probs(c->sampler, logits, &p, e.id, &e.logprob, s->top, n_top, &n_top, &err);
    else if (st == HONE_OK && r->n_logprobs >= 0)
        st = hone_logprobs(logits, s->n_vocab, e.id, &e.logprob, s->top, r->n_logprobs, &err);
    if (st != HONE_OK) {
        hn_scheduler_end(s, c, HONE_END_ERROR, &err);
        return;
    }

    const bool eog = !r->ignore_eog && hone_token_is_eog(s->model, e.id);
    if (!eog) {
        c->ids[c->n_ids++] = e.id;
        hone_sampler_accept(c->sampler, e.id);
    }
    c->asked = false;
    c->n_picked++;
    s->n.n_generated_tokens++;
    e.pos = pos;
    e.top = r->n_logprobs > 0 ? s->top : NULL;
    e.n_top = n_top;
    bool goes_on = tell(a, &e);
    if (eog) hn_scheduler_end(s, c, HONE_END_EOG, NULL);
    else if (!goes_on) hn_scheduler_end(s, c, HONE_END_STOPPED, NULL);
    else if (c->n_picked == r->max_tokens) hn_scheduler_end(s, c, HONE_END_LENGTH, NULL);
    else if (pos >= s->ses->n_ctx) hn_scheduler_end(s, c, HONE_END_CONTEXT, NULL);
}

/* ---- prompts -------------------------------------------------------------------------- */

/* Log-probabilities of prompt tokens from n_echoed on, of wanted rows from position `from`; false: it ended. */
static bool echo(hone_scheduler *s, hn_ticket *a, int32_t from, int32_t to, const float *logits, hone_event *e)
{
    const int32_t n_top = a->r.n_logprobs > 0 ? a->r.n_logprobs : 0, n_prompt = a->r.n_prompt;
    hone_error err = { 0 };
    int32_t n = 0;
    e->first_logprob = a->n_echoed;
    if (a->n_echoed == 0) { /* nothing comes before the first */
        s->echo[n++] = NAN;
        for (int32_t i = 0; i < n_top; i++) s->top[i] = (hone_logprob){ -1, NAN };
        a->n_echoed = 1;
    }
    for (int32_t pos = from; pos < to && pos + 1 < n_prompt; pos++) {
        if (pos + 1 < a->n_echoed) continue; /* told before a pause */
        hone_status st = hone_logprobs(logits, s->n_vocab, a->choice[0].ids[pos + 1], &s->echo[n],
                                       s->top + (size_t)n * (size_t)n_top, n_top, &err);
        if (st != HONE_OK) {
            hn_scheduler_end_all(s, a, HONE_END_ERROR, &err);
            return false;
        }
        logits += s->n_vocab;
        a->n_echoed++, n++;
    }
    e->prompt_logprob = s->echo;
    e->n_prompt_logprobs = n;
    e->top = n_top ? s->top : NULL;
    e->n_top = n_top;
    return true;
}

/* Each choice has a sequence of its own from here on. */
static void fork_choices(hone_scheduler *s, hn_ticket *a)
{
    hone_error err = { 0 };
    a->forked = true;
    for (int32_t k = 1; k < a->r.n_choices; k++) {
        hn_choice *c = &a->choice[k];
        if (hone_seq_copy(s->ses, c->slot, a->choice[0].slot, &err) != HONE_OK)
            hn_scheduler_end(s, c, HONE_END_ERROR, &err);
        c->furthest = a->r.n_prompt;
    }
}

void hn_scheduler_tell_rows(hone_scheduler *s, hn_choice *c, int32_t from, const float *logits)
{
    hn_ticket *a = c->of;
    const int32_t to = hn_scheduler_held(s, c), n_prompt = a->r.n_prompt;
    const bool whole = to == c->n_ids;
    const float *last = logits + (size_t)(c->n_want > 0 ? c->n_want - 1 : 0) * (size_t)s->n_vocab;

    if (!a->forked && to > a->n_done) {
        a->n_done = to < n_prompt ? to : n_prompt;
        hone_event e = event_of(a, HONE_EVENT_PROMPT, 0);
        if (a->r.prompt_logprobs && !echo(s, a, from, to, logits, &e)) return;
        tell(a, &e);
    }
    if (!whole) return;
    if (a->forked) {
        pick(s, c, last);
        return;
    }
    fork_choices(s, a);
    for (int32_t k = 0; k < a->r.n_choices; k++)
        if (!a->choice[k].ended) pick(s, &a->choice[k], last);
}
