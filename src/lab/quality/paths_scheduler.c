/* The way of hone serve: requests that share one scheduler, of which each is told what its prompt says alone. Owns what
 * is asked of it: a few known ones; and a crowd of drawn ones, for which there is not memory enough. */
#include "lab/quality/paths_requests.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS = 3, N_CTX = 128, SHARED = 70 };

static bool is_none(hone_status st, const hone_scheduler *s)
{
    return st == HONE_E_NOMEM || st == HONE_E_UNSUPPORTED || st == HONE_E_ARG || (st == HONE_OK && !s);
}

static hone_status all_alone(hn_walk *w, const hn_told *t, int32_t n)
{
    hone_status st = HONE_OK;
    for (int32_t k = 0; k < n && st == HONE_OK && !hn_walk_over(w); k++) st = hn_ask_alone(w, &t[k]);
    return st;
}

/* ---- a few that are known --------------------------------------------------------------------------------- */

enum { QUESTIONS = 5, FIRST = 2 /* the others come later */ };

/* The second shares a page with the first and is so warm that its choices differ; there are more choices than slots: of
 * a small model one more, for who confuses two may confuse the third alone. The last three end one behind the other:
 * passes of three rows, two, one. The last fills its context, whose last token takes no position: of a small model. */
static void known_ones(const hn_walk *w, hn_question *q)
{
    enum { SEED = 20, FULL = 4 };
    static const struct {
        int32_t from, n, gen, n_choices;
        float temp;
        bool full;
    } asked[QUESTIONS] = { { 0, SHARED, 6, 1, 0, false },
                           { 0, SHARED + 5, 5, 2, 1.6f, false },
                           { 40, 9, 7, 1, 0.7f, false },
                           { 5, 33, 5, 1, 0, false },
                           { 0, N_CTX - (FULL - 1), FULL, 1, 0, true } };
    for (int32_t k = 0; k < QUESTIONS; k++)
        q[k] = (hn_question){ .ids = w->ids + asked[k].from,
                              .n = asked[k].n,
                              .gen = asked[k].gen,
                              .n_choices = w->small && asked[k].n_choices > 1 ? HN_ASKED_CHOICES : asked[k].n_choices,
                              .how = { .temp = asked[k].temp, .top_p = 0.95f, .repeat_penalty = 1, .seed = SEED },
                              .full = asked[k].full,
                              .n_ctx = N_CTX,
                              .client = (uint64_t)k % 2 };
}

static hone_status ask_known(hn_walk *w, hone_scheduler *s, const hn_question *q, hn_told *t)
{
    enum { STEPS_FIRST = 3, STEPS_MOST = 500 };
    hone_status st = HONE_OK;
    for (int32_t k = 0; k < FIRST && st == HONE_OK; k++) st = hn_ask(w, s, &q[k], &t[k]);
    if (st == HONE_OK) st = hn_ask_step(w, s, t, FIRST, STEPS_FIRST);
    for (int32_t k = FIRST; k < QUESTIONS && st == HONE_OK; k++)
        if (w->small || !q[k].full) st = hn_ask(w, s, &q[k], &t[k]);
    return st == HONE_OK ? hn_ask_step(w, s, t, QUESTIONS, STEPS_MOST) : st;
}

/* In the session that is open, which is emptied, and beside it a scheduler as asked for. */
hone_status hn_walk_through_a_scheduler(hn_walk *w)
{
    const hn_q_way way = { .n_ctx = N_CTX, .n_seq = SLOTS };
    hone_scheduler *s = NULL;
    hn_question q[QUESTIONS];
    hn_told t[QUESTIONS] = { 0 };
    if (!w->p->open_scheduler || w->p->adapted || !w->info.causal || w->n < N_CTX) return HONE_OK;
    hone_status st = w->p->open_scheduler(w->p->arg, &way, &s, w->err);
    if (is_none(st, s)) {
        hn_walk_left_out(w, "requests of a scheduler: there is none beside a session here");
        return HONE_OK;
    }
    w->out->n_ways++;
    w->way = "through a scheduler";
    known_ones(w, q);
    if (st == HONE_OK) st = ask_known(w, s, q, t);
    if (st == HONE_OK) st = all_alone(w, t, QUESTIONS);
    hone_scheduler_free(s);
    return st;
}

/* ---- a crowd ---------------------------------------------------------------------------------------------- */

enum { CROWD = 9, CROWD_CTX = 192, CROWD_PROMPT = 130, N_BIAS = 2 };

