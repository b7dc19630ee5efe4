/* chat: messages into the prompt a model was trained on. Finds the template of a file,
 * prepares messages as that template wants them, renders, and encodes so that nothing
 * somebody typed becomes a token that structures the conversation. */
#ifndef HN_CHAT_H
#define HN_CHAT_H

#include "template/jinja.h"
#include "text/text.h"

/* Source of a format hone knows by name, or NULL. */
const char *hn_chat_format(const char *name);
const char *hn_chat_format_name(size_t i); /* NULL behind the last */
const char *hn_chat_format_list(void);     /* their names, for messages */

/* What `choice` stands for: the name of a format or Jinja source (recognised by its delimiters). NULL: the
 * file's template: tokenizer.chat_template.tool_use with tools where there is one, else
 * tokenizer.chat_template (source or the name of a format); without any, chatml if the vocabulary has its
 * tokens. *out: a view of choice, of the file or of static text. g may be NULL, v too.
 * HONE_E_UNSUPPORTED: the file has none. HONE_E_FORMAT: what it has is neither. HONE_E_ARG: choice is neither. */
hone_status hn_chat_source(hone_str *out, const hn_gguf *g, const hn_vocab *v, const char *choice, bool tools,
                           hone_error *err);

/* Whether v is this very string: also one with a NUL in it is none of hone's words. */
bool hn_json_is(const json_t *v, const char *text);

typedef struct hn_chat {
    const json_t *messages;   /* array of {role, content, …} */
    const json_t *tools;      /* array, or NULL */
    const json_t *variables;  /* object: further variables of the template, or NULL */
    const char *bos, *eos;    /* text of these tokens, "" if none */
    const hn_jinja_time *now; /* NULL: local time */
    int now_east;             /* minutes that now is before GMT */
    bool add_generation_prompt;
    hn_jinja_limits limits;
} hn_chat;

/* Messages as they are, in no other shape than this; tools: with those of c; gen: end with the beginning of an answer.
 * tools and documents that nobody gave are none, as in transformers; undefined where the template cannot do with none.
 * See hn_jinja_render. */
hone_status hn_chat_render_as_is(const hn_jinja *t, const hn_chat *c, const json_t *messages, bool tools, bool gen,
                                 hn_jinja_text *out, hone_error *err);
/* How a template takes the reasoning of an earlier answer, which callers send as `reasoning_content`. */
typedef enum hn_chat_reasoning {
    HN_CHAT_REASONING_NONE, /* it has no place for it */
    HN_CHAT_REASONING_CONTENT,
    HN_CHAT_REASONING_THINKING,
    HN_CHAT_REASONING_REASONING,
    HN_CHAT_REASONING_PARTS, /* a part of the content, of type thinking */
    HN_CHAT_N_REASONING
} hn_chat_reasoning;
/* The name of a message's reasoning in each shape; NULL: it has none of its own. */
extern const char *const hn_chat_reasoning_names[HN_CHAT_N_REASONING];
/* What a message's content says: a string, the texts of its parts, or nothing. Parts that somebody else sends stand on
 * lines of their own, as llama-server and vLLM put them; the model's own text was cut, and is put together as it was.
 * New; NULL: out of memory. */
json_t *hn_chat_said(const json_t *content, bool own);
/* The texts of parts in one, `between` them where something stands before. New; NULL: out of memory. */
json_t *hn_chat_joined(const json_t *parts, const char *between);
/* [{user}, {assistant with these texts in that shape}]; NULL: out of memory. */
json_t *hn_chat_reasoning_probe(hn_chat_reasoning shape, const char *reasoning, const char *content);

/* New array of messages in which tools (may be NULL) stand in the system message. own: the template writes no calls:
 * those of messages, and their results, are text. NULL: out of memory. */
json_t *hn_chat_own_calls(const json_t *messages, const json_t *tools, bool own);
/* The same where the template lists tools and calls are text of answers, in LFM2's form. */
json_t *hn_chat_bracketed_calls(const json_t *messages);

/* Ids of calls, and of results, as t wants them (Mistral's nine characters, Kimi K2's functions.NAME:7); those that fit
 * stay. Changes messages. False: out of memory. */
bool hn_chat_fit_ids(const hn_jinja *t, json_t *messages);

/* Orders that templates want which refuse others; each is of messages in the order before it. */
typedef enum hn_chat_order {
    HN_CHAT_SYSTEM_FIRST, /* system and developer messages at the beginning are one, later ones are the user's */
    HN_CHAT_IN_TURN,      /* user and assistant take turns: what one of them says in a row is one message */
    HN_CHAT_SPOKEN,       /* answers within that say nothing are left out */
    HN_CHAT_IN_RESULT,    /* what the user says behind a tool's result, before any answer, is part of it */
    HN_CHAT_NO_SYSTEM,    /* the system text is the beginning of what the user says */
    HN_CHAT_N_ORDER
} hn_chat_order;
/* Brings messages, each with a role and a content, into that order. *changed: they were in another. False: out of
 * memory. */
bool hn_chat_arrange(json_t *messages, hn_chat_order order, bool *changed);
/* Is the first message the system's or the developer's, and no other? */
bool hn_chat_rule_first(const json_t *messages);
/* Whether t has in it what system and developer messages say, in their order, each but for blanks at its ends. */
bool hn_chat_instructs(const hn_jinja_text *t, const json_t *messages);
/* Words of their own in place of what these messages say, in the same shape. False: out of memory. */
bool hn_chat_mark_rules(json_t *messages);

/* HONE_E_ARG: malformed messages, or the template refuses them, in any order. Else see hn_jinja_render. */
hone_status hn_chat_render(const hn_jinja *t, const hn_chat *c, hn_jinja_text *out, hone_error *err);

/* Ids of a rendered conversation, which goes on: exactly one BOS where the vocabulary adds one, printed by the
 * template or not; an EOS only where the template prints it. trust_input: what came from outside may be structure
 * too. */
hone_status hn_chat_encode(const hn_vocab *v, const char *text, size_t len, const hone_span *input, size_t n_input,
                           bool trust_input, hn_ids *out, hone_error *err);

#endif
