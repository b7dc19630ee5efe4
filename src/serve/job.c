/* The event thread's part of a job: its beginning, the frames that go to the client, its end. */
#include "serve/job.h"
#include "serve/voice_parts.h"

#include "base/os.h"

#include <stdlib.h>
#include <time.h>

enum { SILENT_MS = 10000, MOST_WAITING = 64 };

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void free_strand(hn_strand *s)
{
    for (size_t i = 0; i < s->n_held; i++) free((void *)s->held[i].top);
    hone_reply_free(s->reply);
    hone_stream_free(s->stream);
    hone_matcher_free(s->matcher);
    free(s->held);
    free(s->tail);
    free(s->kept);
}

static void free_run(hn_run *r)
{
    free(r->ids);
    hone_chat_text_free(&r->rendered);
    free(r->logprob);
    free(r->top);
    free(r->n_top);
}

static void give_adapters(hn_job *j)
{
    while (j->n_adapter_ids) hn_adapter_list_give(hn_book_adapters(j->book), j->adapter_ids[--j->n_adapter_ids]);
}

static void free_parts(void *arg)
{
    hn_job *j = arg;
    for (size_t i = 0; i < j->n_strand; i++) free_strand(&j->strand[i]);
    for (size_t i = 0; i < j->n_run; i++) free_run(&j->run[i]);
    free(j->strand);
    free(j->run);
    give_adapters(j);
    free(j->adapters);
    free(j->scales);
    free(j->adapter_ids);
    free(j->bias);
    free(j->vectors);
    if (j->voice->drop) j->voice->drop(j->state);
    hn_forms_give(j->server->forms, j->grammar);
    hn_book_format_give(j->format);
    hn_bytes_free(&j->body);
    hn_ask_free(&j->ask);
    if (j->leaves) {
        hn_shelf_looked(j->book);
    } else if (j->book) {
        hn_shelf_touch(j->book);
        hn_shelf_give(j->book);
    }
    free(j);
}

/* Before its answer is whole: with that the connection's next request is heard, which may unload what this one used. */
static void leave_model(hn_job *j)
{
    if (!j->book || j->leaves) return;
    j->leaves = true;
    give_adapters(j);
    hn_shelf_leave(j->book);
}

/* Where the desk was told to stop or hold it, that may still be on its way: the desk frees it behind that. */
static void free_job(hn_job *j)
{
    *j->at_open = j->next_open;
    if (j->next_open) j->next_open->at_open = j->at_open;
    j->server->n_open--;
    if (!j->stopped && !j->held) {
        free_parts(j);
        return;
    }
    j->desk_task = (hn_task){ .fn = free_parts, .arg = j };
    hn_desk_do(j->server->desk, &j->desk_task);
}

static bool end_waiting(hn_job *j, const hn_refusal *r);

/* What the desk has of it ends. */
static void stop_computing(hn_job *j)
{
    if (j->stopped) return;
    j->stopped = true;
    atomic_store(&j->quits, true);
    hn_desk_do(j->server->desk, &j->stop_task);
}

/* Nobody reads it any more: what still runs of it is stopped. It is freed when its last parcel comes. */
static void on_gone(void *arg)
{
    hn_job *j = arg;
    j->gone = true;
    hn_tally_add(j->server->tally, HN_COUNT_CANCELLED, 1);
    if (!end_waiting(j, NULL)) stop_computing(j);
}

/* status 0: nobody was there to be answered. */
static void count(hn_job *j, int status)
{
    if (status) hn_tally_answer(j->server->tally, j->route, status);
    hn_tally_take(j->server->tally, HN_TIME_REQUEST, (double)(hn_serve_ns() - j->t_begin) * 1e-9);
}

static void finish(hn_job *j, int status)
{
    count(j, status);
    free_job(j);
}

/* ---- workers ---------------------------------------------------------------------------------------------------- */

/* The job's way ends here: *r, or what was found. To the event thread. */
static void send_back(hn_job *j, const hn_refusal *r)
{
    hn_server *s = j->server; /* j is gone as soon as the event thread has it */
    hn_parcel *b = &j->spare;
    b->job = j;
    b->last = true;
    b->failed = r != NULL;
    if (r) b->failure = *r;
    if (r && j->book_wanted) hn_book_hide_folders(j->book_wanted, b->failure.message);
    hn_job_send(b);
    hn_serve_wake(s);
}

static bool generates(const hn_job *j) { return j->n_strand > 0; }

static void find(void *arg)
{
    hn_job *j = arg;
    hn_refusal r;
    bool ok = hn_job_find(j, &j->body, &r);
    send_back(j, ok ? NULL : &r);
}