typedef struct crowd {
    hn_question q[CROWD + 1]; /* the last goes on where another ended */
    hn_told t[CROWD + 1];
    hone_bias bias[CROWD][N_BIAS];
    int32_t ids[CROWD_CTX];
    uint64_t key, n_drawn;
    bool pair; /* two requests outgrow what there is, one time in three; else choices of one do */
} crowd;

/* By numbers of its own: what other ways draw stays what it was. */
static int32_t draw(crowd *c, int32_t n) { return (int32_t)(hn_rand64(c->key, c->n_drawn++) % (uint64_t)n); }

static hone_sampler_params draw_sampling(crowd *c, bool chain)
{
    static const float temps[] = { 0, 0.7f, 1, 1.6f };
    hone_sampler_params p = { .temp = temps[draw(c, 4)], .top_p = 1, .repeat_penalty = 1 };
    p.seed = (uint64_t)draw(c, 1 << 20);
    if (draw(c, 2)) p.top_k = 1 + draw(c, 50);
    if (!chain) return p;
    if (draw(c, 2)) p.top_p = 0.5f + 0.1f * (float)draw(c, 5);
    if (draw(c, 3) == 0) p.min_p = 0.1f;
    /* mostly, and of much of the prompt: who pauses is not to forget them */
    if (draw(c, 4)) p.repeat_penalty = 1.3f, p.presence_penalty = 0.4f, p.frequency_penalty = 0.3f;
    p.penalty_last_n = draw(c, 3) ? CROWD_PROMPT : 1 + draw(c, CROWD_PROMPT);
    return p;
}

/* The k-th: each is one of those that others than its kind must not disturb. */
static void draw_question(const hn_walk *w, crowd *c, int32_t k)
{
    enum { SAMPLED = 1, ECHOES, MASKED, STOPS, CANCELLED, HELD, ENDS, KEPT_APART, PAGE = 64, EDGE = 8, PAUSED = 2 };
    hn_question *q = &c->q[k];
    /* at the end of a page answers need another one, when others hold what there is */
    const int32_t n = draw(c, 4) ? PAGE * (1 + draw(c, 4) / 3) - draw(c, EDGE) : 1 + draw(c, CROWD_PROMPT);
    const int32_t from = k >= SLOTS && draw(c, 3) ? 0 : draw(c, w->n - CROWD_PROMPT); /* many share a page or two */
    *q = (hn_question){ .ids = w->ids + from, .n = n, .n_ctx = CROWD_CTX };
    q->gen = 1 + draw(c, 2 * EDGE);
    q->n_choices = k == 0 ? SLOTS : 1 + draw(c, 4) / 2;
    /* whoever runs was promised a page behind what he has, and one for each choice more: these all cross its end */
    if (k == 0) {
        q->n = PAGE - draw(c, EDGE);
        q->gen = PAGE - q->n + 4 + draw(c, EDGE);
    }
    if (k < PAUSED && c->pair) { /* two of these cannot both have a third page */
        q->n = PAGE - draw(c, EDGE);
        q->gen = 2 * PAGE - q->n + 2 + draw(c, EDGE);
        q->n_choices = 1;
    }
    q->n_logprobs = draw(c, HN_ASKED_TOP + 1);
    const bool sampled = k == SAMPLED && !c->pair; /* which has no penalties */
    q->how = draw_sampling(c, !sampled);
    q->client = k < SLOTS ? (uint64_t)k : (uint64_t)draw(c, SLOTS);
    q->scope = k == KEPT_APART;
    q->mask = k == MASKED || draw(c, 4) == 0 ? hn_rand64(c->key, c->n_drawn++) | 1 : 0;
    q->ends = k == ENDS;
    if (sampled) q->sampled = true, q->mask = 0, q->how.temp = 1.3f;
    if (k == ECHOES) q->echo = true;
    if (k == STOPS) q->stop_after = 1 + draw(c, q->gen);
    if (k == CANCELLED) q->cancel_after = 1 + draw(c, q->gen), q->n_choices = 1;
    if (k == HELD) q->hold_at = 1 + draw(c, 8), q->hold_for = 1 + draw(c, 20);
    if (k % 2 == 0) return;
    for (int32_t i = 0; i < N_BIAS; i++)
        c->bias[k][i] = (hone_bias){ draw(c, w->info.n_vocab), i ? -INFINITY : 3.0f + (float)draw(c, 5) };
    if (!sampled) q->bias = c->bias[k], q->n_bias = N_BIAS;
}

