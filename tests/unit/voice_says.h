/* voice_says: answers as a scheduler would tell them, step by step, for the tests of voices. */
#ifndef HN_TEST_VOICE_SAYS_H
#define HN_TEST_VOICE_SAYS_H

#include "serve/ask.h"

#include <math.h>
#include <stdlib.h>

/* Steps are parted by an entry of kind ALIVE. */
typedef struct said {
    const char *name;
    hn_say say[40];
    size_t n;
    int32_t n_choices;
    bool calls; /* it calls tools: for chats alone */
} said;

#define S(k, s)                                             \
    {                                                       \
        .kind = HN_SAY_##k, .text = s, .len = sizeof(s) - 1 \
    }
#define SC(k, c, s)                                                      \
    {                                                                    \
        .kind = HN_SAY_##k, .choice = c, .text = s, .len = sizeof(s) - 1 \
    }
#define TOK(c, s, ...)                                                                    \
    {                                                                                     \
        .kind = HN_SAY_TEXT, .choice = c, .text = s, .len = sizeof(s) - 1,                \
        .token = (const hn_said_token[]){ __VA_ARGS__ },                                  \
        .n_token = sizeof((const hn_said_token[]){ __VA_ARGS__ }) / sizeof(hn_said_token) \
    }
#define ONE(i, s, p, ...)                                                                                    \
    {                                                                                                        \
        .id = i, .text = s, .len = sizeof(s) - 1, .logprob = p, .top = (const hn_said_top[]){ __VA_ARGS__ }, \
        .n_top = sizeof((const hn_said_top[]){ __VA_ARGS__ }) / sizeof(hn_said_top)                          \
    }
#define TOP(i, s, p)                                           \
    {                                                          \
        .id = i, .text = s, .len = sizeof(s) - 1, .logprob = p \
    }
#define CALL(i, d, f)                                           \
    {                                                           \
        .kind = HN_SAY_CALL, .call = i, .call_id = d, .name = f \
    }
#define ARGS(i, s)                                                           \
    {                                                                        \
        .kind = HN_SAY_ARGUMENTS, .call = i, .text = s, .len = sizeof(s) - 1 \
    }
#define CALLED(i)                          \
    {                                      \
        .kind = HN_SAY_CALL_END, .call = i \
    }
#define STEP                 \
    {                        \
        .kind = HN_SAY_ALIVE \
    }
#define END(c, w)                                                                  \
    {                                                                              \
        .kind = HN_SAY_END, .choice = c, .why = HN_WHY_##w, .usage = &choice_usage \
    }

static const hn_usage choice_usage = { .prompt = 12,
                                       .cached = 4,
                                       .completion = 7,
                                       .timed = 5,
                                       .reasoning = 2,
                                       .queue_ms = 1.5,
                                       .ttft_ms = 20.25,
                                       .prompt_ms = 16,
                                       .predicted_ms = 70,
                                       .total_ms = 2100,
                                       .seed = 18446744073709551615u };

