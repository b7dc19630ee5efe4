/* The desk's part of a job: requests for the scheduler, and what comes of them in the order it is said. Runs on the
 * desk's thread alone; what it says goes to the event thread in parcels, one for each round of steps. */
#include "serve/job.h"

#include <math.h>
#include <stdlib.h>

/* ---- parcels ---------------------------------------------------------------------------------------------------- */

static void mark_dirty(hn_job *j)
{
    if (j->dirty) return;
    j->dirty = true;
    j->next_dirty = j->server->dirty;
    j->server->dirty = j;
}

/* Nothing more can be said of this request but that it failed. */
static void fail(hn_job *j, const hn_refusal *r)
{
    mark_dirty(j);
    if (j->failed) return;
    j->failed = true;
    j->failure = *r;
    hn_book_hide_folders(j->book, j->failure.message);
    for (size_t i = 0; i < j->n_run; i++)
        if (j->run[i].request) hone_scheduler_cancel(j->book->desk.scheduler, j->run[i].request);
}

static void fail_memory(hn_job *j)
{
    hn_refusal r;
    hn_refuse(&r, 500, "out_of_memory", NULL, "no memory for the answer");
    fail(j, &r);
}

static hn_parcel *parcel_of(hn_job *j)
{
    mark_dirty(j);
    if (j->parcel) return j->parcel;
    hn_parcel *b = calloc(1, sizeof *b);
    if (b && !(b->arena = hn_arena_new())) {
        free(b);
        b = NULL;
    }
    if (b) b->job = j;
    else fail_memory(j);
    return j->parcel = b;
}

void hn_parcel_clear(hn_parcel *b)
{
    hn_arena_free(b->arena);
    free(b->say);
    b->arena = NULL;
    b->say = NULL;
    b->n = b->cap = 0;
}

static bool copy_token(hn_arena *a, hn_said_token *t)
{
    hn_said_top *top = NULL;
    if (t->n_top && !(top = hn_arena_alloc(a, (size_t)t->n_top * sizeof *top))) return false;
    if (t->n_top) memcpy(top, t->top, (size_t)t->n_top * sizeof *top); /* texts are the model's own */
    t->top = top;
    return true;
}

bool hn_parcel_say(hn_parcel *b, const hn_say *say)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 8;
        hn_say *more = realloc(b->say, cap * sizeof *more);
        if (!more) return false;
        b->say = more;
        b->cap = cap;
    }

    hn_say s = *say;
    if (s.text && !(s.text = hn_arena_strndup(b->arena, s.text, s.len))) return false;
    if (s.call_id && !(s.call_id = hn_arena_strndup(b->arena, s.call_id, strlen(s.call_id)))) return false;
    if (s.name && !(s.name = hn_arena_strndup(b->arena, s.name, strlen(s.name)))) return false;
    if (s.n_token) {
        hn_said_token *t = hn_arena_alloc(b->arena, s.n_token * sizeof *t);
        if (!t) return false;
        memcpy(t, s.token, s.n_token * sizeof *t);
        for (size_t i = 0; i < s.n_token; i++)
            if (!copy_token(b->arena, &t[i])) return false;
        s.token = t;
    }
    if (s.n_ids) {
        int32_t *ids = hn_arena_alloc(b->arena, s.n_ids * sizeof *ids);
        if (!ids) return false;
        memcpy(ids, s.ids, s.n_ids * sizeof *ids);
        s.ids = ids;
    }
    if (s.usage) {
        hn_usage *u = hn_arena_alloc(b->arena, sizeof *u);
        if (!u) return false;
        *u = *s.usage;
        s.usage = u;
    }
    b->say[b->n++] = s;
    return true;
}

static double ms_between(uint64_t from, uint64_t to) { return to > from && from ? (double)(to - from) * 1e-6 : 0; }