/* The model is there. */
static void prepare(hn_job *j)
{
    hn_refusal r;
    j->head.fingerprint = j->book->fingerprint;
    if (!hn_job_prepare(j, &r)) {
        send_back(j, &r);
    } else if (generates(j)) {
        hn_desk_do(j->server->desk, &j->desk_task);
    } else if (hn_job_embeds(j)) { /* and back here, to say what was found */
        j->task.fn = find;
        if (!hn_job_submit_embed(j, &r)) send_back(j, &r);
    } else {
        find(j);
    }
}

/* Requests load models, but with --no-autoload; ollama's empty prompt asks for nothing else. */
static bool loads(const hn_job *j) { return !j->server->p.shelf.no_autoload || j->ask.kind == HN_ASK_LOAD; }

/* On the loader: waits for the model. Who clears `waits` answers; where that was the event thread the rest is to come
 * back to it and be freed. */
static void load(void *arg)
{
    hn_job *j = arg;
    hn_refusal r;
    uint64_t t = hn_serve_ns();
    bool ok = hn_shelf_take(j->book_wanted, &j->waits, loads(j), &r);
    pthread_mutex_lock(&j->server->wait_lock);
    bool mine = atomic_exchange(&j->waits, false);
    pthread_mutex_unlock(&j->server->wait_lock);
    if (ok) j->book = j->book_wanted;
    if (mine) atomic_fetch_sub(&j->server->n_waiting, 1);
    j->load_ms = (double)(hn_serve_ns() - t) * 1e-6;
    if (ok && mine) prepare(j);
    else send_back(j, ok ? NULL : &r);
}

int hn_job_most_waiting(const hn_server *s)
{
    return s->p.shelf.scheduler.max_queue > 0 ? s->p.shelf.scheduler.max_queue : MOST_WAITING;
}

/* In the loader's queue, if there is room. */
static void wait_for_loading(hn_job *j)
{
    hn_server *s = j->server;
    hn_refusal r;
    int most = hn_job_most_waiting(s);
    if (atomic_fetch_add(&s->n_waiting, 1) >= most) {
        atomic_fetch_sub(&s->n_waiting, 1);
        hn_refuse(&r, 429, "queue_full", NULL, "%d requests wait for their model; try again", most);
        r.retry_after = 1;
        hn_tally_add(s->tally, HN_COUNT_REJECTED_QUEUE, 1);
        send_back(j, &r);
        return;
    }
    j->task.fn = load;
    atomic_store(&j->waits, true);
    hn_crew_do(s->loader, &j->task);
}

/* On the loader's thread: behind the load. */
static void unload_loaded(void *arg)
{
    hn_job *j = arg;
    hn_refusal r;
    bool ok = hn_shelf_unload(j->book_wanted, NULL, &r) && hn_job_find(j, &j->body, &r);
    send_back(j, ok ? NULL : &r);
}

/* On the clerk's thread. */
static void unload(void *arg)
{
    hn_job *j = arg;
    hn_refusal r;
    bool loading;
    j->head.model = j->book_wanted->name;
    bool ok = hn_shelf_unload(j->book_wanted, &loading, &r) && hn_job_find(j, &j->body, &r);
    if (!loading) {
        send_back(j, ok ? NULL : &r);
        return;
    }
    j->task.fn = unload_loaded;
    hn_crew_do(j->server->loader, &j->task);
}

/* On the event thread: before it is unloaded, those that wait to have it loaded do so no longer. */
static void withdraw(void *arg)
{
    hn_job *j = arg;
    hn_serve_withdraw(j->server, j->book_wanted);
    j->task.fn = unload;
    hn_crew_do(j->server->clerk, &j->task);
}

/* May the request have its model loaded, if it has to be? False: *r. (Asked again where models are loaded.) */
static bool may_load(const hn_job *j, hn_refusal *r)
{
    hn_book_state state = hn_book_look(j->book_wanted, NULL);
    if (loads(j) || state == HN_BOOK_LOADED || state == HN_BOOK_LOADING) return true;
    return hn_shelf_refuse_unloaded(j->book_wanted, r);
}

/* On the event thread. A job may last long, and its body be large. */
static void drop_body(void *arg)
{
    hn_job *j = arg;
    if (!j->answered) hn_exchange_drop_body(j->x);
}

