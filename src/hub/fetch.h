/* fetch: requests for files and short texts, several at a time, on one thread. Owns redirects, who is told the token,
 * which addresses may be opened, waiting and trying again; refuses to know what hubs mean by what they say.
 *
 * libcurl does the transport. It is loaded when the first client is made, not when the program starts: no other command
 * pays for it, and where it is missing hn_fetch_new says so. */
#ifndef HN_FETCH_H
#define HN_FETCH_H

#include "hub/head.h"

typedef struct hn_fetch hn_fetch;

typedef struct hn_fetch_rules {
    const char *endpoint, *token; /* the token (NULL: none) goes to the endpoint's origin and nowhere else */
    const char *token_from;       /* where it was found, for messages; NULL: not said */
    bool insecure;                /* http is allowed beyond this machine */
    int32_t silence_s;            /* no byte for so long: the connection is lost */
    int32_t tries;                /* how often in a row something may fail before it is given up */
    double wait_s;                /* before the first try again; then 2, 4, 8, 8 times as long */
    bool (*stop)(void *arg);
    void (*say)(void *arg, const char *text); /* "… : trying again in 2 s"; may be NULL */
    void *arg;
} hn_fetch_rules;

/* HONE_E_NETWORK: no libcurl, with the next step. rules are copied, what they point to is borrowed. */
hone_status hn_fetch_new(hn_fetch **out, const hn_fetch_rules *rules, hone_error *err);
void hn_fetch_free(hn_fetch *h); /* calls too; NULL is accepted */

typedef enum hn_fetch_end {
    HN_FETCH_RUNNING,
    HN_FETCH_WHOLE,   /* all of the answer is there, whatever its status */
    HN_FETCH_LOST,    /* broken, silent, cut short: worth another try */
    HN_FETCH_REFUSED, /* on_head or on_body did not want it */
    HN_FETCH_FAILED   /* no use in trying again: a certificate, a redirect to where nobody may go */
} hn_fetch_end;

typedef struct hn_fetch_call {
    /* the request; borrowed until it is dropped */
    const char *accept; /* NULL: anything */
    bool ranged;
    uint64_t first, last; /* bytes=first-last */
    /* The head of the answer that is no redirect, then its bytes. False: no more of it. on_head may be NULL. */
    bool (*on_head)(struct hn_fetch_call *c);
    bool (*on_body)(struct hn_fetch_call *c, const void *p, size_t n);
    void *arg;
    /* the answer */
    hn_fetch_end end;
    hn_fetch_head head;
    char *at;      /* the address that answered; the call's until it is dropped */
    char *next;    /* Link: <…>; rel="next", joined; NULL: none */
    char why[256]; /* of LOST and FAILED, in words */
    struct hn_fetch_wire *wire;
} hn_fetch_call;

/* c, zeroed but for the request, begins. HONE_E_NETWORK: the address may not be opened. It must stay where it is until
 * hn_fetch_drop, which may be called at any time but from a callback, also after a failure to begin. */
hone_status hn_fetch_begin(hn_fetch *h, hn_fetch_call *c, const char *url, hone_error *err);
void hn_fetch_drop(hn_fetch *h, hn_fetch_call *c);
/* Moves all calls on; waits up to ms for something to happen. HONE_E_INTERRUPTED: rules.stop said so. */
hone_status hn_fetch_turn(hn_fetch *h, int ms, hone_error *err);
/* Waits, as long as rules say before the n-th try again (n from 0), or wait_s if that is not negative. */
hone_status hn_fetch_pause(hn_fetch *h, int n, double wait_s, const char *why, hone_error *err);
/* Is it worth trying again, after `end` and with this status? Not where the server wants to be left alone for longer
 * than anybody waits (HN_FETCH_MOST_WAIT_S). */
bool hn_fetch_again(const hn_fetch_call *c);
enum { HN_FETCH_MOST_WAIT_S = 900 };

/* A short text, whole, with all its tries. HONE_OK whatever the status. HONE_E_NETWORK: nothing came, or more than
 * max_bytes. Begin with {0}; hn_fetch_text_free also after failures. */
typedef struct hn_fetch_text {
    hn_fetch_head head;
    char *p; /* NUL-terminated */
    size_t n;
    char *at, *next;
} hn_fetch_text;
hone_status hn_fetch_get(hn_fetch *h, hn_fetch_text *out, const char *url, const char *accept, size_t max_bytes,
                         hone_error *err);
void hn_fetch_text_free(hn_fetch_text *t);

/* Has anything ever answered? Until something does, a hasty client tries only once. */
bool hn_fetch_answered(const hn_fetch *h);
void hn_fetch_hasty(hn_fetch *h, bool hasty);
const hn_fetch_rules *hn_fetch_rules_of(const hn_fetch *h);
/* The libcurl that is there, "8.5.0", or why there is none; for `hone version` and the like. Loads it. */
bool hn_fetch_there(const char **what);

#endif