/* Of one choice (s), or of the whole job. */
static hn_usage usage_of(const hn_job *j, const hn_strand *s)
{
    hn_usage u = { .completion = s ? s->n_token : j->n_completion,
                   .reasoning = s ? s->n_reasoning : j->n_reasoning,
                   .timed = s ? s->n_token - s->n_first : j->n_completion - j->n_first,
                   .queue_ms = ms_between(j->t_begin, j->t_prompt),
                   .ttft_ms = ms_between(j->t_begin, j->t_first),
                   .prompt_ms = ms_between(j->t_prompt, j->t_first ? j->t_first : j->t_last),
                   .predicted_ms = ms_between(j->t_first, j->t_last),
                   .load_ms = j->load_ms,
                   .total_ms = ms_between(j->t_begin, hn_serve_ns()),
                   .seed = j->ask.sampling.seed };
    for (size_t i = 0; i < j->n_run; i++) {
        if (s && s->run != &j->run[i]) continue;
        u.prompt += (int32_t)j->run[i].n;
        u.cached += j->run[i].n_cached;
    }
    return u;
}

static void say(hn_strand *s, hn_say what)
{
    hn_parcel *b = parcel_of(s->run->job);
    what.prompt = s->run->index;
    what.choice = s->choice;
    what.slot = s->slot;
    if (b && !hn_parcel_say(b, &what)) fail_memory(s->run->job);
}

/* ---- tokens whose text is held back ----------------------------------------------------------------------------- */

static hn_said_token said_token(const hn_job *j, int32_t id, float logprob)
{
    size_t n = 0;
    const char *piece = hone_token_piece(j->book->model, id, true, &n);
    return (hn_said_token){ .id = id, .text = piece ? piece : "", .len = piece ? n : 0, .logprob = logprob };
}

/* Alternatives with their texts; malloc'ed, freed with the token. */
static bool add_tops(const hn_job *j, hn_said_token *t, const hone_logprob *top, int32_t n)
{
    if (n <= 0) return true;
    hn_said_top *to = malloc((size_t)n * sizeof *to);
    if (!to) return false;
    for (int32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = hone_token_piece(j->book->model, top[i].id, true, &len);
        to[i] = (hn_said_top){
            .id = top[i].id, .text = piece ? piece : "", .len = piece ? len : 0, .logprob = top[i].logprob
        };
    }
    t->top = to;
    t->n_top = n;
    return true;
}

static bool wants_tokens(const hn_job *j) { return j->ask.top_logprobs >= 0 || j->ask.return_tokens; }

static void hold_token(hn_strand *s, const hone_event *e)
{
    hn_job *j = s->run->job;
    if (s->n_held == s->cap_held) {
        size_t cap = s->cap_held ? 2 * s->cap_held : 8;
        hn_said_token *more = realloc(s->held, cap * sizeof *more);
        if (!more) {
            fail_memory(j);
            return;
        }
        s->held = more;
        s->cap_held = cap;
    }
    hn_said_token t = said_token(j, e->id, e->logprob);
    if (add_tops(j, &t, e->top, e->n_top)) s->held[s->n_held++] = t;
    else fail_memory(j);
}

/* The first n of them. */
static void drop_held(hn_strand *s, size_t n)
{
    for (size_t i = 0; i < n; i++) free((void *)s->held[i].top);
    s->n_held -= n;
    s->n_dropped += (int32_t)n;
    if (s->n_held) memmove(s->held, s->held + n, s->n_held * sizeof *s->held);
}

/* Those before this number, of an answer's tokens from 0. */
static void drop_before(hn_strand *s, int32_t number)
{
    size_t n = number > s->n_dropped ? (size_t)(number - s->n_dropped) : 0;
    drop_held(s, n < s->n_held ? n : s->n_held);
}

/* Text of the answer, with the first n of the tokens that are held. */
static void say_some(hn_strand *s, const char *text, size_t len, size_t n)
{
    hn_usage now;
    const hn_ask *a = &s->run->job->ask;
    hn_say what = { .kind = HN_SAY_TEXT, .text = text, .len = len, .token = s->held, .n_token = n };
    if (!len) return;
    if (a->timings_per_token || (a->stream && a->return_tokens)) { /* or counts so far */
        now = usage_of(s->run->job, s);
        what.usage = &now;
    }
    say(s, what);
}

/* … with all of them. */
static void say_text(hn_strand *s, const char *text, size_t len)
{
    say_some(s, text, len, s->n_held);
    if (len) drop_held(s, s->n_held);
}

