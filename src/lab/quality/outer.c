/* The questions to what stands around the engine. Owns them: a change of one is a change of its hash, and needs another
 * name for its part. */
#include "lab/quality/outer.h"

#include "lab/quality/sketch.h"

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

static const char *const names[HN_OUTER_PARTS] = { "tokenizer", "text",       "sampler", "masks", "logprobs",
                                                   "template",  "embeddings", "caches",  "edges", "depth" };

typedef struct asking {
    const hone_model *m;
    hone_model_info info;
    uint64_t h;
    hone_error err;
} asking;

static void add(asking *a, const void *p, size_t n) { a->h = hn_fnv1a(a->h, p, n); }
static void add_number(asking *a, int64_t v) { add(a, &v, sizeof v); }
/* What is refused is an answer. */
static bool took(asking *a, hone_status st)
{
    if (st != HONE_OK) add_number(a, -(int64_t)st);
    return st == HONE_OK;
}

/* ---- tokenizer and text ---------------------------------------------------------------------------------- */

static bool inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

static hone_status tokens(asking *a, const char *text, size_t len, int flags)
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

/* ---- all of it ------------------------------------------------------------------------------------------- */

void hn_outer_set(hn_outer *out, hn_outer_part part, uint64_t hash)
{
    snprintf(out->hash[part], sizeof out->hash[part], "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

hone_status hn_outer_ask(hn_outer *out, const hone_model *m, hone_error *err)
{
    static const struct {
        hn_outer_part part;
        bool of_texts; /* asks the tokenizer */
        hone_status (*ask)(asking *a);
    } all[] = { { HN_OUTER_TOKENIZER, true, ask_tokenizer }, { HN_OUTER_TEXT, true, ask_text },
                { HN_OUTER_SAMPLER, false, ask_sampler },    { HN_OUTER_MASKS, true, ask_masks },
                { HN_OUTER_LOGPROBS, false, ask_logprobs },  { HN_OUTER_TEMPLATE, true, ask_template },
                { HN_OUTER_EDGES, false, ask_edges } };
    asking a = { .m = m };
    hone_model_get_info(m, &a.info);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].of_texts && !a.info.has_tokenizer) continue;
        a.h = HN_FNV_INIT;
        if (all[i].ask(&a) == HONE_E_NOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s", a.err.message);
        hn_outer_set(out, all[i].part, a.h);
    }
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
        if (a->hash[i][0] && b->hash[i][0] && strcmp(a->hash[i], b->hash[i]) != 0) return (hn_outer_part)i;
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
        if (!x.hash[i][0] != !y.hash[i][0] && n < cap)
            n += (size_t)snprintf(dst + n, cap - n, "%s%s", n ? " " : "", names[i]);
}
