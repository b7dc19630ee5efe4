/* One answer whatever else is asked: requests that arrive at random in a scheduler of few slots and little memory get,
 * byte for byte, the tokens and log-probabilities that they get alone in a session of their own, and after each step
 * the promises of hone.h hold. A schedule draws a model, a session, a clock and requests: prompts that share
 * beginnings, several choices, masks, biases, penalties, echoes, scopes, clients, deadlines, cancels, ids that the
 * model makes no numbers of. Alone: the loop of hone run, written out again here.
 *
 * HONE_SCHEDULES_COUNT: schedules (60, 20 with sanitizers); HONE_SCHEDULES_SEED: of the first (1); HONE_TEST_FAMILY:
 * those models alone.
 * What fails says the seed that shows it again. */
#include "engine/scheduler.h"
#include "../unit/family_vectors.h"
#include "../unit/tiny_rwkv.h"
#include "../unit/slowed.h"

enum {
    MOST_CTX = 330,
    MOST_REQUEST = 14,
    MOST_CHOICE = 3,
    MOST_VOCAB = 64,
    MOST_TOP = 4,
    N_TEXT = 3,
    N_CLIENT = 3,
    EOS = 3
};

enum { SCHEDULES = SLOWED ? 20 : 60 };

static long number(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s ? atol(s) : otherwise;
}

static uint64_t key, drawn;
static uint32_t draw(uint32_t n) { return (uint32_t)(hn_rand64(key, drawn++) >> 20) % n; }
static bool chance(uint32_t one_in) { return draw(one_in) == 0; }

/* ---- what is asked, and what is heard ------------------------------------------------- */

typedef struct answer {
    int32_t id[MOST_CTX];
    float logprob[MOST_CTX];
    hone_logprob top[MOST_CTX][MOST_TOP];
    int n, n_masked; /* tokens; masks asked for */
    hone_end end;
    hone_status why;
    bool ended;
    char words[200]; /* of an error */
} answer;

typedef struct asked {
    hone_request r;
    int32_t prompt[MOST_CTX];
    hone_bias bias[3];
    hone_adapter *adapters[2];
    float scales[2];
    uint64_t id;   /* 0: not there yet */
    int at;        /* the step it comes with */
    int stop_at;   /* the event function stops a choice behind so many tokens; 0: never */
    int mask_kind; /* 0: none */
    int cancel_at; /* step; -1: never; -2: within an event */
    bool poisoned; /* a token of the prompt is no number */
    bool cancelled, late;
    int held_until; /* step; 0: it is not held */
    bool started;
    answer got[MOST_CHOICE], want[MOST_CHOICE];
    bool computed;
    int n_done, n_echoed, n_prompt_events;
    float echo[MOST_CTX], want_echo[MOST_CTX];
    hone_logprob echo_top[MOST_CTX][MOST_TOP], want_echo_top[MOST_CTX][MOST_TOP];
    int32_t n_cached;
} asked;

static struct {
    const char *name;
    long seed;
    hone_model *m;
    hone_context *c, *c_alone;
    hone_session *alone;
    hone_scheduler *s;
    int n_vocab, n_ctx, n_slot, n_chunk, n_asked, n_step;
    bool poison, crowded;     /* crowded: long answers, little memory */
    hone_adapter *adapter[2]; /* the family has: both or none */
    uint64_t idle_ns, row_ns, step_ns;
    int32_t text[N_TEXT][MOST_CTX];
    asked a[MOST_REQUEST];
    uint64_t n_tokens, n_rejected, n_failed;
    /* turns */
    uint64_t head[N_CLIENT], passed[N_CLIENT][N_CLIENT]; /* who waits first; starts of others meanwhile */
} ep;

static struct {
    long schedules, requests, answers, tokens, rows, steps, preempted, cancelled, late, cached, poisoned, echoed,
        masked, rejected, eog, adapted, held;
} did;

