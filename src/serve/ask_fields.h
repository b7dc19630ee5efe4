/* ask_fields: fields of a body, checked before they are used: types, ranges, what may not stand together, what is
 * passed over and named. Tables say what a field may be; for the voices and orders.h. Knows one object at a time;
 * refuses to know how an API answers. */
#ifndef HN_SERVE_ASK_FIELDS_H
#define HN_SERVE_ASK_FIELDS_H

#include "base/json_tree.h"
#include "serve/ask.h"

enum {
    HN_ASK_PATH = 128,       /* of a field, as "messages[2].content[0].type" */
    HN_ASK_DEPTH = 64,       /* arrays and objects within each other */
    HN_ASK_VALUES = 1 << 20, /* in one body: as a tree each takes many times its bytes */
    HN_ASK_STOPS = 256,      /* programs send one for each person of a talk */
    HN_ASK_STOP_BYTES = 256,
    HN_ASK_TOOLS = 1024,
    HN_ASK_BIASES = 1024,
    HN_ASK_PROMPTS = 64,
    HN_ASK_PIECES = 4096, /* texts and runs of ids of one mixed prompt */
    HN_ASK_LORAS = 64,
    HN_ASK_INPUTS = 2048, /* of embeddings */
    HN_ASK_TOP = 20,      /* alternatives of a token */
    HN_ASK_PROBS = 64     /* in llama-server's routes */
};

typedef struct hn_written hn_written;

/* A body that is being read, and what its fields say together. */
typedef struct hn_fields {
    hn_ask *ask;
    const hn_limits *limits;
    hn_refusal *refusal;
    const char *body; /* [len] */
    size_t len;
    json_t *root;        /* an object */
    hn_written *written; /* [n_written] digits of root's numbers by their places; NULL: nobody asked */
    size_t n_written;
    hn_bytes ignored;
    const char *max_by;           /* which field gave max_tokens; NULL: none */
    int8_t generation, continued; /* add_generation_prompt, continue_final_message; -1: not said */
    int8_t logprobs;              /* chat's; -1: not said */
    int32_t top;                  /* top_logprobs; -1: not said */
    bool stream_options;          /* were given */
    bool has_chain;               /* samplers was given: these alone, in this order */
    bool infill;                  /* llama-server's sampler of this name was among them */
    uint8_t chain[16];
    size_t n_chain;
} hn_fields;

typedef bool hn_field_fn(hn_fields *f, const json_t *v, const char *path);

typedef enum hn_field_kind {
    HN_FIELD_BOOL, /* to `at` of the ask */
    HN_FIELD_INT,  /* int32_t in [lo, hi] */
    HN_FIELD_REAL, /* float in [lo, hi] */
    HN_FIELD_TEXT,
    HN_FIELD_CALL,    /* fn */
    HN_FIELD_LATER,   /* is read by whoever reads the object */
    HN_FIELD_PASSED,  /* changes no answer */
    HN_FIELD_NEUTRAL, /* hone lacks it; lo and hi, false, "" and what is empty ask for nothing */
    HN_FIELD_REFUSED  /* hone lacks it; why says what to do */
} hn_field_kind;
typedef struct hn_field {
    const char *name; /* NULL: the table's end */
    hn_field_kind kind;
    size_t at;
    double lo, hi;
    hn_field_fn *fn;
    const char *why; /* of numbers: what is expected, where "from lo to hi" does not say it */
} hn_field;
#define HN_AT(member) .at = offsetof(hn_ask, member)

/* The usual values of *ask, and body as a tree. hn_fields_end must follow in either case: it ends the ask where ok is
 * true, and returns ok unless memory ran out. */
bool hn_fields_begin(hn_fields *f, hn_ask *ask, const char *body, size_t len, const hn_limits *l, hn_refusal *r);
bool hn_fields_end(hn_fields *f, bool ok);

/* Every member of o by the first row of its name in tables (the last is NULL); null is absent. What no table has is
 * ignored, and named. path: of o, "" for the body. */
bool hn_fields_read(hn_fields *f, const json_t *o, const char *path, const hn_field *const *tables);
/* The member, NULL also where it is null. */
const json_t *hn_field_get(const json_t *o, const char *name);
/* "path.name", or name where path is "". Returns to. */
const char *hn_field_path(char to[HN_ASK_PATH], const char *path, const char *name);
const char *hn_field_element(char to[HN_ASK_PATH], const char *path, size_t i);

/* Each fills the refusal and returns false. */
bool hn_field_missing(hn_fields *f, const char *path, const char *expected);
bool hn_field_wrong(hn_fields *f, const char *path, const json_t *v, const char *expected);
bool hn_field_range(hn_fields *f, const char *path, const json_t *v, const char *expected);
bool hn_field_refused(hn_fields *f, const char *path, const char *why);
bool hn_field_lost(hn_fields *f); /* out of memory */
void hn_field_ignored(hn_fields *f, const char *path);

/* Checked values; texts are copied to the arena. */
bool hn_field_text(hn_fields *f, const json_t *v, const char *path, const char **out); /* without NUL */
bool hn_field_content(hn_fields *f, const json_t *v, const char *path, hone_str *out); /* NUL may be in it */
bool hn_field_bool(hn_fields *f, const json_t *v, const char *path, bool *out);
bool hn_field_int(hn_fields *f, const json_t *v, const char *path, int64_t lo, int64_t hi, int64_t *out);
bool hn_field_object(hn_fields *f, const json_t *v, const char *path); /* is one */
bool hn_field_ids(hn_fields *f, const json_t *v, const char *path, const int32_t **ids, size_t *n);
/* o.type, which must be there. */
bool hn_field_type(hn_fields *f, const json_t *o, const char *path, const char **type);
bool hn_field_one_of(hn_fields *f, const json_t *v, const char *path, const char *const *names, const char **out);
/* v, a part of the body, as text in the arena, or behind what b has; numbers have the digits that the body has. */
bool hn_field_json(hn_fields *f, const json_t *v, const char **out);
void hn_field_value(hn_fields *f, hn_bytes *b, const json_t *v);
/* Where the value at path, keys parted by sep, stands in a text of JSON whose top is an object; false: nowhere. */
bool hn_json_raw(const char *text, size_t len, const char *path, char sep, const char **value, size_t *n);

