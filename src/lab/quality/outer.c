/* The questions to what stands around the engine. Owns them: a change of one is a change of its hash, and needs another
 * name for its part. */
#include "lab/quality/outer_ask.h"

#include "lab/quality/quality.h"
#include "lab/quality/sketch.h"
#include "base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
    SOME_VOCAB = 2048, /* ids that a sampler is asked about again and again */
    COUNTS = 140,      /* texts of 1, 2, 3, … ids */
    PLACES = 64,       /* texts from all over */
    FAR_APART = 751,   /* bytes between their beginnings */
    LONGER = 4,        /* each than the one before */
    LONG_TEXT = 13200
};

static const char *const names[HN_OUTER_PARTS] = {
    "tokenizer", "text",    "sampler", "masks",  "logprobs", "template", "embeddings", "caches",  "edges",
    "depth",     "scripts", "stops",   "picks",  "forms",    "talks",    "vectors",    "replies", "chains",
    "words",     "far",     "means",   "drawn2", "lengths",  "adapted",  "notations",  "corners", "numbers"
};

typedef hn_asking asking;

static void add(asking *a, const void *p, size_t n) { hn_asking_add(a, p, n); }
static void add_number(asking *a, int64_t v) { hn_asking_number(a, v); }
static bool took(asking *a, hone_status st) { return hn_asking_took(a, st); }

/* ---- tokenizer and text ---------------------------------------------------------------------------------- */

static bool inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

hone_status hn_asking_tokens(hn_asking *a, const char *text, size_t len, int flags)
{
    int32_t *ids = NULL;
    size_t n = 0;
    hone_status st = hone_tokenize(a->m, text, len, flags, &ids, &n, &a->err);
    if (took(a, st)) {
        add_number(a, (int64_t)n);
        add(a, ids, n * sizeof *ids);
        hone_free(ids);
    }
    return st;
}
static hone_status tokens(asking *a, const char *text, size_t len, int flags)
{
    return hn_asking_tokens(a, text, len, flags);
}

static hone_status spans(asking *a, const char *text, size_t len)
{
    int32_t *ids = NULL;
    hone_span *span = NULL;
    size_t n = 0;
    hone_status st = hone_tokenize_spans(a->m, text, len, HONE_TOK_ADD, &ids, &span, &n, &a->err);
    if (took(a, st)) {
        add(a, ids, n * sizeof *ids);
        for (size_t i = 0; i < n; i++) add_number(a, (int64_t)span[i].begin), add_number(a, (int64_t)span[i].end);
        hone_free(ids);
        hone_free(span);
    }
    return st;
}

/* Names of tokens that are no text, within one. */
static hone_status special_tokens(asking *a)
{
    enum { MOST = 64 };
    char text[256];
    hone_status st = HONE_OK;
    for (int32_t id = 0, n = 0; id < a->info.n_vocab && n < MOST && st != HONE_E_NOMEM; id++) {
        hone_token_class kind = hone_token_kind(a->m, id);
        size_t len = 0;
        const char *piece = hone_token_piece(a->m, id, true, &len);
        if ((kind != HONE_TOKEN_CONTROL && kind != HONE_TOKEN_USER) || !piece || len > 100) continue;
        snprintf(text, sizeof text, "one %.*s two%.*s", (int)len, piece, (int)len, piece);
        for (int flags = 0; flags < 2 && st != HONE_E_NOMEM; flags++)
            st = tokens(a, text, strlen(text), flags ? HONE_TOK_SPECIAL : 0);
        n++;
    }
    return st;
}

/* The beginning of the fixed text, as far as its 1st, 2nd, 3rd, … id goes: of every small number of ids. */
static hone_status of_each_count(asking *a)
{
    enum { BYTES = 1600 };
    int32_t *ids = NULL;
    hone_span *span = NULL;
    size_t n = 0;
    hone_status st = hone_tokenize_spans(a->m, hn_q_corpus, BYTES, 0, &ids, &span, &n, &a->err);
    if (!took(a, st)) return st;
    for (size_t i = 0; i < n && i < COUNTS && st != HONE_E_NOMEM; i++) st = tokens(a, hn_q_corpus, span[i].end, 0);
    hone_free(ids);
    hone_free(span);
    return st;
}

static hone_status ask_tokenizer(asking *a)
{
    static const int flags[] = { HONE_TOK_ADD, 0, HONE_TOK_SPECIAL | HONE_TOK_ADD_BOS };
    const size_t len = strlen(hn_q_corpus);
    hone_status st = of_each_count(a);
    if (st != HONE_E_NOMEM) st = tokens(a, hn_q_corpus, len, HONE_TOK_ADD);
    for (size_t k = 1; k <= PLACES && st != HONE_E_NOMEM; k++) {
        size_t n = k * LONGER, at = k * FAR_APART % (len - n);
        while (at > 0 && inside(hn_q_corpus[at])) at--;
        while (inside(hn_q_corpus[at + n])) n--;
        st = tokens(a, hn_q_corpus + at, n, flags[k % 3]);
        if (k % 8 == 0 && st != HONE_E_NOMEM) st = spans(a, hn_q_corpus + at, n);
    }
    return st == HONE_E_NOMEM ? st : special_tokens(a);
}