static void wrong(const char *what)
{
    fail_msg("%s: %s (step %d)\n    HONE_SCHEDULES_COUNT=1 HONE_SCHEDULES_SEED=%ld", ep.name, what, ep.n_step, ep.seed);
}
#define CHECK(x)             \
    do {                     \
        if (!(x)) wrong(#x); \
    } while (0)
static void must(hone_status st, const hone_error *err)
{
    if (st != HONE_OK) wrong(err->message);
}

static uint64_t now(void *arg)
{
    hone_scheduler_stats n;
    hone_scheduler_get_stats(ep.s, &n); /* before there is one: zeros */
    return ep.idle_ns + n.n_rows * ep.row_ns + n.n_steps * ep.step_ns;
}

/* ---- masks: a function of the request, the choice and its tokens ---------------------------------------- */

static void mask_of(const asked *a, int choice, const int32_t *ids, int n, uint64_t *allowed, bool *all)
{
    uint64_t h = hn_mix64(a->r.sampling.seed + (uint64_t)a->mask_kind * 77 + (uint64_t)choice);
    for (int i = 0; i < n; i++) h = hn_mix64(h + (uint64_t)ids[i]);
    if (a->mask_kind == 1 && h % 3 == 0) {
        *all = true;
        return;
    }
    if (a->mask_kind == 2) { /* one token, now and then none */
        int32_t id = (int32_t)(h % (uint64_t)ep.n_vocab);
        if (ep.poison && id == ep.n_vocab - 1) id = 0;
        if (h % 11) allowed[id / 64] |= (uint64_t)1 << id % 64;
        return;
    }
    for (int id = 0; id < ep.n_vocab; id++)
        if (hn_mix64(h + (uint64_t)id) % 2) allowed[id / 64] |= (uint64_t)1 << id % 64;
    allowed[0] |= 1;
}

static hone_status on_mask(void *arg, int32_t choice, uint64_t *allowed, size_t n_words, bool *all, hone_error *err)
{
    asked *a = arg;
    CHECK(choice >= 0 && choice < (a->r.n_choices ? a->r.n_choices : 1));
    answer *g = &a->got[choice];
    CHECK(!g->ended && n_words == ((size_t)ep.n_vocab + 63) / 64 && !*all);
    for (size_t i = 0; i < n_words; i++) CHECK(allowed[i] == 0);
    CHECK(g->n_masked == g->n); /* once for each token, in turn */
    g->n_masked++;
    mask_of(a, choice, g->id, g->n, allowed, all);
    return HONE_OK;
}

static bool on_event(void *arg, const hone_event *e)
{
    asked *a = arg;
    int n_choices = a->r.n_choices ? a->r.n_choices : 1;
    CHECK(e->request == a->id && a->id);
    CHECK(e->choice >= 0 && e->choice < n_choices);
    CHECK(e->n_prompt == a->r.n_prompt && e->n_done <= e->n_prompt && e->n_done >= a->n_done);
    CHECK(e->n_cached >= a->n_cached && e->n_cached <= e->n_done && e->n_cached < e->n_prompt);
    answer *g = &a->got[e->choice];
    CHECK(!g->ended);
    a->n_cached = e->n_cached;
    if (e->kind == HONE_EVENT_PROMPT) {
        CHECK(e->choice == 0 && g->n == 0 && e->n_done > a->n_done);
        a->n_prompt_events++;
        for (int i = 0; i < e->n_prompt_logprobs; i++) {
            CHECK(e->first_logprob == a->n_echoed - i && a->n_echoed < a->r.n_prompt);
            a->echo[a->n_echoed] = e->prompt_logprob[i];
            for (int k = 0; k < e->n_top; k++) a->echo_top[a->n_echoed][k] = e->top[i * e->n_top + k];
            a->n_echoed++;
        }
        CHECK(a->r.prompt_logprobs || !e->n_prompt_logprobs);
    }
    a->n_done = e->n_done;
    if (e->kind == HONE_EVENT_TOKEN) {
        CHECK(e->n_done == e->n_prompt && a->n_prompt_events > 0);
        CHECK(e->pos == a->r.n_prompt + g->n);
        CHECK(e->id >= 0 && e->id < ep.n_vocab);
        CHECK(e->n_top == (a->r.n_logprobs > 0 ? a->r.n_logprobs : 0));
        g->logprob[g->n] = e->logprob;
        for (int k = 0; k < e->n_top; k++) g->top[g->n][k] = e->top[k];
        g->id[g->n++] = e->id;
        ep.n_tokens++;
        if (a->cancel_at == -2 && g->n == 2) {
            a->cancelled = true;
            hone_scheduler_cancel(ep.s, a->id);
        }
        return !(a->stop_at && g->n >= a->stop_at);
    }
    if (e->kind == HONE_EVENT_END) {
        g->ended = true;
        g->end = e->end;
        g->why = e->error ? e->error->code : HONE_OK;
        if (e->error) snprintf(g->words, sizeof g->words, "%.199s", e->error->message);
        CHECK((e->end == HONE_END_ERROR) == (e->error != NULL));
        ep.n_failed += e->error != NULL;
    }
    return !chance(2); /* matters behind tokens only */
}

/* ---- alone ------------------------------------------------------------------------------------------- */

static void choice_alone(asked *a, int k, const float *first)
{
    answer *w = &a->want[k];
    const hone_request *r = &a->r;
    hone_error err = { 0 };
    hone_sampler *sampler;
    const float *logits = first;
    uint64_t allowed[(MOST_VOCAB + 63) / 64];
    must(hone_sampler_new(&sampler, ep.n_vocab, &r->sampling, &err), &err);
    for (int i = 0; i < r->n_prompt; i++) hone_sampler_accept(sampler, r->prompt[i]);
    w->end = HONE_END_LENGTH;
    while (r->max_tokens < 0 || w->n < r->max_tokens) {
        int32_t id, pos = hone_seq_length(ep.alone, 0);
        bool all = true;
        hone_pick p = { .bias = r->bias, .n_bias = r->n_bias, .choice = k, .pos = pos };
        if (a->mask_kind) {
            memset(allowed, 0, sizeof allowed);
            all = false;
            mask_of(a, k, w->id, w->n, allowed, &all);
            uint64_t any = 0;
            for (size_t i = 0; i < sizeof allowed / 8; i++) any |= allowed[i];
            if (!all && !any) {
                w->end = HONE_END_EOG;
                break;
            }
            if (!all) p.allowed = allowed;
        }
        must(hone_sampler_pick_from(sampler, logits, &p, &id, &err), &err);
        if (r->n_logprobs >= 0)
            must(hone_logprobs(logits, ep.n_vocab, id, &w->logprob[w->n], w->top[w->n], r->n_logprobs, &err), &err);
        w->id[w->n++] = id;
        if (!r->ignore_eog && hone_token_is_eog(ep.m, id)) {
            w->end = HONE_END_EOG;
            break;
        }
        hone_sampler_accept(sampler, id);
        if (a->stop_at && w->n >= a->stop_at) {
            w->end = HONE_END_STOPPED;
            break;
        }
        if (w->n == r->max_tokens) break;
        if (pos >= ep.n_ctx) {
            w->end = HONE_END_CONTEXT;
            break;
        }
        must(hone_append(ep.alone, 0, &id, 1, &logits, &err), &err);
    }
    hone_sampler_free(sampler);
}

/* The answers of a request, each with a sequence that ran the prompt anew. */
static void answer_alone(asked *a)
{
    static float all[MOST_CTX * MOST_VOCAB];
    const hone_request *r = &a->r;
    hone_error err = { 0 };
    a->computed = true;
    hone_session_free(ep.alone);
    hone_session_params sp = { .n_ctx = ep.n_ctx, .n_chunk = 64 };
    must(hone_session_new(&ep.alone, ep.c_alone, ep.m, &sp, &err), &err);
    must(hone_session_set_adapters(ep.alone, r->adapters, r->scales, r->n_adapters, &err), &err);
    for (int k = 0; k < (r->n_choices ? r->n_choices : 1); k++) {
        must(hone_seq_truncate(ep.alone, 0, 0, &err), &err);
        const float *logits;
        must(hone_append(ep.alone, 0, r->prompt, r->n_prompt, &logits, &err), &err);
        memcpy(all, logits, (size_t)ep.n_vocab * sizeof *all);
        choice_alone(a, k, all);
    }
    if (!r->prompt_logprobs) return;
    must(hone_seq_truncate(ep.alone, 0, 0, &err), &err);
    tm_run(ep.alone, 0, r->prompt, r->n_prompt, all);
    for (int i = 1; i < r->n_prompt; i++)
        must(hone_logprobs(all + (size_t)(i - 1) * (size_t)ep.n_vocab, ep.n_vocab, r->prompt[i], &a->want_echo[i],
                           a->want_echo_top[i], r->n_logprobs > 0 ? r->n_logprobs : 0, &err),
             &err);
}

static bool same_tops(const hone_logprob *a, const hone_logprob *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i].id != b[i].id || memcmp(&a[i].logprob, &b[i].logprob, sizeof(float))) return false;
    return true;
}

