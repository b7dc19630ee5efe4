/* Requests of a scheduler, and what each of them must be told. Owns how an answer is computed alone: by the session's
 * calls, a sampler and log-probabilities, with nothing of the scheduler's. */
#include "lab/quality/paths_requests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- who listens ---------------------------------------------------------------------------------------- */

static bool hear(void *arg, const hone_event *e)
{
    hn_told *t = arg;
    const int32_t c = e->choice;
    if (c < 0 || c >= HN_ASKED_CHOICES) return true;

    if (e->kind == HONE_EVENT_END) {
        t->end[c] = e->end;
        t->slot = e->slot;
        t->n_ended++;
    }
    for (int32_t i = 0; e->kind == HONE_EVENT_PROMPT && i < e->n_prompt_logprobs; i++) {
        const int32_t at = e->first_logprob + i;
        if (at != t->n_echoed || at >= HN_ASKED_PROMPT) break; /* too few, then */
        t->prompt[at] = e->prompt_logprob[i];
        for (int32_t k = 0; k < e->n_top; k++) t->prompt_top[at][k] = e->top[(size_t)i * (size_t)e->n_top + (size_t)k];
        t->n_echoed++;
    }
    if (e->kind != HONE_EVENT_TOKEN) return true;

    const int32_t at = t->n[c]++;
    t->other_place |= e->pos != t->of->n + at || e->n_prompt != t->of->n || e->n_cached > e->n_done;
    if (at < HN_ASKED_GEN) {
        t->ids[c][at] = e->id;
        t->logprob[c][at] = e->logprob;
        for (int32_t k = 0; k < HN_ASKED_TOP; k++)
            t->top[c][at][k] = k < e->n_top ? e->top[k] : (hone_logprob){ -1, 0 };
    }
    return t->of->stop_after == 0 || t->n[c] < t->of->stop_after;
}

/* Which tokens may be the one behind `nth` others; all of them now and then. */
static bool draw_mask(uint64_t key, int32_t nth, int32_t n_vocab, uint64_t *allowed, size_t n_words)
{
    enum { BITS = 64, ALL = 3 };
    if (nth % ALL == ALL - 1) return true;
    for (size_t i = 0; i < n_words; i++) allowed[i] |= hn_rand64(key + (uint64_t)nth, i);
    if (n_vocab % BITS) allowed[n_words - 1] &= ((uint64_t)1 << n_vocab % BITS) - 1;
    return false;
}

static hone_status mask(void *arg, int32_t choice, uint64_t *allowed, size_t n_words, bool *all, hone_error *err)
{
    const hn_told *t = arg;
    (void)err;
    if (draw_mask(t->of->mask, t->n[choice], t->n_vocab, allowed, n_words)) *all = true;
    return HONE_OK;
}

static int32_t choices_of(const hn_question *q) { return q->n_choices > 1 ? q->n_choices : 1; }

hone_status hn_ask(hn_walk *w, hone_scheduler *s, const hn_question *q, hn_told *t)
{
    memset(t, 0, sizeof *t);
    t->of = q;
    t->n_vocab = w->info.n_vocab;
    const hone_request r = { .prompt = q->ids,
                             .n_prompt = q->n,
                             .sampling = q->how,
                             .n_choices = q->n_choices,
                             .max_tokens = q->full ? q->n_ctx : q->gen,
                             .ignore_eog = !q->ends,
                             .bias = q->bias,
                             .n_bias = q->n_bias,
                             .n_logprobs = q->n_logprobs,
                             .sampled_probs = q->sampled,
                             .prompt_logprobs = q->echo,
                             .scope = q->scope,
                             .client = q->client,
                             .mask = q->mask ? mask : NULL,
                             .event = hear,
                             .arg = t };
    return hone_scheduler_submit(s, &r, &t->id, w->err);
}

/* Before step i. */
static void hold_and_cancel(hone_scheduler *s, hn_told *t, int32_t i)
{
    const hn_question *q = t->of;
    if (!t->id) return;
    if (q->hold_at && i == q->hold_at) hone_scheduler_hold(s, t->id, true);
    if (q->hold_at && i == q->hold_at + q->hold_for) hone_scheduler_hold(s, t->id, false);
    if (q->cancel_after && t->n[0] >= q->cancel_after) hone_scheduler_cancel(s, t->id);
}