static const said answers[] = {
    { "plain",
      { S(TEXT, "Hel"), STEP, S(TEXT, "lo \"w\"\n"), S(TEXT, "\xC3\xB6\xF0\x9F\x98\x80"), STEP, S(TEXT, "!"),
        END(0, EOG) },
      7,
      1,
      false },
    { "thought",
      { S(REASONING, "Let me "), STEP, S(REASONING, "think.\n"), S(TEXT, "Yes"), STEP, S(TEXT, "."), END(0, EOG) },
      7,
      1,
      false },
    { "calls",
      { S(REASONING, "Which?"), S(TEXT, "I'll look."), STEP, CALL(0, "call_0123456789abcdefghijklmn", "get_weather"),
        STEP, ARGS(0, "{\"city\":"), ARGS(0, "\"K\xC3\xB6ln\""), STEP, ARGS(0, ",\"days\": 3}"), CALLED(0),
        CALL(1, "call_zyxwvutsrqponmlkjihgfedc", "now"), ARGS(1, "{}"), CALLED(1), STEP, END(0, CALLS) },
      15,
      1,
      true },
    { "only_calls", { CALL(0, "AbCdEf123", "now"), CALLED(0), STEP, END(0, EOG) }, 4, 1, true },
    { "cut_call",
      { S(TEXT, "Wait"), STEP, CALL(0, "call_x", "now"), ARGS(0, "{\"zone\":\"U"), STEP, END(0, LENGTH) },
      6,
      1,
      true },
    { "length", { S(TEXT, "A long"), STEP, S(TEXT, " story"), END(0, LENGTH) }, 4, 1, false },
    { "full", { S(TEXT, "A"), END(0, CONTEXT) }, 2, 1, false },
    { "word",
      { S(TEXT, "one "),
        STEP,
        { .kind = HN_SAY_END, .why = HN_WHY_WORD, .stop_word = "STOP\n", .usage = &choice_usage } },
      3,
      1,
      false },
    { "nothing", { END(0, EOG) }, 1, 1, false },
    { "two_texts", { S(TEXT, "a"), S(REASONING, "hm"), S(TEXT, "b"), STEP, S(TEXT, "c"), END(0, EOG) }, 6, 1, false },
    { "choices",
      { SC(TEXT, 0, "x"), SC(TEXT, 1, "y"), STEP, SC(TEXT, 1, "Y"), END(1, EOG), SC(TEXT, 0, "X"), STEP,
        END(0, LENGTH) },
      8,
      2,
      false },
    { "echo",
      { { .kind = HN_SAY_ECHO,
          .text = "a b",
          .len = 3,
          .token =
              (const hn_said_token[]){ ONE(1, "<s>", NAN, TOP(2, "x", -1)), ONE(2, " a", -1.5f, TOP(2, " a", -1.5f)),
                                       ONE(3, " b", -2, TOP(4, " c", -1)) },
          .n_token = 3 },
        STEP,
        TOK(0, "!", ONE(9, "!", -0.5f, TOP(9, "!", -0.5f))),
        END(0, LENGTH) },
      4,
      1,
      false },
    { "logprobs",
      { TOK(0, "He", ONE(5, "He", -0.25f, TOP(5, "He", -0.25f), TOP(6, "\xC3", -2.5f))), STEP,
        TOK(0, "\xC3\xB6", ONE(7, "\xC3", -0.1f, TOP(7, "\xC3", -0.1f)),
            ONE(8, "\xB6", -INFINITY, TOP(9, "z", -1e-7f))),
        STEP, TOK(0, "\"", ONE(3, "\"", -3, TOP(1, "\"", -0.5f))), END(0, EOG) },
      6,
      1,
      false },
};
enum { N_ANSWERS = sizeof answers / sizeof *answers };

static const hn_head voice_head = { .id = "0123456789abcdefABCDEFGH",
                                    .model = "tiny \"q\"",
                                    .fingerprint = "b1-scalar-0a0b",
                                    .created = 1794000000,
                                    .created_ns = 5,
                                    .request_id = "req-1" };

/* A stream of s; steps false: all in one. Without the drop. */
static inline bool voice_stream(const hn_ask *a, const said *s, bool steps, hn_bytes *o, void **state)
{
    const hn_voice *v = a->voice;
    hn_say all[40];
    size_t n = 0;
    if (!v->begin(a, &voice_head, o, state)) return false;
    for (size_t i = 0; i < s->n; i++) {
        bool step = s->say[i].kind == HN_SAY_ALIVE;
        if (!step) all[n++] = s->say[i];
        if ((steps && step) || i + 1 == s->n) {
            if (!v->say(a, &voice_head, *state, all, n, o)) return false;
            n = 0;
        }
    }
    return v->end(a, &voice_head, *state, &choice_usage, o);
}

static inline bool voice_whole(const hn_ask *a, const said *s, hn_bytes *o)
{
    hn_say all[40];
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->say[i].kind != HN_SAY_ALIVE) all[n++] = s->say[i];
    return a->voice->whole(a, &voice_head, all, n, &choice_usage, o);
}

#endif
