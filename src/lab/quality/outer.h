/* outer: what stands around the engine, asked fixed questions: the tokenizer texts of every length,
 * ids as texts, samplers of every kind, masks of grammars, log-probabilities, the model's chat
 * template. A hash of each. The quality hash proves what a model answers; a build that is wrong in one
 * of these answers as before, and what it is made to say is another. Two builds compare by it, as by the
 * quality hash; the same on every machine. Knows hone.h; refuses to know sessions. */
#ifndef HN_OUTER_H
#define HN_OUTER_H

#include "base/base.h"
#include "base/json_text.h"

typedef enum hn_outer_part {
    HN_OUTER_TOKENIZER = 0,
    HN_OUTER_TEXT,
    HN_OUTER_SAMPLER,
    HN_OUTER_MASKS,
    HN_OUTER_LOGPROBS,
    HN_OUTER_TEMPLATE,
    HN_OUTER_EMBEDDINGS, /* these two of paths.c, which has sessions */
    HN_OUTER_CACHES,     /* logits with the types of cache that were not asked for */
    HN_OUTER_EDGES,      /* settings and texts at the end of what there is */
    HN_OUTER_DEPTH,      /* logits beyond the long prompt, of paths.c, too */
    HN_OUTER_SCRIPTS,    /* texts in every script, and a very long one */
    HN_OUTER_STOPS,      /* streams with none to many stops, short and long */
    HN_OUTER_PICKS,      /* samplers with none to many biases, far sequences and positions, equal logits */
    HN_OUTER_FORMS,      /* grammars of each word alone; several tokens back at once, clones, texts */
    HN_OUTER_TALKS,      /* conversations of many turns, tools, variables, and texts that spell control tokens */
    HN_OUTER_VECTORS,    /* more embeddings, of paths.c: of a long text, and plain ones */
    HN_OUTER_REPLIES,    /* what tokens of an answer are taken for; pairs to be ranked; templates of any kind */
    HN_OUTER_CHAINS,     /* settings of samplers, any two values of which meet, along many picks */
    HN_OUTER_WORDS,      /* words of 7 to 300 letters */
    HN_OUTER_FAR,        /* windows of penalties to 300, words to 9001 letters, all formats, 70 turns */
    HN_OUTER_MEANS,      /* of paths.c, too: an embedding of a text of 300 ids, of a small model */
    HN_OUTER_DRAWN,      /* questions of all kinds, drawn by a number that who compares gives both programs */
    HN_OUTER_LENGTHS,    /* of paths.c, too: embeddings of texts whose lengths are drawn by it */
    HN_OUTER_ADAPTED,    /* likewise: logits with one adapter more, at scales that are drawn by it */
    HN_OUTER_NOTATIONS,  /* every word of grammars, expressions, schemas, templates; calls in ten formats */
    HN_OUTER_CORNERS,    /* stops that begin anew within themselves; texts that formats just let in or refuse */
    HN_OUTER_NUMBERS,    /* the caller's: turns of far positions, bytes of each type */
    HN_OUTER_PARTS
} hn_outer_part;

typedef struct hn_outer {
    char hash[HN_OUTER_PARTS][12]; /* 8 hexadecimal digits; "": this model has no such part, or it was not asked */
} hn_outer;

/* All but embeddings, vectors, means, lengths, adapted, caches, depth and numbers, which stay as they are. draw: the
 * number of those that are drawn; 0: there are none of them. What a part refuses is its answer too; HONE_E_NOMEM alone
 * is returned. */
hone_status hn_outer_ask(hn_outer *out, const hone_model *m, uint64_t draw, hone_error *err);
void hn_outer_set(hn_outer *out, hn_outer_part part, uint64_t hash);
/* Of a part that is drawn: its hash begins with the number, by which alone it can be compared. */
void hn_outer_set_drawn(hn_outer *out, hn_outer_part part, uint64_t hash, uint64_t draw);
json_t *hn_outer_json(const hn_outer *a); /* {"tokenizer": "8 digits", …}; what has none is left out */
void hn_outer_read(hn_outer *out, json_t *o);
/* The first part that both tell and b answers otherwise; HN_OUTER_PARTS: none. */
hn_outer_part hn_outer_of(const hn_outer *a, const hn_outer *b);
const char *hn_outer_name(hn_outer_part part); /* HN_OUTER_PARTS: NULL */
/* The same of two of hn_outer_json, as its name or NULL; either may be NULL: from before there was one. */
const char *hn_outer_differ(json_t *a, json_t *b);
/* The parts that one of them alone tells, which nobody compares: their names with blanks, "" none. Of what is drawn
 * that is as it should be. */
void hn_outer_untold(char *dst, size_t cap, json_t *a, json_t *b);

#endif
