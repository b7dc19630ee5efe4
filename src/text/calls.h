/* calls: calls of tools in answers. How a model writes them is found out by rendering small conversations with its
 * template (hn_call_format_make), so a new format needs no line here; a small table knows those whose values have a
 * syntax of their own. One reader takes all formats apart; one grammar is made of the same record.
 *
 * In what follows text may hold tokens: the byte FF, which is in no UTF-8, and four bytes of the id. So a mark that is
 * a token of the vocabulary is that token alone, and never text that spells it. */
#ifndef HN_CALLS_H
#define HN_CALLS_H

#include "text/chat.h"
#include "text/grammar.h"

/* ---- the record ------------------------------------------------------------------------------------------ */

typedef enum hn_call_shape {
    HN_CALLS_NONE,    /* the template writes calls, and none that can be read back */
    HN_CALLS_JSON,    /* {"name": N, "arguments": J}, under any names and in any order, or {N: J} */
    HN_CALLS_NAMED,   /* N between marks, then J */
    HN_CALLS_TAGGED,  /* N between marks, then each argument between marks */
    HN_CALLS_PYTHON,  /* N(K='text', K=7) */
    HN_CALLS_GEMMA,   /* call:N{K:<|"|>text<|"|>,K:7} */
    HN_CALLS_HARMONY, /* N in the header of a message, whose text is J */
} hn_call_shape;

typedef enum hn_call_id {
    HN_CALL_ID_NONE,
    HN_CALL_ID_KEY,    /* JSON: a member */
    HN_CALL_ID_BEFORE, /* NAMED: id, id_end, N */
    HN_CALL_ID_BEHIND, /* NAMED: N, name_end, id, id_end */
    HN_CALL_ID_NAME,   /* NAMED: functions.N:0 is the id */
} hn_call_id;

enum { HN_CALL_MARK = 112, HN_CALL_KEY = 32, HN_CALL_NAME_MAX = 128 };

typedef struct hn_call_format {
    uint8_t shape, id; /* hn_call_shape, hn_call_id */
    bool own;          /* the template writes no calls: hone's form, which its prompts describe (hn_chat_own_calls) */
    bool single;       /* the template writes one call at most */
    bool bare;         /* nothing stands before a call: it is the whole answer */
    bool name_is_key;  /* JSON: {N: J} */
    bool args_text;    /* JSON: J is a string that holds it */
    bool id_first;     /* JSON: the id stands before the name, else behind the arguments */
    bool quoted;       /* TAGGED: values are JSON, strings too */
    bool cdata;        /* TAGGED: some stand in <![CDATA[ ]]> */
    uint8_t id_length; /* characters of an id; 0: any number */
    /* section_begin begin CALL end separator begin CALL end … section_end */
    char section_begin[HN_CALL_MARK], begin[HN_CALL_MARK], end[HN_CALL_MARK], separator[HN_CALL_MARK],
        section_end[HN_CALL_MARK];
    char name_end[HN_CALL_MARK], id_end[HN_CALL_MARK];
    /* TAGGED: key_begin K key_end V value_end, and again; key_end_other: where V is no string, "": the same */
    char key_begin[HN_CALL_MARK], key_end[HN_CALL_MARK], key_end_other[HN_CALL_MARK], value_end[HN_CALL_MARK];
    char name_key[HN_CALL_KEY], args_key[HN_CALL_KEY], id_key[HN_CALL_KEY];
    char warning[128]; /* why it is none although the template writes calls; "": it can be read */
} hn_call_format;

/* Whether a template shows calls of tools at all. c: bos, eos, variables and time. HONE_E_NOMEM only. */
typedef enum hn_call_habit {
    HN_CALLS_UNWRITTEN,
    HN_CALLS_WRITTEN,
    HN_CALLS_BRACKETED /* LFM2: it lists tools and takes calls as text of answers: <|tool_call_start|>[N(K=7)]<|… */
} hn_call_habit;
#define HN_CALL_BRACKET "<|tool_call_start|>["
#define HN_CALL_BRACKET_END "]<|tool_call_end|>"
hone_status hn_call_written(const hn_jinja *t, const hn_chat *c, hn_call_habit *habit, hone_error *err);

/* What ids of calls a template wants, and results beside them. */
typedef enum hn_call_ids {
    HN_CALL_IDS_ANY,
    HN_CALL_IDS_NINE,  /* Mistral: nine letters and digits */
    HN_CALL_IDS_DOTTED /* Kimi K2: functions.NAME:7, counted through the conversation */
} hn_call_ids;
enum { HN_CALL_NINE = 9, HN_CALL_LETTERS = 24 };
#define HN_CALL_DOTTED "functions."
hn_call_ids hn_call_ids_of(const hn_jinja *t);
/* n letters and digits made of h, and a NUL: out has room for n + 1. */
void hn_call_letters(char *out, size_t n, uint64_t h);

/* Finds it. c: bos, eos, variables and time of the renderings. HONE_E_NOMEM only. */
hone_status hn_call_format_make(hn_call_format *out, const hn_jinja *t, hone_str source, const hn_chat *c,
                                hone_error *err);
