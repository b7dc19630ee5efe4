/* hone serve from its first thread to its last: what is begun in which order, signals, and how it ends. */
#include "serve/server.h"

#include "base/os.h"
#include "serve/job.h"
#include "serve/orders.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { WORKERS = 2, TICK_MS = 100, LAST_MS = 3000, REST_TICKS = 10 };

/* ---- to the event thread ---------------------------------------------------------------------------------------- */

void hn_serve_back(hn_server *s, hn_task *t, void (*fn)(void *), void *arg)
{
    t->fn = fn;
    t->arg = arg;
    pthread_mutex_lock(&s->back_lock);
    hn_task_push(&s->back, t);
    pthread_mutex_unlock(&s->back_lock);
}

static void run_back(void *arg)
{
    hn_server *s = arg;
    pthread_mutex_lock(&s->back_lock);
    hn_task_queue todo = s->back;
    s->back = (hn_task_queue){ 0 };
    pthread_mutex_unlock(&s->back_lock);
    for (hn_task *t; (t = hn_task_pop(&todo));) t->fn(t->arg);
}

/* Where there is no memory to tell the event thread, it looks by itself at its next tick. */
void hn_serve_wake(hn_server *s)
{
    pthread_mutex_lock(&s->back_lock);
    bool any = s->back.first != NULL;
    pthread_mutex_unlock(&s->back_lock);
    if (any) hn_http_post(s->http, run_back, s);
}

/* What pickers between several servers look at. */
static void note_load(hn_server *s)
{
    uint64_t running = 0, waiting = 0, used = 0, total = 0;
    for (const hn_desk_model *m = hn_desk_first(s->desk); m; m = m->next) {
        hone_scheduler_stats st;
        hone_scheduler_get_stats(m->scheduler, &st);
        running += (uint64_t)st.n_running;
        waiting += (uint64_t)st.n_waiting;
        used += st.cache_used;
        total += st.cache_total;
    }
    hn_job_count_embeds(s, &running, &waiting);
    uint64_t share = total ? (uint64_t)(1000.0 * (double)used / (double)total) : 0;
    if (running > 0xFFFF) running = 0xFFFF;
    if (waiting > 0xFFFF) waiting = 0xFFFF;
    atomic_store(&s->load, running << 32 | waiting << 16 | share);
}

void hn_serve_load(const hn_server *s, hn_exchange *x)
{
    char value[48];
    uint64_t load = atomic_load(&s->load);
    snprintf(value, sizeof value, "%u;%u;%.3f", (unsigned)(load >> 32), (unsigned)(load >> 16 & 0xFFFF),
             (double)(load & 0xFFFF) / 1000);
    hn_exchange_set_header(x, "x-hone-load", value);
}

static void after_round(void *arg)
{
    note_load(arg);
    hn_job_flush(arg);
}

/* ---- the first model -------------------------------------------------------------------------------------------- */

static void loaded(void *arg)
{
    hn_server *s = arg;
    if (atomic_load(&s->state) != HN_SERVER_LOADING) return; /* it was told to end before */
    if (s->not_loaded.code != HONE_OK) {
        s->failed = s->not_loaded;
        hn_http_stop(s->http);
        return;
    }
    atomic_store(&s->state, HN_SERVER_READY);
    if (s->p.ready) s->p.ready(s->p.arg, hn_http_address(s->http));
}

static void load_first(void *arg)
{
    hn_server *s = arg;
    hn_refusal r;
    hn_book *first = hn_shelf_at(s->shelf, 0);
    if (hn_shelf_take(first, NULL, true, &r)) hn_shelf_give(first);
    else
        hn_fail(&s->not_loaded, first->why_code ? first->why_code : HONE_E_NOMEM, __FILE__, __LINE__, "%s",
                *first->why ? first->why : r.message);
    hn_serve_back(s, &s->load_task, loaded, s);
    hn_serve_wake(s);
}

/* ---- its end ---------------------------------------------------------------------------------------------------- */

static void on_signal(void *arg, int sig)
{
    hn_server *s = arg;
    hone_error err;
    if (sig == SIGHUP) {
        if (!hn_http_reload_keys(s->http, &err)) hn_log("serve: %s; the old keys hold", err.message);
        return;
    }
    if (s->drain_end) { /* a second one: at once */
        s->exit_code = 130;
        hn_http_stop(s->http);
        return;
    }
    atomic_store(&s->state, HN_SERVER_DRAINING);
    s->drain_end = hn_serve_ns() + (uint64_t)s->p.drain_s * 1000000000;
    hn_http_drain(s->http);
    hn_shelf_stop(s->shelf); /* whom a model is loaded for is told to ask elsewhere; nobody waits for that */
    hn_job_stop_all(s, false);
    hn_order_stop_all(s);
}

/* A second after the last answer memory goes back to the system: else what stays depends on how the answers met, and
 * looks like a leak. */
static void rest(hn_server *s)
{
    if (s->n_open > 0) s->n_rest = 0;
    else if (s->n_rest <= REST_TICKS && s->n_rest++ == REST_TICKS) hn_os_heap_trim();
}