static bool shares(const asked *a, const asked *b)
{
    if (a->r.no_share || b->r.no_share || a->r.scope != b->r.scope || a->r.n_adapters != b->r.n_adapters) return false;
    for (int i = 0; i < a->r.n_adapters; i++)
        if (a->adapters[i] != b->adapters[i] || a->scales[i] != b->scales[i]) return false;
    return true;
}

/* What was found of a prompt others had computed, who may share with it. */
static void check_found(const asked *a)
{
    int most = 0;
    for (int i = 0; i < ep.n_asked; i++) {
        const asked *b = &ep.a[i];
        if (b == a || !shares(a, b)) continue;
        for (int k = 0; k < (b->r.n_choices ? b->r.n_choices : 1); k++) {
            int n = 0;
            while (n < a->r.n_prompt && n < b->r.n_prompt + b->got[k].n &&
                   a->prompt[n] == (n < b->r.n_prompt ? b->prompt[n] : b->got[k].id[n - b->r.n_prompt]))
                n++;
            most = n > most ? n : most;
        }
    }
    CHECK(a->n_cached <= most);
}

/* What was heard is what is had alone, or the beginning of it where the request was ended. */
static void compare(asked *a)
{
    const hone_request *r = &a->r;
    int n_top = r->n_logprobs > 0 ? r->n_logprobs : 0;
    if (a->poisoned) {
        for (int k = 0; k < (r->n_choices ? r->n_choices : 1); k++) {
            answer *g = &a->got[k];
            bool ended_so = g->end == HONE_END_CANCELLED || g->end == HONE_END_DEADLINE;
            CHECK(g->ended && g->n == 0);
            CHECK(ended_so || (g->end == HONE_END_ERROR && g->why == HONE_E_NUMERIC) || r->max_tokens == 0);
            did.poisoned += g->end == HONE_END_ERROR;
        }
        return;
    }
    answer_alone(a);
    for (int k = 0; k < (r->n_choices ? r->n_choices : 1); k++) {
        answer *g = &a->got[k], *w = &a->want[k];
        CHECK(g->ended);
        CHECK(g->n <= w->n);
        for (int i = 0; i < g->n; i++) {
            CHECK(g->id[i] == w->id[i]);
            if (r->n_logprobs < 0) continue;
            CHECK(!memcmp(&g->logprob[i], &w->logprob[i], sizeof(float)));
            CHECK(same_tops(g->top[i], w->top[i], n_top));
        }
        did.answers++;
        if (g->end == HONE_END_CANCELLED || g->end == HONE_END_DEADLINE) {
            CHECK(g->end == HONE_END_CANCELLED ? a->cancelled : a->late);
            if (g->end == HONE_END_CANCELLED) did.cancelled++;
            else did.late++;
            continue;
        }
        if (g->end == HONE_END_ERROR) wrong(g->words);
        CHECK(g->end == w->end);
        CHECK(g->n == w->n);
        CHECK(a->n_done == r->n_prompt);
        did.eog += g->n && hone_token_is_eog(ep.m, g->id[g->n - 1]) && g->end == HONE_END_EOG;
        if (r->prompt_logprobs) CHECK(a->n_echoed == r->n_prompt);
    }
    for (int i = 0; i < a->n_echoed; i++) {
        if (i == 0) {
            CHECK(isnan(a->echo[0]));
            continue;
        }
        CHECK(!memcmp(&a->echo[i], &a->want_echo[i], sizeof(float)));
        CHECK(same_tops(a->echo_top[i], a->want_echo_top[i], n_top));
        did.echoed++;
    }
}

