/* chat: what the files of `hone chat` share. cmd_chat.c sets up and loops; chat_line.c
 * reads what the user writes, chat_talk.c holds the conversation and its file,
 * chat_prompt.c turns it into tokens and finds those that are in the session already,
 * chat_answer.c generates, cli/screen.c shows text nobody has checked, chat_command.c
 * obeys lines that begin with a slash.
 *
 * Answers go to stdout, everything else to stderr. */
#ifndef HN_CHAT_PARTS_H
#define HN_CHAT_PARTS_H

#include "cli/screen.h"

/* ---- the conversation --------------------------------------------------------------------- */

typedef enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_ROLES } chat_role;
extern const char *const hn_chat_roles[CHAT_ROLES];

typedef struct chat_message {
    chat_role role;
    char *text; /* may hold NUL; one more NUL at the end */
    size_t len;
    char *reasoning; /* of an answer, as text; NULL: none */
    size_t n_reasoning;
} chat_message;

typedef struct chat_talk {
    chat_message *msg;
    size_t n, cap;
} chat_talk;

bool hn_talk_push(chat_talk *t, chat_role role, const char *text, size_t len); /* copies; false: out of memory */
bool hn_talk_reason(chat_talk *t, const char *text, size_t len);               /* of the last message; copies */
void hn_message_free(chat_message *m);                                         /* what is in it */
void hn_talk_cut(chat_talk *t, size_t n);                                      /* keeps the first n */
void hn_talk_free(chat_talk *t);
/* The system message, which is the first one if any; text NULL removes it. False: out of memory. */
bool hn_talk_set_system(chat_talk *t, const char *text, size_t len);
const chat_message *hn_talk_last(const chat_talk *t); /* NULL: empty */

/* ---- parameters: names as on the command line ------------------------------------------------ */

typedef struct chat_params {
    hone_sampler_params sampling;
    int32_t limit; /* tokens of one answer; -1: no limit */
} chat_params;

/* One parameter from text or JSON; the ranges are those of the options. */
hone_status hn_chat_param_set(chat_params *p, const char *name, const char *value, hone_error *err);
/* Those that are given on the command line, from `given`. */
void hn_chat_params_keep(chat_params *p, const chat_params *given, const hn_opts *o);
json_t *hn_chat_params_json(const chat_params *p);
hone_status hn_chat_params_from_json(chat_params *p, json_t *o, const char *where, hone_error *err);
void hn_chat_params_print(FILE *f, const chat_params *p);

/* ---- files: schema hone.chat/1 ------------------------------------------------------------------ */

/* Written under another name, synced and renamed. HONE_E_IO also when path exists and is no saved conversation. */
hone_status hn_chat_save(const char *path, const chat_talk *t, const chat_params *p, const char *model,
                         hone_error *err);
/* On failure nothing is changed. model: malloc'ed name from the file, "" without one. */
hone_status hn_chat_load(const char *path, chat_talk *t, chat_params *p, char **model, hone_error *err);

/* ---- what the user writes --------------------------------------------------------------------- */

typedef struct chat_line chat_line;
typedef enum chat_event {
    CHAT_TEXT,    /* a line, or a block of several */
    CHAT_CLEARED, /* Ctrl-C at the prompt */
    CHAT_END,     /* end of input */
    CHAT_STOPPED, /* SIGTERM, or SIGINT without a terminal */
    CHAT_FAILED   /* reading failed; said */
} chat_event;

/* From a terminal: with editing and history; takes SIGINT over. Returns an exit code. */
int hn_line_open(chat_line **out);
void hn_line_close(chat_line *l);
bool hn_line_interactive(const chat_line *l);
/* *text: borrowed until the next call. *block: it was written between lines of """. */
chat_event hn_line_read(chat_line *l, const char **text, size_t *len, bool *block);
/* Ctrl-C since the last hn_line_listen; for hone_session_set_abort too. Without a
 * terminal: any signal that ends the program. */
bool hn_line_stop(void *unused);
void hn_line_listen(void);

/* ---- all of it ----------------------------------------------------------------------------------------- */

typedef struct chat_stats {
    int64_t prefilled, reused, generated; /* tokens */
    double prefill_ms, decode_ms, ttft_ms;
    int64_t decoded; /* tokens that decode_ms was spent on */
} chat_stats;

typedef struct chat {
    const hn_cli *cli;
    hone_model *model;
    hone_model_info info;
    hone_context *ctx;
    hone_session *session;
    chat_line *line;
    hn_screen screen;
    chat_talk talk;
    chat_params params;
    uint32_t attempt; /* of /retry: another stream of random numbers */
    struct chat_format *format;
    /* tokens in the session, in order; capacity n_ctx + 1 */
    int32_t *ids;
    bool *own; /* the model chose it: its text counts, not its id */
    int32_t n_ids;
    chat_stats last, total;
    int32_t n_answers;
    int32_t n_refused; /* messages without an answer */
    char *file;        /* last /save or /load */
    bool quit;
} chat;

/* "hone: …" on its own line of stderr, after all answers so far. */
void hn_chat_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void hn_chat_print_stats(const chat *c, const chat_stats *s, const char *what);

/* ---- prompts ------------------------------------------------------------------------------------------------ */

typedef struct chat_prompt {
    hone_chat_text rendered;
    int32_t *ids;
    bool *own;       /* as chat.own */
    int32_t n, mark; /* ids; those of messages, 0: not known, or not needed */
    int32_t reused;  /* of the ids: in the session already */
} chat_prompt;

/* The template of the model or of --chat-template. Returns an exit code. */
int hn_format_open(chat *c);
void hn_format_close(chat *c);
/* The conversation as it is up to the words of the next answer. HONE_E_ARG: the template refuses it. */
hone_status hn_prompt_make(chat *c, chat_prompt *out, hone_error *err);
void hn_prompt_clear(chat_prompt *p);
/* How an answer is marked; borrowed. */
const hone_chat_format *hn_format_reply(const chat *c);
/* --think, or what /think says of it: on, off, an effort. HONE_E_ARG: the template has no such switch. */
hone_status hn_format_think(chat *c, const char *how, hone_error *err);

/* ---- answers --------------------------------------------------------------------------------------------------- */

typedef enum chat_outcome {
    CHAT_REFUSED, /* no answer, and said why */
    CHAT_PENDING, /* stopped before the answer had begun */
    CHAT_ANSWERED
} chat_outcome;
/* Answers the conversation, whose last message is the user's, and adds the answer to it, or leaves it as it was. */
chat_outcome hn_chat_answer(chat *c);
/* Whether the conversation waits for an answer. */
void hn_chat_say_unanswered(const chat *c);
/* A line that begins with a slash. */
void hn_chat_command(chat *c, const char *line);
const char *hn_chat_command_name(size_t i); /* NULL: there are no more */

#endif