json_t *hn_call_format_json(const hn_call_format *f); /* new reference; NULL: out of memory */

/* ---- tools that may be called ---------------------------------------------------------------------------- */

/* A mark as the reader looks for it. */
typedef struct hn_call_mark {
    char p[2 * HN_CALL_MARK];
    size_t n;
} hn_call_mark;
#define HN_CALL_CDATA "<![CDATA["
#define HN_CALL_CDATA_END "]]>"
enum { HN_CALL_TOKEN = 5, HN_CALL_ESCAPE = 0xFF }; /* bytes of a token in text, the first of them */

typedef struct hn_call_argument { /* of a schema's properties */
    char *name;                   /* owned */
    uint32_t kinds;               /* HN_VALUE_* that it may be */
} hn_call_argument;

typedef struct hn_call_tool {
    const char *name; /* of tools */
    json_t *schema;   /* of its arguments; NULL: none is known. Borrowed */
    hone_str written; /* the same as text, while the kit is made, where it has doubles; empty: as the tree says it */
    bool strict, offered;
    hn_call_argument *argument; /* [n_argument] of TAGGED, owned */
    size_t n_argument;
    uint32_t other_kinds; /* of arguments that are none of these; 0: any */
} hn_call_tool;

typedef struct hn_call_kit { /* immutable but for its owners */
    atomic_int owners;
    hn_call_format f;
    const hn_vocab *v; /* NULL: marks are text */
    json_t *tools;
    hn_call_tool *tool;
    size_t n_tool;
    hn_call_mark section_begin, begin, end, separator, section_end, name_end, id_end, key_begin, key_end, key_end_other,
        value_end, cdata_end, trigger, quote;
    int32_t trigger_id;   /* the token that begins calls; -1: it is text */
    hn_grammar *section;  /* from the trigger on; of HARMONY the name, <|message|> and the arguments */
    hn_grammar *required; /* of an answer that is calls; of HARMONY from behind the role */
    char *notes;
} hn_call_kit;

typedef struct hn_call_ask {
    const json_t *tools;      /* array */
    const char *text;         /* what it was read from, for the digits of its numbers; NULL: nobody knows */
    const char *const *names; /* [n_names] that may be called; none: all */
    size_t n_names;
    bool one;  /* call */
    bool bare; /* no grammars are needed */
} hn_call_ask;
hone_status hn_call_kit_new(hn_call_kit **out, const hn_call_format *f, const hn_vocab *v, const hn_call_ask *ask,
                            hone_error *err);
void hn_call_kit_hold(hn_call_kit *k);
void hn_call_kit_drop(hn_call_kit *k);                                                  /* NULL allowed */
const hn_call_tool *hn_call_kit_find(const hn_call_kit *k, const char *name, size_t n); /* that is offered; or NULL */
/* text with its special tokens as such; ends: cut at one that ends the turn. */
void hn_call_encode(hn_call_mark *m, const hn_vocab *v, const char *text, bool ends);
bool hn_call_kit_marks(const hn_call_kit *k, int32_t id); /* is the token in one of the marks? */
/* call_grammar.c: both grammars and notes; what kinds of values arguments may be. */
hone_status hn_call_kit_grammars(hn_call_kit *k, bool one, hone_error *err);
hone_status hn_call_kit_kinds(hn_call_kit *k, hone_error *err);

void hn_call_put_token(char out[HN_CALL_TOKEN], int32_t id);
int32_t hn_call_get_token(const char *s); /* behind the byte FF */

/* ---- reading --------------------------------------------------------------------------------------------- */

typedef hone_status hn_call_part_fn(void *arg, hone_part part, const char *s, size_t n, int32_t call, const char *id,
                                    hone_error *err);

typedef enum hn_call_outcome {
    HN_CALLS_MORE, /* goes on */
    HN_CALLS_DONE, /* the section has ended; hn_call_rest is behind it */
    HN_CALLS_TEXT  /* it is no call: hn_call_rest is text */
} hn_call_outcome;

typedef struct hn_call_reader hn_call_reader;
hone_status hn_call_reader_new(hn_call_reader **out, const hn_call_kit *k, uint64_t id_seed, hn_call_part_fn *part,
                               void *arg, hone_error *err);
void hn_call_reader_free(hn_call_reader *r); /* NULL allowed */
/* A section begins: what is fed next begins with its first mark. calls counts on. */
void hn_call_begin(hn_call_reader *r);
/* A call of this name begins whose arguments are fed next, JSON until the end. */
hone_status hn_call_begin_named(hn_call_reader *r, const char *name, size_t n, hone_error *err);
/* More of the text; all: there is no more. */
hone_status hn_call_feed(hn_call_reader *r, const char *s, size_t n, bool all, hn_call_outcome *what, hone_error *err);
/* Valid until the next call; tokens in it are marks as above. */
hone_str hn_call_rest(const hn_call_reader *r);
int32_t hn_call_count(const hn_call_reader *r);
uint64_t hn_call_looked(const hn_call_reader *r); /* bytes that looking for ends has gone over: each once, or nearly */
bool hn_call_named(const hn_call_reader *r);      /* the name of the call that is read is known */

#endif
