/* The way of hone serve: requests that share one scheduler, of which each is told what its prompt says alone. Owns what
 * is asked of it. */
#include "lab/quality/paths_walk.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, MOST_GEN = 7, MOST_CHOICES = SLOTS, N_CTX = 128, SHARED = 70 };

typedef struct question {
    int32_t from, n, gen; /* ids of the long prompt; tokens of each choice */
    int32_t n_choices;
    float temp;
    bool full; /* the context is, behind so many tokens; of a small model */
} question;

/* The second shares a page with the first and is so warm that its choices differ; there are more choices than slots.
 * The last of `gen` tokens takes no position. The last three end one behind the other: passes of three rows, two, one. */
static const question asked[] = { { 0, SHARED, 6, 1, 0, false },
                                  { 0, SHARED + 5, 5, 2, 1.6f, false },
                                  { 40, 9, MOST_GEN, 1, 0.7f, false },
                                  { 5, 33, 5, 1, 0, false },
                                  { 0, N_CTX - 3, 4, 1, 0, true } };
enum { QUESTIONS = sizeof asked / sizeof *asked, FIRST = 2 /* the others come later */ };

typedef struct told {
    int32_t ids[MOST_CHOICES][MOST_GEN];
    float logprob[MOST_CHOICES][MOST_GEN];
    int32_t n[MOST_CHOICES];
    hone_end end;   /* expected */
    bool other_end; /* one of them ended otherwise */
} told;

static bool hear(void *arg, const hone_event *e)
{
    told *t = arg;
    if (e->choice < 0 || e->choice >= MOST_CHOICES) return true;
    int32_t *n = &t->n[e->choice];
    if (e->kind == HONE_EVENT_END && e->end != t->end) t->other_end = true;
    if (e->kind != HONE_EVENT_TOKEN) return true;
    if (*n < MOST_GEN) {
        t->ids[e->choice][*n] = e->id;
        t->logprob[e->choice][*n] = e->logprob;
    }
    ++*n;
    return true;
}

/* Of one of a small model more: who confuses two choices may confuse the third alone. */
static int32_t choices_of(const hn_walk *w, const question *q)
{
    return w->small && q->n_choices > 1 ? MOST_CHOICES : q->n_choices;
}

static hone_sampler_params sampling_of(const question *q)
{
    enum { SEED = 20 };
    return (hone_sampler_params){ .temp = q->temp, .top_p = 0.95f, .repeat_penalty = 1, .seed = SEED };
}

static bool is_asked(const hn_walk *w, int32_t k) { return w->small || !asked[k].full; }

static hone_status submit(hn_walk *w, hone_scheduler *s, int32_t k, told *t)
{
    const question *q = &asked[k];
    const hone_request r = { .prompt = w->ids + q->from,
                             .n_prompt = q->n,
                             .sampling = sampling_of(q),
                             .n_choices = choices_of(w, q),
                             .max_tokens = q->full ? N_CTX : q->gen,
                             .ignore_eog = true,
                             .client = (uint64_t)k % 2,
                             .event = hear,
                             .arg = t };
    uint64_t id;
    t->end = q->full ? HONE_END_CONTEXT : HONE_END_LENGTH;
    return is_asked(w, k) ? hone_scheduler_submit(s, &r, &id, w->err) : HONE_OK;
}

static hone_status ask_all(hn_walk *w, hone_scheduler *s, told *t)
{
    enum { STEPS_FIRST = 3, STEPS_MOST = 500 };
    hone_status st = HONE_OK;
    bool worked = true;
    for (int32_t k = 0; k < FIRST && st == HONE_OK; k++) st = submit(w, s, k, &t[k]);
    for (int32_t i = 0; i < STEPS_FIRST && st == HONE_OK; i++) st = hone_scheduler_step(s, &worked, w->err);
    for (int32_t k = FIRST; k < QUESTIONS && st == HONE_OK; k++) st = submit(w, s, k, &t[k]);
    worked = true;
    for (int32_t i = 0; i < STEPS_MOST && worked && st == HONE_OK; i++) st = hone_scheduler_step(s, &worked, w->err);
    return st;
}

static void differs(hn_walk *w, const question *q, int32_t choice, int32_t step)
{
    hn_invalid(
        &w->out->verdict,
        "one request, two answers: token %d of choice %d behind %d ids of the long quality prompt is another one, "
        "or of another probability, %s than alone; the engine is wrong in one of the two",
        (int)step, (int)choice, (int)q->n, w->way);
}

/* What a choice must have been told, computed in the session at hand. */
static hone_status alone(hn_walk *w, const question *q, int32_t choice, const told *t)
{
    const hone_sampler_params p = sampling_of(q);
    const float *x;
    hone_sampler *s = NULL;
    hone_status st = hone_seq_truncate(w->s, 0, 0, w->err);
    if (st == HONE_OK) st = hone_sampler_new(&s, w->info.n_vocab, &p, w->err);
    if (st == HONE_OK) st = hone_append(w->s, 0, w->ids + q->from, q->n, &x, w->err);
    bool same = !t->other_end && t->n[choice] == q->gen;
    if (!same) differs(w, q, choice, t->n[choice]);
    for (int32_t i = 0; i < q->gen && same && st == HONE_OK; i++) {
        int32_t id = -1;
        float logprob = 0;
        st = hone_sampler_pick(s, x, choice, q->n + i, &id, w->err);
        if (st == HONE_OK) st = hone_logprobs(x, w->info.n_vocab, id, &logprob, NULL, 0, w->err);
        if (st != HONE_OK) break;
        same = id == t->ids[choice][i] && memcmp(&logprob, &t->logprob[choice][i], sizeof logprob) == 0;
        if (!same) differs(w, q, choice, i);
        hone_sampler_accept(s, id);
        if (i + 1 < q->gen && same) st = hone_append(w->s, 0, &id, 1, &x, w->err);
    }
    hone_sampler_free(s);
    return st;
}

/* In the session that is open, which is emptied, and beside it a scheduler as asked for. */
hone_status hn_walk_through_a_scheduler(hn_walk *w)
{
    const hn_q_way way = { .n_ctx = N_CTX, .n_seq = SLOTS };
    hone_scheduler *s = NULL;
    told t[QUESTIONS] = { 0 };
    if (!w->p->open_scheduler || w->p->adapted || !w->info.causal || w->n < N_CTX) return HONE_OK;
    hone_status st = w->p->open_scheduler(w->p->arg, &way, &s, w->err);
    if (st == HONE_E_NOMEM || st == HONE_E_UNSUPPORTED || st == HONE_E_ARG || (st == HONE_OK && !s)) {
        hn_walk_left_out(w, "requests of a scheduler: there is none beside a session here");
        return HONE_OK;
    }
    w->out->n_ways++;
    w->way = "through a scheduler";
    if (st == HONE_OK) st = ask_all(w, s, t);
    for (int32_t k = 0; k < QUESTIONS && st == HONE_OK; k++)
        for (int32_t c = is_asked(w, k) ? 0 : MOST_CHOICES;
             c < choices_of(w, &asked[k]) && st == HONE_OK && !hn_walk_over(w); c++)
            st = alone(w, &asked[k], c, &t[k]);
    hone_scheduler_free(s);
    return st;
}
