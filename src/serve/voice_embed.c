/* The voices of /v1/embeddings, llama-server's /embeddings and /v1/rerank. Owns their shapes; refuses to know
 * models. */
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

#include <stdlib.h>

/* ---- embeddings -------------------------------------------------------------------------- */

static bool read_encoding(hn_fields *f, const json_t *v, const char *path)
{
    static const char *const encodings[] = { "float", "base64", NULL };
    const char *encoding;
    if (!hn_field_one_of(f, v, path, encodings, &encoding)) return false;
    f->ask->base64 = encoding == encodings[1];
    return true;
}

static const hn_field embed_fields[] = {
    { .name = "input", .kind = HN_FIELD_LATER },
    { .name = "content", .kind = HN_FIELD_LATER },
    { .name = "encoding_format", .kind = HN_FIELD_CALL, .fn = read_encoding },
    { .name = "dimensions", .kind = HN_FIELD_INT, HN_AT(dimensions), .lo = 1, .hi = 1 << 20 },
    { .name = "embd_normalize", .kind = HN_FIELD_INT, HN_AT(norm), .lo = -1, .hi = 1024 },
    { .name = "lora", .kind = HN_FIELD_CALL, .fn = hn_field_lora },
    { .name = "stream", .kind = HN_FIELD_NEUTRAL },
    { 0 },
};

static bool read_embed(hn_fields *f, bool native)
{
    const json_t *input = hn_field_get(f->root, "input"), *content = hn_field_get(f->root, "content");
    const char *name = "input";
    f->ask->add_special = true;
    f->ask->token_rows = native;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ embed_fields, hn_fields_usual, NULL })) return false;
    if (native && content && !input) {
        input = content;
        name = "content";
    }
    if (!input) return hn_field_missing(f, name, "a string, token ids, or an array of them");
    return hn_field_prompts(f, input, name, HN_ASK_INPUTS);
}

static bool parse_embed_as(hn_ask *a, bool native, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_EMBED;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_embed(&f, native));
}

static bool parse_embed(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_embed_as(a, false, body, len, l, r);
}

static bool parse_native(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_embed_as(a, true, body, len, l, r);
}

/* base64 of little-endian floats, or numbers. */
static void vector(hn_bytes *o, const hn_ask *a, const float *x, int32_t n)
{
    if (!a->base64) {
        hn_part_vector(o, x, n);
        return;
    }
    unsigned char *bytes = malloc((size_t)n * 4 + 1);
    if (!bytes) {
        o->lost = true;
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        for (int k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(u >> 8 * k);
    }
    hn_bytes_text(o, "\"");
    hn_bytes_base64(o, bytes, (size_t)n * 4);
    hn_bytes_text(o, "\"");
    free(bytes);
}

static void tokens_used(hn_bytes *o, int32_t n)
{
    hn_bytes_printf(o, "\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d}", n, n);
}

static bool found_embed(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_text(o, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < a->n_prompt; i++) {
        hn_bytes_printf(o, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "", i);
        vector(o, a, f->vectors + i * (size_t)f->n_dim, f->n_dim);
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, "]");
    hn_part_text(o, "model", h->model);
    hn_bytes_text(o, ",");
    tokens_used(o, f->n_tokens);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

static bool found_native(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    const float *row = f->vectors;
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < a->n_prompt; i++) {
        hn_bytes_printf(o, "%s{\"index\":%zu,\"embedding\":[", i ? "," : "", i);
        for (int32_t k = 0; k < (f->n_rows ? f->n_rows[i] : 1); k++, row += f->n_dim) {
            if (k) hn_bytes_text(o, ",");
            vector(o, a, row, f->n_dim);
        }
        hn_bytes_text(o, "]}");
    }
    hn_bytes_text(o, "]");
    return hn_bytes_ok(o);
}

/* ---- rerank ------------------------------------------------------------------------------ */

enum { DOCUMENTS = 1024 };

static const hn_field rerank_fields[] = {
    { .name = "query", .kind = HN_FIELD_LATER },
    { .name = "documents", .kind = HN_FIELD_LATER },
    { .name = "texts", .kind = HN_FIELD_LATER },
    { .name = "top_n", .kind = HN_FIELD_INT, HN_AT(top_n), .lo = 1, .hi = 1 << 20 },
    { .name = "return_documents", .kind = HN_FIELD_BOOL, HN_AT(return_documents) },
    { .name = "lora", .kind = HN_FIELD_CALL, .fn = hn_field_lora },
    { .name = "return_text", .kind = HN_FIELD_BOOL, HN_AT(return_documents) },
    { 0 },
};

/* A string, or {"text": string}. */
static bool read_document(hn_fields *f, const json_t *v, const char *path, hn_ask_prompt *p)
{
    char at[HN_ASK_PATH];
    hone_str s;
    if (json_is_object(v)) {
        hn_field_path(at, path, "text");
        path = at;
        if (!(v = hn_field_get(v, "text"))) return hn_field_missing(f, path, "a string");
    }
    if (!hn_field_content(f, v, path, &s)) return false;
    p->text = s.ptr;
    p->len = s.len;
    return true;
}

static bool read_rerank(hn_fields *f)
{
    char at[HN_ASK_PATH];
    hn_ask *a = f->ask;
    const json_t *query = hn_field_get(f->root, "query"), *list = hn_field_get(f->root, "documents"),
                 *texts = hn_field_get(f->root, "texts");
    const char *name = texts ? "texts" : "documents";
    if (list && texts) return hn_field_refused(f, "texts", "beside documents; expected one of them");
    if (texts) list = texts;
    size_t n = json_array_size(list);
    a->flat_scores = texts != NULL;
    a->add_special = true;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ rerank_fields, hn_fields_usual, NULL }))
        return false;
    if (!query) return hn_field_missing(f, "query", "a string");
    if (!list) return hn_field_missing(f, name, "an array of strings");
    if (!json_is_array(list)) return hn_field_wrong(f, name, list, "an array of strings");
    if (n == 0 || n > DOCUMENTS)
        return hn_refuse(f->refusal, 400, "out_of_range", name, "%s has %zu entries; expected 1 to %d", name, n,
                         DOCUMENTS);
    hn_ask_prompt *p = hn_arena_alloc(a->arena, (n + 1) * sizeof *p);
    if (!p) return hn_field_lost(f);
    if (!read_document(f, query, "query", p)) return false;
    for (size_t i = 0; i < n; i++)
        if (!read_document(f, json_array_get(list, i), hn_field_element(at, name, i), p + 1 + i)) return false;
    a->prompt = p;
    a->n_prompt = n + 1;
    return true;
}