/* … with those that it came from: of others, marks and blanks in front of it, nothing is told. */
static void say_part(hn_strand *s, const hone_reply_part *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_tokens; i++) {
        size_t at = (size_t)(p->tokens[i] - s->n_dropped);
        if (p->tokens[i] < s->n_dropped || at >= s->n_held) continue;
        hn_said_token t = s->held[n];
        s->held[n++] = s->held[at];
        s->held[at] = t;
    }
    say_some(s, p->text, p->len, n);
    if (p->n_tokens) drop_before(s, p->tokens[p->n_tokens - 1] + 1);
}

/* The prompt, before the answer to it. */
static void say_echo(hn_strand *s)
{
    hn_run *run = s->run;
    hn_job *j = run->job;
    if (s->echoed || !j->ask.echo) return;
    s->echoed = true;

    char *text = NULL;
    size_t len = run->len;
    if (!run->text && hone_detokenize(j->book->model, run->ids, run->n, true, &text, &len, NULL) != HONE_OK) {
        fail_memory(j);
        return;
    }
    hn_said_token *t = j->ask.prompt_logprobs ? calloc(run->n, sizeof *t) : NULL;
    if (j->ask.prompt_logprobs && !t) fail_memory(j);
    for (size_t i = 0; t && i < run->n; i++) {
        t[i] = said_token(j, run->ids[i], run->logprob ? run->logprob[i] : NAN);
        if (run->top && !add_tops(j, &t[i], run->top + i * (size_t)j->ask.top_logprobs, run->n_top[i])) fail_memory(j);
    }
    say(s, (hn_say){ .kind = HN_SAY_ECHO,
                     .text = run->text ? run->text : text,
                     .len = len,
                     .token = t,
                     .n_token = t ? run->n : 0 });
    for (size_t i = 0; t && i < run->n; i++) free((void *)t[i].top);
    free(t);
    hone_free(text);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* Parts of a conversation's answer. True: some of it was reasoning. */
static bool say_parts(hn_strand *s, const hone_reply_part *parts, size_t n)
{
    char name[HN_TOOL_NAME + 1];
    bool reasons = false;
    for (size_t i = 0; i < n; i++) {
        const hone_reply_part *p = &parts[i];
        hn_say what = { .text = p->text, .len = p->len, .call = p->call };
        switch (p->part) {
        case HONE_PART_TEXT:
        case HONE_PART_COMMENTARY:
        case HONE_PART_CALL: say_part(s, p); continue; /* a call that is nobody's is what was written */
        case HONE_PART_REASONING:
            what.kind = HN_SAY_REASONING;
            reasons = true;
            break;
        case HONE_PART_CALL_NAME:
            what.kind = HN_SAY_CALL;
            what.call_id = p->id;
            snprintf(name, sizeof name, "%.*s", (int)p->len, p->text); /* what a part has ends without NUL */
            what.name = name;
            what.text = NULL;
            s->called = true;
            break;
        case HONE_PART_ARGUMENTS: what.kind = HN_SAY_ARGUMENTS; break;
        case HONE_PART_CALL_END: what.kind = HN_SAY_CALL_END; break;
        }
        say(s, what);
    }
    return reasons;
}

static hone_status read_reply(hn_strand *s, int32_t id, bool *goes_on, hone_error *err)
{
    const hone_reply_part *parts;
    size_t n;
    hone_reply_end end;
    hone_status st = hone_reply_push(s->reply, id, &parts, &n, &end, err);
    if (st != HONE_OK) return st;
    bool reasons = say_parts(s, parts, n);
    drop_before(s, hone_reply_settled(s->reply)); /* probabilities are told of the answer's text alone */
    if (reasons) {
        s->n_reasoning++;
        s->run->job->n_reasoning++;
    }
    if (end == HONE_REPLY_GOES_ON) return HONE_OK;
    s->turned = end == HONE_REPLY_TURN && s->stream;
    if (s->turned) {
        drop_held(s, s->n_held);
        return HONE_OK;
    }
    *goes_on = false;
    s->why = HN_WHY_EOG;
    if (end == HONE_REPLY_STOP) {
        s->why = HN_WHY_WORD;
        s->stop_word = hone_reply_stop(s->reply);
    }
    return HONE_OK;
}

/* The last bytes of a text, so many that the longest stop string is among them. */
static bool keep_tail(hn_strand *s, int32_t id)
{
    const hn_job *j = s->run->job;
    size_t n = 0, longest = j->ask.longest_stop;
    const char *piece = hone_token_piece(j->book->model, id, false, &n);
    if (!j->ask.n_stops || !piece || !n) return true;
    if (s->n_tail > longest) {
        memmove(s->tail, s->tail + (s->n_tail - longest), longest);
        s->n_tail = longest;
    }
    if (s->n_tail + n > s->cap_tail) {
        size_t cap = 2 * (s->n_tail + n);
        char *more = realloc(s->tail, cap);
        if (!more) return false;
        s->tail = more;
        s->cap_tail = cap;
    }
    memcpy(s->tail + s->n_tail, piece, n);
    s->n_tail += n;
    return true;
}

/* Of the stop strings that the tail holds the one that ends first, and of several that end there the longest: the text
 * is cut in front of it. */
static const char *stop_in_tail(const hn_strand *s)
{
    const hn_ask *a = &s->run->job->ask;
    const char *found = NULL;
    for (size_t end = 1, longest = 0; end <= s->n_tail && !found; end++)
        for (size_t i = 0; i < a->n_stops; i++) {
            size_t k = strlen(a->stops[i]);
            if (k <= longest || k > end || memcmp(s->tail + end - k, a->stops[i], k) != 0) continue;
            found = a->stops[i];
            longest = k;
        }
    return found;
}

static hone_status read_text(hn_strand *s, int32_t id, bool *goes_on, hone_error *err)
{
    const char *text;
    size_t len;
    bool stopped;
    hone_status st = s->matcher ? hone_matcher_accept(s->matcher, &id, 1, err) : HONE_OK;
    if (st == HONE_OK) st = hone_stream_push(s->stream, id, &text, &len, &stopped, err);
    if (st != HONE_OK) return st;
    if (!keep_tail(s, id)) fail_memory(s->run->job);
    say_text(s, text, len);
    if (!stopped) return HONE_OK;
    *goes_on = false;
    s->why = HN_WHY_WORD;
    s->stop_word = stop_in_tail(s);
    return HONE_OK;
}

bool hn_strand_keep(hn_strand *s, int32_t id)
{
    size_t need = (s->n_kept ? s->n_kept : s->run->n) + 1;
    if (need > s->cap_kept) {
        int32_t *more = realloc(s->kept, 2 * need * sizeof *more);
        if (!more) return false;
        s->kept = more;
        s->cap_kept = 2 * need;
    }
    if (!s->n_kept) {
        memcpy(s->kept, s->run->ids, s->run->n * sizeof *s->kept);
        s->n_kept = s->run->n;
    }
    s->kept[s->n_kept++] = id;
    return true;
}

static void fail_error(hn_job *j, const hone_error *err)
{
    hn_refusal r;
    switch (err->code) {
    case HONE_E_NOMEM: hn_refuse(&r, 500, "out_of_memory", NULL, "no memory: %s", err->message); break;
    case HONE_E_UNSUPPORTED: hn_refuse(&r, 500, "grammar_error", NULL, "%s", err->message); break;
    default: hn_refuse(&r, 500, NULL, NULL, "%s", err->message); break;
    }
    fail(j, &r);
}

/* What fills a gap ends where the model begins with the marks of gaps again; nothing of it is said. */
static bool ends_gap(hn_strand *s, int32_t id)
{
    const hn_job *j = s->run->job;
    if (j->ask.kind != HN_ASK_INFILL || j->ask.ignore_eos) return false;
    for (hone_fim f = 0; f < HONE_N_FIM; f++)
        if (hone_token_fim(j->book->model, f) == id) {
            s->why = HN_WHY_EOG;
            return true;
        }
    return false;
}

/* One token of a choice; false: the choice ends with it. */
static bool take_token(hn_strand *s, const hone_event *e)
{
    hn_job *j = s->run->job;
    bool goes_on = true, eog = hone_token_is_eog(j->book->model, e->id);
    hone_error err;
    uint64_t now = hn_serve_ns();
    if (j->failed) return false;
    if (!j->t_first) {
        j->t_first = now;
        j->first_step = hn_desk_step_ns(j->server->desk);
        hn_tally_take(j->server->tally, HN_TIME_FIRST, ms_between(j->t_begin, now) * 1e-3);
    }
    if (s->t_last) hn_tally_take(j->server->tally, HN_TIME_BETWEEN, ms_between(s->t_last, now) * 1e-3);
    s->t_last = j->t_last = now; /* choices have their tokens in the same steps: gaps are each one's */
    if (hn_desk_step_ns(j->server->desk) == j->first_step) {
        s->n_first++;
        j->n_first++;
    }
    s->n_token++;
    j->n_completion++;
    hn_tally_add(j->server->tally, HN_COUNT_GENERATED, 1);
    if (j->ask.return_context && !hn_strand_keep(s, e->id)) fail_memory(j);
    say_echo(s);
    if (ends_gap(s, e->id)) return false;
    if (eog && !j->ask.ignore_eos && !s->reply) return true; /* the scheduler ends the choice, nothing is said */
    if (wants_tokens(j)) hold_token(s, e);
    hone_status st =
        s->reply && !s->turned ? read_reply(s, e->id, &goes_on, &err) : read_text(s, e->id, &goes_on, &err);
    if (st != HONE_OK) fail_error(j, &err);
    return goes_on && !j->failed;
}

/* What was held back, as the answer ends here. */
static void say_rest(hn_strand *s)
{
    const hone_reply_part *parts;
    const char *text;
    size_t n;
    hone_error err;
    hone_status st = HONE_OK;
    say_echo(s);
    if (s->why == HN_WHY_WORD) return;
    if (s->reply && (st = hone_reply_flush(s->reply, &parts, &n, &err)) == HONE_OK) {
        say_parts(s, parts, n);
        s->stop_word = hone_reply_stop(s->reply); /* it was all in what was held back */
        if (s->stop_word) s->why = HN_WHY_WORD;
    }
    if (s->stream && (st = hone_stream_flush(s->stream, &text, &n, &err)) == HONE_OK) say_text(s, text, n);
    if (st != HONE_OK) fail_error(s->run->job, &err);
    if (st != HONE_OK || s->reply || !s->n_held) return;
    /* tokens without text at the end, which are counted, too */
    say(s, (hn_say){ .kind = HN_SAY_TEXT, .text = "", .token = s->held, .n_token = s->n_held });
    drop_held(s, s->n_held);
}

static void refuse_deadline(hn_job *j)
{
    hn_refusal r;
    hn_job_late(j, &r);
    fail(j, &r);
}

static void refuse_cancelled(hn_job *j)
{
    hn_refusal r;
    if (atomic_load(&j->ended)) hn_job_ended(&r);
    else hn_refuse_draining(&r);
    fail(j, &r);
}

static void end_strand(hn_strand *s, const hone_event *e)
{
    hn_job *j = s->run->job;
    s->ended = true;
    j->n_open--;
    if (++s->run->n_ended == j->ask.n && s->run->seen)
        hn_tally_take(j->server->tally, HN_TIME_ANSWER, ms_between(s->run->t_seen, hn_serve_ns()) * 1e-3);
    switch (e->end) {
    case HONE_END_EOG: s->why = HN_WHY_EOG; break;
    case HONE_END_STOPPED: break; /* why is known */
    case HONE_END_LENGTH: s->why = HN_WHY_LENGTH; break;
    case HONE_END_CONTEXT: s->why = HN_WHY_CONTEXT; break;
    case HONE_END_DEADLINE: refuse_deadline(j); break;
    case HONE_END_CANCELLED: refuse_cancelled(j); break; /* where the client is gone nobody reads it */
    case HONE_END_ERROR: fail_error(j, e->error); break;
    }
    if (j->failed) return;
    say_rest(s);
    if (s->called && (s->why == HN_WHY_EOG)) s->why = HN_WHY_CALLS;
    hn_usage u = usage_of(j, s);
    char *prompt = NULL;
    size_t n_prompt = 0;
    bool came = s->n_kept > 0; /* a token */
    if (j->ask.return_prompt &&
        hone_detokenize(j->book->model, s->run->ids, s->run->n, true, &prompt, &n_prompt, NULL) != HONE_OK) {
        fail_memory(j);
        return;
    }
    say(s, (hn_say){ .kind = HN_SAY_END,
                     .text = prompt,
                     .len = n_prompt,
                     .why = s->why,
                     .stop_word = s->stop_word,
                     .ids = came ? s->kept : s->run->ids,
                     .n_ids = !j->ask.return_context ? 0
                              : came                 ? s->n_kept
                                                     : s->run->n,
                     .usage = &u,
                     .truncated = s->run->truncated });
    hone_free(prompt);
}

/* ---- the scheduler's callbacks ---------------------------------------------------------------------------------- */

static hn_strand *strand_of(hn_run *run, int32_t choice)
{
    return &run->job->strand[(size_t)run->index * (size_t)run->job->ask.n + (size_t)choice];
}

/* Probabilities of the prompt's tokens, as they come. */
static bool keep_logprobs(hn_run *run, const hone_event *e)
{
    int32_t most = run->job->ask.top_logprobs > 0 ? run->job->ask.top_logprobs : 0;
    if (!e->n_prompt_logprobs) return true;
    if (!run->logprob) {
        run->logprob = malloc(run->n * sizeof *run->logprob);
        for (size_t i = 0; run->logprob && i < run->n; i++) run->logprob[i] = NAN;
        if (most) {
            run->top = calloc(run->n * (size_t)most, sizeof *run->top);
            run->n_top = calloc(run->n, sizeof *run->n_top);
        }
    }
    if (!run->logprob || (most && (!run->top || !run->n_top))) return false;
    for (int32_t i = 0; i < e->n_prompt_logprobs; i++) {
        size_t at = (size_t)e->first_logprob + (size_t)i;
        if (at >= run->n) break;
        run->logprob[at] = e->prompt_logprob[i];
        int32_t n = e->n_top < most ? e->n_top : most;
        if (!n || isnan(e->prompt_logprob[i])) continue;
        memcpy(run->top + at * (size_t)most, e->top + (size_t)i * (size_t)e->n_top, (size_t)n * sizeof *run->top);
        run->n_top[at] = n;
    }
    return true;
}

static void say_progress(hn_run *run, const hone_event *e, int32_t done, double ms)
{
    hn_strand *s = strand_of(run, 0);
    hn_usage now = usage_of(run->job, s);
    now.prompt = done;
    now.cached = e->n_cached;
    now.prompt_ms = ms;
    say(s, (hn_say){ .kind = HN_SAY_PROGRESS,
                     .total = e->n_prompt,
                     .cached = e->n_cached,
                     .done = done,
                     .ms = ms,
                     .usage = &now });
}

static void take_progress(hn_run *run, const hone_event *e)
{
    hn_job *j = run->job;
    bool first = !run->seen;
    if (!run->seen) {
        run->seen = true;
        run->t_seen = hn_desk_step_ns(j->server->desk);
        hn_tally_add(j->server->tally, HN_COUNT_PROMPT, run->n);
    }
    if (!j->t_prompt) {
        j->t_prompt = hn_desk_step_ns(j->server->desk); /* it was told behind the rows' run */
        atomic_store(&j->runs, true);
        hn_tally_take(j->server->tally, HN_TIME_QUEUE, ms_between(j->t_begin, j->t_prompt) * 1e-3);
    }
    if (run->n_cached < e->n_cached && !run->n_done) run->n_cached = e->n_cached;
    run->n_done = e->n_done;
    if (!keep_logprobs(run, e)) fail_memory(j);
    if (!j->ask.stream || !j->ask.include_progress) return;
    if (first) say_progress(run, e, e->n_cached, 0); /* where it began from */
    say_progress(run, e, e->n_done, ms_between(j->t_prompt, hn_serve_ns()));
}

static bool on_event(void *arg, const hone_event *e)
{
    hn_run *run = arg;
    strand_of(run, e->choice)->slot = e->slot;
    switch (e->kind) {
    case HONE_EVENT_PROMPT: take_progress(run, e); return true;
    case HONE_EVENT_TOKEN: return take_token(strand_of(run, e->choice), e);
    case HONE_EVENT_END: end_strand(strand_of(run, e->choice), e); return false;
    }
    return true;
}

static hone_status on_mask(void *arg, int32_t choice, uint64_t *allowed, size_t n_words, bool *all, hone_error *err)
{
    hn_strand *s = strand_of(arg, choice);
    const hn_ask *a = &s->run->job->ask;
    int64_t left = a->finish_json ? a->max_tokens - s->n_token : -1; /* there is an end (hn_job_prepare) */
    if (s->reply && !s->turned) return hone_reply_mask_within(s->reply, left, allowed, n_words, all, err);
    *all = true;
    if (!s->matcher) return HONE_OK;

    int64_t n = 0;
    hone_status st = hone_matcher_mask_within(s->matcher, left, allowed, n_words, &n, err);
    if (st != HONE_OK) return st;
    *all = false; /* no token, and the text is whole: the choice ends */
    if (n || hone_matcher_can_end(s->matcher)) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "grammar: no token of the model can follow; its vocabulary lacks what the form needs");
}