/* ids as they are pushed, with stops; after one a new text begins. */
static hone_status streamed(asking *a, const int32_t *ids, size_t n)
{
    static const char *const stops[] = { "boat", ".\n\n", "\xC3\xA4" };
    hone_stream *s = NULL;
    const char *text = "";
    size_t len = 0;
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        bool stopped = false;
        if (!s) st = hone_stream_new(&s, a->m, stops, sizeof stops / sizeof *stops, &a->err);
        if (st == HONE_OK) st = hone_stream_push(s, ids[i], &text, &len, &stopped, &a->err);
        if (!took(a, st)) break;
        add(a, text, len);
        add_number(a, stopped);
        if (!stopped && i + 1 < n) continue;
        if (took(a, hone_stream_flush(s, &text, &len, &a->err))) add(a, text, len);
        hone_stream_free(s);
        s = NULL;
    }
    hone_stream_free(s);
    return st;
}

static hone_status ask_text(asking *a)
{
    int32_t *ids = NULL;
    char *text = NULL;
    size_t n = 0, len = 0;
    for (int32_t id = 0; id < a->info.n_vocab; id++) {
        const char *piece = hone_token_piece(a->m, id, false, &len);
        add_number(a, piece ? (int64_t)len : -1);
        if (piece) add(a, piece, len);
        add_number(a, (int64_t)hone_token_kind(a->m, id) + (hone_token_is_eog(a->m, id) ? 100 : 0));
    }
    hone_status st = hone_tokenize(a->m, hn_q_corpus, LONG_TEXT, HONE_TOK_ADD, &ids, &n, &a->err);
    if (!took(a, st)) return st;
    for (int special = 0; special < 2 && st == HONE_OK; special++) {
        st = hone_detokenize(a->m, ids, n, special != 0, &text, &len, &a->err);
        if (!took(a, st)) continue;
        add(a, text, len);
        hone_free(text);
    }
    if (st == HONE_OK) st = streamed(a, ids, n);
    hone_free(ids);
    return st;
}

/* ---- samplers -------------------------------------------------------------------------------------------- */

/* Logits of which few are large: cubes of numbers between -2.3 and 2.3, exactly the same everywhere. */
static void make_logits(float *x, int32_t n, uint64_t which)
{
    for (int32_t i = 0; i < n; i++) {
        float u = (float)((int64_t)(hn_rand64(0x61726F75u + which, (uint64_t)i) >> 40) - (1 << 23)) * 0x1p-23f;
        x[i] = 12 * (u * u * u);
    }
}

static hone_status picks(asking *a, const hone_sampler_params *p, float *x, int32_t n, int32_t times)
{
    const hone_bias bias[] = { { n / 3, 4 }, { n / 2, -3 }, { n / 5, -1 / 0.0f }, { n / 3, 1 } };
    uint64_t *allowed = calloc((size_t)n / 64 + 1, sizeof *allowed);
    hone_sampler *s = NULL;
    hone_status st =
        allowed ? hone_sampler_new(&s, n, p, &a->err) : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %d ids", n);
    for (int32_t i = 0; allowed && i < n; i++)
        if (i % 7) allowed[i / 64] |= 1ull << (i % 64);
    for (int32_t i = 0; i < times && st == HONE_OK; i++) {
        int32_t id = -1, pos = i % 3 == 2 ? 4000 + 8 * i : i;
        const hone_pick with = { .allowed = i % 4 == 1 ? allowed : NULL,
                                 .bias = bias,
                                 .n_bias = i % 4 == 3 ? sizeof bias / sizeof *bias : 0,
                                 .choice = i % 3,
                                 .pos = pos };
        if (i == 0 && p->seed) st = hone_sampler_suppress(s, a->m, &a->err);
        if (i % 6 == 0) make_logits(x, n, (uint64_t)i);
        if (st == HONE_OK)
            st = i % 2 ? hone_sampler_pick_from(s, x, &with, &id, &a->err)
                       : hone_sampler_pick(s, x, i % 5, pos, &id, &a->err);
        if (!took(a, st)) break;
        add_number(a, id);
        hone_sampler_accept(s, i % 3 ? id : id / 2);
        if (i == times / 2) hone_sampler_reset(s);
    }
    hone_sampler_free(s);
    free(allowed);
    return st;
}