/* Groups of fields that several APIs have. */
extern const hn_field hn_fields_sampling[]; /* temperature … logit_bias, seed, stop; samplers that hone lacks */
extern const hn_field hn_fields_own[];      /* of llama-server and hone: cache_prompt, lora, timings_per_token … */
extern const hn_field hn_fields_forms[];    /* response_format, json_schema, grammar, structured_outputs */
extern const hn_field hn_fields_usual[];    /* model, stream, stream_options, user, metadata … of OpenAI */
extern const hn_field hn_fields_chat[];     /* messages, tools, reasoning … of OpenAI's chat */

bool hn_field_stop(hn_fields *f, const json_t *v, const char *path);
bool hn_field_lora(hn_fields *f, const json_t *v, const char *path);
bool hn_field_max_tokens(hn_fields *f, const json_t *v, const char *path);               /* -1 … */
bool hn_field_max_native(hn_fields *f, const json_t *v, const char *path);               /* -2 … */
bool hn_field_prompts(hn_fields *f, const json_t *v, const char *path, size_t most);     /* to ask->prompt */
bool hn_field_prompt(hn_fields *f, const json_t *v, const char *path, hn_ask_prompt *p); /* text, ids, or mixed */
/* Sets the form; a second one is refused. */
bool hn_field_form(hn_fields *f, const char *path, hone_grammar_kind kind, const char *text);
/* A schema, which is an object or a truth value. */
bool hn_field_schema(hn_fields *f, const json_t *v, const char *path);
/* What chat and other APIs of OpenAI check in the end: stream_options, logprobs, and the chain. */
bool hn_fields_agree(hn_fields *f);
/* `samplers`, once all fields of sampling were read: those that are not among them are off. Another order than hone's
 * is refused where it would change the answer. */
bool hn_fields_chain(hn_fields *f);

/* ---- conversations ----------------------------------------------------------------------- */

/* Turns in OpenAI's shape, as they are written; all zeros but for f. */
typedef struct hn_turns {
    hn_fields *f;
    hn_bytes json, content, reasoning, calls;
    const char *role; /* of the open one; NULL: none is */
    const char *call_id, *name;
    size_t n_parts, n_calls, n_turns;   /* n_turns: written ones */
    bool has_content, has_text;         /* has_text: of more than "" */
    struct hn_called **known;           /* by hash of their ids; NULL: none yet */
    struct hn_called *waiting, *newest; /* the oldest that may have no answer; the last */
    const char *last_role;              /* of the last that was written */
    bool last_calls;
} hn_turns;
void hn_turn_open(hn_turns *t, const char *role); /* ends the one before */
void hn_turn_join(hn_turns *t, const char *role); /* the open one, where it is of this role; else a new one */
void hn_turn_text(hn_turns *t, const char *s, size_t n);
void hn_turn_drop_empty(hn_turns *t); /* the open one, where it has nothing to say */
void hn_turn_reasoning(hn_turns *t, const char *s, size_t n);
/* arguments: the text of a JSON object. Ids are copied. */
bool hn_turn_call(hn_turns *t, const char *id, const char *name, const char *arguments, size_t n);
/* The open turn, of role tool, answers the call of this id; false: there is none. */
bool hn_turn_answers(hn_turns *t, const char *id);
/* The oldest call that has no answer, of this name where it is not NULL; NULL: none. */
const char *hn_turn_unanswered(hn_turns *t, const char *name);
/* ask->messages, and whether the last turn is to be continued. False: a refusal. */
bool hn_turns_end(hn_turns *t, bool ok);

/* Names of tools offered, in order. */
typedef struct hn_tools {
    hn_fields *f;
    hn_bytes json;
    const char *name[HN_ASK_TOOLS];
    size_t n;
    uint16_t place[2 * HN_ASK_TOOLS]; /* by a name's hash: its number and one, or 0; the next where that is taken */
    const char **picked;              /* ask->tool_names; NULL: none yet */
} hn_tools;
/* One at path of a type that is not `expected`: passed over and named under --lenient-tools, else refused. */
bool hn_tool_other(hn_tools *t, const char *path, const char *expected);
/* description, parameters and strict as they stand in o, the first under the name `schema`; path: of the tool. */
bool hn_tool_add(hn_tools *t, const json_t *o, const char *schema, const char *path);
bool hn_tools_end(hn_tools *t, bool ok); /* ask->tools */
/* name alone is to be called. */
bool hn_tool_pick(hn_tools *t, const json_t *name, const char *path);

/* An array of {"type":"function","function":{…}}; v may be NULL. typed: the type must be there. */
bool hn_tools_read(hn_tools *t, const json_t *v, bool typed);
/* tool_choice of OpenAI's routes; v may be NULL. */
bool hn_tool_choice_read(hn_tools *t, const json_t *v);
bool hn_field_effort(hn_fields *f, const json_t *v, const char *path); /* none … max */
bool hn_field_effort_by(hn_fields *f, const char *path);               /* the field at path has said the effort */

/* messages, tools, tool_choice and their kin of an OpenAI body; sampling and the rest were read. */
bool hn_chat_read(hn_fields *f);

#endif