/* ---- from the event thread -------------------------------------------------------------------------------------- */

static hone_status submit(hn_run *run, hone_error *err)
{
    hn_job *j = run->job;
    const hn_ask *a = &j->ask;
    bool masks = false;
    for (int32_t i = 0; i < a->n; i++) masks = masks || strand_of(run, i)->reply || strand_of(run, i)->matcher;
    hone_request r = { .prompt = run->ids,
                       .n_prompt = (int32_t)run->n,
                       .mark = (int32_t)run->mark,
                       .sampling = a->sampling,
                       .n_choices = a->n,
                       .max_tokens = a->max_tokens > INT32_MAX ? -1 : (int32_t)a->max_tokens,
                       .ignore_eog = a->ignore_eos,
                       .bias = j->bias,
                       .n_bias = j->n_bias,
                       .n_logprobs = a->top_logprobs,
                       .sampled_probs = a->post_sampling_probs,
                       .prompt_logprobs = a->echo && a->prompt_logprobs,
                       .no_share = !a->cache,
                       .scope = j->server->apart ? hn_mix64(j->client ^ hn_mix64(a->salt)) | 1 : a->salt,
                       .client = j->client,
                       .deadline_ns = j->deadline,
                       .adapters = j->adapters,
                       .scales = j->scales,
                       .n_adapters = (int32_t)j->n_adapters,
                       .slot_plus_1 = a->slot >= 0 && a->slot < INT32_MAX ? a->slot + 1 : 0,
                       .mask = masks ? on_mask : NULL,
                       .event = on_event,
                       .arg = run };
    return hone_scheduler_submit(j->book->desk.scheduler, &r, &run->request, err);
}