hone_status hn_ask_step(hn_walk *w, hone_scheduler *s, hn_told *t, int32_t n, int32_t most)
{
    hone_status st = HONE_OK;
    bool waits = true, worked;
    for (int32_t i = 0; i < most && waits && st == HONE_OK; i++) {
        for (int32_t k = 0; k < n; k++) hold_and_cancel(s, &t[k], i);
        st = hone_scheduler_step(s, &worked, w->err);
        waits = false;
        for (int32_t k = 0; k < n; k++) waits |= t[k].id && t[k].n_ended < choices_of(t[k].of);
    }
    return st;
}

/* ---- alone ---------------------------------------------------------------------------------------------- */

static void differs(hn_walk *w, const hn_question *q, int32_t choice, int32_t step, const char *how)
{
    if (hn_walk_over(w)) return;
    hn_invalid(&w->out->verdict,
               "one request, two answers: token %d of choice %d behind %d ids of the long quality prompt %s %s than "
               "alone; the engine is wrong in one of the two",
               (int)step, (int)choice, (int)q->n, how, w->way);
}

static bool same_top(const hone_logprob *a, const hone_logprob *b, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        if (a[k].id != b[k].id || memcmp(&a[k].logprob, &b[k].logprob, sizeof a->logprob) != 0) return false;
    return true;
}

/* The most likely behind `at` (-1: of all), ties to the lower id; -1: there is none. */
static int32_t next_likely(const float *x, int32_t n_vocab, int32_t at)
{
    int32_t best = -1;
    for (int32_t j = 0; j < n_vocab; j++) {
        const bool behind = at < 0 || x[j] < x[at] || (x[j] == x[at] && j > at);
        if (behind && (best < 0 || x[j] > x[best])) best = j;
    }
    return best;
}

/* The probability of id among the top_k most likely (0: all), computed anew. */
static double chain_prob(const float *x, int32_t n_vocab, const hone_sampler_params *p, int32_t id)
{
    double all = 0, of_id = 0;
    const int32_t most = next_likely(x, n_vocab, -1), n = p->top_k > 0 && p->top_k < n_vocab ? p->top_k : n_vocab;
    for (int32_t k = 0, at = most; k < n; k++) {
        const int32_t j = p->top_k > 0 ? at : k;
        const double weight = exp(((double)x[j] - (double)x[most]) / (double)p->temp);
        all += weight;
        if (j == id) of_id = weight;
        if (p->top_k > 0 && k + 1 < n) at = next_likely(x, n_vocab, at);
    }
    return of_id / all;
}

/* What stands beside token i, of logits x. */
static hone_status same_beside(hn_walk *w, const hn_told *t, int32_t c, int32_t i, const float *x)
{
    const hn_question *q = t->of;
    hone_logprob top[HN_ASKED_TOP];
    float logprob = 0;
    if (q->n_logprobs < 0) return HONE_OK;
    if (q->sampled) {
        const double p = chain_prob(x, w->info.n_vocab, &q->how, t->ids[c][i]), near = 1e-4;
        if (!(fabs((double)t->logprob[c][i] - p) <= near)) differs(w, q, c, i, "is of another probability");
        return HONE_OK;
    }
    hone_status st = hone_logprobs(x, w->info.n_vocab, t->ids[c][i], &logprob, top, q->n_logprobs, w->err);
    if (st == HONE_OK && memcmp(&logprob, &t->logprob[c][i], sizeof logprob) != 0)
        differs(w, q, c, i, "is of another probability");
    if (st == HONE_OK && !same_top(top, t->top[c][i], q->n_logprobs)) differs(w, q, c, i, "stands beside other ones");
    return st;
}

/* The prompt's own log-probabilities; *x: the logits of its last token. */
static hone_status echo_alone(hn_walk *w, const hn_told *t, const float **x)
{
    enum { ROWS = 16 };
    const hn_question *q = t->of;
    const int32_t n_top = q->n_logprobs > 0 ? q->n_logprobs : 0;
    hone_logprob top[HN_ASKED_TOP];
    hone_status st = HONE_OK;
    if (t->n_echoed != q->n || !isnan(t->prompt[0])) differs(w, q, 0, t->n_echoed, "has no probability of its own");
    for (int32_t at = 0, n = 0; at < q->n && st == HONE_OK && !hn_walk_over(w); at += n) {
        n = q->n - at < ROWS ? q->n - at : ROWS;
        for (int32_t i = 0; i < n; i++) w->batch[i] = (hone_token){ q->ids[at + i], at + i, 0, true };
        st = hone_run_batch(w->s, w->batch, n, w->logits, w->err);
        for (int32_t i = 0; i < n && at + i + 1 < q->n && st == HONE_OK; i++) {
            const int32_t of = at + i + 1;
            float logprob = 0;
            *x = w->logits + (size_t)i * (size_t)w->info.n_vocab;
            st = hone_logprobs(*x, w->info.n_vocab, q->ids[of], &logprob, top, n_top, w->err);
            if (st == HONE_OK &&
                (memcmp(&logprob, &t->prompt[of], sizeof logprob) != 0 || !same_top(top, t->prompt_top[of], n_top)))
                differs(w, q, 0, of, "of its prompt is of another probability");
        }
        *x = w->logits + (size_t)(n - 1) * (size_t)w->info.n_vocab;
    }
    return st;
}

