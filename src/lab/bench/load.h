/* load: clients of a server, as many at once as are asked for, and what each of them waits for: the first word, each
 * further one, the end. Speaks /v1/completions over plain HTTP, which hone's and other servers understand. Owns clients
 * and their clocks; refuses to know which server it is, and what its numbers are compared with. */
#ifndef HN_LOAD_H
#define HN_LOAD_H

#include "base/base.h"
#include "lab/bench/process.h"

typedef struct hn_load_params {
    const char *url;      /* "http://HOST:PORT", HOST a name or an address */
    const char *api_key;  /* NULL: none */
    const char *model;    /* NULL: not named */
    int32_t n_clients;    /* at once */
    int32_t n_requests;   /* altogether */
    int32_t n_words;      /* of each prompt, about as many tokens; prompts differ */
    int32_t n_gen;        /* tokens of each answer: ends are ignored */
    const char *more;     /* fields of the request, ",\"name\":value…"; NULL: none */
    float temp;           /* at which they are drawn, with seed 1; 0: greedily */
    uint64_t seed;        /* of prompts: the same for the same seed and place */
    const int32_t *place; /* [n_requests] places of the requests; NULL: 0, 1, 2, … */
    bool whole;           /* answers come in one piece, not as streams: no times of texts */
    double rate;          /* open arrivals: requests a second, at random times; 0: each client asks again at once */
    bool exact;           /* an answer has n_gen tokens, no fewer: of a server that knows ignore_eos */
    int32_t timeout_s;
    bool (*stop)(void *); /* may be NULL */
} hn_load_params;

/* The prompt of a place; malloc'ed. NULL: no memory. */
char *hn_load_prompt(const hn_load_params *p, int32_t place);

/* One request; times in ns from when it came: with open arrivals that is when it was to come, though nobody was free to
 * ask. An answer without text has a problem, and so has one whose server counts more tokens than were asked for, (with
 * exact) fewer, or (without) more than the text has bytes and the server names (logprobs): its speed would be what the
 * server claims. */
typedef struct hn_load_one {
    int status;                /* of HTTP; 0: the connection failed */
    char problem[96];          /* "": none */
    bool thin;                 /* more tokens than bytes of text */
    bool opening;              /* its client's first, where clients ask again: all of these come at one moment */
    uint64_t begun;            /* ns on the clock of the run */
    uint64_t first, end;       /* until the first text, until the last byte */
    int32_t n_prompt, n_token; /* as the server counts */
    int32_t n_event;           /* pieces of text */
    int64_t n_byte;            /* of text */
    uint64_t longest_gap;      /* between two pieces */
    uint64_t hash;             /* of the answer's text */
} hn_load_one;

/* All requests of a run. */
typedef struct hn_load_run {
    hn_load_one *one; /* [n], by their places, malloc'ed */
    int32_t n, n_failed;
    uint64_t *gap; /* [n_gap] all times between two pieces, malloc'ed */
    size_t n_gap;
    double seconds;            /* from the first request's beginning to the last one's end */
    int64_t n_token, n_prompt; /* of those that did not fail */
    char lie[80];              /* why its times are not believed; "" */
} hn_load_run;

/* HONE_E_ARG: a url that is none. HONE_E_NETWORK: no connection at all. HONE_E_FORMAT: a server is there, but all of
 * its answers have a problem. HONE_E_INTERRUPTED. What fails later is in its request. */
hone_status hn_load(hn_load_run *out, const hn_load_params *p, hone_error *err);
void hn_load_free(hn_load_run *r);

/* What answers are held against: those to the same requests, asked again by one client that nobody disturbs. Of each
 * load a few: it is to be seen that they depend on it, not how often. */
enum { HN_LOAD_AGAIN = 4 };
typedef struct hn_load_proof {
    uint64_t seed;                /* of the prompts */
    int32_t n;                    /* places that are asked for again, ascending: drawn by the seed, one of each part */
    int32_t place[HN_LOAD_AGAIN]; /* of the run's */
    int32_t n_prompt[HN_LOAD_AGAIN]; /* as the server counts */
    uint64_t hash[HN_LOAD_AGAIN];    /* of their answers; 0: there was none */
} hn_load_proof;

/* Of the texts of all answers, by their places. */
uint64_t hn_load_hash(const hn_load_run *r);
/* Keeps the answers of a run with that seed, in place of those of the run before. */
void hn_load_keep(hn_load_proof *proof, const hn_load_run *r, uint64_t seed);
/* Asks p's server for them again, whatever clients, requests and rate p names. Adds how many were others to *n_changed,
 * and how many failed to *n_failed. Errors of hn_load. */
hone_status hn_load_prove(const hn_load_proof *proof, const hn_load_params *p, int32_t *n_changed, int32_t *n_failed,
                          hone_error *err);

/* The address that a hone server has told on stderr; false: not yet. Its port is one that the system gave it, so nobody
 * can take it in between. */
bool hn_load_address(char *url, size_t cap, const hn_beside *b);

/* One request of a body of JSON to a server that is there, and all of its answer: *body [*n], malloc'ed and 0 behind
 * it, streams as their lines. status 0: no connection, or no answer that can be read; *body is NULL then. */
typedef struct hn_load_answer {
    int status;
    char *body;
    size_t n;
} hn_load_answer;
hone_status hn_load_post(hn_load_answer *out, const char *url, const char *path, const char *json, int32_t timeout_s,
                         hone_error *err);
/* n clients (at most 64) that ask the same at once, read for so many seconds, and go away, wherever the answer is. */
hone_status hn_load_leave(const char *url, const char *path, const char *json, int32_t n, double seconds,
                          hone_error *err);

#endif