static hone_status ask_sampler(asking *a)
{
    static const hone_sampler_params asked[] = {
        { .temp = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1, .penalty_last_n = 64 },
        { .top_p = 1, .repeat_penalty = 1 },
        { .temp = 1, .top_p = 1, .repeat_penalty = 1, .seed = 3 },
        { .temp = 0.7f, .top_p = 0.9f, .repeat_penalty = 1, .seed = 5 },
        { .temp = 1, .top_k = 3, .top_p = 1, .repeat_penalty = 1 },
        { .temp = 2, .top_k = 300, .top_p = 0.5f, .repeat_penalty = 1, .seed = 1ull << 40 },
        { .temp = 1.5f, .top_p = 1, .min_p = 0.1f, .repeat_penalty = 1 },
        { .temp = 0.3f, .top_k = 20, .top_p = 1, .min_p = 0.3f, .repeat_penalty = 1 },
        { .top_p = 1, .repeat_penalty = 1.3f, .penalty_last_n = 64 },
        { .temp = 1, .top_p = 1, .repeat_penalty = 1.5f, .penalty_last_n = 4 },
        { .temp = 1, .top_k = 10, .top_p = 1, .repeat_penalty = 1, .presence_penalty = 2, .penalty_last_n = -1 },
        { .top_p = 1, .repeat_penalty = 1, .frequency_penalty = 1.5f, .penalty_last_n = -1 },
        { .temp = 1,
          .top_p = 0.99f,
          .repeat_penalty = 1.1f,
          .presence_penalty = 0.5f,
          .frequency_penalty = 0.5f,
          .penalty_last_n = 16 },
    };
    enum { MANY = 24, FEW = 2 };
    const int32_t n = a->info.n_vocab, some = n < SOME_VOCAB ? n : SOME_VOCAB;
    float *x = malloc((size_t)n * sizeof *x);
    hone_status st = x ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "logits of %d ids", n);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && st != HONE_E_NOMEM; i++) {
        st = picks(a, &asked[i], x, some, MANY);
        if (st != HONE_E_NOMEM && n > some) st = picks(a, &asked[i], x, n, FEW);
    }
    free(x);
    return st;
}

hone_status hn_asking_picks(hn_asking *a, hone_sampler *s, const float *x, int32_t times)
{
    hone_status st = HONE_OK;
    for (int32_t t = 0; t < times && st == HONE_OK; t++) {
        int32_t id = -1;
        st = hone_sampler_pick(s, x, 0, t, &id, &a->err);
        if (!took(a, st)) break;
        add_number(a, id);
        hone_sampler_accept(s, id);
    }
    return st;
}

/* Settings drawn from what each may be, so that any two values meet; more picks than the windows of penalties hold. */
static hone_status ask_chains(asking *a)
{
    enum { CHAINS = 48, TIMES = 80, IDS = 48 };
    static const float temps[] = { 0, 0.7f, 1.5f }, top_ps[] = { 1, 0.9f, 0.6f }, min_ps[] = { 0, 0.05f, 0.3f },
                       repeats[] = { 1, 1.2f, 1.6f }, others[] = { 0, 0, 0.6f };
    static const int32_t top_ks[] = { 0, 2, 20 }, lasts[] = { -1, 8, 64 };
    const int32_t n = a->info.n_vocab < IDS ? a->info.n_vocab : IDS;
    float x[IDS];
    hone_status st = HONE_OK;
    for (uint64_t i = 0, k = 0; i < CHAINS && st != HONE_E_NOMEM; i++) {
        size_t is[8];
        for (size_t f = 0; f < 8; f++) is[f] = (size_t)(hn_rand64(0x636861696Eu, k++) % 3);
        const hone_sampler_params p = { .temp = temps[is[0]],
                                        .top_k = top_ks[is[1]],
                                        .top_p = top_ps[is[2]],
                                        .min_p = min_ps[is[3]],
                                        .repeat_penalty = repeats[is[4]],
                                        .presence_penalty = others[is[5]],
                                        .frequency_penalty = others[is[6]],
                                        .penalty_last_n = lasts[is[7]],
                                        .seed = i };
        hone_sampler *s = NULL;
        st = hone_sampler_new(&s, n, &p, &a->err);
        if (!took(a, st)) continue;
        make_logits(x, n, 700 + i);
        st = hn_asking_picks(a, s, x, TIMES);
        hone_sampler_free(s);
    }
    return st;
}

static hone_status ask_logprobs(asking *a)
{
    enum { TIMES = 4, TOP = 20 };
    const int32_t n = a->info.n_vocab, n_top = n < TOP ? n : TOP;
    float *x = malloc((size_t)n * sizeof *x), own = 0;
    hone_logprob top[TOP];
    hone_status st = x ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "logits of %d ids", n);
    for (int32_t i = 0; i < TIMES && st == HONE_OK; i++) {
        make_logits(x, n, 100 + (uint64_t)i);
        st = hone_logprobs(x, n, i * (n / TIMES), &own, top, i % 2 ? n_top : 0, &a->err);
        if (!took(a, st)) break;
        add(a, &own, sizeof own);
        for (int32_t k = 0; i % 2 && k < n_top; k++)
            add_number(a, top[k].id), add(a, &top[k].logprob, sizeof top[k].logprob);
    }
    free(x);
    return st;
}

/* ---- masks ----------------------------------------------------------------------------------------------- */

