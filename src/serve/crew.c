/* The threads of crew.h: a queue, a lock, and those who wait for it. */
#include "serve/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 16 };

struct hn_crew {
    pthread_mutex_t lock;
    pthread_cond_t more;
    hn_task_queue queue;
    bool ends;
    pthread_t thread[MOST_THREADS];
    int n;
};

uint64_t hn_serve_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void hn_task_push(hn_task_queue *q, hn_task *t)
{
    t->next = NULL;
    if (q->last) q->last->next = t;
    else q->first = t;
    q->last = t;
}

hn_task *hn_task_pop(hn_task_queue *q)
{
    hn_task *t = q->first;
    if (!t) return NULL;
    q->first = t->next;
    if (!q->first) q->last = NULL;
    t->next = NULL;
    return t;
}

static void *work(void *arg)
{
    hn_crew *c = arg;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        hn_task *t = hn_task_pop(&c->queue);
        if (t) {
            pthread_mutex_unlock(&c->lock);
            t->fn(t->arg);
            pthread_mutex_lock(&c->lock);
        } else if (c->ends) {
            break;
        } else {
            pthread_cond_wait(&c->more, &c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

hone_status hn_crew_new(hn_crew **out, int n_threads, hone_error *err)
{
    *out = NULL;
    hn_crew *c = calloc(1, sizeof *c);
    if (!c) return HN_FAIL(err, HONE_E_NOMEM, "no memory for worker threads");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);

    while (c->n < n_threads && c->n < MOST_THREADS) {
        int failed = pthread_create(&c->thread[c->n], NULL, work, c);
        if (failed) {
            hn_crew_free(c);
            return HN_FAIL(err, HONE_E_NOMEM, "worker thread: %s", strerror(failed));
        }
        c->n++;
    }
    *out = c;
    return HONE_OK;
}

void hn_crew_do(hn_crew *c, hn_task *t)
{
    pthread_mutex_lock(&c->lock);
    hn_task_push(&c->queue, t);
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
}

bool hn_crew_undo(hn_crew *c, hn_task *t)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    hn_task_queue all = c->queue;
    c->queue = (hn_task_queue){ 0 };
    for (hn_task *o; (o = hn_task_pop(&all));) {
        if (o == t) found = true;
        else hn_task_push(&c->queue, o);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void hn_crew_free(hn_crew *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->ends = true;
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->lock);

    for (int i = 0; i < c->n; i++) pthread_join(c->thread[i], NULL);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
