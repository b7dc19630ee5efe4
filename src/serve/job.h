/* job: one request from its body to its last byte. It wanders: the event thread makes it, a worker reads it and makes
 * tokens of it, the desk computes and says what comes, the event thread hands that to the client and frees it. At any
 * moment one of them has it; what the others need of it is constant, or comes in parcels. Refuses to know what an API
 * looks like (ask.h). */
#ifndef HN_JOB_H
#define HN_JOB_H

#include "serve/http.h"
#include "serve/server.h"
#include "serve/shelf.h"

/* What was said since the last parcel, on its way from the desk to the event thread. */
typedef struct hn_parcel {
    hn_task task;
    struct hn_job *job;
    hn_arena *arena; /* of texts and tokens */
    hn_say *say;     /* [n] malloc'ed */
    size_t n, cap;
    bool begins;    /* the request was accepted */
    bool last;      /* nothing follows; then usage or failure */
    hn_usage usage; /* at this time */
    bool failed;
    hn_refusal failure;
} hn_parcel;

/* One prompt of a job. */
typedef struct hn_run {
    struct hn_job *job;
    int32_t index;
    int32_t *ids;     /* [n] malloc'ed by the library */
    size_t n, mark;   /* ids; those of messages, 0: not known (hone_request) */
    const char *text; /* as it is echoed; may be NULL */
    size_t len;
    hone_chat_text rendered; /* of a conversation */
    uint64_t request;        /* at the scheduler; 0: none */
    int32_t n_cached, n_done;
    bool truncated; /* something was left out of an infill's prompt */
    bool seen;      /* it was begun with, at t_seen */
    uint64_t t_seen;
    int32_t n_ended;   /* of its choices */
    float *logprob;    /* [n] of a prompt whose probabilities are wanted; NaN: none */
    hone_logprob *top; /* [n][top_logprobs] */
    int32_t *n_top;    /* [n] */
} hn_run;

/* One answer to a prompt. */
typedef struct hn_strand {
    hn_run *run;
    int32_t choice;
    hone_reply *reply;     /* of a conversation */
    bool turned;           /* its turn ended, and ignore_eos wants more: the rest is read as a text */
    hone_stream *stream;   /* of a text */
    hone_matcher *matcher; /* of a text that has a form */
    int32_t slot;          /* the scheduler's; -1: none yet */
    bool echoed, ended, called;
    uint64_t t_last;                       /* of its last token; 0: none yet */
    int32_t n_token, n_reasoning, n_first; /* n_first: of the job's first step with a token */
    hn_said_token *held;                   /* [n_held] tokens whose text is held back … */
    size_t n_held, cap_held;
    int32_t n_dropped; /* … and so many came before them */
    char *tail;        /* the last bytes, to tell which stop string they end in */
    size_t n_tail, cap_tail;
    int32_t *kept; /* [n_kept] ids of prompt and answer, where they are to be told */
    size_t n_kept, cap_kept;
    hn_why why;
    const char *stop_word;
} hn_strand;

typedef struct hn_job {
    hn_server *server;
    hn_task task;      /* crew and loader */
    hn_task desk_task; /* to the desk, once at a time */
    hn_task read_task; /* to the event thread: the body was read */
    hn_task stop_task; /* cancelling */
    hn_task hold_task; /* a client that does not take what it is sent; at the desk where `holding` */
    _Atomic bool hold, holding;
    hn_exchange *x;
    const hn_voice *voice;
    hn_ask ask;
    hn_head head;
    char id[40];
    hn_book *book_wanted;
    hn_book *book;       /* taken; NULL: not yet */
    double load_ms;      /* that its loading took */
    _Atomic bool waits;  /* for its loading: who clears it answers */
    uint64_t client;     /* for turns */
    bool effort_ignored; /* the template knows none */
    const char *adapter; /* named by the model, a part of its name; NULL */
    hn_book_format *format;
    hone_grammar *grammar;
    hone_adapter **adapters; /* [n_adapters] of the request, in use, times scales; ids in the model's list */
    float *scales;
    int32_t *adapter_ids;
    size_t n_adapters, n_adapter_ids; /* taken: also those whose scale is 0 */
    hone_bias *bias;
    size_t n_bias;
    hn_run *run; /* [n_run] */
    size_t n_run;
    hn_strand *strand; /* [n_run × ask.n] */
    size_t n_strand;
    uint64_t t_begin, t_queued, deadline; /* ns, monotonic; deadline 0: none */

    /* embeddings: vectors [n_rows][n_dim], so many inputs and rows of them computed; a row of each token where each is
     * wanted (row_count [n_run]), else one of each input */
    hone_pooling pooling;
    float *vectors;
    int32_t *row_count;
    int32_t n_dim;
    size_t n_rows, n_embedded, rows_embedded;

    /* the desk's */
    struct hn_job *next_dirty;
    bool dirty, computing, over;
    size_t n_queued; /* prompts at the scheduler, ended ones too */
    size_t n_open;   /* strands that have not ended */
    hn_parcel *parcel;
    uint64_t t_prompt, t_first, t_last;
    uint64_t first_step;                        /* that t_first is of */
    int32_t n_completion, n_reasoning, n_first; /* n_first: of that step */
    bool failed, cancelled;
    hn_refusal failure;
    hn_parcel spare; /* the last parcel, where there is no other */
    hn_bytes body;   /* of an ask that generates nothing: the answer */

    /* the event thread's */
    struct hn_job *next_open, **at_open;
    void *state;        /* of the voice's stream */
    bool begun;         /* the stream's head was sent */
    bool voiced;        /* and its voice has begun */
    bool gone;          /* so is the client */
    bool answered;      /* while it waited for its model; x is no more */
    bool leaves;        /* its model, which it needs no more */
    bool stopped;       /* the desk was told */
    _Atomic bool quits; /* the same, for who is in the midst of computing */
    bool held;          /* it was once told to hold */
    _Atomic bool ended; /* by whoever asked for it: it is told so */
    bool broken;        /* frames were lost for want of memory: the stream ends without its end */
    _Atomic bool runs;  /* the desk has begun with it */
    const char *route;  /* for the counters */
    uint64_t t_sent;
} hn_job;