/* The n-th id of a mask; -1: there is none. */
static int32_t nth_of(const uint64_t *mask, size_t n_words, int64_t n)
{
    for (size_t i = 0; i < n_words; i++) {
        int64_t here = __builtin_popcountll(mask[i]);
        if (n >= here) {
            n -= here;
            continue;
        }
        uint64_t left = mask[i];
        for (; n > 0; n--) left &= left - 1;
        return (int32_t)(64 * i) + __builtin_ctzll(left);
    }
    return -1;
}

/* Masks along a text that is drawn from them; now and then its last token is taken back and given again. */
static hone_status masks_of(asking *a, hone_matcher *m, uint64_t *mask, size_t n_words, int32_t key)
{
    enum { STEPS = 12 };
    hone_status st = HONE_OK;
    for (int32_t i = 0; i < STEPS && st == HONE_OK; i++) {
        int64_t n = 0;
        st = i % 2 ? hone_matcher_mask_within(m, STEPS - i, mask, n_words, &n, &a->err)
                   : hone_matcher_mask(m, mask, n_words, &n, &a->err);
        if (!took(a, st)) break;
        add_number(a, n);
        add(a, mask, n_words * sizeof *mask);
        add_number(a, hone_matcher_can_end(m));
        int32_t id = n > 0 ? nth_of(mask, n_words, (int64_t)(hn_rand64((uint64_t)key, (uint64_t)i) % (uint64_t)n)) : -1;
        if (id < 0 || hone_token_is_eog(a->m, id)) break;
        st = hone_matcher_accept(m, &id, 1, &a->err);
        if (!took(a, st)) break;
        if (i % 5 == 4 && took(a, hone_matcher_rollback(m, 1, &a->err))) st = hone_matcher_accept(m, &id, 1, &a->err);
    }
    return st;
}

static hone_status ask_masks(asking *a)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":9},\"n\":{\"type\":"
        "\"integer\","
        "\"minimum\":3,\"maximum\":407},\"kind\":{\"enum\":[\"boat\",\"lamp\",null,1.5]},\"all\":{\"type\":\"array\","
        "\"items\":{\"type\":\"boolean\"},\"minItems\":1}},\"required\":[\"name\",\"n\",\"kind\"],"
        "\"additionalProperties\":false}",
                      gbnf[] = "root ::= line+\nline ::= [a-z]+ (\" \" | \", \") word \"\\n\"\nword ::= \"boat\" | "
                               "[0-9]{2,4}",
                      regex[] = "(Mon|Tues|Wednes)day, \\d{1,2}\\. (März|[A-Z]\\w+) [12]\\d{3}";
    static const hone_str choices[] = { { "yes", 3 }, { "no", 2 }, { "not yet", 7 } };
    const hone_grammar_params asked[] = {
        { .kind = HONE_GRAMMAR_JSON_SCHEMA, .text = schema, .len = sizeof schema - 1 },
        { .kind = HONE_GRAMMAR_JSON_OBJECT },
        { .kind = HONE_GRAMMAR_GBNF, .text = gbnf, .len = sizeof gbnf - 1 },
        { .kind = HONE_GRAMMAR_REGEX, .text = regex, .len = sizeof regex - 1 },
        { .kind = HONE_GRAMMAR_CHOICE, .choices = choices, .n_choices = sizeof choices / sizeof *choices },
    };
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && st != HONE_E_NOMEM; i++) {
        hone_grammar *g = NULL;
        hone_matcher *m = NULL;
        st = hone_grammar_compile(&g, &asked[i], &a->err);
        if (took(a, st)) st = hone_matcher_new(&m, g, a->m, &a->err);
        if (m) st = masks_of(a, m, mask, n_words, (int32_t)i);
        else took(a, st);
        hone_matcher_free(m);
        hone_grammar_free(g);
    }
    free(mask);
    return st;
}

/* ---- the chat template ----------------------------------------------------------------------------------- */

static hone_status ask_template(asking *a)
{
    static const char *const talks[] = {
        "[{\"role\":\"user\",\"content\":\"Why does a kettle sing?\"}]",
        "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"2 + 2?\"},"
        "{\"role\":\"assistant\",\"content\":\"4\"},{\"role\":\"user\",\"content\":\"Sure?\\nReally?\"}]",
    };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < 2 * sizeof talks / sizeof *talks && st != HONE_E_NOMEM; i++) {
        const hone_chat_params p = { .messages = talks[i / 2],
                                     .now = "2026-02-03T04:05:06",
                                     .add_generation_prompt = i % 2 };
        int32_t *ids = NULL;
        size_t n = 0;
        st = hone_chat_tokenize(a->m, &p, &ids, &n, &a->err);
        if (!took(a, st)) continue;
        add(a, ids, n * sizeof *ids);
        hone_free(ids);
    }
    return st;
}

/* ---- edges ----------------------------------------------------------------------------------------------- */