/* ---- after each step --------------------------------------------------------------------------------- */

static asked *by_id(uint64_t id)
{
    for (int i = 0; i < ep.n_asked; i++)
        if (ep.a[i].id == id) return &ep.a[i];
    return NULL;
}

static void check_counts(void)
{
    hone_scheduler_stats n;
    int32_t running = 0;
    uint64_t ended = 0, in = 0;
    hone_scheduler_get_stats(ep.s, &n);
    for (int i = 0; i < n.n_slots; i++) {
        hone_slot_info slot;
        CHECK(hone_scheduler_slot(ep.s, i, &slot));
        CHECK(slot.running == (slot.request != 0) && slot.n_past <= ep.n_ctx);
        running += slot.running;
        if (!slot.running) continue;
        asked *a = by_id(slot.request);
        CHECK(a && !a->got[slot.choice].ended);
        for (int k = 0; k < i; k++) {
            hone_slot_info other;
            hone_scheduler_slot(ep.s, k, &other);
            CHECK(other.request != slot.request || other.choice != slot.choice);
        }
    }
    CHECK(n.n_slots == ep.n_slot && running == n.n_running && n.n_running <= n.n_slots);
    CHECK(n.n_running + n.n_paused <= n.n_slots);
    CHECK(n.cache_used <= n.cache_total);
    CHECK(n.n_rows == n.n_prompt_tokens - n.n_cached_tokens + n.n_answer_rows + n.n_again_rows);
    CHECK(n.n_generated_tokens == ep.n_tokens && n.n_rejected == ep.n_rejected);
    for (int i = 0; i < ep.n_asked; i++) {
        const asked *a = &ep.a[i];
        if (!a->id) continue;
        bool all = true;
        for (int k = 0; k < (a->r.n_choices ? a->r.n_choices : 1); k++) all = all && a->got[k].ended;
        ended += all;
        in++;
    }
    CHECK(n.n_requests == in && n.n_ended == ended && n.n_cancelled <= n.n_ended);
    CHECK(n.n_waiting + ep.s->n_active + (int)ended == (int)in);
}

/* The unit that started first: every step brings it on. It has a slot, unless those before it have just ended. */
typedef struct oldest {
    uint64_t id;
    int32_t choice, held, picked;
} oldest;

