/* The computing thread of desk.h. */
#include "serve/desk.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct hn_desk {
    pthread_mutex_t lock;
    pthread_cond_t more;
    hn_task_queue queue;
    bool ends;
    pthread_t thread;
    hn_desk_model *models; /* its thread's, as are the next six */
    hn_task_queue slices;
    uint64_t began;   /* of the running step */
    hn_cost alone;    /* what a round of steps takes without rows of prompts */
    double round_ns;  /* what the last one took … */
    bool had_answers; /* … with rows of answers in it … */
    bool had_prompts; /* … and rows of prompts */
    void (*after)(void *arg);
    uint64_t (*now)(void *arg);
    void *arg;
};

/* How a desk waits: not at all, for something to do, or a moment: whose requests are held has deadlines. */
typedef enum rest { GOES_ON, WAITS, LOOKS_AGAIN } rest;

/* All that waits, at once. False: it is over. */
static bool take_all(hn_desk *d, rest how, hn_task_queue *out)
{
    enum { MOMENT_NS = 20000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOMENT_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&d->lock);
    while (how == WAITS && !d->queue.first && !d->ends) pthread_cond_wait(&d->more, &d->lock);
    if (how == LOOKS_AGAIN && !d->queue.first && !d->ends) pthread_cond_timedwait(&d->more, &d->lock, &until);
    *out = d->queue;
    d->queue = (hn_task_queue){ 0 };
    bool over = d->ends && !out->first && !d->slices.first;
    pthread_mutex_unlock(&d->lock);
    return !over;
}

const hn_desk_model *hn_desk_first(const hn_desk *d) { return d->models; }
uint64_t hn_desk_step_ns(const hn_desk *d) { return d->began; }

/* Are there requests at all? */
static bool has_some(const hn_desk_model *m)
{
    hone_scheduler_stats st;
    hone_scheduler_get_stats(m->scheduler, &st);
    return st.n_running || st.n_waiting || st.n_paused;
}

/* Rows of answers and of others that were run so far. */
static void count_rows(const hn_desk *d, uint64_t *answers, uint64_t *others)
{
    *answers = *others = 0;
    for (const hn_desk_model *m = d->models; m; m = m->next) {
        hone_scheduler_stats st;
        hone_scheduler_get_stats(m->scheduler, &st);
        *answers += st.n_answer_rows;
        *others += st.n_rows - st.n_answer_rows;
    }
}

/* A step of each. What one said is handed on before others compute. */
static rest step_all(hn_desk *d)
{
    bool any = false, some = false;
    uint64_t answers[2], others[2], begin = d->now(d->arg);
    count_rows(d, &answers[0], &others[0]);
    for (hn_desk_model *m = d->models; m; m = m->next) {
        bool worked = false;
        hone_error err;
        d->began = d->now(d->arg);
        if (hone_scheduler_step(m->scheduler, &worked, &err) != HONE_OK)
            hn_log("serve: a step failed: %s", err.message);
        if (worked && (m->next || d->slices.first)) d->after(d->arg);
        any = any || worked;
        some = some || (!worked && has_some(m));
    }
    count_rows(d, &answers[1], &others[1]);
    d->round_ns = (double)(d->now(d->arg) - begin);
    d->had_answers = answers[1] > answers[0];
    d->had_prompts = others[1] > others[0];
    if (d->had_answers && !d->had_prompts) hn_cost_learn(&d->alone, d->round_ns, 1, false);
    return any ? GOES_ON : some ? LOOKS_AGAIN : WAITS;
}

/* The slice whose turn it is; those that wait have theirs in the next rounds, behind others' steps. */
static bool run_slice(hn_desk *d)
{
    hn_task *t = hn_task_pop(&d->slices);
    if (t) t->fn(t->arg);
    return t != NULL;
}

void hn_desk_slice(hn_desk *d, hn_task *t) { hn_task_push(&d->slices, t); }

/* What was given, then a step of each. */
static rest go_round(hn_desk *d, hn_task_queue *todo)
{
    for (hn_task *t; (t = hn_task_pop(todo));) t->fn(t->arg);
    return step_all(d);
}

int32_t hn_desk_rows(hn_desk *d, hn_desk_pace *p, int32_t n_last, int32_t most)
{
    hn_task_queue todo;
    const double each = n_last ? (double)(d->now(d->arg) - p->since) / n_last : 0;
    /* a few rows cost what a row costs, each of them more: they only say that it is less than was thought */
    if (n_last >= HN_LEAST_PREFILL || (n_last && (p->row.ns == 0 || each < p->row.ns)))
        hn_cost_learn(&p->row, each, 1, false);
    if (n_last) {
        take_all(d, GOES_ON, &todo);
        go_round(d, &todo);
        d->after(d->arg);
    }
    /* something may have disturbed the round, or there are more answers than before: the less of both */
    const double known = hn_time_beside(d->alone.ns), now = hn_time_beside(d->round_ns);
    double left = known < now ? known : now;
    if (d->had_prompts) left = known + d->alone.ns - d->round_ns; /* they had their part */
    int32_t n = d->had_answers ? hn_rows_beside(&p->row, left, p->fixed, most) : most;
    p->since = d->now(d->arg);
    return n;
}

static void *compute(void *arg)
{
    hn_desk *d = arg;
    hn_task_queue todo;
    rest how = GOES_ON;

    while (take_all(d, how, &todo)) {
        bool told = todo.first != NULL;
        how = go_round(d, &todo);
        if (run_slice(d)) { /* what came and was stepped meanwhile has more to do */
            told = true;
            how = GOES_ON;
        }
        if (d->slices.first) how = GOES_ON;
        if (told || how != WAITS) d->after(d->arg);
    }
    return NULL;
}

static uint64_t monotonic_ns(void *arg) { return hn_serve_ns(); }

hone_status hn_desk_new(hn_desk **out, void (*after)(void *arg), uint64_t (*now)(void *arg), void *arg, hone_error *err)
{
    *out = NULL;
    hn_desk *d = calloc(1, sizeof *d);
    if (!d) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the computing thread");
    d->after = after;
    d->now = now ? now : monotonic_ns;
    d->arg = arg;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->more, NULL);

    int failed = pthread_create(&d->thread, NULL, compute, d);
    if (failed) {
        pthread_cond_destroy(&d->more);
        pthread_mutex_destroy(&d->lock);
        free(d);
        return HN_FAIL(err, HONE_E_NOMEM, "computing thread: %s", strerror(failed));
    }
    *out = d;
    return HONE_OK;
}

void hn_desk_do(hn_desk *d, hn_task *t)
{
    pthread_mutex_lock(&d->lock);
    hn_task_push(&d->queue, t);
    pthread_cond_signal(&d->more);
    pthread_mutex_unlock(&d->lock);
}

void hn_desk_add(hn_desk *d, hn_desk_model *m)
{
    hn_desk_model **at = &d->models;
    if (d->models) hone_scheduler_beside(m->scheduler, d->models->scheduler);
    while (*at) at = &(*at)->next;
    m->next = NULL;
    *at = m;
}

void hn_desk_remove(hn_desk *d, hn_desk_model *m)
{
    hone_scheduler_beside(m->scheduler, NULL);
    for (hn_desk_model **at = &d->models; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            return;
        }
}

void hn_desk_free(hn_desk *d)
{
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    d->ends = true;
    pthread_cond_signal(&d->more);
    pthread_mutex_unlock(&d->lock);

    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->more);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