static hone_status edges_of_samplers(asking *a)
{
    enum { TIMES = 9, TOP = 5 };
    static const hone_sampler_params asked[] = {
        { .temp = 1, .top_k = 1, .top_p = 1, .repeat_penalty = 1 },
        { .temp = 0.01f, .top_p = 1, .repeat_penalty = 1, .seed = 7 },
        { .temp = 1, .top_p = 0.01f, .repeat_penalty = 1, .seed = 9 },
        { .temp = 1, .top_p = 1, .min_p = 1, .repeat_penalty = 1 },
        { .temp = 1, .top_k = 1 << 20, .top_p = 0.999f, .min_p = 0.001f, .repeat_penalty = 1.01f, .penalty_last_n = 1 },
    };
    const int32_t n = a->info.n_vocab < SOME_VOCAB ? a->info.n_vocab : SOME_VOCAB, n_top = n < TOP ? n : TOP;
    float *x = malloc((size_t)n * sizeof *x), own = 0;
    hone_logprob top[TOP];
    hone_status st = x ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "logits of %d ids", n);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && st != HONE_E_NOMEM; i++)
        st = picks(a, &asked[i], x, n, TIMES);
    for (int32_t k = 1; k <= n_top && st == HONE_OK; k++) {
        st = hone_logprobs(x, n, k, &own, top, k, &a->err);
        if (!took(a, st)) break;
        add(a, &own, sizeof own);
        add_number(a, top[k - 1].id), add(a, &top[k - 1].logprob, sizeof top[k - 1].logprob);
    }
    free(x);
    return st;
}

static hone_status ask_edges(asking *a)
{
    enum { RUN = 300 };
    static const hone_str texts[] = {
        { "", 0 },     { "\xFF\xFE\xC3(", 4 },     { "\xF0\x9F\x98\x80\xF0\x9F\x8F\xBD", 8 },
        { "a\0b", 3 }, { "\r\n\t\r\n\n \t\v", 9 }, { "\xEF\xBB\xBFx\xE2\x80\x8D", 7 }
    };
    char run[RUN];
    hone_status st = edges_of_samplers(a);
    if (!a->info.has_tokenizer) return st;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && st != HONE_E_NOMEM; i++)
        st = tokens(a, texts[i].ptr, texts[i].len, i % 2 ? HONE_TOK_ADD : 0);
    for (const char *c = " 7a\n=\xC3"; *c && st != HONE_E_NOMEM; c++) {
        memset(run, *c, sizeof run);
        st = tokens(a, run, sizeof run, 0);
    }
    return st;
}

/* ---- scripts --------------------------------------------------------------------------------------------- */

/* Words and a number in each script, and the fixed text again and again, longer than what a piece of work may be. */
static hone_status ask_scripts(asking *a)
{
    static const uint32_t first[] = { 0x00C0,  0x0100,  0x0180,  0x0250,  0x0370,  0x0400,  0x0530, 0x05D0, 0x0620,
                                      0x0710,  0x0780,  0x0905,  0x0985,  0x0A05,  0x0A85,  0x0B05, 0x0B85, 0x0C05,
                                      0x0C85,  0x0D05,  0x0E01,  0x0E81,  0x0F40,  0x1000,  0x10A0, 0x1100, 0x1200,
                                      0x13A0,  0x1780,  0x1820,  0x1E00,  0x1F00,  0x2010,  0x2070, 0x20A0, 0x2190,
                                      0x2200,  0x2500,  0x2600,  0x3041,  0x30A1,  0x3105,  0x3400, 0x4E00, 0x9F00,
                                      0xA000,  0xAC00,  0xD000,  0xE000,  0xF900,  0xFB00,  0xFE50, 0xFF01, 0xFFE0,
                                      0x10400, 0x1D400, 0x1F300, 0x1F600, 0x1F900, 0x20000, 0xE0100 };
    enum { WORD = 11, LONG = 70001 };
    char text[8 * (WORD + 4) * 4];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof first / sizeof *first && st != HONE_E_NOMEM; i++) {
        size_t n = 0;
        for (uint32_t k = 0; k < 4 * WORD; k++) {
            n += hn_utf8_put(text + n, first[i] + (uint32_t)(hn_rand64(first[i], k) % 48));
            if (k % WORD == WORD - 1) n += (size_t)snprintf(text + n, sizeof text - n, k % 2 ? " %u" : ", ", k);
        }
        st = tokens(a, text, n, i % 3 ? 0 : HONE_TOK_ADD);
        if (i % 8 == 0 && st != HONE_E_NOMEM) st = spans(a, text, n);
    }
    char *most = st == HONE_E_NOMEM ? NULL : malloc(LONG);
    if (!most) return HN_FAIL(&a->err, HONE_E_NOMEM, "a text of %d bytes", LONG);
    const size_t len = strlen(hn_q_corpus);
    for (size_t i = 0; i < LONG; i++) most[i] = (char)(hn_q_corpus[i % len] & 0x7F); /* whole characters everywhere */
    st = tokens(a, most, LONG, 0);
    free(most);
    return st;
}

/* ---- words ----------------------------------------------------------------------------------------------- */