/* Whether it ends behind its i-th token, and how. */
static bool ends_behind(const hn_walk *w, const hn_question *q, int32_t i, int32_t id, hone_end *end)
{
    if (q->ends && hone_token_is_eog(w->p->m, id)) *end = HONE_END_EOG;
    else if (q->stop_after && i + 1 == q->stop_after) *end = HONE_END_STOPPED;
    else if (!q->full && i + 1 == q->gen) *end = HONE_END_LENGTH;
    else if (q->n + i >= q->n_ctx) *end = HONE_END_CONTEXT;
    else return false;
    return true;
}

static hone_status choice_alone(hn_walk *w, const hn_told *t, int32_t c)
{
    const hn_question *q = t->of;
    const size_t n_words = ((size_t)w->info.n_vocab + 63) / 64;
    uint64_t *allowed = calloc(n_words, sizeof *allowed);
    const float *x = NULL;
    hone_sampler *s = NULL;
    hone_status st = hone_seq_truncate(w->s, 0, 0, w->err);
    if (!allowed) st = HN_FAIL(w->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    if (st == HONE_OK) st = hone_sampler_new(&s, w->info.n_vocab, &q->how, w->err);
    if (st == HONE_OK) st = hone_sampler_suppress(s, w->p->m, w->err);
    for (int32_t i = 0; i < q->n && st == HONE_OK; i++) hone_sampler_accept(s, q->ids[i]);
    if (st == HONE_OK && q->echo && c == 0) st = echo_alone(w, t, &x);
    else if (st == HONE_OK) st = hone_append(w->s, 0, q->ids, q->n, &x, w->err);

    const bool cut = q->cancel_after && t->end[c] == HONE_END_CANCELLED; /* or it was done by then */
    hone_end end = HONE_END_CANCELLED;
    bool over = false;
    for (int32_t i = 0; i < HN_ASKED_GEN && !over && st == HONE_OK && !hn_walk_over(w); i++) {
        if (cut && i >= t->n[c]) break;
        hone_pick p = { .bias = q->bias, .n_bias = q->n_bias, .choice = c, .pos = q->n + i };
        memset(allowed, 0, n_words * sizeof *allowed);
        uint64_t any = 0;
        if (q->mask && !draw_mask(q->mask, i, w->info.n_vocab, allowed, n_words)) p.allowed = allowed;
        for (size_t k = 0; k < n_words; k++) any |= allowed[k];
        if (p.allowed && !any) {
            over = true;
            end = HONE_END_EOG;
            if (t->n[c] != i) differs(w, q, c, i, "is there, where none may be");
            break;
        }
        int32_t id = -1;
        st = hone_sampler_pick_from(s, x, &p, &id, w->err);
        if (st == HONE_OK && (i >= t->n[c] || t->ids[c][i] != id)) differs(w, q, c, i, "is another one");
        if (st == HONE_OK && !hn_walk_over(w)) st = same_beside(w, t, c, i, x);
        if (st != HONE_OK || hn_walk_over(w)) break;
        over = ends_behind(w, q, i, id, &end);
        if (over && t->n[c] != i + 1) differs(w, q, c, t->n[c] - 1, "is told");
        hone_sampler_accept(s, id);
        if (!over) st = hone_append(w->s, 0, &id, 1, &x, w->err);
    }
    if (st == HONE_OK && (t->end[c] != end || t->n_ended != choices_of(q))) differs(w, q, c, t->n[c], "ends otherwise");
    if (st == HONE_OK && t->other_place) differs(w, q, c, t->n[c], "has other places");
    hone_sampler_free(s);
    free(allowed);
    return st;
}

hone_status hn_ask_alone(hn_walk *w, const hn_told *t)
{
    hone_status st = HONE_OK;
    for (int32_t c = 0; t->id && c < choices_of(t->of) && st == HONE_OK && !hn_walk_over(w); c++)
        st = choice_alone(w, t, c);
    return st;
}
