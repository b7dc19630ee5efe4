/* grammar: what a text may be, as rules over lexemes. Four notations become one (GBNF, regular expressions, choices,
 * JSON Schema): lexical parts are terms of a language (lang.h), structure is a tree of nodes with counters and rules
 * above them. Owns nodes and the checks that no dead end is left; refuses to know notations and tokens. */
#ifndef HN_GRAMMAR_H
#define HN_GRAMMAR_H

#include "text/lexeme.h"

typedef struct hone_grammar hn_grammar;
typedef uint32_t hn_gnode;
enum { HN_G_FAIL = 0, HN_G_EMPTY = 1 }; /* nothing matches; the empty text */

enum {
    HN_GRAMMAR_TEXT = 1 << 20,     /* bytes of GBNF, of a regular expression, of choices */
    HN_GRAMMAR_SCHEMA = 256 << 10, /* bytes of a JSON schema */
    HN_GRAMMAR_NODES = 100000,     /* symbols */
    HN_GRAMMAR_BYTES = 64 << 20,   /* of terms, stacks and transitions */
    HN_GRAMMAR_STEPS = 4 << 20,    /* of work while it is compiled */
    HN_GRAMMAR_AT_WORK = 64 << 20, /* of work for one token or mask */
    HN_GRAMMAR_STACKS = 1 << 14    /* ways to read a text at the same time */
};

typedef enum hn_gkind {
    HN_G_IS_FAIL,
    HN_G_IS_EMPTY,
    HN_G_IS_LEX,
    HN_G_IS_TOKEN,
    HN_G_IS_SEQ,
    HN_G_IS_ALT,
    HN_G_IS_REP,
    HN_G_IS_RULE
} hn_gkind;

typedef struct hn_gnode_data {
    uint8_t kind;
    bool quoted;   /* LEX: a JSON string */
    bool empty_ok; /* may match the empty text; known when finished */
    bool alive;    /* matches something; known when finished */
    uint32_t a, b,
        c; /* LEX: term; TOKEN: its id; SEQ: both; ALT: place, number in kids; REP: node, min, max; RULE: its number */
} hn_gnode_data;

typedef struct hn_grule {
    char *name; /* or NULL */
    hn_gnode body;
} hn_grule;

/* The parts that matcher.c reads. */
typedef struct hn_grammar_view {
    hn_langs *lang;
    const hn_gnode_data *node; /* [n_node] */
    uint32_t n_node;
    const uint32_t *kids;
    const hn_grule *rule;
    hn_gnode root;
} hn_grammar_view;
hn_grammar_view hn_grammar_look(const hn_grammar *g);

hone_status hn_grammar_new(hn_grammar **out, hone_error *err);
void hn_grammar_hold(hn_grammar *g); /* one more owner */
void hn_grammar_drop(hn_grammar *g); /* NULL allowed */
hn_langs *hn_grammar_lang(hn_grammar *g);

/* ---- building: after a failure nodes are HN_G_FAIL; hn_grammar_check tells ------------------------ */

hn_gnode hn_g_lex(hn_grammar *g, hn_lang t);    /* as it stands */
hn_gnode hn_g_string(hn_grammar *g, hn_lang t); /* a JSON string whose value it is */
hn_gnode hn_g_text(hn_grammar *g, const char *utf8);
hn_gnode hn_g_token(hn_grammar *g, int32_t id); /* this token of the vocabulary, which no bytes spell */
hn_gnode hn_g_seq(hn_grammar *g, hn_gnode a, hn_gnode b);
hn_gnode hn_g_alt(hn_grammar *g, const hn_gnode *n, size_t count);
hn_gnode hn_g_rep(hn_grammar *g, hn_gnode a, uint32_t min, uint32_t max);
hn_gnode hn_g_rule(hn_grammar *g, uint32_t rule);
uint32_t hn_g_new_rule(hn_grammar *g, const char *name, size_t len); /* its body is HN_G_FAIL until set */
void hn_g_set_rule(hn_grammar *g, uint32_t rule, hn_gnode body);
/* The term of a node that is one plain lexeme. */
bool hn_g_is_lex(const hn_grammar *g, hn_gnode n, hn_lang *t);
hone_status hn_grammar_check(const hn_grammar *g, hone_error *err);

/* Adds to what the grammar's author should be told (hone_grammar_notes). */
void hn_grammar_note(hn_grammar *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *hn_grammar_notes(const hn_grammar *g);

/* The last step: finds what matches nothing and cuts it off, refuses left recursion.
 * HONE_E_ARG: nothing matches, or a rule begins with itself, named. */
hone_status hn_grammar_finish(hn_grammar *g, hn_gnode root, hone_error *err);

/* ---- the notations ------------------------------------------------------------------------------- */

/* HONE_E_ARG: line and column, what was expected. */
hone_status hn_gbnf_compile(hn_grammar *g, const char *text, size_t len, hn_gnode *root, hone_error *err);

/* An expression of ECMAScript (with u), without what is no regular language. whole: all of the text must match; else
 * it may match anywhere in it. what: of messages. */
hone_status hn_pattern_compile(hn_langs *l, const char *text, size_t len, bool whole, const char *what, hn_lang *out,
                               hone_error *err);

typedef struct hn_schema_rules {
    bool strict;  /* unknown words and formats are refused, not noted */
    bool lenient; /* words that are not enforced are noted, not refused: what the others say is */
    bool compact; /* no white space between tokens */
} hn_schema_rules;
/* HONE_E_ARG: no JSON, or no schema; HONE_E_UNSUPPORTED: names the word by its JSON pointer. */
hone_status hn_schema_compile(hn_grammar *g, const char *text, size_t len, const hn_schema_rules *r, hn_gnode *root,
                              hone_error *err);

#endif