/* Words of the vocabulary's own pieces, one behind the other without a space between, as long as few and many. */
static hone_status ask_words(asking *a)
{
    enum { LONGEST = 320, TRIES = 4000, EACH = 2 };
    static const size_t lengths[] = { 7,  8,  9,  15,  16,  17,  24,  31,  32,  33, 40,
                                      63, 64, 65, 100, 127, 128, 129, 255, 256, 300 };
    char text[LONGEST + 64];
    hone_status st = HONE_OK;
    uint64_t k = 0;
    for (size_t i = 0; i < EACH * sizeof lengths / sizeof *lengths && st != HONE_E_NOMEM; i++) {
        size_t n = 0, len = 0;
        for (int t = 0; t < TRIES && n < lengths[i / EACH]; t++) {
            const char *piece =
                hone_token_piece(a->m, (int32_t)(hn_rand64(0x776F7264u, k++) % (uint64_t)a->info.n_vocab), false, &len);
            bool plain = piece && len > 0 && len < 64;
            for (size_t b = 0; plain && b < len; b++) plain = isalnum((unsigned char)piece[b]);
            if (!plain) continue;
            memcpy(text + n, piece, len);
            n += len;
        }
        st = tokens(a, text, n < lengths[i / EACH] ? n : lengths[i / EACH], 0);
    }
    return st;
}

/* ---- stops ----------------------------------------------------------------------------------------------- */

/* Pieces of what the ids say, of 1 to 40 bytes, in none to six at a time; one that is not there among them. */
static hone_status ask_stops(asking *a)
{
    enum { MOST = 6, BYTES = 900, LONGEST = 40 };
    static const int lengths[MOST] = { 17, 40, 3, 9, 1, 26 };
    int32_t *ids = NULL;
    size_t n = 0;
    char own[MOST][LONGEST + 8];
    const char *stops[MOST];
    hone_status st = hone_tokenize(a->m, hn_q_corpus, BYTES, 0, &ids, &n, &a->err);
    if (!took(a, st)) return st;
    for (int k = 0; k <= MOST && st != HONE_E_NOMEM; k++) {
        hone_stream *s = NULL;
        const char *text;
        size_t len = 0;
        bool stopped = false;
        for (int i = 0; i < k; i++) { /* the later one stands first, and one of those before is nowhere */
            size_t at = (size_t)(BYTES / 2 + 60 * (k - i) + 7 * i), m = (size_t)lengths[(i + k) % MOST];
            while (inside(hn_q_corpus[at])) at++;
            while (inside(hn_q_corpus[at + m])) m++;
            snprintf(own[i], sizeof own[i], "%.*s%s", (int)m, hn_q_corpus + at, i + 1 < k && i % 2 ? "~~" : "");
            stops[i] = own[i];
        }
        st = hone_stream_new(&s, a->m, stops, (size_t)k, &a->err);
        if (!took(a, st)) continue;
        for (size_t i = 0; i < n && st == HONE_OK && !stopped; i++) {
            st = hone_stream_push(s, ids[i], &text, &len, &stopped, &a->err);
            if (took(a, st)) add(a, text, len), add_number(a, stopped ? (int64_t)i : -1);
        }
        if (st == HONE_OK && took(a, hone_stream_flush(s, &text, &len, &a->err))) add(a, text, len);
        hone_stream_free(s);
    }
    hone_free(ids);
    return st;
}

/* ---- picks ----------------------------------------------------------------------------------------------- */

/* None to twelve biases, sequences to the last and positions far away; of equal logits one; and as many of the
 * likeliest as 1 to 20, equal ones among them. */
static hone_status ask_picks(asking *a)
{
    enum { BIASES = 12, TOP = 20 };
    static const int32_t seqs[] = { 0, 1, 7, 8, 9, 31, 63, 255 },
                         places[] = { 0, 1, 255, 1 << 14, (1 << 14) + 1, 1 << 20, INT32_MAX - 1 };
    const int32_t n = a->info.n_vocab < SOME_VOCAB ? a->info.n_vocab : SOME_VOCAB;
    const hone_sampler_params warm = { .temp = 1, .top_p = 1, .repeat_penalty = 1, .seed = 11 },
                              cold = { .top_p = 1, .repeat_penalty = 1 };
    float *x = malloc((size_t)n * sizeof *x), own;
    hone_sampler *s[2] = { NULL, NULL };
    hone_bias bias[BIASES];
    hone_logprob top[TOP];
    hone_status st = x ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "logits of %d ids", n);
    if (st == HONE_OK) st = hone_sampler_new(&s[0], n, &warm, &a->err);
    if (st == HONE_OK) st = hone_sampler_new(&s[1], n, &cold, &a->err);
    if (st == HONE_OK) make_logits(x, n, 500);
    for (int32_t i = 0; i <= 2 * BIASES && st == HONE_OK;
         i++) { /* each is the one that decides, where it is the last */
        const int32_t m = i / 2;
        for (int32_t k = 0; k < m; k++)
            bias[k] = (hone_bias){ (int32_t)(hn_rand64(77, (uint64_t)k) % (uint64_t)n), (float)k - 3 };
        if (m) bias[m - 1].bias = 60;
        for (size_t q = 0; q < sizeof seqs / sizeof *seqs && st == HONE_OK; q++) {
            const hone_pick with = { .bias = bias,
                                     .n_bias = (size_t)m,
                                     .choice = seqs[q],
                                     .pos = places[(q + (size_t)i) % (sizeof places / sizeof *places)] };
            int32_t id = -1;
            st = hone_sampler_pick_from(s[i % 2], x, &with, &id, &a->err);
            if (took(a, st)) add_number(a, id);
        }
    }
    for (int32_t i = 0; i < n && st == HONE_OK; i++) x[i] = (float)(i % 5 ? i % 3 : 2); /* many are the greatest */
    for (int32_t k = 1; k <= TOP && k <= n && st == HONE_OK; k++) {
        int32_t id = -1;
        st = hone_logprobs(x, n, k, &own, top, k, &a->err);
        if (!took(a, st)) break;
        add(a, &own, sizeof own);
        for (int32_t i = 0; i < k; i++) add_number(a, top[i].id), add(a, &top[i].logprob, sizeof top[i].logprob);
        for (int32_t q = 0; q < 2 && st == HONE_OK; q++) {
            st = hone_sampler_pick(s[q], x, seqs[k % 8], places[k % 7], &id, &a->err);
            if (took(a, st)) add_number(a, id);
        }
        add_number(a, hn_scan_logits(x, n).best);
        x[k] += (float)(k % 4) * 0.5f;
    }
    hone_sampler_free(s[0]);
    hone_sampler_free(s[1]);
    free(x);
    return st;
}

