/* reply: what a model says, taken apart while it comes: reasoning, the answer, commentary, calls of tools. How a
 * template marks them is found out by rendering small conversations with it (hn_reply_format_make), so a new tag needs
 * no line here; a small table knows the formats that rendering does not show. One machine reads all of them.
 *
 * A mark that is one special token of the vocabulary counts as that token alone: the same text, spelt in other tokens,
 * stays text. Marks that the vocabulary has no token for are looked for in the text. Refuses to know what becomes of
 * the parts. */
#ifndef HN_REPLY_H
#define HN_REPLY_H

#include "text/chat.h"
#include "text/calls.h"

/* ---- how a template marks the parts of an answer --------------------------------------------------------- */

/* Where a reply stands. HEADER: between the beginning of a message and its text, as in <|start|>…<|message|>. */
typedef enum hn_reply_state {
    HN_REPLY_TEXT,
    HN_REPLY_REASONING,
    HN_REPLY_HEADER,
    HN_REPLY_COMMENTARY,
    HN_REPLY_CALL
} hn_reply_state;

typedef enum hn_reply_act {
    HN_REPLY_OPEN,   /* reasoning begins */
    HN_REPLY_CLOSE,  /* and ends; the answer follows */
    HN_REPLY_START,  /* a message begins: its role */
    HN_REPLY_FIELD,  /* the next field of a header: its channel, what its text is */
    HN_REPLY_BODY,   /* the header ends; what it said decides on the text behind it */
    HN_REPLY_SAY,    /* the answer begins */
    HN_REPLY_UNSAY,  /* its wrapper ends */
    HN_REPLY_TOOLS,  /* calls begin */
    HN_REPLY_FINISH, /* a message ends, and with an answer the turn */
} hn_reply_act;

typedef struct hn_reply_mark {
    char text[44];
    int32_t id;    /* the special token that it is, -1: looked for in the text */
    uint8_t act;   /* hn_reply_act */
    uint8_t from;  /* bits 1 << hn_reply_state where it counts */
    uint8_t group; /* OPEN and CLOSE that belong together */
    bool first;    /* counts only where nothing but blanks came before */
} hn_reply_mark;

enum { HN_REPLY_MARKS = 32, HN_REPLY_END = 48 };

typedef struct hn_reply_format {
    hn_reply_mark mark[HN_REPLY_MARKS];
    int n;
    const char *kind;       /* "tags", "harmony", "recipient", "channel", "begin" */
    char end[HN_REPLY_END]; /* text that ends a turn; "": the end tokens do */
    int32_t end_id;         /* token that does, beside the vocabulary's own; -1: none */
    bool derived;           /* the reasoning marks were seen in a rendering, and not only in the table */
} hn_reply_format;

/* Finds the format of a template. t, source: the template; c: bos, eos, variables and time of its renderings, nothing
 * else is read. v may be NULL: marks are text then. HONE_E_NOMEM only; what cannot be rendered shows nothing. */
hone_status hn_reply_format_make(hn_reply_format *out, const hn_jinja *t, hone_str source, const hn_chat *c,
                                 const hn_vocab *v, hone_error *err);
/* {"kind", "reasoning": [[open, close] …], "end" …}: for people and logs. New reference; NULL: out of memory. */
json_t *hn_reply_format_json(const hn_reply_format *f, const hn_vocab *v);

/* Variables of a template that make it reason or not: how is "on", "off", or an effort ("low", "medium", "high" …).
 * *out: new object, a copy of c->variables (which may be NULL) with them. HONE_E_ARG: the template has no such switch;
 * the message says what it has. */
hone_status hn_reply_think(json_t **out, const hn_jinja *t, const hn_chat *c, const char *how, hone_error *err);

/* ---- reading an answer ----------------------------------------------------------------------------------- */

typedef struct hn_reply hn_reply;

typedef struct hn_reply_setup { /* see hone_reply_params */
    const hn_vocab *v;
    const hn_reply_format *f;
    const char *prompt;
    size_t len;
    const hone_span *input;
    size_t n_input;
    const char *const *stops;
    size_t n_stops;
    hn_call_kit *kit; /* held; NULL: calls are shown as they were written */
    bool silent;      /* what looks like a call is text */
    bool required, one_call;
    uint64_t id_seed;
    bool marks_as_text;
    hn_grammar *form;
    int32_t reasoning_budget;
} hn_reply_setup;
hone_status hn_reply_open(hn_reply **out, const hn_reply_setup *p, hone_error *err);

/* f and v must outlive it; v is needed. prompt: what the answer continues, which may have opened a part; of it only
 * what the template wrote behind the last input counts. stops: as of hn_stream_new. */
hone_status hn_reply_new(hn_reply **out, const hn_vocab *v, const hn_reply_format *f, const char *prompt, size_t len,
                         const hone_span *input, size_t n_input, const char *const *stops, size_t n_stops,
                         hone_error *err);
void hn_reply_free(hn_reply *r);
/* One token. *parts [*n]: what is known of the text now, valid until the next call. *end: HONE_REPLY_x. */
hone_status hn_reply_push(hn_reply *r, int32_t id, const hone_reply_part **parts, size_t *n, hone_reply_end *end,
                          hone_error *err);
/* Which tokens may come next: *all, or bits [n_word]. left: as of hn_matcher_mask_within, of the answer's form. */
hone_status hn_reply_mask(hn_reply *r, int64_t left, uint64_t *bits, size_t n_word, bool *all, hone_error *err);
const char *hn_reply_stop(const hn_reply *r);
int32_t hn_reply_settled(const hn_reply *r); /* as hone_reply_settled */
const char *hn_reply_notes(const hn_reply *r);
/* The answer ends here: what was held back. */
hone_status hn_reply_flush(hn_reply *r, const hone_reply_part **parts, size_t *n, hone_error *err);

#endif
