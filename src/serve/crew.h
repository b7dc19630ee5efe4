/* crew: a few threads that do small things off the event thread: reading JSON, rendering templates, tokenizing. What it
 * is given carries its own place in the queue, so that handing it over cannot fail. Refuses to know what it does. */
#ifndef HN_CREW_H
#define HN_CREW_H

#include "base/base.h"

uint64_t hn_serve_ns(void); /* the clock of the server's threads: monotonic */

/* One thing to do. It is its owner's again when fn is called. */
typedef struct hn_task {
    void (*fn)(void *arg);
    void *arg;
    struct hn_task *next;
} hn_task;

/* First in, first out; any thread. */
typedef struct hn_task_queue {
    hn_task *first, *last;
} hn_task_queue;
void hn_task_push(hn_task_queue *q, hn_task *t);
hn_task *hn_task_pop(hn_task_queue *q); /* NULL: empty */

typedef struct hn_crew hn_crew;
/* HONE_E_NOMEM: no memory, or the system gives no thread. */
hone_status hn_crew_new(hn_crew **out, int n_threads, hone_error *err);
/* t is done by one of the threads, in its turn. Any thread. */
void hn_crew_do(hn_crew *c, hn_task *t);
/* t will not be done; false: it was begun with, or nobody gave it to them. Any thread. */
bool hn_crew_undo(hn_crew *c, hn_task *t);
/* Does all that is queued, then ends. */
void hn_crew_free(hn_crew *c);

#endif