/* ---- forms ----------------------------------------------------------------------------------------------- */

/* Along a text that is drawn from its masks: 1 to 5 tokens are taken back at once, a clone goes on as it does. */
static hone_status form_of(asking *a, hone_matcher *m, uint64_t *mask, size_t n_words, uint64_t key)
{
    enum { STEPS = 10, BACK = 5 };
    hone_status st = HONE_OK;
    size_t taken = 0;
    for (uint64_t i = 0; i < STEPS && st == HONE_OK; i++) {
        int64_t n = 0;
        st = hone_matcher_mask(m, mask, n_words, &n, &a->err);
        if (!took(a, st)) break;
        add_number(a, n);
        add(a, mask, n_words * sizeof *mask);
        add_number(a, hone_matcher_can_end(m));
        int32_t id = n > 0 ? nth_of(mask, n_words, (int64_t)(hn_rand64(key, i) % (uint64_t)n)) : -1;
        if (id < 0 || hone_token_is_eog(a->m, id)) break;
        st = hone_matcher_accept(m, &id, 1, &a->err);
        if (!took(a, st)) break;
        taken++;
        size_t back = (i + key) % BACK + 1;
        if (i % 3 != 2 || back > taken) continue;
        if (took(a, hone_matcher_rollback(m, back, &a->err))) taken -= back;
        hone_matcher *other = NULL;
        st = hone_matcher_clone(&other, m, &a->err);
        if (took(a, st)) {
            st = hone_matcher_mask(other, mask, n_words, &n, &a->err);
            if (took(a, st)) add_number(a, n), add(a, mask, n_words * sizeof *mask);
        }
        hone_matcher_free(other);
    }
    return st;
}

static hone_status ask_forms(asking *a)
{
    static const char *const schemas[] = {
        "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"maxLength\":4}]}",
        "{\"oneOf\":[{\"const\":\"boat\"},{\"type\":\"null\"}]}",
        "{\"allOf\":[{\"type\":\"object\",\"required\":[\"a\"]},{\"properties\":{\"a\":{\"type\":\"boolean\"}},"
        "\"additionalProperties\":false}]}",
        "{\"type\":\"string\",\"pattern\":\"^[a-f]{2,5}$\"}",
        "{\"type\":\"string\",\"format\":\"date\"}",
        "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"null\"},\"maxItems\":3}",
        "{\"type\":\"number\",\"exclusiveMinimum\":-2,\"multipleOf\":0.5}",
        "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/t\"}}}}",
        "{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"integer\"}},\"additionalProperties\":false,"
        "\"minProperties\":1}",
        "{\"type\":[\"string\",\"null\"],\"minLength\":2,\"not\":{\"enum\":[\"no\"]}}",
    };
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas && st != HONE_E_NOMEM; i++) {
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_JSON_SCHEMA,
                                        .text = schemas[i],
                                        .len = strlen(schemas[i]) };
        hone_grammar *g = NULL;
        hone_matcher *m = NULL;
        st = hone_grammar_compile(&g, &p, &a->err);
        if (took(a, st)) st = hone_matcher_new(&m, g, a->m, &a->err);
        if (m) st = form_of(a, m, mask, n_words, i + 1);
        hone_matcher_free(m);
        m = NULL;
        if (g) st = hone_matcher_new(&m, g, a->m, &a->err);
        for (const char *text = "[1.5, \"ab\"]"; m && *text && st != HONE_E_NOMEM;
             text++) { /* byte by byte, as far as it goes */
            st = hone_matcher_accept_text(m, text, 1, &a->err);
            if (!took(a, st)) break;
            add_number(a, hone_matcher_can_end(m));
        }
        hone_matcher_free(m);
        hone_grammar_free(g);
    }
    free(mask);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

