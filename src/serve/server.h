/* server: one hone serve: its threads, its models, what it was told on its command line, and what it counts. */
#ifndef HN_SERVER_H
#define HN_SERVER_H

#include "serve/forms.h"
#include "serve/http.h"
#include "serve/shelf.h"
#include "serve/tally.h"

#include <pthread.h>

/* Who finds what was computed: all where only this machine asks, else each client its own. */
typedef enum hn_cache_scope { HN_CACHE_BY_ADDRESS, HN_CACHE_OF_ALL, HN_CACHE_BY_CLIENT } hn_cache_scope;

typedef struct hn_serve_params {
    hn_http_params http;   /* handler, arg and is_public are the server's */
    hn_shelf_params shelf; /* desk is the server's */
    hn_limits limits;      /* n_slots, flags and defaults; n_vocab and n_ctx are each model's */
    bool metrics, slots, ui, ollama;
    hn_tally_names metrics_compat;
    const char *slot_dir;       /* folder of slot files; NULL: there are none */
    const char *ollama_version; /* what /api/version says; NULL: that of the API that is spoken */
    hn_cache_scope cache_scope;
    int32_t drain_s, timeout_s;
    int32_t silent_ms; /* then a stream has a sign of life; 0: 10 s */
    double roof_gb_s;  /* measured read bandwidth; 0: not measured */
    void (*ready)(void *arg, const char *address);
    void *arg;
} hn_serve_params;

struct hn_job;
struct hn_order;

typedef enum hn_server_state { HN_SERVER_LOADING, HN_SERVER_READY, HN_SERVER_DRAINING } hn_server_state;

typedef struct hn_server {
    hn_serve_params p;
    hn_http *http;
    hn_crew *crew;   /* small work */
    hn_crew *loader; /* of models: one thread, which waits until others' requests end */
    hn_crew *clerk;  /* of models that are there, and so waits behind no load: unloading, adapters */
    hn_crew *filer;  /* of slots: one thread; it has taken a model, so it must not wait behind the loader */
    hn_desk *desk;
    hn_shelf *shelf;
    hn_tally *tally;
    hn_forms *forms;
    bool apart;                /* clients find what they sent themselves alone; constant */
    _Atomic int state;         /* hn_server_state */
    _Atomic int n_waiting;     /* requests that wait for the loading of their model */
    _Atomic int n_embeds;      /* of embeddings and scores: those at the desk */
    pthread_mutex_t wait_lock; /* where a job ceases to wait, and where the stream of one that waits begins */
    _Atomic uint64_t load; /* as the desk saw it last: what runs, what waits, thousandths of the cache, 16 bits each */

    /* the desk's */
    struct hn_job *dirty;

    /* between the desk, workers and the event thread */
    pthread_mutex_t back_lock;
    hn_task_queue back; /* what the event thread is to do */

    /* the event thread's */
    struct hn_job *open;
    int n_open;
    struct hn_order *orders; /* [n_orders] that are on their way */
    int n_orders;
    bool slot_file;     /* one of a slot is being written or read */
    int n_rest;         /* ticks since the last answer, up to when memory was given back */
    uint64_t drain_end; /* ns; 0: it does not drain */
    int exit_code;
    hn_task load_task;
    hn_task idle_task;     /* models that nobody uses go */
    bool idle_runs;        /* and it is on its way */
    hone_error not_loaded; /* the first model could not be: why; the loader's until its task comes back */
    hone_error failed;     /* the same, the event thread's; code HONE_OK: it was loaded */
} hn_server;

/* Serves until a signal says otherwise. *exit_code: 0, or 130 after a second signal; on failure HN_SERVE_MODEL where
 * the first model is to blame. */
enum { HN_SERVE_MODEL = -1 };
hone_status hn_serve(const hn_serve_params *p, int *exit_code, hone_error *err);

/* fn is run on the event thread, in its turn; t is the caller's own. Any thread; hn_serve_wake is called behind it. */
void hn_serve_back(hn_server *s, hn_task *t, void (*fn)(void *), void *arg);
void hn_serve_wake(hn_server *s);

/* ---- routes.c: what a path is ---- */
void hn_serve_routes(hn_server *s, hn_http_params *p);
void hn_serve_word_errors(hn_server *s);
/* The path of a voice's route as counters know it; lives as long as the program. */
const char *hn_serve_route_name(const char *path);
/* Sends a refusal in the words of the path's API, and ends the exchange. Event thread. */
void hn_serve_refuse(hn_server *s, hn_exchange *x, const hn_refusal *r);
/* The same in a few words, and what was written, which is freed; both are counted for the route. Event thread. */
void hn_serve_tell(hn_server *s, hn_exchange *x, const char *route, int status, const char *code, const char *message);
void hn_serve_json(hn_server *s, hn_exchange *x, const char *route, hn_bytes *o);

/* The header x-hone-load: RUNNING;WAITING;SHARE of the cache. Event thread. */
void hn_serve_load(const hn_server *s, hn_exchange *x);

/* 503: it shuts down. Returns false. */
bool hn_refuse_draining(hn_refusal *r);
/* 409: it waited for a model that is to go. Returns false. */
bool hn_refuse_withdrawn(hn_refusal *r);

/* ---- status.c: what is asked about the server itself; manage.c: about its models. False: no such path ---- */
bool hn_serve_status(hn_server *s, hn_exchange *x);
bool hn_serve_manage(hn_server *s, hn_exchange *x);
/* b is to be unloaded: who was told to load it and waits for that is answered, 409; requests wait on. Event thread. */
void hn_serve_withdraw(hn_server *s, hn_book *b);
/* slots.c: what slots hold, to and from files; the same */
bool hn_serve_slots(hn_server *s, hn_exchange *x);
/* HONE_E_IO: it is no folder. NULL is fine. */
hone_status hn_serve_check_slot_dir(const char *path, hone_error *err);

#endif