static oldest find_oldest(void)
{
    for (int32_t i = 0; i < ep.s->n_active; i++)
        for (int32_t k = 0; k < hn_scheduler_units(ep.s->active[i]); k++) {
            const hn_choice *c = &ep.s->active[i]->choice[k];
            if (c->ended) continue;
            return (oldest){ ep.s->active[i]->id, c->k, c->slot < 0 ? -1 : hn_scheduler_held(ep.s, c), c->n_picked };
        }
    return (oldest){ 0 };
}

/* Requests that started in this step: of each client in order of arrival, and while one waits as the first of its
 * client, another client starts no more than one. */
static void check_turns(void)
{
    uint64_t started[N_CLIENT] = { 0 };
    for (int32_t i = 0; i < ep.s->n_active; i++) {
        asked *a = by_id(ep.s->active[i]->id);
        if (a->started) continue;
        a->started = true;
        started[a->r.client]++;
        for (int k = 0; k < ep.n_asked; k++) {
            const asked *o = &ep.a[k];
            if (o->id && o->id < a->id && o->r.client == a->r.client) CHECK(o->started || o->got[0].ended);
        }
    }
    for (uint64_t client = 0; client < N_CLIENT; client++) {
        uint64_t head = 0;
        for (int32_t i = ep.s->n_queue - 1; i >= 0; i--)
            if (ep.s->queue[i]->r.client == client) head = ep.s->queue[i]->id;
        if (head != ep.head[client]) memset(ep.passed[client], 0, sizeof ep.passed[client]);
        for (uint64_t other = 0; other < N_CLIENT && head && head == ep.head[client]; other++)
            CHECK((ep.passed[client][other] += started[other]) <= 1);
        ep.head[client] = head;
    }
}

/* ---- a schedule -------------------------------------------------------------------------------------- */

static void draw_prompt(asked *a)
{
    int t = (int)draw(N_TEXT), most = ep.crowded ? 40 : ep.n_ctx - 1;
    int n = chance(8) ? 1 : 1 + (int)draw((uint32_t)(chance(3) ? most : most < 90 ? most : 90));
    int own = chance(3) ? 0 : (int)draw(6);
    memcpy(a->prompt, ep.text[t], (size_t)n * sizeof *a->prompt);
    for (int i = n - own < 0 ? 0 : n - own; i < n; i++)
        a->prompt[i] = (int32_t)draw((uint32_t)(ep.n_vocab - ep.poison));
    a->poisoned = ep.poison && chance(6);
    if (a->poisoned) a->prompt[draw((uint32_t)n)] = ep.n_vocab - 1;
    a->r.prompt = a->prompt;
    a->r.n_prompt = n;
    a->r.mark = chance(2) ? (int32_t)draw((uint32_t)n + 1) : 0;
}

static void draw_request(asked *a)
{
    memset(a, 0, sizeof *a);
    draw_prompt(a);
    hone_request *r = &a->r;
    hone_sampler_defaults(&r->sampling);
    r->sampling.temp = chance(3) ? 0 : 0.5f + 0.25f * (float)draw(5);
    r->sampling.top_k = chance(2) ? 40 : (int32_t)draw(8);
    r->sampling.repeat_penalty = chance(3) ? 1.3f : 1;
    r->sampling.presence_penalty = chance(4) ? 0.5f : 0;
    r->sampling.seed = draw(1000);
    int most_choices = ep.n_slot < MOST_CHOICE ? ep.n_slot : MOST_CHOICE;
    r->n_choices = chance(3) ? (int32_t)draw((uint32_t)most_choices + 1) : 1;
    r->max_tokens = chance(10) ? 0 : chance(6) ? 1 : chance(8) ? -1 : (int32_t)draw(24);
    if (r->max_tokens < 0 && r->n_prompt < ep.n_ctx - 60 && !chance(4)) r->max_tokens = 30;
    r->ignore_eog = ep.crowded || chance(3);
    if (ep.crowded) r->max_tokens = 80 + (int32_t)draw(80); /* more than was promised when it was let in */
    for (size_t i = 0; i < 2 && chance(2); i++)
        a->bias[r->n_bias++] = (hone_bias){ (int32_t)draw((uint32_t)ep.n_vocab), chance(4) ? -INFINITY : 2 };
    if (ep.poison) a->bias[r->n_bias++] = (hone_bias){ ep.n_vocab - 1, -INFINITY };
    r->bias = a->bias;
    r->n_logprobs = chance(2) ? -1 : (int32_t)draw(MOST_TOP + 1);
    r->prompt_logprobs = chance(6);
    r->no_share = chance(8);
    r->scope = chance(5) ? 1 + draw(2) : 0;
    r->client = draw(N_CLIENT);
    if (chance(3)) r->slot_plus_1 = (int32_t)draw((uint32_t)ep.n_slot + 2); /* also one that is not there */
    a->stop_at = chance(5) ? 1 + (int)draw(10) : 0;
    a->mask_kind = chance(3) ? 1 + (int)draw(3) : 0;
    if (a->mask_kind) {
        r->mask = on_mask;
        did.masked++;
        r->n_bias = ep.poison ? 1 : 0; /* a bias could forbid all that a mask allows */
        a->bias[0] = (hone_bias){ ep.n_vocab - 1, -INFINITY };
    }
    for (int i = 0; i < 2 && ep.adapter[0] && chance(2); i++) {
        a->adapters[r->n_adapters] = ep.adapter[draw(2)];
        a->scales[r->n_adapters++] = chance(2) ? 1 : 0.5f;
    }
    r->adapters = a->adapters;
    r->scales = a->scales;
    did.adapted += r->n_adapters > 0;
    r->event = on_event;
    r->arg = a;
    a->at = (int)draw(30);
    a->cancel_at = chance(5) ? (chance(3) ? -2 : a->at + (int)draw(20)) : -1;
}

