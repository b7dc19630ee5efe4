/* orders: what clients tell a server, or ask it, that takes a while and is no job: models and adapters that come and
 * go, slots' files, questions that the desk answers. Each wanders between threads and comes back to the event thread,
 * which counts them: a server ends behind the last. Refuses to know what is ordered. */
#ifndef HN_ORDERS_H
#define HN_ORDERS_H

#include "base/json_tree.h"
#include "serve/ask_fields.h"
#include "serve/server.h"

/* The first member of what is ordered. */
typedef struct hn_order {
    hn_task task; /* whoever hands it on fills it */
    hn_server *server;
    hn_exchange *x;
    const char *route;   /* for the counters */
    const char *type;    /* of the answer; NULL: JSON */
    _Atomic bool wanted; /* false: it is to wait no longer (hn_shelf_take) */
    bool ok;             /* else why */
    hn_refusal why;
    void (*write)(struct hn_order *o, hn_bytes *answer); /* event thread, where ok and somebody is there to read it */
    void (*drop)(struct hn_order *o);                    /* event thread: frees all of it */

    /* the event thread's */
    bool gone, late;
    bool withdrawn;    /* what it waits for is no longer wanted, as another order said */
    bool answered;     /* before it was back; x is gone */
    uint64_t deadline; /* ns */
    struct hn_order *next, **at;
} hn_order;

/* Event thread. o: zeros but for route, type, write and drop. It is counted from now on; hn_order_back must follow. */
void hn_order_begin(hn_order *o, hn_server *s, hn_exchange *x);
/* Where it is to go on: fn(o) on a thread of the crew, or on the desk's. */
void hn_order_on_crew(hn_order *o, hn_crew *crew, void (*fn)(void *o));
void hn_order_on_desk(hn_order *o, void (*fn)(void *o));
/* It is done: o is the event thread's, which answers and drops it. Any thread. */
void hn_order_back(hn_order *o);

/* What it waits for was told to go: it waits no longer. now: it is answered at once, however long the queue is in which
 * it is. Event thread; hn_shelf_stir behind the last. */
void hn_order_withdraw(hn_order *o, bool now);

/* Those past their time wait no longer. Event thread, every now and then. */
void hn_order_tick(hn_server *s, uint64_t now);
/* Nobody waits any more. Event thread. */
void hn_order_stop_all(hn_server *s);

/* ---- bodies; event thread ---- */

/* The body as a tree, NULL where it is empty and may be. False: *r; 413 beyond 64 KiB. */
bool hn_order_body(hn_exchange *x, bool may_be_empty, json_t **out, hn_refusal *r);
/* What o has beside known, as the server's fields are: named in x-hone-ignored behind `also` ("" or a name), or
 * refused. */
bool hn_order_members(hn_server *s, hn_exchange *x, const json_t *o, const hn_field *known, const char *also,
                      hn_refusal *r);
/* A text that is not empty, the tree's own; false: it is missing, or something else. */
bool hn_order_text(const json_t *o, const char *name, const char *expected, const char **out, hn_refusal *r);

#endif