/* A slot is kept, emptied, and holds the same again: who goes on there is told what he is told alone. */
static hone_status kept_slot(hn_walk *w, hone_scheduler *s, crowd *c)
{
    enum { STEPS_MOST = 300, MORE = 5 };
    const hn_told *before = c->t;
    hn_question *q = &c->q[CROWD];
    hone_snapshot *kept = NULL;
    hone_slot_info slot;
    int32_t n = 0, gone = 0;
    for (int32_t k = 0, at = draw(c, CROWD); k < CROWD; k++) {
        before = &c->t[(at + k) % CROWD];
        if (hone_scheduler_slot(s, before->slot, &slot) && !slot.running && slot.n_past > 0) break;
        if (k == CROWD - 1) return HONE_OK; /* none holds anything */
    }
    hone_status st = hone_scheduler_snapshot(s, before->slot, &kept, w->err);
    if (st == HONE_E_ARG) return HONE_OK; /* whose ids are not known */
    const int32_t length = hone_snapshot_length(kept);
    if (st == HONE_OK) st = hone_scheduler_erase(s, before->slot, &gone, w->err);
    if (st == HONE_OK) st = hone_scheduler_restore(s, before->slot, kept, NULL, NULL, 0, w->err);
    hone_snapshot_free(kept);
    if (st != HONE_OK) return st == HONE_E_NOMEM ? HONE_OK : st; /* others hold too much: it may be empty then */
    if (!hone_scheduler_slot(s, before->slot, &slot) || slot.n_past != length || gone != length) {
        hn_invalid(
            &w->out->verdict,
            "a slot that held %d positions lost %d when it was erased, and held %d of them when they were brought "
            "back, %s; the engine is wrong",
            (int)length, (int)gone, (int)slot.n_past, w->way);
        return HONE_OK;
    }
    const hn_question *of = before->of;
    for (; n < of->n; n++) c->ids[n] = of->ids[n];
    for (int32_t i = 0; i < before->n[0] && n + MORE < CROWD_CTX; i++) c->ids[n++] = before->ids[0][i];
    *q = (hn_question){ .ids = c->ids, .n = n, .gen = MORE, .how = of->how, .n_ctx = CROWD_CTX, .scope = of->scope };
    st = hn_ask(w, s, q, &c->t[CROWD]);
    return st == HONE_OK ? hn_ask_step(w, s, &c->t[CROWD], 1, STEPS_MOST) : st;
}

static hone_status ask_crowd(hn_walk *w, hone_scheduler *s, crowd *c)
{
    enum { STEPS_MOST = 3000, BETWEEN = 4 };
    hone_status st = HONE_OK;
    for (int32_t k = 0; k < CROWD && st == HONE_OK; k++) { /* they come one after the other */
        draw_question(w, c, k);
        st = hn_ask(w, s, &c->q[k], &c->t[k]);
        if (st == HONE_OK && k + 1 >= SLOTS) st = hn_ask_step(w, s, c->t, k + 1, draw(c, BETWEEN));
    }
    return st == HONE_OK ? hn_ask_step(w, s, c->t, CROWD, STEPS_MOST) : st;
}

/* Its sequences may hold half of what they can come to hold: some pause, and go on. */
hone_status hn_walk_in_a_crowd(hn_walk *w)
{
    hn_q_way way = { .n_ctx = CROWD_CTX, .n_seq = SLOTS };
    hone_scheduler *s = NULL;
    hone_scheduler_stats stats = { 0 };
    static const uint64_t OF_ITS_OWN = 0x63726f7764u;
    if (!w->p->open_scheduler || w->p->adapted || !w->info.causal || w->n <= CROWD_CTX) return HONE_OK;
    hone_status st = w->p->open_scheduler(w->p->arg, &way, &s, w->err);
    if (st == HONE_OK && s) hone_scheduler_get_stats(s, &stats);
    way.budget = stats.cache_total / 2;
    if (st == HONE_OK && s && way.budget) {
        hone_scheduler_free(s);
        s = NULL;
        st = w->p->open_scheduler(w->p->arg, &way, &s, w->err);
    }
    if (is_none(st, s)) {
        hn_walk_left_out(w, "a crowd of requests: there is no scheduler of less memory here");
        return HONE_OK;
    }
    crowd *c = calloc(1, sizeof *c);
    if (!c) st = HN_FAIL(w->err, HONE_E_NOMEM, "a crowd of %d requests", CROWD);
    w->out->n_ways++;
    w->way = "in a crowd (drawn)";
    if (st == HONE_OK) {
        c->key = hn_rand64(w->out->draw, OF_ITS_OWN);
        c->pair = draw(c, 3) == 0;
        st = ask_crowd(w, s, c);
    }
    if (st == HONE_OK) st = kept_slot(w, s, c);
    if (st == HONE_OK) st = all_alone(w, c->t, CROWD + 1);
    hone_scheduler_free(s);
    free(c);
    return st;
}