/* Seconds until there is room again, as far as those that ended tell. */
static int seconds_to_room(const hn_job *j)
{
    enum { MOST = 120 };
    hone_scheduler_stats st;
    hone_scheduler_get_stats(j->book->desk.scheduler, &st);
    double each = hn_tally_mean(j->server->tally, HN_TIME_ANSWER);
    double s = ceil(each * st.n_waiting / (st.n_slots > 0 ? st.n_slots : 1) / 2); /* half of the queue */
    return s > MOST ? MOST : s > 1 ? (int)s : 1;
}

/* The queue is full, or the request is none: in words for the client. */
static void refuse_submit(hn_job *j, const hone_error *err)
{
    hn_refusal r;
    if (err->code == HONE_E_BUSY) {
        hn_refuse(&r, 429, "queue_full", NULL, "%s; try again", err->message);
        r.retry_after = seconds_to_room(j);
        hn_tally_add(j->server->tally, HN_COUNT_REJECTED_QUEUE, 1);
    } else if (err->code == HONE_E_CTX || err->code == HONE_E_ARG) {
        hn_refuse(&r, 400, "out_of_range", NULL, "%s", err->message);
    } else {
        fail_error(j, err);
        return;
    }
    fail(j, &r);
}

/* Those that are not queued will not be. */
static void drop_unqueued(hn_job *j)
{
    j->n_open -= (j->n_run - j->n_queued) * (size_t)j->ask.n;
    j->n_queued = j->n_run;
}