static bool parse_rerank(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_RERANK;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_rerank(&f));
}

typedef struct ranked {
    float score;
    size_t index;
} ranked;

/* The higher score first; ties to the lower index; NaN last. */
static int by_score(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    bool na = a->score != a->score, nb = b->score != b->score;
    if (na != nb) return na ? 1 : -1;
    if (!na && a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* Where the texts came as `texts`, the results are in the shape of Hugging Face's text-embeddings-inference: an array
 * of {index, score, text?}; else in Jina's and Cohere's. */
static bool found_rerank(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    size_t n = a->n_prompt - 1, top = a->top_n > 0 && (size_t)a->top_n < n ? (size_t)a->top_n : n;
    bool flat = a->flat_scores;
    ranked *list = malloc(n * sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < n; i++) list[i] = (ranked){ f->scores[i], i };
    qsort(list, n, sizeof *list, by_score);
    if (!flat) {
        hn_bytes_text(o, "{");
        hn_part_text(o, "model", h->model);
        hn_bytes_text(o, ",\"object\":\"list\",");
        tokens_used(o, f->n_tokens);
        hn_bytes_text(o, ",\"results\":");
    }
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < top; i++) {
        const hn_ask_prompt *p = a->prompt + 1 + list[i].index;
        hn_bytes_printf(o, "%s{\"index\":%zu,\"%s\":", i ? "," : "", list[i].index, flat ? "score" : "relevance_score");
        hn_bytes_f32(o, list[i].score);
        if (a->return_documents) {
            hn_bytes_text(o, flat ? ",\"text\":" : ",\"document\":{\"text\":");
            hn_bytes_json(o, p->text, p->len);
            hn_bytes_text(o, flat ? "" : "}");
        }
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, flat ? "]" : "]}");
    free(list);
    return hn_bytes_ok(o);
}

const hn_voice hn_voice_embed = { .name = "openai.embeddings", .parse = parse_embed, .found = found_embed };
const hn_voice hn_voice_native_embed = { .name = "llama.embeddings", .parse = parse_native, .found = found_native };
const hn_voice hn_voice_rerank = { .name = "rerank", .parse = parse_rerank, .found = found_rerank };
