/* shelf: the models of a server by their names: loaded when they are asked for, as many as may be at once, the one not
 * used for longest given up for another, never one that is in use. Each that is loaded has a scheduler at the desk.
 * Refuses to know requests. */
#ifndef HN_SHELF_H
#define HN_SHELF_H

#include "serve/adapter_list.h"
#include "serve/ask.h"
#include "serve/desk.h"

typedef enum hn_book_state { HN_BOOK_UNLOADED, HN_BOOK_LOADING, HN_BOOK_LOADED, HN_BOOK_FAILED } hn_book_state;

typedef struct hn_shelf hn_shelf;

/* So many texts become vectors at once, of so many tokens together, or a longer one alone. */
enum { HN_BOOK_TEXTS = 8, HN_BOOK_TEXT_TOKENS = 512 };

/* How answers are marked, as found with some variables of the template. */
typedef struct hn_book_format {
    hone_chat_format *format;
    char *variables; /* "": none */
    bool tools;      /* for answers that may call some */
    bool large;      /* its variables: it goes with its last user */
    int users;       /* under the shelf's lock */
    struct hn_book *book;
    struct hn_book_format *next;
} hn_book_format;

/* One model. Names and path never change; what is behind `loaded` holds while somebody has taken it. */
typedef struct hn_book {
    hn_shelf *shelf;
    char *name, *path;
    hn_book_state state;             /* under the shelf's lock, as are the next five */
    int users, lookers;              /* lookers: those of the users who only look */
    int takers;                      /* who waits for it, or loads it */
    uint64_t used;                   /* when last, on the shelf's clock */
    uint64_t used_ns;                /* when a request last waited for it, or ended with it */
    const struct hn_shelf_model *of; /* as it was listed; NULL: of a folder */
    uint64_t promised;               /* bytes of cache that it may come to hold; under the lock, as are the next */
    uint64_t weights;                /* bytes of them that a token reads; 0: it was never opened */
    char why[1024];                  /* HN_BOOK_FAILED: why; with its status */
    hone_status why_code;
    int64_t created;    /* seconds since 1970: the file's time */
    uint64_t file_size; /* bytes */

    /* loaded */
    hone_model *model;
    hone_model_info info;
    hn_desk_model desk;
    int32_t n_ctx;
    char fingerprint[64]; /* of answers: build, kernel level, model */
    const char *chat_template;
    bool assumed;        /* the template: the file has none */
    bool system;         /* it takes a message of the system */
    char *quiet[2];      /* its variables where nobody asked for thoughts, without tools and with; NULL: no switch */
    hone_session *embed; /* of embeddings; made at the first, on the desk's thread */
    int32_t n_embed;     /* its positions: the longest text */
    uint64_t embed_room; /* bytes that it may come to hold; 0: as many as it asks for */
    hn_desk_pace embed_pace;
    hone_context *shelf_ctx;
    hone_kv_cache_type shelf_cache;
    bool shelf_paging;
    hone_pooling shelf_pooling;
    hn_book_format *formats; /* by their variables, the one used last first; under the shelf's lock */
} hn_book;

typedef struct hn_shelf_params {
    const struct hn_shelf_model {
        const char *name, *path;
        const char *const *aliases; /* [n_aliases] further names */
        size_t n_aliases;
        const char *chat_template; /* NULL: as for all */
        int32_t n_ctx;             /* 0: as for all */
        int32_t ttl_s;             /* 0: as for all; -1: it stays */
        hone_pooling pooling;      /* HONE_POOL_FILE: as for all */
    } * models;                    /* [n_models], at least one; the first is meant where a request names none */
    size_t n_models;
    const char *folder;      /* instead, or beside: its *.gguf files, by their stems; NULL: none */
    int32_t max_loaded;      /* at once; 0: 4 */
    uint64_t weights_budget; /* bytes that the weights of those may be together; 0: this machine's memory */
    bool no_autoload;        /* for jobs: requests load nothing */
    int32_t ttl_s;           /* a model that no request used for so many seconds is unloaded; 0: it stays */
    bool strict;             /* a name that is none of these is refused, also where there is one model */
    hone_context *ctx;
    hn_desk *desk;
    hone_model_params model;
    hone_scheduler_params scheduler; /* session.n_ctx 0: as long as the model was trained for, as far as memory goes;
                                        .cache_budget: of all models that are loaded at once, together, in equal parts;
                                        0: hn_shelf_cache_room */
    const char *chat_template;       /* NULL: each model's own */
    hone_pooling pooling;            /* of embeddings; HONE_POOL_FILE: as each model says */
    const hn_adapter_file *loras;    /* [n_loras] of the first model */
    size_t n_loras;
    const char *lora_folder; /* below it clients may load more of them; NULL: they may not */
} hn_shelf_params;

/* Copies names and paths, not what else is said of models, which must live as long; opens nothing. HONE_E_ARG: no
 * model, one name twice. HONE_E_IO: a folder. */
hone_status hn_shelf_new(hn_shelf **out, const hn_shelf_params *p, hone_error *err);
/* Behind the desk's end: schedulers are freed here. */
void hn_shelf_free(hn_shelf *s);