/* May the job's next prompt be queued? The first always; of those behind it so many wait as there are slots, and in
 * half of the queue at most: the other half is for who comes with a first one. */
static bool has_turn(const hn_job *j)
{
    hone_scheduler_stats st;
    int32_t n = 0;
    if (!j->n_queued) return true;
    hone_scheduler_get_stats(j->book->desk.scheduler, &st);
    for (size_t i = 0; i < j->n_queued; i++) n += !j->run[i].seen;
    return n < st.n_slots && st.n_waiting < (hn_job_most_waiting(j->server) + 1) / 2;
}

/* Queues so many prompts as there is room for. A job of more prompts than that tries again after each round of steps:
 * it is sent away only where there was no room for its first. */
static void submit_some(hn_job *j)
{
    hone_error err;
    hone_status st = HONE_OK;
    while (!j->failed && !j->cancelled && j->n_queued < j->n_run && st == HONE_OK && has_turn(j)) {
        hn_run *run = &j->run[j->n_queued];
        st = submit(run, &err);
        if (st == HONE_OK && atomic_load(&j->hold)) hone_scheduler_hold(j->book->desk.scheduler, run->request, true);
        j->n_queued += st == HONE_OK;
    }
    if (st != HONE_OK && (st != HONE_E_BUSY || !j->n_queued)) refuse_submit(j, &err);
    if (j->failed || j->cancelled) drop_unqueued(j);
}