/* A request for a voice has come: answers it, sooner or later. Event thread. */
void hn_job_begin(hn_server *s, hn_exchange *x, const hn_voice *voice);
/* Every now and then: signs of life on silent streams, the end of those who waited too long for their model. Event
 * thread. */
void hn_job_tick(hn_server *s);
/* Those that ask for no more than to have b loaded and wait for it are answered, 409. Event thread. */
void hn_job_withdraw(hn_server *s, const hn_book *b);
/* So many requests may wait for what generation does not queue. */
int hn_job_most_waiting(const hn_server *s);
/* Ends the response of this id, which is told so; NULL: there is none. Event thread. */
const hn_job *hn_job_end_response(hn_server *s, const char *id);
/* Tells the desk to stop those that wait (all false) or all that runs. Event thread. */
void hn_job_stop_all(hn_server *s, bool all);

/* job_read.c, on a worker: from the body to runs and strands. False: *r. */
bool hn_job_read(hn_job *j, hn_refusal *r);
/* The same, behind the model's loading. */
bool hn_job_prepare(hn_job *j, hn_refusal *r);
/* Tokens of texts and ids, one behind the other; flags of hone_tokenize: what is added is added to the first alone. */
bool hn_run_add_pieces(hn_run *run, const hn_ask_prompt *p, int flags, hn_refusal *r);
/* What was found for an ask that generates nothing. */
bool hn_job_find(hn_job *j, hn_bytes *o, hn_refusal *r);

/* job_embed.c: texts to tokens and vectors to what was found, on a worker; between that, behind hn_job_submit_embed,
 * the desk computes a slice of it a round, in turn with other jobs, until all texts are there; then the job's task is
 * done once more. False: *r, the queue is full. */
bool hn_job_read_embed(hn_job *j, hn_refusal *r);
bool hn_job_submit_embed(hn_job *j, hn_refusal *r);
bool hn_job_find_embed(hn_job *j, hn_found *f, hn_refusal *r);
/* Adds those that are computed, one at a time, and those that wait. Any thread. */
void hn_job_count_embeds(const hn_server *s, uint64_t *running, uint64_t *waiting);
static inline bool hn_job_embeds(const hn_job *j)
{
    return j->ask.kind == HN_ASK_EMBED || j->ask.kind == HN_ASK_RERANK;
}

/* Does it write an answer? (Known once it is read.) */
static inline bool hn_job_writes(const hn_job *j)
{
    return j->ask.kind == HN_ASK_CHAT || j->ask.kind == HN_ASK_TEXT || j->ask.kind == HN_ASK_INFILL;
}

/* ollama's way to have a model unloaded. */
static inline bool hn_job_unloads(const hn_job *j) { return j->ask.kind == HN_ASK_LOAD && j->ask.keep_alive_ms == 0; }

/* job_desk.c, on the desk. */
void hn_job_submit(void *job);
void hn_job_cancel(void *job);
void hn_job_hold(void *job); /* or to go on, as its `hold` says */
/* Hands on what was said in a round. */
void hn_job_flush(hn_server *s);
/* Adds an id to what the end tells. */
bool hn_strand_keep(hn_strand *s, int32_t id);
/* Hands a parcel to the event thread, which then has to be woken (hn_serve_wake). Any thread. */
void hn_job_send(hn_parcel *b);

/* 400: somebody asked for its end. Returns false. */
bool hn_job_ended(hn_refusal *r);
/* 504: it was not answered in time. Returns false. */
bool hn_job_late(const hn_job *j, hn_refusal *r);

/* Adds what is said; texts are copied. False: no memory. */
bool hn_parcel_say(hn_parcel *b, const hn_say *say);
void hn_parcel_clear(hn_parcel *b);

#endif