static void submit(asked *a)
{
    hone_error err = { 0 };
    if (chance(10)) a->r.deadline_ns = now(NULL) + draw(40) * (ep.step_ns + 20 * ep.row_ns) + 1;
    hone_status st = hone_scheduler_submit(ep.s, &a->r, &a->id, &err);
    if (st == HONE_E_BUSY) { /* comes again */
        CHECK(!a->id);
        a->at = ep.n_step + 1 + (int)draw(5);
        ep.n_rejected++, did.rejected++;
        return;
    }
    must(st, &err);
    did.requests++;
}

/* A client that takes nothing for a while: its request stands still, and is answered all the same. */
static bool hold_some(asked *a)
{
    if (a->held_until && a->held_until <= ep.n_step) {
        hone_scheduler_hold(ep.s, a->id, false);
        a->held_until = 0;
    } else if (!a->held_until && chance(60) && hone_scheduler_hold(ep.s, a->id, true)) {
        a->held_until = ep.n_step + 1 + (int)draw(12);
        did.held++;
    }
    return a->held_until > 0;
}

/* None of them gives a row. */
static int rows_of_held(void)
{
    int n = 0;
    for (int32_t i = 0; i < ep.s->n_active; i++)
        for (int32_t k = 0; k < hn_scheduler_units(ep.s->active[i]); k++) {
            const hn_choice *c = &ep.s->active[i]->choice[k];
            if (ep.s->active[i]->held && !c->ended) n += c->n_picked;
        }
    return n;
}

static bool step_once(void)
{
    hone_error err = { 0 };
    bool worked, pending = false, held = false;
    for (int i = 0; i < ep.n_asked; i++) {
        asked *a = &ep.a[i];
        if (!a->id && a->at <= ep.n_step) submit(a);
        if (a->id && a->cancel_at >= 0 && a->cancel_at <= ep.n_step && !a->cancelled)
            a->cancelled = hone_scheduler_cancel(ep.s, a->id);
        if (a->r.deadline_ns && now(NULL) >= a->r.deadline_ns) a->late = true;
        if (a->id && hold_some(a)) held = true;
        pending = pending || !a->id;
    }
    oldest before = find_oldest();
    int of_held = rows_of_held(), n_active = ep.s->n_active;
    uint64_t n_failed = ep.n_failed;
    must(hone_scheduler_step(ep.s, &worked, &err), &err);
    ep.n_step++;
    did.steps++;
    oldest after = find_oldest();
    if (n_active == ep.s->n_active) CHECK(rows_of_held() <= of_held); /* fewer, where one of them ended */
    if (!held && before.id && before.id == after.id && before.choice == after.choice && n_failed == ep.n_failed)
        CHECK(/* a batch that fails may cost states */ after.held > before.held || after.picked > before.picked);
    check_counts();
    check_turns();
    if (!worked) ep.idle_ns += 1000000;
    return worked || pending || held;
}

static void open_scheduler(void)
{
    hone_error err = { 0 };
    ep.crowded = chance(6);
    ep.n_slot = ep.crowded ? 5 : 1 + (int)draw(5);
    ep.n_chunk = chance(3) ? 1 + (int)draw(5) : 8 + (int)draw(60);
    ep.n_ctx = ep.crowded ? 200 : 66 + (int)draw(chance(3) ? MOST_CTX - 66 : 70);
    ep.row_ns = 1 + draw(20000000);
    ep.step_ns = 1 + draw(60000000);
    hone_scheduler_params p = {
        .session = { .n_ctx = ep.n_ctx, .n_seq = ep.n_slot, .n_chunk = ep.n_chunk },
        .max_queue = 1 + (int)draw(8),
        .now = now,
        .fixed_prefill = chance(2) ? 0 : 1 + (int)draw(20),
    };
    must(hone_scheduler_new(&ep.s, ep.c, ep.m, &p, &err), &err);
    if (!ep.crowded && chance(3)) return;
    /* little memory: the longest alone, one page more of each group, what a window leaves behind in a step */
    const hn_seq_memory *mem = ep.s->ses->mem;
    uint64_t page = 0, least = hn_memory_bytes_at(mem, ep.n_ctx) + 2 * mem->states.bytes;
    for (int i = 0; i < mem->n_group; i++) page += mem->group[i].pool.bytes;
    least += 3 * page;
    p.session.cache_budget = least + (ep.crowded ? 0 : draw(4)) * page;
    hone_scheduler_free(ep.s);
    ep.s = NULL;
    must(hone_scheduler_new(&ep.s, ep.c, ep.m, &p, &err), &err);
}