static void work(void *arg)
{
    hn_job *j = arg;
    hn_refusal r;
    bool ok = hn_job_read(j, &r);
    /* it is there before the last parcel; with the next tick at the latest */
    hn_serve_back(j->server, &j->read_task, drop_body, j);
    if (ok) j->head.model = j->adapter ? j->adapter : j->book_wanted->name;
    if (!ok) {
        send_back(j, &r);
    } else if (hn_job_unloads(j)) {
        hn_server *s = j->server;
        hn_serve_back(s, &j->task, withdraw, j);
        hn_serve_wake(s);
    } else if (hn_shelf_try_fair(j->book_wanted)) {
        j->book = j->book_wanted;
        prepare(j);
    } else if (!may_load(j, &r)) {
        send_back(j, &r);
    } else {
        wait_for_loading(j);
    }
}

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static bool name_job(hn_job *j)
{
    unsigned char raw[15];
    struct timespec now;
    if (!hn_os_random(raw, sizeof raw)) return false;
    hn_hex(j->id, raw, sizeof raw);
    clock_gettime(CLOCK_REALTIME, &now);
    j->head = (hn_head){ .id = j->id,
                         .model = "",
                         .fingerprint = "",
                         .created = (int64_t)now.tv_sec,
                         .created_ns = (int64_t)now.tv_nsec,
                         .request_id = hn_exchange_id(j->x) };
    return true;
}