void hn_job_submit(void *arg)
{
    hn_job *j = arg;
    j->n_open = j->n_strand;
    j->computing = true;
    submit_some(j);
    if (j->cancelled && !j->failed) refuse_cancelled(j);
    if (!j->failed && j->ask.stream) {
        hn_parcel *b = parcel_of(j);
        if (b) b->begins = true;
    }
    mark_dirty(j);
}

void hn_job_hold(void *arg)
{
    hn_job *j = arg;
    atomic_store(&j->holding, false); /* from here on it may be told again */
    bool hold = atomic_load(&j->hold);
    for (size_t i = 0; i < j->n_run && !j->over; i++)
        if (j->run[i].request) hone_scheduler_hold(j->book->desk.scheduler, j->run[i].request, hold);
}

void hn_job_cancel(void *arg)
{
    hn_job *j = arg;
    j->cancelled = true;
    if (!j->computing || j->over) return;
    refuse_cancelled(j); /* cancels what runs */
}

/* ---- to the event thread ---------------------------------------------------------------------------------------- */

static void count_cached(hn_job *j)
{
    for (size_t i = 0; i < j->n_run; i++) hn_tally_add(j->server->tally, HN_COUNT_CACHED, (uint64_t)j->run[i].n_cached);
}

/* Takes a job's parcel along, if it is time for it; true: it still waits for room in the queue. The job may be gone
 * behind it where it does not. */
static bool flush_job(hn_job *j)
{
    if (j->computing && !j->over && j->n_queued < j->n_run) submit_some(j);
    bool waits = j->computing && j->n_queued < j->n_run;
    bool last = j->computing && !j->over && j->n_open == 0;
    j->dirty = false;
    if (j->over || (!last && (!j->ask.stream || !j->parcel))) return waits;
    hn_parcel *b = j->parcel;
    if (last && !b) {
        b = &j->spare;
        b->job = j;
    }
    if (last) {
        j->over = true;
        b->last = true;
        b->failed = j->failed;
        b->failure = j->failure;
        b->usage = usage_of(j, NULL);
        count_cached(j);
    }
    j->parcel = NULL;
    hn_job_send(b);
    return waits;
}

void hn_job_flush(hn_server *s)
{
    hn_job *again = NULL;
    while (s->dirty) {
        hn_job *j = s->dirty;
        s->dirty = j->next_dirty;
        if (!flush_job(j)) continue;
        j->dirty = true;
        j->next_dirty = again;
        again = j;
    }
    s->dirty = again;
    hn_serve_wake(s);
}