static void draw_texts(void)
{
    int n = ep.n_vocab - ep.poison;
    for (int t = 0; t < N_TEXT; t++) {
        int same = t ? (int)draw(200) : 0;
        for (int i = 0; i < MOST_CTX; i++) ep.text[t][i] = i < same ? ep.text[0][i] : (int32_t)draw((uint32_t)n);
    }
}

static void schedule(void)
{
    hone_scheduler_stats n;
    open_scheduler();
    draw_texts();
    ep.n_asked = ep.crowded ? 5 : 2 + (int)draw(MOST_REQUEST - 1);
    for (int i = 0; i < ep.n_asked; i++) draw_request(&ep.a[i]);
    long most =
        1000; /* steps: the oldest comes on in each, so that all of them alone are the bound; and what is held */
    for (int i = 0; i < ep.n_asked; i++) most += (2 * ep.n_ctx + 10) * (long)MOST_CHOICE;
    while (step_once()) CHECK(ep.n_step < most);
    hone_scheduler_get_stats(ep.s, &n);
    CHECK(n.n_running == 0 && n.n_waiting == 0 && n.n_paused == 0);
    for (int i = 0; i < ep.n_asked; i++) check_found(&ep.a[i]), compare(&ep.a[i]);
    did.preempted += (long)n.n_preempted;
    did.cached += (long)n.n_cached_tokens;
    did.tokens += (long)n.n_generated_tokens;
    did.rows += (long)n.n_rows;
    did.schedules++;
    hone_scheduler_free(ep.s);
    hone_session_free(ep.alone);
    ep.s = NULL, ep.alone = NULL;
}

/* ---- models ------------------------------------------------------------------------------------------ */

/* Another each time: those that are open stay as they are. */
static const char *new_path(void)
{
    static int k;
    char name[32];
    snprintf(name, sizeof name, "scheduler%d.gguf", k++);
    return tm_path(name);
}

static hone_model *open_raw(tiny *t, bool poison, bool eos)
{
    hone_error err = { 0 };
    hone_model *m;
    const char *path = new_path();
    if (eos) { /* a vocabulary in which a token ends generation */
        tm_put_str(t, "tokenizer.ggml.model", "llama");
        bb *b = tm_put(t, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
        bb_u32(b, HONE_KV_STRING), bb_u64(b, (uint64_t)t->s.V);
        for (int i = 0; i < t->s.V; i++) bb_str(b, (char[]){ (char)('a' + i), 0 });
        b = tm_put(t, "tokenizer.ggml.scores", HONE_KV_ARRAY);
        bb_u32(b, HONE_KV_F32), bb_u64(b, (uint64_t)t->s.V);
        for (int i = 0; i < t->s.V; i++) bb_u32(b, 0);
        b = tm_put(t, "tokenizer.ggml.token_type", HONE_KV_ARRAY);
        bb_u32(b, HONE_KV_I32), bb_u64(b, (uint64_t)t->s.V);
        for (int i = 0; i < t->s.V; i++) bb_u32(b, 1);
        tm_put_u32(t, "tokenizer.ggml.eos_token_id", EOS);
    }
    if (poison) { /* the last id has no numbers */
        tm_tensor *e = tm_find(t, "token_embd.weight");
        for (uint64_t i = tm_elems(e) - e->ne[0]; i < tm_elems(e); i++) e->f[i] = NAN;
        tm_encode(e, HN_F32);
    }
    tm_save_raw(t, path);
    tm_free(t);
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_token_is_eog(m, EOS), eos);
    return m;
}

