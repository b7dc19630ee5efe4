/* voice_parts: what several voices say alike: frames, usage, timings, log-probabilities, what one choice said in all.
 * For the voices alone. */
#ifndef HN_SERVE_VOICE_PARTS_H
#define HN_SERVE_VOICE_PARTS_H

#include "serve/ask.h"

/* The voices; hn_voice_find has their routes. */
extern const hn_voice hn_voice_chat, hn_voice_chat_count, hn_voice_text, hn_voice_responses, hn_voice_responses_count,
    hn_voice_messages, hn_voice_messages_count, hn_voice_native, hn_voice_infill, hn_voice_tokenize,
    hn_voice_detokenize, hn_voice_template, hn_voice_embed, hn_voice_native_embed, hn_voice_rerank,
    hn_voice_ollama_chat, hn_voice_ollama_generate, hn_voice_ollama_embed, hn_voice_ollama_embedding;

extern const char hn_sse[]; /* "text/event-stream" */

/* ---- of what was said ------------------------------------------------------------------------- */

/* How many of s [n] belong to one frame with the first: of its choice, kind and call. */
size_t hn_say_run(const hn_say *s, size_t n);
bool hn_say_of(const hn_say *s, int32_t prompt, int32_t choice);
/* All texts of kind of one choice, as one string of JSON; of call where it is not below 0. */
void hn_say_joined(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind,
                   int32_t call);
/* The same as it is, to be read again. */
void hn_say_raw(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind, int32_t call);
/* Bytes of these texts. */
size_t hn_say_length(const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind);
/* The END of a choice, or one of length with zeros. */
const hn_say *hn_say_last(const hn_say *s, size_t n, int32_t prompt, int32_t choice);
const hn_usage *hn_say_usage(const hn_say *s); /* never NULL */
int32_t hn_say_calls(const hn_say *s, size_t n, int32_t prompt, int32_t choice, bool complete);
/* "stop", "length", "tool_calls" */
const char *hn_finish_reason(const hn_say *end, int32_t complete_calls);

/* What was said, choice by choice, so that an answer of many is written in one pass. */
typedef struct hn_sorted {
    hn_say *say;   /* in the order of prompts and choices, of each in its order */
    size_t *begin; /* [n_prompt · n_choice + 1] */
    int32_t n_choice;
} hn_sorted;
bool hn_sorted_new(hn_sorted *o, const hn_say *s, size_t n, int32_t n_prompt, int32_t n_choice);
const hn_say *hn_sorted_of(const hn_sorted *o, int32_t prompt, int32_t choice, size_t *n);
void hn_sorted_free(hn_sorted *o);

/* The text of a JSON object of arguments as it is, or {} where the end of the answer cut it. */
void hn_arguments_object(hn_bytes *o, const char *s, size_t n);

/* ---- pieces of JSON ---------------------------------------------------------------------------- */

/* "usage":{…} of OpenAI; "timings":{…}; "hone":{…}; each without comma. */
void hn_part_usage(hn_bytes *o, const hn_usage *u);
void hn_part_timings(hn_bytes *o, const hn_usage *u);
void hn_part_hone(hn_bytes *o, const hn_usage *u);
/* The same, each behind a comma, in a chunk of OpenAI's streams whose last say is s: timings where each piece is to
 * have them, and both at the end of a choice where no chunk of usage follows. */
void hn_part_chunk_timings(hn_bytes *o, const hn_ask *a, const hn_say *s);
/* Settings of llama-server that hone has not: as they are there where they are off. */
void hn_part_absent(hn_bytes *o);
void hn_part_progress(hn_bytes *o, const hn_say *s);
/* Entries of tokens [n], parted by commas: token, logprob, bytes and top_logprobs, with id where ids. */
void hn_part_tokens(hn_bytes *o, const hn_said_token *t, size_t n, bool ids, bool probs);
/* The same of all TEXT of one choice, as an array. */
void hn_part_all_tokens(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, bool ids, bool probs);
/* [1,2,3] */
void hn_part_ids(hn_bytes *o, const int32_t *ids, size_t n);
void hn_part_vector(hn_bytes *o, const float *x, int32_t n);
/* A number of log-probability as JSON has it: -9999.0 where there is none. */
void hn_part_logprob(hn_bytes *o, float v);
/* ,"name":"value", the comma only where something stands before */
void hn_part_text(hn_bytes *o, const char *name, const char *value);
void hn_part_int(hn_bytes *o, const char *name, int64_t v);
void hn_part_alive(hn_bytes *o);                      /* a comment of SSE */
void hn_part_error(hn_bytes *o, const hn_refusal *r); /* "error":{…} of OpenAI */
/* hn_voice.fail of OpenAI and llama-server: a last frame without [DONE]. */
bool hn_part_fail(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o);

#endif
