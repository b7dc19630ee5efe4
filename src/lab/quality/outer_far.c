/* The questions that go on where those of the other parts end: windows of penalties longer than what is picked there,
 * words longer than any of a language, every format of a string, a conversation of many turns. Owns them: a change of
 * one is a change of its hash, and needs another name for its part. */
#include "lab/quality/outer_ask.h"

#include <stdlib.h>
#include <string.h>

/* ---- penalties ------------------------------------------------------------------------------------------- */

/* More picks than each window holds, of so few ids that all of them are in it. */
static hone_status windows(hn_asking *a)
{
    enum { IDS = 40, TIMES = 340 };
    static const int32_t lasts[] = { 65, 97, 128, 129, 256, 300 };
    const int32_t n = a->info.n_vocab < IDS ? a->info.n_vocab : IDS;
    float x[IDS];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts && st != HONE_E_NOMEM; i++) {
        const hone_sampler_params p = { .temp = 1.2f,
                                        .top_p = 1,
                                        .repeat_penalty = 1.1f,
                                        .presence_penalty = 0.3f,
                                        .frequency_penalty = 0.05f,
                                        .penalty_last_n = lasts[i],
                                        .seed = i + 1 };
        hone_sampler *s = NULL;
        st = hone_sampler_new(&s, n, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        for (int32_t k = 0; k < n; k++) x[k] = (float)(hn_rand64(0x77696Eu + i, (uint64_t)k) >> 40) * 0x1p-23f;
        st = hn_asking_picks(a, s, x, TIMES);
        hone_sampler_free(s);
    }
    return st;
}

/* ---- words ----------------------------------------------------------------------------------------------- */

static hone_status long_words(hn_asking *a)
{
    static const size_t lengths[] = { 400, 401, 511, 513, 1000, 2049, 4097, 9001 };
    enum { N = sizeof lengths / sizeof *lengths };
    char *text = malloc(lengths[N - 1]);
    if (!text) return HN_FAIL(&a->err, HONE_E_NOMEM, "a word of %zu letters", lengths[N - 1]);
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N && st != HONE_E_NOMEM; i++) {
        for (size_t k = 0; k < lengths[i]; k++) text[k] = (char)('a' + hn_rand64(i + 1, k) % 26);
        st = hn_asking_tokens(a, text, lengths[i], 0);
    }
    free(text);
    return st;
}

/* ---- formats --------------------------------------------------------------------------------------------- */

/* A text of the format, letter by letter: of each place the first that may stand there, from a drawn one on. */
static hone_status spell(hn_asking *a, hone_matcher *m, uint64_t key)
{
    static const char letters[] = "0123456789abcdefPTDHMSWYZtz:-+.@/xyz\"";
    enum { N = sizeof letters - 1, MOST = 70 };
    hone_status st = hone_matcher_accept_text(m, "\"", 1, &a->err);
    for (uint64_t i = 0; i < MOST && hn_asking_took(a, st); i++) {
        const uint64_t from = hn_rand64(key, i) % N;
        st = HONE_E_ARG;
        for (uint64_t k = 0; k < N && st != HONE_OK && st != HONE_E_NOMEM; k++) {
            const char *c = &letters[(from + k) % N];
            st = hone_matcher_accept_text(m, c, 1, &a->err);
            if (st == HONE_OK) hn_asking_add(a, c, 1);
        }
        hn_asking_number(a, hone_matcher_can_end(m));
        if (st == HONE_E_NOMEM || hone_matcher_can_end(m)) break;
    }
    return st;
}

static hone_status formats(hn_asking *a)
{
    static const char *const names[] = { "date", "time", "date-time", "duration", "uuid",
                                         "ipv4", "ipv6", "hostname",  "email",    "uri" };
    enum { TEXTS = 4 };
    char schema[80];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && st != HONE_E_NOMEM; i++) {
        hone_grammar *g = NULL;
        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"format\":\"%s\"}", names[i]);
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_JSON_SCHEMA, .text = schema, .len = strlen(schema) };
        st = hone_grammar_compile(&g, &p, &a->err);
        hn_asking_took(a, st);
        for (uint64_t k = 0; g && k < TEXTS && st != HONE_E_NOMEM; k++) {
            hone_matcher *m = NULL;
            st = hone_matcher_new(&m, g, a->m, &a->err);
            if (m) st = spell(a, m, 16 * i + k + 1);
            hone_matcher_free(m);
        }
        hone_grammar_free(g);
    }
    return st;
}

/* ---- conversations --------------------------------------------------------------------------------------- */

static hone_status many_turns(hn_asking *a)
{
    static const char own[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    static const int turns[] = { 17, 33, 40, 70 };
    char talk[8000];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < 2 * sizeof turns / sizeof *turns && st != HONE_E_NOMEM; i++) {
        size_t n = (size_t)snprintf(talk, sizeof talk, "[");
        for (int k = 0; k < turns[i / 2] && n < sizeof talk; k++)
            n += (size_t)snprintf(talk + n, sizeof talk - n, "%s{\"role\":\"%s\",\"content\":\"turn %d, %04x\"}",
                                  k ? "," : "", k % 2 ? "assistant" : "user", k,
                                  (unsigned)hn_rand64(i, (uint64_t)k) % 65536);
        if (n < sizeof talk) snprintf(talk + n, sizeof talk - n, "]");
        const hone_chat_params p = { .messages = talk,
                                     .chat_template = i % 2 ? own : NULL,
                                     .now = "2026-02-03T04:05:06",
                                     .add_generation_prompt = true };
        int32_t *ids = NULL;
        size_t n_id = 0;
        st = hone_chat_tokenize(a->m, &p, &ids, &n_id, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, ids, n_id * sizeof *ids);
        hone_free(ids);
    }
    return st;
}

hone_status hn_ask_far(hn_asking *a)
{
    hone_status (*const all[])(hn_asking *) = { windows, long_words, formats, many_turns };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && st != HONE_E_NOMEM; i++)
        if (i == 0 || a->info.has_tokenizer) st = all[i](a);
    return st;
}