/* An adapter of some of a llama's matrices. */
static hone_adapter *open_adapter(const hone_model *m, const char *matrix, uint64_t n_in, uint64_t n_out)
{
    hone_error err = { 0 };
    hone_adapter *out;
    tiny *a = calloc(1, sizeof *a);
    char name[64];
    const char *path = new_path();
    assert_non_null(a);
    a->s.arch = "llama";
    tm_put_str(a, "general.architecture", "llama");
    tm_put_str(a, "general.type", "adapter");
    tm_put_str(a, "adapter.type", "lora");
    tm_put_f32(a, "adapter.lora.alpha", 3);
    for (int il = 0; il < 2; il++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight.lora_a", il, matrix);
        tm_add(a, name, 2, n_in, 2);
        snprintf(name, sizeof name, "blk.%d.%s.weight.lora_b", il, matrix);
        tm_add(a, name, 2, 2, n_out);
    }
    tm_save_raw(a, path);
    tm_free(a);
    if (hone_adapter_open(&out, m, path, &err)) fail_msg("%s", err.message);
    return out;
}

static hone_model *open_llama(bool poison) { return open_raw(tm_new(tm_llama), poison, true); }
static hone_model *open_gemma3(bool poison)
{
    tm_shape s = tm_gemma3;
    s.window = 70;
    s.tied = false;
    return open_raw(tm_new(s), poison, false);
}
static hone_model *open_rwkv7(bool poison) { return open_raw(rw_new(&rw_vec7), poison, false); }
static hone_model *open_vector(const char *file)
{
    hone_error err = { 0 };
    hone_model *m;
    const char *path = new_path();
    vector v = load(file);
    save_as(&v, path, NULL, AS_IS);
    json_decref(v.j);
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &err)) fail_msg("%s", err.message);
    return m;
}
static hone_model *open_qwen35(bool poison) { return open_vector("qwen35.json"); }
static hone_model *open_dsv3(bool poison) { return open_vector("dsv3.json"); }

static const struct family {
    const char *name;
    hone_model *(*open)(bool poison);
    bool can_poison;
} families[] = {
    { "llama", open_llama, true },    /* all positions; a token that ends */
    { "gemma3", open_gemma3, true },  /* windows */
    { "rwkv7", open_rwkv7, true },    /* states alone */
    { "qwen35", open_qwen35, false }, /* states beside positions */
    { "dsv3", open_dsv3, false },     /* latent rows, experts */
};
enum { N_FAMILY = sizeof families / sizeof *families };

static void every_answer_is_as_alone(void **state)
{
    const char *only = getenv("HONE_TEST_FAMILY");
    long seed = number("HONE_SCHEDULES_SEED", 1), count = number("HONE_SCHEDULES_COUNT", SCHEDULES);
    hone_context *one = tm_context(NULL, 1), *two = tm_context(NULL, 2), *alone = tm_context("scalar", 1);
    hone_model *m[N_FAMILY][2] = { { NULL } };
    hone_adapter *adapter[2][2] = { { NULL } };
    for (long i = seed; i < seed + count; i++) {
        memset(&ep, 0, sizeof ep);
        const struct family *f = &families[i % N_FAMILY];
        if (only && !starts(f->name, only)) continue;
        key = hn_mix64((uint64_t)i), drawn = 0;
        ep.name = f->name, ep.seed = i;
        ep.poison = f->can_poison && chance(3);
        hone_model **which = &m[i % N_FAMILY][ep.poison];
        if (!*which) *which = f->open(ep.poison);
        ep.m = *which;
        if (i % N_FAMILY == 0) { /* llama */
            hone_adapter **a = adapter[ep.poison];
            if (!a[0]) a[0] = open_adapter(ep.m, "attn_q", 32, 32), a[1] = open_adapter(ep.m, "ffn_down", 48, 32);
            memcpy(ep.adapter, a, sizeof ep.adapter);
        }
        hone_model_info info;
        hone_model_get_info(ep.m, &info);
        ep.n_vocab = info.n_vocab;
        CHECK(ep.n_vocab <= MOST_VOCAB);
        ep.c = chance(4) ? two : one;
        ep.c_alone = alone;
        schedule();
    }
    for (int i = 0; i < 4; i++) hone_adapter_close(adapter[i / 2][i % 2]);
    for (int i = 0; i < N_FAMILY; i++) hone_model_close(m[i][0]), hone_model_close(m[i][1]);
    hone_context_free(one), hone_context_free(two), hone_context_free(alone);
    print_message("%ld schedules, %ld requests, %ld answers compared, %ld tokens, %ld rows in %ld steps; %ld pauses, "
                  "%ld cancelled, %ld late, %ld poisoned, %ld tokens found, %ld echoed, %ld masked, %ld refused, %ld "
                  "ended by a token, %ld with adapters\n",
                  did.schedules, did.requests, did.answers, did.tokens, did.rows, did.steps, did.preempted,
                  did.cancelled, did.late, did.poisoned, did.cached, did.echoed, did.masked, did.rejected, did.eog,
                  did.adapted);
    if (count >= 60 && !only) /* else what was to be tried was not */
        assert_true(did.preempted && did.cancelled && did.late && did.poisoned && did.cached && did.echoed && did.eog &&
                    did.adapted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_as_alone),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
