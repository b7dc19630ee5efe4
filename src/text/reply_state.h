/* reply_state: the inside of an answer that is read, which reply.c (what was said) and reply_mask.c (what may be said
 * next) share. */
#ifndef HN_REPLY_STATE_H
#define HN_REPLY_STATE_H

#include "text/call_values.h"
#include "text/matcher.h"
#include "text/reply.h"
#include "text/stops.h"
#include "text/text_priv.h"

enum { HN_REPLY_HEADER_MAX = 256 };

typedef struct hn_reply_piece { /* of the parts of one call: text[begin, …) */
    hone_part part;
    size_t begin;
    int32_t call;
    size_t id;             /* place of its id in r->ids; SIZE_MAX: none */
    size_t token, n_token; /* of r->token */
} hn_reply_piece;

/* Text that knows for each byte the number of the token that it came from; -1: none, it is the prompt's or hone's. */
typedef struct hn_traced {
    char *p;
    int32_t *of;
    size_t n, cap;
} hn_traced;

struct hn_reply {
    const hn_vocab *v;
    const hn_reply_format *f;
    hn_stream *stream; /* ends at the format's own end of a turn */
    hn_stops stops;    /* the caller's: they are looked for in what is shown as text, not in reasoning and calls */
    size_t stop;       /* the one that ended it */
    hn_traced held;    /* text that may become one */
    hone_part held_of; /* the part it belongs to */
    hn_reply_state state;
    unsigned group; /* of the mark that opened the reasoning */
    bool first;     /* only blanks so far in this part … */
    bool skip;      /* … which are no part of it */
    bool prompting; /* reading the prompt: all marks are text, and nothing ends */
    bool wrapped;   /* the answer has a beginning of its own, so it may have an end */
    bool announced; /* a mark began the header, so its text is no part of the answer */
    hone_reply_end end;
    char header[HN_REPLY_HEADER_MAX];       /* fields, each behind a unit separator */
    int32_t header_of[HN_REPLY_HEADER_MAX]; /* as of hn_traced */
    size_t n_header, n_given;               /* n_given: written by the prompt */
    hn_traced pend;                         /* text in which a mark may have begun */
    hn_traced blank;                        /* white space that may turn out to belong to nothing */
    hn_traced out;
    int32_t n_pushed, told; /* tokens that have come; number of the last that a text part has named */
    int32_t *token;         /* [n_token] that the parts name */
    size_t n_token, cap_token;
    hn_reply_piece *piece;
    hone_reply_part *part;
    size_t n_piece, cap_piece;

    /* calls of tools */
    hn_call_kit *kit; /* what may be called; NULL: calls are shown as they were written */
    hn_call_reader *reader;
    hn_traced fed;         /* what of the answer the reader has, as far as it may turn out to be text */
    bool calling;          /* the text is the reader's */
    bool silent;           /* nothing may be called: what looks like a call is text */
    bool barred;           /* what stands first in pend was no call */
    hn_reply_mark trigger; /* begins calls */
    /* Where that is a token with text behind it, the text alone: some models leave the token out. */
    hn_reply_mark bare_call;
    hn_grown before_bare; /* what was left out … */
    size_t given;         /* … and how much of it the reader has got in its place */
    hn_grown thought;     /* of reasoning, from where a call's token came in it, with tokens as marks have them */
    hn_grown ids;         /* of the calls in this piece, each with its NUL */

    /* what may come next: reply_mask.c */
    bool raw;      /* reasoning is text, with its marks */
    bool reasoned; /* reasoning has ended */
    bool padded;   /* blanks between reasoning and the form have come */
    /* how far the answer has come in what it must be: its form, or calls that are required; and, beside a form, calls
     * that may come instead. NULL: it need not be, or is not any more */
    hn_matcher *must[2];
    int of_calls;     /* which of them is calls; -1: none, and a call that comes is none of what the answer must be */
    hn_matcher *call; /* how far a call has come that the model began; NULL: none, or it is not held to its schema */
    hn_grown since;   /* what of it has come before that was known */
    bool collect, one_call, only_end, headers; /* since goes on; one call is enough, and has come; must is of headers */
    const hn_token_tree *tree;                 /* where there may be masks */
    int64_t left;              /* tokens that may come, where the answer is to be whole then; below 0: any number */
    int32_t budget, n_thought; /* tokens of reasoning: allowed (below 0: any number), and come */
    hn_ids closing;            /* tokens that end reasoning where the budget is spent … */
    size_t n_closed;           /* … and how many of them have come */
};

/* reply.c */
bool hn_reply_counts(const hn_reply *r, const hn_reply_mark *m, bool first);
const hn_reply_mark *hn_reply_mark_of(const hn_reply *r, int32_t id); /* that counts here; NULL: none */

/* The channel that a header of gpt-oss names, as far as it has come; NULL: it names none, or is that of a call. */
const char *hn_reply_channel(const hn_reply *r, size_t *n);

/* reply_mask.c. Is a call still something that the answer may be? May it be that or its form, as far as it has come? */
bool hn_reply_may_call(const hn_reply *r);
bool hn_reply_undecided(const hn_reply *r);
/* Before a token is read: whether it may come. HONE_E_ARG: it may not; nothing has changed. */
hone_status hn_reply_take(hn_reply *r, int32_t id, hone_error *err);
/* The answer's text begins, with the rest of a token: what is in pend [from …) and held by the stream. */
hone_status hn_reply_begin_text(hn_reply *r, size_t from, hone_error *err);
/* A call begins with this text, behind what was left out of it (NULL: nothing, it is sure to be one): it is held to the
 * grammar of calls from here on, or from its name. */
hone_status hn_reply_arm(hn_reply *r, const hn_grown *left_out, const char *s, size_t n, hone_error *err);
/* The reader has gone on: the call is one now, or is over. */
hone_status hn_reply_calls_on(hn_reply *r, hone_error *err);
hone_status hn_reply_hold_new(hn_reply *r, const hn_reply_setup *p, hone_error *err);
void hn_reply_mask_free(hn_reply *r);

#endif