void hn_outer_set(hn_outer *out, hn_outer_part part, uint64_t hash)
{
    snprintf(out->hash[part], sizeof out->hash[part], "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

enum { BY = 3 }; /* digits of the number */

void hn_outer_set_drawn(hn_outer *out, hn_outer_part part, uint64_t hash, uint64_t draw)
{
    snprintf(out->hash[part], sizeof out->hash[part], "%03x%05x", (unsigned)(hn_mix64(draw) & 0xFFF),
             (unsigned)((hash ^ hash >> 32) & 0xFFFFF));
}

static bool is_drawn(int part) { return part >= HN_OUTER_DRAWN && part <= HN_OUTER_ADAPTED; }

/* Can both be compared, and are others? */
static bool other(const hn_outer *a, const hn_outer *b, int part)
{
    const char *x = a->hash[part], *y = b->hash[part];
    return x[0] && y[0] && strcmp(x, y) != 0 && (!is_drawn(part) || strncmp(x, y, BY) == 0);
}

hone_status hn_outer_ask(hn_outer *out, const hone_model *m, uint64_t draw, hone_error *err)
{
    static const struct {
        hn_outer_part part;
        bool of_texts; /* asks the tokenizer */
        hone_status (*ask)(asking *a);
    } all[] = { { HN_OUTER_TOKENIZER, true, ask_tokenizer },
                { HN_OUTER_TEXT, true, ask_text },
                { HN_OUTER_SAMPLER, false, ask_sampler },
                { HN_OUTER_MASKS, true, ask_masks },
                { HN_OUTER_LOGPROBS, false, ask_logprobs },
                { HN_OUTER_TEMPLATE, true, ask_template },
                { HN_OUTER_EDGES, false, ask_edges },
                { HN_OUTER_SCRIPTS, true, ask_scripts },
                { HN_OUTER_STOPS, true, ask_stops },
                { HN_OUTER_PICKS, false, ask_picks },
                { HN_OUTER_FORMS, true, ask_forms },
                { HN_OUTER_TALKS, true, hn_ask_talks },
                { HN_OUTER_REPLIES, true, hn_ask_replies },
                { HN_OUTER_CHAINS, false, ask_chains },
                { HN_OUTER_WORDS, true, ask_words },
                { HN_OUTER_FAR, false, hn_ask_far },
                { HN_OUTER_NOTATIONS, false, hn_ask_notations },
                { HN_OUTER_CORNERS, true, hn_ask_corners } };
    asking a = { .m = m };
    hone_model_get_info(m, &a.info);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].of_texts && !a.info.has_tokenizer) continue;
        a.h = HN_FNV_INIT;
        if (all[i].ask(&a) == HONE_E_NOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s", a.err.message);
        hn_outer_set(out, all[i].part, a.h);
    }
    if (!draw) return HONE_OK;
    a.h = HN_FNV_INIT;
    if (hn_ask_drawn(&a, draw) == HONE_E_NOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s", a.err.message);
    hn_outer_set_drawn(out, HN_OUTER_DRAWN, a.h, draw);
    return HONE_OK;
}

json_t *hn_outer_json(const hn_outer *a)
{
    json_t *o = json_object();
    for (int i = 0; i < HN_OUTER_PARTS; i++)
        if (a->hash[i][0]) json_object_set_new(o, names[i], json_string(a->hash[i]));
    return o;
}

void hn_outer_read(hn_outer *out, json_t *o)
{
    *out = (hn_outer){ 0 };
    for (int i = 0; i < HN_OUTER_PARTS; i++) {
        const char *hash = json_string_value(json_object_get(o, names[i]));
        if (hash) snprintf(out->hash[i], sizeof out->hash[i], "%.8s", hash);
    }
}

const char *hn_outer_name(hn_outer_part part) { return part < HN_OUTER_PARTS ? names[part] : NULL; }

hn_outer_part hn_outer_of(const hn_outer *a, const hn_outer *b)
{
    for (int i = 0; i < HN_OUTER_PARTS; i++)
        if (other(a, b, i)) return (hn_outer_part)i;
    return HN_OUTER_PARTS;
}

const char *hn_outer_differ(json_t *a, json_t *b)
{
    hn_outer x, y;
    hn_outer_read(&x, a);
    hn_outer_read(&y, b);
    return hn_outer_name(hn_outer_of(&x, &y));
}

void hn_outer_untold(char *dst, size_t cap, json_t *a, json_t *b)
{
    hn_outer x, y;
    size_t n = 0;
    hn_outer_read(&x, a);
    hn_outer_read(&y, b);
    dst[0] = 0;
    for (int i = 0; i < HN_OUTER_PARTS; i++)
        if (!x.hash[i][0] != !y.hash[i][0] && !is_drawn(i) && n < cap)
            n += (size_t)snprintf(dst + n, cap - n, "%s%s", n ? " " : "", names[i]);
}
