/* Threads that wait for a word to change, where the system has no call for it that programs may use: a list of who
 * waits for which. Owns the list, one of a process, and no word: a word may be gone. Refuses to know who wakes. */
#ifndef HN_PARK_H
#define HN_PARK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hn_parked {
    const _Atomic uint32_t *w;
    bool woken;
    pthread_cond_t cond;
    struct hn_parked *next;
} hn_parked;

static struct {
    pthread_mutex_t lock;
    hn_parked *first;
} hn_park_list = { PTHREAD_MUTEX_INITIALIZER, NULL };

static void hn_park_wait(_Atomic uint32_t *w, uint32_t seen)
{
    hn_parked me = { .w = w };
    if (pthread_cond_init(&me.cond, NULL) != 0) return; /* early, then */
    pthread_mutex_lock(&hn_park_list.lock);
    if (atomic_load(w) == seen) {
        hn_parked **at = &hn_park_list.first;
        me.next = *at;
        *at = &me;
        while (!me.woken) pthread_cond_wait(&me.cond, &hn_park_list.lock);
    }
    pthread_mutex_unlock(&hn_park_list.lock);
    pthread_cond_destroy(&me.cond);
}

static void hn_park_wake(const _Atomic uint32_t *w, int n)
{
    pthread_mutex_lock(&hn_park_list.lock);
    for (hn_parked **at = &hn_park_list.first, *p; n > 0 && (p = *at) != NULL;) {
        if (p->w != w) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->woken = true;
        pthread_cond_signal(&p->cond); /* within the lock: it is on the stack of who wakes up */
        n--;
    }
    pthread_mutex_unlock(&hn_park_list.lock);
}

#endif