static void idle_done(void *arg)
{
    hn_server *s = arg;
    s->idle_runs = false;
}

/* On the clerk's thread. */
static void unload_idle(void *arg)
{
    hn_server *s = arg;
    hn_shelf_unload_idle(s->shelf, hn_serve_ns());
    hn_serve_back(s, &s->idle_task, idle_done, s);
    hn_serve_wake(s);
}

static void look_for_idle(hn_server *s, uint64_t now)
{
    if (s->idle_runs || atomic_load(&s->state) != HN_SERVER_READY || !hn_shelf_has_idle(s->shelf, now)) return;
    s->idle_runs = true;
    s->idle_task = (hn_task){ .fn = unload_idle, .arg = s };
    hn_crew_do(s->clerk, &s->idle_task);
}

static void on_tick(void *arg)
{
    hn_server *s = arg;
    rest(s);
    uint64_t now = hn_serve_ns();
    look_for_idle(s, now);
    run_back(s);
    hn_job_tick(s);
    hn_order_tick(s, now);
    if (!s->drain_end) return;
    bool none = s->n_open == 0 && s->n_orders == 0;
    if (none && hn_http_connections(s->http) == 0) {
        hn_http_stop(s->http);
    } else if (now > s->drain_end) {
        hn_job_stop_all(s, true);
        if (none || now > s->drain_end + (uint64_t)LAST_MS * 1000000) hn_http_stop(s->http);
    }
}

/* Nobody is answered any more: what is still computed is stopped and taken back; a file that is being written becomes
 * whole. */
static void end_jobs(hn_server *s)
{
    const struct timespec pause = { .tv_nsec = 2000000 };
    hn_shelf_stop(s->shelf);
    hn_job_stop_all(s, true);
    hn_order_stop_all(s);
    while (s->n_open > 0 || s->n_orders > 0) {
        run_back(s);
        if (s->n_open > 0 || s->n_orders > 0) nanosleep(&pause, NULL);
    }
}

static void close_all(hn_server *s)
{
    if (s->http && s->desk && s->shelf) end_jobs(s);
    hn_crew_free(s->filer);
    hn_crew_free(s->clerk);
    hn_crew_free(s->loader);
    hn_crew_free(s->crew);
    hn_desk_free(s->desk);
    if (s->http) run_back(s);
    hn_shelf_free(s->shelf);
    hn_http_free(s->http);
    hn_forms_free(s->forms);
    hn_tally_free(s->tally);
    pthread_mutex_destroy(&s->back_lock);
    pthread_mutex_destroy(&s->wait_lock);
    free(s);
}

/* ---- its beginning ---------------------------------------------------------------------------------------------- */

static hone_status open_threads(hn_server *s, hone_error *err)
{
    hone_status st;
    if (!(s->tally = hn_tally_new()) || !(s->forms = hn_forms_new()))
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for counters and forms");
    if ((st = hn_crew_new(&s->crew, WORKERS, err)) != HONE_OK || (st = hn_crew_new(&s->loader, 1, err)) != HONE_OK ||
        (st = hn_crew_new(&s->clerk, 1, err)) != HONE_OK || (st = hn_crew_new(&s->filer, 1, err)) != HONE_OK ||
        (st = hn_desk_new(&s->desk, after_round, NULL, s, err)) != HONE_OK)
        return st;
    s->p.shelf.desk = s->desk;
    return hn_shelf_new(&s->shelf, &s->p.shelf, err);
}

static hone_status open_http(hn_server *s, hone_error *err)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    hn_serve_routes(s, &s->p.http);
    hone_status st = hn_http_open(&s->http, &s->p.http, err);
    if (st != HONE_OK) return st;
    hn_serve_word_errors(s);
    s->apart = s->p.cache_scope == HN_CACHE_BY_CLIENT ||
               (s->p.cache_scope == HN_CACHE_BY_ADDRESS && !hn_http_is_local(s->http));
    bool ok = hn_http_every(s->http, TICK_MS, on_tick, s);
    for (size_t i = 0; ok && i < sizeof signals / sizeof *signals; i++)
        ok = hn_http_on_signal(s->http, signals[i], on_signal, s);
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "no memory for timers and signals");
}

hone_status hn_serve(const hn_serve_params *p, int *exit_code, hone_error *err)
{
    *exit_code = 0;
    hn_server *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "no memory for a server");
    s->p = *p;
    pthread_mutex_init(&s->back_lock, NULL);
    pthread_mutex_init(&s->wait_lock, NULL);

    hone_status st = hn_serve_check_slot_dir(p->slot_dir, err);
    if (st == HONE_OK) st = open_http(s, err);
    if (st == HONE_OK) st = open_threads(s, err);
    if (st == HONE_OK) {
        s->load_task = (hn_task){ .fn = load_first, .arg = s };
        hn_crew_do(s->loader, &s->load_task);
        st = hn_http_run(s->http, err);
    }
    if (st == HONE_OK && s->failed.code != HONE_OK) {
        if (err) *err = s->failed;
        st = s->failed.code;
    }
    *exit_code = s->failed.code != HONE_OK ? HN_SERVE_MODEL : s->exit_code;
    close_all(s);
    return st;
}