void hn_job_begin(hn_server *s, hn_exchange *x, const hn_voice *voice)
{
    hn_refusal r;
    hn_job *j = calloc(1, sizeof *j);
    if (!j) {
        hn_refuse(&r, 500, "out_of_memory", NULL, "no memory for this request");
        hn_serve_refuse(s, x, &r);
        return;
    }
    j->server = s;
    j->x = x;
    j->voice = voice;
    j->client = hn_exchange_client(x);
    j->route = hn_serve_route_name(hn_exchange_path(x));
    j->t_begin = j->t_sent = hn_serve_ns();
    j->task = (hn_task){ .fn = work, .arg = j };
    j->desk_task = (hn_task){ .fn = hn_job_submit, .arg = j };
    j->hold_task = (hn_task){ .fn = hn_job_hold, .arg = j };
    j->stop_task = (hn_task){ .fn = hn_job_cancel, .arg = j };
    if (!name_job(j)) {
        free(j);
        hn_refuse(&r, 500, NULL, NULL, "the system gives no random numbers; try again");
        hn_serve_refuse(s, x, &r);
        return;
    }

    j->next_open = s->open;
    j->at_open = &s->open;
    if (s->open) s->open->at_open = &j->next_open;
    s->open = j;
    s->n_open++;
    hn_exchange_on_gone(x, on_gone, j);
    hn_crew_do(s->crew, &j->task);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* What asked for thoughts gave them an end, too: that holds of a model whose template has thoughts, whether or not it
 * can be told to have them. */
static bool budget_acts(const hn_job *j)
{
    const hn_ask *a = &j->ask;
    const char *format = j->format ? hone_chat_format_json(j->format->format) : NULL;
    return a->reasoning_budget >= 0 && strcmp(a->effort, "off") != 0 && format && strstr(format, "\"reasoning\"") &&
           (hn_book_template_names(j->book, "think") || strstr(format, "\"derived\":true"));
}

static void set_headers(hn_job *j)
{
    char ignored[2400]; /* hn_field_ignored ends at 1024 and a name; notes of a form and of tools are 300 each */
    const char *by = j->ask.effort_param, *more = by && j->effort_ignored && !budget_acts(j) ? by : "";
    const char *fields = j->ask.ignored ? j->ask.ignored : "";
    hn_serve_load(j->server, j->x);
    if (j->ask.messages && j->book && j->book->assumed)
        hn_exchange_set_header(j->x, "x-hone-chat-template", j->book->chat_template);
    if (!*fields && !*more) return;
    snprintf(ignored, sizeof ignored, "%s%s%s", fields, *fields && *more ? ", " : "", more);
    hn_exchange_set_header(j->x, "x-hone-ignored", ignored);
}

static void end_unsent(hn_job *j, const hn_refusal *r)
{
    int status = j->gone ? 0 : r->status;
    leave_model(j);
    if (j->gone) hn_exchange_end(j->x, false);
    else hn_serve_refuse(j->server, j->x, r);
    finish(j, status);
}

bool hn_job_late(const hn_job *j, hn_refusal *r)
{
    return hn_refuse(r, 504, "timeout", NULL,
                     "the request was not answered within %.3g s; send a larger x-hone-timeout-ms",
                     (double)(j->deadline - j->t_begin) * 1e-9);
}

bool hn_job_ended(hn_refusal *r)
{
    return hn_refuse(r, 400, "cancelled", NULL, "the response was cancelled, as it was asked for");
}

static void no_memory(hn_refusal *r) { hn_refuse(r, 500, "out_of_memory", NULL, "no memory for the answer"); }

/* A stream that cannot go on: the client learns of it by the missing end. */
static void break_off(hn_job *j)
{
    j->broken = true;
    stop_computing(j);
}

/* Is there somebody to whom the stream can go on? */
static bool reads(const hn_job *j) { return !j->gone && !j->broken && !j->answered; }

/* Whether the answer is to wait for its client. */
static void set_hold(hn_job *j, bool hold)
{
    if (atomic_load(&j->hold) == hold) return;
    j->held = true;
    atomic_store(&j->hold, hold);
    if (!atomic_exchange(&j->holding, true)) hn_desk_do(j->server->desk, &j->hold_task);
}

static void on_room(void *arg) { set_hold(arg, false); }

/* Frames to the client. */
static void send_frames(hn_job *j, hn_bytes *o)
{
    if (!reads(j)) return;
    if (!hn_bytes_ok(o)) {
        break_off(j);
        return;
    }
    if (!o->n) return; /* as while the arguments of a call gather */
    hn_exchange_send(j->x, o->p, o->n);
    if (hn_exchange_backlog(j->x) >= HN_HTTP_BACKLOG) set_hold(j, true);
    j->t_sent = hn_serve_ns();
}

static void begin_head(hn_job *j)
{
    if (j->begun || j->gone) return;
    j->begun = true;
    hn_exchange_on_room(j->x, on_room, j);
    set_headers(j);
    hn_exchange_set_header(j->x, "cache-control", "no-cache");
    hn_exchange_set_header(j->x, "x-accel-buffering", "no");
    hn_exchange_begin(j->x, 200, j->voice->stream_type);
    j->t_sent = hn_serve_ns();
}

static void begin_stream(hn_job *j)
{
    hn_bytes o = { 0 };
    begin_head(j);
    if (j->voiced || j->gone) return;
    j->voiced = true;
    if (!j->voice->begin(&j->ask, &j->head, &o, &j->state)) o.lost = true;
    send_frames(j, &o);
    hn_bytes_free(&o);
}

/* One that says nothing but what failed. */
static void fail_stream(hn_job *j, const hn_refusal *r)
{
    hn_bytes o = { 0 };
    begin_stream(j);
    if (reads(j) && !j->voice->fail(&j->ask, &j->head, j->state, r, &o)) o.lost = true;
    send_frames(j, &o);
    hn_bytes_free(&o);
    hn_exchange_end(j->x, reads(j));
}

/* Ends one that waits for its model; true: it did. It is freed when the loader lets go of it, or, where that has others
 * before it, when the event thread is done with what it does now: who is gone has no place in the queue. */
static bool end_waiting(hn_job *j, const hn_refusal *r)
{
    if (!atomic_exchange(&j->waits, false)) return false;
    atomic_fetch_sub(&j->server->n_waiting, 1);
    count(j, j->gone ? 0 : j->begun ? 200 : r->status);
    if (j->gone) hn_exchange_end(j->x, false);
    else if (j->begun) fail_stream(j, r);
    else hn_serve_refuse(j->server, j->x, r);
    j->answered = true;
    if (hn_crew_undo(j->server->loader, &j->task)) send_back(j, NULL);
    else hn_shelf_stir(j->server->shelf);
    return true;
}

static void deliver_stream(hn_job *j, hn_parcel *b)
{
    hn_bytes o = { 0 };
    bool ok = true;
    begin_stream(j);
    if (reads(j)) { /* else the voice may have nothing to say it with: it never began */
        if (b->n) ok = j->voice->say(&j->ask, &j->head, j->state, b->say, b->n, &o);
        if (ok && b->last && b->failed) ok = j->voice->fail(&j->ask, &j->head, j->state, &b->failure, &o);
        else if (ok && b->last) ok = j->voice->end(&j->ask, &j->head, j->state, &b->usage, &o);
        if (!ok) o.lost = true;
    }
    send_frames(j, &o);
    hn_bytes_free(&o);
    if (!b->last) return;

    leave_model(j);
    hn_exchange_end(j->x, reads(j)); /* whole, too, where its last frame says what failed */
    finish(j, j->begun ? 200 : 0);
}

static void deliver_whole(hn_job *j, hn_parcel *b)
{
    hn_refusal r;
    hn_bytes o = { 0 };
    bool whole = j->voice->whole(&j->ask, &j->head, b->say, b->n, &b->usage, &o) && hn_bytes_ok(&o);
    if (!whole) {
        no_memory(&r);
        hn_bytes_free(&o);
        end_unsent(j, &r);
        return;
    }
    if (!j->gone) set_headers(j);
    leave_model(j);
    if (j->gone) {
        hn_exchange_end(j->x, false);
    } else {
        hn_exchange_reply(j->x, 200, "application/json", o.p, o.n);
    }
    hn_bytes_free(&o);
    finish(j, j->gone ? 0 : 200);
}

static void deliver_found(hn_job *j)
{
    if (!j->gone) set_headers(j);
    leave_model(j);
    if (j->gone) {
        hn_exchange_end(j->x, false);
    } else {
        hn_exchange_reply(j->x, 200, "application/json", j->body.p, j->body.n);
    }
    finish(j, j->gone ? 0 : 200);
}

/* The job may be gone behind it. */
static void take_parcel(void *arg)
{
    hn_parcel *b = arg, mine = *b; /* the job's own goes with it; what it points to does not */
    hn_job *j = b->job;
    bool own = b == &j->spare, stream = generates(j) && j->ask.stream;
    if (j->answered) free_job(j);
    else if (j->begun || (stream && (b->begins || b->n))) deliver_stream(j, b);
    else if (b->last && b->failed) end_unsent(j, &b->failure);
    else if (b->last && generates(j)) deliver_whole(j, b);
    else if (b->last) deliver_found(j);
    hn_parcel_clear(&mine);
    if (!own) free(b);
}

void hn_job_send(hn_parcel *b) { hn_serve_back(b->job->server, &b->task, take_parcel, b); }

static void send_alive(hn_job *j)
{
    hn_bytes o = { 0 };
    hn_say alive = { .kind = HN_SAY_ALIVE };
    if (!j->voiced) hn_part_alive(&o);
    else if (!j->voice->say(&j->ask, &j->head, j->state, &alive, 1, &o)) o.lost = true;
    send_frames(j, &o);
    hn_bytes_free(&o);
}

/* The stream of one that waits for its model begins, so that nobody takes it for dead; what fails later is told in it.
 * A voice of SSE begins when its prompt was read, of which it tells: until then comments are sent. ollama's form has
 * none, and tells nothing. */
static void begin_waiting(hn_job *j)
{
    if (j->begun) return;
    pthread_mutex_lock(&j->server->wait_lock);
    bool streams = atomic_load(&j->waits) && hn_job_writes(j) && j->ask.stream && j->voice->stream_type;
    if (streams && strcmp(j->voice->stream_type, hn_sse) == 0) begin_head(j);
    else if (streams) begin_stream(j);
    pthread_mutex_unlock(&j->server->wait_lock);
}

void hn_job_tick(hn_server *s)
{
    hn_refusal r;
    uint64_t now = hn_serve_ns(), most = (uint64_t)(s->p.silent_ms ? s->p.silent_ms : SILENT_MS) * 1000000;
    for (hn_job *j = s->open; j; j = j->next_open) {
        bool waits = atomic_load(&j->waits), silent = reads(j) && now >= j->t_sent + most;
        if (waits && silent) begin_waiting(j);
        if (j->begun && silent) send_alive(j);
        if (!waits || (!j->stopped && now < j->deadline)) continue;
        if (j->stopped) hn_refuse_draining(&r); /* it came to the loader behind that */
        else hn_job_late(j, &r);
        end_waiting(j, &r);
    }
}

void hn_job_withdraw(hn_server *s, const hn_book *b)
{
    hn_refusal r;
    hn_refuse_withdrawn(&r);
    for (hn_job *j = s->open; j; j = j->next_open)
        if (atomic_load(&j->waits) && j->ask.kind == HN_ASK_LOAD && j->book_wanted == b) end_waiting(j, &r);
}

const hn_job *hn_job_end_response(hn_server *s, const char *id)
{
    hn_refusal r;
    const hn_voice *responses = hn_voice_find("POST", "/v1/responses", false);
    hn_job *j = s->open;
    while (j && (j->voice != responses || j->gone || j->answered || strcmp(j->id, id) != 0)) j = j->next_open;
    if (!j) return NULL;
    hn_job_ended(&r);
    if (end_waiting(j, &r)) return j;
    atomic_store(&j->ended, true);
    stop_computing(j);
    return j;
}

void hn_job_stop_all(hn_server *s, bool all)
{
    hn_refusal r;
    hn_refuse_draining(&r);
    for (hn_job *j = s->open; j; j = j->next_open) {
        if (end_waiting(j, &r) || j->answered || (!all && atomic_load(&j->runs))) continue;
        stop_computing(j);
    }
}
