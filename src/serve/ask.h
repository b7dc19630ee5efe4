/* ask: what a client wants, whatever API it spoke, and how that API says the answer. A voice turns a body of JSON into
 * an ask, and what was said into frames of its own. Refuses to know sockets, schedulers and loaded models: names and
 * limits come in hn_limits. Any thread; one thread at a time per ask. */
#ifndef HN_SERVE_ASK_H
#define HN_SERVE_ASK_H

#include "serve/bytes.h"

/* ---- errors ---------------------------------------------------------------------------- */

/* An error for a client; type and code are constants. */
typedef struct hn_refusal {
    int status;       /* 400, 404, 501 … */
    const char *type; /* "invalid_request_error" … of the status (hn_refuse) */
    const char *code; /* "missing_field" …; NULL: none */
    char param[128];  /* "messages[2].role"; "": none */
    char message[1024];
    int32_t n_prompt_tokens, n_ctx; /* of context_length_exceeded; 0: not told */
    int retry_after;                /* seconds; 0: none */
} hn_refusal;

/* Fills *r; code and param may be NULL. Control characters of the message are shown, not sent. Returns false. */
bool hn_refuse(hn_refusal *r, int status, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Absolute paths in a text, in place: their last part stays. Where words follow a path with blanks in it, too much may
 * go, but nothing of a folder stays. */
void hn_hide_folders(char *text);
/* The folder of path, wherever it begins a path. */
void hn_hide_folder_of(char *text, const char *path);
/* 400, context_length_exceeded, in words that agents look for. Returns false. */
bool hn_refuse_context(hn_refusal *r, int32_t n_prompt, int32_t n_ctx);
/* The body of an error as the API at path words it: Anthropic's from /v1/messages on, ollama's below /api/, else
 * OpenAI's. */
bool hn_refusal_body(const char *path, const hn_refusal *r, const char *request_id, hn_bytes *o);

/* ---- what is asked ----------------------------------------------------------------------- */

typedef enum hn_ask_kind {
    HN_ASK_CHAT,
    HN_ASK_TEXT,
    HN_ASK_INFILL,
    HN_ASK_EMBED,
    HN_ASK_RERANK,
    HN_ASK_COUNT,  /* tokens of a conversation */
    HN_ASK_RENDER, /* the prompt that a conversation becomes */
    HN_ASK_TOKENIZE,
    HN_ASK_DETOKENIZE,
    HN_ASK_LOAD /* the model, and nothing else; with keep_alive_ms 0 the contrary (ollama) */
} hn_ask_kind;

/* One prompt: text, or ids where text is NULL; then what follows in the same prompt, as llama-server's mixed ones. */
typedef struct hn_ask_prompt {
    const char *text; /* [len], a NUL behind it */
    size_t len;
    const int32_t *ids; /* [n] in [0, n_vocab) */
    size_t n;
    const struct hn_ask_prompt *more; /* NULL: nothing */
} hn_ask_prompt;
typedef struct hn_ask_bias {
    int32_t id;       /* where text is NULL */
    const char *text; /* each of its tokens */
    float bias;       /* -infinity: never */
} hn_ask_bias;
typedef struct hn_ask_lora {
    int32_t id; /* where name is NULL */
    const char *name;
    float scale;
} hn_ask_lora;
typedef struct hn_ask_file {
    const char *name, *text;
} hn_ask_file;
enum { HN_TOOL_NAME = 128 }; /* letters of a tool's name, as the library has it */
typedef enum hn_tool_choice { HN_TOOLS_AUTO, HN_TOOLS_NONE, HN_TOOLS_REQUIRED, HN_TOOLS_NAMED } hn_tool_choice;

typedef struct hn_voice hn_voice;

typedef struct hn_ask {
    hn_arena *arena; /* owns all that it points to */
    const hn_voice *voice;
    hn_ask_kind kind;
    const char *model; /* NULL: not named */

    /* CHAT, COUNT, RENDER: as hone_chat_params takes them. Translated into OpenAI's shape; checked */
    const char *messages;
    const char *tools;      /* NULL: none */
    const char *variables;  /* NULL: none */
    bool generation_prompt; /* false where the last message is to be continued, or nothing is to follow */
    bool continue_final;    /* the last message is an answer that has begun; then generation_prompt is false */

    /* TEXT, EMBED; RERANK: the query, then documents; TOKENIZE: one; DETOKENIZE: ids; INFILL: at most one */
    hn_ask_prompt *prompt;
    size_t n_prompt;
    const int32_t *context; /* [n_context] ids that go before the prompt (ollama) */
    size_t n_context;
    bool echo;                       /* the prompt is said before the answer (HN_SAY_ECHO) */
    bool add_special, parse_special; /* of text in prompts */
    bool with_pieces;
    /* INFILL; prefix and suffix are never NULL there */
    const char *prefix, *suffix;
    const hn_ask_file *files;
    size_t n_files;

    /* sampling */
    hone_sampler_params sampling; /* seed: where has_seed */
    bool has_seed;
    int64_t max_tokens;           /* -1: what the context holds; 0: the prompt is run */
    int32_t n;                    /* choices of each prompt, 1 … n_slots */
    const char *const *stops;     /* [n_stops] none of them empty */
    size_t n_stops, longest_stop; /* longest_stop: bytes */
    int32_t top_logprobs;         /* of each token so many alternatives; 0: its own alone; -1: none */
    bool prompt_logprobs;         /* of the tokens of HN_SAY_ECHO too */
    bool post_sampling_probs;
    const hn_ask_bias *bias;
    size_t n_bias;
    bool ignore_eos;

    /* form of the answer; texts in the arena */
    bool has_form;
    hone_grammar_params form;
    const char *form_param; /* the field that gave it, for errors: "response_format" … */
    bool finish_json;

    /* tools */
    hn_tool_choice tool_choice;
    const char *const *tool_names; /* [n_tool_names] those that may be called, where not all: with NAMED one of them
                                      must be, with AUTO and REQUIRED (allowed_tools) others are not offered */
    size_t n_tool_names;
    bool parallel_calls;

    /* reasoning */
    const char *effort;       /* as hone_chat_think takes it: "on", "off", "low" …; NULL: as the template does */
    const char *effort_param; /* the field that gave it, as "thinking"; NULL: none did */
    bool effort_unsaid;       /* it is "off" as nobody asked for thoughts; then variables is NULL */
    bool reasoning_in_text;   /* the marks and what is between them are text */
    int64_t reasoning_budget; /* tokens; -1: no end */

    /* how it is answered */
    bool stream, include_usage, include_progress, timings_per_token, return_tokens, return_context, return_prompt;
    bool cache;    /* share with what was computed before */
    uint64_t salt; /* share only where this is the same; 0: with all */
    int32_t slot;  /* -1: any */
    const hn_ask_lora *lora;
    size_t n_lora;
    bool has_lora;         /* lora replaces what is set for all, also where n_lora is 0 */
    int64_t timeout_ms;    /* 0: none asked for */
    int64_t keep_alive_ms; /* -1: not said; INT64_MAX: for ever */

    /* EMBED, RERANK */
    bool base64;
    int32_t dimensions; /* 0: all */
    int32_t norm;       /* that is 1 of a vector: 2, Euclid's; -1: as it comes; 0: the greatest number is 32760; or p */
    int32_t top_n;      /* 0: all */
    bool return_documents, truncate;
    bool flat_scores; /* RERANK: in the shape that text-embeddings-inference has */
    bool token_rows;  /* EMBED: the shape has a place for a row of each token */

    int32_t n_prompt_tokens; /* told by the core before begin, for voices that say it first; 0: not yet known */
    const char *ignored;     /* "a, b": fields that were passed over, for x-hone-ignored; "": none */
    const void *own;         /* of the voice: what it must say again */
} hn_ask;

/* ---- what is said, in order of each choice --------------------------------------------------- */

typedef enum hn_say_kind {
    HN_SAY_ECHO,      /* text: the prompt's, before anything else of its choice; token where prompt_logprobs */
    HN_SAY_TEXT,      /* text: whole characters; token where logprobs or tokens are wanted */
    HN_SAY_REASONING, /* text: whole characters */
    HN_SAY_CALL,      /* call, call_id, name: begins */
    HN_SAY_ARGUMENTS, /* call, text: whole characters; all of a call joined are JSON, unless the end cut it */
    HN_SAY_CALL_END,  /* call: it is complete */
    HN_SAY_PROGRESS,  /* total, cached, done, ms: tokens of the prompt */
    HN_SAY_ALIVE,     /* nothing is said yet; of no choice */
    HN_SAY_END        /* why, stop_word, usage: nothing follows for this choice */
} hn_say_kind;
typedef enum hn_why {
    HN_WHY_EOG,
    HN_WHY_WORD, /* stop_word */
    HN_WHY_LENGTH,
    HN_WHY_CONTEXT,
    HN_WHY_CALLS /* ended because it calls; voices also see calls that are complete themselves */
} hn_why;

typedef struct hn_said_top {
    int32_t id;
    const char *text; /* [len] its bytes, maybe no UTF-8 */
    size_t len;
    float logprob; /* or a probability, where post_sampling_probs */
} hn_said_top;
typedef struct hn_said_token {
    int32_t id;
    const char *text;
    size_t len;
    float logprob;          /* NaN: none (the first of a prompt) */
    const hn_said_top *top; /* [n_top] most likely first */
    int32_t n_top;
} hn_said_token;

/* Of one choice, or of a whole answer: sums; then prompt counts each prompt once. */
typedef struct hn_usage {
    int32_t prompt, cached, completion, reasoning; /* tokens */
    int32_t timed; /* of completion, those that predicted_ms went by for: the first step's came with the prompt */
    double queue_ms, ttft_ms, prompt_ms, predicted_ms, load_ms, total_ms;
    uint64_t seed;
} hn_usage;

typedef struct hn_say {
    hn_say_kind kind;
    int32_t prompt, choice; /* which prompt's, which of its n */
    int32_t slot;           /* where it was computed; -1: nowhere */
    const char *text;
    size_t len;
    int32_t call; /* 0, 1, … of this choice */
    const char *call_id, *name;
    const hn_said_token *token;
    size_t n_token;
    int32_t total, cached, done;
    double ms;
    hn_why why;
    const char *stop_word;
    const int32_t *ids; /* END, where return_context: [n_ids] of prompt and answer; where return_prompt, text is the
                           text of the prompt's tokens */
    size_t n_ids;
    /* of this choice: END always; TEXT so far, where timings_per_token (may be there always); PROGRESS: what is done */
    const hn_usage *usage;
    bool truncated; /* END: of an INFILL, something was left out of the prompt */
} hn_say;

/* What was found for an ask that generates nothing; each kind reads its own members. */
typedef struct hn_found {
    int32_t n_tokens;   /* COUNT; EMBED, RERANK: of all inputs */
    const int32_t *ids; /* TOKENIZE [n_ids] */
    size_t n_ids;
    const hone_str *pieces; /* TOKENIZE with_pieces [n_ids] */
    const char *text;       /* RENDER, DETOKENIZE [len] */
    size_t len;
    const hone_span *input; /* RENDER [n_input] */
    size_t n_input;
    const float *vectors;  /* EMBED [n_prompt][n_dim]; with n_rows [Σ][n_dim] */
    const int32_t *n_rows; /* EMBED [n_prompt] of each input; NULL: one */
    int32_t n_dim;
    const float *scores; /* RERANK [n_prompt - 1] of documents */
    double total_ms, load_ms;
} hn_found;

typedef struct hn_head {
    const char *id;    /* random, ≥ 96 bits, letters and digits, no prefix */
    const char *model; /* as the answer names it */
    const char *fingerprint;
    int64_t created;    /* seconds since 1970 */
    int64_t created_ns; /* within that second */
    const char *request_id;
} hn_head;

typedef struct hn_limits {
    int32_t n_vocab, n_ctx, n_slots;
    bool strict_fields, lenient_tools, openai_defaults;
    hone_sampler_params defaults;
} hn_limits;

/* ---- voices ---------------------------------------------------------------------------------------- */

struct hn_voice {
    const char *name;        /* "openai.chat" … */
    const char *stream_type; /* "text/event-stream", "application/x-ndjson"; NULL: it never streams */
    /* body → ask. *a is zeros but for arena and voice. False: *r says why. */
    bool (*parse)(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r);
    /* A stream: frames of the beginning, of what one step said [n], of the end (u: all choices), of a failure in the
     * middle. *state is made by begin; drop frees it, whatever was said before, and takes NULL. Each adds to o, and is
     * false where memory ran out: then the stream cannot go on. */
    bool (*begin)(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state);
    bool (*say)(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o);
    bool (*end)(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o);
    bool (*fail)(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o);
    void (*drop)(void *state);
    /* No stream: all that was said [n], in the order of each choice. */
    bool (*whole)(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o);
    /* An ask that generates nothing. */
    bool (*found)(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o);
};

/* The voice of a route. path: without query. NULL: none of these. */
const hn_voice *hn_voice_find(const char *method, const char *path, bool ollama);
/* Every route of voices, for Allow and tests: *path and *ollama of row i; false: there are no more. All are POST. */
bool hn_voice_route(size_t i, const char **path, bool *ollama);
/* Zeros *a, makes its arena and lets v read body; with a refusal the ask is freed. */
bool hn_ask_read(hn_ask *a, const hn_voice *v, const char *body, size_t len, const hn_limits *l, hn_refusal *r);
void hn_ask_free(hn_ask *a); /* zeros then */

#endif