/* Bytes for caches where nobody says: half of what is available beside weights, which are files and count as available
 * whether they are in memory or not; an eighth of it at least. */
uint64_t hn_shelf_cache_room(uint64_t available, uint64_t weights);

size_t hn_shelf_count(const hn_shelf *s);
hn_book *hn_shelf_at(const hn_shelf *s, size_t i);

/* The model that a request means: "NAME", "NAME:ADAPTER", "ADAPTER", or NULL. *adapter: the adapter that is named, a
 * part of name; NULL: none is. False: *r, model_not_found. */
bool hn_shelf_find(hn_shelf *s, const char *name, hn_book **out, const char **adapter, hn_refusal *r);
/* The model that is called so, or has it as an alias; NULL: none. */
const hn_book *hn_shelf_named(const hn_shelf *s, const char *name);
/* What adapters the first model has, whether it is loaded or not; those of another model: NULL, it has none. */
hn_adapter_list *hn_shelf_adapters(const hn_shelf *s);
hn_adapter_list *hn_book_adapters(const hn_book *b);
/* Takes a loaded model to look at it; false: it is not loaded, nothing was done. That counts as no use: neither who is
 * evicted nor idle time depend on it, and who unloads it waits for hn_shelf_looked. Not behind what the loader does. */
bool hn_shelf_try(hn_book *b);
void hn_shelf_looked(hn_book *b);
/* The same for a request that is to run: false also where another model waits for room, which would come to no end if
 * those that are loaded went on being taken. hn_shelf_take then, behind the one that waits. Where it was used:
 * hn_shelf_touch before hn_shelf_give. */
bool hn_shelf_try_fair(hn_book *b);
/* Why one of these did not take it, for a client that does not wait: 503. Returns false. */
bool hn_shelf_refuse(hn_book *b, hn_refusal *r);
/* Takes it, loads it before, waits for room, for which those not used for longest go; not on the desk's or the event
 * thread. Waits no longer than *wanted holds (hn_shelf_stir behind its change; NULL: always). False: *r says why. */
bool hn_shelf_take(hn_book *b, const _Atomic bool *wanted, bool may_load, hn_refusal *r);
/* *r: it is not loaded, and nobody loads it but those who are told to. */
bool hn_shelf_refuse_unloaded(const hn_book *b, hn_refusal *r);
void hn_shelf_give(hn_book *b);
/* Who has taken it and was answered is soon to give it, by hn_shelf_looked: until then it counts as one who looks, and
 * who is to unload it behind that answer waits for it. It was used now. */
void hn_shelf_leave(hn_book *b);
/* Those who wait look again whether they are wanted. Any thread. */
void hn_shelf_stir(hn_shelf *s);
/* Nothing is loaded and nobody waits any more; a load that has begun is given up as soon as it asks. Any thread. */
void hn_shelf_stop(hn_shelf *s);
/* Pauses of the models that were unloaded since. On the desk's thread: what its models count is not in it, and what it
 * no longer has is. */
uint64_t hn_shelf_preempted(const hn_shelf *s);
/* Unloads it; false: it is in use, *r says so. As hn_shelf_take. While it is loaded or unloaded by another thread this
 * waits, or, with loading, sets *loading and returns false at once, without *r. */
bool hn_shelf_unload(hn_book *b, bool *loading, hn_refusal *r);

/* A request ends with it: it was used now, its idle time begins anew. The caller has taken it. */
void hn_shelf_touch(hn_book *b);
/* Seconds until it is unloaded if nobody uses it from now on; -1: it stays. */
int64_t hn_book_idle_left(hn_book *b, uint64_t now);
/* Has a model been idle for longer than it may? Any thread, at once. Unloads such; as hn_shelf_take. */
bool hn_shelf_has_idle(hn_shelf *s, uint64_t now);
void hn_shelf_unload_idle(hn_shelf *s, uint64_t now);

/* State at this moment; why [1024] of HN_BOOK_FAILED, else ""; may be NULL. */
hn_book_state hn_book_look(hn_book *b, char *why);
/* What a model is served with as the shelf was told, which needs no file: pooling and chat template. */
void hn_book_settings(hn_book *b, const hn_shelf_params *p);
/* The template of one whose file has none, and nobody said one: ChatML, or RWKV's. Behind the settings. */
void hn_book_assume(hn_book *b);
/* The folders of its file, and of the adapters that the server was started with, wherever they stand in words. */
void hn_book_hide_folders(const hn_book *b, char *words);
/* The last part of a path. */
const char *hn_shelf_file_name(const char *path);
/* Does its chat template use this word? The caller has taken the book, or loads it. */
bool hn_book_template_names(const hn_book *b, const char *word);
/* How its template marks answers, with these variables (JSON or NULL), and with tools where there are some, for which a
 * model may have another template. Derived where it is not among the last few. The caller has taken the book, and gives
 * the format back before it. */
hone_status hn_book_format_take(hn_book *b, const char *variables, const char *tools, hn_book_format **out,
                                hone_error *err);
void hn_book_format_give(hn_book_format *f);

#endif
